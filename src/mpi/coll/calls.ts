// The calls: arguments are checked, before anything is sent, and an algorithm is chosen for them. A call can be run as often as wanted.
import { MultirailError } from '../../errors.ts';
import { EMPTY_IOV, Iov } from '../../util/iov.ts';
import type { MessageBuffer } from '../buffers.ts';
import { type CallOptions, checkForEachRank, describe } from '../constants.ts';
import { checkOp, kernelOf, Op } from '../op.ts';
import { allgatherBruck, allgatherRecursiveDoubling, allgatherRing, type Parts } from './allgather.ts';
import { alltoallBruck, alltoallIovs, alltoallLinear, alltoallPairwise } from './alltoall.ts';
import { bcastBinomial, bcastChain, bcastScatterAllgather, dissemination } from './barrier-bcast.ts';
import { chooseAlgorithm, chooseMessages } from './choice.ts';
import { gatherBinomial, gatherLinear, type PartOf, scatterBinomial, scatterLinear } from './gather.ts';
import type { ArrayName } from './kernels.ts';
import {
  type Blocks,
  checkApart,
  checkBlocks,
  equalBlocks,
  IN_PLACE,
  type InPlace,
  type Region,
  recvRegion,
  sendRegion,
} from './memory.ts';
import { NATIVE_COMBINE_MIN } from './native-kernels.ts';
import type { Operation, Steps } from './operation.ts';
import {
  allreduceRabenseifner,
  allreduceRecursiveDoubling,
  allreduceRing,
  type OwnReduction,
  type Reduction,
  reduceBinomial,
  reduceRabenseifner,
} from './reduce.ts';
import {
  reduceScatterByRoot,
  reduceScatterHalving,
  reduceScatterPairwise,
  type ScatteredReduction,
  scanLinear,
  scanRecursiveDoubling,
} from './reduce-scatter.ts';
import type { Scope } from './scope.ts';
import { type AtOnce, barrierAtOnce, bcastAtOnce, isShort, reductionAtOnce } from './shared/at-once.ts';
import type { SharedCalls } from './shared/call-memory.ts';
import { sharedAllgather, sharedAllreduce, sharedAlltoall, sharedBarrier, sharedBcast, sharedReduce } from './shared/steps.ts';
import { Signature } from './signature.ts';

export interface Call<T = void> {
  readonly signature: Signature;
  /** The same in one step, for calls that are short and go through shared memory. */
  readonly atOnce?: AtOnce | undefined;
  steps(operation: Operation<T>): Steps<T>;
}

/** What is sent, or IN_PLACE. */
export type SendArgument = MessageBuffer | InPlace;
/** A buffer that is only looked at at the root: null elsewhere. */
export type RootBuffer = MessageBuffer | null | undefined;
/** One number for each rank, in the order of the ranks: of elements, or of the first element of each part. */
export type Counts = readonly number[];

