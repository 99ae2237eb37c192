// The period of paper 004 (Lyu et al. 2017): G groups of processes save one after the other in each period, work goes on at the rate alpha
// meanwhile, and logs between groups slow execution (lambda), speed re-execution up (rho) and make images grow (beta). Its formulas (1) and
// (6) to (9) were lost in print; they are rebuilt from its sentences after the unified model of Bosilca et al. (2014). Young's and Daly's
// periods are here too: with one group, alpha = 0 and no logs the model is theirs.
import { MultirailError } from '../../errors.ts';

/** Parameters of the model. Times in seconds. */
export interface HierarchicalModel {
  /** Mean time between failures of the whole job. */
  readonly mtbfSeconds: number;
  /** Groups that save one after the other: G. */
  readonly groups: number;
  /** What a group's save takes, without its log: C0(q). */
  readonly costSeconds: number;
  /** Down time and restart after a failure: D + R. */
  readonly restoreSeconds: number;
  /** Share of the work that goes on while a group saves, 0 to 1. */
  readonly alpha: number;
  /** Speed of re-execution against execution, at least 1. */
  readonly rho: number;
  /** Speed of execution with logs against without, above 0 and at most 1. */
  readonly lambda: number;
  /** Growth of a save by its log, per second of work. */
  readonly beta: number;
}

/** A period and the share of the run's time that saves and failures cost with it. */
export interface Period {
  readonly periodSeconds: number;
  /** 0 to 1. */
  readonly overhead: number;
}

/** Two failures in one period have a probability of 3 % at 0.27 MTBF: longer periods leave the model. */
export const ETA = 0.27;

/** Young's period (1974): sqrt(2 mu C). */
export const young = (mtbfSeconds: number, costSeconds: number): number => Math.sqrt(2 * mtbfSeconds * costSeconds);

/** Daly's period (2006), of higher order; the work between two saves. */
export function daly(mtbfSeconds: number, costSeconds: number): number {
  if (costSeconds >= 2 * mtbfSeconds) return mtbfSeconds;
  const x = costSeconds / (2 * mtbfSeconds);
  return young(mtbfSeconds, costSeconds) * (1 + Math.sqrt(x) / 3 + x / 9) - costSeconds;
}

/** Throws ERR_ARG unless every parameter is in its range. */
export function requireModel(model: HierarchicalModel): void {
  const rows: [string, number, boolean, string][] = [
    ['mtbfSeconds', model.mtbfSeconds, model.mtbfSeconds > 0, 'a time above 0'],
    ['groups', model.groups, Number.isInteger(model.groups) && model.groups >= 1, 'a whole number from 1'],
    ['costSeconds', model.costSeconds, model.costSeconds > 0, 'a time above 0'],
    ['restoreSeconds', model.restoreSeconds, model.restoreSeconds >= 0, 'a time from 0'],
    ['alpha', model.alpha, model.alpha >= 0 && model.alpha <= 1, 'a share from 0 to 1'],
    ['rho', model.rho, model.rho >= 1, 'a factor from 1'],
    ['lambda', model.lambda, model.lambda > 0 && model.lambda <= 1, 'a factor above 0, at most 1'],
    ['beta', model.beta, model.beta >= 0, 'a growth per second from 0'],
  ];
  for (const [name, value, isRight, expected] of rows) {
    if (!isRight || !Number.isFinite(value)) throw new MultirailError('ERR_ARG', `${name} = ${value}: expected ${expected}`);
  }
}

/** C(q): a group's save with the log of a period. C = C0 (1 + beta lambda WORK), which is linear in C because WORK is. */
export function saveSeconds(period: number, { groups, costSeconds, alpha, lambda, beta }: HierarchicalModel): number {
  const growth = costSeconds * beta * lambda;
  return (costSeconds + growth * period) / (1 + growth * (1 - alpha) * groups);
}

/** Work done in a period: formula (5), at the speed of execution with logs. */
export function workSeconds(period: number, model: HierarchicalModel): number {
  return model.lambda * (period - (1 - model.alpha) * model.groups * saveSeconds(period, model));
}

/** The shortest period that has room for all groups' saves; infinite when logs grow faster than they can be saved. */
export function shortestPeriod({ groups, costSeconds, alpha, lambda, beta }: HierarchicalModel): number {
  const growth = costSeconds * beta * lambda * groups * alpha;
  return growth >= 1 ? Number.POSITIVE_INFINITY : (groups * costSeconds) / (1 - growth);
}

/** Expected time that is executed again after a failure: formulas (6), failures while nobody saves, and (7), while group s + 1 does. */
export function reExecutionSeconds(period: number, model: HierarchicalModel): number {
  const { groups, alpha } = model;
  const save = saveSeconds(period, model);
  const work = period - groups * save;
  let whileWorking = 0;
  let whileSaving = 0;
  for (let g = 1; g <= groups; g++) {
    whileWorking += (groups - g + 1) * alpha * save + work / 2;
    for (let s = 0; s < groups; s++) {
      // Half of the save that is being written counts, on average.
      if (s + 1 < g) whileSaving += (groups - g + 1 + s + 0.5) * alpha * save + work;
      else if (s + 1 === g) whileSaving += groups * alpha * save + work + save / 2;
      else whileSaving += (s - g + 1 + 0.5) * alpha * save;
    }
  }
  return (work / period) * (whileWorking / groups) + ((groups * save) / period) * (whileSaving / groups ** 2);
}

/** Share of the run's time that saves and failures cost: formulas (3), (4), (8), (9). */
export function overheadOf(period: number, model: HierarchicalModel): number {
  const delay = 1 - workSeconds(period, model) / period;
  const fault = (model.restoreSeconds + reExecutionSeconds(period, model) / model.rho) / model.mtbfSeconds;
  return delay + fault - delay * fault;
}

const SCANNED = 64;
const GOLDEN = (Math.sqrt(5) - 1) / 2;

/**
 * The period of least overhead between the shortest one that has room for the saves and 0.27 MTBF. A scan finds the valley (where beta is
 * large there may be two), the golden section its bottom. Undefined when no period fits between the two.
 */
export function hierarchicalOptimum(model: HierarchicalModel): Period | undefined {
  requireModel(model);
  const from = shortestPeriod(model);
  const to = ETA * model.mtbfSeconds;
  if (!(from < to)) return undefined;
  const at = (i: number): number => from + ((to - from) * i) / (SCANNED - 1);
  let lowest = 0;
  for (let i = 1; i < SCANNED; i++) if (overheadOf(at(i), model) < overheadOf(at(lowest), model)) lowest = i;
  let low = at(Math.max(0, lowest - 1));
  let high = at(Math.min(SCANNED - 1, lowest + 1));
  while (high - low > 1e-9 * high) {
    const left = high - GOLDEN * (high - low);
    const right = low + GOLDEN * (high - low);
    if (overheadOf(left, model) <= overheadOf(right, model)) high = right;
    else low = left;
  }
  const periodSeconds = (low + high) / 2;
  return { periodSeconds, overhead: overheadOf(periodSeconds, model) };
}
