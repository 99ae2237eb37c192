// Open MPI's mpirun (and prterun). PMIx's wire protocol cannot be spoken without its library, so the ranks meet in other ways: on one host
// through a file of the user's, otherwise where MULTIRAIL_RENDEZVOUS says.
import { MultirailError } from '../../errors.ts';
import { envInt, envIntIfSet, has } from './env.ts';
import { aloneOr, checkRank, incompleteOf, meetingOf, RANKS_LIMIT, type Starter } from './starter.ts';

const BECAUSE = 'although OMPI_COMM_WORLD_RANK is';

export const openMpi: Starter = {
  name: 'mpirun of Open MPI',

  seen: (env) => (has(env, 'OMPI_COMM_WORLD_RANK') ? 'OMPI_COMM_WORLD_RANK' : undefined),

  incomplete(env) {
    const isMeant = has(env, 'OMPI_COMM_WORLD_SIZE') && env.OMPI_COMM_WORLD_SIZE !== '1';
    return isMeant ? incompleteOf(env, ['OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_SIZE']) : undefined;
  },

  place(env) {
    const rank = envInt(env, 'OMPI_COMM_WORLD_RANK', 0, RANKS_LIMIT, '');
    const size = envInt(env, 'OMPI_COMM_WORLD_SIZE', 1, RANKS_LIMIT, BECAUSE);
    checkRank(rank, size, 'OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_SIZE');
    const localRank = envIntIfSet(env, 'OMPI_COMM_WORLD_LOCAL_RANK', 0, RANKS_LIMIT);
    const localSize = envIntIfSet(env, 'OMPI_COMM_WORLD_LOCAL_SIZE', 1, RANKS_LIMIT);
    const jobKey = `ompi-${env.PMIX_NAMESPACE ?? env.OMPI_MCA_ess_base_jobid ?? ''}`;
    const meeting = aloneOr(size, () => {
      const byHand = meetingOf(env);
      if (byHand !== undefined) return byHand;
      if (localSize === size) return { by: 'host', rule: 'all ranks are on one host (OMPI_COMM_WORLD_LOCAL_SIZE)' };
      throw new MultirailError(
        'ERR_INIT',
        `mpirun has put the ${size} ranks on several hosts, and nothing says where they meet. Either name a file on a file system that all ` +
          'hosts share: mpirun -x MULTIRAIL_RENDEZVOUS=/shared/folder/name …; or the host of rank 0 with a free port, and a file with a secret ' +
          'that each host has: mpirun -x MULTIRAIL_RENDEZVOUS=host:port -x MULTIRAIL_SECRET_FILE=/path …',
      );
    });
    return { rank, size, localRank, localSize, jobKey, restarts: undefined, meeting };
  },
};
