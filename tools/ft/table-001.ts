// `multirail ft table 001`: table 1 of paper 001 with real processes, in scaled time. A matrix product runs alone, twice at once, by pairs that
// compare, and by pairs that also save; a fault strikes at the beginning, in the middle or at the end, and is found at the gather. Here: the jobs,
// the model that each is held against, and the verdict. They are played by tools/cli/ft-campaign-001.ts.
import { MultirailError } from '../../src/errors.ts';
import { triesOf } from '../../src/ft/plan/relaunch.ts';
import { columns, type Finding, meanOf, percent, signed, TABLE_001 } from './papers.ts';

/** Of a job's time, by the model that was measured in the same run. */
const BAND = 0.1;
/** Steps of the product: two seconds of the paper's each. */
const SECONDS_A_STEP = 2;
export const TABLE_STEPS = Math.round(TABLE_001.detection / SECONDS_A_STEP);

export const MOMENTS = ['beginning', 'middle', 'end'] as const;
export type Moment = (typeof MOMENTS)[number];
/** Share of the work at which the fault strikes: before the first save, between those around the half, and behind the last. */
const STRIKES: Readonly<Record<Moment, number>> = { beginning: 0.01, middle: 0.5, end: 0.98 };

/** A job of the table. */
export interface TableJob {
  /** Of the paper's table. */
  readonly row: number;
  readonly moment: Moment | undefined;
  /** Steps between two saves; undefined: nothing is saved. */
  readonly everySteps: number | undefined;
  readonly saves: number;
  /** As `--inject` takes it; undefined: nothing is struck. */
  readonly inject: string | undefined;
}

/** What became of it, in seconds. */
export interface TableEnd {
  readonly wallSeconds: number;
  /** From its start to where its program runs. */
  readonly startSeconds: number;
  /** From where the rows are gathered to its end: nothing of it is done before a fault is found. */
  readonly tailSeconds: number;
  /** From the end of one start of the job to where the program of the next one runs. */
  readonly restartSeconds: readonly number[];
  /** By start: the save that it has begun with; undefined: none. */
  readonly begunWith: readonly (number | undefined)[];
  readonly isRight: boolean;
}

export interface TablePlayed {
  readonly job: TableJob;
  readonly end: TableEnd | undefined;
  /** Of a job that is struck: the same without a fault, right before it and right behind it, since a machine has faster minutes and slower ones. */
  readonly around: readonly (TableEnd | undefined)[];
}

const injectAt = (moment: Moment): string => `flip:rank=1,replica=shadow,at=${100 * STRIKES[moment]}%,buffer=B,bits=1,seed=1`;

/** Every job of the rows 3 to 6. Rows 1 and 2 are products without replicas: one, and two at once. */
export function tableJobs(): TableJob[] {
  const jobs: TableJob[] = [];
  const add = (row: number, everySteps: number | undefined): void => {
    const saves = everySteps === undefined ? 0 : Math.floor(TABLE_STEPS / everySteps);
    for (const moment of [undefined, ...MOMENTS]) jobs.push({ row, moment, everySteps, saves, inject: moment && injectAt(moment) });
  };
  add(3, undefined);
  for (const [i, { intervalSeconds }] of TABLE_001.recovery.entries()) add(4 + i, intervalSeconds / SECONDS_A_STEP);
  return jobs;
}

/** Relaunches that a job needs at most. */
export const relaunchesOf = ({ saves }: TableJob): number => saves + 1;

/** The newest save that has not the fault; 0: none. */
function goodSave({ moment, saves, everySteps }: TableJob): number {
  if (moment === undefined || everySteps === undefined) return 0;
  return Math.min(saves, Math.floor((STRIKES[moment] * TABLE_STEPS) / everySteps));
}

export interface TableMeasured {
  readonly oneSeconds: number;
  readonly twoSeconds: number;
  readonly played: readonly TablePlayed[];
}

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
const s = (value: number): string => `${value.toFixed(2)} s`;

