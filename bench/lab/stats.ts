// Figures of the lab's measurements: quantiles, and numbers as people read them. Medians and bootstrap bounds are those of all benches
// (bench/lib/stats.mjs). Pure.

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

/** A number as people read it; ∞ and – for what did not come and what is not there. */
export function digits(value: number, decimals = 1): string {
  if (Number.isNaN(value)) return '–';
  return Number.isFinite(value) ? value.toFixed(decimals) : '∞';
}
