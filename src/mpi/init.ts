// init(): the runtime of a process that was started as a rank, or alone.

import type { BtlComponent } from '../btl/btl.ts';
import { knownComponents, selectComponents } from '../btl/registry.ts';
import { abortOnUncaught, exitOnAbort, exitOnLauncherLost, type Job, joinJob, tellServerLost } from '../launch/job.ts';
import { joinOnce } from '../launch/meeting/once.ts';
import { ParamTable } from '../params.ts';
import { processName } from '../util/replica-names.ts';
import { checkKeys } from './constants.ts';
import { loadJobParts } from './job-parts.ts';
import { SELF } from './modex.ts';
import { createRuntime, type ModuleSource, type Runtime } from './runtime.ts';

/** Options of init(). */
export interface InitOptions {
  /** Parameters by name, above those of the environment: `{ btl: 'self,tcp', btl_tcp_links: '2' }`. */
  params?: Readonly<Record<string, string | number | boolean>>;
  /** Where rank, size and parameters are read from; process.env by default. */
  env?: Readonly<Record<string, string | undefined>>;
  /**
   * An uncaught exception or unhandled rejection ends the whole job, and so does that of another rank this process, where no launcher of
   * ours does it. By default the parameter mpi_abort_on_uncaught, which is true.
   */
  abortOnUncaught?: boolean;
}

const INIT_KEYS: readonly (keyof InitOptions)[] = ['params', 'env', 'abortOnUncaught'];
/** Prints who waits for whom. */
const WAITS_SIGNAL = 'SIGUSR2';

/**
 * Joins the job that the environment describes; without one, a world of one (MPI-4.1, section 11.2.1). Resolves when all ranks have done
 * the same. A process calls it once, in its main thread.
 *
 * @param options Parameters, the environment to look at, and what becomes of uncaught errors.
 * @throws ERR_INIT: it was called before, or in a worker thread; the environment describes half a job; or the other ranks could not be met.
 * @throws ERR_CONFIG: a parameter has an unknown name, or a value out of range.
 * @throws ERR_ARG: an option is unknown.
 * @throws ERR_OOB, ERR_HANDSHAKE: the out-of-band channel failed, or refused this rank.
 * @throws ERR_PROC_FAILED, ERR_ABORT: a rank died, or aborted the job, before all had met.
 */
export async function init(options: InitOptions = {}): Promise<Runtime> {
  checkKeys(options, INIT_KEYS);
  const env = options.env ?? process.env;
  const overrides = Object.fromEntries(Object.entries(options.params ?? {}).map(([name, value]) => [name, String(value)]));
  const params = new ParamTable(overrides, env);
  const once = joinOnce(env, options.env === undefined, undefined, params);
  const job = await joinWithParts(env, params).catch((error: unknown) => {
    once.undo();
    throw error;
  });
  job.replicas = params.int('ft_replicas');
  const undo: (() => void)[] = [];
  if (options.abortOnUncaught ?? params.bool('mpi_abort_on_uncaught')) {
    undo.push(abortOnUncaught(job));
    if (job.hasOwnLauncher === false) undo.push(exitOnAbort(job));
  }
  if (job.hasOwnLauncher === false) tellServerLost(job);
  else exitOnLauncherLost(job);
  const debug = env.MULTIRAIL_DEBUG !== undefined && env.MULTIRAIL_DEBUG !== '';
  const log = (level: string, text: string) => {
    if (debug || level === 'warn') process.stderr.write(`multirail: ${processName(job.rank, job.size, job.replicas ?? 1)}: ${text}\n`);
  };
  // All ranks have the same parameters: one of them says it.
  if (job.rank === 0) for (const text of params.warnings) log('warn', text);
  let runtime: Runtime | undefined;
  const onExit = () => {
    if (runtime !== undefined && job.isEnding !== true) warnUnfinished(runtime);
  };
  process.on('exit', onExit);
  const onSignal = () => runtime?.reportWaits(WAITS_SIGNAL);
  // A listener keeps no process alive; those of the program are called too.
  if (params.bool('mpi_waits_on_signal')) process.on(WAITS_SIGNAL, onSignal);
  const onClosed = () => {
    process.off(WAITS_SIGNAL, onSignal);
    for (const take of undo) take();
    process.off('exit', onExit);
    once.left();
  };
  try {
    const { components, unavailable } = selectComponents(params);
    // A rank always reaches itself, and a world of one needs nothing else.
    const wanted = components.filter((component) => component.name === SELF || job.size > 1 || job.rank >= job.size);
    if (!wanted.some((component) => component.name === SELF))
      wanted.push(...knownComponents().filter((component) => component.name === SELF));
    runtime = await createRuntime(job, {
      params,
      modules: await withFaults(wanted, params.string('btl_fault')),
      excluded: Object.fromEntries(unavailable.map(({ name, reason }) => [name, reason])),
      exit: (code) => process.exit(code),
      log,
      onClosed,
    });
    return runtime;
  } catch (error) {
    onClosed();
    await job.oob?.close();
    await job.leave?.();
    once.undo();
    throw error;
  }
}

/** Joins the job once all is loaded: who joins and then loads would not listen yet when the channel says something. */
async function joinWithParts(env: NonNullable<InitOptions['env']>, params: ParamTable): Promise<Job> {
  await loadJobParts(params);
  return await joinJob(env, params);
}

/** Parameter btl_fault: every transport but `self` behind the fault interposer. */
async function withFaults(components: readonly BtlComponent[], plan: string): Promise<readonly ModuleSource[]> {
  if (plan === '') return components;
  const { wrapFaultComponent } = await import('../btl/interpose/fault.ts');
  return components.map((component) => (component.name === SELF ? component : wrapFaultComponent(component, plan)));
}

const UNDELIVERED_SHOWN_MAX = 5;

function warnUnfinished(runtime: Runtime): void {
  const open = runtime.undelivered();
  const what =
    open.length === 0
      ? 'nothing was under way'
      : `${open.length} messages were not delivered: ${open.slice(0, UNDELIVERED_SHOWN_MAX).join('; ')}${open.length > UNDELIVERED_SHOWN_MAX ? '; …' : ''}`;
  process.stderr.write(`multirail: rank ${runtime.rank} of ${runtime.size} (pid ${process.pid}) exits without finalize(); ${what}\n`);
}
