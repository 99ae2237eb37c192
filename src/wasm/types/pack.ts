// Data between the memory of the program, as a datatype says where they are, and one piece of bytes.
import { fail } from '../errors.ts';
import type { LinearMemory } from '../linear-memory.ts';
import type { Basic } from './basics.ts';
import type { Datatype, Runs, Units } from './datatype.ts';

/** Up to here a loop is faster than a call of set(). */
const LOOP_BYTES_MAX = 32;

function copy(from: Uint8Array, at: number, into: Uint8Array, to: number, bytes: number): void {
  if (bytes <= LOOP_BYTES_MAX) for (let i = 0; i < bytes; i++) into[to + i] = from[at + i];
  else into.set(from.subarray(at, at + bytes), to);
}

/** The memory that `count` elements reach over: ends in an error of MPI where that is not all there. */
export function checkReach(memory: LinearMemory, at: number, count: number, type: Datatype): void {
  if (count === 0 || type.size === 0) return;
  const over = (count - 1) * type.extent;
  const low = at + type.trueLb + Math.min(0, over);
  const high = at + type.trueUb + Math.max(0, over);
  if (low <= 0) fail('BUFFER', low === 0 ? 'the buffer is NULL' : `the datatype reaches ${-low} bytes below address 0`);
  memory.check(low, high - low, 'the buffer');
}

/** Packs `count` elements at `at` into `into`, from `to` on. Returns how many bytes that were. */
export function pack(memory: LinearMemory, at: number, count: number, type: Datatype, into: Uint8Array, to = 0): number {
  checkReach(memory, at, count, type);
  const { bytes } = memory;
  let next = to;
  const visitor: Runs = {
    run(from, length) {
      copy(bytes, from, into, next, length);
      next += length;
      return true;
    },
  };
  type.walk(at, count, visitor);
  return next - to;
}

/** Unpacks into `count` elements at `at` what is there, all of `from` at most. Returns how many bytes that were. */
export function unpack(memory: LinearMemory, at: number, count: number, type: Datatype, from: Uint8Array): number {
  checkReach(memory, at, count, type);
  const { bytes } = memory;
  let next = 0;
  const visitor: Runs = {
    run(to, length) {
      const part = Math.min(length, from.length - next);
      copy(from, next, bytes, to, part);
      next += part;
      return next < from.length;
    },
  };
  if (from.length > 0) type.walk(at, count, visitor);
  return next;
}

/** Basic elements in the first `bytes` bytes of data of the type; -1: the last one is cut. */
export function elementsIn(type: Datatype, bytes: number): number {
  if (type.size === 0) return 0;
  const whole = Math.floor(bytes / type.size);
  let left = bytes - whole * type.size;
  let elements = whole * type.elements;
  let isCut = false;
  if (left > 0) {
    type.walkUnits(0, 1, {
      units(_at, basic, count) {
        const some = Math.min(count, Math.floor(left / basic.bytes));
        elements += some;
        left -= some * basic.bytes;
        if (some < count) {
          isCut = left > 0;
          return false;
        }
        return left > 0;
      },
    });
  }
  return isCut ? -1 : elements;
}

// ---------------------------------------------------------------- external32

export function externalSize(count: number, type: Datatype): number {
  let size = 0;
  type.walkUnits(0, 1, {
    units(_at, basic, number) {
      size += basic.external * number;
      return true;
    },
  });
  return size * count;
}

/** Parts of a basic element that are turned round each by itself. */
const partsOf = ({ kind }: Basic): number => (kind === 'c64' || kind === 'c128' || kind === 'c256' ? 2 : 1);

/** One element, between the order of bytes of this machine and the other one, cut or extended by its sign where the lengths differ. */
function convert(from: Uint8Array, at: number, own: number, into: Uint8Array, to: number, other: number, signed: boolean): void {
  const negative = signed && (from[at + own - 1] & 0x80) !== 0;
  for (let i = 0; i < other; i++) into[to + other - 1 - i] = i < own ? from[at + i] : negative ? 0xff : 0;
}

function convertBack(from: Uint8Array, at: number, other: number, into: Uint8Array, to: number, own: number, signed: boolean): void {
  const negative = signed && (from[at] & 0x80) !== 0;
  for (let i = 0; i < own; i++) into[to + i] = i < other ? from[at + other - 1 - i] : negative ? 0xff : 0;
}

const isSigned = ({ kind }: Basic): boolean => kind[0] === 'i';

export function packExternal(memory: LinearMemory, at: number, count: number, type: Datatype, into: Uint8Array, to: number): number {
  checkReach(memory, at, count, type);
  const { bytes } = memory;
  let next = to;
  const visitor: Units = {
    units(from, basic, number) {
      const parts = partsOf(basic);
      const [own, other] = [basic.bytes / parts, basic.external / parts];
      for (let i = 0; i < number * parts; i++, next += other) convert(bytes, from + i * own, own, into, next, other, isSigned(basic));
      return true;
    },
  };
  type.walkUnits(at, count, visitor);
  return next - to;
}

export function unpackExternal(memory: LinearMemory, at: number, count: number, type: Datatype, from: Uint8Array, begin: number): number {
  checkReach(memory, at, count, type);
  const { bytes } = memory;
  let next = begin;
  const visitor: Units = {
    units(to, basic, number) {
      const parts = partsOf(basic);
      const [own, other] = [basic.bytes / parts, basic.external / parts];
      for (let i = 0; i < number * parts; i++, next += other) {
        if (next + other > from.length) return false;
        convertBack(from, next, other, bytes, to + i * own, own, isSigned(basic));
      }
      return true;
    },
  };
  if (!type.walkUnits(at, count, visitor)) fail('TRUNCATE', 'the packed data end before the elements that are to be unpacked');
  return next - begin;
}
