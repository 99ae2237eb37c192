// The other forms of the collectives: blocking (…Sync), as requests (i…), and as persistent requests (…Init). What their parameters mean,
// and how they end, is said once, at the promise of the same name (collectives.ts).

import type { MessageBuffer } from './buffers.ts';
import type { Counts, RootBuffer } from './coll/calls.ts';
import * as calls from './coll/calls.ts';
import type { InPlace } from './coll/memory.ts';
import { Collectives } from './collectives.ts';
import type { CallOptions } from './constants.ts';
import type { Op } from './op.ts';
import type { PersistentRequest, Request } from './request.ts';

export class CollectiveForms extends Collectives {
  // ---------------------------------------------------------------- blocking

  /**
   * As barrier(), without a promise: returns when this rank is done. The event loop does not run meanwhile, and no signal can come.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part); nothing was sent.
   */
  barrierSync(options?: CallOptions): void {
    this.runSync(calls.barrier, [options], 0);
  }

  /**
   * As bcast(), without a promise: returns when this rank is done. The event loop does not run meanwhile, and no signal can come.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part); nothing was sent.
   */
  bcastSync(buffer: MessageBuffer, root?: number, options?: CallOptions): void {
    this.runSync(calls.bcast, [buffer, root, options], 2);
  }

  /**
   * As reduce(), without a promise: returns when this rank is done. The event loop does not run meanwhile, and no signal can come.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part); nothing was sent.
   */
  reduceSync(send: MessageBuffer | InPlace, recv: RootBuffer, op?: Op, root?: number, options?: CallOptions): void {
    this.runSync(calls.reduce, [send, recv, op, root, options], 4);
  }

  /**
   * As allreduce(), without a promise: returns when this rank is done. The event loop does not run meanwhile, and no signal can come.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part); nothing was sent.
   */
  allreduceSync(send: MessageBuffer | InPlace, recv: MessageBuffer, op?: Op, options?: CallOptions): void {
    this.runSync(calls.allreduce, [send, recv, op, options], 3);
  }

  /**
   * As gather(), without a promise: returns when this rank is done. The event loop does not run meanwhile, and no signal can come.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part); nothing was sent.
   */
  gatherSync(send: MessageBuffer | InPlace, recv: RootBuffer, root?: number, options?: CallOptions): void {
    this.runSync(calls.gather, [send, recv, root, options], 3);
  }

  /**
   * As gatherv(), without a promise: returns when this rank is done. The event loop does not run meanwhile, and no signal can come.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part); nothing was sent.
   */
  gathervSync(
    send: MessageBuffer | InPlace,
    recv: RootBuffer,
    counts: Counts | null,
    displs?: Counts | null,
    root?: number,
    options?: CallOptions,
  ): void {
    this.runSync(calls.gatherv, [send, recv, counts, displs, root, options], 5);
  }

  /**
   * As scatter(), without a promise: returns when this rank is done. The event loop does not run meanwhile, and no signal can come.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part); nothing was sent.
   */
  scatterSync(send: RootBuffer, recv: MessageBuffer | InPlace, root?: number, options?: CallOptions): void {
    this.runSync(calls.scatter, [send, recv, root, options], 3);
  }

  /**
   * As scatterv(), without a promise: returns when this rank is done. The event loop does not run meanwhile, and no signal can come.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part); nothing was sent.
   */
  scattervSync(
    send: RootBuffer,
    counts: Counts | null,
    displs: Counts | null,
    recv: MessageBuffer | InPlace,
    root?: number,
    options?: CallOptions,
  ): void {
    this.runSync(calls.scatterv, [send, counts, displs, recv, root, options], 5);
  }

  /**
   * As allgather(), without a promise: returns when this rank is done. The event loop does not run meanwhile, and no signal can come.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part); nothing was sent.
   */
  allgatherSync(send: MessageBuffer | InPlace, recv: MessageBuffer, options?: CallOptions): void {
    this.runSync(calls.allgather, [send, recv, options], 2);
  }

  /**
   * As allgatherv(), without a promise: returns when this rank is done. The event loop does not run meanwhile, and no signal can come.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part); nothing was sent.
   */
  allgathervSync(send: MessageBuffer | InPlace, recv: MessageBuffer, counts: Counts, displs?: Counts | null, options?: CallOptions): void {
    this.runSync(calls.allgatherv, [send, recv, counts, displs, options], 4);
  }

