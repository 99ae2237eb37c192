// Runs of `multirail hpl` in a lab, with rails pulled at moments of the run: the ranks report their progress, line by line, and the links
// are pulled when it reaches the moment.
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { MultirailError } from '../../src/errors.ts';
import { labJobSpec, startLabJob } from '../lab/job.ts';
import type { Lab } from '../lab/lab.ts';
import type { NamedRail } from '../lab/rails.ts';
import { viewOf } from '../lab/view.ts';
import { blocksAt, type Moment, type RunTimes } from './experiment.ts';
import type { HplLine } from './rank.ts';
import type { HplResult } from './table.ts';

const STDERR_KEPT_CHARS = 20_000;

export interface LabRunSpec {
  /** The file of the `multirail` command, and the words that make it the ranks. */
  cli: string;
  words: readonly string[];
  size: number;
  mca: Readonly<Record<string, string>>;
  pulls: readonly Moment[];
  restores: readonly Moment[];
  /** The cables, or silence. */
  fault: 'pull' | 'blackhole';
  timeoutMs: number;
}

export interface LabRun extends RunTimes {
  /** Undefined when it stopped at a checkpoint. */
  result: HplResult | undefined;
  stopped: { block: number; folder: string } | undefined;
  /** When each pull and restore was carried out: milliseconds after rank 0's start, as seen from outside, and blocks done by then. */
  done: { text: 'pull' | 'restore'; atMs: number; block: number }[];
  /** Rails that rank 0 lost, and why; how many it lost, and got back. */
  losses: { peer: number; key: string; reason: string; atMs: number }[];
  railsLost: number;
  railsRestored: number;
}

/** One run, on all nodes of the lab, which is healed before. ERR_LAUNCH, with what the job said, when it fails. */
export async function runInLab(lab: Lab, rails: readonly NamedRail[], spec: LabRunSpec, onLine?: (line: HplLine) => void): Promise<LabRun> {
  await lab.healAll();
  const job = startLabJob(
    spec.cli,
    labJobSpec(viewOf(lab, rails), { size: spec.size, command: [spec.cli, ...spec.words], mca: spec.mca, prefix: false }),
    ['ignore', 'pipe', 'pipe'],
  );
  let errors = '';
  let isLate = false;
  job.child.stderr?.on('data', (part) => {
    if (errors.length < STDERR_KEPT_CHARS) errors += part;
  });
  const timer = setTimeout(() => {
    isLate = true;
    job.end();
  }, spec.timeoutMs);
  const watch = new Watch(lab, spec);
  for await (const text of createInterface({ input: job.child.stdout as Readable })) {
    const line = parseLine(text);
    if (line === undefined) errors += `${text}\n`;
    else {
      watch.take(line);
      onLine?.(line);
    }
  }
  const code = await job.ended;
  clearTimeout(timer);
  await watch.settled();
  const { run } = watch;
  if (isLate)
    throw new MultirailError('ERR_TIMEOUT', `the run was not over after ${spec.timeoutMs / 1000} s and was ended\n${errors.trim()}`);
  if (run === undefined || (code !== 0 && run.result?.residual.passed !== false))
    throw new MultirailError('ERR_LAUNCH', `the job in the lab ended with ${code}\n${errors.trim()}`);
  return run;
}

function parseLine(text: string): HplLine | undefined {
  if (!text.startsWith('{"hpl":')) return undefined;
  try {
    return JSON.parse(text) as HplLine;
  } catch {
    return undefined;
  }
}

type WatchSpec = Pick<LabRunSpec, 'pulls' | 'restores' | 'fault'>;

/** What `Watch` needs of a lab. */
export type PulledLab = Pick<Lab, 'heal' | 'blackhole' | 'oneWay' | 'wireCut' | 'cableCut'>;

/** Hears rank 0, and pulls when it is time. */
export class Watch {
  private readonly lab: PulledLab;
  private readonly spec: WatchSpec;
  private readonly blockMs: number[] = [];
  private readonly done: LabRun['done'] = [];
  /** What was begun, one after the other: a rail that is restored while its pull is still being carried out would stay pulled. */
  private acts: Promise<void> = Promise.resolve();
  private pending: { moment: Moment; text: 'pull' | 'restore' }[] = [];
  private result: HplResult | undefined;
  private stopped: LabRun['stopped'];
  private startMs = 0;
  private blocks = 0;
  private readonly losses: LabRun['losses'] = [];
  private railsRestored = 0;

  constructor(lab: PulledLab, spec: WatchSpec) {
    this.lab = lab;
    this.spec = spec;
    this.pending = [
      ...spec.pulls.map((moment) => ({ moment, text: 'pull' as const })),
      ...spec.restores.map((moment) => ({ moment, text: 'restore' as const })),
    ];
  }

  get run(): LabRun | undefined {
    const { result, stopped, blockMs, done, losses, railsRestored } = this;
    if (result === undefined && stopped === undefined) return undefined;
    const totalMs = result === undefined ? (blockMs.at(-1) ?? 0) : result.seconds * 1000;
    return { totalMs, blockMs, result, stopped, done, losses, railsLost: losses.length, railsRestored };
  }

  /** What was begun is done. */
  async settled(): Promise<void> {
    await this.acts;
  }

  take(line: HplLine): void {
    switch (line.hpl) {
      case 'start':
        this.startMs = performance.now();
        this.blocks = line.blocks;
        this.actAt(line.from);
        break;
      case 'block':
        this.blockMs.push(line.ms);
        this.actAt(line.block);
        break;
      case 'rail':
        if (line.type === 'lost') this.losses.push({ peer: line.peer, key: line.key, reason: line.reason, atMs: line.ms });
        if (line.type === 'restored') this.railsRestored++;
        break;
      case 'stopped':
        this.stopped = { block: line.block, folder: line.folder };
        break;
      case 'result': {
        const { hpl: _, ...result } = line;
        this.result = result;
      }
    }
  }

  private actAt(block: number): void {
    const due = this.pending.filter(({ moment }) => block >= blocksAt(moment.fraction, this.blocks));
    this.pending = this.pending.filter((one) => !due.includes(one));
    for (const { moment, text } of due) {
      const { rail, node } = moment;
      const { lab } = this;
      this.acts = this.acts.then(async () => {
        await (text === 'restore' ? lab.heal(rail) : this.pull(rail, node));
        this.done.push({ text, atMs: performance.now() - this.startMs, block });
      });
      // An error is for `settled`, which is called when the job has ended.
      this.acts.catch(() => undefined);
    }
  }

  private pull(rail: number, node: number | undefined): Promise<void> {
    if (this.spec.fault === 'blackhole') return node === undefined ? this.lab.blackhole(rail) : this.lab.oneWay(rail, node);
    return node === undefined ? this.lab.wireCut(rail) : this.lab.cableCut(node, rail);
  }
}
