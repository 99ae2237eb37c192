// A shadow, the one of a pair or one of two: nothing of it goes anywhere but to its lead. It says what it would send, and is told what has ended, in the order and
// at the places of the program at which it ended for the lead. Pure.
import { MultirailError } from '../../errors.ts';
import { PACKET } from '../../pml/hdr.ts';
import type { Pml } from '../../pml/pml.ts';
import type { Envelope, LoggedMessage } from '../../pml/records.ts';
import { RecvRequest, SendRequest } from '../../pml/records.ts';
import { assert } from '../../util/assert.ts';
import { Deque } from '../../util/deque.ts';
import { Iov } from '../../util/iov.ts';
import { bytesOf, describeWord, firstDifference, NOBODY, type Word } from './digest.ts';
import type { Link } from './link.ts';
import {
  AHEAD_BYTES_MAX,
  Answer,
  type Found,
  type Own,
  PairedPml,
  type PairedWait,
  type PairOptions,
  patternOf,
  RECORD_BYTES,
} from './paired-pml.ts';
import { movePair } from './states.ts';
import { ALL, dropTaken, ShadowStreams } from './streams.ts';
import { OVER_MAX } from './takeovers.ts';
import type { Ended, PairRecord } from './wire.ts';

interface Burst {
  readonly kind: 'burst';
  readonly call: number;
  readonly ended: Ended[];
  /** Those before it were looked at, and their bytes asked for. */
  prepared: number;
  /** Bytes that are asked for and not here. */
  pending: number;
  /** Bytes of values, by request. */
  readonly values: Map<number, Uint8Array>;
}

/** What the lead has done, in its order. */
type Told = Burst | { readonly kind: 'look'; count: number; readonly values: Found } | { readonly kind: 'over'; readonly call: number };

/** A message that the lead has not ended. */
interface Vouched {
  readonly word: Word;
  /** Of a synchronous one: its copy. */
  readonly logged: LoggedMessage | undefined;
  /** The program's memory; a copy, where its request has ended before the message could leave. */
  buffer: Iov;
}

/** What a shadow has begun and not ended, for the lead that it becomes. */
export interface Inheritance {
  readonly requests: number;
  readonly messages: number;
  readonly calls: number;
  readonly counters: PairedPml['counters'];
  readonly hasFinished: boolean;
  readonly admits: (ctx: number) => boolean;
  /** In their order. */
  readonly open: readonly OpenRequest[];
}

/** A request that has not ended, and what is to be begun again of it. */
export type OpenRequest = { readonly own: Own; readonly expired: MultirailError | undefined } & (
  | { readonly kind: 'recv'; readonly request: RecvRequest; readonly envelope: Envelope | undefined }
  | { readonly kind: 'send'; readonly request: SendRequest; readonly word: Word | undefined; readonly logged: LoggedMessage | undefined }
  | { readonly kind: 'probe'; readonly answer: Answer; readonly pattern: Pattern }
  | { readonly kind: 'condition'; readonly test: () => boolean }
  /** Whoever has asked for the value makes it. */
  | { readonly kind: 'value' }
);

/** What a probe looks for. */
interface Pattern {
  readonly source: number;
  readonly ctx: number;
  readonly tag: number;
}

/** Of a receive what a matched probe has taken. */
type Begun = { readonly envelope?: Envelope; readonly pattern?: Pattern; readonly test?: () => boolean };

export class ShadowPml extends PairedPml {
  readonly isLead = false;
  /** Undefined: it cannot take the place of its lead. */
  private readonly streams: ShadowStreams | undefined;
  /** What a lead has to know of requests beyond themselves to begin them again. */
  private readonly begun = new WeakMap<Own['request'], Begun>();
  /** Requests whose time has come, which the lead is to say. */
  private readonly expired = new WeakMap<Own['request'], MultirailError>();
  private readonly told = new Deque<Told>();
  private building: Ended[] = [];
  private readonly sends = new Map<number, Vouched>();
  /** Those of them whose requests have ended before they left. */
  private readonly kept = new Set<number>();
  private lastVouched: Pick<Word, 'message' | 'dest' | 'tag' | 'bytes'> | undefined;
  /** Messages up to this one have left. */
  private vouchedTo = 0;
  private consumed = 0;
  private consumedTold = 0;

