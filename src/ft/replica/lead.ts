// The lead of a pair: the real PML is behind it. A message leaves when the shadow has vouched for it, that is, has come to the same message with
// the same digest; what ends is told to the shadow, with what was received, and then to the program. Pure.
import type { MultirailError } from '../../errors.ts';
import type { Envelope } from '../../pml/records.ts';
import { RecvRequest, SendRequest } from '../../pml/records.ts';
import { assert } from '../../util/assert.ts';
import { Deque } from '../../util/deque.ts';
import { EMPTY_BYTES, Iov } from '../../util/iov.ts';
import { bytesOf, describeWord, differenceOf, firstDifference, hexOf, NOBODY, type Word } from './digest.ts';
import { AHEAD_BYTES_MAX, Answer, type Found, NOTHING, type Own, PairedPml, patternOf, RECORD_BYTES } from './paired-pml.ts';
import { type MessageState, moveMessage, movePair } from './states.ts';
import { type Ended, INLINE_BYTES_MAX, type PairRecord } from './wire.ts';

/** Looks that find nothing are told together, so many at most. */
const VAIN_LOOKS_MAX = 16;

/** A message that was begun here. */
interface Outgoing {
  state: MessageState;
  readonly word: Word;
  readonly own: Own;
  /** The program's memory; a copy, once the send was given up. */
  buffer: Iov;
  readonly signature: number;
  readonly canGiveUp: boolean;
  inner: SendRequest | undefined;
}

/** The word of the shadow. */
interface Heard {
  readonly word: Omit<Word, 'digest'>;
  /** Undefined: it is on its way. */
  digest: Uint8Array | undefined;
}

/** What has ended, and waits for its burst. */
interface Ready {
  readonly own: Own;
  readonly inner: SendRequest | RecvRequest | undefined;
  readonly error: MultirailError | undefined;
  readonly envelope: Envelope | undefined;
  readonly bytes: Uint8Array | undefined;
}

interface Watched {
  readonly own: Own;
  look(): Ready | undefined;
}

export class LeadPml extends PairedPml {
  readonly isLead = true;
  private readonly pending = new Deque<Outgoing>();
  private readonly words = new Deque<Heard>();
  /** Given to the PML, and not ended. */
  private readonly leaving = new Map<SendRequest, Outgoing>();
  private readonly inners = new Map<RecvRequest, RecvRequest>();
  private ready: Ready[] = [];
  /** Probes that wait, and conditions, in the order in which they were begun. */
  private watched: Watched[] = [];
  private vainLooks = 0;
  private forwarded = 0;
  private consumed = 0;
  /** The message that differs. */
  private differing: { readonly message: Outgoing; readonly heard: Heard } | undefined;
  private lastVouched: Word | undefined;
  private toldVouched = 0;
  private hasLost = false;

  // ---------------------------------------------------------------- the shadow is gone

  override get isAlone(): boolean {
    return this.hasLost;
  }

  /** The shadow has died: what it would have vouched for leaves, and nothing is compared any more. */
  goAlone(): void {
    if (this.hasLost || !this.isSound || this.state === 'FINISHED') return;
    this.hasLost = true;
    this.state = movePair(this.state, 'ALONE');
    // Its last words may be here, or come yet.
    for (const ctx of [this.options.ctx, this.options.bulkCtx]) this.pml.freeContext(ctx);
    this.compare();
    this.options.wake();
  }

  // ---------------------------------------------------------------- sends

  override get unvouched(): number {
    return this.pending.size;
  }

  isend(rank: number, ctx: number, tag: number, buffer: Iov, sync = false, signature = 0, canGiveUp = false): SendRequest {
    const request = new SendRequest(rank, tag, buffer.bytes);
    const own = this.begin(request, 0);
    const message = ++this.messageCount;
    this.counters.messages++;
    this.options.beforeSend?.(message, buffer);
    const word: Word = {
      request: own.number,
      message,
      ctx,
      dest: rank,
      tag,
      bytes: buffer.bytes,
      sync,
      digest: this.options.digest(buffer),
    };
    this.pending.push({ state: 'UNVOUCHED', word, own, buffer, signature, canGiveUp, inner: undefined });
    this.compare();
    return request;
  }

