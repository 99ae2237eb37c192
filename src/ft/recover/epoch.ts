// The saves of one rank as they are driven: the pure machine of src/ft/checkpoint, its votes, copies and stores, on the communicator that
// the program runs on now. An epoch lasts from one meeting of the members to the next.
import { MultirailError } from '../../errors.ts';
import type { Communicator } from '../../mpi/communicator.ts';
import type { FamilyBase } from '../../mpi/ft/logged-streams.ts';
import type { RecoverySeries } from '../../mpi/ft/recovery-series.ts';
import type { Runtime } from '../../mpi/runtime.ts';
import { crc32c } from '../../native/crc32c.ts';
import { Deferred } from '../../util/deferred.ts';
import { entriesOf, type Former, formerOf, groupingOf, type Membership } from '../checkpoint/former.ts';
import { type Grouping, isOwnEach, takenOver } from '../checkpoint/grouping.ts';
import { holdsOf, inventoryOf, planRecovery, type RecoveryPlan } from '../checkpoint/recovery-plan.ts';
import { SaveCore } from '../checkpoint/save-core.ts';
import { isSameSave, type Piece, type SaveName, saveText } from '../checkpoint/slots.ts';
import type { decodeImage } from '../image/decode.ts';
import type { EpochEnd, Restored, SaveEnd } from './epoch-ends.ts';
import { Copies, fetchImages, isFailure } from './exchange.ts';
import { InPlace, type Joined } from './in-place.ts';
import { Ledger } from './ledger.ts';
import {
  domainsOf,
  type History,
  knownOf,
  lostRanks,
  NO_HISTORY,
  namedDomain,
  placementOf,
  requireSameSettings,
  type StoredView,
  together,
  type View,
} from './meeting.ts';
import { ImageMemory } from './memory.ts';
import type { Settings } from './options.ts';
import { type Known, Periods } from './periods.ts';
import { ProgramLog } from './program-log.ts';
import { ProgramOutcomes } from './program-outcomes.ts';
import { jobIdOf } from './registry.ts';
import { imagesIn, partsToTell } from './restoring.ts';
import { SavedImages } from './saved-images.ts';
import { type StoredLine, storedLines } from './store-levels.ts';
import { readStoredLine } from './stored-line.ts';

export interface EpochHost {
  readonly mpi: Runtime;
  readonly settings: Settings;
  warn(text: string): void;
}

export class Saves {
  readonly core: SaveCore;
  readonly memory: ImageMemory;
  readonly jobName: string;
  readonly jobId: Uint8Array;
  comm!: Communicator;
  /** Messages of saves: never those of the program. */
  own!: Communicator;
  series!: RecoverySeries;
  copies!: Copies;
  /** Resolves when this epoch is over. */
  over = new Deferred<EpochEnd>();
  readonly counters = { failedAtStore: 0 };
  /** When saves are due; what was measured outlasts recoveries. */
  readonly periods: Periods;
  readonly ledger = new Ledger();
  private readonly beganMs = performance.now();
  /** Undefined where recovery is coordinated. */
  readonly inPlace: InPlace | undefined;
  readonly outcomes: ProgramOutcomes;
  /** What the program of this rank runs on, where its messages are logged. */
  program: ProgramLog | undefined;
  protected readonly host: EpochHost;
  private begun = new Deferred<'begun' | MultirailError | undefined>();
  /** The program runs already, and the copies of what it has begun with are still being spread. */
  private isAhead = false;
  private saveEnd: Deferred<SaveEnd> | undefined;
  /** Those who have committed what the slots hold. */
  private membership: Membership | undefined;
  /** What can be read of the save that this epoch has begun with; undefined: it has begun with nothing. */
  images: SavedImages | undefined;
  /** Why this rank could not make or take its part. */
  private refusal: MultirailError | undefined;
  private isObeying = false;
  /** Why the last save that did not get there is not held by those that stand by. */
  newsOfStandbys = '';
  /** Told of the end of a save in a blocking call, where no promise is settled. */
  onSaveEnd: ((end: SaveEnd) => void) | undefined;
  /** In a blocking call copies are sent and taken by it. */
  isSync = false;

