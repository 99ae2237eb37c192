// What is compared of a message before it leaves: where it goes, what it is called, how long it is, and a digest of its bytes. Bytes are
// compared and not values: NaN has many payloads and -0 is not 0, and both matter to whoever receives them. Pure.
import { crc32cJs } from '../../util/crc32c.ts';
import type { Iov } from '../../util/iov.ts';

/**
 * `crc32c`: 4 bytes; finds every burst of up to 32 bits, and misses one in 2^32 of other damage. `sha256`: 32 bytes. `full`: the bytes
 * themselves, which go from the shadow to the lead.
 */
export type CompareMode = 'crc32c' | 'sha256' | 'full';
export const COMPARE_MODES: readonly CompareMode[] = ['crc32c', 'sha256', 'full'];

/** Digest of a buffer. */
export type Digest = (buffer: Iov) => Uint8Array;

/** Destination of what is compared and sent to nobody: results. */
export const NOBODY = -2;

/** A send, as far as it is compared. */
export interface Word {
  /** Place among the requests of the replica, from 1 up. */
  readonly request: number;
  /** Place among its messages, from 1 up. */
  readonly message: number;
  readonly ctx: number;
  /** Number of the process that it goes to; NOBODY: a result, which stays here. */
  readonly dest: number;
  readonly tag: number;
  readonly bytes: number;
  readonly sync: boolean;
  readonly digest: Uint8Array;
}

export function crc32cDigest(crc32c: (bytes: Uint8Array, before: number) => number = crc32cJs): Digest {
  return ({ views }) => {
    let crc = 0;
    for (const view of views) crc = crc32c(view, crc);
    return Uint8Array.of(crc & 255, (crc >>> 8) & 255, (crc >>> 16) & 255, crc >>> 24);
  };
}

/** The bytes themselves. */
export const fullDigest: Digest = (buffer) => bytesOf(buffer);

/** A copy of a buffer. */
export function bytesOf(buffer: Iov): Uint8Array {
  const copy = new Uint8Array(buffer.bytes);
  buffer.copyTo(copy, 0);
  return copy;
}

/** Where two arrays of bytes differ first; -1: nowhere. The end of the shorter one counts as a difference. */
export function firstDifference(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) if (a[i] !== b[i]) return i;
  return a.length === b.length ? -1 : length;
}

const NAMES = { ctx: 'context', dest: 'destination', tag: 'tag', bytes: 'length', request: 'place among the calls', sync: 'kind' } as const;
const FIELDS = Object.keys(NAMES) as (keyof typeof NAMES)[];

/** In what two words differ; `digest`: in their bytes alone. */
export type Difference = { readonly field: string; readonly lead: string; readonly shadow: string } | 'digest';

/** In what two words differ; undefined: in nothing. */
export function differenceOf(lead: Word, shadow: Word): Difference | undefined {
  for (const name of FIELDS)
    if (lead[name] !== shadow[name]) return { field: NAMES[name], lead: String(lead[name]), shadow: String(shadow[name]) };
  return firstDifference(lead.digest, shadow.digest) === -1 ? undefined : 'digest';
}

const HEX_BYTES_MAX = 32;

/** A digest for people. */
export function hexOf(digest: Uint8Array): string {
  const hex = Array.from(digest.subarray(0, HEX_BYTES_MAX), (byte) => byte.toString(16).padStart(2, '0')).join('');
  return digest.length > HEX_BYTES_MAX ? `${hex}…` : hex;
}

/** A word for people. */
export function describeWord({ message, dest, tag, bytes }: Pick<Word, 'message' | 'dest' | 'tag' | 'bytes'>): string {
  if (dest === NOBODY) return `message ${message}, a result of ${bytes} bytes`;
  return `message ${message}, of ${bytes} bytes to rank ${dest} with tag ${tag}`;
}
