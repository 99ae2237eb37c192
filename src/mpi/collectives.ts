// The collectives of a communicator: as promises, as blocking calls, as requests, and as persistent requests. Each is one line, since all
// four run the same call (coll/calls.ts).
import { MultirailError } from '../errors.ts';
import type { Call } from './coll/calls.ts';
import * as calls from './coll/calls.ts';
import { KnownRegions } from './coll/memory.ts';
import { Operation, type Scope } from './coll/operation.ts';
import { KnownSignatures, Ledger } from './coll/signature.ts';
import { type CallOptions, checkOptions, TAG_UB, watchEnd } from './constants.ts';
import { COLLECTIVE, ctxOf } from './contexts.ts';
import type { Group } from './group.ts';
import type { Host } from './host.ts';
import { ObjectMessages } from './object-messages.ts';
import { endRequestAt, PersistentRequest, type Request } from './request.ts';

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
 * - Options come last: `timeoutMs` and `signal` end a call that has not ended by then, at every rank that has not, with ERR_TIMEOUT or
 *   ERR_ABORTED. No signal can come during a blocking call. Those of `…Init` hold for each start.
 * - `…Sync` returns when the call has ended, without the event loop; ERR_SUPPORT where rails need it. `i…` gives a Request, for
 *   Request.waitAll() and the like. `…Init` gives a request that start() starts as often as wanted (MPI-4.1, section 6.13).
 */
export class Collectives extends ObjectMessages {
  protected readonly signatures = new KnownSignatures();
  private readonly scope: Scope;
  /** Number of the next collective: all ranks count alike. */
  private nextCollective = 0;
  /** Numbers of persistent collectives: they are theirs for good. */
  private readonly keptTags = new Set<number>();

