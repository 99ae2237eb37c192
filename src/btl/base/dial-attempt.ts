// One connection attempt of the dialing side: it opens a stream, proves who this rank is, and ends as a rail epoch or with a reason. Until
// a stream is open, further ones are begun at intervals, because the kernel repeats a lost SYN only after a second. While an older epoch of
// the rail is live, the attempt runs next to it and gives way as soon as the peer is heard to receive more of it. It moves only inside
// progress().
import type { RailReason, Sink } from '../btl.ts';
import type { ByteStream } from './byte-stream.ts';
import { type FrameHeader, HANDSHAKE_LIMITS } from './frame-hdr.ts';
import type { DialerHandshake } from './handshake.ts';
import { type FramerHandler, StreamFramer } from './stream-framer.ts';

/** After the peer answered while an epoch is live, this much of our own alive time is left to that epoch to say something. */
const BESIDE_ALIVE_MS = 100;

/** A stream that a module is opening, perhaps after a look at the routes; filled in by the module, which then wakes us. */
export interface Dialing {
  stream: ByteStream | undefined;
  failure: RailReason | undefined;
  cancelled: boolean;
}

/**
 * DIALING: the route is looked up and the connection opened, perhaps several at once: the first to open is taken.
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
  /** Bytes that the peer says it has received of the live epoch; undefined when none is live. */
  liveProgressBytes(): number | undefined;
  /** The peer welcomed the epoch: make it live now, bytes of it may follow in the same chunk. */
  welcomed(attempt: DialAttempt, stream: ByteStream, framer: StreamFramer): void;
  attemptFailed(attempt: DialAttempt, reason: RailReason, highestEpoch?: number): void;
}

/**
 * A peer whose kernel took the connection is there, only busy: its process gets this many times as long to answer the handshake.
 * Not so while an epoch is live, where a busy peer is reason enough to give up.
 */
const ANSWER_TIMEOUT_FACTOR = 3;

/** Streams being opened for one attempt; the oldest goes first. */
const DIALINGS_MAX = 8;

/** How often the kernel is asked for its acknowledgements: each question is a system call, and rails that carry poll without a pause. */
const SEE_UNANSWERED_MS = 5;

export interface AttemptOptions {
  /** Opens a stream; called again for each one after the first. */
  dial: () => Dialing;
  timeoutMs: number;
  /** Pause between two streams that are opened for one attempt. */
  againMs: number;
  /** A turn is asked for this often, in which alive time passes. */
  aliveTurnMs: number;
  /** The peer's kernel does not acknowledge what was sent on an open stream: the network went away in the middle of the handshake. */
  isUnanswered?: ((stream: ByteStream) => boolean) | undefined;
  /** What the modex says of the peer's process; undefined when it says nothing. */
  incarnation: number | undefined;
}

export class DialAttempt implements FramerHandler {
  readonly epoch: number;
  private readonly owner: AttemptOwner;
  private readonly options: AttemptOptions;
  private readonly handshake: DialerHandshake;
  private readonly progressAtStart: number | undefined;
  private dialings: Dialing[] = [];
  private stream: ByteStream | undefined = undefined;
  private againAt = Number.POSITIVE_INFINITY;
  private now = 0;
  private state: AttemptState = 'DIALING';
  private framer: StreamFramer | undefined = undefined;
  /** Deadline of the present state in our own alive time: a pause of this process is not the peer's silence. */
  private dueAliveMs = Number.POSITIVE_INFINITY;
  private dueAt = 0;
  private seeUnansweredAtMs = 0;
  private aliveMs = 0;

  constructor(owner: AttemptOwner, epoch: number, handshake: DialerHandshake, options: AttemptOptions) {
    this.owner = owner;
    this.epoch = epoch;
    this.handshake = handshake;
    this.options = options;
    this.progressAtStart = owner.liveProgressBytes();
    this.dialings.push(options.dial());
  }

  /** The key of the handshake that was welcomed. */
  epochKey(): Uint8Array {
    return this.handshake.epochKey();
  }

  /** The network is there again: whoever still waits for it is overtaken by a stream that is opened now. */
  dialAgain(): void {
    if (this.state !== 'DIALING') return;
    if (this.dialings.length >= DIALINGS_MAX) abandon(this.dialings.shift() as Dialing);
    this.dialings.push(this.options.dial());
    this.againAt = this.now + this.options.againMs;
  }

  /** For logs; empty while the connection is not open. */
  get remoteAddress(): string {
    return this.stream?.remoteAddress ?? '';
  }

  get done(): boolean {
    return this.state === 'DONE';
  }

  /** Ends the attempt without a word. */
  cancel(): void {
    if (this.state === 'DONE') return;
    this.move('DONE', 0);
    this.framer?.stop();
    for (const dialing of this.dialings) abandon(dialing);
    this.dialings = [];
    this.stream?.destroy();
  }

  nextDeadline(): number {
    return this.dueAt;
  }

