// The message layer of a process that is one of two or three replicas of a rank, in place of the PML under its communicators. What they have in
// common: requests and messages are numbered in the order in which the program begins them, which is the same at both as long as both do the
// same; no request ends where it is begun, but in *bursts*, whose order the lead decides; and lead and shadow talk over the pair channel, which is a
// context of its own between them (link.ts). lead.ts and shadow.ts have the rest. Pure: somebody else calls turn() when the program rests or waits.
import { MultirailError } from '../../errors.ts';
import type { MessageLayer } from '../../pml/message-layer.ts';
import type { PendingRequest } from '../../pml/pending.ts';
import type { Pml } from '../../pml/pml.ts';
import type { Envelope, RecvRequest, SendRequest } from '../../pml/records.ts';
import { Iov } from '../../util/iov.ts';
import { type CompareMode, type Digest, NOBODY } from './digest.ts';
import { Link, type Twin } from './link.ts';
import { movePair, type PairState } from './states.ts';
import type { Takeovers } from './takeovers.ts';
import { BatchWriter, decodeBatch, type Ended, type PairRecord } from './wire.ts';

/** How far the lead runs ahead of its shadow, in bytes of what it has received. */
export const AHEAD_BYTES_MAX = 16 * 1024 * 1024;
/** What a record is counted as besides its bytes. */
export const RECORD_BYTES = 64;

export interface PairOptions {
  /** The rank that this process is a replica of. */
  readonly rank: number;
  /** Number of this process, and what it is called in sentences. */
  readonly self: number;
  readonly name: string;
  /** The replicas that it talks to: of a lead its one or two shadows, of a shadow its lead. */
  readonly twins: readonly Twin[];
  /** There are three of the rank: a shadow that differs leaves the job, and does not end it. */
  readonly isVoting: boolean;
  readonly compare: CompareMode;
  readonly digest: Digest;
  readonly aheadBytesMax?: number;
  /** A shadow takes the place of its lead when that dies; undefined: the job ends. */
  readonly takeovers?: Takeovers | undefined;
  /** There is something to do: turn() or flush() at the next opportunity. */
  wake(): void;
  /** What was given to the message layer leaves now, as far as it can: the program may compute next. Not within a turn of the engine. */
  push(): void;
  /** The replicas differ, and no majority is right: told once. */
  onDiverged(error: MultirailError): void;
  /** At a shadow of two: it is not in the majority, and is to end. Told once. */
  onLeave?(error: MultirailError): void;
  /** At the lead of two shadows: two of three have agreed, and that process has not. Told once of each. */
  onOutvoted?(number: number, text: string): void;
  /** At the lead of two shadows: that one goes its own way, and was told to leave. */
  onDropped?(number: number, text: string): void;
  /** That other replica has said where its clock can be asked. */
  onClock?(number: number, address: string): void;
  /** Faults are injected: before the message of that number is digested. */
  readonly beforeSend?: ((message: number, buffer: Iov) => void) | undefined;
}

/** A request that no message layer knows: a probe that waits, a value that the lead makes for both, a condition. */
export class Answer {
  readonly kind = 'answer';
  done = false;
  error: MultirailError | undefined;
  onDone: (() => void) | undefined;
  /** What a probe has found. */
  envelope: Envelope | undefined;
  /** What the lead has made. */
  bytes: Uint8Array | undefined;
}

/** A request of the program's, by its number. */
export interface Own {
  readonly number: number;
  readonly pattern: number;
  readonly request: SendRequest | RecvRequest | Answer;
  /** A probe takes the message out of the queue. */
  readonly takes: boolean;
}

/** A request that waits for another replica. */
export interface PairedWait extends PendingRequest {
  readonly request: SendRequest | RecvRequest;
}

/** What another replica is waited for. */
export interface Due {
  readonly what: string;
  /** It has come to it when its program has begun so many calls, infinitely many at its end; undefined: calls do not tell. */
  readonly calls: number | undefined;
}

/** What a look has found: values of its own, or nothing. */
export type Found = readonly number[];
export const NOTHING: Found = [];

