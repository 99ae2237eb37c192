// The save of a group as the program of one of its ranks goes through it, from the call to the word that it is committed: what is waited for, and in
// which order. A death in another group ends it, and it is begun again, unless another rank of this group is behind the call. Who waits, and how
// the state is copied, is the driver's (group-job.ts). Pure.
import { MultirailError } from '../../errors.ts';
import { CALL, VERDICT, type Verdict } from './group-core.ts';
import type { GroupSaveEnd, GroupSaves, GroupSlot } from './group-saves.ts';

/** What is waited for: until it is so, or for that time. */
export interface Until {
  isSo(): boolean;
  readonly limitMs?: number;
}
export type SaveSteps<T> = Generator<Until, T, void>;

/** A save that was begun. */
export interface BegunSave {
  readonly slot: GroupSlot;
  end: GroupSaveEnd | undefined;
}

export interface GroupSaveHost {
  readonly rank: number;
  readonly group: GroupSaves;
  /** This run of the program is over. */
  readonly isOver: boolean;
  readonly step: number;
  /** The program has come to so many calls in which it may save. */
  readonly attempts: number;
  /** Nobody of its group is behind the call that it is in. */
  readonly isAhead: boolean;
  readonly measured: readonly number[];
  /** Messages that are on their way must be received within that time. */
  readonly quietMs: number;
  /** Receives that have found their message have its data, and every message that was sent has its number. */
  readonly isWritten: boolean;
  /** Somebody has to save soon, since the log of this rank fills up. */
  readonly isNearlyFull: boolean;
  /** Messages to ranks of this group that are on their way, in words. */
  underWay(): readonly string[];
  /** Messages from ranks of this group that were not received, in words. */
  unreceived(): readonly string[];
  /** Takes the numbers of this rank. */
  cut(): void;
  /** The numbers that were taken are of no save. */
  abandonCut(): void;
  /** Copies the state; undefined: it could not. */
  capture(): BegunSave | undefined;
  /** What the group has measured. */
  saved(measured: readonly number[]): void;
  /** There was nothing to save. */
  looked(): void;
  /** The program goes on behind the call that it is in. */
  pass(): void;
  /** A try has come to nothing, and another one follows. */
  again(): void;
  /** What calls end with when a process has failed. */
  failed(): MultirailError;
  isFailure(error: unknown): boolean;
}

export class GroupSaveSteps {
  private readonly host: GroupSaveHost;

  constructor(host: GroupSaveHost) {
    this.host = host;
  }

  /** Makes the save, however often somebody dies in another group meanwhile, unless another rank of this group is behind it already. */
  *save(isLook: boolean, isBlocking: boolean): SaveSteps<number> {
    const { host } = this;
    while (host.isAhead) {
      // Which calls the others are behind is known when saves are open again.
      yield* this.idle();
      if (!host.isAhead) break;
      try {
        const k = yield* this.saveOnce(isLook, isBlocking);
        host.pass();
        return k;
      } catch (error) {
        if (!host.isFailure(error) || host.isOver) throw error;
      }
      host.again();
    }
    return host.group.committed?.k ?? -1;
  }

  private *saveOnce(isLook: boolean, isBlocking: boolean): SaveSteps<number> {
    const { host } = this;
    const { group } = host;
    if (isLook && host.isNearlyFull) {
      for (const one of new Set(group.groups)) if (one !== group.group) group.core.need(one);
    }
    const call = isLook ? CALL.LOOK : CALL.SAVE;
    let life = yield* this.comeTo(call);
    // The first may have waited for one that came later, and received then what they had sent: once all are there, the time begins again.
    if (group.core.verdict?.code === VERDICT.LOUD) life = yield* this.comeTo(call);
    if (group.core.verdict?.code === VERDICT.NOTHING) {
      host.looked();
      return group.committed?.k ?? -1;
    }
    this.agreed(group.core.verdict, () => host.underWay());
    // All that was sent in this group before is here now, and nobody of it sends more before everybody has looked.
    const left = host.unreceived();
    if (left.length === 0) host.cut();
    group.core.cut(left.length > 0);
    group.obey();
    yield { isSo: () => this.isOver(life) || group.core.state === 'TAKING' || group.core.verdict !== undefined };
    if (this.isOver(life) || group.core.verdict !== undefined) host.abandonCut();
    this.mustGoOn(life);
    this.agreed(group.core.verdict, () => left);
    const begun = host.capture();
    host.saved(group.core.measured);
    if (begun !== undefined && !isBlocking) host.pass();
    group.copied(begun?.slot);
    if (!isBlocking && begun !== undefined) return begun.slot.k;
    yield { isSo: () => this.isOver(life) || group.core.state === 'IDLE' || begun?.end !== undefined };
    if (begun?.end === 'committed') return begun.slot.k;
    this.mustGoOn(life);
    throw new MultirailError(
      'ERR_CHECKPOINT',
      `rank ${host.rank}: a save of its group was abandoned: a rank could not make or take its part, and says why`,
      { rank: host.rank },
    );
  }

