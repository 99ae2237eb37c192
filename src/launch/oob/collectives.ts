// What ranks do together over the out-of-band channel: the modex (an allgather), its continuation for processes that join later, and
// barriers, on the launcher's side. Pure: it is told who arrives and who ends, and sends through a function.
import { MultirailError } from '../../errors.ts';
import { decodeJson, MODEX_BYTES_MAX, NAME_BYTES_MAX, type OobBodies, type OobKind } from './messages.ts';
import { packModex } from './modex-table.ts';

/** Barriers with different names that may be open at the same time. */
const BARRIERS_MAX = 1024;

interface Barrier {
  arrived: Set<number>;
  tolerant: boolean;
}

type Send = <K extends OobKind>(rank: number, kind: K, body: OobBodies[K]) => void;

/** What the collectives know of the processes of the job. */
export interface CollectiveHost {
  /** Processes that have a number: it grows. */
  readonly count: number;
  hasEnded(rank: number): boolean;
  /** At barriers nobody waits for that one. */
  standsBy(rank: number): boolean;
  send: Send;
  /** All ranks of the start have given their parts to the modex. */
  onMet(): void;
  /** A process that joins after the start is about to get the entries of the others: whatever else there is to know goes before them. */
  beforeEntries(rank: number): void;
  /** That process has the entries of the others: they get its own. */
  afterEntries(rank: number, json: Uint8Array): void;
}

export class OobCollectives {
  private readonly size: number;
  private readonly host: CollectiveHost;
  private readonly barriers = new Map<string, Barrier>();
  /** Parts given to the modex that is open. */
  private entries = new Map<number, Uint8Array>();
  private modexDone = false;
  /** What each process published first, and what it published last where that is something else: for those that join later. */
  private readonly first = new Map<number, Uint8Array>();
  private readonly last = new Map<number, Uint8Array>();
  /** Entries of processes that came before the start was done. */
  private readonly waiting = new Map<number, Uint8Array>();

  /** `size`: processes of the start. */
  constructor(size: number, host: CollectiveHost) {
    this.size = size;
    this.host = host;
  }

  modexPut(rank: number, json: Uint8Array): void {
    checkModexEntry(json);
    if (this.entries.has(rank) || this.waiting.has(rank) || (rank >= this.size && this.first.has(rank)))
      throw new MultirailError('ERR_PROTOCOL', 'a rank sent a second modex entry before the modex was done');
    if (rank >= this.size) {
      this.waiting.set(rank, json);
      if (this.modexDone) this.takeWaiting();
      return;
    }
    this.entries.set(rank, json);
    this.judgeModex();
  }

  modexUpdate(rank: number, json: Uint8Array): void {
    checkModexEntry(json);
    for (const open of [this.entries, this.waiting]) if (open.has(rank)) open.set(rank, json);
    // Before its modex is done nobody knows an address that could be out of date.
    if (!this.first.has(rank)) return;
    this.last.set(rank, json);
    for (const other of this.first.keys()) if (other !== rank) this.host.send(other, 'modexUpdate', { rank, json });
  }

  /** That process is over: what it published is needed no more. */
  forget(rank: number): void {
    this.first.delete(rank);
    this.last.delete(rank);
    this.waiting.delete(rank);
  }

  /** Processes that have joined get the entries of all that live, the later ones also those of the earlier ones. */
  private takeWaiting(): void {
    for (const [rank, json] of [...this.waiting]) {
      this.waiting.delete(rank);
      this.first.set(rank, json);
      this.host.beforeEntries(rank);
      const { count } = this.host;
      this.sendEntries([rank], (other) => this.first.get(other), count, count);
      for (const [other, changed] of this.last) this.host.send(rank, 'modexUpdate', { rank: other, json: changed });
      this.host.afterEntries(rank, json);
    }
  }

  private sendEntries(to: Iterable<number>, of: (rank: number) => Uint8Array | undefined, entries: number, count: number): void {
    const pieces = packModex(Array.from({ length: entries }, (_, rank) => of(rank) ?? new Uint8Array(0)));
    for (const rank of to)
      for (const [i, packed] of pieces.entries()) this.host.send(rank, 'modexPart', { packed, last: i === pieces.length - 1, count });
  }

