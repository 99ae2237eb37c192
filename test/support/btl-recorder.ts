// The recording Upcalls of the BTL contract suite: it copies what comes up, keeps a model of every rail epoch (B1-B3, B9), and
// notes every breach of the contract as a problem. One Side = one module of one rank with its recorder.
import { strict as assert } from 'node:assert';
import type {
  Admission,
  BtlEndpoint,
  BtlModule,
  CompletionStatus,
  Frame,
  Hello,
  OneSidedOp,
  RailReason,
  Sink,
  Upcalls,
} from '../../src/btl/btl.ts';
import { DELIVERED, IN_DOUBT, OK, REFUSED, type SendResult } from '../../src/btl/btl.ts';

const PATTERN = new Uint8Array(64 * 1024 + 256);
for (let i = 0, x = 0x12345678; i < PATTERN.length; i++) {
  x = (Math.imul(x, 1664525) + 1013904223) >>> 0;
  PATTERN[i] = x >>> 24;
}

/** The payload that a frame of this id carries: both sides can compute it. */
export function patternOf(id: number, bytes: number): Uint8Array {
  const out = new Uint8Array(bytes);
  const shift = id % 256;
  for (let at = 0; at < bytes; at += 65536) out.set(PATTERN.subarray(shift, shift + Math.min(65536, bytes - at)), at);
  return out;
}

export interface FrameOptions {
  placed?: boolean;
  prompt?: boolean;
  headerBytes?: number;
  /** Number of parts of the gather list. */
  parts?: number;
}

const HEADER_BYTES = 8;

export function makeFrame(id: number, bytes: number, options: FrameOptions = {}): Frame {
  const header = new Uint8Array(options.headerBytes ?? HEADER_BYTES + (id % 5));
  const view = new DataView(header.buffer);
  view.setUint32(0, id, true);
  view.setUint32(4, bytes, true);
  for (let i = HEADER_BYTES; i < header.length; i++) header[i] = (id + i) & 0xff;
  const whole = patternOf(id, bytes);
  const payload: Uint8Array[] = [];
  const parts = options.parts ?? (bytes === 0 ? 0 : 1);
  for (let i = 0; i < parts; i++) {
    payload.push(whole.subarray(Math.floor((bytes * i) / parts), Math.floor((bytes * (i + 1)) / parts)));
  }
  return { header, payload, payloadBytes: bytes, placed: options.placed ?? false, prompt: options.prompt ?? false, railFrameNumber: 0 };
}

export function frameId(header: Uint8Array): number {
  return new DataView(header.buffer, header.byteOffset, header.byteLength).getUint32(0, true);
}

export interface EventRecord {
  type: string;
  rail: number;
  epoch: number;
  text: string;
  /** Number of the progress() call. */
  turn: number;
}

interface Accepted {
  frame: Frame;
  id: number;
  status: CompletionStatus | undefined;
}

interface EpochModel {
  accepted: Accepted[];
  /** Of these, how many have not completed: many are looked at again and again. */
  openFrames: number;
  byFrame: Map<Frame, Accepted>;
  ops: Map<OneSidedOp, CompletionStatus | undefined>;
  received: number[];
  refusedHere: number;
  connected: boolean;
  down: RailReason | undefined;
  downTurn: number;
  lastInDoubt: number;
  openSinks: Set<Sink>;
}

export interface SinkRecord {
  id: number;
  sink: Sink;
  buffer: Uint8Array;
  dropped: boolean;
  whole: boolean;
}

