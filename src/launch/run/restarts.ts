// `multirail run --restarts N`: a job that has failed because ranks died is started again as a whole, and goes on from what it has saved.
import { MultirailError } from '../../errors.ts';
import { DIVERGED_CODE, RENEW_CODE } from '../../util/exit-codes.ts';
import { DIVERGED_ENV, RESTARTS_ENV } from '../../util/restart-env.ts';
import type { JobResult } from './job-result.ts';
import { type RunOptions, runJob } from './launcher.ts';
import { againAfter, hasRoomToSpare } from './placing-again.ts';

export const RESTARTS_MAX = 1000;

/** Whether starting the job again may help: ranks have died, and nobody wanted it to end. An error of the program comes again. */
export function isRestartable({ exitCode, deaths, wasTold }: JobResult): boolean {
  return exitCode !== 0 && deaths > 0 && !wasTold;
}

const counted = (count: number, one: string, more: string): string => `${count} ${count === 1 ? one : more}`;

/**
 * Runs a job, and starts it again at most so often. Kills that were asked for are those of the first start.
 *
 * @param options As for startJob().
 * @param restarts From 0 to 1000.
 * @throws ERR_ARG: another number.
 */
export async function runWithRestarts(
  options: RunOptions,
  restarts: number,
  run: (options: RunOptions) => Promise<JobResult> = runJob,
): Promise<JobResult & { readonly restarts: number }> {
  if (!Number.isInteger(restarts) || restarts < 0 || restarts > RESTARTS_MAX)
    throw new MultirailError('ERR_ARG', `number of restarts ${restarts}: expected a whole number from 0 to ${RESTARTS_MAX}`);
  const stderr = options.stderr ?? process.stderr;
  const say = (text: string): void => void stderr.write(`multirail: ${text}\n`);
  const { kill, ...rest } = options;
  let later: RunOptions = rest;
  for (let done = 0; ; done++) {
    const env = { ...(options.env ?? process.env), [RESTARTS_ENV]: String(done) };
    const result = await run(done === 0 ? { ...options, env } : { ...later, env });
    later = againAfter(later, result);
    const { exitCode, deaths, failure } = result;
    if (!isRestartable(result)) {
      if (done > 0) say(`the job was started again ${counted(done, 'time', 'times')} and ends with exit code ${exitCode}`);
      return { ...result, restarts: done };
    }
    const why = `the job failed with exit code ${exitCode} after the death of ${counted(deaths, 'process', 'processes')} (${failure ?? 'no reason is known'})`;
    if (done === restarts) {
      if (restarts > 0) say(`${why}; it is not started again: ${counted(restarts, 'restart is', 'restarts are')} used up`);
      return { ...result, restarts: done };
    }
    say(`${why}; it is started again, from its newest save if it has one (restart ${done + 1} of ${restarts})`);
  }
}

/** How often a job of replicas is started again at most, by why. */
export interface Relaunches {
  /** Its replicas differ. Where there is no other number for them, deaths that end the job count here. */
  readonly onDiverged: number;
  /** A replica has died: behind the next save of the job, or at once if its rank cannot go on. */
  readonly onDeath: number;
}

/**
 * Runs a job of replicas, and starts it again when they differ, of which nobody can say which one is right, or when one has died. It goes on from what
 * it has saved in a store by `multirail/ft`, and from its beginning without that.
 *
 * @param options As for startJob().
 */
export async function runWithRelaunches(
  options: RunOptions,
  { onDiverged, onDeath }: Relaunches,
  run: (options: RunOptions) => Promise<JobResult> = runJob,
): Promise<JobResult & { readonly relaunches: number }> {
  const stderr = options.stderr ?? process.stderr;
  const say = (text: string): void => void stderr.write(`multirail: ${text}\n`);
  const env = options.env ?? process.env;
  const { kill, ...rest } = options;
  let later: RunOptions = rest;
  const allowed = { differences: onDiverged, deaths: onDeath };
  const left = { ...allowed };
  let hasDiverged = false;
  for (let done = 0; ; done++) {
    const mca = {
      ...options.mca,
      // Faults and kills that were asked for are those of the first start.
      ...(done === 0 ? {} : { ft_inject: '' }),
      // With none left, whoever is left of a rank goes on.
      ...(left.deaths > 0 ? { ft_replica_renew: hasRoomToSpare(later) ? 'host' : 'process' } : {}),
    };
    const again = hasDiverged ? { [DIVERGED_ENV]: String(done) } : {};
    const result = await run({ ...(done === 0 ? options : later), mca, env: { ...env, [RESTARTS_ENV]: String(done), ...again } });
    later = againAfter(later, result);
    const { exitCode, wasTold } = result;
    hasDiverged = exitCode === DIVERGED_CODE && !wasTold;
    const isRenewal = exitCode === RENEW_CODE && left.deaths > 0 && !wasTold;
    if (!hasDiverged && !isRenewal && !isRestartable(result)) {
      if (done > 0) say(`the job was started again ${counted(done, 'time', 'times')} and ends with exit code ${exitCode}`);
      return { ...result, relaunches: done };
    }
    const why = whyAgain(result, hasDiverged, isRenewal);
    const kind = hasDiverged || onDeath === 0 ? 'differences' : 'deaths';
    if (left[kind] === 0) {
      if (allowed[kind] > 0)
        say(`${why}; the job is not started again: ${counted(allowed[kind], 'relaunch is', 'relaunches are')} used up`);
      return { ...result, relaunches: done };
    }
    left[kind]--;
    say(`${why}; the job is started again, from a save if it has one (relaunch ${done + 1} of ${onDiverged + onDeath})`);
  }
}

function whyAgain({ failure = 'no reason is known' }: JobResult, hasDiverged: boolean, isRenewal: boolean): string {
  if (hasDiverged) return 'the replicas differ';
  return isRenewal ? 'a replica has died' : `the lead of a rank has died (${failure})`;
}
