// One live rail epoch over one byte stream: numbering and counting frames (B2), windows (B5), sinks (B4), BYE (B9).
// Knows nothing of dialling, handshakes or older epochs: that is stream-endpoint.ts. Makes upcalls only from poll().
import { MultirailError } from '../../errors.ts';
import { assert } from '../../util/assert.ts';
import { EMPTY_BYTES, EMPTY_VIEWS } from '../../util/iov.ts';
import { serialDiff } from '../../util/serial.ts';
import { WIDE_ZERO } from '../../util/wide-zero.ts';
import {
  BUSY,
  DELIVERED,
  DOWN,
  type Frame,
  fitsWindow,
  HEADER_BYTES_MAX,
  IN_DOUBT,
  OK,
  type RailReason,
  REFUSED,
  type SendResult,
  type Sink,
} from '../btl.ts';
import type { ByteStream } from './byte-stream.ts';
import { crc32c } from './crc32c.ts';
import {
  FLAG_PAYLOAD_CRC,
  FLAG_PLACED,
  FLAG_PROMPT,
  FRAME_BYE,
  FRAME_COUNT,
  FRAME_DATA,
  FRAME_HEADER_BYTES,
  FRAME_NACK,
  FRAME_PROBE,
  FRAME_PROBE_ANSWER,
  type FrameHeader,
  frameKindName,
  liveLimits,
  sealFrames,
  writeFrameHeader,
} from './frame-hdr.ts';
import { giveBackSlab, NO_SLAB, paddingOf, takeSlab } from './frame-memory.ts';
import { type Link, type LinkEnd, type LinkOwner, tellEnd } from './link.ts';
import { OutstandingFrames } from './outstanding.ts';
import type { FramerHandler, StreamFramer } from './stream-framer.ts';

/** Bytes that may wait in the stream for the kernel before frames with payload are BUSY: what is unsent can go elsewhere. */
const STREAM_QUEUE_BYTES_MAX = 4 * 1024 * 1024;
/** Bytes taken from the stream in one poll, so that one rail does not starve the others. */
const POLL_BYTES = 2 * 1024 * 1024;
/** Payloads up to this size are copied next to their header, so that small frames leave as one piece of memory. */
const COPY_BYTES_MAX = 2048;
/** Frames, or bytes, of one turn after which the first ones leave. */
const EARLY_FLUSH_FRAMES = 32;
const EARLY_FLUSH_BYTES = 1024 * 1024;
/** Probes of one peer that wait for their answers; of more than these the oldest go unanswered. */
const PROBE_ANSWERS_MAX = 16;
/** While a large frame comes in slowly, the sender hears this often that its bytes arrive. */
const PARTIAL_REPORT_MS = 50;
export class RailLink implements Link, FramerHandler {
  readonly epoch: number;
  readonly stream: ByteStream;
  outstandingBytes = 0;
  private readonly owner: LinkOwner;
  private readonly framer: StreamFramer;
  private readonly takenBytesBefore: number;

  // Sending.
  private readonly waiting = new OutstandingFrames();
  private sentCount = 0;
  private confirmedCount = 0;
  private staged: Uint8Array[] = [];
  private stagedBytes = 0;
  private stagedFrames = 0;
  private slab = NO_SLAB;
  private slabAt = 0;
  /** Where the part of the slab begins that is not in `staged` yet. */
  private slabFrom = 0;
  private blockedBytes = Number.POSITIVE_INFINITY;
  private blockedControl = false;
  private byeSent = false;

  // Receiving.
  private deliveredCount = 0;
  private byeReceived = false;
  private unreportedFrames = 0;
  private unreportedBytes = 0;
  private reportNow = false;
  private reportDueAt = Number.POSITIVE_INFINITY;
  private reportedBytes = WIDE_ZERO;
  private reportedAt = 0;
  private probeAnswers: number[] = [];
  private refusalTimes: number[] = [];
  private upcallsMade = 0;
  // What the peer told in its last frame.
  private heard = false;
  private peerReceivedBytes = WIDE_ZERO;
  private peerAliveMs = 0;
  private peerAliveLow = 0;

  private readonly frameBytesMax: number;
  private now = 0;
  private aliveMs = 0;
  private ended: LinkEnd | undefined = undefined;
  private endDueAt = Number.POSITIVE_INFINITY;
  private endStarted = false;

