// One rank of `multirail hpl`: solves the requested systems, one after the other; rank 0 prints HPL's table. With checkpoints it can listen
// to the rails: after a loss it goes on to the next checkpoint, saves and stops.
import { mkdirSync, writeFileSync, writeSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { MultirailError } from '../../src/errors.ts';
import type { Runtime } from '../../src/mpi/runtime.ts';
import { describeMachine, type MachineInfo, machineInfo } from '../bench/machine.ts';
import type { AlgebraChoice } from './blas.ts';
import { type CheckpointIndex, loadCheckpoint, readIndex, saveCheckpoint } from './checkpoint.ts';
import { Factorization } from './factorization.ts';
import type { Heap } from './heap.ts';
import { Messages } from './messages.ts';
import { Problem, type ProblemOptions } from './problem.ts';
import { Progress } from './progress.ts';
import { residual, solve } from './solution.ts';
import { endLines, gflopsOf, type HplResult, headLines, resultLines } from './table.ts';

export interface CheckpointPlan {
  folder: string;
  /** A checkpoint after each so many blocks. */
  everyBlocks: number;
  /** After the loss of a rail: stop at the next checkpoint, or go on to the end on what is left. */
  onRailLost: 'stop' | 'finish';
  /** Begin where the checkpoint in the folder ends. */
  resume: boolean;
}

export const WAITS = ['auto', 'blocking', 'promises'] as const;
export type Waits = (typeof WAITS)[number];

export interface HplPlan {
  orders: readonly number[];
  blocks: readonly number[];
  grids: readonly { p: number; q: number }[];
  repeats: number;
  options: Omit<ProblemOptions, 'n' | 'nb' | 'p' | 'q'>;
  algebra: AlgebraChoice;
  /** How messages are waited for; auto: by blocking calls unless more ranks than processors are here. */
  waits: Waits;
  /** A small system is solved first, and not shown. */
  warmUp: boolean;
  checkpoint: CheckpointPlan | undefined;
}

export interface HplOutput {
  jsonFile: string | undefined;
  commandLine: string;
  /** A line on the standard error while it goes on. */
  progress: boolean;
  /** JSON lines on the standard output instead of the table: for a program that watches the run. */
  lines: boolean;
}

/** What a watcher reads, one JSON object per line. Times are milliseconds after the start of that run. */
export type HplLine =
  | { hpl: 'start'; n: number; nb: number; p: number; q: number; blocks: number; from: number }
  | { hpl: 'block'; block: number; ms: number }
  | { hpl: 'rail'; type: string; peer: number; key: string; reason: string; ms: number }
  | { hpl: 'saved'; block: number }
  | { hpl: 'stopped'; block: number; folder: string }
  | ({ hpl: 'result' } & HplResult);

export interface HplReport {
  commandLine: string;
  machine: MachineInfo;
  algebra: string;
  results: HplResult[];
}

/** All systems, in order; gives the exit code: 0 when every residual passed. */
export async function hplAsRank(mpi: Runtime, plan: HplPlan, output: HplOutput): Promise<number> {
  const run = new HplRank(mpi, plan, output);
  return await run.all();
}

/** A rank that polls takes the processor from one that computes. */
function isCrowded(): boolean {
  return Number(process.env.MULTIRAIL_LOCAL_SIZE ?? 1) > availableParallelism();
}

/** Blocks of the warm-up that each process column factors, their columns, and the order at most. */
const WARM_UP_PANELS = 8;
const WARM_UP_NB = 64;
const WARM_UP_ORDER_MAX = 1024;

/**
 * A small system in the same grid: HPL is compiled before it runs, and this is compiled while it does. The first block of a run without it
 * took three times its arithmetic.
 */
function warmUpOptions(options: Omit<ProblemOptions, 'n' | 'nb'>, nbMin: number): ProblemOptions {
  const nb = Math.min(nbMin, WARM_UP_NB);
  return { ...options, nb, n: Math.min(WARM_UP_ORDER_MAX, WARM_UP_PANELS * options.q * nb) };
}

class HplRank {
  private readonly mpi: Runtime;
  private readonly plan: HplPlan;
  private readonly output: HplOutput;
  private readonly messages: Messages;
  private readonly progress: Progress | undefined;
  private readonly machine = machineInfo();
  private readonly results: HplResult[] = [];
  private heap: Heap | undefined;
  private railsLost = 0;
  private startedMs = 0;

  constructor(mpi: Runtime, plan: HplPlan, output: HplOutput) {
    this.mpi = mpi;
    this.plan = plan;
    this.output = output;
    this.messages = new Messages(mpi.world, plan.waits === 'auto' ? !isCrowded() : plan.waits === 'blocking');
    this.progress = output.progress && this.speaks ? new Progress(process.stderr, process.stderr.isTTY === true) : undefined;
  }

  private get speaks(): boolean {
    return this.mpi.rank === 0;
  }

  private print(lines: readonly string[]): void {
    if (this.speaks && !this.output.lines) process.stdout.write(`${lines.join('\n')}\n`);
  }

  /** At once, whatever else the event loop has to do. */
  private tell(line: HplLine): void {
    if (this.speaks && this.output.lines) writeSync(1, `${JSON.stringify(line)}\n`);
  }

  async all(): Promise<number> {
    const { plan, mpi, machine } = this;
    for (const { p, q } of plan.grids) {
      if (p * q !== mpi.size) throw new MultirailError('ERR_ARG', `a grid of ${p} x ${q} is for ${p * q} ranks, and there are ${mpi.size}`);
    }
    mpi.on('rail', (event) => {
      if (event.type === 'lost') this.railsLost++;
      const { type, peer, key, reason } = event;
      this.tell({ hpl: 'rail', type, peer, key, reason, ms: performance.now() - this.startedMs });
    });
    const { orders, blocks, grids, options, algebra } = plan;
    const algebraText = `${algebra.description} (${algebra.reason})`;
    this.print(headLines({ orders, blocks, grids, ...options, algebra: algebraText, waits: this.messages.waitsBy, warmUp: plan.warmUp }));
    this.print([describeMachine(machine), '']);
    if (plan.warmUp) await this.warmUp(warmUpOptions({ ...options, ...grids[0] }, Math.min(...blocks)));
    for (const n of orders) {
      for (const nb of blocks) {
        for (const grid of grids) {
          for (let i = 0; i < plan.repeats; i++) {
            const result = await this.one({ ...options, n, nb, ...grid });
            // The checkpoint is what is left of it.
            if (result === undefined) return 0;
            this.results.push(result);
            this.print(resultLines(result));
            this.tell({ hpl: 'result', ...result });
          }
        }
      }
    }
    this.print(endLines(this.results));
    if (this.speaks && this.output.jsonFile !== undefined) {
      const report: HplReport = { commandLine: this.output.commandLine, machine, algebra: algebraText, results: this.results };
      writeFileSync(this.output.jsonFile, `${JSON.stringify(report, undefined, 1)}\n`);
    }
    return this.results.every((result) => result.residual.passed) ? 0 : 1;
  }

  private async warmUp(options: ProblemOptions): Promise<void> {
    const problem = new Problem(options, this.messages, this.plan.algebra.make);
    problem.generate();
    await new Factorization(problem).run();
    await solve(problem);
  }

  /** One system; undefined when it was stopped at a checkpoint. */
  private async one(options: ProblemOptions): Promise<HplResult | undefined> {
    const { messages, plan, progress } = this;
    const problem = new Problem(options, messages, plan.algebra.make, this.heap);
    // Several of them would have to wait for the garbage collector, and may not fit beside each other.
    this.heap = problem.heap;
    const index = this.begin(problem);
    const from = index?.block ?? 0;
    const { n, nb, p, q } = options;
    await messages.barrier();
    this.startedMs = performance.now();
    const startMs = this.startedMs;
    const earlierMs = (index?.seconds ?? 0) * 1000;
    this.tell({ hpl: 'start', n, nb, p, q, blocks: problem.blocks, from });
    progress?.start(Math.min(n, from * nb));
    const blockMs: number[] = [];
    const done = await new Factorization(problem).run(async (block) => {
      const ms = performance.now() - startMs;
      blockMs.push(ms);
      this.tell({ hpl: 'block', block, ms });
      progress?.block(n, Math.min(n, block * nb));
      return await this.afterBlock(problem, block, (earlierMs + ms) / 1000);
    }, from);
    progress?.end();
    if (done < problem.blocks) return undefined;
    await solve(problem);
    const [longestMs] = await messages.reduceAll([performance.now() - startMs], 'max');
    const seconds = (earlierMs + longestMs) / 1000;
    const verdict = await residual(problem);
    const { depth, broadcast, swap, seed } = options;
    const algebra = problem.algebra.description;
    return {
      n,
      nb,
      p,
      q,
      depth,
      broadcast,
      swap,
      seed,
      seconds,
      gflops: gflopsOf(n, seconds),
      residual: verdict,
      blockMs,
      algebra,
      resumedAt: from,
    };
  }

  /** The matrix as it is at the start, or as a checkpoint left it. */
  private begin(problem: Problem): CheckpointIndex | undefined {
    const { checkpoint } = this.plan;
    if (checkpoint?.resume !== true) {
      problem.generate();
      return undefined;
    }
    const index = readIndex(checkpoint.folder);
    loadCheckpoint(problem, checkpoint.folder, index);
    this.print([`Resumed after block ${index.block} of ${problem.blocks} from ${checkpoint.folder}`, '']);
    return index;
  }

  /** Saves where a checkpoint is due. True: stop there. All ranks answer alike. */
  private async afterBlock(problem: Problem, block: number, seconds: number): Promise<boolean> {
    const { checkpoint } = this.plan;
    if (checkpoint === undefined || block % checkpoint.everyBlocks !== 0 || block >= problem.blocks) return false;
    // Every rank sees its own rails only.
    const [lost] = await this.messages.reduceAll([this.railsLost], 'max');
    if (this.speaks) mkdirSync(checkpoint.folder, { recursive: true });
    await this.messages.barrier();
    await saveCheckpoint(problem, checkpoint.folder, block, seconds);
    this.tell({ hpl: 'saved', block });
    if (lost === 0 || checkpoint.onRailLost === 'finish') return false;
    this.progress?.end();
    this.tell({ hpl: 'stopped', block, folder: checkpoint.folder });
    this.print([
      `A rail was lost: stopped after block ${block} of ${problem.blocks}, which is saved in ${checkpoint.folder}.`,
      `The same command with --resume goes on from there.`,
    ]);
    return true;
  }
}
