// The collective tests as a rank runs them: each call is timed separately, followed by a barrier that is not timed; the tables have
// average, least and most of all ranks. The scheme is OSU's.
import { MultirailError } from '../../src/errors.ts';
import type { Communicator } from '../../src/mpi/communicator.ts';
import { Op } from '../../src/mpi/op.ts';
import type { OsuRepeats } from './osu.ts';
import { type Steadiness, untilSteady } from './pt2pt.ts';

export const COLL_TESTS = ['allreduce', 'alltoall', 'bcast', 'barrier'] as const;
export type CollTest = (typeof COLL_TESTS)[number];

export interface CollOptions {
  test: CollTest;
  /** allreduce: of the buffer, in numbers of 4 bytes; alltoall: for each rank; bcast: of the buffer; barrier: none. */
  sizes: readonly number[];
  /** Blocking calls instead of promises. */
  sync: boolean;
  /** Undefined: OSU's, by size. */
  iterations: number | undefined;
  warmup: number | undefined;
}

export interface CollRow {
  /** Undefined for a barrier. */
  sizeBytes: number | undefined;
  averageUs: number;
  leastUs: number;
  mostUs: number;
  iterations: number;
}

/**
 * For blocking calls: collectives have more to compile than messages have. Where compiler and rank share a processor, blocking calls take that for a crowd and
 * sleep at once for up to 160 ms after each time: what looks steady for a fifth of a second is a plateau on the way.
 */
const STEADY: Steadiness = { runs: 30, limitMs: 3000 };

const FLOAT_BYTES = 4;
const LARGE_BYTES = 8192;
const SIZE_WIDTH = 10;
const FIELD_WIDTH = 18;
const ITERATIONS_WIDTH = 12;
const DECIMALS = 2;
const TITLES: Record<CollTest, string> = { allreduce: 'Allreduce', alltoall: 'All-to-All', bcast: 'Broadcast', barrier: 'Barrier' };

export function collRepeats(sizeBytes: number): OsuRepeats {
  return sizeBytes > LARGE_BYTES ? { iterations: 100, warmup: 10 } : { iterations: 1000, warmup: 200 };
}

export function collHead(test: CollTest): string[] {
  const columns = ['Avg Latency(us)', 'Min Latency(us)', 'Max Latency(us)'].map((column) => column.padStart(FIELD_WIDTH)).join('');
  const size = test === 'barrier' ? '#'.padEnd(2) : '# Size'.padEnd(SIZE_WIDTH);
  return [`# multirail ${TITLES[test]} Latency Test (OSU scheme)`, `${size}${columns}${'Iterations'.padStart(ITERATIONS_WIDTH)}`];
}

export function collLine({ sizeBytes, averageUs, leastUs, mostUs, iterations }: CollRow): string {
  const values = [averageUs, leastUs, mostUs].map((value) => value.toFixed(DECIMALS).padStart(FIELD_WIDTH)).join('');
  const size = sizeBytes === undefined ? ''.padEnd(2) : String(sizeBytes).padEnd(SIZE_WIDTH);
  return `${size}${values}${String(iterations).padStart(ITERATIONS_WIDTH)}`;
}

/** Lengths that the test can take; those of the user must fit. */
export function checkCollSizes(test: CollTest, sizes: readonly number[]): readonly number[] {
  if (test === 'barrier') return [0];
  if (test !== 'allreduce') return sizes;
  const odd = sizes.find((size) => size % FLOAT_BYTES !== 0);
  if (odd === undefined) return sizes;
  throw new MultirailError('ERR_ARG', `size ${odd}: allreduce sums numbers of ${FLOAT_BYTES} bytes, so expected a multiple of that`);
}

/** One call of each form, for buffers that are made once. */
interface Calls {
  promise(): Promise<void>;
  sync(): void;
}

function callsOf(comm: Communicator, test: CollTest, bytes: number): Calls {
  switch (test) {
    case 'barrier':
      return { promise: () => comm.barrier(), sync: () => comm.barrierSync() };
    case 'bcast': {
      const buffer = new Uint8Array(bytes).fill(comm.rank);
      return { promise: () => comm.bcast(buffer), sync: () => comm.bcastSync(buffer) };
    }
    case 'allreduce': {
      const send = new Float32Array(bytes / FLOAT_BYTES).fill(1);
      const recv = new Float32Array(bytes / FLOAT_BYTES);
      return { promise: () => comm.allreduce(send, recv), sync: () => comm.allreduceSync(send, recv) };
    }
    case 'alltoall': {
      const send = new Uint8Array(bytes * comm.size).fill(comm.rank);
      const recv = new Uint8Array(bytes * comm.size);
      return { promise: () => comm.alltoall(send, recv), sync: () => comm.alltoallSync(send, recv) };
    }
  }
}

/** Microseconds of a call on this rank, on average. */
async function time(comm: Communicator, calls: Calls, sync: boolean, { iterations, warmup }: OsuRepeats): Promise<number> {
  let elapsedMs = 0;
  for (let i = 0; i < warmup + iterations; i++) {
    const startMs = performance.now();
    if (sync) calls.sync();
    else await calls.promise();
    if (i >= warmup) elapsedMs += performance.now() - startMs;
    if (sync) comm.barrierSync();
    else await comm.barrier();
  }
  return (elapsedMs * 1000) / iterations;
}

/** Runs one test; rank 0 hears of each row as soon as it is known. */
export async function runColl(comm: Communicator, options: CollOptions, onRow: (row: CollRow) => void): Promise<void> {
  const { test, sync } = options;
  for (const sizeBytes of checkCollSizes(test, options.sizes)) {
    const defaults = collRepeats(sizeBytes);
    const repeats: OsuRepeats = { iterations: options.iterations ?? defaults.iterations, warmup: options.warmup ?? defaults.warmup };
    const calls = callsOf(comm, test, sizeBytes);
    await comm.barrier();
    if (options.warmup !== 0)
      await untilSteady(comm, (iterations) => time(comm, calls, sync, { iterations, warmup: 0 }), sync ? STEADY : undefined);
    const own = Float64Array.of(await time(comm, calls, sync, repeats));
    const results = [Op.SUM, Op.MIN, Op.MAX].map((op) => ({ op, value: new Float64Array(1) }));
    for (const { op, value } of results) await comm.reduce(own, comm.rank === 0 ? value : null, op);
    if (comm.rank !== 0) continue;
    const [sum, least, most] = results.map(({ value }) => value[0]);
    const { iterations } = repeats;
    onRow({
      sizeBytes: test === 'barrier' ? undefined : sizeBytes,
      averageUs: sum / comm.size,
      leastUs: least,
      mostUs: most,
      iterations,
    });
  }
  await comm.barrier();
}
