// One live rail epoch whose frames go as records into memory that the peer has set aside: a shared ring (sm) or receive buffers (verbs). It
// holds what is the same for both: what may be sent (B5), numbers and counts (B2), sinks (B4), probes, BYE (B9), the end (B3); the hooks at
// the end are for the transport. Every record counts, including those of the rail itself. The reader raises its count after the upcall has
// returned, and sends the count with its next record or alone. This is the hot path of sm: no object, closure or view is made per record.
import { MultirailError } from '../../errors.ts';
import { EMPTY_BYTES } from '../../util/iov.ts';
import { WIDE_ZERO } from '../../util/wide-zero.ts';
import { DELIVERED, type Frame, fitsWindow, IN_DOUBT, type OneSidedOp, type RailReason, type SendResult, type Sink } from '../btl.ts';
import type { ByteStream } from './byte-stream.ts';
import { type Link, type LinkEnd, type LinkOwner, tellEnd } from './link.ts';
import { Outstanding } from './outstanding-records.ts';
import { FLAG_PLACED, FLAG_PROMPT, RECORD_BYE, RECORD_PROBE, RECORD_PROBE_ANSWER } from './record-hdr.ts';
import { fillSink } from './sink.ts';

/** Handed up in one poll at most, so that one rail does not starve the others. */
export const POLL_RECORDS = 256;
export const POLL_BYTES = 1024 * 1024;
/** Polls that found nothing before the count goes without a record: an answer that is about to leave carries it for nothing. */
export const COUNT_IDLE_POLLS = 3;
/** Answers that are owed: of more probes only the last count. */
const ANSWERS_MAX = 16;
const REPORT_EVERY_MS = 50;
const NO_PROBE = -1;

export abstract class RecordLink<Stream extends ByteStream> implements Link {
  readonly epoch: number;
  readonly stream: Stream;
  outstandingBytes = 0;
  receivedByPeerBytes = WIDE_ZERO;
  protected readonly owner: LinkOwner;
  protected readonly payloadBytesMax: number;

  // Sending.
  protected readonly outstanding: Outstanding;
  protected byeSaid = false;
  /** A probe, an answer or the BYE waits to be written. */
  protected ownWaits = false;
  /** Something was sent since the last flush(): the first one does not wait for the next. */
  protected heldSince = false;
  protected blockedBytes = Number.POSITIVE_INFINITY;
  private blockedRoom = 0;
  private blockedControl = false;
  private byeNumber = 0;
  private byeWaits = false;
  private probeWaits = NO_PROBE;
  private readonly answers: number[] = [];

  // Receiving.
  protected deliveredCount: number;
  protected toldCount: number;
  /** Bytes of frames that are handed up and not told. */
  protected untoldBytes = 0;
  protected idlePolls = 0;
  /** The count must not wait for a record to carry it. */
  protected tellNow = false;
  protected byeReceived = false;
  protected receivedBytes = WIDE_ZERO;
  private openSink: Sink | null = null;

  protected upcallsMade = 0;
  protected now = 0;
  protected aliveMs = 0;
  protected ended: LinkEnd | undefined = undefined;
  protected endDueAt = Number.POSITIVE_INFINITY;
  private reportDueAt = 0;
  private reportedAliveMs = 0;

  /** `startCount`: of the records before the first one, equal at both ends. */
  constructor(owner: LinkOwner, epoch: number, stream: Stream, startCount: number) {
    this.owner = owner;
    this.epoch = epoch;
    this.stream = stream;
    this.payloadBytesMax = owner.endpoint.plan.attributes.frameBytesMax;
    this.outstanding = new Outstanding(startCount);
    this.deliveredCount = startCount;
    this.toldCount = startCount;
  }

  get end(): LinkEnd | undefined {
    return this.ended;
  }

  // --- down-calls

  /** Whole in each transport: where shared parts of it call hooks, V8 does not compile it as one piece, and a record of sm costs a tenth more. */
  abstract send(frame: Frame, windowBytes: number): SendResult;

