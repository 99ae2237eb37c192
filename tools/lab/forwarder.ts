// The process that passes on the frames of an impaired rail (native/impair): it runs in the wire's namespace while the rail is impaired,
// and takes its orders over a pipe. Nothing else of the lab needs a binary.
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { MultirailError } from '../../src/errors.ts';
import { binaryIn, nativeFolder, otherRuntime } from '../../src/native/load.ts';

/** The ABI of native/impair/src/addon.cc. */
const ABI = 1;
const ANSWER_TIMEOUT_MS = 20_000;
const STDERR_CHARS_MAX = 2000;

/** What the process runs. It stays in `forward` until it is told to end, or the pipe is closed. */
const PROGRAM = `
const addon = require(process.argv[1]);
if (addon.abi !== ${ABI}) throw new Error(process.argv[1] + ' has interface ' + addon.abi + ', not ${ABI}');
addon.forward(JSON.parse(process.argv[2]), Number(process.argv[3]));
`;

/** What happens to what enters by one port. Percentages are of frames, 0 to 100. */
export interface ForwardSettings {
  lossPercent: number;
  delayMs: number;
  /** The delay swings by chance between delayMs - spreadMs and delayMs + spreadMs. */
  spreadMs: number;
  reorderPercent: number;
  /** How much longer those are held. */
  holdMs: number;
  flipPercent: number;
}

/** What a port of a forwarder has seen since its start, in frames. */
export interface ForwarderPort {
  /** Entered here; of these lost, flipped (and dropped, where no checksum would tell) and held back on purpose. */
  readonly taken: number;
  readonly lost: number;
  readonly flipped: number;
  readonly held: number;
  /** Left here; refused by the queue of the port, since it is full or the port is down. */
  readonly sent: number;
  readonly refused: number;
  /** Entered here and dropped against all intentions: no buffer was free, or the forwarder was too slow. */
  readonly noRoom: number;
  readonly missed: number;
}

/** The binary, or why there is none, as a sentence. `native` is the package's folder of that name. */
export function findForwarder(native = nativeFolder()): { path: string } | { missing: string } {
  const other = otherRuntime(process.versions);
  if (other !== undefined) return { missing: other };
  if (native === undefined) return { missing: 'the package has no folder `native`' };
  const found = binaryIn(join(native, 'impair'));
  return 'path' in found ? found : { missing: `there is no binary of it: ${found.missing}` };
}

const chance = (percent: number): bigint => (percent >= 100 ? 1n << 32n : BigInt(Math.round((percent / 100) * 2 ** 32)));
const nanoseconds = (ms: number): bigint => BigInt(Math.round(ms * 1e6));

function settingsLine(port: number, settings: ForwardSettings): string {
  const { lossPercent, delayMs, spreadMs, reorderPercent, holdMs, flipPercent } = settings;
  const numbers = [
    chance(lossPercent),
    nanoseconds(delayMs),
    nanoseconds(spreadMs),
    chance(reorderPercent),
    nanoseconds(holdMs),
    chance(flipPercent),
  ];
  return `set ${port} ${numbers.join(' ')}`;
}

/** One forwarder. STARTING until it says that it is ready, READY while it obeys, ENDED. */
export class Forwarder {
  /** The process of the forwarder itself, since `ip netns exec` becomes it. */
  readonly pid: number;
  /** Resolves, and never rejects, when the process has ended, however it did: with why, in words. */
  readonly ended: Promise<string>;
  private readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  private readonly waiting: ((line: string | undefined) => void)[] = [];
  private why: string | undefined;

