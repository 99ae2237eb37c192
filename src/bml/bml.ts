// The BML: per peer the table of rails, which of them carry what, and their health. Pure and synchronous: time comes in
// as an argument, and what is to be done goes out as down-calls on the endpoints, which never call back (btl.ts).
//
// Two times come in. `now` is monotonic milliseconds and serves for pauses. `alive` is the time during which this
// process was polling its rails: a long computation or a SIGSTOP here does not count in it, so silence during it is not
// taken for silence of the other side. Peers report theirs (onReport), so that a peer that computes is not taken
// for a dead rail either: a rail is silent only over time in which BOTH sides polled it (B7 of btl/btl.ts).
import { ADDED_FRAME_BYTES_MIN, ALIVE_PER_TURN_MAX_MS, type BtlEndpoint, type RailReason } from '../btl/btl.ts';
import { assert } from '../util/assert.ts';
import { bySoonest, finishMs, isWorth, SOON_MS } from './choice.ts';
import { HealthWatch } from './health-watch.ts';
import type { BmlOptions } from './options.ts';
import { BmlPeer } from './peer.ts';
import { jitterOf, moveRail, Rail, type RailListener } from './rail.ts';
import { Rates } from './rates.ts';
import { Spares } from './spares.ts';

const ATTEMPT_TIMEOUT_FACTOR = 5;
/** How far above the highest epoch seen a peer may say that an epoch is over. */
const EPOCHS_AHEAD_MAX = 1000;
/**
 * The same in a handshake. A dialer counts up with each attempt, also with those that nobody heard: months without a cable fit in here, and
 * no claim uses the numbers of a rail up.
 */
export const HANDSHAKE_EPOCHS_AHEAD_MAX = 2 ** 20;

/** A rail with siblings is given this much while nobody knows what it carries. */
const UNKNOWN_BYTES_MAX = 8 * 1024;

export class Bml {
  readonly options: BmlOptions;
  readonly peers = new Map<number, BmlPeer>();
  private readonly listener: RailListener;
  private readonly health: HealthWatch;
  private readonly rates: Rates;
  private readonly spares: Spares;
  private readonly byRank: (BmlPeer | undefined)[] = [];
  private rails: Rail[] = [];
  private nextDeadlineMs = 0;
  private nextProbeId = 1;
  /** Time as it came in last. */
  private nowMs = 0;
  private aliveMs = 0;

  constructor(options: BmlOptions, listener: RailListener) {
    this.options = options;
    this.listener = (rail, from, to) => {
      const peer = this.peers.get(rail.peer);
      assert(peer !== undefined, `rail of unknown peer ${rail.peer}`);
      // However short it is up: handleTime() may see it down before and after.
      if (to === 'UP') peer.unreachableSinceAliveMs = -1;
      this.health.countTime(rail, from, this.nowMs);
      peer.makeSets();
      listener(rail, from, to);
    };
    this.rates = new Rates(options, (rail) => options.stallTimeoutMs > 0 && this.byRank[rail.peer]?.hasLike(rail) === true);
    this.spares = new Spares({ options, listener: this.listener, wakeAt: (atMs) => this.wakeAt(atMs) });
    this.health = new HealthWatch({
      options,
      peerOf: (rail) => this.peer(rail),
      move: (rail, to) => moveRail(rail, to, this.listener),
      leave: (peer, rail, reason) => this.fence(peer, rail.index, rail.epoch, reason),
      askSiblings: (peer, aliveMs, apartMs) => this.askSiblings(peer, aliveMs, apartMs, false),
      nextProbeId: () => this.nextProbeId++ >>> 0,
      rails: () => this.rails,
      progressed: (rail, aliveMs) => this.progressed(rail, aliveMs),
      tune: (rail) => this.rates.tune(rail),
      reorder: (peer) => peer.makeSets(),
    });
  }