export class Recorder implements Upcalls {
  readonly name: string;
  readonly events: EventRecord[] = [];
  readonly problems: string[] = [];
  readonly logs: string[] = [];
  readonly sinks: SinkRecord[] = [];
  readonly hellos: Hello[] = [];
  readonly probes: number[] = [];
  readonly reports: { rail: number; receivedBytes: number; peerAliveMs: number }[] = [];
  readonly highestSeen = new Map<number, number>();
  framesSeen = 0;
  wakes = 0;
  turn = 0;
  inProgress = false;
  /** Called for every frame before it is recorded; may throw ERR_PROTOCOL or make down-calls. */
  onFrameHook: ((endpoint: BtlEndpoint, id: number) => void) | undefined;
  admitHook: ((hello: Hello) => Admission | undefined) | undefined;
  /** Views for a placed frame; default: its own buffer in three pieces. */
  sinkHook: ((id: number, payloadBytes: number) => Sink | undefined) | undefined;
  endpoints: BtlEndpoint[] = [];
  private readonly epochs = new Map<string, { rail: number; epoch: number; model: EpochModel }>();
  /** By type, and by type and rail. */
  private readonly counts = new Map<string, number>();

  constructor(name: string) {
    this.name = name;
  }

  problem(text: string): void {
    if (this.problems.length < 50) this.problems.push(`${this.name}: ${text}`);
  }

  model(rail: number, epoch: number): EpochModel {
    const key = `${rail}/${epoch}`;
    let known = this.epochs.get(key);
    if (known === undefined) {
      const model: EpochModel = {
        accepted: [],
        openFrames: 0,
        byFrame: new Map(),
        ops: new Map(),
        received: [],
        refusedHere: 0,
        connected: false,
        down: undefined,
        downTurn: 0,
        lastInDoubt: -1,
        openSinks: new Set(),
      };
      known = { rail, epoch, model };
      this.epochs.set(key, known);
    }
    return known.model;
  }

  models(): Iterable<{ rail: number; epoch: number; model: EpochModel }> {
    return this.epochs.values();
  }

  /** For long runs: every turn looks at all epochs that are known. Call it when none is live, and what they were has been checked. */
  forgetEpochs(): void {
    this.epochs.clear();
    this.events.length = 0;
    this.counts.clear();
    this.logs.length = 0;
    this.sinks.length = 0;
  }

  private up(type: string, endpoint: BtlEndpoint, epoch: number, text = ''): EpochModel {
    if (!this.inProgress) this.problem(`${type} was called up outside progress()`);
    if (!this.endpoints.includes(endpoint)) this.problem(`${type} names an endpoint that is not the planned one`);
    this.events.push({ type, rail: endpoint.rail, epoch, text, turn: this.turn });
    for (const key of [type, `${type}/${endpoint.rail}`]) this.counts.set(key, (this.counts.get(key) ?? 0) + 1);
    const model = this.model(endpoint.rail, epoch);
    if (type !== 'connected' && type !== 'connectFailed' && !model.connected)
      this.problem(`${type} for epoch ${epoch} that never connected`);
    return model;
  }

  count(type: string, rail?: number): number {
    return this.counts.get(rail === undefined ? type : `${type}/${rail}`) ?? 0;
  }

  find(type: string, rail?: number, epoch?: number): EventRecord | undefined {
    return this.events.find(
      (event) => event.type === type && (rail === undefined || event.rail === rail) && (epoch === undefined || event.epoch === epoch),
    );
  }

  // --- Upcalls

  wake(): void {
    this.wakes += 1;
  }

  admit(_module: BtlModule, hello: Hello): Admission {
    if (!this.inProgress) this.problem('admit was called up outside progress()');
    this.hellos.push({ ...hello });
    const special = this.admitHook?.(hello);
    if (special !== undefined) return special;
    const highestEpoch = this.highestSeen.get(hello.rail) ?? 0;
    if (hello.epoch <= highestEpoch)
      return { ok: false, reason: 'STALE_EPOCH', text: `epoch ${hello.epoch} <= ${highestEpoch}`, highestEpoch };
    const endpoint = this.endpoints.find(({ rail }) => rail === hello.rail);
    if (endpoint === undefined || endpoint.plan.key !== hello.key) return { ok: false, reason: 'RAIL_MISMATCH', text: 'no such rail' };
    this.highestSeen.set(hello.rail, hello.epoch);
    return { ok: true, endpoint };
  }

