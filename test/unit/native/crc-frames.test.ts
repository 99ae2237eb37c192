// Checksums and frames of the native part against those in TypeScript.
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { frameLayout, HEADER } from '../../../native/scripts/frame-layout.mjs';
import { crc32cJs } from '../../../src/btl/base/crc32c.ts';
import { decodeFrameHeader, encodeFrameHeader, FRAME_DATA, FRAME_HEADER_BYTES, newFrameHeader } from '../../../src/btl/base/frame-hdr.ts';
import { describeNative, misuse, native, thrown } from './native-fixture.ts';

test('the layout of a frame in C++ is that of frame-hdr.ts (node native/scripts/frame-layout.mjs writes it)', () => {
  expect(frameLayout().match(/^constexpr/gm)).toHaveLength(15);
  expect(readFileSync(HEADER, 'utf8')).toBe(frameLayout());
});

const noise = (length: number, seed = 1): Uint8Array => {
  const bytes = new Uint8Array(length);
  let state = seed;
  for (let i = 0; i < length; i++) {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    bytes[i] = state >>> 16;
  }
  return bytes;
};

describeNative('crc32c', () => {
  const bytes = noise(70_000);

  test('agrees with the one in TypeScript for all lengths up to 4096, at all offsets', () => {
    const wrong: string[] = [];
    for (let length = 0; length <= 4096; length++) {
      // Every offset for short inputs, one of them in turn for the long ones, whose beginning does not differ any more.
      for (let offset = length < 128 ? 0 : length % 16; offset < 16; offset += length < 128 ? 1 : 16) {
        const expected = crc32cJs(bytes.subarray(offset, offset + length), length);
        if (native.crc32c(bytes, offset, length, length) !== expected) wrong.push(`${length} at ${offset}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  test('continues', () => {
    fc.assert(
      fc.property(fc.nat(65_000), fc.nat(65_000), fc.nat(4000), fc.integer({ min: 0, max: 0xffffffff }), (one, two, offset, seed) => {
        const [cut, length] = one < two ? [one, two] : [two, one];
        const head = native.crc32c(bytes, offset, cut, seed);
        const whole = native.crc32c(bytes, offset, length, seed);
        expect(native.crc32c(bytes, offset + cut, length - cut, head)).toBe(whole);
        expect(whole).toBe(crc32cJs(bytes.subarray(offset, offset + length), seed));
      }),
      { numRuns: 200 },
    );
  });

  test('of views, buffers and shared memory', () => {
    expect(native.crc32c(Buffer.from('x123456789').subarray(1), 0, 9, 0)).toBe(0xe3069283);
    const shared = new Uint8Array(new SharedArrayBuffer(9));
    shared.set(Buffer.from('123456789'));
    expect(native.crc32c(shared, 0, 9, 0)).toBe(0xe3069283);
    expect(native.crc32c(new Uint8Array(0), 0, 0, 0xffffffff)).toBe(0xffffffff);
  });
});

interface Piece {
  packetHeaderBytes: number;
  payloadBytes: number;
}
const pieces = fc.array(fc.record({ packetHeaderBytes: fc.nat(80), payloadBytes: fc.nat(200) }), { minLength: 1, maxLength: 12 });

/** Frames one after the other from byte 5 on, their payloads beside them up to `inlineMax`; with the CRCs of TypeScript or none. */
function stream(list: readonly Piece[], inlineMax: number, sealed: boolean) {
  const inline = (piece: Piece) => (piece.payloadBytes <= inlineMax ? piece.payloadBytes : 0);
  const total = list.reduce((sum, piece) => sum + FRAME_HEADER_BYTES + piece.packetHeaderBytes + inline(piece), 0);
  const bytes = noise(5 + total + 3, list.length);
  const starts: number[] = [];
  let at = 5;
  for (const piece of list) {
    starts.push(at);
    encodeFrameHeader({ ...newFrameHeader(FRAME_DATA), ...piece, frameNumber: starts.length }, bytes, at);
    if (!sealed) bytes.fill(0, at + 36, at + 40);
    at += FRAME_HEADER_BYTES + piece.packetHeaderBytes + inline(piece);
  }
  return { bytes, starts, end: at };
}

describeNative('frames', () => {
  test('sealing gives what the encoder gives, and touches nothing else', () => {
    fc.assert(
      fc.property(pieces, fc.nat(220), (list, inlineMax) => {
        const expected = stream(list, inlineMax, true);
        const { bytes, end } = stream(list, inlineMax, false);
        native.frameSeal(bytes, 5, end, inlineMax);
        expect(Buffer.compare(bytes, expected.bytes)).toBe(0);
      }),
      { numRuns: 200 },
    );
  });

  test('scanning stops before the first frame that is cut off or that the decoder refuses', () => {
    fc.assert(
      fc.property(pieces, fc.nat(), fc.nat(7), fc.nat(), (list, where, bit, cut) => {
        const { bytes, starts, end } = stream(list, 1e9, true);
        const ends = [...starts.slice(1), end];
        expect(native.frameScan(bytes, 5, end)).toBe(end);
        expect(native.frameScan(bytes, 5, 5)).toBe(5);

        const to = 5 + (cut % (end - 5));
        let whole = 5;
        for (const [i, start] of starts.entries()) if (start + FRAME_HEADER_BYTES + list[i].packetHeaderBytes <= to) whole = ends[i];
        expect(native.frameScan(bytes, 5, to)).toBe(whole);

        bytes[5 + (where % (end - 5))] ^= 1 << bit;
        let sound = 5;
        for (const [i, start] of starts.entries()) {
          if (!decodeFrameHeader(bytes, start, newFrameHeader())) break;
          sound = ends[i];
        }
        expect(native.frameScan(bytes, 5, end)).toBe(sound);
      }),
      { numRuns: 300 },
    );
  });

  test('a length that is a lie leads nowhere', () => {
    const bytes = new Uint8Array(60);
    encodeFrameHeader({ ...newFrameHeader(FRAME_DATA), payloadBytes: 0xffffffff }, bytes, 0);
    expect(native.frameScan(bytes, 0, 60)).toBe(40 + 0xffffffff);
    bytes[4] = bytes[5] = 0xff;
    expect(native.frameScan(bytes, 0, 60)).toBe(0);
    expect(thrown(() => native.frameSeal(bytes, 0, 60, 0))).toEqual(misuse);
    expect(thrown(() => native.frameSeal(new Uint8Array(60), 0, 60, 0))).toEqual(misuse);
    expect(thrown(() => native.frameSeal(bytes, 0, 61, 0))).toEqual(misuse);
    expect(thrown(() => native.frameSeal(bytes, 31, 30, 0))).toEqual(misuse);
    expect(thrown(() => native.frameScan(bytes, 0, 61))).toEqual(misuse);
    expect(thrown(() => native.frameScan(bytes, 31, 30))).toEqual(misuse);
  });
});
