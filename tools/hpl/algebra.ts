// The kernels of the factorisation on one rank's heap. Places and leading dimensions are in doubles, matrices are stored by columns. The
// O(N^3) work is done by an Algebra, of which there are two: WebAssembly SIMD, which runs everywhere, and the machine's BLAS (blas.ts); the
// rest is WebAssembly with both.
import type { Heap, HeapLayout } from './heap.ts';
import { addColumn, copyBlock, copyRows, eliminate, generate, largest, solveUnitLower, subtractProduct, swapRows } from './wasm-blocks.ts';
import { packA, packB, product, TILE_COLUMNS, TILE_ROWS, UNROLL } from './wasm-dgemm.ts';
import { encodeModule } from './wasm-encoder.ts';
import { Wasm, type WasmKernel, type WasmModule } from './webassembly.ts';

/** What carries nearly all of the work. */
export interface Algebra {
  readonly name: AlgebraName;
  /** What it is, in words for a report. */
  readonly description: string;
  /** C := C - A B; A is m x k, B is k x n. C overlaps neither. */
  dgemm(m: number, n: number, k: number, a: number, lda: number, b: number, ldb: number, c: number, ldc: number): void;
  /** B := L^-1 B; L is the unit lower triangle of m rows, what stands on and above its diagonal is not read; B is m x n. */
  dtrsm(m: number, n: number, l: number, ldl: number, b: number, ldb: number): void;
}

export const ALGEBRA_NAMES = ['openblas', 'wasm'] as const;
export type AlgebraName = (typeof ALGEBRA_NAMES)[number];

/** Blocking of the product: panels of A stay in the second cache, those of B in the third. */
const BLOCK_M = 96;
const BLOCK_N = 512;
const BLOCK_K = 256;
/** Triangles up to this are solved by substitution in WebAssembly. */
const SUBSTITUTE_MAX = 16;

let compiled: WasmModule | undefined;

function compile(): WasmModule {
  compiled ??= new Wasm.Module(
    encodeModule([
      packA(),
      packB(),
      product(),
      largest(),
      eliminate(),
      subtractProduct(),
      solveUnitLower(),
      swapRows(),
      copyRows(),
      copyBlock(),
      generate(),
      addColumn(),
    ]),
  );
  return compiled;
}

/** Workspace of the kernels. */
export interface KernelPlaces {
  packedA: number;
  packedB: number;
  tile: number;
}

export function takeKernelPlaces(layout: HeapLayout): KernelPlaces {
  return {
    packedA: layout.take(BLOCK_M * BLOCK_K),
    packedB: layout.take(BLOCK_N * BLOCK_K),
    tile: layout.take(TILE_ROWS * TILE_COLUMNS),
  };
}

export class Kernels {
  private readonly calls: Record<string, WasmKernel>;
  private readonly places: KernelPlaces;

  constructor(heap: Heap, places: KernelPlaces) {
    this.calls = new Wasm.Instance(compile(), { env: { memory: heap.memory } }).exports;
    this.places = places;
  }

  /** Index of the first of `count` elements that has the largest absolute value. */
  largest(x: number, count: number): number {
    return this.calls.largest(x * 8, count);
  }

  /** The m elements of `column` are divided by the pivot u[0]; the n columns right of it lose column * u[t * ldu], t = 1..n. */
  eliminate(column: number, m: number, lda: number, n: number, u: number, ldu: number): void {
    this.calls.eliminate(column * 8, m, lda, n, u * 8, ldu);
  }

  /** y := y - A x. */
  dgemv(m: number, n: number, a: number, lda: number, x: number, y: number): void {
    this.calls.subtractProduct(m, n, a * 8, lda, x * 8, y * 8);
  }

  /** In each of n columns elements pairs[2i] and pairs[2i + 1] change places, in order; `pairs` is a place of i32. */
  swapRows(a: number, lda: number, n: number, pairs: number, count: number): void {
    this.calls.swapRows(a * 8, lda, n, pairs * 8, count);
  }

  /** Row fromRows[i] to row toRows[i] over n columns; the lists are places of i32. */
  copyRows(from: number, ldFrom: number, fromRows: number, to: number, ldTo: number, toRows: number, count: number, n: number): void {
    this.calls.copyRows(from * 8, ldFrom, fromRows * 8, to * 8, ldTo, toRows * 8, count, n);
  }

  copyBlock(from: number, ldFrom: number, to: number, ldTo: number, m: number, n: number): void {
    this.calls.copyBlock(from * 8, ldFrom, to * 8, ldTo, m, n);
  }

  /** `m` numbers of the generator from element `first` on; after each `block` of them `gap` are jumped over. */
  generate(to: number, m: number, block: number, gap: number, first: number, seed: number): void {
    this.calls.generate(to * 8, m, block, gap, first, seed);
  }

  /** sums += |column|, product -= column x. */
  addColumn(m: number, column: number, x: number, sums: number, product: number): void {
    this.calls.addColumn(m, column * 8, x, sums * 8, product * 8);
  }

  dgemm(m: number, n: number, k: number, a: number, lda: number, b: number, ldb: number, c: number, ldc: number): void {
    const { calls, places } = this;
    for (let column = 0; column < n; column += BLOCK_N) {
      const columns = Math.min(BLOCK_N, n - column);
      for (let inner = 0; inner < k; inner += BLOCK_K) {
        const terms = Math.min(BLOCK_K, k - inner);
        const padded = Math.ceil(terms / UNROLL) * UNROLL;
        calls.packB((b + column * ldb + inner) * 8, ldb, terms, columns, padded, places.packedB * 8);
        for (let row = 0; row < m; row += BLOCK_M) {
          const rows = Math.min(BLOCK_M, m - row);
          calls.packA((a + inner * lda + row) * 8, lda, rows, terms, padded, places.packedA * 8);
          const target = (c + column * ldc + row) * 8;
          calls.product(rows, columns, padded, places.packedA * 8, places.packedB * 8, target, ldc, places.tile * 8);
        }
      }
    }
  }

  /** B := L^-1 B by forward substitution: for small m. */
  substitute(m: number, n: number, l: number, ldl: number, b: number, ldb: number): void {
    this.calls.solveUnitLower(m, n, l * 8, ldl, b * 8, ldb);
  }
}

/** A dtrsm that is mostly products: triangles of more than `rowsMax` rows are solved by halves. */
export function solveByHalves(dgemm: Algebra['dgemm'], substitute: Algebra['dtrsm'], rowsMax: number): Algebra['dtrsm'] {
  const solve: Algebra['dtrsm'] = (m, n, l, ldl, b, ldb) => {
    if (m <= rowsMax) {
      substitute(m, n, l, ldl, b, ldb);
      return;
    }
    const half = Math.ceil(m / 2 / TILE_ROWS) * TILE_ROWS;
    solve(half, n, l, ldl, b, ldb);
    dgemm(m - half, n, half, l + half, ldl, b, ldb, b + half, ldb);
    solve(m - half, n, l + half * ldl + half, ldl, b + half, ldb);
  };
  return solve;
}

export function wasmAlgebra(kernels: Kernels): Algebra {
  const dgemm: Algebra['dgemm'] = (...args) => kernels.dgemm(...args);
  const substitute: Algebra['dtrsm'] = (...args) => kernels.substitute(...args);
  return { name: 'wasm', description: 'WebAssembly SIMD', dgemm, dtrsm: solveByHalves(dgemm, substitute, SUBSTITUTE_MAX) };
}
