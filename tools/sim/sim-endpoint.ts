// One simulated rail to one peer: counts and completions, placed frames, connection attempts, the end of an epoch. It is as strict as the
// contract allows: header and payload are read as late as they may be, views are scribbled over after their upcall, nothing leaves before
// flush() or the next progress().
//
// States of an endpoint: `conn` null = DOWN, else LIVE; `attempt` = a handshake under way, next to a live epoch or not.
//   DOWN --helloOk/accept--> LIVE --fence, close, damage, loss, replaced, both BYE and close--> DOWN (endEpoch, one door)
import {
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
  type OneSidedOp,
  type RailPlan,
  type RailReason,
  REFUSED,
  type Registration,
  type SendResult,
  type Sink,
  type Upcalls,
} from '../../src/btl/btl.ts';
import { MultirailError } from '../../src/errors.ts';
import { assert } from '../../src/util/assert.ts';
import { EMPTY_BYTES } from '../../src/util/iov.ts';
import type { Prng } from '../../src/util/prng.ts';
import type { Fabric, SimLink } from './fabric.ts';
import { gather, scatter } from './gather.ts';
import type { Pipe } from './pipe.ts';
import { OneSided, type OneSidedRail } from './sim-one-sided.ts';
import { type CellItem, type HelloItem, ITEM_BYTES, type Parcel, type Report, type SimConn, type WireItem } from './wire.ts';

/** An accepted frame or BYE (frame null), in order of its number. */
interface Sent {
  frame: Frame | null;
  /** Where its payload is read when it leaves. */
  payload: readonly Uint8Array[];
  number: number;
  bytes: number;
  refused: boolean;
  /** Place in the order of everything accepted, one-sided operations included. */
  stamp: number;
}

interface Incoming {
  number: number;
  header: Uint8Array;
  payloadBytes: number;
  received: number;
  sink: Sink | null;
  damaged: boolean;
  prompt: boolean;
}

interface Attempt {
  epoch: number;
  /** Its name on the wire: the epoch, or for a request of the higher rank a number of its own, since no epoch comes of it. */
  wireEpoch: number;
  deadlineUs: number;
  /** The peer's kernel took the connection. */
  kernelAnswered: boolean;
}

/** An epoch that has ended and whose upcalls are still to be made. */
interface Ending {
  epoch: number;
  reason: RailReason;
  /** BYE went both ways: no onRailDown, and what was outstanding is delivered. */
  quiet: boolean;
  completions: { stamp: number; frame: Frame | null; op: OneSidedOp | null }[];
  sink: Sink | null;
}

/** Requests are numbered from here on, above all epochs. */
const REQUESTS_FROM = 2 ** 40;
const REFUSALS_WINDOW_US = 1_000_000;
const PARTIAL_REPORT_US = 20_000;

/** The module of an endpoint, as far as the endpoint uses it. */
export interface SimModule extends BtlModule {
  readonly fabric: Fabric;
  readonly upcalls: Upcalls;
  readonly rank: number;
  readonly secret: Uint8Array | undefined;
  readonly connectTimeoutUs: number;
  readonly ackFrames: number;
  readonly ackBytes: number;
  readonly ackDelayUs: number;
  readonly refusalsMax: number;
  readonly aliveMs: number;
  /** The first item of an attempt to connect. */
  helloOf(endpoint: BtlEndpoint, epoch: number): HelloItem;
  /** The other side knows the secret of the job. */
  trusts(secret: Uint8Array | undefined): boolean;
  note(text: string): void;
  wake(): void;
}

