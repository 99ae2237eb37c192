// One random run in which rails are bad without being down, as networks mostly fail: of two to four rails at least one is healthy
// throughout; the others flap in silence, lose packets, fall to a thousandth of their rate, take 300 ms longer, one way or both, and get
// better again. Besides the oracle's demands on every run, no gap between two deliveries is above its bound, and not too much is sent again
// (bounded.ts).
import { Prng } from '../../src/util/prng.ts';
import { type BadLink, Bounded, IMPAIRMENTS, type Impairment, type ImpairmentKind, MBIT, REAL_RAIL } from './bounded.ts';
import type { RailSpec } from './fabric.ts';
import { type SwarmOptions, type SwarmReport, sumCounters, watchersOf } from './swarm.ts';

/** How the application sends, each with a sentence. */
export const TRAFFIC = {
  bulk: 'Long messages, up to 16 under way.',
  small: 'Messages of 64 bytes at 500 to 2000 a second.',
  pingPong: 'One message goes to and fro.',
  mixed: 'Long messages, and small ones between.',
  steady: 'A message of 4 KiB every 5 or 20 ms, for seconds.',
} as const;
export type Traffic = keyof typeof TRAFFIC;

/** Bytes of all messages of a run, and how many there are: simulating them is what a run costs. The most is 16 messages of 1 MiB. */
const MIB = 1024 * 1024;
const BYTES_MAX = [1, 1, 2, 2, 4] as const;
const MANY_BYTES = 16;
const MESSAGES_MAX = [50, 200, 400] as const;
/** Times that a rail gets bad, at most. */
const EPISODES_MAX = 3;
const RUN_MS_MAX = 6000;

export interface ImpairedReport extends SwarmReport {
  worstGapMs: number;
}

function drawRails(prng: Prng): Partial<RailSpec>[] {
  const count = prng.pick([2, 2, 2, 3, 4]);
  const liveness = prng.pick(['self', 'siblings'] as const);
  const oneSided = prng.chance(1, 8);
  return Array.from({ length: count }, () => ({
    ...REAL_RAIL,
    bytesPerMs: prng.pick([1000, 1000, 100]) * MBIT,
    latencyUs: prng.between(50, 200),
    jitterUs: prng.pick([0, 10, 50]),
    liveness,
    canPut: oneSided,
    canGet: oneSided,
  }));
}

function drawImpairment(prng: Prng): Impairment {
  const kind = prng.pick(Object.keys(IMPAIRMENTS) as ImpairmentKind[]);
  switch (kind) {
    case 'dark':
      return { kind, missesAtOnce: prng.chance(1, 2) };
    case 'flap': {
      const periodUs = prng.pick([10, 30, 60, 120, 200, 500, 1000, 2000]) * 1000;
      return { kind, periodUs, darkUs: (periodUs * prng.pick([2, 5, 5, 8])) / 10, missesAtOnce: prng.chance(1, 2) };
    }
    case 'loss':
      return { kind, lossPer10k: prng.pick([100, 500, 2000, 5000]) };
    case 'slow':
      return { kind, bytesPerMs: prng.pick([MBIT, 8]) };
    case 'delay':
      return { kind, extraUs: 300_000 };
    case 'swing':
      return { kind, maxUs: prng.pick([5000, 50_000, 300_000]), everyUs: prng.pick([5000, 20_000, 70_000]), prng: prng.split('swing') };
  }
}

