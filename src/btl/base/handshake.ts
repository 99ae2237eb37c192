// The connect handshake of the stream BTLs (B8), both sides, as pure state machines: frames in, answers out. Nonces are
// arguments; the caller has the sockets and deadlines.
//
//   dialer                                         acceptor
//     HELLO (version, job, who, rail, epoch, nonceA)  ->
//                                    <-  CHALLENGE (nonceB, who, HMAC over all of it as acceptor)
//     PROOF (HMAC over the same as dialer)            ->
//                                    <-  WELCOME, or REFUSE (reason, text, highest epoch)
//
// The HMAC is keyed by the job's secret and covers the role, the whole HELLO and both nonces: a recorded handshake fails on
// the fresh nonce, a reflected one on the role. Before the proof the acceptor answers only BAD_VERSION and BAD_JOB.
//
// A second connection of a live epoch, for liveness alone, is shorter, since both sides hold a key that only this handshake made:
//     LIVENESS (version, rank, rail, epoch, number, HMAC over these with the epoch's key)  ->
//                                    <-  WELCOME, or the connection is closed without a reply
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { ErrorCode } from '../../errors.ts';
import type { Hello, RailReason } from '../btl.ts';
import {
  encodeFrameHeader,
  FRAME_CHALLENGE,
  FRAME_HEADER_BYTES,
  FRAME_HELLO,
  FRAME_LIVENESS,
  FRAME_PROOF,
  FRAME_REFUSE,
  FRAME_WELCOME,
  frameKindName,
  HANDSHAKE_LIMITS,
  newFrameHeader,
} from './frame-hdr.ts';

/** The version of everything above the rail frame: packets, credit, restart. Peers of another version are refused. */
export const PROTOCOL_VERSION = 2;
export const NONCE_BYTES = 32;
const MAC_BYTES = 32;
const JOB_DIGEST_BYTES = 32;

// HELLO: u32 version, u32 rank, f64 incarnation, u32 rail, u32 epoch, nonceA, SHA-256 of the job id, u16 key length, key.
const HELLO_RANK = 4;
const HELLO_INCARNATION = 8;
const HELLO_RAIL = 16;
const HELLO_EPOCH = 20;
const HELLO_NONCE = 24;
const HELLO_JOB = HELLO_NONCE + NONCE_BYTES;
const HELLO_KEY_BYTES = HELLO_JOB + JOB_DIGEST_BYTES;
const HELLO_KEY = HELLO_KEY_BYTES + 2;
const KEY_BYTES_MAX = 255;

// CHALLENGE: u32 rank, u32 zero, f64 incarnation, nonceB, mac. All but the mac is in the transcript.
const CHALLENGE_INCARNATION = 8;
const CHALLENGE_NONCE = 16;
const CHALLENGE_MAC = CHALLENGE_NONCE + NONCE_BYTES;
const CHALLENGE_BYTES = CHALLENGE_MAC + MAC_BYTES;

// LIVENESS: u32 version, u32 rank, u32 rail, u32 epoch, u32 number, u32 zero, mac. All but the mac is under the mac.
const LIVENESS_RANK = 4;
const LIVENESS_RAIL = 8;
const LIVENESS_EPOCH = 12;
const LIVENESS_NUMBER = 16;
const LIVENESS_MAC = 24;
const LIVENESS_BYTES = LIVENESS_MAC + MAC_BYTES;

// REFUSE: u16 reason, u16 text length, u32 highest epoch, text.
const REFUSE_TEXT_BYTES = 2;
const REFUSE_HIGHEST_EPOCH = 4;
const REFUSE_TEXT = 8;
const REFUSE_TEXT_BYTES_MAX = HANDSHAKE_LIMITS.packetHeaderBytesMax - REFUSE_TEXT;

/** Reasons of a REFUSE with their numbers on the wire: append-only. */
export const REFUSALS = {
  BAD_VERSION: 1,
  BAD_JOB: 2,
  UNKNOWN_RANK: 3,
  OLD_INCARNATION: 4,
  PEER_FAILED: 5,
  STALE_EPOCH: 6,
  RAIL_MISMATCH: 7,
  FINALIZED: 8,
  /** The acceptor's answers would leave by another interface than the rail's. */
  ROUTE: 9,
  /** This rail is not to be had just now. */
  UNAVAILABLE: 10,
  /** The acceptor is the lower rank, which dials: it has heard that it shall. */
  WILL_DIAL: 11,
} as const;
export type Refusal = keyof typeof REFUSALS;

