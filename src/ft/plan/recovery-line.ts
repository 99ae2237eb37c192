// The recovery line of paper 000: the newest save of which everybody's image can still be read, and who gives each failed domain its image.
// It is the paper's RLFFN in whole numbers and without saves before the first.
import { MultirailError } from '../../errors.ts';
import { receiver, requireScheme, type Scheme } from './scheme.ts';

/** One failed domain and the living one that has its image. */
export interface Giver {
  /** Domain that failed. */
  readonly failed: number;
  /** Living domain that holds a copy of its image. */
  readonly giver: number;
  /** Which of the copies that is, from 1. */
  readonly copy: number;
}

/** The save that all go back to. */
export interface Line {
  /** Number of the save. */
  readonly save: number;
  /** For each failed domain, in the order in which they were given. */
  readonly givers: readonly Giver[];
}

/**
 * The newest of the last `depth` committed saves of which a copy of every failed domain's image lies at a domain that lives; undefined when
 * there is no such save. Living domains read their own images. All processes that call it with the same arguments get the same answer.
 *
 * @param kEnd Number of the newest committed save, from 0; -1 when no save was committed yet.
 * @param failed Domains that failed, each once.
 * @param scheme Domains, copies and saves.
 * @throws ERR_ARG: the scheme makes no sense, `kEnd` is no number of a save, or `failed` names a domain twice or one that does not exist.
 */
export function recoveryLine(kEnd: number, failed: readonly number[], scheme: Scheme): Line | undefined {
  requireScheme(scheme);
  if (!Number.isSafeInteger(kEnd) || kEnd < -1)
    throw new MultirailError('ERR_ARG', `kEnd = ${kEnd}: expected the number of the newest committed save, or -1 where there is none`);
  const dead = new Set(failed);
  for (const domain of failed) {
    if (!Number.isInteger(domain) || domain < 0 || domain >= scheme.domains)
      throw new MultirailError('ERR_ARG', `failed domain ${domain}: expected a whole number from 0 to ${scheme.domains - 1}`);
  }
  if (dead.size !== failed.length)
    throw new MultirailError('ERR_ARG', `failed = [${failed.join(', ')}] names a domain twice: expected each failed domain once`);
  for (let save = kEnd; save > kEnd - scheme.depth && save >= 0; save--) {
    const givers = failed.map((domain) => giverOf(domain, save, dead, scheme));
    if (givers.every((one) => one !== undefined)) return { save, givers };
  }
  return undefined;
}

/** The copy of lowest number that is left. */
function giverOf(failed: number, save: number, dead: ReadonlySet<number>, scheme: Scheme): Giver | undefined {
  for (let copy = 1; copy <= scheme.duplication; copy++) {
    const giver = receiver(failed, copy, save, scheme);
    if (!dead.has(giver)) return { failed, giver, copy };
  }
  return undefined;
}
