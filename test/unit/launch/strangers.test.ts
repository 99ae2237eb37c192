// Connections about which nothing is known: how many there may be, which one is closed for another, and what is said about them.
import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { RepeatedLines } from '../../../src/launch/oob/repeated-lines.ts';
import { Strangers } from '../../../src/launch/oob/strangers.ts';

class FakeSocket extends EventEmitter {
  destroyed = false;
  destroy(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.emit('close');
  }
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('for each one too many another one goes, first of those that have said nothing', () => {
  let seed = 1;
  const random = () => {
    seed = (seed * 16807) % 2147483647;
    return seed / 2147483647;
  };
  const strangers = new Strangers<FakeSocket>(8, 1000, random);
  const speakers = Array.from({ length: 4 }, () => new FakeSocket());
  for (const socket of speakers) {
    strangers.add(socket);
    strangers.spoke(socket);
  }
  const silent = Array.from({ length: 500 }, () => new FakeSocket());
  for (const socket of silent) {
    strangers.add(socket);
    expect(strangers.size).toBeLessThanOrEqual(8);
    expect(socket.destroyed).toBe(false);
  }
  expect(silent.filter(({ destroyed }) => !destroyed)).toHaveLength(4);
  expect(speakers.map(({ destroyed }) => destroyed)).toEqual([false, false, false, false]);
  expect(strangers.ousted).toBe(496);
});

test('who says nothing is ended in time; who has spoken, or is no stranger any more, is not', () => {
  const strangers = new Strangers<FakeSocket>(8, 1000);
  const [silent, spoken, known] = [new FakeSocket(), new FakeSocket(), new FakeSocket()];
  for (const socket of [silent, spoken, known]) strangers.add(socket);
  strangers.spoke(spoken);
  strangers.forget(known);
  vi.advanceTimersByTime(5000);
  expect([silent, spoken, known].map(({ destroyed }) => destroyed)).toEqual([true, false, false]);
  expect(strangers.size).toBe(1);
});

test('equal lines are told once, and counted until the window is over', () => {
  const said: string[] = [];
  const lines = new RepeatedLines((text) => said.push(text), 10_000);
  for (let i = 0; i < 100; i++) lines.line(i, 'refused', `refused ${i}`);
  lines.line(200, 'dropped', 'dropped 1');
  expect(said).toEqual(['refused 0', 'dropped 1']);
  lines.tick(9000);
  expect(said).toHaveLength(2);
  lines.tick(10_000);
  expect(said.slice(2)).toEqual(['refused (99 more in 10 s)']);
  for (let i = 0; i < 30; i++) lines.line(20_000, `kind ${i}`, `line ${i}`);
  lines.flush();
  expect(said.slice(3)).toEqual([...Array.from({ length: 20 }, (_, i) => `line ${i}`), '10 more lines of other kinds in 10 s']);
});
