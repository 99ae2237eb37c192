// A successor inherits the streams of a process that died, so that nobody but the dead goes back (docs/internals/SIMULATION.md, profile `log`). In place of
// failing its peer a survivor holds it: what is sent to it is only logged, and what is awaited from it goes on waiting. Once the successor is
// known, all that the survivor has of the dead peer is the successor's, with its numbers. Then each side says what it has (SYNC), and the
// other sends exactly what is missing.
import type { MultirailError } from '../errors.ts';
import { assert } from '../util/assert.ts';
import { serialAdd, serialDiff } from '../util/serial.ts';
import { Channel, type Digest, type Need } from './channel.ts';
import type { PmlCore } from './core.ts';
import { FLAG, PACKET } from './hdr.ts';
import type { Inbox } from './inbox.ts';
import { isWhole, type Receiver } from './receiver.ts';
import { EagerMessage, type Envelope, type Hole, type LoggedMessage, type OutMessage, type PmlPeer, SendRequest } from './records.ts';
import type { Sender } from './sender.ts';
import type { Tap } from './tap.ts';

/** What one side of a channel has, for the other. */
export interface Sync {
  readonly contexts: readonly SyncContext[];
}

export interface SyncContext {
  readonly ctx: number;
  /** The lowest number that it has not seen. */
  readonly nextIn: number;
  /** Lower ones of which it lacks the data. */
  readonly holes: readonly number[];
  readonly digests: readonly Digest[];
}

/** Numbers of the messages between a process and one peer on one context. */
export interface FlowCut {
  readonly peer: number;
  readonly ctx: number;
  readonly nextOut: number;
  readonly nextIn: number;
  /** Higher ones that were received before. */
  readonly taken?: ReadonlySet<number>;
}

/** Numbers of the messages to one peer, or from it, by context. */
export type FlowNumbers = ReadonlyMap<number, number>;

/** The numbers of a rank at a save, and the messages that had come and that nobody had received. */
export interface Cut {
  readonly flows: readonly FlowCut[];
  /** In the order of their arrival. */
  readonly unexpected: readonly UnexpectedMessage[];
  /** So many contexts had been released since the save before. */
  readonly released: number;
}

export interface UnexpectedMessage {
  readonly source: number;
  readonly ctx: number;
  readonly tag: number;
  readonly seq: number;
  readonly signature: number;
  readonly payload: Uint8Array;
  /** Set: its data were not here, and come again with its number. */
  readonly messageBytes?: number;
}

export class Succession {
  readonly tap: Tap;
  /** Messages that a matched probe took out of their queue and that nobody has received yet. */
  readonly probed = new Set<Envelope>();
  private readonly core: PmlCore;
  private readonly sender: Sender;
  private readonly receiver: Receiver;
  private readonly inbox: Inbox;
  private readonly members: Set<number>;

  constructor(core: PmlCore, tap: Tap, sender: Sender, receiver: Receiver, inbox: Inbox, members: Iterable<number>) {
    this.core = core;
    this.tap = tap;
    this.sender = sender;
    this.receiver = receiver;
    this.inbox = inbox;
    this.members = new Set(members);
  }

  private peer(rank: number): PmlPeer {
    const peer = this.core.peers.get(rank);
    assert(peer !== undefined, `no peer ${rank} to succeed, or to be succeeded`);
    return peer;
  }

  private isCovered(ctx: number): boolean {
    return this.tap.options.covers(ctx);
  }

  // ---------------------------------------------------------------- a death

  /** The peer has died. Where it is no member, or the log was given up, it fails as without logs. */
  hold(peer: PmlPeer): void {
    if (!this.members.has(peer.rank)) return;
    // No successor could be given what is not in the log any more.
    if (!this.tap.options.log.isWhole) {
      this.tap.dropGated(peer, peer.failure);
      peer.channel = undefined;
      return;
    }
    if (peer.channel === undefined) {
      peer.channel = new Channel('HELD');
      this.tap.suspended++;
    } else {
      // It dies before it has said what it has, when it is a successor itself: the channel is suspended already.
      if (peer.channel.state !== 'AWAITED') this.tap.suspended++;
      peer.channel.move('HELD');
    }
    this.tap.dropGated(peer);
    const isWithin = this.tap.within.has(peer.rank);
    for (const message of [...peer.sends]) if (this.isCovered(message.ctx)) this.suspend(message, isWithin);
    for (const message of [...peer.recvs]) {
      if (!this.isCovered(message.ctx)) continue;
      const { ctx, seq } = message;
      const request = this.receiver.suspend(message);
      if (request !== undefined) this.open(peer, ctx, seq).request = request;
    }
    for (const envelope of this.waitingOf(peer)) this.settle(peer, envelope);
  }

