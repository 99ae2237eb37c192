// Virtual topologies: who the neighbours of a process are (MPI-4.1, chapter 8).

export interface Cartesian {
  readonly is: 'cart';
  readonly dims: readonly number[];
  readonly periods: readonly boolean[];
}

export interface GraphTopology {
  readonly is: 'graph';
  /** Of each rank. */
  readonly neighbors: readonly (readonly number[])[];
}

export interface DistGraph {
  readonly is: 'dist';
  readonly sources: readonly number[];
  readonly sourceWeights: readonly number[];
  readonly destinations: readonly number[];
  readonly destinationWeights: readonly number[];
  readonly isWeighted: boolean;
}

export type Topology = Cartesian | GraphTopology | DistGraph;

export function coordinatesOf({ dims }: Cartesian, rank: number): number[] {
  const coordinates = new Array<number>(dims.length);
  let left = rank;
  for (let d = dims.length - 1; d >= 0; d--) {
    coordinates[d] = left % dims[d];
    left = Math.floor(left / dims[d]);
  }
  return coordinates;
}

/** The rank at these coordinates; undefined where they lie outside of a dimension without period. */
export function rankAt({ dims, periods }: Cartesian, coordinates: readonly number[]): number | undefined {
  let rank = 0;
  for (let d = 0; d < dims.length; d++) {
    let at = coordinates[d];
    if (at < 0 || at >= dims[d]) {
      if (!periods[d]) return undefined;
      at = ((at % dims[d]) + dims[d]) % dims[d];
    }
    rank = rank * dims[d] + at;
  }
  return rank;
}

export function shifted(cart: Cartesian, rank: number, dimension: number, by: number): number | undefined {
  const coordinates = coordinatesOf(cart, rank);
  coordinates[dimension] += by;
  return rankAt(cart, coordinates);
}

/** Whom a process gets from and sends to in neighbourhood collectives, in the order of the buffers; undefined: nobody. */
export interface Neighbors {
  readonly sources: readonly (number | undefined)[];
  readonly destinations: readonly (number | undefined)[];
  /**
   * Order in which blocks between the same two processes were sent, as places in `sources`: in a grid, what goes to the lower neighbour comes
   * from the upper one there.
   */
  readonly arrival: readonly number[];
}

export function neighborsOf(topology: Topology, rank: number): Neighbors {
  if (topology.is === 'dist') {
    const { sources, destinations } = topology;
    return { sources, destinations, arrival: sources.map((_, i) => i) };
  }
  if (topology.is === 'graph') {
    const list = topology.neighbors[rank];
    return { sources: list, destinations: list, arrival: list.map((_, i) => i) };
  }
  const list = topology.dims.flatMap((_, d) => [shifted(topology, rank, d, -1), shifted(topology, rank, d, 1)]);
  return { sources: list, destinations: list, arrival: list.map((_, i) => i ^ 1) };
}

/** Factors of `count`, as equal as can be, the largest first, in the places that are 0. */
export function balancedDims(count: number, given: readonly number[]): number[] {
  const dims = [...given];
  const open = dims.flatMap((dim, d) => (dim === 0 ? [d] : []));
  let left = count;
  for (const dim of dims) if (dim > 0) left /= dim;
  const best = bestFactors(left, open.length);
  for (const [i, d] of open.entries()) dims[d] = best[i];
  return dims;
}

/**
 * `parts` factors of a number, in falling order: of all ways the one whose largest and smallest factor differ least; of several, the one
 * whose smallest factors are largest.
 */
function bestFactors(value: number, parts: number): number[] {
  let best: number[] = [value, ...new Array<number>(Math.max(0, parts - 1)).fill(1)];
  if (parts < 2) return parts === 0 ? [] : best;
  const divisors = divisorsOf(value);
  const spread = (list: readonly number[]): number => list[0] - (list.at(-1) as number);
  const look = (left: number, most: number, chosen: readonly number[]): void => {
    const open = parts - chosen.length;
    if (open === 1) {
      if (left > most) return;
      const list = [...chosen, left];
      if (spread(list) < spread(best) || (spread(list) === spread(best) && isLarger(list, best))) best = list;
      return;
    }
    for (const factor of divisors) {
      // What is left has to fit into factors that are no larger.
      if (factor > most || left % factor !== 0 || factor ** open < left * (1 - 1e-9)) continue;
      // The smallest factor will be no larger than the mean of the rest.
      if ((chosen[0] ?? factor) - (left / factor) ** (1 / (open - 1)) > spread(best) + 1e-9) continue;
      look(left / factor, factor, [...chosen, factor]);
    }
  };
  look(value, value, []);
  return best;
}

/** Compares from the smallest factor on. */
function isLarger(list: readonly number[], than: readonly number[]): boolean {
  for (let i = list.length - 1; i >= 0; i--) if (list[i] !== than[i]) return list[i] > than[i];
  return false;
}

function divisorsOf(value: number): number[] {
  const low: number[] = [];
  const high: number[] = [];
  for (let d = 1; d * d <= value; d++) {
    if (value % d !== 0) continue;
    low.push(d);
    if (d * d !== value) high.unshift(value / d);
  }
  return [...low, ...high];
}
