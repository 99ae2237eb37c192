// An impaired path of the simulator: what it does to a stream, and the judgement of gaps.
import { describe, expect, it } from 'vitest';
import { Bounded, type Impairment, REAL_RAIL } from '../../../tools/sim/bounded.ts';
import { ALLOWANCE_MS, GAP_MAX_MS, GapWatch } from '../../../tools/sim/gaps.ts';
import type { SentMessage } from '../../../tools/sim/oracle.ts';
import { World } from '../../../tools/sim/world.ts';

/** One rail, so that nothing goes another way; the parameters leave it alone while it is bad. */
function oneRail(rail = REAL_RAIL): World {
  const params = { bml_rail_timeout_ms: '60000', bml_probe_idle_ms: '60000' };
  const world = new World({ seed: 1, ranks: 2, rails: [{ ...rail, liveness: 'siblings' }], params });
  expect(world.runUntil(() => world.allUp, 1000)).toBe(true);
  return world;
}

/** How long a message takes that is sent now. */
function timeOf(world: World, bytes: number): number {
  const fromMs = world.nowMs;
  const receive = world.irecv(1, 0, 0, 0, bytes);
  world.isend(0, 1, 0, 0, bytes);
  expect(world.runUntil(() => receive.done, 60_000)).toBe(true);
  return world.nowMs - fromMs;
}

describe('an impaired path', () => {
  it('holds what is sent in the dark until the time-out after the light, which doubles', () => {
    for (const [darkMs, expectedMs] of [
      [50, 200],
      [250, 600],
      [700, 1400],
    ]) {
      const world = oneRail();
      const link = world.fabric.link(0, 1, 0);
      world.fabric.impair(link, 0, { dark: true });
      world.fabric.at(world.fabric.nowUs + darkMs * 1000, () => world.fabric.impair(link, 0, { dark: false }));
      const ms = timeOf(world, 64);
      expect(ms).toBeGreaterThanOrEqual(expectedMs);
      expect(ms).toBeLessThan(expectedMs + 5);
      world.mustFinish(1000);
      world.mustFinalize(10_000);
    }
  });

  it('lets go right after the light where what follows tells of the loss', () => {
    const world = oneRail();
    const link = world.fabric.link(0, 1, 0);
    world.fabric.impair(link, 0, { dark: true, missesAtOnce: true });
    world.fabric.at(world.fabric.nowUs + 50_000, () => world.fabric.impair(link, 0, { dark: false }));
    const ms = timeOf(world, 64);
    expect(ms).toBeGreaterThanOrEqual(50);
    expect(ms).toBeLessThan(52);
  });

  it('carries no more than its rate, from the moment at which it falls until it rises again', () => {
    const world = oneRail();
    const link = world.fabric.link(0, 1, 0);
    // 60,000 bytes at 100 a millisecond are 600 ms; after 300 ms the rest goes at once.
    world.fabric.impair(link, 0, { bytesPerMs: 100 });
    world.fabric.at(world.fabric.nowUs + 300_000, () => world.fabric.impair(link, 0, { bytesPerMs: Number.POSITIVE_INFINITY }));
    const ms = timeOf(world, 60_000);
    expect(ms).toBeGreaterThanOrEqual(300);
    expect(ms).toBeLessThan(303);
  });

  it('stops for time-outs where packets are lost, and loses nothing', () => {
    const world = oneRail();
    world.fabric.impair(world.fabric.link(0, 1, 0), 0, { lossPer10k: 5000 });
    const times = Array.from({ length: 20 }, () => timeOf(world, 64));
    expect(times.some((ms) => ms >= 200)).toBe(true);
    expect(times.some((ms) => ms < 5)).toBe(true);
    world.healAll();
    world.mustFinish(1000);
    world.mustFinalize(10_000);
  });

  it('takes attempts to connect with it, and the end of a connection is said again', () => {
    const world = new World({ seed: 1, ranks: 2, rails: [{ ...REAL_RAIL, liveness: 'siblings' }] });
    const link = world.fabric.link(0, 1, 0);
    world.fabric.impair(link, 0, { dark: true });
    world.runFor(3000);
    expect(world.allUp).toBe(false);
    world.fabric.impair(link, 0, { dark: false });
    expect(world.runUntil(() => world.allUp, 5000)).toBe(true);
    world.mustFinalize(10_000);
  });
});

