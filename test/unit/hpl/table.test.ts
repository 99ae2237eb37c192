// The report in HPL's form, byte for byte where others parse it, and the progress of a long run.
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { operationsUntil, Progress } from '../../../tools/hpl/progress.ts';
import { endLines, exponential, gflopsOf, type HplResult, resultLine, resultLines, variantCode } from '../../../tools/hpl/table.ts';

const RESULT: HplResult = {
  n: 4000,
  nb: 128,
  p: 1,
  q: 2,
  depth: 1,
  broadcast: 'ring-modified',
  swap: 'mix',
  seed: 1,
  seconds: 1.87,
  gflops: 22.9,
  residual: { scaled: 0.004_321_5, passed: true, normA: 1000, normB: 0.5, normX: 2, normR: 1e-12 },
  blockMs: [],
  algebra: 'WebAssembly SIMD',
  resumedAt: 0,
};

test("a result stands in HPL's columns", () => {
  expect(resultLine(RESULT)).toBe('WR11R2R8        4000   128     1     2               1.87              2.290e+01');
  expect(resultLines(RESULT)).toEqual([
    '================================================================================',
    'T/V                N    NB     P     Q               Time                 Gflops',
    '--------------------------------------------------------------------------------',
    'WR11R2R8        4000   128     1     2               1.87              2.290e+01',
    '--------------------------------------------------------------------------------',
    '||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   4.3215000e-03 ...... PASSED',
  ]);
});

test('a failure says so, with the norms, and is counted', () => {
  const failed = { ...RESULT, residual: { ...RESULT.residual, scaled: Number.NaN, passed: false } };
  const text = resultLines(failed).join('\n');
  expect(text).toContain('N)=             NaN ...... FAILED');
  expect(text).toContain('= 1.000000e+03');
  expect(endLines([RESULT, failed]).join('\n')).toContain('     1 tests completed and failed residual checks,');
});

test('rates and numbers', () => {
  // HPL: (2/3 N^3 + 3/2 N^2) / t.
  expect(gflopsOf(1000, 1)).toBeCloseTo(0.668_166_7, 6);
  expect(exponential(0, 3)).toBe('0.000e+00');
  expect(exponential(1.5e-300, 2)).toBe('1.50e-300');
  expect(variantCode({ depth: 0, broadcast: 'ring' })).toBe('WR00R2R8');
  expect(operationsUntil(100, 100)).toBeCloseTo((2 / 3) * 1e6, 6);
  expect(operationsUntil(100, 0)).toBe(0);
});

test('progress: a line now and then, and on a terminal one that is drawn anew and taken away', () => {
  let nowMs = 0;
  const watch = (isTerminal: boolean) => {
    const out = new PassThrough();
    const progress = new Progress(out, isTerminal, () => nowMs);
    nowMs = 0;
    progress.start();
    for (const [ms, columns] of [
      [100, 10],
      [6000, 50],
      [6100, 60],
    ]) {
      nowMs = ms;
      progress.block(100, columns);
    }
    progress.end();
    return String(out.read() ?? '');
  };
  expect(watch(false)).toBe('N=100:  87 % in 6.0 s, 0.00 Gflop/s, 1 s to go\n');
  const drawn = watch(true);
  expect(drawn.split('\r\x1b[K█')).toHaveLength(2);
  expect(drawn.endsWith('\r\x1b[K')).toBe(true);
});
