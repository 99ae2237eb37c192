// The experiment on paper: moments, cells, the model, medians, the table and the figure.
import { expect, test } from 'vitest';
import {
  blocksAt,
  medianRun,
  modelMs,
  parseFractions,
  parseMoment,
  type RunTimes,
  SWEEP_FRACTIONS,
  sweepCells,
} from '../../../tools/hpl/experiment.ts';
import type { LabRun } from '../../../tools/hpl/lab-runs.ts';
import { type CellRuns, type SweepReport, sweepHead, sweepRows, sweepTable } from '../../../tools/hpl/sweep.ts';
import { sweepPlot } from '../../../tools/hpl/sweep-plot.ts';
import { parseRails } from '../../../tools/lab/rails.ts';

const RAILS = parseRails('fast,slow');

test('moments', () => {
  expect(parseMoment('fast@25%', RAILS, 8)).toEqual({ rail: 0, node: undefined, fraction: 0.25 });
  expect(parseMoment('slow:3@7.5%', RAILS, 8)).toEqual({ rail: 1, node: 3, fraction: 0.075 });
  expect(() => parseMoment('fast@100%', RAILS, 8)).toThrow('ERR_ARG: "fast@100%" is not a moment');
  expect(() => parseMoment('fast@2s', RAILS, 8)).toThrow('ERR_ARG');
  expect(() => parseMoment('quick@25%', RAILS, 8)).toThrow('ERR_ARG: there is no rail "quick"');
  expect(() => parseMoment('fast:8@25%', RAILS, 8)).toThrow('there is no node 8; nodes go from 0 to 7');
  expect(parseFractions('75,0%,25,25')).toEqual([0, 0.25, 0.75]);
  expect(() => parseFractions('10,x')).toThrow('ERR_ARG');
});

test('blocks of a fraction: the first number that is at least that part', () => {
  expect([0, 0.1, 0.25, 0.5, 0.99].map((fraction) => blocksAt(fraction, 30))).toEqual([0, 3, 8, 15, 30]);
  for (let blocks = 1; blocks < 200; blocks++) expect(blocksAt(0.1, blocks)).toBe(Math.ceil(blocks / 10));
});

/** Blocks that take 10 ms each, and 5 at the end. */
const NEVER: RunTimes = { totalMs: 45, blockMs: [10, 20, 30, 40] };
/** 25 ms each, and 7. */
const AT_ONCE: RunTimes = { totalMs: 107, blockMs: [25, 50, 75, 100] };

test('the model: as the one up to the pull, as the other from there on', () => {
  expect(modelMs(NEVER, AT_ONCE, 0)).toBe(107);
  expect(modelMs(NEVER, AT_ONCE, 1)).toBe(10 + 82);
  expect(modelMs(NEVER, AT_ONCE, 3)).toBe(30 + 32);
  expect(modelMs(NEVER, AT_ONCE, 4)).toBe(40 + 7);
  // Restored: as the first again.
  expect(modelMs(NEVER, AT_ONCE, 1, 3)).toBe(10 + 50 + 15);
  expect(modelMs(NEVER, AT_ONCE, 0, 4)).toBe(100 + 5);
  expect(modelMs(NEVER, AT_ONCE, 2, 2)).toBe(20 + 57);
});

test('the run in the middle', () => {
  const runs = [5, 1, 3].map((totalMs) => ({ totalMs, blockMs: [] }));
  expect(medianRun(runs).totalMs).toBe(3);
  expect(medianRun(runs.slice(0, 2)).totalMs).toBe(5);
  expect(medianRun(runs.slice(0, 1)).totalMs).toBe(5);
});

test('cells: each order once never pulled, and every moment of every series', () => {
  const cells = sweepCells([100, 200], ['network', 'port'], SWEEP_FRACTIONS);
  expect(cells).toHaveLength(2 * (1 + 2 * 6));
  expect(cells[0]).toEqual({ n: 100, series: 'network', fraction: undefined });
  expect(cells[7]).toEqual({ n: 100, series: 'port', fraction: 0 });
});

