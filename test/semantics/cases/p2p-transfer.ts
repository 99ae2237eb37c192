// Cases of the point-to-point suite: transfers of all sizes, in both directions, many at a time.
import { strict as assert } from 'node:assert';
import { vector } from '../../../src/mpi/buffers.ts';
import { ANY_SOURCE, ANY_TAG, PROC_NULL } from '../../../src/mpi/constants.ts';
import { Request } from '../../../src/mpi/request.ts';
import { Prng } from '../../../src/util/prng.ts';
import { arrived, audit, fails, fill, inPair, inRoles, type Part, pairOf, type Role, SIZES } from '../../support/p2p-audit.ts';
import type { P2pWorld } from '../../support/p2p-worlds.ts';
import type { P2pCase } from '../p2p-suite.ts';

/** Everybody to everybody: `count` messages of `bytes` each, all at once, into receives that are posted. */
function allToAll(world: P2pWorld, count: number, bytes: number): Promise<void> {
  const role: Role = async ({ comm, meet }) => {
    const requests: Request[] = [];
    const checks: (() => void)[] = [];
    for (let peer = 0; peer < comm.size; peer++) {
      for (let i = 0; i < count; i++) {
        const data = new Uint8Array(bytes);
        requests.push(comm.irecv(data, peer, 7));
        checks.push(() => audit(data, peer * 1000 + i, `message ${i} of rank ${peer} at rank ${comm.rank}`));
      }
    }
    await meet();
    for (let i = 0; i < count; i++) {
      for (let peer = 0; peer < comm.size; peer++) requests.push(comm.isend(fill(bytes, comm.rank * 1000 + i), peer, 7));
    }
    await Request.waitAll(requests);
    for (const check of checks) check();
  };
  return inRoles(
    world,
    Array.from({ length: world.comms[0].size }, () => role),
  );
}

