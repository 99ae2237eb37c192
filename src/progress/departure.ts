// How a rank leaves its job (B9 of btl/btl.ts): what is owed to a peer drains, BYE is said on every rail to it, and the peer is left once it
// has said BYE, too, and is known to have heard ours.
//
//   STAYING -> DRAINING -> BYE_SENT -> LEFT
//
// Peers that were not met until then may still have something for this rank. Where somebody tells when every rank is drained, this one
// stays until then; from there on a peer without a rail is waited for no longer.
import type { Bml } from '../bml/bml.ts';
import type { BmlPeer } from '../bml/peer.ts';
import type { Rail } from '../bml/rail.ts';
import type { Pml } from '../pml/pml.ts';
import { assert } from '../util/assert.ts';

/**
 * A peer's BYE was received, but ours is not known to be delivered: a rail that broke meanwhile is dialled again and BYE is said
 * again, for as long as this. After it the peer is taken to have left (its launcher, if any, has told it about us).
 */
const BYE_GRACE_MS = 5000;

/** Said of a peer of which nothing else is known. */
export const NOT_LEFT = 'it has not left the job';

/** A peer that has not left, and why. */
export interface NotLeft {
  readonly rank: number;
  readonly text: string;
}

/** It is stepped this often where nothing comes: what it waits for comes with a turn. */
const STEP_MS = 250;

interface Leaving {
  readonly rank: number;
  readonly bml: BmlPeer;
  stage: 'STAYING' | 'DRAINING' | 'BYE_SENT' | 'LEFT';
  byeReceived: boolean;
  /** Its process is known to have finished: our BYE is not waited for to reach it. */
  isGone: boolean;
  /** It leaves when all others have left: its BYE is not waited for. */
  isLast: boolean;
  byeSentAtMs: number;
}

export class Departure {
  private readonly rank: number;
  private readonly bml: Bml;
  private readonly pml: Pml;
  private readonly onStep: () => void;
  private readonly peers = new Map<number, Leaving>();
  /** begin() was called. */
  isBegun = false;
  private awaitsAll = false;
  private allDrained = false;
  private last: ReadonlySet<number> = new Set();
  private told = '';

  /** `rank`: of this process. `onStep`: isDrained or isDone may have changed. */
  constructor(rank: number, bml: Bml, pml: Pml, onStep: () => void) {
    this.onStep = onStep;
    this.rank = rank;
    this.bml = bml;
    this.pml = pml;
  }

  addPeer(rank: number, bml: BmlPeer): void {
    const stage = this.isBegun ? 'DRAINING' : 'STAYING';
    this.peers.set(rank, { rank, bml, stage, byeReceived: false, isGone: false, isLast: this.last.has(rank), byeSentAtMs: 0 });
  }

  private peer(rank: number): Leaving {
    const peer = this.peers.get(rank);
    assert(peer !== undefined, `unknown peer ${rank}`);
    return peer;
  }

  /** `last`: those that leave when all others have left. Two of these, each of which waits for one that waits for the other, would stay for ever. */
  begin(awaitsAll: boolean, last: readonly number[]): void {
    this.isBegun = true;
    this.awaitsAll = awaitsAll;
    this.last = new Set(last);
    for (const peer of this.peers.values()) peer.isLast = this.last.has(peer.rank);
    for (const peer of this.peers.values()) if (peer.stage === 'STAYING') peer.stage = 'DRAINING';
  }

  everyoneDrained(): void {
    this.allDrained = true;
  }

  /** Nothing is left to deliver to any peer. */
  get isDrained(): boolean {
    if (!this.isBegun) return false;
    for (const { stage } of this.peers.values()) if (stage === 'DRAINING') return false;
    return true;
  }

  /** That peer said BYE, or its process is known to have finished. Whether that is news. */
  heardBye(rank: number, isGone: boolean): boolean {
    const peer = this.peer(rank);
    if (isGone) peer.isGone = true;
    if (peer.byeReceived) return false;
    peer.byeReceived = true;
    this.pml.handlePeerBye(rank);
    return true;
  }

