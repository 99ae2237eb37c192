// Reads the job's secret as it reaches a rank: from the launcher's descriptor, or from a file.
import { closeSync, fstatSync, readFileSync, readSync } from 'node:fs';
import { Socket } from 'node:net';
import { MultirailError } from '../../errors.ts';
import { type Env, has } from '../starters/env.ts';

export const SECRET_BYTES = 32;
const SECRET_BYTES_MIN = 16;
const SECRET_BYTES_MAX = 4096;

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
  return secretOfFile(env);
}

/** The launcher writes the secret before anything else: whoever has the descriptor has it within a moment. */
const SOCKET_WAIT_MS = 3000;

/**
 * As findSecret(), also where a runtime lets nobody read an inherited descriptor as a file. Deno is one: its files have numbers of their own,
 * and only a socket may be made of a descriptor that it was started with.
 */
export async function inheritedSecret(env: Env): Promise<Uint8Array | undefined> {
  const { MULTIRAIL_SECRET_FD: fd, MULTIRAIL_JOB_ID: jobId } = env;
  const secret = findSecret(env);
  if (secret !== undefined || fd === undefined || !/^\d+$/.test(fd) || process.versions.deno === undefined) return secret;
  const read = await readSecretSocket(Number(fd));
  if (read !== undefined && jobId !== undefined) secretsRead.set(jobId, read);
  return read;
}

/** The secret from a socket that is open under this number; undefined when there is none. */
export function readSecretSocket(fd: number): Promise<Uint8Array | undefined> {
  return new Promise((resolve) => {
    const parts: Buffer[] = [];
    let length = 0;
    let socket: Socket;
    try {
      socket = new Socket({ fd, readable: true, writable: false });
    } catch {
      resolve(undefined);
      return;
    }
    const finish = () => {
      clearTimeout(timer);
      socket.destroy();
      resolve(length >= SECRET_BYTES_MIN && length <= SECRET_BYTES_MAX ? Uint8Array.from(Buffer.concat(parts)) : undefined);
    };
    const timer = setTimeout(finish, SOCKET_WAIT_MS);
    socket.on('data', (chunk: Buffer) => {
      parts.push(chunk);
      length += chunk.length;
      if (length > SECRET_BYTES_MAX) finish();
    });
    socket.once('end', finish).once('error', finish);
  });
}

/** The secret that MULTIRAIL_SECRET_FILE names; undefined when it is not set. */
export function secretOfFile(env: Env): Uint8Array | undefined {
  if (!has(env, 'MULTIRAIL_SECRET_FILE')) return undefined;
  let bytes: Uint8Array;
  try {
    bytes = readFileSync(env.MULTIRAIL_SECRET_FILE as string);
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
