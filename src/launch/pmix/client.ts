// A client of PMIx (PMIx Standard 4), by which the processes of a job of Open MPI, PRRTE or Slurm exchange short texts, and learn of each
// other's ends from what started them. The library's calls come back as messages (binding.ts); here each is a promise with a deadline.
import { MultirailError } from '../../errors.ts';
import type { PmixBinding, PmixMessage } from './binding.ts';

/** Events that say that the connection to the starter's server is gone, and not that a process is. */
const LOST_CONNECTION = -61;
/** finalize() and abort(): the starter may be gone, and the process ends all the same. */
const LEAVE_WAIT_MS = 2000;
/** Keys of PMIx about the job, and about a rank. */
const JOB = -1;
export const PMIX_KEYS = { jobSize: 'pmix.job.size', localSize: 'pmix.local.size', localRank: 'pmix.lrank' } as const;

/** States of a client. */
const PMIX = {
  NEW: 0, // nothing is said yet
  OPENING: 1, // PMIx_Init is under way
  OPEN: 2, // the server knows this process
  FINALIZING: 3, // PMIx_Finalize is under way
  FINALIZED: 4, // the starter expects nothing more of this process
  BROKEN: 5, // PMIx_Init failed
} as const;
type PmixState = (typeof PMIX)[keyof typeof PMIX];
const PMIX_EDGES: Record<PmixState, readonly PmixState[]> = {
  [PMIX.NEW]: [PMIX.OPENING],
  [PMIX.OPENING]: [PMIX.OPEN, PMIX.BROKEN],
  [PMIX.OPEN]: [PMIX.FINALIZING],
  [PMIX.FINALIZING]: [PMIX.FINALIZED],
  [PMIX.FINALIZED]: [],
  [PMIX.BROKEN]: [],
};

interface Waiter {
  call: string;
  resolve: (message: PmixMessage) => void;
  reject: (error: Error) => void;
  timer: NodeJS.Timeout | undefined;
}

export interface PmixClientOptions {
  binding: PmixBinding;
  /** When joining is over, on the clock of performance.now(): a call that waits for other ranks gives up then. */
  deadlineMs: number;
  log?: (text: string) => void;
}

export class PmixClient {
  private readonly binding: PmixBinding;
  private readonly deadlineMs: number;
  private readonly log: (text: string) => void;
  private state: PmixState = PMIX.NEW;
  private lastId = 0;
  private readonly waiters = new Map<number, Waiter>();
  private readonly gone = new Set<number>();
  private listener: ((rank: number) => void) | undefined;
  rank = 0;

  constructor({ binding, deadlineMs, log }: PmixClientOptions) {
    this.binding = binding;
    this.deadlineMs = deadlineMs;
    this.log = log ?? (() => undefined);
  }

  /** Says hello to the starter's server, and learns this process's rank. */
  async init(): Promise<void> {
    this.moveTo(PMIX.OPENING);
    try {
      this.binding.start((message) => this.take(message));
      const { rank, nspace, value } = await this.call('PMIx_Init', (id) => this.binding.init(id));
      this.rank = rank as number;
      this.moveTo(PMIX.OPEN);
      this.log(`PMIx: rank ${rank} of job ${nspace}`);
      if (value !== 0) this.log(`PMIx tells nothing of the ends of processes (status ${value}); lifelines do`);
    } catch (error) {
      this.moveTo(PMIX.BROKEN);
      throw error instanceof MultirailError ? error : this.error((error as Error).message);
    }
  }

  /** A number that the starter knows of the job, or, with `rank`, of that rank; undefined where it does not say. */
  async numberOf(key: string, rank: number = JOB): Promise<number | undefined> {
    const value = await this.read(key, rank);
    return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
  }

  private async read(key: string, rank: number): Promise<number | string | undefined> {
    try {
      return (await this.call(`PMIx_Get ${key}`, (id) => this.binding.get(id, rank, key, true))).value;
    } catch {
      return undefined;
    }
  }

  /** Stores a text under a key of this rank, and hands it to the server. */
  async put(key: string, text: string): Promise<void> {
    await this.call('PMIx_Put', (id) => this.binding.put(id, key, text));
    await this.call('PMIx_Commit', (id) => this.binding.commit(id));
  }

  /**
   * Collective over all processes of the job; afterwards, what was put before is at hand everywhere. Never rejects for the end of another
   * process: whether it can be done without is seen by what comes next.
   */
  async fence(): Promise<void> {
    this.mustBeWhole();
    const { status, statusText } = await this.ask('PMIx_Fence', (id) => this.binding.fence(id, true));
    if (status !== 0) this.log(`PMIx_Fence: ${statusText} (${status})`);
  }

