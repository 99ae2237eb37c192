// Which rail a frame goes to: the one that has it through first, and never a rail that would only keep others waiting.
import { describe, expect, test } from 'vitest';
import { bySoonest, type Candidate, finishMs, isWorth, rateOf } from '../../../src/bml/choice.ts';
import { FakeRails } from './fake-rails.ts';

const KiB = 1024;
/** What is outstanding in a test of marks. */
const HELD_BYTES = 1000;

/** A rail of that many Mbit/s that was measured, with so much outstanding. */
function rail(mbit: number, outstandingBytes = 0, more: Partial<Candidate> = {}): Candidate {
  return {
    endpoint: { outstandingBytes },
    attributes: { bandwidthMBps: 125 },
    isKnown: true,
    isMeasured: true,
    rate: mbit * 125,
    expectedRate: mbit * 125,
    roundTripMs: 0.1,
    markAliveMs: -1,
    usual: { meanMs: 1, deviationMs: 0, samples: 10 },
    avoided: { isSet: false },
    ...more,
  };
}

describe('the choice of a rail', () => {
  test('a rail that was not measured carries what its attributes say', () => {
    expect(rateOf(rail(8, 0, { isMeasured: false, expectedRate: 0 }))).toBe(125_000);
    expect(rateOf(rail(8))).toBe(1000);
  });

  test('the one that has a frame through first comes first, and one that is late last', () => {
    const [fast, slow] = [rail(1000, 125_000 * 8), rail(400, 50_000)];
    expect(finishMs(fast, 0, 0)).toBeCloseTo(8.1);
    expect(bySoonest([fast, slow], 64 * KiB, 0)).toEqual([slow, fast]);
    const late = rail(400, 50_000, { markAliveMs: 100 });
    expect(bySoonest([fast, late], 64 * KiB, 103)).toEqual([late, fast]);
    expect(bySoonest([fast, late], 64 * KiB, 110)).toEqual([fast, late]);
    const lossy = rail(1000, 0, { avoided: { isSet: true } });
    expect(bySoonest([lossy, rail(400)], 64 * KiB, 0)[1]).toBe(lossy);
    expect(bySoonest([lossy, rail(10, 125_000)], 64 * KiB, 0)[0]).toBe(lossy);
  });

  test('a slow rail is given something only where the faster ones need as long for all that is left', () => {
    const rails = [rail(1000, 1_000_000), rail(400, 400_000), rail(100)] as const;
    // 64 KiB need 5.2 ms at 100 Mbit/s; the others, with what they hold, 8 ms.
    expect(isWorth(rails, rails[2], 64 * KiB, 64 * KiB, 0)).toBe(true);
    const idle = [rail(1000), rail(400), rail(100)] as const;
    expect(isWorth(idle, idle[2], 64 * KiB, 64 * KiB, 0)).toBe(false);
    expect(isWorth(idle, idle[2], 64 * KiB, 1024 * KiB, 0)).toBe(true);
    const crawling = [rail(1000, 2_500_000), rail(1)] as const;
    expect(isWorth(crawling, crawling[1], 64 * KiB, 1024 * KiB, 0)).toBe(false);
    expect(isWorth(crawling, crawling[1], 8 * KiB, 16 * 1024 * KiB, 0)).toBe(true);
  });

  test('rails of about the same rate are never waited for, nor is one that is late', () => {
    const equal = [rail(400), rail(380)] as const;
    expect(isWorth(equal, equal[1], 128 * KiB, 128 * KiB, 0)).toBe(true);
    const late = [rail(1000, 64 * KiB, { markAliveMs: 0 }), rail(10)] as const;
    expect(isWorth(late, late[1], 64 * KiB, 64 * KiB, 2)).toBe(false);
    expect(isWorth(late, late[1], 64 * KiB, 64 * KiB, 20)).toBe(true);
    const unknown = [rail(1000, 0, { isKnown: false }), rail(10)] as const;
    expect(isWorth(unknown, unknown[1], 64 * KiB, 64 * KiB, 0)).toBe(true);
  });
});

describe('in the BML', () => {
  const two = (attributes = {}) => {
    const f = new FakeRails([attributes, attributes], { stallTimeoutMs: 60 });
    f.turn();
    f.up(0, 1);
    f.run(100);
    return f;
  };
  const mayTake = (f: FakeRails, rail: number, bytes: number) => f.bml.mayTake(f.peer.send, f.rails[rail], bytes, bytes);

  test('rails of which nothing is known are asked before they are given much, and the first one need not wait for that', () => {
    const f = two();
    expect(f.bml.isChosen(f.peer.send)).toBe(true);
    expect([mayTake(f, 0, 64 * KiB), mayTake(f, 1, 64 * KiB)]).toEqual([true, false]);
    expect([mayTake(f, 0, 4 * KiB), mayTake(f, 1, 4 * KiB)]).toEqual([true, true]);
    f.run(100);
    expect(f.rails.map(({ isKnown }) => isKnown)).toEqual([true, true]);
    expect(Math.min(...f.rails.map(({ counters }) => counters.paddingBytes))).toBeGreaterThanOrEqual(4 * KiB);
    expect(mayTake(f, 1, 64 * KiB)).toBe(true);
  });

  test('nobody is asked where the attributes say what rails carry, nor without the judgement', () => {
    const known = two({ startRateMBps: 100 });
    expect(mayTake(known, 1, 64 * KiB)).toBe(true);
    const off = new FakeRails([{}, {}]);
    off.turn();
    off.up(0, 1);
    expect(off.bml.isChosen(off.peer.send)).toBe(false);
    known.run(100);
    expect(known.rails.map(({ counters }) => counters.paddingBytes)).toEqual([0, 0]);
  });

  test('a rail that is too slow for what is left is asked now and then whether it still is', () => {
    const f = two({ startRateMBps: 100 });
    Object.assign(f.rails[1], { isMeasured: true, rate: 100 });
    expect(mayTake(f, 1, 64 * KiB)).toBe(false);
    f.run(30);
    expect(f.rails[1].counters.paddingBytes).toBeGreaterThan(0);
    expect(f.rails[1].rate).toBeGreaterThan(100);
  });

  test('short messages pass over a rail that was doubted, for a second, towards other peers too', () => {
    const f = two({ startRateMBps: 100 });
    expect(f.indexes(f.peer.eager)).toEqual([0, 1]);
    for (let left = 40; left > 0 && f.rails[0].state === 'UP'; left--) {
      f.endpoints[0].outstandingBytes = HELD_BYTES;
      f.endpoints[1].outstandingBytes = HELD_BYTES;
      for (const rail of f.rails) f.bml.handleSent(rail, f.nowMs);
      f.delivered(1, HELD_BYTES);
      f.turn(3);
    }
    expect(f.rails[0].state).toBe('SUSPECT');
    f.endpoints[0].outstandingBytes = 0;
    f.endpoints[1].outstandingBytes = 0;
    f.delivered(0, HELD_BYTES);
    f.turn();
    expect(f.states()).toBe('UP UP');
    expect(f.indexes(f.peer.eager)).toEqual([1, 0]);
    f.run(2500);
    expect(f.indexes(f.peer.eager)).toEqual([0, 1]);
  });
});
