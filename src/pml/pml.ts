// The point-to-point message layer: the face of src/pml. Pure and synchronous; see docs/internals/ARCHITECTURE.md for the calling order.
//
// Five kinds of methods:
//   commands from the application   isend, giveUp, irecv, irecvInBackground, cancel, iprobe, improbe, imrecv, freeContext
//   events from the rails           handleFrame, sinkFor, handleSinkDropped, handleCompleted, handleOneSidedCompleted,
//                                   handleRailUp, handleRailDown, handleRailsChanged, handleWritable, handlePeerFailed, handlePeerBye
//   work                            pump(): gives what is owed to the rails. Call it after any of the above, before waiting.
//   outcomes                        handOnCompletions(): calls `onDone` of the requests that are done, in order
//   views                           counters, openRequests, undelivered, …: they change nothing
// No other method calls back but to `admits` and `onUnexpected`, and none calls into the engine.
import type { Bml } from '../bml/bml.ts';
import type { BmlPeer } from '../bml/peer.ts';
import type { Rail } from '../bml/rail.ts';
import { type CompletionStatus, DELIVERED, type Frame, type OneSidedOp, type Sink } from '../btl/btl.ts';
import { MultirailError } from '../errors.ts';
import { assert } from '../util/assert.ts';
import type { Iov } from '../util/iov.ts';
import { PmlCore, type PmlOptions, type PmlTaps, type TraceEntry } from './core.ts';
import type { PmlCounters } from './counters.ts';
import { GivenUpSends } from './given-up.ts';
import { decodePacket, FLAG, MATCH_HEADER_BYTES, newPacket, PACKET, PACKET_NAMES, type Packet } from './hdr.ts';
import { Inbox } from './inbox.ts';
import { ANY } from './match.ts';
import type { TapOptions } from './message-log.ts';
import { hasLeft, unknownPeer } from './outcome.ts';
import { OwedToPeers } from './owed.ts';
import type { Unreceived } from './owed-records.ts';
import { describeRequests, type OpenRequest, openRequests, type PendingRequest, undeliveredTo } from './pending.ts';
import { Pump } from './pump.ts';
import { isFragSink, Receiver } from './receiver.ts';
import {
  EagerMessage,
  type Envelope,
  PmlFrame,
  type PmlOneSidedOp,
  PmlPeer,
  type RecvMessage,
  RecvRequest,
  type SendRequest,
} from './records.ts';
import { revokeMessages } from './revoked.ts';
import { isSendOp, Sender } from './sender.ts';
import { Succession } from './succession.ts';
import { Tap } from './tap.ts';

export class Pml {
  private readonly core: PmlCore;
  private readonly sender: Sender;
  private readonly receiver: Receiver;
  private readonly inbox: Inbox;
  private readonly givenUp: GivenUpSends;
  private readonly owed: OwedToPeers;
  private readonly pumping: Pump;
  private readonly packet: Packet = newPacket();
  private readonly byRank: (PmlPeer | undefined)[] = [];
  /** What becomes of the messages of a peer that dies, when they are logged. */
  private succession: Succession | undefined = undefined;
  /** Asked to add the peer of a rank that a command names for the first time. */
  onFirstUse: ((rank: number) => void) | undefined = undefined;

  constructor(options: PmlOptions, bml: Bml) {
    this.core = new PmlCore(options, bml);
    this.sender = new Sender(this.core);
    this.givenUp = new GivenUpSends(this.core);
    this.owed = new OwedToPeers(this.core);
    this.receiver = new Receiver(this.core, this.owed);
    this.inbox = new Inbox(this.core, this.receiver);
    this.pumping = new Pump(this.core, this.sender, this.receiver, this.owed, this.givenUp);
  }

  /** `unexpectedBytesMax` is what the peer states in its modex entry: the credit that we start with. */
  addPeer(rank: number, bmlPeer: BmlPeer, unexpectedBytesMax: number): void {
    const peer = new PmlPeer(rank, bmlPeer, unexpectedBytesMax, this.core.options.unexpectedBytesMax);
    this.core.peers.set(rank, peer);
    this.byRank[rank] = peer;
  }

