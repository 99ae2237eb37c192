// The memory of a program, as the binding reads and writes it. It is shared memory in the sense of WebAssembly (nobody else has it): when it
// grows, views that were made before stay valid, so a buffer that is in use is never taken away. JavaScript copies shared memory word by word, or
// byte by byte where source and target lie differently, so with the native part views are those of an alias that is not shared.
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
/** Buffers often begin with a page: all bits of the address count. */
const slotOf = (at: number, length: number): number => ((at >>> 3) ^ (at >>> 11) ^ (at >>> 19) ^ length) & (KEPT_VIEWS - 1);
/** The memory has an alias of its new length when it is so much longer: the collector of memory counts each of them as memory. */
const ALIAS_GROWTH = 1.25;

/** Makes an ArrayBuffer over the memory of a view (`memoryAlias` of the native part). */
export type MakeAlias = (bytes: Uint8Array) => ArrayBuffer;

/** The shared memory of each alias: it lives as long as that. */
const aliased = new WeakMap<ArrayBufferLike, ArrayBufferLike>();

export class LinearMemory {
  private readonly memory: WasmMemory;
  private makeAlias: MakeAlias | undefined;
  /** All of it, as far as it has been looked at; the alias may be shorter. */
  private shared!: ArrayBufferLike;
  private alias!: ArrayBufferLike;
  private data!: DataView;
  /** All of it, as far as it has been looked at. */
  bytes!: Uint8Array;
  private readonly kept: (Uint8Array | undefined)[] = new Array(KEPT_VIEWS);
  private readonly keptArrays: (TypedArray | undefined)[] = new Array(KEPT_VIEWS);
  private readonly encoder = new TextEncoder();

  constructor(memory: WasmMemory, makeAlias?: MakeAlias) {
    this.memory = memory;
    this.makeAlias = makeAlias;
    this.refresh();
  }

  /** Ends in an error of MPI where [at, at + length) is not in the memory. */
  check(at: number, length: number, name: string): void {
    if (at + length <= this.bytes.length) return;
    this.refresh();
    if (at + length > this.bytes.length)
      fail('BUFFER', `${name} is ${length} bytes at address ${at}, beyond the end of the memory, which has ${this.bytes.length} bytes`);
  }

  private refresh(): void {
    this.shared = this.memory.buffer;
    if (this.makeAlias === undefined) this.alias = this.shared;
    else if (this.shared.byteLength >= ALIAS_GROWTH * (this.alias?.byteLength ?? 0)) this.renewAlias(this.makeAlias);
    const whole = this.memoryTo(this.shared.byteLength);
    this.data = new DataView(whole);
    this.bytes = new Uint8Array(whole);
  }

  private renewAlias(makeAlias: MakeAlias): void {
    try {
      this.alias = makeAlias(new Uint8Array(this.shared));
      aliased.set(this.alias, this.shared);
    } catch {
      // This runtime permits none.
      this.makeAlias = undefined;
      this.alias = this.shared;
    }
  }

  /** Memory that has all bytes to before `end`. */
  private memoryTo(end: number): ArrayBuffer {
    return (end <= this.alias.byteLength ? this.alias : this.shared) as ArrayBuffer;
  }

  /** The view of a buffer; the same object for the same buffer, where it is not long ago. */
  view(at: number, length: number): Uint8Array {
    const slot = slotOf(at, length);
    const known = this.kept[slot];
    if (known !== undefined && known.byteOffset === at && known.length === length) return known;
    this.check(at, length, 'the buffer');
    const view = new Uint8Array(this.memoryTo(at + length), at, length);
    this.kept[slot] = view;
    return view;
  }

  /** Whether that view is of this memory. */
  holds(view: Uint8Array): boolean {
    return aliased.has(view.buffer) || (view.buffer as unknown) instanceof SharedArrayBuffer;
  }

  /** As view(), of elements of another class: `length` of them at an address that fits. */
  array(name: ArrayClass, at: number, length: number): TypedArray {
    const type = ARRAYS[name];
    const slot = slotOf(at, length);
    const known = this.keptArrays[slot];
    if (known !== undefined && known.byteOffset === at && known.length === length && known.constructor === type) return known;
    const bytes = length * type.BYTES_PER_ELEMENT;
    this.check(at, bytes, 'the buffer');
    const view = new type(this.memoryTo(at + bytes), at, length);
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
    if (this.memory.buffer !== this.shared) this.refresh();
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
