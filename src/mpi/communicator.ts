// A communicator: ranks that talk to each other, apart from all other communicators. Here: how others are made of it, and its end.
import { MultirailError } from '../errors.ts';
import { OPERATION } from '../ulfm/values.ts';
import { dissemination } from './coll/barrier-bcast.ts';
import type { Call } from './coll/calls.ts';
import { agreeOnGroup, agreeOnId, agreeOnSplit, type Made } from './coll/creation.ts';
import type { Operation } from './coll/operation.ts';
import type { Scope } from './coll/scope.ts';
import { type CallOptions, checkKeys, checkSendTag, describe, UNDEFINED } from './constants.ts';
import { CREATION, ctxOf, SERVICE_ID, USER, WORLD_ID } from './contexts.ts';
import { type Ending, FailureCalls, promiseOf } from './failure-calls.ts';
import { CONGRUENT, type Comparison, checkGroup, Group, IDENT } from './group.ts';
import type { CollectiveInner } from './request-owner.ts';
import { type ResultInner, ResultRequest } from './result-request.ts';

/** Options of replace(). */
export interface ReplaceOptions {
  /** All failed members are replaced or none ('all', the default), or as many as there are processes that stand by ('some'). */
  readonly spares?: 'all' | 'some';
}

/** Options of freeSync(). */
export interface FreeOptions {
  /** Whether it returns only when the communicator has ended at every rank; true by default. */
  readonly wait?: boolean;
}

const FREE_KEYS: readonly (keyof FreeOptions)[] = ['wait'];
const REPLACE_KEYS: readonly (keyof ReplaceOptions)[] = ['spares'];

/** What stands behind the request of a creation. */
type Making = CollectiveInner & ResultInner<Communicator>;

const madeAtOnce = (result: Communicator): Making => ({
  kind: 'collective',
  done: true,
  error: undefined,
  result,
  onDone: undefined,
  fail: () => undefined,
});

/** What a creation has made; undefined for ranks that are not in it. */
type Creation = Call<Made | undefined> & {
  /** The call, with all that says what it makes. */
  readonly text: string;
  /** This rank is not in it. */
  readonly isOut?: boolean;
};

/**
 * Ranks that talk to each other, apart from all other communicators (MPI-4.1, chapters 3, 6 and 7). The world is `mpi.world`; others are
 * made of it by dup(), split(), splitType(), create() and createGroup().
 *
 * Point-to-point calls name a rank and a tag. In a collective every rank of the communicator makes the same calls in the same order; none
 * need wait for one before the next, and collectives never meet point-to-point messages. Calls go on by themselves, also while nobody
 * awaits them.
 *
 * A buffer belongs to the library from the call to its end: meanwhile the program does not write into it, nor read one that is received
 * into. Lengths are those of the buffers; counts and displacements are in elements of a typed array, in bytes for everything else. No two
 * buffers of a collective share memory; IN_PLACE takes the place of the one that would.
 *
 * Each call has up to four forms: `send()` gives a promise, `sendSync()` blocks without the event loop, `isend()` gives a Request, and
 * `sendInit()` a request that can be started again and again.
 */
export class Communicator extends FailureCalls {
  private made(name: string, id: number, members: readonly number[]): Communicator {
    // A list of its own: a successor takes its place in one communicator, and not in those that it was made of.
    const communicator = new Communicator(this.proc, name, id, new Group([...members], this.proc.rank));
    communicator.usesSharedMemory = this.usesSharedMemory;
    return communicator;
  }

  /**
   * The communicator of that id, which other processes have made, and in which this one succeeds a member.
   *
   * @internal
   */
  enterAs(name: string, id: number, members: readonly number[]): Communicator {
    this.proc.contexts.open(id);
    return this.made(name, id, members);
  }

  // ---------------------------------------------------------------- creation (MPI-4.1, section 7.4)