  /** That peer. One that nothing was needed of before is made by `onFirstUse`. */
  peer(rank: number): PmlPeer {
    return this.byRank[rank] ?? this.firstUse(rank);
  }

  knownPeer(rank: number): PmlPeer | undefined {
    return this.byRank[rank];
  }

  private firstUse(rank: number): PmlPeer {
    this.onFirstUse?.(rank);
    return this.byRank[rank] ?? unknownPeer(rank);
  }

  // ---------------------------------------------------------------- commands

  /**
   * Starts a send to a world rank. The buffer belongs to the PML until the request is done; an eager request is done on
   * return, since its bytes were copied. `sync`: done only when the receive has matched. Like every request it is handed on
   * through `onDone` only when that is set before it is done: look at `done` first. `signature`: of the collective call that it is a
   * message of; it is only carried. `canGiveUp`: giveUp() may end it, so the peer is not offered the memory to read.
   */
  isend(rank: number, ctx: number, tag: number, buffer: Iov, sync = false, signature = 0, canGiveUp = false): SendRequest {
    const tap = this.succession?.tap;
    if (tap?.covers(rank, ctx)) return tap.start(this.peer(rank), ctx, tag, buffer, sync, signature, canGiveUp);
    return this.sender.start(this.peer(rank), ctx, tag, buffer, sync, signature, canGiveUp);
  }

  /**
   * isend() of what leaves, or is kept, at once: true, and there is no request of it, since it would be done. False: nothing has changed, and
   * isend() sends it.
   */
  sendEager(rank: number, ctx: number, tag: number, buffer: Iov): boolean {
    const { tap } = this.core;
    if (tap?.covers(rank, ctx)) return tap.sendEager(this.peer(rank), ctx, tag, buffer, 0);
    return this.sender.eager.start(this.peer(rank), ctx, tag, buffer, 0);
  }

  /** Ends a send before its time: its buffer is the caller's again when it is done, and its message goes on from a copy. */
  giveUp(request: SendRequest, error: MultirailError): void {
    this.givenUp.giveUp(request, error);
  }

  /**
   * Posts a receive from a world rank or ANY. The buffer belongs to the PML until the request is done. `ended`: a request that has ended and
   * to which nobody refers any more, to be used again.
   */
  irecv(source: number, ctx: number, tag: number, buffer: Iov, ended?: RecvRequest): RecvRequest {
    // A source that is named may have to be dialled before it can send.
    if (source >= 0) this.peer(source);
    const request = ended === undefined ? new RecvRequest(ctx, source, tag, buffer) : ended.again(ctx, source, tag, buffer);
    this.core.open(request);
    this.inbox.post(request);
    return request;
  }

  /** As irecv, for a receive that nobody waits for: no driver spins for its sake. `onDone` is called once, unless it is done on return. */
  irecvInBackground(source: number, ctx: number, tag: number, buffer: Iov, onDone: (request: RecvRequest) => void): RecvRequest {
    const request = this.irecv(source, ctx, tag, buffer);
    if (request.done) return request;
    this.setAside(request);
    request.onDone = () => onDone(request);
    return request;
  }

  /** Nobody waits for that receive, which has not ended. */
  setAside(request: RecvRequest): void {
    request.isInBackground = true;
    this.core.backgroundRequests++;
  }

  cancel(request: RecvRequest): boolean {
    return this.inbox.cancel(request);
  }

  /** The message that a receive with this pattern would match now; it stays in the queue. */
  iprobe(source: number, ctx: number, tag: number): Envelope | undefined {
    return this.inbox.context(ctx).probe(source, tag);
  }

  /** As iprobe, but takes the message out of the queue: only imrecv can receive it. */
  improbe(source: number, ctx: number, tag: number): Envelope | undefined {
    const context = this.inbox.context(ctx);
    const envelope = context.probe(source, tag);
    if (envelope === undefined) return undefined;
    context.takeUnexpected(envelope);
    if (this.core.tap !== undefined) this.succession?.probed.add(envelope);
    return envelope;
  }

  imrecv(envelope: Envelope, buffer: Iov): RecvRequest {
    const request = new RecvRequest(envelope.ctx, envelope.source, envelope.tag, buffer);
    this.core.open(request);
    this.succession?.probed.delete(envelope);
    this.inbox.receiveMatched(envelope, request);
    return request;
  }

