// `multirail ft campaign 002`: table 3 of paper 002 with real processes. A heated plate on four ranks loses some of them by the table's rates; all go
// back to the last save, or the dead ones alone, and both meet the same deaths in the same steps. Times are scaled: an hour becomes 36 s with 0.01. A
// failure of level 1 is the death of one rank, one of level 2 that of a rank and of whoever has the copy of its image. Here: who dies when, and
// the verdict. The jobs are in tools/cli/ft-campaign-002.ts.
import { MultirailError } from '../../src/errors.ts';
import { exponential } from '../../src/ft/plan/exponential.ts';
import { pattern } from '../../src/ft/plan/pattern.ts';
import { receiver } from '../../src/ft/plan/scheme.ts';
import { Prng } from '../../src/util/prng.ts';
import { columns, type Finding, INPUT_002, meanOf, percent, TABLE_002, totalOf } from './papers.ts';

export const PLATE_RANKS = 4;
/** Each rank is a failure domain, and its image has one copy. */
const SCHEME = { domains: PLATE_RANKS, duplication: 1, depth: 1 } as const;
/** From one death to the next there are so many steps at least: no rank comes that far while a place is empty. */
const STEPS_BETWEEN = 8;
/** Processes that stand by beyond those that die: helpers of two successors at once. */
const SPARES_MORE = 2;
const PROCESSES_MAX = 128;

export interface RecoveriesInput {
  readonly scale: number;
  /** Runs of each kind in each row. */
  readonly runs: number;
  /** Rows of the table, from 1. */
  readonly rows: readonly number[];
  /** Processes that repeat what a dead one has done: k of the paper. */
  readonly repeaters: readonly number[];
  readonly seed: number;
}

/** What the undisturbed job was like. */
export interface Undisturbed {
  readonly steps: number;
  readonly wallSeconds: number;
  /** Processor time of a step at one rank; undefined: the job was too short to tell. */
  readonly stepWorkSeconds: number | undefined;
  readonly digest: string;
}

/** Ranks that die at once. */
export interface PlannedDeath {
  /** When the first of them comes to the end of that step for the first time: as much work is done then in jobs of all kinds. */
  readonly step: number;
  readonly level: 1 | 2;
  readonly ranks: readonly number[];
}

/** One job. */
export interface RecoveriesRun {
  readonly row: number;
  /** Of its kind and row, from 0: those of all kinds with the same one meet the same deaths. */
  readonly index: number;
  /** 0: all go back. */
  readonly repeaters: number;
  readonly steps: number;
  /** Steps between two saves of each level. */
  readonly everySteps: readonly [number, number];
  readonly costSeconds: readonly [number, number];
  readonly restoreSeconds: readonly [number, number];
  readonly deaths: readonly PlannedDeath[];
  readonly spares: number;
}

export interface RecoveriesOutcome {
  readonly wallSeconds: number;
  /** By the clock of the job. */
  readonly clockSeconds: number;
  /** Deaths of each level that have come. */
  readonly failures: readonly [number, number];
  /** Failures after which the dead alone went back, and steps that were done again, as the job counts them. */
  readonly inPlace: number;
  readonly lostSteps: number;
  /** From each death until the program of whoever takes the place begins. */
  readonly restartSeconds: readonly number[];
  readonly digest: string;
}

export interface RecoveriesPlayed {
  readonly run: RecoveriesRun;
  /** Undefined: it came to no end. */
  readonly outcome: RecoveriesOutcome | undefined;
}

const scaled = (pair: readonly [number, number], scale: number): [number, number] => [pair[0] * scale, pair[1] * scale];

export const kindName = (repeaters: number): string => (repeaters === 0 ? 'coordinated' : `asynchronous, k = ${repeaters}`);

/** Times between deaths are those of work that is done: what recoveries take is not counted, so jobs of all kinds meet as many. */
function deathsOf(mtbfSeconds: readonly number[], steps: number, stepSeconds: number, prng: Prng): PlannedDeath[] {
  const deaths: PlannedDeath[] = [];
  for (const level of [1, 2] as const) {
    for (let at = 0; ; ) {
      at += exponential(prng, mtbfSeconds[level - 1]);
      const step = 1 + Math.floor(at / stepSeconds);
      const rank = prng.below(PLATE_RANKS);
      if (step >= steps) break;
      deaths.push({ step, level, ranks: level === 1 ? [rank] : [rank, receiver(rank, 1, 0, SCHEME)] });
    }
  }
  deaths.sort((a, b) => a.step - b.step);
  let least = 1;
  const apart = deaths.map((death) => {
    const step = Math.max(death.step, least);
    least = step + STEPS_BETWEEN;
    return { ...death, step };
  });
  return apart.filter(({ step }) => step < steps);
}

/** Work of a job. */
export const workSeconds = ({ scale }: Pick<RecoveriesInput, 'scale'>): number => INPUT_002.workSeconds * scale;

