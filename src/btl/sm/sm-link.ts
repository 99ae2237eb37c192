// One live rail epoch over a shared segment: frames through the rings, the count of what was handed up (B2) in shared words, sinks
// (B4), BYE (B9), doorbells for sleepers. Everything here is the hot path of the rail: no objects, closures or views per small frame.
// May import: btl.ts, base (types, outstanding-records), errors, util, native (types), ring, segment, single-copy, unix-stream.
//
// The count: the reader of a ring raises its own `deliveredCount` after the upcall returned. It travels in every record that goes the
// other way, and where there is none, in the reader's word of the segment: after some records or bytes, when the
// reader finds nothing more to do, at once for a prompt frame, before it parks and before it closes. Positions are not shared at all:
// the writer knows how long the counted records were.
//
// The doorbell (Dekker's scheme; Atomics are sequentially consistent): who goes to sleep stores `sleeping` and then looks at the rings
// once more; who publishes stores the record and then loads `sleeping`. At least one of the two sees the other.
import { MultirailError } from '../../errors.ts';
import type { NativeBinding } from '../../native/binding.ts';
import { assert } from '../../util/assert.ts';
import type { Link, LinkEnd, LinkOwner } from '../base/link.ts';
import { Outstanding } from '../base/outstanding-records.ts';
import {
  BUSY,
  CONTROL_RESERVE_BYTES,
  DELIVERED,
  DOWN,
  type Frame,
  HEADER_BYTES_MAX,
  IN_DOUBT,
  OK,
  type OneSidedOp,
  type RailReason,
  type Registration,
  type SendResult,
  type Sink,
} from '../btl.ts';
import {
  FLAG_PLACED,
  FLAG_PROMPT,
  LOOP_BYTES_MAX,
  RECORD_ALIGNMENT,
  RECORD_BYE,
  RECORD_DATA,
  RECORD_HEADER_BYTES,
  RECORD_PROBE,
  RECORD_PROBE_ANSWER,
  RingReader,
  RingWriter,
  recordBytes,
  recordWord,
  Scratch,
} from './ring.ts';
import type { Segment } from './segment.ts';
import { addressInWindow, Reads, type SingleCopyChoice, windowKey } from './single-copy.ts';
import type { UnixStream } from './unix-stream.ts';

/** Shorter payloads are handed up as a copy: making a view of the ring costs more. */
const SCRATCH_PAYLOAD_BYTES = 128;
/** Handed up in one poll at most, so that one rail does not starve the others. */
const POLL_RECORDS = 256;
const POLL_BYTES = 1024 * 1024;
/** The writer hears of its records at the latest after so many of them, or so many bytes. */
const COUNT_RECORDS = 64;
const COUNT_BYTES = 32 * 1024;
/** Polls that found nothing before the count goes without a record: an answer that is about to leave carries it for nothing. */
const COUNT_IDLE_POLLS = 3;
/** Records wait for flush() up to this many bytes; the first one after a flush does not wait at all. */
const PUBLISH_BYTES = 512;
/** Probes that are out, and answers that are owed: of more only the last counts. */
const OWN_RECORDS_MAX = 16;
const ALIVE_EVERY_MS = 5;
const REPORT_EVERY_MS = 50;
const NO_BYTES = new Uint8Array(0);
const NO_PROBE = -1;

/** What the link needs of the module, beside its owner. */
export interface SmHost {
  readonly native: NativeBinding;
  readonly choice: SingleCopyChoice;
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

export class SmLink implements Link {
  readonly epoch: number;
  readonly stream: UnixStream;
  outstandingBytes = 0;
  receivedByPeerBytes = 0;
  private readonly owner: LinkOwner;
  private readonly host: SmHost;
  private readonly segment: Segment;
  private readonly words: Int32Array;
  private readonly peerCountAt: number;
  private readonly peerSleepAt: number;
  private readonly peerBell: number;
  private readonly canGet: boolean;
  private readonly payloadBytesMax: number;

