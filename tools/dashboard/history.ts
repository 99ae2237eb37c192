// Bytes over time: a bounded number of series, each a ring of slots of equal width. Bytes of a span of time are spread over the slots in
// proportion, so that a rank which computed for five seconds and then reports leaves five seconds of its average, and not a spike. Times
// are arguments.
import type { SeriesRun } from './messages.ts';

export interface HistoryOptions {
  slotMs: number;
  slots: number;
  seriesMax: number;
}

interface Series {
  key: string;
  ring: Float64Array;
  /** First and last slot that something is known of, by number since time 0. */
  first: number;
  last: number;
  /** First slot that changed since takeChanged(). */
  changed: number;
}

export class History {
  readonly options: HistoryOptions;
  private readonly series = new Map<string, Series>();
  private readonly refused = new Set<string>();
  private changed = new Set<Series>();

  constructor(options: HistoryOptions) {
    this.options = options;
  }

  get seriesCount(): number {
    return this.series.size;
  }

  /** Series that found no room. Counted up to the same bound again: what is refused must not fill memory either. */
  get seriesDropped(): number {
    return this.refused.size;
  }

  /** So many bytes between two times in milliseconds. Returns false when there is no room for this series. */
  add(key: string, fromMs: number, toMs: number, bytes: number): boolean {
    const series = this.find(key, fromMs);
    if (series === undefined) return false;
    const { slotMs, slots } = this.options;
    const last = Math.floor(toMs / slotMs);
    this.advance(series, last);
    // Nothing is known of slots that have left the ring.
    const from = Math.max(fromMs, (series.last - slots + 1) * slotMs);
    const spanMs = toMs - fromMs;
    const first = Math.floor(from / slotMs);
    if (spanMs <= 0) series.ring[last % slots] += bytes;
    else {
      for (let slot = first; slot <= last; slot++) {
        const overlapMs = Math.min(toMs, (slot + 1) * slotMs) - Math.max(from, slot * slotMs);
        series.ring[slot % slots] += (bytes * overlapMs) / spanMs;
      }
    }
    series.changed = Math.min(series.changed, first);
    this.changed.add(series);
    return true;
  }

  /** Everything that is known. */
  all(): SeriesRun[] {
    return [...this.series.values()].map((series) => this.run(series, series.first));
  }

  /** What changed since the last call. */
  takeChanged(): SeriesRun[] {
    const runs = [...this.changed].map((series) => this.run(series, series.changed));
    for (const series of this.changed) series.changed = Number.POSITIVE_INFINITY;
    this.changed = new Set();
    return runs;
  }

  private find(key: string, fromMs: number): Series | undefined {
    const found = this.series.get(key);
    if (found !== undefined) return found;
    const { slotMs, slots, seriesMax } = this.options;
    if (this.series.size >= seriesMax) {
      if (this.refused.size < seriesMax) this.refused.add(key);
      return undefined;
    }
    const first = Math.floor(fromMs / slotMs);
    const series = { key, ring: new Float64Array(slots), first, last: first, changed: first };
    this.series.set(key, series);
    return series;
  }

  private advance(series: Series, last: number): void {
    const { slots } = this.options;
    for (let slot = Math.max(series.last + 1, last - slots + 1); slot <= last; slot++) series.ring[slot % slots] = 0;
    series.last = Math.max(series.last, last);
    series.first = Math.max(series.first, series.last - slots + 1);
  }

  private run(series: Series, from: number): SeriesRun {
    const { slots } = this.options;
    const first = Math.max(from, series.first);
    const bytes = Array.from({ length: series.last - first + 1 }, (_, i) => Math.round(series.ring[(first + i) % slots]));
    return { key: series.key, first, bytes };
  }
}
