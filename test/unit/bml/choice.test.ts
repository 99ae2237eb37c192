// Which rail a frame goes to: the one that has it through first, and none that would only keep others waiting.
import { describe, expect, test } from 'vitest';
import { bySoonest, type Candidate, finishMs, isWorth, rateOf } from '../../../src/bml/choice.ts';

const KiB = 1024;

/** A rail of that many Mbit/s that was measured, with so much outstanding. */
function rail(mbit: number, outstandingBytes = 0, more: Partial<Candidate> = {}): Candidate {
  return {
    endpoint: { outstandingBytes },
    attributes: { bandwidthMBps: 125 },
    isMeasured: true,
    rate: mbit * 125,
    expectedRate: mbit * 125,
    roundTripMs: 0.1,
    markAliveMs: -1,
    usual: { meanMs: 1, deviationMs: 0, samples: 10 },
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
  });
});
