// PMIx: mpirun of Open MPI 4 and 5, prterun of PRRTE, srun --mpi=pmix. Counts only where its library can be used (launch/pmix), since nothing
// else speaks its wire protocol; without it, what Open MPI and Slurm say in their own variables is looked at.
import { envInt, envIntIfSet, envText, has } from './env.ts';
import { meetingOf, RANKS_LIMIT, type Starter } from './starter.ts';

const SERVER = /^PMIX_SERVER_URI\d*$/;

export const pmix: Starter = {
  name: 'PMIx (mpirun of Open MPI, prterun, srun --mpi=pmix)',

  seen(env) {
    const server = Object.keys(env).find((name) => SERVER.test(name) && has(env, name));
    return server !== undefined && has(env, 'PMIX_NAMESPACE') && has(env, 'PMIX_RANK') ? `PMIX_NAMESPACE, PMIX_RANK, ${server}` : undefined;
  },

  place(env) {
    const rank = envInt(env, 'PMIX_RANK', 0, RANKS_LIMIT, '');
    // PMIx knows the number of ranks; the environment may say it before PMIx is asked.
    const size = envIntIfSet(env, 'OMPI_COMM_WORLD_SIZE', 1, RANKS_LIMIT) ?? envIntIfSet(env, 'SLURM_STEP_NUM_TASKS', 1, RANKS_LIMIT);
    const jobKey = `pmix-${envText(env, 'PMIX_NAMESPACE', 'although PMIX_RANK is')}`;
    // Also a job of one is joined: the starter expects to hear of each process.
    const meeting = { by: 'pmix', byHand: meetingOf(env) } as const;
    return { rank, size, localRank: undefined, localSize: undefined, jobKey, restarts: undefined, meeting };
  },
};
