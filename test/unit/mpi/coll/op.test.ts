// The loops of the operations, at any place and with any overlap that algorithms use; and users' own operations.
import { describe, expect, test } from 'vitest';
import type { TypedArray } from '../../../../src/mpi/coll/kernels.ts';
import { checkOp, kernelOf, Op } from '../../../../src/mpi/op.ts';
import { ARRAY_NAMES, combined, isFloat, MEANING, sameBits, values, zeros } from '../../../support/coll-audit.ts';

const opOf = (name: string): Op => (Op as unknown as Record<string, Op>)[name];

describe('operations', () => {
  test('every one on every class: from any place, into a third array, the left one, the right one', () => {
    for (const name of ARRAY_NAMES) {
      for (const [op, { floats }] of Object.entries(MEANING)) {
        if (!floats && isFloat(name)) {
          expect(() => kernelOf(opOf(op), name)).toThrow(/ERR_OP/);
          continue;
        }
        const kernel = kernelOf(opOf(op), name);
        const left = values(name, 40, 1);
        const right = values(name, 40, 2);
        const expected = combined(name, op, [left.slice(3, 23) as TypedArray, right.slice(7, 27) as TypedArray]);
        const out = zeros(name, 30);
        kernel(left, 3, right, 7, out, 5, 20);
        sameBits(out.slice(5, 25), expected, `${op} of ${name}`);
        sameBits(out.slice(0, 5), zeros(name, 5), 'nothing before');
        sameBits(out.slice(25), zeros(name, 5), 'nothing behind');
        const a = left.slice(3, 23) as TypedArray;
        kernel(a, 0, right, 7, a, 0, 20);
        sameBits(a, expected, 'into the left one');
        const b = right.slice(7, 27) as TypedArray;
        kernel(left, 3, b, 0, b, 0, 20);
        sameBits(b, expected, 'into the right one');
      }
    }
  });

  test('overflow wraps, or is cut, as the array does; 32-bit floats are rounded each time', () => {
    const sum = (a: TypedArray, b: TypedArray) => {
      const name = a.constructor.name as 'Int8Array';
      kernelOf(Op.SUM, name)(a, 0, b, 0, a, 0, a.length);
      return a[0];
    };
    expect(sum(Int8Array.of(127), Int8Array.of(1))).toBe(-128);
    expect(sum(Uint8Array.of(255), Uint8Array.of(2))).toBe(1);
    expect(sum(Uint8ClampedArray.of(255), Uint8ClampedArray.of(2))).toBe(255);
    expect(sum(Int32Array.of(2 ** 31 - 1), Int32Array.of(1))).toBe(-(2 ** 31));
    expect(sum(BigInt64Array.of(2n ** 63n - 1n), BigInt64Array.of(1n))).toBe(-(2n ** 63n));
    expect(sum(BigUint64Array.of(2n ** 64n - 1n), BigUint64Array.of(1n))).toBe(0n);
    expect(sum(Float32Array.of(2 ** 24), Float32Array.of(1))).toBe(2 ** 24);
    const product = Int32Array.of(123_456_789);
    kernelOf(Op.PROD, 'Int32Array')(product, 0, Int32Array.of(987_654_321), 0, product, 0, 1);
    expect(product[0]).toBe(Number(BigInt.asIntN(32, 123_456_789n * 987_654_321n)));
  });

  test('MAX and MIN give the same bits whatever the order: NaN, 0 and -0', () => {
    for (const op of [Op.MAX, Op.MIN]) {
      const kernel = kernelOf(op, 'Float64Array');
      for (const [a, b] of [
        [0, -0],
        [Number.NaN, 1],
        [Number.POSITIVE_INFINITY, -5],
      ]) {
        const one = new Float64Array(1);
        const other = new Float64Array(1);
        kernel(Float64Array.of(a), 0, Float64Array.of(b), 0, one, 0, 1);
        kernel(Float64Array.of(b), 0, Float64Array.of(a), 0, other, 0, 1);
        sameBits(one, other, `${op.name} of ${a} and ${b}`);
      }
    }
  });

  test('MAXLOC and MINLOC: the better value, of equal ones the lower index', () => {
    const out = new Int32Array(6);
    const a = Int32Array.of(5, 1, 7, 1, 3, 4);
    const b = Int32Array.of(6, 2, 7, 0, 3, 9);
    kernelOf(Op.MAXLOC, 'Int32Array')(a, 0, b, 0, out, 0, 6);
    expect([...out]).toEqual([6, 2, 7, 0, 3, 4]);
    kernelOf(Op.MINLOC, 'Int32Array')(a, 0, b, 0, out, 0, 6);
    expect([...out]).toEqual([5, 1, 7, 0, 3, 4]);
  });

  test('a user operation gets the lower ranks first, and what is only lent stays as it is', () => {
    const seen: number[][] = [];
    const op = Op.create<Int32Array>((incoming, inout) => {
      seen.push([...incoming, ...inout]);
      for (let i = 0; i < inout.length; i++) inout[i] = incoming[i] * 10 + inout[i];
    });
    expect([op.commute, op.unit]).toEqual([false, 1]);
    const kernel = kernelOf(op, 'Int32Array');
    const left = Int32Array.of(0, 1, 2);
    const right = Int32Array.of(3, 4);
    const out = new Int32Array(4);
    kernel(left, 1, right, 0, out, 2, 2);
    expect([[...left], [...right], [...out]]).toEqual([
      [0, 1, 2],
      [3, 4],
      [0, 0, 13, 24],
    ]);
    kernel(left, 1, right, 0, left, 1, 2);
    expect([...left]).toEqual([0, 13, 24]);
    expect(seen).toEqual([
      [1, 2, 3, 4],
      [1, 2, 3, 4],
    ]);
    kernel(left, 0, right, 0, out, 0, 0);
    expect(seen.length).toBe(2);
  });

  test('misuse names the argument', () => {
    expect(() => Op.create(7 as never)).toThrow(/ERR_OP: fn is number/);
    expect(() => Op.create(() => undefined, { unit: 0 })).toThrow(/ERR_ARG: unit is 0/);
    expect(() => Op.create(() => undefined, { commute: 1 as never })).toThrow(/ERR_ARG: commute/);
    expect(() => checkOp('SUM')).toThrow(/ERR_OP: op is string/);
  });
});
