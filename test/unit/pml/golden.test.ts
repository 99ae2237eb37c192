// Golden bytes: docs/internals/golden/*.json, the code and docs/internals/PROTOCOL.md must agree. A change of a hex line is a change of the
// wire format and needs a new version number. `UPDATE_GOLDEN=1 npx vitest run --project unit test/unit/pml/golden.test.ts` writes the hex
// of the JSON files, and the golden part of the document, again.
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { decodeFrameHeader, FRAME_HEADER_BYTES, newFrameHeader } from '../../../src/btl/base/frame-hdr.ts';
import { decodePacket, newPacket, PACKET } from '../../../src/pml/hdr.ts';
import {
  bytesOf,
  encodeFrame,
  encodeHandshake,
  encodePacketBytes,
  FRAME_KINDS,
  fieldsOf,
  GOLDEN_DIR,
  goldenFrames,
  goldenHandshake,
  goldenPackets,
  goldenSignatures,
  hexOf,
  PROTOCOL_MD,
  packetOf,
  renderGolden,
  signatureOf,
} from '../../support/golden.ts';

const BEGIN = '<!-- golden: begin (written by test/unit/pml/golden.test.ts) -->';
const END = '<!-- golden: end -->';

if (process.env.UPDATE_GOLDEN === '1') {
  const write = (name: string, value: unknown) => writeFileSync(new URL(name, GOLDEN_DIR), `${JSON.stringify(value, null, 2)}\n`);
  const packets = goldenPackets();
  for (const golden of packets.packets) golden.hex = hexOf(encodePacketBytes(packetOf(golden.fields)));
  write('packets.json', packets);
  const signatures = goldenSignatures();
  for (const golden of signatures.signatures) golden.code = signatureOf(golden).code;
  write('signatures.json', signatures);
  const frames = goldenFrames();
  for (const golden of frames.frames) golden.hex = hexOf(encodeFrame(golden));
  write('frames.json', frames);
  const handshake = goldenHandshake();
  const made = encodeHandshake(handshake);
  handshake.epochKey = hexOf(made.epochKey);
  for (const [i, bytes] of made.frames.entries()) handshake.frames[i].hex = hexOf(bytes);
  write('handshake.json', handshake);
  const text = readFileSync(PROTOCOL_MD, 'utf8');
  const [before] = text.split(BEGIN);
  const after = text.split(END)[1] ?? '\n';
  writeFileSync(PROTOCOL_MD, `${before}${BEGIN}\n\n${renderGolden()}\n${END}${after}`);
}

describe('packets', () => {
  for (const { name, fields, hex } of goldenPackets().packets) {
    test(`${name} is encoded to its bytes and decoded to its fields`, () => {
      expect(hexOf(encodePacketBytes(packetOf(fields)))).toBe(hex);
      const packet = newPacket();
      decodePacket(bytesOf(hex), packet);
      expect(fieldsOf(packet, fields)).toEqual(fields);
    });
  }

  test('every type has one', () => {
    const shown = new Set(goldenPackets().packets.map(({ fields }) => fields.type));
    expect(Object.keys(PACKET).filter((name) => !shown.has(name))).toEqual(['NACK']);
  });
});

describe('signatures', () => {
  for (const golden of goldenSignatures().signatures) {
    test(`${signatureOf(golden)} has its code`, () => expect(signatureOf(golden).code).toBe(golden.code));
  }
});

describe('rail frames', () => {
  for (const golden of goldenFrames().frames) {
    test(`${golden.name} is encoded to its bytes and decoded to its fields`, () => {
      expect(hexOf(encodeFrame(golden))).toBe(golden.hex);
      const header = newFrameHeader();
      expect(decodeFrameHeader(bytesOf(golden.hex), 0, header)).toBe(true);
      expect(header).toEqual({
        ...golden.fields,
        kind: FRAME_KINDS[golden.fields.kind as string],
        packetHeaderBytes: golden.packetHeader.length / 2,
        payloadBytes: golden.payload.length / 2,
      });
      expect(golden.hex.slice(FRAME_HEADER_BYTES * 2)).toBe(golden.packetHeader + golden.payload);
    });
  }
});

test('the handshake, frame by frame', () => {
  const golden = goldenHandshake();
  const { frames, epochKey } = encodeHandshake(golden);
  expect(frames.map(hexOf)).toEqual(golden.frames.map(({ hex }) => hex));
  expect(hexOf(epochKey)).toBe(golden.epochKey);
});

test('docs/internals/PROTOCOL.md shows the same bytes', () => {
  const text = readFileSync(PROTOCOL_MD, 'utf8');
  expect(text).toContain(BEGIN);
  expect(text.slice(text.indexOf(BEGIN) + BEGIN.length, text.indexOf(END)).trim()).toBe(renderGolden().trim());
});
