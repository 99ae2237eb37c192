// The experiment of Shumilin and Leonova (S-MPI): Linpack on a fast and a slow network, of which the fast one fails at some moment of the
// run. Moments are fractions of the blocks that rank 0 has done. The file says what to run, in which order, and what the model expects.
import { MultirailError } from '../../src/errors.ts';
import { type NamedRail, railIndex } from '../lab/rails.ts';

/** What is pulled (or restored) when: a rail, of all nodes or of one, at a fraction of the run. */
export interface Moment {
  rail: number;
  /** Undefined: the whole network. */
  node: number | undefined;
  fraction: number;
}

/** Fractions of a sweep, unless told. */
export const SWEEP_FRACTIONS: readonly number[] = [0, 0.1, 0.25, 0.5, 0.75, 0.9];

function fractionOf(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)%$/.exec(text);
  const value = match === null ? Number.NaN : Number(match[1]) / 100;
  return value >= 0 && value < 1 ? value : undefined;
}

/** `RAIL@25%`, or `RAIL:NODE@25%` for the port of one node. ERR_ARG for anything else. */
export function parseMoment(text: string, rails: readonly NamedRail[], nodes: number): Moment {
  const match = /^([^@:]+)(?::(\d{1,3}))?@(.+)$/.exec(text);
  const fraction = match === null ? undefined : fractionOf(match[3]);
  if (match === null || fraction === undefined)
    throw new MultirailError(
      'ERR_ARG',
      `"${text}" is not a moment: expected RAIL@PERCENT or RAIL:NODE@PERCENT, such as fast@25% or fast:3@25%, below 100%`,
    );
  const node = match[2] === undefined ? undefined : Number(match[2]);
  if (node !== undefined && node >= nodes)
    throw new MultirailError('ERR_ARG', `"${text}": there is no node ${node}; nodes go from 0 to ${nodes - 1}`);
  return { rail: railIndex(rails, match[1]), node, fraction };
}

/** `0%,25%,90%`, also without the signs. ERR_ARG for anything else. */
export function parseFractions(text: string): number[] {
  const fractions = text.split(',').map((word) => {
    const trimmed = word.trim();
    const fraction = fractionOf(trimmed.endsWith('%') ? trimmed : `${trimmed}%`);
    if (fraction === undefined) throw new MultirailError('ERR_ARG', `"${text}": expected percents of the run below 100, such as 0,25,90`);
    return fraction;
  });
  return [...new Set(fractions)].sort((a, b) => a - b);
}

/** How many blocks rank 0 must have done: the first number that is at least that part of all. */
export function blocksAt(fraction: number, blocks: number): number {
  // 0.1 * 30 is a little more than 3.
  return Math.max(0, Math.ceil(fraction * blocks - 1e-9));
}

/** One configuration of a sweep, run several times. */
export interface Cell {
  n: number;
  /** What is pulled: `network` of all nodes, or the `port` of one. */
  series: Series;
  /** Undefined: never. */
  fraction: number | undefined;
}

export const SERIES = ['network', 'port'] as const;
export type Series = (typeof SERIES)[number];

/** One run's times: milliseconds after its start at which rank 0 was done with each block, and the whole. */
export interface RunTimes {
  totalMs: number;
  blockMs: readonly number[];
}

/** All cells of a sweep: a never-pulled one per N, then each series from its earliest moment on. */
export function sweepCells(orders: readonly number[], series: readonly Series[], fractions: readonly number[]): Cell[] {
  return orders.flatMap((n) => [
    { n, series: series[0], fraction: undefined },
    ...series.flatMap((one) => fractions.map((fraction) => ({ n, series: one, fraction }))),
  ]);
}

/** Milliseconds until `blocks` of them were done. */
const until = (run: RunTimes, blocks: number): number => (blocks === 0 ? 0 : run.blockMs[Math.min(blocks, run.blockMs.length) - 1]);

/**
 * What a run is expected to take that is pulled after `pulledAt` blocks: as one that is never pulled up to there, and as one that is pulled
 * at once from there on; and, when it is restored after `restoredAt` blocks, as the first again from there. Milliseconds.
 */
export function modelMs(never: RunTimes, atOnce: RunTimes, pulledAt: number, restoredAt?: number): number {
  const before = until(never, pulledAt);
  if (restoredAt === undefined || restoredAt <= pulledAt) return before + atOnce.totalMs - until(atOnce, pulledAt);
  return before + until(atOnce, restoredAt) - until(atOnce, pulledAt) + never.totalMs - until(never, restoredAt);
}

/** The run in the middle by its whole time; of an even number the slower of the two. */
export function medianRun<T extends RunTimes>(runs: readonly T[]): T {
  return [...runs].sort((a, b) => a.totalMs - b.totalMs)[Math.floor(runs.length / 2)];
}
