// The endpoint of the self rail: what is sent waits in a queue until progress() hands it up, and completes there.
import { MultirailError } from '../../errors.ts';
import { assert } from '../../util/assert.ts';
import { EMPTY_BYTES } from '../../util/iov.ts';
import { WIDE_ZERO } from '../../util/wide-zero.ts';
import {
  type BtlContext,
  type BtlEndpoint,
  type BtlModule,
  BUSY,
  DELIVERED,
  DOWN,
  type Frame,
  fitsWindow,
  HEADER_BYTES_MAX,
  IN_DOUBT,
  newRailByteCounters,
  OK,
  type RailPlan,
  type RailReason,
  type SendResult,
  type Sink,
} from '../btl.ts';

/** The module of the endpoint, as far as it uses it. */
export interface SelfOwner extends BtlModule {
  readonly context: BtlContext;
  /** There is something for progress(). */
  due(): void;
}

/** Work for progress(), in the order of the down-calls; of one epoch each. */
type Item =
  | { kind: 'connected'; epoch: number }
  | { kind: 'refused'; epoch: number; reason: RailReason; highestEpoch: number | undefined }
  | { kind: 'frame'; epoch: number; frame: Frame; bytes: number }
  | { kind: 'probe'; epoch: number; probeId: number }
  | { kind: 'bye'; epoch: number }
  | { kind: 'down'; epoch: number; reason: RailReason; frames: Frame[] };

