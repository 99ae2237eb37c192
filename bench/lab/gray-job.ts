// A job of the campaign of bad links, seen from outside: what its ranks report, and how it is started, paced, watched and judged.
// Imports the lab, lab-job, lab-protocol, gray-protocol.
import type { Socket } from 'node:net';
import { type Lab, sleep } from '../../tools/lab/lab.ts';
import type { FromGrayRank, GrayBytes, GrayGap, GrayPlant, GrayRail, GraySpec, ToGrayRank } from './gray-protocol.ts';
import { GRAY_TRAFFICS, type GrayTraffic } from './gray-protocol.ts';
import { ControlledJob, JobError, type SpawnedJob, spawnJob } from './job.ts';
import { nowMs } from './protocol.ts';

const START_TIMEOUT_MS = 40_000;
/** Nothing delivered for so long is a hang. The same holds for an order to pause or to end. */
export const HANG_MS = 10_000;
const LOOK_EVERY_MS = 20;
/** Reports that are kept: some 20 s of them. */
const SAMPLES_KEPT = 2000;
const GAPS_KEPT = 20_000;
const EVENTS_KEPT = 5000;
const WAITS_MS = 3000;

interface Sample {
  at: number;
  bytes: GrayBytes;
  rails: GrayRail[];
}

export class GrayRank {
  pid = 0;
  socket: Socket | undefined;
  readyAt = 0;
  reportedAt = 0;
  lastAt = 0;
  messages = 0;
  pausedAt = 0;
  gaps: GrayGap[] = [];
  samples: Sample[] = [];
  events: { at: number; event: string; key: string; peer: number; reason: string }[] = [];
  done: Extract<FromGrayRank, { type: 'done' }> | undefined;

  hear(message: FromGrayRank): void {
    switch (message.type) {
      case 'hello':
        this.pid = message.pid;
        break;
      case 'ready':
        this.readyAt = message.at;
        break;
      case 'report': {
        const { at, bytes, rails } = message;
        this.samples.push({ at, bytes, rails });
        if (this.samples.length > 2 * SAMPLES_KEPT) this.samples.splice(0, SAMPLES_KEPT);
        this.reportedAt = at;
        this.lastAt = message.lastAt;
        this.messages = message.messages;
        this.gaps.push(...message.gaps);
        if (this.gaps.length > 2 * GAPS_KEPT) this.gaps.splice(0, GAPS_KEPT);
        break;
      }
      case 'rail':
        this.events.push(message);
        if (this.events.length > 2 * EVENTS_KEPT) this.events.splice(0, EVENTS_KEPT);
        break;
      case 'paused':
        this.pausedAt = message.at;
        break;
      case 'done':
        this.done = message;
    }
  }

  /** The gaps of which a part lies in [from, to]. */
  gapsIn(from: number, to: number): { fromMs: number; toMs: number; stream: number }[] {
    return this.gaps.flatMap(([a, b, stream]) => (b >= from && a <= to ? [{ fromMs: a, toMs: b, stream }] : []));
  }

  /** A counter at that time, between two reports in proportion. */
  bytesAt(time: number, name: keyof GrayBytes): number {
    const { samples } = this;
    let i = samples.length - 1;
    while (i > 0 && samples[i - 1].at > time) i--;
    const after = samples[i];
    const before = samples[i - 1];
    if (before === undefined || after.at <= time) return after.bytes[name];
    const share = Math.max(0, Math.min(1, (time - before.at) / (after.at - before.at)));
    return before.bytes[name] + share * (after.bytes[name] - before.bytes[name]);
  }

  /** What it said last of that rail. */
  rail(rail: number): GrayRail | undefined {
    return this.samples.at(-1)?.rails.find((one) => one.rail === rail);
  }

  /** When frames first came over that rail after `since`. */
  usedAt(rail: number, since: number): number | undefined {
    const framesOf = (sample: Sample) => sample.rails.find((one) => one.rail === rail)?.framesReceived ?? 0;
    const after = this.samples.filter(({ at }) => at >= since);
    return after.find((sample) => framesOf(sample) > framesOf(after[0]))?.at;
  }
}

export interface GrayJobOptions {
  lab: Lab;
  traffic: GrayTraffic;
  mca: Record<string, string>;
  /** Rails of the lab that the job has. */
  rails: number;
  plant?: GrayPlant | undefined;
}

export class GrayJob extends ControlledJob<GrayRank> {
  readonly traffic: GrayTraffic;
  private isRunning = false;
  private runningSince = 0;

  private constructor(spawned: SpawnedJob, ranks: readonly GrayRank[], traffic: GrayTraffic) {
    super(spawned, ranks);
    this.traffic = traffic;
  }

  /** Starts the ranks, each on a node of its own, and returns when all rails are up. Nothing is sent before go(). */
  static async start({ lab, traffic, mca, rails, plant }: GrayJobOptions): Promise<GrayJob> {
    const size = GRAY_TRAFFICS[traffic].ranks;
    const spec: Omit<GraySpec, 'control'> = { traffic, rails, gapMinMs: 1, reportEveryMs: size > 2 ? 20 : 10, plant };
    const args = (control: string) => [JSON.stringify({ ...spec, control } satisfies GraySpec)];
    const nodes = Array.from({ length: size }, (_, node) => node);
    const spawned = await spawnJob({ lab, nodes, program: 'gray-rank', args, mca, nodeArgs: ['--enable-source-maps'], detached: true });
    return await GrayJob.attach(spawned, traffic);
  }

