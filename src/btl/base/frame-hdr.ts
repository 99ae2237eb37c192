// The rail frame header of the stream BTLs: what precedes every packet header on a TCP or WebSocket rail.
// Fixed little-endian fields at their natural alignment; golden frames are in test/unit/btl/frame-hdr.test.ts.
//
//   offset  0  u8   version            FRAME_VERSION
//           1  u8   kind               FRAME_DATA, …
//           2  u16  flags              FLAG_PLACED | FLAG_PROMPT | FLAG_PAYLOAD_CRC
//           4  u16  packetHeaderBytes  bytes of packet header that follow this header
//           6  u16  magic              FRAME_MAGIC: tells another version of this header from rubbish
//           8  u32  payloadBytes       bytes of payload that follow the packet header
//          12  u32  frameNumber        1, 2, … for DATA and BYE, which are counted; NACK: the number refused; PROBE and
//                                      PROBE_ANSWER: the probe's id; otherwise 0
//          16  u32  deliveredCount     counted frames of the peer that this side has delivered, modulo 2^32
//          20  u32  aliveMs            milliseconds during which the sender's engine was polling, modulo 2^32
//          24  f64  receivedBytes      bytes of this rail epoch that the sender has received
//          32  u32  payloadCrc         CRC32C of the payload with FLAG_PAYLOAD_CRC, otherwise 0
//          36  u32  headerCrc          CRC32C over bytes 0-35 and the packet header

import { loadNative } from '../../native/load.ts';
import { WIDE_ZERO } from '../../util/wide-zero.ts';
import { HEADER_BYTES_MAX } from '../btl.ts';
import { crc32c } from './crc32c.ts';

export const FRAME_VERSION = 1;
export const FRAME_MAGIC = 0x524d; // "MR"
export const FRAME_HEADER_BYTES = 40;

/** Kinds. Numbers are never used again for something else; new ones are appended. */
export const FRAME_DATA = 1;
export const FRAME_COUNT = 2;
export const FRAME_PROBE = 3;
/** A PROBE may carry so many bytes that mean nothing, which tell how the rail carries more than a few. */
export const PROBE_PADDING_BYTES_MAX = 64 * 1024;
export const FRAME_PROBE_ANSWER = 4;
export const FRAME_NACK = 5;
export const FRAME_BYE = 6;
export const FRAME_HELLO = 16;
export const FRAME_CHALLENGE = 17;
export const FRAME_PROOF = 18;
export const FRAME_WELCOME = 19;
export const FRAME_REFUSE = 20;
/** First and only frame of a liveness connection's dialer (handshake.ts). */
export const FRAME_LIVENESS = 21;

export const FLAG_PLACED = 1;
export const FLAG_PROMPT = 2;
export const FLAG_PAYLOAD_CRC = 4;
const FLAGS_KNOWN = FLAG_PLACED | FLAG_PROMPT | FLAG_PAYLOAD_CRC;

const OFFSET_VERSION = 0;
const OFFSET_KIND = 1;
const OFFSET_FLAGS = 2;
const OFFSET_PACKET_HEADER_BYTES = 4;
const OFFSET_MAGIC = 6;
const OFFSET_PAYLOAD_BYTES = 8;
const OFFSET_FRAME_NUMBER = 12;
const OFFSET_DELIVERED_COUNT = 16;
const OFFSET_ALIVE_MS = 20;
const OFFSET_RECEIVED_BYTES = 24;
const OFFSET_PAYLOAD_CRC = 32;
const OFFSET_HEADER_CRC = 36;

const KIND_NAMES: Readonly<Record<number, string>> = {
  [FRAME_DATA]: 'DATA',
  [FRAME_COUNT]: 'COUNT',
  [FRAME_PROBE]: 'PROBE',
  [FRAME_PROBE_ANSWER]: 'PROBE_ANSWER',
  [FRAME_NACK]: 'NACK',
  [FRAME_BYE]: 'BYE',
  [FRAME_HELLO]: 'HELLO',
  [FRAME_CHALLENGE]: 'CHALLENGE',
  [FRAME_PROOF]: 'PROOF',
  [FRAME_WELCOME]: 'WELCOME',
  [FRAME_REFUSE]: 'REFUSE',
  [FRAME_LIVENESS]: 'LIVENESS',
};

