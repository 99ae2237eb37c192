// Processes that live and do not reach each other: which of them go on. One part at most does, whatever each part knows. Pure; after the
// quorum rules of Paxos and its kin, and of the majority with a tie-breaker that cluster managers use.

/**
 * Whether the part of a process goes on by itself. `base`: numbers of all that work and of whose death nobody is certain, the process itself
 * among them; those that merely cannot be reached stay in it, also when they have been given up. More than half of it must be within reach, or
 * exactly half with its lowest number: two parts without a common member cannot both have that.
 */
export function goesOn(base: readonly number[], isReachable: (number: number) => boolean): boolean {
  let reachable = 0;
  let lowest = Number.POSITIVE_INFINITY;
  for (const number of base) {
    if (isReachable(number)) reachable++;
    lowest = Math.min(lowest, number);
  }
  return 2 * reachable > base.length || (2 * reachable === base.length && base.length > 0 && isReachable(lowest));
}

/**
 * Two processes that do not reach each other cannot both stay in a job. Given pairs of them, returns who has to go so that no pair is left: first
 * whoever is in most pairs, and of equals the highest number. Every process that looks at the same pairs comes to the same.
 */
export function whoGoes(pairs: Iterable<readonly [number, number]>): number[] {
  let left = [...pairs];
  const gone: number[] = [];
  while (left.length > 0) {
    const counts = new Map<number, number>();
    const partners = new Map<number, Set<number>>();
    for (const [a, b] of left) {
      for (const [one, other] of [
        [a, b],
        [b, a],
      ]) {
        const set = partners.get(one) ?? new Set();
        partners.set(one, set.add(other));
        counts.set(one, set.size);
      }
    }
    const [number] = [...counts].reduce((most, next) => (next[1] > most[1] || (next[1] === most[1] && next[0] > most[0]) ? next : most));
    gone.push(number);
    left = left.filter(([a, b]) => a !== number && b !== number);
  }
  return gone;
}
