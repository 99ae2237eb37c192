// Planted mistakes: the simulator must find each within a stated number of seeds; the code without them passes the same seed.
// One is found by a named scenario too.
import { describe, expect, it } from 'vitest';
import { MUTANTS, type Mutant } from '../../src/pml/core.ts';
import { PROFILES, type Profile } from '../../src/sim/campaign.ts';
import type { ScenarioCase } from '../../src/sim/scenario.ts';
import { bfoRows } from './scenarios/bfo-rows.ts';

/** Where it was found first, counted from seed 0; the test looks a little further. */
const BY_SEEDS: readonly { mutant: Mutant; profile: Profile; from?: number; within: number }[] = [
  { mutant: 'no-duplicate-check', profile: 'swarm', within: 10 },
  { mutant: 'early-dropped', profile: 'swarm', within: 10 },
  { mutant: 'newest-first', profile: 'swarm', within: 10 },
  { mutant: 'count-twice', profile: 'swarm', within: 60 },
  { mutant: 'no-fence', profile: 'stress', within: 60 },
  { mutant: 'keep-sinks', profile: 'swarm', within: 60 },
  { mutant: 'notify-unanswered', profile: 'swarm', within: 40 },
  // Rare (a NOTIFY twice while a sink is open): seed 2366 is the first of this profile, so the search begins shortly before it.
  { mutant: 'notify-duplicate-revokes', profile: 'stress', from: 2360, within: 2400 },
  { mutant: 'restart-ack-twice', profile: 'stress', within: 20 },
  { mutant: 'old-epoch-counts', profile: 'swarm', within: 200 },
  { mutant: 'fence-by-rail', profile: 'swarm', within: 60 },
  { mutant: 'complete-on-sent', profile: 'swarm', within: 10 },
  { mutant: 'eager-not-retained', profile: 'swarm', within: 20 },
  { mutant: 'ack-once', profile: 'swarm', within: 20 },
  { mutant: 'fin-once', profile: 'stress', within: 20 },
  { mutant: 'credit-increment', profile: 'swarm', within: 700 },
  { mutant: 'retained-forever', profile: 'swarm', within: 10 },
];

const BY_SCENARIO: readonly { mutant: Mutant; name: string }[] = [
  { mutant: 'old-epoch-counts', name: 'bfo 9.2 RNDVRESTARTACK arrived unreported, so repeated, 5 rails' },
];

function scenario(name: string): ScenarioCase {
  const found = bfoRows.find((each) => each.name === name);
  if (found === undefined) throw new Error(`no scenario is called ${name}`);
  return found;
}

describe('mutants', () => {
  it.each(BY_SEEDS)(
    '$mutant is found within $within seeds ($profile), and without it they pass',
    ({ mutant, profile, from = 0, within }) => {
      const play = PROFILES[profile];
      let found = -1;
      for (let seed = from; seed < within && found < 0; seed++) {
        try {
          play(seed, { mutants: new Set([mutant]) });
        } catch {
          found = seed;
          play(seed, {});
        }
      }
      console.log(`${mutant}: found at seed ${found} of ${profile}`);
      expect(found).toBeGreaterThanOrEqual(0);
    },
  );

  it.each(BY_SCENARIO)('$mutant is found by the scenario: $name', ({ mutant, name }) => {
    scenario(name).run({});
    expect(() => scenario(name).run({ mutants: new Set([mutant]) })).toThrow(/oracle|ERR_INTERNAL/);
  });

  it('every planted mistake stands in the table', () => {
    expect(BY_SEEDS.map(({ mutant }) => mutant).sort()).toEqual((Object.keys(MUTANTS) as Mutant[]).sort());
  });
});
