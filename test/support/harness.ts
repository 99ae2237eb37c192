// What the BTL tests share: a recorder in place of the engine, frames, and modules over streams in memory.
import type { ByteStream, StreamReader, StreamStatus } from '../../src/btl/base/byte-stream.ts';
import type { Dialing } from '../../src/btl/base/dial-attempt.ts';
import type { StreamEndpoint } from '../../src/btl/base/stream-endpoint.ts';
import { type InboundCheck, StreamModule } from '../../src/btl/base/stream-module.ts';
import {
  type Admission,
  type BtlContext,
  type BtlEndpoint,
  type BtlModule,
  type CompletionStatus,
  type Frame,
  type Hello,
  OK,
  type OneSidedOp,
  type RailPlan,
  type RailReason,
  type Sink,
  type Upcalls,
} from '../../src/btl/btl.ts';
import { ParamTable } from '../../src/params.ts';

/** Stands for the engine: notes every upcall, answers admit and sinkFor as the test says. */
export class Recorder implements Upcalls {
  events: string[] = [];
  logs: string[] = [];
  completions: { epoch: number; number: number; status: CompletionStatus }[] = [];
  endpoints = new Map<string, BtlEndpoint>();
  reports: { receivedBytes: number; peerAliveMs: number }[] = [];
  sinks: Sink[] = [];
  wakes = 0;
  inProgress = false;
  onWake: () => void = () => {};
  admitAnswer: (hello: Hello) => Admission | undefined = () => undefined;
  onFrameDo: (header: Uint8Array, payload: Uint8Array, sink: Sink | null) => void = () => {};
  makeSink: (header: Uint8Array, bytes: number) => Sink = (_header, bytes) => ({ views: [new Uint8Array(bytes)], revoked: false });

  wake(): void {
    this.wakes++;
    this.onWake();
  }
  private note(text: string): void {
    if (!this.inProgress) throw new Error(`upcall outside progress(): ${text}`);
    this.events.push(text);
  }
  admit(_module: BtlModule, hello: Hello): Admission {
    this.note(`admit ${hello.key} ${hello.epoch}`);
    const answer = this.admitAnswer(hello);
    if (answer !== undefined) return answer;
    const endpoint = this.endpoints.get(hello.key);
    return endpoint ? { ok: true, endpoint } : { ok: false, reason: 'RAIL_MISMATCH', text: `no rail ${hello.key}` };
  }
  onConnected(_endpoint: BtlEndpoint, epoch: number): void {
    this.note(`connected ${epoch}`);
  }
  onConnectFailed(_endpoint: BtlEndpoint, epoch: number, reason: RailReason, highestEpoch?: number): void {
    this.note(`failed ${epoch} ${reason.kind}${highestEpoch === undefined ? '' : ` highest ${highestEpoch}`}`);
    this.logs.push(reason.text);
  }
  onRailDown(_endpoint: BtlEndpoint, epoch: number, reason: RailReason): void {
    this.note(`down ${epoch} ${reason.kind}`);
    this.logs.push(reason.text);
  }
  onCompleted(_endpoint: BtlEndpoint, epoch: number, frame: Frame, status: CompletionStatus): void {
    this.note(`completed ${frame.railFrameNumber} ${['delivered', 'refused', 'inDoubt'][status]}`);
    this.completions.push({ epoch, number: frame.railFrameNumber, status });
  }
  onFrame(_endpoint: BtlEndpoint, _epoch: number, header: Uint8Array, payload: Uint8Array, sink: Sink | null): void {
    this.note(`frame ${header.length} ${payload.length}${sink ? ' placed' : ''}`);
    this.onFrameDo(header, payload, sink);
  }
  sinkFor(_endpoint: BtlEndpoint, _epoch: number, header: Uint8Array, payloadBytes: number): Sink {
    this.note(`sinkFor ${payloadBytes}`);
    const sink = this.makeSink(header, payloadBytes);
    this.sinks.push(sink);
    return sink;
  }
  onSinkDropped(_endpoint: BtlEndpoint, epoch: number, sink: Sink): void {
    this.note(`sinkDropped ${epoch} ${this.sinks.indexOf(sink)}`);
  }
  onWritable(): void {
    this.note('writable');
  }
  onProbeAnswered(_endpoint: BtlEndpoint, epoch: number, probeId: number): void {
    this.note(`probeAnswered ${epoch} ${probeId}`);
  }
  onBye(_endpoint: BtlEndpoint, epoch: number): void {
    this.note(`bye ${epoch}`);
  }
  onReport(_endpoint: BtlEndpoint, _epoch: number, receivedBytes: number, peerAliveMs: number): void {
    if (!this.inProgress) throw new Error('onReport outside progress()');
    this.reports.push({ receivedBytes, peerAliveMs });
  }
  onOneSidedCompleted(_endpoint: BtlEndpoint, _epoch: number, _op: OneSidedOp): void {
    this.note('oneSided');
  }
  onReachable(): void {}
  onRailPlanned(): void {}
  onAddressChanged(): void {
    this.note('addressChanged');
  }
  log(_level: 'debug' | 'info' | 'warn', text: string): void {
    this.logs.push(text);
  }
  /** Everything but reports since the last call. */
  take(): string[] {
    const { events } = this;
    this.events = [];
    return events;
  }
  run(module: BtlModule, now: number, aliveMs = now): void {
    if (this.inProgress) return;
    this.inProgress = true;
    try {
      module.progress(now, aliveMs);
    } finally {
      this.inProgress = false;
    }
  }
}

