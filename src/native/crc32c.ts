// CRC32C of anything: long inputs go to the native part, which uses the processor's instruction; short inputs, and all inputs without the
// native part, go to slicing-by-8.
import { crc32cJs } from '../util/crc32c.ts';
import { loadNative } from './load.ts';

/** Below this many bytes the call into native code costs more than the loop (about 100 ns, measured on Node 20). */
const NATIVE_BYTES_MIN = 96;

const { binding, reason } = loadNative();

/** For `multirail info`: which implementation long inputs use. */
export const crc32cBackend: string = binding === undefined ? `JavaScript (${reason})` : 'the native part';

/** CRC32C of `bytes`; `crc` continues the value of the bytes before. */
export function crc32c(bytes: Uint8Array, crc = 0): number {
  return binding === undefined || bytes.length < NATIVE_BYTES_MIN ? crc32cJs(bytes, crc) : binding.crc32c(bytes, 0, bytes.length, crc);
}
