// Watches how good the rails are that work: keeps the marks that health.ts judges by, ends the epoch of a rail that stalls, and puts one
// that is back on trial. Part of the BML: pure and synchronous, time comes in.
import type { RailReason } from '../btl/btl.ts';
import type { BmlOptions, BmlPeer } from './bml.ts';
import { addSample, judgeCarrying, judgeTrial, leaveAfterMs, nextTrialMs, trialIntervalMs, usualMaxMs } from './health.ts';
import type { Rail, RailState } from './rail.ts';

/** Probes of a trial are as long as a fragment: what a rail does with a few bytes says little. */
const TRIAL_PADDING_BYTES = 64 * 1024;
/** One that went unanswered for this long is not waited for. */
const TRIAL_GIVE_UP_MS = 10_000;
/** Losses that say nothing about the rail. */
const BLAMELESS: ReadonlySet<RailReason['kind']> = new Set(['shutdown', 'replaced', 'peer-failed', 'refused']);

/** What the watch asks of the BML. */
export interface HealthHost {
  readonly options: BmlOptions;
  peerOf(rail: Rail): BmlPeer;
  move(rail: Rail, to: RailState): void;
  /** Ends the rail's epoch. */
  leave(peer: BmlPeer, rail: Rail, reason: RailReason): void;
  /** The rails that carry are probed, since their answers carry the peer's alive time. */
  askSiblings(peer: BmlPeer, aliveMs: number): void;
  nextProbeId(): number;
  /** Something got through. */
  progressed(rail: Rail, aliveMs: number): void;
  /** The rate of the rail has changed. */
  tune(rail: Rail): void;
}

export class HealthWatch {
  private readonly host: HealthHost;

  constructor(host: HealthHost) {
    this.host = host;
  }

  // ---------------------------------------------------------------- rails that carry

  /** All that is outstanding is looked at from now on. */
  private mark(peer: BmlPeer, rail: Rail, aliveMs: number): void {
    rail.markBytes = rail.deliveredBytes + rail.endpoint.outstandingBytes;
    rail.markAliveMs = aliveMs;
    rail.markPeerAliveMs = -1;
    rail.markReports = peer.reports;
  }

  /** All that was outstanding at the mark has been delivered. */
  drained(rail: Rail, aliveMs: number): void {
    addSample(rail.usual, aliveMs - rail.markAliveMs);
    if (rail.endpoint.outstandingBytes > 0) this.mark(this.host.peerOf(rail), rail, aliveMs);
    else rail.markAliveMs = -1;
    this.notLate(rail);
  }

  private notLate(rail: Rail): void {
    if (!rail.isLate) return;
    rail.isLate = false;
    if (rail.state === 'SUSPECT') this.host.move(rail, 'UP');
  }

  /** Whether what the rail holds is late, and what follows. False when the rail was left. */
  judge(peer: BmlPeer, rail: Rail, aliveMs: number): boolean {
    const { host } = this;
    const { options } = host;
    const { endpoint } = rail;
    if (endpoint.outstandingBytes === 0) {
      rail.markAliveMs = -1;
      this.notLate(rail);
      return true;
    }
    if (options.stallTimeoutMs === 0 || !hasOther(peer, rail)) return true;
    if (rail.markAliveMs < 0) {
      this.mark(peer, rail, aliveMs);
      return true;
    }
    // What the peer told last before the mark may be old: its time counts from its first word after it.
    if (rail.markPeerAliveMs < 0 && peer.reports !== rail.markReports) rail.markPeerAliveMs = peer.aliveMs;
    const heldMs = aliveMs - rail.markAliveMs;
    // Siblings may have nothing to carry: their answers say that they move, and how long the peer was polling.
    if (heldMs >= options.stallTimeoutMs / 4) host.askSiblings(peer, aliveMs);
    const observed = {
      state: rail.state as 'UP' | 'SUSPECT',
      heldMs,
      heldPeerMs: rail.markPeerAliveMs < 0 ? 0 : peer.aliveMs - rail.markPeerAliveMs,
      usualMaxMs: usualMaxMs(rail.usual),
      siblingMs: siblingMs(peer, rail, endpoint.outstandingBytes, rail.markAliveMs, aliveMs),
    };
    switch (judgeCarrying(observed, options)) {
      case 'keep':
        return true;
      case 'clear':
        this.notLate(rail);
        return true;
      case 'doubt':
        rail.isLate = true;
        rail.counters.suspicions++;
        host.move(rail, 'SUSPECT');
        return true;
      case 'leave': {
        rail.counters.stalls++;
        const atMostMs = Math.round(leaveAfterMs(observed, options));
        const text = `what it held did not get through within ${Math.round(heldMs)} ms (at most ${atMostMs} ms) while another rail moved`;
        host.leave(peer, rail, { kind: 'stalled', text });
        return false;
      }
    }
  }

  /** Counts the time that a rail did not carry, once it had come up: it has left that state. */
  countTime(rail: Rail, from: RailState, nowMs: number): void {
    const { counters } = rail;
    const elapsedMs = nowMs - rail.movedMs;
    rail.movedMs = nowMs;
    if (counters.ups === 0) return;
    if (from === 'SUSPECT') counters.suspectMs += elapsedMs;
    else if (from === 'TRIAL') counters.trialMs += elapsedMs;
    else if (from !== 'UP') counters.downMs += elapsedMs;
  }

  // ---------------------------------------------------------------- rails on trial