  /**
   * Makes a communicator of the same ranks, whose messages never meet those of this one (MPI-4.1, section 7.4.2). Collective: every rank of
   * this communicator calls it.
   *
   * @param options When the call ends before its time, at every rank.
   * @throws ERR_ARG: an option does not fit.
   * @throws ERR_COLLECTIVE_MISMATCH: the ranks have made other calls.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: a rank that the call needs is gone, or the job was aborted.
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, no further one can be made, or finalize() was called.
   */
  dup(options?: CallOptions): Promise<Communicator> {
    return this.make(() => this.dupCall(), `${this.name}.dup`, options) as Promise<Communicator>;
  }

  /**
   * As dup(), without a promise. The event loop does not run meanwhile.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part); nothing was sent.
   */
  dupSync(options?: CallOptions): Communicator {
    return this.makeSync(this.dupCall(), `${this.name}.dup`, options) as Communicator;
  }

  /**
   * Starts dup() and returns its request at once (MPI-4.1, section 7.4.2); `result` is the new communicator, once it has ended. It goes on while
   * the program does something else, in blocking calls too.
   */
  idup(options?: CallOptions): ResultRequest<Communicator> {
    this.mustBeUsable();
    this.checkEnd(options);
    const call = this.dupCall();
    const name = `${this.name}.dup`;
    const saved = this.savedOne(call, name);
    if (saved !== undefined && saved !== null) return new ResultRequest(this.desk, madeAtOnce(saved));
    let made: Communicator | undefined;
    const { operation, end } = this.beginCreation(call, name, (communicator) => {
      made = communicator ?? undefined;
    });
    const making: Making = {
      kind: 'collective',
      get done() {
        return operation.done;
      },
      get error() {
        return operation.error;
      },
      get result() {
        return made;
      },
      onDone: undefined,
      fail: (error, isOwn) => operation.fail(error, isOwn),
    };
    if (!operation.done) {
      operation.onDone = () => {
        end();
        making.onDone?.();
      };
    }
    const request = new ResultRequest(this.desk, making);
    if (options !== undefined) this.limit(operation, options, request);
    return request;
  }

  private dupCall(): Creation {
    const { members, allocate } = this;
    return {
      text: 'dup()',
      signature: this.signatures.of('dup'),
      *steps(o) {
        const id = yield* agreeOnId(o as unknown as Operation<number>, allocate);
        return { id, worldRanks: members };
      },
    };
  }

  /**
   * Makes a communicator for each colour, of the ranks that give the same one (MPI-4.1, section 7.4.2). They are ordered by their keys, and
   * those with equal keys by their ranks here. Collective: every rank of this communicator calls it.
   *
   * @param color 0 or more; UNDEFINED: this rank gets null, and is in none of them.
   * @param key Any whole number; 0 by default.
   * @param options When the call ends before its time, at every rank.
   * @throws ERR_ARG: the colour, the key or an option does not fit.
   * @throws ERR_COLLECTIVE_MISMATCH: the ranks have made other calls.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: a rank that the call needs is gone, or the job was aborted.
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, no further one can be made, or finalize() was called.
   */
  split(color: number, key = 0, options?: CallOptions): Promise<Communicator | null> {
    return this.make(() => this.splitCall(color, key), `${this.name}.split(${color})`, options);
  }

  /**
   * As split(), without a promise. The event loop does not run meanwhile.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part); nothing was sent.
   */
  splitSync(color: number, key = 0, options?: CallOptions): Communicator | null {
    return this.makeSync(this.splitCall(color, key), `${this.name}.split(${color})`, options);
  }

  private splitCall(color: number, key: number): Creation {
    if (color !== UNDEFINED && !(Number.isSafeInteger(color) && color >= 0)) {
      throw new MultirailError('ERR_ARG', `color is ${String(color)}; expected a whole number, 0 or more, or UNDEFINED`);
    }
    if (!Number.isSafeInteger(key)) throw new MultirailError('ERR_ARG', `key is ${String(key)}; expected a whole number`);
    return {
      text: `split(${color}, ${key})`,
      isOut: color === UNDEFINED,
      signature: this.signatures.of('split'),
      steps: (o) => agreeOnSplit(o, color, key, this.allocate),
    };
  }

