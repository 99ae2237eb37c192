// The oracle: a naive reference of MPI matching, and the invariants I1-I9 of the design, held against what the production
// code does. It knows nothing of protocols, rails or epochs: only commands, matches, completions and bytes.
import { MultirailError } from '../errors.ts';
import { ANY } from '../pml/match.ts';
import type { RecvRequest, SendRequest } from '../pml/records.ts';

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
  request: SendRequest | undefined;
  matchedBy: PostedReceive | undefined;
  done: boolean;
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
  /** Hash of the buffer when it was completed: no byte may change afterwards (I3). */
  hash: number;
}

/** The byte at `offset` of message `index`: every message has its own pattern, and every offset its own byte. */
export function patternByte(index: number, offset: number): number {
  return (index * 131 + offset * 7 + (offset >>> 8) * 13 + 1) & 0xff;
}

export function fillPattern(index: number, buffer: Uint8Array): void {
  for (let i = 0; i < buffer.length; i++) buffer[i] = patternByte(index, i);
}

function hashBytes(bytes: Uint8Array): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < bytes.length; i++) hash = Math.imul(hash ^ bytes[i], 0x01000193);
  return hash >>> 0;
}

const UNTOUCHED = 0xa5;
const REUSED = 0x77;

/** A receive buffer before anything is written into it. */
export function freshBuffer(bytes: number): Uint8Array {
  return new Uint8Array(bytes).fill(UNTOUCHED);
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

  send(message: SentMessage): void {
    this.sent.push(message);
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

  sendDone(message: SentMessage): void {
    if (message.done) throw new OracleError(`I7: send ${message.index} completed twice`);
    message.done = true;
    if (message.request?.error !== undefined) return;
    if (message.sync && message.matchedBy === undefined)
      throw new OracleError(`synchronous send ${message.index} completed before its match`);
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
    } else if (request.error !== undefined && request.error.code !== 'ERR_TRUNCATE') {
      // Ended by the death of its peer: the bytes are undefined, but final.
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
    }
    // The buffer is the user's again, who writes something else into it: even a late write of the same bytes shows.
    receive.buffer.fill(REUSED);
    receive.hash = hashBytes(receive.buffer);
  }

  private checkBytes(receive: PostedReceive, message: SentMessage, expected: number): void {
    for (let i = 0; i < expected; i++) {
      if (receive.buffer[i] !== patternByte(message.index, i)) {
        throw new OracleError(`I3: message ${message.index} of ${message.source} to ${message.dest}: byte ${i} of ${expected} is wrong`);
      }
    }
    for (let i = expected; i < receive.buffer.length; i++) {
      if (receive.buffer[i] !== UNTOUCHED) throw new OracleError(`I3: message ${message.index}: a byte beyond its end was written`);
    }
  }

  /** At any time: no completed receive's bytes have changed. */
  checkUnchanged(): void {
    for (const receive of this.posted) {
      if (receive.done && hashBytes(receive.buffer) !== receive.hash) {
        throw new OracleError(`I3: a byte changed after message ${receive.matched?.index} to rank ${receive.rank} was complete`);
      }
    }
  }

  /** What has not ended. Empty when all is well. */
  unfinished(): string[] {
    const lines: string[] = [];
    for (const message of this.sent) {
      if (!message.done)
        lines.push(`send ${message.index} ${message.source}->${message.dest} ctx ${message.ctx} tag ${message.tag} ${message.bytes} bytes`);
    }
    for (const receive of this.posted) {
      if (!receive.done)
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
