// One direction of a shared-memory rail: a ring of records, one writer, one reader, polled with Atomics over the mapped memory. It knows
// neither frames nor upcalls. A record begins on a cache line and never wraps; what is left before the end of the ring is a PAD record:
//
//   +0   the head of all records (base/record-hdr.ts); its first word 0 = nothing here yet
//   +16  packet header, padded to 4; payload
//
// There are no shared positions: the first word of a record says that it is there. Before a record is published, the word behind it is set
// to zero, so the reader always finds a zero or a whole record, and a short message costs the transfer of one cache line. Several records
// may be published together: all words except the first record's first are written plainly, and that one by Atomics.store, which makes
// everything before it visible to the thread that loads it.
import { RECORD_BYE, recordComplaint } from '../base/record-hdr.ts';

export const RECORD_HEADER_BYTES = 16;
/** Also the gap that is kept free for the zero behind the last record. */
export const RECORD_ALIGNMENT = 64;

/** What is left before the end of the ring. */
export const RECORD_PAD = RECORD_BYE + 1;

const NOTHING_HELD = -1;
/** Up to here a loop over the elements is faster than set(), which costs about 50 ns. */
export const LOOP_BYTES_MAX = 128;

export function recordBytes(packetHeaderBytes: number, payloadBytes: number): number {
  return (RECORD_HEADER_BYTES + ((packetHeaderBytes + 3) & ~3) + payloadBytes + RECORD_ALIGNMENT - 1) & -RECORD_ALIGNMENT;
}

/** The writing end. `begin`, fill, `commit`, then `publish` once for several records. */
export class RingWriter {
  readonly bytes: number;
  readonly words: Int32Array;
  readonly octets: Uint8Array;
  /** Bytes of records and pads that the reader has not given back. */
  usedBytes = 0;
  private writeAt: number;
  /** The first record of the batch that is not published: its place and its first word. */
  private heldAt = NOTHING_HELD;
  private heldWord = 0;
  /** Where a zero stands already that the next record may need behind it. */
  private clearedAt = NOTHING_HELD;
  /** Bytes of the pad before the record that was begun last. */
  private padBytes = 0;

  /** `startAt`: first byte offset, aligned, equal at both ends (tests begin near the end of the ring). */
  constructor(memory: ArrayBuffer, at: number, bytes: number, startAt = 0) {
    this.bytes = bytes;
    this.words = new Int32Array(memory, at, bytes / 4);
    this.octets = new Uint8Array(memory, at, bytes);
    this.writeAt = startAt;
  }

  get isHolding(): boolean {
    return this.heldAt !== NOTHING_HELD;
  }

  /** Whether a record of that length fits and leaves `reserveBytes` free. */
  fits(bytes: number, reserveBytes: number): boolean {
    const left = this.bytes - this.writeAt;
    const needed = bytes <= left ? bytes : left + bytes;
    return this.usedBytes + needed + RECORD_ALIGNMENT + reserveBytes <= this.bytes;
  }

  /** Byte offset at which a record of that length, which must fit, begins. */
  begin(bytes: number): number {
    const at = this.writeAt;
    const left = this.bytes - at;
    if (bytes <= left) return at;
    this.hold(at >> 2, RECORD_PAD);
    this.usedBytes += left;
    this.padBytes = left;
    return 0;
  }

  /** Copies packet header and payload into the record at `at`. */
  fill(at: number, header: Uint8Array, payload: readonly Uint8Array[]): void {
    const { octets } = this;
    let to = at + RECORD_HEADER_BYTES;
    if (header.length <= LOOP_BYTES_MAX) for (let i = 0; i < header.length; i++) octets[to + i] = header[i];
    else octets.set(header, to);
    to += (header.length + 3) & ~3;
    for (let p = 0; p < payload.length; p++) {
      const part = payload[p];
      const length = part.length;
      if (length <= LOOP_BYTES_MAX) for (let i = 0; i < length; i++) octets[to + i] = part[i];
      else octets.set(part, to);
      to += length;
    }
  }

  /** The record at `at` is filled, but for its first word. Returns the bytes that are given back with it: a pad before it too. */
  commit(at: number, bytes: number, word: number): number {
    let next = at + bytes;
    if (next === this.bytes) next = 0;
    // The word where the reader will look next: the gap that fits() keeps makes it free.
    if (next !== this.clearedAt) this.words[next >> 2] = 0;
    this.clearedAt = NOTHING_HELD;
    this.hold(at >> 2, word);
    this.writeAt = next;
    this.usedBytes += bytes;
    const taken = bytes + this.padBytes;
    this.padBytes = 0;
    return taken;
  }

  /** Everything committed becomes visible to the reader. */
  publish(): void {
    if (this.heldAt === NOTHING_HELD) return;
    Atomics.store(this.words, this.heldAt, this.heldWord);
    this.heldAt = NOTHING_HELD;
    this.clearAhead();
  }