  constructor(owner: LinkOwner, epoch: number, stream: ByteStream, framer: StreamFramer, now: number, aliveMs: number) {
    this.owner = owner;
    this.epoch = epoch;
    this.stream = stream;
    this.framer = framer;
    this.takenBytesBefore = framer.takenBytes;
    this.now = now;
    this.aliveMs = aliveMs;
    this.reportedAt = now;
    this.frameBytesMax = owner.endpoint.plan.attributes.frameBytesMax;
    framer.limits = liveLimits(this.frameBytesMax);
    framer.handler = this;
  }

  get receivedBytes(): number {
    return this.framer.takenBytes - this.takenBytesBefore;
  }

  get receivedByPeerBytes(): number {
    return this.peerReceivedBytes;
  }

  /** Set once the epoch is over; the owner then makes the upcalls with close(). */
  get end(): LinkEnd | undefined {
    return this.ended;
  }

  // --- down-calls

  send(frame: Frame, windowBytes: number): SendResult {
    if (this.ended !== undefined || this.byeSent) return DOWN;
    const bytes = frame.header.length + frame.payloadBytes;
    if (frame.header.length > HEADER_BYTES_MAX || frame.payloadBytes > this.frameBytesMax) {
      assert(false, `frame with a header of ${frame.header.length} and a payload of ${frame.payloadBytes} bytes`);
    }
    if (!this.hasRoom(bytes, frame.payloadBytes > 0, windowBytes)) {
      // The smallest refused frame decides when there is room again; a control frame needs least.
      if (frame.payloadBytes === 0) this.blockedControl = true;
      this.blockedBytes = Math.min(this.blockedBytes, bytes);
      this.stream.wantsRoom = true;
      return BUSY;
    }
    const prompt = frame.prompt || this.fillsShortWindow(bytes, windowBytes);
    let flags = (frame.placed ? FLAG_PLACED : 0) | (prompt ? FLAG_PROMPT : 0);
    let payloadCrc = 0;
    if (this.owner.options.payloadCrc && frame.payloadBytes > 0) {
      flags |= FLAG_PAYLOAD_CRC;
      for (const part of frame.payload) payloadCrc = crc32c(part, payloadCrc);
    }
    frame.railFrameNumber = this.nextNumber(frame, bytes);
    this.stage(FRAME_DATA, flags, frame.railFrameNumber, payloadCrc, frame);
    const counters = this.owner.counters;
    counters.framesSent++;
    counters.payloadBytesSent += frame.payloadBytes;
    // In a long row the peer need not wait for the last frame before it begins with the first.
    if (++this.stagedFrames >= EARLY_FLUSH_FRAMES || this.stagedBytes >= EARLY_FLUSH_BYTES) this.flush();
    return OK;
  }

  /** The peer would not count so few bytes before its timer runs out, and the rail would stand still until then. */
  private fillsShortWindow(bytes: number, windowBytes: number): boolean {
    return windowBytes < 2 * this.owner.options.ackBytes && this.outstandingBytes + bytes >= windowBytes * 0.75;
  }

  letGo(): boolean {
    if (this.ended !== undefined) return true;
    this.flush();
    this.stream.letGo?.();
    return this.stream.letGo !== undefined || this.stream.queuedBytes === 0;
  }

  probe(probeId: number, paddingBytes: number): void {
    // A peer that does not read for long is asked often: questions that find no room are not kept.
    if (this.ended !== undefined || this.stream.queuedBytes >= STREAM_QUEUE_BYTES_MAX) return;
    this.stage(FRAME_PROBE, 0, probeId >>> 0, 0, paddingBytes === 0 ? null : paddingOf(paddingBytes));
  }

  bye(): void {
    if (this.ended !== undefined || this.byeSent) return;
    this.byeSent = true;
    this.stageOwn(FRAME_BYE, this.nextNumber(null, 0));
  }

  flush(): void {
    if (this.ended !== undefined || this.endStarted) return;
    const { stream } = this;
    if (this.staged.length === 0 && stream.writePiece !== undefined) {
      // Small frames only: one piece of memory.
      const { slabFrom, slabAt } = this;
      if (slabFrom === slabAt) return;
      sealFrames(this.slab.bytes, slabFrom, slabAt, COPY_BYTES_MAX);
      this.slabFrom = slabAt;
      stream.writePiece(this.slab.bytes, slabFrom, slabAt);
    } else {
      this.closeSlabPart();
      if (this.staged.length === 0) return;
      const chunks = this.staged;
      this.staged = [];
      // A frame whose payload is no longer there cannot be written whole. Sent again, its message says what became of it.
      if (chunks.some((chunk) => chunk.length === 0)) {
        this.over({ clean: false, reason: { kind: 'error', text: 'the buffer of a message was detached before it was written' } });
        return;
      }
      stream.write(chunks);
    }
    this.stagedBytes = 0;
    this.stagedFrames = 0;
    // Everything is with the kernel: the memory is free again. Else it stays with the stream, and a new slab follows.
    if (this.stream.queuedBytes === 0 && this.slab !== NO_SLAB && giveBackSlab(this.slab)) {
      this.slab = NO_SLAB;
      this.slabAt = 0;
      this.slabFrom = 0;
    }
  }

