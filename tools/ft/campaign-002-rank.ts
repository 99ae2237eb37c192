// The program of `multirail ft campaign 002`: a strip of a heated plate, whose saves and restores take the time that the paper has for them, by
// sleeping, and whose computing is work. It tells the command that has started the job when it begins and ends; that one kills ranks.
import { createHash } from 'node:crypto';
import type { FtJob } from '../../src/ft/recover/job.ts';
import type { FtOptions } from '../../src/ft/recover/options.ts';
import { run } from '../../src/ft/recover/run.ts';
import type { Communicator } from '../../src/mpi/communicator.ts';
import type { Runtime } from '../../src/mpi/runtime.ts';
import { PLATE_RANKS, type RecoveriesRun, type Undisturbed } from './campaign-002.ts';
import { CELLS, ownRows, part, relax, SWEEPS, strip } from './heat-strip.ts';

/** What ranks print, one a line, behind `campaign `. */
export type RankWord =
  /** The program of that rank is called, in that process. */
  | { readonly kind: 'begins'; readonly rank: number; readonly process: number; readonly atMs: number }
  /** All have met, and begin to compute. */
  | { readonly kind: 'computes'; readonly atMs: number }
  | { readonly kind: 'ended'; readonly atMs: number; readonly digest: string; readonly inPlace: number; readonly lostSteps: number }
  | { readonly kind: 'undisturbed'; readonly undisturbed: Undisturbed };

/** What the ranks of a job are told: a job of the campaign, or to measure the undisturbed one. */
export type RankTask = { readonly run: RecoveriesRun; readonly folder: string } | { readonly measuredSeconds: number };

const ROWS = 96;
/** Steps before those by which a step is measured, and those. */
const WARM_STEPS = 100;
const MEASURED_STEPS = 200;

type Say = (word: RankWord) => void;

const pause = new Int32Array(new SharedArrayBuffer(4));
const sleep = (seconds: number): void => void Atomics.wait(pause, 0, 0, 1000 * seconds);

/** Rows of one of a team, among those of a strip: from, and to before. */
function shareOf({ size }: Communicator, rank: number): [from: number, to: number] {
  return [Math.floor((rank * ROWS) / size), Math.floor(((rank + 1) * ROWS) / size)];
}

const spaceOf = (team: Communicator, rank: number): Float64Array => {
  const [from, to] = shareOf(team, rank);
  return strip(to - from);
};

/** What a helper does: rows come with those around them, and its own go back. */
async function help(team: Communicator, rank: number, size: number): Promise<void> {
  const now = spaceOf(team, team.rank);
  const scratch = spaceOf(team, team.rank);
  for (;;) {
    await team.recv(now, 0, 0);
    relax(now, scratch, true, team.rank < team.size - 1 || rank < size - 1);
    await team.send(ownRows(now), 0, 0);
  }
}

class Plate {
  readonly now = strip(ROWS);
  private readonly scratch = strip(ROWS);
  private readonly comm: Communicator;

  constructor(comm: Communicator) {
    this.comm = comm;
  }

  get own(): Float64Array {
    return ownRows(this.now);
  }

  /** A step of a successor with those that help it; the strip is as it was until all have done their part. */
  private async relaxWith(team: Communicator, hasAbove: boolean): Promise<void> {
    const { now } = this;
    const pieces = Array.from({ length: team.size }, (_, rank) => {
      const [from, to] = shareOf(team, rank);
      return part(now, from, to + 2 * SWEEPS).slice();
    });
    const moves: Promise<unknown>[] = [];
    const come = pieces.map((piece) => new Float64Array(ownRows(piece).length));
    for (let helper = 1; helper < team.size; helper++) moves.push(team.send(pieces[helper], helper, 0), team.recv(come[helper], helper, 0));
    relax(pieces[0], spaceOf(team, 0), hasAbove, true);
    come[0] = ownRows(pieces[0]) as Float64Array<ArrayBuffer>;
    await Promise.all(moves);
    for (const [rank, rows] of come.entries()) ownRows(now).set(rows, shareOf(team, rank)[0] * CELLS);
  }