  /**
   * As split(), by what the ranks share (MPI-4.1, section 7.4.2): a communicator for each host, of its ranks, which can share memory.
   * Collective: every rank of this communicator calls it.
   *
   * @param type `'shared'`; UNDEFINED: this rank gets null.
   * @param key As for split(); 0 by default.
   * @param options When the call ends before its time, at every rank.
   * @throws ERR_ARG: the type, the key or an option does not fit.
   * @throws ERR_COLLECTIVE_MISMATCH: the ranks have made other calls.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: a rank that the call needs is gone, or the job was aborted.
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, no further one can be made, or finalize() was called.
   */
  splitType(type: 'shared' | typeof UNDEFINED, key = 0, options?: CallOptions): Promise<Communicator | null> {
    return this.make(() => this.splitCall(this.colorOf(type), key), `${this.name}.splitType(${type})`, options);
  }

  /**
   * As splitType(), without a promise. The event loop does not run meanwhile.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part); nothing was sent.
   */
  splitTypeSync(type: 'shared' | typeof UNDEFINED, key = 0, options?: CallOptions): Communicator | null {
    return this.makeSync(this.splitCall(this.colorOf(type), key), `${this.name}.splitType(${type})`, options);
  }

  /** The lowest member on the host of this rank, by its process number. Hosts are told apart as for shared memory: by the id that their ranks publish. */
  private colorOf(type: unknown): number {
    this.mustNotBeLogged('splitType(), since a successor may run on another host');
    if (type === UNDEFINED) return UNDEFINED;
    if (type !== 'shared') throw new MultirailError('ERR_ARG', `type is ${JSON.stringify(type)}; expected 'shared' or UNDEFINED`);
    const own = this.proc.hostOf(this.proc.rank);
    return Math.min(...this.members.filter((number) => number === this.proc.rank || this.proc.hostOf(number) === own));
  }

  /**
   * Makes a communicator of the ranks of a group, in its order; resolves with null at ranks that are not in it (MPI-4.1, section 7.4.2).
   * Collective: every rank of this communicator calls it. The groups that two ranks give are the same, or have no member in common.
   *
   * @param group Processes of this communicator.
   * @param options When the call ends before its time, at every rank.
   * @throws ERR_GROUP: the group holds a rank that is not here, or another rank of it has given another group.
   * @throws ERR_ARG: an option does not fit.
   * @throws ERR_COLLECTIVE_MISMATCH: the ranks have made other calls.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: a rank that the call needs is gone, or the job was aborted.
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, no further one can be made, or finalize() was called.
   */
  create(group: Group, options?: CallOptions): Promise<Communicator | null> {
    return this.make(() => this.createCall(group), `${this.name}.create`, options);
  }

  /**
   * As create(), without a promise. The event loop does not run meanwhile.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part); nothing was sent.
   */
  createSync(group: Group, options?: CallOptions): Communicator | null {
    return this.makeSync(this.createCall(group), `${this.name}.create`, options);
  }

  private createCall(group: Group): Creation {
    const { now, ranks } = this.checkSubgroup(group);
    return {
      text: `create([${ranks}])`,
      isOut: now.rank === UNDEFINED,
      signature: this.signatures.of('create'),
      steps: (o) => agreeOnGroup(o, now, ranks, this.allocate),
    };
  }