function runOf(times: RunTimes, passed = true): LabRun {
  const residual = { scaled: passed ? 0.005 : 17, passed, normA: 1, normB: 1, normX: 1, normR: 1 };
  return { ...times, result: { residual } as LabRun['result'], stopped: undefined, done: [], losses: [], railsLost: 1, railsRestored: 0 };
}

function cellsOf(): CellRuns[] {
  const slower = { totalMs: 100, blockMs: [10, 35, 60, 90] };
  return [
    {
      cell: { n: 1000, series: 'network', fraction: undefined },
      runs: [runOf(NEVER), runOf({ ...NEVER, totalMs: 44 }), runOf({ ...NEVER, totalMs: 99 })],
    },
    { cell: { n: 1000, series: 'network', fraction: 0 }, runs: [runOf(AT_ONCE)] },
    { cell: { n: 1000, series: 'network', fraction: 0.25 }, runs: [runOf(slower)] },
  ];
}

test('rows: medians, the model beside what it is not made of, the worst residual', () => {
  const [never, atOnce, quarter] = sweepRows(cellsOf(), () => 4);
  expect(never).toMatchObject({ seconds: 0.045, allSeconds: [0.045, 0.044, 0.099], modelSeconds: undefined, passed: true });
  expect(atOnce).toMatchObject({ seconds: 0.107, pulledAtBlock: 0, modelSeconds: undefined });
  expect(quarter).toMatchObject({ seconds: 0.1, pulledAtBlock: 1, modelSeconds: 0.092 });
  expect(quarter.deviation).toBeCloseTo(8 / 92, 9);
  const failed = cellsOf();
  failed[2].runs.push(runOf(AT_ONCE, false));
  expect(sweepRows(failed, () => 4)[2]).toMatchObject({ residual: 17, passed: false });
});

const HEAD: Omit<SweepReport, 'rows'> = {
  commandLine: 'multirail hpl --sweep',
  machine: { cpu: 'a <processor>', cpus: 2, platform: 'linux x64', kernel: '6', node: 'v20', load: 0, date: '2026-11-22T00:00:00Z' },
  algebra: 'WebAssembly SIMD',
  rails: RAILS,
  pulledRail: 'fast',
  restoreFraction: undefined,
  ranks: 8,
  nb: 64,
  p: 2,
  q: 4,
  repeats: 3,
};

test('the table', () => {
  const lines = sweepTable(sweepRows(cellsOf(), () => 4));
  expect(lines.slice(3)).toEqual([
    '   1000  -         never       -        0.04      14.848           -       -   0.0050 PASSED',
    '   1000  network     0 %     0/4        0.11       6.245           -       -   0.0050 PASSED',
    '   1000  network    25 %     1/4        0.10       6.682        0.09  +8.7 %   0.0050 PASSED',
  ]);
  expect(sweepHead(HEAD)[0]).toContain('rails: fast 10 Gbit/s, slow 1 Gbit/s; fast pulled at a part of the blocks.');
});

test('the figure shows every point, the model and the command, and is sound XML', async () => {
  const svg = await sweepPlot({ ...HEAD, rows: sweepRows(cellsOf(), () => 4) });
  expect(svg).toContain('N = 1000: run time (s)');
  expect(svg).toContain('N = 1000: Gflop/s');
  // Two points in each of two panels, and one in the legend.
  expect(svg.match(/<circle /g)).toHaveLength(5);
  expect(svg).toContain('multirail hpl --sweep');
  expect(svg).toContain('a &#60;processor&#62;');
  const opened = [...svg.matchAll(/<([a-z]+)(?=[\s>])[^>]*?(\/?)>|<\/([a-z]+)>/g)];
  const stack: string[] = [];
  for (const [, open, selfClosing, close] of opened) {
    if (open !== undefined && selfClosing !== '/') stack.push(open);
    if (close !== undefined) expect(stack.pop()).toBe(close);
  }
  expect(stack).toEqual([]);
});
