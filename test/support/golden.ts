// Golden bytes: reads docs/internals/golden/*.json, encodes what they describe with the production code, and renders them for
// docs/internals/PROTOCOL.md. Used by golden.test.ts and by the fuzz tests.
import { readFileSync } from 'node:fs';
import {
  encodeFrameHeader,
  FRAME_BYE,
  FRAME_COUNT,
  FRAME_DATA,
  FRAME_HEADER_BYTES,
  FRAME_NACK,
  FRAME_PROBE,
  FRAME_PROBE_ANSWER,
  type FrameHeader,
} from '../../src/btl/base/frame-hdr.ts';
import {
  AcceptorHandshake,
  DialerHandshake,
  livenessFrame,
  type Refusal,
  refuseFrame,
  welcomeFrame,
} from '../../src/btl/base/handshake.ts';
import type { ArrayName } from '../../src/mpi/coll/kernels.ts';
import { type CallName, Signature } from '../../src/mpi/coll/signature.ts';
import { Op } from '../../src/mpi/op.ts';
import { encodePacket, newPacket, PACKET, PACKET_NAMES, type Packet, packetBytes } from '../../src/pml/hdr.ts';

export const GOLDEN_DIR = new URL('../../docs/internals/golden/', import.meta.url);
export const PROTOCOL_MD = new URL('../../docs/internals/PROTOCOL.md', import.meta.url);

type Fields = Record<string, unknown>;
export interface GoldenPacket {
  name: string;
  fields: Fields;
  hex: string;
}
export interface GoldenFrame {
  name: string;
  fields: Fields;
  packetHeader: string;
  payload: string;
  hex: string;
}
export interface GoldenHandshake {
  about: string;
  jobId: string;
  secret: string;
  dialer: { rank: number; incarnation: number; rail: number; key: string; epoch: number; nonce: string };
  acceptor: { rank: number; incarnation: number; nonce: string };
  /** Of the epoch that this handshake begins, for LIVENESS. */
  epochKey: string;
  liveness: { number: number };
  frames: { name: string; hex: string; reason?: Refusal; text?: string; highestEpoch?: number }[];
}

const read = (name: string) => JSON.parse(readFileSync(new URL(name, GOLDEN_DIR), 'utf8'));
export const goldenPackets = (): { about: string; packets: GoldenPacket[] } => read('packets.json');
export const goldenFrames = (): { about: string; frames: GoldenFrame[] } => read('frames.json');
export const goldenHandshake = (): GoldenHandshake => read('handshake.json');

export interface GoldenSignature {
  call: CallName;
  fields: { root?: number; arrayName?: ArrayName; bytes?: number; lengths?: number[]; op?: string; unit?: number; commute?: boolean };
  code: number;
}
export const goldenSignatures = (): { about: string; signatures: GoldenSignature[] } => read('signatures.json');

export function signatureOf({ call, fields: { op, unit = 1, commute = false, ...fields } }: GoldenSignature): Signature {
  if (op === undefined) return new Signature(call, fields);
  const made = op === 'user' ? Op.create(() => undefined, { unit, commute }) : (Op as unknown as Record<string, Op>)[op];
  return new Signature(call, { ...fields, op: made });
}

export const bytesOf = (hex: string): Uint8Array => new Uint8Array(Buffer.from(hex, 'hex'));
export const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** The packet that the fields of a golden packet describe. */
export function packetOf(fields: Fields): Packet {
  const packet = { ...newPacket(), ...fields, type: PACKET[fields.type as keyof typeof PACKET] } as Packet;
  packet.windows = packet.windows.map((window) => ({ ...window, key: bytesOf(window.key as unknown as string) }));
  return packet;
}

/** The fields of `packet` that `like` names, as a golden packet writes them. */
export function fieldsOf(packet: Packet, like: Fields): Fields {
  const out: Fields = {};
  for (const name of Object.keys(like)) {
    if (name === 'type') out.type = PACKET_NAMES[packet.type];
    else if (name === 'windows') out.windows = packet.windows.map((window) => ({ ...window, key: hexOf(window.key) }));
    else out[name] = packet[name as keyof Packet];
  }
  return out;
}

export function encodePacketBytes(packet: Packet): Uint8Array {
  const bytes = new Uint8Array(packetBytes(packet));
  const written = encodePacket(packet, new DataView(bytes.buffer));
  if (written !== bytes.length) throw new Error(`${written} bytes written, ${bytes.length} announced`);
  return bytes;
}

export const FRAME_KINDS: Readonly<Record<string, number>> = {
  DATA: FRAME_DATA,
  COUNT: FRAME_COUNT,
  PROBE: FRAME_PROBE,
  PROBE_ANSWER: FRAME_PROBE_ANSWER,
  NACK: FRAME_NACK,
  BYE: FRAME_BYE,
};

