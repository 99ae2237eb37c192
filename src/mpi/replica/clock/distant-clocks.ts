// The processor time of other replicas of this process's rank that run on other hosts, for the judgement whether they are late. A thread of this
// process asks theirs (main.ts); blocking calls may ask and read, too.
import { Worker } from 'node:worker_threads';
import { ownAddresses } from '../../../launch/oob/addresses.ts';
import { programFile } from '../../../native/program-file.ts';
import type { TwinClock } from '../toe-watch.ts';
import { ClockMemory } from './clock-memory.ts';
import { type ClockAddress, checkClockAddress } from './clock-socket.ts';
import type { ClockThreadData, FromClockThread, ToClockThread } from './main.ts';

/** How long the thread may take to be there. */
const OPEN_WAIT_MS = 10_000;
/** A process that is asked so often in vain is told of. */
const SILENT_MAX = 40;
/** The thread has little to keep. */
const HEAP_MIB_MAX = 16;

export interface DistantClocksOptions {
  readonly self: number;
  readonly secret: Uint8Array;
  /** Numbers of those other processes. */
  readonly others: readonly number[];
  warn(text: string): void;
}

export class DistantClocks {
  /** What the other replicas are told, to be able to ask. */
  readonly address: string;
  /** Calls that the program of this process has begun; its owner keeps it up to date. */
  readonly calls: Float64Array;
  private readonly thread: Worker;
  private readonly memory: ClockMemory;
  private readonly options: DistantClocksOptions;
  private readonly known = new Map<number, ClockAddress>();

  private constructor(options: DistantClocksOptions, thread: Worker, memory: ClockMemory, address: ClockAddress) {
    this.options = options;
    this.thread = thread;
    this.memory = memory;
    this.calls = memory.calls;
    this.address = JSON.stringify(address);
  }

  /** Resolves when the other replicas can ask this one; to undefined, with a warning that says why, where that does not work. */
  static async open(options: DistantClocksOptions): Promise<DistantClocks | undefined> {
    const { self, secret, others, warn } = options;
    const buffers = ClockMemory.make(others.length);
    let thread: Worker | undefined;
    try {
      const workerData: ClockThreadData = { self, secret, addresses: ownAddresses(), others, buffers };
      thread = new Worker(programFile('replica-clock', 'where a replica needs it to run it as a thread'), {
        workerData,
        // Nothing of what the program was started with.
        ...{ argv: [], execArgv: [], env: {} },
        resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB_MAX, maxYoungGenerationSizeMb: 2 },
      });
      const address = await firstWord(thread);
      // The job goes on without it; what is lost is that a replica that is late is found.
      thread.on('error', (error) =>
        warn(`the thread that tells other hosts of this process's processor time has failed: ${error.message}`),
      );
      thread.unref();
      return new DistantClocks(options, thread, new ClockMemory(buffers), address);
    } catch (error) {
      void thread?.terminate();
      warn(`whether a replica on another host is late cannot be known here: ${(error as Error).message}`);
      return undefined;
    }
  }

  /** That process can be asked there; `address`: what its own clocks have given out. */
  know(number: number, text: string): void {
    let address: ClockAddress | undefined;
    try {
      address = checkClockAddress(JSON.parse(text));
    } catch {
      // It is no address.
    }
    if (address === undefined || !this.options.others.includes(number)) return;
    this.known.set(number, address);
    this.say({ do: 'know', number, address });
  }

  clockOf(number: number): TwinClock {
    const index = this.options.others.indexOf(number);
    let question = 0;
    let least = 1;
    let inVain = 0;
    const ask = (): void => this.say({ do: 'ask', number, question: ++question });
    return {
      refresh: () => {
        // What was asked before the wait may have been answered before it, too.
        least = question + 1;
        inVain = 0;
        ask();
      },
      read: () => {
        ask();
        const reading = this.memory.read(index, least);
        if (reading === undefined && ++inVain === SILENT_MAX) this.tellSilent(number);
        return reading;
      },
    };
  }

  private tellSilent(number: number): void {
    const address = this.known.get(number);
    const where =
      address === undefined
        ? 'it has not said where it can be asked'
        : `it is asked by UDP at ${address.addresses.join(', ')}, port ${address.port}, and does not answer`;
    this.options.warn(
      `whether process ${number}, a replica of the same rank on another host, is late cannot be known: ${where}; it is stopped, or a firewall is in between`,
    );
  }

  /** That process was told to leave, and is killed if it still runs. */
  end(number: number): void {
    this.say({ do: 'end', number });
  }

  close(): void {
    void this.thread.terminate();
  }

  private say(message: ToClockThread): void {
    this.thread.postMessage(message);
  }
}

/** Resolves when the thread is there; rejects when it does not come. */
function firstWord(thread: Worker): Promise<FromClockThread> {
  let timer: NodeJS.Timeout | undefined;
  return new Promise<FromClockThread>((resolve, reject) => {
    thread.once('message', resolve).once('error', reject);
    timer = setTimeout(() => reject(new Error(`no word from its thread within ${OPEN_WAIT_MS} ms`)), OPEN_WAIT_MS);
  }).finally(() => clearTimeout(timer));
}
