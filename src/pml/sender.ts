// The sending half of the protocol: rendezvous, RGET, puts, and the sender's part of the restart (eager messages: eager.ts).
// What must be sent for a message follows from its state (sendEnvelope, sendControl, sendStream); completions and packets only change that.
import type { Rail } from '../bml/rail.ts';
import { type CompletionStatus, DELIVERED, IN_DOUBT, OK, type OneSidedOp, REFUSED } from '../btl/btl.ts';
import { MultirailError } from '../errors.ts';
import { assert } from '../util/assert.ts';
import { EMPTY_VIEWS, type Iov } from '../util/iov.ts';
import { serialAdd } from '../util/serial.ts';
import { COMPLETION_NAMES, epochName, type PmlCore, packetEvent } from './core.ts';
import { EagerSender } from './eager.ts';
import { nextSeq } from './flows.ts';
import { DEAD_RAILS_MAX, ENVELOPE_CHARGE_BYTES, FLAG, PACKET, type Packet } from './hdr.ts';
import { completeSend } from './outcome.ts';
import { openWindows } from './readable.ts';
import {
  EagerMessage,
  type FrameUse,
  type LoggedMessage,
  type OutMessage,
  type PmlOneSidedOp,
  type PmlPeer,
  SendMessage,
  SendRequest,
} from './records.ts';
import { moveSend } from './states.ts';
import type { RemoteWindow } from './windows.ts';

export class Sender {
  private readonly core: PmlCore;
  readonly eager: EagerSender;

  constructor(core: PmlCore) {
    this.core = core;
    this.eager = new EagerSender(core);
  }

  // ---------------------------------------------------------------- start

  /** Takes a sequence number and queues the envelope. An eager request is done on return. */
  start(peer: PmlPeer, ctx: number, tag: number, buffer: Iov, sync: boolean, signature: number, canGiveUp: boolean): SendRequest {
    const request = new SendRequest(peer.rank, tag, buffer.bytes);
    if (peer.ended !== undefined) {
      request.error = peer.ended;
      request.done = true;
      return request;
    }
    this.send(peer, ctx, tag, buffer, sync, signature, canGiveUp, request, false);
    return request;
  }

  /** As start(), for a request that is there; `isOpen`: and counted. */
  send(
    peer: PmlPeer,
    ctx: number,
    tag: number,
    buffer: Iov,
    sync: boolean,
    signature: number,
    canGiveUp: boolean,
    request: SendRequest,
    isOpen: boolean,
  ): void {
    if (!sync && this.eager.start(peer, ctx, tag, buffer, signature)) {
      if (isOpen) this.core.complete(request);
      else request.done = true;
      return;
    }
    const message = this.begin(peer, ctx, tag, nextSeq(peer, ctx), buffer, sync, signature, canGiveUp);
    message.request = request;
    request.message = message;
    if (!isOpen) this.core.open(request);
  }

  /** A message of the log, with the number that it has. Its request, if it has one, waits for the match. */
  sendLogged(peer: PmlPeer, logged: LoggedMessage): void {
    const { ctx, tag, seq, payload, sync, signature, request } = logged;
    if (!sync && this.eager.takes(peer, payload.bytes)) return this.eager.begin(peer, ctx, tag, seq, payload, signature);
    const message = this.begin(peer, ctx, tag, seq, payload, sync, signature, false, logged.isExported);
    message.logged = logged;
    this.core.tap?.options.log.hold(logged);
    logged.request = undefined;
    message.request = request;
    if (request !== undefined) request.message = message;
  }