  /** Nothing of that message goes out any more: the successor gets what it asks for from the log. */
  private suspend(message: OutMessage, isWithin: boolean): void {
    if (message instanceof EagerMessage) return this.sender.eager.finish(message);
    const { request, logged } = message;
    // Sent past the log: it ends with its peer, or when this process goes back with it.
    if (logged === undefined && !isWithin) return;
    if (request !== undefined) {
      message.request = undefined;
      request.message = undefined;
      if (logged === undefined) this.tap.strand(request);
      else logged.request = request;
    }
    this.sender.finish(message);
  }

  /** Its message of that number lacks data. */
  private open(peer: PmlPeer, ctx: number, seq: number): Hole {
    const flow = peer.flowIn(ctx);
    const hole: Hole = { envelope: undefined, request: undefined };
    flow.holes ??= new Map();
    flow.holes.set(seq, hole);
    return hole;
  }

  /** Messages of that peer that wait for a receive. */
  private *waitingOf(peer: PmlPeer): Iterable<Envelope> {
    for (const [ctx, context] of this.inbox.all) {
      if (context.unexpectedCount === 0 || !this.isCovered(ctx)) continue;
      for (const envelope of context.unexpectedEnvelopes()) if (envelope.peer === peer) yield envelope;
    }
    for (const envelope of this.probed) if (envelope.peer === peer && this.isCovered(envelope.ctx)) yield envelope;
  }

  /** What is here as a whole outlives its sender, unless that waits for the match; the rest keeps its place, and its data come again. */
  private settle(peer: PmlPeer, envelope: Envelope): void {
    if (envelope.isHole) return;
    this.core.releaseCharge(envelope);
    if (outlivesSender(envelope)) {
      if (envelope.type === PACKET.MATCH) return;
      envelope.type = PACKET.MATCH;
      this.tap.received(peer, envelope.ctx, envelope.seq, envelope.tag, envelope.payload, envelope.messageBytes);
      return;
    }
    envelope.isHole = true;
    envelope.payload = new Uint8Array(0);
    this.open(peer, envelope.ctx, envelope.seq).envelope = envelope;
  }

  /** There is no succession in place, and all go back: whatever waits for somebody who died, or for a successor, ends. */
  giveUp(error: MultirailError): void {
    this.tap.open();
    for (const rank of [...this.members]) {
      const peer = this.core.peers.get(rank);
      if (peer !== undefined) this.abandon(peer, error);
    }
    this.tap.endStranded(error);
    // Whoever dies from now on fails.
    this.members.clear();
    this.tap.mustKeep = false;
  }

  private abandon(peer: PmlPeer, error: MultirailError): void {
    const { channel, rank } = peer;
    peer.channel = undefined;
    if (channel?.state === 'HELD' || channel?.state === 'AWAITED') this.tap.suspended--;
    if (channel?.state === 'HELD') this.members.delete(rank);
    for (const envelope of this.waitingOf(peer)) {
      if (!envelope.isHole) continue;
      envelope.isHole = false;
      this.inbox.context(envelope.ctx).takeUnexpected(envelope);
    }
    for (const flow of peer.flowsIn.values()) {
      for (const hole of flow.holes?.values() ?? []) {
        const { request } = hole;
        hole.envelope = undefined;
        hole.request = undefined;
        if (request === undefined) continue;
        request.error = error;
        this.core.complete(request);
      }
      // A successor that lives may have sent what was to come again: it comes into nothing, and is answered.
      if (channel?.state === 'HELD') flow.holes = undefined;
    }
    for (const logged of this.tap.options.log.synchronousTo(rank)) {
      const { request } = logged;
      if (request === undefined) continue;
      logged.request = undefined;
      request.error = error;
      this.core.complete(request);
    }
    this.tap.redirect(peer, undefined, error);
    if (channel?.state === 'HELD') this.inbox.endPeer(peer, error);
  }