describe('gaps', () => {
  function watched() {
    let nowMs = 0;
    let pausedRank = -1;
    const breaches: string[] = [];
    const gaps = new GapWatch({
      isPaused: (rank) => rank === pausedRank,
      nowMs: () => nowMs,
      healthyRate: () => 1000,
      breach: (text) => {
        breaches.push(text);
        throw new Error(text);
      },
    });
    const at = (ms: number): void => {
      nowMs = ms;
    };
    const message = (bytes: number, ctx = 0) => ({ source: 0, dest: 1, ctx, bytes }) as SentMessage;
    const pause = (rank: number): void => {
      pausedRank = rank;
    };
    return { gaps, breaches, message, at, pause };
  }

  it('a gap begins with the first message that is outstanding, or with the last delivery', () => {
    const { gaps, message, at } = watched();
    const [first, second] = [message(64), message(64)];
    at(1000);
    gaps.sent(first);
    at(1100);
    gaps.sent(second);
    at(1140);
    gaps.delivered(first);
    at(1280);
    gaps.delivered(second);
    at(5000);
    gaps.look();
    expect(gaps.worstMs).toBe(140);
  });

  it('what comes before its turn is no delivery', () => {
    const { gaps, message, at } = watched();
    const [first, second] = [message(64), message(64)];
    gaps.sent(first);
    gaps.sent(second);
    at(100);
    gaps.delivered(second);
    at(GAP_MAX_MS + ALLOWANCE_MS + 1);
    expect(() => gaps.delivered(first)).toThrow('I13');
  });

  it('a flow of its own that goes on is one', () => {
    const { gaps, message, at } = watched();
    const [stuck, first, second] = [message(64, 0), message(64, 1), message(64, 1)];
    for (const each of [stuck, first, second]) gaps.sent(each);
    at(100);
    gaps.delivered(first);
    at(200);
    gaps.delivered(second);
    at(300);
    gaps.look();
    expect(gaps.worstMs).toBe(100);
  });

  it('begins from the start when a process that computed polls again', () => {
    const { gaps, message, at, pause } = watched();
    gaps.sent(message(64));
    pause(1);
    at(2000);
    gaps.look();
    pause(-1);
    gaps.resumed(1);
    at(2000 + GAP_MAX_MS + ALLOWANCE_MS);
    gaps.look();
    at(2000 + GAP_MAX_MS + ALLOWANCE_MS + 1);
    expect(() => gaps.look()).toThrow('I13');
  });

  it('the bound grows with the longest message that is outstanding, and what never comes breaks it, too', () => {
    const { gaps, breaches, message, at } = watched();
    gaps.sent(message(50_000));
    gaps.sent(message(10));
    at(GAP_MAX_MS + ALLOWANCE_MS + 50);
    gaps.look();
    at(GAP_MAX_MS + ALLOWANCE_MS + 51);
    expect(() => gaps.look()).toThrow('may pass (messages of up to 50000 bytes');
    expect(breaches).toHaveLength(1);
  });
});

describe('a bounded run', () => {
  const play = (impairment: Impairment | undefined): Bounded => {
    const run = new Bounded({ seed: 7, ranks: 2, rails: [REAL_RAIL], healthy: [0], messagesMax: 50, bytesMax: 50_000 });
    run.each(0, 1, 64, 1000);
    const link = run.world.fabric.link(0, 1, 0);
    if (impairment !== undefined) run.impair([{ link, from: [0] }], impairment, 5000, 400_000);
    run.play(2000);
    return run;
  };

  it('sends what it was told to, and has no gap where nothing is bad', () => {
    const run = play(undefined);
    expect(run.messages).toBe(50);
    expect(run.deliveredBytes).toBe(50 * 64);
    expect(run.wastedBytes).toBe(0);
    expect(run.gaps.worstMs).toBeLessThan(1);
  });

  it('finds the gap where the rail that it is told is healthy is not, and says what was done', () => {
    for (const impairment of [
      { kind: 'dark', missesAtOnce: true },
      { kind: 'flap', periodUs: 100_000, darkUs: 90_000, missesAtOnce: false },
      { kind: 'delay', extraUs: 300_000 },
      { kind: 'slow', bytesPerMs: 0.1 },
    ] as const) {
      expect(() => play(impairment), impairment.kind).toThrow(/I13: nothing was delivered from rank 0 to rank 1.*the gap begins/s);
    }
  });
});