export type BarrierArgs = [options?: CallOptions | undefined];
export type BcastArgs = [buffer: MessageBuffer, root?: number | undefined, options?: CallOptions | undefined];
export type ReduceArgs = [
  send: SendArgument,
  recv: RootBuffer,
  op?: Op | undefined,
  root?: number | undefined,
  options?: CallOptions | undefined,
];
export type AllreduceArgs = [send: SendArgument, recv: MessageBuffer, op?: Op | undefined, options?: CallOptions | undefined];
export type GatherArgs = [send: SendArgument, recv: RootBuffer, root?: number | undefined, options?: CallOptions | undefined];
export type GathervArgs = [
  send: SendArgument,
  recv: RootBuffer,
  counts: Counts | null,
  displs?: Counts | null | undefined,
  root?: number | undefined,
  options?: CallOptions | undefined,
];
export type ScatterArgs = [send: RootBuffer, recv: SendArgument, root?: number | undefined, options?: CallOptions | undefined];
export type ScattervArgs = [
  send: RootBuffer,
  counts: Counts | null,
  displs: Counts | null,
  recv: SendArgument,
  root?: number | undefined,
  options?: CallOptions | undefined,
];
export type AllgatherArgs = [send: SendArgument, recv: MessageBuffer, options?: CallOptions | undefined];
export type AllgathervArgs = [
  send: SendArgument,
  recv: MessageBuffer,
  counts: Counts,
  displs?: Counts | null | undefined,
  options?: CallOptions | undefined,
];
export type AlltoallArgs = [send: SendArgument, recv: MessageBuffer, options?: CallOptions | undefined];
export type AlltoallvArgs = [
  send: SendArgument,
  sendCounts: Counts | null,
  sendDispls: Counts | null,
  recv: MessageBuffer,
  recvCounts: Counts,
  recvDispls?: Counts | null | undefined,
  options?: CallOptions | undefined,
];
export type AlltoallwArgs = [sends: readonly MessageBuffer[] | InPlace, recvs: readonly MessageBuffer[], options?: CallOptions | undefined];
export type ReduceScatterArgs = [
  send: SendArgument,
  recv: MessageBuffer,
  counts: Counts,
  op?: Op | undefined,
  options?: CallOptions | undefined,
];
export type ReduceScatterBlockArgs = [send: SendArgument, recv: MessageBuffer, op?: Op | undefined, options?: CallOptions | undefined];
export type ScanArgs = [send: SendArgument, recv: MessageBuffer, op?: Op | undefined, options?: CallOptions | undefined];

// ---------------------------------------------------------------- what the calls share

/** Packs buffers that are not contiguous for the time of the run. */
function call(
  signature: Signature,
  inputs: readonly Region[],
  outputs: readonly Region[],
  steps: (o: Operation) => Steps,
  atOnce?: () => AtOnce | undefined,
): Call {
  if (allContiguous(inputs) && allContiguous(outputs)) return { signature, steps, atOnce: atOnce?.() };
  const scattered = [...new Set([...inputs, ...outputs])].filter((region) => !region.isContiguous);
  return {
    signature,
    *steps(o) {
      // What is not written of an output must be as it was.
      for (const region of scattered) region.load(o);
      yield* steps(o);
      if (!o.isFailing) for (const region of outputs) region.store();
    },
  };
}

function allContiguous(regions: readonly Region[]): boolean {
  for (let i = 0; i < regions.length; i++) if (!regions[i].isContiguous) return false;
  return true;
}

function checkRoot(root: unknown, { size }: Scope): number {
  if (Number.isInteger(root) && (root as number) >= 0 && (root as number) < size) return root as number;
  throw new MultirailError('ERR_ROOT', `root is ${String(root)}; expected a rank from 0 to ${size - 1}`);
}

/** A buffer that must be there at the root. */
function atRoot(buffer: RootBuffer, name: string): MessageBuffer {
  if (buffer !== null && buffer !== undefined) return buffer;
  throw new MultirailError('ERR_BUFFER', `${name} is missing: it is needed at the root`);
}

function notInPlace(buffer: SendArgument, name: string): MessageBuffer {
  if (buffer !== IN_PLACE) return buffer;
  throw new MultirailError('ERR_ARG', `${name} is IN_PLACE, which only the root may pass here`);
}

function checkLength(region: Region, bytes: number, name: string, why: string): void {
  if (region.byteLength === bytes) return;
  const code = region.byteLength < bytes ? 'ERR_BUFFER' : 'ERR_COUNT';
  throw new MultirailError(code, `${name} has ${region.byteLength} bytes; expected ${bytes}: ${why}`);
}

/** Before lengths are compared: those of buffers that hold other elements differ for that alone. */
function checkSameClass(from: Region, into: Region): void {
  if (into.arrayName === from.arrayName) return;
  const [send, recv] = [from, into].map(({ arrayName }) => arrayName ?? 'buffer of bytes');
  throw new MultirailError(
    'ERR_BUFFER',
    `send is a ${send} and recv a ${recv}; expected two arrays of the same class: a reduction combines element by element`,
  );
}

