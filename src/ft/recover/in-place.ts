// Asynchronous recovery: a process that stood by takes the place of a dead one in the communicator of the program, and only that process goes
// back. What is agreed on for it, and what is sent, goes on inside the engine's turns, so while the programs of the others compute, or wait in
// blocking calls. Where it is not possible all go back (run.ts), and the warning says why.
import { deserialize, serialize } from 'node:v8';
import { MultirailError } from '../../errors.ts';
import type { Communicator } from '../../mpi/communicator.ts';
import type { FamilyBase, FlowNumbers, LoggedStreams, Sync } from '../../mpi/ft/logged-streams.ts';
import { crc32c } from '../../native/crc32c.ts';
import { formerOf } from '../checkpoint/former.ts';
import { type Inventory, planRecovery, type RecoveryPlan } from '../checkpoint/recovery-plan.ts';
import type { SaveCore } from '../checkpoint/save-core.ts';
import { isSameSave, type Piece, type SaveName, saveText } from '../checkpoint/slots.ts';
import type { HeldRecords } from '../events/holdings.ts';
import type { RecorderCut } from '../events/recorder.ts';
import { decodeImage } from '../image/decode.ts';
import { type RecoveryTrace, recoveryChannel } from './channels.ts';
import { damageOf, isFailure, TAG_IMAGE } from './exchange.ts';
import { type InPlaceState, moveInPlace } from './in-place-states.ts';
import type { Ledger } from './ledger.ts';
import { domainsOf, type History, placementOf, requireSameSettings, settledHistory, together, type View } from './meeting.ts';
import type { ImageMemory } from './memory.ts';
import type { Settings } from './options.ts';
import type { Periods, PlanState } from './periods.ts';
import type { PlannedCall, ProgramLog } from './program-log.ts';
import { holderOf, listFrom, type ProgramOutcomes } from './program-outcomes.ts';
import { type SavedStreams, savedStreamsOf } from './saved-streams.ts';

/** By tag, on the communicator of saves; others are in exchange.ts. */
const TAG = { SYNC: 11, SYNC_BULK: 12, LIST: 15, LIST_BULK: 16 } as const;

/** What every member tells the others. */
export interface PlaceView extends View {
  /** runs: its program does. new: it was called in. back: it has begun to go back with all the others. again: with its group alone. */
  readonly mode: 'runs' | 'new' | 'back' | 'again';
  /** Of one that runs: the communicator of its program, how those are numbered that are made of it, and how many have a place there. */
  readonly id: number;
  readonly base: FamilyBase | undefined;
  readonly places: number;
  /** Nothing is missing in its log. */
  readonly isWhole: boolean;
  readonly newest: SaveName | undefined;
  /** Step of the program in that save. */
  readonly savedStep: number;
  /** Calls in which the program may save, as far as it is behind them. */
  readonly passed: number;
  /** Saves that its next() came to since the newest one, and when the next is due behind the call `passed`. */
  readonly calls: readonly PlannedCall[];
  readonly plan: PlanState;
  /** Ranks whose recorded outcomes are here. */
  readonly outcomesOf: readonly number[];
}

/** What a new member begins with. */
export interface Joined {
  readonly epoch: number;
  readonly line: SaveName | undefined;
  readonly step: number;
  readonly sections: ReturnType<typeof decodeImage>['sections'] | undefined;
  /** Its bytes, a copy of them; undefined where nobody helps, or from the beginning. */
  readonly bytes: Uint8Array | undefined;
  readonly history: History;
  /** The others have stopped behind that save. */
  readonly isLast: boolean;
}