  /** All that is here of the one, which is held, is the other's from now on. */
  succeed(rank: number, successor: number): void {
    const dead = this.peer(rank);
    const peer = this.peer(successor);
    const { log } = this.tap.options;
    assert(dead.channel?.state === 'HELD', `rank ${rank} is succeeded, and is not held`);
    assert(log.isWhole, `rank ${rank} is succeeded, and the log is not whole`);
    dead.channel = undefined;
    this.members.delete(rank);
    this.members.add(successor);
    peer.channel = new Channel(peer.failure === undefined ? 'AWAITED' : 'HELD');
    for (const envelope of this.waitingOf(dead)) envelope.peer = peer;
    for (const envelope of this.probed) if (envelope.peer === peer && envelope.source === rank) envelope.source = successor;
    for (const [ctx, context] of this.inbox.all) if (this.isCovered(ctx)) context.rename(rank, successor);
    for (const ctx of new Set([...dead.flowsIn.keys(), ...dead.flowsOut.keys()])) if (this.isCovered(ctx)) dead.moveFlows(ctx, peer);
    this.tap.moveDigests(rank, successor);
    log.rename(rank, successor);
    this.tap.redirect(dead, peer);
  }

  // ---------------------------------------------------------------- members that live, and go back

  /**
   * That peer goes back, and lives: from now on what is sent to it is only logged, until it has said what it has. What is under way to it comes
   * into nothing there, and whoever waits for it to be matched waits on.
   */
  stopTo(rank: number): void {
    const peer = this.peer(rank);
    if (peer.channel?.state === 'HELD' || peer.channel?.state === 'AWAITED') return;
    peer.channel = new Channel('AWAITED');
    this.tap.suspended++;
    for (const message of peer.sends) {
      if (message instanceof EagerMessage || !this.isCovered(message.ctx)) continue;
      const { request, logged } = message;
      if (request === undefined || logged === undefined) continue;
      message.request = undefined;
      request.message = undefined;
      logged.request = request;
    }
  }

  /** Numbers up to which messages to that peer have left, or are with it. Undefined: none have that it could still get. */
  sentTo(rank: number): FlowNumbers | undefined {
    const { channel, flowsOut } = this.peer(rank);
    if (channel?.state === 'HELD' || channel?.state === 'AWAITED') return undefined;
    return new Map([...flowsOut].filter(([ctx]) => this.isCovered(ctx)).map(([ctx, { nextSeq }]) => [ctx, nextSeq]));
  }

  /** All messages of that peer below these numbers are here, and none of them is still written into a buffer of the user's; or it is dead. */
  hasTaken(rank: number, sent: FlowNumbers): boolean {
    return this.peer(rank).failure !== undefined || this.has(rank, sent);
  }

  /** All messages of that peer below these numbers are here, and none of them is still written, whether it lives or not. */
  has(rank: number, sent: FlowNumbers): boolean {
    const { flowsIn, recvs } = this.peer(rank);
    for (const { ctx, request } of recvs) if (request !== undefined && this.isCovered(ctx)) return false;
    for (const [ctx, nextSeq] of sent) {
      const flow = flowsIn.get(ctx);
      if (serialDiff(flow?.expectedSeq ?? 0, nextSeq) < 0) return false;
      for (const seq of flow?.holes?.keys() ?? []) if (serialDiff(seq, nextSeq) < 0) return false;
    }
    return true;
  }

  /**
   * The peer has the envelope of every message that left to it, and no second copy of one can come to it any more; or it is dead. Where it begins
   * its contexts again with older numbers, such a copy would pass for a message of now.
   */
  isDrained(rank: number): boolean {
    const { ended, copiesOnRail, railDowns, sends } = this.peer(rank);
    if (ended !== undefined) return true;
    // Until the peer knows that a rail is over, it takes what that one still brings.
    if (copiesOnRail > 0 || railDowns.size > 0) return false;
    for (const { ctx, envelopeOnRail, envelopeDelivered } of sends)
      if (this.isCovered(ctx) && (envelopeOnRail || !envelopeDelivered)) return false;
    return true;
  }

