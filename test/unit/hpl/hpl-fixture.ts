// What the tests of tools/hpl share: both kinds of kernels, problems of several ranks in one process, dense matrices of plain numbers.
import { tcpComponent } from '../../../src/btl/tcp/component.ts';
import { Prng } from '../../../src/util/prng.ts';
import { type AlgebraChoice, chooseAlgebra } from '../../../tools/hpl/blas.ts';
import { Factorization, type OnBlock } from '../../../tools/hpl/factorization.ts';
import { Messages } from '../../../tools/hpl/messages.ts';
import { Problem, type ProblemOptions } from '../../../tools/hpl/problem.ts';
import { type Residual, residual, solve } from '../../../tools/hpl/solution.ts';
import { INCREMENT, MULTIPLIER } from '../../../tools/hpl/wasm-blocks.ts';
import { type P2pWorld, realFixture } from '../../support/p2p-worlds.ts';

export const wasm = chooseAlgebra('wasm');
const best = chooseAlgebra('auto');
/** Undefined where it is not installed; then `openblasMissing` says so. */
export const openblas: AlgebraChoice | undefined = best.name === 'openblas' ? best : undefined;
export const openblasMissing = best.name === 'openblas' ? undefined : best.reason;

const fixture = realFixture([tcpComponent]);

/** Long eager limits are not what is tested here. */
export const worldOf = (size: number): Promise<P2pWorld> => fixture.world(size);

export const DEFAULTS: ProblemOptions = { n: 10, nb: 4, p: 1, q: 1, seed: 1, depth: 1, broadcast: 'ring-modified', swap: 'mix' };

export interface Solved {
  x: number[];
  residual: Residual;
}

/** Solves on the first P x Q ranks of a world, which must have exactly as many; every rank's answer. */
export async function solveIn(
  world: P2pWorld,
  options: Partial<ProblemOptions>,
  algebra: AlgebraChoice = wasm,
  fill?: (problem: Problem) => void,
  onBlock?: OnBlock,
): Promise<Solved[]> {
  return await Promise.all(
    world.comms.map(async (comm) => {
      const problem = new Problem({ ...DEFAULTS, ...options }, new Messages(comm, false), algebra.make);
      if (fill === undefined) problem.generate();
      else fill(problem);
      await new Factorization(problem).run(onBlock);
      await solve(problem);
      return { x: [...problem.heap.view(problem.vectors.x, problem.n)], residual: await residual(problem) };
    }),
  );
}

/** Rows of (A | b). */
export type Dense = number[][];

/** Writes the local part of a dense system. */
export function fillWith(dense: Dense): (problem: Problem) => void {
  return (problem) => {
    for (let j = 0; j < problem.localColumns; j++)
      for (let i = 0; i < problem.localRows; i++) problem.heap.f64[problem.at(i, j)] = dense[problem.globalRow(i)][problem.globalColumn(j)];
  };
}

export function randomDense(n: number, seed: string): Dense {
  const prng = new Prng(seed);
  return Array.from({ length: n }, () => Array.from({ length: n + 1 }, () => prng.below(2_000_001) / 1_000_000 - 1));
}

/** The values of the generator, step by step in plain big integers. */
export function generatorValues(seed: bigint, count: number): number[] {
  const values: number[] = [];
  for (let state = BigInt.asUintN(64, seed); values.length < count; state = BigInt.asUintN(64, state * MULTIPLIER + INCREMENT))
    values.push(Number(state >> 11n) * 2 ** -53 - 0.5);
  return values;
}

/** The system that problems of this order and seed solve: by columns, the right-hand side last. */
export function generatedDense(n: number, seed: bigint): Dense {
  const values = generatorValues(seed, n * (n + 1));
  return Array.from({ length: n }, (_, i) => Array.from({ length: n + 1 }, (_, j) => values[j * n + i]));
}

/** Gauss with partial pivoting, as in a textbook. */
export function naiveSolve(system: Dense): number[] {
  const a = system.map((row) => [...row]);
  const n = a.length;
  for (let k = 0; k < n; k++) {
    let pivot = k;
    for (let i = k + 1; i < n; i++) if (Math.abs(a[i][k]) > Math.abs(a[pivot][k])) pivot = i;
    [a[k], a[pivot]] = [a[pivot], a[k]];
    for (let i = k + 1; i < n; i++) {
      const factor = a[i][k] / a[k][k];
      for (let j = k; j <= n; j++) a[i][j] -= factor * a[k][j];
    }
  }
  const x = new Array<number>(n).fill(0);
  for (let i = n - 1; i >= 0; i--) {
    let sum = a[i][n];
    for (let j = i + 1; j < n; j++) sum -= a[i][j] * x[j];
    x[i] = sum / a[i][i];
  }
  return x;
}

/** Largest difference, relative to the largest of the expected. */
export function distance(found: readonly number[], expected: readonly number[]): number {
  const scale = Math.max(...expected.map(Math.abs));
  return Math.max(...expected.map((value, i) => Math.abs(value - found[i]))) / scale;
}
