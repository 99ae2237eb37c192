// `multirail ft campaign 001` and `ft table 001`: plays the jobs of tools/ft/campaign-001.ts and table-001.ts one after the other.
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { MultirailError } from '../../src/errors.ts';
import { type RunOptions, startJob } from '../../src/launch/run/launcher.ts';
import { runWithRelaunches } from '../../src/launch/run/restarts.ts';
import {
  campaign001,
  type FaultEnd,
  type FaultPlayed,
  type FaultsInput,
  faultLine,
  faultRuns,
  injectText,
  PRODUCT_RANKS,
  PRODUCT_ROWS,
} from '../ft/campaign-001.ts';
import type { ProductTask, ProductWord } from '../ft/campaign-001-rank.ts';
import { type Finding, meanOf, TABLE_001 } from '../ft/papers.ts';
import {
  checkScale,
  relaunchesOf,
  TABLE_STEPS,
  type TableEnd,
  type TableJob,
  type TablePlayed,
  table001,
  tableJobs,
} from '../ft/table-001.ts';
import { inFolder, type Listened, listen, rankCommand, toldToEnd } from './ft-campaign.ts';

/** A job without replicas that is caught in a loop is ended after so many times what an undisturbed one takes, and some seconds. */
const STUCK_FACTOR = 5;
const STUCK_MORE_MS = 3000;
const PAIRED_LIMIT_MS = 120_000;
const TABLE_LIMIT_FACTOR = 20;
/** Passes over each row while the work is measured that makes up the paper's time. */
const MEASURED_PASSES = 4;
function wordsIn(file: string): ProductWord[] {
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as ProductWord);
}

const optionsOf = (task: ProductTask, replicas: number, inject: string | undefined, { stream }: Listened): RunOptions => ({
  size: PRODUCT_RANKS,
  command: rankCommand('001', task),
  ...(replicas === 1 ? {} : { replicas }),
  mca: { ft_job: 'table-001', ...(inject === undefined ? {} : { ft_inject: inject }) },
  stdinTo: 'none',
  stdout: stream,
  stderr: stream,
  forwardSignals: true,
});

/** Runs a job, which is ended after that time. */
async function runFor(options: RunOptions, limitMs: number) {
  const job = await startJob(options);
  let isStuck = false;
  const timer = setTimeout(() => {
    isStuck = true;
    job.end(`the job has not ended after ${Math.round(limitMs / 1000)} s`);
  }, limitMs);
  try {
    const result = await job.result;
    if (result.wasTold && !isStuck) throw toldToEnd();
    return { ...result, isStuck };
  } finally {
    clearTimeout(timer);
  }
}

async function strike(task: ProductTask, replicas: number, inject: string | undefined, limitMs: number): Promise<FaultEnd> {
  rmSync(task.file, { force: true });
  const listener = listen();
  const { exitCode, isStuck } = await runFor(optionsOf(task, replicas, inject, listener), limitMs);
  const ended = wordsIn(task.file).find((word) => word.kind === 'ended');
  return { exitCode, isStuck, isRight: ended?.kind === 'ended' ? ended.isRight : undefined, said: listener.said() };
}

/** Plays the campaign; `say` gets a line for each fault as soon as its two jobs have ended. */
export async function playFaults(input: FaultsInput, say: (text: string) => void): Promise<Finding> {
  const runs = faultRuns(input);
  return await inFolder(async (folder) => {
    const task: ProductTask = { rows: PRODUCT_ROWS, passes: 1, saves: undefined, file: join(folder, 'words.jsonl') };
    const fromMs = performance.now();
    const undisturbed = await strike(task, 1, undefined, PAIRED_LIMIT_MS);
    if (undisturbed.isRight !== true)
      throw new MultirailError('ERR_LAUNCH', `the job without a fault has no right product:\n${undisturbed.said.trimEnd()}`);
    const stuckMs = STUCK_MORE_MS + STUCK_FACTOR * (performance.now() - fromMs);
    const played: FaultPlayed[] = [];
    for (const fault of runs) {
      const paired = await strike(task, input.replicas ?? 2, injectText(fault, true), PAIRED_LIMIT_MS);
      const single = await strike(task, 1, injectText(fault, false), stuckMs);
      const one = { fault, paired, single };
      played.push(one);
      say(faultLine(one, input.faults));
    }
    return campaign001(input, played);
  });
}

// ---------------------------------------------------------------- the table

/** Seconds of a job without replicas, from its start to its end. */
async function alone(task: ProductTask, limitMs: number): Promise<number> {
  const fromMs = performance.now();
  const listener = listen();
  const { exitCode } = await runFor(optionsOf(task, 1, undefined, listener), limitMs);
  if (exitCode !== 0) throw new MultirailError('ERR_LAUNCH', `the product without replicas came to no end:\n${listener.said().trimEnd()}`);
  return (performance.now() - fromMs) / 1000;
}

