// How a process finds a job that runs already, and joins it as one that stands by (ft_join): by what the launcher has told it that has started
// it in place of a dead one, by the rendezvous and the secret of the job, or by what a starter's variables say of where it meets.
import { MultirailError } from '../errors.ts';
import type { ParamTable } from '../params.ts';
import type { Job } from './job-type.ts';
import { hostId, newIncarnation } from './meeting/identity.ts';
import { meet } from './meeting/rendezvous.ts';
import { inheritedSecret } from './meeting/secret.ts';
import { OobClient } from './oob/client.ts';
import { LauncherWatch } from './oob/launcher-watch.ts';
import { type Env, envInt, has } from './starters/env.ts';
import { STARTERS } from './starters/index.ts';
import { own } from './starters/own.ts';
import { type Meeting, meetingOf, RANKS_LIMIT } from './starters/starter.ts';

const NAME = 'a process that joins a running job';

/** Joins a running job. Resolves once its server has given this process a number. */
export async function joinLater(env: Env, params: ParamTable, log: { log?: (text: string) => void }): Promise<Job> {
  const incarnation = newIncarnation();
  const common = { incarnation, hostId: hostId(), starter: NAME };
  if (has(env, 'MULTIRAIL_OOB')) return await joinOwnLauncher(env, params, { ...common, ...log });
  const { meeting, jobKey } = whereToMeet(env);
  const place = { rank: 0, size: 0, localRank: undefined, localSize: undefined, jobKey, restarts: undefined, meeting };
  const { oob, secret, jobId } = await meet({ place, incarnation, env, params, join: 'standby', ...log });
  return { ...spotOf(oob as OobClient), ...common, hasOwnLauncher: false, jobId, secret, oob };
}

const spotOf = ({ rank, size }: OobClient) => ({ rank, size, localRank: 0, localSize: 1 });

/** Started by `multirail run --respawn`, which has kept a number for this process. */
async function joinOwnLauncher(
  env: Env,
  params: ParamTable,
  { log, ...common }: Pick<Job, 'incarnation' | 'hostId' | 'starter'> & { log?: (text: string) => void },
): Promise<Job> {
  const { rank, meeting } = own.place({ ...env, MULTIRAIL_RANK: '0', MULTIRAIL_SIZE: '1' });
  const number = envInt(env, 'MULTIRAIL_RANK', rank, RANKS_LIMIT, 'although MULTIRAIL_OOB is');
  if (meeting.by !== 'launcher') throw new MultirailError('ERR_INTERNAL', `a job of a launcher that meets by ${meeting.by}`);
  const secret = await inheritedSecret(env);
  if (secret === undefined)
    throw new MultirailError('ERR_INIT', `the secret of the job is missing: MULTIRAIL_SECRET_FD did not reach process ${number}`, {
      rank: number,
    });
  const { urls, jobId, launcherPid } = meeting;
  const oob = new OobClient({
    ...common,
    urls,
    jobId,
    secret,
    rank: number,
    size: 0,
    join: 'standby',
    watch: new LauncherWatch(launcherPid),
    reconnectTimeoutMs: params.int('oob_reconnect_timeout_ms'),
    ...(log === undefined ? {} : { log }),
  });
  await oob.hello();
  return { ...spotOf(oob), ...common, jobId, secret, oob, hasOwnLauncher: true };
}

/** The starter's own ranks and sizes say nothing of a process that joins; only where the job meets may be in its variables. */
function whereToMeet(env: Env): { meeting: Meeting; jobKey: string } {
  const byHand = meetingOf(env);
  if (byHand !== undefined) return { meeting: byHand, jobKey: `own-${env.MULTIRAIL_JOB_ID ?? ''}` };
  const starter = STARTERS.find((one) => one.seen(env) !== undefined);
  const { meeting, jobKey } = starter?.place(env) ?? { meeting: undefined, jobKey: '' };
  if (meeting !== undefined && (meeting.by === 'address' || meeting.by === 'file' || meeting.by === 'host')) return { meeting, jobKey };
  throw new MultirailError(
    'ERR_INIT',
    'ft_join is standby, and nothing says where the job is that this process shall join: set MULTIRAIL_RENDEZVOUS as for the ranks of that job, ' +
      'to its file, or to its host:port together with MULTIRAIL_SECRET_FILE; for a job of multirail run, to the file of its option --rendezvous',
  );
}
