// Drives an engine from Node's event loop and from the readiness of descriptors (native part): what comes in is taken as soon as
// the kernel says so, and for a while after useful work the event loop is not given back, since waking from sleep costs more than a
// whole round trip. Microtasks run between two polls.
//
//   IDLE      the event loop sleeps until a descriptor is ready, a timer is due, or somebody calls
//   SPINNING  the poller calls again and again, until nothing useful came for the spin time or a turn is over
//   TURN      the turn was over while spinning: timers and other I/O run, then the doorbell brings the poller back
import type { NativeBinding } from '../native/binding.ts';
import { Poller } from '../native/poller.ts';
import { type Clock, systemClock } from './clock.ts';
import { EventLoopDriver } from './driver.ts';
import type { Engine } from './engine.ts';

/** While it spins and streams are read at any time, the kernel is asked what else is ready once in so many polls. */
const POLLS_PER_KERNEL = 4;
/** Polls without useful work before the core is offered to others; the second where ranks are more than processors. */
const POLLS_PER_YIELD = 32;
const CROWDED_POLLS_PER_YIELD = 2;
/** Longest time in one go, in milliseconds: then timers and other I/O get their turn. */
const TURN_MAX_MS = 2;

type SpinState = 'IDLE' | 'SPINNING' | 'TURN';

export class PollerDriver extends EventLoopDriver {
  readonly poller: Poller;
  private readonly native: NativeBinding;
  private readonly spinMs: number;
  private readonly doorbell: number;
  private state: SpinState = 'IDLE';
  /** Useful work that the engine had done after the last poll, and when that had changed. */
  private usefulBefore = 0;
  private usefulAtMs = Number.NEGATIVE_INFINITY;
  private turnBeganMs = 0;
  private polls = 0;
  private vainPolls = 0;
  private pollsPerYield = POLLS_PER_YIELD;
  private closed = false;
  pollsAgain = false;

  /** The descriptors do not keep the process alive: whoever listens says so. */
  constructor(native: NativeBinding, spinUs: number, clock: Clock = systemClock) {
    super(clock);
    this.native = native;
    this.spinMs = spinUs / 1000;
    this.poller = new Poller(native, () => this.onReady());
    this.poller.keepAlive(false);
    this.doorbell = native.eventOpen();
    this.poller.add(this.doorbell, { onReady: () => void native.eventClear(this.doorbell) });
  }

  /** The ranks of this host are more than the processors that they may use. */
  expectCrowd(): void {
    this.pollsPerYield = CROWDED_POLLS_PER_YIELD;
  }

  /** True = call again at once. */
  private onReady(): boolean {
    if (this.closed) return false;
    const { poller } = this;
    const spares = this.state === 'SPINNING' && (poller.direct || poller.memoryFirst);
    if (!spares || ++this.polls % POLLS_PER_KERNEL === 0) poller.look();
    const { engine } = this;
    if (engine === undefined) return false;
    // Rails in memory need no doorbell while they are polled again and again.
    this.pollsAgain = true;
    try {
      engine.progress();
      this.atRest?.();
      if (this.spins(engine)) return true;
    } catch (error) {
      this.pollsAgain = false;
      throw error;
    }
    this.pollsAgain = false;
    // There is more, or something has come meanwhile: it is taken after everybody else had a turn.
    if (engine.hasMore || !engine.park()) this.yield();
    this.arm(engine.nextDeadline());
    return false;
  }

  protected override serve(engine: Engine): void {
    if (this.pollsAgain) engine.serveCommands();
    else engine.progress();
  }

  private spins(engine: Engine): boolean {
    if (this.spinMs === 0 || this.closed) return false;
    const nowMs = this.now();
    const isUseful = engine.usefulWork !== this.usefulBefore;
    if (isUseful) {
      this.usefulBefore = engine.usefulWork;
      this.usefulAtMs = nowMs;
    }
    // After useful work there is one more poll at least: the application, which runs in between, may only then wait for more.
    if (nowMs - this.usefulAtMs >= this.spinMs || !(isUseful || engine.wantsSpin())) {
      this.state = 'IDLE';
      return false;
    }
    if (this.state !== 'SPINNING') {
      this.state = 'SPINNING';
      this.turnBeganMs = nowMs;
      return true;
    }
    if (nowMs - this.turnBeganMs < TURN_MAX_MS) {
      if (isUseful) this.vainPolls = 0;
      // The peer may be waiting for this very core.
      else if (++this.vainPolls % this.pollsPerYield === 0) this.native.yieldCpu();
      return true;
    }
    this.state = 'TURN';
    this.native.eventSignal(this.doorbell);
    return false;
  }

  /** Once the engine is closed: every descriptor is gone from the poller by then. */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.poller.remove(this.doorbell);
    this.native.close(this.doorbell);
    this.poller.close();
  }
}
