// What a build with a planted mistake holds: the profiles of random runs and the named scenarios.
import type { ScenarioCase } from '../../../tools/sim/scenario.ts';
import { bfoRows } from '../scenarios/bfo-rows.ts';
import { bfoRowsMore } from '../scenarios/bfo-rows-more.ts';
import { givenUp } from '../scenarios/given-up.ts';
import { guards } from '../scenarios/guards.ts';
import { holes } from '../scenarios/holes.ts';
import { holesMore } from '../scenarios/holes-more.ts';
import { impaired } from '../scenarios/impaired.ts';
import { pipeline } from '../scenarios/pipeline.ts';
import { steady } from '../scenarios/steady.ts';

export { PROFILES } from '../../../tools/sim/campaign.ts';

export const SCENARIOS: readonly ScenarioCase[] = [
  ...bfoRows,
  ...bfoRowsMore,
  ...holes,
  ...holesMore,
  ...pipeline(),
  ...givenUp(),
  ...guards,
  ...impaired(),
  ...steady,
];
