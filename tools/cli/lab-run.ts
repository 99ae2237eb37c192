// `multirail lab run`: a job in a lab, watched or not, and what happens to the lab's rails meanwhile. Its launcher is `multirail lab
// launch` on the lab's node 0, whose network no browser can reach: the dashboard is here, and hears about the job over a pipe.
import { readFileSync, realpathSync } from 'node:fs';
import { Socket } from 'node:net';
import { constants } from 'node:os';
import { MultirailError } from '../../src/errors.ts';
import { startJob } from '../../src/launch/run/launcher.ts';
import { type JobOutcome, JobRelay, RelayedJob } from '../../src/launch/run/relay.ts';
import { describeAction, type LabAction } from '../lab/actions.ts';
import { labUnavailable } from '../lab/available.ts';
import { type LabChanges, LabDriver } from '../lab/faults.ts';
import { type LabJob, type LabJobSpec, LIFELINE_FD, labJobSpec, STARTED, startLabJob, WATCH_FD } from '../lab/job.ts';
import { askKeeper, KeeperWatch } from '../lab/keeper.ts';
import { MAX_NODES } from '../lab/plan.ts';
import { parseRails } from '../lab/rails.ts';
import { parseTimeline, playTimeline, type TimelineStep } from '../lab/timeline.ts';
import { createLab, type LabSettings, type LabView, viewOf } from '../lab/view.ts';
import { LabControl } from './lab-control.ts';
import { type WatchCommandOptions, watchOf } from './run.ts';
import { isWatched, runWatched, type StartedJob, type WatchHooks } from './watched-job.ts';

export const DEFAULT_NODES = 2;

/** The file of this command, as a program that Node recognises. */
export const ownFile = (): string => realpathSync(process.argv[1]);

export function mustBePossible(): void {
  const missing = labUnavailable();
  if (missing !== undefined) throw new MultirailError('ERR_SUPPORT', missing);
}

const say = (text: string): void => {
  process.stderr.write(`multirail: ${text}\n`);
};

/** Resolves with the first signal that asks this process to end. */
export function untilSignal(): { signal: Promise<NodeJS.Signals>; release(): void } {
  let release = (): void => {};
  const signal = new Promise<NodeJS.Signals>((resolve) => {
    const names: NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];
    for (const name of names) process.on(name, resolve);
    release = () => {
      for (const name of names) process.off(name, resolve);
    };
  });
  return { signal, release };
}

export interface RunInLabOptions extends WatchCommandOptions {
  np?: number;
  rails?: string;
  nodes?: number;
  seed?: number;
  congestionControl?: string;
  name: string;
  mca: Record<string, string>;
  nodeArg: string[];
  timeline?: string;
  prefix: boolean;
}

export const settingsOf = ({ seed, congestionControl }: Pick<RunInLabOptions, 'seed' | 'congestionControl'>): LabSettings => ({
  ...(seed === undefined ? {} : { seed }),
  ...(congestionControl === undefined ? {} : { congestionControl }),
});

/** A lab to run in, and what is done to it: somebody else's, or one for this job alone. */
interface Stage {
  view: LabView;
  apply(action: LabAction): Promise<unknown>;
  /** What is done to it, also by others; undefined where nobody looks. */
  changes: LabChanges | undefined;
  leave(): Promise<void>;
}

async function stageOf(options: RunInLabOptions, isLookedAt: boolean): Promise<Stage> {
  const { name } = options;
  if (options.rails === undefined) {
    if (options.nodes !== undefined || options.seed !== undefined || options.congestionControl !== undefined)
      throw new MultirailError('ERR_ARG', '--nodes, --seed and --congestion-control need --rails, which makes a lab for this job');
    const view = await askKeeper<LabView>(name, { op: 'view' });
    const changes = isLookedAt ? await KeeperWatch.open(name) : undefined;
    return { view, apply: (action) => askKeeper(name, { op: 'act', action }), changes, leave: async () => changes?.close() };
  }
  const rails = parseRails(options.rails);
  const lab = await createLab(options.nodes ?? Math.min(options.np ?? DEFAULT_NODES, MAX_NODES), rails, settingsOf(options));
  const driver = new LabDriver(lab);
  driver.listen((event) => {
    if (event.kind === 'forwarder-lost') say(describeAction(event, rails));
  });
  return { view: viewOf(lab, rails), apply: (action) => driver.apply(action), changes: driver, leave: () => lab.destroy() };
}

