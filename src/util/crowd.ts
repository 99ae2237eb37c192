// Limits of time on a host whose processors are shared by many ranks. A limit in wall time says what a peer is given that has a processor of
// its own; one that shares it gets a part of that time only, and is no worse for it. Pure.

/** Up to so many ranks for each processor the limits are as they stand: they are a hundred times what a handshake takes. */
const RANKS_PER_PROCESSOR = 4;
/** No more than this, whatever is said of ranks and processors: a limit that never comes limits nothing. */
const FACTOR_MAX = 64;

/**
 * How many times as long others may take where so many ranks share so many processors: 1 up to 4 ranks for each processor, from there on in
 * proportion, and 64 at most.
 *
 * @param ranks Ranks on this host; more than there are only make limits longer.
 * @param processors Processors that they share, a part of one included.
 */
export function crowdFactor(ranks: number, processors: number): number {
  const factor = ranks / (RANKS_PER_PROCESSOR * processors);
  return factor > 1 ? Math.min(FACTOR_MAX, factor) : 1;
}

/** A limit in milliseconds with that factor, a whole number. */
export function limitInCrowd(limitMs: number, factor: number): number {
  return factor > 1 ? Math.ceil(limitMs * factor) : limitMs;
}