  /**
   * As alltoall(), without a promise: returns when this rank is done. The event loop does not run meanwhile, and no signal can come.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part); nothing was sent.
   */
  alltoallSync(send: MessageBuffer | InPlace, recv: MessageBuffer, options?: CallOptions): void {
    this.runSync(calls.alltoall, [send, recv, options], 2);
  }

  /**
   * As alltoallv(), without a promise: returns when this rank is done. The event loop does not run meanwhile, and no signal can come.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part); nothing was sent.
   */
  alltoallvSync(
    send: MessageBuffer | InPlace,
    sendCounts: Counts | null,
    sendDispls: Counts | null,
    recv: MessageBuffer,
    recvCounts: Counts,
    recvDispls?: Counts | null,
    options?: CallOptions,
  ): void {
    this.runSync(calls.alltoallv, [send, sendCounts, sendDispls, recv, recvCounts, recvDispls, options], 6);
  }

  /**
   * As alltoallw(), without a promise: returns when this rank is done. The event loop does not run meanwhile, and no signal can come.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part); nothing was sent.
   */
  alltoallwSync(sends: readonly MessageBuffer[] | InPlace, recvs: readonly MessageBuffer[], options?: CallOptions): void {
    this.runSync(calls.alltoallw, [sends, recvs, options], 2);
  }

  /**
   * As reduceScatter(), without a promise: returns when this rank is done. The event loop does not run meanwhile, and no signal can come.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part); nothing was sent.
   */
  reduceScatterSync(send: MessageBuffer | InPlace, recv: MessageBuffer, counts: Counts, op?: Op, options?: CallOptions): void {
    this.runSync(calls.reduceScatter, [send, recv, counts, op, options], 4);
  }

  /**
   * As reduceScatterBlock(), without a promise: returns when this rank is done. The event loop does not run meanwhile, and no signal can
   * come.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part); nothing was sent.
   */
  reduceScatterBlockSync(send: MessageBuffer | InPlace, recv: MessageBuffer, op?: Op, options?: CallOptions): void {
    this.runSync(calls.reduceScatterBlock, [send, recv, op, options], 3);
  }

  /**
   * As scan(), without a promise: returns when this rank is done. The event loop does not run meanwhile, and no signal can come.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part); nothing was sent.
   */
  scanSync(send: MessageBuffer | InPlace, recv: MessageBuffer, op?: Op, options?: CallOptions): void {
    this.runSync(calls.scan, [send, recv, op, options], 3);
  }

  /**
   * As exscan(), without a promise: returns when this rank is done. The event loop does not run meanwhile, and no signal can come.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part); nothing was sent.
   */
  exscanSync(send: MessageBuffer | InPlace, recv: MessageBuffer, op?: Op, options?: CallOptions): void {
    this.runSync(calls.exscan, [send, recv, op, options], 3);
  }

  // ---------------------------------------------------------------- requests

  /**
   * Starts barrier() and returns its Request at once (MPI-4.1, section 6.12.1). Wrong arguments throw.
   */
  ibarrier(options?: CallOptions): Request {
    return this.request(calls.barrier, [options], 0);
  }

  /**
   * Starts bcast() and returns its Request at once (MPI-4.1, section 6.12.2). The buffer belongs to the library until it has ended. Wrong
   * arguments throw.
   */
  ibcast(buffer: MessageBuffer, root?: number, options?: CallOptions): Request {
    return this.request(calls.bcast, [buffer, root, options], 2);
  }

  /**
   * Starts reduce() and returns its Request at once (MPI-4.1, section 6.12.7). The buffers belong to the library until it has ended. Wrong
   * arguments throw.
   */
  ireduce(send: MessageBuffer | InPlace, recv: RootBuffer, op?: Op, root?: number, options?: CallOptions): Request {
    return this.request(calls.reduce, [send, recv, op, root, options], 4);
  }

  /**
   * Starts allreduce() and returns its Request at once (MPI-4.1, section 6.12.8). The buffers belong to the library until it has ended.
   * Wrong arguments throw.
   */
  iallreduce(send: MessageBuffer | InPlace, recv: MessageBuffer, op?: Op, options?: CallOptions): Request {
    return this.request(calls.allreduce, [send, recv, op, options], 3);
  }

  /**
   * Starts gather() and returns its Request at once (MPI-4.1, section 6.12.3). The buffers belong to the library until it has ended. Wrong
   * arguments throw.
   */
  igather(send: MessageBuffer | InPlace, recv: RootBuffer, root?: number, options?: CallOptions): Request {
    return this.request(calls.gather, [send, recv, root, options], 3);
  }

