// The four ways to run a collective call (coll/calls.ts) on a communicator: as a promise, as a blocking call, as a request, and as a
// persistent request.
import { MultirailError } from '../errors.ts';
import type { Call } from './coll/calls.ts';
import { KnownRegions } from './coll/memory.ts';
import { Operation } from './coll/operation.ts';
import type { Scope } from './coll/scope.ts';
import type { AtOnce } from './coll/shared/at-once.ts';
import { type Attempt, SharedCalls } from './coll/shared/call-memory.ts';
import { KnownCalls } from './coll/shared/known-calls.ts';
import type { SharedSegment } from './coll/shared/segment.ts';
import { SETUP_TAG, Setup } from './coll/shared/setup.ts';
import { KnownSignatures, Ledger, type Signature } from './coll/signature.ts';
import { type CallOptions, describe, TAG_UB, watchEnd } from './constants.ts';
import { COLLECTIVE, ctxOf } from './contexts.ts';
import type { Group } from './group.ts';
import { ObjectMessages } from './object-messages.ts';
import type { ProcessState } from './process-state.ts';
import { endRequestAt, PersistentRequest, type Request } from './request.ts';
import { RunningTrace, tracedSince } from './tracing.ts';

/** Calls of a communicator with many ranks that go by messages before it makes memory to share. */
const CALLS_BEFORE_MEMORY = 4;
/** Calls in one step between two looks at the rails. */
const CALLS_PER_POLL = 64;
/** A call in one step is tried again, with a look at the rails in between, for about as long as a blocking call spins. */
const ATTEMPTS_PER_MS = 100;
const NO_TAG = -1;

export class CollectiveRuns extends ObjectMessages {
  protected readonly signatures = new KnownSignatures();
  /** Its `shared` is undefined where all go by messages. */
  private readonly scope: Scope & { shared: SharedCalls | undefined };
  /** The scope of collectives that go by messages wherever the ranks are. */
  private readonly messageScope: Scope;
  private memory: SharedCalls | undefined;
  private readonly everybody: Group;
  private wantsMemory: boolean;
  private arePlacesKnown = false;
  private setup: Operation<SharedSegment | undefined> | undefined;
  /** Number of the next collective: all ranks count alike. */
  protected nextCollective = 0;
  private readonly knownCalls = new KnownCalls();
  /** The collective that is tried in one step. */
  private tagAtOnce = NO_TAG;
  /** Numbers of persistent collectives: they are theirs for good. */
  private readonly keptTags = new Set<number>([SETUP_TAG]);

