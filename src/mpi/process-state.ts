// The state of one process that its communicators share: the engine, the end of the runtime, the table of contexts, the collectives that
// run, and the blocking probes that wait for a message.

import { MultirailError } from '../errors.ts';
import type { NativeBinding } from '../native/binding.ts';
import type { MessageLayer } from '../pml/message-layer.ts';
import type { Envelope, RecvRequest, SendRequest } from '../pml/records.ts';
import type { BlockingWaiter } from '../progress/blocking.ts';
import type { Engine } from '../progress/engine.ts';
import { lookOnce } from '../progress/look-once.ts';
import type { Ending } from '../progress/peers.ts';
import { MemoryPool } from '../util/memory-pool.ts';
import { sharedRanksMax, type Tuning } from './coll/choice.ts';
import { FailureNotices } from './coll/failures.ts';
import type { ScratchElements } from './coll/memory.ts';
import { NativeKernels } from './coll/native-kernels.ts';
import { Operation } from './coll/operation.ts';
import type { CollectiveCounters, LocalProcess, RunningCall, Scope, SharedMemorySource } from './coll/scope.ts';
import { SETUP_TAG } from './coll/shared/setup.ts';
import { CollectiveWaits } from './coll/shared/waits.ts';
import { agree } from './coll/signature.ts';
import { ANY_SOURCE, type CallOptions, watchEnd } from './constants.ts';
import { COLLECTIVE, ContextTable, ctxOf, idOf, SERVICE_ID, USER } from './contexts.ts';
import type { FaultTolerance } from './ft/fault-tolerance.ts';
import type { LoggedPlace, MadeImage } from './ft/logged-family.ts';
import type { AnyReceive, RecordedOutcomes } from './ft/recorded-outcomes.ts';
import type { Turns } from './ft/turns.ts';
import type { Group } from './group.ts';
import type { ReplicaProcess } from './replica/replica-process.ts';

interface Waiter {
  /** True when it was served and goes. */
  look(): boolean;
  fail(error: MultirailError): void;
  readonly pattern: ProbePattern;
  /** The time, by the clock of the driver. */
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
  /** Where its collectives run. */
  readonly scope: Scope;
  hasBegun(tag: number): boolean;
  /** Why a call that takes a message of anybody ends: all others are gone, or a failure is not acknowledged. */
  readonly desertion: MultirailError | undefined;
  /** Set once it was revoked. */
  readonly revocation: MultirailError | undefined;
  /** It is revoked from now on: returns what its calls end with. */
  revoked(): MultirailError;
  /** That may be so since just now. */
  memberGone(): void;
  /** Nobody waits any more for memory that the ranks are about to share. */
  endsSetup(error: MultirailError): void;
  /** It is gone, or revoked: nothing of it goes through shared memory any more. */
  close(error: MultirailError): void;
}

/** The communicator whose messages are logged, as far as calls on it go (ft/logged-streams.ts). */
interface LoggedCommunicator {
  readonly id: number;
  /** Nothing on it is repeated by anybody. */
  readonly isSettled: boolean;
  covers(ctx: number): boolean;
  /** Receives and probes may be from anybody. */
  readonly takesAnybody: boolean;
  /** Undefined: none are recorded. */
  readonly outcomes: RecordedOutcomes | undefined;
  readonly turns: Turns | undefined;
  numberOf(rank: number): number;
  rankOf(number: number): number;
  /** A call on that context waits for the successor of a member that has died, instead of failing. */
  holds(ctx: number): boolean;
  /** Of communicators that are made of it: see ft/logged-streams.ts. */
  allocate(): number;
  current(numbers: readonly number[]): number[];
  adopt(place: LoggedPlace, call: string): void;
  readonly isRemaking: boolean;
  given(call: string): Pick<MadeImage, 'id' | 'members' | 'counters'> | undefined;
  ended(id: number): void;
  abort(error: MultirailError): void;
}

/** How often collectives that do not move are looked at. */
const CALLS_LOOK_MS = 500;
/** Records of collectives that are kept for the next ones. */
const IDLE_MAX = 64;
/** Scratch memory of collectives that is kept for the next one, and its longest piece. */
const SCRATCH_KEPT_BYTES_MAX = 64 * 1024 * 1024;
const SCRATCH_PIECE_BYTES_MAX = 32 * 1024 * 1024;

