// One rail behind the fault interposer. It keeps its own list of accepted frames, so that each completes exactly once whatever is done to
// the rail below, and it decides itself when an epoch ends. A frame that is to be lost is never handed to the inner endpoint (outbound), or
// is refused by throwing ERR_PROTOCOL into the inner BTL (inbound), which then never counts it (B2). That ends the inner epoch; this end,
// and counts that arrive on a silent rail, are hidden until the layers above fence the rail, its liveness check strikes, or the rail is
// restored.
import { MultirailError } from '../../errors.ts';
import type { Prng } from '../../util/prng.ts';
import {
  type BtlEndpoint,
  type BtlModule,
  BUSY,
  type CompletionStatus,
  DELIVERED,
  DOWN,
  type Frame,
  fitsWindow,
  IN_DOUBT,
  OK,
  type OneSidedOp,
  type RailPlan,
  type RailReason,
  REFUSED,
  type Registration,
  type SendResult,
  type Sink,
} from '../btl.ts';
import { BadPath, type BadPathKind } from './bad-path.ts';
import { type Entry, type FaultHost, halfOf, type OpenSink, type Work } from './fault-entry.ts';
import type { PullMode } from './fault-plan.ts';

/** normal: carries. inside: as normal, until the next placed frame. The others: pulled. */
type State = 'normal' | PullMode;

const NEVER = Number.POSITIVE_INFINITY;
/**
 * How often a slow rail that drains is asked for an answer of its own. Over a real one bytes of a long frame arrive all the time, and are
 * reported; here a frame is held back whole, and the answer reports what arrived in its place: a slow rail is not a silent one.
 */
const TRICKLE_MS = 20;
/** The engine counts its probes up from 1. */
const TRICKLE_PROBE_ID = 0;
/** About what a probe takes on the wire. */
const PROBE_BYTES = 32;
const PROBES_HELD_MAX = 64;

export class FaultEndpoint implements BtlEndpoint {
  readonly module: BtlModule;
  readonly inner: BtlEndpoint;
  private readonly host: FaultHost;
  private state: State = 'normal';
  /** Epoch that is live for the layers above. */
  private live = 0;
  private ending: { epoch: number; reason: RailReason } | null = null;
  /** The inner epoch ended while the rail was silent. */
  private hiddenEnd: RailReason | null = null;
  private readonly entries = new Map<Frame | OneSidedOp, Entry>();
  private entryBytes = 0;
  private heldCount = 0;
  private openSink: OpenSink | null = null;
  private blocked = false;
  private byeHeld = false;
  private byeSaid = false;
  private byeHidden = false;
  /** With the moment at which each leaves, on a bad path; 0: behind all frames that are held back. */
  private probesHeld: { probeId: number; paddingBytes: number; dueMs: number }[] = [];
  private busyUntilMs = 0;
  private stalledUntilMs = 0;
  private detectAtMs = NEVER;
  /** The rail is lossy or slow in what it sends. */
  private bad: BadPath | null = null;
  /** When the first frame that is held back on a bad path leaves. */
  private headDueMs = 0;
  private nextTrickleMs = 0;
  private trickles = false;
  private corruptNext: 'header' | 'payload' | null = null;
  private attempt: { epoch: number; failAtMs: number; reason: RailReason } | null = null;
  private dialled = 0;

  constructor(module: BtlModule, inner: BtlEndpoint, host: FaultHost) {
    this.module = module;
    this.inner = inner;
    this.host = host;
    if (inner.register) this.register = (memory) => inner.register?.(memory);
    if (inner.put) this.put = (op) => this.accept({ frame: null, op }, op.bytes, true);
    if (inner.get) this.get = (op) => this.accept({ frame: null, op }, op.bytes, true);
  }

  register?: (memory: readonly Uint8Array[]) => Registration | undefined;
  put?: (op: OneSidedOp) => SendResult;
  get?: (op: OneSidedOp) => SendResult;

