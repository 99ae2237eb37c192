// The collectives of a communicator: as promises, as blocking calls, as requests, and as persistent requests. Each is one line, since all
// four run the same call (coll/calls.ts).
import type { MultirailError } from '../errors.ts';
import type { Call } from './coll/calls.ts';
import * as calls from './coll/calls.ts';
import { KnownRegions } from './coll/memory.ts';
import { Operation, type Scope } from './coll/operation.ts';
import { KnownSignatures, Ledger } from './coll/signature.ts';
import { TAG_UB } from './constants.ts';
import { COLLECTIVE, ctxOf } from './contexts.ts';
import type { Group } from './group.ts';
import type { Host } from './host.ts';
import { PointToPoint } from './point-to-point.ts';
import { PersistentRequest, type Request } from './request.ts';

/**
 * Collectives (MPI-4.1, chapter 6). Every rank of the communicator makes the same calls in the same order; nobody need wait for one
 * before the next. They go on by themselves, also while nobody awaits them, and never meet point-to-point messages.
 *
 * - Buffers are as for send() and recv() and belong to the library until the call has ended. Lengths are those of the buffers; counts and
 *   displacements are in elements of a typed array, in bytes for everything else. No two buffers of a call may share memory: pass
 *   `IN_PLACE` where MPI has it, and what this rank contributes is taken from its receive buffer.
 * - Wrong arguments end the call on this rank before anything is sent. Lengths that do not fit together end it with ERR_TRUNCATE where it
 *   is seen, and on the others with the same error.
 * - When a member is gone, the call ends with ERR_PROC_FAILED or ERR_PROC_UNREACHABLE on every rank that needs it, and what is left of it
 *   disturbs no later call. After an error the send buffer may still be read until all that was begun is over.
 * - A collective cannot be cancelled, so there is neither `signal` nor `timeoutMs`.
 * - `…Sync` returns when the call has ended, without the event loop; ERR_SUPPORT where rails need it. `i…` gives a Request, for
 *   Request.waitAll() and the like. `…Init` gives a request that start() starts as often as wanted (MPI-4.1, section 6.13).
 */
export class Collectives extends PointToPoint {
  protected readonly signatures = new KnownSignatures();
  /** @internal */
  readonly scope: Scope;
  /** Number of the next collective: all ranks count alike. */
  private nextCollective = 0;
  /** Numbers of persistent collectives: they are theirs for good. */
  private readonly keptTags = new Set<number>();

  constructor(host: Host, name: string, contextId: number, group: Group) {
    super(host, name, contextId, group);
    const ctx = ctxOf(contextId, COLLECTIVE);
    this.scope = this.scopeOf(ctx, group);
    host.beginCommunicator(contextId, this);
  }

  /** @internal */
  hasBegun(tag: number): boolean {
    return this.keptTags.has(tag) || tag <= this.nextCollective;
  }

  /** Ranks of this communicator that talk on a context of their own. */
  protected scopeOf(ctx: number, group: Group): Scope {
    const named = this;
    return {
      host: this.host,
      get name() {
        return named.name;
      },
      members: group.worldRanks,
      rank: group.rank,
      size: group.size,
      ctx,
      tuning: this.host.tuning,
      known: new KnownRegions(),
      signatures: this.signatures,
      ledger: new Ledger(),
    };
  }

  // ---------------------------------------------------------------- four ways to run a call

  /** After 2^31 collectives numbers begin anew: none of those is under way any more, but for persistent ones. */
  private takeTag(): number {
    do {
      this.nextCollective = this.nextCollective === TAG_UB ? 0 : this.nextCollective + 1;
    } while (this.keptTags.has(this.nextCollective));
    return this.nextCollective;
  }

  /** Starts a collective on this communicator, or on those ranks. */
  protected begin<T>(call: Call<T>, scope = this.scope, tag?: number): Operation<T> {
    const record = (this.host.idle.pop() as Operation<T> | undefined) ?? new Operation<T>();
    const operation = record.begin(scope, call.signature, tag ?? this.takeTag());
    return operation.start(call.steps(operation));
  }

