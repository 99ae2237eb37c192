// Collectives of values: structured clone, with large memory apart from it, as in sendObject() (mpi/objects.ts). Each algorithm is a few
// exchanges of packed values; what only passes through a rank is handed on as it came.
//
// A packed value is up to three messages, one after the other, in a stage of its own each: the head (length of the header, and as much
// of it as fits), the rest of the header, and the large memory. Stages are kept apart, since a rank that waits for room for its memory must
// not keep others from saying how much they need.
import { MultirailError } from '../../errors.ts';
import type { RecvRequest } from '../../pml/records.ts';
import { Iov } from '../../util/iov.ts';
import { allocate } from '../buffers.ts';
import { type CallOptions, checkForEachRank, describe } from '../constants.ts';
import { decodeHeader, decodeObject, type EncodedObject, encodeObject, PLACE_TAG_FIRST } from '../objects.ts';
import { Status } from '../status.ts';
import { lowestBit } from './barrier-bcast.ts';
import type { Call } from './calls.ts';
import type { Operation, Steps } from './operation.ts';
import type { Scope } from './scope.ts';

/** Combines two values; the left one is of lower ranks. */
export type Combine<T> = (left: T, right: T) => T;

const HEAD_BYTES_MAX = 4096;
const LENGTH_BYTES = 4;

/** A value on its way: from here, or from another rank. */
class Packed {
  readonly header: Uint8Array;
  readonly bulk: readonly Uint8Array[];

  constructor({ header, bulk }: { header: Uint8Array; bulk: readonly Uint8Array[] }) {
    this.header = header;
    this.bulk = bulk;
  }

  get head(): Uint8Array {
    const first = Math.min(this.header.length, HEAD_BYTES_MAX - LENGTH_BYTES);
    const head = new Uint8Array(LENGTH_BYTES + first);
    new DataView(head.buffer).setUint32(0, this.header.length, true);
    head.set(this.header.subarray(0, first), LENGTH_BYTES);
    return head;
  }

  get rest(): Uint8Array {
    return this.header.subarray(HEAD_BYTES_MAX - LENGTH_BYTES);
  }

  /** The value, of which the memory that came is part. Nothing may send it any more. */
  open(source: number): unknown {
    const memory = this.bulk as readonly Uint8Array<ArrayBuffer>[];
    return decodeObject(decodeHeader(this.header, new Status(source, 0, this.header.length)), memory);
  }
}

const pack = ({ proc, ctx }: Scope, value: unknown): Packed =>
  new Packed(encodeObject(value, PLACE_TAG_FIRST, proc.pml.comparesBytes(ctx)) satisfies EncodedObject);

/** Sends packed values to some ranks and receives one from each of others. Empty when the call has failed. */
function* exchange(
  o: Operation,
  outgoing: readonly (readonly [rank: number, value: Packed])[],
  sources: readonly number[],
): Steps<Packed[]> {
  const heads = sources.map(() => new Uint8Array(HEAD_BYTES_MAX));
  const requests = sources.map((rank, i) => o.recvUpTo(rank, heads[i]));
  for (const [rank, value] of outgoing) o.send(rank, value.head);
  yield;
  const headers = heads.map((head, i) => headerOf(head, requests[i]));
  for (const [i, header] of headers.entries()) {
    const rest = header.subarray(HEAD_BYTES_MAX - LENGTH_BYTES);
    if (rest.length > 0) o.recv(sources[i], rest);
  }
  for (const [rank, value] of outgoing) if (value.rest.length > 0) o.send(rank, value.rest);
  yield;
  if (o.isFailing) {
    // Only so that others are told.
    for (const [rank, value] of outgoing) o.send(rank, value.rest);
    return [];
  }
  const received = headers.map((header, i) => {
    const { regionBytes } = decodeHeader(header, new Status(sources[i], 0, header.length));
    return new Packed({ header, bulk: regionBytes.map(allocate) });
  });
  for (const [i, { bulk }] of received.entries()) if (bulk.length > 0) o.recvIov(sources[i], new Iov(bulk));
  for (const [rank, { bulk }] of outgoing) if (bulk.length > 0) o.sendIov(rank, new Iov(bulk));
  yield;
  return received;
}

