// The collectives of values on a communicator: what mpi4py spells in lower case.

import * as calls from './coll/objects.ts';
import { CollectiveForms } from './collective-forms.ts';
import type { CallOptions } from './constants.ts';

/**
 * Values travel by structured clone; memory of ArrayBuffers and views from 64 KiB on is sent from where it is, uncopied, and must stay as it
 * is until the call has ended. What a rank gets of itself is the value itself, not a clone.
 */
export class ObjectCollectives extends CollectiveForms {
  /**
   * Gives the value of the root to every rank, by structured clone; resolves with it. Large memory in the value is sent from where it is,
   * and must stay as it is until the call has ended.
   *
   * @param value The value at the root; not looked at elsewhere.
   * @param root Rank of the root, the same at every rank; 0 by default.
   * @param options When the call ends before its time, at every rank.
   * @throws ERR_ARG, ERR_ROOT: an argument does not fit, or the value cannot be cloned; nothing was sent.
   * @throws ERR_TRUNCATE, ERR_COLLECTIVE_MISMATCH: the calls that the ranks have made do not fit together.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: a rank that the call needs is gone, or the job was aborted.
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  bcastObject<T>(value: T, root = 0, options?: CallOptions): Promise<T> {
    return this.run(calls.bcastObject<T>, [value, root, options], 2);
  }

  /**
   * Resolves with the values of all ranks, in the order of the ranks, at the root, and with null elsewhere.
   *
   * @param value What this rank contributes.
   * @param root Rank of the root, the same at every rank; 0 by default.
   * @param options When the call ends before its time, at every rank.
   * @throws ERR_ARG, ERR_ROOT: an argument does not fit, or the value cannot be cloned; nothing was sent.
   * @throws ERR_TRUNCATE, ERR_COLLECTIVE_MISMATCH: the calls that the ranks have made do not fit together.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: a rank that the call needs is gone, or the job was aborted.
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  gatherObject<T>(value: T, root = 0, options?: CallOptions): Promise<T[] | null> {
    return this.run(calls.gatherObject<T>, [value, root, options], 2);
  }

  /**
   * Resolves with the values of all ranks, in the order of the ranks, at every rank.
   *
   * @param value What this rank contributes.
   * @param options When the call ends before its time, at every rank.
   * @throws ERR_ARG: an argument does not fit, or the value cannot be cloned; nothing was sent.
   * @throws ERR_TRUNCATE, ERR_COLLECTIVE_MISMATCH: the calls that the ranks have made do not fit together.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: a rank that the call needs is gone, or the job was aborted.
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  allgatherObject<T>(value: T, options?: CallOptions): Promise<T[]> {
    return this.run(calls.allgatherObject<T>, [value, options], 1);
  }

  /**
   * Gives `values[i]` of the root to rank i, and resolves with it.
   *
   * @param values One value for each rank at the root; null elsewhere.
   * @param root Rank of the root, the same at every rank; 0 by default.
   * @param options When the call ends before its time, at every rank.
   * @throws ERR_ARG, ERR_COUNT, ERR_ROOT: an argument does not fit, or the value cannot be cloned; nothing was sent.
   * @throws ERR_TRUNCATE, ERR_COLLECTIVE_MISMATCH: the calls that the ranks have made do not fit together.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: a rank that the call needs is gone, or the job was aborted.
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  scatterObject<T>(values: readonly T[] | null, root = 0, options?: CallOptions): Promise<T> {
    return this.run(calls.scatterObject<T>, [values, root, options], 2);
  }

  /**
   * Gives `values[i]` to rank i, and resolves with the values for this rank, in the order of their senders.
   *
   * @param values One value for each rank.
   * @param options When the call ends before its time, at every rank.
   * @throws ERR_ARG, ERR_COUNT: an argument does not fit, or the value cannot be cloned; nothing was sent.
   * @throws ERR_TRUNCATE, ERR_COLLECTIVE_MISMATCH: the calls that the ranks have made do not fit together.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: a rank that the call needs is gone, or the job was aborted.
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  alltoallObject<T>(values: readonly T[], options?: CallOptions): Promise<T[]> {
    return this.run(calls.alltoallObject<T>, [values, options], 1);
  }

  /**
   * Combines the values of all ranks, in the order of the ranks; resolves with the result at the root, and with null elsewhere.
   *
   * @param value What this rank contributes.
   * @param combine Makes one value of two; the left one is of lower ranks. It must be associative.
   * @param root Rank of the root, the same at every rank; 0 by default.
   * @param options When the call ends before its time, at every rank.
   * @throws ERR_ARG, ERR_ROOT: an argument does not fit, or the value cannot be cloned; nothing was sent.
   * @throws ERR_OP: `combine` is no function, or it threw: the call ends at every rank.
   * @throws ERR_TRUNCATE, ERR_COLLECTIVE_MISMATCH: the calls that the ranks have made do not fit together.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: a rank that the call needs is gone, or the job was aborted.
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  reduceObject<T>(value: T, combine: (left: T, right: T) => T, root = 0, options?: CallOptions): Promise<T | null> {
    return this.run(calls.reduceObject<T>, [value, combine, root, options], 3);
  }

  /**
   * As reduceObject(), with the result at every rank.
   *
   * @param value What this rank contributes.
   * @param combine Makes one value of two; the left one is of lower ranks. It must be associative.
   * @param options When the call ends before its time, at every rank.
   * @throws ERR_ARG: an argument does not fit, or the value cannot be cloned; nothing was sent.
   * @throws ERR_OP: `combine` is no function, or it threw: the call ends at every rank.
   * @throws ERR_TRUNCATE, ERR_COLLECTIVE_MISMATCH: the calls that the ranks have made do not fit together.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: a rank that the call needs is gone, or the job was aborted.
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  allreduceObject<T>(value: T, combine: (left: T, right: T) => T, options?: CallOptions): Promise<T> {
    return this.run(calls.allreduceObject<T>, [value, combine, options], 2);
  }

  // ---------------------------------------------------------------- blocking

  /**
   * As bcastObject(), without a promise: returns when this rank is done. The event loop does not run meanwhile, and no signal can come.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part); nothing was sent.
   */
  bcastObjectSync<T>(value: T, root = 0, options?: CallOptions): T {
    return this.runSync(calls.bcastObject<T>, [value, root, options], 2);
  }

