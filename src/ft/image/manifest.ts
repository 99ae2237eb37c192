// COMMIT.json: a save exists when its manifest exists. It names every image of the save with its length and checksum.
import { MultirailError } from '../../errors.ts';

/** One image of a save. */
export interface ManifestFile {
  readonly rank: number;
  readonly bytes: number;
  /** CRC32C of the whole image. */
  readonly crc: number;
}

/** The copies in memory that the job keeps, for whoever looks at the save later. */
export interface ManifestScheme {
  readonly domains: number;
  readonly duplication: number;
  readonly depth: number;
}

/** What COMMIT.json says. */
export interface Manifest {
  /** Number of the save: k. */
  readonly k: number;
  /** Recovery epoch. */
  readonly epoch: number;
  /** Ranks of the communicator, and so images of the save. */
  readonly size: number;
  /** Step of the program. */
  readonly step: number;
  /** By rank, every rank once. */
  readonly files: readonly ManifestFile[];
  readonly scheme?: ManifestScheme;
  /** Versions that wrote it. */
  readonly multirail: string;
  readonly node: string;
}

export const MANIFEST_VERSION = 1;
/** A manifest of 8192 ranks has half a megabyte. */
export const MANIFEST_BYTES_MAX = 8 * 1024 * 1024;

export function encodeManifest(manifest: Manifest): Uint8Array {
  return new TextEncoder().encode(`${JSON.stringify({ version: MANIFEST_VERSION, ...manifest })}\n`);
}

const isWhole = (value: unknown, high: number): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= high;

/** Reads a manifest. ERR_CORRUPT unless every rank has one image, ERR_SUPPORT for a newer version. */
export function decodeManifest(bytes: Uint8Array): Manifest {
  const corrupt = (text: string): MultirailError => new MultirailError('ERR_CORRUPT', `the manifest COMMIT.json is damaged: ${text}`);
  if (bytes.length > MANIFEST_BYTES_MAX) throw corrupt(`it has ${bytes.length} bytes, more than ${MANIFEST_BYTES_MAX}`);
  let given: Record<string, unknown>;
  try {
    given = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as Record<string, unknown>;
  } catch {
    throw corrupt('it is not JSON');
  }
  if (typeof given !== 'object' || given === null || Array.isArray(given)) throw corrupt('it is not an object');
  const { version, k, epoch, size, step, files, scheme, multirail, node } = given;
  if (version !== MANIFEST_VERSION) {
    if (!isWhole(version, 2 ** 32)) throw corrupt('it has no version');
    throw new MultirailError(
      'ERR_SUPPORT',
      `the manifest has version ${version}, and this library reads version ${MANIFEST_VERSION}: use the one that wrote it`,
    );
  }
  const max = Number.MAX_SAFE_INTEGER;
  if (!isWhole(k, max)) throw corrupt('k is not the number of a save');
  if (!isWhole(epoch, 2 ** 32 - 1)) throw corrupt('epoch is not a u32');
  if (!isWhole(step, max)) throw corrupt('step is not a whole number');
  if (!isWhole(size, 2 ** 32 - 1) || size < 1) throw corrupt('size is not a number of ranks');
  if (!Array.isArray(files) || files.length !== size) throw corrupt(`files does not have one image for each of ${size} ranks`);
  const listed = (files as unknown[]).map((file, rank): ManifestFile => {
    const one = (file ?? {}) as Partial<ManifestFile>;
    if (one.rank !== rank || !isWhole(one.bytes, max) || !isWhole(one.crc, 2 ** 32 - 1))
      throw corrupt(`files[${rank}] is not the image of rank ${rank}`);
    return { rank, bytes: one.bytes, crc: one.crc };
  });
  if (typeof multirail !== 'string' || typeof node !== 'string') throw corrupt('it does not say which versions wrote it');
  const manifest = { k, epoch, size, step, files: listed, multirail, node };
  return scheme === undefined ? manifest : { ...manifest, scheme: decodedScheme(scheme, corrupt) };
}

function decodedScheme(given: unknown, corrupt: (text: string) => MultirailError): ManifestScheme {
  const { domains, duplication, depth } = (given ?? {}) as Partial<ManifestScheme>;
  const high = 2 ** 32 - 1;
  if (!isWhole(domains, high) || !isWhole(duplication, high) || !isWhole(depth, high))
    throw corrupt('scheme is not domains, duplication and depth');
  return { domains, duplication, depth };
}