  onConnected(endpoint: BtlEndpoint, epoch: number): void {
    const model = this.up('connected', endpoint, epoch);
    if (model.connected) this.problem(`epoch ${epoch} connected twice`);
    model.connected = true;
    for (const other of this.models()) {
      if (other.rail === endpoint.rail && other.epoch < epoch && other.model.connected && other.model.down === undefined) {
        if (other.model.openFrames > 0) this.problem(`epoch ${epoch} connected while ${other.epoch} lives`);
      }
    }
    if (endpoint.epoch !== epoch) this.problem(`onConnected(${epoch}) while endpoint.epoch is ${endpoint.epoch}`);
    this.highestSeen.set(endpoint.rail, Math.max(epoch, this.highestSeen.get(endpoint.rail) ?? 0));
  }

  onConnectFailed(endpoint: BtlEndpoint, epoch: number, reason: RailReason, highestEpoch?: number): void {
    this.up('connectFailed', endpoint, epoch, `${reason.kind}${highestEpoch === undefined ? '' : ` highest ${highestEpoch}`}`);
  }

  onRailDown(endpoint: BtlEndpoint, epoch: number, reason: RailReason): void {
    const model = this.up('railDown', endpoint, epoch, reason.kind);
    if (model.down !== undefined) this.problem(`onRailDown twice for epoch ${epoch}`);
    model.down = reason;
    model.downTurn = this.turn;
    if (endpoint.epoch === epoch) this.problem(`endpoint.epoch is still ${epoch} in onRailDown`);
  }

  onCompleted(endpoint: BtlEndpoint, epoch: number, frame: Frame, status: CompletionStatus): void {
    const model = this.up('completed', endpoint, epoch, String(status));
    const entry = model.byFrame.get(frame);
    if (entry === undefined) return this.problem(`completion of a frame that epoch ${epoch} never accepted`);
    if (entry.status !== undefined) this.problem(`frame ${entry.id} completed twice: ${entry.status} then ${status}`);
    else model.openFrames -= 1;
    entry.status = status;
    if (status === IN_DOUBT) {
      if (model.down === undefined) this.problem(`frame ${entry.id} IN_DOUBT before onRailDown`);
      const at = model.accepted.indexOf(entry);
      if (at < model.lastInDoubt) this.problem(`IN_DOUBT out of order: frame ${entry.id}`);
      model.lastInDoubt = at;
    } else if (model.down !== undefined) {
      this.problem(`frame ${entry.id} completed as ${status} after onRailDown of epoch ${epoch}`);
    }
  }

  onFrame(endpoint: BtlEndpoint, epoch: number, header: Uint8Array, payload: Uint8Array, sink: Sink | null): void {
    const model = this.up('frame', endpoint, epoch);
    const id = frameId(header);
    if (model.down !== undefined) this.problem(`frame ${id} handed up after onRailDown of epoch ${epoch}`);
    for (let i = HEADER_BYTES; i < header.length; i++) if (header[i] !== ((id + i) & 0xff)) this.problem(`frame ${id}: header byte ${i}`);
    const bytes = new DataView(header.buffer, header.byteOffset, header.byteLength).getUint32(4, true);
    if (sink === null) {
      if (Buffer.compare(payload, patternOf(id, bytes)) !== 0)
        this.problem(`frame ${id}: payload of ${payload.length} is not what was sent`);
    } else {
      if (payload.length !== 0) this.problem(`placed frame ${id} came with a payload`);
      if (!model.openSinks.delete(sink)) this.problem(`frame ${id} came with a sink that is not open`);
      const record = this.sinks.find((candidate) => candidate.sink === sink);
      if (record !== undefined) {
        record.whole = true;
        const isFull = record.buffer.length > 0 && !sink.revoked;
        if (isFull && Buffer.compare(record.buffer, patternOf(id, bytes)) !== 0)
          this.problem(`frame ${id}: placed payload is not what was sent`);
      }
    }
    this.onFrameHook?.(endpoint, id);
    this.framesSeen += 1;
    model.received.push(id);
  }

