// The state of one process that its communicators share: the engine, the end of the runtime, the table of contexts, the collectives that
// run, and the blocking probes that wait for a message.
import type { MultirailError } from '../errors.ts';
import type { Envelope, RecvRequest, SendRequest } from '../pml/records.ts';
import type { BlockingWaiter } from '../progress/blocking.ts';
import type { Engine } from '../progress/engine.ts';
import { MemoryPool } from '../util/memory-pool.ts';
import type { Tuning } from './coll/choice.ts';
import { FailureNotices } from './coll/failures.ts';
import type { ScratchElements } from './coll/memory.ts';
import type { NativeKernels } from './coll/native-kernels.ts';
import { Operation } from './coll/operation.ts';
import type { CollectiveCounters, LocalProcess, RunningCall, Scope } from './coll/scope.ts';
import { agree } from './coll/signature.ts';
import { ANY_SOURCE, type CallOptions, watchEnd } from './constants.ts';
import { COLLECTIVE, ContextTable, ctxOf, idOf } from './contexts.ts';

interface Waiter {
  /** True when it was served and goes. */
  look(): boolean;
  fail(error: MultirailError): void;
  readonly pattern: ProbePattern;
  /** Of the clock of the driver. */
  readonly sinceMs: number;
}

/** What a probe that waits looks for: world rank or ANY, context, tag or ANY. */
export interface ProbePattern {
  source: number;
  ctx: number;
  tag: number;
}

/** What is asked of a communicator. */
interface KnownCommunicator {
  readonly name: string;
  /** Of its collectives. */
  readonly scope: Scope;
  hasBegun(tag: number): boolean;
  /** Its other members are all gone, at least one of them dead: why nothing of them can come any more. */
  readonly deserted: MultirailError | undefined;
  /** That may be so since just now. */
  memberGone(): void;
}

/** How often collectives that stand still are looked at. */
const CALLS_LOOK_MS = 500;
/** Records of collectives that are kept for the next ones. */
const IDLE_MAX = 64;
/** Scratch memory of collectives that is kept for the next one, and its longest piece. */
const SCRATCH_KEPT_BYTES_MAX = 64 * 1024 * 1024;
const SCRATCH_PIECE_BYTES_MAX = 32 * 1024 * 1024;

export class ProcessState implements LocalProcess {
  readonly engine: Engine;
  readonly blocking: BlockingWaiter;
  /** World rank of this process. */
  readonly rank: number;
  readonly contexts: ContextTable;
  readonly tuning: Tuning;
  /** Undefined without the native part. */
  readonly nativeKernels: NativeKernels | undefined;
  /** Collectives that are under way. */
  readonly operations = new Set<RunningCall>();
  readonly failures: FailureNotices = new FailureNotices(this);
  /** Scratch memory of collectives that have ended. */
  readonly spare: ScratchElements[] = [];
  readonly scratch = new MemoryPool(SCRATCH_KEPT_BYTES_MAX, SCRATCH_PIECE_BYTES_MAX);
  readonly counters: CollectiveCounters = { collectives: 0, messages: 0, bytes: 0, rounds: 0 };
  /** Which host each world rank runs on; to be asked once the addresses were exchanged. */
  hostIds: () => readonly string[] = () => [];
  /** Communicators that are being freed: each looks whether nothing is under way any more, true when it need not look again. */
  private readonly drains = new Set<() => boolean>();
  /** Messages of collectives that do not belong to the call that was made here. */
  private readonly strangers: Pick<Envelope, 'ctx' | 'tag' | 'source' | 'signature'>[] = [];
  /** Records of collectives that have ended, for the next ones. */
  private readonly idle: Operation[] = [];
  private callsTimer: NodeJS.Timeout | undefined;
  private callsLookedMs = Number.NEGATIVE_INFINITY;
  private readonly waiters = new Set<Waiter>();
  private lookScheduled = false;
  private endError: MultirailError | undefined;
  /** Processes that failed or left. */
  membersGone = 0;

  constructor(
    engine: Engine,
    blocking: BlockingWaiter,
    rank: number,
    size: number,
    tuning: Tuning,
    nativeKernels: NativeKernels | undefined,
  ) {
    this.engine = engine;
    this.blocking = blocking;
    this.rank = rank;
    this.tuning = tuning;
    this.nativeKernels = nativeKernels;
    this.contexts = new ContextTable(engine.pml, rank, size);
    engine.pml.onUnexpected = (envelope) => {
      if (envelope.signature !== 0) this.meetUnexpected(envelope);
      this.lookSoon();
    };
  }

