// Deaths at each state of a save and in each step of a recovery, on real processes: one job in which they follow each other, each from a
// committed save, with the right result at the end. `npm run ft:long -- --only heat` has deaths at random moments, as many as one likes.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type BuiltCode, buildCode, startNode } from '../support/helpers.ts';
import type { Strike } from './fixtures/ft-strikes-rank.ts';

let code: BuiltCode;
beforeAll(async () => {
  code = await buildCode(['ft-strikes-rank.ts']);
}, 60_000);
afterAll(() => code?.dispose());

const RANKS = 4;
const STATES = ['QUIETING', 'COPYING', 'SPREADING', 'VOTING', 'COMMITTED'] as const;

async function play(strikes: readonly Strike[], failures: number, more: { refusing?: number; duplication?: number } = {}) {
  const story = JSON.stringify({ strikes, steps: 3, refusing: more.refusing ?? -1, duplication: more.duplication ?? 1 });
  const words = ['run', '-n', String(RANKS), '--spares', String(failures), code.fixture('ft-strikes-rank.ts'), story];
  const { code: status, stdout, stderr } = await startNode([code.cli, ...words], { timeoutMs: 100_000 }).ended;
  expect(status, `${stdout}\n${stderr}`).toBe(0);
  // A death before all have ended calls those again that had come to their end.
  const ends = [...stdout.matchAll(/rank (\d) is at its end in step \d+ after (\d+) failures: (\w+)/g)];
  const last = ends.filter(([, , count]) => Number(count) === failures);
  expect(ends.every(([, , , what]) => what === 'right')).toBe(true);
  expect(last.map(([, rank]) => Number(rank)).sort()).toEqual(Array.from({ length: RANKS }, (_, rank) => rank));
  return [...stdout.matchAll(/after (\d+) from (\w+) in step (\d+), failed ([\d ]+)/g)].map(([, count, level, step, failed]) => ({
    after: Number(count),
    level,
    step: Number(step),
    failed: failed.split(' ').map(Number),
  }));
}

test('a death at each state of a save, at the rank that leads, at an owner and at its holder; then in each step of a recovery', {
  timeout: 120_000,
}, async () => {
  const strikes: Strike[] = STATES.flatMap((state) => [0, 1, 2].map((rank) => ({ state, rank, nth: 2 }))).map((one, after) => ({
    after,
    ...one,
  }));
  expect(strikes).toHaveLength(15);
  // Another one dies when it learns what is decided about the first.
  strikes.push({ after: 15, state: 'QUIETING', rank: 3, nth: 2 }, { after: 15, state: 'RECOVERING', rank: 1 });
  // One dies when all have met to restore.
  strikes.push({ after: 17, state: 'COPYING', rank: 2, nth: 2 }, { after: 17, state: 'RESTORING', rank: 0 });
  // The successor dies before it has its image. The processes that stand by are called in by their numbers.
  strikes.push({ after: 19, state: 'SPREADING', rank: 3, nth: 2 }, { after: 0, state: 'RESTORING', process: RANKS + 19 });
  // A save that one rank could not make, and a death when the others know.
  strikes.push({ after: 21, state: 'ABANDONED', rank: 1 });
  const recoveries = await play(strikes, 22, { refusing: 21 });
  expect(recoveries.at(-1)?.after).toBe(22);
  // Nobody ever goes back to the beginning, or further than the save before the one that was being made.
  for (const { level } of recoveries) expect(level).toBe('memory');
  const steps = recoveries.map(({ step }) => step);
  expect(steps).toEqual([...steps].sort((a, b) => a - b));
  expect(recoveries.filter(({ after }) => after <= 15).map(({ failed }) => failed)).toEqual(STATES.flatMap(() => [[0], [1], [2]]));
});

test('two at once, of which one holds the copies of the other', { timeout: 60_000 }, async () => {
  const strikes: Strike[] = [1, 2].map((rank) => ({ after: 0, state: 'SPREADING', rank, nth: 2 }));
  const recoveries = await play(strikes, 2, { duplication: 2 });
  expect(recoveries.at(-1)).toMatchObject({ after: 2, level: 'memory', step: 1 });
});
