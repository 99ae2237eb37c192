// A rail over byte streams (BtlEndpoint): which epoch is live, which attempt is under way, what is over. Shared by tcp and
// ws, which differ only in the stream.
import { randomBytes } from 'node:crypto';
import { assert } from '../../util/assert.ts';
import { settleShape } from '../../util/shape.ts';
import {
  type BtlEndpoint,
  type BtlModule,
  DOWN,
  type Frame,
  newRailByteCounters,
  type RailPlan,
  type RailReason,
  type SendResult,
  type Sink,
  type Upcalls,
} from '../btl.ts';
import type { ByteStream } from './byte-stream.ts';
import { type AttemptOwner, DialAttempt, type Dialing } from './dial-attempt.ts';
import { DialerHandshake, type HandshakeIdentity, NONCE_BYTES } from './handshake.ts';
import type { Link, LinkOptions, LinkOwner } from './link.ts';
import type { StreamFramer } from './stream-framer.ts';

/** What the endpoint needs of its module. */
export interface EndpointModule extends BtlModule {
  readonly upcalls: Upcalls;
  readonly identity: HandshakeIdentity;
  readonly options: StreamOptions;
  /** The rails of the module rest: what is sent now ends that. */
  readonly isResting: boolean;
  /** Something has happened to this rail, or will: the next progress() looks at all of them. */
  stir(endpoint?: StreamEndpoint): void;
  /** Opens a stream to the peer of this endpoint. */
  dial(endpoint: StreamEndpoint): Dialing;
  /** The live epoch over a stream whose handshake is done; bytes of the stream belong to the link from here on. */
  link(endpoint: StreamEndpoint, epoch: number, stream: ByteStream, framer: StreamFramer, now: number, aliveMs: number): Link;
  /** Something is owed to the next progress(): it is asked for, but not from inside this call. */
  due(): void;
  /** Whether the peer's kernel has left unacknowledged what was sent on this stream for too long, where that can be asked. */
  isUnanswered?(stream: ByteStream): boolean;
  /** Incarnation of the peer's process as its published address tells it. */
  incarnationOf?(remote: unknown): number | undefined;
  /** An epoch of this endpoint began. */
  epochBegan?(endpoint: StreamEndpoint): void;
}

export interface StreamOptions extends LinkOptions {
  connectTimeoutMs: number;
  /** While a connection is not open, another is begun at the same time, this often. */
  connectAgainMs: number;
  handshakeTimeoutMs: number;
  handshakesMax: number;
  /** What waits in alive time asks for a turn this often. */
  aliveTurnMs: number;
}

/** An attempt that came to nothing, to be told in the next progress(). */
interface FailedAttempt {
  epoch: number;
  reason: RailReason;
  highestEpoch: number | undefined;
}

export class StreamEndpoint implements BtlEndpoint, LinkOwner, AttemptOwner {
  readonly module: EndpointModule;
  readonly peer: number;
  readonly rail: number;
  readonly plan: RailPlan;
  readonly counters = newRailByteCounters();
  byeDelivered = false;
  readonly upcalls: Upcalls;
  readonly options: StreamOptions;
  /** The peer's newest address as its module published it. */
  remote: unknown;
  /** Proves what belongs to the live epoch besides its connection (liveness); undefined when none is live. */
  epochKey: Uint8Array | undefined = undefined;
  private window = 1024 * 1024;
  private link: Link | undefined = undefined;
  /** Epochs that a fence ended and whose upcalls are owed. */
  private cutLinks: Link[] = [];
  private attempt: DialAttempt | undefined = undefined;
  private failures: FailedAttempt[] = [];
  private fencedEpoch = 0;
  private now = 0;
  private aliveMs = 0;
  private upcallsMade = 0;

  constructor(module: EndpointModule, peer: number, rail: number, plan: RailPlan, remote: unknown) {
    this.module = module;
    this.peer = peer;
    this.rail = rail;
    this.plan = plan;
    this.remote = remote;
    this.upcalls = module.upcalls;
    this.options = module.options;
    if (plan.attributes.isSteady !== true) settleShape(this);
  }

  get endpoint(): BtlEndpoint {
    return this;
  }

  get epoch(): number {
    return this.link?.epoch ?? 0;
  }

  get outstandingBytes(): number {
    const bytes = this.link?.outstandingBytes ?? 0;
    return this.cutLinks.length === 0 ? bytes : this.cutLinks.reduce((sum, link) => sum + link.outstandingBytes, bytes);
  }

  get windowBytes(): number {
    return this.window;
  }
  set windowBytes(bytes: number) {
    this.window = bytes;
    if (this.link?.writableNow(bytes)) this.module.due();
  }

