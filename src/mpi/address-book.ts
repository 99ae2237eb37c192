// What every rank published: read when something is needed of that rank, and what follows from it for its rails. Both sides plan the rails of
// the start from what both published at the start, and hear of what came later the way in which they hear of every later change.
import type { BtlModule } from '../btl/btl.ts';
import { MultirailError } from '../errors.ts';
import type { PeerPlan } from '../progress/peers.ts';
import { checkEntry, checkUpdate, type ModexEntry, makeRails, mustHaveRail } from './modex.ts';
import { isCrowded, ownProcessors, type Processors, roomOf } from './processors.ts';

/** The outcome of the modex: the entry of each rank, as it was sent. */
export interface ModexTable {
  at(rank: number): unknown;
  /** At a process that has joined after the start: so many numbers had been given. Those without an entry are over. */
  readonly count?: number;
}

export interface AddressBookOptions {
  /** Number of this process. */
  rank: number;
  /** Processes of the start. */
  size: number;
  /** As the other ranks see it. */
  own: ModexEntry;
  table: ModexTable;
  modules: readonly BtlModule[];
  /** There is no rail to that rank yet, and what is waited for. */
  onWaiting(rank: number, text: string): void;
}

export class AddressBook {
  private readonly options: AddressBookOptions;
  /** Entries of the start that were looked at. */
  private readonly first = new Map<number, ModexEntry>();
  /** What ranks published later, before anything was needed of them. */
  private readonly later = new Map<number, unknown>();
  private readonly planned = new Set<number>();
  /** Those of which it was told that there is no rail yet. */
  private readonly waiting = new Set<number>();
  /** What processes published that have joined since. */
  private readonly joined = new Map<number, unknown>();
  private known: readonly number[] | undefined;
  /** Processes that were over when this one joined. */
  private readonly over = new Set<number>();
  /** The own addresses are others than at the start. */
  isChanged = false;

  constructor(options: AddressBookOptions) {
    this.options = options;
  }

  /** Numbers below it had been given when this process joined. */
  private get count(): number {
    const { size, table } = this.options;
    return table.count ?? size;
  }

  /** Numbers of the processes of the job that published something, ascending; those that were over when this one joined are not among them. */
  get numbers(): readonly number[] {
    if (this.known === undefined) {
      const { table, rank } = this.options;
      const early = Array.from({ length: this.count }, (_, number) => number);
      const there = table.count === undefined ? early : early.filter((number) => number === rank || table.at(number) !== undefined);
      this.known = [...there, ...this.joined.keys()].sort((a, b) => a - b);
    }
    return this.known;
  }

  /** Those behind this process in the ring of all, the next one first. */
  get others(): number[] {
    const { rank } = this.options;
    const { numbers } = this;
    return [...numbers.filter((number) => number > rank), ...numbers.filter((number) => number < rank)];
  }

  /** The next one and the last one of those. */
  get neighbours(): ReadonlySet<number> {
    const { others } = this;
    return new Set([...others.slice(0, 1), ...others.slice(-1)]);
  }

  /** A process has joined. What it published is read when something is needed of it. */
  add(number: number, json: unknown): void {
    this.joined.set(number, json);
    this.known = undefined;
  }

  /** A process was over when this one joined. Others of which nothing is known may have a number, and have not joined yet. */
  wasOver(number: number): void {
    this.over.add(number);
  }

  private isKnown(number: number): boolean {
    const { table } = this.options;
    if (number < 0 || number >= this.count || this.joined.has(number)) return this.joined.has(number);
    return table.count === undefined || number === this.options.rank || this.over.has(number) || table.at(number) !== undefined;
  }

  /** What that rank published at the start. Throws ERR_INIT when it cannot be right. */
  entryOf(rank: number): ModexEntry {
    let entry = this.first.get(rank);
    if (entry === undefined) {
      const { own, table } = this.options;
      entry = rank === this.options.rank ? own : checkEntry(rank, this.joined.has(rank) ? this.joined.get(rank) : table.at(rank));
      this.first.set(rank, entry);
    }
    return entry;
  }