  constructor(host: EpochHost, comm: Communicator) {
    const { mpi, settings } = host;
    this.host = host;
    this.core = new SaveCore({ rank: comm.rank, depth: settings.depth });
    this.periods = new Periods(settings);
    this.outcomes = new ProgramOutcomes(settings, (text) => this.warn(text));
    const hosts = comm.recoverySeries('run');
    const here = hosts.hosts.filter((name) => name === hosts.hosts[comm.rank]).length;
    hosts.close();
    this.memory = new ImageMemory(mpi.params.int('ft_memory_bytes_max'), here);
    this.jobName = mpi.params.string('ft_job');
    if (settings.isAsynchronous) this.inPlace = this.makeInPlace(mpi.role === 'replacement');
    this.jobId = jobIdOf(this.jobName);
  }

  protected makeInPlace(isNew: boolean): InPlace {
    return new InPlace(this, isNew);
  }

  /** All meet, and begin together: groups are formed. */
  protected formGroups(_views: readonly View[]): void {}

  /** Ranks that go back together with this one. Undefined: each goes back by itself. */
  protected get within(): readonly number[] | undefined {
    return undefined;
  }

  get rank(): number {
    return this.comm.rank;
  }

  // ---------------------------------------------------------------- the machine

  /** Does what has come out of the machine, and what that leads to. */
  obey(): void {
    if (this.isObeying) return;
    this.isObeying = true;
    try {
      const { core } = this;
      for (let action = core.actions.shift(); action !== undefined; action = core.actions.shift()) {
        switch (action.kind) {
          case 'vote':
            this.vote(action.flag);
            break;
          case 'spread':
            this.copies.send(action.slot.name, action.slot.own, action.to);
            if (!this.isSync) this.takeOnce(action.slot.name.k);
            break;
          case 'excuse':
            this.copies.send(action.name, undefined, action.to);
            break;
          case 'committed':
            this.program?.committed();
            if (!this.begun.isDone) this.handleBegun();
            this.endSave({ committed: action.name, error: undefined });
            break;
          case 'abandoned':
            this.program?.abandoned();
            // By a death: all go back once more.
            if (!this.begun.isDone && core.state !== 'RECOVERING') this.handleNotBegun();
            this.endSave({ committed: undefined, error: this.abandonedError(action.name) });
            break;
          case 'recover':
            this.begun.resolve(undefined);
            this.endSave({ committed: undefined, error: this.abandonedError(core.nextName) });
            if (this.inPlace?.takesOver === true) {
              this.series.revokeOwn();
              this.inPlace.handleRecover();
              break;
            }
            this.series.revokeAll();
            this.over.resolve(action);
            break;
          case 'ended':
            this.over.resolve(action);
            break;
        }
      }
      for (const piece of core.slots.released.splice(0)) this.memory.give(piece.memory as Uint8Array);
    } finally {
      this.isObeying = false;
    }
  }

  /** All members have what this epoch begins with, and copies of it. */
  private handleBegun(): void {
    const { core, series } = this;
    this.membership = { rank: this.rank, domains: this.domains };
    this.ledger.placed(core.placement, series.hosts);
    series.count(() => this.ledger.report(core.slots.newest !== undefined, this.counters.failedAtStore));
    this.begun.resolve('begun');
  }

  /** Nobody goes on with a state of which there are not as many copies as there must be. */
  private handleNotBegun(): void {
    const error =
      this.refusal ??
      new MultirailError('ERR_CHECKPOINT', `rank ${this.rank} cannot begin: another rank could not restore its state, and says why`, {
        rank: this.rank,
      });
    this.begun.resolve(error);
    if (!this.isAhead) return;
    this.series.revokeAll();
    this.over.resolve({ kind: 'failed', error });
  }

  private vote(flag: number): void {
    const call = this.series.vote(flag);
    const end = (): void => {
      if (call.error !== undefined || call.result === undefined) return;
      this.core.handleDecision(call.result.flag, call.result.failed);
      this.obey();
    };
    if (call.done) end();
    else call.onDone = end;
  }