export class SimEndpoint implements OneSidedRail {
  readonly module: SimModule;
  readonly peer: number;
  readonly rail: number;
  readonly plan: RailPlan;
  readonly counters = newRailByteCounters();
  readonly link: SimLink;
  readonly oneSided: OneSided;
  outstandingBytes = 0;
  /** For the one-sided part and the module. */
  conn: SimConn | null = null;
  fencedEpoch = 0;
  private readonly out: Pipe;
  private readonly prng: Prng;
  private readonly registering: Prng;
  private window = 1024 * 1024;
  private attempt: Attempt | null = null;
  private requests = 0;
  private readonly endings: Ending[] = [];
  private failures: { epoch: number; reason: RailReason; highestEpoch: number | undefined }[] = [];
  /** Highest epoch that was ever live here. */
  private highestEpoch = 0;
  private lostReason: RailReason | null = null;
  // --- sending
  private sent: Sent[] = [];
  private sentHead = 0;
  private nextNumber = 1;
  private nextStamp = 1;
  private unflushed: Parcel[] = [];
  private blocked = false;
  private blockedBytes = 0;
  private blockedData = false;
  private burstUntilUs = 0;
  private byeSent = false;
  byeDelivered = false;
  private byeReceived = false;
  // --- receiving
  private incoming: Incoming | null = null;
  private scratch = EMPTY_BYTES;
  private inCount = 0;
  private inBytes = 0;
  private unreportedFrames = 0;
  private unreportedBytes = 0;
  private reportDueUs = Number.POSITIVE_INFINITY;
  private peerReport: Report | null = null;
  private refusalTimesUs: number[] = [];
  /** Numbers of refused frames whose NACK has not left: no report that leaves ahead of it may cover them. */
  private nacksQueued: number[] = [];

  constructor(module: SimModule, peer: number, rail: number, plan: RailPlan, link: SimLink) {
    this.module = module;
    this.peer = peer;
    this.rail = rail;
    this.plan = plan;
    this.link = link;
    this.out = link.from(module.rank);
    // Rails that check themselves ask their kernel.
    if (link.spec.liveness === 'self') this.out.onResent = () => this.counters.losses++;
    this.prng = link.prng.split(`endpoint ${module.rank}`);
    this.registering = link.prng.split(`registering ${module.rank}`);
    this.oneSided = new OneSided(this, link, this.out);
    if (plan.attributes.canPut || plan.attributes.canGet) this.register = (memory) => this.registerOrRefuse(memory);
    if (plan.attributes.canPut) this.put = (op) => this.oneSided.start(op);
    if (plan.attributes.canGet) this.get = (op) => this.oneSided.start(op);
  }

  register?: (memory: readonly Uint8Array[]) => Registration | undefined;
  put?: (op: OneSidedOp) => SendResult;
  get?: (op: OneSidedOp) => SendResult;

  get epoch(): number {
    return this.conn?.epoch ?? 0;
  }

  get windowBytes(): number {
    return this.window;
  }

  set windowBytes(bytes: number) {
    this.window = bytes;
    if (this.blocked) this.module.wake();
  }

  /** No epoch is live, none is dialled, and no upcall is owed. */
  get isIdle(): boolean {
    const isOver = this.conn === null && this.attempt === null && this.lostReason === null;
    return isOver && this.endings.length === 0 && this.failures.length === 0;
  }

  // --- down-calls

  connect(epoch: number): void {
    assert(this.module.rank !== this.peer, `rank ${this.module.rank} dials itself`);
    assert(this.attempt === null, `rail ${this.link.name}: a connection attempt is under way`);
    assert(epoch > this.epoch, `rail ${this.link.name}: epoch ${epoch} is not above the live one`);
    const { fabric } = this.module;
    if (epoch <= this.fencedEpoch) {
      this.failConnect(epoch, { kind: 'refused', text: `rail ${this.link.name}: epoch ${epoch} is fenced` }, this.fencedEpoch);
      return;
    }
    const wireEpoch = this.module.rank < this.peer ? epoch : REQUESTS_FROM + this.requests++;
    this.attempt = { epoch, wireEpoch, deadlineUs: fabric.nowUs + this.module.connectTimeoutUs, kernelAnswered: false };
    const hello = { ...this.module.helloOf(this, epoch), epoch: wireEpoch };
    this.out.push({ conn: null, bytes: 128, capture: () => hello });
    this.module.wake();
  }

  cancelConnect(): void {
    if (this.attempt === null) return;
    const { wireEpoch } = this.attempt;
    this.attempt = null;
    this.pushClose(wireEpoch);
  }