  sinkFor(endpoint: BtlEndpoint, epoch: number, header: Uint8Array, payloadBytes: number): Sink {
    const model = this.up('sinkFor', endpoint, epoch);
    const id = frameId(header);
    if (model.down !== undefined) this.problem(`sinkFor(${id}) after onRailDown of epoch ${epoch}`);
    if (model.openSinks.size > 0) this.problem(`sinkFor(${id}) while the sink before is open`);
    const special = this.sinkHook?.(id, payloadBytes);
    let sink = special;
    let buffer = new Uint8Array(0);
    if (sink === undefined) {
      buffer = new Uint8Array(payloadBytes);
      const a = Math.floor(payloadBytes / 3);
      const b = Math.floor(payloadBytes / 2);
      sink = { views: [buffer.subarray(0, a), buffer.subarray(a, b), buffer.subarray(b)], revoked: false };
    }
    this.sinks.push({ id, sink, buffer, dropped: false, whole: false });
    model.openSinks.add(sink);
    return sink;
  }

  onSinkDropped(endpoint: BtlEndpoint, epoch: number, sink: Sink): void {
    const model = this.up('sinkDropped', endpoint, epoch);
    if (!model.openSinks.delete(sink)) this.problem('onSinkDropped for a sink that is not open');
    const record = this.sinks.find((candidate) => candidate.sink === sink);
    if (record !== undefined) record.dropped = true;
    if (model.down === undefined) model.refusedHere += 1;
  }

  onWritable(endpoint: BtlEndpoint): void {
    this.up('writable', endpoint, endpoint.epoch);
  }

  onProbeAnswered(endpoint: BtlEndpoint, epoch: number, probeId: number): void {
    this.up('probeAnswered', endpoint, epoch, String(probeId));
    this.probes.push(probeId);
  }

  onBye(endpoint: BtlEndpoint, epoch: number): void {
    this.up('bye', endpoint, epoch);
  }

  onReport(endpoint: BtlEndpoint, epoch: number, receivedBytes: number, peerAliveMs: number): void {
    this.up('report', endpoint, epoch);
    this.reports.push({ rail: endpoint.rail, receivedBytes, peerAliveMs });
  }

  onOneSidedCompleted(endpoint: BtlEndpoint, epoch: number, op: OneSidedOp, status: CompletionStatus): void {
    const model = this.up('oneSided', endpoint, epoch, `${op.kind} ${status}`);
    if (!model.ops.has(op)) return this.problem(`completion of a ${op.kind} that epoch ${epoch} never accepted`);
    if (model.ops.get(op) !== undefined) this.problem(`a ${op.kind} completed twice`);
    if (status === IN_DOUBT && model.down === undefined) this.problem(`a ${op.kind} IN_DOUBT before onRailDown`);
    model.ops.set(op, status);
  }

  onReachable(): void {}
  onRailPlanned(): void {}
  onAddressChanged(): void {}

  log(level: string, text: string): void {
    this.logs.push(`${level} ${text}`);
  }

  /** After every progress(): an ended epoch owes nothing any more (B3). */
  endTurn(): void {
    for (const { rail, epoch, model } of this.models()) {
      if (model.down === undefined || model.downTurn !== this.turn) continue;
      if (model.openFrames > 0)
        this.problem(`${model.openFrames} frames of rail ${rail} epoch ${epoch} did not complete with its onRailDown`);
      if (model.openSinks.size > 0) this.problem(`a sink of rail ${rail} epoch ${epoch} was not dropped with its onRailDown`);
      for (const status of model.ops.values())
        if (status === undefined) this.problem(`a one-sided operation of epoch ${epoch} did not complete`);
    }
  }
}

