// Copies among failure domains (paper 000): receivers, tolerance against a search by other means, recovery lines against inventories, the
// choice of a scheme.
import { describe, expect, test } from 'vitest';
import { recoveryLine } from '../../../src/ft/plan/recovery-line.ts';
import {
  checkScheme,
  chooseScheme,
  domainsNeeded,
  formulaTolerance,
  imagesHeld,
  receiver,
  type Scheme,
  smallestLoss,
  tolerance,
} from '../../../src/ft/plan/scheme.ts';
import { figure000 } from '../../../tools/ft/figure-000.ts';

const scheme = (domains: number, duplication: number, depth: number): Scheme => ({ domains, duplication, depth });

/** Is some save left whole when these have failed? By inventories, without the recovery line. */
function isRecoverable(failed: ReadonlySet<number>, one: Scheme, kEnd: number): boolean {
  for (let k = kEnd; k > kEnd - one.depth && k >= 0; k--) {
    const isWhole = Array.from({ length: one.domains }, (_, owner) => owner).every(
      (owner) =>
        !failed.has(owner) ||
        Array.from({ length: one.duplication }, (_, j) => receiver(owner, j + 1, k, one)).some((at) => !failed.has(at)),
    );
    if (isWhole) return true;
  }
  return false;
}

function* subsets(domains: number, size: number, from = 0): Generator<number[]> {
  if (size === 0) yield [];
  else for (let i = from; i <= domains - size; i++) for (const rest of subsets(domains, size - 1, i + 1)) yield [i, ...rest];
}

describe('receivers', () => {
  test('are those of formula (1)', () => {
    const one = scheme(12, 2, 3);
    expect([0, 1, 2, 3].map((k) => [receiver(0, 1, k, one), receiver(0, 2, k, one)])).toEqual([
      [1, 2],
      [3, 5],
      [6, 10],
      [1, 2],
    ]);
    expect(receiver(11, 2, 2, one)).toBe(9);
  });

  test('stay whole numbers where DF^k leaves the exact integers', () => {
    // 1000^40 mod 8192 by doubling, in big integers.
    const expected = Number((5n + 3n * 1000n ** 40n + 40n) % 8192n);
    expect(receiver(5, 3, 40, scheme(8192, 1000, 41))).toBe(expected);
  });
});

describe('tolerance', () => {
  test('of small schemes is that of all sets of failures, tried one by one', () => {
    for (const [domains, duplication, depth] of [
      [4, 1, 2],
      [5, 2, 2],
      [6, 2, 2],
      [9, 2, 3],
      [11, 2, 3],
      [12, 2, 3],
      [8, 3, 2],
      [3, 2, 1],
    ]) {
      const one = scheme(domains, duplication, depth);
      let survived = 0;
      while (survived < domains - 1 && [...subsets(domains, survived + 1)].every((set) => isRecoverable(new Set(set), one, depth - 1)))
        survived++;
      expect([domains, duplication, depth, tolerance(one).exact]).toEqual([domains, duplication, depth, survived]);
      expect(tolerance(one).guaranteed).toBeLessThanOrEqual(survived);
    }
  });

  test("the paper's bound is refuted at N = 11, 30, 67 and the corrected one holds one above", () => {
    expect(smallestLoss(scheme(11, 2, 3))).toEqual([0, 1, 2, 8]);
    for (const [domains, duplication] of [
      [11, 2],
      [30, 3],
      [67, 4],
    ]) {
      const mnf = formulaTolerance(duplication, 3);
      expect(tolerance(scheme(domains, duplication, 3))).toMatchObject({ exact: mnf - 1 });
      expect(tolerance(scheme(domains + 1, duplication, 3))).toEqual({ guaranteed: mnf, exact: mnf });
      expect(domainsNeeded(duplication, 3)).toBe(domains + 1);
    }
  });

  test('is not searched for beyond 128 domains or depth 3, and formula (2) holds there', () => {
    expect(tolerance(scheme(129, 2, 3))).toEqual({ guaranteed: 4, exact: undefined });
    expect(tolerance(scheme(64, 2, 4))).toEqual({ guaranteed: 5, exact: undefined });
    expect(tolerance(scheme(8192, 0, 1))).toEqual({ guaranteed: 0, exact: undefined });
  });

  test('refuses what is not a scheme', () => {
    for (const one of [
      scheme(0, 0, 1),
      scheme(4, 4, 1),
      scheme(4, 1, 0),
      scheme(4, 1.5, 1),
      scheme(4, 1, 65),
      scheme(9000, 1, 1),
      scheme(4, -1, 1),
    ])
      expect(() => tolerance(one)).toThrow(/ERR_ARG/);
  });
});

