// A factorisation saved at a block boundary and resumed in new memory: the same x to the last bit; and files that do not fit.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { loadCheckpoint, readIndex, saveCheckpoint } from '../../../tools/hpl/checkpoint.ts';
import { Factorization } from '../../../tools/hpl/factorization.ts';
import { Messages } from '../../../tools/hpl/messages.ts';
import { Problem, type ProblemOptions } from '../../../tools/hpl/problem.ts';
import { residual, solve } from '../../../tools/hpl/solution.ts';
import type { P2pWorld } from '../../support/p2p-worlds.ts';
import { DEFAULTS, solveIn, worldOf } from './hpl-fixture.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'multirail-hpl-checkpoint-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Factors up to `stopAt` blocks on every rank, and saves there. */
async function saveAt(world: P2pWorld, options: ProblemOptions, stopAt: number): Promise<void> {
  await Promise.all(
    world.comms.map(async (comm) => {
      const problem = new Problem(options, new Messages(comm, false));
      problem.generate();
      const done = await new Factorization(problem).run(async (block) => {
        if (block !== stopAt) return false;
        await saveCheckpoint(problem, folder, block, 1.5);
        return true;
      });
      expect(done).toBe(stopAt);
    }),
  );
}

describe.each([
  [1, 2, 1],
  [2, 1, 1],
  [2, 2, 1],
  [2, 2, 0],
] as const)('on %i x %i with look-ahead %i', (p, q, depth) => {
  let world: P2pWorld;
  beforeAll(async () => {
    world = await worldOf(p * q);
  });
  afterAll(() => world.teardown());
  const options: ProblemOptions = { ...DEFAULTS, n: 50, nb: 8, p, q, depth };

  test.each([1, 3, 6])('stopped after %i of 7 blocks', async (stopAt) => {
    const [whole] = await solveIn(world, options);
    await saveAt(world, options, stopAt);
    const index = readIndex(folder);
    expect(index).toMatchObject({ n: 50, block: stopAt, seconds: 1.5 });
    const answers = await Promise.all(
      world.comms.map(async (comm) => {
        const problem = new Problem(options, new Messages(comm, false));
        loadCheckpoint(problem, folder, index);
        await new Factorization(problem).run(undefined, index.block);
        await solve(problem);
        return { x: [...problem.heap.view(problem.vectors.x, problem.n)], residual: await residual(problem) };
      }),
    );
    for (const { x, residual: verdict } of answers) {
      expect(x).toEqual(whole.x);
      expect(verdict.passed).toBe(true);
    }
  });

  test('a later checkpoint replaces the earlier one, also of the same block', async () => {
    await saveAt(world, options, 2);
    await saveAt(world, options, 4);
    expect(readdirSync(folder).sort()).toEqual(['block-4', 'checkpoint.json']);
    await saveAt(world, options, 4);
    expect(readIndex(folder)).toMatchObject({ block: 4, folder: 'block-4-again' });
    expect(readdirSync(folder).sort()).toEqual(['block-4-again', 'checkpoint.json']);
  });
});

test('what does not fit is refused in words', async () => {
  const world = await worldOf(1);
  try {
    const options: ProblemOptions = { ...DEFAULTS, n: 20, nb: 4 };
    expect(() => readIndex(folder)).toThrow(`ERR_ARG: there is no checkpoint in ${folder}`);
    await saveAt(world, options, 2);
    const index = readIndex(folder);
    const problem = (changed: Partial<ProblemOptions>) => new Problem({ ...options, ...changed }, new Messages(world.comms[0], false));
    expect(() => loadCheckpoint(problem({ n: 21 }), folder, index)).toThrow('has n = 20, and this run has 21');
    expect(() => loadCheckpoint(problem({ seed: 2 }), folder, index)).toThrow('has seed = 1, and this run has 2');
    const file = join(folder, 'block-2', 'rank-0.part');
    const bytes = readFileSync(file);
    bytes[100] ^= 1;
    writeFileSync(file, bytes);
    expect(() => loadCheckpoint(problem({}), folder, index)).toThrow('is damaged: its checksum is another');
    writeFileSync(file, bytes.subarray(0, 1000));
    expect(() => loadCheckpoint(problem({}), folder, index)).toThrow('ends too early');
    rmSync(file);
    expect(() => loadCheckpoint(problem({}), folder, index)).toThrow('cannot be read');
    writeFileSync(join(folder, 'checkpoint.json'), JSON.stringify({ ...index, version: 9 }));
    expect(() => readIndex(folder)).toThrow('is of version 9, not 1');
  } finally {
    await world.teardown();
  }
});