  private abandonedError(name: SaveName): MultirailError {
    const { rank } = this;
    // Whoever waits for the successor of a dead rank makes the save again.
    if (this.core.state === 'RECOVERING')
      return new MultirailError('ERR_REVOKED', `${saveText(name)} was abandoned: a rank has failed`, { rank });
    return (
      this.refusal ??
      new MultirailError('ERR_CHECKPOINT', `${saveText(name)} was abandoned: another rank could not make or take its part, and says why`, {
        rank,
      })
    );
  }

  private endSave(end: SaveEnd): void {
    const { saveEnd } = this;
    this.saveEnd = undefined;
    this.refusal = undefined;
    this.onSaveEnd?.(end);
    saveEnd?.resolve(end);
  }

  /** Resolves when the save that is under way has ended. */
  get pending(): Promise<SaveEnd> {
    this.saveEnd ??= new Deferred();
    return this.saveEnd.promise;
  }

  /** One save is in flight at most: one that comes due meanwhile waits for it, because only all ranks together could pass it over. */
  async whenIdle(): Promise<void> {
    while (!this.core.isIdle && !this.over.isDone) await Promise.race([this.pending, this.over.promise]);
  }

  /** This rank cannot do its part. */
  refuse(error: MultirailError): void {
    this.refusal ??= error;
    this.core.refuse();
    this.obey();
  }

  private taken = -1;
  /** Copies that this rank is to hold of the save that is under way: taken once for each vote. */
  takeOnce(k: number): void {
    if (this.taken === this.core.attempt) return;
    this.taken = this.core.attempt;
    // What it has already is not sent again.
    this.copies.take(this.core.placement.owners(this.rank, k).filter((owner) => this.core.pending?.held.has(owner) !== true));
  }

  // ---------------------------------------------------------------- meeting

  /**
   * All members meet, and find what to go back to. Then it is spread again: the program runs meanwhile, since a further failure leaves what was
   * gone back to until its new copies are committed. Undefined: somebody has failed meanwhile.
   */
  async meet(comm: Communicator, history: History, hasMet: boolean): Promise<Restored | undefined> {
    this.history = history;
    this.over = new Deferred();
    // A decision came between the end of the last meeting and this one.
    if (hasMet && this.core.state === 'RECOVERING') {
      this.over.resolve({ kind: 'recover' });
      return undefined;
    }
    // At the start of the job nobody can be in the midst of a recovery.
    if (this.inPlace !== undefined && !hasMet && (comm !== this.host.mpi.world || this.host.mpi.role === 'replacement')) {
      const joined = await this.inPlace.join(comm);
      if (joined !== undefined) return this.restoredInPlace(joined);
    } else if (!hasMet) this.enter(comm);
    let restored: Restored | undefined;
    try {
      restored = await this.restore();
    } catch (error) {
      if (!isFailure(error)) this.refuse(error as MultirailError);
    }
    // Fewer ranks read what belonged to others: until that is spread, there may be one place left that has it, and they wait.
    const mayRun = restored !== undefined && (restored.grouping === undefined || isOwnEach(restored.grouping));
    this.isAhead = mayRun && this.core.pending !== undefined && !this.begun.isDone;
    const begun = this.isAhead ? 'begun' : await this.begun.promise;
    // What decides that all begin may name a rank that has died when it had voted: the next meeting is due, and no program runs before it.
    if (this.over.isDone) return undefined;
    if (begun === 'begun') {
      const { grouping, epoch, save } = restored as Restored;
      if (grouping !== undefined && save !== undefined)
        this.images = new SavedImages(this.series, this.own, grouping, () => this.pieceOf({ epoch, k: save }), this.memory);
      this.inPlace?.programRuns();
      return restored;
    }
    throw begun as MultirailError;
  }

  /** The members are on this communicator now: agreements, and the word of deaths, are on it. */
  enter(comm: Communicator): void {
    this.closeImages();
    this.series?.close();
    this.comm = comm;
    this.begun = new Deferred();
    this.isAhead = false;
    this.taken = -1;
    this.refusal = undefined;
    const series = comm.recoverySeries('run');
    this.series = series;
    const { core } = this;
    core.meet();
    const die = (rank: number): void => {
      core.handleDeath(rank);
      this.obey();
    };
    series.onDeath = die;
    for (const rank of series.knownDead()) die(rank);
  }

