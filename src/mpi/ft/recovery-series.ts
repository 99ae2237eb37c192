// What multirail/ft drives saves and recoveries by, on one communicator: agreements of its second series, the word of deaths among its
// members, and whether anything of the program is on its way. It lives as long as the communicator is the one that the program runs on.
import type { RecvRequest } from '../../pml/records.ts';
import type { Value } from '../../ulfm/values.ts';
import { Iov } from '../../util/iov.ts';
import { ANY_SOURCE } from '../constants.ts';
import { ctxOf, USER } from '../contexts.ts';
import type { ProcessState } from '../process-state.ts';
import type { AgreementCall } from './agreement-call.ts';
import type { FaultTolerance } from './fault-tolerance.ts';
import { HolderClient } from './held-objects.ts';
import { type Recruits, recruit } from './helping.ts';
import { ProgramTraffic } from './program-traffic.ts';

/** A communicator, as far as messages on it are taken here. */
interface Listened {
  readonly contextId: number;
  readonly group: { readonly worldRanks: readonly number[] };
}

/** What a vote has come to: the same at all members. */
export interface VoteResult {
  /** AND of all votes. */
  readonly flag: number;
  /** Ranks, ascending. */
  readonly failed: readonly number[];
}

export class RecoverySeries extends ProgramTraffic {
  /** Called from within a turn of the engine, once for each member that becomes known to be dead. */
  onDeath: ((rank: number) => void) | undefined;
  /** Host of each member, by rank. */
  readonly hosts: readonly string[];
  private readonly ft: FaultTolerance;
  private readonly id: number;
  private readonly members: readonly number[];
  /** Communicators that there were before: the program has not made them. */
  private readonly before: ReadonlySet<number>;
  private readonly listener = (number: number): void => {
    const rank = this.members.indexOf(number);
    if (rank >= 0) this.onDeath?.(rank);
  };

  constructor(proc: ProcessState, ft: FaultTolerance, id: number, members: readonly number[]) {
    super(proc);
    this.ft = ft;
    this.id = id;
    this.members = members;
    this.hosts = members.map((number) => proc.hostOf(number));
    this.before = new Set(proc.communicatorIds());
    ft.deathListeners.add(this.listener);
  }

  close(): void {
    this.ft.deathListeners.delete(this.listener);
  }

  /** No logged communicator that this process knows of has this count in its id, or a higher one. */
  get nextLogged(): number {
    return this.proc.contexts.nextLogged;
  }

  /** Asks those that hold saves while they stand by; closed by whoever asked for it. */
  holderClient(): HolderClient {
    const { ft, proc } = this;
    return new HolderClient({
      engine: proc.engine,
      rank: proc.rank,
      holders: () => ft.ulfm.standbys.all,
      standbys: () => ft.ulfm.standbys.ready,
      deathListeners: ft.deathListeners,
      held: ft.held,
    });
  }

  /** Asks some that stand by to help this process: see recruit(). */
  recruit(wanted: number, limitMs: number, then: (recruits: Recruits) => void): () => void {
    const { engine } = this.proc;
    const { ulfm, deathListeners } = this.ft;
    // Places are taken by those with the lowest numbers.
    const candidates = ulfm.standbys.ready.reverse();
    return recruit({ engine, deathListeners, candidates }, wanted, limitMs, then);
  }

  /** Looks at the rails once. */
  look(): void {
    this.proc.look();
  }

  /** An id that nobody has. */
  newId(): number {
    return this.proc.contexts.allocate();
  }

  /** Every call on that communicator ends with ERR_REVOKED here; nobody else has it. */
  revokeHere(id: number): void {
    this.proc.revoked(id);
  }

  /** Ranks that are known here to be dead. */
  knownDead(): number[] {
    return [...this.members.keys()].filter((rank) => this.ft.ulfm.knowledge.isFailed(this.members[rank]));
  }

  /** Votes in the next agreement of the series. */
  vote(flag: number): AgreementCall<VoteResult> {
    const read = (value: Value): VoteResult => ({ flag: value.flag, failed: [...value.failed] });
    return this.ft.vote(this.id, flag, read);
  }

  /** Revokes the communicator, and all that were made since, at all of their members. */
  revokeAll(): void {
    for (const id of this.proc.communicatorIds()) if (id === this.id || !this.before.has(id)) this.ft.revoke(id);
  }

