// When the next save of each level is due, in steps: fixed periods, or the pattern of paper 002 from measured costs and times between failures.
// What a rank has measured goes into the exchange of each save, and the dearest counts, so that all ranks plan the same without clocks.
import { ETA, hierarchicalOptimum } from '../plan/hierarchical.ts';
import { wholePattern } from '../plan/pattern.ts';
import type { Settings } from './options.ts';

/** Measurements that count: the median of the last ones. */
const KEPT = 5;
/** Changes below this share are not made. */
const CHANGE_MIN = 0.1;
/** From so many failures of the job on, the time between them is known well enough to plan by. */
const FAILURES_MIN = 3;

class Median {
  private readonly values: number[] = [];

  add(value: number): void {
    this.values.push(value);
    if (this.values.length > KEPT) this.values.shift();
  }

  /** NaN: nothing was measured. */
  get value(): number {
    const sorted = [...this.values].sort((a, b) => a - b);
    return sorted.length === 0 ? Number.NaN : sorted[Math.floor(sorted.length / 2)];
  }
}

/** What all members know alike when a run of the program begins. */
export interface Known {
  /** Periods by which they have saved so far, in steps; undefined at the start of the job. */
  readonly periods: readonly number[] | undefined;
  /** Failures of the job so far, and how long it has run. */
  readonly failures: number;
  readonly elapsedSeconds: number;
}

/** When saves are due, as ranks tell each other; -1: never by itself. */
export interface PlanState {
  readonly periods: readonly number[];
  readonly due: readonly number[];
}

/** The dearest of what ranks have measured, NaN where none has. */
function dearest(values: readonly number[]): number {
  const known = values.filter((value) => !Number.isNaN(value));
  return known.length === 0 ? Number.NaN : Math.max(...known);
}

export class Periods {
  /** So many groups save one after the other; 0: all save together. */
  groups = 0;
  private readonly settings: Settings;
  private readonly stepSeconds = new Median();
  /** What a save keeps the program from: by level. */
  private readonly costs: readonly Median[];
  /** Until it is committed: by level. */
  private readonly durations: readonly Median[];
  /** Time between failures of each level; undefined: nothing is planned. */
  private mtbfSeconds: readonly number[] | undefined;
  /** Steps between two saves, by level; 0: none by itself. */
  private periods: number[];
  private due: number[];

  constructor(settings: Settings) {
    this.settings = settings;
    const { everySteps, mtbfSeconds, names } = settings;
    this.mtbfSeconds = mtbfSeconds;
    this.costs = names.map(() => new Median());
    this.durations = names.map(() => new Median());
    // The first save says what one costs.
    this.periods = names.map((_, level) => everySteps?.[level] ?? (mtbfSeconds === undefined ? 0 : 1));
    this.due = this.dueAfter(0);
  }

  /** Steps between two saves of each level, as they are now; 0: none by itself. */
  get current(): readonly number[] {
    return this.periods;
  }

  get state(): PlanState {
    return { periods: [...this.periods], due: this.due.map((step) => (Number.isFinite(step) ? step : -1)) };
  }

  /** That of another rank, or of before. */
  set state({ periods, due }: PlanState) {
    this.periods = [...periods];
    this.due = due.map((step) => (step < 0 ? Number.POSITIVE_INFINITY : step));
  }

  /** How many numbers ranks tell each other for so many levels. */
  static width(levels: number): number {
    return 1 + 2 * levels;
  }

  /** A run of the program begins in this step, with what all know alike. */
  begin(step: number, { periods, failures, elapsedSeconds }: Known): void {
    const { everySteps, mtbfSeconds, isAsynchronous } = this.settings;
    if (periods !== undefined && everySteps === undefined) this.periods = [...periods];
    if (everySteps === undefined && mtbfSeconds === undefined && !isAsynchronous && failures >= FAILURES_MIN) {
      // Only memory: how often more than that is lost is not known.
      this.mtbfSeconds = [elapsedSeconds / failures];
      this.periods[0] ||= 1;
    }
    this.due = this.dueAfter(step);
  }

  private dueAfter(step: number): number[] {
    return this.periods.map((period) => this.next(step, period));
  }

