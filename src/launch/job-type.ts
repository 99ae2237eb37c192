// A process in its job, as init() is given it.
import type { OobClient } from './oob/client.ts';

export interface Job {
  /** Number of the process in the job: of one that joins after the start, not below `size`. */
  rank: number;
  /** Processes of the start. */
  size: number;
  /** Processes of each rank, where they are several. */
  replicas?: number;
  localRank: number;
  localSize: number;
  jobId: string;
  /** u53, larger in a later process of the same rank. */
  incarnation: number;
  /** Names this host and network namespace. */
  hostId: string;
  /** Undefined when the job has none: then nothing beyond this process may be trusted. */
  secret: Uint8Array | undefined;
  /** Undefined in a world of one. */
  oob: OobClient | undefined;
  /** What started this process. */
  starter?: string;
  /** This process ends because another one has aborted the job: nothing is wrong with it. */
  isEnding?: boolean;
  /** Our own launcher waits for the processes, and ends them all when one fails; other starters may or may not. */
  hasOwnLauncher?: boolean;
  /** After the job: tells the starter that this process may exit. */
  leave?: () => Promise<void>;
  /** Ends the job by the starter's own means. */
  abortByStarter?: (code: number, reason: string) => Promise<void>;
}
