// Collectives in a round of the soak. What is called with which lengths, classes, operations and roots is drawn by all ranks alike; each
// computes every result by itself, in the plainest way, and holds it against what came.
// Imports the product's public face, the audit of the collective suite, soak-talk, soak-audit, the generator.
import { deepStrictEqual } from 'node:assert';
import { type Communicator, IN_PLACE, Op, type PersistentRequest } from '../../src/index.ts';
import type { ArrayName } from '../../src/mpi/coll/kernels.ts';
import type { Prng } from '../../src/util/prng.ts';
import {
  ARRAY_NAMES,
  combined,
  isBig,
  isFloat,
  MATRIX,
  MEANING,
  matrices,
  matrixProduct,
  multiply,
  sameBits,
  values,
  zeros,
} from '../../test/support/coll-audit.ts';
import type { Talk } from './talk.ts';

/** Clamped sums depend on the order: the one class that is left out. */
const ARRAYS = ARRAY_NAMES.filter((name) => name !== 'Uint8ClampedArray');
type Data = ReturnType<typeof zeros>;

const COUNTS = [0, 1, 2, 3, 7, 16, 100, 129, 1000, 1025, 4096, 12_001] as const;
const LONG_COUNTS = [30_000, 60_001] as const;
/** For every other rank. */
const WIDE_LONG_COUNTS = [4096, 12_001] as const;
const matrixProducts = Op.create(multiply, { unit: MATRIX, name: 'product of matrices' });
const opOf = (name: string): Op => (Op as unknown as Record<string, Op>)[name];

/** One call as this rank makes it. `check` throws when the result is another than it must be. */
interface Call {
  /** Its name, without `i`, `Sync` or `Init`. */
  method: string;
  args: unknown[];
  check(): void;
}

/** What the ranks of a communicator share in drawing a call, and what this one is among them. */
interface Draw {
  rank: number;
  size: number;
  prng: Prng;
  array: ArrayName;
  count: number;
  root: number;
  /** The own buffer is input and output. */
  inPlace: boolean;
  seed: number;
}

const range = (size: number) => Array.from({ length: size }, (_, i) => i);

/** Contribution of a rank. Floats are whole numbers so small that every order of combining them gives the same bits. */
function input({ array, seed }: Draw, count: number, rank: number, op = 'SUM'): Data {
  if (!isFloat(array)) return values(array, count, rank, seed);
  const small = values('Int8Array', count, rank, seed) as Int8Array;
  const result = zeros(array, count) as Float64Array;
  for (let i = 0; i < count; i++) result[i] = op === 'PROD' ? ((small[i] & 1) === 1 ? 2 : -1) : small[i];
  return result;
}

function joined(draw: Draw, parts: readonly Data[]): Data {
  const result = zeros(
    draw.array,
    parts.reduce((sum, part) => sum + part.length, 0),
  );
  let at = 0;
  for (const part of parts) {
    result.set(part as never, at);
    at += part.length;
  }
  return result;
}

const drawOp = ({ array, prng }: Draw) => prng.pick(Object.keys(MEANING).filter((name) => MEANING[name].floats || !isFloat(array)));
const drawCounts = ({ size, prng, count }: Draw) => range(size).map(() => (prng.chance(1, 4) ? 0 : prng.below(count + 1)));
const displsOf = (counts: readonly number[]) => counts.map((_, i) => counts.slice(0, i).reduce((sum, count) => sum + count, 0));
const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0);

type Maker = (draw: Draw) => Omit<Call, 'method'>;

