// What the OSU micro-benchmarks print and how often they repeat: sizes, iterations, table heads and rows, character for character, so that
// programs that read their output can read this output.
import { MultirailError } from '../../src/errors.ts';

export const OSU_TESTS = ['latency', 'bw', 'bibw', 'rate'] as const;
export type OsuTest = (typeof OSU_TESTS)[number];

/** One line of a table. */
export interface OsuRow {
  sizeBytes: number;
  /** latency: microseconds; bw and bibw: MB/s; rate: MB/s and messages per second. */
  values: number[];
}

export interface OsuRepeats {
  iterations: number;
  warmup: number;
}

const SIZE_WIDTH = 10;
const FIELD_WIDTH = 18;
const DECIMALS = 2;

/** Largest size that is measured by default, and at all. */
const DEFAULT_BYTES_MAX = 4 * 1024 * 1024;
const SIZE_BYTES_MAX = 1024 * 1024 * 1024;
const SIZES_MAX = 64;
/** Above this length OSU repeats less often. */
const LARGE_BYTES = 8192;

const TITLES: Record<OsuTest, { title: string; columns: readonly string[] }> = {
  latency: { title: 'Latency Test', columns: ['Latency (us)'] },
  bw: { title: 'Bandwidth Test', columns: ['Bandwidth (MB/s)'] },
  bibw: { title: 'Bi-Directional Bandwidth Test', columns: ['Bandwidth (MB/s)'] },
  rate: { title: 'Multiple Bandwidth / Message Rate Test', columns: ['MB/s', 'Messages/s'] },
};

/** How often each size is repeated unless the user says: as OSU, but a tenth of its 10000 and 1000 for latency. */
export function defaultRepeats(test: OsuTest, sizeBytes: number): OsuRepeats {
  const isLarge = sizeBytes > LARGE_BYTES;
  if (test === 'latency') return isLarge ? { iterations: 100, warmup: 10 } : { iterations: 1000, warmup: 100 };
  return isLarge ? { iterations: 20, warmup: 2 } : { iterations: 100, warmup: 10 };
}

export function tableHead(test: OsuTest, details: { pairs: number; window: number }): string[] {
  const { title, columns } = TITLES[test];
  const lines = [`# multirail ${title} (OSU scheme)`];
  if (test === 'rate') lines.push(`# [ pairs: ${details.pairs} ] [ window size: ${details.window} ]`);
  lines.push('# Size'.padEnd(SIZE_WIDTH) + columns.map((column) => column.padStart(FIELD_WIDTH)).join(''));
  return lines;
}

export function tableRow(row: OsuRow): string {
  return String(row.sizeBytes).padEnd(SIZE_WIDTH) + row.values.map((value) => value.toFixed(DECIMALS).padStart(FIELD_WIDTH)).join('');
}

/** A number of bytes: 64, 64k, 4m, 1g. */
export function parseBytes(text: string): number {
  const match = /^(\d+)([kmg]?)$/i.exec(text.trim());
  const scale = { '': 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3 }[(match?.[2] ?? '').toLowerCase()] ?? Number.NaN;
  const bytes = match === null ? Number.NaN : Number(match[1]) * scale;
  if (!(bytes <= SIZE_BYTES_MAX)) throw new MultirailError('ERR_ARG', `size "${text}": expected bytes up to 1g, such as 64, 64k or 4m`);
  return bytes;
}

const doublings = (from: number, to: number): number[] => {
  const sizes: number[] = [];
  for (let size = from; size <= to; size *= 2) sizes.push(size);
  return sizes;
};

/** `8,1k,4m` are sizes; `1..4m` is all doublings from one to the other. Without a text: 1 byte to 4 MiB. */
export function parseSizes(text: string | undefined): number[] {
  if (text === undefined) return doublings(1, DEFAULT_BYTES_MAX);
  const sizes = text.split(',').flatMap((part) => {
    const [low, high, more] = part.split('..');
    if (high === undefined) return [parseBytes(low)];
    const from = parseBytes(low);
    const to = parseBytes(high);
    if (more !== undefined || from < 1 || from > to) {
      throw new MultirailError('ERR_ARG', `sizes "${part}": expected LOW..HIGH with LOW at least 1 and not above HIGH`);
    }
    return doublings(from, to);
  });
  if (sizes.length > SIZES_MAX) throw new MultirailError('ERR_ARG', `sizes "${text}": expected at most ${SIZES_MAX} sizes`);
  return sizes;
}

/** Mean one-way time of a ping-pong. */
export const latencyUs = (elapsedMs: number, iterations: number): number => (elapsedMs * 1000) / (2 * iterations);

/** 10^6 bytes per second. */
export const megabytesPerSecond = (bytes: number, elapsedMs: number): number => bytes / 1000 / elapsedMs;

/** The middle value, or the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = Float64Array.from(values).sort();
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
