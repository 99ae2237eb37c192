// PMI-1 over an inherited descriptor: MPICH's mpiexec (hydra), Slurm's srun --mpi=pmi2, Flux.
import { envInt, envIntIfSet, has } from './env.ts';
import { checkRank, incompleteOf, RANKS_LIMIT, type Starter } from './starter.ts';

const BECAUSE = 'although PMI_FD is';

export const pmi: Starter = {
  name: 'PMI-1 (mpiexec of MPICH, srun --mpi=pmi2)',

  seen: (env) => (has(env, 'PMI_FD') ? 'PMI_FD' : undefined),

  // Starters with another wire than PMI-1 set rank and size too.
  incomplete(env) {
    const isMeant = has(env, 'PMI_SIZE') ? env.PMI_SIZE !== '1' : has(env, 'PMI_RANK');
    return isMeant ? incompleteOf(env, ['PMI_FD', 'PMI_RANK', 'PMI_SIZE']) : undefined;
  },

  place(env) {
    const fd = envInt(env, 'PMI_FD', 3, 2 ** 20, '');
    const rank = envInt(env, 'PMI_RANK', 0, RANKS_LIMIT, BECAUSE);
    const size = envInt(env, 'PMI_SIZE', 1, RANKS_LIMIT, BECAUSE);
    checkRank(rank, size, 'PMI_RANK', 'PMI_SIZE');
    // Hydra's own names, else Slurm's.
    const localRank = envIntIfSet(env, 'MPI_LOCALRANKID', 0, RANKS_LIMIT) ?? envIntIfSet(env, 'SLURM_LOCALID', 0, RANKS_LIMIT);
    const oneNode = env.SLURM_STEP_NUM_NODES === '1' ? size : undefined;
    const localSize = envIntIfSet(env, 'MPI_LOCALNRANKS', 1, RANKS_LIMIT) ?? oneNode;
    // Also a job of one is joined: the starter expects to hear of each process.
    return { rank, size, localRank, localSize, jobKey: env.PMI_JOBID ?? 'pmi', restarts: undefined, meeting: { by: 'pmi', fd } };
  },
};
