// Images for programs: read and checked, with their arrays and values.
import { deserialize } from 'node:v8';
import { MultirailError } from '../../errors.ts';
import { crc32c } from '../../native/crc32c.ts';
import { type DecodedSection, decodeImage } from '../image/decode.ts';
import { ELEMENTS } from '../image/format.ts';

/** A section of an image. */
export interface ImageSection {
  /** `array`, `value`, or what the library keeps for itself: `channel`, `counters`, `determinants`, `log`; `unknown` for kinds of later versions. */
  readonly kind: 'array' | 'value' | 'channel' | 'counters' | 'determinants' | 'log' | 'parity' | 'unknown';
  /** The name under which the program has registered it. */
  readonly name: string;
  /** Class of the array, `Float64Array` for instance; undefined for what is not an array. */
  readonly element: string | undefined;
  /** Its bytes, little-endian: a view of the image, which is not copied. */
  readonly data: Uint8Array;
}

/** One rank's part of a save. */
export interface Image {
  /** Number of the save. */
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
  /** In the order in which they were registered. */
  readonly sections: readonly ImageSection[];
}

const sectionOf = ({ kind, name, element, data }: DecodedSection): ImageSection => ({
  kind: kind ?? 'unknown',
  name,
  element: element === '' ? undefined : element,
  data,
});

/**
 * Reads an image. All lengths and checksums are right when it returns.
 *
 * @param bytes The whole image, as a store's get() gives it. The sections are views of it.
 * @throws ERR_CORRUPT: it is not an image, or a damaged one; the text names the section and the byte.
 * @throws ERR_SUPPORT: a later version of the format.
 */
export function readImage(bytes: Uint8Array): Image {
  const { header, sections } = decodeImage(bytes, crc32c);
  return { ...header, sections: sections.map(sectionOf) };
}

/**
 * The array of a section, of the class that it was saved as. It is a view of the image where the image lies well in memory, else a copy.
 *
 * @param section A section of kind `array`.
 * @throws ERR_ARG: the section is not an array.
 * @throws ERR_SUPPORT: this version of Node has no such class (Float16Array), or this machine is not little-endian.
 */
export function imageArray(section: ImageSection): ArrayBufferView {
  const { kind, name, element, data } = section;
  const elementBytes = ELEMENTS.find((one) => one.name === element)?.bytes;
  if (kind !== 'array' || element === undefined || elementBytes === undefined)
    throw new MultirailError('ERR_ARG', `section "${name}" is of kind ${kind}: expected an array; imageValue() reads values`);
  const View = (
    globalThis as unknown as Record<string, (new (memory: ArrayBufferLike, at: number, length: number) => ArrayBufferView) | undefined>
  )[element];
  if (View === undefined)
    throw new MultirailError(
      'ERR_SUPPORT',
      `array "${name}" is a ${element}, which Node ${process.version} does not have: use a newer one`,
    );
  if (elementBytes > 1 && new Uint8Array(Uint16Array.of(1).buffer)[0] !== 1)
    throw new MultirailError('ERR_SUPPORT', `array "${name}" is little-endian, and this machine is not: take its bytes from data`);
  const lying = data.byteOffset % elementBytes === 0 ? data : data.slice();
  return new View(lying.buffer, lying.byteOffset, lying.length / elementBytes);
}

/**
 * The value of a section, by structured clone. Only of images that you trust: whoever can write into the store can make V8's deserializer read
 * what he likes.
 *
 * @param section A section of kind `value`.
 * @throws ERR_ARG: the section is not a value.
 * @throws ERR_SUPPORT: a newer version of Node wrote it.
 */
export function imageValue(section: ImageSection): unknown {
  const { kind, name, data } = section;
  if (kind !== 'value')
    throw new MultirailError('ERR_ARG', `section "${name}" is of kind ${kind}: expected a value; imageArray() reads arrays`);
  try {
    return deserialize(data);
  } catch (cause) {
    throw new MultirailError(
      'ERR_SUPPORT',
      `value "${name}" cannot be read by Node ${process.version}: read it with the version that wrote it, or a newer one`,
      {
        cause,
      },
    );
  }
}
