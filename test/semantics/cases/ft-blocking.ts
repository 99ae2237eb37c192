// Cases of process failure in blocking calls, during which no event loop runs: each rank is a process.
import { strict as assert } from 'node:assert';
import type { Communicator } from '../../../src/mpi/communicator.ts';
import { ANY_SOURCE } from '../../../src/mpi/constants.ts';
import type { FtCase } from '../../support/ft-worlds.ts';
import { fails, fill } from '../../support/p2p-audit.ts';
import { expectedSum } from './ft-tools.ts';

function sumSync(comm: Communicator, own: number): number {
  const into = new Int32Array(1);
  comm.allreduceSync(Int32Array.of(own), into);
  return into[0];
}

export const FT_BLOCKING_CASES: readonly FtCase[] = [
  {
    name: 'a death is noticed in blocking calls of every kind that need the dead',
    ranks: 8,
    processes: true,
    dying: [7],
    run: async ({ world, rank, die, sleep }) => {
      const calls: (() => unknown)[] = [
        () => world.recvSync(new Uint8Array(1), 7, 1),
        () => world.sendSync(fill(1_000_000, 1), 7, 2),
        () => world.ssendSync(new Uint8Array(1), 7, 3),
        () => world.probeSync(7, 4),
        () => world.recvSync(new Uint8Array(1), ANY_SOURCE, 5),
        () => world.recvObjectSync(ANY_SOURCE, 6),
      ];
      world.barrierSync();
      if (rank === 7) {
        await sleep(100);
        await die('now');
      }
      if (rank < calls.length) return void (await fails('ERR_PROC_FAILED', calls[rank]));
      const request = world.irecv(new Uint8Array(1), ANY_SOURCE, 7);
      await fails('ERR_PROC_FAILED_PENDING', () => request.waitSync());
      assert.equal(request.state, 'ACTIVE');
      assert.equal(request.cancel(), true);
    },
  },
  {
    name: 'blocking collectives end at every living member when one dies, and revokeSync() gets everybody out',
    ranks: 4,
    processes: true,
    dying: [3],
    run: async ({ world, rank, die }) => {
      const copy = world.dupSync();
      for (let i = 0; i < 50; i++) copy.barrierSync();
      if (rank === 3) await die('now');
      if (rank === 0) {
        await fails('ERR_PROC_FAILED', () => copy.recvSync(new Uint8Array(1), 3, 1));
        copy.revokeSync();
      }
      // These need no dead rank: the revocation alone ends them.
      const end = await fails('ERR_REVOKED', () => copy.recvSync(new Uint8Array(1), (rank + 1) % 3, 2));
      assert.match(end.message, /was revoked/);
      assert.equal(copy.isRevoked, true);
    },
  },
  {
    name: 'revshrinkkill without the event loop: agreeSync() and shrinkSync() until two are left',
    ranks: 5,
    processes: true,
    dying: [0, 2, 4],
    run: async ({ world, rank, die }) => {
      const order = [2, 0, 4];
      let comm = world;
      while (comm.size > 2) {
        if (order[5 - comm.size] === rank) await die('now');
        await fails('ERR_PROC_FAILED', () => {
          for (;;) comm.barrierSync();
        }).catch((error) => assert.match(String(error), /ERR_REVOKED/));
        comm.revokeSync();
        const { failed } = comm.agreeSync(1);
        assert(failed.size >= 1);
        comm = comm.shrinkSync();
        try {
          assert.equal(sumSync(comm, rank), expectedSum(comm));
        } catch (error) {
          // The next one may have died meanwhile.
          assert.match(String(error), /ERR_PROC_FAILED/);
        }
      }
      assert.deepEqual([...comm.group.worldRanks], [1, 3]);
    },
  },
];
