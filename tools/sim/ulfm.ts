// One random run of failures, revocation and agreement: programs that agree, shrink, replace and revoke on 2 to 16 processes (sometimes more),
// traffic between, rails that fail, and processes that die at any time, between two messages, or when a frame or a service message of
// a chosen kind leaves or arrives. Then nobody dies any more and rails are healed: everything that was called must end, every
// death must be known, and everybody leaves.
import { OFFSET, PACKET } from '../../src/pml/hdr.ts';
import { OPERATION, type Operation } from '../../src/ulfm/values.ts';
import { SERVICE, SERVICE_NAMES } from '../../src/ulfm/wire.ts';
import { Prng } from '../../src/util/prng.ts';
import { receiveAll } from './death.ts';
import type { PacketSighting, RailSpec } from './fabric.ts';
import { OracleError } from './oracle.ts';
import { SCENARIO_PARAMS } from './scenario.ts';
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
import { DETECTORS, type Detector, FIRST_ID, SERVICE_CTX, UlfmWorld } from './ulfm-world.ts';

/** Virtual time within which all must end once it is quiet. */
const QUIET_MS = 120_000;
/** So late most programs are over. */
const LATE_US = 500_000;
const KINDS: readonly number[] = Object.values(SERVICE);

interface Play {
  readonly prng: Prng;
  readonly world: UlfmWorld;
  readonly report: SwarmReport;
  readonly text: string[];
}

function drawRails(prng: Prng, ranks: number): Partial<RailSpec>[] {
  const count = ranks > 8 ? prng.pick([1, 1, 2]) : prng.pick([1, 2, 2, 3]);
  const siblings = count > 1 && prng.chance(1, 4);
  const oneSided = prng.chance(1, 4);
  return Array.from({ length: count }, () => ({
    bytesPerMs: prng.pick([500, 2000, 20_000, 200_000]),
    latencyUs: prng.between(5, 500),
    jitterUs: prng.pick([0, 0, 20, 200]),
    cellBytesMax: prng.pick([128, 512]),
    cellsMax: prng.between(1, 3),
    liveness: siblings ? 'siblings' : 'self',
    detectUsMin: 200,
    detectUsMax: prng.pick([1000, 20_000, 200_000]),
    canPut: oneSided,
    canGet: oneSided && prng.chance(1, 2),
  }));
}

/** The kind of service message of a frame that begins one; undefined for any other frame. */
function serviceTypeOf(world: UlfmWorld, { header, type, from, to }: PacketSighting): number | undefined {
  if (header === null || (type !== PACKET.MATCH && type !== PACKET.RNDV && type !== PACKET.RGET)) return undefined;
  const view = new DataView(header.buffer, header.byteOffset, header.length);
  return view.getUint32(OFFSET.ctx, true) === SERVICE_CTX ? world.typeOf(from, to, view.getUint32(OFFSET.seq, true)) : undefined;
}

/** Somebody dies, or a rail ends, when the `nth` service message of that kind leaves or arrives. */
function armService({ prng, world, report, text }: Play, what: 'death' | 'cut'): void {
  const { fabric } = world.world;
  const kind = prng.pick(KINDS);
  const stage = prng.pick(['leave', 'arrive'] as const);
  const isSender = prng.chance(1, 2);
  const host = prng.pick(['up', 'up', 'down'] as const);
  // What has not left does not arrive without its beginning.
  const inFlight = stage === 'leave' ? 'lost' : prng.pick(['lost', 'delivered', 'half'] as const);
  const nth = prng.pick([1, 1, 2, 3, 5, 8, 13]);
  const mendUs = prng.pick([0, 2000, 30_000, 400_000]);
  let seen = 0;
  text.push(`${what} of ${isSender ? 'the sender' : 'the receiver'} at ${SERVICE_NAMES[kind]} ${nth}, ${stage}`);
  fabric.onPacket({ stage, kind: 'cell', piece: 'first' }, (sighting) => {
    if (serviceTypeOf(world, sighting) !== kind || ++seen !== nth || world.isQuiet) return undefined;
    if (what === 'death') {
      world.kill(isSender ? sighting.from : sighting.to, host);
      return 'pass';
    }
    report.faults.serviceCut = (report.faults.serviceCut ?? 0) + 1;
    for (const link of fabric.links({ between: [sighting.from, sighting.to] })) {
      if (link !== sighting.link && isSender) continue;
      fabric.cut(link, { inFlight });
      fabric.at(fabric.nowUs + mendUs, () => fabric.mend(link));
    }
    return 'pass';
  });
}