  send(frame: Frame): SendResult {
    if (this.conn === null || this.byeSent) {
      if (!this.byeSent) this.module.fabric.breach(`rank ${this.module.rank} gave a frame to rail ${this.link.name}, whose epoch is over`);
      return DOWN;
    }
    assert(frame.header.length <= HEADER_BYTES_MAX, `header of ${frame.header.length} bytes`);
    assert(frame.payloadBytes <= this.plan.attributes.frameBytesMax, `payload of ${frame.payloadBytes} bytes`);
    assert(frame.payloadBytes === frame.payload.reduce((sum, part) => sum + part.length, 0), 'payloadBytes is not the sum of the parts');
    const bytes = frame.header.length + frame.payloadBytes;
    if (!this.admits(bytes, frame.payloadBytes > 0)) return BUSY;
    const { payload } = frame;
    const entry: Sent = { frame, payload, number: this.nextNumber++, bytes, refused: false, stamp: this.nextStamp++ };
    frame.railFrameNumber = entry.number;
    this.sent.push(entry);
    this.outstandingBytes += bytes;
    this.counters.framesSent += 1;
    this.counters.bytesSent += bytes;
    this.counters.payloadBytesSent += frame.payloadBytes;
    this.queueCells(frame, entry, this.conn);
    return OK;
  }

  private registerOrRefuse(memory: readonly Uint8Array[]): Registration | undefined {
    const { registerRefusedPer10k } = this.link.spec;
    if (registerRefusedPer10k > 0 && this.registering.chance(registerRefusedPer10k, 10_000)) return undefined;
    return this.oneSided.register(memory);
  }

  /** The window and the seeded bursts of BUSY, for frames and one-sided operations. */
  admits(bytes: number, isData: boolean): boolean {
    const { fabric } = this.module;
    const { spec } = this.link;
    if (fabric.nowUs >= this.burstUntilUs && this.prng.chance(spec.busyPer10k, 10_000)) {
      this.burstUntilUs = fabric.nowUs + this.prng.between(1, spec.busyUsMax);
    }
    if (this.hasRoom(bytes, isData) && fabric.nowUs >= this.burstUntilUs) return true;
    // The least that was refused: onWritable comes when that fits, or it would be refused again.
    if (!this.blocked || bytes < this.blockedBytes) this.blockedBytes = bytes;
    this.blockedData = this.blocked ? this.blockedData && isData : isData;
    this.blocked = true;
    this.module.wake();
    return false;
  }

  private hasRoom(bytes: number, isData: boolean): boolean {
    return fitsWindow(this.outstandingBytes, bytes, isData, this.window);
  }

  takeStamp(): number {
    return this.nextStamp++;
  }

  flush(): void {
    const parcels = this.unflushed;
    if (parcels.length === 0) return;
    this.unflushed = [];
    for (const parcel of parcels) this.out.push(parcel);
  }

  /** Payloads are read when they leave: those that wait are copied, or, on a link that cannot tell, waited for. */
  letGo(): boolean {
    const waiting = this.sent.slice(this.sentHead).filter(({ payload }) => payload.length > 0);
    if (!this.link.spec.letsGo) return waiting.length === 0;
    for (const entry of waiting) entry.payload = [gather(entry.payload, 0, (entry.frame as Frame).payloadBytes)];
    return true;
  }

  /** To leave at the next flush(), or in the next progress(). */
  queue(parcel: Parcel): void {
    if (this.unflushed.length === 0) this.module.wake();
    this.unflushed.push(parcel);
  }

  revokeSink(sink: Sink): void {
    if (this.incoming?.sink === sink) sink.revoked = true;
  }

  fence(epoch: number, reason: RailReason): void {
    this.fencedEpoch = Math.max(this.fencedEpoch, epoch);
    if (this.attempt !== null && this.attempt.epoch <= epoch) {
      const { epoch: dead, wireEpoch } = this.attempt;
      this.attempt = null;
      this.pushClose(wireEpoch);
      this.failConnect(dead, reason, undefined);
    }
    if (this.conn !== null && this.conn.epoch <= epoch) this.endEpoch(reason, true);
    this.module.note(`fence ${this.link.name} e${epoch}`);
  }

  probe(probeId: number, paddingBytes = 0): void {
    const { conn } = this;
    if (conn === null) return;
    this.out.push({ conn, bytes: ITEM_BYTES + paddingBytes, capture: () => ({ kind: 'probe', epoch: conn.epoch, probeId }) });
  }