  /** Nothing is here of that peer whose data is awaited by a receive of the program. */
  isWritten(rank: number): boolean {
    const { flowsIn, recvs } = this.peer(rank);
    for (const { ctx } of recvs) if (this.isCovered(ctx)) return false;
    for (const [ctx, { holes }] of flowsIn) {
      if (holes === undefined || !this.isCovered(ctx)) continue;
      for (const { request } of holes.values()) if (request !== undefined) return false;
    }
    return true;
  }

  /**
   * This process goes back, and has taken all that was on its way to it: what is here of covered contexts goes. Returns those; `known`: such that
   * may have been revoked before anything came on them.
   */
  forget(known: Iterable<number>): ReadonlySet<number> {
    const contexts = new Set(known);
    for (const envelope of this.probed) if (this.isCovered(envelope.ctx)) this.inbox.dropProbed(envelope);
    this.probed.clear();
    for (const [ctx] of this.inbox.all) if (this.isCovered(ctx)) contexts.add(ctx);
    for (const { flowsIn, flowsOut } of this.core.peers.values())
      for (const ctx of [...flowsIn.keys(), ...flowsOut.keys()]) if (this.isCovered(ctx)) contexts.add(ctx);
    for (const ctx of contexts) this.inbox.renew(ctx);
    return contexts;
  }

  // ---------------------------------------------------------------- SYNC

  /** What this side has of that peer's messages. */
  syncFor(rank: number): Sync {
    const peer = this.peer(rank);
    const contexts: SyncContext[] = [];
    for (const [ctx, { expectedSeq, taken, holes, digests }] of peer.flowsIn) {
      if (!this.isCovered(ctx)) continue;
      const lacking = taken === undefined ? { nextIn: expectedSeq, holes: [] } : lackingOf(expectedSeq, taken);
      contexts.push({ ctx, nextIn: lacking.nextIn, holes: [...(holes?.keys() ?? []), ...lacking.holes], digests: digests?.list() ?? [] });
    }
    return { contexts };
  }

  /**
   * The peer has said what it has: it is sent the rest, in the old order. False: it is not awaited here (yet). `sent`: numbers below these left in
   * an earlier life of this process, and are with the peer or on their way, whatever it says.
   */
  takeSync(rank: number, sync: Sync, sent: FlowNumbers = new Map()): boolean {
    const peer = this.peer(rank);
    const { channel } = peer;
    if (channel?.state !== 'AWAITED') return false;
    const needs = new Map<number, Need>();
    for (const [ctx, nextIn] of sent) needs.set(ctx, { nextIn, holes: new Set(), digests: new Map() });
    for (const { ctx, nextIn, holes, digests } of sync.contexts) {
      const from = sent.get(ctx);
      needs.set(ctx, {
        nextIn: from !== undefined && serialDiff(from, nextIn) > 0 ? from : nextIn,
        holes: new Set(from === undefined ? holes : holes.filter((seq) => serialDiff(seq, from) >= 0)),
        digests: new Map(digests.map((digest) => [digest.seq, digest])),
      });
    }
    channel.needs = needs;
    channel.move('REPLAYING');
    this.tap.suspended--;
    for (const logged of this.tap.options.log.messagesTo(rank)) {
      if (channel.wants(logged.ctx, logged.seq)) {
        this.tap.counters.replayed++;
        this.tap.transmit(peer, logged);
        continue;
      }
      // The save of the successor has it as received.
      const { request } = logged;
      if (request === undefined) continue;
      logged.request = undefined;
      this.core.complete(request);
    }
    this.tap.checkPassed(peer, channel);
    return true;
  }

  /** Every member that lives has said what it has. */
  get isSynced(): boolean {
    for (const rank of this.members) if (this.core.peers.get(rank)?.channel?.state === 'AWAITED') return false;
    return true;
  }

  /** This process repeats what it did before it died: some of what it sends has been received. */
  get isReplaying(): boolean {
    for (const rank of this.members) {
      const state = this.core.peers.get(rank)?.channel?.state;
      if (state === 'AWAITED' || state === 'REPLAYING') return true;
    }
    return false;
  }

  // ---------------------------------------------------------------- saves

