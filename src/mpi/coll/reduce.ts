// Algorithms of reduce and allreduce. Sources: Thakur, Rabenseifner, Gropp: Optimization of collective communication operations in MPICH,
// Int. J. High Performance Computing Applications 19 (2005); Rabenseifner: Optimization of collective reduction operations (2004).
import { lowestBit } from './barrier-bcast.ts';
import type { ArrayName, Kernel, TypedArray } from './kernels.ts';
import { type Elements, splitBlocks } from './memory.ts';
import type { Operation, Steps } from './operation.ts';

/** What a reduction works with: `count` elements of one class. */
export interface Reduction {
  readonly kernel: Kernel<TypedArray>;
  readonly commute: boolean;
  /** Elements that belong together. */
  readonly unit: number;
  readonly count: number;
  /** What this rank contributes; it is only read. The same as `into` when in place. */
  readonly from: Elements;
  /** Where the result goes; undefined where this rank gets no result, and partial results are in scratch memory. */
  readonly into: Elements | undefined;
}

/** A reduction whose result this rank gets. */
export interface OwnReduction extends Reduction {
  readonly into: Elements;
}

export function scratchFor(o: Operation, { from: { arrayName } }: Reduction, count: number): Elements {
  return o.scratchElements(arrayName as ArrayName, count);
}

/** The contribution of this rank is the result. */
export function copyResult({ from, into, count }: Reduction): void {
  if (into !== undefined && into !== from) into.part(0, count).set(from.part(0, count));
}

/** Largest power of two that is not above n. */
export function powerOfTwoBelow(n: number): number {
  return 2 ** (31 - Math.clz32(n));
}

// ---------------------------------------------------------------- reduce

/** Partial results go up a binomial tree. In rank order from the root on; from rank 0 on, and then to the root, where order counts. */
export function* reduceBinomial(o: Operation, r: Reduction, root: number): Steps {
  const { rank, size } = o;
  const { kernel, count } = r;
  const top = r.commute ? root : 0;
  const v = (rank - top + size) % size;
  const bit = lowestBit(v, size);
  // A leaf sends what it has been given.
  let partial: Elements = r.from;
  if (v + 1 < size && bit > 1) {
    const into: Elements = r.into ?? scratchFor(o, r, count);
    const received = scratchFor(o, r, count);
    for (let child = 1; child < bit && v + child < size; child *= 2) {
      o.recv((v + child + top) % size, received.part(0, count));
      yield;
      if (o.isFailing) continue;
      kernel(partial.array, 0, received.array, 0, into.array, 0, count);
      partial = into;
    }
  }
  if (v > 0) {
    o.send((v - bit + top) % size, partial.part(0, count));
    yield;
  }
  if (top !== root) {
    if (rank === top) o.send(root, partial.part(0, count));
    if (rank === root) o.recv(top, (r.into as Elements).part(0, count));
    yield;
  } else if (rank === root && partial !== r.into) copyResult(r);
}

/** Scatters the reduction over the ranks as in allreduce, then gathers the parts at the root. */
export function* reduceRabenseifner(o: Operation, r: Reduction, root: number): Steps {
  const { rank, size } = o;
  const { count } = r;
  const folded = new Folded(rank, size);
  const into: Elements = r.into ?? scratchFor(o, r, count);
  if (folded.rank < 0) {
    o.send(rank + 1, r.from.part(0, count));
    yield;
  } else yield* scatterReduction(o, r, folded, into);
  // A root that has given its part away gets all of it from the rank that has taken it.
  const rootFolded = new Folded(root, size);
  const collector = rootFolded.rank < 0 ? root + 1 : root;
  const collectorRank = rootFolded.rank < 0 ? (root + 1 - 1) / 2 : rootFolded.rank;
  if (folded.rank >= 0) {
    const halves = folded.halves(count, r.unit);
    for (let level = halves.length - 1; level >= 0; level--) {
      const { distance, own, other } = halves[level];
      const partner = folded.real(folded.rank ^ distance);
      if ((folded.rank & distance) !== (collectorRank & distance)) {
        o.send(partner, into.part(own.at, own.count));
        yield;
        break;
      }
      o.recv(partner, into.part(other.at, other.count));
      yield;
    }
  }
  if (collector !== root) {
    if (rank === collector) o.send(root, into.part(0, count));
    if (rank === root) o.recv(collector, into.part(0, count));
    yield;
  }
}

// ---------------------------------------------------------------- allreduce

/**
 * Ranks beyond the largest power of two are folded into their right neighbours first: with `extra` of them, of the first 2 × extra ranks
 * the even ones give their part to the odd ones and wait for the result.
 */
export class Folded {
  /** Number of ranks that take part. */
  readonly size: number;
  readonly extra: number;
  /** Number of this rank among them; -1: it has given its part away. */
  readonly rank: number;

  constructor(rank: number, size: number) {
    this.size = powerOfTwoBelow(size);
    this.extra = size - this.size;
    this.rank = rank >= 2 * this.extra ? rank - this.extra : rank % 2 === 0 ? -1 : (rank - 1) / 2;
  }

  /** The rank of the communicator that has this number. */
  real(folded: number): number {
    return folded < this.extra ? folded * 2 + 1 : folded + this.extra;
  }

