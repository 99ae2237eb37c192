// Where the copies of an image go, and how many failures that survives: the receivers of paper 000 (Bondarenko, Iakobovski 2014), formula (1),
// its tolerance, formula (2), with the bound corrected, and the choice of a scheme by memory.
import { MultirailError } from '../../errors.ts';

/** How images are copied among failure domains, by the names of paper 000: N, DF and SD. */
export interface Scheme {
  /** Failure domains (hosts, or processes of one host): N of the paper. */
  readonly domains: number;
  /** Other domains that hold a copy of each image: DF of the paper. */
  readonly duplication: number;
  /** Committed saves that stay readable: SD of the paper. */
  readonly depth: number;
}

/** What a scheme survives, counted in failure domains that are lost at once. */
export interface Tolerance {
  /** Failures that no choice of domains turns into a loss, by formula (2), or by the number of copies where its bound does not hold. */
  readonly guaranteed: number;
  /** The same by searching all sets of failures, where the scheme is small enough (128 domains, depth 3). */
  readonly exact: number | undefined;
}

/** As many processes as a job can have: each may be a domain of its own. */
export const DOMAINS_MAX = 8192;
export const DEPTH_MAX = 64;
/** Beyond these the exact tolerance is not searched for. */
const SEARCHED_DOMAINS_MAX = 128;
const SEARCHED_DEPTH_MAX = 3;

const wholeFrom = (low: number, high: number, value: number): boolean => Number.isInteger(value) && value >= low && value <= high;

/** Throws ERR_ARG unless the numbers of the scheme make sense together. */
export function requireScheme({ domains, duplication, depth }: Scheme): void {
  if (!wholeFrom(1, DOMAINS_MAX, domains))
    throw new MultirailError('ERR_ARG', `domains = ${domains}: expected a whole number from 1 to ${DOMAINS_MAX}`);
  if (!wholeFrom(0, domains - 1, duplication))
    throw new MultirailError(
      'ERR_ARG',
      `duplication = ${duplication} with ${domains} domains: expected a whole number from 0 to ${domains - 1}, because every copy needs another domain`,
    );
  if (!wholeFrom(1, DEPTH_MAX, depth))
    throw new MultirailError('ERR_ARG', `depth = ${depth}: expected a whole number from 1 to ${DEPTH_MAX}`);
}

/** base^exponent mod modulus, in whole numbers: DF^(k mod SD) itself leaves the exact integers soon. */
function powerModulo(base: number, exponent: number, modulus: number): number {
  let power = 1 % modulus;
  for (let i = 0; i < exponent; i++) power = (power * base) % modulus;
  return power;
}

/** Domain that holds copy `j` (from 1) of the image of domain `i` at save `k`: formula (1). */
export function receiver(i: number, j: number, k: number, { domains, duplication, depth }: Scheme): number {
  const slot = k % depth;
  return (i + j * powerModulo(duplication, slot, domains) + slot) % domains;
}

/** The other domains that hold an image of domain 0 in slot `slot`, each once. The scheme looks the same from every domain. */
function holdersOfFirst(slot: number, scheme: Scheme): number[] {
  const holders = new Set<number>();
  for (let j = 1; j <= scheme.duplication; j++) holders.add(receiver(0, j, slot, scheme));
  holders.delete(0);
  return [...holders];
}

/** DF^SD + SD + 1 domains: from there on formula (2) holds. The paper has one less, which is wrong for depth 3. */
export const domainsNeeded = (duplication: number, depth: number): number => duplication ** depth + depth + 1;

/** (DF - 1) * SD + 1: formula (2) of the paper. */
export const formulaTolerance = (duplication: number, depth: number): number => (duplication === 0 ? 0 : (duplication - 1) * depth + 1);

/**
 * A smallest set of failed domains that destroys every save of the scheme, in order; undefined when not even all domains do (which cannot
 * happen) or the search would take too long. Needs `depth` committed saves.
 */
