// One random run: the seed decides everything about it - ranks, rails, parameters, traffic, faults. It has a safety phase in which anything
// may fail, then a liveness phase in which all is healed and every request must end, then finalize. Each run switches off whole kinds of
// faults (swarm testing), so that common combinations do not hide rare ones.
import { ANY } from '../../src/pml/match.ts';
import type { TransitionListener } from '../../src/pml/states.ts';
import { Prng } from '../../src/util/prng.ts';
import type { RailSpec, SimLink } from './fabric.ts';
import type { PostedReceive } from './oracle.ts';
import { healthParams, SCENARIO_PARAMS } from './scenario.ts';
import { checkSpares, drawSteady, strikeSteady } from './steady.ts';
import { type CoverageListener, World } from './world.ts';

/** Kinds of faults, each with a sentence. A run enables a random subset. */
export const FAULT_KINDS = {
  cutLost: 'A link is severed; what was under way is lost.',
  cutDelivered: 'A link is severed; what was under way still arrives, its report does not.',
  cutHalf: 'A link is severed in the middle of a frame.',
  holdOneWay: 'One direction stands still, silently, and goes on after the heal.',
  holeOneWay: 'One direction loses everything, silently.',
  holeBothWays: 'Both directions lose everything, silently.',
  flap: 'A link goes down and comes back several times.',
  stall: 'One direction stands still for a short while: slow, not dead.',
  skew: 'One direction takes longer from now on.',
  corruptHeader: 'The next frame has a damaged header.',
  corruptPayload: 'The next frame has a damaged payload.',
  dropCounts: 'Frames arrive but are not reported any more.',
  oneNotices: 'Only one side finds out by itself; the other hears no close.',
  refuse: 'Connections are refused.',
  pause: 'A process gets no turn for a while.',
  allDown: 'All links between two ranks are severed at once.',
} as const;
export type FaultKind = keyof typeof FAULT_KINDS;

export interface SwarmOptions {
  trace?: (line: string) => void;
  hashTrace?: boolean;
  coverage?: TransitionListener & CoverageListener;
  /** Users give sends up, in the middle of them (profile giveup). */
  givesUp?: boolean;
  /** Ranks meet when one of them needs the other (profile meet). */
  meets?: boolean;
}

/** What of its options a profile hands on to its world: who looks on. */
export function watchersOf({ trace, hashTrace, coverage }: SwarmOptions): Pick<SwarmOptions, 'trace' | 'hashTrace' | 'coverage'> {
  return {
    ...(trace === undefined ? {} : { trace }),
    ...(hashTrace === undefined ? {} : { hashTrace }),
    ...(coverage === undefined ? {} : { coverage }),
  };
}

export interface SwarmReport {
  seed: number;
  ranks: number;
  rails: number;
  messages: number;
  faults: Partial<Record<string, number>>;
  events: number;
  virtualMs: number;
  counters: Record<string, number>;
  traceHash: string;
  description: string;
}

/** The report of a seed that is about to be played. */
export function newReport(seed: number, ranks: number, rails: number): SwarmReport {
  return { seed, ranks, rails, messages: 0, faults: {}, events: 0, virtualMs: 0, counters: {}, traceHash: '', description: '' };
}

/** Sizes that matter around these limits, so that small messages exercise every path. */
const PARAMS = { ...SCENARIO_PARAMS, pml_retained_bytes_max: '65536', pml_unexpected_bytes_max: '65536' };

