// The memory of a program, as the binding reads and writes it. It is shared memory in the sense of WebAssembly (nobody else has it): when it
// grows, views that were made before stay valid, so a buffer that is in use is never taken away.
import type { TypedArray } from '../mpi/coll/kernels.ts';
import { fail } from './errors.ts';
import type { WasmMemory } from './webassembly.ts';

export const ARRAYS = {
  Int8Array,
  Uint8Array,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  BigInt64Array,
  BigUint64Array,
  Float32Array,
  Float64Array,
} as const;
export type ArrayClass = keyof typeof ARRAYS;

/** Views of the buffers that a program uses again and again. */
const KEPT_VIEWS = 256;

export class LinearMemory {
  private readonly memory: WasmMemory;
  private buffer: ArrayBufferLike;
  private data: DataView;
  /** All of it, as far as it has been looked at. */
  bytes: Uint8Array;
  private readonly kept: (Uint8Array | undefined)[] = new Array(KEPT_VIEWS);
  private readonly keptArrays: (TypedArray | undefined)[] = new Array(KEPT_VIEWS);
  private readonly encoder = new TextEncoder();

  constructor(memory: WasmMemory) {
    this.memory = memory;
    this.buffer = memory.buffer;
    this.data = new DataView(this.buffer);
    this.bytes = new Uint8Array(this.buffer);
  }

  /** Ends in an error of MPI where [at, at + length) is not in the memory. */
  check(at: number, length: number, name: string): void {
    if (at + length <= this.bytes.length) return;
    this.refresh();
    if (at + length > this.bytes.length)
      fail('BUFFER', `${name} is ${length} bytes at address ${at}, beyond the end of the memory, which has ${this.bytes.length} bytes`);
  }

  private refresh(): void {
    this.buffer = this.memory.buffer;
    this.data = new DataView(this.buffer);
    this.bytes = new Uint8Array(this.buffer);
  }

  /** The view of a buffer; the same object for the same buffer, where it is not long ago. */
  view(at: number, length: number): Uint8Array {
    const slot = ((at >>> 3) ^ length) & (KEPT_VIEWS - 1);
    const known = this.kept[slot];
    if (known !== undefined && known.byteOffset === at && known.length === length) return known;
    this.check(at, length, 'the buffer');
    const view = new Uint8Array(this.buffer as ArrayBuffer, at, length);
    this.kept[slot] = view;
    return view;
  }

  /** Whether that view is of this memory. */
  holds(view: Uint8Array): boolean {
    return view.buffer === this.buffer || (view.buffer as unknown) instanceof SharedArrayBuffer;
  }

  /** As view(), of elements of another class: `length` of them at an address that fits. */
  array(name: ArrayClass, at: number, length: number): TypedArray {
    const type = ARRAYS[name];
    const slot = ((at >>> 3) ^ length) & (KEPT_VIEWS - 1);
    const known = this.keptArrays[slot];
    if (known !== undefined && known.byteOffset === at && known.length === length && known.constructor === type) return known;
    this.check(at, length * type.BYTES_PER_ELEMENT, 'the buffer');
    const view = new type(this.buffer as ArrayBuffer, at, length);
    this.keptArrays[slot] = view;
    return view;
  }

  private pointer(at: number, length: number): number {
    const address = at >>> 0;
    if (address === 0) fail('ARG', 'a pointer is NULL where the call reads or writes');
    if (address + length > this.bytes.length) this.check(address, length, 'an argument');
    return address;
  }

  int(at: number): number {
    const from = this.pointer(at, 4);
    return this.data.getInt32(from, true);
  }

  setInt(at: number, value: number): void {
    const to = this.pointer(at, 4);
    this.data.setInt32(to, value, true);
  }

  long(at: number): number {
    return Number(this.big(at));
  }

  setLong(at: number, value: number): void {
    this.setBig(at, BigInt(value));
  }

  /** A whole number of 64 bits, exactly. */
  big(at: number): bigint {
    const from = this.pointer(at, 8);
    return this.data.getBigInt64(from, true);
  }

  setBig(at: number, value: bigint): void {
    const to = this.pointer(at, 8);
    this.data.setBigInt64(to, value, true);
  }

  ints(at: number, count: number): number[] {
    if (count === 0) return [];
    const from = this.pointer(at, count * 4);
    const list = new Array<number>(count);
    for (let i = 0; i < count; i++) list[i] = this.data.getInt32(from + i * 4, true);
    return list;
  }

  longs(at: number, count: number): number[] {
    if (count === 0) return [];
    const from = this.pointer(at, count * 8);
    return Array.from({ length: count }, (_, i) => Number(this.data.getBigInt64(from + i * 8, true)));
  }

  setInts(at: number, list: readonly number[]): void {
    if (list.length === 0) return;
    const to = this.pointer(at, list.length * 4);
    for (let i = 0; i < list.length; i++) this.data.setInt32(to + i * 4, list[i], true);
  }

  /** A string that ends with a byte of zero. */
  text(at: number): string {
    const from = this.pointer(at, 1);
    this.refreshIfGrown();
    const to = this.bytes.indexOf(0, from);
    if (to === -1) fail('ARG', 'a string has no end');
    // Decoders take no shared memory.
    return Buffer.from(this.bytes.slice(from, to)).toString('utf8');
  }

  private refreshIfGrown(): void {
    if (this.memory.buffer !== this.buffer) this.refresh();
  }

  /** Writes a string into `room` bytes, its end included; what does not fit is cut off. Returns its length. */
  setText(at: number, text: string, room: number): number {
    const encoded = this.encoder.encode(text).subarray(0, Math.max(0, room - 1));
    const to = this.pointer(at, encoded.length + 1);
    this.bytes.set(encoded, to);
    this.bytes[to + encoded.length] = 0;
    return encoded.length;
  }
}
