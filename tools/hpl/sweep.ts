// A sweep: every cell several times, in turn, with its results compared with what the model expects.
import type { MachineInfo } from '../bench/machine.ts';
import { type NamedRail, showRate } from '../lab/rails.ts';
import { blocksAt, type Cell, medianRun, modelMs, type RunTimes } from './experiment.ts';
import type { LabRun } from './lab-runs.ts';
import { gflopsOf } from './table.ts';

export interface CellRuns {
  cell: Cell;
  runs: LabRun[];
}

/** One row of the sweep: the run in the middle of its cell. */
export interface SweepRow {
  n: number;
  series: Cell['series'];
  /** Undefined: never pulled. */
  fraction: number | undefined;
  blocks: number;
  pulledAtBlock: number | undefined;
  seconds: number;
  /** The seconds of all its runs. */
  allSeconds: number[];
  gflops: number;
  /** What the model expects; undefined for the two rows that it is made of. */
  modelSeconds: number | undefined;
  /** (measured - expected) / expected. */
  deviation: number | undefined;
  /** The worst of all its runs. */
  residual: number;
  passed: boolean;
  railsLost: number;
}

export interface SweepReport {
  commandLine: string;
  machine: MachineInfo;
  algebra: string;
  rails: readonly NamedRail[];
  pulledRail: string;
  restoreFraction: number | undefined;
  ranks: number;
  nb: number;
  p: number;
  q: number;
  repeats: number;
  rows: SweepRow[];
}

/** Rows out of runs: in the order of the cells. */
export function sweepRows(cells: readonly CellRuns[], blocksOf: (n: number) => number, restoreFraction?: number): SweepRow[] {
  return cells.map(({ cell, runs }) => {
    const { n, series, fraction } = cell;
    const blocks = blocksOf(n);
    const median = medianRun(runs);
    const timesOf = (wanted: Partial<Cell>): RunTimes | undefined => {
      const found = cells.find(
        (one) =>
          one.cell.n === n && one.cell.fraction === wanted.fraction && (wanted.series === undefined || one.cell.series === wanted.series),
      );
      return found === undefined ? undefined : medianRun(found.runs);
    };
    const never = timesOf({ fraction: undefined });
    const atOnce = timesOf({ fraction: 0, series });
    const isPart = fraction === undefined || fraction === 0;
    const pulledAtBlock = fraction === undefined ? undefined : blocksAt(fraction, blocks);
    const restoredAt = restoreFraction === undefined ? undefined : blocksAt(restoreFraction, blocks);
    const expectedMs =
      isPart || never === undefined || atOnce === undefined ? undefined : modelMs(never, atOnce, pulledAtBlock as number, restoredAt);
    const seconds = median.totalMs / 1000;
    const residuals = runs.map((run) => run.result?.residual.scaled ?? Number.NaN);
    return {
      n,
      series,
      fraction,
      blocks,
      pulledAtBlock,
      seconds,
      allSeconds: runs.map((run) => run.totalMs / 1000),
      gflops: gflopsOf(n, seconds),
      modelSeconds: expectedMs === undefined ? undefined : expectedMs / 1000,
      deviation: expectedMs === undefined ? undefined : (median.totalMs - expectedMs) / expectedMs,
      residual: Math.max(...residuals),
      passed: runs.every((run) => run.result?.residual.passed === true),
      railsLost: median.railsLost,
    };
  });
}

export const percent = (fraction: number | undefined): string =>
  fraction === undefined ? 'never' : `${Math.round(fraction * 1000) / 10} %`;

export function sweepHead(report: Omit<SweepReport, 'rows'>): string[] {
  const rails = report.rails.map(({ name, mbit }) => `${name} ${showRate(mbit)}`).join(', ');
  const restored = report.restoreFraction === undefined ? '' : `, and restored at ${percent(report.restoreFraction)}`;
  return [
    `Linpack on ${report.ranks} ranks, each on a separate node; rails: ${rails}; ${report.pulledRail} pulled at a part of the blocks${restored}.`,
    `NB ${report.nb}, grid ${report.p} x ${report.q}, ${report.algebra}; the median of ${report.repeats} run${report.repeats === 1 ? '' : 's'} each, in turn.`,
    'model: as a run that is never pulled up to that block, and as one that is pulled at once from there on.',
  ];
}

export function sweepTable(rows: readonly SweepRow[]): string[] {
  const lines = ['', '      N  pulled       at   block        Time      Gflops       model    off   residual', '-'.repeat(86)];
  for (const row of rows) {
    const isNever = row.fraction === undefined;
    const model = row.modelSeconds === undefined ? '-' : row.modelSeconds.toFixed(2);
    const off = row.deviation === undefined ? '-' : `${row.deviation >= 0 ? '+' : ''}${(row.deviation * 100).toFixed(1)} %`;
    lines.push(
      [
        String(row.n).padStart(7),
        (isNever ? '-' : row.series).padEnd(8).padStart(10),
        percent(row.fraction).padStart(7),
        (isNever ? '-' : `${row.pulledAtBlock}/${row.blocks}`).padStart(8),
        row.seconds.toFixed(2).padStart(12),
        row.gflops.toFixed(3).padStart(12),
        model.padStart(12),
        // A column is never run into, however far off it is.
        ` ${off}`.padStart(8),
        `${row.residual.toFixed(4)} ${row.passed ? 'PASSED' : 'FAILED'}`.padStart(16),
      ].join(''),
    );
  }
  return lines;
}
