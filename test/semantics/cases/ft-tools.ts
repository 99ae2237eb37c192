// What cases of process failure share.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Communicator } from '../../../src/mpi/communicator.ts';
import { Op } from '../../../src/mpi/op.ts';

/** Waits until so many members are known here to have failed. */
export async function knows(comm: Communicator, count: number): Promise<void> {
  while (comm.getFailed().size < count) await sleep(1);
}

/** Waits until this rank has heard of some failure. */
export async function lived(comm: Communicator): Promise<void> {
  await knows(comm, 1);
}

/** Sum over the communicator of the world ranks of its members, as each member computes it together with the others. */
export async function sumOfRanks(comm: Communicator, own: number): Promise<number> {
  const into = new Int32Array(1);
  await comm.allreduce(Int32Array.of(own), into, Op.SUM);
  return into[0];
}

/** The same, computed alone. */
export function expectedSum(comm: Communicator): number {
  return comm.group.worldRanks.reduce((sum, rank) => sum + rank, 0);
}
