// Watches how good the rails are that work: keeps the marks that health.ts judges by, ends the epoch of a rail that stalls, and puts one
// that is back on trial. Part of the BML: pure and synchronous, time comes in.
import type { RailReason } from '../btl/btl.ts';
import { heldOf, rateOf } from './choice.ts';
import { addSample, doubtAfterMs, judgeCarrying, judgeTrial, leaveAfterMs, nextTrialMs, trialIntervalMs, usualMaxMs } from './health.ts';
import type { BmlOptions } from './options.ts';
import type { BmlPeer } from './peer.ts';
import type { Aside, Rail, RailState } from './rail.ts';

/** Some probes are as long as a fragment: what a rail does with a few bytes says little. */
const PADDING_BYTES = 64 * 1024;
/** One that went unanswered for this long is not waited for. */
const TRIAL_GIVE_UP_MS = 10_000;
/** Siblings of a rail that holds something for longer than it is used to are asked, after this part of the time-out at the latest. */
const ASK_PART = 0.25;
const ASK_MIN_MS = 4;
/**
 * What one turn counts at most, as a part of the time-out, on this side as on the peer's: a process that is new, or shares its processor with
 * others, may take several times as long for a turn, and what its rails have brought meanwhile is not late.
 */
const TURN_PART = 1 / 8;
/** What a rail carries is seen when it has held something for this long. */
const SEEN_MS = 5;
/** What was sent is marked within this time. */
const MARK_WITHIN_MS = 5;
/** Siblings are asked this often. */
const ASK_APART_MS = 4;
/** Rails that carry are compared with their siblings this often, and less often where there are many. */
const COMPARE_APART_MS = 20;
const COMPARE_APART_PER_RAIL_MS = 2;
/** A rail is slow when its answers take so many times as long as those of the quickest, and this much longer. */
const SLOW_FACTOR = 2;
const SLOW_MS = 0.3;
/**
 * It stays so for this time, since a rail that is not used answers soon; each time for so many times as long, within bounds. So does one
 * that is avoided.
 */
const ASIDE_MIN_MS = 1000;
const ASIDE_MAX_MS = 30_000;
const ASIDE_GROWTH = 2;
/** A rail that was measured is asked by what it carries in this time, and no less than so much: its counts wait behind that. */
const PADDING_MS = 5;
const PADDING_BYTES_MIN = 4 * 1024;
/** One of which nothing is known, by so many times as much each time, until an answer comes so much later than a short one: it is measured by that. */
const UNKNOWN_GROWTH = 4;
const SLOW_ANSWER_MS = 5;
/** One loss may be chance; two that are seen within this time are the link's. */
const LOSSES_APART_MS = 250;
/** Answers are not told apart below this time. */
const LATER_MIN_MS = 0.25;
/** One that is too slow for what it was wanted for is asked again so long after the last time. */
const TOO_SLOW_APART_MS = 1000;
/** Looks at a rail that holds something are no further apart, whatever comes next. */
const LOOK_MAX_MS = 20;
const LOOK_MIN_MS = 2;
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
  askSiblings(peer: BmlPeer, aliveMs: number, apartMs: number): void;
  nextProbeId(): number;
  /** To all peers. */
  rails(): readonly Rail[];
  /** Something got through. */
  progressed(rail: Rail, aliveMs: number): void;
  /** The rate of the rail has changed. */
  tune(rail: Rail): void;
  /** Which rails are slow has changed. */
  reorder(peer: BmlPeer): void;
}

export class HealthWatch {
  private readonly host: HealthHost;
  private readonly turnMaxMs: number;
  /** What this side's turns took beyond what counts of them, all together; in alive time. */
  private overtimeMs = 0;
  private turnAliveMs = 0;

  constructor(host: HealthHost) {
    this.host = host;
    this.turnMaxMs = host.options.stallTimeoutMs * TURN_PART;
  }

  /** That rail is asked now. */
  asked(rail: Rail, aliveMs: number): void {
    rail.askedAliveMs = aliveMs;
    rail.askedOvertimeMs = this.overtimeMs;
  }

