// Reads images. Nothing is taken on trust: lengths are checked against the length of the whole before anything is allocated by them, and all
// checksums before anything is handed out. Whatever is wrong is ERR_CORRUPT with the part of the image and the byte.
import { MultirailError } from '../../errors.ts';
import { crcOfCrcs } from './encode.ts';
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
  readU53,
  SECTION_KINDS,
  SECTIONS_MAX,
  type SectionKind,
  TRAILER,
  TRAILER_BYTES,
  TRAILER_MAGIC,
} from './format.ts';

/** An entry of the section table, checked against the length of the image. */
export interface SectionEntry {
  /** Undefined for a kind that this version does not know. */
  readonly kind: SectionKind | undefined;
  readonly kindNumber: number;
  readonly name: string;
  /** Class of the array; empty for what is no array. */
  readonly element: string;
  /** From the beginning of the image. */
  readonly offset: number;
  readonly bytes: number;
  readonly crc: number;
}

/** All that stands before the sections. */
export interface ImageHead {
  readonly header: ImageHeader;
  readonly sections: readonly SectionEntry[];
  /** Where the sections begin. */
  readonly payloadAt: number;
}

const corrupt = (part: string, at: number, text: string): MultirailError =>
  new MultirailError('ERR_CORRUPT', `the image is damaged in its ${part}, at byte ${at}: ${text}`);

const KINDS = new Map<number, SectionKind>(Object.entries(SECTION_KINDS).map(([name, number]) => [number, name as SectionKind]));

const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

function hasText(bytes: Uint8Array, at: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) if (bytes[at + i] !== text.charCodeAt(i)) return false;
  return true;
}

function requireZeros(bytes: Uint8Array, from: number, to: number, part: string, base = 0): void {
  for (let i = from; i < to; i++) if (bytes[i] !== 0) throw corrupt(part, base + i, `${bytes[i]} where zero must be`);
}

/**
 * How long the head of an image is, from its first 96 bytes and the length of the whole. Throws ERR_CORRUPT unless the header is sound, and
 * ERR_SUPPORT when a newer version wrote it.
 */
export function headBytes(first: Uint8Array, totalBytes: number, crc32c: Crc32c): number {
  if (totalBytes < HEADER_BYTES + TRAILER_BYTES || first.length < HEADER_BYTES)
    throw corrupt(
      'header',
      Math.min(totalBytes, first.length),
      `it ends there; an image has at least ${HEADER_BYTES + TRAILER_BYTES} bytes`,
    );
  const view = viewOf(first);
  if (!hasText(first, HEADER.magic, IMAGE_MAGIC)) throw corrupt('header', HEADER.magic, `it does not begin with ${IMAGE_MAGIC}`);
  const crc = crc32c(first.subarray(0, HEADER.headerCrc));
  if (view.getUint32(HEADER.headerCrc, true) !== crc) throw corrupt('header', HEADER.headerCrc, 'its checksum is wrong');
  const version = view.getUint32(HEADER.version, true);
  if (version !== IMAGE_VERSION)
    throw new MultirailError(
      'ERR_SUPPORT',
      `the image has version ${version}, and this library reads version ${IMAGE_VERSION}: use the one that wrote it`,
    );
  if (view.getUint32(HEADER.headerBytes, true) !== HEADER_BYTES)
    throw corrupt('header', HEADER.headerBytes, `a header has ${HEADER_BYTES} bytes`);
  if (view.getUint32(HEADER.flags, true) !== 0) throw corrupt('header', HEADER.flags, 'version 1 has no flags');
  if (view.getUint32(HEADER.zero, true) !== 0) throw corrupt('header', HEADER.zero, 'zero must be there');
  for (const name of ['save', 'step', 'payloadBytes', 'wallTimeMs'] as const) {
    if (!Number.isSafeInteger(readU53(view, HEADER[name]))) throw corrupt('header', HEADER[name], `${name} is not below 2^53`);
  }
  const [rank, size] = [view.getUint32(HEADER.rank, true), view.getUint32(HEADER.size, true)];
  if (rank >= size) throw corrupt('header', HEADER.rank, `rank ${rank} of ${size}`);
  const sections = view.getUint32(HEADER.sections, true);
  const payloadBytes = readU53(view, HEADER.payloadBytes);
  const head = totalBytes - TRAILER_BYTES - payloadBytes;
  if (sections > SECTIONS_MAX || head < HEADER_BYTES + ENTRY_BYTES * sections || head % ALIGNMENT !== 0 || payloadBytes % ALIGNMENT !== 0)
    throw corrupt('header', HEADER.payloadBytes, `${sections} sections and ${payloadBytes} bytes of them do not make ${totalBytes} bytes`);
  return head;
}

