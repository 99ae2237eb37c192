// Where messages meet receives: contexts, the numbers of each flow, envelopes that came too early, matching. An eager message ends here;
// a rendezvous that has found its receive goes on in receiver.ts.
import { MultirailError } from '../errors.ts';
import { EMPTY_BYTES } from '../util/iov.ts';
import { serialAdd, serialDiff } from '../util/serial.ts';
import type { PmlCore } from './core.ts';
import { SEQ_SPAN_MAX } from './flows.ts';
import { ENVELOPE_CHARGE_BYTES, FLAG, MATCH_CHARGED_HEAD, MATCH_WORDS, PACKET, type Packet, TWO_32, U53_HIGH_MAX } from './hdr.ts';
import { ANY, MatchContext } from './match.ts';
import { completeReceive } from './outcome.ts';
import type { Unreceived } from './owed-records.ts';
import { isWhole, type Receiver } from './receiver.ts';
import type { Envelope, FlowIn, Hole, PmlPeer, RecvRequest } from './records.ts';
import type { RemoteWindow } from './windows.ts';

const NO_WINDOWS: readonly RemoteWindow[] = [];

export class Inbox {
  private readonly core: PmlCore;
  private readonly receiver: Receiver;
  private readonly contexts = new Map<number, MatchContext>();
  /** Freed while messages for them may still be on their way. */
  private readonly freed = new Set<number>();
  /**
   * Whether messages may come for a context; undefined: for any, which comes into being with the first one. What is not admitted is a
   * copy of a message that was taken before its context was released.
   */
  admits: ((ctx: number) => boolean) | undefined = undefined;
  private lastCtx = -1;
  private lastContext: MatchContext | undefined = undefined;
  /** Sees every match (the simulator's oracle). */
  matchTap: ((ctx: number, source: number, tag: number, messageBytes: number, request: RecvRequest) => void) | undefined = undefined;
  /** Called when a message becomes visible to probes, so that blocked probes look again. */
  onUnexpected: ((envelope: Envelope) => void) | undefined = undefined;

  constructor(core: PmlCore, receiver: Receiver) {
    this.core = core;
    this.receiver = receiver;
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
    const { tap } = this.core;
    if (request.source === ANY && tap?.options.covers(request.ctx)) tap.options.outcomes?.post(request);
    const envelope = this.context(request.ctx).post(request);
    if (envelope !== undefined) {
      this.match(envelope, request);
      return;
    }
    const peer = request.source >= 0 ? this.core.peers.get(request.source) : undefined;
    const ended = peer?.ended;
    if (ended !== undefined && !this.isHeld(peer, request.ctx)) {
      this.context(request.ctx).unpost(request);
      request.error = ended;
      this.core.complete(request);
    }
  }

  /** The peer has died, and the messages of that context come from its successor. */
  private isHeld(peer: PmlPeer | undefined, ctx: number): boolean {
    return peer?.channel?.state === 'HELD' && this.core.tap?.covers(peer.rank, ctx) === true;
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

  /** The context is gone and its id is never used again: what waits for it, or comes later, is dropped. Posted receives end with the error. */
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
    const { tap } = this.core;
    // A successor may send what came on it once more: the numbers tell that it is here.
    if (tap !== undefined && tap.options.answersUnknown !== true && tap.options.covers(ctx)) {
      tap.released.push(ctx);
      return;
    }
    this.forgetFlows(ctx);
  }

  /** The context begins again, with numbers that are set then. All that was sent on it has come. */
  renew(ctx: number): void {
    this.dropContext(ctx, undefined);
    this.freed.delete(ctx);
    for (const peer of this.core.peers.values()) {
      const flow = peer.dropFlows(ctx);
      for (const envelope of flow?.early.values() ?? []) this.dropFreed(envelope);
    }
  }

  /** A message that a matched probe has taken, and that nobody will receive. */
  dropProbed(envelope: Envelope): void {
    this.dropFreed(envelope);
  }

