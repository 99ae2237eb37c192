// Running ip and tc for the lab: whole batches in one process, or one process for many batches, and errors that name the line that failed.
// It imports only Node's modules, so that the lab can be used without the library.
import { type ChildProcessWithoutNullStreams, type ExecFileException, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';

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

/** No command of any of the tools: each refuses it, and says so with the number of the line, when it is done with the lines before. */
const FENCE = 'fence';

/**
 * One `ip` or `tc` that is given lines as they come: a change takes a fraction of a millisecond, where starting the tool takes several. It
 * is started with the first of them.
 *   IDLE   not started      RUNNING   takes lines      ENDED   it has ended, or has been told to
 */
export class ToolSession {
  private readonly argv: readonly string[];
  private child: ChildProcessWithoutNullStreams | undefined;
  private lineCount = 0;
  private said = '';
  private why: string | undefined;
  private waiting: (() => void) | undefined;

  constructor(tool: 'ip' | 'tc', namespace: string) {
    // Without -force it would end with the first fence.
    this.argv = [tool, '-n', namespace, '-force', '-batch', '-'];
  }

  /** Resolves when the kernel has done all the lines. Throws, naming the first line that was refused; the others are done. One call at a time. */
  async run(lines: readonly string[]): Promise<void> {
    if (this.why !== undefined) throw this.error(this.why);
    const child = this.start();
    const first = this.lineCount + 1;
    this.lineCount += lines.length + 1;
    this.said = '';
    const fenced = new RegExp(`Command failed -:${this.lineCount}\\n`);
    const timer = setTimeout(() => this.end(`did not answer within ${TOOL_TIMEOUT_MS} ms`), TOOL_TIMEOUT_MS);
    child.stdin.write(`${[...lines, FENCE].join('\n')}\n`);
    while (this.why === undefined && !fenced.test(this.said)) {
      await new Promise<void>((resolve) => {
        this.waiting = resolve;
      });
    }
    clearTimeout(timer);
    if (this.why !== undefined) throw this.error(this.why);
    const [, reason, number] = /([\s\S]*?)Command failed -:(\d+)\n/.exec(this.said) as RegExpExecArray;
    if (Number(number) < this.lineCount) throw this.error(reason.trim(), lines[Number(number) - first]);
  }

  /** Ends the tool and returns when it has ended. May be called again. */
  async end(why = 'has been ended'): Promise<void> {
    this.why ??= why;
    const { child } = this;
    if (child !== undefined && child.exitCode === null && child.signalCode === null) {
      const closed = once(child, 'close');
      child.kill('SIGKILL');
      await closed;
    }
    this.waiting?.();
  }

  private start(): ChildProcessWithoutNullStreams {
    if (this.child !== undefined) return this.child;
    const child = spawn(this.argv[0], this.argv.slice(1), { stdio: 'pipe' });
    this.child = child;
    const ended = (why: string) => {
      this.why ??= why;
      this.waiting?.();
    };
    child.on('error', (error) => ended(`cannot run: ${error.message}`));
    child.on('close', (code, signal) => ended(`ended with ${signal ?? code}`));
    child.stdin.on('error', () => undefined);
    child.stdout.resume();
    child.stderr.setEncoding('utf8').on('data', (part: string) => {
      this.said += part;
      this.waiting?.();
    });
    return child;
  }

  private error(why: string, line?: string): LabError {
    return new LabError(why, `${this.argv.join(' ')}${line === undefined ? '' : `: ${line}`}`);
  }
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