describe('recovery line', () => {
  test('of the counterexample: nothing at N = 11, save k − 1 at N = 12', () => {
    expect(recoveryLine(8, [0, 1, 2, 8], scheme(11, 2, 3))).toBeUndefined();
    const line = recoveryLine(8, [0, 1, 2, 8], scheme(12, 2, 3));
    expect(line).toEqual({
      save: 7,
      givers: [
        { failed: 0, giver: 3, copy: 1 },
        { failed: 1, giver: 4, copy: 1 },
        { failed: 2, giver: 5, copy: 1 },
        { failed: 8, giver: 11, copy: 1 },
      ],
    });
  });

  test('takes the copy of lowest number that lives, and never a save before the first', () => {
    expect(recoveryLine(0, [0, 1], scheme(7, 2, 2))?.givers[0]).toEqual({ failed: 0, giver: 2, copy: 2 });
    expect(recoveryLine(0, [0, 1, 2], scheme(7, 2, 2))).toBeUndefined();
    expect(recoveryLine(1, [0, 1, 2], scheme(7, 2, 2))?.save).toBe(1);
    expect(recoveryLine(-1, [], scheme(7, 2, 2))).toBeUndefined();
    expect(recoveryLine(3, [], scheme(7, 2, 2))).toEqual({ save: 3, givers: [] });
  });

  test('refuses failed domains that do not exist or are named twice', () => {
    expect(() => recoveryLine(3, [7], scheme(7, 2, 2))).toThrow(/failed domain 7/);
    expect(() => recoveryLine(3, [1, 1], scheme(7, 2, 2))).toThrow(/twice/);
    expect(() => recoveryLine(-2, [], scheme(7, 2, 2))).toThrow(/kEnd = -2/);
  });
});

describe('choice', () => {
  test('is the scheme of least memory, found by trying all', () => {
    for (let failures = 1; failures <= 5; failures++) {
      const chosen = chooseScheme(failures, 16) as Scheme;
      const { guaranteed, exact } = tolerance(chosen);
      expect(exact ?? guaranteed).toBeGreaterThanOrEqual(failures);
      for (let duplication = 0; duplication < 8; duplication++) {
        for (let depth = 1; depth <= 3; depth++) {
          const other = scheme(16, duplication, depth);
          if (checkScheme(other).warning !== undefined || (tolerance(other).exact as number) < failures) continue;
          expect(imagesHeld(other)).toBeGreaterThanOrEqual(imagesHeld(chosen));
          if (imagesHeld(other) === imagesHeld(chosen)) expect(duplication).toBeGreaterThanOrEqual(chosen.duplication);
        }
      }
    }
    expect(chooseScheme(2, undefined)).toEqual(scheme(4, 1, 2));
    expect(chooseScheme(5, 5)).toBeUndefined();
  });

  test('copies that would fall on their owner or twice on one domain are given up, with a warning', () => {
    expect(checkScheme(scheme(12, 2, 3))).toEqual({ scheme: scheme(12, 2, 3), warning: undefined });
    const checked = checkScheme(scheme(6, 2, 3));
    expect(checked.scheme.duplication).toBe(1);
    expect(checked.warning).toMatch(/12 domains would do/);
    expect(checkScheme(scheme(1, 0, 2)).scheme.duplication).toBe(0);
  });
});

test('figure 000 is in its band', () => {
  const { problems, data, lines } = figure000(2000);
  expect(problems).toEqual([]);
  expect(lines.join('\n')).toContain('refuted by {0, 1, 2, 3, 14, 23, 27}');
  const { rows, random } = data as { rows: { claim: string }[]; random: { beyond: number; differing: number } };
  expect(rows.filter(({ claim }) => claim === 'refuted')).toHaveLength(3);
  expect(random.beyond).toBeGreaterThan(500);
});