  /** The numbers of a context that is gone. */
  forgetFlows(ctx: number): void {
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

  private dropFreed(envelope: Envelope): void {
    // It comes again, and is answered then.
    if (envelope.isHole) return;
    this.core.counters.freedContextDropped++;
    this.core.releaseCharge(envelope);
    // Its sender waits for an answer, and keeps the buffer until it has one.
    if (envelope.type !== PACKET.MATCH) this.receiver.discard(envelope);
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
      // A successor does not know what was received before it. It is no copy, and is answered.
      if (core.tap?.options.answersUnknown === true && peer.channel !== undefined)
        this.dropFreed(this.hold(peer, packet, payload, chargeOf(packet, payload)));
      else core.counters.freedContextDropped++;
      return;
    }
    const flow = peer.flowIn(packet.ctx);
    const ahead = serialDiff(packet.seq, flow.expectedSeq);
    if (ahead < 0 || flow.early.has(packet.seq) || flow.taken?.has(packet.seq) === true) {
      if (flow.holes !== undefined && this.fillHole(peer, flow, packet, payload)) return;
      // Nothing is answered: the ACK, or the FIN of an RGET, is held until delivered.
      core.counters.envelopeDuplicates++;
      return;
    }
    if (ahead > SEQ_SPAN_MAX) throw new MultirailError('ERR_PROTOCOL', `sequence ${packet.seq} is ${ahead} ahead`);
    const charge = chargeOf(packet, payload);
    if (ahead === 0 && core.tap !== undefined && packet.type === PACKET.MATCH)
      core.tap.received(peer, packet.ctx, packet.seq, packet.tag, payload, payload.length);
    if (ahead === 0 && packet.type === PACKET.MATCH && this.receiveEager(peer, flow, packet, payload, charge)) return;
    const envelope = this.hold(peer, packet, payload, charge);
    if (ahead > 0) {
      core.counters.earlyArrivals++;
      envelope.payload = new Uint8Array(payload);
      flow.early.set(packet.seq, envelope);
      return;
    }
    if (ahead === 0) expectNext(flow);
    this.deliver(envelope, false);
    this.deliverEarly(flow);
  }

  /** Its record while it waits, or is received. The payload is not our copy yet. */
  private hold(peer: PmlPeer, packet: Packet, payload: Uint8Array, charge: number): Envelope {
    peer.heldBytes += charge;
    return {
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
      isHole: false,
    };
  }

  /** The common case: the next eager message of its flow finds its receive posted. It needs no record of its own. */
  private receiveEager(peer: PmlPeer, flow: FlowIn, packet: Packet, payload: Uint8Array, charge: number): boolean {
    const { core } = this;
    if (this.freed.size > 0 && this.freed.has(packet.ctx)) return false;
    const request = this.context(packet.ctx).matchPosted(packet.source, packet.tag);
    if (request === undefined) return false;
    expectNext(flow);
    core.counters.matchesPosted++;
    this.matchTap?.(packet.ctx, packet.source, packet.tag, payload.length, request);
    request.matched = true;
    request.matchedSource = packet.source;
    request.matchedTag = packet.tag;
    request.matchedSeq = packet.seq;
    request.matchedSignature = packet.signature;
    if (request.anyNumber > 0) core.tap?.matched(request, packet.source, packet.seq);
    const written = request.buffer.copyIn(0, payload);
    core.released(peer, charge);
    completeReceive(core, request, written, payload.length);
    if (flow.early.size > 0) this.deliverEarly(flow);
    return true;
  }