/** Throws ERR_ARG for what makes no sense. */
export function checkRecoveries({ scale, runs, rows, repeaters }: RecoveriesInput): void {
  if (!(scale > 0 && scale <= 1))
    throw new MultirailError('ERR_ARG', `--scale ${scale}: expected a share of an hour, above 0 and at most 1`);
  if (!Number.isInteger(runs) || runs < 1) throw new MultirailError('ERR_ARG', `--runs ${runs}: expected a whole number from 1`);
  const isRow = (row: number): boolean => Number.isInteger(row) && row >= 1 && row <= TABLE_002.length;
  if (rows.length === 0 || !rows.every(isRow) || new Set(rows).size < rows.length)
    throw new MultirailError('ERR_ARG', `--rows ${rows.join(',')}: expected different rows of the table, from 1 to ${TABLE_002.length}`);
  if (
    repeaters.length === 0 ||
    !repeaters.every((k) => Number.isInteger(k) && k >= 1 && k <= 8) ||
    new Set(repeaters).size < repeaters.length
  )
    throw new MultirailError('ERR_ARG', `--repeaters ${repeaters.join(',')}: expected different whole numbers from 1 to 8`);
}

/** All jobs, in the order in which they are played: who comes first of those that meet the same deaths changes from run to run. */
export function recoveriesRuns(input: RecoveriesInput, { steps, wallSeconds }: Undisturbed): RecoveriesRun[] {
  checkRecoveries(input);
  const { scale, runs, rows, repeaters, seed } = input;
  const stepSeconds = wallSeconds / steps;
  const costSeconds = scaled(INPUT_002.costSeconds, scale);
  const restoreSeconds = scaled(INPUT_002.restoreSeconds, scale);
  return rows.flatMap((row) => {
    const mtbfSeconds = scaled(TABLE_002[row - 1].mtbfSeconds, scale);
    const { periodSeconds, counts } = pattern({ mtbfSeconds, costSeconds });
    const often = Math.max(1, Math.round(periodSeconds[0] / stepSeconds));
    const everySteps: [number, number] = [often, often * Math.round(counts[0])];
    return Array.from({ length: runs }, (_, index) => {
      const deaths = deathsOf(mtbfSeconds, steps, stepSeconds, new Prng(`campaign 002 ${seed}/${row}/${index}`));
      const spares = totalOf(deaths.map(({ ranks }) => ranks.length)) + SPARES_MORE;
      if (PLATE_RANKS + spares > PROCESSES_MAX)
        throw new MultirailError('ERR_ARG', `--scale ${scale}: ${spares} processes would have to stand by in row ${row}`);
      const kinds = [0, ...repeaters];
      const turned = [...kinds.slice(index % kinds.length), ...kinds.slice(0, index % kinds.length)];
      return turned.map((k): RecoveriesRun => {
        return { row, index, repeaters: k, steps, everySteps, costSeconds, restoreSeconds, deaths, spares };
      });
    }).flat();
  });
}

const ms = (seconds: number): string => (Number.isFinite(seconds) ? `${(1000 * seconds).toFixed(0)} ms` : '');

/** One line for each job, while the campaign goes on. */
export function recoveriesLine({ run, outcome }: RecoveriesPlayed, runs: number): string {
  const job = `row ${run.row}, run ${run.index + 1} of ${runs}, ${kindName(run.repeaters)}`;
  if (outcome === undefined) return `${job}: the job came to no end`;
  const { failures, wallSeconds, clockSeconds, restartSeconds, inPlace, lostSteps } = outcome;
  return `${job}: ${failures[0]} + ${failures[1]} failures in ${clockSeconds.toFixed(2)} s by its clock, ${wallSeconds.toFixed(2)} s by the wall, ${inPlace} ranks recovered in place, ${lostSteps} steps repeated${restartSeconds.length === 0 ? '' : `, restarts of ${ms(meanOf(restartSeconds))}`}`;
}

/** A kind of recovery in one row. */
export interface RecoveriesCell {
  readonly row: number;
  readonly repeaters: number;
  readonly runs: number;
  /** Means; the overhead is what a job took beyond the undisturbed one. It and the gain are by the clocks of the jobs. */
  readonly overheadSeconds: number;
  readonly failures: readonly [number, number];
  readonly restartSeconds: number;
  /** Undefined for coordinated recovery itself. */
  readonly gain: Gain | undefined;
  readonly wallGain: Gain | undefined;
  /** Of the coordinated overhead. */
  readonly reduction: number | undefined;
}

/** Mean of what coordinated recovery took longer with the same deaths, and the standard error of that mean. */
export interface Gain {
  readonly seconds: number;
  readonly errorSeconds: number;
}

function gainOf(pairs: readonly (readonly [coordinated: number, own: number])[]): Gain {
  const gains = pairs.map(([coordinated, own]) => coordinated - own);
  const seconds = meanOf(gains);
  const spread = totalOf(gains.map((one) => (one - seconds) ** 2));
  return { seconds, errorSeconds: Math.sqrt(spread / Math.max(1, gains.length - 1) / gains.length) };
}