  progress(now: number, aliveMs: number): void {
    this.now = now;
    this.aliveMs = aliveMs;
    if (this.state === 'DIALING') this.progressDialing();
    const { stream } = this;
    if (stream !== undefined && this.framer !== undefined && this.state !== 'DONE') {
      stream.poll(this.framer, 64 * 1024);
      if (!this.done && stream.status === 'closed' && stream.inboundBytes === 0) {
        this.fail(stream.failure ?? { kind: 'closed', text: 'the peer closed the connection during the handshake' });
      }
    }
    if (this.state === 'HELLO_SENT' || this.state === 'BESIDE') this.giveWay();
    if (this.state === 'BESIDE' && (this.owner.liveProgressBytes() === undefined || aliveMs >= this.dueAliveMs)) this.prove();
    if (this.state === 'HELLO_SENT' || this.state === 'PROOF_SENT') this.seeUnanswered();
    if (!this.done && aliveMs >= this.dueAliveMs) this.timedOut();
    this.dueAt =
      this.dueAliveMs === Number.POSITIVE_INFINITY ? now : now + Math.min(this.options.aliveTurnMs, Math.max(1, this.dueAliveMs - aliveMs));
    if (this.state === 'DIALING') this.dueAt = Math.min(this.dueAt, this.againAt);
  }

  // --- frames in (FramerHandler)

  frame(header: FrameHeader, packetHeader: Uint8Array): void {
    if (this.state === 'DONE') return;
    const step = this.handshake.take(header.kind, packetHeader);
    switch (step.kind) {
      case 'challenged':
        if (this.isOtherProcess()) return;
        if (this.owner.liveProgressBytes() === undefined) this.prove();
        else this.move('BESIDE', BESIDE_ALIVE_MS);
        return;
      case 'welcomed':
        this.move('DONE', 0);
        this.owner.welcomed(this, this.stream as ByteStream, this.framer as StreamFramer);
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
    const { timeoutMs } = this.options;
    return this.progressAtStart === undefined ? timeoutMs * ANSWER_TIMEOUT_FACTOR : timeoutMs;
  }

  private progressDialing(): void {
    if (this.dueAliveMs === Number.POSITIVE_INFINITY) {
      this.dueAliveMs = this.aliveMs + this.options.timeoutMs;
      this.againAt = this.now + this.options.againMs;
    }
    const open = this.dialings.find((dialing) => dialing.stream?.status === 'open');
    if (open === undefined) {
      this.dropFailed();
      if (this.state === 'DIALING' && this.now >= this.againAt) this.dialAgain();
      return;
    }
    for (const dialing of this.dialings) if (dialing !== open) abandon(dialing);
    this.dialings = [];
    this.stream = open.stream as ByteStream;
    this.framer = new StreamFramer(this, HANDSHAKE_LIMITS);
    this.stream.write([this.handshake.hello()]);
    this.move('HELLO_SENT', this.answerTimeoutMs);
  }

  /** Streams that cannot be opened any more. The attempt is over with the last of them. */
  private dropFailed(): void {
    let reason: RailReason | undefined;
    this.dialings = this.dialings.filter(({ stream, failure }) => {
      if (failure === undefined && stream?.status !== 'closed') return true;
      reason = failure ?? stream?.failure ?? { kind: 'error', text: 'the connection could not be opened' };
      return false;
    });
    if (this.dialings.length === 0 && reason !== undefined) this.fail(reason);
  }

  /** A process that proved the secret, but not the one that the modex told of: nothing of ours is meant for it (B8). */
  private isOtherProcess(): boolean {
    const { incarnation } = this.options;
    if (incarnation === undefined || incarnation === this.handshake.peerIncarnation) return false;
    const text = `incarnation ${this.handshake.peerIncarnation} answered where ${incarnation} was expected`;
    this.fail({ kind: 'refused', text, code: 'ERR_HANDSHAKE' });
    return true;
  }

  private prove(): void {
    (this.stream as ByteStream).write([this.handshake.proof()]);
    this.move('PROOF_SENT', this.answerTimeoutMs);
  }

  /** The older epoch lives: the other connection is not needed. */
  private giveWay(): void {
    const received = this.owner.liveProgressBytes();
    if (received === undefined || this.progressAtStart === undefined || received === this.progressAtStart) return;
    this.fail({ kind: 'busy', text: 'the live epoch of this rail goes on: the peer has received more of it' });
  }

  private seeUnanswered(): void {
    if (this.stream === undefined || this.now < this.seeUnansweredAtMs) return;
    this.seeUnansweredAtMs = this.now + SEE_UNANSWERED_MS;
    if (this.options.isUnanswered?.(this.stream) !== true) return;
    this.fail({ kind: 'timeout', text: "connected, but the peer's kernel does not acknowledge the handshake" });
  }

  private timedOut(): void {
    if (this.state === 'DIALING') {
      this.fail({ kind: 'timeout', text: `no answer to the connection attempt within ${this.options.timeoutMs} ms` });
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

function abandon(dialing: Dialing): void {
  dialing.cancelled = true;
  dialing.stream?.destroy();
}
