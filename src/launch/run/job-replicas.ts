// What the end of a process means for its rank, where each rank is two or three processes, and whose output is that of the rank.
import type { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { ReplicaOutput } from './replica-output.ts';

export interface JobReplicasOptions {
  /** Processes of each rank. */
  readonly replicas: number;
  readonly ranks: number;
  /** A shadow takes the place of its lead when that dies. */
  readonly takesOver: boolean;
  isLiving(number: number): boolean;
  say(text: string): void;
}

export class JobReplicas {
  private readonly options: JobReplicasOptions;
  /** Ranks whose leads have died, and whose shadows have their places. */
  private readonly taken = new Set<number>();
  private readonly outputs = new Map<number, ReplicaOutput>();

  constructor(options: JobReplicasOptions) {
    this.options = options;
  }

  /** By rank: the number of the process that is its lead. */
  get leads(): number[] {
    const { ranks } = this.options;
    return Array.from({ length: ranks }, (_, rank) => (this.taken.has(rank) ? rank + ranks : rank));
  }

  /** A process has ended, not well. True: its rank goes on, which is said; false: the job ends. `isDeath`: by a signal, or with its host. */
  survives(number: number, text: string, isDeath: boolean): boolean {
    const { replicas, ranks, takesOver, isLiving, say } = this.options;
    if (replicas < 2) return false;
    const rank = number % ranks;
    if (number === rank) {
      const shadow = rank + ranks;
      if (!takesOver || !isDeath || !isLiving(shadow)) return false;
      this.taken.add(rank);
      this.outputs.get(rank)?.takeOver();
      say(
        `${text}; its shadow, process ${shadow}, takes its place, and goes on by itself: what it sends is compared with nothing any more`,
      );
      return true;
    }
    if (this.taken.has(rank)) return false;
    // Two of three do not end as it has, also where that was with a code.
    for (let other = rank + ranks; other < ranks * replicas; other += ranks) {
      if (other === number || !isLiving(other)) continue;
      say(`${text}; the rank goes on with its other shadow`);
      return true;
    }
    if (isDeath) say(`${text}; the rank goes on by itself: what it sends is compared with nothing any more`);
    return isDeath;
  }

  /** What a process writes to its standard output, as that of its rank; null: another stream has it. */
  output(number: number, source: Readable | null): Readable | null {
    const { ranks, takesOver, say } = this.options;
    if (source === null || !takesOver) return source;
    const rank = number % ranks;
    if (number !== rank) {
      this.outputs.get(rank)?.addShadow(source);
      return null;
    }
    const output = new ReplicaOutput(say);
    this.outputs.set(rank, output);
    output.addLead(source);
    return output.out;
  }

  /** Resolves when all output has passed. */
  async drained(): Promise<void> {
    await Promise.allSettled([...this.outputs.values()].map(({ out }) => finished(out)));
  }
}
