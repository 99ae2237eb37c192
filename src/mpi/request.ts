// What a user holds of a send, receive or collective that was started: awaited, tested, cancelled, alone or in groups with MPI's rules.
//
//   INACTIVE  a persistent request that is not started: waits and tests treat it as done, with an empty status
//   ACTIVE    under way; the buffer belongs to the library
//   DONE      ended, well or with an error; `status` and `error` say how
//
// Nothing is allocated for a promise until somebody awaits, so a request that fails and is never awaited is not an unhandled
// rejection: an isend whose peer died harms nobody who does not ask.
import { MultirailError } from '../errors.ts';
import type { RecvRequest } from '../pml/records.ts';
import type { Awaited } from '../progress/blocking.ts';
import { ANY_SOURCE, UNDEFINED } from './constants.ts';
import type { RecordedOutcomes } from './ft/recorded-outcomes.ts';
import type { Turns } from './ft/turns.ts';
import type { Inner, RequestOwner } from './request-owner.ts';
import { RequestsError } from './requests-error.ts';
import { EMPTY_STATUS, type Status } from './status.ts';

/**
 * `INACTIVE`: a persistent request that is not started. `ACTIVE`: under way; its buffers belong to the library. `DONE`: ended, well or with
 * an error.
 */
export type RequestState = 'INACTIVE' | 'ACTIVE' | 'DONE';

type Entry = Request | null | undefined;

/**
 * For timeouts and signals of the calls that make requests: as cancel(), ending with that error. A send gives its buffer back and ends, at
 * once or soon; its message goes on.
 */
export let endRequest: (request: Request, error: MultirailError) => boolean;
/** A failure is known that this request reports and that leaves it active: whoever waits for it is told now. */
export let reportFailure: (request: Request) => void;
/** It ends with this error at that time of the owner's clock, unless it has ended, or is a receive that has matched, by then. */
export let endRequestAt: (request: Request, atMs: number, error: MultirailError) => void;

/**
 * A send, receive or collective that was started (MPI-4.1, section 3.7.1). It can be awaited like a promise, tested, waited for without the
 * event loop, or handed to waitAll() and its siblings together with others. Nothing is lost when nobody looks: a request that fails and is
 * never awaited is no unhandled rejection.
 */
export class Request implements PromiseLike<Status> {
  protected readonly owner: RequestOwner;
  /** Undefined: inactive, or ended from the start (PROC_NULL). */
  protected inner: Inner | undefined;
  private ended: Status | undefined;
  private cancelError: MultirailError | undefined;
  /** A wait or test has handed the result out: to waitAny and waitSome it is a null request now. */
  private taken = false;
  private pending: Promise<Status> | undefined;
  private settlePending: { resolve: (status: Status) => void; reject: (error: MultirailError) => void } | undefined;
  private watchers: Set<() => void> | undefined;
  /** Nobody need be told of the end any more. */
  private isTold = true;
  /** When it ends by itself, and how. A timer sees to it too, but none runs in a blocking call. */
  private limitMs = Number.POSITIVE_INFINITY;
  private limitError: MultirailError | undefined;

  /** @internal */
  constructor(owner: RequestOwner, inner: Inner | undefined, ended?: Status) {
    this.owner = owner;
    this.ended = ended;
    this.begin(inner);
  }

  protected begin(inner: Inner | undefined): void {
    this.inner = inner;
    if (inner === undefined) return;
    if (inner.done) this.received();
    else {
      this.isTold = false;
      inner.onDone = () => {
        // A persistent request may have begun again since: its end was told then.
        if (this.inner === inner) this.settle();
      };
    }
  }

  /** Its state. Looks at no rail. */
  get state(): RequestState {
    if (this.now === 'INACTIVE') return 'INACTIVE';
    return this.isSeen ? 'DONE' : 'ACTIVE';
  }

  /** Whether it has ended, well or with an error. Looks at no rail, and leaves the result to be taken by a wait or test. */
  get done(): boolean {
    return this.state === 'DONE';
  }

  /**
   * Sender, tag and length of what was received; of a send, the own rank; empty for a collective (MPI-4.1, section 3.2.5). Undefined while
   * it is under way.
   */
  get status(): Status | undefined {
    return this.isSeen ? this.outcome : undefined;
  }