export const SECRET = new TextEncoder().encode('a secret that both sides of these tests know');

export function contextOf(
  rank: number,
  upcalls: Upcalls,
  options: Partial<BtlContext> & { values?: Record<string, string> } = {},
): BtlContext {
  const { values, ...rest } = options;
  return {
    rank,
    size: 2,
    jobId: 'job-1',
    incarnation: 7,
    secret: SECRET,
    hostId: 'host-a',
    params: new ParamTable(values ?? {}),
    upcalls,
    ...rest,
  };
}

export function frameOf(headerBytes: number, payload: Uint8Array[] = [], options: { placed?: boolean; prompt?: boolean } = {}): Frame {
  const header = new Uint8Array(headerBytes);
  for (let i = 0; i < headerBytes; i++) header[i] = i;
  const payloadBytes = payload.reduce((sum, part) => sum + part.length, 0);
  return { header, payload, payloadBytes, placed: options.placed ?? false, prompt: options.prompt ?? false, railFrameNumber: 0 };
}

export function mustSend(endpoint: BtlEndpoint, frame: Frame): Frame {
  const result = endpoint.send(frame);
  if (result !== OK) throw new Error(`send answered ${result}`);
  return frame;
}

/** One end of a pair of streams in memory. Bytes wait on the way until deliver(); a test may hold, change or lose them. */
export class MemoryStream implements ByteStream {
  status: StreamStatus = 'open';
  failure: RailReason | undefined;
  localAddress = '127.0.0.1';
  remoteAddress = '127.0.0.1';
  remotePort = 4711;
  onEvent: () => void = () => {};
  onNews: () => void = () => {};
  wantsRoom = false;
  queuedBytes = 0;
  inboundBytes = 0;
  get hasNews(): boolean {
    return this.inbound.length > 0 || this.status !== 'open';
  }
  other: MemoryStream | undefined;
  writes = 0;
  /** Written here, not yet at the other end. */
  onTheWay: Uint8Array[] = [];
  private inbound: Uint8Array[] = [];
  private ending = false;

  static pair(): [MemoryStream, MemoryStream] {
    const a = new MemoryStream();
    const b = new MemoryStream();
    a.other = b;
    b.other = a;
    return [a, b];
  }
  write(chunks: readonly Uint8Array[]): void {
    if (this.status !== 'open') return;
    this.writes++;
    for (const chunk of chunks) this.onTheWay.push(new Uint8Array(chunk));
  }
  bytesOnTheWay(): number {
    return this.onTheWay.reduce((sum, chunk) => sum + chunk.length, 0);
  }
  /** Lets the first `bytes` reach the other end. */
  deliver(bytes = Number.POSITIVE_INFINITY): void {
    let left = bytes;
    while (left > 0 && this.onTheWay.length > 0) {
      const chunk = this.onTheWay[0];
      const n = Math.min(left, chunk.length);
      this.other?.arrive(chunk.subarray(0, n));
      if (n === chunk.length) this.onTheWay.shift();
      else this.onTheWay[0] = chunk.subarray(n);
      left -= n;
    }
    if (this.ending && this.onTheWay.length === 0) this.other?.closed({ kind: 'closed', text: 'the peer closed the connection' });
  }
  arrive(chunk: Uint8Array): void {
    if (this.status !== 'open') return;
    this.inbound.push(chunk);
    this.inboundBytes += chunk.length;
    this.onEvent();
  }
  closed(reason: RailReason): void {
    if (this.status === 'closed') return;
    this.status = 'closed';
    this.failure = reason;
    this.onEvent();
  }
  poll(reader: StreamReader, budgetBytes: number): number {
    let taken = 0;
    while (this.inbound.length > 0 && taken < budgetBytes && !reader.stopped) {
      const chunk = this.inbound.shift() as Uint8Array;
      this.inboundBytes -= chunk.length;
      taken += chunk.length;
      reader.push(chunk);
    }
    return taken;
  }
  end(): void {
    this.ending = true;
  }
  destroy(): void {
    this.status = 'closed';
    this.onEvent = () => {};
    this.inbound = [];
    this.inboundBytes = 0;
    this.ending = true;
  }
}

