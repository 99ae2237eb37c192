// What a log lacks that was given up: it is whole again when every rank of other groups has saved behind the numbers from which on it has all. Pure.
import type { FlowNumbers } from '../../pml/succession.ts';
import { serialDiff } from '../../util/serial.ts';

/** Numbers from which on the log has all again that goes to a rank, by context. */
export type Lacks = readonly (readonly [rank: number, numbers: readonly (readonly [ctx: number, seq: number])[]])[];

/** Whether a rank that goes back to these numbers has all that the other rank had sent to it below those. */
export function hasBelow(
  flows: Iterable<{ readonly peer: number; readonly ctx: number; readonly nextIn: number }>,
  from: number,
  below: FlowNumbers,
): boolean {
  const nextIn = new Map<number, number>();
  for (const flow of flows) if (flow.peer === from) nextIn.set(flow.ctx, flow.nextIn);
  return [...below].every(([ctx, seq]) => serialDiff(nextIn.get(ctx) ?? 0, seq) >= 0);
}

export class GroupLacks {
  /** By rank of another group. */
  private readonly numbers = new Map<number, Map<number, number>>();

  get isEmpty(): boolean {
    return this.numbers.size === 0;
  }

  clear(): void {
    this.numbers.clear();
  }

  /** A save is cut after the log was given up: from these numbers on all that goes to other groups is logged again. */
  cut(flows: Iterable<{ readonly peer: number; readonly ctx: number; readonly nextOut: number }>, isMate: (rank: number) => boolean): void {
    this.numbers.clear();
    for (const { peer, ctx, nextOut } of flows) {
      if (isMate(peer)) continue;
      const numbers = this.numbers.get(peer) ?? new Map<number, number>();
      this.numbers.set(peer, numbers.set(ctx, nextOut));
    }
  }

  /** That rank asks for nothing below these numbers. Returns whether nothing is lacking any more, since just now. */
  saved(rank: number, nextIn: FlowNumbers): boolean {
    const numbers = this.numbers.get(rank);
    if (numbers === undefined) return false;
    for (const [ctx, seq] of numbers) if ((nextIn.get(ctx) ?? 0) < seq) return false;
    this.numbers.delete(rank);
    return this.numbers.size === 0;
  }

  get list(): Lacks {
    return [...this.numbers].map(([rank, numbers]) => [rank, [...numbers]] as const);
  }

  set list(lacks: Lacks) {
    this.numbers.clear();
    for (const [rank, numbers] of lacks) this.numbers.set(rank, new Map(numbers));
  }
}