  /** `asks`: the peer, where it is the side that dials, may not know yet that this rank needs it. */
  addPeer(rank: number, endpoints: readonly BtlEndpoint[], nowMs: number, aliveMs: number, asks = false): BmlPeer {
    const peer = new BmlPeer(rank, aliveMs);
    peer.mustAsk = asks && rank < this.options.rank;
    for (const endpoint of endpoints) {
      assert(endpoint.rail === peer.rails.length, 'rails are numbered in the order of the plan');
      this.take(peer, new Rail(rank, endpoint.rail, endpoint), nowMs);
    }
    this.spares.hold(peer);
    peer.inlineBytesMax = Math.min(ADDED_FRAME_BYTES_MIN, ...peer.rails.map((rail) => rail.attributes.frameBytesMax));
    peer.eagerBytesMax = peer.inlineBytesMax;
    this.nowMs = nowMs;
    this.aliveMs = aliveMs;
    this.peers.set(rank, peer);
    this.byRank[rank] = peer;
    this.nextDeadlineMs = nowMs;
    return peer;
  }

  /** A rail of interfaces that came after the start. */
  addRail(peer: BmlPeer, endpoint: BtlEndpoint, nowMs: number): void {
    const { attributes, key } = endpoint.plan;
    assert(peer.byNumber[endpoint.rail] === undefined, `rail ${endpoint.rail} to ${peer.rank} is there already`);
    assert(attributes.frameBytesMax >= peer.inlineBytesMax, `frames of rail ${key} are shorter than what may have to go over it`);
    this.take(peer, new Rail(peer.rank, endpoint.rail, endpoint, true), nowMs);
    this.wakeAt(nowMs);
  }

  private take(peer: BmlPeer, rail: Rail, nowMs: number): void {
    rail.nextDialMs = nowMs;
    this.rates.tune(rail);
    peer.rails.push(rail);
    peer.byNumber[rail.index] = rail;
    this.rails.push(rail);
  }

  private rail(endpoint: BtlEndpoint): Rail {
    const rail = this.byRank[endpoint.peer]?.byNumber[endpoint.rail];
    if (rail === undefined || rail.endpoint !== endpoint) assert(false, `unknown rail ${endpoint.plan.key} to ${endpoint.peer}`);
    return rail as Rail;
  }

  /** The lower rank dials; a rank dials itself. */
  private dials(rail: Rail): boolean {
    return this.options.rank <= rail.peer;
  }

  // ---------------------------------------------------------------- epochs

  isLive(peer: BmlPeer, rail: number, epoch: number): boolean {
    const found = peer.byNumber[rail];
    return found?.isCarrying === true && found.epoch === epoch;
  }

  /** Every rail's highest dead epoch, as RNDVRESTARTNOTIFY and the table at rail-up state it. */
  deadEpochs(peer: BmlPeer): { rail: number; epoch: number }[] {
    return peer.rails.filter(({ highestDead }) => highestDead > 0).map(({ index, highestDead }) => ({ rail: index, epoch: highestDead }));
  }

  // ---------------------------------------------------------------- what the PML asks for

  /** Ends every epoch of that rail up to `upToEpoch`; a newer one is untouched (rule: fence by rail AND epoch). */
  fence(peer: BmlPeer, railIndex: number, upToEpoch: number, reason: RailReason): void {
    const rail = peer.byNumber[railIndex];
    if (rail === undefined) return;
    // A peer that names an epoch far ahead must not use up the numbers of the rail.
    const epoch = Math.min(upToEpoch, rail.highestSeen + EPOCHS_AHEAD_MAX);
    rail.highestSeen = Math.max(rail.highestSeen, epoch);
    rail.highestDead = Math.max(rail.highestDead, epoch);
    rail.endpoint.fence(epoch, reason);
    // The module calls onRailDown in its next progress(); until then the rail must carry nothing new.
    if (rail.epoch !== 0 && rail.epoch <= epoch) this.takeOut(rail, reason);
  }

