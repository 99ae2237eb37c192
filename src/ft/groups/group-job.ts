// The job of a program whose ranks go back by groups: the ranks of a group save together, and groups one after the other. One for each run of the
// program, that is one after each recovery in which its group goes back.
import { MultirailError } from '../../errors.ts';
import { type SaveTrace, saveChannel } from '../recover/channels.ts';
import type { EndNotice } from '../recover/end-notice.ts';
import type { Restored } from '../recover/epoch-ends.ts';
import { COME_TO, exchangeRows, isFailure, requireAlike } from '../recover/exchange.ts';
import { FtJob, NAMED_MAX } from '../recover/job.ts';
import type { Settings } from '../recover/options.ts';
import { isLook, LOOK_LEVEL, type ProgramLog } from '../recover/program-log.ts';
import { type JobRecovery, type RecoveryTotal, totalOf } from '../recover/recovery.ts';
import { Registry } from '../recover/registry.ts';
import { CALL, VERDICT, type Verdict } from './group-core.ts';
import { groupSections } from './group-image.ts';
import type { GroupSaveEnd, GroupSlot } from './group-saves.ts';
import type { GroupedSaves } from './grouped-saves.ts';
import { countOf, firstStep } from './groups.ts';

/** What is waited for: until it is so, or for that time. */
interface Until {
  isSo(): boolean;
  readonly limitMs?: number;
}
type Steps<T> = Generator<Until, T, void>;

/** A save that was begun. */
interface Begun {
  readonly slot: GroupSlot;
  readonly beganMs: number;
  readonly copiedMs: number;
  readonly usefulMs: number;
  end: GroupSaveEnd | undefined;
}

export class GroupJob extends FtJob {
  private readonly saves: GroupedSaves;
  private readonly program: ProgramLog;
  private readonly over: GroupedSaves['over'];
  private readonly quietMs: number;
  private steppedMs = performance.now();
  private isChecked: boolean;
  private begun: Begun | undefined;
  private hasCaughtUp: boolean;

  /** @internal */
  constructor(
    saves: GroupedSaves,
    settings: Settings,
    restored: Restored,
    recovery: JobRecovery | undefined,
    host: { readonly quietMs: number; readonly notice: EndNotice },
  ) {
    const program = saves.program as ProgramLog;
    super(
      {
        comm: program.comm,
        registry: new Registry(saves.rank, restored.sections, program.outcomes.recorder),
        recovery,
        step: restored.step,
        settings,
      },
      saves.comm,
    );
    this.saves = saves;
    this.program = program;
    this.over = saves.over;
    this.quietMs = host.quietMs;
    saves.periods.begin(restored.step, restored.known);
    if (saves.plan !== undefined) saves.periods.state = saves.plan;
    if (!restored.isInPlace) program.begin(restored.step);
    this.hasCaughtUp = !restored.isInPlace;
    this.isChecked = restored.sections === undefined;
    saves.onGroupEnd = (end, slot) => this.handleEnd(end, slot);
    // Saves are in memory alone: a job that is told to end cannot go on from them.
    host.notice.close();
  }

  get total(): RecoveryTotal {
    return totalOf(this.saves.history);
  }

  get everySteps(): readonly number[] {
    return [...this.saves.periods.current];
  }

  get replaying(): boolean {
    this.hasCaughtUp ||= !this.program.streams.isReplaying && this.program.outcomes.recorder?.isReplaying !== true;
    return !this.hasCaughtUp;
  }

  /** @internal Nobody stops such a job. */
  get isStopped(): boolean {
    return false;
  }

  // ---------------------------------------------------------------- calls of the program

  async next(): Promise<void> {
    this.endStep();
    const level = this.dueLevel();
    if (level !== undefined) await this.take(this.save(level, !this.settings.inBackground));
    this.steppedMs = performance.now();
  }

  nextSync(): void {
    this.endStep();
    const level = this.dueLevel();
    if (level !== undefined) this.takeSync(this.save(level, true));
    this.steppedMs = performance.now();
  }

