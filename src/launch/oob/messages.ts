// Messages of the out-of-band channel: typed bodies, the bounds on every size, and the two proofs of the handshake; envelope.ts is how they
// are encoded. Pure: no sockets, no timers.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { MultirailError } from '../../errors.ts';
import type { RailFault, Telemetry } from './telemetry.ts';

export const OOB_VERSION = 2;

/** Bounds. A stranger is cut off after HANDSHAKE_BYTES_MAX bytes on the wire, whatever it announces. */
export const HANDSHAKE_BYTES_MAX = 16 * 1024;
export const MESSAGE_BYTES_MAX = 2 * 1024 * 1024;
export const MODEX_BYTES_MAX = 256 * 1024;
export const MODEX_PART_BYTES_MAX = 1024 * 1024;
export const RAIL_EVENT_BYTES_MAX = 64 * 1024;
export const WAITS_BYTES_MAX = 256 * 1024;
/** A call names every member of a communicator. */
export const CALL_BYTES_MAX = 64 * 1024;
export const NAME_BYTES_MAX = 256;
export const TEXT_BYTES_MAX = 32 * 1024;
export const NONCE_BYTES = 32;

/** Where the server listens on each address. */
export const OOB_PATH = '/multirail-oob';

/** Every body that an envelope can carry, as plain objects. */
export interface OobBodies {
  challenge: { version: number; nonce: Uint8Array; jobId: string };
  hello: HelloBody & { proof: Uint8Array };
  welcome: { received: number; proof: Uint8Array; number: number; size: number };
  refused: { reason: string; text: string };
  ping: Record<string, never>;
  ack: Record<string, never>;
  modexPut: { json: Uint8Array };
  modexPart: { packed: Uint8Array; last: boolean; count: number };
  modexUpdate: { rank: number; json: Uint8Array };
  barrierEnter: { name: string; tolerant: boolean };
  barrierDone: { name: string; dead: number[] };
  barrierAsk: { name: string };
  barrierMissing: { name: string; ranks: number[] };
  standbyState: { rank: number; waiting: boolean; place: number };
  standbyCall: { rank: number; call: Uint8Array };
  processJoined: { number: number; incarnation: number; json: Uint8Array };
  standbysEnd: Record<string, never>;
  collectiveFailed: { modex: boolean; name: string; rank: number; text: string };
  abort: { rank: number; code: number; reason: string; stack: string };
  processExit: { rank: number; code?: number; signal: string; finalized: boolean; lost: boolean; replaced: boolean };
  unreachable: { rank: number; forMs: number; final: boolean };
  railEvent: { json: Uint8Array };
  finalized: Record<string, never>;
  waitsAsk: { reason: string };
  waitsRequest: { id: number };
  waitsReport: { id: number; json: Uint8Array };
  telemetry: Telemetry;
  railFault: RailFault;
}

export interface HelloBody {
  version: number;
  jobId: string;
  rank: number;
  size: number;
  incarnation: number;
  pid: number;
  hostId: string;
  nonce: Uint8Array;
  received: number;
  lifeline: boolean;
  /** How it comes, where that may be after the start of the job; empty: as a process of the start. */
  join: JoinKind | '';
}

/**
 * `standby`: a process that is none of the start; `index`: the process of a rank of the start, or a newer one in its place, where the starter
 * starts a process again under its old index.
 */
export type JoinKind = 'standby' | 'index';

export type OobKind = keyof OobBodies;

/** A decoded envelope: `kind` says which body it carries. */
export type Envelope = { [K in OobKind]: { sequence: number; acknowledged: number; kind: K; body: OobBodies[K] } }[OobKind];

/** JSON as bounded bytes; `what` names it in the error. */
export function encodeJson(value: unknown, bytesMax: number, what: string): Uint8Array {
  const text = JSON.stringify(value);
  if (text === undefined) throw new MultirailError('ERR_ARG', `${what} is not JSON`);
  const bytes = Buffer.from(text);
  if (bytes.length > bytesMax) {
    throw new MultirailError('ERR_ARG', `${what} has ${bytes.length} bytes as JSON; at most ${bytesMax} are allowed`);
  }
  return bytes;
}

export function decodeJson(bytes: Uint8Array, what: string): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch (error) {
    throw new MultirailError('ERR_PROTOCOL', `${what} is not JSON: ${(error as Error).message}`, { cause: error });
  }
}

/** Cuts text for people to a bound, so that a long stack never makes a message that is refused. */
export function boundedText(text: string, bytesMax = TEXT_BYTES_MAX): string {
  // Four bytes is the longest character, so this bound in characters keeps the bound in bytes.
  return text.length * 4 <= bytesMax ? text : `${text.slice(0, Math.floor(bytesMax / 4))}…`;
}

/** Proof of the rank: covers both nonces and everything that the hello claims. */
export function proofOfRank(secret: Uint8Array, serverNonce: Uint8Array, hello: HelloBody): Uint8Array {
  const { version, jobId, rank, size, incarnation, pid, hostId, nonce, received, lifeline, join } = hello;
  const claims = [version, jobId, rank, size, incarnation, pid, hostId, received, lifeline, ...(join === '' ? [] : [join])];
  return proof(secret, 'rank', serverNonce, nonce, claims);
}

/** Proof of the launcher: another label, so that neither side's proof can be played back to it. */
export function proofOfLauncher(
  secret: Uint8Array,
  serverNonce: Uint8Array,
  hello: HelloBody,
  { received, number, size }: Omit<OobBodies['welcome'], 'proof'>,
): Uint8Array {
  const { version, jobId, rank, incarnation, join } = hello;
  const given = join === '' ? [] : [number, size];
  return proof(secret, 'launcher', serverNonce, hello.nonce, [version, jobId, rank, incarnation, received, ...given]);
}

export function proofEquals(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}

function proof(secret: Uint8Array, label: string, serverNonce: Uint8Array, clientNonce: Uint8Array, claims: unknown[]): Uint8Array {
  // JSON of an array is unambiguous, which plain concatenation of texts would not be.
  const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
  const text = JSON.stringify(['multirail-oob', label, hex(serverNonce), hex(clientNonce), ...claims]);
  return createHmac('sha256', secret).update(text).digest();
}
