// Cases of the point-to-point suite: requests, persistent ones, groups of them, and errors in groups.
import { strict as assert } from 'node:assert';
import { UNDEFINED } from '../../../src/mpi/constants.ts';
import { Request } from '../../../src/mpi/request.ts';
import { RequestsError } from '../../../src/mpi/requests-error.ts';
import { arrived, audit, fails, fill, inPair, type Part, until } from '../../support/p2p-audit.ts';
import type { P2pCase } from '../p2p-suite.ts';

/** The other side of halfTruncated(): what it sends when the receives are posted. */
async function sendHundreds({ comm, peer, meet }: Part): Promise<void> {
  await meet();
  await Request.waitAll([0, 1, 2, 3].map((i) => comm.isend(fill(100, i), peer, i)));
}

/** Four receives of which the second and the fourth will be truncated; the messages are under way. */
async function halfTruncated({ comm, peer, meet }: Part): Promise<Request[]> {
  const receives = [0, 1, 2, 3].map((i) => comm.irecv(new Uint8Array(i % 2 === 0 ? 100 : 50), peer, i));
  await meet();
  return receives;
}

function checkErrors(error: unknown, indices: readonly number[]): void {
  assert(error instanceof RequestsError, String(error));
  assert.equal(error.code, 'ERR_IN_STATUS');
  for (const i of indices) {
    assert.equal(error.errors[i]?.code, i % 2 === 0 ? undefined : 'ERR_TRUNCATE', `error ${i}`);
    assert.equal(error.statuses[i]?.bytes, i % 2 === 0 ? 100 : 50, `status ${i}`);
  }
}

