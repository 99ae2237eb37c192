// Algorithms of allgather and allgatherv. Sources: Bruck et al.: Efficient algorithms for all-to-all communications in multiport
// message-passing systems (1997); Thakur, Rabenseifner, Gropp (2005).
import { copyPart } from './gather.ts';
import type { Operation, Steps } from './operation.ts';

/** Memory of all parts, and where each begins and ends, in bytes. */
export interface Parts {
  readonly bytes: Uint8Array;
  readonly at: readonly number[];
  readonly counts: readonly number[];
}

const part = ({ bytes, at, counts }: Parts, rank: number): Uint8Array => bytes.subarray(at[rank], at[rank] + counts[rank]);

/** Parts go round: each rank passes on what it has got last. */
export function* allgatherRing(o: Operation, from: Uint8Array, all: Parts): Steps {
  const { rank, size } = o;
  copyPart(from, part(all, rank));
  const next = (rank + 1) % size;
  const before = (rank - 1 + size) % size;
  for (let step = 0; step < size - 1; step++) {
    o.send(next, part(all, (rank - step + size) % size));
    o.recv(before, part(all, (rank - step - 1 + size) % size));
    yield;
  }
}

/** Pairs exchange all that they have, twice as far each time. For a power of two, and parts of the same length one behind the other. */
export function* allgatherRecursiveDoubling(o: Operation, from: Uint8Array, all: Parts): Steps {
  const { rank, size } = o;
  copyPart(from, part(all, rank));
  const bytes = all.counts[0];
  for (let distance = 1; distance < size; distance *= 2) {
    const partner = rank ^ distance;
    const own = rank - (rank % distance);
    const theirs = partner - (partner % distance);
    o.send(partner, all.bytes.subarray(own * bytes, (own + distance) * bytes));
    o.recv(partner, all.bytes.subarray(theirs * bytes, (theirs + distance) * bytes));
    yield;
  }
}

/** As recursive doubling for any number of ranks: parts are in the order of rank, rank + 1, … until the end. */
export function* allgatherBruck(o: Operation, from: Uint8Array, all: Parts): Steps {
  const { rank, size } = o;
  const { counts } = all;
  // Where the part of rank + i begins in scratch memory.
  const at = [0];
  for (let i = 0; i < size; i++) at.push(at[i] + counts[(rank + i) % size]);
  const scratch = o.scratch(at[size]);
  scratch.set(from);
  for (let has = 1; has < size; has *= 2) {
    const more = Math.min(has, size - has);
    // What the rank behind lacks is what this rank has first.
    o.send((rank - has + size) % size, scratch.subarray(0, at[more]));
    o.recv((rank + has) % size, scratch.subarray(at[has], at[has + more]));
    yield;
  }
  if (o.isFailing) return;
  for (let i = 0; i < size; i++) part(all, (rank + i) % size).set(scratch.subarray(at[i], at[i + 1]));
}