/** The class of two buffers of a call between which elements are moved: bytes, where they differ. */
function classOf(a: Region | undefined, b: Region | undefined): ArrayName | undefined {
  return a === undefined || b === undefined || a.arrayName === b.arrayName ? (a ?? b)?.arrayName : undefined;
}

const memoryOf = (region: Region, blocks: Blocks): PartOf => {
  return (rank) => region.part(blocks.at[rank], blocks.counts[rank]);
};

/** Parts of the same length, in bytes. */
const slicesOf =
  (region: Region, bytes: number): PartOf =>
  (rank) =>
    region.bytes.subarray(rank * bytes, (rank + 1) * bytes);

const sum = (counts: Counts): number => counts.reduce((total, count) => total + count, 0);

/** Send and receive buffer of a call in which every rank has both. */
function bothOf({ known }: Scope, send: SendArgument, recv: MessageBuffer): { from: Region; into: Region } {
  const into = known.find(recv) ?? known.keep(recv, recvRegion(recv));
  if (send === IN_PLACE) return { from: into, into };
  const from = known.find(send) ?? known.keep(send, sendRegion(send));
  checkApart(from, into, 'send and recv');
  return { from, into };
}

type Through = (o: Operation, memory: SharedCalls) => Steps;

/** Through the memory that the ranks share, if the rule says so and they have it; else by messages. */
function sharedOr({ shared }: Scope, isShared: boolean, through: Through, messages: (o: Operation) => Steps): (o: Operation) => Steps {
  if (shared === undefined) return messages;
  // There is no other kind of it; a scope does not know the steps of operations.
  const memory = shared as SharedCalls;
  return isShared ? (o) => memory.run(o, through, messages) : (o) => memory.runApart(o, messages);
}

const hostShape = ({ size, shared }: Scope, bytes: number) => ({ size, bytes, isOneHost: shared !== undefined });

// ---------------------------------------------------------------- barrier, bcast

export function barrier(scope: Scope, ..._args: BarrierArgs): Call {
  const isShared = chooseAlgorithm('barrier', hostShape(scope, 0), scope.tuning) === 'shared_memory';
  const steps = sharedOr(scope, isShared, sharedBarrier, dissemination);
  return { signature: scope.signatures.of('barrier'), steps, atOnce: isShared && isShort(scope, 0) ? barrierAtOnce(scope) : undefined };
}

const BCASTS = { binomial: bcastBinomial, scatter_allgather: bcastScatterAllgather, chain: bcastChain };

export function bcast(scope: Scope, ...[buffer, root = 0]: BcastArgs): Call {
  checkRoot(root, scope);
  const region = scope.rank === root ? sendRegion(buffer, 'buffer') : recvRegion(buffer, 'buffer');
  const shape = hostShape(scope, region.byteLength);
  const isShared = chooseAlgorithm('bcast', shape, scope.tuning) === 'shared_memory';
  const through: Through = (o, memory) => sharedBcast(o, memory, region.bytes, root);
  const messages = (o: Operation): Steps => BCASTS[chooseMessages('bcast', shape, scope.tuning)](o, region.bytes, root);
  const signature = scope.signatures.of('bcast', root, region.arrayName, region.byteLength);
  const atOnce = isShared && isShort(scope, region.byteLength) ? () => bcastAtOnce(scope, region.bytes, root) : undefined;
  return call(signature, [region], scope.rank === root ? [] : [region], sharedOr(scope, isShared, through, messages), atOnce);
}

// ---------------------------------------------------------------- reductions

function mustHaveElements(region: Region, name: string): void {
  if (region.arrayName !== undefined) return;
  throw new MultirailError('ERR_BUFFER', `${name} has no elements to combine: a reduction takes a typed array, or a vector of one`);
}