/** Memory for the whole header, with what of it came with the head. */
function headerOf(head: Uint8Array, request: RecvRequest | undefined): Uint8Array {
  const first = (request?.receivedBytes ?? 0) - LENGTH_BYTES;
  if (first < 0) return new Uint8Array(0);
  const header = allocate(new DataView(head.buffer).getUint32(0, true));
  header.set(head.subarray(LENGTH_BYTES, LENGTH_BYTES + Math.min(first, header.length)));
  return header;
}

/** The one value that comes from that rank. */
function* receive(o: Operation, source: number): Steps<Packed | undefined> {
  return (yield* exchange(o, [], [source]))[0];
}

// ---------------------------------------------------------------- algorithms

/** Down a binomial tree. */
function* spread(o: Operation, own: Packed | undefined, root: number): Steps<Packed | undefined> {
  const { rank, size } = o;
  const v = (rank - root + size) % size;
  const bit = lowestBit(v, size);
  const value = v > 0 ? yield* receive(o, (v - bit + root) % size) : own;
  const children: number[] = [];
  for (let child = bit / 2; child >= 1; child /= 2) if (v + child < size) children.push((v + child + root) % size);
  const sent = value ?? NOTHING;
  yield* exchange(
    o,
    children.map((child) => [child, sent] as const),
    [],
  );
  return value;
}
/** Takes the place of a value where the call has failed: it is not sent. */
const NOTHING = new Packed({ header: new Uint8Array(0), bulk: [] });

/** Up a binomial tree, in rank order; the result ends up at rank 0. */
function* combineAll<T>(o: Operation, scope: Scope, own: T, combine: Combine<T>): Steps<T> {
  const { rank, size } = o;
  const bit = lowestBit(rank, size);
  let value = own;
  for (let child = 1; child < bit && rank + child < size; child *= 2) {
    const packed = yield* receive(o, rank + child);
    if (packed !== undefined) value = combine(value, packed.open(rank + child) as T);
  }
  if (rank > 0) yield* exchange(o, [[rank - bit, o.isFailing ? NOTHING : pack(scope, value)]], []);
  return value;
}

// ---------------------------------------------------------------- calls

/** The operation of a call that gives something, as the algorithms see it. */
const plain = <T>(o: Operation<T>): Operation => o as unknown as Operation;

function checkList(values: unknown, size: number, name: string): readonly unknown[] {
  if (!Array.isArray(values)) {
    throw new MultirailError(
      'ERR_COUNT',
      `${name} is ${describe(values)}; expected an array with one value for each of the ranks, ${size} in all`,
    );
  }
  checkForEachRank(values, size, name);
  return values;
}

function checkCombine(combine: unknown): void {
  if (typeof combine === 'function') return;
  throw new MultirailError('ERR_OP', `combine is ${combine === null ? 'null' : typeof combine}; expected a function of two values`);
}

function checkRootRank(root: unknown, { size }: Scope): void {
  if (Number.isInteger(root) && (root as number) >= 0 && (root as number) < size) return;
  throw new MultirailError('ERR_ROOT', `root is ${String(root)}; expected a rank from 0 to ${size - 1}`);
}

export function bcastObject<T>(scope: Scope, value: T, root: number, _options?: CallOptions): Call<T> {
  checkRootRank(root, scope);
  // What cannot be cloned is told before anything is sent.
  const own = scope.rank === root ? pack(scope, value) : undefined;
  return {
    signature: scope.signatures.of('bcastObject', root),
    *steps(o) {
      const packed = yield* spread(plain(o), own, root);
      return own !== undefined || packed === undefined ? value : (packed.open(root) as T);
    },
  };
}

