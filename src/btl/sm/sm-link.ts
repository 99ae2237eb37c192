// One live rail epoch over a shared segment: records through the rings, counts in shared words, doorbells for sleepers, reads of the peer's
// memory. It is the hot path of the rail: no objects, closures or views per small frame.
//
// Where no record goes the other way, the count goes into the reader's word of the segment: after some records or bytes, when the reader
// finds nothing more to do, at once for a prompt frame, before it parks and before it closes. Positions are not shared at all: the writer
// knows how long the counted records were.
//
// The doorbell is Dekker's scheme (Atomics are sequentially consistent): the sleeper stores `sleeping` and then polls the rings once more;
// the publisher stores the record and then loads `sleeping`. At least one of the two sees the other.
import type { NativeBinding } from '../../native/binding.ts';
import { assert } from '../../util/assert.ts';
import type { LinkOwner } from '../base/link.ts';
import { flagsOf, RECORD_DATA, RECORD_PROBE_ANSWER, recordWord } from '../base/record-hdr.ts';
import { COUNT_IDLE_POLLS, POLL_BYTES, POLL_RECORDS, RecordLink } from '../base/record-link.ts';
import {
  BUSY,
  CONTROL_RESERVE_BYTES,
  countOneSided,
  DELIVERED,
  DOWN,
  type Frame,
  HEADER_BYTES_MAX,
  OK,
  type OneSidedOp,
  type Registration,
  type SendResult,
  type WatchedWords,
} from '../btl.ts';
import type { SmPlanDetail } from './address.ts';
import { type ExportedMemory, placeIn } from './exported-memory.ts';
import { LOOP_BYTES_MAX, RECORD_ALIGNMENT, RECORD_HEADER_BYTES, RingReader, RingWriter, recordBytes, Scratch } from './ring.ts';
import type { Segment } from './segment.ts';
import { addressInWindow, Reads, type SingleCopyChoice, windowKey } from './single-copy.ts';
import type { UnixStream } from './unix-stream.ts';

/** Shorter payloads are handed up as a copy: making a view of the ring costs more. */
const SCRATCH_PAYLOAD_BYTES = 128;
/** The writer hears of its records at the latest after so many of them, or so many bytes. */
const COUNT_RECORDS = 64;
const COUNT_BYTES = 32 * 1024;
/** What a get takes of the ring. */
const NO_BYTES = 0;
/** Records wait for flush() up to this many bytes; the first one after a flush does not wait at all. */
const PUBLISH_BYTES = 512;

/** What the link needs of the module, beside its owner. */
export interface SmHost {
  readonly native: NativeBinding;
  readonly choice: SingleCopyChoice;
  readonly exported: ExportedMemory;
  /** How often both sides of a rail tell each other how long they were alive, in milliseconds. */
  readonly aliveEveryMs: number;
  /** That peer measures the single copy on this connection. */
  givesSample(peer: number): boolean;
  /** A trial is over: the attributes of all rails say what came of it. */
  chosen(): void;
  /** The link lets go of its memory. */
  forget(link: SmLink): void;
}

/** Tests begin a rail near the end of a ring, or near the wrap of a count. */
export interface RingStart {
  offset: number;
  count: number;
}

export class SmLink extends RecordLink<UnixStream> {
  private readonly host: SmHost;
  private readonly segment: Segment;
  private readonly words: Int32Array;
  private readonly peerCountAt: number;
  private readonly peerSleepAt: number;
  /** Private memory of the one may be read by the other. */
  private readonly canRead: boolean;

  private readonly writer: RingWriter;
  private readonly reserveBytes: number;
  /** Written and not published. */
  private heldBytes = 0;

  private readonly reader: RingReader;
  private readonly headerCopy = new Scratch(HEADER_BYTES_MAX);
  private readonly payloadCopy = new Scratch(SCRATCH_PAYLOAD_BYTES);

  private readonly reads: Reads;
  private tried = false;
  private polling = false;
  private releaseWanted = false;
  private released = false;
  private aliveDueAt = 0;

