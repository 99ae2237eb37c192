// The suite of collectives over the simulated network, in virtual time: calm, and with links that are cut, black-holed and flap.
import { collSuite } from './coll-suite.ts';
import { simFixture } from './p2p-worlds.ts';

collSuite('sim, two rails', simFixture({ seed: 'coll 1', rails: [{}, {}] }), { faultSeeds: ['coll sim 1'] });
