// The loops of reductions in the native part: the same results as those in JavaScript, bit for bit (the payload of a NaN may be any), at
// any place and of any length; and an unsound call is refused before anything is written.
import { describe, expect, test } from 'vitest';
import { NATIVE_COMBINE_MIN, NativeKernels } from '../../../src/mpi/coll/native-kernels.ts';
import { kernelOf, Op } from '../../../src/mpi/op.ts';
import { COMBINE, type CombineArray } from '../../../src/native/binding.ts';
import { ARRAY_NAMES, ARRAYS, isBig, isFloat, sameBits } from '../../support/coll-audit.ts';
import { describeNative, misuse, native, thrown } from './native-fixture.ts';

type ArrayName = (typeof ARRAY_NAMES)[number];

const OPS = Object.entries(COMBINE) as [keyof typeof COMBINE, number][];
const isDefined = (op: keyof typeof COMBINE, name: ArrayName): boolean => COMBINE[op] <= COMBINE.MIN || !isFloat(name);

/** The same numbers in every run. */
function randomOf(seed: number): () => number {
  let x = seed | 1;
  return () => {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    return x >>> 0;
  };
}

const EXTREMES = [0, -0, 1, -1, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.MAX_VALUE, -Number.MAX_VALUE]
  .concat([Number.MIN_VALUE, -Number.MIN_VALUE, 2 ** 24, 2 ** 24 + 1, 2 ** 53, 3.4028234663852886e38, 1.401298464324817e-45, 1e-30])
  .concat([127, 128, 255, 256, 32767, 32768, 65535, 2 ** 31 - 1, -(2 ** 31), 2 ** 32 - 1]);

/** Random bits, between them every extreme beside every other one. */
function filled(name: ArrayName, length: number, random: () => number, everyOther: number): CombineArray {
  const array = new ARRAYS[name](length);
  const bytes = new Uint8Array(array.buffer);
  for (let i = 0; i < bytes.length; i++) bytes[i] = random();
  for (let i = 0; i < length; i++) {
    if (random() % 4 === 0) continue;
    const value = EXTREMES[Math.floor(i / everyOther) % EXTREMES.length];
    if (isBig(name)) (array as BigInt64Array)[i] = BigInt.asIntN(64, BigInt(Number.isFinite(value) ? Math.trunc(value) : random()));
    else (array as Float64Array)[i] = value;
  }
  return array;
}

/** NaN as every NaN is written. */
function plainNan(array: CombineArray): CombineArray {
  if (array instanceof Float32Array || array instanceof Float64Array) {
    for (let i = 0; i < array.length; i++) if (Number.isNaN(array[i])) array[i] = Number.NaN;
  }
  return array;
}

