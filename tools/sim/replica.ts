// One random run of replicas: a program of 1 to 4 ranks, each of which is two processes or three, over rails that fail. In a third of the runs of two a
// bit of one process is flipped: then the replicas of that rank must be found to differ, and in all others nobody may. Of three the two others go on.
// In some a shadow dies, and its lead goes on without it.
import { COMPARE_MODES } from '../../src/ft/replica/digest.ts';
import { Prng } from '../../src/util/prng.ts';
import { OracleError } from './oracle.ts';
import type { Flip, ReplicaWorldOptions } from './replica-process.ts';
import { drawReplicaProgram } from './replica-program.ts';
import { ReplicaWorld } from './replica-world.ts';
import { SCENARIO_PARAMS } from './scenario.ts';
import {
  drawRails,
  FAULT_KINDS,
  type FaultKind,
  newReport,
  passTime,
  type SwarmOptions,
  type SwarmReport,
  sumCounters,
  watchersOf,
} from './swarm.ts';

/** Virtual time within which all must end once it is quiet. */
const QUIET_MS = 240_000;

type Deaths = NonNullable<ReplicaWorldOptions['deaths']>;

/** What happens to two replicas of each rank. */
function strikePairs(prng: Prng, seed: number, ranks: number): { flip: Flip | undefined; deaths: Deaths } {
  const flip = prng.chance(1, 3)
    ? { process: prng.below(2 * ranks), after: prng.between(1, 12), where: prng.pick(['state', 'message'] as const) }
    : undefined;
  const chance = new Prng(seed).split('replica death');
  // Of a run in which something is flipped nobody knows who would have been compared with whom.
  if (flip !== undefined || !chance.chance(1, 3)) return { flip, deaths: [] };
  const process = ranks + chance.below(ranks);
  return {
    flip,
    deaths: [{ process, atUs: chance.below(chance.pick([300, 3000, 30_000, 300_000])), toldAfterUs: chance.pick([0, 10, 1000, 50_000]) }],
  };
}

/** Leads die, and maybe shadows of other ranks, each rank keeps one of its replicas. */
function strikeLeads(prng: Prng, ranks: number): Deaths {
  const struck = prng.shuffle(Array.from({ length: ranks }, (_, rank) => rank)).slice(0, prng.pick([1, 1, 2, ranks]));
  const lastUs = prng.pick([300, 3000, 30_000, 300_000]);
  return struck.map((rank, i) => ({
    process: i === 0 || prng.chance(2, 3) ? rank : ranks + rank,
    atUs: prng.below(lastUs),
    toldAfterUs: prng.pick([0, 10, 1000, 50_000]),
    spreadUs: prng.pick([0, 100, 3000, 100_000]),
  }));
}

/** The same of three. */
function strikeThree(prng: Prng, ranks: number): { flip: Flip | undefined; deaths: Deaths } {
  const process = prng.chance(1, 2) ? prng.below(ranks) : ranks + prng.below(2 * ranks);
  const wheres =
    process < ranks ? (['state', 'message', 'rot', 'rot', 'course'] as const) : (['state', 'message', 'course', 'end'] as const);
  const flip = prng.chance(3, 4) ? { process, after: prng.between(1, 12), where: prng.pick(wheres) } : undefined;
  if (!prng.chance(1, 3)) return { flip, deaths: [] };
  const rank = prng.below(ranks);
  // Who goes its own way by itself is found by nobody.
  const shadows = prng.pick(flip?.where === 'course' ? [[1], [2]] : [[1], [2], [1, 2]]);
  return {
    flip,
    deaths: shadows.map((shadow) => ({
      process: rank + shadow * ranks,
      atUs: prng.below(prng.pick([300, 3000, 30_000, 300_000])),
      toldAfterUs: prng.pick([0, 10, 1000, 50_000]),
    })),
  };
}

