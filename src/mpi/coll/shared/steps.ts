// Algorithms through shared memory (call-memory.ts): each rank puts what it contributes where all can read it, and takes what it needs. Where
// there are few ranks, everybody looks at everybody; with many, groups of about the square root of their number have a leader each, so
// that nobody looks at more than two times as many.
//
// Reductions combine the contributions in the order of the ranks, (((0 1) 2) 3) …; with many ranks those of each group first, then the groups.
// Whoever computes an element itself does it in this order, so all get the same bits.
// After Graham, Shipman: MPI support for multi-core architectures: optimized shared memory collectives (2008).
import type { ArrayName, TypedArray } from '../kernels.ts';
import { type Elements, equalBlocks, splitBlocks } from '../memory.ts';
import type { Operation, Steps } from '../operation.ts';
import { type OwnReduction, type Reduction, scratchFor } from '../reduce.ts';
import type { SharedCalls } from './call-memory.ts';
import { CONTRIBUTION, FLAT_MAX, PARTIAL, RESULT, SHORT_BYTES } from './segment.ts';

/** From this length on, with three ranks or more, each combines a part for all. */
const PARTS_BYTES_MIN = 4096;

const NOTHING = new Uint8Array(0);

/** Ranks in a group. */
export const groupOf = (size: number): number => (size <= FLAT_MAX ? size : Math.ceil(Math.sqrt(size)));

/** Puts data into a slot, as soon as it may be written; or only says that it is there, for those that ask for nothing else. */
function* put(o: Operation, memory: SharedCalls, use: number, data: Uint8Array, isData = true): Steps {
  if (!memory.mayWrite(use, data.length)) {
    o.awaitMemory();
    yield;
    if (o.isFailing) return;
  }
  if (isData) memory.put(use, data);
  else memory.publish(use, data.length);
}

function* expect(o: Operation, memory: SharedCalls, use: number, from: number, until: number, step: number, bytes: number): Steps {
  memory.expect(use, from, until, step, bytes);
  o.awaitMemory();
  yield;
}

// ---------------------------------------------------------------- barrier, bcast

export function* sharedBarrier(o: Operation, memory: SharedCalls): Steps {
  const { rank, size } = o;
  if (o.isFailing) return;
  if (!memory.mayWrite(CONTRIBUTION, 0)) {
    o.awaitMemory();
    yield;
    if (o.isFailing) return;
  }
  memory.put(CONTRIBUTION, NOTHING);
  if (size <= FLAT_MAX) {
    memory.expect(CONTRIBUTION, 0, size, 1, 0);
    o.awaitMemory();
    yield;
  } else {
    const group = groupOf(size);
    if (rank % group === 0) {
      yield* expect(o, memory, CONTRIBUTION, rank, Math.min(size, rank + group), 1, 0);
      if (o.isFailing) return;
      yield* put(o, memory, PARTIAL, NOTHING);
      if (o.isFailing) return;
    }
    if (rank === 0) {
      yield* expect(o, memory, PARTIAL, 0, size, group, 0);
      if (o.isFailing) return;
      yield* put(o, memory, RESULT, NOTHING);
    } else yield* expect(o, memory, RESULT, 0, 1, 1, 0);
  }
  if (!o.isFailing) memory.everybodyIsHere();
}

export function* sharedBcast(o: Operation, memory: SharedCalls, data: Uint8Array, root: number): Steps {
  const { rank, size, code } = o;
  const isRoot = rank === root;
  if (o.isFailing) return;
  // Where calls are checked, everybody says which one it makes, and waits for everybody to.
  if (isRoot || code !== 0) yield* put(o, memory, CONTRIBUTION, data, isRoot);
  if (o.isFailing || (isRoot && code === 0)) return;
  if (code === 0) yield* expect(o, memory, CONTRIBUTION, root, root + 1, 1, data.length);
  else yield* expect(o, memory, CONTRIBUTION, 0, size, 1, data.length);
  if (o.isFailing || isRoot) return;
  copyOut(memory, memory.placeOf(root, CONTRIBUTION, data.length), data);
}