  bye(): void {
    const { conn } = this;
    if (conn === null || this.byeSent) return;
    this.byeSent = true;
    const entry: Sent = { frame: null, payload: [], number: this.nextNumber++, bytes: 0, refused: false, stamp: this.nextStamp++ };
    this.sent.push(entry);
    this.queue({
      conn,
      bytes: ITEM_BYTES,
      capture: () => ({ kind: 'bye', epoch: conn.epoch, number: entry.number, report: this.takeReport() }),
    });
  }

  // --- what leaves

  private queueCells(frame: Frame, entry: Sent, conn: SimConn): void {
    const { number } = entry;
    const { spec } = this.link;
    const total = frame.payloadBytes;
    const byChance = total === 0 ? 1 : this.prng.between(1, Math.min(spec.cellsMax, total));
    const cells = Math.max(byChance, Math.ceil(total / spec.cellBytesMax), 1);
    const step = Math.ceil(total / cells);
    for (let i = 0, at = 0; i < cells; i++, at += step) {
      const from = Math.min(at, total);
      const to = i === cells - 1 ? total : Math.min(at + step, total);
      const first = i === 0;
      const last = i === cells - 1;
      this.queue({
        conn,
        bytes: to - from + (first ? frame.header.length + ITEM_BYTES : 0),
        capture: (): CellItem => {
          this.module.fabric.touches(entry.payload, `rail ${this.link.name} reads a frame`);
          return {
            kind: 'cell',
            epoch: conn.epoch,
            number,
            first,
            last,
            header: first ? frame.header.slice() : null,
            payloadBytes: total,
            placed: frame.placed,
            prompt: frame.prompt,
            chunk: gather(entry.payload, from, to - from),
            headerDamaged: false,
            payloadDamaged: false,
            report: this.takeReport(),
          };
        },
      });
    }
  }

  private takeReport(): Report {
    this.unreportedFrames = 0;
    this.unreportedBytes = 0;
    this.reportDueUs = Number.POSITIVE_INFINITY;
    const count = this.nacksQueued.length > 0 ? this.nacksQueued[0] - 1 : this.inCount;
    return { count, receivedBytes: this.inBytes, aliveMs: this.module.aliveMs };
  }

  private pushCount(): void {
    const { conn } = this;
    if (conn === null) return;
    this.reportDueUs = Number.POSITIVE_INFINITY;
    this.out.push({ conn, bytes: ITEM_BYTES, capture: () => ({ kind: 'count', epoch: conn.epoch, report: this.takeReport() }) });
  }

  private pushClose(epoch: number): void {
    if (this.link.mute.has(this.module.rank)) return;
    this.out.push({ conn: null, bytes: ITEM_BYTES, capture: () => ({ kind: 'close', epoch }) });
  }

  // --- the end of an epoch: the one door from LIVE to DOWN

  private endEpoch(reason: RailReason, tellPeer: boolean): void {
    const { conn } = this;
    if (conn === null) return;
    conn.ended = true;
    this.conn = null;
    this.module.note(`end ${this.link.name} e${conn.epoch} ${reason.kind}`);
    // Only the peer's own close after both BYEs is a clean end; a rail that breaks then may have taken our BYE with it.
    // A close in good order comes after the count for our BYE; any other close says nothing of it.
    const quiet = this.byeDelivered && this.byeReceived && reason.kind === 'closed';
    const completions = this.sent
      .slice(this.sentHead)
      .map(({ stamp, frame }) => ({ stamp, frame, op: null as OneSidedOp | null }))
      .concat(this.oneSided.takeAll().map(({ stamp, op }) => ({ stamp, frame: null, op })))
      .sort((a, b) => a.stamp - b.stamp);
    this.endings.push({
      epoch: conn.epoch,
      reason,
      quiet,
      completions,
      sink: this.incoming?.sink ?? null,
    });
    this.sent = [];
    this.sentHead = 0;
    this.outstandingBytes = 0;
    this.unflushed = [];
    this.blocked = false;
    this.burstUntilUs = 0;
    this.incoming = null;
    this.lostReason = null;
    this.reportDueUs = Number.POSITIVE_INFINITY;
    this.peerReport = null;
    if (tellPeer) this.pushClose(conn.epoch);
    this.module.wake();
  }

