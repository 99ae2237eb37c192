// A lab that outlives the command that made it: a process in the background holds it, and obeys commands over a local socket. When the
// keeper is killed, by whatever signal, the lab ends (reaper.ts). There is one question and one answer per connection, a line of JSON each;
// a client that asked to watch gets a further line for each action, until either side closes the connection.
//   NONE   nothing listens at the socket        KEPT   a keeper answers        GONE   the keeper was told to go
import { chmodSync, mkdirSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { MultirailError } from '../../src/errors.ts';
import { describeAction, type LabAction, type LabEvent } from './actions.ts';
import { labUnavailable } from './available.ts';
import { FaultList, type LabChanges, LabDriver, type LabFault } from './faults.ts';
import type { ForwarderPort, Lab, PortCounters } from './lab.ts';
import { labJson, type NamedRail, parseLabJson } from './rails.ts';
import { createLab, type LabSettings, type LabView, viewOf } from './view.ts';

/** Only root gets in. */
const FOLDER = '/run/multirail-lab';
const LINE_BYTES_MAX = 1 << 20;
const ANSWER_TIMEOUT_MS = 90_000;
const WATCHERS_MAX = 64;
/** A watcher that leaves so much unread is let go. */
const WATCHER_BYTES_MAX = 1 << 20;

export type KeeperQuestion = { op: 'status' } | { op: 'view' } | { op: 'act'; action: LabAction } | { op: 'down' };
/** The answer is LabFault[][]; then come actions. */
type WatchQuestion = { op: 'watch' };

export interface LabStatus {
  view: LabView;
  keeperPid: number;
  /** What was done to each rail since it was last as at the start. */
  faults: string[][];
  counters: PortCounters[];
  /** What forwarders have done, by rail and node; null where none runs. */
  forwarders: (ForwarderPort[] | null)[];
}

type Answer = { ok: true; value: unknown } | { ok: false; message: string; isUnsupported?: boolean };

/** ERR_ARG when it is no name. */
export function socketPath(name: string): string {
  if (!/^[a-zA-Z0-9][a-zA-Z0-9_-]{0,31}$/.test(name))
    throw new MultirailError('ERR_ARG', `"${name}" cannot name a lab: letters, digits, - and _ are allowed`);
  return join(FOLDER, `${name}.socket`);
}

function readLine(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    socket.setEncoding('utf8');
    socket.on('data', function take(part: string) {
      text += part;
      const end = text.indexOf('\n');
      if (end < 0 && text.length <= LINE_BYTES_MAX) return;
      socket.off('data', take);
      if (end >= 0) resolve(text.slice(0, end));
      else reject(new MultirailError('ERR_PROTOCOL', 'a line of the lab is too long'));
    });
    socket.on('error', reject);
    socket.on('close', () => reject(new MultirailError('ERR_OOB', 'the lab closed the connection')));
  });
}

// ---------------------------------------------------------------- the keeper

export class Keeper {
  readonly view: LabView;
  /** Resolves once the lab is gone. */
  readonly ended: Promise<void>;
  private readonly lab: Lab;
  private readonly rails: readonly NamedRail[];
  private readonly driver: LabDriver;
  private readonly server: Server;
  private readonly path: string;
  private readonly watchers = new Set<Socket>();
  private end!: () => void;

  private constructor(lab: Lab, rails: readonly NamedRail[], server: Server, path: string) {
    this.lab = lab;
    this.rails = rails;
    this.server = server;
    this.path = path;
    this.view = viewOf(lab, rails);
    this.driver = new LabDriver(lab);
    this.ended = new Promise((resolve) => {
      this.end = resolve;
    });
  }

