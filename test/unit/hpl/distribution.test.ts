// The block-cyclic distribution, the routes of panels and the row exchanges on paper, all compared with their definitions.
import { describe, expect, test } from 'vitest';
import { Prng } from '../../../src/util/prng.ts';
import { broadcastRoute } from '../../../tools/hpl/broadcast.ts';
import { Grid, globalIndex, localCount, localIndex, ownerOf, squarestGrid } from '../../../tools/hpl/grid.ts';
import { BROADCASTS } from '../../../tools/hpl/problem.ts';
import { rowMoves } from '../../../tools/hpl/row-swaps.ts';

test('every index has one owner and one place, and counts are those of the places', () => {
  for (const processes of [1, 2, 3, 5]) {
    for (const block of [1, 2, 3, 8]) {
      for (const n of [0, 1, 7, 8, 24, 25]) {
        const places = Array.from({ length: processes }, () => [] as number[]);
        for (let global = 0; global < n; global++) {
          const owner = ownerOf(global, block, processes);
          const local = localIndex(global, block, processes);
          expect(places[owner][local]).toBeUndefined();
          places[owner][local] = global;
          expect(globalIndex(local, block, owner, processes)).toBe(global);
        }
        places.forEach((list, index) => {
          expect(localCount(n, block, index, processes)).toBe(list.length);
        });
      }
    }
  }
});

test('ranks lie row by row, and grids are as square as can be', () => {
  const grid = new Grid(2, 3, 4);
  expect([grid.row, grid.column]).toEqual([1, 1]);
  expect(grid.rowRanks()).toEqual([3, 4, 5]);
  expect(grid.columnRanks()).toEqual([1, 4]);
  expect([1, 2, 4, 6, 7, 8, 12].map((ranks) => squarestGrid(ranks))).toEqual([
    { p: 1, q: 1 },
    { p: 1, q: 2 },
    { p: 2, q: 2 },
    { p: 2, q: 3 },
    { p: 1, q: 7 },
    { p: 2, q: 4 },
    { p: 3, q: 4 },
  ]);
});

describe.each(BROADCASTS)('the %s', (name) => {
  test.each([1, 2, 3, 4, 7])('reaches each of %i once', (size) => {
    const reached = new Set([0]);
    for (let place = 0; place < size; place++) {
      for (const to of broadcastRoute(name, place, size).to) {
        expect(reached.has(to)).toBe(false);
        reached.add(to);
        expect(broadcastRoute(name, to, size).from).toBe(place);
        expect(to).toBeGreaterThan(place);
      }
    }
    expect(reached.size).toBe(size);
    expect(broadcastRoute(name, 0, size).from).toBeUndefined();
  });
});

test('with the modified ring the next owner gets the panel first and passes nothing on', () => {
  expect(broadcastRoute('ring-modified', 0, 4).to).toEqual([1, 2]);
  expect(broadcastRoute('ring-modified', 1, 4).to).toEqual([]);
});

test('row moves are what the exchanges come to, one after the other', () => {
  const prng = new Prng('row moves');
  for (let round = 0; round < 500; round++) {
    const n = prng.between(1, 30);
    const first = prng.below(n);
    const width = prng.between(1, n - first);
    const pivots = Array.from({ length: width }, (_, i) => prng.between(first + i, n - 1));
    const rows = Array.from({ length: n }, (_, i) => i);
    pivots.forEach((pivot, i) => {
      [rows[first + i], rows[pivot]] = [rows[pivot], rows[first + i]];
    });
    const { sources, displaced } = rowMoves(first, pivots);
    const moved = Array.from({ length: n }, (_, i) => i);
    sources.forEach((source, i) => {
      moved[first + i] = source;
    });
    for (const [from, to] of displaced) moved[to] = first + from;
    expect(moved).toEqual(rows);
    for (const [from] of displaced) expect(from).toBeGreaterThanOrEqual(0);
    for (const [from, to] of displaced) expect(from < width && to >= first + width).toBe(true);
  }
});
