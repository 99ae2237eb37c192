// The kernels against plain loops: products and triangular solves of both kinds, and the parts that are WebAssembly with both.
import { describe, expect, test } from 'vitest';
import { Prng } from '../../../src/util/prng.ts';
import { type Algebra, Kernels, takeKernelPlaces } from '../../../tools/hpl/algebra.ts';
import type { AlgebraChoice } from '../../../tools/hpl/blas.ts';
import { HEAP_BYTES_MAX, Heap, HeapLayout } from '../../../tools/hpl/heap.ts';
import { INCREMENT, MULTIPLIER } from '../../../tools/hpl/wasm-blocks.ts';
import { generatorValues, openblas, openblasMissing, wasm } from './hpl-fixture.ts';

const ROOM = 400_000;

interface Desk {
  heap: Heap;
  kernels: Kernels;
  algebra: Algebra;
  /** A place of so many doubles, filled with small numbers. */
  random(doubles: number): number;
  takeInts(values: readonly number[]): number;
}

function desk(choice: AlgebraChoice = wasm, seed = 'kernels'): Desk {
  const layout = new HeapLayout();
  const places = takeKernelPlaces(layout);
  let next = layout.take(ROOM);
  const heap = new Heap(layout);
  const kernels = new Kernels(heap, places);
  const prng = new Prng(seed);
  return {
    heap,
    kernels,
    algebra: choice.make(heap, kernels),
    random: (doubles) => {
      const place = next;
      next += doubles;
      for (let i = 0; i < doubles; i++) heap.f64[place + i] = prng.below(2001) / 1000 - 1;
      return place;
    },
    takeInts: (values) => {
      const place = next;
      next += Math.ceil(values.length / 2);
      heap.writeInts(place, values);
      return place;
    },
  };
}

const LETTERS = [1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 33];

function kernelTests(choice: AlgebraChoice): void {
  test('C := C - A B for every combination of small sizes, and nothing outside of C', () => {
    const { heap, algebra, random } = desk(choice);
    const [a, b, c] = [random(40 * 40), random(40 * 40), random(40 * 40)];
    const { f64 } = heap;
    for (const m of LETTERS) {
      for (const n of LETTERS) {
        for (const k of LETTERS) {
          const [lda, ldb, ldc] = [m + 1, k + 3, m + 2];
          const before = f64.slice(c, c + 40 * 40);
          algebra.dgemm(m, n, k, a, lda, b, ldb, c, ldc);
          for (let at = 0; at < before.length; at++) {
            const [i, j] = [at % ldc, Math.floor(at / ldc)];
            let wanted = before[at];
            if (i < m && j < n) for (let p = 0; p < k; p++) wanted -= f64[a + p * lda + i] * f64[b + j * ldb + p];
            if (Math.abs(f64[c + at] - wanted) > 1e-12 * (1 + Math.abs(wanted)))
              expect.fail(`${m} x ${n} x ${k}: element ${at}: ${f64[c + at]}, not ${wanted}`);
          }
          f64.set(before, c);
        }
      }
    }
  });

  test.each([
    [97, 513, 257],
    [200, 30, 300],
    [130, 140, 128],
  ])('a product of %i x %i x %i, beyond one block', (m, n, k) => {
    const { heap, algebra, random } = desk(choice);
    const [a, b, c] = [random(m * k), random(k * n), random(m * n)];
    const { f64 } = heap;
    const before = f64.slice(c, c + m * n);
    algebra.dgemm(m, n, k, a, m, b, k, c, m);
    let worst = 0;
    for (let j = 0; j < n; j++) {
      for (let i = 0; i < m; i++) {
        let wanted = before[j * m + i];
        for (let p = 0; p < k; p++) wanted -= f64[a + p * m + i] * f64[b + j * k + p];
        worst = Math.max(worst, Math.abs(wanted - f64[c + j * m + i]));
      }
    }
    expect(worst).toBeLessThan(1e-11);
  });

  test.each([1, 2, 7, 16, 17, 33, 64, 100])('B := L^-1 B for a unit lower triangle of %i rows', (m) => {
    const { heap, algebra, random } = desk(choice);
    const n = 9;
    const [ldl, ldb] = [m + 2, m + 1];
    const [l, b] = [random(ldl * m), random(ldb * n)];
    const { f64 } = heap;
    for (let j = 0; j < m; j++) for (let i = 0; i <= j; i++) f64[l + j * ldl + i] = Number.NaN;
    for (let j = 0; j < m; j++) for (let i = j + 1; i < m; i++) f64[l + j * ldl + i] /= m;
    const wanted = f64.slice(b, b + ldb * n);
    for (let j = 0; j < n; j++)
      for (let i = 0; i < m; i++) for (let p = 0; p < i; p++) wanted[j * ldb + i] -= f64[l + p * ldl + i] * wanted[j * ldb + p];
    algebra.dtrsm(m, n, l, ldl, b, ldb);
    for (let at = 0; at < wanted.length; at++) expect(Math.abs(f64[b + at] - wanted[at])).toBeLessThan(1e-12);
  });

  test('nothing of nothing', () => {
    const { heap, algebra, random } = desk(choice);
    const place = random(100);
    const before = [...heap.view(place, 100)];
    algebra.dgemm(0, 5, 5, place, 5, place + 30, 5, place + 60, 5);
    algebra.dgemm(5, 0, 5, place, 5, place + 30, 5, place + 60, 5);
    algebra.dgemm(5, 5, 0, place, 5, place + 30, 5, place + 60, 5);
    algebra.dtrsm(5, 0, place, 5, place + 30, 5);
    expect([...heap.view(place, 100)]).toEqual(before);
  });
}