export abstract class PairedPml implements MessageLayer {
  abstract readonly isLead: boolean;
  readonly options: PairOptions;
  readonly counters = {
    ...{ messages: 0, compared: 0, forwarded: 0, forwardedBytes: 0, bursts: 0, looks: 0, batches: 0 },
    ...{ outvoted: 0, corrected: 0, healed: 0 },
  };
  protected readonly pml: Pml;
  protected state: PairState = 'PAIRED';
  protected requestCount = 0;
  protected messageCount = 0;
  protected callCount = 0;
  protected readonly open = new Map<number, Own>();
  protected readonly writer = new BatchWriter();
  /** To all replicas that this one talks to, also to those that are lost. */
  readonly links: readonly Link[];
  /** Those that are not. */
  protected living: readonly Link[];
  protected hasFinished = false;
  /** Which contexts of the program messages may come for. */
  protected programAdmits: (ctx: number) => boolean = () => false;
  /** Requests of results that were not the same here as at the two other replicas, whose bytes they have now. */
  private readonly healed = new WeakSet<SendRequest>();
  /** Where others read how many calls the program has begun; infinite at its end. */
  private callsSeen: Float64Array | undefined = undefined;

  constructor(pml: Pml, options: PairOptions) {
    this.pml = pml;
    this.options = options;
    this.links = options.twins.map((twin) => new Link(twin));
    this.living = this.links;
  }

  /** Listens to the other replicas. Once the addresses are known. */
  start(): void {
    for (const link of this.links) this.listen(link);
  }

  private listen(link: Link): void {
    const { number, ctx } = link.twin;
    for (;;) {
      const request = this.pml.irecvInBackground(number, ctx, 0, new Iov([link.memory]), (ended) => {
        if (this.takeBatch(link, ended)) this.listen(link);
      });
      if (!request.done || !this.takeBatch(link, request)) return;
    }
  }

  /** False: nothing more comes. */
  private takeBatch(link: Link, { error, receivedBytes }: RecvRequest): boolean {
    if (error !== undefined) return false;
    for (const record of decodeBatch(link.memory.subarray(0, receivedBytes))) {
      if (record.kind === 'ASK') {
        this.say().here(this.requestCount);
        this.options.wake();
      } else if (record.kind === 'HERE') link.requests = Math.max(link.requests, record.requests);
      else if (record.kind === 'CLOCK') this.options.onClock?.(link.twin.number, record.address);
      else this.take(record, link);
    }
    this.taken();
    return true;
  }

  protected abstract take(record: PairRecord, link: Link): void;
  /** All records of a batch were taken. */
  protected abstract taken(): void;

  // ---------------------------------------------------------------- the pair channel

  /** Where the next record goes. */
  protected say(bytes = 0): BatchWriter {
    if (this.writer.isFullFor(bytes)) this.flush();
    return this.writer;
  }

  /** Bytes that belong to the record that was said last; they are copied by the caller. */
  protected sayBulk(bytes: Uint8Array): void {
    for (const link of this.living) this.sayTo(link, link.twin.bulkCtx, bytes);
  }

  private sayTo({ twin, saying }: Link, ctx: number, bytes: Uint8Array): void {
    const request = this.pml.isend(twin.number, ctx, 0, new Iov([bytes]));
    if (request.done) return;
    saying.add(request);
    request.onDone = () => {
      saying.delete(request);
      this.options.wake();
    };
  }

  /** Something that was said has not left: it would not, while the program computes. Who has come to its end takes nothing any more. */
  protected get isSaying(): boolean {
    return this.living.some(({ saying, finished }) => saying.size > 0 && finished === undefined);
  }

  /** What was said goes to the other replicas, the same to all. True: there was something. */
  flush(): boolean {
    if (this.writer.isEmpty) return false;
    const batch = this.writer.take();
    if (this.living.length === 0) return false;
    for (const link of this.living) {
      this.counters.batches++;
      this.sayTo(link, link.twin.ctx, batch);
    }
    this.options.wake();
    return true;
  }