export function frameKindName(kind: number): string {
  return KIND_NAMES[kind] ?? `kind ${kind}`;
}

/** A decoded header. The framer reuses one object; copy what must last. */
export interface FrameHeader {
  kind: number;
  flags: number;
  packetHeaderBytes: number;
  payloadBytes: number;
  frameNumber: number;
  deliveredCount: number;
  aliveMs: number;
  receivedBytes: number;
  payloadCrc: number;
}

export function newFrameHeader(kind = FRAME_COUNT): FrameHeader {
  return {
    kind,
    flags: 0,
    packetHeaderBytes: 0,
    payloadBytes: 0,
    frameNumber: 0,
    deliveredCount: 0,
    aliveMs: 0,
    receivedBytes: WIDE_ZERO,
    payloadCrc: 0,
  };
}

/** What a receiver accepts; tight in the handshake, wide on a live rail. */
export interface FrameLimits {
  packetHeaderBytesMax: number;
  payloadBytesMax: number;
  /** On a live rail only DATA has a packet header or a payload; in the handshake every kind carries its body as a packet header. */
  onlyDataHasBytes: boolean;
}

/** In the handshake a frame has at most 512 bytes in all: a stranger cannot make us keep more. */
export const HANDSHAKE_LIMITS: FrameLimits = {
  packetHeaderBytesMax: 512 - FRAME_HEADER_BYTES,
  payloadBytesMax: 0,
  onlyDataHasBytes: false,
};

export function liveLimits(frameBytesMax: number): FrameLimits {
  return { packetHeaderBytesMax: HEADER_BYTES_MAX, payloadBytesMax: frameBytesMax, onlyDataHasBytes: true };
}

/** Writes the header at `target[at]`; the packet header must already stand behind it, because the CRC covers both. */
export function encodeFrameHeader(header: FrameHeader, target: Uint8Array, at: number): void {
  const view = new DataView(target.buffer, target.byteOffset + at, FRAME_HEADER_BYTES);
  view.setUint8(OFFSET_VERSION, FRAME_VERSION);
  view.setUint8(OFFSET_KIND, header.kind);
  view.setUint16(OFFSET_FLAGS, header.flags, true);
  view.setUint16(OFFSET_PACKET_HEADER_BYTES, header.packetHeaderBytes, true);
  view.setUint16(OFFSET_MAGIC, FRAME_MAGIC, true);
  view.setUint32(OFFSET_PAYLOAD_BYTES, header.payloadBytes, true);
  view.setUint32(OFFSET_FRAME_NUMBER, header.frameNumber, true);
  view.setUint32(OFFSET_DELIVERED_COUNT, header.deliveredCount, true);
  view.setUint32(OFFSET_ALIVE_MS, header.aliveMs, true);
  view.setFloat64(OFFSET_RECEIVED_BYTES, header.receivedBytes, true);
  view.setUint32(OFFSET_PAYLOAD_CRC, header.payloadCrc, true);
  view.setUint32(OFFSET_HEADER_CRC, headerCrc(target, at, header.packetHeaderBytes), true);
}

/**
 * The header of a frame whose CRC sealFrames() writes later, with everything behind it known; `receivedBytes` is the caller's to count.
 * Takes words instead of an object, since this is done for every frame.
 */
