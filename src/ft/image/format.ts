// The format of an image, version 1: one rank's part of a save. Little-endian; docs/internals/IMAGE.md describes it for other
// implementations.
//
//   header 96   section table 64 each   names   zeros to 64   sections, each followed by zeros to 64   trailer 16

export const IMAGE_MAGIC = 'MRCKPT01';
export const TRAILER_MAGIC = 'MRCE';
export const IMAGE_VERSION = 1;
export const HEADER_BYTES = 96;
export const ENTRY_BYTES = 64;
export const TRAILER_BYTES = 16;
/** Sections begin at multiples of this, so that typed arrays can lie where they are. */
export const ALIGNMENT = 64;
export const JOB_ID_BYTES = 16;
export const NAME_BYTES_MAX = 1024;
export const SECTIONS_MAX = 65_536;

/** Places in the header. */
export const HEADER = {
  magic: 0,
  version: 8,
  headerBytes: 12,
  save: 16,
  epoch: 24,
  rank: 28,
  size: 32,
  sections: 36,
  step: 40,
  payloadBytes: 48,
  wallTimeMs: 56,
  jobId: 64,
  flags: 80,
  zero: 84,
  tableCrc: 88,
  headerCrc: 92,
} as const;

/** Places in an entry of the section table. */
export const ENTRY = {
  kind: 0,
  element: 4,
  nameOffset: 8,
  nameBytes: 12,
  offset: 16,
  bytes: 24,
  crc: 32,
  codec: 36,
  zeros: 40,
} as const;

/** Places in the trailer. */
export const TRAILER = { totalBytes: 0, sectionsCrc: 8, magic: 12 } as const;

/** What a section holds. Readers skip kinds that they do not know. */
export const SECTION_KINDS = {
  array: 1,
  value: 2,
  channel: 3,
  counters: 4,
  determinants: 5,
  log: 6,
  parity: 7,
} as const;
export type SectionKind = keyof typeof SECTION_KINDS;

/** Classes of arrays, by number; 0 is no array. Numbers are never used again. */
export const ELEMENTS: readonly { readonly name: string; readonly bytes: number }[] = [
  { name: '', bytes: 1 },
  { name: 'Int8Array', bytes: 1 },
  { name: 'Uint8Array', bytes: 1 },
  { name: 'Uint8ClampedArray', bytes: 1 },
  { name: 'Int16Array', bytes: 2 },
  { name: 'Uint16Array', bytes: 2 },
  { name: 'Int32Array', bytes: 4 },
  { name: 'Uint32Array', bytes: 4 },
  { name: 'Float32Array', bytes: 4 },
  { name: 'Float64Array', bytes: 8 },
  { name: 'BigInt64Array', bytes: 8 },
  { name: 'BigUint64Array', bytes: 8 },
  { name: 'DataView', bytes: 1 },
  { name: 'Float16Array', bytes: 2 },
];

/** Computes CRC32C; `crc` continues the value of the bytes before. Handed in: the native part has a faster one. */
export type Crc32c = (bytes: Uint8Array, crc?: number) => number;

/** What the header says of the save and of the rank. */
export interface ImageHeader {
  /** Number of the save: k. */
  readonly save: number;
  /** Recovery epoch in which it was made. */
  readonly epoch: number;
  /** Rank whose image it is. */
  readonly rank: number;
  /** Ranks of the communicator. */
  readonly size: number;
  /** Step of the program. */
  readonly step: number;
  /** Wall time at which it was made, in ms since 1970. */
  readonly wallTimeMs: number;
  /** First 16 bytes of the SHA-256 of the job's name. */
  readonly jobId: Uint8Array;
}

/** The least multiple of the alignment from `bytes` on. */
export const aligned = (bytes: number): number => Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;

/** Reads or writes whole numbers below 2^53 as two u32, low first. */
export function writeU53(view: DataView, at: number, value: number): void {
  view.setUint32(at, value % 2 ** 32, true);
  view.setUint32(at + 4, Math.floor(value / 2 ** 32), true);
}
/** May be beyond the exact integers, which the caller refuses. */
export const readU53 = (view: DataView, at: number): number => view.getUint32(at + 4, true) * 2 ** 32 + view.getUint32(at, true);
