// What a bad path does to what a rail sends: each frame gets a moment at which it leaves, never before the one ahead of it. A path that
// loses packets pauses for retransmission time-outs; a slow one lets a given number of bytes per second through. Neither loses anything,
// because a rail is a stream that repairs itself.
import { drawLoss } from '../../util/loss.ts';
import type { Prng } from '../../util/prng.ts';

export type BadPathKind =
  /** Packets are lost, in hundredths of a percent. */
  | { kind: 'lossy'; lossPer10k: number }
  /** The path carries so many bytes per second. */
  | { kind: 'slow'; bytesPerS: number };

/** What sums of milliseconds may be off. */
const ROUNDING_US = 1e-3;

export class BadPath {
  readonly kind: BadPathKind['kind'];
  /** Nothing that is accepted now leaves before. */
  standsUntilMs: number;
  private readonly how: BadPathKind;
  private readonly prng: Prng;

  /** `queuedBytes` are under way already: on a slow path they are in front of all that follows. */
  constructor(how: BadPathKind, prng: Prng, nowMs: number, queuedBytes: number) {
    this.how = how;
    this.kind = how.kind;
    this.prng = prng;
    this.standsUntilMs = nowMs + (how.kind === 'slow' ? this.durationMs(queuedBytes, how.bytesPerS) : 0);
  }

  private durationMs(bytes: number, bytesPerS: number): number {
    return (bytes * 1000) / bytesPerS;
  }

  /** A frame of that many bytes is accepted; when it leaves. `isFollowed` as in drawLoss(). */
  take(nowMs: number, bytes: number, isFollowed: boolean): number {
    const { how, prng } = this;
    const fromMs = Math.max(nowMs, this.standsUntilMs);
    const forMs = how.kind === 'slow' ? this.durationMs(bytes, how.bytesPerS) : drawLoss(prng, bytes, how.lossPer10k, isFollowed).stallMs;
    // In whole microseconds, which the simulator's clock counts.
    this.standsUntilMs = Math.ceil((fromMs + forMs) * 1000 - ROUNDING_US) / 1000;
    return this.standsUntilMs;
  }

  /** Another epoch begins: with an empty queue. */
  begin(nowMs: number): void {
    this.standsUntilMs = nowMs;
  }
}
