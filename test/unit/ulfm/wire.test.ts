// Service messages: golden bytes, which the code, docs/internals/golden/ulfm.json and docs/internals/ULFM.md must agree on, and everything
// that is refused. `UPDATE_GOLDEN=1 npx vitest run --project unit test/unit/ulfm/wire.test.ts` writes the hex of the JSON file and the golden
// part of the document.
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { MultirailError } from '../../../src/errors.ts';
import { PROCESSES_MAX } from '../../../src/ulfm/limits.ts';
import {
  decodeServiceBody,
  decodeServiceHeader,
  encodeService,
  HEADER_BYTES,
  OFFSET,
  SERVICE,
  SERVICE_VERSION,
  type ServiceMessage,
} from '../../../src/ulfm/wire.ts';
import { bytesOf, GOLDEN_DIR, hexOf } from '../../support/golden.ts';
import { fieldsOfService, goldenServices, renderServices, serviceOf, ULFM_MD } from '../../support/ulfm-golden.ts';

const BEGIN = '<!-- golden: begin (written by test/unit/ulfm/wire.test.ts) -->';
const END = '<!-- golden: end -->';

if (process.env.UPDATE_GOLDEN === '1') {
  const golden = goldenServices();
  for (const one of golden.messages) one.hex = hexOf(encodeService(serviceOf(one)));
  writeFileSync(new URL('ulfm.json', GOLDEN_DIR), `${JSON.stringify(golden, null, 2)}\n`);
  const text = readFileSync(ULFM_MD, 'utf8');
  writeFileSync(ULFM_MD, `${text.split(BEGIN)[0]}${BEGIN}\n\n${renderServices()}\n${END}${text.split(END)[1] ?? '\n'}`);
}

const GOLDEN = goldenServices().messages;
const decode = (bytes: Uint8Array, size: number): ServiceMessage => decodeServiceBody(decodeServiceHeader(bytes), bytes, size);

describe('golden bytes', () => {
  test.each(GOLDEN.map((golden) => [golden.name, golden] as const))('%s', (_, golden) => {
    expect(hexOf(encodeService(serviceOf(golden)))).toBe(golden.hex);
    const bytes = bytesOf(golden.hex);
    const message = decode(bytes, golden.size);
    // What was decoded holds no memory of the message.
    bytes.fill(0xee);
    expect(fieldsOfService(message)).toEqual(golden.fields);
    expect(hexOf(encodeService(message))).toBe(golden.hex);
  });

  test('every type has one', () => {
    const shown = new Set(GOLDEN.map(({ fields }) => fields.type as string));
    expect(Object.keys(SERVICE).filter((name) => !shown.has(name))).toEqual([]);
  });

  test('docs/internals/ULFM.md shows the same bytes', () => {
    const text = readFileSync(ULFM_MD, 'utf8');
    expect(text).toContain(BEGIN);
    expect(text.slice(text.indexOf(BEGIN) + BEGIN.length, text.indexOf(END)).trim()).toBe(renderServices().trim());
  });
});

const golden = (name: string) => {
  const found = GOLDEN.find((one) => one.name === name);
  if (found === undefined) throw new Error(`there is no golden message ${name}`);
  return { bytes: bytesOf(found.hex), size: found.size };
};

const STATE = 'STATE up the tree, of an inner node';
const LOCKED = 'STATE straight to the second leader, with a lock';
const RECOVERY = 'PROPOSE of a recovery, with a successor';
const VALUE = HEADER_BYTES;
const u32 = (at: number, value: number) => (bytes: Uint8Array) => new DataView(bytes.buffer).setUint32(at, value, true);
const u8 = (at: number, value: number) => (bytes: Uint8Array) => new DataView(bytes.buffer).setUint8(at, value);
const f64 = (at: number, value: number) => (bytes: Uint8Array) => new DataView(bytes.buffer).setFloat64(at, value, true);

