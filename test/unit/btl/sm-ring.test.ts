// The ring of a shared-memory rail over plain memory: order and content over many turns of the ring, batches, pads, and every kind of
// rubbish that a broken peer could leave in it.
import { describe, expect, test } from 'vitest';
import { FLAG_PLACED, RECORD_BYE, RECORD_DATA, RECORD_PROBE, recordWord } from '../../../src/btl/base/record-hdr.ts';
import {
  RECORD_ALIGNMENT,
  RECORD_HEADER_BYTES,
  RECORD_PAD,
  RingReader,
  RingWriter,
  recordBytes,
  Scratch,
} from '../../../src/btl/sm/ring.ts';
import { Prng } from '../../../src/util/prng.ts';

const RING_BYTES = 4096;
const AT = 128;
const HEADER_MAX = 256;
const PAYLOAD_MAX = 1024;

function makeRing(startAt = 0): { memory: ArrayBuffer; writer: RingWriter; reader: RingReader } {
  const memory = new ArrayBuffer(AT + RING_BYTES + 128);
  return {
    memory,
    writer: new RingWriter(memory, AT, RING_BYTES, startAt),
    reader: new RingReader(memory, AT, RING_BYTES, HEADER_MAX, PAYLOAD_MAX, startAt),
  };
}

function bytesOf(seed: number, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let i = 0; i < length; i++) bytes[i] = seed * 31 + i * 7 + 1;
  return bytes;
}

/** Writes a record that carries its number; returns the bytes that are given back with it. */
function write(writer: RingWriter, number: number, headerBytes: number, payloadBytes: number): number {
  const record = recordBytes(headerBytes, payloadBytes);
  const at = writer.begin(record);
  writer.words[(at >> 2) + 1] = payloadBytes;
  writer.words[(at >> 2) + 2] = number;
  writer.words[(at >> 2) + 3] = ~number;
  writer.fill(at, bytesOf(number, headerBytes), [bytesOf(number + 1, payloadBytes)]);
  return writer.commit(at, record, recordWord(RECORD_DATA, number % 2 === 0 ? FLAG_PLACED : 0, headerBytes));
}

function readOne(
  memory: ArrayBuffer,
  reader: RingReader,
): { number: number; header: Uint8Array; payload: Uint8Array; flags: number } | false {
  const found = reader.take();
  if (found === false) return false;
  if (found !== true || reader.number !== ~reader.deliveredCount) expect.fail(`not what was written: ${found}`);
  const record = {
    number: reader.deliveredCount,
    header: new Uint8Array(memory, AT + reader.packetHeaderAt, reader.packetHeaderBytes).slice(),
    payload: new Uint8Array(memory, AT + reader.payloadAt, reader.payloadBytes).slice(),
    flags: reader.flags,
  };
  reader.advance();
  return record;
}

