// The saves of one rank as they are driven: the pure machine of src/ft/checkpoint, its votes, copies and stores, on the communicator that
// the program runs on now. An epoch lasts from one meeting of the members to the next.
import { createHash } from 'node:crypto';
import { MultirailError } from '../../errors.ts';
import type { Communicator } from '../../mpi/communicator.ts';
import type { RecoverySeries } from '../../mpi/ft/recovery-series.ts';
import type { Runtime } from '../../mpi/runtime.ts';
import { crc32c } from '../../native/crc32c.ts';
import { Placement } from '../checkpoint/placement.ts';
import { type Inventory, inventoryOf, planRecovery } from '../checkpoint/recovery-plan.ts';
import { SaveCore } from '../checkpoint/save-core.ts';
import { compareSaves, type Piece, type SaveName, saveText } from '../checkpoint/slots.ts';
import { decodeImage } from '../image/decode.ts';
import type { Manifest } from '../image/manifest.ts';
import { checkScheme } from '../plan/scheme.ts';
import { Copies, fetchImages, isFailure } from './exchange.ts';
import { ImageMemory } from './memory.ts';
import type { Settings } from './options.ts';
import { readStored, type StoredLine, storedLines } from './store-levels.ts';

/** What is wrong with an image itself, and not with the store that has it. */
const DAMAGED: readonly string[] = ['ERR_CORRUPT', 'ERR_CHECKPOINT', 'ERR_SUPPORT'];

/** How the reading of an image has ended, as ranks tell each other. */
const READ = { WHOLE: 0, DAMAGED: 1, FAILED: 2 } as const;

/** How an epoch ends. */
export type EpochEnd = { readonly kind: 'ended' | 'recover' };

/** How the save that is under way has ended. */
export type SaveEnd = { readonly committed: SaveName | undefined; readonly error: MultirailError | undefined };

/** What a run of the program begins with. */
export interface Restored {
  readonly epoch: number;
  /** Nobody has run the program before, as far as is known. */
  readonly isFirst: boolean;
  /** Undefined: from the beginning. */
  readonly save: number | undefined;
  readonly level: string | undefined;
  readonly step: number;
  /** What all together know of the failures so far. */
  readonly history: History;
  readonly sections: ReturnType<typeof decodeImage>['sections'] | undefined;
}

/** Failures of the job as the members know them; a successor knows none, and takes what the others know. */
export interface History {
  /** Ranks that the last recovery is about. */
  readonly failed: readonly number[];
  /** Failures so far. */
  readonly failures: number;
  /** How far this rank had come. */
  readonly step: number;
  /** Steps that were lost in all recoveries so far. */
  readonly lostSteps: number;
}

/** What every member tells the others when they meet. */
interface View {
  readonly settings: string;
  readonly epoch: number;
  readonly inventory: Inventory;
  readonly host: string;
  /** Failure domain of each rank, where it is known from an earlier epoch. */
  readonly domains: readonly (string | number)[] | undefined;
  readonly stored: readonly { readonly level: number; readonly epoch: number; readonly k: number; readonly size: number }[];
  /** The newest epoch of which anything is in a store; -1: nothing is. */
  readonly storedEpoch: number;
  readonly error: string | undefined;
  readonly history: History;
}

export interface EpochHost {
  readonly mpi: Runtime;
  readonly settings: Settings;
  warn(text: string): void;
}

class Deferred<T> {
  readonly promise: Promise<T>;
  resolve!: (value: T) => void;
  isDone = false;

  constructor() {
    this.promise = new Promise((resolve) => {
      this.resolve = (value) => {
        this.isDone = true;
        resolve(value);
      };
    });
  }
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
  private readonly host: EpochHost;
  private begun = new Deferred<'begun' | MultirailError | undefined>();
  private saveEnd: Deferred<SaveEnd> | undefined;
  private domains: readonly (string | number)[] | undefined;
  /** Why this rank could not make or take its part. */
  private refusal: MultirailError | undefined;
  private isObeying = false;
  /** Told of the end of a save in a blocking call, where no promise is settled. */
  onSaveEnd: ((end: SaveEnd) => void) | undefined;
  /** In a blocking call copies are sent and taken by it. */
  isSync = false;

