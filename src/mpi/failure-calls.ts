// The calls of a communicator about processes that die: revoke, agree, who has failed, and what shrink and replace stand on. After User-Level Failure Mitigation (Bland,
// Bouteiller, Herault, Bosilca, Dongarra: Post-failure recovery of MPI communication capability, 2013; MPIX_Comm_* in other libraries).
import { MultirailError } from '../errors.ts';
import type { ExportableMemory } from '../pml/message-log.ts';
import type { Replacement } from '../ulfm/replace.ts';
import { OPERATION, type Operation, type Value, verdictOf } from '../ulfm/values.ts';
import { exportableMemory } from './exportable-memory.ts';
import type { AgreementCall } from './ft/agreement-call.ts';
import type { FaultTolerance } from './ft/fault-tolerance.ts';
import type { FamilyBase, LoggedPlace } from './ft/logged-family.ts';
import type { LoggedOptions, LoggedStreams } from './ft/logged-streams.ts';
import type { RecoverySeries } from './ft/recovery-series.ts';
import type { Group } from './group.ts';
import { ftParts, replicaParts } from './job-parts.ts';
import { ObjectCollectives } from './object-collectives.ts';
import type { PairedSeries } from './replica/paired-series.ts';
import { ResultRequest } from './result-request.ts';

const FLAG_MAX = 0xffff_ffff;

/** What the members of a communicator have agreed on: the same at all of them, and at those that died after it. */
export interface Agreement {
  /** The bitwise AND of the flags of all that contributed: every member that lives, and maybe some that have died since. */
  readonly flag: number;
  /** The members that the decision names as failed, in the order of their ranks. */
  readonly failed: Group;
  /** ERR_PROC_FAILED when one of them is not acknowledged by every member that contributed; undefined otherwise. */
  readonly error: MultirailError | undefined;
}

export class FailureCalls extends ObjectCollectives {
  /** Where the parameter ft is off, there is nobody who would tell others. */
  protected faultTolerance(call: string): FaultTolerance {
    this.mustNotBeFreed();
    this.mustNotBeLogged(`${call}()`);
    const { ft } = this.proc;
    if (ft === undefined)
      throw new MultirailError(
        'ERR_SUPPORT',
        `${call}() on ${this.name} needs the parameter ft, which is off: start every rank of the job with --mca ft on`,
        { rank: this.proc.rank },
      );
    return ft;
  }

  // ---------------------------------------------------------------- revocation

  /**
   * Breaks the communicator at all of its members: what is under way on it ends with ERR_REVOKED, and so does every later call but agree(),
   * shrink(), replace(), getFailed(), ackFailed() and free(). One member calls it, without waiting for the others; calling it again does nothing. The
   * parameter `ft` is on.
   *
   * A send of a long message ends when its receiver has heard of it, too: until then that one might complete its receive with what is in the
   * buffer. A receiver that has heard of it takes what comes into nothing, so a send may also end well.
   *
   * @throws ERR_SUPPORT: the parameter `ft` is off.
   * @throws ERR_PROC_FAILED: this process itself was declared dead.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  async revoke(): Promise<void> {
    this.revokeSync();
  }

  /** As revoke(), without a promise: the word of it is on its way on return. */
  revokeSync(): void {
    this.faultTolerance('revoke').revoke(this.contextId);
  }

  /** Whether this process knows that the communicator was revoked, by itself or by another member. */
  get isRevoked(): boolean {
    return this.revocation !== undefined;
  }

  // ---------------------------------------------------------------- who has failed

