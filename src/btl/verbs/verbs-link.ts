// One live rail epoch over a reliable-connected queue pair: records through receive buffers that the peer has posted before, the count
// of what was handed up (B2) in every record, puts and gets of registered memory (B6), BYE (B9).
// May import: btl.ts, base (types, outstanding-records, sink), errors, util, node-rdma (types), ports (types), queue-pair,
// setup, one-sided-ops, verbs-hdr.
//
// One post and one completion carry a small message: its record is copied into a registered buffer and posted; the peer takes it from
// its completion queue, hands it up in place and posts the buffer again. Sends complete here only now and then, to give the send
// queue's room back: that a message is delivered is told by the peer's count, since the device acknowledges before the peer has looked.
//
// Credit: the peer has `buffers` receive buffers for what is not yet counted, and some more that it may be about to post again. So no
// record ever finds none, and the receiver-not-ready protocol of the device stays idle.
import { MultirailError } from '../../errors.ts';
import { assert } from '../../util/assert.ts';
import type { ByteStream } from '../base/byte-stream.ts';
import type { Link, LinkEnd, LinkOwner } from '../base/link.ts';
import { Outstanding } from '../base/outstanding-records.ts';
import { fillSink } from '../base/sink.ts';
import type { StreamFramer } from '../base/stream-framer.ts';
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
import type { VerbsPlanDetail } from './address.ts';
import { OneSidedOps, registerWindow } from './one-sided-ops.ts';
import type { LocalPort } from './ports.ts';
import { BufferedPair, POST_BATCH, type VerbsOptions } from './queue-pair.ts';
import type { Rdma } from './rdma.ts';
import { PairSetup, type SetupOwner } from './setup.ts';
import {
  FLAG_PLACED,
  FLAG_PROMPT,
  RECORD_BYE,
  RECORD_COUNT,
  RECORD_DATA,
  RECORD_HEADER_BYTES,
  RECORD_PROBE,
  RECORD_PROBE_ANSWER,
} from './verbs-hdr.ts';

/** Of the credit, kept for records without payload: the count of what comes in must always find room. */
const CONTROL_RECORDS = 16;
/** The peer hears of its records at the latest after so many of them, or so many bytes. */
const COUNT_RECORDS = 16;
const COUNT_BYTES = 128 * 1024;
/** Polls that found nothing before the count goes without a record: an answer that is about to leave carries it for nothing. */
const COUNT_IDLE_POLLS = 3;
/** Requests for puts and gets, beside those for records. */
const ONE_SIDED_REQUESTS = 128;
const POLL_RECORDS = 256;
const POLL_BYTES = 1024 * 1024;
const ANSWERS_MAX = 16;
/** The companion connection says nothing on a live rail but that it has ended. */
const LOOK_AT_STREAM_MS = 1;
const REPORT_EVERY_MS = 50;
/** How long a side that leaves waits for the device to send its last count. */
const DRAIN_MS = 50;
const NO_BYTES = new Uint8Array(0);
const NO_PROBE = -1;

export interface VerbsHost {
  readonly rdma: typeof Rdma;
  readonly verbs: VerbsOptions;
  /** The monotonic clock, for the short wait of a side that leaves. */
  readonly clock: () => number;
  /** For people, in the next progress(). */
  say(text: string, level: 'debug' | 'warn'): void;
  forget(link: VerbsLink): void;
}

export class VerbsLink implements Link, SetupOwner {
  readonly epoch: number;
  readonly stream: ByteStream;
  readonly port: LocalPort;
  outstandingBytes = 0;
  receivedByPeerBytes = 0;
  private readonly owner: LinkOwner;
  private readonly host: VerbsHost;
  private readonly framer: StreamFramer;
  private readonly buffers: number;
  private readonly payloadBytesMax: number;

  private readonly pair: BufferedPair;
  private readonly setup: PairSetup;

  // Sending.
  private readonly outstanding = new Outstanding(0);
  private heldSince = false;
  private blockedBytes = Number.POSITIVE_INFINITY;
  private blockedRequests = 1;
  private blockedControl = false;
  private byeSaid = false;
  private byeNumber = 0;
  private byeWaits = false;
  private probeWaits = NO_PROBE;
  private answers: number[] = [];
  private ownWaits = false;
  private beatDueAt = Number.POSITIVE_INFINITY;
  private readonly ops: OneSidedOps;

  // Receiving.
  private deliveredCount = 0;
  private toldCount = 0;
  private untoldBytes = 0;
  private untoldData = false;
  private idlePolls = 0;
  private tellNow = false;
  private byeReceived = false;
  private receivedBytes = 0;
  private openSink: Sink | null = null;