  barrierEnter(rank: number, name: string, tolerant: boolean): void {
    if (Buffer.byteLength(name) > NAME_BYTES_MAX) throw new MultirailError('ERR_PROTOCOL', 'the name of a barrier is too long');
    let barrier = this.barriers.get(name);
    if (barrier === undefined) {
      if (this.barriers.size >= BARRIERS_MAX) throw new MultirailError('ERR_PROTOCOL', `more than ${BARRIERS_MAX} barriers are open`);
      barrier = { arrived: new Set(), tolerant };
      this.barriers.set(name, barrier);
    }
    if (barrier.arrived.has(rank)) throw new MultirailError('ERR_PROTOCOL', `a rank entered barrier "${name}" twice`);
    // One rank that wants certainty makes the barrier strict for all: everybody gets the same answer.
    barrier.tolerant &&= tolerant;
    barrier.arrived.add(rank);
    this.judgeBarrier(name, barrier);
  }

  /** Ranks that have not come to a barrier that is open, and may still come. */
  missingAt(name: string): number[] {
    const barrier = this.barriers.get(name);
    return barrier === undefined ? [] : this.missingOf(barrier).missing.filter((rank) => !this.host.hasEnded(rank));
  }

  /** Some rank has ended, or stands by: what waits for it fails, or goes on without it. */
  rankEnded(): void {
    if (this.entries.size > 0) this.judgeModex();
    for (const [name, barrier] of [...this.barriers]) this.judgeBarrier(name, barrier);
  }

  /** Ranks that have not arrived, and those of them that never will. */
  private missing(count: number, arrived: { has(rank: number): boolean }): { missing: number[]; dead: number[] } {
    const missing: number[] = [];
    for (let rank = 0; rank < count; rank++) if (!arrived.has(rank)) missing.push(rank);
    return { missing, dead: missing.filter((rank) => this.host.hasEnded(rank)) };
  }

  private missingOf({ arrived }: Barrier): { missing: number[]; dead: number[] } {
    return this.missing(this.host.count, { has: (rank) => arrived.has(rank) || this.host.standsBy(rank) });
  }

  private judgeModex(): void {
    const { missing, dead } = this.missing(this.size, this.entries);
    if (dead.length === 0 && missing.length > 0) return;
    const entries = this.entries;
    this.entries = new Map();
    if (dead.length > 0) {
      const text = `rank ${dead[0]} ended before it took part in the modex`;
      for (const rank of [...entries.keys(), ...this.waiting.keys()])
        this.host.send(rank, 'collectiveFailed', { modex: true, name: '', rank: dead[0], text });
      this.waiting.clear();
      return;
    }
    this.modexDone = true;
    this.sendEntries(entries.keys(), (rank) => entries.get(rank), this.size, 0);
    for (const [rank, json] of entries) this.first.set(rank, json);
    this.host.onMet();
    this.takeWaiting();
  }

  private judgeBarrier(name: string, barrier: Barrier): void {
    const { missing, dead } = this.missingOf(barrier);
    if (dead.length > 0 && !barrier.tolerant) {
      this.barriers.delete(name);
      const body = { modex: false, name, rank: dead[0], text: `rank ${dead[0]} ended before it came to barrier "${name}"` };
      for (const rank of barrier.arrived) this.host.send(rank, 'collectiveFailed', body);
    } else if (dead.length === missing.length) {
      this.barriers.delete(name);
      for (const rank of barrier.arrived) this.host.send(rank, 'barrierDone', { name, dead });
    }
  }
}

/** Here, where it is known whose entry it is: every other rank would take it for a mistake of the launcher. */
function checkModexEntry(json: Uint8Array): void {
  checkSize(json, MODEX_BYTES_MAX, 'modex entry');
  decodeJson(json, 'modex entry');
}

/** For what a rank sent: it should have kept the bound itself. */
export function checkSize(bytes: Uint8Array, bytesMax: number, what: string): void {
  if (bytes.length > bytesMax)
    throw new MultirailError('ERR_PROTOCOL', `${what} of ${bytes.length} bytes; at most ${bytesMax} are allowed`);
}
