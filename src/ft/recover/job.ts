// What a program is given by run(): its communicator, what it registers, and its saves. One for each run of the program, that is one after
// each recovery. How saves are made depends on what the job survives: saving-job.ts and paired-job.ts.
import { MultirailError } from '../../errors.ts';
import { type MessageBuffer, sendIov } from '../../mpi/buffers.ts';
import type { Communicator } from '../../mpi/communicator.ts';
import type { Settings } from './options.ts';
import type { JobRecovery, RecoveryTotal } from './recovery.ts';
import type { Registry, ValueAccessors } from './registry.ts';
import { type Team, TeamOfJob } from './team.ts';

/** How many messages an error names that keep a rank from saving. */
export const NAMED_MAX = 8;

/** What each kind of job begins with. */
export interface JobParts {
  readonly comm: Communicator;
  readonly registry: Registry;
  readonly recovery: JobRecovery | undefined;
  readonly step: number;
  readonly settings: Settings;
  readonly team?: Team | undefined;
}

/** What the program of run() is given. */
export abstract class FtJob extends TeamOfJob {
  /** The communicator that the program runs on: it is another one after each failure. */
  readonly comm: Communicator;
  /** Aborted when this run of the program is over. */
  readonly signal: AbortSignal;
  /** How this run came to be; undefined for the first one of a job that has no save and of which nobody has failed. */
  readonly recovery: JobRecovery | undefined;
  protected readonly registry: Registry;
  protected readonly settings: Settings;
  protected stepCount: number;
  private readonly controller = new AbortController();

  /** @internal */
  constructor({ comm, registry, recovery, step, settings, team }: JobParts, teamComm: Communicator) {
    super(teamComm, team);
    this.comm = comm;
    this.registry = registry;
    this.recovery = recovery;
    this.stepCount = step;
    this.settings = settings;
    this.signal = this.controller.signal;
  }

  /** Steps of the program so far, those before a restored save included. */
  get step(): number {
    return this.stepCount;
  }

  /**
   * The sums over all recoveries since this job was started, until now: with recovery 'asynchronous' they grow while the program runs, at all
   * ranks alike.
   */
  abstract get total(): RecoveryTotal;

  /** Steps between two saves of each level as next() makes them: fixed, or planned from what was measured; 0: none by itself. */
  abstract get everySteps(): readonly number[];

  /**
   * Under asynchronous recovery: this rank has taken the place of a dead one, and does again what the others have seen already. False in all
   * other runs.
   */
  abstract get replaying(): boolean;

  // ---------------------------------------------------------------- state

  /**
   * Registers memory that is part of this rank's state. When a save is restored it has its bytes on return. The array stays the program's; it
   * must not change while next() or checkpoint() is pending. A program that swaps two arrays registers both.
   *
   * @param name The same in every run of the program.
   * @param view A typed array, a Buffer or a DataView.
   * @throws ERR_ARG: it is no view, or the name was registered before in this run.
   * @throws ERR_CHECKPOINT: the save has no such array, or one of another class or length.
   */
  protect(name: string, view: ArrayBufferView): void {
    this.registry.protect(name, view);
  }

  /**
   * Registers a value that is part of this rank's state, for what grows or is no array. When a save is restored, `restore` has been called on
   * return.
   *
   * @param name The same in every run of the program.
   * @param accessors `save` gives the value, which is saved by structured clone; `restore` takes it back.
   * @throws ERR_ARG: the accessors are no functions, or the name was registered before in this run.
   * @throws ERR_CHECKPOINT: the save has no such value.
   */
  protectValue<V>(name: string, accessors: ValueAccessors<V>): void {
    this.registry.protectValue(name, accessors);
  }

  /**
   * The value of that name, which is made once: by `make` in the first call, and from then on it is part of this rank's state. For clocks,
   * random numbers and what is read from files or the environment: a program that is called again gets the value that it had when the save was
   * made, whichever process runs it then. A value that was made after that save is made again, as all that came after it is done again, but by a
   * successor whose predecessor's outcomes were kept (recovery 'asynchronous').
   * Each rank has values of its own; after ranks were left out (isRegrouped) they are made again. Of replicas the lead makes the value, and
   * all get it.
   *
   * @param name One for each place in the program, the same in every run.
   * @param make Makes the value, which is saved by structured clone; what is returned is a clone. It is not called when there is a value.
   * @throws ERR_ARG: `make` is no function, what it gave cannot be cloned, or there are more than 65536 names.
   */
  once<V>(name: string, make: () => V): V {
    return this.registry.once(name, make);
  }

  /**
   * Compares a result that is sent to nobody, where each rank is several processes (`multirail run --replicas 2`): it resolves when all have the
   * same bytes; of three one that differs gets those of the others. Where no two have the same the job ends, or goes back to a save. Where each rank
   * is one process it resolves at once.
   *
   * @param buffer What is compared, as for send(). It stays as it is until the promise settles.
   * @throws ERR_BUFFER, ERR_ARG: it is no buffer.
   */
  async validate(buffer: MessageBuffer): Promise<void> {
    sendIov(buffer);
  }

  // ---------------------------------------------------------------- saves

  /**
   * The end of a step. All ranks call it alike, with no message of theirs on its way that nobody receives. Saves when a save is due, and
   * resolves at once when none is.
   *
   * @throws ERR_CHECKPOINT: messages of the program are on their way or were not received, ranks have come to different steps, or what was
   *   restored does not fit what is registered; the message says which.
   * @throws ERR_PROC_FAILED, ERR_REVOKED: a rank has failed, or the job was told to end (ft_end_signal) and all have saved. The program lets it
   *   out.
   */
  abstract next(): Promise<void>;

  /**
   * As next(), without a promise: the save is committed on return. The event loop does not run meanwhile.
   * @throws ERR_SUPPORT: the save is due at a level other than memory, which needs the event loop.
   */
  abstract nextSync(): void;

  /**
   * A save now. All ranks call it alike. Resolves with its number: when it is committed, or with background saving when the state is copied.
   *
   * @param options `level`: `memory` (default), `disk` or `store`, one of those that run() was told.
   * @throws ERR_ARG: run() was not told of such a level.
   * @throws ERR_CHECKPOINT: as for next(), and when the save was abandoned.
   * @throws ERR_PROC_FAILED, ERR_REVOKED: as for next().
   */
  abstract checkpoint(options?: { level?: 'memory' | 'disk' | 'store' }): Promise<number>;

  /**
   * As checkpoint(), without a promise: the save is committed on return. The event loop does not run meanwhile.
   *
   * @param options `level`: as for checkpoint().
   * @throws ERR_SUPPORT: a level other than memory, which needs the event loop.
   */
  abstract checkpointSync(options?: { level?: 'memory' | 'disk' | 'store' }): number;

  /** @internal This run of the program is over. */
  close(): void {
    this.closeTeam();
    this.controller.abort();
  }

  /** The place of a level among those that run() was told of. */
  protected levelOf(name: string): number {
    const level = this.settings.names.indexOf(name as 'memory');
    if (level < 0) throw new MultirailError('ERR_ARG', `level ${name}: run() was told of ${this.settings.names.join(', ')}`);
    return level;
  }

  /** Blocking calls save in memory alone. */
  protected mustBeMemory(level: number): void {
    if (level > 0)
      throw new MultirailError(
        'ERR_SUPPORT',
        `a save at level ${this.settings.names[level]} needs the event loop: call next() or checkpoint(), or leave that level out`,
      );
  }
}
