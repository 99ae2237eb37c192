// The saves of one rank as a state machine: events of the program, of the network and of agreements go in, actions come out. Pure: copies,
// messages and votes are made by whoever drives it, src/ft/recover or the simulator.
//
// A save is committed by agreement: a rank votes for it when its own image is whole and every copy has come that formula (1) makes it hold, so
// holders vouch for the dead, too. Whoever learns of a death votes no unless it has voted already, wherever its program is. So every vote comes
// to an end, and saves and recoveries have one order at all members: a recovery begins with a decision that names the failed, and from that on
// nothing is saved in this epoch.
import { assert } from '../../util/assert.ts';
import type { Placement } from './placement.ts';
import { moveSave, type SaveListener, type SaveState } from './save-states.ts';
import { isSameSave, type Piece, type SaveName, type Slot, Slots, saveText } from './slots.ts';

/** Bits of a vote. The decision has the AND of all votes. */
export const VOTE = {
  /** My image is whole, and so is every copy that I hold. */
  COMMIT: 1,
  /** My program has ended. */
  ENDED: 2,
} as const;

/** What is to be done, in this order. */
export type SaveAction =
  /** Begin the next agreement of the communicator's second series with this flag. */
  | { readonly kind: 'vote'; readonly flag: number }
  /** Send the own image of this slot to these ranks. */
  | { readonly kind: 'spread'; readonly slot: Slot; readonly to: readonly number[] }
  /** Tell these ranks that there is no image of this save here: they need not wait for their copy. */
  | { readonly kind: 'excuse'; readonly name: SaveName; readonly to: readonly number[] }
  /** This save exists; undefined where a new epoch begins with nothing to restore. */
  | { readonly kind: 'committed'; readonly name: SaveName | undefined }
  /** There is no such save: a rank could not make or take its part of it, or has failed. */
  | { readonly kind: 'abandoned'; readonly name: SaveName }
  /** These ranks have failed: all go back. */
  | { readonly kind: 'recover'; readonly failed: readonly number[] }
  /** All have ended. */
  | { readonly kind: 'ended' };

/** A copy as its owner announces it. */
export interface CopyName extends SaveName {
  readonly owner: number;
  /** Which vote of the epoch it is for: a save that is abandoned leaves its number to the next. */
  readonly attempt: number;
}

export interface SaveCoreOptions {
  readonly rank: number;
  /** Committed saves that stay readable. */
  readonly depth: number;
  readonly listener?: SaveListener;
}

export class SaveCore {
  state: SaveState = 'IDLE';
  /** Rank among those that the slots are shared with: another one after members were left out. */
  rank: number;
  slots: Slots;
  /** Known from the first meeting of the members on. */
  placement!: Placement;
  /** To be done. The driver takes them away. */
  readonly actions: SaveAction[] = [];
  readonly counters = { committed: 0, abandoned: 0, ghosts: 0 };
  /** Counts recoveries; below 0 until all have met for the first time. */
  epoch = -1;
  /** Number of the next save. */
  k = 0;
  /** Number of the next vote of this epoch. */
  attempt = 0;
  private readonly depth: number;
  private readonly listener: SaveListener | undefined;
  /** What there was before members were left out, until those that are left have committed what they go on with. */
  private former: { readonly rank: number; readonly placement: Placement; readonly slots: Slots } | undefined;
  /** What is being saved. */
  private slot: Slot | undefined;
  /** The image has to be in a store, too, before this rank votes for the save. */
  private waitsForStore = false;
  private vote = 0;
  /** Members that are known to be dead. */
  private readonly dead = new Set<number>();

  constructor({ rank, depth, listener }: SaveCoreOptions) {
    this.rank = rank;
    this.depth = depth;
    this.listener = listener;
    this.slots = new Slots(depth);
  }

  /** The save that is being made, if one is. */
  get pending(): Slot | undefined {
    return this.slot;
  }

  /** The name of the save that comes next. */
  get nextName(): SaveName {
    return { epoch: this.epoch, k: this.k };
  }

  /** Nothing is under way: a save may begin. */
  get isIdle(): boolean {
    return this.state === 'IDLE' || this.state === 'COMMITTED' || this.state === 'ABANDONED';
  }

  /** Owners whose copies this rank still waits for. */
  get missing(): number[] {
    const { slot } = this;
    return slot === undefined ? [] : this.placement.owners(this.rank, slot.name.k).filter((owner) => !slot.held.has(owner));
  }

  // ---------------------------------------------------------------- a save