  constructor(host: EpochHost, comm: Communicator) {
    const { mpi, settings } = host;
    this.host = host;
    this.core = new SaveCore({ rank: comm.rank, depth: settings.depth });
    const hosts = comm.recoverySeries('run');
    const here = hosts.hosts.filter((name) => name === hosts.hosts[comm.rank]).length;
    hosts.close();
    this.memory = new ImageMemory(mpi.params.int('ft_memory_bytes_max'), here);
    this.jobName = mpi.params.string('ft_job');
    this.jobId = new Uint8Array(createHash('sha256').update(this.jobName).digest().subarray(0, 16));
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
            this.begun.resolve('begun');
            this.endSave({ committed: action.name, error: undefined });
            break;
          case 'abandoned':
            this.begun.resolve(this.refusal);
            this.endSave({ committed: undefined, error: this.abandonedError(action.name) });
            break;
          case 'recover':
            this.begun.resolve(undefined);
            this.endSave({ committed: undefined, error: this.abandonedError(core.nextName) });
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
    return (
      this.refusal ??
      new MultirailError('ERR_CHECKPOINT', `${saveText(name)} was abandoned: another rank could not make or take its part, and says why`, {
        rank: this.rank,
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
    this.copies.take(this.core.placement.owners(this.rank, k));
  }

  // ---------------------------------------------------------------- meeting

  /** All members meet, find what to go back to, and spread it again. Undefined: somebody has failed meanwhile. */
  async meet(comm: Communicator, history: History): Promise<Restored | undefined> {
    this.comm = comm;
    this.history = history;
    this.over = new Deferred();
    this.begun = new Deferred();
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
    let restored: Restored | undefined;
    try {
      restored = await this.restore();
    } catch (error) {
      if (!isFailure(error)) this.refuse(error as MultirailError);
    }
    const begun = await this.begun.promise;
    if (begun === 'begun') return restored;
    if (this.over.isDone) return undefined;
    throw (
      begun ??
      new MultirailError('ERR_CHECKPOINT', `rank ${this.rank} cannot begin: another rank could not restore its state, and says why`)
    );
  }

  /** The communicator of saves has done its part. */
  async freeOwn(): Promise<void> {
    const { own } = this;
    if (own === this.freed) return;
    this.freed = own;
    await own.free();
  }
  private freed: Communicator | undefined;

  closeSeries(): void {
    this.series.close();
  }

  private async restore(): Promise<Restored> {
    const { comm, core, host } = this;
    const { settings } = host;
    this.own = await comm.dup();
    this.series.own.add(this.own.contextId);
    this.copies = new Copies(
      this.own,
      core,
      this.memory,
      () => this.obey(),
      (error) => this.refuse(error),
    );
    const view = await this.view();
    const views = await this.own.allgatherObject(view);
    const other = views.findIndex(({ settings: one }) => one !== settings.signature);
    if (other >= 0)
      throw new MultirailError(
        'ERR_ARG',
        `options of run() at rank ${this.rank}: ${settings.signature}, and at rank ${other}: ${views[other].settings}; expected the same at all ranks`,
      );
    this.place(views);
    const plan = planRecovery(
      views.map(({ inventory }) => inventory),
      core.placement,
    );
    if (plan.differs) host.warn(`formula (1) and the inventories differ: ${JSON.stringify(plan.line)} is gone back to`);
    let { line } = plan;
    let fetched: Piece | undefined;
    let level: string | undefined = line === undefined ? undefined : 'memory';
    const newestEpoch = Math.max(...views.map(({ epoch }) => epoch));
    // Above all that is in a store, too: a save that is damaged there keeps its name.
    const epoch = Math.max(newestEpoch, ...views.map(({ storedEpoch }) => storedEpoch)) + 1;
    let image: ReturnType<typeof decodeImage> | undefined;
    let failure: unknown;
    const stored = line === undefined ? await this.readStoredLine(views) : undefined;
    if (stored !== undefined) ({ line, level, fetched } = stored);
    try {
      if (line !== undefined && stored === undefined) {
        const pieceOf = (name: SaveName, owner: number): Piece | undefined => core.slots.find(name)?.held.get(owner);
        fetched = await fetchImages(this.own, plan.transfers, pieceOf, this.memory);
      } else if (line === undefined && newestEpoch >= 0 && !settings.mayRestart)
        throw new MultirailError(
          'ERR_CHECKPOINT',
          `rank ${this.rank}: no save is left that all ranks could go back to: keep more copies, or a level on disk`,
        );
      const own = fetched ?? (line === undefined ? undefined : core.slots.find(line)?.own);
      image = own === undefined ? undefined : decodeImage(own.memory as Uint8Array, crc32c);
    } catch (error) {
      if (isFailure(error)) throw error;
      failure = error;
    }
    // Nobody begins to spread what another rank could not read: its copy would never come.
    const wholes = new Float64Array(this.own.size);
    await this.own.allgather(Float64Array.of(failure === undefined ? 1 : 0), wholes);
    if (failure !== undefined) throw failure;
    const wrong = wholes.indexOf(0);
    if (wrong >= 0)
      throw new MultirailError('ERR_CHECKPOINT', `rank ${this.rank} cannot begin: rank ${wrong} could not read its image, and says why`, {
        rank: this.rank,
        peer: wrong,
      });
    // From a store everything begins with that image.
    if (level !== 'memory') core.slots.freeAll();
    core.restore(epoch, line, fetched);
    this.obey();
    const isFirst = newestEpoch < 0 && line === undefined;
    return { epoch, isFirst, save: line?.k, level, step: image?.header.step ?? 0, history: together(views), sections: image?.sections };
  }

  /**
   * The newest save in a store of which every rank can read its image, and that image: what is damaged is passed over for an older save, or the
   * same at another level. Undefined: no save is there.
   */
  private async readStoredLine(views: readonly View[]): Promise<{ line: SaveName; level: string; fetched: Piece } | undefined> {
    const { stores } = this.host.settings;
    let failure: MultirailError | undefined;
    for (const { level, epoch, k } of this.storedCandidates(views)) {
      const line = { epoch, k };
      const from = stores.find(({ index }) => index === level) as Settings['stores'][number];
      const isIt = (one: StoredLine): boolean => one.level === level && compareSaves(nameOf(one.manifest), line) === 0;
      let memory: Uint8Array | undefined;
      failure = undefined;
      try {
        memory = await readStored(from, this.jobName, (this.lines.find(isIt) as StoredLine).manifest, this.rank);
      } catch (error) {
        if (!(error instanceof MultirailError)) throw error;
        failure = error;
      }
      const isDamaged = failure !== undefined && DAMAGED.includes(failure.code);
      const ends = new Float64Array(this.own.size);
      await this.own.allgather(Float64Array.of(failure === undefined ? READ.WHOLE : isDamaged ? READ.DAMAGED : READ.FAILED), ends);
      if (memory !== undefined && ends.every((end) => end === READ.WHOLE)) {
        this.memory.adopt(memory);
        return { line, level: from.name, fetched: { bytes: memory.length, crc: crc32c(memory), memory } };
      }
      const wrong = ends.findIndex((end) => end !== READ.WHOLE);
      failure ??= new MultirailError(
        'ERR_CHECKPOINT',
        `rank ${this.rank} cannot begin: rank ${wrong} could not read its image of ${saveText(line)} at level ${from.name}, and says why`,
        { rank: this.rank, peer: wrong },
      );
      // A store that fails may have it all the same: an older save would be a wrong answer.
      if (ends.includes(READ.FAILED)) throw failure;
      this.host.warn(`${saveText(line)} at level ${from.name} is passed over: ${failure.message}`);
    }
    if (failure !== undefined) throw failure;
    return undefined;
  }

  private lines: StoredLine[] = [];
  private history: History = { failed: [], failures: 0, step: 0, lostSteps: 0 };

  private async view(): Promise<View> {
    const { core, host, series } = this;
    this.lines = [];
    let error: string | undefined;
    let storedEpoch = -1;
    for (const level of host.settings.stores) {
      try {
        const { lines, refused, newestEpoch } = await storedLines(level, this.jobName, this.rank);
        storedEpoch = Math.max(storedEpoch, newestEpoch);
        this.lines.push(...lines);
        for (const text of refused) host.warn(`a save is passed over: ${text}`);
      } catch (cause) {
        error = `level ${level.name} of rank ${this.rank}: ${(cause as Error).message}`;
      }
    }
    return {
      settings: host.settings.signature,
      epoch: core.epoch,
      inventory: inventoryOf(this.rank, core.slots),
      host: series.hosts[this.rank],
      domains: this.domains,
      stored: this.lines.map(({ level, manifest }) => ({ level, ...nameOf(manifest), size: manifest.size })),
      storedEpoch,
      error,
      history: this.history,
    };
  }

  /** Domains stay as they were at the first meeting: a successor takes the position of the one that it succeeds. */
  private place(views: readonly View[]): void {
    const { settings } = this.host;
    const known = views.find(({ domains }) => domains !== undefined)?.domains;
    const hosts = views.map(({ host }) => host);
    const isOneHost = new Set(hosts).size === 1;
    const byHost = settings.domain === 'host' || (settings.domain === undefined && !isOneHost);
    this.domains = known ?? (byHost ? hosts : [...hosts.keys()]);
    const count = new Set(this.domains).size;
    const asked = { domains: count, duplication: Math.min(settings.duplication, count - 1), depth: settings.depth };
    const { scheme, warning } = checkScheme(asked);
    if (this.rank === 0 && known === undefined) {
      if (asked.duplication < settings.duplication)
        this.host.warn(`duplication = ${settings.duplication} with ${count} failure domains: ${asked.duplication} is used`);
      if (warning !== undefined) this.host.warn(warning);
    }
    this.core.placement = new Placement(this.domains, scheme.duplication, scheme.depth);
  }

  /** Saves in stores of which every rank has its image, newest first. */
  private storedCandidates(views: readonly View[]): View['stored'] {
    const first = views.find(({ error }) => error !== undefined)?.error;
    if (first !== undefined) throw new MultirailError('ERR_STORE', `saves cannot be looked for: ${first}`, { rank: this.rank });
    const { size } = this.comm;
    const isAt = (view: View, one: View['stored'][number]): boolean =>
      view.stored.some(({ level, epoch, k }) => level === one.level && epoch === one.epoch && k === one.k);
    const found = [...views[0].stored]
      .sort((a, b) => compareSaves(b, a) || a.level - b.level)
      .filter((one) => views.every((view) => isAt(view, one)));
    const other = found[0];
    if (other !== undefined && other.size !== size)
      throw new MultirailError(
        'ERR_CHECKPOINT',
        `${saveText(other)} of job "${this.jobName}" was made by ${other.size} ranks, and there are ${size}: start as many, choose another name (ft_job), or read its images with readImage()`,
        { rank: this.rank },
      );
    return found.filter((one) => one.size === size);
  }
}

/** The same at all members. */
function together(views: readonly View[]): History {
  const all = views.map(({ history }) => history);
  const most = (of: (history: History) => number): number => Math.max(...all.map(of));
  const failed = all.find(({ failed: ranks }) => ranks.length > 0)?.failed ?? [];
  return { failed, failures: most((one) => one.failures), step: most((one) => one.step), lostSteps: most((one) => one.lostSteps) };
}

const nameOf = ({ epoch, k }: Manifest): SaveName => ({ epoch, k });
