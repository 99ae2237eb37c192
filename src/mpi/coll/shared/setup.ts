// How the members of a communicator come to share memory: the first makes a segment and tells its process and descriptor, the others open it
// through /proc, which the kernel permits to processes of one user in one namespace, and all agree whether everybody has it. Nobody uses it
// before; and where one of them has not, all go on by messages.
import { closeSync } from 'node:fs';
import { mapMemoryOf } from '../../../native/memory-of.ts';
import { Iov } from '../../../util/iov.ts';
import { kernelOf, Op } from '../../op.ts';
import { bcastBinomial } from '../barrier-bcast.ts';
import { Region } from '../memory.ts';
import type { Operation, Steps } from '../operation.ts';
import { allreduceRecursiveDoubling } from '../reduce.ts';
import type { SharedMemorySource } from '../scope.ts';
import { ownStartTime } from './process-time.ts';
import { NONCE_WORDS, SharedSegment, segmentBytes } from './segment.ts';

/** Number of the collective in which the ranks come to share memory; those of the user begin with 1. */
export const SETUP_TAG = 0;

/** What the first member tells: whether there is a segment, its process, its descriptor, and what the segment begins with. */
const RECORD_DOUBLES = 3 + NONCE_WORDS;

/** One attempt, and what it holds until it is known how it ends. */
export class Setup {
  private readonly source: SharedMemorySource | undefined;
  private readonly longBytes: number;
  private fd = -1;
  private segment: SharedSegment | undefined;

  /** `source`: undefined where this process can share no memory. */
  constructor(source: SharedMemorySource | undefined, longBytes: number) {
    this.source = source;
    this.longBytes = longBytes;
  }

  /** Resolves with the segment once every member has mapped it; undefined when one of them could not. */
  *steps(o: Operation<SharedSegment | undefined>): Steps<SharedSegment | undefined> {
    const members = o.size;
    const record = new Float64Array(RECORD_DOUBLES);
    if (o.rank === 0) this.make(members, record);
    const run = o as unknown as Operation;
    yield* bcastBinomial(run, new Uint8Array(record.buffer), 0);
    if (o.rank !== 0 && !o.isFailing) this.open(members, record);
    const verdict = Float64Array.of(this.segment === undefined ? 0 : 1);
    const region = new Region(verdict, new Iov([new Uint8Array(verdict.buffer)]));
    this.segment?.introduce(o.rank, process.pid, ownStartTime());
    const kernel = kernelOf(Op.MIN, 'Float64Array');
    yield* allreduceRecursiveDoubling(run, { kernel, commute: true, unit: 1, count: 1, from: region, into: region });
    if (o.isFailing || verdict[0] === 0) return undefined;
    this.closeDescriptor();
    const made = this.segment;
    this.segment = undefined;
    return made;
  }

  private make(members: number, record: Float64Array): void {
    const { source, longBytes } = this;
    if (source === undefined) return;
    const bytes = segmentBytes(members, longBytes);
    const nonce = crypto.getRandomValues(new Int32Array(NONCE_WORDS));
    try {
      this.fd = source.memoryCreate('multirail-coll', bytes);
      const segment = new SharedSegment(source.memoryMap(this.fd, bytes), members, longBytes);
      segment.format(nonce);
      this.segment = segment;
    } catch {
      // No memory can be shared here: all are told so.
      this.dispose();
      return;
    }
    record.set([1, process.pid, this.fd, ...nonce]);
  }

  private open(members: number, [isThere, pid, fd, ...nonce]: Float64Array): void {
    const { source, longBytes } = this;
    if (source === undefined || isThere !== 1) return;
    try {
      const segment = new SharedSegment(mapMemoryOf(source, pid, fd, segmentBytes(members, longBytes)), members, longBytes);
      this.segment = segment;
      if (!segment.isThatOf(Int32Array.from(nonce))) this.dispose();
    } catch {
      // Out of reach: all are told so.
      this.dispose();
    }
  }

  private closeDescriptor(): void {
    if (this.fd >= 0) closeSync(this.fd);
    this.fd = -1;
  }

  /** Lets go of what is held. */
  dispose(): void {
    this.closeDescriptor();
    const { segment } = this;
    this.segment = undefined;
    if (segment !== undefined) this.source?.memoryUnmap(segment.memory);
  }
}
