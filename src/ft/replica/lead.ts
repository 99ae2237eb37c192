// The lead of a pair, or of three: the real PML is behind it. What ends is told to the shadows, with what was received, and then to the program. What
// becomes of sends is in outgoing.ts. Pure.
import type { MultirailError } from '../../errors.ts';
import type { Envelope } from '../../pml/records.ts';
import { RecvRequest } from '../../pml/records.ts';
import type { Succession } from '../../pml/succession.ts';
import { assert } from '../../util/assert.ts';
import { Iov } from '../../util/iov.ts';
import { describeWord } from './digest.ts';
import type { Heard, Link } from './link.ts';
import { inheritedSend, OutgoingPml } from './outgoing.ts';
import { AHEAD_BYTES_MAX, Answer, type Found, NOTHING, type Own, type PairedWait, patternOf, RECORD_BYTES } from './paired-pml.ts';
import { endedOf, type Ready, readyOf } from './ready.ts';
import type { Inheritance, OpenRequest } from './shadow.ts';
import { movePair } from './states.ts';
import type { ShadowStreams, TakenNumbers } from './streams.ts';
import type { TakeoverHost, Takeovers } from './takeovers.ts';
import type { Ended, PairRecord } from './wire.ts';

/** Looks that find nothing are told together, so many at most. */
const VAIN_LOOKS_MAX = 16;

/** What ends in a burst that was said. */
interface Telling {
  readonly ready: Ready;
  readonly ended: Ended;
}

interface Watched {
  readonly own: Own;
  look(): Ready | undefined;
}

export class LeadPml extends OutgoingPml implements TakeoverHost {
  private readonly inners = new Map<RecvRequest, RecvRequest>();
  /** Probes that wait, and conditions, in the order in which they were begun. */
  private watched: Watched[] = [];
  private vainLooks = 0;
  private forwarded = 0;
  private toldVouched = 0;
  /** A burst that was said: the program is told once it has left. */
  private telling: readonly Telling[] = [];
  /** What the shadow has said that its program has received, in the batch that is being read. */
  private readonly told: TakenNumbers[] = [];

  // ---------------------------------------------------------------- receives and probes

  irecv(source: number, ctx: number, tag: number, buffer: Iov): RecvRequest {
    const request = new RecvRequest(ctx, source, tag, buffer);
    const own = this.begin(request, patternOf('recv', ctx, source, tag, buffer.bytes));
    this.follow(own, request, this.pml.irecv(this.numberOf(source), ctx, tag, buffer));
    return request;
  }

  override irecvInBackground(source: number, ctx: number, tag: number, buffer: Iov, onDone: (request: RecvRequest) => void): RecvRequest {
    const request = super.irecvInBackground(source, ctx, tag, buffer, onDone);
    const inner = this.inners.get(request);
    if (inner !== undefined) this.pml.setAside(inner);
    return request;
  }

  imrecv(envelope: Envelope, buffer: Iov): RecvRequest {
    const source = this.rankOf(envelope.source);
    const request = new RecvRequest(envelope.ctx, source, envelope.tag, buffer);
    const own = this.begin(request, patternOf('matched', envelope.ctx, source, envelope.tag, buffer.bytes));
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
    this.watchProbe(own, source, ctx, tag);
    return answer;
  }

  private watchProbe(own: Own, source: number, ctx: number, tag: number): void {
    this.watch({
      own,
      look: () => {
        const envelope = this.lookFor(source, ctx, tag, own.takes);
        const error = envelope === undefined && source >= 0 ? this.peer(source).ended : undefined;
        return envelope === undefined && error === undefined ? undefined : readyOf(own, { error, envelope });
      },
    });
  }

  expireAnswer(answer: Answer, error: MultirailError): void {
    const watched = this.watched.find(({ own }) => own.request === answer);
    if (watched === undefined) return;
    this.watched = this.watched.filter((other) => other !== watched);
    this.end(watched.own, undefined, error);
  }

  when(test: () => boolean): Answer {
    const answer = new Answer();
    this.watchCondition(this.begin(answer, patternOf('condition', 0, 0, 0, 0)), test);
    return answer;
  }

  private watchCondition(own: Own, test: () => boolean): void {
    this.watch({ own, look: () => (test() ? readyOf(own, {}) : undefined) });
  }

  private watch(watched: Watched): void {
    this.watched.push(watched);
    this.options.wake();
  }

  /** What is waited for by nobody but a look. */
  find(source: number, ctx: number, tag: number, takes: boolean): Envelope | undefined {
    const envelope = this.lookFor(source, ctx, tag, takes);
    return envelope && this.named(envelope, takes);
  }

  private lookFor(source: number, ctx: number, tag: number, takes: boolean): Envelope | undefined {
    const number = this.numberOf(source);
    return takes ? this.pml.improbe(number, ctx, tag) : this.pml.iprobe(number, ctx, tag);
  }

