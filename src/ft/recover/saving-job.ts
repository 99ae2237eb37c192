// The job of a program whose ranks may die: its saves lie in memory with copies at other ranks, and in stores, too. One for each run of the
// program, that is one after each recovery.
import { MultirailError } from '../../errors.ts';
import type { Piece, Slot } from '../checkpoint/slots.ts';
import { Attempts } from './attempts.ts';
import { type SaveTrace, saveChannel } from './channels.ts';
import { type EndNotice, NO_NOTICE, Stopping } from './end-notice.ts';
import type { Saves } from './epoch.ts';
import type { Restored, SaveEnd } from './epoch-ends.ts';
import {
  COME_TO,
  exchangeRows,
  exchangeRowsSync,
  isFailure,
  mustWaitAgain,
  type Row,
  requireAlike,
  requireQuiet,
  requireRegistered,
} from './exchange.ts';
import { FtJob, NAMED_MAX } from './job.ts';
import { type Settings, storeOf } from './options.ts';
import type { Periods } from './periods.ts';
import { isLook, LOOK_LEVEL, type ProgramLog } from './program-log.ts';
import { type JobRecovery, type RecoveryTotal, totalOf } from './recovery.ts';
import { Registry } from './registry.ts';
import { type BegunSave, storeImage } from './storing.ts';
import type { Team } from './team.ts';

export class SavingJob extends FtJob {
  private readonly saves: Saves;
  /** The log of its messages, under asynchronous recovery. */
  private readonly program: ProgramLog | undefined;
  private readonly attempts: Attempts | undefined;
  private readonly periods: Periods;
  private readonly timeouts: { readonly quietMs: number };
  private readonly warn: (text: string) => void;
  private steppedMs = performance.now();
  private readonly notice: EndNotice;
  private readonly stopping: Stopping;
  /** All have saved, and leave. */
  private hasStopped = false;
  /** Nobody else goes back. */
  private readonly isAlone: boolean;
  /** Of the save that is being made. */
  private isLast = false;
  /** What was restored is looked at once, when all that the program registers is registered. */
  private isChecked: boolean;

  /** @internal */
  constructor(
    saves: Saves,
    settings: Settings,
    restored: Restored,
    recovery: JobRecovery | undefined,
    host: { readonly quietMs: number; readonly notice: EndNotice; readonly team?: Team | undefined; warn(text: string): void },
  ) {
    const { program } = saves;
    super(
      {
        comm: program?.comm ?? saves.comm,
        registry: new Registry(saves.rank, restored.sections, program?.outcomes.recorder),
        recovery,
        step: restored.step,
        settings,
        team: host.team,
      },
      saves.comm,
    );
    this.saves = saves;
    this.program = program;
    this.periods = saves.periods;
    this.periods.begin(restored.step, restored.known);
    if (restored.isInPlace) program?.catchUp();
    else program?.begin(restored.step);
    this.timeouts = { quietMs: host.quietMs };
    this.warn = (text) => host.warn(text);
    this.isChecked = restored.sections === undefined;
    this.isAlone = restored.isInPlace;
    if (this.program !== undefined) this.attempts = new Attempts(saves, this.program, restored, () => this.failedError(), host.team);
    this.notice = host.notice;
    this.stopping = new Stopping(saves.own, this.program === undefined ? host.notice : NO_NOTICE, () => saves.over.isDone);
    this.hasStopped = restored.isLast;
  }

  /** @internal The job was told to end, and all ranks have come to the point where they leave. */
  get isStopped(): boolean {
    return this.hasStopped;
  }

  get total(): RecoveryTotal {
    return totalOf(this.saves.history);
  }

  get everySteps(): readonly number[] {
    return [...this.periods.current];
  }

  get replaying(): boolean {
    return this.attempts?.isReplaying === true;
  }

  // ---------------------------------------------------------------- saves

  next(): Promise<void> {
    return this.inTurn(this.endOfStep());
  }

  private inTurn<R>(promise: Promise<R>): Promise<R> {
    return this.program?.streams.turns?.inTurn(promise) ?? promise;
  }

  private async endOfStep(): Promise<void> {
    this.endStep();
    await this.enter();
    if (!this.isChecked) await this.check();
    await this.stopIfHere();
    const level = this.dueLevel();
    if (level !== undefined) await this.saveOrPass(level, !this.settings.inBackground, level);
    this.steppedMs = performance.now();
  }

  nextSync(): void {
    this.endStep();
    // No signal is heard in a program that never comes back to the event loop: it does what it did before.
    this.notice.close();
    if (!this.isChecked) this.checkSync();
    const level = this.dueLevel();
    if (level !== undefined) this.saveOrPassSync(level, level);
    this.steppedMs = performance.now();
  }