  protected prepare<A extends unknown[], T>(make: (scope: Scope, ...args: A) => Call<T>, args: A): Call<T> {
    this.mustBeUsable();
    return make(this.scope, ...args);
  }

  protected run<A extends unknown[], T>(make: (scope: Scope, ...args: A) => Call<T>, args: A): Promise<T> {
    try {
      const operation = this.begin(this.prepare(make, args));
      if (operation.done && operation.error === undefined) return Promise.resolve(this.takeResult(operation));
      return new Promise((resolve, reject) => {
        const settle = (): void => (operation.error === undefined ? resolve(this.takeResult(operation)) : reject(operation.error));
        if (operation.done) settle();
        else operation.onDone = settle;
      });
    } catch (error) {
      return Promise.reject(error);
    }
  }

  protected runSync<A extends unknown[], T>(make: (scope: Scope, ...args: A) => Call<T>, args: A): T {
    const call = this.prepare(make, args);
    this.mustReachByPolling();
    const operation = this.begin(call);
    this.endedSync(operation);
    return this.takeResult(operation);
  }

  protected endedSync<T>(operation: Operation<T>): T {
    if (!operation.done) this.wait(operation);
    if (operation.error !== undefined) throw operation.error;
    return operation.result as T;
  }

  private takeResult<T>(operation: Operation<T>): T {
    const result = operation.result as T;
    operation.recycle();
    return result;
  }

  private request<A extends unknown[]>(make: (scope: Scope, ...args: A) => Call, args: A): Request {
    return this.requestOf(this.begin(this.prepare(make, args)));
  }

  private persistent<A extends unknown[]>(make: (scope: Scope, ...args: A) => Call, args: A): PersistentRequest {
    this.prepare(make, args);
    const tag = this.takeTag();
    this.keptTags.add(tag);
    let failed: MultirailError | undefined;
    return new PersistentRequest(this, () => {
      // What one rank has of a run that failed would meet the next run of another.
      if (failed !== undefined) throw failed;
      // Looked at again: buffers may have been detached since.
      const inner = this.begin(this.prepare(make, args), this.scope, tag);
      inner.onFailed = (error) => {
        failed = error;
      };
      return { inner };
    });
  }

  // ---------------------------------------------------------------- promises

  /** Resolves when every rank has called it (MPI-4.1, section 6.3). */
  barrier(): Promise<void> {
    return this.run(calls.barrier, []);
  }

  /** What the buffer holds at the root comes into the buffers of all others, of the same length. */
  bcast(...args: calls.BcastArgs): Promise<void> {
    return this.run(calls.bcast, args);
  }

  /** Combines the send buffers of all ranks, element by element; the result comes into `recv` of the root (null elsewhere). */
  reduce(...args: calls.ReduceArgs): Promise<void> {
    return this.run(calls.reduce, args);
  }

  /** As reduce(), with the result at every rank: the same bits everywhere. */
  allreduce(...args: calls.AllreduceArgs): Promise<void> {
    return this.run(calls.allreduce, args);
  }

  /** The send buffers of all ranks, of the same length, come one behind the other into `recv` of the root. */
  gather(...args: calls.GatherArgs): Promise<void> {
    return this.run(calls.gather, args);
  }

  /**
   * As gather() with lengths that differ: rank i fills `counts[i]` elements of `recv` from `displs[i]` on (one behind the other when
   * missing). Counts and displacements are looked at only at the root.
   */
  gatherv(...args: calls.GathervArgs): Promise<void> {
    return this.run(calls.gatherv, args);
  }

  /** The send buffer of the root is cut into as many parts as there are ranks, and each gets one. `send` is null elsewhere. */
  scatter(...args: calls.ScatterArgs): Promise<void> {
    return this.run(calls.scatter, args);
  }

  /** As scatter() with lengths that differ: rank i gets `counts[i]` elements from `displs[i]` on. */
  scatterv(...args: calls.ScattervArgs): Promise<void> {
    return this.run(calls.scatterv, args);
  }

  /** As gather(), with the result at every rank. */
  allgather(...args: calls.AllgatherArgs): Promise<void> {
    return this.run(calls.allgather, args);
  }

