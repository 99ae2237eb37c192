// One live rail epoch over a reliable-connected queue pair: records through receive buffers that the peer has posted before, puts and gets
// of registered memory (B6).
//
// One post and one completion carry a small message: its record is copied into a registered buffer and posted; the peer takes it from its
// completion queue, hands it up in place and posts the buffer again. Sends complete here only now and then, to free the send queue's room.
// Only the peer's count means delivery, since the device acknowledges before the peer has seen the message.
//
// Credit: the peer has `buffers` receive buffers for records that are not yet counted, and some more that it may be about to post again. So
// every record finds a buffer, and the receiver-not-ready protocol of the device stays idle.
import { assert } from '../../util/assert.ts';
import type { ByteStream } from '../base/byte-stream.ts';
import type { LinkOwner } from '../base/link.ts';
import { flagsOf, RECORD_DATA, recordComplaint, recordWord } from '../base/record-hdr.ts';
import { COUNT_IDLE_POLLS, POLL_BYTES, POLL_RECORDS, RecordLink } from '../base/record-link.ts';
import type { StreamFramer } from '../base/stream-framer.ts';
import {
  BUSY,
  countOneSided,
  DELIVERED,
  DOWN,
  type Frame,
  HEADER_BYTES_MAX,
  OK,
  type OneSidedOp,
  type RailReason,
  type Registration,
  type SendResult,
} from '../btl.ts';
import type { VerbsPlanDetail } from './address.ts';
import { OneSidedOps, registerWindow } from './one-sided-ops.ts';
import type { LocalPort } from './ports.ts';
import { BufferedPair, POST_BATCH, type VerbsOptions } from './queue-pair.ts';
import type { Rdma } from './rdma.ts';
import { PairSetup, type SetupOwner } from './setup.ts';
import { RECORD_COUNT, RECORD_HEADER_BYTES } from './verbs-hdr.ts';

/** The part of the credit that is kept for records without payload: the count of what comes in must always find room. */
const CONTROL_RECORDS = 16;
/** The peer hears of its records at the latest after so many of them, or so many bytes. */
const COUNT_RECORDS = 16;
const COUNT_BYTES = 128 * 1024;
/** A record is one request. */
const ONE_REQUEST = 1;
/** Requests for puts and gets, besides those for records. */
const ONE_SIDED_REQUESTS = 128;
/** The companion connection says nothing on a live rail but that it has ended. */
const LOOK_AT_STREAM_MS = 1;
/** How long a side that leaves waits for the device to send its last count. */
const DRAIN_MS = 50;

export interface VerbsHost {
  readonly rdma: typeof Rdma;
  readonly verbs: VerbsOptions;
  /** The monotonic clock, for the short wait of a side that leaves. */
  readonly clock: () => number;
  /** For people, in the next progress(). */
  say(text: string, level: 'debug' | 'warn'): void;
  forget(link: VerbsLink): void;
}

export class VerbsLink extends RecordLink<ByteStream> implements SetupOwner {
  readonly port: LocalPort;
  private readonly host: VerbsHost;
  private readonly framer: StreamFramer;
  private readonly buffers: number;

  private readonly pair: BufferedPair;
  private readonly setup: PairSetup;
  private readonly ops: OneSidedOps;

  private beatDueAt = Number.POSITIVE_INFINITY;
  private lookAtStreamAt = 0;
  /** After BYE both ways: the request that carries the last count. */
  private lastRequest = 0;

  constructor(owner: LinkOwner, host: VerbsHost, port: LocalPort, epoch: number, stream: ByteStream, framer: StreamFramer, now: number) {
    super(owner, epoch, stream, 0);
    const detail = owner.endpoint.plan.detail as VerbsPlanDetail;
    const { bufferBytes, buffers } = detail;
    this.host = host;
    this.port = port;
    this.framer = framer;
    this.now = now;
    this.buffers = buffers;
    this.pair = new BufferedPair(host.rdma, host.verbs, port, { buffers, bufferBytes, moreRequests: CONTROL_RECORDS + ONE_SIDED_REQUESTS });
    this.ops = new OneSidedOps(host.rdma, port, this.pair);
    this.setup = new PairSetup(this, this.pair, stream, framer, detail);
    this.setup.begin();
  }

  // --- coming up

  get isOver(): boolean {
    return this.ended !== undefined;
  }

  private get isLive(): boolean {
    return this.setup.state === 'LIVE';
  }
  becameLive(): void {
    this.beatDueAt = this.now + this.host.verbs.beatMs;
    this.flush();
  }