  revokeSink(sink: Sink): boolean {
    if (this.framer.openSink !== sink) return false;
    sink.revoked = true;
    return true;
  }

  /** Synchronous (B6): from here on no byte lands anywhere and nothing is handed up; close() makes the upcalls. */
  cut(reason: RailReason): void {
    this.over({ clean: false, reason });
  }

  /** At shutdown: true when BYE went both ways, so that the stream may write out its last bytes and close in good order. */
  endsWell(): boolean {
    if (this.ended !== undefined || !this.byeSent || !this.byeReceived) return false;
    this.flush();
    this.framer.stop();
    this.ended = { clean: true };
    if (!this.endStarted) this.stream.end();
    return true;
  }

  // --- called by the endpoint inside progress()

  isQuiet(now: number, aliveMs: number): boolean {
    this.now = now;
    this.aliveMs = aliveMs;
    if (this.stream.hasNews || now >= this.reportDueAt || this.byeReceived || this.ended !== undefined) return false;
    const isOwing = this.reportNow || this.stagedBytes > 0 || this.probeAnswers.length > 0;
    return !isOwing && !this.framer.midFrame && this.blockedBytes === Number.POSITIVE_INFINITY;
  }

  /** Reads what has come in and makes the upcalls for it. */
  poll(now: number, aliveMs: number): number {
    this.now = now;
    this.aliveMs = aliveMs;
    this.upcallsMade = 0;
    if (this.ended !== undefined) return 0;
    const takenBefore = this.framer.takenBytes;
    this.stream.poll(this.framer, POLL_BYTES);
    this.owner.counters.bytesReceived += this.framer.takenBytes - takenBefore;
    if (this.ended !== undefined) return this.upcallsMade;
    this.report();
    if (this.stream.status === 'closed' && this.stream.inboundBytes === 0) {
      // A peer that closes in good order has counted our BYE before. One that did not may have closed for another reason, such as a
      // newer epoch, and never have heard it.
      if (this.byeReceived && this.owner.byeDelivered) this.over({ clean: true });
      else this.over({ clean: false, reason: this.stream.failure ?? { kind: 'closed', text: 'the connection is closed' } });
      return this.upcallsMade;
    }
    const partial = this.framer.midFrame && this.receivedBytes !== this.reportedBytes && now - this.reportedAt >= PARTIAL_REPORT_MS;
    const { ackFrames, ackBytes } = this.owner.options;
    const many = this.unreportedFrames >= ackFrames || this.unreportedBytes >= ackBytes;
    const counted = this.reportNow || partial || many || now >= this.reportDueAt;
    // A peer that sends but does not read gets the count, and the answers to its last probes, when there is room again.
    if (this.stream.queuedBytes < STREAM_QUEUE_BYTES_MAX) {
      if (counted && this.probeAnswers.length === 0) this.stageOwn(FRAME_COUNT, 0);
      if (this.probeAnswers.length > 0) {
        for (const id of this.probeAnswers) this.stageOwn(FRAME_PROBE_ANSWER, id);
        this.probeAnswers = [];
      }
      this.stream.wantsRoom = this.blockedBytes !== Number.POSITIVE_INFINITY;
    } else {
      this.stream.wantsRoom = true;
    }
    this.flush();
    this.closeAfterBye();
    return this.upcallsMade;
  }

  /** Whether a frame that was refused as BUSY would go now; asked once per progress. */
  takeWritable(windowBytes: number): boolean {
    if (this.blockedBytes === Number.POSITIVE_INFINITY || this.ended !== undefined || this.byeSent) return false;
    if (!this.hasRoom(this.blockedBytes, !this.blockedControl, windowBytes)) return false;
    this.blockedBytes = Number.POSITIVE_INFINITY;
    this.blockedControl = false;
    return true;
  }

