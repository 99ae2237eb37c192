// What becomes of a message when the words of all replicas are there: of three, two that agree are right. The first to do so with messages were
// Fiala et al. (SC'12). Pure.
import { type Difference, differenceOf, type Word } from './digest.ts';

export type Verdict =
  /** The lead is in the majority; of three, one shadow may not be. */
  | { readonly kind: 'agreed'; readonly loser: { readonly index: number; readonly difference: Difference } | undefined }
  /** Both shadows say the same, and the lead something else. */
  | { readonly kind: 'outvoted'; readonly difference: Difference }
  /** No two are equal, or there are no more than two. */
  | { readonly kind: 'none'; readonly difference: Difference };

const AGREED: Verdict = { kind: 'agreed', loser: undefined };

/** Compares what the lead would send with what each of its shadows that are left would. */
export function vote(lead: Word, shadows: readonly Word[]): Verdict {
  let loser: { index: number; difference: Difference } | undefined;
  let losers = 0;
  for (const [index, shadow] of shadows.entries()) {
    const difference = differenceOf(lead, shadow);
    if (difference === undefined) continue;
    losers++;
    loser ??= { index, difference };
  }
  if (loser === undefined) return AGREED;
  if (losers < shadows.length) return { kind: 'agreed', loser };
  const { difference } = loser;
  if (shadows.length === 2 && differenceOf(shadows[0], shadows[1]) === undefined) return { kind: 'outvoted', difference };
  return { kind: 'none', difference };
}