  private begin(
    peer: PmlPeer,
    ctx: number,
    tag: number,
    seq: number,
    buffer: Iov,
    sync: boolean,
    signature: number,
    canGiveUp: boolean,
    isExported = false,
  ): SendMessage {
    const { core } = this;
    const { options, counters } = core;
    const { bytes } = buffer;
    const small = bytes <= options.eagerLimitBytes && bytes <= peer.bml.eagerBytesMax;
    const creditLeft = peer.creditLimit - peer.creditUsed - ENVELOPE_CHARGE_BYTES;
    counters.messagesSent++;
    counters.bytesSent += bytes;
    if (small && !sync) counters.creditStalls++;
    const inPlace = !small && buffer.isContiguous;
    // Memory that the peer reads by itself cannot be taken back from it.
    const reads = inPlace && !canGiveUp && peer.bml.isReadWorth(bytes, isExported);
    const message = new SendMessage(peer, ctx, tag, seq, buffer, reads ? 'RGET' : 'RNDV', sync, canGiveUp);
    message.signature = signature;
    const uncopied = reads || (inPlace && peer.bml.putsAll);
    const wanted = uncopied ? 0 : small ? (sync ? bytes : 0) : Math.min(bytes, options.rndvInlineBytes, peer.bml.inlineBytesMax);
    if (wanted > 0 && wanted <= creditLeft) {
      message.inlineBytes = wanted;
      message.charge = wanted + ENVELOPE_CHARGE_BYTES;
    }
    counters.messagesRndv++;
    peer.charge(message.charge, false);
    message.order = core.nextOrder();
    message.slot = core.sends.add(message);
    message.generation = core.sends.generationOf(message.slot);
    peer.sends.add(message);
    core.queueEnvelope(message);
    return message;
  }

  // ---------------------------------------------------------------- what must be sent

  /** Gives the envelope to a rail. False when no rail has room. */
  sendEnvelope(message: OutMessage): boolean {
    if (message instanceof EagerMessage) return this.eager.send(message);
    const { core } = this;
    if (message.state !== 'ENVELOPE' || message.envelopeOnRail || message.envelopeDelivered) return true;
    const { peer } = message;
    const packet = core.out;
    packet.type = PACKET[message.protocol];
    const isGone = message.buffer.isGone;
    if (isGone) message.isVoid = true;
    packet.flags =
      (isGone ? FLAG.VOID : 0) |
      (message.charge > 0 ? FLAG.CHARGED : 0) |
      (message.sync ? FLAG.SYNC : 0) |
      (message.isContiguous ? FLAG.CONTIG : 0);
    packet.ctx = message.ctx;
    packet.source = core.options.rank;
    packet.tag = message.tag;
    packet.seq = message.seq;
    packet.signature = message.signature;
    packet.messageBytes = message.bytes;
    packet.senderSlot = message.slot;
    packet.senderGeneration = message.generation;
    if (message.protocol === 'RGET') {
      if (!isGone) openWindows(core, message);
      packet.windows = message.readable.map((window) => ({
        rail: window.rail,
        railEpoch: window.railEpoch,
        key: window.registration.key,
      }));
    }
    // Credit was charged for so many bytes.
    const payload =
      message.inlineBytes === 0 ? EMPTY_VIEWS : isGone ? [new Uint8Array(message.inlineBytes)] : message.slice(0, message.inlineBytes);
    const result = core.sendEnvelope(peer, { kind: 'envelope', message }, payload, message.inlineBytes);
    if (result !== OK) return false;
    message.envelopeOnRail = true;
    message.itemsOnRail++;
    if (message.firstSent) {
      core.counters.envelopesResent++;
      core.counters.bytesResent += message.inlineBytes;
    }
    message.firstSent = true;
    return true;
  }

  private closeWindows(message: SendMessage): void {
    for (const window of message.readable) window.registration.deregister();
    message.readable = [];
  }

  /** Sends one control packet that this message owes. 'none' when it owes none, 'busy' when no rail has room. */
  sendControl(message: SendMessage): 'sent' | 'none' | 'busy' {
    const { core } = this;
    const { peer } = message;
    const packet = core.out;
    packet.flags = 0;
    if (message.state === 'NOTIFYING' && !message.notifyOnRail && !message.notifyDelivered) {
      packet.type = PACKET.RNDVRESTARTNOTIFY;
      this.fillRestart(message, packet);
      packet.deadRails = core.bml.deadEpochs(peer.bml).slice(0, DEAD_RAILS_MAX);
      const result = core.sendControl(peer, { kind: 'notify', message, epoch: message.epoch });
      if (result !== OK) return 'busy';
      message.notifyOnRail = true;
      return 'sent';
    }
    if (message.state === 'STREAMING' || message.state === 'OWING') {
      for (const fin of message.finsOwed) {
        if (fin.telling) continue;
        packet.type = PACKET.FIN;
        packet.receiverSlot = message.receiverSlot;
        packet.receiverGeneration = message.receiverGeneration;
        packet.epoch = message.epoch;
        packet.number = fin.number;
        packet.from = fin.from;
        packet.to = fin.to;
        const use: FrameUse = { kind: 'fin-to-receiver', message, epoch: message.epoch, fin };
        if (core.sendControl(peer, use) !== OK) return 'busy';
        fin.telling = true;
        return 'sent';
      }
    }
    return 'none';
  }

