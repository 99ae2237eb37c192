// The pair channel of a process to one other replica of its rank, and what is known of that one. A lead has a link to each of its shadows, a shadow
// one to its lead.
import type { SendRequest } from '../../pml/records.ts';
import { Deque } from '../../util/deque.ts';
import type { Word } from './digest.ts';
import { BATCH_BYTES_MAX } from './wire.ts';

/** Another replica, and how it is reached. */
export interface Twin {
  /** Number of the process. */
  readonly number: number;
  /** What it is called in sentences. */
  readonly name: string;
  /** Two contexts of the pair channel: batches, and bytes that follow them. */
  readonly ctx: number;
  readonly bulkCtx: number;
}

/** The word of a shadow. */
export interface Heard {
  readonly word: Omit<Word, 'digest'>;
  /** Undefined: it is on its way. */
  digest: Uint8Array | undefined;
}

export class Link {
  readonly twin: Twin;
  /** Where its batches arrive. */
  readonly memory = new Uint8Array(BATCH_BYTES_MAX);
  /** What was said to it, and has not left. */
  readonly saying = new Set<SendRequest>();
  /** It is gone, or was told to leave. */
  isLost = false;
  /** What it has come to its end with. */
  finished: { readonly messages: number; readonly requests: number } | undefined;
  /** Requests that it is known to have begun. */
  requests = 0;
  /** Of a shadow: its words, as far as they were not compared. */
  readonly words = new Deque<Heard>();
  /** Of a shadow: bytes of bursts that it has taken. */
  consumed = 0;
  /** Of a shadow: the message whose bytes it was asked for and has not shown. */
  asked: number | undefined;
  /** Of a shadow: it was told that it was outvoted. */
  isBlamed = false;

  constructor(twin: Twin) {
    this.twin = twin;
  }
}
