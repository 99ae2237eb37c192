// What the PML needs of a log of messages, and what the rest of it sees of the tap (tap.ts), which sends through the log.
import type { MultirailError } from '../errors.ts';
import type { Iov } from '../util/iov.ts';
import type { LoggedMessage, PmlPeer, RecvMessage, RecvRequest, SendRequest } from './records.ts';

/** Answers of the log to a message. */
export const LOGGED = 0;
/** There is no room, and there will be. */
export const FULL = 1;
/** The log is given up until the next save, and the message goes without it. */
export const UNLOGGED = 2;
export type LogAnswer = typeof LOGGED | typeof FULL | typeof UNLOGGED;

/** Memory for the copies that peers of this host may map, of whichever module has it (BtlModule.exportMemory). */
export interface ExportableMemory {
  /** Makes memory of that length; undefined where that is not possible. */
  make(bytes: number): Uint8Array | undefined;
  /** Gives it back: nobody may read or write it any more. */
  drop(memory: Uint8Array): void;
}

/** Where the copies lie (src/ft/log). */
export interface MessageLog {
  /** Every message since the last committed save is in it. */
  readonly isWhole: boolean;
  /** Copies a message. Never UNLOGGED when it `mustKeep`, since somebody waits for what is in it. */
  add(peer: number, ctx: number, tag: number, seq: number, signature: number, sync: boolean, buffer: Iov, mustKeep: boolean): LogAnswer;
  /** The message to that peer that was added last. */
  newest(peer: number): LoggedMessage;
  /** In the order in which they were sent. Of a synchronous one it is the same object each time. */
  messagesTo(peer: number): Iterable<LoggedMessage>;
  /** The synchronous ones among them: the only ones that may have a request. */
  synchronousTo(peer: number): Iterable<LoggedMessage>;
  /** What went to the one goes to the other. */
  rename(peer: number, successor: number): void;
  /** The copy is read by rails until it is let go: its memory stays, whatever is trimmed. */
  hold(message: LoggedMessage): void;
  letGo(message: LoggedMessage): void;
  /** A save is under way, whose cut is here. */
  cut(): void;
  /** The save of the last cut is committed: what was sent before it is not needed any more. */
  commit(isBefore: (peer: number, ctx: number, seq: number) => boolean): void;
  /** There is no such save. */
  abandon(): void;
  /** That peer never asks for these again: the first messages to it, up to one that it may ask for. */
  trimTo(peer: number, isBefore: (ctx: number, seq: number) => boolean): void;
  /** As trimTo(), of all messages to it of which that is so, wherever they stand. */
  dropTaken(peer: number, isTaken: (ctx: number, seq: number) => boolean): void;
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

/** Checksum of bytes, of the first `length` of them where that is given, going on from that of what comes before them. */
export type Checksum = (bytes: Uint8Array, before: number, length?: number) => number;

export interface TapOptions {
  readonly log: MessageLog;
  /** Messages of that context are logged. It is always the same answer. */
  readonly covers: (ctx: number) => boolean;
  /** Undefined: what is sent again is not compared. */
  readonly digest: Checksum | undefined;
  /** Told of each message that is sent again and is another one, besides its request, which ends with the same error. */
  readonly onDiffers?: ((error: MultirailError) => void) | undefined;
  /** Undefined: no outcome is recorded, and receives from anybody are of no use to a successor. */
  readonly outcomes?: MessageOutcomes;
  /** What comes from a successor on a context that is over here is answered, and no numbers of such contexts are kept. */
  readonly answersUnknown?: boolean;
  /** Processes that go back together with this one: what goes between them is not logged, and they need not say what they have. */
  readonly within?: Iterable<number> | undefined;
}

/** The tap, as those see it that messages pass. */
export interface PmlTap {
  readonly options: TapOptions;
  /** Contexts that were released since the last committed save: their numbers stay until a save is cut behind their end. */
  readonly released: number[];
  /** Sends that wait for room in the log, or for their leave. */
  readonly waitingCount: number;
  covers(peer: number, ctx: number): boolean;
  /** Sends to that peer are among those. */
  isWaitingTo(peer: PmlPeer): boolean;
  retry(): void;
  giveUp(request: SendRequest, error: MultirailError): void;
  /** A receive from anybody, which has a number, takes that message. */
  matched(request: RecvRequest, peer: number, seq: number): void;
  /** The data of that message are here: the first `length` of these bytes. Its digest is kept, if it is logged. */
  received(peer: PmlPeer, ctx: number, seq: number, tag: number, bytes: Uint8Array, length: number): void;
  /** More of that message lies in its buffer. */
  placed(message: RecvMessage): void;
  /** All of it does. */
  completed(message: RecvMessage): void;
  /** As the sender's: true when the message is logged, and left or is kept. False: nothing has changed. */
  sendEager(peer: PmlPeer, ctx: number, tag: number, buffer: Iov, signature: number): boolean;
}