  private fillRestart(message: SendMessage, packet: Packet): void {
    packet.senderSlot = message.slot;
    packet.senderGeneration = message.generation;
    packet.receiverSlot = message.receiverSlot;
    packet.receiverGeneration = message.receiverGeneration;
    packet.epoch = message.epoch;
    packet.ctx = message.ctx;
    packet.source = this.core.options.rank;
    packet.seq = message.seq;
  }

  wantsStream(message: OutMessage): message is SendMessage {
    return message instanceof SendMessage && message.state === 'STREAMING' && !message.toSend.isEmpty;
  }

  /** Gives the next range of this message to that rail, by put where the receiver offered a window there, else by FRAG. */
  sendStream(message: SendMessage, rail: Rail): boolean {
    const { core } = this;
    if (!this.wantsStream(message)) return false;
    if (message.buffer.isGone) return this.sendVoid(message, rail);
    if (rail.attributes.canPut) {
      const target = message.putTargets.on(rail.index, rail.epoch);
      const next = message.toSend.first;
      const window = target?.at(next);
      if (window !== undefined) return this.sendPut(message, rail, window, next);
      if (target?.isAwaited(next)) return false;
    }
    const grid = this.gridBytes(message, rail);
    const range = message.toSend.takeFirst(Math.min(grid, rail.attributes.frameBytesMax), grid);
    if (range === undefined) return false;
    const [from, to] = range;
    const packet = core.out;
    packet.type = PACKET.FRAG;
    packet.flags = 0;
    packet.receiverSlot = message.receiverSlot;
    packet.receiverGeneration = message.receiverGeneration;
    packet.epoch = message.epoch;
    packet.from = from;
    const use: FrameUse = { kind: 'frag', message, epoch: message.epoch, from, to };
    if (core.sendFragment(message.peer, rail, use, message.slice(from, to), to - from, message.toSend.isEmpty) !== OK) {
      message.toSend.add(from, to);
      return false;
    }
    this.countSent(message, from, to);
    return true;
  }

  /** Where the rails would have nothing else to do, a fast one leaves the others their share of the message. */
  private gridBytes({ peer, takeBytes }: SendMessage, rail: Rail): number {
    const { fragBytes } = this.core.options;
    const gridBytes = Math.max(1, Math.floor(fragBytes * rail.fragScale));
    const { length } = peer.bml.send;
    if (gridBytes <= fragBytes || peer.streams.size >= length) return gridBytes;
    return Math.min(gridBytes, fragBytes * Math.max(1, Math.round(takeBytes / length / fragBytes)));
  }

  /** In place of all that is to be sent: the bytes are no longer there. Lost or refused, it is said again. */
  private sendVoid(message: SendMessage, rail: Rail): boolean {
    const { core } = this;
    const from = message.toSend.first;
    const to = message.takeBytes;
    const packet = core.out;
    packet.type = PACKET.FRAG;
    packet.flags = FLAG.VOID;
    packet.receiverSlot = message.receiverSlot;
    packet.receiverGeneration = message.receiverGeneration;
    packet.epoch = message.epoch;
    packet.from = from;
    const use: FrameUse = { kind: 'frag', message, epoch: message.epoch, from, to };
    if (core.sendFragment(message.peer, rail, use, EMPTY_VIEWS, 0, true) !== OK) return false;
    message.isVoid = true;
    message.toSend.clear();
    this.countSent(message, from, to);
    return true;
  }

  private countSent(message: SendMessage, from: number, to: number): void {
    message.inFlightBytes += to - from;
    message.itemsOnRail++;
    this.core.counters.bytesResent += to - from - message.everSent.add(from, to);
  }

  private sendPut(message: SendMessage, rail: Rail, window: RemoteWindow, next: number): boolean {
    const { core } = this;
    const bytes = rail.oneSidedBytes(core.options.fragBytes);
    const range = message.toSend.takeFirst(Math.min(bytes, window.to - next), bytes);
    if (range === undefined) return false;
    const [from, to] = range;
    if (!core.startOneSided('put', message, rail, window, from, to)) {
      message.toSend.add(from, to);
      return false;
    }
    message.putsUnderWay++;
    this.countSent(message, from, to);
    core.counters.puts++;
    return true;
  }

