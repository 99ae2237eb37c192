// Spare rails: those that carry nothing while a steady rail of a better class does, as tcp between two ranks of one host that share memory.
// They are made when they are needed and not before: what a steady rail holds waits for the peer's process alone, so as long as it is there
// nothing would go over them. Part of the BML: pure.
import type { RailReason } from '../btl/btl.ts';
import { type BmlPeer, bestOf } from './peer.ts';
import { moveRail, type Rail, type RailListener } from './rail.ts';

/**
 * What an attempt may come to though nothing is wrong with the rail: the process computes, or does not know this rank yet. Such attempts say
 * something when there have been so many of them.
 */
const PATIENT: ReadonlySet<RailReason['kind']> = new Set(['busy', 'refused', 'closed']);
const ATTEMPTS_MAX = 3;

/** What this asks of the BML. */
export interface SparesHost {
  readonly options: { readonly rank: number; readonly holdsSpares: boolean };
  readonly listener: RailListener;
  wakeAt(atMs: number): void;
}

export class Spares {
  private readonly host: SparesHost;

  constructor(host: SparesHost) {
    this.host = host;
  }

  /** At the first contact, before anything is dialled: the spare rails of that peer wait until they are needed. */
  hold(peer: BmlPeer): void {
    const best = bestOf(peer.rails);
    if (!this.host.options.holdsSpares || !best.some(isSteady)) return;
    peer.spares = peer.rails.filter((rail) => !best.includes(rail));
    for (const spare of peer.spares) spare.state = 'ON_DEMAND';
  }

  /** An epoch of that rail has ended. */
  lost(peer: BmlPeer, rail: Rail, nowMs: number): void {
    if (isLastSteady(peer, rail)) this.need(peer, nowMs);
  }

  /** An attempt to connect that rail has failed. */
  attemptFailed(peer: BmlPeer, rail: Rail, { kind }: RailReason, nowMs: number): void {
    if (kind === 'asked' || !isLastSteady(peer, rail)) return;
    // Where an epoch is live it was dialled beside that one, which waits for a process that computes.
    if (PATIENT.has(kind) && (rail.epoch !== 0 || ++peer.steadyFailures < ATTEMPTS_MAX)) return;
    this.need(peer, nowMs);
  }

  /** The peer, which does not dial, asks for a connection over that rail: over a spare one only when it needs the spare ones. */
  asked(peer: BmlPeer, over: number, nowMs: number): void {
    if (peer.byNumber[over]?.state === 'ON_DEMAND') this.release(peer, nowMs);
  }

  /** The peer, which dials, has connected that rail. */
  connected(peer: BmlPeer, { state }: Rail, nowMs: number): void {
    if (state === 'ON_DEMAND') this.release(peer, nowMs);
  }

  /** Where the peer dials it is asked to: it may not know, since its own end of the steady rail looks well and it has nothing to send. */
  private need(peer: BmlPeer, nowMs: number): void {
    if (this.release(peer, nowMs) && peer.rank < this.host.options.rank) peer.mustAsk = true;
  }

  /** From now on they are dialled as others are. Whether that is news. */
  private release(peer: BmlPeer, nowMs: number): boolean {
    const held = peer.spares.filter(({ state }) => state === 'ON_DEMAND');
    for (const spare of held) {
      spare.nextDialMs = nowMs;
      moveRail(spare, 'DOWN', this.host.listener);
    }
    this.host.wakeAt(nowMs);
    return held.length > 0;
  }
}

const isSteady = ({ attributes }: Rail): boolean => attributes.isSteady === true;

/** That rail is steady, others to that peer are spare because of it, and no other steady one carries. */
function isLastSteady(peer: BmlPeer, rail: Rail): boolean {
  if (peer.closed || peer.spares.length === 0 || !isSteady(rail) || peer.spares.includes(rail)) return false;
  return !peer.rails.some((other) => other !== rail && isSteady(other) && other.isCarrying && !peer.spares.includes(other));
}