  /**
   * Why it failed; undefined while it is under way, and when it ended well. A receive from ANY_SOURCE that is under way has an error, too, as
   * long as a member has failed that is not acknowledged: ERR_PROC_FAILED_PENDING.
   */
  get error(): MultirailError | undefined {
    return this.isSeen || this.outcomes === undefined ? this.fault : undefined;
  }

  /** Where outcomes are recorded. */
  private get outcomes(): RecordedOutcomes | undefined {
    return this.inner === undefined ? undefined : this.owner.outcomes;
  }

  /** The program may see that it has ended: where outcomes are recorded, that is one. */
  private get isSeen(): boolean {
    if (this.outcomes === undefined || (this.taken && this.isDone)) return this.isDone;
    return Request.found([this], () => (this.isDone ? [0] : undefined)) !== undefined;
  }

  /** @internal What is so, whatever the program may see of it. */
  get now(): RequestState {
    if (this.inner !== undefined) return this.inner.done ? 'DONE' : 'ACTIVE';
    return this.ended !== undefined ? 'DONE' : 'INACTIVE';
  }

  private get isDone(): boolean {
    return this.now === 'DONE';
  }

  private get outcome(): Status | undefined {
    if (this.ended === undefined && this.inner?.done) this.ended = this.owner.statusOf(this.inner);
    return this.ended;
  }

  /** @internal */
  get fault(): MultirailError | undefined {
    const { inner } = this;
    if (inner === undefined) return undefined;
    if (!inner.done) return this.failure;
    if (inner.kind === 'recv' && inner.cancelled) {
      this.cancelError ??= new MultirailError('ERR_CANCELLED', 'the receive was cancelled before it matched');
      return this.cancelError;
    }
    return inner.error;
  }

  /** What it reports while it stays active. */
  private get failure(): MultirailError | undefined {
    const { inner } = this;
    if (inner?.kind !== 'recv' || inner.done || inner.source !== ANY_SOURCE) return undefined;
    return this.owner.failureOf?.(inner);
  }

  private received(): void {
    const { inner } = this;
    if (inner?.kind === 'recv' && inner.error === undefined && !inner.cancelled) this.owner.onReceived(this.outcome as Status);
  }

  /** Tells the end to whoever waits, once. */
  protected settle(): void {
    if (this.isTold || this.now !== 'DONE') return;
    this.isTold = true;
    this.received();
    const { settlePending, watchers, fault } = this;
    this.settlePending = undefined;
    this.watchers = undefined;
    // Groups first: a request that is awaited and is in a waitAny too counts in both.
    if (watchers !== undefined) for (const watcher of watchers) watcher();
    if (settlePending === undefined) return;
    this.taken = true;
    if (fault === undefined) settlePending.resolve(this.outcome as Status);
    else settlePending.reject(fault);
  }

  /**
   * A promise for the end: it resolves with the status, or rejects with the error. It is made at the first call, so that nobody pays who
   * does not await.
   *
   * @throws ERR_CANCELLED: cancel() took the receive back. Otherwise what the call that started the request names.
   * @throws ERR_PROC_FAILED_PENDING: a member has failed that might have sent what a receive from ANY_SOURCE waits for. The request stays
   *   active, and after ackFailed() another promise can be asked for.
   */
  promise(): Promise<Status> {
    if (this.pending === undefined) {
      const { failure } = this;
      if (failure !== undefined) return Promise.reject(failure);
      const { turns } = this.owner;
      this.pending = turns === undefined || this.inner === undefined ? this.makePromise() : turns.inTurn(this.makePromise());
    }
    return this.pending;
  }

  /** @internal A promise for a call of which this is a part: the call has its turn. */
  ownPromise(): Promise<Status> {
    this.pending ??= this.makePromise();
    return this.pending;
  }

  private makePromise(): Promise<Status> {
    if (this.now === 'INACTIVE') return Promise.resolve(EMPTY_STATUS);
    if (this.now === 'DONE') {
      this.taken = true;
      return this.fault === undefined ? Promise.resolve(this.outcome as Status) : Promise.reject(this.fault);
    }
    return new Promise<Status>((resolve, reject) => {
      this.settlePending = { resolve, reject };
    });
  }

