// How a process finds itself in a job: its rank, its peers' number, the job's secret, and the out-of-band channel.
// The ways are tried in order (see JOINERS); the last one, a world of one, always works.
// May import: errors, params, launcher-watch, oob-client, node:*.
import { randomBytes } from 'node:crypto';
import { closeSync, fstatSync, readFileSync, readlinkSync, readSync } from 'node:fs';
import { hostname } from 'node:os';
import { MultirailError } from '../errors.ts';
import { ParamTable } from '../params.ts';
import { LauncherWatch } from './launcher-watch.ts';
import { OobClient } from './oob-client.ts';

export type Env = Readonly<Record<string, string | undefined>>;

export interface Job {
  rank: number;
  size: number;
  localRank: number;
  localSize: number;
  jobId: string;
  /** u53, larger in a later process of the same rank. */
  incarnation: number;
  /** Names this host and network namespace. */
  hostId: string;
  /** Undefined when the job has none: then nothing beyond this process may be trusted. */
  secret: Uint8Array | undefined;
  /** Undefined in a world of one. */
  oob: OobClient | undefined;
}

const SECRET_BYTES_MIN = 16;
const SECRET_BYTES_MAX = 4096;

/** One way to find the job. `detect` looks at the environment only. */
interface Joiner {
  name: string;
  detect(env: Env): boolean;
  join(env: Env): Promise<Job>;
}

const JOINERS: readonly Joiner[] = [
  { name: 'multirail run', detect: (env) => env.MULTIRAIL_RANK !== undefined, join: joinOwnLauncher },
  { name: 'world of one', detect: () => true, join: joinWorldOfOne },
];

/** Joins the job that the environment describes. In a job with others it resolves once the launcher knows this rank. */
export async function joinJob(env: Env = process.env): Promise<Job> {
  for (const joiner of JOINERS) if (joiner.detect(env)) return await joiner.join(env);
  throw new MultirailError('ERR_INTERNAL', 'no way to join a job');
}

async function joinOwnLauncher(env: Env): Promise<Job> {
  const rank = envInt(env, 'MULTIRAIL_RANK', 0, 2 ** 31);
  const size = envInt(env, 'MULTIRAIL_SIZE', 1, 2 ** 31);
  if (rank >= size) throw new MultirailError('ERR_INIT', `MULTIRAIL_RANK=${rank} is not below MULTIRAIL_SIZE=${size}`);
  const jobId = envText(env, 'MULTIRAIL_JOB_ID');
  const urls = envText(env, 'MULTIRAIL_OOB')
    .split(',')
    .filter((url) => url !== '');
  const secret = findSecret(env);
  if (secret === undefined) {
    throw new MultirailError(
      'ERR_INIT',
      "the job's secret is missing: the launcher's descriptor (MULTIRAIL_SECRET_FD) did not reach this process; start it without a " +
        'wrapper that closes descriptors, or set MULTIRAIL_SECRET_FILE',
      { rank },
    );
  }
  const job = {
    rank,
    size,
    localRank: env.MULTIRAIL_LOCAL_RANK === undefined ? rank : envInt(env, 'MULTIRAIL_LOCAL_RANK', 0, 2 ** 31),
    localSize: env.MULTIRAIL_LOCAL_SIZE === undefined ? size : envInt(env, 'MULTIRAIL_LOCAL_SIZE', 1, 2 ** 31),
    jobId,
    incarnation: newIncarnation(),
    hostId: hostId(),
    secret,
  };
  const launcherPid = env.MULTIRAIL_LAUNCHER_PID === undefined ? undefined : envInt(env, 'MULTIRAIL_LAUNCHER_PID', 1, 2 ** 31);
  const debug = env.MULTIRAIL_DEBUG !== undefined && env.MULTIRAIL_DEBUG !== '';
  const oob = new OobClient({
    ...job,
    urls,
    watch: new LauncherWatch(launcherPid),
    reconnectTimeoutMs: new ParamTable({}, env).int('oob_reconnect_timeout_ms'),
    ...(debug ? { log: (text: string) => complain(`multirail: rank ${rank}: ${text}`) } : {}),
  });
  await oob.hello();
  return { ...job, oob };
}

async function joinWorldOfOne(env: Env): Promise<Job> {
  return {
    rank: 0,
    size: 1,
    localRank: 0,
    localSize: 1,
    jobId: randomBytes(8).toString('hex'),
    incarnation: newIncarnation(),
    hostId: hostId(),
    secret: findSecret(env),
    oob: undefined,
  };
}

function envText(env: Env, name: string): string {
  const text = env[name];
  if (text === undefined || text === '') throw new MultirailError('ERR_INIT', `${name} is not set, although MULTIRAIL_RANK is`);
  return text;
}

function envInt(env: Env, name: string, min: number, max: number): number {
  const text = envText(env, name);
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= min && value <= max))
    throw new MultirailError('ERR_INIT', `${name}="${text}": expected a whole number from ${min} to ${max}`);
  return value;
}