describe('a ring', () => {
  for (const startAt of [0, RECORD_ALIGNMENT, RING_BYTES - RECORD_ALIGNMENT, RING_BYTES - 3 * RECORD_ALIGNMENT]) {
    test(`gives what was written, in order, over many turns; begun at ${startAt}`, () => {
      const prng = new Prng(`ring ${startAt}`);
      const { memory, writer, reader } = makeRing(startAt);
      const waiting: { number: number; size: number; headerBytes: number; payloadBytes: number }[] = [];
      let next = 1;
      let read = 0;
      let pads = 0;
      while (read < 3000) {
        const headerBytes = prng.below(HEADER_MAX + 1);
        const payloadBytes = prng.below(3) === 0 ? 0 : prng.below(PAYLOAD_MAX + 1);
        const record = recordBytes(headerBytes, payloadBytes);
        if (prng.below(3) > 0 && writer.fits(record, 0)) {
          const size = write(writer, next, headerBytes, payloadBytes);
          if (size > record) pads++;
          waiting.push({ number: next++, size, headerBytes, payloadBytes });
          if (writer.usedBytes > RING_BYTES - RECORD_ALIGNMENT) expect.fail('more was taken than there is');
          if (prng.below(2) === 0) writer.publish();
          continue;
        }
        writer.publish();
        const got = readOne(memory, reader);
        const expected = waiting.shift();
        if (expected === undefined) {
          expect(got).toBe(false);
          continue;
        }
        const isRight =
          got !== false &&
          got.number === expected.number &&
          got.flags === (expected.number % 2 === 0 ? FLAG_PLACED : 0) &&
          Buffer.compare(got.header, bytesOf(expected.number, expected.headerBytes)) === 0 &&
          Buffer.compare(got.payload, bytesOf(expected.number + 1, expected.payloadBytes)) === 0;
        if (!isRight) expect(got).toEqual(expected);
        writer.usedBytes -= expected.size;
        read++;
      }
      expect(pads).toBeGreaterThan(50);
      // Nothing was written beside the ring.
      expect(new Uint8Array(memory, 0, AT).every((byte) => byte === 0)).toBe(true);
      expect(new Uint8Array(memory, AT + RING_BYTES).every((byte) => byte === 0)).toBe(true);
    });
  }

  test('a batch is there as a whole with publish(), and nothing of it before', () => {
    const { memory, writer, reader } = makeRing();
    for (let n = 1; n <= 5; n++) write(writer, n, 16, 8);
    expect(writer.isHolding).toBe(true);
    expect(reader.hasRecord).toBe(false);
    writer.publish();
    expect(writer.isHolding).toBe(false);
    for (let n = 1; n <= 5; n++) expect(readOne(memory, reader)).toMatchObject({ number: n });
    expect(reader.hasRecord).toBe(false);
  });

  test('a batch that begins with a pad is not there before publish()', () => {
    const { memory, writer, reader } = makeRing(RING_BYTES - RECORD_ALIGNMENT);
    const size = write(writer, 1, 64, 200);
    expect(size).toBe(recordBytes(64, 200) + RECORD_ALIGNMENT);
    expect(reader.take()).toBe(false);
    writer.publish();
    expect(readOne(memory, reader)).toMatchObject({ number: 1 });
  });

  test('a short message is one cache line: the record and the zero behind it never share one', () => {
    expect(recordBytes(32, 8)).toBe(64);
    expect(recordBytes(32, 16)).toBe(64);
    expect(recordBytes(32, 17)).toBe(128);
    expect(recordBytes(0, 0)).toBe(64);
    expect(recordBytes(33, 0)).toBe(64);
  });

  test('a full ring takes nothing, and takes again what was given back', () => {
    const { memory, writer, reader } = makeRing();
    const sizes: number[] = [];
    while (writer.fits(recordBytes(0, 0), 0)) sizes.push(write(writer, sizes.length + 1, 0, 0));
    // One line stays free for the zero behind the last record.
    expect(sizes.length).toBe(RING_BYTES / RECORD_ALIGNMENT - 1);
    expect(writer.fits(recordBytes(0, 0), 0)).toBe(false);
    writer.publish();
    for (const size of sizes) {
      readOne(memory, reader);
      writer.usedBytes -= size;
      expect(writer.fits(recordBytes(0, 0), 0)).toBe(true);
    }
    expect(reader.hasRecord).toBe(false);
    expect(writer.usedBytes).toBe(0);
  });

  test('a reserve is left free', () => {
    const { writer } = makeRing();
    while (writer.fits(recordBytes(0, 100), 1024)) write(writer, 1, 0, 100);
    expect(RING_BYTES - writer.usedBytes).toBeGreaterThanOrEqual(1024 + RECORD_ALIGNMENT);
    expect(writer.fits(recordBytes(0, 100), 0)).toBe(true);
  });
});