  /** Compares messages and words as far as both are here. */
  private compare(): void {
    while (this.isAlone && this.pending.size > 0) this.transmit(this.pending.shift() as Outgoing);
    while (this.isSound) {
      const message = this.pending.peek();
      const heard = this.words.peek();
      if (heard === undefined || message === undefined) break;
      const { digest } = heard;
      if (digest === undefined) break;
      this.pending.shift();
      this.words.shift();
      this.counters.compared++;
      const difference = differenceOf(message.word, { ...heard.word, digest });
      if (difference !== undefined) {
        message.state = moveMessage(message.state, 'HELD');
        return this.differs(message, heard, difference);
      }
      this.transmit(message);
    }
    this.lookAtEnd();
  }

  private transmit(message: Outgoing): void {
    message.state = moveMessage(message.state, 'VOUCHED');
    const { word, own, buffer, signature, canGiveUp } = message;
    this.lastVouched = word;
    this.options.wake();
    if (word.dest === NOBODY) return this.sent(message, undefined);
    const inner = this.pml.isend(word.dest, word.ctx, word.tag, buffer, word.sync, signature, canGiveUp);
    message.inner = inner;
    if (inner.done) return this.sent(message, inner);
    this.leaving.set(own.request as SendRequest, message);
    inner.onDone = () => {
      this.leaving.delete(own.request as SendRequest);
      this.sent(message, inner);
      this.lookAtEnd();
    };
  }

  private sent(message: Outgoing, inner: SendRequest | undefined): void {
    message.state = moveMessage(message.state, 'ENDED');
    // It may have been given up before it left.
    if (this.open.has(message.own.number)) this.end(message.own, inner, inner?.error);
  }

  /** Ends a send before its time: at both, in a burst. The message goes on, once the shadow has vouched for it. */
  giveUp(request: SendRequest, error: MultirailError): void {
    if (request.done) return;
    const inner = this.leaving.get(request)?.inner;
    if (inner !== undefined) return this.pml.giveUp(inner, error);
    for (const message of this.pending) {
      if (message.own.request !== request) continue;
      message.buffer = new Iov([bytesOf(message.buffer)]);
      if (!this.ready.some(({ own }) => own === message.own)) this.end(message.own, undefined, error);
    }
  }

  // ---------------------------------------------------------------- differences

  private differs(message: Outgoing, heard: Heard, difference: NonNullable<ReturnType<typeof differenceOf>>): void {
    if (difference !== 'digest') {
      const { field, lead, shadow } = difference;
      const other = describeWord(heard.word);
      return this.diverge(
        `${describeWord(message.word)} at the lead is ${other} at the shadow (${field} ${lead} and ${shadow}); nothing of it has left`,
      );
    }
    this.state = movePair(this.state, 'DIFFERING');
    this.differing = { message, heard };
    const { compare } = this.options;
    if (compare === 'full') return this.show(heard.digest as Uint8Array);
    this.say().diverged(message.word.message, '');
    this.flush();
    this.options.wake();
  }

  /** What the shadow would have sent is here; undefined: it does not come. */
  show(bytes: Uint8Array | undefined): void {
    if (this.state !== 'DIFFERING' || this.differing === undefined) return;
    const { message, heard } = this.differing;
    const { compare } = this.options;
    let where = 'where is not known: the shadow does not answer';
    if (bytes !== undefined) {
      const offset = firstDifference(bytesOf(message.buffer), bytes);
      where =
        offset === -1
          ? 'not in its bytes any more: one of the digests was wrong, or the bytes were changed after it was made'
          : `first at byte ${offset}`;
    }
    const digests =
      compare === 'full'
        ? ''
        : `; ${compare} ${hexOf(message.word.digest)} at the lead, ${hexOf(heard.digest as Uint8Array)} at the shadow`;
    this.diverge(`${describeWord(message.word)}, differs, ${where}${digests}; nothing of it has left`);
  }

  protected get lastCommon(): string {
    return this.lastVouched === undefined ? 'the beginning of the program' : describeWord(this.lastVouched);
  }

  // ---------------------------------------------------------------- receives and probes

  irecv(source: number, ctx: number, tag: number, buffer: Iov): RecvRequest {
    const request = new RecvRequest(ctx, source, tag, buffer);
    const own = this.begin(request, patternOf('recv', ctx, source, tag, buffer.bytes));
    this.follow(own, request, this.pml.irecv(source, ctx, tag, buffer));
    return request;
  }

