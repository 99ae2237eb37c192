// Who is whose replica. A job of n ranks with two replicas of each has 2n processes: that with number r is the lead of rank r, and that with
// number n + r its shadow. To the program both are rank r of n. Pure.
import { MultirailError } from '../../errors.ts';

/** Replicas of a rank that are supported. */
export const REPLICAS_MAX = 2;

export type ReplicaRole = 'lead' | 'shadow';

/** A process as a replica. */
export interface Place {
  readonly role: ReplicaRole;
  /** The rank that it is a replica of. */
  readonly rank: number;
  /** Number of ranks. */
  readonly ranks: number;
  /** Number of the process that is the other replica of this rank. */
  readonly twin: number;
}

/**
 * The place of a process in a job of replicas.
 *
 * @param number Its own.
 * @param processes Processes of the job.
 * @throws ERR_CONFIG: the processes are no pairs.
 */
export function placeOf(number: number, processes: number): Place {
  if (processes < 2 || processes % 2 !== 0)
    throw new MultirailError(
      'ERR_CONFIG',
      `ft_replicas = 2 in a job of ${processes} processes: expected an even number; multirail run --replicas 2 starts two processes for each rank`,
      { rank: number },
    );
  const ranks = processes / 2;
  const role = number < ranks ? 'lead' : 'shadow';
  return { role, rank: number % ranks, ranks, twin: role === 'lead' ? number + ranks : number - ranks };
}
