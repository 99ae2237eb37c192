// The loop around a program that survives failures: the members meet, the program runs, somebody fails, all go back.
import { MultirailError } from '../../errors.ts';
import type { Communicator } from '../../mpi/communicator.ts';
import type { HolderClient } from '../../mpi/ft/held-objects.ts';
import type { Runtime } from '../../mpi/runtime.ts';
import { TOLD_TO_END_CODE } from '../../util/exit-codes.ts';
import { GroupJob } from '../groups/group-job.ts';
import { GroupedSaves } from '../groups/grouped-saves.ts';
import { type RecoveryTrace, recoveryChannel } from './channels.ts';
import { EndNotice } from './end-notice.ts';
import { Saves } from './epoch.ts';
import type { Restored } from './epoch-ends.ts';
import { isFailure } from './exchange.ts';
import { helpOnce } from './helper.ts';
import type { FtJob } from './job.ts';
import { type History, lostRanks, NO_HISTORY, settledHistory } from './meeting.ts';
import { type FtOptions, type Settings, settingsOf, withStandbys } from './options.ts';
import { runPaired } from './paired-run.ts';
import { type JobRecovery, recoveryOf, totalOf } from './recovery.ts';
import { SavingJob } from './saving-job.ts';
import { holdersOf, standbyStore } from './standby-store.ts';
import { Team } from './team.ts';
import { warnAsRank } from './warning.ts';

/** In an aborted job ranks die one after another: the word of the abort is at most this late behind their deaths. */
const ABORT_WORD_WAIT_MS = 1000;

/**
 * Runs a program so that it survives failures of its ranks: coordinated recovery from saves in memory, on disk or in a store. Collective over
 * the world; the parameter `ft` is on. Resolves with what the program gave on this rank, when it has ended well on all ranks.
 *
 * When a rank fails, what the program awaits on `job.comm` ends with an error, and so does every communicator that it has made. It lets the error
 * out; then a standby takes the failed rank's place, all go back to the newest save that can be read whole, and the program is called again.
 * When a whole job is started again, with a level on disk or in a store, it goes on from its newest committed save there. A signal
 * (ft_end_signal, SIGTERM) that one rank or all of them get makes all save at the next point that they all come to, at the highest level; then
 * the processes leave the job and exit with code 75: run() does not return. A program of blocking calls hears no signal.
 *
 * @param mpi What init() gave.
 * @param options Copies, levels, periods: the same at all ranks.
 * @param body The program. It may be a plain function that uses blocking calls only.
 * @throws ERR_ARG: an option does not fit, or ranks were given different ones.
 * @throws ERR_SUPPORT: the parameter `ft` is off.
 * @throws ERR_SPARES: a rank failed, there are not enough standbys, and the option whenNoSpares is not 'shrink'; at all ranks.
 * @throws ERR_CHECKPOINT: what was saved does not fit the program or the number of ranks, a rank could not restore its state, or the program went
 *   on after its communicator was revoked (ft_body_grace_ms).
 * @throws ERR_REPLAY: under asynchronous recovery, a successor has sent something else than its predecessor; the whole job is aborted.
 * @throws ERR_STORE, ERR_CORRUPT: a store cannot be read, or what it has is damaged.
 */
export async function run<T>(mpi: Runtime, options: FtOptions, body: (job: FtJob) => T | Promise<T>): Promise<T> {
  const settings = settingsOf(options);
  if (typeof body !== 'function') throw new MultirailError('ERR_ARG', `body of run(): ${typeof body}, expected a function`);
  if (mpi.replica !== undefined) return await runPaired(mpi, settings, body);
  // Whoever has helped may be needed again, to help or to take a place; when the job ends without it, so does the process.
  while (mpi.role === 'helper') await helpOnce(mpi, body);
  return await new Run(mpi, settings).play(body);
}

type Outcome<T> = { readonly value: T } | { readonly error: unknown };

/** A successor has not repeated what its predecessor did. */
const isOwnDifference = (error: unknown): boolean => error instanceof MultirailError && error.code === 'ERR_REPLAY';

const lacksSpares = (error: unknown): boolean => error instanceof MultirailError && error.code === 'ERR_SPARES';

