// The job of a program whose ranks go back by groups: the ranks of a group save together, and groups one after the other. One for each run of the
// program, that is one after each recovery in which its group goes back.
import { MultirailError } from '../../errors.ts';
import { type SaveTrace, saveChannel } from '../recover/channels.ts';
import type { EndNotice } from '../recover/end-notice.ts';
import type { Restored } from '../recover/epoch-ends.ts';
import { COME_TO, exchangeRows, isFailure, requireAlike } from '../recover/exchange.ts';
import { FtJob, NAMED_MAX } from '../recover/job.ts';
import type { Settings } from '../recover/options.ts';
import type { PlanState } from '../recover/periods.ts';
import { isLook, LOOK_LEVEL, type ProgramLog } from '../recover/program-log.ts';
import { type JobRecovery, type RecoveryTotal, totalOf } from '../recover/recovery.ts';
import { Registry } from '../recover/registry.ts';
import { groupSections } from './group-image.ts';
import { type BegunSave, type GroupSaveHost, GroupSaveSteps, type SaveSteps } from './group-save-steps.ts';
import type { GroupSaveEnd, GroupSlot } from './group-saves.ts';
import type { GroupedSaves } from './grouped-saves.ts';
import { countOf, firstStep } from './groups.ts';

/** A save that was begun. */
interface Begun extends BegunSave {
  readonly beganMs: number;
  readonly copiedMs: number;
  readonly usefulMs: number;
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
  private readonly steps: GroupSaveSteps;
  /** When the try began that is under way. */
  private triedMs = 0;

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
    this.steps = new GroupSaveSteps(this.saveHost());
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
        await this.take(this.steps.end());
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
  private async take<T>(steps: SaveSteps<T>): Promise<T> {
    for (;;) {
      const next = steps.next();
      if (next.done === true) return next.value;
      const { limitMs } = next.value;
      await this.saves.series.whenSo(() => next.value.isSo(), limitMs);
    }
  }

  private takeSync<T>(steps: SaveSteps<T>): T {
    for (;;) {
      const next = steps.next();
      if (next.done === true) return next.value;
      this.saves.series.waitSo(() => next.value.isSo(), next.value.limitMs);
    }
  }

  private *save(level: number, isBlocking: boolean): SaveSteps<number> {
    this.program.enter(level);
    this.planned = this.saves.periods.state;
    this.triedMs = performance.now();
    return yield* this.steps.save(level === LOOK_LEVEL, isBlocking);
  }

  private planned: PlanState | undefined;

  private saveHost(): GroupSaveHost {
    const self = this;
    const { saves, program } = this;
    const { group } = saves;
    const mates = (): ReadonlySet<number> => new Set(group.members.map((rank) => program.streams.numberOf(rank)));
    return {
      rank: saves.rank,
      group,
      quietMs: this.quietMs,
      get isOver() {
        return self.over.isDone;
      },
      get step() {
        return self.stepCount;
      },
      get attempts() {
        return program.attempts;
      },
      get isAhead() {
        return program.isAhead;
      },
      get measured() {
        return saves.periods.measured;
      },
      get isWritten() {
        return program.streams.isWritten;
      },
      get isNearlyFull() {
        return program.isNearlyFull;
      },
      underWay: () => saves.series.underWayTo(mates(), NAMED_MAX),
      unreceived: () => saves.series.unreceivedOf(mates(), NAMED_MAX),
      cut: () => saves.cut(),
      abandonCut: () => program.groupAbandoned(),
      capture: () => this.capture(),
      saved: (measured) => saves.periods.saved(0, this.stepCount, [measured]),
      looked: () => program.looked(),
      pass: () => program.pass(),
      again: () => {
        if (this.planned !== undefined) saves.periods.state = this.planned;
        this.triedMs = performance.now();
      },
      failed: () => this.failedError(),
      isFailure,
    };
  }

  /** The image of what is registered, and of what other groups may ask for. A rank that cannot make it says so to all. */
  private capture(): Begun | undefined {
    const { saves, program, registry } = this;
    const { group } = saves;
    const { k } = group.core;
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
      this.begun = { slot, beganMs: this.triedMs, copiedMs: performance.now(), usefulMs: saves.ledger.copied(), end: undefined };
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
