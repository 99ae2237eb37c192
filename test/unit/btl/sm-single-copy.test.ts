// The single copy of a shared-memory rail: the trial that decides about it, windows that must not be believed, and reads in slices.
import { describe, expect, test } from 'vitest';
import { type CompletionStatus, DELIVERED, type OneSidedOp, REFUSED } from '../../../src/btl/btl.ts';
import { Segment, segmentBytes } from '../../../src/btl/sm/segment.ts';
import { addressInWindow, givesSample, Reads, SingleCopyChoice, type SingleCopyMode, windowKey } from '../../../src/btl/sm/single-copy.ts';
import type { NativeBinding } from '../../../src/native/binding.ts';

const RING_BYTES = 256 * 1024;
const BYTES_MIN = 65_536;
const PEER = 4711;

/** Addresses are places in one list of registered memories; a read may be made to fail. */
class Kernel {
  readonly memories: Uint8Array[] = [];
  errno = 0;
  reads = 0;
  readonly native = {
    addressOf: (bytes: Uint8Array) => this.memories.push(bytes) * 2 ** 32,
    processRead: (_pid: number, address: number, bytes: Uint8Array, offset: number, length: number) => {
      this.reads++;
      if (this.errno !== 0) return -this.errno;
      const memory = this.memories[Math.floor(address / 2 ** 32) - 1];
      if (memory === undefined) return -14;
      const from = address % 2 ** 32;
      const part = memory.subarray(from, from + length);
      bytes.set(part, offset);
      return part.length === 0 ? -14 : part.length;
    },
  } as unknown as NativeBinding;
}

/** Both ends of a connection; by the stopwatch of the reader each copy and each read takes that long, the first copy `extraMs` more. */
function makeTrial(mode: SingleCopyMode, copyMs: number, readMs: number, extraMs = 0) {
  const kernel = new Kernel();
  const memory = new ArrayBuffer(segmentBytes(RING_BYTES));
  let atMs = 0;
  let asked = 0;
  const stopwatch = (): number => {
    // Before a copy, between a copy and a read, after a read.
    const step = asked++ % 3;
    if (step === 1) atMs += copyMs + (asked === 2 ? extraMs : 0);
    else if (step === 2) atMs += readMs;
    return atMs;
  };
  const ours = new SingleCopyChoice(kernel.native, mode, BYTES_MIN, new Uint8Array(16).fill(1), stopwatch);
  const theirs = new SingleCopyChoice(kernel.native, mode, BYTES_MIN, new Uint8Array(16).fill(2), () => 0);
  return { kernel, ours, theirs, own: new Segment(memory, RING_BYTES, 'dialer'), peer: new Segment(memory, RING_BYTES, 'acceptor') };
}

describe('who measures with whom', () => {
  const all = (size: number, rank: number) => Array.from({ length: size }, (_, peer) => peer).filter((peer) => peer !== rank);

  test('where all rails are made at the start, every rank gets a sample of a neighbour', () => {
    for (const size of [2, 3, 16, 64, 65]) {
      for (let rank = 0; rank < size; rank++)
        expect(all(size, rank).some((peer) => givesSample(peer, all(size, peer), rank) && givesSample(rank, all(size, rank), peer))).toBe(
          true,
        );
    }
  });

  test('where rails are made at first use, the two ends of a tree know different ranks, and both get a sample', () => {
    // Rank 0 leads a tree; rank 32 has met nobody else.
    const met = [1, 2, 4, 8, 16, 32];
    for (const leaf of met) {
      expect(givesSample(0, met, leaf)).toBe(true);
      expect(givesSample(leaf, [0], 0)).toBe(true);
    }
  });

  test('a rank that meets many does not give each of them memory', () => {
    expect(all(64, 20).filter((peer) => givesSample(20, all(64, 20), peer))).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 21]);
  });
});

describe('the trial', () => {
  test.each([
    ['auto', 10, 1, BYTES_MIN],
    ['auto', 1, 1, Number.POSITIVE_INFINITY],
    ['auto', 1, 10, Number.POSITIVE_INFINITY],
    ['always', 1, 10, BYTES_MIN],
  ] as const)('%s: a copy of %d and a read of %d', (mode, copyMs, readMs, expected) => {
    const { ours, theirs, own, peer } = makeTrial(mode, copyMs, readMs);
    expect(ours.tryPeer(own, PEER)).toBe(false);
    theirs.tell(peer, true);
    expect(ours.tryPeer(own, PEER)).toBe(true);
    expect(ours.getBytesMin).toBe(expected);
    expect(own.words[own.own.canRead]).toBe(1);
    expect(peer.words[peer.peer.canRead]).toBe(1);
  });

  test('a copy in which the processor was taken away does not decide', () => {
    const { ours, theirs, own, peer } = makeTrial('auto', 1, 4, 50);
    theirs.tell(peer, true);
    expect(ours.tryPeer(own, PEER)).toBe(true);
    expect(ours.isDecided).toBe(true);
    expect(ours.getBytesMin).toBe(Number.POSITIVE_INFINITY);
  });

  test('without a sample nothing is measured, and the ring stays the way', () => {
    const { ours, theirs, own, peer } = makeTrial('auto', 10, 1);
    theirs.tell(peer, false);
    expect(ours.tryPeer(own, PEER)).toBe(true);
    expect(ours.isDecided).toBe(false);
    expect(ours.getBytesMin).toBe(Number.POSITIVE_INFINITY);
  });

  test('who cannot be read is told so', () => {
    const { kernel, ours, theirs, own, peer } = makeTrial('auto', 10, 1);
    theirs.tell(peer, true);
    kernel.errno = 1;
    expect(ours.tryPeer(own, PEER)).toBe(true);
    expect(peer.words[peer.peer.canRead]).toBe(2);
    expect(ours.isDecided).toBe(false);
  });

  test('a proof that is another one is no proof', () => {
    const { ours, theirs, own, peer } = makeTrial('auto', 10, 1);
    theirs.tell(peer, true);
    new Uint8Array(peer.memory)[peer.own.proofAt]++;
    ours.tryPeer(own, PEER);
    expect(own.words[own.own.canRead]).toBe(2);
  });

  test('a peer that names a wrong place or a wrong length does no harm', () => {
    for (const bytes of [-1, 65535, 1 << 30, 0x7fffffff]) {
      const { ours, theirs, own, peer } = makeTrial('auto', 10, 1);
      theirs.tell(peer, true);
      peer.words[peer.own.sampleBytes] = bytes;
      expect(ours.tryPeer(own, PEER)).toBe(true);
      expect(ours.isDecided).toBe(false);
    }
    for (const address of [Number.NaN, -5, Number.POSITIVE_INFINITY, 0.5]) {
      const { ours, theirs, own, peer } = makeTrial('auto', 10, 1);
      theirs.tell(peer, true);
      peer.doubles[peer.own.proofAddressF64] = address;
      expect(ours.tryPeer(own, PEER)).toBe(true);
      expect(own.words[own.own.canRead]).toBe(2);
    }
  });
});

