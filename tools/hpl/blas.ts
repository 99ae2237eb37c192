// Which kernels a rank computes with: the machine's OpenBLAS through an addon (native/blas) where both are there, otherwise WebAssembly.
import { MultirailError } from '../../src/errors.ts';
import { loadAddon } from '../../src/native/load.ts';
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

/** Raised with every change of the surface below: a binary of another number is not used. */
const BLAS_ABI = 1;

/** The machine's BLAS. Matrices lie by columns; places and leading dimensions are in doubles of `memory`. */
export interface BlasBinding {
  readonly abi: number;
  /**
   * Loads a library by name (`libopenblas.so.0`) or path, for all threads of the process. Returns what it says of itself, "" when it says
   * nothing. Throws ERR_BLAS when it cannot be loaded or has no dgemm or dtrsm.
   */
  open(name: string): string;
  /** C := C - A B; A is m x k, B is k x n. Throws ERR_BLAS when no library is open. */
  dgemm(
    memory: Float64Array,
    m: number,
    n: number,
    k: number,
    a: number,
    lda: number,
    b: number,
    ldb: number,
    c: number,
    ldc: number,
  ): void;
  /** B := L^-1 B; L is the unit lower triangle of m rows, B is m x n. Throws ERR_BLAS when no library is open. */
  dtrsm(memory: Float64Array, m: number, n: number, l: number, ldl: number, b: number, ldb: number): void;
}

/** The addon, or why there is none. */
export const loadBlas = () => loadAddon<BlasBinding>('blas', BLAS_ABI);

type Found = { description: string; library: string } | { missing: string };

function findBlas(blas: BlasBinding, env: NodeJS.ProcessEnv): Found {
  // One thread per rank: the ranks are the parallelism. The library reads it when it is loaded.
  env[THREADS_VARIABLE] ??= '1';
  const named = env[BLAS_VARIABLE];
  const hasName = named !== undefined && named !== '';
  for (const library of hasName ? [named] : LIBRARIES) {
    let said: string;
    try {
      said = blas.open(library);
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
  const loaded = loadBlas();
  const found: Found =
    loaded.binding === undefined ? { missing: `there is no native part for BLAS: ${loaded.reason}` } : findBlas(loaded.binding, env);
  if ('missing' in found) {
    if (wish === 'openblas') throw new MultirailError('ERR_SUPPORT', `OpenBLAS cannot be used: ${found.missing}`);
    return wasm(found.missing);
  }
  const blas = loaded.binding as BlasBinding;
  const description = `${found.description} (${found.library}, ${env[THREADS_VARIABLE]} thread${env[THREADS_VARIABLE] === '1' ? '' : 's'})`;
  return {
    name: 'openblas',
    description,
    reason: wish === 'openblas' ? 'asked for' : 'it is installed',
    make: ({ f64 }) => {
      const dgemm: Algebra['dgemm'] = (m, n, k, a, lda, b, ldb, c, ldc) => blas.dgemm(f64, m, n, k, a, lda, b, ldb, c, ldc);
      const dtrsm: Algebra['dtrsm'] = (m, n, l, ldl, b, ldb) => blas.dtrsm(f64, m, n, l, ldl, b, ldb);
      return { name: 'openblas', description, dgemm, dtrsm: solveByHalves(dgemm, dtrsm, DTRSM_ROWS_MAX) };
    },
  };
}
