// Writes an image. The sections are not copied: what comes out is a list of parts, to be written one after the other.
import { MultirailError } from '../../errors.ts';
import { crc32cCombine } from '../../util/crc32c.ts';
import {
  ALIGNMENT,
  aligned,
  type Crc32c,
  ELEMENTS,
  ENTRY,
  ENTRY_BYTES,
  HEADER,
  HEADER_BYTES,
  IMAGE_MAGIC,
  IMAGE_VERSION,
  type ImageHeader,
  JOB_ID_BYTES,
  NAME_BYTES_MAX,
  SECTION_KINDS,
  SECTIONS_MAX,
  type SectionKind,
  TRAILER,
  TRAILER_BYTES,
  TRAILER_MAGIC,
  writeU53,
} from './format.ts';

/** A section that is to be written. */
export interface NewSection {
  readonly kind: SectionKind;
  /** Unique among the sections of its kind. */
  readonly name: string;
  /** Class of the array, for kind 'array' only. */
  readonly element?: string;
  /** Must stay as they are until the image is written. */
  readonly bytes: Uint8Array;
  /** CRC32C of the bytes, where it is known already: a copy that was made for the save computes it on the way. */
  readonly crc?: number;
}

/** An image, ready to be written. */
export interface EncodedImage {
  /** To be written one after the other; sections are the views that were handed in. */
  readonly parts: readonly Uint8Array[];
  /** All of them together. */
  readonly bytes: number;
  /** CRC32C of all of them together, which the manifest names. */
  readonly crc: number;
}

const ZEROS = new Uint8Array(ALIGNMENT);
const isLittleEndian = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;

function elementOf({ kind, element, name, bytes }: NewSection): number {
  if (kind !== 'array') {
    if (element === undefined) return 0;
    throw new MultirailError('ERR_ARG', `section "${name}": kind ${kind} has no class of elements, and ${element} was given`);
  }
  const number = ELEMENTS.findIndex((one) => one.name === element);
  if (number < 1)
    throw new MultirailError('ERR_ARG', `array "${name}": its class ${element ?? 'is missing and'} cannot be saved; use a typed array`);
  if (bytes.length % ELEMENTS[number].bytes !== 0)
    throw new MultirailError('ERR_ARG', `array "${name}": ${bytes.length} bytes are not whole elements of a ${element}`);
  // A writer that swapped bytes would have to copy; no machine that this library is tested on needs it.
  if (!isLittleEndian && ELEMENTS[number].bytes > 1)
    throw new MultirailError('ERR_SUPPORT', `array "${name}": images are little-endian, and this machine is not; save bytes instead`);
  return number;
}

function encodedNames(sections: readonly NewSection[]): Uint8Array[] {
  const seen = new Set<string>();
  const encoder = new TextEncoder();
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  return sections.map(({ kind, name }) => {
    const bytes = encoder.encode(name);
    if (bytes.length < 1 || bytes.length > NAME_BYTES_MAX || decoder.decode(bytes) !== name)
      throw new MultirailError('ERR_ARG', `name of a section: ${bytes.length} bytes, expected 1 to ${NAME_BYTES_MAX} of well-formed text`);
    const key = `${kind}/${name}`;
    if (seen.has(key)) throw new MultirailError('ERR_ARG', `two sections of kind ${kind} are called "${name}": expected each name once`);
    seen.add(key);
    return bytes;
  });
}

function requireHeader({ save, epoch, rank, size, step, wallTimeMs, jobId }: ImageHeader, sections: number): void {
  const rows: [string, number, number][] = [
    ['save', save, Number.MAX_SAFE_INTEGER],
    ['epoch', epoch, 2 ** 32 - 1],
    ['size', size, 2 ** 32 - 1],
    ['rank', rank, size - 1],
    ['step', step, Number.MAX_SAFE_INTEGER],
    ['wallTimeMs', wallTimeMs, Number.MAX_SAFE_INTEGER],
    ['sections', sections, SECTIONS_MAX],
  ];
  for (const [name, value, high] of rows) {
    if (!Number.isSafeInteger(value) || value < 0 || value > high)
      throw new MultirailError('ERR_ARG', `${name} = ${value} of an image: expected a whole number from 0 to ${high}`);
  }
  if (jobId.length !== JOB_ID_BYTES) throw new MultirailError('ERR_ARG', `jobId has ${jobId.length} bytes: expected ${JOB_ID_BYTES}`);
}

