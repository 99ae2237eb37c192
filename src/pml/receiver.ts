// The receiving half of the protocol: sequences, matching, placement of fragments, PUT windows, reads of an RGET, and the
// receiver's part of the restart. As in sender.ts, what must be sent is derived from the state of a message.
import type { Rail } from '../bml/rail.ts';
import { BUSY, type CompletionStatus, DELIVERED, OK, type Sink } from '../btl/btl.ts';
import { MultirailError } from '../errors.ts';
import { serialAdd, serialDiff } from '../util/serial.ts';
import { COMPLETION_NAMES, type PmlCore, packetEvent } from './core.ts';
import { ENVELOPE_CHARGE_BYTES, FLAG, MISSING_RANGES_MAX, PACKET, type Packet, WINDOWS_MAX } from './hdr.ts';
import { ANY, MatchContext } from './match.ts';
import type { FlowIn, OwedRestartNack, PmlPeer } from './peer.ts';
import {
  type Envelope,
  type FragSink,
  type FrameUse,
  type PmlOneSidedOp,
  RecvMessage,
  type RecvRequest,
  type Unreceived,
} from './records.ts';
import { moveRecv } from './states.ts';
import type { LocalWindow, RemoteWindow } from './windows.ts';

const NOTHING: readonly Uint8Array[] = [];
const NO_WINDOWS: readonly RemoteWindow[] = [];
/** Of a PUT that says that its rail has no further windows. */
const NO_KEY = new Uint8Array(0);

function epochName(item: { epoch: number; message: RecvMessage }): string {
  return item.epoch === item.message.epoch ? 'current' : 'old';
}

const SEQ_SPAN_MAX = 2 ** 30;

export class Receiver {
  private readonly core: PmlCore;
  private readonly contexts = new Map<number, MatchContext>();
  /** Freed while messages for them may still be on their way. */
  private readonly freed = new Set<number>();
  /**
   * Whether messages may come for a context; undefined: for any, which comes into being with the first one. What is not admitted is a
   * copy of a message that was taken before its context was released.
   */
  admits: ((ctx: number) => boolean) | undefined;
  private lastCtx = -1;
  private lastContext: MatchContext | undefined;
  /** Sees every match (the simulator's oracle). */
  matchTap: ((ctx: number, source: number, tag: number, messageBytes: number, request: RecvRequest) => void) | undefined;
  /** Called when a message becomes visible to probes, so that blocked probes look again. */
  onUnexpected: ((envelope: Envelope) => void) | undefined;

  constructor(core: PmlCore) {
    this.core = core;
  }

  // ---------------------------------------------------------------- commands

  /** Contexts come into being with their first receive or arrival. */
  context(ctx: number): MatchContext {
    if (ctx === this.lastCtx) return this.lastContext as MatchContext;
    let context = this.contexts.get(ctx);
    if (context === undefined) {
      context = new MatchContext();
      this.contexts.set(ctx, context);
    }
    this.lastCtx = ctx;
    this.lastContext = context;
    return context;
  }

  post(request: RecvRequest): void {
    const envelope = this.context(request.ctx).post(request);
    if (envelope !== undefined) {
      this.match(envelope, request);
      return;
    }
    const ended = request.source >= 0 ? this.core.peers.get(request.source)?.ended : undefined;
    if (ended !== undefined) {
      this.context(request.ctx).unpost(request);
      request.error = ended;
      this.core.complete(request);
    }
  }

  /** Gives a message that a matched probe took out of the queue to a receive. */
  receiveMatched(envelope: Envelope, request: RecvRequest): void {
    this.match(envelope, request);
  }

  /** True when the receive was still unmatched; it then completes as cancelled. */
  cancel(request: RecvRequest): boolean {
    if (request.done || !this.context(request.ctx).unpost(request)) return false;
    request.cancelled = true;
    this.core.counters.cancels++;
    this.core.complete(request);
    return true;
  }

  /** The context is gone for ever: what waits for it, or comes later, is dropped. Posted receives end with the error. */
  freeContext(ctx: number, error?: MultirailError): void {
    this.freed.add(ctx);
    this.dropContext(ctx, error);
  }

  /**
   * As freeContext(), when every message that was ever sent on it has come: nothing has to be kept of it. `copies`: it was released
   * before, and what is here are copies of what came then.
   */
  releaseContext(ctx: number, copies: boolean): void {
    if (copies) for (const envelope of this.contexts.get(ctx)?.unexpectedEnvelopes() ?? []) this.forgetCopy(envelope);
    this.dropContext(ctx, undefined);
    for (const peer of this.core.peers.values()) {
      const flow = peer.dropFlows(ctx);
      if (flow !== undefined) for (const envelope of flow.early.values()) this.forgetCopy(envelope);
    }
  }

  /** Its charge was given back with the message that it is a copy of. */
  private forgetCopy(envelope: Envelope): void {
    this.core.counters.freedContextDropped++;
    this.contexts.get(envelope.ctx)?.takeUnexpected(envelope);
    envelope.peer.heldBytes -= envelope.charge;
  }

