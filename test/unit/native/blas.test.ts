// The machine's BLAS through its addon: what cannot be loaded says why, what is outside the memory is refused, and what is asked for
// is computed (against plain loops: test/unit/hpl/kernels.test.ts).
import { expect, test } from 'vitest';
import { type BlasBinding, loadBlas } from '../../../tools/hpl/blas.ts';
import { describeAddon, misuse, programWith, thrown } from './native-fixture.ts';

const available = loadBlas();
/** Only used by tests that are skipped without it. */
const blas = available.binding as BlasBinding;

describeAddon(available, 'blas', () => {
  test('a library that is not there, or is no BLAS, says so', () => {
    expect(() => blas.open('libno-such-library.so.9')).toThrow(/libno-such-library\.so\.9/);
    expect(thrown(() => blas.open('libno-such-library.so.9'))).toMatchObject({ name: 'Error', code: 'ERR_BLAS' });
    expect(() => blas.open('libm.so.6')).toThrow(/libm\.so\.6 has no dgemm_/);
    expect(thrown(() => blas.open(''))).toEqual(misuse);
    expect(thrown(() => blas.open('a\0b'))).toEqual(misuse);
    expect(thrown(() => blas.open(7 as unknown as string))).toEqual(misuse);
  });

  test('before a library is open nothing is computed', () => {
    const { stdout } = programWith(
      'blas',
      available,
      `
      try { blas.dgemm(new Float64Array(4), 1, 1, 1, 0, 1, 1, 1, 2, 1); } catch (error) { console.log(error.code); }
      try { blas.dtrsm(new Float64Array(4), 1, 1, 0, 1, 1, 1); } catch (error) { console.log(error.code); }
      blas.dgemm.length; console.log('alive');
    `,
    );
    expect(stdout.trim().split('\n')).toEqual(['ERR_BLAS', 'ERR_BLAS', 'alive']);
  });

  test('matrices that do not lie within the memory are refused', () => {
    const memory = new Float64Array(100);
    const dgemm = (m: number, n: number, k: number, a: number, lda: number, b: number, ldb: number, c: number, ldc: number) =>
      thrown(() => blas.dgemm(memory, m, n, k, a, lda, b, ldb, c, ldc));
    expect(dgemm(10, 10, 10, 1, 10, 0, 10, 0, 10)).toEqual(misuse);
    expect(dgemm(10, 10, 10, 0, 10, 1, 10, 0, 10)).toEqual(misuse);
    expect(dgemm(10, 10, 10, 0, 10, 0, 10, 1, 10)).toEqual(misuse);
    expect(dgemm(4, 4, 4, 0, 3, 0, 4, 0, 4)).toEqual(misuse);
    expect(dgemm(4, 4, 4, 0, 4, 0, 4, 0, 2 ** 31)).toEqual(misuse);
    expect(dgemm(-1, 4, 4, 0, 4, 0, 4, 0, 4)).toEqual(misuse);
    expect(dgemm(1.5, 4, 4, 0, 4, 0, 4, 0, 4)).toEqual(misuse);
    expect(dgemm(2, 2, 2, 2 ** 53, 2, 0, 2, 0, 2)).toEqual(misuse);
    expect(dgemm(1, 2 ** 31 - 1, 1, 0, 2 ** 31 - 1, 0, 2 ** 31 - 1, 0, 2 ** 31 - 1)).toEqual(misuse);
    expect(thrown(() => blas.dtrsm(memory, 10, 10, 0, 10, 1, 10))).toEqual(misuse);
    expect(thrown(() => blas.dtrsm(new Float32Array(100) as unknown as Float64Array, 2, 2, 0, 2, 0, 2))).toEqual(misuse);
  });
});