  /**
   * As promise().then(), so that `await request` works.
   *
   * @param onDone Called with the status.
   * @param onError Called with the error.
   */
  // biome-ignore lint/suspicious/noThenProperty: a request is awaited, that is its purpose
  then<A = Status, B = never>(
    onDone?: ((status: Status) => A | PromiseLike<A>) | null,
    onError?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.promise().then(onDone, onError);
  }

  /** @internal Calls `then` when it has ended, inside the engine's turn in which it does: in a blocking call, too. At once when it has ended. */
  onEnd(then: () => void): void {
    if (this.now !== 'ACTIVE') return then();
    this.watchers ??= new Set();
    this.watchers.add(then);
  }

  /**
   * Looks at the rails once, and says whether it has ended, or is inactive (MPI-4.1, section 3.7.3). Then its result counts as taken.
   *
   * @throws The error of a request that failed: ERR_CANCELLED, or one that the call that started it names.
   */
  test(): boolean {
    if (this.outcomes !== undefined && !(this.taken && this.isDone)) {
      const found = Request.found([this], () => {
        this.owner.progress();
        return this.isReady ? [0] : undefined;
      });
      if (found === undefined) return false;
    } else if (this.now === 'ACTIVE') this.owner.progress();
    if (this.now === 'ACTIVE') {
      const { failure } = this;
      if (failure !== undefined) throw failure;
      return false;
    }
    this.taken = true;
    if (this.fault !== undefined) throw this.fault;
    return true;
  }

  /**
   * Waits for the end without the event loop, and returns the status (MPI-4.1, section 3.7.3). The `timeoutMs` of the request holds; a
   * signal cannot come.
   *
   * @throws The error of a request that failed: ERR_CANCELLED, or one that the call that started it names.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part).
   */
  waitSync(): Status {
    const { inner } = this;
    if (inner?.kind === 'recv' && inner.source === ANY_SOURCE) this.waitForAnybody(inner);
    while (inner !== undefined && !inner.done && !this.owner.wait(inner, this.limitMs)) this.endIfLate();
    if (this.now === 'INACTIVE') return EMPTY_STATUS;
    this.taken = true;
    if (this.fault !== undefined) throw this.fault;
    return this.outcome as Status;
  }

  private waitForAnybody(inner: RecvRequest): void {
    const awaited: Awaited = {
      get done() {
        return inner.done;
      },
      isOver: () => this.failure !== undefined,
    };
    while (!inner.done) {
      const { failure } = this;
      if (failure !== undefined) throw failure;
      if (!this.owner.wait(awaited, this.limitMs)) this.endIfLate();
    }
  }

  /**
   * Takes back a receive that has not matched (MPI-4.1, section 3.8.4): true, and it ends with ERR_CANCELLED; its buffer is the caller's
   * again. False when it has matched or ended, and for every send, since a send has its place in the order of messages from the start.
   *
   * @throws ERR_SUPPORT: outcomes are recorded (`determinism: 'recorded'` of multirail/ft).
   */
  cancel(): boolean {
    if (this.inner?.kind !== 'recv') return false;
    if (this.outcomes !== undefined)
      throw new MultirailError(
        'ERR_SUPPORT',
        "cancel() of a receive whose outcome is recorded (determinism: 'recorded'): a successor might have received it by then; send a message that ends it",
      );
    return this.end(new MultirailError('ERR_CANCELLED', 'the receive was cancelled before it matched'));
  }

  /** As cancel(), with another error. */
  private end(error: MultirailError, byProgram = true): boolean {
    const { inner, owner } = this;
    if (inner === undefined || inner.done) return false;
    if (inner.kind === 'send') {
      owner.giveUp(inner, error);
      return inner.done;
    }
    if (inner.kind !== 'recv' || (!byProgram && owner.expire?.(inner, error) === true) || !owner.cancel(inner)) return false;
    this.cancelError = error;
    return true;
  }

