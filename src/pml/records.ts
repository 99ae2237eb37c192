// The records of the PML: requests (what the user holds), messages (what the protocol holds, and which may outlive the request), envelopes
// that wait for a receive, peers with their numbers, credit and queues, and the frames that are on a rail. Each knows the others, so they
// are in one file. Data and its arithmetic only; the protocol is in inbox.ts, sender.ts and receiver.ts.
import type { BmlPeer } from '../bml/peer.ts';
import type { OneSidedOp, Sink } from '../btl/btl.ts';
import type { MultirailError } from '../errors.ts';
import { Deque } from '../util/deque.ts';
import type { Iov } from '../util/iov.ts';
import { type Linked, LinkedList } from '../util/linked.ts';
import { RangeSet } from '../util/range-set.ts';
import { WIDE_ZERO } from '../util/wide-zero.ts';
import type { Channel } from './channel.ts';
import type { DigestTable } from './digests.ts';
import { FlowTable } from './flow-table.ts';
import { FrameMemory } from './frame-memory.ts';
import { FLAG, type PacketType } from './hdr.ts';
import type { OwedFin, OwedRailDown, OwedRestartNack, ReadableWindow } from './owed-records.ts';
import type { RecvState, SendState } from './states.ts';
import { type LocalWindow, PutTargets, type RemoteWindow, WindowOffers } from './windows.ts';

/** What the user's side of a send or receive looks like to the layers above. */
abstract class Request {
  done = false;
  error: MultirailError | undefined = undefined;
  /** Called once by the engine, outside of the PML, after `done` became true. */
  onDone: (() => void) | undefined = undefined;
  /** Who hears of its end besides `onDone`, before it; undefined unless somebody traces operations. */
  trace: { requestEnded(request: SendRequest | RecvRequest): void } | undefined = undefined;
  /** Place among all requests that were not done at once, from 1 up; 0: it was done at once. The older of two has the lower one. */
  openedAs = 0;
  /** Nobody waits for it. */
  isInBackground = false;
}

export class SendRequest extends Request {
  readonly kind = 'send';
  /** Under logs: whoever has the place of the process that it was for. */
  peer: number;
  readonly tag: number;
  readonly bytes: number;
  /** The message, while a rendezvous is under way. */
  message: SendMessage | undefined = undefined;
  /** What it belonged to has ended with an error, which was told: whether it is ever received is no news. */
  isForsaken = false;
  constructor(peer: number, tag: number, bytes: number) {
    super();
    this.peer = peer;
    this.tag = tag;
    this.bytes = bytes;
  }
}

export class RecvRequest extends Request {
  readonly kind = 'recv';
  ctx: number;
  /** World rank or ANY. */
  source: number;
  /** Tag or ANY. */
  tag: number;
  buffer: Iov;
  // What came: good once it is done. Fields, not a record of their own, since nearly every message of a program passes here.
  /** World rank; the communicator translates it. */
  matchedSource = -1;
  matchedTag = -1;
  /** Number of the message in its flow. */
  matchedSeq = -1;
  /** The signature of the collective call that the message belongs to; 0 when it belongs to no call. */
  matchedSignature = 0;
  /** Bytes written into the buffer. */
  receivedBytes = 0;
  cancelled = false;
  /** Order of posting within the context. */
  postedSerial = 0;
  matched = false;
  /** Its number among the receives from anybody whose outcomes are recorded; 0: its outcome is not. */
  anyNumber = 0;
  /** Place in the posted queue (match.ts). */
  queue: PostedQueue | undefined = undefined;
  queuePrev: RecvRequest | undefined = undefined;
  queueNext: RecvRequest | undefined = undefined;
  constructor(ctx: number, source: number, tag: number, buffer: Iov) {
    super();
    this.ctx = ctx;
    this.source = source;
    this.tag = tag;
    this.buffer = buffer;
  }