function armDeath(play: Play): void {
  const { prng, world, text } = play;
  const { fabric } = world.world;
  const { ranks, members } = world.options;
  const host = prng.pick(['up', 'up', 'down'] as const);
  const number = prng.chance(1, 2) ? prng.below(Math.min(3, members)) : prng.below(ranks);
  switch (prng.pick(['time', 'between', 'between', 'service', 'service', 'service', 'frame', 'declared'] as const)) {
    case 'time': {
      const us = prng.below(prng.pick([500, 5000, 50_000, 200_000]));
      text.push(`${number} dies after ${us} us`);
      return world.at(us, () => world.kill(number, host));
    }
    case 'between': {
      const count = prng.below(prng.pick([members, 4 * members, 12 * members]));
      text.push(`${number} dies before its message ${count}`);
      world.processes[number].sendsLeft = count;
      return;
    }
    case 'service':
      return armService(play, 'death');
    case 'frame': {
      const filter = prng.pick(prng.chance(1, 4) ? RECOVERY : TARGETS);
      const stage = prng.pick(['leave', 'arrive'] as const);
      const isSender = prng.chance(1, 2);
      const nth = prng.pick([1, 2, 3, 8, 20]);
      text.push(`the ${isSender ? 'sender' : 'receiver'} dies at frame ${filter.kind ?? filter.type} ${nth}, ${stage}`);
      fabric.onPacket({ ...filter, stage }, ({ from, to }, hit) => {
        if (hit === nth) world.kill(isSender ? from : to, host);
        return 'pass';
      });
      return;
    }
    case 'declared': {
      const us = prng.below(prng.pick([500, 50_000]));
      text.push(`${number} is declared dead after ${us} us`);
      return world.at(us, () => world.declare(number));
    }
  }
}

/** Processes join at some time, at a service message of some kind, or some time after a death, as when a launcher starts them in its place. */
function armJoins(play: Play, joiners: number): void {
  const { world, text } = play;
  const prng = play.prng.split('when joins');
  const { fabric } = world.world;
  for (let i = 0; i < joiners; i++) {
    switch (prng.pick(['time', 'service', 'death', 'death'] as const)) {
      case 'time': {
        const us = prng.below(prng.pick([500, 5000, 50_000, 200_000]));
        text.push(`one joins after ${us} us`);
        world.at(us, () => world.joinJob());
        break;
      }
      case 'service': {
        const kind = prng.pick(KINDS);
        const stage = prng.pick(['leave', 'arrive'] as const);
        const nth = prng.pick([1, 1, 2, 3, 5, 8]);
        let seen = 0;
        text.push(`one joins at ${SERVICE_NAMES[kind]} ${nth}, ${stage}`);
        fabric.onPacket({ stage, kind: 'cell', piece: 'first' }, (sighting) => {
          if (serviceTypeOf(world, sighting) === kind && ++seen === nth) world.at(0, () => world.joinJob());
          return 'pass';
        });
        break;
      }
      case 'death': {
        const us = prng.pick([0, 300, 20_000, 100_000]);
        text.push(`one joins ${us} us after each death`);
        world.onDeath.push(() => world.at(us, () => world.joinJob()));
        break;
      }
    }
  }
}

