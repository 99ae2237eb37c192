// RangeSet against the most naive model there is: one boolean per byte.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Range, RangeSet } from '../../../src/util/range-set.ts';

const SIZE = 96;

/** The model: a bitmap. */
class Bitmap {
  readonly bits = new Array<boolean>(SIZE).fill(false);
  get bytes(): number {
    return this.bits.filter(Boolean).length;
  }
  set(from: number, to: number, value: boolean): number {
    let changed = 0;
    for (let i = from; i < to; i++) {
      if (this.bits[i] !== value) changed++;
      this.bits[i] = value;
    }
    return changed;
  }
  ranges(value = true, from = 0, to = SIZE): Range[] {
    const list: [number, number][] = [];
    for (let i = from; i < to; i++) {
      if (this.bits[i] !== value) continue;
      const last = list.at(-1);
      if (last !== undefined && last[1] === i) last[1] = i + 1;
      else list.push([i, i + 1]);
    }
    return list;
  }
}

const bound = fc.integer({ min: 0, max: SIZE });
const step = fc.oneof(
  fc.record({ op: fc.constantFrom('add' as const, 'remove' as const, 'look' as const), a: bound, b: bound }),
  fc.record({ op: fc.constant('take' as const), a: fc.integer({ min: 1, max: 20 }), b: fc.integer({ min: 1, max: 16 }) }),
);

describe('RangeSet', () => {
  test('agrees with a bitmap under any sequence of operations', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const set = new RangeSet();
        const model = new Bitmap();
        for (const { op, a, b } of steps) {
          if (op === 'add') expect(set.add(a, b)).toBe(model.set(a, b, true));
          else if (op === 'remove') expect(set.remove(a, b)).toBe(model.set(a, b, false));
          else if (op === 'look') {
            const inside = model.bits.slice(a, Math.max(a, b));
            expect(set.contains(a, b)).toBe(inside.every(Boolean));
            if (a < b) expect(set.intersects(a, b)).toBe(inside.some(Boolean));
            expect(set.missing(a, b)).toEqual(model.ranges(false, a, b));
            expect(set.missingBytes(a, b)).toBe(inside.filter((bit) => !bit).length);
            expect(set.firstMissing(a, b)).toBe(model.ranges(false, a, b)[0]?.[0] ?? -1);
          } else {
            const first = model.ranges()[0];
            const taken = set.takeFirst(a, b);
            if (first === undefined) expect(taken).toBeUndefined();
            else {
              const [from, to] = taken as Range;
              expect(from).toBe(first[0]);
              expect(to).toBeGreaterThan(from);
              expect(to).toBeLessThanOrEqual(Math.min(first[1], from + a));
              // Cut on the grid unless it is the end of a range, or no grid line lies inside.
              if (to < first[1] && Math.floor(Math.min(first[1], from + a) / b) * b > from) expect(to % b).toBe(0);
              model.set(from, to, false);
            }
          }
          expect(set.ranges()).toEqual(model.ranges());
          expect(set.bytes).toBe(model.bytes);
          expect(set.isEmpty).toBe(model.bytes === 0);
          expect(set.first).toBe(model.ranges()[0]?.[0] ?? -1);
        }
      }),
      { numRuns: 400 },
    );
  });

  test('offsets beyond 2^32 are ordinary numbers', () => {
    const set = RangeSet.of([2 ** 40, 2 ** 40 + 5], [2 ** 52, 2 ** 52 + 7]);
    expect(set.takeFirst(3)).toEqual([2 ** 40, 2 ** 40 + 3]);
    expect(set.bytes).toBe(9);
    set.clear();
    expect(set.ranges()).toEqual([]);
  });
});
