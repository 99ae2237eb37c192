// The log of a rank: copies of what it has sent since the last committed save, in slabs of memory for each destination, in order. What is known
// of a message is words beside them (entries.ts); an object of it is made when somebody asks. The log is bounded. Pure: it keeps memory, and
// says when it is short of it.

import { type ExportableMemory, FULL, LOGGED, type LogAnswer, type MessageLog, UNLOGGED } from '../../pml/message-log.ts';
import type { LoggedMessage, SendRequest } from '../../pml/records.ts';
import { assert } from '../../util/assert.ts';
import { EMPTY_IOV, Iov } from '../../util/iov.ts';
import { ENTRY, Entries, EntryPieces, PIECE_BYTES } from './entries.ts';
import { type Slab, Slabs } from './slabs.ts';

export const SLAB_BYTES = 1024 * 1024;
/** Of a message without bytes. */
const NO_SLAB = -1;
/** Of a message that is not asked for any more, in front of which there are others that are. */
const GONE = -2;

export interface SendLogOptions {
  /** Memory that the log may take: slabs, and what is known of each message. */
  readonly bytesMax: number;
  readonly slabBytes?: number;
  /** Where slabs are made, as far as it has memory: receivers on the same host read long messages there. */
  readonly exportable?: ExportableMemory;
  /**
   * The log is short of room. `due`: three quarters of it are taken, and a save is due, whose commit trims it. `full`: senders wait for the
   * save that is under way, or for successors. `given up`: there is neither, so senders would wait for ever. From then on nothing is logged
   * until the next save is cut, and until that is committed a failure takes everybody back.
   */
  readonly onPressure?: (kind: 'due' | 'full' | 'given up') => void;
}

/** A message of the log, for whoever sends it again. */
class Entry implements LoggedMessage {
  readonly ctx: number;
  readonly tag: number;
  readonly seq: number;
  readonly signature: number;
  readonly sync: boolean;
  readonly payload: Iov;
  readonly isExported: boolean;
  readonly slab: number;
  /** Its memory is let go where it lies: rails may read a message of a log that is over, and has a successor. */
  readonly slabs: Slabs;
  request: SendRequest | undefined = undefined;

  constructor(entries: Entries, place: number, slabs: Slabs) {
    this.ctx = entries.word(place, ENTRY.ctx) >>> 0;
    this.tag = entries.word(place, ENTRY.tag);
    this.seq = entries.word(place, ENTRY.seq) >>> 0;
    this.signature = entries.word(place, ENTRY.signature) >>> 0;
    this.sync = entries.word(place, ENTRY.sync) !== 0;
    this.slab = entries.word(place, ENTRY.slab);
    this.slabs = slabs;
    if (this.slab === NO_SLAB) {
      this.payload = EMPTY_IOV;
      this.isExported = false;
    } else {
      const { memory, used, isExported } = slabs.at(this.slab);
      const offset = entries.word(place, ENTRY.offset) >>> 0;
      // Only a message that has its slab to itself may be longer than a word can say.
      const bytes = used > slabs.slabBytes ? used : entries.word(place, ENTRY.bytes) >>> 0;
      this.payload = new Iov([memory.subarray(offset, offset + bytes)]);
      this.isExported = isExported;
    }
  }
}

interface Destination {
  readonly entries: Entries;
  open: Slab | undefined;
  /** Synchronous messages by their place: each is one object for as long as it is in the log, since its request may wait for a successor. */
  readonly kept: Map<number, Entry>;
}

export class SendLog implements MessageLog {
  private readonly options: SendLogOptions;
  private readonly slabs: Slabs;
  private readonly pieces = new EntryPieces();
  private readonly destinations = new Map<number, Destination>();
  /** Most messages go where the one before went. */
  private lastPeer = -1;
  private lastDestination: Destination | undefined;
  /** What is sent now is logged. */
  private logs = true;
  private isSaving = false;
  /** What is sent since the last cut is in it, whole. */
  private isWholeSinceCut = true;
  private isDue = false;
  private isFull = false;
  isWhole = true;

  constructor(options: SendLogOptions) {
    this.options = options;
    this.slabs = new Slabs(options.slabBytes ?? SLAB_BYTES, options.exportable);
  }

  /** Memory that it takes now. */
  get bytes(): number {
    return this.slabs.bytes + this.pieces.bytes;
  }

  /** Without what is kept for the next use, which no commit would make less. */
  get usedBytes(): number {
    return this.bytes - this.slabs.freeBytes - this.pieces.freeBytes;
  }

  /** Something to that peer is in it. */
  has(peer: number): boolean {
    return this.destinations.has(peer);
  }

