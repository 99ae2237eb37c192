// A task of Slurm's srun without PMI. Rank 0 is the first task of the first node of the step, unless --distribution=arbitrary says
// otherwise, and the port follows from the step: all ranks know both. Only tasks of srun count: the batch script itself, and a shell of
// salloc, have SLURM_PROCID or SLURM_NTASKS too, and are not ranks.
import { envInt, envIntIfSet, envText, has } from './env.ts';
import { aloneOr, checkRank, derivedPort, incompleteOf, meetingOf, RANKS_LIMIT, type Starter } from './starter.ts';

const BECAUSE = 'although SLURM_STEP_ID is';

/** The first host of a list as Slurm writes it: `rack[1-2]n[03-04,7],login` begins with `rack1n03`. */
export function firstHost(list: string): string {
  let host = '';
  for (let at = 0; at < list.length && list[at] !== ','; at++) {
    if (list[at] !== '[') {
      host += list[at];
      continue;
    }
    const end = list.indexOf(']', at);
    host += list.slice(at + 1, end < 0 ? list.length : end).split(/[-,]/, 1)[0];
    if (end < 0) break;
    at = end;
  }
  return host;
}

export const slurm: Starter = {
  name: 'srun of Slurm',

  seen: (env) =>
    has(env, 'SLURM_STEP_ID') && has(env, 'SLURM_PROCID') && has(env, 'SLURM_STEP_NUM_TASKS')
      ? 'SLURM_STEP_ID, SLURM_PROCID, SLURM_STEP_NUM_TASKS'
      : undefined,

  // The number of a step is that of a task, since neither a batch script nor the shell of an allocation has one.
  incomplete(env) {
    const isTask = has(env, 'SLURM_PROCID') || (has(env, 'SLURM_STEP_NUM_TASKS') && env.SLURM_STEP_NUM_TASKS !== '1');
    return has(env, 'SLURM_STEP_ID') && isTask ? incompleteOf(env, ['SLURM_STEP_ID', 'SLURM_PROCID', 'SLURM_STEP_NUM_TASKS']) : undefined;
  },

  place(env) {
    const rank = envInt(env, 'SLURM_PROCID', 0, RANKS_LIMIT, BECAUSE);
    const size = envInt(env, 'SLURM_STEP_NUM_TASKS', 1, RANKS_LIMIT, BECAUSE);
    checkRank(rank, size, 'SLURM_PROCID', 'SLURM_STEP_NUM_TASKS');
    const jobKey = `slurm-${env.SLURM_JOB_ID ?? env.SLURM_JOBID ?? ''}.${env.SLURM_STEP_ID}`;
    const isOneNode = env.SLURM_STEP_NUM_NODES === '1';
    const meeting = aloneOr(size, () => {
      const byHand = meetingOf(env);
      if (byHand !== undefined) return byHand;
      if (isOneNode) return { by: 'host', rule: 'all tasks are on one node (SLURM_STEP_NUM_NODES)' };
      const host = firstHost(envText(env, 'SLURM_STEP_NODELIST', BECAUSE));
      return {
        by: 'address',
        host,
        port: derivedPort(jobKey),
        rule: 'the first host of SLURM_STEP_NODELIST, and a port from job and step',
      };
    });
    const localRank = envIntIfSet(env, 'SLURM_LOCALID', 0, RANKS_LIMIT);
    return { rank, size, localRank, localSize: isOneNode ? size : undefined, jobKey, restarts: undefined, meeting };
  },
};
