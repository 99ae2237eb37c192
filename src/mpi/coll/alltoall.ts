// Algorithms of alltoall, alltoallv and alltoallw. Sources: Bruck et al. (1997); Thakur, Rabenseifner, Gropp (2005).
import type { Iov } from '../../util/iov.ts';
import { copyPart, type PartOf, rotate } from './gather.ts';
import type { Operation, Steps } from './operation.ts';

/** All at once, in an order in which not everybody sends to the same rank first. Parts without bytes are not sent. */
export function* alltoallLinear(o: Operation, from: PartOf, into: PartOf): Steps {
  const { rank, size } = o;
  for (let step = 1; step < size; step++) {
    const source = (rank - step + size) % size;
    const part = into(source);
    if (part.length > 0) o.recv(source, part);
  }
  for (let step = 1; step < size; step++) {
    const dest = (rank + step) % size;
    const part = from(dest);
    if (part.length > 0) o.send(dest, part);
  }
  copyPart(from(rank), into(rank));
  yield;
}

/** As alltoallLinear(), with memory of any shape. */
export function* alltoallIovs(o: Operation, from: readonly Iov[], into: readonly Iov[]): Steps {
  const { rank, size } = o;
  for (let step = 1; step < size; step++) {
    const source = (rank - step + size) % size;
    if (into[source].bytes > 0) o.recvIov(source, into[source]);
  }
  for (let step = 1; step < size; step++) {
    const dest = (rank + step) % size;
    if (from[dest].bytes > 0) o.sendIov(dest, from[dest]);
  }
  const own = o.scratch(from[rank].bytes);
  from[rank].copyTo(own, 0);
  into[rank].copyIn(0, own);
  yield;
}

/** One pair after the other: by exclusive or for a power of two, else the rank ahead and the rank behind. */
export function* alltoallPairwise(o: Operation, from: PartOf, into: PartOf): Steps {
  const { rank, size } = o;
  const isPowerOfTwo = (size & (size - 1)) === 0;
  copyPart(from(rank), into(rank));
  for (let step = 1; step < size; step++) {
    const dest = isPowerOfTwo ? rank ^ step : (rank + step) % size;
    const source = isPowerOfTwo ? dest : (rank - step + size) % size;
    o.send(dest, from(dest));
    o.recv(source, into(source));
    yield;
  }
}

/** In round k, what has bit k set in its distance goes 2^k ranks ahead: log2 rounds, each with half of the parts. */
export function* alltoallBruck(o: Operation, from: Uint8Array, into: Uint8Array): Steps {
  const { rank, size } = o;
  const bytes = from.length / size;
  // Part i is for the rank i ahead.
  const parts = o.scratch(from.length);
  rotate(from, parts, ((size - rank) % size) * bytes);
  const half = Math.ceil(size / 2) * bytes;
  const out = o.scratch(half);
  const received = o.scratch(half);
  for (let bit = 1; bit < size; bit *= 2) {
    let at = 0;
    for (let i = bit; i < size; i++) {
      if ((i & bit) === 0) continue;
      out.set(parts.subarray(i * bytes, (i + 1) * bytes), at);
      at += bytes;
    }
    o.send((rank + bit) % size, out.subarray(0, at));
    o.recv((rank - bit + size) % size, received.subarray(0, at));
    yield;
    if (o.isFailing) continue;
    at = 0;
    for (let i = bit; i < size; i++) {
      if ((i & bit) === 0) continue;
      parts.set(received.subarray(at, at + bytes), i * bytes);
      at += bytes;
    }
  }
  if (o.isFailing) return;
  // Part i has come from the rank i behind.
  for (let i = 0; i < size; i++) into.set(parts.subarray(i * bytes, (i + 1) * bytes), ((rank - i + size) % size) * bytes);
}
