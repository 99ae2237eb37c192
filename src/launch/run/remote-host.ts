// Ranks on another host, through an agent there (agent.ts) that a command such as ssh reaches.
import { type ChildProcess, spawn } from 'node:child_process';
import { PassThrough, Writable } from 'node:stream';
import { MultirailError } from '../../errors.ts';
import { lineOf, readLines } from '../oob/lines.ts';
import { AGENT_VERSION, type FromAgent, type ToAgent } from './agent-wire.ts';
import type { RankChild, RankEnd, RankSpec } from './rank-child.ts';

/** How long a host may take to answer. */
const HELLO_WAIT_MS = 30_000;
const INPUT_CHUNK_BYTES = 48 * 1024;

export interface RemoteOptions {
  host: string;
  /** Words of the command that reaches a host: it gets the host and one more word, a command for a shell there. */
  agentCommand: readonly string[];
  /** What runs there: Node and the program of this command line. */
  node: string;
  program: string;
  /** Lines that the connection or the host's shell prints. */
  log: (text: string) => void;
}

/** One word for a shell of POSIX. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

export class RemoteHost {
  private readonly options: RemoteOptions;
  private readonly connection: ChildProcess;
  private readonly ranks = new Map<number, RemoteRank>();
  private readonly said: string[] = [];
  private hello: ((error?: MultirailError) => void) | undefined;
  private gone: string | undefined;

  private constructor(options: RemoteOptions) {
    this.options = options;
    const [command, ...args] = options.agentCommand;
    const there = `exec ${quoted(options.node)} ${quoted(options.program)} agent`;
    // A session of its own, so that Ctrl-C goes to the launcher, which passes it on to the ranks.
    this.connection = spawn(command, [...args, options.host, there], { stdio: ['pipe', 'pipe', 'pipe'], detached: true });
    const { stdin, stdout, stderr } = this.connection;
    stdin?.on('error', () => undefined);
    if (stdout !== null)
      readLines<FromAgent>(
        stdout,
        (message) => this.take(message),
        (line) => this.note(line),
      );
    if (stderr !== null)
      readLines<never>(
        stderr,
        () => undefined,
        (line) => this.note(line),
      );
    this.connection.on('error', (error) => this.lose(error.message));
    this.connection.on('close', (code, signal) => this.lose(`${command} ended ${signal === null ? `with code ${code}` : `by ${signal}`}`));
  }

  /** Resolves once the agent there has answered; rejects with ERR_LAUNCH, and what the command printed. */
  static async open(options: RemoteOptions): Promise<RemoteHost> {
    const host = new RemoteHost(options);
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve, reject) => {
      host.hello = (error) => (error === undefined ? resolve() : reject(error));
      timer = setTimeout(() => host.lose(`no answer within ${HELLO_WAIT_MS} ms`), HELLO_WAIT_MS);
    }).finally(() => clearTimeout(timer));
    return host;
  }

  /** There is no connection any more. */
  get isGone(): boolean {
    return this.gone !== undefined;
  }

  /** Starts a rank there. */
  async start(spec: RankSpec): Promise<RankChild> {
    const { rank, command, cwd, secret, stdin } = spec;
    const env: Record<string, string> = {};
    for (const [name, value] of Object.entries(spec.env)) if (value !== undefined) env[name] = value;
    const child = new RemoteRank(this.options.host, stdin === 'pipe', (message) => this.say({ ...message, rank }));
    this.ranks.set(rank, child);
    const hasInput = stdin === 'pipe';
    this.say({
      do: 'start',
      rank,
      command: [...command],
      cwd: cwd ?? process.cwd(),
      env,
      secret: Buffer.from(secret).toString('base64'),
      hasInput,
    });
    if (this.gone !== undefined) child.fail(this.gone);
    await child.started;
    return child;
  }

  /** The agent kills what is left, and ends. */
  close(): void {
    this.connection.stdin?.end();
    const timer = setTimeout(() => this.connection.kill('SIGKILL'), 3000);
    timer.unref();
    this.connection.once('close', () => clearTimeout(timer));
  }

  private say(message: ToAgent): void {
    if (this.gone === undefined) this.connection.stdin?.write(lineOf(message));
  }

  private note(line: string): void {
    if (this.said.length < 5) this.said.push(line);
    this.options.log(`${this.options.host}: ${line}`);
  }

  private take(message: FromAgent): void {
    if (message.is === 'hello') {
      const error =
        message.version === AGENT_VERSION
          ? undefined
          : new MultirailError(
              'ERR_LAUNCH',
              `host ${this.options.host} has another version of multirail at ${this.options.program}: install the version of this host there`,
            );
      this.hello?.(error);
      this.hello = undefined;
      return;
    }
    const rank = this.ranks.get(message.rank);
    if (rank === undefined) return;
    if (message.is === 'output') {
      const stream = message.fd === 1 ? rank.stdout : rank.stderr;
      if (stream.write(Buffer.from(message.data, 'base64'))) return;
      const { stdout } = this.connection;
      stdout?.pause();
      stream.once('drain', () => stdout?.resume());
    } else rank.take(message);
  }

  /** The connection is over: nothing more is known of the ranks there. Their agent kills them. */
  private lose(text: string): void {
    if (this.gone !== undefined) return;
    this.gone = text;
    const said = this.said.length === 0 ? '' : ` (${this.said.join('; ')})`;
    this.hello?.(
      new MultirailError(
        'ERR_LAUNCH',
        `host ${this.options.host} cannot be reached with "${this.options.agentCommand.join(' ')}": ${text}${said}`,
      ),
    );
    this.hello = undefined;
    for (const rank of this.ranks.values()) rank.fail(`the connection to host ${this.options.host} is lost: ${text}`);
    this.connection.kill('SIGKILL');
  }
}