const CALLS: Readonly<Record<string, Maker>> = {
  barrier: () => ({ args: [], check: () => undefined }),

  bcast: (d) => {
    const sent = input(d, d.count, d.root);
    const buffer = d.rank === d.root ? sent.slice() : zeros(d.array, d.count);
    return { args: [buffer, d.root], check: () => sameBits(buffer, sent, `bcast of ${d.root}`) };
  },

  reduce: (d) => {
    const op = drawOp(d);
    const due = () =>
      combined(
        d.array,
        op,
        range(d.size).map((rank) => input(d, d.count, rank, op)),
      );
    const own = input(d, d.count, d.rank, op);
    const isRoot = d.rank === d.root;
    const recv = isRoot ? (d.inPlace ? own : zeros(d.array, d.count)) : null;
    const check = () => void (recv !== null && sameBits(recv, due(), `reduce by ${op} to ${d.root}`));
    return { args: [isRoot && d.inPlace ? IN_PLACE : own, recv, opOf(op), d.root], check };
  },

  allreduce: (d) => {
    if (d.prng.chance(1, 6)) {
      const length = Math.ceil(Math.min(d.count, 5000) / MATRIX);
      const product = new Int32Array(length * MATRIX);
      const due = () => matrixProduct(length, range(d.size));
      return { args: [matrices(length, d.rank), product, matrixProducts], check: () => sameBits(product, due(), 'product of matrices') };
    }
    const op = drawOp(d);
    const own = input(d, d.count, d.rank, op);
    const recv = d.inPlace ? own : zeros(d.array, d.count);
    const due = () =>
      combined(
        d.array,
        op,
        range(d.size).map((rank) => input(d, d.count, rank, op)),
      );
    return { args: [d.inPlace ? IN_PLACE : own, recv, opOf(op)], check: () => sameBits(recv, due(), `allreduce by ${op}`) };
  },

  gather: (d) => gathered(d, d.rank === d.root, [d.root]),
  allgather: (d) => gathered(d, true, []),

  gatherv: (d) => gatheredByCounts(d, d.rank === d.root, [d.root]),
  allgatherv: (d) => gatheredByCounts(d, true, []),

  scatter: (d) => {
    const all = joined(
      d,
      range(d.size).map((rank) => input(d, d.count, rank)),
    );
    const isRoot = d.rank === d.root;
    const recv = zeros(d.array, d.count);
    const keeps = isRoot && d.inPlace;
    const check = () => void (keeps || sameBits(recv, input(d, d.count, d.rank), `scatter of ${d.root}`));
    return { args: [isRoot ? all : null, keeps ? IN_PLACE : recv, d.root], check };
  },

  scatterv: (d) => {
    const counts = drawCounts(d);
    const all = joined(
      d,
      range(d.size).map((rank) => input(d, counts[rank], rank)),
    );
    const isRoot = d.rank === d.root;
    const recv = zeros(d.array, counts[d.rank]);
    const keeps = isRoot && d.inPlace;
    const check = () => void (keeps || sameBits(recv, input(d, counts[d.rank], d.rank), `scatterv of ${d.root}`));
    return { args: [isRoot ? all : null, counts, displsOf(counts), keeps ? IN_PLACE : recv, d.root], check };
  },

  alltoall: (d) => {
    const from = (source: number) => input(d, d.count * d.size, source);
    const own = from(d.rank);
    const recv = d.inPlace ? own : zeros(d.array, d.count * d.size);
    const part = (source: number) => from(source).subarray(d.rank * d.count, (d.rank + 1) * d.count) as Data;
    const check = () => sameBits(recv, joined(d, range(d.size).map(part)), 'alltoall');
    return { args: [d.inPlace ? IN_PLACE : own, recv], check };
  },

  alltoallv: (d) => {
    const counts = range(d.size).map(() => drawCounts(d));
    const sendCounts = counts[d.rank];
    const recvCounts = counts.map((row) => row[d.rank]);
    const recv = zeros(d.array, sum(recvCounts));
    const part = (source: number): Data => {
      const at = displsOf(counts[source])[d.rank];
      return input(d, sum(counts[source]), source).subarray(at, at + recvCounts[source]) as Data;
    };
    const check = () => sameBits(recv, joined(d, range(d.size).map(part)), 'alltoallv');
    const own = input(d, sum(sendCounts), d.rank);
    return { args: [own, sendCounts, displsOf(sendCounts), recv, recvCounts, displsOf(recvCounts)], check };
  },

  alltoallw: (d) => {
    const counts = range(d.size).map(() => drawCounts(d));
    const to = (source: number, dest: number) => input(d, counts[source][dest], source * d.size + dest);
    const recvs = range(d.size).map((source) => zeros(d.array, counts[source][d.rank]));
    const check = () => recvs.forEach((recv, source) => void sameBits(recv, to(source, d.rank), `alltoallw of ${source}`));
    return { args: [range(d.size).map((dest) => to(d.rank, dest)), recvs], check };
  },

  reduceScatterBlock: (d) =>
    reduceScattered(
      d,
      range(d.size).map(() => d.count),
      [],
    ),
  reduceScatter: (d) => {
    const counts = drawCounts(d);
    return reduceScattered(d, counts, [counts]);
  },

  scan: (d) => scanned(d, d.rank + 1),
  exscan: (d) => scanned(d, d.rank),
};

