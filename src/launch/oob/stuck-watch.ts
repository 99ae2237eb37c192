// Notices that nothing of what was sent is acknowledged: of a link that loses one direction, or that comes and goes, the launcher is heard all
// the time. Pure.

/**
 * Ticks in which nothing was acknowledged, after which another address is tried. Twice as many after each time in vain: what is long on a
 * slow link gets through.
 */
const UNACKNOWLEDGED_TICKS_MAX = 5;
const DOUBLINGS_MAX = 5;

export class StuckWatch {
  private ticks = 0;
  /** Connections given up since anything was acknowledged. */
  private givenUp = 0;
  private oldest: number | undefined;

  /** Counts a tick; true when that message has waited for too long to be acknowledged. Undefined: nothing waits. */
  tick(oldestUnacknowledged: number | undefined): boolean {
    if (oldestUnacknowledged === undefined || oldestUnacknowledged !== this.oldest) {
      this.oldest = oldestUnacknowledged;
      this.ticks = 0;
      this.givenUp = 0;
      return false;
    }
    if (++this.ticks <= UNACKNOWLEDGED_TICKS_MAX * 2 ** Math.min(this.givenUp, DOUBLINGS_MAX)) return false;
    this.ticks = 0;
    this.givenUp++;
    return true;
  }
}
