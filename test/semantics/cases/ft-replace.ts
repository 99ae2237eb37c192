// Cases of process failure: processes that stand by take the places of the dead.
import { strict as assert } from 'node:assert';
import type { Communicator } from '../../../src/mpi/communicator.ts';
import type { FtCase, FtPart } from '../../support/ft-worlds.ts';
import { fails } from '../../support/p2p-audit.ts';
import { knows, lived, sumOfRanks } from './ft-tools.ts';

/** Who is behind the ranks of a communicator, as its members tell each other; and that everybody reaches everybody. */
async function checkPlaces(comm: Communicator, own: number, wanted: readonly number[]): Promise<void> {
  assert.deepEqual([...comm.group.worldRanks], wanted);
  assert.equal(wanted[comm.rank], own);
  const numbers = new Int32Array(comm.size);
  await comm.alltoall(new Int32Array(comm.size).fill(own), numbers);
  assert.deepEqual([...numbers], wanted);
  const sum = await sumOfRanks(comm, own);
  assert.equal(
    sum,
    wanted.reduce((total, number) => total + number, 0),
  );
}

/** The part of a process that was called in, and of those that have called it, from there on. */
async function together({ mpi }: FtPart, comm: Communicator, wanted: readonly number[]): Promise<void> {
  await checkPlaces(comm, mpi.process, wanted);
  assert.equal(comm.getFailed().size, 0);
  assert.deepEqual((await comm.agree(0xff)).flag, 0xff);
  const copy = await comm.dup();
  await checkPlaces(copy, mpi.process, wanted);
  await copy.free();
  await comm.free();
}

const isNew = ({ mpi }: FtPart): boolean => mpi.role === 'replacement';

