// Two ranks in one process over rails in memory: the production engine, PML and BML on either side, and rails on which a test
// holds, refuses, half-delivers and loses frames by hand. Time is a number that the test moves.
// Used by test/unit/pml and test/unit/progress.
import {
  type BtlEndpoint,
  type BtlModule,
  BUSY,
  type CompletionStatus,
  DELIVERED,
  DOWN,
  type Frame,
  IN_DOUBT,
  newRailByteCounters,
  OK,
  type RailPlan,
  type RailReason,
  REFUSED,
  type SendResult,
  type Sink,
} from '../../src/btl/btl.ts';
import { PACKET_NAMES } from '../../src/pml/hdr.ts';
import type { RecvRequest, SendRequest } from '../../src/pml/records.ts';
import { Engine, type EngineOptions } from '../../src/progress/engine.ts';
import type { RailEvent } from '../../src/progress/rail-events.ts';
import { Iov } from '../../src/util/iov.ts';

/** One frame on its way. `type` is the packet's name, or BYE. */
export interface Item {
  readonly from: 0 | 1;
  readonly rail: number;
  readonly epoch: number;
  readonly type: string;
  readonly header: Uint8Array;
  readonly payload: Uint8Array;
  readonly placed: boolean;
  readonly frame: Frame | null;
  state: 'sent' | 'half' | 'arrived' | 'refused';
  sink: Sink | null;
}

/**
 * What becomes of a frame when its turn comes: `pass` delivers and reports it, `hold` leaves it (and what is behind it) on the
 * rail, `mute` delivers it and does not report it, `half` writes half of a placed payload and stops, `refuse` says NACK.
 */
export type Verdict = 'pass' | 'hold' | 'mute' | 'half' | 'refuse';

const plan = (rail: number): RailPlan => ({
  key: `mem#${rail}`,
  detail: undefined,
  attributes: {
    bandwidthMBps: 100,
    latencyUs: 10 + rail,
    exclusivity: 1,
    role: 'active',
    canPut: false,
    canGet: false,
    liveness: 'self',
    frameBytesMax: 1 << 20,
  },
});

class MemModule implements BtlModule {
  readonly name = 'mem';
  /** Upcalls that are due. */
  queue: (() => void)[] = [];
  readonly endpoints: MemEndpoint[] = [];
  address = () => ({});
  plan = () => [];
  endpoint(): BtlEndpoint {
    throw new Error('not used');
  }
  remoteAddressChanged(): void {}
  forgetPeer(): boolean {
    if (this.queue.length > 0 || this.endpoints.some(({ epoch }) => epoch !== 0)) return false;
    this.endpoints.length = 0;
    return true;
  }
  open = () => Promise.resolve();
  close = () => Promise.resolve();
  nextDeadline = () => (this.queue.length > 0 ? 0 : Number.POSITIVE_INFINITY);
  progress(): number {
    const due = this.queue;
    this.queue = [];
    for (const upcall of due) upcall();
    return due.length;
  }
}

class MemEndpoint implements BtlEndpoint {
  readonly module: MemModule;
  readonly peer: number;
  readonly rail: number;
  readonly plan: RailPlan;
  readonly counters = newRailByteCounters();
  epoch = 0;
  byeDelivered = false;
  windowBytes = 1 << 20;
  items: Item[] = [];
  /** Frames refused as BUSY wait for onWritable. */
  private wanted = false;
  private readonly pair: MemPair;
  private readonly side: 0 | 1;
  private byeSaid = false;

  constructor(pair: MemPair, side: 0 | 1, rail: number) {
    this.pair = pair;
    this.side = side;
    this.module = pair.modules[side];
    this.peer = 1 - side;
    this.rail = rail;
    this.plan = plan(rail);
  }

  get upcalls(): Engine {
    return this.pair.engines[this.side];
  }
  get outstandingBytes(): number {
    let bytes = 0;
    for (const item of this.items) bytes += item.header.length + item.payload.length;
    return bytes;
  }

  connect(epoch: number): void {
    this.pair.connect(this.rail, epoch);
  }
  cancelConnect(): void {}
  flush(): void {}

  letGo(): boolean {
    return this.pair.letsGo;
  }

  send(frame: Frame): SendResult {
    if (this.epoch === 0 || this.byeSaid) return DOWN;
    if (this.pair.busy.has(this.rail) || (frame.payloadBytes > 0 && this.outstandingBytes >= this.windowBytes)) {
      this.wanted = true;
      return BUSY;
    }
    this.place(PACKET_NAMES[frame.header[1]], frame);
    return OK;
  }

