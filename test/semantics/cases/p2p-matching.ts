// Cases of the point-to-point suite: wildcards, probes, tags, PROC_NULL, cancelled receives.
import { strict as assert } from 'node:assert';
import { ANY_SOURCE, ANY_TAG, PROC_NULL, TAG_UB, UNDEFINED } from '../../../src/mpi/constants.ts';
import { Request } from '../../../src/mpi/request.ts';
import { arrived, audit, fails, fill, inPair, inRoles, type Role, SIZES } from '../../support/p2p-audit.ts';
import type { P2pCase } from '../p2p-suite.ts';

const argumentsOutOfRange: Role = async ({ comm }) => {
  const data = new Uint8Array(4);
  for (const rank of [comm.size, -7, 0.5, '0', undefined as never] as number[]) {
    if (rank !== undefined) await fails('ERR_RANK', comm.probe(rank));
    await fails('ERR_RANK', comm.send(data, rank));
    await fails('ERR_RANK', () => comm.isend(data, rank));
  }
  await fails('ERR_RANK', comm.send(data, ANY_SOURCE));
  for (const tag of [-2, 2 ** 31, 1.5, 'x', null] as number[]) {
    await fails('ERR_TAG', comm.send(data, 0, tag));
    await fails('ERR_TAG', comm.recv(data, 0, tag));
  }
  await fails('ERR_TAG', comm.send(data, 0, ANY_TAG));
  for (const buffer of ['text', null, 5, {}, [data, 'x']]) {
    await fails('ERR_BUFFER', comm.send(buffer as never, 0));
    await fails('ERR_BUFFER', comm.recv(buffer as never, 0));
  }
  const detached = new ArrayBuffer(8);
  structuredClone(detached, { transfer: [detached] });
  await fails('ERR_BUFFER', comm.send(detached, 0));
  await fails('ERR_BUFFER', comm.recv([data.subarray(0, 3), data.subarray(2)], 0));
  await fails('ERR_ARG', comm.recv(data, 0, 0, { timeoutMs: -1 }));
  assert.equal(comm.iprobe(), undefined);
};