  constructor(
    owner: LinkOwner,
    host: SmHost,
    epoch: number,
    stream: UnixStream,
    segment: Segment,
    start: RingStart = { offset: 0, count: 0 },
  ) {
    super(owner, epoch, stream, start.count);
    this.host = host;
    this.segment = segment;
    const { memory, ringBytes } = segment;
    this.words = segment.words;
    this.peerCountAt = segment.peer.deliveredCount;
    this.peerSleepAt = segment.peer.sleeping;
    this.canRead = (owner.endpoint.plan.detail as SmPlanDetail).singleCopy;
    this.writer = new RingWriter(memory, segment.own.ringAt, ringBytes, start.offset);
    this.reader = new RingReader(memory, segment.peer.ringAt, ringBytes, HEADER_BYTES_MAX, this.payloadBytesMax, start.offset);
    this.reserveBytes = Math.min(CONTROL_RESERVE_BYTES, ringBytes / 4);
    segment.words[segment.own.deliveredCount] = start.count;
    this.reads = new Reads(host.native, stream.peerPid);
    if (this.canRead) host.choice.tell(segment, host.givesSample(owner.endpoint.peer));
    else this.tried = true;
  }

  // --- down-calls

  send(frame: Frame, windowBytes: number): SendResult {
    if (this.ended !== undefined || this.byeSaid) return DOWN;
    const { header, payloadBytes, headerWords } = frame;
    const headerBytes = header.length;
    const bytes = headerBytes + payloadBytes;
    assert(headerBytes <= HEADER_BYTES_MAX, 'the packet header is too long');
    assert(payloadBytes <= this.payloadBytesMax, 'the payload is too long for this rail');
    const record = recordBytes(headerBytes, payloadBytes);
    if (!this.mayGo(bytes, record, payloadBytes === 0, windowBytes)) return BUSY;
    const { writer } = this;
    const { words } = writer;
    const at = writer.begin(record);
    let w = at >> 2;
    words[w + 1] = payloadBytes;
    words[w + 2] = this.deliveredCount;
    words[w + 3] = 0;
    w += RECORD_HEADER_BYTES / 4;
    if (
      headerWords !== undefined &&
      (headerBytes & 3) === 0 &&
      (payloadBytes === 0 || (frame.packed === true && bytes <= LOOP_BYTES_MAX))
    ) {
      const count = (bytes + 3) >> 2;
      for (let i = 0; i < count; i++) words[w + i] = headerWords[i];
    } else writer.fill(at, header, frame.payload);
    this.numbered(frame, writer.commit(at, record, recordWord(RECORD_DATA, flagsOf(frame), headerBytes)));
    frame.railFrameNumber = this.outstanding.sentCount;
    this.outstandingBytes += bytes;
    this.heldBytes += record;
    const { counters } = this.owner;
    counters.framesSent++;
    counters.payloadBytesSent += payloadBytes;
    counters.bytesSent += record;
    if (!this.heldSince || this.heldBytes >= PUBLISH_BYTES) this.publish();
    this.heldSince = true;
    return OK;
  }

  // --- one-sided

  /** Only memory in one piece, and only while the peer is not known to be unable to read it. */
  register(memory: readonly Uint8Array[]): Registration | undefined {
    if (this.ended !== undefined || memory.length !== 1) return undefined;
    const [only] = memory;
    const { peer } = this.segment;
    const exported = this.host.exported.keyOf(only);
    if (exported !== undefined && Atomics.load(this.words, peer.cannotMap) === 0) return { key: exported, deregister: () => {} };
    if (!this.canRead || Atomics.load(this.words, peer.canRead) === 2) return undefined;
    // The peer reads by itself, so there is nothing to undo: the PML keeps the buffer until the FIN.
    return { key: windowKey(process.pid, this.host.native.addressOf(only), only.length), deregister: () => {} };
  }

  get(op: OneSidedOp, windowBytes: number): SendResult {
    if (this.ended !== undefined || this.byeSaid) return DOWN;
    if (!this.mayGo(op.bytes, NO_BYTES, false, windowBytes)) return BUSY;
    const { peerPid } = this.stream;
    const { remoteKey, remoteOffset, bytes } = op;
    this.outstandingBytes += bytes;
    // A key that cannot be right breaks the protocol: address 0 cannot be read, and that ends the rail.
    this.reads.add(op, placeIn(remoteKey, peerPid, remoteOffset, bytes) ?? addressInWindow(remoteKey, peerPid, remoteOffset, bytes) ?? 0);
    return OK;
  }