  /** The own image of a save that is committed, or that this epoch is about to commit. */
  private pieceOf(name: SaveName): Piece | undefined {
    const { slots, pending } = this.core;
    const slot = slots.find(name) ?? (pending !== undefined && isSameSave(pending.name, name) ? pending : undefined);
    return slot?.own;
  }

  // ---------------------------------------------------------------- for recovery in place

  get settings(): Settings {
    return this.host.settings;
  }

  warn(text: string): void {
    this.host.warn(text);
  }

  /** Messages of saves are on that communicator. */
  useForSaves(own: Communicator): void {
    this.own = own;
    this.series.own.add(own.contextId);
    if (this.inPlace !== undefined) this.outcomes.useForSaves(this.series, own);
    this.copies = new Copies(
      own,
      this.core,
      this.memory,
      () => this.obey(),
      (error) => this.refuse(error),
    );
  }

  /** This process has a place on the communicator of the program. */
  openProgram(comm: Communicator, base: FamilyBase): ProgramLog {
    this.program = new ProgramLog(comm, this.host.mpi.params.int('ft_log_bytes_max'), base, this.periods, {
      warn: (text) => this.warn(text),
      outcomes: this.outcomes,
      within: this.within,
      // Whatever the program makes of it.
      differs: (error) => this.over.resolve({ kind: 'failed', error }),
    });
    return this.program;
  }

  /** The members are others than before: returns the ranks of those that have failed. */
  leaveBehind(next: Communicator): readonly number[] {
    const { comm, own } = this;
    const failed = lostRanks(comm, next);
    const { history } = this;
    // One recovery is about all that have failed until it has ended.
    const before = history.settled === history.failures ? [] : history.failed;
    this.history = { ...history, failed: [...new Set([...before, ...failed])], failures: history.failures + failed.length };
    // Both are revoked, and are freed without waiting for anybody; the world cannot be.
    for (const one of new Set([comm, own])) if (one !== this.host.mpi.world) one.free().catch(() => undefined);
    return failed;
  }

  /** All have found what to begin with, and spread it again while the program runs. */
  begin(
    epoch: number,
    domains: Membership['domains'],
    plan: RecoveryPlan,
    fetched: Piece | undefined,
    inventories: Former['inventories'],
  ): void {
    const { core, rank } = this;
    const { line } = plan;
    this.domains = domains;
    if (line !== undefined) this.membership = { rank, domains };
    const placement = placementOf(domains, this.settings, () => undefined);
    core.place(rank, placement);
    this.outcomes.begin(placement, rank, epoch);
    this.isAhead = true;
    core.restore(epoch, line, fetched, line === undefined ? undefined : holdsOf(inventories, line));
    // Each has its own image of it, as a whole: successors read them.
    if (line !== undefined) {
      const grouping = domains.map((_, of) => [{ rank: of, bytes: Number.POSITIVE_INFINITY }]);
      // The next name is that of the epoch now, as of what is restored.
      const piece = (): Piece | undefined => this.pieceOf(line) ?? this.pieceOf({ epoch, k: line.k });
      this.images = new SavedImages(this.series, this.own, grouping, piece, this.memory);
    }
    this.obey();
  }

  protected restoredInPlace(joined: Joined): Restored {
    const { line, history } = joined;
    this.history = history;
    const known: Known = { periods: undefined, failures: history.failures, elapsedSeconds: 0 };
    const level = line === undefined ? undefined : 'memory';
    return { ...joined, isFirst: false, save: line?.k, level, grouping: undefined, known, isInPlace: true };
  }

  /** The communicator of saves has done its part. */
  async freeOwn(): Promise<void> {
    const { own } = this;
    if (own === this.freed || own === this.comm) return;
    this.freed = own;
    this.outcomes.stop();
    this.closeImages();
    await own.free();
  }
  private freed: Communicator | undefined;