async function playTableJob(
  folder: string,
  job: TableJob,
  passes: number,
  limitMs: number,
): Promise<{ end: TableEnd | undefined; said: string }> {
  const file = join(folder, 'words.jsonl');
  const saves = join(folder, 'saves');
  for (const one of [file, saves]) rmSync(one, { recursive: true, force: true });
  const task: ProductTask = {
    rows: TABLE_STEPS,
    passes,
    file,
    saves: job.everySteps === undefined ? undefined : { folder: saves, everySteps: job.everySteps },
  };
  const listener = listen();
  const endsMs: number[] = [];
  const beganMs = Date.now();
  const fromMs = performance.now();
  const relaunches = { onDiverged: relaunchesOf(job), onDeath: 0 };
  const { exitCode } = await runWithRelaunches(optionsOf(task, 2, job.inject, listener), relaunches, async (options) => {
    const result = await runFor(options, limitMs);
    endsMs.push(Date.now());
    return result;
  });
  const wallSeconds = (performance.now() - fromMs) / 1000;
  const words = wordsIn(file);
  const begins = words.filter((word) => word.kind === 'begins');
  const gathered = words.find((word) => word.kind === 'gathered');
  const ended = words.find((word) => word.kind === 'ended');
  if (exitCode !== 0 || gathered === undefined || ended?.kind !== 'ended') return { end: undefined, said: listener.said() };
  const end: TableEnd = {
    wallSeconds,
    startSeconds: (begins[0].atMs - beganMs) / 1000,
    tailSeconds: (endsMs[endsMs.length - 1] - gathered.atMs) / 1000,
    restartSeconds: begins.slice(1).map(({ atMs }, i) => (atMs - endsMs[i]) / 1000),
    // Saves are counted from 0, and those of the table from 1.
    begunWith: begins.map(({ save }) => (save === undefined ? undefined : save + 1)),
    isRight: ended.isRight,
  };
  return { end, said: listener.said() };
}

/** The one of the median time; undefined where one came to no end. */
function middleOf(ends: readonly (TableEnd | undefined)[]): TableEnd | undefined {
  if (ends.includes(undefined)) return undefined;
  const sorted = [...(ends as TableEnd[])].sort((a, b) => a.wallSeconds - b.wallSeconds);
  return sorted[Math.floor(sorted.length / 2)];
}

/** What several plays of a struck job have come to: their mean times. What only one of them does is what counts, if it is wrong. */
function together(all: readonly (TableEnd | undefined)[]): TableEnd | undefined {
  if (all.includes(undefined)) return undefined;
  const ends = all as readonly TableEnd[];
  const mean = (of: (end: TableEnd) => number): number => meanOf(ends.map(of));
  const [first] = ends;
  const other = ends.find(({ begunWith }) => begunWith.join() !== first.begunWith.join()) ?? first;
  return {
    wallSeconds: mean(({ wallSeconds }) => wallSeconds),
    startSeconds: mean(({ startSeconds }) => startSeconds),
    tailSeconds: mean(({ tailSeconds }) => tailSeconds),
    restartSeconds: ends.flatMap(({ restartSeconds }) => restartSeconds),
    begunWith: other.begunWith,
    isRight: ends.every(({ isRight }) => isRight),
  };
}

/** Plays the jobs of the table, each struck one so often; `say` gets a line for each. */
export async function playTable(scale: number, runs: number, say: (text: string) => void): Promise<Finding> {
  checkScale(scale);
  const oneMs = 1000 * scale * TABLE_001.oneInstance;
  const limitMs = 60_000 + TABLE_LIMIT_FACTOR * oneMs;
  return await inFolder(async (folder) => {
    const file = (name: string): string => join(folder, name);
    const task = (passes: number, name = 'alone.jsonl'): ProductTask => ({ rows: TABLE_STEPS, passes, saves: undefined, file: file(name) });
    const bare = await alone(task(1), limitMs);
    const some = await alone(task(1 + MEASURED_PASSES), limitMs);
    const passes = 1 + Math.max(0, Math.round((MEASURED_PASSES * (oneMs / 1000 - bare)) / Math.max(0.001, some - bare)));
    say(`each row is computed ${passes} times`);
    const oneSeconds = await alone(task(passes), limitMs);
    say(`row 1: ${oneSeconds.toFixed(2)} s`);
    const both = await Promise.all([alone(task(passes, 'first.jsonl'), limitMs), alone(task(passes, 'second.jsonl'), limitMs)]);
    const twoSeconds = Math.max(...both);
    say(`row 2: ${twoSeconds.toFixed(2)} s`);
    const played: TablePlayed[] = [];
    const play = async (job: TableJob): Promise<TableEnd | undefined> => {
      const { end, said } = await playTableJob(folder, job, passes, limitMs);
      const how = end === undefined ? 'the job came to no end' : `${end.wallSeconds.toFixed(2)} s`;
      say(`row ${job.row}, ${job.moment ?? 'no fault'}: ${how}`);
      if (end === undefined) say(said.trimEnd());
      return end;
    };
    const jobs = tableJobs();
    for (const undisturbed of jobs.filter(({ moment }) => moment === undefined)) {
      const ends = [await play(undisturbed)];
      const struck = jobs
        .filter(({ row, moment }) => row === undisturbed.row && moment !== undefined)
        .map((job) => ({ job, ends: [] as (TableEnd | undefined)[], around: [] as (TableEnd | undefined)[] }));
      for (let run = 0; run < runs; run++)
        for (const one of struck) {
          one.ends.push(await play(one.job));
          ends.push(await play(undisturbed));
          one.around.push(...ends.slice(-2));
        }
      played.push({ job: undisturbed, end: middleOf(ends), around: [] });
      for (const { job, ends: plays, around } of struck) played.push({ job, end: together(plays), around });
    }
    return table001(scale, { oneSeconds, twoSeconds, played });
  });
}