export const TRANSFER_CASES: readonly P2pCase[] = [
  {
    name: '1 sendrecv1: all sizes, expected and unexpected',
    ranks: 2,
    run: (world) =>
      inPair(
        world,
        async ({ comm, peer, meet }) => {
          for (const [i, bytes] of SIZES.entries()) {
            await meet();
            await comm.send(fill(bytes, i), peer, i);
            await comm.send(fill(bytes, i + 100), peer, i);
          }
        },
        async ({ comm, peer, meet }) => {
          for (const [i, bytes] of SIZES.entries()) {
            const expected = new Uint8Array(bytes);
            const received = comm.recv(expected, peer, i);
            await meet();
            assert.equal((await received).bytes, bytes);
            audit(expected, i, `${bytes} bytes, expected`);
            await arrived(world, comm, peer, i);
            const unexpected = new Uint8Array(bytes);
            const status = await comm.recv(unexpected, peer, i);
            assert.deepEqual([status.source, status.tag, status.bytes], [peer, i, bytes]);
            audit(unexpected, i + 100, `${bytes} bytes, unexpected`);
          }
        },
      ),
  },
  {
    name: '2 sendrecv2: large transfers head to head',
    ranks: 2,
    run: async (world) => {
      const role =
        (own: 0 | 1): Role =>
        async ({ comm, peer }) => {
          const exchanges = [0, 1, 2].map(async (i) => {
            const [toB, toA] = [10 + i, 20 + i];
            const data = new Uint8Array(700_001);
            await comm.sendrecv(fill(data.length, i * 2 + own), peer, own === 0 ? toB : toA, data, peer, own === 0 ? toA : toB);
            audit(data, i * 2 + 1 - own, `head to head, exchange ${i}`);
          });
          await Promise.all(exchanges);
        };
      await inPair(world, role(0), role(1));
    },
  },
  {
    name: '3 send_tests: 64 cases of side, size, order, wildcards and mode',
    ranks: 2,
    run: async (world) => {
      const role =
        (own: 0 | 1): Role =>
        async ({ comm, peer, meet }) => {
          for (let bits = 0; bits < 64; bits++) {
            const has = (bit: number) => (bits & (1 << bit)) !== 0;
            const bytes = has(1) ? 40_000 : 400;
            const tag = 100 + bits;
            if (own === (has(0) ? 0 : 1)) {
              // Bit 5: the message is there before its receive is posted.
              if (!has(5)) await meet();
              await (has(4) ? comm.ssend(fill(bytes, bits), peer, tag) : comm.send(fill(bytes, bits), peer, tag));
              continue;
            }
            const data = new Uint8Array(bytes);
            if (has(5)) await arrived(world, comm, peer, tag);
            const received = comm.recv(data, has(2) ? ANY_SOURCE : peer, has(3) ? ANY_TAG : tag);
            if (!has(5)) await meet();
            const status = await received;
            assert.deepEqual([status.source, status.tag, status.bytes], [peer, tag, bytes], `case ${bits}`);
            audit(data, bits, `case ${bits}`);
          }
        };
      await inPair(world, role(0), role(1));
    },
  },
  {
    name: '6 precv_anysrc: persistent receives with wildcards, unexpected and expected',
    ranks: 2,
    run: async (world) => {
      const isExpected = (round: number) => round % 2 === 0;
      const sizes = [64, 32 * 1024, 2 * 1024 * 1024];
      await inPair(
        world,
        async ({ comm, peer, meet }) => {
          for (const bytes of sizes) {
            for (let round = 0; round < 4; round++) {
              if (isExpected(round)) await meet();
              await comm.isend(fill(bytes, round), peer, round);
            }
          }
        },
        async ({ comm, peer, meet }) => {
          for (const bytes of sizes) {
            const data = new Uint8Array(bytes);
            const request = comm.recvInit(data, ANY_SOURCE, ANY_TAG);
            for (let round = 0; round < 4; round++) {
              if (!isExpected(round)) await arrived(world, comm, peer, round);
              request.start();
              if (isExpected(round)) await meet();
              const status = await request;
              assert.deepEqual([status.source, status.tag, status.bytes], [peer, round, bytes]);
              audit(data, round, `${bytes} bytes, round ${round}`);
            }
          }
        },
      );
    },
  },
  {
    name: '7 huge_anysrc: large transfers of several ranks into wildcards',
    alwaysDrawn: true,
    ranks: 3,
    run: async (world) => {
      const bytes = 500_000;
      const each = 4;
      const sender: Role = async ({ comm }) => {
        await Request.waitAll(Array.from({ length: each }, (_, i) => comm.isend(fill(bytes, comm.rank * 10 + i), 0, i)));
      };
      const receiver: Role = async ({ comm }) => {
        const seen = new Set<string>();
        const receives = Array.from({ length: 2 * each }, async () => {
          const data = new Uint8Array(bytes);
          const { source, tag } = await comm.recv(data);
          audit(data, source * 10 + tag, `tag ${tag} of rank ${source}`);
          seen.add(`${source} ${tag}`);
        });
        await Promise.all(receives);
        assert.equal(seen.size, 2 * each);
      };
      await inRoles(world, [receiver, sender, sender]);
    },
  },
  {
    name: '8 huge_dupcomm: large transfers with one tag over several communicators at once',
    ranks: 2,
    notAlone: true,
    run: (world) => {
      const bytes = 400_000;
      const each = 3;
      const twins = async ({ comm }: Part) => [comm, await comm.dup(), await comm.dup()];
      return inPair(
        world,
        async (part) => {
          const comms = await twins(part);
          const sends = comms.flatMap((comm, which) =>
            Array.from({ length: each }, (_, i) => comm.isend(fill(bytes, which * 10 + i), part.peer, 5)),
          );
          await Request.waitAll(sends);
          for (const comm of comms.slice(1)) await comm.free();
        },
        async (part) => {
          const comms = await twins(part);
          // The other way round than they are sent: each waits in its own communicator.
          for (const which of [2, 0, 1]) {
            for (let i = 0; i < each; i++) {
              const data = new Uint8Array(bytes);
              await comms[which].recv(data, part.peer, 5);
              audit(data, which * 10 + i, `message ${i} of communicator ${which}`);
            }
          }
          for (const comm of comms.slice(1)) await comm.free();
        },
      );
    },
  },
  {
    name: '9 huge_ssend: a large synchronous send',
    ranks: 2,
    run: (world) =>
      inPair(
        world,
        async ({ comm, peer, meet }) => {
          const request = comm.issend(fill(3_000_000, 1), peer, 3);
          await meet();
          assert.equal(request.test(), false, 'not complete before the receive');
          await meet();
          await request;
        },
        async ({ comm, peer, meet }) => {
          await arrived(world, comm, peer, 3);
          await meet();
          await meet();
          const data = new Uint8Array(3_000_000);
          await comm.recv(data, peer, 3);
          audit(data, 1, 'huge ssend');
        },
      ),
  },
  {
    name: '10 huge_underflow: one byte into a huge receive',
    ranks: 2,
    run: (world) =>
      inPair(
        world,
        async ({ comm, peer, meet }) => {
          await meet();
          await comm.send(fill(1, 5), peer, 0);
        },
        async ({ comm, peer, meet }) => {
          const data = new Uint8Array(4_000_000).fill(9);
          const received = comm.recv(data, peer, 0);
          await meet();
          assert.equal((await received).bytes, 1);
          audit(data.subarray(0, 1), 5, 'the byte');
          assert(
            data.subarray(1).every((byte) => byte === 9),
            'the rest is untouched',
          );
        },
      ),
  },
  { name: '11 sendall: everybody to everybody', alwaysDrawn: true, ranks: 4, run: (world) => allToAll(world, 3, 30_000) },
  { name: '12 sendflood: eight ranks, many short messages', alwaysDrawn: true, ranks: 8, run: (world) => allToAll(world, 25, 200) },
  {
    name: '13 many_isend, manylmt: many outstanding, short and long',
    alwaysDrawn: true,
    ranks: 2,
    run: async (world) => {
      const sizes = Array.from({ length: 300 }, (_, i) => (i % 3 === 0 ? 20_000 + i : 100 + i));
      await inPair(
        world,
        async ({ comm, peer }) => {
          await Request.waitAll(sizes.map((bytes, i) => comm.isend(fill(bytes, i), peer, i)));
        },
        async ({ comm, peer }) => {
          const buffers = sizes.map((bytes) => new Uint8Array(bytes));
          // In the reverse order: every message has its own tag.
          const receives = buffers.map((_, i) => comm.irecv(buffers[sizes.length - 1 - i], peer, sizes.length - 1 - i));
          await Request.waitAll(receives);
          for (const [i, buffer] of buffers.entries()) audit(buffer, i, `message ${i}`);
        },
      );
    },
  },
  {
    name: '14 eagerdt: hundreds of short messages, none expected',
    ranks: 2,
    run: (world) =>
      inPair(
        world,
        async ({ comm, peer, meet }) => {
          for (let i = 0; i < 600; i++) await comm.send(fill(i, i), peer, 4);
          await meet();
        },
        async ({ comm, peer, meet }) => {
          await meet();
          for (let i = 0; i < 600; i++) {
            const data = new Uint8Array(i);
            assert.equal((await comm.recv(data, peer, 4)).bytes, i);
            audit(data, i, `message ${i}`);
          }
        },
      ),
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
    run: (world) =>
      inPair(
        world,
        async ({ comm, peer }) => {
          for (const bytes of [100, 50_000]) {
            const one = fill(bytes, 1);
            assert.equal((await comm.sendrecvReplace(one, peer, 1, peer, 2)).tag, 2);
            audit(one, 2, 'replaced at a');
            const nothing = comm.sendrecv(new Uint8Array(0), PROC_NULL, 0, new Uint8Array(0), PROC_NULL);
            await Promise.all([comm.isend(fill(bytes, 3), peer, 5), nothing]);
          }
        },
        async ({ comm, peer }) => {
          for (const bytes of [100, 50_000]) {
            const other = fill(bytes, 2);
            assert.equal((await comm.sendrecvReplace(other, peer, 2, peer, 1)).tag, 1);
            audit(other, 1, 'replaced at b');
            const got = new Uint8Array(bytes);
            await comm.irecv(got, peer, 5);
            audit(got, 3, 'isend with irecv');
          }
        },
      ),
  },
  {
    name: '23 large_message: more than 2 GiB',
    ranks: 2,
    ...(process.env.MULTIRAIL_TEST_HUGE === '1' ? {} : { skip: 'takes 5 GB of memory and a minute: set MULTIRAIL_TEST_HUGE=1' }),
    calmOnly: 'it takes too long',
    oneProcess: 'it compares the memory of both ends',
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
      const shapes = [200, 4096, 4097, 100_000].flatMap((bytes) =>
        [0, 100, bytes - 1].flatMap((room) => [true, false].map((isExpected) => ({ bytes, room, isExpected }))),
      );
      await inPair(
        world,
        async ({ comm, peer, meet }) => {
          for (const { bytes, isExpected } of shapes) {
            if (isExpected) await meet();
            await comm.isend(fill(bytes, 1), peer, 8);
            await comm.send(fill(bytes, 2), peer, 8);
          }
        },
        async ({ comm, peer, meet }) => {
          for (const { bytes, room, isExpected } of shapes) {
            const data = new Uint8Array(room);
            if (!isExpected) await arrived(world, comm, peer, 8);
            const request = comm.irecv(data, peer, 8);
            if (isExpected) await meet();
            await fails('ERR_TRUNCATE', request);
            assert.equal(request.status?.bytes, room);
            audit(data, 1, `the first ${room} of ${bytes} bytes`);
            const next = new Uint8Array(bytes);
            await comm.recv(next, peer, 8);
            audit(next, 2, 'the message behind it');
          }
        },
      );
    },
  },
  {
    name: '32 truncmsg_mrecv: truncation of a matched probe',
    ranks: 2,
    run: (world) =>
      inPair(
        world,
        async ({ comm, peer }) => {
          for (const bytes of [300, 30_000]) await comm.isend(fill(bytes, 1), peer, 8);
        },
        async ({ comm, peer }) => {
          for (const bytes of [300, 30_000]) {
            const message = await comm.mprobe(peer, 8);
            assert.equal(message.status.bytes, bytes);
            const data = new Uint8Array(17);
            await fails('ERR_TRUNCATE', message.recv(data));
            audit(data, 1, 'the first bytes');
          }
        },
      ),
  },
  {
    name: '33 truncmsg2: mismatched lengths in sendrecv',
    ranks: 2,
    run: (world) =>
      inPair(
        world,
        async ({ comm, peer }) => {
          await fails('ERR_TRUNCATE', comm.sendrecv(fill(10_000, 1), peer, 1, new Uint8Array(50), peer, 2));
        },
        async ({ comm, peer }) => {
          const data = new Uint8Array(10_000);
          await comm.sendrecv(fill(20_000, 2), peer, 2, data, peer, 1);
          audit(data, 1, 'where it fits');
        },
      ),
  },
  {
    name: 'ours: scattered buffers on both sides, vectors, shared memory',
    ranks: 2,
    run: async (world) => {
      const rows = 64;
      const columns = 40;
      await inPair(
        world,
        async ({ comm, peer }) => {
          const matrix = Float64Array.from({ length: rows * columns }, (_, i) => i);
          await comm.send(vector(matrix, rows, 1, columns), peer, 0);
          const whole = fill(100_000, 4);
          await comm.send([whole.subarray(0, 7), whole.subarray(7, 70_000), new Uint8Array(0), whole.subarray(70_000)], peer, 1);
        },
        async ({ comm, peer }) => {
          const column = new Float64Array(rows);
          await comm.recv(column, peer, 0);
          assert.deepEqual(
            [...column],
            Array.from({ length: rows }, (_, i) => i * columns),
          );
          const shared = new SharedArrayBuffer(60_000);
          const tail = new DataView(new ArrayBuffer(50_000), 3, 39_990);
          const few = new Uint8Array(10);
          await comm.recv([shared, few, tail], peer, 1);
          const got = Buffer.concat([new Uint8Array(shared), few, new Uint8Array(tail.buffer, tail.byteOffset, tail.byteLength)]);
          audit(got, 4, 'gathered and scattered');
        },
      );
    },
  },
  {
    name: 'ours: order of one tag across eager, rendezvous and rails',
    ranks: 2,
    run: async (world) => {
      const prng = new Prng('order');
      const sizes = Array.from({ length: 250 }, () => (prng.below(3) === 0 ? prng.between(4097, 40_000) : prng.below(4097)));
      await inPair(
        world,
        async ({ comm, peer }) => {
          await Request.waitAll(sizes.map((bytes, i) => comm.isend(fill(bytes, i), peer, 2)));
        },
        async ({ comm, peer }) => {
          for (const [i, bytes] of sizes.entries()) {
            const data = new Uint8Array(40_000);
            const status = await comm.recv(data, i % 3 === 0 ? ANY_SOURCE : peer, i % 2 === 0 ? ANY_TAG : 2);
            assert.equal(status.bytes, bytes, `message ${i}`);
            audit(data.subarray(0, bytes), i, `message ${i}`);
          }
        },
      );
    },
  },
  {
    name: 'ours: objects with large buffers between other messages',
    ranks: 2,
    run: async (world) => {
      const big = new Float32Array(fill(400_000, 7).buffer);
      const value = {
        name: 'x',
        when: new Date(5),
        big,
        again: big,
        bare: fill(80_000, 8).buffer,
        map: new Map([[1, fill(10, 9)]]),
        list: [1, undefined, 'é', 7n],
      };
      await inPair(
        world,
        async ({ comm, peer }) => {
          await Promise.all([
            comm.send(fill(5, 1), peer, 3),
            comm.sendObject(value, peer, 3),
            comm.send(fill(6, 2), peer, 3),
            comm.sendObject('short', peer, 3),
          ]);
          await comm.send(fill(100, 1), peer, 3);
        },
        async ({ comm, peer }) => {
          const first = new Uint8Array(5);
          await comm.recv(first, peer, 3);
          const { data, status } = await comm.recvObject<typeof value>(peer, 3);
          const second = new Uint8Array(6);
          await comm.recv(second, peer, 3);
          const short = await comm.recvObject();
          audit(first, 1, 'before the object');
          audit(second, 2, 'after the object');
          assert.deepEqual([status.source, status.tag, short.data], [peer, 3, 'short']);
          assert.deepEqual(data, value);
          assert.equal(data.big.buffer, data.again.buffer);
          await fails('ERR_ARG', comm.recvObject(peer, 3));
        },
      );
    },
  },
];
