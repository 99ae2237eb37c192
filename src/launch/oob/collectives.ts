// What ranks do together over the out-of-band channel: the modex (an allgather) and barriers, on the launcher's side.
// Pure: it is told who arrives and who ends, and sends through a function.
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

export class OobCollectives {
  private readonly size: number;
  private readonly hasEnded: (rank: number) => boolean;
  private readonly standsBy: (rank: number) => boolean;
  private readonly send: Send;
  private readonly barriers = new Map<string, Barrier>();
  /** Parts given to the modex that is open. */
  private entries = new Map<number, Uint8Array>();
  private modexDone = false;
  private readonly onMet: () => void;

  /** `onMet` is called once all ranks have given their parts to the modex. `standsBy`: at barriers nobody waits for that one. */
  constructor(
    size: number,
    hasEnded: (rank: number) => boolean,
    send: Send,
    onMet: () => void = () => undefined,
    standsBy: (rank: number) => boolean = () => false,
  ) {
    this.size = size;
    this.hasEnded = hasEnded;
    this.standsBy = standsBy;
    this.send = send;
    this.onMet = onMet;
  }

  modexPut(rank: number, json: Uint8Array): void {
    checkModexEntry(json);
    if (this.entries.has(rank)) throw new MultirailError('ERR_PROTOCOL', 'a rank sent a second modex entry before the modex was done');
    this.entries.set(rank, json);
    this.judgeModex();
  }

  modexUpdate(rank: number, json: Uint8Array): void {
    checkModexEntry(json);
    if (this.entries.has(rank)) this.entries.set(rank, json);
    // Before the first modex is done nobody knows an address that could be out of date.
    if (!this.modexDone) return;
    for (let other = 0; other < this.size; other++) if (other !== rank) this.send(other, 'modexUpdate', { rank, json });
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
    return barrier === undefined ? [] : this.missingOf(barrier).missing.filter((rank) => !this.hasEnded(rank));
  }

  /** Some rank has ended, or stands by: what waits for it fails, or goes on without it. */
  rankEnded(): void {
    if (this.entries.size > 0) this.judgeModex();
    for (const [name, barrier] of [...this.barriers]) this.judgeBarrier(name, barrier);
  }

  /** Ranks that have not arrived, and those of them that never will. */
  private missing(arrived: { has(rank: number): boolean }): { missing: number[]; dead: number[] } {
    const missing: number[] = [];
    for (let rank = 0; rank < this.size; rank++) if (!arrived.has(rank)) missing.push(rank);
    return { missing, dead: missing.filter((rank) => this.hasEnded(rank)) };
  }

  private missingOf({ arrived }: Barrier): { missing: number[]; dead: number[] } {
    return this.missing({ has: (rank) => arrived.has(rank) || this.standsBy(rank) });
  }

  private judgeModex(): void {
    const { missing, dead } = this.missing(this.entries);
    if (dead.length === 0 && missing.length > 0) return;
    const entries = this.entries;
    this.entries = new Map();
    if (dead.length > 0) {
      const text = `rank ${dead[0]} ended before it took part in the modex`;
      for (const rank of entries.keys()) this.send(rank, 'collectiveFailed', { modex: true, name: '', rank: dead[0], text });
      return;
    }
    this.modexDone = true;
    const pieces = packModex(Array.from({ length: this.size }, (_, rank) => entries.get(rank) ?? new Uint8Array(0)));
    for (let rank = 0; rank < this.size; rank++) {
      for (const [i, packed] of pieces.entries()) this.send(rank, 'modexPart', { packed, last: i === pieces.length - 1 });
    }
    this.onMet();
  }

  private judgeBarrier(name: string, barrier: Barrier): void {
    const { missing, dead } = this.missingOf(barrier);
    if (dead.length > 0 && !barrier.tolerant) {
      this.barriers.delete(name);
      const body = { modex: false, name, rank: dead[0], text: `rank ${dead[0]} ended before it came to barrier "${name}"` };
      for (const rank of barrier.arrived) this.send(rank, 'collectiveFailed', body);
    } else if (dead.length === missing.length) {
      this.barriers.delete(name);
      for (const rank of barrier.arrived) this.send(rank, 'barrierDone', { name, dead });
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
