// Calls that only look, under asynchronous recovery with recorded outcomes, with a process for each rank: what a successor of one that died finds is
// what was found before, and what all have in the end follows from it.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type BuiltCode, buildCode, startNode } from '../support/helpers.ts';

let code: BuiltCode;
beforeAll(async () => {
  code = await buildCode(['ft-looks-rank.ts']);
}, 60_000);
afterAll(() => code?.dispose());

const RANKS = 3;

async function play(form: string, deaths: readonly string[]): Promise<void> {
  const words = [
    code.cli,
    'run',
    '-n',
    String(RANKS),
    '--spares',
    String(Math.max(1, deaths.length)),
    code.fixture('ft-looks-rank.ts'),
    form,
  ];
  const { code: status, stdout, stderr } = await startNode([...words, ...deaths], { timeoutMs: 60_000 }).ended;
  const all = `${stdout}\n${stderr}`;
  expect(status, all).toBe(0);
  const ends = [...stdout.matchAll(/rank \d ends with ([\d ]+) after (\d+) failures, (\d+) in place/g)];
  expect(ends.length, all).toBeGreaterThanOrEqual(RANKS);
  for (const [, values] of ends) expect(new Set(values.split(' ')).size, all).toBe(1);
  expect(Math.max(...ends.map(([, , , inPlace]) => Number(inPlace))), all).toBe(deaths.length);
}

const CASES: readonly (readonly string[])[] = [[], ['0@5'], ['0@30'], ['0@55'], ['1@4'], ['2@16'], ['0@20', '3@12'], ['1@7', '0@20']];

test.each(['async', 'sync'])('looks of a rank that dies are found again: %s', { timeout: 300_000 }, async (form) => {
  for (const deaths of CASES) await play(form, deaths);
});
