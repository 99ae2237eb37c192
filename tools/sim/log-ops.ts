// Operations of programs of the profile `log`, and the contexts of their messages.

/** Contexts of the program: messages, headers and bulks of objects, collectives. */
export const USER_CTX = 20;
export const HEADER_CTX = 21;
export const BULK_CTX = 22;
export const COLL_CTX = 23;
/** Messages that are received from anybody. */
export const WILD_CTX = 24;
/** The first of the contexts that are made and freed. */
export const MADE_CTX = 40;
export const MADE_MAX = 10;
export const COVERED: readonly number[] = [
  ...[USER_CTX, HEADER_CTX, BULK_CTX, COLL_CTX, WILD_CTX],
  ...Array.from({ length: MADE_MAX }, (_, i) => MADE_CTX + i),
];
/** Messages of collectives are no longer. */
export const COLL_BYTES_MAX = 2000;

export interface Send {
  readonly op: 'send';
  readonly to: number;
  readonly ctx: number;
  readonly tag: number;
  readonly bytes: number;
  readonly sync: boolean;
}

export interface Receive {
  /** post: without waiting, until the end of the step. again: as post, with the request of the one before. probe: a matched probe first. */
  readonly op: 'post' | 'again' | 'receive' | 'probe';
  readonly from: number;
  readonly ctx: number;
  readonly tag: number;
  readonly bytes: number;
}

/** The communicator of that context is freed: whatever was sent on it has come. */
export interface Free {
  readonly op: 'free';
  readonly ctx: number;
}

export interface AnyReceive {
  readonly op: 'any';
  readonly how: 'receive' | 'probe' | 'post';
  readonly ctx: number;
  /** -1: any. */
  readonly tag: number;
  readonly bytes: number;
}

export type WildOp =
  | AnyReceive
  /** To the source of the last message from anybody. */
  | { readonly op: 'reply'; readonly ctx: number; readonly tag: number; readonly bytes: number }
  /** Looks whether a message is there. */
  | { readonly op: 'peek'; readonly ctx: number; readonly from: number; readonly tag: number }
  /** Looks whether the oldest posted receive has ended. */
  | { readonly op: 'test' }
  /** Waits for any of the posted receives, if there is one. */
  | { readonly op: 'waitAny' };

/** join: the end of a step, all that was begun in it is done. look: all of a group look whether somebody needs a save of theirs. */
export type Op = Send | Receive | Free | WildOp | { readonly op: 'join' | 'save' | 'look' | 'end' };
