// Buffers of collectives: the program's memory itself where data are one piece of it, else memory beside it, packed before and unpacked after.
import type { TypedArray } from '../mpi/coll/kernels.ts';
import { kernelOf, type Op } from '../mpi/op.ts';
import * as abi from './abi.ts';
import { fail } from './errors.ts';
import { ARRAYS } from './linear-memory.ts';
import type { Machine } from './machine.ts';
import { combining } from './ops.ts';
import type { Datatype } from './types/datatype.ts';
import { pack, unpack } from './types/pack.ts';

/** One buffer of a collective. */
export interface Staged {
  readonly buffer: Uint8Array;
  readonly before: (() => void) | undefined;
  readonly after: (() => void) | undefined;
}

/** Parts of a buffer, one for each rank: counts and displacements in bytes. */
export interface StagedParts extends Staged {
  readonly counts: readonly number[];
  readonly displs: readonly number[];
}

/** A list of buffers. */
export interface StagedList {
  readonly buffers: readonly Uint8Array[];
  readonly before: () => void;
  readonly after: () => void;
}

const EMPTY = new Uint8Array(0);

/** What a reduction combines. */
export class StagedElements {
  readonly array: TypedArray;
  readonly op: Op;
  /** Elements of the array for one of the datatype. */
  readonly per: number;
  readonly before: (() => void) | undefined;
  readonly after: (() => void) | undefined;

  constructor(array: TypedArray, op: Op, per: number, before?: () => void, after?: () => void) {
    this.array = array;
    this.op = op;
    this.per = per;
    this.before = before;
    this.after = after;
  }

  /** Of a reduction that is scattered: what goes in is copied, so that the result can come into the first part of the same memory. */
  scatteredInPlace(name: string, own: StagedElements, counts: readonly number[] | undefined) {
    const { array, before } = this;
    const copy = array.slice() as TypedArray;
    return {
      name,
      args: counts === undefined ? [copy, own.array, this.op] : [copy, own.array, counts, this.op],
      before: () => {
        before?.();
        (copy as Uint8Array).set(array as Uint8Array);
      },
      after: own.after,
    };
  }
}

export class Staging {
  private readonly m: Machine;

  constructor(m: Machine) {
    this.m = m;
  }

  count(count: number): number {
    return count >= 0 ? count : fail('COUNT', `the count is ${count}; expected 0 or more`);
  }

  notInPlace(at: number, name: string): number {
    return at === abi.IN_PLACE ? fail('BUFFER', `${name} is MPI_IN_PLACE, which is not for this rank`) : at;
  }

  /** What is read. It is packed by `before`, since a persistent call reads it at each start. */
  out(at: number, count: number, handle: number): Staged {
    const type = this.m.committed(handle);
    const whole = this.piece(at, count, type);
    if (whole !== undefined) return { buffer: whole, before: undefined, after: undefined };
    const { memory } = this.m;
    const buffer = this.m.allocate(count * type.size);
    return { buffer, before: () => void pack(memory, at >>> 0, count, type, buffer), after: undefined };
  }

  /** What is written. */
  into(at: number, count: number, handle: number): Staged {
    const type = this.m.committed(handle);
    const whole = this.piece(at, count, type);
    if (whole !== undefined) return { buffer: whole, before: undefined, after: undefined };
    const { memory } = this.m;
    const buffer = this.m.allocate(count * type.size);
    return { buffer, before: undefined, after: () => void unpack(memory, at >>> 0, count, type, buffer) };
  }

  /** What is read and written. */
  both(at: number, count: number, handle: number): Staged {
    const { buffer, after } = this.into(at, count, handle);
    if (after === undefined) return { buffer, before: undefined, after };
    const type = this.m.committed(handle);
    return { buffer, before: () => void pack(this.m.memory, at >>> 0, count, type, buffer), after };
  }