  /** As the program is given it: its source is the rank, whoever is the lead of that now. */
  private named(envelope: Envelope, takes: boolean): Envelope {
    const source = this.rankOf(envelope.source);
    // One that stays in its queue is found there by the number of its process.
    if (!takes) return { ...envelope, source };
    envelope.source = source;
    return envelope;
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

  /** What a shadow was told and has not taken, in bytes. */
  get aheadBytes(): number {
    let taken = this.forwarded;
    for (const { consumed } of this.living) taken = Math.min(taken, consumed);
    return this.forwarded - taken;
  }

  /** A shadow is too far behind. */
  private get isCongested(): boolean {
    return this.aheadBytes > (this.options.aheadBytesMax ?? AHEAD_BYTES_MAX);
  }

  turn(call: number): boolean {
    if (this.telling.length > 0) return !this.isSaying && this.tellNow();
    if (this.isCongested) this.lookAtEnd();
    if (!this.isSound || this.isCongested) return false;
    if (this.watched.length > 0) this.lookAtWatched();
    if (this.ready.length === 0) return false;
    const burst = this.ready.filter(({ own }) => this.open.has(own.number));
    this.ready = [];
    this.sayLooks(NOTHING);
    this.telling = burst.map((ready) => ({ ready, ended: this.forward(ready) }));
    this.forwarded += this.sizeOf(this.telling.map(({ ended }) => ended));
    this.counters.bursts++;
    this.say().burst(call);
    this.flush();
    // Messages whose sends end here, and what shadows are told: when the program computes next, nothing leaves until it is done.
    this.options.push();
    return !this.isSaying && this.tellNow();
  }

  /** As turn(), for a look: what it was said to end has ended when the look is made. */
  turnForLook(call: number): boolean {
    return this.turn(call) || this.tellNow();
  }

  /** The program is told what has ended in the burst that was said, whether that has left or not. True: something has ended. */
  private tellNow(): boolean {
    const told = this.telling.filter(({ ready }) => this.open.has(ready.own.number));
    this.telling = [];
    if (!this.isSound) return false;
    for (const { ready, ended } of told) {
      const { own, envelope, error } = ready;
      this.fill(own, ended, envelope && this.named(envelope, own.takes));
      // As it was, with its cause.
      if (error !== undefined) own.request.error = error;
    }
    for (const { ready } of told) this.tell(ready.own);
    return told.length > 0;
  }

  override waitsForReplicas(): PairedWait[] {
    const list = super.waitsForReplicas();
    for (const { ready, ended } of this.telling) {
      const { request } = ready.own;
      if (request.kind !== 'recv' || request.done) continue;
      const { source: peer, tag, bytes } = ended;
      list.push({ kind: 'recv', request, peer, tag, ctx: request.ctx, bytes, phase: 'here: its copy is on its way to the other replica' });
    }
    return list;
  }

  /** What was said to have ended before this call has. */
  override beginCall(): number {
    this.tellNow();
    return super.beginCall();
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
  private forward(ready: Ready): Ended {
    const { ended: said, data } = endedOf(ready);
    const source = this.rankOf(said.source);
    const ended = source === said.source ? said : { ...said, source };
    if (!this.isAlone) {
      this.say(ended.isBulk ? 0 : (data?.length ?? 0)).forward(ended);
      if (ended.isBulk) this.sayBulk(data as Uint8Array);
      this.counters.forwarded++;
      this.counters.forwardedBytes += data?.length ?? 0;
    }
    // The program gets it as a value, however long it is.
    return ready.own.request.kind === 'answer' && ready.bytes !== undefined ? { ...ended, data: ready.bytes } : ended;
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

  /**
   * The blocking call for which beginCall() was called last has come to the end of its time. False: what it waits for was said to have ended in it,
   * and has.
   */
  noteOver(call: number, isDone: () => boolean): boolean {
    this.tellNow();
    if (isDone()) return false;
    this.sayLooks(NOTHING);
    this.say().over(call);
    this.flush();
    return true;
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

  protected take(record: PairRecord, link: Link): void {
    // Its last words are on their way still.
    if (link.isLost) return;
    switch (record.kind) {
      case 'VOUCH': {
        const heard: Heard = { word: record.word, digest: record.digest };
        link.words.push(heard);
        link.requests = Math.max(link.requests, heard.word.request);
        if (record.digest === undefined)
          this.receiveRest(link, record.digestBytes, (bytes) => {
            heard.digest = bytes;
            this.compare();
          });
        return;
      }
      case 'CONSUMED':
        link.consumed = record.bytes;
        return this.options.wake();
      case 'EVIDENCE': {
        const { message, bytes: length, data } = record;
        if (data !== undefined) return this.takeEvidence(link, message, data);
        return this.receiveRest(link, length, (bytes) => this.takeEvidence(link, message, bytes));
      }
      case 'FINISHED':
        link.finished = record;
        return this.options.wake();
      case 'DIVERGED':
        return this.part(link, record.text);
      case 'TAKEN':
        this.told.push(record.taken);
        return;
      default:
        assert(false, `a shadow says ${record.kind}`);
    }
  }

  private receiveRest(link: Link, length: number, whenHere: (bytes: Uint8Array) => void): void {
    const bytes = new Uint8Array(length);
    this.receiveBulk(link, new Iov([bytes]), () => {
      if (!link.isLost) whenHere(bytes);
    });
  }

  protected taken(): void {
    if (this.told.length > 0) this.options.takeovers?.takenByShadow(this.told.splice(0));
    this.compare();
  }

  // ---------------------------------------------------------------- what the shadow must know to take this place

  askShadow(): void {
    this.say().tell();
    this.options.wake();
  }

  tellShadow(taken: TakenNumbers): void {
    if (this.isAlone) return;
    this.say().peerHas(taken);
    this.options.wake();
  }

  // ---------------------------------------------------------------- ends

  protected lookAtEnd(): void {
    const { pending } = this;
    if (!this.isSound) return;
    const first = pending.peek();
    for (const link of this.living) {
      const { finished, twin } = link;
      if (finished !== undefined && first !== undefined && first.word.message > finished.messages)
        return this.part(
          link,
          `the ${twin.name} has come to its end after ${finished.messages} messages, and the lead sends ${describeWord(first.word)}`,
          true,
        );
      // It takes no burst any more, so that the lead, which waits for that, would come to no further message.
      if (finished !== undefined && finished.requests < this.requestCount && this.isCongested)
        return this.part(
          link,
          `the ${twin.name} has come to its end after ${finished.requests} calls, and the lead has begun ${this.requestCount}`,
        );
    }
    if (this.state === 'ALONE' && this.hasFinished && pending.size === 0 && this.leaving.size === 0)
      this.state = movePair(this.state, 'FINISHED');
    if (this.state !== 'FINISHING') return;
    for (const link of this.living) {
      const extra = link.words.peek()?.word;
      if (extra !== undefined && pending.size === 0 && extra.message > this.messageCount)
        return this.part(
          link,
          `the lead has come to its end after ${this.messageCount} messages, and the ${link.twin.name} sends ${describeWord(extra)}`,
        );
    }
    if (pending.size > 0 || this.leaving.size > 0 || this.living.some(({ finished }) => finished === undefined)) return;
    this.state = movePair(this.state, 'FINISHED');
  }

  // ---------------------------------------------------------------- the place of a lead that has died

  /** This lead was a shadow, and has no shadow itself: it goes on with what that one has begun. */
  inherit(inheritance: Inheritance, takeovers: Takeovers, streams: ShadowStreams): void {
    const { requests, messages, calls, counters, hasFinished, admits, open } = inheritance;
    this.requestCount = requests;
    this.messageCount = messages;
    this.callCount = calls;
    Object.assign(this.counters, counters);
    this.hasFinished = hasFinished;
    this.admits = admits;
    this.state = movePair(this.state, 'ALONE');
    const succession = takeovers.inherit(streams, this);
    if (succession === undefined) return;
    for (const request of open) {
      this.open.set(request.own.number, request.own);
      this.goOnWith(request, succession);
    }
    for (const request of open) this.endExpired(request);
    takeovers.goOn();
    this.lookAtEnd();
    this.options.wake();
  }

  /** Its time had come, and the lead that has died has not said so. */
  private endExpired(open: OpenRequest): void {
    if (open.expired === undefined) return;
    if (open.kind === 'recv') this.expire(open.request, open.expired);
    else if (open.kind === 'send') this.giveUp(open.request, open.expired);
    else if (open.kind === 'probe') this.expireAnswer(open.answer, open.expired);
  }

  private goOnWith(open: OpenRequest, succession: Succession): void {
    const { own } = open;
    switch (open.kind) {
      case 'recv': {
        const { request, envelope } = open;
        const { source, ctx, tag, buffer } = request;
        const inner = envelope === undefined ? this.pml.irecv(this.numberOf(source), ctx, tag, buffer) : this.pml.imrecv(envelope, buffer);
        this.follow(own, request, inner);
        if (request.isInBackground && !inner.done) this.pml.setAside(inner);
        return;
      }
      case 'send': {
        const { word, logged } = open;
        // It has its copy, and leaves from there.
        if (word === undefined || logged === undefined) return this.end(own, undefined, undefined);
        const inner = succession.restoreWaiting(this.numberOf(word.dest), logged);
        return this.followSend(inheritedSend(own, word, logged, inner), inner);
      }
      case 'probe': {
        const { source, ctx, tag } = open.pattern;
        return this.watchProbe(own, source, ctx, tag);
      }
      case 'condition':
        return this.watchCondition(own, open.test);
      case 'value':
        return;
    }
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
    this.options.takeovers?.contextOver(ctx);
  }

  releaseContext(ctx: number, copies = false): void {
    this.pml.releaseContext(ctx, copies);
    this.options.takeovers?.contextOver(ctx);
  }

  isContextQuiet(first: number, last: number, postedMax: number): boolean {
    for (const { word } of this.pending) if (word.ctx >= first && word.ctx <= last) return false;
    return this.pml.isContextQuiet(first, last, postedMax);
  }
}
