// Cases of process failure: what sends, receives, probes and collectives do when a member is dead. Names are those of MPICH's tests of fault
// tolerance and of ulfm-testing where the idea is theirs; the code is this project's.
import { strict as assert } from 'node:assert';
import { ANY_SOURCE } from '../../../src/mpi/constants.ts';
import { Op } from '../../../src/mpi/op.ts';
import { Request } from '../../../src/mpi/request.ts';
import type { FtCase } from '../../support/ft-worlds.ts';
import { audit, fails, fill } from '../../support/p2p-audit.ts';
import { knows, lived } from './ft-tools.ts';

export const FT_CALL_CASES: readonly FtCase[] = [
  {
    name: 'err_returns: a collective on a communicator with a dead member fails at every living one',
    ranks: 4,
    dying: [2],
    run: async ({ world, rank, die }) => {
      await world.barrier();
      if (rank === 2) await die();
      // One may still go well at some ranks, as long as not everybody knows.
      await knows(world, 1);
      const error = await fails('ERR_PROC_FAILED', world.barrier());
      assert.match(error.message, /rank 2/);
      await fails('ERR_PROC_FAILED', world.allreduce(Int32Array.of(1), new Int32Array(1)));
      await fails('ERR_PROC_FAILED', world.bcastObject('x'));
    },
  },
  {
    name: 'a collective under way ends at every living member when one dies in it',
    ranks: 5,
    dying: [3],
    run: async ({ world, rank, die, sleep }) => {
      await world.barrier();
      if (rank === 3) {
        await sleep(20);
        await die();
      }
      await fails('ERR_PROC_FAILED', world.barrier());
      await fails('ERR_PROC_FAILED', world.gatherObject(rank));
    },
  },
  {
    name: 'who hears of a death in a collective tells those that wait, and meets nobody else',
    ranks: 16,
    dying: [5],
    run: async ({ mpi, world, rank, die, sleep }) => {
      // By messages, of which this is about: who waits in shared memory has a rail made by the one that rings, whether anybody dies or not.
      world.usesSharedMemory = false;
      const met = (): number => new Set(mpi.rails().map(({ peer }) => peer)).size;
      for (let i = 0; i < 6; i++) await world.barrier();
      const before = met();
      if (rank === 5) {
        await sleep(20);
        await die();
      }
      await fails('ERR_PROC_FAILED', world.barrier());
      await knows(world, 1);
      // Those on both sides of the dead one are neighbours now, over whom news goes round.
      assert.ok(met() - before <= 2, `had met ${before} ranks, and now ${met()}`);
    },
  },
  {
    name: 'collectives as requests and persistent ones fail when a member is dead',
    ranks: 3,
    dying: [1],
    run: async ({ world, rank, die }) => {
      const into = new Int32Array(1);
      const persistent = world.allreduceInit(Int32Array.of(rank), into, Op.SUM);
      await persistent.start();
      assert.equal(into[0], 3);
      if (rank === 1) await die();
      await knows(world, 1);
      await fails('ERR_PROC_FAILED', world.ibarrier());
      await fails('ERR_PROC_FAILED', persistent.start());
    },
  },
  {
    name: 'isend-err: a send to a dead rank fails when it is waited for, and not before',
    ranks: 3,
    dying: [1],
    run: async ({ world, rank, die }) => {
      await world.barrier();
      if (rank === 1) await die();
      await knows(world, 1);
      const short = world.isend(fill(10, 1), 1, 5);
      const long = world.isend(fill(100_000, 2), 1, 5);
      await fails('ERR_PROC_FAILED', short);
      await fails('ERR_PROC_FAILED', long);
      await fails('ERR_PROC_FAILED', world.send(fill(10, 1), 1, 5));
      const lists = await Request.waitAll([world.isend(fill(1, 1), 1), undefined]).catch((error) => error);
      assert.equal(lists.code, 'ERR_IN_STATUS');
    },
  },
  {
    name: 'what came whole before its sender died is received; what did not is not found by a probe',
    ranks: 2,
    dying: [1],
    run: async ({ world, rank, die, sleep }) => {
      if (rank === 1) {
        await world.send(fill(100, 1), 0, 1);
        world.isend(fill(500_000, 2), 0, 2);
        await world.send(fill(8, 3), 0, 3);
        await world.recv(new Uint8Array(1), 0, 8);
        await die('now');
      }
      while (world.iprobe(1, 3) === undefined) await sleep(1);
      await world.send(new Uint8Array(1), 1, 8);
      const waiting = world.irecv(new Uint8Array(10), 1, 9);
      await knows(world, 1);
      await fails('ERR_PROC_FAILED', waiting);
      const data = new Uint8Array(100);
      await world.recv(data, 1, 1);
      audit(data, 1, 'the short message');
      assert.equal(world.iprobe(1, 3)?.bytes, 8);
      await fails('ERR_PROC_FAILED', () => world.iprobe(1, 2));
      await fails('ERR_PROC_FAILED', world.probe(1, 2));
      await fails('ERR_PROC_FAILED', world.mprobe(1, 2));
      await fails('ERR_PROC_FAILED', world.recv(new Uint8Array(500_000), 1, 2));
      await world.recv(new Uint8Array(8), 1, 3);
      await fails('ERR_PROC_FAILED', world.recvObject(1, 4));
    },
  },
  {
    name: 'err_any: a receive from anybody that is a request stays active, reports the failure, and goes on after ackFailed()',
    ranks: 3,
    dying: [1],
    run: async ({ world, rank, die, sleep }) => {
      if (rank === 1) {
        await sleep(20);
        await die();
      }
      if (rank === 2) {
        await world.recv(new Uint8Array(1), 0, 1);
        await world.send(fill(5, 7), 0, 2);
        return;
      }
      const data = new Uint8Array(5);
      const request = world.irecv(data, ANY_SOURCE, 2);
      await fails('ERR_PROC_FAILED_PENDING', request);
      assert.equal(request.state, 'ACTIVE');
      assert.equal(request.error?.code, 'ERR_PROC_FAILED_PENDING');
      await fails('ERR_PROC_FAILED_PENDING', () => request.test());
      await fails('ERR_PROC_FAILED_PENDING', request.promise());
      await fails('ERR_PROC_FAILED_PENDING', Request.waitAny([null, request]));
      const all = await Request.waitAll([request]).catch((error) => error);
      assert.equal(all.errors[0].code, 'ERR_PROC_FAILED_PENDING');
      const some = await Request.waitSome([request]).catch((error) => error);
      assert.equal(some.errors[0].code, 'ERR_PROC_FAILED_PENDING');
      // Posted afterwards: at once.
      const late = world.irecv(new Uint8Array(1), ANY_SOURCE, 3);
      await fails('ERR_PROC_FAILED_PENDING', late);
      assert.equal(late.cancel(), true);
      assert.equal(world.ackFailed(), 1);
      assert.equal(request.test(), false);
      const again = request.promise();
      await world.send(new Uint8Array(1), 2, 1);
      assert.equal((await again).source, 2);
      audit(data, 7, 'the message');
    },
  },
  {
    name: 'a persistent receive from anybody reports the failure and is matched all the same',
    ranks: 3,
    dying: [1],
    run: async ({ world, rank, die }) => {
      await world.barrier();
      if (rank === 1) await die();
      if (rank === 2) {
        await world.recv(new Uint8Array(1), 0, 1);
        await world.send(fill(5, 7), 0, 2);
        return;
      }
      await knows(world, 1);
      const data = new Uint8Array(5);
      const request = world.recvInit(data, ANY_SOURCE, 2).start();
      await fails('ERR_PROC_FAILED_PENDING', request);
      await world.send(new Uint8Array(1), 2, 1);
      // A message that is there counts for more than a failure.
      while (request.state === 'ACTIVE') await new Promise((resolve) => setTimeout(resolve, 1));
      assert.equal((await request).source, 2);
      audit(data, 7, 'the message');
    },
  },
  {
    name: 'a receive from anybody that is no request is taken back; probes and objects from anybody end, too',
    ranks: 3,
    dying: [1],
    run: async ({ world, rank, die, sleep }) => {
      if (rank === 1) {
        await sleep(20);
        await die();
      }
      if (rank === 2) {
        await world.recv(new Uint8Array(1), 0, 1);
        await world.send(fill(5, 7), 0, 2);
        return;
      }
      const waiting = [
        world.recv(new Uint8Array(5), ANY_SOURCE, 2),
        world.recv(new Uint8Array(5), ANY_SOURCE, 2, { timeoutMs: 9000 }),
        world.probe(ANY_SOURCE, 2),
        world.recvObject(ANY_SOURCE, 2),
        world.sendrecv(new Uint8Array(1), 0, 77, new Uint8Array(1), ANY_SOURCE, 2),
      ];
      for (const one of await Promise.allSettled(waiting)) {
        assert.equal(one.status, 'rejected');
        assert.equal((one as PromiseRejectedResult).reason.code, 'ERR_PROC_FAILED');
      }
      await world.recv(new Uint8Array(1), 0, 77);
      await fails('ERR_PROC_FAILED', world.recv(new Uint8Array(5), ANY_SOURCE, 2));
      await fails('ERR_PROC_FAILED', () => world.iprobe(ANY_SOURCE, 2));
      await world.send(new Uint8Array(1), 2, 1);
      world.ackFailed();
      const data = new Uint8Array(5);
      await world.recv(data, ANY_SOURCE, 2);
      audit(data, 7, 'the message');
    },
  },
  {
    name: 'err_insulation: communicators without the dead, and operations that do not need it, are undisturbed',
    ranks: 4,
    dying: [3],
    run: async ({ world, rank, die }) => {
      const part = await world.split(rank === 3 ? 1 : 0);
      if (rank === 3) await die();
      assert(part !== null);
      await knows(world, 1);
      assert.equal(part.getFailed().size, 0);
      const into = new Int32Array(1);
      for (let i = 0; i < 20; i++) await part.allreduce(Int32Array.of(rank + i), into);
      assert.equal(into[0], 3 + 3 * 19);
      const waiting = part.irecv(new Uint8Array(3), ANY_SOURCE, 1);
      await part.send(fill(3, 1), (part.rank + 1) % 3, 1);
      await waiting;
      const data = new Uint8Array(50_000);
      const [, status] = await Promise.all([world.send(fill(50_000, rank), (rank + 1) % 3, 4), world.recv(data, (rank + 2) % 3, 4)]);
      audit(data, status.source, 'a message of the world');
      await part.free();
    },
  },
  {
    name: 'getack: failures are shown in the order of ranks, and acknowledged one by one',
    ranks: 5,
    dying: [1, 3],
    run: async ({ world, rank, die }) => {
      await world.barrier();
      if (rank === 3) await die();
      if (rank !== 1) await knows(world, 1);
      if (rank === 1) {
        await lived(world);
        await die();
      }
      await knows(world, 2);
      assert.deepEqual([...world.getFailed().worldRanks], [1, 3]);
      assert.equal(world.ackFailed(0), 0);
      assert.equal(world.ackFailed(1), 1);
      await fails('ERR_PROC_FAILED', world.recv(new Uint8Array(1), ANY_SOURCE, 9));
      assert.equal(world.ackFailed(), 2);
      const waiting = world.irecv(new Uint8Array(1), ANY_SOURCE, 9);
      assert.equal(waiting.test(), false);
      assert.equal(waiting.cancel(), true);
      await fails('ERR_COUNT', () => world.ackFailed(-1));
    },
  },
  {
    name: 'communicators do not come into being with a dead member, and what has failed can be freed',
    ranks: 4,
    dying: [2],
    run: async ({ world, rank, die, sleep }) => {
      const copy = await world.dup();
      if (rank === 2) {
        await sleep(10);
        await die();
      }
      await fails('ERR_PROC_FAILED', world.dup());
      await fails('ERR_PROC_FAILED', world.split(rank));
      await fails('ERR_PROC_FAILED', world.create(world.group.exclude([2])));
      await fails('ERR_PROC_FAILED', copy.barrier());
      await copy.free();
      await fails('ERR_COMM', copy.barrier());
      // The ranks of the group alone make this one.
      const group = world.group.exclude([2]);
      const made = await world.createGroup(group);
      await made.barrier();
      await made.free();
    },
  },
  {
    name: 'pingpairs: pairs that talk go on when others die',
    ranks: 6,
    dying: [4, 5],
    run: async ({ world, rank, die }) => {
      const peer = rank ^ 1;
      const data = new Uint8Array(3000);
      for (let i = 0; i < 60; i++) {
        if (rank === 4 && i === 10) await die();
        const exchange = world.sendrecv(fill(3000, i), peer, i, data, peer, i);
        if (rank === 5 && i === 10) {
          await fails('ERR_PROC_FAILED', exchange);
          await die();
        }
        await exchange;
        audit(data, i, `round ${i}`);
      }
      await knows(world, 2);
    },
  },
];