  /** As gatherv(), with the result at every rank; all ranks give the same counts, each displacements of its own. */
  allgatherv(...args: calls.AllgathervArgs): Promise<void> {
    return this.run(calls.allgatherv, args);
  }

  /** Part i of the send buffer goes to rank i; part i of the receive buffer comes from rank i. */
  alltoall(...args: calls.AlltoallArgs): Promise<void> {
    return this.run(calls.alltoall, args);
  }

  /** As alltoall() with lengths that differ. Parts without elements are not sent. */
  alltoallv(...args: calls.AlltoallvArgs): Promise<void> {
    return this.run(calls.alltoallv, args);
  }

  /** As alltoall() with a buffer of any shape for each rank: `sends[i]` goes to rank i, `recvs[i]` comes from it. */
  alltoallw(...args: calls.AlltoallwArgs): Promise<void> {
    return this.run(calls.alltoallw, args);
  }

  /** Combines as reduce(); of the result rank i gets `counts[i]` elements. In place: into the beginning of `recv`. */
  reduceScatter(...args: calls.ReduceScatterArgs): Promise<void> {
    return this.run(calls.reduceScatter, args);
  }

  /** As reduceScatter() with parts of the same length. */
  reduceScatterBlock(...args: calls.ReduceScatterBlockArgs): Promise<void> {
    return this.run(calls.reduceScatterBlock, args);
  }

  /** Combines what the ranks up to this one contribute. */
  scan(...args: calls.ScanArgs): Promise<void> {
    return this.run(calls.scan, args);
  }

  /** As scan() without the own contribution: `recv` of rank 0 stays as it is. */
  exscan(...args: calls.ScanArgs): Promise<void> {
    return this.run(calls.exscan, args);
  }

  // ---------------------------------------------------------------- blocking

  barrierSync(): void {
    return this.runSync(calls.barrier, []);
  }
  bcastSync(...args: calls.BcastArgs): void {
    return this.runSync(calls.bcast, args);
  }
  reduceSync(...args: calls.ReduceArgs): void {
    return this.runSync(calls.reduce, args);
  }
  allreduceSync(...args: calls.AllreduceArgs): void {
    return this.runSync(calls.allreduce, args);
  }
  gatherSync(...args: calls.GatherArgs): void {
    return this.runSync(calls.gather, args);
  }
  gathervSync(...args: calls.GathervArgs): void {
    return this.runSync(calls.gatherv, args);
  }
  scatterSync(...args: calls.ScatterArgs): void {
    return this.runSync(calls.scatter, args);
  }
  scattervSync(...args: calls.ScattervArgs): void {
    return this.runSync(calls.scatterv, args);
  }
  allgatherSync(...args: calls.AllgatherArgs): void {
    return this.runSync(calls.allgather, args);
  }
  allgathervSync(...args: calls.AllgathervArgs): void {
    return this.runSync(calls.allgatherv, args);
  }
  alltoallSync(...args: calls.AlltoallArgs): void {
    return this.runSync(calls.alltoall, args);
  }
  alltoallvSync(...args: calls.AlltoallvArgs): void {
    return this.runSync(calls.alltoallv, args);
  }
  alltoallwSync(...args: calls.AlltoallwArgs): void {
    return this.runSync(calls.alltoallw, args);
  }
  reduceScatterSync(...args: calls.ReduceScatterArgs): void {
    return this.runSync(calls.reduceScatter, args);
  }
  reduceScatterBlockSync(...args: calls.ReduceScatterBlockArgs): void {
    return this.runSync(calls.reduceScatterBlock, args);
  }
  scanSync(...args: calls.ScanArgs): void {
    return this.runSync(calls.scan, args);
  }
  exscanSync(...args: calls.ScanArgs): void {
    return this.runSync(calls.exscan, args);
  }

  // ---------------------------------------------------------------- requests