  checkpoint(options: { level?: 'memory' | 'disk' | 'store' } = {}): Promise<number> {
    return this.inTurn(this.checkpointNow(options));
  }

  private async checkpointNow(options: { level?: 'memory' | 'disk' | 'store' }): Promise<number> {
    const level = this.levelOf(options.level ?? 'memory');
    await this.enter();
    if (!this.isChecked) await this.check();
    await this.stopIfHere();
    return await this.saveOrPass(level, !this.settings.inBackground);
  }

  checkpointSync(options: { level?: 'memory' | 'disk' | 'store' } = {}): number {
    const level = this.levelOf(options.level ?? 'memory');
    this.notice.close();
    if (!this.isChecked) this.checkSync();
    return this.saveOrPassSync(level);
  }

  /** @internal All have come to the end of the program. */
  async end(): Promise<void> {
    const { saves } = this;
    if (this.attempts !== undefined) return await this.attempts.end(() => exchangeRows(saves.own, this.row(COME_TO.END, 0, false)));
    if (!(await this.stopping.end())) throw this.failedError();
    await saves.images?.settled();
    await saves.whenIdle();
    const rows = await exchangeRows(saves.own, this.row(COME_TO.END, 0, false));
    requireAlike(rows, saves.rank);
    await this.stopping.drain([...rows.keys()].filter((rank) => rows[rank].isTold));
    saves.core.end();
    saves.obey();
  }

  /** @internal This run of the program is over. */
  override close(): void {
    this.stopping.close();
    super.close();
  }

  private endStep(): void {
    this.stepCount++;
    if (this.program !== undefined) this.program.step = this.stepCount;
    const ms = performance.now() - this.steppedMs;
    this.periods.addStep(ms / 1000);
    this.saves.ledger.addStep(ms);
  }

  private row(kind: number, level: number, isLoud: boolean): Row {
    const isWrong = kind !== COME_TO.END && !this.isChecked && this.registry.missing !== undefined;
    const isDue = this.program?.isNearlyFull === true;
    const isTold = this.program === undefined ? this.stopping.hasTold : this.notice.isTold;
    return { kind, step: this.stepCount, level, isLoud, isWrong, isDue, isTold, measured: this.periods.measured };
  }

  /** A call of the program begins, unless it must not any more. */
  private async enter(): Promise<void> {
    if (this.hasStopped) throw this.stoppedError();
    if (!(await this.stopping.enter())) throw this.failedError();
  }

  /** All ranks are at the point where they stop: the save that the job goes on from when it is started again, and the way out. */
  private async stopIfHere(): Promise<void> {
    const { stopping, settings, saves } = this;
    if (stopping.at !== stopping.place) return;
    const level = settings.names.length - 1;
    const { failedAtStore } = saves.counters;
    const k = level > 0 ? await this.save(level, true) : 0;
    this.stop(k, failedAtStore);
    throw this.stoppedError();
  }

  /** All have saved, where there is a level from which the job could go on. */
  private stop(k: number, failedBefore: number): void {
    const { saves, stepCount } = this;
    const { names } = this.settings;
    this.hasStopped = true;
    if (saves.rank !== 0) return;
    if (names.length === 1)
      this.warn(
        `the job was told to end in step ${stepCount}, and saves are in memory alone: it cannot go on from them; add a level on disk or a store`,
      );
    else if (saves.counters.failedAtStore === failedBefore)
      this.warn(`the job was told to end: it goes on from save ${k} in step ${stepCount} at level ${names.at(-1)}`);
  }

  private stoppedError(): MultirailError {
    const { rank } = this.saves;
    return new MultirailError('ERR_REVOKED', `rank ${rank}: the job was told to end: let the error out of the program`, { rank });
  }

  /** Nobody goes on with half a state. */
  private async check(): Promise<void> {
    if (this.isAlone) return this.checkAlone();
    this.checked(await exchangeRows(this.saves.own, this.row(COME_TO.CHECK, 0, false)));
  }

  private checkSync(): void {
    if (this.isAlone) return this.checkAlone();
    this.checked(exchangeRowsSync(this.saves.own, this.row(COME_TO.CHECK, 0, false)));
  }

  /** The others did not go back, and have nothing to look at. */
  private checkAlone(): void {
    const { missing } = this.registry;
    if (missing !== undefined) throw missing;
    this.program?.streams.beginSteps();
    this.isChecked = true;
  }

  private checked(rows: readonly Row[]): void {
    requireRegistered(rows, this.saves.rank, this.registry.missing);
    this.isChecked = true;
  }

  /** The level of the save that is due at the end of this step. */
  private dueLevel(): number | undefined {
    this.attempts?.look();
    const { program } = this;
    const level = program?.isBehind === true ? program.levelAt(this.stepCount) : this.periods.dueAt(this.stepCount);
    if (level !== undefined || this.attempts === undefined) return level;
    return isLook(this.stepCount, this.settings.everySteps) ? LOOK_LEVEL : undefined;
  }

