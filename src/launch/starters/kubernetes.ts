// A Job of Kubernetes with completionMode: Indexed. Every pod is a rank, its index is the rank, and rank 0's name is that of its pod in the
// headless service that the Job's template names as its subdomain.
import { MultirailError } from '../../errors.ts';
import { type Env, envInt, envIntIfSet, has } from './env.ts';
import { aloneOr, checkRank, incompleteOf, type Meeting, meetingOf, PORT_MAX, RANKS_LIMIT, type Starter } from './starter.ts';

export const KUBERNETES_PORT = 7117;

/** `job-3` in the service `ranks` makes `job-0.ranks`. */
function meetingInService(env: Env, rank: number): Meeting {
  const port = envIntIfSet(env, 'MULTIRAIL_PORT', 1, PORT_MAX) ?? KUBERNETES_PORT;
  const pod = env.HOSTNAME ?? '';
  const suffix = `-${rank}`;
  if (!has(env, 'MULTIRAIL_SERVICE') || !pod.endsWith(suffix)) {
    throw new MultirailError(
      'ERR_INIT',
      'this is a rank of a Kubernetes Indexed Job (JOB_COMPLETION_INDEX), but nothing says where rank 0 is: set MULTIRAIL_SERVICE to the ' +
        `headless service that the template of the Job names as its subdomain (HOSTNAME is "${pod}" and should end in "${suffix}"), or ` +
        'MULTIRAIL_RENDEZVOUS to host:port; examples/kubernetes shows a whole manifest',
    );
  }
  const host = `${pod.slice(0, -suffix.length)}-0.${env.MULTIRAIL_SERVICE}`;
  return { by: 'address', host, port, rule: 'pod 0 of the Indexed Job in MULTIRAIL_SERVICE, and MULTIRAIL_PORT' };
}

export const kubernetes: Starter = {
  name: 'Kubernetes Indexed Job',
  startsAgain: true,

  seen: (env) => (has(env, 'JOB_COMPLETION_INDEX') && has(env, 'MULTIRAIL_SIZE') ? 'JOB_COMPLETION_INDEX, MULTIRAIL_SIZE' : undefined),

  // Each pod has its index, and none is told how many there are.
  incomplete: (env) => (has(env, 'JOB_COMPLETION_INDEX') ? incompleteOf(env, ['MULTIRAIL_SIZE'], ['JOB_COMPLETION_INDEX']) : undefined),

  place(env) {
    const rank = envInt(env, 'JOB_COMPLETION_INDEX', 0, RANKS_LIMIT, '');
    const size = envInt(env, 'MULTIRAIL_SIZE', 1, RANKS_LIMIT, 'although JOB_COMPLETION_INDEX is');
    checkRank(rank, size, 'JOB_COMPLETION_INDEX', 'MULTIRAIL_SIZE (the completions of the Job)');
    return {
      rank,
      size,
      localRank: undefined,
      localSize: undefined,
      jobKey: `kubernetes-${env.MULTIRAIL_SERVICE ?? ''}`,
      restarts: undefined,
      meeting: aloneOr(size, () => meetingOf(env) ?? meetingInService(env, rank)),
    };
  },
};