  /** @internal */
  constructor(proc: ProcessState, name: string, contextId: number, group: Group) {
    super(proc, name, contextId, group);
    const ctx = ctxOf(contextId, COLLECTIVE);
    this.messageScope = this.scopeOf(ctx, group);
    this.scope = Object.create(this.messageScope, { shared: { value: undefined, writable: true } });
    this.everybody = group;
    this.wantsMemory = proc.tuning.sharedMemory;
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
      hasBegun: (tag) => {
        if (tag === SETUP_TAG) return this.memory?.isIdle === false;
        return this.keptTags.has(tag) || (tag <= this.nextCollective && tag !== this.tagAtOnce);
      },
      memberGone: () => desk.memberGone(),
      endsSetup: (error) => this.endSetup(error),
      close: (error) => this.memory?.close(error),
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
      shared: undefined,
    };
  }

  // ---------------------------------------------------------------- shared memory

  /**
   * Whether short collectives of this communicator may go through memory that its ranks share, where these are on one host. True unless the
   * parameter coll_shared_memory says otherwise, or the communicator that it was made of. Whoever wants to see or count the messages of
   * collectives sets it to false: before the same call at every rank, since all ranks of a call must go the same way.
   */
  get usesSharedMemory(): boolean {
    return this.wantsMemory;
  }

  /**
   * Says whether they may, from the next call on.
   *
   * @param wanted The same at every rank.
   * @throws ERR_ARG: it is neither true nor false.
   */
  set usesSharedMemory(wanted: boolean) {
    if (typeof wanted !== 'boolean')
      throw new MultirailError('ERR_ARG', `usesSharedMemory is set to ${describe(wanted)}; expected true or false`);
    this.wantsMemory = wanted;
    this.knownCalls.forget();
    this.scope.shared = wanted ? this.memory : undefined;
  }

  /**
   * With the first call: to ask where every rank runs costs something, and a program may never make one. With many ranks it costs more than a
   * few calls by messages, and many programs make one or two: all ranks count the calls alike.
   */
  private lookForPlaces(): void {
    const { proc, messageScope } = this;
    if (this.everybody.size > proc.tuning.sharedMemoryRanksMax && this.nextCollective < CALLS_BEFORE_MEMORY) return;
    this.arePlacesKnown = true;
    if (proc.mayShare(this.everybody)) this.memory = new SharedCalls(messageScope, proc.memoryWaits);
    this.scope.shared = this.wantsMemory ? this.memory : undefined;
  }

  /** With the first collective that may go through it, which is the same at every rank. */
  private setUpMemory(memory: SharedCalls): void {
    const { proc } = this;
    memory.setUpBegins();
    const source = proc.memorySource;
    const setup = new Setup(source, proc.tuning.sharedMemoryBytesMax);
    const operation = new Operation<SharedSegment | undefined>().begin(this.messageScope, this.signatures.of('barrier'), SETUP_TAG);
    operation.isHidden = true;
    this.setup = operation;
    operation.onDone = () => {
      const segment = operation.error === undefined ? operation.result : undefined;
      if (segment === undefined) setup.dispose();
      memory.setUpEnded(segment, () => source?.memoryUnmap((segment as SharedSegment).memory));
      proc.engine.schedule();
    };
    operation.start(setup.steps(operation));
  }

  /** Nobody waits for it any more: a member that has made other calls might never come. */
  private endSetup(error: MultirailError): void {
    const { setup } = this;
    if (setup !== undefined && !setup.done) setup.fail(error, true);
  }

  // ---------------------------------------------------------------- four ways to run a call

  /** After 2^31 collectives numbers start again: none of those is under way any more, but for persistent ones. */
  private takeTag(): number {
    do {
      this.nextCollective = this.nextCollective === TAG_UB ? 0 : this.nextCollective + 1;
    } while (this.keptTags.has(this.nextCollective));
    return this.nextCollective;
  }

  /** Starts a collective on this communicator, or on those ranks. */
  protected begin<T>(call: Call<T>, scope: Scope = this.scope, tag?: number): Operation<T> {
    if (!this.arePlacesKnown) this.lookForPlaces();
    // Persistent ones, which have a tag, are started in any order.
    const { shared } = this.scope;
    if (scope === this.scope && tag === undefined && shared?.isIdle === true) this.setUpMemory(shared);
    const sinceMs = tracedSince();
    const operation = this.proc.takeOperation<T>().begin(scope, call.signature, tag ?? this.takeTag());
    if (sinceMs !== undefined) {
      const { name, root } = call.signature;
      const trace = { operation: name, rank: scope.rank, comm: this.name, ...(root === undefined ? {} : { root }) };
      operation.trace = new RunningTrace(trace, sinceMs);
    }
    return operation.start(call.steps(operation));
  }

  protected prepare<A extends unknown[], T>(make: (scope: Scope, ...args: A) => Call<T>, args: A, scope: Scope = this.scope): Call<T> {
    this.mustBeUsable();
    if (!this.arePlacesKnown) this.lookForPlaces();
    return make(scope, ...args);
  }

  protected run<A extends unknown[], T>(make: (scope: Scope, ...args: A) => Call<T>, args: A, optionsAt = args.length): Promise<T> {
    try {
      const options = this.optionsOf(args, optionsAt);
      const operation = this.begin(this.prepare(make, args));
      if (options !== undefined) this.limit(operation, options);
      const { turns } = this.desk;
      if (turns === undefined && operation.done && operation.error === undefined) return Promise.resolve(this.takeResult(operation));
      const result = new Promise<T>((resolve, reject) => {
        const settle = (): void => (operation.error === undefined ? resolve(this.takeResult(operation)) : reject(operation.error));
        if (operation.done) settle();
        else operation.onDone = settle;
      });
      return turns === undefined ? result : turns.inTurn(result);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  protected runSync<A extends unknown[], T>(make: (scope: Scope, ...args: A) => Call<T>, args: A, optionsAt = args.length): T {
    const options = this.optionsOf(args, optionsAt);
    const known = this.knownCalls.find<Call<T>>(make, args);
    const call = known ?? this.prepare(make, args);
    if (known !== undefined) this.mustBeUsable();
    this.mustReachByPolling();
    const { atOnce } = call;
    let tag: number | undefined;
    if (atOnce !== undefined && this.scope.shared?.isReady === true) {
      tag = this.takeTag();
      if (this.goesAtOnce(tag, call.signature, atOnce)) {
        if (known === undefined) this.knownCalls.keep(make, args, call);
        return undefined as T;
      }
      // It may have been revoked meanwhile.
      this.mustBeUsable();
    }
    const operation = this.begin(call, this.scope, tag);
    if (operation.awaitsMemory && tag === undefined) this.proc.memoryWaits.spin(operation);
    this.endedSync(operation, options?.timeoutMs);
    return this.takeResult(operation);
  }

  /** In one step of the native part, as long as nothing is known that could end the call with an error. */
  private goesAtOnce(tag: number, signature: Signature, atOnce: AtOnce): boolean {
    const { scope, proc } = this;
    const { blocking, counters, engine } = proc;
    const attemptsMax = 1 + blocking.spinMs * ATTEMPTS_PER_MS;
    const code = scope.tuning.checkSignatures ? signature.code : 0;
    // News of it that come meanwhile are kept for its steps.
    this.tagAtOnce = tag;
    let attempt: Attempt = 'AGAIN';
    for (let n = 0; n < attemptsMax && attempt === 'AGAIN'; n++) {
      if (n > 0) engine.poll();
      attempt = this.mayGoAtOnce(tag, code) ? (scope.shared as SharedCalls).tryAtOnce(tag, code, atOnce) : 'BY_STEPS';
    }
    this.tagAtOnce = NO_TAG;
    if (attempt !== 'DONE') return false;
    if (code !== 0) scope.ledger.begin(tag, signature);
    counters.collectives++;
    // A program that makes nothing but such calls moves its rails, too.
    if (++counters.atOnce % CALLS_PER_POLL === 0) engine.poll();
    return true;
  }

  private mayGoAtOnce(tag: number, code: number): boolean {
    const { scope, proc } = this;
    const { ledger } = scope;
    if (proc.failures.hasNews || ledger.late !== undefined || tracedSince() !== undefined || proc.failureOf(scope) !== undefined)
      return false;
    return code === 0 || ledger.earlyStranger(tag, code) === -1;
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

  private optionsOf(args: readonly unknown[], at: number): CallOptions | undefined {
    const options = args[at] as CallOptions | undefined;
    if (options !== undefined) this.checkEnd(options);
    return options;
  }

  private takeResult<T>(operation: Operation<T>): T {
    const result = operation.result as T;
    this.proc.recycle(operation);
    return result;
  }

  protected request<A extends unknown[]>(make: (scope: Scope, ...args: A) => Call, args: A, optionsAt: number): Request {
    const options = this.optionsOf(args, optionsAt);
    const operation = this.begin(this.prepare(make, args));
    const request = this.desk.requestOf(operation);
    if (options !== undefined) this.limit(operation, options, request);
    return request;
  }

  /** By messages: they are started in any order, which calls through shared memory cannot be. */
  protected persistent<A extends unknown[]>(make: (scope: Scope, ...args: A) => Call, args: A, optionsAt: number): PersistentRequest {
    const options = this.optionsOf(args, optionsAt);
    const { messageScope } = this;
    this.prepare(make, args, messageScope);
    const tag = this.takeTag();
    this.keptTags.add(tag);
    let failed: MultirailError | undefined;
    return new PersistentRequest(this.desk, () => {
      // What one rank has of a run that failed would meet the next run of another.
      if (failed !== undefined) throw failed;
      // Looked at again: buffers may have been detached since.
      const inner = this.begin(this.prepare(make, args, messageScope), messageScope, tag);
      inner.onFailed = (error) => {
        failed = error;
      };
      if (options !== undefined) this.limit(inner, options);
      return { inner };
    });
  }
}

function lateError({ name, scope }: { name: string; scope: Scope }, timeoutMs: number): MultirailError {
  return new MultirailError('ERR_TIMEOUT', `${name} on ${scope.name} did not end within ${timeoutMs} ms at rank ${scope.rank}`, {
    rank: scope.proc.rank,
  });
}
