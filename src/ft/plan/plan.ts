// plan(): from the time between failures and the cost of saves to periods, expected overhead, and how many copies of an image to keep. Each
// figure says which paper's model it is.
import { MultirailError } from '../../errors.ts';
import { daly, ETA, type HierarchicalModel, hierarchicalOptimum, overheadOf, type Period, young } from './hierarchical.ts';
import { type Pattern, pattern, patternOverhead, requireLevels, wholePattern } from './pattern.ts';
import { chooseScheme, DEPTH_MAX, domainsNeeded, imagesHeld, requireScheme, type Scheme, tolerance } from './scheme.ts';

/** What a plan is made from. Times in seconds, memory in bytes. */
export interface PlanInput {
  /** Mean time between failures of the whole job, per level: first those that memory survives, then those that need a disk or a store. */
  readonly mtbfSeconds: readonly number[];
  /** What a save of each level takes. */
  readonly costSeconds: readonly number[];
  /** What it takes to detect a failure of each level, start again and restore; 0 unless given. */
  readonly restoreSeconds?: readonly number[];
  /** Groups that save one after the other, and what logs do (paper 004). One group that stops for its save, unless given. */
  readonly hierarchical?: PlanGroups;
  /** Copies in memory (paper 000); no scheme is planned unless given. */
  readonly copies?: PlanCopies;
}

/** Parameters of hierarchical saves (paper 004). */
export interface PlanGroups {
  /** Groups that save one after the other; the cost of a save is that of one group. Default 1. */
  readonly groups?: number;
  /** Share of the work that goes on while a group saves, from 0 (default) to 1. */
  readonly alpha?: number;
  /** Speed of re-execution against execution, from 1 (default). */
  readonly rho?: number;
  /** Speed of execution with logs against without, up to 1 (default). */
  readonly lambda?: number;
  /** Growth of a save by its log, per second of work. Default 0. */
  readonly beta?: number;
}

/** What is known of copies in memory: either the scheme, or the failures that it must survive. */
export interface PlanCopies {
  /** Failure domains. As many as the scheme needs, unless given. */
  readonly domains?: number;
  /** Domains lost at once that must be survived, whichever they are; the scheme of least memory is chosen. */
  readonly failures?: number;
  /** Copies of each image on other domains, where the scheme is given. */
  readonly duplication?: number;
  /** Committed saves kept, where the scheme is given. */
  readonly depth?: number;
  /** Size of one image. */
  readonly stateBytes?: number;
  /** Memory that a process may use for images and copies. */
  readonly memoryBytes?: number;
}

/** A period by one model, and what it costs. */
export interface PlannedPeriod {
  /** Time between two saves, the save included. */
  readonly periodSeconds: number;
  /** Expected share of the run's time that saves, restores and repeated work cost, 0 to 1. */
  readonly overhead: number;
}

/** The periods of one level by itself. */
export interface PlannedLevel {
  /** Mean time between failures. */
  readonly mtbfSeconds: number;
  /** What a save takes. */
  readonly costSeconds: number;
  /** What a restore takes. */
  readonly restoreSeconds: number;
  /** 0.27 MTBF: in a longer period two failures are likelier than 3 %, and no model holds. */
  readonly longestSeconds: number;
  /** Young's period (1974). */
  readonly young: PlannedPeriod;
  /** Daly's period (2006). */
  readonly daly: PlannedPeriod;
  /** The best period of paper 004's model, with the groups that were given. */
  readonly hierarchical: PlannedPeriod;
}

/** Saves of several levels together (paper 002). */
export interface PlannedPattern {
  /** Work between two saves of the highest level. */
  readonly workSeconds: number;
  /** Saves of each level in that time. */
  readonly counts: readonly number[];
  /** Work between two saves of each level. */
  readonly periodSeconds: readonly number[];
  /** Time that saves, restores and repeated work cost per second of work. */
  readonly overhead: number;
}

/** Copies in memory (paper 000). */
export interface PlannedCopies {
  /** Domains, copies and saves. */
  readonly scheme: Scheme;
  /** Domains lost at once that are survived whichever they are. */
  readonly guaranteed: number;
  /** The same by searching all sets, where that is short. */
  readonly exact: number | undefined;
  /** Images that a process has room for: its own and copies, with one slot more than the depth for the save in the making. */
  readonly images: number;
  /** Memory of a process for them, where the size of an image was given. */
  readonly bytesPerProcess: number | undefined;
  /** Domains from which on formula (2) holds for this scheme. */
  readonly domainsNeeded: number;
}

/** Periods, expected overhead, and copies. */
export interface Plan {
  /** Each level by itself. */
  readonly levels: readonly PlannedLevel[];
  /** All levels together, as paper 002 has it: numbers of saves need not be whole. */
  readonly pattern: PlannedPattern;
  /** The same in whole numbers of saves. */
  readonly wholePattern: PlannedPattern;
  /** Copies in memory, where they were asked for. */
  readonly copies: PlannedCopies | undefined;
}

