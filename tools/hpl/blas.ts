// Which kernels a rank computes with: the machine's OpenBLAS through the native part where both are there, otherwise WebAssembly.
import { MultirailError } from '../../src/errors.ts';
import type { NativeBinding } from '../../src/native/binding.ts';
import { loadNative } from '../../src/native/load.ts';
import { ALGEBRA_NAMES, type Algebra, type AlgebraName, solveByHalves, wasmAlgebra } from './algebra.ts';
import type { MakeAlgebra } from './problem.ts';

/** Names a library (or a path) to take instead of those below. */
export const BLAS_VARIABLE = 'MULTIRAIL_BLAS';
const THREADS_VARIABLE = 'OPENBLAS_NUM_THREADS';
/** Debian's and others' names of OpenBLAS; the last is that of any BLAS, and is taken only when OpenBLAS stands behind it. */
const LIBRARIES = ['libopenblas.so.0', 'libopenblas.so', 'libblas.so.3'];
/** Its products are so much faster than its triangular solves that these are left 8 rows (128 x 2000: 1.6 ms instead of 2.7). */
const DTRSM_ROWS_MAX = 8;
export const DEBIAN_PACKAGE = 'libopenblas0-pthread';

export interface AlgebraChoice {
  name: AlgebraName;
  /** What it is. */
  description: string;
  /** Why this one, in a clause. */
  reason: string;
  make: MakeAlgebra;
}

export const ALGEBRA_CHOICES = ['auto', ...ALGEBRA_NAMES] as const;
export type AlgebraWish = (typeof ALGEBRA_CHOICES)[number];

type Found = { description: string; library: string } | { missing: string };

function findBlas(native: NativeBinding, env: NodeJS.ProcessEnv): Found {
  // One thread per rank: the ranks are the parallelism. The library reads it when it is loaded.
  env[THREADS_VARIABLE] ??= '1';
  const named = env[BLAS_VARIABLE];
  const hasName = named !== undefined && named !== '';
  for (const library of hasName ? [named] : LIBRARIES) {
    let said: string;
    try {
      said = native.blasOpen(library);
    } catch (error) {
      if (hasName) return { missing: `${BLAS_VARIABLE}=${named}: ${(error as Error).message}` };
      continue;
    }
    const version = /^OpenBLAS (\S+)/.exec(said);
    const core = / for (\S+)$/.exec(said.trim());
    if (version !== null) return { library, description: `OpenBLAS ${version[1]}${core === null ? '' : `, kernels for ${core[1]}`}` };
    if (hasName) return { library, description: said === '' ? 'a BLAS that does not say its name' : said };
  }
  return { missing: `OpenBLAS is not installed (Debian package ${DEBIAN_PACKAGE}; ${BLAS_VARIABLE} names a library elsewhere)` };
}

/** ERR_SUPPORT when OpenBLAS is wanted and is not there. */
export function chooseAlgebra(wish: AlgebraWish, env: NodeJS.ProcessEnv = process.env): AlgebraChoice {
  const wasm = (reason: string): AlgebraChoice => ({
    name: 'wasm',
    description: 'WebAssembly SIMD',
    reason,
    make: (_, kernels) => wasmAlgebra(kernels),
  });
  if (wish === 'wasm') return wasm('asked for');
  const loaded = loadNative();
  const found: Found =
    loaded.binding === undefined ? { missing: `there is no native part: ${loaded.reason}` } : findBlas(loaded.binding, env);
  if ('missing' in found) {
    if (wish === 'openblas') throw new MultirailError('ERR_SUPPORT', `OpenBLAS cannot be used: ${found.missing}`);
    return wasm(found.missing);
  }
  const native = loaded.binding as NativeBinding;
  const description = `${found.description} (${found.library}, ${env[THREADS_VARIABLE]} thread${env[THREADS_VARIABLE] === '1' ? '' : 's'})`;
  return {
    name: 'openblas',
    description,
    reason: wish === 'openblas' ? 'asked for' : 'it is installed',
    make: ({ f64 }) => {
      const dgemm: Algebra['dgemm'] = (m, n, k, a, lda, b, ldb, c, ldc) => native.dgemm(f64, m, n, k, a, lda, b, ldb, c, ldc);
      const dtrsm: Algebra['dtrsm'] = (m, n, l, ldl, b, ldb) => native.dtrsm(f64, m, n, l, ldl, b, ldb);
      return { name: 'openblas', description, dgemm, dtrsm: solveByHalves(dgemm, dtrsm, DTRSM_ROWS_MAX) };
    },
  };
}
