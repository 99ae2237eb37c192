// The campaigns of papers 000, 002 and 004: which ranks die in which job, what scheme or plan promise for them, and what the verdict is.
import { expect, test } from 'vitest';
import { type CampaignInput, type CampaignOutcome, campaign000, campaignRuns, judgeRun } from '../../../tools/ft/campaign-000.ts';
import {
  campaign002,
  checkRecoveries,
  type RecoveriesCell,
  type RecoveriesInput,
  type RecoveriesOutcome,
  type RecoveriesPlayed,
  recoveriesRuns,
} from '../../../tools/ft/campaign-002.ts';
import { campaign004, judgePeriods, type PeriodsInput, periodsRuns } from '../../../tools/ft/campaign-004.ts';
import { undisturbed } from '../../../tools/ft/campaign-rank.ts';
import { CELLS, ownRows, part, relax, SWEEPS, strip } from '../../../tools/ft/heat-strip.ts';
import { JobClock, Pace } from '../../../tools/ft/job-clock.ts';

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

const PERIODS: PeriodsInput = {
  ...{ ranks: 3, mtbfSeconds: [1, 4], costSeconds: 0.02, failures: 8, stepSeconds: 0.01 },
  ...{ groups: 1, everySteps: [], seed: 1 },
};

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

test('campaign 004: by groups one rank of each dies, and none that has the copies of another one', () => {
  const grouped: PeriodsInput = { ...PERIODS, ranks: 4, groups: 2, everySteps: [10, 20] };
  const runs = periodsRuns(grouped);
  expect(runs.map(({ mtbfSeconds, everySteps, groups }) => [mtbfSeconds, everySteps, groups])).toEqual([
    [1, 10, 2],
    [1, 20, 2],
    [4, 10, 2],
    [4, 20, 2],
  ]);
  // Rank 1 has the copies of rank 3, and rank 2 those of rank 0.
  expect(new Set(runs.flatMap(({ deaths }) => deaths.map(({ rank }) => rank)))).toEqual(new Set([1, 2]));
  expect(new Set(runs.map(({ deaths }) => JSON.stringify(deaths))).size).toBe(4);
  expect(() => periodsRuns({ ...grouped, ranks: 2 })).toThrow(/ERR_ARG: --groups 2 of 2 ranks: expected more ranks in a group/);
  expect(() => periodsRuns({ ...grouped, everySteps: [0] })).toThrow(/ERR_ARG: --periods: 0; expected steps, from 1/);
  const [run] = runs;
  const outcome = { failures: 8, inPlace: 8, everySteps: 10, saves: 60, stepSeconds: 0.01, costSeconds: 0.02, restoreSeconds: 0.05 };
  const judged = judgePeriods({ run, outcome: { ...outcome, isRight: true, wallSeconds: 8 } });
  expect(judged?.periodSeconds).toBeCloseTo(0.14, 9);
  // Both groups' saves hold up all: 28.6 % of the time.
  expect(judged?.planned).toBeGreaterThan(0.3);
  const { problems } = campaign004(grouped, [{ run, outcome: { ...outcome, inPlace: 6, isRight: true, wallSeconds: 6.9 } }]);
  expect(problems).toEqual(['MTBF 1 s, a save every 10 steps: after 2 of 8 failures all went back, and not a group alone']);
});