  async checkpoint(options: { level?: 'memory' | 'disk' | 'store' } = {}): Promise<number> {
    this.begin(options);
    return await this.take(this.save(0, !this.settings.inBackground));
  }

  checkpointSync(options: { level?: 'memory' | 'disk' | 'store' } = {}): number {
    this.begin(options);
    return this.takeSync(this.save(0, true));
  }

  private begin(options: { level?: 'memory' | 'disk' | 'store' }): void {
    this.levelOf(options.level ?? 'memory');
    this.mustRun();
    this.check();
  }

  /** @internal All have come to the end of the program. */
  async end(): Promise<void> {
    const { saves, over } = this;
    while (!over.isDone) {
      try {
        await this.take(this.endTogether());
        if (over.isDone) return;
        await saves.whenIdle();
        const ended = saves.pending;
        requireAlike(await exchangeRows(saves.own, this.row()), saves.rank);
        if (saves.core.end()) saves.obey();
        // Either all have ended, or somebody has died, and the members meet again.
        await Promise.race([ended, over.promise]);
      } catch (error) {
        if (!isFailure(error)) throw error;
      }
    }
  }

  private row(): Parameters<typeof exchangeRows>[1] {
    return {
      kind: COME_TO.END,
      step: this.stepCount,
      level: 0,
      isLoud: false,
      isWrong: false,
      isDue: false,
      isTold: false,
      measured: this.saves.periods.measured,
    };
  }

  private endStep(): void {
    this.mustRun();
    this.stepCount++;
    this.program.step = this.stepCount;
    const ms = performance.now() - this.steppedMs;
    this.saves.periods.addStep(ms / 1000);
    this.saves.ledger.addStep(ms);
    this.check();
  }

  private mustRun(): void {
    if (this.over.isDone) throw this.failedError();
  }

  /** What was restored is looked at once, when all that the program registers is registered. */
  private check(): void {
    if (this.isChecked) return;
    const { missing } = this.registry;
    if (missing !== undefined) throw missing;
    this.program.streams.beginSteps();
    this.isChecked = true;
  }

  private dueLevel(): number | undefined {
    const { saves, settings, stepCount } = this;
    const { group, groups } = saves.group;
    const [every] = settings.everySteps ?? [];
    const isDue =
      every === undefined
        ? saves.periods.dueAt(stepCount) !== undefined
        : stepCount % every === firstStep(group, countOf(groups), every) % every;
    if (isDue) return 0;
    return isLook(stepCount) ? LOOK_LEVEL : undefined;
  }

  // ---------------------------------------------------------------- saves

  /** Takes the steps, each when what it waits for is so. */
  private async take<T>(steps: Steps<T>): Promise<T> {
    for (;;) {
      const next = steps.next();
      if (next.done === true) return next.value;
      const { limitMs } = next.value;
      await this.saves.series.whenSo(() => next.value.isSo(), limitMs);
    }
  }

  private takeSync<T>(steps: Steps<T>): T {
    for (;;) {
      const next = steps.next();
      if (next.done === true) return next.value;
      this.saves.series.waitSo(() => next.value.isSo(), next.value.limitMs);
    }
  }

  /** Makes the save, however often somebody dies in another group meanwhile, unless another rank of this group is behind it already. */
  private *save(level: number, isBlocking: boolean): Steps<number> {
    const { program, saves } = this;
    program.enter(level);
    const { state } = saves.periods;
    while (program.isAhead) {
      try {
        const k = yield* this.saveOnce(level, isBlocking);
        program.pass();
        return k;
      } catch (error) {
        if (!isFailure(error) || this.over.isDone) throw error;
      }
      saves.periods.state = state;
    }
    return saves.group.nextK - 1;
  }