  /** Takes a rail out of the tables before any of its frames returns. */
  private takeOut(rail: Rail, reason: RailReason): void {
    this.health.lost(rail, reason, this.aliveMs);
    rail.highestDead = Math.max(rail.highestDead, rail.epoch);
    rail.epoch = 0;
    rail.lastReason = reason;
    rail.blocked = false;
    rail.probeOutstanding = false;
    rail.sampleStartMs = -1;
    // Not dialled again before the module's own onRailDown, which sets the back-off.
    rail.nextDialMs = Number.POSITIVE_INFINITY;
    if (rail.isCarrying) rail.counters.downs++;
    if (rail.state !== 'DOWN') moveRail(rail, 'DOWN', this.listener);
    this.spares.lost(this.peer(rail), rail, this.nowMs);
  }

  // ---------------------------------------------------------------- events from the BTL

  handleConnected(endpoint: BtlEndpoint, epoch: number, nowMs: number, aliveMs: number): void {
    const rail = this.rail(endpoint);
    this.nowMs = nowMs;
    this.aliveMs = aliveMs;
    if (epoch <= rail.highestDead) {
      rail.endpoint.fence(rail.highestDead, { kind: 'fenced', text: 'the epoch was over before it began' });
      return;
    }
    if (rail.attempt !== undefined && rail.attempt.epoch <= epoch) rail.attempt = undefined;
    // An epoch that ended after BYE both ways did so without onRailDown (B9).
    if (rail.epoch !== 0) this.takeOut(rail, { kind: 'closed', text: 'ended after BYE' });
    const peer = this.peer(rail);
    this.spares.connected(peer, rail, nowMs);
    peer.mustAsk = false;
    rail.epoch = epoch;
    rail.highestSeen = Math.max(rail.highestSeen, epoch);
    rail.highestDead = Math.max(rail.highestDead, epoch - 1);
    rail.receivedByPeer = 0;
    rail.blocked = false;
    rail.progressAliveMs = aliveMs;
    rail.progressPeerAliveMs = peer.aliveMs;
    rail.probingDeadlineAliveMs = aliveMs + this.options.connectTimeoutMs;
    moveRail(rail, 'PROBING', this.listener);
    this.sendProbe(rail, aliveMs);
    this.wakeAt(nowMs);
  }

  handleConnectFailed(endpoint: BtlEndpoint, epoch: number, reason: RailReason, highestEpoch: number | undefined, nowMs: number): void {
    const rail = this.rail(endpoint);
    const isCurrent = rail.attempt?.epoch === epoch;
    if (highestEpoch !== undefined) {
      // The peer answers a number far above its own with a lower one. What is above that was never admitted: counting goes on from there.
      if (highestEpoch < epoch && isCurrent) rail.highestSeen = Math.max(highestEpoch, rail.highestDead, rail.epoch);
      else rail.highestSeen = Math.max(rail.highestSeen, Math.min(highestEpoch, rail.highestSeen + HANDSHAKE_EPOCHS_AHEAD_MAX));
    }
    // It was dialled while the old epoch is silent, and the peer's kernel answers: the peer computes.
    if (reason.kind === 'busy' && rail.isCarrying) this.peer(rail).unreachableSinceAliveMs = -1;
    if (reason.kind === 'asked') this.peer(rail).mustAsk = false;
    if (!isCurrent) return;
    this.endAttempt(rail, reason, nowMs);
  }

  /** The peer, which does not dial, needs this rank, and has asked over that rail: attempts need not wait for their back-off. */
  handleAsked(peer: BmlPeer, over: number, nowMs: number): void {
    this.spares.asked(peer, over, nowMs);
    for (const rail of peer.rails) {
      if (rail.state !== 'DOWN' || rail.attempt !== undefined) continue;
      rail.nextDialMs = Math.min(rail.nextDialMs, Math.max(nowMs, rail.heldUntilMs, rail.dialledAtMs + this.options.redialMinMs));
      this.wakeAt(rail.nextDialMs);
    }
  }