  /** The program has come to a save. False: this rank has voted no already, because it knows of a death. */
  begin(): boolean {
    if (!this.isIdle) return false;
    this.move('QUIETING');
    return true;
  }

  /** All ranks have come to it, and nothing is on its way. Returns the slot that the state is to be copied into. */
  handleQuiet(storesToo: boolean): Slot | undefined {
    if (this.state !== 'QUIETING') return undefined;
    this.move('COPYING');
    this.waitsForStore = storesToo;
    this.slot = this.slots.take(this.nextName);
    return this.slot;
  }

  /** All ranks have found together that something is on its way. */
  handleNotQuiet(): void {
    if (this.state === 'QUIETING') this.move('IDLE');
  }

  /** The own image is whole. */
  handleCopied(piece: Piece): void {
    if (this.state !== 'COPYING') return;
    this.spread(piece);
  }

  private spread(piece: Piece, has: (holder: number) => boolean = () => false): void {
    const slot = this.slot as Slot;
    slot.own = piece;
    this.move('SPREADING');
    const to = this.placement.holders(this.rank, slot.name.k).filter((holder) => !has(holder));
    this.actions.push({ kind: 'spread', slot, to });
    this.voteIfWhole();
  }

  /** A copy has come, whole. What is for another save is of no use. Returns whether it is kept. */
  handleCopy(name: CopyName, piece: Piece): boolean {
    if (!this.isPending(name)) {
      this.counters.ghosts++;
      return false;
    }
    (this.slot as Slot).held.set(name.owner, piece);
    this.voteIfWhole();
    return true;
  }

  /** The image is in the store. */
  handleStored(): void {
    this.waitsForStore = false;
    this.voteIfWhole();
  }

  /** There is no copy of that owner: it could not make its image. */
  handleNoCopy(name: CopyName): void {
    if (this.isPending(name)) this.refuse();
  }

  private isPending(name: CopyName): boolean {
    const { slot } = this;
    const isTaking = slot !== undefined && (this.state === 'COPYING' || this.state === 'SPREADING');
    return isTaking && isSameSave(name, slot.name) && name.attempt === this.attempt && this.missing.includes(name.owner);
  }

  /** This rank cannot make its part of the save, or not hold what it must. */
  refuse(): void {
    const { slot, state } = this;
    if (state !== 'COPYING' && state !== 'SPREADING' && state !== 'RESTORING') return;
    if (state === 'COPYING' && slot !== undefined)
      this.actions.push({ kind: 'excuse', name: slot.name, to: this.placement.holders(this.rank, slot.name.k) });
    this.castVote(0);
  }

  private voteIfWhole(): void {
    if (this.state !== 'SPREADING' || this.waitsForStore) return;
    if (this.missing.length === 0) this.castVote(VOTE.COMMIT);
  }

  /** The program of this rank has come to its end. False: this rank has voted no already. */
  end(): boolean {
    if (!this.isIdle) return false;
    this.castVote(VOTE.ENDED);
    return true;
  }

  private castVote(flag: number): void {
    this.move('VOTING');
    this.vote = flag;
    this.actions.push({ kind: 'vote', flag });
  }

  // ---------------------------------------------------------------- deaths and decisions

  /** A member is known to be dead: no save is voted for any more. */
  handleDeath(rank: number): void {
    if (this.state === 'RECOVERING' || this.state === 'ENDED') return;
    this.dead.add(rank);
    this.voteNo();
  }

  private voteNo(): void {
    if (this.dead.size > 0 && this.state !== 'VOTING') this.castVote(0);
  }

  /** What all members have decided: the AND of their votes, and the ranks that have failed. */
  handleDecision(flag: number, failed: readonly number[]): void {
    assert(this.state === 'VOTING', `a decision about saves comes to rank ${this.rank} in state ${this.state}`);
    assert((flag & ~this.vote) === 0, `F4: rank ${this.rank} has voted ${this.vote}, and ${flag} is decided`);
    this.attempt++;
    const { slot } = this;
    this.slot = undefined;
    if ((flag & VOTE.ENDED) !== 0 && failed.length === 0) {
      this.move('ENDED');
      this.slots.freeAll();
      this.actions.push({ kind: 'ended' });
      return;
    }
    if ((flag & VOTE.COMMIT) !== 0) this.commit(slot);
    else this.abandon(slot);
    if (failed.length > 0) {
      this.move('RECOVERING');
      this.actions.push({ kind: 'recover', failed });
      return;
    }
    // The death that is known here came too late for this decision: the next one is about it.
    this.voteNo();
  }