/** The saves of this rank, as far as recovery in place needs them. */
export interface InPlaceHost {
  /** The communicator that the members are on now. */
  readonly comm: Communicator;
  readonly rank: number;
  readonly settings: Settings;
  readonly memory: ImageMemory;
  readonly core: SaveCore;
  readonly program: ProgramLog | undefined;
  readonly outcomes: ProgramOutcomes;
  /** What is known of failures so far. */
  history: History;
  readonly ledger: Ledger;
  readonly periods: Periods;
  readonly over: { resolve(end: { readonly kind: 'back' } | { readonly kind: 'failed'; readonly error: MultirailError }): void };
  warn(text: string): void;
  /** The members are on this communicator from now on. */
  enter(comm: Communicator): void;
  useForSaves(own: Communicator): void;
  openProgram(comm: Communicator, base: FamilyBase): ProgramLog;
  /** The members are others than before: returns the ranks of those that have failed. */
  leaveBehind(next: Communicator): readonly number[];
  viewInMemory(): View;
  /** All have found what to begin with. */
  begin(
    epoch: number,
    domains: readonly (string | number)[],
    plan: RecoveryPlan,
    fetched: Piece | undefined,
    inventories: readonly Inventory[],
  ): void;
}

/** What is waited for: a request, or a word that comes by another way. */
export interface Awaited {
  readonly error: MultirailError | undefined;
  onEnd(then: () => void): void;
}
export type Steps<T> = Generator<Awaited, T, void>;

/** A decision that names failed members. */
class Word implements Awaited {
  readonly error = undefined;
  isGiven = false;
  private listener: (() => void) | undefined;

  give(): void {
    this.isGiven = true;
    this.listener?.();
  }

  onEnd(then: () => void): void {
    if (this.isGiven) then();
    else this.listener = then;
  }
}

/** Takes the steps, each when what it waits for has ended: from within a turn of the engine. */
function drive<T>(steps: Steps<T>, ended: (result: { readonly value: T } | { readonly error: MultirailError }) => void): void {
  const step = (): void => {
    let next: IteratorResult<Awaited, T>;
    try {
      next = steps.next();
    } catch (error) {
      return ended({ error: error as MultirailError });
    }
    if (next.done === true) ended({ value: next.value });
    else next.value.onEnd(step);
  };
  step();
}

export class InPlace {
  state: InPlaceState = 'IDLE';
  /** The program of this rank runs, and its messages are logged. */
  protected isRunning = false;
  /** What a new member began with. */
  protected joined: Joined | undefined;
  private isLast = false;
  protected readonly saves: InPlaceHost;
  protected hasGoneBack: boolean;
  private word = new Word();
  protected failed: number[] = [];
  protected knewMs = 0;
  /** Memory of an image that was fetched, and that nothing has begun with yet. */
  private fetchedMemory: Uint8Array | undefined;

  /** `isNew`: this process was called in. */
  constructor(saves: InPlaceHost, isNew: boolean) {
    this.saves = saves;
    this.hasGoneBack = !isNew;
  }

  protected get streams(): LoggedStreams | undefined {
    return this.saves.program?.streams;
  }

  /** All have begun together. */
  programRuns(): void {
    this.isRunning = true;
  }

  /** Deaths are its affair now. */
  get takesOver(): boolean {
    return this.isRunning || this.state !== 'IDLE';
  }

  /** A decision names failed members. */
  handleRecover(): void {
    if (this.state !== 'IDLE') return this.word.give();
    this.failed = [];
    this.knewMs = performance.now();
    drive(this.rounds(undefined), (end) => this.handleEnd(end));
  }

  protected handleEnd(end: { readonly value: 'in place' | 'back' } | { readonly error: MultirailError }): void {
    if ('error' in end) this.fail(end.error);
    else if (end.value === 'back') this.saves.over.resolve({ kind: 'back' });
    else this.survived();
  }

  /** A process whose program does not run meets the others. Undefined: all go back. */
  join(comm: Communicator): Promise<Joined | undefined> {
    return new Promise((resolve, reject) => {
      drive(this.rounds(comm), (end) => {
        if ('error' in end) reject(end.error);
        else resolve(end.value === 'back' ? undefined : this.joined);
      });
    });
  }