  /** The host of a process; empty where that was over when this one joined. */
  hostOf(number: number): string {
    const { rank, table } = this.options;
    const isThere = number === rank || this.first.has(number) || this.joined.has(number) || table.at(number) !== undefined;
    return isThere ? this.entryOf(number).hostId : '';
  }

  /** The ranks of this host are more than the processors that they may use. Looks at no more entries than that takes. */
  isHostCrowded(): boolean {
    const { own } = this.options;
    return isCrowded(own.processors ?? ownProcessors(), this.othersHere(), this.numbers.length - 1);
  }

  /** How many processors this rank may use at a time, a part of one included. */
  get room(): number {
    return roomOf(this.options.own.processors ?? ownProcessors());
  }

  /** The processors of the other ranks of this host, the next ones first, which are likely to be there. */
  private *othersHere(): Generator<Processors | undefined> {
    const { own } = this.options;
    for (const number of this.others) {
      let entry: ModexEntry;
      try {
        entry = this.entryOf(number);
      } catch {
        // Whoever needs something of that rank is told.
        continue;
      }
      if (entry.hostId === own.hostId) yield entry.processors;
    }
  }

  /** Throws ERR_INIT when there will never be a rail to that rank. Makes none. */
  check(rank: number): void {
    const { own, modules } = this.options;
    mustHaveRail(this.options.rank, rank, modules, own, this.entryOf(rank), (text) => this.waitsFor(rank, text));
  }

  /** The rails to that rank; to be called once. Throws ERR_INIT when there will never be one. */
  plan(rank: number): PeerPlan {
    const { own, modules } = this.options;
    const entry = this.entryOf(rank);
    const endpoints = makeRails(this.options.rank, rank, modules, own, entry, (text) => this.waitsFor(rank, text));
    this.planned.add(rank);
    const later = this.later.get(rank);
    this.later.delete(rank);
    if (later !== undefined) this.tell(rank, checkUpdate(rank, later, entry));
    else if (this.isChanged && rank !== this.options.rank) this.tell(rank, entry);
    const { incarnation, unexpectedBytesMax } = entry;
    return { incarnation, endpoints, unexpectedBytesMax };
  }

  /** As plan(), for a rank that something is needed of while the job runs: what is wrong with its addresses is a failure of that rank. */
  planLate(rank: number): PeerPlan | undefined {
    if (!this.isKnown(rank)) return undefined;
    try {
      return this.plan(rank);
    } catch (cause) {
      const error = cause as Error;
      const failure =
        error instanceof MultirailError
          ? error
          : new MultirailError('ERR_INIT', error.message, { rank: this.options.rank, peer: rank, cause });
      return { incarnation: 0, endpoints: [], unexpectedBytesMax: 0, failure };
    }
  }

  /** That rank published its addresses again. Throws ERR_PROTOCOL where they cannot be right. */
  update(rank: number, json: unknown): void {
    const entry = checkUpdate(rank, json, this.isKnown(rank) ? this.entryOf(rank) : undefined);
    if (this.planned.has(rank)) this.tell(rank, entry);
    else this.later.set(rank, json);
  }

  /** That rank has failed: what stays is which process it was, and on which host. One without a plan keeps its entry, which a plan is made of. */
  forgetAddresses(rank: number): void {
    const entry = this.first.get(rank);
    if (entry === undefined || !this.planned.has(rank)) return;
    const { version, incarnation, hostId, unexpectedBytesMax } = entry;
    const rest: ModexEntry = { version, incarnation, hostId, unexpectedBytesMax, btl: {}, excluded: {} };
    this.first.set(rank, rest);
    if (this.joined.has(rank)) this.joined.set(rank, rest);
  }

  private waitsFor(rank: number, text: string): void {
    if (this.waiting.has(rank)) return;
    this.waiting.add(rank);
    this.options.onWaiting(rank, text);
  }

  private tell(rank: number, entry: ModexEntry): void {
    let wrong: unknown;
    for (const module of this.options.modules) {
      if (!Object.hasOwn(entry.btl, module.name)) continue;
      try {
        module.remoteAddressChanged(rank, entry.btl[module.name]);
      } catch (error) {
        wrong = error;
      }
    }
    if (wrong !== undefined) throw wrong;
  }
}
