// A measured job of two ranks: what they report, and how it is started, stopped and judged. Imports the lab, lab-job, lab-protocol.
import type { Socket } from 'node:net';
import type { Lab } from '../../tools/lab/lab.ts';
import { ControlledJob, spawnJob } from './job.ts';
import type { FromRank, RankSpec, ThroughputRow, ToRank } from './protocol.ts';

const SAMPLES_KEPT = 4000;
const START_TIMEOUT_MS = 40_000;
const END_TIMEOUT_MS = 45_000;

/** What one rank brought over one rail in one report: from the time of the report before to this one's. */
interface UseSample {
  from: number;
  to: number;
  frames: number;
  payloadBytes: number;
  state: string;
  troubles: number;
}

export class RankView {
  pid = 0;
  readyAt = 0;
  reportedAt = 0;
  delivered = 0;
  lastAt = 0;
  readonly gaps: [number, number][] = [];
  readonly uses = new Map<string, UseSample[]>();
  readonly railEvents: { at: number; event: string; key: string; reason: string }[] = [];
  readonly rows: ThroughputRow[] = [];
  computedAt = 0;
  done: Extract<FromRank, { type: 'done' }> | undefined;
  socket: Socket | undefined;

  /**
   * Longest time without a delivery of which a part lies in [from, to], or which began there (`began`); one that is under way counts as
   * far as it goes.
   */
  worstGapMs(from: number, to: number, which: 'overlaps' | 'began' = 'overlaps'): number {
    const counts = (a: number, b: number) => a <= to && (which === 'began' ? a : b) >= from;
    let worst = counts(this.lastAt, this.reportedAt) ? this.reportedAt - this.lastAt : 0;
    for (let i = this.gaps.length - 1; i >= 0; i--) {
      const [a, b] = this.gaps[i];
      if (b < from) break;
      if (counts(a, b)) worst = Math.max(worst, b - a);
    }
    return worst;
  }

  /** When frames first came here over that rail after `since`; undefined while none has. */
  usedAt(key: string, since: number): number | undefined {
    return this.uses.get(key)?.find((sample) => sample.from >= since && sample.frames > 0)?.to;
  }

  /** Longest time within [from, to] during which no payload came over any rail, in steps of the reports. */
  longestWithoutPayloadMs(from: number, to: number): number {
    const busy = [...this.uses.values()]
      .flat()
      .filter((sample) => sample.payloadBytes > 0 && sample.to >= from && sample.from <= to)
      .sort((a, b) => a.from - b.from);
    let worst = 0;
    let since = from;
    for (const sample of busy) {
      worst = Math.max(worst, sample.from - since);
      since = Math.max(since, sample.to);
    }
    return Math.max(worst, to - since);
  }

  /** How often that rail was lost or suspected here so far. */
  troublesOf(key: string): number {
    return this.uses.get(key)?.at(-1)?.troubles ?? 0;
  }

  stateOf(key: string): string | undefined {
    return this.uses.get(key)?.at(-1)?.state;
  }

  framesSince(key: string, since: number): number {
    return (this.uses.get(key) ?? []).reduce((sum, sample) => (sample.from >= since ? sum + sample.frames : sum), 0);
  }

  hear(message: FromRank): void {
    switch (message.type) {
      case 'hello':
        this.pid = message.pid;
        break;
      case 'ready':
        this.readyAt = message.at;
        break;
      case 'report': {
        for (const { key, state, framesReceived, payloadBytesReceived, troubles } of message.rails) {
          let list = this.uses.get(key);
          if (list === undefined) {
            list = [];
            this.uses.set(key, list);
          }
          const from = this.reportedAt;
          list.push({ from, to: message.at, frames: framesReceived, payloadBytes: payloadBytesReceived, state, troubles });
          if (list.length > 2 * SAMPLES_KEPT) list.splice(0, SAMPLES_KEPT);
        }
        this.reportedAt = message.at;
        this.delivered = message.delivered;
        this.lastAt = message.lastAt;
        this.gaps.push(...message.gaps);
        break;
      }
      case 'rail':
        this.railEvents.push(message);
        break;
      case 'row':
        this.rows.push(message.row);
        break;
      case 'computed':
        this.computedAt = message.at;
        break;
      case 'done':
        this.done = message;
    }
  }
}

export interface JobOptions {
  lab: Lab;
  /** Node of each rank. */
  nodes: [number, number];
  mca: Record<string, string>;
  spec: Omit<RankSpec, 'control'>;
  nodeArgs?: string[];
}

export const DEFAULT_SPEC: Omit<RankSpec, 'control' | 'traffic' | 'rails'> = {
  bytes: 1 << 20,
  window: 16,
  pauseMs: 0,
  gapMinMs: 0.5,
  sizes: [],
  warmMs: 1000,
  measureMs: 3000,
};

export class Job extends ControlledJob<RankView> {
  /** Starts the two ranks and returns when both exchange messages. */
  static async start({ lab, nodes, mca, spec, nodeArgs = [] }: JobOptions): Promise<Job> {
    const args = (control: string) => [JSON.stringify({ ...spec, control } satisfies RankSpec)];
    const spawned = await spawnJob({ lab, nodes, program: 'lab-rank', args, mca, nodeArgs });
    const job = new Job(spawned, [new RankView(), new RankView()]);
    try {
      await job.until('both ranks to begin', () => job.ranks.every((rank) => rank.readyAt > 0), START_TIMEOUT_MS);
    } catch (error) {
      await job.kill();
      throw error;
    }
    return job;
  }

  send(rank: number, message: ToRank): void {
    this.tell(rank, message);
  }

  /** Tells rank 0 to stop, waits until everything is delivered and audited, and returns what the audit found wrong. */
  async stop(): Promise<string[]> {
    this.send(0, { type: 'stop' });
    await this.until('the ranks to finish', () => this.ranks.every((rank) => rank.done !== undefined), END_TIMEOUT_MS);
    await this.ended();
    const [first, second] = this.ranks.map((rank) => rank.done!);
    const wrong = [...first.errors.map((text) => `rank 0: ${text}`), ...second.errors.map((text) => `rank 1: ${text}`)];
    if (second.received !== first.sent) wrong.push(`rank 1 received ${second.received} messages of ${first.sent}`);
    if (this.exitCode !== 0) wrong.push(`exit code ${this.exitCode}: ${this.lastWords()}`);
    return wrong;
  }
}
