// The four ways to run a collective call (coll/calls.ts) on a communicator: as a promise, as a blocking call, as a request, and as a
// persistent request.
import { MultirailError } from '../errors.ts';
import type { Call } from './coll/calls.ts';
import { KnownRegions } from './coll/memory.ts';
import type { Operation } from './coll/operation.ts';
import type { Scope } from './coll/scope.ts';
import { KnownSignatures, Ledger } from './coll/signature.ts';
import { type CallOptions, checkOptions, TAG_UB, watchEnd } from './constants.ts';
import { COLLECTIVE, ctxOf } from './contexts.ts';
import type { Group } from './group.ts';
import { ObjectMessages } from './object-messages.ts';
import type { ProcessState } from './process-state.ts';
import { endRequestAt, PersistentRequest, type Request } from './request.ts';
import { RunningTrace, tracedSince } from './tracing.ts';

export class CollectiveRuns extends ObjectMessages {
  protected readonly signatures = new KnownSignatures();
  private readonly scope: Scope;
  /** Number of the next collective: all ranks count alike. */
  private nextCollective = 0;
  /** Numbers of persistent collectives: they are theirs for good. */
  private readonly keptTags = new Set<number>();

  /** @internal */
  constructor(proc: ProcessState, name: string, contextId: number, group: Group) {
    super(proc, name, contextId, group);
    const ctx = ctxOf(contextId, COLLECTIVE);
    this.scope = this.scopeOf(ctx, group);
    const { desk } = this;
    const named = this;
    proc.beginCommunicator(contextId, {
      get name() {
        return desk.name;
      },
      get desertion() {
        return desk.desertion;
      },
      get revocation() {
        return named.revocation;
      },
      revoked: () => this.markRevoked(),
      scope: this.scope,
      hasBegun: (tag) => this.keptTags.has(tag) || tag <= this.nextCollective,
      memberGone: () => desk.memberGone(),
    });
  }

  /** Ranks of this communicator that talk on a context of their own. */
  protected scopeOf(ctx: number, group: Group): Scope {
    const named = this;
    return {
      proc: this.proc,
      get name() {
        return named.name;
      },
      members: group.worldRanks,
      rank: group.rank,
      size: group.size,
      ctx,
      tuning: this.proc.tuning,
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
    const sinceMs = tracedSince();
    const operation = this.proc.takeOperation<T>().begin(scope, call.signature, tag ?? this.takeTag());
    if (sinceMs !== undefined) {
      const { name, root } = call.signature;
      const trace = { operation: name, rank: scope.rank, comm: this.name, ...(root === undefined ? {} : { root }) };
      operation.trace = new RunningTrace(trace, sinceMs);
    }
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
    this.proc.recycle(operation);
    return result;
  }

  protected request<A extends unknown[]>(make: (scope: Scope, ...args: A) => Call, args: A, optionsAt: number): Request {
    const options = optionsOf(args, optionsAt);
    const operation = this.begin(this.prepare(make, args));
    const request = this.desk.requestOf(operation);
    if (options !== undefined) this.limit(operation, options, request);
    return request;
  }

  protected persistent<A extends unknown[]>(make: (scope: Scope, ...args: A) => Call, args: A, optionsAt: number): PersistentRequest {
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
}

function optionsOf(args: readonly unknown[], at: number): CallOptions | undefined {
  const options = args[at] as CallOptions | undefined;
  if (options !== undefined) checkOptions(options);
  return options;
}

function lateError({ name, scope }: { name: string; scope: Scope }, timeoutMs: number): MultirailError {
  return new MultirailError('ERR_TIMEOUT', `${name} on ${scope.name} did not end within ${timeoutMs} ms at rank ${scope.rank}`, {
    rank: scope.proc.rank,
  });
}