/** A change to a golden message, and what is said of it. */
const REFUSED: readonly [name: string, change: (bytes: Uint8Array) => void, says: RegExp][] = [
  ['PROPOSE', u8(OFFSET.version, SERVICE_VERSION + 1), /version 2, expected 1/],
  ['PROPOSE', u8(OFFSET.series, 2), /series 2, expected 0 or 1/],
  ['PROPOSE', u8(OFFSET.flags, 2), /PROPOSE with flags 2/],
  [STATE, u8(OFFSET.flags, 4), /STATE with flags 4/],
  ['PROPOSE', u32(OFFSET.id, 2 ** 30), /below 2\^30/],
  ['PROPOSE', u32(OFFSET.from, 4), /rank 4 of 4/],
  ['PROPOSE', u32(OFFSET.from, PROCESSES_MAX), /below 8192/],
  ['PROPOSE', u32(OFFSET.view, 4), /view of rank 4 of 4/],
  ['PROPOSE', u32(OFFSET.bodyBytes, 0), /says 0 bytes/],
  ['PROPOSE', u32(OFFSET.bodyBytes, 2 ** 32 - 1), /says 4294967295 bytes/],
  ['REVOKE', u8(OFFSET.series, 1), /REVOKE with 1 at byte 2/],
  ['REVOKE', u8(OFFSET.flags, 1), /REVOKE with 1 at byte 3/],
  ['REVOKE', u32(OFFSET.q, 256), /REVOKE with 1 at byte 9/],
  ['REVOKED', u32(OFFSET.view, 3), /REVOKED with 3 at byte 16/],
  ['REVOKE', u32(OFFSET.from, 4), /rank 4 of 4/],
  ['FAILED', u32(OFFSET.id, 1), /FAILED with 1 at byte 4/],
  ['FAILED', u32(HEADER_BYTES + 4, PROCESSES_MAX), /process 8192/],
  ['FAILED', f64(HEADER_BYTES + 8, 0.5), /incarnation 0.5/],
  ['FAILED', f64(HEADER_BYTES + 8, Number.NaN), /incarnation NaN/],
  ['FAILED', f64(HEADER_BYTES + 8, -1), /incarnation -1/],
  ['FAILED', u8(HEADER_BYTES + 19, 1), /FAILED with 1 at byte 47/],
  [STATE, u8(HEADER_BYTES, 0), /operation 0/],
  [STATE, u8(HEADER_BYTES, 32), /operation 32/],
  [STATE, u8(HEADER_BYTES + 1, 1), /always 0/],
  [STATE, u8(HEADER_BYTES + 8, 0xf4), /set of those that it covers goes beyond rank 3/],
  [STATE, u8(HEADER_BYTES + 8, 0b1000), /does not cover its sender, rank 2/],
  [STATE, u8(HEADER_BYTES + 9, 0x10), /set of the dead/],
  [STATE, u8(HEADER_BYTES + 10, 0x80), /set of the acknowledged/],
  [STATE, u8(OFFSET.flags, 2), /ends at byte 39, where 4 more are expected/],
  [LOCKED, u8(OFFSET.flags, 1), /of 74 bytes, expected 42/],
  [LOCKED, u32(HEADER_BYTES + 14, 1), /generation 0 with a lock of 1/],
  [LOCKED, u32(HEADER_BYTES + 18, 11), /rank 11 as the leader of a lock/],
  [LOCKED, u32(HEADER_BYTES + 26, 1), /generation 0 with a value of 1/],
  ['PROPOSE', u8(VALUE, 0), /operation 0/],
  ['PROPOSE', u8(VALUE + 1, 9), /always 0/],
  ['PROPOSE', u32(VALUE + 4, 1), /generation 0 with a value of 1/],
  ['PROPOSE', u32(VALUE + 12, 2 ** 30), /makes communicator 1073741824/],
  ['PROPOSE', u32(VALUE + 16, 1), /1 successors of 0 failed/],
  ['PROPOSE', u8(VALUE + 20, 0x10), /set of the failed/],
  [RECOVERY, u8(VALUE, 1), /2 successors of 2 failed/],
  [RECOVERY, u32(VALUE + 16, 1), /of 68 bytes, expected 60/],
  [RECOVERY, u32(VALUE + 24, 8), /successor of rank 8, which is not the next failed one/],
  [RECOVERY, u32(VALUE + 24, 9), /rank 9 as replaced/],
  [RECOVERY, u32(VALUE + 24, 1), /successor of rank 1/],
  [RECOVERY, u32(VALUE + 28, PROCESSES_MAX), /process 8192/],
  ['ACK of an inner node', u8(HEADER_BYTES, 0x1c), /beyond rank 3/],
  ['ACK of an inner node', u8(HEADER_BYTES, 0b1000), /does not cover its sender/],
  ['CALLED_IN', u32(OFFSET.q, 1), /CALLED_IN with 1 at byte 8/],
  ['CALLED_IN', u32(OFFSET.from, 2), /CALLED_IN of process 2, which is not a member/],
  ['CALLED_IN', u32(HEADER_BYTES, 2 ** 30), /replaces communicator 1073741824/],
  ['CALLED_IN', u32(HEADER_BYTES + 12, 0), /of 0 members/],
  ['CALLED_IN', u32(HEADER_BYTES + 12, PROCESSES_MAX + 1), /of 8193 members/],
  ['CALLED_IN', u32(HEADER_BYTES + 12, 2 ** 31), /of 2147483648 members/],
  ['CALLED_IN', u32(HEADER_BYTES + 24, PROCESSES_MAX), /process 8192/],
  ['CALLED_IN', u32(HEADER_BYTES + 24, 1), /names a member twice/],
  ['CALLED_IN', u8(HEADER_BYTES + 32, 0), /calls 0 of 4 members in/],
  ['CALLED_IN', u8(HEADER_BYTES + 32, 0b1111), /calls 4 of 4 members in/],
  ['CALLED_IN', u8(HEADER_BYTES + 32, 0x10), /beyond rank 3/],
];

