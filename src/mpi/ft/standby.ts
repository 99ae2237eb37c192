// Processes that stand by, as a program sees them, and what a process does that is one of them: it waits to be called in, tells the server of
// the job whether it is free, and leaves when nobody is left who could call it.
import { EventEmitter } from 'node:events';
import type { StandbyEvent } from '../../ulfm/replace.ts';
import type { RuntimeJob } from '../runtime-options.ts';
import type { FaultTolerance } from './fault-tolerance.ts';
import type { HelpingRole } from './helping-states.ts';

/** Events of a StandbyPool. */
export interface StandbyPoolEvents {
  /** More or fewer processes stand by than before, as far as this one knows. */
  changed: [];
}

/** The processes of the job that stand by to take the places of others: `mpi.standby`. */
export class StandbyPool extends EventEmitter<StandbyPoolEvents> {
  private readonly count: () => number;

  /** @internal */
  constructor(count: () => number) {
    super();
    this.count = count;
  }

  /** How many stand by now, as far as this process knows: what replace() finds may be less. */
  get ready(): number {
    return this.count();
  }
}

/** A place in a communicator. */
export interface CalledInto {
  readonly id: number;
  /** Process numbers by rank. */
  readonly members: readonly number[];
}

export interface StandbyDutyOptions {
  /** Number of this process. */
  readonly self: number;
  membersOf(id: number): readonly number[];
  /** Everybody who might call this process in is gone. */
  isUnneeded(): boolean;
  /** Tells the server; resolves when it knows. */
  tellServer(isWaiting: boolean, place: number): Promise<void>;
  /** Says in that communicator that this process has come. */
  answer(id: number): void;
  /** It has this place, and messages may come for it from now on. */
  onCalled(place: CalledInto, role: 'replacement' | 'helper'): void;
  /** The job has ended without this process. */
  onUnneeded(): void;
}

export class StandbyDuty {
  /** Resolves when it has a place. */
  readonly called: Promise<void>;
  /** It has no place, and has not left. */
  isWaiting = true;
  /** Whether it helps a successor meanwhile; undefined until it can be asked. */
  private helping: HelpingRole | undefined;
  private readonly options: StandbyDutyOptions;
  private isFree = true;
  private resolve!: () => void;
  /** Told that this process, which helps, has a place. */
  onPlaced: (() => void) | undefined;
  /** Its program is called again, by run(). */
  private again: (() => void) | undefined;

  constructor(options: StandbyDutyOptions) {
    this.options = options;
    this.called = new Promise((resolve) => {
      this.resolve = resolve;
    });
  }

  take(event: StandbyEvent): void {
    const { self, membersOf, tellServer, answer } = this.options;
    switch (event.kind) {
      case 'called': {
        this.isFree = false;
        const { id } = event;
        // Before the others go on, and maybe leave the job, the server waits for this process as for everybody. Where it cannot be told it
        // waits for nobody.
        const say = (): void => answer(id);
        tellServer(false, membersOf(id).indexOf(self)).then(say, say);
        return;
      }
      case 'released':
        this.isFree = true;
        tellServer(true, 0).catch(() => undefined);
        return this.look();
      case 'joined':
        this.isWaiting = false;
        this.helping?.handlePlaced();
        this.onPlaced?.();
        this.options.onCalled(event, 'replacement');
        return this.begin();
    }
  }

  /** From now on it can be asked to help; `listen` is given what it does when it is in a team. */
  standBy(listen: (onBegin: (id: number, members: readonly number[]) => void) => HelpingRole): void {
    this.helping = listen((id, members) => {
      this.options.onCalled({ id, members }, 'helper');
      this.begin();
    });
  }

  /** There is something to do for its program: a place, or a team. */
  private begin(): void {
    this.resolve();
    this.again?.();
  }

  /** Its program has helped. Resolves when there is something else to do; it may be so already. */
  async next(): Promise<void> {
    if (this.helping?.state === 'HELPING') {
      const again = new Promise<void>((resolve) => {
        this.again = resolve;
      });
      this.helping.handleEnd();
      this.look();
      await again;
    }
  }

  /** Somebody is gone, or has a place: looks whether anybody is left who may need this process. */
  look(): void {
    if (!this.isWaiting || !this.isFree || !this.options.isUnneeded()) return;
    this.isWaiting = false;
    this.options.onUnneeded();
  }
}

/** The duty of a process that stands by in this job. */
export function dutyOf(
  { rank, oob }: Pick<RuntimeJob, 'rank' | 'oob'>,
  proc: { readonly ft: FaultTolerance | undefined },
  { onCalled, onUnneeded }: Pick<StandbyDutyOptions, 'onCalled' | 'onUnneeded'>,
): StandbyDuty {
  return new StandbyDuty({
    self: rank,
    membersOf: (id) => proc.ft?.ulfm.membersOf(id) ?? [],
    isUnneeded: () => proc.ft?.isUnneeded === true,
    tellServer: async (isWaiting, place) => await oob?.standbyState?.(isWaiting, place),
    answer: (id) => proc.ft?.answerCall(id),
    onCalled,
    onUnneeded,
  });
}
