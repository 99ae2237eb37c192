// The point-to-point suite over the simulated network, in virtual time: rails that check themselves, unequal rails (91), one-sided
// rails; calm, and with links that are cut, black-holed, stalled, corrupted and flap.

import { simFixture } from '../support/p2p-worlds.ts';
import { p2pSuite } from './p2p-suite.ts';

p2pSuite('sim, two rails', simFixture({ seed: 'p2p 1', rails: [{}, {}] }), { faultSeeds: ['sim 1', 'sim 2'] });
p2pSuite(
  'sim, unequal rails',
  simFixture({
    seed: 'p2p 2',
    rails: [{ bytesPerMs: 100_000, latencyUs: 300 }, { jitterUs: 200 }, { liveness: 'siblings', bytesPerMs: 400_000 }],
  }),
  { faultSeeds: ['sim 3'] },
);
p2pSuite(
  'sim, one-sided rails',
  simFixture({
    seed: 'p2p 3',
    rails: [
      { canPut: true, canGet: true, lateOneSidedUsMax: 20_000 },
      { canPut: true, canGet: true, lateOneSidedUsMax: 20_000 },
    ],
  }),
  { faultSeeds: ['sim 4'] },
);
