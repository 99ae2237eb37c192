// Who is behind the ranks of a communicator in one generation of it, and which of them are gone. A generation ends when a successor takes a
// place in it; agreements that were decided before keep the roll that they were decided with.
import { Bitmap } from './bitmap.ts';

export class Roll {
  readonly generation: number;
  /** Process numbers by rank. */
  readonly members: readonly number[];
  /** This process's rank. */
  readonly self: number;
  /** Dead or left: nothing is waited for from them. */
  readonly gone: Bitmap;
  readonly dead: Bitmap;
  private readonly ranks = new Map<number, number>();

  constructor(generation: number, members: readonly number[], self: number) {
    this.generation = generation;
    this.members = members;
    this.self = self;
    this.gone = new Bitmap(members.length);
    this.dead = new Bitmap(members.length);
    members.forEach((number, rank) => {
      this.ranks.set(number, rank);
    });
  }

  get size(): number {
    return this.members.length;
  }

  rankOf(number: number): number | undefined {
    return this.ranks.get(number);
  }

  /** Ranks that are not gone, ascending. */
  get living(): number[] {
    const list: number[] = [];
    for (let rank = 0; rank < this.members.length; rank++) if (!this.gone.has(rank)) list.push(rank);
    return list;
  }

  /** Returns whether that is news. */
  markGone(rank: number, isDead: boolean): boolean {
    if (isDead) this.dead.add(rank);
    if (this.gone.has(rank)) return false;
    this.gone.add(rank);
    return true;
  }
}
