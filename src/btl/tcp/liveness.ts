// Judges whether a TCP rail is silent, by what this side's kernel knows of its two connections (TCP_INFO): the data connection and the
// liveness connection, whose one-byte beats the peer's KERNEL acknowledges, whatever the peer's process does. Samples and time are
// arguments.
//
// Traps that shaped it, all of them measured:
//   - An acknowledgement may rightly be 40 ms late (delayed ACK), so the limit is well above that.
//   - The retransmission timer has a floor of 200 ms: instead of waiting for it, another beat is sent, so that what follows a single
//     lost packet repairs the loss.
//   - "Time since the last ACK" says nothing in a hole of one direction, where segments still come in: only a rise of the
//     acknowledged bytes counts.
//   - A receiver that does not read closes its window. Then nothing is in flight and bytes are unsent: busy, not dead.
//   - A congested data connection may wait for its own retransmission timer; beats go on then. A congested path delays the beats; data
//     goes on then. So a rail is silent only if neither connection moves.
import { WIDE_ZERO } from '../../util/wide-zero.ts';

/** What one look at a connection tells. */
export interface TcpSample {
  /** Segments sent and not acknowledged. */
  unackedSegments: number;
  /** Bytes in the send buffer that were never sent. */
  notSentBytes: number;
  /** Cumulative bytes that the peer's kernel acknowledged. */
  ackedBytes: number;
  rttUs: number;
  minRttUs: number;
  /** Segments sent again since the connection began, and how many of them for nothing; -1 where the kernel does not tell. */
  retransmissions: number;
  duplicates: number;
}

/** A round trip that is longer than the least by more than this has a queue in it. */
const QUEUE_US = 5000;

/**
 * Does the link of one connection lose what is sent over it? Something was sent again, and no queue had grown that could have overflown:
 * who fills a link loses some of it by right.
 */
export class LossMeter {
  private seen = -1;

  /** True when something was lost since the last look. */
  take({ retransmissions, duplicates, rttUs, minRttUs }: TcpSample): boolean {
    const lost = retransmissions - Math.max(0, duplicates);
    const rose = this.seen >= 0 && lost > this.seen;
    this.seen = lost;
    return rose && rttUs <= minRttUs + QUEUE_US;
  }
}

export const SILENCE_STATES = {
  QUIET: 'Nothing is on its way, so nothing can be told.',
  WAITING: 'Something is on its way and not acknowledged, for less than the limit.',
  BUSY: "Nothing is in flight and bytes are unsent: the peer's kernel answers and its process does not read.",
  SILENT: 'Something was on its way for the limit, over turns of our own, and nothing was acknowledged: the rail is lost.',
} as const;
export type SilenceState = keyof typeof SILENCE_STATES;

export const SILENCE_EDGES: Readonly<Record<SilenceState, readonly SilenceState[]>> = {
  QUIET: ['WAITING', 'BUSY'],
  WAITING: ['QUIET', 'BUSY', 'SILENT'],
  BUSY: ['QUIET', 'WAITING'],
  SILENT: [],
};

export interface SilenceLimits {
  /** Without an acknowledgement for this long, and twice the round trip, a rail with a liveness connection is silent. */
  silentMs: number;
  /** The same without a liveness connection: the data connection alone may be waiting for its retransmission timer. */
  dataOnlyMs: number;
}

/** Turns of ours that are further apart than this are a pause, after which the kernel is asked before anything is concluded. */
export const PAUSE_MS = 50;

/** One of the two connections. Times are of our own alive time. */
class Meter {
  /** Since when something is on its way without any of it being acknowledged; Infinity while nothing is. */
  sinceAliveMs = Number.POSITIVE_INFINITY;
  /** When acknowledged bytes were last seen to have risen. */
  movedAliveMs: number;
  isBlocked = false;
  segments = 0;
  private ackedBytes = WIDE_ZERO;

  constructor(aliveMs: number) {
    this.movedAliveMs = aliveMs;
  }

  take(sample: TcpSample, aliveMs: number): boolean {
    const moved = sample.ackedBytes > this.ackedBytes;
    this.segments = sample.unackedSegments;
    this.isBlocked = sample.unackedSegments === 0 && sample.notSentBytes > 0;
    if (moved) {
      this.ackedBytes = sample.ackedBytes;
      this.movedAliveMs = aliveMs;
    }
    if (sample.unackedSegments === 0) this.sinceAliveMs = Number.POSITIVE_INFINITY;
    else if (moved || this.sinceAliveMs === Number.POSITIVE_INFINITY) this.sinceAliveMs = aliveMs;
    return moved;
  }
}

export class SilenceJudge {
  state: SilenceState = 'QUIET';
  private readonly limits: SilenceLimits;
  private readonly data: Meter;
  private beats: Meter | undefined = undefined;
  /** Least round trip seen: that of the path, without delayed acknowledgements and queues. */
  private rttMs = Number.POSITIVE_INFINITY;
  /** The one pause of ours that is forgiven while nothing moves. */
  private pauseForgiven = false;
  private aliveMs: number;

  constructor(limits: SilenceLimits, aliveMs: number) {
    this.limits = limits;
    this.data = new Meter(aliveMs);
    this.aliveMs = aliveMs;
  }

  /** The liveness connection is open. */
  beatsBegin(aliveMs: number): void {
    this.beats = new Meter(aliveMs);
  }

  /** The liveness connection is gone: from here on the data connection alone tells. */
  beatsEnd(): void {
    this.beats = undefined;
  }

