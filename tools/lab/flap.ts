// A rail that goes and comes until it is told to stop. It knows nothing of networks: it is given the functions that take the rail down and
// bring it back.

export class Flapping {
  /** How often the rail has gone so far. */
  cycles = 0;
  private readonly stopping = new AbortController();
  private readonly ended: Promise<unknown>;

  /** Starts at once with `takeDown`. `end` is called once, after the last of both. */
  constructor(halfPeriodMs: number, takeDown: () => Promise<void>, bringBack: () => Promise<void>, end: () => Promise<void>) {
    this.ended = this.run(halfPeriodMs, takeDown, bringBack)
      .finally(end)
      .then(
        () => undefined,
        (error: unknown) => error,
      );
  }

  /** Ends it, down or up as it happens to be, and returns what went wrong in a cycle, if anything did. */
  stop(): Promise<unknown> {
    this.stopping.abort();
    return this.ended;
  }

  private async run(halfPeriodMs: number, takeDown: () => Promise<void>, bringBack: () => Promise<void>): Promise<void> {
    const { signal } = this.stopping;
    // Halves are counted from the start, so that what the changes take and by how much timers are late does not add up; a half that
    // was missed altogether is not made up for.
    let nextMs = performance.now();
    const untilNext = () => {
      nextMs = Math.max(nextMs + halfPeriodMs, performance.now());
      return sleepUntilAborted(nextMs - performance.now(), signal);
    };
    while (!signal.aborted) {
      await takeDown();
      this.cycles++;
      await untilNext();
      if (signal.aborted) return;
      await bringBack();
      await untilNext();
    }
  }
}

function sleepUntilAborted(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done);
  });
}