describe('windows', () => {
  const key = windowKey(PEER, 2 ** 40, 1000);

  test('a range inside has its address', () => {
    expect(addressInWindow(key, PEER, 0, 1000)).toBe(2 ** 40);
    expect(addressInWindow(key, PEER, 999, 1)).toBe(2 ** 40 + 999);
    expect(key.length).toBeLessThanOrEqual(64);
  });

  test('anything else has none', () => {
    expect(addressInWindow(key, PEER + 1, 0, 10)).toBeUndefined();
    expect(addressInWindow(key, PEER, 1, 1000)).toBeUndefined();
    expect(addressInWindow(key, PEER, -1, 10)).toBeUndefined();
    expect(addressInWindow(key, PEER, Number.NaN, 10)).toBeUndefined();
    expect(addressInWindow(key.subarray(1), PEER, 0, 10)).toBeUndefined();
    expect(addressInWindow(windowKey(PEER, -8, 1000), PEER, 0, 10)).toBeUndefined();
    expect(addressInWindow(windowKey(PEER, 2 ** 40, Number.NaN), PEER, 0, 10)).toBeUndefined();
  });
});

describe('reads', () => {
  const opOf = (local: Uint8Array[], bytes: number): OneSidedOp => ({
    kind: 'get',
    local,
    bytes,
    remoteKey: new Uint8Array(0),
    remoteOffset: 0,
    railFrameNumber: 0,
  });

  function makeReads() {
    const kernel = new Kernel();
    const source = Uint8Array.from({ length: 1_500_000 }, (_, i) => (i * 7) & 0xff);
    const address = kernel.native.addressOf(source);
    const done: [OneSidedOp, CompletionStatus][] = [];
    const complete = (op: OneSidedOp, status: CompletionStatus): boolean => {
      done.push([op, status]);
      return true;
    };
    return { kernel, source, address, done, complete, reads: new Reads(kernel.native, PEER) };
  }

  test('a long one takes several turns, and fills scattered memory', () => {
    const { source, address, done, complete, reads } = makeReads();
    const target = new Uint8Array(1_500_000);
    const op = opOf([target.subarray(0, 1), target.subarray(1, 1), target.subarray(1, 700_000), target.subarray(700_000)], 1_500_000);
    reads.add(op, address);
    expect(reads.run(complete)).toBeUndefined();
    expect(done).toEqual([]);
    expect(target[1_000_000]).toBe(0);
    for (let turn = 0; turn < 5 && !reads.isEmpty; turn++) reads.run(complete);
    expect(done).toEqual([[op, DELIVERED]]);
    expect(Buffer.compare(target, source)).toBe(0);
  });

  test('what is not permitted is refused, each one, and the rail goes on', () => {
    const { kernel, address, done, complete, reads } = makeReads();
    kernel.errno = 1;
    const ops = [1, 2].map(() => opOf([new Uint8Array(100)], 100));
    for (const op of ops) reads.add(op, address);
    expect(reads.run(complete)).toBeUndefined();
    expect(done).toEqual(ops.map((op) => [op, REFUSED]));
    expect(reads.isEmpty).toBe(true);
  });

  test('memory that is not there, or ends too early, ends the rail', () => {
    for (const [offset, errno] of [
      [0, 3],
      [0, 14],
      [1_499_990, 0],
    ]) {
      const { kernel, address, done, complete, reads } = makeReads();
      kernel.errno = errno;
      reads.add(opOf([new Uint8Array(100)], 100), address + offset);
      expect(reads.run(complete)).toMatchObject({ kind: 'error' });
      expect(done).toEqual([]);
      expect(reads.isEmpty).toBe(false);
    }
  });

  test('a read of nothing is done', () => {
    const { address, done, complete, reads } = makeReads();
    const op = opOf([], 0);
    reads.add(op, address);
    reads.run(complete);
    expect(done).toEqual([[op, DELIVERED]]);
  });
});