  /** Others have the places of the dead, and the program of this rank goes on. */
  protected survived(): void {
    const { core, rank, ledger, history } = this.saves;
    const { failed } = this;
    ledger.recoveredInPlace(history);
    if (!recoveryChannel.hasSubscribers) return;
    const { newest } = core.slots;
    recoveryChannel.publish({
      rank,
      epoch: core.epoch,
      save: newest?.name.k,
      level: newest === undefined ? undefined : 'memory',
      failed,
      lostSteps: 0,
      durationMs: performance.now() - this.knewMs,
      kind: 'in place',
    } satisfies RecoveryTrace);
  }

  protected fail(error: MultirailError): void {
    this.giveUp(error);
    this.saves.over.resolve({ kind: 'failed', error });
  }

  /** The program's calls end with this error. */
  protected giveUp(error: MultirailError): void {
    this.isRunning = false;
    this.hasGoneBack = true;
    this.streams?.giveUp(error);
  }

  protected move(to: InPlaceState): void {
    moveInPlace(this, to);
  }

  // ---------------------------------------------------------------- the way

  private *rounds(first: Communicator | undefined): Steps<'in place' | 'back'> {
    let comm = first;
    for (;;) {
      comm ??= yield* this.replace();
      this.move('TELLING');
      this.word = new Word();
      this.saves.enter(comm);
      this.saves.useForSaves(comm);
      let outcome: 'in place' | 'back' | undefined;
      try {
        outcome = yield* this.meet(comm);
      } catch (error) {
        if (!isFailure(error)) throw error;
      }
      if (outcome !== undefined && !this.word.isGiven) {
        this.move(outcome === 'back' ? 'BACK' : 'IDLE');
        if (outcome === 'back') this.move('IDLE');
        return outcome;
      }
      this.move('STARTING_OVER');
      yield this.word;
      comm = undefined;
    }
  }

  protected *ended(request: Awaited): Steps<void> {
    yield request;
    if (request.error !== undefined) throw request.error;
  }

  private *replace(): Steps<Communicator> {
    this.move('REPLACING');
    const { saves } = this;
    const request = saves.comm.ireplace({ spares: saves.settings.mayShrink ? 'some' : 'all' });
    yield* this.ended(request);
    const comm = request.result as Communicator;
    this.failed.push(...saves.leaveBehind(comm));
    return comm;
  }

  protected *meet(comm: Communicator): Steps<'in place' | 'back'> {
    const { saves, streams } = this;
    const { settings } = saves;
    const { size } = comm;
    if (this.isRunning) streams?.keepLog(true);
    const views = yield* this.exchange(comm);
    const runner = views.find(({ mode }) => mode === 'runs');
    const former = formerOf(views);
    const domains = former?.domains ?? domainsOf(views, settings);
    const placement = placementOf(domains, settings, () => undefined);
    const plan = planRecovery(former?.inventories ?? [], placement);
    const givers = new Map<number, number>();
    for (const [rank, { mode }] of views.entries()) {
      const holder = mode === 'new' && rank < placement.size ? holderOf(placement, rank) : undefined;
      if (holder !== undefined && views[holder]?.outcomesOf.includes(rank)) givers.set(rank, holder);
    }
    const why = whyNot(views, plan, domains.length, settings) ?? this.lostOutcomes(views, givers);
    if (runner === undefined || why !== undefined) return this.goBack(views, why);
    this.move('FETCHING');
    const { line } = plan;
    const { fetched, failure } = yield* this.fetch(comm, plan);
    const list = yield* this.fetchList(comm, givers);
    const isNew = !this.isRunning;
    let image: ReturnType<typeof decodeImage> | undefined;
    let outcomes: HeldRecords | undefined;
    let wrong = failure;
    try {
      if (isNew && fetched !== undefined) image = decodeImage(fetched.memory as Uint8Array, crc32c);
      if (list !== undefined) outcomes = this.outcomesFrom(list, savedFor(runner, image)?.outcomes);
    } catch (error) {
      wrong ??= error as MultirailError;
    }
    const ends = new Float64Array(size);
    yield* this.ended(comm.iallgather(Float64Array.of(wrong === undefined ? 1 : 0), ends));
    if (wrong !== undefined) saves.warn(wrong.message);
    if (ends.includes(0)) return this.goBack(views, `rank ${ends.indexOf(0)} could not take its image`);
    // From here to the next step nothing comes in between.
    this.move('SYNCING');
    const members = comm.group.worldRanks;
    if (isNew) this.begin(comm, runner, members, image, outcomes);
    else {
      const own = streams as LoggedStreams;
      for (const [place, number] of members.entries()) if (own.members[place] !== number) own.succeed(place, number);
      own.keepLog(false);
    }
    const lost = Math.max(0, ...views.map(({ mode, history }) => (mode === 'runs' ? history.step : 0))) - runner.savedStep;
    const history = settledHistory(together(views), 'in place', Math.max(0, lost));
    saves.history = history;
    (saves.program as ProgramLog).follow(views.reduce((most, view) => (view.passed > most.passed ? view : most), runner));
    const epoch = Math.max(...views.map((view) => view.epoch)) + 1;
    this.useFetched();
    saves.begin(epoch, domains, plan, fetched, former?.inventories ?? []);
    if (isNew) {
      const bytes = settings.helpers === 0 ? undefined : (fetched?.memory as Uint8Array | undefined)?.slice();
      this.joined = { epoch, line, step: image?.header.step ?? 0, sections: image?.sections, bytes, history, isLast: this.isLast };
    }
    yield* this.synchronise(comm);
    return 'in place';
  }

