// Cases of the collective suite: values by structured clone, with large memory next to them.
import { strict as assert } from 'node:assert';
import type { Communicator } from '../../../src/mpi/communicator.ts';
import { everyRank } from '../../support/coll-audit.ts';
import { audit, fails, fill } from '../../support/p2p-audit.ts';
import type { P2pCase } from '../p2p-suite.ts';

interface Value {
  from: number;
  text: string;
  when: Date;
  list: Map<string, number>;
  small: Uint8Array;
  large: Uint8Array | undefined;
  memory: ArrayBuffer | undefined;
}

/** Short, with a header that does not fit into one head, with large memory. */
const KINDS = ['short', 'long', 'large'] as const;

function sampleOf(rank: number, kind: (typeof KINDS)[number]): Value {
  return {
    from: rank,
    text: kind === 'long' ? 'x'.repeat(20_000 + rank) : `rank ${rank}`,
    when: new Date(rank),
    list: new Map([['rank', rank]]),
    small: fill(10 + rank, rank),
    large: kind === 'large' ? fill(70_000 + 1000 * rank, rank) : undefined,
    memory: kind === 'large' && rank % 2 === 1 ? fill(100_000, rank).buffer : undefined,
  };
}

function check(value: Value, rank: number, kind: (typeof KINDS)[number], what: string): void {
  const expected = sampleOf(rank, kind);
  assert.deepEqual({ ...value, large: undefined, memory: undefined }, { ...expected, large: undefined, memory: undefined }, what);
  assert.equal(value.large?.length, expected.large?.length, what);
  if (value.large !== undefined) audit(value.large, rank, what);
  if (value.memory !== undefined) audit(new Uint8Array(value.memory), rank, what);
  assert.equal(value.memory === undefined, expected.memory === undefined, what);
}

const ranksOf = ({ size }: Communicator): number[] => Array.from({ length: size }, (_, i) => i);

export const OBJECT_CASES: readonly P2pCase[] = [
  {
    name: 'objects: bcast, gather, allgather, scatter, alltoall, from every root, of every length',
    ranks: 5,
    anySize: true,
    run: async (world) => {
      await everyRank(world, async (comm) => {
        const { rank } = comm;
        const ranks = ranksOf(comm);
        for (const kind of KINDS) {
          for (const root of ranks) {
            check(await comm.bcastObject(rank === root ? sampleOf(root, kind) : (null as unknown as Value), root), root, kind, 'bcast');
            const gathered = await comm.gatherObject(sampleOf(rank, kind), root);
            assert.equal(gathered === null, rank !== root);
            gathered?.forEach((value, i) => void check(value, i, kind, 'gather'));
            const values = rank === root ? ranks.map((i) => sampleOf(i, kind)) : null;
            check(await comm.scatterObject(values, root), rank, kind, 'scatter');
          }
          const all = await comm.allgatherObject(sampleOf(rank, kind));
          assert.equal(all.length, comm.size);
          for (const [i, value] of all.entries()) check(value, i, kind, 'allgather');
          const turned = await comm.alltoallObject(ranks.map((i) => ({ to: i, value: sampleOf(rank, kind) })));
          for (const [i, { to, value }] of turned.entries()) {
            assert.equal(to, rank);
            check(value, i, kind, 'alltoall');
          }
        }
        // One rank's value is large, the others' short; undefined and null are values.
        const mixed = await comm.allgatherObject(rank === 0 ? fill(200_000, 3) : rank % 2 === 1 ? undefined : null);
        assert.deepEqual(
          mixed.slice(1),
          ranks.slice(1).map((i) => (i % 2 === 1 ? undefined : null)),
        );
        audit(mixed[0] as Uint8Array, 3, 'one large value among short ones');
      });
    },
  },
  {
    name: 'objects: reduce and allreduce by a function, in rank order, and one that throws',
    ranks: 5,
    anySize: true,
    run: async (world) => {
      await everyRank(world, async (comm) => {
        const { rank, size } = comm;
        const text = ranksOf(comm).join('');
        const join = (a: string, b: string) => a + b;
        for (const root of ranksOf(comm)) {
          assert.equal(await comm.reduceObject(String(rank), join, root), rank === root ? text : null);
        }
        assert.equal(await comm.allreduceObject(String(rank), join), text);
        const longest = await comm.allreduceObject(fill(80_000 + rank, rank), (a, b) => (b.length > a.length ? b : a));
        audit(longest, size - 1, 'the longest one');
        const sum = await comm.allreduceObject({ n: rank, ranks: new Set([rank]) }, (a, b) => ({
          n: a.n + b.n,
          ranks: new Set([...a.ranks, ...b.ranks]),
        }));
        assert.deepEqual([sum.n, [...sum.ranks]], [(size * (size - 1)) / 2, ranksOf(comm)]);
        if (size > 1) {
          const thrown = await fails(
            'ERR_OP',
            comm.allreduceObject(rank, () => {
              throw new Error('of the user');
            }),
          );
          assert.match(thrown.message, /of the user/);
        }
        assert.equal(await comm.bcastObject(rank, 0), 0, 'the next call is right');
      });
    },
  },
  {
    name: 'objects: misuse is told before anything is sent',
    ranks: 2,
    anySize: true,
    run: async (world) => {
      await everyRank(world, async (comm) => {
        await fails('ERR_ROOT', comm.bcastObject(1, 77));
        await fails(
          'ERR_ARG',
          comm.allgatherObject(() => 1),
        );
        await fails('ERR_COUNT', comm.scatterObject([1, 2, 3], comm.rank));
        await fails('ERR_COUNT', comm.alltoallObject([1, 2, 3]));
        await fails('ERR_OP', comm.reduceObject(1, 5 as never));
        assert.deepEqual(await comm.allgatherObject(comm.rank), ranksOf(comm));
      });
    },
  },
];
