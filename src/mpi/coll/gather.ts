// Algorithms of gather, gatherv, scatter and scatterv.
import { lowestBit } from './barrier-bcast.ts';
import type { Operation, Steps } from './operation.ts';

/** Bytes of the call for each rank. */
export type PartOf = (rank: number) => Uint8Array;

/** Unless it is where it belongs already: a part that is received where it is sent from is in place. */
export function copyPart(from: Uint8Array, to: Uint8Array): void {
  if (from.buffer !== to.buffer || from.byteOffset !== to.byteOffset) to.set(from);
}

/** Everybody sends to the root. `into` is asked at the root only. Parts without bytes are not sent. */
export function* gatherLinear(o: Operation, from: Uint8Array, into: PartOf, root: number): Steps {
  const { rank, size } = o;
  if (rank !== root) {
    if (from.length > 0) o.send(root, from);
    yield;
    return;
  }
  for (let i = 1; i < size; i++) {
    const source = (root + i) % size;
    const part = into(source);
    if (part.length > 0) o.recv(source, part);
  }
  copyPart(from, into(root));
  yield;
}

/** The root sends to everybody. `from` is asked at the root only. Parts without bytes are not sent. */
export function* scatterLinear(o: Operation, from: PartOf, into: Uint8Array, root: number): Steps {
  const { rank, size } = o;
  if (rank !== root) {
    if (into.length > 0) o.recv(root, into);
    yield;
    return;
  }
  for (let i = 1; i < size; i++) {
    const dest = (root + i) % size;
    const part = from(dest);
    if (part.length > 0) o.send(dest, part);
  }
  copyPart(from(root), into);
  yield;
}

/** Ranks below v in the binomial tree, with v itself: v, v + 1, … */
function subtree(v: number, size: number): number {
  return Math.min(lowestBit(v, size), size - v);
}

/** Parts of the same length go up a binomial tree; `into` is the memory of all at the root. */
export function* gatherBinomial(o: Operation, from: Uint8Array, into: Uint8Array | undefined, root: number): Steps {
  const { rank, size } = o;
  const bytes = from.length;
  const v = (rank - root + size) % size;
  const bit = lowestBit(v, size);
  const held = subtree(v, size);
  // In the order of v; what rank 0 gathers is at its place at once.
  const isRight = into !== undefined && root === 0;
  const all = isRight ? into : held === 1 ? from : o.scratch(held * bytes);
  if (all !== from) copyPart(from, all.subarray(0, bytes));
  for (let child = 1; child < bit && v + child < size; child *= 2) {
    const theirs = subtree(v + child, size);
    o.recv((v + child + root) % size, all.subarray(child * bytes, (child + theirs) * bytes));
  }
  yield;
  if (v > 0) {
    o.send((v - bit + root) % size, all);
    yield;
  } else if (into !== undefined && !isRight) rotate(all, into, root * bytes);
}

/** Parts of the same length go down a binomial tree; `from` is the memory of all at the root. */
export function* scatterBinomial(o: Operation, from: Uint8Array | undefined, into: Uint8Array, root: number): Steps {
  const { rank, size } = o;
  const bytes = into.length;
  const v = (rank - root + size) % size;
  const bit = lowestBit(v, size);
  const held = subtree(v, size);
  let all = into;
  if (v > 0) {
    if (held > 1) all = o.scratch(held * bytes);
    o.recv((v - bit + root) % size, all);
    yield;
  } else if (from !== undefined) {
    all = from;
    if (root !== 0) {
      all = o.scratch(size * bytes);
      rotate(from, all, (size - root) * bytes);
    }
  }
  for (let child = bit / 2; child >= 1; child /= 2) {
    if (v + child >= size) continue;
    const theirs = subtree(v + child, size);
    o.send((v + child + root) % size, all.subarray(child * bytes, (child + theirs) * bytes));
  }
  if (all !== into) copyPart(all.subarray(0, bytes), into);
  yield;
}

/** Writes `from` into `to` from byte `at` on, the rest to its beginning. */
export function rotate(from: Uint8Array, to: Uint8Array, at: number): void {
  const { length } = from;
  to.set(from.subarray(0, length - at), at);
  to.set(from.subarray(length - at), 0);
}
