// Cases of the point-to-point suite: transfers of all sizes, in both directions, many at a time.
import { strict as assert } from 'node:assert';
import { vector } from '../../src/mpi/buffers.ts';
import { ANY_SOURCE, ANY_TAG, PROC_NULL } from '../../src/mpi/constants.ts';
import { Request } from '../../src/mpi/request.ts';
import { Prng } from '../../src/util/prng.ts';
import { arrived, audit, fails, fill, pairOf, SIZES } from './p2p-audit.ts';
import type { P2pCase } from './p2p-suite.ts';
import type { P2pWorld } from './p2p-worlds.ts';

/** Everybody to everybody: `count` messages of `bytes` each, all at once. */
async function allToAll(world: P2pWorld, count: number, bytes: number): Promise<void> {
  const { comms } = world;
  const requests: Request[] = [];
  const checks: (() => void)[] = [];
  for (const comm of comms) {
    for (const peer of comms) {
      for (let i = 0; i < count; i++) {
        const data = new Uint8Array(bytes);
        requests.push(comm.irecv(data, peer.rank, 7));
        checks.push(() => audit(data, peer.rank * 1000 + i, `message ${i} of rank ${peer.rank} at rank ${comm.rank}`));
      }
    }
  }
  for (let i = 0; i < count; i++) {
    for (const comm of comms) for (const peer of comms) requests.push(comm.isend(fill(bytes, comm.rank * 1000 + i), peer.rank, 7));
  }
  await Request.waitAll(requests);
  for (const check of checks) check();
}