/** The production module over streams in memory: only dial and listen are the test's. */
export class MemoryModule extends StreamModule {
  readonly name = 'memory';
  peer: MemoryModule | undefined;
  /** Streams dialled from here, our end. */
  dialled: MemoryStream[] = [];
  /** When false, connections are accepted by nobody. */
  reachable = true;
  check: InboundCheck = { done: true, failure: undefined };
  isUnanswered: (stream: ByteStream) => boolean = () => false;
  incarnationOf: (remote: unknown) => number | undefined = () => undefined;

  address(): unknown {
    return {};
  }
  protected checkRemote(): void {}
  plan(): RailPlan[] {
    return [memoryPlan()];
  }
  async open(): Promise<void> {}
  dial(_endpoint: StreamEndpoint): Dialing {
    const dialing: Dialing = { stream: undefined, failure: undefined, cancelled: false };
    const [mine, theirs] = MemoryStream.pair();
    if (!this.reachable) mine.status = 'connecting';
    this.dialled.push(mine);
    this.adopt(dialing, mine);
    if (this.reachable) this.peer?.takeStream(theirs);
    return dialing;
  }
  takeStream(stream: MemoryStream): void {
    this.accept(stream);
  }
  protected checkInbound(): InboundCheck {
    return this.check;
  }
  protected progressModule(): number {
    return 0;
  }
  protected moduleDeadline(): number {
    return Number.POSITIVE_INFINITY;
  }
  protected async closeListeners(): Promise<void> {}
}

export function memoryPlan(key = 'memory:a-b#0'): RailPlan {
  return {
    key,
    attributes: {
      bandwidthMBps: 100,
      latencyUs: 10,
      exclusivity: 100,
      role: 'active',
      canPut: false,
      canGet: false,
      liveness: 'siblings',
      frameBytesMax: 1024 * 1024,
    },
    detail: undefined,
  };
}

/** Two ranks, one rail, a clock that the test turns. */
export class MemoryPair {
  readonly up = [new Recorder(), new Recorder()];
  readonly modules: MemoryModule[];
  readonly ends: StreamEndpoint[];
  now = 1000;

  constructor(values: Record<string, string> = {}, contexts: Partial<BtlContext>[] = [{}, {}]) {
    this.modules = [0, 1].map((rank) => new MemoryModule(contextOf(rank, this.up[rank], { values, ...contexts[rank] })));
    this.modules[0].peer = this.modules[1];
    this.modules[1].peer = this.modules[0];
    this.ends = [0, 1].map((rank) => this.modules[rank].endpoint(1 - rank, 0, memoryPlan(), {}) as StreamEndpoint);
    for (const rank of [0, 1]) this.up[rank].endpoints.set(memoryPlan().key, this.ends[rank]);
  }
  /** The stream of the newest dial: [dialer's end, acceptor's end]. */
  streams(): [MemoryStream, MemoryStream] {
    const mine = this.modules[0].dialled[this.modules[0].dialled.length - 1];
    return [mine, mine.other as MemoryStream];
  }
  turn(rank: number, ms = 0): void {
    this.now += ms;
    this.up[rank].run(this.modules[rank], this.now);
  }
  /** Turns and deliveries on the newest stream until nothing moves. */
  settle(rounds = 12, ms = 1): void {
    for (let i = 0; i < rounds; i++) {
      this.turn(0, ms);
      this.turn(1);
      for (const stream of this.streams()) stream.deliver();
    }
  }
  connect(epoch = 1): void {
    this.ends[0].connect(epoch);
    this.settle();
    const events = [this.up[0].take(), this.up[1].take()];
    if (!events[0].includes(`connected ${epoch}`) || !events[1].includes(`connected ${epoch}`)) {
      throw new Error(`not connected: ${JSON.stringify(events)} ${this.up[0].logs} ${this.up[1].logs}`);
    }
  }
}
