// What the PML knows of one peer: sequences per context in both directions, byte credit in both directions, and the
// queues of what is to be sent.
import type { BmlPeer } from '../bml/bml.ts';
import type { MultirailError } from '../errors.ts';
import { Deque } from '../util/deque.ts';
import { LinkedList } from '../util/linked.ts';
import type { Envelope, OutMessage, RecvMessage, SendMessage } from './records.ts';

/** Numbers of one flow that may be out at once: half of what serial arithmetic can tell apart, halved again. */
export const SEQ_SPAN_MAX = 2 ** 30;

/** Messages to one peer on one context. */
export interface FlowOut {
  nextSeq: number;
}

/** Messages from one peer on one context. */
export interface FlowIn {
  expectedSeq: number;
  /** Envelopes that overtook a lower number. */
  readonly early: Map<number, Envelope>;
}

export interface OwedRailDown {
  epoch: number;
  onRail: boolean;
}

export interface OwedRestartNack {
  senderSlot: number;
  senderGeneration: number;
  receiverSlot: number;
  receiverGeneration: number;
  epoch: number;
  onRail: boolean;
}

export class PmlPeer {
  readonly rank: number;
  readonly bml: BmlPeer;
  readonly flowsOut = new Map<number, FlowOut>();
  readonly flowsIn = new Map<number, FlowIn>();

  // --- credit. Cumulative byte counts since the start; limits are absolute, a newer value replaces an older one.
  /** What the peer allows us to first-send, and what we have reserved of it. */
  creditLimit: number;
  creditUsed = 0;
  /**
   * Charges of messages that the peer is not known to have received, oldest first; those of rendezvous messages are negative. Credit comes
   * back for what was received, in about that order.
   */
  private readonly charges = new Deque<number>();
  private readonly initialCredit: number;
  /** Charges of those that were. */
  private receivedCharges = 0;
  /** Charges of the peer's messages that we disposed of, and those we hold. */
  releasedBytes = 0;
  heldBytes = 0;
  /** Highest limit that the peer is known to have been told, and that it may have been told. */
  creditTold: number;
  creditTelling: number;

  // --- owed to the peer, level-triggered
  readonly railDowns = new Map<number, OwedRailDown>();
  readonly restartNacks = new Map<string, OwedRestartNack>();
  readonly control = new Deque<SendMessage | RecvMessage>();
  readonly envelopes = new Deque<OutMessage>();
  /** Envelopes that came back in doubt or refused. */
  readonly resends = new Deque<OutMessage>();
  readonly streams = new Deque<SendMessage | RecvMessage>();

  readonly sends = new LinkedList<OutMessage>();
  readonly recvs = new LinkedList<RecvMessage>();

  /** Set once, for ever. */
  failure: MultirailError | undefined;
  saidBye = false;
  /** What a call to a peer that said BYE ends with. */
  left: MultirailError | undefined;
  /** We said BYE: nothing more is sent. */
  leaving = false;
  dirty = false;
  private lastOutCtx = -1;
  private lastOut: FlowOut | undefined;
  private lastInCtx = -1;
  private lastIn: FlowIn | undefined;

  constructor(rank: number, bml: BmlPeer, initialCreditToUs: number, initialCreditToPeer: number) {
    this.rank = rank;
    this.bml = bml;
    this.creditLimit = initialCreditToUs;
    this.initialCredit = initialCreditToUs;
    this.creditTold = initialCreditToPeer;
    this.creditTelling = initialCreditToPeer;
  }

  /** A message was sent that takes so much of the credit. */
  charge(bytes: number, isEager: boolean): void {
    this.creditUsed += bytes;
    if (bytes > 0) this.charges.push(isEager ? bytes : -bytes);
  }

  /** The peer allows more: it has received messages. */
  raiseCredit(limit: number): void {
    this.creditLimit = limit;
    const released = limit - this.initialCredit;
    for (let next = this.charges.peek(); next !== undefined; next = this.charges.peek()) {
      const received = this.receivedCharges + Math.abs(next);
      if (received > released) return;
      this.receivedCharges = received;
      this.charges.shift();
    }
  }

  /** Eager messages that the peer is not known to have received. */
  unreceivedEager(): number {
    let count = 0;
    for (const charge of this.charges) if (charge > 0) count++;
    return count;
  }

  /** Nothing more comes from this peer, and nothing goes there: it failed, or it left. */
  get ended(): MultirailError | undefined {
    return this.failure ?? this.left;
  }

  /** Nothing is sent to it any more: what stands in the queues would keep its buffers alive. */
  dropQueues(): void {
    for (const message of this.control) message.controlQueued = false;
    for (const message of this.streams) message.streamQueued = false;
    for (const message of this.envelopes) message.envelopeQueued = false;
    for (const message of this.resends) message.envelopeQueued = false;
    this.control.clear();
    this.streams.clear();
    this.envelopes.clear();
    this.resends.clear();
    this.railDowns.clear();
    this.restartNacks.clear();
    this.charges.clear();
  }

  flowOut(ctx: number): FlowOut {
    // Programs stay on one communicator for long: the last flow is asked for again.
    if (ctx === this.lastOutCtx) return this.lastOut as FlowOut;
    let flow = this.flowsOut.get(ctx);
    if (flow === undefined) {
      flow = { nextSeq: 0 };
      this.flowsOut.set(ctx, flow);
    }
    this.lastOutCtx = ctx;
    this.lastOut = flow;
    return flow;
  }

  flowIn(ctx: number): FlowIn {
    if (ctx === this.lastInCtx) return this.lastIn as FlowIn;
    let flow = this.flowsIn.get(ctx);
    if (flow === undefined) {
      flow = { expectedSeq: 0, early: new Map() };
      this.flowsIn.set(ctx, flow);
    }
    this.lastInCtx = ctx;
    this.lastIn = flow;
    return flow;
  }

  /** The sequences of a context that is gone; returns those of what came in. */
  dropFlows(ctx: number): FlowIn | undefined {
    const flow = this.flowsIn.get(ctx);
    this.flowsIn.delete(ctx);
    this.flowsOut.delete(ctx);
    this.lastOutCtx = -1;
    this.lastInCtx = -1;
    return flow;
  }
}
