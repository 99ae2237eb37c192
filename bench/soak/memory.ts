// Whether the memory of a rank is flat: a judgement over samples that were taken after garbage collection, between rounds. Pure.
// Imports the arithmetic of this folder.
import { median } from '../lib/stats.mjs';

export interface MemoryPoint {
  /** Since the start of the soak. */
  atMs: number;
  /** Rounds that this rank has done. */
  round: number;
  bytes: number;
}

export interface MemoryLimits {
  /** Samples before that time do not count. */
  warmMs: number;
  /**
   * Growth by round, over the second half of what counts: `excluded`: the upper end of its 95 % interval must lie under this, so that a
   * leak of so much is ruled out, not just not seen; `shown`: only a lower end above it is a leak.
   */
  leakBytesPerRound: number;
  leakMustBe: 'excluded' | 'shown';
  /** What comes and stays without being a leak: a growth that amounts to less over that half is none. */
  slackBytes: number;
  /** How much more the most of the last third may be than the most of the first: the larger of the two. */
  growthBytes: number;
  growthShare: number;
}

/**
 * Heap and external memory after a collection hold only what is reachable: a leak is what stays, in the second half as in the first,
 * while what V8 notes of code that has become hot (feedback, data for deoptimisation) comes to rest. One KiB per round is beyond doubt
 * where three quarters of it must be excluded. The slower leaks, and those by time or by fault, show in the growth.
 */
export const JS_LIMITS: Omit<MemoryLimits, 'warmMs'> = {
  leakBytesPerRound: 768,
  leakMustBe: 'excluded',
  slackBytes: 0,
  growthBytes: 2 << 20,
  growthShare: 0.05,
};
/** Resident pages: what the allocators keep for later, and the pages of compiled code, are in it, and come in steps of megabytes. */
export const RSS_LIMITS: Omit<MemoryLimits, 'warmMs'> = {
  leakBytesPerRound: 1024,
  leakMustBe: 'shown',
  slackBytes: 8 << 20,
  growthBytes: 16 << 20,
  growthShare: 0.1,
};

/** Fewer say nothing. */
export const SAMPLES_MIN = 16;
/** In the second half: over fewer rounds what V8 notes of code is more than a leak of those sizes would be. */
export const ROUNDS_MIN = 500;

export interface MemoryVerdict {
  verdict: 'flat' | 'grows' | 'not judged';
  /** Why it is not flat. */
  why: string;
  samples: number;
  bytesPerRound: number;
  low: number;
  high: number;
  /** Median and most of the first and of the last third. */
  firstBytes: number;
  firstMaxBytes: number;
  lastBytes: number;
  lastMaxBytes: number;
}

const NORMAL_95 = 1.96;

/** Theil and Sen's slope: the median of those of all pairs, with the 95 % interval by Kendall's variance (Sen 1968). */
export function senSlope(points: readonly { x: number; y: number }[]): { slope: number; low: number; high: number } {
  const slopes: number[] = [];
  for (let i = 0; i < points.length; i++) {
    for (let j = i + 1; j < points.length; j++) {
      const dx = points[j].x - points[i].x;
      if (dx > 0) slopes.push((points[j].y - points[i].y) / dx);
    }
  }
  slopes.sort((a, b) => a - b);
  const n = points.length;
  const reach = NORMAL_95 * Math.sqrt((n * (n - 1) * (2 * n + 5)) / 18);
  const at = (index: number) => slopes[Math.min(slopes.length - 1, Math.max(0, index))] ?? Number.NaN;
  return {
    slope: median(slopes),
    low: at(Math.floor((slopes.length - reach) / 2) - 1),
    high: at(Math.ceil((slopes.length + reach) / 2)),
  };
}

const mib = (bytes: number) => `${(bytes / 2 ** 20).toFixed(2)} MiB`;

export function judgeMemory(points: readonly MemoryPoint[], limits: MemoryLimits): MemoryVerdict {
  const used = points.filter(({ atMs }) => atMs >= limits.warmMs);
  const third = Math.floor(used.length / 3);
  const first = used.slice(0, third).map(({ bytes }) => bytes);
  const last = used.slice(used.length - third).map(({ bytes }) => bytes);
  const half = used.slice(Math.floor(used.length / 2));
  const rounds = (half.at(-1)?.round ?? 0) - (half[0]?.round ?? 0);
  const { slope, low, high } = senSlope(half.map(({ round, bytes }) => ({ x: round, y: bytes })));
  const verdict: MemoryVerdict = {
    verdict: 'not judged',
    why: '',
    samples: used.length,
    bytesPerRound: slope,
    low,
    high,
    firstBytes: median(first),
    firstMaxBytes: Math.max(...first),
    lastBytes: median(last),
    lastMaxBytes: Math.max(...last),
  };
  if (used.length < SAMPLES_MIN) {
    return { ...verdict, why: `${used.length} samples after ${limits.warmMs / 1000} s of warming up, ${SAMPLES_MIN} are needed` };
  }
  if (rounds < ROUNDS_MIN) return { ...verdict, why: `${rounds} rounds in the second half, ${ROUNDS_MIN} are needed` };
  const bound = limits.leakMustBe === 'excluded' ? high : low;
  const leak = Math.max(limits.leakBytesPerRound, limits.slackBytes / rounds);
  const allowed = Math.max(limits.growthBytes, limits.growthShare * verdict.firstMaxBytes);
  const growth = verdict.lastMaxBytes - verdict.firstMaxBytes;
  const why: string[] = [];
  if (!(bound < leak)) {
    const interval = `${slope.toFixed(0)} B a round, 95 % between ${low.toFixed(0)} and ${high.toFixed(0)}`;
    why.push(`${interval}: a leak of ${leak.toFixed(0)} is ${limits.leakMustBe === 'excluded' ? 'not excluded' : 'shown'}`);
  }
  if (growth > allowed) why.push(`the most of the last third is ${mib(growth)} above that of the first, ${mib(allowed)} are allowed`);
  return { ...verdict, verdict: why.length === 0 ? 'flat' : 'grows', why: why.join('; ') };
}

/** How long a soak of that length warms up: code is compiled, pools and windows grow to their size. */
export function warmUpMs(durationMs: number): number {
  return Math.min(300_000, Math.max(30_000, durationMs / 5));
}
