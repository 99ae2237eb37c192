// What sender and receiver share: options, tables of messages, counters, the pool of frames, the trace ring, and the functions
// that give packets, puts and gets to rails.
import type { Bml } from '../bml/bml.ts';
import type { Rail } from '../bml/rail.ts';
import { BUSY, DOWN, OK, type SendResult } from '../btl/btl.ts';
import { IdTable } from '../util/id-table.ts';
import { EMPTY_VIEWS, Iov } from '../util/iov.ts';
import { MemoryPool } from '../util/memory-pool.ts';
import { serialDiff } from '../util/serial.ts';
import { newPmlCounters, type PmlCounters } from './counters.ts';
import { PACKED_PAYLOAD_BYTES_MAX } from './frame-memory.ts';
import {
  encodeMatchWords,
  encodePacket,
  MATCH_HEADER_BYTES,
  MATCH_WORDS,
  newPacket,
  PACKET,
  PACKET_NAMES,
  type Packet,
  packetBytes,
  putCreditWords,
} from './hdr.ts';
import type { PmlTap } from './message-log.ts';
import type { Unreceived } from './owed-records.ts';
import {
  EagerMessage,
  type Envelope,
  type FrameUse,
  type OutMessage,
  PmlFrame,
  type PmlOneSidedOp,
  type PmlPeer,
  type RecvMessage,
  type RecvRequest,
  type SendMessage,
  type SendRequest,
} from './records.ts';
import type { Traced, TransitionListener } from './states.ts';
import type { RemoteWindow } from './windows.ts';

export interface PmlOptions {
  rank: number;
  eagerLimitBytes: number;
  rndvInlineBytes: number;
  fragBytes: number;
  retainedBytesMax: number;
  abandonedBytesMax: number;
  unexpectedBytesMax: number;
  traceEntries: number;
  /**
   * What a dead sender has not sent whole is taken out of the queue at once, so that no probe finds it (ULFM). Otherwise it stays, and whoever
   * receives it is told: with ERR_PROC_FAILED, in its place among the messages of that sender.
   */
  forgetsIncomplete?: boolean;
}

/** Names of completions, epochs and packets as events, for the (state, event) coverage. */
export const COMPLETION_NAMES = ['delivered', 'refused', 'in doubt'] as const;

/** Whether something that belongs to an epoch of a message belongs to its current epoch, or to an earlier one. */
export function epochName(item: { epoch: number; message: SendMessage | RecvMessage }): string {
  return item.epoch === item.message.epoch ? 'current' : 'old';
}

/** `RNDVRESTARTACK current`, `FRAG old`, …: packets with an epoch of their own are told apart by it. */
export function packetEvent(packet: Packet, epoch: number): string {
  const name = PACKET_NAMES[packet.type];
  if (packet.type === PACKET.ACK) return name;
  const ahead = serialDiff(packet.epoch, epoch);
  return `${name} ${ahead === 0 ? 'current' : ahead > 0 ? 'new' : 'old'}`;
}

/** One transition of a message, which peer, context and sequence number name. */
export interface TraceEntry {
  side: 'send' | 'recv';
  peer: number;
  ctx: number;
  seq: number;
  from: string;
  to: string;
}

/** Frames, records of eager messages, and memory of retained copies, that are kept for the next use. */
const FRAMES_KEPT_MAX = 4096;
const RETAINED_KEPT_BYTES_MAX = 8 * 1024 * 1024;

/** The oldest message first, also after a restart: everything behind it waits for it on the other side. */
const isOlder = (a: SendMessage | RecvMessage, b: SendMessage | RecvMessage): boolean => a.order <= b.order;

/** Observers of messages, for a simulator. Each costs time with every message. */
export interface PmlTaps extends TransitionListener {
  /** An event meets a message in a state. */
  onEvent: ((side: 'send' | 'recv', state: string, event: string) => void) | undefined;
  /** A message has found its receive. */
  onMatch(ctx: number, source: number, tag: number, messageBytes: number, request: RecvRequest): void;
}

