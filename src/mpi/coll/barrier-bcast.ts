// Algorithms of barrier and bcast. `v` is the rank counted from the root.
import { EMPTY_BYTES } from '../../util/iov.ts';
import { splitBlocks } from './memory.ts';
import type { Operation, Steps } from './operation.ts';

/**
 * In round k everybody tells the rank 2^k ahead (Hensgen, Finkel, Manber 1988). Where the size is a power of two, it is the rank whose number
 * differs in bit k: as many rounds and messages, and half as many neighbours, each of which costs its rails.
 */
export function* dissemination(o: Operation): Steps {
  const { rank, size } = o;
  const isPower = (size & (size - 1)) === 0;
  for (let ahead = 1; ahead < size; ahead *= 2) {
    o.send(isPower ? rank ^ ahead : (rank + ahead) % size, EMPTY_BYTES);
    o.recv(isPower ? rank ^ ahead : (rank - ahead + size) % size, EMPTY_BYTES);
    yield;
  }
}

/** Lowest bit of v that is set; for the root that above all ranks. */
export function lowestBit(v: number, size: number): number {
  let bit = 1;
  while (bit < size && (v & bit) === 0) bit *= 2;
  return bit;
}

/** Each rank that has the data sends it to those half as far, a quarter as far, … */
export function* bcastBinomial(o: Operation, data: Uint8Array, root: number): Steps {
  const { rank, size } = o;
  const v = (rank - root + size) % size;
  const bit = lowestBit(v, size);
  if (v > 0) {
    o.recv((v - bit + root) % size, data);
    yield;
  }
  for (let child = bit / 2; child >= 1; child /= 2) if (v + child < size) o.send((v + child + root) % size, data);
  yield;
}

/** The root scatters by a binomial tree, then the parts go round (van de Geijn). */
export function* bcastScatterAllgather(o: Operation, data: Uint8Array, root: number): Steps {
  const { rank, size } = o;
  const { at, counts } = splitBlocks(size, data.length, 1);
  const bytes = (from: number, to: number): Uint8Array => data.subarray(at[from], to < size ? at[to] : data.length);
  const v = (rank - root + size) % size;
  const bit = lowestBit(v, size);
  if (v > 0) {
    o.recv((v - bit + root) % size, bytes(v, Math.min(size, v + bit)));
    yield;
  }
  for (let child = bit / 2; child >= 1; child /= 2) {
    if (v + child < size) o.send((v + child + root) % size, bytes(v + child, Math.min(size, v + 2 * child)));
  }
  yield;
  const next = (rank + 1) % size;
  const before = (rank - 1 + size) % size;
  for (let step = 0; step < size - 1; step++) {
    const out = (v - step + size) % size;
    const into = (v - step - 1 + size) % size;
    o.send(next, data.subarray(at[out], at[out] + counts[out]));
    // Inner ranks of the tree, and the root, have some of it: the same bytes come again.
    o.recv(before, data.subarray(at[into], at[into] + counts[into]));
    yield;
  }
}

/** Pieces follow each other from rank to rank: each sends one while it receives the next. */
export function* bcastChain(o: Operation, data: Uint8Array, root: number): Steps {
  const { rank, size } = o;
  const piece = o.scope.tuning.bcastSegmentBytes;
  const v = (rank - root + size) % size;
  const pieces = Math.max(1, Math.ceil(data.length / piece));
  for (let i = 0; i <= pieces; i++) {
    if (v > 0 && i < pieces) o.recv((rank - 1 + size) % size, data.subarray(i * piece, (i + 1) * piece));
    if (v < size - 1 && i > 0) o.send((rank + 1) % size, data.subarray((i - 1) * piece, i * piece));
    if (v === 0 && i === 0) continue;
    yield;
  }
}
