// The peers of a rank: those that something was needed of, with their rails, and what became of the others. A peer is met when a command
// names it for the first time, or when it dials, or asks to be dialled; until then it costs nothing here.
import type { BmlPeer } from '../bml/peer.ts';
import type { BtlEndpoint } from '../btl/btl.ts';
import type { MultirailError } from '../errors.ts';

/** A rank as its published addresses tell it. */
export interface PeerPlan {
  incarnation: number;
  /** Of its rails, in the order of their numbers. */
  endpoints: readonly BtlEndpoint[];
  /** Credit that it gives at the start. */
  unexpectedBytesMax: number;
  /** There will never be a rail to it, and why. */
  failure?: MultirailError;
}

/** A peer that was met. */
export interface EnginePeer {
  readonly rank: number;
  readonly incarnation: number;
  readonly bml: BmlPeer;
}

/** Why nothing can come from a rank any more: it is dead (`failure`), or it has left the job. */
export interface Ending {
  readonly ended: MultirailError;
  readonly failure: MultirailError | undefined;
}

export class Peers {
  private readonly met = new Map<number, EnginePeer>();
  /** Ranks that ended before anything was needed of them. */
  private readonly endings = new Map<number, Ending>();

  add(peer: EnginePeer): EnginePeer {
    this.met.set(peer.rank, peer);
    return peer;
  }

  get(rank: number): EnginePeer | undefined {
    return this.met.get(rank);
  }

  has(rank: number): boolean {
    return this.met.has(rank);
  }

  values(): Iterable<EnginePeer> {
    return this.met.values();
  }

  /** Whether that is news. */
  end(rank: number, ending: Ending): boolean {
    if (this.endings.has(rank)) return false;
    this.endings.set(rank, ending);
    return true;
  }

  /** How a rank ended that was not met. */
  endingOf(rank: number): Ending | undefined {
    return this.endings.get(rank);
  }
}
