// One rail as the BML sees it: its state, its epochs, what was measured of it. The table of states and the one function
// that moves between them.
import type { BtlEndpoint, RailAttributes, RailReason } from '../btl/btl.ts';
import { assert } from '../util/assert.ts';
import { settleShape } from '../util/shape.ts';
import { WIDE_ZERO } from '../util/wide-zero.ts';
import type { UsualTime } from './health.ts';

export const RAIL_STATES = {
  ON_DEMAND: 'It was not made: a steady rail of a better class carries all. It is dialled when that one fails, or cannot be made.',
  DOWN: 'No epoch is live. The dialling side tries again when its back-off is over; the other side waits to be dialled.',
  CONNECTING: 'A connection attempt of a new epoch is under way, and no epoch is live.',
  PROBING: 'An epoch is live and frames are taken from it; sending waits for the answer to a probe.',
  UP: 'The rail is in its peer’s tables and carries traffic.',
  SUSPECT: 'Nothing has come through for a while, or what it holds is late: probed, and passed over while another rail is UP.',
  TRIAL:
    'It was lost before and is back: asked by probes as long as a fragment until it has earned trust, and passed over while another rail is UP.',
} as const;
export type RailState = keyof typeof RAIL_STATES;

export const RAIL_EDGES: Readonly<Record<RailState, readonly RailState[]>> = {
  // → DOWN when it is needed (spares.ts). No rail comes back to this state.
  ON_DEMAND: ['DOWN'],
  // → CONNECTING by dialling; → PROBING when the peer dialled.
  DOWN: ['CONNECTING', 'PROBING'],
  // → PROBING by the handshake; → DOWN when the attempt failed or was given up.
  CONNECTING: ['PROBING', 'DOWN'],
  // → UP or TRIAL by the answer; → DOWN by loss, or when no answer came.
  PROBING: ['UP', 'TRIAL', 'DOWN'],
  UP: ['SUSPECT', 'DOWN'],
  // → UP as soon as something gets through and nothing is late; → DOWN by loss, or left because it stalls (health.ts).
  SUSPECT: ['UP', 'DOWN'],
  // → UP when trusted, or when no other rail is there.
  TRIAL: ['UP', 'DOWN'],
};

/** States in which an epoch is live for both sides: frames go over it where nothing better is there. */
export const CARRYING: ReadonlySet<RailState> = new Set(['UP', 'SUSPECT', 'TRIAL']);

/** Counters of one rail, shown to users by rails() and `multirail info`. */
export interface RailCounters {
  /** Times the rail came up, and was lost. */
  ups: number;
  downs: number;
  /** Frames whose completion came back in doubt, and as refused. */
  framesInDoubt: number;
  framesRefused: number;
  suspicions: number;
  connectAttempts: number;
  /** Times it was left because what it held was late while a sibling moved, and probes that were late while it was on trial. */
  stalls: number;
  trialFaults: number;
  /** Bytes of padding in the probes of its trials: all that they cost. */
  paddingBytes: number;
  /** Milliseconds that it did not carry since it first came up, by cause: DOWN (or being brought back), SUSPECT, TRIAL. */
  downMs: number;
  suspectMs: number;
  trialMs: number;
}

/** Short messages prefer other rails, until then at least; each time for longer. */
export interface Aside {
  isSet: boolean;
  untilAliveMs: number;
  forMs: number;
  /** When there was a reason for it last. */
  signAliveMs: number;
}

const newAside = (): Aside => ({ isSet: false, untilAliveMs: Number.NEGATIVE_INFINITY, forMs: 0, signAliveMs: Number.NEGATIVE_INFINITY });

