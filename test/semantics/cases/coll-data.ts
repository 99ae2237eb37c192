// Cases of the collective suite: movement of data (45 to 48 and 54 of the list), each with every algorithm.
import { strict as assert } from 'node:assert';
import { vector } from '../../../src/mpi/buffers.ts';
import { ALGORITHMS } from '../../../src/mpi/coll/choice.ts';
import { IN_PLACE } from '../../../src/mpi/coll/memory.ts';
import { ARRAY_NAMES, everyRank, sameBits, values, zeros } from '../../support/coll-audit.ts';
import { fill } from '../../support/p2p-audit.ts';
import type { P2pCase } from '../p2p-suite.ts';

const roots = (size: number): number[] => Array.from({ length: size }, (_, root) => root);

function withEach(names: readonly (keyof typeof ALGORITHMS)[], one: P2pCase): P2pCase[] {
  return ['auto', ...ALGORITHMS[names[0]]].map((algorithm) => ({
    ...one,
    name: `${one.name} (${algorithm})`,
    params: { ...one.params, ...Object.fromEntries(names.map((name) => [`coll_${name}_algorithm`, algorithm])) },
  }));
}

const joined = (parts: readonly Uint8Array[]): Uint8Array => new Uint8Array(Buffer.concat(parts));

export const DATA_CASES: readonly P2pCase[] = [
  {
    name: 'barrier: nobody leaves before everybody has come',
    ranks: 5,
    anySize: true,
    oneHost: 'the ranks compare their times',
    run: async (world) => {
      const rounds = 20;
      await everyRank(world, async (comm) => {
        const came = new BigInt64Array(rounds);
        const left = new BigInt64Array(rounds);
        for (let round = 0; round < rounds; round++) {
          if ((round + comm.rank) % 3 === 0) await world.sleep(1);
          came[round] = process.hrtime.bigint();
          await comm.barrier();
          left[round] = process.hrtime.bigint();
        }
        const others = new BigInt64Array(rounds * comm.size);
        await comm.allgather(came, others);
        for (const [i, theirs] of others.entries()) {
          const [rank, round] = [Math.floor(i / rounds), i % rounds];
          assert(theirs < left[round], `rank ${comm.rank} left round ${round} ${theirs - left[round]} ns before rank ${rank} came`);
        }
      });
    },
  },
  ...withEach(['bcast'], {
    name: '45 bcast: sizes, roots, classes, nothing at all',
    ranks: 5,
    anySize: true,
    params: { coll_bcast_segment_bytes: '3000' },
    run: async (world) => {
      await everyRank(world, async (comm) => {
        for (const root of roots(comm.size)) {
          for (const bytes of [0, 1, 3, 1000, 4097, 100_003]) {
            const buffer = comm.rank === root ? fill(bytes, bytes + root) : new Uint8Array(bytes);
            await comm.bcast(buffer, root);
            sameBits(buffer, fill(bytes, bytes + root), `${bytes} bytes from ${root}`);
          }
          for (const array of ARRAY_NAMES) {
            const buffer = comm.rank === root ? values(array, 99, root) : zeros(array, 99);
            await comm.bcast(buffer, root);
            sameBits(buffer, values(array, 99, root), `${array} from ${root}`);
          }
        }
      });
    },
  }),
  ...withEach(['gather', 'scatter'], {
    name: '46 gather and scatter: roots, lengths, in place',
    ranks: 5,
    anySize: true,
    run: async (world) => {
      const { size } = world.comms[0];
      await everyRank(world, async (comm) => {
        for (const root of roots(size)) {
          for (const bytes of [0, 1, 100, 5000]) {
            const isRoot = comm.rank === root;
            const all = joined(roots(size).map((rank) => fill(bytes, rank + 10 * root)));
            const own = fill(bytes, comm.rank + 10 * root);
            const recv = isRoot ? new Uint8Array(size * bytes) : null;
            await comm.gather(own, recv, root);
            if (recv !== null) sameBits(recv, all, `gather of ${bytes} bytes at ${root}`);
            if (isRoot) {
              const inPlace = new Uint8Array(size * bytes);
              inPlace.set(own, root * bytes);
              await comm.gather(IN_PLACE, inPlace, root);
              sameBits(inPlace, all, 'gather in place');
            } else await comm.gather(own, null, root);

            const part = new Uint8Array(bytes);
            await comm.scatter(isRoot ? all : null, part, root);
            sameBits(part, own, `scatter of ${bytes} bytes from ${root}`);
            const again = new Uint8Array(bytes);
            const kept = all.slice();
            await (isRoot ? comm.scatter(kept, IN_PLACE, root) : comm.scatter(null, again, root));
            sameBits(isRoot ? kept : again, isRoot ? all : own, 'scatter in place');
          }
        }
      });
    },
  }),
  {
    name: '46 gatherv and scatterv: counts that differ, gaps, another order, in place, strided',
    ranks: 5,
    anySize: true,
    run: async (world) => {
      const { size } = world.comms[0];
      await everyRank(world, async (comm) => {
        for (const root of roots(size)) {
          for (const scale of [1, 600]) {
            const isRoot = comm.rank === root;
            const counts = roots(size).map((rank) => ((rank + root) % 3) * scale);
            // The last rank first, with a gap of one element between two.
            const displs = roots(size).map((rank) => counts.slice(rank + 1).reduce((sum, count) => sum + count + 1, 0));
            const length = counts.reduce((sum, count) => sum + count + 1, 0);
            const own = values('Int32Array', counts[comm.rank], comm.rank, root) as Int32Array;
            const expected = new Int32Array(length).fill(-9);
            for (const rank of roots(size)) expected.set(values('Int32Array', counts[rank], rank, root) as Int32Array, displs[rank]);
            const recv = new Int32Array(length).fill(-9);
            await comm.gatherv(own, isRoot ? recv : null, isRoot ? counts : null, displs, root);
            if (isRoot) sameBits(recv, expected, `gatherv at ${root}`);
            const inPlace = new Int32Array(length).fill(-9);
            inPlace.set(own, displs[comm.rank]);
            await comm.gatherv(isRoot ? IN_PLACE : own, isRoot ? inPlace : null, counts, displs, root);
            if (isRoot) sameBits(inPlace, expected, `gatherv in place at ${root}`);

            const part = new Int32Array(own.length);
            await comm.scatterv(isRoot ? expected : null, isRoot ? counts : null, displs, part, root);
            sameBits(part, own, `scatterv from ${root}`);
            await comm.scatterv(isRoot ? expected : null, counts, displs, isRoot ? IN_PLACE : part, root);
            sameBits(part, own, `scatterv from ${root} in place`);
          }
        }
        // A column of a matrix is gathered into the rows of another.
        const rows = 300;
        const matrix = new Float64Array(rows * 4).map((_, i) => comm.rank * 10_000 + i);
        const column = new Float64Array(rows).map((_, i) => comm.rank * 10_000 + i * 4 + 1);
        const gathered = comm.rank === 0 ? new Float64Array(rows * size) : null;
        await comm.gather(vector(matrix.subarray(1), rows, 1, 4), gathered, 0);
        if (gathered !== null) for (let i = 0; i < rows; i++) assert.equal(gathered[i], i * 4 + 1);
        const sums = new Float64Array(rows * 2);
        await comm.allreduce(vector(matrix.subarray(1), rows, 1, 4), vector(sums, rows, 1, 2));
        const expected = column.map((value) => value * size + 10_000 * (roots(size).reduce((a, b) => a + b, 0) - comm.rank * size));
        for (let i = 0; i < rows; i++) assert.deepEqual([sums[2 * i], sums[2 * i + 1]], [expected[i], 0]);
      });
    },
  },
  ...withEach(['allgather'], {
    name: '47 allgather and allgatherv: lengths, gaps, in place',
    ranks: 5,
    anySize: true,
    run: async (world) => {
      const { size } = world.comms[0];
      await everyRank(world, async (comm) => {
        for (const bytes of [0, 1, 100, 5000]) {
          const all = joined(roots(size).map((rank) => fill(bytes, rank)));
          const recv = new Uint8Array(size * bytes);
          await comm.allgather(fill(bytes, comm.rank), recv);
          sameBits(recv, all, `allgather of ${bytes} bytes`);
          const inPlace = new Uint8Array(size * bytes);
          inPlace.set(fill(bytes, comm.rank), comm.rank * bytes);
          await comm.allgather(IN_PLACE, inPlace);
          sameBits(inPlace, all, 'allgather in place');

          const counts = roots(size).map((rank) => (rank % 3) * bytes);
          const displs = roots(size).map((rank) => counts.slice(rank + 1).reduce((sum, count) => sum + count + 1, 0));
          const expected = new Uint8Array(counts.reduce((sum, count) => sum + count + 1, 0)).fill(7);
          for (const rank of roots(size)) expected.set(fill(counts[rank], rank), displs[rank]);
          const gaps = new Uint8Array(expected.length).fill(7);
          await comm.allgatherv(fill(counts[comm.rank], comm.rank), gaps, counts, displs);
          sameBits(gaps, expected, `allgatherv of ${bytes} bytes`);
          const again = new Uint8Array(expected.length).fill(7);
          again.set(fill(counts[comm.rank], comm.rank), displs[comm.rank]);
          await comm.allgatherv(IN_PLACE, again, counts, displs);
          sameBits(again, expected, 'allgatherv in place');
        }
      });
    },
  }),
  ...withEach(['alltoall'], {
    name: '48 alltoall: lengths, in place',
    ranks: 5,
    anySize: true,
    run: async (world) => {
      const { size } = world.comms[0];
      await everyRank(world, async (comm) => {
        for (const bytes of [0, 1, 100, 5000]) {
          const send = joined(roots(size).map((dest) => fill(bytes, comm.rank * 100 + dest)));
          const expected = joined(roots(size).map((source) => fill(bytes, source * 100 + comm.rank)));
          const recv = new Uint8Array(size * bytes);
          await comm.alltoall(send, recv);
          sameBits(recv, expected, `alltoall of ${bytes} bytes`);
          await comm.alltoall(IN_PLACE, send);
          sameBits(send, expected, 'alltoall in place');
        }
      });
    },
  }),
  {
    name: '48 alltoallv and alltoallw: counts that differ, zero among them, gaps, buffers of any shape',
    ranks: 5,
    anySize: true,
    run: async (world) => {
      const { size } = world.comms[0];
      const count = (from: number, to: number) => ((from + 2 * to) % 4) * 300;
      const part = (from: number, to: number) => values('Int16Array', count(from, to), from * 50 + to) as Int16Array;
      await everyRank(world, async (comm) => {
        const { rank } = comm;
        const sendCounts = roots(size).map((to) => count(rank, to));
        const recvCounts = roots(size).map((from) => count(from, rank));
        const gaps = (counts: readonly number[]) => counts.map((_, i) => counts.slice(0, i).reduce((sum, n) => sum + n + 1, 1));
        const send = new Int16Array(sendCounts.reduce((sum, n) => sum + n + 1, 1));
        const recv = new Int16Array(recvCounts.reduce((sum, n) => sum + n + 1, 1));
        const expected = recv.slice();
        for (const other of roots(size)) {
          send.set(part(rank, other), gaps(sendCounts)[other]);
          expected.set(part(other, rank), gaps(recvCounts)[other]);
        }
        await comm.alltoallv(send, sendCounts, gaps(sendCounts), recv, recvCounts, gaps(recvCounts));
        sameBits(recv, expected, 'alltoallv');

        const sends = roots(size).map((to) => vector(spread(part(rank, to)), count(rank, to), 1, 2));
        const targets = roots(size).map((from) => new Int16Array(count(from, rank)));
        await comm.alltoallw(sends, targets);
        for (const from of roots(size)) sameBits(targets[from], part(from, rank), `alltoallw from ${from}`);
        const nothing = roots(size).map(() => new Uint8Array(0));
        await comm.alltoallw(nothing, nothing);

        // In place, what goes from a to b is as long as what comes back: the pattern of counts is symmetric.
        const equal = (a: number, b: number) => ((a + b) % 3) * 40;
        const own = roots(size).map((to) => equal(rank, to));
        const cell = (from: number, to: number) => values('Int16Array', equal(from, to), from * 70 + to) as Int16Array;
        const both = new Int16Array(own.reduce((sum, n) => sum + n + 1, 1));
        const turned = both.slice();
        for (const other of roots(size)) {
          both.set(cell(rank, other), gaps(own)[other]);
          turned.set(cell(other, rank), gaps(own)[other]);
        }
        await comm.alltoallv(IN_PLACE, null, null, both, own, gaps(own));
        sameBits(both, turned, 'alltoallv in place');
        const cells = roots(size).map((to) => cell(rank, to));
        await comm.alltoallw(IN_PLACE, cells);
        for (const from of roots(size)) sameBits(cells[from], cell(from, rank), `alltoallw in place from ${from}`);
        const zeroCounts = roots(size).map(() => 0);
        await comm.alltoallv(send, zeroCounts, null, recv, zeroCounts);
        sameBits(recv, expected, 'nothing more has come');
      });
    },
  },
  {
    name: '54 large: a megabyte and more, strided too',
    alwaysDrawn: true,
    ranks: 4,
    anySize: true,
    run: async (world) => {
      const { size } = world.comms[0];
      const count = 160_000;
      await everyRank(world, async (comm) => {
        const own = new Float64Array(count).fill(comm.rank + 1);
        const sum = new Float64Array(count);
        await comm.allreduce(own, sum);
        assert(sum.every((value) => value === (size * (size + 1)) / 2));
        const all = new Float64Array(count * size);
        await comm.allgather(own, all);
        assert(all.every((value, i) => value === Math.floor(i / count) + 1));
        const turned = new Float64Array(count * size);
        await comm.alltoall(all, turned);
        assert(turned.every((value) => value === comm.rank + 1));
        await comm.bcast(all, size - 1);
        assert.equal(all[count * size - 1], size);
      });
    },
  },
];

/** Every second element. */
function spread(array: Int16Array): Int16Array {
  const wide = new Int16Array(array.length * 2);
  for (const [i, value] of array.entries()) wide[2 * i] = value;
  return wide;
}
