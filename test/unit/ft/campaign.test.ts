// The campaigns of papers 000 and 004: which ranks die in which job, what scheme or plan promise for them, and what the verdict is.
import { expect, test } from 'vitest';
import { type CampaignInput, type CampaignOutcome, campaign000, campaignRuns, judgeRun } from '../../../tools/ft/campaign-000.ts';
import { campaign004, judgePeriods, type PeriodsInput, periodsRuns } from '../../../tools/ft/campaign-004.ts';
import { undisturbed } from '../../../tools/ft/campaign-rank.ts';

const SCHEME = { domains: 12, duplication: 2, depth: 3 };
const input = (more: Partial<CampaignInput> = {}): CampaignInput => ({ scheme: SCHEME, sets: 'mnf', runs: 40, seed: 1, ...more });
const well = (save: number | undefined, failures: number): CampaignOutcome => ({
  digest: 'right',
  save,
  level: save === undefined ? undefined : 'memory',
  failures,
});

test('random sets have as many ranks as formula (2) survives, and each has a save to go back to', () => {
  const runs = campaignRuns(input());
  expect(campaignRuns(input())).toEqual(runs);
  expect(campaignRuns(input({ seed: 2 }))).not.toEqual(runs);
  for (const { failed, promised, atStep, everySteps } of runs) {
    expect(new Set(failed).size).toBe(4);
    const newest = Math.floor(atStep / everySteps) - 1;
    expect(newest).toBeGreaterThanOrEqual(SCHEME.depth - 1);
    expect(promised).toBeGreaterThan(newest - SCHEME.depth);
    expect(promised).toBeLessThanOrEqual(newest);
  }
});

test('the worst sets have none, and neither has the set that refutes the bound, with a domain too few', () => {
  expect(campaignRuns(input({ sets: 'worst' })).every(({ failed, promised }) => failed.length === 5 && promised === undefined)).toBe(true);
  const refuting = (domains: number) => campaignRuns(input({ scheme: { ...SCHEME, domains }, sets: [[0, 1, 2, 8]], runs: 5 }));
  expect(refuting(11).every(({ promised }) => promised === undefined)).toBe(true);
  expect(refuting(12).every(({ promised }) => promised !== undefined)).toBe(true);
});

test.each([
  [{ sets: [[1, 12]] }, 'expected different ranks from 0 to 11'],
  [{ sets: [[1, 1]] }, 'expected different ranks'],
  [{ sets: [[]] }, 'expected different ranks'],
  [{ scheme: { ...SCHEME, duplication: 0 } }, 'nothing survives without copies'],
])('%o makes no sense', (more, text) => {
  expect(() => campaignRuns(input(more))).toThrow(text);
});

test('a job that ends otherwise than promised is a problem', () => {
  const [run] = campaignRuns(input());
  const save = run.promised as number;
  expect(judgeRun(run, well(save, 4), 'right')).toEqual([]);
  expect(judgeRun(run, undefined, 'right')).toEqual([expect.stringContaining('the job came to no end')]);
  expect(judgeRun(run, { ...well(save, 4), digest: 'wrong' }, 'right')).toEqual([expect.stringContaining('the result differs')]);
  expect(judgeRun(run, well(save, 3), 'right')).toEqual([expect.stringContaining('3 places were taken, and 4 ranks died')]);
  expect(judgeRun(run, well(undefined, 4), 'right')).toEqual([
    expect.stringContaining(`back to the beginning; the recovery line is save ${save}`),
  ]);
  const worst = input({ sets: 'worst' });
  const [lost] = campaignRuns(worst);
  expect(campaign000(worst, [{ run: lost, outcome: well(undefined, 5) }], 'right').problems).toEqual([]);
  expect(campaign000(worst, [{ run: lost, outcome: well(4, 5) }], 'right').problems).toEqual([
    expect.stringContaining('all went back to save 4; the recovery line is the beginning'),
    '1 of 1 worst sets were no loss',
  ]);
});

test('the result without deaths depends on ranks and steps', () => {
  expect(undisturbed(3, 5)).toBe(undisturbed(3, 5));
  expect(new Set([undisturbed(3, 5), undisturbed(4, 5), undisturbed(3, 6)]).size).toBe(3);
});

const PERIODS: PeriodsInput = { ranks: 3, mtbfSeconds: [1, 4], costSeconds: 0.02, failures: 8, stepSeconds: 0.01, seed: 1 };

test('campaign 004: failures have their mean time between them, and rank 0 lives', () => {
  const runs = periodsRuns(PERIODS);
  expect(periodsRuns(PERIODS)).toEqual(runs);
  expect(periodsRuns({ ...PERIODS, seed: 2 })).not.toEqual(runs);
  for (const [i, { mtbfSeconds, deaths, steps }] of runs.entries()) {
    expect([mtbfSeconds, deaths.length]).toEqual([PERIODS.mtbfSeconds[i], 8]);
    expect(deaths[7].atSeconds).toBeCloseTo(8 * mtbfSeconds, 9);
    for (const { rank } of deaths) expect([1, 2]).toContain(rank);
    expect(steps).toBe(440 * mtbfSeconds);
  }
  expect(() => periodsRuns({ ...PERIODS, costSeconds: 0.2 })).toThrow(/ERR_ARG: --cost 0.2 s with --mtbf 1 s: expected at most a tenth/);
});

test('campaign 004: what lies outside of the band, a wrong result and a job without an end are told', () => {
  const [run] = periodsRuns(PERIODS);
  // A period of 0.2 s with saves of 0.02 s: 9.1 % for saves, 11 % for what is repeated, 5 % for restores.
  const outcome = { failures: 8, everySteps: 20, saves: 30, stepSeconds: 0.01, costSeconds: 0.02, restoreSeconds: 0.05, isRight: true };
  const played = (wallSeconds: number, more = {}) => [{ run, outcome: { ...outcome, wallSeconds, ...more } }];
  const judged = judgePeriods(played(5.87)[0]);
  expect(judged?.periodSeconds).toBeCloseTo(0.22, 9);
  expect(judged?.measured).toBeCloseTo(0.25, 2);
  expect(judged?.planned).toBeGreaterThan(0.2);
  expect(judged?.planned).toBeLessThan(0.25);
  expect(campaign004(PERIODS, played(5.87)).problems).toEqual([]);
  expect(campaign004(PERIODS, played(7)).problems).toEqual([expect.stringMatching(/^MTBF 1 s: overhead 37.1 %, and the plan says/)]);
  expect(campaign004(PERIODS, played(4.8)).problems).toHaveLength(1);
  expect(campaign004(PERIODS, played(5.87, { isRight: false })).problems).toEqual([expect.stringContaining('the result differs')]);
  expect(campaign004(PERIODS, [{ run, outcome: undefined }]).problems).toEqual(['MTBF 1 s: the job came to no end']);
});