  /** As a new one. It has ended, stands in no queue, and nobody else holds it. */
  again(ctx: number, source: number, tag: number, buffer: Iov): this {
    this.ctx = ctx;
    this.source = source;
    this.tag = tag;
    this.buffer = buffer;
    this.done = false;
    this.error = undefined;
    this.onDone = undefined;
    this.trace = undefined;
    this.isInBackground = false;
    this.matchedSource = -1;
    this.matchedTag = -1;
    this.matchedSeq = -1;
    this.matchedSignature = 0;
    this.receivedBytes = 0;
    this.cancelled = false;
    this.matched = false;
    this.anyNumber = 0;
    return this;
  }
}

/** Posted receives of one pattern, oldest first. */
export interface PostedQueue {
  head: RecvRequest | undefined;
  tail: RecvRequest | undefined;
  source: number;
  tag: number;
}

/** A message that arrived and waits: for a lower number (early) or for its receive (unexpected). Owns its payload copy. */
export interface Envelope {
  type: PacketType;
  peer: PmlPeer;
  readonly ctx: number;
  source: number;
  readonly tag: number;
  readonly seq: number;
  readonly signature: number;
  messageBytes: number;
  flags: number;
  payload: Uint8Array;
  /** Bytes charged to the sender's credit, given back when the payload is disposed of. */
  charge: number;
  senderSlot: number;
  senderGeneration: number;
  /** RGET only: where the sender's memory can be read. */
  windows: readonly RemoteWindow[];
  /** Its sender has died before all of it was here: the data come again from the successor, with the same number (succession.ts). */
  isHole: boolean;
}

// Shared by the many messages that have none: there may be a million that wait.
const NO_FINS: readonly OwedFin[] = [];
const NO_READABLE: readonly ReadableWindow[] = [];

/** A message in the log. */
export interface LoggedMessage {
  readonly ctx: number;
  readonly tag: number;
  readonly seq: number;
  readonly signature: number;
  readonly sync: boolean;
  /** The copy, in memory of the log. */
  readonly payload: Iov;
  /** That memory may be mapped by a peer. */
  readonly isExported: boolean;
  /** A synchronous send whose message is on no rail: it is done when the successor has matched it. */
  request: SendRequest | undefined;
}

/** A message of ours until nothing of it is owed: every one has its place in the order of its flow. */
export type OutMessage = EagerMessage | SendMessage;

/** Sender's side of one eager message (MATCH). Its request is complete from the start. */
export class EagerMessage implements Linked<OutMessage> {
  listPrev: OutMessage | undefined = undefined;
  listNext: OutMessage | undefined = undefined;
  listed = false;
  state: SendState = 'ENVELOPE';
  peer!: PmlPeer;
  ctx!: number;
  tag!: number;
  seq!: number;
  bytes!: number;
  /** Holds the retained copy until the message is delivered. */
  frame: PmlFrame | undefined = undefined;
  /** It was on a rail before: sent again, it is counted as such. */
  firstSent = false;
  envelopeOnRail = false;
  /** A copy of it went over another rail: nobody else uses this record, since that one may end later. */
  isHedged = false;
  /** Standing in the peer's envelope queue. */
  envelopeQueued = false;
  /** It is known to have reached the peer's PML, or has ended with its peer. */
  envelopeDelivered = false;

  /** A new message in this record: core.ts keeps those that have ended, since a new one each time costs the collector more. */
  begin(peer: PmlPeer, ctx: number, tag: number, seq: number, bytes: number): this {
    this.state = 'ENVELOPE';
    this.peer = peer;
    this.ctx = ctx;
    this.tag = tag;
    this.seq = seq;
    this.bytes = bytes;
    this.firstSent = false;
    this.envelopeDelivered = false;
    return this;
  }

  get protocol(): 'MATCH' {
    return 'MATCH';
  }

  get traceId(): string {
    return `MATCH to ${this.peer.rank} ctx ${this.ctx} tag ${this.tag} seq ${this.seq}`;
  }
}

