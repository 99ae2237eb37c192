// Context ids of communicators: who gives them out, and which of them messages may come for. One table per process.
//
//   ctx on the wire   4 × id + kind
//   id                0 the world, 1 the service context of the runtime, from 2 × 8192 on communicators
//
// The process that leads a creation gives the id: `count × 8192 + own number`, where 8192 is the most that a job may have of processes. So no
// two processes ever give the same one, those that join later included, none is used twice in a job, and nobody has to agree with anybody.
// (Communicators that one split makes share an id: no process is in two.)
//
// Under asynchronous recovery those that are made of the program's communicator have counts of their own, from 65,536 on, with the number of the
// process that had the place first: a successor gives the same ones again. And messages may come for them at any time until they are freed.
//
// A creation ends nowhere before every member has begun it. So a message for an id that is not known here can only be a first message
// while a creation is under way here: it waits as unexpected, under the same bounds and with the same test for duplicates. At any other
// time it is a late copy of a message of a communicator that was freed, since free() ends only when all that was ever sent on it has
// arrived: it is dropped. Thus nothing has to be kept of the communicators that are gone.
import { MultirailError } from '../errors.ts';
import type { MessageLayer } from '../pml/message-layer.ts';
import { IDS, PROCESSES_MAX } from '../ulfm/limits.ts';

/** Messages of the user, of collectives, of objects (their bulk), of createGroup(). */
export const USER = 0;
export const COLLECTIVE = 1;
export const OBJECT = 2;
export const CREATION = 3;
const KINDS = 4;

export const WORLD_ID = 0;
export const SERVICE_ID = 1;
const COUNT_FIRST = 2;
/** Counts from here on are for communicators that are made of a logged one (ft/logged-family.ts), where there is such a one. */
const LOGGED_COUNT_FIRST = 65_536;
const COUNTS = IDS / PROCESSES_MAX;

export function ctxOf(id: number, kind: number): number {
  return id * KINDS + kind;
}

/** The messages of failures and agreements travel on it. */
export const FT_CTX = ctxOf(SERVICE_ID, OBJECT);

/** All of that communicator. */
export function contextsOf(id: number): number[] {
  return Array.from({ length: KINDS }, (_, kind) => ctxOf(id, kind));
}

export function idOf(ctx: number): number {
  return Math.floor(ctx / KINDS);
}

/** Its messages carry the large memory of objects; the objects themselves travel on another context. */
export function isObjectContext(ctx: number): boolean {
  return ctx % KINDS === OBJECT;
}

/** Messages of the user's, on whatever communicator. */
export function isUserContext(ctx: number): boolean {
  const id = idOf(ctx);
  // In between are the channels of the runtime.
  return ctx % KINDS === USER && (id === WORLD_ID || id >= PROCESSES_MAX);
}

export class ContextTable {
  private pml: MessageLayer;
  private readonly ownNumber: number;
  private nextCount = COUNT_FIRST;
  private readonly live = new Set<number>([WORLD_ID, SERVICE_ID]);
  /** Freed while a member was gone, or failed to be made: not all that was sent on them is known to have arrived. */
  private readonly abandoned = new Set<number>();
  /** Creations that this process has begun and not ended. */
  private creations = 0;
  private creationFailed = false;
  /** Not known here, and messages have come for them. */
  private readonly early = new Set<number>();

  constructor(pml: MessageLayer, ownNumber: number) {
    this.pml = pml;
    this.ownNumber = ownNumber;
    pml.admits = (ctx) => this.admits(ctx);
  }

  /** This layer stands in the place of the one before, and knows which contexts are admitted. */
  goOnWith(pml: MessageLayer): void {
    this.pml = pml;
  }

  /** Says of an id whether messages may come for it at any time. Set while messages are logged. */
  mayCome: ((id: number) => boolean) | undefined;
  /** No logged communicator that this process knows of has this count, or a higher one. */
  nextLogged = LOGGED_COUNT_FIRST;

  /** An id that nobody has, for a creation that this process leads. */
  allocate(): number {
    const id = this.nextCount * PROCESSES_MAX + this.ownNumber;
    if (id >= IDS || (this.mayCome !== undefined && this.nextCount >= LOGGED_COUNT_FIRST))
      throw this.noneLeft(this.nextCount - COUNT_FIRST);
    this.nextCount++;
    return id;
  }

  private noneLeft(made: number): MultirailError {
    return new MultirailError('ERR_COMM', `this rank has made ${made} communicators: no context id is left`);
  }

  /** Of a communicator that is made of a logged one, by whoever has the place that was that process's. */
  loggedId(count: number, owner: number): number {
    if (count >= COUNTS || this.nextCount > LOGGED_COUNT_FIRST) throw this.noneLeft(count - LOGGED_COUNT_FIRST);
    const id = count * PROCESSES_MAX + owner;
    this.noteLogged(id);
    return id;
  }

  noteLogged(id: number): void {
    this.nextLogged = Math.max(this.nextLogged, Math.floor(id / PROCESSES_MAX) + 1);
  }

  private admits(ctx: number): boolean {
    const id = idOf(ctx);
    if (this.live.has(id) || this.abandoned.has(id)) return true;
    if (this.mayCome?.(id) === true) return true;
    if (this.creations === 0) return false;
    this.early.add(id);
    return true;
  }

  /** A communicator is coming into being here. */
  get isCreating(): boolean {
    return this.creations > 0;
  }

  /** What is under way on it ends with this error, and what still comes goes into nothing. */
  revoke(id: number, error: MultirailError): void {
    this.abandoned.add(id);
    for (let kind = 0; kind < KINDS; kind++) this.pml.revokeContext(ctxOf(id, kind), error);
  }

  /** What was revoked, and whatever came for it, is forgotten: this process enters it again, if it does. */
  forget(id: number): void {
    this.live.delete(id);
    this.abandoned.delete(id);
  }

  beginCreation(): void {
    this.creations++;
  }

  /** Pairs with beginCreation(); before it open(), if this process is in the new communicator. */
  endCreation(failed: boolean): void {
    this.creations--;
    this.creationFailed ||= failed;
    if (this.creations > 0) return;
    for (const id of this.early) {
      // A creation that failed here may have gone well elsewhere: then these are messages, and no copies.
      if (this.creationFailed) this.abandon(id, undefined);
      else this.release(id, true);
    }
    this.early.clear();
    this.creationFailed = false;
  }

  open(id: number): void {
    this.live.add(id);
    this.early.delete(id);
  }

  /** All that was ever sent on it has arrived. */
  close(id: number): void {
    this.live.delete(id);
    this.release(id, false);
  }

  private release(id: number, copies: boolean): void {
    for (let kind = 0; kind < KINDS; kind++) this.pml.releaseContext(ctxOf(id, kind), copies);
  }

  /** As close(), when a member is gone and nobody can say what is still on its way. What is posted ends with the error. */
  abandon(id: number, error: MultirailError | undefined): void {
    this.live.delete(id);
    this.abandoned.add(id);
    for (let kind = 0; kind < KINDS; kind++) this.pml.freeContext(ctxOf(id, kind), error);
  }

  /** Nothing is under way on it: no posted receive but for `drains` of them, no message from or to here. */
  isQuiet(id: number, drains: number): boolean {
    return this.pml.isContextQuiet(ctxOf(id, 0), ctxOf(id, KINDS - 1), drains);
  }

  /** Ids that messages may come for, and those of which something is kept although they are gone: for tests of leaks. */
  counts(): { live: number; abandoned: number; early: number } {
    return { live: this.live.size, abandoned: this.abandoned.size, early: this.early.size };
  }
}