  private *saveOnce(level: number, isBlocking: boolean): Steps<number> {
    const { saves, program } = this;
    const { group, series } = saves;
    const beganMs = performance.now();
    const mates = new Set(group.members.map((rank) => program.streams.numberOf(rank)));
    const isLookOnly = level === LOOK_LEVEL;
    if (isLookOnly && program.isNearlyFull) for (const one of new Set(group.groups)) if (one !== group.group) group.core.need(one);
    const call = isLookOnly ? CALL.LOOK : CALL.SAVE;
    let life = yield* this.comeTo(call, mates);
    // The first may have waited for one that came later, and received then what they had sent: once all are there, the time begins again.
    if (group.core.verdict?.code === VERDICT.LOUD) life = yield* this.comeTo(call, mates);
    const underWay = (): readonly string[] => series.underWayTo(mates, NAMED_MAX);
    if (group.core.verdict?.code === VERDICT.NOTHING) {
      program.looked();
      return group.nextK - 1;
    }
    this.agreed(group.core.verdict, underWay);
    // All that was sent in this group before is here now, and nobody of it sends more before everybody has looked.
    const left = series.unreceivedOf(mates, NAMED_MAX);
    if (left.length === 0) saves.cut();
    group.core.cut(left.length > 0);
    group.obey();
    yield { isSo: () => this.isOver(life) || group.core.state === 'TAKING' || group.core.verdict !== undefined };
    if (this.isOver(life) || group.core.verdict !== undefined) program.groupAbandoned();
    this.mustGoOn(life);
    this.agreed(group.core.verdict, () => left);
    const begun = this.capture(beganMs);
    saves.periods.saved(0, this.stepCount, [group.core.measured]);
    if (begun !== undefined && !isBlocking) program.pass();
    group.copied(begun?.slot);
    const ended = (): boolean => group.core.state === 'IDLE' || begun?.end !== undefined;
    if (!isBlocking && begun !== undefined) return begun.slot.k;
    yield { isSo: () => this.isOver(life) || ended() };
    if (begun?.end === 'committed') return begun.slot.k;
    this.mustGoOn(life);
    throw new MultirailError(
      'ERR_CHECKPOINT',
      `rank ${saves.rank}: a save of its group was abandoned: a rank could not make or take its part, and says why`,
      { rank: saves.rank },
    );
  }

  /** This rank has come to the call, and then all of its group have. */
  private *comeTo(call: number, mates: ReadonlySet<number>): Steps<number> {
    const { saves, program } = this;
    const { group } = saves;
    const { life, isLoud } = yield* this.quiet(mates);
    group.core.arrive(call, { call: program.attempts, step: this.stepCount, isLoud, measured: saves.periods.measured });
    group.obey();
    yield { isSo: () => this.isOver(life) || group.core.state === 'CUTTING' || group.core.verdict !== undefined };
    this.mustGoOn(life);
    return life;
  }

  /** All of the group have come to the end of the program, and none to a save. */
  private *endTogether(): Steps<void> {
    const { saves } = this;
    const { group } = saves;
    const { life } = yield* this.idle();
    if (this.over.isDone) return;
    const arrival = { call: this.program.attempts, step: this.stepCount, isLoud: false, measured: saves.periods.measured };
    group.core.arrive(CALL.END, arrival);
    group.obey();
    yield { isSo: () => this.isOver(life) || group.core.verdict !== undefined };
    this.mustGoOn(life);
    this.agreed(group.core.verdict, () => []);
  }

  /** No save of this group is under way, and no recovery. */
  private *idle(): Steps<{ readonly life: number }> {
    const { saves, over } = this;
    const { group } = saves;
    yield { isSo: () => over.isDone || (group.isOpen && group.core.state === 'IDLE') };
    return { life: group.lives };
  }

  /** Nothing is on its way between the ranks of this group, as far as this one knows, and what it receives of others is here as a whole. */
  private *quiet(mates: ReadonlySet<number>): Steps<{ readonly life: number; readonly isLoud: boolean }> {
    const { program, saves } = this;
    const { series } = saves;
    const { life } = yield* this.idle();
    this.mustGoOn(life);
    yield { isSo: () => this.isOver(life) || program.streams.isWritten };
    this.mustGoOn(life);
    const isQuiet = (): boolean => series.underWayTo(mates, 1).length === 0;
    yield { isSo: () => this.isOver(life) || isQuiet(), limitMs: this.quietMs };
    this.mustGoOn(life);
    return { life, isLoud: !isQuiet() };
  }

