// Sealing and checking the headers of many frames at once: the native part and the JavaScript must agree, and with the frame-by-frame functions.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  checkFrameHeader,
  decodeFrameHeader,
  FLAG_PLACED,
  FRAME_DATA,
  FRAME_HEADER_BYTES,
  frameHeaderBytes,
  liveLimits,
  newFrameHeader,
  readFrameHeader,
  sealFrames,
  soundUntil,
  writeFrameHeader,
} from '../../../src/btl/base/frame-hdr.ts';

const INLINE_MAX = 100;

interface Spec {
  packetHeaderBytes: number;
  payloadBytes: number;
}

/** Frames one after the other; payloads longer than INLINE_MAX are left out, as in the memory that sealFrames() sees. */
function lay(specs: readonly Spec[], withPayloads: boolean): { bytes: Uint8Array; starts: number[] } {
  const lengthOf = (spec: Spec) =>
    FRAME_HEADER_BYTES + spec.packetHeaderBytes + (withPayloads || spec.payloadBytes <= INLINE_MAX ? spec.payloadBytes : 0);
  const total = specs.reduce((sum, spec) => sum + lengthOf(spec), 0);
  const bytes = new Uint8Array(3 + total);
  const view = new DataView(bytes.buffer);
  const starts: number[] = [];
  let at = 3;
  specs.forEach((spec, i) => {
    starts.push(at);
    bytes.fill(i + 1, at + FRAME_HEADER_BYTES, at + lengthOf(spec));
    writeFrameHeader(
      view,
      at,
      FRAME_DATA,
      i % 2 === 0 ? FLAG_PLACED : 0,
      spec.packetHeaderBytes,
      spec.payloadBytes,
      i + 1,
      i,
      i * 7,
      1e10 + i,
      0,
    );
    at += lengthOf(spec);
  });
  return { bytes, starts };
}

const specs = fc.array(fc.record({ packetHeaderBytes: fc.nat(60), payloadBytes: fc.nat(160) }), { minLength: 1, maxLength: 12 });

describe('sealFrames and soundUntil', () => {
  test('every sealed header decodes, with the fields that were written', () => {
    fc.assert(
      fc.property(specs, (list) => {
        const { bytes, starts } = lay(list, false);
        sealFrames(bytes, 3, bytes.length, INLINE_MAX);
        list.forEach((spec, i) => {
          const header = newFrameHeader();
          expect(decodeFrameHeader(bytes, starts[i], header)).toBe(true);
          expect(header).toMatchObject({
            kind: FRAME_DATA,
            ...spec,
            frameNumber: i + 1,
            deliveredCount: i,
            aliveMs: i * 7,
            receivedBytes: 1e10 + i,
          });
        });
      }),
    );
  });

  test('a stream is sound up to its end, and one changed bit is seen at its frame', () => {
    fc.assert(
      fc.property(specs, fc.nat(), fc.nat(7), (list, place, bit) => {
        const { bytes, starts } = lay(list, true);
        list.forEach((_, i) => {
          sealFrames(bytes, starts[i], starts[i] + FRAME_HEADER_BYTES + list[i].packetHeaderBytes, 0);
        });
        const endOf = (i: number) => starts[i] + FRAME_HEADER_BYTES + list[i].packetHeaderBytes;
        list.forEach((spec, i) => {
          expect(soundUntil(bytes, starts[i], spec.packetHeaderBytes)).toBeGreaterThanOrEqual(endOf(i));
        });
        const broken = place % list.length;
        const at = starts[broken] + (place % (FRAME_HEADER_BYTES + list[broken].packetHeaderBytes));
        bytes[at] ^= 1 << bit;
        // Lengths are looked at before the CRC, by the caller too: the broken frame is never taken for sound.
        const view = new DataView(bytes.buffer);
        const length = frameHeaderBytes(view, starts[broken], liveLimits(1 << 20));
        if (length === 0 || starts[broken] + length > bytes.length) return;
        expect(soundUntil(bytes, starts[broken], length - FRAME_HEADER_BYTES)).toBe(starts[broken]);
        if (broken > 0) expect(soundUntil(bytes, starts[0], list[0].packetHeaderBytes)).toBeLessThan(starts[broken] + length);
      }),
    );
  });

  test('the fast look at lengths refuses what the slow one refuses', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: FRAME_HEADER_BYTES, maxLength: FRAME_HEADER_BYTES }), fc.boolean(), (bytes, real) => {
        if (real) bytes.set([1, bytes[1], 0, 0, bytes[4], bytes[5] & 31, 0x4d, 0x52]);
        const limits = liveLimits(1 << 24);
        const check = checkFrameHeader(bytes, 0, limits);
        const fast = frameHeaderBytes(new DataView(bytes.buffer, bytes.byteOffset), 0, limits);
        expect(fast).toBe('bytes' in check ? check.bytes : 0);
      }),
    );
  });

  test('unknown flags are seen', () => {
    const { bytes } = lay([{ packetHeaderBytes: 4, payloadBytes: 0 }], true);
    new DataView(bytes.buffer).setUint16(3 + 2, 0x8000, true);
    sealFrames(bytes, 3, bytes.length, 0);
    expect(readFrameHeader(new DataView(bytes.buffer), 3, newFrameHeader())).toBe(false);
    expect(decodeFrameHeader(bytes, 3, newFrameHeader())).toBe(false);
  });
});
