// Is a rail that is up also good? Links fail without being down: a connector is dirty, a port flaps, a switch drops one packet in twenty, a
// rate falls to a hundredth. What such a rail holds, others wait for, although a sibling is healthy. One pure function decides from what was
// observed of a rail and of its siblings; bml.ts observes, and does what it says. State of a rail by that (RAIL_STATES):
//
//   UP       ─ doubt ─► SUSPECT   what it holds is late: nothing new goes to it while a sibling is UP
//   SUSPECT  ─ clear ─► UP        all that was late has been delivered
//   SUSPECT  ─ leave ─► DOWN      its epoch ends, so that what it held goes again over siblings, and it is dialled again
//   TRIAL    ─ trust ─► UP        probes as long as a fragment have come back in time for long enough
//
// What a rail holds is measured by a mark: the moment at which everything outstanding was looked at. Once all of that is delivered, the time
// since the mark is one sample of how long the rail needs for what it holds, and the next mark is set. Samples are smoothed with their
// deviation as round trips are in RFC 6298. A rail that is slow but steady therefore has a usual time of its own; and it is never compared
// with more than siblings would need for the same bytes. What siblings would do is proved by their answers to questions that were asked
// after the mark: a rail is doubted soon while they answer.
//
// All times are alive time, in which both sides polled: a process that computes or is stopped makes no rail bad.

/** How a rail is before it was measured, or has been measured so far; times in milliseconds. */
export interface UsualTime {
  meanMs: number;
  deviationMs: number;
  samples: number;
}

/** One sample more: RFC 6298, section 2, with its gains. */
export function addSample(usual: UsualTime, sampleMs: number): void {
  if (usual.samples++ === 0) {
    usual.meanMs = sampleMs;
    usual.deviationMs = sampleMs / 2;
    return;
  }
  usual.deviationMs += (Math.abs(sampleMs - usual.meanMs) - usual.deviationMs) / 4;
  usual.meanMs += (sampleMs - usual.meanMs) / 8;
}

/** What a rail rarely exceeds while it is as it was. */
export function usualMaxMs(usual: UsualTime): number {
  return usual.samples === 0 ? 0 : usual.meanMs + 4 * usual.deviationMs;
}

export interface HealthLimits {
  /** A rail that holds something for this long while a sibling moves is left, where nothing says that it always needs longer. */
  stallTimeoutMs: number;
  /** How long a rail must be without fault before it is trusted after its first stall, and at most. */
  trialMinMs: number;
  trialMaxMs: number;
}

/** What was seen of a rail that carries, and of the best of its siblings. */
export interface CarryingObservation {
  state: 'UP' | 'SUSPECT';
  /** Since the mark, in this side's alive time; 0 when nothing is outstanding. */
  heldMs: number;
  /** The part of it in which the peer polled its rails, as far as it has told. */
  heldPeerMs: number;
  /** It is suspect and still holds what made it so, or what it held when it was doubted for another reason. */
  holdsDoubted: boolean;
  /** What the rail itself rarely exceeds. */
  usualMaxMs: number;
  /** What the siblings that are UP would need for the bytes that this rail holds; Infinity when none of them has moved since the mark. */
  siblingMs: number;
  /** What the siblings rarely exceed, the least of them; Infinity when none was measured. */
  siblingUsualMs: number;
  /** Answers that siblings gave to questions asked after the mark: what they were asked last overtook what this rail held by then. */
  proofs: number;
}

/** `clear`: of a suspect rail nothing is late any more. */
export type CarryingVerdict = 'keep' | 'doubt' | 'leave' | 'clear';

/**
 * So many proofs say that siblings do better, unless those need longer than the time-out themselves. They do not say that the rail is bad:
 * a kernel waits up to 40 ms with an acknowledgement, and on a busy machine one rail brings later what another brought. It is left after the
 * time-out as ever.
 */
const PROOFS_MIN = 3;
/**
 * A rail may be late by its own habit, but not by more than this much of the time-out, and above the time-out only as far as siblings have
 * the same habit, as those on one full cable do: a rail that loses what it carries gets used to being late.
 */
const HABIT_FACTOR_MAX = 2;
const HABIT_SIBLING_FACTOR = 2;
/**
 * A rail is left when it has held what it holds for as long as siblings would need for it, and a little more, since equal ones need the same:
 * whatever it would have done then, the time is little more than twice the least. As long as they have not proved what they do, siblings are
 * given so many times their estimate.
 */
const SIBLING_FACTOR = 2;
const PROVEN_SIBLING_FACTOR = 1.25;
/** A rail is doubted after this part of the time after which it is left, and not before what it is used to: queues that are full are no fault. */
const DOUBT_PART = 0.5;
/** Where siblings are proved to do better, it costs nothing to give the next messages to them. */
const PROVEN_DOUBT_PART = 1 / 4;
/** The peer's part of the time is known by what it told last: a little older than ours. */
const PEER_PART = 0.5;

/** What the limits of a rail follow from. */
type Compared = Omit<CarryingObservation, 'state' | 'heldMs' | 'heldPeerMs' | 'holdsDoubted'>;