function copyOut({ bytes }: SharedCalls, at: number, into: Uint8Array): void {
  const { length } = into;
  if (length > 0) into.set(bytes.subarray(at, at + length));
}

// ---------------------------------------------------------------- reductions

/** `into[at, at + count)` = what every `step`-th of the members [from, until) has put there, combined in their order. */
function combine(
  memory: SharedCalls,
  r: Reduction,
  use: number,
  from: number,
  until: number,
  step: number,
  into: Elements,
  at: number,
  count: number,
): void {
  const { kernel, count: whole } = r;
  const { unitBytes } = r.from;
  const bytes = whole * unitBytes;
  if (count === 0) return;
  const view = memory.viewOf(r.from.arrayName as ArrayName);
  const place = (member: number): number => memory.placeOf(member, use, bytes) / unitBytes + at;
  const { array } = into;
  if (from + step >= until) return copyElements(view, place(from), array, at, count);
  kernel(view, place(from), view, place(from + step), array, at, count);
  for (let member = from + 2 * step; member < until; member += step) kernel(array, at, view, place(member), array, at, count);
}

function copyElements(view: TypedArray, from: number, into: TypedArray, at: number, count: number): void {
  (into as Uint8Array).set((view as Uint8Array).subarray(from, from + count), at);
}

export function* sharedReduce(o: Operation, memory: SharedCalls, r: Reduction, root: number): Steps {
  const { rank, size } = o;
  if (o.isFailing) return;
  const mine = r.from.part(0, r.count);
  const bytes = mine.length;
  yield* put(o, memory, CONTRIBUTION, mine);
  if (o.isFailing) return;
  if (size <= FLAT_MAX || bytes > SHORT_BYTES || o.code !== 0) {
    // Where calls are checked, everybody waits for everybody to say which one it makes.
    if (rank !== root && o.code === 0) return;
    yield* expect(o, memory, CONTRIBUTION, 0, size, 1, bytes);
    if (o.isFailing) return;
    memory.everybodyIsHere();
    if (rank !== root) return;
    return combine(memory, r, CONTRIBUTION, 0, size, 1, r.into as Elements, 0, r.count);
  }
  const group = groupOf(size);
  if (rank % group === 0) yield* putPartial(o, memory, r, group);
  if (o.isFailing || rank !== root) return;
  yield* expect(o, memory, PARTIAL, 0, size, group, bytes);
  if (o.isFailing) return;
  memory.everybodyIsHere();
  combine(memory, r, PARTIAL, 0, size, group, r.into as Elements, 0, r.count);
}

/** The leader of a group combines what its members have put. */
function* putPartial(o: Operation, memory: SharedCalls, r: Reduction, group: number): Steps {
  const { rank, size } = o;
  const until = Math.min(size, rank + group);
  yield* expect(o, memory, CONTRIBUTION, rank, until, 1, r.count * r.from.unitBytes);
  if (o.isFailing) return;
  const partial = scratchFor(o, r, r.count);
  combine(memory, r, CONTRIBUTION, rank, until, 1, partial, 0, r.count);
  yield* put(o, memory, PARTIAL, partial.part(0, r.count));
}

