// Recovery in place where ranks go back by groups. The dead have successors; the ranks of their groups that live end this run of their program, take
// what is on its way to them, and begin again from their own images, as if each were a successor of itself: with the same number, so what its earlier
// life has sent to others stays sent. Members of other groups go on, and serve their logs. The order of all that is in group-meeting.ts; here is how it
// is done by communicators.

import { MultirailError } from '../../errors.ts';
import type { Communicator } from '../../mpi/communicator.ts';
import type { FlowNumbers, LoggedStreams } from '../../mpi/ft/logged-streams.ts';
import type { RecoverySeries } from '../../mpi/ft/recovery-series.ts';
import { crc32c } from '../../native/crc32c.ts';
import { Iov } from '../../util/iov.ts';
import { formerOf } from '../checkpoint/former.ts';
import type { Placement } from '../checkpoint/placement.ts';
import type { Piece, SaveName } from '../checkpoint/slots.ts';
import type { HeldRecords } from '../events/holdings.ts';
import { decodeImage } from '../image/decode.ts';
import { type Awaited, InPlace, type InPlaceHost, type Joined, type PlaceView, type Steps, savedFor } from '../recover/in-place.ts';
import { domainsOf, placementOf, requireSameSettings, settledHistory, together } from '../recover/meeting.ts';
import type { PlanState } from '../recover/periods.ts';
import type { ProgramLog } from '../recover/program-log.ts';
import { holderOf } from '../recover/program-outcomes.ts';
import { type GroupImage, groupImageOf } from './group-image.ts';
import type { Lacks } from './group-lacks.ts';
import { GroupLives } from './group-lives.ts';
import { type GroupMeetingHost, type GroupMember, meetGroups } from './group-meeting.ts';
import type { GroupSaves, GroupSlot } from './group-saves.ts';
import type { GroupPlan, Groups } from './groups.ts';

/** By tag, on the communicator of saves; others are in exchange.ts. */
const TAG = { SENT: 19, SENT_BULK: 20 } as const;

/** What every member tells the others. */
type GroupPlaceView = PlaceView & GroupMember;

/** The saves of this rank, as far as its group's recovery needs them. */
export interface GroupInPlaceHost extends InPlaceHost {
  readonly group: GroupSaves;
  readonly series: RecoverySeries;
  readonly goesAgain: boolean;
  plan: PlanState | undefined;
  lacks: Lacks;
  form(groups: Groups): void;
  /** Messages of saves are on that communicator from now on. */
  listenOn(comm: Communicator): void;
  /** This run of the program is over. */
  beginAgain(): void;
  endAgain(end: { readonly value: Joined | 'back' } | { readonly error: unknown }): void;
}

/** The image that this rank goes back to. */
interface Found {
  readonly piece: Piece;
  readonly image: ReturnType<typeof decodeImage>;
  readonly saved: ReturnType<typeof savedFor>;
  readonly group: GroupImage | undefined;
}

export class GroupInPlace extends InPlace {
  private readonly grouped: GroupInPlaceHost;
  private readonly lives = new GroupLives();
  /** Values of once() of the life that is over. */
  private list: HeldRecords | undefined;
  private isJoining = false;

  constructor(saves: GroupInPlaceHost, isNew: boolean) {
    super(saves, isNew);
    this.grouped = saves;
  }