function cellOf(row: number, repeaters: number, played: readonly RecoveriesPlayed[], undisturbed: Undisturbed): RecoveriesCell | undefined {
  const of = (k: number): Map<number, RecoveriesOutcome> =>
    new Map(played.flatMap(({ run, outcome }) => (run.row === row && run.repeaters === k && outcome ? [[run.index, outcome]] : [])));
  const own = of(repeaters);
  const others = of(0);
  const shared = [...own.keys()].filter((index) => others.has(index));
  if (shared.length === 0) return undefined;
  const outcomes = [...own.values()];
  const timesOf = (time: (outcome: RecoveriesOutcome) => number): [coordinated: number, own: number][] =>
    shared.map((index) => [time(others.get(index) as RecoveriesOutcome), time(own.get(index) as RecoveriesOutcome)]);
  const pairs = timesOf(({ clockSeconds }) => clockSeconds);
  const [coordinated, overhead] = [0, 1].map((kind) => meanOf(pairs.map((pair) => pair[kind])) - undisturbed.wallSeconds);
  const isItself = repeaters === 0;
  return {
    row,
    repeaters,
    runs: shared.length,
    overheadSeconds: overhead,
    failures: [meanOf(outcomes.map(({ failures }) => failures[0])), meanOf(outcomes.map(({ failures }) => failures[1]))],
    restartSeconds: meanOf(outcomes.flatMap(({ restartSeconds }) => restartSeconds)),
    gain: isItself ? undefined : gainOf(pairs),
    wallGain: isItself ? undefined : gainOf(timesOf(({ wallSeconds }) => wallSeconds)),
    reduction: isItself ? undefined : 1 - overhead / coordinated,
  };
}

/** The table, and what is wrong: asynchronous recovery is to take less time in every row, by the mean of the pairs. */
export function campaign002(input: RecoveriesInput, undisturbed: Undisturbed, played: readonly RecoveriesPlayed[]): Finding {
  const { scale, rows, repeaters } = input;
  const problems: string[] = [];
  for (const { run, outcome } of played) {
    const job = `row ${run.row}, run ${run.index + 1}, ${kindName(run.repeaters)}`;
    if (outcome === undefined) problems.push(`${job}: the job came to no end`);
    else if (outcome.digest !== undisturbed.digest) problems.push(`${job}: the plate differs from the undisturbed one`);
  }
  const cells = rows.flatMap((row) => [0, ...repeaters].flatMap((k) => cellOf(row, k, played, undisturbed) ?? []));
  const gainText = (gain: Gain | undefined): string => (gain ? `${gain.seconds.toFixed(2)} ± ${gain.errorSeconds.toFixed(2)} s` : '');
  const lines: string[][] = [
    ['MTBF', 'recovery', 'overhead', 'n1 / n2', 'restart', 'difference', 'by the wall', 'reduction', 'paper, k = 2', 'k = 5'],
  ];
  for (const cell of cells) {
    const { mtbfSeconds, measured } = TABLE_002[cell.row - 1];
    const [first, second] = scaled(mtbfSeconds, scale);
    const title = `${Number(first.toPrecision(3))} and ${Number(second.toPrecision(3))} s`;
    const { gain, wallGain, reduction } = cell;
    if (gain !== undefined && !(gain.seconds > 0))
      problems.push(
        `MTBF ${title}, ${kindName(cell.repeaters)}: ${(-gain.seconds).toFixed(2)} s longer than coordinated recovery by the mean of ${cell.runs} pairs`,
      );
    lines.push([
      cell.repeaters === 0 ? title : '',
      kindName(cell.repeaters),
      `${cell.overheadSeconds.toFixed(2)} s`,
      cell.failures.map((count) => count.toFixed(1)).join(' / '),
      ms(cell.restartSeconds),
      gainText(gain),
      gainText(wallGain),
      reduction === undefined ? '' : percent(reduction, 0),
      ...(cell.repeaters === 0
        ? ['', '']
        : [percent(1 - measured.two / measured.coordinated, 0), percent(1 - measured.five / measured.coordinated, 0)]),
    ]);
  }
  const { steps, wallSeconds } = undisturbed;
  const [cost, restore] = [scaled(INPUT_002.costSeconds, scale), scaled(INPUT_002.restoreSeconds, scale)].map((pair) =>
    pair.map((seconds) => Number((1000 * seconds).toPrecision(3))).join(' and '),
  );
  return {
    lines: [
      `Paper 002, table 3, by real processes: ${PLATE_RANKS} ranks, undisturbed ${wallSeconds.toFixed(2)} s for ${steps} steps; saves cost ${cost} ms and restores ${restore} ms beside what they take by themselves.`,
      'Overhead is the mean time beyond the undisturbed job; restart the mean time from a death until the program of the successor begins; difference the mean by which coordinated recovery took longer with the same deaths, with its standard error. The paper has measured reductions of 13 to 53 %, on clusters.',
      'Both are by the clock of each job: it runs as fast as the processors do at that time, by the processor time of a step next to that in the undisturbed job. The difference by the clock on the wall is beside it. Deaths come in the same steps in jobs of all kinds.',
      ...columns(lines),
    ],
    data: { ...input, undisturbed, played, cells },
    problems,
  };
}