export class PmlCore implements TransitionListener {
  readonly options: PmlOptions;
  readonly bml: Bml;
  readonly peers = new Map<number, PmlPeer>();
  readonly sends = new IdTable<SendMessage>();
  readonly recvs = new IdTable<RecvMessage>();
  readonly counters: PmlCounters = newPmlCounters();
  /** A command of the application is giving a frame to a rail: a rail that asks for progress now has to wait for its end. */
  sending = false;
  /** Requests that were started and are not done. */
  openRequests = 0;
  /** Requests that were ever started and not done at once. */
  openedRequests = 0;
  /** How many of the open requests are receives for which nobody waits. */
  backgroundRequests = 0;
  /** Completed requests, in order, for the engine to hand on. */
  readonly completions: (SendRequest | RecvRequest)[] = [];
  readonly dirtyPeers: PmlPeer[] = [];
  readonly toFlush: Rail[] = [];
  private readonly memory = new MemoryPool(RETAINED_KEPT_BYTES_MAX);
  /** Messages that were ever begun here. */
  private begun = 0;
  retainedBytes = 0;
  /** Copies of what was left to send when sends were given up. */
  abandonedBytes = 0;
  /** Sends that were given up and whose buffers cannot be given back yet. */
  readonly givenUp = new Set<SendMessage>();
  /** Messages of ours that their receivers had not received when they left. */
  readonly neverReceived: Unreceived[] = [];
  /** Messages are logged; undefined: no message is, and nothing of it costs anything. */
  tap: PmlTap | undefined = undefined;
  /** Observes every transition besides the ring (coverage in the simulator). */
  transitionTap: TransitionListener | undefined = undefined;
  /** Sees every event that meets a message in a state: the (state, event) coverage of the simulator. */
  eventTap: ((side: 'send' | 'recv', state: string, event: string) => void) | undefined = undefined;
  /** Scratch for outgoing packets; filled and encoded at once. */
  readonly out: Packet = newPacket();
  private readonly pool: PmlFrame[] = [];
  private readonly eagerPool: EagerMessage[] = [];
  private readonly trace: TraceEntry[] = [];
  private traceAt = 0;

  constructor(options: PmlOptions, bml: Bml) {
    this.options = options;
    this.bml = bml;
  }

  onTransition(side: 'send' | 'recv', message: Traced, from: string, to: string): void {
    this.transitionTap?.onTransition(side, message, from, to);
    const { traceEntries } = this.options;
    if (traceEntries === 0) return;
    const at = this.traceAt++ % traceEntries;
    // The ring is written for every message: its entries are used again, and hold numbers, which keep no buffer alive.
    const entry = this.trace[at];
    if (entry === undefined) {
      this.trace[at] = { side, peer: message.peer.rank, ctx: message.ctx, seq: message.seq, from, to };
      return;
    }
    entry.side = side;
    entry.peer = message.peer.rank;
    entry.ctx = message.ctx;
    entry.seq = message.seq;
    entry.from = from;
    entry.to = to;
  }

  /** The last transitions, oldest first. */
  traceEntries(): TraceEntry[] {
    const size = this.trace.length;
    return Array.from({ length: size }, (_, i) => this.trace[(this.traceAt - size + i) % size]);
  }

  /** Place of a new message among all that were begun here. */
  nextOrder(): number {
    return ++this.begun;
  }

  markDirty(peer: PmlPeer): void {
    if (peer.dirty) return;
    peer.dirty = true;
    this.dirtyPeers.push(peer);
  }

  open(request: SendRequest | RecvRequest): void {
    this.openRequests++;
    request.openedAs = ++this.openedRequests;
  }

  /** A request that somebody listens to is handed on by the engine; the others are only looked at. */
  complete(request: SendRequest | RecvRequest): void {
    request.done = true;
    this.openRequests--;
    if (request.isInBackground) this.backgroundRequests--;
    if (request.onDone !== undefined || request.trace !== undefined) this.completions.push(request);
  }

  queueControl(message: SendMessage | RecvMessage): void {
    if (!message.controlQueued) {
      message.controlQueued = true;
      message.peer.control.push(message);
    }
    this.markDirty(message.peer);
  }

  queueStream(message: SendMessage | RecvMessage): void {
    if (!message.streamQueued) {
      message.streamQueued = true;
      message.peer.streams.insert(message, isOlder);
    }
    this.markDirty(message.peer);
  }

  queueEnvelope(message: OutMessage): void {
    if (!message.envelopeQueued) {
      message.envelopeQueued = true;
      (message.firstSent ? message.peer.resends : message.peer.envelopes).push(message);
    }
    this.markDirty(message.peer);
  }

