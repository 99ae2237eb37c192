// Method: the vectors of RFC 3720 B.4, and agreement of the native and the JavaScript function on lengths around their border.
import { expect, test } from 'vitest';
import { crc32c, crc32cBackend, crc32cJs } from '../../../src/btl/base/crc32c.ts';
import { pattern } from '../../support/pattern.ts';

const ascending = Uint8Array.from({ length: 32 }, (_, i) => i);

const VECTORS: [string, Uint8Array, number][] = [
  ['nothing', new Uint8Array(0), 0],
  ['123456789', new TextEncoder().encode('123456789'), 0xe3069283],
  ['32 zeros', new Uint8Array(32), 0x8a9136aa],
  ['32 ones', new Uint8Array(32).fill(0xff), 0x62a8ab43],
  ['ascending', ascending, 0x46dd794e],
  ['descending', ascending.slice().reverse(), 0x113fdb5c],
];

test.each(VECTORS)('%s', (_name, bytes, value) => {
  expect(crc32c(bytes)).toBe(value);
  expect(crc32cJs(bytes)).toBe(value);
});

test('both implementations agree, whole and continued, aligned or not', () => {
  console.log(`crc32c: ${crc32cBackend}`);
  const bytes = pattern(5000);
  for (const length of [1, 7, 8, 9, 63, 95, 96, 97, 255, 1024, 4999]) {
    for (const from of [0, 1]) {
      const part = bytes.subarray(from, from + length);
      expect(crc32c(part)).toBe(crc32cJs(part));
      const cut = length >> 1;
      expect(crc32c(part.subarray(cut), crc32cJs(part.subarray(0, cut)))).toBe(crc32cJs(part));
    }
  }
});
