// Method: one stream of frames of every kind, fed whole, byte by byte, and at random splits (in part through target() and
// filled(), as a native stream would); the events must be the same.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { crc32c } from '../../../src/btl/base/crc32c.ts';
import {
  encodeFrameHeader,
  FLAG_PAYLOAD_CRC,
  FLAG_PLACED,
  FRAME_COUNT,
  FRAME_DATA,
  FRAME_HEADER_BYTES,
  HANDSHAKE_LIMITS,
  liveLimits,
  newFrameHeader,
} from '../../../src/btl/base/frame-hdr.ts';
import { type FramerHandler, StreamFramer } from '../../../src/btl/base/stream-framer.ts';
import type { Sink } from '../../../src/btl/btl.ts';
import { pattern } from '../../support/pattern.ts';

function frame(kind: number, flags: number, packetHeaderBytes: number, payload: Uint8Array, seed: number): Uint8Array {
  const bytes = new Uint8Array(FRAME_HEADER_BYTES + packetHeaderBytes + payload.length);
  bytes.set(pattern(packetHeaderBytes, seed), FRAME_HEADER_BYTES);
  bytes.set(payload, FRAME_HEADER_BYTES + packetHeaderBytes);
  const header = newFrameHeader(kind);
  header.flags = flags;
  header.packetHeaderBytes = packetHeaderBytes;
  header.payloadBytes = payload.length;
  header.frameNumber = seed;
  if (flags & FLAG_PAYLOAD_CRC) header.payloadCrc = crc32c(payload);
  encodeFrameHeader(header, bytes, 0);
  return bytes;
}

const STREAM = Buffer.concat([
  frame(FRAME_DATA, 0, 24, new Uint8Array(0), 1),
  frame(FRAME_DATA, 0, 24, pattern(300, 2), 2),
  frame(FRAME_DATA, FLAG_PAYLOAD_CRC, 60, pattern(5000, 3), 3),
  frame(FRAME_COUNT, 0, 0, new Uint8Array(0), 4),
  frame(FRAME_DATA, FLAG_PLACED, 30, pattern(7000, 5), 5),
  frame(FRAME_DATA, FLAG_PLACED | FLAG_PAYLOAD_CRC, 4096, pattern(901, 6), 6),
  frame(FRAME_DATA, FLAG_PLACED, 30, new Uint8Array(0), 7),
  frame(FRAME_DATA, FLAG_PLACED, 30, pattern(800, 8), 8), // discarded
  frame(FRAME_COUNT, 0, 0, new Uint8Array(0), 9),
]);

/** Splits of the sink: with an empty view between, so that no view's border is special. */
function sinkOf(bytes: number, seed: number): Sink {
  if (seed === 8) return { views: [], revoked: false };
  const memory = new Uint8Array(bytes);
  const a = Math.floor(bytes / 3);
  return { views: [memory.subarray(0, a), memory.subarray(a, a), memory.subarray(a)], revoked: false };
}

class Events implements FramerHandler {
  list: string[] = [];
  placePayload(header: { frameNumber: number; payloadBytes: number }): Sink {
    this.list.push(`place ${header.frameNumber} ${header.payloadBytes}`);
    return sinkOf(header.payloadBytes, header.frameNumber);
  }
  frame(
    header: { frameNumber: number; kind: number },
    packetHeader: Uint8Array,
    payload: Uint8Array,
    sink: Sink | null,
    payloadSound: boolean,
  ): void {
    const body = sink === null ? payload : Buffer.concat(sink.views);
    this.list.push(
      `frame ${header.frameNumber} ${header.kind} ${crc32c(packetHeader)} ${body.length} ${crc32c(body)} ${sink !== null} ${payloadSound}`,
    );
  }
  damage(text: string): void {
    this.list.push(`damage ${text}`);
  }
}

function feed(stream: Uint8Array, cuts: readonly number[], useTarget = false): string[] {
  const events = new Events();
  const framer = new StreamFramer(events, liveLimits(100_000));
  let at = 0;
  for (const cut of [...cuts, stream.length]) {
    while (at < cut) {
      const target = useTarget ? framer.target() : undefined;
      if (target !== undefined) {
        const bytes = Math.min(target.length, cut - at);
        target.set(stream.subarray(at, at + bytes));
        framer.filled(bytes);
        at += bytes;
      } else {
        // A copy that is overwritten afterwards: nothing of a chunk may be needed after push().
        const chunk = new Uint8Array(stream.subarray(at, cut));
        framer.push(chunk);
        chunk.fill(0xee);
        at = cut;
      }
    }
  }
  expect(framer.takenBytes).toBe(stream.length);
  expect(framer.midFrame).toBe(false);
  return events.list;
}