  /** The group of those who have the places of its processes now, and their ranks here. */
  private checkSubgroup(group: Group): { now: Group; ranks: number[] } {
    const ranks = checkGroup(group).worldRanks.map((world) => {
      const rank = this.group.rankOf(world);
      if (rank !== undefined) return rank;
      throw new MultirailError('ERR_GROUP', `group holds rank ${world} of the world, which is not in the communicator ${this.name}`);
    });
    return { now: this.logged === undefined ? group : new Group(this.logged.current(group.worldRanks), this.proc.rank), ranks };
  }

  /**
   * As create(), but only the ranks of the group call it (MPI-4.1, section 7.4.2).
   *
   * @param group Processes of this communicator, this one among them.
   * @param tag Tells creations apart that run at the same time with members in common; it meets no other tag. 0 by default.
   * @param options When the call ends before its time, at every rank.
   * @throws ERR_GROUP: the group holds a rank that is not here, or lacks this one.
   * @throws ERR_ARG, ERR_TAG: the tag or an option does not fit.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: a rank that the call needs is gone, or the job was aborted.
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, no further one can be made, or finalize() was called.
   */
  createGroup(group: Group, tag = 0, options?: CallOptions): Promise<Communicator> {
    return this.make(() => this.createGroupCall(group, tag), `${this.name}.createGroup`, options, group, tag) as Promise<Communicator>;
  }

  /**
   * As createGroup(), without a promise. The event loop does not run meanwhile.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part); nothing was sent.
   */
  createGroupSync(group: Group, tag = 0, options?: CallOptions): Communicator {
    return this.makeSync(this.createGroupCall(group, tag), `${this.name}.createGroup`, options, group, tag) as Communicator;
  }

  private createGroupCall(asked: Group, tag: number): Creation {
    const { now: group, ranks } = this.checkSubgroup(asked);
    checkSendTag(tag);
    if (group.rank === UNDEFINED)
      throw new MultirailError(
        'ERR_GROUP',
        `group lacks rank ${this.proc.rank} of the world, which calls createGroup(); expected one with it: only the ranks of the group make this call`,
      );
    const { allocate } = this;
    return {
      text: `createGroup([${ranks}], ${tag})`,
      signature: this.signatures.of('createGroup'),
      *steps(o) {
        const id = yield* agreeOnId(o as unknown as Operation<number>, allocate);
        return { id, worldRanks: group.worldRanks };
      },
    };
  }

  private readonly allocate = (): number => (this.logged ?? this.proc.contexts).allocate();

  private callText({ text }: Creation): string {
    return `${text} of communicator ${this.contextId}`;
  }

  /** What is logged of this communicator's messages; undefined: nothing is. */
  private get logged() {
    const { logged } = this.proc;
    return logged?.covers(ctxOf(this.contextId, USER)) === true ? logged : undefined;
  }

  /** The communicator that the call has made before the save from which this process has begun; undefined: it makes a new one. */
  private savedOne(call: Creation, name: string): Communicator | null | undefined {
    const { logged } = this;
    if (logged?.isRemaking !== true) return undefined;
    if (call.isOut === true) return null;
    const text = this.callText(call);
    const saved = logged.given(text);
    if (saved === undefined) return undefined;
    const communicator = this.enterAs(name, saved.id, saved.members);
    Object.assign(communicator.loggedPlace.counters, saved.counters);
    logged.adopt(communicator.loggedPlace, text);
    return communicator;
  }

  /** Starts a creation. `scope`: other ranks than those of this communicator. */
  private beginCreation(call: Creation, name: string, whenMade: (made: Communicator | null) => void, group?: Group, tag?: number) {
    const { contexts } = this.proc;
    const scope: Scope | undefined = group === undefined ? undefined : this.scopeOf(ctxOf(this.contextId, CREATION), group);
    // From here on messages may come for it.
    contexts.beginCreation();
    const operation = this.begin(call, scope, tag);
    const end = (): void => {
      const made = operation.result;
      if (operation.error === undefined && made !== undefined) {
        contexts.open(made.id);
        const { logged } = this;
        // Somebody may have got a successor since it was agreed on.
        const communicator = this.made(name, made.id, logged?.current(made.worldRanks) ?? made.worldRanks);
        logged?.adopt(communicator.loggedPlace, this.callText(call));
        whenMade(communicator);
      } else if (operation.error === undefined) whenMade(null);
      contexts.endCreation(operation.error !== undefined);
      if (!contexts.isCreating) this.proc.ft?.ulfm.dropEarly();
    };
    if (operation.done) end();
    return { operation, end };
  }