  private closeImages(): void {
    this.images?.close();
    this.images = undefined;
  }

  closeSeries(): void {
    this.closeImages();
    this.series.close();
  }

  private async restore(): Promise<Restored> {
    const { comm, core, host } = this;
    const { settings } = host;
    await this.program?.close();
    this.program = undefined;
    this.outcomes.reset();
    this.useForSaves(await comm.dup());
    const view = await this.view();
    const views = await this.own.allgatherObject(view);
    requireSameSettings(views, this.rank);
    this.formGroups(views);
    if (this.inPlace !== undefined) {
      const first = Math.max(...views.map(({ nextLogged }) => nextLogged));
      this.openProgram(await comm.dup(), { first, owners: [...comm.group.worldRanks] });
    }
    const former = formerOf(views);
    // A successor takes the place of the one that it succeeds. Where there are fewer members than before, all have other ranks.
    const isSame = former === undefined || former.domains.length === comm.size;
    this.domains = isSame && former !== undefined ? former.domains : domainsOf(views, settings);
    const isNew = former === undefined || !isSame;
    const placement = placementOf(this.domains, settings, (text) => isNew && this.rank === 0 && host.warn(text));
    this.outcomes.begin(placement, this.rank);
    const before = isSame ? placement : placementOf(former.domains, settings, () => undefined);
    const plan = planRecovery(former?.inventories ?? [], before);
    if (plan.differs) host.warn(`formula (1) and the inventories differ: ${JSON.stringify(plan.line)} is gone back to`);
    let { line } = plan;
    let grouping = line === undefined ? undefined : groupingOf(line, plan, former as Former, comm.size, isSame);
    let fetched: Piece | undefined;
    let level: string | undefined = line === undefined ? undefined : 'memory';
    const newestEpoch = Math.max(...views.map(({ epoch }) => epoch));
    // Above all that is in a store, too: a save that is damaged there keeps its name.
    const epoch = Math.max(newestEpoch, ...views.map(({ storedEpoch }) => storedEpoch)) + 1;
    let images: ReturnType<typeof decodeImage>[] = [];
    let failure: unknown;
    const stored = line === undefined ? await readStoredLine(views, this.lines, this) : undefined;
    if (stored !== undefined) ({ line, level, fetched, grouping } = stored);
    try {
      if (line !== undefined && stored === undefined) {
        if (isSame) {
          const pieceOf = (name: SaveName, owner: number): Piece | undefined => core.slots.find(name)?.held.get(owner);
          fetched = await fetchImages(this.own, plan.transfers, pieceOf, this.memory);
        } else fetched = this.takeOver(line, plan, former, grouping as Grouping);
      } else if (line === undefined && newestEpoch >= 0 && !settings.mayRestart)
        throw new MultirailError(
          'ERR_CHECKPOINT',
          `rank ${this.rank}: no save is left that all ranks could go back to: keep more copies, or a level on disk`,
        );
      const own = fetched ?? (line === undefined ? undefined : core.slots.find(line)?.own);
      if (own !== undefined && grouping !== undefined) images = imagesIn(own, grouping[this.rank]);
    } catch (error) {
      if (isFailure(error)) throw error;
      failure = error;
    }
    const step = await this.allWhole(failure, images[0]?.header.step ?? 0);
    if (!isSame) core.regroup(this.rank, placement, line, fetched);
    else core.place(this.rank, placement);
    // From a store everything begins with that image.
    if (level !== 'memory' && isSame) core.slots.freeAll();
    const parts = grouping;
    this.copies.partsOf = (name, owner) =>
      parts !== undefined && line !== undefined && isSameSave(name, { epoch, k: line.k }) ? partsToTell(parts, owner) : undefined;
    const has = isSame && level === 'memory' && line !== undefined ? holdsOf(former?.inventories ?? [], line) : undefined;
    core.restore(epoch, line, isSame ? fetched : undefined, has);
    // A successor has its image of a save of theirs from now on, and is asked for it if another one fails before it is spread.
    if (isSame && line !== undefined) this.membership = { rank: this.rank, domains: this.domains };
    this.obey();
    const isFirst = newestEpoch < 0 && line === undefined;
    const sections = grouping !== undefined && isOwnEach(grouping) ? images[0]?.sections : undefined;
    const history = together(views);
    const known = knownOf(views, history);
    return { epoch, isFirst, save: line?.k, level, step, history, sections, grouping, known, isInPlace: false, isLast: false };
  }

