// Numbers of outgoing messages: each flow, which is a peer and a context, counts by itself.
import { assert } from '../util/assert.ts';
import { serialAdd, serialDiff } from '../util/serial.ts';
import type { PmlPeer } from './records.ts';

/** Numbers of one flow that may be out at once: half of what serial arithmetic can tell apart, halved again. */
export const SEQ_SPAN_MAX = 2 ** 30;

/** Looked at once in so many messages of a flow. */
const SEQ_CHECK_MASK = 2 ** 20 - 1;

/** The number of the next message to that peer on that context. */
export function nextSeq(peer: PmlPeer, ctx: number): number {
  const flow = peer.flowOut(ctx);
  const seq = flow.nextSeq;
  if ((seq & SEQ_CHECK_MASK) === 0) checkSpan(peer, ctx, seq);
  flow.nextSeq = serialAdd(seq, 1);
  return seq;
}

/** The peer's messages are in the order in which they were begun: the first that is not delivered is the oldest of its flow. */
function checkSpan(peer: PmlPeer, ctx: number, seq: number): void {
  for (const message of peer.sends) {
    if (message.ctx !== ctx || message.envelopeDelivered) continue;
    const span = serialDiff(seq, message.seq) + SEQ_CHECK_MASK;
    assert(span < SEQ_SPAN_MAX, `too many messages behind one that is not delivered: ${message.traceId}`);
    return;
  }
}