  /**
   * Starts gatherv() and returns its Request at once (MPI-4.1, section 6.12.3). The buffers belong to the library until it has ended. Wrong
   * arguments throw.
   */
  igatherv(
    send: MessageBuffer | InPlace,
    recv: RootBuffer,
    counts: Counts | null,
    displs?: Counts | null,
    root?: number,
    options?: CallOptions,
  ): Request {
    return this.request(calls.gatherv, [send, recv, counts, displs, root, options], 5);
  }

  /**
   * Starts scatter() and returns its Request at once (MPI-4.1, section 6.12.4). The buffers belong to the library until it has ended. Wrong
   * arguments throw.
   */
  iscatter(send: RootBuffer, recv: MessageBuffer | InPlace, root?: number, options?: CallOptions): Request {
    return this.request(calls.scatter, [send, recv, root, options], 3);
  }

  /**
   * Starts scatterv() and returns its Request at once (MPI-4.1, section 6.12.4). The buffers belong to the library until it has ended.
   * Wrong arguments throw.
   */
  iscatterv(
    send: RootBuffer,
    counts: Counts | null,
    displs: Counts | null,
    recv: MessageBuffer | InPlace,
    root?: number,
    options?: CallOptions,
  ): Request {
    return this.request(calls.scatterv, [send, counts, displs, recv, root, options], 5);
  }

  /**
   * Starts allgather() and returns its Request at once (MPI-4.1, section 6.12.5). The buffers belong to the library until it has ended.
   * Wrong arguments throw.
   */
  iallgather(send: MessageBuffer | InPlace, recv: MessageBuffer, options?: CallOptions): Request {
    return this.request(calls.allgather, [send, recv, options], 2);
  }

  /**
   * Starts allgatherv() and returns its Request at once (MPI-4.1, section 6.12.5). The buffers belong to the library until it has ended.
   * Wrong arguments throw.
   */
  iallgatherv(send: MessageBuffer | InPlace, recv: MessageBuffer, counts: Counts, displs?: Counts | null, options?: CallOptions): Request {
    return this.request(calls.allgatherv, [send, recv, counts, displs, options], 4);
  }

  /**
   * Starts alltoall() and returns its Request at once (MPI-4.1, section 6.12.6). The buffers belong to the library until it has ended.
   * Wrong arguments throw.
   */
  ialltoall(send: MessageBuffer | InPlace, recv: MessageBuffer, options?: CallOptions): Request {
    return this.request(calls.alltoall, [send, recv, options], 2);
  }

  /**
   * Starts alltoallv() and returns its Request at once (MPI-4.1, section 6.12.6). The buffers belong to the library until it has ended.
   * Wrong arguments throw.
   */
  ialltoallv(
    send: MessageBuffer | InPlace,
    sendCounts: Counts | null,
    sendDispls: Counts | null,
    recv: MessageBuffer,
    recvCounts: Counts,
    recvDispls?: Counts | null,
    options?: CallOptions,
  ): Request {
    return this.request(calls.alltoallv, [send, sendCounts, sendDispls, recv, recvCounts, recvDispls, options], 6);
  }

  /**
   * Starts alltoallw() and returns its Request at once (MPI-4.1, section 6.12.6). The buffers belong to the library until it has ended.
   * Wrong arguments throw.
   */
  ialltoallw(sends: readonly MessageBuffer[] | InPlace, recvs: readonly MessageBuffer[], options?: CallOptions): Request {
    return this.request(calls.alltoallw, [sends, recvs, options], 2);
  }

  /**
   * Starts reduceScatter() and returns its Request at once (MPI-4.1, section 6.12.10). The buffers belong to the library until it has
   * ended. Wrong arguments throw.
   */
  ireduceScatter(send: MessageBuffer | InPlace, recv: MessageBuffer, counts: Counts, op?: Op, options?: CallOptions): Request {
    return this.request(calls.reduceScatter, [send, recv, counts, op, options], 4);
  }

  /**
   * Starts reduceScatterBlock() and returns its Request at once (MPI-4.1, section 6.12.9). The buffers belong to the library until it has
   * ended. Wrong arguments throw.
   */
  ireduceScatterBlock(send: MessageBuffer | InPlace, recv: MessageBuffer, op?: Op, options?: CallOptions): Request {
    return this.request(calls.reduceScatterBlock, [send, recv, op, options], 3);
  }