function isProven({ proofs, siblingUsualMs }: Compared, { stallTimeoutMs }: HealthLimits): boolean {
  return proofs >= PROOFS_MIN && (siblingUsualMs <= stallTimeoutMs || siblingUsualMs === Number.POSITIVE_INFINITY);
}

/** How long a rail may hold what it holds before it is left. */
export function leaveAfterMs(observed: Compared, limits: HealthLimits): number {
  const { stallTimeoutMs } = limits;
  const { siblingUsualMs } = observed;
  const habitMaxMs = Math.max(stallTimeoutMs, Math.min(stallTimeoutMs * HABIT_FACTOR_MAX, siblingUsualMs * HABIT_SIBLING_FACTOR));
  const habitMs = Math.min(observed.usualMaxMs, habitMaxMs);
  return Math.max(stallTimeoutMs, habitMs, observed.siblingMs * (isProven(observed, limits) ? PROVEN_SIBLING_FACTOR : SIBLING_FACTOR));
}

/** How long before it is doubted. */
export function doubtAfterMs(observed: Compared, leaveMs: number, limits: HealthLimits): number {
  const part = isProven(observed, limits) ? PROVEN_DOUBT_PART : DOUBT_PART;
  return Math.max(leaveMs * part, Math.min(observed.usualMaxMs, leaveMs));
}

export function judgeCarrying(observed: CarryingObservation, limits: HealthLimits): CarryingVerdict {
  const { state, heldMs, heldPeerMs, siblingMs } = observed;
  // Where no sibling moves, nothing is gained by leaving this rail: silence of all is judged elsewhere (bml.ts).
  if (siblingMs === Number.POSITIVE_INFINITY) return 'keep';
  const leaveMs = leaveAfterMs(observed, limits);
  if (heldMs >= leaveMs && heldPeerMs >= leaveMs * PEER_PART) return 'leave';
  // That the limit has moved makes nothing of it come through.
  if (heldMs < doubtAfterMs(observed, leaveMs, limits)) return state === 'SUSPECT' && !observed.holdsDoubted ? 'clear' : 'keep';
  return state === 'UP' ? 'doubt' : 'keep';
}

/** What was seen of a rail on trial. */
export interface TrialObservation {
  /** Since a probe is waited for, or 0 when none is. */
  waitingMs: number;
  /** What the best sibling needs for as many bytes. */
  siblingMs: number;
  /** Since the last fault, or since the trial began. */
  faultlessMs: number;
  /** Probes answered in time since then. */
  answers: number;
  /** How long this trial lasts. */
  trialMs: number;
}

/** `fault`: a probe is late. `trust`: the rail may carry again. */
export type TrialVerdict = 'keep' | 'fault' | 'trust';

/** Answers without which time alone earns no trust. */
const ANSWERS_MIN = 4;
/** A rail that needs so many times as long as its sibling still adds something worth having. */
const TRIAL_SIBLING_FACTOR = 8;

/** How long an answer to a probe on trial may take. */
export function trialAnswerMs(siblingMs: number, { stallTimeoutMs }: HealthLimits): number {
  return Math.max(stallTimeoutMs / 3, siblingMs * TRIAL_SIBLING_FACTOR);
}

export function judgeTrial(observed: TrialObservation, limits: HealthLimits): TrialVerdict {
  if (observed.waitingMs > trialAnswerMs(observed.siblingMs, limits)) return 'fault';
  return observed.faultlessMs >= observed.trialMs && observed.answers >= ANSWERS_MIN ? 'trust' : 'keep';
}

/** Trust is lost fast and earned slowly: each loss, and each fault of a trial, makes the next one so many times as long. */
const TRIAL_GROWTH = 3;
/** A rail that was UP for so many times its last trial, and for this long, has made its stalls good. */
const MADE_GOOD_TRIALS = 2;
const MADE_GOOD_MS = 1500;

/** Length of the trial after one more stall; `trialMs`: that of the last one, 0 for none; `upMs`: how long the rail was UP since. */
export function nextTrialMs(trialMs: number, upMs: number, { trialMinMs, trialMaxMs }: HealthLimits): number {
  if (trialMs === 0 || upMs >= Math.max(MADE_GOOD_MS, trialMs * MADE_GOOD_TRIALS)) return trialMinMs;
  return Math.min(trialMaxMs, trialMs * TRIAL_GROWTH);
}

/** Probes of a trial are so far apart: often enough to meet short holes, seldom enough to cost little. */
const PROBES_PER_TRIAL = 16;
const PROBE_INTERVAL_MIN_MS = 5;
const PROBE_INTERVAL_MAX_MS = 200;

/** `isIdle`: nothing else goes to that peer, so that nothing is gained by haste. */
export function trialIntervalMs(trialMs: number, isIdle: boolean, probeIdleMs: number): number {
  const busyMs = Math.min(PROBE_INTERVAL_MAX_MS, Math.max(PROBE_INTERVAL_MIN_MS, trialMs / PROBES_PER_TRIAL));
  return isIdle ? Math.max(busyMs, probeIdleMs / 4) : busyMs;
}