export const REQUEST_CASES: readonly P2pCase[] = [
  {
    name: '17 pssend: a persistent synchronous send is not complete before its match',
    ranks: 2,
    run: (world) =>
      inPair(
        world,
        async ({ comm, peer, meet }) => {
          const buffer = new Uint8Array(40);
          const request = comm.ssendInit(buffer, peer, 2);
          for (let round = 0; round < 3; round++) {
            buffer.set(fill(40, round));
            request.start();
            await meet();
            assert.equal(request.test(), false);
            await fails('ERR_REQUEST', () => request.start());
            await meet();
            await request;
          }
        },
        async ({ comm, peer, meet }) => {
          for (let round = 0; round < 3; round++) {
            await arrived(world, comm, peer, 2);
            await meet();
            await meet();
            const data = new Uint8Array(40);
            await comm.recv(data, peer, 2);
            audit(data, round, `round ${round}`);
          }
        },
      ),
  },
  {
    name: '28 waittestnull, waitany_null, inactivereq',
    ranks: 1,
    run: async ({ comms: [comm] }) => {
      const inactive = comm.recvInit(new Uint8Array(4));
      for (const list of [[], [null, undefined], [inactive, null]]) {
        assert.deepEqual(
          (await Request.waitAll(list)).map((status) => status.bytes),
          list.map(() => 0),
        );
        assert.equal((await Request.waitAny(list)).index, UNDEFINED);
        assert.deepEqual((await Request.waitSome(list)).indices, []);
        assert.equal(Request.testAll(list)?.length, list.length);
        assert.equal(Request.testAny(list)?.index, UNDEFINED);
        assert.deepEqual(Request.testSome(list).indices, []);
      }
      assert.equal(inactive.test(), true);
      assert.equal((await inactive).bytes, 0);
      assert.equal(inactive.cancel(), false);
      assert.equal(inactive.state, 'INACTIVE');
    },
  },
  {
    name: '28 waitAny and waitSome hand out each result once',
    ranks: 2,
    run: async (world) => {
      const count = 12;
      await inPair(
        world,
        async ({ comm, peer, meet }) => {
          await meet();
          await Request.waitAll(Array.from({ length: count }, (_, i) => comm.isend(fill(i % 2 === 0 ? 20_000 : 20, i), peer, i)));
        },
        async ({ comm, peer, meet }) => {
          const receives = Array.from({ length: count }, (_, i) => comm.irecv(new Uint8Array(20_000), peer, i));
          assert.equal(Request.testAny(receives), undefined);
          assert.deepEqual(Request.testSome(receives).indices, []);
          assert.equal(Request.testAll(receives), undefined);
          await meet();
          const seen = new Set<number>();
          for (let i = 0; i < 5; i++) seen.add((await Request.waitAny(receives)).index);
          assert.equal(seen.size, 5);
          while (seen.size < count) {
            const { indices, statuses } = await Request.waitSome(receives);
            for (const [at, i] of indices.entries()) {
              assert(!seen.has(i), `request ${i} was handed out twice`);
              assert.equal(statuses[at].tag, i);
              seen.add(i);
            }
          }
          assert.equal((await Request.waitAny(receives)).index, UNDEFINED);
          assert.deepEqual(
            (await Request.waitAll(receives)).map((status) => status.tag),
            receives.map((_, i) => i),
          );
        },
      );
    },
  },
  {
    name: '29 rqstatus, rqfree: status by polling, and requests that nobody keeps',
    ranks: 2,
    run: (world) =>
      inPair(
        world,
        async ({ comm, peer, meet }) => {
          await meet();
          comm.isend(fill(30_000, 1), peer, 1);
          comm.isend(fill(30, 2), peer, 1);
        },
        async ({ comm, peer, meet }) => {
          const data = new Uint8Array(30_000);
          const request = comm.irecv(data, peer, 1);
          assert.deepEqual([request.status, request.done, request.test()], [undefined, false, false]);
          await meet();
          await until(world, () => request.test(), 'the receive ended');
          assert.equal(request.status?.bytes, 30_000);
          audit(data, 1, 'polled');
          const second = new Uint8Array(30);
          await comm.recv(second, peer, 1);
          audit(second, 2, 'of a request that nobody kept');
        },
      ),
  },
  { name: '30 greq1', ranks: 1, skip: 'not applicable: user-made requests are promises', run: async () => undefined },
  {
    name: '34 errinstat, waitAll: the errors of each',
    ranks: 2,
    run: (world) =>
      inPair(world, sendHundreds, async (part) => {
        const receives = await halfTruncated(part);
        // It rejects at the first failure; the rest can be waited for again.
        await fails('ERR_IN_STATUS', Request.waitAll(receives));
        await until(world, () => receives.every((request) => request.done), 'all ended');
        checkErrors(await fails('ERR_IN_STATUS', Request.waitAll(receives)), [0, 1, 2, 3]);
      }),
  },
  {
    name: '34 errinstat, waitSome, testAll, testSome, waitAny',
    ranks: 2,
    run: async (world) => {
      for (const call of ['waitSome', 'testAll', 'testSome', 'waitAny'] as const) {
        await inPair(world, sendHundreds, async (part) => {
          const receives = await halfTruncated(part);
          await until(world, () => receives.every((request) => request.done), 'all ended');
          if (call === 'waitAny') {
            assert.equal((await Request.waitAny(receives)).index, 0);
            await fails('ERR_TRUNCATE', Request.waitAny(receives));
            assert.equal((await Request.waitAny(receives)).index, 2);
          } else {
            checkErrors(await fails('ERR_IN_STATUS', () => Request[call](receives)), [0, 1, 2, 3]);
          }
        });
      }
    },
  },
  {
    name: 'ours: errors that nobody awaits are not unhandled rejections',
    ranks: 2,
    run: (world) =>
      inPair(
        world,
        async ({ comm, peer, meet }) => {
          await meet();
          for (const tag of [1, 2]) await comm.send(fill(10, 1), peer, tag);
        },
        async ({ comm, peer, meet }) => {
          comm.irecv(new Uint8Array(1), peer, 1);
          const truncated = comm.irecv(new Uint8Array(1), peer, 2);
          await meet();
          await until(world, () => truncated.done, 'the receive ended');
          // vitest fails the run when a rejection is unhandled, and a rank ends its job.
          await world.sleep(5);
          assert.equal(truncated.error?.code, 'ERR_TRUNCATE');
        },
      ),
  },
];