function gathered(d: Draw, hasAll: boolean, root: number[]): Omit<Call, 'method'> {
  const own = input(d, d.count, d.rank);
  const inPlace = hasAll && d.inPlace;
  const recv = hasAll ? zeros(d.array, d.count * d.size) : null;
  if (inPlace) recv?.set(own as never, d.rank * d.count);
  const due = () =>
    joined(
      d,
      range(d.size).map((rank) => input(d, d.count, rank)),
    );
  return {
    args: [inPlace ? IN_PLACE : own, recv, ...root],
    check: () => void (recv !== null && sameBits(recv, due(), 'what was gathered')),
  };
}

function gatheredByCounts(d: Draw, hasAll: boolean, root: number[]): Omit<Call, 'method'> {
  const counts = drawCounts(d);
  const displs = displsOf(counts);
  const own = input(d, counts[d.rank], d.rank);
  const inPlace = hasAll && d.inPlace;
  const recv = hasAll ? zeros(d.array, sum(counts)) : null;
  if (inPlace) recv?.set(own as never, displs[d.rank]);
  const due = () =>
    joined(
      d,
      range(d.size).map((rank) => input(d, counts[rank], rank)),
    );
  const check = () => void (recv !== null && sameBits(recv, due(), 'what was gathered by counts'));
  return { args: [inPlace ? IN_PLACE : own, recv, counts, displs, ...root], check };
}

function reduceScattered(d: Draw, counts: readonly number[], more: unknown[]): Omit<Call, 'method'> {
  const op = drawOp(d);
  const total = sum(counts);
  const own = input(d, total, d.rank, op);
  const mine = counts[d.rank];
  const recv = d.inPlace ? own : zeros(d.array, mine);
  const at = displsOf(counts)[d.rank];
  const parts = () => range(d.size).map((rank) => input(d, total, rank, op).subarray(at, at + mine) as Data);
  const check = () => sameBits(recv.subarray(0, mine), combined(d.array, op, parts()), `what was reduced by ${op} and scattered`);
  return { args: [d.inPlace ? IN_PLACE : own, recv, ...more, opOf(op)], check };
}

/** Over the first so many ranks; over none nothing is written. */
function scanned(d: Draw, ranks: number): Omit<Call, 'method'> {
  const op = drawOp(d);
  const own = input(d, d.count, d.rank, op);
  const recv = d.inPlace ? own : zeros(d.array, d.count);
  const kept = recv.slice();
  const due = () =>
    ranks === 0
      ? kept
      : combined(
          d.array,
          op,
          range(ranks).map((rank) => input(d, d.count, rank, op)),
        );
  return { args: [d.inPlace ? IN_PLACE : own, recv, opOf(op)], check: () => sameBits(recv, due(), `scan by ${op} over ${ranks} ranks`) };
}

/** Their lengths are for each of the ranks. */
const TO_ALL = ['alltoall', 'alltoallv', 'alltoallw', 'allgather', 'allgatherv', 'gather', 'gatherv', 'scatter', 'scatterv'];
const SCATTERED = ['reduceScatterBlock', 'reduceScatter'];

