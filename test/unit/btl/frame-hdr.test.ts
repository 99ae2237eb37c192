// Method: golden frames in hex. A change here is a change of the wire format and needs a new FRAME_VERSION.
import { describe, expect, test } from 'vitest';
import {
  checkFrameHeader,
  decodeFrameHeader,
  encodeFrameHeader,
  FLAG_PAYLOAD_CRC,
  FLAG_PLACED,
  FLAG_PROMPT,
  FRAME_BYE,
  FRAME_COUNT,
  FRAME_DATA,
  FRAME_HEADER_BYTES,
  FRAME_HELLO,
  FRAME_NACK,
  FRAME_PROBE,
  FRAME_PROBE_ANSWER,
  type FrameHeader,
  frameHeaderBytes,
  HANDSHAKE_LIMITS,
  liveLimits,
  newFrameHeader,
  PROBE_PADDING_BYTES_MAX,
} from '../../../src/btl/base/frame-hdr.ts';

function encode(header: FrameHeader, packetHeader: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(FRAME_HEADER_BYTES + packetHeader.length);
  bytes.set(packetHeader, FRAME_HEADER_BYTES);
  encodeFrameHeader(header, bytes, 0);
  return bytes;
}

const DATA: FrameHeader = {
  kind: FRAME_DATA,
  flags: FLAG_PLACED | FLAG_PROMPT | FLAG_PAYLOAD_CRC,
  packetHeaderBytes: 4,
  payloadBytes: 0x00020001,
  frameNumber: 0xfffffffe,
  deliveredCount: 0x01020304,
  aliveMs: 60_000,
  receivedBytes: 2 ** 40 + 3,
  payloadCrc: 0xcafebabe,
};
// Eight bytes a line.
const GOLDEN_DATA = ['0101070004004d52', '01000200feffffff', '0403020160ea0000', '0030000000007042', 'bebafecaef04a896', 'deadbeef'].join(
  '',
);
const GOLDEN_COUNT = ['0102000000004d52', '0000000000000000', '0500000000000000', '0000000000000000', '0000000008fdae7b'].join('');

const PACKET = Uint8Array.of(0xde, 0xad, 0xbe, 0xef);

describe('golden frames', () => {
  test('DATA with every field set', () => {
    expect(Buffer.from(encode(DATA, PACKET)).toString('hex')).toBe(GOLDEN_DATA);
  });
  test('COUNT', () => {
    const header = newFrameHeader(FRAME_COUNT);
    header.deliveredCount = 5;
    expect(Buffer.from(encode(header, new Uint8Array(0))).toString('hex')).toBe(GOLDEN_COUNT);
  });
  test('they decode to the same fields', () => {
    const out = newFrameHeader();
    expect(decodeFrameHeader(Buffer.from(GOLDEN_DATA, 'hex'), 0, out)).toBe(true);
    expect(out).toEqual(DATA);
  });
});

test('one changed bit anywhere in header or packet header is found', () => {
  const golden = Buffer.from(GOLDEN_DATA, 'hex');
  const limits = liveLimits(2 ** 31);
  for (let bit = 0; bit < golden.length * 8; bit++) {
    const bytes = new Uint8Array(golden);
    bytes[bit >> 3] ^= 1 << (bit & 7);
    const check = checkFrameHeader(bytes, 0, limits);
    const sound = 'bytes' in check && check.bytes === golden.length && decodeFrameHeader(bytes, 0, newFrameHeader());
    expect(sound, `bit ${bit}`).toBe(false);
  }
});

test('lengths beyond the limits, rubbish and other versions are told apart', () => {
  const bytes = encode(DATA, PACKET);
  expect(checkFrameHeader(bytes, 0, liveLimits(0x20001))).toEqual({ bytes: 44 });
  expect(checkFrameHeader(bytes, 0, liveLimits(0x20000))).toMatchObject({ otherVersion: false });
  expect(checkFrameHeader(bytes, 0, HANDSHAKE_LIMITS)).toMatchObject({ otherVersion: false });
  bytes[0] = 9;
  expect(checkFrameHeader(bytes, 0, liveLimits(0x20001))).toMatchObject({ otherVersion: true });
  expect(checkFrameHeader(new TextEncoder().encode('GET / HTTP/1.1\r\nHost: example.com\r\n\r\n....'), 0, liveLimits(1))).toMatchObject({
    damage: 'these bytes are not a frame of multirail',
    otherVersion: false,
  });
});

test('on a live rail only DATA has a packet header or a payload, and a PROBE padding: anything else is refused by its first 40 bytes', () => {
  const sized = (kind: number, packetHeaderBytes: number, payloadBytes: number): Uint8Array => {
    const header = { ...newFrameHeader(kind), packetHeaderBytes, payloadBytes };
    return encode(header, new Uint8Array(packetHeaderBytes)).subarray(0, FRAME_HEADER_BYTES);
  };
  const live = liveLimits(2 ** 24);
  const kinds = [FRAME_COUNT, FRAME_PROBE, FRAME_PROBE_ANSWER, FRAME_NACK, FRAME_BYE, 0, 7, 255];
  for (const kind of kinds) {
    const longBytes = kind === FRAME_PROBE ? PROBE_PADDING_BYTES_MAX + 1 : 1;
    const announced = [sized(kind, 0, 1024 * 1024), sized(kind, 4, 0), sized(kind, 0, longBytes), sized(kind, 4096, 1024)];
    for (const bytes of announced) {
      expect(checkFrameHeader(bytes, 0, live)).toMatchObject({ otherVersion: false, damage: expect.stringMatching(/only DATA/) });
      expect(frameHeaderBytes(new DataView(bytes.buffer), 0, live)).toBe(0);
    }
    expect(checkFrameHeader(sized(kind, 0, 0), 0, live)).toEqual({ bytes: FRAME_HEADER_BYTES });
  }
  expect(checkFrameHeader(sized(FRAME_DATA, 32, 1024), 0, live)).toEqual({ bytes: FRAME_HEADER_BYTES + 32 });
  const padded = sized(FRAME_PROBE, 0, PROBE_PADDING_BYTES_MAX);
  expect(checkFrameHeader(padded, 0, live)).toEqual({ bytes: FRAME_HEADER_BYTES });
  expect(frameHeaderBytes(new DataView(padded.buffer), 0, live)).toBe(FRAME_HEADER_BYTES);
  // In the handshake every kind carries its body as a packet header.
  expect(checkFrameHeader(sized(FRAME_HELLO, 100, 0), 0, HANDSHAKE_LIMITS)).toEqual({ bytes: FRAME_HEADER_BYTES + 100 });
});