  imrecv(envelope: Envelope, buffer: Iov): RecvRequest {
    const request = new RecvRequest(envelope.ctx, envelope.source, envelope.tag, buffer);
    const own = this.begin(request, patternOf('matched', envelope.ctx, envelope.source, envelope.tag, buffer.bytes));
    this.follow(own, request, this.pml.imrecv(envelope, buffer));
    return request;
  }

  private follow(own: Own, request: RecvRequest, inner: RecvRequest): void {
    if (inner.done) return this.end(own, inner, inner.error);
    // It may have matched a message that is to be read now.
    this.options.wake();
    this.inners.set(request, inner);
    inner.onDone = () => {
      this.inners.delete(request);
      this.end(own, inner, inner.error);
    };
  }

  /** By the program, which learns at once whether it is so: a look. */
  cancel(request: RecvRequest): boolean {
    this.beginCall();
    const inner = this.inners.get(request);
    const isCancelled = inner !== undefined && this.pml.cancel(inner);
    this.noteLook([isCancelled ? 1 : 0]);
    if (inner === undefined || !isCancelled) return false;
    inner.onDone = undefined;
    this.inners.delete(request);
    request.cancelled = true;
    this.settleNow(request, undefined);
    return true;
  }

  /** By a timer or a signal, which the shadow does not obey: it ends at both in a burst, unless it has matched. */
  expire(request: RecvRequest, error: MultirailError): void {
    const inner = this.inners.get(request);
    if (inner === undefined || !this.pml.cancel(inner)) return;
    inner.cancelled = false;
    inner.error = error;
  }

  private settleNow(request: RecvRequest, error: MultirailError | undefined): void {
    for (const own of this.open.values()) {
      if (own.request !== request) continue;
      this.open.delete(own.number);
      request.error = error;
      request.done = true;
      return this.tell(own);
    }
  }

  probe(source: number, ctx: number, tag: number, takes: boolean): Answer {
    const answer = new Answer();
    const own = this.begin(answer, patternOf(takes ? 'mprobe' : 'probe', ctx, source, tag, 0), takes);
    this.watch({
      own,
      look: () => {
        const envelope = this.find(source, ctx, tag, takes);
        const error = envelope === undefined && source >= 0 ? this.pml.peer(source).ended : undefined;
        return envelope === undefined && error === undefined ? undefined : readyOf(own, { error, envelope });
      },
    });
    return answer;
  }

  expireAnswer(answer: Answer, error: MultirailError): void {
    const watched = this.watched.find(({ own }) => own.request === answer);
    if (watched === undefined) return;
    this.watched = this.watched.filter((other) => other !== watched);
    this.end(watched.own, undefined, error);
  }

  when(test: () => boolean): Answer {
    const answer = new Answer();
    const own = this.begin(answer, patternOf('condition', 0, 0, 0, 0));
    this.watch({ own, look: () => (test() ? readyOf(own, {}) : undefined) });
    return answer;
  }

  private watch(watched: Watched): void {
    this.watched.push(watched);
    this.options.wake();
  }

  /** What is waited for by nobody but a look. */
  find(source: number, ctx: number, tag: number, takes: boolean): Envelope | undefined {
    return takes ? this.pml.improbe(source, ctx, tag) : this.pml.iprobe(source, ctx, tag);
  }

  /** Something may be so that was not so before. */
  get isWatching(): boolean {
    return this.watched.length > 0;
  }

  set onUnexpected(onUnexpected: (envelope: Envelope) => void) {
    this.pml.onUnexpected = (envelope) => {
      onUnexpected(envelope);
      if (this.watched.length > 0) this.options.wake();
    };
  }

  settleValue(number: number, value: Uint8Array | MultirailError): void {
    const own = this.open.get(number);
    if (own === undefined) return;
    const isError = !(value instanceof Uint8Array);
    this.ready.push(readyOf(own, isError ? { error: value } : { bytes: value }));
    this.options.wake();
  }

  // ---------------------------------------------------------------- bursts

  private end(own: Own, inner: SendRequest | RecvRequest | undefined, error: MultirailError | undefined): void {
    this.ready.push(readyOf(own, { inner, error }));
    this.options.wake();
  }

