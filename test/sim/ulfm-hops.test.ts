// What an agreement without failures costs, on the production engine: 4 (n - 1) messages, and as many hops as its tree is deep, four times:
// 4 log2 n for powers of two, and never more than 4 times log2 n rounded up. Every hop takes 1 ms here, and everything else next to nothing.
// MULTIRAIL_SIM_HOPS=1024 measures every number of members up to that one.
import { expect, it } from 'vitest';
import { treeParent } from '../../src/ulfm/graphs.ts';
import { OPERATION } from '../../src/ulfm/values.ts';
import { SERIES } from '../../src/ulfm/wire.ts';
import { Prng } from '../../src/util/prng.ts';
import { SCENARIO_PARAMS } from '../../tools/sim/scenario.ts';
import { FIRST_ID, UlfmWorld } from '../../tools/sim/ulfm-world.ts';

const HOP_US = 1000;
const most = Number(process.env.MULTIRAIL_SIM_HOPS ?? 64);
const sizes = most > 64 ? Array.from({ length: most - 1 }, (_, i) => i + 2) : [2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64];

function measure(members: number): { hops: number; messages: number; decisions: number } {
  const world = new UlfmWorld(new Prng(members).split('hops'), {
    seed: members,
    ranks: members,
    members,
    rails: [{ latencyUs: HOP_US, jitterUs: 0, bytesPerMs: 1_000_000, cellsMax: 1 }],
    params: SCENARIO_PARAMS,
    // Only the rails of the tree: 1024 processes would have half a million.
    isLinked: (low, high) => treeParent(high) === low,
    detector: 'server',
    hostSize: 1,
    newsUs: [1],
    serverDiesUs: 0,
    keepsDecisions: false,
    leavesEarly: false,
  });
  const { world: sim } = world;
  expect(sim.runUntil(() => sim.allUp, 10_000)).toBe(true);
  const begunUs = sim.fabric.nowUs;
  let endedUs = 0;
  let decisions = 0;
  for (const process of world.processes) {
    world.call(process, FIRST_ID, SERIES.PROGRAM, OPERATION.AGREE, () => {
      decisions++;
      endedUs = sim.fabric.nowUs;
    });
  }
  sim.runUntil(() => decisions === members, 1000);
  return { hops: Math.floor((endedUs - begunUs) / HOP_US), messages: world.agreementMessages, decisions };
}

it(`an agreement of 2 to ${most} members takes 4 (n - 1) messages and 4 log2 n hops`, { timeout: 600_000 }, () => {
  for (const members of sizes) {
    const deep = 4 * Math.floor(Math.log2(members));
    expect({ members, ...measure(members) }).toEqual({ members, hops: deep, messages: 4 * (members - 1), decisions: members });
    expect(deep).toBeLessThanOrEqual(4 * Math.ceil(Math.log2(members)));
  }
});
