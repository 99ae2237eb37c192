// Notices the end of processes of this host by what its kernel says: a handle that becomes readable (pidfd), in blocking calls too; without the
// native part, /proc is looked at again and again. A process is named by its number and its start time, since numbers are used again.
import { readFileSync, readlinkSync } from 'node:fs';
import type { Poller } from '../../native/poller.ts';

/** Names a process for those that see the same processes; published at the start. */
export interface ProcessId {
  readonly pid: number;
  /** When it started, in ticks of its kernel. */
  readonly startTicks: number;
  /** Kernel and namespace in which the number holds. */
  readonly boot: string;
  readonly pidNamespace: string;
}

/** Processes of one host that each of them watches: so many behind it in the ring of those that live. */
const WATCHED_MAX = 8;
/** With no more than so many on a host, each watches all. */
const WATCH_ALL_MAX = 16;
/** Without handles. Blocking calls need the native part, and so have handles. */
export const LOOK_MS = 50;

/** Where /proc tells them; undefined elsewhere. */
export function ownProcess(): ProcessId | undefined {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const startTicks = startOf(process.pid);
    return startTicks === undefined ? undefined : { pid: process.pid, startTicks, boot, pidNamespace: readlinkSync('/proc/self/ns/pid') };
  } catch {
    return undefined;
  }
}

/** What another process published, looked at before it is believed. */
export function checkProcess(value: unknown): ProcessId | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { pid, startTicks, boot, pidNamespace } = value as Record<string, unknown>;
  const isWell = Number.isSafeInteger(pid) && (pid as number) > 0 && Number.isSafeInteger(startTicks);
  if (!isWell || typeof boot !== 'string' || typeof pidNamespace !== 'string') return undefined;
  return { pid: pid as number, startTicks: startTicks as number, boot, pidNamespace };
}

/** Start time of a process that has not ended; undefined for one that has. */
function startOf(pid: number): number | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    return undefined;
  }
  // Behind the name, which may hold anything: state is the third field, the start time the twenty-second.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields[0] === 'Z' || fields[0] === 'X' ? undefined : Number(fields[19]);
}

/** Whether the process is there. */
export function lives({ pid, startTicks }: ProcessId): boolean {
  return startOf(pid) === startTicks;
}

export class ProcessWatch {
  private readonly self: number;
  private readonly own: ProcessId | undefined;
  private readonly poller: Poller | undefined;
  private readonly onEnded: (number: number) => void;
  /** Processes of this host besides this one, by their numbers in the job, ascending. */
  private readonly neighbours = new Map<number, ProcessId>();
  /** Those that are watched: their handles, or -1 where /proc is looked at. */
  private readonly watched = new Map<number, number>();
  private timer: NodeJS.Timeout | undefined;
  /** Some process of the job is where the kernel of this one does not see it. */
  hasOthers = false;

  /** `self`: number of this process in the job. `onEnded` is called outside of the engine's work. */
  constructor(self: number, own: ProcessId | undefined, poller: Poller | undefined, onEnded: (number: number) => void) {
    this.self = self;
    this.own = own;
    this.poller = poller;
    this.onEnded = onEnded;
  }

  /** That process belongs to the job. One that shares nothing with this one is not watched. */
  add(number: number, id: ProcessId | undefined): void {
    const { own } = this;
    if (own === undefined || id === undefined || id.boot !== own.boot || id.pidNamespace !== own.pidNamespace) this.hasOthers = true;
    else if (id.pid !== own.pid) this.neighbours.set(number, id);
  }

  /** That process is dead or has left, as whoever calls this knows. */
  remove(number: number): void {
    this.neighbours.delete(number);
    this.unwatch(number);
    this.refresh();
  }

  /** Watches those that are to be watched, and no others. */
  refresh(): void {
    const numbers = [...this.neighbours.keys()].sort((a, b) => a - b);
    const behind = [...numbers.filter((number) => number > this.self), ...numbers.filter((number) => number < this.self)];
    const wanted = behind.slice(0, numbers.length < WATCH_ALL_MAX ? numbers.length : WATCHED_MAX);
    for (const number of [...this.watched.keys()]) if (!wanted.includes(number)) this.unwatch(number);
    const gone = wanted.filter((number) => !this.watched.has(number) && !this.watch(number, this.neighbours.get(number) as ProcessId));
    if (this.timer === undefined && [...this.watched.values()].includes(-1)) {
      this.timer = setInterval(() => this.look(), LOOK_MS);
      this.timer.unref();
    }
    for (const number of gone) this.ended(number);
  }

  close(): void {
    clearInterval(this.timer);
    this.neighbours.clear();
    for (const number of [...this.watched.keys()]) this.unwatch(number);
  }

  /** False when it has ended already. */
  private watch(number: number, id: ProcessId): boolean {
    const { poller } = this;
    const handle = poller === undefined ? -1 : poller.native.processWatch(id.pid);
    // A handle is of whoever has the number now: its start time says whether that is the one that is meant.
    if (handle < 0 || poller === undefined) {
      if (!lives(id)) return false;
      this.watched.set(number, -1);
      return true;
    }
    this.watched.set(number, handle);
    poller.add(handle, { onReady: () => this.ended(number) });
    return lives(id);
  }

  private unwatch(number: number): void {
    const handle = this.watched.get(number);
    this.watched.delete(number);
    if (handle === undefined || handle < 0 || this.poller === undefined) return;
    this.poller.remove(handle);
    this.poller.native.close(handle);
  }

  private look(): void {
    for (const [number, handle] of [...this.watched]) {
      const id = this.neighbours.get(number);
      if (handle === -1 && id !== undefined && !lives(id)) this.ended(number);
    }
  }

  private ended(number: number): void {
    this.neighbours.delete(number);
    this.unwatch(number);
    this.onEnded(number);
    this.refresh();
  }
}