/** Reads what stands before the sections; `head` has as many bytes as headBytes() says, or more. */
export function decodeHead(head: Uint8Array, totalBytes: number, crc32c: Crc32c): ImageHead {
  const payloadAt = headBytes(head, totalBytes, crc32c);
  if (head.length < payloadAt) throw corrupt('section table', head.length, `it ends there, and has ${payloadAt} bytes with the header`);
  const view = viewOf(head);
  if (view.getUint32(HEADER.tableCrc, true) !== crc32c(head.subarray(HEADER_BYTES, payloadAt)))
    throw corrupt('section table', HEADER_BYTES, 'the checksum of table and names is wrong');
  const count = view.getUint32(HEADER.sections, true);
  const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  const seen = new Set<string>();
  const sections: SectionEntry[] = [];
  let nameAt = HEADER_BYTES + ENTRY_BYTES * count;
  let at = payloadAt;
  for (let i = 0; i < count; i++) {
    const entry = HEADER_BYTES + ENTRY_BYTES * i;
    const u32 = (place: number): number => view.getUint32(entry + place, true);
    const nameBytes = u32(ENTRY.nameBytes);
    if (u32(ENTRY.nameOffset) !== nameAt || nameBytes < 1 || nameBytes > NAME_BYTES_MAX || nameAt + nameBytes > payloadAt)
      throw corrupt(`section table (entry ${i})`, entry + ENTRY.nameOffset, 'its name is not among the names');
    let name: string;
    try {
      name = text.decode(head.subarray(nameAt, nameAt + nameBytes));
    } catch {
      throw corrupt(`section table (entry ${i})`, nameAt, 'its name is not UTF-8');
    }
    nameAt += nameBytes;
    const bytes = readU53(view, entry + ENTRY.bytes);
    if (readU53(view, entry + ENTRY.offset) !== at || !Number.isSafeInteger(bytes) || at + aligned(bytes) > totalBytes - TRAILER_BYTES)
      throw corrupt(`section table (entry ${i})`, entry + ENTRY.offset, `section "${name}" does not lie in the image`);
    sections.push({ ...sectionClass(u32, bytes, name, entry), name, offset: at, bytes, crc: u32(ENTRY.crc) });
    at += aligned(bytes);
    requireZeros(head, entry + ENTRY.zeros, entry + ENTRY_BYTES, `section table (entry ${i})`);
    const key = `${u32(ENTRY.kind)}/${name}`;
    if (seen.has(key)) throw corrupt(`section table (entry ${i})`, entry, `the name "${name}" occurs twice`);
    seen.add(key);
  }
  if (aligned(nameAt) !== payloadAt) throw corrupt('names', nameAt, `they end there, and the sections begin at ${payloadAt}`);
  requireZeros(head, nameAt, payloadAt, 'names');
  if (at !== totalBytes - TRAILER_BYTES)
    throw corrupt('section table', HEADER.payloadBytes, `the sections end at ${at}, not before the trailer`);
  return { header: headerOf(head, view), sections, payloadAt };
}

