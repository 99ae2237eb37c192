// Cases of the collective suite: groups and communicators (56 to 64 of the list).
import { strict as assert } from 'node:assert';
import type { Communicator } from '../../../src/mpi/communicator.ts';
import { ANY_SOURCE, ANY_TAG, UNDEFINED } from '../../../src/mpi/constants.ts';
import { CONGRUENT, IDENT, SIMILAR, UNEQUAL } from '../../../src/mpi/group.ts';
import type { ProcessState } from '../../../src/mpi/process-state.ts';
import { everyRank } from '../../support/coll-audit.ts';
import { audit, fails, fill } from '../../support/p2p-audit.ts';
import type { P2pWorld } from '../../support/p2p-worlds.ts';
import type { P2pCase } from '../p2p-suite.ts';

/** Sum of the world ranks in it: who is in a communicator shows. */
async function sumOfRanks(comm: Communicator, value: number): Promise<number> {
  const sum = new Int32Array(1);
  await comm.allreduce(Int32Array.of(value), sum);
  return sum[0];
}

/** What a process keeps of communicators. */
function kept(world: P2pWorld, rank: number): { live: number; abandoned: number; contexts: number; flows: number } {
  const { proc } = world.runtimes.find((runtime) => runtime.rank === rank) as unknown as { proc: ProcessState };
  const { inbox, core } = proc.engine.pml.internals;
  const { live, abandoned } = proc.contexts.counts();
  const { contexts } = inbox as unknown as { contexts: Map<number, unknown> };
  let flows = 0;
  for (const peer of core.peers.values()) flows += peer.flowsIn.size + peer.flowsOut.size;
  return { live, abandoned, contexts: contexts.size, flows };
}

/** Rounds of case 59: MULTIRAIL_TEST_CTX_ROUNDS=100000 for the whole of it. */
const ROUNDS = Number(process.env.MULTIRAIL_TEST_CTX_ROUNDS ?? 300);

