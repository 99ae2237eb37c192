// What the calls of a logged communicator need of recorded outcomes; src/ft/events records, holds and obeys them.
import type { MultirailError } from '../../errors.ts';
import type { MessageOutcomes } from '../../pml/message-log.ts';

/** A receive or probe from anybody that has begun. */
export interface AnyReceive {
  readonly receive: number;
  /** Rank whose message it is to take; undefined: nothing is listed, so it takes what comes first. */
  readonly source: number | undefined;
}

export interface RecordedOutcomes extends MessageOutcomes {
  /** Some of what is listed was not asked for again yet. */
  readonly isReplaying: boolean;
  /** A probe from anybody begins. */
  begin(): AnyReceive;
  /** It finds that message of the process with that number. Returns what is wrong with it, when it is not the listed one. */
  match(receive: number, number: number, seq: number): MultirailError | undefined;
}