  /** Nothing that becomes of that peer matters any more: it said BYE, or this rank has left it. */
  isOver(rank: number): boolean {
    const { stage, byeReceived } = this.peer(rank);
    return stage === 'LEFT' || byeReceived;
  }

  /** BYE was said to that peer, and its own is waited for. */
  awaitsBye(rank: number): boolean {
    return this.peer(rank).stage === 'BYE_SENT';
  }

  /** That rail carries again: a BYE that was said before may have been lost with another one. */
  railUp(rail: Rail, nowMs: number): void {
    const peer = this.peer(rail.peer);
    if (peer.stage === 'BYE_SENT') this.sayBye(peer, rail, nowMs);
  }

  private sayBye(peer: Leaving, rail: Rail, nowMs: number): void {
    rail.endpoint.bye();
    this.pml.flushLater(rail);
    peer.byeSentAtMs = nowMs;
  }

  /** In every turn, once it has begun. */
  step(nowMs: number): void {
    this.movePeers(nowMs);
    const now = `${this.isDrained} ${this.isDone}`;
    if (now === this.told) return;
    this.told = now;
    this.onStep();
  }

  /** When step() has something to do though nothing comes: a BYE that is not known to be delivered is waited for in time. */
  nextDeadline(nowMs: number): number {
    let at = nowMs + STEP_MS;
    for (const { stage, byeReceived, byeSentAtMs } of this.peers.values())
      if (stage === 'BYE_SENT' && byeReceived) at = Math.min(at, Math.max(nowMs + 1, byeSentAtMs + BYE_GRACE_MS + 1));
    return at;
  }

  private movePeers(nowMs: number): void {
    const { pml } = this;
    for (const peer of this.peers.values()) {
      if (pml.peer(peer.rank).failure !== undefined) peer.stage = 'LEFT';
      // Nobody posts a receive here any more: what this rank sent itself, and did not receive, is over.
      if (peer.stage === 'DRAINING' && peer.rank === this.rank && pml.hasOnlyUnmatched(peer.rank)) pml.handlePeerBye(peer.rank);
      if (peer.stage === 'DRAINING' && pml.isQuiet(peer.rank)) {
        if (peer.rank === this.rank) {
          peer.stage = 'LEFT';
          continue;
        }
        pml.peer(peer.rank).leaving = true;
        peer.stage = 'BYE_SENT';
        peer.byeSentAtMs = nowMs;
        for (const rail of peer.bml.rails) if (rail.isCarrying) this.sayBye(peer, rail, nowMs);
      }
      if (peer.stage === 'BYE_SENT' && this.allDrained && !peer.bml.rails.some((rail) => rail.epoch !== 0)) this.leave(peer);
      if (peer.stage === 'BYE_SENT' && (peer.byeReceived || peer.isLast)) {
        const told = peer.bml.rails.some((rail) => rail.endpoint.byeDelivered);
        if (told || peer.isGone || nowMs - peer.byeSentAtMs > BYE_GRACE_MS) this.leave(peer);
      }
    }
  }

  private leave(peer: Leaving): void {
    peer.stage = 'LEFT';
    this.bml.closePeer(peer.bml);
  }

  /** Every peer has said BYE, or is dead, and so have we. */
  get isDone(): boolean {
    if (this.awaitsAll && !this.allDrained) return false;
    for (const peer of this.peers.values()) if (peer.stage !== 'LEFT') return false;
    return true;
  }

  /** The peers that have not left, and why, for people. */
  notLeft(): NotLeft[] {
    const list: NotLeft[] = [];
    for (const { rank, stage } of this.peers.values()) {
      if (stage === 'LEFT') continue;
      const pending = this.pml.undelivered(rank);
      const text = stage === 'DRAINING' ? `${pending.length} messages pending: ${pending.slice(0, 5).join('; ')}` : NOT_LEFT;
      list.push({ rank, text });
    }
    return list;
  }
}
