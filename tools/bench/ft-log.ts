// The test of logs (recovery: 'asynchronous'), as a rank runs it: what it costs that messages are kept by their senders and digested by their
// receivers. Short and long messages between ranks 0 and 1, a heated plate and an allreduce of all ranks, on a communicator that is logged and on
// one that is not, in turn; and messages and the allreduce without any log in the process, before and after.
import type { FtJob } from '../../src/ft/recover/job.ts';
import { run } from '../../src/ft/recover/run.ts';
import type { Communicator } from '../../src/mpi/communicator.ts';
import type { Runtime } from '../../src/mpi/runtime.ts';
import { figureLine, mostOf, nowMs, rateText } from './ft-figures.ts';
import { median } from './osu.ts';
import { SYNC_TESTS } from './pt2pt-sync.ts';

export interface FtLogOptions {
  /** Measurements of each kind. */
  repeats: number;
  /** Short messages there and back in each. */
  iterations: number;
  /** Rows and columns of the plate. */
  plate: number;
}

/** Medians. Times in microseconds and ms, rates in bytes per second. */
export interface FtLogFigures {
  ranks: number;
  plate: number;
  /** A message of 8 bytes, one way. */
  latency: { withoutLogUs: number; besideUs: number; loggedUs: number; moreUs: number };
  /** Messages of 1 MiB. */
  stream: { copy: number; withoutLog: number; beside: number; logged: number };
  /** A step of the plate; `share`: what logging adds, as the median of the pairs. */
  heat: { besideMs: number; loggedMs: number; share: number };
  /** An allreduce of 8 bytes: through shared memory where there is no log, by messages otherwise. */
  allreduce: { withoutLogUs: number; besideUs: number; loggedUs: number };
}

const SHORT_BYTES = 8;
const LONG_BYTES = 2 ** 20;
const PING_PONGS_WARMUP = 500;
/** 64 MiB: less than makes a save due. */
const WINDOWS = { iterations: 7, warmup: 1 };
const WINDOW = 8;
const STEPS = 40;
const ALLREDUCES = 200;
const MEGA = 1e6;
const SAVE_NEVER = 1_000_000;

/** Between ranks 0 and 1; the others wait in a barrier, without a processor. */
async function latencyUs(world: Communicator, comm: Communicator, iterations: number): Promise<number> {
  const [out, into] = [new Uint8Array(SHORT_BYTES), new Uint8Array(SHORT_BYTES)];
  await world.barrier();
  const us = comm.rank > 1 ? 0 : SYNC_TESTS.latency(comm, out, into, { iterations, warmup: PING_PONGS_WARMUP }, 1)[0];
  await world.barrier();
  return us;
}

async function streamRate(world: Communicator, comm: Communicator): Promise<number> {
  const [out, into] = [new Uint8Array(LONG_BYTES).fill(1), new Uint8Array(LONG_BYTES)];
  await world.barrier();
  const rate = comm.rank > 1 ? 0 : SYNC_TESTS.bw(comm, out, into, WINDOWS, WINDOW)[0];
  await world.barrier();
  return rate * MEGA;
}

/** Time of a call, of the slowest rank. */
async function allreduceUs(world: Communicator, comm: Communicator): Promise<number> {
  const [own, all] = [new Float64Array(1), new Float64Array(1)];
  await world.barrier();
  const fromMs = nowMs();
  for (let i = 0; i < ALLREDUCES; i++) comm.allreduceSync(own, all);
  return (await mostOf(world, (nowMs() - fromMs) / ALLREDUCES)) * 1000;
}

/** As a stream of long messages has it: always the same memory. */
function copyRate(): number {
  const [source, target] = [new Uint8Array(LONG_BYTES).fill(1), new Uint8Array(LONG_BYTES)];
  const count = WINDOW * WINDOWS.iterations;
  const fromMs = nowMs();
  for (let i = 0; i < count; i++) target.set(source);
  return (count * LONG_BYTES) / ((nowMs() - fromMs) / 1000);
}

/** Steps of a plate whose rows are dealt out; the neighbours' rows come by blocking calls. */
class Plate {
  private readonly comm: Communicator;
  private readonly columns: number;
  private readonly rows: number;
  private now: Float64Array;
  private next: Float64Array;

  constructor(comm: Communicator, size: number) {
    this.comm = comm;
    this.columns = size;
    this.rows = Math.ceil(size / comm.size);
    this.now = new Float64Array((this.rows + 2) * size).fill(1);
    this.next = new Float64Array((this.rows + 2) * size);
  }

  /** Time of a step, of the slowest rank. */
  async stepMs(world: Communicator): Promise<number> {
    await world.barrier();
    const fromMs = nowMs();
    for (let step = 0; step < STEPS; step++) this.step();
    return await mostOf(world, (nowMs() - fromMs) / STEPS);
  }

  private step(): void {
    const { comm, columns, rows, now, next } = this;
    const row = (at: number): Float64Array => now.subarray(at * columns, (at + 1) * columns);
    if (comm.rank > 0) comm.sendrecvSync(row(1), comm.rank - 1, 0, row(0), comm.rank - 1, 0);
    if (comm.rank < comm.size - 1) comm.sendrecvSync(row(rows), comm.rank + 1, 0, row(rows + 1), comm.rank + 1, 0);
    for (let at = 1; at <= rows; at++) {
      for (let i = at * columns + 1; i < (at + 1) * columns - 1; i++)
        next[i] = (now[i - 1] + now[i + 1] + now[i - columns] + now[i + columns]) / 4;
    }
    [this.now, this.next] = [next, now];
  }
}

