// The suite of collectives over the simulated network, in virtual time: calm, and with links that are cut, black-holed and flap.

import { simFixture } from '../support/p2p-worlds.ts';
import { collSuite } from './coll-suite.ts';

collSuite('sim, two rails', simFixture({ seed: 'coll 1', rails: [{}, {}] }), { faultSeeds: ['coll sim 1'], everyAlgorithm: true });
collSuite(
  'sim, unequal one-sided rails',
  simFixture({
    seed: 'coll 2',
    rails: [
      { canPut: true, canGet: true, lateOneSidedUsMax: 20_000, bytesPerMs: 100_000, latencyUs: 300 },
      { canPut: true, canGet: true, jitterUs: 200 },
    ],
  }),
  { faultSeeds: ['coll sim 2'] },
);
