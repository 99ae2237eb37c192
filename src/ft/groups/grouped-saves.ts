// The saves of one rank where ranks go back by groups: each group has saves of its own (group-saves.ts), and what all do together, which is to meet, to
// hear of deaths and to come to the end, is as without groups (epoch.ts).
import type { Communicator } from '../../mpi/communicator.ts';
import { Deferred } from '../../util/deferred.ts';
import { type EpochHost, Saves } from '../recover/epoch.ts';
import type { EpochEnd, Restored } from '../recover/epoch-ends.ts';
import type { InPlace, Joined } from '../recover/in-place.ts';
import { groupsOf, type History, type View } from '../recover/meeting.ts';
import type { PlanState } from '../recover/periods.ts';
import type { Lacks } from './group-image.ts';
import { GroupInPlace } from './group-in-place.ts';
import { type GroupSaveEnd, GroupSaves, type GroupSlot } from './group-saves.ts';
import { countOf, type Groups } from './groups.ts';

/** How a recovery has ended for a rank that went back with its group. */
type Again = { readonly value: Joined | 'back' } | { readonly error: unknown };

export class GroupedSaves extends Saves {
  readonly group: GroupSaves;
  /** What the group plans by, where this run of the program goes on from a save. */
  plan: PlanState | undefined;
  /** Told of the end of a save of this rank's group. */
  onGroupEnd: ((end: GroupSaveEnd, slot: GroupSlot) => void) | undefined;
  /** This rank goes back with its group: what it begins with, or that all go back. */
  private again: Deferred<Again> | undefined;
  /** Of ranks of other groups: numbers from which on the log has all, where it was given up before. */
  private readonly lacking = new Map<number, Map<number, number>>();

  constructor(host: EpochHost, comm: Communicator) {
    super(host, comm);
    this.group = new GroupSaves({
      memory: this.memory,
      warn: (text) => this.warn(text),
      ended: (end, slot) => this.ended(end, slot),
      committedOf: (rank, nextIn, nextOut) => {
        this.program?.streams.commitOf(rank, nextIn, nextOut);
        this.noLongerLacks(rank, nextIn);
      },
    });
  }

  protected override makeInPlace(isNew: boolean): InPlace {
    return new GroupInPlace(this, isNew);
  }

  protected override formGroups(views: readonly View[]): void {
    this.group.clear();
    (this.inPlace as GroupInPlace).forget();
    this.lacking.clear();
    this.plan = undefined;
    this.form(groupsOf(views, this.settings) as Groups);
  }

  form(groups: Groups): void {
    this.group.form(groups, this.rank);
    this.periods.groups = countOf(groups);
  }

  protected override get within(): readonly number[] {
    return this.group.members;
  }

  override enter(comm: Communicator): void {
    this.group.interrupt();
    super.enter(comm);
  }

  override useForSaves(own: Communicator): void {
    super.useForSaves(own);
    // Those that are new learn what groups there are when all tell what they have.
    if (this.group.groups.length > 0) this.group.listen(this.series, own);
  }

  override async freeOwn(): Promise<void> {
    this.group.interrupt();
    await super.freeOwn();
  }

  override async meet(comm: Communicator, history: History, hasMet: boolean): Promise<Restored | undefined> {
    const joined = await this.begunAgain();
    if (joined !== undefined && joined !== 'back') return this.restoredInPlace(joined);
    const restored = await super.meet(comm, history, hasMet);
    if (restored === undefined || restored.isInPlace) return restored;
    this.group.listen(this.series, this.own);
    this.group.open(this.core.placement, () => false);
    return restored;
  }

  // ---------------------------------------------------------------- this rank goes back with its group

  /** This run of the program is over: the next one begins when the group has what it goes back to. */
  beginAgain(): void {
    // One that has begun again, and whose program has not run yet, does so once more.
    if (this.again === undefined || this.again.isDone) this.again = new Deferred();
    const { over } = this;
    // What comes from now on is about the next run.
    this.over = new Deferred<EpochEnd>();
    over.resolve({ kind: 'again' });
  }

  /** What it begins with. */
  endAgain(end: Again): void {
    this.again?.resolve(end);
  }

  get goesAgain(): boolean {
    return this.again !== undefined && !this.again.isDone;
  }

  private async begunAgain(): Promise<Joined | 'back' | undefined> {
    for (;;) {
      const { again } = this;
      if (again === undefined) return undefined;
      const end = await again.promise;
      // Somebody else of the group may have died since.
      if (again !== this.again) continue;
      this.again = undefined;
      if ('error' in end) throw end.error;
      return end.value;
    }
  }

  // ---------------------------------------------------------------- logs that were given up

  /** The save is cut: from now on all is logged again. */
  cut(): void {
    const program = this.program;
    if (program === undefined) return;
    const wasWhole = program.log.isWhole;
    program.cut();
    if (wasWhole) return;
    this.lacking.clear();
    for (const { peer, ctx, nextOut } of program.streamsAtCut?.flows ?? []) {
      if (this.group.groups[peer] === this.group.group) continue;
      const numbers = this.lacking.get(peer) ?? new Map<number, number>();
      this.lacking.set(peer, numbers.set(ctx, nextOut));
    }
  }

  get lacks(): Lacks {
    return [...this.lacking].map(([rank, numbers]) => [rank, [...numbers]] as const);
  }

  /** From an image. */
  set lacks(lacks: Lacks) {
    this.lacking.clear();
    for (const [rank, numbers] of lacks) this.lacking.set(rank, new Map(numbers));
    if (this.lacking.size > 0) this.program?.log.becomeTorn();
  }

  private noLongerLacks(rank: number, nextIn: ReadonlyMap<number, number>): void {
    const numbers = this.lacking.get(rank);
    if (numbers === undefined) return;
    for (const [ctx, seq] of numbers) if ((nextIn.get(ctx) ?? 0) < seq) return;
    this.lacking.delete(rank);
    if (this.lacking.size === 0) this.program?.log.becomeWhole();
  }

  private ended(end: GroupSaveEnd, slot: GroupSlot): void {
    if (end === 'committed') this.program?.groupCommitted();
    else this.program?.groupAbandoned();
    this.onGroupEnd?.(end, slot);
  }
}