  /** Each tells all what it has. */
  protected *exchange<V extends PlaceView>(comm: Communicator): Steps<V[]> {
    const bytes = new TextEncoder().encode(JSON.stringify(this.viewNow()));
    const lengths = new Float64Array(comm.size);
    yield* this.ended(comm.iallgather(Float64Array.of(bytes.length), lengths));
    const all = new Uint8Array(lengths.reduce((sum, length) => sum + length, 0));
    yield* this.ended(comm.iallgatherv(bytes, all, [...lengths]));
    let at = 0;
    return Array.from(lengths, (length) => {
      at += length;
      return JSON.parse(new TextDecoder().decode(all.subarray(at - length, at))) as V;
    });
  }

  protected viewNow(): PlaceView {
    const { saves, streams, isRunning, hasGoneBack } = this;
    const mode = isRunning ? 'runs' : hasGoneBack ? 'back' : 'new';
    return {
      ...saves.viewInMemory(),
      mode,
      id: streams?.id ?? -1,
      base: streams?.base,
      places: streams?.members.length ?? 0,
      isWhole: streams === undefined || (streams.isWhole && saves.program?.hasAllCalls !== false),
      newest: saves.core.slots.newest?.name,
      savedStep: saves.program?.savedStep ?? 0,
      passed: isRunning ? (saves.program?.passed ?? 0) : 0,
      calls: saves.program?.calls ?? [],
      plan: saves.program?.plan ?? saves.periods.state,
      outcomesOf: saves.outcomes.owners,
    };
  }

  /** New members get their images. */
  protected *fetch(
    comm: Communicator,
    { transfers }: Pick<RecoveryPlan, 'transfers'>,
  ): Steps<{ fetched?: Piece; failure?: MultirailError }> {
    const { saves } = this;
    this.giveFetched();
    let fetched: Piece | undefined;
    let failure: MultirailError | undefined;
    const requests: Awaited[] = [];
    for (const { giver, owner, bytes, crc, epoch, k } of transfers) {
      if (giver === comm.rank) {
        const piece = this.pieceToGive({ epoch, k }, owner) as Piece;
        requests.push(comm.isend(piece.memory as Uint8Array, owner, TAG_IMAGE));
      }
      if (owner !== comm.rank) continue;
      let memory = new Uint8Array(0);
      try {
        memory = saves.memory.take(bytes) as Uint8Array<ArrayBuffer>;
        fetched = { bytes, crc, memory };
        this.fetchedMemory = memory;
      } catch (error) {
        failure = error as MultirailError;
      }
      requests.push(comm.irecv(memory, giver, TAG_IMAGE));
    }
    for (const request of requests) {
      yield request;
      if (request.error === undefined) continue;
      if (isFailure(request.error)) throw request.error;
      failure ??= request.error;
    }
    if (fetched !== undefined) failure ??= damageOf(fetched, comm.rank);
    return { ...(fetched === undefined ? {} : { fetched }), ...(failure === undefined ? {} : { failure }) };
  }

