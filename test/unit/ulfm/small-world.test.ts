// Random runs of src/ulfm in a small world: any order of delivery between pairs, deaths between any two messages, late news, late callers,
// members that leave, agreements one after the other in two series, successions, processes that are declared dead while they live. What
// must hold is checked by the oracle of the simulator.
import { expect, test } from 'vitest';
import { seedsOf } from '../../support/sample.ts';
import { runSmallWorld } from './small-world.ts';

const BASE = Number(process.env.MULTIRAIL_SIM_SEED_BASE ?? 0);

/** Seeds that once failed, each with its story. */
const ONCE_FAILED: readonly [seed: number, story: string][] = [
  [1595, 'A member that was told the decision before it knew that it led did not tell those that had asked it already.'],
  [54, 'A successor revoked a communicator before this process had heard that it was a member, and was refused.'],
  [2401, 'A process that stands by left while it told others that it has a place, and was expected to hear what they decided.'],
];

test.each(ONCE_FAILED)('seed %d: %s', (seed) => void runSmallWorld(seed));

const SEEDS = seedsOf(4000);
const LARGE_SEEDS = seedsOf(40);

test(`${SEEDS} seeds`, () => {
  let decisions = 0;
  let held = 0;
  const failures: string[] = [];
  for (let seed = BASE; seed < BASE + SEEDS; seed++) {
    try {
      const { oracle } = runSmallWorld(seed);
      decisions += oracle.decisions;
      held += oracle.heldProposals;
    } catch (error) {
      failures.push(`seed ${seed}: ${String(error)}`);
    }
  }
  console.log(`${decisions} decisions, ${held} proposals of values that others held`);
  expect(failures).toEqual([]);
  expect(held).toBeGreaterThan(SEEDS / 40);
}, 60_000);

test.each([17, 32, 64])(
  `${LARGE_SEEDS} seeds with %d members`,
  (members) => {
    for (let seed = BASE; seed < BASE + LARGE_SEEDS; seed++) runSmallWorld(seed, { members });
  },
  60_000,
);

test('the same seed gives the same run', () => {
  const traceOf = (seed: number): string => {
    const lines: string[] = [];
    runSmallWorld(seed, { trace: (line) => lines.push(line) });
    return lines.join('\n');
  };
  for (const seed of [3, 14, 15]) expect(traceOf(seed)).toBe(traceOf(seed));
});