  /**
   * onEnvelope() and receiveEager() for a charged MATCH in words, without a decoded packet, a view or a copy. False where anything is not as it
   * most often is: then nothing has changed, and those two, which remain the specification, say what becomes of the frame.
   */
  receiveWords(peer: PmlPeer, words: Int32Array, headerAt: number, payloadAt: number, payloadBytes: number): boolean {
    // Each word is read once: the peer could change it between our checks and our use.
    const creditHigh = words[headerAt + MATCH_WORDS.creditHigh];
    if (words[headerAt] !== MATCH_CHARGED_HEAD || creditHigh < 0 || creditHigh > U53_HIGH_MAX) return false;
    const creditLimit = creditHigh * TWO_32 + (words[headerAt + MATCH_WORDS.creditLow] >>> 0);
    const ctx = words[headerAt + MATCH_WORDS.ctx] >>> 0;
    const tag = words[headerAt + MATCH_WORDS.tag];
    const signature = words[headerAt + MATCH_WORDS.signature] >>> 0;
    // A context that was asked for last is admitted, and there.
    if (ctx !== this.lastCtx || tag < 0 || words[headerAt + MATCH_WORDS.source] !== peer.rank) return false;
    if (this.freed.size > 0 && this.freed.has(ctx)) return false;
    const flow = peer.flowIn(ctx);
    const { expectedSeq: seq } = flow;
    if (words[headerAt + MATCH_WORDS.seq] >>> 0 !== seq || flow.early.size > 0 || flow.taken !== undefined) return false;
    const request = (this.lastContext as MatchContext).matchPosted(peer.rank, tag);
    if (request === undefined) return false;
    const { core } = this;
    const { tap } = core;
    if (creditLimit > peer.creditLimit) peer.raiseCredit(creditLimit);
    flow.expectedSeq = serialAdd(seq, 1);
    core.counters.matchesPosted++;
    this.matchTap?.(ctx, peer.rank, tag, payloadBytes, request);
    request.matched = true;
    request.matchedSource = peer.rank;
    request.matchedTag = tag;
    request.matchedSeq = seq;
    request.matchedSignature = signature;
    if (request.anyNumber > 0) tap?.matched(request, peer.rank, seq);
    const { buffer } = request;
    const written = buffer.copyWordsIn(words, payloadAt, payloadBytes);
    if (tap !== undefined) {
      const isWhole = written === payloadBytes && buffer.views.length === 1;
      tap.received(peer, ctx, seq, tag, isWhole ? buffer.views[0] : bytesAt(words, payloadAt, payloadBytes), payloadBytes);
    }
    core.released(peer, payloadBytes + ENVELOPE_CHARGE_BYTES);
    completeReceive(core, request, written, payloadBytes);
    return true;
  }

  /** The data of a message whose number was taken before its sender died: it has its place, or its receive. False: it is a copy. */
  private fillHole(peer: PmlPeer, flow: FlowIn, packet: Packet, payload: Uint8Array): boolean {
    const hole = flow.holes?.get(packet.seq);
    if (hole === undefined) return false;
    flow.holes?.delete(packet.seq);
    const envelope = this.hold(peer, packet, payload, chargeOf(packet, payload));
    const { request, envelope: place } = hole;
    if (envelope.type === PACKET.MATCH) this.core.tap?.received(peer, packet.ctx, packet.seq, packet.tag, payload, payload.length);
    if (place === undefined) {
      if (request !== undefined) this.take(envelope, request);
      else this.dropFreed(envelope);
      return true;
    }
    Object.assign(place, envelope);
    place.payload = new Uint8Array(payload);
    if (this.freed.has(place.ctx)) this.dropFreed(place);
    else this.onUnexpected?.(place);
    return true;
  }