describeNative('native loops of reductions', () => {
  test('every operation on every class gives the bits of the loop in JavaScript: apart, into the left one, into the right one', () => {
    const random = randomOf(2026);
    const length = EXTREMES.length ** 2 + 40;
    let compared = 0;
    // Of Float16Array the loops in JavaScript are used.
    for (const name of ARRAY_NAMES.filter((one) => one !== 'Float16Array')) {
      for (const [op, code] of OPS) {
        if (!isDefined(op, name)) continue;
        const kernel = kernelOf(Op[op] as Op, name) as (...args: unknown[]) => void;
        const left = filled(name, length, random, 1);
        const right = filled(name, length, random, EXTREMES.length);
        for (const [i, j, k, count] of [
          [0, 0, 0, length],
          [1, 0, 3, length - 3],
          [5, 5, 5, 1],
          [7, 3, 1, 31],
          [2, 9, 4, 0],
          [length, length, length, 0],
        ]) {
          const what = `${op} of ${count} ${name} from ${i}, ${j} to ${k}`;
          const [mine, theirs] = [new ARRAYS[name](length), new ARRAYS[name](length)];
          native.combine(code, left, i, right, j, mine, k, count);
          kernel(left, i, right, j, theirs, k, count);
          sameBits(plainNan(mine), plainNan(theirs), what);
          const [a, b] = [left.slice(), left.slice()];
          native.combine(code, a, i, right, j, a, i, count);
          kernel(b, i, right, j, b, i, count);
          sameBits(plainNan(a), plainNan(b), `${what}, into the left one`);
          const [c, d] = [right.slice(), right.slice()];
          native.combine(code, left, i, c, j, c, j, count);
          kernel(left, i, d, j, d, j, count);
          sameBits(plainNan(c), plainNan(d), `${what}, into the right one`);
          compared++;
        }
      }
    }
    expect(compared).toBe((11 * 4 + 9 * 6) * 6);
  });

  test('views into the middle of memory, and memory that is shared', () => {
    const memory = new SharedArrayBuffer(4096);
    const left = new Int32Array(memory, 4, 100).fill(5);
    const right = new Int32Array(memory, 404, 100).fill(7);
    native.combine(COMBINE.PROD, left, 10, right, 0, right, 0, 90);
    expect([right[0], right[89], right[90]]).toEqual([35, 35, 7]);
    expect(left.every((value) => value === 5)).toBe(true);
  });

  test('what is not sound is refused, and nothing is written', () => {
    const a = new Int16Array(64).fill(1);
    const b = new Int16Array(64).fill(2);
    const out = new Int16Array(64);
    const refused: unknown[][] = [
      [-1, a, 0, b, 0, out, 0, 64],
      [OPS.length, a, 0, b, 0, out, 0, 64],
      [0, a, 1, b, 0, out, 0, 64],
      [0, a, 0, b, 1, out, 0, 64],
      [0, a, 0, b, 0, out, 1, 64],
      [0, a, 0, b, 0, out, 0, 65],
      [0, a, 65, b, 0, out, 0, 0],
      [0, a, 0, b, 0, out, 0, 2 ** 53],
      [0, a, -1, b, 0, out, 0, 1],
      [0, a, 0.5, b, 0, out, 0, 1],
      [0, new Uint16Array(64), 0, b, 0, out, 0, 64],
      [0, a, 0, new Int8Array(128), 0, out, 0, 64],
      [0, a, 0, b, 0, new Int32Array(64), 0, 64],
      [0, new DataView(new ArrayBuffer(128)), 0, b, 0, out, 0, 64],
      [0, [1], 0, b, 0, out, 0, 1],
      [0, a, 0, b, 0, a, 1, 63],
      [0, a, 1, b, 0, a, 0, 63],
      [0, a, 0, b, 61, b, 62, 2],
      [0, a, 0, b, 0, out, 0],
      [],
    ];
    for (const args of refused) {
      expect(
        thrown(() => (native.combine as (...args: unknown[]) => void)(...args)),
        String(args.length),
      ).toEqual(misuse);
    }
    const floats = new Float32Array(8).fill(3);
    for (const [op, code] of OPS) {
      if (!isDefined(op, 'Float32Array')) expect(thrown(() => native.combine(code, floats, 0, floats, 0, floats, 0, 8))).toEqual(misuse);
    }
    expect(floats.every((value) => value === 3)).toBe(true);
    const gone = new Int16Array(64);
    structuredClone(gone.buffer, { transfer: [gone.buffer] });
    expect(thrown(() => native.combine(0, gone, 0, b, 0, out, 0, 1))).toEqual(misuse);
    expect([...a, ...out].every((value, i) => value === (i < 64 ? 1 : 0))).toBe(true);
    expect(b.every((value) => value === 2)).toBe(true);
  });
});

describe('choice of the loop', () => {
  test('long arrays are combined natively, short ones and other operations are not', () => {
    const calls: number[] = [];
    const kernels = new NativeKernels((op, _left, _i, _right, _j, _out, _k, count) => calls.push(op, count));
    const array = new Int32Array(NATIVE_COMBINE_MIN).fill(1);
    const run = (op: Op, count: number): number => {
      const out = new Int32Array(count);
      kernelOf(op, 'Int32Array', kernels)(array, 0, array, 0, out, 0, count);
      return out[0];
    };
    expect(run(Op.BXOR, NATIVE_COMBINE_MIN)).toBe(0);
    expect(calls).toEqual([COMBINE.BXOR, NATIVE_COMBINE_MIN]);
    expect(run(Op.SUM, NATIVE_COMBINE_MIN - 1)).toBe(2);
    expect(run(Op.MAXLOC, NATIVE_COMBINE_MIN)).toBe(1);
    const difference = (incoming: Int32Array, inout: Int32Array): void => {
      for (let i = 0; i < inout.length; i++) inout[i] -= incoming[i];
    };
    const own = Op.create(difference, { name: 'SUM' });
    expect(run(own, NATIVE_COMBINE_MIN)).toBe(0);
    expect(calls.length).toBe(2);
    expect(kernelOf(Op.SUM, 'Int32Array', kernels)).toBe(kernelOf(Op.SUM, 'Int32Array', kernels));
    expect(kernelOf(Op.SUM, 'Int32Array')).not.toBe(kernelOf(Op.SUM, 'Int32Array', kernels));
  });
});
