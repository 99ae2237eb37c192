// Random runs in which ranks die, at a random time or when a frame of a chosen kind leaves or arrives, in addition to the faults of
// swarm.ts. A launcher tells the survivors, or they find out themselves. What they have under way with the dead rank ends with the right
// error, everything else ends well, and nothing stays registered or held. In some runs messages have no receiver: their senders must hear
// of it when the receiver leaves the job.

import { ANY } from '../../src/pml/match.ts';
import { Prng } from '../../src/util/prng.ts';
import type { PacketFilter, RailSpec } from './fabric.ts';
import type { PostedReceive } from './oracle.ts';
import { SCENARIO_PARAMS } from './scenario.ts';
import { drawSteady, strikeSteady } from './steady.ts';
import { RECOVERY, TARGETS } from './stress.ts';
import {
  drawBytes,
  FAULT_KINDS,
  type FaultKind,
  injectFault,
  newReport,
  type SwarmOptions,
  type SwarmReport,
  sumCounters,
  watchersOf,
} from './swarm.ts';
import { World } from './world.ts';

/** Context of messages that nobody receives. */
const ABANDONED_CTX = 9;

export function runDeath(seed: number, options: SwarmOptions = {}): SwarmReport {
  const prng = new Prng(seed).split('death');
  const ranks = prng.pick([2, 2, 3, 4]);
  const railCount = prng.pick([1, 2, 2, 3]);
  const oneSided = prng.chance(2, 3);
  const siblings = prng.chance(1, 4);
  const rails: Partial<RailSpec>[] = [];
  for (let i = 0; i < railCount; i++) {
    rails.push({
      bytesPerMs: prng.pick([500, 2000, 20_000]),
      latencyUs: prng.between(10, 500),
      jitterUs: prng.between(0, 200),
      cellBytesMax: prng.pick([128, 512]),
      cellsMax: prng.between(1, 3),
      liveness: siblings ? 'siblings' : 'self',
      detectUsMin: 200,
      detectUsMax: prng.pick([1000, 20_000, 200_000]),
      canPut: oneSided && prng.chance(2, 3),
      canGet: oneSided && prng.chance(1, 2),
      pipelineBytes: prng.pick([1000, 5000, Number.POSITIVE_INFINITY]),
      lateOneSidedUsMax: prng.pick([0, 20_000]),
    });
  }
  if (oneSided && prng.chance(1, 3)) for (const rail of rails) rail.canGet = true;
  // Where the timeout is long, only a launcher tells of a death.
  const findsOut = prng.chance(1, 2);
  const isTold = !findsOut || prng.chance(1, 2);
  const params: Record<string, string> = {
    ...SCENARIO_PARAMS,
    pml_peer_timeout_ms: findsOut ? prng.pick(['300', '1000', '3000']) : '600000',
    pml_unexpected_bytes_max: prng.pick(['4096', '65536', '1048576']),
  };
  if (prng.chance(1, 2)) params.bml_rail_timeout_ms = prng.pick(['50', '100']);
  const kinds = (Object.keys(FAULT_KINDS) as FaultKind[]).filter(() => prng.chance(1, 6));
  const steady = options.meets === true ? drawSteady(seed, rails) : undefined;
  const world = new World({
    seed,
    ranks,
    rails,
    params,
    meets: options.meets === true,
    ...watchersOf(options),
  });
  const { fabric } = world;
  const report = newReport(seed, ranks, railCount);

  // --- who dies, and when
  const text: string[] = [];
  let over = false;
  const die = (rank: number, host: 'up' | 'down') => {
    if (over || world.isDead(rank) || world.processes.filter((process) => !world.isDead(process.rank)).length < 2) return;
    world.kill(rank, host);
    report.faults.death = (report.faults.death ?? 0) + 1;
    if (!isTold) return;
    for (const survivor of world.processes) {
      if (survivor.rank !== rank) fabric.at(fabric.nowUs + prng.between(0, 200_000), () => world.tellFailed(survivor.rank, rank));
    }
  };
  const deaths = prng.between(1, Math.max(1, Math.min(2, ranks - 1)));
  for (let i = 0; i < deaths; i++) {
    const host = prng.pick(['up', 'up', 'down'] as const);
    if (prng.chance(1, 3)) {
      const rank = prng.below(ranks);
      const us = prng.pick([500, 20_000, 300_000]);
      fabric.at(prng.between(0, us), () => die(rank, host));
      text.push(`rank ${rank} within ${us} us`);
      continue;
    }
    const filter: PacketFilter = prng.chance(1, 4) ? prng.pick(RECOVERY) : prng.pick(TARGETS);
    const stage = prng.pick(['leave', 'arrive'] as const);
    const piece = filter.type === undefined ? undefined : prng.pick(['first', 'inner', 'last', undefined] as const);
    const isSender = prng.chance(1, 2);
    const nth = prng.pick([1, 1, 2, 3, 8]);
    fabric.onPacket({ ...filter, stage, ...(piece === undefined ? {} : { piece }) }, ({ from, to }, hit) => {
      if (hit === nth) die(isSender ? from : to, host);
      return 'pass';
    });
    text.push(`the ${isSender ? 'sender' : 'receiver'} at frame ${filter.kind ?? filter.type} ${nth}`);
  }
  report.description = `ranks ${ranks}, rails ${railCount}, ${isTold ? 'told' : 'not told'}, dies: ${text.join('; ')}, faults ${kinds.join(' ') || 'none'}`;
  options.trace?.(`0 seed ${seed}: ${report.description}`);

  // --- traffic
  if (steady !== undefined) strikeSteady(world, steady, report.faults);
  const contexts = prng.between(1, 2);
  const tags = prng.between(1, 3);
  const operations = prng.between(15, 60);
  const abandons = prng.chance(1, 3);
  let faultsLeft = kinds.length === 0 ? 0 : prng.between(0, 4);
  const posted: PostedReceive[] = [];
  for (let i = 0; i < operations; i++) {
    const what = prng.below(20);
    const source = prng.below(ranks);
    const dest = prng.chance(1, 12) ? source : (source + 1 + prng.below(ranks - 1)) % ranks;
    const bytes = drawBytes(prng);
    const sync = prng.chance(1, 8);
    const anySource = prng.chance(1, 3);
    const tag = prng.below(tags);
    const ctx = prng.below(contexts);
    if (what < 9) {
      if (world.isDead(source)) continue;
      world.isend(source, dest, ctx, tag, bytes, sync);
      report.messages++;
    } else if (what < 15) {
      if (!world.isDead(dest)) posted.push(world.irecv(dest, anySource ? ANY : source, ctx, prng.chance(1, 3) ? ANY : tag, 12_000));
    } else if (what < 16 && abandons) {
      // From the higher to the lower: who leaves first waits for nobody.
      const [low, high] = source < dest ? [source, dest] : [dest, source];
      if (low === high || world.isDead(high)) continue;
      world.isend(high, low, ABANDONED_CTX, tag, bytes, sync, true);
      report.messages++;
    } else if (faultsLeft > 0 && prng.chance(1, 2)) {
      faultsLeft--;
      injectFault(world, prng, prng.pick(kinds), report);
    } else world.runFor(prng.pick([0.05, 0.5, 2, 20, 100]));
  }
  world.runFor(prng.pick([1, 50, 600]));
  world.oracle.checkUnchanged();

  // --- the survivors come to an end
  over = true;
  world.healAll();
  receiveAll(
    world,
    posted,
    Array.from({ length: contexts }, (_, ctx) => ctx),
  );
  world.mustFinish(120_000);
  world.mustFinalize(60_000);

  report.events = world.events;
  report.virtualMs = world.nowMs;
  report.counters = sumCounters(world);
  report.traceHash = world.hash.hex;
  return report;
}

/** Takes what is there, and what comes, until every send of a survivor has ended: what a dead rank has sent may never come. */
export function receiveAll(world: World, posted: readonly PostedReceive[], contexts: readonly number[]): void {
  const isOpen = (receive: PostedReceive) => receive.matched === undefined && !receive.done && !receive.cancelled;
  world.runFor(50);
  for (const receive of posted) if (isOpen(receive) && !world.isDead(receive.rank)) world.cancel(receive);
  const isDone = () => {
    let took = false;
    for (const { rank } of world.processes) {
      if (world.isDead(rank)) continue;
      for (const ctx of contexts) while (world.mprobeRecv(rank, ANY, ctx, ANY) !== undefined) took = true;
    }
    return !took && world.oracle.isFinished;
  };
  // What arrived last may still lie in front of what is taken: until nothing has come for a while.
  for (let quiet = 0; quiet < 3; ) {
    if (!world.runUntil(isDone, 120_000)) return;
    const before = world.oracle.matches;
    world.runFor(500);
    quiet = isDone() && world.oracle.matches === before ? quiet + 1 : 0;
  }
}
