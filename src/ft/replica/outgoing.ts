// What a lead sends. A message leaves when the shadow has vouched for it, that is, has come to the same message with the same digest; of three replicas
// two that agree are right, and what they have vouched for leaves. lead.ts has the rest of a lead. Pure.
import type { MultirailError } from '../../errors.ts';
import type { LoggedMessage, RecvRequest } from '../../pml/records.ts';
import { SendRequest } from '../../pml/records.ts';
import { Deque } from '../../util/deque.ts';
import { Iov } from '../../util/iov.ts';
import { bytesOf, type Difference, describeWord, firstDifference, hexOf, NOBODY, type Word } from './digest.ts';
import type { Heard, Link } from './link.ts';
import { type Own, PairedPml, type PairedWait } from './paired-pml.ts';
import { type Ready, readyOf } from './ready.ts';
import { type MessageState, moveMessage, movePair } from './states.ts';
import { vote } from './vote.ts';

/** A message that was begun here. */
export interface Outgoing {
  state: MessageState;
  readonly word: Word;
  readonly own: Own;
  /** The program's memory; a copy, once the send was given up. Of a message that was outvoted the bytes of the majority. */
  buffer: Iov;
  readonly signature: number;
  readonly canGiveUp: boolean;
  inner: SendRequest | undefined;
  /** What the majority says, where that is not the lead. */
  majority: Uint8Array | undefined;
  /** Of a result that one shadow does not have: its bytes. */
  right: Uint8Array | undefined;
}

/** A message that has left, or leaves, from its copy, and whose request waits for its match. */
export function inheritedSend(own: Own, word: Word, { payload }: LoggedMessage, inner: SendRequest): Outgoing {
  const rest = { signature: 0, canGiveUp: false, majority: undefined, right: undefined };
  return { state: 'VOUCHED', word, own, buffer: payload, inner, ...rest };
}

export abstract class OutgoingPml extends PairedPml {
  readonly isLead = true;
  protected readonly pending = new Deque<Outgoing>();
  /** Given to the PML, and not ended. */
  protected readonly leaving = new Map<SendRequest, Outgoing>();
  /** What has ended, and waits for its burst. */
  protected ready: Ready[] = [];
  protected lastVouched: Word | undefined;
  /** The message that differs, and the shadow that is asked for its own. */
  private differing: { readonly message: Outgoing; readonly words: readonly Word[]; readonly link: Link } | undefined;
  private isBlamed = false;

  // ---------------------------------------------------------------- shadows that are gone

  /** A shadow has died: without another one, what it would have vouched for leaves, and nothing is compared any more. */
  shadowDied(number: number): void {
    const link = this.links.find(({ twin }) => twin.number === number);
    if (link === undefined) return;
    // It does not answer any more.
    if (this.differing?.link === link) this.show(undefined);
    this.lose(link);
  }

  private lose(link: Link): void {
    if (link.isLost || !this.isSound || this.state === 'FINISHED') return;
    link.isLost = true;
    this.living = this.living.filter((other) => other !== link);
    if (this.isAlone) this.state = movePair(this.state, 'ALONE');
    // Its last words may be here, or come yet.
    for (const ctx of [link.twin.ctx, link.twin.bulkCtx]) this.pml.freeContext(ctx);
    this.lookAtOutvoted();
    this.compare();
    this.options.wake();
  }

  /** A shadow does not do what the lead does: of two it leaves, and the others go on as a pair. */
  protected part(link: Link, what: string, isHeld = false): void {
    if (this.living.length < 2) return this.diverge(isHeld ? `${what}; nothing of it has left` : what);
    const { number } = link.twin;
    this.say().leave(number, what);
    this.flush();
    this.options.onDropped?.(number, what);
    this.lose(link);
  }

  late(link: Link, what: string): void {
    this.part(link, `the ${link.twin.name} is late: ${what}`);
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
    const rest = { inner: undefined, majority: undefined, right: undefined };
    this.pending.push({ state: 'UNVOUCHED', word, own, buffer, signature, canGiveUp, ...rest });
    this.compare();
    return request;
  }