/** Sender's side of one rendezvous message. */
export class SendMessage implements Linked<OutMessage> {
  /** Messages are served in the order in which they were begun. */
  order = 0;
  listPrev: OutMessage | undefined = undefined;
  listNext: OutMessage | undefined = undefined;
  listed = false;
  state: SendState = 'ENVELOPE';
  readonly peer: PmlPeer;
  readonly ctx: number;
  readonly tag: number;
  readonly seq: number;
  /** The user's buffer, zero-copy; or, once the send was given up, a copy of what has not left. */
  buffer: Iov;
  /** Where `buffer` begins in the message. */
  private bufferFrom = 0;
  readonly bytes: number;
  readonly isContiguous: boolean;
  readonly protocol: 'RNDV' | 'RGET';
  readonly sync: boolean;
  /** The signature of the collective call that it is a message of; 0 when it belongs to no call. */
  signature = 0;
  request: SendRequest | undefined = undefined;
  slot = 0;
  generation = 0;
  /** Bytes that travel with the envelope. */
  inlineBytes = 0;
  charge = 0;
  /** The envelope was put on a rail at least once (a resend needs no credit and is counted as such). */
  firstSent = false;
  envelopeOnRail = false;
  /** Standing in the peer's envelope queue. */
  envelopeQueued = false;
  /** The envelope is known to have reached the peer's PML. */
  envelopeDelivered = false;
  // --- rendezvous
  epoch = 0;
  takeBytes = 0;
  receiverSlot = 0;
  receiverGeneration = 0;
  readonly toSend = new RangeSet();
  /** Bytes of the current epoch not yet known to be delivered and no longer in toSend. */
  inFlightBytes = 0;
  /** Everything of this message on any rail, of any epoch: the user's buffer is not free before this is zero. */
  itemsOnRail = 0;
  putsUnderWay = 0;
  /** Bytes ever given to a rail, to tell resent ones. */
  readonly everSent = new RangeSet();
  notifyOnRail = false;
  notifyDelivered = false;
  readonly putTargets = new PutTargets();
  finsOwed: readonly OwedFin[] = NO_FINS;
  /** RGET: this side's own registered memory. */
  readable: readonly ReadableWindow[] = NO_READABLE;
  /** Standing in the peer's control, stream queue. */
  controlQueued = false;
  streamQueued = false;
  logicallyComplete = false;
  /** The peer was told that the buffer is gone. */
  isVoid = false;
  /** The user wants the buffer back: what the request ends with once nothing reads it any more. */
  givenUp: MultirailError | undefined = undefined;
  /** Why it has not ended yet, in words. */
  givingBack = '';
  /** Bytes of the copy. */
  copiedBytes = 0;
  /** Its copy in the log, from which it is sent. */
  logged: LoggedMessage | undefined = undefined;
  /** What the peer is known to have, for sends that can be given up. */
  readonly delivered: RangeSet | undefined;

  constructor(
    peer: PmlPeer,
    ctx: number,
    tag: number,
    seq: number,
    buffer: Iov,
    protocol: 'RNDV' | 'RGET',
    sync: boolean,
    canGiveUp = false,
  ) {
    this.peer = peer;
    this.ctx = ctx;
    this.tag = tag;
    this.seq = seq;
    this.buffer = buffer;
    this.bytes = buffer.bytes;
    this.isContiguous = buffer.isContiguous;
    this.protocol = protocol;
    this.sync = sync;
    this.delivered = canGiveUp ? new RangeSet() : undefined;
  }

  /** Views of the bytes [from, to) of the message. */
  slice(from: number, to: number): Uint8Array[] {
    return this.buffer.slice(from - this.bufferFrom, to - this.bufferFrom);
  }

  /** From here on the bytes from `from` on are read there; those before it are with the peer. */
  readFrom(memory: Iov, from: number): void {
    this.buffer = memory;
    this.bufferFrom = from;
  }

  get traceId(): string {
    return `${this.slot}.${this.generation} ${this.protocol} to ${this.peer.rank} ctx ${this.ctx} tag ${this.tag} seq ${this.seq}`;
  }
}

/** A sink of the PML: where one FRAG is being written. */
export interface FragSink extends Sink {
  message: RecvMessage | undefined;
  from: number;
  to: number;
  epoch: number;
  rail: number;
  /** The sender says that nothing more will come. */
  isVoid: boolean;
}