  private next(step: number, period: number): number {
    if (period === 0) return Number.POSITIVE_INFINITY;
    return this.settings.everySteps === undefined ? step + period : (Math.floor(step / period) + 1) * period;
  }

  addStep(seconds: number): void {
    this.stepSeconds.add(seconds);
  }

  /** What a save has kept the program from, and how long it took until it was committed. */
  addSave(level: number, costSeconds: number, durationSeconds: number): void {
    this.costs[level].add(costSeconds);
    this.durations[level].add(durationSeconds);
  }

  /** The highest level that is due at this step; undefined when none is. */
  dueAt(step: number): number | undefined {
    for (let level = this.due.length - 1; level >= 0; level--) if (step >= this.due[level]) return level;
    return undefined;
  }

  /** What this rank has measured: of a step, and of a save of each level. */
  get measured(): number[] {
    return [this.stepSeconds.value, ...this.costs.flatMap((cost, level) => [cost.value, this.durations[level].value])];
  }

  /** A save of this level is made at this step; all ranks have these measurements. One of a level is one of those below it, too. */
  saved(level: number, step: number, measured: readonly (readonly number[])[]): void {
    const planned = this.planned(measured);
    if (planned?.some((period, i) => Math.abs(period - this.periods[i]) >= CHANGE_MIN * this.periods[i])) this.periods = planned;
    for (let i = 0; i <= level; i++) this.due[i] = this.next(step, this.periods[i]);
  }

  /** The model of paper 004, with what was measured of one group's save: what it keeps the program from, and what it takes. */
  private plannedForGroups(
    mtbfSeconds: number,
    step: number,
    { cost, duration }: { readonly cost: number; readonly duration: number },
  ): number {
    const costSeconds = Math.max(cost, duration);
    const alpha = 1 - cost / costSeconds;
    const model = { mtbfSeconds, groups: this.groups, costSeconds, restoreSeconds: 0, alpha, rho: 1, lambda: 1, beta: 0 };
    // Where saves take longer than failures leave time for, they follow each other.
    const seconds = hierarchicalOptimum(model)?.periodSeconds ?? this.groups * costSeconds;
    return Math.max(1, Math.round(seconds / step));
  }

  /**
   * Paper 002's pattern in whole numbers, never longer than 0.27 of the time between failures, and never shorter than a save takes. A level of
   * which nothing was measured yet keeps its period.
   */
  private planned(measured: readonly (readonly number[])[]): number[] | undefined {
    const { mtbfSeconds } = this;
    if (mtbfSeconds === undefined) return undefined;
    const of = (place: number): number => dearest(measured.map((list) => list[place]));
    const step = of(0);
    const levels = mtbfSeconds.map((_, level) => ({ cost: of(1 + 2 * level), duration: of(2 + 2 * level) }));
    const known = levels.findIndex(({ cost }) => Number.isNaN(cost) || cost <= 0);
    const count = known < 0 ? levels.length : known;
    if (!(step > 0) || count === 0) return undefined;
    if (this.groups > 0) return [this.plannedForGroups(mtbfSeconds[0], step, levels[0])];
    // The paper has them dearer from level to level; what was measured need not be.
    const costSeconds = levels.slice(0, count).map((_, i) => Math.max(...levels.slice(0, i + 1).map(({ cost }) => cost)));
    const { counts, periodSeconds } = wholePattern({ mtbfSeconds: mtbfSeconds.slice(0, count), costSeconds });
    const shortest = Math.max(levels[0].duration, Math.min(periodSeconds[0], ETA * mtbfSeconds[0]));
    const steps = Math.max(1, Math.round(shortest / step));
    return this.periods.map((before, level) => {
      if (level === 0) return steps;
      if (level >= count) return before;
      // As many of the level below as the pattern has, so that one save is both.
      const ratio = counts[0] / counts[level];
      const longest = Math.max(1, Math.floor((ETA * mtbfSeconds[level]) / (steps * step)));
      return steps * Math.min(Math.max(ratio, Math.ceil(levels[level].duration / (steps * step))), longest);
    });
  }
}
