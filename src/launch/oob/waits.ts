// Who waits for whom: one rank's report of its pending requests, the graph over all ranks, its cycles, and the text for people.
import { processName, shadowOf } from '../../util/replica-names.ts';

/** One thing that a rank waits for; a collective through shared memory is one for each rank that it waits for. */
export interface Wait {
  /** What it is; `collective`: one that goes through shared memory; `finalize`: a call of finalize() that waits. */
  kind: 'send' | 'recv' | 'probe' | 'collective' | 'finalize';
  /** World rank; 'any' for a receive or probe from any source. */
  peer: number | 'any';
  /** Tag; 'any' for a receive or probe with any tag. */
  tag: number | 'any';
  /** Name of the communicator. */
  comm: string;
  /** The collective that waits, if it is not one of the user's own messages. */
  call?: string | undefined;
  /** The length of the message, or of the buffer for a receive that has not matched. */
  bytes: number;
  /** Since when it was begun, to within a tenth of a second; more coarsely for what was begun long ago. */
  waitedMs: number;
  /** The protocol's state, in words. */
  phase: string;
  /** Rails that carry parts of it now, or that could. */
  rails: string[];
}

/** A rail in a report of waits. */
export interface RailLine {
  /** World rank of the other side. */
  peer: number;
  /** Name of the rail. */
  key: string;
  /** Its state: a RailState. */
  state: string;
  /** Why it was last lost, or could not be connected; empty while that has not happened. */
  reason: string;
}

/** What one rank waits for: Runtime.waits(). */
export interface RankWaits {
  /** World rank. */
  rank: number;
  /** Number of its process in the job: of the first replica of a rank, and where each rank is one process, that of the rank. */
  process: number;
  /** Id of its process. */
  pid: number;
  /** Oldest first. */
  waits: Wait[];
  /** Number of requests beyond those that are listed. */
  more: number;
  /** Rails to the ranks that are waited for. */
  rails: RailLine[];
}

/** What the gatherer knows of one rank. */
export type RankState =
  | { state: 'answered'; waits: RankWaits }
  /** It is in a blocking call, and said this a while ago without being asked. */
  | { state: 'blocked'; waits: RankWaits; agoMs: number }
  /** In the job, and silent: it computes, is stopped, or has just begun a blocking call. */
  | { state: 'silent' }
  | { state: 'ended' }
  | { state: 'absent' };

export interface WaitsReport {
  jobId: string;
  reason: string;
  /** By number of the process. `shadowOf`: it is a further replica of that rank. */
  ranks: ({ rank: number; shadowOf?: number } & RankState)[];
  /** Ranks in the order in which they wait for each other; the last one waits for the first. */
  cycles: number[][];
}

/** For whom a rank waits. One that would take a message from anybody waits for nobody in particular, unless there is but one other. */
function targets(rank: number, { waits }: RankWaits, size: number): Set<number> {
  const found = new Set<number>();
  for (const { peer } of waits) {
    if (peer !== 'any') found.add(peer);
    else if (size === 2) found.add(1 - rank);
  }
  return found;
}

/** One cycle, a shortest one, for each group of ranks that wait for each other. */
export function findCycles(edges: ReadonlyMap<number, ReadonlySet<number>>): number[][] {
  const cycles: number[][] = [];
  const told = new Set<number>();
  for (const start of [...edges.keys()].sort((a, b) => a - b)) {
    if (told.has(start)) continue;
    const cycle = shortestCycle(edges, start);
    if (cycle === undefined || cycle.some((rank) => told.has(rank))) continue;
    for (const rank of cycle) told.add(rank);
    cycles.push(cycle);
  }
  return cycles;
}

/** Breadth first from `start` back to it. */
function shortestCycle(edges: ReadonlyMap<number, ReadonlySet<number>>, start: number): number[] | undefined {
  const cameFrom = new Map<number, number>();
  const queue = [start];
  for (let at = 0; at < queue.length; at++) {
    const rank = queue[at];
    for (const next of edges.get(rank) ?? []) {
      if (next === start) {
        const cycle = [rank];
        for (let back = rank; back !== start; ) {
          back = cameFrom.get(back) as number;
          cycle.unshift(back);
        }
        return cycle;
      }
      if (!cameFrom.has(next)) {
        cameFrom.set(next, rank);
        queue.push(next);
      }
    }
  }
  return undefined;
}