type Say = (message: { do: 'signal'; signal: NodeJS.Signals } | { do: 'input'; data: string } | { do: 'endInput' }) => void;

class RemoteRank implements RankChild {
  readonly host: string;
  readonly stdin: Writable | null;
  readonly stdout = new PassThrough();
  readonly stderr = new PassThrough();
  readonly started: Promise<void>;
  readonly ended: Promise<RankEnd>;
  readonly closed: Promise<void>;
  pid = 0;
  private readonly say: Say;
  private over = false;
  private onStarted!: (error?: Error) => void;
  private onEnded!: (end: RankEnd) => void;
  private onClosed!: () => void;

  constructor(host: string, hasInput: boolean, say: Say) {
    this.host = host;
    this.say = say;
    this.started = new Promise((resolve, reject) => {
      this.onStarted = (error) => (error === undefined ? resolve() : reject(error));
    });
    this.ended = new Promise((resolve) => {
      this.onEnded = resolve;
    });
    this.closed = new Promise((resolve) => {
      this.onClosed = resolve;
    });
    this.stdin = hasInput ? this.makeInput() : null;
  }

  private makeInput(): Writable {
    return new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        for (let at = 0; at < chunk.length; at += INPUT_CHUNK_BYTES) {
          this.say({ do: 'input', data: chunk.subarray(at, at + INPUT_CHUNK_BYTES).toString('base64') });
        }
        done();
      },
      final: (done) => {
        this.say({ do: 'endInput' });
        done();
      },
    });
  }

  take(message: FromAgent & { is: 'started' | 'failed' | 'ended' | 'closed' }): void {
    if (message.is === 'started') {
      this.pid = message.pid;
      this.onStarted();
    } else if (message.is === 'failed') {
      this.over = true;
      this.onStarted(new Error(message.text));
    } else if (message.is === 'ended') this.end({ code: message.code, signal: message.signal });
    else {
      this.stdout.end();
      this.stderr.end();
      this.onClosed();
    }
  }

  fail(text: string): void {
    this.onStarted(new Error(text));
    this.end({ code: undefined, signal: undefined, lost: text });
    this.stdout.end();
    this.stderr.end();
    this.onClosed();
  }

  private end(end: RankEnd): void {
    if (this.over) return;
    this.over = true;
    this.onEnded(end);
  }

  kill(signal: NodeJS.Signals): void {
    if (!this.over) this.say({ do: 'signal', signal });
  }

  release(): void {
    this.stdout.destroy();
    this.stderr.destroy();
  }
}
