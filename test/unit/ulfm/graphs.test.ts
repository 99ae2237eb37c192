// Sets of ranks, the ring with its chords, and the binomial tree.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Bitmap, bitmapBytes } from '../../../src/ulfm/bitmap.ts';
import { indexIn, ringNeighbours, treeChildren, treeDepth, treeEnd, treeParent } from '../../../src/ulfm/graphs.ts';
import { Prng } from '../../../src/util/prng.ts';

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

const NOBODY: ReadonlySet<number> = new Set();
const neighboursOf = (size: number, self: number, gone: ReadonlySet<number> = NOBODY): number[] =>
  ringNeighbours(size, self, (place) => gone.has(place));

/** How many hops news needs from `from` to everybody who is not gone, over these neighbours; those in `deaf` pass nothing on. */
function hops(size: number, from: number, gone: ReadonlySet<number>, deaf: ReadonlySet<number> = NOBODY): Map<number, number> {
  const reached = new Map([[from, 0]]);
  for (let wave = [from], depth = 1; wave.length > 0; depth++) {
    const next: number[] = [];
    for (const one of wave) {
      if (deaf.has(one)) continue;
      for (const other of neighboursOf(size, one, gone)) {
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
  test('is as the binomial graph has it, without those that are gone', () => {
    expect(neighboursOf(7, 3)).toEqual([4, 2, 5, 1]);
    expect(neighboursOf(7, 0)).toEqual([1, 6, 2, 5]);
    expect(neighboursOf(9, 0, new Set([1, 2, 8]))).toEqual([3, 7, 4, 5]);
    expect(neighboursOf(1, 0)).toEqual([]);
    expect(neighboursOf(2, 0)).toEqual([1]);
    expect(neighboursOf(4, 0, new Set([1, 2, 3]))).toEqual([]);
    expect(neighboursOf(2, 0, new Set([0]))).toEqual([]);
  });

  test.each([1, 2, 3, 4, 5, 7, 8, 9, 31, 64, 100, 1000])('reaches each of %d within log2 hops, with 2 log2 messages each', (size) => {
    const log = Math.ceil(Math.log2(size));
    for (const self of size <= 100 ? Array.from({ length: size }, (_, i) => i) : [0, 333]) {
      const neighbours = neighboursOf(size, self);
      expect(new Set(neighbours).size).toBe(neighbours.length);
      expect(neighbours.length).toBeLessThanOrEqual(2 * log);
      for (const other of neighbours) expect(neighboursOf(size, other)).toContain(self);
      const reached = hops(size, self, NOBODY);
      expect(reached.size).toBe(size);
      expect(Math.max(...reached.values())).toBeLessThanOrEqual(log);
    }
  });

  test('reaches all that are left within as many hops, whoever is gone', () => {
    const prng = new Prng(20);
    for (let round = 0; round < 200; round++) {
      const size = prng.between(2, 130);
      const chance = prng.between(1, 19);
      const places = Array.from({ length: size }, (_, place) => place);
      const gone = new Set(places.filter(() => prng.chance(chance, 20)));
      const living = places.filter((place) => !gone.has(place));
      if (living.length === 0) continue;
      const reached = hops(size, prng.pick(living), gone);
      expect(reached.size).toBe(living.length);
      expect(Math.max(...reached.values())).toBeLessThanOrEqual(Math.ceil(Math.log2(size)));
    }
  });

  test('whoever dies had neighbours, and nobody else has others than before', () => {
    const gone = new Set([3, 17, 18]);
    for (let dead = 0; dead < 44; dead++) {
      if (gone.has(dead)) continue;
      const without = new Set([...gone, dead]);
      for (let self = 0; self < 44; self++) {
        if (without.has(self)) continue;
        const before = neighboursOf(44, self, gone);
        const after = neighboursOf(44, self, without);
        if (!before.includes(dead)) expect(after).toEqual(before);
        else expect(after).toEqual(expect.arrayContaining(before.filter((other) => other !== dead)));
      }
    }
  });

  test('reaches everybody though a few pass nothing on', () => {
    for (let first = 1; first < 64; first++) {
      for (let second = first + 1; second < 64; second++) {
        expect(hops(64, 0, NOBODY, new Set([first, second])).size).toBe(64);
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
