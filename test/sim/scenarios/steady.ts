// Pairs with a steady rail, as shared memory: the other rail is made on demand. What happens when the steady one is lost, on which side, and
// how long it takes.
import type { SimLink } from '../../../tools/sim/fabric.ts';
import {
  type Lab,
  SCENARIO_PARAMS,
  Scenario,
  type ScenarioCase,
  type ScenarioOptions,
  scenarioRails,
} from '../../../tools/sim/scenario.ts';
import { World } from '../../../tools/sim/world.ts';

const LONG = 40_000;
/** A few round trips and the time in which a loss is noticed; an attempt over the dead rail takes 600 ms to fail. */
const AT_ONCE_MS = 60;

/** Rail 1 is the steady one. */
function scenario(lab: Lab, options: ScenarioOptions = {}): Scenario {
  const [spare, steady] = scenarioRails(2);
  return new Scenario(lab, { rails: [spare, { ...steady, isSteady: true, exclusivity: 200 }], ...options });
}

const stateOf = (s: Scenario, rank: number, rail = 0): string =>
  s.world.processes[rank].engine.bml.peers.get(1 - rank)?.rails[rail].state ?? '';
const attemptsOf = (s: Scenario, rank: number): number =>
  s.world.processes[rank].engine.bml.peers.get(1 - rank)?.rails[0].counters.connectAttempts ?? 0;

/** A message each way, long and short, within so many milliseconds. */
function exchange(s: Scenario, ms: number, bytes = LONG): void {
  for (const [from, to] of [
    [0, 1],
    [1, 0],
  ]) {
    s.send(bytes, 1, from, to);
    s.send(100, 2, from, to);
    s.recv(bytes, 1, to, from);
    s.recv(100, 2, to, from);
  }
  s.until(`everything arrives within ${ms} ms`, () => s.world.oracle.isFinished, ms);
}

export const steady: readonly ScenarioCase[] = [
  {
    name: 'steady: nothing is made that is not needed',
    run(lab) {
      const s = scenario(lab);
      exchange(s, 1000);
      s.run(5000);
      s.require('the spare rail is on demand on both sides', () => stateOf(s, 0) === 'ON_DEMAND' && stateOf(s, 1) === 'ON_DEMAND');
      s.require('nobody has dialled it', () => attemptsOf(s, 0) + attemptsOf(s, 1) === 0);
      s.finish();
    },
  },
  {
    name: 'steady: all rails are made at the first contact where that is asked for',
    run(lab) {
      const s = scenario(lab, { params: { bml_spare_rails: 'always' } });
      if (stateOf(s, 0) !== 'UP' || stateOf(s, 1) !== 'UP') throw new Error('scenario: the spare rail is not up');
      exchange(s, 1000);
      s.finish();
    },
  },
  ...((['lost', 'delivered', 'half'] as const).map((inFlight) => ({
    name: `steady: the rail in memory is gone in the midst of messages, and all arrive over the spare ones at once${inFlight === 'lost' ? '' : ` (${inFlight})`}`,
    run(lab: Lab) {
      const s = scenario(lab);
      s.fabric.at(s.fabric.nowUs + 3000, () => s.fabric.cut(s.link(1), { inFlight }));
      exchange(s, 3 + AT_ONCE_MS + 50);
      s.requireLost(2);
      s.finish();
    },
  })) satisfies ScenarioCase[]),
  ...[
    { name: 'steady: the higher rank alone finds out, and the lower one has nothing to send', blind: 0 },
    { name: 'steady: the lower rank alone finds out, and the higher one has everything to send', blind: 1 },
  ].map(({ name, blind }) => ({
    name,
    run(lab: Lab) {
      const s = scenario(lab);
      exchange(s, 1000);
      s.fabric.onlyOtherSideNotices(s.link(1), blind);
      s.fabric.cut(s.link(1));
      s.recv(LONG, 1, 0, 1);
      s.send(LONG, 1, 1, 0);
      s.until('the message arrives over the spare rail', () => s.world.oracle.isFinished, AT_ONCE_MS + 50);
      s.finish();
    },
  })),
  {
    name: 'steady: a peer that computes at the first contact needs no spare rail',
    run(lab) {
      const { world, link } = strangers(lab);
      world.fabric.pause(1);
      world.isend(0, 1, 0, 0, 100);
      world.irecv(1, 0, 0, 0, 100);
      world.runFor(1500);
      world.fabric.resume(1);
      world.mustFinish(2000);
      const { spares } = world.processes[0].engine.bml.peers.get(1) ?? {};
      if (spares?.[0].state !== 'ON_DEMAND') throw new Error(`scenario: the spare rail is ${spares?.[0].state} (${link.name})`);
      world.mustFinalize(60_000);
    },
  },
  ...((['refused', 'dark', 'paused for long'] as const).map((how) => ({
    name: `steady: where the rail in memory cannot be made at the first contact, the spare one is (${how})`,
    run(lab: Lab) {
      const { world, link } = strangers(lab);
      const { fabric } = world;
      if (how === 'refused') for (const rank of [0, 1]) fabric.refuseConnections(link, rank);
      else if (how === 'dark') fabric.cut(link);
      else {
        fabric.pause(0);
        fabric.at(fabric.nowUs + 4_000_000, () => fabric.resume(0));
      }
      world.isend(1, 0, 0, 0, 100);
      world.irecv(0, 1, 0, 0, 100);
      world.mustFinish(how === 'paused for long' ? 6000 : 2000);
      world.mustFinalize(60_000);
    },
  })) satisfies ScenarioCase[]),
];

/** Two ranks that have not met. */
function strangers(lab: Lab): { world: World; link: SimLink } {
  const [spare, memory] = scenarioRails(2);
  const rails = [spare, { ...memory, isSteady: true, exclusivity: 200 }];
  const world = new World({ seed: 1, ranks: 2, rails, params: SCENARIO_PARAMS, meets: true, ...lab });
  return { world, link: world.fabric.link(0, 1, 1) };
}