  // Sending.
  private readonly writer: RingWriter;
  private readonly reserveBytes: number;
  private readonly outstanding: Outstanding;
  private heldBytes = 0;
  private heldSince = false;
  private blockedBytes = Number.POSITIVE_INFINITY;
  private blockedRecord = 0;
  private blockedControl = false;
  private byeSaid = false;
  private byeNumber = 0;
  private byeWaits = false;
  private probeWaits = NO_PROBE;
  private answers: number[] = [];
  /** A probe, an answer or the BYE waits to be written. */
  private ownWaits = false;

  // Receiving.
  private readonly reader: RingReader;
  private deliveredCount: number;
  private toldCount: number;
  private untoldBytes = 0;
  private idlePolls = 0;
  private tellNow = false;
  private byeReceived = false;
  private openSink: Sink | null = null;
  private receivedBytes = 0;
  private readonly headerCopy = new Scratch(HEADER_BYTES_MAX);
  private readonly payloadCopy = new Scratch(SCRATCH_PAYLOAD_BYTES);

  private readonly reads: Reads;
  private tried = false;
  private upcallsMade = 0;
  private polling = false;
  private releaseWanted = false;
  private released = false;
  private now = 0;
  private aliveMs = 0;
  private aliveDueAt = 0;
  private reportDueAt = 0;
  private reportedAliveMs = 0;
  private ended: LinkEnd | undefined;
  private endDueAt = Number.POSITIVE_INFINITY;

  constructor(
    owner: LinkOwner,
    host: SmHost,
    epoch: number,
    stream: UnixStream,
    segment: Segment,
    peerBell: number,
    start: RingStart = { offset: 0, count: 0 },
  ) {
    this.owner = owner;
    this.host = host;
    this.epoch = epoch;
    this.stream = stream;
    this.segment = segment;
    this.peerBell = peerBell;
    const { attributes } = owner.endpoint.plan;
    const { memory, ringBytes } = segment;
    this.words = segment.words;
    this.peerCountAt = segment.peer.deliveredCount;
    this.peerSleepAt = segment.peer.sleeping;
    this.canGet = attributes.canGet;
    this.payloadBytesMax = attributes.frameBytesMax;
    this.writer = new RingWriter(memory, segment.own.ringAt, ringBytes, start.offset);
    this.reader = new RingReader(memory, segment.peer.ringAt, ringBytes, HEADER_BYTES_MAX, attributes.frameBytesMax, start.offset);
    this.reserveBytes = Math.min(CONTROL_RESERVE_BYTES, ringBytes / 4);
    this.outstanding = new Outstanding(start.count);
    this.deliveredCount = start.count;
    this.toldCount = start.count;
    segment.words[segment.own.deliveredCount] = start.count;
    this.reads = new Reads(host.native, stream.peerPid);
    if (this.canGet) host.choice.tell(segment, host.givesSample(owner.endpoint.peer));
    else this.tried = true;
  }

  get end(): LinkEnd | undefined {
    return this.ended;
  }

  // --- down-calls

