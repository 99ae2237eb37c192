// Sets of ranks, the ring with its chords, and the binomial tree.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Bitmap, bitmapBytes } from '../../../src/ulfm/bitmap.ts';
import { indexIn, ringNeighbours, treeChildren, treeDepth, treeEnd, treeParent } from '../../../src/ulfm/graphs.ts';

describe('sets of ranks', () => {
  const ranks = fc
    .integer({ min: 1, max: 70 })
    .chain((size) => fc.tuple(fc.constant(size), fc.array(fc.nat(size - 1)), fc.array(fc.nat(size - 1))));

  test('are sets', () => {
    fc.assert(
      fc.property(ranks, ([size, first, second]) => {
        const [a, b] = [new Set(first), new Set(second)];
        const [x, y] = [Bitmap.of(size, first), Bitmap.of(size, second)];
        const sorted = (list: Iterable<number>) => [...list].sort((p, q) => p - q);
        expect([...x]).toEqual(sorted(a));
        expect(x.count).toBe(a.size);
        expect(x.isEmpty).toBe(a.size === 0);
        expect(x.first).toBe(sorted(a)[0] ?? -1);
        expect(x.isWithin(y)).toBe([...a].every((rank) => b.has(rank)));
        const [union, both, rest] = [x.clone(), x.clone(), x.clone()];
        union.addAll(y);
        both.keepOnly(y);
        rest.deleteAll(y);
        expect([...union]).toEqual(sorted(new Set([...a, ...b])));
        expect([...both]).toEqual(sorted([...a].filter((rank) => b.has(rank))));
        expect([...rest]).toEqual(sorted([...a].filter((rank) => !b.has(rank))));
        expect([...Bitmap.full(size)]).toEqual(Array.from({ length: size }, (_, rank) => rank));
        expect(Bitmap.full(size).isOverfull || union.isOverfull).toBe(false);
        expect(x.bytes.length).toBe(bitmapBytes(size));
      }),
    );
  });

  test('say when a bit stands for nobody', () => {
    expect(new Bitmap(9, Uint8Array.of(0xff, 1)).isOverfull).toBe(false);
    expect(new Bitmap(9, Uint8Array.of(0xff, 2)).isOverfull).toBe(true);
    expect(new Bitmap(16, Uint8Array.of(0xff, 0xff)).isOverfull).toBe(false);
    expect(() => new Bitmap(4).add(4)).toThrow(/rank 4 is not one of 4/);
  });
});

/** How many hops news needs from `from` to everybody, over these neighbours; those in `deaf` pass nothing on. */
function hops(living: readonly number[], from: number, deaf: ReadonlySet<number> = new Set()): Map<number, number> {
  const reached = new Map([[from, 0]]);
  for (let wave = [from], depth = 1; wave.length > 0; depth++) {
    const next: number[] = [];
    for (const one of wave) {
      if (deaf.has(one)) continue;
      for (const other of ringNeighbours(living, one)) {
        if (reached.has(other)) continue;
        reached.set(other, depth);
        next.push(other);
      }
    }
    wave = next;
  }
  return reached;
}

describe('the ring with its chords', () => {
  test('is as the binomial graph has it', () => {
    const numbers = [3, 5, 6, 9, 12, 40, 41];
    expect(ringNeighbours(numbers, 9)).toEqual([12, 6, 40, 5]);
    expect(ringNeighbours(numbers, 3)).toEqual([5, 41, 6, 40]);
    expect(ringNeighbours([7], 7)).toEqual([]);
    expect(ringNeighbours([7, 9], 7)).toEqual([9]);
    expect(ringNeighbours([1, 2], 7)).toEqual([]);
  });

  test.each([1, 2, 3, 4, 5, 7, 8, 9, 31, 64, 100, 1000])('reaches each of %d within log2 hops, with 2 log2 messages each', (size) => {
    const living = Array.from({ length: size }, (_, i) => 3 * i);
    const log = Math.ceil(Math.log2(size));
    for (const self of size <= 100 ? living : [0, 999]) {
      const neighbours = ringNeighbours(living, self);
      expect(new Set(neighbours).size).toBe(neighbours.length);
      expect(neighbours.length).toBeLessThanOrEqual(2 * log);
      for (const other of neighbours) expect(ringNeighbours(living, other)).toContain(self);
      const reached = hops(living, self);
      expect(reached.size).toBe(size);
      expect(Math.max(...reached.values())).toBeLessThanOrEqual(log);
    }
  });

  test('reaches everybody though a few pass nothing on', () => {
    const living = Array.from({ length: 64 }, (_, i) => i);
    for (let first = 1; first < 64; first++) {
      for (let second = first + 1; second < 64; second++) {
        expect(hops(living, 0, new Set([first, second])).size).toBe(64);
      }
    }
  });

  test('finds what is in a list and what is not', () => {
    const list = [2, 3, 5, 8];
    expect([2, 3, 5, 8].map((value) => indexIn(list, value))).toEqual([0, 1, 2, 3]);
    expect([1, 4, 9].map((value) => indexIn(list, value))).toEqual([-1, -1, -1]);
    expect(indexIn([], 1)).toBe(-1);
  });
});

describe('the binomial tree', () => {
  test.each([1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 64, 1000])('of %d nodes', (size) => {
    const depth = new Array<number>(size).fill(0);
    const below = new Array<number>(size).fill(1);
    for (let node = 1; node < size; node++) depth[node] = depth[treeParent(node)] + 1;
    for (let node = size - 1; node > 0; node--) below[treeParent(node)] += below[node];
    for (let node = 0; node < size; node++) {
      const children = treeChildren(node, size);
      expect(children).toEqual([...children].sort((a, b) => b - a));
      for (const child of children) expect(treeParent(child)).toBe(node);
      expect(treeEnd(node, size) - node).toBe(below[node]);
    }
    expect(treeParent(0)).toBe(-1);
    expect(below[0]).toBe(size);
    expect(Math.max(...depth)).toBe(treeDepth(size));
    expect(treeDepth(size)).toBeLessThanOrEqual(Math.ceil(Math.log2(size)));
  });
});