  /**
   * Something outside says that the rail may work again: its next attempt need not wait for the back-off. A port that comes and goes says so
   * a hundred times a second, and each attempt takes time from the rails that carry: while one of those is up, a hold stays, and so does the
   * shortest pause between two attempts.
   */
  handleReachable(endpoint: BtlEndpoint, nowMs: number): void {
    const rail = this.rail(endpoint);
    if (rail.state !== 'DOWN' || rail.attempt !== undefined || rail.nextDialMs <= nowMs) return;
    rail.backoffMs = 0;
    const isSpared = this.peer(rail).rails.some((other) => other !== rail && other.isCarrying);
    const earliestMs = Math.max(nowMs, rail.heldUntilMs, rail.dialledAtMs + this.options.redialMinMs);
    rail.nextDialMs = isSpared ? Math.min(rail.nextDialMs, earliestMs) : nowMs;
    this.wakeAt(rail.nextDialMs);
  }

  private endAttempt(rail: Rail, reason: RailReason, nowMs: number): void {
    rail.attempt = undefined;
    if (rail.state === 'CONNECTING') {
      rail.lastReason = reason;
      this.backOff(rail, nowMs);
      moveRail(rail, 'DOWN', this.listener);
    }
    this.spares.attemptFailed(this.peer(rail), rail, reason, nowMs);
  }

  handleRailDown(endpoint: BtlEndpoint, epoch: number, reason: RailReason, nowMs: number): void {
    const rail = this.rail(endpoint);
    this.nowMs = nowMs;
    rail.highestDead = Math.max(rail.highestDead, epoch);
    if (rail.epoch === epoch) this.takeOut(rail, reason);
    if (rail.state === 'DOWN') {
      rail.losses.push(nowMs);
      while (rail.losses.length > 0 && rail.losses[0] < nowMs - this.options.flapWindowMs) rail.losses.shift();
      rail.backoffMs = 0;
      this.backOff(rail, nowMs);
      // Flap damping: from the third loss within the window on, each one holds the rail down twice as long.
      const extra = rail.losses.length - 2;
      if (extra > 0) {
        const holdMs = Math.min(this.options.flapHoldMaxMs, this.options.redialMinMs * 2 ** Math.min(extra, 20));
        rail.heldUntilMs = nowMs + holdMs;
        rail.nextDialMs = Math.max(rail.nextDialMs, rail.heldUntilMs);
      }
    }
    this.wakeAt(nowMs);
  }

  /** Exponential back-off with jitter. */
  private backOff(rail: Rail, nowMs: number): void {
    const { redialMinMs, redialMaxMs } = this.options;
    rail.backoffMs = rail.backoffMs === 0 ? redialMinMs : Math.min(redialMaxMs, rail.backoffMs * 2);
    rail.nextDialMs = nowMs + rail.backoffMs * (1 - jitterOf(rail, this.options.rank));
    this.wakeAt(rail.nextDialMs);
  }

  handleProbeAnswered(endpoint: BtlEndpoint, epoch: number, probeId: number, nowMs: number, aliveMs: number): void {
    const rail = this.rail(endpoint);
    this.nowMs = nowMs;
    this.aliveMs = aliveMs;
    if (rail.epoch !== epoch) return;
    if (rail.paddedWaits) this.health.paddedAnswered(rail, probeId, aliveMs);
    if (rail.probeId !== probeId) return;
    rail.probeOutstanding = false;
    rail.answerMs = aliveMs - rail.askedAliveMs;
    rail.roundTripMs = Math.min(rail.roundTripMs, aliveMs - rail.lastProbeAliveMs);
    this.progressed(rail, aliveMs);
    this.health.answered(this.peer(rail), rail, aliveMs);
    if (rail.state !== 'PROBING') return;
    rail.backoffMs = 0;
    rail.counters.ups++;
    this.rates.tune(rail);
    this.health.answers(this.peer(rail), rail, aliveMs);
    this.wakeAt(nowMs);
  }

