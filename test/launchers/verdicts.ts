// What the tests of launchers expect of the suites of semantics over ranks that are processes (semantics.mjs).
import { expect } from 'vitest';

interface Report {
  isWell: boolean;
  outcomes: { suite: string; name: string; outcome: string; errors?: unknown }[];
}

/** Cases that are not run with four ranks, by the beginnings of their names; each has its reason in the report. */
const NOT_FOR_FOUR = ['12', '23', '27', '30', '66', '66 to 68, 94', '70', '88', '89', '90'];
/** Jobs 0 and 1 have so many cases, those that are not run among them; all jobs have more. */
export const CASES = { 0: 109, 1: 23, all: 163 } as const;

/** Everything was run and passed, but for what is known not to be run. */
export function expectPassed(reportText: string, cases: number, leftOut: readonly string[] = NOT_FOR_FOUR): void {
  const { isWell, outcomes } = JSON.parse(reportText) as Report;
  const named = (outcome: string) => outcomes.filter((one) => one.outcome === outcome);
  expect(named('failed')).toEqual([]);
  const numberOf = (name: string) => /^\d+(?:(?:, | to )\d+)*/.exec(name)?.[0] ?? name;
  expect(named('not applicable').map(({ name }) => numberOf(name))).toEqual(expect.arrayContaining([...leftOut]));
  expect({ isWell, passed: named('passed').length }).toEqual({ isWell: true, passed: cases - leftOut.length });
}
