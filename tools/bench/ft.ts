// The test of processes that die, as a rank runs it: what a barrier, agree() and shrink() take while all live; then the last rank kills itself,
// and each survivor tells when it learned of that, what the first agreement and the first shrink took, and when the next communicator was
// there. With processes that stand by, one is called in, and the next death follows on the communicator of the old size.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MultirailError } from '../../src/errors.ts';
import type { Communicator } from '../../src/mpi/communicator.ts';
import { Op } from '../../src/mpi/op.ts';
import type { Runtime } from '../../src/mpi/runtime.ts';
import { median } from './osu.ts';

export interface FtOptions {
  /** Repetitions of each call while all live. */
  iterations: number;
  warmup: number;
  /** Deaths, one after the other; from the second on, each needs a process that stands by. */
  deaths: number;
  /** Blocking calls instead of promises. */
  sync: boolean;
}

/** What was measured before a death, in the order of the table; microseconds. */
export const CALLS = ['barrier', 'agree', 'shrink'] as const;
/** What was measured of a death; microseconds. */
export const DEATH_TIMES = ['learned', 'firstAgree', 'firstShrink', 'shrunk', 'replaced'] as const;
export type DeathTime = (typeof DEATH_TIMES)[number];

/** The longest that any survivor saw. `replaced` is undefined where nobody was called in. */
export type Death = Record<Exclude<DeathTime, 'replaced'>, number> & { replaced: number | undefined };

export interface FtFigures {
  ranks: number;
  /** Medians at rank 0. */
  callsUs: Record<(typeof CALLS)[number], number>;
  deaths: Death[];
}

/** Processes that stand by are waited for, before a death. */
const STANDBY_WAIT_MS = 10_000;
/** All are in the barrier by then. */
const BEFORE_DEATH_MS = 20;
const SHRINKS_MAX = 50;

const TITLES: Record<DeathTime, string> = {
  learned: 'death to the last survivor that learned',
  firstAgree: 'first agree() after it',
  firstShrink: 'first shrink() after that',
  shrunk: 'death to shrunk',
  replaced: 'death to replaced',
};
const TITLE_WIDTH = 42;
const FIELD_WIDTH = 14;

const now = (): number => Number(process.hrtime.bigint()) / 1000;
const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Each call in the form that is measured. */
function formOf(sync: boolean) {
  return {
    barrier: async (comm: Communicator) => (sync ? comm.barrierSync() : await comm.barrier()),
    agree: async (comm: Communicator) => (sync ? comm.agreeSync(1) : await comm.agree(1)),
    shrink: async (comm: Communicator) => (sync ? comm.shrinkSync() : await comm.shrink()),
    replace: async (comm: Communicator) => (sync ? comm.replaceSync() : await comm.replace()),
  };
}
type Form = ReturnType<typeof formOf>;

async function mostOf(comm: Communicator, own: readonly number[]): Promise<number[]> {
  const most = new Float64Array(own.length);
  await comm.allreduce(Float64Array.from(own), most, Op.MAX);
  return [...most];
}

async function callsWhileAllLive(comm: Communicator, form: Form, { iterations, warmup }: FtOptions): Promise<FtFigures['callsUs']> {
  const time = async (count: number, call: () => Promise<() => Promise<void>>) => {
    const times: number[] = [];
    for (let i = 0; i < warmup + count; i++) {
      await form.barrier(comm);
      const fromUs = now();
      const after = await call();
      if (i >= warmup) times.push(now() - fromUs);
      await after();
    }
    return median(times);
  };
  const nothing = async () => undefined;
  return {
    barrier: await time(iterations, async () => {
      await form.barrier(comm);
      return nothing;
    }),
    agree: await time(iterations, async () => {
      await form.agree(comm);
      return nothing;
    }),
    shrink: await time(Math.min(iterations, SHRINKS_MAX), async () => {
      const smaller = await form.shrink(comm);
      return () => smaller.free();
    }),
  };
}

/** When a barrier says that somebody has failed; the time at which it did. */
async function learnOfDeath(comm: Communicator, form: Form): Promise<number> {
  for (;;) {
    try {
      await form.barrier(comm);
    } catch (error) {
      if (!(error instanceof MultirailError && error.code === 'ERR_PROC_FAILED')) throw error;
      return now();
    }
  }
}