export function smallestLoss(scheme: Scheme): number[] | undefined {
  requireScheme(scheme);
  const { domains, depth } = scheme;
  if (domains > SEARCHED_DOMAINS_MAX || depth > SEARCHED_DEPTH_MAX) return undefined;
  // An image in a slot is lost with its owner and all holders. Whose image it is may differ from slot to slot; that of the first slot may
  // be taken as domain 0, because the scheme is the same from every domain.
  const holders = Array.from({ length: depth }, (_, slot) => [0, ...holdersOfFirst(slot, scheme)]);
  const failedBy = new Uint8Array(domains);
  let failed = 0;
  let fewest = domains + 1;
  let found: number[] | undefined;
  const addSlot = (slot: number): void => {
    if (failed >= fewest) return;
    if (slot === depth) {
      fewest = failed;
      found = Array.from(failedBy.keys()).filter((domain) => failedBy[domain] > 0);
      return;
    }
    for (let owner = 0; owner < (slot === 0 ? 1 : domains); owner++) {
      for (const holder of holders[slot]) if (failedBy[(owner + holder) % domains]++ === 0) failed++;
      addSlot(slot + 1);
      for (const holder of holders[slot]) if (--failedBy[(owner + holder) % domains] === 0) failed--;
    }
  };
  addSlot(0);
  return found;
}

/**
 * How many failure domains can be lost at once, whichever they are, so that one of the last `depth` saves can still be read whole. Counts
 * from when `depth` saves are committed. Formula (2) of paper 000 where its corrected bound holds, that is domains >= duplication^depth +
 * depth + 1; below it the copies of a single save, which is less and always true.
 *
 * @param scheme Domains, copies and saves.
 * @throws ERR_ARG: the numbers of the scheme make no sense together.
 */
export function tolerance(scheme: Scheme): Tolerance {
  requireScheme(scheme);
  const { domains, duplication, depth } = scheme;
  const copies = Array.from({ length: depth }, (_, slot) => holdersOfFirst(slot, scheme).length);
  const holds = domains >= domainsNeeded(duplication, depth);
  const loss = smallestLoss(scheme);
  return {
    guaranteed: holds ? formulaTolerance(duplication, depth) : Math.max(...copies),
    exact: loss === undefined ? undefined : loss.length - 1,
  };
}

/** What a scheme really does with few domains. */
export interface CheckedScheme {
  /** The scheme, with as many copies as land on different domains in every slot. */
  scheme: Scheme;
  /** A sentence for whoever asked for more; undefined when all is well. */
  warning: string | undefined;
}

/** Reduces `duplication` until no copy lands on its owner, or twice on one domain: such copies cost memory and protect nothing. */
export function checkScheme(asked: Scheme): CheckedScheme {
  requireScheme(asked);
  for (let duplication = asked.duplication; duplication >= 0; duplication--) {
    const scheme = { ...asked, duplication };
    const isClean = Array.from({ length: asked.depth }, (_, slot) => holdersOfFirst(slot, scheme).length).every(
      (count) => count === duplication,
    );
    if (!isClean) continue;
    const warning =
      duplication === asked.duplication
        ? undefined
        : `duplication = ${asked.duplication} with depth ${asked.depth} puts two copies of an image on one of ${asked.domains} domains, or one on its owner: ${duplication} is used; ${domainsNeeded(asked.duplication, asked.depth)} domains would do`;
    return { scheme, warning };
  }
  throw new MultirailError('ERR_INTERNAL', 'a scheme without copies has no copy in a wrong place');
}

/** Memory of a process for its own images and the copies that it holds, in images: one slot more than `depth`, for the save that is being made. */
export const imagesHeld = ({ duplication, depth }: Pick<Scheme, 'duplication' | 'depth'>): number => (depth + 1) * (duplication + 1);

const CHOSEN_DUPLICATION_MAX = 32;
const CHOSEN_DEPTH_MAX = 3;

/**
 * The scheme of least memory that survives `failures` domains lost at once, whichever they are; of equals the one with fewer copies, which
 * are less traffic. Where the number of domains is not known, as many as formula (2) needs are assumed. Undefined when none does.
 */
export function chooseScheme(failures: number, domains: number | undefined): Scheme | undefined {
  let best: Scheme | undefined;
  const duplicationMax = Math.min(CHOSEN_DUPLICATION_MAX, (domains ?? DOMAINS_MAX) - 1, failures);
  for (let duplication = 0; duplication <= duplicationMax; duplication++) {
    for (let depth = 1; depth <= CHOSEN_DEPTH_MAX; depth++) {
      const scheme = { domains: domains ?? domainsNeeded(duplication, depth), duplication, depth };
      if (scheme.domains > DOMAINS_MAX || checkScheme(scheme).warning !== undefined) continue;
      if (best !== undefined && imagesHeld(scheme) >= imagesHeld(best)) continue;
      const { guaranteed, exact } = tolerance(scheme);
      if ((exact ?? guaranteed) >= failures) best = scheme;
    }
  }
  return best;
}
