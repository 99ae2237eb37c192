// The point-to-point tests as a rank runs them: ping-pong, window of sends with an acknowledgement, both ways at once, and message rate of
// several pairs. The scheme is OSU's, step by step; as in OSU, all messages of a window are received into one buffer, because the test
// measures the network and not the cache.
import { MultirailError } from '../../src/errors.ts';
import type { Communicator } from '../../src/mpi/communicator.ts';
import { Request } from '../../src/mpi/request.ts';
import { defaultRepeats, latencyUs, median, megabytesPerSecond, type OsuRepeats, type OsuRow, type OsuTest } from './osu.ts';
import { receiveWindowsSync, SYNC_TESTS, sendWindowsSync } from './pt2pt-sync.ts';
import { BENCH_TAGS } from './tags.ts';

export interface Pt2ptOptions {
  test: OsuTest;
  sizes: readonly number[];
  window: number;
  /** Blocking calls instead of promises. */
  sync: boolean;
  /** Undefined: OSU's, by size. */
  iterations: number | undefined;
  warmup: number | undefined;
  /** A row is the median of so many measurements of this many iterations each. */
  repeats: number;
}

const EMPTY = new Uint8Array(0);
const ACK_BYTES = 4;
/** A row begins once so many runs one after the other were not faster by the factor than the best before, or after this time. */
export interface Steadiness {
  runs: number;
  limitMs: number;
}
const STEADY: Steadiness = { runs: 10, limitMs: 2000 };
/** Once through all sizes before the first row: code that later sizes share is compiled by then, and is not compiled again amid a row. */
const FIRST_PASS: Steadiness = { runs: 3, limitMs: 200 };
const STEADY_RUN_MS = 20;
const STEADY_FACTOR = 0.95;

/** Nobody leaves before all have come: everyone tells rank 0, and rank 0 tells everyone. */
export async function meet(comm: Communicator): Promise<void> {
  const { meet: tag } = BENCH_TAGS;
  if (comm.rank !== 0) {
    await comm.send(EMPTY, 0, tag);
    await comm.recv(EMPTY, 0, tag);
    return;
  }
  for (let source = 1; source < comm.size; source++) await comm.recv(EMPTY, source, tag);
  for (let dest = 1; dest < comm.size; dest++) await comm.send(EMPTY, dest, tag);
}

/** Runs one test; rank 0 hears of each row as soon as it is known. */
export async function runPt2pt(comm: Communicator, options: Pt2ptOptions, onRow: (row: OsuRow) => void): Promise<void> {
  checkSize(comm, options.test);
  const bytesMax = Math.max(...options.sizes);
  const buffers = { out: new Uint8Array(bytesMax).fill(0x61), in: new Uint8Array(bytesMax) };
  const test = measure(options);
  const run = (sizeBytes: number, repeats: OsuRepeats) =>
    test(comm, buffers.out.subarray(0, sizeBytes), buffers.in.subarray(0, sizeBytes), repeats, options.window);
  const warmUp = (sizeBytes: number, steadiness: Steadiness) =>
    untilSteady(comm, (iterations) => run(sizeBytes, { iterations, warmup: 0 }), steadiness);
  if (options.warmup !== 0) for (const sizeBytes of options.sizes) await warmUp(sizeBytes, FIRST_PASS);
  for (const sizeBytes of options.sizes) {
    const defaults = defaultRepeats(options.test, sizeBytes);
    const repeats: OsuRepeats = { iterations: options.iterations ?? defaults.iterations, warmup: options.warmup ?? defaults.warmup };
    await meet(comm);
    if (options.warmup !== 0) await warmUp(sizeBytes, STEADY);
    const measured: number[][] = [];
    for (let i = 0; i < options.repeats; i++) measured.push(await run(sizeBytes, repeats));
    const values = measured[0].map((_, column) => median(measured.map((one) => one[column])));
    if (comm.rank === 0) onRow({ sizeBytes, values });
  }
  await meet(comm);
}

/**
 * Before each row: what OSU does not need. Until the JavaScript of all layers is compiled for messages of this length, a call costs ten
 * times as much, and the row would show the compiler. Rank 0 sees when it does not get faster any more, and says how often each run
 * is repeated; 0 ends it.
 */
export async function untilSteady(
  comm: Communicator,
  run: (iterations: number) => Promise<unknown>,
  { runs, limitMs } = STEADY,
): Promise<void> {
  const { start: tag } = BENCH_TAGS;
  const order = Uint32Array.of(1);
  const beganMs = performance.now();
  let bestMs = Number.POSITIVE_INFINITY;
  let steady = 0;
  for (;;) {
    if (comm.rank !== 0) await comm.recv(order, 0, tag);
    else for (let dest = 1; dest < comm.size; dest++) await comm.send(order, dest, tag);
    const iterations = order[0];
    if (iterations === 0) return;
    const startMs = performance.now();
    await run(iterations);
    const elapsedMs = performance.now() - startMs;
    const eachMs = elapsedMs / iterations;
    const isFaster = eachMs < bestMs * STEADY_FACTOR;
    bestMs = Math.min(bestMs, eachMs);
    if (elapsedMs < STEADY_RUN_MS) order[0] = iterations * 2;
    else steady = isFaster ? 0 : steady + 1;
    if (steady >= runs || performance.now() - beganMs > limitMs) order[0] = 0;
  }
}

