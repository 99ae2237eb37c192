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
}

/** So many of the newest saves are looked at. */
const LOOKED_AT = 8;

/**
 * The newest committed saves of which this rank's own image is there with its length: all of a store that everybody shares, and of a
 * folder of each host those that this host has. `newestEpoch`: of all that is there, whole or not; -1 where there is nothing. A store that
 * fails is ERR_STORE.
 */
export async function storedLines(
  level: StoreLevel,
  job: string,
  rank: number,
): Promise<{ lines: StoredLine[]; refused: string[]; newestEpoch: number }> {
  const lines: StoredLine[] = [];
  const refused: string[] = [];
  const saves = await storedSaves(level.store, job);
  const newestEpoch = saves[0]?.epoch ?? -1;
  for (const save of saves.filter(({ isCommitted }) => isCommitted).slice(0, LOOKED_AT)) {
    const key = commitKey(job, save);
    try {
      const manifest = decodeManifest(await level.store.get(key));
      const image = imageKey(job, save, rank);
      const expected = manifest.files[rank]?.bytes;
      const there = save.entries.find((entry) => entry.key === image)?.bytes;
      // Another size of the job is told when all ranks have met.
      if (manifest.files[rank] === undefined || expected === there) lines.push({ level: level.index, manifest });
      else refused.push(`${key}: ${image} should have ${expected} bytes and ${there === undefined ? 'is not there' : `has ${there}`}`);
    } catch (error) {
      if (!(error instanceof MultirailError) || !['ERR_CORRUPT', 'ERR_SUPPORT', 'ERR_CHECKPOINT'].includes(error.code)) throw error;
      refused.push(`${key}: ${error.message}`);
    }
  }
  return { lines, refused, newestEpoch };
}

/** Reads this rank's image of a committed save, whole and right. */
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
