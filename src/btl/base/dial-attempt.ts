// One connection attempt of the dialing side: opens a stream, proves who we are, and becomes a rail epoch or a reason.
// While an older epoch of the rail is live the attempt runs beside it and gives way to it as soon as it hears a byte.
// Moves only inside progress(). May import: btl.ts (types), byte-stream (types), frame-hdr, handshake, stream-framer.
import { ALIVE_PER_TURN_MAX_MS, type RailReason, type Sink } from '../btl.ts';
import type { ByteStream } from './byte-stream.ts';
import { type FrameHeader, HANDSHAKE_LIMITS } from './frame-hdr.ts';
import type { DialerHandshake } from './handshake.ts';
import { type FramerHandler, StreamFramer } from './stream-framer.ts';

/** After the peer answered beside a live epoch, this much of our own alive time is left to that epoch to say something. */
const BESIDE_ALIVE_MS = 100;

/** A stream that a module is opening, perhaps after a look at the routes; filled in by the module, which then wakes us. */
export interface Dialing {
  stream: ByteStream | undefined;
  failure: RailReason | undefined;
  cancelled: boolean;
}

/**
 * DIALING: the route is looked up and the connection opened.
 * HELLO_SENT: connected; the peer's process has not answered yet.
 * BESIDE: the peer has answered, but an older epoch is live: it may still show that it is well.
 * PROOF_SENT: the peer decides.
 * DONE: live, failed or cancelled.
 */
type AttemptState = 'DIALING' | 'HELLO_SENT' | 'BESIDE' | 'PROOF_SENT' | 'DONE';

const EDGES: Readonly<Record<AttemptState, readonly AttemptState[]>> = {
  DIALING: ['HELLO_SENT', 'DONE'],
  HELLO_SENT: ['BESIDE', 'PROOF_SENT', 'DONE'],
  BESIDE: ['PROOF_SENT', 'DONE'],
  PROOF_SENT: ['DONE'],
  DONE: [],
};

export interface AttemptOwner {
  /** Bytes heard on the live epoch; undefined when none is live. */
  liveHeardBytes(): number | undefined;
  /** The peer welcomed the epoch: make it live now, bytes of it may follow in the same chunk. */
  welcomed(attempt: DialAttempt, stream: ByteStream, framer: StreamFramer): void;
  attemptFailed(attempt: DialAttempt, reason: RailReason, highestEpoch?: number): void;
}

/**
 * A peer whose kernel took the connection is there, only busy: its process gets this many times as long to answer the handshake.
 * Not so beside a live epoch, where a busy peer is reason enough to give up.
 */
const ANSWER_TIMEOUT_FACTOR = 3;

export class DialAttempt implements FramerHandler {
  readonly epoch: number;
  private readonly owner: AttemptOwner;
  private readonly dialing: Dialing;
  private readonly handshake: DialerHandshake;
  private readonly timeoutMs: number;
  private readonly heardAtStart: number | undefined;
  private state: AttemptState = 'DIALING';
  private framer: StreamFramer | undefined;
  /** Deadline of the present state in our own alive time: a pause of this process is not the peer's silence. */
  private dueAliveMs = Number.POSITIVE_INFINITY;
  private dueAt = 0;
  private aliveMs = 0;

  constructor(owner: AttemptOwner, epoch: number, dialing: Dialing, handshake: DialerHandshake, timeoutMs: number) {
    this.owner = owner;
    this.epoch = epoch;
    this.dialing = dialing;
    this.handshake = handshake;
    this.timeoutMs = timeoutMs;
    this.heardAtStart = owner.liveHeardBytes();
  }

  /** For logs; empty while the connection is not open. */
  get remoteAddress(): string {
    return this.dialing.stream?.remoteAddress ?? '';
  }

  get done(): boolean {
    return this.state === 'DONE';
  }

  /** Ends the attempt without a word. */
  cancel(): void {
    if (this.state === 'DONE') return;
    this.move('DONE', 0);
    this.framer?.stop();
    this.dialing.cancelled = true;
    this.dialing.stream?.destroy();
  }

  nextDeadline(): number {
    return this.dueAt;
  }