  /** All of the group have come to the end of the program, and none to a save. */
  *end(): SaveSteps<void> {
    const { host } = this;
    const { group, attempts, step, measured } = host;
    const { life } = yield* this.idle();
    if (host.isOver) return;
    group.core.arrive(CALL.END, { call: attempts, step, isLoud: false, k: group.nextK, measured });
    group.obey();
    yield { isSo: () => this.isOver(life) || group.core.verdict !== undefined };
    this.mustGoOn(life);
    this.agreed(group.core.verdict, () => []);
  }

  /** This rank has come to the call, and then all of its group have. */
  private *comeTo(call: number): SaveSteps<number> {
    const { host } = this;
    const { group } = host;
    const { life, isLoud } = yield* this.quiet();
    group.core.arrive(call, { call: host.attempts, step: host.step, isLoud, k: group.nextK, measured: host.measured });
    group.obey();
    yield { isSo: () => this.isOver(life) || group.core.state === 'CUTTING' || group.core.verdict !== undefined };
    this.mustGoOn(life);
    return life;
  }

  /** No save of this group is under way, and no recovery. */
  private *idle(): SaveSteps<{ readonly life: number }> {
    const { host } = this;
    const { group } = host;
    yield { isSo: () => host.isOver || (group.isOpen && group.core.state === 'IDLE') };
    return { life: group.lives };
  }

  /** Nothing is on its way between the ranks of this group, as far as this one knows, and what it receives of others is here as a whole. */
  private *quiet(): SaveSteps<{ readonly life: number; readonly isLoud: boolean }> {
    const { host } = this;
    const { life } = yield* this.idle();
    this.mustGoOn(life);
    yield { isSo: () => this.isOver(life) || host.isWritten };
    this.mustGoOn(life);
    const isQuiet = (): boolean => host.underWay().length === 0;
    yield { isSo: () => this.isOver(life) || isQuiet(), limitMs: host.quietMs };
    this.mustGoOn(life);
    return { life, isLoud: !isQuiet() };
  }

  private isOver(life: number): boolean {
    return this.host.isOver || this.host.group.lives !== life;
  }

  private mustGoOn(life: number): void {
    if (this.isOver(life)) throw this.host.failed();
  }

  /** All ranks of the group have come to the same save, and no message between them is left over; else nobody saves. */
  private agreed(verdict: Verdict | undefined, messages: () => readonly string[]): void {
    if (verdict === undefined || verdict.code === VERDICT.GO || verdict.code === VERDICT.NOTHING) return;
    const { rank, step, quietMs } = this.host;
    if (verdict.code === VERDICT.UNLIKE)
      throw new MultirailError(
        'ERR_CHECKPOINT',
        `rank ${rank} is in a call in step ${step}, and rank ${verdict.rank} of its group in another one: all ranks must call next() and checkpoint() alike`,
        { rank, peer: verdict.rank },
      );
    const what = messages().join('; ') || `messages that rank ${verdict.rank} names`;
    throw new MultirailError(
      'ERR_CHECKPOINT',
      `rank ${rank} cannot save in step ${step}: after ${quietMs} ms (ft_quiet_ms) these are on their way or were not received: ${what}; receive them before the save`,
      { rank },
    );
  }
}
