// Packet headers: every type survives a round trip with any fields; a malformed header is refused with ERR_PROTOCOL.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { MultirailError } from '../../../src/errors.ts';
import {
  DEAD_RAILS_MAX,
  decodePacket,
  encodePacket,
  FLAG,
  MISSING_RANGES_MAX,
  newPacket,
  OFFSET,
  PACKET,
  PACKET_NAMES,
  type Packet,
  type PacketType,
  packetBytes,
  WINDOW_KEY_BYTES_MAX,
  WINDOWS_MAX,
} from '../../../src/pml/hdr.ts';
import { bytesOf, encodePacketBytes, goldenPackets } from '../../support/golden.ts';

const u32 = fc.nat(0xffff_ffff);
const u53 = fc.maxSafeNat();
const u16 = fc.nat(0xffff);
const range = fc.tuple(u53, u53).map(([a, b]) => ({ from: Math.min(a, b), to: Math.max(a, b) }));
const windowOf = fc.record({ rail: u16, railEpoch: u32, key: fc.uint8Array({ maxLength: WINDOW_KEY_BYTES_MAX }) });
const railEpochs = (maxLength: number) => fc.array(fc.record({ rail: u16, epoch: u32 }), { maxLength });
const ids = { senderSlot: u32, senderGeneration: u32, receiverSlot: u32, receiverGeneration: u32 };
const flags = fc.nat(0xffff).map((bits) => bits & ~FLAG.TO_SENDER);
const common = { flags, creditLimit: u53 };
const match = { ...common, ctx: u32, source: u32, tag: fc.nat(0x7fff_ffff), seq: u32 };
const rndv = { ...match, messageBytes: u53, senderSlot: u32, senderGeneration: u32 };
const restart = { ...common, ...ids, epoch: u32, ctx: u32, source: u32, seq: u32 };

/** Ascending, not touching in any special way, all below `from`, which is at most `takeBytes`. */
const restartAck = fc.tuple(fc.uniqueArray(fc.nat(2 ** 40), { maxLength: 2 * MISSING_RANGES_MAX + 2 }), u53).map(([points, more]) => {
  const sorted = points.sort((a, b) => a - b);
  const missing: [number, number][] = [];
  for (let i = 0; i + 1 < sorted.length && missing.length < MISSING_RANGES_MAX; i += 2) missing.push([sorted[i], sorted[i + 1]]);
  const from = missing.at(-1)?.[1] ?? 0;
  return { missing, from, takeBytes: Math.max(from, more) };
});

const FIELDS: Partial<Record<keyof typeof PACKET, fc.Arbitrary<Partial<Packet>>>> = {
  MATCH: fc.record(match),
  RNDV: fc.record(rndv),
  RGET: fc.record({ ...rndv, windows: fc.array(windowOf, { maxLength: WINDOWS_MAX }) }),
  ACK: fc.record({ ...common, ...ids, takeBytes: u53, putRails: railEpochs(WINDOWS_MAX) }),
  FRAG: fc.record({ ...common, receiverSlot: u32, receiverGeneration: u32, epoch: u32, from: u53 }),
  PUT: fc
    .tuple(
      fc.record({ ...common, senderSlot: u32, senderGeneration: u32, epoch: u32, number: u32, windows: windowOf.map((w) => [w]) }),
      range,
    )
    .map(([a, b]) => ({ ...a, ...b })),
  FIN: fc
    .tuple(fc.record({ ...common, receiverSlot: u32, receiverGeneration: u32, epoch: u32, number: u32 }), range)
    .map(([a, b]) => ({ ...a, ...b })),
  RNDVRESTARTNOTIFY: fc.record({ ...restart, deadRails: railEpochs(DEAD_RAILS_MAX) }),
  RNDVRESTARTACK: fc.tuple(fc.record({ ...restart, putRails: railEpochs(WINDOWS_MAX) }), restartAck).map(([a, b]) => ({ ...a, ...b })),
  RNDVRESTARTNACK: fc.record(restart),
  RECVERRNOTIFY: fc.record(restart),
  RAILDOWN: fc.record({ ...common, rail: u16, epoch: u32 }),
  CREDIT: fc.record(common),
};

function refused(bytes: Uint8Array): string {
  try {
    decodePacket(bytes, newPacket());
  } catch (error) {
    expect(error).toBeInstanceOf(MultirailError);
    expect((error as MultirailError).code).toBe('ERR_PROTOCOL');
    return (error as MultirailError).message;
  }
  throw new Error(`not refused: ${Buffer.from(bytes).toString('hex')}`);
}

