// Random runs: as many seeds as the time allows, from a fixed base, so that two runs of the suite play the same. MULTIRAIL_SIM_SEED_BASE
// moves the base.
import { expect, it } from 'vitest';
import { type Profile, playSeeds } from '../../tools/sim/campaign.ts';
import { seedsOf } from '../support/sample.ts';
import { ONCE_FAILED } from './seeds.ts';

const BASE = Number(process.env.MULTIRAIL_SIM_SEED_BASE ?? 20_000);
const SEEDS: Record<Profile, number> = {
  swarm: 1200,
  stress: 600,
  death: 600,
  storm: 200,
  giveup: 600,
  impaired: 400,
  meet: 400,
  ulfm: 400,
  save: 60,
  log: 300,
  group: 60,
  replica: 300,
};

/** What a profile must come by, besides restarts: what never happens is not tested. */
const MUST_OCCUR: Partial<Record<Profile, { readonly counters: readonly string[]; readonly faults: readonly string[] }>> = {
  log: {
    counters: [
      ...['saves', 'abandoned', 'successions', 'fallbacks', 'divergences'],
      ...['logged', 'unlogged', 'suppressed', 'replayed'],
      ...['recorded', 'obeyed', 'gated', 'listsLost'],
      ...['persistent', 'persistentHeld', 'freed', 'freedAgain', 'inPlace', 'creditStalls', 'stalledReplays'],
    ],
    faults: ['death', 'pulled'],
  },
  group: {
    counters: [
      ...['saves', 'abandoned', 'interrupted', 'triedAgain', 'successions', 'fallbacks'],
      ...['again', 'livesBegun', 'recoveries', 'startedOver', 'strikes'],
      ...['logged', 'within', 'suppressed', 'replayed', 'freed', 'creditStalls'],
    ],
    faults: ['death', 'pulled'],
  },
};

it.each(ONCE_FAILED)('once failed: $profile seed $seed: $story', ({ profile, seed }) => {
  expect(playSeeds({ profile, from: seed, to: seed + 1, coverage: false }).failures).toEqual([]);
});

/** Half of them where not everything is run, unless they must come by what is rare. */
const PLAYED = (Object.entries(SEEDS) as [Profile, number][]).map(([profile, seeds]): [Profile, number] => [
  profile,
  MUST_OCCUR[profile] === undefined ? seedsOf(seeds, 0.5) : seeds,
]);

it.each(PLAYED)('%s: %d seeds', (profile, seeds) => {
  expect(Number.isSafeInteger(BASE)).toBe(true);
  const report = playSeeds({ profile, from: BASE, to: BASE + seeds, coverage: false });
  console.log(
    `${profile}: seeds ${BASE} to ${BASE + seeds - 1}, ${report.events} events, ${report.messages} messages, faults ${JSON.stringify(report.faults)}, restarts ${report.counters.restarts}`,
  );
  expect(report.failures).toEqual([]);
  expect(report.counters.restarts).toBeGreaterThan(0);
  const { counters = [], faults = [] } = MUST_OCCUR[profile] ?? {};
  const occurred = [
    ...counters.map((name) => [name, report.counters[name] ?? 0]),
    ...faults.map((name) => [name, report.faults[name] ?? 0]),
  ];
  if (occurred.length > 0) console.log(`${profile}: ${occurred.map(([name, count]) => `${name} ${count}`).join(', ')}`);
  expect(occurred.filter(([, count]) => count === 0)).toEqual([]);
});