  constructor(host: Host, name: string, contextId: number, group: Group) {
    super(host, name, contextId, group);
    const ctx = ctxOf(contextId, COLLECTIVE);
    this.scope = this.scopeOf(ctx, group);
    const { desk } = this;
    host.beginCommunicator(contextId, {
      get name() {
        return desk.name;
      },
      get deserted() {
        return desk.deserted;
      },
      scope: this.scope,
      hasBegun: (tag) => this.keptTags.has(tag) || tag <= this.nextCollective,
      memberGone: () => desk.memberGone(),
    });
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

  protected run<A extends unknown[], T>(make: (scope: Scope, ...args: A) => Call<T>, args: A, optionsAt = args.length): Promise<T> {
    try {
      const options = optionsOf(args, optionsAt);
      const operation = this.begin(this.prepare(make, args));
      if (options !== undefined) this.limit(operation, options);
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

  protected runSync<A extends unknown[], T>(make: (scope: Scope, ...args: A) => Call<T>, args: A, optionsAt = args.length): T {
    const options = optionsOf(args, optionsAt);
    const call = this.prepare(make, args);
    this.mustReachByPolling();
    const operation = this.begin(call);
    this.endedSync(operation, options?.timeoutMs);
    return this.takeResult(operation);
  }

  protected endedSync<T>(operation: Operation<T>, timeoutMs = Number.POSITIVE_INFINITY): T {
    if (!operation.done && !this.desk.wait(operation, this.desk.now() + timeoutMs)) {
      operation.fail(lateError(operation, timeoutMs), true);
      if (!operation.done) this.desk.wait(operation);
    }
    if (operation.error !== undefined) throw operation.error;
    return operation.result as T;
  }

  /** A signal or timeout ends the collective, at every rank; both are let go when it ends. */
  protected limit<T>(operation: Operation<T>, options: CallOptions, request?: Request): void {
    const { timeoutMs } = options;
    if (operation.done) return;
    // For waitSync(), during which no timer runs.
    if (timeoutMs !== undefined && request !== undefined)
      endRequestAt(request, this.desk.now() + timeoutMs, lateError(operation, timeoutMs));
    operation.release = watchEnd(options, (error) =>
      operation.fail(error.code === 'ERR_TIMEOUT' ? lateError(operation, timeoutMs as number) : error, true),
    );
  }

  private takeResult<T>(operation: Operation<T>): T {
    const result = operation.result as T;
    operation.recycle();
    return result;
  }

  private request<A extends unknown[]>(make: (scope: Scope, ...args: A) => Call, args: A, optionsAt: number): Request {
    const options = optionsOf(args, optionsAt);
    const operation = this.begin(this.prepare(make, args));
    const request = this.desk.requestOf(operation);
    if (options !== undefined) this.limit(operation, options, request);
    return request;
  }

  private persistent<A extends unknown[]>(make: (scope: Scope, ...args: A) => Call, args: A, optionsAt: number): PersistentRequest {
    const options = optionsOf(args, optionsAt);
    this.prepare(make, args);
    const tag = this.takeTag();
    this.keptTags.add(tag);
    let failed: MultirailError | undefined;
    return new PersistentRequest(this.desk, () => {
      // What one rank has of a run that failed would meet the next run of another.
      if (failed !== undefined) throw failed;
      // Looked at again: buffers may have been detached since.
      const inner = this.begin(this.prepare(make, args), this.scope, tag);
      inner.onFailed = (error) => {
        failed = error;
      };
      if (options !== undefined) this.limit(inner, options);
      return { inner };
    });
  }

  // ---------------------------------------------------------------- promises

  /** Resolves when every rank has called it (MPI-4.1, section 6.3). */
  barrier(...args: calls.BarrierArgs): Promise<void> {
    return this.run(calls.barrier, args, 0);
  }

  /** What the buffer holds at the root comes into the buffers of all others, of the same length. */
  bcast(...args: calls.BcastArgs): Promise<void> {
    return this.run(calls.bcast, args, 2);
  }

  /** Combines the send buffers of all ranks, element by element; the result comes into `recv` of the root (null elsewhere). */
  reduce(...args: calls.ReduceArgs): Promise<void> {
    return this.run(calls.reduce, args, 4);
  }

  /** As reduce(), with the result at every rank: the same bits everywhere. */
  allreduce(...args: calls.AllreduceArgs): Promise<void> {
    return this.run(calls.allreduce, args, 3);
  }

  /** The send buffers of all ranks, of the same length, come one behind the other into `recv` of the root. */
  gather(...args: calls.GatherArgs): Promise<void> {
    return this.run(calls.gather, args, 3);
  }

  /**
   * As gather() with lengths that differ: rank i fills `counts[i]` elements of `recv` from `displs[i]` on (one behind the other when
   * missing). Counts and displacements are looked at only at the root.
   */
  gatherv(...args: calls.GathervArgs): Promise<void> {
    return this.run(calls.gatherv, args, 5);
  }

  /** The send buffer of the root is cut into as many parts as there are ranks, and each gets one. `send` is null elsewhere. */
  scatter(...args: calls.ScatterArgs): Promise<void> {
    return this.run(calls.scatter, args, 3);
  }

  /** As scatter() with lengths that differ: rank i gets `counts[i]` elements from `displs[i]` on. */
  scatterv(...args: calls.ScattervArgs): Promise<void> {
    return this.run(calls.scatterv, args, 5);
  }

  /** As gather(), with the result at every rank. */
  allgather(...args: calls.AllgatherArgs): Promise<void> {
    return this.run(calls.allgather, args, 2);
  }

  /** As gatherv(), with the result at every rank; all ranks give the same counts, each displacements of its own. */
  allgatherv(...args: calls.AllgathervArgs): Promise<void> {
    return this.run(calls.allgatherv, args, 4);
  }

  /** Part i of the send buffer goes to rank i; part i of the receive buffer comes from rank i. */
  alltoall(...args: calls.AlltoallArgs): Promise<void> {
    return this.run(calls.alltoall, args, 2);
  }

  /** As alltoall() with lengths that differ. Parts without elements are not sent. */
  alltoallv(...args: calls.AlltoallvArgs): Promise<void> {
    return this.run(calls.alltoallv, args, 6);
  }

  /** As alltoall() with a buffer of any shape for each rank: `sends[i]` goes to rank i, `recvs[i]` comes from it. */
  alltoallw(...args: calls.AlltoallwArgs): Promise<void> {
    return this.run(calls.alltoallw, args, 2);
  }

  /** Combines as reduce(); of the result rank i gets `counts[i]` elements. In place: into the beginning of `recv`. */
  reduceScatter(...args: calls.ReduceScatterArgs): Promise<void> {
    return this.run(calls.reduceScatter, args, 4);
  }

  /** As reduceScatter() with parts of the same length. */
  reduceScatterBlock(...args: calls.ReduceScatterBlockArgs): Promise<void> {
    return this.run(calls.reduceScatterBlock, args, 3);
  }

  /** Combines what the ranks up to this one contribute. */
  scan(...args: calls.ScanArgs): Promise<void> {
    return this.run(calls.scan, args, 3);
  }

  /** As scan() without the own contribution: `recv` of rank 0 stays as it is. */
  exscan(...args: calls.ScanArgs): Promise<void> {
    return this.run(calls.exscan, args, 3);
  }

  // ---------------------------------------------------------------- blocking

  barrierSync(...args: calls.BarrierArgs): void {
    return this.runSync(calls.barrier, args, 0);
  }
  bcastSync(...args: calls.BcastArgs): void {
    return this.runSync(calls.bcast, args, 2);
  }
  reduceSync(...args: calls.ReduceArgs): void {
    return this.runSync(calls.reduce, args, 4);
  }
  allreduceSync(...args: calls.AllreduceArgs): void {
    return this.runSync(calls.allreduce, args, 3);
  }
  gatherSync(...args: calls.GatherArgs): void {
    return this.runSync(calls.gather, args, 3);
  }
  gathervSync(...args: calls.GathervArgs): void {
    return this.runSync(calls.gatherv, args, 5);
  }
  scatterSync(...args: calls.ScatterArgs): void {
    return this.runSync(calls.scatter, args, 3);
  }
  scattervSync(...args: calls.ScattervArgs): void {
    return this.runSync(calls.scatterv, args, 5);
  }
  allgatherSync(...args: calls.AllgatherArgs): void {
    return this.runSync(calls.allgather, args, 2);
  }
  allgathervSync(...args: calls.AllgathervArgs): void {
    return this.runSync(calls.allgatherv, args, 4);
  }
  alltoallSync(...args: calls.AlltoallArgs): void {
    return this.runSync(calls.alltoall, args, 2);
  }
  alltoallvSync(...args: calls.AlltoallvArgs): void {
    return this.runSync(calls.alltoallv, args, 6);
  }
  alltoallwSync(...args: calls.AlltoallwArgs): void {
    return this.runSync(calls.alltoallw, args, 2);
  }
  reduceScatterSync(...args: calls.ReduceScatterArgs): void {
    return this.runSync(calls.reduceScatter, args, 4);
  }
  reduceScatterBlockSync(...args: calls.ReduceScatterBlockArgs): void {
    return this.runSync(calls.reduceScatterBlock, args, 3);
  }
  scanSync(...args: calls.ScanArgs): void {
    return this.runSync(calls.scan, args, 3);
  }
  exscanSync(...args: calls.ScanArgs): void {
    return this.runSync(calls.exscan, args, 3);
  }

  // ---------------------------------------------------------------- requests

  ibarrier(...args: calls.BarrierArgs): Request {
    return this.request(calls.barrier, args, 0);
  }
  ibcast(...args: calls.BcastArgs): Request {
    return this.request(calls.bcast, args, 2);
  }
  ireduce(...args: calls.ReduceArgs): Request {
    return this.request(calls.reduce, args, 4);
  }
  iallreduce(...args: calls.AllreduceArgs): Request {
    return this.request(calls.allreduce, args, 3);
  }
  igather(...args: calls.GatherArgs): Request {
    return this.request(calls.gather, args, 3);
  }
  igatherv(...args: calls.GathervArgs): Request {
    return this.request(calls.gatherv, args, 5);
  }
  iscatter(...args: calls.ScatterArgs): Request {
    return this.request(calls.scatter, args, 3);
  }
  iscatterv(...args: calls.ScattervArgs): Request {
    return this.request(calls.scatterv, args, 5);
  }
  iallgather(...args: calls.AllgatherArgs): Request {
    return this.request(calls.allgather, args, 2);
  }
  iallgatherv(...args: calls.AllgathervArgs): Request {
    return this.request(calls.allgatherv, args, 4);
  }
  ialltoall(...args: calls.AlltoallArgs): Request {
    return this.request(calls.alltoall, args, 2);
  }
  ialltoallv(...args: calls.AlltoallvArgs): Request {
    return this.request(calls.alltoallv, args, 6);
  }
  ialltoallw(...args: calls.AlltoallwArgs): Request {
    return this.request(calls.alltoallw, args, 2);
  }
  ireduceScatter(...args: calls.ReduceScatterArgs): Request {
    return this.request(calls.reduceScatter, args, 4);
  }
  ireduceScatterBlock(...args: calls.ReduceScatterBlockArgs): Request {
    return this.request(calls.reduceScatterBlock, args, 3);
  }
  iscan(...args: calls.ScanArgs): Request {
    return this.request(calls.scan, args, 3);
  }
  iexscan(...args: calls.ScanArgs): Request {
    return this.request(calls.exscan, args, 3);
  }

  // ---------------------------------------------------------------- persistent requests

  barrierInit(...args: calls.BarrierArgs): PersistentRequest {
    return this.persistent(calls.barrier, args, 0);
  }
  bcastInit(...args: calls.BcastArgs): PersistentRequest {
    return this.persistent(calls.bcast, args, 2);
  }
  reduceInit(...args: calls.ReduceArgs): PersistentRequest {
    return this.persistent(calls.reduce, args, 4);
  }
  allreduceInit(...args: calls.AllreduceArgs): PersistentRequest {
    return this.persistent(calls.allreduce, args, 3);
  }
  gatherInit(...args: calls.GatherArgs): PersistentRequest {
    return this.persistent(calls.gather, args, 3);
  }
  gathervInit(...args: calls.GathervArgs): PersistentRequest {
    return this.persistent(calls.gatherv, args, 5);
  }
  scatterInit(...args: calls.ScatterArgs): PersistentRequest {
    return this.persistent(calls.scatter, args, 3);
  }
  scattervInit(...args: calls.ScattervArgs): PersistentRequest {
    return this.persistent(calls.scatterv, args, 5);
  }
  allgatherInit(...args: calls.AllgatherArgs): PersistentRequest {
    return this.persistent(calls.allgather, args, 2);
  }
  allgathervInit(...args: calls.AllgathervArgs): PersistentRequest {
    return this.persistent(calls.allgatherv, args, 4);
  }
  alltoallInit(...args: calls.AlltoallArgs): PersistentRequest {
    return this.persistent(calls.alltoall, args, 2);
  }
  alltoallvInit(...args: calls.AlltoallvArgs): PersistentRequest {
    return this.persistent(calls.alltoallv, args, 6);
  }
  alltoallwInit(...args: calls.AlltoallwArgs): PersistentRequest {
    return this.persistent(calls.alltoallw, args, 2);
  }
  reduceScatterInit(...args: calls.ReduceScatterArgs): PersistentRequest {
    return this.persistent(calls.reduceScatter, args, 4);
  }
  reduceScatterBlockInit(...args: calls.ReduceScatterBlockArgs): PersistentRequest {
    return this.persistent(calls.reduceScatterBlock, args, 3);
  }
  scanInit(...args: calls.ScanArgs): PersistentRequest {
    return this.persistent(calls.scan, args, 3);
  }
  exscanInit(...args: calls.ScanArgs): PersistentRequest {
    return this.persistent(calls.exscan, args, 3);
  }
}

function optionsOf(args: readonly unknown[], at: number): CallOptions | undefined {
  const options = args[at] as CallOptions | undefined;
  if (options !== undefined) checkOptions(options);
  return options;
}

function lateError({ name, scope }: { name: string; scope: Scope }, timeoutMs: number): MultirailError {
  return new MultirailError('ERR_TIMEOUT', `${name} on ${scope.name} did not end within ${timeoutMs} ms at rank ${scope.rank}`, {
    rank: scope.host.rank,
  });
}