/** The table beside the paper's, and what lies outside of its band. */
export function table001(scale: number, { oneSeconds, twoSeconds, played }: TableMeasured): Finding {
  const problems: string[] = [];
  const endOf = (row: number, moment: Moment | undefined): TableEnd | undefined =>
    played.find(({ job }) => job.row === row && job.moment === moment)?.end;
  const detection = endOf(3, undefined)?.wallSeconds ?? Number.NaN;
  const restarts = played.flatMap(({ end }) => end?.restartSeconds ?? []);
  const restart = median(restarts);
  const rows = played.map(({ job, end, around }) => {
    const title = `row ${job.row}, ${job.moment ?? 'no fault'}`;
    if (end === undefined) {
      problems.push(`${title}: the job came to no end`);
      return [title, '', '', '', '', '', ''];
    }
    if (!end.isRight) problems.push(`${title}: the product is wrong`);
    const { row, moment, saves, everySteps } = job;
    const save = saves === 0 ? 0 : ((endOf(row, undefined)?.wallSeconds ?? Number.NaN) - detection) / saves;
    const paper = paperOf(row, moment);
    if (moment === undefined) return [title, s(end.wallSeconds), '', '', '', '', paper === undefined ? 'lost' : s(paper)];
    const good = goodSave(job);
    const tries = saves === 0 ? [0] : triesOf(good, { saves });
    const expected = tries.map((number) => (number === 0 ? undefined : number));
    const begun = end.begunWith.slice(1);
    if (begun.length !== expected.length || begun.some((number, i) => number !== expected[i]))
      problems.push(
        `${title}: gone back to ${begun.map((n) => n ?? 'the beginning').join(', ')}, and ${expected.map((n) => n ?? 'the beginning').join(', ')} were expected`,
      );
    // What was done until that save, with those before it, is not done again, and neither is the start, which a restart has in it. A try ends where
    // the rows are gathered.
    const undisturbed = (of: (one: TableEnd) => number): number => meanOf(around.map((one) => (one === undefined ? Number.NaN : of(one))));
    const total = undisturbed(({ wallSeconds }) => wallSeconds);
    const work = undisturbed(({ wallSeconds, startSeconds, tailSeconds }) => wallSeconds - startSeconds - tailSeconds);
    const interval = everySteps === undefined ? 0 : (everySteps / TABLE_STEPS) * (work - saves * save);
    const repeats = tries.reduce((sum, number) => sum + work - number * (interval + save), 0);
    const model = total + repeats + tries.length * restart;
    const off = end.wallSeconds / model - 1;
    if (!(Math.abs(off) <= BAND))
      problems.push(`${title}: ${s(end.wallSeconds)}, and the model says ${s(model)}: ${signed(100 * off, 0)} %`);
    return [
      title,
      s(end.wallSeconds),
      s(model),
      `${signed(100 * off)} %`,
      String(tries.length),
      saves === 0 ? '' : s(save),
      paper === undefined ? 'lost' : s(paper),
    ];
  });
  return {
    lines: [
      `Paper 001, table 1, by real processes, ${percent(scale, 1)} of its time: ${TABLE_STEPS} steps of a matrix product by four pairs of replicas.`,
      `Row 1, one product alone: ${s(oneSeconds)} (paper ${TABLE_001.oneInstance} s); row 2, two at once: ${s(twoSeconds)} (${TABLE_001.twoInstances} s). Detection costs ${signed(100 * (detection / twoSeconds - 1))} % over two at once (paper ${percent(TABLE_001.detection / TABLE_001.twoInstances - 1)}). A restart takes ${s(restart)}.`,
      '',
      ...columns([['', 'measured', 'model', 'deviation', 'tries', 'a save', 'paper'], ...rows]),
      '',
      'The model: the time without a fault, and for each try a restart and what is done again until the rows are gathered. Row 6 is lost in the text of the paper that is at hand.',
    ],
    data: { scale, oneSeconds, twoSeconds, detectionSeconds: detection, restartSeconds: restart, played },
    problems,
  };
}

function paperOf(row: number, moment: Moment | undefined): number | undefined {
  if (row === 3) return moment === undefined ? TABLE_001.detection : TABLE_001.relaunched[MOMENTS.indexOf(moment)];
  const { noFault, faults } = TABLE_001.recovery[row - 4];
  return moment === undefined ? noFault : faults?.[moment];
}

/** Throws ERR_ARG for what makes no sense. */
export function checkScale(scale: number): void {
  if (!(scale > 0 && scale <= 1))
    throw new MultirailError('ERR_ARG', `--scale ${scale}: expected a share of the paper's time, above 0 and at most 1`);
}