function headerOf(head: Uint8Array, view: DataView): ImageHeader {
  return {
    save: readU53(view, HEADER.save),
    epoch: view.getUint32(HEADER.epoch, true),
    rank: view.getUint32(HEADER.rank, true),
    size: view.getUint32(HEADER.size, true),
    step: readU53(view, HEADER.step),
    wallTimeMs: readU53(view, HEADER.wallTimeMs),
    jobId: head.slice(HEADER.jobId, HEADER.jobId + JOB_ID_BYTES),
  };
}

/** Kind and class of a section. Of kinds that are not known nothing else is demanded. */
function sectionClass(
  u32: (place: number) => number,
  bytes: number,
  name: string,
  entry: number,
): Pick<SectionEntry, 'kind' | 'kindNumber' | 'element'> {
  const kindNumber = u32(ENTRY.kind);
  const kind = KINDS.get(kindNumber);
  const element = u32(ENTRY.element);
  if (kind === undefined) return { kind, kindNumber, element: '' };
  if (u32(ENTRY.codec) !== 0)
    throw corrupt('section table', entry + ENTRY.codec, `codec ${u32(ENTRY.codec)} of section "${name}" is not known`);
  const isArray = kind === 'array';
  if (isArray ? element < 1 || element >= ELEMENTS.length : element !== 0)
    throw corrupt('section table', entry + ENTRY.element, `class ${element} of section "${name}" is not one of kind ${kind}`);
  if (bytes % ELEMENTS[element].bytes !== 0)
    throw corrupt('section table', entry + ENTRY.bytes, `${bytes} bytes of array "${name}" are not whole elements`);
  return { kind, kindNumber, element: ELEMENTS[element].name };
}

/** Checks the last 16 bytes of an image. */
export function checkTrailer(trailer: Uint8Array, { sections }: ImageHead, totalBytes: number, crc32c: Crc32c): void {
  const view = viewOf(trailer);
  const at = totalBytes - TRAILER_BYTES;
  if (trailer.length !== TRAILER_BYTES || !hasText(trailer, TRAILER.magic, TRAILER_MAGIC))
    throw corrupt('trailer', at + TRAILER.magic, `it does not end with ${TRAILER_MAGIC}: the image is cut off, or goes on`);
  if (readU53(view, TRAILER.totalBytes) !== totalBytes)
    throw corrupt('trailer', at + TRAILER.totalBytes, `it names ${readU53(view, TRAILER.totalBytes)} bytes, and there are ${totalBytes}`);
  const crcs = sections.map(({ crc }) => crc);
  if (view.getUint32(TRAILER.sectionsCrc, true) !== crcOfCrcs(crcs, crc32c))
    throw corrupt('trailer', at + TRAILER.sectionsCrc, 'the checksum of the checksums is wrong');
}

/** Judges a section whose checksum was computed piece by piece; `padding` is what follows it. */
export function checkSection({ name, offset, bytes, crc }: SectionEntry, computed: number, padding: Uint8Array): void {
  if (computed !== crc) throw corrupt(`section "${name}"`, offset, `the checksum of its ${bytes} bytes is wrong`);
  requireZeros(padding, 0, padding.length, `section "${name}"`, offset + bytes);
}

/** A section of an image that was read: a view of its bytes. */
export interface DecodedSection extends SectionEntry {
  readonly data: Uint8Array;
}

/** Reads a whole image. The sections are views of `image`: nothing is copied. */
export function decodeImage(image: Uint8Array, crc32c: Crc32c): { header: ImageHeader; sections: readonly DecodedSection[] } {
  const head = decodeHead(image, image.length, crc32c);
  checkTrailer(image.subarray(image.length - TRAILER_BYTES), head, image.length, crc32c);
  const sections = head.sections.map((section) => {
    const { offset, bytes } = section;
    const data = image.subarray(offset, offset + bytes);
    checkSection(section, crc32c(data), image.subarray(offset + bytes, offset + aligned(bytes)));
    return { ...section, data };
  });
  return { header: head.header, sections };
}