  private begin(epoch: number): void {
    assert(this.conn === null, 'an epoch begins after the older one has ended');
    this.conn = { epoch, ended: false, gap: false };
    this.highestEpoch = Math.max(this.highestEpoch, epoch);
    this.nextNumber = 1;
    this.byeSent = false;
    this.byeDelivered = false;
    this.byeReceived = false;
    this.inCount = 0;
    this.inBytes = 0;
    this.unreportedFrames = 0;
    this.unreportedBytes = 0;
    this.refusalTimesUs = [];
    this.nacksQueued = [];
    const { fabric } = this.module;
    if (!fabric.isSound(this.link)) fabric.armDetection(this.link, 'silent', 'nothing comes through');
  }

  private raiseEndings(): void {
    const { upcalls } = this.module;
    for (let ending = this.endings.shift(); ending !== undefined; ending = this.endings.shift()) {
      const { epoch, reason, quiet } = ending;
      if (!quiet) upcalls.onRailDown(this, epoch, reason);
      if (ending.sink !== null) upcalls.onSinkDropped(this, epoch, ending.sink);
      const status = quiet ? DELIVERED : IN_DOUBT;
      for (const { frame, op } of ending.completions) {
        if (frame !== null) upcalls.onCompleted(this, epoch, frame, status);
        else if (op !== null) upcalls.onOneSidedCompleted(this, epoch, op, status);
      }
    }
  }

  // --- handshake

  private failConnect(epoch: number, reason: RailReason, highestEpoch: number | undefined): void {
    this.failures.push({ epoch, reason, highestEpoch });
    this.module.wake();
  }

  /** The acceptor's side, after the engine admitted the peer. Answers with the epoch that stands in the way, if any. */
  accept(epoch: number): number | undefined {
    const highest = Math.max(this.fencedEpoch, this.highestEpoch);
    if (epoch <= highest) return highest;
    // What a request of this side asked for has come.
    this.cancelConnect();
    this.endEpoch({ kind: 'replaced', text: `rail ${this.link.name}: epoch ${epoch} takes over` }, false);
    this.raiseEndings();
    // An upcall may have fenced this very epoch.
    if (epoch <= this.fencedEpoch || this.conn !== null) return Math.max(this.fencedEpoch, this.highestEpoch);
    this.begin(epoch);
    const proof = this.module.secret;
    this.out.push({ conn: this.conn, bytes: 96, capture: () => ({ kind: 'helloOk', epoch, proof }) });
    this.module.upcalls.onConnected(this, epoch);
    return undefined;
  }

  private connected(epoch: number): void {
    if (this.attempt?.wireEpoch !== epoch) {
      // Given up here, accepted there: by that the older epoch has ended at the peer.
      if (this.conn?.epoch === epoch) return;
      this.pushClose(epoch);
      if (this.conn !== null && this.conn.epoch < epoch) {
        this.endEpoch({ kind: 'closed', text: `rail ${this.link.name}: the peer went over to epoch ${epoch}` }, false);
      }
      return;
    }
    this.attempt = null;
    this.endEpoch({ kind: 'replaced', text: `rail ${this.link.name}: epoch ${epoch} takes over` }, false);
    this.raiseEndings();
    if (epoch <= this.fencedEpoch || this.conn !== null) {
      this.pushClose(epoch);
      return;
    }
    this.begin(epoch);
    this.module.upcalls.onConnected(this, epoch);
  }

  // --- what arrives, inside progress()

