// What the cases of the collective suite share: one call on every rank, arrays of every class with values that depend on rank and place,
// and results combined one element after the other, in the plainest way.
import { strict as assert } from 'node:assert';
import { FLOAT16_ARRAY } from '../../src/mpi/buffers.ts';
import type { ArrayName, TypedArray } from '../../src/mpi/coll/kernels.ts';
import type { Communicator } from '../../src/mpi/communicator.ts';
import type { P2pWorld } from './p2p-worlds.ts';

/** Every rank does this, at the same time; the results in the order of the ranks. */
export function everyRank<T>(world: P2pWorld, act: (comm: Communicator) => Promise<T>): Promise<T[]> {
  return Promise.all(world.comms.map(act));
}

export const ARRAYS = {
  Int8Array,
  Uint8Array,
  Uint8ClampedArray,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  // Where the engine has it.
  ...((FLOAT16_ARRAY === undefined ? {} : { Float16Array: FLOAT16_ARRAY }) as { Float16Array: Float32ArrayConstructor }),
  Float32Array,
  Float64Array,
  BigInt64Array,
  BigUint64Array,
} as const;
export const ARRAY_NAMES = Object.keys(ARRAYS) as ArrayName[];
export const isBig = (name: ArrayName): boolean => name.startsWith('Big');
export const isFloat = (name: ArrayName): boolean => name.startsWith('Float');

export function zeros(name: ArrayName, length: number): TypedArray {
  return new ARRAYS[name](length);
}

/** Values of many sizes, also such that overflow, and such that are equal on several ranks. */
export function values(name: ArrayName, length: number, rank: number, seed = 0): TypedArray {
  const array = zeros(name, length);
  let x = Math.imul(rank * 7919 + seed * 104_729 + 1, 0x9e3779b1) | 1;
  for (let i = 0; i < length; i++) {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    const small = i % 3 === 0 ? (x & 7) - 3 : x;
    // Products and sums of these need no rounding, in any order.
    if (name === 'Float16Array') (array as Float32Array)[i] = [1, -1, 2, 0.5][x & 3];
    else if (isBig(name)) (array as BigInt64Array)[i] = BigInt(small) * (i % 3 === 0 ? 1n : 0x1_0000_0001n);
    else (array as Float64Array)[i] = isFloat(name) ? small / 3 : small;
  }
  return array;
}

/** The same bits. */
export function sameBits(a: ArrayBufferView, b: ArrayBufferView, what: string): void {
  const one = Buffer.from(a.buffer, a.byteOffset, a.byteLength);
  const other = Buffer.from(b.buffer, b.byteOffset, b.byteLength);
  if (one.equals(other)) return;
  const at = one.findIndex((byte, i) => byte !== other[i]);
  assert.fail(`${what}: ${one.length} bytes, expected ${other.length}; byte ${at} is ${one[at]}, expected ${other[at]}`);
}

/** Of floats, which are combined in another order: close enough. Of all others: the same bits. */
export function sameValues(a: TypedArray, b: TypedArray, what: string): void {
  if (!(a instanceof Float32Array) && !(a instanceof Float64Array)) return sameBits(a, b, what);
  const precision = a instanceof Float32Array ? 1e-4 : 1e-11;
  const floats = b as Float64Array;
  assert.equal(a.length, floats.length, what);
  for (let i = 0; i < a.length; i++) {
    const near = Math.abs(a[i] - floats[i]) <= precision * Math.max(1, Math.abs(floats[i]), Math.abs(a[i]));
    const same = Object.is(a[i], floats[i]) || a[i] === floats[i];
    assert(near || same, `${what}: element ${i} is ${a[i]}, expected ${floats[i]}`);
  }
}

type Combine = (a: number, b: number) => number;
type CombineBig = (a: bigint, b: bigint) => bigint;

/** What the operations mean, element by element, written down again. */
export const MEANING: Record<string, { number: Combine; big: CombineBig; floats: boolean }> = {
  SUM: { number: (a, b) => a + b, big: (a, b) => a + b, floats: true },
  PROD: { number: (a, b) => a * b, big: (a, b) => a * b, floats: true },
  // biome-ignore lint/complexity/useMathMinMax: bigints
  MAX: { number: Math.max, big: (a, b) => (a > b ? a : b), floats: true },
  // biome-ignore lint/complexity/useMathMinMax: bigints
  MIN: { number: Math.min, big: (a, b) => (a < b ? a : b), floats: true },
  LAND: { number: (a, b) => Number(a !== 0 && b !== 0), big: (a, b) => BigInt(a !== 0n && b !== 0n), floats: false },
  LOR: { number: (a, b) => Number(a !== 0 || b !== 0), big: (a, b) => BigInt(a !== 0n || b !== 0n), floats: false },
  LXOR: { number: (a, b) => Number((a !== 0) !== (b !== 0)), big: (a, b) => BigInt((a !== 0n) !== (b !== 0n)), floats: false },
  BAND: { number: (a, b) => a & b, big: (a, b) => a & b, floats: false },
  BOR: { number: (a, b) => a | b, big: (a, b) => a | b, floats: false },
  BXOR: { number: (a, b) => a ^ b, big: (a, b) => a ^ b, floats: false },
};

/** Combines the arrays in the order of the list. */
export function combined(name: ArrayName, op: string, arrays: readonly TypedArray[]): TypedArray {
  const result = arrays[0].slice();
  const { number, big } = MEANING[op];
  const wide = name === 'Int32Array' || name === 'Uint32Array';
  for (const array of arrays.slice(1)) {
    for (let i = 0; i < result.length; i++) {
      if (isBig(name)) (result as BigInt64Array)[i] = big((result as BigInt64Array)[i], (array as BigInt64Array)[i]);
      // A product of 64 bits does not fit into a number: the low half is taken from whole ones.
      else if (op === 'PROD' && wide) {
        const product = BigInt((result as Int32Array)[i]) * BigInt((array as Int32Array)[i]);
        (result as Int32Array)[i] = Number(BigInt.asIntN(32, product));
      } else (result as Float64Array)[i] = number((result as Float64Array)[i], (array as Float64Array)[i]);
    }
  }
  return result;
}

/** 2 × 2 matrices modulo a prime, one behind the other: an operation that does not commute. */
export const MATRIX = 4;
const PRIME = 32_749;

export function multiply(incoming: Int32Array, inout: Int32Array): void {
  for (let i = 0; i < inout.length; i += MATRIX) {
    const [a, b, c, d] = incoming.subarray(i, i + MATRIX);
    const [e, f, g, h] = inout.subarray(i, i + MATRIX);
    inout[i] = (a * e + b * g) % PRIME;
    inout[i + 1] = (a * f + b * h) % PRIME;
    inout[i + 2] = (c * e + d * g) % PRIME;
    inout[i + 3] = (c * f + d * h) % PRIME;
  }
}

export function matrices(count: number, rank: number): Int32Array {
  return Int32Array.from({ length: count * MATRIX }, (_, i) => (((rank + 2) * 31 + i * 7 + rank * i) % (PRIME - 1)) + 1);
}

export function matrixProduct(count: number, ranks: readonly number[]): Int32Array {
  let result = matrices(count, ranks[0]);
  for (const rank of ranks.slice(1)) {
    const next = matrices(count, rank);
    multiply(result, next);
    result = next;
  }
  return result;
}