export function gatherObject<T>(scope: Scope, value: T, root: number, _options?: CallOptions): Call<T[] | null> {
  checkRootRank(root, scope);
  const { rank, size } = scope;
  const own = rank === root ? undefined : pack(scope, value);
  return {
    signature: scope.signatures.of('gatherObject', root),
    *steps(o) {
      if (own !== undefined) {
        yield* exchange(plain(o), [[root, own]], []);
        return null;
      }
      const sources = Array.from({ length: size }, (_, i) => i).filter((i) => i !== root);
      const received = yield* exchange(plain(o), [], sources);
      const values = received.map((packed, i) => packed.open(sources[i]) as T);
      values.splice(root, 0, value);
      return values;
    },
  };
}

export function allgatherObject<T>(scope: Scope, value: T, _options?: CallOptions): Call<T[]> {
  const { rank, size, signatures } = scope;
  const own = pack(scope, value);
  return {
    signature: signatures.of('allgatherObject'),
    *steps(o) {
      const all = new Array<Packed>(size).fill(own);
      // Values go round.
      for (let step = 0; step < size - 1; step++) {
        const source = (rank - step - 1 + size) % size;
        const received = yield* exchange(plain(o), [[(rank + 1) % size, all[(rank - step + size) % size]]], [(rank - 1 + size) % size]);
        all[source] = received[0] ?? NOTHING;
      }
      return o.isFailing ? [] : all.map((packed, i) => (i === rank ? value : (packed.open(i) as T)));
    },
  };
}

export function scatterObject<T>(scope: Scope, values: readonly T[] | null | undefined, root: number, _options?: CallOptions): Call<T> {
  checkRootRank(root, scope);
  const { rank, size } = scope;
  const list = rank === root ? (checkList(values, size, 'values') as readonly T[]) : undefined;
  const packed = list?.map((value, i) => (i === root ? NOTHING : pack(scope, value)));
  return {
    signature: scope.signatures.of('scatterObject', root),
    *steps(o) {
      if (list === undefined || packed === undefined) return (yield* receive(plain(o), root))?.open(root) as T;
      const others = packed.flatMap((value, i) => (i === root ? [] : [[i, value] as const]));
      yield* exchange(plain(o), others, []);
      return list[root];
    },
  };
}

export function alltoallObject<T>(scope: Scope, values: readonly T[], _options?: CallOptions): Call<T[]> {
  const { rank, size, signatures } = scope;
  checkList(values, size, 'values');
  const packed = values.map((value, i) => (i === rank ? NOTHING : pack(scope, value)));
  return {
    signature: signatures.of('alltoallObject'),
    *steps(o) {
      const others = Array.from({ length: size - 1 }, (_, i) => (rank + i + 1) % size);
      const received = yield* exchange(
        plain(o),
        others.map((i) => [i, packed[i]] as const),
        others,
      );
      const result = values.slice();
      for (const [i, source] of others.entries()) result[source] = received[i]?.open(source) as T;
      return result;
    },
  };
}

export function reduceObject<T>(scope: Scope, value: T, combine: Combine<T>, root: number, _options?: CallOptions): Call<T | null> {
  checkRootRank(root, scope);
  checkCombine(combine);
  return {
    signature: scope.signatures.of('reduceObject', root),
    *steps(o) {
      const result = yield* combineAll(plain(o), scope, value, combine);
      if (root === 0) return scope.rank === 0 ? result : null;
      if (scope.rank === 0) yield* exchange(plain(o), [[root, o.isFailing ? NOTHING : pack(scope, result)]], []);
      return scope.rank === root ? ((yield* receive(plain(o), 0))?.open(0) as T) : null;
    },
  };
}

export function allreduceObject<T>(scope: Scope, value: T, combine: Combine<T>, _options?: CallOptions): Call<T> {
  checkCombine(combine);
  return {
    signature: scope.signatures.of('allreduceObject'),
    *steps(o) {
      const result = yield* combineAll(plain(o), scope, value, combine);
      const own = scope.rank === 0 && !o.isFailing ? pack(scope, result) : undefined;
      const packed = yield* spread(plain(o), own, 0);
      return own !== undefined || packed === undefined ? result : (packed.open(0) as T);
    },
  };
}
