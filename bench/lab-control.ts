// A measured job seen from outside: starts it in the namespaces of a lab, hears its ranks over a local socket that no fault of the lab
// reaches, and ends it. Imports the lab, lab-protocol, node: modules.
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Lab, sleep } from '../src/lab/lab.ts';
import type { LaunchSpec } from './lab-launch.ts';
import { type FromRank, lineSplitter, nowMs, type RankSpec, type ThroughputRow, type ToRank } from './lab-protocol.ts';

const OUTPUT_KEPT_CHARS = 20_000;
const SAMPLES_KEPT = 4000;
const START_TIMEOUT_MS = 40_000;
const END_TIMEOUT_MS = 45_000;
const POLL_MS = 2;

/** A program of this folder, bundled beside the one that runs. */
export const program = (name: string): string => join(fileURLToPath(new URL('.', import.meta.url)), `${name}.mjs`);

/** What one rank brought over one rail in one report: from the time of the report before to this one's. */
interface UseSample {
  from: number;
  to: number;
  frames: number;
  payloadBytes: number;
  state: string;
  troubles: number;
}

export class RankView {
  pid = 0;
  readyAt = 0;
  reportedAt = 0;
  delivered = 0;
  lastAt = 0;
  readonly gaps: [number, number][] = [];
  readonly uses = new Map<string, UseSample[]>();
  readonly railEvents: { at: number; event: string; key: string; reason: string }[] = [];
  readonly rows: ThroughputRow[] = [];
  computedAt = 0;
  done: Extract<FromRank, { type: 'done' }> | undefined;
  socket: Socket | undefined;

  /**
   * Longest time without a delivery of which a part lies in [from, to], or which began there (`began`); one that is under way counts as
   * far as it goes.
   */
  worstGapMs(from: number, to: number, which: 'overlaps' | 'began' = 'overlaps'): number {
    const counts = (a: number, b: number) => a <= to && (which === 'began' ? a : b) >= from;
    let worst = counts(this.lastAt, this.reportedAt) ? this.reportedAt - this.lastAt : 0;
    for (let i = this.gaps.length - 1; i >= 0; i--) {
      const [a, b] = this.gaps[i];
      if (b < from) break;
      if (counts(a, b)) worst = Math.max(worst, b - a);
    }
    return worst;
  }

  /** When frames first came here over that rail after `since`; undefined while none has. */
  usedAt(key: string, since: number): number | undefined {
    return this.uses.get(key)?.find((sample) => sample.from >= since && sample.frames > 0)?.to;
  }

  /** Longest time within [from, to] during which no payload came over any rail, in steps of the reports. */
  longestWithoutPayloadMs(from: number, to: number): number {
    const busy = [...this.uses.values()]
      .flat()
      .filter((sample) => sample.payloadBytes > 0 && sample.to >= from && sample.from <= to)
      .sort((a, b) => a.from - b.from);
    let worst = 0;
    let since = from;
    for (const sample of busy) {
      worst = Math.max(worst, sample.from - since);
      since = Math.max(since, sample.to);
    }
    return Math.max(worst, to - since);
  }

  /** How often that rail was lost or suspected here so far. */
  troublesOf(key: string): number {
    return this.uses.get(key)?.at(-1)?.troubles ?? 0;
  }

  stateOf(key: string): string | undefined {
    return this.uses.get(key)?.at(-1)?.state;
  }

  framesSince(key: string, since: number): number {
    return (this.uses.get(key) ?? []).reduce((sum, sample) => (sample.from >= since ? sum + sample.frames : sum), 0);
  }

  hear(message: FromRank): void {
    switch (message.type) {
      case 'hello':
        this.pid = message.pid;
        break;
      case 'ready':
        this.readyAt = message.at;
        break;
      case 'report': {
        for (const { key, state, framesReceived, payloadBytesReceived, troubles } of message.rails) {
          let list = this.uses.get(key);
          if (list === undefined) {
            list = [];
            this.uses.set(key, list);
          }
          const from = this.reportedAt;
          list.push({ from, to: message.at, frames: framesReceived, payloadBytes: payloadBytesReceived, state, troubles });
          if (list.length > 2 * SAMPLES_KEPT) list.splice(0, SAMPLES_KEPT);
        }
        this.reportedAt = message.at;
        this.delivered = message.delivered;
        this.lastAt = message.lastAt;
        this.gaps.push(...message.gaps);
        break;
      }
      case 'rail':
        this.railEvents.push(message);
        break;
      case 'row':
        this.rows.push(message.row);
        break;
      case 'computed':
        this.computedAt = message.at;
        break;
      case 'done':
        this.done = message;
    }
  }
}

export interface JobOptions {
  lab: Lab;
  /** Node of each rank. */
  nodes: [number, number];
  mca: Record<string, string>;
  spec: Omit<RankSpec, 'control'>;
  nodeArgs?: string[];
}