describe('any split gives the same events', () => {
  const whole = feed(STREAM, []);
  test('whole', () => {
    expect(whole.filter((event) => event.startsWith('frame'))).toHaveLength(9);
    expect(whole.every((event) => !event.endsWith('false false'))).toBe(true);
  });
  test('byte by byte', () => {
    const cuts = Array.from({ length: STREAM.length - 1 }, (_, i) => i + 1);
    expect(feed(STREAM, cuts)).toEqual(whole);
    expect(feed(STREAM, cuts, true)).toEqual(whole);
  });
  test('random splits', () => {
    const cut = fc.integer({ min: 1, max: STREAM.length - 1 });
    fc.assert(
      fc.property(fc.uniqueArray(cut, { maxLength: 30 }), fc.boolean(), (cuts, useTarget) => {
        const sorted = cuts.slice().sort((a, b) => a - b);
        expect(feed(STREAM, sorted, useTarget)).toEqual(whole);
      }),
      { numRuns: 150, seed: 1 },
    );
  });
});

test('a damaged payload is told, and the stream goes on', () => {
  for (const flags of [FLAG_PAYLOAD_CRC, FLAG_PAYLOAD_CRC | FLAG_PLACED]) {
    const bad = frame(FRAME_DATA, flags, 8, pattern(500), 1);
    bad[100] ^= 4;
    const events = feed(Buffer.concat([bad, frame(FRAME_COUNT, 0, 0, new Uint8Array(0), 2)]), [70, 200]);
    expect(events.filter((event) => event.startsWith('frame 1'))[0]).toMatch(/false$/);
    expect(events.at(-1)).toMatch(/^frame 2 .*true$/);
  }
});

test('a length beyond the limits is damage before anything is kept for it', () => {
  const events = new Events();
  const framer = new StreamFramer(events, liveLimits(100));
  framer.push(frame(FRAME_DATA, 0, 8, pattern(101), 1));
  expect(events.list).toEqual(['damage payload of 101 bytes, at most 100 are allowed']);
  expect(framer.stopped).toBe(true);
  const strict = new StreamFramer(events, HANDSHAKE_LIMITS);
  for (const byte of frame(FRAME_DATA, 0, 473, new Uint8Array(0), 1)) strict.push(Uint8Array.of(byte));
  expect(events.list[1]).toBe('damage packet header of 473 bytes, at most 472 are allowed');
});

test('a revoked sink gets no more bytes, by neither way', () => {
  const memory = new Uint8Array(1000);
  const sink: Sink = { views: [memory], revoked: false };
  const frames: boolean[] = [];
  const framer = new StreamFramer(
    { placePayload: () => sink, frame: (_h, _p, _b, got) => frames.push(got === sink), damage: () => {} },
    liveLimits(1000),
  );
  const bytes = frame(FRAME_DATA, FLAG_PLACED, 8, new Uint8Array(1000).fill(7), 1);
  framer.push(bytes.subarray(0, 500));
  expect(framer.target()?.length).toBe(1000 - 452);
  sink.revoked = true;
  expect(framer.target()).toBeUndefined();
  framer.push(bytes.subarray(500));
  expect(memory.filter((byte) => byte === 7).length).toBe(452);
  expect(frames).toEqual([true]);
});

test('memory that is taken away while a payload comes in: the rest goes into nothing, and what is behind it is read as ever', () => {
  for (const pieces of [false, true]) {
    const memory = new Uint8Array(1000);
    const seen: string[] = [];
    const framer = new StreamFramer(
      {
        placePayload: () => ({ views: [memory.subarray(0, 400), memory.subarray(400)], revoked: false }),
        frame: ({ frameNumber }) => void seen.push(`frame ${frameNumber}`),
        damage: (text) => void seen.push(text),
      },
      liveLimits(1 << 20),
    );
    const stream = Buffer.concat([frame(FRAME_DATA, FLAG_PLACED, 30, pattern(1000, 1), 1), frame(FRAME_COUNT, 0, 0, new Uint8Array(0), 2)]);
    framer.push(stream.subarray(0, FRAME_HEADER_BYTES + 30 + 200));
    structuredClone(memory.buffer, { transfer: [memory.buffer] });
    expect(framer.target()).toBeUndefined();
    const rest = stream.subarray(FRAME_HEADER_BYTES + 30 + 200);
    if (pieces) for (const byte of rest) framer.push(Uint8Array.of(byte));
    else framer.push(rest);
    expect(seen).toEqual(['frame 1', 'frame 2']);
  }
});
