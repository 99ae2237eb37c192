// When a peer is unreachable: only after the peer timeout without any rail coming up and without anything delivered, counted from the later
// of the two. The timeouts are short here, since random runs have one that never ends.
import { expect, it } from 'vitest';
import { SCENARIO_PARAMS, SCENARIO_RAIL } from '../../tools/sim/scenario.ts';
import { World } from '../../tools/sim/world.ts';

const PEER_TIMEOUT_MS = 3000;

function makeWorld(seed: number, peerTimeoutMs = PEER_TIMEOUT_MS): World {
  const rail = { ...SCENARIO_RAIL, bytesPerMs: 100_000, latencyUs: 50, detectUsMin: 200, detectUsMax: 400 };
  const world = new World({ seed, ranks: 2, rails: [rail], params: { ...SCENARIO_PARAMS, pml_peer_timeout_ms: String(peerTimeoutMs) } });
  expect(world.runUntil(() => world.allUp, 10_000)).toBe(true);
  return world;
}

const failures = (world: World): string[] => world.processes.flatMap(({ peerFailures }) => peerFailures.map(({ error }) => error.code));

it.each([1, 2, 20, 45])('a rail that is up for %d ms at a time carries its messages, and its peer is never unreachable', (upMs) => {
  for (const seed of [1, 2]) {
    const world = makeWorld(seed);
    const link = world.fabric.link(0, 1, 0);
    const [{ engine }] = world.processes;
    const rail = engine.bml.peers.get(1)?.rails[0];
    const received = (): number => world.processes[1].engine.pml.counters.messagesReceived;
    const endMs = world.nowMs + 3 * PEER_TIMEOUT_MS;
    let cutAtMs = world.nowMs + upMs;
    let wasUp = true;
    let ups = 0;
    let posted = 0;
    while (world.nowMs < endMs && failures(world).length === 0) {
      const isUp = rail?.isCarrying === true;
      if (isUp && !wasUp) {
        ups++;
        cutAtMs = world.nowMs + upMs;
      }
      wasUp = isUp;
      if (isUp && world.nowMs >= cutAtMs) {
        cutAtMs = Number.POSITIVE_INFINITY;
        world.fabric.cut(link, { inFlight: 'delivered' });
        world.fabric.at(world.fabric.nowUs + 100, () => world.fabric.mend(link));
      }
      if (posted - received() < 20) {
        posted++;
        world.irecv(1, 0, 0, 0, 100);
        world.isend(0, 1, 0, 0, 100);
      }
      world.runFor(0.25);
    }
    expect(failures(world)).toEqual([]);
    expect(ups).toBeGreaterThan(5);
    expect(received()).toBeGreaterThan(10);
    world.mustFinish(60_000);
    world.mustFinalize(60_000);
  }
});

it('a peer to which nothing gets through is unreachable after the timeout, counted from when its last rail was up', () => {
  const world = makeWorld(1);
  const link = world.fabric.link(0, 1, 0);
  for (let i = 0; i < 3; i++) {
    world.fabric.cut(link);
    world.runFor(0.6 * PEER_TIMEOUT_MS);
    expect(failures(world)).toEqual([]);
    world.fabric.mend(link);
    expect(world.runUntil(() => world.allUp, 0.4 * PEER_TIMEOUT_MS)).toBe(true);
  }
  world.fabric.cut(link);
  world.runFor(0.95 * PEER_TIMEOUT_MS);
  expect(failures(world)).toEqual([]);
  world.runFor(0.2 * PEER_TIMEOUT_MS);
  expect(failures(world)).toEqual(['ERR_PROC_UNREACHABLE', 'ERR_PROC_UNREACHABLE']);
});
