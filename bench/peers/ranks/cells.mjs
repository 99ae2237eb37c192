// The measuring scheme of c/cells.h for the Node programs: which cells, how long, and the orders by which rank 0 leads rank 1.
// Change both together. Imports nothing but node:*.
import process from 'node:process';

export const LATENCY = 0;
export const BANDWIDTH = 1;
const ALL_SIZES = '8,1024,8192,65536,1048576,8388608,67108864';
export const BYTES_MAX = 64 * 1024 * 1024;
const SMALL_BYTES_MAX = 65536;
export const CHECK_BYTES = 100_003;
export const ORDER_BYTES = 8;
const REPEATS_MAX = 5;
const WARM_UP_MS = 700;
const LONG_WARM_UP_MS = 2000;
const LONG_BYTES = 1024 * 1024;

export const windowOf = (bytes) => (bytes >= BYTES_MAX ? 8 : 64);

/** A typed view of the 8 bytes that rank 0 sends before each batch: how many units (0 = over), and of what. */
export class Order {
  words = new Uint32Array(ORDER_BYTES / 4);
  bytes = new Uint8Array(this.words.buffer);

  set(count, metric, bytes) {
    this.words[0] = count;
    this.words[1] = metric | (Math.log2(Math.max(1, bytes)) << 8);
    return this;
  }
  get count() {
    return this.words[0];
  }
  get metric() {
    return this.words[1] & 0xff;
  }
  get sizeBytes() {
    return 2 ** (this.words[1] >>> 8);
  }
}

/** Fills a buffer with the pattern that `rank` sends before anything is timed. */
export function fillPattern(buffer, rank) {
  for (let i = 0; i < CHECK_BYTES; i++) buffer[i] = i * 131 + (i >> 8) + rank;
}

/** Throws unless the buffer holds the pattern of `rank`. */
export function checkPattern(buffer, rank) {
  for (let i = 0; i < CHECK_BYTES; i++) {
    if (buffer[i] !== ((i * 131 + (i >> 8) + rank) & 0xff)) throw new Error(`byte ${i} of the pattern of rank ${rank} is wrong`);
  }
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The sizes that a variable of the environment lists: none when it is empty. */
const sizesOf = (text = ALL_SIZES) => (text === '' ? [] : text.split(',').map(Number));

/**
 * Rank 0: measures all cells that PEERS_LATENCY and PEERS_BANDWIDTH ask for and prints a JSON line for each.
 * `batch(count, metric, bytes)` does that many units and gives the milliseconds that they took, or a promise of them.
 */
export async function measureCells(batch) {
  await warmUp(batch);
  for (const bytes of sizesOf(process.env.PEERS_LATENCY)) await measureCell(batch, LATENCY, bytes);
  for (const bytes of sizesOf(process.env.PEERS_BANDWIDTH)) await measureCell(batch, BANDWIDTH, bytes);
}

/**
 * What C does not need: until the JavaScript of all layers is compiled a call costs ten times as much. All Node programs begin with short
 * messages, one by one and in windows, and with long ones where such are measured, before the first cell. Windows of long ones take
 * longest: there are few messages in a second, and the compiler waits for many.
 */
async function warmUp(batch) {
  const latency = sizesOf(process.env.PEERS_LATENCY);
  const bandwidth = sizesOf(process.env.PEERS_BANDWIDTH);
  const kinds = [[LATENCY, 8, 50, WARM_UP_MS]];
  if (bandwidth.length > 0) kinds.push([BANDWIDTH, 8, 5, WARM_UP_MS]);
  if (latency.some((bytes) => bytes >= LONG_BYTES)) kinds.push([LATENCY, LONG_BYTES, 2, WARM_UP_MS]);
  if (bandwidth.some((bytes) => bytes >= LONG_BYTES)) kinds.push([BANDWIDTH, LONG_BYTES, 1, LONG_WARM_UP_MS]);
  for (const [metric, bytes, units, warmUpMs] of kinds) {
    const untilMs = performance.now() + warmUpMs;
    while (performance.now() < untilMs) await batch(units, metric, bytes);
  }
}

async function measureCell(batch, metric, bytes) {
  const isSmall = bytes <= SMALL_BYTES_MAX;
  const perUnit = metric === LATENCY ? 1 : windowOf(bytes);
  const leastMs = isSmall ? 100 : 0;
  const mostMs = isSmall ? 300 : 100;
  let spentMs = 0;
  let lastMs = 0;
  let done = 0;
  let count = 1;
  for (;;) {
    lastMs = await batch(count, metric, bytes);
    spentMs += lastMs;
    done += count;
    if (spentMs >= mostMs || (spentMs >= leastMs && done * perUnit >= 20_000)) break;
    if (lastMs < 20) count *= 2;
  }
  const eachMs = lastMs / count;
  const units = eachMs > 60 ? 1 : Math.floor(60 / eachMs) + 1;
  const repeats = [];
  const startMs = performance.now();
  while (repeats.length < REPEATS_MAX && (repeats.length < 3 || performance.now() - startMs < 600)) {
    repeats.push((await batch(units, metric, bytes)) / units);
  }
  const unitMs = median(repeats);
  if (metric === LATENCY) return print('latency', bytes, (unitMs / 2) * 1000);
  print('bandwidth', bytes, (perUnit * bytes) / unitMs / 1000);
  if (bytes === 8) print('rate', bytes, (perUnit / unitMs) * 1000);
}

function print(metric, size, value) {
  process.stdout.write(`${JSON.stringify({ metric, size, value: Number(value.toPrecision(6)) })}\n`);
}
