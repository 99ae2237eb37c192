// The pattern of saves of several levels in paper 002 (Bondarenko, Lyakhov, Iakobovski 2019), its figure 5, after Benoit et al. (2016): how
// many saves of each level belong to one of the highest, and how long such a pattern lasts.
import { MultirailError } from '../../errors.ts';

/** Levels from the frequent and cheap failures (memory) to the rare and dear ones (file system). Times in seconds. */
export interface Levels {
  readonly mtbfSeconds: readonly number[];
  readonly costSeconds: readonly number[];
}

/** One pattern: it ends with a save of the highest level. */
export interface Pattern {
  /** W: work between two saves of the highest level. */
  readonly workSeconds: number;
  /** N_i: saves of each level in it; 1 for the highest. */
  readonly counts: readonly number[];
  /** P_i = W / N_i: work between two saves of each level. */
  readonly periodSeconds: readonly number[];
}

const LEVELS_MAX = 8;

/** Throws ERR_ARG unless the levels are what the paper assumes: rarer and dearer from each to the next. */
export function requireLevels({ mtbfSeconds, costSeconds }: Levels): void {
  const levels = mtbfSeconds.length;
  if (levels < 1 || levels > LEVELS_MAX) throw new MultirailError('ERR_ARG', `${levels} levels were given: expected 1 to ${LEVELS_MAX}`);
  if (costSeconds.length !== levels)
    throw new MultirailError(
      'ERR_ARG',
      `mtbfSeconds has ${levels} levels and costSeconds has ${costSeconds.length}: give one of each per level`,
    );
  for (const [name, list] of Object.entries({ mtbfSeconds, costSeconds })) {
    for (const [i, value] of list.entries()) {
      if (!Number.isFinite(value) || value <= 0) throw new MultirailError('ERR_ARG', `${name}[${i}] = ${value}: expected a time above 0 s`);
      if (i > 0 && value < list[i - 1])
        throw new MultirailError(
          'ERR_ARG',
          `${name}[${i}] = ${value} s is below ${name}[${i - 1}] = ${list[i - 1]} s: give the levels from frequent, cheap failures to rare, dear ones`,
        );
    }
  }
}

/** The pattern with these numbers of saves, as long as is best for them. */
function patternOf(counts: readonly number[], { mtbfSeconds, costSeconds }: Levels): Pattern {
  const saves = counts.reduce((sum, count, i) => sum + count * costSeconds[i], 0);
  const losses = counts.reduce((sum, count, i) => sum + 1 / mtbfSeconds[i] / count, 0);
  const work = Math.sqrt((2 * saves) / losses);
  return { workSeconds: work, counts, periodSeconds: counts.map((count) => work / count) };
}

/** The pattern as in the paper, where numbers of saves need not be whole. */
export function pattern(levels: Levels): Pattern {
  requireLevels(levels);
  const { mtbfSeconds, costSeconds } = levels;
  const last = mtbfSeconds.length - 1;
  const counts = mtbfSeconds.map((mtbf, i) => Math.sqrt((costSeconds[last] * mtbfSeconds[last]) / mtbf / costSeconds[i]));
  return patternOf(counts, levels);
}

/** Time that saves and lost work cost per second of work, to first order, with restores of these times. */
export function patternOverhead(
  { workSeconds, counts }: Pattern,
  { mtbfSeconds, costSeconds }: Levels,
  restoreSeconds: readonly number[],
): number {
  const saves = counts.reduce((sum, count, i) => sum + count * costSeconds[i], 0) / workSeconds;
  const lost = (workSeconds / 2) * counts.reduce((sum, count, i) => sum + 1 / mtbfSeconds[i] / count, 0);
  return saves + lost + restoreSeconds.reduce((sum, seconds, i) => sum + seconds / mtbfSeconds[i], 0);
}

/** The pattern in whole saves: of each level, a whole number per save of the next one; of both neighbours the one that costs less. */
export function wholePattern(levels: Levels): Pattern {
  const { counts } = pattern(levels);
  const none = counts.map(() => 0);
  let best: Pattern | undefined;
  const choose = (level: number, chosen: readonly number[]): void => {
    if (level < 0) {
      const one = patternOf(chosen, levels);
      if (best === undefined || patternOverhead(one, levels, none) < patternOverhead(best, levels, none)) best = one;
      return;
    }
    const ratio = counts[level] / counts[level + 1];
    for (const whole of new Set([Math.max(1, Math.floor(ratio)), Math.max(1, Math.ceil(ratio))]))
      choose(level - 1, [whole * chosen[0], ...chosen]);
  };
  choose(counts.length - 2, [1]);
  return best as Pattern;
}
