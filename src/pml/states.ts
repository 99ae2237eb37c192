// The states of a message on either end: one table each, every state with a sentence, every edge named, and the one
// function that moves between them.
import { assert } from '../util/assert.ts';

/** Sender's side of one message. */
export const SEND_STATES = {
  ENVELOPE: 'MATCH, RNDV or RGET is to be sent, or on a rail; for MATCH this is the only state before DONE.',
  STREAMING: 'The ACK (or RESTARTACK) said what is taken; ranges go out by FRAG and by put as rails have room.',
  DRAINING: 'Data of this message is in doubt; nothing is scheduled, own puts on living rails are waited for.',
  NOTIFYING: 'RNDVRESTARTNOTIFY of a new epoch is to be sent or on a rail; its answer is waited for.',
  OWING: 'The request is complete; FINs of its puts are not yet known to be delivered.',
  DONE: 'Nothing is owed; the id is retired.',
} as const;
export type SendState = keyof typeof SEND_STATES;

export const SEND_EDGES: Readonly<Record<SendState, readonly SendState[]>> = {
  // → STREAMING by ACK, → DONE by delivery (MATCH), by an ACK that needs no more, by FIN (RGET), by death of the peer;
  // → DRAINING by RECVERRNOTIFY while an RGET is read.
  ENVELOPE: ['STREAMING', 'DRAINING', 'DONE'],
  // → DRAINING by data in doubt or RECVERRNOTIFY; → OWING or DONE when every byte taken is delivered.
  STREAMING: ['DRAINING', 'OWING', 'DONE'],
  // → NOTIFYING when no own put is under way on a living rail.
  DRAINING: ['NOTIFYING', 'DONE'],
  // → STREAMING by RESTARTACK; → DONE by RESTARTNACK. A RECVERRNOTIFY is always of an older epoch here.
  NOTIFYING: ['STREAMING', 'DONE'],
  // → DRAINING never: every byte is delivered, so no data can come into doubt.
  OWING: ['DONE'],
  DONE: [],
};

/** Receiver's side of one rendezvous message, from its match on. (Eager messages complete at the match.) */
export const RECV_STATES = {
  RECEIVING: 'Matched: the answer (ACK, or RESTARTACK after a restart) is owed or given, bytes are counted as they arrive.',
  READING: 'Matched an RGET whose rails live: this side reads by gets and counts what they bring.',
  FENCING: 'A NOTIFY of a new epoch was taken: own gets are waited for before it is answered.',
  OWING: 'The request is complete; the ACK, or the FIN of an RGET, is not yet known to be delivered.',
  DONE: 'Nothing is owed; the id is retired.',
} as const;
export type RecvState = keyof typeof RECV_STATES;

export const RECV_EDGES: Readonly<Record<RecvState, readonly RecvState[]>> = {
  RECEIVING: ['FENCING', 'OWING', 'DONE'],
  READING: ['FENCING', 'OWING', 'DONE'],
  // → RECEIVING when drained (the RESTARTACK is owed); → DONE when the last own get completed the message meanwhile: the peer
  // record owes a RESTARTNACK then.
  FENCING: ['RECEIVING', 'DONE'],
  OWING: ['DONE'],
  DONE: [],
};

/** Sees every transition: the trace ring, and the coverage count of the simulator. */
export interface TransitionListener {
  onTransition(side: 'send' | 'recv', message: Traced, from: string, to: string): void;
}

/** What a message tells of itself in traces. Its `traceId` is put together only when somebody reads it. */
export interface Traced {
  readonly traceId: string;
  readonly peer: { readonly rank: number };
  readonly ctx: number;
  readonly seq: number;
}

interface Stateful<S extends string> extends Traced {
  state: S;
}

/** The one door between states of a sender's message. */
export function moveSend(message: Stateful<SendState>, to: SendState, listener: TransitionListener): void {
  if (!SEND_EDGES[message.state].includes(to)) assert(false, `send ${message.traceId}: no edge ${message.state} -> ${to}`);
  listener.onTransition('send', message, message.state, to);
  message.state = to;
}

/** The one door between states of a receiver's message. */
export function moveRecv(message: Stateful<RecvState>, to: RecvState, listener: TransitionListener): void {
  if (!RECV_EDGES[message.state].includes(to)) assert(false, `recv ${message.traceId}: no edge ${message.state} -> ${to}`);
  listener.onTransition('recv', message, message.state, to);
  message.state = to;
}
