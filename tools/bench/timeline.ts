// What happened when in a run: bytes per rail over time, and the phases between pulls and restores with their rate and their worst gap
// between two deliveries. Moments are milliseconds after the start of the run.
import type { RailAction } from './rail-actions.ts';
import { pulledAt } from './rail-actions.ts';

/** Bytes that each rail has carried up to this moment. */
export interface RailSample {
  atMs: number;
  railBytes: number[];
}

export interface Phase {
  fromMs: number;
  toMs: number;
  /** Indexes of the rails that are pulled. */
  pulled: number[];
  /** Bytes of the messages that were delivered to the receiving program in this phase. */
  bytes: number;
  /** Longest time between two deliveries, of those that ended in this phase. */
  worstGapMs: number;
}

/** Enough for a plot, and a bound for a run of any length. */
const SAMPLES_MAX = 1200;

export class Timeline {
  readonly samples: RailSample[] = [];
  worstGapMs = 0;
  worstGapEndMs = 0;
  private readonly phases: Phase[];
  private current = 0;
  private lastMs: number | undefined;

  constructor(actions: readonly RailAction[], railCount: number, durationMs: number) {
    const edges = [...new Set([0, ...actions.map(({ atMs }) => atMs)])];
    this.phases = edges.map((fromMs, i) => ({
      fromMs,
      toMs: edges[i + 1] ?? durationMs,
      pulled: pulledAt(actions, railCount, fromMs).flatMap((isPulled, rail) => (isPulled ? [rail] : [])),
      bytes: 0,
      worstGapMs: 0,
    }));
  }

  delivered(atMs: number, bytes: number): void {
    while (this.current + 1 < this.phases.length && atMs >= this.phases[this.current + 1].fromMs) this.current += 1;
    const phase = this.phases[this.current];
    phase.bytes += bytes;
    if (this.lastMs !== undefined) {
      const gapMs = atMs - this.lastMs;
      phase.worstGapMs = Math.max(phase.worstGapMs, gapMs);
      if (gapMs > this.worstGapMs) {
        this.worstGapMs = gapMs;
        this.worstGapEndMs = atMs;
      }
    }
    this.lastMs = atMs;
  }

  sample(atMs: number, railBytes: number[]): void {
    if (this.samples.length < SAMPLES_MAX) this.samples.push({ atMs, railBytes });
  }

  /** All phases; the last one reaches to the last delivery. */
  finish(): Phase[] {
    const last = this.phases[this.phases.length - 1];
    last.toMs = Math.max(last.fromMs, this.lastMs ?? last.toMs);
    return this.phases;
  }

  /** How often to sample a run of that length. */
  static intervalMs(durationMs: number): number {
    return Math.max(100, Math.ceil(durationMs / (SAMPLES_MAX - 100)));
  }
}

/** Rates between samples, in MB/s per rail; the moment is the middle of the interval. */
export function railRates(samples: readonly RailSample[]): { atMs: number; fromMs: number; toMs: number; rates: number[] }[] {
  const list: { atMs: number; fromMs: number; toMs: number; rates: number[] }[] = [];
  for (let i = 1; i < samples.length; i++) {
    const before = samples[i - 1];
    const after = samples[i];
    const spanMs = after.atMs - before.atMs;
    if (spanMs <= 0) continue;
    const rates = after.railBytes.map((bytes, rail) => (bytes - before.railBytes[rail]) / 1000 / spanMs);
    list.push({ atMs: (before.atMs + after.atMs) / 2, fromMs: before.atMs, toMs: after.atMs, rates });
  }
  return list;
}
