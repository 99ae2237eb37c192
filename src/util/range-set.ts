// Sets of half-open byte ranges [from, to), kept as one sorted list of disjoint, non-touching ranges. Both ends of a rendezvous use them:
// for what is still to send, and for what has been received.

/** `[from, to)`, in bytes from the start of the message. */
export type Range = readonly [from: number, to: number];

const NO_EDGES: number[] = [];

/**
 * A set of byte ranges. All operations keep the list sorted, disjoint and merged; `bytes` is its total length.
 * Lists are short in practice (one entry per hole), so a sorted array beats a tree.
 */
export class RangeSet {
  /** from0, to0, from1, to1, … ascending. Most sets are empty for long, and share one list that stays so. */
  private edges: number[] = NO_EDGES;
  private total = 0;

  static of(...ranges: Range[]): RangeSet {
    const set = new RangeSet();
    for (const [from, to] of ranges) set.add(from, to);
    return set;
  }

  /** Total number of bytes in the set. */
  get bytes(): number {
    return this.total;
  }

  get isEmpty(): boolean {
    return this.total === 0;
  }

  clear(): void {
    this.edges = NO_EDGES;
    this.total = 0;
  }

  /** Adds [from, to) and returns how many of its bytes were new. */
  add(from: number, to: number): number {
    if (to <= from) return 0;
    const edges = this.edges;
    const n = edges.length;
    // The common case, in order: the range continues or follows the last one.
    if (n === 0) {
      this.edges = [from, to];
      this.total = to - from;
      return to - from;
    }
    if (from > edges[n - 1]) {
      edges.push(from, to);
      this.total += to - from;
      return to - from;
    }
    if (from === edges[n - 1]) {
      edges[n - 1] = to;
      this.total += to - from;
      return to - from;
    }
    let first = 0;
    while (first < n && edges[first + 1] < from) first += 2;
    let last = first;
    let mergedFrom = from;
    let mergedTo = to;
    let covered = 0;
    while (last < n && edges[last] <= to) {
      mergedFrom = Math.min(mergedFrom, edges[last]);
      mergedTo = Math.max(mergedTo, edges[last + 1]);
      covered += edges[last + 1] - edges[last];
      last += 2;
    }
    edges.splice(first, last - first, mergedFrom, mergedTo);
    const added = mergedTo - mergedFrom - covered;
    this.total += added;
    return added;
  }

  /** Takes [from, to) out and returns how many bytes were removed. */
  remove(from: number, to: number): number {
    if (to <= from) return 0;
    const edges = this.edges;
    const kept: number[] = [];
    let removed = 0;
    for (let i = 0; i < edges.length; i += 2) {
      const a = edges[i];
      const b = edges[i + 1];
      if (b <= from || a >= to) {
        kept.push(a, b);
        continue;
      }
      removed += Math.min(b, to) - Math.max(a, from);
      if (a < from) kept.push(a, from);
      if (b > to) kept.push(to, b);
    }
    this.edges = kept;
    this.total -= removed;
    return removed;
  }

  /** Removes and returns the first at most `max` bytes, cut at the next multiple of `grid`; undefined when empty. */
  takeFirst(max: number, grid = 1): Range | undefined {
    const edges = this.edges;
    if (edges.length === 0) return undefined;
    const from = edges[0];
    let to = Math.min(edges[1], from + max);
    if (to < edges[1] && grid > 1) {
      const aligned = Math.floor(to / grid) * grid;
      if (aligned > from) to = aligned;
    }
    if (to === edges[1]) edges.splice(0, 2);
    else edges[0] = to;
    this.total -= to - from;
    return [from, to];
  }

  /** True when every byte of [from, to) is in the set. */
  contains(from: number, to: number): boolean {
    if (to <= from) return true;
    const edges = this.edges;
    for (let i = 0; i < edges.length; i += 2) if (edges[i] <= from && to <= edges[i + 1]) return true;
    return false;
  }

  /** True when at least one byte of [from, to) is in the set. */
  intersects(from: number, to: number): boolean {
    const edges = this.edges;
    for (let i = 0; i < edges.length; i += 2) if (edges[i] < to && from < edges[i + 1]) return true;
    return false;
  }

  /** What of [from, to) is not in the set, ascending. */
  missing(from: number, to: number): Range[] {
    const holes: Range[] = [];
    const edges = this.edges;
    let at = from;
    for (let i = 0; i < edges.length && at < to; i += 2) {
      const a = edges[i];
      const b = edges[i + 1];
      if (b <= at) continue;
      if (a >= to) break;
      if (a > at) holes.push([at, a]);
      at = Math.max(at, b);
    }
    if (at < to) holes.push([at, to]);
    return holes;
  }

  /** The first byte of [from, to) that is not in the set; -1 when all are. */
  firstMissing(from: number, to: number): number {
    let at = from;
    const edges = this.edges;
    for (let i = 0; i < edges.length && edges[i] <= at; i += 2) at = Math.max(at, edges[i + 1]);
    return at < to ? at : -1;
  }

  /** How many bytes of [from, to) are not in the set. */
  missingBytes(from: number, to: number): number {
    let bytes = Math.max(0, to - from);
    const edges = this.edges;
    for (let i = 0; i < edges.length && edges[i] < to; i += 2) bytes -= Math.max(0, Math.min(edges[i + 1], to) - Math.max(edges[i], from));
    return bytes;
  }

  /** The first byte of the set; -1 when it is empty. */
  get first(): number {
    return this.edges.length === 0 ? -1 : this.edges[0];
  }

  ranges(): Range[] {
    const list: Range[] = [];
    for (let i = 0; i < this.edges.length; i += 2) list.push([this.edges[i], this.edges[i + 1]]);
    return list;
  }
}