  /** The payload of that envelope was disposed of: what it was charged is the sender's again. */
  releaseCharge(envelope: Envelope): void {
    const { peer, charge } = envelope;
    peer.heldBytes -= charge;
    envelope.charge = 0;
    this.released(peer, charge);
  }

  /** So much of its credit is the peer's again: it is told by the next packet to it, or by one of its own once it is much. */
  released(peer: PmlPeer, bytes: number): void {
    peer.releasedBytes += bytes;
    if (this.isCreditDue(peer)) this.markDirty(peer);
  }

  /** The peer may send much more than it has been told: a quarter of the bound, often enough to keep it going, seldom enough to cost nothing. */
  isCreditDue(peer: PmlPeer): boolean {
    return this.creditFor(peer) - peer.creditTelling >= this.options.unexpectedBytesMax / 4;
  }

  /** How much the peer may first-send in all, as of now. */
  creditFor(peer: PmlPeer): number {
    return peer.releasedBytes + this.options.unexpectedBytesMax;
  }

  // Each of these encodes `this.out` and gives it to a rail: BUSY when all of them are full, DOWN when no rail is left. The frame belongs
  // to the rail until handleCompleted().

  /** A packet without a payload. Somebody waits for each, but for a CREDIT. */
  sendControl(peer: PmlPeer, use: FrameUse): SendResult {
    const frame = this.newFrame(peer, use);
    frame.prompt = use.kind !== 'credit';
    return this.give(peer, peer.bml.eager, frame);
  }

  /** RNDV or RGET with the first part of its message. */
  sendEnvelope(peer: PmlPeer, use: FrameUse, payload: readonly Uint8Array[], payloadBytes: number): SendResult {
    const frame = this.newFrame(peer, use);
    frame.payload = payload;
    frame.payloadBytes = payloadBytes;
    return this.give(peer, peer.bml.eager, frame);
  }

  /** FRAG, over that rail: its payload is placed. `isLast`: the request waits for this one. */
  sendFragment(
    peer: PmlPeer,
    rail: Rail,
    use: FrameUse,
    payload: readonly Uint8Array[],
    payloadBytes: number,
    isLast: boolean,
  ): SendResult {
    const frame = this.newFrame(peer, use);
    frame.payload = payload;
    frame.payloadBytes = payloadBytes;
    frame.placed = true;
    frame.prompt = isLast;
    return this.give(peer, [rail], frame);
  }

  private newFrame(peer: PmlPeer, use: FrameUse): PmlFrame {
    const frame = this.takeFrame();
    const creditLimit = this.creditFor(peer);
    this.out.creditLimit = creditLimit;
    encodePacket(this.out, frame.headerView(packetBytes(this.out)));
    frame.creditLimit = creditLimit;
    frame.use = use;
    frame.peer = peer;
    return frame;
  }

  private give(peer: PmlPeer, rails: readonly Rail[], frame: PmlFrame): SendResult {
    const result = this.offer(peer, rails, frame);
    if (result !== OK) this.recycle(frame);
    return result;
  }

  eagerMessage(peer: PmlPeer, ctx: number, tag: number, seq: number, bytes: number): EagerMessage {
    return (this.eagerPool.pop() ?? new EagerMessage()).begin(peer, ctx, tag, seq, bytes);
  }

  /** Nobody refers to that message any more. */
  keepEager(message: EagerMessage): void {
    if (this.eagerPool.length < FRAMES_KEPT_MAX) this.eagerPool.push(message);
  }

  /** The frame of an eager message: its header, and a copy of its payload that stays until the message is delivered. */
  eagerFrame(message: EagerMessage, signature: number, payload: Iov): PmlFrame {
    const frame = this.takeFrame();
    frame.eagerUse.message = message;
    frame.use = frame.eagerUse;
    frame.peer = message.peer;
    frame.headerView(MATCH_HEADER_BYTES);
    encodeMatchWords(frame.headerWords, message.ctx, this.options.rank, message.tag, message.seq, signature);
    const { bytes } = payload;
    if (bytes <= PACKED_PAYLOAD_BYTES_MAX) {
      frame.packPayload(payload);
      return frame;
    }
    const memory = this.memory.take(bytes);
    payload.copyTo(memory, 0);
    frame.retained = memory;
    frame.payload = [memory.length === bytes ? memory : memory.subarray(0, bytes)];
    frame.payloadBytes = bytes;
    return frame;
  }