  handle(item: WireItem): void {
    const { conn, attempt } = this;
    switch (item.kind) {
      case 'kernelAck':
        if (attempt?.wireEpoch === item.epoch) attempt.kernelAnswered = true;
        return;
      case 'helloOk':
        if (!this.module.trusts(item.proof))
          this.module.upcalls.log('warn', `rail ${this.link.name}: the acceptor does not know the secret`);
        else this.connected(item.epoch);
        return;
      case 'helloRefused':
        if (attempt?.wireEpoch !== item.epoch) return;
        this.attempt = null;
        this.failConnect(
          attempt.epoch,
          {
            kind: item.isAsked === true ? 'asked' : 'refused',
            text: `rail ${this.link.name}: ${item.text}`,
            ...(item.code === undefined ? {} : { code: item.code }),
          },
          item.highestEpoch,
        );
        return;
      case 'close':
        if (attempt?.wireEpoch === item.epoch) {
          this.attempt = null;
          this.failConnect(attempt.epoch, { kind: 'refused', text: `rail ${this.link.name}: closed in the handshake` }, undefined);
        }
        if (conn?.epoch === item.epoch) {
          this.endEpoch({ kind: 'closed', text: `rail ${this.link.name}: rank ${this.peer} closed the connection` }, false);
        }
        return;
    }
    if (conn === null || conn.epoch !== item.epoch) {
      // A stream that is over here: the kernel resets it, once for all that is still on the way.
      if ((item.kind === 'cell' && item.last) || item.kind === 'probe') this.pushClose(item.epoch);
      return;
    }
    if (attempt !== null) {
      this.attempt = null;
      this.pushClose(attempt.wireEpoch);
      this.failConnect(attempt.epoch, { kind: 'busy', text: `rail ${this.link.name}: epoch ${conn.epoch} is alive` }, undefined);
    }
    this.inBytes += ITEM_BYTES + ('chunk' in item ? item.chunk.length : 0);
    if ('report' in item && item.report !== null) {
      this.takeCount(item.report, conn);
      if (this.conn !== conn) return;
    }
    switch (item.kind) {
      case 'cell':
        this.takeCell(item, conn);
        return;
      case 'nack': {
        const entry = this.sent[this.sentHead + item.number - (this.sent[this.sentHead]?.number ?? 0)];
        if (entry?.number === item.number) entry.refused = true;
        return;
      }
      case 'probe': {
        const { probeId } = item;
        this.out.push({
          conn,
          bytes: ITEM_BYTES,
          capture: () => ({ kind: 'probeAnswer', epoch: conn.epoch, probeId, report: this.takeReport() }),
        });
        return;
      }
      case 'probeAnswer':
        this.module.upcalls.onProbeAnswered(this, conn.epoch, item.probeId);
        return;
      case 'bye':
        this.byeReceived = true;
        this.module.upcalls.onBye(this, conn.epoch);
        if (this.conn === conn) this.counted(0, true);
        return;
      case 'putAck':
      case 'remoteError':
      case 'getData':
        this.oneSided.finish(item, conn);
        return;
    }
  }

  /** The peer's kernel reset us because of a one-sided access that it does not allow. */
  failRemote(text: string): void {
    this.endEpoch({ kind: 'error', text: `rail ${this.link.name}: ${text}` }, true);
  }

  private takeCount(report: Report, conn: SimConn): void {
    this.peerReport = report;
    while (this.conn === conn && this.sentHead < this.sent.length && this.sent[this.sentHead].number <= report.count) {
      const entry = this.sent[this.sentHead++];
      if (this.sentHead > 1024 && this.sentHead * 2 > this.sent.length) {
        this.sent = this.sent.slice(this.sentHead);
        this.sentHead = 0;
      }
      this.release(entry.bytes);
      if (entry.frame === null) this.byeDelivered = true;
      else {
        this.module.upcalls.onCompleted(this, conn.epoch, entry.frame, entry.refused ? REFUSED : DELIVERED);
      }
    }
  }

  release(bytes: number): void {
    this.outstandingBytes -= bytes;
  }

  private takeCell(cell: CellItem, conn: SimConn): void {
    if (cell.first && !this.openFrame(cell, conn)) return;
    const incoming = this.incoming;
    assert(incoming !== null && incoming.number === cell.number, `rail ${this.link.name}: a piece of frame ${cell.number} out of order`);
    if (cell.payloadDamaged) incoming.damaged = true;
    if (incoming.sink === null) this.scratch.set(cell.chunk, incoming.received);
    else if (!incoming.sink.revoked) {
      this.module.fabric.touches(incoming.sink.views, `rail ${this.link.name} writes a fragment`);
      scatter(incoming.sink.views, incoming.received, cell.chunk);
    }
    incoming.received += cell.chunk.length;
    // A long frame on a slow rail: the bytes heard are reported before it is whole (B7: silent means no bytes).
    this.reportDueUs = Math.min(this.reportDueUs, this.module.fabric.nowUs + PARTIAL_REPORT_US);
    if (cell.last) this.closeFrame(incoming, conn);
  }

