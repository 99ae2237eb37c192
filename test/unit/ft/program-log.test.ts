// In which steps all ranks of a job with logs look at each other.
import { expect, test } from 'vitest';
import { isLook } from '../../../src/ft/recover/program-log.ts';

const looksUpTo = (last: number, everySteps?: readonly number[]): number[] =>
  Array.from({ length: last }, (_, i) => i + 1).filter((step) => isLook(step, everySteps));

test('all look often at first, and then every 64 steps, where the program does not save as often', () => {
  const first = [1, 2, 4, 8, 16, 32];
  const all = [...first, 64, 128, 192, 256];
  expect(looksUpTo(300)).toEqual(all);
  expect(looksUpTo(300, [65, 1000])).toEqual(all);
  expect(looksUpTo(300, [64, 1000])).toEqual(first);
  expect(looksUpTo(300, [1000, 10])).toEqual(first);
});