  /** Receives bytes that belong to a record. `whenHere`: also when they are here at once; not when their sender has died before. */
  protected receiveBulk({ twin }: Link, buffer: Iov, whenHere: () => void): void {
    const ended = ({ error }: RecvRequest): void => {
      if (error === undefined) whenHere();
    };
    const request = this.pml.irecvInBackground(twin.number, twin.bulkCtx, 0, buffer, ended);
    if (request.done) ended(request);
    // Its sender may be waiting for the word that it is posted, and nobody else has the engine say it.
    else this.options.wake();
  }

  // ---------------------------------------------------------------- requests

  protected begin(request: Own['request'], pattern: number, takes = false): Own {
    if (request.kind !== 'answer') request.openedAs = this.pml.nextOpened();
    const own: Own = { number: ++this.requestCount, pattern, request, takes };
    if (this.callsSeen !== undefined) this.callsSeen[0] = this.requestCount;
    this.open.set(own.number, own);
    return own;
  }

  /** Messages that were begun and have not been given to the message layer; a shadow gives it none. */
  get unvouched(): number {
    return 0;
  }

  /** Requests of the program that wait for another replica, and that the PML knows nothing of. For people. */
  abstract waitsForReplicas(): PairedWait[];

  /** Requests of the program that have not ended. */
  get openCount(): number {
    return this.open.size;
  }

  abstract isend(rank: number, ctx: number, tag: number, buffer: Iov, sync?: boolean, signature?: number, canGiveUp?: boolean): SendRequest;

  /** Nothing leaves before it was compared. */
  sendEager(): boolean {
    return false;
  }

  abstract irecv(source: number, ctx: number, tag: number, buffer: Iov): RecvRequest;

  irecvInBackground(source: number, ctx: number, tag: number, buffer: Iov, onDone: (request: RecvRequest) => void): RecvRequest {
    const request = this.irecv(source, ctx, tag, buffer);
    request.isInBackground = true;
    request.onDone = () => onDone(request);
    return request;
  }

  abstract imrecv(envelope: Envelope, buffer: Iov): RecvRequest;
  abstract cancel(request: RecvRequest): boolean;
  abstract expire(request: RecvRequest, error: MultirailError): void;
  abstract giveUp(request: SendRequest, error: MultirailError): void;

  /** A probe that waits: it ends with the envelope. `takes`: only imrecv() can receive the message then. */
  abstract probe(source: number, ctx: number, tag: number, takes: boolean): Answer;
  /** As expire(), of a probe. */
  abstract expireAnswer(answer: Answer, error: MultirailError): void;
  /** A condition that the lead looks at, each time after the rails were polled. */
  abstract when(test: () => boolean): Answer;

  /** A value that the lead makes for both; it says so by settleValue(). */
  value(): { readonly number: number; readonly answer: Answer } {
    const answer = new Answer();
    return { number: this.begin(answer, patternOf('value', 0, 0, 0, 0)).number, answer };
  }

  abstract settleValue(number: number, value: Uint8Array | MultirailError): void;

  /** A result: it is compared like a message, and goes to nobody. Of three replicas one that differs has the bytes of the others behind it. */
  validate(buffer: Iov): SendRequest {
    return this.isend(NOBODY, 0, 0, buffer);
  }

  /** That result was another one here than at the two other replicas. */
  wasHealed(request: SendRequest): boolean {
    return this.healed.has(request);
  }

  protected heal(request: SendRequest, buffer: Iov, bytes: Uint8Array): void {
    buffer.copyIn(0, bytes);
    this.healed.add(request);
    this.counters.healed++;
  }

  /** These are in turn() and waited for; looks without waiting are not asked of a layer that has to obey. */
  iprobe(): Envelope | undefined {
    throw new MultirailError('ERR_INTERNAL', 'a pair of replicas looks by look()');
  }

  improbe(): Envelope | undefined {
    return this.iprobe();
  }