  /** What a rank has put under that key: waits until it has. */
  async get(key: string, rank: number): Promise<string> {
    this.mustBeWhole();
    const { value } = await this.call(`PMIx_Get ${key}`, (id) => this.binding.get(id, rank, key, false));
    if (typeof value !== 'string') throw this.error(`what rank ${rank} has put under ${key} is not a text`);
    return value;
  }

  /** Hears of each rank whose process the starter says is gone, once; also of those before this call. */
  onGone(listener: (rank: number) => void): void {
    this.listener = listener;
    for (const rank of this.gone) listener(rank);
  }

  /** The process is done, and may exit without the starter taking that for a failure. Never rejects: the job is over. */
  async finalize(): Promise<void> {
    if (this.state !== PMIX.OPEN) return;
    this.moveTo(PMIX.FINALIZING);
    await this.ask('PMIx_Finalize', (id) => this.binding.finalize(id), LEAVE_WAIT_MS).catch(() => undefined);
    this.moveTo(PMIX.FINALIZED);
  }

  /** Ends the whole job by the starter's own means. Resolves when the starter has heard it, or does not answer. */
  async abort(code: number, reason: string): Promise<void> {
    if (this.state !== PMIX.OPEN) return;
    const text = reason.replace(/\0/g, ' ').slice(0, 100);
    await this.ask('PMIx_Abort', (id) => this.binding.abort(id, Math.trunc(code) | 0, text), LEAVE_WAIT_MS).catch(() => undefined);
  }

  // --- messages

  /** As ask(), and rejects unless the answer is success. */
  private async call(what: string, start: (id: number) => void): Promise<PmixMessage> {
    const message = await this.ask(what, start);
    if (message.status !== 0) throw this.error(`${what} failed: ${message.statusText} (${message.status})`);
    return message;
  }

  /** The answer, whatever its status. Rejects when there is none in time. */
  private ask(what: string, start: (id: number) => void, waitMs = this.deadlineMs - performance.now()): Promise<PmixMessage> {
    return new Promise((resolve, reject) => {
      const id = ++this.lastId;
      const timer = setTimeout(
        () => {
          this.waiters.delete(id);
          reject(this.error(`${what} was not answered in time: have all ranks of the job called init(), and is libpmix on every host?`));
        },
        Math.max(0, waitMs),
      );
      this.waiters.set(id, { call: what, resolve, reject, timer });
      try {
        start(id);
      } catch (error) {
        this.settle(id);
        reject(this.error(`${what}: ${(error as Error).message}`));
      }
    });
  }

  private settle(id: number): Waiter | undefined {
    const waiter = this.waiters.get(id);
    this.waiters.delete(id);
    clearTimeout(waiter?.timer);
    return waiter;
  }

  private take(message: PmixMessage): void {
    if (message.id !== 0) {
      // One that is not there any more was given up.
      this.settle(message.id)?.resolve(message);
      return;
    }
    if (message.status === LOST_CONNECTION) {
      this.log(`PMIx: the connection to the starter is lost (${message.statusText})`);
      return;
    }
    const { rank } = message;
    if (rank === undefined || rank === this.rank || this.gone.has(rank)) return;
    this.log(`PMIx: the process of rank ${rank} is gone (${message.statusText})`);
    this.gone.add(rank);
    // Nobody who waits for all of the job, or for rank 0, would be answered.
    if (this.listener === undefined) this.failJoining(rank);
    this.listener?.(rank);
  }

  private failJoining(rank: number): void {
    for (const id of [...this.waiters.keys()]) this.settle(id)?.reject(this.failed(rank));
  }

  /** Until somebody listens, the ranks are still meeting. */
  private mustBeWhole(): void {
    const [rank] = this.gone;
    if (rank !== undefined && this.listener === undefined) throw this.failed(rank);
  }

  private failed(rank: number): MultirailError {
    return new MultirailError('ERR_PROC_FAILED', `rank ${rank} ended before all ranks of the job had met`, { rank: this.rank, peer: rank });
  }

  private moveTo(next: PmixState): void {
    if (!PMIX_EDGES[this.state].includes(next))
      throw new MultirailError('ERR_INTERNAL', `PMIx: no edge from state ${this.state} to ${next}`);
    this.state = next;
  }

  private error(text: string): MultirailError {
    return new MultirailError('ERR_INIT', `PMIx (PMIX_NAMESPACE, PMIX_RANK): ${text}; ess_pmix = false does without PMIx`);
  }
}
