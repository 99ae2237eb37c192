// Buffers of collectives: contiguous bytes for the algorithms, with the class of their elements where a reduction needs it. Strided and
// gathered buffers are packed into scratch memory at the start and unpacked at the end.
import { MultirailError } from '../../errors.ts';
import { EMPTY_BYTES, EMPTY_IOV, Iov } from '../../util/iov.ts';
import { arrayNameOf, FLOAT16_ARRAY, type MessageBuffer, recvIov, sendIov, Vector } from '../buffers.ts';
import { checkCount, checkForEachRank, describe } from '../constants.ts';
import type { ArrayName, TypedArray } from './kernels.ts';

/** In place of a send buffer: what this rank contributes is in its receive buffer, at its place (MPI-4.1, section 6.2). */
export const IN_PLACE: unique symbol = Symbol('multirail.IN_PLACE');
/** The type of IN_PLACE. */
export type InPlace = typeof IN_PLACE;

const ARRAYS = {
  Int8Array,
  Uint8Array,
  Uint8ClampedArray,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  // Without it no buffer is of that class.
  Float16Array: FLOAT16_ARRAY as Float32ArrayConstructor,
  Float32Array,
  Float64Array,
  BigInt64Array,
  BigUint64Array,
} as const;

/** Elements of one class in memory: a buffer of the call, or scratch. */
export interface Elements {
  readonly arrayName: ArrayName | undefined;
  readonly unitBytes: number;
  readonly bytes: Uint8Array;
  readonly array: TypedArray;
  readonly whole: Iov;
  /** Bytes of the elements [from, from + count). */
  part(from: number, count: number): Uint8Array;
}

/** Elements in memory that is lent for the time of a call. */
export class ScratchElements implements Elements {
  readonly arrayName: ArrayName;
  readonly unitBytes: number;
  readonly count: number;
  readonly bytes: Uint8Array;
  readonly array: TypedArray;
  readonly whole: Iov;

  constructor(arrayName: ArrayName, count: number, bytes: Uint8Array) {
    this.arrayName = arrayName;
    this.unitBytes = elementBytes(arrayName);
    this.count = count;
    this.bytes = bytes;
    this.array = typedView(arrayName, bytes);
    this.whole = bytes.length === 0 ? EMPTY_IOV : new Iov([bytes]);
  }

  part(from: number, count: number): Uint8Array {
    const { unitBytes } = this;
    return this.bytes.subarray(from * unitBytes, (from + count) * unitBytes);
  }
}

export function elementBytes(arrayName: ArrayName): number {
  const type = ARRAYS[arrayName];
  if (type !== undefined) return type.BYTES_PER_ELEMENT;
  throw new MultirailError('ERR_BUFFER', `collectives know no ${arrayName}: pass a view of its bytes, or another class of array`);
}

/** Gives memory for the time of a run. */
export interface ScratchSource {
  scratch(bytes: number): Uint8Array;
}

/** One buffer of a call. */
export class Region implements Elements {
  /** The caller's memory. */
  readonly iov: Iov;
  /** Bytes as the algorithms see them: the caller's memory, or scratch memory from load() on. */
  bytes: Uint8Array;
  readonly byteLength: number;
  /** Class of the elements, where the buffer has one. */
  readonly arrayName: ArrayName | undefined;
  /** Bytes of an element: that of the class, else 1. Counts and displacements are in these. */
  readonly unitBytes: number;
  readonly isContiguous: boolean;
  private typed: TypedArray | undefined;

  constructor(buffer: MessageBuffer, iov: Iov) {
    this.iov = iov;
    this.byteLength = iov.bytes;
    this.isContiguous = iov.isContiguous;
    this.bytes = this.isContiguous ? (iov.views[0] ?? EMPTY_BYTES) : EMPTY_BYTES;
    this.arrayName = arrayNameOf(buffer);
    if (this.arrayName !== undefined && !(buffer instanceof Vector)) this.typed = buffer as TypedArray;
    this.unitBytes = this.arrayName === undefined ? 1 : elementBytes(this.arrayName);
  }

  get length(): number {
    return this.byteLength / this.unitBytes;
  }

  /** Packs what is not contiguous, for the time of the run. */
  load(run: ScratchSource): void {
    this.bytes = run.scratch(this.byteLength);
    this.typed = undefined;
    this.iov.copyTo(this.bytes, 0);
  }

  /** Unpacks what the run has brought. */
  store(): void {
    if (!this.isContiguous) this.iov.copyIn(0, this.bytes);
  }

  /** The elements, for a reduction. */
  get array(): TypedArray {
    this.typed ??= typedView(this.arrayName as ArrayName, this.bytes);
    return this.typed;
  }

  /** Bytes of the elements [from, from + count). */
  part(from: number, count: number): Uint8Array {
    const { unitBytes, bytes } = this;
    return from === 0 && count * unitBytes === bytes.length ? bytes : bytes.subarray(from * unitBytes, (from + count) * unitBytes);
  }

  /** All of it. */
  get whole(): Iov {
    return this.isContiguous ? this.iov : new Iov([this.bytes]);
  }
}

/** Elements over memory that begins at a multiple of their length. */
export function typedView(name: ArrayName, bytes: Uint8Array): TypedArray {
  const type = ARRAYS[name];
  return new type(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.length / type.BYTES_PER_ELEMENT);
}

