// Saves in a store: their keys, which one is the newest that is committed, and what is garbage.
//
//   NAME/EPOCH-K/rank-R.mrck     the image of each rank
//   NAME/EPOCH-K/COMMIT.json     written last, by one rank: a save exists when its manifest does
import { MultirailError } from '../../errors.ts';
import { crc32c } from '../../native/crc32c.ts';
import { decodeImage } from '../image/decode.ts';
import { decodeManifest, encodeManifest, type Manifest } from '../image/manifest.ts';
import type { Store, StoreEntry } from './store.ts';

/** A save by its place: recovery epoch and number. */
export interface SavePlace {
  readonly epoch: number;
  readonly k: number;
}

/** What a store has of one save. */
export interface StoredSave extends SavePlace {
  /** All objects of it. */
  readonly entries: readonly StoreEntry[];
  /** Whether COMMIT.json is there; not whether it is right. */
  readonly isCommitted: boolean;
}

const NAME = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$/;
const COMMIT = 'COMMIT.json';

export function requireJobName(name: string): void {
  if (!NAME.test(name))
    throw new MultirailError(
      'ERR_ARG',
      `job name ${JSON.stringify(name)}: expected up to 128 letters, digits, ".", "_" or "-", not beginning with a dot`,
    );
}

const folderOf = (name: string, { epoch, k }: SavePlace): string => `${name}/${epoch}-${k}`;
export const imageKey = (name: string, place: SavePlace, rank: number): string => `${folderOf(name, place)}/rank-${rank}.mrck`;
export const commitKey = (name: string, place: SavePlace): string => `${folderOf(name, place)}/${COMMIT}`;

/** Newest first: a later recovery epoch is newer, whatever its numbers. */
const newestFirst = (a: SavePlace, b: SavePlace): number => b.epoch - a.epoch || b.k - a.k;

/** What the store has of a job, newest first, committed or not. */
export async function storedSaves(store: Store, name: string): Promise<StoredSave[]> {
  requireJobName(name);
  const found = new Map<string, StoredSave & { entries: StoreEntry[]; isCommitted: boolean }>();
  for (const entry of await store.list(`${name}/`)) {
    const match = /^(0|[1-9]\d{0,9})-(0|[1-9]\d{0,15})\/(.+)$/.exec(entry.key.slice(name.length + 1));
    if (match === null) continue;
    const [, epoch, k, file] = match;
    const place = `${epoch}-${k}`;
    let save = found.get(place);
    if (save === undefined) {
      save = { epoch: Number(epoch), k: Number(k), entries: [], isCommitted: false };
      found.set(place, save);
    }
    save.entries.push(entry);
    if (file === COMMIT) save.isCommitted = true;
  }
  return [...found.values()].sort(newestFirst);
}

/** Writes the manifest, which makes the save exist. All its images must be in the store. */
export async function commitSave(store: Store, name: string, manifest: Manifest): Promise<void> {
  requireJobName(name);
  await store.put(commitKey(name, manifest), [encodeManifest(manifest)]);
}

/** The newest save that can be restored, and why newer ones cannot. */
export interface NewestSave {
  readonly manifest: Manifest | undefined;
  /** A sentence for each newer save whose manifest is there. */
  readonly refused: readonly string[];
}

/**
 * The newest committed save of which every image is there with the length that its manifest names. Checksums are not looked at here, but when
 * an image is read. A store that fails is ERR_STORE: an older save would be a wrong answer then.
 */
export async function newestSave(store: Store, name: string): Promise<NewestSave> {
  const refused: string[] = [];
  for (const save of await storedSaves(store, name)) {
    if (!save.isCommitted) continue;
    const key = commitKey(name, save);
    try {
      const manifest = await readManifest(store, key, save);
      const lengths = new Map(save.entries.map(({ key: one, bytes }) => [one, bytes]));
      const wrong = manifest.files.find(({ rank, bytes }) => lengths.get(imageKey(name, save, rank)) !== bytes);
      if (wrong === undefined) return { manifest, refused };
      const image = imageKey(name, save, wrong.rank);
      const there = lengths.get(image);
      refused.push(`${key}: ${image} should have ${wrong.bytes} bytes and ${there === undefined ? 'is not there' : `has ${there}`}`);
    } catch (error) {
      if (!(error instanceof MultirailError) || !['ERR_CORRUPT', 'ERR_SUPPORT', 'ERR_CHECKPOINT'].includes(error.code)) throw error;
      refused.push(`${key}: ${error.message}`);
    }
  }
  return { manifest: undefined, refused };
}

async function readManifest(store: Store, key: string, { epoch, k }: SavePlace): Promise<Manifest> {
  const manifest = decodeManifest(await store.get(key));
  if (manifest.epoch !== epoch || manifest.k !== k)
    throw new MultirailError('ERR_CORRUPT', `it says save ${manifest.k} of recovery epoch ${manifest.epoch}: it belongs elsewhere`);
  return manifest;
}

/** Reads one image of a committed save and checks it, against the manifest too. */
export async function readSavedImage(
  store: Store,
  name: string,
  manifest: Manifest,
  rank: number,
): Promise<ReturnType<typeof decodeImage>> {
  const key = imageKey(name, manifest, rank);
  const file = manifest.files[rank];
  if (file === undefined) throw new MultirailError('ERR_RANK', `rank ${rank}: the save has images of ranks 0 to ${manifest.size - 1}`);
  const bytes = await store.get(key);
  const image = decodeImage(bytes, crc32c);
  const { header } = image;
  const isIts = header.rank === rank && header.size === manifest.size && header.save === manifest.k && header.epoch === manifest.epoch;
  if (!isIts || bytes.length !== file.bytes || crc32c(bytes) !== file.crc)
    throw new MultirailError(
      'ERR_CORRUPT',
      `${key} is an image of rank ${header.rank} of ${header.size} at save ${header.save}, epoch ${header.epoch}, and not the one that was committed: take another copy or an older save`,
    );
  return image;
}

/**
 * Removes what is of no use: committed saves but the `keep` newest, each with its manifest first, so that no reader takes one that is half
 * gone; and images without a manifest that are older than the newest committed save. What may still be written stays. Returns the keys.
 */
export async function removeGarbage(store: Store, name: string, keep: number): Promise<string[]> {
  if (!Number.isInteger(keep) || keep < 1) throw new MultirailError('ERR_ARG', `keep = ${keep}: expected a whole number of saves from 1`);
  const saves = await storedSaves(store, name);
  const committed = saves.filter(({ isCommitted }) => isCommitted);
  if (committed.length === 0) return [];
  const kept = new Set(committed.slice(0, keep));
  const removed: string[] = [];
  for (const save of saves) {
    if (kept.has(save) || (!save.isCommitted && newestFirst(save, committed[0]) < 0)) continue;
    const commit = commitKey(name, save);
    const images = save.entries.map(({ key }) => key).filter((key) => key !== commit);
    const keys = save.isCommitted ? [commit, ...images] : images;
    await store.remove(keys);
    removed.push(...keys);
  }
  return removed;
}
