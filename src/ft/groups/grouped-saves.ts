// The saves of one rank where ranks go back by groups: each group has saves of its own (group-saves.ts), and what all do together, which is to meet, to
// hear of deaths and to come to the end, is as without groups (epoch.ts).
import type { Communicator } from '../../mpi/communicator.ts';
import { Deferred } from '../../util/deferred.ts';
import { type EpochHost, Saves } from '../recover/epoch.ts';
import type { EpochEnd, Restored } from '../recover/epoch-ends.ts';
import type { InPlace, Joined } from '../recover/in-place.ts';
import { groupsOf, type History, type View } from '../recover/meeting.ts';
import type { PlanState } from '../recover/periods.ts';
import { GroupInPlace } from './group-in-place.ts';
import { GroupLacks, type Lacks } from './group-lacks.ts';
import { type GroupSaveEnd, GroupSaves, type GroupSlot } from './group-saves.ts';
import { GroupWire } from './group-wire.ts';
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
  private readonly lacking = new GroupLacks();
  private readonly wire: GroupWire;

  constructor(host: EpochHost, comm: Communicator) {
    super(host, comm);
    const wire = new GroupWire(this.memory);
    this.wire = wire;
    this.group = new GroupSaves({
      memory: this.memory,
      warn: (text) => this.warn(text),
      send: (to, words) => wire.send(to, words),
      sendImage: (to, image) => wire.sendImage(to, image),
      takeImage: (from, room, crc, ended) => wire.takeImage(from, room, crc, ended),
      stop: () => wire.stop(),
      ended: (end, slot) => this.ended(end, slot),
      committedOf: (rank, nextIn, nextOut) => {
        this.program?.streams.commitOf(rank, nextIn, nextOut);
        if (this.lacking.saved(rank, nextIn)) this.program?.log.becomeWhole();
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

  listenOn(own: Communicator): void {
    this.wire.listen(this.series, own, (from, words) => this.group.handle(from, words));
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
    if (this.group.groups.length > 0) this.listenOn(own);
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
    this.listenOn(this.own);
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
    this.lacking.cut(program.streamsAtCut?.flows ?? [], (rank) => this.group.groups[rank] === this.group.group);
  }

  get lacks(): Lacks {
    return this.lacking.list;
  }

  /** From an image. */
  set lacks(lacks: Lacks) {
    this.lacking.list = lacks;
    if (!this.lacking.isEmpty) this.program?.log.becomeTorn();
  }

  private ended(end: GroupSaveEnd, slot: GroupSlot): void {
    if (end === 'committed') this.program?.groupCommitted();
    else this.program?.groupAbandoned();
    this.onGroupEnd?.(end, slot);
  }
}
