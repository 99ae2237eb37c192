// Which part of a network goes on: never two of them, whatever each knows.
import { describe, expect, test } from 'vitest';
import { goesOn, whoGoes } from '../../../src/util/partition.ts';
import { Prng } from '../../../src/util/prng.ts';

describe('the part that goes on', () => {
  test.each([
    [[0], [0], true],
    [[0, 1], [0], true],
    [[0, 1], [1], false],
    [[0, 1, 2], [0], false],
    [[0, 1, 2], [1, 2], true],
    [[3, 5, 7, 9], [5, 7, 9], true],
    [[3, 5, 7, 9], [3, 9], true],
    [[3, 5, 7, 9], [5, 7], false],
    [[], [], false],
  ])('of %j those that reach %j: %s', (base, reached, expected) => {
    expect(goesOn(base, (number) => reached.includes(number))).toBe(expected);
  });

  test('is at most one, of any parts that share nobody, and with deaths that only some know', () => {
    const chance = new Prng('parts');
    let went = 0;
    for (let round = 0; round < 5000; round++) {
      const size = 1 + chance.below(9);
      const all = Array.from({ length: size }, (_, i) => i);
      const dead = new Set(all.filter(() => chance.chance(1, 5)));
      const partOf = all.map(() => chance.below(3));
      let parts = 0;
      for (let part = 0; part < 3; part++) {
        const members = all.filter((number) => partOf[number] === part && !dead.has(number));
        if (members.length === 0) continue;
        // Of the dead each part is certain of some.
        const base = all.filter((number) => !(dead.has(number) && chance.chance(1, 2)));
        if (goesOn(base, (number) => members.includes(number))) parts++;
      }
      expect(parts, `round ${round}`).toBeLessThanOrEqual(1);
      went += parts;
    }
    expect(went).toBeGreaterThan(1000);
  });
});

describe('who goes when two do not reach each other', () => {
  test.each([
    [[], []],
    [[[0, 1]], [1]],
    [
      [
        [0, 1],
        [0, 2],
      ],
      [0],
    ],
    [
      [
        [0, 2],
        [1, 2],
        [2, 0],
      ],
      [2],
    ],
    [
      [
        [0, 2],
        [0, 3],
        [1, 2],
        [1, 3],
      ],
      [3, 2],
    ],
  ] as [[number, number][], number[]][])('%j: %j', (pairs, expected) => {
    expect(whoGoes(pairs)).toEqual(expected);
  });

  test('leaves no pair, and sends nobody away without need', () => {
    const chance = new Prng('pairs');
    for (let round = 0; round < 1000; round++) {
      const size = 2 + chance.below(8);
      const pairs: [number, number][] = [];
      for (let a = 0; a < size; a++) for (let b = a + 1; b < size; b++) if (chance.chance(1, 3)) pairs.push([a, b]);
      const gone = whoGoes(pairs);
      const leaves = (without: number[]) => pairs.every(([a, b]) => without.includes(a) || without.includes(b));
      expect(leaves(gone)).toBe(true);
      expect(new Set(gone).size).toBe(gone.length);
      // The last that was sent away had a pair left.
      if (gone.length > 0) expect(leaves(gone.slice(0, -1))).toBe(false);
    }
  });
});