  /** What the shadow was told and has not taken, in bytes. */
  get aheadBytes(): number {
    return this.forwarded - this.consumed;
  }

  /** The shadow is too far behind. */
  private get isCongested(): boolean {
    return !this.isAlone && this.aheadBytes > (this.options.aheadBytesMax ?? AHEAD_BYTES_MAX);
  }

  turn(call: number): boolean {
    if (!this.isSound || this.isCongested) return false;
    if (this.watched.length > 0) this.lookAtWatched();
    if (this.ready.length === 0) return false;
    const burst = this.ready;
    this.ready = [];
    this.sayLooks(NOTHING);
    const list = burst.filter(({ own }) => this.open.has(own.number)).map((ready) => this.forward(ready));
    this.forwarded += this.sizeOf(list);
    this.counters.bursts++;
    this.say().burst(call);
    this.flush();
    const ended = burst.filter(({ own }) => this.open.has(own.number));
    ended.forEach(({ own, envelope, error }, i) => {
      this.fill(own, list[i], envelope);
      // As it was, with its cause.
      if (error !== undefined) own.request.error = error;
    });
    for (const { own } of ended) this.tell(own);
    return true;
  }

  private lookAtWatched(): void {
    // What a look takes is gone for those behind it.
    this.watched = this.watched.filter(({ own, look }) => {
      if (!this.open.has(own.number)) return false;
      const ready = look();
      if (ready !== undefined) this.ready.push(ready);
      return ready === undefined;
    });
  }

  /** Says how it has ended, with a copy of what has come. */
  private forward({ own, inner, error, envelope, bytes }: Ready): Ended {
    const { number: request, pattern } = own;
    const failure = error && { code: error.code, text: error.message.slice(error.code.length + 2), peer: error.peer };
    let ended: Ended = {
      request,
      pattern,
      source: -1,
      tag: -1,
      signature: 0,
      cancelled: false,
      error: failure,
      bytes: 0,
      data: undefined,
      isBulk: false,
    };
    let data: Uint8Array | undefined = bytes;
    if (inner?.kind === 'recv') {
      const { matchedSource: source, matchedTag: tag, matchedSignature: signature, cancelled, receivedBytes } = inner;
      ended = { ...ended, source, tag, signature, cancelled, bytes: receivedBytes };
      if (receivedBytes > 0) data = copyOf(inner.buffer, receivedBytes);
    } else if (envelope !== undefined) {
      const { source, tag, signature, messageBytes } = envelope;
      ended = { ...ended, source, tag, signature, bytes: messageBytes };
    }
    const isBulk = (data?.length ?? 0) > INLINE_BYTES_MAX;
    ended = { ...ended, data: isBulk ? undefined : data, isBulk, bytes: data?.length ?? ended.bytes };
    if (!this.isAlone) {
      this.say(isBulk ? 0 : (data?.length ?? 0)).forward(ended);
      if (isBulk) this.sayBulk(data as Uint8Array);
      this.counters.forwarded++;
      this.counters.forwardedBytes += data?.length ?? 0;
    }
    // The program gets it as a value, however long it is.
    return own.request.kind === 'answer' && bytes !== undefined ? { ...ended, data: bytes } : ended;
  }

  /** What the look found for which beginCall() was called last. */
  noteLook(found: Found): void {
    this.counters.looks++;
    if (found.length > 0) return this.sayLooks(found);
    this.vainLooks++;
    if (this.vainLooks >= VAIN_LOOKS_MAX && !this.isCongested) this.sayLooks(NOTHING);
  }

  /** Looks that found nothing, and then this one. */
  private sayLooks(found: Found): void {
    const count = this.vainLooks + (found.length > 0 ? 1 : 0);
    this.vainLooks = 0;
    if (count === 0) return;
    this.forwarded += RECORD_BYTES;
    this.say().look(count, found);
    this.options.wake();
  }

  /** The blocking call for which beginCall() was called last has come to the end of its time. */
  noteOver(call: number): void {
    this.sayLooks(NOTHING);
    this.say().over(call);
    this.flush();
  }

  override flush(): boolean {
    const message = this.lastVouched?.message ?? 0;
    if (message > this.toldVouched) {
      this.toldVouched = message;
      this.writer.vouched(message);
    }
    if (this.vainLooks > 0 && !this.isCongested) {
      this.forwarded += RECORD_BYTES;
      this.writer.look(this.vainLooks, NOTHING);
      this.vainLooks = 0;
    }
    return super.flush();
  }

