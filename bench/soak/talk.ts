// What every part of a soak's round works with: the communicator, the chance that all its ranks share, the audit. Sends and receives are
// made through here, so that each is counted and looked at. Imports the product's types, soak-audit, soak-protocol, the generator.
import type { Communicator, Status } from '../../src/index.ts';
import type { Prng } from '../../src/util/prng.ts';
import { type Arena, AuditError, Ledger, type Payloads } from './audit.ts';
import type { Plant, SoakPairs } from './protocol.ts';

/** Tags of the program: each part of a round has a block of its own. */
export const TAGS = 32;
export const TAGS_OF_PART = 4;

/** What this rank has of its own, over all rounds and communicators. */
export interface OwnState {
  readonly payloads: Payloads;
  readonly arena: Arena;
  readonly pairs: SoakPairs;
  readonly plant: Plant | undefined;
  /** A message, or the result of a collective, is there. */
  delivered(): void;
  sent: number;
  received: number;
  bytesReceived: number;
  collectives: number;
  isPlanted: boolean;
}

export class Talk {
  readonly comm: Communicator;
  readonly own: OwnState;
  readonly round: number;
  /** Names the communicator in messages. */
  readonly number: number;
  readonly ledger: Ledger;
  private readonly worldRanks: readonly number[];

  constructor(comm: Communicator, own: OwnState, round: number, number: number, ledger = new Ledger(comm.size, TAGS)) {
    this.comm = comm;
    this.own = own;
    this.round = round;
    this.number = number;
    this.ledger = ledger;
    this.worldRanks = comm.group.worldRanks;
  }

  get rank(): number {
    return this.comm.rank;
  }

  get size(): number {
    return this.comm.size;
  }

  /** A message that is about to be sent: numbered, counted, filled in. */
  outgoing(dest: number, tag: number, bytes: number): Buffer {
    const buffer = this.own.arena.take(bytes);
    this.refill(buffer, dest, tag);
    return buffer;
  }

  /** The next message to that rank, in memory that is there. */
  refill(buffer: Buffer, dest: number, tag: number): void {
    const number = this.ledger.nextSent(dest, tag);
    this.own.payloads.write(buffer, { number, source: this.rank, dest, tag, round: this.round, comm: this.number });
    this.noteSent(dest);
  }

  /** Counts one whose content is something else. */
  noteSent(dest: number): void {
    this.own.sent++;
    this.own.pairs.sent[this.worldRanks[dest]]++;
  }

  noteReceived(source: number, bytes: number): void {
    this.own.received++;
    this.own.bytesReceived += bytes;
    this.own.pairs.received[this.worldRanks[source]]++;
    this.own.delivered();
  }

  incoming(bytes: number): Buffer {
    return this.own.arena.take(bytes);
  }

  /** Looks at what a receive has brought. */
  arrived(buffer: Buffer, status: Status, source: number, tag: number, bytes: number): void {
    const { rank, round } = this;
    if (status.source !== source || status.tag !== tag || status.bytes !== bytes) {
      const found = `${status.bytes} bytes with tag ${status.tag} of rank ${status.source}`;
      throw new AuditError(`${found} came where ${bytes} bytes with tag ${tag} of rank ${source} were due`);
    }
    const number = this.ledger.nextReceived(source, tag);
    const name = { number, source, dest: rank, tag, round, comm: this.number };
    const fault = this.own.payloads.fault(buffer.subarray(0, bytes), name);
    if (fault !== undefined) throw new AuditError(fault);
    this.noteReceived(source, bytes);
  }

  /** All ranks tell each other what they have sent; then nothing may be left over. No rank is beyond this before all are here. */
  async settle(): Promise<void> {
    const { comm, ledger } = this;
    const sentHere = new Int32Array(this.size * TAGS);
    await comm.alltoall(ledger.sent, sentHere);
    ledger.settle(this.rank, sentHere);
    const surplus = comm.iprobe();
    if (surplus !== undefined) {
      const what = `${surplus.bytes} bytes with tag ${surplus.tag} of rank ${surplus.source}`;
      throw new AuditError(`${what} are left over on communicator ${this.number}, though all that was sent is received`);
    }
  }
}

/** Lengths: most are short, some just about where the protocol changes, few are long. */
export function drawBytes(prng: Prng): number {
  const kind = prng.below(100);
  if (kind < 35) return prng.below(65);
  if (kind < 60) return prng.below(4097);
  if (kind < 75) return prng.pick([4095, 4096, 4097, 8192, 16_384, 65_535, 65_536, 65_537]);
  if (kind < 90) return prng.between(4096, 131_072);
  if (kind < 98) return prng.between(131_072, 524_288);
  return prng.between(1 << 20, 4 << 20);
}