  flush(): void {
    this.heldSince = false;
    if (this.ended === undefined) this.publish();
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

  /** What send() accepted was copied there and then. */
  letGo(): boolean {
    return true;
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
    this.leave(true);
    this.over({ clean: true });
    return true;
  }

  // --- called by the endpoint inside progress()

  abstract isQuiet(now: number, aliveMs: number): boolean;
  abstract poll(now: number, aliveMs: number): number;
  abstract nextDeadline(windowBytes: number): number;

  takeWritable(windowBytes: number): boolean {
    if (!this.writableNow(windowBytes)) return false;
    this.blockedBytes = Number.POSITIVE_INFINITY;
    this.blockedControl = false;
    return true;
  }

  writableNow(windowBytes: number): boolean {
    if (this.blockedBytes === Number.POSITIVE_INFINITY || this.ended !== undefined || this.byeSaid) return false;
    return this.fits(this.blockedBytes, this.blockedRoom, this.blockedControl, windowBytes);
  }

  close(): number {
    const { endpoint, upcalls } = this.owner;
    const end = this.ended as LinkEnd;
    let made = tellEnd(this.owner, this.epoch, end, this.openSink);
    this.openSink = null;
    const status = end.clean ? DELIVERED : IN_DOUBT;
    while (this.outstanding.size > 0) {
      const frame = this.nextConfirmed();
      if (frame === null) {
        if (end.clean) this.noteBye();
        continue;
      }
      upcalls.onCompleted(endpoint, this.epoch, frame, status);
      made++;
    }
    for (let op = this.takeOp(); op !== undefined; op = this.takeOp()) {
      this.outstandingBytes -= op.bytes;
      upcalls.onOneSidedCompleted(endpoint, this.epoch, op, IN_DOUBT);
      made++;
    }
    return made;
  }

  // --- room

  /** Whether that may be sent now; when not, writableNow() tells when it may. `room` is what hasRoom() understands. */
  protected mayGo(bytes: number, room: number, isControl: boolean, windowBytes: number): boolean {
    if (this.fits(bytes, room, isControl, windowBytes)) return true;
    // The smallest of what was refused decides when there is room again; a control frame needs least.
    if (isControl && !this.blockedControl) {
      this.blockedControl = true;
      this.blockedBytes = Number.POSITIVE_INFINITY;
    }
    if (isControl === this.blockedControl && bytes < this.blockedBytes) {
      this.blockedBytes = bytes;
      this.blockedRoom = room;
    }
    return false;
  }

  private fits(bytes: number, room: number, isControl: boolean, windowBytes: number): boolean {
    return fitsWindow(this.outstandingBytes, bytes, !isControl, windowBytes) && this.hasRoom(room, isControl);
  }

  // --- records out

  /** The record just written gets its number, and it carries the count. `frame` null: one of the rail's own. */
  protected numbered(frame: Frame | null, taken: number): void {
    this.outstanding.push(frame, taken);
    this.countTold();
  }

  protected countTold(): void {
    this.toldCount = this.deliveredCount;
    this.untoldBytes = 0;
    this.tellNow = false;
  }

  /** Probes, answers and BYE, as far as there is room: they use the room that payloads leave. */
  protected writeOwn(): void {
    const { answers } = this;
    while (answers.length > 0 && this.writeRecord(RECORD_PROBE_ANSWER, answers[0])) answers.shift();
    if (this.probeWaits !== NO_PROBE && this.writeRecord(RECORD_PROBE, this.probeWaits)) this.probeWaits = NO_PROBE;
    if (this.byeWaits && this.writeRecord(RECORD_BYE, 0)) {
      this.byeWaits = false;
      this.byeNumber = this.outstanding.sentCount;
    }
    this.ownWaits = this.byeWaits || this.probeWaits !== NO_PROBE || answers.length > 0;
  }

  // --- records in

  /** The peer has handed up our records up to this number. An older count than one that we know is stale, not wrong. */
  protected takeCount(count: number): void {
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
      } else this.noteBye();
    }
  }

  /** The oldest of our records is counted. */
  protected nextConfirmed(): Frame | null {
    const { outstanding } = this;
    const frame = outstanding.shift();
    this.receivedByPeerBytes += outstanding.lastSize;
    if (frame !== null) this.outstandingBytes -= frame.header.length + frame.payloadBytes;
    return frame;
  }

  /** A record of our own is counted: perhaps the BYE. */
  private noteBye(): void {
    if (this.byeSaid && !this.byeWaits && this.outstanding.confirmedCount === this.byeNumber) this.owner.byeDelivered = true;
  }

  /** Hands up a frame. An upcall may end the epoch: then the frame is not counted. */
  protected handUp(header: Uint8Array, payload: Uint8Array, flags: number): void {
    if (this.byeReceived) {
      this.damage('a frame after BYE');
      return;
    }
    const { endpoint, upcalls, counters } = this.owner;
    if ((flags & FLAG_PROMPT) !== 0) this.tellNow = true;
    this.upcallsMade++;
    if ((flags & FLAG_PLACED) === 0) upcalls.onFrame(endpoint, this.epoch, header, payload, null);
    else {
      this.upcallsMade++;
      const sink = upcalls.sinkFor(endpoint, this.epoch, header, payload.length);
      this.openSink = sink;
      if (this.ended !== undefined) return;
      fillSink(sink, payload);
      this.openSink = null;
      upcalls.onFrame(endpoint, this.epoch, header, EMPTY_BYTES, sink);
    }
    counters.framesReceived++;
    counters.payloadBytesReceived += payload.length;
  }

  /** Takes a record of the peer's rail: PROBE, its answer, BYE. */
  protected takeOwn(kind: number, id: number): void {
    const { endpoint, upcalls } = this.owner;
    switch (kind) {
      case RECORD_PROBE:
        if (this.answers.length >= ANSWERS_MAX) this.answers.shift();
        this.answers.push(id);
        this.ownWaits = true;
        return;
      case RECORD_PROBE_ANSWER:
        this.upcallsMade++;
        upcalls.onProbeAnswered(endpoint, this.epoch, id);
        return;
      case RECORD_BYE:
        if (this.byeReceived) {
          this.damage('a second BYE');
          return;
        }
        this.byeReceived = true;
        this.tellNow = true;
        this.upcallsMade++;
        upcalls.onBye(endpoint, this.epoch);
    }
  }

  /** Hands on, now and then, what the peer tells: bytes of this epoch that it has received, and its alive time modulo 2^32. */
  protected report(receivedBytes: number, peerAliveMs: number): void {
    if (this.now < this.reportDueAt || peerAliveMs === this.reportedAliveMs) return;
    this.reportDueAt = this.now + REPORT_EVERY_MS;
    this.reportedAliveMs = peerAliveMs;
    const told = Number.isSafeInteger(receivedBytes) ? Math.max(0, receivedBytes) : 0;
    this.upcallsMade++;
    this.owner.upcalls.onReport(this.owner.endpoint, this.epoch, told, peerAliveMs >>> 0);
  }

  // --- the end

  /** After BYE both ways: once our own is counted nothing is owed but the count of the peer's. */
  protected closeAfterBye(): void {
    if (this.owner.byeDelivered) {
      if (this.leave(false)) this.over({ clean: true });
      return;
    }
    if (this.endDueAt === Number.POSITIVE_INFINITY) this.endDueAt = this.now + this.owner.options.endTimeoutMs;
    else if (this.now >= this.endDueAt) this.over({ clean: false, reason: { kind: 'timeout', text: 'the peer did not close after BYE' } });
  }

  /** The connection has ended, and everything that came before its end was read. */
  protected streamEnded(): void {
    if (this.byeReceived && this.owner.byeDelivered) this.over({ clean: true });
    else this.over({ clean: false, reason: this.stream.failure ?? { kind: 'closed', text: 'the connection is closed' } });
  }

  protected damage(text: string): void {
    this.over({ clean: false, reason: { kind: 'damaged', text } });
  }

  /** An upcall threw. */
  protected failed(error: unknown): void {
    if (error instanceof MultirailError && error.code === 'ERR_PROTOCOL') {
      this.damage(error.message);
      return;
    }
    this.damage('the upcall failed');
    throw error;
  }

  /** Synchronous (B6): when this returns no byte of the epoch can land. */
  protected over(end: LinkEnd): void {
    if (this.ended !== undefined) return;
    this.ended = end;
    this.stop();
    this.stream.destroy();
  }

  // --- hooks

  /** There is so much room; a control frame may use the reserve. */
  protected abstract hasRoom(room: number, isControl: boolean): boolean;
  /** Writes a record without payload and calls numbered(); false when there is no room for it. */
  protected abstract writeRecord(kind: number, number: number): boolean;
  /** What was written, if anything, goes to the peer. */
  protected abstract publish(): void;
  /** The oldest put or get under way, taken out. */
  protected abstract takeOp(): OneSidedOp | undefined;
  /** After BYE both ways: tells the last count; true once it has gone. `mayWait`: there is no other time. */
  protected abstract leave(mayWait: boolean): boolean;
  /** The epoch is over: no byte of it may land after this. */
  protected abstract stop(): void;
}