export class ProcessState implements LocalProcess {
  readonly engine: Engine;
  /** The PML; where this process is one of two replicas, what stands in its place: another one once a shadow has become a lead. */
  pml: MessageLayer;
  readonly blocking: BlockingWaiter;
  /** Undefined where each rank is one process. */
  readonly replica: ReplicaProcess | undefined;
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
  readonly counters: CollectiveCounters = { collectives: 0, messages: 0, bytes: 0, rounds: 0, atOnce: 0 };
  /** Which host a process of the job runs on; to be asked once the addresses were exchanged. */
  hostOf: (number: number) => string = () => '';
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
  private readonly native: NativeBinding | undefined;
  /** Calls that wait for memory which other processes write. */
  readonly memoryWaits: CollectiveWaits;
  /** Ranks of one host may share memory: the transport for it was asked for. Known once the transports are. */
  sharesMemory = false;
  /** Members of the world of the start: everybody knows their hosts, and what they have said of shared memory. */
  worldSizeAtStart = 0;
  /** The ranks of this host are more than the processors that they may use. */
  isCrowded = false;
  /** Processes that failed or left. */
  membersGone = 0;
  /** What multirail/ft counts; undefined where the program does not run under it. */
  saveCounters: (() => Readonly<Record<string, number>>) | undefined;
  /** Undefined where the parameter ft is off. */
  ft: FaultTolerance | undefined;
  /** The communicator whose messages are logged; undefined without asynchronous recovery. */
  logged: LoggedCommunicator | undefined;

  constructor(
    engine: Engine,
    blocking: BlockingWaiter,
    rank: number,
    tuning: Tuning,
    native: NativeBinding | undefined,
    replica?: ReplicaProcess,
  ) {
    this.engine = engine;
    this.pml = replica?.pml ?? engine.pml;
    this.replica = replica;
    this.blocking = blocking;
    this.rank = rank;
    this.tuning = tuning;
    this.native = native;
    this.nativeKernels = native && new NativeKernels(native.combine);
    this.contexts = new ContextTable(this.pml, rank);
    this.memoryWaits = new CollectiveWaits({
      engine,
      native,
      watch: blocking.watch,
      ring: (world) => engine.modules.some((module) => module.ring?.(world) === true),
      isCrowded: () => this.isCrowded,
    });
    engine.memoryWaits = this.memoryWaits;
    this.listenToLayer();
  }

  private listenToLayer(): void {
    this.pml.onUnexpected = (envelope) => {
      if (envelope.signature !== 0) this.meetUnexpected(envelope);
      this.lookSoon();
    };
  }

  /** This process was a shadow, and is a lead: what was begun goes on there. */
  layerChanged(): void {
    const { replica } = this;
    if (replica === undefined) return;
    this.pml = replica.pml;
    this.contexts.goOnWith(replica.pml);
    this.listenToLayer();
    this.lookSoon();
  }

  /** A collective, a probe that waits, or the end of a communicator is under way. */
  get isBusy(): boolean {
    return this.operations.size > 0 || this.waiters.size > 0 || this.drains.size > 0 || this.ft?.isBusy === true;
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
    this.ft?.endCalls(error);
    for (const communicator of this.communicators.values()) communicator.close(error);
    this.pml.endPosted(error);
    this.engine.schedule();
  }

  /** By id, from their making to their end. */
  private readonly communicators = new Map<number, KnownCommunicator>();

  beginCommunicator(id: number, communicator: KnownCommunicator): void {
    this.communicators.set(id, communicator);
    this.ft?.open(id, communicator.scope.members);
  }

  /** Ids of those that have not come to their end. */
  communicatorIds(): number[] {
    return [...this.communicators.keys()];
  }

  /** A collective on these ranks cannot go well: one of them is known to be dead. */
  failureOf({ name, members, ctx }: Scope): MultirailError | undefined {
    // There a dead member has a successor, whom the call waits for.
    if (this.logged?.holds(ctx)) return undefined;
    const failure = this.ft?.failureAmong(members);
    if (failure === undefined) return undefined;
    const { rank, number, text } = failure;
    return new MultirailError('ERR_PROC_FAILED', `rank ${rank} of ${name} (process ${number}) has failed: ${text}`, {
      rank: this.rank,
      peer: number,
    });
  }

