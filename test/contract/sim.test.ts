// The BTL contract over simulated rails: several seeds, rails that check themselves and rails that do not, with one-sided
// writes, slow and jittery pipes, and bursts of BUSY.
import { Fabric, type RailSpec } from '../../tools/sim/fabric.ts';
import { simComponent } from '../../tools/sim/sim-btl.ts';
import { type Fixture, simPair } from '../support/btl-fixture.ts';
import { btlSuite } from './suite.ts';

export function simFixture(seed: string, rail: Partial<RailSpec>): Fixture {
  return {
    setup: async (options) => {
      const fabric = new Fabric({ seed, ranks: 2, rails: [rail, { ...rail, latencyUs: 500 }] });
      return simPair({ ...options, fabric, componentOf: () => simComponent(fabric) });
    },
  };
}

btlSuite('sim, self-checking', simFixture('conformance 1', { liveness: 'self' }));
btlSuite('sim, siblings', simFixture('conformance 2', { liveness: 'siblings', jitterUs: 300 }));
btlSuite(
  'sim, one-sided',
  simFixture('conformance 3', { liveness: 'self', canPut: true, canGet: true, lateOneSidedUsMax: 300_000, cellBytesMax: 8192 }),
);
btlSuite('sim, slow and busy', simFixture('conformance 4', { bytesPerMs: 50_000, latencyUs: 2000, busyPer10k: 100, cellsMax: 8 }));
