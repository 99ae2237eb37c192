// What the replicas of a rank say to each other, in batches: one for each turn in which there is something to say. A batch is a row of
// records; a number has seven bits a byte, lowest first, and one that may be negative comes with three added. Version 3:
//
//   version u8, then records: kind u8, and what the table below says
//
// Bytes longer than INLINE_BYTES_MAX are no part of the batch: they follow as messages of their own, in the order of their records. What
// breaks the format is refused. Pure.
import { MultirailError } from '../../errors.ts';
import { putVarint, VarintReader } from '../../util/varint.ts';
import type { Word } from './digest.ts';
import { decodeBelow, encodeBelow, type TakenNumbers } from './streams.ts';

export const BATCH_VERSION = 3;
/** A batch is no longer. */
export const BATCH_BYTES_MAX = 65_536;
/** Bytes of a record that travel with it. */
export const INLINE_BYTES_MAX = 4096;
/** Of a text. */
const TEXT_BYTES_MAX = 2048;
/** A record without bytes and text is no longer. */
const RECORD_BYTES_MAX = 128;

/** Kinds of records, with what they hold and who says them. Numbers are never used again. */
export const RECORD = {
  /** Shadow: a send: request, message, ctx, dest + 3, tag, bytes, sync, digest. */
  VOUCH: 32,
  /** Lead: its messages up to that one were equal at both, of three at two. */
  VOUCHED: 33,
  /** Lead: a request has ended: how, and for a receive its bytes. */
  FORWARD: 34,
  /** Either: the replicas differ: message (0: not in one of them), text. To a shadow it is the question what it would have sent. */
  DIVERGED: 35,
  /** Lead: the requests that were said to have ended since the last one end now: number of the blocking call; 0: between calls. */
  BURST: 36,
  /** Lead: what so many looks have found: count, and the values of the last one. */
  LOOK: 37,
  /** Lead: that blocking call has come to the end of its time. */
  OVER: 38,
  /** Shadow: bytes of bursts that it has taken. */
  CONSUMED: 39,
  /** Shadow: what it would have sent: message, bytes. */
  EVIDENCE: 40,
  /** Either: the program has come to its end: messages, requests. */
  FINISHED: 41,
  /** Either: how far are you? */
  ASK: 42,
  /** Either, when it is asked: requests that it has begun. */
  HERE: 43,
  /** Lead of two shadows: the one whose process has that number is to end itself: number, text. */
  LEAVE: 44,
  /** Shadow, when it is asked by TELL: of what that lead has sent on a context, all below a number is received: lead + 3, ctx, number + 1; 0: all. */
  TAKEN: 45,
  /** Lead: of what was sent to that lead on a context, all below a number is never asked for again: as TAKEN. */
  PEER_HAS: 46,
  /** Lead: what have you received? */
  TELL: 47,
  /** Either, to replicas on other hosts: where its processor time can be asked for: text. */
  CLOCK: 48,
} as const;

/** How a request has ended. */
export interface Ended {
  readonly request: number;
  /** Of the receive as it was posted; both replicas must have posted the same. */
  readonly pattern: number;
  readonly source: number;
  readonly tag: number;
  /** Number of the message in its flow; -1: there is no message. */
  readonly seq: number;
  readonly signature: number;
  readonly cancelled: boolean;
  readonly error: { readonly code: string; readonly text: string; readonly peer: number | undefined } | undefined;
  /** Length of the message that a probe has found; otherwise that of `data`. */
  readonly bytes: number;
  /** What was received, of a result what is right; undefined: it comes as a message of its own, or there is nothing. */
  readonly data: Uint8Array | undefined;
  /** It comes as a message of its own. */
  readonly isBulk: boolean;
}

export type PairRecord =
  | { readonly kind: 'VOUCH'; readonly word: Omit<Word, 'digest'>; readonly digest: Uint8Array | undefined; readonly digestBytes: number }
  | { readonly kind: 'VOUCHED'; readonly message: number }
  | { readonly kind: 'FORWARD'; readonly ended: Ended }
  | { readonly kind: 'DIVERGED'; readonly message: number; readonly text: string }
  | { readonly kind: 'BURST'; readonly call: number }
  | { readonly kind: 'LOOK'; readonly count: number; readonly values: readonly number[] }
  | { readonly kind: 'OVER'; readonly call: number }
  | { readonly kind: 'CONSUMED'; readonly bytes: number }
  | { readonly kind: 'EVIDENCE'; readonly message: number; readonly bytes: number; readonly data: Uint8Array | undefined }
  | { readonly kind: 'ASK' }
  | { readonly kind: 'HERE'; readonly requests: number }
  | { readonly kind: 'LEAVE'; readonly number: number; readonly text: string }
  | { readonly kind: 'TAKEN' | 'PEER_HAS'; readonly taken: TakenNumbers }
  | { readonly kind: 'TELL' }
  | { readonly kind: 'CLOCK'; readonly address: string }
  | { readonly kind: 'FINISHED'; readonly messages: number; readonly requests: number };

