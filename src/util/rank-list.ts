// Ranks in words, for messages about many of them. Pure.

/** A line of text names so many stretches of ranks at most. */
const STRETCHES_MAX = 20;

/** As `122, 124, 126 to 248`: ascending, each once. */
function listOf(ranks: readonly number[]): string {
  const sorted = [...new Set(ranks)].sort((a, b) => a - b);
  const stretches: [first: number, last: number][] = [];
  for (const rank of sorted) {
    const open = stretches.at(-1);
    if (open !== undefined && open[1] === rank - 1) open[1] = rank;
    else stretches.push([rank, rank]);
  }
  const texts = stretches.slice(0, STRETCHES_MAX).map(([first, last]) => {
    if (first === last) return `${first}`;
    return last === first + 1 ? `${first}, ${last}` : `${first} to ${last}`;
  });
  const rest = stretches.slice(STRETCHES_MAX).reduce((sum, [first, last]) => sum + last - first + 1, 0);
  return `${texts.join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
}

/** `rank 3`, or `ranks 122, 124, 126 to 248`. */
export function ranksText(ranks: readonly number[]): string {
  return `${new Set(ranks).size === 1 ? 'rank' : 'ranks'} ${listOf(ranks)}`;
}