  private deliverEarly(flow: FlowIn): void {
    for (let next = flow.early.get(flow.expectedSeq); next !== undefined; next = flow.early.get(flow.expectedSeq)) {
      flow.early.delete(flow.expectedSeq);
      expectNext(flow);
      if (next.type === PACKET.MATCH) this.core.tap?.received(next.peer, next.ctx, next.seq, next.tag, next.payload, next.messageBytes);
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

  private match(envelope: Envelope, request: RecvRequest): void {
    this.matchTap?.(envelope.ctx, envelope.source, envelope.tag, envelope.messageBytes, request);
    request.matched = true;
    request.matchedSource = envelope.source;
    request.matchedTag = envelope.tag;
    request.matchedSeq = envelope.seq;
    request.matchedSignature = envelope.signature;
    if (request.anyNumber > 0) this.core.tap?.matched(request, envelope.source, envelope.seq);
    if (envelope.isHole) {
      const hole = envelope.peer.flowIn(envelope.ctx).holes?.get(envelope.seq) as Hole;
      hole.envelope = undefined;
      hole.request = request;
      return;
    }
    this.take(envelope, request);
  }

  /** The message goes into the buffer of that receive. */
  private take(envelope: Envelope, request: RecvRequest): void {
    const { core } = this;
    if (envelope.type === PACKET.MATCH) {
      const written = request.buffer.copyIn(0, envelope.payload);
      core.releaseCharge(envelope);
      completeReceive(core, request, written, envelope.messageBytes);
      return;
    }
    this.receiver.begin(envelope, request);
  }

  // ---------------------------------------------------------------- ends

  /** Nothing comes from that peer any more. */
  endPeer(peer: PmlPeer, error: MultirailError): void {
    const isKept = (ctx: number): boolean => this.isHeld(peer, ctx);
    // What overtook a message that was lost with the peer never gets its turn.
    for (const { early } of peer.flowsIn.values()) {
      for (const envelope of early.values()) this.core.releaseCharge(envelope);
      early.clear();
    }
    // Only messages that are here as a whole outlive their sender while they wait for a receive: a probe must not find the others.
    for (const [ctx, context] of this.core.options.forgetsIncomplete === true ? this.contexts : []) {
      if (context.unexpectedCount === 0 || isKept(ctx)) continue;
      for (const envelope of context.unexpectedEnvelopes()) {
        if (envelope.peer !== peer || isWhole(envelope)) continue;
        context.takeUnexpected(envelope);
        this.core.releaseCharge(envelope);
      }
    }
    this.endPosted(peer.rank, error, isKept);
  }

  /** What came of that source on this context waits for nobody any more. */
  dropUnexpected(source: number, ctx: number): void {
    const context = this.contexts.get(ctx);
    for (const envelope of context?.unexpectedEnvelopes() ?? []) {
      if (envelope.source !== source) continue;
      context?.takeUnexpected(envelope);
      this.core.releaseCharge(envelope);
    }
  }

  /** Posted receives of that source that can never match end with this error; ANY: all of them. */
  endPosted(source: number, error: MultirailError, isKept?: (ctx: number) => boolean): void {
    for (const [ctx, context] of this.contexts) {
      if (isKept?.(ctx) === true) continue;
      for (const request of context.postedRequests()) {
        if (source !== ANY && request.source !== source) continue;
        context.unpost(request);
        request.error = error;
        this.core.complete(request);
      }
    }
  }

  endPostedToAny(ctx: number, error: MultirailError, isMeant?: (request: RecvRequest) => boolean): void {
    const context = this.contexts.get(ctx);
    if (context === undefined || context.postedCount === 0) return;
    for (const request of context.postedRequests()) {
      if (request.source !== ANY || isMeant?.(request) === false) continue;
      context.unpost(request);
      request.error = error;
      this.core.complete(request);
    }
  }

  // ---------------------------------------------------------------- views

  /** The contexts that are in use. */
  get all(): Iterable<[number, MatchContext]> {
    return this.contexts;
  }

  /** Receives that are posted on it. */
  postedOn(ctx: number): number {
    return this.contexts.get(ctx)?.postedCount ?? 0;
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

  /** Messages that came and that nothing has received. */
  unreceived(): Unreceived[] {
    const list: Unreceived[] = [];
    for (const context of this.contexts.values()) {
      if (context.unexpectedCount === 0) continue;
      for (const { ctx, source, tag, messageBytes } of context.unexpectedEnvelopes())
        list.push({ peer: source, ctx, tag, bytes: messageBytes });
    }
    return list;
  }
}

/** So many bytes that `words` holds from the index `at` on. */
function bytesAt(words: Int32Array, at: number, bytes: number): Uint8Array {
  return bytes === 0 ? EMPTY_BYTES : new Uint8Array(words.buffer, words.byteOffset + at * 4, bytes);
}

function expectNext(flow: FlowIn): void {
  flow.expectedSeq = serialAdd(flow.expectedSeq, 1);
  if (flow.taken !== undefined) passTaken(flow, flow.taken);
}

/** Numbers that do not come are passed. */
export function passTaken(flow: FlowIn, taken: Set<number>): void {
  while (taken.delete(flow.expectedSeq)) flow.expectedSeq = serialAdd(flow.expectedSeq, 1);
  if (taken.size === 0) flow.taken = undefined;
}

function chargeOf({ flags }: Packet, payload: Uint8Array): number {
  return (flags & FLAG.CHARGED) !== 0 ? payload.length + ENVELOPE_CHARGE_BYTES : 0;
}