  async step(job?: FtJob): Promise<void> {
    const { comm, now, scratch } = this;
    const { rank, size } = comm;
    const hasAbove = rank > 0;
    const hasBelow = rank < size - 1;
    const moves: Promise<unknown>[] = [];
    if (hasAbove) moves.push(comm.sendrecv(part(now, SWEEPS, 2 * SWEEPS), rank - 1, 0, part(now, 0, SWEEPS), rank - 1, 0));
    if (hasBelow)
      moves.push(comm.sendrecv(part(now, ROWS, ROWS + SWEEPS), rank + 1, 0, part(now, ROWS + SWEEPS, ROWS + 2 * SWEEPS), rank + 1, 0));
    await Promise.all(moves);
    if (job?.replaying === true && job.team.size > 1) {
      try {
        return await this.relaxWith(job.team, hasAbove);
      } catch (error) {
        // A helper is gone: the successor goes on alone.
        if (job.team.size > 1) throw error;
      }
    }
    relax(now, scratch, hasAbove, hasBelow);
  }

  /** Of the whole plate, at rank 0. */
  async digest(): Promise<string | undefined> {
    const { comm, own } = this;
    const all = comm.rank === 0 ? new Float64Array(comm.size * ROWS * CELLS) : null;
    await comm.gather(own, all, 0);
    return all === null ? undefined : createHash('sha256').update(all).digest('hex');
  }
}

/** `print` takes a line. */
export async function campaign002AsRank(mpi: Runtime, task: RankTask, print: (line: string) => void): Promise<void> {
  const say: Say = (word) => print(`campaign ${JSON.stringify(word)}`);
  if ('measuredSeconds' in task) await run(mpi, { domain: 'process' }, (job) => measure(job, task.measuredSeconds, say));
  else await run(mpi, optionsOf(task.run, task.folder), (job) => play(job, task.run, mpi.process, say));
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
  const first = new Plate(comm);
  let fromMs = 0;
  for (let step = 0; step < WARM_STEPS + MEASURED_STEPS; step++) {
    if (step === WARM_STEPS) fromMs = performance.now();
    await first.step();
  }
  const steps = Int32Array.of(Math.max(2, Math.round((1000 * seconds * MEASURED_STEPS) / (performance.now() - fromMs))));
  await comm.bcast(steps, 0);
  const plate = new Plate(comm);
  await comm.barrier();
  const beganMs = performance.now();
  for (let step = 0; step < steps[0]; step++) await plate.step();
  const digest = await plate.digest();
  const wallSeconds = (performance.now() - beganMs) / 1000;
  if (digest !== undefined) say({ kind: 'undisturbed', undisturbed: { steps: steps[0], wallSeconds, digest } });
}

async function play(
  job: FtJob,
  { steps, everySteps, costSeconds, restoreSeconds }: RecoveriesRun,
  process: number,
  say: Say,
): Promise<void> {
  const { comm, recovery } = job;
  const { rank, size } = comm;
  if (size !== PLATE_RANKS) throw new Error(`${size} ranks`);
  const plate = new Plate(comm);
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
  job.onHelp((team) => help(team, rank, size));
  say({ kind: 'begins', rank, process, atMs: Date.now() });
  if (recovery !== undefined) sleep(restoreSeconds[recovery.level === 'disk' ? 1 : 0]);
  if (step === 0) {
    await comm.barrier();
    if (rank === 0) say({ kind: 'computes', atMs: Date.now() });
  }
  while (step < steps) {
    await plate.step(job);
    step++;
    await job.next();
  }
  const digest = await plate.digest();
  if (digest !== undefined) {
    const { inPlace, lostSteps } = job.total;
    say({ kind: 'ended', atMs: Date.now(), digest, inPlace, lostSteps });
  }
}
