// What leads say to each other about logs: what a lead that has taken a dead one's place has of the others' messages, and they of its (SYNC); and what
// nobody asks for any more (TAKEN). Numbers as in wire.ts. Version 1:
//
//   version u8, kind u8, then what the table below says, to the end
//
// What breaks the format is refused. Pure.
import { MultirailError } from '../../errors.ts';
import type { SyncContext } from '../../pml/succession.ts';
import { putVarint, VarintReader, varintBytes } from '../../util/varint.ts';
import { decodeBelow, encodeBelow, type TakenNumbers } from './streams.ts';

const VERSION = 1;
/** A message is no longer. */
export const TAKEOVER_BYTES_MAX = 65_536;
/** Holes in one entry: a context with more has several. */
const HOLES_MAX = 4096;
const HEAD_BYTES = 2;

/** Kinds of messages. Numbers are never used again. */
export const TAKEOVER = {
  /** For each context: ctx, the lowest number that was not received, count of lower ones that lack, and these. More of it follows. */
  SYNC: 1,
  /** The same, and this is the last of it. */
  SYNC_LAST: 2,
  /** What of our messages will nobody ask for any more? */
  ASK: 3,
  /** Of what you have sent to this rank, for each context: ctx, all below a number + 1; 0: all. */
  TAKEN: 4,
} as const;

export type TakeoverMessage =
  | { readonly kind: 'SYNC'; readonly contexts: readonly SyncContext[]; readonly isLast: boolean }
  | { readonly kind: 'ASK' }
  | { readonly kind: 'TAKEN'; readonly taken: readonly Omit<TakenNumbers, 'peer'>[] };

/** Rows of numbers in as many messages as they need: `more` of the others, `last` of the last one. */
function messagesOf(rows: readonly (readonly number[])[], more: number, last: number): Uint8Array[] {
  const messages: Uint8Array[] = [];
  let numbers: number[] = [];
  let bytes = HEAD_BYTES;
  const end = (kind: number): void => {
    const message = new Uint8Array(bytes);
    message[0] = VERSION;
    message[1] = kind;
    let at = HEAD_BYTES;
    for (const number of numbers) at = putVarint(message, at, number);
    messages.push(message);
    numbers = [];
    bytes = HEAD_BYTES;
  };
  for (const row of rows) {
    let rowBytes = 0;
    for (const number of row) rowBytes += varintBytes(number);
    if (bytes + rowBytes > TAKEOVER_BYTES_MAX) end(more);
    numbers.push(...row);
    bytes += rowBytes;
  }
  end(last);
  return messages;
}

/** SYNC, in messages that go one after the other. */
export function encodeSync(contexts: readonly Pick<SyncContext, 'ctx' | 'nextIn' | 'holes'>[]): Uint8Array[] {
  const rows = contexts.flatMap(({ ctx, nextIn, holes }) => {
    const pieces: number[][] = [];
    for (let at = 0; at === 0 || at < holes.length; at += HOLES_MAX) {
      const piece = holes.slice(at, at + HOLES_MAX);
      pieces.push([ctx, nextIn, piece.length, ...piece]);
    }
    return pieces;
  });
  return messagesOf(rows, TAKEOVER.SYNC, TAKEOVER.SYNC_LAST);
}

export function encodeTaken(taken: readonly Omit<TakenNumbers, 'peer'>[]): Uint8Array[] {
  const rows = taken.map(({ ctx, below }) => [ctx, encodeBelow(below)]);
  return messagesOf(rows, TAKEOVER.TAKEN, TAKEOVER.TAKEN);
}

export function encodeAsk(): Uint8Array {
  return Uint8Array.of(VERSION, TAKEOVER.ASK);
}

function broken(what: string): MultirailError {
  return new MultirailError(
    'ERR_PROTOCOL',
    `what another lead says of its messages cannot be read: ${what}; run the same version of multirail on all ranks`,
  );
}

/** @throws ERR_PROTOCOL: it is no message of this version, or not all of one. */
export function decodeTakeover(bytes: Uint8Array): TakeoverMessage {
  const reader = new VarintReader(bytes, broken, 'it ends');
  const version = reader.byte();
  if (version !== VERSION) throw broken(`version ${version}, expected ${VERSION}`);
  const kind = reader.byte();
  if (kind === TAKEOVER.ASK) return { kind: 'ASK' };
  if (kind === TAKEOVER.TAKEN) {
    const taken: Omit<TakenNumbers, 'peer'>[] = [];
    while (reader.at < bytes.length) {
      const [ctx, number] = [reader.number(), reader.number()];
      taken.push({ ctx, below: decodeBelow(number) });
    }
    return { kind: 'TAKEN', taken };
  }
  if (kind !== TAKEOVER.SYNC && kind !== TAKEOVER.SYNC_LAST) throw broken(`kind ${kind}`);
  const contexts: SyncContext[] = [];
  while (reader.at < bytes.length) {
    const [ctx, nextIn, count] = [reader.number(), reader.number(), reader.number()];
    if (count > bytes.length) throw broken(`${count} holes`);
    contexts.push({ ctx, nextIn, holes: Array.from({ length: count }, () => reader.number()), digests: [] });
  }
  return { kind: 'SYNC', contexts, isLast: kind === TAKEOVER.SYNC_LAST };
}

/** The contexts of a SYNC: each once, with all its holes. */
export function joinContexts(pieces: readonly SyncContext[]): SyncContext[] {
  const byCtx = new Map<number, SyncContext>();
  for (const piece of pieces) {
    const before = byCtx.get(piece.ctx);
    byCtx.set(piece.ctx, before === undefined ? piece : { ...before, holes: [...before.holes, ...piece.holes] });
  }
  return [...byCtx.values()];
}
