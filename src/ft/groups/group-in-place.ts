// Recovery in place where ranks go back by groups. The dead have successors; the ranks of their groups that live end this run of their program, take
// what is on its way to them, and begin again from their own images, as if each were a successor of itself: with the same number, so what its earlier
// life has sent to others stays sent. Members of other groups go on, and serve their logs.

import { MultirailError } from '../../errors.ts';
import type { Communicator } from '../../mpi/communicator.ts';
import type { FlowNumbers, LoggedStreams } from '../../mpi/ft/logged-streams.ts';
import type { RecoverySeries } from '../../mpi/ft/recovery-series.ts';
import { crc32c } from '../../native/crc32c.ts';
import { Iov } from '../../util/iov.ts';
import { formerOf } from '../checkpoint/former.ts';
import type { Piece, SaveName } from '../checkpoint/slots.ts';
import type { HeldRecords } from '../events/holdings.ts';
import { decodeImage } from '../image/decode.ts';
import { type Awaited, InPlace, type InPlaceHost, type Joined, type PlaceView, type Steps, savedFor } from '../recover/in-place.ts';
import { domainsOf, placementOf, requireSameSettings, settledHistory, together } from '../recover/meeting.ts';
import type { PlanState } from '../recover/periods.ts';
import type { ProgramLog } from '../recover/program-log.ts';
import { holderOf } from '../recover/program-outcomes.ts';
import { type GroupImage, groupImageOf, type Lacks } from './group-image.ts';
import type { GroupSaves } from './group-saves.ts';
import { type GroupEntry, type GroupPlan, type Groups, planGroups } from './groups.ts';

/** By tag, on the communicator of saves; others are in exchange.ts. */
const TAG = { SENT: 19, SENT_BULK: 20 } as const;

/** What every member tells the others. */
interface GroupPlaceView extends PlaceView {
  readonly groups: Groups;
  readonly entries: readonly GroupEntry[];
  readonly committed: readonly number[];
  /** So often has this process begun again. */
  readonly life: number;
}

/** The saves of this rank, as far as its group's recovery needs them. */
export interface GroupInPlaceHost extends InPlaceHost {
  readonly group: GroupSaves;
  readonly series: RecoverySeries;
  readonly goesAgain: boolean;
  plan: PlanState | undefined;
  lacks: Lacks;
  form(groups: Groups): void;
  /** This run of the program is over. */
  beginAgain(): void;
  endAgain(end: { readonly value: Joined | 'back' } | { readonly error: unknown }): void;
}

interface Sent {
  /** Of the receiver. */
  readonly life: number;
  readonly numbers: FlowNumbers;
}

/** The image that this rank goes back to. */
interface Found {
  readonly piece: Piece;
  readonly image: ReturnType<typeof decodeImage>;
}

const NONE: FlowNumbers = new Map();

export class GroupInPlace extends InPlace {
  private readonly grouped: GroupInPlaceHost;
  /** This run of the program is over, and the next one has not begun. */
  private isAgain = false;
  private life = 0;
  /** By rank: what had left to it when nothing more did, of its life then. */
  private readonly sentWhenStopped = new Map<number, Sent>();
  /** By rank: numbers below which messages of an earlier life of this process left, and are with it or on their way. */
  private readonly sentOnce = new Map<number, Map<number, number>>();
  /** By rank: what has left to here, in this life. */
  private readonly toTake = new Map<number, Map<number, number>>();
  /** Values of once() of the life that is over. */
  private list: HeldRecords | undefined;
  private isJoining = false;

  constructor(saves: GroupInPlaceHost, isNew: boolean) {
    super(saves, isNew);
    this.grouped = saves;
  }

  /** All begin together: nothing is left of what was before. */
  forget(): void {
    this.isAgain = false;
    this.sentWhenStopped.clear();
    this.sentOnce.clear();
    this.toTake.clear();
    this.list = undefined;
  }

  override async join(comm: Communicator): Promise<Joined | undefined> {
    this.isJoining = true;
    try {
      return await super.join(comm);
    } finally {
      this.isJoining = false;
    }
  }

  protected override handleEnd(end: { readonly value: 'in place' | 'back' } | { readonly error: MultirailError }): void {
    const { grouped } = this;
    if (!grouped.goesAgain) return super.handleEnd(end);
    if ('error' in end) this.giveUp(end.error);
    grouped.endAgain('error' in end ? end : { value: end.value === 'back' ? 'back' : (this.joined as Joined) });
  }

  protected override viewNow(): GroupPlaceView {
    const { group } = this.grouped;
    const view = super.viewNow();
    return {
      ...view,
      mode: this.isAgain ? 'again' : view.mode,
      groups: group.groups,
      entries: group.entries,
      committed: group.newest,
      life: this.life,
    };
  }