/** Who this process is, for both roles. */
export interface HandshakeIdentity {
  rank: number;
  incarnation: number;
  jobId: string;
  /** The job's secret; without one the job id is the key, and the caller lets only loopback come this far. */
  secret: Uint8Array | undefined;
}

function keyOf(identity: HandshakeIdentity): Uint8Array | string {
  return identity.secret === undefined || identity.secret.length === 0 ? `multirail job ${identity.jobId}` : identity.secret;
}

function jobDigest(jobId: string): Uint8Array {
  return createHash('sha256').update(`multirail job ${jobId}`).digest();
}

/** MAC of one role over the body of HELLO and all of CHALLENGE but its own MAC. */
export function transcriptMac(
  identity: HandshakeIdentity,
  role: 'dialer' | 'acceptor',
  hello: Uint8Array,
  challenge: Uint8Array,
): Uint8Array {
  return createHmac('sha256', keyOf(identity))
    .update(`multirail handshake ${PROTOCOL_VERSION} ${role}\n`)
    .update(hello)
    .update(challenge.subarray(0, CHALLENGE_MAC))
    .digest();
}

/** Known to the two sides of one proved handshake only: whoever holds it belongs to this epoch. */
export function keyOfEpoch(identity: HandshakeIdentity, hello: Uint8Array, challenge: Uint8Array): Uint8Array {
  return createHmac('sha256', keyOf(identity))
    .update(`multirail handshake ${PROTOCOL_VERSION} epoch\n`)
    .update(hello)
    .update(challenge.subarray(0, CHALLENGE_MAC))
    .digest();
}

const sameBytes = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && timingSafeEqual(a, b);