  /** That communicator was revoked, here or by another member: whatever is under way on it ends. */
  revoked(id: number): void {
    const communicator = this.communicators.get(id);
    if (communicator === undefined) return;
    const error = communicator.revoked();
    // The barrier of its free() runs on the service context, and has its id as the tag.
    const freeing = ctxOf(SERVICE_ID, USER);
    for (const operation of [...this.operations]) {
      const { scope, tag } = operation;
      if (idOf(scope.ctx) === id || (scope.ctx === freeing && tag === id)) operation.revoked(error);
    }
    // A member that still waits in its memory hears of the revocation, too.
    communicator.close(error);
    this.contexts.revoke(id, error);
    this.lookSoon();
    this.lookAtDrains();
  }

  /** How that member ended; undefined while it lives, or another replica of its rank has its place. */
  endingOf(member: number): Ending | undefined {
    return this.engine.endingOf(this.replica?.numberOf(member) ?? member);
  }

  get hearsOfDeaths(): boolean {
    return this.ft !== undefined;
  }

  /** Undefined where this process can share no memory. */
  get memorySource(): SharedMemorySource | undefined {
    return this.sharesMemory ? this.native : undefined;
  }

  /** What all of these ranks know alike: they are on one host, and may share memory there. */
  mayShare({ size, worldRanks }: Group): boolean {
    if (!this.sharesMemory || size < 2 || size > sharedRanksMax(this.tuning)) return false;
    const host = this.hostOf(worldRanks[0]);
    return worldRanks.every((world) => world < this.worldSizeAtStart && this.hostOf(world) === host);
  }

  /** A collective with that tag has begun here, on the communicator that uses this context for them. */
  hasBegun(ctx: number, tag: number): boolean {
    return this.communicators.get(idOf(ctx))?.hasBegun(tag) ?? false;
  }

