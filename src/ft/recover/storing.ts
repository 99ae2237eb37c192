// A save at a level on disk or in a store: each rank writes its image, and the manifest makes the save exist there once all have.
import type { Piece, SaveName } from '../checkpoint/slots.ts';
import { IMAGE_VERSION } from '../image/format.ts';
import type { Manifest } from '../image/manifest.ts';
import type { Saves } from './epoch.ts';
import type { StoreLevel } from './options.ts';
import { writeCommit, writeImage } from './store-levels.ts';

/** A save whose state is copied. */
export interface BegunSave {
  readonly name: SaveName;
  readonly step: number;
  readonly level: number;
  readonly bytes: number;
  readonly beganMs: number;
  readonly copiedMs: number;
  /** As the ledger has it. */
  readonly usefulMs: number;
}

/** What is written; the program goes on meanwhile. */
interface Written {
  readonly name: SaveName;
  readonly piece: Piece;
  readonly step: number;
}

/** Writes the image. What is returned makes the save exist there, once it is committed; undefined at ranks that need not. */
export async function storeImage(
  saves: Saves,
  target: StoreLevel,
  { name, piece, step }: Written,
  warn: (text: string) => void,
): Promise<(() => Promise<void>) | undefined> {
  const { own, core, rank, jobName } = saves;
  const memory = piece.memory as Uint8Array;
  const all = new Float64Array(3 * own.size);
  let isWritten = true;
  saves.memory.use(memory);
  try {
    await writeImage(target, jobName, name, rank, memory);
  } catch (error) {
    // The save is one of memory all the same.
    isWritten = false;
    saves.counters.failedAtStore++;
    const why = (error as Error).message;
    // Where nobody stands by any more that is so from now on, and is told once.
    if (target.name !== 'standby' || saves.newsOfStandbys !== why) warn(`save ${name.k} is not at level ${target.name}: ${why}`);
    if (target.name === 'standby') saves.newsOfStandbys = why;
  } finally {
    saves.memory.done(memory);
  }
  try {
    await own.allgather(Float64Array.of(isWritten ? 1 : 0, piece.bytes, piece.crc), all);
  } catch {
    // A rank has failed: the decision says so.
    return undefined;
  }
  core.handleStored();
  saves.obey();
  // In a folder of each host the first rank of the host commits; in a store of all it is the first one.
  const { hosts } = saves.series;
  const isWriter = target.name === 'disk' ? hosts.indexOf(hosts[rank]) === rank : rank === 0;
  const files = Array.from({ length: own.size }, (_, i) => ({ rank: i, bytes: all[3 * i + 1], crc: all[3 * i + 2] }));
  const isWhole = files.every((_, i) => all[3 * i] === 1);
  if (!isWriter || !isWhole) return undefined;
  const { scheme } = core.placement;
  const manifest: Manifest = {
    k: name.k,
    epoch: name.epoch,
    size: own.size,
    step,
    files,
    scheme: { domains: scheme.domains, duplication: scheme.duplication, depth: scheme.depth },
    multirail: `image version ${IMAGE_VERSION}`,
    node: process.version,
  };
  return async () => {
    try {
      await writeCommit(target, jobName, manifest);
    } catch (error) {
      saves.counters.failedAtStore++;
      warn(`save ${name.k} is not committed at level ${target.name}: ${(error as Error).message}`);
    }
  };
}