  /**
   * The members that are known here to have failed, in the order of their ranks; another member may know of more. Looks at no rail. The
   * parameter `ft` is on.
   *
   * @throws ERR_SUPPORT: the parameter `ft` is off.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  getFailed(): Group {
    return this.group.include(this.faultTolerance('getFailed').ulfm.getFailed(this.contextId));
  }

  /**
   * Acknowledges failures: receives from ANY_SOURCE and agree() no longer report them on this communicator. Nothing is sent.
   * Returns how many are acknowledged now. The parameter `ft` is on.
   *
   * @param count How many of those that getFailed() returned last, from its first on; all that are known by default.
   * @throws ERR_COUNT: the count is no whole number, 0 or more.
   * @throws ERR_SUPPORT: the parameter `ft` is off.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  ackFailed(count?: number): number {
    const ft = this.faultTolerance('ackFailed');
    if (count !== undefined && !(Number.isInteger(count) && count >= 0))
      throw new MultirailError(
        'ERR_COUNT',
        `count is ${String(count)}; expected a whole number, 0 or more, of those that getFailed() returned`,
      );
    const acknowledged = ft.ulfm.ackFailed(this.contextId, count);
    // Whoever waits for a message of anybody may have nobody left to wait for.
    this.desk.memberGone();
    return acknowledged;
  }

  // ---------------------------------------------------------------- agreement

  /**
   * Agrees on a flag, whatever fails meanwhile: resolves with the bitwise AND of the flags, and with the members that have failed, the same at
   * every member. Collective over the members that live, in the same order as all agreements of this communicator; a member that never calls
   * holds the others up, unless it dies. Works on a communicator that was revoked. The parameter `ft` is on.
   *
   * @param flag A whole number of 32 bits, 0 to 4294967295.
   * @throws ERR_ARG: the flag does not fit.
   * @throws ERR_COLLECTIVE_MISMATCH: members have called agree(), shrink() and replace() in different orders.
   * @throws ERR_SUPPORT: the parameter `ft` is off.
   * @throws ERR_PROC_FAILED: this process itself was declared dead.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  agree(flag: number): Promise<Agreement> {
    return promiseOf(() => this.beginAgree(flag));
  }

  /**
   * As agree(), without a promise. The event loop does not run meanwhile.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part); nothing was sent.
   */
  agreeSync(flag: number): Agreement {
    this.mustReachByPolling();
    return this.endedCall(this.beginAgree(flag));
  }

  /**
   * Starts agree() and returns its request at once; `result` is the agreement, once it has ended. It goes on while the program does something
   * else. Wrong arguments throw.
   */
  iagree(flag: number): ResultRequest<Agreement> {
    return new ResultRequest(this.desk, this.beginAgree(flag));
  }

  private beginAgree(flag: number): AgreementCall<Agreement> {
    const ft = this.faultTolerance('agree');
    if (!(Number.isInteger(flag) && flag >= 0 && flag <= FLAG_MAX))
      throw new MultirailError('ERR_ARG', `flag is ${String(flag)}; expected a whole number from 0 to ${FLAG_MAX}`);
    return ft.begin(this.contextId, OPERATION.AGREE, flag, (value) => {
      const failed = this.decided('agree', value);
      return { flag: value.flag, failed, error: this.errorOf(value) };
    });
  }

  /** The members that a decision names as failed. */
  private decided(call: string, value: Value): Group {
    if (verdictOf(value).isMismatch)
      throw new MultirailError(
        'ERR_COLLECTIVE_MISMATCH',
        `on ${this.name} rank ${this.rank} has called ${call}() where other ranks have called ${othersOf(value.operations, call)}: all ranks must make the same call`,
        { rank: this.proc.rank },
      );
    return this.group.include([...value.failed]);
  }

  private errorOf(value: Value): MultirailError | undefined {
    if (!verdictOf(value).hasUnacknowledged) return undefined;
    const ranks = [...value.failed].filter((rank) => !value.acked.has(rank));
    const list = ranks.map((rank) => `${rank} (process ${this.members[rank]})`).join(', ');
    const what = `${ranks.length === 1 ? 'rank' : 'ranks'} ${list} of ${this.name} failed, which not every member has acknowledged`;
    return new MultirailError('ERR_PROC_FAILED', what, { rank: this.proc.rank, peer: this.members[ranks[0]] });
  }

  // ---------------------------------------------------------------- for saves

  /** @internal What multirail/ft commits saves and begins recoveries by. */
  recoverySeries(call: string): RecoverySeries {
    const ft = this.faultTolerance(call);
    const { RecoverySeries } = ftParts();
    return new RecoverySeries(this.proc, ft, this.contextId, this.members);
  }

  /** @internal As recoverySeries(), where each rank is two processes. */
  pairedSeries(): PairedSeries {
    const { PairedSeries } = replicaParts();
    return new PairedSeries(this.proc);
  }

  /**
   * From now on all messages of this communicator, and of those that are made of it, are logged, and a member that dies is waited for until it has a successor.
   *
   * @internal
   */
  logMessages(options: LoggedOptions, base: FamilyBase): LoggedStreams {
    const { LoggedStreams } = ftParts();
    return new LoggedStreams(this.proc, this.loggedPlace, options, base);
  }

