// The oracle: a naive reference of MPI matching, and the invariants I1-I9 of the design, compared with what the production code does. It
// knows nothing of protocols, rails or epochs: only commands, matches, completions and bytes.
import { MultirailError } from '../../src/errors.ts';
import { ANY } from '../../src/pml/match.ts';
import type { RecvRequest, SendRequest } from '../../src/pml/records.ts';
import { uninitialized } from './gather.ts';

/** Something that must never happen did. */
export class OracleError extends Error {
  constructor(message: string) {
    super(`oracle: ${message}`);
    this.name = 'OracleError';
  }
}

export interface SentMessage {
  readonly index: number;
  readonly source: number;
  readonly dest: number;
  readonly ctx: number;
  readonly tag: number;
  readonly bytes: number;
  readonly sync: boolean;
  readonly buffer: Uint8Array;
  /** Nobody will receive it: it ends when its receiver leaves the job. */
  readonly abandoned: boolean;
  request: SendRequest | undefined;
  matchedBy: PostedReceive | undefined;
  done: boolean;
  /** Its user gave it up: it may end so. */
  givenUp?: boolean;
}

export interface PostedReceive {
  readonly rank: number;
  readonly ctx: number;
  readonly source: number;
  readonly tag: number;
  readonly buffer: Uint8Array;
  request: RecvRequest | undefined;
  matched: SentMessage | undefined;
  done: boolean;
  cancelled: boolean;
}

/** The byte at `offset` of message `index`: every message has its own pattern, and every offset its own byte. */
export function patternByte(index: number, offset: number): number {
  return (index * 131 + offset * 7 + (offset >>> 8) * 13 + 1) & 0xff;
}

/** The pattern repeats itself after so many bytes. */
const PATTERN_BYTES = 64 * 1024;
/** One period each: there are no more than 256, since bytes differ by the index times a constant. */
const patterns: Uint8Array[] = [];

function patternOf(index: number): Uint8Array {
  const known = patterns[index & 0xff];
  if (known !== undefined) return known;
  const made = new Uint8Array(PATTERN_BYTES);
  for (let i = 0; i < made.length; i++) made[i] = patternByte(index, i);
  patterns[index & 0xff] = made;
  return made;
}

export function fillPattern(index: number, buffer: Uint8Array): void {
  const pattern = patternOf(index);
  for (let at = 0; at < buffer.length; at += PATTERN_BYTES) buffer.set(pattern.subarray(0, buffer.length - at), at);
}

/** The first of `bytes` bytes that is not as in the pattern; -1 when all are. */
function firstWrong(index: number, buffer: Uint8Array, bytes: number): number {
  const pattern = patternOf(index);
  for (let at = 0; at < bytes; at += PATTERN_BYTES) {
    const part = buffer.subarray(at, Math.min(bytes, at + PATTERN_BYTES));
    if (Buffer.compare(part, pattern.subarray(0, part.length)) === 0) continue;
    return at + part.findIndex((byte, i) => pattern[i] !== byte);
  }
  return -1;
}

const UNTOUCHED = 0xa5;
const REUSED = 0x77;

/** Every byte from `from` on has that value. */
function isAll(value: typeof UNTOUCHED | typeof REUSED, buffer: Uint8Array, from: number): boolean {
  const blank = blanks[value];
  for (let at = from; at < buffer.length; at += BLANK_BYTES) {
    const part = buffer.subarray(at, at + BLANK_BYTES);
    if (Buffer.compare(part, blank.subarray(0, part.length)) !== 0) return false;
  }
  return true;
}
const BLANK_BYTES = 64 * 1024;
const blanks = { [UNTOUCHED]: new Uint8Array(BLANK_BYTES).fill(UNTOUCHED), [REUSED]: new Uint8Array(BLANK_BYTES).fill(REUSED) };

/** A receive buffer before anything is written into it. */
export function freshBuffer(bytes: number): Uint8Array {
  return uninitialized(bytes).fill(UNTOUCHED);
}