  /** A collective, a probe that waits, or the end of a communicator is under way. */
  get isBusy(): boolean {
    return this.operations.size > 0 || this.waiters.size > 0 || this.drains.size > 0;
  }

  /** Throws ERR_FINALIZED once finalize() was called. */
  mustBeActive(): void {
    if (this.endError !== undefined) throw this.endError;
  }

  /** From now on every call ends with this error; what waits for a message ends now. */
  end(error: MultirailError): void {
    this.endError = error;
    clearInterval(this.callsTimer);
    for (const waiter of [...this.waiters]) waiter.fail(error);
    this.waiters.clear();
    this.engine.pml.endPosted(error);
    this.engine.schedule();
  }

  /** By id, from their making to their end. */
  private readonly communicators = new Map<number, KnownCommunicator>();

  beginCommunicator(id: number, communicator: KnownCommunicator): void {
    this.communicators.set(id, communicator);
  }

  /** A collective with that tag has begun here, on the communicator that uses this context for them. */
  hasBegun(ctx: number, tag: number): boolean {
    return this.communicators.get(idOf(ctx))?.hasBegun(tag) ?? false;
  }

  /** From the first collective on: calls that stand still are looked at, each of them at once. */
  watchCalls(): void {
    if (this.callsTimer !== undefined || !this.tuning.checkSignatures) return;
    this.callsTimer = setInterval(() => this.lookAtCalls(), CALLS_LOOK_MS);
    this.callsTimer.unref();
  }

  /** Also from blocking calls that last, during which no timer runs. */
  lookAtBlockedCalls(nowMs: number): void {
    if (nowMs - this.callsLookedMs < CALLS_LOOK_MS) return;
    this.callsLookedMs = nowMs;
    this.lookAtCalls();
  }

  private lookAtCalls(): void {
    for (const operation of this.operations) operation.askAround();
  }

  /** A record for a collective that begins. */
  takeOperation<T>(): Operation<T> {
    return (this.idle.pop() as Operation<T> | undefined) ?? new Operation<T>();
  }

  /** Nobody refers to it any more. One that has failed is not used again: what was begun for it may not have ended. */
  recycle<T>(operation: Operation<T>): void {
    if (operation.error === undefined && operation.done && this.idle.length < IDLE_MAX) this.idle.push(operation as Operation);
  }

  /** The ranks that make collective calls on that context; undefined when it is of no communicator. */
  scopeOf(ctx: number): Scope | undefined {
    const scope = this.communicators.get(idOf(ctx))?.scope;
    return scope?.ctx === ctx ? scope : undefined;
  }

  /** The first that runs of the collectives that were begun after that many others. */
  runningAfter(ctx: number, order: number): RunningCall | undefined {
    for (const operation of this.operations) {
      if (operation.scope.ctx === ctx && operation.isRunning && operation.order > order) return operation;
    }
    return undefined;
  }

  findOperation(ctx: number, tag: number): RunningCall | undefined {
    for (const operation of this.operations) if (operation.scope.ctx === ctx && operation.tag === tag) return operation;
    return undefined;
  }

  /** A message of a collective that nobody waits for: it is early, or whoever has sent it makes another call. */
  private meetUnexpected({ ctx, tag, source, signature }: Envelope): void {
    const scope = this.scopeOf(ctx);
    if (scope === undefined || !scope.tuning.checkSignatures) return;
    const entry = scope.ledger.find(tag);
    if (entry === undefined) {
      if (!this.hasBegun(ctx, tag)) scope.ledger.noteEarly(tag, source, signature);
    } else if (!entry.failed && !agree(entry.signature.code, signature)) {
      this.strangers.push({ ctx, tag, source, signature });
      this.lookAfterWork();
    }
  }

  /** Outside of the turn in which their messages came. */
  private meetStrangers(): void {
    for (const { ctx, tag, source, signature } of this.strangers.splice(0)) {
      const scope = this.scopeOf(ctx);
      const entry = scope?.ledger.find(tag);
      if (scope === undefined || entry === undefined || entry.failed) continue;
      const running = this.findOperation(ctx, tag);
      if (running !== undefined) running.meet(source, signature);
      else this.failures.ask(source, scope, tag, entry.signature, true);
    }
  }

