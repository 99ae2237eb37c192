// The collectives of a communicator as promises. Each is one line, since all forms run the same call (coll/calls.ts).

import type { MessageBuffer } from './buffers.ts';
import type { Counts, RootBuffer } from './coll/calls.ts';
import * as calls from './coll/calls.ts';
import type { InPlace } from './coll/memory.ts';
import { CollectiveRuns } from './collective-runs.ts';
import type { CallOptions } from './constants.ts';
import type { Op } from './op.ts';

export class Collectives extends CollectiveRuns {
  /**
   * Waits for all: resolves once every rank of the communicator has called it (MPI-4.1, section 6.3).
   *
   * @param options When the call ends before its time, at every rank.
   * @throws ERR_ARG: an option is unknown or out of range; nothing was sent.
   * @throws ERR_TRUNCATE, ERR_COLLECTIVE_MISMATCH: the calls that the ranks have made do not fit together.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: a rank that the call needs is gone, or the job was aborted.
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  barrier(options?: CallOptions): Promise<void> {
    return this.run(calls.barrier, [options], 0);
  }

  /**
   * Copies what the buffer of the root holds into the buffers of all other ranks (MPI-4.1, section 6.4). Resolves when the buffer may be
   * used again at this rank; until then it belongs to the library.
   *
   * @param buffer Read at the root, written at all others; of the same length in bytes everywhere.
   * @param root Rank of the root, the same at every rank; 0 by default.
   * @param options When the call ends before its time, at every rank.
   * @throws ERR_ROOT, ERR_BUFFER: an argument does not fit; nothing was sent.
   * @throws ERR_TRUNCATE, ERR_COLLECTIVE_MISMATCH: the calls that the ranks have made do not fit together.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: a rank that the call needs is gone, or the job was aborted.
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  bcast(buffer: MessageBuffer, root?: number, options?: CallOptions): Promise<void> {
    return this.run(calls.bcast, [buffer, root, options], 2);
  }

  /**
   * Combines the send buffers of all ranks, element by element, and puts the result into `recv` at the root (MPI-4.1, section 6.9.1).
   * Resolves when this rank is done with its buffers, which belong to the library until then.
   *
   * @param send What this rank contributes: a typed array, or a vector of one. IN_PLACE at the root: its contribution is in `recv`.
   * @param recv Where the result comes: of the class and length of `send` at the root, null elsewhere.
   * @param op How two elements are combined; Op.SUM by default.
   * @param root Rank of the root, the same at every rank; 0 by default.
   * @param options When the call ends before its time, at every rank.
   * @throws ERR_ROOT, ERR_BUFFER, ERR_COUNT, ERR_OP, ERR_ARG: an argument does not fit; nothing was sent.
   * @throws ERR_TRUNCATE, ERR_COLLECTIVE_MISMATCH: the calls that the ranks have made do not fit together.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: a rank that the call needs is gone, or the job was aborted.
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  reduce(send: MessageBuffer | InPlace, recv: RootBuffer, op?: Op, root?: number, options?: CallOptions): Promise<void> {
    return this.run(calls.reduce, [send, recv, op, root, options], 4);
  }

  /**
   * As reduce(), with the result at every rank: the same bits everywhere (MPI-4.1, section 6.9.6).
   *
   * @param send What this rank contributes: a typed array, or a vector of one. IN_PLACE: it is in `recv`.
   * @param recv Where the result comes: of the class and length of `send`.
   * @param op How two elements are combined; Op.SUM by default.
   * @param options When the call ends before its time, at every rank.
   * @throws ERR_BUFFER, ERR_COUNT, ERR_OP: an argument does not fit; nothing was sent.
   * @throws ERR_TRUNCATE, ERR_COLLECTIVE_MISMATCH: the calls that the ranks have made do not fit together.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: a rank that the call needs is gone, or the job was aborted.
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  allreduce(send: MessageBuffer | InPlace, recv: MessageBuffer, op?: Op, options?: CallOptions): Promise<void> {
    return this.run(calls.allreduce, [send, recv, op, options], 3);
  }

  /**
   * Puts the send buffers of all ranks, in the order of the ranks and all of the same length, one behind the other into `recv` at the root
   * (MPI-4.1, section 6.5). Resolves when this rank is done with its buffers, which belong to the library until then.
   *
   * @param send What this rank contributes: a buffer of any kind. IN_PLACE at the root: its part is in `recv`, at its place.
   * @param recv As long as `send` times the number of ranks at the root, null elsewhere.
   * @param root Rank of the root, the same at every rank; 0 by default.
   * @param options When the call ends before its time, at every rank.
   * @throws ERR_ROOT, ERR_BUFFER, ERR_COUNT, ERR_ARG: an argument does not fit; nothing was sent.
   * @throws ERR_TRUNCATE, ERR_COLLECTIVE_MISMATCH: the calls that the ranks have made do not fit together.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: a rank that the call needs is gone, or the job was aborted.
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  gather(send: MessageBuffer | InPlace, recv: RootBuffer, root?: number, options?: CallOptions): Promise<void> {
    return this.run(calls.gather, [send, recv, root, options], 3);
  }

  /**
   * As gather() with lengths that differ: the root takes `counts[i]` elements from rank i into `recv`, from element `displs[i]` on
   * (MPI-4.1, section 6.5).
   *
   * @param send What this rank contributes: a buffer of any kind. IN_PLACE at the root: its part is in `recv`, at its place.
   * @param recv Where the parts come at the root, null elsewhere.
   * @param counts Elements from each rank: of the typed array `recv`, else bytes. Only looked at at the root, null elsewhere.
   * @param displs First element of each part in `recv`; without it the parts follow one another.
   * @param root Rank of the root, the same at every rank; 0 by default.
   * @param options When the call ends before its time, at every rank.
   * @throws ERR_ROOT, ERR_BUFFER, ERR_COUNT, ERR_ARG: an argument does not fit; nothing was sent.
   * @throws ERR_TRUNCATE, ERR_COLLECTIVE_MISMATCH: the calls that the ranks have made do not fit together.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: a rank that the call needs is gone, or the job was aborted.
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  gatherv(
    send: MessageBuffer | InPlace,
    recv: RootBuffer,
    counts: Counts | null,
    displs?: Counts | null,
    root?: number,
    options?: CallOptions,
  ): Promise<void> {
    return this.run(calls.gatherv, [send, recv, counts, displs, root, options], 5);
  }

  /**
   * Cuts the send buffer of the root into as many parts as there are ranks, all of the same length, and gives each rank its part (MPI-4.1,
   * section 6.6). Resolves when this rank is done with its buffers, which belong to the library until then.
   *
   * @param send As long as `recv` times the number of ranks at the root, null elsewhere.
   * @param recv Where the part of this rank comes. IN_PLACE at the root: its part stays where it is in `send`.
   * @param root Rank of the root, the same at every rank; 0 by default.
   * @param options When the call ends before its time, at every rank.
   * @throws ERR_ROOT, ERR_BUFFER, ERR_COUNT, ERR_ARG: an argument does not fit; nothing was sent.
   * @throws ERR_TRUNCATE, ERR_COLLECTIVE_MISMATCH: the calls that the ranks have made do not fit together.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: a rank that the call needs is gone, or the job was aborted.
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  scatter(send: RootBuffer, recv: MessageBuffer | InPlace, root?: number, options?: CallOptions): Promise<void> {
    return this.run(calls.scatter, [send, recv, root, options], 3);
  }

  /**
   * As scatter() with lengths that differ: rank i gets `counts[i]` elements of the send buffer of the root, from element `displs[i]` on
   * (MPI-4.1, section 6.6).
   *
   * @param send What is cut at the root, null elsewhere.
   * @param counts Elements for each rank: of the typed array `send`, else bytes. Only looked at at the root, null elsewhere.
   * @param displs First element of each part in `send`; null: the parts follow one another.
   * @param recv Where the part of this rank comes. IN_PLACE at the root: its part stays where it is in `send`.
   * @param root Rank of the root, the same at every rank; 0 by default.
   * @param options When the call ends before its time, at every rank.
   * @throws ERR_ROOT, ERR_BUFFER, ERR_COUNT, ERR_ARG: an argument does not fit; nothing was sent.
   * @throws ERR_TRUNCATE, ERR_COLLECTIVE_MISMATCH: the calls that the ranks have made do not fit together.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: a rank that the call needs is gone, or the job was aborted.
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  scatterv(
    send: RootBuffer,
    counts: Counts | null,
    displs: Counts | null,
    recv: MessageBuffer | InPlace,
    root?: number,
    options?: CallOptions,
  ): Promise<void> {
    return this.run(calls.scatterv, [send, counts, displs, recv, root, options], 5);
  }

  /**
   * As gather(), with the result at every rank (MPI-4.1, section 6.7).
   *
   * @param send What this rank contributes: a buffer of any kind. IN_PLACE: its part is in `recv`, at its place.
   * @param recv As long as `send` times the number of ranks.
   * @param options When the call ends before its time, at every rank.
   * @throws ERR_BUFFER, ERR_COUNT: an argument does not fit; nothing was sent.
   * @throws ERR_TRUNCATE, ERR_COLLECTIVE_MISMATCH: the calls that the ranks have made do not fit together.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: a rank that the call needs is gone, or the job was aborted.
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  allgather(send: MessageBuffer | InPlace, recv: MessageBuffer, options?: CallOptions): Promise<void> {
    return this.run(calls.allgather, [send, recv, options], 2);
  }

  /**
   * As gatherv(), with the result at every rank (MPI-4.1, section 6.7). All ranks give the same counts; the displacements are those of each
   * rank.
   *
   * @param send What this rank contributes: a buffer of any kind. IN_PLACE: its part is in `recv`, at its place.
   * @param recv Where the parts come.
   * @param counts Elements from each rank: of the typed array `recv`, else bytes.
   * @param displs First element of each part in `recv`; without it the parts follow one another.
   * @param options When the call ends before its time, at every rank.
   * @throws ERR_BUFFER, ERR_COUNT, ERR_ARG: an argument does not fit; nothing was sent.
   * @throws ERR_TRUNCATE, ERR_COLLECTIVE_MISMATCH: the calls that the ranks have made do not fit together.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: a rank that the call needs is gone, or the job was aborted.
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  allgatherv(
    send: MessageBuffer | InPlace,
    recv: MessageBuffer,
    counts: Counts,
    displs?: Counts | null,
    options?: CallOptions,
  ): Promise<void> {
    return this.run(calls.allgatherv, [send, recv, counts, displs, options], 4);
  }

  /**
   * Sends part i of the send buffer to rank i, and puts what comes from rank i into part i of the receive buffer; all parts are of the same
   * length (MPI-4.1, section 6.8). Resolves when this rank is done with its buffers, which belong to the library until then.
   *
   * @param send A buffer of as many parts as there are ranks. IN_PLACE: the parts are in `recv`, and are replaced.
   * @param recv As long as `send`.
   * @param options When the call ends before its time, at every rank.
   * @throws ERR_BUFFER, ERR_COUNT: an argument does not fit; nothing was sent.
   * @throws ERR_TRUNCATE, ERR_COLLECTIVE_MISMATCH: the calls that the ranks have made do not fit together.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: a rank that the call needs is gone, or the job was aborted.
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  alltoall(send: MessageBuffer | InPlace, recv: MessageBuffer, options?: CallOptions): Promise<void> {
    return this.run(calls.alltoall, [send, recv, options], 2);
  }

  /**
   * As alltoall() with lengths that differ (MPI-4.1, section 6.8). Parts without elements are not sent.
   *
   * @param send What the parts are cut from. IN_PLACE: the parts are in `recv`, and are replaced.
   * @param sendCounts Elements for each rank: of the typed array `send`, else bytes. Not looked at with IN_PLACE; null then.
   * @param sendDispls First element of each part in `send`; null: the parts follow one another.
   * @param recv Where the parts come.
   * @param recvCounts Elements from each rank: of the typed array `recv`, else bytes.
   * @param recvDispls First element of each part in `recv`; without it the parts follow one another.
   * @param options When the call ends before its time, at every rank.
   * @throws ERR_BUFFER, ERR_COUNT, ERR_ARG: an argument does not fit; nothing was sent.
   * @throws ERR_TRUNCATE, ERR_COLLECTIVE_MISMATCH: the calls that the ranks have made do not fit together.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: a rank that the call needs is gone, or the job was aborted.
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  alltoallv(
    send: MessageBuffer | InPlace,
    sendCounts: Counts | null,
    sendDispls: Counts | null,
    recv: MessageBuffer,
    recvCounts: Counts,
    recvDispls?: Counts | null,
    options?: CallOptions,
  ): Promise<void> {
    return this.run(calls.alltoallv, [send, sendCounts, sendDispls, recv, recvCounts, recvDispls, options], 6);
  }

  /**
   * As alltoall() with a buffer of any shape for each rank (MPI-4.1, section 6.8).
   *
   * @param sends `sends[i]` goes to rank i. IN_PLACE: what `recvs[i]` holds goes to rank i, and is replaced.
   * @param recvs `recvs[i]` takes what comes from rank i; as long as what that rank sends.
   * @param options When the call ends before its time, at every rank.
   * @throws ERR_BUFFER, ERR_COUNT: an argument does not fit; nothing was sent.
   * @throws ERR_TRUNCATE, ERR_COLLECTIVE_MISMATCH: the calls that the ranks have made do not fit together.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: a rank that the call needs is gone, or the job was aborted.
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  alltoallw(sends: readonly MessageBuffer[] | InPlace, recvs: readonly MessageBuffer[], options?: CallOptions): Promise<void> {
    return this.run(calls.alltoallw, [sends, recvs, options], 2);
  }

  /**
   * Combines as reduce(), and gives `counts[i]` elements of the result to rank i, in the order of the ranks (MPI-4.1, section 6.10.2).
   *
   * @param send What this rank contributes: a typed array, or a vector of one. As long as all counts together. IN_PLACE: it is in
   *   `recv`, and the part of this rank comes into the beginning of `recv`.
   * @param recv Where the part of this rank comes: as many elements as its count.
   * @param counts Elements for each rank, the same at every rank.
   * @param op How two elements are combined; Op.SUM by default.
   * @param options When the call ends before its time, at every rank.
   * @throws ERR_BUFFER, ERR_COUNT, ERR_OP, ERR_ARG: an argument does not fit; nothing was sent.
   * @throws ERR_TRUNCATE, ERR_COLLECTIVE_MISMATCH: the calls that the ranks have made do not fit together.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: a rank that the call needs is gone, or the job was aborted.
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  reduceScatter(send: MessageBuffer | InPlace, recv: MessageBuffer, counts: Counts, op?: Op, options?: CallOptions): Promise<void> {
    return this.run(calls.reduceScatter, [send, recv, counts, op, options], 4);
  }

  /**
   * As reduceScatter() with parts of the same length (MPI-4.1, section 6.10.1).
   *
   * @param send What this rank contributes: a typed array, or a vector of one. As long as `recv` times the number of ranks. IN_PLACE: it
   *   is in `recv`, and the part of this rank comes into the beginning of `recv`.
   * @param recv Where the part of this rank comes.
   * @param op How two elements are combined; Op.SUM by default.
   * @param options When the call ends before its time, at every rank.
   * @throws ERR_BUFFER, ERR_COUNT, ERR_OP: an argument does not fit; nothing was sent.
   * @throws ERR_TRUNCATE, ERR_COLLECTIVE_MISMATCH: the calls that the ranks have made do not fit together.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: a rank that the call needs is gone, or the job was aborted.
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  reduceScatterBlock(send: MessageBuffer | InPlace, recv: MessageBuffer, op?: Op, options?: CallOptions): Promise<void> {
    return this.run(calls.reduceScatterBlock, [send, recv, op, options], 3);
  }

  /**
   * Combines what the ranks up to this one contribute, this one included (MPI-4.1, section 6.11.1).
   *
   * @param send What this rank contributes: a typed array, or a vector of one. IN_PLACE: it is in `recv`.
   * @param recv Where the result comes: of the class and length of `send`.
   * @param op How two elements are combined; Op.SUM by default.
   * @param options When the call ends before its time, at every rank.
   * @throws ERR_BUFFER, ERR_COUNT, ERR_OP: an argument does not fit; nothing was sent.
   * @throws ERR_TRUNCATE, ERR_COLLECTIVE_MISMATCH: the calls that the ranks have made do not fit together.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: a rank that the call needs is gone, or the job was aborted.
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  scan(send: MessageBuffer | InPlace, recv: MessageBuffer, op?: Op, options?: CallOptions): Promise<void> {
    return this.run(calls.scan, [send, recv, op, options], 3);
  }

  /**
   * Combines what the ranks before this one contribute (MPI-4.1, section 6.11.2): `recv` of rank 0 stays as it is.
   *
   * @param send What this rank contributes: a typed array, or a vector of one. IN_PLACE: it is in `recv`.
   * @param recv Where the result comes: of the class and length of `send`.
   * @param op How two elements are combined; Op.SUM by default.
   * @param options When the call ends before its time, at every rank.
   * @throws ERR_BUFFER, ERR_COUNT, ERR_OP: an argument does not fit; nothing was sent.
   * @throws ERR_TRUNCATE, ERR_COLLECTIVE_MISMATCH: the calls that the ranks have made do not fit together.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: a rank that the call needs is gone, or the job was aborted.
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  exscan(send: MessageBuffer | InPlace, recv: MessageBuffer, op?: Op, options?: CallOptions): Promise<void> {
    return this.run(calls.exscan, [send, recv, op, options], 3);
  }
}