function checkSize(comm: Communicator, test: OsuTest): void {
  if (test === 'rate' ? comm.size >= 2 && comm.size % 2 === 0 : comm.size === 2) return;
  const expected = test === 'rate' ? 'an even number of ranks' : 'two ranks';
  throw new MultirailError('ERR_ARG', `the ${test} test takes ${expected}, but the job has ${comm.size}`);
}

type Measure = (comm: Communicator, out: Uint8Array, into: Uint8Array, repeats: OsuRepeats, window: number) => Promise<number[]>;

function measure({ test, sync }: Pt2ptOptions): Measure {
  if (!sync) return TESTS[test];
  if (test !== 'rate') {
    const measureSync = SYNC_TESTS[test];
    return async (...given) => measureSync(...given);
  }
  return rateWith(sendWindowsSync, receiveWindowsSync);
}

type Windows = (comm: Communicator, peer: number, buffer: Uint8Array, repeats: OsuRepeats, window: number) => number | Promise<number>;

/** The rate test over loops that give each rank's own time. The first half of the ranks sends to the second. */
const rateWith =
  (send: Windows, receive: Windows): Measure =>
  async (comm, out, into, repeats, window) => {
    const pairs = comm.size / 2;
    const isSender = comm.rank < pairs;
    const elapsedMs = isSender
      ? await send(comm, comm.rank + pairs, out, repeats, window)
      : await receive(comm, comm.rank - pairs, into, repeats, window);
    return rateOf(await slowest(comm, isSender ? elapsedMs : 0), pairs * window * repeats.iterations, out.length);
  };

const rateOf = (elapsedMs: number, messages: number, sizeBytes: number): number[] => [
  megabytesPerSecond(messages * sizeBytes, elapsedMs),
  (messages * 1000) / elapsedMs,
];

const TESTS: Record<OsuTest, Measure> = {
  latency: async (comm, out, into, { iterations, warmup }) => {
    const { data } = BENCH_TAGS;
    const peer = 1 - comm.rank;
    let startMs = performance.now();
    for (let i = 0; i < warmup + iterations; i++) {
      if (i === warmup) startMs = performance.now();
      if (comm.rank === 0) {
        await comm.send(out, peer, data);
        await comm.recv(into, peer, data);
      } else {
        await comm.recv(into, peer, data);
        await comm.send(out, peer, data);
      }
    }
    return [latencyUs(performance.now() - startMs, iterations)];
  },

  bw: async (comm, out, into, repeats, window) => {
    const elapsedMs =
      comm.rank === 0 ? await sendWindows(comm, 1, out, repeats, window) : await receiveWindows(comm, 0, into, repeats, window);
    return [megabytesPerSecond(out.length * window * repeats.iterations, elapsedMs)];
  },

  bibw: async (comm, out, into, { iterations, warmup }, window) => {
    const { data, ack } = BENCH_TAGS;
    const peer = 1 - comm.rank;
    const small = new Uint8Array(ACK_BYTES);
    let startMs = performance.now();
    for (let i = 0; i < warmup + iterations; i++) {
      if (i === warmup) startMs = performance.now();
      const requests: Request[] = [];
      for (let j = 0; j < window; j++) requests.push(comm.irecv(into, peer, data));
      for (let j = 0; j < window; j++) requests.push(comm.isend(out, peer, data));
      await Request.waitAll(requests);
      if (comm.rank === 0) await comm.recv(small, peer, ack);
      else await comm.send(small, peer, ack);
    }
    return [megabytesPerSecond(2 * out.length * window * iterations, performance.now() - startMs)];
  },

  rate: rateWith(sendWindows, receiveWindows),
};

async function sendWindows(comm: Communicator, peer: number, out: Uint8Array, repeats: OsuRepeats, window: number): Promise<number> {
  const { data, ack } = BENCH_TAGS;
  const small = new Uint8Array(ACK_BYTES);
  const requests: Request[] = new Array(window);
  let startMs = performance.now();
  for (let i = 0; i < repeats.warmup + repeats.iterations; i++) {
    if (i === repeats.warmup) startMs = performance.now();
    for (let j = 0; j < window; j++) requests[j] = comm.isend(out, peer, data);
    await Request.waitAll(requests);
    await comm.recv(small, peer, ack);
  }
  return performance.now() - startMs;
}

async function receiveWindows(comm: Communicator, peer: number, into: Uint8Array, repeats: OsuRepeats, window: number): Promise<number> {
  const { data, ack } = BENCH_TAGS;
  const small = new Uint8Array(ACK_BYTES);
  const requests: Request[] = new Array(window);
  let startMs = performance.now();
  for (let i = 0; i < repeats.warmup + repeats.iterations; i++) {
    if (i === repeats.warmup) startMs = performance.now();
    for (let j = 0; j < window; j++) requests[j] = comm.irecv(into, peer, data);
    await Request.waitAll(requests);
    await comm.send(small, peer, ack);
  }
  return performance.now() - startMs;
}

/** The largest of all ranks' times, at rank 0; the others get their own. */
async function slowest(comm: Communicator, elapsedMs: number): Promise<number> {
  const { report } = BENCH_TAGS;
  const box = new Float64Array([elapsedMs]);
  if (comm.rank !== 0) {
    await comm.send(box, 0, report);
    return elapsedMs;
  }
  let most = elapsedMs;
  for (let source = 1; source < comm.size; source++) {
    await comm.recv(box, source, report);
    most = Math.max(most, box[0]);
  }
  return most;
}
