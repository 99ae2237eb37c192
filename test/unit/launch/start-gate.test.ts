// Method: a gate with few places, and a count of those that have passed it.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { StartGate } from '../../../src/launch/run/start-gate.ts';

async function passAll(gate: StartGate, count: number, passed: number[]): Promise<void> {
  for (let rank = 0; rank < count; rank++) {
    await gate.enter(rank);
    passed.push(rank);
  }
}

test('four processes for each processor start at a time, and the next one when one of them has joined', async () => {
  const gate = new StartGate(1, 2 ** 30);
  const passed: number[] = [];
  const all = passAll(gate, 7, passed);
  await sleep(5);
  expect(passed).toEqual([0, 1, 2, 3]);
  gate.leave(2);
  gate.leave(2);
  await sleep(5);
  expect(passed).toEqual([0, 1, 2, 3, 4]);
  for (const rank of [0, 1]) gate.leave(rank);
  await all;
  expect(passed).toEqual([0, 1, 2, 3, 4, 5, 6]);
  gate.close();
});

test('a process that never joins holds its place for a short time only', async () => {
  const gate = new StartGate(1, 20);
  const passed: number[] = [];
  await passAll(gate, 9, passed);
  expect(passed).toHaveLength(9);
  gate.close();
});
