// A job in the namespaces of a lab, seen from outside: its processes, its output, and the local socket over which its ranks speak, which
// no fault of the lab reaches. Imports the lab, lab-launch (types), lab-protocol, node: modules.
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Lab, sleep } from '../../tools/lab/lab.ts';
import type { LaunchSpec } from './launch.ts';
import { lineSplitter, nowMs } from './protocol.ts';

const OUTPUT_KEPT_CHARS = 200_000;
const LAST_WORDS_CHARS = 3000;
const END_TIMEOUT_MS = 45_000;
const POLL_MS = 2;

/** A program of this folder, bundled beside the one that runs. */
export const program = (name: string): string => join(fileURLToPath(new URL('.', import.meta.url)), `${name}.mjs`);

/** What a job keeps of one of its ranks. */
export interface RankEar {
  pid: number;
  socket: Socket | undefined;
  /** Called with what the rank says, its first word (`hello`) included. */
  hear(message: unknown): void;
}

export interface SpawnJobOptions {
  lab: Lab;
  /** Node of each rank. */
  nodes: readonly number[];
  /** Name of the ranks' program. */
  program: string;
  /** Its arguments, given the path of the socket. */
  args(control: string): string[];
  mca: Record<string, string>;
  nodeArgs?: string[];
  /** It has a session of its own: signals of the terminal do not reach it. */
  detached?: boolean;
}

/** Something went wrong with the job itself: it ended, hung, or never began. */
export class JobError extends Error {}

export interface SpawnedJob {
  child: ChildProcess;
  folder: string;
  server: Server;
}

/** The socket over which ranks speak, in a folder of its own. */
export async function openControl(): Promise<{ folder: string; control: string; server: Server }> {
  const folder = mkdtempSync(join(tmpdir(), `multirail-bench-${process.pid}-`));
  const control = join(folder, 'control');
  const server = createServer();
  server.listen(control);
  await once(server, 'listening');
  return { folder, control, server };
}

export async function spawnJob({
  lab,
  nodes,
  program: name,
  args,
  mca,
  nodeArgs = [],
  detached = false,
}: SpawnJobOptions): Promise<SpawnedJob> {
  const { folder, control, server } = await openControl();
  const isOneNode = nodes.every((node) => node === nodes[0]);
  const launch: LaunchSpec = {
    program: program(name),
    nodeArgs,
    namespaces: nodes.map((node) => (node === nodes[0] ? null : lab.namespace(node))),
    oobListen: isOneNode ? ['127.0.0.1'] : lab.rails.map((_, rail) => lab.address(nodes[0], rail)),
    mca,
    args: args(control),
  };
  const child = lab.spawn(nodes[0], [process.execPath, program('lab-launch'), JSON.stringify(launch)], {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached,
  });
  return { child, folder, server };
}

export class ControlledJob<Ear extends RankEar> {
  readonly ranks: readonly Ear[];
  private readonly child: ChildProcess;
  private readonly folder: string;
  private readonly server: Server;
  private text = '';
  private code: number | undefined;
  private readonly removeFolder = () => rmSync(this.folder, { recursive: true, force: true });

  protected constructor({ child, folder, server }: SpawnedJob, ranks: readonly Ear[]) {
    this.child = child;
    this.folder = folder;
    this.server = server;
    this.ranks = ranks;
    process.once('exit', this.removeFolder);
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.text = (this.text + text).slice(-OUTPUT_KEPT_CHARS);
      });
    }
    child.on('close', (code, signal) => {
      this.code = code ?? (signal === null ? 1 : 128);
    });
    server.on('connection', (socket) => this.accept(socket));
  }

  private accept(socket: Socket): void {
    let ear: Ear | undefined;
    socket.setEncoding('utf8');
    socket.on('error', () => {});
    socket.on(
      'data',
      lineSplitter((line) => {
        const message = JSON.parse(line) as { type: string; rank?: number };
        if (message.type === 'hello' && message.rank !== undefined) {
          ear = this.ranks[message.rank];
          ear.socket = socket;
        }
        ear?.hear(message);
      }),
    );
  }

  /** The last part of what its processes have printed. */
  get output(): string {
    return this.text;
  }

  /** undefined while it runs. */
  get exitCode(): number | undefined {
    return this.code;
  }

  protected tell(rank: number, message: object): void {
    this.ranks[rank].socket?.write(`${JSON.stringify(message)}\n`);
  }

  /** To the launcher. */
  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  /** Waits for a condition; throws when the job ends or the time is up before. */
  async until(what: string, condition: () => boolean, timeoutMs: number): Promise<void> {
    const deadline = nowMs() + timeoutMs;
    while (!condition()) {
      if (this.code !== undefined) throw new JobError(`the job ended (code ${this.code}) before ${what}: ${this.lastWords()}`);
      if (nowMs() > deadline) throw new JobError(`waited ${timeoutMs} ms in vain for ${what}: ${this.lastWords()}`);
      await sleep(POLL_MS);
    }
  }

  lastWords(): string {
    return this.text.trim().slice(-LAST_WORDS_CHARS) || 'no output';
  }

  /** Waits for a job that stops by itself. */
  async ended(timeoutMs = END_TIMEOUT_MS): Promise<void> {
    const deadline = nowMs() + timeoutMs;
    while (this.code === undefined && nowMs() < deadline) await sleep(POLL_MS);
    await this.kill();
  }

  async kill(): Promise<void> {
    if (this.code === undefined) {
      // `ip netns exec` became the launcher; its ranks end when it is gone, and at the latest with the lab.
      for (const { pid } of this.ranks) if (pid > 0) killQuietly(pid);
      this.child.kill('SIGKILL');
      while (this.code === undefined) await sleep(POLL_MS);
    }
    for (const rank of this.ranks) rank.socket?.destroy();
    this.server.close();
    process.off('exit', this.removeFolder);
    this.removeFolder();
  }
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It is gone already.
  }
}