  /**
   * A save is cut here: the numbers, and what waits for a receive. Nothing may be under way, or lack its data; where only some go back together, of
   * the messages between them.
   */
  cut(): Cut {
    const { rank: own } = this.core.options;
    const { options, released, within } = this.tap;
    const flows: Cut['flows'][number][] = [];
    const isGrouped = options.within !== undefined;
    // Contexts that are gone by now: nobody who goes back to this save sends on them, and whoever does not forgets their numbers with it. Where
    // others go back to another save, their numbers stay.
    const gone = new Set(isGrouped ? [] : released);
    for (const rank of new Set([...this.members, own])) {
      const peer = this.core.peers.get(rank);
      if (peer === undefined) continue;
      for (const ctx of new Set([...peer.flowsIn.keys(), ...peer.flowsOut.keys()])) {
        if (!this.isCovered(ctx) || gone.has(ctx)) continue;
        const { expectedSeq: nextIn, holes } = peer.flowIn(ctx);
        assert(isGrouped || (holes?.size ?? 0) === 0, `a save is cut while data of rank ${rank} are to come again`);
        flows.push({ peer: rank, ctx, nextOut: peer.flowOut(ctx).nextSeq, nextIn });
      }
    }
    const unexpected: UnexpectedMessage[] = [];
    for (const [ctx, context] of this.inbox.all) {
      if (!this.isCovered(ctx)) continue;
      for (const envelope of context.unexpectedEnvelopes()) {
        const { source, tag, seq, signature, payload, messageBytes } = envelope;
        if (isGrouped && source !== own && !within.has(source) && (envelope.isHole || !outlivesSender(envelope))) {
          unexpected.push({ source, ctx, tag, seq, signature, payload: new Uint8Array(0), messageBytes });
          continue;
        }
        assert(
          isWhole(envelope),
          `a save is cut while a message of ${envelope.messageBytes} bytes from rank ${source} waits for its receive`,
        );
        unexpected.push({ source, ctx, tag, seq, signature, payload: new Uint8Array(payload) });
      }
    }
    options.log.cut();
    return { flows, unexpected, released: isGrouped ? 0 : released.length };
  }

  /** The save of that cut is committed: whoever goes back goes back to it, or to a later one. */
  commit(cut: Cut): void {
    const flows = new Map<number, Map<number, Cut['flows'][number]>>();
    for (const flow of cut.flows) {
      const ofPeer = flows.get(flow.peer) ?? new Map();
      flows.set(flow.peer, ofPeer.set(flow.ctx, flow));
    }
    const gone = new Set(this.tap.released.splice(0, cut.released));
    this.tap.options.log.commit((peer, ctx, seq) => gone.has(ctx) || serialDiff(seq, flows.get(peer)?.get(ctx)?.nextOut ?? 0) < 0);
    // Their digests go with their numbers.
    for (const ctx of gone) this.inbox.forgetFlows(ctx);
    this.tap.trimDigests((peer, ctx) => flows.get(peer)?.get(ctx)?.nextIn ?? 0);
  }

  /**
   * The save of that peer is committed, and those that it goes back with: of what was sent to it it asks for nothing below `nextIn`, and it sends
   * nothing again below `nextOut`.
   */
  commitOf(rank: number, nextIn: FlowNumbers, nextOut: FlowNumbers): void {
    const peer = this.peer(rank);
    this.tap.options.log.trimTo(rank, (ctx, seq) => serialDiff(seq, nextIn.get(ctx) ?? 0) < 0);
    this.tap.trimDigestsOf(peer, (ctx) => nextOut.get(ctx) ?? 0);
  }

  /** There is no save of the last cut. */
  abandonCut(): void {
    this.tap.options.log.abandon();
  }

  // ---------------------------------------------------------------- a place that is taken by whoever has run along

  /** That process is succeeded by another one if it dies. */
  mayBeSucceeded(rank: number): void {
    this.members.add(rank);
  }

  /** That peer had left this process, and has died before it had left all others: its successor asks here, too. */
  holdWhoLeft(rank: number): void {
    const peer = this.peer(rank);
    peer.channel = new Channel('HELD');
    this.tap.suspended++;
  }