  send(frame: Frame, windowBytes: number): SendResult {
    if (this.ended !== undefined || this.byeSaid) return DOWN;
    const { header, payload, payloadBytes } = frame;
    const headerBytes = header.length;
    const bytes = headerBytes + payloadBytes;
    assert(headerBytes <= HEADER_BYTES_MAX, 'the packet header is too long');
    assert(payloadBytes <= this.payloadBytesMax, 'the payload is too long for this rail');
    const record = recordBytes(headerBytes, payloadBytes);
    if (!this.hasRoom(bytes, record, payloadBytes === 0, windowBytes)) {
      this.block(bytes, record, payloadBytes === 0);
      return BUSY;
    }
    const { writer } = this;
    const { words } = writer;
    const at = writer.begin(record);
    let w = at >> 2;
    words[w + 1] = payloadBytes;
    words[w + 2] = this.deliveredCount;
    words[w + 3] = 0;
    w += RECORD_HEADER_BYTES / 4;
    const { headerWords } = frame;
    if (
      headerWords !== undefined &&
      (headerBytes & 3) === 0 &&
      (payloadBytes === 0 || (frame.packed === true && bytes <= LOOP_BYTES_MAX))
    ) {
      const count = (bytes + 3) >> 2;
      for (let i = 0; i < count; i++) words[w + i] = headerWords[i];
    } else writer.fill(at, header, payload);
    this.number(
      frame,
      writer.commit(at, record, recordWord(RECORD_DATA, (frame.placed ? FLAG_PLACED : 0) | (frame.prompt ? FLAG_PROMPT : 0), headerBytes)),
    );
    frame.railFrameNumber = this.outstanding.sentCount;
    this.outstandingBytes += bytes;
    this.heldBytes += record;
    const counters = this.owner.counters;
    counters.framesSent++;
    counters.payloadBytesSent += payloadBytes;
    counters.bytesSent += record;
    if (!this.heldSince || this.heldBytes >= PUBLISH_BYTES) this.publish();
    this.heldSince = true;
    return OK;
  }

  flush(): void {
    this.heldSince = false;
    if (this.ended === undefined && this.writer.isHolding) this.publish();
  }

  probe(probeId: number): void {
    if (this.ended !== undefined || this.byeSaid) return;
    this.probeWaits = probeId | 0;
    this.writeOwn();
  }

  bye(): void {
    if (this.ended !== undefined || this.byeSaid) return;
    this.byeSaid = true;
    this.byeWaits = true;
    this.writeOwn();
  }

  revokeSink(sink: Sink): boolean {
    if (this.openSink !== sink) return false;
    sink.revoked = true;
    return true;
  }

  cut(reason: RailReason): void {
    this.over({ clean: false, reason });
  }

  endsWell(): boolean {
    if (this.ended !== undefined || !this.byeSaid || !this.byeReceived) return false;
    this.flush();
    this.tellCount();
    this.over({ clean: true });
    return true;
  }

  // --- one-sided

  /** Only memory in one piece, and only while the peer is not known to be unable to read it. */
  register(memory: readonly Uint8Array[]): Registration | undefined {
    if (!this.canGet || this.ended !== undefined || memory.length !== 1) return undefined;
    if (Atomics.load(this.words, this.segment.peer.canRead) === 2) return undefined;
    const [only] = memory;
    // The peer reads by itself, so there is nothing to undo: the PML keeps the buffer until the FIN.
    return { key: windowKey(process.pid, this.host.native.addressOf(only), only.length), deregister: () => {} };
  }

