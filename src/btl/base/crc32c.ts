// CRC32C (Castagnoli) of headers and, by option, payloads. Long inputs go to the native part, or without it to @node-rs/crc32: both use
// the processor's instruction. Short ones, and every input where neither has a binary, go to slicing-by-8 of our own.
import { createRequire } from 'node:module';
import { isAbsolute } from 'node:path';
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

type Crc32c = (bytes: Uint8Array, crc?: number) => number;

/** The native function, or why there is none. It is taken only if it agrees with ours on a known value. */
function loadFunction(): { crc32c: Crc32c; name: string } | { reason: string } {
  const { binding } = loadNative();
  if (binding !== undefined) return { crc32c: (bytes, crc = 0) => binding.crc32c(bytes, 0, bytes.length, crc), name: 'the native part' };
  try {
    // The package is CommonJS and throws when it has no binary for this machine, so it cannot be a static import. The CommonJS build of
    // multirail has no import.meta.url, the ES module build no __filename but what `node -e` puts there.
    const here = typeof __filename === 'string' && isAbsolute(__filename) ? __filename : import.meta.url;
    const native = createRequire(here)('@node-rs/crc32') as { crc32c: Crc32c };
    if (native.crc32c(Buffer.from('123456789')) !== 0xe3069283) return { reason: '@node-rs/crc32 computes another value' };
    return { crc32c: native.crc32c, name: '@node-rs/crc32' };
  } catch (error) {
    return { reason: error instanceof Error ? error.message.split('\n')[0] : String(error) };
  }
}

const loaded = loadFunction();
const native: Crc32c | undefined = 'crc32c' in loaded ? loaded.crc32c : undefined;

/** For `multirail info`: which implementation long inputs use. */
export const crc32cBackend: string = 'name' in loaded ? loaded.name : `JavaScript (${loaded.reason})`;

/** CRC32C of `bytes`; `crc` continues the value of the bytes before. */
export function crc32c(bytes: Uint8Array, crc = 0): number {
  return native === undefined || bytes.length < NATIVE_BYTES_MIN ? crc32cJs(bytes, crc) : native(bytes, crc);
}
