// A job that another process than its launcher watches: in a lab the launcher is in the lab's network, and the watcher is where the
// browsers are. A pipe carries, as lines of JSON, what an observer is told and what it orders. The job never waits for its watcher: while
// the pipe is full, reports of ranks are merged (held-reports.ts), and above a bound events of rails are left out and counted. When either
// end dies, the other goes on.
import type { Duplex } from 'node:stream';
import { MultirailError } from '../../errors.ts';
import { PROCESSES_MAX } from '../../ulfm/limits.ts';
import { HeldReports } from '../oob/held-reports.ts';
import { LINE_CHARS_MAX, lineOf, readLines } from '../oob/lines.ts';
import { checkTelemetry, type RailFault } from '../oob/telemetry.ts';
import type { WaitsReport } from '../oob/waits.ts';
import type { JobObserver } from '../watch/observer.ts';
import type { RunningJob } from './launcher.ts';

/** With more than this on its way to the watcher, reports wait; with more than the second, events of rails and of waits are left out. */
const QUEUE_CHARS_MAX = 1024 * 1024;
const EVENTS_QUEUE_CHARS_MAX = LINE_CHARS_MAX;
/** Orders are a few bytes each: a launcher that leaves so many unread is stopped. */
const ORDERS_QUEUE_CHARS_MAX = 64 * 1024;
/** How long the launcher waits, when the job is over, for the last words to be taken. */
const LAST_WORDS_MS = 2000;

/** How a job ended. */
export interface JobOutcome {
  exitCode: number;
  failure: string | undefined;
}

/** The calls of an observer that travel, each as its arguments. */
const CALLS = ['spawned', 'joined', 'telemetry', 'railEvent', 'eventsLeftOut', 'finalized', 'exited', 'standby', 'aborted'] as const;
type Call = (typeof CALLS)[number] & keyof JobObserver;
type CallMessage = { [C in Call]: { is: C; args: Parameters<Required<JobObserver>[C]> } }[Call];
type FromLauncher = CallMessage | { is: 'waits'; report: WaitsReport } | { is: 'result'; outcome: JobOutcome };
type ToLauncher = { do: 'railFault'; rank: number; fault: RailFault } | { do: 'kill'; rank: number } | { do: 'askWaits'; reason: string };
/** What a watcher may order. */
type Orders = Pick<RunningJob, 'railFault' | 'kill' | 'askWaits'>;

/** The launcher's end. */
export class JobRelay {
  /** Is told of the job by its launcher. */
  readonly observer: JobObserver;
  private readonly pipe: Duplex;
  private readonly held = new HeldReports();
  private readonly lastWordsMs: number;
  private job: Orders | undefined;
  private leftOut = 0;

  constructor(pipe: Duplex, { lastWordsMs = LAST_WORDS_MS } = {}) {
    this.pipe = pipe;
    this.lastWordsMs = lastWordsMs;
    // Without its watcher the job goes on.
    pipe.on('error', () => undefined);
    pipe.on('drain', () => this.flush());
    readLines<ToLauncher>(
      pipe,
      (order) => this.obey(order),
      () => undefined,
    );
    this.observer = {
      spawned: (...args) => this.send({ is: 'spawned', args }),
      joined: (...args) => this.send({ is: 'joined', args }),
      finalized: (...args) => this.send({ is: 'finalized', args }),
      exited: (...args) => this.send({ is: 'exited', args }),
      standby: (...args) => this.send({ is: 'standby', args }),
      aborted: (...args) => this.send({ is: 'aborted', args }),
      railEvent: (...args) => this.sendIfRoom({ is: 'railEvent', args }),
      telemetry: (...args) => {
        this.held.add(...args);
        if (this.pipe.writableLength < QUEUE_CHARS_MAX) this.flush();
      },
    };
  }

  /** From now on the watcher's orders are carried out. */
  serve(job: Orders): void {
    this.job = job;
  }

  waits(report: WaitsReport): void {
    this.sendIfRoom({ is: 'waits', report });
  }