  /**
   * For each step of recursive halving, nearest partner first: the half that this rank keeps, and that of its partner. Elements are cut
   * into as many blocks as ranks take part.
   */
  halves(count: number, unit: number): { distance: number; own: Span; other: Span }[] {
    const { at } = splitBlocks(this.size, count, unit);
    const span = (from: number, to: number): Span => ({ at: at[from] ?? count, count: (at[to] ?? count) - (at[from] ?? count) });
    const list: { distance: number; own: Span; other: Span }[] = [];
    let from = 0;
    let to = this.size;
    for (let distance = 1; distance < this.size; distance *= 2) {
      const middle = (from + to) / 2;
      const isUpper = (this.rank & distance) !== 0;
      const [own, other] = isUpper ? [span(middle, to), span(from, middle)] : [span(from, middle), span(middle, to)];
      list.push({ distance, own, other });
      if (isUpper) from = middle;
      else to = middle;
    }
    return list;
  }
}

interface Span {
  at: number;
  count: number;
}

/** Each pair exchanges all it has, twice as far each time: log2 rounds. */
export function* allreduceRecursiveDoubling(o: Operation, r: OwnReduction): Steps {
  const { rank, size } = o;
  const { kernel, count } = r;
  const { into } = r;
  if (size === 1) return copyResult(r);
  const folded = new Folded(rank, size);
  if (folded.rank < 0) {
    o.send(rank + 1, r.from.part(0, count));
    yield;
    o.recv(rank + 1, into.part(0, count));
    yield;
    return;
  }
  const received = scratchFor(o, r, count);
  let partial = r.from;
  const takesPart = rank < 2 * folded.extra;
  if (takesPart) {
    o.recv(rank - 1, received.part(0, count));
    yield;
    if (!o.isFailing) kernel(received.array, 0, partial.array, 0, into.array, 0, count);
    partial = into;
  }
  for (let distance = 1; distance < folded.size; distance *= 2) {
    const partner = folded.real(folded.rank ^ distance);
    o.sendIov(partner, partial.whole);
    o.recvIov(partner, received.whole);
    yield;
    if (!o.isFailing) {
      if (partner < rank) kernel(received.array, 0, partial.array, 0, into.array, 0, count);
      else kernel(partial.array, 0, received.array, 0, into.array, 0, count);
    }
    partial = into;
  }
  if (takesPart) {
    o.send(rank - 1, into.part(0, count));
    yield;
  }
}

/** Recursive halving: at the end each rank that takes part has the result of one block, in `into`. Neighbours first: ranks stay in order. */
function* scatterReduction(o: Operation, r: Reduction, folded: Folded, into: Elements): Steps {
  const { rank } = o;
  const { kernel, count } = r;
  const isOdd = rank < 2 * folded.extra;
  const halves = folded.halves(count, r.unit);
  const received = scratchFor(o, r, isOdd ? count : (halves[0]?.own.count ?? 0));
  let partial: Elements = r.from;
  if (isOdd) {
    o.recv(rank - 1, received.part(0, count));
    yield;
    if (!o.isFailing) kernel(received.array, 0, partial.array, 0, into.array, 0, count);
    partial = into;
  }
  for (const { distance, own, other } of halves) {
    const partner = folded.real(folded.rank ^ distance);
    o.send(partner, partial.part(other.at, other.count));
    o.recv(partner, received.part(0, own.count));
    yield;
    if (!o.isFailing) {
      if (partner < rank) kernel(received.array, 0, partial.array, own.at, into.array, own.at, own.count);
      else kernel(partial.array, own.at, received.array, 0, into.array, own.at, own.count);
    }
    partial = into;
  }
}

/** Recursive halving, then the results go back the same way: twice the length in all, whatever the number of ranks. */
export function* allreduceRabenseifner(o: Operation, r: OwnReduction): Steps {
  const { rank, size } = o;
  const { count } = r;
  const { into } = r;
  if (size === 1) return copyResult(r);
  const folded = new Folded(rank, size);
  if (folded.rank < 0) {
    o.send(rank + 1, r.from.part(0, count));
    yield;
    o.recv(rank + 1, into.part(0, count));
    yield;
    return;
  }
  yield* scatterReduction(o, r, folded, into);
  const halves = folded.halves(count, r.unit);
  for (let level = halves.length - 1; level >= 0; level--) {
    const { distance, own, other } = halves[level];
    const partner = folded.real(folded.rank ^ distance);
    o.send(partner, into.part(own.at, own.count));
    o.recv(partner, into.part(other.at, other.count));
    yield;
  }
  if (rank < 2 * folded.extra) {
    o.send(rank - 1, into.part(0, count));
    yield;
  }
}

/** Blocks go round twice: once to be combined, once to be known (Patarasuk, Yuan 2009). For operations that commute. */
export function* allreduceRing(o: Operation, r: OwnReduction): Steps {
  const { rank, size } = o;
  const { kernel, from } = r;
  const { into } = r;
  if (size === 1) return copyResult(r);
  const { at, counts } = splitBlocks(size, r.count, r.unit);
  const next = (rank + 1) % size;
  const before = (rank - 1 + size) % size;
  const received = scratchFor(o, r, counts[0]);
  for (let step = 0; step < size - 1; step++) {
    const out = (rank - step + size) % size;
    const block = (rank - step - 1 + size) % size;
    o.send(next, (step === 0 ? from : into).part(at[out], counts[out]));
    o.recv(before, received.part(0, counts[block]));
    yield;
    if (!o.isFailing) kernel(received.array, 0, from.array, at[block], into.array, at[block], counts[block]);
  }
  for (let step = 0; step < size - 1; step++) {
    const out = (rank + 1 - step + size) % size;
    const block = (rank - step + size) % size;
    o.send(next, into.part(at[out], counts[out]));
    o.recv(before, into.part(at[block], counts[block]));
    yield;
  }
}
