// Times of requests by their numbers: exact for late ones, coarser for old ones, in bounded memory.
import { expect, test } from 'vitest';
import { OpeningTimes } from '../../../src/progress/opening-times.ts';

test('what was begun since the last turn has the time of the next one', () => {
  const times = new OpeningTimes();
  expect(times.atMs(1)).toBeUndefined();
  times.note(3, 1000);
  // Idle turns, then one after a long computation in which two more were begun.
  for (let nowMs = 1000; nowMs < 5000; nowMs += 10) times.note(3, nowMs);
  times.note(5, 65_000);
  expect([1, 2, 3, 4, 5, 6].map((number) => times.atMs(number))).toEqual([1000, 1000, 1000, 65_000, 65_000, undefined]);
});

test('a day of requests is kept in little memory; the error is small beside the age', () => {
  const times = new OpeningTimes();
  const dayMs = 24 * 3600 * 1000;
  let number = 0;
  for (let nowMs = 0; nowMs < dayMs; nowMs += 150) times.note(++number, nowMs);
  expect((times as unknown as { entries: unknown[] }).entries.length).toBeLessThanOrEqual(512);
  let lastMs = -1;
  for (let one = 1; one <= number; one += 997) {
    const begunMs = (one - 1) * 150;
    const atMs = times.atMs(one) as number;
    expect(atMs).toBeGreaterThanOrEqual(lastMs);
    expect(atMs).toBeLessThanOrEqual(begunMs);
    expect(begunMs - atMs).toBeLessThanOrEqual(Math.max(150, (dayMs - begunMs) / 4));
    lastMs = atMs;
  }
});