function reductionOf({ proc }: Scope, from: Region, into: Region | undefined, op: Op, count = from.length): Reduction {
  checkOp(op);
  mustHaveElements(from, 'send');
  const native = count >= NATIVE_COMBINE_MIN ? proc.nativeKernels : undefined;
  const kernel = kernelOf(op, from.arrayName as NonNullable<typeof from.arrayName>, native);
  if (count % op.unit !== 0) {
    throw new MultirailError('ERR_COUNT', `${count} elements are no whole number of units of op ${op.name}, which have ${op.unit}`);
  }
  return { kernel, commute: op.commute, unit: op.unit, count, from, into };
}

const shapeOf = ({ size, shared }: Scope, { from, count, unit, commute }: Reduction, { isOfUser }: Op) => ({
  size,
  bytes: count * from.unitBytes,
  commute,
  units: count / unit,
  isOneHost: shared !== undefined,
  isOfUser,
});

const REDUCES = { binomial: reduceBinomial, rabenseifner: reduceRabenseifner };
const ALLREDUCES = { recursive_doubling: allreduceRecursiveDoubling, rabenseifner: allreduceRabenseifner, ring: allreduceRing };

export function reduce(scope: Scope, ...[send, recv, op = Op.SUM, root = 0]: ReduceArgs): Call {
  checkRoot(root, scope);
  const isRoot = scope.rank === root;
  const { from, into } = isRoot
    ? bothOf(scope, send, atRoot(recv, 'recv'))
    : { from: sendRegion(notInPlace(send, 'send')), into: undefined };
  if (into !== undefined) {
    checkSameClass(from, into);
    checkLength(into, from.byteLength, 'recv', 'as many as send');
  }
  const r = reductionOf(scope, from, into, op);
  const shape = shapeOf(scope, r, op);
  const isShared = chooseAlgorithm('reduce', shape, scope.tuning) === 'shared_memory';
  const through: Through = (o, memory) => sharedReduce(o, memory, r, root);
  const messages = (o: Operation): Steps => REDUCES[chooseMessages('reduce', shape, scope.tuning)](o, r, root);
  const signature = scope.signatures.of('reduce', root, from.arrayName, from.byteLength, op);
  const atOnce = isShared && isShort(scope, from.byteLength) ? () => reductionAtOnce(scope, from, into, op) : undefined;
  return call(signature, [from], into === undefined ? [] : [into], sharedOr(scope, isShared, through, messages), atOnce);
}

export function allreduce(scope: Scope, ...[send, recv, op = Op.SUM]: AllreduceArgs): Call {
  const { from, into } = bothOf(scope, send, recv);
  checkSameClass(from, into);
  checkLength(into, from.byteLength, 'recv', 'as many as send');
  const r = reductionOf(scope, from, into, op) as OwnReduction;
  const shape = shapeOf(scope, r, op);
  const isShared = chooseAlgorithm('allreduce', shape, scope.tuning) === 'shared_memory';
  const through: Through = (o, memory) => sharedAllreduce(o, memory, r);
  const messages = (o: Operation): Steps => ALLREDUCES[chooseMessages('allreduce', shape, scope.tuning)](o, r);
  const signature = scope.signatures.of('allreduce', undefined, from.arrayName, from.byteLength, op);
  const atOnce = isShared && isShort(scope, from.byteLength) ? () => reductionAtOnce(scope, from, into, op) : undefined;
  return call(signature, [from], [into], sharedOr(scope, isShared, through, messages), atOnce);
}

export function reduceScatterBlock(scope: Scope, ...[send, recv, op = Op.SUM]: ReduceScatterBlockArgs): Call {
  const { size } = scope;
  const { from, into } = bothOf(scope, send, recv);
  if (from === into && into.length % size !== 0) {
    throw new MultirailError('ERR_COUNT', `recv has ${into.length} elements; expected as many for each of the ${size} ranks`);
  }
  const count = from === into ? into.length / size : into.length;
  const signature = scope.signatures.of('reduceScatterBlock', undefined, from.arrayName, count * from.unitBytes, op);
  return scatteredCall(scope, signature, from, into, equalBlocks(size, count), op);
}