  private make(
    prepare: () => Creation,
    name: string,
    options: CallOptions | undefined,
    group?: Group,
    tag?: number,
  ): Promise<Communicator | null> {
    const made = new Promise<Communicator | null>((resolve, reject) => {
      this.mustBeUsable();
      this.checkEnd(options);
      const call = prepare();
      const saved = this.savedOne(call, name);
      if (saved !== undefined) return resolve(saved);
      const { operation, end } = this.beginCreation(call, name, resolve, group, tag);
      if (options !== undefined) this.limit(operation, options);
      const settle = (): void => {
        if (operation.error !== undefined) reject(operation.error);
      };
      if (operation.done) return settle();
      operation.onDone = () => {
        end();
        settle();
      };
    });
    return this.desk.inTurn(made);
  }

  private makeSync(call: Creation, name: string, options: CallOptions | undefined, group?: Group, tag?: number): Communicator | null {
    this.mustBeUsable();
    this.checkEnd(options);
    const saved = this.savedOne(call, name);
    if (saved !== undefined) return saved;
    this.mustReachByPolling();
    let made: Communicator | null = null;
    const { operation, end } = this.beginCreation(
      call,
      name,
      (communicator) => {
        made = communicator;
      },
      group,
      tag,
    );
    if (!operation.done) operation.onDone = end;
    this.endedSync(operation, options?.timeoutMs);
    return made;
  }

  // ---------------------------------------------------------------- after failures

  /**
   * Makes a communicator of the members that have not failed, in their order. All of them agree on who that is; one that dies meanwhile may
   * be in it, as a dead one. Collective over the members that live, and ordered with agree(). Works on a communicator that was revoked, which
   * is what it is for. The parameter `ft` is on.
   *
   * @throws ERR_COLLECTIVE_MISMATCH: members have called agree(), shrink() and replace() in different orders.
   * @throws ERR_SUPPORT: the parameter `ft` is off.
   * @throws ERR_PROC_FAILED: this process itself was declared dead.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  shrink(): Promise<Communicator> {
    return promiseOf(() => this.beginShrink());
  }

  /**
   * As shrink(), without a promise. The event loop does not run meanwhile.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part); nothing was sent.
   */
  shrinkSync(): Communicator {
    this.mustReachByPolling();
    return this.endedCall(this.beginShrink());
  }

  /**
   * Starts shrink() and returns its request at once; `result` is the new communicator, once it has ended. It goes on while the program does
   * something else.
   */
  ishrink(): ResultRequest<Communicator> {
    return new ResultRequest(this.desk, this.beginShrink());
  }

  private beginShrink(): Ending<Communicator> {
    return this.beginShrinking((id, members) => this.made(`${this.name}.shrink`, id, members));
  }

