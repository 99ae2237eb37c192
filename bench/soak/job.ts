// The ranks of a soak seen from outside: what they report, and their counts held against each other in the end.
// Imports lab-job, soak-protocol.
import type { Socket } from 'node:net';
import { ControlledJob, type SpawnJobOptions, spawnJob } from '../lab/job.ts';
import type { FromSoakRank, SoakCounts, SoakMemory, SoakPairs, SoakSpec, ToSoakRank } from './protocol.ts';

const START_TIMEOUT_MS = 60_000;

export interface MemorySample extends SoakMemory {
  rank: number;
  /** Since the start of the soak. */
  atMs: number;
  round: number;
}

/** Gaps that are remembered of each rank: the longest. */
const GAPS_KEPT = 2000;

export class SoakRank {
  pid = 0;
  socket: Socket | undefined;
  readyAt = 0;
  /** Rounds done, and when that was said. */
  round = 0;
  roundAt = 0;
  counts: SoakCounts | undefined;
  gaps: [number, number][] = [];
  wrong: string | undefined;
  done: { rounds: number; pairs: SoakPairs } | undefined;
  readonly memory: MemorySample[] = [];
  readonly rank: number;
  /** When the soak began. */
  startedAt = 0;

  constructor(rank: number) {
    this.rank = rank;
  }

  hear(message: FromSoakRank): void {
    switch (message.type) {
      case 'hello':
        this.pid = message.pid;
        break;
      case 'ready':
        this.readyAt = message.at;
        this.roundAt = message.at;
        break;
      case 'round':
        this.round = message.round;
        this.roundAt = message.at;
        this.counts = message.counts;
        this.gaps.push(...message.gaps);
        if (this.gaps.length > 2 * GAPS_KEPT) this.gaps = this.gaps.sort((a, b) => b[1] - b[0] - (a[1] - a[0])).slice(0, GAPS_KEPT);
        if (message.memory !== undefined)
          this.memory.push({ rank: this.rank, atMs: message.at - this.startedAt, round: message.round, ...message.memory });
        break;
      case 'wrong':
        this.wrong = message.text;
        break;
      case 'done':
        this.done = message;
        this.counts = message.counts;
    }
  }
}

export interface SoakJobOptions extends Pick<SpawnJobOptions, 'lab' | 'nodes' | 'mca'> {
  spec: Omit<SoakSpec, 'control'>;
}

export class SoakJob extends ControlledJob<SoakRank> {
  private taken = new Map<SoakRank, number>();

  /** Starts the ranks and returns when all are about to begin. */
  static async start({ spec, ...options }: SoakJobOptions): Promise<SoakJob> {
    const args = (control: string) => [JSON.stringify({ ...spec, control } satisfies SoakSpec)];
    const nodeArgs = ['--expose-gc', '--enable-source-maps'];
    const spawned = await spawnJob({ ...options, program: 'soak-rank', args, nodeArgs, detached: true });
    const job = new SoakJob(
      spawned,
      options.nodes.map((_, rank) => new SoakRank(rank)),
    );
    try {
      await job.until('all ranks to begin', () => job.ranks.every(({ readyAt }) => readyAt > 0), START_TIMEOUT_MS);
    } catch (error) {
      await job.kill();
      throw error;
    }
    return job;
  }

  set startedAt(at: number) {
    for (const rank of this.ranks) rank.startedAt = at;
  }

  /** What a rank's audit has found, first of all ranks. */
  wrong(): string | undefined {
    return this.ranks.find(({ wrong }) => wrong !== undefined)?.wrong;
  }

  /** Rounds that all have done. */
  get round(): number {
    return Math.min(...this.ranks.map(({ round, done }) => done?.rounds ?? round));
  }

  /** Samples that are new. */
  takeMemory(): MemorySample[] {
    return this.ranks.flatMap((rank) => {
      const from = this.taken.get(rank) ?? 0;
      this.taken.set(rank, rank.memory.length);
      return rank.memory.slice(from);
    });
  }

  rssMaxBytes(): number {
    return Math.max(0, ...this.ranks.map(({ memory }) => memory.at(-1)?.rssBytes ?? 0));
  }

  /** Over all ranks. */
  totals(): SoakCounts {
    const total: Record<string, number> = {};
    for (const { counts } of this.ranks) {
      for (const [name, value] of Object.entries(counts ?? NOTHING)) total[name] = (total[name] ?? 0) + value;
    }
    return total as unknown as SoakCounts;
  }

  /** Tells rank 0 to stop, waits for the end, and holds the counts of each pair against each other: what was found wrong. */
  async finish(timeoutMs: number): Promise<string[]> {
    this.tell(0, { type: 'stop' } satisfies ToSoakRank);
    const isOver = () => this.wrong() !== undefined || this.ranks.every(({ done }) => done !== undefined);
    await this.until('the ranks to finish', isOver, timeoutMs);
    const found = this.wrong();
    await this.ended();
    if (found !== undefined) return [found];
    const wrong = pairFaults(this.ranks.map(({ done }) => done!.pairs));
    const rounds = new Set(this.ranks.map(({ done }) => done!.rounds));
    if (rounds.size !== 1) wrong.push(`the ranks have done different numbers of rounds: ${[...rounds].join(', ')}`);
    if (this.exitCode !== 0) wrong.push(`exit code ${this.exitCode}: ${this.lastWords()}`);
    return wrong;
  }
}

const NOTHING: SoakCounts = {
  sent: 0,
  received: 0,
  bytesReceived: 0,
  collectives: 0,
  pmlMessages: 0,
  pmlBytes: 0,
  ups: 0,
  downs: 0,
  bytesResent: 0,
  envelopesResent: 0,
  restarts: 0,
  duplicatesDropped: 0,
};

/** `pairs`: what each rank says that it has sent to and received from each. */
export function pairFaults(pairs: readonly SoakPairs[]): string[] {
  const wrong: string[] = [];
  for (const [source, { sent }] of pairs.entries()) {
    for (const [dest, count] of sent.entries()) {
      const received = pairs[dest]?.received[source];
      if (received !== count) wrong.push(`rank ${source} has sent ${count} messages to rank ${dest}, which has received ${received}`);
    }
  }
  return wrong;
}
