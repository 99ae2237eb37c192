// Plays a job with saves of several levels and failures of as many, as paper 002 simulates them for its table 3: coordinated recovery, where
// everybody goes back, and asynchronous recovery, where k processes repeat what the failed one had done while the others wait. By events, and
// step by step as the paper's figure 7 has it.
import type { Prng } from '../../util/prng.ts';
import { exponential } from './exponential.ts';
import type { Levels } from './pattern.ts';

/** A job, with a period for the saves of each level. Times in seconds, levels as in the pattern. */
export interface MultilevelJob extends Levels {
  /** Time that the job computes when nothing fails and nothing is saved. */
  readonly workSeconds: number;
  readonly restoreSeconds: readonly number[];
  readonly periodSeconds: readonly number[];
}

/** How failures are recovered from. */
export interface Recovery {
  /** Processes that repeat the lost work of one: k of the paper. 0: coordinated recovery. */
  readonly repeaters: number;
  /** Levels whose failures are recovered asynchronously, from the lowest; the others are coordinated. */
  readonly asynchronousLevels: number;
}

/** What one run came to. */
export interface MultilevelRun {
  /** Time beyond the work. */
  overheadSeconds: number;
  /** Failures of each level. */
  failures: number[];
}

/** Seconds by which a multiple of a period may be missed in floating point. */
const EPSILON = 1e-9;

/** Failures of all levels, each exponential in wall time. */
class Failures {
  readonly counts: number[];
  private readonly times: number[];
  private readonly mtbf: readonly number[];
  private readonly prng: Prng;
  /** When the next failure strikes. */
  at = 0;
  private level = 0;

  constructor(mtbf: readonly number[], prng: Prng) {
    this.mtbf = mtbf;
    this.prng = prng;
    this.counts = mtbf.map(() => 0);
    this.times = mtbf.map((mean) => exponential(prng, mean));
    this.look();
  }

  private look(): void {
    this.level = 0;
    for (let i = 1; i < this.times.length; i++) if (this.times[i] < this.times[this.level]) this.level = i;
    this.at = this.times[this.level];
  }

  /** Takes the next failure and says its level. */
  take(): number {
    const level = this.level;
    this.counts[level]++;
    this.times[level] += exponential(this.prng, this.mtbf[level]);
    this.look();
    return level;
  }
}

/** Saves by the work that is done: when each level's next one is due, and where a failure of each level goes back to. */
class Saves {
  private readonly periods: readonly number[];
  readonly due: number[];
  /** Work that the newest save of this level or a higher one has. */
  readonly saved: number[];

  constructor(periods: readonly number[]) {
    this.periods = periods;
    this.due = [...periods];
    this.saved = periods.map(() => 0);
  }

  /** The highest level that is due at `work`, or -1. */
  levelAt(work: number): number {
    let level = this.due.length - 1;
    while (level >= 0 && this.due[level] > work + EPSILON) level--;
    return level;
  }

  get next(): number {
    let next = this.due[0];
    for (let i = 1; i < this.due.length; i++) if (this.due[i] < next) next = this.due[i];
    return next;
  }

  /** A save of this level is one of the lower levels too. */
  take(level: number, work: number): void {
    for (let i = 0; i <= level; i++) this.saved[i] = work;
    this.schedule(work);
  }

  /** All go back to `work`: lower levels' saves are restored from that level's, and saves beyond it are to be made again. */
  goBack(level: number): number {
    const work = this.saved[level];
    for (let i = 0; i < level; i++) if (this.saved[i] > work) this.saved[i] = work;
    this.schedule(work);
    return work;
  }

  private schedule(work: number): void {
    for (let i = 0; i < this.due.length; i++) this.due[i] = (Math.floor(work / this.periods[i] + EPSILON) + 1) * this.periods[i];
  }
}

const isAsynchronous = ({ repeaters, asynchronousLevels }: Recovery, level: number): boolean => repeaters > 0 && level < asynchronousLevels;

/** One run, from event to event: what is computed between two saves is one piece. */
export function runByEvents(job: MultilevelJob, recovery: Recovery, prng: Prng): MultilevelRun {
  const failures = new Failures(job.mtbfSeconds, prng);
  const saves = new Saves(job.periodSeconds);
  let now = 0;
  let work = 0;
  const recover = (): void => {
    // A failure has struck now. One that strikes in the recovery begins a recovery of its own.
    for (;;) {
      const level = failures.take();
      let repeat = 0;
      if (isAsynchronous(recovery, level)) repeat = (work - saves.saved[level]) / recovery.repeaters;
      else work = saves.goBack(level);
      const until = now + job.restoreSeconds[level] + repeat;
      if (failures.at >= until) {
        now = until;
        return;
      }
      now = failures.at;
    }
  };
  while (work < job.workSeconds) {
    const stop = Math.min(saves.next, job.workSeconds);
    const computed = now + (stop - work);
    if (failures.at < computed) {
      work += failures.at - now;
      now = failures.at;
      recover();
      continue;
    }
    now = computed;
    work = stop;
    if (work >= job.workSeconds) break;
    const level = saves.levelAt(work);
    const saved = now + job.costSeconds[level];
    if (failures.at < saved) {
      now = failures.at;
      recover();
      continue;
    }
    now = saved;
    saves.take(level, work);
  }
  return { overheadSeconds: now - job.workSeconds, failures: failures.counts };
}

/**
 * One run in steps of `stepSeconds`, as figure 7 and tables 1 and 2 of the paper say: computed time decides when to save, a failure repeats
 * its step, and one that falls into a recovery is taken at the next step, after that recovery.
 */
export function runBySteps(job: MultilevelJob, recovery: Recovery, stepSeconds: number, prng: Prng): MultilevelRun {
  const failures = new Failures(job.mtbfSeconds, prng);
  const saves = new Saves(job.periodSeconds);
  let now = 0;
  let work = 0;
  while (work < job.workSeconds) {
    const saved = saves.levelAt(work + stepSeconds);
    const duration = stepSeconds + (saved < 0 ? 0 : job.costSeconds[saved]);
    if (failures.at < now + duration) {
      const untilFailure = Math.max(0, failures.at - now);
      const level = failures.take();
      if (isAsynchronous(recovery, level)) {
        const lost = work - saves.saved[level] + Math.min(untilFailure, stepSeconds);
        now += job.restoreSeconds[level] + lost / recovery.repeaters;
      } else {
        work = saves.goBack(level);
        now += job.restoreSeconds[level] + untilFailure;
      }
      continue;
    }
    work += stepSeconds;
    now += duration;
    if (saved >= 0) saves.take(saved, work);
  }
  return { overheadSeconds: now - job.workSeconds, failures: failures.counts };
}
