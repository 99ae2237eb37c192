// `multirail ft table 002`: table 3 of paper 002, simulated again: how long a job of an hour takes when it fails, with coordinated and with
// asynchronous recovery. The paper leaves two things open, which are options here: what a failure of level 1 costs to restore in the
// asynchronous columns, and which levels are recovered asynchronously.
import { Moments } from '../../src/ft/plan/exponential.ts';
import { type MultilevelJob, type Recovery, runByEvents, runBySteps } from '../../src/ft/plan/multilevel-run.ts';
import { pattern } from '../../src/ft/plan/pattern.ts';
import { Prng } from '../../src/util/prng.ts';
import { type Cell002, columns, type Finding, INPUT_002, percent, signed, TABLE_002 } from './papers.ts';

export interface Table002Options {
  runs: number;
  /** Step by step, as the paper's figure 7 has it, instead of by events. */
  steps: boolean;
  /** Seconds that a failure of level 1 costs to restore in the asynchronous columns. */
  restore1: number;
  /** Levels that are recovered asynchronously. */
  asynchronous: 'all' | 'level-1';
  seed: number;
}

/** The text says 0.5 s for level 1; with 4 s, which is what it says for level 2, every mean fits. */
export const LITERAL_RESTORE = INPUT_002.restoreSeconds[0];
export const FITTED_RESTORE = 4;

/** Bands, as shares of the paper's values. */
const COORDINATED_MEAN = 0.04;
const COORDINATED_DEVIATION = 0.15;
const FITTED_MEAN = 0.06;
/** Read literally, the means lie below the paper's, up to this much. */
const LITERAL_MEAN = 0.16;
/** With level 1 alone recovered asynchronously, every deviation is above the paper's by more than this: that reading is excluded. */
const EXCLUDED_DEVIATION = 0.25;
const PATTERN_MAX = 0.06;

interface Cell {
  repeaters: number;
  restore1: number;
  mean: number;
  deviation: number;
  failures: number[];
  paper: Cell002;
  /** As shares of the paper's values. */
  meanOff: number;
  deviationOff: number;
}

function simulate(mtbfSeconds: readonly number[], recovery: Recovery, restore1: number, paper: Cell002, options: Table002Options): Cell {
  const { workSeconds, costSeconds, restoreSeconds, stepSeconds } = INPUT_002;
  const { periodSeconds } = pattern({ mtbfSeconds, costSeconds });
  const job: MultilevelJob = { mtbfSeconds, costSeconds, workSeconds, periodSeconds, restoreSeconds: [restore1, restoreSeconds[1]] };
  const prng = new Prng(`${options.seed}/${mtbfSeconds.join(',')}/${recovery.repeaters}/${recovery.asynchronousLevels}/${restore1}`);
  const moments = new Moments();
  const failures = mtbfSeconds.map(() => 0);
  for (let i = 0; i < options.runs; i++) {
    const run = options.steps ? runBySteps(job, recovery, stepSeconds, prng) : runByEvents(job, recovery, prng);
    moments.add(run.overheadSeconds);
    for (const [level, count] of run.failures.entries()) failures[level] += count / options.runs;
  }
  const { mean, deviation } = moments;
  return {
    repeaters: recovery.repeaters,
    restore1,
    mean,
    deviation,
    failures,
    paper,
    meanOff: mean / paper.mean - 1,
    deviationOff: deviation / paper.deviation - 1,
  };
}

/** What is wrong with a cell, or undefined. */
function judge(cell: Cell, options: Table002Options): string | undefined {
  const { repeaters, restore1, mean, deviation, paper, meanOff, deviationOff } = cell;
  const meanText = `mean ${mean.toFixed(0)} s is ${signed(100 * meanOff)} % from the paper's ${paper.mean} s`;
  const deviationText = `σ ${deviation.toFixed(0)} s is ${signed(100 * deviationOff)} % from the paper's ${paper.deviation} s`;
  if (repeaters === 0) {
    if (Math.abs(meanOff) > COORDINATED_MEAN) return `${meanText}, and may be ${percent(COORDINATED_MEAN, 0)}`;
    return Math.abs(deviationOff) > COORDINATED_DEVIATION ? `${deviationText}, and may be ${percent(COORDINATED_DEVIATION, 0)}` : undefined;
  }
  if (options.asynchronous === 'level-1')
    return deviationOff > EXCLUDED_DEVIATION ? undefined : `${deviationText}: this reading is not excluded by σ, as it should be`;
  if (restore1 === FITTED_RESTORE)
    return Math.abs(meanOff) > FITTED_MEAN ? `${meanText}, and may be ${percent(FITTED_MEAN, 0)}` : undefined;
  if (restore1 === LITERAL_RESTORE)
    return meanOff > 0 || meanOff < -LITERAL_MEAN ? `${meanText}, and should be up to ${percent(LITERAL_MEAN, 0)} below` : undefined;
  return undefined;
}

function cellText({ mean, deviation, failures, paper, meanOff, deviationOff }: Cell): string[] {
  return [
    `${mean.toFixed(0)} s`,
    `${paper.mean}`,
    `${signed(100 * meanOff)} %`,
    `${deviation.toFixed(0)} s`,
    `${paper.deviation}`,
    `${signed(100 * deviationOff, 0)} %`,
    `${failures.map((count) => count.toFixed(1)).join(' / ')}`,
    paper.failures.map((count) => count.toFixed(1)).join(' / '),
  ];
}