class LogBench {
  private readonly mpi: Runtime;
  private readonly options: FtLogOptions;

  constructor(mpi: Runtime, options: FtLogOptions) {
    this.mpi = mpi;
    this.options = options;
  }

  /** Without any log in the process. */
  private async without(latency: number[], stream: number[], allreduce: number[]): Promise<void> {
    const { world } = this.mpi;
    const { repeats, iterations } = this.options;
    for (let i = 0; i < repeats; i++) {
      latency.push(await latencyUs(world, world, iterations));
      stream.push(await streamRate(world, world));
      allreduce.push(await allreduceUs(world, world));
    }
  }

  private async with(job: FtJob): Promise<{ beside: number[][]; logged: number[][]; copy: number[] }> {
    const { world } = this.mpi;
    const { comm } = job;
    const { repeats, iterations, plate } = this.options;
    const [plain, kept] = [new Plate(world, plate), new Plate(comm, plate)];
    const [beside, logged]: number[][][] = [
      [[], [], [], []],
      [[], [], [], []],
    ];
    const copy: number[] = [];
    // The first time is not counted: code is compiled, and memory is touched.
    for (let i = -1; i < repeats; i++) {
      const times = [
        [await latencyUs(world, world, iterations), await latencyUs(world, comm, iterations)],
        [await streamRate(world, world), await streamRate(world, comm)],
        [await plain.stepMs(world), await kept.stepMs(world)],
        [await allreduceUs(world, world), await allreduceUs(world, comm)],
      ];
      const rate = copyRate();
      // The log is empty again.
      await job.checkpoint();
      if (i < 0) continue;
      copy.push(rate);
      for (const [kind, [one, other]] of times.entries()) {
        beside[kind].push(one);
        logged[kind].push(other);
      }
    }
    return { beside, logged, copy };
  }

  /** Undefined at all ranks but 0. */
  async play(): Promise<FtLogFigures | undefined> {
    const { mpi, options } = this;
    const [latency, stream, allreduce]: number[][] = [[], [], []];
    await this.without(latency, stream, allreduce);
    const { beside, logged, copy } = await run(mpi, { recovery: 'asynchronous', domain: 'process', everySteps: [SAVE_NEVER] }, (job) => {
      job.protect('nothing', new Float64Array(1));
      return this.with(job);
    });
    await this.without(latency, stream, allreduce);
    if (mpi.rank !== 0) return undefined;
    const pairs = (kind: number, of: (one: number, other: number) => number): number =>
      median(beside[kind].map((one, i) => of(one, logged[kind][i])));
    return {
      ranks: mpi.world.size,
      plate: options.plate,
      latency: {
        withoutLogUs: median(latency),
        besideUs: median(beside[0]),
        loggedUs: median(logged[0]),
        moreUs: pairs(0, (one, other) => other - one),
      },
      stream: { copy: median(copy), withoutLog: median(stream), beside: median(beside[1]), logged: median(logged[1]) },
      heat: { besideMs: median(beside[2]), loggedMs: median(logged[2]), share: pairs(2, (one, other) => other / one - 1) },
      allreduce: { withoutLogUs: median(allreduce), besideUs: median(beside[3]), loggedUs: median(logged[3]) },
    };
  }
}

export function runFtLog(mpi: Runtime, options: FtLogOptions): Promise<FtLogFigures | undefined> {
  return new LogBench(mpi, options).play();
}

/** What the design of logs asks for, as a test of the figures. */
export function ftLogTargets({ latency, stream, heat }: FtLogFigures) {
  return {
    latency: { text: '<= 0.4 us more', isMet: latency.moreUs <= 0.4 },
    stream: { text: '>= 0.75 x the slower of copy and stream', isMet: stream.logged >= 0.75 * Math.min(stream.copy, stream.beside) },
    heat: { text: '<= 2 %', isMet: heat.share <= 0.02 },
  };
}

/** The table, for the screen. */
export function ftLogLines(figures: FtLogFigures): string[] {
  const { latency, stream, heat, allreduce, plate } = figures;
  const targets = ftLogTargets(figures);
  const us = (value: number): string => `${value.toFixed(2)} us`;
  const ms = (value: number): string => `${value.toFixed(2)} ms`;
  return [
    figureLine('# 8 bytes, one way, blocking calls', 'median'),
    figureLine('without a log in the process', us(latency.withoutLogUs)),
    figureLine('on a communicator that is not logged', us(latency.besideUs)),
    figureLine('on one that is logged', us(latency.loggedUs)),
    figureLine('more, in pairs', us(latency.moreUs), targets.latency),
    figureLine('# Messages of 1 MiB', 'median'),
    figureLine('copy alone', rateText(stream.copy)),
    figureLine('without a log in the process', rateText(stream.withoutLog)),
    figureLine('on a communicator that is not logged', rateText(stream.beside)),
    figureLine('on one that is logged', rateText(stream.logged), targets.stream),
    figureLine(`# A step of a plate of ${plate} x ${plate}`, 'median'),
    figureLine('on a communicator that is not logged', ms(heat.besideMs)),
    figureLine('on one that is logged', ms(heat.loggedMs)),
    figureLine('more, in pairs', `${(100 * heat.share).toFixed(1)} %`, targets.heat),
    figureLine('# An allreduce of 8 bytes, blocking calls', 'median'),
    figureLine('without a log in the process, by shared memory', us(allreduce.withoutLogUs)),
    figureLine('beside a log, by messages', us(allreduce.besideUs)),
    figureLine('on a communicator that is logged, by messages', us(allreduce.loggedUs)),
  ];
}