  /** True when takeWritable() would say yes: the window was raised by a down-call. */
  writableNow(windowBytes: number): boolean {
    return this.blockedBytes !== Number.POSITIVE_INFINITY && this.hasRoom(this.blockedBytes, !this.blockedControl, windowBytes);
  }

  nextDeadline(windowBytes: number): number {
    if (this.ended !== undefined) return 0;
    if (this.blockedBytes !== Number.POSITIVE_INFINITY && this.writableNow(windowBytes)) return 0;
    // Frames staged by a down-call wait for the engine's flush(), which follows; what is read too much waits for us.
    if (this.stream.inboundBytes > 0 || this.stream.more === true) return 0;
    // No room for the count: the stream's own event comes when there is.
    if (this.endStarted || this.stream.queuedBytes >= STREAM_QUEUE_BYTES_MAX) return this.endDueAt;
    return Math.min(this.reportDueAt, this.endDueAt);
  }

  /** The upcalls of an ended epoch: railDown first, then sinks and completions, in order (B3). Returns how many. */
  close(): number {
    const { endpoint, upcalls } = this.owner;
    const end = this.ended as LinkEnd;
    let made = tellEnd(this.owner, this.epoch, end, this.framer.openSink);
    const status = end.clean ? DELIVERED : IN_DOUBT;
    const { waiting } = this;
    while (waiting.size > 0) {
      this.outstandingBytes -= waiting.bytes;
      const refused = waiting.isRefused;
      const frame = waiting.shift();
      if (frame === null) {
        if (end.clean) this.owner.byeDelivered = true;
        continue;
      }
      upcalls.onCompleted(endpoint, this.epoch, frame, refused && end.clean ? REFUSED : status);
      made++;
    }
    return made;
  }

  // --- frames in (FramerHandler)

  placePayload(header: FrameHeader, packetHeader: Uint8Array): Sink | null {
    if (header.kind !== FRAME_DATA || this.byeReceived) {
      this.damage(`a placed ${frameKindName(header.kind)} frame${this.byeReceived ? ' after BYE' : ''}`);
      return null;
    }
    try {
      this.upcallsMade++;
      return this.owner.upcalls.sinkFor(this.owner.endpoint, this.epoch, packetHeader, header.payloadBytes);
    } catch (error) {
      this.packetDamage(error);
      return null;
    }
  }

  frame(header: FrameHeader, packetHeader: Uint8Array, payload: Uint8Array, sink: Sink | null, payloadSound: boolean): void {
    // Its lengths were looked at before anything was kept for it; a flag belongs to a payload, or asks for a count at once.
    if (header.kind !== FRAME_DATA && header.flags !== 0) {
      this.damage(`a ${frameKindName(header.kind)} frame with flags ${header.flags}: only DATA has them`);
      return;
    }
    this.heard = true;
    this.peerReceivedBytes = header.receivedBytes;
    this.peerAliveMs += (header.aliveMs - this.peerAliveLow) >>> 0;
    this.peerAliveLow = header.aliveMs;
    if (header.kind === FRAME_NACK) this.takeNack(header.frameNumber);
    if (!this.takeCount(header.deliveredCount)) return;
    switch (header.kind) {
      case FRAME_DATA:
        this.takeData(header, packetHeader, payload, sink, payloadSound);
        return;
      case FRAME_BYE:
        if (!this.counts(header)) return;
        this.byeReceived = true;
        this.upcallsMade++;
        this.owner.upcalls.onBye(this.owner.endpoint, this.epoch);
        this.countFrame(FRAME_HEADER_BYTES, true);
        return;
      case FRAME_PROBE:
        if (this.probeAnswers.length === PROBE_ANSWERS_MAX) this.probeAnswers.shift();
        this.probeAnswers.push(header.frameNumber);
        return;
      case FRAME_PROBE_ANSWER: {
        const id = header.frameNumber;
        this.report();
        this.upcallsMade++;
        this.owner.upcalls.onProbeAnswered(this.owner.endpoint, this.epoch, id);
        return;
      }
      case FRAME_COUNT:
      case FRAME_NACK:
        return;
      default:
        this.damage(`unexpected ${frameKindName(header.kind)} frame on a live rail`);
    }
  }

  damage(text: string): void {
    this.over({ clean: false, reason: { kind: 'damaged', text, code: 'ERR_PROTOCOL' } });
  }

