// One random run of logs and successions: a program of 2 to 5 ranks that saves now and then, standbys, and processes that die at any time, also
// successors, also while they repeat what was lost. Then nobody dies any more, and everybody comes to the end having seen what is seen
// without deaths.
import { Prng } from '../../src/util/prng.ts';
import { drawProgram } from './log-program.ts';
import { LogWorld } from './log-world.ts';
import { OracleError } from './oracle.ts';
import { SCENARIO_PARAMS } from './scenario.ts';
import {
  drawRails,
  FAULT_KINDS,
  type FaultKind,
  injectFault,
  newReport,
  passTime,
  type SwarmOptions,
  type SwarmReport,
  sumCounters,
  watchersOf,
} from './swarm.ts';

/** What happens to rails in the instant of a death. */
const PULLED = ['cutLost', 'cutDelivered', 'cutHalf', 'oneNotices', 'allDown', 'flap'] as const;
/** Virtual time within which all must end once it is quiet. */
const QUIET_MS = 240_000;

export function runLog(seed: number, options: SwarmOptions = {}): SwarmReport {
  const prng = new Prng(seed).split('log');
  const members = prng.between(2, 5);
  const deaths = prng.pick([0, 1, 1, 1, 2, 2, 3, 4, 6]);
  const standbys = deaths + prng.pick([0, 0, 1]);
  const railCount = prng.pick([1, 1, 2, 3]);
  const params: Record<string, string> = { ...SCENARIO_PARAMS };
  const eagerBytes = prng.pick([64, 1024, 4096]);
  params.pml_eager_limit_bytes = String(eagerBytes);
  // Credit near its bound.
  if (prng.chance(1, 3)) params.pml_unexpected_bytes_max = prng.pick(['4096', '8192']);
  if (prng.chance(1, 6)) params.pml_retained_bytes_max = '4096';
  const oneSided = prng.chance(1, 3);
  // (A stream of its own: seeds that once failed keep their meaning.)
  const outcomes = prng.split('outcomes');
  const program = drawProgram(prng.split('program'), members, eagerBytes, 12_000);
  // Whoever has had an outcome dies soon, or the holder of its list does.
  const strikes = program.isWild ? outcomes.pick([0, 1, 1, 2, 3]) : 0;
  const ranks = members + standbys + strikes;
  const world = new LogWorld(prng.split('world'), program, {
    seed,
    ranks,
    rails: drawRails(prng, railCount, oneSided),
    params,
    members,
    logBytesMax: prng.pick([40_000, 100_000, 1_000_000, 1_000_000, 1_000_000]),
    slabBytes: prng.pick([4096, 16_384]),
    recordsBytesMax: outcomes.pick([1000, 5000, 1_000_000, 1_000_000, 1_000_000]),
    strikes,
    batchBytesMax: outcomes.pick([64, 200, 4000]),
    newsUs: prng.pick([[10], [10, 1000], [100, 1000, 20_000, 100_000], [3000]]),
    // What follows from outcomes is asked of programs that repeat themselves.
    drifts: prng.chance(1, 12) && !program.isWild,
    onDeath: () => pull(),
    ...watchersOf(options),
  });
  const report = newReport(seed, ranks, railCount);
  const kinds = (Object.keys(FAULT_KINDS) as FaultKind[]).filter(() => prng.chance(1, 8));
  report.description = `members ${members}, standbys ${ranks - members}, ${program.ops[0].length} operations, up to ${deaths} deaths, faults ${kinds.join(' ') || 'none'}`;
  options.trace?.(`0 seed ${seed}: ${report.description}`);
  const { world: sim } = world;
  // Rails are pulled in the instant of a death. (A stream of its own: seeds that once failed keep their meaning.)
  const pulled = prng.split('pulled');
  const pulls = pulled.chance(1, 3);
  const pull = (): void => {
    if (!pulls || pulled.chance(1, 4)) return;
    report.faults.pulled = (report.faults.pulled ?? 0) + 1;
    for (let left = pulled.between(1, 3); left > 0; left--) injectFault(sim, pulled, pulled.pick(PULLED), report);
  };
  if (prng.chance(3, 4)) sim.runUntil(() => sim.allUp, 1000);
  world.start();
  const spanUs = prng.pick([2000, 20_000, 200_000]);
  for (let left = deaths; left > 0; left--) {
    const number = prng.chance(3, 4) ? prng.below(members) : prng.below(ranks);
    sim.fabric.at(sim.fabric.nowUs + prng.below(spanUs), () => world.kill(number));
  }
  // Whoever has been called in dies, too: while it waits, while it repeats, or later.
  for (let left = prng.pick([0, 0, 1, 2]); left > 0; left--)
    sim.fabric.at(sim.fabric.nowUs + prng.below(2 * spanUs), () => world.killSuccessor());
  passTime(sim, prng, kinds, report, 3, () => world.isFinished);
  sim.runUntil(() => world.isFinished, prng.pick([50, 1000]));
  finish(world);
  report.events = sim.events;
  report.messages = world.counters.logged;
  report.virtualMs = sim.nowMs;
  report.faults.death = world.deaths;
  report.counters = { ...sumCounters(sim), ...world.counters };
  report.traceHash = sim.hash.hex;
  return report;
}

/** Quiet: nobody dies any more, and everything must come to its end. */
function finish(world: LogWorld): void {
  const { world: sim } = world;
  world.isQuiet = true;
  sim.healAll();
  if (!sim.runUntil(() => world.isFinished, QUIET_MS)) throw new OracleError(`F3: not everybody comes to the end: ${world.describe()}`);
  // Whoever went back may wait for the answer to a message that nobody receives any more.
  sim.runUntil(() => world.openRequests().length === 0, QUIET_MS);
  // A rail that comes back brings what was on its way when everybody had ended: finalize() would find it with nobody to receive it.
  sim.mustDeliver(QUIET_MS);
  sim.runFor(50);
  const [open] = world.openRequests();
  if (open !== undefined) throw new OracleError(`F3: still waiting: ${open}`);
  sim.mustFinalize(60_000);
  world.checkEnd();
}
