// CRC32C of anything, and copies with it: long inputs go to the native part, which uses the processor's instruction; short inputs, and all
// inputs without the native part, go to slicing-by-8.
import { crc32cJs } from '../util/crc32c.ts';
import { loadNative } from './load.ts';

/** Below this many bytes the call into native code costs more than the loop (about 100 ns, measured on Node 20). */
const NATIVE_BYTES_MIN = 96;

/** So much is copied at a time without the native part, so that the checksum finds it in the cache. */
const PIECE_BYTES = 256 * 1024;

const { binding, reason } = loadNative();

/** For `multirail info`: which implementation long inputs use. */
export const crc32cBackend: string = binding === undefined ? `JavaScript (${reason})` : 'the native part';

/** CRC32C of the first `length` bytes; `crc` continues the value of the bytes before. */
export function crc32c(bytes: Uint8Array, crc = 0, length = bytes.length): number {
  return binding === undefined || length < NATIVE_BYTES_MIN ? crc32cJs(bytes, crc, length) : binding.crc32c(bytes, 0, length, crc);
}

/** Copies `source` to `target`, which is as long and shares no memory with it. Returns the CRC32C of what was copied. */
export function copyCrc32c(target: Uint8Array, source: Uint8Array): number {
  if (binding !== undefined && source.length >= NATIVE_BYTES_MIN) return binding.copyCrc32c(target, source, 0);
  let crc = 0;
  for (let at = 0; at < source.length; at += PIECE_BYTES) {
    const piece = target.subarray(at, Math.min(at + PIECE_BYTES, source.length));
    piece.set(source.subarray(at, at + piece.length));
    crc = crc32c(piece, crc);
  }
  return crc;
}