/** Receiver's side of one rendezvous message, from its match on. */
export class RecvMessage implements Linked<RecvMessage> {
  /** As of a SendMessage: in the order of the matches. */
  order = 0;
  listPrev: RecvMessage | undefined = undefined;
  listNext: RecvMessage | undefined = undefined;
  listed = false;
  state: RecvState = 'RECEIVING';
  readonly peer: PmlPeer;
  readonly ctx: number;
  readonly tag: number;
  readonly seq: number;
  readonly messageBytes: number;
  readonly takeBytes: number;
  readonly senderSlot: number;
  readonly senderGeneration: number;
  readonly contiguousSender: boolean;
  request: RecvRequest | undefined;
  readonly buffer: Iov;
  slot = 0;
  generation = 0;
  epoch = 0;
  /** A NOTIFY was taken: the answer is a RESTARTACK (the epoch alone would not tell after 2^32 of them). */
  restarted = false;
  readonly received = new RangeSet();
  /** Where it is logged: so many bytes from the beginning on are in its digest, and that. */
  digestedBytes = 0;
  digest = 0;
  readonly openSinks = new Set<FragSink>();
  /** ACK of epoch 0, RESTARTACK of later ones. */
  answerOnRail = false;
  answerDelivered = false;
  readonly offers = new WindowOffers();
  // --- RGET
  remoteWindows: RemoteWindow[] = [];
  readonly toRead = new RangeSet();
  getsUnderWay = 0;
  readFailed = false;
  recvErrOnRail = false;
  recvErrDelivered = false;
  finOnRail = false;
  finDelivered = false;
  /** The sender is told the end by FIN (RGET), not by the count of its FRAGs. */
  endsByFin: boolean;
  controlQueued = false;
  streamQueued = false;

  constructor(envelope: Envelope, request: RecvRequest, reads: boolean) {
    this.peer = envelope.peer;
    this.ctx = envelope.ctx;
    this.tag = envelope.tag;
    this.seq = envelope.seq;
    this.messageBytes = envelope.messageBytes;
    // A receive that has failed already takes nothing, and the sender is free.
    this.takeBytes = request.error === undefined ? Math.min(envelope.messageBytes, request.buffer.bytes) : 0;
    this.senderSlot = envelope.senderSlot;
    this.senderGeneration = envelope.senderGeneration;
    this.contiguousSender = (envelope.flags & FLAG.CONTIG) !== 0;
    this.request = request;
    this.buffer = request.buffer;
    this.endsByFin = reads;
    this.state = reads ? 'READING' : 'RECEIVING';
  }

  /** Views of the bytes [from, to) of the buffer. */
  slice(from: number, to: number): Uint8Array[] {
    return this.buffer.slice(from, to);
  }

  get traceId(): string {
    return `${this.slot}.${this.generation} from ${this.peer.rank} ctx ${this.ctx} tag ${this.tag} seq ${this.seq}`;
  }
}

/** Messages from one peer on one context. */
export interface FlowIn {
  expectedSeq: number;
  /** Envelopes that overtook a lower number. */
  readonly early: Map<number, Envelope>;
  /** Higher numbers that do not come: the process whose place this one has taken had received them (succession.ts). */
  taken: Set<number> | undefined;
  /** Lower numbers whose data come again, by the successor of a peer that died (succession.ts). */
  holes: Map<number, Hole> | undefined;
  /** Of what is logged; undefined: nothing has come. */
  digests: DigestTable | undefined;
}

/** A message of which the number is taken and the data are not here. */
export interface Hole {
  /** It waits for a receive, in its place. */
  envelope: Envelope | undefined;
  /** It has matched that one. */
  request: RecvRequest | undefined;
}

export class PmlPeer extends FlowTable<FlowIn> {
  readonly rank: number;
  readonly bml: BmlPeer;

