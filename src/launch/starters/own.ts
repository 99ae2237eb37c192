// Multirail's own variables: those that `multirail run` sets, or that a user sets by hand together with MULTIRAIL_RENDEZVOUS.
import { MultirailError } from '../../errors.ts';
import { envInt, envIntIfSet, envText, has } from './env.ts';
import { aloneOr, checkRank, incompleteOf, type Meeting, meetingOf, RANKS_LIMIT, type Starter } from './starter.ts';

const BECAUSE = 'although MULTIRAIL_RANK is';

export const own: Starter = {
  name: 'multirail run',

  // An empty one is a mistake in a script, and is told as such.
  seen: (env) => (env.MULTIRAIL_RANK === undefined ? undefined : 'MULTIRAIL_RANK'),

  // A size of one is that of a process alone.
  incomplete(env) {
    const others = ['MULTIRAIL_RENDEZVOUS', 'MULTIRAIL_OOB', 'MULTIRAIL_JOB_ID'];
    const isMeant = (has(env, 'MULTIRAIL_SIZE') && env.MULTIRAIL_SIZE !== '1') || others.some((name) => has(env, name));
    return isMeant ? incompleteOf(env, ['MULTIRAIL_RANK', 'MULTIRAIL_SIZE'], others) : undefined;
  },

  place(env) {
    const rank = envInt(env, 'MULTIRAIL_RANK', 0, RANKS_LIMIT, BECAUSE);
    const size = envInt(env, 'MULTIRAIL_SIZE', 1, RANKS_LIMIT, BECAUSE);
    checkRank(rank, size, 'MULTIRAIL_RANK', 'MULTIRAIL_SIZE');
    const localRank = envIntIfSet(env, 'MULTIRAIL_LOCAL_RANK', 0, RANKS_LIMIT);
    const localSize = envIntIfSet(env, 'MULTIRAIL_LOCAL_SIZE', 1, RANKS_LIMIT);
    const place = { rank, size, localRank, localSize, restarts: undefined };
    const byHand = meetingOf(env);
    if (byHand !== undefined && !has(env, 'MULTIRAIL_OOB')) {
      return { ...place, jobKey: `own-${env.MULTIRAIL_JOB_ID ?? ''}`, meeting: aloneOr(size, () => byHand) };
    }
    if (size === 1 && !has(env, 'MULTIRAIL_OOB')) return { ...place, jobKey: 'own', meeting: { by: 'nobody' } };
    const jobId = envText(env, 'MULTIRAIL_JOB_ID', BECAUSE);
    const urls = envText(env, 'MULTIRAIL_OOB', `${BECAUSE} (without multirail run, set MULTIRAIL_RENDEZVOUS instead)`)
      .split(',')
      .filter((url) => url !== '');
    if (urls.length === 0)
      throw new MultirailError(
        'ERR_INIT',
        `MULTIRAIL_OOB="${env.MULTIRAIL_OOB}" names no address of the launcher; expected ws://HOST:PORT/multirail-oob`,
      );
    const launcherPid = envIntIfSet(env, 'MULTIRAIL_LAUNCHER_PID', 1, RANKS_LIMIT);
    const meeting: Meeting = { by: 'launcher', urls, jobId, launcherPid };
    return { ...place, localRank: localRank ?? rank, localSize: localSize ?? size, jobKey: jobId, meeting };
  },
};
