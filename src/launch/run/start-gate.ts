// Many processes start on few processors: not all at once, since each one then takes the processors from all others, and the launcher, which
// has to answer them, gets none. A process that starts holds a place until it has joined the job or has ended. What it does before that is
// nobody's business here, so it holds its place for a short time at most.

/** So many processes start at a time for each processor. */
const STARTING_PER_PROCESSOR = 4;
/** Some two to four times what a process takes to start and to join. */
const HOLD_MS_MAX = 250;

export class StartGate {
  private readonly placesMax: number;
  private readonly holdMsMax: number;
  /** Those that hold a place, each with the timer that ends that. */
  private readonly timers = new Map<number, NodeJS.Timeout>();
  private waiting: (() => void) | undefined;

  constructor(processors: number, holdMsMax = HOLD_MS_MAX) {
    this.placesMax = STARTING_PER_PROCESSOR * processors;
    this.holdMsMax = holdMsMax;
  }

  /** Resolves when that process may start; one at a time waits. */
  async enter(rank: number): Promise<void> {
    while (this.timers.size >= this.placesMax) {
      await new Promise<void>((resolve) => {
        this.waiting = resolve;
      });
    }
    const timer = setTimeout(() => this.leave(rank), this.holdMsMax);
    this.timers.set(rank, timer);
  }

  /** It has joined, or has ended, or could not be started. */
  leave(rank: number): void {
    clearTimeout(this.timers.get(rank));
    if (!this.timers.delete(rank)) return;
    this.waiting?.();
    this.waiting = undefined;
  }

  /** Nobody starts any more. */
  close(): void {
    for (const rank of [...this.timers.keys()]) this.leave(rank);
  }
}