  /** Nobody will receive what has come from that source, which is over, on this context. */
  dropUnexpected(source: number, ctx: number): void {
    this.inbox.dropUnexpected(source, ctx);
  }

  /** Ends the posted receives of that context that would take a message of anybody, or those of them that are meant. */
  endPostedToAny(ctx: number, error: MultirailError, isMeant?: (request: RecvRequest) => boolean): void {
    this.inbox.endPostedToAny(ctx, error, isMeant);
  }

  /** As freeContext(), when the communicator was revoked: what is under way on it ends with the error, too. */
  revokeContext(ctx: number, error: MultirailError): void {
    this.inbox.freeContext(ctx, error);
    revokeMessages(this.core, this.receiver, ctx, error);
  }

  /** Ends every posted receive that has not matched: the runtime is being finalized. */
  endPosted(error: MultirailError): void {
    this.inbox.endPosted(ANY, error);
  }

  freeContext(ctx: number, error?: MultirailError): void {
    this.inbox.freeContext(ctx, error);
  }

  /** As freeContext(), when every message that was ever sent on it has come; `copies`: and what is here came a second time. */
  releaseContext(ctx: number, copies = false): void {
    this.inbox.releaseContext(ctx, copies);
  }

  /** Whether messages may come for a context (for any, unless this is set): of what may not, all that comes is dropped. */
  set admits(admits: (ctx: number) => boolean) {
    this.inbox.admits = admits;
  }

  /** Called when a message becomes visible to probes. */
  set onUnexpected(onUnexpected: (envelope: Envelope) => void) {
    this.inbox.onUnexpected = onUnexpected;
  }

  /** No more than so many receives are posted on the contexts from `first` to `last`, and no message of theirs is under way here. */
  isContextQuiet(first: number, last: number, postedMax: number): boolean {
    let posted = 0;
    for (let ctx = first; ctx <= last; ctx++) posted += this.inbox.postedOn(ctx);
    if (posted > postedMax) return false;
    for (const { sends, recvs } of this.core.peers.values()) {
      for (const message of sends) if (message.ctx >= first && message.ctx <= last) return false;
      for (const message of recvs) if (message.ctx >= first && message.ctx <= last) return false;
    }
    return true;
  }

  handOnCompletions(): number {
    const { completions } = this.core;
    const { length } = completions;
    if (length === 0) return 0;
    // What a listener starts may be done at once and is queued behind these: it has its turn in the next pass.
    const handedOn = completions.splice(0, length);
    for (const request of handedOn) {
      request.trace?.requestEnded(request);
      request.onDone?.();
    }
    return length;
  }

  // ---------------------------------------------------------------- events

  /** A whole frame of that peer. Throws ERR_PROTOCOL, with no state changed, when the packet breaks the protocol (I8 of docs/internals/SIMULATION.md). */
  handleFrame(rank: number, header: Uint8Array, payload: Uint8Array, sink: Sink | null): void {
    const { packet } = this;
    const peer = this.peer(rank);
    if (peer.failure !== undefined) return;
    decodePacket(header, packet);
    if (packet.creditLimit > peer.creditLimit) {
      peer.raiseCredit(packet.creditLimit);
      this.core.markDirty(peer);
    }
    const placed = packet.type === PACKET.FRAG;
    if (placed !== (sink !== null))
      throw new MultirailError('ERR_PROTOCOL', `a ${PACKET_NAMES[packet.type]} that is${placed ? ' not' : ''} placed`);
    if (payload.length > 0 && packet.type >= PACKET.RGET) {
      throw new MultirailError('ERR_PROTOCOL', `a ${PACKET_NAMES[packet.type]} with a payload`);
    }
    switch (packet.type) {
      case PACKET.MATCH:
      case PACKET.RNDV:
      case PACKET.RGET:
        return this.inbox.onEnvelope(peer, packet, payload);
      case PACKET.ACK:
        return this.sender.onAck(peer, packet);
      case PACKET.FRAG:
        assert(sink !== null && isFragSink(sink), 'a FRAG came back with a sink that is not ours');
        return this.receiver.onFrag(sink);
      case PACKET.PUT:
        return this.sender.onPutOffer(peer, packet);
      case PACKET.FIN:
        if ((packet.flags & FLAG.TO_SENDER) !== 0) return this.sender.onFinToSender(peer, packet);
        return this.receiver.onFinToReceiver(peer, packet);
      case PACKET.RNDVRESTARTNOTIFY:
        return this.receiver.onNotify(peer, packet);
      case PACKET.RNDVRESTARTACK:
        return this.sender.onRestartAck(peer, packet);
      case PACKET.RNDVRESTARTNACK:
        return this.sender.onRestartNack(peer, packet);
      case PACKET.RECVERRNOTIFY:
        return this.sender.onRecvErrNotify(peer, packet);
      case PACKET.RAILDOWN:
        return this.core.fence(peer, packet.rail, packet.epoch, 'the peer lost it');
      case PACKET.CREDIT:
        return;
      case PACKET.NACK:
        throw new MultirailError('ERR_PROTOCOL', 'NACK is not a packet');
    }
  }

