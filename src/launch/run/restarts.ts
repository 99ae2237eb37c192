// `multirail run --restarts N`: a job that has failed because ranks died is started again as a whole, and goes on from what it has saved.
import { MultirailError } from '../../errors.ts';
import { DIVERGED_CODE } from '../../util/exit-codes.ts';
import { DIVERGED_ENV, RESTARTS_ENV } from '../../util/restart-env.ts';
import type { JobResult } from './job-result.ts';
import { type RunOptions, runJob } from './launcher.ts';

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
  const { kill, ...later } = options;
  for (let done = 0; ; done++) {
    const env = { ...(options.env ?? process.env), [RESTARTS_ENV]: String(done) };
    const result = await run(done === 0 ? { ...options, env } : { ...later, env });
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

/**
 * Runs a job of replicas, and starts it again, at most so often, when they differ, of which nobody can say which one is right, or when the lead of a
 * rank dies. It goes on from what it has saved in a store by `multirail/ft`, and from its beginning without that.
 *
 * @param options As for startJob().
 * @param relaunches From 1 on.
 */
export async function runWithRelaunches(
  options: RunOptions,
  relaunches: number,
  run: (options: RunOptions) => Promise<JobResult> = runJob,
): Promise<JobResult & { readonly relaunches: number }> {
  const stderr = options.stderr ?? process.stderr;
  const say = (text: string): void => void stderr.write(`multirail: ${text}\n`);
  const env = options.env ?? process.env;
  let hasDiverged = false;
  for (let done = 0; ; done++) {
    // Faults that were asked for are those of the first start.
    const mca = done === 0 ? options.mca : { ...options.mca, ft_inject: '' };
    const again = hasDiverged ? { [DIVERGED_ENV]: String(done) } : {};
    const result = await run({
      ...options,
      ...(mca === undefined ? {} : { mca }),
      env: { ...env, [RESTARTS_ENV]: String(done), ...again },
    });
    hasDiverged = result.exitCode === DIVERGED_CODE;
    if (!hasDiverged && !isRestartable(result)) {
      if (done > 0) say(`the job was started again ${counted(done, 'time', 'times')} and ends with exit code ${result.exitCode}`);
      return { ...result, relaunches: done };
    }
    const why = hasDiverged ? 'the replicas differ' : `the lead of a rank has died (${result.failure ?? 'no reason is known'})`;
    if (done === relaunches) {
      say(`${why}; the job is not started again: ${counted(relaunches, 'relaunch is', 'relaunches are')} used up`);
      return { ...result, relaunches: done };
    }
    say(`${why}; the job is started again, from a save if it has one (relaunch ${done + 1} of ${relaunches})`);
  }
}