export function reduceScatter(scope: Scope, ...[send, recv, counts, op = Op.SUM]: ReduceScatterArgs): Call {
  const { from, into } = bothOf(scope, send, recv);
  const names = { buffer: from === into ? 'recv' : 'send', counts: 'counts', displs: 'displs', written: false };
  const blocks = checkBlocks(from, scope.size, counts, undefined, names);
  const lengths = blocks.counts.map((count) => count * from.unitBytes);
  const signature = new Signature('reduceScatter', { arrayName: from.arrayName, lengths, op: checkOp(op) });
  return scatteredCall(scope, signature, from, into, blocks, op);
}

function scatteredCall(scope: Scope, signature: Signature, from: Region, into: Region, blocks: Blocks, op: Op): Call {
  checkSameClass(from, into);
  const total = sum(blocks.counts);
  checkLength(from, total * from.unitBytes, from === into ? 'recv' : 'send', 'as many elements as all counts together');
  const r: ScatteredReduction = { ...(reductionOf(scope, from, into, op, total) as OwnReduction), blocks };
  if (from !== into) checkLength(into, blocks.counts[scope.rank] * into.unitBytes, 'recv', 'as many elements as the count of this rank');
  const odd = blocks.counts.findIndex((count) => count % op.unit !== 0);
  if (odd >= 0)
    throw new MultirailError('ERR_COUNT', `counts[${odd}] is ${blocks.counts[odd]}: op ${op.name} has units of ${op.unit} elements`);
  const algorithm = chooseAlgorithm('reduce_scatter', shapeOf(scope, r, op), scope.tuning);
  const steps = {
    reduce_scatterv: reduceScatterByRoot,
    recursive_halving: reduceScatterHalving,
    pairwise: reduceScatterPairwise,
  }[algorithm];
  return call(signature, [from], [into], (o) => steps(o, r));
}

function scanCall(scope: Scope, name: 'scan' | 'exscan', exclusive: boolean, [send, recv, op = Op.SUM]: ScanArgs): Call {
  const { from, into } = bothOf(scope, send, recv);
  checkSameClass(from, into);
  checkLength(into, from.byteLength, 'recv', 'as many as send');
  const r = reductionOf(scope, from, into, op) as OwnReduction;
  const algorithm = chooseAlgorithm('scan', shapeOf(scope, r, op), scope.tuning);
  const steps = { recursive_doubling: scanRecursiveDoubling, linear: scanLinear }[algorithm];
  const signature = scope.signatures.of(name, undefined, from.arrayName, from.byteLength, op);
  return call(signature, [from], [into], (o) => steps(o, r, exclusive));
}

export const scan = (scope: Scope, ...args: ScanArgs): Call => scanCall(scope, 'scan', false, args);
export const exscan = (scope: Scope, ...args: ScanArgs): Call => scanCall(scope, 'exscan', true, args);

// ---------------------------------------------------------------- gather, scatter

export function gather(scope: Scope, ...[send, recv, root = 0]: GatherArgs): Call {
  checkRoot(root, scope);
  const { size, rank } = scope;
  const isRoot = rank === root;
  const into = isRoot ? recvRegion(atRoot(recv, 'recv')) : undefined;
  const from = send === IN_PLACE && isRoot ? undefined : sendRegion(notInPlace(send, 'send'));
  if (into !== undefined && from !== undefined) {
    checkApart(from, into, 'send and recv');
    checkLength(into, size * from.byteLength, 'recv', `as many as send for each of the ${size} ranks`);
  }
  const bytes = from?.byteLength ?? sharedLength(into as Region, size, 'recv');
  const own = (): Uint8Array => from?.bytes ?? slicesOf(into as Region, bytes)(rank);
  const outputs = into === undefined ? [] : [into];
  const inputs = from === undefined ? [] : [from];
  const signature = scope.signatures.of('gather', root, classOf(from, into), bytes);
  if (chooseAlgorithm('gather', { size, bytes }, scope.tuning) === 'linear') {
    return call(signature, inputs, outputs, (o) => gatherLinear(o, own(), slicesOf(into as Region, bytes), root));
  }
  return call(signature, inputs, outputs, (o) => gatherBinomial(o, own(), into?.bytes, root));
}