export function writeFrameHeader(
  view: DataView,
  at: number,
  kind: number,
  flags: number,
  packetHeaderBytes: number,
  payloadBytes: number,
  frameNumber: number,
  deliveredCount: number,
  aliveMs: number,
  receivedBytes: number,
  payloadCrc: number,
): void {
  view.setUint32(at, FRAME_VERSION | (kind << 8) | (flags << 16), true);
  view.setUint32(at + OFFSET_PACKET_HEADER_BYTES, packetHeaderBytes | (FRAME_MAGIC << 16), true);
  view.setUint32(at + OFFSET_PAYLOAD_BYTES, payloadBytes, true);
  view.setUint32(at + OFFSET_FRAME_NUMBER, frameNumber, true);
  view.setUint32(at + OFFSET_DELIVERED_COUNT, deliveredCount, true);
  view.setUint32(at + OFFSET_ALIVE_MS, aliveMs, true);
  view.setFloat64(at + OFFSET_RECEIVED_BYTES, receivedBytes, true);
  view.setUint32(at + OFFSET_PAYLOAD_CRC, payloadCrc, true);
}

const native = loadNative().binding;

/**
 * Writes the header CRC of every frame in bytes[from, to); their payloads stand there too where they have at most `inlinePayloadMax`
 * bytes. One native call for all of them where there is a native part.
 */
export function sealFrames(bytes: Uint8Array, from: number, to: number, inlinePayloadMax: number): void {
  if (native !== undefined) {
    native.frameSeal(bytes, from, to, inlinePayloadMax);
    return;
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = from; at < to; ) {
    const packetHeaderBytes = view.getUint16(at + OFFSET_PACKET_HEADER_BYTES, true);
    const payloadBytes = view.getUint32(at + OFFSET_PAYLOAD_BYTES, true);
    view.setUint32(at + OFFSET_HEADER_CRC, headerCrc(bytes, at, packetHeaderBytes), true);
    at += FRAME_HEADER_BYTES + packetHeaderBytes + (payloadBytes <= inlinePayloadMax ? payloadBytes : 0);
  }
}

/**
 * How far the headers in bytes[from, to) are sound: the end of the last header, packet header included, that is whole and whose CRC is
 * right, looking from frame to frame. `from` itself when the first is not. Without the native part one frame is looked at.
 */
export function soundUntil(bytes: Uint8Array, from: number, packetHeaderBytes: number, to = bytes.length): number {
  if (native !== undefined) return native.frameScan(bytes, from, to);
  const end = from + FRAME_HEADER_BYTES + packetHeaderBytes;
  const stated = new DataView(bytes.buffer, bytes.byteOffset + from, FRAME_HEADER_BYTES).getUint32(OFFSET_HEADER_CRC, true);
  return stated === headerCrc(bytes, from, packetHeaderBytes) ? end : from;
}

function headerCrc(bytes: Uint8Array, at: number, packetHeaderBytes: number): number {
  const crc = crc32c(bytes.subarray(at, at + OFFSET_HEADER_CRC));
  if (packetHeaderBytes === 0) return crc;
  const from = at + FRAME_HEADER_BYTES;
  return crc32c(bytes.subarray(from, from + packetHeaderBytes), crc);
}

/** What a frame of the rail itself may carry: nothing, or the padding of a PROBE. */
function isBareOrPadded(kind: number, packetHeaderBytes: number, payloadBytes: number): boolean {
  if (packetHeaderBytes > 0) return false;
  return payloadBytes === 0 || (kind === FRAME_PROBE && payloadBytes <= PROBE_PADDING_BYTES_MAX);
}

/** Answer of checkFrameHeader: the bytes of header and packet header, or what is wrong. */
export type HeaderCheck = { bytes: number } | { damage: string; otherVersion: boolean };

const damaged = (damage: string, otherVersion = false): HeaderCheck => ({ damage, otherVersion });

/**
 * Looks at the first FRAME_HEADER_BYTES of a frame, before anything is allocated for it: its version, its kind and its lengths.
 * The CRC can only be checked once the packet header is there too.
 */