  // --- called by the endpoint inside progress()

  poll(now: number, aliveMs: number): number {
    if (this.ended !== undefined) return 0;
    this.now = now;
    this.aliveMs = aliveMs;
    this.upcallsMade = 0;
    this.polling = true;
    try {
      this.readRecords(POLL_RECORDS, POLL_BYTES, false);
      if (this.ended === undefined) this.pollRest();
    } finally {
      this.polling = false;
    }
    if (this.releaseWanted) this.release();
    return this.upcallsMade;
  }

  private pollRest(): void {
    if (this.outstanding.size > 0) this.takeCount(this.words[this.peerCountAt]);
    if (!this.reads.isEmpty) this.runReads();
    if (this.stream.ready && this.ended === undefined && this.stream.hasEnded()) this.socketEnded();
    if (this.ended !== undefined) return;
    if (this.ownWaits) this.writeOwn();
    this.flush();
    if (this.deliveredCount !== this.toldCount && (this.tellNow || this.idlePolls >= COUNT_IDLE_POLLS)) this.tellCount();
    if (this.now >= this.aliveDueAt) this.tellAlive();
    if (this.byeSaid && this.byeReceived) this.closeAfterBye();
  }

  /** Whether a record has come is asked last, by hasNews(). */
  nextDeadline(windowBytes: number): number {
    if (this.ended !== undefined || !this.reads.isEmpty || this.deliveredCount !== this.toldCount || this.stream.ready) return 0;
    if (this.blockedBytes !== Number.POSITIVE_INFINITY && this.writableNow(windowBytes)) return 0;
    return this.tried ? this.endDueAt : Math.min(this.endDueAt, this.now + this.host.aliveEveryMs);
  }

  /**
   * Nobody polls from here on: the peer must ring. Owed counts are told first. `sleep` and then `hasNews` is the sleeper's half of
   * the scheme above.
   */
  sleep(): void {
    if (this.ended !== undefined) return;
    if (this.heldSince || this.heldBytes > 0) this.flush();
    if (this.deliveredCount !== this.toldCount) this.tellCount();
    Atomics.store(this.words, this.segment.own.sleeping, 1);
  }

  awake(): void {
    if (this.ended === undefined) Atomics.store(this.words, this.segment.own.sleeping, 0);
  }

  /** Something for poll() has come from outside: the sleeper's last look. */
  hasNews(): boolean {
    return this.reader.hasRecordForSure() || this.hasOtherNews(Atomics.load(this.words, this.peerCountAt));
  }

  private hasOtherNews(peerCount: number): boolean {
    if (this.ended !== undefined || this.stream.ready || !this.reads.isEmpty) return true;
    // The word may be behind the count that came with a record.
    return this.outstanding.size > 0 && ((peerCount - this.outstanding.confirmedCount) | 0) > 0;
  }

  isQuiet(now: number, aliveMs: number): boolean {
    if (this.blockedBytes !== Number.POSITIVE_INFINITY || this.wantsTurn(now)) return false;
    this.now = now;
    this.aliveMs = aliveMs;
    return true;
  }

  /**
   * poll() would find something to do. Each rail is asked in each turn, most have nothing, and code that is not compiled yet pays for every
   * call: so it is written out (RingReader.hasRecord, Reads.isEmpty, hasOtherNews).
   */
  wantsTurn(now: number): boolean {
    const { reader, outstanding } = this;
    if (reader.words[reader.readAt >> 2] !== 0 || this.deliveredCount !== this.toldCount || this.heldBytes > 0) return true;
    if (now >= this.aliveDueAt || this.ended !== undefined || this.stream.ready || this.reads.waiting.length > 0) return true;
    if (this.ownWaits || (this.byeSaid && this.byeReceived)) return true;
    const { confirmedCount } = outstanding;
    return outstanding.sentCount !== confirmedCount && ((this.words[this.peerCountAt] - confirmedCount) | 0) > 0;
  }