export function encodeFrame({ fields, packetHeader, payload }: Omit<GoldenFrame, 'hex' | 'name'>): Uint8Array {
  const head = bytesOf(packetHeader);
  const body = bytesOf(payload);
  const bytes = new Uint8Array(FRAME_HEADER_BYTES + head.length + body.length);
  bytes.set(head, FRAME_HEADER_BYTES);
  bytes.set(body, FRAME_HEADER_BYTES + head.length);
  const header = { ...fields, kind: FRAME_KINDS[fields.kind as string], packetHeaderBytes: head.length, payloadBytes: body.length };
  encodeFrameHeader(header as unknown as FrameHeader, bytes, 0);
  return bytes;
}

/** The frames of the golden handshake, in order, as the two state machines make them, and the epoch's key. */
export function encodeHandshake(golden: Omit<GoldenHandshake, 'epochKey'>): { frames: Uint8Array[]; epochKey: Uint8Array } {
  const { jobId, dialer: d, acceptor: a } = golden;
  const secret = bytesOf(golden.secret);
  const dialer = new DialerHandshake(
    { rank: d.rank, incarnation: d.incarnation, jobId, secret },
    a.rank,
    d.rail,
    d.key,
    d.epoch,
    bytesOf(d.nonce),
  );
  const acceptor = new AcceptorHandshake({ rank: a.rank, incarnation: a.incarnation, jobId, secret }, bytesOf(a.nonce));
  const hello = dialer.hello();
  const step = acceptor.take(16, hello.subarray(FRAME_HEADER_BYTES));
  if (step.kind !== 'send') throw new Error(`HELLO was answered by ${step.kind}`);
  if (dialer.take(17, step.bytes.subarray(FRAME_HEADER_BYTES)).kind !== 'challenged') throw new Error('the CHALLENGE was not taken');
  const proof = dialer.proof();
  if (acceptor.take(18, proof.subarray(FRAME_HEADER_BYTES)).kind !== 'proved') throw new Error('the PROOF was not taken');
  const refuse = golden.frames[4];
  const epochKey = dialer.epochKey();
  if (hexOf(epochKey) !== hexOf(acceptor.epochKey())) throw new Error('the two sides have different keys of the epoch');
  const liveness = livenessFrame({ rank: d.rank, rail: d.rail, epoch: d.epoch, number: golden.liveness.number }, epochKey);
  const refused = refuseFrame(refuse.reason as Refusal, refuse.text as string, refuse.highestEpoch);
  return { frames: [hello, step.bytes, proof, welcomeFrame(), refused, liveness], epochKey };
}

function hexDump(hex: string): string {
  const lines: string[] = [];
  for (let at = 0; at < hex.length; at += 32) {
    const words = (hex.slice(at, at + 32).match(/.{1,8}/g) as string[]).join(' ');
    lines.push(`${(at / 2).toString(16).padStart(4, '0')}  ${words}`);
  }
  return lines.join('\n');
}

const show = (fields: Fields): string =>
  Object.entries(fields)
    .map(([name, value]) => `${name}=${typeof value === 'object' ? JSON.stringify(value) : value}`)
    .join(' ');

/** The golden part of docs/internals/PROTOCOL.md. */
export function renderGolden(): string {
  const parts: string[] = [];
  const block = (name: string, text: string, hex: string) => parts.push(`**${name}**\n\n\`\`\`text\n${text}\n${hexDump(hex)}\n\`\`\`\n`);
  parts.push('### Packet headers\n');
  for (const { name, fields, hex } of goldenPackets().packets) block(name, show(fields), hex);
  parts.push('### Rail frames\n');
  for (const { name, fields, packetHeader, payload, hex } of goldenFrames().frames) {
    const sizes = { packetHeaderBytes: packetHeader.length / 2, payloadBytes: payload.length / 2 };
    block(name, show({ ...fields, ...sizes }), hex);
  }
  const handshake = goldenHandshake();
  parts.push('### Handshake\n');
  const inputs = [
    `jobId=${handshake.jobId}`,
    `secret=${handshake.secret}`,
    `dialer: ${show(handshake.dialer)}`,
    `acceptor: ${show(handshake.acceptor)}`,
    `epochKey=${handshake.epochKey}`,
    `liveness: ${show(handshake.liveness)}`,
  ];
  parts.push(`\`\`\`text\n${inputs.join('\n')}\n\`\`\`\n`);
  for (const { name, hex, text, highestEpoch } of handshake.frames) {
    block(name, text === undefined ? 'frame and body' : `text=${text} highestEpoch=${highestEpoch}`, hex);
  }
  return parts.join('\n');
}