export const DEFAULT_SPEC: Omit<RankSpec, 'control' | 'traffic' | 'rails'> = {
  bytes: 1 << 20,
  window: 16,
  pauseMs: 0,
  gapMinMs: 0.5,
  sizes: [],
  warmMs: 1000,
  measureMs: 3000,
};

/** Something went wrong with the job itself: it ended, hung, or never began. */
export class JobError extends Error {}

export class Job {
  readonly ranks: [RankView, RankView] = [new RankView(), new RankView()];
  private readonly child: ChildProcess;
  private readonly folder: string;
  private readonly server: Server;
  private output = '';
  private exitCode: number | undefined;
  private readonly removeFolder = () => rmSync(this.folder, { recursive: true, force: true });

  private constructor(child: ChildProcess, folder: string, server: Server) {
    this.child = child;
    this.folder = folder;
    this.server = server;
    process.once('exit', this.removeFolder);
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.output = (this.output + text).slice(-OUTPUT_KEPT_CHARS);
      });
    }
    child.on('close', (code, signal) => {
      this.exitCode = code ?? (signal === null ? 1 : 128);
    });
    server.on('connection', (socket) => this.accept(socket));
  }

  /** Starts the two ranks and returns when both exchange messages. */
  static async start({ lab, nodes, mca, spec, nodeArgs = [] }: JobOptions): Promise<Job> {
    const folder = mkdtempSync(join(tmpdir(), `multirail-bench-${process.pid}-`));
    const control = join(folder, 'control');
    const server = createServer();
    server.listen(control);
    await once(server, 'listening');
    const isOneNode = nodes[0] === nodes[1];
    const launch: LaunchSpec = {
      program: program('lab-rank'),
      nodeArgs,
      namespaces: nodes.map((node) => (node === nodes[0] ? null : lab.namespace(node))),
      oobListen: isOneNode ? ['127.0.0.1'] : lab.rails.map((_, rail) => lab.address(nodes[0], rail)),
      mca,
      args: [JSON.stringify({ ...spec, control } satisfies RankSpec)],
    };
    const child = lab.spawn(nodes[0], [process.execPath, program('lab-launch'), JSON.stringify(launch)], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const job = new Job(child, folder, server);
    try {
      await job.until('both ranks to begin', () => job.ranks.every((rank) => rank.readyAt > 0), START_TIMEOUT_MS);
    } catch (error) {
      await job.kill();
      throw error;
    }
    return job;
  }

  private accept(socket: Socket): void {
    let view: RankView | undefined;
    socket.setEncoding('utf8');
    socket.on('error', () => {});
    socket.on(
      'data',
      lineSplitter((line) => {
        const message = JSON.parse(line) as FromRank;
        if (message.type === 'hello') {
          view = this.ranks[message.rank];
          view.socket = socket;
        }
        view?.hear(message);
      }),
    );
  }

  send(rank: number, message: ToRank): void {
    this.ranks[rank].socket?.write(`${JSON.stringify(message)}\n`);
  }

  /** Waits for a condition; throws when the job ends or the time is up before. */
  async until(what: string, condition: () => boolean, timeoutMs: number): Promise<void> {
    const deadline = nowMs() + timeoutMs;
    while (!condition()) {
      if (this.exitCode !== undefined) throw new JobError(`the job ended (code ${this.exitCode}) before ${what}: ${this.lastWords()}`);
      if (nowMs() > deadline) throw new JobError(`waited ${timeoutMs} ms in vain for ${what}: ${this.lastWords()}`);
      await sleep(POLL_MS);
    }
  }

  private lastWords(): string {
    return this.output.trim().slice(-3000) || 'no output';
  }

  /** Tells rank 0 to stop, waits until everything is delivered and audited, and returns what the audit found wrong. */
  async stop(): Promise<string[]> {
    this.send(0, { type: 'stop' });
    await this.until('the ranks to finish', () => this.ranks.every((rank) => rank.done !== undefined), END_TIMEOUT_MS);
    await this.ended();
    const [first, second] = this.ranks.map((rank) => rank.done!);
    const wrong = [...first.errors.map((text) => `rank 0: ${text}`), ...second.errors.map((text) => `rank 1: ${text}`)];
    if (second.received !== first.sent) wrong.push(`rank 1 received ${second.received} messages of ${first.sent}`);
    if (this.exitCode !== 0) wrong.push(`exit code ${this.exitCode}: ${this.lastWords()}`);
    return wrong;
  }

  /** Waits for a job that stops by itself. */
  async ended(): Promise<void> {
    const deadline = nowMs() + END_TIMEOUT_MS;
    while (this.exitCode === undefined && nowMs() < deadline) await sleep(POLL_MS);
    await this.kill();
  }

  async kill(): Promise<void> {
    if (this.exitCode === undefined) {
      // `ip netns exec` became the launcher; its ranks end when it is gone, and at the latest with the lab.
      for (const { pid } of this.ranks) if (pid > 0) killQuietly(pid);
      this.child.kill('SIGKILL');
      while (this.exitCode === undefined) await sleep(POLL_MS);
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
