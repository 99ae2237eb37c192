// What a runtime shows of its rails.
import type { Bml } from '../bml/bml.ts';
import type { Engine } from '../progress/engine.ts';
import type { RailInfo, RuntimeCounters } from './views.ts';

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

/** What messages, collectives and the engine have done, as copies. */
export function countersOf({ pml, turns, aliveMs }: Engine, collectives: RuntimeCounters['collectives']): RuntimeCounters {
  return { pml: { ...pml.counters }, collectives: { ...collectives }, engine: { turns, aliveMs, retainedBytes: pml.retainedBytes } };
}