function drawCall({ rank, size }: Talk, prng: Prng): Call {
  const method = prng.pick(Object.keys(CALLS));
  const isWide = TO_ALL.includes(method) || SCATTERED.includes(method);
  const isLong = prng.chance(1, 12);
  const counts = isWide ? (isLong ? WIDE_LONG_COUNTS : COUNTS.slice(0, -2)) : isLong ? LONG_COUNTS : COUNTS;
  const draw: Draw = {
    rank,
    size,
    prng,
    // Big integers are slow to make and to combine.
    array: prng.pick(isLong ? ARRAYS.filter((name) => !isBig(name)) : ARRAYS),
    count: prng.pick(counts),
    root: prng.below(size),
    inPlace: prng.chance(1, 4),
    seed: prng.below(1 << 20),
  };
  return { method, ...CALLS[method](draw) };
}

type AnyMethod = (...args: unknown[]) => unknown;
const bound = (comm: Communicator, name: string): AnyMethod => {
  const method = (comm as unknown as Record<string, AnyMethod>)[name];
  return method.bind(comm);
};
const requestName = (method: string) => `i${method}`;
const FORMS = ['promise', 'request', 'persistent'] as const;

/** Several calls, one after the other or all at once, in every form. `sync`: blocking ones may be among them. */
export async function collectives(talk: Talk, prng: Prng, sync: boolean): Promise<void> {
  const { comm } = talk;
  const calls = Array.from({ length: prng.between(2, 6) }, () => drawCall(talk, prng));
  const isAtOnce = prng.chance(1, 2);
  const begun: Promise<unknown>[] = [];
  for (const { method, args, check } of calls) {
    const form = sync && prng.chance(1, 3) ? 'sync' : prng.pick(FORMS);
    const name = { promise: method, sync: `${method}Sync`, request: requestName(method), persistent: `${method}Init` }[form];
    const result = bound(comm, name)(...args);
    const ended = form === 'persistent' ? (result as PersistentRequest).start().promise() : Promise.resolve(result);
    const checked = ended.then(() => {
      check();
      talk.own.collectives++;
      talk.own.delivered();
    });
    if (isAtOnce) begun.push(checked);
    else await checked;
  }
  await Promise.all(begun);
}

/** Collectives of values. */
export async function objectCollectives(talk: Talk, prng: Prng): Promise<void> {
  const { comm, rank, size, round, own } = talk;
  const root = prng.below(size);
  const length = prng.pick([0, 10, 20_000]);
  const value = (from: number, to = -1) => ({ from, to, round, data: new Float64Array(length).fill(from + to) });
  const all = range(size);
  const join = (a: string, b: string) => a + b;
  const text = all.join(',');
  const kinds: Record<string, () => Promise<[unknown, unknown]>> = {
    bcastObject: async () => [await comm.bcastObject(value(rank), root), value(root)],
    gatherObject: async () => [await comm.gatherObject(value(rank), root), rank === root ? all.map((from) => value(from)) : null],
    allgatherObject: async () => [await comm.allgatherObject(value(rank)), all.map((from) => value(from))],
    scatterObject: async () => [await comm.scatterObject(rank === root ? all.map((to) => value(root, to)) : null, root), value(root, rank)],
    alltoallObject: async () => [await comm.alltoallObject(all.map((to) => value(rank, to))), all.map((from) => value(from, rank))],
    reduceObject: async () => [await comm.reduceObject(`${rank},`, join, root), rank === root ? `${text},` : null],
    allreduceObject: async () => [await comm.allreduceObject(`${rank},`, join), `${text},`],
  };
  for (let i = prng.between(1, 3); i > 0; i--) {
    const kind = prng.pick(Object.keys(kinds));
    const [found, due] = await kinds[kind]();
    deepStrictEqual(found, due, `${kind}, root ${root}`);
    own.collectives++;
    own.delivered();
  }
}