  private place(type: string, frame: Frame | null): void {
    const { side: from, rail, epoch } = this;
    const payload = Buffer.concat(frame?.payload ?? []);
    const header = frame?.header.slice() ?? new Uint8Array(0);
    this.items.push({ from, rail, epoch, type, header, payload, placed: frame?.placed ?? false, frame, state: 'sent', sink: null });
    this.pair.sent.push(type);
  }

  bye(): void {
    if (this.epoch === 0 || this.byeSaid) return;
    this.byeSaid = true;
    this.place('BYE', null);
  }

  probe(probeId: number): void {
    const { epoch } = this;
    this.module.queue.push(() => {
      if (this.epoch === epoch && epoch !== 0) this.upcalls.onProbeAnswered(this, epoch, probeId);
    });
  }

  revokeSink(sink: Sink): void {
    sink.revoked = true;
  }

  fence(epoch: number, reason: RailReason): void {
    if (this.epoch !== 0 && this.epoch <= epoch) this.end(reason);
  }

  live(epoch: number): void {
    if (this.epoch !== 0) this.end({ kind: 'replaced', text: 'a newer epoch took over' });
    this.module.queue.push(() => {
      this.epoch = epoch;
      this.byeSaid = false;
      this.byeDelivered = false;
      this.upcalls.onConnected(this, epoch);
    });
  }

  /** B3: railDown, then an open sink of the frame that was coming in, then every frame in doubt, in order. */
  end(reason: RailReason): void {
    const { epoch, items } = this;
    if (epoch === 0) return;
    this.epoch = 0;
    this.items = [];
    const incoming = this.pair.endpoints[1 - this.side][this.rail].items.find((item) => item.state === 'half' && item.epoch === epoch);
    const sink = incoming?.sink ?? null;
    if (incoming !== undefined) incoming.sink = null;
    this.module.queue.push(() => {
      this.upcalls.onRailDown(this, epoch, reason);
      if (sink !== null) this.upcalls.onSinkDropped(this, epoch, sink);
      for (const item of items) if (item.frame !== null) this.upcalls.onCompleted(this, epoch, item.frame, IN_DOUBT);
    });
  }

  /** Reports what has arrived, in order. */
  report(): boolean {
    let any = false;
    while (this.items.length > 0 && (this.items[0].state === 'arrived' || this.items[0].state === 'refused')) {
      const item = this.items[0];
      if (this.pair.verdictOf(item) === 'mute') break;
      this.items.shift();
      any = true;
      const { epoch } = this;
      const status: CompletionStatus = item.state === 'refused' ? REFUSED : DELIVERED;
      this.module.queue.push(() => {
        if (item.frame === null) this.byeDelivered = true;
        else this.upcalls.onCompleted(this, epoch, item.frame, status);
      });
    }
    if (this.wanted && !this.pair.busy.has(this.rail) && this.outstandingBytes < this.windowBytes) {
      this.wanted = false;
      any = true;
      this.module.queue.push(() => this.upcalls.onWritable(this));
    }
    return any;
  }

  /** As a rail in memory: the frame as words, somewhere in memory that is overwritten afterwards. */
  private offersWords({ header, payload }: Item): boolean {
    const words = new Int32Array(3 + header.length / 4 + Math.ceil(payload.length / 4));
    new Uint8Array(words.buffer).set(header, 12);
    new Uint8Array(words.buffer).set(payload, 12 + header.length);
    const taken = this.upcalls.onFrameWords(this, words, 3, header.length, 3 + header.length / 4, payload.length);
    if (taken) this.pair.takenAsWords++;
    words.fill(-1);
    return taken;
  }

