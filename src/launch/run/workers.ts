// Which processes of a job are at work, and as which rank: at the start all but those that stand by, and later those that were called in, too.

export class Workers {
  /** So many stood by at the start. */
  readonly spares: number;
  private readonly size: number;
  /** Process numbers by rank of the working communicator. */
  private readonly byRank: number[];
  private readonly calledIn = new Set<number>();

  constructor(size: number, spares: number) {
    this.size = size;
    this.spares = spares;
    this.byRank = Array.from({ length: size - spares }, (_, rank) => rank);
  }

  /** That process has this place now; undefined: it has none. */
  set(number: number, place: number | undefined): void {
    if (place === undefined) {
      this.calledIn.delete(number);
      return;
    }
    this.calledIn.add(number);
    this.byRank[place] = number;
  }

  /** The process that was at work last as that rank. */
  numberOf(rank: number): number | undefined {
    return this.byRank[rank];
  }

  /** Processes that are at work, or were, ascending. */
  get numbers(): number[] {
    return [...new Set([...this.byRank.filter((number) => number !== undefined), ...this.calledIn])].sort((a, b) => a - b);
  }

  /** What came of those that stood by, as the end of a sentence that begins with the number of the dead. `isIdle`: it lived, and nobody needed it. */
  summary(isIdle: (number: number) => boolean): string {
    const { size, spares, calledIn } = this;
    if (spares === 0) return 'ranks died; the others came to their end';
    const idle = Array.from({ length: spares }, (_, i) => size - spares + i).filter(isIdle).length;
    const places = `${calledIn.size} of ${spares} that stood by took ${calledIn.size === 1 ? 'the place of one' : 'places'} of them`;
    return `processes died; ${places}${idle === 0 ? '' : `, ${idle} ${idle === 1 ? 'was' : 'were'} not needed`}; the others came to their end`;
  }
}