export function checkFrameHeader(bytes: Uint8Array, at: number, limits: FrameLimits): HeaderCheck {
  const magic = bytes[at + OFFSET_MAGIC] | (bytes[at + OFFSET_MAGIC + 1] << 8);
  if (magic !== FRAME_MAGIC) return damaged('these bytes are not a frame of multirail');
  const version = bytes[at + OFFSET_VERSION];
  if (version !== FRAME_VERSION) return damaged(`frame version ${version}, this side speaks ${FRAME_VERSION}`, true);
  const view = new DataView(bytes.buffer, bytes.byteOffset + at, FRAME_HEADER_BYTES);
  const packetHeaderBytes = view.getUint16(OFFSET_PACKET_HEADER_BYTES, true);
  if (packetHeaderBytes > limits.packetHeaderBytesMax) {
    return damaged(`packet header of ${packetHeaderBytes} bytes, at most ${limits.packetHeaderBytesMax} are allowed`);
  }
  const payloadBytes = view.getUint32(OFFSET_PAYLOAD_BYTES, true);
  if (payloadBytes > limits.payloadBytesMax) {
    return damaged(`payload of ${payloadBytes} bytes, at most ${limits.payloadBytesMax} are allowed`);
  }
  const kind = bytes[at + OFFSET_KIND];
  if (limits.onlyDataHasBytes && kind !== FRAME_DATA && !isBareOrPadded(kind, packetHeaderBytes, payloadBytes)) {
    return damaged(
      `a ${frameKindName(kind)} frame with a packet header of ${packetHeaderBytes} and a payload of ${payloadBytes} bytes: only DATA has them, and a PROBE up to ${PROBE_PADDING_BYTES_MAX} bytes of padding`,
    );
  }
  return { bytes: FRAME_HEADER_BYTES + packetHeaderBytes };
}

/** As checkFrameHeader, for the common case: the bytes of header and packet header, or 0 when something is wrong. */
export function frameHeaderBytes(view: DataView, at: number, limits: FrameLimits): number {
  const lengthAndMagic = view.getUint32(at + OFFSET_PACKET_HEADER_BYTES, true);
  const packetHeaderBytes = lengthAndMagic & 0xffff;
  const kindAndVersion = view.getUint16(at, true);
  if (lengthAndMagic >>> 16 !== FRAME_MAGIC || (kindAndVersion & 0xff) !== FRAME_VERSION || packetHeaderBytes > limits.packetHeaderBytesMax)
    return 0;
  const payloadBytes = view.getUint32(at + OFFSET_PAYLOAD_BYTES, true);
  if (payloadBytes > limits.payloadBytesMax) return 0;
  const kind = kindAndVersion >>> 8;
  if (kind !== FRAME_DATA && limits.onlyDataHasBytes && !isBareOrPadded(kind, packetHeaderBytes, payloadBytes)) return 0;
  return FRAME_HEADER_BYTES + packetHeaderBytes;
}

/** Reads the fields of a header whose CRC is known to be right; false when its flags are not known here. */
export function readFrameHeader(view: DataView, at: number, out: FrameHeader): boolean {
  const first = view.getUint32(at, true);
  out.kind = (first >>> 8) & 0xff;
  out.flags = first >>> 16;
  out.packetHeaderBytes = view.getUint16(at + OFFSET_PACKET_HEADER_BYTES, true);
  out.payloadBytes = view.getUint32(at + OFFSET_PAYLOAD_BYTES, true);
  out.frameNumber = view.getUint32(at + OFFSET_FRAME_NUMBER, true);
  out.deliveredCount = view.getUint32(at + OFFSET_DELIVERED_COUNT, true);
  out.aliveMs = view.getUint32(at + OFFSET_ALIVE_MS, true);
  out.receivedBytes = view.getFloat64(at + OFFSET_RECEIVED_BYTES, true);
  out.payloadCrc = view.getUint32(at + OFFSET_PAYLOAD_CRC, true);
  return (out.flags & ~FLAGS_KNOWN) === 0;
}

/** Decodes a header whose packet header stands behind it into `out`; false when the CRC or the flags are wrong. */
export function decodeFrameHeader(bytes: Uint8Array, at: number, out: FrameHeader): boolean {
  const view = new DataView(bytes.buffer, bytes.byteOffset + at, FRAME_HEADER_BYTES);
  const known = readFrameHeader(view, 0, out);
  return known && view.getUint32(OFFSET_HEADER_CRC, true) === headerCrc(bytes, at, out.packetHeaderBytes);
}
