// The states of a wait: which polls, yields and sleeps it makes, over an engine, a poller and a clock that the test moves.
import { beforeEach, describe, expect, test } from 'vitest';
import { MultirailError } from '../../../src/errors.ts';
import { BlockingWaiter } from '../../../src/progress/blocking.ts';
import type { Driver } from '../../../src/progress/engine.ts';
import { LOOK_MS, SPIN_US, WaitingWorld } from '../../support/waiting-world.ts';

let world: WaitingWorld;
beforeEach(() => {
  world = new WaitingWorld();
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