  get messageCount(): number {
    let count = 0;
    for (const { entries } of this.destinations.values()) count += entries.end - entries.first;
    return count;
  }

  // ---------------------------------------------------------------- what is sent

  add(peer: number, ctx: number, tag: number, seq: number, signature: number, sync: boolean, buffer: Iov, mustKeep: boolean): LogAnswer {
    if (!this.logs) return UNLOGGED;
    const destination = peer === this.lastPeer ? (this.lastDestination as Destination) : this.destination(peer);
    const { entries, open } = destination;
    const { bytes } = buffer;
    let slab = bytes === 0 ? undefined : open;
    if (entries.isFull || (bytes > 0 && (open === undefined || open.used + bytes > open.memory.length))) {
      const room = this.makeRoom(destination, bytes);
      if (room === false) return this.refuse(mustKeep);
      slab = room;
    }
    if (slab === undefined) entries.push(ctx, tag, seq, signature, 0, 0, NO_SLAB, sync);
    else {
      const { used } = slab;
      buffer.copyTo(slab.memory, used);
      slab.used = used + bytes;
      slab.users++;
      entries.push(ctx, tag, seq, signature, bytes, used, slab.id, sync);
    }
    if (sync) destination.kept.set(entries.end - 1, new Entry(entries, entries.end - 1, this.slabs));
    return LOGGED;
  }

  private destination(peer: number): Destination {
    let destination = this.destinations.get(peer);
    if (destination === undefined) {
      destination = { entries: new Entries(), open: undefined, kept: new Map() };
      this.destinations.set(peer, destination);
    }
    this.lastPeer = peer;
    this.lastDestination = destination;
    return destination;
  }

  /** For one more message of that length. Returns the slab that it goes into, if it has bytes; false: there is no room. */
  private makeRoom(destination: Destination, bytes: number): Slab | undefined | false {
    const { entries, open } = destination;
    const { slabs, pieces } = this;
    const isLong = bytes > slabs.slabBytes;
    const takesSlab = bytes > 0 && (isLong || open === undefined || open.used + bytes > open.memory.length);
    const pieceBytes = entries.isFull ? PIECE_BYTES : 0;
    const leftBytes = this.options.bytesMax - this.usedBytes - pieceBytes;
    if (leftBytes < (takesSlab ? Math.max(bytes, slabs.slabBytes) : 0)) return false;
    let slab = bytes === 0 ? undefined : open;
    if (takesSlab) {
      slab = slabs.takeFree(bytes, leftBytes);
      if (slab === undefined) {
        this.dropFree(Math.max(bytes, slabs.slabBytes));
        slab = slabs.make(bytes);
      }
      // A message that is longer than a slab has one to itself, and short ones go on behind each other.
      if (!isLong) {
        slab.isOpen = true;
        destination.open = slab;
        if (open !== undefined) slabs.close(open);
      }
    }
    if (entries.isFull) {
      if (pieces.freeBytes === 0) this.dropFree(PIECE_BYTES);
      entries.addPiece(pieces.take());
    }
    if (!this.isDue && this.usedBytes >= (this.options.bytesMax / 4) * 3) {
      this.isDue = true;
      this.options.onPressure?.('due');
    }
    return slab;
  }

  /** What is kept for the next use goes, as far as it is in the way of so much other memory. */
  private dropFree(neededBytes: number): void {
    const over = this.bytes + neededBytes - this.options.bytesMax;
    if (over > 0) this.pieces.drop(Math.max(0, over - this.slabs.drop(over)));
  }

  private refuse(mustKeep: boolean): LogAnswer {
    if (!mustKeep && !this.isSaving) {
      this.giveUp();
      return UNLOGGED;
    }
    if (!this.isFull) this.options.onPressure?.('full');
    this.isFull = true;
    return FULL;
  }

  // ---------------------------------------------------------------- what is in it

  newest(peer: number): LoggedMessage {
    const destination = this.destinations.get(peer);
    assert(destination !== undefined, `nothing was sent to rank ${peer}`);
    return this.entry(destination, destination.entries.end - 1);
  }

  private entry({ entries, kept }: Destination, place: number): Entry {
    return kept.get(place) ?? new Entry(entries, place, this.slabs);
  }

  *messagesTo(peer: number): Iterable<LoggedMessage> {
    const destination = this.destinations.get(peer);
    if (destination === undefined) return;
    const { entries } = destination;
    for (let place = entries.first; place < entries.end; place++)
      if (entries.word(place, ENTRY.slab) !== GONE) yield this.entry(destination, place);
  }

  synchronousTo(peer: number): Iterable<LoggedMessage> {
    return this.destinations.get(peer)?.kept.values() ?? [];
  }