/** The last rank dies; the others go on. Returns the communicator of the old size, where somebody was called in. */
async function loseOne(
  comm: Communicator,
  form: Form,
  file: string,
  calls: boolean,
): Promise<{ death: Death; full: Communicator | undefined }> {
  await form.barrier(comm);
  if (comm.rank === comm.size - 1) {
    await pause(BEFORE_DEATH_MS);
    writeFileSync(file, String(now()));
    process.kill(process.pid, 'SIGKILL');
    await pause(STANDBY_WAIT_MS);
  }
  const learnedUs = await learnOfDeath(comm, form);
  const agreeFromUs = now();
  await form.agree(comm);
  const shrinkFromUs = now();
  const rest = await form.shrink(comm);
  const shrunkUs = now();
  const diedUs = Number(readFileSync(file, 'utf8'));
  const full = calls ? await form.replace(comm) : undefined;
  const replacedUs = full === undefined ? Number.NaN : now() - diedUs;
  const own = [learnedUs - diedUs, shrinkFromUs - agreeFromUs, shrunkUs - shrinkFromUs, shrunkUs - diedUs, replacedUs];
  const [learned, firstAgree, firstShrink, shrunk, replaced] = await mostOf(rest, own);
  await rest.free();
  return { death: { learned, firstAgree, firstShrink, shrunk, replaced: full === undefined ? undefined : replaced }, full };
}

/** Where the processes of the job are, and what is done next: told by rank 0 to those that come in. */
interface Course {
  file: string;
  deathsLeft: number;
}

async function waitForStandby(mpi: Runtime): Promise<boolean> {
  const untilMs = performance.now() + STANDBY_WAIT_MS;
  while (mpi.standby.ready === 0 && performance.now() < untilMs) await pause(5);
  return mpi.standby.ready > 0;
}

/** Runs the test. Rank 0 has the figures. */
export async function runFt(mpi: Runtime, options: FtOptions, spares: number): Promise<FtFigures | undefined> {
  const form = formOf(options.sync);
  let comm = mpi.world;
  let course: Course = { file: '', deathsLeft: options.deaths };
  let callsUs: FtFigures['callsUs'] | undefined;
  const folder = comm.rank === 0 ? mkdtempSync(join(tmpdir(), 'multirail-bench-ft-')) : undefined;
  try {
    if (mpi.role === 'initial') {
      callsUs = await callsWhileAllLive(comm, form, options);
      if (folder !== undefined) course.file = join(folder, 'death');
    }
    course = await comm.bcastObject(course);
    const deaths: Death[] = [];
    const ranks = comm.size;
    while (course.deathsLeft > 0) {
      const calls = await comm.bcastObject(comm.rank === 0 && spares > 0 && (await waitForStandby(mpi)));
      const { death, full } = await loseOne(comm, form, course.file, calls);
      deaths.push(death);
      if (full === undefined) break;
      comm = full;
      course = await comm.bcastObject({ ...course, deathsLeft: course.deathsLeft - 1 });
    }
    return callsUs === undefined || mpi.rank !== 0 ? undefined : { ranks, callsUs, deaths };
  } finally {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  }
}

const time = (us: number): string => (us >= 1000 ? `${(us / 1000).toFixed(2)} ms` : `${us.toFixed(1)} us`);

/** The table, for the screen. */
export function ftLines({ callsUs, deaths }: FtFigures): string[] {
  const line = (title: string, ...fields: string[]) =>
    title.padEnd(TITLE_WIDTH) + fields.map((field) => field.padStart(FIELD_WIDTH)).join('');
  const lines = [line('# While all live', 'median'), ...CALLS.map((call) => line(`${call}()`, time(callsUs[call])))];
  lines.push(line(`# Of ${deaths.length} death${deaths.length === 1 ? '' : 's'}, at the slowest survivor`, 'median', 'most'));
  for (const name of DEATH_TIMES) {
    const values = deaths.map((death) => death[name]).filter((value) => value !== undefined);
    if (values.length > 0) lines.push(line(TITLES[name], time(median(values)), time(Math.max(...values))));
  }
  return lines;
}
