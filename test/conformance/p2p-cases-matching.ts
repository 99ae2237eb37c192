// Cases of the point-to-point suite: wildcards, probes, tags, PROC_NULL, cancelled receives.
import { strict as assert } from 'node:assert';
import { ANY_SOURCE, ANY_TAG, PROC_NULL, TAG_UB, UNDEFINED } from '../../src/mpi/constants.ts';
import { Request } from '../../src/mpi/request.ts';
import { arrived, audit, fails, fill, pairOf, SIZES } from './p2p-audit.ts';
import type { P2pCase } from './p2p-suite.ts';

export const MATCHING_CASES: readonly P2pCase[] = [
  {
    name: '4 anyall: both wildcards keep the order of each sender',
    ranks: 3,
    run: async ({ comms }) => {
      const count = 60;
      const size = (i: number) => (i % 4 === 3 ? 9000 : i);
      const sends = comms
        .slice(1)
        .flatMap((comm) => Array.from({ length: count }, (_, i) => comm.isend(fill(size(i), comm.rank + i), 0, i)));
      const next = [0, 0, 0];
      for (let i = 0; i < sends.length; i++) {
        const data = new Uint8Array(9000);
        const { source, tag, bytes } = await comms[0].recv(data, ANY_SOURCE, ANY_TAG);
        assert.equal(tag, next[source]++, `order of rank ${source}`);
        audit(data.subarray(0, bytes), source + tag, `message ${tag} of rank ${source}`);
      }
      await Request.waitAll(sends);
    },
  },
  {
    name: '5 recv_any: value and source every time',
    ranks: 4,
    run: async ({ comms }) => {
      for (let round = 0; round < 20; round++) {
        const sends = comms.slice(1).map((comm) => comm.isend(fill(8, comm.rank * 100 + round), 0, round));
        const sources = new Set<number>();
        for (let i = 0; i < sends.length; i++) {
          const data = new Uint8Array(8);
          const { source } = await comms[0].recv(data, ANY_SOURCE, round);
          audit(data, source * 100 + round, `of rank ${source}`);
          sources.add(source);
        }
        assert.equal(sources.size, sends.length);
        await Request.waitAll(sends);
      }
    },
  },
  {
    name: '18 probe_unexp: probes see what arrives, whatever its protocol',
    ranks: 2,
    run: async (world) => {
      const { a, b, toA, toB } = pairOf(world);
      const sends = SIZES.map((bytes, i) => a.isend(fill(bytes, i), toB, i));
      // The last one first: the others have to wait unexpected.
      for (let i = SIZES.length - 1; i >= 0; i--) {
        const probed = await b.probe(toA, i);
        assert.deepEqual([probed.source, probed.tag, probed.bytes], [toA, i, SIZES[i]]);
        assert.deepEqual(b.iprobe(ANY_SOURCE, i), probed);
        const data = new Uint8Array(probed.bytes);
        await b.recv(data, toA, i);
        audit(data, i, `${SIZES[i]} bytes`);
        assert.equal(b.iprobe(toA, i), undefined);
      }
      await Request.waitAll(sends);
    },
  },
  {
    name: '18 probe under load: probed lengths fit while messages pour in',
    ranks: 2,
    run: async (world) => {
      const { a, b, toB } = pairOf(world);
      const count = 150;
      const sends = Array.from({ length: count }, (_, i) => a.isend(fill((i * 97) % 12_000, i), toB, 1));
      for (let i = 0; i < count; i++) {
        const { bytes } = await b.probe();
        assert.equal(bytes, (i * 97) % 12_000);
        const data = new Uint8Array(bytes);
        await b.recv(data);
        audit(data, i, `message ${i}`);
      }
      await Request.waitAll(sends);
    },
  },
  {
    name: '19 mprobe: a matched message belongs to its Message',
    ranks: 2,
    run: async (world) => {
      const { a, b, toA, toB } = pairOf(world);
      for (const bytes of [0, 50, 20_000]) {
        const sends = [0, 1, 2].map((i) => a.isend(fill(bytes, i), toB, 6));
        const first = await b.mprobe(toA, 6);
        const second = await b.mprobe(ANY_SOURCE, ANY_TAG);
        await arrived(world, b, toA, 6);
        const third = b.improbe(toA, 6);
        assert(third !== undefined);
        assert.equal(b.improbe(toA, 6), undefined);
        assert.equal(b.iprobe(toA, 6), undefined);
        // Received in another order than matched.
        for (const [i, message] of [
          [2, third],
          [0, first],
          [1, second],
        ] as const) {
          assert.equal(message.status.bytes, bytes);
          const data = new Uint8Array(bytes);
          const status = i === 0 ? await message.irecv(data) : await message.recv(data);
          assert.deepEqual([status.source, status.tag, status.bytes], [toA, 6, bytes]);
          audit(data, i, `message ${i}`);
          await fails('ERR_REQUEST', () => message.irecv(data));
        }
        await Request.waitAll(sends);
      }
    },
  },
  {
    name: '19 mprobe: a posted receive comes first, a waiting mprobe in its order',
    ranks: 2,
    run: async (world) => {
      const { a, b, toA, toB } = pairOf(world);
      const early = b.mprobe(toA, 1);
      const late = b.mprobe(toA, 1);
      const data = new Uint8Array(4);
      const posted = b.irecv(data, toA, 1);
      for (const i of [0, 1, 2]) await a.send(fill(4, i), toB, 1);
      await posted;
      audit(data, 0, 'the posted receive');
      audit(await (await early).recvBytes(), 1, 'the first mprobe');
      audit(await (await late).recvBytes(), 2, 'the second mprobe');
    },
  },
  { name: '20 mprobe_self_free', ranks: 1, skip: 'not applicable: communicators cannot be freed yet', run: async () => undefined },
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
      const { a, b, toA, toB } = pairOf(world);
      for (const tag of [0, 1, 2 ** 16, 2 ** 30, TAG_UB - 1, TAG_UB]) {
        const data = new Uint8Array(3);
        const received = b.recv(data, toA, tag);
        await a.send(fill(3, 1), toB, tag);
        assert.equal((await received).tag, tag);
        await fails('ERR_TAG', a.send(data, toB, TAG_UB + 1));
      }
    },
  },
  {
    name: '24 cancelrecv: the middle of three receives',
    ranks: 2,
    run: async (world) => {
      const { a, b, toA, toB } = pairOf(world);
      for (const bytes of [30, 30_000]) {
        const buffers = [0, 1, 2].map(() => new Uint8Array(bytes));
        const requests = buffers.map((buffer) => b.irecv(buffer, toA, 1));
        assert.equal(requests[1].cancel(), true);
        await fails('ERR_CANCELLED', requests[1]);
        assert.equal(requests[1].status?.cancelled, true);
        await Promise.all([a.send(fill(bytes, 0), toB, 1), a.send(fill(bytes, 1), toB, 1), requests[0], requests[2]]);
        audit(buffers[0], 0, 'the first');
        audit(buffers[2], 1, 'the third');
        assert(buffers[1].every((byte) => byte === 0));
        assert.equal(requests[0].cancel(), false);
      }
    },
  },
  {
    name: '25 cancelanysrc: a wildcard receive',
    ranks: 2,
    run: async (world) => {
      const { a, b, toB } = pairOf(world);
      const lost = b.irecv(new Uint8Array(10), ANY_SOURCE, ANY_TAG);
      assert.equal(lost.cancel(), true);
      const data = new Uint8Array(10);
      await Promise.all([a.send(fill(10, 3), toB, 0), b.recv(data)]);
      audit(data, 3, 'after the cancelled one');
      await fails('ERR_CANCELLED', lost);
    },
  },
  {
    name: '26 rcancel: several at once',
    ranks: 2,
    run: async (world) => {
      const { a, b, toA, toB } = pairOf(world);
      const requests = Array.from({ length: 20 }, (_, i) => b.irecv(new Uint8Array(4), toA, i));
      for (const [i, request] of requests.entries()) if (i % 2 === 0) assert.equal(request.cancel(), true);
      for (let i = 1; i < 20; i += 2) await a.send(fill(4, i), toB, i);
      const ended = await Promise.allSettled(requests);
      assert.deepEqual(
        ended.map(({ status }) => status === 'rejected'),
        requests.map((_, i) => i % 2 === 0),
      );
    },
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
    run: async (world) => {
      const { a, b, toA, toB } = pairOf(world);
      const long = a.isend(fill(50_000, 1), toB, 1);
      const short = a.isend(fill(5, 2), toB, 1);
      assert.deepEqual([long.cancel(), short.cancel()], [false, false]);
      const first = new Uint8Array(50_000);
      const second = new Uint8Array(5);
      await b.recv(first, toA, 1);
      await b.recv(second, toA, 1);
      await Promise.all([long, short]);
      audit(first, 1, 'the long one');
      audit(second, 2, 'the short one');
    },
  },
  {
    name: '35 proberank: ranks, tags, counts and buffers out of range',
    ranks: 2,
    run: async (world) => {
      const { a } = pairOf(world);
      const data = new Uint8Array(4);
      for (const rank of [a.size, -7, 0.5, '0', undefined as never] as number[]) {
        if (rank !== undefined) await fails('ERR_RANK', a.probe(rank));
        await fails('ERR_RANK', a.send(data, rank));
        await fails('ERR_RANK', () => a.isend(data, rank));
      }
      await fails('ERR_RANK', a.send(data, ANY_SOURCE));
      for (const tag of [-2, 2 ** 31, 1.5, 'x', null] as number[]) {
        await fails('ERR_TAG', a.send(data, 0, tag));
        await fails('ERR_TAG', a.recv(data, 0, tag));
      }
      await fails('ERR_TAG', a.send(data, 0, ANY_TAG));
      for (const buffer of ['text', null, 5, {}, [data, 'x']]) {
        await fails('ERR_BUFFER', a.send(buffer as never, 0));
        await fails('ERR_BUFFER', a.recv(buffer as never, 0));
      }
      const detached = new ArrayBuffer(8);
      structuredClone(detached, { transfer: [detached] });
      await fails('ERR_BUFFER', a.send(detached, 0));
      await fails('ERR_BUFFER', a.recv([data.subarray(0, 3), data.subarray(2)], 0));
      await fails('ERR_ARG', a.recv(data, 0, 0, { timeoutMs: -1 }));
      assert.equal(a.iprobe(), undefined);
    },
  },
  {
    name: 'ours: signals and timeouts un-post, and disturb nothing else',
    ranks: 2,
    run: async (world) => {
      const { a, b, toA, toB } = pairOf(world);
      const gone = AbortSignal.abort(new Error('before'));
      await fails('ERR_ABORTED', b.recv(new Uint8Array(4), toA, 1, { signal: gone }));
      await fails('ERR_ABORTED', a.send(new Uint8Array(4), toB, 1, { signal: gone }));
      const stop = new AbortController();
      const aborted = b.irecv(new Uint8Array(4), toA, 1, { signal: stop.signal });
      const timed = b.recv(new Uint8Array(4), toA, 1, { timeoutMs: 5 });
      const probe = b.probe(toA, 1, { timeoutMs: 5 });
      const matchedProbe = b.mprobe(toA, 1, { signal: stop.signal });
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
      const received = b.recv(data, toA, 1, { signal: late.signal, timeoutMs: 60_000 });
      await a.send(fill(4, 1), toB, 1);
      assert.equal((await received).bytes, 4);
      late.abort();
      audit(data, 1, 'after all that');
      // One that has matched goes on to its end.
      const long = new Uint8Array(500_000);
      const signal = new AbortController();
      const request = b.irecv(long, toA, 2, { signal: signal.signal });
      const sent = a.isend(fill(500_000, 2), toB, 2);
      // What was sent later is there, so this one has matched.
      const marker = a.isend(fill(1, 3), toB, 9);
      await arrived(world, b, toA, 9);
      signal.abort();
      await Promise.all([request, sent, marker, b.recv(new Uint8Array(1), toA, 9)]);
      audit(long, 2, 'matched before the abort');
    },
  },
  {
    name: 'ours: messages() takes one at a time and stops when it is left',
    ranks: 2,
    run: async (world) => {
      const { a, b, toA, toB } = pairOf(world);
      const sends = Array.from({ length: 6 }, (_, i) => a.isend(fill(i * 3000, i), toB, 5));
      const seen: number[] = [];
      for await (const { data, status } of b.messages(toA, 5)) {
        audit(data, seen.length, `message ${seen.length}`);
        seen.push(status.bytes);
        if (seen.length === 4) break;
      }
      assert.deepEqual(seen, [0, 3000, 6000, 9000]);
      for (const i of [4, 5]) {
        const data = new Uint8Array(i * 3000);
        await b.recv(data, toA, 5);
        audit(data, i, `message ${i}, left where it was`);
      }
      await Request.waitAll(sends);
      const waiting = b.messages(toA, 5);
      const next = waiting.next();
      await waiting.return?.();
      assert.equal((await next).done, true);
      const stop = new AbortController();
      const aborted = b.messages(toA, 5, { signal: stop.signal }).next();
      stop.abort();
      await fails('ERR_ABORTED', aborted);
    },
  },
  {
    name: 'ours: status.count in elements',
    ranks: 2,
    run: async (world) => {
      const { a, b, toA, toB } = pairOf(world);
      const data = new Uint8Array(64);
      const [status] = await Promise.all([b.recv(data, toA), a.send(new Float64Array(3), toB)]);
      assert.deepEqual([status.count(Float64Array), status.count(Int16Array), status.count(5)], [3, 12, UNDEFINED]);
    },
  },
];
