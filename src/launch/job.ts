// How a process finds itself in a job: its rank, the number of ranks, the job's secret, and the out-of-band channel. starters/ finds out
// which starter started it; meeting/rendezvous.ts lets the ranks meet.

import { availableParallelism } from 'node:os';
import { MultirailError } from '../errors.ts';
import { ParamTable, survivesFailures } from '../params.ts';
import { crowdFactor } from '../util/crowd.ts';
import { processName } from '../util/replica-names.ts';
import { abortByStarter, abortEverywhere } from './job-abort.ts';
import type { Job } from './job-type.ts';
import { hostId, newIncarnation, restartedIncarnation } from './meeting/identity.ts';
import { joinsLater } from './meeting/once.ts';
import type { MeetOptions, Met } from './meeting/rendezvous.ts';
import { inheritedSecret } from './meeting/secret.ts';
import { LauncherWatch } from './oob/launcher-watch.ts';
import { starterHere } from './pmix/binding.ts';
import { type Env, has } from './starters/env.ts';
import type { KnownPlace, Meeting, Place } from './starters/starter.ts';

export type { Job } from './job-type.ts';

/**
 * Joins the job that the environment describes. In a job with others it resolves once the server of the out-of-band channel knows
 * this rank.
 */
export async function joinJob(env: Env = process.env, params = new ParamTable({}, env)): Promise<Job> {
  if (joinsLater(params)) return await (await import('./join-later.ts')).joinLater(env, params, debugLog(env, 'a process that joins'));
  const { starter, pmixMissing } = starterHere(env, params);
  const found = starter.place(env);
  const log = debugLog(env, `rank ${found.rank}`);
  if (pmixMissing !== undefined) log.log?.(`PMIx is not used: ${pmixMissing}`);
  const incarnation = found.restarts === undefined ? newIncarnation() : restartedIncarnation(found.restarts);
  const here = { incarnation, hostId: hostId(), starter: starter.name };
  if (found.meeting.by === 'launcher') {
    const place = knownPlace(found);
    return await joinOwnLauncher(place, found.meeting, { ...spotOf(place), ...here }, env, params, log);
  }
  // A newer process of the same index stands by, where the others have gone on without the older one.
  const join = starter.startsAgain === true && survivesFailures(params) ? { join: 'index' as const } : {};
  const { place, abort, leave, ...met } = await meetOthers(found, { incarnation, env, params, ...join, ...log });
  return {
    ...spotOf(place),
    ...(met.oob === undefined ? {} : { rank: met.oob.rank }),
    ...here,
    hasOwnLauncher: false,
    oob: met.oob,
    secret: met.secret,
    jobId: met.jobId,
    ...(leave === undefined ? {} : { leave }),
    ...(abort === undefined ? {} : { abortByStarter: abort }),
  };
}

/** Meets the other ranks in the way of the starter. Code is loaded where it is needed. */
async function meetOthers(found: Place, options: Omit<MeetOptions, 'place' | 'space'>): Promise<Met & { place: KnownPlace }> {
  if (found.meeting.by === 'pmix') return await (await import('./meeting/by-pmix.ts')).meetByPmix({ ...options, place: found });
  const place = knownPlace(found);
  return { ...(await (await import('./meeting/rendezvous.ts')).meet({ ...options, place })), place };
}

function knownPlace(place: Place): KnownPlace {
  const { size } = place;
  if (size === undefined) throw new MultirailError('ERR_INTERNAL', 'a starter does not say how many ranks there are');
  return { ...place, size };
}

const spotOf = ({ rank, size, localRank, localSize }: KnownPlace) => ({
  rank,
  size,
  localRank: localRank ?? rank,
  localSize: localSize ?? size,
});

async function joinOwnLauncher(
  place: KnownPlace,
  meeting: Meeting & { by: 'launcher' },
  common: Omit<Job, 'jobId' | 'secret' | 'oob'>,
  env: Env,
  params: ParamTable,
  log: { log?: (text: string) => void },
): Promise<Job> {
  // A rank that has read the descriptor takes its number out of its environment.
  const hadDescriptor = has(env, 'MULTIRAIL_SECRET_FD');
  const secret = await inheritedSecret(env);
  if (secret === undefined) {
    const why = hadDescriptor
      ? "the launcher's descriptor (MULTIRAIL_SECRET_FD) did not reach this process; start it without a wrapper that closes descriptors, or set " +
        'MULTIRAIL_SECRET_FILE'
      : `this process has the variables of rank ${place.rank}, but not its descriptor (MULTIRAIL_SECRET_FD): it was started by that rank. A rank ` +
        'calls init() itself; what it starts is a world of one when it is started without MULTIRAIL_RANK and MULTIRAIL_SIZE';
    throw new MultirailError('ERR_INIT', `the job's secret is missing: ${why}`, { rank: place.rank });
  }
  const { jobId, urls, launcherPid } = meeting;
  // Loaded where it is needed: a process that is alone does without WebSockets and protobuf.
  const { OobClient } = await import('./oob/client.ts');
  const oob = new OobClient({
    ...common,
    jobId,
    secret,
    urls,
    watch: new LauncherWatch(launcherPid),
    crowd: crowdFactor(common.localSize, availableParallelism()),
    reconnectTimeoutMs: params.int('oob_reconnect_timeout_ms'),
    ...log,
  });
  await oob.hello();
  return { ...common, jobId, secret, oob, hasOwnLauncher: true };
}