describe('what is refused', () => {
  test.each(REFUSED.map(([name, change, says]) => [name, String(says), change, says] as const))('%s: %s', (name, _, change, says) => {
    const { bytes, size } = golden(name);
    expect(() => decode(bytes, size)).not.toThrow();
    const changed = bytes.slice();
    change(changed);
    expect(() => decode(changed, size)).toThrow(says);
    expect(() => decode(changed, size)).toThrow(MultirailError);
  });

  test.each(GOLDEN.map((one) => [one.name, one] as const))('%s cut off or drawn out anywhere', (_, { hex, size }) => {
    const bytes = bytesOf(hex);
    for (let length = 0; length < bytes.length; length++) {
      expect(() => decode(bytes.slice(0, length), size)).toThrow(/^ERR_PROTOCOL/);
      if (length < HEADER_BYTES) continue;
      // And with a header that knows of it.
      const cut = bytes.slice(0, length);
      new DataView(cut.buffer).setUint32(OFFSET.bodyBytes, length - HEADER_BYTES, true);
      expect(() => decode(cut, size)).toThrow(/^ERR_PROTOCOL/);
    }
    const longer = new Uint8Array(bytes.length + 1);
    longer.set(bytes);
    expect(() => decode(longer, size)).toThrow(/^ERR_PROTOCOL/);
    new DataView(longer.buffer).setUint32(OFFSET.bodyBytes, longer.length - HEADER_BYTES, true);
    expect(() => decode(longer, size)).toThrow(/^ERR_PROTOCOL/);
  });

  test('a type that is not known is handed on, whatever it holds', () => {
    const bytes = new Uint8Array(HEADER_BYTES + 3).fill(0xff);
    bytes[OFFSET.version] = SERVICE_VERSION;
    bytes[OFFSET.type] = 99;
    expect(decodeServiceHeader(bytes).type).toBe(99);
  });
});
