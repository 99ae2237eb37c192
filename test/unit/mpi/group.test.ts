// The algebra of groups.
import { describe, expect, test } from 'vitest';
import { UNDEFINED } from '../../../src/mpi/constants.ts';
import { Group, IDENT, SIMILAR, UNEQUAL } from '../../../src/mpi/group.ts';

const group = (...ranks: number[]) => new Group(ranks, 4);

describe('groups', () => {
  test('size, rank, and who is in it', () => {
    const some = group(7, 4, 9);
    expect([some.size, some.rank, some.rankOf(9), some.rankOf(5)]).toEqual([3, 1, 2, undefined]);
    expect(group(1, 2).rank).toBe(UNDEFINED);
    expect([group().size, group().rank]).toEqual([0, UNDEFINED]);
  });

  test('union, intersection, difference keep the order of the first', () => {
    const a = group(5, 3, 1);
    const b = group(0, 1, 5, 8);
    expect(a.union(b).worldRanks).toEqual([5, 3, 1, 0, 8]);
    expect(b.union(a).worldRanks).toEqual([0, 1, 5, 8, 3]);
    expect(a.intersection(b).worldRanks).toEqual([5, 1]);
    expect(b.intersection(a).worldRanks).toEqual([1, 5]);
    expect(a.difference(b).worldRanks).toEqual([3]);
    expect(a.difference(a).worldRanks).toEqual([]);
    expect(a.union(group()).compare(a)).toBe(IDENT);
    expect(a.worldRanks).toEqual([5, 3, 1]);
  });

  test('include in the order of the list, exclude in that of the group', () => {
    const a = group(5, 3, 1, 4);
    expect(a.include([3, 0]).worldRanks).toEqual([4, 5]);
    expect(a.include([3, 0]).rank).toBe(0);
    expect(a.exclude([3, 0]).worldRanks).toEqual([3, 1]);
    expect(a.exclude([3, 0]).rank).toBe(UNDEFINED);
    for (const ranks of [[4], [-1], [0.5], [1, 1]]) {
      expect(() => a.include(ranks)).toThrow(/ERR_RANK: ranks\[\d\]/);
      expect(() => a.exclude(ranks)).toThrow(/ERR_RANK/);
    }
    expect(() => a.include(3 as unknown as number[])).toThrow(/ERR_ARG: ranks/);
  });

  test('translate, compare', () => {
    const a = group(5, 3, 1);
    const b = group(1, 5);
    expect(a.translate([0, 1, 2], b)).toEqual([1, UNDEFINED, 0]);
    expect(() => a.translate([3], b)).toThrow(/ERR_RANK/);
    expect(a.compare(group(5, 3, 1))).toBe(IDENT);
    expect(a.compare(group(1, 3, 5))).toBe(SIMILAR);
    expect(a.compare(b)).toBe(UNEQUAL);
    expect(a.compare(group(5, 3, 2))).toBe(UNEQUAL);
    expect(() => a.compare({} as Group)).toThrow(/ERR_GROUP/);
    expect(() => a.union(null as unknown as Group)).toThrow(/ERR_GROUP: group is null/);
  });
});
