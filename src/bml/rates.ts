// What a rail carries: samples of its rate, and what follows from it, which are the bytes that it may hold and the length of its fragments.
// Part of the BML: pure and synchronous, time comes in.
import type { BmlOptions } from './options.ts';
import type { Rail } from './rail.ts';

/** A rail with siblings holds what it carries in this time and in two of its round trips; and this much before it was measured. */
const HELD_MS = 20;
const UNMEASURED_WINDOW_BYTES = 128 * 1024;
/** A slow rail with siblings takes shorter fragments: each within this time, down to this length. */
const SLOW_FRAG_MS = 5;
const SLOW_FRAG_BYTES_MIN = 4 * 1024;
/** The least that it holds are two of these: while one is acknowledged, another is under way, and the rail can be measured. */
const SLOW_WINDOW_BYTES_MIN = 2 * (SLOW_FRAG_BYTES_MIN + 128);
/** A sample is at least so long; one that ends with an idle rail may be shorter. */
const SAMPLE_MS = 10;
const SAMPLE_IDLE_MS = 5;

/** A rate that has fallen to less than this part is followed faster. */
const FALLEN = 2;

export class Rates {
  private readonly options: BmlOptions;
  /** Whether a rail has siblings, so that nothing need wait for it. */
  private readonly isBeside: (rail: Rail) => boolean;

  constructor(options: BmlOptions, isBeside: (rail: Rail) => boolean) {
    this.options = options;
    this.isBeside = isBeside;
  }

  /** So many bytes are known to be delivered: the throughput is measured while the rail is kept busy. */
  delivered(rail: Rail, bytes: number, nowMs: number): void {
    const { endpoint } = rail;
    if (rail.sampleStartMs >= 0 && nowMs === rail.sampledMs && endpoint.outstandingBytes > 0) {
      // One of many that came at the same moment: counted, and looked at with the last of them.
      rail.sampleBytes += bytes;
      return;
    }
    rail.sampledMs = nowMs;
    const isFull = rail.blocked || endpoint.outstandingBytes * 2 >= endpoint.windowBytes;
    if (rail.sampleStartMs < 0 && endpoint.outstandingBytes > 0) this.beginSample(rail, isFull, nowMs);
    if (rail.sampleStartMs < 0 || rail.sampleStartMs === nowMs) return;
    rail.sampleIsFull &&= isFull;
    rail.sampleBytes += bytes;
    const elapsedMs = nowMs - rail.sampleStartMs;
    if (endpoint.outstandingBytes === 0) {
      // Not limited by the rail but by the traffic: only a higher figure than the known one says anything.
      if (elapsedMs >= SAMPLE_IDLE_MS) {
        rail.rate = Math.max(rail.rate, rail.sampleBytes / elapsedMs);
        this.tune(rail);
      }
      rail.sampleStartMs = -1;
    } else if (elapsedMs >= SAMPLE_MS) {
      const rate = rail.sampleBytes / elapsedMs;
      if (rate > rail.rate) rail.rate = rail.rate === 0 ? rate : (rail.rate + rate) / 2;
      else if (rail.sampleIsFull) rail.rate += (rate - rail.rate) / (rate < rail.rate / FALLEN ? 4 : 8);
      if (rail.sampleIsFull) rail.isMeasured = true;
      this.tune(rail);
      this.beginSample(rail, isFull, nowMs);
    }
  }

  private beginSample(rail: Rail, isFull: boolean, nowMs: number): void {
    rail.sampleStartMs = nowMs;
    rail.sampleBytes = 0;
    rail.sampleIsFull = isFull;
  }

  /** Sets what follows from the rate. */
  tune(rail: Rail): void {
    rail.fragScale = this.fragScale(rail);
    rail.endpoint.windowBytes = this.windowBytes(rail);
  }

  /**
   * A fast rail takes longer fragments: each costs a fixed amount of work on both sides. What one of them keeps others waiting stays
   * within fragUs.
   */
  private fragScale(rail: Rail): number {
    const { fragBytes, fragBytesMax, fragUs } = this.options;
    const bytesMax = Math.min(fragBytesMax, (rail.expectedRate * fragUs) / 1000);
    let scale = 1;
    while (fragBytes * scale * 2 <= bytesMax) scale *= 2;
    if (scale > 1 || !rail.isMeasured || !this.isBeside(rail)) return scale;
    while (fragBytes * scale > Math.max(rail.rate * SLOW_FRAG_MS, SLOW_FRAG_BYTES_MIN)) scale /= 2;
    return scale;
  }

  /** Bytes in flight are bounded to what the rail carries in windowMs, so that a slow rail holds no long queue (late binding). A whole number, as everywhere. */
  private windowBytes(rail: Rail): number {
    const { windowMaxBytes, windowMs } = this.options;
    return Math.round(Math.min(windowMaxBytes, Math.max(this.windowMinBytes(rail), rail.expectedRate * windowMs)));
  }

  private windowMinBytes(rail: Rail): number {
    const { windowMaxBytes, windowMinBytes } = this.options;
    const leastBytes = Math.min(windowMaxBytes, Math.max(windowMinBytes, rail.attributes.windowMinBytes ?? 0));
    if (!this.isBeside(rail)) return leastBytes;
    // A slow rail holds little, so that nothing waits for it for long.
    if (!rail.isMeasured) return Math.min(leastBytes, UNMEASURED_WINDOW_BYTES);
    const roundTripMs = rail.roundTripMs === Number.POSITIVE_INFINITY ? 0 : rail.roundTripMs;
    return Math.min(leastBytes, Math.max(SLOW_WINDOW_BYTES_MIN, rail.rate * (HELD_MS + 2 * roundTripMs)));
  }
}
