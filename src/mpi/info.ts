// What a runtime shows of itself: its rails and its counters.
import type { Bml } from '../bml/bml.ts';
import type { RailCounters, RailState } from '../bml/rail.ts';
import type { RailByteCounters } from '../btl/btl.ts';
import type { PmlCounters } from '../pml/counters.ts';
import type { CollectiveCounters } from './coll/scope.ts';

export interface RailInfo {
  peer: number;
  rail: number;
  key: string;
  transport: string;
  state: RailState;
  /** Live epoch, 0 when none is. */
  epoch: number;
  role: 'active' | 'standby';
  bandwidthMBps: number;
  latencyUs: number;
  /** 0 until measured. */
  measuredMBps: number;
  outstandingBytes: number;
  windowBytes: number;
  counters: RailCounters & RailByteCounters;
  /** Why it was last lost or not connected. */
  lastReason: string | undefined;
}

export interface RuntimeCounters {
  pml: PmlCounters;
  collectives: CollectiveCounters;
  engine: { turns: number; aliveMs: number; retainedBytes: number };
}

/** Every rail to every peer, as it is now. */
export function railInfos(bml: Bml): RailInfo[] {
  const list: RailInfo[] = [];
  for (const { rails } of bml.peers.values()) {
    for (const rail of rails) {
      const { endpoint, attributes, lastReason } = rail;
      list.push({
        peer: rail.peer,
        rail: rail.index,
        key: rail.key,
        transport: endpoint.module.name,
        state: rail.state,
        epoch: rail.epoch,
        role: attributes.role,
        bandwidthMBps: attributes.bandwidthMBps,
        latencyUs: attributes.latencyUs,
        measuredMBps: rail.rate / 1000,
        outstandingBytes: endpoint.outstandingBytes,
        windowBytes: endpoint.windowBytes,
        counters: { ...rail.counters, ...endpoint.counters, framesRefused: rail.counters.framesRefused },
        lastReason: lastReason === undefined ? undefined : `${lastReason.kind}: ${lastReason.text}`,
      });
    }
  }
  return list;
}