  /** The stream of the live epoch: its addresses are what the route checks look at. */
  get liveStream(): ByteStream | undefined {
    return this.link?.stream;
  }

  /** Highest epoch that can no longer be accepted. */
  get highestEpoch(): number {
    return Math.max(this.fencedEpoch, this.epoch);
  }

  // --- down-calls

  connect(epoch: number): void {
    const { rank } = this.module.identity;
    assert(rank !== this.peer, `rank ${rank} does not dial itself over ${this.module.name}`);
    this.attempt?.cancel();
    this.attempt = undefined;
    this.module.due();
    if (epoch <= this.highestEpoch) {
      const text = `epoch ${epoch} of rail ${this.plan.key} to rank ${this.peer} is over: the highest is ${this.highestEpoch}`;
      this.failures.push({ epoch, reason: { kind: 'fenced', text }, highestEpoch: this.highestEpoch });
      return;
    }
    const handshake = new DialerHandshake(
      this.module.identity,
      this.peer,
      this.rail,
      this.plan.key,
      epoch,
      new Uint8Array(randomBytes(NONCE_BYTES)),
    );
    this.attempt = new DialAttempt(this, epoch, handshake, {
      dial: () => this.module.dial(this),
      timeoutMs: this.options.connectTimeoutMs,
      againMs: this.options.connectAgainMs,
      aliveTurnMs: this.options.aliveTurnMs,
      incarnation: this.module.incarnationOf?.(this.remote),
      isUnanswered: this.module.isUnanswered?.bind(this.module),
    });
  }

  cancelConnect(): void {
    this.attempt?.cancel();
    this.attempt = undefined;
    this.failures = [];
  }

  send(frame: Frame): SendResult {
    if (this.module.isResting) this.module.stir(this);
    return this.link === undefined ? DOWN : this.link.send(frame, this.window);
  }

  flush(): void {
    this.link?.flush();
  }

  letGo(): boolean {
    // A link that was cut reads nothing any more.
    return this.link?.letGo() ?? true;
  }

  revokeSink(sink: Sink): void {
    if (this.link?.revokeSink(sink)) return;
    for (const link of this.cutLinks) if (link.revokeSink(sink)) return;
  }

  fence(epoch: number, reason: RailReason): void {
    this.fencedEpoch = Math.max(this.fencedEpoch, epoch);
    const link = this.link;
    if (link !== undefined && link.epoch <= epoch) {
      link.cut(reason);
      this.link = undefined;
      this.cutLinks.push(link);
    }
    const attempt = this.attempt;
    if (attempt !== undefined && !attempt.done && attempt.epoch <= epoch) {
      attempt.cancel();
      this.attempt = undefined;
      this.failures.push({ epoch: attempt.epoch, reason, highestEpoch: undefined });
    }
    this.module.due();
  }

  probe(probeId: number, paddingBytes = 0): void {
    this.module.stir(this);
    this.link?.probe(probeId, paddingBytes);
  }

  bye(): void {
    this.link?.bye();
    this.module.due();
  }

  // --- called by the module inside progress()

  /** progress() would find nothing to do: with many peers most rails have nothing to do most of the time. */
  isQuiet(now: number, aliveMs: number): boolean {
    if (this.attempt !== undefined || this.cutLinks.length > 0 || this.failures.length > 0) return false;
    return this.link === undefined || this.link.isQuiet(now, aliveMs);
  }

  progress(now: number, aliveMs: number): number {
    this.now = now;
    this.aliveMs = aliveMs;
    this.upcallsMade = 0;
    this.tellWhatIsOwed();
    this.pollLink(now, aliveMs);
    const attempt = this.attempt;
    if (attempt !== undefined) {
      const before = this.link;
      attempt.progress(now, aliveMs);
      if (attempt.done && this.attempt === attempt) this.attempt = undefined;
      if (this.link !== before) this.pollLink(now, aliveMs);
    }
    const link = this.link;
    if (link?.takeWritable(this.window)) {
      this.upcallsMade++;
      this.upcalls.onWritable(this);
    }
    return this.upcallsMade;
  }

  nextDeadline(): number {
    if (this.cutLinks.length > 0 || this.failures.length > 0) return 0;
    const at = this.attempt === undefined ? Number.POSITIVE_INFINITY : this.attempt.nextDeadline();
    return this.link === undefined ? at : Math.min(at, this.link.nextDeadline(this.window));
  }

  /** No epoch is live, none is dialled, and no upcall is owed. */
  get isIdle(): boolean {
    return this.link === undefined && this.attempt === undefined && this.cutLinks.length === 0 && this.failures.length === 0;
  }