  /** `planned`: its level, where it is due. */
  private async saveOrPass(level: number, isBlocking: boolean, planned?: number): Promise<number> {
    const save = (): Promise<number> => this.save(level, isBlocking);
    const k = this.attempts === undefined ? await save() : await this.attempts.save(planned, save, () => this.passBy());
    if (this.hasStopped) throw this.stoppedError();
    return k;
  }

  private saveOrPassSync(level: number, planned?: number): number {
    const save = (): number => this.saveSync(level);
    return this.attempts === undefined ? save() : this.attempts.saveSync(planned, save, () => this.passBy());
  }

  /** Others have made this save, or it was abandoned. */
  private passBy(): number {
    this.program?.catchUp();
    return Math.max(0, this.saves.core.nextName.k - 1);
  }

  /** Under asynchronous recovery the members may have met again meanwhile: then the save is begun again, too. */
  private mustStillSave(): void {
    if (this.program !== undefined && this.saves.core.state !== 'QUIETING') throw this.failedError();
  }

  /** Whether all have looked at their logs, and none of them is nearly full. */
  private isOnlyLook(level: number, rows: readonly Row[]): boolean {
    if (level !== LOOK_LEVEL || rows.some(({ isDue }) => isDue)) return false;
    this.program?.looked();
    this.saves.core.handleNotQuiet();
    this.saves.obey();
    return true;
  }

  private async comeToSave(asked: number): Promise<Row[]> {
    const isQuiet = await this.saves.series.whenQuiet(this.timeouts.quietMs);
    this.mustStillSave();
    return await exchangeRows(this.saves.own, this.row(COME_TO.SAVE, asked, !isQuiet));
  }

  private comeToSaveSync(asked: number): Row[] {
    const isQuiet = this.saves.series.waitQuiet(this.timeouts.quietMs);
    this.mustStillSave();
    return exchangeRowsSync(this.saves.own, this.row(COME_TO.SAVE, asked, !isQuiet));
  }

  private async save(asked: number, mayBlock: boolean): Promise<number> {
    const { saves, settings, program } = this;
    const { core } = saves;
    const { failedAtStore } = saves.counters;
    await saves.whenIdle();
    const beganMs = performance.now();
    if (!core.begin()) throw this.failedError();
    // Others than before, if somebody has died meanwhile.
    const { series } = saves;
    let rows = await this.comeToSave(asked);
    if (mustWaitAgain(rows, saves.rank)) rows = await this.comeToSave(asked);
    this.agreed(rows, () => series.underWay(NAMED_MAX));
    const isLast = program !== undefined && rows.some(({ isTold }) => isTold);
    if (!isLast && this.isOnlyLook(asked, rows)) return Math.max(0, core.nextName.k - 1);
    this.mustStillSave();
    const level = isLast ? settings.names.length - 1 : Math.max(0, asked);
    const isBlocking = mayBlock || isLast;
    // All that was sent before is here now, and nobody sends more before everybody has looked.
    const left = series.unreceived(NAMED_MAX);
    program?.cut();
    this.isLast = isLast;
    this.agreed(await exchangeRows(saves.own, this.row(COME_TO.SAVE, level, left.length > 0)), () => left);
    const store = storeOf(settings, level);
    const slot = core.handleQuiet(store !== undefined);
    if (slot === undefined) throw this.failedError();
    const { name } = slot;
    const ended = saves.pending;
    saves.takeOnce(name.k);
    const piece = this.capture(slot);
    const usefulMs = saves.ledger.copied();
    this.periods.saved(
      level,
      this.stepCount,
      rows.map(({ measured }) => measured),
    );
    // From here on the program may go on, whatever becomes of the save.
    if (!isBlocking) program?.pass();
    const stored = store === undefined ? undefined : storeImage(saves, store, { name, piece, step: this.stepCount }, this.warn);
    core.handleCopied(piece);
    saves.obey();
    const began: BegunSave = { name, step: this.stepCount, level, bytes: piece.bytes, beganMs, copiedMs: performance.now(), usefulMs };
    const finished = this.finish(ended, stored, began).then(
      () => this.publish(began),
      (error: unknown) => {
        this.publish(began, error);
        throw error;
      },
    );
    if (!isBlocking) {
      finished.catch((error: unknown) => this.saves.over.isDone || isFailure(error) || this.warn((error as Error).message));
      return name.k;
    }
    await finished;
    if (isLast) this.stop(name.k, failedAtStore);
    return name.k;
  }