export async function runInLab(words: readonly string[], options: RunInLabOptions): Promise<void> {
  mustBePossible();
  const script = options.timeline === undefined ? undefined : readScript(options.timeline);
  const watch = watchOf(options);
  const stage = await stageOf(options, isWatched(watch));
  const { signal, release } = untilSignal();
  try {
    const { view, changes } = stage;
    const size = options.np ?? view.namespaces.length;
    const steps = script === undefined ? [] : parseTimeline(script, view.rails, view.namespaces.length);
    const start = async (hooks: WatchHooks | undefined): Promise<StartedJob<JobOutcome>> => {
      const mca = hooks?.mca ?? options.mca;
      const given = { size, command: words, mca, nodeArgs: options.nodeArg, prefix: options.prefix, watchedAs: hooks?.jobId };
      const job = startLabJob(ownFile(), labJobSpec(view, given), ['inherit', 'inherit', 'inherit']);
      return withOutcome(job, besideTimeline(job, steps, stage, signal), size, hooks);
    };
    const control = changes === undefined ? {} : { control: LabControl.maker({ view, changes, apply: (action) => stage.apply(action) }) };
    const { exitCode } = await runWatched({ size, command: words, mca: options.mca, start, ...control }, watch);
    process.exitCode = exitCode;
  } finally {
    await stage.leave();
    release();
  }
}

function readScript(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new MultirailError('ERR_ARG', `the timeline cannot be read: ${(cause as Error).message}`, { cause });
  }
}

/** The job's exit code, or that of the signal that has ended it; a step that fails ends the job. */
async function besideTimeline(job: LabJob, steps: readonly TimelineStep[], stage: Stage, signal: Promise<NodeJS.Signals>): Promise<number> {
  const over = new AbortController();
  let failure: unknown;
  let interrupted: NodeJS.Signals | undefined;
  void signal.then((name) => {
    interrupted = name;
    job.end();
  });
  const played = job.started
    .then(() => {
      const startMs = performance.now();
      const apply = async ({ action }: TimelineStep) => {
        await stage.apply(action);
        say(`${((performance.now() - startMs) / 1000).toFixed(3)} s: ${describeAction(action, stage.view.rails)}`);
      };
      return playTimeline(steps, apply, over.signal);
    })
    .catch((error: unknown) => {
      failure = error;
      job.end();
    });
  try {
    const code = await job.ended;
    return interrupted === undefined ? code : 128 + constants.signals[interrupted];
  } finally {
    over.abort();
    await played;
    // biome-ignore lint/correctness/noUnsafeFinally: the reason why the job was ended is worth more than its exit code
    if (failure !== undefined) throw failure;
  }
}

/** The job as its watcher has it: what it tells comes over its pipe, and why it failed too. */
function withOutcome(job: LabJob, ended: Promise<number>, size: number, hooks: WatchHooks | undefined): StartedJob<JobOutcome> {
  if (hooks === undefined || job.watch === undefined) {
    const result = ended.then((exitCode) => ({ exitCode, failure: undefined }));
    return { result, railFault: () => undefined, kill: () => undefined, askWaits: () => undefined };
  }
  const relayed = new RelayedJob(job.watch, { size, observer: hooks.observer, onWaits: hooks.onWaits, say });
  const result = Promise.all([ended, relayed.outcome]).then(([exitCode, told]) => {
    const unsaid = exitCode === 0 ? undefined : `its launcher ended with code ${exitCode}, and did not say why`;
    return { exitCode, failure: told === undefined ? unsaid : told.failure };
  });
  return {
    result,
    railFault: (rank, fault) => relayed.railFault(rank, fault),
    kill: (rank) => relayed.kill(rank),
    askWaits: (reason) => relayed.askWaits(reason),
  };
}

/** The launcher of a job in a lab, in the namespace of its node 0. */
export async function launch(text: string): Promise<void> {
  const spec = JSON.parse(text) as LabJobSpec;
  const { watchedAs } = spec;
  const relay = watchedAs === undefined ? undefined : new JobRelay(new Socket({ fd: WATCH_FD }));
  const job = await startJob({
    size: spec.namespaces.length,
    command: spec.command,
    nodeArgs: spec.nodeArgs,
    mca: spec.mca,
    oobListen: spec.oobListen,
    prefix: spec.prefix,
    forwardSignals: true,
    rankCommand: (rank) => (spec.namespaces[rank] === spec.namespaces[0] ? [] : ['ip', 'netns', 'exec', spec.namespaces[rank]]),
    ...(watchedAs === undefined ? {} : { jobId: watchedAs }),
    ...(relay === undefined ? {} : { observer: relay.observer, onWaits: (report) => relay.waits(report) }),
  });
  relay?.serve(job);
  const lifeline = new Socket({ fd: LIFELINE_FD });
  lifeline.on('error', () => undefined);
  lifeline.on('close', () => job.end('the command that started it in the lab is gone'));
  lifeline.resume();
  lifeline.write(STARTED);
  const { exitCode, failure } = await job.result;
  await relay?.end({ exitCode, failure });
  process.exitCode = exitCode;
}
