// The communicator that a program runs on under asynchronous recovery, the log of its messages, and how far the program is behind the calls
// in which it may save: a successor passes those by that the others have passed.
import type { MultirailError } from '../../errors.ts';
import type { Communicator } from '../../mpi/communicator.ts';
import type { FamilyBase, LoggedStreams } from '../../mpi/ft/logged-streams.ts';
import { crc32c } from '../../native/crc32c.ts';
import { SendLog } from '../log/send-log.ts';
import type { Periods, PlanState } from './periods.ts';
import type { ProgramOutcomes } from './program-outcomes.ts';
import { type SavedStreams, streamSections } from './saved-streams.ts';

/** In place of a level: all look whether a log is nearly full, and save if one is. */
export const LOOK_LEVEL = -1;
/** Steps between two looks, after the first ones. */
const LOOK_STEPS = 64;

/**
 * All look in the same steps: at first often, since nothing is known of the program, and then where it does not save as often anyway.
 * `everySteps`: the periods of its saves, where they are fixed, the same at all ranks and in each run of the program.
 */
export function isLook(step: number, everySteps: readonly number[] = []): boolean {
  if (step < LOOK_STEPS) return (step & (step - 1)) === 0;
  return step % LOOK_STEPS === 0 && !everySteps.some((period) => period <= LOOK_STEPS);
}

/** A save that next() has made, or tried to. */
export interface PlannedCall {
  /** As calls are counted in which the program may save. */
  readonly attempt: number;
  readonly step: number;
  readonly level: number;
}

/** So many are kept since the last committed save; when there are more, no successor can be told of all. */
const CALLS_MAX = 4096;
const MIB = 1024 * 1024;
const SLABS_MIN = 64;

export class ProgramLog {
  readonly comm: Communicator;
  readonly streams: LoggedStreams;
  readonly log: SendLog;
  readonly outcomes: ProgramOutcomes;
  /** Only some ranks save together: saves of all are of no account. */
  private readonly isGrouped: boolean;
  /** Three quarters of the log are full. */
  isDue = false;
  /** The program has come to so many calls in which it may save. */
  attempts = 0;
  /** Steps of the program so far. */
  step = 0;
  /** Steps in the newest committed save. */
  savedStep = 0;
  /** Calls up to this one are behind somebody, with a save or without one: whoever comes to them passes them by. */
  passed = 0;
  /** Saves that next() came to since the last committed one: a successor comes to the same, whatever it would plan. */
  calls: readonly PlannedCall[] = [];
  /** When the next ones are due behind the call `passed`. */
  plan: PlanState;
  readonly periods: Periods;
  /** Of the save that is being made. */
  private numbers: Pick<SavedStreams, 'streams' | 'outcomes'> | undefined;
  /** The call in which the save that is under way was begun. */
  private saving = 0;
  private savingStep = 0;
  private hasWarned = false;

  /** What the log had at the last look. */
  private lookedBytes = 0;
  private readonly bytesMax: number;

  /**
   * From now on all messages of that communicator are logged.
   *
   * @param bytesMax Bound of the log.
   * @param base What all have agreed on about ids of communicators that the program makes.
   * @param host `differs`: this process, a successor, has sent something else than its predecessor. `within`: ranks that go back together with this
   *   one.
   */
  constructor(
    comm: Communicator,
    bytesMax: number,
    base: FamilyBase,
    periods: Periods,
    {
      warn,
      differs,
      outcomes,
      within,
    }: {
      warn(text: string): void;
      differs(error: MultirailError): void;
      outcomes: ProgramOutcomes;
      readonly within?: readonly number[] | undefined;
    },
  ) {
    this.isGrouped = within !== undefined;
    this.comm = comm;
    this.outcomes = outcomes;
    this.bytesMax = bytesMax;
    this.periods = periods;
    this.plan = periods.state;
    comm.setName('job');
    const slabBytes = Math.min(MIB, Math.max(4096, Math.floor(bytesMax / SLABS_MIN)));
    this.log = new SendLog({
      bytesMax,
      slabBytes,
      exportable: comm.exportableMemory,
      onPressure: (kind) => {
        if (kind === 'due') this.isDue = true;
        else if (!this.hasWarned) {
          this.hasWarned = true;
          warn(
            kind === 'full'
              ? `the log of messages is full (${bytesMax} bytes, ft_log_bytes_max): sends wait until the save that is under way is committed; allow more, or save more often`
              : `the log of messages is full (${bytesMax} bytes, ft_log_bytes_max), and no save is under way: nothing is logged until the next one, and until that is committed a failure takes all ranks back; allow more, or save more often`,
          );
        }
      },
    });
    const { takesAnybody } = outcomes;
    this.streams = comm.logMessages(
      {
        log: this.log,
        digest: crc32c,
        onDiffers: differs,
        outcomes: outcomes.record(comm, differs),
        takesAnybody,
        within,
      },
      base,
    );
    outcomes.attach(this.streams);
  }

