// What happens to the rails during a soak, and when: drawn from a seed, so that the seed repeats it. Pure.
// Imports the lab's actions (types), the seeded generator.

import type { Prng } from '../../src/util/prng.ts';
import type { LabAction } from '../../tools/lab/actions.ts';

/** What may strike, each with a sentence. */
export const SOAK_FAULTS = {
  pull: 'the cables of a rail are pulled at every node',
  port: 'the cable of one node is pulled on one rail',
  blackhole: 'frames vanish on a rail, every carrier stays',
  oneway: 'what one node sends on a rail vanishes',
  flap: 'a rail goes and comes, seen or in silence',
  outage: 'all rails at once, for a time well under the one after which a peer is given up',
} as const;
export type SoakFault = keyof typeof SOAK_FAULTS;

export interface SoakStep {
  atMs: number;
  /** `restore`: the end of what an earlier step began. */
  kind: SoakFault | 'restore';
  actions: LabAction[];
  /** When the restore of a fault is due. */
  untilMs?: number;
}

export interface ScheduleOptions {
  prng: Prng;
  durationMs: number;
  nodes: number;
  rails: number;
}

const FIRST_FAULT_MS = 3000;
/** Rails are left alone before the end: what is under way then still ends while they come back. */
const QUIET_END_MS = 3000;
const BETWEEN_FAULTS_MS = [1000, 5000] as const;
const HOLD_MS = [400, 9000] as const;
/** pml_peer_timeout_ms is a minute. */
export const OUTAGE_MS = [300, 4000] as const;
const AFTER_OUTAGE_MS = [2000, 6000] as const;
const FLAP_PERIODS_MS = [200, 500, 1000, 2000] as const;
/** A restore takes its time at so many nodes: the rail is not struck again before it. */
const RESTORE_MS = 1000;
const ORDINARY: readonly SoakFault[] = ['pull', 'port', 'blackhole', 'oneway', 'flap'];

/**
 * Every few seconds a fault strikes one rail, and ends after a while of its own; several rails may be down at the same time, but one at
 * least is whole except in an outage. In the order of time.
 */
export function soakSchedule({ prng, durationMs, nodes, rails }: ScheduleOptions): SoakStep[] {
  const steps: SoakStep[] = [];
  const wholeFromMs = new Array<number>(rails).fill(0);
  const endMs = durationMs - QUIET_END_MS;
  const strike = (atMs: number, untilMs: number, kind: SoakFault, actions: LabAction[]) => {
    const until = Math.min(untilMs, endMs);
    const struck = actions.flatMap(({ rail }) => rail ?? []);
    const restores = struck.map((rail): LabAction => ({ kind: 'restore', rail }));
    steps.push({ atMs, kind, actions, untilMs: until }, { atMs: until, kind: 'restore', actions: restores });
    for (const rail of struck) wholeFromMs[rail] = until + RESTORE_MS;
  };
  for (let atMs = FIRST_FAULT_MS; atMs < endMs; ) {
    if (prng.chance(1, 12)) {
      // All are whole first, and nothing else strikes meanwhile.
      const fromMs = Math.max(atMs, ...wholeFromMs);
      const untilMs = fromMs + prng.between(...OUTAGE_MS);
      const actions = wholeFromMs.map((_, rail): LabAction => ({ kind: prng.chance(1, 2) ? 'pull' : 'blackhole', rail }));
      atMs = untilMs + prng.between(...AFTER_OUTAGE_MS);
      if (untilMs < endMs) strike(fromMs, untilMs, 'outage', actions);
      continue;
    }
    const kind = prng.pick(ORDINARY);
    const holdMs = prng.between(...HOLD_MS);
    const node = prng.below(nodes);
    const periodMs = prng.pick(FLAP_PERIODS_MS);
    const silent = prng.chance(1, 2);
    const whole = wholeFromMs.flatMap((fromMs, rail) => (fromMs <= atMs ? [rail] : []));
    if (whole.length > 1) {
      const rail = prng.pick(whole);
      strike(atMs, atMs + holdMs, kind, [actionOf(kind, rail, node, periodMs, silent)]);
    }
    atMs += prng.between(...BETWEEN_FAULTS_MS);
  }
  return steps.sort((a, b) => a.atMs - b.atMs);
}

function actionOf(kind: SoakFault, rail: number, node: number, periodMs: number, silent: boolean): LabAction {
  switch (kind) {
    case 'port':
      return { kind: 'pull', rail, node };
    case 'oneway':
      return { kind: 'oneway', rail, node };
    case 'flap':
      return { kind: 'flap', rail, periodMs, silent };
    case 'blackhole':
      return { kind: 'blackhole', rail };
    default:
      return { kind: 'pull', rail };
  }
}
