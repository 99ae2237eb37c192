// What every rank published: read when something is needed of that rank, and what follows from it for its rails. Both sides plan the rails of
// the start from what both published at the start, and hear of what came later the way in which they hear of every later change.
import type { BtlModule } from '../btl/btl.ts';
import { MultirailError } from '../errors.ts';
import type { PeerPlan } from '../progress/peers.ts';
import { checkEntry, checkUpdate, type ModexEntry, makeRails, mustHaveRail } from './modex.ts';
import { isCrowded, ownProcessors, type Processors } from './processors.ts';

/** The outcome of the modex: the entry of each rank, as it was sent. */
export interface ModexTable {
  at(rank: number): unknown;
}

export interface AddressBookOptions {
  rank: number;
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
  private hosts: readonly string[] | undefined;
  /** The own addresses are others than at the start. */
  isChanged = false;

  constructor(options: AddressBookOptions) {
    this.options = options;
  }

  /** What that rank published at the start. Throws ERR_INIT when it cannot be right. */
  entryOf(rank: number): ModexEntry {
    let entry = this.first.get(rank);
    if (entry === undefined) {
      const { own, table } = this.options;
      entry = rank === this.options.rank ? own : checkEntry(rank, table.at(rank));
      this.first.set(rank, entry);
    }
    return entry;
  }

  /** The host of each rank. */
  get hostIds(): readonly string[] {
    this.hosts ??= Array.from({ length: this.options.size }, (_, rank) => this.entryOf(rank).hostId);
    return this.hosts;
  }

  /** The ranks of this host are more than the processors that they may use. Looks at no more entries than that takes. */
  isHostCrowded(): boolean {
    const { own, size } = this.options;
    return isCrowded(own.processors ?? ownProcessors(), this.othersHere(), size - 1);
  }

  /** The processors of the other ranks of this host, the next ones first, which are likely to be there. */
  private *othersHere(): Generator<Processors | undefined> {
    const { rank, size, own } = this.options;
    for (let step = 1; step < size; step++) {
      let entry: ModexEntry;
      try {
        entry = this.entryOf((rank + step) % size);
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
    if (rank < 0 || rank >= this.options.size) return undefined;
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
    const entry = checkUpdate(rank, json, rank < this.options.size ? this.entryOf(rank) : undefined);
    if (this.planned.has(rank)) this.tell(rank, entry);
    else this.later.set(rank, json);
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