/** One or two members revoke the first communicator when so many messages have been sent on it, or a frame of one of them is on its way. */
function armRevocation({ prng, world, report, text }: Play): void {
  const { fabric } = world.world;
  const { members } = world.options;
  const isLate = prng.split('late').chance(1, 2);
  const revoke = () => world.revoke(prng.pick(world.processes.slice(0, members)), FIRST_ID);
  for (let sends = prng.between(2, 16); sends > 0; sends--) if (world.sendSomething(prng, prng.between(1, 12_000))) report.messages++;
  for (let times = prng.between(1, 2); times > 0; times--) {
    if (prng.chance(1, 2)) {
      const us = prng.below(prng.pick([1, 300, 5000]));
      text.push(`revoked after ${us} us${isLate ? ', late' : ''}`);
      // Behind the last agreement nothing else tells anybody of the revocation.
      world.at(isLate ? LATE_US + us : us, revoke);
      continue;
    }
    const filter = prng.pick(prng.chance(1, 6) ? RECOVERY : TARGETS);
    const stage = prng.pick(['leave', 'arrive'] as const);
    const nth = prng.pick([1, 2, 3, 8]);
    text.push(`revoked at frame ${filter.kind ?? filter.type} ${nth}, ${stage}`);
    fabric.onPacket({ ...filter, stage }, (_sighting, hit) => {
      // Not in the middle of a turn of an engine.
      if (hit === nth && !world.isQuiet) world.at(0, revoke);
      return 'pass';
    });
  }
}

function drawPrograms({ prng, world }: Play, succeeds: boolean, hasJoins: boolean): void {
  const kinds = succeeds
    ? [OPERATION.AGREE]
    : hasJoins
      ? [OPERATION.AGREE, OPERATION.REPLACE_SOME, OPERATION.REPLACE_ALL, OPERATION.REPLACE_ALL]
      : [OPERATION.AGREE, OPERATION.AGREE, OPERATION.SHRINK, OPERATION.SHRINK, OPERATION.REPLACE_SOME, OPERATION.REPLACE_ALL];
  const operations: Operation[] = Array.from({ length: prng.between(1, 4) }, () => prng.pick(kinds));
  const recoveries: Operation[] = Array.from({ length: prng.pick(succeeds ? [0, 1, 1, 2] : [0, 0, 1, 2]) }, () =>
    succeeds ? OPERATION.REPLACE_SOME : OPERATION.AGREE,
  );
  for (const process of world.processes.slice(0, world.options.members)) world.program(process, operations, recoveries);
}

