// The generator: pinned values (a seed keeps its meaning), ratios, independence of split streams; the trace hash.
import { describe, expect, it } from 'vitest';
import { Prng, TraceHash } from '../../../src/util/prng.ts';

const PINNED = [2_895_011_176, 362_488_166, 497_199_437];

describe('Prng', () => {
  it('gives the same numbers for the same seed, for ever', () => {
    const prng = new Prng(42);
    expect([prng.nextU32(), prng.nextU32(), prng.nextU32()]).toEqual(PINNED);
    expect(new Prng('42').nextU32()).toBe(PINNED[0]);
    expect(new Prng(43).nextU32()).not.toBe(PINNED[0]);
  });

  it('below() covers its range evenly and never leaves it', () => {
    const prng = new Prng('even');
    const tally = new Array<number>(7).fill(0);
    for (let i = 0; i < 70_000; i++) tally[prng.below(7)] += 1;
    for (const count of tally) expect(Math.abs(count - 10_000)).toBeLessThan(500);
    expect(() => prng.below(0)).toThrow(RangeError);
    expect(prng.between(5, 5)).toBe(5);
  });

  it('chance() is a ratio of integers', () => {
    const prng = new Prng('ratio');
    let hits = 0;
    for (let i = 0; i < 30_000; i++) if (prng.chance(1, 3)) hits += 1;
    expect(Math.abs(hits - 10_000)).toBeLessThan(400);
    expect(prng.chance(0, 10)).toBe(false);
    expect(prng.chance(10, 10)).toBe(true);
  });

  it('split() depends on the labels only, not on what was drawn', () => {
    const a = new Prng(1);
    const b = new Prng(1);
    b.nextU32();
    expect(a.split('x').nextU32()).toBe(b.split('x').nextU32());
    expect(a.split('x').nextU32()).not.toBe(a.split('y').nextU32());
  });

  it('shuffle() keeps the elements', () => {
    expect(new Prng(3).shuffle([1, 2, 3, 4, 5]).sort()).toEqual([1, 2, 3, 4, 5]);
  });
});

describe('TraceHash', () => {
  it('tells lines and their order apart', () => {
    const hash = (...lines: string[]) => {
      const trace = new TraceHash();
      for (const line of lines) trace.add(line);
      return trace.hex;
    };
    expect(hash('a', 'b')).toBe(hash('a', 'b'));
    expect(new Set([hash('a', 'b'), hash('b', 'a'), hash('ab'), hash('a', 'b', ''), hash()]).size).toBe(5);
  });
});
