// Blocking calls: waits for a request without the event loop. Polls the rails, then gives the processor away, then sleeps in the
// kernel until a rail has something.
//
//   SPINNING   polls the rails, and offers the processor once in many polls, for the spin time after the last thing that happened
//   YIELDING   a few polls with the processor offered to others in between
//   SLEEPING   in the kernel, until a descriptor is ready, a doorbell rings or a deadline comes
//
// Where the ranks of a host are more than its processors (isCrowded), whoever is waited for is likely to wait for this very processor: from
// the first look on it is offered after every few looks, and nothing spins.
//
// Where other processes want the same processor, spinning is the worst that can be done: the scheduler takes the processor away for
// milliseconds, in the middle of a message, while a process that sleeps is woken at once. A spin in which time jumps twice in a short while
// shows that (once may be a passer-by, V8's compiler for example), and for a while calls go to sleep at once.
import { MultirailError } from '../errors.ts';
import type { Poller } from '../native/poller.ts';
import type { Driver, Engine } from './engine.ts';
import { CROWDED_LOOKS, LOOKS, LOOKS_PER_YIELD, MemoryWatch, TAKEN_AWAY_MS } from './memory-watch.ts';

/** What is waited for. */
export interface Awaited {
  readonly done: boolean;
  /** Asked once in many polls and after each sleep, for what costs more to find out: true ends the wait as `done` does. */
  isOver?(): boolean;
}

/** Polls between two readings of the clock; and before the first one in code that is not compiled, where each takes microseconds. */
const POLLS_PER_CLOCK = 32;
const COLD_POLLS = 4;
/** Offers of the processor before sleep. A crowded host has somebody who takes them, and to be woken costs more than to come back from one. */
const YIELDS = 4;
const CROWDED_YIELDS = 100;
/** Polls between two offers on a crowded host. */
const CROWDED_POLLS_PER_YIELD = 2;
/** Who wants the processor for good takes it again within this time. */
const TWICE_WITHIN_MS = 20;
/** How long calls sleep at once after the processor was taken away; doubled each time that it happens again right afterwards. */
const CROWDED_MIN_MS = 10;
const CROWDED_MAX_MS = 160;
/** Longest sleep: deadlines of the rails are kept by nextDeadline(); this is for what nobody announces. */
const SLEEP_MAX_MS = 50;

export class BlockingWaiter {
  private readonly engine: Engine;
  private readonly driver: Driver;
  private readonly poller: Poller | undefined;
  /** Polls for it; undefined without the native part. */
  readonly watch: MemoryWatch | undefined;
  readonly spinMs: number;
  /** Called before each sleep, with the time, and that of the call's beginning. */
  onSleep: ((nowMs: number, beganMs: number) => void) | undefined = undefined;
  private crowdedUntilMs = Number.NEGATIVE_INFINITY;
  private crowdedMs = CROWDED_MIN_MS;
  private takenAwayAtMs = Number.NEGATIVE_INFINITY;
  private isCrowded = false;

  /** `spinUs`: how long to poll the rails before sleep, with an offer of the processor once in many polls. */
  constructor(engine: Engine, driver: Driver, spinUs: number) {
    this.engine = engine;
    this.driver = driver;
    this.poller = driver.poller;
    this.watch = this.poller && new MemoryWatch(engine, this.poller.native);
    this.spinMs = spinUs / 1000;
  }

  /** The ranks of this host are more than the processors that they may use. */
  expectCrowd(): void {
    this.isCrowded = true;
  }

  /** Milliseconds of the clock that deadlines are given in. */
  now(): number {
    return this.driver.now();
  }

  /**
   * Returns true once the request is done, false when `deadlineMs` (of the driver's clock) is over before. Throws ERR_SUPPORT when
   * what it waits for can only come by way of the event loop.
   */
  wait(request: Awaited, deadlineMs = Number.POSITIVE_INFINITY): boolean {
    const { engine } = this;
    engine.awaits(request);
    try {
      return this.waitFor(request, deadlineMs);
    } finally {
      engine.awaits(undefined);
    }
  }