  waitsForReplicas(): PairedWait[] {
    const awaited = this.living.filter(({ words }) => words.size === 0).map(({ twin }) => `the ${twin.name}`);
    const list: PairedWait[] = [];
    for (const { own, word } of this.pending) {
      const { request } = own;
      if (request.kind !== 'send' || request.done) continue;
      const isFirst = list.length === 0 && awaited.length > 0;
      const phase = isFirst
        ? `not sent: ${awaited.join(' and ')} has not come to this message`
        : 'not sent: messages before it are not compared';
      list.push({ kind: 'send', request, peer: word.dest, tag: word.tag, ctx: word.ctx, bytes: word.bytes, phase });
    }
    return list;
  }

  /** Compares messages and words as far as all are here. */
  protected compare(): void {
    while (this.isSound && this.isAlone && this.pending.size > 0) this.transmit(this.pending.shift() as Outgoing);
    while (this.isSound) {
      const message = this.pending.peek();
      if (message === undefined || message.state === 'OUTVOTED') break;
      const words = this.takeWords();
      if (words === undefined) break;
      this.counters.compared++;
      this.judge(message, words);
    }
    this.lookAtEnd();
  }

  /** One of each shadow; undefined: not all are here. */
  private takeWords(): Word[] | undefined {
    if (this.isAlone) return undefined;
    for (const { words } of this.living) if (words.peek()?.digest === undefined) return undefined;
    return this.living.map(({ words }) => {
      const { word, digest } = words.shift() as Heard;
      return { ...word, digest: digest as Uint8Array };
    });
  }

  private judge(message: Outgoing, words: readonly Word[]): void {
    const verdict = vote(message.word, words);
    if (verdict.kind === 'none') return this.differs(message, words, verdict.difference);
    if (verdict.kind === 'outvoted') return this.outvoted(message, words, verdict.difference);
    const { loser } = verdict;
    const link = loser && this.living[loser.index];
    if (loser?.difference === 'digest' && link !== undefined) {
      this.blame(message, link, words[loser.index].digest);
      if (message.word.dest === NOBODY && !this.keepRight(message)) return;
    }
    this.pending.shift();
    this.transmit(message);
    if (loser !== undefined && loser.difference !== 'digest' && link !== undefined)
      this.part(link, this.textOf(message, words[loser.index], loser.difference, link));
  }

  private transmit(message: Outgoing): void {
    message.state = moveMessage(message.state, 'VOUCHED');
    const { word, buffer, signature, canGiveUp } = message;
    this.lastVouched = word;
    this.options.wake();
    if (word.dest === NOBODY) return this.sent(message, undefined);
    const inner = this.pml.isend(this.numberOf(word.dest), word.ctx, word.tag, buffer, word.sync, signature, canGiveUp);
    this.options.takeovers?.noteLogged();
    message.inner = inner;
    if (inner.done) return this.sent(message, inner);
    this.followSend(message, inner);
  }

