// `multirail hpl` as a job of real processes: the table that HPL prints, both kernels, both ways to wait, JSON, checkpoints, mistakes.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chooseAlgebra } from '../../tools/hpl/blas.ts';
import type { HplReport } from '../../tools/hpl/rank.ts';
import { type BuiltCode, buildCode, startNode } from '../support/helpers.ts';

let code: BuiltCode;
let folder: string;
beforeAll(async () => {
  code = await buildCode([]);
  folder = mkdtempSync(join(tmpdir(), 'multirail-hpl-system-'));
});
afterAll(() => {
  code.dispose();
  rmSync(folder, { recursive: true, force: true });
});

const hpl = (words: readonly string[], env: Record<string, string> = {}) =>
  startNode([code.cli, 'hpl', ...words], { env, timeoutMs: 90_000 }).ended;

/** Lines of results: N, NB, P, Q. */
const rows = (stdout: string): number[][] =>
  [...stdout.matchAll(/^WR\S+ +(\d+) +(\d+) +(\d+) +(\d+) +[\d.]+ +[\d.e+-]+$/gm)].map((match) => match.slice(1, 5).map(Number));

describe('multirail hpl', () => {
  test('two ranks: a row and a verdict for every combination, and the figures as JSON', async () => {
    const file = join(folder, 'report.json');
    const { code: exit, stdout, stderr } = await hpl(['-n', '2', '-N', '100,200', '--nb', '16,32', '--grid', '1x2,2x1', '--json', file]);
    expect({ exit, stderr }).toEqual({ exit: 0, stderr: '' });
    const expected = [100, 200].flatMap((n) =>
      [16, 32].flatMap((nb) => [
        [n, nb, 1, 2],
        [n, nb, 2, 1],
      ]),
    );
    expect(rows(stdout)).toEqual(expected);
    expect(stdout.match(/^\|\|Ax-b\|\|_oo\/\(eps.*PASSED$/gm)).toHaveLength(8);
    expect(stdout).toContain('     8 tests completed and passed residual checks,');
    const report = JSON.parse(readFileSync(file, 'utf8')) as HplReport;
    expect(report.results.map(({ n, nb, p, q }) => [n, nb, p, q])).toEqual(expected);
    for (const { residual, blockMs, n, nb } of report.results) {
      expect(residual.passed).toBe(true);
      expect(residual.scaled).toBeLessThan(1);
      expect(blockMs).toHaveLength(Math.ceil(n / nb));
    }
  });

  test.each(['wasm', 'openblas'])('the kernel %s', async (kernel) => {
    const { code: exit, stdout, stderr } = await hpl(['-n', '2', '-N', '200', '--nb', '32', '--kernel', kernel]);
    if (kernel === 'openblas' && chooseAlgebra('auto').name === 'wasm') {
      expect(exit).toBe(1);
      expect(stderr).toContain('OpenBLAS cannot be used');
      return;
    }
    expect(exit).toBe(0);
    expect(stdout).toContain('- A small system was solved before the first test');
    expect(rows(stdout)).toHaveLength(1);
    expect(stdout).toMatch(kernel === 'wasm' ? /KERNEL : +WebAssembly SIMD \(asked for\)/ : /KERNEL : +.*, 1 thread\) \(asked for\)/);
    expect(stdout).toContain('PASSED');
  });

  test('by promises, over WebSockets, and without the native part', async () => {
    for (const [words, env] of [
      [['--waits', 'promises'], {}],
      [['--mca', 'btl', 'self,ws'], {}],
      [['--mca', 'btl', 'self,tcp'], { MULTIRAIL_NATIVE: '0' }],
    ] as const) {
      const { code: exit, stdout } = await hpl(['-n', '2', '-N', '120', '--nb', '16', '--no-warm-up', ...words], env);
      expect(exit).toBe(0);
      expect(stdout).not.toContain('small system');
      expect(stdout).toContain('PASSED');
      if ('MULTIRAIL_NATIVE' in env) expect(stdout).toMatch(/KERNEL : +WebAssembly SIMD \(there is no native part/);
    }
  });

  test('saved on the way, and resumed from there', async () => {
    const save = join(folder, 'save');
    const words = ['-n', '2', '-N', '200', '--nb', '16', '--checkpoint', save];
    expect((await hpl([...words, '--checkpoint-every', '5'])).code).toBe(0);
    const { code: exit, stdout } = await hpl([...words, '--resume']);
    expect(exit).toBe(0);
    expect(stdout).toContain(`Resumed after block 10 of 13 from ${save}`);
    expect(stdout).toContain('PASSED');
  });

  test.each([
    [['-n', '4', '--grid', '2x3'], '--grid 2x3 is for 6 ranks, and there are 4'],
    [['-N', '0'], 'expected a whole number from 1'],
    [['--resume'], '--resume needs --checkpoint FOLDER'],
    [['--on-rail-lost', 'stop'], '--on-rail-lost stop needs --checkpoint FOLDER'],
    [['--checkpoint', 'x', '-N', '10,20'], '--checkpoint is for one run'],
    [['--pull', 'fast@25%'], 'need a lab: --rails fast,slow'],
    [['--sweep'], 'need a lab: --rails fast,slow'],
    [['--kernel', 'mkl'], "argument 'mkl' is invalid"],
    [['--checkpoint', '/nowhere-at-all', '--resume'], 'there is no checkpoint in /nowhere-at-all'],
  ])('%s is refused', async (words, why) => {
    const { code: exit, stderr } = await hpl([...words]);
    expect(exit).toBe(2);
    expect(stderr).toContain(why);
  });

  test('a matrix whose part does not fit is refused before anything is computed', async () => {
    const { code: exit, stderr } = await hpl(['-N', '40000']);
    expect(exit).not.toBe(0);
    expect(stderr).toMatch(/the part of one rank takes \d+ MiB, and a rank can have 4096: use more ranks or a smaller N/);
  });
});

describe('multirail info', () => {
  test('says what hpl computes with, and why, and what a death means', async () => {
    const { stdout } = await startNode([code.cli, 'info']).ended;
    const { description, reason } = chooseAlgebra('auto');
    expect(stdout).toContain(`Algebra      ${description} (${reason})`);
    const without = await startNode([code.cli, 'info'], { env: { MULTIRAIL_NATIVE: '0' } }).ended;
    expect(stdout).toMatch(/^Failures {5}a process that dies ends its job; with --mca ft on the others go on: processes of one host /m);
    expect(without.stdout).toContain('processes of one host look for each other in /proc every 50 ms, since there is no native part');
    const spares = await startNode([code.cli, 'info'], { env: { MULTIRAIL_MCA_ft_spares: '2' } }).ended;
    expect(spares.stdout).toContain('Failures     the others go on when a process dies (ft), and of its processes 2 stand by: processes');
    expect(without.stdout).toContain(
      'Algebra      WebAssembly SIMD (there is no native part for BLAS: switched off by MULTIRAIL_NATIVE=0)',
    );
    const wrong = await startNode([code.cli, 'info'], { env: { MULTIRAIL_BLAS: 'libnone.so' } }).ended;
    if (chooseAlgebra('auto').name === 'openblas')
      expect(wrong.stdout).toContain('Algebra      WebAssembly SIMD (MULTIRAIL_BLAS=libnone.so: libnone.so');
  });
});