  /** What is here of that peer as a whole, whether it has been received or not: for each context all messages below a number. */
  wholeFrom(rank: number): { readonly ctx: number; readonly below: number }[] {
    const peer = this.peer(rank);
    const lowest = new Map<number, number>();
    for (const [ctx, { expectedSeq }] of peer.flowsIn) if (this.isCovered(ctx)) lowest.set(ctx, expectedSeq);
    const lacks = ({ ctx, seq }: { readonly ctx: number; readonly seq: number }): void => {
      if (serialDiff(seq, lowest.get(ctx) ?? seq) < 0) lowest.set(ctx, seq);
    };
    for (const [ctx, { holes }] of peer.flowsIn) for (const seq of holes?.keys() ?? []) lacks({ ctx, seq });
    for (const message of peer.recvs) lacks(message);
    for (const envelope of this.waitingOf(peer)) if (!outlivesSender(envelope)) lacks(envelope);
    return [...lowest].map(([ctx, below]) => ({ ctx, below }));
  }

  /** A matched probe of this process has taken that message, whose data come again. After restore(). */
  restoreProbed(envelope: Envelope): void {
    this.open(envelope.peer, envelope.ctx, envelope.seq).envelope = envelope;
    this.probed.add(envelope);
  }

  /** A synchronous message of the log waits for its receive still. After restore(). */
  restoreWaiting(rank: number, logged: LoggedMessage): SendRequest {
    const request = new SendRequest(rank, logged.tag, logged.payload.bytes);
    this.core.open(request);
    logged.request = request;
    return request;
  }

  /** What this process has sent to itself, and not received, leaves. After restore(). */
  sendOwn(): void {
    const { rank } = this.core.options;
    this.peer(rank).channel = new Channel('AWAITED');
    this.tap.suspended++;
    this.takeSync(rank, this.syncFor(rank));
  }

  /** This process is a successor: its numbers go on from those of the save, and all other members say what they have. */
  restore({ flows, unexpected }: Pick<Cut, 'flows' | 'unexpected'>): void {
    const { rank: own } = this.core.options;
    for (const rank of this.members) {
      if (rank === own) continue;
      const peer = this.peer(rank);
      // Those that go back together have the same numbers.
      peer.channel = undefined;
      if (peer.failure === undefined && this.tap.within.has(rank)) continue;
      peer.channel = new Channel(peer.failure === undefined ? 'AWAITED' : 'HELD');
      this.tap.suspended++;
    }
    for (const { peer: rank, ctx, nextOut, nextIn, taken } of flows) {
      const peer = this.peer(rank);
      peer.flowOut(ctx).nextSeq = nextOut;
      const flow = peer.flowIn(ctx);
      flow.expectedSeq = nextIn;
      if (taken !== undefined && taken.size > 0) flow.taken = new Set(taken);
    }
    for (const { source, ctx, tag, seq, signature, payload, messageBytes } of unexpected) {
      const envelope: Envelope = {
        type: PACKET.MATCH,
        peer: this.peer(source),
        ctx,
        source,
        tag,
        seq,
        signature,
        messageBytes: messageBytes ?? payload.length,
        flags: 0,
        payload,
        charge: 0,
        senderSlot: 0,
        senderGeneration: 0,
        windows: [],
        isHole: messageBytes !== undefined,
      };
      if (envelope.isHole) this.open(envelope.peer, ctx, seq).envelope = envelope;
      this.inbox.context(ctx).enqueue(envelope);
    }
  }
}

/** It is here as a whole, and its sender does not wait for the match. */
function outlivesSender(envelope: Envelope): boolean {
  return isWhole(envelope) && (envelope.flags & FLAG.SYNC) === 0;
}

/** Of numbers from `expected` on, all but those that are taken: those below the highest of these one by one. */
function lackingOf(expected: number, taken: ReadonlySet<number>): { readonly nextIn: number; readonly holes: number[] } {
  let last = expected;
  for (const seq of taken) if (serialDiff(seq, last) > 0) last = seq;
  const nextIn = serialAdd(last, 1);
  const holes: number[] = [];
  for (let seq = expected; seq !== nextIn; seq = serialAdd(seq, 1)) if (!taken.has(seq)) holes.push(seq);
  return { nextIn, holes };
}