  private dropContext(ctx: number, error: MultirailError | undefined): void {
    const context = this.contexts.get(ctx);
    this.contexts.delete(ctx);
    this.lastCtx = -1;
    if (context === undefined) return;
    for (const envelope of context.unexpectedEnvelopes()) this.dropFreed(envelope);
    if (error === undefined) return;
    for (const request of context.postedRequests()) {
      context.unpost(request);
      request.error = error;
      this.core.complete(request);
    }
  }

  /** Receives that are posted on it. */
  postedOn(ctx: number): number {
    return this.contexts.get(ctx)?.postedCount ?? 0;
  }

  private dropFreed(envelope: Envelope): void {
    this.core.counters.freedContextDropped++;
    this.release(envelope);
  }

  // ---------------------------------------------------------------- envelopes

  onEnvelope(peer: PmlPeer, packet: Packet, payload: Uint8Array): void {
    const { core } = this;
    if (packet.source !== peer.rank)
      throw new MultirailError('ERR_PROTOCOL', `a message of rank ${packet.source} on a rail of rank ${peer.rank}`);
    if (packet.type !== PACKET.MATCH && payload.length > packet.messageBytes) {
      throw new MultirailError(
        'ERR_PROTOCOL',
        `rank ${peer.rank} sent ${payload.length} bytes with the rendezvous of a message of ${packet.messageBytes}; expected no more than the message has: run the same version of multirail on all ranks`,
      );
    }
    if (packet.ctx !== this.lastCtx && this.admits?.(packet.ctx) === false) {
      core.counters.freedContextDropped++;
      return;
    }
    const flow = peer.flowIn(packet.ctx);
    const ahead = serialDiff(packet.seq, flow.expectedSeq);
    if (ahead < 0 || flow.early.has(packet.seq)) {
      // Nothing is answered: the ACK, or the FIN of an RGET, is held until delivered.
      core.counters.envelopeDuplicates++;
      return;
    }
    if (ahead > SEQ_SPAN_MAX) throw new MultirailError('ERR_PROTOCOL', `sequence ${packet.seq} is ${ahead} ahead`);
    const charge = (packet.flags & FLAG.CHARGED) !== 0 ? payload.length + ENVELOPE_CHARGE_BYTES : 0;
    if (ahead === 0 && packet.type === PACKET.MATCH && this.receiveEager(peer, flow, packet, payload, charge)) return;
    peer.heldBytes += charge;
    const envelope: Envelope = {
      type: packet.type,
      peer,
      ctx: packet.ctx,
      source: packet.source,
      tag: packet.tag,
      seq: packet.seq,
      signature: packet.signature,
      messageBytes: packet.type === PACKET.MATCH ? payload.length : packet.messageBytes,
      flags: packet.flags,
      payload,
      charge,
      senderSlot: packet.senderSlot,
      senderGeneration: packet.senderGeneration,
      windows:
        packet.type === PACKET.RGET
          ? packet.windows.map((window) => ({ number: 0, ...window, from: 0, to: packet.messageBytes }))
          : NO_WINDOWS,
    };
    if (ahead > 0) {
      core.counters.earlyArrivals++;
      envelope.payload = new Uint8Array(payload);
      flow.early.set(packet.seq, envelope);
      return;
    }
    if (ahead === 0) flow.expectedSeq = serialAdd(flow.expectedSeq, 1);
    this.deliver(envelope, false);
    this.deliverEarly(flow);
  }

  /** The common case: the next eager message of its flow finds its receive posted. It needs no record of its own. */
  private receiveEager(peer: PmlPeer, flow: FlowIn, packet: Packet, payload: Uint8Array, charge: number): boolean {
    const { core } = this;
    if (this.freed.size > 0 && this.freed.has(packet.ctx)) return false;
    const request = this.context(packet.ctx).matchPosted(packet.source, packet.tag);
    if (request === undefined) return false;
    flow.expectedSeq = serialAdd(flow.expectedSeq, 1);
    core.counters.matchesPosted++;
    this.matchTap?.(packet.ctx, packet.source, packet.tag, payload.length, request);
    request.matched = true;
    request.matchedSource = packet.source;
    request.matchedTag = packet.tag;
    request.matchedSignature = packet.signature;
    const written = request.buffer.copyIn(0, payload);
    peer.releasedBytes += charge;
    core.markDirty(peer);
    this.completeRequest(request, written, payload.length);
    if (flow.early.size > 0) this.deliverEarly(flow);
    return true;
  }

  private deliverEarly(flow: FlowIn): void {
    for (let next = flow.early.get(flow.expectedSeq); next !== undefined; next = flow.early.get(flow.expectedSeq)) {
      flow.early.delete(flow.expectedSeq);
      flow.expectedSeq = serialAdd(flow.expectedSeq, 1);
      this.deliver(next, true);
    }
  }