  /**
   * Makes a communicator of the same size and with the same ranks, in which processes that stand by take the places of the failed members:
   * the one with the lowest number that of the lowest rank. For each of them init() resolves now, and `mpi.world` is this communicator there.
   * All members agree on who has failed and who comes; when somebody dies before all are in, they agree again, by themselves. When nobody has
   * failed it is like dup(). Collective over the members that live, and ordered with agree(); a call of agree(), shrink() or replace() that is
   * made while this one is under way waits for it. Works on a communicator that was revoked. The parameter `ft` is on, and processes stand by
   * (`ft_spares`).
   *
   * @param options `spares`: 'all', which is the default, rejects at all members alike when too few stand by; 'some' replaces as many as it
   *   can, and leaves the others out, as shrink() does.
   * @throws ERR_SPARES: too few processes stand by.
   * @throws ERR_ARG: an option does not fit.
   * @throws ERR_COLLECTIVE_MISMATCH: members have called agree(), shrink() and replace() in different orders, or with different options.
   * @throws ERR_SUPPORT: the parameter `ft` is off.
   * @throws ERR_PROC_FAILED: this process itself was declared dead.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  replace(options?: ReplaceOptions): Promise<Communicator> {
    return promiseOf(() => this.beginReplace(options, false));
  }

  /**
   * As replace(), without a promise. The event loop does not run meanwhile.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part); nothing was sent.
   */
  replaceSync(options?: ReplaceOptions): Communicator {
    this.mustReachByPolling();
    return this.endedCall(this.beginReplace(options, true));
  }

  /**
   * Starts replace() and returns its request at once; `result` is the new communicator, once it has ended. It goes on while the program does
   * something else. Wrong options throw.
   */
  ireplace(options?: ReplaceOptions): ResultRequest<Communicator> {
    return new ResultRequest(this.desk, this.beginReplace(options, false));
  }

  /**
   * For those who want to go on, whoever has failed: revoke(), then replace() as far as processes stand by, and the other failed members are
   * left out. Collective over the members that live: those that are in another call on this communicator come out of it with ERR_REVOKED.
   *
   * @throws ERR_COLLECTIVE_MISMATCH: members have called agree(), shrink() and replace() in different orders.
   * @throws ERR_SUPPORT: the parameter `ft` is off.
   * @throws ERR_PROC_FAILED: this process itself was declared dead.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  async repair(): Promise<Communicator> {
    this.revokeSync();
    return await this.replace({ spares: 'some' });
  }

  /**
   * As repair(), without a promise. The event loop does not run meanwhile.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part); nothing was sent.
   */
  repairSync(): Communicator {
    this.mustReachByPolling();
    this.revokeSync();
    return this.replaceSync({ spares: 'some' });
  }

  private beginReplace(options: ReplaceOptions = {}, isBlocking: boolean): Ending<Communicator> {
    checkKeys(options, REPLACE_KEYS);
    const { spares = 'all' } = options;
    if (spares !== 'all' && spares !== 'some')
      throw new MultirailError('ERR_ARG', `spares is ${describe(spares)}; expected 'all' or 'some'`);
    const operation = spares === 'all' ? OPERATION.REPLACE_ALL : OPERATION.REPLACE_SOME;
    // However often a job has recovered.
    const name = `${this.name.replace(/(\.replace)+$/, '')}.replace`;
    return this.beginReplacing(operation, isBlocking, (id, members) => this.made(name, id, members));
  }

  /**
   * Says how another communicator relates to this one (MPI-4.1, section 7.4.1): IDENT, the same one; CONGRUENT, the same ranks in the same
   * order; SIMILAR, the same ranks in another order; UNEQUAL.
   *
   * @param other The other communicator.
   * @throws ERR_COMM: it is no Communicator.
   */
  compare(other: Communicator): Comparison {
    if (!(other instanceof Communicator))
      throw new MultirailError(
        'ERR_COMM',
        `other is ${describe(other)}; expected a Communicator, such as mpi.world (a Group has a compare() of its own)`,
      );
    if (other === this) return IDENT;
    const groups = this.group.compare(other.group);
    return groups === IDENT ? CONGRUENT : groups;
  }

  // ---------------------------------------------------------------- the end (MPI-4.1, section 7.4.3)