  // --- credit. Cumulative byte counts since the start; limits are absolute, a newer value replaces an older one.
  /** What the peer allows us to first-send, and what we have reserved of it. */
  creditLimit: number;
  creditUsed = WIDE_ZERO;
  /**
   * Charges of messages that the peer is not known to have received, oldest first; those of rendezvous messages are negative. Credit comes
   * back for what was received, in about that order.
   */
  private readonly charges = new Deque<number>();
  private readonly initialCredit: number;
  /** Charges of those that were. */
  private receivedCharges = WIDE_ZERO;
  /** Charges of the peer's messages that we disposed of, and those we hold. */
  releasedBytes = WIDE_ZERO;
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
  /** Frames on rails whose message is over, or has another one there: if they come, the peer drops them by their number. */
  copiesOnRail = 0;

  /** Set once, and never cleared. */
  failure: MultirailError | undefined = undefined;
  saidBye = false;
  /** Its part in a succession (tap.ts); undefined while it is simply there. */
  channel: Channel | undefined = undefined;
  /** What a call to a peer that said BYE ends with. */
  left: MultirailError | undefined = undefined;
  /** We said BYE: nothing more is sent. */
  leaving = false;
  dirty = false;

  constructor(rank: number, bml: BmlPeer, initialCreditToUs: number, initialCreditToPeer: number) {
    super();
    this.rank = rank;
    this.bml = bml;
    this.creditLimit = initialCreditToUs + WIDE_ZERO;
    this.initialCredit = initialCreditToUs;
    this.creditTold = initialCreditToPeer + WIDE_ZERO;
    this.creditTelling = initialCreditToPeer + WIDE_ZERO;
  }

  protected newFlowIn(): FlowIn {
    return { expectedSeq: 0, early: new Map(), taken: undefined, holes: undefined, digests: undefined };
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

  /** Something waits for a rail with room. */
  get hasQueued(): boolean {
    return this.envelopes.size > 0 || this.streams.size > 0 || this.resends.size > 0 || this.control.size > 0;
  }

  /** Nothing more comes from this peer, and nothing goes there: it failed, or it left. */
  get ended(): MultirailError | undefined {
    return this.failure ?? this.left;
  }

  /** Nothing is sent to it any more: what is left in the queues would keep its buffers alive. */
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
}

/** What a frame on a rail stands for, so that its completion finds its way. */
export type FrameUse =
  | { kind: 'eager'; message: EagerMessage }
  | { kind: 'copy'; message: EagerMessage }
  | { kind: 'envelope'; message: SendMessage }
  | { kind: 'frag'; message: SendMessage; epoch: number; from: number; to: number }
  | { kind: 'notify'; message: SendMessage; epoch: number }
  | { kind: 'fin-to-receiver'; message: SendMessage; epoch: number; fin: OwedFin }
  | { kind: 'answer'; message: RecvMessage; epoch: number }
  | { kind: 'put'; message: RecvMessage; epoch: number; window: LocalWindow }
  | { kind: 'recverr'; message: RecvMessage; epoch: number }
  | { kind: 'fin-to-sender'; message: RecvMessage; epoch: number }
  | { kind: 'restart-nack'; senderSlot: number; senderGeneration: number; epoch: number }
  | { kind: 'raildown'; rail: number; epoch: number }
  | { kind: 'credit' };

/** A frame of the PML. */
export class PmlFrame extends FrameMemory {
  use: FrameUse | undefined = undefined;
  peer: PmlPeer | undefined = undefined;
  /** The credit limit that this frame carries. */
  creditLimit = WIDE_ZERO;
  /** Number of the rail that took it last. */
  rail = 0;
  /** Memory of a longer retained copy, from the pool of the core. */
  retained: Uint8Array | undefined = undefined;
  /** `use` of an eager message, kept with the frame, because making one for each message would cost an allocation. */
  readonly eagerUse: { kind: 'eager'; message: EagerMessage } = { kind: 'eager', message: undefined as unknown as EagerMessage };
}

/** A put or get of the PML. */
export interface PmlOneSidedOp extends OneSidedOp {
  peer: PmlPeer;
  epoch: number;
  from: number;
  to: number;
  window: RemoteWindow;
  message: SendMessage | RecvMessage;
}