describe('a ring that a broken peer wrote', () => {
  test('names what is wrong', () => {
    const cases: [string, (words: Int32Array) => void, RegExp][] = [
      ['long header', (w) => (w[0] = recordWord(RECORD_DATA, 0, HEADER_MAX + 1)), /packet header of 257/],
      ['negative payload', (w) => (w[1] = -1), /payload of -1/],
      ['long payload', (w) => (w[1] = PAYLOAD_MAX + 1), /payload of 1025/],
      ['huge payload', (w) => (w[1] = 0x7fffffff), /payload of 2147483647/],
      ['unknown flags', (w) => (w[0] = recordWord(RECORD_DATA, 0x80, 0)), /flags 128/],
      ['unknown kind', (w) => (w[0] = 77), /kind 77/],
      ['no kind', (w) => (w[0] = recordWord(0, 0, 8)), /kind 0/],
      ['pad at the beginning', (w) => (w[0] = RECORD_PAD), /pad at the beginning/],
      ['pad with flags', (w) => (w[0] = recordWord(RECORD_PAD, 1, 0)), /kind 5/],
      ['a BYE with a payload', (w) => w.set([RECORD_BYE, 8]), /carries something/],
      ['a probe with a header', (w) => w.set([recordWord(RECORD_PROBE, 0, 8), 0]), /carries something/],
    ];
    for (const [name, spoil, complaint] of cases) {
      const { writer, reader } = makeRing();
      write(writer, 1, 16, 8);
      writer.publish();
      spoil(writer.words);
      expect(reader.take(), name).toMatch(complaint);
    }
  });

  test('a record that reaches beyond the end is refused, and so is a pad that leads to another', () => {
    const { writer, reader } = makeRing(RING_BYTES - RECORD_ALIGNMENT);
    const at = (RING_BYTES - RECORD_ALIGNMENT) >> 2;
    writer.words[at + 1] = 64;
    writer.words[at] = recordWord(RECORD_DATA, 0, 0);
    expect(reader.take()).toMatch(/beyond the end/);
    writer.words[0] = RECORD_PAD;
    writer.words[at] = RECORD_PAD;
    expect(reader.take()).toMatch(/kind 5/);
  });

  test('never leads outside of the ring, never throws, and always comes to an end', () => {
    const prng = new Prng('spoiled rings');
    const interesting = [0, 1, -1, 2, 5, 0x7fffffff, -0x80000000, 0xffff0001 | 0, 0x01000001, RING_BYTES, 64, 255];
    let refused = 0;
    let taken = 0;
    for (let run = 0; run < 5000; run++) {
      const startAt = prng.below(RING_BYTES / RECORD_ALIGNMENT) * RECORD_ALIGNMENT;
      const { writer, reader } = makeRing(startAt);
      for (let n = 0; n < 6 && writer.fits(recordBytes(64, 256), 0); n++) write(writer, n, prng.below(64), prng.below(256));
      writer.publish();
      for (let n = prng.between(1, 12); n > 0; n--) {
        const word = prng.below(2) === 0 ? prng.below(RING_BYTES / 4) : ((startAt + prng.below(8) * 64) % RING_BYTES) / 4 + prng.below(4);
        writer.words[word] = prng.below(2) === 0 ? prng.pick(interesting) : prng.below(2 ** 32) | 0;
      }
      for (let step = 0; ; step++) {
        // A ring full of sound records would be read round and round: the counts above it end that.
        if (step > RING_BYTES / RECORD_ALIGNMENT) break;
        const found = reader.take();
        if (found === false) break;
        if (found !== true) {
          refused++;
          break;
        }
        taken++;
        const isInside =
          reader.packetHeaderAt >= RECORD_HEADER_BYTES &&
          reader.payloadAt >= reader.packetHeaderAt + reader.packetHeaderBytes &&
          reader.payloadAt + reader.payloadBytes <= RING_BYTES &&
          reader.packetHeaderBytes <= HEADER_MAX &&
          reader.payloadBytes <= PAYLOAD_MAX &&
          reader.recordBytes > 0;
        if (!isInside) expect.fail(`run ${run}: a record outside of the ring`);
        reader.advance();
      }
    }
    expect(refused).toBeGreaterThan(1000);
    expect(taken).toBeGreaterThan(1000);
  });
});

describe('scratch memory', () => {
  test('is private: what is written to the ring afterwards changes nothing', () => {
    const from = new Int32Array([1, 2, 3, 4]);
    const scratch = new Scratch(16);
    const view = scratch.take(from, 1, 6);
    from.fill(-1);
    expect([...view]).toEqual([2, 0, 0, 0, 3, 0]);
    expect(scratch.take(from, 0, 6)).toBe(view);
  });
});