  static {
    endRequest = (request, error) => request.end(error, false);
    endRequestAt = (request, atMs, error) => {
      request.limitMs = atMs;
      request.limitError = error;
    };
    reportFailure = (request) => request.report();
  }

  private report(): void {
    const { settlePending, watchers, failure } = this;
    if (failure === undefined) return;
    this.pending = undefined;
    this.settlePending = undefined;
    this.watchers = undefined;
    if (watchers !== undefined) for (const watcher of watchers) watcher();
    settlePending?.reject(failure);
  }

  /** It has ended, or has something to report. */
  private get isReady(): boolean {
    return this.isDone || this.failure !== undefined;
  }

  private endIfLate(): void {
    if (this.limitError === undefined || this.owner.now() < this.limitMs) return;
    // Matched or not, there is nothing more to keep: what has matched ends by itself.
    this.limitMs = Number.POSITIVE_INFINITY;
    if (this.now !== 'ACTIVE') return;
    if (this.inner?.kind === 'collective') this.inner.fail(this.limitError, true);
    else this.end(this.limitError, false);
  }

  /** A persistent request is started again. */
  protected restart(inner: Inner | undefined, ended: Status | undefined): void {
    this.ended = ended;
    this.cancelError = undefined;
    this.pending = undefined;
    this.taken = false;
    this.begin(inner);
  }

  // ---------------------------------------------------------------- groups

  /** Nothing to wait for: no request, not started, or its result was handed out before. */
  private static isNull(entry: Entry): entry is null | undefined {
    return entry === null || entry === undefined || entry.now === 'INACTIVE' || (entry.taken && entry.now === 'DONE');
  }

  /** Calls `look` after each end of an active request of the list, until it answers true. */
  private static watch(list: readonly Entry[], look: (ended: Request) => boolean): void {
    const watched: [Request, () => void][] = [];
    for (const entry of list) {
      if (entry === null || entry === undefined || entry.now !== 'ACTIVE') continue;
      const watcher = () => {
        if (look(entry)) for (const [request, own] of watched) request.watchers?.delete(own);
      };
      entry.watchers ??= new Set();
      entry.watchers.add(watcher);
      watched.push([entry, watcher]);
    }
  }

  /** Which of them a call that looks finds ended, by their places; where outcomes are recorded, those that it has found before, if it has. */
  private static found(list: readonly Entry[], find: () => readonly number[] | undefined): readonly number[] | undefined {
    const first = list.find((entry) => entry?.outcomes !== undefined);
    if (first?.outcomes === undefined) return find();
    return first.outcomes.look('ended', find, (places) => {
      for (const place of places) {
        const entry = list[place];
        if (entry === null || entry === undefined) return false;
        const ended = {
          get done() {
            return entry.isReady;
          },
        };
        if (!ended.done) entry.owner.wait(ended);
      }
      return true;
    });
  }

  private static readyIn(list: readonly Entry[]): number[] {
    const places: number[] = [];
    list.forEach((entry, i) => {
      if (!Request.isNull(entry) && entry.isReady) places.push(i);
    });
    return places;
  }

  private static poll(list: readonly Entry[]): void {
    list.find((entry) => entry?.now === 'ACTIVE')?.owner.progress();
  }

  /**
   * Resolves with the status of each, in the order of the list, when all have ended (MPI-4.1, section 3.7.5). As soon as one fails it
   * rejects; the others go on, and can be waited for again.
   *
   * @param requests Requests; null, undefined and inactive ones count as ended, with an empty status.
   * @throws ERR_IN_STATUS: at least one of them failed: a RequestsError, with the error of each.
   */
  static waitAll(requests: readonly (Request | null | undefined)[]): Promise<Status[]> {
    const list = [...requests];
    const all = new Promise<Status[]>((resolve, reject) => {
      let active = list.filter((entry) => entry?.now === 'ACTIVE').length;
      const finish = (): void => {
        const result = Request.takeAll(list);
        if (result instanceof RequestsError) reject(result);
        else resolve(result);
      };
      if (active === 0 || anyFailed(list)) return finish();
      Request.watch(list, (ended) => {
        if (--active > 0 && ended.fault === undefined) return false;
        finish();
        return true;
      });
    });
    return Request.turnsIn(list)?.inTurn(all) ?? all;
  }