  /**
   * As gatherObject(), without a promise: returns when this rank is done. The event loop does not run meanwhile, and no signal can come.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part); nothing was sent.
   */
  gatherObjectSync<T>(value: T, root = 0, options?: CallOptions): T[] | null {
    return this.runSync(calls.gatherObject<T>, [value, root, options], 2);
  }

  /**
   * As allgatherObject(), without a promise: returns when this rank is done. The event loop does not run meanwhile, and no signal can come.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part); nothing was sent.
   */
  allgatherObjectSync<T>(value: T, options?: CallOptions): T[] {
    return this.runSync(calls.allgatherObject<T>, [value, options], 1);
  }

  /**
   * As scatterObject(), without a promise: returns when this rank is done. The event loop does not run meanwhile, and no signal can come.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part); nothing was sent.
   */
  scatterObjectSync<T>(values: readonly T[] | null, root = 0, options?: CallOptions): T {
    return this.runSync(calls.scatterObject<T>, [values, root, options], 2);
  }

  /**
   * As alltoallObject(), without a promise: returns when this rank is done. The event loop does not run meanwhile, and no signal can come.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part); nothing was sent.
   */
  alltoallObjectSync<T>(values: readonly T[], options?: CallOptions): T[] {
    return this.runSync(calls.alltoallObject<T>, [values, options], 1);
  }

  /**
   * As reduceObject(), without a promise: returns when this rank is done. The event loop does not run meanwhile, and no signal can come.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part); nothing was sent.
   */
  reduceObjectSync<T>(value: T, combine: (left: T, right: T) => T, root = 0, options?: CallOptions): T | null {
    return this.runSync(calls.reduceObject<T>, [value, combine, root, options], 3);
  }

  /**
   * As allreduceObject(), without a promise: returns when this rank is done. The event loop does not run meanwhile, and no signal can come.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part); nothing was sent.
   */
  allreduceObjectSync<T>(value: T, combine: (left: T, right: T) => T, options?: CallOptions): T {
    return this.runSync(calls.allreduceObject<T>, [value, combine, options], 2);
  }
}
