// Random runs with faults at exact moments: they strike when a frame of a chosen kind leaves or arrives, often several times in a row
// within one recovery, while other rails stop. Rare protocol situations (a second RESTARTACK, a half received fragment on a living rail, a
// NOTIFY twice) come up often. Every message has its receive, so the end is simple.
import { PACKET, PACKET_NAMES } from '../../src/pml/hdr.ts';
import { ANY } from '../../src/pml/match.ts';
import { Prng } from '../../src/util/prng.ts';
import type { Fabric, PacketFilter, RailSpec, SimLink } from './fabric.ts';
import type { CutFate } from './pipe.ts';
import { healthParams, SCENARIO_PARAMS } from './scenario.ts';
import { type SwarmOptions, type SwarmReport, sumCounters, watchersOf } from './swarm.ts';
import { World } from './world.ts';

/** What may strike at a frame, each with a sentence. */
export const STRIKES = {
  cutLose: 'The rail is cut and the frame lost.',
  cutPass: 'The rail is cut, the frame arrives, its count does not.',
  cutHalf: 'The rail is cut; a random part of what travels arrives.',
  cutBlind: 'The rail is cut, and one side does not notice by itself.',
  allDown: 'Every rail between the two is cut.',
  stall: 'The rail stands still for a while, in the middle of the frame if it has several pieces.',
  hole: 'This direction loses everything from now on.',
  refuse: 'The payload (or, without one, the header) arrives damaged.',
  pause: 'The receiving process gets no turn for a while.',
} as const;
export type Strike = keyof typeof STRIKES;

export const TARGETS: readonly PacketFilter[] = [
  { type: PACKET.MATCH },
  { type: PACKET.RNDV },
  { type: PACKET.RGET },
  { type: PACKET.ACK },
  { type: PACKET.FRAG },
  { type: PACKET.FRAG },
  { type: PACKET.PUT },
  { type: PACKET.FIN },
  { kind: 'put' },
  { kind: 'putAck' },
  { kind: 'get' },
  { kind: 'getData' },
  { type: PACKET.CREDIT },
  { kind: 'bye' },
];
export const RECOVERY: readonly PacketFilter[] = [
  { type: PACKET.RNDVRESTARTNOTIFY },
  { type: PACKET.RNDVRESTARTACK },
  { type: PACKET.RNDVRESTARTNACK },
  { type: PACKET.RECVERRNOTIFY },
  { type: PACKET.RAILDOWN },
  { type: PACKET.FRAG },
  { type: PACKET.MATCH },
  { type: PACKET.FIN },
  { kind: 'helloOk' },
];

/** How long a fault that nothing else ends lasts at most while the job ends. */
const CLOSING_US_MAX = 400_000;

export function runStress(seed: number, options: SwarmOptions = {}): SwarmReport {
  const prng = new Prng(seed).split('stress');
  const transfer = prng.pick(['copy', 'copy', 'put', 'get', 'mixed'] as const);
  const count = prng.pick([2, 2, 3, 3, 5]);
  const siblings = prng.chance(1, 6);
  const rails: Partial<RailSpec>[] = [];
  for (let i = 0; i < count; i++) {
    rails.push({
      bytesPerMs: prng.pick([500, 2000, 20_000]),
      latencyUs: prng.between(20, 400),
      jitterUs: prng.pick([0, 100]),
      cellBytesMax: prng.pick([128, 512]),
      cellsMax: 1,
      liveness: siblings ? 'siblings' : 'self',
      detectUsMin: 200,
      detectUsMax: prng.pick([500, 5000, 30_000]),
      canPut: transfer === 'put' || (transfer === 'mixed' && prng.chance(1, 2)),
      canGet: transfer === 'get' || (transfer === 'mixed' && prng.chance(1, 2)),
      lateOneSidedUsMax: prng.pick([0, 20_000]),
    });
  }
  const params: Record<string, string> = {
    ...SCENARIO_PARAMS,
    ...healthParams(seed),
    bml_redial_min_ms: prng.pick(['1', '10']),
    bml_redial_max_ms: '20',
  };
  if (prng.chance(1, 4)) params.pml_unexpected_bytes_max = '65536';
  if (prng.chance(1, 2)) params.bml_connect_timeout_ms = '20';
  const world = new World({
    seed,
    ranks: 2,
    rails,
    params,
    ...watchersOf(options),
  });
  const { fabric } = world;
  const faults: Record<string, number> = {};
  const text: string[] = [];
  let healed = false;
  let closing = false;
  const heal = (link: SimLink) => {
    for (const rank of [link.low, link.high]) fabric.onlyOtherSideNotices(link, rank, false);
    fabric.mend(link);
    // A side that was blind until now finds out what it missed, as in World.healAll (B7: no rail stays blind).
    fabric.armDetection(link, 'silent', 'the other side has ended this epoch');
  };
  const arm = (filter: PacketFilter) => {
    const strike = prng.pick(Object.keys(STRIKES) as Strike[]);
    const nth = prng.pick([1, 1, 2, 3, 6]);
    const times = prng.pick([1, 1, 1, 2, 4]);
    const piece = prng.pick(['first', 'inner', 'last', undefined] as const);
    const hasPieces = filter.type === PACKET.FRAG || filter.type === PACKET.MATCH || filter.kind === 'put' || filter.kind === 'getData';
    const full: PacketFilter = {
      ...filter,
      stage: strike === 'refuse' || prng.chance(1, 4) ? 'leave' : 'arrive',
      ...(hasPieces && piece !== undefined && strike !== 'refuse' ? { piece } : {}),
    };
    const draw = prng.split(`strike ${text.length}`);
    text.push(`${strike} at ${filter.kind ?? PACKET_NAMES[filter.type ?? 0]} ${nth}${times > 1 ? `x${times}` : ''}`);
    fabric.onPacket(full, ({ stage, link, to, item }, hit) => {
      if (healed || hit < nth || hit >= nth + times) return 'pass';
      faults[strike] = (faults[strike] ?? 0) + 1;
      // While the job ends, the strikes go on, and one may make a side blind after its link was healed: that, too, has an end.
      if (closing && strike === 'cutBlind') fabric.at(fabric.nowUs + CLOSING_US_MAX, () => heal(link));
      return struck(fabric, draw, strike, stage, link, to, item);
    });
  };
  for (let i = prng.between(1, 3); i > 0; i--) arm(prng.pick(TARGETS));
  for (let i = prng.between(0, 3); i > 0; i--) arm(prng.pick(RECOVERY));

  // --- traffic
  if (prng.chance(2, 3)) world.runFor(5);
  const bytesOf = () => prng.pick([0, 40, 900, 1024, 1025, 3000, 6000, 12_000, 12_000]);
  const late: (() => void)[] = [];
  const messages = params.pml_unexpected_bytes_max === '65536' ? prng.between(70, 110) : prng.between(1, 12);
  for (let i = 0; i < messages; i++) {
    const source = prng.chance(1, 4) ? 1 : 0;
    const post = () => void world.irecv(1 - source, source, 0, prng.chance(1, 2) ? ANY : 0, prng.chance(1, 12) ? prng.below(2000) : 12_000);
    if (messages < 20 && prng.chance(2, 3)) post();
    else late.push(post);
    world.isend(source, 1 - source, 0, 0, messages > 20 ? prng.pick([900, 900, 2000]) : bytesOf(), prng.chance(1, 8));
    if (prng.chance(1, 4)) world.runFor(prng.pick([0.2, 2, 10]));
  }
  world.runFor(prng.pick([1, 30, 200]));
  for (const post of late) post();
  world.runFor(prng.pick([5, 100, 800]));
  world.oracle.checkUnchanged();
  const finalizeBroken = prng.chance(1, 8);
  if (!finalizeBroken) {
    healed = true;
    world.healAll();
  }
  if (finalizeBroken) {
    // The end of the job, too, goes over rails that fail and come back one by one.
    closing = true;
    for (const link of fabric.links()) fabric.at(fabric.nowUs + prng.between(1, CLOSING_US_MAX), () => heal(link));
  }
  world.mustFinish(120_000);
  world.mustFinalize(60_000);

  return {
    seed,
    ranks: 2,
    rails: count,
    messages,
    faults: faults as SwarmReport['faults'],
    events: world.events,
    virtualMs: world.nowMs,
    counters: sumCounters(world),
    traceHash: world.hash.hex,
    description: `rails ${count} ${transfer}${siblings ? ' siblings' : ''}, ${messages} messages, strikes: ${text.join('; ')}`,
  };
}