  /** The program begins with a save of that step; 0: from the beginning. */
  begin(step: number): void {
    this.step = step;
    this.savedStep = step;
    // What was planned in an earlier run of the program is over: successors are told of this one.
    this.plan = this.periods.state;
  }

  /** It is to be trimmed before the next look: three quarters are full, or will be when it fills up as it did since the last look. */
  get isNearlyFull(): boolean {
    const { usedBytes, isWhole } = this.log;
    // Looks that come at first are twice as far from the one before as that was.
    const grown = 2 * Math.max(0, usedBytes - this.lookedBytes);
    return this.isDue || !isWhole || this.outcomes.isNearlyFull || usedBytes + grown >= (this.bytesMax / 4) * 3;
  }

  /** All have looked, and nothing was to be done. */
  looked(): void {
    this.lookedBytes = this.log.usedBytes;
  }

  /** The program comes to a call in which it may save; `level`: of a save that is due. */
  enter(level: number | undefined): void {
    const attempt = ++this.attempts;
    if (level === undefined || level === LOOK_LEVEL || this.calls.some((call) => call.attempt === attempt)) return;
    if (this.calls.length <= CALLS_MAX) this.calls = [...this.calls, { attempt, step: this.step, level }];
  }

  /** Somebody is behind calls that this program has not come to: they are in the same steps. */
  get isBehind(): boolean {
    return this.attempts < this.passed;
  }

  /** The level of the save that the others have come to at the end of this step. */
  levelAt(step: number): number | undefined {
    return this.calls.find((call) => call.attempt === this.attempts + 1 && call.step === step)?.level;
  }

  /** Successors can be told of all calls since the save. */
  get hasAllCalls(): boolean {
    return this.calls.length <= CALLS_MAX;
  }

  /** What the one tells that is behind the most calls. */
  follow({ passed, calls, plan }: { readonly passed: number; readonly calls: readonly PlannedCall[]; readonly plan: PlanState }): void {
    if (passed > this.passed || this.calls.length === 0) this.calls = calls;
    this.passed = passed;
    this.plan = plan;
  }

  /** It is behind the last call that the others are behind: from now on saves are due when theirs are. */
  catchUp(): void {
    if (!this.isBehind) this.periods.state = this.plan;
  }

  /** Nobody is behind the call that it is in. */
  get isAhead(): boolean {
    return this.attempts > this.passed;
  }

  /** All have come to it, and nothing is on its way. */
  cut(): void {
    this.saving = this.attempts;
    this.savingStep = this.step;
    this.numbers = { streams: this.streams.cut(), outcomes: this.outcomes.recorder?.cut() };
  }

  /** The numbers of the cut. */
  get streamsAtCut(): SavedStreams['streams'] | undefined {
    return this.numbers?.streams;
  }

  /** What the image of that save has of it. */
  sections(isLast: boolean): ReturnType<typeof streamSections> {
    const { numbers, attempts } = this;
    return numbers === undefined ? [] : streamSections({ ...numbers, attempts, isLast });
  }

  /** The program goes on behind the call that it is in. */
  pass(): void {
    this.passed = Math.max(this.passed, this.attempts);
    this.plan = this.periods.state;
  }

  /** The save that was under way is committed. */
  committed(): void {
    if (this.saving === 0 || this.isGrouped) return;
    this.endSave();
    this.outcomes.committed();
    this.streams.commitCut();
    this.looked();
  }

  /** The save of this rank's group that was under way is committed: the log stays, which is for others. */
  groupCommitted(): void {
    if (this.saving === 0) return;
    this.endSave();
    this.outcomes.committed();
    this.streams.keepCut();
  }

  private endSave(): void {
    if (this.saving > this.passed) {
      this.passed = this.saving;
      this.plan = this.periods.state;
    }
    this.calls = this.calls.filter(({ attempt }) => attempt > this.saving);
    this.savedStep = this.savingStep;
    this.saving = 0;
    this.isDue = false;
  }

  /** There is no such save. */
  abandoned(): void {
    if (!this.isGrouped) this.groupAbandoned();
  }

  groupAbandoned(): void {
    this.saving = 0;
    this.outcomes.recorder?.abandon();
    this.streams.abandonCut();
  }

  /** The program is over, or all have gone back. */
  async close(): Promise<void> {
    this.streams.close();
    this.log.clear();
    await this.comm.free();
  }
}