  protected override *meet(comm: Communicator): Steps<'in place' | 'back'> {
    const { saves, grouped } = this;
    const { rank } = comm;
    if (this.isRunning) this.streams?.keepLog(true);
    const views = yield* this.exchange<GroupPlaceView>(comm);
    requireSameSettings(views, 0);
    const runner = views.find(({ mode }) => mode === 'runs' || mode === 'again');
    const groups = runner?.groups ?? [];
    const former = formerOf(views);
    const domains = former?.domains ?? domainsOf(views, saves.settings);
    const placement = placementOf(domains, saves.settings, () => undefined);
    const plan = runner === undefined ? undefined : planGroups(views, groups);
    const why = plan && this.whyNotGroups(views, plan);
    if (runner === undefined || plan === undefined || why !== undefined) return this.goBack(views, why);
    if (grouped.group.groups.length === 0) grouped.form(groups);
    // Another process has that place than before.
    for (const [one, { mode }] of views.entries()) if (mode === 'new') this.sentWhenStopped.delete(one);
    grouped.group.listen(grouped.series, comm);
    const isFailing = plan.failing.has(groups[rank]);
    const living = [...views.keys()].filter((one) => one !== rank && views[one].mode !== 'new');
    const stopping = living.filter((one) => plan.failing.has(groups[one]));
    const told = new Map(stopping.map((one) => [one, this.stopFor(one, views[one].life)]));
    if (isFailing && this.isRunning) this.goBackWithGroup(living, views);
    else if (!isFailing) for (const one of stopping) this.streams?.stopTo(one);
    yield* this.tellSent(comm, told, isFailing && this.isAgain ? living : []);
    if (isFailing && this.isAgain) yield* this.taken();
    this.move('FETCHING');
    const transfers = plan.transfers.map((transfer) => ({ ...transfer, epoch: 0 }));
    const { fetched, failure } = yield* this.fetch(comm, { transfers });
    const givers = new Map<number, number>();
    for (const [one, { mode }] of views.entries()) {
      const holder = mode === 'new' ? holderOf(placement, one) : undefined;
      if (holder !== undefined && views[holder]?.outcomesOf.includes(one)) givers.set(one, holder);
    }
    const list = yield* this.fetchList(comm, givers);
    const line = plan.lines[groups[rank]];
    let found: Found | undefined;
    let wrong = failure;
    try {
      const piece = isFailing ? (fetched ?? grouped.group.pieceOf(rank, line)) : undefined;
      if (piece !== undefined) found = { piece, image: decodeImage(piece.memory as Uint8Array, crc32c) };
      if (list !== undefined) this.list = this.outcomesFrom(list, found && savedFor(runner, found.image)?.outcomes);
    } catch (error) {
      wrong ??= error as MultirailError;
    }
    const ends = new Float64Array(comm.size);
    yield* this.ended(comm.iallgather(Float64Array.of(wrong === undefined ? 1 : 0), ends));
    if (wrong !== undefined) saves.warn(wrong.message);
    if (ends.includes(0)) return this.goBack(views, `rank ${ends.indexOf(0)} could not take its image`);
    // From here to the next step nothing comes in between.
    this.move('SYNCING');
    grouped.group.settle(plan.lines);
    for (const one of stopping.concat([...views.keys()].filter((of) => views[of].mode === 'new'))) this.sentOnce.delete(one);
    if (isFailing) this.beginFrom(comm, runner, found, line);
    else {
      const own = this.streams as LoggedStreams;
      for (const [place, number] of comm.group.worldRanks.entries()) if (own.members[place] !== number) own.succeed(place, number);
      own.keepLog(false);
      const program = saves.program as ProgramLog;
      program.passed = Math.max(...views.map((view, of) => (groups[of] === groups[rank] && view.mode === 'runs' ? view.passed : 0)));
    }
    const stepOf = Math.max(0, ...views.map(({ history }) => history.step));
    const lost = Math.max(0, ...[...plan.failing].map((group) => stepOf - plan.steps[group]));
    const history = settledHistory(together(views), 'in place', lost);
    saves.history = history;
    const epoch = Math.max(...views.map((view) => view.epoch)) + 1;
    saves.begin(epoch, domains, { line: undefined, transfers: [], differs: false }, undefined, []);
    if (isFailing) {
      const name = line < 0 ? undefined : { epoch, k: line };
      const { header, sections } = found?.image ?? {};
      this.joined = { epoch, line: name, step: header?.step ?? 0, sections, bytes: undefined, history, isLast: false };
    }
    yield* this.synchronise(comm);
    grouped.group.open(placement, (holder) => !views[holder].entries.some(({ owner, k }) => owner === rank && k === line));
    return 'in place';
  }

  /** The same at all members. */
  private whyNotGroups(views: readonly GroupPlaceView[], { failing, lines, lost }: GroupPlan): string | undefined {
    const { mayRestart } = this.saves.settings;
    if (views.some(({ mode }) => mode === 'back')) return 'a rank has gone back already';
    const { places, groups } = views.find(({ mode }) => mode === 'runs' || mode === 'again') as GroupPlaceView;
    if (places !== views.length) return `${places - views.length} of ${places} ranks have no successor`;
    const torn = views.findIndex(({ mode, isWhole }, rank) => mode === 'runs' && !failing.has(groups[rank]) && !isWhole);
    if (torn >= 0) return `the log of rank ${torn} does not reach back to the last saves of other groups (ft_log_bytes_max)`;
    if (lost !== undefined) return `not all images of the last save of group ${lost} are left`;
    if (!mayRestart && [...failing].some((group) => lines[group] < 0))
      return 'no save was committed, and the program must not begin from the beginning (whenNoSave)';
    return undefined;
  }