  /** A beat was given to the kernel: right after a look, so what was on its way before is known. */
  beatSent(aliveMs: number): void {
    const { beats } = this;
    if (beats === undefined || beats.sinceAliveMs !== Number.POSITIVE_INFINITY || beats.isBlocked) return;
    beats.sinceAliveMs = aliveMs;
    if (this.state !== 'SILENT') this.move('WAITING');
  }

  /**
   * This process did not take its turns for more than PAUSE_MS (it computed, or was stopped). Before the first look after it nothing
   * is concluded, and the silence starts again; only once until something moves, or a process that often computes would never notice.
   */
  paused(aliveMs: number): void {
    if (this.pauseForgiven || this.state === 'SILENT') return;
    this.pauseForgiven = true;
    for (const meter of [this.data, this.beats]) {
      if (meter === undefined) continue;
      meter.movedAliveMs = aliveMs;
      if (meter.sinceAliveMs !== Number.POSITIVE_INFINITY) meter.sinceAliveMs = aliveMs;
    }
  }

  /** A look at both connections; `beat` is there while the liveness connection is open. */
  look(data: TcpSample, beat: TcpSample | undefined, aliveMs: number): SilenceState {
    this.aliveMs = aliveMs;
    let moved = this.data.take(data, aliveMs);
    this.seeRtt(data);
    if (beat !== undefined && this.beats !== undefined) {
      if (this.beats.take(beat, aliveMs)) moved = true;
      this.seeRtt(beat);
    }
    if (moved || !this.isWaiting) this.pauseForgiven = false;
    if (this.state === 'SILENT') return this.state;
    if (this.isWaiting) {
      this.move('WAITING');
      if (aliveMs >= this.dueAliveMs) this.move('SILENT');
    } else this.move(this.data.isBlocked || this.beats?.isBlocked === true ? 'BUSY' : 'QUIET');
    return this.state;
  }

  /** When, in alive time, the rail is silent if nothing is acknowledged until then; Infinity when nothing is on its way. */
  get dueAliveMs(): number {
    const { data, beats } = this;
    if (beats === undefined) return data.sinceAliveMs + this.limits.dataOnlyMs + this.rttAllowanceMs;
    // With a liveness connection only beats start the clock: data alone may wait for its retransmission timer.
    return Math.max(beats.sinceAliveMs, data.movedAliveMs) + this.limits.silentMs + this.rttAllowanceMs;
  }

  /** For people: what was waited for. */
  describe(): string {
    const { data, beats } = this;
    const silentMs = Math.round(this.aliveMs - (beats === undefined ? data.sinceAliveMs : Math.max(beats.sinceAliveMs, data.movedAliveMs)));
    const beat = beats === undefined ? 'no liveness connection' : `${beats.segments} beats`;
    return `the peer's kernel acknowledged nothing for ${silentMs} ms (on the way: ${data.segments} segments of data, ${beat})`;
  }

  private get isWaiting(): boolean {
    return (this.beats ?? this.data).sinceAliveMs !== Number.POSITIVE_INFINITY;
  }

  private get rttAllowanceMs(): number {
    return this.rttMs === Number.POSITIVE_INFINITY ? 0 : 2 * this.rttMs;
  }

  private seeRtt(sample: TcpSample): void {
    if (sample.rttUs > 0) this.rttMs = Math.min(this.rttMs, sample.rttUs / 1000);
  }

  private move(to: SilenceState): void {
    if (to === this.state) return;
    if (!SILENCE_EDGES[this.state].includes(to)) throw new Error(`silence: no edge from ${this.state} to ${to}`);
    this.state = to;
  }
}

export interface BeatRhythm {
  beatMs: number;
  idleMs: number;
}

/** An acknowledgement may be late by 40 ms; a beat of an idle rail that waits longer may be lost, and another one makes its loss seen. */
export const SECOND_BEAT_MS = 45;
/** Beats per second of one process, all rails together. */
const BEATS_PER_SECOND_MAX = 1000;
/** Idle rails of one process send as many beats per second. */
const IDLE_BEATS_PER_SECOND_MAX = 50;
/** How many beats may be unread at the peer before the next ones are further apart: they must never fill its buffer. */
const UNREAD_SLOWER: readonly { beats: number; apartMs: number }[] = [
  { beats: 512, apartMs: 1000 },
  { beats: 256, apartMs: 500 },
  { beats: 64, apartMs: 100 },
];

export interface BeatCircumstances {
  /** Traffic is outstanding or was moving within the last second. */
  active: boolean;
  state: SilenceState;
  /** Beats sent since the peer's process was last heard on this rail. */
  unread: number;
  /** Rails of this process with traffic, and all. */
  activeRails: number;
  rails: number;
}

/** Time to the next beat in milliseconds. */
export function beatIntervalMs(rhythm: BeatRhythm, at: BeatCircumstances): number {
  const idleMs = Math.max(rhythm.idleMs, (at.rails * 1000) / IDLE_BEATS_PER_SECOND_MAX);
  if (!at.active) return at.state === 'WAITING' ? Math.min(SECOND_BEAT_MS, idleMs) : idleMs;
  const busyMs = Math.max(rhythm.beatMs, (at.activeRails * 1000) / BEATS_PER_SECOND_MAX);
  for (const { beats, apartMs } of UNREAD_SLOWER) if (at.unread >= beats) return Math.max(busyMs, apartMs);
  return busyMs;
}