  /** Somebody has died before anything began with it. */
  private giveFetched(): void {
    if (this.fetchedMemory !== undefined) this.saves.memory.give(this.fetchedMemory);
    this.fetchedMemory = undefined;
  }

  /** Something begins with it. */
  protected useFetched(): void {
    this.fetchedMemory = undefined;
  }

  protected pieceToGive(name: SaveName, owner: number): Piece | undefined {
    return this.saves.core.slots.find(name)?.held.get(owner);
  }

  /** What an earlier life of this process has sent to that member. */
  protected sentBefore(_member: number): FlowNumbers | undefined {
    return undefined;
  }

  /** New members get what was recorded of their predecessors. */
  protected *fetchList(comm: Communicator, givers: ReadonlyMap<number, number>): Steps<Uint8Array | undefined> {
    const sends: Awaited[] = [];
    let list: Uint8Array | undefined;
    for (const [owner, holder] of givers) {
      if (holder !== comm.rank) continue;
      const bytes = this.saves.outcomes.listOf(owner);
      sends.push(comm.isend(Float64Array.of(bytes.length), owner, TAG.LIST), comm.isend(bytes, owner, TAG.LIST_BULK));
    }
    const holder = givers.get(comm.rank);
    if (holder !== undefined) {
      const length = new Float64Array(1);
      yield* this.ended(comm.irecv(length, holder, TAG.LIST));
      list = new Uint8Array(length[0]);
      yield* this.ended(comm.irecv(list, holder, TAG.LIST_BULK));
    }
    for (const send of sends) yield* this.ended(send);
    return list;
  }

  /** Where nothing is recorded but values of once(), these may be lost: they are made again. */
  private lostOutcomes(views: readonly PlaceView[], givers: ReadonlyMap<number, number>): string | undefined {
    if (this.saves.settings.determinism !== 'recorded') return undefined;
    const lost = views.findIndex(({ mode }, rank) => mode === 'new' && !givers.has(rank));
    return lost < 0 ? undefined : `outcomes that rank ${lost} had recorded are lost with whoever kept them`;
  }

  protected outcomesFrom(list: Uint8Array, cut: RecorderCut | undefined): HeldRecords | undefined {
    try {
      return listFrom(list, cut);
    } catch (error) {
      if (this.saves.settings.determinism === 'recorded') throw error;
      return undefined;
    }
  }

  /** This process has the place of a dead one in the program's communicator, and its numbers. */
  protected begin(
    comm: Communicator,
    runner: PlaceView,
    members: readonly number[],
    image: ReturnType<typeof decodeImage> | undefined,
    outcomes: HeldRecords | undefined,
  ): void {
    const { saves } = this;
    const saved = savedFor(runner, image);
    const program = saves.openProgram(comm.enterAs('job', runner.id, members), runner.base as FamilyBase);
    program.streams.restore(saved?.streams);
    saves.outcomes.restore(saved?.outcomes, outcomes);
    program.begin(image?.header.step ?? 0);
    this.isLast = saved?.isLast === true;
    program.attempts = saved?.attempts ?? 0;
    this.isRunning = true;
  }