  private async finish(
    ended: Promise<SaveEnd>,
    stored: Promise<(() => Promise<void>) | undefined> | undefined,
    { level, beganMs, copiedMs }: BegunSave,
  ): Promise<void> {
    const { committed, error } = await ended;
    if (error !== undefined) throw this.saves.over.isDone ? this.failedError() : error;
    const durationMs = performance.now() - beganMs;
    // In the background the program waits only until its state is copied.
    this.periods.addSave(level, (this.settings.inBackground ? copiedMs - beganMs : durationMs) / 1000, durationMs / 1000);
    if (committed === undefined || stored === undefined) return;
    const commit = await stored;
    await commit?.();
  }

  private publish({ name, step, level, bytes, beganMs, usefulMs }: Omit<BegunSave, 'copiedMs'>, error?: unknown): void {
    const durationMs = performance.now() - beganMs;
    if (error === undefined) this.saves.ledger.committed(bytes, durationMs, usefulMs);
    else this.saves.ledger.abandoned();
    if (!saveChannel.hasSubscribers) return;
    const trace: SaveTrace = {
      rank: this.saves.rank,
      save: name.k,
      epoch: name.epoch,
      step,
      level: this.settings.names[level],
      bytes,
      durationMs,
    };
    saveChannel.publish(error === undefined ? trace : { ...trace, error });
  }

  private saveSync(asked: number): number {
    const { saves, program } = this;
    const level = Math.max(0, asked);
    const { core } = saves;
    this.mustBeMemory(level);
    const beganMs = performance.now();
    saves.series.waitUntil(() => core.isIdle || saves.over.isDone);
    if (!core.begin()) throw this.failedError();
    // Others than before, if somebody has died meanwhile.
    const { series, own } = saves;
    let rows = this.comeToSaveSync(asked);
    if (mustWaitAgain(rows, saves.rank)) rows = this.comeToSaveSync(asked);
    this.agreed(rows, () => series.underWay(NAMED_MAX));
    if (this.isOnlyLook(asked, rows)) return Math.max(0, core.nextName.k - 1);
    this.mustStillSave();
    const left = series.unreceived(NAMED_MAX);
    program?.cut();
    this.agreed(exchangeRowsSync(own, this.row(COME_TO.SAVE, level, left.length > 0)), () => left);
    const slot = core.handleQuiet(false);
    if (slot === undefined) throw this.failedError();
    this.periods.saved(
      level,
      this.stepCount,
      rows.map(({ measured }) => measured),
    );
    let end: SaveEnd | undefined;
    let bytes = 0;
    saves.onSaveEnd = (result) => {
      end = result;
    };
    saves.isSync = true;
    const { name } = slot;
    try {
      let failure: unknown;
      try {
        const piece = this.capture(slot);
        bytes = piece.bytes;
        core.handleCopied(piece);
        saves.obey();
      } catch (error) {
        failure = error;
      }
      // Whatever became of the own image: others wait until their copies are taken.
      saves.copies.takeSync(core.placement.owners(saves.rank, name.k));
      if (failure !== undefined) throw failure;
      series.waitUntil(() => end !== undefined || saves.over.isDone);
    } finally {
      saves.isSync = false;
      saves.onSaveEnd = undefined;
    }
    if (saves.over.isDone) throw this.failedError();
    const { error } = end as unknown as SaveEnd;
    this.publish({ name, step: this.stepCount, level, bytes, beganMs, usefulMs: saves.ledger.copied() }, error);
    if (error !== undefined) throw error;
    const seconds = (performance.now() - beganMs) / 1000;
    this.periods.addSave(level, seconds, seconds);
    return name.k;
  }

  /** All ranks have come to the same save, and no message of theirs is left over; else nobody saves. */
  private agreed(rows: readonly Row[], messages: () => readonly string[]): void {
    const { saves } = this;
    try {
      requireQuiet(rows, saves.rank, this.timeouts.quietMs, messages);
    } catch (error) {
      this.program?.abandoned();
      saves.core.handleNotQuiet();
      saves.obey();
      throw error;
    }
  }

  /** The image of what is registered, in memory of its own. A rank that cannot make it says so to all. */
  private capture(slot: Slot): Piece {
    const { saves, registry } = this;
    const { name } = slot;
    try {
      const header = {
        save: name.k,
        epoch: name.epoch,
        rank: saves.rank,
        size: this.comm.size,
        step: this.stepCount,
        wallTimeMs: Date.now(),
        jobId: saves.jobId,
      };
      const others = this.program?.sections(this.isLast) ?? [];
      const { memory, crc } = registry.capture(header, (bytes) => saves.memory.take(bytes), others);
      return { bytes: memory.length, crc, memory };
    } catch (error) {
      saves.refuse(error as MultirailError);
      throw error;
    }
  }

  /** What calls end with when this run of the program is over. */
  private failedError(): MultirailError {
    const { rank } = this.saves;
    return new MultirailError('ERR_REVOKED', `rank ${rank}: a rank has failed: this run of the program is over, let the error out of it`, {
      rank,
    });
  }
}