  /** Takes a job that was started elsewhere and speaks as ours do. Returns when all ranks are ready. */
  static async attach(spawned: SpawnedJob, traffic: GrayTraffic): Promise<GrayJob> {
    const ranks = Array.from({ length: GRAY_TRAFFICS[traffic].ranks }, () => new GrayRank());
    const job = new GrayJob(spawned, ranks, traffic);
    try {
      await job.until('all ranks to begin', () => job.ranks.every(({ readyAt }) => readyAt > 0), START_TIMEOUT_MS);
    } catch (error) {
      await job.kill();
      throw error;
    }
    return job;
  }

  /** Ranks to which things are delivered: all, but for the one that only sends. */
  get receivers(): readonly GrayRank[] {
    return this.traffic === 'pingpong' || this.traffic === 'allreduce' ? this.ranks : this.ranks.slice(1);
  }

  private order(message: ToGrayRank): void {
    this.tell(0, message);
  }

  go(): void {
    this.isRunning = true;
    this.runningSince = nowMs();
    this.order({ type: 'go' });
  }

  /** Returns when everything that was sent has left. */
  async pause(): Promise<void> {
    const since = nowMs();
    this.order({ type: 'pause' });
    await this.until('the senders to pause', () => this.ranks[0].pausedAt >= since, HANG_MS);
    this.isRunning = false;
  }

  /** How long a receiver has waited by now. */
  openGapMs(): number {
    if (!this.isRunning) return 0;
    const now = nowMs();
    return Math.max(...this.receivers.map(({ lastAt }) => now - Math.max(lastAt, this.runningSince)));
  }

  /** Sleeps; throws when the job ends or hangs meanwhile. */
  async watch(ms: number): Promise<void> {
    await this.watchUntil(() => false, ms);
  }

  /** Until the condition holds or the time is up: whether it held. Throws when the job ends or hangs. */
  async watchUntil(condition: () => boolean, ms: number): Promise<boolean> {
    const end = nowMs() + ms;
    for (;;) {
      if (this.exitCode !== undefined) throw new JobError(`the job ended (code ${this.exitCode}): ${this.lastWords()}`);
      const open = this.openGapMs();
      if (open > HANG_MS) throw new JobError(`nothing was delivered for ${Math.round(open)} ms`);
      if (condition()) return true;
      const left = end - nowMs();
      if (left <= 0) return false;
      await sleep(Math.min(left, LOOK_EVERY_MS));
    }
  }

  /** At all ranks, to all others. */
  isUp(rail: number): boolean {
    return this.ranks.map((rank) => rank.rail(rail)).every((one) => one !== undefined && one.up === one.of);
  }

  /** Whether something came over it to any rank after `since`. */
  carries(rail: number, since: number): boolean {
    return this.ranks.some((rank) => rank.usedAt(rail, since) !== undefined);
  }

  /** How long after `since` something had come over each of these rails; undefined: not yet. */
  backAfterMs(rails: readonly number[], since: number): number | undefined {
    const times = rails.map((rail) =>
      Math.min(...this.ranks.map((rank) => rank.usedAt(rail, since)).map((at) => at ?? Number.POSITIVE_INFINITY)),
    );
    const last = Math.max(...times);
    return Number.isFinite(last) ? last - since : undefined;
  }

  /** Over all receivers, or all ranks, within [from, to]. */
  bytesIn(from: number, to: number, name: keyof GrayBytes): number {
    const ranks = name === 'delivered' ? this.receivers : this.ranks;
    return ranks.reduce((sum, rank) => sum + rank.bytesAt(to, name) - rank.bytesAt(from, name), 0);
  }

  /** Ends the traffic, waits until everything is delivered and audited, and returns what the audit found wrong. */
  async finish(): Promise<string[]> {
    this.isRunning = false;
    this.order({ type: 'stop' });
    await this.until('the ranks to finish', () => this.ranks.every(({ done }) => done !== undefined), HANG_MS);
    await this.ended(HANG_MS);
    const wrong = this.ranks.flatMap(({ done }, rank) => done!.errors.map((text) => `rank ${rank}: ${text}`));
    const [first, ...others] = this.ranks.map(({ done }) => done!);
    for (const [i, { received }] of others.entries()) {
      if (received.join() !== first.sent.join()) wrong.push(`rank ${i + 1} received ${received.join()} messages of ${first.sent.join()}`);
    }
    if (first.sent.some((count) => count === 0)) wrong.push('a stream has sent nothing');
    if (this.exitCode !== 0) wrong.push(`exit code ${this.exitCode}: ${this.lastWords()}`);
    return wrong;
  }

  /** Kills a job that went wrong and returns what it printed, with who waits for whom if it still runs. */
  async autopsy(): Promise<string> {
    if (this.exitCode === undefined) {
      this.signal('SIGUSR2');
      await sleep(WAITS_MS);
    }
    await this.kill();
    return this.output;
  }
}
