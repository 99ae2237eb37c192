// One random run of groups that go back together: a program of 2 to 6 ranks in groups of any sizes, which save at moments of their own, standbys, and
// processes that die at any time: in a save of their own group or of another one, while they go back, while they repeat what was lost, several of
// one group, several groups at once. Then nobody dies any more, and everybody comes to the end having seen what is seen without deaths.
import { numbered } from '../../src/ft/groups/groups.ts';
import { Prng } from '../../src/util/prng.ts';
import { GroupWorld } from './group-world.ts';
import { drawProgram } from './log-program.ts';
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

export function runGroup(seed: number, options: SwarmOptions = {}): SwarmReport {
  const prng = new Prng(seed).split('group');
  const members = prng.between(2, 6);
  const count = prng.between(1, members);
  const groups = numbered(Array.from({ length: members }, () => String(prng.below(count))));
  const deaths = prng.pick([0, 1, 1, 1, 2, 2, 3, 4]);
  const strikes = prng.pick([0, 0, 1, 1, 2, 3]);
  const standbys = deaths + strikes + prng.pick([0, 1]);
  const railCount = prng.pick([1, 1, 2, 3]);
  const params: Record<string, string> = { ...SCENARIO_PARAMS };
  const eagerBytes = prng.pick([64, 1024, 4096]);
  params.pml_eager_limit_bytes = String(eagerBytes);
  if (prng.chance(1, 3)) params.pml_unexpected_bytes_max = prng.pick(['4096', '8192']);
  if (prng.chance(1, 6)) params.pml_retained_bytes_max = '4096';
  const oneSided = prng.chance(1, 3);
  const program = drawProgram(prng.split('program'), members, eagerBytes, 12_000, groups);
  const isBlocking = prng.chance(1, 3);
  const ranks = members + standbys;
  const world = new GroupWorld(prng.split('world'), program, {
    seed,
    ranks,
    rails: drawRails(prng, railCount, oneSided),
    params,
    members,
    groups,
    logBytesMax: prng.pick([60_000, 200_000, 2_000_000, 2_000_000, 2_000_000, 2_000_000]),
    slabBytes: prng.pick([4096, 16_384]),
    duplication: prng.pick([1, 1, 2]),
    isBlocking,
    refusedIn: isBlocking ? 0 : prng.pick([0, 0, 6]),
    newsUs: prng.pick([[10], [10, 1000], [100, 1000, 20_000, 100_000], [3000]]),
    strikes,
    onDeath: () => pull(),
    ...watchersOf(options),
  });
  const report = newReport(seed, ranks, railCount);
  const kinds = (Object.keys(FAULT_KINDS) as FaultKind[]).filter(() => prng.chance(1, 8));
  report.description = `groups ${groups.join(' ')}, standbys ${standbys}, ${program.ops[0].length} operations, up to ${deaths} deaths and ${strikes} strikes, faults ${kinds.join(' ') || 'none'}`;
  options.trace?.(`0 seed ${seed}: ${report.description}`);
  const { world: sim } = world;
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
function finish(world: GroupWorld): void {
  const { world: sim } = world;
  world.isQuiet = true;
  sim.healAll();
  if (!sim.runUntil(() => world.isFinished, QUIET_MS)) throw new OracleError(`F3: not everybody comes to the end: ${world.describe()}`);
  // Whoever went back may wait for the answer to a message that nobody receives any more.
  sim.runUntil(() => world.openRequests().length === 0, QUIET_MS);
  sim.mustDeliver(QUIET_MS);
  sim.runFor(50);
  const [open] = world.openRequests();
  if (open !== undefined) throw new OracleError(`F3: still waiting: ${open}`);
  sim.mustFinalize(60_000);
  world.checkEnd();
}