  get byeDelivered(): boolean {
    return this.inner.byeDelivered;
  }
  get peer(): number {
    return this.inner.peer;
  }
  get rail(): number {
    return this.inner.rail;
  }
  get plan(): RailPlan {
    return this.inner.plan;
  }
  get counters(): BtlEndpoint['counters'] {
    return this.inner.counters;
  }
  get epoch(): number {
    return this.live;
  }
  get outstandingBytes(): number {
    return this.entryBytes;
  }
  get windowBytes(): number {
    return this.inner.windowBytes;
  }
  set windowBytes(bytes: number) {
    this.inner.windowBytes = bytes;
  }

  /** Connections are refused: the cable is out. */
  get isPulled(): boolean {
    return this.state !== 'normal' && this.state !== 'inside';
  }
  private get outSilent(): boolean {
    return this.state === 'silent' || this.state === 'silent-out';
  }
  private get inSilent(): boolean {
    return this.state === 'silent' || this.state === 'silent-in';
  }
  private get isHolding(): boolean {
    if (this.outSilent || this.hiddenEnd !== null || this.heldCount > 0) return true;
    return this.host.now < this.stalledUntilMs || (this.bad !== null && this.host.now < this.bad.standsUntilMs);
  }

  private injected(text: string, kind: RailReason['kind'] = 'injected'): RailReason {
    return { kind, text: `rail ${this.plan.key} to rank ${this.peer}: ${text} (fault interposer)` };
  }

  // --- faults; as down-calls, they never call up

  pull(mode: PullMode): void {
    if (this.isPulled) return;
    this.state = mode;
    if (mode === 'error') this.end(this.injected('pulled'));
    if (this.inSilent && this.openSink !== null) {
      this.openSink.spoiled = true;
      this.inner.revokeSink(this.openSink.inner);
    }
    if (mode.startsWith('silent') && this.plan.attributes.liveness === 'self') this.detectAtMs = this.host.now + this.host.railTimeoutMs;
    if (this.isPulled && this.dialled > 0) {
      // A handshake under way goes silent, and times out.
      this.inner.cancelConnect();
      this.attempt = {
        epoch: this.dialled,
        failAtMs: this.host.now + this.host.connectTimeoutMs,
        reason: this.injected('pulled', 'timeout'),
      };
      this.dialled = 0;
    }
    this.host.wake();
  }

  /** From now on what is sent goes over such a path, until restore(). */
  goBad(how: BadPathKind, prng: Prng): void {
    const { now } = this.host;
    this.bad = new BadPath(how, prng, now, this.inner.outstandingBytes);
    // What is held back already goes over it, too.
    for (const entry of this.entries.values()) if (!entry.given) entry.dueMs = this.takeDue(this.bad, entry.bytes);
    this.headDueMs = 0;
    this.host.wake();
  }

  private takeDue(bad: BadPath, bytes: number): number {
    const { now, railTimeoutMs } = this.host;
    const fromMs = Math.max(now, bad.standsUntilMs);
    const dueMs = bad.take(now, bytes, this.entries.size > 0);
    // A rail that checks itself takes a stream that stands still for a dead one; one that drains slowly is heard of.
    const notices = bad.kind === 'lossy' && this.plan.attributes.liveness === 'self' && dueMs - fromMs > railTimeoutMs;
    if (notices) this.detectAtMs = Math.min(this.detectAtMs, fromMs + railTimeoutMs);
    return dueMs;
  }

  restore(): void {
    if (this.bad !== null) {
      this.bad = null;
      this.headDueMs = 0;
      for (const held of [...this.entries.values(), ...this.probesHeld]) held.dueMs = 0;
      if (this.state === 'normal') this.detectAtMs = NEVER;
      this.host.wake();
    }
    if (this.state === 'normal') return;
    this.state = 'normal';
    this.detectAtMs = NEVER;
    if (this.hiddenEnd !== null) this.end(this.hiddenEnd);
    this.host.wake();
  }

  busy(forMs: number): void {
    this.busyUntilMs = this.host.now + forMs;
  }

  stall(forMs: number): void {
    this.stalledUntilMs = this.host.now + forMs;
  }

