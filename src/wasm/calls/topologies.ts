// Grids, graphs and distributed graphs (MPI-4.1, chapter 8).
import { UNDEFINED } from '../../mpi/constants.ts';
import * as abi from '../abi.ts';
import { Comm } from '../comm.ts';
import { fail } from '../errors.ts';
import type { Calls, Machine } from '../machine.ts';
import {
  balancedDims,
  type Cartesian,
  coordinatesOf,
  type DistGraph,
  type GraphTopology,
  rankAt,
  shifted,
  type Topology,
} from '../topology.ts';

const KINDS = { cart: abi.CART, graph: abi.GRAPH, dist: abi.DIST_GRAPH } as const;

export function topologies(m: Machine): Calls {
  const { memory } = m;
  const cart = (handle: number): { comm: Comm; topology: Cartesian } => {
    const comm = m.comm(handle);
    return comm.topology?.is === 'cart'
      ? { comm, topology: comm.topology }
      : fail('TOPOLOGY', 'the communicator has no Cartesian topology');
  };
  const graph = (handle: number): GraphTopology => {
    const { topology } = m.comm(handle);
    return topology?.is === 'graph' ? topology : fail('TOPOLOGY', 'the communicator has no graph topology');
  };
  const dist = (handle: number): DistGraph => {
    const { topology } = m.comm(handle);
    return topology?.is === 'dist' ? topology : fail('TOPOLOGY', 'the communicator has no distributed graph topology');
  };
  /** A communicator of the first `size` ranks, in their order. */
  const first = (comm: Comm, size: number, topology: Topology): number => {
    const base = comm.base.splitSync(comm.rank < size ? 0 : UNDEFINED, comm.rank);
    if (base === null) return abi.COMM_NULL;
    const made = new Comm(base, comm.errhandler);
    made.topology = topology;
    return m.addComm(made);
  };
  const dimensions = (count: number, at: number): number[] => {
    if (count < 0) fail('DIMS', `${count} dimensions`);
    return memory.ints(at, count);
  };
  const product = (dims: readonly number[]): number => dims.reduce((total, dim) => total * dim, 1);
  const weightsAt = (at: number, count: number): number[] =>
    at === abi.UNWEIGHTED || at === abi.WEIGHTS_EMPTY ? new Array<number>(count).fill(1) : memory.ints(at, count);
  const checkNeighbors = (comm: Comm, ranks: readonly number[]): void => {
    for (const rank of ranks)
      if (rank < 0 || rank >= comm.size) fail('RANK', `a neighbour is rank ${rank}; expected 0 to ${comm.size - 1}`);
  };
  const whole = (comm: Comm, topology: Topology): number => {
    const made = new Comm(comm.base.dupSync(), comm.errhandler);
    made.topology = topology;
    return m.addComm(made);
  };

  return {
    Dims_create: (nodes, count, at) => {
      const given = dimensions(count, at);
      if (nodes < 1 && count > 0) fail('ARG', `there are ${nodes} nodes`);
      for (const dim of given) if (dim < 0) fail('DIMS', `a dimension is ${dim}`);
      const fixed = product(given.filter((dim) => dim > 0));
      if (nodes % fixed !== 0 || (given.every((dim) => dim > 0) && count > 0 && fixed !== nodes))
        fail('DIMS', `${nodes} nodes cannot be laid out in dimensions whose product is a multiple of ${fixed}`);
      memory.setInts(at, balancedDims(nodes, given));
      return 0;
    },
    Topo_test: (comm, at) => {
      const { topology } = m.comm(comm);
      memory.setInt(at, topology === undefined ? abi.UNDEFINED : KINDS[topology.is]);
      return 0;
    },
    Cart_create: (comm, count, dimsAt, periodsAt, _reorder, at) => {
      const c = m.intra(comm);
      const dims = dimensions(count, dimsAt);
      for (const dim of dims) if (dim <= 0) fail('DIMS', `a dimension is ${dim}; expected 1 or more`);
      if (product(dims) > c.size) fail('DIMS', `a grid of ${product(dims)} does not fit into a communicator of ${c.size}`);
      const periods = memory.ints(periodsAt, count).map((period) => period !== 0);
      memory.setInt(at, first(c, product(dims), { is: 'cart', dims, periods }));
      return 0;
    },
    Cartdim_get: (comm, at) => {
      memory.setInt(at, cart(comm).topology.dims.length);
      return 0;
    },
    Cart_get: (comm, max, dimsAt, periodsAt, coordsAt) => {
      const { comm: c, topology } = cart(comm);
      if (max < topology.dims.length) fail('ARG', `there is room for ${max} of ${topology.dims.length} dimensions`);
      memory.setInts(dimsAt, topology.dims);
      memory.setInts(
        periodsAt,
        topology.periods.map((period) => (period ? 1 : 0)),
      );
      memory.setInts(coordsAt, coordinatesOf(topology, c.rank));
      return 0;
    },
    Cart_rank: (comm, coordsAt, at) => {
      const { topology } = cart(comm);
      const coordinates = memory.ints(coordsAt, topology.dims.length);
      memory.setInt(at, rankAt(topology, coordinates) ?? fail('ARG', `there is no process at ${coordinates}`));
      return 0;
    },
    Cart_coords: (comm, rank, max, at) => {
      const { comm: c, topology } = cart(comm);
      if (rank < 0 || rank >= c.size) fail('RANK', `the rank is ${rank}; expected 0 to ${c.size - 1}`);
      if (max < topology.dims.length) fail('ARG', `there is room for ${max} of ${topology.dims.length} dimensions`);
      memory.setInts(at, coordinatesOf(topology, rank));
      return 0;
    },
    Cart_shift: (comm, dimension, by, sourceAt, destAt) => {
      const { comm: c, topology } = cart(comm);
      if (dimension < 0 || dimension >= topology.dims.length) fail('DIMS', `there is no dimension ${dimension}`);
      memory.setInt(sourceAt, shifted(topology, c.rank, dimension, -by) ?? abi.PROC_NULL);
      memory.setInt(destAt, shifted(topology, c.rank, dimension, by) ?? abi.PROC_NULL);
      return 0;
    },
    Cart_sub: (comm, remainAt, at) => {
      const { comm: c, topology } = cart(comm);
      const remain = memory.ints(remainAt, topology.dims.length).map((keep) => keep !== 0);
      const coordinates = coordinatesOf(topology, c.rank);
      // Colour and key are places in the grids of the dropped and of the remaining dimensions.
      let color = 0;
      let key = 0;
      for (const [d, keep] of remain.entries()) {
        if (keep) key = key * topology.dims[d] + coordinates[d];
        else color = color * topology.dims[d] + coordinates[d];
      }
      const made = new Comm(c.base.splitSync(color, key) ?? fail('INTERN', 'a split has given nothing'), c.errhandler);
      const kept = <T>(list: readonly T[]): T[] => list.filter((_, d) => remain[d]);
      made.topology = { is: 'cart', dims: kept(topology.dims), periods: kept(topology.periods) };
      memory.setInt(at, m.addComm(made));
      return 0;
    },
    Cart_map: (comm, count, dimsAt, _periods, at) => {
      const c = m.intra(comm);
      const dims = dimensions(count, dimsAt);
      for (const dim of dims) if (dim <= 0) fail('DIMS', `a dimension is ${dim}; expected 1 or more`);
      if (product(dims) > c.size) fail('DIMS', `a grid of ${product(dims)} does not fit into a communicator of ${c.size}`);
      memory.setInt(at, c.rank < product(dims) ? c.rank : abi.UNDEFINED);
      return 0;
    },
    Graph_create: (comm, nodes, indexAt, edgesAt, _reorder, at) => {
      const c = m.intra(comm);
      if (nodes < 0 || nodes > c.size) fail('ARG', `a graph of ${nodes} does not fit into a communicator of ${c.size}`);
      const index = memory.ints(indexAt, nodes);
      const edges = memory.ints(edgesAt, index.at(-1) ?? 0);
      const neighbors = index.map((end, i) => edges.slice(i === 0 ? 0 : index[i - 1], end));
      for (const edge of edges) if (edge < 0 || edge >= nodes) fail('ARG', `an edge goes to ${edge}; expected 0 to ${nodes - 1}`);
      memory.setInt(at, first(c, nodes, { is: 'graph', neighbors }));
      return 0;
    },
    Graphdims_get: (comm, nodesAt, edgesAt) => {
      const { neighbors } = graph(comm);
      memory.setInt(nodesAt, neighbors.length);
      memory.setInt(edgesAt, neighbors.flat().length);
      return 0;
    },
    Graph_get: (comm, maxIndex, maxEdges, indexAt, edgesAt) => {
      const { neighbors } = graph(comm);
      let end = 0;
      const index = neighbors.map((list) => (end += list.length));
      if (maxIndex < index.length || maxEdges < end) fail('ARG', 'the arrays are too short for the graph');
      memory.setInts(indexAt, index);
      memory.setInts(edgesAt, neighbors.flat());
      return 0;
    },
    Graph_neighbors_count: (comm, rank, at) => {
      memory.setInt(at, graph(comm).neighbors[rank]?.length ?? fail('RANK', `there is no rank ${rank}`));
      return 0;
    },
    Graph_neighbors: (comm, rank, max, at) => {
      const list = graph(comm).neighbors[rank] ?? fail('RANK', `there is no rank ${rank}`);
      if (max < 0) fail('ARG', `there is room for ${max} neighbours`);
      memory.setInts(at, list.slice(0, max));
      return 0;
    },
    Graph_map: (comm, nodes, _index, _edges, at) => {
      const c = m.intra(comm);
      if (nodes < 1 || nodes > c.size) fail('ARG', `a graph of ${nodes} does not fit into a communicator of ${c.size}`);
      memory.setInt(at, c.rank < nodes ? c.rank : abi.UNDEFINED);
      return 0;
    },
    Dist_graph_create_adjacent: (comm, indegree, sourcesAt, sourceWeights, outdegree, destinationsAt, destWeights, _info, _reorder, at) => {
      const c = m.intra(comm);
      const sources = memory.ints(sourcesAt, Math.max(0, indegree));
      const destinations = memory.ints(destinationsAt, Math.max(0, outdegree));
      if (indegree < 0 || outdegree < 0) fail('ARG', 'a number of neighbours is negative');
      checkNeighbors(c, [...sources, ...destinations]);
      memory.setInt(
        at,
        whole(c, {
          is: 'dist',
          sources,
          sourceWeights: weightsAt(sourceWeights, indegree),
          destinations,
          destinationWeights: weightsAt(destWeights, outdegree),
          isWeighted: sourceWeights !== abi.UNWEIGHTED && destWeights !== abi.UNWEIGHTED,
        }),
      );
      return 0;
    },
    Dist_graph_create: (comm, count, sourcesAt, degreesAt, destinationsAt, weightsAt0, _info, _reorder, at) => {
      const c = m.intra(comm);
      if (count < 0) fail('ARG', `there are ${count} sources`);
      const sources = memory.ints(sourcesAt, count);
      const degrees = memory.ints(degreesAt, count);
      const total = degrees.reduce((sum, degree) => sum + degree, 0);
      const destinations = memory.ints(destinationsAt, total);
      const weights = weightsAt(weightsAt0, total);
      checkNeighbors(c, [...sources, ...destinations]);
      // Everybody hears of all edges: source, destination, weight.
      const own = new Int32Array(3 * total);
      for (let i = 0, edge = 0; i < count; i++)
        for (let n = 0; n < degrees[i]; n++, edge++) own.set([sources[i], destinations[edge], weights[edge]], 3 * edge);
      const lengths = new Int32Array(2 * c.size);
      c.base.allgatherSync(Int32Array.of(own.length, weightsAt0 === abi.UNWEIGHTED ? 0 : 1), lengths);
      const counts = Array.from({ length: c.size }, (_, i) => lengths[2 * i]);
      const all = new Int32Array(counts.reduce((sum, length) => sum + length, 0));
      c.base.allgathervSync(own, all, counts);
      const edges = Array.from({ length: all.length / 3 }, (_, i) => all.subarray(3 * i, 3 * i + 3));
      const incoming = edges.filter(([, dest]) => dest === c.rank);
      const outgoing = edges.filter(([source]) => source === c.rank);
      memory.setInt(
        at,
        whole(c, {
          is: 'dist',
          sources: incoming.map(([source]) => source),
          sourceWeights: incoming.map(([, , weight]) => weight),
          destinations: outgoing.map(([, dest]) => dest),
          destinationWeights: outgoing.map(([, , weight]) => weight),
          isWeighted: lengths[1] === 1,
        }),
      );
      return 0;
    },
    Dist_graph_neighbors_count: (comm, inAt, outAt, weightedAt) => {
      const { sources, destinations, isWeighted } = dist(comm);
      memory.setInt(inAt, sources.length);
      memory.setInt(outAt, destinations.length);
      memory.setInt(weightedAt, isWeighted ? 1 : 0);
      return 0;
    },
    Dist_graph_neighbors: (comm, maxIn, sourcesAt, sourceWeightsAt, maxOut, destinationsAt, destWeightsAt) => {
      const { sources, sourceWeights, destinations, destinationWeights, isWeighted } = dist(comm);
      if (maxIn < 0 || maxOut < 0) fail('ARG', 'a number of neighbours is negative');
      memory.setInts(sourcesAt, sources.slice(0, maxIn));
      memory.setInts(destinationsAt, destinations.slice(0, maxOut));
      const isRoom = (weights: number): boolean => weights !== abi.UNWEIGHTED && weights !== abi.WEIGHTS_EMPTY && weights !== 0;
      if (isWeighted && isRoom(sourceWeightsAt)) memory.setInts(sourceWeightsAt, sourceWeights.slice(0, maxIn));
      if (isWeighted && isRoom(destWeightsAt)) memory.setInts(destWeightsAt, destinationWeights.slice(0, maxOut));
      return 0;
    },
  };
}
