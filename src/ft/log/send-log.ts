// The log of a rank: copies of what it has sent since the last committed save, in slabs of memory for each destination, in order. A slab is
// free when nothing in it is needed: its messages were trimmed, and no rail reads one of them. The log is bounded. Pure: it keeps memory, and
// says when it is short of it.

import type { MessageLog, NewMessage } from '../../pml/message-log.ts';
import type { LoggedMessage } from '../../pml/records.ts';
import { assert } from '../../util/assert.ts';
import { EMPTY_IOV, Iov } from '../../util/iov.ts';

export const SLAB_BYTES = 1024 * 1024;
/** What a message costs besides its bytes. */
export const ENTRY_BYTES = 128;
/** Free slabs that are kept for the next use. They count as used memory. */
const FREE_SLABS_MAX = 4;

export interface SendLogOptions {
  /** Memory that the log may take: slabs, and what each message costs besides. */
  readonly bytesMax: number;
  readonly slabBytes?: number;
  /**
   * The log is short of room. `due`: three quarters of it are taken, and a save is due, whose commit trims it. `full`: senders wait for the
   * save that is under way, or for successors. `given up`: there is neither, so senders would wait for ever. From then on nothing is logged
   * until the next save is cut, and until that is committed a failure takes everybody back.
   */
  readonly onPressure?: (kind: 'due' | 'full' | 'given up') => void;
}

interface Slab {
  readonly memory: Uint8Array;
  used: number;
  /** Messages in it that are in the log, or are read by rails. */
  users: number;
  /** Messages are still added to it. */
  isOpen: boolean;
}

interface Entry extends LoggedMessage {
  readonly slab: Slab | undefined;
}

interface Destination {
  entries: Entry[];
  open: Slab | undefined;
}

export class SendLog implements MessageLog {
  private readonly options: SendLogOptions;
  private readonly slabBytes: number;
  private readonly destinations = new Map<number, Destination>();
  private readonly free: Slab[] = [];
  private slabsBytes = 0;
  private entryCount = 0;
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
    this.slabBytes = options.slabBytes ?? SLAB_BYTES;
  }

  /** Memory that it takes now. */
  get bytes(): number {
    return this.slabsBytes + this.entryCount * ENTRY_BYTES;
  }

  /** Without free slabs, which no commit would make fewer. */
  get usedBytes(): number {
    return this.bytes - this.free.length * this.slabBytes;
  }

  get messageCount(): number {
    return this.entryCount;
  }

  // ---------------------------------------------------------------- what is sent

  add(peer: number, message: NewMessage, buffer: Iov, mustKeep: boolean): LoggedMessage | 'full' | 'unlogged' {
    if (!this.logs) return 'unlogged';
    const destination = this.destination(peer);
    const { bytes } = buffer;
    const isInOpen = destination.open !== undefined && destination.open.used + bytes <= destination.open.memory.length;
    const takesSlab = bytes > 0 && !isInOpen;
    const slabBytes = Math.max(bytes, this.slabBytes);
    const reuses = takesSlab && slabBytes === this.slabBytes && this.free.length > 0;
    if (takesSlab && !reuses) this.dropFree();
    if (this.bytes + ENTRY_BYTES + (takesSlab && !reuses ? slabBytes : 0) > this.options.bytesMax) {
      if (!mustKeep && !this.isSaving) {
        this.giveUp();
        return 'unlogged';
      }
      if (!this.isFull) this.options.onPressure?.('full');
      this.isFull = true;
      return 'full';
    }
    let slab: Slab | undefined;
    let payload = EMPTY_IOV;
    if (bytes > 0) {
      // A message that is longer than a slab has one to itself, and short ones go on behind each other.
      if (bytes > this.slabBytes) slab = this.newSlab(bytes);
      else slab = takesSlab ? this.openSlab(destination) : (destination.open as Slab);
      buffer.copyTo(slab.memory, slab.used);
      payload = new Iov([slab.memory.subarray(slab.used, slab.used + bytes)]);
      slab.used += bytes;
      slab.users++;
    }
    const entry: Entry = { ...message, payload, slab, request: undefined };
    destination.entries.push(entry);
    this.entryCount++;
    if (!this.isDue && this.usedBytes >= (this.options.bytesMax / 4) * 3) {
      this.isDue = true;
      this.options.onPressure?.('due');
    }
    return entry;
  }

  private destination(peer: number): Destination {
    let destination = this.destinations.get(peer);
    if (destination === undefined) {
      destination = { entries: [], open: undefined };
      this.destinations.set(peer, destination);
    }
    return destination;
  }

  private openSlab(destination: Destination): Slab {
    if (destination.open !== undefined) this.close(destination.open);
    const slab = this.free.pop() ?? this.newSlab(this.slabBytes);
    slab.isOpen = true;
    destination.open = slab;
    return slab;
  }

  private newSlab(bytes: number): Slab {
    this.slabsBytes += bytes;
    return { memory: new Uint8Array(bytes), used: 0, users: 0, isOpen: false };
  }

  private close(slab: Slab): void {
    slab.isOpen = false;
    this.settle(slab);
  }

  /** Nobody needs what is in it, and nothing is added to it. */
  private settle(slab: Slab): void {
    if (slab.users > 0) return;
    slab.used = 0;
    if (slab.isOpen) return;
    if (slab.memory.length === this.slabBytes && this.free.length < FREE_SLABS_MAX) this.free.push(slab);
    else this.slabsBytes -= slab.memory.length;
  }

  private dropFree(): void {
    for (const slab of this.free.splice(0)) this.slabsBytes -= slab.memory.length;
  }

  messagesTo(peer: number): readonly LoggedMessage[] {
    return this.destinations.get(peer)?.entries ?? [];
  }

  rename(peer: number, successor: number): void {
    const destination = this.destinations.get(peer);
    if (destination === undefined) return;
    assert(!this.destinations.has(successor), `messages to rank ${successor} are in the log before it is a successor`);
    this.destinations.delete(peer);
    this.destinations.set(successor, destination);
  }

  hold(message: LoggedMessage): void {
    const { slab } = message as Entry;
    if (slab !== undefined) slab.users++;
  }

  letGo(message: LoggedMessage): void {
    const { slab } = message as Entry;
    if (slab === undefined) return;
    slab.users--;
    this.settle(slab);
  }

  // ---------------------------------------------------------------- saves

  cut(): void {
    this.isSaving = true;
    this.isWholeSinceCut = true;
    this.logs = true;
  }

  commit(isBefore: (peer: number, message: LoggedMessage) => boolean): void {
    for (const [peer, destination] of this.destinations) {
      const { entries } = destination;
      let count = 0;
      while (count < entries.length && isBefore(peer, entries[count])) count++;
      for (const { slab } of entries.splice(0, count)) {
        this.entryCount--;
        if (slab !== undefined) {
          slab.users--;
          this.settle(slab);
        }
      }
      if (entries.length > 0) continue;
      // A destination to which nothing was sent for a whole save keeps no slab.
      if (destination.open !== undefined) this.close(destination.open);
      this.destinations.delete(peer);
    }
    this.isWhole = this.isWholeSinceCut;
    this.ended();
  }

  abandon(): void {
    this.ended();
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
    for (const { entries, open } of this.destinations.values()) {
      for (const { slab } of entries) if (slab !== undefined) slab.users--;
      const slabs = new Set(entries.map(({ slab }) => slab));
      for (const slab of slabs) if (slab !== undefined && slab !== open) this.settle(slab);
      if (open !== undefined) this.close(open);
    }
    this.destinations.clear();
    this.entryCount = 0;
    this.dropFree();
  }
}