/** Bytes of each rank in a buffer that is shared out evenly. */
function sharedLength(region: Region, size: number, name: string): number {
  if (region.length % size === 0) return region.byteLength / size;
  throw new MultirailError('ERR_COUNT', `${name} has ${region.length} elements; expected as many for each of the ${size} ranks`);
}

export function gatherv(scope: Scope, ...[send, recv, counts, displs, root = 0]: GathervArgs): Call {
  checkRoot(root, scope);
  if (scope.rank !== root) {
    const from = sendRegion(notInPlace(send, 'send'));
    const signature = scope.signatures.of('gatherv', root, from.arrayName);
    return call(signature, [from], [], (o) => gatherLinear(o, from.bytes, () => from.bytes, root));
  }
  const into = recvRegion(atRoot(recv, 'recv'));
  const blocks = checkBlocks(into, scope.size, counts, displs, { buffer: 'recv', counts: 'counts', displs: 'displs', written: true });
  const parts = memoryOf(into, blocks);
  const signature = scope.signatures.of('gatherv', root, into.arrayName);
  if (send === IN_PLACE) return call(signature, [], [into], (o) => gatherLinear(o, parts(root), parts, root));
  const from = sendRegion(send);
  checkApart(from, into, 'send and recv');
  checkLength(from, blocks.counts[root] * into.unitBytes, 'send', 'as many elements as the count of this rank');
  return call(signature, [from], [into], (o) => gatherLinear(o, from.bytes, parts, root));
}

export function scatter(scope: Scope, ...[send, recv, root = 0]: ScatterArgs): Call {
  checkRoot(root, scope);
  const { size, rank } = scope;
  const isRoot = rank === root;
  const from = isRoot ? sendRegion(atRoot(send, 'send')) : undefined;
  const into = recv === IN_PLACE && isRoot ? undefined : recvRegion(notInPlace(recv, 'recv'));
  if (from !== undefined && into !== undefined) {
    checkApart(from, into, 'send and recv');
    checkLength(from, size * into.byteLength, 'send', `as many as recv for each of the ${size} ranks`);
  }
  const bytes = into?.byteLength ?? sharedLength(from as Region, size, 'send');
  const own = (): Uint8Array => into?.bytes ?? slicesOf(from as Region, bytes)(rank);
  const inputs = from === undefined ? [] : [from];
  const outputs = into === undefined ? [] : [into];
  const signature = scope.signatures.of('scatter', root, classOf(from, into), bytes);
  if (chooseAlgorithm('scatter', { size, bytes }, scope.tuning) === 'linear') {
    return call(signature, inputs, outputs, (o) => scatterLinear(o, slicesOf(from as Region, bytes), own(), root));
  }
  return call(signature, inputs, outputs, (o) => scatterBinomial(o, from?.bytes, own(), root));
}

export function scatterv(scope: Scope, ...[send, counts, displs, recv, root = 0]: ScattervArgs): Call {
  checkRoot(root, scope);
  if (scope.rank !== root) {
    const into = recvRegion(notInPlace(recv, 'recv'));
    const signature = scope.signatures.of('scatterv', root, into.arrayName);
    return call(signature, [], [into], (o) => scatterLinear(o, () => into.bytes, into.bytes, root));
  }
  const from = sendRegion(atRoot(send, 'send'));
  const blocks = checkBlocks(from, scope.size, counts, displs, { buffer: 'send', counts: 'counts', displs: 'displs', written: false });
  const parts = memoryOf(from, blocks);
  const signature = scope.signatures.of('scatterv', root, from.arrayName);
  if (recv === IN_PLACE) return call(signature, [from], [], (o) => scatterLinear(o, parts, parts(root), root));
  const into = recvRegion(recv);
  checkApart(from, into, 'send and recv');
  checkLength(into, blocks.counts[root] * from.unitBytes, 'recv', 'as many elements as the count of this rank');
  return call(signature, [from], [into], (o) => scatterLinear(o, parts, into.bytes, root));
}

