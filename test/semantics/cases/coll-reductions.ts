// Cases of the collective suite: reductions (36 to 44, 49 and 50 of the list), each with every algorithm.
import { strict as assert } from 'node:assert';
import { ALGORITHMS } from '../../../src/mpi/coll/choice.ts';
import { IN_PLACE } from '../../../src/mpi/coll/memory.ts';
import { Op } from '../../../src/mpi/op.ts';
import {
  ARRAY_NAMES,
  combined,
  everyRank,
  isFloat,
  MATRIX,
  MEANING,
  matrices,
  matrixProduct,
  multiply,
  sameBits,
  sameValues,
  values,
  zeros,
} from '../../support/coll-audit.ts';
import type { P2pCase } from '../p2p-suite.ts';

const matrixProducts = Op.create(multiply, { unit: MATRIX, name: 'product of matrices' });
/** Below, at and above the number of ranks, around the eager limit, several fragments. */
const COUNTS = [0, 1, 3, 5, 64, 1025, 12_001];

const opOf = (name: string): Op => (Op as unknown as Record<string, Op>)[name];
const roots = (size: number): number[] => Array.from({ length: size }, (_, root) => root);

/** One case for each algorithm of a call, besides the choice by length. */
function withEach(name: keyof typeof ALGORITHMS, one: P2pCase): P2pCase[] {
  return ['auto', ...ALGORITHMS[name]].map((algorithm) => ({
    ...one,
    name: `${one.name} (${algorithm})`,
    params: { ...one.params, [`coll_${name}_algorithm`]: algorithm },
  }));
}