  rename(peer: number, successor: number): void {
    const destination = this.destinations.get(peer);
    if (destination === undefined) return;
    assert(!this.destinations.has(successor), `messages to rank ${successor} are in the log before it is a successor`);
    this.destinations.delete(peer);
    this.destinations.set(successor, destination);
    for (const { request } of destination.kept.values()) if (request !== undefined) request.peer = successor;
    this.lastPeer = -1;
  }

  hold(message: LoggedMessage): void {
    const { slab, slabs } = message as Entry;
    if (slab !== NO_SLAB) slabs.at(slab).users++;
  }

  letGo(message: LoggedMessage): void {
    const { slab, slabs } = message as Entry;
    if (slab !== NO_SLAB) slabs.release(slabs.at(slab));
  }

  // ---------------------------------------------------------------- saves

  cut(): void {
    this.isSaving = true;
    this.isWholeSinceCut = true;
    this.logs = true;
  }

  commit(isBefore: (peer: number, ctx: number, seq: number) => boolean): void {
    for (const [peer, destination] of this.destinations) {
      const { entries } = destination;
      let { first } = entries;
      while (first < entries.end && isBefore(peer, entries.word(first, ENTRY.ctx) >>> 0, entries.word(first, ENTRY.seq) >>> 0)) first++;
      this.trim(destination, first);
      if (entries.first < entries.end) continue;
      // A destination to which nothing was sent for a whole save keeps no slab.
      if (destination.open !== undefined) this.slabs.close(destination.open);
      this.destinations.delete(peer);
    }
    this.lastPeer = -1;
    this.isWhole = this.isWholeSinceCut;
    this.ended();
  }

  private trim({ entries, kept }: Destination, to: number): void {
    const { slabs } = this;
    for (let place = entries.first; place < to; place++) {
      const slab = entries.word(place, ENTRY.slab);
      if (slab >= 0) slabs.release(slabs.at(slab));
      if (kept.size > 0) kept.delete(place);
    }
    entries.trim(to, this.pieces);
  }

  abandon(): void {
    this.ended();
  }

  trimTo(peer: number, isBefore: (ctx: number, seq: number) => boolean): void {
    const destination = this.destinations.get(peer);
    if (destination === undefined) return;
    const { entries } = destination;
    let { first } = entries;
    while (first < entries.end && isBefore(entries.word(first, ENTRY.ctx) >>> 0, entries.word(first, ENTRY.seq) >>> 0)) first++;
    this.trimmed(peer, destination, first);
  }

  dropTaken(peer: number, isTaken: (ctx: number, seq: number) => boolean): void {
    const destination = this.destinations.get(peer);
    if (destination === undefined) return;
    const { entries, kept } = destination;
    let { first } = entries;
    for (let place = first; place < entries.end; place++) {
      const slab = entries.word(place, ENTRY.slab);
      if (slab !== GONE) {
        if (!isTaken(entries.word(place, ENTRY.ctx) >>> 0, entries.word(place, ENTRY.seq) >>> 0)) continue;
        if (slab !== NO_SLAB) this.slabs.release(this.slabs.at(slab));
        kept.delete(place);
        entries.set(place, ENTRY.slab, GONE);
      }
      if (place === first) first++;
    }
    this.trimmed(peer, destination, first);
  }

  private trimmed(peer: number, destination: Destination, first: number): void {
    const { entries } = destination;
    this.trim(destination, first);
    if (entries.first === entries.end) {
      if (destination.open !== undefined) this.slabs.close(destination.open);
      this.destinations.delete(peer);
      this.lastPeer = -1;
    }
    this.isFull = false;
    if (this.usedBytes < (this.options.bytesMax / 4) * 3) this.isDue = false;
  }

  /** What it lacked is not asked for any more. */
  becomeWhole(): void {
    this.isWhole = this.logs;
  }

  /** It lacks what is not known to be with its receivers. */
  becomeTorn(): void {
    this.isWhole = false;
  }

  private ended(): void {
    this.isSaving = false;
    this.isFull = false;
    this.isDue = false;
  }

  private giveUp(): void {
    this.logs = false;
    this.isWhole = false;
    this.isWholeSinceCut = false;
    this.clear();
    this.options.onPressure?.('given up');
  }

  /** Everything goes: recovery is for all, the log is given up, or the job ends. What rails read stays until they let go of it. */
  clear(): void {
    for (const destination of this.destinations.values()) {
      this.trim(destination, destination.entries.end);
      if (destination.open !== undefined) this.slabs.close(destination.open);
    }
    this.destinations.clear();
    this.lastPeer = -1;
    this.lastDestination = undefined;
    this.slabs.drop(Number.POSITIVE_INFINITY);
    this.pieces.drop(Number.POSITIVE_INFINITY);
  }
}