  ibarrier(): Request {
    return this.request(calls.barrier, []);
  }
  ibcast(...args: calls.BcastArgs): Request {
    return this.request(calls.bcast, args);
  }
  ireduce(...args: calls.ReduceArgs): Request {
    return this.request(calls.reduce, args);
  }
  iallreduce(...args: calls.AllreduceArgs): Request {
    return this.request(calls.allreduce, args);
  }
  igather(...args: calls.GatherArgs): Request {
    return this.request(calls.gather, args);
  }
  igatherv(...args: calls.GathervArgs): Request {
    return this.request(calls.gatherv, args);
  }
  iscatter(...args: calls.ScatterArgs): Request {
    return this.request(calls.scatter, args);
  }
  iscatterv(...args: calls.ScattervArgs): Request {
    return this.request(calls.scatterv, args);
  }
  iallgather(...args: calls.AllgatherArgs): Request {
    return this.request(calls.allgather, args);
  }
  iallgatherv(...args: calls.AllgathervArgs): Request {
    return this.request(calls.allgatherv, args);
  }
  ialltoall(...args: calls.AlltoallArgs): Request {
    return this.request(calls.alltoall, args);
  }
  ialltoallv(...args: calls.AlltoallvArgs): Request {
    return this.request(calls.alltoallv, args);
  }
  ialltoallw(...args: calls.AlltoallwArgs): Request {
    return this.request(calls.alltoallw, args);
  }
  ireduceScatter(...args: calls.ReduceScatterArgs): Request {
    return this.request(calls.reduceScatter, args);
  }
  ireduceScatterBlock(...args: calls.ReduceScatterBlockArgs): Request {
    return this.request(calls.reduceScatterBlock, args);
  }
  iscan(...args: calls.ScanArgs): Request {
    return this.request(calls.scan, args);
  }
  iexscan(...args: calls.ScanArgs): Request {
    return this.request(calls.exscan, args);
  }

  // ---------------------------------------------------------------- persistent requests

  barrierInit(): PersistentRequest {
    return this.persistent(calls.barrier, []);
  }
  bcastInit(...args: calls.BcastArgs): PersistentRequest {
    return this.persistent(calls.bcast, args);
  }
  reduceInit(...args: calls.ReduceArgs): PersistentRequest {
    return this.persistent(calls.reduce, args);
  }
  allreduceInit(...args: calls.AllreduceArgs): PersistentRequest {
    return this.persistent(calls.allreduce, args);
  }
  gatherInit(...args: calls.GatherArgs): PersistentRequest {
    return this.persistent(calls.gather, args);
  }
  gathervInit(...args: calls.GathervArgs): PersistentRequest {
    return this.persistent(calls.gatherv, args);
  }
  scatterInit(...args: calls.ScatterArgs): PersistentRequest {
    return this.persistent(calls.scatter, args);
  }
  scattervInit(...args: calls.ScattervArgs): PersistentRequest {
    return this.persistent(calls.scatterv, args);
  }
  allgatherInit(...args: calls.AllgatherArgs): PersistentRequest {
    return this.persistent(calls.allgather, args);
  }
  allgathervInit(...args: calls.AllgathervArgs): PersistentRequest {
    return this.persistent(calls.allgatherv, args);
  }
  alltoallInit(...args: calls.AlltoallArgs): PersistentRequest {
    return this.persistent(calls.alltoall, args);
  }
  alltoallvInit(...args: calls.AlltoallvArgs): PersistentRequest {
    return this.persistent(calls.alltoallv, args);
  }
  alltoallwInit(...args: calls.AlltoallwArgs): PersistentRequest {
    return this.persistent(calls.alltoallw, args);
  }
  reduceScatterInit(...args: calls.ReduceScatterArgs): PersistentRequest {
    return this.persistent(calls.reduceScatter, args);
  }
  reduceScatterBlockInit(...args: calls.ReduceScatterBlockArgs): PersistentRequest {
    return this.persistent(calls.reduceScatterBlock, args);
  }
  scanInit(...args: calls.ScanArgs): PersistentRequest {
    return this.persistent(calls.scan, args);
  }
  exscanInit(...args: calls.ScanArgs): PersistentRequest {
    return this.persistent(calls.exscan, args);
  }
}
