// What the calls of a logged communicator need of recorded outcomes; src/ft/events records, holds and obeys them.
import type { MultirailError } from '../../errors.ts';
import type { MessageOutcomes } from '../../pml/message-log.ts';

/** A receive or probe from anybody that has begun. */
export interface AnyReceive {
  readonly receive: number;
  /** Rank whose message it is to take; undefined: nothing is listed, so it takes what comes first. */
  readonly source: number | undefined;
}

/** A call looks for a message, and finds the rank of its source; or whether requests have ended, and finds their places. */
export type LookKind = 'found' | 'ended';

export interface RecordedOutcomes extends MessageOutcomes {
  /** Whose they are. */
  readonly rank: number;
  /** Some of what is listed was not asked for again yet. */
  readonly isReplaying: boolean;
  /** Another await of the program begins: its number. */
  beginAwait(): number;
  /** The await whose result was handed to the program next, as it is listed; undefined: something else comes before, or nothing. */
  readonly nextTurn: number | undefined;
  /** Something is listed that comes before anything new. */
  readonly hasListed: boolean;
  /** It is handed out. */
  tookTurn(): void;
  /** One of several is handed out, and nothing is listed. */
  noteTurn(number: number): void;
  /** A probe from anybody begins. */
  begin(): AnyReceive;
  /** It finds that message of the process with that number. Returns what is wrong with it, when it is not the listed one. */
  match(receive: number, number: number, seq: number): MultirailError | undefined;
  /**
   * A call that looks: what it has found before, once `again` says that it is so again; false: there is no such thing. Where nothing is listed,
   * what it finds now. Undefined: nothing.
   *
   * @throws ERR_REPLAY: another call was here before.
   * @throws ERR_SUPPORT: a rail needs the event loop, so a successor could not wait for what is listed.
   */
  look(
    kind: LookKind,
    find: () => readonly number[] | undefined,
    again: (values: readonly number[]) => boolean,
  ): readonly number[] | undefined;
}
