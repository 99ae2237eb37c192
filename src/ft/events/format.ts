// Outcomes that a process cannot repeat by itself, and their encoding: a batch of them is what a process gives to the one that holds them for
// it, and what its successor gets. A number has seven bits a byte, lowest first. Version 1:
//
//   version u8, flags u8, epoch, owner, base, from, count, then count times: kind u8, values, each value, bytes, the bytes
//
// `base`: records below it are not needed any more. `from`: number of the first record of the batch. What breaks the format is refused.
import { MultirailError } from '../../errors.ts';
import { putVarint, VarintReader, varintBytes } from '../../util/varint.ts';

export const BATCH_VERSION = 1;
/** A batch is no longer. */
export const BATCH_BYTES_MAX = 65_536;
/** Of one record; a batch of one fits. */
export const RECORD_BYTES_MAX = 60_000;
/** Of one record: those of a call that looks at many requests. */
export const VALUES_MAX = 8192;

/** Kinds of records, with what their values are. */
export const EVENT = {
  /** Which message a receive or probe from anybody has matched: number of the receive, rank of the source, number of the message. */
  MATCH: 1,
  /** So many calls one after the other that found nothing. */
  NOTHING: 2,
  /** A call that looks found a message: rank of its source. */
  FOUND: 3,
  /** Which of its requests a call has found ended: their places. */
  ENDED: 4,
  /** The number of the await whose result was handed to the program. */
  TURN: 5,
  /** What once() has made: length of its name; bytes of the name, then those of the value. */
  ONCE: 6,
} as const;
export type EventKind = (typeof EVENT)[keyof typeof EVENT];
const KINDS_MAX = Object.keys(EVENT).length;

export interface EventRecord {
  readonly kind: EventKind;
  readonly values: readonly number[];
  readonly bytes: Uint8Array;
}

export const NO_BYTES = new Uint8Array(0);

/** A batch without its records. */
export interface BatchHead {
  readonly epoch: number;
  /** Rank whose records they are. */
  readonly owner: number;
  readonly base: number;
  readonly from: number;
  /** With it the holder has all that the owner has recorded. */
  readonly isWhole: boolean;
}

export interface Batch extends BatchHead {
  readonly records: readonly EventRecord[];
}

const FLAG_WHOLE = 1;
const HEAD_BYTES_MAX = 2 + 5 * 8;

/** What a record takes in a batch. */
export function recordBytes({ values, bytes }: EventRecord): number {
  let sum = 1 + varintBytes(values.length) + varintBytes(bytes.length) + bytes.length;
  for (const value of values) sum += varintBytes(value);
  return sum;
}

/** How many of these records, from that place on, fit into a batch: one at least, if there is one. */
export function fitting(records: readonly EventRecord[], from: number, bytesMax: number): number {
  let bytes = HEAD_BYTES_MAX;
  let count = 0;
  for (let i = from; i < records.length; i++) {
    bytes += recordBytes(records[i]);
    if (bytes > bytesMax && count > 0) break;
    count++;
  }
  return count;
}

export function encodeBatch({ epoch, owner, base, from, isWhole, records }: Batch): Uint8Array {
  let length = HEAD_BYTES_MAX;
  for (const record of records) length += recordBytes(record);
  const bytes = new Uint8Array(length);
  let at = 0;
  const put = (value: number): void => {
    at = putVarint(bytes, at, value);
  };
  bytes[at++] = BATCH_VERSION;
  bytes[at++] = isWhole ? FLAG_WHOLE : 0;
  for (const value of [epoch, owner, base, from, records.length]) put(value);
  for (const record of records) {
    bytes[at++] = record.kind;
    put(record.values.length);
    for (const value of record.values) put(value);
    put(record.bytes.length);
    bytes.set(record.bytes, at);
    at += record.bytes.length;
  }
  return bytes.subarray(0, at);
}

function broken(what: string): MultirailError {
  return new MultirailError('ERR_PROTOCOL', `recorded outcomes cannot be read: ${what}; run the same version of multirail on all ranks`);
}

/** @throws ERR_PROTOCOL: it is no batch of this version, or not all of one. */
export function decodeBatch(bytes: Uint8Array): Batch {
  const reader = new VarintReader(bytes, broken, 'they end');
  const take = (): number => reader.number();
  const version = reader.byte();
  if (version !== BATCH_VERSION) throw broken(`version ${version}, expected ${BATCH_VERSION}`);
  const flags = reader.byte();
  const [epoch, owner, base, from, count] = [take(), take(), take(), take(), take()];
  const records: EventRecord[] = [];
  for (let i = 0; i < count; i++) {
    const kind = reader.byte();
    if (kind < 1 || kind > KINDS_MAX) throw broken(`kind ${kind}`);
    const valueCount = take();
    if (valueCount > VALUES_MAX) throw broken(`${valueCount} values`);
    const values: number[] = [];
    for (let j = 0; j < valueCount; j++) values.push(take());
    const length = take();
    const own = length === 0 ? NO_BYTES : reader.piece(length, `in record ${i}`);
    records.push({ kind: kind as EventKind, values, bytes: own });
  }
  if (reader.at !== bytes.length) throw broken(`${bytes.length - reader.at} bytes are left over`);
  return { epoch, owner, base, from, isWhole: (flags & FLAG_WHOLE) !== 0, records };
}
