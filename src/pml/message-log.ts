// What the PML needs of a log of messages, and what the rest of it sees of the tap (tap.ts), which sends through the log.
import type { MultirailError } from '../errors.ts';
import type { Iov } from '../util/iov.ts';
import type { LoggedMessage, PmlPeer, RecvRequest, SendRequest } from './records.ts';

/** What is known of a message before it is copied. */
export type NewMessage = Pick<LoggedMessage, 'ctx' | 'tag' | 'seq' | 'signature' | 'sync'>;

/** Where the copies lie (src/ft/log). */
export interface MessageLog {
  /** Every message since the last committed save is in it. */
  readonly isWhole: boolean;
  /**
   * Copies a message. `full`: there is no room, and there will be. `unlogged`: the log is given up until the next save, and the message goes
   * without it; never when it `mustKeep`, since somebody waits for what is in it.
   */
  add(peer: number, message: NewMessage, buffer: Iov, mustKeep: boolean): LoggedMessage | 'full' | 'unlogged';
  /** In the order in which they were sent. */
  messagesTo(peer: number): readonly LoggedMessage[];
  /** What went to the one goes to the other. */
  rename(peer: number, successor: number): void;
  /** The copy is read by rails until it is let go: its memory stays, whatever is trimmed. */
  hold(message: LoggedMessage): void;
  letGo(message: LoggedMessage): void;
  /** A save is under way, whose cut is here. */
  cut(): void;
  /** The save of the last cut is committed: what was sent before it is not needed any more. */
  commit(isBefore: (peer: number, message: LoggedMessage) => boolean): void;
  /** There is no such save. */
  abandon(): void;
}

/** Which messages receives from anybody match, recorded and obeyed (src/ft/events). Peers are numbers of processes. */
export interface MessageOutcomes {
  /** A receive from anybody is about to be posted: it is numbered, and names the source that it had before. */
  post(request: RecvRequest): void;
  /** It takes that message. It ends with an error when that is not the one which it took before. */
  matched(request: RecvRequest, peer: number, seq: number): void;
  /** What is sent now may depend on so many outcomes. */
  readonly mark: number;
  /** So many are kept safe: what depends on no more may leave. */
  readonly safe: number;
}

export interface TapOptions {
  readonly log: MessageLog;
  /** Messages of that context are logged. */
  readonly covers: (ctx: number) => boolean;
  /** Checksum of bytes, going on from that of what comes before them. Undefined: what is sent again is not compared. */
  readonly digest: ((bytes: Uint8Array, before: number) => number) | undefined;
  /** Told of each message that is sent again and is another one, besides its request, which ends with the same error. */
  readonly onDiffers?: ((error: MultirailError) => void) | undefined;
  /** Undefined: no outcome is recorded, and receives from anybody are of no use to a successor. */
  readonly outcomes?: MessageOutcomes;
}

/** The tap, as those see it that messages pass. */
export interface PmlTap {
  readonly options: TapOptions;
  /** Contexts that were released since the last committed save: their numbers stay until a save is cut behind their end. */
  readonly released: number[];
  /** Sends that wait for room in the log, or for their leave. */
  readonly waitingCount: number;
  covers(peer: number, ctx: number): boolean;
  retry(): void;
  giveUp(request: SendRequest, error: MultirailError): void;
  /** A receive from anybody, which has a number, takes that message. */
  matched(request: RecvRequest, peer: number, seq: number): void;
  received(peer: PmlPeer, ctx: number, seq: number, tag: number, views: readonly Uint8Array[], bytes: number): void;
}