export class Oracle {
  readonly sent: SentMessage[] = [];
  readonly posted: PostedReceive[] = [];
  /** Not yet matched, in the order of sending, by (ctx, source, dest). */
  private readonly unmatched = new Map<string, SentMessage[]>();
  /** Not yet matched, in the order of posting, by (rank, ctx). */
  private readonly waiting = new Map<string, PostedReceive[]>();
  private readonly byRecvRequest = new Map<RecvRequest, PostedReceive>();
  matches = 0;
  /** Ranks whose process is dead: nothing of theirs is waited for. */
  readonly dead = new Set<number>();
  /** Whether what this rank has under way with that one may end with an error: dead, out of reach, or gone. ANY: with everybody. */
  mayFail: (rank: number, peer: number) => boolean = () => false;
  /** "rank/ctx": revoked there. */
  private readonly revoked = new Set<string>();
  /** Told of each message that was sent, and of each that has arrived whole. */
  onSent: ((message: SentMessage) => void) | undefined;
  onDelivered: ((message: SentMessage) => void) | undefined;
  /** Told of memory that is its user's again. */
  onGivenBack: ((memory: Uint8Array) => void) | undefined;

  send(message: SentMessage): void {
    this.sent.push(message);
    this.onSent?.(message);
    const key = `${message.ctx}/${message.source}/${message.dest}`;
    const list = this.unmatched.get(key);
    if (list === undefined) this.unmatched.set(key, [message]);
    else list.push(message);
  }

  /** Called before the receive is given to the PML, which may match it at once. */
  post(receive: PostedReceive): void {
    this.posted.push(receive);
    const key = `${receive.rank}/${receive.ctx}`;
    const list = this.waiting.get(key);
    if (list === undefined) this.waiting.set(key, [receive]);
    else list.push(receive);
  }

  bind(receive: PostedReceive, request: RecvRequest): void {
    receive.request = request;
    this.byRecvRequest.set(request, receive);
  }

  private takes(receive: PostedReceive, source: number, tag: number): boolean {
    return (receive.source === ANY || receive.source === source) && (receive.tag === ANY || receive.tag === tag);
  }

  /**
   * The PML matched a message with a receive. Legal if and only if no earlier unmatched message of the same flow fits this
   * receive, and no earlier posted unmatched receive fits this message (MPI-4.1, 3.5). `nth` names the message: the PML
   * tells only source, ctx and tag, so the first unmatched message of the flow with that tag is the one.
   */
  match(rank: number, ctx: number, source: number, tag: number, messageBytes: number, request: RecvRequest): void {
    // A receive that matches while it is being posted is not bound yet: it is the last one posted.
    const waiting = this.waiting.get(`${rank}/${ctx}`) ?? [];
    const receive =
      this.byRecvRequest.get(request) ??
      waiting.find((r) => r.request === undefined && r.buffer === request.buffer.views[0]) ??
      waiting.find((r) => r.request === undefined);
    if (receive === undefined) throw new OracleError(`rank ${rank} matched a receive that was never posted`);
    if (receive.matched !== undefined) throw new OracleError(`I1: a receive of rank ${rank} matched twice`);
    if (receive.cancelled) throw new OracleError(`I7: a cancelled receive of rank ${rank} matched`);
    if (this.isRevoked(rank, ctx)) throw new OracleError(`I7: a receive of rank ${rank} matched on context ${ctx}, which is revoked there`);
    if (!this.takes(receive, source, tag)) throw new OracleError(`a receive of rank ${rank} matched a message that it does not fit`);
    const older = waiting.find(
      (other) => other !== receive && this.takes(other, source, tag) && waiting.indexOf(other) < waiting.indexOf(receive),
    );
    if (older !== undefined) throw new OracleError(`I2: rank ${rank} passed over an older receive for (${source}, ${tag})`);
    const flow = this.unmatched.get(`${ctx}/${source}/${rank}`) ?? [];
    const at = flow.findIndex((message) => receive.tag === ANY || message.tag === receive.tag);
    if (at < 0) throw new OracleError(`I1: rank ${rank} matched a message of ${source} with tag ${tag} that was never sent, or twice`);
    const message = flow[at];
    if (message.tag !== tag || message.bytes !== messageBytes) {
      throw new OracleError(
        `I2: rank ${rank} matched (tag ${tag}, ${messageBytes} bytes) of ${source} before message ${message.index} (tag ${message.tag}, ${message.bytes} bytes)`,
      );
    }
    flow.splice(at, 1);
    waiting.splice(waiting.indexOf(receive), 1);
    receive.matched = message;
    message.matchedBy = receive;
    this.matches++;
  }

