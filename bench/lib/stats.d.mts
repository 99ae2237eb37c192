// Types of stats.mjs, for the tests.
export interface Interval {
  low: number;
  high: number;
}
export function random(seed: number): () => number;
export function shuffled<T>(list: readonly T[], next: () => number): T[];
export function median(values: readonly number[]): number;
export function bootstrapMedian(values: readonly number[], options?: { seed?: number; resamples?: number; confidence?: number }): Interval;
export type CoreClass = 'smt' | 'near' | 'far' | 'none';
export function coreClass(probeNs: number): CoreClass;
export const FOREIGN_MAX: number;
export const ROUNDS_MIN: number;
export interface RunRecord {
  session: string;
  round: number;
  contender: string;
  attempt: number;
  ok: boolean;
  foreign: number;
  beforeNs: number;
  afterNs: number;
  /** false: the place of the CPUs does not decide what is measured. */
  placed?: boolean;
  cells: { metric: string; size: number; value: number }[];
}
export type Rejection = 'failed' | 'foreign' | 'moved' | 'unplaced';
export function rejection(run: RunRecord, foreignMax?: number): Rejection | undefined;
export interface AcceptedRun extends RunRecord {
  coreClass: CoreClass | 'any';
}
export function acceptedRuns(runs: readonly RunRecord[], foreignMax?: number): AcceptedRun[];
export function pairedRatios(
  runs: readonly AcceptedRun[],
  pair: { subject: string; reference: string; metric: string; size: number },
): Map<CoreClass | 'any', number[]>;
export type Verdict = 'met' | 'missed' | 'not enough rounds';
export interface Judged extends Interval {
  verdict: Verdict;
  rounds: number;
  ratio: number;
}
export function judge(ratios: readonly number[], target: { atMost?: number; atLeast?: number }, roundsMin?: number): Judged;