  peer(rank: number): { readonly ended: MultirailError | undefined } {
    return this.isLead ? this.pml.peer(this.numberOf(rank)) : { ended: undefined };
  }

  /** Number of the process that is the lead of that rank now. The program knows the one that was it at the start, by the rank. */
  protected numberOf(rank: number): number {
    return this.options.takeovers?.numberOf(rank) ?? rank;
  }

  /** Rank that a process is a replica of, for the program. */
  protected rankOf(number: number): number {
    return this.options.takeovers?.rankOf(number) ?? number;
  }

  abstract endPosted(error: MultirailError): void;
  abstract endPostedToAny(ctx: number, error: MultirailError, isMeant?: (request: RecvRequest) => boolean): void;
  abstract revokeContext(ctx: number, error: MultirailError): void;
  abstract freeContext(ctx: number, error?: MultirailError): void;
  abstract releaseContext(ctx: number, copies?: boolean): void;
  abstract isContextQuiet(first: number, last: number, postedMax: number): boolean;
  abstract set onUnexpected(onUnexpected: (envelope: Envelope) => void);

  /** Of what may come to the program; the pair channel is open as long as there is a pair. */
  set admits(admits: (ctx: number) => boolean) {
    this.programAdmits = admits;
    const { takeovers } = this.options;
    const links = new Map(this.links.flatMap((link) => [link.twin.ctx, link.twin.bulkCtx].map((ctx) => [ctx, link])));
    this.pml.admits = (ctx) => {
      const link = links.get(ctx);
      if (link === undefined) return (this.isLead && admits(ctx)) || ctx === takeovers?.options.ctx;
      // What one says that was told to leave is dropped as on any context that was freed: it lives, and has its credit back.
      return !link.isLost || this.options.isVoting;
    };
  }

  /** All that is sent is, also within this process. */
  comparesBytes(): boolean {
    return true;
  }

  // ---------------------------------------------------------------- bursts and calls

  /** The program begins to wait without its event loop, or looks: returns the number of this call, which turn() takes. */
  beginCall(): number {
    return ++this.callCount;
  }

  /**
   * Ends what is to end now, all of it before anything else of the program runs. `call`: the blocking call that the program is in; 0: it
   * is in none, and nothing of it is about to run. True: something has ended.
   */
  abstract turn(call: number): boolean;

  protected fill(own: Own, ended: Ended, envelope: Envelope | undefined): void {
    const { request } = own;
    const { error } = ended;
    this.open.delete(own.number);
    if (error !== undefined) {
      const { text, peer } = error;
      const details = { rank: this.options.rank, ...(peer === undefined ? {} : { peer }) };
      request.error = new MultirailError(error.code as MultirailError['code'], text, details);
    }
    if (request.kind === 'recv') {
      request.matchedSource = ended.source;
      request.matchedTag = ended.tag;
      request.matchedSignature = ended.signature;
      request.receivedBytes = ended.bytes;
      request.cancelled = ended.cancelled;
      request.matched = ended.source >= 0;
    } else if (request.kind === 'answer') {
      request.envelope = envelope;
      request.bytes = ended.data;
    }
    request.done = true;
  }

  protected tell({ request }: Own): void {
    if (request.kind !== 'answer') request.trace?.requestEnded(request);
    request.onDone?.();
  }

  /** What a burst is counted as. */
  protected sizeOf(ended: readonly Ended[]): number {
    let sum = 0;
    for (const { bytes } of ended) sum += RECORD_BYTES + bytes;
    return sum;
  }

  // ---------------------------------------------------------------- the end

  /** The program has come to its end. */
  finish(): void {
    if (this.hasFinished) return;
    this.hasFinished = true;
    if (this.callsSeen !== undefined) this.callsSeen[0] = Number.POSITIVE_INFINITY;
    if (this.state === 'PAIRED') this.state = movePair(this.state, 'FINISHING');
    if (this.isAlone) return this.lookAtEnd();
    this.say().finished(this.messageCount, this.requestCount);
    this.flush();
    this.lookAtEnd();
  }

  protected abstract lookAtEnd(): void;