  /** In sequence: matches, or waits as unexpected. `owned`: the payload is already our copy. */
  private deliver(envelope: Envelope, owned: boolean): void {
    if (this.freed.has(envelope.ctx)) return this.dropFreed(envelope);
    const request = this.context(envelope.ctx).arrive(envelope);
    if (request !== undefined) {
      this.core.counters.matchesPosted++;
      this.match(envelope, request);
      return;
    }
    if (!owned) envelope.payload = new Uint8Array(envelope.payload);
    this.core.counters.matchesUnexpected++;
    this.onUnexpected?.(envelope);
  }

  private release(envelope: Envelope): void {
    const { peer } = envelope;
    peer.heldBytes -= envelope.charge;
    peer.releasedBytes += envelope.charge;
    envelope.charge = 0;
    this.core.markDirty(peer);
  }

  private match(envelope: Envelope, request: RecvRequest): void {
    const { core } = this;
    this.matchTap?.(envelope.ctx, envelope.source, envelope.tag, envelope.messageBytes, request);
    request.matched = true;
    request.matchedSource = envelope.source;
    request.matchedTag = envelope.tag;
    request.matchedSignature = envelope.signature;
    if (envelope.type === PACKET.MATCH) {
      const written = request.buffer.copyIn(0, envelope.payload);
      this.release(envelope);
      this.completeRequest(request, written, envelope.messageBytes);
      return;
    }
    if (envelope.peer.failure !== undefined) {
      // Only its first part came before the peer died; the rest never will.
      this.release(envelope);
      request.error = envelope.peer.failure;
      core.complete(request);
      return;
    }
    if ((envelope.flags & FLAG.VOID) !== 0) request.error = this.senderLostBuffer(envelope.source, envelope.tag);
    else if (request.buffer.isGone) request.error = this.bufferGone(request);
    const windows =
      request.buffer.isContiguous && request.error === undefined
        ? envelope.windows.filter((window) => this.isReadable(envelope.peer, window))
        : [];
    const reads = envelope.type === PACKET.RGET && windows.length > 0 && Math.min(envelope.messageBytes, request.buffer.bytes) > 0;
    const message = new RecvMessage(envelope, request, reads);
    message.order = core.nextOrder();
    message.slot = core.recvs.add(message);
    message.generation = core.recvs.generationOf(message.slot);
    envelope.peer.recvs.add(message);
    core.onTransition('recv', message, 'MATCHED', message.state);
    if (reads) {
      message.remoteWindows = windows;
      message.toRead.add(0, message.takeBytes);
      core.queueStream(message);
      this.release(envelope);
      return;
    }
    const inline = Math.min(envelope.payload.length, message.takeBytes);
    if (inline > 0) {
      message.buffer.copyIn(0, envelope.payload.subarray(0, inline));
      message.received.add(0, inline);
    }
    this.release(envelope);
    this.offerWindows(message);
    core.queueControl(message);
    this.checkComplete(message);
  }

  private completeRequest(request: RecvRequest, bytes: number, messageBytes: number): void {
    const { core } = this;
    if (bytes < 0 || request.buffer.isGone) request.error ??= this.bufferGone(request);
    const isLost = request.error !== undefined;
    request.receivedBytes = isLost ? 0 : bytes;
    core.counters.messagesReceived++;
    core.counters.bytesReceived += request.receivedBytes;
    if (messageBytes > request.buffer.bytes && !isLost) {
      core.counters.truncations++;
      request.error = new MultirailError(
        'ERR_TRUNCATE',
        `a message of ${messageBytes} bytes from rank ${request.matchedSource} with tag ${request.matchedTag} was received into a buffer of ${request.buffer.bytes} bytes`,
        { rank: core.options.rank, peer: request.matchedSource, tag: request.matchedTag },
      );
    }
    core.complete(request);
  }

  /** Seen when it is used next, and at the end: nobody says when memory is taken away. */
  private bufferGone(request: RecvRequest): MultirailError {
    return new MultirailError(
      'ERR_BUFFER',
      `the buffer of a receive of a message from rank ${request.matchedSource} with tag ${request.matchedTag} was detached while it was in use: its memory was transferred elsewhere, or a WebAssembly memory grew`,
      { rank: this.core.options.rank, peer: request.matchedSource, tag: request.matchedTag },
    );
  }

  private senderLostBuffer(source: number, tag: number): MultirailError {
    return new MultirailError(
      'ERR_BUFFER',
      `rank ${source} could not send its message with tag ${tag}: its buffer was detached while it was in use`,
      { rank: this.core.options.rank, peer: source, tag },
    );
  }

  // ---------------------------------------------------------------- what must be sent