  constructor(pml: Pml, options: PairOptions) {
    super(pml, options);
    this.streams = options.takeovers && new ShadowStreams(options.takeovers.options.log);
  }

  // ---------------------------------------------------------------- requests

  isend(rank: number, ctx: number, tag: number, buffer: Iov, sync = false, signature = 0): SendRequest {
    const request = new SendRequest(rank, tag, buffer.bytes);
    const own = this.begin(request, 0);
    const message = ++this.messageCount;
    this.counters.messages++;
    this.options.beforeSend?.(message, buffer);
    const digest = this.options.digest(buffer);
    const word: Word = { request: own.number, message, ctx, dest: rank, tag, bytes: buffer.bytes, sync, digest };
    this.sends.set(message, { word, buffer, logged: rank === NOBODY ? undefined : this.streams?.sent(word, buffer, signature) });
    if (this.say(digest.length).vouch(word)) this.sayBulk(digest);
    this.options.wake();
    return request;
  }

  irecv(source: number, ctx: number, tag: number, buffer: Iov): RecvRequest {
    const request = new RecvRequest(ctx, source, tag, buffer);
    this.begin(request, patternOf('recv', ctx, source, tag, buffer.bytes));
    return request;
  }

  imrecv(envelope: Envelope, buffer: Iov): RecvRequest {
    const request = new RecvRequest(envelope.ctx, envelope.source, envelope.tag, buffer);
    this.begin(request, patternOf('matched', envelope.ctx, envelope.source, envelope.tag, buffer.bytes));
    this.begun.set(request, { envelope });
    return request;
  }

  probe(source: number, ctx: number, tag: number, takes: boolean): Answer {
    const answer = new Answer();
    this.begin(answer, patternOf(takes ? 'mprobe' : 'probe', ctx, source, tag, 0), takes);
    this.begun.set(answer, { pattern: { source, ctx, tag } });
    return answer;
  }

  when(test: () => boolean): Answer {
    const answer = new Answer();
    this.begin(answer, patternOf('condition', 0, 0, 0, 0));
    this.begun.set(answer, { test });
    return answer;
  }

  /** Only the lead makes values. */
  settleValue(): void {}

  /** Timers and signals are those of the lead. This process has only to know that their time has come if it is the lead itself. */
  giveUp(request: SendRequest, error: MultirailError): void {
    this.noteExpired(request, error);
  }

  expire(request: RecvRequest, error: MultirailError): void {
    this.noteExpired(request, error);
  }

  expireAnswer(answer: Answer, error: MultirailError): void {
    this.noteExpired(answer, error);
  }

  private noteExpired(request: Own['request'], error: MultirailError): void {
    if (!request.done) this.expired.set(request, error);
  }

  cancel(): boolean {
    throw new Error('a shadow cancels by look()');
  }

  /** The lead has cancelled it. */
  cancelled(request: RecvRequest): void {
    for (const own of this.open.values()) {
      if (own.request !== request) continue;
      this.open.delete(own.number);
      request.cancelled = true;
      request.done = true;
      return this.tell(own);
    }
  }

  waitsForReplicas(): PairedWait[] {
    const list: PairedWait[] = [];
    for (const { request } of this.open.values()) {
      if (request.kind !== 'recv' || request.isInBackground) continue;
      const { source, tag, ctx, buffer } = request;
      list.push({ kind: 'recv', request, peer: source, tag, ctx, bytes: buffer.bytes, phase: 'the lead has not said what has come' });
    }
    for (const { word } of this.sends.values()) {
      const request = this.open.get(word.request)?.request;
      if (request?.kind !== 'send') continue;
      const { dest: peer, tag, ctx, bytes } = word;
      list.push({ kind: 'send', request, peer, tag, ctx, bytes, phase: 'the lead has not said that it has left' });
    }
    return list;
  }

  // ---------------------------------------------------------------- what the lead says