// ---------------------------------------------------------------- allgather

const ALLGATHERS = { bruck: allgatherBruck, recursive_doubling: allgatherRecursiveDoubling, ring: allgatherRing };

export function allgather(scope: Scope, ...[send, recv]: AllgatherArgs): Call {
  const { size, rank } = scope;
  const { from, into } = bothOf(scope, send, recv);
  if (from !== into) checkLength(into, size * from.byteLength, 'recv', `as many as send for each of the ${size} ranks`);
  const bytes = from === into ? sharedLength(into, size, 'recv') : from.byteLength;
  const { at, counts } = equalBlocks(size, bytes);
  const shape = hostShape(scope, size * bytes);
  const isShared = chooseAlgorithm('allgather', shape, scope.tuning) === 'shared_memory';
  const own = (): Uint8Array => (from === into ? slicesOf(into, bytes)(rank) : from.bytes);
  const through: Through = (o, memory) => sharedAllgather(o, memory, own(), into.bytes);
  const messages = (o: Operation): Steps =>
    ALLGATHERS[chooseMessages('allgather', shape, scope.tuning)](o, own(), { bytes: into.bytes, at, counts });
  const signature = scope.signatures.of('allgather', undefined, classOf(from, into), bytes);
  return call(signature, [from], [into], sharedOr(scope, isShared, through, messages));
}

export function allgatherv(scope: Scope, ...[send, recv, counts, displs]: AllgathervArgs): Call {
  const { size, rank } = scope;
  const { from, into } = bothOf(scope, send, recv);
  const blocks = checkBlocks(into, size, counts, displs, { buffer: 'recv', counts: 'counts', displs: 'displs', written: true });
  if (from !== into) checkLength(from, blocks.counts[rank] * into.unitBytes, 'send', 'as many elements as the count of this rank');
  const inBytes = (list: Counts): number[] => list.map((elements) => elements * into.unitBytes);
  const at = inBytes(blocks.at);
  const lengths = inBytes(blocks.counts);
  // Recursive doubling is for parts of the same length: not a power of two for the rule.
  const chosen = chooseMessages('allgather', { size, bytes: sum(lengths) }, scope.tuning);
  const steps = chosen === 'ring' ? allgatherRing : allgatherBruck;
  const signature = new Signature('allgatherv', { arrayName: classOf(from, into), lengths });
  return call(signature, [from], [into], (o) => {
    const all: Parts = { bytes: into.bytes, at, counts: lengths };
    return steps(o, from === into ? into.part(blocks.at[rank], blocks.counts[rank]) : from.bytes, all);
  });
}

// ---------------------------------------------------------------- alltoall

export function alltoall(scope: Scope, ...[send, recv]: AlltoallArgs): Call {
  const { size } = scope;
  const { from, into } = bothOf(scope, send, recv);
  const bytes = sharedLength(from, size, from === into ? 'recv' : 'send');
  checkLength(into, from.byteLength, 'recv', 'as many as send');
  const shape = hostShape(scope, bytes);
  const isShared = chooseAlgorithm('alltoall', shape, scope.tuning) === 'shared_memory';
  const through: Through = (o, memory) => sharedAlltoall(o, memory, from.bytes, into.bytes);
  const messages = (o: Operation): Steps => {
    const algorithm = chooseMessages('alltoall', shape, scope.tuning);
    let all = from.bytes;
    if (from === into) {
      all = o.scratch(from.byteLength);
      all.set(from.bytes);
    }
    if (algorithm === 'bruck') return alltoallBruck(o, all, into.bytes);
    const steps = algorithm === 'pairwise' ? alltoallPairwise : alltoallLinear;
    return steps(o, (rank) => all.subarray(rank * bytes, (rank + 1) * bytes), slicesOf(into, bytes));
  };
  const signature = scope.signatures.of('alltoall', undefined, classOf(from, into), bytes);
  return call(signature, [from], [into], sharedOr(scope, isShared, through, messages));
}

