// What system tests share: real processes of the real code, bundled per test file (bundle.mjs).
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundle } from './bundle.mjs';
import { isAlive } from './is-alive.mjs';

const FIXTURES = fileURLToPath(new URL('../system/fixtures/', import.meta.url));

export interface BuiltCode {
  folder: string;
  /** The `multirail` command as a JavaScript file. */
  cli: string;
  /** A fixture by its file name, bundled with the code that it imports. */
  fixture(name: string): string;
  dispose(): void;
}

/** Bundles the command line and these fixtures (file names in test/system/fixtures). */
export async function buildCode(fixtures: readonly string[]): Promise<BuiltCode> {
  const { folder, pathOf, dispose } = await bundle(fixtures.map((file) => join(FIXTURES, file)));
  return { folder, cli: pathOf('cli'), fixture: pathOf, dispose };
}

export interface Ran {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

export interface Running {
  child: ChildProcess;
  /** All output so far. */
  output(): { stdout: string; stderr: string };
  /** Resolves with the match once the pattern is in stdout or stderr; rejects when the process ends without it. */
  until(pattern: RegExp): Promise<RegExpExecArray>;
  /** Resolves when the process has ended and its output is closed. */
  ended: Promise<Ran>;
}

/** Starts a Node process. It is killed when the time is up, so that no test leaves one behind. */
export function startNode(
  args: readonly string[],
  options: { input?: string; env?: Record<string, string>; timeoutMs?: number; program?: string } = {},
): Running {
  const child = spawn(options.program ?? process.execPath, args, {
    env: { ...process.env, ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  const watchers = new Set<() => void>();
  const changed = () => {
    for (const watcher of [...watchers]) watcher();
  };
  child.stdout.setEncoding('utf8').on('data', (text) => {
    stdout += text;
    changed();
  });
  child.stderr.setEncoding('utf8').on('data', (text) => {
    stderr += text;
    changed();
  });
  // A program may exit without reading its input.
  child.stdin.on('error', () => undefined);
  if (options.input !== undefined) child.stdin.end(options.input);
  const timer = setTimeout(() => child.kill('SIGKILL'), options.timeoutMs ?? 30_000);
  let isOver = false;
  const ended = new Promise<Ran>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      isOver = true;
      changed();
      resolve({ code, signal, stdout, stderr });
    });
  });
  const until = (pattern: RegExp) =>
    new Promise<RegExpExecArray>((resolve, reject) => {
      const look = () => {
        const match = pattern.exec(stdout) ?? pattern.exec(stderr);
        if (match === null && !isOver) return;
        watchers.delete(look);
        if (match === null) reject(new Error(`the process ended without ${pattern}:\n${stdout}\n${stderr}`));
        else resolve(match);
      };
      watchers.add(look);
      look();
    });
  return { child, output: () => ({ stdout, stderr }), until, ended };
}

export { isAlive };

/** Waits until none of these processes exists; throws with those that still do after the bound. */
export async function untilGone(pids: readonly number[], timeoutMs = 15_000): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const alive = pids.filter(isAlive);
    if (alive.length === 0) return;
    if (performance.now() > deadline) throw new Error(`processes ${alive.join(', ')} are still there`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