export function struck(
  fabric: Fabric,
  draw: Prng,
  strike: Strike,
  stage: 'leave' | 'arrive',
  link: SimLink,
  to: number,
  item: { kind: string; headerDamaged?: boolean; payloadDamaged?: boolean; chunk?: Uint8Array; header?: Uint8Array | null },
): 'pass' | 'lose' {
  // What is leaving stands ahead of all that waits behind it: with it lost or under way, nothing behind it may arrive.
  const fates: readonly CutFate[] = stage === 'leave' ? ['lost'] : ['lost', 'delivered', 'half'];
  const mendUs = draw.pick([1000, 10_000, 60_000]);
  const mend = (each: SimLink) => fabric.at(fabric.nowUs + mendUs, () => fabric.mend(each));
  switch (strike) {
    case 'cutLose':
      fabric.cut(link);
      mend(link);
      return 'lose';
    case 'cutPass':
      fabric.cut(link, { inFlight: draw.pick(fates.slice(0, 2)) });
      mend(link);
      return 'pass';
    case 'cutHalf':
      fabric.cut(link, { inFlight: fates[fates.length - 1] });
      mend(link);
      return 'pass';
    case 'cutBlind': {
      const rank = draw.pick([link.low, link.high]);
      // Never both: a loss that nobody can notice is not one that a rail may have (B7).
      fabric.onlyOtherSideNotices(link, rank === link.low ? link.high : link.low, false);
      fabric.onlyOtherSideNotices(link, rank);
      fabric.cut(link, { inFlight: draw.pick(fates) });
      mend(link);
      return draw.pick(['lose', 'pass'] as const);
    }
    case 'allDown':
      for (const each of fabric.links()) {
        fabric.cut(each, { inFlight: draw.pick(fates) });
        mend(each);
      }
      return draw.pick(['lose', 'pass'] as const);
    case 'stall':
      fabric.stall(link, draw.pick([link.low, link.high]), draw.pick([500, 5000, 40_000]));
      return 'pass';
    case 'hole':
      fabric.blackhole(link, draw.pick([link.low, link.high]), { lossy: draw.chance(1, 2) });
      mend(link);
      return draw.pick(['lose', 'pass'] as const);
    case 'refuse':
      if (item.kind !== 'cell') return 'pass';
      if (item.chunk !== undefined && item.chunk.length > 0) {
        item.payloadDamaged = true;
        item.chunk[0] ^= 0x20;
      } else if (item.header) {
        item.headerDamaged = true;
        item.header[2] ^= 0x20;
      }
      return 'pass';
    case 'pause':
      fabric.pause(to);
      fabric.at(fabric.nowUs + draw.pick([1000, 20_000, 500_000]), () => fabric.resume(to));
      return 'pass';
  }
}