  setupFailed(reason: RailReason): void {
    this.over({ clean: false, reason });
  }

  // --- down-calls

  send(frame: Frame, windowBytes: number): SendResult {
    if (this.ended !== undefined || this.byeSaid) return DOWN;
    const { header, payload, payloadBytes } = frame;
    const headerBytes = header.length;
    const bytes = headerBytes + payloadBytes;
    assert(headerBytes <= HEADER_BYTES_MAX, 'the packet header is too long');
    assert(payloadBytes <= this.payloadBytesMax, 'the payload is too long for this rail');
    if (!this.mayGo(bytes, ONE_REQUEST, payloadBytes === 0, windowBytes)) return BUSY;
    const at = this.beginRecord(recordWord(RECORD_DATA, flagsOf(frame), headerBytes), payloadBytes, 0);
    const { memory } = this.pair;
    let to = at + RECORD_HEADER_BYTES;
    memory.set(header, to);
    to += headerBytes;
    for (let i = 0; i < payload.length; i++) {
      memory.set(payload[i], to);
      to += payload[i].length;
    }
    this.endRecord(frame, at, RECORD_HEADER_BYTES + bytes);
    frame.railFrameNumber = this.outstanding.sentCount;
    this.outstandingBytes += bytes;
    const { counters } = this.owner;
    counters.framesSent++;
    counters.payloadBytesSent += payloadBytes;
    if (!this.heldSince || this.pair.staged >= POST_BATCH) this.publish();
    this.heldSince = true;
    return OK;
  }

  // --- one-sided

  register(memory: readonly Uint8Array[]): Registration | undefined {
    if (this.ended !== undefined) return undefined;
    try {
      return registerWindow(this.host.rdma, this.port, memory);
    } catch (error) {
      // The message then goes in fragments.
      this.host.say(`memory for the peer cannot be registered: ${(error as Error).message}`, 'debug');
      return undefined;
    }
  }

  start(op: OneSidedOp, windowBytes: number): SendResult {
    if (this.ended !== undefined || this.byeSaid) return DOWN;
    const requests = this.ops.cut(op);
    if (typeof requests === 'string') {
      this.damage(requests);
      return DOWN;
    }
    assert(requests.length <= ONE_SIDED_REQUESTS, 'memory in too many pieces for a put or get');
    if (!this.mayGo(op.bytes, requests.length, false, windowBytes)) return BUSY;
    const complaint = this.ops.start(op, requests, () => this.publish());
    if (complaint !== undefined) {
      this.over({ clean: false, reason: { kind: 'error', text: complaint } });
      return DOWN;
    }
    this.outstandingBytes += op.bytes;
    return OK;
  }

  // --- called by the endpoint inside progress()

  /** What has come is known after a look at the completion queue only. */
  isQuiet(): boolean {
    return false;
  }

  poll(now: number, aliveMs: number): number {
    if (this.ended !== undefined) return 0;
    this.now = now;
    this.aliveMs = aliveMs;
    this.upcallsMade = 0;
    const closed = (now >= this.lookAtStreamAt || !this.isLive) && this.lookAtStream();
    if (this.setup.state !== 'SETUP' && this.ended === undefined) this.takeCompletions(closed);
    if (this.ended !== undefined) return this.upcallsMade;
    if (closed) this.streamEnded();
    else if (this.isLive) this.pollRest();
    return this.upcallsMade;
  }

  /** True when the peer has closed it: what its device sent before that has come by now. */
  private lookAtStream(): boolean {
    this.lookAtStreamAt = this.now + LOOK_AT_STREAM_MS;
    return this.setup.look();
  }

  private pollRest(): void {
    if (this.ownWaits) this.writeOwn();
    if (this.owesCount()) this.writeRecord(RECORD_COUNT, 0);
    this.flush();
    if (this.now >= this.beatDueAt) this.beat();
    if (this.byeSaid && this.byeReceived) this.closeAfterBye();
  }

  nextDeadline(windowBytes: number): number {
    if (this.writableNow(windowBytes)) return 0;
    if (this.ended !== undefined || this.pair.hasMore || this.owesCount()) return 0;
    return Math.min(this.beatDueAt, this.endDueAt);
  }

  /** Nobody polls from here on: the completion channel must tell. */
  sleep(): void {
    if (this.ended !== undefined) return;
    if (this.untoldBytes > 0 && this.isLive) this.writeRecord(RECORD_COUNT, 0);
    this.flush();
    this.pair.arm();
  }

