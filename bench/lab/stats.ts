// Figures out of figures: medians, quantiles, bootstrap bounds. Pure. Imports the seeded generator.
import { Prng } from '../../src/util/prng.ts';

const RESAMPLES = 10_000;

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** With linear interpolation between the two nearest; NaN of nothing. */
export function quantile(values: readonly number[], q: number): number {
  if (values.length === 0) return Number.NaN;
  const sorted = [...values].sort((a, b) => a - b);
  const at = (sorted.length - 1) * q;
  const low = sorted[Math.floor(at)];
  const high = sorted[Math.ceil(at)];
  // Infinity minus Infinity is no number.
  return low === high ? low : low + (high - low) * (at - Math.floor(at));
}

/** Percentile bootstrap of the median: the interval that holds 95 % of the medians of resamples. */
export function bootstrapMedian(values: readonly number[], seed: number): { low: number; high: number } {
  const prng = new Prng(seed).split('bootstrap');
  const medians: number[] = [];
  for (let i = 0; i < RESAMPLES; i++) {
    const sample = values.map(() => values[prng.below(values.length)]);
    medians.push(median(sample));
  }
  return { low: quantile(medians, 0.025), high: quantile(medians, 0.975) };
}

export function shuffled<T>(list: readonly T[], prng: Prng): T[] {
  const result = [...list];
  for (let i = result.length - 1; i > 0; i--) {
    const j = prng.below(i + 1);
    [result[i], result[j]] = [result[j], result[i]];
  }
  return result;
}

/** A number as people read it; ∞ and – for what did not come and what is not there. */
export function digits(value: number, decimals = 1): string {
  if (Number.isNaN(value)) return '–';
  return Number.isFinite(value) ? value.toFixed(decimals) : '∞';
}