  handleReport(endpoint: BtlEndpoint, epoch: number, receivedBytes: number, peerAliveMs: number, aliveMs: number): void {
    const rail = this.rail(endpoint);
    const peer = this.peer(rail);
    // The report is 32 bits wide and wraps after 49 days; here it is unwrapped. Reports of several rails may overtake each other.
    const aheadMs = peer.wasHeard ? (peerAliveMs - peer.aliveMs) | 0 : peerAliveMs;
    const reportedMs = peer.aliveMs + aheadMs;
    if (aheadMs > 0) this.health.reported(peer, aheadMs);
    peer.wasHeard = true;
    peer.reports++;
    if (rail.epoch !== epoch) return;
    if (receivedBytes > rail.receivedByPeer) {
      rail.receivedByPeer = receivedBytes;
      this.progressed(rail, aliveMs);
      rail.progressPeerAliveMs = reportedMs;
    }
  }

  private progressed(rail: Rail, aliveMs: number): void {
    rail.progressAliveMs = aliveMs;
    rail.progressPeerAliveMs = this.peer(rail).aliveMs;
    if (rail.state === 'SUSPECT' && !rail.isLate) moveRail(rail, 'UP', this.listener);
  }

  /** Which of several rails carries something is chosen by when each would have it through. */
  isChosen(rails: readonly Rail[]): boolean {
    return rails.length > 1 && this.options.stallTimeoutMs > 0;
  }

  /** The rails to offer a frame of so many bytes to, in order. They are as they are where the first will have it through soon. */
  inOrder(rails: readonly Rail[], bytes: number): readonly Rail[] {
    return finishMs(rails[0], bytes, this.aliveMs) <= SOON_MS ? rails : bySoonest(rails, bytes, this.aliveMs);
  }

  /**
   * Whether that rail, one of several that are chosen from, is to be given so many bytes of all that is left to send. One of which nobody
   * knows what it carries is asked first where that is much; until one of them has answered, the first of the rails takes it.
   */
  mayTake(rails: readonly Rail[], rail: Rail, bytes: number, backlogBytes: number): boolean {
    const takenBytes = Math.min(bytes, backlogBytes);
    const isAsked = takenBytes > UNKNOWN_BYTES_MAX && !rail.isKnown;
    if (!isAsked && isWorth(rails, rail, takenBytes, backlogBytes, this.aliveMs)) return true;
    // It is asked by the next turn: time may have passed since the last one.
    if (this.health.wants(rail, this.aliveMs)) this.wakeAt(this.nowMs);
    return isAsked && rail === rails[0] && !rails.some(({ isKnown }) => isKnown);
  }

  handleBusy(rail: Rail): void {
    rail.blocked = true;
  }

  handleWritable(endpoint: BtlEndpoint): void {
    this.rail(endpoint).blocked = false;
  }

  /** A frame of that many bytes is known to be delivered. */
  handleDelivered(endpoint: BtlEndpoint, bytes: number, nowMs: number, aliveMs: number): void {
    const rail = this.rail(endpoint);
    rail.deliveredBytes += bytes;
    if (rail.markAliveMs >= 0 && rail.deliveredBytes >= rail.markBytes) this.health.drained(rail, aliveMs);
    this.rates.delivered(rail, bytes, nowMs);
  }

  /** That many bytes were refused: outstanding no more. */
  handleRefused(endpoint: BtlEndpoint, bytes: number): void {
    const rail = this.rail(endpoint);
    rail.markBytes -= bytes;
    rail.counters.framesRefused++;
  }

  /** Its epoch has ended before it was known to be delivered. */
  handleInDoubt(endpoint: BtlEndpoint): void {
    this.rail(endpoint).counters.framesInDoubt++;
  }