  private waitFor(request: Awaited, deadlineMs: number): boolean {
    const { engine, driver, watch, isCrowded } = this;
    // What the call begins and leaves (doorbells to ask for, reports that are due) is kept by the event loop, when it runs again.
    driver.defer();
    // Most often it is there, or comes, before it is worth reading a clock.
    const isCold = !isCrowded && watch?.beginsCold() === true;
    const firstPolls = isCrowded ? CROWDED_POLLS_PER_YIELD : isCold ? COLD_POLLS : POLLS_PER_CLOCK;
    for (let i = 0; i < firstPolls; i++) {
      if (request.done) return true;
      if (isCold) watch?.wait(LOOKS, LOOKS_PER_YIELD);
      engine.poll();
    }
    if (request.done) return true;
    if (engine.isRunning) {
      throw new MultirailError(
        'ERR_SUPPORT',
        'a blocking call cannot wait inside a subscriber of a diagnostics channel: the rails do not move meanwhile',
      );
    }
    this.mustBeReachable();
    let nowMs = driver.now();
    const beganMs = nowMs;
    let quietSinceMs = nowMs;
    let useful = engine.usefulWork;
    let yields = 0;
    const yieldsMax = isCrowded ? CROWDED_YIELDS : YIELDS;
    const pollsPerYield = isCrowded ? CROWDED_POLLS_PER_YIELD : 1;
    while (!request.done) {
      if (request.isOver?.() === true) return true;
      if (engine.isClosed) throw new MultirailError('ERR_FINALIZED', 'the runtime was closed during a blocking call');
      if (nowMs >= deadlineMs) return false;
      if (!isCrowded && nowMs - quietSinceMs < this.spinMs && nowMs >= this.crowdedUntilMs) {
        if (isCold && watch?.wait(LOOKS, LOOKS_PER_YIELD) === true) engine.poll();
        else this.poll(request, POLLS_PER_CLOCK);
        const before = nowMs;
        nowMs = driver.now();
        if (engine.usefulWork !== useful) {
          useful = engine.usefulWork;
          quietSinceMs = nowMs;
          yields = 0;
        } else if (nowMs - before > TAKEN_AWAY_MS) this.takenAway(nowMs);
        // In a program that has just begun, what is waited for may be V8's compiler, at either side.
        else if (!request.done) this.poller?.native.yieldCpu();
        continue;
      }
      if (yields < yieldsMax && nowMs >= this.crowdedUntilMs) {
        yields += this.offer(nowMs, yieldsMax - yields);
        this.poll(request, pollsPerYield);
      } else {
        // Rails may have gone since the call began.
        this.mustBeReachable();
        this.onSleep?.(nowMs, beganMs);
        this.sleep(nowMs, deadlineMs);
      }
      nowMs = driver.now();
      if (engine.usefulWork !== useful) {
        useful = engine.usefulWork;
        quietSinceMs = nowMs;
        yields = 0;
      }
    }
    return true;
  }

  private poll(request: Awaited, times: number): void {
    for (let i = 0; i < times && !request.done; i++) this.engine.poll();
  }

  /** Offers the processor, `timesMax` times at most; returns how often. */
  private offer(nowMs: number, timesMax: number): number {
    const { driver, poller, watch } = this;
    const times = Math.min(CROWDED_LOOKS, timesMax);
    const isWatched = watch?.wait(times, 1) === true;
    if (!isWatched) poller?.native.yieldCpu();
    const backMs = driver.now();
    // Somebody took the offer: this process would get the processor back as late each time.
    if (isWatched ? watch.wasTakenAway : backMs - nowMs > TAKEN_AWAY_MS) this.takenAway(backMs);
    return isWatched ? times : 1;
  }

  private takenAway(nowMs: number): void {
    const isAgain = nowMs - this.crowdedUntilMs < CROWDED_MIN_MS;
    const isOnce = nowMs - this.takenAwayAtMs >= TWICE_WITHIN_MS;
    this.takenAwayAtMs = nowMs;
    if (isOnce && !isAgain) return;
    this.crowdedMs = isAgain ? Math.min(CROWDED_MAX_MS, this.crowdedMs * 2) : CROWDED_MIN_MS;
    this.crowdedUntilMs = nowMs + this.crowdedMs;
  }

  private sleep(nowMs: number, deadlineMs: number): void {
    const { engine, poller } = this;
    if (poller === undefined) {
      engine.poll();
      return;
    }
    if (engine.park()) {
      const untilMs = Math.min(engine.nextDeadline(), deadlineMs, nowMs + SLEEP_MAX_MS);
      if (untilMs > nowMs) poller.look(untilMs - nowMs);
    }
    engine.pollAfterSleep();
  }

  /** A call that cannot end is refused, not left hanging: throws ERR_SUPPORT. */
  mustBeReachable(): void {
    const unreachable = this.engine.needsEventLoop();
    if (unreachable === undefined) return;
    throw new MultirailError(
      'ERR_SUPPORT',
      `a blocking call cannot wait here: ${unreachable} is served by the event loop, which does not run during the call. Await the promise instead, or use transports of the native part (multirail info says why it is not loaded)`,
    );
  }
}