export function runReplica(seed: number, options: SwarmOptions = {}): SwarmReport {
  const prng = new Prng(seed).split('replica');
  const ranks = prng.pick([1, 2, 2, 3, 4]);
  const railCount = prng.pick([1, 1, 2, 3]);
  const params: Record<string, string> = { ...SCENARIO_PARAMS };
  const eagerBytes = prng.pick([64, 1024, 4096]);
  params.pml_eager_limit_bytes = String(eagerBytes);
  if (prng.chance(1, 3)) params.pml_unexpected_bytes_max = prng.pick(['4096', '8192']);
  const oneSided = prng.chance(1, 3);
  const program = drawReplicaProgram(prng.split('program'), ranks, eagerBytes);
  const votes = new Prng(seed).split('replica majority');
  const replicas = votes.chance(1, 3) ? 3 : 2;
  const pairs = strikePairs(prng, seed, ranks);
  const leads = new Prng(seed).split('lead deaths');
  const losesLeads = replicas === 2 && pairs.flip === undefined && pairs.deaths.length === 0 && leads.chance(1, 2);
  const { flip, deaths } = losesLeads
    ? { flip: undefined, deaths: strikeLeads(leads, ranks) }
    : replicas === 2
      ? pairs
      : strikeThree(votes, ranks);
  const world = new ReplicaWorld(program, {
    seed,
    ranks: replicas * ranks,
    replicas,
    rails: drawRails(prng, railCount, oneSided),
    params,
    compare: prng.pick(COMPARE_MODES.filter((mode) => mode !== 'sha256')),
    aheadBytesMax: prng.pick([2000, 20_000, 1_000_000]),
    flip,
    deaths,
    // A short log makes leads ask each other what is not needed any more.
    logBytesMax: replicas === 2 ? leads.pick([32_768, 65_536, 4_194_304]) : 0,
    ...watchersOf(options),
  });
  const report = newReport(seed, replicas * ranks, railCount);
  const kinds = (Object.keys(FAULT_KINDS) as FaultKind[]).filter(() => prng.chance(1, 8));
  const struck = flip === undefined ? 'nobody' : `process ${flip.process} (${flip.where}, after ${flip.after})`;
  const dying = deaths.map(({ process }) => process).join(' and ') || 'nobody';
  report.description = `ranks ${ranks} of ${replicas}, flows ${program.rounds.length}, ${struck} is struck, ${dying} dies, faults ${kinds.join(' ') || 'none'}`;
  options.trace?.(`0 seed ${seed}: ${report.description}`);
  const { world: sim } = world;
  passTime(sim, prng, kinds, report, 3, () => world.isFinished);
  sim.healAll();
  if (!sim.runUntil(() => world.isFinished, QUIET_MS)) throw new OracleError(`F3: not everybody comes to the end: ${world.describe()}`);
  // A job whose replicas differ is ended by its launcher.
  if (!world.isCutShort) {
    world.checkEnd();
    // By then everybody has heard of all deaths, and a full log may have ended the job.
    sim.runFor(200);
    if (!world.isCutShort) {
      if (losesLeads && leads.chance(1, 2)) world.strikeLeaving(leads.below(ranks), leads.below(leads.pick([100, 1000])));
      sim.mustFinalize(60_000);
    }
  }
  report.events = sim.events;
  report.virtualMs = sim.nowMs;
  report.counters = {
    ...sumCounters(sim),
    flips: world.flips,
    deaths: world.deaths,
    takeovers: world.takeovers,
    torn_logs: world.tornLogs,
    diverged: world.divergences.length,
    outvoted: world.outvoted.size,
    dropped: world.dropped.size,
  };
  for (const { pml } of world.replicas) {
    report.messages += pml.counters.messages;
    for (const [name, value] of Object.entries(pml.counters))
      report.counters[`replica_${name}`] = (report.counters[`replica_${name}`] ?? 0) + value;
  }
  report.traceHash = sim.hash.hex;
  return report;
}