/** Secrets by job id. A descriptor can be read once; a second init() in the same process finds the secret here. */
const secretsRead = new Map<string, Uint8Array>();

/** The job's secret: from the inherited descriptor, else from MULTIRAIL_SECRET_FILE. */
export function findSecret(env: Env): Uint8Array | undefined {
  const jobId = env.MULTIRAIL_JOB_ID;
  const read = jobId === undefined ? undefined : secretsRead.get(jobId);
  if (read !== undefined) return read;
  const fdText = env.MULTIRAIL_SECRET_FD;
  // In a process that was forked, the low descriptors are Node's own channel to its parent, not ours.
  if (fdText !== undefined && /^\d+$/.test(fdText) && process.channel === undefined) {
    const secret = readSecretFd(Number(fdText));
    // The number means nothing to a process that this one starts.
    if (env === process.env) delete process.env.MULTIRAIL_SECRET_FD;
    if (secret !== undefined) {
      if (jobId !== undefined) secretsRead.set(jobId, secret);
      return secret;
    }
  }
  const file = env.MULTIRAIL_SECRET_FILE;
  if (file === undefined || file === '') return undefined;
  let bytes: Uint8Array;
  try {
    bytes = readFileSync(file);
  } catch (error) {
    throw new MultirailError('ERR_INIT', `MULTIRAIL_SECRET_FILE: ${(error as Error).message}`, { cause: error });
  }
  // An editor's newline at the end is not part of the secret.
  let end = bytes.length;
  while (end > 0 && (bytes[end - 1] === 0x0a || bytes[end - 1] === 0x0d)) end--;
  if (end < SECRET_BYTES_MIN || end > SECRET_BYTES_MAX) {
    throw new MultirailError('ERR_INIT', `MULTIRAIL_SECRET_FILE holds ${end} bytes; expected ${SECRET_BYTES_MIN} to ${SECRET_BYTES_MAX}`);
  }
  return Uint8Array.from(bytes.subarray(0, end));
}

function readSecretFd(fd: number): Uint8Array | undefined {
  try {
    const stat = fstatSync(fd);
    // A wrapper may have closed the descriptor and opened something else, such as a terminal, under its number.
    if (!stat.isFIFO() && !stat.isSocket() && !stat.isFile()) return undefined;
    const buffer = Buffer.alloc(SECRET_BYTES_MAX);
    let length = 0;
    for (;;) {
      const read = readSync(fd, buffer, length, buffer.length - length, null);
      length += read;
      if (read === 0 || length === buffer.length) break;
    }
    closeSync(fd);
    return length >= SECRET_BYTES_MIN ? Uint8Array.from(buffer.subarray(0, length)) : undefined;
  } catch {
    return undefined;
  }
}

let lastIncarnation = 0;

/** Microseconds since 1970, and more than the last one of this process: below 2^53 for the next two centuries. */
export function newIncarnation(): number {
  lastIncarnation = Math.max(lastIncarnation + 1, Math.floor((performance.timeOrigin + performance.now()) * 1000));
  return lastIncarnation;
}

/** Boot id and network namespace: equal on two ranks = they share loopback. */
export function hostId(): string {
  const boot = tryRead(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()) ?? hostname();
  const namespace = tryRead(() => readlinkSync('/proc/self/ns/net')) ?? 'net';
  return `${boot}/${namespace.replace(/\D+/g, '') || namespace}`;
}

function tryRead(read: () => string): string | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** Writes to stderr, which may be a pipe that nobody reads any more. */
function complain(text: string): void {
  const ignore = () => undefined;
  process.stderr.on('error', ignore);
  process.stderr.write(`${text}\n`);
}

/**
 * An error that nobody caught in this rank ends the whole job: prints the stack with the rank, tells the launcher, exits with 1.
 * Returns the function that takes this back.
 */
export function abortOnUncaught(job: Job): () => void {
  let ending = false;
  const handler = (error: unknown, origin: NodeJS.UncaughtExceptionOrigin) => {
    if (ending) return;
    ending = true;
    const stack = error instanceof Error ? (error.stack ?? String(error)) : String(error);
    const what = origin === 'unhandledRejection' ? 'unhandled rejection' : 'uncaught exception';
    complain(`multirail: rank ${job.rank} of ${job.size} (pid ${process.pid}): ${what}:\n${stack}`);
    const exit = () => process.exit(1);
    if (job.oob === undefined) exit();
    else {
      // The launcher also sees the exit code: the message is not waited for very long.
      setTimeout(exit, 500);
      job.oob.abort(1, stack.split('\n', 1)[0], stack).then(exit, exit);
    }
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
    complain(`multirail: rank ${job.rank} of ${job.size} (pid ${process.pid}): ${text}; exiting`);
    process.exit(1);
  };
  if (job.oob?.lost !== undefined) leave(job.oob.lost);
  job.oob?.on('launcherLost', leave);
}
