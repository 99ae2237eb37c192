// The receiving half of a rendezvous, from its match on (inbox.ts): placement of fragments, PUT windows, reads of an RGET, and the
// receiver's part of the restart. As in sender.ts, what must be sent is derived from the state of a message.
import type { Rail } from '../bml/rail.ts';
import { type CompletionStatus, DELIVERED, OK, type Sink } from '../btl/btl.ts';
import { MultirailError } from '../errors.ts';
import { EMPTY_BYTES, EMPTY_IOV } from '../util/iov.ts';
import { serialDiff } from '../util/serial.ts';
import { COMPLETION_NAMES, epochName, type PmlCore, packetEvent } from './core.ts';
import { FLAG, MISSING_RANGES_MAX, PACKET, type Packet, WINDOWS_MAX } from './hdr.ts';
import { bufferGone, completeReceive, senderLostBuffer } from './outcome.ts';
import type { OwedToPeers } from './owed.ts';
import { type Envelope, type FragSink, type FrameUse, type PmlOneSidedOp, type PmlPeer, RecvMessage, RecvRequest } from './records.ts';
import { moveRecv } from './states.ts';
import type { LocalWindow, RemoteWindow } from './windows.ts';

export class Receiver {
  private readonly core: PmlCore;
  private readonly owed: OwedToPeers;

  constructor(core: PmlCore, owed: OwedToPeers) {
    this.core = core;
    this.owed = owed;
  }

  // ---------------------------------------------------------------- start

