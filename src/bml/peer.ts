// The rails of one peer, and the sets made of them: which of them carry what.
import type { Rail } from './rail.ts';

/** Those of some rails that carry when all of them are up: active before standby, then the highest exclusivity class only. */
export function bestOf(rails: readonly Rail[]): Rail[] {
  const active = rails.filter((rail) => rail.attributes.role === 'active');
  const usable = active.length > 0 ? active : rails;
  const exclusivity = Math.max(...usable.map((rail) => rail.attributes.exclusivity));
  return usable.filter((rail) => rail.attributes.exclusivity === exclusivity);
}

/** The rails of one peer and the sets made of them; the sets are made again on every change. */
export class BmlPeer {
  readonly rank: number;
  /** In the order in which they were made. */
  readonly rails: Rail[] = [];
  /** By their number. A side that is dialled may hear of a later rail first: there may be gaps. */
  readonly byNumber: (Rail | undefined)[] = [];
  /** For envelopes and control: lowest latency first, the others behind it. */
  eager: Rail[] = [];
  /** The stripe set: every rail that carries fragments. */
  send: Rail[] = [];
  /** Rails of the stripe set that can put, and that can get. */
  put: Rail[] = [];
  get: Rail[] = [];
  /** Freshest alive time that the peer reported over any rail. */
  aliveMs = 0;
  /** What its turns took beyond what counts of them, all together (health-watch.ts). */
  overtimeMs = 0;
  wasHeard = false;
  /** Reports that have come from it. */
  reports = 0;
  /** Since when, in alive time, no rail has come up and nothing has got through either way; -1 while a rail is UP. */
  unreachableSinceAliveMs: number;
  /** What had got through by then, to tell whether more has. */
  passedBefore = 0;
  /** No more dialling: the peer said BYE, or is dead. */
  closed = false;
  /** It is the peer that dials, and it may not know yet that it shall: it is asked until an answer or a connection has come. */
  mustAsk = false;
  /** Rails that are made only when they are needed, or were until then (spares.ts). */
  spares: readonly Rail[] = [];
  /** Attempts to connect the steady rail, without which they are needed, that have failed and may have failed for other reasons. */
  steadyFailures = 0;
  /** Longest message that is sent eagerly over the rails that carry now, in one frame of any rail that there is. */
  eagerBytesMax = 0;
  /** Longest first part of a rendezvous: any rail must be able to carry it in one frame. */
  inlineBytesMax = 0;

  constructor(rank: number, aliveMs: number) {
    this.rank = rank;
    this.unreachableSinceAliveMs = aliveMs;
  }

  /** The rails are gone: the peer is over, and nothing is kept of them. */
  dropRails(): void {
    this.rails.length = 0;
    this.byNumber.length = 0;
    this.spares = [];
    this.makeSets();
  }

  /**
   * The rail over which the peer is to be asked next: one at a time, that which was tried least, and of these a spare one that is needed now,
   * since the question says so, and then the best class.
   */
  get askingRail(): Rail | undefined {
    if (!this.mustAsk || this.rails.some(({ attempt, epoch }) => attempt !== undefined || epoch !== 0)) return undefined;
    const [first] = this.rails
      .filter(({ state }) => state !== 'ON_DEMAND')
      .sort(
        (a, b) =>
          a.counters.connectAttempts - b.counters.connectAttempts ||
          Number(this.spares.includes(b)) - Number(this.spares.includes(a)) ||
          b.attributes.exclusivity - a.attributes.exclusivity ||
          a.index - b.index,
      );
    return first;
  }

  /** It has siblings of its class, which may carry now or soon: nothing need wait for it. */
  hasLike(rail: Rail): boolean {
    const { exclusivity, role } = rail.attributes;
    return this.rails.some((other) => other !== rail && other.attributes.exclusivity === exclusivity && other.attributes.role === role);
  }

  /** Every rail of the stripe set can put: what travels with the first packet would be all that is copied. */
  get putsAll(): boolean {
    return this.put.length > 0 && this.put.length === this.send.length;
  }

  /**
   * A message of that length is read by its receiver, where every rail of the stripe set can. Rails may find out late what it is worth.
   * `isExported`: it lies in memory that the receiver may have mapped.
   */
  isReadWorth(bytes: number, isExported = false): boolean {
    if (this.get.length === 0 || this.get.length !== this.send.length) return false;
    for (const { attributes } of this.get) {
      const {
        getBytesMin = 0,
        getExportedBytesMin,
        getBytesMax = Number.POSITIVE_INFINITY,
        pipelineBytes = Number.POSITIVE_INFINITY,
      } = attributes;
      const bytesMin = isExported ? (getExportedBytesMin ?? getBytesMin) : getBytesMin;
      // What is read is registered whole.
      if (bytes < bytesMin || bytes > getBytesMax || bytes > pipelineBytes) return false;
    }
    return true;
  }

  /**
   * Only rails that carry; UP before SUSPECT before TRIAL (those are used when nothing else is left); active before standby;
   * the highest exclusivity class only.
   */
  makeSets(): void {
    let usable = this.rails.filter((rail) => rail.state === 'UP');
    if (usable.length === 0) usable = this.rails.filter((rail) => rail.state === 'SUSPECT');
    if (usable.length === 0) usable = this.rails.filter((rail) => rail.isCarrying);
    usable = bestOf(usable);
    this.eager = [...usable].sort(
      (a, b) =>
        Number(a.avoided.isSet) - Number(b.avoided.isSet) ||
        Number(a.slow.isSet) - Number(b.slow.isSet) ||
        a.attributes.latencyUs - b.attributes.latencyUs ||
        a.index - b.index,
    );
    this.send = [...usable].sort((a, b) => b.attributes.bandwidthMBps - a.attributes.bandwidthMBps || a.index - b.index);
    this.put = this.send.filter((rail) => rail.attributes.canPut);
    this.get = this.send.filter((rail) => rail.attributes.canGet);
    // A message may be sent again over any rail that comes up later, so the frames of all of them bound it.
    this.eagerBytesMax = Math.min(this.inlineBytesMax, ...this.eager.map((rail) => rail.attributes.eagerBytesMax ?? Infinity));
  }

  /** Grows with everything that gets through on its rails, either way: also on one that is never up on this side. */
  get passed(): number {
    let passed = 0;
    for (const { deliveredBytes, endpoint } of this.rails) passed += deliveredBytes + endpoint.counters.framesReceived;
    return passed;
  }
}
