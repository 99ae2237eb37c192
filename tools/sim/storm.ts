// Random runs in the worst weather: four to eight rails, one of them very slow, all of them cut within microseconds, again and again,
// flapping faster than anybody notices, recovery frames struck up to thirty times, credit of a few messages, messages of hundreds of
// fragments, one side paused, and peer timeouts that are short compared with all that. A peer may be given up, but only with a reason.
import { PACKET } from '../../src/pml/hdr.ts';
import { ANY } from '../../src/pml/match.ts';
import { Prng } from '../../src/util/prng.ts';
import type { RailSpec } from './fabric.ts';
import { SCENARIO_PARAMS } from './scenario.ts';
import { RECOVERY, STRIKES, type Strike, struck, TARGETS } from './stress.ts';
import { type SwarmOptions, type SwarmReport, sumCounters, watchersOf } from './swarm.ts';
import { World } from './world.ts';

/** What the weather consists of; a run has a random part of it. */
export const WEATHER = {
  allAtOnce: 'Every rail is cut within 3 us, up to four times.',
  recovery: 'Frames of the recovery are struck, up to thirty in a row.',
  flaps: 'Rails go down and come back faster than anybody notices.',
  pause: 'One side gets no turn for a while.',
  crawl: 'One rail carries 5 bytes per millisecond.',
  credit: 'Credit of 4 KiB.',
  long: 'Messages of hundreds of fragments.',
} as const;
type Weather = keyof typeof WEATHER;

