// What the cases of the point-to-point suite share: payloads that can be audited, and the check of what is left at the end.
import { strict as assert } from 'node:assert';
import { type ErrorCode, MultirailError } from '../../src/errors.ts';
import type { Communicator } from '../../src/mpi/communicator.ts';
import type { P2pWorld } from './p2p-worlds.ts';

/** Small limits, so that short messages exercise every protocol. */
export const SMALL_LIMITS: Readonly<Record<string, string>> = {
  pml_eager_limit_bytes: '4096',
  pml_rndv_inline_bytes: '1024',
  pml_frag_bytes: '8192',
};

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

/** One rank's part in a case: its communicator, and a way to wait for the others. */
export interface Part {
  comm: Communicator;
  /** In a pair, the rank of the other one. */
  peer: number;
  /** Ends when every part of the case has come here: by then what each has posted before it is posted. */
  meet(): Promise<void>;
}

export type Role = (part: Part) => Promise<void>;

/**
 * Every rank plays its part, all at the same time: here the ranks that are in this process, elsewhere the others. In a world of one the
 * own rank plays all of them.
 */
export async function inRoles(world: P2pWorld, roles: readonly Role[]): Promise<void> {
  const { comms } = world;
  const { size } = comms[0];
  const meet = world.meet ?? meetingOf(roles.length);
  const here = roles.flatMap((role, i) => {
    const comm = comms.find(({ rank }) => rank === i % size);
    return comm === undefined ? [] : [role({ comm, peer: (i ^ 1) % size, meet })];
  });
  await Promise.all(here);
}

/** inRoles() for two: ranks 0 and 1. */
export function inPair(world: P2pWorld, first: Role, second: Role): Promise<void> {
  return inRoles(world, [first, second]);
}

function meetingOf(count: number): () => Promise<void> {
  const waiting: (() => void)[] = [];
  return () =>
    new Promise((resolve) => {
      waiting.push(resolve);
      if (waiting.length === count) for (const go of waiting.splice(0)) go();
    });
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
