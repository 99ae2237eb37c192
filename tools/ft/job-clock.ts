// The clock of a job of `multirail ft campaign 002`. On a shared machine the same step takes half as long again in some seconds, which is more than a
// failure costs. So the time that a job takes is counted in seconds of the undisturbed job: the clock runs as fast as the processors do, by what they
// need for a step. Times of jobs are compared by it.

/** Steps by which the speed of a rank is measured, and the first ones of a process, whose code is cold. */
const PACE_STEPS = 20;
const COLD_STEPS = 20;

/** Processor time of the steps of one process. */
export class Pace {
  private coldLeft = COLD_STEPS;
  private seconds = 0;
  private steps = 0;

  /** Counts one step. Returns the mean of the last ones, each time there are enough of them. */
  add(seconds: number): number | undefined {
    if (this.coldLeft > 0) {
      this.coldLeft--;
      return undefined;
    }
    this.seconds += seconds;
    this.steps++;
    if (this.steps < PACE_STEPS) return undefined;
    const mean = this.seconds / this.steps;
    this.seconds = 0;
    this.steps = 0;
    return mean;
  }
}

export class JobClock {
  private readonly stepSeconds: number | undefined;
  private readonly paces = new Map<number, number>();
  private seconds = 0;
  private atMs: number;

  /** `stepSeconds`: in the undisturbed job; undefined where that was too short to tell, and the clock is that on the wall. */
  constructor(stepSeconds: number | undefined, atMs: number) {
    this.stepSeconds = stepSeconds;
    this.atMs = atMs;
  }

  /** Seconds of the undisturbed job in a second, by what the ranks have told last. */
  private get rate(): number {
    const { paces, stepSeconds } = this;
    if (paces.size === 0 || stepSeconds === undefined) return 1;
    let sum = 0;
    for (const pace of paces.values()) sum += pace;
    return (stepSeconds * paces.size) / sum;
  }

  /** A step of that rank takes so much processor time now. */
  pace(rank: number, stepSeconds: number, atMs: number): void {
    this.seconds = this.secondsAt(atMs);
    this.atMs = Math.max(this.atMs, atMs);
    this.paces.set(rank, stepSeconds);
  }

  /** Not before what was told last. */
  secondsAt(atMs: number): number {
    return this.seconds + (this.rate * Math.max(0, atMs - this.atMs)) / 1000;
  }
}