  // ---------------------------------------------------------------- completions

  onEnvelopeCompleted(message: SendMessage, status: CompletionStatus): void {
    this.core.eventTap?.('send', message.state, `envelope ${COMPLETION_NAMES[status]}`);
    const { core } = this;
    message.envelopeOnRail = false;
    message.itemsOnRail--;
    if (message.state === 'DONE') message.peer.copiesOnRail--;
    if (status === DELIVERED) message.envelopeDelivered = true;
    else if (message.state === 'ENVELOPE') {
      if (status === REFUSED) core.counters.refused++;
      core.queueEnvelope(message);
    }
    this.settle(message);
  }

  onFragCompleted(use: FrameUse & { kind: 'frag' }, status: CompletionStatus): void {
    this.core.eventTap?.('send', use.message.state, `frag ${epochName(use)} ${COMPLETION_NAMES[status]}`);
    const { message, from, to } = use;
    const { core } = this;
    message.itemsOnRail--;
    // A completion of an older epoch releases memory and counts for nothing.
    if (use.epoch === message.epoch && message.state === 'STREAMING') {
      if (status === IN_DOUBT) this.restart(message);
      else {
        message.inFlightBytes -= to - from;
        if (status === REFUSED) {
          core.counters.refused++;
          message.toSend.add(from, to);
          core.queueStream(message);
        } else {
          message.delivered?.add(from, to);
          this.checkSent(message);
        }
      }
    }
    this.settle(message);
  }

  onPutCompleted(op: PmlOneSidedOp & { message: SendMessage }, status: CompletionStatus): void {
    this.core.eventTap?.('send', op.message.state, `put ${epochName(op)} ${COMPLETION_NAMES[status]}`);
    const { message } = op;
    const { core } = this;
    message.itemsOnRail--;
    message.putsUnderWay--;
    if (message.state === 'STREAMING' && op.epoch === message.epoch) {
      if (status === DELIVERED) {
        message.inFlightBytes -= op.bytes;
        message.finsOwed = [...message.finsOwed, { number: op.window.number, from: op.from, to: op.to, telling: false }];
        core.queueControl(message);
        this.checkSent(message);
      } else if (status === REFUSED) {
        // The window is gone on the other side: this range goes another way.
        message.inFlightBytes -= op.bytes;
        message.putTargets.on(op.window.rail, op.window.railEpoch)?.drop(op.window);
        message.toSend.add(op.from, op.to);
        core.queueStream(message);
      } else this.restart(message);
    } else if (message.state === 'DRAINING' && message.putsUnderWay === 0) this.notify(message);
    this.settle(message);
  }

  onNotifyCompleted(use: FrameUse & { kind: 'notify' }, status: CompletionStatus): void {
    this.core.eventTap?.('send', use.message.state, `NOTIFY ${epochName(use)} ${COMPLETION_NAMES[status]}`);
    const { message } = use;
    if (message.state !== 'NOTIFYING' || use.epoch !== message.epoch) return;
    message.notifyOnRail = false;
    if (status === DELIVERED) message.notifyDelivered = true;
    else this.core.queueControl(message);
  }

  onFinCompleted(use: FrameUse & { kind: 'fin-to-receiver' }, status: CompletionStatus): void {
    this.core.eventTap?.('send', use.message.state, `FIN ${epochName(use)} ${COMPLETION_NAMES[status]}`);
    const { message, fin } = use;
    if (use.epoch !== message.epoch || message.state === 'DONE') return;
    fin.telling = false;
    if (status === DELIVERED) {
      message.finsOwed = message.finsOwed.filter((owed) => owed !== fin);
      message.delivered?.add(fin.from, fin.to);
      if (message.state === 'OWING' && message.finsOwed.length === 0) this.finish(message);
    } else this.core.queueControl(message);
  }

  // ---------------------------------------------------------------- restart

  /** Data in doubt: stop scheduling, wait for own puts, then NOTIFY. */
  private restart(message: SendMessage): void {
    moveSend(message, 'DRAINING', this.core);
    if (message.putsUnderWay === 0) this.notify(message);
  }

