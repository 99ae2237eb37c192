// The statistics of the bench with peers: which runs count, which are compared, what an interval says.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  acceptedRuns,
  bootstrapMedian,
  coreClass,
  judge,
  median,
  pairedRatios,
  type RunRecord,
  random,
  rejection,
  shuffled,
} from '../../../bench/lib/stats.mjs';

const run = (over: Partial<RunRecord> = {}): RunRecord => ({
  session: 's',
  round: 0,
  contender: 'a',
  attempt: 0,
  ok: true,
  foreign: 0,
  beforeNs: 50,
  afterNs: 50,
  cells: [{ metric: 'latency', size: 8, value: 4 }],
  ...over,
});
const latency = (value: number) => [{ metric: 'latency', size: 8, value }];
const pair = { subject: 'a', reference: 'b', metric: 'latency', size: 8 };

describe('median', () => {
  test('odd, even, none; numbers are not sorted as text', () => {
    expect(median([10, 9, 100])).toBe(10);
    expect(median([4, 1, 3, 2])).toBe(2.5);
    expect(median([])).toBeNaN();
  });

  test('leaves its argument as it is', () => {
    const values = [3, 1, 2];
    median(values);
    expect(values).toEqual([3, 1, 2]);
  });
});

describe('random', () => {
  test('the same seed gives the same numbers, another one others, all in [0, 1)', () => {
    const take = (seed: number) => {
      const next = random(seed);
      return Array.from({ length: 1000 }, next);
    };
    expect(take(7)).toEqual(take(7));
    expect(take(7)).not.toEqual(take(8));
    expect(take(7).every((value) => value >= 0 && value < 1)).toBe(true);
    // Uniform: the mean of 1000 such numbers is within 5 standard deviations (0.0091 each) of a half.
    expect(Math.abs(take(7).reduce((sum, value) => sum + value, 0) / 1000 - 0.5)).toBeLessThan(0.046);
  });

  test('shuffled keeps every element, and every place can be taken by every element', () => {
    const next = random(3);
    const first = new Set<string>();
    for (let i = 0; i < 200; i++) {
      const order = shuffled(['a', 'b', 'c', 'd'], next);
      expect([...order].sort()).toEqual(['a', 'b', 'c', 'd']);
      first.add(order[0]);
    }
    expect(first.size).toBe(4);
  });
});

describe('bootstrapMedian', () => {
  test('of equal values is that value; of none says nothing', () => {
    expect(bootstrapMedian([2, 2, 2, 2])).toEqual({ low: 2, high: 2 });
    expect(bootstrapMedian([])).toEqual({ low: Number.NaN, high: Number.NaN });
  });

  test('holds the median, stays within the values, and is the same each time', () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0.1, max: 10, noNaN: true }), { minLength: 1, maxLength: 25 }), (values) => {
        const options = { resamples: 400 };
        const { low, high } = bootstrapMedian(values, options);
        expect(low).toBeLessThanOrEqual(median(values));
        expect(high).toBeGreaterThanOrEqual(median(values));
        expect(low).toBeGreaterThanOrEqual(Math.min(...values));
        expect(high).toBeLessThanOrEqual(Math.max(...values));
        expect(bootstrapMedian(values, options)).toEqual({ low, high });
      }),
      { numRuns: 60 },
    );
  });

  test('nine values: the interval is that of the order statistics', () => {
    // The median of a resample is at most the k-th value with probability P(Bin(9, k / 9) >= 5): 0.0305 for k = 2, 0.0014 for k = 1.
    // So 2.5 % lie below the third value and above the first: the second.
    expect(bootstrapMedian([1, 2, 3, 4, 5, 6, 7, 8, 9])).toEqual({ low: 2, high: 8 });
  });

  test('covers the true median of a distribution about as often as it says', () => {
    const next = random(11);
    let covered = 0;
    for (let i = 0; i < 300; i++) {
      const values = Array.from({ length: 15 }, () => Math.exp(next()));
      const { low, high } = bootstrapMedian(values, { resamples: 400, seed: i });
      if (low <= Math.exp(0.5) && high >= Math.exp(0.5)) covered++;
    }
    expect(covered / 300).toBeGreaterThan(0.9);
    expect(covered / 300).toBeLessThan(0.99);
  });
});

