// Liveness of all native TCP rails of a module: one RailLiveness per live epoch, who may open a liveness connection, and when the next
// sample is due.
import { TCP_INFO, TCP_INFO_LENGTH } from '../../native/binding.ts';
import type { Poller } from '../../native/poller.ts';
import type { ByteStream } from '../base/byte-stream.ts';
import { type LivenessClaim, provesLiveness } from '../base/handshake.ts';
import type { StreamEndpoint } from '../base/stream-endpoint.ts';
import type { Params } from '../btl.ts';
import { type BeatRhythm, PAUSE_MS, type SilenceLimits } from './liveness.ts';
import { type LivenessHost, RailLiveness } from './liveness-rail.ts';

/** Longer than an acknowledgement may be delayed, and less than the floor of the retransmission timer, which starts the time again. */
const UNANSWERED_MS = 120;

const info = new Float64Array(TCP_INFO_LENGTH);

export interface WatchOptions {
  rank: number;
  params: Params;
  poller: Poller;
  openBeside(endpoint: StreamEndpoint, stream: ByteStream): ByteStream;
  /** Asks for a progress() soon. */
  wake(): void;
}

/** A rail that must not go on, and why. */
export interface LostRail {
  readonly endpoint: StreamEndpoint;
  readonly reason: ReturnType<RailLiveness['progress']> & object;
}
const NONE_LOST: readonly LostRail[] = [];

export class LivenessWatch implements LivenessHost {
  readonly poller: Poller;
  readonly rank: number;
  readonly limits: SilenceLimits;
  readonly rhythm: BeatRhythm;
  activeRails = 0;
  private readonly options: WatchOptions;
  private readonly rails = new Map<StreamEndpoint, RailLiveness>();
  private began: StreamEndpoint[] = [];
  private dueAt = Number.POSITIVE_INFINITY;
  private isReady = false;
  private lastTurnAt = 0;

  constructor(options: WatchOptions) {
    const { params } = options;
    this.options = options;
    this.rank = options.rank;
    this.poller = options.poller;
    this.limits = { silentMs: params.int('btl_tcp_silent_ms'), dataOnlyMs: params.int('bml_rail_timeout_ms') };
    this.rhythm = { beatMs: params.int('btl_tcp_beat_ms'), idleMs: params.int('btl_tcp_beat_idle_ms') };
  }

  get railCount(): number {
    return this.rails.size;
  }

  openBeside(endpoint: StreamEndpoint, stream: ByteStream): ByteStream {
    return this.options.openBeside(endpoint, stream);
  }

  ready(): void {
    if (this.isReady) return;
    this.isReady = true;
    this.options.wake();
  }

  /** Asked of a stream in its handshake, where only one segment at a time is on its way. */
  isUnanswered(stream: ByteStream): boolean {
    const descriptor = stream.descriptor ?? -1;
    if (descriptor < 0 || this.poller.native.tcpInfo(descriptor, info) < 0) return false;
    return info[TCP_INFO.unackedSegments] > 0 && info[TCP_INFO.sinceDataSentMs] >= UNANSWERED_MS + info[TCP_INFO.rttUs] / 500;
  }

  /** An epoch of that endpoint is live from now on. */
  epochBegan(endpoint: StreamEndpoint): void {
    this.began.push(endpoint);
    this.dueAt = 0;
  }

  /** Takes over the stream of a liveness connection, or says why not. */
  admit(endpoint: StreamEndpoint | undefined, stream: ByteStream, claim: LivenessClaim, now: number, aliveMs: number): string | undefined {
    const who = `rank ${claim.rank}, rail ${claim.rail}, epoch ${claim.epoch}`;
    if (endpoint === undefined) return `${who}: no such rail`;
    this.takeBegun(now, aliveMs);
    const rail = this.rails.get(endpoint);
    if (rail === undefined || rail.state === 'OVER' || endpoint.epoch !== claim.epoch || rail.epoch !== claim.epoch) {
      return `${who}: not the live epoch, which is ${endpoint.epoch}`;
    }
    if (!provesLiveness(claim, rail.key)) return `${who}: it does not know the key of this epoch`;
    if (claim.number <= rail.lastNumber) return `${who}: attempt ${claim.number} was seen before`;
    if (!rail.adopt(stream, claim.number, aliveMs)) return `${who}: its stream has no descriptor`;
    this.dueAt = 0;
    return undefined;
  }

  /** Looks, beats and judges where it is due. Calls `lost` for every rail that is silent. */
  progress(now: number, aliveMs: number): readonly LostRail[] {
    const pausedMs = now - this.lastTurnAt;
    this.lastTurnAt = now;
    if (pausedMs > PAUSE_MS) for (const rail of this.rails.values()) rail.paused(now, aliveMs);
    if (now < this.dueAt && !this.isReady) return NONE_LOST;
    this.isReady = false;
    this.takeBegun(now, aliveMs);
    this.dueAt = Number.POSITIVE_INFINITY;
    const lost: LostRail[] = [];
    for (const [endpoint, rail] of this.rails) {
      if (endpoint.epoch === rail.epoch) {
        const reason = rail.progress(now, aliveMs);
        if (reason === undefined) {
          this.dueAt = Math.min(this.dueAt, rail.dueAt);
          continue;
        }
        lost.push({ endpoint, reason });
      }
      rail.close();
      this.rails.delete(endpoint);
    }
    return lost;
  }

  nextDeadline(): number {
    return this.isReady ? 0 : this.dueAt;
  }

  close(): void {
    for (const rail of this.rails.values()) rail.close();
    this.rails.clear();
    this.began = [];
  }

  /** Idle rails may carry something since their last look. */
  seeStarts(now: number): void {
    if (this.activeRails === this.rails.size) return;
    for (const [endpoint, rail] of this.rails) {
      if (rail.active || endpoint.outstandingBytes === 0 || rail.dueAt <= now) continue;
      rail.dueAt = now;
      this.dueAt = Math.min(this.dueAt, now);
    }
  }

  private takeBegun(now: number, aliveMs: number): void {
    for (const endpoint of this.began) {
      this.rails.get(endpoint)?.close();
      this.rails.delete(endpoint);
      const { epochKey, liveStream } = endpoint;
      if (epochKey === undefined || liveStream === undefined || (liveStream.descriptor ?? -1) < 0) continue;
      this.rails.set(endpoint, new RailLiveness(this, endpoint, liveStream, epochKey, now, aliveMs));
    }
    this.began = [];
  }
}
