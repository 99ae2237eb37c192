// What users are told of rails: which events a change of a rail's state makes.
import type { BmlPeer } from '../bml/peer.ts';
import { CARRYING, type Rail, type RailState } from '../bml/rail.ts';

/**
 * What happened to a rail, for users. `added`: one that was not there at the start came up for the first time. `suspect`: nothing comes
 * through, or what it holds is late. `trial`: it is back and carries again once it is trusted, which `restored` says.
 */
export interface RailEvent {
  type: 'added' | 'restored' | 'lost' | 'suspect' | 'trial' | 'degraded' | 'last' | 'unreachable';
  peer: number;
  rail: number;
  key: string;
  epoch: number;
  reason: string;
  /** Rails to that peer that carry traffic now, and that exist. */
  up: number;
  of: number;
  atMs: number;
}

/** The events of a rail that has moved from one state to another; `rails`: all of its peer. */
export function railEvents(rail: Rail, from: RailState, to: RailState, rails: readonly Rail[], atMs: number): RailEvent[] {
  const up = rails.filter((one) => one.isCarrying).length;
  const of = rails.length;
  const event = (type: RailEvent['type'], reason: string): RailEvent => {
    const epoch = type === 'lost' ? rail.highestDead : rail.epoch;
    return { type, peer: rail.peer, rail: rail.index, key: rail.key, epoch, reason, up, of, atMs };
  };
  if (to === 'TRIAL') return [event('trial', `back after a loss: trusted when it has no fault for ${rail.trialMs} ms`)];
  if (to === 'UP' && from !== 'SUSPECT') return [event(rail.isAdded && rail.counters.ups === 1 ? 'added' : 'restored', '')];
  if (to === 'SUSPECT') {
    return [event('suspect', rail.isLate ? 'what it holds is late while another rail moves' : 'nothing came through for a while')];
  }
  if (to !== 'DOWN' || !CARRYING.has(from)) return [];
  const events = [event('lost', rail.lastReason === undefined ? '' : `${rail.lastReason.kind}: ${rail.lastReason.text}`)];
  const next = rails.some(({ state }) => state === 'ON_DEMAND')
    ? 'those on demand are made now'
    : 'it is dialled again until the peer timeout';
  if (up === 0) events.push(event('unreachable', `no rail is left; ${next}`));
  else if (up === 1 && of > 1) events.push(event('last', 'one rail is left'));
  else if (up < of) events.push(event('degraded', `${up} of ${of} rails are left`));
  return events;
}

/** For how long no rail has carried to that peer; 0 where one does, or where nobody looks. */
export function unreachableMs({ rails, unreachableSinceAliveMs: since, closed }: BmlPeer, aliveMs: number): number {
  return since < 0 || closed || rails.some((rail) => rail.state === 'UP') ? 0 : aliveMs - since;
}

/** Why a peer is given up to which no rail carried for so long. */
export function unreachableText({ rails }: BmlPeer, peerTimeoutMs: number): string {
  const ways = rails.map((rail) => `${rail.key}: ${rail.lastReason?.text ?? 'never connected'}`).join('; ');
  return rails.length > 0
    ? `no rail came back within ${peerTimeoutMs} ms (${ways})`
    : `no interface came up on either side that makes a rail, within ${peerTimeoutMs} ms (pml_peer_timeout_ms)`;
}
