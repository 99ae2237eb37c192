// The clock of a real process; the only file of the message path that reads time.
import { performance } from 'node:perf_hooks';

/** Monotonic milliseconds. */
export interface Clock {
  now(): number;
}

export const systemClock: Clock = { now: () => performance.now() };