  // ---------------------------------------------------------------- those that live, and go back

  /** What has left to that member, which goes back and lives: nothing more does. */
  private stopFor(rank: number, life: number): FlowNumbers {
    const known = this.sentWhenStopped.get(rank);
    if (known?.life === life) return known.numbers;
    const numbers = this.streams?.sentTo(rank) ?? NONE;
    this.sentWhenStopped.set(rank, { life, numbers });
    return numbers;
  }

  /** This run of the program is over. What it has sent to members that do not go back is with them, or on its way. */
  private goBackWithGroup(living: readonly number[], views: readonly GroupPlaceView[]): void {
    const { saves, grouped } = this;
    const { rank } = saves;
    for (const one of living) {
      const numbers = this.stopFor(one, views[one].life);
      const once = this.sentOnce.get(one) ?? new Map<number, number>();
      this.sentOnce.set(one, once);
      for (const [ctx, seq] of numbers) once.set(ctx, Math.max(once.get(ctx) ?? 0, seq));
    }
    this.list = saves.outcomes.recorder?.all;
    this.isRunning = false;
    this.isAgain = true;
    const text = `rank ${rank}: a rank of its group has failed, and all of them go back: this run of the program is over, let the error out of it`;
    this.streams?.giveUp(new MultirailError('ERR_REVOKED', text, { rank }));
    // One that was called in, and whose program has not run yet, goes on in the call that it is in.
    if (!this.isJoining) grouped.beginAgain();
  }

  /** Members that go back are told what is on its way to them; `from`: those that tell this one. */
  private *tellSent(comm: Communicator, told: ReadonlyMap<number, FlowNumbers>, from: readonly number[]): Steps<void> {
    const sends: Awaited[] = [];
    for (const [to, numbers] of this.isAgain || this.isRunning ? told : []) {
      const words = Float64Array.from([...numbers].flat());
      sends.push(comm.isend(Float64Array.of(words.length), to, TAG.SENT), comm.isend(words, to, TAG.SENT_BULK));
    }
    for (const one of from) {
      const length = new Float64Array(1);
      yield* this.ended(comm.irecv(length, one, TAG.SENT));
      const words = new Float64Array(length[0]);
      yield* this.ended(comm.irecv(words, one, TAG.SENT_BULK));
      const numbers = this.toTake.get(one) ?? new Map<number, number>();
      this.toTake.set(one, numbers);
      for (let at = 0; at < words.length; at += 2) numbers.set(words[at], Math.max(numbers.get(words[at]) ?? 0, words[at + 1]));
    }
    for (const send of sends) yield* this.ended(send);
  }

  /** Waits until all that was on its way to this rank is here, and goes nowhere. */
  private *taken(): Steps<void> {
    const streams = this.streams as LoggedStreams;
    const isTaken = (): boolean => [...this.toTake].every(([rank, numbers]) => streams.hasTaken(rank, numbers));
    while (!isTaken()) yield { error: undefined, onEnd: (then) => streams.afterTurn(then) };
  }

  /** This rank begins from that image, in the place that it has: as a successor of itself, or of one that is dead. */
  private beginFrom(comm: Communicator, runner: PlaceView, found: Found | undefined, line: number): void {
    const { saves, grouped } = this;
    if (this.isAgain) {
      const before = saves.program as ProgramLog;
      before.streams.leaveToEnter();
      before.log.clear();
      this.isAgain = false;
      this.life++;
      this.sentWhenStopped.clear();
      this.toTake.clear();
    }
    this.begin(comm, runner, comm.group.worldRanks, found?.image, this.list);
    const program = saves.program as ProgramLog;
    program.passed = program.attempts;
    const saved = found && savedFor(runner, found.image);
    const group = found && groupImageOf(found.image.sections);
    grouped.plan = group?.plan;
    if (found === undefined || saved === undefined || group === undefined) {
      grouped.group.adopt(undefined);
      grouped.lacks = [];
      return;
    }
    this.fillLog(program, group);
    grouped.lacks = group.lacks;
    grouped.group.adopt({ k: line, step: found.image.header.step, piece: found.piece, numbers: saved.streams });
  }

  /** What this rank had sent to other groups before the save, and they may ask for. */
  private fillLog({ log, streams }: ProgramLog, { logged }: GroupImage): void {
    for (const { to, ctx, tag, seq, signature, sync, payload } of logged) {
      const buffer = payload.length === 0 ? new Iov([]) : new Iov([payload]);
      log.add(streams.numberOf(to), ctx, tag, seq, signature, sync, buffer, true);
    }
  }

  protected override pieceToGive({ k }: SaveName, owner: number): Piece | undefined {
    return this.grouped.group.pieceOf(owner, k);
  }

  protected override sentBefore(member: number): FlowNumbers | undefined {
    return this.sentOnce.get(member);
  }
}
