// The message layer of a process that is one of two replicas of a rank, in place of the PML under its communicators. What the two have in
// common: requests and messages are numbered in the order in which the program begins them, which is the same at both as long as both do the
// same; no request ends where it is begun, but in *bursts*, whose order the lead decides; and the two talk over the pair channel, which is a
// context of its own between them. lead.ts and shadow.ts have the rest. Pure: somebody else calls turn() when the program rests or waits.
import { MultirailError } from '../../errors.ts';
import type { MessageLayer } from '../../pml/message-layer.ts';
import type { Pml } from '../../pml/pml.ts';
import type { Envelope, RecvRequest, SendRequest } from '../../pml/records.ts';
import { Iov } from '../../util/iov.ts';
import { type CompareMode, type Digest, NOBODY } from './digest.ts';
import { movePair, type PairState } from './states.ts';
import { BATCH_BYTES_MAX, BatchWriter, decodeBatch, type Ended, type PairRecord } from './wire.ts';

/** How far the lead runs ahead of its shadow, in bytes of what it has received. */
export const AHEAD_BYTES_MAX = 16 * 1024 * 1024;
/** What a record is counted as besides its bytes. */
export const RECORD_BYTES = 64;

export interface PairOptions {
  /** The rank that this process is a replica of. */
  readonly rank: number;
  /** Number of this process, and of the other replica's. */
  readonly self: number;
  readonly twin: number;
  /** Two contexts of the pair channel: batches, and bytes that follow them. */
  readonly ctx: number;
  readonly bulkCtx: number;
  readonly compare: CompareMode;
  readonly digest: Digest;
  readonly aheadBytesMax?: number;
  /** There is something to do: turn() or flush() at the next opportunity. */
  wake(): void;
  /** The replicas differ: told once. */
  onDiverged(error: MultirailError): void;
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

/** What a look has found: values of its own, or nothing. */
export type Found = readonly number[];
export const NOTHING: Found = [];

export abstract class PairedPml implements MessageLayer {
  abstract readonly isLead: boolean;
  readonly options: PairOptions;
  readonly counters = { messages: 0, compared: 0, forwarded: 0, forwardedBytes: 0, bursts: 0, looks: 0, batches: 0 };
  protected readonly pml: Pml;
  protected state: PairState = 'PAIRED';
  protected requestCount = 0;
  protected messageCount = 0;
  protected callCount = 0;
  protected readonly open = new Map<number, Own>();
  protected readonly writer = new BatchWriter();
  private readonly memory = new Uint8Array(BATCH_BYTES_MAX);
  /** What the other replica has come to its end with. */
  protected otherFinished: { readonly messages: number; readonly requests: number } | undefined;
  protected hasFinished = false;
  /** Requests that the other replica is known to have begun. */
  protected otherRequests = 0;

  constructor(pml: Pml, options: PairOptions) {
    this.pml = pml;
    this.options = options;
  }

  /** Listens to the other replica. Once the addresses are known. */
  start(): void {
    for (;;) {
      const request = this.pml.irecvInBackground(this.options.twin, this.options.ctx, 0, new Iov([this.memory]), (ended) => {
        if (this.takeBatch(ended)) this.start();
      });
      if (!request.done || !this.takeBatch(request)) return;
    }
  }

  /** False: nothing more comes. */
  private takeBatch({ error, receivedBytes }: RecvRequest): boolean {
    if (error !== undefined) return false;
    for (const record of decodeBatch(this.memory.subarray(0, receivedBytes))) {
      if (record.kind === 'ASK') {
        this.say().here(this.requestCount);
        this.options.wake();
      } else if (record.kind === 'HERE') this.otherRequests = Math.max(this.otherRequests, record.requests);
      else this.take(record);
    }
    this.taken();
    return true;
  }

  protected abstract take(record: PairRecord): void;
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
    const { twin, bulkCtx } = this.options;
    this.pml.isend(twin, bulkCtx, 0, new Iov([bytes]));
  }

  /** What was said goes to the other replica. True: there was something. */
  flush(): boolean {
    if (this.writer.isEmpty) return false;
    const { twin, ctx } = this.options;
    if (this.isAlone) {
      this.writer.take();
      return false;
    }
    this.counters.batches++;
    this.pml.isend(twin, ctx, 0, new Iov([this.writer.take()]));
    this.options.wake();
    return true;
  }

  /** Receives bytes that belong to a record. `whenHere`: also when they are here at once. */
  protected receiveBulk(buffer: Iov, whenHere: () => void): void {
    const { twin, bulkCtx } = this.options;
    const request = this.pml.irecvInBackground(twin, bulkCtx, 0, buffer, whenHere);
    if (request.done) whenHere();
    // Its sender may be waiting for the word that it is posted, and nobody else has the engine say it.
    else this.options.wake();
  }

  // ---------------------------------------------------------------- requests

  protected begin(request: Own['request'], pattern: number, takes = false): Own {
    const own: Own = { number: ++this.requestCount, pattern, request, takes };
    this.open.set(own.number, own);
    return own;
  }

  /** Messages that were begun and have not been given to the message layer; a shadow gives it none. */
  get unvouched(): number {
    return 0;
  }

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

  /** A result: it is compared like a message, and goes to nobody. */
  validate(buffer: Iov): SendRequest {
    return this.isend(NOBODY, 0, 0, buffer);
  }

  /** These are in turn() and waited for; looks without waiting are not asked of a layer that has to obey. */
  iprobe(): Envelope | undefined {
    throw new MultirailError('ERR_INTERNAL', 'a pair of replicas looks by look()');
  }

  improbe(): Envelope | undefined {
    return this.iprobe();
  }

  peer(rank: number): { readonly ended: MultirailError | undefined } {
    return this.isLead ? this.pml.peer(rank) : { ended: undefined };
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
    const { ctx: own, bulkCtx } = this.options;
    this.pml.admits = (ctx) => (ctx === own || ctx === bulkCtx ? !this.isAlone : this.isLead && admits(ctx));
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

  /** The other replica is gone, and this one goes on without it. */
  get isAlone(): boolean {
    return false;
  }

  /** What is compared in this state leaves. */
  protected get isSound(): boolean {
    return !this.isDiverged;
  }

  /** The replicas differ, and it is known how. */
  diverge(what: string): void {
    if (this.state === 'DIVERGED') return;
    this.state = movePair(this.state, 'DIVERGED');
    const { rank, self, twin } = this.options;
    const [lead, shadow] = this.isLead ? [self, twin] : [twin, self];
    this.options.onDiverged(
      new MultirailError(
        'ERR_DIVERGED',
        `the replicas of rank ${rank} (processes ${lead} and ${shadow}) differ: ${what}; the last event in common is ${this.lastCommon}`,
        { rank },
      ),
    );
  }

  protected abstract readonly lastCommon: string;

  /** The other replica is waited for, to come to this; undefined: it is not, or has come. */
  get due(): string | undefined {
    if (!this.isSound || this.isAlone || this.state === 'FINISHED') return undefined;
    if (this.hasFinished && this.otherFinished === undefined) return 'the end of its program';
    if (this.open.size === 0 || this.otherRequests >= this.requestCount) return undefined;
    return `its call ${this.requestCount}`;
  }

  /** Calls that the program has begun here, and those that it is known to have begun at the other replica. */
  get calls(): { readonly own: number; readonly twin: number } {
    return { own: this.requestCount, twin: this.otherRequests };
  }

  /** Asks the other replica how far it is. */
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
