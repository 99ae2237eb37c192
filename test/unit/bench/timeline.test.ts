// Phases, gaps and rates of a run, from invented moments.
import { expect, test } from 'vitest';
import { parseRailActions } from '../../../tools/bench/rail-actions.ts';
import { railRates, Timeline } from '../../../tools/bench/timeline.ts';

test('a gap counts in the phase in which it ends, bytes in the phase of their delivery', () => {
  const timeline = new Timeline(parseRailActions(['1@1s'], ['1@2s'], 3000), 2, 3000);
  for (const atMs of [10, 500, 990, 1400, 1500, 2100, 2900]) timeline.delivered(atMs, 100);
  expect(timeline.finish()).toEqual([
    { fromMs: 0, toMs: 1000, pulled: [], bytes: 300, worstGapMs: 490 },
    { fromMs: 1000, toMs: 2000, pulled: [1], bytes: 200, worstGapMs: 410 },
    { fromMs: 2000, toMs: 2900, pulled: [], bytes: 200, worstGapMs: 800 },
  ]);
  expect([timeline.worstGapMs, timeline.worstGapEndMs]).toEqual([800, 2900]);
});

test('a phase in which nothing arrives stays empty', () => {
  const timeline = new Timeline(parseRailActions(['1@1s'], ['1@2s'], 3000), 2, 3000);
  timeline.delivered(900, 1);
  timeline.delivered(2500, 1);
  expect(timeline.finish().map(({ bytes, worstGapMs }) => [bytes, worstGapMs])).toEqual([
    [1, 0],
    [0, 0],
    [1, 1600],
  ]);
});

test('rates are differences over the time that really passed', () => {
  const samples = [
    { atMs: 0, railBytes: [0, 0] },
    { atMs: 100, railBytes: [100_000, 0] },
    { atMs: 300, railBytes: [100_000, 400_000] },
    { atMs: 300, railBytes: [100_000, 400_000] },
  ];
  expect(railRates(samples).map(({ rates }) => rates)).toEqual([
    [1, 0],
    [0, 2],
  ]);
});

test('a run of any length has a bounded number of samples', () => {
  expect(Timeline.intervalMs(6000)).toBe(100);
  const dayMs = 24 * 3600 * 1000;
  expect(dayMs / Timeline.intervalMs(dayMs)).toBeLessThan(1200);
});
