// The tester's handshakes, both roles, step by step, so that each step can be wrong on purpose. Layouts and MACs are the production ones;
// golden vectors and other implementations show that they are the document's.
import { randomBytes } from 'node:crypto';
import { FRAME_CHALLENGE, FRAME_HELLO, FRAME_PROOF, FRAME_REFUSE, HANDSHAKE_LIMITS } from '../../src/btl/base/frame-hdr.ts';
import {
  encodeHello,
  type HandshakeIdentity,
  handshakeFrame,
  keyOfEpoch,
  PROTOCOL_VERSION,
  REFUSALS,
  type Refusal,
  transcriptMac,
} from '../../src/btl/base/handshake.ts';
import { FrameReader, type RawFrame, type WireStream } from './wire.ts';

const CHALLENGE_NONCE = 16;
const CHALLENGE_MAC = 48;
const CHALLENGE_BYTES = 80;

/** What ended a wait for a frame of the handshake. */
export type Answer = { kind: 'frame'; frame: RawFrame } | { kind: 'closed' } | { kind: 'silence' } | { kind: 'damaged'; text: string };

/** A connection that is not a rail yet: frames are asked for one by one. */
export class HandshakeConnection {
  readonly stream: WireStream;
  readonly reader = new FrameReader(HANDSHAKE_LIMITS);
  closed = false;
  /** Bytes that came, whatever they were. */
  receivedBytes = 0;
  private wake: (() => void) | undefined;

  constructor(stream: WireStream) {
    this.stream = stream;
    stream.onBytes = (bytes) => {
      this.receivedBytes += bytes.length;
      this.reader.push(bytes);
      this.wake?.();
    };
    stream.onClosed = () => {
      this.closed = true;
      this.wake?.();
    };
    stream.resume();
  }

  async next(limitMs: number): Promise<Answer> {
    const deadline = performance.now() + limitMs;
    for (;;) {
      const frame = this.reader.next();
      if (frame !== undefined) return { kind: 'frame', frame };
      if (this.reader.damage !== undefined) return { kind: 'damaged', text: this.reader.damage };
      if (this.closed) return { kind: 'closed' };
      const left = deadline - performance.now();
      if (left <= 0) return { kind: 'silence' };
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        this.wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.wake = undefined;
    }
  }

  write(bytes: Uint8Array): void {
    this.stream.write(bytes);
  }

  close(): void {
    this.stream.destroy();
  }
}

export interface HelloFields {
  rank: number;
  incarnation: number;
  rail: number;
  key: string;
  epoch: number;
}

/** The dialer's frames. `nonce` and `version` may be chosen. */
export class Dialer {
  readonly identity: HandshakeIdentity;
  readonly helloBody: Uint8Array;

  constructor(identity: HandshakeIdentity, hello: HelloFields, nonce: Uint8Array = randomBytes(32), version = PROTOCOL_VERSION) {
    this.identity = identity;
    this.helloBody = encodeHello(hello, identity.jobId, nonce, version);
  }

  hello(): Uint8Array {
    return handshakeFrame(FRAME_HELLO, this.helloBody);
  }

  proof(challenge: Uint8Array): Uint8Array {
    return handshakeFrame(FRAME_PROOF, transcriptMac(this.identity, 'dialer', this.helloBody, challenge));
  }

  /** Whether the acceptor's MAC is right. */
  isProvedBy(challenge: Uint8Array): boolean {
    const mac = transcriptMac(this.identity, 'acceptor', this.helloBody, challenge);
    return Buffer.from(challenge.subarray(CHALLENGE_MAC)).equals(mac);
  }

  epochKey(challenge: Uint8Array): Uint8Array {
    return keyOfEpoch(this.identity, this.helloBody, challenge);
  }
}

/** A proof that reflects the acceptor's own MAC. */
export const reflectedProof = (challenge: Uint8Array): Uint8Array => handshakeFrame(FRAME_PROOF, challenge.slice(CHALLENGE_MAC));

export interface ChallengeView {
  rank: number;
  zero: number;
  incarnation: number;
  nonce: Uint8Array;
}

export function viewChallenge(body: Uint8Array): ChallengeView | undefined {
  if (body.length !== CHALLENGE_BYTES) return undefined;
  const view = new DataView(body.buffer, body.byteOffset, body.length);
  return {
    rank: view.getUint32(0, true),
    zero: view.getUint32(4, true),
    incarnation: view.getFloat64(8, true),
    nonce: body.slice(CHALLENGE_NONCE, CHALLENGE_MAC),
  };
}

/** Body of a CHALLENGE that answers this HELLO. */
export function makeChallenge(identity: HandshakeIdentity, helloBody: Uint8Array, nonce: Uint8Array = randomBytes(32)): Uint8Array {
  const body = new Uint8Array(CHALLENGE_BYTES);
  const view = new DataView(body.buffer);
  view.setUint32(0, identity.rank, true);
  view.setFloat64(8, identity.incarnation, true);
  body.set(nonce, CHALLENGE_NONCE);
  body.set(transcriptMac(identity, 'acceptor', helloBody, body), CHALLENGE_MAC);
  return body;
}

export const challengeFrame = (body: Uint8Array): Uint8Array => handshakeFrame(FRAME_CHALLENGE, body);

export function isProof(identity: HandshakeIdentity, helloBody: Uint8Array, challenge: Uint8Array, proof: Uint8Array): boolean {
  return Buffer.from(proof).equals(transcriptMac(identity, 'dialer', helloBody, challenge));
}

export interface HelloView extends HelloFields {
  version: number;
  nonce: Uint8Array;
  jobDigest: Uint8Array;
}

export function viewHello(body: Uint8Array): HelloView | undefined {
  if (body.length < 90) return undefined;
  const view = new DataView(body.buffer, body.byteOffset, body.length);
  const keyBytes = view.getUint16(88, true);
  if (body.length !== 90 + keyBytes) return undefined;
  return {
    version: view.getUint32(0, true),
    rank: view.getUint32(4, true),
    incarnation: view.getFloat64(8, true),
    rail: view.getUint32(16, true),
    epoch: view.getUint32(20, true),
    nonce: body.slice(24, 56),
    jobDigest: body.slice(56, 88),
    key: Buffer.from(body.subarray(90)).toString('utf8'),
  };
}

export interface RefuseView {
  reason: Refusal | string;
  highestEpoch: number;
  text: string;
}

/** What a REFUSE says; undefined when the frame is not a REFUSE, or is malformed. */
export function viewRefuse(frame: RawFrame): RefuseView | undefined {
  const body = frame.packetHeader;
  if (frame.header.kind !== FRAME_REFUSE || body.length < 8) return undefined;
  const view = new DataView(body.buffer, body.byteOffset, body.length);
  const number = view.getUint16(0, true);
  const textBytes = view.getUint16(2, true);
  if (body.length !== 8 + textBytes) return undefined;
  const known = (Object.keys(REFUSALS) as Refusal[]).find((name) => REFUSALS[name] === number);
  return { reason: known ?? `${number}`, highestEpoch: view.getUint32(4, true), text: Buffer.from(body.subarray(8)).toString('utf8') };
}
