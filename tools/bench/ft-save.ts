// The test of saves, as a rank runs it: the copy of the state with its checksum against both alone, the spreading of a copy against a plain
// exchange of as many bytes, what saves in the background cost a program that computes, and the time from SIGKILL to a program that runs again.
import { subscribe } from 'node:diagnostics_channel';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SaveTrace } from '../../src/ft/recover/channels.ts';
import type { FtJob } from '../../src/ft/recover/job.ts';
import { run } from '../../src/ft/recover/run.ts';
import type { Communicator } from '../../src/mpi/communicator.ts';
import type { Runtime } from '../../src/mpi/runtime.ts';
import { copyCrc32c, crc32c } from '../../src/native/crc32c.ts';
import { figureLine, mostOf, nowMs, rateText } from './ft-figures.ts';
import { median } from './osu.ts';

export interface FtSaveOptions {
  /** State of each rank. */
  stateBytes: number;
  /** Repetitions of each measurement. */
  repeats: number;
  /** Ranks that die, one after the other. */
  deaths: number;
}

/** Rates in bytes per second, times in ms; medians, of the slowest rank where all take part. */
export interface FtSaveFigures {
  ranks: number;
  stateBytes: number;
  /** Of this machine; saves in the background need some that the ranks leave free. */
  processors: number;
  rates: { copy: number; crc: number; fused: number; plain: number; spread: number };
  /** Time of a step without saves, of one that begins with a save, and what of that the save itself took. */
  background: { stepMs: number; withSaveMs: number; savedMs: number; committedMs: number };
  /** From SIGKILL to the last rank whose program runs again with its state. */
  recoveriesMs: number[];
}

/** A step of the program that computes beside its saves. */
const STEP_MS = 40;
const COPY_REPEATS = 15;

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

function timeOf(work: () => void): number {
  const fromMs = nowMs();
  work();
  return nowMs() - fromMs;
}

/** Copy, checksum, and both in one go, in turn, over memory that does not fit into a cache. */
function copyRates(bytes: number): Pick<FtSaveFigures['rates'], 'copy' | 'crc' | 'fused'> {
  const source = new Uint8Array(bytes).fill(3);
  const target = new Uint8Array(bytes).fill(1);
  const times: Record<'copy' | 'crc' | 'fused', number[]> = { copy: [], crc: [], fused: [] };
  for (let i = 0; i < COPY_REPEATS; i++) {
    times.copy.push(timeOf(() => target.set(source)));
    times.crc.push(timeOf(() => void crc32c(source)));
    times.fused.push(timeOf(() => void copyCrc32c(target, source)));
  }
  const rate = (list: readonly number[]): number => bytes / (median(list) / 1000);
  return { copy: rate(times.copy), crc: rate(times.crc), fused: rate(times.fused) };
}

