// Blocking calls in one step, by two ranks of one process: the other one has begun its call before, or never comes. And what becomes of one of
// which the other tells, while it is tried, that it has failed, or which does not fit.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { smComponent } from '../../../../src/btl/sm/component.ts';
import { MultirailError } from '../../../../src/errors.ts';
import { COLLECTIVE, ctxOf } from '../../../../src/mpi/contexts.ts';
import { Op } from '../../../../src/mpi/op.ts';
import type { ProcessState } from '../../../../src/mpi/process-state.ts';
import { type P2pWorld, realFixture } from '../../../support/p2p-worlds.ts';

const fixture = realFixture([smComponent], {}, false, 'required');
const news = new MultirailError('ERR_OP', 'a function of the caller threw');
/** No rank of this process moves while one of them is in a blocking call: a mistake is to end, not to hang. */
const LIMIT = { timeoutMs: 5000 };
const isThere = test.skipIf(fixture.unavailable !== undefined);

let world: P2pWorld;
let procs: ProcessState[];
const collective = (comm: { contextId: number }) => ctxOf(comm.contextId, COLLECTIVE);
const atOnce = (rank: number): number => world.runtimes[rank].counters().collectives.atOnce;
/** The number of the next call. */
const nextTag = (rank: number): number => (world.comms[rank] as unknown as { nextCollective: number }).nextCollective + 1;

beforeEach(async () => {
  world = await fixture.world(2);
  procs = world.runtimes.map((runtime) => (runtime as unknown as { proc: ProcessState }).proc);
  // The memory is made with the first call.
  await Promise.all(world.comms.map((comm) => comm.barrier()));
});
afterEach(() => world.teardown());

isThere('those for which the others have come need no steps, whichever way these have begun', async () => {
  const [a, b] = world.comms;
  const barrier = b.barrier();
  a.barrierSync(LIMIT);
  await barrier;
  const sum = new Float64Array(1);
  const allreduce = b.allreduce(Float64Array.of(2), new Float64Array(1));
  a.allreduceSync(Float64Array.of(1), sum, Op.SUM, LIMIT);
  expect([sum[0], atOnce(0)]).toEqual([3, 2]);
  await allreduce;
  // The root of a broadcast waits for nobody, nor do those that are not the root of a reduction.
  const data = new Int32Array(1);
  a.bcastSync(Int32Array.of(7), 0, LIMIT);
  b.bcastSync(data, 0, LIMIT);
  b.reduceSync(Float64Array.of(5), null, Op.MAX, 0, LIMIT);
  a.reduceSync(Float64Array.of(4), sum, Op.MAX, 0, LIMIT);
  expect([data[0], sum[0], atOnce(0), atOnce(1)]).toEqual([7, 5, 4, 2]);
});

isThere('one to which nobody comes goes by steps, with its limit in time, and the next ones are right', async () => {
  const [a, b] = world.comms;
  expect(() => a.barrierSync({ timeoutMs: 20 })).toThrow(expect.objectContaining({ code: 'ERR_TIMEOUT' }));
  // What it has put stands there, so that the other one may come through.
  await Promise.allSettled([b.barrier()]);
  const other = b.barrier();
  a.barrierSync(LIMIT);
  await other;
  expect(atOnce(0)).toBe(1);
});

isThere('news of it that come while it is tried end it', async () => {
  const [a, b] = world.comms;
  procs[1].failures.tell(0, collective(b), nextTag(0), news);
  procs[1].engine.flush();
  expect(() => a.barrierSync(LIMIT)).toThrow(expect.objectContaining({ code: 'ERR_OP' }));
  await Promise.allSettled([b.barrier()]);
  expect(atOnce(0)).toBe(0);
});

isThere('while there are news of other calls, none is tried', async () => {
  const [a, b] = world.comms;
  procs[1].failures.tell(0, collective(b), nextTag(0) + 1, news);
  procs[1].engine.flush();
  const others = [b.barrier(), b.barrier()];
  a.barrierSync(LIMIT);
  expect(() => a.barrierSync(LIMIT)).toThrow(expect.objectContaining({ code: 'ERR_OP' }));
  expect(atOnce(0)).toBeLessThanOrEqual(1);
  await Promise.allSettled(others);
  const other = b.barrier();
  a.barrierSync(LIMIT);
  await other;
});

isThere('a length that differs is an error', async () => {
  const [a, b] = world.comms;
  const other = b.allreduce(Float64Array.of(1, 2), new Float64Array(2));
  expect(() => a.allreduceSync(Float64Array.of(1), new Float64Array(1), Op.SUM, LIMIT)).toThrow(
    expect.objectContaining({ code: 'ERR_TRUNCATE' }),
  );
  await expect(other).rejects.toMatchObject({ code: 'ERR_TRUNCATE' });
});

isThere('none is tried on a communicator that is told to send messages', async () => {
  const [a, b] = world.comms;
  for (const comm of [a, b]) comm.usesSharedMemory = false;
  const other = b.barrier();
  const before = world.runtimes[0].counters().collectives.messages;
  a.barrierSync(LIMIT);
  expect(world.runtimes[0].counters().collectives.messages).toBeGreaterThan(before);
  expect(atOnce(0)).toBe(0);
  await other;
});

isThere('a communicator that was freed, or a job that has ended, refuses a call that is known from before', async () => {
  const [a, b] = world.comms;
  const twins = await Promise.all([a.dup(), b.dup()]);
  const call = (): Promise<void> => {
    const other = twins[1].barrier();
    twins[0].barrierSync(LIMIT);
    return other;
  };
  await Promise.all(twins.map((twin) => twin.barrier()));
  await call();
  await call();
  expect(atOnce(0)).toBe(2);
  await Promise.all(twins.map((twin) => twin.free()));
  expect(() => twins[0].barrierSync(LIMIT)).toThrow(expect.objectContaining({ code: 'ERR_COMM' }));
});
