// The peers of a rank: those that something was needed of, with their rails, and what became of the others. A peer is met when a command
// names it for the first time, or when it dials, or asks to be dialled; until then it costs nothing here.
import type { BmlPeer } from '../bml/peer.ts';
import type { BtlEndpoint, BtlModule } from '../btl/btl.ts';
import type { MultirailError } from '../errors.ts';

/** A rank as its published addresses tell it. */
export interface PeerPlan {
  incarnation: number;
  /** The endpoints of its rails, in the order of their numbers. */
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

  /** All traffic of that rank goes through memory: rails of the kernel's stand by, or are those of peers that are not there yet. */
  areInMemory(self: number): boolean {
    let found = false;
    for (const { rank, bml } of this.met.values()) {
      if (rank === self || bml.eager.length === 0) continue;
      if (!bml.eager.every((rail) => rail.endpoint.module.inMemory === true)) return false;
      found = true;
    }
    return found;
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

/** The transport that reaches the own rank only. */
const SELF = 'self';

/** What a blocking call cannot do without the event loop. `meetsMore`: there are ranks that were not met yet. */
export function eventLoopNeed(modules: readonly BtlModule[], peers: Peers, meetsMore: boolean): string | undefined {
  // Asked before each blocking call.
  let isWaiting = false;
  for (let i = 0; i < modules.length; i++) if (modules[i].needsEventLoop === true) isWaiting = true;
  if (!isWaiting) return undefined;
  for (const peer of peers.values()) {
    const carrying = peer.bml.eager.length > 0 ? peer.bml.eager : peer.bml.rails;
    if (carrying.length > 0 && carrying.every((rail) => rail.endpoint.module.needsEventLoop === true)) {
      return `the rail ${carrying[0].key} to rank ${peer.rank}`;
    }
  }
  // A rank that was not met can come by these transports only.
  const others = meetsMore ? modules.filter(({ name }) => name !== SELF) : [];
  return others.every((module) => module.needsEventLoop === true) ? others[0] && `the transport ${others[0].name}` : undefined;
}