  corrupt(part: 'header' | 'payload'): void {
    this.corruptNext = part;
  }

  // --- down-calls

  connect(epoch: number): void {
    if (!this.isPulled) {
      this.dialled = epoch;
      this.inner.connect(epoch);
      return;
    }
    const isSilent = this.state !== 'error';
    this.attempt = {
      epoch,
      failAtMs: isSilent ? this.host.now + this.host.connectTimeoutMs : this.host.now,
      reason: this.injected('pulled', isSilent ? 'timeout' : 'injected'),
    };
    this.host.wake();
  }

  cancelConnect(): void {
    this.attempt = null;
    if (this.dialled > 0) this.inner.cancelConnect();
    this.dialled = 0;
  }

  send(frame: Frame): SendResult {
    return this.accept({ frame, op: null }, frame.header.length + frame.payloadBytes, frame.payloadBytes > 0);
  }

  private accept(work: Work, bytes: number, isData: boolean): SendResult {
    if (this.live === 0 || this.byeSaid) return DOWN;
    if (this.host.now < this.busyUntilMs) return this.refuse();
    if (work.frame !== null && this.corruptNext === 'payload' && isData && !this.isHolding) {
      // Refused at the peer for its payload, as far as anyone can see: it never leaves, and is reported in the next progress().
      this.corruptNext = null;
      this.add(work, bytes, { given: true, dueMs: 0, settled: REFUSED });
      this.inner.counters.framesRefused += 1;
      this.host.wake();
      return OK;
    }
    const { bad, isHolding } = this;
    if (isHolding || bad !== null) {
      if (!fitsWindow(this.entryBytes, bytes, isData, this.inner.windowBytes)) return this.refuse();
      const dueMs = bad === null ? 0 : this.takeDue(bad, bytes);
      if (isHolding || dueMs > this.host.now) {
        if (this.heldCount === 0) this.headDueMs = dueMs;
        this.add(work, bytes, { given: false, dueMs, settled: undefined });
        this.heldCount += 1;
        return OK;
      }
    }
    const result = this.give(work);
    if (result === OK) this.add(work, bytes, { given: true, dueMs: 0, settled: undefined });
    // The inner endpoint is down and has not said so yet: its onRailDown is on its way.
    return result;
  }

  private refuse(): SendResult {
    this.blocked = true;
    this.host.wake();
    return BUSY;
  }

  private add(work: Work, bytes: number, state: Pick<Entry, 'given' | 'dueMs' | 'settled'>): void {
    this.entries.set(work.frame ?? work.op, { work, bytes, ...state });
    this.entryBytes += bytes;
  }

  private give(work: Work): SendResult {
    if (work.frame !== null) return this.inner.send(work.frame);
    return (work.op.kind === 'put' ? this.inner.put?.(work.op) : this.inner.get?.(work.op)) ?? DOWN;
  }

  flush(): void {
    if (!this.isHolding) this.inner.flush();
  }

  letGo(): boolean {
    // Frames that are held back here have not been given to anybody who could copy them.
    return this.heldCount === 0 && (this.inner.letGo?.() ?? false);
  }

  revokeSink(sink: Sink): void {
    if (this.openSink?.outer !== sink) return;
    sink.revoked = true;
    this.inner.revokeSink(this.openSink.inner);
  }

  fence(epoch: number, reason: RailReason): void {
    this.inner.fence(epoch, reason);
    if (this.attempt !== null && this.attempt.epoch <= epoch) {
      this.attempt.failAtMs = this.host.now;
      this.attempt.reason = reason;
    }
    if (this.live > 0 && this.live <= epoch) this.end(reason);
    this.host.wake();
  }

  probe(probeId: number, paddingBytes = 0): void {
    if (this.live === 0 || this.outSilent || this.hiddenEnd !== null) return;
    // A probe may be lost, and waits behind what is queued, as any frame.
    const dueMs = this.bad === null ? 0 : this.takeDue(this.bad, PROBE_BYTES + paddingBytes);
    if (this.isHolding || dueMs > this.host.now) {
      if (this.probesHeld.length < PROBES_HELD_MAX) this.probesHeld.push({ probeId, paddingBytes, dueMs });
    } else this.inner.probe(probeId, paddingBytes);
  }