  private piece(at: number, count: number, type: Datatype): Uint8Array | undefined {
    this.count(count);
    if (at === abi.IN_PLACE) fail('BUFFER', 'the buffer is MPI_IN_PLACE, which is not for this argument');
    const bytes = count * type.size;
    if (bytes === 0) return EMPTY;
    if (!type.isContiguous && !(count === 1 && type.isDense)) return undefined;
    const from = (at >>> 0) + type.trueLb;
    return from > 0 ? this.m.memory.view(from, bytes) : fail('BUFFER', 'the buffer is NULL');
  }

  // ---------------------------------------------------------------- parts

  partsOut(at: number, counts: readonly number[], displs: readonly number[], handle: number): StagedParts {
    return this.parts(at, counts, displs, handle, 'out', []);
  }

  /** `kept`: ranks whose parts are read, too. */
  partsInto(at: number, counts: readonly number[], displs: readonly number[], handle: number, kept: readonly number[]): StagedParts {
    return this.parts(at, counts, displs, handle, 'into', kept);
  }

  private parts(
    at: number,
    counts: readonly number[],
    displs: readonly number[],
    handle: number,
    way: 'out' | 'into',
    kept: readonly number[],
  ): StagedParts {
    const type = this.m.committed(handle);
    for (const count of counts) this.count(count);
    const bytes = counts.map((count) => count * type.size);
    const places = displs.map((displ) => displ * type.extent);
    if (type.isContiguous && (way === 'out' || !overlaps(places, bytes))) return this.direct(at, bytes, places, type);
    const displsOfPacked = placesOf(bytes);
    const buffer = this.m.allocate(displsOfPacked[bytes.length - 1] + bytes[bytes.length - 1]);
    const { memory } = this.m;
    const packPart = (i: number): void => {
      if (bytes[i] > 0) pack(memory, (at >>> 0) + places[i], counts[i], type, buffer, displsOfPacked[i]);
    };
    const read = way === 'out' ? counts.map((_, i) => i) : kept;
    return {
      buffer,
      counts: bytes,
      displs: displsOfPacked,
      before: read.length === 0 ? undefined : () => void read.map(packPart),
      after:
        way === 'out'
          ? undefined
          : () => {
              for (let i = 0; i < counts.length; i++) {
                const from = displsOfPacked[i];
                if (bytes[i] > 0) unpack(memory, (at >>> 0) + places[i], counts[i], type, buffer.subarray(from, from + bytes[i]));
              }
            },
    };
  }

  /** The piece of memory that all parts lie in. */
  private direct(at: number, bytes: readonly number[], places: readonly number[], type: Datatype): StagedParts {
    let low = Number.POSITIVE_INFINITY;
    let high = Number.NEGATIVE_INFINITY;
    for (let i = 0; i < bytes.length; i++) {
      if (bytes[i] === 0) continue;
      low = Math.min(low, places[i]);
      high = Math.max(high, places[i] + bytes[i]);
    }
    if (low > high) return { buffer: EMPTY, counts: bytes, displs: bytes.map(() => 0), before: undefined, after: undefined };
    const from = (at >>> 0) + type.trueLb + low;
    if (from <= 0) fail('BUFFER', 'the buffer is NULL');
    return {
      buffer: this.m.memory.view(from, high - low),
      counts: bytes,
      displs: places.map((place, i) => (bytes[i] === 0 ? 0 : place - low)),
      before: undefined,
      after: undefined,
    };
  }

  /** A buffer for each rank, at places in bytes, each of its own type. */
  each(
    at: number,
    counts: readonly number[],
    places: readonly number[],
    types: readonly number[],
    way: 'out' | 'into' | 'both',
  ): StagedList {
    const isApart = way === 'out' || !this.areMixed(at, counts, places, types);
    const list = counts.map((count, i): Staged => {
      if (this.count(count) === 0) return { buffer: EMPTY, before: undefined, after: undefined };
      const from = ((at >>> 0) + places[i]) | 0;
      const staged = this[way](from, count, types[i]);
      return isApart || staged.after !== undefined ? staged : this.beside(staged.buffer);
    });
    return {
      buffers: list.map(({ buffer }) => buffer),
      before: () => {
        for (const { before } of list) before?.();
      },
      after: () => {
        for (const { after } of list) after?.();
      },
    };
  }

