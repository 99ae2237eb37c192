// Collectives of neighbourhoods, by alltoallw over the communicator: blocks between the same two processes go as one message, in order.
import type { Comm } from '../comm.ts';
import { fail } from '../errors.ts';
import type { Machine } from '../machine.ts';
import type { Staged, Staging } from '../staging.ts';
import { neighborsOf } from '../topology.ts';
import type { Plan, Planner } from './plan.ts';

type Named = readonly [name: string, count: number, plan: Planner];

const NOTHING: Staged = { buffer: new Uint8Array(0), before: undefined, after: undefined };

export function neighborhoods(m: Machine, staging: Staging): readonly Named[] {
  const { memory } = m;

  const around = (comm: Comm) =>
    comm.topology === undefined ? fail('TOPOLOGY', 'the communicator has no topology') : neighborsOf(comm.topology, comm.rank);

  /** One buffer for each neighbour that is sent to, and one for each that is received from. */
  const plan = (comm: Comm, outs: readonly Staged[], intos: readonly Staged[]): Plan => {
    const { sources, destinations, arrival } = around(comm);
    const sends: Uint8Array[][] = Array.from({ length: comm.size }, () => []);
    const recvs: Uint8Array[][] = Array.from({ length: comm.size }, () => []);
    destinations.forEach((rank, i) => {
      if (rank !== undefined) sends[rank].push(outs[i].buffer);
    });
    for (const i of arrival) {
      const rank = sources[i];
      if (rank !== undefined) recvs[rank].push(intos[i].buffer);
    }
    return {
      name: 'alltoallw',
      args: [sends, recvs],
      before: () => {
        for (const { before } of outs) before?.();
      },
      after: () => {
        intos.forEach(({ after }, i) => {
          if (sources[i] !== undefined) after?.();
        });
      },
    };
  };

  const lengthOf = (comm: Comm): { from: number; to: number } => {
    const { sources, destinations } = around(comm);
    return { from: sources.length, to: destinations.length };
  };
  const extentOf = (type: number): number => m.committed(type).extent;
  const same = (count: number, staged: () => Staged): Staged[] => {
    if (count === 0) return [];
    const one = staged();
    return new Array<Staged>(count).fill(one);
  };
  /** Blocks one behind the other. */
  const row = (count: number, at: number, each: number, type: number, way: 'out' | 'into'): Staged[] =>
    Array.from({ length: count }, (_, i) =>
      each === 0 ? NOTHING : staging[way](((at >>> 0) + i * each * extentOf(type)) | 0, each, type),
    );
  /** Blocks at places in elements. */
  const placed = (counts: readonly number[], displs: readonly number[], at: number, type: number, way: 'out' | 'into'): Staged[] =>
    counts.map((count, i) => (count === 0 ? NOTHING : staging[way](((at >>> 0) + displs[i] * extentOf(type)) | 0, count, type)));
  /** Blocks at places in bytes, each of its own type. */
  const mixed = (
    counts: readonly number[],
    places: readonly number[],
    types: readonly number[],
    at: number,
    way: 'out' | 'into',
  ): Staged[] => counts.map((count, i) => (count === 0 ? NOTHING : staging[way](((at >>> 0) + places[i]) | 0, count, types[i])));

  return [
    [
      'Neighbor_allgather',
      6,
      (comm, [at, count, type, to, room, into]) => {
        const { from, to: out } = lengthOf(comm);
        return plan(
          comm,
          same(out, () => staging.out(at, count, type)),
          row(from, to, staging.count(room), into, 'into'),
        );
      },
    ],
    [
      'Neighbor_allgatherv',
      7,
      (comm, [at, count, type, to, counts, displs, into]) => {
        const { from, to: out } = lengthOf(comm);
        return plan(
          comm,
          same(out, () => staging.out(at, count, type)),
          placed(m.counts(counts, from), memory.ints(displs, from), to, into, 'into'),
        );
      },
    ],
    [
      'Neighbor_alltoall',
      6,
      (comm, [at, count, type, to, room, into]) => {
        const { from, to: out } = lengthOf(comm);
        return plan(comm, row(out, at, staging.count(count), type, 'out'), row(from, to, staging.count(room), into, 'into'));
      },
    ],
    [
      'Neighbor_alltoallv',
      8,
      (comm, [at, counts, displs, type, to, rooms, places, into]) => {
        const { from, to: out } = lengthOf(comm);
        return plan(
          comm,
          placed(m.counts(counts, out), memory.ints(displs, out), at, type, 'out'),
          placed(m.counts(rooms, from), memory.ints(places, from), to, into, 'into'),
        );
      },
    ],
    [
      'Neighbor_alltoallw',
      8,
      (comm, [at, counts, displs, types, to, rooms, places, intos]) => {
        const { from, to: out } = lengthOf(comm);
        return plan(
          comm,
          mixed(m.counts(counts, out), memory.ints(displs, out), memory.ints(types, out), at, 'out'),
          mixed(m.counts(rooms, from), memory.ints(places, from), memory.ints(intos, from), to, 'into'),
        );
      },
    ],
  ];
}
