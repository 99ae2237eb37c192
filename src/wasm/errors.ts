// Errors of the binding: an error class of MPI with a sentence, and the ends of a program that are no errors of one call.
import { type ErrorCode, MultirailError } from '../errors.ts';
import { CLASSES, type ErrorClass } from './abi.ts';

/** A call of MPI ends with this error class, or with a code that the program has made itself. */
export class MpiError extends Error {
  readonly code: number;

  constructor(kind: ErrorClass | number, text: string) {
    super(text);
    this.name = 'MpiError';
    this.code = typeof kind === 'number' ? kind : CLASSES[kind][0];
  }
}

/** Thrown through the program's frames: it has ended, by exit() or by the end of the job. */
export class ProgramEnd extends Error {
  readonly exitCode: number;
  /** Why the job is to be aborted; undefined: the program has called exit(). */
  readonly reason: string | undefined;

  constructor(exitCode: number, reason?: string) {
    super(reason ?? `exit(${exitCode})`);
    this.name = 'ProgramEnd';
    this.exitCode = exitCode;
    this.reason = reason;
  }
}

const BY_CODE: Partial<Record<ErrorCode, ErrorClass>> = {
  ERR_ARG: 'ARG',
  ERR_BUFFER: 'BUFFER',
  ERR_COUNT: 'COUNT',
  ERR_RANK: 'RANK',
  ERR_TAG: 'TAG',
  ERR_COMM: 'COMM',
  ERR_GROUP: 'GROUP',
  ERR_COLLECTIVE_MISMATCH: 'OTHER',
  ERR_ROOT: 'ROOT',
  ERR_OP: 'OP',
  ERR_REQUEST: 'REQUEST',
  ERR_IN_STATUS: 'IN_STATUS',
  ERR_TRUNCATE: 'TRUNCATE',
  ERR_PROC_FAILED: 'PROC_FAILED',
  ERR_PROC_UNREACHABLE: 'PROC_FAILED',
  ERR_PROC_FAILED_PENDING: 'PROC_FAILED_PENDING',
  ERR_REVOKED: 'REVOKED',
  ERR_ABORT: 'PROC_ABORTED',
  ERR_SUPPORT: 'UNSUPPORTED_OPERATION',
  ERR_INTERNAL: 'INTERN',
};

/** Any error as one of MPI; an error of anything else is thrown on. */
export function mpiErrorOf(error: unknown): MpiError {
  if (error instanceof MpiError) return error;
  if (error instanceof MultirailError) return new MpiError(BY_CODE[error.code] ?? 'OTHER', error.message);
  throw error;
}

export const fail = (kind: ErrorClass, text: string): never => {
  throw new MpiError(kind, text);
};

/** Sentences of the error classes, by their values. */
const SENTENCES = new Map<number, string>(
  Object.entries(CLASSES).map(([name, [value, text]]) => [
    value,
    value === 0 ? 'MPI_SUCCESS: no error' : `${prefixOf(value)}_ERR_${name}: ${text}`,
  ]),
);

function prefixOf(value: number): string {
  return value > 100 ? 'MPIX' : 'MPI';
}

export const sentenceOf = (errorClass: number): string | undefined => SENTENCES.get(errorClass);
