// A job in a lab: its ranks on the nodes, its launcher on node 0, since the out-of-band channel goes over the rails like everything else.
// The process that started it holds one end of a pipe; when that closes, for whatever reason, the launcher ends the job. A job that is
// watched has a second pipe, whose content this file does not read.
import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import type { Duplex } from 'node:stream';
import { MultirailError } from '../../src/errors.ts';
import type { LabView } from './view.ts';

/** Descriptor of that pipe in the launcher. */
export const LIFELINE_FD = 3;
/** Descriptor in the launcher of the pipe to whoever watches the job. */
export const WATCH_FD = 4;
/** What the launcher says on the lifeline once all ranks are started. */
export const STARTED = 'started\n';

/** What the launcher on node 0 is told (`multirail lab launch`). */
export interface LabJobSpec {
  command: readonly string[];
  nodeArgs: readonly string[];
  /** By rank; the first is the launcher's own. */
  namespaces: readonly string[];
  oobListen: readonly string[];
  mca: Readonly<Record<string, string>>;
  /** `[rank]` before each line. */
  prefix: boolean;
  /** The job is watched over WATCH_FD, and is called so there. */
  watchedAs?: string | undefined;
}

/** Ranks go round the nodes. Without word on transports it is TCP: nothing else crosses from node to node. */
export function labJobSpec(
  view: LabView,
  job: {
    size: number;
    command: readonly string[];
    mca: Readonly<Record<string, string>>;
    nodeArgs?: readonly string[];
    prefix: boolean;
    watchedAs?: string | undefined;
  },
): LabJobSpec {
  const asked = 'btl' in job.mca || process.env.MULTIRAIL_MCA_btl !== undefined;
  return {
    command: job.command,
    nodeArgs: job.nodeArgs ?? [],
    namespaces: Array.from({ length: job.size }, (_, rank) => view.namespaces[rank % view.namespaces.length]),
    oobListen: view.addresses[0],
    mca: asked ? job.mca : { btl: 'self,tcp', ...job.mca },
    prefix: job.prefix,
    watchedAs: job.watchedAs,
  };
}

export interface LabJob {
  readonly child: ChildProcess;
  /** All ranks are started; also resolves when the job ends before. */
  readonly started: Promise<void>;
  /** The exit code of the job. */
  readonly ended: Promise<number>;
  /** To the launcher's WATCH_FD, where the job is watched; must be read. */
  readonly watch: Duplex | undefined;
  /** Ends it: the launcher ends its ranks. */
  end(): void;
}

/** `cli`: the file of the `multirail` command. `stdio`: of the launcher. */
export function startLabJob(cli: string, spec: LabJobSpec, stdio: Exclude<StdioOptions, string>): LabJob {
  const argv = ['netns', 'exec', spec.namespaces[0], process.execPath, cli, 'lab', 'launch', JSON.stringify(spec)];
  const isWatched = spec.watchedAs !== undefined;
  const child = spawn('ip', argv, { stdio: [...stdio, 'pipe', ...(isWatched ? ['pipe' as const] : [])] });
  const lifeline = child.stdio[LIFELINE_FD] as Duplex;
  let begun = (): void => {};
  const started = new Promise<void>((resolve) => {
    begun = resolve;
  });
  lifeline.on('data', () => begun());
  lifeline.on('error', () => undefined);
  const ended = new Promise<number>((resolve, reject) => {
    child.once('error', (cause) => {
      begun();
      reject(new MultirailError('ERR_LAUNCH', `the job in the lab could not be started: ${cause.message}`, { cause }));
    });
    child.once('close', (code, signal) => {
      begun();
      resolve(code ?? (signal === null ? 1 : 128));
    });
  });
  return { child, started, ended, watch: isWatched ? (child.stdio[WATCH_FD] as Duplex) : undefined, end: () => lifeline.destroy() };
}
