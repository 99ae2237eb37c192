// Which rail a frame goes to, where a peer has several: the one that will have it through first, and none that would only keep others
// waiting. A receiver hands messages on in their order, so what a slow rail holds, all that is behind it waits for: such a rail is given
// something only where the faster ones could not have done with everything sooner (as the schedulers ECF and BLEST do for the subflows of
// Multipath TCP; Lim et al., CoNEXT 2017). Part of the BML: pure.
import { type UsualTime, usualMaxMs } from './health.ts';

/** What is known of a rail when a frame is to be given away. */
export interface Candidate {
  readonly endpoint: { readonly outstandingBytes: number };
  readonly attributes: { readonly bandwidthMBps: number };
  /** Somebody has asked what it carries, or its attributes say. */
  readonly isKnown: boolean;
  readonly isMeasured: boolean;
  /** Bytes per millisecond. */
  readonly rate: number;
  readonly expectedRate: number;
  readonly roundTripMs: number;
  readonly markAliveMs: number;
  readonly usual: UsualTime;
  /** Set where it was late or has lost something lately. */
  readonly avoided: { readonly isSet: boolean };
}

/** What is through within this time is not worth a choice. */
export const SOON_MS = 1;
/** One rail is faster than another from so many times its rate on: measured rates of equal rails differ a little. */
const FASTER = 1.5;
/** What a rail has held for so much longer than it is used to is late. */
const LATE_MS = 2;
/** One that is avoided is reckoned to need so much longer than its rate says: what it loses goes again when it is left. */
const AVOIDED_MS = 50;

/** Bytes per millisecond that a rail is taken to carry. */
export function rateOf(rail: Candidate): number {
  return rail.isMeasured ? rail.rate : Math.max(rail.expectedRate, rail.attributes.bandwidthMBps * 1000);
}

/** In how many milliseconds a rail will have so many bytes more through. */
export function finishMs(rail: Candidate, bytes: number, aliveMs: number): number {
  const throughMs = (rail.endpoint.outstandingBytes + bytes) / rateOf(rail) + delayOf(rail);
  const heldMs = heldOf(rail, aliveMs);
  return heldMs > usualMaxMs(rail.usual) + LATE_MS ? throughMs + heldMs : throughMs;
}

/**
 * Whether that rail should be given so many bytes, of all that is still to be sent: it will have them through before the faster ones among
 * `rails`, together, would have everything through. A faster one that is late, or of which nobody knows whether it is, is not waited for.
 */
export function isWorth(rails: readonly Candidate[], rail: Candidate, bytes: number, backlogBytes: number, aliveMs: number): boolean {
  const ownMs = finishMs(rail, bytes, aliveMs);
  if (ownMs <= SOON_MS) return true;
  const fasterThan = rateOf(rail) * FASTER;
  let rate = 0;
  let queuedBytes = backlogBytes;
  let delayMs = 0;
  for (const other of rails) {
    const otherRate = rateOf(other);
    if (otherRate < fasterThan || !other.isKnown || heldOf(other, aliveMs) > usualMaxMs(other.usual) + LATE_MS) continue;
    rate += otherRate;
    queuedBytes += other.endpoint.outstandingBytes;
    delayMs = Math.max(delayMs, delayOf(other));
  }
  return rate === 0 || ownMs <= queuedBytes / rate + delayMs + SOON_MS;
}

/** The rails by when each would have so many bytes more through. */
export function bySoonest<Rail extends Candidate>(rails: readonly Rail[], bytes: number, aliveMs: number): Rail[] {
  const timed = rails.map((rail) => ({ rail, ms: finishMs(rail, bytes, aliveMs) }));
  return timed.sort((a, b) => a.ms - b.ms).map(({ rail }) => rail);
}

/** Least time from a question to its answer, as far as it is known: what a queue adds is reckoned by its bytes. */
function delayOf(rail: Candidate): number {
  const delayMs = rail.roundTripMs === Number.POSITIVE_INFINITY ? 0 : rail.roundTripMs;
  return rail.avoided.isSet ? delayMs + AVOIDED_MS : delayMs;
}

/** Since the mark: how long a rail has held what it holds, in alive time. */
export function heldOf(rail: Pick<Candidate, 'markAliveMs'>, aliveMs: number): number {
  return rail.markAliveMs < 0 ? 0 : aliveMs - rail.markAliveMs;
}