const SYNC = 1;
const CANCELLED = 1;
const HAS_ERROR = 2;
const IS_BULK = 4;
const HAS_DATA = 8;

/** A number that may be -2, -1, or 0 and up. */
const OFFSET = 3;

/** Collects records, and hands them out in batches. */
export class BatchWriter {
  private bytes = new Uint8Array(1024);
  private at = 1;

  get isEmpty(): boolean {
    return this.at === 1;
  }

  /** There may be no room for another record with that many bytes. */
  isFullFor(bytes: number): boolean {
    return this.at + RECORD_BYTES_MAX + TEXT_BYTES_MAX + bytes > BATCH_BYTES_MAX;
  }

  private room(bytes: number): void {
    if (this.at + bytes <= this.bytes.length) return;
    const larger = new Uint8Array(Math.max(this.bytes.length * 2, this.at + bytes));
    larger.set(this.bytes.subarray(0, this.at));
    this.bytes = larger;
  }

  private begin(kind: number, bytes = 0): void {
    this.room(RECORD_BYTES_MAX + bytes);
    this.bytes[this.at++] = kind;
  }

  private put(value: number): void {
    this.at = putVarint(this.bytes, this.at, value);
  }

  private putBytes(bytes: Uint8Array): void {
    this.put(bytes.length);
    this.bytes.set(bytes, this.at);
    this.at += bytes.length;
  }

  private putText(text: string): void {
    const bytes = new TextEncoder().encode(text);
    this.putBytes(bytes.length > TEXT_BYTES_MAX ? bytes.subarray(0, TEXT_BYTES_MAX) : bytes);
  }

  /** True: the digest has to follow as a message of its own. */
  vouch({ request, message, ctx, dest, tag, bytes, sync, digest }: Word): boolean {
    const isBulk = digest.length > INLINE_BYTES_MAX;
    this.begin(RECORD.VOUCH, isBulk ? 0 : digest.length);
    for (const value of [request, message, ctx, dest + OFFSET, tag, bytes, sync ? SYNC : 0]) this.put(value);
    this.put(digest.length);
    if (!isBulk) {
      this.bytes.set(digest, this.at);
      this.at += digest.length;
    }
    return isBulk;
  }

  vouched(message: number): void {
    this.begin(RECORD.VOUCHED);
    this.put(message);
  }

  forward({ request, pattern, source, tag, seq, signature, cancelled, error, bytes, data, isBulk }: Ended): void {
    this.begin(RECORD.FORWARD, (data?.length ?? 0) + TEXT_BYTES_MAX);
    const flags =
      (cancelled ? CANCELLED : 0) | (error === undefined ? 0 : HAS_ERROR) | (isBulk ? IS_BULK : 0) | (data === undefined ? 0 : HAS_DATA);
    for (const value of [request, pattern, source + OFFSET, tag + OFFSET, seq + OFFSET, signature, flags, bytes]) this.put(value);
    if (data !== undefined) this.putBytes(data);
    if (error === undefined) return;
    this.putText(error.code);
    this.putText(error.text);
    this.put((error.peer ?? -1) + OFFSET);
  }

  diverged(message: number, text: string): void {
    this.begin(RECORD.DIVERGED, TEXT_BYTES_MAX);
    this.put(message);
    this.putText(text);
  }

  burst(call: number): void {
    this.begin(RECORD.BURST);
    this.put(call);
  }

  look(count: number, values: readonly number[]): void {
    this.begin(RECORD.LOOK);
    this.put(count);
    this.put(values.length);
    for (const value of values) this.put(value + OFFSET);
  }

  over(call: number): void {
    this.begin(RECORD.OVER);
    this.put(call);
  }

  consumed(bytes: number): void {
    this.begin(RECORD.CONSUMED);
    this.put(bytes);
  }

  /** True: the bytes have to follow as a message of their own. */
  evidence(message: number, bytes: Uint8Array): boolean {
    const isBulk = bytes.length > INLINE_BYTES_MAX;
    this.begin(RECORD.EVIDENCE, isBulk ? 0 : bytes.length);
    this.put(message);
    this.put(bytes.length);
    if (!isBulk) {
      this.bytes.set(bytes, this.at);
      this.at += bytes.length;
    }
    return isBulk;
  }

  ask(): void {
    this.begin(RECORD.ASK);
  }

  here(requests: number): void {
    this.begin(RECORD.HERE);
    this.put(requests);
  }

  leave(number: number, text: string): void {
    this.begin(RECORD.LEAVE, TEXT_BYTES_MAX);
    this.put(number);
    this.putText(text);
  }

  taken(taken: TakenNumbers): void {
    this.takenNumbers(RECORD.TAKEN, taken);
  }

  peerHas(taken: TakenNumbers): void {
    this.takenNumbers(RECORD.PEER_HAS, taken);
  }