/** The payload as one view, copied only when it is a list. */
function joined(frame: Frame): Uint8Array {
  if (frame.payload.length === 1) return frame.payload[0];
  if (frame.payloadBytes === 0) return EMPTY_BYTES;
  const bytes = new Uint8Array(frame.payloadBytes);
  let at = 0;
  for (const part of frame.payload) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** Copies a gather list into a scatter list of the same total length. */
function place(from: readonly Uint8Array[], to: readonly Uint8Array[]): void {
  let target = 0;
  let targetAt = 0;
  for (const part of from) {
    for (let at = 0; at < part.length; ) {
      while (targetAt === to[target].length) {
        target++;
        targetAt = 0;
      }
      const bytes = Math.min(part.length - at, to[target].length - targetAt);
      to[target].set(part.subarray(at, at + bytes), targetAt);
      at += bytes;
      targetAt += bytes;
    }
  }
}

export class SelfEndpoint implements BtlEndpoint {
  readonly module: SelfOwner;
  readonly peer: number;
  readonly rail: number;
  readonly plan: RailPlan;
  readonly counters = newRailByteCounters();
  outstandingBytes = 0;
  private window = 8 * 1024 * 1024;
  /** Epoch that is live for the caller; 0 = none. */
  private live = 0;
  private fencedEpoch = 0;
  private byeSaid = false;
  byeDelivered = false;
  private queue: Item[] = [];
  private blockedBytes = Number.POSITIVE_INFINITY;
  private blockedControl = false;
  private receivedBytes = WIDE_ZERO;
  private upcallsMade = 0;

  constructor(module: SelfOwner, peer: number, rail: number, plan: RailPlan) {
    this.module = module;
    this.peer = peer;
    this.rail = rail;
    this.plan = plan;
  }

  get epoch(): number {
    return this.live;
  }

  get windowBytes(): number {
    return this.window;
  }
  set windowBytes(bytes: number) {
    this.window = bytes;
    if (this.unblocked()) this.module.due();
  }

  connect(epoch: number): void {
    const highestEpoch = Math.max(this.fencedEpoch, this.live);
    const reason: RailReason = { kind: 'fenced', text: `epoch ${epoch} of the self rail is over: the highest is ${highestEpoch}` };
    this.later(epoch <= highestEpoch ? { kind: 'refused', epoch, reason, highestEpoch } : { kind: 'connected', epoch });
  }

  cancelConnect(): void {
    this.queue = this.queue.filter((item) => item.kind !== 'connected' && item.kind !== 'refused');
  }

  send(frame: Frame): SendResult {
    if (this.live === 0 || this.byeSaid) return DOWN;
    assert(frame.header.length <= HEADER_BYTES_MAX, `packet header of ${frame.header.length} bytes`);
    assert(frame.payloadBytes <= this.plan.attributes.frameBytesMax, `frame of ${frame.payloadBytes} payload bytes`);
    const bytes = frame.header.length + frame.payloadBytes;
    if (!this.hasRoom(bytes, frame.payloadBytes > 0)) {
      if (frame.payloadBytes === 0) this.blockedControl = true;
      this.blockedBytes = Math.min(this.blockedBytes, bytes);
      return BUSY;
    }
    this.outstandingBytes += bytes;
    this.counters.framesSent++;
    this.counters.bytesSent += bytes;
    this.counters.payloadBytesSent += frame.payloadBytes;
    this.later({ kind: 'frame', epoch: this.live, frame, bytes });
    return OK;
  }

  flush(): void {}

  /** What is queued is handed up in the next progress(). */
  letGo(): boolean {
    return !this.queue.some((item) => item.kind === 'frame' && item.frame.payloadBytes > 0);
  }

  /** Payloads are placed within one call: no sink is ever open between two. */
  revokeSink(_sink: Sink): void {}

  fence(epoch: number, reason: RailReason): void {
    this.fencedEpoch = Math.max(this.fencedEpoch, epoch);
    if (this.live !== 0 && this.live <= epoch) this.endEpoch(reason);
    const highestEpoch = undefined;
    this.queue = this.queue.map((item) =>
      item.kind === 'connected' && item.epoch <= epoch ? { kind: 'refused', epoch: item.epoch, reason, highestEpoch } : item,
    );
  }

  probe(probeId: number): void {
    if (this.live !== 0) this.later({ kind: 'probe', epoch: this.live, probeId });
  }

  bye(): void {
    if (this.live === 0 || this.byeSaid) return;
    this.byeSaid = true;
    this.later({ kind: 'bye', epoch: this.live });
  }

  /** Hands up what is queued now; what the upcalls add waits for the next call, so that this one ends. */
  progress(aliveMs: number): number {
    this.upcallsMade = 0;
    for (let left = this.queue.length; left > 0 && this.queue.length > 0; left--) this.carryOut(this.queue.shift() as Item, aliveMs);
    if (this.unblocked()) {
      this.blockedBytes = Number.POSITIVE_INFINITY;
      this.blockedControl = false;
      this.upcallsMade++;
      this.upcalls.onWritable(this);
    }
    return this.upcallsMade;
  }

  private get upcalls() {
    return this.module.context.upcalls;
  }

  private carryOut(item: Item, aliveMs: number): void {
    this.upcallsMade++;
    switch (item.kind) {
      case 'connected':
        if (this.live !== 0) {
          this.endEpoch({ kind: 'replaced', text: `epoch ${item.epoch} took over from epoch ${this.live}` });
          this.carryOut(this.queue.pop() as Item, aliveMs);
        }
        this.live = item.epoch;
        this.byeSaid = false;
        this.byeDelivered = false;
        this.receivedBytes = 0;
        this.upcalls.onConnected(this, item.epoch);
        return;
      case 'refused':
        this.upcalls.onConnectFailed(this, item.epoch, item.reason, item.highestEpoch);
        return;
      case 'frame':
        this.deliver(item.frame, item.epoch, item.bytes);
        return;
      case 'probe':
        this.upcalls.onReport(this, item.epoch, this.receivedBytes, aliveMs);
        this.upcalls.onProbeAnswered(this, item.epoch, item.probeId);
        return;
      case 'bye':
        // Both sides are this one, so BYE has gone both ways: the epoch ends without a railDown.
        this.byeDelivered = true;
        this.upcalls.onBye(this, item.epoch);
        if (this.live === item.epoch) this.live = 0;
        return;
      case 'down':
        this.upcalls.onRailDown(this, item.epoch, item.reason);
        for (const frame of item.frames) this.upcalls.onCompleted(this, item.epoch, frame, IN_DOUBT);
        return;
    }
  }

  private deliver(frame: Frame, epoch: number, bytes: number): void {
    try {
      if (frame.placed) {
        const sink = this.upcalls.sinkFor(this, epoch, frame.header, frame.payloadBytes);
        if (this.live !== epoch) {
          this.upcalls.onSinkDropped(this, epoch, sink);
          this.orphan(frame, bytes);
          return;
        }
        if (!sink.revoked && sink.views.length > 0) place(frame.payload, sink.views);
        this.upcalls.onFrame(this, epoch, frame.header, EMPTY_BYTES, sink);
      } else {
        this.upcalls.onFrame(this, epoch, frame.header, joined(frame), null);
      }
    } catch (error) {
      if (this.live === epoch) {
        const text = error instanceof Error ? error.message : String(error);
        this.endEpoch({ kind: 'damaged', text, code: 'ERR_PROTOCOL' });
      }
      this.orphan(frame, bytes);
      if (!(error instanceof MultirailError && error.code === 'ERR_PROTOCOL')) throw error;
      return;
    }
    this.receivedBytes += bytes;
    this.counters.framesReceived++;
    this.counters.bytesReceived += bytes;
    this.counters.payloadBytesReceived += frame.payloadBytes;
    if (this.live !== epoch) {
      // A fence from inside the upcall: nobody hears the count any more.
      this.orphan(frame, bytes);
      return;
    }
    this.outstandingBytes -= bytes;
    this.upcalls.onCompleted(this, epoch, frame, DELIVERED);
  }

  /** Ends the live epoch at once; its upcalls come with the next progress(). */
  private endEpoch(reason: RailReason): void {
    const epoch = this.live;
    this.live = 0;
    const frames: Frame[] = [];
    const kept: Item[] = [];
    for (const item of this.queue) {
      if (item.kind === 'frame') {
        frames.push(item.frame);
        this.outstandingBytes -= item.bytes;
      } else if (item.kind === 'refused' || item.kind === 'connected' || item.kind === 'down') kept.push(item);
    }
    this.queue = kept;
    this.later({ kind: 'down', epoch, reason, frames });
  }

  /** The frame that was being handed up when its epoch ended is the first of those in doubt. */
  private orphan(frame: Frame, bytes: number): void {
    this.outstandingBytes -= bytes;
    const down = this.queue.findLast((item) => item.kind === 'down');
    assert(down?.kind === 'down', 'an ended epoch of the self rail has its railDown queued');
    down.frames.unshift(frame);
  }

  private later(item: Item): void {
    this.queue.push(item);
    this.module.due();
  }

  private hasRoom(bytes: number, hasPayload: boolean): boolean {
    return fitsWindow(this.outstandingBytes, bytes, hasPayload, this.window);
  }

  private unblocked(): boolean {
    return this.blockedBytes !== Number.POSITIVE_INFINITY && this.live !== 0 && this.hasRoom(this.blockedBytes, !this.blockedControl);
  }
}