  /** Revokes the communicator and that of its saves, at all of their members: the program's goes on. */
  revokeOwn(): void {
    for (const id of this.proc.communicatorIds()) if (id === this.id || this.own.has(id)) this.ft.revoke(id);
  }

  override underWay(textsMax: number): string[] {
    const texts = super.underWay(textsMax);
    const { logged } = this.proc;
    if (logged?.isSettled === false && texts.length < textsMax) texts.push('messages that are repeated after a failure');
    return texts;
  }

  /**
   * Takes messages with this tag on a communicator of its own, each of so many bytes, as whole numbers and fractions: inside the engine's turns,
   * so while the program computes or waits in a blocking call, too. Ends with the communicator, or when the function that it returns is called.
   */
  listen(own: Listened, tag: number, bytes: number, take: (rank: number, words: Float64Array) => void): () => void {
    const words = new Float64Array(bytes / Float64Array.BYTES_PER_ELEMENT);
    return this.listenTo(own, tag, new Uint8Array(words.buffer), (rank) => take(rank, words));
  }

  /** As listen(), for messages of any length: each is in `memory` while it is taken. */
  listenTo(own: Listened, tag: number, memory: Uint8Array, take: (rank: number, bytes: Uint8Array) => void): () => void {
    const { pml } = this.proc.engine;
    const ctx = ctxOf(own.contextId, USER);
    const members = own.group.worldRanks;
    const buffer = new Iov([memory]);
    let posted: RecvRequest | undefined;
    const read = ({ error, cancelled, matchedSource, receivedBytes }: RecvRequest): boolean => {
      if (cancelled || error !== undefined) return false;
      take(members.indexOf(matchedSource), memory.subarray(0, receivedBytes));
      return true;
    };
    const post = (): void => {
      for (;;) {
        posted = undefined;
        const request = pml.irecvInBackground(ANY_SOURCE, ctx, tag, buffer, (done) => {
          if (read(done)) post();
        });
        if (!request.done) {
          posted = request;
          return;
        }
        if (!read(request)) return;
      }
    };
    post();
    return () => {
      if (posted !== undefined && !posted.done) pml.cancel(posted);
    };
  }

  /** Resolves when nothing of the program's is on its way from here, or after that time. Returns whether it is so. */
  whenQuiet(timeoutMs: number): Promise<boolean> {
    return this.until(() => this.underWay(1).length === 0, timeoutMs);
  }

  /** Resolves when that is so, as looked at after each turn of the engine, or after that time. */
  async whenSo(isSo: () => boolean, timeoutMs?: number): Promise<void> {
    if (isSo()) return;
    const { engine } = this.proc;
    // What comes is taken in the background, and somebody waits for it all the same.
    engine.expectedBySaves++;
    await this.until(isSo, timeoutMs);
    engine.expectedBySaves--;
  }

  private until(isSo: () => boolean, timeoutMs?: number): Promise<boolean> {
    return new Promise((resolve) => {
      let isOver = false;
      const end = (isWell: boolean): void => {
        isOver = true;
        clearTimeout(timer);
        resolve(isWell);
      };
      const timer = timeoutMs === undefined ? undefined : setTimeout(() => end(false), timeoutMs);
      this.proc.whenDrained(() => {
        if (!isOver && isSo()) end(true);
        return isOver;
      });
    });
  }

  /** As whenSo(), in a blocking call. Returns whether it is so. */
  waitSo(isSo: () => boolean, timeoutMs?: number): boolean {
    if (isSo()) return true;
    const { blocking } = this.proc;
    if (timeoutMs !== undefined) return blocking.wait({ done: false, isOver: isSo }, blocking.now() + timeoutMs);
    this.waitUntil(isSo);
    return true;
  }

  /** As whenQuiet(), in a blocking call. */
  waitQuiet(timeoutMs: number): boolean {
    return this.waitSo(() => this.underWay(1).length === 0, timeoutMs);
  }

  /** Blocks until that is so: looked at in a blocking call's polls. */
  waitUntil(isSo: () => boolean): void {
    if (isSo()) return;
    const awaited = {
      get done() {
        return isSo();
      },
    };
    this.proc.blocking.wait(awaited);
  }
}