  private notify(message: SendMessage): void {
    message.epoch = serialAdd(message.epoch, 1);
    message.toSend.clear();
    message.inFlightBytes = 0;
    message.putTargets.clear();
    message.finsOwed = [];
    message.notifyOnRail = false;
    message.notifyDelivered = false;
    this.core.counters.restarts++;
    moveSend(message, 'NOTIFYING', this.core);
    this.core.queueControl(message);
  }

  // ---------------------------------------------------------------- packets

  /** The message that a packet of the receiver names; undefined (and counted) when it is finished. */
  private find(peer: PmlPeer, packet: Packet): SendMessage | undefined {
    const hit = this.core.sends.lookup(packet.senderSlot, packet.senderGeneration);
    if (hit === 'never-issued')
      throw new MultirailError('ERR_PROTOCOL', `message id ${packet.senderSlot}.${packet.senderGeneration} was never issued`);
    if (hit === 'retired') {
      this.core.counters.controlStale++;
      return undefined;
    }
    if (hit.found.peer !== peer) throw new MultirailError('ERR_PROTOCOL', `message ${hit.found.traceId} is named by rank ${peer.rank}`);
    this.core.eventTap?.('send', hit.found.state, packetEvent(packet, hit.found.epoch));
    return hit.found;
  }

  private stale(): void {
    this.core.counters.controlStale++;
  }

  onAck(peer: PmlPeer, packet: Packet): void {
    const message = this.find(peer, packet);
    if (message === undefined) return;
    if (message.state !== 'ENVELOPE') return this.stale();
    if (packet.takeBytes > message.bytes) {
      throw new MultirailError('ERR_PROTOCOL', `an ACK that does not fit message ${message.traceId}`);
    }
    message.envelopeDelivered = true;
    message.receiverSlot = packet.receiverSlot;
    message.receiverGeneration = packet.receiverGeneration;
    message.takeBytes = packet.takeBytes;
    message.toSend.add(Math.min(message.inlineBytes, packet.takeBytes), packet.takeBytes);
    message.everSent.add(0, message.inlineBytes);
    message.delivered?.add(0, Math.min(message.inlineBytes, packet.takeBytes));
    for (const { rail, epoch } of packet.putRails) message.putTargets.announce(rail, epoch);
    this.closeWindows(message);
    moveSend(message, 'STREAMING', this.core);
    this.core.queueStream(message);
    this.checkSent(message);
    this.settle(message);
  }

  onPutOffer(peer: PmlPeer, packet: Packet): void {
    const message = this.find(peer, packet);
    if (message === undefined) return;
    const open = message.state === 'ENVELOPE' || message.state === 'STREAMING' || message.state === 'NOTIFYING';
    if (packet.epoch !== message.epoch || !open) return this.stale();
    if (packet.to > message.bytes) throw new MultirailError('ERR_PROTOCOL', `a PUT beyond message ${message.traceId}`);
    const { rail, railEpoch, key } = packet.windows[0];
    const { number, from, to } = packet;
    if (!message.putTargets.offer({ number, rail, railEpoch, key, from, to })) return this.stale();
    if (message.state === 'STREAMING') this.core.queueStream(message);
  }

  /** End of an RGET, told by the receiver. */
  onFinToSender(peer: PmlPeer, packet: Packet): void {
    const message = this.find(peer, packet);
    if (message === undefined) return;
    if (message.protocol !== 'RGET' || packet.epoch !== message.epoch || message.state !== 'ENVELOPE') return this.stale();
    this.finish(message);
    this.settle(message);
  }

  onRecvErrNotify(peer: PmlPeer, packet: Packet): void {
    const message = this.find(peer, packet);
    if (message === undefined) return;
    if (packet.epoch !== message.epoch || message.protocol !== 'RGET' || message.state !== 'ENVELOPE') return this.stale();
    message.envelopeDelivered = true;
    message.receiverSlot = packet.receiverSlot;
    message.receiverGeneration = packet.receiverGeneration;
    // The windows stay open: the receiver may still read over living rails, and a read of closed memory would end those, too.
    this.restart(message);
  }

