// The save that a job of replicas goes back to when it is started again. Validated saves are free of what has made the replicas differ: the
// newest will do. Of others each may hold the fault, which is found again then: they are tried one after the other, the newest first (the
// algorithm of paper 001, whose counter lies in the store, so that it outlasts the job).
import { MultirailError } from '../../errors.ts';
import type { Communicator } from '../../mpi/communicator.ts';
import type { Replica } from '../../mpi/replica/replica.ts';
import { DIVERGED_ENV } from '../../util/restart-env.ts';
import { compareSaves, type SaveName, saveText } from '../checkpoint/slots.ts';
import type { Manifest } from '../image/manifest.ts';
import { storedSaves } from '../store/saves.ts';
import type { Store } from '../store/store.ts';
import type { Settings, StoreLevel } from './options.ts';
import { readStored, storedLines } from './store-levels.ts';
import { DAMAGED, READ } from './stored-line.ts';

/** What was found. */
export interface PairedLine {
  readonly name: SaveName;
  readonly level: StoreLevel;
  readonly manifest: Manifest;
  /** That of this replica. */
  readonly image: Uint8Array;
}

/** Who looks. */
export interface PairedReader {
  readonly own: Communicator;
  readonly replica: Replica;
  /** Number of this process. */
  readonly process: number;
  readonly jobName: string;
  readonly settings: Settings;
  warn(text: string): void;
}

/** A save as the lead of a rank sees it. */
interface Seen {
  readonly level: number;
  readonly manifest: Manifest;
}

interface Look {
  readonly seen: readonly Seen[];
  readonly refused: readonly string[];
  /** Of all that is there; -1: nothing is. */
  readonly newestEpoch: number;
  /** Why a store could not be asked. */
  readonly error: string | undefined;
}

/** All look together. Collective; the same at both replicas of each rank. `epoch`: for the saves that are made from now on. */
export async function pairedLine(reader: PairedReader): Promise<{ line: PairedLine | undefined; epoch: number }> {
  const { own, replica, settings } = reader;
  const limit = await limitOf(reader);
  const look = await replica.once(() => lookAt(reader, limit));
  if (replica.isLead) for (const text of look.refused) reader.warn(`a save is passed over: ${text}`);
  const told = look.seen.map(({ level, manifest: { epoch, k, size } }) => ({ level, epoch, k, size }));
  const views = await own.allgatherObject({ told, newestEpoch: look.newestEpoch, error: look.error });
  const failure = views.find(({ error }) => error !== undefined)?.error;
  if (failure !== undefined) throw new MultirailError('ERR_STORE', `saves cannot be looked for: ${failure}`, { rank: own.rank });
  const epoch = Math.max(...views.map(({ newestEpoch }) => newestEpoch)) + 1;
  const expected = settings.validate ? own.size : 2 * own.size;
  const candidates = [...told].sort((a, b) => compareSaves(b, a) || a.level - b.level);
  const [newest] = candidates;
  if (newest !== undefined && newest.size !== expected)
    throw new MultirailError(
      'ERR_CHECKPOINT',
      `${saveText(newest)} of job "${reader.jobName}" has ${newest.size} images, and ${expected} were expected: start as many ranks, with the same option validate, or choose another name (ft_job)`,
      { rank: own.rank },
    );
  let wrong: MultirailError | undefined;
  for (const one of candidates) {
    const isIt = ({ level, epoch, k }: SaveName & { readonly level: number }): boolean =>
      level === one.level && epoch === one.epoch && k === one.k;
    if (!views.every((view) => view.told.some(isIt))) continue;
    const level = settings.stores.find(({ index }) => index === one.level) as StoreLevel;
    const { manifest } = look.seen.find(({ level: at, manifest: { epoch, k } }) => isIt({ level: at, epoch, k })) as Seen;
    const read = await readImage(reader, level, manifest);
    const ends = new Uint8Array(own.size);
    await own.allgather(Uint8Array.of(read.end), ends);
    if ('image' in read && ends.every((end) => end === READ.WHOLE)) {
      return { line: { name: { epoch: one.epoch, k: one.k }, level, manifest, image: read.image }, epoch };
    }
    const at = ends.findIndex((end) => end !== READ.WHOLE);
    const why = 'why' in read ? read.why : `rank ${at} could not read its image, and says why`;
    wrong = new MultirailError('ERR_CHECKPOINT', `${saveText(one)} at level ${level.name} cannot be read: ${why}`, { rank: own.rank });
    // A store that fails may have it all the same: an older save would be a wrong answer.
    if (ends.includes(READ.FAILED)) throw wrong;
    if (replica.isLead) reader.warn(`${wrong.message}; an older one is looked for`);
  }
  if (wrong !== undefined) throw wrong;
  return { line: undefined, epoch };
}