  /**
   * As waitAll(), without a promise and without the event loop.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part).
   */
  static waitAllSync(requests: readonly (Request | null | undefined)[]): Status[] {
    Request.untilAllEnd(requests);
    const result = Request.takeAll(requests);
    if (result instanceof RequestsError) throw result;
    return result;
  }

  /**
   * As waitAny(), without a promise and without the event loop.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part).
   */
  static waitAnySync(requests: readonly (Request | null | undefined)[]): { index: number; status: Status } {
    if (requests.every(Request.isNull)) return { index: UNDEFINED, status: EMPTY_STATUS };
    const found = Request.found(requests, () => Request.firstOf(requests).slice(0, 1)) ?? [];
    return Request.takeAt(requests, found[0]);
  }

  /**
   * As waitSome(), without a promise and without the event loop.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part).
   */
  static waitSomeSync(requests: readonly (Request | null | undefined)[]): { indices: number[]; statuses: Status[] } {
    if (requests.every(Request.isNull)) return { indices: [], statuses: [] };
    const result = Request.takeSome(requests, Request.found(requests, () => Request.firstOf(requests)) ?? []);
    if (result instanceof RequestsError) throw result;
    return result;
  }

  /** @internal Blocks until all of these have ended, or one has failed. Nothing is taken. */
  static untilAllEnd(requests: readonly Entry[]): void {
    const all = new AllOf(requests);
    if (all.done) return;
    const { owner } = all.current as Request;
    // Once one has failed the others go on, as after waitAll().
    while (!owner.wait(all, Request.firstLimitMs(requests))) for (const entry of requests) entry?.endIfLate();
  }

  /** @internal Blocks until one of these, none of which has ended, ends or has something to report. Nothing is taken. */
  static untilOneEnds(requests: readonly Request[]): void {
    Request.waitForFirst(requests);
  }

  /** Blocks until one has ended. The places of all that have. */
  private static firstOf(list: readonly Entry[]): number[] {
    Request.waitForFirst(list);
    return Request.readyIn(list);
  }

  /** Blocks until one of the list has ended, or has something to report; at once where there is nothing to wait for. */
  private static waitForFirst(list: readonly Entry[]): void {
    const open = list.filter((entry): entry is Request => !Request.isNull(entry));
    const first: Awaited = {
      get done() {
        for (let i = 0; i < open.length; i++) if (open[i].isDone) return true;
        return open.length === 0;
      },
      isOver: () => open.some((entry) => entry.failure !== undefined),
    };
    while (!first.done && first.isOver?.() !== true && !open[0].owner.wait(first, Request.firstLimitMs(open)))
      for (const entry of open) entry.endIfLate();
  }

  private static firstLimitMs(list: readonly Entry[]): number {
    let limitMs = Number.POSITIVE_INFINITY;
    for (const entry of list) if (entry?.inner?.done === false) limitMs = Math.min(limitMs, entry.limitMs);
    return limitMs;
  }

  private static takeAll(list: readonly Entry[]): Status[] | RequestsError {
    const statuses: Status[] = new Array<Status>(list.length);
    for (let i = 0; i < list.length; i++) {
      const entry = list[i];
      if (entry === null || entry === undefined) {
        statuses[i] = EMPTY_STATUS;
        continue;
      }
      const { inner } = entry;
      if (inner !== undefined && (!inner.done || entry.fault !== undefined)) return Request.takeWithErrors(list);
      statuses[i] = entry.outcome ?? EMPTY_STATUS;
      entry.taken = inner !== undefined || entry.ended !== undefined;
    }
    return statuses;
  }

  private static takeWithErrors(list: readonly Entry[]): Status[] | RequestsError {
    const errors = list.map((entry) => entry?.fault);
    const statuses = list.map((entry) => (entry?.now === 'ACTIVE' ? undefined : (entry?.outcome ?? EMPTY_STATUS)));
    for (const entry of list) if (entry?.now === 'DONE') entry.taken = true;
    return errors.some((error) => error !== undefined) ? new RequestsError(errors, statuses) : (statuses as Status[]);
  }