/** A rail of one peer. */
export class Rail {
  readonly peer: number;
  readonly index: number;
  readonly endpoint: BtlEndpoint;
  readonly attributes: RailAttributes;
  readonly key: string;
  state: RailState = 'DOWN';
  /** The live epoch, 0 when none is. */
  epoch = 0;
  /** Highest epoch known to be over, and highest epoch ever seen or tried. */
  highestDead = 0;
  highestSeen = 0;
  lastReason: RailReason | undefined = undefined;
  /** Made after the start, of interfaces that came later. */
  readonly isAdded: boolean;
  readonly counters: RailCounters = {
    ups: 0,
    downs: 0,
    framesInDoubt: 0,
    framesRefused: 0,
    suspicions: 0,
    connectAttempts: 0,
    stalls: 0,
    trialFaults: 0,
    paddingBytes: 0,
    downMs: 0,
    suspectMs: 0,
    trialMs: 0,
  };
  /** A connection attempt under way, perhaps while an epoch is live. */
  attempt: { epoch: number; deadlineAliveMs: number } | undefined = undefined;
  nextDialMs = 0;
  backoffMs = 0;
  /** When the last attempt began. */
  dialledAtMs = Number.NEGATIVE_INFINITY;
  /** Until when flap damping holds the rail down. */
  heldUntilMs = Number.NEGATIVE_INFINITY;
  /** Times of losses within the flap window. */
  readonly losses: number[] = [];
  /** Something was accepted since the last flush. */
  needsFlush = false;
  /** BUSY was answered and onWritable has not come. */
  blocked = false;
  // --- liveness (all in this process's alive time, except nextProbeMs)
  receivedByPeer = WIDE_ZERO;
  progressAliveMs = 0;
  progressPeerAliveMs = 0;
  probeId = 0;
  probeOutstanding = false;
  lastProbeAliveMs = 0;
  /** When the probe that is outstanding was asked first. */
  askedAliveMs = 0;
  askedOvertimeMs = 0;
  /** How long the last answer took. */
  answerMs = 0;
  nextProbeMs = 0;
  probingDeadlineAliveMs = 0;
  besideAliveMs = 0;
  // --- health (health.ts; in this process's alive time)
  /** What was outstanding when it was looked at has been delivered once `deliveredBytes` reaches this. */
  markBytes = WIDE_ZERO;
  /** When that was; -1 while nothing is outstanding or nobody has looked. */
  markAliveMs = -1;
  /** What this side's turns had taken by then beyond what counts of them (health-watch.ts). */
  markOvertimeMs = 0;
  /** The peer's alive time by its first report after the mark; -1 until then. */
  markPeerAliveMs = -1;
  markPeerOvertimeMs = 0;
  /** Reports of the peer at the mark. */
  markReports = 0;
  /** What the peer had received over it at the mark. */
  markReceivedByPeer = 0;
  /** SUSPECT because what it holds is late. */
  isLate = false;
  /** When it was doubted for that. */
  doubtedAliveMs = 0;
  readonly usual: UsualTime = { meanMs: 0, deviationMs: 0, samples: 0 };
  /** Answers of siblings to questions that were asked after the mark. */
  proofs = 0;
  /** Least time from a probe to its answer. */
  roundTripMs = Number.POSITIVE_INFINITY;
  /** The same of the last two; Infinity before there were two. */
  delayMs = Number.POSITIVE_INFINITY;
  lastAnswerMs = Number.POSITIVE_INFINITY;
  /** Its answers take much longer than those of a sibling. */
  readonly slow = newAside();
  /** What it held was late, or its link has lost something: worse than to be slow. */
  readonly avoided = newAside();
  /** Losses of the link that were looked at, and when the last one was seen. */
  lossesSeen = 0;
  lossAliveMs = Number.NEGATIVE_INFINITY;
  /** What had been delivered over it when it was compared with its siblings last. */
  comparedBytes = WIDE_ZERO;
  /** When it was trusted last. */
  upAliveMs = 0;
  /** How long its trial lasts, or lasted; 0 before its first loss. */
  trialMs = 0;
  /** The probe as long as a fragment that was sent last, of its trial or to learn its rate, and the short one that was sent before it. */
  paddedProbeId = 0;
  leadProbeId = 0;
  /** The best rate of its last slow answers in a row; 0 when the last answer was not slow. */
  slowRate = 0;
  /** When the short one was answered, or before that when it was sent. */
  leadAliveMs = 0;
  /** The long one is waited for; so long it was, and then it was sent. */
  paddedWaits = false;
  paddedBytes = WIDE_ZERO;
  paddedAskedAliveMs = Number.NEGATIVE_INFINITY;
  /** Its lateness was counted. */
  trialIsLate = false;
  faultlessSinceAliveMs = 0;
  trialAnswers = 0;
  /** The highest rate that its answers have shown. */
  trialRate = 0;
  /** What had been delivered over all rails of the peer when the last probe of the trial was sent. */
  trialPassedBytes = WIDE_ZERO;
  /** When its state changed last, in `now`. */
  movedMs = 0;
  // --- measured
  deliveredBytes = WIDE_ZERO;
  sampleStartMs = -1;
  sampleBytes = 0;
  /** It held half of what it may, at least, whenever it was looked at. */
  sampleIsFull = false;
  sampledMs = -1;
  /** Bytes per millisecond, 0 until measured. */
  rate = 0;
  /** `rate` was measured while the rail was kept busy. */
  isMeasured = false;
  /** Whether it carries about what its attributes say is known, so that it may be given much at once although it has siblings. */
  isKnown: boolean;
  /** Something long was not given to it since it is not known, or too slow: it is to be asked. */
  isWanted = false;
  /** Fragments for this rail are so many times as long as the grid: a power of two, more than 1 for fast rails, less for slow ones with siblings. */
  fragScale = 1;

  constructor(peer: number, index: number, endpoint: BtlEndpoint, isAdded = false) {
    this.isAdded = isAdded;
    this.peer = peer;
    this.index = index;
    this.endpoint = endpoint;
    this.attributes = endpoint.plan.attributes;
    this.isKnown = this.attributes.startRateMBps !== undefined;
    this.key = endpoint.plan.key;
    for (const part of [this, this.counters, this.slow, this.avoided, this.usual]) settleShape(part);
  }

  /** Bytes per millisecond to reckon with. */
  get expectedRate(): number {
    return this.isMeasured ? this.rate : Math.max(this.rate, (this.attributes.startRateMBps ?? 0) * 1000);
  }

  /** Bytes of one put or get, for that grid of fragments. */
  oneSidedBytes(gridBytes: number): number {
    return Math.max(gridBytes, this.attributes.oneSidedBytes ?? 0);
  }

  get isCarrying(): boolean {
    return CARRYING.has(this.state);
  }

  /** There is room for another payload frame as far as this side knows. */
  get hasRoom(): boolean {
    return !this.blocked && this.endpoint.outstandingBytes < this.endpoint.windowBytes;
  }
}

/** Called for every change of a rail's state. */
export type RailListener = (rail: Rail, from: RailState, to: RailState) => void;

/** The one door between rail states. */
export function moveRail(rail: Rail, to: RailState, listener: RailListener): void {
  const from = rail.state;
  assert(RAIL_EDGES[from].includes(to), `rail ${rail.key} to ${rail.peer}: no edge ${from} -> ${to}`);
  rail.state = to;
  listener(rail, from, to);
}

/** What the back-off of a rail is shortened by, 0 to 0.25 of it: from a hash, so that the simulator repeats it. `rank`: the own one. */
export function jitterOf({ peer, index, counters }: Rail, rank: number): number {
  let hash = (peer * 0x9e3779b1) ^ (index * 0x85ebca6b) ^ (counters.connectAttempts * 0xc2b2ae35) ^ (rank * 0x27d4eb2f);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d) >>> 0;
  return (hash % 256) / 1024;
}
