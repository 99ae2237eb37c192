// The soak: ranks on nodes of a lab that exchange all kinds of messages for hours, while a schedule drawn from a seed breaks their rails.
// Whatever the ranks' audit finds, a round that does not end, and memory that grows make it fail. Imports the lab, the files of the soak
// and of the lab's measurements, the generator.

import { Prng } from '../../src/util/prng.ts';
import { applyAction, describeAction, type LabAction } from '../../tools/lab/actions.ts';
import { Lab, sleep } from '../../tools/lab/lab.ts';
import { type NamedRail, showRate } from '../../tools/lab/rails.ts';
import { playTimeline } from '../../tools/lab/timeline.ts';
import { JobError } from '../lab/job.ts';
import { nowMs } from '../lab/protocol.ts';
import { type CommonOptions, Report } from '../lab/report.ts';
import { digits } from '../lab/stats.ts';
import { SoakJob } from './job.ts';
import { warmUpMs } from './memory.ts';
import type { Plant } from './protocol.ts';
import { type SoakRecord, writeRecord } from './record.ts';
import { type SoakFault, type SoakStep, soakSchedule } from './schedule.ts';

export interface SoakOptions extends CommonOptions {
  seed: number;
  ranks: number;
  rails: NamedRail[];
  roundSeconds: number;
  sampleSeconds: number;
  sync: boolean;
  faults: boolean;
  name: string;
  results?: boolean;
  plant?: Plant | undefined;
  /** Aborted: the run ends in order with what there is. */
  stop: AbortSignal;
}

const PROGRESS_EVERY_MS = 10_000;
const LOOK_EVERY_MS = 50;
/** A gap that ended so long after an outage is none of it. */
const AFTER_OUTAGE_MS = 5000;
const GAP_MIN_MS = 50;
const WAITS_MS = 6000;

/** A fault while it lasts; of an outage for the judgement of gaps. */
interface Outage {
  from: number;
  to: number;
}

export async function soakTraffic(options: SoakOptions): Promise<number> {
  const { seed, ranks, rails, minutes, stop } = options;
  if (ranks < 2) throw new Error('--ranks: two at least');
  if (rails.length < 2 && options.faults) throw new Error('--rails: two at least, since one is always left whole (or --no-faults)');
  const durationMs = minutes * 60_000;
  const report = new Report(options.name, options);
  report.say(`seed ${seed}: the same --seed with the same options repeats the schedule and what every round sends`);
  await using lab = await Lab.create({ nodes: ranks, rails, congestionControl: options.congestionControl });
  const schedule = soakSchedule({ prng: new Prng(`${seed}/faults`), durationMs, nodes: ranks, rails: rails.length });
  const job = await SoakJob.start({
    lab,
    nodes: Array.from({ length: ranks }, (_, node) => node),
    mca: { btl: 'self,tcp', ...options.mca },
    spec: {
      seed,
      rails: rails.length,
      sampleEveryMs: options.sampleSeconds * 1000,
      gapMinMs: GAP_MIN_MS,
      sync: options.sync,
      plant: options.plant,
    },
  });
  report.say(`${ranks} ranks, ${rails.length} rails (${rails.map(({ name, mbit }) => `${name} ${showRate(mbit)}`).join(', ')}) are up`);
  const soak = new Soak(lab, job, report, options, durationMs);
  const faultsOver = new AbortController();
  const faults = options.faults ? soak.playFaults(schedule, faultsOver.signal) : Promise.resolve();
  const wrong = await soak.watch(stop);
  faultsOver.abort();
  await faults;
  wrong.push(...soak.faultErrors);
  wrong.push(...(await soak.end(wrong.length > 0)));
  const record: SoakRecord = { ...soak.record(), wrong };
  return writeRecord(report, options, record);
}

class Soak {
  readonly faultErrors: string[] = [];
  private readonly lab: Lab;
  private readonly job: SoakJob;
  private readonly report: Report;
  private readonly options: SoakOptions;
  private readonly durationMs: number;
  private readonly startAt = nowMs();
  private readonly faults = new Map<SoakFault, number>();
  private readonly outages: Outage[] = [];
  private isInterrupted = false;
  private endedAt = 0;

  constructor(lab: Lab, job: SoakJob, report: Report, options: SoakOptions, durationMs: number) {
    this.lab = lab;
    this.job = job;
    this.report = report;
    this.options = options;
    this.durationMs = durationMs;
    job.startedAt = this.startAt;
  }

  private get elapsedMs(): number {
    return nowMs() - this.startAt;
  }

  // ---- faults

  async playFaults(schedule: readonly SoakStep[], signal: AbortSignal): Promise<void> {
    try {
      await playTimeline(schedule, (step) => this.strike(step), signal);
    } catch (error) {
      this.faultErrors.push(`the lab: ${(error as Error).message}`);
    }
  }

  private async strike({ kind, actions }: SoakStep): Promise<void> {
    const from = nowMs();
    if (kind === 'outage') this.outages.push({ from, to: Number.POSITIVE_INFINITY });
    const apply = (action: LabAction) => applyAction(this.lab, action);
    await Promise.all(actions.map(apply));
    const tookMs = nowMs() - from;
    if (kind !== 'restore') this.faults.set(kind, (this.faults.get(kind) ?? 0) + 1);
    else {
      const last = this.outages.at(-1);
      if (last !== undefined && last.to === Number.POSITIVE_INFINITY) last.to = nowMs();
    }
    const text = actions.map((action) => describeAction(action, this.options.rails)).join(', ');
    this.report.figure({ atMs: Math.round(from - this.startAt), kind, actions, tookMs: Math.round(tookMs) });
    // A restore takes a second or so where nobody has a processor to spare; it began at the time in front.
    const took = tookMs < 500 ? '' : ` (took ${digits(tookMs / 1000)} s)`;
    this.report.say(`${seconds(from - this.startAt)}  ${kind === 'outage' ? 'outage: ' : ''}${text}${took}`);
  }