async function lookAt({ own, settings, jobName }: PairedReader, limit: number): Promise<Look> {
  const seen: Seen[] = [];
  const refused: string[] = [];
  let newestEpoch = -1;
  for (const level of settings.stores) {
    try {
      // Where each replica has stored its own, the lead looks at that of both.
      const size = settings.validate ? own.size : 2 * own.size;
      const found = await storedLines(level, jobName, own.rank, size, limit);
      const twin = settings.validate ? found : await storedLines(level, jobName, own.rank + own.size, size, limit);
      newestEpoch = Math.max(newestEpoch, found.newestEpoch);
      const isThere = ({ epoch, k }: Manifest): boolean => twin.lines.some(({ manifest: other }) => other.epoch === epoch && other.k === k);
      for (const { manifest } of found.lines) if (isThere(manifest)) seen.push({ level: level.index, manifest });
      refused.push(...new Set([...found.refused, ...twin.refused]));
    } catch (error) {
      return { seen: [], refused, newestEpoch, error: `level ${level.name} of rank ${own.rank}: ${(error as Error).message}` };
    }
  }
  return { seen, refused, newestEpoch, error: undefined };
}

type Read = { readonly end: 0; readonly image: Uint8Array } | { readonly end: 1 | 2; readonly why: string };

async function readImage({ own, replica, process, jobName, settings }: PairedReader, level: StoreLevel, manifest: Manifest): Promise<Read> {
  const read = async (number: number): Promise<Read> => {
    try {
      return { end: READ.WHOLE, image: await readStored(level, jobName, manifest, number) };
    } catch (error) {
      const isDamaged = error instanceof MultirailError && DAMAGED.includes(error.code);
      return { end: isDamaged ? READ.DAMAGED : READ.FAILED, why: (error as Error).message };
    }
  };
  // The shadow may be on a host that has not what the lead has stored.
  return settings.validate ? await replica.once(() => read(own.rank)) : await read(process);
}

// ---------------------------------------------------------------- the chain

/** What lies in the store beside the saves: how far the last try went back, and from which save. */
interface Chain {
  readonly newest: number;
  readonly back: number;
}

const CHAIN = 'CHAIN.json';

/**
 * The next try: `newest` is the newest save there is. A run that has made a newer one than there was at the last difference has come past that:
 * what it has met is another fault, and its newest save is tried first.
 */
export function nextTry(before: Chain | undefined, newest: number): Chain {
  if (before === undefined || newest > before.newest) return { newest, back: 0 };
  return { newest: before.newest, back: before.back + 1 };
}

/** Saves with higher numbers are not gone back to. */
async function limitOf(reader: PairedReader): Promise<number> {
  const { own, replica, settings, jobName } = reader;
  const level = settings.stores.at(-1);
  if (settings.validate || level === undefined || process.env[DIVERGED_ENV] === undefined) return Number.POSITIVE_INFINITY;
  const found = own.rank === 0 ? await replica.once(() => advance(level.store, `${jobName}/${CHAIN}`, jobName)) : undefined;
  const chain = await own.bcastObject(found);
  if (chain === undefined) return Number.POSITIVE_INFINITY;
  if ('error' in chain) throw new MultirailError('ERR_STORE', `how far back to go cannot be kept: ${chain.error}`, { rank: own.rank });
  return chain.newest - chain.back;
}

async function advance(store: Store, key: string, jobName: string): Promise<Chain | { readonly error: string } | undefined> {
  try {
    const saves = (await storedSaves(store, jobName)).filter(({ isCommitted }) => isCommitted);
    if (saves.length === 0) return undefined;
    let before: Chain | undefined;
    if ((await store.list(key)).some((entry) => entry.key === key))
      before = JSON.parse(new TextDecoder().decode(await store.get(key))) as Chain;
    const chain = nextTry(before, Math.max(...saves.map(({ k }) => k)));
    await store.put(key, [new TextEncoder().encode(JSON.stringify(chain))]);
    return chain;
  } catch (error) {
    return { error: (error as Error).message };
  }
}