  /** The record and the count that may come next. False: poll() has something to do. */
  watch(watched: WatchedWords): boolean {
    const { reader, outstanding, words, peerCountAt } = this;
    // Before it is looked at: a count that comes in between is seen as a change.
    const count = words[peerCountAt];
    if (this.wantsTurn(this.now)) return false;
    if (outstanding.sentCount !== outstanding.confirmedCount && !watched.add(words, peerCountAt, count)) return false;
    return watched.add(reader.words, reader.readAt >> 2, 0);
  }

  override close(): number {
    const made = super.close();
    this.release();
    return made;
  }

  /** Lets go of the segment; no upcalls. */
  release(): void {
    if (this.ended === undefined) this.over({ clean: false, reason: { kind: 'shutdown', text: 'this side is closing down' } });
    // A view of the ring may be in the hands of an upcall: not before it has returned.
    if (this.polling) {
      this.releaseWanted = true;
      return;
    }
    if (this.released) return;
    this.released = true;
    this.reads.close();
    this.host.native.memoryUnmap(this.segment.memory);
    this.host.forget(this);
  }

  // --- records in

  /** `all`: also what stands behind the message that a blocking call waits for, since there is no next time. */
  private readRecords(recordsMax: number, bytesMax: number, all: boolean): void {
    const { reader } = this;
    const before = this.receivedBytes;
    try {
      for (let i = 0; i < recordsMax && this.receivedBytes - before < bytesMax; i++) {
        const found = reader.take();
        if (found !== true) {
          if (found !== false) this.damage(found);
          break;
        }
        if (reader.deliveredCount !== this.outstanding.confirmedCount) {
          this.takeCount(reader.deliveredCount);
          if (this.ended !== undefined) return;
        }
        if (reader.kind === RECORD_DATA) this.readFrame();
        else this.readOwn();
        if (this.ended !== undefined) return;
        const bytes = reader.recordBytes;
        this.receivedBytes += bytes;
        this.untoldBytes += bytes;
        reader.advance();
        this.deliveredCount = (this.deliveredCount + 1) | 0;
        if (this.untoldBytes >= COUNT_BYTES || ((this.deliveredCount - this.toldCount) | 0) >= COUNT_RECORDS) this.tellCount();
        if (!all && this.owner.upcalls.satisfied === true) break;
      }
    } catch (error) {
      this.failed(error);
    } finally {
      const bytes = this.receivedBytes - before;
      this.idlePolls = bytes === 0 ? this.idlePolls + 1 : 0;
      this.owner.counters.bytesReceived += bytes;
    }
  }

  private readFrame(): void {
    const { reader, owner } = this;
    const { words, payloadBytes } = reader;
    if (reader.flags === 0 && payloadBytes <= SCRATCH_PAYLOAD_BYTES && !this.byeReceived) {
      const { upcalls, endpoint, counters } = owner;
      const headerAt = reader.packetHeaderAt >> 2;
      const payloadAt = reader.payloadAt >> 2;
      if (upcalls.onFrameWords?.(endpoint, words, headerAt, reader.packetHeaderBytes, payloadAt, payloadBytes) === true) {
        this.upcallsMade++;
        counters.framesReceived++;
        counters.payloadBytesReceived += payloadBytes;
        return;
      }
    }
    // A copy, since the peer could change it between our checks and our use.
    const header = this.headerCopy.take(words, reader.packetHeaderAt >> 2, reader.packetHeaderBytes);
    const payload =
      payloadBytes <= SCRATCH_PAYLOAD_BYTES
        ? this.payloadCopy.take(words, reader.payloadAt >> 2, payloadBytes)
        : new Uint8Array(words.buffer, words.byteOffset + reader.payloadAt, payloadBytes);
    this.handUp(header, payload, reader.flags);
  }

  private readOwn(): void {
    const { kind, number } = this.reader;
    // The peer's facts stand by now, and the BML reads the attributes when the rail comes up, which may be right now.
    if (kind === RECORD_PROBE_ANSWER) this.tryPeer();
    this.takeOwn(kind, number >>> 0);
  }

