// The bytes that test messages are made of.
import { createHash } from 'node:crypto';

/** Byte i of a message is (seed + 31 i + floor(i / 256)) mod 256: a piece that lands in the wrong place shows. */
export function pattern(seed: number, from: number, to: number): Uint8Array {
  const bytes = new Uint8Array(Math.max(0, to - from));
  for (let i = from; i < to; i++) bytes[i - from] = (seed + 31 * i + Math.floor(i / 256)) & 0xff;
  return bytes;
}

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
