// `multirail ft campaign 004`: jobs of real processes that save by the periods that the library plans, or by given ones, while ranks die at random.
// What saves, repeated steps and restores cost them is compared with what the model says for the same costs. Times are scaled: minutes between
// failures become seconds. Here: when who dies, and the verdict. The jobs are in tools/cli/ft-campaign.ts.
import { MultirailError } from '../../src/errors.ts';
import { Placement } from '../../src/ft/checkpoint/placement.ts';
import { blocks, membersOf } from '../../src/ft/groups/groups.ts';
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
  /** Groups of ranks that save one after the other, and go back by themselves; 1: all go back together. */
  readonly groups: number;
  /** Periods, a job for each; none: those that the library plans. */
  readonly everySteps: readonly number[];
  readonly seed: number;
}

/** One job. */
export interface PeriodsRun {
  readonly mtbfSeconds: number;
  readonly costSeconds: number;
  readonly stepSeconds: number;
  readonly steps: number;
  readonly groups: number;
  /** Undefined: as the library plans. */
  readonly everySteps?: number;
  /** Who dies when, in seconds since the job began. Rank 0 measures, and lives. */
  readonly deaths: readonly { readonly rank: number; readonly atSeconds: number }[];
}

/** What rank 0 has measured. */
export interface PeriodsOutcome {
  readonly wallSeconds: number;
  /** Mean of what a step takes in which nobody saves, what is repeated included. */
  readonly stepSeconds: number;
  readonly failures: number;
  /** Of these, how many took only a group back. */
  readonly inPlace: number;
  /** Period at the end, in steps. */
  readonly everySteps: number;
  readonly saves: number;
  /** Mean of what a save has kept the program from. */
  readonly costSeconds: number;
  /** From a death to programs that run again, for each failure: down time and restart of the model. */
  readonly restoreSeconds: number;
  /** The state is what it must be. */
  readonly isRight: boolean;
}

/**
 * Who may die: one rank of each group, none of which has the copies of another one. Rank 0 measures, and lives.
 *
 * @throws ERR_ARG: groups are too small for that.
 */
function victimsOf(ranks: number, groups: number): number[] {
  if (groups === 1) return Array.from({ length: ranks - 1 }, (_, i) => i + 1);
  const groupOf = blocks(groups, ranks);
  const placement = new Placement(groupOf, 1, 1);
  const victims: number[] = [];
  const areApart = (one: number, other: number): boolean =>
    !placement.holders(one, 0).includes(other) && !placement.holders(other, 0).includes(one);
  for (let group = 0; group < groups; group++) {
    const found = membersOf(groupOf, group).find((rank) => rank > 0 && victims.every((victim) => areApart(victim, rank)));
    if (found === undefined)
      throw new MultirailError('ERR_ARG', `--groups ${groups} of ${ranks} ranks: expected more ranks in a group (-n)`);
    victims.push(found);
  }
  return victims;
}

/** A job for each time between failures, and each period. */
export function periodsRuns(input: PeriodsInput): PeriodsRun[] {
  const { ranks, mtbfSeconds, costSeconds, failures, stepSeconds, groups, everySteps, seed } = input;
  for (const every of everySteps)
    if (!Number.isSafeInteger(every) || every < 1) throw new MultirailError('ERR_ARG', `--periods: ${every}; expected steps, from 1`);
  const prng = new Prng(`campaign 004 ${seed}`);
  const victims = victimsOf(ranks, groups);
  return mtbfSeconds.flatMap((mtbf): PeriodsRun[] => {
    if (!(costSeconds < 0.1 * mtbf))
      throw new MultirailError('ERR_ARG', `--cost ${costSeconds} s with --mtbf ${mtbf} s: expected at most a tenth of it`);
    const steps = Math.round((WORK_SHARE * failures * mtbf) / stepSeconds);
    // The gaps are the quantiles of the exponential distribution in a drawn order, so that their mean is the time between failures.
    const quantiles = Array.from({ length: failures }, (_, i) => -Math.log(1 - (i + 0.5) / failures));
    const mean = quantiles.reduce((sum, gap) => sum + gap, 0) / failures;
    const draw = (): PeriodsRun['deaths'] => {
      let atSeconds = 0;
      return prng.shuffle([...quantiles]).map((gap) => {
        atSeconds += (gap / mean) * mtbf;
        return { rank: prng.pick(victims), atSeconds };
      });
    };
    const job = { mtbfSeconds: mtbf, costSeconds, stepSeconds, steps, groups };
    if (everySteps.length === 0) return [{ ...job, deaths: draw() }];
    return everySteps.map((every) => ({ ...job, everySteps: every, deaths: draw() }));
  });
}

const nameOf = ({ mtbfSeconds, everySteps }: PeriodsRun): string =>
  `MTBF ${mtbfSeconds} s${everySteps === undefined ? '' : `, a save every ${everySteps} steps`}`;

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
  const { mtbfSeconds, groups } = run;
  // Neighbours wait for each other in each step: nothing goes on while a group saves.
  const periodSeconds = outcome.everySteps * stepSeconds + groups * costSeconds;
  const model = { mtbfSeconds, groups, costSeconds, restoreSeconds, alpha: 0, rho: 1, lambda: 1, beta: 0 };
  return {
    mtbfSeconds,
    periodSeconds,
    measured: 1 - (run.steps * stepSeconds) / outcome.wallSeconds,
    planned: overheadOf(periodSeconds, model),
  };
}

/** One line for each job, while the campaign goes on. */
export function periodsLine({ run, outcome }: PeriodsPlayed): string {
  const job = nameOf(run);
  if (outcome === undefined) return `${job}: the job came to no end`;
  return `${job}: ${outcome.failures} failures and ${outcome.saves} saves in ${outcome.wallSeconds.toFixed(1)} s`;
}

/** The table, and what lies outside of the band. */
export function campaign004(input: PeriodsInput, played: readonly PeriodsPlayed[]): Finding {
  const rows: string[][] = [['MTBF', 'save', 'restore', 'period', 'failures', 'measured', 'plan', '']];
  const problems: string[] = [];
  const judged = played.map((one) => {
    const job = nameOf(one.run);
    const found = judgePeriods(one);
    const { outcome } = one;
    if (found === undefined || outcome === undefined) {
      problems.push(`${job}: the job came to no end`);
      return undefined;
    }
    if (!outcome.isRight) problems.push(`${job}: the result differs from that of one process`);
    if (outcome.failures === 0) problems.push(`${job}: nobody died`);
    if (one.run.groups > 1 && outcome.inPlace < outcome.failures)
      problems.push(
        `${job}: after ${outcome.failures - outcome.inPlace} of ${outcome.failures} failures all went back, and not a group alone`,
      );
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