  /** Whether buffers at these places share memory. */
  private areMixed(at: number, counts: readonly number[], places: readonly number[], types: readonly number[]): boolean {
    const begins: number[] = [];
    const lengths = counts.map((count, i) => {
      const type = this.m.committed(types[i]);
      const over = Math.max(0, count - 1) * type.extent;
      begins.push((at >>> 0) + places[i] + type.trueLb + Math.min(0, over));
      return count === 0 ? 0 : type.trueUb - type.trueLb + Math.abs(over);
    });
    return overlaps(begins, lengths);
  }

  /** Memory beside a buffer that shares its own with another one. */
  private beside(buffer: Uint8Array): Staged {
    const copy = this.m.allocate(buffer.length);
    copy.set(buffer);
    return { buffer: copy, before: () => copy.set(buffer), after: () => buffer.set(copy) };
  }

  // ---------------------------------------------------------------- elements

  elementsOut(at: number, count: number, handle: number, op: number): StagedElements {
    return this.elements(this.notInPlace(at, 'the buffer'), count, handle, op, 'out');
  }

  /** `kept`: what is there counts, too. */
  elementsInto(at: number, count: number, handle: number, op: number, kept: boolean): StagedElements {
    return this.elements(at, count, handle, op, kept ? 'both' : 'into');
  }

  private elements(at: number, count: number, handle: number, opHandle: number, way: 'out' | 'into' | 'both'): StagedElements {
    const type = this.m.committed(handle);
    this.count(count);
    const { array: name, op } = combining(this.m, type, opHandle);
    const array = ARRAYS[name];
    const unit = array.BYTES_PER_ELEMENT;
    const per = type.size / unit;
    const length = count * per;
    if (length === 0) return new StagedElements(new array(0), op, per);
    const { memory } = this.m;
    const from = (at >>> 0) + type.trueLb;
    if (from <= 0) fail('BUFFER', 'the buffer is NULL');
    if ((type.isContiguous || (count === 1 && type.isDense)) && from % unit === 0)
      return new StagedElements(memory.array(name, from, length), op, per);
    const bytes = this.m.allocate(length * unit);
    const staged = new array(bytes.buffer, 0, length);
    const before = way === 'into' ? undefined : () => void pack(memory, at >>> 0, count, type, bytes);
    const after = way === 'out' ? undefined : () => void unpack(memory, at >>> 0, count, type, bytes);
    return new StagedElements(staged, op, per, before, after);
  }

  /** `inout = in operation inout` in the program's memory. */
  reduceLocal(at: number, to: number, count: number, type: number, op: number): void {
    const from = this.elementsOut(at, count, type, op);
    const into = this.elementsInto(to, count, type, op, true);
    from.before?.();
    into.before?.();
    const { length } = from.array;
    if (length > 0)
      kernelOf(from.op, from.array.constructor.name as keyof typeof ARRAYS)(from.array, 0, into.array, 0, into.array, 0, length);
    into.after?.();
  }
}

function placesOf(lengths: readonly number[]): number[] {
  let next = 0;
  return lengths.map((length) => {
    const at = next;
    next += length;
    return at;
  });
}

/** Whether two parts share memory: that is wrong in MPI, and other libraries take it. */
function overlaps(places: readonly number[], bytes: readonly number[]): boolean {
  const order = places.map((_, i) => i).filter((i) => bytes[i] > 0);
  order.sort((a, b) => places[a] - places[b]);
  for (let n = 1; n < order.length; n++) if (places[order[n - 1]] + bytes[order[n - 1]] > places[order[n]]) return true;
  return false;
}