  /** For people: which communicator a context is of, and which collective, if any, talks there with that tag. */
  describe(ctx: number, tag: number): { comm: string; call: string | undefined } {
    const comm = this.communicators.get(idOf(ctx))?.name ?? `context ${ctx}`;
    return { comm, call: this.findOperation(ctx, tag)?.name };
  }

  /** The communicator with that id is gone; `isClean`: all that was sent on it has arrived. Posted receives end with the error. */
  endCommunicator(id: number, isClean: boolean, error: MultirailError): void {
    this.communicators.delete(id);
    this.failures.forget(ctxOf(id, COLLECTIVE));
    if (isClean) this.contexts.close(id);
    else this.contexts.abandon(id, error);
    this.engine.schedule();
  }

  /** The communicator of that context has not come to its end; its free() may be under way. */
  isOpen(ctx: number): boolean {
    return this.communicators.has(idOf(ctx));
  }

  /** Nothing of that communicator is under way here. */
  isQuiet(id: number): boolean {
    return this.contexts.isQuiet(id, this.failures.drainsOn(ctxOf(id, COLLECTIVE)));
  }

  /** That process failed or left: what waits for it ends. */
  memberGone(): void {
    this.membersGone++;
    for (const communicator of this.communicators.values()) communicator.memberGone();
    this.lookSoon();
    for (const operation of this.operations) operation.check();
    this.lookAtDrains();
  }

  /** `look` is asked after each turn of the engine until it answers true. */
  whenDrained(look: () => boolean): void {
    if (look()) return;
    this.drains.add(look);
    this.lookAfterWork();
  }

  private lookAfterWork(): void {
    this.engine.afterWork = () => {
      if (this.strangers.length > 0) this.meetStrangers();
      this.lookAtDrains();
    };
  }

  private lookAtDrains(): void {
    for (const look of this.drains) if (look()) this.drains.delete(look);
    if (this.drains.size === 0 && this.strangers.length === 0) this.engine.afterWork = undefined;
  }

  cancel(request: RecvRequest): boolean {
    const cancelled = this.engine.pml.cancel(request);
    this.engine.schedule();
    return cancelled;
  }

  /** Ends a send before its time; its message may still arrive. */
  giveUp(request: SendRequest, error: MultirailError): void {
    this.engine.pml.giveUp(request, error);
    this.engine.schedule();
  }

  /** Probes look again, after the rails had their turn. */
  lookSoon(): void {
    if (this.lookScheduled || this.waiters.size === 0) return;
    this.lookScheduled = true;
    queueMicrotask(() => {
      this.lookScheduled = false;
      // In the order in which they came: a matched probe takes the message away from those behind it.
      for (const waiter of [...this.waiters]) if (this.waiters.has(waiter) && waiter.look()) this.waiters.delete(waiter);
    });
  }

  /** Probes that wait: what each looks for, and since when. */
  probes(): Iterable<{ readonly pattern: ProbePattern; readonly sinceMs: number }> {
    return this.waiters;
  }

  /** The message that a receive with this pattern would match; `take`: it is taken out of the queue. World rank or ANY. */
  findMessage(source: number, ctx: number, tag: number, take: boolean): Envelope | undefined {
    const { pml } = this.engine;
    const envelope = take ? pml.improbe(source, ctx, tag) : pml.iprobe(source, ctx, tag);
    if (envelope !== undefined) return envelope;
    const ended = source === ANY_SOURCE ? this.communicators.get(idOf(ctx))?.deserted : pml.peer(source).ended;
    if (ended !== undefined) throw ended;
    return undefined;
  }

  /** As findMessage, waiting until there is one. */
  waitForMessage(source: number, ctx: number, tag: number, take: boolean, options: CallOptions | undefined): Promise<Envelope> {
    const found = this.findMessage(source, ctx, tag, take);
    if (found !== undefined) return Promise.resolve(found);
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        pattern: { source, ctx, tag },
        sinceMs: this.blocking.now(),
        look: () => {
          try {
            const envelope = this.findMessage(source, ctx, tag, take);
            if (envelope === undefined) return false;
            release?.();
            resolve(envelope);
          } catch (error) {
            waiter.fail(error as MultirailError);
          }
          return true;
        },
        fail: (error) => {
          release?.();
          reject(error);
        },
      };
      const release = watchEnd(options, (error) => {
        this.waiters.delete(waiter);
        reject(error);
      });
      this.waiters.add(waiter);
    });
  }
}
