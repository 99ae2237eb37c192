// What saves and recoveries publish on node:diagnostics_channel. A channel that nobody listens to costs one comparison.
import { channel } from 'node:diagnostics_channel';

/** A save of this rank has ended. */
export interface SaveTrace {
  /** Rank in the communicator of the job. */
  readonly rank: number;
  readonly save: number;
  readonly epoch: number;
  readonly step: number;
  readonly level: string;
  /** Length of this rank's image. */
  readonly bytes: number;
  /** From the call until it was committed, and written where the level has a store. */
  readonly durationMs: number;
  /** Set where it was abandoned. */
  readonly error?: unknown;
}

/** The program is about to be called again, after a failure. */
export interface RecoveryTrace {
  readonly rank: number;
  readonly epoch: number;
  /** The save that all have gone back to; undefined: the beginning. */
  readonly save: number | undefined;
  readonly level: string | undefined;
  readonly failed: readonly number[];
  readonly lostSteps: number;
  /** Since this rank knew of the failure; of a process that was called in, since it met the others. */
  readonly durationMs: number;
  /**
   * Under asynchronous recovery: `in place`, successors have the places of the failed, which is told by those that do not go back;
   * `called again`, a successor's program begins; `caught up`, it has done again all that others had seen. Undefined: all have gone back.
   */
  readonly kind?: 'in place' | 'called again' | 'caught up';
  /** Of a successor that has caught up: messages that others had, and that were compared instead of sent. */
  readonly suppressed?: number;
}

export const saveChannel = channel('multirail:ft:save');
export const recoveryChannel = channel('multirail:ft:recovery');
