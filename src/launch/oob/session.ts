// One side of the reliable message stream of the out-of-band channel, which outlives its connections: it numbers outgoing messages, keeps
// them until they are acknowledged, sends them again after a reconnect, and drops duplicates. It has no I/O: it is given a function that
// writes to the present connection.
import { MultirailError } from '../../errors.ts';
import { encodeEnvelope } from './envelope.ts';
import type { Envelope, OobBodies, OobKind } from './messages.ts';

export const OUTBOX_BYTES_MAX = 64 * 1024 * 1024;
export const OUTBOX_MESSAGES_MAX = 65_536;

interface Kept {
  sequence: number;
  kind: OobKind;
  body: OobBodies[OobKind];
  bytes: number;
}

interface AckWaiter {
  sequence: number;
  resolve: () => void;
  reject: (error: Error) => void;
}

/** Verdict on an inbound envelope. */
export type Intake = 'take' | 'duplicate' | 'gap';

export class OobSession {
  private outbox: Kept[] = [];
  private outboxBytes = 0;
  private nextSequence = 1;
  private acknowledged = 0;
  private waiters: AckWaiter[] = [];
  private write: ((bytes: Uint8Array) => void) | undefined;
  /** Highest sequence taken from the other side. */
  received = 0;
  /** Highest sequence that the other side was told we have. */
  private toldReceived = 0;

  /** True when something was taken that the other side does not know of yet. */
  get owesAck(): boolean {
    return this.received > this.toldReceived;
  }

  /** Messages accepted by `send` and not yet acknowledged. */
  get unacknowledged(): number {
    return this.outbox.length;
  }

  /** Number of the message that has waited longest to be acknowledged. */
  get oldestUnacknowledged(): number | undefined {
    return this.outbox[0]?.sequence;
  }

  /** True when one more message of about this size has room. */
  hasRoom(bytes: number): boolean {
    return this.outbox.length < OUTBOX_MESSAGES_MAX && this.outboxBytes + bytes <= OUTBOX_BYTES_MAX;
  }

  /** Accepts a message for certain delivery and returns its sequence number. Throws ERR_OOB when the queue is full. */
  send<K extends OobKind>(kind: K, body: OobBodies[K]): number {
    const sequence = this.nextSequence;
    const bytes = encodeEnvelope(sequence, this.received, kind, body);
    if (!this.hasRoom(bytes.length)) {
      throw new MultirailError('ERR_OOB', `the out-of-band queue is full (${this.outbox.length} messages, ${this.outboxBytes} bytes)`);
    }
    this.nextSequence++;
    this.outbox.push({ sequence, kind, body, bytes: bytes.length });
    this.outboxBytes += bytes.length;
    if (this.write !== undefined) {
      this.toldReceived = this.received;
      this.write(bytes);
    }
    return sequence;
  }

  /** Writes a message outside the numbering (ping, ack, news that is soon old) if there is a connection. It carries the acknowledgement. */
  sendUnnumbered<K extends 'ping' | 'ack' | 'waitsReport'>(kind: K, body: OobBodies[K] = {} as OobBodies[K]): void {
    if (this.write === undefined) return;
    this.toldReceived = this.received;
    this.write(encodeEnvelope(0, this.received, kind, body));
  }

  /** A connection is authenticated: everything that the other side has not got is sent again, in order. */
  attach(write: (bytes: Uint8Array) => void, receivedByPeer: number): void {
    if (receivedByPeer < this.acknowledged) {
      throw new MultirailError('ERR_PROTOCOL', 'the other side of the out-of-band channel has forgotten what it acknowledged');
    }
    this.handleAck(receivedByPeer);
    this.write = write;
    this.toldReceived = this.received;
    for (const kept of this.outbox) write(encodeEnvelope(kept.sequence, this.received, kept.kind, kept.body));
  }

  detach(): void {
    this.write = undefined;
  }

  /** Takes note of an inbound envelope. Only 'take' is for the layer above; 'gap' means that the connection is broken. */
  intake(envelope: Envelope): Intake {
    this.handleAck(envelope.acknowledged);
    if (envelope.sequence === 0) return 'take';
    if (envelope.sequence <= this.received) return 'duplicate';
    if (envelope.sequence !== this.received + 1) return 'gap';
    this.received = envelope.sequence;
    return 'take';
  }

  /** Resolves when the other side has taken everything up to this sequence. */
  acknowledgedUpTo(sequence: number): Promise<void> {
    if (sequence <= this.acknowledged) return Promise.resolve();
    return new Promise((resolve, reject) => this.waiters.push({ sequence, resolve, reject }));
  }

  /** Everything sent so far. */
  flushed(): Promise<void> {
    return this.acknowledgedUpTo(this.nextSequence - 1);
  }

  /** The session is over: nothing is kept, and whoever waits is told. */
  end(error: Error): void {
    this.write = undefined;
    this.outbox = [];
    this.outboxBytes = 0;
    const waiters = this.waiters;
    this.waiters = [];
    for (const waiter of waiters) waiter.reject(error);
  }

  private handleAck(sequence: number): void {
    if (sequence >= this.nextSequence) {
      throw new MultirailError('ERR_PROTOCOL', `out-of-band acknowledgement of message ${sequence}, which was never sent`);
    }
    if (sequence <= this.acknowledged) return;
    this.acknowledged = sequence;
    let done = 0;
    while (done < this.outbox.length && this.outbox[done].sequence <= sequence) this.outboxBytes -= this.outbox[done++].bytes;
    this.outbox.splice(0, done);
    const ready = this.waiters.filter((waiter) => waiter.sequence <= sequence);
    this.waiters = this.waiters.filter((waiter) => waiter.sequence > sequence);
    for (const waiter of ready) waiter.resolve();
  }
}
