// What is known of a message that was received, probed or sent.
import { MultirailError } from '../errors.ts';
import { ANY_TAG, describe, PROC_NULL, UNDEFINED } from './constants.ts';

/**
 * What is known of a message that was received, probed or sent (MPI-4.1, section 3.2.5). It never changes, and calls with the same outcome may
 * return the same object.
 */
export class Status {
  /** Rank of the sender in the communicator of the call; for a send the own rank. */
  readonly source: number;
  /** Tag of the message. */
  readonly tag: number;
  /** Bytes received; for a probe and a send the length of the message. */
  readonly bytes: number;
  /** Whether the receive was cancelled before it matched: then nothing else here means anything. */
  readonly cancelled: boolean;

  /** @internal */
  constructor(source: number, tag: number, bytes: number, cancelled = false) {
    this.source = source;
    this.tag = tag;
    this.bytes = bytes;
    this.cancelled = cancelled;
  }

  /**
   * Number of elements received; UNDEFINED when it is not a whole number (MPI-4.1, section 3.2.5).
   *
   * @param type A class of typed arrays, such as Float64Array, or the length of an element in bytes.
   * @throws ERR_ARG: the type is neither.
   */
  count(type: { readonly BYTES_PER_ELEMENT: number } | number): number {
    const unit = typeof type === 'number' ? type : type?.BYTES_PER_ELEMENT;
    if (!Number.isInteger(unit) || unit < 1)
      throw new MultirailError(
        'ERR_ARG',
        `type is ${describe(type)}; expected a class of typed arrays, such as Float64Array, or the bytes of one element`,
      );
    return this.bytes % unit === 0 ? this.bytes / unit : UNDEFINED;
  }
}

/** The status of a receive from PROC_NULL. */
export const PROC_NULL_STATUS = new Status(PROC_NULL, ANY_TAG, 0);
/** The status of a request that is null or inactive. */
export const EMPTY_STATUS = new Status(ANY_TAG, ANY_TAG, 0);
