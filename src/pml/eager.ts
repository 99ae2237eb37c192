// Eager messages on the sending side: one frame that is also the retained copy, sent again from there until it is delivered.
// Most messages of most programs are of this kind: nothing here allocates more than it must.
import type { Rail } from '../bml/rail.ts';
import { type CompletionStatus, DELIVERED, OK, REFUSED } from '../btl/btl.ts';
import type { Iov } from '../util/iov.ts';
import { COMPLETION_NAMES, type PmlCore } from './core.ts';
import { nextSeq } from './flows.ts';
import { ENVELOPE_CHARGE_BYTES } from './hdr.ts';
import { EagerMessage, type PmlPeer } from './records.ts';
import { moveSend } from './states.ts';

/** Payload of the messages of one rail that go over another one when it is late. */
const HEDGED_BYTES_MAX = 64 * 1024;

export class EagerSender {
  private readonly core: PmlCore;

  constructor(core: PmlCore) {
    this.core = core;
  }

  /** A message of so many bytes is short, the peer is there, and there is credit and room for it. */
  takes(peer: PmlPeer, bytes: number): boolean {
    const { core } = this;
    const { options } = core;
    if (bytes > options.eagerLimitBytes || bytes > peer.bml.eagerBytesMax || peer.ended !== undefined) return false;
    const creditLeft = peer.creditLimit - peer.creditUsed - ENVELOPE_CHARGE_BYTES;
    return bytes <= creditLeft && core.retainedBytes + bytes <= options.retainedBytesMax;
  }

  /** Sends a message that goes this way. False: nothing has changed, and it goes another way. */
  start(peer: PmlPeer, ctx: number, tag: number, buffer: Iov, signature: number): boolean {
    if (!this.takes(peer, buffer.bytes)) return false;
    this.begin(peer, ctx, tag, nextSeq(peer, ctx), buffer, signature);
    return true;
  }

  /**
   * As start(), for a message that goes this way and has its number: copies its payload, and gives the frame to a rail at once where nothing
   * waits before it. The frame is a copy of its own even where the log has one: it has the header beside the payload, it is given back message
   * by message, and the log by slabs of many messages, so an owner count in between would cost more than the copy of so few bytes.
   */
  begin(peer: PmlPeer, ctx: number, tag: number, seq: number, buffer: Iov, signature: number): void {
    const { core } = this;
    const { counters } = core;
    const { bytes } = buffer;
    counters.messagesSent++;
    counters.bytesSent += bytes;
    counters.messagesEager++;
    const message = core.eagerMessage(peer, ctx, tag, seq, bytes);
    message.frame = core.eagerFrame(message, signature, buffer);
    core.retainedBytes += bytes;
    peer.charge(bytes + ENVELOPE_CHARGE_BYTES, true);
    peer.sends.add(message);
    // What is sent in one turn still leaves in one go, with the flush.
    const first = peer.envelopes.size === 0 && peer.resends.size === 0 && !peer.leaving;
    if (!first || !this.send(message)) core.queueEnvelope(message);
  }

  /** Gives the frame to a rail. False when no rail has room. */
  send(message: EagerMessage): boolean {
    const { frame, peer } = message;
    if (message.state !== 'ENVELOPE' || message.envelopeOnRail || frame === undefined) return true;
    if (this.core.sendEagerFrame(peer, frame) !== OK) return false;
    message.envelopeOnRail = true;
    if (message.firstSent) {
      this.core.counters.envelopesResent++;
      this.core.counters.bytesResent += message.bytes;
    }
    message.firstSent = true;
    return true;
  }

  /**
   * What that rail holds is late, and these carry: its messages go over them, too, the oldest first, since others wait for them. Whichever copy
   * comes first counts. The rail keeps what it has: if it is left, it comes back in doubt, as ever.
   */
  hedge(peer: PmlPeer, late: Rail, rails: readonly Rail[]): void {
    const { core } = this;
    const { counters } = core;
    let bytesLeft = HEDGED_BYTES_MAX;
    for (const message of peer.sends) {
      if (!(message instanceof EagerMessage) || !message.envelopeOnRail || message.isHedged) continue;
      const { frame, bytes } = message;
      if (frame === undefined || frame.rail !== late.index || message.state !== 'ENVELOPE') continue;
      bytesLeft -= bytes;
      if (bytesLeft < 0 || core.sendEagerCopy(message, frame, rails) !== OK) return;
      message.isHedged = true;
      peer.copiesOnRail++;
      counters.envelopesHedged++;
      counters.bytesHedged += bytes;
    }
  }

  /** The copy needs no second one: if it is in doubt, there is still the frame that it is a copy of. */
  onCopyCompleted(message: EagerMessage, status: CompletionStatus): void {
    message.peer.copiesOnRail--;
    if (status === DELIVERED && message.state === 'ENVELOPE') this.finish(message);
  }

  onCompleted(message: EagerMessage, status: CompletionStatus): void {
    const { core } = this;
    core.eventTap?.('send', message.state, `envelope ${COMPLETION_NAMES[status]}`);
    message.envelopeOnRail = false;
    if (message.state !== 'ENVELOPE') {
      message.peer.copiesOnRail--;
      this.releaseFrame(message);
    } else if (status === DELIVERED) this.finish(message);
    else {
      if (status === REFUSED) core.counters.refused++;
      core.queueEnvelope(message);
    }
  }

  /** It is delivered, or ends with its peer. */
  finish(message: EagerMessage): void {
    const { core } = this;
    const { peer } = message;
    message.envelopeDelivered = true;
    moveSend(message, 'DONE', core);
    core.retainedBytes -= message.bytes;
    peer.sends.delete(message);
    if (message.envelopeOnRail) peer.copiesOnRail++;
    this.releaseFrame(message);
  }

  /** The retained copy goes as soon as no rail reads it any more. */
  private releaseFrame(message: EagerMessage): void {
    const { frame } = message;
    if (frame === undefined || message.envelopeOnRail) return;
    message.frame = undefined;
    this.core.recycle(frame);
    // A message that ended with its peer, or whose copy has come, may still be in a queue.
    if (!message.envelopeQueued && !message.isHedged) this.core.keepEager(message);
  }
}
