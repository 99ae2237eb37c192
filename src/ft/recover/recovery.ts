// What a program is told of the recovery that its run begins with, and how it reads what was saved.
import { MultirailError } from '../../errors.ts';
import type { SavedImages } from './saved-images.ts';

/** Sums over all recoveries since a job was started: the same at all ranks. */
export interface RecoveryTotal {
  /** Ranks that failed. */
  readonly failures: number;
  /** Of these, those after which only the dead went back (recovery 'asynchronous'). */
  readonly inPlace: number;
  /** Steps that were done again: by all ranks, or by the successors alone where only the dead went back. */
  readonly lostSteps: number;
}

/** How a run of the program came to be, after a failure or a restart of the whole job. */
export interface JobRecovery {
  /** Counts recoveries: the same at all ranks. */
  readonly epoch: number;
  /** Number of the save that was restored; undefined when the program begins from the beginning. */
  readonly save: number | undefined;
  /** Where it was: `memory`, `disk` or `store`. */
  readonly level: string | undefined;
  /** Ranks that failed. */
  readonly failed: readonly number[];
  /** Steps that are done again: from the save to where the foremost rank had come. */
  readonly lostSteps: number;
  /** The sums over all recoveries since this job was started. */
  readonly total: RecoveryTotal;
  /** Ranks that have made the save; undefined where there was no save. */
  readonly savedSize: number | undefined;
  /**
   * Other ranks have made the save than there are now, because some were left out (whenNoSpares) or the job was started with another number
   * of them. Then protect() and protectValue() restore nothing: the program reads what it needs and distributes it again.
   */
  readonly isRegrouped: boolean;
  /**
   * What a rank has saved, as it was when the save was made: arrays of the class that they were registered as, in memory of their own, and
   * values, by name. Any rank may read any one, as often as it likes, until the first save of this run of the program; nobody else has to call
   * anything. After a recovery it comes from the memory of the ranks, wherever the save was.
   *
   * @param rank In the world of the save: 0 to savedSize - 1; it may be one that has failed.
   * @throws ERR_RANK: there was no such rank.
   * @throws ERR_CHECKPOINT: there is no save, or newer ones have taken its place.
   * @throws ERR_PROC_FAILED, ERR_REVOKED: a rank has failed meanwhile. The program lets it out, and reads again in its next run.
   */
  read(rank: number): Promise<ReadonlyMap<string, unknown>>;
  /** As read(), without a promise. The event loop does not run meanwhile. */
  readSync(rank: number): ReadonlyMap<string, unknown>;
}

export function totalOf({ failures, inPlace, lostSteps }: RecoveryTotal): RecoveryTotal {
  return { failures, inPlace, lostSteps };
}

/** With what can be read of the save; `images` undefined: there is no save. */
export function recoveryOf(
  told: Omit<JobRecovery, 'savedSize' | 'isRegrouped' | 'read' | 'readSync'>,
  images: SavedImages | undefined,
  rank: number,
): JobRecovery {
  const saved = (): SavedImages => {
    if (images !== undefined) return images;
    throw new MultirailError('ERR_CHECKPOINT', `rank ${rank}: there is no save to read from: the program begins from the beginning`, {
      rank,
    });
  };
  return {
    ...told,
    savedSize: images?.savedSize,
    isRegrouped: images?.isRegrouped === true,
    read: async (of) => await saved().read(of),
    readSync: (of) => saved().readSync(of),
  };
}