  /** A rendezvous has found its receive. */
  begin(envelope: Envelope, request: RecvRequest): void {
    const { core } = this;
    if (envelope.peer.failure !== undefined) {
      core.releaseCharge(envelope);
      if (isWhole(envelope)) {
        completeReceive(core, request, request.buffer.copyIn(0, envelope.payload), envelope.messageBytes);
        return;
      }
      // Only its first part came before the peer died; the rest never will.
      request.error = envelope.peer.failure;
      core.complete(request);
      return;
    }
    if ((envelope.flags & FLAG.VOID) !== 0) request.error = senderLostBuffer(core, envelope.source, envelope.tag);
    else if (request.buffer.isGone) request.error = bufferGone(core, request);
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
      core.releaseCharge(envelope);
      return;
    }
    const inline = Math.min(envelope.payload.length, message.takeBytes);
    if (inline > 0) {
      message.buffer.copyIn(0, envelope.payload.subarray(0, inline));
      message.received.add(0, inline);
    }
    core.releaseCharge(envelope);
    this.offerWindows(message);
    core.queueControl(message);
    this.checkComplete(message);
  }

  /** A rendezvous that nobody will receive: its sender is told that nothing of it is taken, and comes to its end. */
  discard(envelope: Envelope): void {
    const { core } = this;
    const { peer, ctx, source, tag } = envelope;
    if (peer.ended !== undefined) return;
    const message = new RecvMessage(envelope, new RecvRequest(ctx, source, tag, EMPTY_IOV), false);
    message.request = undefined;
    message.order = core.nextOrder();
    message.slot = core.recvs.add(message);
    message.generation = core.recvs.generationOf(message.slot);
    peer.recvs.add(message);
    core.onTransition('recv', message, 'MATCHED', message.state);
    core.queueControl(message);
    this.checkComplete(message);
  }

  /**
   * The communicator was revoked: the request ends with this error, and what still comes for it goes into nothing. While the sender may write
   * into the buffer, or reads of ours are under way, it ends only with its message.
   */
  revoke(message: RecvMessage, error: MultirailError): void {
    const { request } = message;
    if (request === undefined || request.done) return;
    request.error ??= error;
    if (message.state !== 'RECEIVING' || message.offers.windows.length > 0) return;
    // Nothing is missing any more: whatever else is on its way goes into nothing.
    message.received.add(0, message.takeBytes);
    this.checkComplete(message);
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
      const registration = message.buffer.isGone ? undefined : rail.endpoint.register?.(message.slice(from, to));
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
      if (core.sendControl(peer, { kind: 'recverr', message, epoch: message.epoch }) !== OK) return 'busy';
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
      if (core.sendControl(peer, { kind: 'fin-to-sender', message, epoch: message.epoch }) !== OK) return 'busy';
      message.finOnRail = true;
      return 'sent';
    }
    if (message.state !== 'RECEIVING' && message.state !== 'OWING') return 'none';
    if (!message.answerOnRail && !message.answerDelivered) {
      packet.takeBytes = message.takeBytes;
      packet.putRails = message.offers.announced();
      if (!message.restarted) packet.type = PACKET.ACK;
      else this.fillRestartAck(message, packet);
      if (core.sendControl(peer, { kind: 'answer', message, epoch: message.epoch }) !== OK) return 'busy';
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
      // Without a key: its rail has no further windows.
      packet.windows = [{ rail: window.rail, railEpoch: window.railEpoch, key: window.registration?.key ?? EMPTY_BYTES }];
      if (core.sendControl(peer, { kind: 'put', message, epoch: message.epoch, window }) !== OK) return 'busy';
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
    if (!core.startOneSided('get', message, rail, window, from, to)) {
      message.toRead.add(from, to);
      return false;
    }
    message.getsUnderWay++;
    core.counters.gets++;
    return true;
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

  onGetCompleted(op: PmlOneSidedOp & { message: RecvMessage }, status: CompletionStatus): void {
    this.core.eventTap?.('recv', op.message.state, `get ${epochName(op)} ${COMPLETION_NAMES[status]}`);
    const { message } = op;
    const { core } = this;
    message.getsUnderWay--;
    if (message.state === 'DONE' || message.state === 'OWING') return;
    // A read that was done is done, whatever became of the epoch: the bytes lie in the buffer.
    if (status === DELIVERED) {
      message.received.add(op.from, op.to);
      core.tap?.placed(message);
    }
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
    if (!message.buffer.isGone) sink.views = message.slice(sink.from, sink.to);
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
      if (request !== undefined) request.error ??= senderLostBuffer(this.core, request.matchedSource, request.matchedTag);
      // Nothing is missing any more: what else is on its way goes into nothing.
      message.received.add(0, message.takeBytes);
    } else message.received.add(sink.from, sink.to);
    this.core.tap?.placed(message);
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
      this.owed.restartNack(peer, packet, packet.receiverSlot, packet.receiverGeneration);
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
      this.owed.restartNack(peer, packet, message.slot, message.generation);
      this.finish(message);
      return;
    }
    if (ahead === 0) {
      // A NOTIFY of the current epoch is only answered again.
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
      this.owed.restartNack(
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
    this.core.tap?.completed(message);
    message.request = undefined;
    if (request !== undefined) completeReceive(this.core, request, message.takeBytes, message.messageBytes);
  }

  /** The peer has died, and its successor sends the data again: the receive that waits for them, if one does. */
  suspend(message: RecvMessage): RecvRequest | undefined {
    this.revokeSinks(message);
    const { request } = message;
    message.request = undefined;
    this.finish(message);
    return request;
  }

  private finish(message: RecvMessage): void {
    const { core } = this;
    this.closeWindows(message.offers.takeAll());
    moveRecv(message, 'DONE', core);
    core.recvs.retire(message.slot, message.generation);
    message.peer.recvs.delete(message);
  }

  /** The peer has failed and does not come back. */
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
    peer.restartNacks.clear();
  }

  /** The peer said BYE: it waits for nothing of ours. */
  peerSaidBye(peer: PmlPeer): void {
    peer.restartNacks.clear();
    for (const message of [...peer.recvs]) if (message.state === 'OWING') this.finish(message);
  }
}

/** All of its bytes are here. */
export function isWhole({ type, payload, messageBytes, flags }: Envelope): boolean {
  return type === PACKET.MATCH || (type === PACKET.RNDV && payload.length === messageBytes && (flags & FLAG.VOID) === 0);
}

export function isFragSink(sink: Sink): sink is FragSink {
  return (sink as FragSink).from !== undefined;
}