  /**
   * handleFrame() for what most frames of a rail in memory are: the next eager message of its flow, for which a receive is posted. It is taken
   * from where it lies: `words` from `headerAt` on, its payload from `payloadAt` on. False: nothing has changed, and handleFrame() says what
   * the frame is.
   */
  handleFrameWords(
    rank: number,
    words: Int32Array,
    headerAt: number,
    headerBytes: number,
    payloadAt: number,
    payloadBytes: number,
  ): boolean {
    const peer = this.byRank[rank];
    if (peer === undefined || peer.failure !== undefined || headerBytes !== MATCH_HEADER_BYTES) return false;
    return this.inbox.receiveWords(peer, words, headerAt, payloadAt, payloadBytes);
  }

  /** Where the payload of a placed frame goes. */
  sinkFor(rank: number, railIndex: number, header: Uint8Array, payloadBytes: number): Sink {
    const { packet } = this;
    const peer = this.peer(rank);
    decodePacket(header, packet);
    if (packet.type !== PACKET.FRAG) throw new MultirailError('ERR_PROTOCOL', `a placed ${PACKET_NAMES[packet.type]}`);
    return this.receiver.sinkFor(peer, railIndex, packet, payloadBytes);
  }

  handleSinkDropped(sink: Sink): void {
    if (isFragSink(sink)) this.receiver.onSinkDropped(sink);
  }

  handleCompleted(frame: Frame, status: CompletionStatus): void {
    assert(frame instanceof PmlFrame && frame.use !== undefined && frame.peer !== undefined, 'a frame completed twice, or is not ours');
    const { use, peer } = frame;
    if (status === DELIVERED) {
      if (peer.creditTold < frame.creditLimit) peer.creditTold = frame.creditLimit;
      if (use === frame.eagerUse) {
        // There is more to send now only where something waits.
        if (peer.hasQueued) this.core.markDirty(peer);
        return this.sender.eager.onCompleted(frame.eagerUse.message, status);
      }
    } else peer.creditTelling = peer.creditTold;
    this.core.markDirty(peer);
    if (use.kind === 'eager') return this.sender.eager.onCompleted(use.message, status);
    this.core.recycle(frame);
    switch (use.kind) {
      case 'copy':
        return this.sender.eager.onCopyCompleted(use.message, status);
      case 'envelope':
        return this.sender.onEnvelopeCompleted(use.message, status);
      case 'frag':
        return this.sender.onFragCompleted(use, status);
      case 'notify':
        return this.sender.onNotifyCompleted(use, status);
      case 'fin-to-receiver':
        return this.sender.onFinCompleted(use, status);
      case 'answer':
        return this.receiver.onAnswerCompleted(use, status);
      case 'put':
        return this.receiver.onPutOfferCompleted(use, status);
      case 'recverr':
        return this.receiver.onRecvErrCompleted(use, status);
      case 'fin-to-sender':
        return this.receiver.onFinCompleted(use, status);
      case 'restart-nack':
        return this.owed.onRestartNackCompleted(peer, use, status);
      case 'raildown':
        return this.owed.onRailDownCompleted(peer, use, status);
      case 'credit':
        return;
    }
  }