  private constructor(namespace: string, path: string, ports: readonly string[], seed: number) {
    const argv = ['netns', 'exec', namespace, process.execPath, '-e', PROGRAM, path, JSON.stringify(ports), String(seed)];
    // A session of its own: an interrupt from the terminal is for whoever holds the lab. NODE_OPTIONS are for others too.
    this.child = spawn('ip', argv, { stdio: ['pipe', 'pipe', 'pipe'], detached: true, cwd: '/', env: { PATH: process.env.PATH } });
    this.pid = this.child.pid ?? -1;
    let complaint = '';
    this.child.stderr.setEncoding('utf8').on('data', (part: string) => {
      complaint = (complaint + part).slice(-STDERR_CHARS_MAX);
    });
    this.child.stdin.on('error', () => undefined);
    this.readLines();
    this.ended = new Promise((resolve) => {
      const end = (why: string) => {
        this.why ??= why;
        for (const take of this.waiting.splice(0)) take(undefined);
        resolve(this.why);
      };
      this.child.on('error', (error) => end(`it could not be started: ${error.message}`));
      this.child.on('close', (code, signal) => {
        const said = /^(?:\w*Error.*: )(.*)$/m.exec(complaint)?.[1] ?? complaint.trim();
        end(`it ended with ${signal ?? code}${said === '' ? '' : `: ${said}`}`);
      });
    });
    // Whoever ends without a word closes the pipe, and that ends it.
    this.holdProcess(false);
  }

  /** Whether this process stays for the forwarder: only while it waits for it. */
  private holdProcess(stays: boolean): void {
    const how = stays ? 'ref' : 'unref';
    this.child[how]();
    for (const stream of this.child.stdio) (stream as unknown as Record<typeof how, () => void>)[how]();
  }

  private readLines(): void {
    let text = '';
    this.child.stdout.setEncoding('utf8').on('data', (part: string) => {
      text += part;
      for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
        this.waiting.shift()?.(text.slice(0, end));
        text = text.slice(end + 1);
      }
    });
  }

  /** In the namespace of these interfaces. It takes no frame before on(). ERR_SUPPORT, saying what is missing. */
  static async start(namespace: string, ports: readonly string[], seed: number): Promise<Forwarder> {
    const found = findForwarder();
    if ('missing' in found) throw new MultirailError('ERR_SUPPORT', `the lab's forwarder is needed for this: ${found.missing}`);
    const forwarder = new Forwarder(namespace, found.path, ports, seed);
    const word = await forwarder.answer();
    if (word === 'ready') return forwarder;
    throw new MultirailError('ERR_SUPPORT', `the lab's forwarder does not run here: ${await forwarder.ended}`);
  }

  /** Its ports, by their number in start(). */
  async set(settings: readonly ForwardSettings[]): Promise<void> {
    await Promise.all(settings.map((one, port) => this.order(settingsLine(port, one))));
  }

  on(): Promise<void> {
    return this.order('on');
  }

  async stats(): Promise<ForwarderPort[]> {
    return (JSON.parse(await this.ask('stats')) as { ports: ForwarderPort[] }).ports;
  }

  /** What it holds is sent at once; returns when it has ended. Does not throw. */
  async end(): Promise<void> {
    this.holdProcess(true);
    await this.order('end').catch(() => undefined);
    this.kill();
    await this.ended;
  }

  kill(): void {
    this.child.stdin.destroy();
    this.child.kill('SIGKILL');
  }

  private async order(line: string): Promise<void> {
    const answer = await this.ask(line);
    if (answer !== 'ok') throw new MultirailError('ERR_RAIL', `the lab's forwarder was told "${line}" and says: ${answer}`);
  }

  private async ask(line: string): Promise<string> {
    if (this.why === undefined) this.child.stdin.write(`${line}\n`);
    const answer = await this.answer();
    if (answer === undefined) throw new MultirailError('ERR_RAIL', `the lab's forwarder does not obey: ${await this.ended}`);
    return answer;
  }

  /** The next line that it says; undefined when it has ended without. */
  private async answer(): Promise<string | undefined> {
    if (this.why !== undefined) return undefined;
    const timer = setTimeout(() => {
      this.why ??= `it did not answer within ${ANSWER_TIMEOUT_MS} ms`;
      this.kill();
    }, ANSWER_TIMEOUT_MS);
    try {
      return await new Promise((resolve) => this.waiting.push(resolve));
    } finally {
      clearTimeout(timer);
    }
  }
}