  private peer(rail: Rail): BmlPeer {
    const peer = this.byRank[rail.peer];
    if (peer === undefined) assert(false, `rail of unknown peer ${rail.peer}`);
    return peer as BmlPeer;
  }

  private sendProbe(rail: Rail, aliveMs: number): void {
    // One id per outstanding question: a repeated probe of the same id is answered again.
    if (!rail.probeOutstanding) {
      rail.probeId = this.nextProbeId++ >>> 0;
      this.health.asked(rail, aliveMs);
    }
    rail.probeOutstanding = true;
    rail.lastProbeAliveMs = aliveMs;
    rail.endpoint.probe(rail.probeId);
  }

  /** 0: not at all. */
  private wakeIn(nowMs: number, ms: number): void {
    if (ms > 0) this.wakeAt(nowMs + ms);
  }

  private wakeAt(atMs: number): void {
    if (atMs < this.nextDeadlineMs) this.nextDeadlineMs = atMs;
  }

  // ---------------------------------------------------------------- time

  /**
   * How often a rail with something outstanding is looked at, and a suspect one is probed: not above what one turn may add to the
   * alive time, but slower with many rails, and where many ranks share the processors. When a machine is overloaded all of them
   * look suspect at once, and probing them must not be what keeps it so.
   */
  private get tickMs(): number {
    const { railTimeoutMs, stallTimeoutMs } = this.options;
    const leastMs = stallTimeoutMs === 0 ? railTimeoutMs / 8 : Math.min(railTimeoutMs / 8, stallTimeoutMs / 6);
    return Math.max(Math.min(ALIVE_PER_TURN_MAX_MS, leastMs) * this.options.crowd, this.rails.length * 2);
  }

  nextDeadline(): number {
    return this.nextDeadlineMs;
  }

  /** Something was sent on a rail: its silence, and whether it is late, will have to be watched. */
  handleSent(rail: Rail, nowMs: number): void {
    this.wakeIn(nowMs, this.health.sent(rail));
    if (rail.attributes.liveness !== 'self') this.wakeAt(nowMs + this.tickMs);
  }

  /**
   * Dials, probes, and judges silence. Call when nextDeadline() is reached; calling earlier is harmless. Answers whether anything was
   * looked at.
   */
  handleTime(nowMs: number, aliveMs: number): boolean {
    this.nowMs = nowMs;
    this.aliveMs = aliveMs;
    this.health.turned(aliveMs);
    if (nowMs < this.nextDeadlineMs) return false;
    this.nextDeadlineMs = Number.POSITIVE_INFINITY;
    for (const peer of this.peers.values()) {
      let carrying = false;
      for (const rail of peer.rails) {
        if (!peer.closed) this.watchRail(peer, rail, nowMs, aliveMs);
        // Nothing comes through a suspect one: by itself it keeps no peer within reach.
        if (rail.state === 'UP') carrying = true;
      }
      if (carrying) peer.unreachableSinceAliveMs = -1;
      else if (!peer.closed) {
        const passed = peer.passed;
        if (peer.unreachableSinceAliveMs < 0 || passed !== peer.passedBefore) {
          peer.unreachableSinceAliveMs = aliveMs;
          peer.passedBefore = passed;
        }
        this.wakeAt(nowMs + Math.max(ALIVE_PER_TURN_MAX_MS, this.tickMs));
      }
    }
    return true;
  }