function debugLog(env: Env, who: string): { log?: (text: string) => void } {
  const debug = env.MULTIRAIL_DEBUG !== undefined && env.MULTIRAIL_DEBUG !== '';
  return debug ? { log: (text) => complain(`multirail: ${who}: ${text}`) } : {};
}

/** Writes to stderr, which may be a pipe that nobody reads any more. */
function complain(text: string): void {
  const ignore = () => undefined;
  process.stderr.on('error', ignore);
  process.stderr.write(`${text}\n`);
}

function nameOf({ rank, size, replicas = 1 }: Job): string {
  const name = processName(rank, size, replicas);
  return `multirail: ${name} of ${size / replicas} (pid ${process.pid})`;
}

/**
 * An error that nobody caught in this rank ends the whole job: prints the stack with the rank, tells the launcher and the starter, exits
 * with 1. Returns the function that takes this back.
 */
export function abortOnUncaught(job: Job): () => void {
  let ending = false;
  const handler = (error: unknown, origin: NodeJS.UncaughtExceptionOrigin) => {
    // Whatever fails once the job is aborted fails because of that, which has been said.
    if (ending || job.isEnding === true) return;
    ending = true;
    const stack = error instanceof Error ? (error.stack ?? String(error)) : String(error);
    const what = origin === 'unhandledRejection' ? 'unhandled rejection' : 'uncaught exception';
    complain(`${nameOf(job)}: ${what}:\n${stack}`);
    const exit = () => process.exit(1);
    if (job.oob === undefined && job.abortByStarter === undefined) exit();
    else abortEverywhere(job, 1, stack.split('\n', 1)[0], stack).then(exit, exit);
  };
  const onException = (error: Error, origin: NodeJS.UncaughtExceptionOrigin) => handler(error, origin);
  const onRejection = (reason: unknown) => handler(reason, 'unhandledRejection');
  process.on('uncaughtException', onException);
  process.on('unhandledRejection', onRejection);
  return () => {
    process.off('uncaughtException', onException);
    process.off('unhandledRejection', onRejection);
  };
}

/** A rank without its launcher has nobody who would end it: it prints why and exits with 1. */
export function exitOnLauncherLost(job: Job): void {
  const leave = (text: string) => {
    complain(`${nameOf(job)}: ${text}; exiting`);
    process.exit(1);
  };
  if (job.oob?.lost !== undefined) leave(job.oob.lost);
  job.oob?.on('launcherLost', leave);
}

/**
 * Where a starter has started the ranks, it ends them, and the loss of the channel ends nothing: the rails go on, and a peer that is gone
 * is noticed by them. It is told once.
 */
export function tellServerLost(job: Job): void {
  const tell = (text: string) =>
    complain(
      `${nameOf(job)}: the out-of-band channel is lost (${text}); going on without it: ends of ranks are noticed by their rails only`,
    );
  if (job.oob?.lost !== undefined) tell(job.oob.lost);
  job.oob?.on('launcherLost', tell);
}

/**
 * Nobody of ours ends the processes when one rank aborts the job: each ends itself. The starter hears the code from each before it sees it
 * end: it would take the first end that it did not expect for a failure of its own kind, kill the rest, and report the signal instead of
 * the code, and who hears of the abort here may be faster than the word of the rank that aborts. Returns the function that takes this back.
 */
export function exitOnAbort(job: Job): () => void {
  const leave = (info: { rank: number; code: number; reason: string }) => {
    if (job.isEnding === true) return;
    job.isEnding = true;
    complain(`${nameOf(job)}: ends, since ${processName(info.rank, job.size, job.replicas ?? 1)} aborted the job: ${info.reason}`);
    const code = info.code & 0xff || 1;
    const exit = () => process.exit(code);
    if (job.abortByStarter === undefined) exit();
    else abortByStarter(job, code, info.reason).then(exit, exit);
  };
  if (job.oob?.aborted !== undefined) leave(job.oob.aborted);
  job.oob?.on('abort', leave);
  return () => job.oob?.off('abort', leave);
}
