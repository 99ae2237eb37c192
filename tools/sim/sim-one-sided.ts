// Puts and gets of a simulated rail. As with a real card, they need no turn of the target's process: bytes are written while the fabric
// advances, in several steps, and after a loss they may be written LATE: until the target fences that epoch or deregisters the memory. The
// bytes of a get are never written after its own completion.
import {
  type BtlEndpoint,
  type BtlModule,
  BUSY,
  countOneSided,
  DELIVERED,
  DOWN,
  OK,
  type OneSidedOp,
  type Registration,
  type SendResult,
  type Upcalls,
} from '../../src/btl/btl.ts';
import { assert } from '../../src/util/assert.ts';
import type { Fabric, SimLink } from './fabric.ts';
import { gather, scatter } from './gather.ts';
import type { Pipe } from './pipe.ts';
import { ITEM_BYTES, type Parcel, type SimConn, type WireItem } from './wire.ts';

/** The rail that they go over, as far as they use it. */
export interface OneSidedRail extends BtlEndpoint {
  readonly module: BtlModule & { readonly fabric: Fabric; readonly rank: number; readonly upcalls: Upcalls; note(text: string): void };
  outstandingBytes: number;
  readonly conn: SimConn | null;
  readonly fencedEpoch: number;
  /** There is room for so many bytes more. */
  admits(bytes: number, hasPayload: boolean): boolean;
  /** The place of an operation among all that is accepted. */
  takeStamp(): number;
  queue(parcel: Parcel): void;
  release(bytes: number): void;
  /** The other side has found an error in what was asked of it. */
  failRemote(text: string): void;
}

interface Pending {
  op: OneSidedOp;
  number: number;
  stamp: number;
}

/** Length of a registration key: the registration's number, and room for a real card's. */
const KEY_BYTES = 8;

export class OneSided {
  private readonly endpoint: OneSidedRail;
  private readonly link: SimLink;
  private readonly out: Pipe;
  private pending: Pending[] = [];
  private nextNumber = 1;
  private nextKey = 1;
  private readonly registered = new Map<number, readonly Uint8Array[]>();

  constructor(endpoint: OneSidedRail, link: SimLink, out: Pipe) {
    this.endpoint = endpoint;
    this.link = link;
    this.out = out;
  }

  register(memory: readonly Uint8Array[]): Registration {
    const id = this.nextKey++;
    this.registered.set(id, memory);
    const key = new Uint8Array(KEY_BYTES);
    new DataView(key.buffer).setUint32(0, id, true);
    return { key, deregister: () => void this.registered.delete(id) };
  }

  /** Memory that the other side may reach just now. */
  get registeredBytes(): number {
    let bytes = 0;
    for (const memory of this.registered.values()) for (const part of memory) bytes += part.length;
    return bytes;
  }

  deregisterAll(): void {
    this.registered.clear();
  }

  start(op: OneSidedOp): SendResult {
    const { conn } = this.endpoint;
    if (conn === null) {
      this.endpoint.module.fabric.breach(
        `rank ${this.endpoint.module.rank} gave a ${op.kind} to rail ${this.link.name}, whose epoch is over`,
      );
      return DOWN;
    }
    assert(op.remoteKey.length === KEY_BYTES, `remote key of ${op.remoteKey.length} bytes`);
    assert(op.bytes === op.local.reduce((sum, part) => sum + part.length, 0), 'bytes is not the sum of the local parts');
    if (!this.endpoint.admits(op.bytes, true)) return BUSY;
    const pending = { op, number: this.nextNumber++, stamp: this.endpoint.takeStamp() };
    op.railFrameNumber = pending.number;
    this.pending.push(pending);
    this.endpoint.outstandingBytes += op.bytes;
    if (op.kind === 'put') this.queuePut(pending, conn);
    else this.queueGet(pending, conn);
    return OK;
  }

  private get fabric(): Fabric {
    return this.endpoint.module.fabric;
  }

  private keyOf(op: OneSidedOp): number {
    return new DataView(op.remoteKey.buffer, op.remoteKey.byteOffset, op.remoteKey.byteLength).getUint32(0, true);
  }

  private queuePut({ op, number }: Pending, conn: SimConn): void {
    const key = this.keyOf(op);
    for (const [from, to] of this.steps(op.bytes)) {
      this.endpoint.queue({
        conn,
        bytes: ITEM_BYTES + to - from,
        capture: () => {
          this.fabric.touches(op.local, `rail ${this.link.name} reads a put`);
          return {
            kind: 'put',
            epoch: conn.epoch,
            number,
            key,
            offset: op.remoteOffset + from,
            chunk: gather(op.local, from, to - from),
            last: to === op.bytes,
          };
        },
      });
    }
  }

  private queueGet({ op, number }: Pending, conn: SimConn): void {
    const key = this.keyOf(op);
    this.endpoint.queue({
      conn,
      bytes: ITEM_BYTES,
      capture: () => ({ kind: 'get', epoch: conn.epoch, number, key, offset: op.remoteOffset, bytes: op.bytes }),
    });
  }

