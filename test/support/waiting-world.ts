// A waiter of blocking calls over an engine, a poller and a clock that the test moves. Each poll, look at memory, yield and sleep is noted in a
// line, and costs what the test says, so the lines show the states of a wait.
import type { BtlModule } from '../../src/btl/btl.ts';
import { WATCH } from '../../src/native/binding.ts';
import type { Poller } from '../../src/native/poller.ts';
import { BlockingWaiter } from '../../src/progress/blocking.ts';
import type { Driver, Engine } from '../../src/progress/engine.ts';

export const SPIN_US = 1000;
/** What one look costs. */
export const LOOK_MS = 2 ** -10;

/** Runs of the same event are counted: `look*32`. */
class Notes {
  readonly runs: { what: string; times: number }[] = [];
  add(what: string): void {
    const last = this.runs.at(-1);
    if (last?.what === what) last.times++;
    else this.runs.push({ what, times: 1 });
  }
  count(what: string): number {
    return this.runs.filter((run) => run.what.startsWith(what)).reduce((sum, run) => sum + run.times, 0);
  }
  /** Looks of the first spin: those in rows, with an offer of the processor in between. */
  get spinLooks(): number {
    let looks = 0;
    for (const { what, times } of this.runs) {
      if (what === 'look' && times > 1) looks += times;
      else if (what !== 'yield') break;
    }
    return looks;
  }
  /** Offers of the processor behind a spin: one look after each. */
  get lastOffers(): number {
    return this.runs.filter(({ what }, i) => what === 'yield' && this.runs[i + 1]?.what === 'look' && this.runs[i + 1].times === 1).length;
  }
  /** Kinds in the order in which they first came. */
  get kinds(): string[] {
    return [...new Set(this.runs.map(({ what }) => what.split(' ')[0]))];
  }
}

export class WaitingWorld {
  nowMs = 1000;
  readonly notes = new Notes();
  usefulWork = 0;
  isClosed = false;
  isRunning = false;
  deadlineMs = Number.POSITIVE_INFINITY;
  unreachable: string | undefined;
  parks = true;
  deferred = 0;
  looks = 0;
  /** Transports of which all that may come stands in memory. */
  watchedModules: Pick<BtlModule, 'watch'>[] | undefined;
  watchEnd: number = WATCH.NOTHING;
  timesPassed = 0;
  /** Of the PML. */
  hasWork = false;
  sleeps: number[] = [];
  /** A descriptor is ready after this time. */
  wokenAfterMs = Number.POSITIVE_INFINITY;
  /** How long others keep the processor when it is offered. */
  yieldMs = 0;
  readonly request = { done: false };
  onLook: (n: number) => void = () => {};
  onSleep: (n: number) => void = () => {};

  readonly engine = ((world: WaitingWorld) => ({
    poll() {
      world.looks++;
      world.notes.add('look');
      world.nowMs += LOOK_MS;
      world.onLook(world.looks);
      return 0;
    },
    pollAfterSleep() {
      world.looks++;
      world.notes.add('fresh');
      world.nowMs += LOOK_MS;
      world.onLook(world.looks);
    },
    park() {
      world.notes.add(world.parks ? 'park' : 'unparked');
      return world.parks;
    },
    awaits() {},
    pml: {
      get hasWork() {
        return world.hasWork;
      },
    },
    get memoryModules() {
      return world.watchedModules;
    },
    timePassed() {
      world.timesPassed++;
    },
    needsEventLoop: () => world.unreachable,
    nextDeadline: () => world.deadlineMs,
    get usefulWork() {
      return world.usefulWork;
    },
    get isClosed() {
      return world.isClosed;
    },
    get isRunning() {
      return world.isRunning;
    },
  }))(this) as unknown as Engine;

  readonly poller = ((world: WaitingWorld) => ({
    native: {
      yieldCpu() {
        world.notes.add('yield');
        world.nowMs += world.yieldMs;
      },
      watchWords(_words: Int32Array[], _places: Int32Array, _count: number, looks: number, looksPerYield: number) {
        world.notes.add(`watch ${looks}/${looksPerYield}`);
        world.nowMs += LOOK_MS;
        return world.watchEnd;
      },
    },
    look(timeoutMs: number) {
      world.notes.add(`sleep ${timeoutMs}`);
      world.sleeps.push(timeoutMs);
      world.nowMs += Math.min(timeoutMs, world.wokenAfterMs);
      world.onSleep(world.sleeps.length);
      return 0;
    },
  }))(this) as unknown as Poller;

  waiter(spinUs = SPIN_US, poller: Poller | undefined = this.poller): BlockingWaiter {
    const driver: Driver = { poller, now: () => this.nowMs, defer: () => void this.deferred++, yield: () => {}, arm: () => {} };
    return new BlockingWaiter(this.engine, driver, spinUs);
  }

  finish(): void {
    this.request.done = true;
  }
}