  handleOneSidedCompleted(op: OneSidedOp, status: CompletionStatus): void {
    if (isSendOp(op)) this.sender.onPutCompleted(op, status);
    else this.receiver.onGetCompleted(op as PmlOneSidedOp & { message: RecvMessage }, status);
  }

  /** A rail came up. */
  handleRailUp(rank: number, railIndex: number, epoch: number): void {
    const peer = this.peer(rank);
    this.owed.railUp(peer, railIndex, epoch);
    for (const message of peer.sends) if (this.sender.wantsStream(message)) this.core.queueStream(message);
  }

  /** A rail was lost and is out of the tables; its frames come back in doubt right after this. */
  handleRailDown(rank: number, railIndex: number, epoch: number): void {
    this.owed.railDown(this.peer(rank), railIndex, epoch);
  }

  /**
   * The rails that carry traffic to the peer of this one are others than before. What one holds may be late while others move: what can be waited
   * for goes over them, too.
   */
  handleRailsChanged(changed: Rail): void {
    const peer = this.peer(changed.peer);
    this.receiver.onRailsChanged(peer);
    this.core.markDirty(peer);
    if (changed.state !== 'SUSPECT') return;
    const others = peer.bml.eager.filter(({ state }) => state === 'UP');
    if (others.length > 0) this.sender.eager.hedge(peer, changed, others);
  }

  handleWritable(rank: number): void {
    this.core.markDirty(this.peer(rank));
  }

  /** There is no way back (docs/internals/PROTOCOL.md §11, rule 8). The engine has fenced the peer's rails before. */
  handlePeerFailed(rank: number, error: MultirailError): void {
    const peer = this.peer(rank);
    if (peer.failure !== undefined) return;
    peer.failure = error;
    this.succession?.hold(peer);
    this.sender.fail(peer, error);
    this.receiver.fail(peer, error);
    this.inbox.endPeer(peer, error);
    peer.dropQueues();
  }

  /** That peer has failed, and its rails are gone: nothing is numbered to it or from it any more, but what its successor goes on with. */
  forgetFlows(rank: number): void {
    const peer = this.peer(rank);
    assert(peer.failure !== undefined, `peer ${rank} lives`);
    // Those of covered contexts of one that is held are its successor's.
    const isKept = (ctx: number): boolean => peer.channel?.state === 'HELD' && this.core.tap?.covers(rank, ctx) === true;
    for (const ctx of [...peer.flowsIn.keys(), ...peer.flowsOut.keys()]) if (!isKept(ctx)) peer.dropFlows(ctx);
  }

  handlePeerBye(rank: number): void {
    const peer = this.peer(rank);
    if (peer.saidBye) return;
    peer.saidBye = true;
    peer.left = hasLeft(this.core.options.rank, rank);
    this.sender.peerSaidBye(peer);
    this.receiver.peerSaidBye(peer);
    this.inbox.endPosted(rank, peer.left);
    peer.dropQueues();
  }

  // ---------------------------------------------------------------- work

  /** Gives everything that can leave to the rails. Returns true when anything was sent. */
  pump(): boolean {
    return this.pumping.pump();
  }

  /** The last pump() stopped before it was through: the next one is due at once. */
  get isUnfinished(): boolean {
    return this.pumping.isUnfinished;
  }

  // ---------------------------------------------------------------- for the engine

  /** Rails that were given something since they were flushed last: who flushes them takes them out of the list. */
  get railsToFlush(): Rail[] {
    return this.core.toFlush;
  }

  /** pump(), a flush of the rails or handOnCompletions() would find something to do. */
  get hasWork(): boolean {
    const { dirtyPeers, toFlush, completions, givenUp } = this.core;
    return dirtyPeers.length > 0 || toFlush.length > 0 || completions.length > 0 || givenUp.size > 0;
  }

  /** Something was given to that rail past the PML. */
  flushLater(rail: Rail): void {
    this.core.touched(rail);
  }

  /** A command of the application is giving a frame to a rail: a rail that asks for progress now has to wait for its end. */
  get isSending(): boolean {
    return this.core.sending;
  }

  /** Requests are open that somebody waits for. */
  get hasAwaitedRequests(): boolean {
    return this.core.openRequests > this.core.backgroundRequests;
  }