describe('WebAssembly', () => kernelTests(wasm));
if (openblas === undefined) describe.skip(`OpenBLAS (skipped: ${openblasMissing})`, () => test('products and solves', () => undefined));
else describe('OpenBLAS', () => kernelTests(openblas as AlgebraChoice));

describe('the rest', () => {
  test('the first of the largest absolute values', () => {
    const { heap, kernels, random } = desk();
    const x = random(50);
    heap.f64.set([3, -7, 7, 0, -7], x);
    expect(kernels.largest(x, 5)).toBe(1);
    expect(kernels.largest(x, 1)).toBe(0);
    expect(kernels.largest(x + 2, 3)).toBe(0);
    heap.f64.fill(0, x, x + 5);
    expect(kernels.largest(x, 5)).toBe(0);
  });

  test.each([0, 1, 2, 3, 8, 13])('elimination of %i rows', (m) => {
    const { heap, kernels, random } = desk();
    const [lda, n, ldu] = [15, 3, 2];
    const [a, u] = [random(lda * (n + 1)), random(ldu * (n + 1))];
    heap.f64[u] = 0.5;
    const wanted = heap.f64.slice(a, a + lda * (n + 1));
    for (let i = 0; i < m; i++) {
      wanted[i] *= 2;
      for (let t = 1; t <= n; t++) wanted[t * lda + i] -= wanted[i] * heap.f64[u + t * ldu];
    }
    kernels.eliminate(a, m, lda, n, u, ldu);
    expect([...heap.view(a, wanted.length)]).toEqual([...wanted]);
  });

  test.each([0, 1, 6, 9])('y - A x of %i rows', (m) => {
    const { heap, kernels, random } = desk();
    const [a, x, y] = [random(10 * 4), random(4), random(10)];
    const wanted = heap.f64.slice(y, y + 10);
    for (let j = 0; j < 4; j++) for (let i = 0; i < m; i++) wanted[i] -= heap.f64[a + j * 10 + i] * heap.f64[x + j];
    kernels.dgemv(m, 4, a, 10, x, y);
    expect([...heap.view(y, 10)]).toEqual([...wanted]);
  });

  test('rows swapped in order, copied by lists, and blocks copied', () => {
    const { heap, kernels, random, takeInts } = desk();
    const a = random(6 * 3);
    heap.f64.set(
      Array.from({ length: 18 }, (_, i) => i),
      a,
    );
    kernels.swapRows(a, 6, 3, takeInts([0, 3, 1, 3]), 2);
    expect([...heap.view(a, 6)]).toEqual([3, 0, 2, 1, 4, 5]);
    expect([...heap.view(a + 12, 6)]).toEqual([15, 12, 14, 13, 16, 17]);
    const to = random(4 * 3);
    kernels.copyRows(a, 6, takeInts([5, 0]), to, 4, takeInts([1, 3]), 2, 3);
    expect([0, 1, 2].map((j) => [heap.f64[to + j * 4 + 1], heap.f64[to + j * 4 + 3]])).toEqual([
      [5, 3],
      [11, 9],
      [17, 15],
    ]);
    const block = random(2 * 2);
    kernels.copyBlock(a + 1, 6, block, 2, 2, 2);
    expect([...heap.view(block, 4)]).toEqual([0, 2, 6, 8]);
  });

  test('sums of absolute values and a product', () => {
    const { heap, kernels, random } = desk();
    const [column, sums, product] = [random(5), random(5), random(5)];
    const wanted = Array.from({ length: 5 }, (_, i) => [
      heap.f64[sums + i] + Math.abs(heap.f64[column + i]),
      heap.f64[product + i] - heap.f64[column + i] * 3,
    ]);
    kernels.addColumn(5, column, 3, sums, product);
    expect(wanted).toEqual(Array.from({ length: 5 }, (_, i) => [heap.f64[sums + i], heap.f64[product + i]]));
  });
});

