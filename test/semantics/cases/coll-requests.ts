// Cases of the collective suite: requests of every kind, many at once, together with other traffic, persistent requests, and misuse (51 to
// 55).
import { strict as assert } from 'node:assert';
import { vector } from '../../../src/mpi/buffers.ts';
import { IN_PLACE } from '../../../src/mpi/coll/memory.ts';
import type { Communicator } from '../../../src/mpi/communicator.ts';
import { Op } from '../../../src/mpi/op.ts';
import { Request } from '../../../src/mpi/request.ts';
import { everyRank } from '../../support/coll-audit.ts';
import { audit, fails, fill } from '../../support/p2p-audit.ts';
import type { P2pWorld } from '../../support/p2p-worlds.ts';
import type { P2pCase } from '../p2p-suite.ts';

/** One of each call, with results that can be looked at. */
function oneOfEach(comm: Communicator, seed: number): { requests: Request[]; check: () => void } {
  const { rank, size } = comm;
  const ranks = Array.from({ length: size }, (_, i) => i);
  const total = (size * (size - 1)) / 2;
  const of = (value: number, count = 4) => new Int32Array(count).fill(value);
  const checks: (() => void)[] = [];
  const expect = (array: Int32Array | null, value: (i: number) => number, what: string): Int32Array | null => {
    checks.push(() => array?.forEach((found, i) => void assert.equal(found, value(i), `${what}[${i}]`)));
    return array;
  };
  const root = seed % size;
  const atRoot = (array: Int32Array) => (rank === root ? array : null);
  const source = (i: number) => Math.floor(i / 4);
  const counts = ranks.map(() => 4);
  const bcast = rank === root ? of(seed) : of(-1);
  const requests = [
    comm.ibarrier(),
    comm.ibcast(bcast, root),
    comm.iallreduce(of(rank + seed), expect(of(0), () => total + size * seed, 'allreduce') as Int32Array),
    comm.ireduce(
      of(rank),
      expect(atRoot(of(0)), () => total, 'reduce'),
      Op.SUM,
      root,
    ),
    comm.igather(
      of(rank + seed),
      expect(atRoot(of(0, 4 * size)), (i) => source(i) + seed, 'gather'),
      root,
    ),
    comm.igatherv(of(rank), expect(atRoot(of(0, 4 * size)), source, 'gatherv'), counts, null, root),
    comm.iscatter(atRoot(of(seed, 4 * size)), expect(of(0), () => seed, 'scatter') as Int32Array, root),
    comm.iscatterv(atRoot(of(seed, 4 * size)), counts, null, expect(of(0), () => seed, 'scatterv') as Int32Array, root),
    comm.iallgather(of(rank), expect(of(0, 4 * size), source, 'allgather') as Int32Array),
    comm.iallgatherv(of(rank), expect(of(0, 4 * size), source, 'allgatherv') as Int32Array, counts),
    comm.ialltoall(of(rank, 4 * size), expect(of(0, 4 * size), source, 'alltoall') as Int32Array),
    comm.ialltoallv(of(rank, 4 * size), counts, null, expect(of(0, 4 * size), source, 'alltoallv') as Int32Array, counts),
    comm.ireduceScatterBlock(of(rank, 4 * size), expect(of(0), () => total, 'reduceScatterBlock') as Int32Array),
    comm.ireduceScatter(of(rank, 4 * size), expect(of(0), () => total, 'reduceScatter') as Int32Array, counts),
    comm.iscan(of(1), expect(of(0), () => rank + 1, 'scan') as Int32Array),
    comm.iexscan(of(1), expect(of(0), () => rank, 'exscan') as Int32Array),
  ];
  expect(bcast, () => seed, 'bcast');
  return { requests, check: () => checks.forEach((check) => void check()) };
}

/** Every rank in turn, without anybody awaiting in between, until all are through. */
async function inTurns(world: P2pWorld, steps: ((comm: Communicator) => boolean)[]): Promise<void> {
  const open = new Set(world.comms.keys());
  for (let turn = 0; open.size > 0; turn++) {
    assert(turn < 20_000, 'no end');
    for (const rank of open) if (steps[rank](world.comms[rank])) open.delete(rank);
    await world.sleep(1);
  }
}