  /** Whoever waits for the word of a member gets it. */
  protected *synchronise(comm: Communicator): Steps<void> {
    const streams = this.streams as LoggedStreams;
    const { rank, size } = comm;
    const own = new Uint8Array(size);
    const { awaited } = streams;
    for (const member of awaited) own[member] = 1;
    const all = new Uint8Array(size * size);
    yield* this.ended(comm.iallgather(own, all));
    const sends: Awaited[] = [];
    for (let member = 0; member < size; member++) {
      if (all[member * size + rank] === 0) continue;
      const bytes = encodeSync(streams.syncFor(member));
      sends.push(comm.isend(Float64Array.of(bytes.length), member, TAG.SYNC), comm.isend(bytes, member, TAG.SYNC_BULK));
    }
    for (const member of awaited) {
      const length = new Float64Array(1);
      yield* this.ended(comm.irecv(length, member, TAG.SYNC));
      const bytes = new Uint8Array(length[0]);
      yield* this.ended(comm.irecv(bytes, member, TAG.SYNC_BULK));
      streams.takeSync(member, decodeSync(bytes), this.sentBefore(member));
    }
    for (const send of sends) yield* this.ended(send);
  }

  /** The same at all members. */
  protected goBack(views: readonly PlaceView[], why: string | undefined): 'back' {
    const { saves } = this;
    const { rank } = saves;
    if (why !== undefined && views.findIndex(({ mode }) => mode === 'runs') === rank)
      saves.warn(`no recovery in place: ${why}; all ranks go back, as with recovery 'coordinated'`);
    const text = `rank ${rank}: a rank has failed, and there is no recovery in place: this run of the program is over, let the error out of it`;
    this.giveUp(new MultirailError('ERR_REVOKED', text, { rank }));
    return 'back';
  }
}

/** What an image has for the communicator on which the runner's program is. One that was made before all went back has the numbers of another one; in this one nothing was sent before it. */
export function savedFor({ id }: PlaceView, image: ReturnType<typeof decodeImage> | undefined): SavedStreams | undefined {
  const saved = image && savedStreamsOf(image.sections);
  return saved?.streams.id === id ? saved : undefined;
}

/** Why those that have told this cannot recover in place; undefined: they can, or have begun to go back already. */
function whyNot(views: readonly PlaceView[], plan: RecoveryPlan, places: number, { mayRestart }: Settings): string | undefined {
  requireSameSettings(views, 0);
  if (views.some(({ mode }) => mode === 'back')) return 'a rank has gone back already';
  const runners = views.filter(({ mode }) => mode === 'runs');
  if (runners.length === 0) return undefined;
  const [runner] = runners;
  if (runner.places !== views.length || places !== views.length)
    return `${runner.places - views.length} of ${runner.places} ranks have no successor`;
  const torn = views.findIndex(({ isWhole }) => !isWhole);
  if (torn >= 0) return `the log of rank ${torn} does not reach back to the last save (ft_log_bytes_max)`;
  const { newest } = runner;
  const { line } = plan;
  if (newest === undefined && line === undefined)
    return mayRestart ? undefined : 'no save was committed, and the program must not begin from the beginning (whenNoSave)';
  if (newest === undefined || line === undefined || !isSameSave(newest, line))
    return `no copy of an image of ${newest === undefined ? 'the last save' : saveText(newest)} is left`;
  return undefined;
}

/** Numbers of a row: of a digest. */
const DIGEST = 3;

function encodeSync({ contexts }: Sync): Uint8Array {
  const rows = contexts.map(({ ctx, nextIn, holes, digests }) => ({
    ctx,
    nextIn,
    holes: Float64Array.from(holes),
    digests: Float64Array.from(digests.flatMap(({ seq, bytes, crc }) => [seq, bytes, crc])),
  }));
  return new Uint8Array(serialize(rows));
}

function decodeSync(bytes: Uint8Array): Sync {
  const rows = deserialize(bytes) as { ctx: number; nextIn: number; holes: Float64Array; digests: Float64Array }[];
  return {
    contexts: rows.map(({ ctx, nextIn, holes, digests }) => ({
      ctx,
      nextIn,
      holes: [...holes],
      digests: Array.from({ length: digests.length / DIGEST }, (_, i) => {
        const [seq, length, crc] = digests.subarray(DIGEST * i, DIGEST * (i + 1));
        return { seq, bytes: length, crc };
      }),
    })),
  };
}
