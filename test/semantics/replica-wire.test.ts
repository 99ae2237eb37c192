// Replicas over real sockets, in one process whose writes are recorded: of a message that differs nothing leaves, whatever it is that differs. And
// what differs that is no fault of a machine: each such case is in docs/guide/replicas.md, with what becomes of it.
import { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { tcpComponent } from '../../src/btl/tcp/component.ts';
import { ANY_SOURCE } from '../../src/mpi/constants.ts';
import type { Runtime } from '../../src/mpi/runtime.ts';
import { ParamTable } from '../../src/params.ts';
import { LOOPBACK_PARAMS, makeRuntimes, SMALL_PARAMS } from '../support/p2p-worlds.ts';

/** All bytes that any socket of this process was given. */
let written: Uint8Array[] = [];
type Chunk = string | Uint8Array;
type Writes = { _write: (chunk: Chunk, ...more: unknown[]) => void; _writev: (chunks: { chunk: Chunk }[], ...more: unknown[]) => void };
const sockets = Socket.prototype as unknown as Writes;
const { _write, _writev } = sockets;
const keep = (chunk: Chunk): number => written.push(typeof chunk === 'string' ? Buffer.from(chunk) : new Uint8Array(chunk));

beforeEach(() => {
  written = [];
  sockets._write = function (chunk, ...more) {
    keep(chunk);
    return _write.call(this, chunk, ...more);
  };
  sockets._writev = function (chunks, ...more) {
    for (const { chunk } of chunks) keep(chunk);
    return _writev.call(this, chunks, ...more);
  };
});
afterEach(() => {
  sockets._write = _write;
  sockets._writev = _writev;
});

const wasWritten = (bytes: Uint8Array): boolean => Buffer.concat(written).includes(Buffer.from(bytes));

/** Plays it at all replicas of two ranks, and returns what the job was aborted with; undefined: all have ended well. */
async function play(compare: string, run: (mpi: Runtime, isLead: boolean) => Promise<unknown>, replicas = 2): Promise<string | undefined> {
  const params = new ParamTable({
    ...SMALL_PARAMS,
    ...LOOPBACK_PARAMS,
    ft_replicas: String(replicas),
    ft_compare: compare,
    // All are one process, whose time is that of each of them.
    ft_toe_cpu: '0',
  });
  const { runtimes, hub } = await makeRuntimes(2 * replicas, params, () => [tcpComponent], undefined, false);
  const parts = runtimes.map(async (mpi) => {
    await run(mpi, mpi.replica?.isLead === true);
    await mpi.finalize({ timeoutMs: 10_000 });
  });
  for (const part of parts) part.catch(() => undefined);
  // Ranks of a job that is aborted do not come to an end by themselves where they are no processes.
  const aborted = (async () => {
    while (hub.aborts.length === 0) await sleep(5);
    return hub.aborts[0];
  })();
  const first = await Promise.race([Promise.allSettled(parts), aborted]);
  if (Array.isArray(first)) {
    const failed = first.find((end) => end.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
    return undefined;
  }
  // What is on its way arrives, if anything is.
  await sleep(300);
  for (const mpi of runtimes) await (mpi as unknown as { engine: { close(): Promise<void> } }).engine.close();
  for (const mpi of runtimes) (mpi as unknown as { stay?: { end(): void } }).stay?.end();
  expect(first.code).toBe(76);
  return first.reason;
}

/** Bytes that nothing else on the wire looks like. */
const marker = (seed: number): Uint8Array => Uint8Array.from({ length: 48 }, (_, i) => (i * 89 + seed * 53 + 17) & 255);

test.each([
  ['crc32c', 100],
  ['sha256', 100],
  ['full', 100],
  ['crc32c', 200_000],
])('of a message that differs nothing leaves: %s, %i bytes', async (compare, bytes) => {
  const [lead, shadow, equal] = [marker(1), marker(2), marker(3)];
  const received: number[] = [];
  const reason = await play(compare, async (mpi, isLead) => {
    const { world, rank } = mpi;
    const buffer = new Uint8Array(bytes);
    if (rank === 0) {
      buffer.set(equal);
      await world.send(buffer, 1, 1);
      // Both replicas of the other rank have it.
      await world.recv(new Uint8Array(1), 1, 9);
      buffer.set(isLead ? lead : shadow);
      await world.send(buffer, 1, 2);
    } else {
      received.push((await world.recv(buffer, 0, 1)).bytes);
      await world.send(Uint8Array.of(1), 0, 9);
      received.push((await world.recv(buffer, 0, 2)).bytes);
    }
  });
  expect(reason).toMatch(
    /the replicas of rank 0 \(processes 0 and 2\) differ: message 2, of \d+ bytes to rank 1 with tag 2, differs, first at byte 0/,
  );
  expect(wasWritten(equal)).toBe(true);
  expect(received).toEqual([bytes, bytes]);
  expect(wasWritten(lead)).toBe(false);
});

test.each([
  ['crc32c', 100],
  ['sha256', 100],
  ['full', 100],
  ['crc32c', 200_000],
  ['full', 200_000],
])('of three what the shadows have leaves, and nothing of the lead that has something else: %s, %i bytes', async (compare, bytes) => {
  const [wrong, right] = [marker(4), marker(5)];
  const received: Uint8Array[] = [];
  const counters: (readonly number[])[] = [];
  const reason = await play(
    compare,
    async (mpi, isLead) => {
      const { world, rank, replica } = mpi;
      const buffer = new Uint8Array(bytes);
      if (rank === 0) {
        buffer.set(isLead ? wrong : right);
        await world.send(buffer, 1, 1);
        await replica?.validate(buffer);
        expect(buffer.subarray(0, right.length)).toEqual(right);
        const { outvoted, corrected, healed } = replica?.counters() ?? {};
        if (isLead) counters.push([outvoted ?? 0, corrected ?? 0, healed ?? 0]);
      } else {
        await world.recv(buffer, 0, 1);
        received.push(buffer.slice(0, right.length));
      }
    },
    3,
  );
  expect(reason).toBeUndefined();
  expect(received).toEqual([right, right, right]);
  expect(counters).toEqual([[2, 2, 1]]);
  expect(wasWritten(right)).toBe(true);
  expect(wasWritten(wrong)).toBe(false);
});

// ---------------------------------------------------------------- differences that are no faults of a machine

const NAN = (payload: bigint): Float64Array => {
  const value = new Float64Array(1);
  new DataView(value.buffer).setBigUint64(0, 0x7ff8_0000_0000_0000n | payload, true);
  return value;
};

test.each<[string, (isLead: boolean) => Float64Array | Buffer, number | undefined]>([
  ['payloads of NaN differ', (isLead) => NAN(isLead ? 1n : 2n), 0],
  ['the same NaN does not', () => NAN(5n), undefined],
  ['0 and -0 differ', (isLead) => Float64Array.of(isLead ? 0 : -0), 7],
  [
    'so do ends of buffers that nobody has written',
    (isLead) => {
      const buffer = Buffer.allocUnsafe(64).fill(isLead ? 1 : 2);
      buffer.fill(0, 0, 40);
      return buffer;
    },
    40,
  ],
  ['the order of a Map is the same at both', () => Float64Array.from(new Map([3, 1, 2].map((n) => [n, n])).values()), undefined],
  ['clocks differ unless they are asked by once()', (isLead) => Float64Array.of(isLead ? 1 : 1.5), 6],
])('%s', async (_, make, offset) => {
  const reason = await play('crc32c', async ({ world, rank }, isLead) => {
    const buffer = make(isLead);
    if (rank === 0) await world.send(buffer, 1, 1);
    else await world.recv(new Uint8Array(buffer.byteLength), 0, 1);
  });
  if (offset === undefined) expect(reason).toBeUndefined();
  else expect(reason).toContain(`differs, first at byte ${offset};`);
});

test('times and random numbers of once() are the same at both, and so is the order in which messages are taken', async () => {
  const orders: string[] = [];
  const reason = await play('crc32c', async ({ world, rank, replica }) => {
    const value = await replica?.once(() => [Date.now(), Math.random()]);
    await world.send(Float64Array.from(value ?? []), 1 - rank, 1);
    await world.recv(new Float64Array(2), 1 - rank, 1);
    const first = world.irecv(new Uint8Array(1), ANY_SOURCE, 2);
    const second = world.irecv(new Uint8Array(1), ANY_SOURCE, 3);
    const both = Promise.race([first.promise().then(() => 2), second.promise().then(() => 3)]);
    await world.send(Uint8Array.of(1), 1 - rank, 3);
    await world.send(Uint8Array.of(1), 1 - rank, 2);
    const order = await both;
    orders[rank] = `${orders[rank] ?? ''}${order}`;
    await Promise.all([first.promise(), second.promise()]);
    await world.send(Uint8Array.of(order), 1 - rank, 4);
    await world.recv(new Uint8Array(1), 1 - rank, 4);
  });
  expect(reason).toBeUndefined();
  for (const order of orders) expect(order[0]).toBe(order[1]);
});