describe('the generator', () => {
  test('is the sequence of the linear congruence, from any element on', () => {
    const { heap, kernels, random } = desk();
    const all = generatorValues(42n, 300);
    const place = random(300);
    for (const first of [0, 1, 2, 63, 100, 255]) {
      kernels.generate(place, 40, 40, 0, first, 42);
      expect([...heap.view(place, 40)]).toEqual(all.slice(first, first + 40));
    }
  });

  test('jumps over gaps, as a block-cyclic part does', () => {
    const { heap, kernels, random } = desk();
    const all = generatorValues(7n, 300);
    const place = random(300);
    kernels.generate(place, 11, 4, 9, 5, 7);
    expect([...heap.view(place, 11)]).toEqual([5, 6, 7, 8, 18, 19, 20, 21, 31, 32, 33].map((i) => all[i]));
  });

  test('jumps as far as a matrix can be large', () => {
    const { heap, kernels, random } = desk();
    const place = random(2);
    const far = 2 ** 52 + 12345;
    kernels.generate(place, 1, 1, 0, far, 3);
    // By squaring in plain big integers.
    let [a, c, stepA, stepC] = [1n, 0n, MULTIPLIER, INCREMENT];
    for (let left = BigInt(far); left > 0n; left >>= 1n) {
      if (left & 1n) [a, c] = [BigInt.asUintN(64, a * stepA), BigInt.asUintN(64, stepA * c + stepC)];
      [stepA, stepC] = [BigInt.asUintN(64, stepA * stepA), BigInt.asUintN(64, stepC * (stepA + 1n))];
    }
    expect(heap.f64[place]).toBe(generatorValues(a * 3n + c, 1)[0]);
  });

  test('lies in [-0.5, 0.5) and fills it', () => {
    const { heap, kernels, random } = desk();
    const place = random(20_000);
    kernels.generate(place, 20_000, 20_000, 0, 0, 1);
    const values = heap.view(place, 20_000);
    expect(Math.min(...values)).toBeGreaterThanOrEqual(-0.5);
    expect(Math.min(...values)).toBeLessThan(-0.49);
    expect(Math.max(...values)).toBeGreaterThan(0.49);
    expect(Math.max(...values)).toBeLessThan(0.5);
    expect(Math.abs(values.reduce((sum, value) => sum + value, 0) / 20_000)).toBeLessThan(0.01);
  });
});

test('a heap beyond what a rank can have is refused in words', () => {
  const layout = new HeapLayout();
  layout.take(HEAP_BYTES_MAX / 8 + 8);
  expect(() => new Heap(layout)).toThrow(/ERR_SUPPORT: the part of one rank takes 4097 MiB, and a rank can have 4096/);
});