/** What one rank alone can say of a job of so many processes. */
export function reportOfOne(jobId: string, reason: string, own: RankWaits, count: number, replicas: number): WaitsReport {
  const silent: RankState = { state: 'silent' };
  const states = Array.from(
    { length: count },
    (_, number): RankState => (number === own.process ? { state: 'answered', waits: own } : silent),
  );
  return makeReport(jobId, reason, states, replicas);
}

/** `replicas`: processes of each rank. Shadows wait for whom their leads wait for, and are in no cycle. */
export function makeReport(jobId: string, reason: string, states: readonly RankState[], replicas = 1): WaitsReport {
  const edges = new Map<number, Set<number>>();
  const ranks = states.map((state, number) => {
    const shadow = shadowOf(number, states.length, replicas);
    if (shadow !== undefined) return { rank: number, shadowOf: shadow, ...state };
    if (state.state === 'answered' || state.state === 'blocked') edges.set(number, targets(number, state.waits, states.length / replicas));
    return { rank: number, ...state };
  });
  return { jobId, reason, ranks, cycles: findCycles(edges) };
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;

function waitLine(wait: Wait): string {
  const tag = wait.tag === 'any' ? 'any tag' : `tag ${wait.tag}`;
  const peer = wait.peer === 'any' ? 'any rank' : `rank ${wait.peer}`;
  const rails = wait.rails.length === 0 ? '' : `, on ${wait.rails.join(', ')}`;
  const age = `for ${seconds(wait.waitedMs)}`;
  if (wait.kind === 'finalize') return `finalize: ${peer} ${age}: ${wait.phase}${rails}`;
  if (wait.kind === 'collective') return `${wait.call} of ${wait.comm}, ${peer} ${age}: ${wait.phase}`;
  const direction = wait.kind === 'send' ? 'to' : 'from';
  const bytes = wait.kind === 'probe' ? '' : `, ${wait.bytes} bytes`;
  const where = wait.call === undefined ? `${tag}, ${wait.comm}` : `in ${wait.call} of ${wait.comm}`;
  return `${wait.kind} ${direction} ${peer}, ${where}${bytes}, ${age}: ${wait.phase}${rails}`;
}

const LINES_PER_RANK_MAX = 20;

/** The report as lines for people. */
export function reportLines(report: WaitsReport): string[] {
  const lines = [`who waits for whom (${report.reason}):`];
  const shadows = report.ranks.filter(({ shadowOf: rank }) => rank !== undefined).length;
  const replicas = report.ranks.length / (report.ranks.length - shadows);
  for (const one of report.ranks) {
    const name = processName(one.rank, report.ranks.length, replicas);
    if (one.state === 'ended') lines.push(`  ${name}: has ended`);
    else if (one.state === 'absent') lines.push(`  ${name}: has not joined`);
    else if (one.state === 'silent') lines.push(`  ${name}: does not answer: it computes, is stopped, or has just begun a blocking call`);
    else {
      const { waits, more, rails, pid } = one.waits;
      if (waits.length === 0) lines.push(`  ${name} (pid ${pid}): waits for nothing`);
      else {
        const call = one.state === 'blocked' ? `, in a blocking call, said ${seconds(one.agoMs)} ago that it` : '';
        lines.push(`  ${name} (pid ${pid})${call} waits for`);
      }
      for (const wait of waits.slice(0, LINES_PER_RANK_MAX)) lines.push(`    ${waitLine(wait)}`);
      const further = more + Math.max(0, waits.length - LINES_PER_RANK_MAX);
      if (further > 0) lines.push(`    and ${further} more`);
      for (const { peer, key, state, reason } of rails) {
        // A rail that is made only when it is needed is not down.
        if (state !== 'UP' && state !== 'ON_DEMAND') {
          const word = state === 'SUSPECT' || state === 'TRIAL' ? `bad (${state})` : state;
          lines.push(`    rail ${key} to rank ${peer} is ${word}${reason === '' ? '' : `: ${reason}`}`);
        }
      }
    }
  }
  for (const cycle of report.cycles) lines.push(`  cycle: ${[...cycle, cycle[0]].join(' waits for ')}`);
  if (report.cycles.length === 0) lines.push('  no ranks wait for each other in a circle');
  return lines;
}
