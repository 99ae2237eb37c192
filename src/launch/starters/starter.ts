// What a rank learns from the environment that a starter (Slurm, mpiexec, Kubernetes, …) started it in: its place, and where the ranks of
// the job meet. Each starter has a file in this folder; index.ts is the table of them.
import { MultirailError } from '../../errors.ts';
import { type Env, has } from './env.ts';

/** Where the ranks of a job find each other. */
export type Meeting =
  /** The launcher of ours serves the out-of-band channel. */
  | { by: 'launcher'; urls: readonly string[]; jobId: string; launcherPid: number | undefined }
  /** Rank 0 serves it and tells its address and the secret through the PMI-1 key-value space. */
  | { by: 'pmi'; fd: number }
  /** The same through PMIx, which also says how many ranks there are; or, with `byHand`, PMIx says only that. */
  | { by: 'pmix'; byHand: Meeting | undefined }
  /** Rank 0 serves it at this address, which everybody knows. */
  | { by: 'address'; host: string; port: number; rule: string }
  /** Rank 0 serves it and writes its address and the secret into this file. */
  | { by: 'file'; path: string; rule: string }
  /** Rank 0 serves it on loopback; address and secret are in a file of the user's own on this host. */
  | { by: 'host'; rule: string }
  /** There is nobody else. */
  | { by: 'nobody' };

/** A rank's place in its job. */
export interface Place {
  rank: number;
  /** Undefined where the environment does not say and PMIx is still to be asked. */
  size: number | undefined;
  /** Undefined where the starter does not say. */
  localRank: number | undefined;
  localSize: number | undefined;
  /** Names the job among others of the same user at the same time, as far as the starter does; equal on all ranks. */
  jobKey: string;
  /** How often the starter has restarted this rank; undefined where it does not count. */
  restarts: number | undefined;
  meeting: Meeting;
}

/** A place in a job of which the number of ranks is known. */
export type KnownPlace = Place & { size: number };

/** Variables that show a starter in part. */
export interface Incomplete {
  set: readonly string[];
  /** Those without which a rank cannot know its place. */
  missing: readonly string[];
}

/** One way in which a rank is started. The functions look at nothing but the environment. */
export interface Starter {
  readonly name: string;
  /** It may start a process again under its old index while the others of the job live. */
  readonly startsAgain?: boolean;
  /** The variables that show that this starter started the process; undefined = it did not. */
  seen(env: Env): string | undefined;
  /**
   * Asked when no starter is seen: some of its variables are there, and say that there are other ranks, but not all. Undefined = there are
   * too few to tell them from names that others use.
   */
  incomplete?(env: Env): Incomplete | undefined;
  /** Called only when seen. Throws ERR_INIT, saying what to do, when something is missing. */
  place(env: Env): Place;
}

export const RANKS_LIMIT = 2 ** 31;
export const PORT_MAX = 65_535;

export function checkRank(rank: number, size: number, rankName: string, sizeName: string): void {
  if (rank >= size) throw new MultirailError('ERR_INIT', `${rankName}=${rank} is not below ${sizeName}=${size}`);
}

/** These variables as far as they are set, and those of `needed` that are not; undefined when nothing of `needed` is missing. */
export function incompleteOf(env: Env, needed: readonly string[], others: readonly string[] = []): Incomplete | undefined {
  const missing = needed.filter((name) => !has(env, name));
  return missing.length === 0 ? undefined : { set: [...needed, ...others].filter((name) => has(env, name)), missing };
}

/** `host:port`, `[v6]:port`; undefined when it is neither. */
export function parseAddress(text: string): { host: string; port: number } | undefined {
  const match = /^\[([^\]]+)\]:(\d{1,5})$/.exec(text) ?? /^([^:/\s]+):(\d{1,5})$/.exec(text);
  const port = Number(match?.[2] ?? 0);
  return match === null || port < 1 || port > PORT_MAX ? undefined : { host: match[1], port };
}

/** What the user says in MULTIRAIL_RENDEZVOUS, which wins over what a starter's variables say; undefined when it is not set. */
export function meetingOf(env: Env): Meeting | undefined {
  if (!has(env, 'MULTIRAIL_RENDEZVOUS')) return undefined;
  const text = env.MULTIRAIL_RENDEZVOUS as string;
  const path = text.startsWith('file:') ? text.slice('file:'.length).replace(/^\/\/(?=\/)/, '') : text;
  if (path.startsWith('/')) return { by: 'file', path, rule: 'MULTIRAIL_RENDEZVOUS' };
  const address = parseAddress(text);
  if (address !== undefined) return { by: 'address', ...address, rule: 'MULTIRAIL_RENDEZVOUS' };
  throw new MultirailError(
    'ERR_INIT',
    `MULTIRAIL_RENDEZVOUS="${text}": expected host:port (rank 0 listens there), or the absolute path of a file that all ranks can reach`,
  );
}

/**
 * A port for a job, the same on every rank: from 17000 to 32767, below the range from which the kernel takes ports for connections, and
 * spread by the job's key.
 */
export function derivedPort(jobKey: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < jobKey.length; i++) hash = Math.imul(hash ^ jobKey.charCodeAt(i), 0x01000193) >>> 0;
  return 17_000 + (hash % 15_768);
}

export const aloneOr = (size: number, meeting: () => Meeting): Meeting => (size === 1 ? { by: 'nobody' } : meeting());
