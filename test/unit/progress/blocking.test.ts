// Method: the waiter over an engine, a poller and a clock that the test moves. Each poll, yield and sleep is noted in a line, and costs
// what the test says, so the lines show the states of a wait.
import { beforeEach, describe, expect, test } from 'vitest';
import type { BtlModule, WatchedWords } from '../../../src/btl/btl.ts';
import { MultirailError } from '../../../src/errors.ts';
import { WATCH } from '../../../src/native/binding.ts';
import type { Poller } from '../../../src/native/poller.ts';
import { BlockingWaiter } from '../../../src/progress/blocking.ts';
import type { Driver, Engine } from '../../../src/progress/engine.ts';

const SPIN_US = 1000;
/** What one look costs. */
const LOOK_MS = 2 ** -10;

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

class World {
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
  sleeps: number[] = [];
  /** A descriptor is ready after this time. */
  wokenAfterMs = Number.POSITIVE_INFINITY;
  /** How long others keep the processor when it is offered. */
  yieldMs = 0;
  readonly request = { done: false };
  onLook: (n: number) => void = () => {};
  onSleep: (n: number) => void = () => {};

  readonly engine = ((world: World) => ({
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

  readonly poller = ((world: World) => ({
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

let world: World;
beforeEach(() => {
  world = new World();
});

describe('more ranks than processors', () => {
  const crowded = (): BlockingWaiter => {
    const waiter = world.waiter();
    waiter.expectCrowd();
    return waiter;
  };

  test('the processor is offered after every few looks, from the first on', () => {
    world.onLook = (n) => n === 7 && world.finish();
    expect(crowded().wait(world.request)).toBe(true);
    expect(world.notes.runs.map(({ what, times }) => `${what}*${times}`)).toEqual([
      'look*2',
      'yield*1',
      'look*2',
      'yield*1',
      'look*2',
      'yield*1',
      'look*1',
    ]);
  });

  test('nothing spins; what does not come is waited for asleep', () => {
    world.onSleep = () => world.finish();
    expect(crowded().wait(world.request)).toBe(true);
    expect(world.notes.kinds).toEqual(['look', 'yield', 'park', 'sleep', 'fresh']);
    expect(world.notes.count('look')).toBe(2 * (1 + world.notes.count('yield')));
    expect(world.notes.count('look') * LOOK_MS).toBeLessThan(SPIN_US / 1000);
  });

  test('something useful begins the offers again', () => {
    let offers = 0;
    world.onLook = (n) => {
      if (n === 50) world.usefulWork++;
    };
    world.onSleep = () => {
      offers = world.notes.count('yield');
      world.finish();
    };
    expect(crowded().wait(world.request)).toBe(true);
    expect(offers).toBeGreaterThan(100);
  });

  test('an offer that another process takes for long is followed by sleep', () => {
    world.yieldMs = 3;
    world.onSleep = () => world.finish();
    expect(crowded().wait(world.request)).toBe(true);
    expect(world.notes.count('yield')).toBeLessThan(4);
  });
});

describe('SPINNING, YIELDING, SLEEPING', () => {
  test('what is done already costs no look', () => {
    world.finish();
    expect(world.waiter().wait(world.request)).toBe(true);
    expect(world.looks).toBe(0);
  });

  test('what comes at once is found by looks alone', () => {
    world.onLook = (n) => n === 20 && world.finish();
    expect(world.waiter().wait(world.request)).toBe(true);
    expect(world.notes.runs).toEqual([{ what: 'look', times: 20 }]);
  });

  test('it spins for the spin time, then offers the processor, then sleeps', () => {
    world.onSleep = () => world.finish();
    expect(world.waiter().wait(world.request)).toBe(true);
    expect(world.notes.kinds).toEqual(['look', 'yield', 'park', 'sleep', 'fresh']);
    const { spinLooks, lastOffers } = world.notes;
    expect(spinLooks * LOOK_MS).toBeGreaterThanOrEqual(SPIN_US / 1000);
    expect(spinLooks * LOOK_MS).toBeLessThan((SPIN_US / 1000) * 1.2);
    expect(lastOffers).toBe(4);
    expect(world.sleeps).toHaveLength(1);
  });

  test('in a spin the processor is offered once in 32 looks in which nothing has come, and not in the first ones', () => {
    world.onLook = (n) => {
      if (n === 100) world.usefulWork++;
      if (n === 200) world.finish();
    };
    expect(world.waiter().wait(world.request)).toBe(true);
    expect(world.notes.runs.map(({ what, times }) => `${what}*${times}`)).toEqual([
      'look*64',
      'yield*1',
      'look*32',
      'yield*1',
      'look*64',
      'yield*1',
      'look*32',
      'yield*1',
      'look*8',
    ]);
  });

  test('a spin time of 0 goes straight to offering the processor', () => {
    world.onSleep = () => world.finish();
    world.waiter(0).wait(world.request);
    expect(world.notes.runs[0].times).toBeLessThanOrEqual(33);
    expect(world.sleeps).toHaveLength(1);
  });

  test('useful work begins the spin anew; what is none does not', () => {
    world.onLook = (n) => {
      if (n === 900) world.usefulWork++;
    };
    world.onSleep = () => world.finish();
    world.waiter().wait(world.request);
    const { spinLooks } = world.notes;
    // 900 looks are less than the spin time; it lasts for one more from there.
    expect(spinLooks).toBeGreaterThanOrEqual(900 + SPIN_US / 1000 / LOOK_MS);
    expect(spinLooks).toBeLessThan(900 + (SPIN_US / 1000 / LOOK_MS) * 1.2);
  });

  test('useful work after sleep goes back to spinning', () => {
    world.onSleep = (n) => {
      if (n === 1) world.usefulWork++;
      else world.finish();
    };
    world.waiter().wait(world.request);
    expect(world.sleeps).toHaveLength(2);
    expect(world.notes.lastOffers).toBe(8);
    expect(world.looks).toBeGreaterThan((2 * (SPIN_US / 1000)) / LOOK_MS);
  });

  test('useless wake-ups do not: it looks once and sleeps on', () => {
    world.onSleep = (n) => n === 10 && world.finish();
    world.waiter().wait(world.request);
    expect(world.sleeps).toHaveLength(10);
    expect(world.notes.count('fresh')).toBe(10);
    expect(world.notes.lastOffers).toBe(4);
  });

  test('something that came while it parked is looked at without sleep', () => {
    world.parks = false;
    world.onLook = () => world.notes.count('unparked') > 0 && world.finish();
    world.waiter().wait(world.request);
    expect(world.notes.kinds).toEqual(['look', 'yield', 'unparked', 'fresh']);
    expect(world.sleeps).toHaveLength(0);
  });
});

describe('while all that may come is written into memory', () => {
  beforeEach(() => {
    world.watchedModules = [{ watch: (watched) => watched.add(new Int32Array(1), 0, 0) }];
  });

  test('the native part looks behind the first few polls, and each poll finds what it has seen', () => {
    world.onLook = (n) => n === 3 && world.finish();
    expect(world.waiter().wait(world.request)).toBe(true);
    expect(world.notes.runs.map(({ what }) => what)).toEqual(['look', 'watch 256/64', 'look', 'watch 256/64', 'look', 'watch 256/64']);
  });

  test('it spins for the spin time, with a poll and a clock for each of these looks, then sleeps', () => {
    world.onSleep = () => world.finish();
    expect(world.waiter().wait(world.request)).toBe(true);
    expect(world.notes.kinds).toEqual(['look', 'watch', 'yield', 'park', 'sleep', 'fresh']);
    expect(world.notes.count('watch 256')).toBeGreaterThanOrEqual(world.notes.count('look') - 2);
    expect(world.nowMs - 1000).toBeGreaterThanOrEqual(SPIN_US / 1000);
    expect(world.nowMs - 1000 - world.sleeps[0]).toBeLessThan((SPIN_US / 1000) * 1.2);
    // The clock is read after each: rails keep their time.
    expect(world.timesPassed).toBe(world.notes.count('watch'));
  });

  test('a change is no passing of time', () => {
    world.watchEnd = WATCH.CHANGED;
    world.onLook = (n) => n === 3 && world.finish();
    expect(world.waiter().wait(world.request)).toBe(true);
    expect(world.timesPassed).toBe(0);
  });

  test('once the polls are compiled, a row of them comes first', () => {
    const waiter = world.waiter();
    for (let call = 0; call < 4096; call++) {
      world.request.done = false;
      world.onLook = () => world.finish();
      waiter.wait(world.request);
    }
    world.request.done = false;
    world.notes.runs.length = 0;
    world.looks = 0;
    world.onLook = (n) => n === 34 && world.finish();
    waiter.wait(world.request);
    expect(world.notes.runs.map(({ what, times }) => `${what}*${times}`)).toEqual([
      'look*32',
      'watch 256/64*1',
      'look*1',
      'yield*1',
      'watch 256/64*1',
      'look*1',
    ]);
  });

  test('where ranks are more than processors, each of these looks offers the processor', () => {
    world.onSleep = () => world.finish();
    const waiter = world.waiter();
    waiter.expectCrowd();
    expect(waiter.wait(world.request)).toBe(true);
    expect(world.notes.kinds).toEqual(['look', 'watch', 'park', 'sleep', 'fresh']);
    expect(world.notes.count('watch 8/1') * 8 + world.notes.count('watch 4/1') * 4).toBe(100);
  });

  test('and an offer that is taken for long is followed by sleep', () => {
    world.watchEnd = WATCH.TAKEN_AWAY;
    world.onSleep = () => world.finish();
    const waiter = world.waiter();
    waiter.expectCrowd();
    expect(waiter.wait(world.request)).toBe(true);
    expect(world.notes.count('watch')).toBeLessThan(4);
  });

  test.each([
    ['a module has something to do now', () => false],
    [
      'there are more words than can be looked at',
      (watched: WatchedWords) => Array.from({ length: 65 }, () => watched.add(new Int32Array(1), 0, 0)).every(Boolean),
    ],
    ['nothing is to be looked at', () => true],
  ])('it polls where %s', (_, watch) => {
    world.watchedModules = [{ watch }];
    world.onLook = (n) => n === 100 && world.finish();
    expect(world.waiter().wait(world.request)).toBe(true);
    expect(world.notes.kinds).toEqual(['look', 'yield']);
  });

  test('it polls where a transport knows nothing of it', () => {
    world.watchedModules = [...(world.watchedModules ?? []), {}];
    world.onLook = (n) => n === 100 && world.finish();
    expect(world.waiter().wait(world.request)).toBe(true);
    expect(world.notes.kinds).toEqual(['look', 'yield']);
  });
});

describe('how long it sleeps', () => {
  beforeEach(() => {
    world.onSleep = () => world.finish();
  });
  /** The time at which the sleep began plus its length. */
  const wokeAtMs = () => {
    world.waiter(0).wait(world.request);
    return world.nowMs - LOOK_MS;
  };

  test('until the next deadline of the rails', () => {
    world.deadlineMs = 1007;
    expect(wokeAtMs()).toBeCloseTo(1007, 9);
  });
  test('never for longer than 50 ms, for what nobody announces', () => {
    world.deadlineMs = 1_000_000;
    wokeAtMs();
    expect(world.sleeps).toEqual([50]);
  });
  test('a deadline that is over is no reason to sleep: the rails get their turn', () => {
    world.deadlineMs = 990;
    world.onLook = () => {
      if (world.notes.count('fresh') === 3) world.finish();
    };
    world.waiter(0).wait(world.request);
    expect(world.sleeps).toHaveLength(0);
    expect(world.notes.count('park')).toBe(3);
  });
  test("until the caller's deadline", () => {
    world.onSleep = () => {};
    world.deadlineMs = 1_000_000;
    expect(world.waiter(0).wait(world.request, 1013)).toBe(false);
    expect(world.nowMs).toBeGreaterThanOrEqual(1013);
    expect(world.nowMs).toBeLessThan(1013 + 1);
  });
});

describe('deadlines', () => {
  test('false once it is over, without the request', () => {
    expect(world.waiter().wait(world.request, 1200)).toBe(false);
    expect(world.nowMs).toBeGreaterThanOrEqual(1200);
    expect(world.nowMs).toBeLessThan(1202);
  });
  test('one that is over from the start still looks', () => {
    expect(world.waiter().wait(world.request, 0)).toBe(false);
    expect(world.looks).toBe(32);
    world.onLook = (n) => n === 40 && world.finish();
    expect(world.waiter().wait(world.request, 0)).toBe(true);
  });
  test('a request that ends with the very last look is done, not late', () => {
    world.onSleep = () => world.finish();
    world.deadlineMs = 2000;
    expect(world.waiter(0).wait(world.request, 1010)).toBe(true);
  });
  test('in the middle of a spin', () => {
    world.onLook = () => void world.usefulWork++;
    expect(world.waiter().wait(world.request, 1003)).toBe(false);
    expect(world.nowMs).toBeLessThan(1003.2);
    expect(world.sleeps).toHaveLength(0);
  });
});

describe('a processor that others want too', () => {
  /** Takes the processor away at this look, for so long, and again 100 looks later. */
  const takenAway = (atLook: number, ms: number, useful = false, times = 2) => {
    world.onLook = (n) => {
      if ((n - atLook) % 100 !== 0 || n < atLook || n >= atLook + times * 100) return;
      world.nowMs += ms;
      if (useful) world.usefulWork++;
    };
  };

  test('time that jumps in a spin sends it to sleep at once, and the next calls too, for a while that doubles', () => {
    takenAway(100, 4);
    world.wokenAfterMs = 1;
    world.onSleep = () => world.finish();
    const waiter = world.waiter(1_000_000);
    waiter.wait(world.request);
    expect(world.notes.kinds).toEqual(['look', 'yield', 'park', 'sleep', 'fresh']);
    expect(world.notes.lastOffers).toBe(0);
    expect(world.looks).toBeLessThan(300);
    // Another call, soon after: the first looks, then sleep.
    world.request.done = false;
    const before = world.looks;
    waiter.wait(world.request);
    expect(world.looks - before).toBeLessThanOrEqual(33);
    // And one when that is over: it spins again.
    world.request.done = false;
    world.nowMs += 200;
    const later = world.looks;
    world.onLook = (n) => n === later + 5000 && world.finish();
    waiter.wait(world.request);
    expect(world.looks - later).toBe(5000);
    expect(world.sleeps).toHaveLength(2);
  });

  test('the time for which calls sleep at once doubles when it happens again right after, and only then', () => {
    world.wokenAfterMs = 1;
    const waiter = world.waiter(1_000_000);
    /** One call that loses the processor in its spin; answers how long calls go on sleeping at once. */
    const crowdedMs = (): number => {
      takenAway(world.looks + 100, 4);
      world.onSleep = () => world.finish();
      world.request.done = false;
      waiter.wait(world.request);
      world.onLook = () => {};
      for (let ms = 1; ; ms++) {
        const before = world.looks;
        world.request.done = false;
        world.onLook = (n) => n === before + 60 && world.finish();
        waiter.wait(world.request);
        if (world.looks - before >= 60) return ms;
      }
    };
    const [first, second, third] = [crowdedMs(), crowdedMs(), crowdedMs()];
    expect(second).toBeGreaterThan(first * 1.5);
    expect(third).toBeGreaterThan(second * 1.5);
    world.nowMs += 1000;
    expect(crowdedMs()).toBeLessThan(first * 1.5);
  });

  test('once is no sign of it, nor twice with a long time between', () => {
    const waiter = world.waiter(1_000_000);
    for (let times = 0; times < 2; times++) {
      takenAway(world.looks + 100, 4, false, 1);
      const until = world.looks + 1000;
      const { onLook } = world;
      world.onLook = (n) => {
        onLook(n);
        if (n >= until) world.finish();
      };
      world.request.done = false;
      waiter.wait(world.request);
      world.nowMs += 20;
    }
    expect(world.sleeps).toHaveLength(0);
  });

  test('a look that takes long because it does much is no sign of it', () => {
    takenAway(100, 4, true);
    world.onSleep = () => world.finish();
    world.waiter().wait(world.request);
    expect(world.notes.lastOffers).toBe(4);
  });

  test('an offer of the processor that somebody takes twice is a sign too', () => {
    world.yieldMs = 4;
    world.wokenAfterMs = 1;
    world.onSleep = () => world.finish();
    const waiter = world.waiter();
    waiter.wait(world.request);
    expect(world.notes.count('yield')).toBe(2);
    world.request.done = false;
    waiter.wait(world.request);
    expect(world.notes.count('yield')).toBe(2);
    expect(world.sleeps).toHaveLength(2);
  });

  test('a short jump is none', () => {
    takenAway(100, 1.5);
    world.onSleep = () => world.finish();
    world.waiter().wait(world.request);
    expect(world.notes.lastOffers).toBe(4);
  });
});

describe('calls that cannot end', () => {
  test('a closed runtime', () => {
    world.onLook = (n) => {
      world.isClosed = n >= 500;
    };
    expect(() => world.waiter().wait(world.request)).toThrow(expect.objectContaining({ code: 'ERR_FINALIZED' }));
    world.isClosed = true;
    world.onLook = () => {};
    expect(() => world.waiter().wait(world.request)).toThrow(MultirailError);
  });

  test('transports of the event loop are named', () => {
    world.unreachable = 'the rail ws#0 to rank 3';
    expect(() => world.waiter().wait(world.request)).toThrow(/ERR_SUPPORT.*the rail ws#0 to rank 3/);
    expect(world.sleeps).toHaveLength(0);
  });

  test('but not what is there within the first looks', () => {
    world.unreachable = 'the rail ws#0 to rank 3';
    world.onLook = (n) => n === 32 && world.finish();
    expect(world.waiter().wait(world.request)).toBe(true);
  });

  test('nor is a call left hanging when the last other rail goes while it waits', () => {
    world.onSleep = (n) => {
      if (n === 3) world.unreachable = 'the rail ws#1 to rank 3';
    };
    expect(() => world.waiter().wait(world.request, 5000)).toThrow(/ERR_SUPPORT.*the rail ws#1 to rank 3/);
  });

  test('a call from inside the engine, which cannot look at its rails then', () => {
    world.isRunning = true;
    expect(() => world.waiter().wait(world.request, 5000)).toThrow(expect.objectContaining({ code: 'ERR_SUPPORT' }));
    world.finish();
    expect(world.waiter().wait(world.request)).toBe(true);
  });

  test('an error thrown by what is asked comes through', () => {
    const failing = {
      get done(): boolean {
        if (world.looks > 50) throw new Error('the peer is gone');
        return false;
      },
    };
    expect(() => world.waiter().wait(failing)).toThrow('the peer is gone');
  });
});

describe('without the native part', () => {
  test('it looks and never sleeps', () => {
    world.onLook = (n) => n === 5000 && world.finish();
    const { engine } = world;
    const driver: Driver = { now: () => world.nowMs, defer: () => {}, yield: () => {}, arm: () => {} };
    expect(new BlockingWaiter(engine, driver, SPIN_US).wait(world.request)).toBe(true);
    expect(world.notes.kinds).toEqual(['look']);
    expect(world.looks).toBe(5000);
  });
  test('a deadline ends it', () => {
    const driver: Driver = { now: () => world.nowMs, defer: () => {}, yield: () => {}, arm: () => {} };
    expect(new BlockingWaiter(world.engine, driver, SPIN_US).wait(world.request, 1100)).toBe(false);
  });
});

describe('the event loop afterwards', () => {
  // What a call has begun (doorbells to ask for, reports and deadlines to keep) is the event loop's from then on, also when the
  // program starts nothing after the call.
  test.each([
    ['that ends well', () => world.onLook, true],
    ['that times out', () => undefined, false],
  ])('a wait %s asks for one more turn', (_, __, ends) => {
    if (ends) world.onLook = (n) => n === 100 && world.finish();
    expect(world.waiter().wait(world.request, 1100)).toBe(ends);
    expect(world.deferred).toBeGreaterThan(0);
  });
  test('and one that fails', () => {
    world.unreachable = 'the rail ws#0 to rank 3';
    expect(() => world.waiter().wait(world.request)).toThrow(MultirailError);
    expect(world.deferred).toBeGreaterThan(0);
  });
});

test('what costs more to find out is asked now and then, and after each sleep', () => {
  let asked = 0;
  const group = { done: false, isOver: () => ++asked > 3 };
  world.onSleep = () => {};
  expect(world.waiter(0).wait(group, 2000)).toBe(true);
  expect(world.looks).toBeLessThan(32 + 10);
  expect(asked).toBe(4);
});
