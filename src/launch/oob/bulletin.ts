// The bulletin: the ends of processes, told by the server once more in a form that a blocking call can read. The out-of-band channel is served
// by the event loop, which does not run during such a call; the bulletin is a connection of its own, one way, that the native part polls. It is
// asked for by HTTP/1.0 at the address of the channel, and answered with records of one length for as long as both live.
import { createHmac, randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { constants } from 'node:os';
import type { ExitInfo, Member } from './member.ts';
import { NONCE_BYTES, proofEquals } from './messages.ts';

export const BULLETIN_PATH = '/multirail-bulletin';
/** magic u32, flags u8, signal u8, exit code i16, serial u32, number u32, proof; little-endian. */
export const RECORD_BYTES = 32;
const MAGIC = 0x544c424d;
const PROOF_AT = 16;
const HAS_CODE = 1;
const FINALIZED = 2;
const LOST = 4;
const REPLACED = 8;
/** So many bytes wait for one that does not read; what it misses is told by the channel. */
const WAITING_BYTES_MAX = 1024 * 1024;

export interface BulletinClaims {
  readonly jobId: string;
  readonly rank: number;
  readonly incarnation: number;
  readonly nonce: Uint8Array;
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

function mac(secret: Uint8Array, label: string, { jobId, rank, incarnation, nonce }: BulletinClaims): Buffer {
  return createHmac('sha256', secret)
    .update(JSON.stringify(['multirail-bulletin', label, jobId, rank, incarnation, hex(nonce)]))
    .digest();
}

/** What proves to the server that a process of the job asks. */
const proofOf = (secret: Uint8Array, claims: BulletinClaims): Buffer => mac(secret, 'ask', claims);

/** What records of that connection are proven by: nobody else knows it, and those of another connection do not fit. */
export const recordKey = (secret: Uint8Array, claims: BulletinClaims): Uint8Array => mac(secret, 'records', claims);

/** Where the server is, and what is said to it. */
export interface BulletinAsk {
  readonly host: string;
  readonly port: number;
  readonly request: Uint8Array;
  /** Records are proven by it. */
  readonly key: Uint8Array;
}

/** The request of a process for one connection. */
export function bulletinAsk(
  secret: Uint8Array,
  who: Omit<BulletinClaims, 'nonce'>,
  { host, port }: { host: string; port: number },
): BulletinAsk {
  const claims = { ...who, nonce: new Uint8Array(randomBytes(NONCE_BYTES)) };
  const { rank, incarnation, nonce } = claims;
  const query = `rank=${rank}&incarnation=${incarnation}&nonce=${hex(nonce)}&proof=${hex(proofOf(secret, claims))}`;
  const request = Buffer.from(`GET ${BULLETIN_PATH}?${query} HTTP/1.0\r\n\r\n`, 'latin1');
  return { host, port, request, key: recordKey(secret, claims) };
}

/** Who asks, once it has proven it; undefined: a stranger. */
function claimsOf(url: URL, secret: Uint8Array, jobId: string): BulletinClaims | undefined {
  const number = (name: string): number => {
    const text = url.searchParams.get(name) ?? '';
    return /^\d{1,16}$/.test(text) ? Number(text) : -1;
  };
  const bytes = (name: string): Uint8Array => Buffer.from(url.searchParams.get(name) ?? '', 'hex');
  const claims = { jobId, rank: number('rank'), incarnation: number('incarnation'), nonce: bytes('nonce') };
  if (claims.nonce.length !== NONCE_BYTES || claims.rank < 0) return undefined;
  return proofEquals(bytes('proof'), proofOf(secret, claims)) ? claims : undefined;
}

const proofOfRecord = (key: Uint8Array, record: Uint8Array): Uint8Array =>
  createHmac('sha256', key)
    .update(record.subarray(0, PROOF_AT))
    .digest()
    .subarray(0, RECORD_BYTES - PROOF_AT);

/** `serial` counts the records of a connection from 1. */
export function encodeRecord(key: Uint8Array, serial: number, number: number, exit: ExitInfo): Uint8Array {
  const record = Buffer.alloc(RECORD_BYTES);
  const { code, signal, finalized, lost, replaced = false } = exit;
  const flags = (code === undefined ? 0 : HAS_CODE) | (finalized ? FINALIZED : 0) | (lost ? LOST : 0) | (replaced ? REPLACED : 0);
  record.writeUInt32LE(MAGIC, 0);
  record.writeUInt8(flags, 4);
  record.writeUInt8(constants.signals[signal as NodeJS.Signals] ?? 0, 5);
  record.writeInt16LE(Math.max(-32_768, Math.min(32_767, code ?? 0)), 6);
  record.writeUInt32LE(serial, 8);
  record.writeUInt32LE(number, 12);
  record.set(proofOfRecord(key, record), PROOF_AT);
  return record;
}

/** Undefined for what is not the record with that serial number of that connection. */
export function decodeRecord(key: Uint8Array, serial: number, record: Buffer): { number: number; exit: ExitInfo } | undefined {
  if (record.length !== RECORD_BYTES || record.readUInt32LE(0) !== MAGIC || record.readUInt32LE(8) !== serial) return undefined;
  if (!proofEquals(record.subarray(PROOF_AT), proofOfRecord(key, record))) return undefined;
  const flags = record.readUInt8(4);
  const signalNumber = record.readUInt8(5);
  const signal = Object.entries(constants.signals).find(([, value]) => value === signalNumber)?.[0] ?? '';
  const exit: ExitInfo = {
    code: (flags & HAS_CODE) === 0 ? undefined : record.readInt16LE(6),
    signal,
    finalized: (flags & FINALIZED) !== 0,
    lost: (flags & LOST) !== 0,
    ...((flags & REPLACED) === 0 ? {} : { replaced: true }),
  };
  return { number: record.readUInt32LE(12), exit };
}

interface Reader {
  readonly key: Uint8Array;
  readonly response: ServerResponse;
  serial: number;
}

/** The server's side. One connection for each process: a newer one takes the place of the older one. */
export class BulletinBoard {
  private readonly job: { readonly secret: Uint8Array; readonly jobId: string };
  private readonly members: readonly Member[];
  private readonly isKnown: (number: number) => boolean;
  private readonly onProven: (socket: Socket) => void;
  private readonly readers = new Map<number, Reader>();

  /** `members` by number; `isKnown`: the others have heard of it. `onProven`: that connection is no stranger's. */
  constructor(
    job: { readonly secret: Uint8Array; readonly jobId: string },
    members: readonly Member[],
    isKnown: (number: number) => boolean,
    onProven: (socket: Socket) => void,
  ) {
    this.job = job;
    this.members = members;
    this.isKnown = isKnown;
    this.onProven = onProven;
  }

  /** A request that came to the listener, whatever it is. */
  take(request: IncomingMessage, response: ServerResponse): void {
    const { secret, jobId } = this.job;
    const url = new URL(request.url ?? '/', 'http://server');
    if (url.pathname !== BULLETIN_PATH) {
      response.writeHead(426, { connection: 'close' }).end();
      return;
    }
    const claims = request.method === 'GET' ? claimsOf(url, secret, jobId) : undefined;
    const member = claims === undefined ? undefined : this.members[claims.rank];
    if (claims === undefined || member?.info?.incarnation !== claims.incarnation || member.exit !== undefined) {
      response.writeHead(403, { connection: 'close' }).end();
      return;
    }
    this.onProven(request.socket);
    const { rank } = claims;
    const reader: Reader = { key: recordKey(secret, claims), response, serial: 0 };
    this.readers.get(rank)?.response.destroy();
    this.readers.set(rank, reader);
    response.on('error', () => undefined);
    response.on('close', () => {
      if (this.readers.get(rank) === reader) this.readers.delete(rank);
    });
    request.socket.setNoDelay(true);
    response.writeHead(200, { 'content-type': 'application/octet-stream', connection: 'close' });
    response.flushHeaders();
    for (const { rank: number, exit } of this.members) if (exit !== undefined && this.isKnown(number)) this.tell(reader, number, exit);
  }

  /** The end of a process, for all but itself. */
  post(number: number, exit: ExitInfo): void {
    if (!this.isKnown(number)) return;
    for (const [rank, reader] of this.readers) if (rank !== number) this.tell(reader, number, exit);
    this.readers.get(number)?.response.end();
  }

  private tell(reader: Reader, number: number, exit: ExitInfo): void {
    const { response, key } = reader;
    if (response.writableLength > WAITING_BYTES_MAX) response.destroy();
    else response.write(encodeRecord(key, ++reader.serial, number, exit));
  }

  close(): void {
    for (const { response } of this.readers.values()) response.end();
    this.readers.clear();
  }
}
