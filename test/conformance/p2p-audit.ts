// What the cases of the point-to-point suite share: payloads that can be audited, and the look at what is left at the end.
import { strict as assert } from 'node:assert';
import { type ErrorCode, MultirailError } from '../../src/errors.ts';
import type { Communicator } from '../../src/mpi/communicator.ts';
import type { P2pWorld } from './p2p-worlds.ts';

/** Around the inline bytes, the eager limit, the fragment grid, and several fragments. */
export const SIZES = [0, 1, 1023, 1024, 1025, 4095, 4096, 4097, 8191, 8192, 8193, 65_537, 300_001];

/** Bytes that depend on the seed and the place: a byte lost, doubled or moved shows. */
export function fill(bytes: number, seed: number): Uint8Array<ArrayBuffer> {
  const data = new Uint8Array(bytes);
  let x = Math.imul(seed + 1, 0x9e3779b1) | 1;
  for (let i = 0; i < bytes; i++) {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    data[i] = x;
  }
  return data;
}

export function audit(data: Uint8Array, seed: number, what: string): void {
  const expected = fill(data.byteLength, seed);
  if (Buffer.compare(data, expected) === 0) return;
  const at = expected.findIndex((byte, i) => byte !== data[i]);
  assert.fail(`${what}: byte ${at} of ${data.byteLength} is ${data[at]}, expected ${expected[at]}`);
}

/** Two ranks that talk: ranks 0 and 1, or the own rank with itself in a world of one. */
export function pairOf(world: P2pWorld): { a: Communicator; b: Communicator; toA: number; toB: number } {
  const { comms } = world;
  const b = comms[comms.length > 1 ? 1 : 0];
  return { a: comms[0], b, toA: 0, toB: b.rank };
}

/** The promise or function must end in an error with this code. */
export async function fails(code: ErrorCode, attempt: PromiseLike<unknown> | (() => unknown)): Promise<MultirailError> {
  try {
    await (typeof attempt === 'function' ? attempt() : attempt);
  } catch (error) {
    assert(error instanceof MultirailError, `expected ${code}, got ${String(error)}`);
    assert.equal(error.code, code, error.message);
    return error;
  }
  return assert.fail(`expected ${code}, and nothing was thrown`);
}

/** Waits, in the world's own time, until something is true. */
export async function until(world: P2pWorld, condition: () => boolean, what: string): Promise<void> {
  for (let i = 0; !condition(); i++) {
    if (i > 20_000) assert.fail(`still not: ${what}`);
    await world.sleep(1);
  }
}

/** One message of that length arrives unexpected, then the receive is posted: both protocols take their slow way. */
export async function arrived(world: P2pWorld, comm: Communicator, source: number, tag: number): Promise<void> {
  await until(world, () => comm.iprobe(source, tag) !== undefined, `a message with tag ${tag} from rank ${source} is there`);
}

/** All leave; then nothing may be held any more. */
export async function closeWorld(world: P2pWorld): Promise<void> {
  await world.teardown();
  for (const runtime of world.runtimes) {
    assert.deepEqual(runtime.undelivered(), [], `rank ${runtime.rank} has messages left`);
    assert.equal(runtime.counters().engine.retainedBytes, 0, `rank ${runtime.rank} retains bytes`);
  }
}