  hasNews(): boolean {
    return this.ended !== undefined || this.pair.hasMore;
  }

  /** Why the peer cannot reach this queue pair any more, or undefined. */
  get lostAddress(): string | undefined {
    return this.port.complaint(this.pair.address);
  }

  /** The device says that this queue pair is beyond repair. */
  failedAt(queuePair: number, text: string): void {
    if (this.ended === undefined && this.pair.id === queuePair) this.over({ clean: false, reason: { kind: 'error', text } });
  }

  // --- completions in

  private takeCompletions(all: boolean): void {
    const before = this.receivedBytes;
    const { pair } = this;
    const { upcalls } = this.owner;
    let records = 0;
    try {
      while (this.ended === undefined && pair.next()) {
        if (pair.status !== this.host.rdma.STATUS.SUCCESS) this.requestFailed(pair.status);
        else if (pair.isReceive) {
          this.readRecord(pair.buffer, pair.bytes);
          records++;
        } else this.completeOps();
        if (all) continue;
        if (records >= POLL_RECORDS || this.receivedBytes - before >= POLL_BYTES || upcalls.satisfied === true) break;
      }
    } catch (error) {
      this.failed(error);
    }
    this.idlePolls = records === 0 ? this.idlePolls + 1 : 0;
    this.owner.counters.bytesReceived += this.receivedBytes - before;
  }

  private readRecord(buffer: number, bytes: number): void {
    const at = this.pair.receiveAt(buffer);
    const w = at >> 2;
    const { memory, words, doubles } = this.pair;
    const word = words[w];
    const kind = word & 0xff;
    const headerBytes = word >>> 16;
    const payloadBytes = words[w + 1];
    const complaint = recordComplaint(word, payloadBytes, RECORD_COUNT, HEADER_BYTES_MAX, this.payloadBytesMax);
    if (complaint !== undefined || bytes !== RECORD_HEADER_BYTES + headerBytes + payloadBytes) {
      this.damage(complaint ?? `a record of ${bytes} bytes where its header says ${RECORD_HEADER_BYTES + headerBytes + payloadBytes}`);
      return;
    }
    this.receivedBytes += bytes;
    this.takeCount(words[w + 2]);
    if (this.ended === undefined) this.report(doubles[(w + 6) >> 1], words[w + 4]);
    if (this.ended !== undefined) return;
    if (kind === RECORD_DATA) {
      const header = at + RECORD_HEADER_BYTES;
      const payload = header + headerBytes;
      this.handUp(memory.subarray(header, payload), memory.subarray(payload, payload + payloadBytes), (word >> 8) & 0xff);
      this.untoldBytes += bytes;
    } else if (kind !== RECORD_COUNT) this.takeOwn(kind, words[w + 3] >>> 0);
    if (this.ended !== undefined) return;
    this.deliveredCount = (this.deliveredCount + 1) | 0;
    this.broken(this.pair.repost(buffer));
  }

  /** A request completed, and with it all before it: those puts and gets are done. */
  private completeOps(): void {
    const { endpoint, upcalls } = this.owner;
    for (let op = this.ops.takeDone(); op !== undefined; op = this.ended === undefined ? this.ops.takeDone() : undefined) {
      this.outstandingBytes -= op.bytes;
      this.countBytes(op);
      this.upcallsMade++;
      upcalls.onOneSidedCompleted(endpoint, this.epoch, op, DELIVERED);
    }
  }

  private countBytes(op: OneSidedOp): void {
    if (op.kind === 'put') this.receivedByPeerBytes += op.bytes;
    countOneSided(this.owner.counters, op);
  }

  private requestFailed(status: number): void {
    const { STATUS, nameOf } = this.host.rdma;
    // The peer needs no more than what it has: it has gone in good order.
    if (this.byeReceived && this.owner.byeDelivered) {
      this.over({ clean: true });
      return;
    }
    const { timeout, retryCount } = this.host.verbs;
    const error = nameOf(STATUS, status);
    const { lostAddress } = this;
    let reason: RailReason = { kind: 'error', text: `the queue pair failed: ${error}` };
    if (lostAddress !== undefined) reason = { kind: 'carrier', text: lostAddress };
    else if (status === STATUS.RETRY_EXC_ERR) {
      const text = `the peer's device did not acknowledge within ${retryCount + 1} times ${Math.round(0.004096 * 2 ** timeout)} ms`;
      reason = { kind: 'silent', text };
    } else if (status === STATUS.RNR_RETRY_EXC_ERR) reason.text = `the peer had no receive buffer where it had given credit: ${error}`;
    else if (status === STATUS.WR_FLUSH_ERR) reason.text = `the queue pair is in error, and no request of this side has failed: ${error}`;
    else if (status === STATUS.REM_ACCESS_ERR) reason.text = `the peer's memory is not registered any more: ${error}`;
    this.over({ clean: false, reason });
  }

