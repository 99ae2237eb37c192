// The whole solver on several ranks of one process: compared with a textbook solver, over many sizes, blocks, grids and variants; and hard
// matrices: pivots far away, ties, zeros, singular ones.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AlgebraChoice } from '../../../tools/hpl/blas.ts';
import { Factorization } from '../../../tools/hpl/factorization.ts';
import type { Heap } from '../../../tools/hpl/heap.ts';
import { Messages } from '../../../tools/hpl/messages.ts';
import { Problem, type ProblemOptions } from '../../../tools/hpl/problem.ts';
import { residual, solve } from '../../../tools/hpl/solution.ts';
import type { P2pWorld } from '../../support/p2p-worlds.ts';
import {
  DEFAULTS,
  type Dense,
  distance,
  fillWith,
  generatedDense,
  naiveSolve,
  openblas,
  openblasMissing,
  randomDense,
  solveIn,
  wasm,
  worldOf,
} from './hpl-fixture.ts';

const SIZES: [number, number][] = [
  [1, 1],
  [1, 8],
  [2, 1],
  [5, 2],
  [7, 16],
  [16, 4],
  [33, 8],
  [40, 40],
  [61, 7],
  [64, 32],
];

async function compare(world: P2pWorld, dense: Dense, options: Partial<ProblemOptions>, algebra?: AlgebraChoice): Promise<void> {
  const expected = naiveSolve(dense);
  const answers = await solveIn(world, { ...options, n: dense.length }, algebra, fillWith(dense));
  for (const { x } of answers) expect(distance(x, expected), JSON.stringify(options)).toBeLessThan(1e-8);
}

const GRIDS: [number, number][] = [
  [1, 1],
  [1, 2],
  [2, 1],
  [2, 2],
  [3, 1],
  [1, 3],
  [2, 3],
  [5, 1],
];

describe.each(GRIDS)('a grid of %i x %i', (p, q) => {
  let world: P2pWorld;
  beforeAll(async () => {
    world = await worldOf(p * q);
  });
  afterAll(() => world.teardown());

  test.each(SIZES)('N = %i, NB = %i: the x of a textbook', async (n, nb) => {
    await compare(world, randomDense(n, `${n} ${nb}`), { nb, p, q });
  });

  test.each([
    { depth: 0, broadcast: 'ring', swap: 'long' },
    { depth: 0, broadcast: 'ring-modified', swap: 'binary-exchange' },
    { depth: 1, broadcast: 'ring', swap: 'binary-exchange' },
    { depth: 1, broadcast: 'ring-modified', swap: 'long' },
  ] as const)('variant $depth $broadcast $swap', async (variant) => {
    await compare(world, randomDense(45, 'variants'), { nb: 6, p, q, ...variant });
  });

  test('every pivot is the last row there is', async () => {
    const n = 26;
    const dense = randomDense(n, 'last');
    for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) dense[i][j] = (i + j === n - 1 ? 50 : 0) + dense[i][j] / 10;
    await compare(world, dense, { nb: 5, p, q });
  });

  test('zeros on the diagonal, and columns in which all are equal', async () => {
    const n = 20;
    const dense = randomDense(n, 'zeros').map((row, i) => row.map((value, j) => (i === j ? 0 : j === 3 ? 1 : value)));
    await compare(world, dense, { nb: 4, p, q });
  });

  test('a matrix from the generator: the residual passes, and x is that of every grid', async () => {
    const answers = await solveIn(world, { n: 53, nb: 8, p, q, seed: 9 });
    for (const answer of answers) {
      expect(answer.residual.passed).toBe(true);
      expect(answer.residual.scaled).toBeGreaterThan(0);
      expect(answer.x).toEqual(answers[0].x);
    }
    expect(distance(answers[0].x, naiveSolve(generatedDense(53, 9n)))).toBeLessThan(1e-8);
  });

  test('a wrong x does not pass', async () => {
    // One element of the matrix is another one than the generator's, which the check knows nothing of.
    const answers = await solveIn(world, { n: 53, nb: 8, p, q, seed: 9 }, wasm, (problem) => {
      problem.generate();
      for (let j = 0; j < problem.localColumns; j++)
        for (let i = 0; i < problem.localRows; i++)
          if (problem.globalRow(i) === 20 && problem.globalColumn(j) === 30) problem.heap.f64[problem.at(i, j)] += 1e-6;
    });
    for (const { residual } of answers) {
      expect(residual.passed).toBe(false);
      expect(residual.scaled).toBeGreaterThan(16);
    }
  });

  test.each([
    ['a column of zeros', 13, (dense: Dense) => dense.map((row) => row.map((value, j) => (j === 12 ? 0 : value)))],
    ['all zeros', 1, (dense: Dense) => dense.map((row) => row.map(() => 0))],
    [
      'a value that is no number',
      1,
      (dense: Dense) => dense.map((row, i) => row.map((value, j) => (i === 2 && j <= 1 ? Number.NaN : value))),
    ],
  ])('%s: every rank is told', async (_, column, spoil) => {
    const dense = spoil(randomDense(24, 'singular'));
    const endings = await Promise.allSettled([solveIn(world, { n: 24, nb: 5, p, q }, wasm, fillWith(dense))]);
    const reason = (endings[0] as PromiseRejectedResult).reason as Error;
    expect(String(reason)).toContain('ERR_ARG: the matrix is singular: no pivot');
    if (column === 13) expect(String(reason)).toContain('column 13 of 24');
    // All ranks came to their end, and the world can go on.
    await compare(world, randomDense(12, 'after'), { nb: 5, p, q });
  });
});

test('the memory of an earlier problem does for a smaller one, and what it held does not matter', async () => {
  const world = await worldOf(1);
  try {
    const problem = (n: number, earlier?: Heap) =>
      new Problem({ ...DEFAULTS, n, nb: 8 }, new Messages(world.comms[0], false), undefined, earlier);
    const { heap } = problem(60);
    heap.f64.fill(Number.NaN);
    const smaller = problem(41, heap);
    expect(smaller.heap).toBe(heap);
    expect(problem(200, heap).heap).not.toBe(heap);
    smaller.generate();
    await new Factorization(smaller).run();
    await solve(smaller);
    expect((await residual(smaller)).passed).toBe(true);
    expect(distance([...heap.view(smaller.vectors.x, 41)], naiveSolve(generatedDense(41, 1n)))).toBeLessThan(1e-8);
  } finally {
    await world.teardown();
  }
});

if (openblas === undefined) describe.skip(`with OpenBLAS (skipped: ${openblasMissing})`, () => test('sizes', () => undefined));
else {
  describe('with OpenBLAS', () => {
    let world: P2pWorld;
    beforeAll(async () => {
      world = await worldOf(4);
    });
    afterAll(() => world.teardown());
    test.each(SIZES)('N = %i, NB = %i on 2 x 2', async (n, nb) => {
      await compare(world, randomDense(n, `${n} ${nb}`), { nb, p: 2, q: 2 }, openblas);
    });
    test('the residual of a larger one', async () => {
      for (const { residual } of await solveIn(world, { n: 300, nb: 32, p: 2, q: 2 }, openblas)) expect(residual.passed).toBe(true);
    });
  });
}