describe('which runs count', () => {
  test('classes by the probe', () => {
    const expected = { 24: 'smt', 34.9: 'smt', 35: 'near', 119: 'near', 120: 'none', 199: 'none', 200: 'far', 245: 'far', 600: 'none' };
    expect(Object.fromEntries(Object.keys(expected).map((ns) => [ns, coreClass(Number(ns))]))).toEqual(expected);
    expect(coreClass(Number.NaN)).toBe('none');
  });

  test('failed, foreign CPU, moved CPUs and no class are told apart', () => {
    expect(rejection(run())).toBeUndefined();
    expect(rejection(run({ ok: false }))).toBe('failed');
    expect(rejection(run({ foreign: 0.081 }))).toBe('foreign');
    expect(rejection(run({ foreign: 0.08 }))).toBeUndefined();
    expect(rejection(run({ afterNs: 245 }))).toBe('moved');
    expect(rejection(run({ beforeNs: 150, afterNs: 150 }))).toBe('unplaced');
  });

  test('where the place does not matter only foreign CPU and failure count', () => {
    expect(rejection(run({ placed: false, afterNs: 245 }))).toBeUndefined();
    expect(rejection(run({ placed: false, foreign: 0.5 }))).toBe('foreign');
    expect(acceptedRuns([run({ placed: false, beforeNs: 150 })])[0].coreClass).toBe('any');
  });

  test('the first attempt that counts stands for the round', () => {
    const runs = [
      run({ attempt: 1, cells: latency(6) }),
      run({ attempt: 0, foreign: 0.5, cells: latency(9) }),
      run({ attempt: 2, cells: latency(7) }),
    ];
    expect(acceptedRuns(runs).map(({ cells, coreClass: place }) => [cells[0].value, place])).toEqual([[6, 'near']]);
  });
});

describe('pairedRatios', () => {
  test('within one round of one session and one class only', () => {
    const runs = acceptedRuns([
      run({ round: 0, cells: latency(4) }),
      run({ round: 0, contender: 'b', cells: latency(2) }),
      // Round 1: the CPUs moved between the two.
      run({ round: 1, cells: latency(4) }),
      run({ round: 1, contender: 'b', beforeNs: 245, afterNs: 245, cells: latency(8) }),
      // Round 2 in another class.
      run({ round: 2, beforeNs: 245, afterNs: 245, cells: latency(9) }),
      run({ round: 2, contender: 'b', beforeNs: 245, afterNs: 245, cells: latency(3) }),
      // Round 0 of another session is another round.
      run({ session: 't', round: 0, contender: 'b', cells: latency(100) }),
      // Round 3 has the subject only.
      run({ round: 3, cells: latency(4) }),
    ]);
    expect([...pairedRatios(runs, pair)]).toEqual([
      ['near', [2]],
      ['far', [3]],
    ]);
  });

  test('a cell that one of them lacks makes no ratio', () => {
    const runs = acceptedRuns([run(), run({ contender: 'b', cells: [{ metric: 'latency', size: 1024, value: 1 }] })]);
    expect(pairedRatios(runs, pair).size).toBe(0);
  });
});

describe('judge', () => {
  const nine = (value: number) => Array.from({ length: 9 }, () => value);

  test('below nine rounds nothing is said, however clear', () => {
    expect(judge(nine(0.1).slice(1), { atMost: 1 }).verdict).toBe('not enough rounds');
    expect(judge([], { atLeast: 1 }).verdict).toBe('not enough rounds');
  });

  test('met when the whole interval is on the right side, the bound included', () => {
    expect(judge(nine(0.9), { atMost: 0.9 })).toMatchObject({ verdict: 'met', rounds: 9, ratio: 0.9, low: 0.9, high: 0.9 });
    expect(judge(nine(2), { atLeast: 2 }).verdict).toBe('met');
    expect(judge(nine(0.91), { atMost: 0.9 }).verdict).toBe('missed');
    expect(judge(nine(1.99), { atLeast: 2 }).verdict).toBe('missed');
  });

  test('what straddles the target is missed, even with the median on the right side', () => {
    const ratios = [0.7, 0.75, 0.8, 0.82, 0.85, 0.88, 0.95, 1.1, 1.2];
    const judged = judge(ratios, { atMost: 0.9 });
    expect(judged.ratio).toBeLessThan(0.9);
    expect(judged.high).toBeGreaterThan(0.9);
    expect(judged.verdict).toBe('missed');
  });

  test('a target has one side', () => {
    expect(() => judge(nine(1), {})).toThrow(TypeError);
    expect(() => judge(nine(1), { atMost: 1, atLeast: 1 })).toThrow(TypeError);
  });
});