  protected take(record: PairRecord, link: Link): void {
    switch (record.kind) {
      case 'FORWARD':
        link.requests = Math.max(link.requests, record.ended.request);
        this.building.push(record.ended);
        return;
      case 'BURST':
        this.told.push({ kind: 'burst', call: record.call, ended: this.building, prepared: 0, pending: 0, values: new Map() });
        this.building = [];
        return;
      case 'LOOK':
        this.told.push({ kind: 'look', count: record.count, values: record.values });
        return;
      case 'OVER':
        this.told.push({ kind: 'over', call: record.call });
        return;
      case 'VOUCHED':
        this.lastVouched = this.sends.get(record.message)?.word ?? this.lastVouched;
        this.vouchedTo = record.message;
        for (const message of this.kept) if (message <= this.vouchedTo) this.drop(message);
        return;
      case 'DIVERGED': {
        const bytes = this.sends.get(record.message)?.buffer;
        const evidence = bytes === undefined ? new Uint8Array(0) : bytesOf(bytes);
        if (this.say(evidence.length).evidence(record.message, evidence)) this.sayBulk(evidence);
        this.flush();
        return;
      }
      case 'FINISHED':
        link.finished = record;
        return;
      case 'TELL':
        return this.tellTaken();
      case 'PEER_HAS': {
        const { peer } = record.taken;
        if (this.streams !== undefined) dropTaken(this.streams.log, peer, record.taken);
        return;
      }
      case 'LEAVE':
        // The other shadow hears it, too.
        if (record.number === this.options.self) this.leave(record.text);
        return;
      default:
        assert(false, `a lead says ${record.kind}`);
    }
  }

  /** What the program has received is not asked for any more. */
  private tellTaken(): void {
    const { streams, options } = this;
    if (streams === undefined) return;
    for (const taken of streams.news()) {
      // What the program has sent to itself.
      if (taken.peer === options.rank || taken.peer === ALL) dropTaken(streams.log, options.rank, taken);
      if (taken.peer !== options.rank) this.say().taken(taken);
    }
    this.options.wake();
  }

  protected taken(): void {
    this.prepareHead();
    this.lookAtEnd();
    this.options.wake();
  }

  // ---------------------------------------------------------------- bursts

  /** Asks for the bytes of what ends next. True: all of it is here, and the program has come to it. */
  private prepareHead(): boolean {
    const head = this.told.peek();
    if (head?.kind !== 'burst' || !this.isSound) return false;
    for (; head.prepared < head.ended.length; head.prepared++) {
      const ended = head.ended[head.prepared];
      // The program has not begun it yet.
      if (ended.request > this.requestCount) return false;
      const own = this.open.get(ended.request);
      if (own !== undefined && own.pattern !== ended.pattern) {
        this.differs(`request ${ended.request} is another one at the shadow than at the lead`);
        return false;
      }
      if (!ended.isBulk) continue;
      const request = own?.request;
      const isReceive = request?.kind === 'recv';
      const value = isReceive ? undefined : new Uint8Array(ended.bytes);
      if (value !== undefined) head.values.set(ended.request, value);
      head.pending++;
      this.receiveBulk(this.links[0], isReceive ? new Iov(request.buffer.slice(0, ended.bytes)) : new Iov([value as Uint8Array]), () => {
        head.pending--;
        if (head.pending === 0) this.options.wake();
      });
    }
    return head.pending === 0;
  }

