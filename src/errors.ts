// Every error that multirail throws or ends a request with. One class, one table of stable codes.
// Imports nothing: any folder may use it.

/**
 * Stable codes, one sentence each. Match on `error.code`, never on the message.
 * Names follow the MPI error classes without their `MPI_` prefix where MPI has one.
 */
export const ERROR_CODES = {
  ERR_ARG: 'An argument is of the wrong kind or out of range.',
  ERR_BUFFER: 'The buffer is not a view of bytes, is detached, or is too small for the call.',
  ERR_COUNT: 'A count is negative or not an integer.',
  ERR_RANK: 'The rank is not a member of the communicator.',
  ERR_TAG: 'The tag is not an integer between 0 and TAG_UB (or ANY_TAG where that is allowed).',
  ERR_COMM: 'The communicator is freed or not valid here.',
  ERR_GROUP: 'The group is not valid for this call.',
  ERR_COLLECTIVE_MISMATCH: 'Ranks of a communicator have made collective calls that do not belong together; the message names both.',
  ERR_ROOT: 'The root is not a rank of the communicator.',
  ERR_OP: 'The operation does not fit the elements of the buffer, or it threw.',
  ERR_REQUEST: 'The request is not valid for this call.',
  ERR_IN_STATUS: 'At least one request of a waitAll, waitSome, testAll or testSome failed; `errors` of the error lists each.',
  ERR_TRUNCATE: 'The message was longer than the posted buffer; the buffer holds its first bytes.',
  ERR_CANCELLED: 'The receive was cancelled before it matched.',
  ERR_TIMEOUT: 'The time that the caller allowed is over.',
  ERR_ABORTED: 'The AbortSignal that the caller passed was aborted.',
  ERR_PROC_FAILED: 'The peer process is dead.',
  ERR_PROC_FAILED_PENDING:
    'A member has failed that is not acknowledged, and might have sent what the receive waits for; the request stays active.',
  ERR_REVOKED: 'The communicator was revoked.',
  ERR_SPARES: 'More members have failed than processes stand by to take their places.',
  ERR_PROC_UNREACHABLE: 'No rail to the peer came back within pml_peer_timeout_ms.',
  ERR_FINALIZED: 'The runtime is finalized, or is being finalized.',
  ERR_FINALIZE_TIMEOUT: 'finalize() gave up waiting; the message names what was not delivered.',
  ERR_UNDELIVERED:
    'Everybody has left by finalize(), and messages of this rank were never received; the message names them by rank and tag.',
  ERR_INIT: 'The runtime could not be started.',
  ERR_CONFIG: 'A parameter has an unknown name or a value out of range.',
  ERR_HANDSHAKE: 'A connection was refused in the handshake.',
  ERR_PROTOCOL: 'A frame breaks the protocol.',
  ERR_RAIL: 'A rail could not be used.',
  ERR_LAUNCH: 'The job could not be started.',
  ERR_OOB: 'The out-of-band channel failed.',
  ERR_ABORT: 'The job was aborted.',
  ERR_CHECKPOINT: 'There is no such save or image, or what it has does not fit; the message says which.',
  ERR_REPLAY: 'What a process repeats after a failure is not what it did before it; the message names what it sent, and both digests.',
  ERR_DIVERGED:
    'The replicas of a rank have not done the same; the message names the rank, the message that differs, and where, and both digests.',
  ERR_CORRUPT: 'An image or a manifest of a save is damaged; the message names the part and the byte.',
  ERR_STORE: 'A store could not be written, read or listed; `cause` says why.',
  ERR_SUPPORT: 'This cannot be done here: the message says what is missing.',
  ERR_INTERNAL: 'An invariant of multirail itself is broken: please report it with the trace.',
} as const;

/** A code of the table. */
export type ErrorCode = keyof typeof ERROR_CODES;

/** What a MultirailError knows besides its code. */
export interface ErrorDetails {
  /** World rank that reports the error. */
  rank?: number;
  /** World rank of the other side. */
  peer?: number;
  /** Rail concerned, by its key, as rails() has it. */
  rail?: string;
  /** Tag of the message concerned. */
  tag?: number;
  /** What came, of a message that was cut off. */
  status?: { readonly source: number; readonly tag: number; readonly bytes: number };
  /** What led to it. */
  cause?: unknown;
}

/** Every error of the library. Match on `code`, which is stable, and never on the message, which is for people (MPI-4.1, section 9.4). */
export class MultirailError extends Error {
  /** What went wrong: one of ERROR_CODES. */
  readonly code: ErrorCode;
  /** World rank that reports the error, where it is known. */
  readonly rank: number | undefined;
  /** World rank of the other side, where there is one. */
  readonly peer: number | undefined;
  /** Rail concerned, by its key, where there is one. */
  readonly rail: string | undefined;
  /** Tag of the message concerned, where there is one. */
  readonly tag: number | undefined;
  /** Of ERR_TRUNCATE: who has sent the message that was cut off, its tag, and how many bytes the buffer holds of it. */
  readonly status: { readonly source: number; readonly tag: number; readonly bytes: number } | undefined;

  /**
   * Makes an error of this kind.
   *
   * @param code One of ERROR_CODES.
   * @param message What was given, what was expected, what to do.
   * @param details Ranks, rail, tag and cause, where they are known.
   */
  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(`${code}: ${message}`, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = 'MultirailError';
    this.code = code;
    this.rank = details.rank;
    this.peer = details.peer;
    this.rail = details.rail;
    this.tag = details.tag;
    this.status = details.status;
  }
}
