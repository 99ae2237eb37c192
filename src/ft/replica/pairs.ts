// Who is whose replica. A job of n ranks with R replicas of each has R × n processes: that with number r is the lead of rank r, those with the numbers
// n + r and, of three, 2n + r are its shadows. To the program all of them are rank r of n. Pure.
import { MultirailError } from '../../errors.ts';

export type ReplicaRole = 'lead' | 'shadow';

/** A process as a replica. */
export interface Place {
  readonly role: ReplicaRole;
  /** The rank that it is a replica of. */
  readonly rank: number;
  /** Number of ranks. */
  readonly ranks: number;
  /** Number of the process that it compares with: of a lead its first shadow, of a shadow its lead. */
  readonly twin: number;
  /** Of a lead with two shadows the second one. Shadows know of their lead alone. */
  readonly second?: number;
}

/**
 * The place of a process in a job of replicas.
 *
 * @param number Its own.
 * @param processes Processes of the job.
 * @param replicas Processes of each rank.
 * @throws ERR_CONFIG: the processes are not so many for each rank.
 */
export function placeOf(number: number, processes: number, replicas = 2): Place {
  if (processes < replicas || processes % replicas !== 0)
    throw new MultirailError(
      'ERR_CONFIG',
      `ft_replicas = ${replicas} in a job of ${processes} processes: expected ${replicas === 2 ? 'an even number' : `a multiple of ${replicas}`}; multirail run --replicas ${replicas} starts ${replicas === 2 ? 'two' : replicas} processes for each rank`,
      { rank: number },
    );
  const ranks = processes / replicas;
  const rank = number % ranks;
  if (number >= ranks) return { role: 'shadow', rank, ranks, twin: rank };
  return { role: 'lead', rank, ranks, twin: rank + ranks, ...(replicas === 3 ? { second: rank + 2 * ranks } : {}) };
}

/** The processes that one compares with. */
export function twinsOf({ twin, second }: Pick<Place, 'twin' | 'second'>): number[] {
  return second === undefined ? [twin] : [twin, second];
}

/** Replicas of a rank by their place among them, as plans of faults name them. */
export const REPLICA_NAMES = ['lead', 'shadow', 'shadow2'] as const;
export type ReplicaName = (typeof REPLICA_NAMES)[number];
