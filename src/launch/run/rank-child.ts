// One rank's process as the launcher sees it, here or on another host, and its implementation for this host.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';

/** The descriptor by which a rank gets the job's secret. */
export const SECRET_FD = 3;

export interface RankEnd {
  code: number | undefined;
  signal: NodeJS.Signals | undefined;
  /** Why nothing is known of its end. */
  lost?: string;
}

/** A process and the group that it leads. */
export interface RankChild {
  readonly pid: number;
  /** Undefined = this one. */
  readonly host: string | undefined;
  readonly stdin: Writable | null;
  readonly stdout: Readable | null;
  readonly stderr: Readable | null;
  /** Its process has ended; whatever it left in its group is killed by then. */
  readonly ended: Promise<RankEnd>;
  /** Its output is all there. */
  readonly closed: Promise<void>;
  /** To the whole group; nothing happens when it is gone. */
  kill(signal: NodeJS.Signals): void;
  /** Lets go of its streams. */
  release(): void;
}

export type StdioMode = 'ignore' | 'inherit' | 'pipe';

export interface RankSpec {
  rank: number;
  command: readonly string[];
  cwd: string | undefined;
  env: Readonly<Record<string, string | undefined>>;
  secret: Uint8Array;
  stdin: StdioMode;
  stdout: StdioMode;
  stderr: StdioMode;
}

export class LocalRank implements RankChild {
  readonly host = undefined;
  readonly ended: Promise<RankEnd>;
  readonly closed: Promise<void>;
  /** Undefined when its process has ended and its streams are closed: a job under --respawn sees many of them come and go. */
  private child: ChildProcess | undefined;
  /** 0 where it could not be started. */
  readonly pid: number;
  private over = false;

  private constructor(spec: RankSpec, onError: (error: Error) => void) {
    const [program, ...args] = spec.command;
    const child = spawn(program, args, {
      ...(spec.cwd === undefined ? {} : { cwd: spec.cwd }),
      env: { ...spec.env },
      stdio: [spec.stdin, spec.stdout, spec.stderr, 'pipe'],
      // A process group of its own: what a rank starts is ended with it.
      detached: true,
    });
    this.child = child;
    this.pid = child.pid ?? 0;
    this.closed = new Promise((resolve) =>
      child.once('close', () => {
        this.child = undefined;
        resolve();
      }),
    );
    this.ended = new Promise((resolve) =>
      child.once('exit', (code, signal) => {
        this.over = true;
        // At once, while the group's number cannot have been given to another one.
        killGroup(this.pid, 'SIGKILL');
        resolve({ code: code ?? undefined, signal: signal ?? undefined });
      }),
    );
    // The secret never shows in an argument list or an environment; the kernel keeps it until the rank reads it.
    // A child that could not be started for want of descriptors has no streams at all.
    const secretPipe = (child.stdio as typeof child.stdio | undefined)?.[SECRET_FD] as Writable | null | undefined;
    secretPipe?.on('error', () => undefined);
    secretPipe?.end(spec.secret);
    child.on('error', onError);
  }

  /** Resolves once it runs; rejects with the system's error when it cannot be started. */
  static async start(spec: RankSpec, onError: (error: Error) => void): Promise<LocalRank> {
    let started = false;
    const rank = new LocalRank(spec, (error) => {
      if (started) onError(error);
    });
    if (rank.child !== undefined) await once(rank.child, 'spawn');
    started = true;
    return rank;
  }

  get stdin(): Writable | null {
    return this.child?.stdin ?? null;
  }
  get stdout(): Readable | null {
    return this.child?.stdout ?? null;
  }
  get stderr(): Readable | null {
    return this.child?.stderr ?? null;
  }

  kill(signal: NodeJS.Signals): void {
    if (!this.over) killGroup(this.pid, signal);
  }

  release(): void {
    for (const stream of (this.child?.stdio as ChildProcess['stdio'] | undefined) ?? []) stream?.destroy();
  }
}

function killGroup(groupId: number, signal: NodeJS.Signals): void {
  if (groupId <= 1) return;
  try {
    process.kill(-groupId, signal);
  } catch {
    // The whole group is gone already.
  }
}

/** What a user can do where the system has no more of something. */
export function hintOf(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'EMFILE') return '; the launcher needs about five open files for each rank: raise its limit (ulimit -n)';
  if (code === 'ENFILE') return '; the system has no more open files (fs.file-max)';
  if (code === 'EAGAIN') return '; this user, or this container, may not have more processes (ulimit -u, pids.max)';
  return '';
}