  get isFinished(): boolean {
    return this.state === 'FINISHED';
  }

  get isDiverged(): boolean {
    return this.state === 'DIVERGED' || this.state === 'DIFFERING';
  }

  /** The other replicas are gone, and this one goes on without them. */
  get isAlone(): boolean {
    return this.living.length === 0;
  }

  /** So many of the replicas that it compares with are in the job. */
  get livingCount(): number {
    return this.living.length;
  }

  /** What is compared in this state leaves. */
  protected get isSound(): boolean {
    return !this.isDiverged;
  }

  /** The replicas differ, and it is known how. */
  diverge(what: string): void {
    if (this.state === 'DIVERGED') return;
    this.state = movePair(this.state, 'DIVERGED');
    const { rank } = this.options;
    const text = `the replicas of rank ${rank} (processes ${this.processes}) differ: ${what}; the last event in common is ${this.lastCommon}`;
    this.options.onDiverged(new MultirailError('ERR_DIVERGED', text, { rank }));
  }

  /** For people: this process and those that it compares with, the lead first. */
  private get processes(): string {
    const numbers = [this.options.self, ...this.living.map(({ twin }) => twin.number)].sort((a, b) => a - b);
    return numbers.length < 3 ? numbers.join(' and ') : `${numbers.slice(0, -1).join(', ')} and ${numbers.at(-1)}`;
  }

  /** That replica is waited for, and does not come. */
  abstract late(link: Link, what: string): void;

  protected abstract readonly lastCommon: string;

  /** That replica is waited for, to come to this; undefined: it is not, or has come. */
  dueOf(link: Link): Due | undefined {
    const { requestCount } = this;
    if (!this.isSound || link.isLost || this.state === 'FINISHED') return undefined;
    if (link.asked !== undefined) return { what: `what it would have sent as message ${link.asked}`, calls: undefined };
    if (this.hasFinished && link.finished === undefined) return { what: 'the end of its program', calls: Number.POSITIVE_INFINITY };
    if (this.open.size === 0 || link.requests >= requestCount) return undefined;
    return { what: `its call ${requestCount}`, calls: requestCount };
  }

  /** As dueOf(), of any other replica. */
  get due(): Due | undefined {
    for (const link of this.living) {
      const due = this.dueOf(link);
      if (due !== undefined) return due;
    }
    return undefined;
  }

  /** Calls that the program has begun here, and those that it is known to have begun at the other replica. */
  callsOf(link: Link): { readonly own: number; readonly twin: number } {
    return { own: this.requestCount, twin: link.requests };
  }

  /** A replica has not come as far as this one, or is not known to have. */
  get isAhead(): boolean {
    return this.living.some(({ requests }) => requests < this.requestCount);
  }

  /** Tells the other replicas where this process's clock can be asked, and has `calls` hold how far its program is. */
  showClock(address: string, calls: Float64Array): void {
    this.callsSeen = calls;
    calls[0] = this.hasFinished ? Number.POSITIVE_INFINITY : this.requestCount;
    this.say().clock(address);
    this.options.wake();
  }

  /** Asks the other replicas how far they are. */
  ask(): void {
    if (!this.isSound || this.isAlone || this.state === 'FINISHED') return;
    this.say().ask();
    this.options.wake();
  }
}

/** What a receive asks for, as 32 bits: both replicas must ask for the same. */
export function patternOf(
  kind: 'recv' | 'matched' | 'probe' | 'mprobe' | 'value' | 'condition' | 'send',
  ctx: number,
  source: number,
  tag: number,
  bytes: number,
): number {
  let hash = 0x811c9dc5;
  const mix = (value: number): void => {
    hash = Math.imul(hash ^ (value | 0), 0x01000193);
    hash ^= hash >>> 15;
  };
  mix(kind.length * 256 + kind.charCodeAt(0));
  mix(ctx);
  mix(source);
  mix(tag);
  mix(bytes);
  mix(Math.floor(bytes / 2 ** 32));
  return hash >>> 0;
}