export function runUlfm(seed: number, options: SwarmOptions = {}): SwarmReport {
  const prng = new Prng(seed).split('ulfm');
  // Somebody revokes, while messages are under way, and most members are not next to it in the ring.
  const isAboutRevocation = prng.chance(1, 5);
  const members = isAboutRevocation
    ? prng.pick([3, 5, 7, 8, 9, 12])
    : prng.chance(1, 40)
      ? prng.between(17, 24)
      : prng.pick([2, 3, 3, 3, 4, 4, 5, 6, 7, 8, 9, 12, 16]);
  const succeeds = members <= 9 && prng.chance(1, 4);
  const spares = succeeds || prng.chance(1, 2) ? prng.between(1, 3) : 0;
  const joinPrng = prng.split('joins');
  const rails = drawRails(prng.split('rails'), members + spares);
  // Whoever leaves early has no traffic of its own.
  const leavesEarly = prng.chance(1, 4) && !isAboutRevocation;
  const detector = prng.pick(Object.keys(DETECTORS) as Detector[]);
  // Only a server gives numbers.
  const isServed = detector === 'server' || detector === 'dyingServer';
  const joiners = isServed && !succeeds && !isAboutRevocation && joinPrng.chance(1, 2) ? joinPrng.between(1, 3) : 0;
  const ranks = members + spares + joiners;
  const params: Record<string, string> = { ...SCENARIO_PARAMS };
  // Messages of agreements take every path of the PML.
  if (prng.chance(1, 3)) params.pml_eager_limit_bytes = prng.pick(['0', '64']);
  if (prng.chance(1, 4)) params.pml_unexpected_bytes_max = '4096';
  if (prng.chance(1, 2)) params.bml_rail_timeout_ms = prng.pick(['50', '100']);
  const world = new UlfmWorld(prng.split('programs'), {
    seed,
    ranks,
    rails,
    params,
    members,
    detector,
    hostSize: prng.pick([1, 2, 2, 4, 8]),
    newsUs: prng.pick([[10], [10, 1000], [100, 1000, 20_000, 100_000], [50_000], [10, 300_000]]),
    serverDiesUs: prng.below(50_000),
    keepsDecisions: succeeds,
    joiners,
    mayWait: joiners > 0 && joinPrng.chance(2, 3),
    leavesEarly,
    ...watchersOf(options),
  });
  const report = newReport(seed, ranks, rails.length);
  const play: Play = { prng, world, report, text: [] };

  // --- faults
  const kinds = (Object.keys(FAULT_KINDS) as FaultKind[]).filter(() => prng.chance(1, 6));
  // Some begin when all rails carry, some while they are dialled.
  if (prng.chance(3, 4)) world.world.runUntil(() => world.world.allUp, 1000);
  for (let deaths = prng.pick(succeeds ? [0, 1, 1, 2] : [0, 0, 1, 1, 1, 2, 2, 3, members]); deaths > 0; deaths--) armDeath(play);
  if (prng.chance(1, 4)) armService(play, 'cut');
  armJoins(play, joiners);
  report.description = `members ${members}, spares ${spares}, ${joiners} that may join, rails ${rails.length}, word of deaths: ${detector}${leavesEarly ? ', leaves early' : ''}; ${play.text.join('; ') || 'no deaths'}; faults ${kinds.join(' ') || 'none'}`;
  options.trace?.(`0 seed ${seed}: ${report.description}`);
  drawPrograms(play, succeeds, joiners > 0);
  if (isAboutRevocation) armRevocation(play);
  else if (prng.chance(1, 3)) {
    const process = prng.pick(world.processes.slice(0, members));
    world.at(prng.below(prng.pick([100, 3000, 50_000])), () => world.revoke(process, prng.pick([...process.ids, FIRST_ID])));
  }
  let faultsLeft = kinds.length === 0 ? 0 : prng.between(0, 4);
  for (let steps = prng.between(5, 30); steps > 0; steps--) {
    if (faultsLeft > 0 && prng.chance(1, 6)) {
      faultsLeft--;
      injectFault(world.world, prng, prng.pick(kinds), report);
    } else if (!leavesEarly && prng.chance(2, 3)) {
      if (world.sendSomething(prng, drawBytes(prng))) report.messages++;
    } else world.world.runFor(prng.pick([0.05, 0.5, 2, 20]));
  }
  world.world.runFor(prng.pick([1, 50, 300]));
  world.world.oracle.checkUnchanged();

  finish(play);
  report.events = world.world.events;
  report.virtualMs = world.world.nowMs;
  report.faults.death = world.deaths;
  report.counters = {
    ...sumCounters(world.world),
    decisions: world.oracle.decisions,
    heldProposals: world.oracle.heldProposals,
    successors: world.oracle.successors,
    joins: world.oracle.joins,
    agreementMessages: world.agreementMessages,
  };
  report.traceHash = world.world.hash.hex;
  return report;
}

/** Quiet: everything must end, everybody must know, and leave. */
function finish({ world }: Play): void {
  const { world: sim, oracle } = world;
  world.isQuiet = true;
  sim.fabric.endFlaps();
  sim.healAll();
  world.rescueNews();
  if (!sim.runUntil(() => world.isFinished && world.isKnown, QUIET_MS)) {
    const open = [...oracle.unfinished(), ...world.unfinished];
    if (open.length > 0) throw new OracleError(`I18: ${open.length} did not end: ${open.slice(0, 8).join(', ')}`);
  }
  // What is under way on revoked communicators, and messages that nobody waits for, come to their end.
  sim.runFor(2000);
  oracle.checkEnd((number, id) => world.processes[number].ids.has(id));
  world.checkDeclared();
  world.checkRevoked();
  receiveAll(sim, world.posted, [...world.contexts]);
  sim.mustFinish(QUIET_MS);
  sim.mustFinalize(60_000);
}