  turn(call: number): boolean {
    if (!this.prepareHead()) return false;
    const head = this.told.peek() as Burst;
    // What has ended for the lead in a call ends here in the same one.
    if (head.call > call) return false;
    this.told.shift();
    this.counters.bursts++;
    const owns: Own[] = [];
    for (const ended of head.ended) {
      const own = this.open.get(ended.request);
      if (own === undefined) continue;
      owns.push(own);
      const { request } = own;
      const data = ended.data ?? head.values.get(ended.request);
      if (request.kind === 'recv' && ended.data !== undefined) request.buffer.copyIn(0, ended.data);
      if (request.kind === 'send' && data !== undefined) this.takeRight(request, ended.request, data);
      const envelope = request.kind === 'answer' && ended.source >= 0 ? this.envelopeOf(own, request, ended) : undefined;
      if (request.kind === 'recv' && ended.seq >= 0) this.streams?.received(ended.source, request.ctx, ended.seq);
      this.fill(own, data === ended.data ? ended : { ...ended, data }, envelope);
    }
    this.consume(this.sizeOf(head.ended));
    if (owns.some(({ request }) => request.kind === 'send')) this.dropEnded();
    for (const own of owns) this.tell(own);
    this.prepareHead();
    this.lookAtEnd();
    // There may be another one; the program has its turn before.
    if (this.told.size > 0) this.options.wake();
    return true;
  }

  /** Of a result: the bytes that the two other replicas have. */
  private takeRight(request: SendRequest, number: number, right: Uint8Array): void {
    for (const { word, buffer } of this.sends.values())
      if (word.request === number && firstDifference(bytesOf(buffer), right) !== -1) this.heal(request, buffer, right);
  }

  /** Requests have ended: of what has left, nobody asks for the bytes any more. */
  private dropEnded(): void {
    for (const [message, sent] of this.sends) {
      if (this.open.has(sent.word.request)) continue;
      if (message <= this.vouchedTo) this.drop(message);
      else if (!this.kept.has(message)) {
        // It was given up. The lead may ask for it when the program has its memory back.
        sent.buffer = new Iov([bytesOf(sent.buffer)]);
        this.kept.add(message);
      }
    }
  }

  private drop(message: number): void {
    this.sends.delete(message);
    this.kept.delete(message);
  }

  private consume(bytes: number): void {
    this.consumed += bytes;
    if (this.consumed - this.consumedTold < (this.options.aheadBytesMax ?? AHEAD_BYTES_MAX) / 4) return;
    this.consumedTold = this.consumed;
    this.say().consumed(this.consumed);
    this.options.wake();
  }

  /** What the lead has found, as far as it can be seen of a message that is not here. */
  private envelopeOf({ takes }: Own, answer: Answer, { source, tag, signature, bytes, seq }: Ended): Envelope {
    return this.found(this.begun.get(answer)?.pattern?.ctx ?? 0, [source, tag, signature, bytes, seq], takes);
  }

  /** What a look of the lead has found. `takes`: it has taken it out of its queue. */
  found(ctx: number, [source, tag, signature, messageBytes, seq]: Found, takes: boolean): Envelope {
    const envelope = {
      ...{ type: PACKET.MATCH, ctx, source, tag, seq, signature, messageBytes, flags: 0, charge: 0, isHole: true },
      ...{ payload: new Uint8Array(0), senderSlot: 0, senderGeneration: 0, windows: [] },
    } as unknown as Envelope;
    if (takes) this.streams?.probed(source, envelope);
    return envelope;
  }

  /** What the lead's look found in this place; undefined: it is not known yet. */
  takeLook(): Found | undefined {
    const head = this.told.peek();
    if (head?.kind !== 'look') return undefined;
    this.counters.looks++;
    if (--head.count > 0) return [];
    this.told.shift();
    this.consume(RECORD_BYTES);
    return head.values;
  }

  /** For the lead, that blocking call has come to the end of its time. */
  takeOver(call: number): boolean {
    const head = this.told.peek();
    if (head?.kind !== 'over' || head.call > call) return false;
    this.told.shift();
    return true;
  }

  /** The lead has looked where the shadow waits: they are not in the same place of the program. */
  mustNotLook(): void {
    if (this.told.peek()?.kind === 'look') this.differs('the lead looks, and the shadow waits');
  }

  // ---------------------------------------------------------------- differences, and ends

  private differs(what: string): void {
    if (!this.isSound) return;
    this.say().diverged(0, what);
    this.flush();
    this.diverge(what);
  }

  /** Of two shadows one cannot know whether it is itself the one that is wrong: it leaves, and the last one ends the job by that. */
  override diverge(what: string): void {
    if (this.options.isVoting) this.leave(what);
    else super.diverge(what);
  }