  /**
   * Resolves with the first that ends and its index in the list (MPI-4.1, section 3.7.5). Requests whose result was taken before, null and
   * inactive ones do not count; with nothing else in the list the index is UNDEFINED.
   *
   * @param requests Requests, null or undefined.
   * @throws The error of that request, when it failed.
   */
  static waitAny(requests: readonly (Request | null | undefined)[]): Promise<{ index: number; status: Status }> {
    const list = [...requests];
    return new Promise((resolve, reject) => {
      const finish = (): void => {
        try {
          resolve(Request.anyOf(list, false) ?? { index: UNDEFINED, status: EMPTY_STATUS });
        } catch (error) {
          reject(error as MultirailError);
        }
      };
      Request.whenAny(list, finish);
    });
  }

  /** One that has ended, as it is found; `polls`: by a look at the rails. */
  private static anyOf(list: readonly Entry[], polls: boolean): { index: number; status: Status } | undefined {
    if (list.every(Request.isNull)) return { index: UNDEFINED, status: EMPTY_STATUS };
    const found = Request.found(list, () => {
      if (polls) Request.poll(list);
      const place = list.findIndex((entry) => !Request.isNull(entry) && entry.isReady);
      return place < 0 ? undefined : [place];
    });
    return found === undefined ? undefined : Request.takeAt(list, found[0]);
  }

  /** As anyOf(), all that have. */
  private static someOf(list: readonly Entry[], polls: boolean): ReturnType<typeof Request.takeSome> {
    if (list.every(Request.isNull)) return { indices: [], statuses: [] };
    const found = Request.found(list, () => {
      if (polls) Request.poll(list);
      const places = Request.readyIn(list);
      return places.length === 0 ? undefined : places;
    });
    return Request.takeSome(list, found ?? []);
  }

  private static turnsIn(list: readonly Entry[]): Turns | undefined {
    return list.find((entry) => entry?.outcomes !== undefined)?.owner.turns;
  }

  /** Calls this when one of them has ended, or none is left; where outcomes are recorded, in its turn. */
  private static whenAny(list: readonly Entry[], finish: () => void): void {
    const isReady = (): boolean => list.some((entry) => !Request.isNull(entry) && entry.isReady) || list.every(Request.isNull);
    const turns = Request.turnsIn(list);
    if (turns !== undefined) {
      turns.add({ isReady, handOut: finish });
      return Request.watch(list, () => {
        turns.lookSoon();
        return isReady();
      });
    }
    if (isReady()) return finish();
    Request.watch(list, () => {
      finish();
      return true;
    });
  }

  private static takeAt(list: readonly Entry[], index: number): { index: number; status: Status } {
    const entry = list[index] as Request;
    if (entry.isDone) entry.taken = true;
    if (entry.fault !== undefined) throw entry.fault;
    return { index, status: entry.outcome as Status };
  }

  /**
   * As waitAny(), with all that have ended by then (MPI-4.1, section 3.7.5).
   *
   * @param requests Requests, null or undefined.
   * @throws ERR_IN_STATUS: at least one of them failed: a RequestsError, with the error of each.
   */
  static waitSome(requests: readonly (Request | null | undefined)[]): Promise<{ indices: number[]; statuses: Status[] }> {
    const list = [...requests];
    return new Promise((resolve, reject) => {
      const finish = (): void => {
        let result: ReturnType<typeof Request.someOf>;
        try {
          result = Request.someOf(list, false);
        } catch (error) {
          return reject(error as MultirailError);
        }
        if (result instanceof RequestsError) reject(result);
        else resolve(result);
      };
      Request.whenAny(list, finish);
    });
  }

  private static takeSome(list: readonly Entry[], found: readonly number[]): { indices: number[]; statuses: Status[] } | RequestsError {
    const indices = [...found];
    const ended = indices.map((i) => list[i] as Request);
    for (const entry of ended) if (entry.isDone) entry.taken = true;
    if (ended.some((entry) => entry.fault !== undefined)) {
      return new RequestsError(
        list.map((entry, i) => (indices.includes(i) ? entry?.fault : undefined)),
        list.map((entry, i) => (indices.includes(i) ? entry?.outcome : undefined)),
      );
    }
    return { indices, statuses: ended.map((entry) => entry.outcome as Status) };
  }