  /** As what somebody begins to wait for now that is no request here is opened: openedAtMs() of the engine says when that was. */
  nextOpened(): number {
    return ++this.core.openedRequests;
  }

  /** Requests that were ever started and not done at once. */
  get openedRequests(): number {
    return this.core.openedRequests;
  }

  // ---------------------------------------------------------------- end of the job

  /** True when nothing is owed to that peer and nothing of ours is outstanding to it. */
  isQuiet(rank: number): boolean {
    const peer = this.peer(rank);
    if (peer.sends.size > 0 || peer.recvs.size > 0 || peer.restartNacks.size > 0) return false;
    // What is kept for a successor leaves once it has said what it has.
    return peer.ended !== undefined || (peer.channel?.state !== 'AWAITED' && this.core.tap?.isWaitingTo(peer) !== true);
  }

  /** All that is owed to that peer are sends that nothing has matched. */
  hasOnlyUnmatched(rank: number): boolean {
    const { sends, recvs, restartNacks } = this.peer(rank);
    if (sends.size === 0 || recvs.size > 0 || restartNacks.size > 0) return false;
    for (const message of sends) if (message instanceof EagerMessage || message.state !== 'ENVELOPE') return false;
    return true;
  }

  // ---------------------------------------------------------------- views

  get options(): PmlOptions {
    return this.core.options;
  }

  get counters(): Readonly<PmlCounters> {
    return this.core.counters;
  }

  /** Copies of eager messages that are not known to be delivered. */
  get retainedBytes(): number {
    return this.core.retainedBytes;
  }

  /** Copies of what was left to send when sends were given up. */
  get abandonedBytes(): number {
    return this.core.abandonedBytes;
  }

  get peers(): Iterable<PmlPeer> {
    return this.core.peers.values();
  }

  /** Rendezvous messages of which something is owed still, either way, and sends that were given up and have not ended. */
  messagesKept(): { sends: number; recvs: number; givenUp: number } {
    const { sends, recvs, givenUp } = this.core;
    return { sends: sends.size, recvs: recvs.size, givenUp: givenUp.size };
  }

  /** All sends and receives that are not done, in no particular order. */
  openRequests(): OpenRequest[] {
    return openRequests(this.core, this.inbox);
  }

  /** What these requests wait for, in their order. */
  describeRequests(requests: readonly OpenRequest[]): PendingRequest[] {
    return describeRequests(this.inbox, requests);
  }

  /** The last transitions of messages, oldest first. */
  traceEntries(): TraceEntry[] {
    return this.core.traceEntries();
  }

  /** Messages of ours that their receivers had not received when they left. */
  get neverReceived(): readonly Unreceived[] {
    return this.core.neverReceived;
  }

  /** Messages that came and that nothing has received. */
  unreceived(): Unreceived[] {
    return this.inbox.unreceived();
  }

  /** What is not delivered to that peer, for people. */
  undelivered(rank: number): string[] {
    return undeliveredTo(this.peer(rank));
  }

  /** From now on messages of covered contexts are logged, and a member that dies has a successor (or is abandoned). */
  log(options: TapOptions, members: Iterable<number>): Succession {
    const tap = new Tap(this.core, this.sender, options);
    this.core.tap = tap;
    this.succession = new Succession(this.core, tap, this.sender, this.receiver, this.inbox, members);
    return this.succession;
  }

  /** Nothing is logged any more. Whoever was held was given up before. */
  endLog(): void {
    this.core.tap = undefined;
    this.succession = undefined;
  }

  /** What is sent on that context is compared by its bytes with what another process, or an earlier one, sends: equal values have to be equal bytes. */
  comparesBytes(ctx: number): boolean {
    return this.core.tap?.options.covers(ctx) ?? false;
  }

  /** From now on everything that happens is told to these. */
  observe(taps: PmlTaps): void {
    this.core.transitionTap = taps;
    this.core.eventTap = taps.onEvent;
    this.inbox.matchTap = taps.onMatch;
  }

  /** What lies behind the doors: for tests only. */
  get internals(): { readonly core: PmlCore; readonly inbox: Inbox } {
    return { core: this.core, inbox: this.inbox };
  }
}

export { ANY };
