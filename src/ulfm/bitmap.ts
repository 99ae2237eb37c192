// Sets of ranks of one communicator: a bit for each, in the bytes that go over the wire. Bit r of byte r / 8 stands for rank r; bits
// beyond the last rank are zero.
import { assert } from '../util/assert.ts';

/** How many bytes a set of ranks of a communicator of `size` takes on the wire. */
export function bitmapBytes(size: number): number {
  return Math.ceil(size / 8);
}

export class Bitmap {
  /** How many ranks there are to be in it. */
  readonly size: number;
  readonly bytes: Uint8Array;

  constructor(size: number, bytes: Uint8Array = new Uint8Array(bitmapBytes(size))) {
    this.size = size;
    this.bytes = bytes;
  }

  static of(size: number, ranks: Iterable<number>): Bitmap {
    const set = new Bitmap(size);
    for (const rank of ranks) set.add(rank);
    return set;
  }

  static full(size: number): Bitmap {
    const set = new Bitmap(size);
    set.bytes.fill(0xff);
    if (size % 8 !== 0) set.bytes[set.bytes.length - 1] = (1 << (size % 8)) - 1;
    return set;
  }

  clone(): Bitmap {
    return new Bitmap(this.size, this.bytes.slice());
  }

  has(rank: number): boolean {
    return (this.bytes[rank >>> 3] & (1 << (rank & 7))) !== 0;
  }

  add(rank: number): void {
    if (rank < 0 || rank >= this.size) assert(false, `rank ${rank} is not one of ${this.size}`);
    this.bytes[rank >>> 3] |= 1 << (rank & 7);
  }

  delete(rank: number): void {
    this.bytes[rank >>> 3] &= ~(1 << (rank & 7));
  }

  clear(): void {
    this.bytes.fill(0);
  }

  /** Adds every rank of the other set. */
  addAll(other: Bitmap): void {
    for (let i = 0; i < this.bytes.length; i++) this.bytes[i] |= other.bytes[i];
  }

  /** Keeps only the ranks that are in the other set, too. */
  keepOnly(other: Bitmap): void {
    for (let i = 0; i < this.bytes.length; i++) this.bytes[i] &= other.bytes[i];
  }

  /** Takes every rank of the other set out. */
  deleteAll(other: Bitmap): void {
    for (let i = 0; i < this.bytes.length; i++) this.bytes[i] &= ~other.bytes[i];
  }

  /** Every rank of this set is in the other one. */
  isWithin(other: Bitmap): boolean {
    for (let i = 0; i < this.bytes.length; i++) if ((this.bytes[i] & ~other.bytes[i]) !== 0) return false;
    return true;
  }

  get isEmpty(): boolean {
    for (const byte of this.bytes) if (byte !== 0) return false;
    return true;
  }

  /** The lowest rank in it; -1 when it is empty. */
  get first(): number {
    for (let i = 0; i < this.bytes.length; i++) if (this.bytes[i] !== 0) return i * 8 + 31 - Math.clz32(this.bytes[i] & -this.bytes[i]);
    return -1;
  }

  get count(): number {
    let count = 0;
    for (const byte of this.bytes) for (let bits = byte; bits !== 0; bits &= bits - 1) count++;
    return count;
  }

  /** Its ranks, ascending. */
  *[Symbol.iterator](): Generator<number> {
    for (let i = 0; i < this.bytes.length; i++) {
      for (let bits = this.bytes[i]; bits !== 0; bits &= bits - 1) yield i * 8 + 31 - Math.clz32(bits & -bits);
    }
  }

  /** Bits beyond the last rank are set: no sound peer sends such a set. */
  get isOverfull(): boolean {
    const rest = this.size % 8;
    return rest !== 0 && this.bytes[this.bytes.length - 1] >>> rest !== 0;
  }

  toString(): string {
    return `{${[...this].join(', ')}}`;
  }
}
