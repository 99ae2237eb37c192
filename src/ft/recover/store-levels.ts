// Saves in folders and stores: which of them a rank could go back to, its image of one, and the manifest that makes a save exist.
import { MultirailError } from '../../errors.ts';
import { crc32c } from '../../native/crc32c.ts';
import type { SaveName } from '../checkpoint/slots.ts';
import { decodeManifest, type Manifest } from '../image/manifest.ts';
import { commitKey, commitSave, imageKey, removeGarbage, storedSaves } from '../store/saves.ts';
import type { StoreLevel } from './options.ts';

/** Saves of one job that a rank could go back to. */
export interface StoredLine {
  /** Place of the level among the levels. */
  readonly level: number;
  readonly manifest: Manifest;
  /** Images that are there with their length, where other ranks have made it than there are now; undefined: this rank's own is there. */
  readonly images: readonly number[] | undefined;
}

/** So many of the newest saves are looked at. */
const LOOKED_AT = 8;

/**
 * The newest committed saves of which this rank's own image is there with its length: all of a store that everybody shares, and of a
 * folder of each host those that this host has. Of a save that another number of ranks has made, which images are there. `newestEpoch`: of
 * all that is there, whole or not; -1 where there is nothing. `limit`: saves with higher numbers are not looked at. A store that fails is ERR_STORE.
 */
export async function storedLines(
  level: StoreLevel,
  job: string,
  rank: number,
  size: number,
  limit = Number.POSITIVE_INFINITY,
): Promise<{ lines: StoredLine[]; refused: string[]; newestEpoch: number }> {
  const lines: StoredLine[] = [];
  const refused: string[] = [];
  const saves = await storedSaves(level.store, job);
  const newestEpoch = saves[0]?.epoch ?? -1;
  for (const save of saves.filter(({ isCommitted, k }) => isCommitted && k <= limit).slice(0, LOOKED_AT)) {
    const key = commitKey(job, save);
    try {
      const manifest = decodeManifest(await level.store.get(key));
      const there = new Map(save.entries.map((entry) => [entry.key, entry.bytes]));
      if (manifest.size !== size) {
        const images = manifest.files.filter((file) => there.get(imageKey(job, save, file.rank)) === file.bytes);
        lines.push({ level: level.index, manifest, images: images.map((file) => file.rank) });
        continue;
      }
      const image = imageKey(job, save, rank);
      const expected = manifest.files[rank].bytes;
      if (expected === there.get(image)) lines.push({ level: level.index, manifest, images: undefined });
      else
        refused.push(`${key}: ${image} should have ${expected} bytes and ${there.has(image) ? `has ${there.get(image)}` : 'is not there'}`);
    } catch (error) {
      if (!(error instanceof MultirailError) || !['ERR_CORRUPT', 'ERR_SUPPORT', 'ERR_CHECKPOINT'].includes(error.code)) throw error;
      refused.push(`${key}: ${error.message}`);
    }
  }
  return { lines, refused, newestEpoch };
}

/** Reads the image of that rank of a committed save, whole and right. */
export async function readStored(level: StoreLevel, job: string, manifest: Manifest, rank: number): Promise<Uint8Array> {
  const { bytes, crc } = manifest.files[rank];
  const key = imageKey(job, manifest, rank);
  const image = await level.store.get(key);
  if (image.length !== bytes || crc32c(image) !== crc)
    throw new MultirailError(
      'ERR_CORRUPT',
      `${key} of level ${level.name} is not the image of rank ${rank} that was committed (${image.length} bytes, expected ${bytes})`,
      { rank },
    );
  return image;
}

export function writeImage(level: StoreLevel, job: string, name: SaveName, rank: number, memory: Uint8Array): Promise<void> {
  return level.store.put(imageKey(job, name, rank), [memory]);
}

/** Makes the save exist, and removes what is of no use any more. */
export async function writeCommit(level: StoreLevel, job: string, manifest: Manifest): Promise<void> {
  await commitSave(level.store, job, manifest);
  await removeGarbage(level.store, job, level.keep);
}