export function alltoallv(scope: Scope, ...[send, sendCounts, sendDispls, recv, recvCounts, recvDispls]: AlltoallvArgs): Call {
  const { size, rank } = scope;
  const into = recvRegion(recv);
  if (send === IN_PLACE) {
    const parts = checkBlocks(into, size, recvCounts, recvDispls, {
      buffer: 'recv',
      counts: 'recvCounts',
      displs: 'recvDispls',
      written: true,
    });
    const part = memoryOf(into, parts);
    return call(scope.signatures.of('alltoallv'), [into], [into], (o) => alltoallLinear(o, copiesOf(o, part), part));
  }
  const from = sendRegion(send);
  checkApart(from, into, 'send and recv');
  const out = checkBlocks(from, size, sendCounts, sendDispls, {
    buffer: 'send',
    counts: 'sendCounts',
    displs: 'sendDispls',
    written: false,
  });
  const taken = checkBlocks(into, size, recvCounts, recvDispls, {
    buffer: 'recv',
    counts: 'recvCounts',
    displs: 'recvDispls',
    written: true,
  });
  if (out.counts[rank] * from.unitBytes !== taken.counts[rank] * into.unitBytes) {
    throw new MultirailError('ERR_COUNT', `sendCounts[${rank}] and recvCounts[${rank}], of this rank to itself, are not the same length`);
  }
  // Lengths and classes are matters of each pair.
  return call(scope.signatures.of('alltoallv'), [from], [into], (o) => alltoallLinear(o, memoryOf(from, out), memoryOf(into, taken)));
}

/** What the parts hold when the run begins: it goes out while they are written into. */
function copiesOf(o: Operation, part: PartOf): PartOf {
  const copies = Array.from({ length: o.size }, (_, rank) => {
    const own = part(rank);
    const copy = o.scratch(own.length);
    copy.set(own);
    return copy;
  });
  return (rank) => copies[rank];
}

function copyOf(o: Operation, iov: Iov): Iov {
  if (iov.bytes === 0) return EMPTY_IOV;
  const copy = o.scratch(iov.bytes);
  iov.copyTo(copy, 0);
  return new Iov([copy]);
}

export function alltoallw(scope: Scope, ...[sends, recvs]: AlltoallwArgs): Call {
  const { size, rank } = scope;
  const lists =
    sends === IN_PLACE
      ? ([[recvs, 'recvs']] as const)
      : ([
          [sends, 'sends'],
          [recvs, 'recvs'],
        ] as const);
  for (const [list, name] of lists) {
    if (!Array.isArray(list)) {
      throw new MultirailError(
        'ERR_COUNT',
        `${name} is ${describe(list)}; expected an array with one buffer for each of the ranks, ${size} in all`,
      );
    }
    checkForEachRank(list, size, name);
  }
  const taken = recvs.map((buffer, i) => recvRegion(buffer, `recvs[${i}]`));
  const out = sends === IN_PLACE ? [] : sends.map((buffer, i) => sendRegion(buffer, `sends[${i}]`));
  for (const [i, one] of taken.entries()) {
    for (const [j, other] of out.entries()) checkApart(other, one, `sends[${j}] and recvs[${i}]`);
    for (let j = 0; j < i; j++) checkApart(taken[j], one, `recvs[${j}] and recvs[${i}]`);
  }
  const into = taken.map((region) => region.iov);
  if (sends === IN_PLACE)
    return {
      signature: scope.signatures.of('alltoallw'),
      steps: (o) =>
        alltoallIovs(
          o,
          into.map((iov) => copyOf(o, iov)),
          into,
        ),
    };
  checkLength(taken[rank], out[rank].byteLength, `recvs[${rank}]`, `as many as sends[${rank}], which this rank sends to itself`);
  const from = out.map((region) => region.iov);
  return { signature: scope.signatures.of('alltoallw'), steps: (o) => alltoallIovs(o, from, into) };
}
