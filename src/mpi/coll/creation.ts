// How communicators come into being and go: the steps in which the members agree.
import { MultirailError } from '../../errors.ts';
import { Iov } from '../../util/iov.ts';
import { UNDEFINED } from '../constants.ts';
import type { Group } from '../group.ts';
import { kernelOf, Op } from '../op.ts';
import { allgatherBruck } from './allgather.ts';
import { Region } from './memory.ts';
import type { Operation, Steps } from './operation.ts';
import { allreduceRecursiveDoubling } from './reduce.ts';

/** A new communicator: its id, and who is in it in the order of its ranks. */
export interface Made {
  readonly id: number;
  readonly worldRanks: readonly number[];
}

/** One record of each rank. */
interface Entry {
  a: number;
  b: number;
  id: number;
}
const NUMBERS = 3;

/** All know the records of all. It ends nowhere before everybody has begun it. */
function* exchange(o: Operation<never>, own: Entry): Steps<Entry[]> {
  const mine = Float64Array.of(own.a, own.b, own.id);
  const all = new Float64Array(NUMBERS * o.size);
  const bytes = mine.byteLength;
  const at = Array.from({ length: o.size }, (_, rank) => rank * bytes);
  const parts = { bytes: new Uint8Array(all.buffer), at, counts: at.map(() => bytes) };
  yield* allgatherBruck(o as unknown as Operation, new Uint8Array(mine.buffer), parts);
  return at.map((_, rank) => ({ a: all[rank * NUMBERS], b: all[rank * NUMBERS + 1], id: all[rank * NUMBERS + 2] }));
}

/** All get the id that the first rank gives. It ends nowhere before everybody has begun it. */
export function* agreeOnId(o: Operation<number>, allocate: () => number): Steps<number> {
  const numbers = new Float64Array(1);
  if (o.rank === 0) numbers[0] = allocate();
  const region = new Region(numbers, new Iov([new Uint8Array(numbers.buffer)]));
  const kernel = kernelOf(Op.MAX, 'Float64Array');
  yield* allreduceRecursiveDoubling(o as unknown as Operation, { kernel, commute: true, unit: 1, count: 1, from: region, into: region });
  return numbers[0];
}

/** Those with the same colour, by key, then by rank. All communicators of one split have one id: no process is in two of them. */
export function* agreeOnSplit(o: Operation<Made | undefined>, color: number, key: number, allocate: () => number): Steps<Made | undefined> {
  const entries = yield* exchange(o as Operation<never>, { a: color, b: key, id: o.rank === 0 ? allocate() : 0 });
  if (color === UNDEFINED) return undefined;
  const ranks = entries.map((_, rank) => rank).filter((rank) => entries[rank].a === color);
  ranks.sort((x, y) => entries[x].b - entries[y].b || x - y);
  return { id: entries[0].id, worldRanks: ranks.map((rank) => o.scope.members[rank]) };
}

/** The members of a group, whose ranks these are, and which all of them give alike; groups that differ must have no member in common. */
export function* agreeOnGroup(
  o: Operation<Made | undefined>,
  group: Group,
  ranks: readonly number[],
  allocate: () => number,
): Steps<Made | undefined> {
  const entries = yield* exchange(o as Operation<never>, { a: group.size, b: hashOf(ranks), id: o.rank === 0 ? allocate() : 0 });
  if (o.isFailing || group.rank === UNDEFINED) return undefined;
  const own = entries[o.rank];
  for (const [rank, { a, b }] of entries.entries()) {
    if (group.rankOf(o.scope.members[rank]) === undefined || (a === own.a && b === own.b)) continue;
    throw new MultirailError(
      'ERR_GROUP',
      `create on ${o.scope.name}: rank ${rank} is in the group of rank ${o.rank} and has given another one`,
    );
  }
  return { id: entries[0].id, worldRanks: group.worldRanks };
}

/** FNV-1a over ranks, 32 bits. */
function hashOf(ranks: readonly number[]): number {
  let hash = 0x811c9dc5;
  for (const rank of ranks) for (let shift = 0; shift < 32; shift += 8) hash = Math.imul(hash ^ ((rank >>> shift) & 255), 0x01000193);
  return hash >>> 0;
}