  /** Gives a copy of an eager message, whose own frame a rail has, to one of these rails. */
  sendEagerCopy(message: EagerMessage, original: PmlFrame, rails: readonly Rail[]): SendResult {
    const { peer } = message;
    const frame = this.eagerFrame(message, original.headerWords[MATCH_WORDS.signature], new Iov(original.payload));
    frame.use = { kind: 'copy', message };
    const result = this.sendEagerFrame(peer, frame, rails);
    if (result !== OK) this.recycle(frame);
    return result;
  }

  /** Gives the frame of an eager message to a rail, for the first time or again. */
  sendEagerFrame(peer: PmlPeer, frame: PmlFrame, rails: readonly Rail[] = peer.bml.eager): SendResult {
    const creditLimit = this.creditFor(peer);
    if (frame.creditLimit !== creditLimit) {
      frame.creditLimit = creditLimit;
      putCreditWords(frame.headerWords, creditLimit);
    }
    const nested = this.sending;
    this.sending = true;
    const result = this.offer(peer, rails, frame);
    this.sending = nested;
    return result;
  }

  /** Gives a frame to the first of `rails` that takes it, or to the one that will have it through first. */
  private offer(peer: PmlPeer, among: readonly Rail[], frame: PmlFrame): SendResult {
    const { bml } = this;
    const isChosen = bml.isChosen(among);
    const bytes = isChosen ? frame.header.length + frame.payloadBytes : 0;
    const rails = isChosen ? bml.inOrder(among, bytes) : among;
    let result: SendResult = DOWN;
    for (let i = 0; i < rails.length; i++) {
      const rail = rails[i];
      // Frames without payload have a reserve of their own (B5): only the rail can tell that it is used up.
      if (frame.payloadBytes > 0 && !rail.hasRoom) {
        result = BUSY;
        continue;
      }
      if (isChosen && frame.payloadBytes > 0 && !bml.mayTake(among, rail, bytes, bytes * (1 + peer.envelopes.size))) {
        result = BUSY;
        continue;
      }
      const answer = rail.endpoint.send(frame);
      if (answer === OK) {
        frame.rail = rail.index;
        if (!rail.needsFlush) this.touched(rail);
        if (peer.creditTelling < frame.creditLimit) peer.creditTelling = frame.creditLimit;
        return OK;
      }
      if (answer === BUSY) {
        this.bml.handleBusy(rail);
        result = BUSY;
      }
    }
    return result;
  }

  /** Gives a put or get of the range [from, to) to a rail, which the caller has seen to have room. False when it does not take it now. */
  startOneSided(
    kind: 'put' | 'get',
    message: SendMessage | RecvMessage,
    rail: Rail,
    window: RemoteWindow,
    from: number,
    to: number,
  ): boolean {
    const op: PmlOneSidedOp = {
      kind,
      local: message.slice(from, to),
      bytes: to - from,
      remoteKey: window.key,
      remoteOffset: from - window.from,
      railFrameNumber: 0,
      peer: message.peer,
      epoch: message.epoch,
      from,
      to,
      window,
      message,
    };
    const answer = (kind === 'put' ? rail.endpoint.put?.(op) : rail.endpoint.get?.(op)) ?? BUSY;
    if (answer === BUSY) this.bml.handleBusy(rail);
    if (answer !== OK) return false;
    this.touched(rail);
    return true;
  }

  private takeFrame(): PmlFrame {
    return this.pool.pop() ?? new PmlFrame();
  }

  /** The engine flushes these rails at the end of its turn: everything sent in one turn leaves in one go. */
  touched(rail: Rail): void {
    if (rail.needsFlush) return;
    rail.needsFlush = true;
    this.toFlush.push(rail);
  }

  /** Ends the epochs of a rail up to `epoch`, because the peer says that they are over. */
  fence(peer: PmlPeer, rail: number, epoch: number, text: string): void {
    this.bml.fence(peer.bml, rail, epoch, { kind: 'fenced', text });
  }

  recycle(frame: PmlFrame): void {
    frame.use = undefined;
    frame.peer = undefined;
    frame.payload = EMPTY_VIEWS;
    frame.payloadBytes = 0;
    frame.packed = false;
    frame.placed = false;
    frame.prompt = false;
    frame.creditLimit = -1;
    if (frame.retained !== undefined) {
      this.memory.give(frame.retained);
      frame.retained = undefined;
    }
    if (this.pool.length < FRAMES_KEPT_MAX) this.pool.push(frame);
  }
}