  private takeData(header: FrameHeader, packetHeader: Uint8Array, payload: Uint8Array, sink: Sink | null, payloadSound: boolean): void {
    if (!this.counts(header)) return;
    const { endpoint, upcalls, counters } = this.owner;
    const bytes = FRAME_HEADER_BYTES + header.packetHeaderBytes + header.payloadBytes;
    const prompt = (header.flags & FLAG_PROMPT) !== 0;
    if (!payloadSound) {
      counters.framesRefused++;
      if (sink !== null) {
        this.upcallsMade++;
        upcalls.onSinkDropped(endpoint, this.epoch, sink);
      }
      if (this.ended !== undefined) return;
      // The NACK is staged before the count rises, so the sender learns of the refusal no later than of the count.
      this.stageOwn(FRAME_NACK, header.frameNumber);
      this.countFrame(bytes, true);
      this.limitRefusals();
      return;
    }
    try {
      this.upcallsMade++;
      upcalls.onFrame(endpoint, this.epoch, packetHeader, payload, sink);
    } catch (error) {
      this.packetDamage(error);
      return;
    }
    counters.framesReceived++;
    counters.payloadBytesReceived += header.payloadBytes;
    // A fence from inside the upcall ends the epoch: this frame was handed up before it, and nobody will hear its count.
    if (this.ended === undefined) this.countFrame(bytes, prompt);
  }

  /** A counted frame must carry the next number, and none follows BYE. */
  private counts(header: FrameHeader): boolean {
    const expected = (this.deliveredCount + 1) >>> 0;
    if (header.frameNumber !== expected || this.byeReceived) {
      this.damage(`frame number ${header.frameNumber} where ${expected} was due${this.byeReceived ? ', after BYE' : ''}`);
      return false;
    }
    return true;
  }

  private countFrame(bytes: number, prompt: boolean): void {
    this.deliveredCount = (this.deliveredCount + 1) >>> 0;
    this.unreportedFrames++;
    this.unreportedBytes += bytes;
    if (prompt) this.reportNow = true;
    if (this.reportDueAt === Number.POSITIVE_INFINITY) this.reportDueAt = this.now + this.owner.options.ackDelayMs;
  }

  private takeNack(frameNumber: number): void {
    if (this.waiting.refuse(serialDiff(frameNumber, this.confirmedCount) - 1)) return;
    this.damage(`NACK for frame ${frameNumber}, which is not outstanding`);
  }

  private takeCount(count: number): boolean {
    if (this.ended !== undefined) return false;
    const news = serialDiff(count, this.confirmedCount);
    if (news === 0) return true;
    const { waiting } = this;
    if (news < 0 || news > waiting.size) {
      this.damage(`delivered count ${count} where ${this.confirmedCount} to ${this.sentCount} were possible`);
      return false;
    }
    for (let i = 0; i < news; i++) {
      this.confirmedCount = (this.confirmedCount + 1) >>> 0;
      this.outstandingBytes -= waiting.bytes;
      const refused = waiting.isRefused;
      const frame = waiting.shift();
      if (frame === null) {
        this.owner.byeDelivered = true;
        continue;
      }
      this.upcallsMade++;
      this.owner.upcalls.onCompleted(this.owner.endpoint, this.epoch, frame, refused ? REFUSED : DELIVERED);
      if (this.ended !== undefined) return false;
    }
    return true;
  }

  private limitRefusals(): void {
    const { refusalsMax } = this.owner.options;
    this.refusalTimes = this.refusalTimes.filter((time) => time > this.now - 1000);
    this.refusalTimes.push(this.now);
    if (this.refusalTimes.length <= refusalsMax) return;
    this.flush();
    this.over({ clean: false, reason: { kind: 'refusals', text: `more than ${refusalsMax} damaged payloads within a second` } });
  }

  private packetDamage(error: unknown): void {
    if (error instanceof MultirailError && error.code === 'ERR_PROTOCOL') this.damage(error.message);
    else {
      this.damage('the upcall failed');
      throw error;
    }
  }

  /** Hands on what the peer's last frame told, once for all frames of a poll. */
  private report(): void {
    if (!this.heard || this.ended !== undefined) return;
    this.heard = false;
    this.upcallsMade++;
    this.owner.upcalls.onReport(this.owner.endpoint, this.epoch, this.peerReceivedBytes, this.peerAliveMs);
  }

  // --- frames out

  private hasRoom(bytes: number, hasPayload: boolean, windowBytes: number): boolean {
    if (!fitsWindow(this.outstandingBytes, bytes, hasPayload, windowBytes)) return false;
    if (!hasPayload) return true;
    const queued = this.stream.queuedBytes + this.stagedBytes;
    return queued === 0 || queued + bytes <= STREAM_QUEUE_BYTES_MAX;
  }