  /** At least two pieces wherever there are two bytes, so that half a write is an ordinary sight. */
  private steps(bytes: number): [number, number][] {
    const pieces = Math.max(Math.min(2, bytes), Math.ceil(bytes / this.link.spec.cellBytesMax), 1);
    const step = Math.ceil(bytes / pieces);
    const list: [number, number][] = [];
    for (let at = 0; at < bytes; at += step) list.push([at, Math.min(at + step, bytes)]);
    return list.length > 0 ? list : [[0, 0]];
  }

  /** All that is outstanding, in order: the epoch ended. */
  takeAll(): { op: OneSidedOp; stamp: number }[] {
    const all = this.pending;
    this.pending = [];
    return all;
  }

  // --- at the card: from the fabric, without a turn of the process

  /** True when the card dealt with the item and the process need not see it. */
  arrive(item: WireItem): boolean {
    switch (item.kind) {
      case 'put':
        this.land(item);
        return true;
      case 'get':
        this.serve(item);
        return true;
      case 'getData': {
        const pending = this.endpoint.conn?.epoch === item.epoch ? this.pending.find(({ number }) => number === item.number) : undefined;
        if (pending === undefined) return true;
        this.fabric.touches(pending.op.local, `rail ${this.link.name} writes what was read`);
        scatter(pending.op.local, item.at, item.chunk);
        return !item.last;
      }
      default:
        return false;
    }
  }

  /** Room of a registration, or undefined when the access is not allowed. */
  private memoryFor(key: number, offset: number, bytes: number): readonly Uint8Array[] | undefined {
    const memory = this.registered.get(key);
    if (memory === undefined) return undefined;
    const size = memory.reduce((sum, part) => sum + part.length, 0);
    return offset + bytes <= size ? memory : undefined;
  }

  private land(item: WireItem & { kind: 'put' }): void {
    const { conn } = this.endpoint;
    const note = (what: string) =>
      this.endpoint.module.note(`${what} ${this.link.name} e${item.epoch} #${item.number} ${item.chunk.length}`);
    if (item.epoch <= this.endpoint.fencedEpoch) return note('put fenced');
    const live = conn !== null && conn.epoch === item.epoch ? conn : null;
    const memory = this.memoryFor(item.key, item.offset, item.chunk.length);
    if (memory === undefined) {
      if (live) this.fabric.breach(`rank ${this.endpoint.peer} put over rail ${this.link.name} into memory that is not registered`);
      if (live)
        this.answer(live, { kind: 'remoteError', epoch: item.epoch, number: item.number, text: 'remote access to memory not registered' });
      return note('put unregistered');
    }
    this.fabric.touches(memory, `rail ${this.link.name} writes a put`);
    scatter(memory, item.offset, item.chunk);
    note('put landed');
    if (item.last && live) this.answer(live, { kind: 'putAck', epoch: item.epoch, number: item.number });
  }

  private serve(item: WireItem & { kind: 'get' }): void {
    const { conn } = this.endpoint;
    if (conn === null || conn.epoch !== item.epoch) return;
    const refused: WireItem = {
      kind: 'remoteError',
      epoch: item.epoch,
      number: item.number,
      text: 'remote access to memory not registered',
    };
    if (this.memoryFor(item.key, item.offset, item.bytes) === undefined) {
      this.readsInVain('from memory that is not registered', item.epoch);
      this.answer(conn, refused);
      return;
    }
    for (const [from, to] of this.steps(item.bytes)) {
      this.out.push({
        conn,
        bytes: ITEM_BYTES + to - from,
        capture: () => {
          const memory = this.memoryFor(item.key, item.offset, item.bytes);
          if (memory === undefined) {
            this.readsInVain('from memory that was closed meanwhile', item.epoch);
            return refused;
          }
          this.fabric.touches(memory, `rail ${this.link.name} is read from`);
          const chunk = gather(memory, item.offset + from, to - from);
          return { kind: 'getData', epoch: item.epoch, number: item.number, at: from, chunk, last: to === item.bytes };
        },
      });
    }
  }

  /**
   * A get that finds no memory. It is a breach as long as its reader waits for the bytes. A reader that has ended the epoch does not: its gets
   * are back in doubt, and the word of that, over another rail, may close the memory while one of them is still on its way here.
   */
  private readsInVain(what: string, epoch: number): void {
    const { peer, module } = this.endpoint;
    if (this.fabric.nic(peer, this.link.linkNo)?.conn(this.link.linkNo, module.rank)?.epoch !== epoch) return;
    this.fabric.breach(`rank ${peer} reads over rail ${this.link.name} ${what}`);
  }

  private answer(conn: SimConn, item: WireItem): void {
    this.out.push({ conn, bytes: ITEM_BYTES, capture: () => item });
  }

  // --- at the process

  finish(item: WireItem & { kind: 'putAck' | 'getData' | 'remoteError' }, conn: SimConn): void {
    const index = this.pending.findIndex(({ number }) => number === item.number);
    if (index < 0) return;
    if (item.kind === 'remoteError') {
      this.endpoint.failRemote(item.text);
      return;
    }
    const [{ op }] = this.pending.splice(index, 1);
    this.endpoint.release(op.bytes);
    countOneSided(this.endpoint.counters, op);
    this.endpoint.module.upcalls.onOneSidedCompleted(this.endpoint, conn.epoch, op, DELIVERED);
  }
}
