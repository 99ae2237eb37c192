// One random run of saves and recoveries: a ring of 2 to 8 processes that saves now and then, standbys, and processes that die at any time,
// between two messages, or in the state of a save that was drawn. Then nobody dies any more: all that live come to the end with the result of
// an undisturbed run, or are all told that there are not enough standbys.
import type { SaveState } from '../../src/ft/checkpoint/save-states.ts';
import { Prng } from '../../src/util/prng.ts';
import { SaveWorld } from './save-world.ts';
import { SCENARIO_PARAMS } from './scenario.ts';
import { FAULT_KINDS, type FaultKind, newReport, passTime, type SwarmOptions, type SwarmReport, sumCounters, watchersOf } from './swarm.ts';
import { DETECTORS, type Detector } from './ulfm-world.ts';

/** Virtual time within which all must end once it is quiet. */
const QUIET_MS = 240_000;
const STRUCK: readonly SaveState[] = ['QUIETING', 'COPYING', 'SPREADING', 'VOTING', 'COMMITTED', 'ABANDONED', 'RECOVERING', 'RESTORING'];

function armDeath(prng: Prng, world: SaveWorld, text: string[]): void {
  const { members, ranks } = world.options;
  const number = prng.chance(3, 4) ? prng.below(members) : prng.below(ranks);
  switch (prng.pick(['time', 'between', 'between', 'state', 'state', 'state'] as const)) {
    case 'time': {
      const us = prng.below(prng.pick([500, 5000, 50_000, 200_000]));
      text.push(`${number} dies after ${us} us`);
      return world.at(us, () => world.kill(number));
    }
    case 'between': {
      const count = prng.below(prng.pick([members, 10 * members, 60 * members]));
      text.push(`${number} dies before its message ${count}`);
      world.processes[number].sendsLeft = count;
      return;
    }
    case 'state': {
      const state = prng.pick(STRUCK);
      const nth = prng.pick([1, 2, members, 2 * members, 3 * members + 1, 4 * members, 6 * members]);
      text.push(`whoever comes to ${state} as number ${nth} dies`);
      return world.strikes.arm(state, nth, prng.pick([0, 0, 10, 500]));
    }
  }
}

export function runSave(seed: number, options: SwarmOptions = {}): SwarmReport {
  const prng = new Prng(seed).split('save');
  const members = prng.pick([2, 3, 3, 3, 4, 4, 5, 6]);
  const spares = prng.pick([0, 1, 2, 2, 3]);
  const ranks = members + spares;
  const depth = prng.pick([1, 1, 2, 2, 3]);
  const duplication = Math.min(prng.pick([0, 1, 1, 1, 1, 2, 2, 2]), members - 1);
  const railCount = prng.pick([1, 1, 2]);
  const params: Record<string, string> = { ...SCENARIO_PARAMS };
  if (prng.chance(1, 3)) params.pml_eager_limit_bytes = prng.pick(['0', '64']);
  const everySteps = prng.between(1, 3);
  const world = new SaveWorld(prng.split('programs'), {
    seed,
    ranks,
    rails: Array.from({ length: railCount }, () => ({
      bytesPerMs: prng.pick([2000, 20_000, 200_000]),
      latencyUs: prng.between(5, 500),
      jitterUs: prng.pick([0, 20, 200]),
      cellBytesMax: prng.pick([128, 512]),
      cellsMax: prng.between(1, 3),
      detectUsMin: 200,
      detectUsMax: prng.pick([1000, 20_000]),
    })),
    params,
    members,
    detector: prng.pick(Object.keys(DETECTORS) as Detector[]),
    hostSize: prng.pick([1, 2, 4]),
    newsUs: prng.pick([[10], [10, 1000], [100, 1000, 20_000, 100_000], [50_000]]),
    serverDiesUs: prng.below(50_000),
    keepsDecisions: false,
    leavesEarly: false,
    duplication,
    depth,
    steps: everySteps * prng.between(2, 8) + 1,
    everySteps,
    inBackground: prng.chance(2, 3),
    refusesOneIn: prng.pick([0, 0, 4, 12]),
    // A stream of its own: seeds from before play as they did.
    mayShrink: prng.split('fewer').chance(1, 3),
    ...watchersOf(options),
  });
  const text: string[] = [];
  const report = newReport(seed, ranks, railCount);
  const kinds = (Object.keys(FAULT_KINDS) as FaultKind[]).filter(() => prng.chance(1, 8));
  if (prng.chance(3, 4)) world.world.runUntil(() => world.world.allUp, 1000);
  for (let deaths = prng.pick([0, 1, 1, 1, 2, 2, 3, 4]); deaths > 0; deaths--) armDeath(prng, world, text);
  const fewer = prng.split('deaths of fewer');
  if (world.plan.mayShrink && fewer.chance(1, 2)) {
    const nth = fewer.between(1, members - 1);
    text.push(`whoever takes over what more ranks have saved as number ${nth} dies`);
    world.strikes.arm('REGROUPED', nth, fewer.pick([0, 0, 100, 2000]));
  }
  report.description = `members ${members}, spares ${spares}, copies ${world.placementOf(members).scheme.duplication}, depth ${depth}, ${world.plan.steps} steps, a save every ${everySteps}${world.plan.inBackground ? ' in the background' : ''}${world.plan.mayShrink ? ', fewer ranks go on' : ''}; ${text.join('; ') || 'no deaths'}; faults ${kinds.join(' ') || 'none'}`;
  options.trace?.(`0 seed ${seed}: ${report.description}`);
  world.start();
  passTime(world.world, prng, kinds, report, 4);
  world.world.runUntil(() => world.isFinished, prng.pick([50, 1000, 3000]));
  finish(world);
  report.events = world.world.events;
  report.virtualMs = world.world.nowMs;
  report.faults.death = world.deaths;
  report.counters = { ...sumCounters(world.world), decisions: world.oracle.decisions, ...world.counters };
  report.traceHash = world.world.hash.hex;
  return report;
}

/** Quiet: nobody dies any more, and everything must come to its end. */
function finish(world: SaveWorld): void {
  const { world: sim, oracle } = world;
  world.isQuiet = true;
  sim.healAll();
  world.rescueNews();
  const isSettled = () => world.isFinished && world.isKnown;
  const untilMs = sim.nowMs + QUIET_MS;
  do {
    sim.runUntil(isSettled, untilMs - sim.nowMs);
    world.checkEndings();
    // A rail that comes back brings what was on its way when everybody had ended: finalize() would find it with nobody to receive it.
    sim.mustDeliver(QUIET_MS, () => world.living);
    // When all members are dead, what the last of them has sent may still call standbys in: then it goes on.
    sim.runFor(50);
  } while (!isSettled() && sim.nowMs < untilMs);
  oracle.checkEnd((number, id) => world.processes[number].ids.has(id));
  sim.mustFinish(QUIET_MS);
  sim.mustFinalize(60_000);
}