  bye(): void {
    if (this.live === 0 || this.byeSaid) return;
    this.byeSaid = true;
    if (this.isHolding) this.byeHeld = true;
    else this.inner.bye();
  }

  /** The one door out of a live epoch. The upcalls follow once the inner endpoint has let go of every frame. */
  private end(reason: RailReason): void {
    if (this.live === 0) return;
    this.ending = { epoch: this.live, reason };
    // Also where the inner epoch is over already: then this changes nothing.
    this.inner.fence(this.live, reason);
    this.live = 0;
    this.hiddenEnd = null;
  }

  // --- upcalls of the inner endpoint, inside progress()

  innerConnected(epoch: number): void {
    this.finish();
    if (this.isPulled) {
      // It slipped through while the rail was being pulled: nobody hears of it.
      this.inner.fence(epoch, this.injected('pulled'));
      return;
    }
    this.dialled = 0;
    this.bad?.begin(this.host.now);
    this.live = epoch;
    this.byeSaid = false;
    this.host.counted();
    this.host.upcalls.onConnected(this, epoch);
  }

  innerConnectFailed(epoch: number, reason: RailReason, highestEpoch?: number): void {
    if (this.dialled !== epoch) return;
    this.dialled = 0;
    this.host.counted();
    if (highestEpoch === undefined) this.host.upcalls.onConnectFailed(this, epoch, reason);
    else this.host.upcalls.onConnectFailed(this, epoch, reason, highestEpoch);
  }

  innerRailDown(epoch: number, reason: RailReason): void {
    if (epoch !== this.live) return;
    const ownDoing = this.state === 'error' || this.openSink?.spoiled === true;
    if (this.outSilent || this.inSilent) this.hiddenEnd = reason;
    else this.end(ownDoing ? this.injected('pulled') : reason);
  }

  innerCompleted(epoch: number, of: Frame | OneSidedOp, status: CompletionStatus): void {
    const entry = this.entries.get(of);
    if (entry === undefined) return;
    if (this.ending?.epoch === epoch || this.hiddenEnd !== null || this.inSilent) {
      entry.settled = status;
      return;
    }
    this.complete(entry, epoch, status);
  }

  private complete(entry: Entry, epoch: number, status: CompletionStatus): void {
    const { work } = entry;
    this.entries.delete(work.frame ?? work.op);
    this.entryBytes -= entry.bytes;
    if (!entry.given) this.heldCount -= 1;
    this.host.counted();
    if (work.frame !== null) this.host.upcalls.onCompleted(this, epoch, work.frame, status);
    else this.host.upcalls.onOneSidedCompleted(this, epoch, work.op, status);
  }

  /** Throws into the inner BTL when the frame must not count. */
  private refuseInbound(epoch: number): void {
    if (this.live !== epoch || this.inSilent || this.hiddenEnd !== null || this.state === 'error') {
      throw new MultirailError('ERR_PROTOCOL', this.injected('pulled').text);
    }
    if (this.corruptNext === 'header') {
      this.corruptNext = null;
      throw new MultirailError('ERR_PROTOCOL', this.injected('header damaged').text);
    }
  }

  innerSinkFor(epoch: number, header: Uint8Array, payloadBytes: number): Sink {
    this.refuseInbound(epoch);
    this.host.counted();
    const outer = this.host.upcalls.sinkFor(this, epoch, header, payloadBytes);
    const inner: Sink = { views: outer.views, revoked: outer.revoked };
    this.openSink = { outer, inner, spoiled: false };
    if (this.state === 'inside' && payloadBytes > 0) {
      inner.views = halfOf(outer.views, payloadBytes);
      this.openSink.spoiled = true;
    }
    return inner;
  }

