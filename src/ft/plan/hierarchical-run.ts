// Plays the process that the model of paper 004 describes, failure by failure, so that its formula can be judged by something other than
// itself: failures strike at exponential times, in down time and re-execution too, and each takes a group drawn at random.
import type { Prng } from '../../util/prng.ts';
import { exponential } from './exponential.ts';
import { type HierarchicalModel, requireModel, saveSeconds, workSeconds } from './hierarchical.ts';

/** Time that group `g` (from 1) has to repeat when it fails `at` seconds into a period. */
function lostSeconds(at: number, g: number, save: number, work: number, { groups, alpha }: HierarchicalModel): number {
  const inSaves = groups * save;
  if (at >= inSaves) return (groups - g + 1) * alpha * save + (at - inSaves);
  const saved = Math.min(groups - 1, Math.floor(at / save));
  const inThis = at - saved * save;
  // Before its own save of this period, during it, after it.
  if (saved + 1 < g) return (groups - g + 1 + saved) * alpha * save + alpha * inThis + work;
  if (saved + 1 === g) return groups * alpha * save + work + inThis;
  return (saved - g + 1) * alpha * save + alpha * inThis;
}

/** Share of the time of `periods` periods that saves and failures cost. */
export function simulateHierarchical(period: number, model: HierarchicalModel, periods: number, prng: Prng): number {
  requireModel(model);
  const { groups, mtbfSeconds, restoreSeconds, rho } = model;
  const save = saveSeconds(period, model);
  const work = period - groups * save;
  let now = 0;
  let next = exponential(prng, mtbfSeconds);
  for (let i = 0; i < periods; i++) {
    let at = 0;
    while (next < now + (period - at)) {
      at += next - now;
      now = next;
      next += exponential(prng, mtbfSeconds);
      const repeat = restoreSeconds + lostSeconds(at, 1 + prng.below(groups), save, work, model) / rho;
      // A failure in the recovery begins it again.
      while (next < now + repeat) {
        now = next;
        next += exponential(prng, mtbfSeconds);
      }
      now += repeat;
    }
    now += period - at;
  }
  return 1 - (periods * workSeconds(period, model)) / now;
}