  private upcallsMade = 0;
  private now = 0;
  private aliveMs = 0;
  private lookAtStreamAt = 0;
  private reportDueAt = 0;
  private reportedAliveMs = 0;
  private ended: LinkEnd | undefined;
  private endDueAt = Number.POSITIVE_INFINITY;
  /** After BYE both ways: the request that carries the last count. */
  private lastRequest = 0;

  constructor(owner: LinkOwner, host: VerbsHost, port: LocalPort, epoch: number, stream: ByteStream, framer: StreamFramer, now: number) {
    const { plan } = owner.endpoint;
    const { bufferBytes, buffers } = plan.detail as VerbsPlanDetail;
    this.owner = owner;
    this.host = host;
    this.port = port;
    this.epoch = epoch;
    this.stream = stream;
    this.framer = framer;
    this.now = now;
    this.buffers = buffers;
    this.payloadBytesMax = plan.attributes.frameBytesMax;
    this.pair = new BufferedPair(host.rdma, host.verbs, port, { buffers, bufferBytes, moreRequests: CONTROL_RECORDS + ONE_SIDED_REQUESTS });
    this.ops = new OneSidedOps(host.rdma, port, this.pair);
    this.setup = new PairSetup(this, this.pair, stream, framer, plan.detail as VerbsPlanDetail);
    this.setup.begin();
  }

  get end(): LinkEnd | undefined {
    return this.ended;
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
    if (!this.hasRoom(bytes, 1, payloadBytes === 0, windowBytes)) {
      this.block(bytes, 1, payloadBytes === 0);
      return BUSY;
    }
    const flags = (frame.placed ? FLAG_PLACED : 0) | (frame.prompt ? FLAG_PROMPT : 0);
    const at = this.beginRecord(RECORD_DATA, flags, headerBytes, payloadBytes, 0);
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
    if (!this.heldSince || this.pair.staged >= POST_BATCH) this.postStaged();
    this.heldSince = true;
    return OK;
  }

  flush(): void {
    this.heldSince = false;
    if (this.ended === undefined && this.pair.staged > 0) this.postStaged();
  }

  probe(probeId: number): void {
    if (this.ended !== undefined || this.byeSaid) return;
    this.probeWaits = probeId | 0;
    this.ownWaits = true;
    this.writeOwn();
  }

  bye(): void {
    if (this.ended !== undefined || this.byeSaid) return;
    this.byeSaid = true;
    this.byeWaits = true;
    this.ownWaits = true;
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
    this.beginLeaving();
    const { clock } = this.host;
    const until = clock() + DRAIN_MS;
    // The queue pair must not be destroyed with the last count still in it: the peer would take the rail for lost.
    while (this.pair.retired < this.lastRequest && clock() < until) {
      // Nothing is handed up any more; a failure means that the peer has left too.
      if (this.pair.next() && this.pair.status !== this.host.rdma.STATUS.SUCCESS) break;
    }
    if (this.ended === undefined) this.over({ clean: true });
    return true;
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
    if (!this.hasRoom(op.bytes, requests.length, false, windowBytes)) {
      this.block(op.bytes, requests.length, false);
      return BUSY;
    }
    const complaint = this.ops.start(op, requests, () => this.postStaged());
    if (complaint !== undefined) {
      this.over({ clean: false, reason: { kind: 'error', text: complaint } });
      return DOWN;
    }
    this.outstandingBytes += op.bytes;
    return OK;
  }

  // --- called by the endpoint inside progress()

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

  takeWritable(windowBytes: number): boolean {
    if (!this.writableNow(windowBytes)) return false;
    this.blockedBytes = Number.POSITIVE_INFINITY;
    this.blockedControl = false;
    return true;
  }

  writableNow(windowBytes: number): boolean {
    if (this.blockedBytes === Number.POSITIVE_INFINITY || this.ended !== undefined || this.byeSaid) return false;
    return this.hasRoom(this.blockedBytes, this.blockedRequests, this.blockedControl, windowBytes);
  }

  nextDeadline(): number {
    if (this.ended !== undefined || this.pair.hasMore || this.owesCount()) return 0;
    return Math.min(this.beatDueAt, this.endDueAt);
  }

  /** Nobody polls from here on: the completion channel must tell. */
  sleep(): void {
    if (this.ended !== undefined) return;
    if (this.untoldData && this.isLive) this.writeRecord(RECORD_COUNT, 0);
    this.flush();
    this.pair.arm();
  }