export function runSeed(seed: number, options: SwarmOptions = {}): SwarmReport {
  const prng = new Prng(seed).split('swarm');
  const few = prng.chance(1, 4) ? prng.between(3, 4) : 2;
  // (A stream of its own: seeds that once failed keep their meaning.)
  const ranks = options.meets === true ? new Prng(seed).split('meet').pick([2, 3, 4, 6]) : few;
  const railCount = prng.pick([1, 2, 2, 2, 3, 3, 5]);
  const oneSided = prng.chance(1, 3);
  const siblings = prng.chance(1, 2);
  const rails: Partial<RailSpec>[] = [];
  for (let i = 0; i < railCount; i++) {
    const fast = prng.chance(1, 2);
    rails.push({
      bytesPerMs: prng.pick([500, 2000, 20_000, 200_000]),
      latencyUs: fast ? prng.between(1, 50) : prng.between(50, 2000),
      jitterUs: prng.between(0, 500),
      cellBytesMax: prng.pick([128, 512, 4096]),
      cellsMax: prng.between(1, 4),
      liveness: siblings ? 'siblings' : prng.chance(1, 8) ? 'siblings' : 'self',
      detectUsMin: 500,
      detectUsMax: prng.pick([1000, 20_000, 200_000]),
      canPut: oneSided && prng.chance(2, 3),
      canGet: oneSided && prng.chance(1, 2),
      role: i > 0 && prng.chance(1, 6) ? 'standby' : 'active',
      busyPer10k: prng.pick([0, 0, 100, 2000]),
      lateOneSidedUsMax: prng.pick([0, 1000, 50_000]),
    });
  }
  if (oneSided && prng.chance(1, 2)) for (const rail of rails) rail.canGet = true;
  // (A stream of its own: seeds that once failed keep their meaning.)
  const lengths = prng.split('one-sided');
  if (oneSided && lengths.chance(1, 3)) for (const rail of rails) rail.oneSidedBytes = lengths.pick([0, 1000, 16_384]);
  const pieces = prng.split('pipeline');
  if (oneSided && pieces.chance(1, 2)) {
    for (const rail of rails) {
      rail.pipelineBytes = pieces.pick([1000, 5000, 16_384, 65_536, Number.POSITIVE_INFINITY]);
      rail.registerRefusedPer10k = pieces.pick([0, 0, 1000, 5000]);
    }
  }
  const params: Record<string, string> = { ...PARAMS, ...healthParams(seed) };
  // Credit that runs out. (Also a stream of its own.)
  const credit = prng.split('credit');
  prng.chance(1, 4);
  if (credit.chance(1, 3)) params.pml_unexpected_bytes_max = credit.pick(['4096', '8192']);
  if (credit.chance(1, 6)) params.pml_retained_bytes_max = '4096';
  const { givesUp = false } = options;
  // (Also a stream of its own.)
  const endings = prng.split('given up');
  if (givesUp) {
    params.pml_abandoned_bytes_max = endings.pick(['0', '4096', '20000', '1000000', '1000000']);
    for (const rail of rails) rail.letsGo = endings.chance(3, 4);
  }
  if (prng.chance(1, 4)) params.pml_eager_limit_bytes = prng.pick(['0', '64', '4096']);
  if (prng.chance(1, 4)) params.bml_rail_timeout_ms = prng.pick(['50', '100', '1000']);
  const steady = options.meets === true ? drawSteady(seed, rails) : undefined;
  const drawn = (Object.keys(FAULT_KINDS) as FaultKind[]).filter(() => prng.chance(1, 3));
  const kinds = steady?.isCalm === true ? [] : drawn;
  const world = new World({
    seed,
    ranks,
    rails,
    params,
    meets: options.meets === true,
    ...watchersOf(options),
  });
  const report = newReport(seed, ranks, railCount);
  report.description = `ranks ${ranks}, rails ${railCount} (${rails.map((r) => `${r.bytesPerMs} B/ms ${r.latencyUs} us ${r.liveness}${r.canPut ? ' put' : ''}${r.canGet ? ' get' : ''} ${r.role}${r.isSteady ? ' steady' : ''}`).join('; ')}), faults ${kinds.join(' ') || 'none'}`;
  options.trace?.(`0 seed ${seed}: ${report.description}`);

  // --- safety phase
  if (steady !== undefined) strikeSteady(world, steady, report.faults);
  const contexts = prng.between(1, 3);
  const tags = prng.between(1, 4);
  const operations = prng.between(10, 80);
  const faultsLeft = { count: kinds.length === 0 ? 0 : prng.between(1, 6) };
  const posted: PostedReceive[] = [];
  for (let i = 0; i < operations; i++) {
    const what = prng.below(20);
    if (what < 9) {
      const source = prng.below(ranks);
      const dest = prng.chance(1, 12) ? source : (source + 1 + prng.below(ranks - 1)) % ranks;
      const giveUpUs = givesUp && endings.chance(2, 3) ? endings.pick([0, 50, 500, 5000, 50_000, 300_000]) : undefined;
      world.isend(source, dest, prng.below(contexts), prng.below(tags), drawBytes(prng), prng.chance(1, 8), false, giveUpUs);
      report.messages++;
    } else if (what < 15) {
      const rank = prng.below(ranks);
      const source = prng.chance(1, 3) ? ANY : prng.below(ranks);
      const tag = prng.chance(1, 3) ? ANY : prng.below(tags);
      posted.push(world.irecv(rank, source, prng.below(contexts), tag, prng.chance(1, 10) ? prng.below(600) : 12_000));
    } else if (what < 16) {
      world.mprobeRecv(prng.below(ranks), ANY, prng.below(contexts), ANY);
    } else if (what < 17 && posted.length > 0) {
      world.cancel(prng.pick(posted));
    } else if (faultsLeft.count > 0 && prng.chance(1, 2)) {
      faultsLeft.count--;
      injectFault(world, prng, prng.pick(kinds), report);
    } else world.runFor(prng.pick([0.05, 0.5, 2, 20, 150]));
  }
  while (faultsLeft.count-- > 0) {
    world.runFor(prng.pick([0.05, 0.5, 2, 20, 150]));
    injectFault(world, prng, prng.pick(kinds), report);
  }
  world.runFor(prng.pick([1, 50, 600]));
  world.oracle.checkUnchanged();

  // --- liveness phase: what is sent and not yet wanted is received by wildcards; receives that nothing fits are cancelled
  // (Where nothing was struck there is nothing to heal, and to look for it would take a connection in the making for one that is left.)
  if (steady?.isCalm !== true) world.healAll();
  drain(world, posted);
  world.mustFinish(120_000);
  if (steady !== undefined) checkSpares(world, steady);
  world.mustFinalize(60_000);

  report.events = world.events;
  report.virtualMs = world.nowMs;
  report.counters = sumCounters(world);
  report.traceHash = world.hash.hex;
  return report;
}