  /** Gives the room of the ring back. */
  protected override nextConfirmed(): Frame | null {
    const frame = super.nextConfirmed();
    this.writer.usedBytes -= this.outstanding.lastSize;
    return frame;
  }

  // --- records out

  protected hasRoom(record: number, isControl: boolean): boolean {
    return this.writer.fits(record, isControl || this.outstandingBytes === 0 ? 0 : this.reserveBytes);
  }

  protected writeRecord(kind: number, number: number): boolean {
    const { writer } = this;
    const record = recordBytes(0, 0);
    if (!writer.fits(record, 0)) return false;
    const at = writer.begin(record);
    const w = at >> 2;
    writer.words[w + 1] = 0;
    writer.words[w + 2] = this.deliveredCount;
    writer.words[w + 3] = number;
    this.numbered(null, writer.commit(at, record, recordWord(kind, 0, 0)));
    this.heldBytes += record;
    this.owner.counters.bytesSent += record;
    return true;
  }

  protected publish(): void {
    if (!this.writer.isHolding) return;
    this.writer.publish();
    this.heldBytes = 0;
    this.ringIfAsleep();
  }

  private tellCount(): void {
    this.countTold();
    this.idlePolls = 0;
    Atomics.store(this.words, this.segment.own.deliveredCount, this.deliveredCount);
    this.ringIfAsleep();
  }

  private ringIfAsleep(): void {
    const { words, peerSleepAt } = this;
    if (Atomics.load(words, peerSleepAt) !== 0 && Atomics.exchange(words, peerSleepAt, 0) !== 0) this.stream.ring();
  }

  /** Wakes the peer's process. */
  ring(): boolean {
    if (this.ended !== undefined) return false;
    this.stream.ring();
    return true;
  }

  private runReads(): void {
    const reason = this.reads.run((op, status, isMapped) => {
      this.outstandingBytes -= op.bytes;
      // It is not permitted, or not any more: the peer offers no more windows of that kind.
      if (status !== DELIVERED)
        Atomics.store(this.words, isMapped ? this.segment.own.cannotMap : this.segment.own.canRead, isMapped ? 1 : 2);
      else countOneSided(this.owner.counters, op);
      this.upcallsMade++;
      this.owner.upcalls.onOneSidedCompleted(this.owner.endpoint, this.epoch, op, status);
      return this.ended === undefined;
    });
    if (reason !== undefined) this.over({ clean: false, reason });
  }

  /** Now and then: our alive time for the peer, its own for the BML, and the trial of the single copy. */
  private tellAlive(): void {
    const { segment, words, now } = this;
    this.aliveDueAt = now + this.host.aliveEveryMs;
    words[segment.own.aliveMs] = this.aliveMs;
    segment.doubles[segment.own.receivedBytesF64] = this.receivedBytes;
    this.tryPeer();
    this.report(segment.doubles[segment.peer.receivedBytesF64], words[segment.peer.aliveMs]);
  }

  /** Once: whether the peer can be read, and from which length on that is the better way; the rail's attributes say so. */
  private tryPeer(): void {
    if (this.tried) return;
    this.tried = this.host.choice.tryPeer(this.segment, this.stream.peerPid);
    if (this.tried) this.host.chosen();
  }

  // --- the end

  /** The socket is closed: what the peer published before stands in the ring, and counts. */
  private socketEnded(): void {
    // A ring full at most: more than that can only be one that a broken peer closed into a circle.
    const { ringBytes } = this.segment;
    this.readRecords(ringBytes / RECORD_ALIGNMENT, ringBytes, true);
    if (this.ended === undefined && this.reader.hasRecordForSure()) this.damage('more records than the ring holds');
    if (this.ended === undefined) this.takeCount(Atomics.load(this.words, this.peerCountAt));
    if (this.ended !== undefined) return;
    this.streamEnded();
  }

  protected takeOp(): OneSidedOp | undefined {
    return this.reads.shift();
  }

  /** The count stays in the segment. */
  protected leave(): boolean {
    this.flush();
    this.tellCount();
    return true;
  }

  /** Nothing lands by itself; the memory is let go once nobody looks at it. */
  protected stop(): void {}
}