export const COLLECTIVE_REQUEST_CASES: readonly P2pCase[] = [
  {
    name: '51 every call as a request, many at once, by every way to wait, beside messages with the same tags',
    alwaysDrawn: true,
    ranks: 4,
    anySize: true,
    run: async (world) => {
      await everyRank(world, async (comm) => {
        const { rank, size } = comm;
        for (let seed = 0; seed < 6; seed++) {
          const many = [oneOfEach(comm, seed), oneOfEach(comm, seed + 1)];
          const messages = Array.from({ length: 4 }, () => new Uint8Array(5000));
          const right = (rank + 1) % size;
          const left = (rank + size - 1) % size;
          const requests = [
            ...messages.map((into, i) => comm.irecv(into, left, i + 1)),
            ...many.flatMap((one) => one.requests),
            ...messages.map((_, i) => comm.isend(fill(5000, i), right, i + 1)),
          ];
          if (seed % 3 === 0) await Request.waitAll(requests);
          if (seed % 3 === 1) for (let i = 0; i < requests.length; i++) await Request.waitAny(requests);
          if (seed % 3 === 2) for (let left = requests.length; left > 0; ) left -= (await Request.waitSome(requests)).indices.length;
          for (const request of requests) assert.equal(request.done, true);
          for (const one of many) one.check();
          messages.forEach((data, i) => void audit(data, i, `message ${i}`));
        }
      });
    },
  },
  {
    name: '51, 52 tests alone bring them to their end, in any order, while nobody awaits',
    ranks: 4,
    anySize: true,
    run: async (world) => {
      for (const test of ['all', 'any', 'some', 'each'] as const) {
        const made = world.comms.map((comm) => oneOfEach(comm, 3));
        const left = made.map(({ requests }) => requests.length);
        await inTurns(
          world,
          made.map(({ requests }, rank) => () => {
            if (test === 'all') return Request.testAll(requests) !== undefined;
            if (test === 'each') return requests.filter((request) => !request.test()).length === 0;
            if (test === 'some') left[rank] -= Request.testSome(requests).indices.length;
            else if (Request.testAny(requests) !== undefined) left[rank]--;
            return left[rank] <= 0;
          }),
        );
        for (const { check } of made) check();
      }
      const barriers = world.comms.map((comm) => comm.ibarrier());
      await inTurns(
        world,
        barriers.map((barrier) => () => barrier.test()),
      );
    },
  },
  {
    name: 'they go on by themselves: results are there though nobody has awaited',
    ranks: 4,
    anySize: true,
    run: async (world) => {
      const made = world.comms.map((comm) => oneOfEach(comm, 5));
      for (let i = 0; made.some(({ requests }) => requests.some((request) => !request.done)); i++) {
        assert(i < 20_000, 'no end');
        await world.sleep(1);
      }
      for (const { check } of made) check();
    },
  },
  {
    name: '53 persistent: started in another order at each rank, again and again, inactive in between',
    ranks: 4,
    anySize: true,
    run: async (world) => {
      await everyRank(world, async (comm) => {
        const { rank, size } = comm;
        const total = (size * (size - 1)) / 2;
        const buffer = new Int32Array(3);
        const own = new Int32Array(2);
        const sum = new Int32Array(2);
        const all = new Int32Array(2 * size);
        const turned = new Int32Array(size);
        const mine = new Int32Array(size);
        const requests = [
          comm.barrierInit(),
          comm.bcastInit(buffer, size - 1),
          comm.allreduceInit(own, sum),
          comm.allgatherInit(own, all),
          comm.alltoallInit(mine, turned),
        ];
        for (const request of requests) assert.equal(request.test(), true, 'an inactive request is through');
        for (let round = 0; round < 5; round++) {
          buffer.fill(rank === size - 1 ? round : -1);
          own.fill(rank + round);
          mine.fill(rank * round);
          const order = requests.map((_, i) => requests[(i * 2 + rank + round) % requests.length]);
          Request.startAll(order);
          assert.throws(() => (requests[2].done ? assert.fail('done') : requests[2].start()), /ERR_REQUEST|done/);
          await comm.barrier();
          await Request.waitAll(requests);
          assert.deepEqual([...buffer], [round, round, round]);
          assert.equal(sum[1], total + size * round);
          for (let i = 0; i < size; i++) assert.deepEqual([all[2 * i], turned[i]], [i + round, i * round]);
        }
      });
    },
  },
  {
    name: '55 misuse: an error that names the argument, before anything is sent',
    ranks: 3,
    anySize: true,
    run: async (world) => {
      const begun = () => world.runtimes.map((runtime) => runtime.counters().collectives.collectives);
      const before = begun();
      await everyRank(world, async (comm) => {
        const { size } = comm;
        const f = new Float64Array(6 * size);
        const g = new Float64Array(6 * size);
        const memory = new ArrayBuffer(64);
        const detached = new Uint8Array(8);
        structuredClone(detached.buffer, { transfer: [detached.buffer] });
        // biome-ignore lint/suspicious/noExplicitAny: wrong on purpose
        const wrong = comm as any;
        const calls: [string, RegExp, () => Promise<unknown>][] = [
          ['ERR_ROOT', /\broot is 99/, () => comm.bcast(f, 99)],
          ['ERR_ROOT', /\broot is -1/, () => comm.reduce(f, g, Op.SUM, -1)],
          ['ERR_ROOT', /\broot is 0\.5/, () => comm.gather(f, g, 0.5)],
          ['ERR_ROOT', /\broot is x/, () => wrong.scatter(f, g, 'x')],
          ['ERR_BUFFER', /buffer is number/, () => wrong.bcast(7)],
          ['ERR_BUFFER', /buffer is detached/, () => comm.bcast(detached)],
          ['ERR_BUFFER', /recv is missing/, () => comm.reduce(f, null, Op.SUM, comm.rank)],
          ['ERR_BUFFER', /send is missing/, () => comm.scatter(null, f, comm.rank)],
          ['ERR_BUFFER', /recv has 8 bytes; expected/, () => comm.allreduce(f, new Float64Array(1))],
          ['ERR_BUFFER', /send is a Float64Array and recv a Int32Array/, () => comm.allreduce(f, new Int32Array(12 * size))],
          ['ERR_BUFFER', /send is a buffer of bytes and recv a Uint8Array/, () => comm.allreduce(memory, new Uint8Array(64))],
          ['ERR_BUFFER', /send has no elements/, () => comm.allreduce(memory, new ArrayBuffer(64))],
          ['ERR_BUFFER', /share memory/, () => comm.allreduce(f, f)],
          ['ERR_BUFFER', /share memory/, () => comm.allgather(f.subarray(0, 6), f)],
          ['ERR_BUFFER', /share memory/, () => comm.alltoall(f, f)],
          ['ERR_OP', /BAND is not defined for Float64Array/, () => comm.allreduce(f, g, Op.BAND)],
          ['ERR_OP', /LXOR is not defined for Float64Array/, () => comm.scan(f, g, Op.LXOR)],
          ['ERR_OP', /op is string/, () => wrong.allreduce(f, g, 'sum')],
          ['ERR_COUNT', /units of op MAXLOC/, () => comm.allreduce(new Int8Array(3), new Int8Array(3), Op.MAXLOC)],
          ['ERR_COUNT', /counts has 1 entr(y|ies)/, () => comm.allgatherv(f, g, size === 1 ? [1, 2] : [1]).catch(retell)],
          [
            'ERR_COUNT',
            /counts\[0\] is -1/,
            () =>
              comm.allgatherv(
                f,
                g,
                Array.from({ length: size }, () => -1),
              ),
          ],
          [
            'ERR_BUFFER',
            /counts\[0\] = 99/,
            () =>
              comm.allgatherv(
                f,
                g,
                Array.from({ length: size }, () => 99),
              ),
          ],
          ['ERR_ARG', /counts is undefined; expected an array/, () => wrong.gatherv(f, g, undefined, undefined, comm.rank)],
          [
            'ERR_COUNT',
            /recvs is 3; expected an array with one buffer for each/,
            () =>
              wrong.alltoallw(
                [...Array(size).keys()].map(() => f),
                3,
              ),
          ],
          ['ERR_ARG', /color is -7/, () => comm.split(-7)],
          ['ERR_ARG', /key is x/, () => wrong.split(1, 'x')],
          ['ERR_ARG', /type is/, () => wrong.splitType('numa')],
          ['ERR_GROUP', /group is undefined/, () => wrong.create()],
          ['ERR_COMM', /the world cannot be freed/, () => comm.free()],
          ['ERR_COUNT', /stride|count/, async () => comm.bcast(vector(f, 99, 1, 9))],
        ];
        if (size > 1) calls.push(['ERR_ARG', /IN_PLACE/, () => comm.reduce(IN_PLACE, null, Op.SUM, (comm.rank + 1) % size)]);
        if (size > 1) calls.push(['ERR_BUFFER', /overlap/, () => comm.allgatherv(f.slice(0, 2), g, same(size, 2), same(size, 0))]);
        for (const [code, text, call] of calls) {
          const error = await fails(code as 'ERR_ARG', call());
          assert.match(error.message, text);
        }
        await comm.barrier();
      });
      assert.deepEqual(
        begun(),
        before.map((count) => count + 1),
        'only the barrier was begun',
      );
    },
  },
];

const same = (size: number, value: number): number[] => new Array<number>(size).fill(value);

/** In a world of one the list is too long instead of too short. */
function retell(error: Error): never {
  error.message = error.message.replace('has 2 entries', 'has 1 entries');
  throw error;
}