export function table002(options: Table002Options): Finding {
  const problems: string[] = [];
  const readings = options.restore1 === LITERAL_RESTORE ? [LITERAL_RESTORE] : [options.restore1, LITERAL_RESTORE];
  const asynchronousLevels = options.asynchronous === 'all' ? 2 : 1;
  const lines: string[] = [
    `Paper 002, table 3: seconds beyond an hour of work, ${options.runs.toLocaleString('en-US')} runs a cell, ${options.steps ? `in steps of ${INPUT_002.stepSeconds} s` : 'by events'}. Saves cost 1 and 6 s.`,
    "The column after each of our values is the paper's, then the deviation; n counts failures of level 1 / 2.",
  ];
  const data: unknown[] = [];
  for (const row of TABLE_002) {
    const { mtbfSeconds, coordinated, two, five } = row;
    const { workSeconds, counts, periodSeconds } = pattern({ mtbfSeconds, costSeconds: INPUT_002.costSeconds });
    const title = `MTBF ${mtbfSeconds.join(' and ')} s`;
    const together = simulate(mtbfSeconds, { repeaters: 0, asynchronousLevels: 0 }, LITERAL_RESTORE, coordinated, options);
    const cells = [
      together,
      ...readings.flatMap((restore1) =>
        [[2, two] as const, [5, five] as const].map(([repeaters, paper]) =>
          simulate(mtbfSeconds, { repeaters, asynchronousLevels }, restore1, paper, options),
        ),
      ),
    ];
    if (Math.abs(workSeconds - row.workSeconds) > PATTERN_MAX || Math.abs(counts[0] - row.count) > PATTERN_MAX / 10)
      problems.push(
        `${title}: the pattern is ${workSeconds.toFixed(1)} s with ${counts[0].toFixed(2)} saves, and ${row.workSeconds} s with ${row.count} were expected`,
      );
    const nameOf = ({ repeaters, restore1 }: Cell): string =>
      repeaters === 0 ? 'coordinated' : `asynchronous, k = ${repeaters}, ${restore1} s per restore of level 1`;
    for (const one of cells) {
      const wrong = judge(one, options);
      if (wrong !== undefined) problems.push(`${title}, ${nameOf(one)}: ${wrong}`);
    }
    lines.push(
      '',
      `${title}: W ${workSeconds.toFixed(1)} s, N1 ${counts[0].toFixed(2)}, P1 ${periodSeconds[0].toFixed(2)} s`,
      ...columns([
        ['', 'mean', 'paper', '', 'σ', 'paper', '', 'n', 'paper', 'gain', 'paper'],
        ...cells.map((one) => [
          `  ${nameOf(one)}`,
          ...cellText(one),
          ...(one.repeaters === 0 ? [] : [percent(1 - one.mean / together.mean, 0), percent(1 - one.paper.mean / coordinated.mean, 0)]),
        ]),
      ]),
    );
    data.push({ mtbfSeconds, workSeconds, counts, periodSeconds, cells });
  }
  const misprint = simulate([240, 1800], { repeaters: 0, asynchronousLevels: 0 }, LITERAL_RESTORE, TABLE_002[3].coordinated, options);
  if (Math.abs(misprint.meanOff) <= COORDINATED_MEAN)
    problems.push(`row 4 with 1800 s as printed gives ${misprint.mean.toFixed(0)} s, and should not fit`);
  lines.push(
    '',
    `Row 4 prints 1800 s for level 2. Its text says T/3, which is 1200 s; with 1800 s the coordinated mean would be ${misprint.mean.toFixed(0)} s and not ${misprint.paper.mean} s, and n2 = 3.7 would not fit.`,
    ...verdicts(options),
  );
  return { lines, data: { options, rows: data, misprint }, problems };
}

function verdicts({ restore1, asynchronous }: Table002Options): string[] {
  const coordinated = `Bands: coordinated means within ${percent(COORDINATED_MEAN, 0)} and σ within ${percent(COORDINATED_DEVIATION, 0)}`;
  if (asynchronous === 'level-1')
    return [
      `${coordinated}. With level 1 alone recovered asynchronously, σ is more than ${percent(EXCLUDED_DEVIATION, 0)} above the paper's in every cell: the paper has not simulated that.`,
    ];
  if (restore1 === FITTED_RESTORE)
    return [
      `${coordinated}; asynchronous means within ${percent(FITTED_MEAN, 0)} with ${FITTED_RESTORE} s per restore of level 1, which is a fitted reading: the paper says ${LITERAL_RESTORE} s, which leaves the means up to ${percent(LITERAL_MEAN, 0)} below.`,
      "σ of the asynchronous columns is below the paper's in the later rows in every reading that was tried, and is not judged.",
    ];
  if (restore1 === LITERAL_RESTORE)
    return [
      `${coordinated}; asynchronous means up to ${percent(LITERAL_MEAN, 0)} below the paper's with ${LITERAL_RESTORE} s per restore of level 1, as it says.`,
    ];
  return [`${coordinated}. Asynchronous cells with ${restore1} s per restore of level 1 are not judged: no band was set for them.`];
}
