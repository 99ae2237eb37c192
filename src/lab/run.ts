// Running ip and tc for the lab: whole batches in one process, and errors that name the line that failed.
// Imports node: modules only, so that the lab can be used without the library.
import { type ExecFileException, execFile } from 'node:child_process';

/** Longest time that one ip or tc process may take. They need milliseconds; a minute means a wedged kernel. */
const TOOL_TIMEOUT_MS = 60_000;
const TOOL_OUTPUT_LIMIT_BYTES = 16 << 20;

/** What the lab throws. `command` is the ip or tc command that failed, where there is one. */
export class LabError extends Error {
  readonly command: string | undefined;

  constructor(message: string, command?: string) {
    super(command === undefined ? message : `${message} (${command})`);
    this.name = 'LabError';
    this.command = command;
  }
}

export interface ExecResult {
  /** Exit code; undefined when a signal ended the process. */
  code: number | undefined;
  signal: string | undefined;
  stdout: string;
  stderr: string;
}

/** Runs one command to its end. A non-zero exit is a result; only a command that cannot start, or runs too long, throws. */
export function run(
  argv: readonly string[],
  options: { input?: string; timeoutMs?: number; env?: NodeJS.ProcessEnv } = {},
): Promise<ExecResult> {
  const timeoutMs = options.timeoutMs ?? TOOL_TIMEOUT_MS;
  return new Promise((resolve, reject) => {
    const child = execFile(
      argv[0],
      argv.slice(1),
      { timeout: timeoutMs, killSignal: 'SIGKILL', maxBuffer: TOOL_OUTPUT_LIMIT_BYTES, ...(options.env && { env: options.env }) },
      (error: ExecFileException | null, stdout, stderr) => {
        const command = argv.join(' ');
        if (!error) resolve({ code: 0, signal: undefined, stdout, stderr });
        else if (typeof error.code === 'string') reject(new LabError(`cannot run: ${error.code}`, command));
        else if (error.killed) reject(new LabError(`did not end within ${timeoutMs} ms`, command));
        else resolve({ code: error.code ?? undefined, signal: error.signal ?? undefined, stdout, stderr });
      },
    );
    // A command that ends without reading its input closes the pipe early: its exit code says enough.
    child.stdin?.on('error', () => {});
    child.stdin?.end(options.input ?? '');
  });
}

/** Runs one command that must succeed, and returns what it printed. */
export async function runOk(argv: readonly string[]): Promise<string> {
  const { code, signal, stdout, stderr } = await run(argv);
  if (code !== 0) throw new LabError(`exit ${code ?? signal}: ${stderr.trim()}`, argv.join(' '));
  return stdout;
}

/**
 * Runs lines of `ip` or `tc` as one batch, in `namespace` or in this process's own. Stops at the first line that fails.
 * One process per batch and not one per line: that is what makes a fault a matter of milliseconds.
 */
export async function runBatch(
  tool: 'ip' | 'ip -4' | 'ip -6' | 'tc',
  namespace: string | undefined,
  lines: readonly string[],
): Promise<void> {
  if (lines.length === 0) return;
  const argv = [...tool.split(' '), ...(namespace === undefined ? [] : ['-n', namespace]), '-batch', '-'];
  const { code, signal, stderr } = await run(argv, { input: `${lines.join('\n')}\n` });
  if (code === 0) return;
  const failedLine = /Command failed -:(\d+)/.exec(stderr);
  const reason = stderr.replace(/Command failed -:\d+\s*/g, '').trim();
  throw new LabError(
    `exit ${code ?? signal}: ${reason}`,
    `${argv.join(' ')}: ${failedLine ? lines[Number(failedLine[1]) - 1] : lines.join('; ')}`,
  );
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Polls until `condition` holds. Throws, naming `what`, when it does not within `timeoutMs`. */
export async function waitUntil(what: string, condition: () => boolean | Promise<boolean>, timeoutMs = 15_000, pollMs = 5): Promise<void> {
  const endMs = performance.now() + timeoutMs;
  for (;;) {
    if (await condition()) return;
    if (performance.now() >= endMs) throw new LabError(`waited ${timeoutMs} ms in vain: ${what}`);
    await sleep(pollMs);
  }
}
