// The collectives of values on a communicator: what mpi4py spells in lower case.

import type { Combine } from './coll/objects.ts';
import * as calls from './coll/objects.ts';
import { Collectives } from './collectives.ts';
import type { CallOptions } from './constants.ts';

/**
 * Values travel by structured clone; memory of ArrayBuffers and views from 64 KiB on is sent from where it is, uncopied, and must stay as it
 * is until the call has ended. What a rank gets of itself is the value itself, not a clone.
 */
export class ObjectCollectives extends Collectives {
  /** Resolves with the root's value at every rank. */
  bcastObject<T>(value: T, root = 0, options?: CallOptions): Promise<T> {
    return this.run(calls.bcastObject<T>, [value, root, options], 2);
  }

  /** Resolves with the values of all ranks at the root, with null elsewhere. */
  gatherObject<T>(value: T, root = 0, options?: CallOptions): Promise<T[] | null> {
    return this.run(calls.gatherObject<T>, [value, root, options], 2);
  }

  /** Resolves with the values of all ranks. */
  allgatherObject<T>(value: T, options?: CallOptions): Promise<T[]> {
    return this.run(calls.allgatherObject<T>, [value, options], 1);
  }

  /** Resolves with `values[rank]` of the root; elsewhere `values` is null. */
  scatterObject<T>(values: readonly T[] | null, root = 0, options?: CallOptions): Promise<T> {
    return this.run(calls.scatterObject<T>, [values, root, options], 2);
  }

  /** Value i goes to rank i; resolves with the values for this rank, by sender. */
  alltoallObject<T>(values: readonly T[], options?: CallOptions): Promise<T[]> {
    return this.run(calls.alltoallObject<T>, [values, options], 1);
  }

  /**
   * Combines the values of all ranks, in rank order, as `combine` says of two of them, which must be associative: the result at the root,
   * null elsewhere. What it throws ends the call on every rank, with ERR_OP.
   */
  reduceObject<T>(value: T, combine: Combine<T>, root = 0, options?: CallOptions): Promise<T | null> {
    return this.run(calls.reduceObject<T>, [value, combine, root, options], 3);
  }

  /** As reduceObject(), with the result at every rank. */
  allreduceObject<T>(value: T, combine: Combine<T>, options?: CallOptions): Promise<T> {
    return this.run(calls.allreduceObject<T>, [value, combine, options], 2);
  }

  // ---------------------------------------------------------------- blocking

  bcastObjectSync<T>(value: T, root = 0, options?: CallOptions): T {
    return this.runSync(calls.bcastObject<T>, [value, root, options], 2);
  }

  gatherObjectSync<T>(value: T, root = 0, options?: CallOptions): T[] | null {
    return this.runSync(calls.gatherObject<T>, [value, root, options], 2);
  }

  allgatherObjectSync<T>(value: T, options?: CallOptions): T[] {
    return this.runSync(calls.allgatherObject<T>, [value, options], 1);
  }

  scatterObjectSync<T>(values: readonly T[] | null, root = 0, options?: CallOptions): T {
    return this.runSync(calls.scatterObject<T>, [values, root, options], 2);
  }

  alltoallObjectSync<T>(values: readonly T[], options?: CallOptions): T[] {
    return this.runSync(calls.alltoallObject<T>, [values, options], 1);
  }

  reduceObjectSync<T>(value: T, combine: Combine<T>, root = 0, options?: CallOptions): T | null {
    return this.runSync(calls.reduceObject<T>, [value, combine, root, options], 3);
  }

  allreduceObjectSync<T>(value: T, combine: Combine<T>, options?: CallOptions): T {
    return this.runSync(calls.allreduceObject<T>, [value, combine, options], 2);
  }
}