  /**
   * The next record, when it is a short one, ends on a line that the other core had last. Its zero is written now, while nobody waits for it:
   * before the record is published all of its words must have arrived.
   */
  private clearAhead(): void {
    const at = this.writeAt + RECORD_ALIGNMENT;
    if (at >= this.bytes || this.usedBytes + 2 * RECORD_ALIGNMENT > this.bytes) return;
    this.words[at >> 2] = 0;
    this.clearedAt = at;
  }

  private hold(at: number, word: number): void {
    if (this.heldAt === NOTHING_HELD) {
      this.heldAt = at;
      this.heldWord = word;
    } else this.words[at] = word;
  }
}

/**
 * The reading end. Nothing that stands in the ring is believed: `take` checks a record against the bounds of the ring and the limits
 * of the rail before any of it is used. The fields hold the record that `take` found; they were read once, and the writer cannot
 * change them any more.
 */
export class RingReader {
  readonly bytes: number;
  readonly words: Int32Array;
  kind = 0;
  flags = 0;
  packetHeaderBytes = 0;
  payloadBytes = 0;
  deliveredCount = 0;
  number = 0;
  /** Byte offsets in the ring. */
  packetHeaderAt = 0;
  payloadAt = 0;
  private endAt = 0;
  /** Where the next record begins. */
  readAt: number;
  private readonly packetHeaderBytesMax: number;
  private readonly payloadBytesMax: number;

  constructor(memory: ArrayBuffer, at: number, bytes: number, packetHeaderBytesMax: number, payloadBytesMax: number, startAt = 0) {
    this.bytes = bytes;
    this.words = new Int32Array(memory, at, bytes / 4);
    this.packetHeaderBytesMax = packetHeaderBytesMax;
    this.payloadBytesMax = payloadBytesMax;
    this.readAt = startAt;
  }

  /**
   * A plain load, since V8 calls a function for an atomic one: it may miss a record that has just come, which the next look finds. Where
   * a look must be the last one (before sleep), hasRecordForSure() says.
   */
  get hasRecord(): boolean {
    return this.words[this.readAt >> 2] !== 0;
  }

  hasRecordForSure(): boolean {
    return Atomics.load(this.words, this.readAt >> 2) !== 0;
  }

  /** Bytes of the record that `take` found. */
  get recordBytes(): number {
    return this.endAt - this.readAt;
  }

  /** Finds the next record. True: the fields hold it; false: nothing there; a text: what is wrong with it. */
  take(): boolean | string {
    const { words } = this;
    if (words[this.readAt >> 2] === 0) return false;
    // What the record holds is read after this, and not before.
    let word = Atomics.load(words, this.readAt >> 2);
    if (word === 0) return false;
    if (word === RECORD_PAD) {
      if (this.readAt === 0) return 'a pad at the beginning of the ring';
      // The pad was published together with the record behind it.
      this.readAt = 0;
      word = Atomics.load(words, 0);
      if (word === 0) return false;
    }
    const at = this.readAt;
    const packetHeaderBytes = word >>> 16;
    const first = at >> 2;
    const payloadBytes = words[first + 1];
    const complaint = recordComplaint(word, payloadBytes, RECORD_BYE, this.packetHeaderBytesMax, this.payloadBytesMax);
    if (complaint !== undefined) return complaint;
    const payloadAt = at + RECORD_HEADER_BYTES + ((packetHeaderBytes + 3) & ~3);
    const endAt = at + recordBytes(packetHeaderBytes, payloadBytes);
    if (endAt > this.bytes) return 'a record beyond the end of the ring';
    this.kind = word & 0xff;
    this.flags = (word >> 8) & 0xff;
    this.packetHeaderBytes = packetHeaderBytes;
    this.payloadBytes = payloadBytes;
    this.deliveredCount = words[first + 2];
    this.number = words[first + 3];
    this.packetHeaderAt = at + RECORD_HEADER_BYTES;
    this.payloadAt = payloadAt;
    this.endAt = endAt;
    return true;
  }

  /** Done with the record that `take` found. */
  advance(): void {
    this.readAt = this.endAt === this.bytes ? 0 : this.endAt;
  }
}

/** Longest piece whose view is kept for the next one of that length. */
const VIEW_BYTES_KEPT = 256;

/** Private memory for short pieces of a ring, and views of it by length: making one costs as much as copying it. */
export class Scratch {
  private readonly words: Int32Array;
  private readonly views: Uint8Array[] = [];

  constructor(bytes: number) {
    this.words = new Int32Array(bytes / 4);
  }

  /** Copies `bytes` bytes of `from`, which begin at the word `at`. The view is good until the next call. */
  take(from: Int32Array, at: number, bytes: number): Uint8Array {
    const { words } = this;
    const count = (bytes + 3) >> 2;
    for (let i = 0; i < count; i++) words[i] = from[at + i];
    return this.views[bytes] ?? this.view(bytes);
  }

  private view(bytes: number): Uint8Array {
    const view = new Uint8Array(this.words.buffer, 0, bytes);
    if (bytes <= VIEW_BYTES_KEPT) this.views[bytes] = view;
    return view;
  }
}
