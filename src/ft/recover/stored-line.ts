// The save in a store that all go back to, when memory has none: found and read by all ranks together.
import { MultirailError } from '../../errors.ts';
import type { Communicator } from '../../mpi/communicator.ts';
import { crc32c } from '../../native/crc32c.ts';
import type { Grouping } from '../checkpoint/grouping.ts';
import { type ImagePart, isSameSave, type Piece, type SaveName, saveText } from '../checkpoint/slots.ts';
import type { Manifest } from '../image/manifest.ts';
import { storedCandidates, type View } from './meeting.ts';
import type { ImageMemory } from './memory.ts';
import type { Settings, StoreLevel } from './options.ts';
import { partsToTell } from './restoring.ts';
import { readStored, type StoredLine } from './store-levels.ts';

/** What is wrong with an image itself, and not with the store that has it. */
export const DAMAGED: readonly string[] = ['ERR_CORRUPT', 'ERR_CHECKPOINT', 'ERR_SUPPORT'];

/** How the reading of an image has ended, as ranks tell each other. */
export const READ = { WHOLE: 0, DAMAGED: 1, FAILED: 2 } as const;

/** The rank that reads. */
interface Reader {
  readonly rank: number;
  readonly jobName: string;
  readonly own: Communicator;
  readonly memory: ImageMemory;
  readonly settings: Settings;
  warn(text: string): void;
}

const nameOf = ({ epoch, k }: Manifest): SaveName => ({ epoch, k });

/**
 * The newest save in a store of which every rank can read its image, and that image: what is damaged is passed over for an older save, or the
 * same at another level. Undefined: no save is there.
 */
export async function readStoredLine(
  views: readonly View[],
  lines: readonly StoredLine[],
  reader: Reader,
): Promise<{ line: SaveName; level: string; fetched: Piece; grouping: Grouping } | undefined> {
  const { rank, jobName, own, settings } = reader;
  const { stores, mayShrink } = settings;
  let failure: MultirailError | undefined;
  for (const candidate of storedCandidates(views, rank, jobName, mayShrink)) {
    const line = { epoch: candidate.epoch, k: candidate.k };
    const from = stores.find(({ index }) => index === candidate.level) as StoreLevel;
    const isIt = (one: StoredLine): boolean => one.level === candidate.level && isSameSave(nameOf(one.manifest), line);
    const { manifest } = lines.find(isIt) as StoredLine;
    const grouping = candidate.grouping.map((images) =>
      images.map((image) => ({ rank: image.rank, bytes: manifest.files[image.rank].bytes })),
    );
    let memory: Uint8Array | undefined;
    failure = undefined;
    try {
      memory = await readParts(jobName, from, manifest, grouping[rank]);
    } catch (error) {
      if (!(error instanceof MultirailError)) throw error;
      failure = error;
    }
    const isDamaged = failure !== undefined && DAMAGED.includes(failure.code);
    const ends = new Float64Array(own.size);
    await own.allgather(Float64Array.of(failure === undefined ? READ.WHOLE : isDamaged ? READ.DAMAGED : READ.FAILED), ends);
    if (memory !== undefined && ends.every((end) => end === READ.WHOLE)) {
      reader.memory.adopt(memory);
      const parts = partsToTell(grouping, rank);
      const fetched = { bytes: memory.length, crc: crc32c(memory), memory, ...(parts === undefined ? {} : { parts }) };
      return { line, level: from.name, fetched, grouping };
    }
    const wrong = ends.findIndex((end) => end !== READ.WHOLE);
    failure ??= new MultirailError(
      'ERR_CHECKPOINT',
      `rank ${rank} cannot begin: rank ${wrong} could not read its image of ${saveText(line)} at level ${from.name}, and says why`,
      { rank, peer: wrong },
    );
    // A store that fails may have it all the same: an older save would be a wrong answer.
    if (ends.includes(READ.FAILED)) throw failure;
    reader.warn(`${saveText(line)} at level ${from.name} is passed over: ${failure.message}`);
  }
  if (failure !== undefined) throw failure;
  return undefined;
}

/** These images of a save, one after the other. */
async function readParts(jobName: string, from: StoreLevel, manifest: Manifest, parts: readonly ImagePart[]): Promise<Uint8Array> {
  const images: Uint8Array[] = [];
  for (const { rank } of parts) images.push(await readStored(from, jobName, manifest, rank));
  if (images.length === 1) return images[0];
  const all = new Uint8Array(images.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const image of images) {
    all.set(image, at);
    at += image.length;
  }
  return all;
}