/** For each rail that is not healthy: where it is bad, and a few impairments one after the other. */
function impairAll(run: Bounded, base: Prng): void {
  const { fabric, options } = run.world;
  const { ranks, rails } = options;
  for (let linkNo = 0; linkNo < rails.length; linkNo++) {
    if (run.healthy.includes(linkNo)) continue;
    const prng = base.split(`rail ${linkNo}`);
    const rank = prng.below(ranks);
    // All of a rail (its switch), what is plugged in at one rank, or one cable.
    const where = prng.pick([{ linkNo }, { linkNo, rank }, { linkNo, between: [rank, (rank + 1) % ranks] as const }]);
    const way = prng.pick(['both', 'both', 'up', 'down'] as const);
    const bad: BadLink[] = fabric
      .links(where)
      .map((link) => ({ link, from: way === 'both' ? [link.low, link.high] : way === 'up' ? [link.low] : [link.high] }));
    let inUs = prng.pick([1000, 5000, 80_000]) + prng.between(0, 20_000);
    for (let i = prng.between(1, EPISODES_MAX); i > 0; i--) {
      const forUs = prng.pick([20_000, 100_000, 300_000, 800_000, 2_500_000]) + prng.between(0, 50_000);
      run.impair(bad, drawImpairment(prng.split(`episode ${i}`)), inUs, forUs);
      inUs += forUs + prng.pick([0, 20_000, 300_000]) + prng.between(0, 30_000);
    }
  }
}

function startTraffic(run: Bounded, base: Prng): void {
  const { ranks } = run.world.options;
  for (let i = base.between(1, ranks === 2 ? 1 : 2); i > 0; i--) {
    const prng = base.split(i);
    const kind = prng.pick(Object.keys(TRAFFIC) as Traffic[]);
    const source = prng.below(ranks);
    const dest = (source + 1 + prng.below(ranks - 1)) % ranks;
    // Rails may be bad before anything goes over them.
    const inUs = prng.pick([0, 0, 0, 50_000, 200_000]);
    if (kind === 'bulk' || kind === 'mixed') {
      const depth = prng.pick([1, 2, 4, 16, 16]);
      // A pause before each next one makes few messages last for long.
      const pauseUsMax = prng.pick([0, 0, 10_000, 100_000]);
      const bytes = prng.pick([65_536, 262_144, 262_144, MIB]);
      run.bulk(source, dest, bytes, depth, inUs, () => prng.between(0, pauseUsMax));
    }
    if (kind === 'small' || kind === 'mixed') run.each(source, dest, 64, prng.pick([500, 500, 1000, 2000]), inUs);
    if (kind === 'steady') run.each(source, dest, 4096, prng.pick([5000, 20_000]), inUs);
    if (kind === 'pingPong') run.pingPong(source, dest, prng.pick([64, 4096, 65_536, 262_144]), prng.pick([0, 2000, 10_000]), inUs);
  }
}

export function runImpaired(seed: number, options: SwarmOptions = {}): ImpairedReport {
  const prng = new Prng(seed).split('impaired');
  const rails = drawRails(prng.split('rails'));
  const order = prng.shuffle(rails.map((_, linkNo) => linkNo));
  const run = new Bounded({
    seed,
    ranks: prng.pick([2, 2, 2, 3, 4]),
    rails,
    healthy: order.slice(0, prng.chance(2, 3) ? 1 : prng.between(1, rails.length - 1)),
    messagesMax: prng.pick(MESSAGES_MAX),
    bytesMax: (prng.chance(1, 16) ? MANY_BYTES : prng.pick(BYTES_MAX)) * MIB,
    ...watchersOf(options),
  });
  startTraffic(run, prng.split('traffic'));
  impairAll(run, prng.split('impair'));
  for (const line of run.words) options.trace?.(`0 seed ${seed}: ${line}`);
  run.play(RUN_MS_MAX);
  const { world, gaps } = run;
  return {
    seed,
    ranks: world.options.ranks,
    rails: rails.length,
    messages: run.messages,
    faults: run.faults,
    events: world.events,
    virtualMs: world.nowMs,
    counters: { ...sumCounters(world), deliveredBytes: run.deliveredBytes, wastedBytes: run.wastedBytes },
    traceHash: world.hash.hex,
    description: `${run.words.join('; ')}; worst gap ${gaps.worstMs.toFixed(1)} ms`,
    worstGapMs: gaps.worstMs,
  };
}
