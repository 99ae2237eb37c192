// A job that is watched: `multirail run` or `multirail lab run` with --dashboard or --events. Without both it is a plain job, and its ranks
// report nothing.
import { readFileSync } from 'node:fs';
import { MultirailError } from '../../src/errors.ts';
import type { JobResult } from '../../src/launch/run/job-result.ts';
import { newJobId, type RunningJob, type RunOptions, startJob } from '../../src/launch/run/launcher.ts';
import type { JobOutcome } from '../../src/launch/run/relay.ts';
import { processesOf } from '../../src/launch/run/workers.ts';
import { ParamTable } from '../../src/params.ts';
import { checkToken } from '../dashboard/access.ts';
import type { RailControl } from '../dashboard/control.ts';
import { type Dashboard, startDashboard, TELEMETRY_MS } from '../dashboard/dashboard.ts';
import type { JobModel } from '../dashboard/model.ts';
import { packageVersion } from './version.ts';

const TELEMETRY_PARAM = 'mpi_telemetry_ms';
/** However often ranks report, the history is not finer than this. */
const SLOT_MS_MIN = 100;
const TOKEN_FILE_OPTION = '--dashboard-token-file';

export interface WatchOptions {
  /** Port of the page, 0 = any; undefined = no page. */
  port: number | undefined;
  /** Keep the page after the end, until Ctrl-C. */
  hold: boolean;
  tokenFile: string | undefined;
  /** JSON lines go here. */
  eventsFile: string | undefined;
}

export const isWatched = ({ port, eventsFile }: WatchOptions): boolean => port !== undefined || eventsFile !== undefined;

/** What the launcher of a job is given so that the job can be watched. */
export type WatchHooks = Required<Pick<RunOptions, 'mca' | 'jobId' | 'observer' | 'onWaits'>>;

/** A job that has been started, here or elsewhere. */
export interface StartedJob<R extends JobOutcome> extends Pick<RunningJob, 'railFault' | 'kill' | 'askWaits'> {
  readonly result: Promise<R>;
}

/** A job that can be watched, wherever its launcher is. */
export interface WatchableJob<R extends JobOutcome> extends Pick<RunOptions, 'size' | 'spares' | 'command' | 'mca' | 'env' | 'stderr'> {
  /** Starts it; without hooks nobody watches. */
  start(hooks: WatchHooks | undefined): Promise<StartedJob<R>>;
  /** What the page's buttons break and mend, beside the ranks' fault interposers. */
  control?: (model: JobModel) => RailControl;
}

/** `multirail run`. */
export async function runWatchedJob(options: RunOptions, watch: WatchOptions): Promise<JobResult> {
  return await runWatched({ ...options, start: (hooks) => startJob({ ...options, ...hooks }) }, watch);
}

export async function runWatched<R extends JobOutcome>(watchable: WatchableJob<R>, watch: WatchOptions): Promise<R> {
  checkCombination(watch);
  if (!isWatched(watch)) return await (await watchable.start(undefined)).result;
  const { command, stderr, control } = watchable;
  const { size, spares, survivesFailures } = processesOf(watchable);
  const say = (text: string) => void (stderr ?? process.stderr).write(`multirail: ${text}\n`);
  const jobId = newJobId();
  const { mca, intervalMs } = withTelemetry(watchable);
  let job: StartedJob<R> | undefined;
  const dashboard = await startDashboard({
    jobId,
    size,
    spares,
    survivesFailures,
    command,
    version: packageVersion(),
    intervalMs,
    port: watch.port,
    orderFault: (rank, fault) => job?.railFault(rank, fault),
    orderKill: (rank) => job?.kill(rank),
    askWaits: () => job?.askWaits('asked from the dashboard'),
    say,
    ...(watch.tokenFile === undefined ? {} : { token: readToken(watch.tokenFile) }),
    ...(watch.eventsFile === undefined ? {} : { eventsFile: watch.eventsFile }),
    ...(control === undefined ? {} : { control }),
  });
  try {
    if (dashboard.url !== undefined) say(`dashboard at ${dashboard.url}`);
    job = await watchable.start({ mca, jobId, observer: dashboard.observer, onWaits: (report) => dashboard.waits(report) });
    const result = await job.result;
    dashboard.ended(result.exitCode, result.failure);
    if (watch.hold && dashboard.url !== undefined) await untilInterrupted(dashboard, say);
    return result;
  } finally {
    await dashboard.close();
  }
}

function checkCombination({ port, hold, tokenFile }: WatchOptions): void {
  const without = port !== undefined ? undefined : hold ? '--dashboard-hold' : tokenFile === undefined ? undefined : TOKEN_FILE_OPTION;
  if (without !== undefined) throw new MultirailError('ERR_ARG', `${without} needs --dashboard`);
}

/** The ranks are asked to report, unless the user said how often, or never. `intervalMs`: the width of a slot of the history. */
function withTelemetry(options: Pick<RunOptions, 'mca' | 'env'>): { mca: Readonly<Record<string, string>>; intervalMs: number } {
  const table = new ParamTable(options.mca ?? {}, options.env ?? process.env);
  if (!table.origins.has(TELEMETRY_PARAM)) {
    return { mca: { ...options.mca, [TELEMETRY_PARAM]: String(TELEMETRY_MS) }, intervalMs: TELEMETRY_MS };
  }
  return { mca: options.mca ?? {}, intervalMs: Math.max(SLOT_MS_MIN, table.int(TELEMETRY_PARAM)) };
}

function readToken(file: string): string {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new MultirailError('ERR_CONFIG', `${TOKEN_FILE_OPTION}: ${(error as Error).message}`, { cause: error });
  }
  return checkToken(text, `the file of ${TOKEN_FILE_OPTION}`);
}

async function untilInterrupted(dashboard: Dashboard, say: (text: string) => void): Promise<void> {
  say(`the job has ended; the dashboard stays at ${dashboard.url} until Ctrl-C`);
  await new Promise<void>((resolve) => {
    // The server alone does not keep this process alive.
    const stay = setInterval(() => undefined, 2 ** 30);
    const end = () => {
      clearInterval(stay);
      resolve();
    };
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, end);
  });
}
