// CRC32C (Castagnoli) of headers and, by option, payloads. Long inputs go to the native part, which uses the processor's instruction; short
// inputs, and all inputs without the native part, go to slicing-by-8.
import { loadNative } from '../../native/load.ts';

/** Reflected polynomial of CRC32C. */
const POLYNOMIAL = 0x82f63b78;
/** Below this many bytes the call into native code costs more than the loop (about 100 ns, measured on Node 20). */
const NATIVE_BYTES_MIN = 96;

/** Eight tables of 256 entries, one after the other: table k is the effect of a byte that lies k bytes further back. */
const TABLES = ((): Int32Array => {
  const tables = new Int32Array(8 * 256);
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
    tables[byte] = crc;
  }
  for (let byte = 0; byte < 256; byte++) {
    for (let k = 1; k < 8; k++) {
      const previous = tables[(k - 1) * 256 + byte];
      tables[k * 256 + byte] = (previous >>> 8) ^ tables[previous & 0xff];
    }
  }
  return tables;
})();

/** The pure-JavaScript CRC32C; `crc` is the value of the bytes before, 0 at the beginning. */
export function crc32cJs(bytes: Uint8Array, crc = 0): number {
  const t = TABLES;
  let c = ~crc;
  let i = 0;
  const end = bytes.length;
  for (const last = end - 8; i <= last; i += 8) {
    c ^= bytes[i] | (bytes[i + 1] << 8) | (bytes[i + 2] << 16) | (bytes[i + 3] << 24);
    c =
      t[1792 + (c & 0xff)] ^
      t[1536 + ((c >>> 8) & 0xff)] ^
      t[1280 + ((c >>> 16) & 0xff)] ^
      t[1024 + (c >>> 24)] ^
      t[768 + bytes[i + 4]] ^
      t[512 + bytes[i + 5]] ^
      t[256 + bytes[i + 6]] ^
      t[bytes[i + 7]];
  }
  for (; i < end; i++) c = (c >>> 8) ^ t[(c ^ bytes[i]) & 0xff];
  return ~c >>> 0;
}

const { binding, reason } = loadNative();

/** For `multirail info`: which implementation long inputs use. */
export const crc32cBackend: string = binding === undefined ? `JavaScript (${reason})` : 'the native part';

/** CRC32C of `bytes`; `crc` continues the value of the bytes before. */
export function crc32c(bytes: Uint8Array, crc = 0): number {
  return binding === undefined || bytes.length < NATIVE_BYTES_MIN ? crc32cJs(bytes, crc) : binding.crc32c(bytes, 0, bytes.length, crc);
}