function within<R>(promise: Promise<R>, timeMs: number): Promise<R | undefined> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(undefined), timeMs);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

class Run {
  private readonly mpi: Runtime;
  private readonly settings: Settings;
  /** Asks those that hold saves while they stand by. */
  private readonly standbys: HolderClient | undefined;
  private readonly saves: Saves;
  private readonly notice: EndNotice;
  private history: History = NO_HISTORY;

  constructor(mpi: Runtime, settings: Settings) {
    this.mpi = mpi;
    this.standbys = mpi.params.bool('ft_standby_holds') && !settings.isAsynchronous ? holdersOf(mpi.world) : undefined;
    this.settings = this.standbys === undefined ? settings : withStandbys(settings, standbyStore(this.standbys, mpi.world.rank));
    const host = { mpi, settings: this.settings, warn: (text: string) => this.warn(text) };
    this.saves = settings.groups === undefined ? new Saves(host, mpi.world) : new GroupedSaves(host, mpi.world);
    this.notice = new EndNotice(mpi.params.string('ft_end_signal'));
  }

  private warn(text: string): void {
    warnAsRank(this.mpi.rank, text);
  }

  async play<T>(body: (job: FtJob) => T | Promise<T>): Promise<T> {
    const { world } = this.mpi;
    const { usesSharedMemory } = world;
    // What is on its way at a save, and what is logged, are messages. All communicators of the job are made of this one.
    world.usesSharedMemory = false;
    try {
      return await this.playOn(body);
    } catch (error) {
      // The next successor would come to the same, and so on until nobody stands by any more.
      if (isOwnDifference(error)) await this.mpi.abort(1, (error as MultirailError).message);
      // A job that is being ended has nobody left to stand by: that is not what is wrong with it.
      else if (lacksSpares(error)) throw (await within(this.mpi.aborted.promise, ABORT_WORD_WAIT_MS)) ?? error;
      throw error;
    } finally {
      this.notice.close();
      this.standbys?.close();
      world.usesSharedMemory = usesSharedMemory;
    }
  }

  private async playOn<T>(body: (job: FtJob) => T | Promise<T>): Promise<T> {
    const { saves } = this;
    let comm: Communicator = this.mpi.world;
    let hasMet = false;
    let knewMs = performance.now();
    for (;;) {
      try {
        const restored = await saves.meet(comm, this.history, hasMet);
        comm = saves.comm;
        hasMet = false;
        const { over } = saves;
        if (restored !== undefined) {
          const { epoch, isFirst, save, level, step, history, isInPlace } = restored;
          const lost = Math.max(0, history.step - step);
          const { failed } = history;
          // A recovery in place is in the history that the members have told each other.
          const settled = isInPlace ? history : settledHistory(history, 'all', lost);
          saves.history = settled;
          const recovery: JobRecovery | undefined =
            isFirst && history.failures === 0
              ? undefined
              : recoveryOf({ epoch, save, level, failed, lostSteps: lost, total: totalOf(settled) }, saves.images, comm.rank);
          this.history = { ...settled, failed: [], step: 0 };
          if (recovery !== undefined) saves.ledger.recovered(recovery.total, save !== undefined, isInPlace ? 'in place' : 'all');
          if (recovery !== undefined && recoveryChannel.hasSubscribers) {
            const durationMs = performance.now() - knewMs;
            const trace: RecoveryTrace = { rank: comm.rank, epoch, save, level, failed, lostSteps: lost, durationMs };
            recoveryChannel.publish(isInPlace ? { ...trace, kind: 'called again' } : trace);
          }
          const host = {
            quietMs: this.mpi.params.int('ft_quiet_ms'),
            notice: this.notice,
            warn: (text: string) => this.warn(text),
            team: isInPlace && !restored.isLast ? this.team(restored) : undefined,
          };
          const job =
            saves instanceof GroupedSaves
              ? new GroupJob(saves, this.settings, restored, recovery, host)
              : new SavingJob(saves, this.settings, restored, recovery, host);
          const outcome = await this.playOnce(job, body);
          if (outcome !== undefined) {
            await saves.program?.close();
            await saves.freeOwn();
            if (job.isStopped) await this.leave();
            return outcome.value;
          }
        }
        const end = await over.promise;
        if (end.kind === 'failed') throw end.error;
        knewMs = performance.now();
        hasMet = end.kind === 'back' || end.kind === 'again';
      } finally {
        if (!hasMet) saves.closeSeries();
      }
      comm = saves.comm;
      // Those who live have met on it already.
      if (hasMet) {
        this.history = { ...saves.history, step: this.history.step };
        continue;
      }
      const before = comm;
      comm = await before.replace({ spares: this.settings.mayShrink ? 'some' : 'all' });
      // Those who died in the meeting, or while places were taken, are among them.
      const failed = lostRanks(before, comm);
      if (comm.size < before.size && comm.rank === 0)
        this.warn(
          `${failed.length} of ${before.size} ranks failed (${failed.join(', ')}), and too few processes stand by: the job goes on with ${comm.size}`,
        );
      this.history = { ...this.history, failed, failures: this.history.failures + failed.length };
      // Revoked ones are freed without waiting for anybody; the world cannot be.
      await saves.freeOwn();
      if (before !== this.mpi.world) await before.free();
    }
  }