export const TRANSFER_CASES: readonly P2pCase[] = [
  {
    name: '1 sendrecv1: all sizes, expected and unexpected',
    ranks: 2,
    run: async (world) => {
      const { a, b, toA, toB } = pairOf(world);
      for (const [i, bytes] of SIZES.entries()) {
        const expected = new Uint8Array(bytes);
        const received = b.recv(expected, toA, i);
        await a.send(fill(bytes, i), toB, i);
        assert.equal((await received).bytes, bytes);
        audit(expected, i, `${bytes} bytes, expected`);
        const sent = a.send(fill(bytes, i + 100), toB, i);
        await arrived(world, b, toA, i);
        const unexpected = new Uint8Array(bytes);
        const status = await b.recv(unexpected, toA, i);
        await sent;
        assert.deepEqual([status.source, status.tag, status.bytes], [toA, i, bytes]);
        audit(unexpected, i + 100, `${bytes} bytes, unexpected`);
      }
    },
  },
  {
    name: '2 sendrecv2: large transfers head to head',
    ranks: 2,
    run: async (world) => {
      const { a, b, toA, toB } = pairOf(world);
      const bytes = 700_001;
      await Promise.all(
        [0, 1, 2].flatMap((i) => [exchange(a, toB, 10 + i, 20 + i, i * 2, i * 2 + 1), exchange(b, toA, 20 + i, 10 + i, i * 2 + 1, i * 2)]),
      );
      async function exchange(comm: typeof a, peer: number, sendTag: number, recvTag: number, own: number, theirs: number): Promise<void> {
        const data = new Uint8Array(bytes);
        await comm.sendrecv(fill(bytes, own), peer, sendTag, data, peer, recvTag);
        audit(data, theirs, `head to head, tag ${recvTag}`);
      }
    },
  },
  {
    name: '3 send_tests: 64 cases of side, size, order, wildcards and mode',
    ranks: 2,
    run: async (world) => {
      const { a, b, toA, toB } = pairOf(world);
      for (let bits = 0; bits < 64; bits++) {
        const has = (bit: number) => (bits & (1 << bit)) !== 0;
        const [from, to, source, dest] = has(0) ? [a, b, toA, toB] : [b, a, toB, toA];
        const bytes = has(1) ? 40_000 : 400;
        const tag = 100 + bits;
        const data = new Uint8Array(bytes);
        const receive = () => to.recv(data, has(2) ? ANY_SOURCE : source, has(3) ? ANY_TAG : tag);
        const send = () => (has(4) ? from.ssend(fill(bytes, bits), dest, tag) : from.send(fill(bytes, bits), dest, tag));
        let status: Awaited<ReturnType<typeof receive>>;
        if (has(5)) {
          const sent = send();
          await arrived(world, to, source, tag);
          status = await receive();
          await sent;
        } else {
          const received = receive();
          await send();
          status = await received;
        }
        assert.deepEqual([status.source, status.tag, status.bytes], [source, tag, bytes], `case ${bits}`);
        audit(data, bits, `case ${bits}`);
      }
    },
  },
  {
    name: '6 precv_anysrc: persistent receives with wildcards, unexpected and expected',
    ranks: 2,
    run: async (world) => {
      const { a, b, toA, toB } = pairOf(world);
      for (const bytes of [64, 32 * 1024, 2 * 1024 * 1024]) {
        const data = new Uint8Array(bytes);
        const request = b.recvInit(data, ANY_SOURCE, ANY_TAG);
        for (let round = 0; round < 4; round++) {
          const expected = round % 2 === 0;
          if (expected) request.start();
          const sent = a.isend(fill(bytes, round), toB, round);
          if (!expected) {
            await arrived(world, b, toA, round);
            request.start();
          }
          const status = await request;
          await sent;
          assert.deepEqual([status.source, status.tag, status.bytes], [toA, round, bytes]);
          audit(data, round, `${bytes} bytes, round ${round}`);
        }
      }
    },
  },
  {
    name: '7 huge_anysrc: large transfers of several ranks into wildcards',
    alwaysDrawn: true,
    ranks: 3,
    run: async ({ comms }) => {
      const bytes = 500_000;
      const sends = comms.slice(1).flatMap((comm) => [0, 1, 2, 3].map((i) => comm.isend(fill(bytes, comm.rank * 10 + i), 0, i)));
      const seen = new Map<string, boolean>();
      const receives = sends.map(async () => {
        const data = new Uint8Array(bytes);
        const { source, tag } = await comms[0].recv(data);
        audit(data, source * 10 + tag, `tag ${tag} of rank ${source}`);
        seen.set(`${source} ${tag}`, true);
      });
      await Promise.all([...receives, Request.waitAll(sends)]);
      assert.equal(seen.size, sends.length);
    },
  },
  {
    name: '8 huge_dupcomm',
    ranks: 2,
    skip: 'not applicable: there is one communicator, dup() comes with the collectives',
    run: async () => undefined,
  },
  {
    name: '9 huge_ssend: a large synchronous send',
    ranks: 2,
    run: async (world) => {
      const { a, b, toA, toB } = pairOf(world);
      const bytes = 3_000_000;
      const request = a.issend(fill(bytes, 1), toB, 3);
      await arrived(world, b, toA, 3);
      assert.equal(request.test(), false, 'not complete before the receive');
      const data = new Uint8Array(bytes);
      await b.recv(data, toA, 3);
      await request;
      audit(data, 1, 'huge ssend');
    },
  },
  {
    name: '10 huge_underflow: one byte into a huge receive',
    ranks: 2,
    run: async (world) => {
      const { a, b, toA, toB } = pairOf(world);
      const data = new Uint8Array(4_000_000).fill(9);
      const received = b.recv(data, toA, 0);
      await a.send(fill(1, 5), toB, 0);
      assert.equal((await received).bytes, 1);
      audit(data.subarray(0, 1), 5, 'the byte');
      assert(
        data.subarray(1).every((byte) => byte === 9),
        'the rest is untouched',
      );
    },
  },
  { name: '11 sendall: everybody to everybody', alwaysDrawn: true, ranks: 4, run: (world) => allToAll(world, 3, 30_000) },
  { name: '12 sendflood: eight ranks, many short messages', alwaysDrawn: true, ranks: 8, run: (world) => allToAll(world, 25, 200) },
  {
    name: '13 many_isend, manylmt: many outstanding, short and long',
    alwaysDrawn: true,
    ranks: 2,
    run: async (world) => {
      const { a, b, toA, toB } = pairOf(world);
      const sizes = Array.from({ length: 300 }, (_, i) => (i % 3 === 0 ? 20_000 + i : 100 + i));
      const sends = sizes.map((bytes, i) => a.isend(fill(bytes, i), toB, i));
      const buffers = sizes.map((bytes) => new Uint8Array(bytes));
      // In the reverse order: every message has its own tag.
      const receives = buffers.map((_, i) => b.irecv(buffers[sizes.length - 1 - i], toA, sizes.length - 1 - i));
      await Request.waitAll([...sends, ...receives]);
      for (const [i, buffer] of buffers.entries()) audit(buffer, i, `message ${i}`);
    },
  },
  {
    name: '14 eagerdt: hundreds of short messages, none expected',
    ranks: 2,
    run: async (world) => {
      const { a, b, toA, toB } = pairOf(world);
      for (let i = 0; i < 600; i++) await a.send(fill(i, i), toB, 4);
      for (let i = 0; i < 600; i++) {
        const data = new Uint8Array(i);
        assert.equal((await b.recv(data, toA, 4)).bytes, i);
        audit(data, i, `message ${i}`);
      }
    },
  },
  {
    name: '15 isendself, sendself, isendselfprobe: a rank with itself',
    ranks: 1,
    run: async (world) => {
      const [comm] = world.comms;
      for (const [i, bytes] of SIZES.entries()) {
        const sent = comm.isend(fill(bytes, i), comm.rank, i);
        assert.equal((await comm.probe(comm.rank, i)).bytes, bytes);
        const data = new Uint8Array(bytes);
        await comm.recv(data, comm.rank, i);
        await sent;
        audit(data, i, `${bytes} bytes to itself`);
        const expected = new Uint8Array(bytes);
        const received = comm.irecv(expected);
        await comm.send(fill(bytes, i), comm.rank, i);
        await received;
        audit(expected, i, `${bytes} bytes to itself, expected`);
      }
    },
  },
  {
    name: '16 isendirecv, isendrecv, isendrecv_replace',
    ranks: 2,
    run: async (world) => {
      const { a, b, toA, toB } = pairOf(world);
      for (const bytes of [100, 50_000]) {
        const one = fill(bytes, 1);
        const other = fill(bytes, 2);
        const statuses = await Promise.all([a.sendrecvReplace(one, toB, 1, toB, 2), b.sendrecvReplace(other, toA, 2, toA, 1)]);
        assert.deepEqual(
          statuses.map((status) => status.tag),
          [2, 1],
        );
        audit(one, 2, 'replaced at a');
        audit(other, 1, 'replaced at b');
        const got = new Uint8Array(bytes);
        await Promise.all([
          a.isend(fill(bytes, 3), toB, 5),
          a.sendrecv(new Uint8Array(0), PROC_NULL, 0, new Uint8Array(0), PROC_NULL),
          b.irecv(got, toA, 5),
        ]);
        audit(got, 3, 'isend with irecv');
      }
    },
  },
  {
    name: '23 large_message: more than 2 GiB',
    ranks: 2,
    ...(process.env.MULTIRAIL_TEST_HUGE === '1' ? {} : { skip: 'takes 5 GB of memory and a minute: set MULTIRAIL_TEST_HUGE=1' }),
    calmOnly: 'it takes too long',
    params: { pml_frag_bytes: '1m' },
    run: async (world) => {
      const { a, b, toA, toB } = pairOf(world);
      const bytes = 2 ** 31 + 4099;
      const data = new Uint8Array(bytes);
      const words = new Uint32Array(data.buffer, 0, Math.floor(bytes / 4));
      for (let i = 0; i < words.length; i += 1021) words[i] = i;
      const got = new Uint8Array(bytes);
      const received = b.recv(got, toA, 0);
      await a.send(data, toB, 0);
      assert.equal((await received).bytes, bytes);
      for (let at = 0; at < bytes; at += 2 ** 28) {
        assert.equal(Buffer.compare(data.subarray(at, at + 2 ** 28), got.subarray(at, at + 2 ** 28)), 0, `from byte ${at}`);
      }
    },
  },
  {
    name: '31 truncmsg1: truncation, short and long, then further traffic',
    ranks: 2,
    run: async (world) => {
      const { a, b, toA, toB } = pairOf(world);
      for (const bytes of [200, 4096, 4097, 100_000]) {
        for (const room of [0, 100, bytes - 1]) {
          for (const expected of [true, false]) {
            const data = new Uint8Array(room);
            const early = expected ? b.irecv(data, toA, 8) : undefined;
            const sent = a.isend(fill(bytes, 1), toB, 8);
            if (!expected) await arrived(world, b, toA, 8);
            const request = early ?? b.irecv(data, toA, 8);
            await fails('ERR_TRUNCATE', request);
            assert.equal(request.status?.bytes, room);
            await sent;
            audit(data, 1, `the first ${room} of ${bytes} bytes`);
            const next = new Uint8Array(bytes);
            await Promise.all([a.send(fill(bytes, 2), toB, 8), b.recv(next, toA, 8)]);
            audit(next, 2, 'the message behind it');
          }
        }
      }
    },
  },
  {
    name: '32 truncmsg_mrecv: truncation of a matched probe',
    ranks: 2,
    run: async (world) => {
      const { a, b, toA, toB } = pairOf(world);
      for (const bytes of [300, 30_000]) {
        const sent = a.isend(fill(bytes, 1), toB, 8);
        const message = await b.mprobe(toA, 8);
        const data = new Uint8Array(17);
        await fails('ERR_TRUNCATE', message.recv(data));
        await sent;
        audit(data, 1, 'the first bytes');
      }
    },
  },
  {
    name: '33 truncmsg2: mismatched lengths in sendrecv',
    ranks: 2,
    run: async (world) => {
      const { a, b, toA, toB } = pairOf(world);
      const [left, right] = await Promise.allSettled([
        a.sendrecv(fill(10_000, 1), toB, 1, new Uint8Array(50), toB, 2),
        b.sendrecv(fill(20_000, 2), toA, 2, new Uint8Array(10_000), toA, 1),
      ]);
      assert.equal(left.status, 'rejected');
      await fails('ERR_TRUNCATE', Promise.reject((left as PromiseRejectedResult).reason));
      assert.equal(right.status, 'fulfilled');
    },
  },
  {
    name: 'ours: scattered buffers on both sides, vectors, shared memory',
    ranks: 2,
    run: async (world) => {
      const { a, b, toA, toB } = pairOf(world);
      const rows = 64;
      const columns = 40;
      const matrix = Float64Array.from({ length: rows * columns }, (_, i) => i);
      const column = new Float64Array(rows);
      await Promise.all([a.send(vector(matrix, rows, 1, columns), toB, 0), b.recv(column, toA, 0)]);
      assert.deepEqual(
        [...column],
        Array.from({ length: rows }, (_, i) => i * columns),
      );
      const whole = fill(100_000, 4);
      const shared = new SharedArrayBuffer(60_000);
      const tail = new DataView(new ArrayBuffer(50_000), 3, 39_990);
      const few = new Uint8Array(10);
      await Promise.all([
        a.send([whole.subarray(0, 7), whole.subarray(7, 70_000), new Uint8Array(0), whole.subarray(70_000)], toB, 1),
        b.recv([shared, few, tail], toA, 1),
      ]);
      const got = Buffer.concat([new Uint8Array(shared), few, new Uint8Array(tail.buffer, tail.byteOffset, tail.byteLength)]);
      audit(got, 4, 'gathered and scattered');
    },
  },
  {
    name: 'ours: order of one tag across eager, rendezvous and rails',
    ranks: 2,
    run: async (world) => {
      const { a, b, toA, toB } = pairOf(world);
      const prng = new Prng('order');
      const sizes = Array.from({ length: 250 }, () => (prng.below(3) === 0 ? prng.between(4097, 40_000) : prng.below(4097)));
      const sending = (async () => {
        const requests = sizes.map((bytes, i) => a.isend(fill(bytes, i), toB, 2));
        await Request.waitAll(requests);
      })();
      const receiving = (async () => {
        for (const [i, bytes] of sizes.entries()) {
          const data = new Uint8Array(40_000);
          const status = await b.recv(data, i % 3 === 0 ? ANY_SOURCE : toA, i % 2 === 0 ? ANY_TAG : 2);
          assert.equal(status.bytes, bytes, `message ${i}`);
          audit(data.subarray(0, bytes), i, `message ${i}`);
        }
      })();
      await Promise.all([sending, receiving]);
    },
  },
  {
    name: 'ours: objects with large buffers between other messages',
    ranks: 2,
    run: async (world) => {
      const { a, b, toA, toB } = pairOf(world);
      const big = new Float32Array(fill(400_000, 7).buffer);
      const bare = fill(80_000, 8).buffer;
      const value = {
        name: 'x',
        when: new Date(5),
        big,
        again: big,
        bare,
        map: new Map([[1, fill(10, 9)]]),
        list: [1, undefined, 'é', 7n],
      };
      const sent = [a.send(fill(5, 1), toB, 3), a.sendObject(value, toB, 3), a.send(fill(6, 2), toB, 3), a.sendObject('short', toB, 3)];
      const first = new Uint8Array(5);
      await b.recv(first, toA, 3);
      const { data, status } = await b.recvObject<typeof value>(toA, 3);
      const second = new Uint8Array(6);
      await b.recv(second, toA, 3);
      const short = await b.recvObject();
      await Promise.all(sent);
      audit(first, 1, 'before the object');
      audit(second, 2, 'after the object');
      assert.deepEqual([status.source, status.tag, short.data], [toA, 3, 'short']);
      assert.deepEqual(data, value);
      assert.equal(data.big.buffer, data.again.buffer);
      await a.send(fill(100, 1), toB, 3);
      await fails('ERR_ARG', b.recvObject(toA, 3));
    },
  },
];