/** The counters of the PML, over all ranks. */
export function sumCounters(world: World): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const { engine } of world.processes)
    for (const [name, value] of Object.entries(engine.pml.counters)) sums[name] = (sums[name] ?? 0) + value;
  return sums;
}

export function drawBytes(prng: Prng): number {
  switch (prng.below(8)) {
    case 0:
      return 0;
    case 1:
    case 2:
      return prng.between(1, 64);
    case 3:
      return prng.between(1000, 1050);
    case 4:
      return prng.between(1, 1024);
    case 5:
      return prng.between(1025, 2500);
    default:
      return prng.between(1, 12_000);
  }
}

/** Receives until every message sent is matched: posted receives that stay empty are cancelled first. */
function drain(world: World, posted: PostedReceive[]): void {
  world.runFor(50);
  for (const receive of posted) if (receive.matched === undefined && !receive.done) world.cancel(receive);
  // One wildcard receive for each message that is still unmatched. Counted before the first is posted: it may match another one.
  const unmatched = world.oracle.sent.filter((message) => message.matchedBy === undefined);
  for (const message of unmatched) world.irecv(message.dest, ANY, message.ctx, ANY, 12_000);
}

/** Rails of any speed between processes, one-sided some of them where that is asked for. */
export function drawRails(prng: Prng, count: number, oneSided: boolean): Partial<RailSpec>[] {
  return Array.from({ length: count }, () => ({
    bytesPerMs: prng.pick([2000, 20_000, 200_000]),
    latencyUs: prng.between(5, 500),
    jitterUs: prng.pick([0, 20, 200]),
    cellBytesMax: prng.pick([128, 512, 4096]),
    cellsMax: prng.between(1, 3),
    detectUsMin: 200,
    detectUsMax: prng.pick([1000, 20_000]),
    canPut: oneSided && prng.chance(2, 3),
    canGet: oneSided && prng.chance(1, 2),
  }));
}