  /** The PML took the receive back: from this moment on it must not match. */
  cancel(receive: PostedReceive): void {
    if (receive.matched !== undefined) throw new OracleError('a matched receive was cancelled');
    receive.cancelled = true;
    const waiting = this.waiting.get(`${receive.rank}/${receive.ctx}`) ?? [];
    waiting.splice(waiting.indexOf(receive), 1);
  }

  /** The context is revoked at that rank: from this moment on nothing of it matches there, and what is under way on it may end so. */
  revoke(rank: number, ctx: number): void {
    this.revoked.add(`${rank}/${ctx}`);
    this.waiting.delete(`${rank}/${ctx}`);
  }

  isRevoked(rank: number, ctx: number): boolean {
    return this.revoked.has(`${rank}/${ctx}`);
  }

  sendDone(message: SentMessage, atOnce: boolean): void {
    if (message.done) throw new OracleError(`I7: send ${message.index} completed twice`);
    message.done = true;
    this.onGivenBack?.(message.buffer);
    const error = message.request?.error;
    if (error !== undefined) {
      // Given up, its message may still arrive, whole: and the buffer is the user's again.
      if (error.code === 'ERR_TIMEOUT' && message.givenUp === true) message.buffer.fill(REUSED);
      else if (error.code === 'ERR_REVOKED' && this.isRevoked(message.source, message.ctx)) message.buffer.fill(REUSED);
      else this.checkError(error, message.source, message.dest, `send ${message.index}`);
      return;
    }
    const { matchedBy } = message;
    // A receiver where the context is revoked takes what comes into nothing.
    const isTaken = this.isRevoked(message.dest, message.ctx);
    if (message.sync && matchedBy === undefined && !isTaken)
      throw new OracleError(`synchronous send ${message.index} completed before its match`);
    // An eager send is done on return; whatever ends later ends because all of it has arrived.
    if (!atOnce && !isTaken) {
      if (matchedBy === undefined) throw new OracleError(`I5: send ${message.index} ended well and was never matched`);
      if (!matchedBy.done) this.checkArrived(matchedBy, message);
    }
    // The buffer is the user's again: the user changes it at once, so that anything still read from it shows.
    message.buffer.fill(0xee);
  }

  recvDone(receive: PostedReceive): void {
    if (receive.done) throw new OracleError(`I7: a receive of rank ${receive.rank} completed twice`);
    receive.done = true;
    const { request, matched } = receive;
    if (request === undefined) throw new OracleError('a receive completed before it was posted');
    if (request.cancelled) {
      if (!receive.cancelled) throw new OracleError('a receive that was not cancelled completed as cancelled');
    } else if (request.error?.code === 'ERR_REVOKED') {
      if (!this.isRevoked(receive.rank, receive.ctx))
        throw new OracleError(
          `a receive of rank ${receive.rank} ended with ERR_REVOKED on context ${receive.ctx}, which is not revoked there`,
        );
    } else if (request.error !== undefined && request.error.code !== 'ERR_TRUNCATE') {
      // Ended by the death of its peer: the bytes are undefined, but final.
      this.checkError(request.error, receive.rank, matched?.source ?? receive.source, `a receive of rank ${receive.rank}`);
    } else {
      if (matched === undefined) throw new OracleError('a receive completed without a match');
      const expected = Math.min(matched.bytes, receive.buffer.length);
      if (request.receivedBytes !== expected)
        throw new OracleError(`I3: message ${matched.index}: ${request.receivedBytes} bytes received, expected ${expected}`);
      if (request.matchedSource !== matched.source || request.matchedTag !== matched.tag)
        throw new OracleError(`status of message ${matched.index} is wrong`);
      if ((request.error?.code === 'ERR_TRUNCATE') !== matched.bytes > receive.buffer.length)
        throw new OracleError(`truncation of message ${matched.index} is wrong`);
      this.checkBytes(receive, matched, expected);
      this.onDelivered?.(matched);
    }
    this.onGivenBack?.(receive.buffer);
    // The buffer is the user's again, who writes something else into it: even a late write of the same bytes shows.
    receive.buffer.fill(REUSED);
  }