  /** The epoch of a rail that carried has ended: whether and how long it will be on trial when it is back. */
  lost(rail: Rail, reason: RailReason, aliveMs: number): void {
    rail.markAliveMs = -1;
    rail.isLate = false;
    rail.trialWaits = false;
    if (!rail.isCarrying || BLAMELESS.has(reason.kind)) return;
    const upMs = rail.state === 'TRIAL' ? 0 : aliveMs - rail.upAliveMs;
    rail.trialMs = nextTrialMs(rail.trialMs, upMs, this.host.options);
  }

  /** A new epoch of the rail has answered its first probe. */
  answers(peer: BmlPeer, rail: Rail, aliveMs: number): void {
    if (this.host.options.stallTimeoutMs === 0 || rail.trialMs === 0 || !hasOther(peer, rail)) return this.trust(rail, aliveMs);
    rail.trialWaits = false;
    rail.trialIsLate = false;
    rail.trialAskedAliveMs = Number.NEGATIVE_INFINITY;
    rail.faultlessSinceAliveMs = aliveMs;
    rail.trialAnswers = 0;
    this.host.move(rail, 'TRIAL');
  }

  private trust(rail: Rail, aliveMs: number): void {
    rail.upAliveMs = aliveMs;
    this.host.move(rail, 'UP');
  }

  /** The probe of its trial is answered. */
  trialAnswered(rail: Rail, aliveMs: number): void {
    rail.trialWaits = false;
    this.host.progressed(rail, aliveMs);
    if (rail.trialIsLate) {
      rail.trialIsLate = false;
      rail.faultlessSinceAliveMs = aliveMs;
      rail.trialAnswers = 0;
    } else rail.trialAnswers++;
    // The rate of better days would fill it again at once.
    const rate = TRIAL_PADDING_BYTES / Math.max(1, aliveMs - rail.trialAskedAliveMs);
    if (rate < rail.rate / 4) {
      rail.rate = rate;
      this.host.tune(rail);
    }
  }

  /** Judges the trial and probes. Returns after how many milliseconds it wants to be called again, or 0 when the trial is over. */
  judgeTrial(peer: BmlPeer, rail: Rail, aliveMs: number): number {
    const { options } = this.host;
    if (options.stallTimeoutMs === 0 || !hasOther(peer, rail)) {
      this.trust(rail, aliveMs);
      return 0;
    }
    const bestMs = siblingMs(peer, rail, TRIAL_PADDING_BYTES, Number.NEGATIVE_INFINITY, aliveMs);
    const waitingMs = rail.trialWaits ? aliveMs - rail.trialAskedAliveMs : 0;
    const verdict = judgeTrial(
      {
        waitingMs: rail.trialIsLate ? 0 : waitingMs,
        siblingMs: bestMs === Number.POSITIVE_INFINITY ? 0 : bestMs,
        faultlessMs: rail.trialIsLate ? 0 : aliveMs - rail.faultlessSinceAliveMs,
        answers: rail.trialAnswers,
        trialMs: rail.trialMs,
      },
      options,
    );
    if (verdict === 'trust') {
      this.trust(rail, aliveMs);
      return 0;
    }
    if (verdict === 'fault') {
      rail.trialIsLate = true;
      rail.counters.trialFaults++;
      rail.trialMs = nextTrialMs(rail.trialMs, 0, options);
    }
    const passedBytes = deliveredOver(peer.rails);
    const intervalMs = trialIntervalMs(rail.trialMs, passedBytes === rail.trialPassedBytes, options.probeIdleMs);
    const isDue = !rail.trialWaits && aliveMs - rail.trialAskedAliveMs >= intervalMs;
    if (isDue || waitingMs >= TRIAL_GIVE_UP_MS) this.probe(rail, passedBytes, aliveMs);
    return intervalMs;
  }

  private probe(rail: Rail, passedBytes: number, aliveMs: number): void {
    rail.trialProbeId = this.host.nextProbeId();
    rail.trialWaits = true;
    rail.trialIsLate = false;
    rail.trialAskedAliveMs = aliveMs;
    rail.trialPassedBytes = passedBytes;
    rail.counters.paddingBytes += TRIAL_PADDING_BYTES;
    rail.endpoint.probe(rail.trialProbeId, TRIAL_PADDING_BYTES);
    // It leaves now, not with the next frame that somebody sends.
    rail.endpoint.flush();
  }
}

/** Another rail to that peer could carry what this one does. */
function hasOther(peer: BmlPeer, rail: Rail): boolean {
  for (const other of peer.rails) if (other !== rail && (other.state === 'UP' || other.state === 'SUSPECT')) return true;
  return false;
}

/** What the best sibling that is UP, and has moved since then, would need for so many bytes; Infinity without any. */
function siblingMs(peer: BmlPeer, rail: Rail, bytes: number, sinceAliveMs: number, aliveMs: number): number {
  let leastMs = Number.POSITIVE_INFINITY;
  for (const sibling of peer.send) {
    if (sibling === rail || sibling.state !== 'UP' || sibling.progressAliveMs <= sinceAliveMs) continue;
    const rate = sibling.expectedRate > 0 ? sibling.expectedRate : sibling.attributes.bandwidthMBps * 1000;
    // One that has held what it holds for as long is no better, whatever its rate is taken to be.
    const heldMs = sibling.markAliveMs < 0 ? 0 : aliveMs - sibling.markAliveMs;
    leastMs = Math.min(leastMs, Math.max(heldMs, bytes / rate + sibling.usual.meanMs));
  }
  return leastMs;
}

function deliveredOver(rails: readonly Rail[]): number {
  let bytes = 0;
  for (const { deliveredBytes, endpoint } of rails) bytes += deliveredBytes + endpoint.counters.payloadBytesReceived;
  return bytes;
}
