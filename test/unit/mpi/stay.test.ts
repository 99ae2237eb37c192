// What keeps a rank's process alive, and when its user is told that finalize() was forgotten.
import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Stay } from '../../../src/mpi/stay.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function make() {
  const process = new EventEmitter();
  const told: number[] = [];
  const state = { isAwaited: false };
  const stay = new Stay({ isAwaited: () => state.isAwaited, onForgotten: () => told.push(1), process: process as never });
  // Node announces it only while no timer holds the process.
  const { timer } = stay as unknown as { timer: NodeJS.Timeout };
  const isHeld = () => timer.hasRef();
  return { stay, process, told, state, isHeld };
}

test('a process in which nothing is left to do is told so once, and held', () => {
  const { stay, process, told, isHeld } = make();
  vi.advanceTimersByTime(1000);
  expect(isHeld()).toBe(true);
  vi.advanceTimersByTime(1000);
  expect(isHeld()).toBe(false);
  process.emit('beforeExit');
  expect(told).toEqual([]);
  process.emit('beforeExit');
  expect([told.length, isHeld()]).toEqual([1, true]);
  vi.advanceTimersByTime(10_000);
  process.emit('beforeExit');
  expect([told.length, isHeld()]).toEqual([1, true]);
  stay.end();
  expect(process.listenerCount('beforeExit')).toBe(0);
});

test('a call takes the process back, at any point; what is awaited is never told', () => {
  const { stay, process, told, state, isHeld } = make();
  vi.advanceTimersByTime(2000);
  stay.onCall();
  expect(isHeld()).toBe(true);
  vi.advanceTimersByTime(2000);
  process.emit('beforeExit');
  stay.onCall();
  expect(isHeld()).toBe(true);
  state.isAwaited = true;
  vi.advanceTimersByTime(10_000);
  expect(isHeld()).toBe(true);
  state.isAwaited = false;
  vi.advanceTimersByTime(2000);
  state.isAwaited = true;
  process.emit('beforeExit');
  process.emit('beforeExit');
  expect([told.length, isHeld()]).toEqual([0, true]);
  stay.end();
});

test('several runtimes listen once', () => {
  const process = new EventEmitter();
  const stays = Array.from(
    { length: 20 },
    () => new Stay({ isAwaited: () => false, onForgotten: () => undefined, process: process as never }),
  );
  expect(process.listenerCount('beforeExit')).toBe(1);
  for (const stay of stays) stay.end();
  expect(process.listenerCount('beforeExit')).toBe(0);
});
