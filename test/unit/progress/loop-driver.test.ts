// Method: the driver over a kernel in memory (fake-native.ts), with a clock and an engine that the test moves. Turns of the event loop show
// what the poller calls and how often.
import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { Engine } from '../../../src/progress/engine.ts';
import { PollerDriver } from '../../../src/progress/loop-driver.ts';
import { FakeNative } from '../../support/fake-native.ts';

/** What one progress() costs on the test's clock, and the spin time: powers of two, so that sums are exact. */
const PASS_MS = 2 ** -8;
const SPIN_US = 1000 * 2 ** -4;

class FakeEngine {
  usefulWork = 0;
  wants = true;
  passes = 0;
  dueAtMs = Number.POSITIVE_INFINITY;
  onPass: () => void = () => {};
  private readonly clock: { nowMs: number };
  constructor(clock: { nowMs: number }) {
    this.clock = clock;
  }
  progress(): void {
    this.passes++;
    this.clock.nowMs += PASS_MS;
    this.onPass();
  }
  wantsSpin(): boolean {
    return this.wants;
  }
  park(): boolean {
    return true;
  }
  nextDeadline(): number {
    return this.dueAtMs;
  }
}

let native: FakeNative;
let clock: { nowMs: number };
let engine: FakeEngine;
let fds: [number, number];

function makeDriver(spinUs: number): PollerDriver {
  native = new FakeNative();
  clock = { nowMs: 1000 };
  engine = new FakeEngine(clock);
  const driver = new PollerDriver(native.binding, spinUs, { now: () => clock.nowMs });
  driver.attach(engine as unknown as Engine);
  fds = native.pair();
  // Reads what came, as a stream does in progress(); only then it is not ready any more.
  const bytes = new Uint8Array(100);
  let isReady = false;
  const onReady = () => {
    isReady = true;
  };
  driver.poller.add(fds[1], { onReady });
  engine.onPass = () => {
    if (isReady && native.recv(fds[1], bytes, 0, 100) > 0 && bytes[0] === 1) engine.usefulWork++;
    isReady = false;
  };
  return driver;
}

/** A byte comes in: 1 = useful, 0 = a beat or a probe. */
const arrives = (byte: 0 | 1) => native.send(fds[0], Uint8Array.of(byte), 0, 1);

describe('spinning', () => {
  beforeEach(() => void makeDriver(SPIN_US));

  test('after useful work it polls on for the spin time, then sleeps', () => {
    arrives(1);
    expect(native.turn()).toBe(1 + SPIN_US / (PASS_MS * 1000));
    expect(native.turn()).toBe(0);
  });

  test('more ranks than processors: the processor is offered after every other look', () => {
    const offers = (isCrowded: boolean): number => {
      const driver = makeDriver(SPIN_US);
      if (isCrowded) driver.expectCrowd();
      let count = 0;
      native.yieldCpu = () => void count++;
      arrives(1);
      native.turn();
      return count;
    };
    const looks = SPIN_US / (PASS_MS * 1000);
    expect(offers(false)).toBe(0);
    expect(offers(true)).toBe(Math.floor((looks - 1) / 2));
  });

  test('each useful piece of work begins the time anew, without the event loop in between', () => {
    arrives(1);
    const { onPass } = engine;
    engine.onPass = () => {
      if (engine.passes % 5 === 0 && engine.passes <= 100) arrives(1);
      onPass();
    };
    expect(native.turn()).toBeGreaterThan(100);
    expect(engine.usefulWork).toBe(21);
  });

  test('what is due later is looked at then: once, when it spins no more', () => {
    vi.useFakeTimers();
    try {
      engine.dueAtMs = clock.nowMs + 20;
      arrives(1);
      native.turn();
      const { passes } = engine;
      expect(vi.getTimerCount()).toBe(1);
      engine.dueAtMs = Number.POSITIVE_INFINITY;
      vi.advanceTimersByTime(20);
      expect(engine.passes).toBe(passes + 1);
    } finally {
      vi.useRealTimers();
    }
  });

  test('beats and probes start no spin', () => {
    arrives(0);
    expect(native.turn()).toBe(1);
    expect(native.turn()).toBe(0);
  });

  test('nobody waits for anything: one more look, for what the application does next', () => {
    engine.wants = false;
    arrives(1);
    expect(native.turn()).toBe(2);
    expect(native.turn()).toBe(0);
  });

  test('the event loop gets its turn every 2 ms, and the spin goes on after it', () => {
    const { onPass } = engine;
    engine.onPass = () => {
      if (engine.passes < 4000) arrives(1);
      onPass();
    };
    arrives(1);
    const turns: number[] = [];
    for (let calls = native.turn(5000); calls > 0; calls = native.turn(5000)) turns.push(calls);
    expect(engine.passes).toBeGreaterThanOrEqual(4000);
    for (const calls of turns) expect(calls * PASS_MS).toBeLessThan(2.1);
    expect(turns.length).toBeGreaterThanOrEqual(Math.floor((4000 * PASS_MS) / 2));
  });
});

test('a spin time of 0: every readiness is one look', () => {
  makeDriver(0);
  arrives(1);
  expect(native.turn()).toBe(1);
  arrives(1);
  expect(native.turn()).toBe(1);
  expect(engine.usefulWork).toBe(2);
});

test('it keeps no process alive by itself, and close() leaves no descriptor', () => {
  const driver = makeDriver(SPIN_US);
  expect(native.keepsAlive()).toBe(false);
  driver.poller.remove(fds[1]);
  for (const fd of fds) native.close(fd);
  driver.close();
  driver.close();
  expect(native.open).toBe(0);
});

test('before it is told its engine, and after close(), nothing is called', () => {
  const driver = makeDriver(SPIN_US);
  const bare = new PollerDriver(native.binding, 50);
  const [from, to] = native.pair();
  let told = 0;
  bare.poller.add(to, { onReady: () => void told++ });
  native.send(from, Uint8Array.of(1), 0, 1);
  expect(native.turn()).toBe(1);
  expect(told).toBe(1);
  driver.close();
  bare.close();
  expect(native.turn()).toBe(0);
});