  /** Registers the next piece of the buffer for every rail over which the sender can put. */
  private offerWindows(message: RecvMessage): void {
    const { offers, takeBytes } = message;
    const from = offers.nextFrom(message.received, takeBytes);
    if (from === -1) return;
    const rails = this.railsToOffer(message);
    if (rails.length === 0) {
      offers.to = takeBytes;
      return;
    }
    offers.pieceBytes = Math.min(...rails.map(({ attributes }) => attributes.pipelineBytes ?? takeBytes));
    // Pieces end on multiples of their length, and so on the grid of what is put at once.
    const to = Math.min((Math.floor(from / offers.pieceBytes) + 1) * offers.pieceBytes, takeBytes);
    for (const rail of rails) {
      const registration = message.buffer.isGone ? undefined : rail.endpoint.register?.(message.buffer.slice(from, to));
      offers.add(rail.index, rail.epoch, registration, from, to);
    }
    offers.to = to;
  }

  /** The sender waits for a window on each rail that had one: also where this rail is out of the stripe set for now. */
  private railsToOffer(message: RecvMessage): Rail[] {
    if (!message.contiguousSender || !message.buffer.isContiguous) return [];
    const { offers, peer } = message;
    const { bml } = this.core;
    offers.rails = offers.rails.filter(({ rail, epoch }) => bml.isLive(peer.bml, rail, epoch));
    const rails = offers.rails.filter(({ ended }) => !ended).flatMap(({ rail }) => peer.bml.byNumber[rail] ?? []);
    for (const rail of peer.bml.put) {
      if (rails.length < WINDOWS_MAX && !rails.includes(rail) && !offers.hasEnded(rail.index, rail.epoch)) rails.push(rail);
    }
    return rails;
  }

  private areWindowsDue(message: RecvMessage): boolean {
    return message.state === 'RECEIVING' && message.offers.isDue(message.received, message.takeBytes);
  }

  /** Bytes were counted: pieces that are whole are let go, and the next one is offered. */
  private moveWindows(message: RecvMessage): void {
    const { offers } = message;
    if (offers.windows.length === 0 && offers.to === message.takeBytes) return;
    this.closeWindows(offers.takeReceived(message.received));
    if (this.areWindowsDue(message)) this.core.queueControl(message);
  }

  private closeWindows(windows: readonly LocalWindow[]): void {
    for (const window of windows) window.registration?.deregister();
  }

  sendControl(message: RecvMessage): 'sent' | 'none' | 'busy' {
    const { core } = this;
    const { peer } = message;
    const rails = peer.bml.eager;
    const packet = core.out;
    packet.flags = 0;
    packet.senderSlot = message.senderSlot;
    packet.senderGeneration = message.senderGeneration;
    packet.receiverSlot = message.slot;
    packet.receiverGeneration = message.generation;
    packet.epoch = message.epoch;
    if (message.state === 'READING' && message.readFailed && !message.recvErrOnRail && !message.recvErrDelivered) {
      packet.type = PACKET.RECVERRNOTIFY;
      packet.ctx = message.ctx;
      packet.source = core.options.rank;
      packet.seq = message.seq;
      if (core.send(peer, rails, { kind: 'recverr', message, epoch: message.epoch }, NOTHING, 0, false, true) !== OK) return 'busy';
      message.recvErrOnRail = true;
      core.counters.recvErrNotifies++;
      return 'sent';
    }
    if (message.endsByFin) {
      if (message.state !== 'OWING' || message.finOnRail || message.finDelivered) return 'none';
      packet.type = PACKET.FIN;
      packet.flags = FLAG.TO_SENDER;
      packet.number = 0;
      packet.from = 0;
      packet.to = message.takeBytes;
      if (core.send(peer, rails, { kind: 'fin-to-sender', message, epoch: message.epoch }, NOTHING, 0, false, true) !== OK) return 'busy';
      message.finOnRail = true;
      return 'sent';
    }
    if (message.state !== 'RECEIVING' && message.state !== 'OWING') return 'none';
    if (!message.answerOnRail && !message.answerDelivered) {
      packet.takeBytes = message.takeBytes;
      packet.putRails = message.offers.announced();
      if (!message.restarted) packet.type = PACKET.ACK;
      else this.fillRestartAck(message, packet);
      if (core.send(peer, rails, { kind: 'answer', message, epoch: message.epoch }, NOTHING, 0, false, true) !== OK) return 'busy';
      message.answerOnRail = true;
      return 'sent';
    }
    for (;;) {
      const window = this.untoldWindow(message);
      if (window === undefined) {
        if (!this.areWindowsDue(message)) return 'none';
        this.offerWindows(message);
        continue;
      }
      packet.type = PACKET.PUT;
      packet.number = window.number;
      packet.from = window.from;
      packet.to = window.to;
      packet.windows = [{ rail: window.rail, railEpoch: window.railEpoch, key: window.registration?.key ?? NO_KEY }];
      if (core.send(peer, rails, { kind: 'put', message, epoch: message.epoch, window }, NOTHING, 0, false, true) !== OK) return 'busy';
      window.telling = true;
      window.offered = true;
      return 'sent';
    }
  }