export function runStorm(seed: number, options: SwarmOptions = {}): SwarmReport {
  const prng = new Prng(seed).split('storm');
  const ranks = prng.chance(1, 6) ? 3 : 2;
  const count = prng.between(4, 8);
  const has = new Set((Object.keys(WEATHER) as Weather[]).filter(() => prng.chance(1, 2)));
  const transfer = prng.pick(['copy', 'copy', 'put', 'get', 'mixed'] as const);
  const siblings = prng.chance(1, 3);
  const crawling = prng.below(count);
  const rails: Partial<RailSpec>[] = [];
  for (let i = 0; i < count; i++) {
    rails.push({
      bytesPerMs: has.has('crawl') && i === crawling ? 5 : prng.pick([500, 2000, 20_000, 200_000]),
      latencyUs: prng.between(10, 400),
      jitterUs: prng.pick([0, 100]),
      cellBytesMax: prng.pick([128, 512, 4096]),
      cellsMax: prng.between(1, 2),
      liveness: siblings || prng.chance(1, 8) ? 'siblings' : 'self',
      detectUsMin: 200,
      detectUsMax: prng.pick([1000, 20_000, 100_000]),
      canPut: transfer === 'put' || (transfer === 'mixed' && prng.chance(1, 2)),
      canGet: transfer === 'get' || (transfer === 'mixed' && prng.chance(1, 2)),
      lateOneSidedUsMax: prng.pick([0, 20_000]),
      busyPer10k: prng.pick([0, 0, 500]),
    });
  }
  const fragBytes = has.has('long') ? prng.pick([24, 48]) : prng.pick([256, 1024]);
  const params: Record<string, string> = {
    ...SCENARIO_PARAMS,
    bml_redial_min_ms: prng.pick(['1', '10']),
    bml_redial_max_ms: '20',
    bml_connect_timeout_ms: prng.pick(['20', '600']),
    bml_rail_timeout_ms: prng.pick(['20', '50', '400']),
    pml_peer_timeout_ms: prng.pick(['500', '2000', '600000']),
    ...(has.has('credit') ? { pml_unexpected_bytes_max: '4096' } : {}),
    // So much under way on each rail that half of it lost leaves more ranges missing than an answer can name.
    bml_window_min_bytes: prng.pick(['4096', '65536']),
  };
  const world = new World({
    seed,
    ranks,
    rails,
    params,
    fragBytes,
    ...watchersOf(options),
  });
  const { fabric } = world;
  const faults: Record<string, number> = {};
  const hit = (name: string) => {
    faults[name] = (faults[name] ?? 0) + 1;
  };
  const description = `ranks ${ranks}, rails ${count} ${transfer}${siblings ? ' siblings' : ''}, fragments of ${fragBytes}, ${[...has].join(' ') || 'fair'}`;
  options.trace?.(`0 seed ${seed}: ${description}`);
  let healed = false;

  const mendLater = (link: ReturnType<typeof fabric.links>[number], usMax: number) =>
    fabric.at(fabric.nowUs + prng.between(1, usMax), () => fabric.mend(link));
  const allAtOnce = () => {
    hit('allAtOnce');
    const spare = prng.chance(1, 3) ? prng.below(count) : -1;
    for (const link of fabric.links()) {
      if (link.linkNo === spare) continue;
      const inFlight = prng.pick(['lost', 'delivered', 'half'] as const);
      fabric.at(fabric.nowUs + prng.between(0, 3), () => {
        if (healed) return;
        fabric.cut(link, { inFlight });
        mendLater(link, prng.pick([2000, 30_000, 200_000]));
      });
    }
  };
  if (has.has('allAtOnce')) {
    for (let i = prng.between(1, 4); i > 0; i--) {
      if (prng.chance(1, 2)) fabric.at(prng.between(0, 60_000), () => (healed ? undefined : allAtOnce()));
      else {
        const nth = prng.pick([1, 2, 5, 20, 60]);
        fabric.onPacket({ ...prng.pick([...TARGETS, ...RECOVERY]), stage: 'arrive' }, (_, times) => {
          if (times === nth && !healed) allAtOnce();
          return 'pass';
        });
      }
    }
  }
  if (has.has('recovery')) {
    for (let i = prng.between(1, 3); i > 0; i--) {
      const filter = prng.pick(RECOVERY);
      const strike = prng.pick(Object.keys(STRIKES) as Strike[]);
      const times = prng.pick([1, 3, 10, 30]);
      const stage = strike === 'refuse' ? 'leave' : prng.pick(['leave', 'arrive'] as const);
      const draw = prng.split(`strike ${i}`);
      const nth = filter.type === PACKET.FRAG || filter.type === PACKET.MATCH ? draw.between(1, 40) : 1;
      fabric.onPacket({ ...filter, stage }, (sighting, seen) => {
        if (healed || seen < nth || seen >= nth + times) return 'pass';
        hit(strike);
        return struck(fabric, draw, strike, sighting.stage, sighting.link, sighting.to, sighting.item);
      });
    }
  }
  if (has.has('flaps')) {
    for (let i = prng.between(1, count); i > 0; i--) {
      const link = prng.pick(fabric.links());
      const [times, downUs, upUs] = [prng.between(2, 20), prng.between(20, 2000), prng.between(20, 4000)];
      const inFlight = prng.pick(['lost', 'delivered', 'half'] as const);
      fabric.at(prng.between(0, 40_000), () => {
        if (healed) return;
        hit('flaps');
        fabric.flap(link, times, downUs, upUs, { inFlight });
      });
    }
  }
  if (has.has('pause')) {
    const rank = prng.below(ranks);
    const us = prng.pick([5000, 100_000, 2_000_000]);
    fabric.at(prng.between(0, 40_000), () => {
      if (healed) return;
      hit('pause');
      fabric.pause(rank);
      fabric.at(fabric.nowUs + us, () => fabric.resume(rank));
    });
  }

  // --- traffic
  if (prng.chance(2, 3)) world.runFor(5);
  const messages = prng.between(2, has.has('long') ? 5 : 14);
  const late: (() => void)[] = [];
  for (let i = 0; i < messages; i++) {
    const source = prng.below(ranks);
    const dest = (source + 1 + prng.below(ranks - 1)) % ranks;
    const bytes = has.has('long') ? prng.pick([200, 2000, 8000, 12_000, 20_000]) : prng.pick([0, 40, 900, 1025, 3000, 12_000, 20_000]);
    const room = prng.chance(1, 12) ? prng.below(2000) : 20_000;
    const post = () => void world.irecv(dest, source, 0, prng.chance(1, 2) ? ANY : 0, room);
    if (prng.chance(2, 3)) post();
    else late.push(post);
    world.isend(source, dest, 0, 0, bytes, prng.chance(1, 8));
    if (prng.chance(1, 3)) world.runFor(prng.pick([0.2, 2, 10]));
  }
  world.runFor(prng.pick([1, 30, 200]));
  for (const post of late) post();
  world.runFor(prng.pick([5, 100, 800]));
  world.oracle.checkUnchanged();
  healed = true;
  world.healAll();
  // A peer that was given up sends nothing any more: what waits for it ends with it, if it is told so. Its own timeout tells it.
  world.mustFinish(300_000);
  world.mustFinalize(120_000);
  return {
    seed,
    ranks,
    rails: count,
    messages,
    faults: faults as SwarmReport['faults'],
    events: world.events,
    virtualMs: world.nowMs,
    counters: sumCounters(world),
    traceHash: world.hash.hex,
    description,
  };
}
