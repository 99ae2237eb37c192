// What an agreement is about: what a member contributes, what has been gathered on the way to the leader, and the value that is decided.
// Everything that is gathered can be gathered twice without harm: AND, union, intersection and "the higher of two" are idempotent.
import { Bitmap } from './bitmap.ts';

/** What members call. A value has a bit for each that was called: with more than one, calls have met that do not belong together. */
export const OPERATION = {
  /** The flag alone. */
  AGREE: 1,
  /** And a communicator of those that are not failed. */
  SHRINK: 2,
  /** And a communicator of the same size, with a successor for every failed member, or with no successors at all. */
  REPLACE_ALL: 4,
  /** The same, with as many successors as there are. */
  REPLACE_SOME: 8,
  /** On the communicator that has just come into being: `acked` holds the members that are in it. */
  JOIN: 16,
} as const;
export type Operation = (typeof OPERATION)[keyof typeof OPERATION];
export const OPERATIONS_ALL = 31;
const MAKES_COMMUNICATOR = OPERATION.SHRINK | OPERATION.REPLACE_ALL | OPERATION.REPLACE_SOME;
const REPLACES = OPERATION.REPLACE_ALL | OPERATION.REPLACE_SOME;

/** One bit alone is set. */
export function isOneOperation(operations: number): operations is Operation {
  return operations !== 0 && (operations & (operations - 1)) === 0;
}

/** A value of this operation may name successors. */
export function replaces(operations: number): boolean {
  return isOneOperation(operations) && (operations & REPLACES) !== 0;
}

/** What one member brings: fixed by its call. */
export interface Contribution {
  readonly operation: Operation;
  /** u32. */
  readonly flag: number;
  /** The failed members that it has acknowledged; with JOIN, all but itself where it cannot be a member. */
  readonly acked: Bitmap;
}

/** The process that takes the place of a failed member. */
export interface Succession {
  readonly rank: number;
  readonly number: number;
}

export interface Value {
  readonly operations: number;
  /** The generation whose members `failed` speaks of: that in which the value was put together. */
  readonly generation: number;
  /** With SHRINK and REPLACE it is the recovery epoch of the communicator that the decision makes, which all give alike. */
  readonly flag: number;
  /** Id of the communicator that the decision makes; 0 for none. */
  readonly newId: number;
  readonly failed: Bitmap;
  /** Acknowledged by all that have contributed. */
  readonly acked: Bitmap;
  /** By rank, ascending. */
  readonly successions: readonly Succession[];
}

/** A value that a leader has proposed, with that leader's view. A view is higher than another by its generation, then by its rank. */
export interface Lock {
  readonly generation: number;
  readonly rank: number;
  readonly value: Value;
}

export function isHigherLock(a: Lock, b: Lock | undefined): boolean {
  if (b === undefined) return true;
  return a.generation !== b.generation ? a.generation > b.generation : a.rank > b.rank;
}

/** What the leader adds to a value that makes a communicator: an id that nobody has, and who takes the places of the failed. */
export interface Offer {
  readonly newId: number;
  readonly successions: readonly Succession[];
}

/** Contributions of some members, put together. */
export class Gathered {
  operations = 0;
  flag = 0xffff_ffff;
  /** Whose contributions these are. */
  readonly covers: Bitmap;
  /** Known dead by one of them. */
  readonly dead: Bitmap;
  readonly acked: Bitmap;
  /** The highest lock that one of them has. */
  lock: Lock | undefined;

  constructor(size: number) {
    this.covers = new Bitmap(size);
    this.dead = new Bitmap(size);
    this.acked = Bitmap.full(size);
  }

  clear(): void {
    this.operations = 0;
    this.flag = 0xffff_ffff;
    this.covers.clear();
    this.dead.clear();
    this.acked.bytes.set(Bitmap.full(this.acked.size).bytes);
    this.lock = undefined;
  }

  /** Adds one member. */
  add(rank: number, { operation, flag, acked }: Contribution, dead: Bitmap, lock: Lock | undefined): void {
    this.operations |= operation;
    this.flag = (this.flag & flag) >>> 0;
    this.covers.add(rank);
    this.dead.addAll(dead);
    this.acked.keepOnly(acked);
    if (lock !== undefined && isHigherLock(lock, this.lock)) this.lock = lock;
  }

  /** Adds what others have gathered. */
  addAll(other: Gathered): void {
    this.operations |= other.operations;
    this.flag = (this.flag & other.flag) >>> 0;
    this.covers.addAll(other.covers);
    this.dead.addAll(other.dead);
    this.acked.keepOnly(other.acked);
    if (other.lock !== undefined && isHigherLock(other.lock, this.lock)) this.lock = other.lock;
  }

  /** The value of these contributions. `offer` is asked only where the operation makes a communicator. */
  combine(generation: number, offer: (operation: Operation, failed: Bitmap) => Offer): Value {
    const { operations, flag } = this;
    const failed = this.dead.clone();
    const made =
      isOneOperation(operations) && (operations & MAKES_COMMUNICATOR) !== 0 ? offer(operations, failed) : { newId: 0, successions: [] };
    return { operations, generation, flag, newId: made.newId, failed, acked: this.acked.clone(), successions: made.successions };
  }
}

export function isSameValue(a: Value, b: Value): boolean {
  const isSameSet = (one: Bitmap, other: Bitmap) => one.isWithin(other) && other.isWithin(one);
  return (
    a === b ||
    (a.operations === b.operations &&
      a.generation === b.generation &&
      a.flag === b.flag &&
      a.newId === b.newId &&
      isSameSet(a.failed, b.failed) &&
      isSameSet(a.acked, b.acked) &&
      a.successions.length === b.successions.length &&
      a.successions.every(({ rank, number }, i) => rank === b.successions[i].rank && number === b.successions[i].number))
  );
}

/** The outcome of an agreement about its members' failures: the same at all of them. */
export interface Verdict {
  /** Not all members made the same call. */
  readonly isMismatch: boolean;
  /** Some failed member is not acknowledged by all that contributed. */
  readonly hasUnacknowledged: boolean;
  /** Every failed member was to be replaced, and there are too few to do it. */
  readonly lacksSuccessors: boolean;
}

export function verdictOf({ operations, failed, acked, successions }: Value): Verdict {
  return {
    isMismatch: !isOneOperation(operations),
    hasUnacknowledged: !failed.isWithin(acked),
    lacksSuccessors: operations === OPERATION.REPLACE_ALL && successions.length < failed.count,
  };
}