  // ---- watching

  /** Until the time is up, or something is wrong: what it is. */
  async watch(stop: AbortSignal): Promise<string[]> {
    const { job } = this;
    let progressAt = nowMs() + PROGRESS_EVERY_MS;
    for (;;) {
      await sleep(LOOK_EVERY_MS);
      const wrong = this.job.wrong();
      if (wrong !== undefined) return [wrong];
      if (job.exitCode !== undefined) return [`the job ended by itself (code ${job.exitCode}): ${job.lastWords()}`];
      const late = this.lateRound();
      if (late !== undefined) return [late, await this.whoWaits()];
      for (const sample of job.takeMemory()) this.report.figure({ ...sample, atMs: Math.round(sample.atMs) });
      if (nowMs() >= progressAt) {
        progressAt += PROGRESS_EVERY_MS;
        this.progress();
      }
      if (stop.aborted && !this.isInterrupted) {
        this.isInterrupted = true;
        this.report.say('interrupted: ending in order; once more ends at once');
      }
      if (this.isInterrupted || this.elapsedMs >= this.durationMs) return [];
    }
  }

  /** All ranks end their rounds together: the one that has been in one for longest decides. */
  private lateRound(): string | undefined {
    const boundMs = this.options.roundSeconds * 1000;
    const oldest = Math.min(...this.job.ranks.map(({ roundAt }) => roundAt));
    if (nowMs() - oldest < boundMs) return undefined;
    const rounds = this.job.ranks.map(({ round }, rank) => `rank ${rank}: ${round}`).join(', ');
    return `a round has lasted more than ${this.options.roundSeconds} s (seed ${this.options.seed}; rounds done when last heard of: ${rounds})`;
  }

  private async whoWaits(): Promise<string> {
    const before = this.job.output.length;
    this.job.signal('SIGUSR2');
    await sleep(WAITS_MS);
    const text = this.job.output.slice(before).trim();
    this.report.figure({ whoWaits: text });
    this.report.say(text);
    return `who waits for whom:\n${text || 'the launcher gave no answer'}`;
  }

  private progress(): void {
    const totals = this.job.totals();
    const gap = this.longestGap();
    const mib = (bytes: number) => `${Math.round(bytes / 2 ** 20)} MiB`;
    this.report.say(
      `${seconds(this.elapsedMs)}  round ${this.job.round}, ${totals.received.toLocaleString('en-US')} messages + ` +
        `${totals.collectives.toLocaleString('en-US')} collectives, ${mib(totals.pmlBytes)}, rails ${totals.downs} downs ${totals.ups} ups, ` +
        `resent ${mib(totals.bytesResent)}, most RSS ${mib(this.job.rssMaxBytes())}, longest gap ${Math.round(gap.anyMs)} ms ` +
        `(${Math.round(gap.railLeftMs)} with a rail left), ${this.left()}`,
    );
    this.report.figure({ progressMs: Math.round(this.elapsedMs), round: this.job.round, ...totals, ...gap });
  }

  private left(): string {
    const leftMs = Math.max(0, this.durationMs - this.elapsedMs);
    return leftMs < 90_000 ? `${Math.round(leftMs / 1000)} s left` : `${Math.round(leftMs / 60_000)} min left`;
  }

  /** Longest time in which nothing was delivered at a rank: of all, and of those that no outage of all rails touches. */
  private longestGap(): { anyMs: number; railLeftMs: number } {
    let anyMs = 0;
    let railLeftMs = 0;
    for (const { gaps } of this.job.ranks) {
      for (const [from, to] of gaps) {
        anyMs = Math.max(anyMs, to - from);
        const isOfOutage = this.outages.some((outage) => from <= outage.to + AFTER_OUTAGE_MS && to >= outage.from);
        if (!isOfOutage) railLeftMs = Math.max(railLeftMs, to - from);
      }
    }
    return { anyMs, railLeftMs };
  }

  // ---- the end

  /** Rails whole, ranks stopped, counts compared: what was found wrong. */
  async end(isBroken: boolean): Promise<string[]> {
    this.endedAt = nowMs();
    if (isBroken) {
      await this.job.kill();
      return [];
    }
    try {
      await this.lab.healAll();
      return await this.job.finish(this.options.roundSeconds * 1000);
    } catch (error) {
      if (!(error instanceof JobError)) throw error;
      const waits = this.job.exitCode === undefined ? [await this.whoWaits()] : [];
      await this.job.kill();
      return [this.job.wrong() ?? error.message, ...waits];
    } finally {
      for (const sample of this.job.takeMemory()) this.report.figure({ ...sample, atMs: Math.round(sample.atMs) });
    }
  }

  record(): Omit<SoakRecord, 'wrong'> {
    return {
      elapsedMs: this.endedAt - this.startAt,
      isInterrupted: this.isInterrupted,
      rounds: this.job.round,
      totals: this.job.totals(),
      faults: this.faults,
      gap: this.longestGap(),
      memory: this.job.ranks.map(({ memory }) => memory),
      warmMs: warmUpMs(Math.min(this.durationMs, this.endedAt - this.startAt)),
    };
  }
}

const seconds = (ms: number) => `${(ms / 1000).toFixed(1).padStart(7)} s`;