  /**
   * Looks at the rails once, and returns the statuses when all have ended (MPI-4.1, section 3.7.5); else undefined, and none is taken.
   *
   * @param requests Requests; null, undefined and inactive ones count as ended, with an empty status.
   * @throws ERR_IN_STATUS: at least one of them failed: a RequestsError, with the error of each.
   */
  static testAll(requests: readonly (Request | null | undefined)[]): Status[] | undefined {
    const found = Request.found(requests, () => {
      Request.poll(requests);
      return !anyFailed(requests) && requests.some((entry) => entry?.now === 'ACTIVE') ? undefined : Request.readyIn(requests);
    });
    if (found === undefined) return undefined;
    const result = Request.takeAll(requests);
    if (result instanceof RequestsError) throw result;
    return result;
  }

  /**
   * As waitAny(), without waiting (MPI-4.1, section 3.7.5): undefined when none has ended yet.
   *
   * @param requests Requests, null or undefined.
   * @throws The error of that request, when it failed.
   */
  static testAny(requests: readonly (Request | null | undefined)[]): { index: number; status: Status } | undefined {
    return Request.anyOf(requests, true);
  }

  /**
   * As waitSome(), without waiting (MPI-4.1, section 3.7.5): the lists are empty when none has ended yet.
   *
   * @param requests Requests, null or undefined.
   * @throws ERR_IN_STATUS: at least one of them failed: a RequestsError, with the error of each.
   */
  static testSome(requests: readonly (Request | null | undefined)[]): { indices: number[]; statuses: Status[] } {
    const result = Request.someOf(requests, true);
    if (result instanceof RequestsError) throw result;
    return result;
  }

  /**
   * Starts persistent requests, in the order of the list (MPI-4.1, section 3.9).
   *
   * @param requests Persistent requests that are not under way.
   * @throws ERR_REQUEST: one of them is under way. Those before it in the list were started.
   */
  static startAll(requests: readonly PersistentRequest[]): void {
    for (const request of requests) request.start();
  }
}

/** The end of a list of requests: of all of them, or of the first that is found to have failed. */
class AllOf implements Awaited {
  private readonly list: readonly Entry[];
  /** Those before it have ended well. */
  private at = 0;

  constructor(list: readonly Entry[]) {
    this.list = list;
  }

  get current(): Entry {
    return this.list[this.at];
  }

  get done(): boolean {
    const { list } = this;
    for (; this.at < list.length; this.at++) {
      const entry = list[this.at];
      if (entry?.now === 'ACTIVE') return false;
      if (entry?.fault !== undefined) return true;
    }
    return true;
  }

  isOver(): boolean {
    return anyFailed(this.list);
  }
}

function anyFailed(list: readonly Entry[]): boolean {
  return list.some((entry) => entry?.fault !== undefined);
}

/**
 * A send, receive or collective whose arguments are given once and which is started as often as wanted, one run at a time (MPI-4.1,
 * sections 3.9 and 6.13).
 */
export class PersistentRequest extends Request {
  private readonly post: () => { inner: Inner | undefined; ended?: Status };

  /** @internal */
  constructor(owner: RequestOwner, post: () => { inner: Inner | undefined; ended?: Status }) {
    super(owner, undefined);
    this.post = post;
  }

  /**
   * Starts the next run, and returns the request itself. The buffers belong to the library until that run has ended (MPI-4.1, section 3.9).
   *
   * @throws ERR_REQUEST: a run is under way.
   * @throws ERR_COMM, ERR_FINALIZED, ERR_BUFFER: the communicator was freed, finalize() was called, or the buffer is detached by now. Of a
   *   collective that has failed, its error.
   */
  start(): this {
    if (this.now === 'ACTIVE')
      throw new MultirailError(
        'ERR_REQUEST',
        'start() was called while the request is under way; expected one that has ended: await it, or call waitSync(), first',
      );
    // It may have ended in this very turn: whoever waits is told of that end, and not of the next one.
    this.settle();
    const { inner, ended } = this.post();
    this.restart(inner, ended);
    return this;
  }
}
