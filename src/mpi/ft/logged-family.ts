// The communicators that are made of a logged one, and of those again: their messages are logged, too. Their ids are such that a successor gives
// the same ones when it makes them again, and it is given back those that were there at the save which it begins from.
import { MultirailError } from '../../errors.ts';
import { PROCESSES_MAX } from '../../ulfm/limits.ts';
import type { ContextTable } from '../contexts.ts';
import type { Group } from '../group.ts';

/** What a communicator counts: a successor goes on with the numbers of the save. */
export interface StreamCounters {
  collectives: number;
  objects: number;
}

/** A communicator, as far as its streams go. */
export interface LoggedPlace {
  readonly id: number;
  readonly group: Group;
  /** Told when a member has a successor. */
  readonly desk: { memberSucceeded(): void };
  readonly counters: StreamCounters;
}

/** What all members have agreed on before anything is logged; successors are told. */
export interface FamilyBase {
  /** Ids with this count and higher ones are the family's. */
  readonly first: number;
  /** By rank: the process that had the place first. Its number is in the ids that whoever has the place gives. */
  readonly owners: readonly number[];
}

/** A communicator of the family that is there at a save. */
export interface MadeImage {
  readonly id: number;
  /** The call that has made it: the id of what it was made of, and the arguments. */
  readonly call: string;
  /** By its own rank: ranks in the communicator that the family is of. */
  readonly members: readonly number[];
  readonly counters: StreamCounters;
}

export class LoggedFamily {
  readonly base: FamilyBase;
  private readonly contexts: ContextTable;
  /** The communicator that all are made of. */
  private readonly root: LoggedPlace;
  private readonly owner: number;
  /** So many were made that this rank had to give the id of. */
  private created = 0;
  /** Those that are there, in the order in which they were made. */
  private readonly made = new Map<number, { readonly call: string; readonly place: LoggedPlace }>();
  /** Those that have come to their end: whatever comes for them is a late copy. */
  private readonly ended = new Set<number>();
  /** Of the save that this process has begun from, those that the program has not made again. Undefined: it makes new ones. */
  private saved: MadeImage[] | undefined;

  constructor(contexts: ContextTable, root: LoggedPlace, base: FamilyBase) {
    this.contexts = contexts;
    this.root = root;
    this.base = base;
    this.owner = base.owners[root.group.rank];
  }

  has(id: number): boolean {
    return id === this.root.id || id >= this.base.first * PROCESSES_MAX;
  }

  /** Messages may come for it, though it may not have been made here yet: a successor gets those of the logs before it comes to that. */
  mayCome(id: number): boolean {
    return this.has(id) && !this.ended.has(id);
  }

  /** The same when it is asked for again. */
  allocate(): number {
    const id = this.contexts.loggedId(this.base.first + this.created, this.owner);
    this.created++;
    return id;
  }

  /** Those who have the places of these processes now. */
  current(numbers: readonly number[]): number[] {
    const { group } = this.root;
    return numbers.map((number) => group.worldRanks[group.rankOf(number) as number]);
  }

  adopt(place: LoggedPlace, call: string): void {
    this.contexts.noteLogged(place.id);
    this.made.set(place.id, { call, place });
  }

  end(id: number): void {
    if (!this.has(id)) return;
    this.made.delete(id);
    this.ended.add(id);
  }

  get ids(): number[] {
    return [...this.made.keys()];
  }

  /** That process has the place of the other one, in all of them. */
  succeed(number: number, successor: number): void {
    for (const { place } of this.made.values()) {
      const rank = place.group.rankOf(number);
      if (rank === undefined) continue;
      place.group.succeed(rank, successor);
      place.desk.memberSucceeded();
    }
  }

  // ---------------------------------------------------------------- saves

  cut(): { readonly created: number; readonly made: MadeImage[] } {
    const { group } = this.root;
    const made = [...this.made.values()].map(({ call, place: { id, group: own, counters } }): MadeImage => {
      const { collectives, objects } = counters;
      return { id, call, members: own.worldRanks.map((number) => group.rankOf(number) as number), counters: { collectives, objects } };
    });
    return { created: this.created, made };
  }

  /** This process begins from that save. */
  restore({ created, made }: { readonly created: number; readonly made: readonly MadeImage[] }): void {
    this.created = created;
    this.saved = [...made];
    for (const { id } of made) this.contexts.noteLogged(id);
  }

  get isRemaking(): boolean {
    return this.saved !== undefined && this.saved.length > 0;
  }

  /**
   * The program makes a communicator. Undefined: with the others. Where this process has begun from a save, they have made those before that
   * are in it, and do not make them again.
   */
  given(call: string): MadeImage | undefined {
    const { saved } = this;
    const at = saved?.findIndex((one) => one.call === call) ?? -1;
    return saved === undefined || at < 0 ? undefined : saved.splice(at, 1)[0];
  }

  /**
   * The first step of the program ends: from now on it makes new ones.
   *
   * @throws ERR_REPLAY: it has not made all again that were there.
   */
  beginSteps(): void {
    const { saved } = this;
    this.saved = undefined;
    if (saved === undefined || saved.length === 0) return;
    const { rank } = this.root.group;
    const calls = saved.map(({ call }) => call).join(', ');
    throw new MultirailError(
      'ERR_REPLAY',
      `rank ${rank}, which has the place of a rank that failed, has not made again what was there at the save that it begins from, by ${calls}: make the same communicators in each run of the program, before the end of its first step`,
      { rank },
    );
  }
}
