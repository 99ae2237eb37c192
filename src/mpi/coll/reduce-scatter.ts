// Algorithms of reduceScatter and reduceScatterBlock, scan and exscan. Source: Thakur, Rabenseifner, Gropp (2005).
import { EMPTY_BYTES } from '../../util/iov.ts';
import { scatterLinear } from './gather.ts';
import type { Blocks } from './memory.ts';
import type { Operation, Steps } from './operation.ts';
import { Folded, type OwnReduction, reduceBinomial, scratchFor } from './reduce.ts';

/** A reduction whose `from` holds the blocks of all ranks; that of this rank goes to the beginning of `into`. */
export interface ScatteredReduction extends OwnReduction {
  readonly blocks: Blocks;
}

/** Farthest partner first, half of the blocks each time: what is left at the end is the own block. For operations that commute. */
export function* reduceScatterHalving(o: Operation, r: ScatteredReduction): Steps {
  const { rank, size } = o;
  const { kernel, count, from, into, blocks } = r;
  const mine = blocks.counts[rank];
  const folded = new Folded(rank, size);
  if (folded.rank < 0) {
    o.send(rank + 1, from.part(0, count));
    yield;
    o.recv(rank + 1, into.part(0, mine));
    yield;
    return;
  }
  // Blocks of the ranks [from, to) of those that take part, with those of their folded neighbours.
  const first = (part: number): number => (part >= folded.size ? size : part < folded.extra ? 2 * part : part + folded.extra);
  const span = (low: number, high: number) => {
    const at = blocks.at[first(low)] ?? count;
    return { at, count: (blocks.at[first(high)] ?? count) - at };
  };
  const received = scratchFor(o, r, count);
  const partial = scratchFor(o, r, count);
  let source = from;
  const combine = (at: number, elements: number, isLower: boolean): void => {
    if (o.isFailing) return;
    if (isLower) kernel(received.array, at, source.array, at, partial.array, at, elements);
    else kernel(source.array, at, received.array, at, partial.array, at, elements);
    source = partial;
  };
  if (rank < 2 * folded.extra) {
    o.recv(rank - 1, received.part(0, count));
    yield;
    combine(0, count, true);
  }
  let low = 0;
  let high = folded.size;
  for (let distance = folded.size / 2; distance >= 1; distance /= 2) {
    const middle = (low + high) / 2;
    const isUpper = (folded.rank & distance) !== 0;
    const partner = folded.real(folded.rank ^ distance);
    const own = isUpper ? span(middle, high) : span(low, middle);
    const other = isUpper ? span(low, middle) : span(middle, high);
    o.send(partner, source.part(other.at, other.count));
    o.recv(partner, received.part(own.at, own.count));
    yield;
    combine(own.at, own.count, isUpper);
    if (isUpper) low = middle;
    else high = middle;
  }
  if (!o.isFailing) into.part(0, mine).set(source.part(blocks.at[rank], mine));
  if (rank < 2 * folded.extra) {
    o.send(rank - 1, source.part(blocks.at[rank - 1], blocks.counts[rank - 1]));
    yield;
  }
}

/** One partner after the other, which gets its own block: the least that can be sent. For operations that commute. */
export function* reduceScatterPairwise(o: Operation, r: ScatteredReduction): Steps {
  const { rank, size } = o;
  const { kernel, from, into, blocks } = r;
  const mine = blocks.counts[rank];
  const received = scratchFor(o, r, mine);
  // In place the blocks of others are where the own result would go: it is kept apart until all are sent.
  const partial = scratchFor(o, r, mine);
  partial.bytes.set(from.part(blocks.at[rank], mine));
  for (let step = 1; step < size; step++) {
    const to = (rank + step) % size;
    const source = (rank - step + size) % size;
    o.send(to, from.part(blocks.at[to], blocks.counts[to]));
    o.recv(source, received.part(0, mine));
    yield;
    if (o.isFailing) continue;
    if (source < rank) kernel(received.array, 0, partial.array, 0, partial.array, 0, mine);
    else kernel(partial.array, 0, received.array, 0, partial.array, 0, mine);
  }
  into.part(0, mine).set(partial.bytes);
}

/** Reduces at rank 0, in rank order, and scatters from there. */
export function* reduceScatterByRoot(o: Operation, r: ScatteredReduction): Steps {
  const { blocks } = r;
  const whole = o.rank === 0 ? scratchFor(o, r, r.count) : undefined;
  yield* reduceBinomial(o, { ...r, into: whole }, 0);
  const part = (rank: number): Uint8Array => whole?.part(blocks.at[rank], blocks.counts[rank]) ?? EMPTY_BYTES;
  yield* scatterLinear(o, part, r.into.part(0, blocks.counts[o.rank]), 0);
}

/** Partial results of 1, 2, 4, … ranks up to the own one: log2 rounds. Ranks stay in order. `exclusive`: without the own part. */
export function* scanRecursiveDoubling(o: Operation, r: OwnReduction, exclusive: boolean): Steps {
  const { rank, size } = o;
  const { kernel, count, from, into } = r;
  const partial = scratchFor(o, r, count);
  const received = scratchFor(o, r, count);
  partial.bytes.set(from.part(0, count));
  let has = !exclusive;
  if (!exclusive && into !== from) into.part(0, count).set(from.part(0, count));
  for (let distance = 1; distance < size; distance *= 2) {
    const partner = rank ^ distance;
    if (partner >= size) continue;
    o.send(partner, partial.part(0, count));
    o.recv(partner, received.part(0, count));
    yield;
    if (o.isFailing) continue;
    if (partner > rank) {
      kernel(partial.array, 0, received.array, 0, partial.array, 0, count);
      continue;
    }
    if (has) kernel(received.array, 0, into.array, 0, into.array, 0, count);
    else into.part(0, count).set(received.part(0, count));
    has = true;
    kernel(received.array, 0, partial.array, 0, partial.array, 0, count);
  }
}

/** One rank after the other: the least that can be sent. */
export function* scanLinear(o: Operation, r: OwnReduction, exclusive: boolean): Steps {
  const { rank, size } = o;
  const { kernel, count, from, into } = r;
  const own = scratchFor(o, r, count);
  own.bytes.set(from.part(0, count));
  const before = scratchFor(o, r, count);
  if (rank > 0) {
    o.recv(rank - 1, before.part(0, count));
    yield;
    if (!o.isFailing) kernel(before.array, 0, own.array, 0, own.array, 0, count);
  }
  if (rank < size - 1) {
    o.send(rank + 1, own.part(0, count));
    yield;
  }
  if (o.isFailing) return;
  if (!exclusive) into.part(0, count).set(own.part(0, count));
  else if (rank > 0) into.part(0, count).set(before.part(0, count));
}