/** A handshake frame, ready for the stream. */
export function handshakeFrame(kind: number, body: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(FRAME_HEADER_BYTES + body.length);
  bytes.set(body, FRAME_HEADER_BYTES);
  const header = newFrameHeader(kind);
  header.packetHeaderBytes = body.length;
  encodeFrameHeader(header, bytes, 0);
  return bytes;
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

export function encodeHello(hello: Hello, jobId: string, nonce: Uint8Array, version = PROTOCOL_VERSION): Uint8Array {
  const key = Buffer.from(hello.key, 'utf8').subarray(0, KEY_BYTES_MAX);
  const bytes = new Uint8Array(HELLO_KEY + key.length);
  const view = viewOf(bytes);
  view.setUint32(0, version, true);
  view.setUint32(HELLO_RANK, hello.rank, true);
  view.setFloat64(HELLO_INCARNATION, hello.incarnation, true);
  view.setUint32(HELLO_RAIL, hello.rail, true);
  view.setUint32(HELLO_EPOCH, hello.epoch, true);
  bytes.set(nonce, HELLO_NONCE);
  bytes.set(jobDigest(jobId), HELLO_JOB);
  view.setUint16(HELLO_KEY_BYTES, key.length, true);
  bytes.set(key, HELLO_KEY);
  return bytes;
}

export function encodeRefuse(reason: Refusal, text: string, highestEpoch = 0): Uint8Array {
  const encoded = Buffer.from(text, 'utf8').subarray(0, REFUSE_TEXT_BYTES_MAX);
  const bytes = new Uint8Array(REFUSE_TEXT + encoded.length);
  const view = viewOf(bytes);
  view.setUint16(0, REFUSALS[reason], true);
  view.setUint16(REFUSE_TEXT_BYTES, encoded.length, true);
  view.setUint32(REFUSE_HIGHEST_EPOCH, highestEpoch, true);
  bytes.set(encoded, REFUSE_TEXT);
  return bytes;
}

/**
 * `wait`: nothing to do. `challenged`: the acceptor has proved the secret; proof() may be sent when the dialer likes.
 * `welcomed`: the epoch is live. `failed`: the attempt is over.
 */
export type DialerStep = { kind: 'challenged' } | { kind: 'welcomed' } | { kind: 'failed'; reason: RailReason; highestEpoch?: number };

/** HELLO_SENT: waits for CHALLENGE. CHALLENGED: may send its PROOF. PROOF_SENT: waits for WELCOME. DONE: over. */
type DialerState = 'HELLO_SENT' | 'CHALLENGED' | 'PROOF_SENT' | 'DONE';

export class DialerHandshake {
  private state: DialerState = 'HELLO_SENT';
  private readonly identity: HandshakeIdentity;
  private readonly peer: number;
  private readonly helloBytes: Uint8Array;
  private challenge: Uint8Array | undefined = undefined;
  /** Incarnation that the acceptor has proved; 0 before. */
  peerIncarnation = 0;

  constructor(identity: HandshakeIdentity, peer: number, rail: number, key: string, epoch: number, nonce: Uint8Array) {
    this.identity = identity;
    this.peer = peer;
    const hello: Hello = { rank: identity.rank, incarnation: identity.incarnation, rail, key, epoch };
    this.helloBytes = encodeHello(hello, identity.jobId, nonce);
  }

  hello(): Uint8Array {
    return handshakeFrame(FRAME_HELLO, this.helloBytes);
  }

  /** To be called once, after `challenged`. */
  proof(): Uint8Array {
    const challenge = this.challenge;
    if (this.state !== 'CHALLENGED' || challenge === undefined) throw new Error('proof() before the challenge');
    this.state = 'PROOF_SENT';
    return handshakeFrame(FRAME_PROOF, transcriptMac(this.identity, 'dialer', this.helloBytes, challenge));
  }

  /** After `challenged`. */
  epochKey(): Uint8Array {
    if (this.challenge === undefined) throw new Error('epochKey() before the challenge');
    return keyOfEpoch(this.identity, this.helloBytes, this.challenge);
  }

  take(kind: number, body: Uint8Array): DialerStep {
    if (kind === FRAME_REFUSE && this.state !== 'DONE') return this.refused(body);
    if (kind === FRAME_CHALLENGE && this.state === 'HELLO_SENT') return this.challenged(body);
    if (kind === FRAME_WELCOME && this.state === 'PROOF_SENT' && body.length === 0) {
      this.state = 'DONE';
      return { kind: 'welcomed' };
    }
    return this.fail('damaged', `unexpected ${frameKindName(kind)} of ${body.length} bytes while ${this.state}`);
  }

  private challenged(body: Uint8Array): DialerStep {
    if (body.length !== CHALLENGE_BYTES) return this.fail('damaged', `CHALLENGE of ${body.length} bytes`);
    const challenge = new Uint8Array(body);
    const mac = challenge.subarray(CHALLENGE_MAC);
    if (!sameBytes(mac, transcriptMac(this.identity, 'acceptor', this.helloBytes, challenge))) {
      return this.fail('refused', 'the process that answered does not know the secret of this job');
    }
    const view = viewOf(challenge);
    const rank = view.getUint32(0, true);
    if (rank !== this.peer) return this.fail('refused', `rank ${rank} answered where rank ${this.peer} was expected`);
    this.peerIncarnation = view.getFloat64(CHALLENGE_INCARNATION, true);
    this.challenge = challenge;
    this.state = 'CHALLENGED';
    return { kind: 'challenged' };
  }

  private refused(body: Uint8Array): DialerStep {
    const proved = this.state === 'PROOF_SENT';
    if (body.length < REFUSE_TEXT) return this.fail('damaged', `REFUSE of ${body.length} bytes`);
    const view = viewOf(body);
    const number = view.getUint16(0, true);
    const reason = (Object.keys(REFUSALS) as Refusal[]).find((name) => REFUSALS[name] === number);
    const length = view.getUint16(REFUSE_TEXT_BYTES, true);
    // The text of a stranger goes into a log: only printable characters.
    const text = Buffer.from(body.subarray(REFUSE_TEXT, REFUSE_TEXT + length))
      .toString('utf8')
      .replace(/[^\x20-\x7e]/g, '?');
    const name = reason ?? `reason ${number}`;
    const known = reason === 'BAD_VERSION' || reason === 'BAD_JOB';
    // Before our proof only these two are ever sent by one of ours; whoever says more has not proved that it may.
    if (!proved && !known) return this.fail('damaged', `REFUSE ${name} before the proof`);
    const codes: Partial<Record<Refusal, ErrorCode>> = { PEER_FAILED: 'ERR_PROC_FAILED', FINALIZED: 'ERR_FINALIZED' };
    const code: ErrorCode = (reason !== undefined && codes[reason]) || 'ERR_HANDSHAKE';
    const kinds: Partial<Record<Refusal, RailReason['kind']>> = { ROUTE: 'route', WILL_DIAL: 'asked' };
    const step = this.fail((reason !== undefined && kinds[reason]) || 'refused', `${name}: ${text}`, code);
    const highestEpoch = view.getUint32(REFUSE_HIGHEST_EPOCH, true);
    return reason === 'STALE_EPOCH' ? { ...step, highestEpoch } : step;
  }

  private fail(kind: RailReason['kind'], text: string, code: ErrorCode = 'ERR_HANDSHAKE'): DialerStep & { kind: 'failed' } {
    this.state = 'DONE';
    return { kind: 'failed', reason: { kind, text, code } };
  }
}

/**
 * `send`: send these bytes and wait on. `proved`: the dialer is one of ours and asks for this; answer with welcomeFrame or
 * refuse. `liveness`: somebody asks for a liveness connection of a live epoch, and only the epoch's key tells whether he may.
 * `refuse`: send these bytes, then close. `close`: close without a word. Texts are for the log.
 */
export type AcceptorStep =
  | { kind: 'send'; bytes: Uint8Array }
  | { kind: 'proved'; hello: Hello }
  | { kind: 'liveness'; claim: LivenessClaim }
  | { kind: 'refuse'; bytes: Uint8Array; text: string }
  | { kind: 'close'; text: string };

/** WAITING: for HELLO. CHALLENGE_SENT: waits for PROOF. DONE: proved, refused or broken. */
type AcceptorState = 'WAITING' | 'CHALLENGE_SENT' | 'DONE';

export class AcceptorHandshake {
  private state: AcceptorState = 'WAITING';
  private readonly identity: HandshakeIdentity;
  private readonly nonce: Uint8Array;
  private helloBytes: Uint8Array | undefined = undefined;
  private challenge: Uint8Array | undefined = undefined;

  constructor(identity: HandshakeIdentity, nonce: Uint8Array) {
    this.identity = identity;
    this.nonce = nonce;
  }

  take(kind: number, body: Uint8Array): AcceptorStep {
    if (this.state === 'WAITING' && kind === FRAME_HELLO) return this.takeHello(body);
    if (this.state === 'CHALLENGE_SENT' && kind === FRAME_PROOF) return this.takeProof(body);
    if (this.state === 'WAITING' && kind === FRAME_LIVENESS) return this.takeLiveness(body);
    return this.close(`unexpected ${frameKindName(kind)} while ${this.state}`);
  }

  /** The first frame was of another frame version: the one thing that a stranger is told. */
  otherVersion(text: string): AcceptorStep {
    if (this.state !== 'WAITING') return this.close(text);
    return this.refuse('BAD_VERSION', text);
  }

  /** After `proved`. */
  epochKey(): Uint8Array {
    if (this.state !== 'DONE' || this.helloBytes === undefined || this.challenge === undefined) {
      throw new Error('epochKey() before the proof');
    }
    return keyOfEpoch(this.identity, this.helloBytes, this.challenge);
  }

  private takeLiveness(body: Uint8Array): AcceptorStep {
    const claim = decodeLiveness(body);
    if (claim === undefined) return this.close(`LIVENESS of ${body.length} bytes, or of another version`);
    this.state = 'DONE';
    return { kind: 'liveness', claim };
  }

  private takeHello(body: Uint8Array): AcceptorStep {
    if (body.length < 4) return this.close(`HELLO of ${body.length} bytes`);
    const view = viewOf(body);
    const version = view.getUint32(0, true);
    if (version !== PROTOCOL_VERSION) {
      return this.refuse('BAD_VERSION', `protocol version ${version}, rank ${this.identity.rank} speaks ${PROTOCOL_VERSION}`);
    }
    if (body.length < HELLO_KEY || body.length !== HELLO_KEY + view.getUint16(HELLO_KEY_BYTES, true)) {
      return this.close(`HELLO of ${body.length} bytes`);
    }
    if (!sameBytes(body.subarray(HELLO_JOB, HELLO_JOB + JOB_DIGEST_BYTES), jobDigest(this.identity.jobId))) {
      return this.refuse('BAD_JOB', 'this process belongs to another job');
    }
    this.helloBytes = new Uint8Array(body);
    const challenge = new Uint8Array(CHALLENGE_BYTES);
    const challengeView = viewOf(challenge);
    challengeView.setUint32(0, this.identity.rank, true);
    challengeView.setFloat64(CHALLENGE_INCARNATION, this.identity.incarnation, true);
    challenge.set(this.nonce, CHALLENGE_NONCE);
    challenge.set(transcriptMac(this.identity, 'acceptor', this.helloBytes, challenge), CHALLENGE_MAC);
    this.challenge = challenge;
    this.state = 'CHALLENGE_SENT';
    return { kind: 'send', bytes: handshakeFrame(FRAME_CHALLENGE, challenge) };
  }

  private takeProof(body: Uint8Array): AcceptorStep {
    const helloBytes = this.helloBytes as Uint8Array;
    if (!sameBytes(body, transcriptMac(this.identity, 'dialer', helloBytes, this.challenge as Uint8Array))) {
      return this.close('the proof of the job secret is wrong');
    }
    this.state = 'DONE';
    const view = viewOf(helloBytes);
    const hello: Hello = {
      rank: view.getUint32(HELLO_RANK, true),
      incarnation: view.getFloat64(HELLO_INCARNATION, true),
      rail: view.getUint32(HELLO_RAIL, true),
      key: Buffer.from(helloBytes.subarray(HELLO_KEY)).toString('utf8'),
      epoch: view.getUint32(HELLO_EPOCH, true),
    };
    if (hello.epoch === 0 || !Number.isSafeInteger(hello.incarnation)) return this.close('HELLO with an impossible epoch or incarnation');
    return { kind: 'proved', hello };
  }

  private refuse(reason: Refusal, text: string): AcceptorStep {
    this.state = 'DONE';
    return { kind: 'refuse', bytes: refuseFrame(reason, text), text: `${reason}: ${text}` };
  }

  private close(text: string): AcceptorStep {
    this.state = 'DONE';
    return { kind: 'close', text };
  }
}

/** What a LIVENESS frame says. `rank` is the dialer's; `number` grows with every attempt of one epoch. */
export interface LivenessClaim {
  rank: number;
  rail: number;
  epoch: number;
  number: number;
  /** The whole body, for provesLiveness(). */
  body: Uint8Array;
}

function livenessMac(body: Uint8Array, epochKey: Uint8Array): Uint8Array {
  return createHmac('sha256', epochKey).update('multirail liveness\n').update(body.subarray(0, LIVENESS_MAC)).digest();
}

export function livenessFrame(claim: Omit<LivenessClaim, 'body'>, epochKey: Uint8Array): Uint8Array {
  const body = new Uint8Array(LIVENESS_BYTES);
  const view = viewOf(body);
  view.setUint32(0, PROTOCOL_VERSION, true);
  view.setUint32(LIVENESS_RANK, claim.rank, true);
  view.setUint32(LIVENESS_RAIL, claim.rail, true);
  view.setUint32(LIVENESS_EPOCH, claim.epoch, true);
  view.setUint32(LIVENESS_NUMBER, claim.number, true);
  body.set(livenessMac(body, epochKey), LIVENESS_MAC);
  return handshakeFrame(FRAME_LIVENESS, body);
}

function decodeLiveness(body: Uint8Array): LivenessClaim | undefined {
  if (body.length !== LIVENESS_BYTES) return undefined;
  const view = viewOf(body);
  if (view.getUint32(0, true) !== PROTOCOL_VERSION) return undefined;
  return {
    rank: view.getUint32(LIVENESS_RANK, true),
    rail: view.getUint32(LIVENESS_RAIL, true),
    epoch: view.getUint32(LIVENESS_EPOCH, true),
    number: view.getUint32(LIVENESS_NUMBER, true),
    body: new Uint8Array(body),
  };
}

/** Whether this claim was made with the key of that epoch. */
export function provesLiveness(claim: LivenessClaim, epochKey: Uint8Array): boolean {
  return sameBytes(claim.body.subarray(LIVENESS_MAC), livenessMac(claim.body, epochKey));
}

export function welcomeFrame(): Uint8Array {
  return handshakeFrame(FRAME_WELCOME, new Uint8Array(0));
}

export function refuseFrame(reason: Refusal, text: string, highestEpoch = 0): Uint8Array {
  return handshakeFrame(FRAME_REFUSE, encodeRefuse(reason, text, highestEpoch));
}

/** 127.0.0.0/8, ::1 and the IPv4 loopback written as IPv6. */
export function isLoopbackAddress(address: string): boolean {
  const plain = address.startsWith('::ffff:') ? address.slice(7) : address;
  return /^127\.\d+\.\d+\.\d+$/.test(plain) || plain === '::1';
}

export const NO_SECRET_HINT =
  'this job has no secret, so only loopback is allowed; put the same random bytes into a file on every host and set MULTIRAIL_SECRET_FILE to its path';
