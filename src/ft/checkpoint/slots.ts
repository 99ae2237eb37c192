// The slots of one rank: depth + 1 of them, each with the rank's own image of one save and the copies of others that it holds. The newest
// committed saves are in all but one; that one is for the save that is being made. What lies in memory is the driver's: here it has a name,
// a length and a checksum.
import { assert } from '../../util/assert.ts';

/** A save: the recovery epoch in which it was committed, and its number. */
export interface SaveName {
  readonly epoch: number;
  readonly k: number;
}

export const isSameSave = (a: SaveName, b: SaveName): boolean => a.epoch === b.epoch && a.k === b.k;
/** A later epoch is newer, whatever its numbers. Above 0: `a` is the newer one. */
export const compareSaves = (a: SaveName, b: SaveName): number => a.epoch - b.epoch || a.k - b.k;
export const saveText = ({ epoch, k }: SaveName): string => `save ${k} of epoch ${epoch}`;

/** One image in memory: it may be in two slots, when a save that was restored is spread again. */
export interface Piece {
  readonly bytes: number;
  /** CRC32C of all of it. */
  readonly crc: number;
  /** The driver's. */
  readonly memory: unknown;
  /** Images that it consists of, one after the other, where it is not the one image of its owner: ranks were left out since they were made. */
  readonly parts?: readonly ImagePart[];
}

/** An image in a piece. */
export interface ImagePart {
  /** Rank that made it, in the world of the save. */
  readonly rank: number;
  readonly bytes: number;
}

export type SlotState = 'FREE' | 'WRITING' | 'COMMITTED';

export class Slot {
  state: SlotState = 'FREE';
  name: SaveName = { epoch: 0, k: 0 };
  /** Undefined until it is whole. */
  own: Piece | undefined;
  /** By owner; whole. */
  readonly held = new Map<number, Piece>();

  get pieces(): Piece[] {
    return this.own === undefined ? [...this.held.values()] : [this.own, ...this.held.values()];
  }
}

export class Slots {
  readonly depth: number;
  /** Nothing refers to these pieces any more: the driver takes their memory back, and the list away. */
  readonly released: Piece[] = [];
  private readonly slots: readonly Slot[];
  /** Committed slots, oldest first. */
  private order: Slot[] = [];

  constructor(depth: number) {
    this.depth = depth;
    this.slots = Array.from({ length: depth + 1 }, () => new Slot());
  }

  /** Committed saves, oldest first. */
  get committed(): readonly Slot[] {
    return this.order;
  }

  get newest(): Slot | undefined {
    return this.order.at(-1);
  }

  find(name: SaveName): Slot | undefined {
    return this.order.find((slot) => isSameSave(slot.name, name));
  }

  /** The slot for a save that is being made. */
  take(name: SaveName): Slot {
    const slot = this.slots.find(({ state }) => state === 'FREE');
    if (slot === undefined) assert(false, `F7: no slot is free for ${saveText(name)}, with ${this.order.length} committed`);
    slot.state = 'WRITING';
    slot.name = name;
    return slot;
  }

  /** The save exists from now on; the one that is `depth` older is of no use any more. */
  commit(slot: Slot): void {
    assert(slot.state === 'WRITING' && slot.own !== undefined, `F7: ${saveText(slot.name)} is committed and is not whole`);
    const { newest } = this;
    assert(
      newest === undefined || compareSaves(slot.name, newest.name) > 0,
      `F7: ${saveText(slot.name)} is committed after ${newest === undefined ? '' : saveText(newest.name)}`,
    );
    slot.state = 'COMMITTED';
    this.order.push(slot);
    if (this.order.length > this.depth) this.free(this.order[0]);
  }

  /** The slot is free again. */
  free(slot: Slot): void {
    const before = slot.pieces;
    this.order = this.order.filter((one) => one !== slot);
    slot.state = 'FREE';
    slot.own = undefined;
    slot.held.clear();
    const kept = new Set(this.slots.flatMap(({ pieces }) => pieces));
    for (const piece of before) if (!kept.has(piece)) this.released.push(piece);
  }

  /** Committed saves that are newer than this one cannot be read whole any more. */
  freeNewerThan(name: SaveName): void {
    for (const slot of [...this.order]) if (compareSaves(slot.name, name) > 0) this.free(slot);
  }

  /** Other slots are given up: their memory is released unless it is in these, too. */
  takeOver(others: Slots): void {
    others.freeAll();
    const kept = new Set(this.slots.flatMap(({ pieces }) => pieces).map(({ memory }) => memory));
    this.released.push(...others.released.splice(0).filter(({ memory }) => !kept.has(memory)));
  }

  freeAll(): void {
    for (const slot of this.slots) if (slot.state !== 'FREE') this.free(slot);
  }

  /** A successor has got the image of a committed save: it has no copies of others yet. */
  adopt(name: SaveName, own: Piece): void {
    const slot = this.take(name);
    slot.own = own;
    this.commit(slot);
  }
}