describe('round trips', () => {
  for (const [name, arbitrary] of Object.entries(FIELDS)) {
    test(name, () => {
      fc.assert(
        fc.property(arbitrary, fc.nat(3), (fields, lead) => {
          const packet = { ...newPacket(), ...fields, type: PACKET[name as keyof typeof PACKET] } as Packet;
          const bytes = encodePacketBytes(packet);
          // Anywhere in memory, and over what an earlier packet left in the record.
          const moved = new Uint8Array(lead + bytes.length);
          moved.set(bytes, lead);
          const out = newPacket();
          for (const stale of goldenPackets().packets.slice(0, 4)) decodePacket(bytesOf(stale.hex), out);
          decodePacket(moved.subarray(lead), out);
          for (const key of ['type', ...Object.keys(fields)] as (keyof Packet)[]) expect(out[key], key).toEqual(packet[key]);
          expect(packetBytes(packet)).toBe(bytes.length);
          if (name !== 'RGET' && name !== 'PUT') expect(bytes.length % 8).toBe(0);
        }),
        { numRuns: 60 },
      );
    });
  }

  test('a decoded window keeps its key when the bytes of the packet are used again', () => {
    const golden = goldenPackets().packets.find(({ name }) => name === 'PUT');
    const bytes = bytesOf(golden?.hex as string);
    const packet = newPacket();
    decodePacket(bytes, packet);
    bytes.fill(0);
    expect(Buffer.from(packet.windows[0].key).toString('hex')).toBe('deadbeefcafebabe');
  });

  test('NACK is a frame of the rail and no packet', () => {
    expect(() => encodePacket({ ...newPacket(), type: PACKET.NACK }, new DataView(new ArrayBuffer(64)))).toThrow(/ERR_INTERNAL/);
  });
});

describe('malformed', () => {
  const golden = goldenPackets().packets;

  test('any other length of any packet', () => {
    for (const { hex } of golden) {
      const bytes = bytesOf(hex);
      for (let length = 0; length < bytes.length; length++) refused(bytes.subarray(0, length));
      for (const extra of [1, 8, 16]) refused(new Uint8Array([...bytes, ...new Uint8Array(extra)]));
    }
  });

  test('other versions and unknown types', () => {
    for (const { hex } of golden) {
      for (const version of [0, 2, 255]) refused(Uint8Array.from(bytesOf(hex), (byte, i) => (i === OFFSET.version ? version : byte)));
    }
    for (let type = 0; type < 256; type++) {
      if (PACKET_NAMES[type] !== undefined && type !== PACKET.NACK) continue;
      const bytes = new Uint8Array(64);
      bytes[0] = 1;
      bytes[1] = type;
      expect(refused(bytes)).toMatch(/unknown packet type/);
    }
  });

  /** A golden packet with a u32 changed. */
  const changed = (name: string, at: number, value: number): Uint8Array => {
    const bytes = bytesOf(golden.find((one) => one.name === name)?.hex as string);
    new DataView(bytes.buffer).setUint32(at, value, true);
    return bytes;
  };

  test.each([
    ['a credit limit beyond 2^53', 'CREDIT', OFFSET.creditLimit + 4, 0x20_0000],
    ['a negative tag', 'MATCH', OFFSET.tag, 0x8000_0000],
    ['a message beyond 2^53', 'RNDV', OFFSET.messageBytes + 4, 0x20_0000],
    ['too many windows', 'RGET with two windows', OFFSET.rgetWindows, WINDOWS_MAX + 1],
    ['more windows than there are bytes', 'RGET with two windows', OFFSET.rgetWindows, 3],
    ['fewer windows than there are bytes', 'RGET with two windows', OFFSET.rgetWindows, 1],
    ['a window key that is too long', 'PUT', OFFSET.putWindow, (WINDOW_KEY_BYTES_MAX + 1) << 16],
    ['too many announced PUTs', 'ACK', OFFSET.ackPutCount, WINDOWS_MAX + 1],
    ['a huge number of announced PUTs', 'ACK', OFFSET.ackPutCount, 0xffff_ffff],
    ['a range that ends before it begins', 'FIN to the receiver', OFFSET.putTo, 1],
    ['too many dead rails', 'RNDVRESTARTNOTIFY', OFFSET.restartCount, DEAD_RAILS_MAX + 1],
    ['a huge number of dead rails', 'RNDVRESTARTNOTIFY', OFFSET.restartCount, 0xffff_ffff],
    ['too many missing ranges', 'RNDVRESTARTACK', OFFSET.restartCount, MISSING_RANGES_MAX + 1],
    ['ranges that are not ascending', 'RNDVRESTARTACK', OFFSET.restartAckRanges + 16, 0],
    ['an empty range', 'RNDVRESTARTACK', OFFSET.restartAckRanges + 8, 131_072],
    ['a range beyond the tail', 'RNDVRESTARTACK', OFFSET.restartAckTailFrom, 600_000],
    ['a tail beyond what is taken', 'RNDVRESTARTACK', OFFSET.restartAckTakeBytes, 900_000],
  ])('%s', (_what, name, at, value) => {
    refused(changed(name, at, value));
  });

  test('random bytes behind a known version and type never throw anything else', () => {
    const types = Object.values(PACKET) as PacketType[];
    fc.assert(
      fc.property(fc.constantFrom(...types), fc.uint8Array({ maxLength: 300 }), (type, rest) => {
        const bytes = new Uint8Array([1, type, ...rest]);
        try {
          decodePacket(bytes, newPacket());
        } catch (error) {
          expect(error).toMatchObject({ code: 'ERR_PROTOCOL' });
        }
      }),
      { numRuns: 1000 },
    );
  });
});
