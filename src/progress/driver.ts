// Drives an engine from Node's event loop: microtasks for commands, one timer for deadlines.
import { type Clock, systemClock } from './clock.ts';
import type { Driver, Engine } from './engine.ts';

/** A timer that fires early costs a pass; one that fires late costs latency: Node's timers are whole milliseconds. */
const TIMER_MAX_MS = 0x7fff_ffff;

export class EventLoopDriver implements Driver {
  private readonly clock: Clock;
  protected engine: Engine | undefined = undefined;
  private deferred = false;
  private yielded = false;
  private timer: NodeJS.Timeout | undefined = undefined;
  private armedAtMs = Number.POSITIVE_INFINITY;
  /** Called behind each turn that begins with nothing of the application about to run. */
  atRest: (() => void) | undefined = undefined;
  /** The application has called: told before each turn that a call asks for. */
  onCall: (() => void) | undefined = undefined;

  constructor(clock: Clock = systemClock) {
    this.clock = clock;
  }

  /** The engine is made with its driver, so it is told afterwards. */
  attach(engine: Engine): void {
    this.engine = engine;
  }

  now(): number {
    return this.clock.now();
  }

  defer(): void {
    if (this.deferred) return;
    this.deferred = true;
    this.onCall?.();
    queueMicrotask(this.serveDeferred);
  }

  /** Made once: a closure in defer() would cost each call that defers, also where it has been called before. */
  private readonly serveDeferred = (): void => {
    this.deferred = false;
    if (this.engine !== undefined) this.serve(this.engine);
  };

  /** The turn that a command asked for. */
  protected serve(engine: Engine): void {
    engine.progress();
  }

  yield(): void {
    if (this.yielded) return;
    this.yielded = true;
    setImmediate(() => {
      this.yielded = false;
      this.engine?.progress();
      this.atRest?.();
    });
  }

  arm(atMs: number): void {
    if (atMs === this.armedAtMs && this.timer !== undefined) return;
    // An earlier timer that is still to come is left alone: it only costs one pass.
    if (this.timer !== undefined && this.armedAtMs <= atMs && atMs !== Number.POSITIVE_INFINITY) return;
    if (this.timer !== undefined) clearTimeout(this.timer);
    this.timer = undefined;
    this.armedAtMs = atMs;
    if (atMs === Number.POSITIVE_INFINITY) return;
    const delayMs = Math.min(TIMER_MAX_MS, Math.max(1, Math.ceil(atMs - this.clock.now())));
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.armedAtMs = Number.POSITIVE_INFINITY;
      this.engine?.progress();
      this.atRest?.();
    }, delayMs);
    // The runtime keeps the process, not what it is about to do.
    this.timer.unref();
  }
}