  // ---------------------------------------------------------------- what the shadow says

  protected take(record: PairRecord): void {
    // Its last words are on their way still.
    if (this.isAlone) return;
    switch (record.kind) {
      case 'VOUCH': {
        const heard: Heard = { word: record.word, digest: record.digest };
        this.words.push(heard);
        this.otherRequests = Math.max(this.otherRequests, heard.word.request);
        if (record.digest === undefined)
          this.receiveRest(record.digestBytes, (bytes) => {
            heard.digest = bytes;
            this.compare();
          });
        return;
      }
      case 'CONSUMED':
        this.consumed = record.bytes;
        return this.options.wake();
      case 'EVIDENCE':
        if (record.data !== undefined) return this.show(record.data);
        return this.receiveRest(record.bytes, (bytes) => this.show(bytes));
      case 'FINISHED':
        this.otherFinished = record;
        return;
      case 'DIVERGED':
        return this.diverge(record.text);
      default:
        assert(false, `a shadow says ${record.kind}`);
    }
  }

  private receiveRest(length: number, whenHere: (bytes: Uint8Array) => void): void {
    const bytes = new Uint8Array(length);
    this.receiveBulk(new Iov([bytes]), () => whenHere(bytes));
  }

  protected taken(): void {
    this.compare();
  }

  // ---------------------------------------------------------------- ends

  protected lookAtEnd(): void {
    const { otherFinished, pending } = this;
    if (!this.isSound) return;
    const first = pending.peek();
    if (otherFinished !== undefined && first !== undefined && first.word.message > otherFinished.messages)
      return this.diverge(
        `the shadow has come to its end after ${otherFinished.messages} messages, and the lead sends ${describeWord(first.word)}; nothing of it has left`,
      );
    if (this.state === 'ALONE' && this.hasFinished && pending.size === 0 && this.leaving.size === 0)
      this.state = movePair(this.state, 'FINISHED');
    if (this.state !== 'FINISHING') return;
    const extra = this.words.peek()?.word;
    if (extra !== undefined && pending.size === 0 && extra.message > this.messageCount)
      return this.diverge(`the lead has come to its end after ${this.messageCount} messages, and the shadow sends ${describeWord(extra)}`);
    if (otherFinished === undefined || pending.size > 0 || this.leaving.size > 0) return;
    this.state = movePair(this.state, 'FINISHED');
  }

  endPosted(error: MultirailError): void {
    for (const own of [...this.open.values()]) {
      const { request } = own;
      if (request.kind === 'send') continue;
      const inner = request.kind === 'recv' ? this.inners.get(request) : undefined;
      if (request.kind === 'recv' && (inner === undefined || !this.pml.cancel(inner))) continue;
      if (inner !== undefined) inner.onDone = undefined;
      this.open.delete(own.number);
      request.error = error;
      request.done = true;
      this.tell(own);
    }
  }

  endPostedToAny(ctx: number, error: MultirailError): void {
    this.pml.endPostedToAny(ctx, error);
  }

  revokeContext(ctx: number, error: MultirailError): void {
    this.pml.revokeContext(ctx, error);
  }

  freeContext(ctx: number, error?: MultirailError): void {
    this.pml.freeContext(ctx, error);
  }

  releaseContext(ctx: number, copies = false): void {
    this.pml.releaseContext(ctx, copies);
  }

  isContextQuiet(first: number, last: number, postedMax: number): boolean {
    for (const { word } of this.pending) if (word.ctx >= first && word.ctx <= last) return false;
    return this.pml.isContextQuiet(first, last, postedMax);
  }
}

function readyOf(own: Own, { inner, error, envelope, bytes }: Partial<Omit<Ready, 'own'>>): Ready {
  return { own, inner, error, envelope, bytes };
}

function copyOf(buffer: Iov, bytes: number): Uint8Array {
  if (bytes === 0) return EMPTY_BYTES;
  const copy = new Uint8Array(bytes);
  let at = 0;
  for (const view of buffer.slice(0, bytes)) {
    copy.set(view, at);
    at += view.length;
  }
  return copy;
}