export const FT_REPLACE_CASES: readonly FtCase[] = [
  {
    name: 'replace: the world has only those that work, and standbys that nobody needs leave with them',
    ranks: 2,
    spares: 2,
    dying: [],
    run: async ({ mpi, world }) => {
      assert.deepEqual([world.size, mpi.size, mpi.rank, mpi.process, mpi.role], [2, 2, world.rank, world.rank, 'initial']);
      assert.equal(mpi.standby.ready, 2);
      assert.equal(await sumOfRanks(world, world.rank), 1);
    },
  },
  {
    name: 'replace: a standby takes the place of a dead rank, and everybody reaches it',
    ranks: 4,
    spares: 1,
    dying: [2],
    run: async (part) => {
      const { mpi, world, rank, die } = part;
      const wanted = [0, 1, 4, 3];
      if (isNew(part)) {
        assert.deepEqual([mpi.process, mpi.rank, mpi.size, mpi.standby.ready], [4, 2, 4, 0]);
        return together(part, world, wanted);
      }
      if (rank === 2) return die();
      const changed = new Promise<void>((resolve) => void mpi.standby.once('changed', resolve));
      await lived(world);
      const full = await world.replace();
      await changed;
      assert.equal(mpi.standby.ready, 0);
      await together(part, full, wanted);
    },
  },
  {
    name: 'replace: rank 0 dies, on a communicator that was revoked, and another call waits behind the request',
    ranks: 3,
    spares: 2,
    dying: [0],
    run: async (part) => {
      const { world, rank, die } = part;
      const wanted = [3, 1, 2];
      if (isNew(part)) return together(part, world, wanted);
      if (rank === 0) return die('now');
      await lived(world);
      await world.revoke();
      const request = world.ireplace();
      // What is called behind it waits for it.
      const behind = world.agree(rank);
      await request;
      assert.equal((await behind).flag, 0);
      await together(part, request.result as Communicator, wanted);
    },
  },
  {
    name: 'replace: two die, and the lowest number takes the place of the lowest rank',
    ranks: 4,
    spares: 2,
    dying: [1, 3],
    run: async (part) => {
      const { world, rank, die } = part;
      const wanted = [0, 4, 2, 5];
      if (isNew(part)) return together(part, world, wanted);
      if (rank % 2 === 1) return die();
      await knows(world, 2);
      await together(part, await world.replace({ spares: 'all' }), wanted);
    },
  },
  {
    name: 'replace: with too few standbys all members get ERR_SPARES, and with spares some the others are left out',
    ranks: 4,
    spares: 1,
    dying: [1, 2],
    run: async (part) => {
      const { mpi, world, rank, die } = part;
      const wanted = [0, 4, 3];
      if (isNew(part)) return together(part, world, wanted);
      if (rank === 1 || rank === 2) return die();
      await knows(world, 2);
      await fails('ERR_SPARES', world.replace());
      assert.equal(mpi.standby.ready, 1);
      await together(part, await world.replace({ spares: 'some' }), wanted);
      // Nobody is left.
      await fails('ERR_SPARES', world.replace());
      const rest = await world.replace({ spares: 'some' });
      assert.deepEqual([...rest.group.worldRanks], [0, 3]);
      await rest.free();
    },
  },
  {
    name: 'replace: a replacement dies, and the next one takes its place',
    ranks: 3,
    spares: 2,
    dying: [1, 3],
    run: async (part) => {
      const { mpi, world, rank, die } = part;
      const wanted = [0, 4, 2];
      if (mpi.process === 4) return together(part, world, wanted);
      if (rank === 1) return die(mpi.process === 3 ? 'now' : undefined);
      await lived(world);
      const first = await world.replace();
      assert.deepEqual([...first.group.worldRanks], [0, 3, 2]);
      await lived(first);
      await together(part, await first.replace(), wanted);
    },
  },
  {
    name: 'replace: repair() revokes, and gets everybody out and on',
    ranks: 4,
    spares: 1,
    dying: [3],
    run: async (part) => {
      const { world, rank, die } = part;
      const wanted = [0, 1, 2, 4];
      if (isNew(part)) return together(part, world, wanted);
      if (rank === 3) return die();
      // Rank 1 waits for nobody who is dead.
      if (rank === 1) await fails('ERR_REVOKED', world.recv(new Uint8Array(1), 0, 1));
      else await lived(world);
      await together(part, await world.repair(), wanted);
    },
  },
  {
    name: 'replace: where nobody has failed it makes a copy, and what does not fit is refused',
    ranks: 2,
    spares: 1,
    dying: [],
    run: async ({ mpi, world, rank }) => {
      await fails('ERR_ARG', world.replace({ spares: 'many' } as never));
      await fails('ERR_ARG', world.replace({ spare: 'all' } as never));
      const copy = await world.replace();
      await checkPlaces(copy, rank, [0, 1]);
      await copy.free();
      await fails('ERR_COLLECTIVE_MISMATCH', rank === 0 ? world.replace() : world.replace({ spares: 'some' }));
      await fails('ERR_COLLECTIVE_MISMATCH', rank === 0 ? world.replace() : world.shrink());
      assert.equal(mpi.standby.ready, 1);
      await world.barrier();
    },
  },
  {
    name: 'replace: two communicators want the last standby at once, and one of them gets it',
    ranks: 4,
    spares: 1,
    dying: [1, 3],
    run: async (part) => {
      const { mpi, world, rank, die } = part;
      if (isNew(part)) return world.free();
      const half = (await world.split(rank < 2 ? 0 : 1)) as Communicator;
      if (rank % 2 === 1) return die();
      await lived(half);
      const got = await half.replace().catch((error) => error.code as string);
      // The other half is told of it by an agreement of the world, which both have to come to.
      const { flag } = await world.agree(typeof got === 'string' ? ~(1 << rank) >>> 0 : 0xffff_ffff);
      assert.equal(flag === 0xffff_fffe || flag === 0xffff_fffb, true, `flag ${flag.toString(16)} at ${mpi.process}`);
      if (typeof got === 'string') assert.equal(got, 'ERR_SPARES');
      else await got.free();
      await half.free();
    },
  },
  {
    name: 'replace: in blocking calls',
    ranks: 3,
    spares: 2,
    processes: true,
    dying: [1],
    run: async (part) => {
      const { world, rank, die } = part;
      const wanted = [0, 3, 2];
      if (part.mpi.process === 4) return world.free();
      if (isNew(part)) return together(part, world, wanted);
      if (rank === 1) return die();
      await fails('ERR_PROC_FAILED', () => world.recvSync(new Uint8Array(1), 1, 1));
      const full = world.replaceSync();
      assert.deepEqual([...full.group.worldRanks], wanted);
      await together(part, full, wanted);
      // The old communicator has lost the same member as before.
      const again = world.repairSync();
      assert.deepEqual([...again.group.worldRanks], [0, 4, 2]);
      await again.free();
    },
  },
];