/** Lays an image out and computes its checksums. */
export function encodeImage(header: ImageHeader, sections: readonly NewSection[], crc32c: Crc32c): EncodedImage {
  requireHeader(header, sections.length);
  const elements = sections.map(elementOf);
  const names = encodedNames(sections);
  const namesAt = HEADER_BYTES + ENTRY_BYTES * sections.length;
  const payloadAt = aligned(names.reduce((sum, { length }) => sum + length, namesAt));
  const payloadBytes = sections.reduce((sum, { bytes }) => sum + aligned(bytes.length), 0);
  const totalBytes = payloadAt + payloadBytes + TRAILER_BYTES;

  const head = new Uint8Array(payloadAt);
  const view = new DataView(head.buffer);
  const crcs = sections.map(({ bytes, crc }) => crc ?? crc32c(bytes));
  let nameAt = namesAt;
  let at = payloadAt;
  sections.forEach(({ kind, bytes }, i) => {
    const entry = HEADER_BYTES + ENTRY_BYTES * i;
    view.setUint32(entry + ENTRY.kind, SECTION_KINDS[kind], true);
    view.setUint32(entry + ENTRY.element, elements[i], true);
    view.setUint32(entry + ENTRY.nameOffset, nameAt, true);
    view.setUint32(entry + ENTRY.nameBytes, names[i].length, true);
    writeU53(view, entry + ENTRY.offset, at);
    writeU53(view, entry + ENTRY.bytes, bytes.length);
    view.setUint32(entry + ENTRY.crc, crcs[i], true);
    head.set(names[i], nameAt);
    nameAt += names[i].length;
    at += aligned(bytes.length);
  });

  for (let i = 0; i < IMAGE_MAGIC.length; i++) head[HEADER.magic + i] = IMAGE_MAGIC.charCodeAt(i);
  view.setUint32(HEADER.version, IMAGE_VERSION, true);
  view.setUint32(HEADER.headerBytes, HEADER_BYTES, true);
  writeU53(view, HEADER.save, header.save);
  view.setUint32(HEADER.epoch, header.epoch, true);
  view.setUint32(HEADER.rank, header.rank, true);
  view.setUint32(HEADER.size, header.size, true);
  view.setUint32(HEADER.sections, sections.length, true);
  writeU53(view, HEADER.step, header.step);
  writeU53(view, HEADER.payloadBytes, payloadBytes);
  writeU53(view, HEADER.wallTimeMs, header.wallTimeMs);
  head.set(header.jobId, HEADER.jobId);
  view.setUint32(HEADER.tableCrc, crc32c(head.subarray(HEADER_BYTES)), true);
  view.setUint32(HEADER.headerCrc, crc32c(head.subarray(0, HEADER.headerCrc)), true);

  const trailer = encodedTrailer(totalBytes, crcs, crc32c);
  const parts: Uint8Array[] = [head];
  let crc = crc32c(head);
  sections.forEach(({ bytes }, i) => {
    const zeros = ZEROS.subarray(0, aligned(bytes.length) - bytes.length);
    crc = crc32c(zeros, crc32cCombine(crc, crcs[i], bytes.length));
    if (bytes.length > 0) parts.push(bytes);
    if (zeros.length > 0) parts.push(zeros);
  });
  parts.push(trailer);
  return { parts, bytes: totalBytes, crc: crc32c(trailer, crc) };
}

function encodedTrailer(totalBytes: number, crcs: readonly number[], crc32c: Crc32c): Uint8Array {
  const trailer = new Uint8Array(TRAILER_BYTES);
  const view = new DataView(trailer.buffer);
  writeU53(view, TRAILER.totalBytes, totalBytes);
  view.setUint32(TRAILER.sectionsCrc, crcOfCrcs(crcs, crc32c), true);
  for (let i = 0; i < TRAILER_MAGIC.length; i++) trailer[TRAILER.magic + i] = TRAILER_MAGIC.charCodeAt(i);
  return trailer;
}

/** CRC32C of the checksums of all sections, as they stand in the table. */
export function crcOfCrcs(crcs: readonly number[], crc32c: Crc32c): number {
  const bytes = new Uint8Array(4 * crcs.length);
  const view = new DataView(bytes.buffer);
  for (const [i, crc] of crcs.entries()) view.setUint32(4 * i, crc, true);
  return crc32c(bytes);
}
