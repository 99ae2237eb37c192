// The report of a run in HPL's own form, so that programs that read HPL's output can read it.
import { LEAF_COLUMNS } from './panel.ts';
import type { BroadcastName, SwapName } from './problem.ts';
import { EPSILON, RESIDUAL_MAX, type Residual } from './solution.ts';

const RULE = '='.repeat(80);
const LINE = '-'.repeat(80);

/** One run: what was solved, how, and what came of it. */
export interface HplResult {
  n: number;
  nb: number;
  p: number;
  q: number;
  depth: 0 | 1;
  broadcast: BroadcastName;
  swap: SwapName;
  seed: number;
  /** Time of factorisation and back substitution at the slowest rank. */
  seconds: number;
  gflops: number;
  residual: Residual;
  /** Milliseconds after the start at which rank 0 was done with each block of the factorisation. */
  blockMs: number[];
  /** What carried the O(N^3). */
  algebra: string;
  /** The block at which a resumed run began; 0 for a whole one. */
  resumedAt: number;
}

/** Operations of the factorisation and both substitutions, as HPL counts them, per second, in 10^9. */
export function gflopsOf(n: number, seconds: number): number {
  return (n / 1e9) * (n / seconds) * ((2 / 3) * n + 3 / 2);
}

/** HPL's code of a variant: time of all, row-major grid, depth, broadcast, recursive panel (right-looking, halves), its leaf. */
export function variantCode(result: Pick<HplResult, 'depth' | 'broadcast'>): string {
  return `WR${result.depth}${result.broadcast === 'ring' ? 0 : 1}R2R${LEAF_COLUMNS}`;
}

/** As C's %.*e: two digits of exponent at least. */
export function exponential(value: number, digits: number): string {
  if (!Number.isFinite(value)) return String(value);
  const [mantissa, exponent] = value.toExponential(digits).split('e');
  return `${mantissa}e${exponent[0]}${exponent.slice(1).padStart(2, '0')}`;
}

export interface HplSetup {
  orders: readonly number[];
  blocks: readonly number[];
  grids: readonly { p: number; q: number }[];
  depth: 0 | 1;
  broadcast: BroadcastName;
  swap: SwapName;
  /** Kernels, and why these. */
  algebra: string;
  /** How messages are waited for, where that is known. */
  waits?: string;
  /** A small system is solved before the first. */
  warmUp: boolean;
}

export function headLines(setup: HplSetup): string[] {
  const list = (name: string, values: readonly number[]) =>
    `${name.padEnd(6)} : ${values.map((value) => String(value).padStart(7)).join(' ')}`;
  return [
    RULE,
    'multirail hpl: High-Performance Linpack, a dense system of equations by LU factorisation',
    RULE,
    '',
    'T/V    : Wall time / encoded variant.',
    'N      : The order of the coefficient matrix A.',
    'NB     : The partitioning blocking factor.',
    'P, Q   : The number of process rows and columns.',
    'Time   : Time in seconds to solve the linear system.',
    'Gflops : Rate of execution for solving the linear system.',
    '',
    'The following parameter values will be used:',
    '',
    list('N', setup.orders),
    list('NB', setup.blocks),
    list(
      'P',
      setup.grids.map(({ p }) => p),
    ),
    list(
      'Q',
      setup.grids.map(({ q }) => q),
    ),
    `PFACT  :   Right (leaves of ${LEAF_COLUMNS} columns)`,
    'RFACT  :   Right (halves)',
    `BCAST  :   ${setup.broadcast === 'ring' ? '1ring' : '1ringM'}`,
    `DEPTH  :   ${setup.depth}`,
    `SWAP   :   ${setup.swap}`,
    `KERNEL :   ${setup.algebra}`,
    ...(setup.waits === undefined ? [] : [`WAITS  :   ${setup.waits}`]),
    '',
    LINE,
    '',
    '- The matrix A is randomly generated for each test.',
    ...(setup.warmUp ? ['- A small system was solved before the first test, so that the code is compiled.'] : []),
    '- The following scaled residual check will be computed:',
    '      ||Ax-b||_oo / ( eps * ( || x ||_oo * || A ||_oo + || b ||_oo ) * N )',
    `- The relative machine precision (eps) is taken to be               ${exponential(EPSILON, 6)}`,
    `- Computational tests pass if scaled residuals are less than                ${RESIDUAL_MAX.toFixed(1)}`,
    '',
  ];
}

export function tableHead(): string[] {
  return [RULE, 'T/V                N    NB     P     Q               Time                 Gflops', LINE];
}

export function resultLine(result: HplResult): string {
  const { n, nb, p, q, seconds, gflops } = result;
  return `${variantCode(result)}${String(n).padStart(12)} ${String(nb).padStart(5)} ${String(p).padStart(5)} ${String(q).padStart(5)} ${seconds.toFixed(2).padStart(18)} ${exponential(gflops, 3).padStart(22)}`;
}

export function residualLine({ scaled, passed }: Residual): string {
  return `||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)= ${exponential(scaled, 7).padStart(15)} ...... ${passed ? 'PASSED' : 'FAILED'}`;
}

export function resultLines(result: HplResult): string[] {
  const lines = [...tableHead(), resultLine(result), LINE, residualLine(result.residual)];
  if (!result.residual.passed) {
    const { normR, normA, normX, normB } = result.residual;
    const norm = (name: string, value: number) => `${name.padEnd(49, ' .')} = ${exponential(value, 6)}`;
    lines.push(norm('||Ax-b||_oo ', normR), norm('||A||_oo ', normA), norm('||x||_oo ', normX), norm('||b||_oo ', normB));
  }
  return lines;
}

export function endLines(results: readonly HplResult[]): string[] {
  const passed = results.filter(({ residual }) => residual.passed).length;
  const count = (value: number) => String(value).padStart(6);
  return [
    RULE,
    '',
    `Finished ${count(results.length)} tests with the following results:`,
    `         ${count(passed)} tests completed and passed residual checks,`,
    `         ${count(results.length - passed)} tests completed and failed residual checks,`,
    `         ${count(0)} tests skipped because of illegal input values.`,
    LINE,
    '',
    'End of Tests.',
    RULE,
  ];
}