  private watchRail(peer: BmlPeer, rail: Rail, nowMs: number, aliveMs: number): void {
    const { connectTimeoutMs } = this.options;
    if (rail.attempt !== undefined) {
      if (aliveMs >= rail.attempt.deadlineAliveMs) {
        rail.endpoint.cancelConnect();
        this.endAttempt(rail, { kind: 'timeout', text: `the attempt came to no end` }, nowMs);
      } else this.wakeAt(nowMs + connectTimeoutMs);
    }
    switch (rail.state) {
      case 'ON_DEMAND':
        return;
      case 'DOWN':
        if (!this.dials(rail)) return this.ask(peer, rail, nowMs, aliveMs);
        // The attempt was begun during an epoch that has ended meanwhile.
        if (rail.attempt !== undefined) return moveRail(rail, 'CONNECTING', this.listener);
        if (nowMs >= rail.nextDialMs) this.dial(rail, nowMs, aliveMs);
        else this.wakeAt(rail.nextDialMs);
        return;
      case 'CONNECTING':
        return;
      case 'PROBING':
        this.awaitFirstAnswer(peer, rail, nowMs, aliveMs);
        return;
      case 'UP':
      case 'SUSPECT':
        this.wakeIn(nowMs, this.health.judge(peer, rail, aliveMs));
        if (rail.isCarrying) this.judge(peer, rail, nowMs, aliveMs);
        return;
      case 'TRIAL':
        this.judge(peer, rail, nowMs, aliveMs);
        if (rail.state === 'TRIAL') {
          this.wakeIn(nowMs, Math.min(this.tickMs, this.health.judgeTrial(peer, rail, aliveMs)));
        }
        return;
    }
  }

  /** Where the peer dials, and may not know that it shall: an attempt of this side is the request (docs/internals/PROTOCOL.md, section 4). */
  private ask(peer: BmlPeer, rail: Rail, nowMs: number, aliveMs: number): void {
    if (peer.askingRail !== rail) return;
    if (nowMs < rail.nextDialMs) return this.wakeAt(rail.nextDialMs);
    // Its number is not used up: it is the peer that counts epochs.
    this.attempt(rail, Math.max(rail.highestSeen, rail.highestDead) + 1, nowMs, aliveMs);
  }

  private dial(rail: Rail, nowMs: number, aliveMs: number): void {
    const epoch = Math.max(rail.highestSeen, rail.highestDead) + 1;
    rail.highestSeen = epoch;
    this.attempt(rail, epoch, nowMs, aliveMs);
  }

  private attempt(rail: Rail, epoch: number, nowMs: number, aliveMs: number): void {
    rail.counters.connectAttempts++;
    rail.dialledAtMs = nowMs;
    // The module times the attempt itself; this only makes sure that it ends.
    rail.attempt = { epoch, deadlineAliveMs: aliveMs + this.options.connectTimeoutMs * ATTEMPT_TIMEOUT_FACTOR };
    if (rail.state === 'DOWN') moveRail(rail, 'CONNECTING', this.listener);
    rail.endpoint.connect(epoch);
    this.wakeAt(nowMs + this.options.connectTimeoutMs);
  }

  /**
   * The first probe of an epoch is judged as silence is: out of time only when the peer polled meanwhile. A peer that computes may have the
   * rail in its tables already.
   */
  private awaitFirstAnswer(peer: BmlPeer, rail: Rail, nowMs: number, aliveMs: number): void {
    const { connectTimeoutMs } = this.options;
    const tickMs = this.tickMs;
    if (aliveMs - rail.lastProbeAliveMs >= tickMs * 4) this.sendProbe(rail, aliveMs);
    this.wakeAt(nowMs + tickMs);
    if (aliveMs < rail.probingDeadlineAliveMs) return;
    this.askSiblings(peer, aliveMs);
    const text = `the first probe was not answered within ${connectTimeoutMs} ms`;
    this.giveUp(peer, rail, connectTimeoutMs, { kind: 'timeout', text }, nowMs, aliveMs);
  }

  /**
   * What carries is asked, since its answers carry the peer's alive time. `repeats`: also what has not answered the last question; on a slow
   * rail many of these are a load.
   */
  private askSiblings(peer: BmlPeer, aliveMs: number, apartMs = this.tickMs, repeats = true): void {
    for (const sibling of peer.rails) {
      if (!sibling.isCarrying || aliveMs - sibling.lastProbeAliveMs < apartMs) continue;
      if (repeats || !sibling.probeOutstanding) this.sendProbe(sibling, aliveMs);
    }
  }