  onRestartAck(peer: PmlPeer, packet: Packet): void {
    const message = this.find(peer, packet);
    if (message === undefined) return;
    if (message.state !== 'NOTIFYING' || packet.epoch !== message.epoch) return this.stale();
    if (packet.takeBytes > message.bytes) throw new MultirailError('ERR_PROTOCOL', `a RESTARTACK beyond message ${message.traceId}`);
    this.core.counters.restartAcks++;
    // The receiver answers when none of its own reads is under way.
    this.closeWindows(message);
    message.takeBytes = packet.takeBytes;
    message.receiverSlot = packet.receiverSlot;
    message.receiverGeneration = packet.receiverGeneration;
    // The list replaces our own view: outside it delivered, inside it to send.
    message.toSend.clear();
    for (const [from, to] of packet.missing) message.toSend.add(from, to);
    message.toSend.add(packet.from, packet.takeBytes);
    if (message.delivered !== undefined) {
      message.delivered.add(0, packet.takeBytes);
      for (const [from, to] of message.toSend.ranges()) message.delivered.remove(from, to);
    }
    message.inFlightBytes = 0;
    for (const { rail, epoch } of packet.putRails) message.putTargets.announce(rail, epoch);
    moveSend(message, 'STREAMING', this.core);
    this.core.queueStream(message);
    this.checkSent(message);
    this.settle(message);
  }

  onRestartNack(peer: PmlPeer, packet: Packet): void {
    const message = this.find(peer, packet);
    if (message === undefined) return;
    // It may be of any epoch: the message is complete and stays so. An answer to an older, slower NOTIFY may be the only one that comes
    // (docs/internals/model, found by two-rail runs with three failures).
    if (message.state !== 'NOTIFYING') return this.stale();
    this.core.counters.restartNacks++;
    this.finish(message);
    this.settle(message);
  }

  // ---------------------------------------------------------------- ends

  private checkSent(message: SendMessage): void {
    assert(message.inFlightBytes >= 0, `send ${message.traceId}: more bytes delivered than sent`);
    if (message.state !== 'STREAMING' || !message.toSend.isEmpty || message.inFlightBytes > 0) return;
    message.logicallyComplete = true;
    if (message.finsOwed.length > 0) moveSend(message, 'OWING', this.core);
    else this.finish(message);
  }

  /** Nothing is owed to the peer any more: the id is retired. */
  finish(message: SendMessage): void {
    const { core } = this;
    message.logicallyComplete = true;
    message.envelopeDelivered = true;
    this.closeWindows(message);
    message.putTargets.clear();
    message.toSend.clear();
    moveSend(message, 'DONE', core);
    core.sends.retire(message.slot, message.generation);
    message.peer.sends.delete(message);
    if (message.envelopeOnRail) message.peer.copiesOnRail++;
    core.abandonedBytes -= message.copiedBytes;
    message.copiedBytes = 0;
    this.settle(message);
  }

  /** The user gets the buffer back when the message is complete AND nothing of it lies on a rail any more. */
  private settle(message: SendMessage): void {
    if (!message.logicallyComplete || message.itemsOnRail > 0) return;
    if (message.logged !== undefined) this.letGo(message, message.logged);
    if (message.request !== undefined) completeSend(this.core, message, message.request);
  }

  /** No rail reads the copy in the log any more. */
  private letGo(message: SendMessage, logged: LoggedMessage): void {
    message.logged = undefined;
    this.core.tap?.options.log.letGo(logged);
  }

  /** The peer has failed and does not come back: everything to it ends. */
  fail(peer: PmlPeer, error: MultirailError): void {
    if (peer.channel === undefined) this.core.counters.lostWithPeer += peer.unreceivedEager();
    for (const message of [...peer.sends]) {
      if (message instanceof EagerMessage) {
        this.eager.finish(message);
        continue;
      }
      if (message.request !== undefined) message.request.error = error;
      this.finish(message);
    }
  }

  /** The peer said BYE: it owes nothing, so what is outstanding to it is delivered (B9). */
  peerSaidBye(peer: PmlPeer): void {
    for (const message of [...peer.sends]) {
      // A rendezvous without an answer was never matched: the peer would have owed us the ACK before it could leave.
      if (message instanceof EagerMessage) {
        this.eager.finish(message);
        continue;
      }
      if (message.state === 'ENVELOPE' && message.request !== undefined) {
        message.request.error = peer.left;
        const { ctx, tag, bytes } = message;
        if (!message.request.isForsaken) this.core.neverReceived.push({ peer: peer.rank, ctx, tag, bytes });
      }
      this.finish(message);
    }
  }
}

export function isSendOp(op: OneSidedOp): op is PmlOneSidedOp & { message: SendMessage } {
  return (op as PmlOneSidedOp).message instanceof SendMessage;
}