  /** Some that stand by repeat with this successor what its predecessor did. */
  private team({ step, bytes }: Restored): Team | undefined {
    const { saves, settings } = this;
    const comm = saves.program?.comm;
    if (settings.helpers === 0 || comm === undefined || saves.program?.streams.isReplaying !== true) return undefined;
    const { rank, group } = comm;
    return new Team(saves.comm, settings.helpers, { rank, members: group.worldRanks, step, bytes: bytes?.length ?? -1 }, bytes);
  }

  /** One run of the program. Undefined: somebody has failed. */
  private async playOnce<T>(job: SavingJob | GroupJob, body: (job: FtJob) => T | Promise<T>): Promise<{ value: T } | undefined> {
    // Where this rank goes back with its group, another one follows it.
    const { over } = this.saves;
    const played = (async (): Promise<Outcome<T>> => {
      try {
        // A successor of one that had stopped has nothing to do.
        return { value: job.isStopped ? (undefined as T) : await body(job) };
      } catch (error) {
        return { error };
      }
    })();
    try {
      const first = await Promise.race([played, over.promise]);
      if ('kind' in first) {
        job.close();
        if (first.kind === 'failed' && isOwnDifference(first.error)) throw first.error;
        await this.settled(played);
        return undefined;
      }
      if ('error' in first && !job.isStopped) {
        // Who has failed is told by a decision, which may come a moment after the error.
        if (!isFailure(first.error) || !(await this.isOver(over))) throw first.error;
        return undefined;
      }
      try {
        await job.end();
      } catch (error) {
        if (!isFailure(error) || !(await this.isOver(over))) throw error;
      }
      const end = await over.promise;
      if (end.kind !== 'ended') return undefined;
      // A job that was told to end has no value: the process ends, see leave().
      return 'value' in first ? first : { value: undefined as T };
    } finally {
      this.history = { ...this.history, step: job.step };
      job.close();
    }
  }

  /** The job was told to end, and all have saved. The program does not go on, so nobody else ends the runtime. */
  private async leave(): Promise<never> {
    try {
      await this.mpi.finalize();
    } catch (error) {
      this.warn((error as Error).message);
    }
    process.exit(TOLD_TO_END_CODE);
  }

  private get graceMs(): number {
    return this.mpi.params.int('ft_body_grace_ms');
  }

  /** A decision that names failed members comes within that time. */
  private async isOver(over: Saves['over']): Promise<boolean> {
    return (await within(over.promise, this.graceMs)) !== undefined;
  }

  private async settled(played: Promise<unknown>): Promise<void> {
    if ((await within(played, this.graceMs)) !== undefined) return;
    const { rank } = this.saves;
    throw new MultirailError(
      'ERR_CHECKPOINT',
      `the program of rank ${rank} has not ended ${this.graceMs} ms after its communicator was revoked (ft_body_grace_ms): let ERR_REVOKED and ERR_PROC_FAILED out of it, and look at job.signal in long loops`,
      { rank },
    );
  }
}