  /**
   * Starts scan() and returns its Request at once (MPI-4.1, section 6.12.11). The buffers belong to the library until it has ended. Wrong
   * arguments throw.
   */
  iscan(send: MessageBuffer | InPlace, recv: MessageBuffer, op?: Op, options?: CallOptions): Request {
    return this.request(calls.scan, [send, recv, op, options], 3);
  }

  /**
   * Starts exscan() and returns its Request at once (MPI-4.1, section 6.12.12). The buffers belong to the library until it has ended. Wrong
   * arguments throw.
   */
  iexscan(send: MessageBuffer | InPlace, recv: MessageBuffer, op?: Op, options?: CallOptions): Request {
    return this.request(calls.exscan, [send, recv, op, options], 3);
  }

  // ---------------------------------------------------------------- persistent requests

  /**
   * A request that runs barrier() with these arguments whenever it is started (MPI-4.1, section 6.13.1). The options hold for each run;
   * after one that failed it cannot be started again.
   */
  barrierInit(options?: CallOptions): PersistentRequest {
    return this.persistent(calls.barrier, [options], 0);
  }

  /**
   * A request that runs bcast() with these arguments whenever it is started (MPI-4.1, section 6.13.2). From start() to the end of that run
   * the buffer belongs to the library. The options hold for each run; after one that failed it cannot be started again.
   */
  bcastInit(buffer: MessageBuffer, root?: number, options?: CallOptions): PersistentRequest {
    return this.persistent(calls.bcast, [buffer, root, options], 2);
  }

  /**
   * A request that runs reduce() with these arguments whenever it is started (MPI-4.1, section 6.13.7). From start() to the end of that run
   * the buffers belong to the library. The options hold for each run; after one that failed it cannot be started again.
   */
  reduceInit(send: MessageBuffer | InPlace, recv: RootBuffer, op?: Op, root?: number, options?: CallOptions): PersistentRequest {
    return this.persistent(calls.reduce, [send, recv, op, root, options], 4);
  }

  /**
   * A request that runs allreduce() with these arguments whenever it is started (MPI-4.1, section 6.13.8). From start() to the end of that
   * run the buffers belong to the library. The options hold for each run; after one that failed it cannot be started again.
   */
  allreduceInit(send: MessageBuffer | InPlace, recv: MessageBuffer, op?: Op, options?: CallOptions): PersistentRequest {
    return this.persistent(calls.allreduce, [send, recv, op, options], 3);
  }

  /**
   * A request that runs gather() with these arguments whenever it is started (MPI-4.1, section 6.13.3). From start() to the end of that run
   * the buffers belong to the library. The options hold for each run; after one that failed it cannot be started again.
   */
  gatherInit(send: MessageBuffer | InPlace, recv: RootBuffer, root?: number, options?: CallOptions): PersistentRequest {
    return this.persistent(calls.gather, [send, recv, root, options], 3);
  }

  /**
   * A request that runs gatherv() with these arguments whenever it is started (MPI-4.1, section 6.13.3). From start() to the end of that
   * run the buffers belong to the library. The options hold for each run; after one that failed it cannot be started again.
   */
  gathervInit(
    send: MessageBuffer | InPlace,
    recv: RootBuffer,
    counts: Counts | null,
    displs?: Counts | null,
    root?: number,
    options?: CallOptions,
  ): PersistentRequest {
    return this.persistent(calls.gatherv, [send, recv, counts, displs, root, options], 5);
  }

  /**
   * A request that runs scatter() with these arguments whenever it is started (MPI-4.1, section 6.13.4). From start() to the end of that
   * run the buffers belong to the library. The options hold for each run; after one that failed it cannot be started again.
   */
  scatterInit(send: RootBuffer, recv: MessageBuffer | InPlace, root?: number, options?: CallOptions): PersistentRequest {
    return this.persistent(calls.scatter, [send, recv, root, options], 3);
  }

  /**
   * A request that runs scatterv() with these arguments whenever it is started (MPI-4.1, section 6.13.4). From start() to the end of that
   * run the buffers belong to the library. The options hold for each run; after one that failed it cannot be started again.
   */
  scattervInit(
    send: RootBuffer,
    counts: Counts | null,
    displs: Counts | null,
    recv: MessageBuffer | InPlace,
    root?: number,
    options?: CallOptions,
  ): PersistentRequest {
    return this.persistent(calls.scatterv, [send, counts, displs, recv, root, options], 5);
  }

