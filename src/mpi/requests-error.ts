// The error of calls on several requests: one for all that failed, with the error of each.
import { type ErrorCode, MultirailError } from '../errors.ts';
import type { Status } from './status.ts';

/**
 * What waitAll(), waitSome(), testAll() and testSome() end with when at least one request failed; its code is ERR_IN_STATUS (MPI-4.1,
 * section 3.7.5).
 */
export class RequestsError extends MultirailError {
  /** The errors by index in the list; undefined for those that ended well or are under way. */
  readonly errors: readonly (MultirailError | undefined)[];

  /**
   * The statuses by index in the list; undefined for those that are under way, and in waitSome() and testSome() for those that were not
   * looked at.
   */
  readonly statuses: readonly (Status | undefined)[];

  /** @internal */
  constructor(errors: readonly (MultirailError | undefined)[], statuses: readonly (Status | undefined)[]) {
    const failed = errors.flatMap((error, i) => (error === undefined ? [] : [`[${i}] ${error.message}`]));
    const more = failed.length > 4 ? `; and ${failed.length - 4} more` : '';
    const first = errors.find((error) => error !== undefined);
    const code: ErrorCode = 'ERR_IN_STATUS';
    super(code, `${failed.length} of ${errors.length} requests failed: ${failed.slice(0, 4).join('; ')}${more}`, { cause: first });
    this.errors = errors;
    this.statuses = statuses;
  }
}
