// Revocation of one communicator at one member: a bit that is set once and told to the others once. The flood goes over the ring of the
// members with its chords, past those that are gone; a member whose next living one in the ring has died tells the one behind it, so that everybody
// who lives hears of it.
import { Bitmap } from './bitmap.ts';
import { indexIn, ringNeighbours } from './graphs.ts';

export class Revocation {
  readonly self: number;
  isRevoked = false;
  /** Members to which REVOKE or REVOKED has gone. */
  private readonly told: Bitmap;
  /** Members that have said REVOKE or REVOKED: nothing that is under way with them can complete any more. */
  private readonly heard: Bitmap;

  constructor(self: number, size: number) {
    this.self = self;
    this.told = new Bitmap(size);
    this.heard = new Bitmap(size);
  }

  /**
   * Sets the bit. Returns to whom REVOKE goes: the neighbours in the ring of the living, and `also`, those with which a rendezvous is under
   * way, which ends only when they have answered. Empty when it was set before.
   */
  revoke(living: readonly number[], also: Iterable<number>): number[] {
    if (this.isRevoked) return [];
    this.isRevoked = true;
    return this.untold([...ringNeighbours(this.told.size, this.self, (rank) => indexIn(living, rank) < 0), ...also]);
  }

  /** A REVOKE or REVOKED of that member. Returns true when it has to be answered by REVOKED: nothing of ours says it to that member yet. */
  hear(rank: number, mustAnswer: boolean): boolean {
    this.heard.add(rank);
    if (!mustAnswer || this.told.has(rank)) return false;
    this.told.add(rank);
    return true;
  }

  /**
   * A member is gone, or has a successor. Returns to whom REVOKE goes now: those next to this one in the ring of the living, who would
   * otherwise have heard it from the one that is gone.
   */
  mend(living: readonly number[]): number[] {
    if (!this.isRevoked || living.length < 2) return [];
    const at = living.indexOf(this.self);
    const { length } = living;
    return this.untold([living[(at + 1) % length], living[(at + length - 1) % length]]);
  }

  /** Another process has taken the place of that rank: it has heard nothing and said nothing. */
  revive(rank: number): void {
    this.told.delete(rank);
    this.heard.delete(rank);
  }

  /** That member has revoked it, too, and knows that this one has. */
  hasHeard(rank: number): boolean {
    return this.heard.has(rank);
  }

  private untold(ranks: readonly number[]): number[] {
    const list: number[] = [];
    for (const rank of ranks) {
      if (rank === this.self || this.told.has(rank)) continue;
      this.told.add(rank);
      list.push(rank);
    }
    return list;
  }
}
