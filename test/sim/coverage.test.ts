// Every state meets every event, or a sentence says why it cannot; every edge of the three state tables is taken.
import { expect, it } from 'vitest';
import { Coverage } from '../../tools/sim/coverage.ts';
import { runStress } from '../../tools/sim/stress.ts';
import { runSeed } from '../../tools/sim/swarm.ts';
import { bfoRows } from './scenarios/bfo-rows.ts';
import { bfoRowsMore } from './scenarios/bfo-rows-more.ts';
import { holes } from './scenarios/holes.ts';
import { holesMore } from './scenarios/holes-more.ts';
import { steady } from './scenarios/steady.ts';

/** Long for their number of messages, and nothing new in them. */
const LEFT_OUT = ['1000 sends', '2000 messages', '130 times'];

it('every cell is hit or impossible, every edge is taken', () => {
  const coverage = new Coverage();
  const cases = [...bfoRows, ...bfoRowsMore, ...holes, ...holesMore, ...steady].filter(
    ({ name }) => !LEFT_OUT.some((text) => name.includes(text)),
  );
  for (const { run } of cases) run({ coverage });
  for (let seed = 0; seed < 150; seed++) runSeed(seed, { coverage });
  for (let seed = 0; seed < 450; seed++) runStress(seed, { coverage });
  console.log(coverage.format());
  expect(coverage.faults()).toEqual([]);
});