  /** The network may be there again: an attempt that waits for an answer to its SYN sends another one now. */
  dialAgain(): void {
    this.attempt?.dialAgain();
  }

  /** The module found that this rail must not go on (route, carrier, silence). */
  drop(reason: RailReason): number {
    const link = this.link;
    if (link === undefined) return 0;
    link.cut(reason);
    this.link = undefined;
    return link.close();
  }

  /** The acceptor's side: a newer epoch was admitted; the WELCOME is written already. */
  accepted(epoch: number, stream: ByteStream, framer: StreamFramer, epochKey: Uint8Array, now: number, aliveMs: number): number {
    this.now = now;
    this.aliveMs = aliveMs;
    this.upcallsMade = 0;
    // What an attempt of this side asked for has come.
    this.attempt?.cancel();
    this.attempt = undefined;
    this.module.stir();
    this.becomeLive(epoch, stream, framer, epochKey);
    return this.upcallsMade;
  }

  /** The module closes: nothing is told any more. Returns the stream that still writes out its last bytes, if any. */
  shutdown(): ByteStream | undefined {
    this.attempt?.cancel();
    this.attempt = undefined;
    this.failures = [];
    this.cutLinks = [];
    const link = this.link;
    this.link = undefined;
    if (link === undefined) return undefined;
    if (link.endsWell()) return link.stream;
    link.cut({ kind: 'shutdown', text: 'this side is closing down' });
    return undefined;
  }

  // --- AttemptOwner

  liveProgressBytes(): number | undefined {
    return this.link?.receivedByPeerBytes;
  }

  welcomed(attempt: DialAttempt, stream: ByteStream, framer: StreamFramer): void {
    if (this.becomeLive(attempt.epoch, stream, framer, attempt.epochKey())) return;
    this.tellFailure({ epoch: attempt.epoch, reason: { kind: 'fenced', text: 'fenced while it came up' }, highestEpoch: undefined });
  }

  attemptFailed(attempt: DialAttempt, reason: RailReason, highestEpoch?: number): void {
    if (this.attempt === attempt) this.attempt = undefined;
    if (reason.kind === 'refused' || reason.kind === 'damaged' || reason.kind === 'route') {
      const where = attempt.remoteAddress === '' ? '' : ` at ${attempt.remoteAddress}`;
      // A peer that leaves the job is nothing to warn of.
      const level = reason.code === 'ERR_FINALIZED' ? 'debug' : 'warn';
      this.upcalls.log(level, `${this.module.name}: rail ${this.plan.key} to rank ${this.peer}${where} did not come up: ${reason.text}`);
    }
    this.tellFailure({ epoch: attempt.epoch, reason, highestEpoch });
  }

  private becomeLive(epoch: number, stream: ByteStream, framer: StreamFramer, epochKey: Uint8Array): boolean {
    this.tellWhatIsOwed();
    const older = this.link;
    if (older !== undefined) {
      this.upcallsMade += this.drop({ kind: 'replaced', text: `epoch ${epoch} took over from epoch ${older.epoch}` });
    }
    // An upcall may have fenced the new epoch too: then it is over before it began.
    if (epoch <= this.fencedEpoch) {
      framer.stop();
      stream.destroy();
      return false;
    }
    this.byeDelivered = false;
    this.link = this.module.link(this, epoch, stream, framer, this.now, this.aliveMs);
    if (this.plan.attributes.isSteady !== true) for (const part of [this.link, stream, framer]) settleShape(part);
    this.epochKey = epochKey;
    this.module.epochBegan?.(this);
    this.upcallsMade++;
    this.upcalls.onConnected(this, epoch);
    return true;
  }

  /** The times as they were handed to progress(): from fields of floating point each call would make new values. */
  private pollLink(now: number, aliveMs: number): void {
    const link = this.link;
    if (link === undefined) return;
    this.upcallsMade += link.poll(now, aliveMs);
    // When a fence from inside an upcall ended it, it is among cutLinks, for the next progress().
    if (link.end === undefined || this.link !== link) return;
    this.link = undefined;
    this.upcallsMade += link.close();
  }

  private tellWhatIsOwed(): void {
    while (this.cutLinks.length > 0) {
      const link = this.cutLinks[0];
      this.upcallsMade += link.close();
      this.cutLinks.splice(this.cutLinks.indexOf(link), 1);
    }
    while (this.failures.length > 0) this.tellFailure(this.failures.shift() as FailedAttempt);
  }

  private tellFailure(failed: FailedAttempt): void {
    this.upcallsMade++;
    this.upcalls.onConnectFailed(this, failed.epoch, failed.reason, failed.highestEpoch);
  }
}