/** Longer buffers are looked at each time, which costs nothing compared with sending them, and are not kept alive here. */
const KNOWN_BYTES_MAX = 64 * 1024;
const KNOWN_MAX = 4;

/** Programs use a few short buffers again and again: each is looked at once. */
export class KnownRegions {
  private readonly regions: { buffer: MessageBuffer; region: Region }[] = [];
  private next = 0;

  /** The region of this buffer, if it was one of the last and has not been detached since. */
  find(buffer: MessageBuffer): Region | undefined {
    const { regions } = this;
    for (let i = 0; i < regions.length; i++) {
      const known = regions[i];
      if (known.buffer === buffer) return (buffer as Uint8Array).byteLength === known.region.byteLength ? known.region : undefined;
    }
    return undefined;
  }

  keep(buffer: MessageBuffer, region: Region): Region {
    // Typed arrays stay what they are; an array of parts can be changed.
    if (region.arrayName === undefined || region.byteLength === 0 || region.byteLength > KNOWN_BYTES_MAX || buffer instanceof Vector)
      return region;
    this.regions[this.next] = { buffer, region };
    this.next = (this.next + 1) % KNOWN_MAX;
    return region;
  }
}

export function sendRegion(buffer: MessageBuffer, name = 'send'): Region {
  return new Region(buffer, sendIov(buffer, name));
}

export function recvRegion(buffer: MessageBuffer, name = 'recv'): Region {
  return new Region(buffer, recvIov(buffer, name));
}

/** Two buffers of one call share no memory (MPI-4.1, section 6.1: no aliasing of arguments). */
export function checkApart(a: Region, b: Region, names: string): void {
  for (const x of a.iov.views) {
    for (const y of b.iov.views) {
      if (x.buffer !== y.buffer || x.byteOffset >= y.byteOffset + y.length || y.byteOffset >= x.byteOffset + x.length) continue;
      throw new MultirailError('ERR_BUFFER', `${names} share memory: pass IN_PLACE instead of the send buffer, or a copy`);
    }
  }
}

/** Parts of a buffer, one for each rank: first element and number of elements. */
export interface Blocks {
  readonly at: readonly number[];
  readonly counts: readonly number[];
}

/** `size` blocks of the same length, one behind the other. */
export function equalBlocks(size: number, count: number): Blocks {
  return { at: Array.from({ length: size }, (_, i) => i * count), counts: new Array<number>(size).fill(count) };
}

/** `count` elements in `size` blocks that differ by no more than one unit: the first ones are the longer ones. */
export function splitBlocks(size: number, count: number, unit: number): Blocks {
  const units = count / unit;
  const each = Math.floor(units / size);
  const longer = units - each * size;
  const counts = Array.from({ length: size }, (_, i) => (i < longer ? each + 1 : each) * unit);
  return { at: placesOf(counts), counts };
}

export function placesOf(counts: readonly number[]): number[] {
  let next = 0;
  return counts.map((count) => {
    const at = next;
    next += count;
    return at;
  });
}

/** Counts and displacements as the caller gives them, in elements of the region; undefined displacements: one behind the other. */
export function checkBlocks(
  region: Region,
  size: number,
  counts: readonly number[] | null | undefined,
  places: readonly number[] | null | undefined,
  names: { buffer: string; counts: string; displs: string; written: boolean },
): Blocks {
  if (!isList(counts))
    throw new MultirailError(
      'ERR_ARG',
      `${names.counts} is ${describe(counts)}; expected an array with a number of elements for each rank`,
    );
  checkForEachRank(counts, size, names.counts);
  if (places !== undefined && places !== null) {
    const more = ', or null where the parts follow one another';
    if (!isList(places))
      throw new MultirailError(
        'ERR_COUNT',
        `${names.displs} is ${describe(places)}; expected an array with one number for each rank${more}`,
      );
    checkForEachRank(places, size, names.displs, more);
  }
  for (let i = 0; i < size; i++) {
    checkCount(counts[i], `${names.counts}[${i}]`);
    if (places) checkCount(places[i], `${names.displs}[${i}]`);
  }
  const at = places ? Array.from(places) : placesOf(counts);
  for (let i = 0; i < size; i++) {
    if (counts[i] > 0 && at[i] + counts[i] > region.length) {
      throw new MultirailError(
        'ERR_BUFFER',
        `${names.buffer} holds ${region.length} elements; ${names.counts}[${i}] = ${counts[i]} at ${at[i]} reaches beyond its end`,
      );
    }
  }
  if (places && names.written) checkNoOverlap(at, counts, names.displs);
  return { at, counts: Array.from(counts) };
}

const isList = (value: unknown): value is readonly number[] =>
  Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView));

function checkNoOverlap(at: readonly number[], counts: readonly number[], name: string): void {
  const order = at.map((_, i) => i).filter((i) => counts[i] > 0);
  order.sort((a, b) => at[a] - at[b]);
  for (let n = 1; n < order.length; n++) {
    const [before, after] = [order[n - 1], order[n]];
    if (at[before] + counts[before] > at[after]) {
      throw new MultirailError('ERR_BUFFER', `${name}: the parts of ranks ${before} and ${after} overlap`);
    }
  }
}