  /** Builds the lab and listens. ERR_ARG when there is one of that name. */
  static async start(name: string, nodes: number, rails: readonly NamedRail[], settings: LabSettings = {}): Promise<Keeper> {
    const missing = labUnavailable();
    if (missing !== undefined) throw new MultirailError('ERR_SUPPORT', missing);
    const path = socketPath(name);
    mkdirSync(FOLDER, { recursive: true, mode: 0o700 });
    chmodSync(FOLDER, 0o700);
    if (await isKept(name))
      throw new MultirailError('ERR_ARG', `the lab ${name} is up already: multirail lab down takes it down, --name makes another`);
    const server = createServer();
    const lab = await createLab(nodes, rails, settings);
    try {
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject);
        server.listen(path, resolve);
      });
    } catch (cause) {
      await lab.destroy();
      throw new MultirailError('ERR_OOB', `the lab cannot listen at ${path}: ${(cause as Error).message}`, { cause });
    }
    const keeper = new Keeper(lab, rails, server, path);
    server.on('connection', (socket) => void keeper.serve(socket));
    return keeper;
  }

  private async serve(socket: Socket): Promise<void> {
    let answer: Answer;
    let isLast = false;
    try {
      const question = parseLabJson(await readLine(socket)) as KeeperQuestion | WatchQuestion;
      if (question.op === 'watch') {
        await this.driver.inTurn(() => this.admitWatcher(socket));
        return;
      }
      isLast = question.op === 'down';
      answer = { ok: true, value: await this.answer(question) };
    } catch (error) {
      const isUnsupported = error instanceof MultirailError && error.code === 'ERR_SUPPORT';
      const message = error instanceof Error ? error.message : String(error);
      answer = isUnsupported ? { ok: false, message: message.slice('ERR_SUPPORT: '.length), isUnsupported } : { ok: false, message };
    }
    socket.on('error', () => undefined);
    await new Promise<void>((resolve) => {
      socket.once('close', () => resolve());
      socket.end(`${labJson(answer)}\n`, () => resolve());
    });
    if (isLast) this.end();
  }

  private async answer(question: KeeperQuestion): Promise<unknown> {
    switch (question.op) {
      case 'view':
        return this.view;
      case 'status':
        return await this.driver.inTurn(() => this.status());
      case 'act':
        await this.driver.apply(question.action);
        return null;
      case 'down':
        await this.driver.inTurn(() => this.close());
        return null;
    }
  }

  private async status(): Promise<LabStatus> {
    const faults = this.driver.faults.all().map((list) => list.map((fault) => describeAction(fault, this.rails)));
    const stats = await Promise.all(this.rails.map((_, rail) => this.lab.forwarderStats(rail)));
    const forwarders = stats.map((ports) => ports ?? null);
    return { view: this.view, keeperPid: process.pid, faults, counters: await this.lab.counters(), forwarders };
  }

  /** In its turn: between the faults that it is told first, and the actions that it is told later, there is none. */
  private admitWatcher(socket: Socket): void {
    if (this.watchers.size >= WATCHERS_MAX)
      throw new MultirailError('ERR_OOB', `${WATCHERS_MAX} others already watch this lab, and no more can: end one of them first`);
    const stop = this.driver.listen((event) => {
      if (socket.writableLength > WATCHER_BYTES_MAX) socket.destroy();
      else socket.write(`${labJson(event)}\n`);
    });
    this.watchers.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      stop();
      this.watchers.delete(socket);
    });
    socket.resume();
    socket.write(`${labJson({ ok: true, value: this.driver.faults.all() } satisfies Answer)}\n`);
  }

  /** Takes the lab down. */
  async close(): Promise<void> {
    this.server.close();
    rmSync(this.path, { force: true });
    for (const socket of this.watchers) socket.destroy();
    await this.lab.destroy();
  }
}

// ---------------------------------------------------------------- those who ask

function open(path: string): Promise<Socket | undefined> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once('connect', () => resolve(socket));
    socket.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'ECONNREFUSED') resolve(undefined);
      else
        reject(
          new MultirailError(
            error.code === 'EACCES' ? 'ERR_SUPPORT' : 'ERR_OOB',
            `the lab cannot be reached at ${path}: ${error.message}`,
            { cause: error },
          ),
        );
    });
  });
}

/** Whether a keeper answers. What a killed one left at the place of its socket is removed. */
async function isKept(name: string): Promise<boolean> {
  const socket = await open(socketPath(name));
  socket?.destroy();
  if (socket === undefined) rmSync(socketPath(name), { force: true });
  return socket !== undefined;
}

async function connectTo(name: string): Promise<Socket> {
  const socket = await open(socketPath(name));
  if (socket === undefined) throw new MultirailError('ERR_ARG', `no lab ${name} is up: multirail lab up --rails 1gbit,1gbit makes one`);
  return socket;
}

function valueIn<T>(line: string): T {
  const answer = parseLabJson(line) as Answer;
  if (!answer.ok) throw new MultirailError(answer.isUnsupported ? 'ERR_SUPPORT' : 'ERR_RAIL', answer.message);
  return answer.value as T;
}

/** Asks the keeper of that lab. ERR_ARG when there is none; its own errors come through. */
export async function askKeeper<T>(name: string, question: KeeperQuestion): Promise<T> {
  const socket = await connectTo(name);
  socket.setTimeout(ANSWER_TIMEOUT_MS, () => socket.destroy(new Error(`no answer within ${ANSWER_TIMEOUT_MS} ms`)));
  try {
    const line = readLine(socket);
    socket.write(`${labJson(question)}\n`);
    return valueIn<T>(await line);
  } finally {
    socket.destroy();
  }
}

/** Follows what is done to a kept lab, by whomever. */
export class KeeperWatch implements LabChanges {
  readonly faults: FaultList;
  private readonly socket: Socket;
  private readonly listeners = new Set<(event: LabEvent) => void>();

  private constructor(socket: Socket, faults: readonly (readonly LabFault[])[]) {
    this.socket = socket;
    this.faults = new FaultList(faults);
  }

  /** Errors as askKeeper(). */
  static async open(name: string): Promise<KeeperWatch> {
    const socket = await connectTo(name);
    socket.on('error', () => undefined);
    const reader = createInterface({ input: socket });
    socket.on('close', () => reader.close());
    const lines = reader[Symbol.asyncIterator]();
    socket.write(`${labJson({ op: 'watch' } satisfies WatchQuestion)}\n`);
    const first = await lines.next();
    if (first.done) throw new MultirailError('ERR_OOB', `the lab ${name} closed the connection`);
    const watch = new KeeperWatch(socket, valueIn<LabFault[][]>(first.value));
    watch.follow(lines).catch(() => socket.destroy());
    return watch;
  }

  get isGone(): boolean {
    return this.socket.destroyed;
  }

  listen(listener: (event: LabEvent) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  close(): void {
    this.socket.destroy();
  }

  private async follow(lines: AsyncIterator<string>): Promise<void> {
    for (let line = await lines.next(); !line.done; line = await lines.next()) {
      const event = parseLabJson(line.value) as LabEvent;
      this.faults.note(event);
      for (const listener of [...this.listeners]) listener(event);
    }
  }
}