export function* sharedAllreduce(o: Operation, memory: SharedCalls, r: OwnReduction): Steps {
  const { rank, size } = o;
  const { count, into } = r;
  if (o.isFailing) return;
  const mine = r.from.part(0, count);
  const bytes = mine.length;
  if (!memory.mayWrite(CONTRIBUTION, bytes)) {
    o.awaitMemory();
    yield;
    if (o.isFailing) return;
  }
  memory.put(CONTRIBUTION, mine);
  if (size > FLAT_MAX && bytes <= SHORT_BYTES) return yield* allreduceInGroups(o, memory, r);
  memory.expect(CONTRIBUTION, 0, size, 1, bytes);
  o.awaitMemory();
  yield;
  if (o.isFailing) return;
  memory.everybodyIsHere();
  if (size === 2 || bytes < PARTS_BYTES_MIN) return combine(memory, r, CONTRIBUTION, 0, size, 1, into, 0, count);
  // Each combines its part, and puts it where its own contribution to that part was, which nobody else reads.
  const { at, counts } = splitBlocks(size, count, r.unit);
  combine(memory, r, CONTRIBUTION, 0, size, 1, into, at[rank], counts[rank]);
  const { unitBytes } = r.from;
  memory.bytes.set(into.part(at[rank], counts[rank]), memory.placeOf(rank, CONTRIBUTION, bytes) + at[rank] * unitBytes);
  yield* put(o, memory, RESULT, NOTHING);
  if (o.isFailing) return;
  yield* expect(o, memory, RESULT, 0, size, 1, 0);
  if (o.isFailing) return;
  for (let member = 0; member < size; member++) {
    if (member !== rank)
      copyOut(memory, memory.placeOf(member, CONTRIBUTION, bytes) + at[member] * unitBytes, into.part(at[member], counts[member]));
  }
}

function* allreduceInGroups(o: Operation, memory: SharedCalls, r: OwnReduction): Steps {
  const { rank, size } = o;
  const { count, into } = r;
  const bytes = count * r.from.unitBytes;
  const group = groupOf(size);
  if (rank % group === 0) yield* putPartial(o, memory, r, group);
  if (o.isFailing) return;
  if (rank === 0) {
    yield* expect(o, memory, PARTIAL, 0, size, group, bytes);
    if (o.isFailing) return;
    combine(memory, r, PARTIAL, 0, size, group, into, 0, count);
    yield* put(o, memory, RESULT, into.part(0, count));
  } else {
    yield* expect(o, memory, RESULT, 0, 1, 1, bytes);
    if (!o.isFailing) copyOut(memory, memory.placeOf(0, RESULT, bytes), into.part(0, count));
  }
  if (!o.isFailing) memory.everybodyIsHere();
}

// ---------------------------------------------------------------- allgather, alltoall

/** Everybody takes what every rank has put. `all` holds parts of the same length, one behind the other. */
export function* sharedAllgather(o: Operation, memory: SharedCalls, own: Uint8Array, all: Uint8Array): Steps {
  const { rank, size } = o;
  if (o.isFailing) return;
  const { length } = own;
  yield* put(o, memory, CONTRIBUTION, own);
  if (o.isFailing) return;
  yield* expect(o, memory, CONTRIBUTION, 0, size, 1, length);
  if (o.isFailing) return;
  memory.everybodyIsHere();
  const { at } = equalBlocks(size, length);
  for (let member = 0; member < size; member++) {
    // In place the own part is where it belongs.
    if (member !== rank || own.buffer !== all.buffer || own.byteOffset !== all.byteOffset + at[rank])
      copyOut(memory, memory.placeOf(member, CONTRIBUTION, length), all.subarray(at[member], at[member] + length));
  }
}

/** Everybody puts what it has for all, and takes its own part of what the others have put. */
export function* sharedAlltoall(o: Operation, memory: SharedCalls, from: Uint8Array, into: Uint8Array): Steps {
  const { rank, size } = o;
  if (o.isFailing) return;
  yield* put(o, memory, CONTRIBUTION, from);
  if (o.isFailing) return;
  yield* expect(o, memory, CONTRIBUTION, 0, size, 1, from.length);
  if (o.isFailing) return;
  memory.everybodyIsHere();
  const each = from.length / size;
  for (let member = 0; member < size; member++) {
    copyOut(memory, memory.placeOf(member, CONTRIBUTION, from.length) + rank * each, into.subarray(member * each, (member + 1) * each));
  }
}
