// What a blocking call does while all that may come is written into memory: the native part looks at the words, in place of polls.
import { beforeEach, expect, test } from 'vitest';
import type { WatchedWords } from '../../../src/btl/btl.ts';
import { WATCH } from '../../../src/native/binding.ts';
import { SPIN_US, WaitingWorld } from '../../support/waiting-world.ts';

let world: WaitingWorld;
beforeEach(() => {
  world = new WaitingWorld();
  world.watchedModules = [{ watch: (watched) => watched.add(new Int32Array(1), 0, 0) }];
});

test('the native part looks before each poll, which finds what it has seen', () => {
  world.onLook = (n) => n === 3 && world.finish();
  expect(world.waiter().wait(world.request)).toBe(true);
  expect(world.notes.runs.map(({ what }) => what)).toEqual(['watch 256/64', 'look', 'watch 256/64', 'look', 'watch 256/64', 'look']);
});

test('it spins for the spin time, with a poll and a clock for each of these looks, then sleeps', () => {
  world.onSleep = () => world.finish();
  expect(world.waiter().wait(world.request)).toBe(true);
  expect(world.notes.kinds).toEqual(['watch', 'look', 'yield', 'park', 'sleep', 'fresh']);
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

test('once the polls are compiled, they are all that there is', () => {
  const waiter = world.waiter();
  for (let call = 0; call < 1024; call++) {
    world.request.done = false;
    world.onLook = () => world.finish();
    waiter.wait(world.request);
  }
  expect(world.notes.count('watch')).toBe(1024);
  world.request.done = false;
  world.notes.runs.length = 0;
  world.looks = 0;
  world.onLook = (n) => n === 34 && world.finish();
  waiter.wait(world.request);
  expect(world.notes.runs).toEqual([{ what: 'look', times: 34 }]);
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

test('it polls while something is to be done by this process itself', () => {
  world.hasWork = true;
  world.onLook = (n) => n === 100 && world.finish();
  expect(world.waiter().wait(world.request)).toBe(true);
  expect(world.notes.kinds).toEqual(['look', 'yield']);
});