  private openFrame(cell: CellItem, conn: SimConn): boolean {
    const { upcalls } = this.module;
    if (cell.headerDamaged || cell.header === null || cell.payloadBytes > this.plan.attributes.frameBytesMax) {
      this.endEpoch({ kind: 'damaged', text: `rail ${this.link.name}: the header of frame ${cell.number} failed its check` }, true);
      return false;
    }
    const incoming: Incoming = {
      number: cell.number,
      header: cell.header,
      payloadBytes: cell.payloadBytes,
      received: 0,
      sink: null,
      damaged: false,
      prompt: cell.prompt,
    };
    if (cell.placed) {
      const header = cell.header.slice();
      const sink = this.guarded(() => upcalls.sinkFor(this, conn.epoch, header, cell.payloadBytes));
      header.fill(0xdb);
      if (sink === undefined) return false;
      if (this.conn !== conn) {
        // The upcall itself fenced this epoch: the sink is given back with it.
        const ending = this.endings.at(-1);
        if (ending?.epoch === conn.epoch) ending.sink = sink;
        else upcalls.onSinkDropped(this, conn.epoch, sink);
        return false;
      }
      const room = sink.views.reduce((sum, view) => sum + view.length, 0);
      assert(sink.views.length === 0 || room === cell.payloadBytes, `sink of ${room} bytes for a payload of ${cell.payloadBytes}`);
      incoming.sink = sink;
    } else if (this.scratch.length < cell.payloadBytes) {
      this.scratch = new Uint8Array(cell.payloadBytes);
    }
    this.incoming = incoming;
    return true;
  }

  private closeFrame(incoming: Incoming, conn: SimConn): void {
    const { upcalls, fabric } = this.module;
    this.counters.bytesReceived += incoming.header.length + incoming.payloadBytes;
    if (incoming.damaged) {
      this.incoming = null;
      this.counters.framesRefused += 1;
      const { number } = incoming;
      this.nacksQueued.push(number);
      const capture = (): WireItem => {
        this.nacksQueued.shift();
        return { kind: 'nack', epoch: conn.epoch, number };
      };
      this.out.push({ conn, bytes: ITEM_BYTES, capture });
      this.refusalTimesUs = this.refusalTimesUs.filter((us) => us > fabric.nowUs - REFUSALS_WINDOW_US).concat(fabric.nowUs);
      if (incoming.sink !== null) upcalls.onSinkDropped(this, conn.epoch, incoming.sink);
      if (this.conn !== conn) return;
      this.counted(incoming.header.length + incoming.payloadBytes, true);
      if (this.refusalTimesUs.length > this.module.refusalsMax) {
        this.endEpoch(
          { kind: 'refusals', text: `rail ${this.link.name}: ${this.refusalTimesUs.length} damaged payloads in a second` },
          true,
        );
      }
      return;
    }
    const header = incoming.header;
    const payload = incoming.sink === null ? this.scratch.subarray(0, incoming.payloadBytes) : EMPTY_BYTES;
    // The sink is whole and no longer ours: nothing that happens in the upcall gives it back a second time.
    this.incoming = null;
    const done = this.guarded(() => {
      upcalls.onFrame(this, conn.epoch, header, payload, incoming.sink);
      return true;
    });
    // Views are valid during the call only; whoever kept one reads this.
    header.fill(0xdb);
    payload.fill(0xdb);
    if (done === undefined || this.conn !== conn) return;
    this.counters.framesReceived += 1;
    this.counters.payloadBytesReceived += incoming.payloadBytes;
    this.counted(header.length + incoming.payloadBytes, incoming.prompt);
  }