  /** All begin together: nothing is left of what was before. */
  forget(): void {
    this.lives.forget();
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
      mode: this.lives.isAgain ? 'again' : view.mode,
      groups: group.groups,
      entries: group.entries,
      committed: group.newest,
      life: this.lives.life,
    };
  }

  protected override *meet(comm: Communicator): Steps<'in place' | 'back'> {
    return yield* meetGroups(this.meetingOn(comm));
  }

  private meetingOn(comm: Communicator): GroupMeetingHost<Awaited, GroupPlaceView> {
    const self = this;
    const { saves, grouped, lives } = this;
    let former: ReturnType<typeof formerOf>;
    let domains: readonly (string | number)[] = [];
    let runner: GroupPlaceView | undefined;
    let found: Found | undefined;
    return {
      rank: comm.rank,
      lives,
      group: grouped.group,
      mayRestart: saves.settings.mayRestart,
      get isRunning() {
        return self.isRunning;
      },
      get streams() {
        return self.streams;
      },
      *exchange() {
        if (self.isRunning) self.streams?.keepLog(true);
        const views = yield* self.exchange<GroupPlaceView>(comm);
        requireSameSettings(views, 0);
        runner = views.find(({ mode }) => mode === 'runs' || mode === 'again');
        former = formerOf(views);
        domains = former?.domains ?? domainsOf(views, saves.settings);
        return views;
      },
      form: (groups) => grouped.form(groups),
      listen: () => grouped.listenOn(comm),
      endRun: () => this.endRun(),
      tellSent: (told, from) => this.tellSent(comm, told, from),
      nextTurn: (streams) => ({ error: undefined, onEnd: (then) => (streams as LoggedStreams).afterTurn(then) }),
      *fetch(plan, views) {
        self.move('FETCHING');
        const taken = yield* self.takeImage(
          comm,
          plan,
          views,
          runner as GroupPlaceView,
          placementOf(domains, saves.settings, () => undefined),
        );
        found = taken.found;
        if (taken.wrong !== undefined) saves.warn(taken.wrong.message);
        return taken.wrong === undefined;
      },
      *tell(word) {
        const words = new Float64Array(comm.size);
        yield* self.ended(comm.iallgather(Float64Array.of(word), words));
        return [...words];
      },
      image: () => found && { lacks: found.group?.lacks ?? [], flows: found.saved?.streams.flows ?? [] },
      beginFrom: (line, wasRunning) => this.beginFrom(comm, runner as GroupPlaceView, found, line, wasRunning),
      goOn(isMate, views) {
        const own = self.streams as LoggedStreams;
        for (const [place, number] of comm.group.worldRanks.entries()) if (own.members[place] !== number) own.succeed(place, number);
        own.keepLog(false);
        const program = saves.program as ProgramLog;
        program.passed = Math.max(...views.map((view, of) => (isMate(of) && view.mode === 'runs' ? view.passed : 0)));
      },
      settled: (plan, views) => this.settle(plan, views, domains, found),
      synchronise: () => {
        this.move('SYNCING');
        return this.synchronise(comm);
      },
      open: (lacks) =>
        grouped.group.open(
          placementOf(domains, saves.settings, () => undefined),
          lacks,
        ),
      goBack: (views, why) => this.goBack(views, why),
    };
  }

  /** New processes get their images, and what was recorded of their predecessors; whoever goes back reads its own. */
  private *takeImage(
    comm: Communicator,
    plan: GroupPlan,
    views: readonly GroupPlaceView[],
    runner: GroupPlaceView,
    placement: Placement,
  ): Steps<{ readonly found: Found | undefined; readonly wrong: MultirailError | undefined }> {
    const { grouped } = this;
    const { rank } = comm;
    const { fetched, failure } = yield* this.fetch(comm, { transfers: plan.transfers.map((transfer) => ({ ...transfer, epoch: 0 })) });
    const givers = new Map<number, number>();
    for (const [one, { mode }] of views.entries()) {
      const holder = mode === 'new' ? holderOf(placement, one) : undefined;
      if (holder !== undefined && views[holder]?.outcomesOf.includes(one)) givers.set(one, holder);
    }
    const list = yield* this.fetchList(comm, givers);
    const group = runner.groups[rank];
    let found: Found | undefined;
    let wrong = failure;
    try {
      const piece = plan.failing.has(group) ? (fetched ?? grouped.group.pieceOf(rank, plan.lines[group])) : undefined;
      if (piece !== undefined) {
        const image = decodeImage(piece.memory as Uint8Array, crc32c);
        found = { piece, image, saved: savedFor(runner, image), group: groupImageOf(image.sections) };
      }
      if (list !== undefined) this.list = this.outcomesFrom(list, found?.saved?.outcomes);
    } catch (error) {
      wrong ??= error as MultirailError;
    }
    return { found, wrong };
  }

  /** What the recovery has come to. */
  private settle(plan: GroupPlan, views: readonly GroupPlaceView[], domains: readonly (string | number)[], found: Found | undefined): void {
    const { saves, grouped } = this;
    const { group, groups } = grouped.group;
    const line = plan.lines[group];
    const stepOf = Math.max(0, ...views.map(({ history }) => history.step));
    const lost = Math.max(0, ...[...plan.failing].map((one) => stepOf - plan.steps[one]));
    const history = settledHistory(together(views), 'in place', lost);
    saves.history = history;
    const epoch = Math.max(...views.map((view) => view.epoch)) + 1;
    saves.begin(epoch, domains, { line: undefined, transfers: [], differs: false }, undefined, []);
    if (!plan.failing.has(groups[saves.rank])) return;
    const name = line < 0 ? undefined : { epoch, k: line };
    const { header, sections } = found?.image ?? {};
    this.joined = { epoch, line: name, step: header?.step ?? 0, sections, bytes: undefined, history, isLast: false };
  }

  // ---------------------------------------------------------------- those that live, and go back

  /** This run of the program is over. */
  private endRun(): void {
    const { saves, grouped } = this;
    const { rank } = saves;
    this.list = saves.outcomes.recorder?.all;
    this.isRunning = false;
    const text = `rank ${rank}: a rank of its group has failed, and all of them go back: this run of the program is over, let the error out of it`;
    this.streams?.giveUp(new MultirailError('ERR_REVOKED', text, { rank }));
    // One that was called in, and whose program has not run yet, goes on in the call that it is in.
    if (!this.isJoining) grouped.beginAgain();
  }

  private *tellSent(
    comm: Communicator,
    told: ReadonlyMap<number, FlowNumbers>,
    from: readonly number[],
  ): Steps<(readonly [number, FlowNumbers])[]> {
    const sends: Awaited[] = [];
    const heard: [number, FlowNumbers][] = [];
    for (const [to, numbers] of told) {
      const words = Float64Array.from([...numbers].flat());
      sends.push(comm.isend(Float64Array.of(words.length), to, TAG.SENT), comm.isend(words, to, TAG.SENT_BULK));
    }
    for (const one of from) {
      const length = new Float64Array(1);
      yield* this.ended(comm.irecv(length, one, TAG.SENT));
      const words = new Float64Array(length[0]);
      yield* this.ended(comm.irecv(words, one, TAG.SENT_BULK));
      heard.push([one, new Map(Array.from({ length: words.length / 2 }, (_, i) => [words[2 * i], words[2 * i + 1]]))]);
    }
    for (const send of sends) yield* this.ended(send);
    return heard;
  }

  /** This rank begins from that image, in the place that it has: as a successor of itself, or of one that is dead. */
  private beginFrom(
    comm: Communicator,
    runner: PlaceView,
    found: Found | undefined,
    line: number,
    wasRunning: boolean,
  ): GroupSlot | undefined {
    const { saves, grouped } = this;
    if (wasRunning) {
      const before = saves.program as ProgramLog;
      before.streams.leaveToEnter();
      before.log.clear();
    }
    this.useFetched();
    this.begin(comm, runner, comm.group.worldRanks, found?.image, this.list);
    const program = saves.program as ProgramLog;
    program.passed = program.attempts;
    const { saved, group } = found ?? {};
    grouped.plan = group?.plan;
    if (found === undefined || saved === undefined || group === undefined) {
      grouped.lacks = [];
      return undefined;
    }
    this.fillLog(program, group);
    grouped.lacks = group.lacks;
    return { k: line, step: found.image.header.step, piece: found.piece, numbers: saved.streams };
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
    return this.lives.sentBefore(member);
  }
}