  /**
   * Frees the communicator (MPI-4.1, section 7.4.3). Collective: every rank calls it, and it resolves when everything that was begun on it,
   * on any rank, has ended; messages that nobody has received by then are dropped. Every later call on it ends with ERR_COMM; a Message
   * that a probe has taken can be received until it resolves. When a member is gone, or the communicator was revoked, it resolves without
   * waiting for anybody, and receives that are still posted end with ERR_COMM.
   *
   * @throws ERR_COMM: it is the world, which finalize() ends, or was freed before.
   * @throws ERR_FINALIZED: finalize() was called.
   */
  free(): Promise<void> {
    const { turns } = this.desk;
    const left = new Promise<void>((resolve, reject) => {
      this.mustBeFreeable();
      this.leave(resolve, reject);
    });
    return turns === undefined ? left : turns.inTurn(left);
  }

  /**
   * As free(), without a promise. The event loop does not run meanwhile.
   *
   * @param options `wait: false` returns at once, as MPI_Comm_free may (MPI-4.1, section 7.4.3): the communicator ends by itself, when all
   *   ranks have freed it and what was begun on it has ended. So the ranks may free it in any order, with other calls between.
   * @throws ERR_SUPPORT: it is to wait, and a rail needs the event loop (ws, tcp without the native part); nothing was sent.
   * @throws ERR_ARG: an option does not fit.
   */
  freeSync(options: FreeOptions = {}): void {
    checkKeys(options, FREE_KEYS);
    const { wait = true } = options;
    if (typeof wait !== 'boolean') throw new MultirailError('ERR_ARG', `options.wait is ${describe(wait)}; expected true or false`);
    this.mustBeFreeable();
    if (!wait)
      // Nobody asks how it ends: whatever fails of it, it is gone here.
      return this.leave(
        () => undefined,
        () => undefined,
      );
    this.mustReachByPolling();
    const left = { done: false };
    let failure: unknown;
    const end = (error?: unknown): void => {
      left.done = true;
      failure = error;
    };
    this.leave(() => end(), end);
    if (!left.done) this.desk.wait(left);
    if (failure !== undefined) throw failure;
  }

  private mustBeFreeable(): void {
    this.mustNotBeFreed();
    if (this.contextId === WORLD_ID) throw new MultirailError('ERR_COMM', 'the world cannot be freed: finalize() ends it');
  }

  /**
   * First all that this rank has under way, then a barrier on the service context, which outlives the communicator: after it nobody sends
   * anything on it any more, and all that was sent has arrived.
   */
  private leave(resolve: () => void, reject: (error: unknown) => void): void {
    const { proc, contextId } = this;
    const { engine } = proc;
    const freed = new MultirailError('ERR_COMM', `the communicator ${this.name} was freed`, { rank: proc.rank });
    this.markFreed(freed);
    const abandon = (): void => {
      proc.endCommunicator(contextId, false, freed);
      resolve();
    };
    const close = (): void => {
      // Where messages are logged a successor makes it again, and gets the others' part from the logs, which have its own contexts alone.
      const ctx = this.logged === undefined ? ctxOf(SERVICE_ID, USER) : ctxOf(contextId, CREATION);
      const scope = this.scopeOf(ctx, this.group);
      const operation = this.begin({ signature: this.signatures.of('free'), steps: dissemination }, scope, contextId);
      const end = (): void => {
        if (operation.error !== undefined) return abandon();
        proc.endCommunicator(contextId, true, freed);
        resolve();
      };
      if (operation.done) end();
      else operation.onDone = end;
    };
    const isHeld = (): boolean => proc.logged?.holds(ctxOf(contextId, USER)) === true;
    const lacksMember = (): boolean => !isHeld() && this.members.some((member) => this.proc.endingOf(member) !== undefined);
    try {
      proc.whenDrained(
        () => {
          if (this.revocation !== undefined || lacksMember()) abandon();
          else if (proc.isQuiet(contextId)) close();
          else return false;
          return true;
        },
        () => this.revocation !== undefined || lacksMember() || proc.isQuiet(contextId),
      );
      engine.schedule();
    } catch (error) {
      reject(error);
    }
  }
}