export const REDUCTION_CASES: readonly P2pCase[] = [
  ...withEach('allreduce', {
    name: '36, 49 allreduce: all classes of arrays and all operations',
    ranks: 5,
    anySize: true,
    run: async (world) => {
      const { size } = world.comms[0];
      await everyRank(world, async (comm) => {
        for (const array of ARRAY_NAMES) {
          for (const [op, { floats }] of Object.entries(MEANING)) {
            if (!floats && isFloat(array)) continue;
            const recv = zeros(array, 23);
            await comm.allreduce(values(array, 23, comm.rank), recv, opOf(op));
            const expected = combined(
              array,
              op,
              roots(size).map((rank) => values(array, 23, rank)),
            );
            sameValues(recv, expected, `${op} of ${array}`);
          }
        }
      });
    },
  }),
  ...withEach('allreduce', {
    name: '37 to 40, 50 allreduce: lengths, in place, without commuting, bits that are the same everywhere',
    ranks: 5,
    anySize: true,
    run: async (world) => {
      const { size } = world.comms[0];
      await everyRank(world, async (comm) => {
        for (const count of COUNTS) {
          const recv = new Float64Array(count);
          await comm.allreduce(values('Float64Array', count, comm.rank) as Float64Array, recv);
          const inPlace = values('Float64Array', count, comm.rank);
          await comm.allreduce(IN_PLACE, inPlace);
          sameBits(inPlace, recv, 'in place');
          const product = new Int32Array(count * MATRIX);
          await comm.allreduce(matrices(count, comm.rank), product, matrixProducts);
          sameBits(product, matrixProduct(count, roots(size)), `${count} products of matrices`);
          const inputs = roots(size).map((rank) => values('Float64Array', count, rank));
          sameValues(recv, combined('Float64Array', 'SUM', inputs), `${count} sums`);
          const everywhere = new Float64Array(count * size);
          await comm.allgather(recv, everywhere);
          for (const rank of roots(size)) {
            sameBits(everywhere.subarray(rank * count, (rank + 1) * count), recv, `the same bits at rank ${rank} and at ${comm.rank}`);
          }
        }
      });
    },
  }),
  {
    name: '41 allreduce: two hundred under way at once',
    alwaysDrawn: true,
    ranks: 4,
    anySize: true,
    run: async (world) => {
      const { size } = world.comms[0];
      await everyRank(world, async (comm) => {
        const results = Array.from({ length: 200 }, () => new Int32Array(5));
        await Promise.all(results.map((recv, i) => comm.allreduce(new Int32Array(5).fill(i + comm.rank), recv)));
        for (const [i, recv] of results.entries()) assert.equal(recv[4], i * size + (size * (size - 1)) / 2);
      });
    },
  },
  ...withEach('reduce', {
    name: '42 reduce: every root, in place, without commuting',
    ranks: 5,
    anySize: true,
    run: async (world) => {
      const { size } = world.comms[0];
      await everyRank(world, async (comm) => {
        for (const root of roots(size)) {
          for (const count of [1, 65, 3001]) {
            const isRoot = comm.rank === root;
            const recv = isRoot ? new Int32Array(count) : null;
            const own = values('Int32Array', count, comm.rank, root) as Int32Array;
            await comm.reduce(own, recv, Op.SUM, root);
            sameBits(own, values('Int32Array', count, comm.rank, root), 'what is sent stays as it is');
            const inputs = roots(size).map((rank) => values('Int32Array', count, rank, root));
            const expected = combined('Int32Array', 'SUM', inputs);
            if (recv !== null) sameBits(recv, expected, `sum at ${root}`);
            const inPlace = values('Int32Array', count, comm.rank, root);
            await (isRoot ? comm.reduce(IN_PLACE, inPlace, Op.SUM, root) : comm.reduce(inPlace, null, Op.SUM, root));
            if (isRoot) sameBits(inPlace, expected, `sum at ${root}, in place`);
            const product = isRoot ? new Int32Array(count * MATRIX) : undefined;
            await comm.reduce(matrices(count, comm.rank), product, matrixProducts, root);
            if (product !== undefined) sameBits(product, matrixProduct(count, roots(size)), `products at ${root}`);
          }
        }
      });
    },
  }),
  ...withEach('reduce_scatter', {
    name: '43 reduceScatter and reduceScatterBlock: counts that differ, zero among them, in place, without commuting',
    ranks: 5,
    anySize: true,
    run: async (world) => {
      const { size } = world.comms[0];
      await everyRank(world, async (comm) => {
        for (const scale of [1, 37, 700]) {
          const counts = roots(size).map((rank) => (rank % 3) * scale);
          const total = counts.reduce((sum, count) => sum + count, 0);
          const at = counts.slice(0, comm.rank).reduce((sum, count) => sum + count, 0);
          const mine = counts[comm.rank];
          const inputs = roots(size).map((rank) => values('Int32Array', total, rank));
          const expected = combined('Int32Array', 'SUM', inputs).subarray(at, at + mine);
          const recv = new Int32Array(mine);
          await comm.reduceScatter(values('Int32Array', total, comm.rank), recv, counts);
          sameBits(recv, expected, 'part of the sum');
          const inPlace = values('Int32Array', total, comm.rank);
          await comm.reduceScatter(IN_PLACE, inPlace, counts);
          sameBits(inPlace.subarray(0, mine), expected, 'in place');

          const each = scale * MATRIX;
          const blockInputs = roots(size).map((rank) => values('Float64Array', each * size, rank));
          const blockSum = combined('Float64Array', 'SUM', blockInputs).subarray(comm.rank * each, (comm.rank + 1) * each);
          const block = new Float64Array(each);
          await comm.reduceScatterBlock(values('Float64Array', each * size, comm.rank), block);
          sameValues(block, blockSum, 'block of the sum');
          const product = new Int32Array(each);
          await comm.reduceScatterBlock(matrices(scale * size, comm.rank), product, matrixProducts);
          const products = matrixProduct(scale * size, roots(size));
          sameBits(product, products.subarray(comm.rank * each, (comm.rank + 1) * each), 'block of the products');
        }
      });
    },
  }),
  ...withEach('scan', {
    name: '44 scan and exscan: in place, without commuting',
    ranks: 5,
    anySize: true,
    run: async (world) => {
      await everyRank(world, async (comm) => {
        for (const count of [1, 65, 3001]) {
          const upTo = roots(comm.rank + 1);
          const inputs = upTo.map((rank) => values('Int32Array', count, rank));
          const recv = new Int32Array(count);
          await comm.scan(values('Int32Array', count, comm.rank), recv);
          sameBits(recv, combined('Int32Array', 'SUM', inputs), 'scan');
          const inPlace = values('Int32Array', count, comm.rank);
          await comm.scan(IN_PLACE, inPlace);
          sameBits(inPlace, recv, 'scan in place');
          const product = new Int32Array(count * MATRIX);
          await comm.scan(matrices(count, comm.rank), product, matrixProducts);
          sameBits(product, matrixProduct(count, upTo), 'scan of matrices');

          const before = new Int32Array(count).fill(77);
          await comm.exscan(values('Int32Array', count, comm.rank), before);
          const exclusive = values('Int32Array', count, comm.rank);
          await comm.exscan(IN_PLACE, exclusive);
          const products = new Int32Array(count * MATRIX);
          await comm.exscan(matrices(count, comm.rank), products, matrixProducts);
          if (comm.rank === 0) {
            assert(
              before.every((value) => value === 77),
              'exscan leaves rank 0 alone',
            );
            sameBits(exclusive, values('Int32Array', count, 0), 'also in place');
            continue;
          }
          sameBits(before, combined('Int32Array', 'SUM', inputs.slice(0, -1)), 'exscan');
          sameBits(exclusive, before, 'exscan in place');
          sameBits(products, matrixProduct(count, upTo.slice(0, -1)), 'exscan of matrices');
        }
      });
    },
  }),
  {
    name: '49 MAXLOC and MINLOC: pairs of value and index in one array, of every class',
    ranks: 5,
    anySize: true,
    run: async (world) => {
      const { size } = world.comms[0];
      await everyRank(world, async (comm) => {
        for (const array of ARRAY_NAMES) {
          const big = array.startsWith('Big');
          const pair = (rank: number) => {
            const pairs = zeros(array, 6);
            const list = [rank % 2, rank, size + 5 - rank, rank, 3, size - rank];
            for (const [i, value] of list.entries()) (pairs as Float64Array)[i] = (big ? BigInt(value) : value) as number;
            return pairs;
          };
          const all = roots(size).map((rank) => [rank % 2, rank, size + 5 - rank, rank, 3, size - rank]);
          for (const [op, sign] of [
            [Op.MAXLOC, 1],
            [Op.MINLOC, -1],
          ] as const) {
            const recv = zeros(array, 6);
            await comm.allreduce(pair(comm.rank), recv, op);
            for (const at of [0, 2, 4]) {
              const best = [...all].sort((a, b) => sign * (b[at] - a[at]) || a[at + 1] - b[at + 1])[0];
              assert.deepEqual([Number(recv[at]), Number(recv[at + 1])], [best[at], best[at + 1]], `${op.name} of ${array}`);
            }
          }
        }
      });
    },
  },
];
