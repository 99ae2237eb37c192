// What is known of a message that was received, probed or sent.
import { MultirailError } from '../errors.ts';
import { ANY_TAG, PROC_NULL, UNDEFINED } from './constants.ts';

export class Status {
  /** Rank of the sender in the communicator of the call; for a send the own rank. */
  readonly source: number;
  readonly tag: number;
  /** Bytes received; for a probe the length of the message. */
  readonly bytes: number;
  /** The receive was cancelled before it matched: nothing else here means anything. */
  readonly cancelled: boolean;

  constructor(source: number, tag: number, bytes: number, cancelled = false) {
    this.source = source;
    this.tag = tag;
    this.bytes = bytes;
    this.cancelled = cancelled;
  }

  /** Number of elements of a typed array class, or of that many bytes each; UNDEFINED when it is not a whole number. */
  count(type: { readonly BYTES_PER_ELEMENT: number } | number): number {
    const unit = typeof type === 'number' ? type : type?.BYTES_PER_ELEMENT;
    if (!Number.isInteger(unit) || unit < 1) throw new MultirailError('ERR_ARG', 'type is not a typed array class, nor a number of bytes');
    return this.bytes % unit === 0 ? this.bytes / unit : UNDEFINED;
  }
}

/** Of a receive from PROC_NULL. */
export const PROC_NULL_STATUS = new Status(PROC_NULL, ANY_TAG, 0);
/** Of a request that is null or inactive. */
export const EMPTY_STATUS = new Status(ANY_TAG, ANY_TAG, 0);