export const COMMUNICATOR_CASES: readonly P2pCase[] = [
  {
    name: '56 dup: the same ranks, messages and collectives apart',
    ranks: 3,
    anySize: true,
    run: async (world) => {
      await everyRank(world, async (comm) => {
        const { rank, size } = comm;
        const twin = await comm.dup();
        assert.deepEqual([twin.rank, twin.size, twin.compare(comm), comm.compare(comm)], [rank, size, CONGRUENT, IDENT]);
        assert.notEqual(twin.contextId, comm.contextId);
        const right = (rank + 1) % size;
        const left = (rank + size - 1) % size;
        // Sent on one, asked for on the other first: by tag and by wildcards.
        const sent = [comm.send(fill(9000, 1), right, 7), twin.send(fill(9000, 2), right, 7)];
        const there = new Uint8Array(9000);
        assert.equal((await twin.recv(there, ANY_SOURCE, ANY_TAG)).source, left);
        audit(there, 2, 'the message of the twin');
        await comm.recv(there, ANY_SOURCE, ANY_TAG);
        audit(there, 1, 'the message of the world');
        await Promise.all(sent);
        assert.equal(twin.iprobe(), undefined);
        const sums = await Promise.all([sumOfRanks(twin, 1), sumOfRanks(comm, 10), sumOfRanks(twin, 100)]);
        assert.deepEqual(sums, [size, 10 * size, 100 * size]);
        await twin.free();
        await fails('ERR_COMM', twin.barrier());
        await fails('ERR_COMM', twin.send(there, 0));
        await fails('ERR_COMM', async () => twin.iprobe());
        await fails('ERR_COMM', twin.dup());
        await fails('ERR_COMM', twin.free());
        assert.equal(await sumOfRanks(comm, 1), size);
      });
    },
  },
  {
    name: '57 split: by key, on ties by rank, UNDEFINED gives none',
    ranks: 5,
    anySize: true,
    run: async (world) => {
      await everyRank(world, async (comm) => {
        const { rank, size } = comm;
        const stable = (await comm.split(0)) as Communicator;
        assert.equal(stable.compare(comm), CONGRUENT, 'equal keys keep the order');
        const backwards = (await comm.split(3, -rank)) as Communicator;
        assert.deepEqual([backwards.rank, backwards.compare(comm)], [size - 1 - rank, size === 1 ? CONGRUENT : SIMILAR]);
        // Two of three keys are the same.
        const mixed = (await comm.split(1, rank % 2)) as Communicator;
        const order = [...comm.group.worldRanks].sort((a, b) => (a % 2) - (b % 2) || a - b);
        assert.deepEqual(mixed.group.worldRanks, order);
        const parity = (await comm.split(rank % 2)) as Communicator;
        const members = comm.group.worldRanks.filter((world) => world % 2 === rank % 2);
        assert.deepEqual(parity.group.worldRanks, members);
        assert.equal(
          await sumOfRanks(parity, rank),
          members.reduce((sum, world) => sum + world, 0),
        );
        if (size > 1) assert.equal(parity.compare(comm), UNEQUAL);
        const none = await comm.split(rank === 0 ? UNDEFINED : 4);
        assert.equal(none === null, rank === 0);
        // Of the half again a half, and messages in it by its own ranks.
        const part = (await parity.split(parity.rank % 2, 0)) as Communicator;
        if (part.size > 1) {
          const into = new Uint8Array(10);
          const status = await part.sendrecv(fill(10, part.rank), (part.rank + 1) % part.size, 1, into, ANY_SOURCE, 1);
          audit(into, status.source, 'by the ranks of the part');
        }
        for (const one of [stable, backwards, mixed, parity, none, part]) await one?.free();
      });
    },
  },
  {
    name: '58 create and createGroup: subsets, other orders, several at a time, by members only',
    ranks: 5,
    anySize: true,
    run: async (world) => {
      await everyRank(world, async (comm) => {
        const { rank, size, group } = comm;
        const half = group.include(Array.from({ length: Math.ceil(size / 2) }, (_, i) => i));
        const rest = group.difference(half);
        const made = await comm.create(half);
        assert.equal(made === null, rank >= half.size);
        // Disjoint groups at the same time.
        const own = await comm.create(rank < half.size ? half : rest);
        assert(own !== null);
        assert.equal(own.group.compare(rank < half.size ? half : rest), IDENT);
        const backwards = group.include(Array.from({ length: size }, (_, i) => size - 1 - i));
        const turned = (await comm.create(backwards)) as Communicator;
        assert.equal(turned.rank, size - 1 - rank);
        // Only the members call it; two at once are told apart by tag.
        if (rank < half.size) {
          const two = await Promise.all([comm.createGroup(half, 5), comm.createGroup(half, 2 ** 31 - 1)]);
          assert.notEqual(two[0].contextId, two[1].contextId);
          assert.equal(await sumOfRanks(two[0], 1), half.size);
          assert.equal(await sumOfRanks(two[1], 2), 2 * half.size);
          for (const one of two) await one.free();
        }
        const lonely = await comm.createGroup(group.include([rank]), 9);
        assert.deepEqual([lonely.rank, lonely.size, await sumOfRanks(lonely, 7)], [0, 1, 7]);
        await fails('ERR_GROUP', comm.createGroup(group.exclude([rank])));
        if (size > 1) await fails('ERR_GROUP', lonely.create(group));
        for (const one of [made, own, turned, lonely]) await one?.free();
      });
    },
  },
  {
    name: '59 dup and free again and again: nothing is left, no id comes twice',
    ranks: 3,
    anySize: true,
    calmOnly: 'the rounds are counted, not the faults',
    run: async (world) => {
      await everyRank(world, async (comm) => {
        const begun = performance.now();
        const ids = new Set<number>();
        await comm.barrier();
        const before = kept(world, comm.rank);
        for (let round = 0; round < ROUNDS; round++) {
          const twin = await comm.dup();
          ids.add(twin.contextId);
          if (round % 16 === 0) await twin.sendrecv(fill(8, round), (comm.rank + 1) % comm.size, 1, new Uint8Array(8));
          await twin.free();
        }
        await comm.barrier();
        assert.deepEqual(kept(world, comm.rank), { ...before, ...onlyService(world, comm.rank, before) });
        assert.equal(ids.size, ROUNDS);
        if (comm.rank !== 0) return;
        console.info(`${ROUNDS} rounds of dup and free, ${comm.size} ranks: ${Math.round(performance.now() - begun)} ms`);
      });
    },
  },
  {
    name: '60 free with traffic under way: it ends first; what nobody has received is dropped',
    ranks: 2,
    notAlone: true,
    run: async (world) => {
      await everyRank(world, async (comm) => {
        const { rank } = comm;
        const twin = await comm.dup();
        const into = [new Uint8Array(300_000), new Uint8Array(100)];
        if (rank === 0) {
          const sends = [twin.isend(fill(300_000, 1), 1, 1), twin.isend(fill(100, 2), 1, 2), twin.isend(fill(64, 3), 1, 3)];
          await twin.free();
          for (const send of sends) assert.equal(send.done, true, 'what was begun has ended');
          return;
        }
        const receives = [twin.irecv(into[0], 0, 1), twin.irecv(into[1], 0, 2)];
        await twin.free();
        for (const receive of receives) assert.equal(receive.done, true);
        audit(into[0], 1, 'a long message');
        audit(into[1], 2, 'a short one');
      });
    },
  },
  {
    name: '61 several creations under way at once, on one communicator and on several, beside messages and collectives',
    ranks: 4,
    anySize: true,
    run: async (world) => {
      await everyRank(world, async (comm) => {
        const { rank, size } = comm;
        const [one, other] = await Promise.all([comm.dup(), comm.dup()]);
        const right = (rank + 1) % size;
        const left = (rank + size - 1) % size;
        const into = new Uint8Array(20_000);
        const made = await Promise.all([
          comm.dup(),
          one.dup(),
          comm.recv(into, left, 3).then(() => other.dup()),
          comm.split(rank % 2),
          sumOfRanks(comm, 1).then((sum) => one.split(sum === size ? 0 : UNDEFINED, -rank)),
          comm.send(fill(20_000, 5), right, 3).then(() => undefined),
          comm.dup(),
        ]);
        audit(into, 5, 'a message between creations');
        const comms = made.filter((created): created is Communicator => created !== undefined && created !== null);
        assert.equal(new Set(comms.map(({ contextId }) => contextId)).size, comms.length, 'ids differ');
        // At once on a communicator that others may not have yet.
        const early = await comm.dup();
        const sums = await Promise.all([...comms, early].map((created) => sumOfRanks(created, 1)));
        assert.deepEqual(
          sums,
          [...comms, early].map((created) => created.size),
        );
        await Promise.all([one, other, early, ...comms].map((created) => created.free()));
        assert.equal(await sumOfRanks(comm, 2), 2 * size);
      });
    },
  },
  {
    name: '62 splitType: the ranks on this host',
    ranks: 3,
    anySize: true,
    oneHost: 'all ranks are expected on one',
    run: async (world) => {
      await everyRank(world, async (comm) => {
        const near = (await comm.splitType('shared')) as Communicator;
        assert.equal(near.compare(comm), CONGRUENT, 'all ranks of this world are on one host');
        const backwards = (await comm.splitType('shared', -comm.rank)) as Communicator;
        assert.equal(backwards.rank, comm.size - 1 - comm.rank);
        await Promise.all([near.free(), backwards.free()]);
      });
    },
  },
  {
    name: '63 names',
    ranks: 2,
    anySize: true,
    run: async (world) => {
      await everyRank(world, async (comm) => {
        assert.equal(comm.name, 'world');
        const twin = await comm.dup();
        twin.setName('halo');
        assert.deepEqual([twin.name, comm.name], ['halo', 'world']);
        await fails('ERR_ARG', async () => twin.setName(7 as unknown as string));
        await twin.free();
        assert.match((await fails('ERR_COMM', twin.barrier())).message, /halo was freed/);
      });
    },
  },
  {
    name: '64 groups that do not fit together: an error, no hang, and all goes on',
    ranks: 3,
    notAlone: true,
    run: async (world) => {
      await everyRank(world, async (comm) => {
        const { group, rank, size } = comm;
        const differing = rank === 0 ? group : group.include([...Array(size).keys()].reverse());
        await fails('ERR_GROUP', comm.create(differing));
        assert.equal(await sumOfRanks(comm, 1), size);
        const many: Communicator[] = [];
        for (let i = 0; i < 40; i++) many.push(await (many[i % 7] ?? comm).dup());
        const sums = await Promise.all(many.map((one) => sumOfRanks(one, rank)));
        assert(sums.every((sum) => sum === (size * (size - 1)) / 2));
        await Promise.all(many.map((one) => one.free()));
      });
    },
  },
];

/** The service context is used from the first free() on: one more context, and its sequences. */
function onlyService(world: P2pWorld, rank: number, before: { contexts: number; flows: number }): { contexts: number; flows: number } {
  const now = kept(world, rank);
  assert(now.contexts <= before.contexts + 2 && now.flows <= before.flows + 4 * world.comms[0].size, JSON.stringify({ before, now }));
  return { contexts: now.contexts, flows: now.flows };
}
