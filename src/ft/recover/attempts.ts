// The calls of a program in which it may save, under asynchronous recovery. When somebody dies in the midst of one, those that are in it wait for
// the successor and begin it again, unless one of them is behind it already: then all pass it by.
import type { MultirailError } from '../../errors.ts';
import { type RecoveryTrace, recoveryChannel } from './channels.ts';
import type { Saves } from './epoch.ts';
import type { Restored } from './epoch-ends.ts';
import { isFailure, type Row, requireAlike } from './exchange.ts';
import type { ProgramLog } from './program-log.ts';
import type { Team } from './team.ts';

export class Attempts {
  private readonly saves: Saves;
  private readonly program: ProgramLog;
  private readonly restored: Restored;
  private readonly beganMs = performance.now();
  /** What calls end with when this run of the program is over. */
  private readonly overError: () => MultirailError;
  private hasCaughtUp: boolean;
  /** It lets go when this successor has caught up. */
  private readonly team: Team | undefined;

  constructor(saves: Saves, program: ProgramLog, restored: Restored, overError: () => MultirailError, team?: Team | undefined) {
    this.team = team;
    this.saves = saves;
    this.program = program;
    this.restored = restored;
    this.overError = overError;
    this.hasCaughtUp = !restored.isInPlace;
  }

  /** Makes the save, however often somebody dies meanwhile; `planned`: the level of one that is due; `pass`: others are behind it. */
  async save(planned: number | undefined, save: () => Promise<number>, pass: () => number): Promise<number> {
    const { saves, program } = this;
    program.enter(planned);
    const { state } = saves.periods;
    while (program.isAhead) {
      try {
        const k = await save();
        program.pass();
        return k;
      } catch (error) {
        if (!isFailure(error) || saves.over.isDone) throw error;
      }
      // What was planned in it is planned again, from the same at all ranks.
      saves.periods.state = state;
      await saves.whenIdle();
      if (saves.over.isDone) throw this.overError();
    }
    return pass();
  }

  /** As save(), in a blocking call. */
  saveSync(planned: number | undefined, save: () => number, pass: () => number): number {
    const { saves, program } = this;
    program.enter(planned);
    const { state } = saves.periods;
    while (program.isAhead) {
      try {
        const k = save();
        program.pass();
        return k;
      } catch (error) {
        if (!isFailure(error) || saves.over.isDone) throw error;
      }
      // What was planned in it is planned again, from the same at all ranks.
      saves.periods.state = state;
      saves.series.waitUntil(() => saves.core.isIdle || saves.over.isDone);
      if (saves.over.isDone) throw this.overError();
    }
    return pass();
  }

  /** All come to the end: whoever has come to it waits for the others, and for successors. */
  async end(exchange: () => Promise<Row[]>): Promise<void> {
    const { saves } = this;
    while (!saves.over.isDone) {
      await saves.whenIdle();
      if (saves.over.isDone) return;
      if (!saves.core.isIdle) continue;
      this.look();
      const ended = saves.pending;
      try {
        requireAlike(await exchange(), saves.rank);
        if (saves.core.end()) saves.obey();
      } catch (error) {
        if (!isFailure(error)) throw error;
      }
      // Either all have ended, or somebody has died, and the members meet again.
      await Promise.race([ended, saves.over.promise]);
    }
  }

  /** A successor does again what the others have seen. */
  get isReplaying(): boolean {
    this.look();
    return !this.hasCaughtUp;
  }

  /** A successor that has done again what the others had seen says so once. */
  look(): void {
    const { saves, restored, program } = this;
    if (this.hasCaughtUp || program.streams.isReplaying || program.outcomes.recorder?.isReplaying === true) return;
    this.hasCaughtUp = true;
    this.team?.end();
    if (!recoveryChannel.hasSubscribers) return;
    const { epoch, save, level, history } = restored;
    recoveryChannel.publish({
      rank: saves.rank,
      epoch,
      save,
      level,
      failed: history.failed,
      lostSteps: Math.max(0, history.step - restored.step),
      durationMs: performance.now() - this.beganMs,
      kind: 'caught up',
      suppressed: program.streams.counters.suppressed,
    } satisfies RecoveryTrace);
  }
}
