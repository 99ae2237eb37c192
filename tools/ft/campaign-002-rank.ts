// The program of `multirail ft campaign 002`: a strip of a heated plate, whose saves and restores take the time that the paper has for them, by
// sleeping, and whose computing is work. It tells the command that has started the job when it begins and ends; that one kills ranks.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { FtJob } from '../../src/ft/recover/job.ts';
import type { FtOptions } from '../../src/ft/recover/options.ts';
import { run } from '../../src/ft/recover/run.ts';
import type { Communicator } from '../../src/mpi/communicator.ts';
import type { Runtime } from '../../src/mpi/runtime.ts';
import { PLATE_RANKS, type RecoveriesOutcome, type RecoveriesRun, type Undisturbed } from './campaign-002.ts';
import { Pace } from './job-clock.ts';
import { Plate } from './plate.ts';

/** What ranks print, one a line, behind `campaign `. */
export type RankWord =
  /** The program of that rank is called, in that process. */
  | { readonly kind: 'begins'; readonly rank: number; readonly process: number; readonly atMs: number }
  /** All have met, and begin to compute. */
  | { readonly kind: 'computes'; readonly atMs: number }
  /** A rank that is to die has come to its step, and waits for that: the number of the death. */
  | { readonly kind: 'reached'; readonly death: number }
  | ({ readonly kind: 'ended'; readonly atMs: number } & Pick<RecoveriesOutcome, 'digest' | 'inPlace' | 'lostSteps'>)
  /** A step of that rank takes so much processor time now. */
  | { readonly kind: 'pace'; readonly rank: number; readonly stepSeconds: number }
  | { readonly kind: 'undisturbed'; readonly undisturbed: Pick<Undisturbed, 'steps' | 'wallSeconds' | 'digest'> };

/**
 * What the ranks of a job are told: a job of the campaign, or to measure the undisturbed one. `folder`: of its saves. `struck`: a folder that has a
 * file for each death that has come (struckFile).
 */
export type RankTask =
  | { readonly run: RecoveriesRun; readonly folder: string; readonly struck: string }
  | { readonly measuredSeconds: number };

/** Whoever comes to the step of a death for a second time goes on. */
export const struckFile = (struck: string, death: number): string => join(struck, String(death));

const ROWS = 768;
/** Steps before those by which a step is measured, and those. */
const WARM_STEPS = 100;
const MEASURED_STEPS = 200;
/** Nothing is ever sent with it: whoever waits for it waits to be killed, and takes part in what its process has to do. */
const NEVER_TAG = 7;

type Say = (word: RankWord) => void;

/** Of this process: after a death its program may begin again. */
const pace = new Pace();

function pacedPlate(comm: Communicator, say: Say): Plate {
  return new Plate(comm, ROWS, (seconds) => {
    const stepSeconds = pace.add(seconds);
    if (stepSeconds !== undefined) say({ kind: 'pace', rank: comm.rank, stepSeconds });
  });
}

const pause = new Int32Array(new SharedArrayBuffer(4));
const sleep = (seconds: number): void => void Atomics.wait(pause, 0, 0, 1000 * seconds);

/** `print` takes a line. */
export async function campaign002AsRank(mpi: Runtime, task: RankTask, print: (line: string) => void): Promise<void> {
  const say: Say = (word) => print(`campaign ${JSON.stringify(word)}`);
  if ('measuredSeconds' in task) await run(mpi, { domain: 'process' }, (job) => measure(job, task.measuredSeconds, say));
  else await run(mpi, optionsOf(task.run, task.folder), (job) => play(job, task, mpi.process, say));
  await mpi.finalize();
}

function optionsOf({ repeaters, everySteps }: RecoveriesRun, folder: string): FtOptions {
  return {
    recovery: repeaters === 0 ? 'coordinated' : 'asynchronous',
    domain: 'process',
    levels: [{ level: 'memory' }, { level: 'disk', folder }],
    everySteps: [...everySteps],
    saving: 'blocking',
    helpers: Math.max(0, repeaters - 1),
  };
}

/** The undisturbed job, without saves: so many steps as take that time. */
async function measure({ comm }: FtJob, seconds: number, say: Say): Promise<void> {
  const first = new Plate(comm, ROWS);
  let fromMs = 0;
  for (let step = 0; step < WARM_STEPS + MEASURED_STEPS; step++) {
    if (step === WARM_STEPS) fromMs = performance.now();
    await first.step();
  }
  const steps = Int32Array.of(Math.max(2, Math.round((1000 * seconds * MEASURED_STEPS) / (performance.now() - fromMs))));
  await comm.bcast(steps, 0);
  const plate = pacedPlate(comm, say);
  await comm.barrier();
  const beganMs = performance.now();
  for (let step = 0; step < steps[0]; step++) await plate.step();
  const digest = await plate.digest();
  const wallSeconds = (performance.now() - beganMs) / 1000;
  if (digest !== undefined) say({ kind: 'undisturbed', undisturbed: { steps: steps[0], wallSeconds, digest } });
}

async function play(job: FtJob, { run, struck }: Extract<RankTask, { run: unknown }>, process: number, say: Say): Promise<void> {
  const { steps, everySteps, costSeconds, restoreSeconds, deaths } = run;
  const { comm, recovery } = job;
  const { rank, size } = comm;
  if (size !== PLATE_RANKS) throw new Error(`${size} ranks`);
  const plate = pacedPlate(comm, say);
  let step = 0;
  job.protect('plate', plate.own);
  job.protectValue('step', {
    save: () => {
      sleep(costSeconds[step % everySteps[1] === 0 ? 1 : 0]);
      return step;
    },
    restore: (value: number) => {
      step = value;
    },
  });
  // Who helps does not come further than this.
  job.onHelp((team) => plate.help(team));
  say({ kind: 'begins', rank, process, atMs: Date.now() });
  if (recovery !== undefined) sleep(restoreSeconds[recovery.level === 'disk' ? 1 : 0]);
  if (step === 0) {
    await comm.barrier();
    if (rank === 0) say({ kind: 'computes', atMs: Date.now() });
  }
  while (step < steps) {
    await plate.step(job);
    step++;
    const death = deaths.findIndex((one) => one.step === step && one.ranks[0] === rank);
    if (death >= 0 && !existsSync(struckFile(struck, death))) {
      say({ kind: 'reached', death });
      await comm.recv(new Uint8Array(1), (rank + 1) % size, NEVER_TAG);
    }
    await job.next();
  }
  const digest = await plate.digest();
  if (digest !== undefined) {
    const { inPlace, lostSteps } = job.total;
    say({ kind: 'ended', atMs: Date.now(), digest, inPlace, lostSteps });
  }
}
