// From the factors to x, and from x to the verdict: back substitution, and HPL's scaled residual, for which the matrix is generated again.
import { localIndex, ownerOf } from './grid.ts';
import { TAG } from './messages.ts';
import type { Problem } from './problem.ts';

/** HPL's bound for the scaled residual. */
export const RESIDUAL_MAX = 16;
/** Relative machine precision as HPL takes it: of rounding, 2^-53. */
export const EPSILON = 2 ** -53;

export interface Residual {
  /** ||Ax - b|| / (epsilon (||A|| ||x|| + ||b||) N), in infinity norms. */
  scaled: number;
  passed: boolean;
  normA: number;
  normB: number;
  normX: number;
  normR: number;
}

/**
 * Solves U x = y, where y is what became of the right-hand side; x is then in `vectors.x` of every rank. Column by column of blocks from
 * the last: its diagonal block gathers what the others have subtracted from its rows, solves, and gives its part of x to all. Who has the
 * column subtracts it from the rows of the next block first; the rows above follow while that one is solved.
 */
export async function solve(problem: Problem): Promise<void> {
  const { n, nb, grid, heap, kernels, lda, messages, vectors } = problem;
  const { f64 } = heap;
  const ownRows = f64.subarray(vectors.rows, vectors.rows + problem.localRows);
  ownRows.fill(0);
  if (ownerOf(n, nb, grid.columns) === grid.column) {
    const column = localIndex(n, nb, grid.columns);
    ownRows.set(heap.view(problem.at(0, column), problem.localRows));
  }
  const all = Array.from({ length: messages.comm.size }, (_, rank) => rank);
  const incoming = new Float64Array(nb);
  let subtractRest = () => {};
  for (let k = problem.blocks - 1; k >= 0; k--) {
    const first = k * nb;
    const width = problem.width(k);
    const ownerRow = ownerOf(first, nb, grid.rows);
    const ownerColumn = ownerOf(first, nb, grid.columns);
    const root = grid.rankAt(ownerRow, ownerColumn);
    const row = problem.rowsBefore(first);
    const column = problem.columnsBefore(first);
    const x = heap.view(vectors.x + first, width);
    if (grid.row === ownerRow) {
      const mine = heap.view(vectors.rows + row, width);
      if (grid.column !== ownerColumn) await messages.send(mine, root, TAG.solve);
      else {
        for (let other = 0; other < grid.columns; other++) {
          if (other === ownerColumn) continue;
          const part = incoming.subarray(0, width);
          await messages.recv(part, grid.rankAt(ownerRow, other), TAG.solve);
          for (let i = 0; i < width; i++) mine[i] += part[i];
        }
        x.set(mine);
        solveUpper(f64, problem.at(row, column), lda, x);
      }
    }
    // The diagonal block is waited for by all.
    if (messages.comm.rank !== root) subtractRest();
    await messages.broadcast(all, messages.comm.rank, root, x, TAG.solve);
    if (messages.comm.rank === root) subtractRest();
    subtractRest = () => {};
    if (grid.column !== ownerColumn || k === 0) continue;
    const subtract = (from: number, rows: number) => {
      if (rows > 0) kernels.dgemv(rows, width, problem.at(from, column), lda, vectors.x + first, vectors.rows + from);
    };
    const next = problem.rowsBefore((k - 1) * nb);
    subtract(next, row - next);
    subtractRest = () => subtract(0, next);
  }
}

/** x := U^-1 x for the upper triangle at this place. */
function solveUpper(f64: Float64Array, place: number, lda: number, x: Float64Array): void {
  for (let j = x.length - 1; j >= 0; j--) {
    x[j] /= f64[place + j * lda + j];
    for (let i = 0; i < j; i++) x[i] -= f64[place + j * lda + i] * x[j];
  }
}

const largest = (values: Float64Array): number => values.reduce((max, value) => Math.max(max, Math.abs(value)), 0);

/** The residual of the x that every rank has. Every rank gets the same answer. */
export async function residual(problem: Problem): Promise<Residual> {
  const { n, nb, grid, heap, kernels, messages, vectors, localRows } = problem;
  const sums = heap.view(vectors.rows, localRows).fill(0);
  const product = heap.view(vectors.moreRows, localRows).fill(0);
  let normB = 0;
  if (ownerOf(n, nb, grid.columns) === grid.column) {
    problem.generateColumn(n, vectors.moreRows);
    normB = largest(product);
  }
  const x = heap.view(vectors.x, n);
  for (let local = 0; local < problem.columnsBefore(n); local++) {
    const global = problem.globalColumn(local);
    problem.generateColumn(global, vectors.column);
    kernels.addColumn(localRows, vectors.column, x[global], vectors.rows, vectors.moreRows);
  }
  const ranks = grid.rowRanks();
  await messages.reduce(ranks, grid.column, sums, 'sum');
  await messages.reduce(ranks, grid.column, product, 'sum');
  const [normA, normR, norm] = await messages.reduceAll([largest(sums), largest(product), normB], 'max');
  const normX = largest(x);
  const scaled = normR / (EPSILON * (normA * normX + norm) * n);
  return { scaled, passed: scaled < RESIDUAL_MAX, normA, normB: norm, normX, normR };
}
