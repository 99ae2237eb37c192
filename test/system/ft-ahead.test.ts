// After a recovery the program runs while what it was given back is spread again: a program of blocking calls too, a further death while
// copies are on their way, and a successor that cannot hold the copies that it must.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type BuiltCode, buildCode, startNode } from '../support/helpers.ts';

let code: BuiltCode;
beforeAll(async () => {
  code = await buildCode(['ft-ahead-rank.ts']);
}, 60_000);
afterAll(() => code?.dispose());

async function play(mode: string, spares: number) {
  const words = [code.cli, 'run', '-n', '3', '--spares', String(spares), code.fixture('ft-ahead-rank.ts'), mode];
  const { code: status, stdout, stderr } = await startNode(words, { timeoutMs: 60_000 }).ended;
  const all = `${stdout}\n${stderr}`;
  const again = (failures: number): number => [...stdout.matchAll(new RegExp(`runs again after ${failures} in step`, 'g'))].length;
  const right = (failures: number): number => [...stdout.matchAll(new RegExp(`ends after ${failures} failures: right`, 'g'))].length;
  return { status, stdout, all, again, right };
}

test('a program of blocking calls saves again after a recovery, and comes to its end', { timeout: 90_000 }, async () => {
  const { status, all, again, right } = await play('blocking', 1);
  expect(status, all).toBe(0);
  expect([again(1), right(1)], all).toEqual([3, 3]);
});

test('a death while copies are spread: all go back to the same save once more', { timeout: 90_000 }, async () => {
  const { status, stdout, all, again, right } = await play('twice', 2);
  expect(status, all).toBe(0);
  expect([again(2), right(2)], all).toEqual([3, 3]);
  const steps = [...stdout.matchAll(/runs again after \d in step (\d+)/g)].map(([, step]) => Number(step));
  expect(new Set(steps), all).toEqual(new Set([2]));
});

test('where the copies find no room the program runs, and is ended at all ranks with the reason', { timeout: 90_000 }, async () => {
  const { stdout, all, again } = await play('refused', 1);
  expect(again(1), all).toBe(3);
  const refused = [...stdout.matchAll(/process (\d) is refused: (.*)/g)];
  expect(refused.map(([, process]) => process).sort(), all).toEqual(['0', '2', '3']);
  expect(
    refused.filter(([, , text]) => /has no room for the copy of rank 0/.test(text)),
    all,
  ).toHaveLength(1);
  expect(
    refused.filter(([, , text]) => /cannot begin: another rank could not restore its state/.test(text)),
    all,
  ).toHaveLength(2);
});