  innerFrame(epoch: number, header: Uint8Array, payload: Uint8Array, sink: Sink | null): void {
    this.refuseInbound(epoch);
    const open = this.openSink;
    if (sink !== null && open?.spoiled) {
      this.state = this.state === 'inside' ? 'error' : this.state;
      throw new MultirailError('ERR_PROTOCOL', this.injected('cut inside a frame').text);
    }
    if (sink !== null) this.openSink = null;
    this.host.counted();
    this.host.upcalls.onFrame(this, epoch, header, payload, sink === null ? null : (open?.outer ?? sink));
  }

  innerSinkDropped(epoch: number): void {
    // With the end of an epoch it is dropped by finish().
    if (this.live !== epoch || this.hiddenEnd !== null || this.openSink === null) return;
    const { outer } = this.openSink;
    this.openSink = null;
    this.host.counted();
    this.host.upcalls.onSinkDropped(this, epoch, outer);
  }

  innerWritable(): void {
    this.blocked = true;
  }

  innerProbeAnswered(epoch: number, probeId: number): void {
    if (this.trickles && probeId === TRICKLE_PROBE_ID) return;
    if (this.live !== epoch || this.inSilent) return;
    this.host.counted();
    this.host.upcalls.onProbeAnswered(this, epoch, probeId);
  }

  innerBye(epoch: number): void {
    if (this.live !== epoch) return;
    if (this.inSilent) {
      this.byeHidden = true;
      return;
    }
    this.host.counted();
    this.host.upcalls.onBye(this, epoch);
  }

  innerReport(epoch: number, receivedBytes: number, peerAliveMs: number): void {
    if (this.live !== epoch || this.inSilent) return;
    this.host.counted();
    this.host.upcalls.onReport(this, epoch, receivedBytes, peerAliveMs);
  }

  // --- driven by the module

  get isEnding(): boolean {
    return this.ending !== null;
  }

  get isIdle(): boolean {
    return this.ending === null && this.live === 0 && this.attempt === null && this.dialled === 0 && this.entries.size === 0;
  }

  /** Before the inner progress(): what has become due. */
  begins(): void {
    if (this.host.now >= this.detectAtMs) {
      this.detectAtMs = NEVER;
      this.end(this.injected('nothing comes through', 'silent'));
    }
  }

  /** After the inner progress(): the inner endpoint has let go of every frame of an epoch that ended. */
  finishes(): void {
    const { host } = this;
    this.finish();
    if (this.attempt !== null && host.now >= this.attempt.failAtMs) {
      const { epoch, reason } = this.attempt;
      this.attempt = null;
      host.counted();
      host.upcalls.onConnectFailed(this, epoch, reason);
    }
    if (this.live === 0) return;
    const epoch = this.live;
    if (!this.inSilent && this.hiddenEnd === null) {
      if (this.byeHidden) {
        this.byeHidden = false;
        host.counted();
        host.upcalls.onBye(this, epoch);
      }
      for (const entry of [...this.entries.values()]) {
        if (entry.settled !== undefined && this.live === epoch) this.complete(entry, epoch, entry.settled);
      }
    }
    if (this.live !== epoch) return this.finish();
    if (!this.outSilent && this.hiddenEnd === null && host.now >= this.stalledUntilMs) this.giveHeld();
    this.trickle();
    // After BYE both ways the inner rail may end without a word.
    if (this.hiddenEnd === null && this.inner.epoch !== epoch && !this.outSilent && !this.inSilent) {
      this.live = 0;
      for (const entry of [...this.entries.values()]) this.complete(entry, epoch, DELIVERED);
    }
    if (this.blocked && this.live > 0 && host.now >= this.busyUntilMs && this.entryBytes < Math.max(1, this.inner.windowBytes)) {
      this.blocked = false;
      host.counted();
      host.upcalls.onWritable(this);
    }
  }