  /**
   * A request that runs allgather() with these arguments whenever it is started (MPI-4.1, section 6.13.5). From start() to the end of that
   * run the buffers belong to the library. The options hold for each run; after one that failed it cannot be started again.
   */
  allgatherInit(send: MessageBuffer | InPlace, recv: MessageBuffer, options?: CallOptions): PersistentRequest {
    return this.persistent(calls.allgather, [send, recv, options], 2);
  }

  /**
   * A request that runs allgatherv() with these arguments whenever it is started (MPI-4.1, section 6.13.5). From start() to the end of that
   * run the buffers belong to the library. The options hold for each run; after one that failed it cannot be started again.
   */
  allgathervInit(
    send: MessageBuffer | InPlace,
    recv: MessageBuffer,
    counts: Counts,
    displs?: Counts | null,
    options?: CallOptions,
  ): PersistentRequest {
    return this.persistent(calls.allgatherv, [send, recv, counts, displs, options], 4);
  }

  /**
   * A request that runs alltoall() with these arguments whenever it is started (MPI-4.1, section 6.13.6). From start() to the end of that
   * run the buffers belong to the library. The options hold for each run; after one that failed it cannot be started again.
   */
  alltoallInit(send: MessageBuffer | InPlace, recv: MessageBuffer, options?: CallOptions): PersistentRequest {
    return this.persistent(calls.alltoall, [send, recv, options], 2);
  }

  /**
   * A request that runs alltoallv() with these arguments whenever it is started (MPI-4.1, section 6.13.6). From start() to the end of that
   * run the buffers belong to the library. The options hold for each run; after one that failed it cannot be started again.
   */
  alltoallvInit(
    send: MessageBuffer | InPlace,
    sendCounts: Counts | null,
    sendDispls: Counts | null,
    recv: MessageBuffer,
    recvCounts: Counts,
    recvDispls?: Counts | null,
    options?: CallOptions,
  ): PersistentRequest {
    return this.persistent(calls.alltoallv, [send, sendCounts, sendDispls, recv, recvCounts, recvDispls, options], 6);
  }

  /**
   * A request that runs alltoallw() with these arguments whenever it is started (MPI-4.1, section 6.13.6). From start() to the end of that
   * run the buffers belong to the library. The options hold for each run; after one that failed it cannot be started again.
   */
  alltoallwInit(sends: readonly MessageBuffer[] | InPlace, recvs: readonly MessageBuffer[], options?: CallOptions): PersistentRequest {
    return this.persistent(calls.alltoallw, [sends, recvs, options], 2);
  }

  /**
   * A request that runs reduceScatter() with these arguments whenever it is started (MPI-4.1, section 6.13.10). From start() to the end of
   * that run the buffers belong to the library. The options hold for each run; after one that failed it cannot be started again.
   */
  reduceScatterInit(send: MessageBuffer | InPlace, recv: MessageBuffer, counts: Counts, op?: Op, options?: CallOptions): PersistentRequest {
    return this.persistent(calls.reduceScatter, [send, recv, counts, op, options], 4);
  }

  /**
   * A request that runs reduceScatterBlock() with these arguments whenever it is started (MPI-4.1, section 6.13.9). From start() to the end
   * of that run the buffers belong to the library. The options hold for each run; after one that failed it cannot be started again.
   */
  reduceScatterBlockInit(send: MessageBuffer | InPlace, recv: MessageBuffer, op?: Op, options?: CallOptions): PersistentRequest {
    return this.persistent(calls.reduceScatterBlock, [send, recv, op, options], 3);
  }

  /**
   * A request that runs scan() with these arguments whenever it is started (MPI-4.1, section 6.13.11). From start() to the end of that run
   * the buffers belong to the library. The options hold for each run; after one that failed it cannot be started again.
   */
  scanInit(send: MessageBuffer | InPlace, recv: MessageBuffer, op?: Op, options?: CallOptions): PersistentRequest {
    return this.persistent(calls.scan, [send, recv, op, options], 3);
  }

  /**
   * A request that runs exscan() with these arguments whenever it is started (MPI-4.1, section 6.13.12). From start() to the end of that
   * run the buffers belong to the library. The options hold for each run; after one that failed it cannot be started again.
   */
  exscanInit(send: MessageBuffer | InPlace, recv: MessageBuffer, op?: Op, options?: CallOptions): PersistentRequest {
    return this.persistent(calls.exscan, [send, recv, op, options], 3);
  }
}
