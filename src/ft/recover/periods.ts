// When the next save of each level is due, in steps: fixed periods, or those that follow from measured costs and times between failures. What
// a rank proposes goes into the next exchange, and the longest proposal counts, so that all ranks agree without clocks.
import { young } from '../plan/hierarchical.ts';
import type { Settings } from './options.ts';

/** Measurements that count: the median of the last ones. */
const KEPT = 5;
/** Two failures in one period are likelier beyond this share of the time between failures. */
const LONGEST = 0.27;

class Median {
  private readonly values: number[] = [];

  add(value: number): void {
    this.values.push(value);
    if (this.values.length > KEPT) this.values.shift();
  }

  get value(): number | undefined {
    const sorted = [...this.values].sort((a, b) => a - b);
    return sorted.length === 0 ? undefined : sorted[Math.floor(sorted.length / 2)];
  }
}

export class Periods {
  private readonly settings: Settings;
  private readonly stepSeconds = new Median();
  private readonly costs: readonly Median[];
  /** Steps between two saves, by level; 0: none by itself. */
  private periods: number[];
  private readonly due: number[];

  constructor(settings: Settings, step: number) {
    this.settings = settings;
    const { everySteps, mtbfSeconds, names } = settings;
    // The first save says what one costs.
    this.periods = names.map((_, level) => everySteps?.[level] ?? (mtbfSeconds === undefined ? 0 : 1));
    this.costs = names.map(() => new Median());
    this.due = this.periods.map((period) => (period === 0 ? Number.POSITIVE_INFINITY : this.after(step, period)));
  }

  private after(step: number, period: number): number {
    return (Math.floor(step / period) + 1) * period;
  }

  addStep(seconds: number): void {
    this.stepSeconds.add(seconds);
  }

  addSave(level: number, seconds: number): void {
    this.costs[level].add(seconds);
  }

  /** The highest level that is due at this step; undefined when none is. */
  dueAt(step: number): number | undefined {
    for (let level = this.due.length - 1; level >= 0; level--) if (step >= this.due[level]) return level;
    return undefined;
  }

  /** What this rank would have. */
  get proposal(): number[] {
    const { mtbfSeconds } = this.settings;
    const step = this.stepSeconds.value;
    return this.periods.map((period, level) => {
      const cost = this.costs[level].value;
      if (mtbfSeconds === undefined || step === undefined || cost === undefined || step <= 0) return period;
      const mtbf = mtbfSeconds[level];
      const seconds = Math.max(cost, Math.min(young(mtbf, cost), LONGEST * mtbf));
      return Math.max(1, Math.round(seconds / step));
    });
  }

  /** A save of this level is made at this step; all ranks have these proposals. One of a level is one of those below it, too. */
  saved(level: number, step: number, proposals: readonly (readonly number[])[]): void {
    const isFixed = this.settings.mtbfSeconds === undefined;
    this.periods = this.periods.map((before, i) => {
      const longest = Math.max(...proposals.map((list) => list[i]));
      return isFixed || Math.abs(longest - before) < 0.1 * before ? before : longest;
    });
    for (let i = 0; i <= level; i++)
      if (this.periods[i] > 0) this.due[i] = isFixed ? this.after(step, this.periods[i]) : step + this.periods[i];
  }
}