  hasNews(): boolean {
    return this.ended !== undefined || this.pair.hasMore;
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
      if (frame === null) continue;
      upcalls.onCompleted(endpoint, this.epoch, frame, status);
      made++;
    }
    for (let op = this.ops.take(); op !== undefined; op = this.ops.take()) {
      this.outstandingBytes -= op.bytes;
      upcalls.onOneSidedCompleted(endpoint, this.epoch, op, IN_DOUBT);
      made++;
    }
    return made;
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
    const { words } = this.pair;
    const kind = words[w] & 0xff;
    const flags = (words[w] >> 8) & 0xff;
    const headerBytes = words[w] >>> 16;
    const payloadBytes = words[w + 1] >>> 0;
    if (bytes !== RECORD_HEADER_BYTES + headerBytes + payloadBytes) {
      this.damage(`a record of ${bytes} bytes where its header says ${RECORD_HEADER_BYTES + headerBytes + payloadBytes}`);
      return;
    }
    this.receivedBytes += bytes;
    this.takeCount(words[w + 2]);
    if (this.ended !== undefined) return;
    this.report(w);
    if (kind === RECORD_DATA) {
      this.readData(at + RECORD_HEADER_BYTES, headerBytes, payloadBytes, flags);
      this.untoldData = true;
      this.untoldBytes += bytes;
    } else this.readOwn(kind, words[w + 3] >>> 0);
    if (this.ended !== undefined) return;
    this.deliveredCount = (this.deliveredCount + 1) | 0;
    this.broken(this.pair.repost(buffer));
  }

  private readData(at: number, headerBytes: number, payloadBytes: number, flags: number): void {
    const { endpoint, upcalls, counters } = this.owner;
    const { memory } = this.pair;
    const header = memory.subarray(at, at + headerBytes);
    const payload = memory.subarray(at + headerBytes, at + headerBytes + payloadBytes);
    this.upcallsMade++;
    if ((flags & FLAG_PROMPT) !== 0) this.tellNow = true;
    if ((flags & FLAG_PLACED) === 0) upcalls.onFrame(endpoint, this.epoch, header, payload, null);
    else {
      this.upcallsMade++;
      const sink = upcalls.sinkFor(endpoint, this.epoch, header, payloadBytes);
      this.openSink = sink;
      if (this.ended !== undefined) return;
      fillSink(sink, payload);
      this.openSink = null;
      upcalls.onFrame(endpoint, this.epoch, header, NO_BYTES, sink);
    }
    counters.framesReceived++;
    counters.payloadBytesReceived += payloadBytes;
  }

  private readOwn(kind: number, id: number): void {
    const { endpoint, upcalls } = this.owner;
    switch (kind) {
      case RECORD_COUNT:
        return;
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
        this.byeReceived = true;
        this.tellNow = true;
        this.upcallsMade++;
        upcalls.onBye(endpoint, this.epoch);
        return;
      default:
        this.damage(`a record of kind ${kind}`);
    }
  }

  private report(w: number): void {
    const peerAliveMs = this.pair.words[w + 4];
    if (this.now < this.reportDueAt || peerAliveMs === this.reportedAliveMs) return;
    this.reportDueAt = this.now + REPORT_EVERY_MS;
    this.reportedAliveMs = peerAliveMs;
    const told = this.pair.doubles[(w + 6) >> 1];
    this.upcallsMade++;
    this.owner.upcalls.onReport(this.owner.endpoint, this.epoch, Number.isSafeInteger(told) ? Math.max(0, told) : 0, peerAliveMs >>> 0);
  }

  /** The peer has handed up our records up to this number. */
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
    this.receivedByPeerBytes += outstanding.lastSize;
    if (frame !== null) this.outstandingBytes -= frame.header.length + frame.payloadBytes;
    return frame;
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

  private countBytes({ kind, bytes }: OneSidedOp): void {
    const { counters } = this.owner;
    if (kind === 'put') {
      this.receivedByPeerBytes += bytes;
      counters.bytesSent += bytes;
      counters.payloadBytesSent += bytes;
    } else {
      counters.bytesReceived += bytes;
      counters.payloadBytesReceived += bytes;
    }
  }

  private requestFailed(status: number): void {
    const { STATUS, nameOf } = this.host.rdma;
    // The peer needs no more than what it has: it has gone in good order.
    if (this.byeReceived && this.owner.byeDelivered) {
      this.over({ clean: true });
      return;
    }
    const { timeout, retryCount } = this.host.verbs;
    if (status === STATUS.RETRY_EXC_ERR) {
      const text = `the peer's device did not acknowledge within ${retryCount + 1} times ${Math.round(0.004096 * 2 ** timeout)} ms`;
      this.over({ clean: false, reason: { kind: 'silent', text } });
    } else this.over({ clean: false, reason: { kind: 'error', text: `the queue pair failed: ${nameOf(STATUS, status)}` } });
  }

  // --- requests out

  private hasRoom(bytes: number, requests: number, isControl: boolean, windowBytes: number): boolean {
    if (this.outstandingBytes > 0 && this.outstandingBytes + bytes > windowBytes + (isControl ? CONTROL_RESERVE_BYTES : 0)) return false;
    if (this.outstanding.size >= this.buffers - (isControl ? CONTROL_RECORDS / 2 : CONTROL_RECORDS)) return false;
    return this.hasRequests(requests);
  }

  private hasRequests(requests: number): boolean {
    // What is sent before the peer can receive waits unposted.
    return this.isLive ? this.pair.hasRoom(requests) : this.pair.canStage(requests);
  }

  /** The smallest refused frame decides when there is room again; a control frame needs least. */
  private block(bytes: number, requests: number, isControl: boolean): void {
    if (isControl && !this.blockedControl) {
      this.blockedControl = true;
      this.blockedBytes = Number.POSITIVE_INFINITY;
    }
    if (isControl !== this.blockedControl || bytes >= this.blockedBytes) return;
    this.blockedBytes = bytes;
    this.blockedRequests = requests;
  }

  /** Offset of the buffer of the next record, with its header written. */
  private beginRecord(kind: number, flags: number, headerBytes: number, payloadBytes: number, number: number): number {
    const at = this.pair.sendAt(this.outstanding.sentCount + 1);
    const w = at >> 2;
    const { words, doubles } = this.pair;
    words[w] = kind | (flags << 8) | (headerBytes << 16);
    words[w + 1] = payloadBytes;
    words[w + 2] = this.deliveredCount;
    words[w + 3] = number;
    words[w + 4] = this.aliveMs;
    words[w + 5] = 0;
    doubles[(w + 6) >> 1] = this.receivedBytes;
    return at;
  }

  private endRecord(frame: Frame | null, at: number, bytes: number): void {
    this.outstanding.push(frame, bytes);
    this.toldCount = this.deliveredCount;
    this.untoldBytes = 0;
    this.untoldData = false;
    this.tellNow = false;
    this.owner.counters.bytesSent += bytes;
    this.pair.stageSend(at, bytes);
  }

  private postStaged(): void {
    // What is sent before the peer can receive waits.
    if (!this.isLive) return;
    this.beatDueAt = this.now + this.host.verbs.beatMs;
    this.broken(this.pair.post());
  }

  /** Probes, answers and BYE, as far as there is room. */
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
    if (this.ended !== undefined || this.outstanding.size >= this.buffers || !this.hasRequests(1)) return false;
    const at = this.beginRecord(kind, 0, 0, 0, number);
    this.endRecord(null, at, RECORD_HEADER_BYTES);
    if (this.pair.staged >= POST_BATCH) this.postStaged();
    return true;
  }

  private owesCount(): boolean {
    const untold = (this.deliveredCount - this.toldCount) | 0;
    if (untold === 0 || !this.isLive) return false;
    if (this.tellNow || untold >= COUNT_RECORDS || this.untoldBytes >= COUNT_BYTES) return true;
    // Counts alone are not answered by counts, or they would never end.
    return this.untoldData && this.idlePolls >= COUNT_IDLE_POLLS;
  }

  /** An idle rail is tried by a write of nothing, which the peer's device acknowledges without its process. */
  private beat(): void {
    this.beatDueAt = this.now + this.host.verbs.beatMs;
    if (this.pair.isAwaiting || !this.hasRequests(1)) return;
    this.pair.stageNothing();
    this.postStaged();
  }

  // --- the end

  private streamEnded(): void {
    if (this.byeReceived && this.owner.byeDelivered) this.over({ clean: true });
    else this.over({ clean: false, reason: this.stream.failure ?? { kind: 'closed', text: 'the connection is closed' } });
  }

  /** The count of the peer's BYE goes in a request that completes, so that it is known when it has gone. */
  private beginLeaving(): void {
    if (this.lastRequest > 0) return;
    this.pair.signalNext();
    if (this.writeRecord(RECORD_COUNT, 0)) this.lastRequest = this.pair.lastRequest;
    this.flush();
  }

  /** After BYE both ways: once our own is counted nothing is owed but the count of the peer's. */
  private closeAfterBye(): void {
    if (this.owner.byeDelivered) {
      this.beginLeaving();
      if (this.ended === undefined && this.lastRequest > 0 && this.pair.retired >= this.lastRequest) this.over({ clean: true });
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

  /** The device refused something: `complaint` says what, if it did. */
  private broken(complaint: string | undefined): void {
    if (complaint !== undefined) this.over({ clean: false, reason: { kind: 'error', text: complaint } });
  }

  /** Synchronous (B6): when this returns no byte of the epoch can land. */
  private over(end: LinkEnd): void {
    if (this.ended !== undefined) return;
    this.ended = end;
    for (const complaint of this.pair.destroy()) this.host.say(complaint, 'warn');
    this.framer.stop();
    this.stream.destroy();
    this.host.forget(this);
  }
}
