// The driver of a real process: turns are asked for once, and the earliest deadline has a timer. The timers are vitest's.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { EventLoopDriver } from '../../../src/progress/driver.ts';
import type { Engine } from '../../../src/progress/engine.ts';

let turns = 0;
let driver: EventLoopDriver;

beforeEach(() => {
  vi.useFakeTimers();
  turns = 0;
  driver = new EventLoopDriver({ now: () => Date.now() });
  driver.attach({ progress: () => void turns++ } as unknown as Engine);
});
afterEach(() => {
  vi.useRealTimers();
});

test('many commands of one turn are one progress()', async () => {
  for (let i = 0; i < 10; i++) driver.defer();
  expect(turns).toBe(0);
  await Promise.resolve();
  expect(turns).toBe(1);
  driver.defer();
  await Promise.resolve();
  expect(turns).toBe(2);
});

test('yield() lets event sources have their turn first', () => {
  driver.yield();
  driver.yield();
  expect(turns).toBe(0);
  vi.runAllTimers();
  expect(turns).toBe(1);
});

test('a timer for the earliest deadline; a later one never replaces an earlier', () => {
  const start = Date.now();
  driver.arm(start + 100);
  driver.arm(start + 500);
  driver.arm(start + 20);
  vi.advanceTimersByTime(19);
  expect(turns).toBe(0);
  vi.advanceTimersByTime(1);
  expect(turns).toBe(1);
  driver.arm(start + 500);
  vi.advanceTimersByTime(479);
  expect(turns).toBe(1);
  vi.advanceTimersByTime(2);
  expect(turns).toBe(2);
});

test('without a deadline there is no timer, and a deadline beyond what Node can time is looked at again', () => {
  driver.arm(Date.now() + 50);
  driver.arm(Number.POSITIVE_INFINITY);
  expect(vi.getTimerCount()).toBe(0);
  driver.arm(Date.now() + 2 ** 40);
  vi.advanceTimersByTime(2 ** 31);
  expect(turns).toBe(1);
});

test('a deadline that is over has its turn soon, not at once', () => {
  driver.arm(Date.now() - 1000);
  expect(turns).toBe(0);
  vi.advanceTimersByTime(1);
  expect(turns).toBe(1);
});
