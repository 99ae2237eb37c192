// Steady rails in random runs (profile meet), as shared memory between ranks of one host: the other rails of a pair are made on demand. The
// steady ones are struck at the first contact, at any moment or when something leaves over them, and most that are struck are gone for good:
// then everything must end over the spare ones. In a run without any fault nobody may dial those.
import { Prng } from '../../src/util/prng.ts';
import type { RailSpec, SimLink } from './fabric.ts';
import { OracleError } from './oracle.ts';
import type { World } from './world.ts';

/** Above that of other rails in the simulator. */
const EXCLUSIVITY = 200;

export interface SteadyDraw {
  readonly linkNo: number;
  /** No fault strikes in this run, of whatever kind. */
  readonly isCalm: boolean;
  readonly prng: Prng;
}

/** In two of three runs with several rails one of them becomes steady. */
export function drawSteady(seed: number, rails: Partial<RailSpec>[]): SteadyDraw | undefined {
  const prng = new Prng(seed).split('steady');
  if (rails.length < 2 || prng.chance(1, 3)) return undefined;
  const linkNo = prng.below(rails.length);
  rails[linkNo] = { ...rails[linkNo], isSteady: true, exclusivity: EXCLUSIVITY, role: 'active', liveness: 'self' };
  return { linkNo, isCalm: prng.chance(1, 5), prng };
}

/** Strikes the steady rails of some pairs, now or later; `faults` counts them. */
export function strikeSteady(world: World, { linkNo, isCalm, prng }: SteadyDraw, faults: Partial<Record<string, number>>): void {
  if (isCalm) return;
  const { fabric } = world;
  for (const link of fabric.links({ linkNo })) {
    if (prng.chance(1, 3)) continue;
    const strike = drawStrike(world, link, prng, faults);
    const when = prng.below(3);
    if (when === 0) strike();
    else if (when === 1) fabric.at(prng.between(0, prng.pick([2000, 50_000, 400_000])), strike);
    else {
      const nth = prng.pick([1, 2, 3, 5, 10, 30]);
      const stage = prng.pick(['leave', 'arrive'] as const);
      fabric.onPacket({ stage, linkNo }, (sighting, hit) => {
        // What is looked at has gone on by then: a cut in its midst would let what is behind it pass.
        if (hit === nth && sighting.link === link) fabric.at(fabric.nowUs, strike);
        return 'pass';
      });
    }
  }
}

function drawStrike(world: World, link: SimLink, prng: Prng, faults: Partial<Record<string, number>>): () => void {
  const { fabric } = world;
  const isGone = prng.chance(2, 3);
  const refuses = prng.chance(1, 2);
  const blind = prng.chance(1, 3) ? prng.pick([link.low, link.high]) : undefined;
  const inFlight = prng.pick(['lost', 'delivered', 'half'] as const);
  const downUs = prng.pick([100, 20_000, 400_000]);
  const set = (isStruck: boolean, isBlind: boolean): void => {
    for (const rank of [link.low, link.high]) {
      fabric.onlyOtherSideNotices(link, rank, isBlind && rank === blind);
      if (refuses || !isStruck) fabric.refuseConnections(link, rank, isStruck);
    }
  };
  const strike = (isBlind: boolean): void => {
    set(true, isBlind);
    fabric.cut(link, { inFlight });
  };
  return () => {
    const kind = isGone ? 'steadyGone' : 'steadyCut';
    faults[kind] = (faults[kind] ?? 0) + 1;
    strike(true);
    // In the end nobody is blind: a side that is dead, or has left, tells the other nothing.
    if (isGone) world.gone.set(link, () => strike(false));
    else
      fabric.at(fabric.nowUs + downUs, () => {
        fabric.mend(link);
        set(false, false);
        fabric.armDetection(link, 'silent', 'the other side has ended this epoch');
      });
  };
}

/** What was on demand and never needed was never dialled. */
export function checkSpares(world: World, draw: SteadyDraw): void {
  if (!draw.isCalm) return;
  for (const { rank, engine } of world.processes) {
    for (const peer of engine.bml.peers.values()) {
      const dialled = peer.spares.find(({ state, counters }) => state !== 'ON_DEMAND' || counters.connectAttempts > 0);
      if (dialled !== undefined)
        throw new OracleError(`spare rail ${dialled.key} of rank ${rank} to rank ${peer.rank} is ${dialled.state}, and nothing needed it`);
    }
  }
}
