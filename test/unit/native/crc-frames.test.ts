// Checksums and frames of the native part against those in TypeScript.
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
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

describeNative('copyCrc32c', () => {
  /** In the middle of memory of which no other byte may change. */
  function copied(source: Uint8Array, offset: number, crc = 0): { crc: number; bytes: Uint8Array; around: number[] } {
    const memory = new Uint8Array(offset + source.length + 32).fill(0xa5);
    const target = memory.subarray(offset, offset + source.length);
    const answer = native.copyCrc32c(target, source, crc);
    const around = [...memory.subarray(0, offset), ...memory.subarray(offset + source.length)].filter((byte) => byte !== 0xa5);
    return { crc: answer, bytes: target, around };
  }
  const expectCopy = (source: Uint8Array, offset: number, crc = 0): void => {
    const copy = copied(source, offset, crc);
    expect(copy.crc).toBe(crc32cJs(source, crc));
    expect(Buffer.compare(copy.bytes, source)).toBe(0);
    expect(copy.around).toEqual([]);
  };

  test('copies all lengths up to 1024, and no byte beside, with the checksum of the one in TypeScript', () => {
    const bytes = noise(1100);
    for (let length = 0; length <= 1024; length++) expectCopy(bytes.subarray(length % 16, (length % 16) + length), length % 19, length);
  });

  test('of any length and place, those that are written past the caches too', () => {
    const bytes = noise(3_000_000, 7);
    fc.assert(
      fc.property(fc.nat(2_900_000), fc.nat(99_000), fc.nat(64), fc.integer({ min: 0, max: 0xffffffff }), (length, from, offset, crc) =>
        expectCopy(bytes.subarray(from, Math.min(from + length, bytes.length)), offset, crc),
      ),
      {
        numRuns: 12,
        examples: [
          [1_048_576, 1, 1, 0],
          [1_048_575, 3, 16, 5],
          [2_900_000, 7, 15, 1],
          [1_048_576 + 16 + 64, 0, 0, 9],
        ],
      },
    );
  });

  test('of shared memory; refuses other lengths and memory that overlaps', () => {
    const shared = new Uint8Array(new SharedArrayBuffer(9));
    expect(native.copyCrc32c(shared, Buffer.from('123456789'), 0)).toBe(0xe3069283);
    expect(Buffer.from(shared).toString()).toBe('123456789');
    expect(native.copyCrc32c(new Uint8Array(0), new Uint8Array(0), 7)).toBe(7);
    const bytes = noise(100);
    const before = [...bytes];
    for (const [target, source] of [
      [bytes.subarray(0, 9), bytes.subarray(0, 9)],
      [bytes.subarray(0, 50), bytes.subarray(49, 99)],
      [bytes.subarray(49, 99), bytes.subarray(0, 50)],
      [new Uint8Array(8), bytes.subarray(0, 9)],
      [new Uint8Array(10), bytes.subarray(0, 9)],
    ])
      expect(thrown(() => native.copyCrc32c(target, source, 0))).toEqual(misuse);
    expect([...bytes]).toEqual(before);
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

test('copies with their checksum without the native part', async () => {
  vi.stubEnv('MULTIRAIL_NATIVE', '0');
  vi.resetModules();
  try {
    const { copyCrc32c, crc32cBackend } = await import('../../../src/native/crc32c.ts');
    expect(crc32cBackend).toContain('JavaScript');
    const bytes = noise(700_000, 3);
    for (const [from, length] of [
      [0, 0],
      [3, 95],
      [1, 262_144],
      [5, 262_145],
      [7, 690_001],
    ]) {
      const source = bytes.subarray(from, from + length);
      const target = new Uint8Array(length);
      expect(copyCrc32c(target, source)).toBe(crc32cJs(source));
      expect(Buffer.compare(target, source)).toBe(0);
    }
  } finally {
    vi.unstubAllEnvs();
    vi.resetModules();
  }
});