/** Computes for so long, with the event loop running in between as in any program that awaits. */
async function compute(numbers: Float64Array, turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn++) {
    for (let i = 1; i < numbers.length - 1; i++) numbers[i] = (numbers[i - 1] + numbers[i + 1]) / 2;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** How many turns of compute() a step has. */
function turnsOf(numbers: Float64Array): number {
  const once = median(
    Array.from({ length: 9 }, () =>
      timeOf(() => {
        for (let i = 1; i < numbers.length - 1; i++) numbers[i] = (numbers[i - 1] + numbers[i + 1]) / 2;
      }),
    ),
  );
  return Math.max(1, Math.round(STEP_MS / once));
}

class SaveBench {
  private readonly mpi: Runtime;
  private readonly options: FtSaveOptions;
  /** Saves of this rank, as they end. */
  private readonly ended: SaveTrace[] = [];
  private wake: (() => void) | undefined;

  constructor(mpi: Runtime, options: FtSaveOptions) {
    this.mpi = mpi;
    this.options = options;
    subscribe('multirail:ft:save', (trace) => {
      this.ended.push(trace as SaveTrace);
      this.wake?.();
    });
  }

  /** A save, and its end. */
  private async saveOnce(job: FtJob): Promise<{ copiedMs: number; committedMs: number }> {
    const count = this.ended.length;
    const fromMs = nowMs();
    await job.checkpoint();
    const copiedMs = nowMs() - fromMs;
    while (this.ended.length === count)
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    return { copiedMs, committedMs: this.ended[count].durationMs };
  }

  /** A ring, as copies go round in it: each rank sends and receives as many bytes as its state has. */
  private async plainMs(comm: Communicator, from: Uint8Array, into: Uint8Array): Promise<number> {
    const { rank, size } = comm;
    const times: number[] = [];
    for (let i = 0; i < this.options.repeats; i++) {
      await comm.barrier();
      const fromMs = nowMs();
      await comm.sendrecv(from, (rank + 1) % size, 0, into, (rank + size - 1) % size, 0);
      times.push(await mostOf(comm, nowMs() - fromMs));
    }
    return median(times);
  }

  private async spreadMs(job: FtJob): Promise<number> {
    const times: number[] = [];
    // The first one makes the memory of the slots.
    for (let i = 0; i < 2 + this.options.repeats; i++) {
      await job.comm.barrier();
      const { copiedMs, committedMs } = await this.saveOnce(job);
      const most = await mostOf(job.comm, committedMs - copiedMs);
      if (i >= 2) times.push(most);
    }
    return median(times);
  }

  private async background(job: FtJob): Promise<FtSaveFigures['background']> {
    const { comm } = job;
    const numbers = new Float64Array(8192).fill(1);
    const turns = await mostOf(comm, turnsOf(numbers));
    const stepOf = async (saves: boolean): Promise<[number, number, number]> => {
      await comm.barrier();
      const count = this.ended.length;
      const fromMs = nowMs();
      if (saves) await job.checkpoint();
      const savedMs = nowMs() - fromMs;
      await compute(numbers, turns);
      const wholeMs = nowMs() - fromMs;
      while (saves && this.ended.length === count) await pause(1);
      return [await mostOf(comm, wholeMs), await mostOf(comm, savedMs), await mostOf(comm, saves ? this.ended[count].durationMs : 0)];
    };
    const plain: number[] = [];
    const saving: [number, number, number][] = [];
    for (let i = 0; i < this.options.repeats; i++) {
      plain.push((await stepOf(false))[0]);
      saving.push(await stepOf(true));
    }
    const at = (place: number): number => median(saving.map((times) => times[place]));
    return { stepMs: median(plain), withSaveMs: at(0), savedMs: at(1), committedMs: at(2) };
  }

  /** Undefined at all ranks but 0, which lives. */
  async play(): Promise<FtSaveFigures | undefined> {
    const { mpi, options } = this;
    const { stateBytes } = options;
    const folder = mpi.role === 'initial' && mpi.rank === 0 ? mkdtempSync(join(tmpdir(), 'multirail-bench-save-')) : undefined;
    let measured: Omit<FtSaveFigures, 'recoveriesMs'> | undefined;
    const recoveriesMs: number[] = [];
    try {
      return await run(mpi, { domain: 'process' }, async (job) => {
        const { comm, recovery } = job;
        const state = new Float64Array(stateBytes / Float64Array.BYTES_PER_ELEMENT);
        let file = folder === undefined ? '' : join(folder, 'death');
        job.protect('state', state);
        if (recovery?.save !== undefined) {
          const againMs = await mostOf(comm, nowMs());
          file = await comm.bcastObject(file);
          if (state.some((value) => value !== recovery.total.failures)) throw new Error(`rank ${comm.rank}: another state was restored`);
          recoveriesMs.push(againMs - Number(readFileSync(file, 'utf8')));
        } else if (measured === undefined) {
          file = await comm.bcastObject(file);
          const bytes = new Uint8Array(state.buffer);
          const copying = comm.rank === 0 ? copyRates(stateBytes) : { copy: 0, crc: 0, fused: 0 };
          await comm.barrier();
          const plainMs = await this.plainMs(comm, bytes.slice(), bytes);
          const spreadMs = await this.spreadMs(job);
          const rates = { ...copying, plain: stateBytes / (plainMs / 1000), spread: stateBytes / (spreadMs / 1000) };
          const background = await this.background(job);
          measured = { ranks: comm.size, stateBytes, processors: availableParallelism(), rates, background };
        }
        const failures = recovery?.total.failures ?? 0;
        if (failures < options.deaths) {
          state.fill(failures + 1);
          await this.saveOnce(job);
          await comm.barrier();
          if (comm.rank === comm.size - 1) {
            writeFileSync(file, String(nowMs()));
            process.kill(process.pid, 'SIGKILL');
          }
          // It ends with the error of the death.
          await comm.barrier();
        }
        return comm.rank === 0 && measured !== undefined ? { ...measured, recoveriesMs } : undefined;
      });
    } finally {
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
    }
  }
}

export function runFtSave(mpi: Runtime, options: FtSaveOptions): Promise<FtSaveFigures | undefined> {
  return new SaveBench(mpi, options).play();
}

/** What the design of saves asks for, as a test of the figures. */
export function ftSaveTargets({ ranks, processors, rates, background, recoveriesMs }: FtSaveFigures) {
  const lost = lostShare(background);
  return {
    fused: { text: '>= 0.9 x the slower of both', isMet: rates.fused >= 0.9 * Math.min(rates.copy, rates.crc) },
    spread: { text: '>= 0.8 x the exchange', isMet: rates.spread >= 0.8 * rates.plain },
    // On processors that are all busy the library has to take its time from the program.
    background:
      processors > ranks
        ? { text: '<= 10 % of the save', isMet: lost <= 0.1 }
        : { text: '<= 10 % of the save, with free processors: none here', isMet: undefined },
    recovery: { text: '<= 1 s', isMet: recoveriesMs.length === 0 ? undefined : median(recoveriesMs) <= 1000 },
  };
}

/** What a program loses by a save in the background beyond the time of the copy, as a share of that. */
export const lostShare = ({ stepMs, withSaveMs, savedMs }: FtSaveFigures['background']): number =>
  (withSaveMs - stepMs - savedMs) / savedMs;

/** The table, for the screen. */
export function ftSaveLines(figures: FtSaveFigures): string[] {
  const { rates, background, recoveriesMs, stateBytes } = figures;
  const targets = ftSaveTargets(figures);
  const ms = (value: number): string => `${value.toFixed(1)} ms`;
  return [
    figureLine(`# State of ${(stateBytes / 2 ** 20).toFixed(0)} MiB a rank`, 'median', undefined),
    figureLine('copy alone', rateText(rates.copy)),
    figureLine('checksum alone', rateText(rates.crc)),
    figureLine('copy with checksum', rateText(rates.fused), targets.fused),
    figureLine('plain exchange with both neighbours', rateText(rates.plain)),
    figureLine('spreading of a copy, until it is committed', rateText(rates.spread), targets.spread),
    figureLine('step of a program that computes', ms(background.stepMs)),
    figureLine('the same with a save in the background', ms(background.withSaveMs)),
    figureLine('of that, until the state was copied', ms(background.savedMs)),
    figureLine('lost beyond that', `${(100 * lostShare(background)).toFixed(0)} %`, targets.background),
    figureLine('save, until it is committed', ms(background.committedMs)),
    ...(recoveriesMs.length === 0
      ? []
      : [
          figureLine(`SIGKILL to the program running, of ${recoveriesMs.length}`, ms(median(recoveriesMs)), targets.recovery),
          figureLine('the longest of them', ms(Math.max(...recoveriesMs))),
        ]),
  ];
}