  /** Nobody begins to spread what another rank could not read: its copy would never come. Returns the step of the save. */
  private async allWhole(failure: unknown, step: number): Promise<number> {
    const told = new Float64Array(2 * this.own.size);
    await this.own.allgather(Float64Array.of(failure === undefined ? 1 : 0, step), told);
    if (failure !== undefined) throw failure;
    const wrong = Array.from({ length: this.own.size }, (_, rank) => told[2 * rank]).indexOf(0);
    if (wrong >= 0)
      throw new MultirailError('ERR_CHECKPOINT', `rank ${this.rank} cannot begin: rank ${wrong} could not read its image, and says why`, {
        rank: this.rank,
        peer: wrong,
      });
    // A rank that has no image does not know it.
    return Math.max(...Array.from({ length: this.own.size }, (_, rank) => told[2 * rank + 1]));
  }

  /** The images that this rank has from now on, one after the other: its own part, and those that it gives for ranks that were left out. */
  private takeOver(line: SaveName, plan: RecoveryPlan, former: Former, grouping: Grouping): Piece {
    const { core, memory } = this;
    const parts = grouping[this.rank];
    const slot = core.slots.find(line);
    const taken = takenOver(entriesOf(line, former), plan.transfers, former.now, this.own.size)[this.rank];
    const pieces = taken.map(({ owner }) => (owner === core.rank ? slot?.own : slot?.held.get(owner)) as Piece);
    if (pieces.length === 1) return { ...pieces[0], parts };
    const bytes = pieces.reduce((sum, piece) => sum + piece.bytes, 0);
    const all = memory.take(bytes);
    let at = 0;
    for (const piece of pieces) {
      all.set(piece.memory as Uint8Array, at);
      at += piece.bytes;
    }
    return { bytes, crc: crc32c(all), memory: all, parts };
  }

  private lines: StoredLine[] = [];
  /** Failure domain of each rank of this epoch. */
  private domains: Membership['domains'] = [];
  history: History = NO_HISTORY;

  private async view(): Promise<View> {
    const { host } = this;
    this.lines = [];
    let error: string | undefined;
    let storedEpoch = -1;
    for (const level of host.settings.stores) {
      try {
        const { lines, refused, newestEpoch } = await storedLines(level, this.jobName, this.rank, this.comm.size);
        storedEpoch = Math.max(storedEpoch, newestEpoch);
        this.lines.push(...lines);
        for (const text of refused) host.warn(`a save is passed over: ${text}`);
      } catch (cause) {
        error = `level ${level.name} of rank ${this.rank}: ${(cause as Error).message}`;
      }
    }
    const stored = this.lines.map(
      ({ level, manifest, images }): StoredView => ({ level, epoch: manifest.epoch, k: manifest.k, size: manifest.size, images }),
    );
    return { ...this.viewInMemory(), stored, storedEpoch, error };
  }

  /** What this rank tells of itself, and has in memory. */
  viewInMemory(): View {
    const { core, host } = this;
    const place = { rank: this.rank, host: this.series.hosts[this.rank] };
    return {
      settings: host.settings.signature,
      epoch: core.epoch,
      inventory: inventoryOf(core.rank, core.slots),
      host: place.host,
      domain: namedDomain(host.settings.domain, place),
      group: namedDomain(host.settings.groups, place),
      membership: this.membership,
      stored: [],
      storedEpoch: -1,
      error: undefined,
      nextLogged: this.series.nextLogged,
      history: this.program === undefined ? this.history : { ...this.history, step: this.program.step },
      periods: this.membership === undefined ? undefined : this.periods.current,
      elapsedSeconds: (performance.now() - this.beganMs) / 1000,
    };
  }
}