  /**
   * Memory that the other ranks of this host may map, for what is sent from where it is kept.
   *
   * @internal
   */
  get exportableMemory(): ExportableMemory {
    return exportableMemory(this.proc.engine);
  }

  protected get loggedPlace(): LoggedPlace {
    const self = this;
    return {
      id: this.contextId,
      group: this.group,
      desk: this.desk,
      counters: {
        get collectives() {
          return self.nextCollective;
        },
        set collectives(count) {
          self.nextCollective = count;
        },
        get objects() {
          return self.nextPlace;
        },
        set objects(count) {
          self.nextPlace = count;
        },
      },
    };
  }

  // ---------------------------------------------------------------- for calls that make communicators

  /** From the call on messages may come for the communicator that the decision makes. */
  private beginMaking<C>(ft: FaultTolerance, begin: (end: () => void, open: (id: number) => void) => C): C {
    const { contexts } = this.proc;
    contexts.beginCreation();
    let isWell = false;
    const end = (): void => {
      contexts.endCreation(!isWell);
      if (!contexts.isCreating) ft.ulfm.dropEarly();
    };
    const open = (id: number): void => {
      contexts.open(id);
      isWell = true;
    };
    try {
      return begin(end, open);
    } catch (error) {
      end();
      throw error;
    }
  }

  /** Agrees on who lives; `make` makes the communicator of the living: its id and its members. */
  protected beginShrinking<T>(make: (id: number, members: readonly number[]) => T): AgreementCall<T> {
    const ft = this.faultTolerance('shrink');
    const epoch = ft.ulfm.epochOf(this.contextId) + 1;
    return this.beginMaking(ft, (end, open) =>
      ft.begin(
        this.contextId,
        OPERATION.SHRINK,
        epoch,
        (value) => {
          const failed = this.decided('shrink', value);
          open(value.newId);
          ft.noteEpoch(value.newId, value.flag);
          return make(value.newId, this.group.difference(failed).worldRanks);
        },
        end,
      ),
    );
  }

  /** Agrees on who has failed and who takes their places; `make` makes the communicator once all are in it. */
  protected beginReplacing<T>(
    operation: Operation,
    isBlocking: boolean,
    make: (id: number, members: readonly number[]) => T,
  ): AgreementCall<T, Replacement> {
    const ft = this.faultTolerance('replace');
    return this.beginMaking(ft, (end, open) =>
      ft.beginReplace(
        this.contextId,
        operation,
        isBlocking,
        ({ value, made }) => {
          const failed = this.decided('replace', value);
          if (made === undefined) throw this.lacksSpares(failed);
          open(made.id);
          return make(made.id, made.members);
        },
        end,
      ),
    );
  }

  private lacksSpares(failed: Group): MultirailError {
    const list = failed.worldRanks.map((number) => `${this.group.rankOf(number)} (process ${number})`).join(', ');
    const what = `${failed.size === 1 ? 'rank' : 'ranks'} ${list} of ${this.name} failed, and fewer processes stand by than were to be replaced`;
    return new MultirailError(
      'ERR_SPARES',
      `${what}: start the job with more (multirail run --spares or --respawn, ft_spares), or call replace({ spares: 'some' }) or shrink()`,
      { rank: this.proc.rank },
    );
  }

  /** Blocks until it is decided. */
  protected endedCall<T>(call: Ending<T>): T {
    if (!call.done) this.desk.wait(call);
    if (call.error !== undefined) throw call.error;
    return call.result as T;
  }
}

const CALLS: readonly [Operation, string][] = [
  [OPERATION.AGREE, 'agree'],
  [OPERATION.SHRINK, 'shrink'],
  [OPERATION.REPLACE_ALL, 'replace'],
  [OPERATION.REPLACE_SOME, 'replace'],
];

function othersOf(operations: number, own: string): string {
  const others = CALLS.filter(([bit, name]) => (operations & bit) !== 0 && name !== own).map(([, name]) => `${name}()`);
  return others.length === 0 ? `another one, or ${own}() with other options` : [...new Set(others)].join(' and ');
}

/** A call of any kind, as far as its end goes. */
export type Ending<T> = Pick<AgreementCall<T>, 'kind' | 'done' | 'error' | 'result' | 'onDone' | 'fail'>;

export function promiseOf<T>(begin: () => Ending<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const call = begin();
    const settle = (): void => (call.error === undefined ? resolve(call.result as T) : reject(call.error));
    if (call.done) settle();
    else call.onDone = settle;
  });
}
