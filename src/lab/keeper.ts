// A lab that outlives the command that made it: a process in the background holds it, and does what commands ask for over a local socket.
// Whoever kills the keeper, by whatever signal, ends the lab (reaper.ts). One question and one answer per connection, a line of JSON each.
//   NONE   nothing listens at the socket        KEPT   a keeper answers        GONE   the keeper was told to go
// Imports errors, actions, lab, rails, view, node:*.
import { chmodSync, mkdirSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { MultirailError } from '../errors.ts';
import { applyAction, describeAction, type LabAction } from './actions.ts';
import { labUnavailable } from './available.ts';
import type { Lab, PortCounters } from './lab.ts';
import type { NamedRail } from './rails.ts';
import { createLab, type LabView, viewOf } from './view.ts';

/** Only root gets in. */
const FOLDER = '/run/multirail-lab';
const LINE_BYTES_MAX = 1 << 20;
const ANSWER_TIMEOUT_MS = 90_000;

export type KeeperQuestion = { op: 'status' } | { op: 'view' } | { op: 'act'; action: LabAction } | { op: 'down' };

export interface LabStatus {
  view: LabView;
  keeperPid: number;
  /** What was done to each rail since it was last as at the start. */
  faults: string[][];
  counters: PortCounters[];
}

type Answer = { ok: true; value: unknown } | { ok: false; message: string };

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
    socket.on('data', (part: string) => {
      text += part;
      const end = text.indexOf('\n');
      if (end >= 0) resolve(text.slice(0, end));
      else if (text.length > LINE_BYTES_MAX) reject(new MultirailError('ERR_PROTOCOL', 'a line of the lab is too long'));
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
  private readonly server: Server;
  private readonly path: string;
  private readonly faults: string[][];
  private end!: () => void;
  /** One after the other: the kernel's answer to one may be what the next builds on. */
  private last: Promise<unknown> = Promise.resolve();

  private constructor(lab: Lab, rails: readonly NamedRail[], server: Server, path: string) {
    this.lab = lab;
    this.rails = rails;
    this.server = server;
    this.path = path;
    this.view = viewOf(lab, rails);
    this.faults = rails.map(() => []);
    this.ended = new Promise((resolve) => {
      this.end = resolve;
    });
  }

  /** Builds the lab and listens. ERR_ARG when there is one of that name. */
  static async start(name: string, nodes: number, rails: readonly NamedRail[]): Promise<Keeper> {
    const missing = labUnavailable();
    if (missing !== undefined) throw new MultirailError('ERR_SUPPORT', missing);
    const path = socketPath(name);
    mkdirSync(FOLDER, { recursive: true, mode: 0o700 });
    chmodSync(FOLDER, 0o700);
    if (await isKept(name))
      throw new MultirailError('ERR_ARG', `the lab ${name} is up already: multirail lab down takes it down, --name makes another`);
    const server = createServer();
    const lab = await createLab(nodes, rails);
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
      const question = JSON.parse(await readLine(socket)) as KeeperQuestion;
      isLast = question.op === 'down';
      const turn = this.last.then(() => this.answer(question));
      this.last = turn.catch(() => undefined);
      answer = { ok: true, value: await turn };
    } catch (error) {
      answer = { ok: false, message: error instanceof Error ? error.message : String(error) };
    }
    socket.on('error', () => undefined);
    await new Promise<void>((resolve) => {
      socket.once('close', () => resolve());
      socket.end(`${JSON.stringify(answer)}\n`, () => resolve());
    });
    if (isLast) this.end();
  }

  private async answer(question: KeeperQuestion): Promise<unknown> {
    switch (question.op) {
      case 'view':
        return this.view;
      case 'status':
        return { view: this.view, keeperPid: process.pid, faults: this.faults, counters: await this.lab.counters() } satisfies LabStatus;
      case 'act':
        await applyAction(this.lab, question.action);
        this.note(question.action);
        return null;
      case 'down':
        await this.close();
        return null;
    }
  }

  private note(action: LabAction): void {
    if (action.kind !== 'restore') {
      const text = describeAction(action, this.rails);
      const list = this.faults[action.rail];
      if (!list.includes(text)) list.push(text);
      return;
    }
    this.faults.forEach((list, rail) => {
      if (action.rail === undefined || action.rail === rail) list.length = 0;
    });
  }

  /** Takes the lab down. */
  async close(): Promise<void> {
    this.server.close();
    rmSync(this.path, { force: true });
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

/** Asks the keeper of that lab. ERR_ARG when there is none; its own errors come through. */
export async function askKeeper<T>(name: string, question: KeeperQuestion): Promise<T> {
  const socket = await open(socketPath(name));
  if (socket === undefined) throw new MultirailError('ERR_ARG', `no lab ${name} is up: multirail lab up --rails 1gbit,1gbit makes one`);
  socket.setTimeout(ANSWER_TIMEOUT_MS, () => socket.destroy(new Error(`no answer within ${ANSWER_TIMEOUT_MS} ms`)));
  try {
    const line = readLine(socket);
    socket.write(`${JSON.stringify(question)}\n`);
    const answer = JSON.parse(await line) as Answer;
    if (!answer.ok) throw new MultirailError('ERR_RAIL', answer.message);
    return answer.value as T;
  } finally {
    socket.destroy();
  }
}