  private giveHeld(): void {
    if (this.heldCount > 0) {
      for (const entry of this.entries.values()) {
        if (entry.given) continue;
        this.headDueMs = entry.dueMs;
        if (entry.dueMs > this.host.now) break;
        const result = this.give(entry.work);
        if (result !== OK) break;
        entry.given = true;
        this.heldCount -= 1;
      }
      this.inner.flush();
    }
    while (this.probesHeld.length > 0) {
      const { probeId, paddingBytes, dueMs } = this.probesHeld[0];
      if (dueMs === 0 ? this.heldCount > 0 : dueMs > this.host.now) break;
      this.probesHeld.shift();
      this.inner.probe(probeId, paddingBytes);
    }
    if (this.heldCount > 0 || (this.bad !== null && this.host.now < this.bad.standsUntilMs)) return;
    if (this.byeHeld) {
      this.byeHeld = false;
      this.inner.bye();
      this.inner.flush();
    }
  }

  /** Something drains over a slow path: it is to be heard of. */
  private trickle(): void {
    const { now } = this.host;
    if (this.bad?.kind !== 'slow' || this.heldCount === 0 || this.outSilent || this.hiddenEnd !== null) return;
    if (now < this.nextTrickleMs) return;
    this.nextTrickleMs = now + TRICKLE_MS;
    this.trickles = true;
    this.inner.probe(TRICKLE_PROBE_ID);
  }

  /** onRailDown, then the sink, then every frame in doubt, in the order accepted. */
  private finish(): void {
    if (this.ending === null) return;
    const { epoch, reason } = this.ending;
    const entries = [...this.entries.values()];
    const open = this.openSink;
    this.ending = null;
    this.openSink = null;
    this.entries.clear();
    this.entryBytes = 0;
    this.heldCount = 0;
    this.blocked = false;
    this.byeHeld = false;
    this.byeSaid = false;
    this.byeHidden = false;
    this.probesHeld = [];
    this.detectAtMs = NEVER;
    this.host.counted();
    this.host.upcalls.onRailDown(this, epoch, reason);
    if (open !== null) this.host.upcalls.onSinkDropped(this, epoch, open.outer);
    for (const { work } of entries) {
      this.host.counted();
      if (work.frame !== null) this.host.upcalls.onCompleted(this, epoch, work.frame, IN_DOUBT);
      else this.host.upcalls.onOneSidedCompleted(this, epoch, work.op, IN_DOUBT);
    }
  }

  /** When something that is held back may leave; 0 when nothing is. */
  private get opensAtMs(): number {
    const { bad, heldCount, probesHeld } = this;
    let opensMs = NEVER;
    if (heldCount > 0) opensMs = bad?.kind === 'slow' ? Math.min(this.headDueMs, this.nextTrickleMs) : this.headDueMs;
    if (probesHeld.length > 0 && probesHeld[0].dueMs > 0) opensMs = Math.min(opensMs, probesHeld[0].dueMs);
    else if (heldCount === 0 && (probesHeld.length > 0 || this.byeHeld)) opensMs = Math.min(opensMs, bad?.standsUntilMs ?? 0);
    return opensMs === NEVER ? 0 : Math.max(opensMs, this.stalledUntilMs);
  }

  nextDeadlineMs(): number {
    if (this.ending !== null) return this.host.now;
    let due = Math.min(this.detectAtMs, this.attempt?.failAtMs ?? NEVER);
    if (this.blocked && this.host.now < this.busyUntilMs) due = Math.min(due, this.busyUntilMs);
    else if (this.blocked && this.live > 0 && this.entryBytes < Math.max(1, this.inner.windowBytes)) due = this.host.now;
    const opensAtMs = this.opensAtMs;
    if (this.host.now < opensAtMs && !this.outSilent) due = Math.min(due, opensAtMs);
    else if (this.heldCount > 0 && !this.outSilent && this.hiddenEnd === null && this.inner.outstandingBytes === 0) due = this.host.now;
    for (const { settled } of this.entries.values()) {
      if (settled !== undefined && !this.inSilent && this.hiddenEnd === null) due = this.host.now;
      // Settled entries stand in front: the list is in the order accepted.
      break;
    }
    return due;
  }
}