  private untoldWindow(message: RecvMessage): LocalWindow | undefined {
    for (const window of message.offers.windows) {
      if (!window.told && !window.telling && this.core.bml.isLive(message.peer.bml, window.rail, window.railEpoch)) return window;
    }
    return undefined;
  }

  /** The ranges still missing, lowest first, as many as fit; above the last one everything is missing. */
  private fillRestartAck(message: RecvMessage, packet: Packet): void {
    packet.type = PACKET.RNDVRESTARTACK;
    packet.ctx = message.ctx;
    packet.source = this.core.options.rank;
    packet.seq = message.seq;
    const missing = message.received.missing(0, message.takeBytes);
    if (missing.length <= MISSING_RANGES_MAX) {
      packet.missing = missing.map(([from, to]) => [from, to]);
      packet.from = message.takeBytes;
    } else {
      packet.missing = missing.slice(0, MISSING_RANGES_MAX).map(([from, to]) => [from, to]);
      packet.from = missing[MISSING_RANGES_MAX][0];
    }
  }

  wantsStream(message: RecvMessage): boolean {
    return message.state === 'READING' && !message.readFailed && !message.toRead.isEmpty;
  }

  /** Reads the next range of an RGET over that rail. */
  sendStream(message: RecvMessage, rail: Rail): boolean {
    const { core } = this;
    if (!this.wantsStream(message) || !rail.hasRoom) return false;
    if (message.buffer.isGone) {
      // Nothing more is read: the sender is told the end, and the request when no get is under way.
      message.toRead.clear();
      message.received.add(0, message.takeBytes);
      this.checkComplete(message);
      return false;
    }
    const window = message.remoteWindows.find((offer) => offer.rail === rail.index && offer.railEpoch === rail.epoch);
    if (window === undefined) return false;
    const bytes = rail.oneSidedBytes(core.options.fragBytes);
    const range = message.toRead.takeFirst(bytes, bytes);
    if (range === undefined) return false;
    const [from, to] = range;
    const op: PmlOneSidedOp = {
      kind: 'get',
      local: message.buffer.slice(from, to),
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
    const answer = rail.endpoint.get?.(op) ?? BUSY;
    if (answer !== OK) {
      if (answer === BUSY) core.bml.handleBusy(rail);
      message.toRead.add(from, to);
      return false;
    }
    core.touched(rail);
    message.getsUnderWay++;
    core.counters.gets++;
    return true;
  }

  sendRestartNack(peer: PmlPeer, owed: OwedRestartNack): boolean {
    const packet = this.core.out;
    packet.type = PACKET.RNDVRESTARTNACK;
    packet.flags = 0;
    packet.senderSlot = owed.senderSlot;
    packet.senderGeneration = owed.senderGeneration;
    packet.receiverSlot = owed.receiverSlot;
    packet.receiverGeneration = owed.receiverGeneration;
    packet.epoch = owed.epoch;
    packet.ctx = 0;
    packet.source = this.core.options.rank;
    packet.seq = 0;
    const use: FrameUse = {
      kind: 'restart-nack',
      senderSlot: owed.senderSlot,
      senderGeneration: owed.senderGeneration,
      epoch: owed.epoch,
    };
    if (this.core.send(peer, peer.bml.eager, use, NOTHING, 0, false, true) !== OK) return false;
    owed.onRail = true;
    return true;
  }

  private oweRestartNack(
    peer: PmlPeer,
    packet: { senderSlot: number; senderGeneration: number; epoch: number },
    slot: number,
    generation: number,
  ): void {
    const key = `${packet.senderSlot}.${packet.senderGeneration}`;
    const owed = peer.restartNacks.get(key);
    if (owed !== undefined && serialDiff(packet.epoch, owed.epoch) < 0) return;
    peer.restartNacks.set(key, {
      senderSlot: packet.senderSlot,
      senderGeneration: packet.senderGeneration,
      receiverSlot: slot,
      receiverGeneration: generation,
      epoch: packet.epoch,
      onRail: false,
    });
    this.core.markDirty(peer);
  }

  // ---------------------------------------------------------------- completions

  onAnswerCompleted(use: FrameUse & { kind: 'answer' }, status: CompletionStatus): void {
    this.core.eventTap?.('recv', use.message.state, `answer ${epochName(use)} ${COMPLETION_NAMES[status]}`);
    const { message } = use;
    if (use.epoch !== message.epoch || message.state === 'DONE') return;
    message.answerOnRail = false;
    if (status === DELIVERED) {
      message.answerDelivered = true;
      if (message.state === 'OWING') this.finish(message);
    } else if (!message.answerDelivered) this.core.queueControl(message);
  }

  onPutOfferCompleted(use: FrameUse & { kind: 'put' }, status: CompletionStatus): void {
    this.core.eventTap?.('recv', use.message.state, `PUT ${epochName(use)} ${COMPLETION_NAMES[status]}`);
    const { message, window } = use;
    window.telling = false;
    if (status === DELIVERED) window.told = true;
    else if (use.epoch === message.epoch && message.state === 'RECEIVING') this.core.queueControl(message);
  }

  onRecvErrCompleted(use: FrameUse & { kind: 'recverr' }, status: CompletionStatus): void {
    this.core.eventTap?.('recv', use.message.state, `RECVERR ${epochName(use)} ${COMPLETION_NAMES[status]}`);
    const { message } = use;
    if (use.epoch !== message.epoch || message.state !== 'READING') return;
    message.recvErrOnRail = false;
    if (status === DELIVERED) message.recvErrDelivered = true;
    else this.core.queueControl(message);
  }

  onFinCompleted(use: FrameUse & { kind: 'fin-to-sender' }, status: CompletionStatus): void {
    this.core.eventTap?.('recv', use.message.state, `FIN ${epochName(use)} ${COMPLETION_NAMES[status]}`);
    const { message } = use;
    if (use.epoch !== message.epoch || message.state !== 'OWING') return;
    message.finOnRail = false;
    if (status === DELIVERED) {
      message.finDelivered = true;
      this.finish(message);
    } else this.core.queueControl(message);
  }

  onRestartNackCompleted(peer: PmlPeer, use: FrameUse & { kind: 'restart-nack' }, status: CompletionStatus): void {
    const key = `${use.senderSlot}.${use.senderGeneration}`;
    const owed = peer.restartNacks.get(key);
    if (owed === undefined || owed.epoch !== use.epoch) return;
    owed.onRail = false;
    if (status === DELIVERED) peer.restartNacks.delete(key);
    else this.core.markDirty(peer);
  }

  onGetCompleted(op: PmlOneSidedOp & { message: RecvMessage }, status: CompletionStatus): void {
    this.core.eventTap?.('recv', op.message.state, `get ${epochName(op)} ${COMPLETION_NAMES[status]}`);
    const { message } = op;
    const { core } = this;
    message.getsUnderWay--;
    if (message.state === 'DONE' || message.state === 'OWING') return;
    // A read that was done is done, whatever became of the epoch: the bytes lie in the buffer.
    if (status === DELIVERED) message.received.add(op.from, op.to);
    if (message.state === 'READING') {
      if (status !== DELIVERED) this.readFailed(message);
      this.checkComplete(message);
    } else if (message.state === 'FENCING' && message.getsUnderWay === 0) this.fenced(message);
    core.markDirty(message.peer);
  }

  private readFailed(message: RecvMessage): void {
    message.readFailed = true;
    this.core.queueControl(message);
  }

  /** The peer's tables changed: an RGET with nothing left to read over must go another way. */
  onRailsChanged(peer: PmlPeer): void {
    for (const message of peer.recvs) this.checkReadable(message);
  }

  /** A window can be used while its rail epoch lives and its rail is in the stripe set (a standby rail may not be). */
  private isReadable(peer: PmlPeer, window: RemoteWindow): boolean {
    return peer.bml.get.some((rail) => rail.index === window.rail && rail.epoch === window.railEpoch);
  }

  private checkReadable(message: RecvMessage): void {
    if (message.state !== 'READING' || message.readFailed || message.toRead.isEmpty) return;
    if (!message.remoteWindows.some((window) => this.isReadable(message.peer, window))) this.readFailed(message);
  }

  // ---------------------------------------------------------------- fragments

  private find(peer: PmlPeer, packet: Packet): RecvMessage | undefined {
    const hit = this.core.recvs.lookup(packet.receiverSlot, packet.receiverGeneration);
    if (hit === 'never-issued') {
      throw new MultirailError('ERR_PROTOCOL', `receive id ${packet.receiverSlot}.${packet.receiverGeneration} was never issued`);
    }
    if (hit === 'retired') return undefined;
    if (hit.found.peer !== peer) throw new MultirailError('ERR_PROTOCOL', `receive ${hit.found.traceId} is named by rank ${peer.rank}`);
    this.core.eventTap?.('recv', hit.found.state, packetEvent(packet, hit.found.epoch));
    return hit.found;
  }

  /** Where a fragment goes: into the posted buffer, or into nothing when its bytes must not be written (B4). */
  sinkFor(peer: PmlPeer, railIndex: number, packet: Packet, payloadBytes: number): FragSink {
    const { core } = this;
    const sink: FragSink = {
      views: [],
      revoked: false,
      message: undefined,
      from: packet.from,
      to: packet.from + payloadBytes,
      epoch: packet.epoch,
      rail: railIndex,
      isVoid: (packet.flags & FLAG.VOID) !== 0,
    };
    const message = this.find(peer, packet);
    if (message?.state !== 'RECEIVING') {
      core.counters.fragStale++;
      return sink;
    }
    const ahead = serialDiff(packet.epoch, message.epoch);
    if (ahead > 0)
      throw new MultirailError('ERR_PROTOCOL', `a FRAG of epoch ${packet.epoch} for receive ${message.traceId} in epoch ${message.epoch}`);
    if (ahead < 0) {
      core.counters.fragStale++;
      return sink;
    }
    if (sink.to > message.takeBytes) throw new MultirailError('ERR_PROTOCOL', `a FRAG beyond receive ${message.traceId}`);
    let covered = message.received.intersects(sink.from, sink.to);
    for (const open of message.openSinks) if (open.from < sink.to && sink.from < open.to) covered = true;
    if (covered) {
      core.counters.fragDuplicates++;
      return sink;
    }
    // A fragment of this epoch proves that the sender has our answer.
    this.answered(message);
    // What comes for a buffer that is gone is counted, so that the sender comes to its end.
    if (!message.buffer.isGone) sink.views = message.buffer.slice(sink.from, sink.to);
    sink.message = message;
    message.openSinks.add(sink);
    return sink;
  }

  private answered(message: RecvMessage): void {
    message.answerDelivered = true;
  }

  onFrag(sink: FragSink): void {
    const { message } = sink;
    if (message === undefined || sink.revoked) return;
    message.openSinks.delete(sink);
    if (sink.isVoid) {
      const { request } = message;
      if (request !== undefined) request.error ??= this.senderLostBuffer(request.matchedSource, request.matchedTag);
      // Nothing is missing any more: what else is on its way goes into nothing.
      message.received.add(0, message.takeBytes);
    } else message.received.add(sink.from, sink.to);
    this.moveWindows(message);
    this.checkComplete(message);
  }

  onSinkDropped(sink: FragSink): void {
    sink.message?.openSinks.delete(sink);
  }

  /** One function revokes: synchronously at the rail, after which not one byte is written. */
  private revokeSinks(message: RecvMessage): void {
    for (const sink of message.openSinks) {
      message.peer.bml.byNumber[sink.rail]?.endpoint.revokeSink(sink);
      sink.revoked = true;
    }
    message.openSinks.clear();
  }

  /** A put of the sender has landed. */
  onFinToReceiver(peer: PmlPeer, packet: Packet): void {
    const { core } = this;
    const message = this.find(peer, packet);
    if (message === undefined || message.state !== 'RECEIVING' || serialDiff(packet.epoch, message.epoch) < 0) {
      core.counters.controlStale++;
      return;
    }
    if (serialDiff(packet.epoch, message.epoch) > 0 || packet.to > message.takeBytes) {
      throw new MultirailError('ERR_PROTOCOL', `a FIN that does not fit receive ${message.traceId}`);
    }
    // Whoever says that it wrote where nobody may write has written nothing: the user would be given bytes that never came.
    const verdict = message.offers.judgeFin(packet.number, packet.from, packet.to);
    if (verdict === 'wrong') {
      throw new MultirailError('ERR_PROTOCOL', `a FIN for window ${packet.number} of receive ${message.traceId}, which has no such window`);
    }
    this.answered(message);
    if (verdict === 'late') {
      core.counters.controlStale++;
      return;
    }
    message.received.add(packet.from, packet.to);
    this.moveWindows(message);
    this.checkComplete(message);
  }

  // ---------------------------------------------------------------- restart

  onNotify(peer: PmlPeer, packet: Packet): void {
    const { core } = this;
    const message = this.find(peer, packet);
    if (message === undefined) {
      // The retired generation is the tombstone: the message was received in full.
      this.oweRestartNack(peer, packet, packet.receiverSlot, packet.receiverGeneration);
      return;
    }
    if (message.senderSlot !== packet.senderSlot || message.senderGeneration !== packet.senderGeneration) {
      throw new MultirailError('ERR_PROTOCOL', `a NOTIFY that does not fit receive ${message.traceId}`);
    }
    const ahead = serialDiff(packet.epoch, message.epoch);
    if (ahead < 0) {
      core.counters.controlStale++;
      return;
    }
    if (message.state === 'OWING') {
      this.oweRestartNack(peer, packet, message.slot, message.generation);
      this.finish(message);
      return;
    }
    if (ahead === 0) {
      // Of the current epoch: only answered again.
      if (message.state === 'RECEIVING' && !message.answerOnRail) {
        message.answerDelivered = false;
        core.queueControl(message);
      }
      return;
    }
    for (const dead of packet.deadRails) core.fence(peer, dead.rail, dead.epoch, 'the peer restarted a message over its loss');
    this.revokeSinks(message);
    this.closeWindows(message.offers.takeAll());
    message.epoch = packet.epoch;
    message.restarted = true;
    message.endsByFin = false;
    message.answerDelivered = false;
    message.answerOnRail = false;
    message.toRead.clear();
    message.remoteWindows = [];
    if (message.state !== 'FENCING') moveRecv(message, 'FENCING', core);
    if (message.getsUnderWay === 0) this.fenced(message);
  }

  /** Nothing of an older epoch can land any more: the NOTIFY is answered. */
  private fenced(message: RecvMessage): void {
    if (message.received.bytes === message.takeBytes) {
      // The last own gets brought the rest: the sender is told that all is here.
      this.oweRestartNack(
        message.peer,
        { senderSlot: message.senderSlot, senderGeneration: message.senderGeneration, epoch: message.epoch },
        message.slot,
        message.generation,
      );
      this.completeMessage(message);
      this.finish(message);
      return;
    }
    // What lies above the last range that the answer can name is sent again, so it is not counted any more. Once per epoch, and
    // not where the answer is made: an answer that is said again finds fragments counted which the sender will not send again.
    const tail = message.received.missing(0, message.takeBytes)[MISSING_RANGES_MAX];
    if (tail !== undefined) message.received.remove(tail[0], message.takeBytes);
    moveRecv(message, 'RECEIVING', this.core);
    this.offerWindows(message);
    this.core.queueControl(message);
  }

  // ---------------------------------------------------------------- ends

  private checkComplete(message: RecvMessage): void {
    if (message.state !== 'RECEIVING' && message.state !== 'READING') return;
    if (message.received.bytes < message.takeBytes) return;
    if (message.getsUnderWay > 0) return;
    this.completeMessage(message);
    if (message.endsByFin || !message.answerDelivered) {
      moveRecv(message, 'OWING', this.core);
      this.core.queueControl(message);
    } else this.finish(message);
  }

  /** Every sink is revoked and every window closed before the user gets the buffer back. */
  private completeMessage(message: RecvMessage): void {
    this.revokeSinks(message);
    this.closeWindows(message.offers.takeAll());
    const { request } = message;
    message.request = undefined;
    if (request !== undefined) this.completeRequest(request, message.takeBytes, message.messageBytes);
  }

  private finish(message: RecvMessage): void {
    const { core } = this;
    this.closeWindows(message.offers.takeAll());
    moveRecv(message, 'DONE', core);
    core.recvs.retire(message.slot, message.generation);
    message.peer.recvs.delete(message);
  }

  /** The peer is gone for ever. */
  fail(peer: PmlPeer, error: MultirailError): void {
    for (const message of [...peer.recvs]) {
      this.revokeSinks(message);
      const { request } = message;
      message.request = undefined;
      if (request !== undefined) {
        request.error = error;
        this.core.complete(request);
      }
      this.finish(message);
    }
    // What overtook a message that was lost with the peer never gets its turn.
    for (const { early } of peer.flowsIn.values()) {
      for (const envelope of early.values()) this.release(envelope);
      early.clear();
    }
    this.endPosted(peer.rank, error);
    peer.restartNacks.clear();
  }

  /** Every receive that is posted and has not matched, in no particular order. */
  postedRequests(): RecvRequest[] {
    return [...this.contexts.values()].flatMap((context) => (context.postedCount === 0 ? [] : context.postedRequests()));
  }

  /** How many messages of each source wait on this context for a receive; of all together under ANY. */
  unexpectedBySource(ctx: number): Map<number, number> {
    const bySource = new Map<number, number>();
    for (const { source } of this.contexts.get(ctx)?.unexpectedEnvelopes() ?? []) {
      bySource.set(source, (bySource.get(source) ?? 0) + 1);
      bySource.set(ANY, (bySource.get(ANY) ?? 0) + 1);
    }
    return bySource;
  }

  unreceived(): Unreceived[] {
    const list: Unreceived[] = [];
    for (const context of this.contexts.values()) {
      if (context.unexpectedCount === 0) continue;
      for (const { ctx, source, tag, messageBytes } of context.unexpectedEnvelopes())
        list.push({ peer: source, ctx, tag, bytes: messageBytes });
    }
    return list;
  }

  /** Posted receives of that source that can never match end with this error; ANY: all of them. */
  endPosted(source: number, error: MultirailError): void {
    for (const context of this.contexts.values()) {
      for (const request of context.postedRequests()) {
        if (source !== ANY && request.source !== source) continue;
        context.unpost(request);
        request.error = error;
        this.core.complete(request);
      }
    }
  }

  endPostedToAny(ctx: number, error: MultirailError): void {
    const context = this.contexts.get(ctx);
    if (context === undefined || context.postedCount === 0) return;
    for (const request of context.postedRequests()) {
      if (request.source !== ANY) continue;
      context.unpost(request);
      request.error = error;
      this.core.complete(request);
    }
  }

  /** The peer said BYE: it waits for nothing of ours. */
  peerSaidBye(peer: PmlPeer): void {
    peer.restartNacks.clear();
    for (const message of [...peer.recvs]) if (message.state === 'OWING') this.finish(message);
    if (peer.left !== undefined) this.endPosted(peer.rank, peer.left);
  }
}

export function isFragSink(sink: Sink): sink is FragSink {
  return (sink as FragSink).from !== undefined;
}
