// Numbers that papers 000, 001, 002 and 004 print, as far as they are left, and what a command says about them: lines for people, data for
// programs, and what lies outside of its band.

/** What a command has found. */
export interface Finding {
  readonly lines: readonly string[];
  readonly data: unknown;
  /** A sentence for each number that lies outside of its band; none when all is well. */
  readonly problems: readonly string[];
}

export const signed = (value: number, digits = 1): string => `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(digits)}`;
export const percent = (share: number, digits = 2): string => `${(100 * share).toFixed(digits)} %`;
export const totalOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);
export const meanOf = (values: readonly number[]): number => totalOf(values) / values.length;

/** Text in columns: the first one to the left, the others to the right. */
export function columns(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = [];
  for (const row of rows) for (const [i, cell] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, cell.length);
  return rows.map((row) =>
    row
      .map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i])))
      .join('  ')
      .trimEnd(),
  );
}

/** Mean overhead beyond 3600 s, its standard deviation, and failures of each level, of 10,000 simulated runs. */
export interface Cell002 {
  readonly mean: number;
  readonly deviation: number;
  readonly failures: readonly [number, number];
}

const cell = (mean: number, deviation: number, first: number, second: number): Cell002 => ({ mean, deviation, failures: [first, second] });

/** Inputs of table 3 of paper 002, which counts its tables from 1; `multirail ft table 002` is this one. */
export const INPUT_002 = { workSeconds: 3600, costSeconds: [1, 6], restoreSeconds: [0.5, 4], stepSeconds: 0.5, runs: 10_000 } as const;

/** Its rows "IM"; `measured`: means of the rows "PP", 10 runs of real processes each. The fourth prints 1800 for the second level: its text says T/3, which is 1200. */
export const TABLE_002 = [
  {
    mtbfSeconds: [1800, 36_000],
    workSeconds: 657.3,
    count: 10.95,
    coordinated: cell(187, 130, 2.1, 0.1),
    two: cell(142, 72, 2.1, 0.1),
    five: cell(113, 30, 2.1, 0.1),
    measured: { coordinated: 225, two: 119, five: 106 },
  },
  {
    mtbfSeconds: [720, 3600],
    workSeconds: 207.8,
    count: 5.48,
    coordinated: cell(432, 154, 5.6, 1.1),
    two: cell(331, 86, 5.5, 1.1),
    five: cell(271, 44, 5.4, 1.1),
    measured: { coordinated: 438, two: 328, five: 302 },
  },
  {
    mtbfSeconds: [360, 1800],
    workSeconds: 147.0,
    count: 5.48,
    coordinated: cell(638, 164, 11.8, 2.4),
    two: cell(488, 97, 11.4, 2.3),
    five: cell(400, 53, 11.1, 2.2),
    measured: { coordinated: 630, two: 545, five: 487 },
  },
  {
    mtbfSeconds: [240, 1200],
    workSeconds: 120.0,
    count: 5.48,
    coordinated: cell(812, 175, 18.5, 3.7),
    two: cell(626, 107, 17.6, 3.5),
    five: cell(513, 60, 17.1, 3.4),
    measured: { coordinated: 794, two: 664, five: 603 },
  },
  {
    mtbfSeconds: [180, 900],
    workSeconds: 103.9,
    count: 5.48,
    coordinated: cell(955, 184, 25.3, 5.1),
    two: cell(744, 116, 24.2, 4.9),
    five: cell(604, 65, 23.3, 4.7),
    measured: { coordinated: 938, two: 762, five: 715 },
  },
] as const;

/** Figure 2 of paper 004: the least measured cost, and at which period. */
export const FIGURE_004 = [
  { mtbfSeconds: 120, periodSeconds: 9.2, overhead: 0.099 },
  { mtbfSeconds: 240, periodSeconds: 14.6, overhead: 0.071 },
] as const;

/**
 * The parameters that `figure 004` uses. The paper's own (its table 2) are lost; these agree with what is left of its text: 4 groups, C = 0.82 s
 * for all of them, lambda = 0.98, rho between 1 and 2.
 */
export const MODEL_004 = { groups: 4, costSeconds: 0.205, restoreSeconds: 3.5, alpha: 0.7, rho: 1.5, lambda: 0.98, beta: 0 } as const;

/** Table 1 of paper 001, in seconds: a matrix product of 8192² on 8 processes. */
export const TABLE_001 = {
  oneInstance: 329.57,
  twoInstances: 373.16,
  detection: 374.19,
  /** Relaunched after a fault at the beginning, in the middle, at the end. */
  relaunched: [745.06, 748.82, 747.62],
  recovery: [
    { intervalSeconds: 60, saves: 6, noFault: 440.76, faults: { beginning: 2066.23, middle: 1000.12, end: 477.35 } },
    { intervalSeconds: 90, saves: 4, noFault: 418.91, faults: { beginning: 1569.85, middle: 822.93, end: 459.63 } },
    // This row is lost in the text that is at hand.
    { intervalSeconds: 120, saves: 3, noFault: undefined, faults: undefined },
  ],
} as const;
