// The measuring scheme of c/cells.h for the Node programs, but for the way to a steady state, which takes longer here: which cells,
// how long, and the orders by which rank 0 leads rank 1. Change both together.
import process from 'node:process';
import { median } from '../../lib/stats.mjs';

export const LATENCY = 0;
export const BANDWIDTH = 1;
const ALL_SIZES = '8,1024,8192,65536,1048576,8388608,67108864';
export const BYTES_MAX = 64 * 1024 * 1024;
const STEADY_BATCHES = 8;
const STEADY_BATCH_MS = 20;
const STEADY_FACTOR = 0.95;
const STEADY_MS_MAX = 2000;
export const CHECK_BYTES = 100_003;
export const ORDER_BYTES = 8;
const REPEATS_MAX = 5;

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

/** The sizes that a variable of the environment lists: none when it is empty. */
const sizesOf = (text = ALL_SIZES) => (text === '' ? [] : text.split(',').map(Number));

/**
 * Rank 0: measures all cells that PEERS_LATENCY and PEERS_BANDWIDTH ask for and prints a JSON line for each.
 * `batch(count, metric, bytes)` does that many units and gives the milliseconds that they took, or a promise of them.
 */
export async function measureCells(batch) {
  for (const bytes of sizesOf(process.env.PEERS_LATENCY)) await measureCell(batch, LATENCY, bytes);
  for (const bytes of sizesOf(process.env.PEERS_BANDWIDTH)) await measureCell(batch, BANDWIDTH, bytes);
}

/**
 * Before each cell: units until several batches in a row were not faster than the best before. A size that was not sent yet takes other
 * branches, and what was compiled without them is compiled again. Answers the milliseconds of a unit.
 */
async function settle(batch, metric, bytes) {
  let bestMs = Number.POSITIVE_INFINITY;
  let steady = 0;
  let spentMs = 0;
  let count = 1;
  for (;;) {
    const lastMs = await batch(count, metric, bytes);
    const eachMs = lastMs / count;
    spentMs += lastMs;
    steady = eachMs < bestMs * STEADY_FACTOR ? 0 : steady + 1;
    bestMs = Math.min(bestMs, eachMs);
    if (lastMs < STEADY_BATCH_MS) {
      count *= 2;
      steady = 0;
    } else if (steady >= STEADY_BATCHES || spentMs > STEADY_MS_MAX) return eachMs;
  }
}

async function measureCell(batch, metric, bytes) {
  const perUnit = metric === LATENCY ? 1 : windowOf(bytes);
  const eachMs = await settle(batch, metric, bytes);
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