  get(op: OneSidedOp, windowBytes: number): SendResult {
    if (this.ended !== undefined || this.byeSaid) return DOWN;
    if (this.outstandingBytes > 0 && this.outstandingBytes + op.bytes > windowBytes) {
      this.block(op.bytes, 0, false);
      return BUSY;
    }
    const address = addressInWindow(op.remoteKey, this.stream.peerPid, op.remoteOffset, op.bytes);
    this.outstandingBytes += op.bytes;
    // A key that cannot be right breaks the protocol: address 0 cannot be read, and that ends the rail.
    this.reads.add(op, address ?? 0);
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

  takeWritable(windowBytes: number): boolean {
    if (this.blockedBytes === Number.POSITIVE_INFINITY || !this.writableNow(windowBytes)) return false;
    this.blockedBytes = Number.POSITIVE_INFINITY;
    this.blockedControl = false;
    return true;
  }

  writableNow(windowBytes: number): boolean {
    if (this.blockedBytes === Number.POSITIVE_INFINITY || this.ended !== undefined || this.byeSaid) return false;
    return this.hasRoom(this.blockedBytes, this.blockedRecord, this.blockedControl, windowBytes);
  }

  nextDeadline(): number {
    if (this.ended !== undefined || !this.reads.isEmpty || this.deliveredCount !== this.toldCount) return 0;
    if (this.reader.hasRecordForSure() || this.stream.ready) return 0;
    return this.tried ? this.endDueAt : Math.min(this.endDueAt, this.now + ALIVE_EVERY_MS);
  }

  /**
   * Nobody polls from here on: the peer must ring. Owed counts are told first. `sleep` and then `hasNews` is the sleeper's half of
   * the scheme above.
   */
  sleep(): void {
    if (this.ended !== undefined) return;
    this.flush();
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

  /** poll() would find something to do. */
  wantsTurn(now: number): boolean {
    if (this.reader.hasRecord || this.deliveredCount !== this.toldCount || this.writer.isHolding || now >= this.aliveDueAt) return true;
    return this.hasOtherNews(this.words[this.peerCountAt]) || this.ownWaits || (this.byeSaid && this.byeReceived);
  }

  close(): number {
    const { endpoint, upcalls } = this.owner;
    const end = this.ended as LinkEnd;
    let made = 0;
    if (!end.clean) {
      upcalls.onRailDown(endpoint, this.epoch, end.reason);
      made++;
      const sink = this.openSink;
      this.openSink = null;
      if (sink !== null) {
        upcalls.onSinkDropped(endpoint, this.epoch, sink);
        made++;
      }
    }
    const status = end.clean ? DELIVERED : IN_DOUBT;
    while (this.outstanding.size > 0) {
      const frame = this.nextConfirmed();
      if (frame === null) {
        if (end.clean && this.byeSaid && this.outstanding.confirmedCount === this.byeNumber) this.owner.byeDelivered = true;
        continue;
      }
      upcalls.onCompleted(endpoint, this.epoch, frame, status);
      made++;
    }
    for (let op = this.reads.shift(); op !== undefined; op = this.reads.shift()) {
      this.outstandingBytes -= op.bytes;
      upcalls.onOneSidedCompleted(endpoint, this.epoch, op, IN_DOUBT);
      made++;
    }
    this.release();
    return made;
  }

  /** Lets go of the segment and the doorbell; no upcalls. */
  release(): void {
    if (this.ended === undefined) this.over({ clean: false, reason: { kind: 'shutdown', text: 'this side is closing down' } });
    // A view of the ring may be in the hands of an upcall: not before it has returned.
    if (this.polling) {
      this.releaseWanted = true;
      return;
    }
    if (this.released) return;
    this.released = true;
    this.host.native.memoryUnmap(this.segment.memory);
    this.host.native.close(this.peerBell);
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
        if (this.byeReceived && reader.kind !== RECORD_PROBE_ANSWER && reader.kind !== RECORD_PROBE) this.damage('a record after BYE');
        else if (reader.kind === RECORD_DATA) this.readFrame();
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
    const { words, packetHeaderBytes, payloadBytes, flags } = reader;
    const { endpoint, upcalls, counters } = owner;
    // A copy, since the peer could change it between our checks and our use.
    const header = this.headerCopy.take(words, reader.packetHeaderAt >> 2, packetHeaderBytes);
    this.upcallsMade++;
    if ((flags & FLAG_PROMPT) !== 0) this.tellNow = true;
    if ((flags & FLAG_PLACED) !== 0) {
      this.upcallsMade++;
      const sink = upcalls.sinkFor(endpoint, this.epoch, header, payloadBytes);
      this.openSink = sink;
      if (this.ended !== undefined) return;
      this.place(sink);
      this.openSink = null;
      upcalls.onFrame(endpoint, this.epoch, header, NO_BYTES, sink);
    } else {
      const payload =
        payloadBytes <= SCRATCH_PAYLOAD_BYTES
          ? this.payloadCopy.take(words, reader.payloadAt >> 2, payloadBytes)
          : new Uint8Array(words.buffer, words.byteOffset + reader.payloadAt, payloadBytes);
      upcalls.onFrame(endpoint, this.epoch, header, payload, null);
    }
    counters.framesReceived++;
    counters.payloadBytesReceived += payloadBytes;
  }

  private place(sink: Sink): void {
    if (sink.views.length === 0 || sink.revoked) return;
    assert(this.reader.copyPayload(sink.views), 'a sink must have exactly the length of its payload');
  }

  private readOwn(): void {
    const { reader, owner } = this;
    const { endpoint, upcalls } = owner;
    const id = reader.number >>> 0;
    switch (reader.kind) {
      case RECORD_PROBE:
        if (this.answers.length >= OWN_RECORDS_MAX) this.answers.shift();
        this.answers.push(id);
        this.ownWaits = true;
        return;
      case RECORD_PROBE_ANSWER:
        // The peer's facts stand by now, and the BML reads the attributes when the rail comes up, which may be right now.
        this.tryPeer();
        this.upcallsMade++;
        upcalls.onProbeAnswered(endpoint, this.epoch, id);
        return;
      case RECORD_BYE:
        this.byeReceived = true;
        this.tellNow = true;
        this.upcallsMade++;
        upcalls.onBye(endpoint, this.epoch);
    }
  }

  /** The peer has handed up our records up to this number. An older count than one that we know is stale, not wrong. */
  private takeCount(count: number): void {
    let news = (count - this.outstanding.confirmedCount) | 0;
    if (news <= 0) return;
    if (news > this.outstanding.size) {
      this.damage(`delivered count ${count} where at most ${this.outstanding.sentCount} is possible`);
      return;
    }
    const { endpoint, upcalls } = this.owner;
    for (; news > 0 && this.ended === undefined; news--) {
      const frame = this.nextConfirmed();
      if (frame !== null) {
        this.upcallsMade++;
        upcalls.onCompleted(endpoint, this.epoch, frame, DELIVERED);
      } else if (this.byeSaid && !this.byeWaits && this.outstanding.confirmedCount === this.byeNumber) this.owner.byeDelivered = true;
    }
  }

  private nextConfirmed(): Frame | null {
    const { outstanding } = this;
    const frame = outstanding.shift();
    this.writer.usedBytes -= outstanding.lastSize;
    this.receivedByPeerBytes += outstanding.lastSize;
    if (frame !== null) this.outstandingBytes -= frame.header.length + frame.payloadBytes;
    return frame;
  }

  // --- records out

  private hasRoom(bytes: number, record: number, isControl: boolean, windowBytes: number): boolean {
    if (this.outstandingBytes > 0 && this.outstandingBytes + bytes > windowBytes + (isControl ? CONTROL_RESERVE_BYTES : 0)) return false;
    return this.writer.fits(record, isControl || this.outstandingBytes === 0 ? 0 : this.reserveBytes);
  }

  /** The smallest refused frame decides when there is room again; a control frame needs least. */
  private block(bytes: number, record: number, isControl: boolean): void {
    if (isControl && !this.blockedControl) {
      this.blockedControl = true;
      this.blockedBytes = Number.POSITIVE_INFINITY;
    }
    if (isControl === this.blockedControl && bytes < this.blockedBytes) {
      this.blockedBytes = bytes;
      this.blockedRecord = record;
    }
  }

  /** The record just committed gets its number. `taken`: bytes of the ring that are given back with it. */
  private number(frame: Frame | null, taken: number): void {
    this.outstanding.push(frame, taken);
    this.toldCount = this.deliveredCount;
    this.untoldBytes = 0;
    this.tellNow = false;
  }

  /** Probes, answers and BYE, as far as there is room: they use the room that payloads leave. */
  private writeOwn(): void {
    while (this.answers.length > 0 && this.writeRecord(RECORD_PROBE_ANSWER, this.answers[0])) this.answers.shift();
    if (this.probeWaits !== NO_PROBE && this.writeRecord(RECORD_PROBE, this.probeWaits)) this.probeWaits = NO_PROBE;
    if (this.byeWaits && this.writeRecord(RECORD_BYE, 0)) {
      this.byeWaits = false;
      this.byeNumber = this.outstanding.sentCount;
    }
    this.ownWaits = this.byeWaits || this.probeWaits !== NO_PROBE || this.answers.length > 0;
  }

  private writeRecord(kind: number, number: number): boolean {
    const { writer } = this;
    const record = recordBytes(0, 0);
    if (!writer.fits(record, 0)) return false;
    const at = writer.begin(record);
    const w = at >> 2;
    writer.words[w + 1] = 0;
    writer.words[w + 2] = this.deliveredCount;
    writer.words[w + 3] = number;
    this.number(null, writer.commit(at, record, recordWord(kind, 0, 0)));
    this.owner.counters.bytesSent += record;
    this.heldBytes += record;
    return true;
  }

  private publish(): void {
    this.writer.publish();
    this.heldBytes = 0;
    this.ringIfAsleep();
  }

  private tellCount(): void {
    this.toldCount = this.deliveredCount;
    this.untoldBytes = 0;
    this.tellNow = false;
    this.idlePolls = 0;
    Atomics.store(this.words, this.segment.own.deliveredCount, this.deliveredCount);
    this.ringIfAsleep();
  }

  private ringIfAsleep(): void {
    const { words, peerSleepAt } = this;
    if (Atomics.load(words, peerSleepAt) !== 0 && Atomics.exchange(words, peerSleepAt, 0) !== 0)
      this.host.native.eventSignal(this.peerBell);
  }

  private runReads(): void {
    const reason = this.reads.run((op, status) => {
      this.outstandingBytes -= op.bytes;
      // What was permitted when it was tried is not permitted any more: the peer offers no more windows.
      if (status !== DELIVERED) Atomics.store(this.words, this.segment.own.canRead, 2);
      this.upcallsMade++;
      this.owner.upcalls.onOneSidedCompleted(this.owner.endpoint, this.epoch, op, status);
      return this.ended === undefined;
    });
    if (reason !== undefined) this.over({ clean: false, reason });
  }

  /** Now and then: our alive time for the peer, its own for the BML, and the trial of the single copy. */
  private tellAlive(): void {
    const { segment, words, now } = this;
    this.aliveDueAt = now + ALIVE_EVERY_MS;
    words[segment.own.aliveMs] = this.aliveMs;
    segment.doubles[segment.own.receivedBytesF64] = this.receivedBytes;
    this.tryPeer();
    const peerAliveMs = words[segment.peer.aliveMs];
    if (now < this.reportDueAt || peerAliveMs === this.reportedAliveMs) return;
    this.reportDueAt = now + REPORT_EVERY_MS;
    this.reportedAliveMs = peerAliveMs;
    const told = segment.doubles[segment.peer.receivedBytesF64];
    this.upcallsMade++;
    this.owner.upcalls.onReport(this.owner.endpoint, this.epoch, Number.isSafeInteger(told) ? Math.max(0, told) : 0, peerAliveMs >>> 0);
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
    if (this.byeReceived && this.owner.byeDelivered) this.over({ clean: true });
    else this.over({ clean: false, reason: this.stream.failure ?? { kind: 'closed', text: 'the connection is closed' } });
  }

  /** After BYE both ways: once our own is counted nothing is owed, and the count for the peer's stays in the segment. */
  private closeAfterBye(): void {
    if (this.owner.byeDelivered) {
      this.tellCount();
      this.over({ clean: true });
      return;
    }
    if (this.endDueAt === Number.POSITIVE_INFINITY) this.endDueAt = this.now + this.owner.options.endTimeoutMs;
    else if (this.now >= this.endDueAt) this.over({ clean: false, reason: { kind: 'timeout', text: 'the peer did not close after BYE' } });
  }

  private damage(text: string): void {
    this.over({ clean: false, reason: { kind: 'damaged', text } });
  }

  private failed(error: unknown): void {
    if (error instanceof MultirailError && error.code === 'ERR_PROTOCOL') {
      this.damage(error.message);
      return;
    }
    this.damage('the upcall failed');
    throw error;
  }

  private over(end: LinkEnd): void {
    if (this.ended !== undefined) return;
    this.ended = end;
    this.stream.destroy();
  }
}