  /** Runs an upcall that may find that the packet breaks the protocol; undefined = it did, and the epoch has ended. */
  private guarded<T>(call: () => T): T | undefined {
    try {
      return call();
    } catch (error) {
      if (!(error instanceof MultirailError) || error.code !== 'ERR_PROTOCOL') throw error;
      this.module.fabric.breach(`rank ${this.peer} breaks the protocol towards rank ${this.module.rank}: ${error.message}`);
      this.endEpoch({ kind: 'damaged', text: `rail ${this.link.name}: ${error.message}`, code: error.code }, true);
      return undefined;
    }
  }

  private counted(bytes: number, prompt: boolean): void {
    this.inCount += 1;
    this.unreportedFrames += 1;
    this.unreportedBytes += bytes;
    const { module } = this;
    const now = module.fabric.nowUs;
    if (prompt || this.unreportedFrames >= module.ackFrames || this.unreportedBytes >= module.ackBytes) this.reportDueUs = now;
    else this.reportDueUs = Math.min(this.reportDueUs, now + module.ackDelayUs);
  }

  // --- driven by the module

  lost(reason: RailReason): void {
    this.lostReason = reason;
  }

  /** Before the inbox: ends that were decided by down-calls, and a loss that throws away what was received. */
  begins(): void {
    // A host that finds its rail dead may or may not still read what had come in: both happen.
    if (this.lostReason !== null && this.prng.chance(1, 2)) this.endEpoch(this.lostReason, true);
    this.raiseEndings();
  }

  /** After the inbox: losses, failed attempts, counts, room. */
  finishes(): void {
    const { upcalls, fabric } = this.module;
    const now = fabric.nowUs;
    if (this.lostReason !== null) this.endEpoch(this.lostReason, true);
    this.raiseEndings();
    if (this.attempt !== null && now >= this.attempt.deadlineUs) {
      const { epoch, wireEpoch, kernelAnswered } = this.attempt;
      this.attempt = null;
      this.pushClose(wireEpoch);
      const reason: RailReason = kernelAnswered
        ? { kind: 'busy', text: `rail ${this.link.name}: connected, but rank ${this.peer} did not answer` }
        : { kind: 'timeout', text: `rail ${this.link.name}: no answer from rank ${this.peer}` };
      this.failConnect(epoch, reason, undefined);
    }
    while (this.failures.length > 0) {
      const failures = this.failures;
      this.failures = [];
      for (const { epoch, reason, highestEpoch } of failures) upcalls.onConnectFailed(this, epoch, reason, highestEpoch);
    }
    if (this.peerReport !== null && this.conn !== null) {
      const report = this.peerReport;
      this.peerReport = null;
      upcalls.onReport(this, this.conn.epoch, report.receivedBytes, report.aliveMs);
    }
    if (this.blocked && this.conn !== null && now >= this.burstUntilUs && this.hasRoom(this.blockedBytes, this.blockedData)) {
      this.blocked = false;
      upcalls.onWritable(this);
    }
    this.flush();
    if (now >= this.reportDueUs) this.pushCount();
  }

  nextDeadlineUs(): number {
    const { nowUs } = this.module.fabric;
    if (this.endings.length > 0 || this.failures.length > 0 || this.unflushed.length > 0 || this.lostReason !== null) return nowUs;
    let due = this.reportDueUs;
    if (this.attempt !== null) due = Math.min(due, this.attempt.deadlineUs);
    if (this.blocked) {
      if (this.hasRoom(this.blockedBytes, this.blockedData)) due = Math.min(due, Math.max(nowUs, this.burstUntilUs));
    }
    return due;
  }

  /** The module closes: the count is reported, the peer told, and nothing comes up any more. */
  shutdown(): void {
    if (this.attempt !== null) this.cancelConnect();
    this.flush();
    if (this.unreportedFrames > 0) this.pushCount();
    const { conn } = this;
    if (conn !== null) {
      this.oneSided.deregisterAll();
      this.out.push({
        conn: null,
        bytes: ITEM_BYTES,
        capture: () => {
          conn.ended = true;
          return { kind: 'close', epoch: conn.epoch };
        },
      });
    }
    this.fencedEpoch = Number.MAX_SAFE_INTEGER;
    this.conn = null;
    this.endings.length = 0;
    this.failures = [];
    this.incoming = null;
  }
}
