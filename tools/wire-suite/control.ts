// The tester's end of the driver convention: asks the driver, over a TCP connection, a child process, or in the same process.
import { type ChildProcess, spawn } from 'node:child_process';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { MultirailError } from '../../src/errors.ts';
import type { CommandName, Commands } from './convention.ts';

export interface Control {
  run<N extends CommandName>(name: N, args: Commands[N]['in']): Promise<Commands[N]['out']>;
  /** The address of this side that the driver sees, and of the driver as seen from here; loopback when they share a machine. */
  readonly localAddress: string;
  readonly remoteAddress: string;
  close(): Promise<void>;
}

/** How long a driver may take to answer a command. */
const ANSWER_MS_MAX = 10_000;
const END_MS_MAX = 1000;

interface Pending {
  resolve: (answer: never) => void;
  reject: (error: Error) => void;
  timer: NodeJS.Timeout;
}

/** Commands over lines of text. */
class LineControl implements Control {
  readonly localAddress: string;
  readonly remoteAddress: string;
  private readonly output: Writable;
  private readonly end: () => Promise<void>;
  private readonly pending = new Map<number, Pending>();
  private nextId = 1;
  private over: string | undefined;

  constructor(input: Readable, output: Writable, addresses: { local: string; remote: string }, end: () => Promise<void>) {
    this.localAddress = addresses.local;
    this.remoteAddress = addresses.remote;
    this.output = output;
    this.end = end;
    // Whether its end is seen by reading or by writing is a matter of moments.
    const writeFailed = (error: NodeJS.ErrnoException): string =>
      error.code === 'EPIPE' ? 'the driver has ended' : `the driver cannot be written to: ${error.message}`;
    output.on('error', (error) => this.fail(writeFailed(error)));
    input.on('error', () => this.fail('the connection to the driver broke'));
    const lines = createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY });
    lines.on('line', (line) => this.take(line));
    lines.on('close', () => this.fail('the driver has ended'));
  }

  run<N extends CommandName>(name: N, args: Commands[N]['in']): Promise<Commands[N]['out']> {
    if (this.over !== undefined) return Promise.reject(new MultirailError('ERR_INIT', this.over));
    const id = this.nextId++;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.pending.delete(id);
        reject(new MultirailError('ERR_TIMEOUT', `the driver did not answer "${name}" within ${ANSWER_MS_MAX} ms`));
      }, ANSWER_MS_MAX);
      this.pending.set(id, { resolve, reject, timer });
      this.output.write(`${JSON.stringify({ id, do: name, ...args })}\n`);
    });
  }

  /** A driver that goes while nobody waits for it is told at the next command. */
  fail(text: string): void {
    if (this.over !== undefined) return;
    this.over = text;
    for (const { reject, timer } of this.pending.values()) {
      clearTimeout(timer);
      reject(new MultirailError('ERR_INIT', text));
    }
    this.pending.clear();
  }

  async close(): Promise<void> {
    this.fail('the tester has ended');
    await this.end();
  }

  private take(line: string): void {
    // A driver in the making prints other things too.
    if (!line.startsWith('{')) return;
    let answer: { id?: number; failed?: string };
    try {
      answer = JSON.parse(line);
    } catch {
      this.fail(`the driver answered with a line that is not JSON: ${line.slice(0, 200)}`);
      return;
    }
    const pending = this.pending.get(answer.id as number);
    if (pending === undefined) {
      if (answer.failed !== undefined) this.fail(`the driver says: ${answer.failed}`);
      return;
    }
    this.pending.delete(answer.id as number);
    clearTimeout(pending.timer);
    if (answer.failed !== undefined) pending.reject(new MultirailError('ERR_ARG', `the driver says: ${answer.failed}`));
    else pending.resolve(answer as never);
  }
}

/** To a driver that listens. */
export function connectControl(host: string, port: number): Promise<Control> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, noDelay: true });
    const refused = (error: Error) =>
      reject(new MultirailError('ERR_INIT', `no driver answers at ${host}:${port}: ${error.message}`, { cause: error }));
    socket.once('error', refused);
    socket.once('connect', () => {
      socket.off('error', refused);
      const addresses = { local: socket.localAddress ?? '127.0.0.1', remote: socket.remoteAddress ?? host };
      resolve(
        new LineControl(socket, socket, addresses, async () => {
          socket.destroy();
        }),
      );
    });
  });
}

const LOOPBACK = { local: '127.0.0.1', remote: '127.0.0.1' };

/** Starts a driver on this machine and speaks over its standard input and output. */
export function spawnControl(command: string, args: readonly string[]): Control {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const control = new LineControl(child.stdout, child.stdin, LOOPBACK, () => ended(child));
  child.on('error', (error) => control.fail(`the driver could not be started: ${error.message}`));
  return control;
}

/** The end of its input is its word to end. */
function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = setTimeout(() => child.kill('SIGKILL'), END_MS_MAX);
    child.once('exit', () => {
      clearTimeout(timer);
      resolve();
    });
    child.stdin?.end();
  });
}

/** A driver in this process. */
export function localControl(driver: { run: Control['run']; stop(): Promise<void> }): Control {
  return {
    run: (name, args) => driver.run(name, args),
    localAddress: LOOPBACK.local,
    remoteAddress: LOOPBACK.remote,
    close: () => driver.stop(),
  };
}