  progress(now: number, aliveMs: number): void {
    this.aliveMs = aliveMs;
    if (this.state === 'DIALING') this.progressDialing();
    const stream = this.dialing.stream;
    if (stream !== undefined && this.framer !== undefined && this.state !== 'DONE') {
      stream.poll(this.framer, 64 * 1024);
      if (!this.done && stream.status === 'closed' && stream.inboundBytes === 0) {
        this.fail(stream.failure ?? { kind: 'closed', text: 'the peer closed the connection during the handshake' });
      }
    }
    if (this.state === 'HELLO_SENT' || this.state === 'BESIDE') this.giveWay();
    if (this.state === 'BESIDE' && (this.owner.liveHeardBytes() === undefined || aliveMs >= this.dueAliveMs)) this.prove();
    if (this.state !== 'DONE' && aliveMs >= this.dueAliveMs) this.timedOut();
    this.dueAt =
      this.dueAliveMs === Number.POSITIVE_INFINITY ? now : now + Math.min(ALIVE_PER_TURN_MAX_MS, Math.max(1, this.dueAliveMs - aliveMs));
  }

  // --- frames in (FramerHandler)

  frame(header: FrameHeader, packetHeader: Uint8Array): void {
    if (this.state === 'DONE') return;
    const step = this.handshake.take(header.kind, packetHeader);
    switch (step.kind) {
      case 'challenged':
        if (this.owner.liveHeardBytes() === undefined) this.prove();
        else this.move('BESIDE', BESIDE_ALIVE_MS);
        return;
      case 'welcomed':
        this.move('DONE', 0);
        this.owner.welcomed(this, this.dialing.stream as ByteStream, this.framer as StreamFramer);
        return;
      case 'failed':
        this.fail(step.reason, step.highestEpoch);
        return;
    }
  }

  placePayload(): Sink | null {
    this.fail({ kind: 'damaged', text: 'a placed frame during the handshake' });
    return null;
  }

  damage(text: string): void {
    this.fail({ kind: 'damaged', text: `in the handshake: ${text}` });
  }

  private get answerTimeoutMs(): number {
    return this.heardAtStart === undefined ? this.timeoutMs * ANSWER_TIMEOUT_FACTOR : this.timeoutMs;
  }

  private progressDialing(): void {
    if (this.dueAliveMs === Number.POSITIVE_INFINITY) this.dueAliveMs = this.aliveMs + this.timeoutMs;
    const { stream, failure } = this.dialing;
    if (failure !== undefined) {
      this.fail(failure);
      return;
    }
    if (stream === undefined || stream.status === 'connecting') return;
    if (stream.status === 'closed') {
      this.fail(stream.failure ?? { kind: 'error', text: 'the connection could not be opened' });
      return;
    }
    this.framer = new StreamFramer(this, HANDSHAKE_LIMITS);
    stream.write([this.handshake.hello()]);
    this.move('HELLO_SENT', this.answerTimeoutMs);
  }

  private prove(): void {
    (this.dialing.stream as ByteStream).write([this.handshake.proof()]);
    this.move('PROOF_SENT', this.answerTimeoutMs);
  }

  /** The older epoch lives: what is beside it is not needed. */
  private giveWay(): void {
    const heard = this.owner.liveHeardBytes();
    if (heard === undefined || this.heardAtStart === undefined || heard === this.heardAtStart) return;
    this.fail({ kind: 'busy', text: 'the live epoch of this rail was heard again' });
  }

  private timedOut(): void {
    if (this.state === 'DIALING') {
      this.fail({ kind: 'timeout', text: `no answer to the connection attempt within ${this.timeoutMs} ms` });
    } else {
      this.fail({ kind: 'busy', text: `connected, but the peer's process did not answer the handshake within ${this.answerTimeoutMs} ms` });
    }
  }

  private fail(reason: RailReason, highestEpoch?: number): void {
    if (this.state === 'DONE') return;
    this.cancel();
    this.owner.attemptFailed(this, reason, highestEpoch);
  }

  private move(to: AttemptState, dueInAliveMs: number): void {
    if (!EDGES[this.state].includes(to)) throw new Error(`dial attempt: no edge from ${this.state} to ${to}`);
    this.state = to;
    this.dueAliveMs = to === 'DONE' ? Number.POSITIVE_INFINITY : this.aliveMs + dueInAliveMs;
  }
}