  /** The last words; resolves when they are taken, or when nobody takes them. */
  async end(outcome: JobOutcome): Promise<void> {
    this.flush();
    this.send({ is: 'result', outcome });
    if (this.pipe.destroyed) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, this.lastWordsMs);
      const taken = () => {
        clearTimeout(timer);
        resolve();
      };
      this.pipe.once('close', taken);
      this.pipe.end(taken);
    });
    this.pipe.destroy();
  }

  private obey(order: ToLauncher): void {
    if (order.do === 'railFault') this.job?.railFault(order.rank, order.fault);
    else if (order.do === 'kill') this.job?.kill(order.rank);
    else if (order.do === 'askWaits') this.job?.askWaits(order.reason);
  }

  private flush(): void {
    if (this.leftOut > 0) {
      this.send({ is: 'eventsLeftOut', args: [this.leftOut] });
      this.leftOut = 0;
    }
    for (const { rank, report } of this.held.take()) this.send({ is: 'telemetry', args: [rank, report] });
  }

  private sendIfRoom(message: FromLauncher): void {
    const line = lineOf(message);
    if (this.pipe.writableLength + line.length > EVENTS_QUEUE_CHARS_MAX) this.leftOut++;
    else this.write(line);
  }

  /** For what there is a bounded number of. */
  private send(message: FromLauncher): void {
    this.write(lineOf(message));
  }

  private write(line: string): void {
    if (this.pipe.writable) this.pipe.write(line);
  }
}

export interface RelayedJobOptions {
  /** Number of processes of the start. */
  size: number;
  observer: JobObserver;
  onWaits: (report: WaitsReport) => void;
  /** Lines for people. */
  say: (text: string) => void;
}

/** The watcher's end: the job as if its launcher were here. */
export class RelayedJob implements Orders {
  /** How the job ended; undefined when the launcher is gone without a word. */
  readonly outcome: Promise<JobOutcome | undefined>;
  private readonly pipe: Duplex;
  private readonly options: RelayedJobOptions;
  private told: JobOutcome | undefined;
  /** Processes that have a number: those that join later add to those of the start. */
  private size: number;

  constructor(pipe: Duplex, options: RelayedJobOptions) {
    this.pipe = pipe;
    this.options = options;
    this.size = options.size;
    pipe.on('error', () => undefined);
    this.outcome = new Promise((resolve) => pipe.once('close', () => resolve(this.told)));
    const take = (message: FromLauncher) => {
      if (pipe.destroyed) return;
      try {
        this.take(message);
      } catch (error) {
        this.giveUp(error as Error);
      }
    };
    readLines<FromLauncher>(pipe, take, (line) => this.giveUp(new Error(`"${line.slice(0, 80)}"`)));
  }

  railFault(rank: number, fault: RailFault): void {
    this.order({ do: 'railFault', rank, fault });
  }

  kill(rank: number): void {
    this.order({ do: 'kill', rank });
  }

  askWaits(reason: string): void {
    this.order({ do: 'askWaits', reason });
  }

  private order(order: ToLauncher): void {
    if (this.pipe.writable && this.pipe.writableLength < ORDERS_QUEUE_CHARS_MAX) this.pipe.write(lineOf(order));
  }

  private take(message: FromLauncher): void {
    switch (message.is) {
      case 'waits':
        return this.options.onWaits(message.report);
      case 'result':
        this.told = message.outcome;
        return;
      default:
        this.call(message);
    }
  }

  private call({ is, args }: CallMessage): void {
    if (!CALLS.includes(is) || !Array.isArray(args))
      throw new MultirailError('ERR_PROTOCOL', `"${String(is).slice(0, 32)}" came from a launcher, which never sends it`);
    const { observer } = this.options;
    if ((is === 'spawned' || is === 'joined') && Number.isInteger(args[0]) && args[0] < PROCESSES_MAX)
      this.size = Math.max(this.size, args[0] + 1);
    const { size } = this;
    const first: unknown = is === 'aborted' ? args[0].rank : args[0];
    if (is !== 'eventsLeftOut' && !(Number.isInteger(first) && (first as number) >= 0 && (first as number) < size)) {
      throw new MultirailError('ERR_PROTOCOL', `${is}: rank ${first} in a job of ${size}`);
    }
    if (is === 'telemetry') checkTelemetry(args[1], size);
    (observer[is] as ((...args: unknown[]) => void) | undefined)?.call(observer, ...args);
  }

  /** Nothing more is believed of this launcher; the job is its own business. */
  private giveUp(error: Error): void {
    if (this.pipe.destroyed) return;
    this.options.say(`the job is watched no more: its launcher says what cannot be read: ${error.message}`);
    this.pipe.destroy();
  }
}