function plannedLevel(model: HierarchicalModel, i: number): PlannedLevel {
  const { mtbfSeconds, costSeconds, restoreSeconds } = model;
  const plain: HierarchicalModel = { ...model, groups: 1, costSeconds: costSeconds * model.groups, alpha: 0, rho: 1, lambda: 1, beta: 0 };
  const longestSeconds = ETA * mtbfSeconds;
  const best = hierarchicalOptimum(model);
  if (best === undefined || plain.costSeconds >= longestSeconds)
    throw new MultirailError(
      'ERR_ARG',
      `costSeconds[${i}] = ${costSeconds} s${model.groups > 1 ? ` for each of ${model.groups} groups` : ''} with mtbfSeconds[${i}] = ${mtbfSeconds} s: the saves of a period must fit into 0.27 of the time between failures, ${longestSeconds} s; save less, or to something faster`,
    );
  const costs = (periodSeconds: number): Period => {
    const period = Math.max(periodSeconds, plain.costSeconds);
    return { periodSeconds: period, overhead: overheadOf(period, plain) };
  };
  return {
    mtbfSeconds,
    costSeconds,
    restoreSeconds,
    longestSeconds,
    young: costs(young(mtbfSeconds, plain.costSeconds)),
    // Daly counts the work between two saves.
    daly: costs(daly(mtbfSeconds, plain.costSeconds) + plain.costSeconds),
    hierarchical: best,
  };
}

function plannedCopies(copies: PlanCopies): PlannedCopies {
  const { domains, failures, duplication, depth, stateBytes, memoryBytes } = copies;
  for (const [name, value] of Object.entries({ stateBytes, memoryBytes })) {
    if (value !== undefined && !(Number.isSafeInteger(value) && value > 0))
      throw new MultirailError('ERR_ARG', `${name} = ${value}: expected a whole number of bytes above 0`);
  }
  let scheme: Scheme | undefined;
  if (failures !== undefined) {
    if (duplication !== undefined || depth !== undefined)
      throw new MultirailError('ERR_ARG', 'failures and duplication or depth were given: give either what must be survived, or the scheme');
    if (!Number.isInteger(failures) || failures < 1)
      throw new MultirailError('ERR_ARG', `failures = ${failures}: expected a whole number from 1`);
    scheme = chooseScheme(failures, domains);
    if (scheme === undefined)
      throw new MultirailError(
        'ERR_ARG',
        `failures = ${failures}${domains === undefined ? '' : ` with ${domains} domains`}: no scheme of up to 32 copies and 3 saves survives that; use more domains, or a store`,
      );
  } else {
    const dup = duplication ?? 1;
    const saves = depth ?? 1;
    if (domains === undefined && !(Number.isInteger(dup) && dup >= 0 && Number.isInteger(saves) && saves >= 1 && saves <= DEPTH_MAX))
      throw new MultirailError(
        'ERR_ARG',
        `duplication = ${dup}, depth = ${saves}: expected whole numbers, from 0 and from 1 to ${DEPTH_MAX}`,
      );
    scheme = { domains: domains ?? domainsNeeded(dup, saves), duplication: dup, depth: saves };
    requireScheme(scheme);
  }
  const images = imagesHeld(scheme);
  const bytesPerProcess = stateBytes === undefined ? undefined : stateBytes * images;
  if (memoryBytes !== undefined && bytesPerProcess !== undefined && bytesPerProcess > memoryBytes)
    throw new MultirailError(
      'ERR_ARG',
      `memoryBytes = ${memoryBytes}: duplication ${scheme.duplication} and depth ${scheme.depth} need ${images} images of ${stateBytes} bytes, ${bytesPerProcess} bytes for each process; keep fewer copies, or use a store`,
    );
  return { scheme, ...tolerance(scheme), images, bytesPerProcess, domainsNeeded: domainsNeeded(scheme.duplication, scheme.depth) };
}

/**
 * Plans saves: how often, at what cost, and with how many copies in memory. Pure arithmetic, which takes a moment.
 *
 * Periods of one level follow Young, Daly and paper 004; the overhead is that of paper 004's formula (4), of which the others are special
 * cases. Patterns of several levels follow paper 002, copies paper 000 with its bound corrected.
 *
 * @param input Time between failures and cost of saves per level, and what is known of groups and copies.
 * @throws ERR_ARG: a number is out of range, levels are not in order, or nothing satisfies what was asked for; the text says which.
 */
export function plan(input: PlanInput): Plan {
  requireLevels(input);
  const { mtbfSeconds, costSeconds } = input;
  const restoreSeconds = input.restoreSeconds ?? mtbfSeconds.map(() => 0);
  if (restoreSeconds.length !== mtbfSeconds.length)
    throw new MultirailError(
      'ERR_ARG',
      `mtbfSeconds has ${mtbfSeconds.length} levels and restoreSeconds has ${restoreSeconds.length}: give one of each per level`,
    );
  const { groups = 1, alpha = 0, rho = 1, lambda = 1, beta = 0 } = input.hierarchical ?? {};
  const priced = (one: Pattern): PlannedPattern => ({ ...one, overhead: patternOverhead(one, input, restoreSeconds) });
  return {
    levels: mtbfSeconds.map((mtbf, i) =>
      plannedLevel(
        { mtbfSeconds: mtbf, costSeconds: costSeconds[i], restoreSeconds: restoreSeconds[i], groups, alpha, rho, lambda, beta },
        i,
      ),
    ),
    pattern: priced(pattern(input)),
    wholePattern: priced(wholePattern(input)),
    copies: input.copies === undefined ? undefined : plannedCopies(input.copies),
  };
}