export const MATCHING_CASES: readonly P2pCase[] = [
  {
    name: '4 anyall: both wildcards keep the order of each sender',
    ranks: 3,
    run: async (world) => {
      const count = 60;
      const size = (i: number) => (i % 4 === 3 ? 9000 : i);
      const sender: Role = async ({ comm }) => {
        await Request.waitAll(Array.from({ length: count }, (_, i) => comm.isend(fill(size(i), comm.rank + i), 0, i)));
      };
      const receiver: Role = async ({ comm }) => {
        const next = [0, 0, 0];
        for (let i = 0; i < 2 * count; i++) {
          const data = new Uint8Array(9000);
          const { source, tag, bytes } = await comm.recv(data, ANY_SOURCE, ANY_TAG);
          assert.equal(tag, next[source]++, `order of rank ${source}`);
          audit(data.subarray(0, bytes), source + tag, `message ${tag} of rank ${source}`);
        }
        assert.deepEqual(next, [0, count, count]);
      };
      await inRoles(world, [receiver, sender, sender]);
    },
  },
  {
    name: '5 recv_any: value and source every time',
    ranks: 4,
    run: async (world) => {
      const rounds = 20;
      const sender: Role = async ({ comm }) => {
        for (let round = 0; round < rounds; round++) await comm.isend(fill(8, comm.rank * 100 + round), 0, round);
      };
      const receiver: Role = async ({ comm }) => {
        for (let round = 0; round < rounds; round++) {
          const sources = new Set<number>();
          for (let i = 1; i < comm.size; i++) {
            const data = new Uint8Array(8);
            const { source } = await comm.recv(data, ANY_SOURCE, round);
            audit(data, source * 100 + round, `of rank ${source}`);
            sources.add(source);
          }
          assert.equal(sources.size, comm.size - 1);
        }
      };
      await inRoles(world, [receiver, sender, sender, sender]);
    },
  },
  {
    name: '18 probe_unexp: probes see what arrives, whatever its protocol',
    ranks: 2,
    run: (world) =>
      inPair(
        world,
        async ({ comm, peer }) => {
          await Request.waitAll(SIZES.map((bytes, i) => comm.isend(fill(bytes, i), peer, i)));
        },
        async ({ comm, peer }) => {
          // The last one first: the others have to wait unexpected.
          for (let i = SIZES.length - 1; i >= 0; i--) {
            const probed = await comm.probe(peer, i);
            assert.deepEqual([probed.source, probed.tag, probed.bytes], [peer, i, SIZES[i]]);
            assert.deepEqual(comm.iprobe(ANY_SOURCE, i), probed);
            const data = new Uint8Array(probed.bytes);
            await comm.recv(data, peer, i);
            audit(data, i, `${SIZES[i]} bytes`);
            assert.equal(comm.iprobe(peer, i), undefined);
          }
        },
      ),
  },
  {
    name: '18 probe under load: probed lengths fit while messages pour in',
    ranks: 2,
    run: async (world) => {
      const count = 150;
      await inPair(
        world,
        async ({ comm, peer }) => {
          await Request.waitAll(Array.from({ length: count }, (_, i) => comm.isend(fill((i * 97) % 12_000, i), peer, 1)));
        },
        async ({ comm }) => {
          for (let i = 0; i < count; i++) {
            const { bytes } = await comm.probe();
            assert.equal(bytes, (i * 97) % 12_000);
            const data = new Uint8Array(bytes);
            await comm.recv(data);
            audit(data, i, `message ${i}`);
          }
        },
      );
    },
  },
  {
    name: '19 mprobe: a matched message belongs to its Message',
    ranks: 2,
    run: (world) =>
      inPair(
        world,
        async ({ comm, peer, meet }) => {
          for (const bytes of [0, 50, 20_000]) {
            await Request.waitAll([0, 1, 2].map((i) => comm.isend(fill(bytes, i), peer, 6)));
            await meet();
          }
        },
        async ({ comm, peer, meet }) => {
          for (const bytes of [0, 50, 20_000]) {
            const first = await comm.mprobe(peer, 6);
            const second = await comm.mprobe(ANY_SOURCE, ANY_TAG);
            await arrived(world, comm, peer, 6);
            const third = comm.improbe(peer, 6);
            assert(third !== undefined);
            assert.equal(comm.improbe(peer, 6), undefined);
            assert.equal(comm.iprobe(peer, 6), undefined);
            // Received in another order than matched.
            for (const [i, message] of [
              [2, third],
              [0, first],
              [1, second],
            ] as const) {
              assert.equal(message.status.bytes, bytes);
              const data = new Uint8Array(bytes);
              const status = i === 0 ? await message.irecv(data) : await message.recv(data);
              assert.deepEqual([status.source, status.tag, status.bytes], [peer, 6, bytes]);
              audit(data, i, `message ${i}`);
              await fails('ERR_REQUEST', () => message.irecv(data));
            }
            await meet();
          }
        },
      ),
  },
  {
    name: '19 mprobe: a posted receive comes first, a waiting mprobe in its order',
    ranks: 2,
    run: (world) =>
      inPair(
        world,
        async ({ comm, peer, meet }) => {
          await meet();
          for (const i of [0, 1, 2]) await comm.send(fill(4, i), peer, 1);
        },
        async ({ comm, peer, meet }) => {
          const early = comm.mprobe(peer, 1);
          const late = comm.mprobe(peer, 1);
          const data = new Uint8Array(4);
          const posted = comm.irecv(data, peer, 1);
          await meet();
          await posted;
          audit(data, 0, 'the posted receive');
          audit(await (await early).recvBytes(), 1, 'the first mprobe');
          audit(await (await late).recvBytes(), 2, 'the second mprobe');
        },
      ),
  },
  {
    name: '20 mprobe_self_free: a matched message whose sender waits is received while its communicator is being freed; another one is dropped',
    ranks: 1,
    run: async ({ comms }) => {
      for (const [seed, bytes] of SIZES.entries()) {
        for (const waits of [true, false]) {
          const twin = await comms[0].dup();
          const send = waits ? twin.issend(fill(bytes, seed), 0, 3) : twin.isend(fill(Math.min(bytes, 1000), seed), 0, 3);
          const message = await twin.mprobe(0, 3);
          const freed = twin.free();
          if (waits) {
            const data = new Uint8Array(bytes);
            const { source, tag } = await message.recv(data);
            assert.deepEqual([source, tag], [0, 3]);
            audit(data, seed, `${bytes} bytes`);
          }
          await send;
          await freed;
          // What nobody has received by the end is gone, and the other one was received.
          await fails(waits ? 'ERR_REQUEST' : 'ERR_COMM', () => message.irecv(new Uint8Array(bytes)));
        }
      }
    },
  },
  {
    name: '21 probenull, recvnull: PROC_NULL ends at once',
    ranks: 1,
    run: async ({ comms: [comm] }) => {
      const data = new Uint8Array(4).fill(7);
      await comm.send(data, PROC_NULL, 3);
      await comm.issend(data, PROC_NULL, 3);
      const message = await comm.mprobe(PROC_NULL);
      for (const status of [
        await comm.recv(data, PROC_NULL, 3),
        await comm.probe(PROC_NULL, 3),
        comm.iprobe(PROC_NULL),
        await message.recv(data),
        await comm.recvInit(data, PROC_NULL).start(),
      ]) {
        assert.deepEqual([status?.source, status?.tag, status?.bytes, status?.count(Float64Array)], [PROC_NULL, ANY_TAG, 0, 0]);
      }
      assert.deepEqual([...data], [7, 7, 7, 7]);
    },
  },
  {
    name: '22 large_tag: tags up to TAG_UB',
    ranks: 2,
    run: async (world) => {
      const tags = [0, 1, 2 ** 16, 2 ** 30, TAG_UB - 1, TAG_UB];
      await inPair(
        world,
        async ({ comm, peer, meet }) => {
          for (const tag of tags) {
            await meet();
            await comm.send(fill(3, 1), peer, tag);
            await fails('ERR_TAG', comm.send(new Uint8Array(3), peer, TAG_UB + 1));
          }
        },
        async ({ comm, peer, meet }) => {
          for (const tag of tags) {
            const received = comm.recv(new Uint8Array(3), peer, tag);
            await meet();
            assert.equal((await received).tag, tag);
          }
        },
      );
    },
  },
  {
    name: '24 cancelrecv: the middle of three receives',
    ranks: 2,
    run: (world) =>
      inPair(
        world,
        async ({ comm, peer, meet }) => {
          for (const bytes of [30, 30_000]) {
            await meet();
            await Promise.all([comm.send(fill(bytes, 0), peer, 1), comm.send(fill(bytes, 1), peer, 1)]);
          }
        },
        async ({ comm, peer, meet }) => {
          for (const bytes of [30, 30_000]) {
            const buffers = [0, 1, 2].map(() => new Uint8Array(bytes));
            const requests = buffers.map((buffer) => comm.irecv(buffer, peer, 1));
            assert.equal(requests[1].cancel(), true);
            await fails('ERR_CANCELLED', requests[1]);
            assert.equal(requests[1].status?.cancelled, true);
            await meet();
            await Promise.all([requests[0], requests[2]]);
            audit(buffers[0], 0, 'the first');
            audit(buffers[2], 1, 'the third');
            assert(buffers[1].every((byte) => byte === 0));
            assert.equal(requests[0].cancel(), false);
          }
        },
      ),
  },
  {
    name: '25 cancelanysrc: a wildcard receive',
    ranks: 2,
    run: (world) =>
      inPair(
        world,
        async ({ comm, peer, meet }) => {
          await meet();
          await comm.send(fill(10, 3), peer, 0);
        },
        async ({ comm, meet }) => {
          const lost = comm.irecv(new Uint8Array(10), ANY_SOURCE, ANY_TAG);
          assert.equal(lost.cancel(), true);
          await meet();
          const data = new Uint8Array(10);
          await comm.recv(data);
          audit(data, 3, 'after the cancelled one');
          await fails('ERR_CANCELLED', lost);
        },
      ),
  },
  {
    name: '26 rcancel: several at once',
    ranks: 2,
    run: (world) =>
      inPair(
        world,
        async ({ comm, peer, meet }) => {
          await meet();
          for (let i = 1; i < 20; i += 2) await comm.send(fill(4, i), peer, i);
        },
        async ({ comm, peer, meet }) => {
          const requests = Array.from({ length: 20 }, (_, i) => comm.irecv(new Uint8Array(4), peer, i));
          for (const [i, request] of requests.entries()) if (i % 2 === 0) assert.equal(request.cancel(), true);
          await meet();
          const ended = await Promise.allSettled(requests);
          assert.deepEqual(
            ended.map(({ status }) => status === 'rejected'),
            requests.map((_, i) => i % 2 === 0),
          );
        },
      ),
  },
  {
    name: '27 scancel_unmatch',
    ranks: 2,
    skip: 'not applicable: a send that has its place in the order cannot be cancelled (the next case checks that)',
    run: async () => undefined,
  },
  {
    name: '27 a send is not cancelled, and keeps its place',
    ranks: 2,
    run: (world) =>
      inPair(
        world,
        async ({ comm, peer, meet }) => {
          const long = comm.isend(fill(50_000, 1), peer, 1);
          const short = comm.isend(fill(5, 2), peer, 1);
          assert.deepEqual([long.cancel(), short.cancel()], [false, false]);
          await meet();
          await Promise.all([long, short]);
        },
        async ({ comm, peer, meet }) => {
          await meet();
          const first = new Uint8Array(50_000);
          const second = new Uint8Array(5);
          await comm.recv(first, peer, 1);
          await comm.recv(second, peer, 1);
          audit(first, 1, 'the long one');
          audit(second, 2, 'the short one');
        },
      ),
  },
  {
    name: '35 proberank: ranks, tags, counts and buffers out of range',
    ranks: 2,
    run: (world) => inPair(world, argumentsOutOfRange, async () => undefined),
  },
  {
    name: 'ours: signals and timeouts un-post, and disturb nothing else',
    ranks: 2,
    run: (world) =>
      inPair(
        world,
        async ({ comm, peer, meet }) => {
          await fails('ERR_ABORTED', comm.send(new Uint8Array(4), peer, 1, { signal: AbortSignal.abort(new Error('before')) }));
          await meet();
          await comm.send(fill(4, 1), peer, 1);
          await meet();
          // What was sent later is there, so the long one has matched.
          await Promise.all([comm.isend(fill(500_000, 2), peer, 2), comm.isend(fill(1, 3), peer, 9)]);
        },
        async ({ comm, peer, meet }) => {
          await fails('ERR_ABORTED', comm.recv(new Uint8Array(4), peer, 1, { signal: AbortSignal.abort(new Error('before')) }));
          const stop = new AbortController();
          const aborted = comm.irecv(new Uint8Array(4), peer, 1, { signal: stop.signal });
          const timed = comm.recv(new Uint8Array(4), peer, 1, { timeoutMs: 5 });
          const probe = comm.probe(peer, 1, { timeoutMs: 5 });
          const matchedProbe = comm.mprobe(peer, 1, { signal: stop.signal });
          stop.abort('reason');
          const [reason] = await Promise.all([
            fails('ERR_ABORTED', aborted),
            fails('ERR_ABORTED', matchedProbe),
            fails('ERR_TIMEOUT', timed),
            fails('ERR_TIMEOUT', probe),
          ]);
          assert.equal(reason.cause, 'reason');
          const data = new Uint8Array(4);
          const late = new AbortController();
          const received = comm.recv(data, peer, 1, { signal: late.signal, timeoutMs: 60_000 });
          await meet();
          assert.equal((await received).bytes, 4);
          late.abort();
          audit(data, 1, 'after all that');
          // One that has matched goes on to its end.
          const long = new Uint8Array(500_000);
          const signal = new AbortController();
          const request = comm.irecv(long, peer, 2, { signal: signal.signal });
          await meet();
          await arrived(world, comm, peer, 9);
          signal.abort();
          await Promise.all([request, comm.recv(new Uint8Array(1), peer, 9)]);
          audit(long, 2, 'matched before the abort');
        },
      ),
  },
  {
    name: 'ours: messages() takes one at a time and stops when it is left',
    ranks: 2,
    run: (world) =>
      inPair(
        world,
        async ({ comm, peer }) => {
          await Request.waitAll(Array.from({ length: 6 }, (_, i) => comm.isend(fill(i * 3000, i), peer, 5)));
        },
        async ({ comm, peer }) => {
          const seen: number[] = [];
          for await (const { data, status } of comm.messages(peer, 5)) {
            audit(data, seen.length, `message ${seen.length}`);
            seen.push(status.bytes);
            if (seen.length === 4) break;
          }
          assert.deepEqual(seen, [0, 3000, 6000, 9000]);
          for (const i of [4, 5]) {
            const data = new Uint8Array(i * 3000);
            await comm.recv(data, peer, 5);
            audit(data, i, `message ${i}, left where it was`);
          }
          const waiting = comm.messages(peer, 5);
          const next = waiting.next();
          await waiting.return?.();
          assert.equal((await next).done, true);
          const stop = new AbortController();
          const aborted = comm.messages(peer, 5, { signal: stop.signal }).next();
          stop.abort();
          await fails('ERR_ABORTED', aborted);
        },
      ),
  },
  {
    name: 'ours: status.count in elements',
    ranks: 2,
    run: (world) =>
      inPair(
        world,
        async ({ comm, peer }) => {
          await comm.send(new Float64Array(3), peer);
        },
        async ({ comm, peer }) => {
          const status = await comm.recv(new Uint8Array(64), peer);
          assert.deepEqual([status.count(Float64Array), status.count(Int16Array), status.count(5)], [3, 12, UNDEFINED]);
        },
      ),
  },
];
