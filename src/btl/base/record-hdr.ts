// The head of a record: four words of 32 bits that are the same in a shared ring (sm) and in a receive buffer (verbs).
//   0  kind (RECORD_…) | flags << 8 | bytes of packet header << 16
//   1  bytes of payload
//   2  records of the peer that the writer has handed up, modulo 2^32
//   3  number: of a PROBE and its answer, otherwise 0
// Each transport decides where packet header and payload are, and what kinds above RECORD_BYE mean.
import type { Frame } from '../btl.ts';

export const RECORD_DATA = 1;
export const RECORD_PROBE = 2;
export const RECORD_PROBE_ANSWER = 3;
export const RECORD_BYE = 4;

export const FLAG_PLACED = 1;
export const FLAG_PROMPT = 2;
const FLAGS_KNOWN = FLAG_PLACED | FLAG_PROMPT;

export function flagsOf(frame: Frame): number {
  return (frame.placed ? FLAG_PLACED : 0) | (frame.prompt ? FLAG_PROMPT : 0);
}

export function recordWord(kind: number, flags: number, packetHeaderBytes: number): number {
  return kind | (flags << 8) | (packetHeaderBytes << 16);
}

/**
 * What is wrong with a head whose first two words are these, or undefined. `kindMax`: kinds above it are unknown here; the other limits are in
 * bytes. Nothing that a peer wrote is used before this was asked.
 */
export function recordComplaint(
  word: number,
  payloadBytes: number,
  kindMax: number,
  packetHeaderBytesMax: number,
  payloadBytesMax: number,
): string | undefined {
  const kind = word & 0xff;
  const flags = (word >> 8) & 0xff;
  const packetHeaderBytes = word >>> 16;
  if (packetHeaderBytes > packetHeaderBytesMax) return `a packet header of ${packetHeaderBytes} bytes`;
  if (payloadBytes < 0 || payloadBytes > payloadBytesMax) return `a payload of ${payloadBytes} bytes`;
  if ((flags & ~FLAGS_KNOWN) !== 0) return `unknown flags ${flags}`;
  if (kind === RECORD_DATA) return undefined;
  if (kind === 0 || kind > kindMax) return `a record of kind ${kind}`;
  if (packetHeaderBytes !== 0 || payloadBytes !== 0 || flags !== 0) return `a record of kind ${kind} that carries something`;
  return undefined;
}
