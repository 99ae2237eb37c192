// A rank that begins to compute while rails come up, at every moment: no rail is given up on either side. A second handshake may take over
// from a live epoch, since the simulator's handshake has no step in which it gives way to a peer that is heard again (dial-attempt.ts has
// one).
import { expect, it } from 'vitest';
import { SCENARIO_PARAMS, scenarioRails } from '../../tools/sim/scenario.ts';
import { World } from '../../tools/sim/world.ts';

const COMPUTE_MS = 5000;
const GRID_MS = 0.05;

function makeWorld(): World {
  return new World({ seed: 1, ranks: 2, rails: scenarioRails(2), params: SCENARIO_PARAMS });
}

function cameUpAfterMs(world: World): number {
  expect(world.runUntil(() => world.allUp, 10_000)).toBe(true);
  return world.nowMs;
}

it.each([0, 1])('rank %d computes at any moment of the bring-up, and no rail is given up', (rank) => {
  const endMs = cameUpAfterMs(makeWorld());
  expect(endMs / GRID_MS).toBeGreaterThan(10);
  const lost: string[] = [];
  for (let atMs = 0; atMs <= endMs + GRID_MS; atMs += GRID_MS) {
    const world = makeWorld();
    world.runFor(atMs);
    world.fabric.pause(rank);
    world.runFor(COMPUTE_MS);
    world.fabric.resume(rank);
    cameUpAfterMs(world);
    for (const process of world.processes) {
      for (const { type, reason } of process.railEvents) {
        if (type === 'lost' && !reason.startsWith('replaced'))
          lost.push(`rank ${process.rank}, computing from ${atMs.toFixed(2)} ms: ${reason}`);
      }
    }
  }
  expect(lost).toEqual([]);
});