  private commit(slot: Slot | undefined): void {
    if (slot === undefined) {
      this.dropFormer();
      this.move('IDLE');
      this.actions.push({ kind: 'committed', name: undefined });
      return;
    }
    const { name } = slot;
    for (const owner of this.placement.owners(this.rank, name.k))
      assert(slot.held.has(owner), `F7: ${saveText(name)} is committed, and rank ${this.rank} has no copy of rank ${owner}`);
    this.slots.commit(slot);
    this.dropFormer();
    this.k = name.k + 1;
    this.counters.committed++;
    this.move('COMMITTED');
    this.actions.push({ kind: 'committed', name });
  }

  private abandon(slot: Slot | undefined): void {
    const name = slot?.name ?? this.nextName;
    if (slot !== undefined) this.slots.free(slot);
    this.counters.abandoned++;
    this.move('ABANDONED');
    this.actions.push({ kind: 'abandoned', name });
  }

  // ---------------------------------------------------------------- recovery

  /** The members have met again, on a communicator of their own. Those that are known to be dead already are told by handleDeath(). */
  meet(): void {
    const { former } = this;
    if (former !== undefined) {
      // Somebody died before all had what they would have gone on with: slots and ranks are still those of before.
      this.former = undefined;
      former.slots.takeOver(this.slots);
      Object.assign(this, former);
    }
    this.dead.clear();
    this.attempt = 0;
    this.move('RESTORING');
  }

  /** Where this rank is among the members that share slots; another place than before only as long as nothing was committed. */
  place(rank: number, placement: Placement): void {
    assert(rank === this.rank || this.slots.newest === undefined, `rank ${this.rank} becomes rank ${rank}, and has saves`);
    this.rank = rank;
    this.placement = placement;
  }

  /**
   * There are fewer members than those that made the saves, or other ones. From now on the line is a save of theirs, of which `own` is the part
   * of this rank: images of several ranks of before, one, or none. What there was before stays readable until all have committed the line
   * again; when somebody dies first, the next meeting begins with it.
   *
   * @param rank Rank among the members that there are now.
   * @param line Undefined: there is no save to go back to.
   */
  regroup(rank: number, placement: Placement, line: SaveName | undefined, own: Piece | undefined): void {
    if (this.state !== 'RESTORING' || this.former !== undefined) return;
    this.former = { rank: this.rank, placement: this.placement, slots: this.slots };
    this.rank = rank;
    this.placement = placement;
    this.slots = new Slots(this.depth);
    if (line !== undefined && own !== undefined) this.slots.adopt(line, own);
  }

  private dropFormer(): void {
    const { former } = this;
    if (former === undefined) return;
    this.former = undefined;
    this.slots.takeOver(former.slots);
  }

  /**
   * The line is known. All go back to it, and spread it again under the number of the new epoch: only then the new members hold copies, and
   * copies of theirs are held. Saves that are newer cannot be read any more. Undefined: there is no save, and all begin from the beginning.
   *
   * @param epoch The same at all members, and above that of each of them.
   * @param fetched The image of this rank, where it has none of its own: it was sent by its holder, or read from a store.
   * @param has Whether a rank has a whole copy of that owner's part of the line, as inventories say: it keeps that, and is sent none.
   */
  restore(
    epoch: number,
    line: SaveName | undefined,
    fetched: Piece | undefined,
    has: (holder: number, owner: number) => boolean = () => false,
  ): void {
    if (this.state !== 'RESTORING') return;
    assert(epoch > this.epoch, `epoch ${epoch} begins after epoch ${this.epoch}`);
    this.epoch = epoch;
    if (line === undefined) {
      this.slots.freeAll();
      this.k = 0;
      this.castVote(VOTE.COMMIT);
      return;
    }
    this.slots.freeNewerThan(line);
    if (fetched !== undefined && this.slots.find(line) === undefined) this.slots.adopt(line, fetched);
    const own = this.slots.find(line)?.own;
    if (own === undefined) assert(false, `F7: rank ${this.rank} has no image of ${saveText(line)}, to which all go back`);
    this.k = line.k;
    this.waitsForStore = false;
    const slot = this.slots.take({ epoch: this.epoch, k: line.k });
    const held = this.slots.find(line)?.held;
    for (const owner of this.placement.owners(this.rank, line.k)) {
      const piece = has(this.rank, owner) ? held?.get(owner) : undefined;
      if (piece !== undefined) slot.held.set(owner, piece);
    }
    this.slot = slot;
    this.spread(own, (holder) => has(holder, this.rank));
  }

  private move(to: SaveState): void {
    moveSave(this, to, this.listener);
  }
}