  /**
   * Nothing came through for `timeoutMs` of our alive time. The rail is lost when the peer polled meanwhile. Where it did not, or nobody
   * can tell, the dialling side makes another connection, at most once per `timeoutMs`: the handshake decides which of the two epochs goes on.
   */
  private giveUp(peer: BmlPeer, rail: Rail, timeoutMs: number, reason: RailReason, nowMs: number, aliveMs: number): void {
    if (peer.aliveMs - rail.progressPeerAliveMs >= timeoutMs / 2) {
      this.fence(peer, rail.index, rail.epoch, reason);
      return;
    }
    if (!this.dials(rail) || rail.attempt !== undefined) return;
    if (aliveMs - Math.max(rail.besideAliveMs, rail.progressAliveMs) < timeoutMs) return;
    rail.besideAliveMs = aliveMs;
    this.dial(rail, nowMs, aliveMs);
  }

  /**
   * Silence of a carrying rail. Something must be outstanding (frames, or a probe). Over half of the timeout the rail is
   * suspect, and it and its siblings are probed, so that the siblings' answers tell how long the peer was polling. Lost is a rail
   * with no progress over the whole timeout in both sides' alive time. Where no sibling answers either, the peer is busy or
   * gone: the dialling side makes another connection next to the silent epoch and lets the handshake decide.
   */
  private judge(peer: BmlPeer, rail: Rail, nowMs: number, aliveMs: number): void {
    const { railTimeoutMs } = this.options;
    const tickMs = this.tickMs;
    if (rail.attributes.liveness === 'self') return;
    const outstanding = rail.probeOutstanding || rail.paddedWaits || rail.endpoint.outstandingBytes > 0;
    if (!outstanding) {
      rail.progressAliveMs = aliveMs;
      rail.progressPeerAliveMs = peer.aliveMs;
      // Probing every idle rail of many peers every second would cost more than it tells: the period grows with their number.
      const periodMs = Math.max(this.options.probeIdleMs, this.rails.length * 20);
      if (rail.nextProbeMs === 0 || rail.nextProbeMs > nowMs + periodMs) rail.nextProbeMs = nowMs + periodMs;
      if (nowMs >= rail.nextProbeMs) {
        rail.nextProbeMs = nowMs + periodMs;
        this.sendProbe(rail, aliveMs);
        this.wakeAt(nowMs + tickMs);
      } else this.wakeAt(rail.nextProbeMs);
      return;
    }
    this.wakeAt(nowMs + tickMs);
    const silentMs = aliveMs - rail.progressAliveMs;
    if (silentMs < railTimeoutMs / 2) return;
    if (rail.state === 'UP') {
      rail.counters.suspicions++;
      moveRail(rail, 'SUSPECT', this.listener);
    }
    // This rail too.
    this.askSiblings(peer, aliveMs);
    if (silentMs < railTimeoutMs) return;
    const silentPeerMs = peer.aliveMs - rail.progressPeerAliveMs;
    const text = `nothing got through for ${Math.round(silentMs)} ms while the peer was polling for ${Math.round(silentPeerMs)} ms`;
    this.giveUp(peer, rail, railTimeoutMs, { kind: 'silent', text }, nowMs, aliveMs);
  }

  /** The peer left or died: nothing of its rails is dialled or judged any more. */
  closePeer(peer: BmlPeer): void {
    peer.closed = true;
    for (const rail of peer.rails) {
      if (rail.attempt !== undefined) {
        rail.endpoint.cancelConnect();
        this.endAttempt(rail, { kind: 'shutdown', text: 'the peer left' }, 0);
      }
    }
  }

  /** After closePeer(), when the transports have forgotten the peer: its rails cost no turn any more, and no memory. */
  dropRails(peer: BmlPeer): void {
    this.rails = this.rails.filter((rail) => rail.peer !== peer.rank);
    peer.dropRails();
  }
}