test('campaign 004: what lies outside of the band, a wrong result and a job without an end are told', () => {
  const [run] = periodsRuns(PERIODS);
  // A period of 0.2 s with saves of 0.02 s: 9.1 % for saves, 11 % for what is repeated, 5 % for restores.
  const outcome = {
    failures: 8,
    inPlace: 0,
    everySteps: 20,
    saves: 30,
    stepSeconds: 0.01,
    costSeconds: 0.02,
    restoreSeconds: 0.05,
    isRight: true,
  };
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

const RECOVERIES: RecoveriesInput = { scale: 0.01, runs: 3, rows: [1, 5], repeaters: [1, 2], seed: 1 };
const UNDISTURBED = { steps: 9000, wallSeconds: 36, stepWorkSeconds: 0.002, digest: 'right' };

test('campaign 002: all kinds meet the same deaths, by the rates of the table, and save by the pattern', () => {
  const runs = recoveriesRuns(RECOVERIES, UNDISTURBED);
  expect(recoveriesRuns(RECOVERIES, UNDISTURBED)).toEqual(runs);
  expect(runs).toHaveLength(18);
  for (const row of [1, 5])
    for (let index = 0; index < 3; index++) {
      const alike = runs.filter((run) => run.row === row && run.index === index);
      expect(alike.map(({ repeaters }) => repeaters).sort()).toEqual([0, 1, 2]);
      expect(new Set(alike.map(({ deaths }) => JSON.stringify(deaths))).size).toBe(1);
      for (const { deaths } of alike)
        for (const [i, { level, ranks, step }] of deaths.entries()) {
          // The copy of a rank's image lies at the next one.
          expect(ranks).toEqual(level === 1 ? [ranks[0]] : [ranks[0], (ranks[0] + 1) % 4]);
          expect(step).toBeGreaterThanOrEqual(i === 0 ? 1 : deaths[i - 1].step + 8);
          expect(step).toBeLessThan(9000);
        }
    }
  // Who comes first changes: no kind gains by what a machine does at that time.
  expect(new Set([0, 3, 6].map((i) => runs[i].repeaters))).toEqual(new Set([0, 1, 2]));
  // 60.00 s and 18.97 s of the paper, in steps of 4 ms, and 10.95 and 5.48 saves of level 1 for each of level 2.
  expect(runs[0].everySteps).toEqual([150, 1650]);
  expect(runs.at(-1)?.everySteps).toEqual([47, 235]);
  expect(runs[0].costSeconds).toEqual([0.01, 0.06]);
  const many = recoveriesRuns({ ...RECOVERIES, runs: 200, rows: [5] }, UNDISTURBED).filter(({ repeaters }) => repeaters === 0);
  const count = (level: number): number =>
    many.reduce((sum, { deaths }) => sum + deaths.filter((one) => one.level === level).length, 0) / 200;
  expect(Math.abs(count(1) - 20)).toBeLessThan(1.5);
  expect(Math.abs(count(2) - 4)).toBeLessThan(0.6);
});

test.each([
  [{ scale: 0 }, '--scale 0: expected a share'],
  [{ runs: 0 }, '--runs 0: expected'],
  [{ rows: [6] }, '--rows 6: expected different rows of the table, from 1 to 5'],
  [{ rows: [1, 1] }, '--rows 1,1'],
  [{ repeaters: [0] }, '--repeaters 0: expected'],
])('campaign 002: %o makes no sense', (more, text) => {
  expect(() => checkRecoveries({ ...RECOVERIES, ...more })).toThrow(text);
});

test('campaign 002: judged is the mean of the pairs in each row, and the plate of each job', () => {
  const input = { ...RECOVERIES, runs: 2, rows: [2], repeaters: [1] };
  const outcome = (wallSeconds: number, digest = 'right', clockSeconds = wallSeconds): RecoveriesOutcome => {
    return { wallSeconds, clockSeconds, failures: [5, 1], inPlace: 5, lostSteps: 9, restartSeconds: [0.1, 0.2], digest };
  };
  /** Times of coordinated and asynchronous jobs, pair by pair. */
  const played = (times: readonly (readonly [number, number])[]): RecoveriesPlayed[] =>
    recoveriesRuns(input, UNDISTURBED).map((run) => ({ run, outcome: outcome(times[run.index][run.repeaters]) }));
  const well = campaign002(
    input,
    UNDISTURBED,
    played([
      [42, 41],
      [44, 38],
    ]),
  );
  expect(well.problems).toEqual([]);
  const { cells } = well.data as { cells: Record<string, number>[] };
  expect(cells.map(({ overheadSeconds }) => overheadSeconds)).toEqual([7, 3.5]);
  const gain = { seconds: 3.5, errorSeconds: 2.5 };
  expect(cells[1]).toMatchObject({ gain, wallGain: gain, reduction: 0.5, failures: [5, 1] });
  expect(cells[1].restartSeconds).toBeCloseTo(0.15, 9);
  expect(well.lines.at(-1)).toMatch(/asynchronous, k = 1 +3.50 s +5.0 \/ 1.0 +150 ms +3.50 ± 2.50 s +3.50 ± 2.50 s +50 % +25 % +31 %$/);
  // The machine was slower by a tenth while the second asynchronous job ran.
  const slower = recoveriesRuns(input, UNDISTURBED).map((run): RecoveriesPlayed => {
    if (run.repeaters === 0) return { run, outcome: outcome(42) };
    return { run, outcome: run.index === 0 ? outcome(41) : outcome(45.1, 'right', 41) };
  });
  const judged = campaign002(input, UNDISTURBED, slower);
  expect(judged.problems).toEqual([]);
  const [, cell] = (judged.data as { cells: RecoveriesCell[] }).cells;
  expect(cell.gain?.seconds).toBeCloseTo(1, 9);
  expect(cell.gain?.errorSeconds).toBeCloseTo(0, 9);
  expect(cell.wallGain?.seconds).toBeCloseTo(-1.05, 9);
  // One pair may be the other way round, but not the mean.
  expect(
    campaign002(
      input,
      UNDISTURBED,
      played([
        [42, 43],
        [44, 38],
      ]),
    ).problems,
  ).toEqual([]);
  expect(
    campaign002(
      input,
      UNDISTURBED,
      played([
        [42, 45],
        [44, 43],
      ]),
    ).problems,
  ).toEqual(['MTBF 7.2 and 36 s, asynchronous, k = 1: 1.00 s longer than coordinated recovery by the mean of 2 pairs']);
  const [first, ...others] = played([
    [42, 41],
    [44, 38],
  ]);
  expect(campaign002(input, UNDISTURBED, [{ run: first.run, outcome: outcome(42, 'wrong') }, ...others]).problems).toEqual([
    'row 2, run 1, coordinated: the plate differs from the undisturbed one',
  ]);
  expect(campaign002(input, UNDISTURBED, [{ run: first.run, outcome: undefined }, ...others]).problems).toEqual([
    'row 2, run 1, coordinated: the job came to no end',
  ]);
});

test('campaign 002: the clock of a job runs as fast as its processors', () => {
  const clock = new JobClock(0.002, 1000);
  expect(clock.secondsAt(3000)).toBe(2);
  // Half as fast at one rank, as fast as ever at another one.
  clock.pace(0, 0.004, 3000);
  expect(clock.secondsAt(5000)).toBeCloseTo(3, 9);
  clock.pace(1, 0.002, 5000);
  expect(clock.secondsAt(8000)).toBeCloseTo(5, 9);
  clock.pace(0, 0.002, 8000);
  expect(clock.secondsAt(9000)).toBeCloseTo(6, 9);
  // In a job that is too short to tell it is that on the wall.
  const short = new JobClock(undefined, 1000);
  short.pace(0, 0.004, 1000);
  expect(short.secondsAt(3000)).toBe(2);
  // It does not go back.
  expect(clock.secondsAt(7000)).toBeCloseTo(5, 9);
  const pace = new Pace();
  const told = Array.from({ length: 60 }, (_, step) => pace.add(step < 20 ? 1 : step < 40 ? 0.25 : 0.5));
  expect(told.flatMap((mean, step) => (mean === undefined ? [] : [[step, mean]]))).toEqual([
    [39, 0.25],
    [59, 0.5],
  ]);
});

test('campaign 002: strips of a plate have the same bits as the whole plate', () => {
  const rows = 40;
  const whole = strip(rows);
  const scratch = strip(rows);
  const cuts = [0, 16, 40];
  const strips = cuts.slice(1).map((to, i) => ({ from: cuts[i], to, now: strip(to - cuts[i]), scratch: strip(to - cuts[i]) }));
  // It does not only get warm at its edge.
  for (let i = CELLS * SWEEPS; i < CELLS * (SWEEPS + rows); i += 7) whole[i] = i % 101;
  for (let row = 0; row < rows; row++) {
    whole[(SWEEPS + row) * CELLS] = 100;
    whole[(SWEEPS + row + 1) * CELLS - 1] = 0;
  }
  for (const one of strips) ownRows(one.now).set(part(whole, SWEEPS + one.from, SWEEPS + one.to));
  for (let step = 0; step < 3; step++) {
    relax(whole, scratch, false, false);
    const [above, below] = strips;
    part(above.now, SWEEPS + 16, 2 * SWEEPS + 16).set(part(below.now, SWEEPS, 2 * SWEEPS));
    part(below.now, 0, SWEEPS).set(part(above.now, 16, SWEEPS + 16));
    relax(above.now, above.scratch, false, true);
    relax(below.now, below.scratch, true, false);
    for (const one of strips)
      expect(Buffer.compare(bytesOf(ownRows(one.now)), bytesOf(part(whole, SWEEPS + one.from, SWEEPS + one.to)))).toBe(0);
  }
});

const bytesOf = ({ buffer, byteOffset, byteLength }: Float64Array): Uint8Array => new Uint8Array(buffer, byteOffset, byteLength);