  protected followSend(message: Outgoing, inner: SendRequest): void {
    const { own } = message;
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
    if (!this.open.has(message.own.number)) return;
    if (message.right !== undefined) {
      this.ready.push(readyOf(message.own, { bytes: message.right }));
      this.options.wake();
    } else this.end(message.own, inner, inner?.error);
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

  // ---------------------------------------------------------------- votes

  /** Both shadows say the same, and the lead something else. */
  private outvoted(message: Outgoing, words: readonly Word[], difference: Difference): void {
    // A shadow cannot take the place of its lead.
    if (difference !== 'digest') return this.differs(message, words, difference);
    message.state = moveMessage(message.state, 'OUTVOTED');
    const { digest } = words[0];
    message.majority = digest;
    this.blame(message, undefined, digest);
    if (this.options.compare === 'full') return this.correct(message, digest);
    this.say().diverged(message.word.message, '');
    this.flush();
    for (const link of this.living) link.asked = message.word.message;
    this.options.wake();
  }

  /** What a shadow would have sent is here: what the majority has vouched for leaves, if it is that. */
  protected takeEvidence(link: Link, number: number, bytes: Uint8Array): void {
    if (link.asked === number) link.asked = undefined;
    if (this.differing !== undefined) {
      if (this.differing.link === link) this.show(bytes);
      return;
    }
    const message = this.pending.peek();
    if (!this.isSound || message?.state !== 'OUTVOTED' || message.word.message !== number) return;
    const digest = this.options.digest(new Iov([bytes]));
    if (firstDifference(digest, message.majority as Uint8Array) === -1) this.correct(message, bytes);
    else this.lookAtOutvoted();
  }

  /** Nobody is left who could have the bytes of the majority. */
  private lookAtOutvoted(): void {
    const message = this.pending.peek();
    if (!this.isSound || message?.state !== 'OUTVOTED' || this.living.some(({ asked }) => asked !== undefined)) return;
    this.diverge(
      `${describeWord(message.word)}, of which both shadows had other bytes than the lead, cannot be had of a shadow any more; nothing of it has left`,
    );
  }

  private correct(message: Outgoing, bytes: Uint8Array): void {
    if (message.word.dest === NOBODY) this.heal(message.own.request as SendRequest, message.buffer, bytes);
    else message.buffer = new Iov([bytes]);
    this.counters.corrected++;
    // Nobody is waited for any more.
    for (const link of this.living) link.asked = undefined;
    this.pending.shift();
    this.transmit(message);
    this.compare();
  }

  /** For a shadow whose result is another one. False: the lead has not what it has vouched for any more. */
  private keepRight(message: Outgoing): boolean {
    const bytes = bytesOf(message.buffer);
    if (firstDifference(this.options.digest(new Iov([bytes])), message.word.digest) === -1) {
      message.right = bytes;
      return true;
    }
    this.diverge(`${describeWord(message.word)}, was changed at the lead after its digest was made`);
    return false;
  }

  /** Two have agreed, and that one has not; undefined: the lead has not. */
  private blame(message: Outgoing, link: Link | undefined, digest: Uint8Array): void {
    this.counters.outvoted++;
    if (link === undefined ? this.isBlamed : link.isBlamed) return;
    if (link === undefined) this.isBlamed = true;
    else link.isBlamed = true;
    const { rank, self, compare } = this.options;
    const { number, name } = link?.twin ?? { number: self, name: 'lead' };
    const [own, other] = link === undefined ? [message.word.digest, digest] : [digest, message.word.digest];
    const digests = compare === 'full' ? '' : `: ${compare} ${hexOf(own)}, and ${hexOf(other)} at the two others`;
    const what = message.word.dest === NOBODY ? 'it gets theirs' : 'theirs is sent, now and when it differs again';
    this.options.onOutvoted?.(
      number,
      `the ${name} of rank ${rank} (process ${number}) is outvoted in ${describeWord(message.word)}${digests}; ${what}`,
    );
  }

  // ---------------------------------------------------------------- differences

  private textOf(message: Outgoing, word: Word, difference: Exclude<Difference, 'digest'>, { twin }: Link): string {
    const { field, lead, shadow } = difference;
    const text = describeWord(message.word);
    return `${text} at the lead is ${describeWord(word)} at the ${twin.name} (${field} ${lead} and ${shadow})`;
  }

  private differs(message: Outgoing, words: readonly Word[], difference: Difference): void {
    message.state = moveMessage(message.state, 'HELD');
    this.pending.shift();
    const [link] = this.living;
    if (difference !== 'digest') return this.diverge(`${this.textOf(message, words[0], difference, link)}; nothing of it has left`);
    this.state = movePair(this.state, 'DIFFERING');
    this.differing = { message, words, link };
    if (this.options.compare === 'full') return this.show(words[0].digest);
    this.say().diverged(message.word.message, '');
    this.flush();
    this.options.wake();
  }

  /** What the shadow would have sent is here; undefined: it does not come. */
  show(bytes: Uint8Array | undefined): void {
    if (this.state !== 'DIFFERING' || this.differing === undefined) return;
    const { message, words } = this.differing;
    const { compare } = this.options;
    let where = 'where is not known: the shadow does not answer';
    if (bytes !== undefined) {
      const offset = firstDifference(bytesOf(message.buffer), bytes);
      where =
        offset === -1
          ? 'not in its bytes any more: one of the digests was wrong, or the bytes were changed after it was made'
          : `first at byte ${offset}`;
    }
    const others = this.living.map(({ twin }, i) => `, ${hexOf(words[i].digest)} at the ${twin.name}`).join('');
    const digests = compare === 'full' ? '' : `; ${compare} ${hexOf(message.word.digest)} at the lead${others}`;
    this.diverge(`${describeWord(message.word)}, differs, ${where}${digests}; nothing of it has left`);
  }

  protected get lastCommon(): string {
    return this.lastVouched === undefined ? 'the beginning of the program' : describeWord(this.lastVouched);
  }

  protected end(own: Own, inner: SendRequest | RecvRequest | undefined, error: MultirailError | undefined): void {
    this.ready.push(readyOf(own, { inner, error }));
    this.options.wake();
  }
}