  private takenNumbers(kind: number, { peer, ctx, below }: TakenNumbers): void {
    this.begin(kind);
    this.put(peer + OFFSET);
    this.put(ctx);
    this.put(encodeBelow(below));
  }

  tell(): void {
    this.begin(RECORD.TELL);
  }

  clock(address: string): void {
    this.begin(RECORD.CLOCK, TEXT_BYTES_MAX);
    this.putText(address);
  }

  finished(messages: number, requests: number): void {
    this.begin(RECORD.FINISHED);
    this.put(messages);
    this.put(requests);
  }

  /** The batch, in memory of its own; the next one begins. */
  take(): Uint8Array {
    this.bytes[0] = BATCH_VERSION;
    const batch = this.bytes.slice(0, this.at);
    this.at = 1;
    return batch;
  }
}

function broken(what: string): MultirailError {
  return new MultirailError(
    'ERR_PROTOCOL',
    `what the other replica says cannot be read: ${what}; run the same version of multirail on all ranks`,
  );
}

/**
 * The records of a batch; bytes are copies.
 * @throws ERR_PROTOCOL: it is no batch of this version, or not all of one.
 */
export function decodeBatch(bytes: Uint8Array): PairRecord[] {
  const reader = new VarintReader(bytes, broken, 'it ends');
  const take = (): number => reader.number();
  const numbers = (count: number): number[] => {
    const list: number[] = [];
    while (list.length < count) list.push(take());
    return list;
  };
  const piece = (length: number): Uint8Array => reader.piece(length);
  const text = (): string => new TextDecoder().decode(piece(take()));
  const inline = (length: number): Uint8Array | undefined => (length > INLINE_BYTES_MAX ? undefined : piece(length));
  const version = reader.byte();
  if (version !== BATCH_VERSION) throw broken(`version ${version}, expected ${BATCH_VERSION}`);
  const records: PairRecord[] = [];
  const takenNumbers = (): TakenNumbers => {
    const [peer, ctx, number] = numbers(3);
    return { peer: peer - OFFSET, ctx, below: decodeBelow(number) };
  };
  const one = (kind: number): PairRecord => {
    switch (kind) {
      case RECORD.VOUCH: {
        const [request, message, ctx, dest, tag, length, flags, digestBytes] = numbers(8);
        const word = { request, message, ctx, dest: dest - OFFSET, tag, bytes: length, sync: flags === SYNC };
        return { kind: 'VOUCH', word, digestBytes, digest: inline(digestBytes) };
      }
      case RECORD.VOUCHED:
        return { kind: 'VOUCHED', message: take() };
      case RECORD.FORWARD: {
        const [request, pattern, source, tag, seq, signature, flags, length] = numbers(8);
        const data = (flags & HAS_DATA) === 0 ? undefined : piece(take());
        const error = (flags & HAS_ERROR) === 0 ? undefined : { code: text(), text: text(), peer: take() - OFFSET };
        return {
          kind: 'FORWARD',
          ended: {
            request,
            pattern,
            source: source - OFFSET,
            tag: tag - OFFSET,
            seq: seq - OFFSET,
            signature,
            cancelled: (flags & CANCELLED) !== 0,
            error: error && { ...error, peer: error.peer < 0 ? undefined : error.peer },
            bytes: length,
            data,
            isBulk: (flags & IS_BULK) !== 0,
          },
        };
      }
      case RECORD.DIVERGED:
        return { kind: 'DIVERGED', message: take(), text: text() };
      case RECORD.BURST:
        return { kind: 'BURST', call: take() };
      case RECORD.LOOK: {
        const count = take();
        const length = take();
        if (length > bytes.length) throw broken(`${length} values`);
        return { kind: 'LOOK', count, values: Array.from({ length }, () => take() - OFFSET) };
      }
      case RECORD.OVER:
        return { kind: 'OVER', call: take() };
      case RECORD.CONSUMED:
        return { kind: 'CONSUMED', bytes: take() };
      case RECORD.EVIDENCE: {
        const message = take();
        const length = take();
        return { kind: 'EVIDENCE', message, bytes: length, data: inline(length) };
      }
      case RECORD.ASK:
        return { kind: 'ASK' };
      case RECORD.HERE:
        return { kind: 'HERE', requests: take() };
      case RECORD.LEAVE:
        return { kind: 'LEAVE', number: take(), text: text() };
      case RECORD.TAKEN:
        return { kind: 'TAKEN', taken: takenNumbers() };
      case RECORD.PEER_HAS:
        return { kind: 'PEER_HAS', taken: takenNumbers() };
      case RECORD.TELL:
        return { kind: 'TELL' };
      case RECORD.CLOCK:
        return { kind: 'CLOCK', address: text() };
      case RECORD.FINISHED:
        return { kind: 'FINISHED', messages: take(), requests: take() };
      default:
        throw broken(`kind ${kind}`);
    }
  };
  while (reader.at < bytes.length) records.push(one(reader.byte()));
  return records;
}
