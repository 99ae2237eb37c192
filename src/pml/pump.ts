// The work of the PML: gives to the rails what messages call for, peer by peer. What that is, the messages say (sender.ts, receiver.ts,
// owed.ts); here is in which order, and how much at once.
import type { Rail } from '../bml/rail.ts';
import type { Deque } from '../util/deque.ts';
import type { PmlCore } from './core.ts';
import type { GivenUpSends } from './given-up.ts';
import type { OwedToPeers } from './owed.ts';
import type { Receiver } from './receiver.ts';
import { type OutMessage, type PmlPeer, type RecvMessage, SendMessage } from './records.ts';
import type { Sender } from './sender.ts';

/** Further messages are not looked at for what is left to send. */
const BACKLOG_MESSAGES_MAX = 64;
/** Packets of each kind that one pump() gives to the rails of a peer: more leave with the next one, after the rails had their turn. */
const PUMP_MAX = 1024;

export class Pump {
  private readonly core: PmlCore;
  private readonly sender: Sender;
  private readonly receiver: Receiver;
  private readonly owed: OwedToPeers;
  private readonly givenUp: GivenUpSends;
  /** Peers to which there was more to send than one pump() gives. */
  private readonly unfinished: PmlPeer[] = [];
  isUnfinished = false;

  constructor(core: PmlCore, sender: Sender, receiver: Receiver, owed: OwedToPeers, givenUp: GivenUpSends) {
    this.core = core;
    this.sender = sender;
    this.receiver = receiver;
    this.owed = owed;
    this.givenUp = givenUp;
  }

  /** Returns true when anything was sent. */
  pump(): boolean {
    const { dirtyPeers, givenUp, tap } = this.core;
    if (tap !== undefined && tap.waitingCount > 0) tap.retry();
    if (givenUp.size > 0) this.givenUp.retry();
    if (dirtyPeers.length === 0) return false;
    let sent = false;
    for (let peer = dirtyPeers.shift(); peer !== undefined; peer = dirtyPeers.shift()) {
      peer.dirty = false;
      if (peer.failure === undefined && !peer.leaving && this.pumpPeer(peer)) sent = true;
    }
    this.isUnfinished = this.unfinished.length > 0;
    if (this.isUnfinished) for (const peer of this.unfinished.splice(0)) this.core.markDirty(peer);
    return sent;
  }

  private pumpPeer(peer: PmlPeer): boolean {
    if (peer.bml.eager.length === 0) return false;
    const sent = this.owed.pump(peer);
    if (sent === 'busy') return true;
    let any = sent;
    // Control before envelopes before data: a restart or an ACK is worth more than another fragment.
    for (let left = PUMP_MAX; peer.control.size > 0; left--) {
      if (left === 0) return this.pumpLater(peer);
      const message = peer.control.peek() as SendMessage | RecvMessage;
      const result = message instanceof SendMessage ? this.sender.sendControl(message) : this.receiver.sendControl(message);
      if (result === 'busy') return any;
      if (result === 'none') {
        peer.control.shift();
        message.controlQueued = false;
      } else any = true;
    }
    // What is sent again goes first, in its old order: later messages wait for it on the other side.
    let count = this.pumpEnvelopes(peer.resends);
    if (count < PUMP_MAX) count += this.pumpEnvelopes(peer.envelopes);
    // Data of what was begun before is not kept waiting by very many new messages.
    if (count >= PUMP_MAX) this.pumpLater(peer);
    return this.pumpStreams(peer) || any || count > 0;
  }

  /** There is more for that peer than one pump() gives. */
  private pumpLater(peer: PmlPeer): true {
    if (!this.unfinished.includes(peer)) this.unfinished.push(peer);
    return true;
  }

  private pumpEnvelopes(queue: Deque<OutMessage>): number {
    let count = 0;
    for (let message = queue.peek(); message !== undefined && count < PUMP_MAX; message = queue.peek()) {
      if (!this.sender.sendEnvelope(message)) break;
      queue.shift();
      message.envelopeQueued = false;
      count++;
    }
    return count;
  }

  /** Late binding: each rail with room takes the next range, one at a time, so that a faster rail takes more. */
  private pumpStreams(peer: PmlPeer): boolean {
    const { bml, options } = this.core;
    const isChosen = bml.isChosen(peer.bml.send);
    let any = false;
    for (let left = PUMP_MAX; ; left--) {
      if (left === 0) return this.pumpLater(peer);
      const head = peer.streams.peek();
      if (head === undefined) return any;
      if (!this.wantsStream(head)) {
        peer.streams.shift();
        head.streamQueued = false;
        continue;
      }
      const backlogBytes = isChosen ? this.backlogBytes(peer) : 0;
      let took = false;
      let isAllIdle = true;
      for (const rail of peer.bml.send) {
        const isWelcome = !isChosen || (rail.hasRoom && bml.mayTake(peer.bml.send, rail, options.fragBytes * rail.fragScale, backlogBytes));
        if (isWelcome && this.giveStream(peer, rail)) took = true;
        if (rail.blocked || rail.endpoint.outstandingBytes > 0) isAllIdle = false;
      }
      // The rail that was to be waited for cannot carry what there is: nothing under way would bring us back.
      if (!took && isAllIdle) for (const rail of peer.bml.send) if (this.giveStream(peer, rail)) took = true;
      if (!took) return any;
      any = true;
    }
  }

  /** Gives the next range of the oldest message that can go over that rail. */
  private giveStream(peer: PmlPeer, rail: Rail): boolean {
    if (!rail.hasRoom) return false;
    for (const message of peer.streams) {
      if (message instanceof SendMessage ? this.sender.sendStream(message, rail) : this.receiver.sendStream(message, rail)) return true;
    }
    return false;
  }

  /** What is left to send to that peer, of as many messages as a choice between rails may need to know. */
  private backlogBytes(peer: PmlPeer): number {
    let bytes = 0;
    let left = BACKLOG_MESSAGES_MAX;
    for (const message of peer.streams) {
      bytes += message instanceof SendMessage ? message.toSend.bytes : message.toRead.bytes;
      if (--left === 0) break;
    }
    return bytes;
  }

  private wantsStream(message: SendMessage | RecvMessage): boolean {
    return message instanceof SendMessage ? this.sender.wantsStream(message) : this.receiver.wantsStream(message);
  }
}