  private leave(what: string): void {
    if (this.state === 'DIVERGED') return;
    this.state = movePair(this.state, 'DIVERGED');
    const { rank, self, name } = this.options;
    const text = `the ${name} of rank ${rank} (process ${self}) leaves the job, since it does not do what its lead does: ${what}; the last event in common is ${this.lastCommon}`;
    this.options.onLeave?.(new MultirailError('ERR_DIVERGED', text, { rank }));
  }

  late(_: Link, what: string): void {
    this.diverge(`the lead is late: ${what}`);
  }

  protected get lastCommon(): string {
    return this.lastVouched === undefined ? 'the beginning of the program' : describeWord(this.lastVouched);
  }

  protected lookAtEnd(): void {
    this.lookBehindEnd();
    if (this.state !== 'FINISHING' || this.links[0].finished === undefined) return;
    for (const { request } of this.open.values()) if (request.kind === 'send') return;
    this.state = movePair(this.state, 'FINISHED');
  }

  /** The lead is in a call that this program never comes to, and waits for this one to take what ends there. */
  private lookBehindEnd(): void {
    const head = this.hasFinished ? this.told.peek() : undefined;
    if (head === undefined || (head.kind === 'burst' && head.call <= this.callCount)) return;
    const where = head.kind === 'look' ? 'a call that looks' : `call ${head.call}`;
    this.differs(`the ${this.options.name} has come to its end after ${this.callCount} calls, and the lead is in ${where}`);
  }

  endPosted(error: MultirailError): void {
    for (const own of [...this.open.values()]) {
      if (own.request.kind === 'send') continue;
      this.open.delete(own.number);
      own.request.error = error;
      own.request.done = true;
      this.tell(own);
    }
  }

  // ---------------------------------------------------------------- the place of the lead

  /** The lead has died: what it has said and was not read is dropped. */
  leadDied(): void {
    for (const { twin } of this.links) for (const ctx of [twin.ctx, twin.bulkCtx]) this.pml.freeContext(ctx);
  }

  /**
   * What goes on under the lead that this process becomes. What the old one has said and the program has not come to is no matter: nobody else was told
   * of it, since nothing leaves that this program has not come to.
   */
  get inheritance(): Inheritance {
    const { requestCount: requests, messageCount: messages, callCount: calls, counters, hasFinished } = this;
    const open = [...this.open.values()].map((own) => this.openRequest(own));
    return { requests, messages, calls, counters, hasFinished, admits: this.programAdmits, open };
  }

  private openRequest(own: Own): OpenRequest {
    const { request } = own;
    const common = { own, expired: this.expired.get(request) };
    const { envelope, pattern, test } = this.begun.get(request) ?? {};
    if (request.kind === 'recv') return { ...common, kind: 'recv', request, envelope };
    if (request.kind === 'send') {
      for (const { word, logged } of this.sends.values())
        if (word.request === own.number) return { ...common, kind: 'send', request, word, logged };
      return { ...common, kind: 'send', request, word: undefined, logged: undefined };
    }
    if (pattern !== undefined) return { ...common, kind: 'probe', answer: request, pattern };
    return test === undefined ? { ...common, kind: 'value' } : { ...common, kind: 'condition', test };
  }

  /** The numbers and copies that the lead goes on with. */
  get ownStreams(): ShadowStreams {
    assert(this.streams !== undefined, 'a shadow takes the place of its lead, and has counted nothing');
    return this.streams;
  }

  /** What comes to the lead is the lead's affair. */
  endPostedToAny(): void {}
  revokeContext(): void {}

  freeContext(ctx: number): void {
    // Messages may come for it when this process is a lead.
    this.pml.freeContext(ctx);
    this.releaseContext(ctx);
  }

  releaseContext(ctx: number): void {
    this.streams?.contextOver(ctx);
    if ((this.streams?.overCount ?? 0) >= OVER_MAX) this.tellTaken();
  }

  isContextQuiet(): boolean {
    return true;
  }
  set onUnexpected(_: (envelope: Envelope) => void) {
    this.pml.onUnexpected = () => {};
  }
}