  /** An error is a right one when it says that the peer is gone, and the peer is. */
  private checkError(error: MultirailError, rank: number, peer: number, what: string): void {
    if (error.code !== 'ERR_PROC_FAILED' && error.code !== 'ERR_PROC_UNREACHABLE')
      throw new OracleError(`${what} ended with ${error.code}: ${error.message}`);
    if (!this.mayFail(rank, peer)) throw new OracleError(`I5: ${what} ended with ${error.code} though nothing parts it from rank ${peer}`);
  }

  /** Every byte that the receive takes lies in its buffer, whether its own side knows or not. */
  private checkArrived(receive: PostedReceive, message: SentMessage): void {
    const bytes = Math.min(message.bytes, receive.buffer.length);
    const wrong = firstWrong(message.index, receive.buffer, bytes);
    if (wrong >= 0) throw new OracleError(`I3: send ${message.index} ended well, and byte ${wrong} of ${bytes} has not arrived`);
  }

  private checkBytes(receive: PostedReceive, message: SentMessage, expected: number): void {
    const wrong = firstWrong(message.index, receive.buffer, expected);
    if (wrong >= 0)
      throw new OracleError(`I3: message ${message.index} of ${message.source} to ${message.dest}: byte ${wrong} of ${expected} is wrong`);
    if (!isAll(UNTOUCHED, receive.buffer, expected))
      throw new OracleError(`I3: message ${message.index}: a byte beyond its end was written`);
  }

  /** At any time: no completed receive's bytes have changed. */
  checkUnchanged(): void {
    for (const receive of this.posted) {
      if (receive.done && !isAll(REUSED, receive.buffer, 0)) {
        throw new OracleError(`I3: a byte changed after message ${receive.matched?.index} to rank ${receive.rank} was complete`);
      }
    }
  }

  /** Some message has no receiver. */
  get abandons(): boolean {
    return this.sent.some((message) => message.abandoned);
  }

  /** When all have left: a send that nobody received has ended too. */
  checkAbandoned(): void {
    for (const { abandoned, done, index, source } of this.sent)
      if (abandoned && !done && !this.dead.has(source)) throw new OracleError(`I5: send ${index} that nobody received did not end`);
  }

  /** As unfinished().length === 0, but asked at every step. */
  get isFinished(): boolean {
    // From the end: what began last ends last.
    for (let i = this.sent.length - 1; i >= 0; i--) if (this.isSendOpen(this.sent[i])) return false;
    for (let i = this.posted.length - 1; i >= 0; i--) if (this.isReceiveOpen(this.posted[i])) return false;
    return true;
  }

  private isSendOpen(message: SentMessage): boolean {
    return !message.done && !message.abandoned && !this.dead.has(message.source);
  }

  private isReceiveOpen(receive: PostedReceive): boolean {
    return !receive.done && !this.dead.has(receive.rank);
  }

  /** What has not ended. Empty when all is well. */
  unfinished(): string[] {
    const lines: string[] = [];
    for (const message of this.sent) {
      if (this.isSendOpen(message))
        lines.push(`send ${message.index} ${message.source}->${message.dest} ctx ${message.ctx} tag ${message.tag} ${message.bytes} bytes`);
    }
    for (const receive of this.posted) {
      if (this.isReceiveOpen(receive))
        lines.push(
          `receive at ${receive.rank} ctx ${receive.ctx} from ${receive.source} tag ${receive.tag}${receive.matched === undefined ? '' : ` (message ${receive.matched.index})`}`,
        );
    }
    return lines;
  }
}

export function isOracleFailure(error: unknown): boolean {
  return error instanceof OracleError || (error instanceof MultirailError && error.code === 'ERR_INTERNAL');
}