  /** A turn of this side. */
  turned(aliveMs: number): void {
    this.overtimeMs += Math.max(0, aliveMs - this.turnAliveMs - this.turnMaxMs);
    this.turnAliveMs = aliveMs;
  }

  /** The peer has told that its alive time went on by so much since its last word: what it tells in answers to one probe is one turn's. */
  reported(peer: BmlPeer, aheadMs: number): void {
    peer.aliveMs += aheadMs;
    peer.overtimeMs += Math.max(0, aheadMs - this.turnMaxMs);
  }

  // ---------------------------------------------------------------- rails that carry

  /**
   * Something was sent on that rail. Returns within how many milliseconds to look at it; 0 when that is known. What it holds is marked by that
   * look: what is sent outside of a turn may be sent long after the time that came in last.
   */
  sent(rail: Rail): number {
    if (rail.markAliveMs >= 0 || this.host.options.stallTimeoutMs === 0 || rail.attributes.isSteady === true) return 0;
    return this.host.peerOf(rail).rails.length < 2 ? 0 : MARK_WITHIN_MS;
  }

  /** All that is outstanding is looked at from now on. */
  private mark(peer: BmlPeer, rail: Rail, aliveMs: number): void {
    rail.markBytes = rail.deliveredBytes + rail.endpoint.outstandingBytes;
    rail.markAliveMs = aliveMs;
    rail.markOvertimeMs = this.overtimeMs;
    rail.markPeerAliveMs = -1;
    rail.markReports = peer.reports;
    rail.markReceivedByPeer = rail.receivedByPeer;
    rail.proofs = 0;
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

  /** Whether what the rail holds is late, and what follows. Returns after how many milliseconds to look again; 0 when there is no need. */
  judge(peer: BmlPeer, rail: Rail, aliveMs: number): number {
    const { host } = this;
    const { options } = host;
    const { outstandingBytes } = rail.endpoint;
    if (outstandingBytes === 0) rail.markAliveMs = -1;
    else if (rail.markAliveMs < 0) this.mark(peer, rail, aliveMs);
    // A probe is held, too; but only what others wait for is worth an epoch.
    const sinceMarkMs = heldOf(rail, aliveMs);
    const sinceAskedMs = askedOf(rail, aliveMs);
    const sinceAliveMs = aliveMs - Math.max(sinceMarkMs, sinceAskedMs);
    const markedMs = rail.markAliveMs < 0 ? 0 : sinceMarkMs - (this.overtimeMs - rail.markOvertimeMs);
    const askedMs = rail.probeOutstanding ? sinceAskedMs - (this.overtimeMs - rail.askedOvertimeMs) : 0;
    const heldMs = Math.max(markedMs, askedMs);
    if (heldMs === 0) this.notLate(rail);
    if (options.stallTimeoutMs === 0 || rail.attributes.isSteady === true || !hasOther(peer, rail)) return 0;
    if (rail.isWanted) this.askRate(rail, aliveMs);
    if (rail.lossesSeen !== rail.endpoint.counters.losses) this.seeLosses(rail, aliveMs);
    this.compare(peer, rail, aliveMs);
    if (heldMs === 0 && outstandingBytes === 0) return 0;
    // What the peer told last before the mark may be old: its time counts from its first word after it.
    if (rail.markPeerAliveMs < 0 && peer.reports !== rail.markReports) {
      rail.markPeerAliveMs = peer.aliveMs;
      rail.markPeerOvertimeMs = peer.overtimeMs;
    }
    const isHeard = rail.markAliveMs >= 0 && rail.markPeerAliveMs >= 0;
    // Siblings may have nothing to carry: their answers say that they move, and how long the peer was polling.
    const maxMs = usualMaxMs(rail.usual);
    const askAfterMs = Math.min(options.stallTimeoutMs * ASK_PART, Math.max(ASK_MIN_MS, maxMs));
    if (heldMs >= askAfterMs) host.askSiblings(peer, aliveMs, ASK_APART_MS);
    const observed = {
      state: rail.state as 'UP' | 'SUSPECT',
      heldMs,
      heldPeerMs: isHeard ? peer.aliveMs - rail.markPeerAliveMs - (peer.overtimeMs - rail.markPeerOvertimeMs) : 0,
      holdsDoubted: rail.isLate && sinceAliveMs <= rail.doubtedAliveMs,
      usualMaxMs: maxMs,
      siblingMs: siblingMs(peer, rail, outstandingBytes, sinceAliveMs, aliveMs),
      siblingUsualMs: siblingUsualMs(peer, rail),
      proofs: rail.proofs,
    };
    const leaveMs = leaveAfterMs(observed, options);
    switch (judgeCarrying(observed, options)) {
      case 'clear':
        this.notLate(rail);
        break;
      case 'doubt':
        this.doubt(rail, aliveMs);
        break;
      case 'leave': {
        if (markedMs < leaveMs) break;
        rail.counters.stalls++;
        const text = `what it held did not get through within ${Math.round(markedMs)} ms (at most ${Math.round(leaveMs)} ms) while another rail moved`;
        host.leave(peer, rail, { kind: 'stalled', text });
        return 0;
      }
    }
    // Due, but the peer's word is waited for.
    if (markedMs >= leaveMs) return MARK_WITHIN_MS;
    if (heldMs >= askAfterMs) return ASK_APART_MS;
    const left = [askAfterMs - heldMs, doubtAfterMs(observed, leaveMs, options) - heldMs, leaveMs - markedMs];
    return Math.max(LOOK_MIN_MS, Math.min(LOOK_MAX_MS, ...left.filter((ms) => ms > 0)));
  }

  /** A probe of the rail was answered: how it compares with its siblings, and what that says of what they hold. */
  answered(peer: BmlPeer, rail: Rail, aliveMs: number): void {
    if (this.host.options.stallTimeoutMs === 0) return;
    // What a busy machine adds is not the rail's: the lesser of the last two.
    rail.delayMs = Math.min(rail.answerMs, rail.lastAnswerMs);
    rail.lastAnswerMs = rail.answerMs;
    let leastMs = Number.POSITIVE_INFINITY;
    for (const other of peer.rails) {
      if (!other.isCarrying) continue;
      if (other !== rail && other.markAliveMs >= 0 && rail.askedAliveMs >= other.markAliveMs) other.proofs++;
      leastMs = Math.min(leastMs, other.delayMs);
    }
    this.judgeSlow(peer, leastMs, aliveMs);
  }

  /** Which of the rails are slow compared with the quickest, whose answers take so long. */
  private judgeSlow(peer: BmlPeer, leastMs: number, aliveMs: number): void {
    let isChanged = false;
    let areAllSlow = true;
    for (const rail of peer.rails) {
      const isSlow = rail.delayMs > leastMs * SLOW_FACTOR + SLOW_MS && rail.delayMs !== Number.POSITIVE_INFINITY;
      if (isSlow ? setAside(rail.slow, aliveMs) : takeBack(rail.slow, aliveMs)) isChanged = true;
      if (takeBack(rail.avoided, aliveMs)) isChanged = true;
      if (rail.isCarrying && !rail.slow.isSet) areAllSlow = false;
    }
    // The one that is to be quick has turned out to be slow, too.
    if (areAllSlow) {
      for (const rail of peer.rails) if (rail.delayMs === leastMs) rail.slow.isSet = false;
      isChanged = true;
    }
    if (isChanged) this.host.reorder(peer);
  }

  /** A link that loses again and again what is sent over it: a message that is lost waits for the kernel's timer, if it is not left. */
  private seeLosses(rail: Rail, aliveMs: number): void {
    const isAgain = aliveMs - rail.lossAliveMs <= LOSSES_APART_MS;
    rail.lossesSeen = rail.endpoint.counters.losses;
    rail.lossAliveMs = aliveMs;
    if (!isAgain) return;
    this.avoid(rail, aliveMs);
    rail.avoided.untilAliveMs = aliveMs + rail.avoided.forMs;
    this.avoidLike(rail, aliveMs);
  }

  /** What carries is asked together with its siblings now and then. */
  private compare(peer: BmlPeer, rail: Rail, aliveMs: number): void {
    if (rail.deliveredBytes === rail.comparedBytes) return;
    rail.comparedBytes = rail.deliveredBytes;
    this.host.askSiblings(peer, aliveMs, Math.max(COMPARE_APART_MS, this.host.rails().length * COMPARE_APART_PER_RAIL_MS));
  }

  private doubt(rail: Rail, aliveMs: number): void {
    rail.isLate = true;
    rail.doubtedAliveMs = aliveMs;
    rail.counters.suspicions++;
    this.avoid(rail, aliveMs);
    this.avoidLike(rail, aliveMs);
    this.host.move(rail, 'SUSPECT');
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
    rail.paddedWaits = false;
    rail.paddedBytes = 0;
    rail.isWanted = false;
    if (!rail.isCarrying || BLAMELESS.has(reason.kind)) return;
    if (this.host.options.stallTimeoutMs > 0) this.avoidLike(rail, aliveMs);
    const upMs = rail.state === 'TRIAL' ? 0 : aliveMs - rail.upAliveMs;
    rail.trialMs = nextTrialMs(rail.trialMs, upMs, this.host.options);
  }

  /** What is bad towards one peer is likely to be bad towards others: short messages to them prefer what goes by other interfaces. */
  private avoidLike(bad: Rail, aliveMs: number): void {
    for (const rail of this.host.rails()) {
      if (rail.peer === bad.peer || rail.key !== bad.key || rail.state !== 'UP') continue;
      if (hasOther(this.host.peerOf(rail), rail)) this.avoid(rail, aliveMs);
    }
  }

  /** Short messages prefer other rails. Where all are to be avoided, the one with the oldest reason is not. */
  private avoid(rail: Rail, aliveMs: number): void {
    const peer = this.host.peerOf(rail);
    rail.avoided.signAliveMs = aliveMs;
    if (!setAside(rail.avoided, aliveMs)) return;
    const inUse = peer.rails.filter(({ state }) => state === 'UP');
    if (inUse.every(({ avoided }) => avoided.isSet)) {
      const oldest = inUse.reduce((a, b) => (b.avoided.signAliveMs < a.avoided.signAliveMs ? b : a), rail);
      oldest.avoided.isSet = false;
    }
    this.host.reorder(peer);
  }

  /** A new epoch of the rail has answered its first probe. */
  answers(peer: BmlPeer, rail: Rail, aliveMs: number): void {
    if (this.host.options.stallTimeoutMs === 0 || rail.trialMs === 0 || !hasOther(peer, rail)) return this.trust(rail, aliveMs);
    rail.paddedWaits = false;
    rail.trialIsLate = false;
    rail.paddedAskedAliveMs = Number.NEGATIVE_INFINITY;
    rail.faultlessSinceAliveMs = aliveMs;
    rail.trialAnswers = 0;
    rail.trialRate = 0;
    this.host.move(rail, 'TRIAL');
  }

  private trust(rail: Rail, aliveMs: number): void {
    rail.upAliveMs = aliveMs;
    this.host.move(rail, 'UP');
  }

  /** The probe of its trial, or that for its rate, is answered, or the short one before it. */
  paddedAnswered(rail: Rail, probeId: number, aliveMs: number): void {
    if (probeId === rail.leadProbeId) rail.leadAliveMs = aliveMs;
    if (probeId !== rail.paddedProbeId) return;
    rail.paddedWaits = false;
    this.host.progressed(rail, aliveMs);
    // How much later than the short one tells the rate alone: the round trip, what was queued before them and the turns of busy processes
    // are the same for both.
    const laterMs = Math.max(LATER_MIN_MS, aliveMs - rail.leadAliveMs);
    const rate = Math.min(rail.paddedBytes / laterMs, Math.max(rail.rate, rail.attributes.bandwidthMBps * 1000));
    // One answer may have come behind what the peer sends: two in a row say that the rail is slow, and the better one how slow.
    const isSlow = laterMs >= SLOW_ANSWER_MS;
    const isSure = isSlow && rail.slowRate > 0;
    rail.slowRate = isSlow ? Math.max(rail.slowRate, rate) : 0;
    const wasKnown = rail.isKnown;
    rail.isKnown ||= isSure || rail.paddedBytes >= PADDING_BYTES;
    if (rail.state === 'TRIAL') this.trialAnswered(rail, rate, aliveMs);
    else if (!rail.isKnown) this.probe(rail, aliveMs);
    else if (!wasKnown) {
      if (isSlow) this.setRate(rail, rail.slowRate);
    } else if (rate > rail.rate) this.setRate(rail, rate);
  }

  private trialAnswered(rail: Rail, rate: number, aliveMs: number): void {
    if (rail.trialIsLate) {
      rail.trialIsLate = false;
      rail.faultlessSinceAliveMs = aliveMs;
      rail.trialAnswers = 0;
    } else rail.trialAnswers++;
    // What a busy machine adds to an answer is not the rail's: the best one counts.
    rail.trialRate = Math.max(rail.trialRate, rate);
    // The rate of better days would fill it again at once.
    if (rail.trialRate > rail.rate || rail.trialRate < rail.rate / 4) this.setRate(rail, rail.trialRate);
  }

  private setRate(rail: Rail, rate: number): void {
    rail.rate = rate;
    rail.isMeasured = true;
    this.host.tune(rail);
  }

  /** A rail was wanted and not used: one that is not known is to be asked once, one that is too slow now and then. Whether it has to be looked at. */
  wants(rail: Rail, aliveMs: number): boolean {
    if (rail.isWanted || rail.paddedWaits || (rail.isKnown && aliveMs - rail.paddedAskedAliveMs < TOO_SLOW_APART_MS)) return false;
    rail.isWanted = true;
    return true;
  }

  private askRate(rail: Rail, aliveMs: number): void {
    rail.isWanted = false;
    if (!rail.paddedWaits) this.probe(rail, aliveMs);
  }

  /** Judges the trial and probes. Returns after how many milliseconds it wants to be called again, or 0 when the trial is over. */
  judgeTrial(peer: BmlPeer, rail: Rail, aliveMs: number): number {
    const { options } = this.host;
    if (options.stallTimeoutMs === 0 || !hasOther(peer, rail)) {
      this.trust(rail, aliveMs);
      return 0;
    }
    const bestMs = siblingMs(peer, rail, rail.paddedBytes, Number.NEGATIVE_INFINITY, aliveMs, true);
    const waitingMs = rail.paddedWaits ? aliveMs - rail.paddedAskedAliveMs : 0;
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
    const isDue = !rail.paddedWaits && aliveMs - rail.paddedAskedAliveMs >= intervalMs;
    if (isDue || waitingMs >= TRIAL_GIVE_UP_MS) {
      rail.trialIsLate = false;
      rail.trialPassedBytes = passedBytes;
      this.probe(rail, aliveMs);
      // To compare with.
      this.host.askSiblings(peer, aliveMs, intervalMs / 2);
    }
    return intervalMs;
  }

  private probe(rail: Rail, aliveMs: number): void {
    rail.paddedBytes = paddingBytes(rail);
    rail.leadProbeId = this.host.nextProbeId();
    rail.leadAliveMs = aliveMs;
    rail.endpoint.probe(rail.leadProbeId);
    rail.paddedProbeId = this.host.nextProbeId();
    rail.paddedWaits = true;
    rail.paddedAskedAliveMs = aliveMs;
    rail.counters.paddingBytes += rail.paddedBytes;
    rail.endpoint.probe(rail.paddedProbeId, rail.paddedBytes);
    // It leaves now, not with the next frame that somebody sends.
    rail.endpoint.flush();
  }
}

/** Short messages prefer other rails for a while. False when they do already. */
function setAside(aside: Aside, aliveMs: number): boolean {
  if (aside.isSet) return false;
  const isAgain = aliveMs - aside.untilAliveMs < ASIDE_MAX_MS;
  aside.forMs = isAgain ? Math.min(ASIDE_MAX_MS, aside.forMs * ASIDE_GROWTH) : ASIDE_MIN_MS;
  aside.untilAliveMs = aliveMs + aside.forMs;
  aside.isSet = true;
  return true;
}

/** They no longer need to, once its time is over. False when nothing changes. */
function takeBack(aside: Aside, aliveMs: number): boolean {
  if (!aside.isSet || aliveMs < aside.untilAliveMs) return false;
  aside.isSet = false;
  return true;
}

/** How long the next probe of that rail is to be. */
function paddingBytes(rail: Rail): number {
  if (!rail.isKnown) {
    if (rail.paddedBytes === 0) return PADDING_BYTES_MIN;
    return rail.slowRate > 0 ? rail.paddedBytes : Math.min(PADDING_BYTES, rail.paddedBytes * UNKNOWN_GROWTH);
  }
  return rail.isMeasured ? Math.floor(Math.min(PADDING_BYTES, Math.max(PADDING_BYTES_MIN, rail.rate * PADDING_MS))) : PADDING_BYTES;
}

/** How long the answer to its probe has been waited for, in alive time. */
function askedOf(rail: Rail, aliveMs: number): number {
  return rail.probeOutstanding ? aliveMs - rail.askedAliveMs : 0;
}

/** Another rail to that peer could carry what this one does. */
function hasOther(peer: BmlPeer, rail: Rail): boolean {
  for (const other of peer.rails) if (other !== rail && (other.state === 'UP' || other.state === 'SUSPECT')) return true;
  return false;
}

/**
 * What the best sibling that is UP, and has moved since then, would need for so many bytes; Infinity without any. `answers`: no less than
 * what its last answer took, or what it takes already: on a busy machine every rail answers late.
 */
function siblingMs(peer: BmlPeer, rail: Rail, bytes: number, sinceAliveMs: number, aliveMs: number, answers = false): number {
  let leastMs = Number.POSITIVE_INFINITY;
  for (const sibling of peer.send) {
    if (sibling === rail || sibling.state !== 'UP' || sibling.progressAliveMs <= sinceAliveMs) continue;
    // One that has held what it holds for as long is no better, whatever its rate is taken to be.
    const heldMs = heldOf(sibling, aliveMs);
    // The rate of one that was never kept full says nothing of what it could carry; what it carries at this moment may.
    let rate = rateOf(sibling);
    if (!sibling.isMeasured && heldMs >= SEEN_MS) rate = Math.min(rate, (sibling.receivedByPeer - sibling.markReceivedByPeer) / heldMs);
    const answerMs = answers ? Math.max(sibling.answerMs, askedOf(sibling, aliveMs)) : 0;
    leastMs = Math.min(leastMs, Math.max(heldMs, answerMs, bytes / rate + sibling.usual.meanMs + sibling.usual.deviationMs));
  }
  return leastMs;
}

/** What the siblings that are UP rarely exceed, the least of them; Infinity without any that was measured. */
function siblingUsualMs(peer: BmlPeer, rail: Rail): number {
  let leastMs = Number.POSITIVE_INFINITY;
  for (const sibling of peer.send) {
    if (sibling !== rail && sibling.state === 'UP' && sibling.usual.samples > 0) leastMs = Math.min(leastMs, usualMaxMs(sibling.usual));
  }
  return leastMs;
}

function deliveredOver(rails: readonly Rail[]): number {
  let bytes = 0;
  for (const { deliveredBytes, endpoint } of rails) bytes += deliveredBytes + endpoint.counters.payloadBytesReceived;
  return bytes;
}