  /** From the first collective on: calls that do not move are looked at, all of them together. */
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
    this.communicators.get(id)?.close(error);
    this.communicators.delete(id);
    this.ft?.free(id, isClean);
    this.logged?.ended(id);
    this.failures.forget(ctxOf(id, COLLECTIVE));
    if (isClean) this.contexts.close(id);
    else this.contexts.abandon(id, error);
    this.engine.schedule();
  }

  /** This process leaves that communicator, which was revoked here, and enters it again: the others stay in it. */
  leaveToEnter(id: number): void {
    const error = this.endError ?? new MultirailError('ERR_REVOKED', `rank ${this.rank} goes back, and has left the communicator`);
    this.communicators.get(id)?.close(error);
    this.communicators.delete(id);
    this.failures.forget(ctxOf(id, COLLECTIVE));
    this.contexts.forget(id);
  }

  /** The communicator of that context has not come to its end; its free() may be under way. */
  isOpen(ctx: number): boolean {
    return this.communicators.has(idOf(ctx));
  }

  /** Nothing of that communicator is under way here. */
  isQuiet(id: number): boolean {
    let last: RunningCall | undefined;
    for (const operation of this.operations) {
      if (idOf(operation.scope.ctx) !== id) continue;
      if (operation.tag !== SETUP_TAG) return false;
      last = operation;
    }
    // Its own calls have ended, and nobody waits for memory any more: a member that has made other calls might never come to it.
    if (last !== undefined) this.communicators.get(id)?.endsSetup(new MultirailError('ERR_COMM', 'the communicator is being freed'));
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

  /** `look` is asked after each turn of the engine until it answers true. `isDue`: whether it would; it changes nothing. */
  whenDrained(look: () => boolean, isDue?: () => boolean): void {
    if (this.replica !== undefined && isDue !== undefined) {
      // Of two replicas the lead says when.
      this.replica.pml.when(isDue).onDone = () => void look();
      return;
    }
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
    const cancelled = this.replica === undefined ? this.pml.cancel(request) : this.replica.waiter.cancel(request);
    this.engine.schedule();
    return cancelled;
  }

  /** Ends a send before its time; its message may still arrive. */
  giveUp(request: SendRequest, error: MultirailError): void {
    this.pml.giveUp(request, error);
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

  /** Undefined: outcomes of calls on that context are not recorded. */
  outcomesOf(ctx: number): RecordedOutcomes | undefined {
    const { logged } = this;
    return logged?.outcomes !== undefined && logged.covers(ctx) ? logged.outcomes : undefined;
  }

  /** Undefined: results of calls on that context are handed to the program as they come. */
  turnsOf(ctx: number): Turns | undefined {
    const { logged } = this;
    return logged?.turns !== undefined && logged.covers(ctx) ? logged.turns : undefined;
  }

  /** A probe with that source begins, which waits: undefined, when its outcome is not recorded. */
  beginProbe(source: number, ctx: number): AnyReceive | undefined {
    return source === ANY_SOURCE ? this.outcomesOf(ctx)?.begin() : undefined;
  }

  /** Whoever is asked for messages now: a process may have got a successor since the probe began, or since its last look. */
  private nowOf(source: number, ctx: number, any: AnyReceive | undefined): number {
    const { logged } = this;
    if (logged?.covers(ctx) !== true) return source;
    if (source === ANY_SOURCE) return any?.source === undefined ? source : logged.numberOf(any.source);
    return logged.numberOf(logged.rankOf(source));
  }

  /**
   * The message that a receive with this pattern would match; `take`: it is taken out of the queue. World rank or ANY. `any`: as it has begun.
   *
   * @throws ERR_REPLAY: it is another one than before.
   */
  findMessage(source: number, ctx: number, tag: number, take: boolean, any?: AnyReceive): Envelope | undefined {
    const { pml } = this;
    const { logged } = this;
    const from = this.nowOf(source, ctx, any);
    const envelope = take ? pml.improbe(from, ctx, tag) : pml.iprobe(from, ctx, tag);
    if (envelope !== undefined) {
      const wrong = any && logged?.outcomes?.match(any.receive, envelope.source, envelope.seq);
      if (wrong !== undefined) throw wrong;
      return envelope;
    }
    const communicator = this.communicators.get(idOf(ctx));
    if (logged?.holds(ctx) && communicator?.revocation === undefined) return undefined;
    const ended = communicator?.revocation ?? (source === ANY_SOURCE ? communicator?.desertion : pml.peer(source).ended);
    if (ended !== undefined) throw ended;
    return undefined;
  }

  /** As findMessage, in a call that looks at the rails once. Where outcomes are recorded it finds what it has found before, if it has. */
  lookForMessage(source: number, ctx: number, tag: number, take: boolean): Envelope | undefined {
    if (this.replica !== undefined) return this.replica.waiter.probe(source, ctx, tag, take);
    const { logged } = this;
    const outcomes = this.outcomesOf(ctx);
    let found: Envelope | undefined;
    const find = (from: number): boolean => {
      found ??= this.findMessage(from, ctx, tag, take);
      return found !== undefined;
    };
    const look = (): boolean => {
      lookOnce(this.engine);
      return find(source);
    };
    if (outcomes === undefined || logged === undefined) {
      look();
      return found;
    }
    outcomes.look(
      'found',
      () => (look() ? [logged.rankOf((found as Envelope).source)] : undefined),
      ([rank]) => {
        const awaited = {
          get done() {
            return find(logged.numberOf(rank));
          },
        };
        if (!awaited.done) this.blocking.wait(awaited);
        return true;
      },
    );
    return found;
  }

  /** Polls the rails once. */
  look(): void {
    if (this.replica === undefined) lookOnce(this.engine);
    else this.replica.waiter.look();
  }

  /** As findMessage, waiting until there is one. */
  waitForMessage(source: number, ctx: number, tag: number, take: boolean, options: CallOptions | undefined): Promise<Envelope> {
    if (this.replica !== undefined) return this.replica.probe({ source, ctx, tag }, take, options);
    const any = this.beginProbe(source, ctx);
    const found = this.findMessage(source, ctx, tag, take, any);
    if (found !== undefined) return Promise.resolve(found);
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        pattern: { source, ctx, tag },
        sinceMs: this.blocking.now(),
        look: () => {
          try {
            const envelope = this.findMessage(source, ctx, tag, take, any);
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
