// The part of a large matrix of cases that is run this time. test/run.mjs draws a seed, prints it, and sets both variables; a run without
// them plays everything.
import { test } from 'vitest';
import { Prng } from '../../src/util/prng.ts';

/** The share of each matrix that is run. */
const SHARE = Number(process.env.MULTIRAIL_TEST_SHARE ?? 1);
const SEED = process.env.MULTIRAIL_TEST_SAMPLE_SEED ?? '0';
/** Not everything is run this time. */
export const IS_SAMPLED = SHARE < 1;
/** Why a case was left out. */
export const NOT_DRAWN = `not in the sample of seed ${SEED}; MULTIRAIL_TEST_SHARE=1 runs all`;

/** How many seeds of a random run are played: that share of them where not everything is run. */
export const seedsOf = (all: number, share = 0.25): number => (IS_SAMPLED ? Math.ceil(all * share) : all);

/** Whether one case is run, each by a chance of its own. */
export const isDrawn = (group: string, name: string): boolean =>
  SHARE >= 1 || new Prng(SEED).split(`${group}/${name}`).chance(Math.round(SHARE * 1000), 1000);

/** As many of the cases as the share says, or the larger one that is given here, at least one, in their own order. */
export function draw<T>(group: string, cases: readonly T[], shareMin = 0): T[] {
  const share = Math.max(SHARE, shareMin);
  if (share >= 1) return [...cases];
  const chance = new Prng(SEED).split(group);
  const left = [...cases.keys()];
  const chosen = new Set<number>();
  while (chosen.size < Math.ceil(cases.length * share) && left.length > 0) chosen.add(left.splice(chance.below(left.length), 1)[0]);
  return cases.filter((_, i) => chosen.has(i));
}

/** The same, for a table of tests: those that were not drawn are counted as skipped, with the reason. A case has a name, or begins with it. */
export function drawTests<T extends { name: string } | readonly [string, ...unknown[]]>(
  group: string,
  cases: readonly T[],
  shareMin = 0,
): T[] {
  const drawn = draw(group, cases, shareMin);
  for (const one of cases) {
    if (!drawn.includes(one)) test.skip(`${'name' in one ? one.name : one[0]} (${NOT_DRAWN})`, () => undefined);
  }
  if (drawn.length < cases.length) console.log(`skipped: ${group}: ${cases.length - drawn.length} of ${cases.length} ${NOT_DRAWN}`);
  return drawn;
}
