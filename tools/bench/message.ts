// The messages of the failover stream: a header that says which message this is, and a pattern that says that it is whole.
//
//    0  u32  magic          4  u32  kind: 0 data, 1 end of the stream
//    8  f64  index         16  f64  length of the whole message, or of the stream in messages for the end
//   24  u32  CRC32C of the payload, 0 when it is not verified
//   28  u32  CRC32C of the bytes before
//
// The payload of message i is a window of one random pattern, at an offset that differs for each of 8192 messages in a row: a
// fragment of an earlier message that is written into a later one, or to the wrong place, shows.
import { crc32c } from '../../src/btl/base/crc32c.ts';
import { Prng } from '../../src/util/prng.ts';

export const HEADER_BYTES = 32;
const MAGIC = 0x4d52424e;
const DATA = 0;
const END = 1;

const OFFSETS = 8192;
const OFFSET_STEP_BYTES = 8;
/** Odd, so that it runs through all offsets; large, so that neighbours are far apart. */
const OFFSET_STRIDE = 4099;

export interface MessageHeader {
  kind: 'data' | 'end';
  index: number;
  /** Bytes of the message; for the end: messages of the stream. */
  length: number;
  payloadCrc: number;
}

/** The payloads of a stream: both sides compute the same from the seed. */
export class MessagePattern {
  private readonly bytes: Uint8Array;

  constructor(seed: string, payloadBytesMax: number) {
    const words = Math.ceil((payloadBytesMax + OFFSETS * OFFSET_STEP_BYTES) / 4);
    const prng = new Prng(seed);
    const pattern = new Uint32Array(words);
    for (let i = 0; i < words; i++) pattern[i] = prng.nextU32();
    this.bytes = new Uint8Array(pattern.buffer);
  }

  payload(index: number, bytes: number): Uint8Array {
    const offset = ((index * OFFSET_STRIDE) % OFFSETS) * OFFSET_STEP_BYTES;
    return this.bytes.subarray(offset, offset + bytes);
  }
}

export function encodeHeader(header: MessageHeader, into: Uint8Array<ArrayBuffer> = new Uint8Array(HEADER_BYTES)): Uint8Array<ArrayBuffer> {
  const view = new DataView(into.buffer, into.byteOffset, HEADER_BYTES);
  view.setUint32(0, MAGIC, true);
  view.setUint32(4, header.kind === 'data' ? DATA : END, true);
  view.setFloat64(8, header.index, true);
  view.setFloat64(16, header.length, true);
  view.setUint32(24, header.payloadCrc, true);
  view.setUint32(28, crc32c(into.subarray(0, 28)), true);
  return into;
}

/** Undefined when this is no header, or a damaged one. */
export function decodeHeader(bytes: Uint8Array): MessageHeader | undefined {
  if (bytes.length < HEADER_BYTES) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, HEADER_BYTES);
  const kind = view.getUint32(4, true);
  if (view.getUint32(0, true) !== MAGIC || kind > END || view.getUint32(28, true) !== crc32c(bytes.subarray(0, 28))) return undefined;
  return {
    kind: kind === DATA ? 'data' : 'end',
    index: view.getFloat64(8, true),
    length: view.getFloat64(16, true),
    payloadCrc: view.getUint32(24, true),
  };
}