  /** Hands up one frame of the other side. */
  take(item: Item, verdict: Verdict): void {
    const { upcalls, epoch } = this;
    if (item.frame === null) {
      this.module.queue.push(() => upcalls.onBye(this, epoch));
    } else {
      this.module.queue.push(() => {
        if (this.epoch !== epoch) return;
        if (verdict === 'refuse') {
          const sink = item.placed ? upcalls.sinkFor(this, epoch, item.header, item.payload.length) : null;
          if (sink !== null) upcalls.onSinkDropped(this, epoch, sink);
          return;
        }
        if (this.pair.offersWords && !item.placed && item.payload.length <= 128 && this.offersWords(item)) return;
        const header = item.header.slice();
        // A Buffer, as node:net hands up: its slice() is a view and not a copy.
        const payload = Buffer.from(item.payload);
        const sink = item.placed ? (item.sink ?? upcalls.sinkFor(this, epoch, header, payload.length)) : null;
        if (sink !== null && !sink.revoked) {
          let at = 0;
          const bytes = verdict === 'half' ? payload.subarray(0, payload.length >> 1) : payload;
          for (const view of sink.views) {
            const part = bytes.subarray(at, at + view.length);
            view.set(part);
            at += part.length;
          }
        }
        if (verdict === 'half') {
          item.sink = sink;
          return;
        }
        item.sink = null;
        upcalls.onFrame(this, epoch, header, item.placed ? new Uint8Array(0) : payload, sink);
        // Views are valid during the call only.
        header.fill(0xdd);
        payload.fill(0xdd);
      });
    }
    item.state = verdict === 'refuse' ? 'refused' : verdict === 'half' ? 'half' : 'arrived';
  }
}

export const OPTIONS: Omit<EngineOptions, 'rank'> = {
  peerTimeoutMs: 60_000,
  pml: {
    rank: 0,
    eagerLimitBytes: 1024,
    rndvInlineBytes: 256,
    fragBytes: 1024,
    retainedBytesMax: 64 * 1024,
    abandonedBytesMax: 64 * 1024,
    unexpectedBytesMax: 64 * 1024,
    traceEntries: 64,
  },
  bml: {
    rank: 0,
    crowd: 1,
    railTimeoutMs: 400,
    stallTimeoutMs: 60,
    trialMinMs: 50,
    trialMaxMs: 1200,
    probeIdleMs: 1000,
    redialMinMs: 50,
    redialMaxMs: 400,
    connectTimeoutMs: 600,
    holdsSpares: true,
    flapWindowMs: 10_000,
    flapHoldMaxMs: 1000,
    windowMinBytes: 64 * 1024,
    windowMaxBytes: 1 << 20,
    windowMs: 20,
    fragBytes: 1024,
    fragBytesMax: 1024,
    fragUs: 250,
  },
};

export class MemPair {
  nowMs = 0;
  readonly modules: [MemModule, MemModule] = [new MemModule(), new MemModule()];
  readonly engines: [Engine, Engine];
  readonly endpoints: [MemEndpoint[], MemEndpoint[]];
  readonly events: RailEvent[] = [];
  /** Names of all packets that were ever put on a rail. */
  sent: string[] = [];
  /** Rails that answer BUSY, and rails that cannot be connected. */
  readonly busy = new Set<number>();
  readonly unreachable = new Set<number>();
  /** Rails have copied what they were given. */
  letsGo = true;
  verdictOf: (item: Item) => Verdict = () => 'pass';
  /** Short frames are offered as words first; so many were taken so. */
  offersWords = false;
  takenAsWords = 0;
  /** Since when the two ends of a rail are not of the same epoch, by rail. */
  private readonly differSince: number[] = [];

  constructor(rails = 1, pml: Partial<EngineOptions['pml']> = {}) {
    const make = (rank: 0 | 1): Engine => {
      const driver = { now: () => this.nowMs, defer: () => {}, yield: () => {}, arm: () => {} };
      const hooks = rank === 0 ? { onRailEvent: (event: RailEvent) => this.events.push(event) } : {};
      const options = { ...OPTIONS, rank, pml: { ...OPTIONS.pml, ...pml, rank }, bml: { ...OPTIONS.bml, rank } };
      return new Engine(options, driver, hooks);
    };
    this.engines = [make(0), make(1)];
    const list = (side: 0 | 1) => Array.from({ length: rails }, (_, rail) => new MemEndpoint(this, side, rail));
    this.endpoints = [list(0), list(1)];
    for (const side of [0, 1] as const) {
      this.engines[side].addModule(this.modules[side]);
      this.modules[side].endpoints.push(...this.endpoints[side]);
      this.engines[side].addPeer(1 - side, 1, this.endpoints[side], pml.unexpectedBytesMax ?? OPTIONS.pml.unexpectedBytesMax);
    }
    this.run();
  }

  connect(rail: number, epoch: number): void {
    const [dialer, acceptor] = [this.endpoints[0][rail], this.endpoints[1][rail]];
    this.modules[0].queue.push(() => {
      if (this.unreachable.has(rail)) {
        return this.engines[0].onConnectFailed(dialer, epoch, { kind: 'timeout', text: 'unreachable' });
      }
      const hello = { rank: 0, incarnation: 1, rail, key: `mem#${rail}`, epoch };
      const admission = this.engines[1].admit(this.modules[1], hello);
      if (!admission.ok) {
        const reason: RailReason = { kind: 'refused', text: admission.reason };
        return this.engines[0].onConnectFailed(dialer, epoch, reason, admission.highestEpoch);
      }
      acceptor.live(epoch);
      dialer.live(epoch);
    });
  }