/** Some time goes by, with a few faults of these kinds in it: one in so many steps, until it is over or three have been. */
export function passTime(
  world: World,
  prng: Prng,
  kinds: readonly FaultKind[],
  report: SwarmReport,
  oneIn: number,
  isOver: () => boolean = () => false,
): void {
  let faultsLeft = kinds.length === 0 ? 0 : prng.between(0, 3);
  for (let steps = prng.between(5, 20); steps > 0 && !isOver(); steps--) {
    if (faultsLeft > 0 && prng.chance(1, oneIn)) {
      faultsLeft--;
      injectFault(world, prng, prng.pick(kinds), report);
    } else world.runFor(prng.pick([0.5, 2, 20]));
  }
}

export function injectFault(world: World, prng: Prng, kind: FaultKind, report: SwarmReport): void {
  const { fabric } = world;
  const link: SimLink = prng.pick(fabric.links());
  const rank = prng.chance(1, 2) ? link.low : link.high;
  const us = prng.pick([100, 2000, 30_000, 400_000]);
  report.faults[kind] = (report.faults[kind] ?? 0) + 1;
  const mendLater = () => {
    if (prng.chance(2, 3)) fabric.at(fabric.nowUs + us * prng.between(1, 4), () => fabric.mend(link));
  };
  switch (kind) {
    case 'cutLost':
      fabric.cut(link, { inFlight: 'lost' });
      return mendLater();
    case 'cutDelivered':
      fabric.cut(link, { inFlight: 'delivered' });
      return mendLater();
    case 'cutHalf':
      fabric.cut(link, { inFlight: 'half' });
      return mendLater();
    case 'holdOneWay':
      fabric.blackhole(link, rank);
      return mendLater();
    case 'holeOneWay':
      fabric.blackhole(link, rank, { lossy: true });
      return mendLater();
    case 'holeBothWays':
      fabric.blackhole(link, link.low, { lossy: true });
      fabric.blackhole(link, link.high, { lossy: true });
      return mendLater();
    case 'flap':
      fabric.flap(link, prng.between(1, 5), us, prng.pick([200, 5000, 60_000]), {
        inFlight: prng.pick(['lost', 'delivered', 'half'] as const),
      });
      return;
    case 'stall':
      fabric.stall(link, rank, Math.min(us, 30_000));
      return;
    case 'skew':
      fabric.skew(link, rank, prng.between(1, 20_000));
      return;
    case 'corruptHeader':
      fabric.corruptNext(link, rank, 'header');
      return;
    case 'corruptPayload':
      fabric.corruptNext(link, rank, 'payload');
      return;
    case 'dropCounts':
      fabric.dropCounts(link, rank);
      if (prng.chance(1, 2)) fabric.at(fabric.nowUs + us, () => world.endCountLoss(link));
      return;
    case 'oneNotices':
      fabric.onlyOtherSideNotices(link, rank);
      fabric.cut(link, { inFlight: prng.pick(['lost', 'delivered', 'half'] as const) });
      return mendLater();
    case 'refuse':
      fabric.refuseConnections(link, rank);
      fabric.at(fabric.nowUs + us, () => fabric.refuseConnections(link, rank, false));
      return;
    case 'pause':
      fabric.pause(rank);
      fabric.at(fabric.nowUs + us * prng.between(1, 10), () => fabric.resume(rank));
      return;
    case 'allDown':
      for (const each of fabric.links({ between: [link.low, link.high] })) {
        fabric.cut(each, { inFlight: prng.pick(['lost', 'delivered', 'half'] as const) });
        if (prng.chance(1, 2)) fabric.at(fabric.nowUs + us, () => fabric.mend(each));
      }
      return;
  }
}
