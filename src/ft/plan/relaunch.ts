// What a fault costs a pair of replicas that goes back along a chain of saves, any of which may hold the fault: the model behind table 1 of
// paper 001 (SEDAR, Montezanti et al.). The newest save is tried first, then the one before it, and so on; without any, the run begins again.

/** A run with saves at even intervals. Times in seconds. */
export interface ChainRun {
  /** What the run with saves and without a fault takes. */
  readonly totalSeconds: number;
  /** Between the end of one save and the beginning of the next. */
  readonly intervalSeconds: number;
  /** What one save takes. */
  readonly saveSeconds: number;
  readonly saves: number;
}

/** What one save took: the difference to the run that only detects, shared among the saves. */
export const saveSecondsOf = (withSaves: number, detectionOnly: number, saves: number): number => (withSaves - detectionOnly) / saves;

/** The saves that are restored until one without the fault is found, newest first; 0 is a run from the beginning. */
export function triesOf(goodSave: number, { saves }: Pick<ChainRun, 'saves'>): number[] {
  return Array.from({ length: saves - goodSave + 1 }, (_, i) => saves - i);
}

/** Time of a run whose fault is found at its very end, without what restarts take; `goodSave` is the newest save that has not the fault. */
export function faultyRunSeconds(goodSave: number, run: ChainRun): number {
  const repeats = triesOf(goodSave, run).map((save) => run.totalSeconds - save * (run.intervalSeconds + run.saveSeconds));
  return run.totalSeconds + repeats.reduce((sum, seconds) => sum + seconds, 0);
}