  private nextNumber(frame: Frame | null, bytes: number): number {
    this.sentCount = (this.sentCount + 1) >>> 0;
    this.waiting.push(frame, bytes);
    this.outstandingBytes += bytes;
    return this.sentCount;
  }

  private stageOwn(kind: number, frameNumber: number): void {
    this.stage(kind, 0, frameNumber, 0, null);
  }

  /** Encodes a frame behind those that wait for flush(). Every frame carries the count, so none is owed after it. */
  private stage(kind: number, flags: number, frameNumber: number, payloadCrc: number, frame: Frame | null): void {
    const received = this.receivedBytes;
    const packetHeader = frame === null ? EMPTY_BYTES : frame.header;
    const payloadBytes = frame === null ? 0 : frame.payloadBytes;
    const payload = frame === null ? EMPTY_VIEWS : frame.payload;
    const packetHeaderBytes = packetHeader.length;
    const headBytes = FRAME_HEADER_BYTES + packetHeaderBytes;
    const copied = payloadBytes <= COPY_BYTES_MAX;
    const bytes = headBytes + (copied ? payloadBytes : 0);
    // Words are copied whole: there must be room for what the last one has too much.
    if (this.slab.bytes.length - this.slabAt < bytes + 4) {
      this.closeSlabPart();
      this.slab = takeSlab();
      this.slabAt = 0;
      this.slabFrom = 0;
    }
    const at = this.slabAt;
    const { bytes: slab, view } = this.slab;
    const alive = Math.floor(this.aliveMs) >>> 0;
    writeFrameHeader(view, at, kind, flags, packetHeaderBytes, payloadBytes, frameNumber, this.deliveredCount, alive, received, payloadCrc);
    const words = frame?.headerWords;
    const packed = copied && frame?.packed === true;
    if (words !== undefined) {
      const end = at + FRAME_HEADER_BYTES + (packed ? packetHeaderBytes + payloadBytes : packetHeaderBytes);
      for (let to = at + FRAME_HEADER_BYTES, i = 0; to < end; to += 4, i++) view.setInt32(to, words[i], true);
    } else if (packetHeaderBytes > 0) slab.set(packetHeader, at + FRAME_HEADER_BYTES);
    this.slabAt += headBytes;
    if (packed) this.slabAt += payloadBytes;
    else if (copied) {
      for (const part of payload) {
        slab.set(part, this.slabAt);
        this.slabAt += part.length;
      }
    } else {
      this.closeSlabPart();
      for (const part of payload) if (part.length > 0) this.staged.push(part);
    }
    this.stagedBytes += headBytes + payloadBytes;
    this.owner.counters.bytesSent += headBytes + payloadBytes;
    this.unreportedFrames = 0;
    this.unreportedBytes = 0;
    this.reportNow = false;
    this.reportDueAt = Number.POSITIVE_INFINITY;
    this.reportedBytes = received;
    this.reportedAt = this.now;
  }

  private closeSlabPart(): void {
    if (this.slabAt === this.slabFrom) return;
    sealFrames(this.slab.bytes, this.slabFrom, this.slabAt, COPY_BYTES_MAX);
    this.staged.push(this.slab.bytes.subarray(this.slabFrom, this.slabAt));
    this.slabFrom = this.slabAt;
  }

  // --- the end

  /** After BYE both ways: our last count is out, so close in good order, and in bounded time. */
  private closeAfterBye(): void {
    if (!this.byeSent || !this.byeReceived) return;
    if (this.endDueAt === Number.POSITIVE_INFINITY) this.endDueAt = this.now + this.owner.options.endTimeoutMs;
    if (!this.endStarted && this.owner.byeDelivered) {
      // Not before our own BYE was counted: a stream that is being closed may not take the peer's count any more.
      this.endStarted = true;
      this.stream.end();
    } else if (this.now >= this.endDueAt) {
      // Without the peer's count for our BYE nothing says that it arrived.
      const reason: RailReason = { kind: 'timeout', text: 'the peer did not close after BYE' };
      this.over(this.owner.byeDelivered ? { clean: true } : { clean: false, reason });
    }
  }

  private over(end: LinkEnd): void {
    if (this.ended !== undefined) return;
    this.ended = end;
    this.framer.stop();
    this.stream.destroy();
  }
}