/** One module of one rank with its recorder. */
export class Side {
  readonly rank: number;
  readonly module: BtlModule;
  readonly recorder: Recorder;
  readonly endpoints: BtlEndpoint[] = [];
  private nextId = 1;

  constructor(rank: number, module: BtlModule, recorder: Recorder) {
    this.rank = rank;
    this.module = module;
    this.recorder = recorder;
    recorder.endpoints = this.endpoints;
  }

  progress(now: number): number {
    const { recorder } = this;
    recorder.turn += 1;
    recorder.inProgress = true;
    try {
      return this.module.progress(now, now);
    } finally {
      recorder.inProgress = false;
      recorder.endTurn();
    }
  }

  send(bytes: number, options: FrameOptions = {}, rail = 0): { result: SendResult; frame: Frame; id: number } {
    const id = this.nextId++;
    const frame = makeFrame(id, bytes, options);
    return { result: this.sendFrame(frame, rail), frame, id };
  }

  sendFrame(frame: Frame, rail = 0): SendResult {
    const endpoint = this.endpoints[rail];
    const { epoch } = endpoint;
    const result = endpoint.send(frame);
    if (result === OK) {
      assert.ok(epoch > 0, 'OK from a rail without a live epoch');
      const model = this.recorder.model(endpoint.rail, epoch);
      const entry = { frame, id: frameId(frame.header), status: undefined };
      model.accepted.push(entry);
      model.openFrames += 1;
      model.byFrame.set(frame, entry);
    }
    return result;
  }

  start(op: OneSidedOp, rail = 0): SendResult {
    const endpoint = this.endpoints[rail];
    const { epoch } = endpoint;
    const result = (op.kind === 'put' ? endpoint.put?.(op) : endpoint.get?.(op)) as SendResult;
    if (result === OK) this.recorder.model(endpoint.rail, epoch).ops.set(op, undefined);
    return result;
  }

  /** Frames accepted and not completed. */
  get open(): number {
    let open = 0;
    for (const { model } of this.recorder.models()) {
      open += model.openFrames;
      for (const status of model.ops.values()) if (status === undefined) open += 1;
    }
    return open;
  }
}

/** B1-B3 between what `from` sent and what `to` received, for every epoch. */
export function checkStreams(from: Side, to: Side): string[] {
  const problems = [...from.recorder.problems];
  for (const { rail, epoch, model } of from.recorder.models()) {
    const { received } = to.recorder.model(rail, epoch);
    const seen = new Set(received);
    if (seen.size !== received.length) problems.push(`rail ${rail} epoch ${epoch}: a frame was handed up twice`);
    const refused = new Set(model.accepted.filter(({ status }) => status === REFUSED).map(({ id }) => id));
    for (const { id, status } of model.accepted) {
      if (status === DELIVERED && !seen.has(id)) problems.push(`rail ${rail} epoch ${epoch}: frame ${id} DELIVERED but never handed up`);
      if (status === REFUSED && seen.has(id)) problems.push(`rail ${rail} epoch ${epoch}: frame ${id} REFUSED but handed up`);
    }
    // What was handed up is a prefix of what was accepted, without frames that were refused (or in doubt after a refusal).
    let at = 0;
    for (const id of received) {
      while (at < model.accepted.length && model.accepted[at].id !== id) {
        const { id: skipped, status } = model.accepted[at];
        const refusedInDoubt = status !== DELIVERED && to.recorder.endpoints[0]?.counters.framesRefused > 0;
        if (!refused.has(skipped) && !refusedInDoubt)
          problems.push(`rail ${rail} epoch ${epoch}: frame ${skipped} was skipped before ${id}`);
        at += 1;
      }
      if (at === model.accepted.length) problems.push(`rail ${rail} epoch ${epoch}: frame ${id} out of order or never accepted`);
      at += 1;
    }
  }
  return problems;
}
