// `multirail ft campaign 004`: jobs of real processes that save by the periods that the library plans, while ranks die at random. What saves,
// repeated steps and restores cost them is compared with what the plan says for the same costs. Times are scaled: minutes between failures
// become seconds. Here: when who dies, and the verdict. The jobs are in tools/cli/ft-campaign.ts.
import { MultirailError } from '../../src/errors.ts';
import { overheadOf } from '../../src/ft/plan/hierarchical.ts';
import { Prng } from '../../src/util/prng.ts';
import { columns, type Finding, percent, signed } from './papers.ts';

/** Measured overhead against the plan's, relative. */
const BAND = 0.25;
/** Work of a job, of the time until the last failure: with what failures cost it is over before that. */
const WORK_SHARE = 0.55;

export interface PeriodsInput {
  readonly ranks: number;
  /** One row of the table for each. */
  readonly mtbfSeconds: readonly number[];
  /** What a save keeps the program from, at least: the program of these jobs waits so long while it is saved. */
  readonly costSeconds: number;
  /** Processes that stand by: at most so many failures of each job; it is over before all of them have come. */
  readonly failures: number;
  readonly stepSeconds: number;
  readonly seed: number;
}

/** One job. */
export interface PeriodsRun {
  readonly mtbfSeconds: number;
  readonly costSeconds: number;
  readonly stepSeconds: number;
  readonly steps: number;
  /** Who dies when, in seconds since the job began. Rank 0 measures, and lives. */
  readonly deaths: readonly { readonly rank: number; readonly atSeconds: number }[];
}

/** What rank 0 has measured. */
export interface PeriodsOutcome {
  readonly wallSeconds: number;
  /** Mean of what a step takes, what is repeated included, and without saves. */
  readonly stepSeconds: number;
  readonly failures: number;
  /** Period at the end, in steps. */
  readonly everySteps: number;
  readonly saves: number;
  /** Mean of what a save has kept the program from. */
  readonly costSeconds: number;
  /** Mean from where a death is known to the program that is called again. */
  readonly restoreSeconds: number;
  /** The state is what it must be. */
  readonly isRight: boolean;
}

/** A job for each time between failures. */
export function periodsRuns({ ranks, mtbfSeconds, costSeconds, failures, stepSeconds, seed }: PeriodsInput): PeriodsRun[] {
  const prng = new Prng(`campaign 004 ${seed}`);
  return mtbfSeconds.map((mtbf): PeriodsRun => {
    if (!(costSeconds < 0.1 * mtbf))
      throw new MultirailError('ERR_ARG', `--cost ${costSeconds} s with --mtbf ${mtbf} s: expected at most a tenth of it`);
    const steps = Math.round((WORK_SHARE * failures * mtbf) / stepSeconds);
    // The gaps are the quantiles of the exponential distribution in a drawn order, so that their mean is the time between failures.
    const quantiles = Array.from({ length: failures }, (_, i) => -Math.log(1 - (i + 0.5) / failures));
    const mean = quantiles.reduce((sum, gap) => sum + gap, 0) / failures;
    let atSeconds = 0;
    const deaths = prng.shuffle(quantiles).map((gap) => {
      atSeconds += (gap / mean) * mtbf;
      return { rank: 1 + prng.below(ranks - 1), atSeconds };
    });
    return { mtbfSeconds: mtbf, costSeconds, stepSeconds, steps, deaths };
  });
}

export interface PeriodsPlayed {
  readonly run: PeriodsRun;
  /** Undefined: it came to no end. */
  readonly outcome: PeriodsOutcome | undefined;
}

interface Judged {
  readonly mtbfSeconds: number;
  readonly periodSeconds: number;
  readonly measured: number;
  readonly planned: number;
}

/** Shares of the run's time: measured, and by formula (4) of the paper for the period and the costs of that job. */
export function judgePeriods({ run, outcome }: PeriodsPlayed): Judged | undefined {
  if (outcome === undefined) return undefined;
  const { costSeconds, restoreSeconds, stepSeconds } = outcome;
  const periodSeconds = outcome.everySteps * stepSeconds + costSeconds;
  const model = { mtbfSeconds: run.mtbfSeconds, groups: 1, costSeconds, restoreSeconds, alpha: 0, rho: 1, lambda: 1, beta: 0 };
  return {
    mtbfSeconds: run.mtbfSeconds,
    periodSeconds,
    measured: 1 - (run.steps * stepSeconds) / outcome.wallSeconds,
    planned: overheadOf(periodSeconds, model),
  };
}

/** One line for each job, while the campaign goes on. */
export function periodsLine({ run, outcome }: PeriodsPlayed): string {
  const job = `MTBF ${run.mtbfSeconds} s`;
  if (outcome === undefined) return `${job}: the job came to no end`;
  return `${job}: ${outcome.failures} failures and ${outcome.saves} saves in ${outcome.wallSeconds.toFixed(1)} s`;
}

/** The table, and what lies outside of the band. */
export function campaign004(input: PeriodsInput, played: readonly PeriodsPlayed[]): Finding {
  const rows: string[][] = [['MTBF', 'save', 'restore', 'period', 'failures', 'measured', 'plan', '']];
  const problems: string[] = [];
  const judged = played.map((one) => {
    const job = `MTBF ${one.run.mtbfSeconds} s`;
    const found = judgePeriods(one);
    const { outcome } = one;
    if (found === undefined || outcome === undefined) {
      problems.push(`${job}: the job came to no end`);
      return undefined;
    }
    if (!outcome.isRight) problems.push(`${job}: the result differs from that of one process`);
    if (outcome.failures === 0) problems.push(`${job}: nobody died`);
    const off = found.measured / found.planned - 1;
    if (!(Math.abs(off) <= BAND))
      problems.push(
        `${job}: overhead ${percent(found.measured, 1)}, and the plan says ${percent(found.planned, 1)}: ${signed(100 * off, 0)} %`,
      );
    const ms = (seconds: number): string => `${(1000 * seconds).toFixed(0)} ms`;
    rows.push([
      `${one.run.mtbfSeconds} s`,
      ms(outcome.costSeconds),
      ms(outcome.restoreSeconds),
      ms(found.periodSeconds),
      String(outcome.failures),
      percent(found.measured, 1),
      percent(found.planned, 1),
      `${signed(100 * off, 0)} %`,
    ]);
    return found;
  });
  return { lines: columns(rows), data: { ...input, played, judged }, problems };
}