  private isOver(life: number): boolean {
    return this.over.isDone || this.saves.group.lives !== life;
  }

  private mustGoOn(life: number): void {
    if (this.isOver(life)) throw this.failedError();
  }

  /** All ranks of the group have come to the same save, and no message between them is left over; else nobody saves. */
  private agreed(verdict: Verdict | undefined, messages: () => readonly string[]): void {
    if (verdict === undefined || verdict.code === VERDICT.GO || verdict.code === VERDICT.NOTHING) return;
    const { rank } = this.saves;
    if (verdict.code === VERDICT.UNLIKE)
      throw new MultirailError(
        'ERR_CHECKPOINT',
        `rank ${rank} is in a call in step ${this.stepCount}, and rank ${verdict.rank} of its group in another one: all ranks must call next() and checkpoint() alike`,
        { rank, peer: verdict.rank },
      );
    const what = messages().join('; ') || `messages that rank ${verdict.rank} names`;
    throw new MultirailError(
      'ERR_CHECKPOINT',
      `rank ${rank} cannot save in step ${this.stepCount}: after ${this.quietMs} ms (ft_quiet_ms) these are on their way or were not received: ${what}; receive them before the save`,
      { rank },
    );
  }

  /** The image of what is registered, and of what other groups may ask for. A rank that cannot make it says so to all. */
  private capture(beganMs: number): Begun | undefined {
    const { saves, program, registry } = this;
    const { group } = saves;
    const k = group.nextK;
    const step = this.stepCount;
    const numbers = program.streamsAtCut;
    if (numbers === undefined) return undefined;
    try {
      const header = {
        save: k,
        epoch: Math.max(0, saves.core.epoch),
        rank: saves.rank,
        size: this.comm.size,
        step,
        wallTimeMs: Date.now(),
        jobId: saves.jobId,
      };
      const others = [...program.sections(false), ...groupSections(saves.periods.state, saves.lacks, program.streams.logged())];
      const { memory, crc } = registry.capture(header, (bytes) => saves.memory.take(bytes), others);
      const slot: GroupSlot = { k, step, piece: { bytes: memory.length, crc, memory }, numbers };
      this.begun = { slot, beganMs, copiedMs: performance.now(), usefulMs: saves.ledger.copied(), end: undefined };
      return this.begun;
    } catch (error) {
      saves.warn((error as Error).message);
      program.groupAbandoned();
      return undefined;
    }
  }

  private handleEnd(end: GroupSaveEnd, slot: GroupSlot): void {
    const { begun, saves } = this;
    if (begun === undefined || begun.slot !== slot) return;
    begun.end = end;
    const durationMs = performance.now() - begun.beganMs;
    if (end === 'committed') {
      saves.ledger.committed(slot.piece.bytes, durationMs, begun.usefulMs);
      const costMs = this.settings.inBackground ? begun.copiedMs - begun.beganMs : durationMs;
      saves.periods.addSave(0, costMs / 1000, durationMs / 1000);
    } else saves.ledger.abandoned();
    if (!saveChannel.hasSubscribers) return;
    const trace: SaveTrace = {
      rank: saves.rank,
      save: slot.k,
      epoch: saves.core.epoch,
      step: slot.step,
      level: 'memory',
      bytes: slot.piece.bytes,
      durationMs,
    };
    saveChannel.publish(end === 'committed' ? trace : { ...trace, error: this.failedError() });
  }

  /** What calls end with when this run of the program is over. */
  private failedError(): MultirailError {
    const { rank } = this.saves;
    return new MultirailError('ERR_REVOKED', `rank ${rank}: a rank has failed: this run of the program is over, let the error out of it`, {
      rank,
    });
  }
}