  // --- requests out

  /** For records there must be credit too. */
  protected hasRoom(requests: number, isControl: boolean): boolean {
    return this.outstanding.size < this.buffers - (isControl ? CONTROL_RECORDS / 2 : CONTROL_RECORDS) && this.hasRequests(requests);
  }

  private hasRequests(requests: number): boolean {
    // What is sent before the peer can receive waits unposted.
    return this.isLive ? this.pair.hasRoom(requests) : this.pair.canStage(requests);
  }

  protected writeRecord(kind: number, number: number): boolean {
    if (this.ended !== undefined || this.outstanding.size >= this.buffers || !this.hasRequests(1)) return false;
    this.endRecord(null, this.beginRecord(recordWord(kind, 0, 0), 0, number), RECORD_HEADER_BYTES);
    if (this.pair.staged >= POST_BATCH) this.publish();
    return true;
  }

  /** Where the buffer of the next record begins, with its header written. */
  private beginRecord(word: number, payloadBytes: number, number: number): number {
    const at = this.pair.sendAt(this.outstanding.sentCount + 1);
    const w = at >> 2;
    const { words, doubles } = this.pair;
    words[w] = word;
    words[w + 1] = payloadBytes;
    words[w + 2] = this.deliveredCount;
    words[w + 3] = number;
    words[w + 4] = this.aliveMs;
    words[w + 5] = 0;
    doubles[(w + 6) >> 1] = this.receivedBytes;
    return at;
  }

  private endRecord(frame: Frame | null, at: number, bytes: number): void {
    this.numbered(frame, bytes);
    this.owner.counters.bytesSent += bytes;
    this.pair.stageSend(at, bytes);
  }

  /** What is sent before the peer can receive waits. */
  protected publish(): void {
    if (this.pair.staged === 0 || !this.isLive) return;
    this.beatDueAt = this.now + this.host.verbs.beatMs;
    this.broken(this.pair.post());
  }

  private owesCount(): boolean {
    const untold = (this.deliveredCount - this.toldCount) | 0;
    if (untold === 0 || !this.isLive) return false;
    if (this.tellNow || untold >= COUNT_RECORDS || this.untoldBytes >= COUNT_BYTES) return true;
    // Counts alone are not answered by counts, or they would never end.
    return this.untoldBytes > 0 && this.idlePolls >= COUNT_IDLE_POLLS;
  }

  /** An idle rail is tried by a write of nothing, which the peer's device acknowledges without its process. */
  private beat(): void {
    this.beatDueAt = this.now + this.host.verbs.beatMs;
    if (this.pair.isAwaiting || !this.hasRequests(1)) return;
    this.pair.stageNothing();
    this.publish();
  }

  // --- the end

  protected takeOp(): OneSidedOp | undefined {
    return this.ops.take();
  }

  /** The count of the peer's BYE goes in a request that completes, so that it is known when it has gone. */
  protected leave(mayWait: boolean): boolean {
    const { pair } = this;
    if (this.lastRequest === 0) {
      pair.signalNext();
      if (this.writeRecord(RECORD_COUNT, 0)) this.lastRequest = pair.lastRequest;
      this.flush();
    }
    if (mayWait) this.drain();
    return this.lastRequest > 0 && pair.retired >= this.lastRequest;
  }

  /** The queue pair must not be destroyed with the last count still in it: the peer would take the rail for lost. */
  private drain(): void {
    const { clock, rdma } = this.host;
    const until = clock() + DRAIN_MS;
    while (this.pair.retired < this.lastRequest && clock() < until) {
      // Nothing is handed up any more; a failure means that the peer has left too.
      if (this.pair.next() && this.pair.status !== rdma.STATUS.SUCCESS) return;
    }
  }

  /** The device refused something: `complaint` says what, if it did. */
  private broken(complaint: string | undefined): void {
    if (complaint !== undefined) this.over({ clean: false, reason: { kind: 'error', text: complaint } });
  }

  protected stop(): void {
    for (const complaint of this.pair.destroy()) this.host.say(complaint, 'warn');
    this.framer.stop();
    this.host.forget(this);
  }
}