  /** Lets everything happen that can happen without time passing. */
  run(): void {
    for (let turns = 0; ; turns++) {
      if (turns > 20_000) throw new Error('this never ends');
      let moved = false;
      for (const engine of this.engines) engine.progress();
      for (const side of [0, 1] as const) {
        for (const endpoint of this.endpoints[side]) {
          if (this.carry(endpoint)) moved = true;
          if (endpoint.report()) moved = true;
        }
        if (this.modules[side].queue.length > 0) moved = true;
      }
      if (!moved) return;
    }
  }

  /** One frame at a time and rail, so that rails take turns. */
  private carry(endpoint: MemEndpoint): boolean {
    const item = endpoint.items.find(({ state }) => state === 'sent' || state === 'half');
    if (item === undefined) return false;
    const target = this.endpoints[1 - item.from][item.rail];
    const verdict = this.verdictOf(item);
    // The other side has ended this epoch, or waits for a frame that is held.
    if (target.epoch !== item.epoch || verdict === 'hold') return false;
    if (verdict === 'half' && item.state === 'half') return false;
    target.take(item, verdict);
    return true;
  }

  advance(ms: number): void {
    for (let left = ms; left > 0; left -= 10) {
      this.nowMs += Math.min(10, left);
      this.noticeSilence();
      this.run();
    }
  }

  /** Rails that check themselves (B7): an epoch that the other side has ended is over here too, after the rail timeout. */
  private noticeSilence(): void {
    for (const [rail, dialer] of this.endpoints[0].entries()) {
      const acceptor = this.endpoints[1][rail];
      if (dialer.epoch === acceptor.epoch) {
        this.differSince[rail] = this.nowMs;
        continue;
      }
      if (this.nowMs - (this.differSince[rail] ?? 0) < OPTIONS.bml.railTimeoutMs) continue;
      const stale = dialer.epoch !== 0 && (acceptor.epoch === 0 || dialer.epoch < acceptor.epoch) ? dialer : acceptor;
      stale.end({ kind: 'silent', text: 'the other side has ended this epoch' });
    }
  }

  /** The rail is lost: for both sides, or for one that alone notices. */
  cut(rail: number, side?: 0 | 1): void {
    this.unreachable.add(rail);
    for (const s of [0, 1] as const) {
      if (side === undefined || side === s) this.endpoints[s][rail].end({ kind: 'injected', text: 'cut by the test' });
    }
    this.run();
  }

  /** The rail can be had again: it comes back by itself. */
  restore(rail: number): void {
    this.unreachable.delete(rail);
    this.advance(2000);
  }

  /** What is on its way, oldest first per rail. */
  inFlight(from: 0 | 1): string[] {
    return this.endpoints[from].flatMap(({ items }) => items.map(({ type }) => type));
  }

  send(from: 0 | 1, bytes: Uint8Array, tag = 0, sync = false, ctx = 0): SendRequest {
    const request = this.engines[from].pml.isend(1 - from, ctx, tag, new Iov([bytes]), sync);
    this.run();
    return request;
  }

  recv(to: 0 | 1, bytes: Uint8Array, tag = 0, source = 1 - to, ctx = 0): RecvRequest {
    const request = this.engines[to].pml.irecv(source, ctx, tag, new Iov([bytes]));
    this.run();
    return request;
  }

  count(type: string): number {
    return this.sent.filter((sent) => sent === type).length;
  }

  /** Nothing is owed, held or outstanding any more (I6, I9). */
  leftovers(): string[] {
    const lines: string[] = [];
    for (const [rank, { pml }] of this.engines.entries()) {
      const peer = pml.peer(1 - rank);
      lines.push(...pml.undelivered(1 - rank));
      if (peer.heldBytes !== 0) lines.push(`rank ${rank} holds ${peer.heldBytes} unexpected bytes`);
      if (pml.retainedBytes !== 0) lines.push(`rank ${rank} retains ${pml.retainedBytes} bytes`);
      if (peer.copiesOnRail !== 0) lines.push(`rank ${rank} has ${peer.copiesOnRail} second copies on rails`);
      if (peer.restartNacks.size > 0 || peer.railDowns.size > 0) lines.push(`rank ${rank} owes something`);
    }
    return lines;
  }
}
