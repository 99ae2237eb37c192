// Collectives of intercommunicators (MPI-4.1, section 6.2.2): what one group has goes to the other one, by one alltoallw over both. Reductions
// are made where their result is wanted, in the order of the ranks.
import type { TypedArray } from '../../mpi/coll/kernels.ts';
import { kernelOf } from '../../mpi/op.ts';
import * as abi from '../abi.ts';
import type { Comm, Remote } from '../comm.ts';
import { fail } from '../errors.ts';
import type { ArrayClass } from '../linear-memory.ts';
import type { Machine } from '../machine.ts';
import type { Staged, StagedElements, Staging } from '../staging.ts';
import type { Plan, Planner } from './plan.ts';

const NOTHING: Staged = { buffer: new Uint8Array(0), before: undefined, after: undefined };

export function interPlans(m: Machine, staging: Staging): Readonly<Record<string, Planner>> {
  const { memory } = m;
  const remoteOf = (comm: Comm): Remote => comm.remote as Remote;

  /** `sends[i]` goes to rank i of the other group, `recvs[i]` takes what comes from it. */
  const exchange = (comm: Comm, sends: readonly Staged[], recvs: readonly Staged[], then?: () => void): Plan => {
    const { offset, group } = remoteOf(comm);
    const place = (list: readonly Staged[]): Uint8Array[] => {
      const all = new Array<Uint8Array>(comm.base.size).fill(NOTHING.buffer);
      for (let i = 0; i < group.size; i++) all[offset + i] = list[i]?.buffer ?? NOTHING.buffer;
      return all;
    };
    return {
      name: 'alltoallw',
      args: [place(sends), place(recvs)],
      before: () => {
        for (const { before } of sends) before?.();
      },
      after: () => {
        for (const { after } of recvs) after?.();
        then?.();
      },
    };
  };

  const toAll = (comm: Comm, one: Staged): Staged[] => new Array<Staged>(comm.peers).fill(one);
  const only = (comm: Comm, rank: number, one: Staged): Staged[] => {
    if (rank < 0 || rank >= comm.peers)
      fail('ROOT', `the root is ${rank}; expected 0 to ${comm.peers - 1} of the other group, MPI_ROOT or MPI_PROC_NULL`);
    return Array.from({ length: comm.peers }, (_, i) => (i === rank ? one : NOTHING));
  };
  const row = (comm: Comm, at: number, each: number, type: number, way: 'out' | 'into'): Staged[] => {
    const bytes = staging.count(each) * m.committed(type).extent;
    return Array.from({ length: comm.peers }, (_, i) => (each === 0 ? NOTHING : staging[way](((at >>> 0) + i * bytes) | 0, each, type)));
  };
  const placed = (comm: Comm, at: number, counts: number, displs: number, type: number, way: 'out' | 'into'): Staged[] => {
    const places = memory.ints(displs, comm.peers);
    const { extent } = m.committed(type);
    return m
      .counts(counts, comm.peers)
      .map((count, i) => (staging.count(count) === 0 ? NOTHING : staging[way](((at >>> 0) + places[i] * extent) | 0, count, type)));
  };
  const mixed = (comm: Comm, at: number, counts: number, displs: number, types: number, way: 'out' | 'into'): Staged[] => {
    const places = memory.ints(displs, comm.peers);
    const list = memory.ints(types, comm.peers);
    return m
      .counts(counts, comm.peers)
      .map((count, i) => (staging.count(count) === 0 ? NOTHING : staging[way](((at >>> 0) + places[i]) | 0, count, list[i])));
  };

  // ---------------------------------------------------------------- reductions

  const bytesOf = (array: TypedArray): Uint8Array => new Uint8Array(array.buffer as ArrayBuffer, array.byteOffset, array.byteLength);
  const asStaged = ({ array, before }: StagedElements): Staged => ({ buffer: bytesOf(array), before, after: undefined });

  /** Memory for what each of the other group contributes, and what combines it in the first. */
  const contributions = (comm: Comm, { array, op }: StagedElements, length: number): { recvs: Staged[]; combine: () => TypedArray } => {
    const make = array.constructor as new (length: number) => TypedArray;
    const arrays = Array.from({ length: comm.peers }, () => new make(length));
    const combine = (): TypedArray => {
      let result = arrays[0];
      const kernel = kernelOf(op, array.constructor.name as ArrayClass);
      // The left operand is what comes of lower ranks.
      for (const right of arrays.slice(1)) {
        if (length > 0) kernel(result, 0, right, 0, right, 0, length);
        result = right;
      }
      return result;
    };
    return { recvs: arrays.map((one) => ({ buffer: bytesOf(one), before: undefined, after: undefined })), combine };
  };
  const set = (into: TypedArray, from: TypedArray): void => (into as Uint8Array).set(from as Uint8Array);

  const scattered = (comm: Comm, at: number, to: number, counts: readonly number[], type: number, op: number): Plan => {
    const total = counts.reduce((sum, count) => sum + count, 0);
    const own = staging.elementsOut(at, total, type, op);
    const result = staging.elementsInto(to, counts[comm.rank], type, op, false);
    const { recvs, combine } = contributions(comm, own, total * own.per);
    const first = counts.slice(0, comm.rank).reduce((sum, count) => sum + count, 0) * own.per;
    return exchange(comm, toAll(comm, asStaged(own)), recvs, () => {
      set(result.array, combine().subarray(first, first + result.array.length));
      result.after?.();
    });
  };

  return {
    Barrier: () => ({ name: 'barrier', args: [] }),
    Bcast: (comm, [at, count, type, root]) => {
      if (root === abi.PROC_NULL) return exchange(comm, [], []);
      if (root === abi.ROOT) return exchange(comm, toAll(comm, staging.out(at, count, type)), []);
      return exchange(comm, [], only(comm, root, staging.into(at, count, type)));
    },
    Gather: (comm, [at, count, type, to, room, into, root]) => {
      if (root === abi.PROC_NULL) return exchange(comm, [], []);
      if (root === abi.ROOT) return exchange(comm, [], row(comm, to, room, into, 'into'));
      return exchange(comm, only(comm, root, staging.out(at, count, type)), []);
    },
    Gatherv: (comm, [at, count, type, to, counts, displs, into, root]) => {
      if (root === abi.PROC_NULL) return exchange(comm, [], []);
      if (root === abi.ROOT) return exchange(comm, [], placed(comm, to, counts, displs, into, 'into'));
      return exchange(comm, only(comm, root, staging.out(at, count, type)), []);
    },
    Scatter: (comm, [at, count, type, to, room, into, root]) => {
      if (root === abi.PROC_NULL) return exchange(comm, [], []);
      if (root === abi.ROOT) return exchange(comm, row(comm, at, count, type, 'out'), []);
      return exchange(comm, [], only(comm, root, staging.into(to, room, into)));
    },
    Scatterv: (comm, [at, counts, displs, type, to, room, into, root]) => {
      if (root === abi.PROC_NULL) return exchange(comm, [], []);
      if (root === abi.ROOT) return exchange(comm, placed(comm, at, counts, displs, type, 'out'), []);
      return exchange(comm, [], only(comm, root, staging.into(to, room, into)));
    },
    Allgather: (comm, [at, count, type, to, room, into]) =>
      exchange(comm, toAll(comm, staging.out(at, count, type)), row(comm, to, room, into, 'into')),
    Allgatherv: (comm, [at, count, type, to, counts, displs, into]) =>
      exchange(comm, toAll(comm, staging.out(at, count, type)), placed(comm, to, counts, displs, into, 'into')),
    Alltoall: (comm, [at, count, type, to, room, into]) =>
      exchange(comm, row(comm, at, count, type, 'out'), row(comm, to, room, into, 'into')),
    Alltoallv: (comm, [at, counts, displs, type, to, rooms, places, into]) =>
      exchange(comm, placed(comm, at, counts, displs, type, 'out'), placed(comm, to, rooms, places, into, 'into')),
    Alltoallw: (comm, [at, counts, displs, types, to, rooms, places, intos]) =>
      exchange(comm, mixed(comm, at, counts, displs, types, 'out'), mixed(comm, to, rooms, places, intos, 'into')),
    Reduce: (comm, [at, to, count, type, op, root]) => {
      if (root === abi.PROC_NULL) return exchange(comm, [], []);
      if (root !== abi.ROOT) return exchange(comm, only(comm, root, asStaged(staging.elementsOut(at, count, type, op))), []);
      const result = staging.elementsInto(to, count, type, op, false);
      const { recvs, combine } = contributions(comm, result, result.array.length);
      return exchange(comm, [], recvs, () => {
        set(result.array, combine());
        result.after?.();
      });
    },
    Allreduce: (comm, [at, to, count, type, op]) => {
      const own = staging.elementsOut(at, count, type, op);
      const result = staging.elementsInto(to, count, type, op, false);
      const { recvs, combine } = contributions(comm, own, own.array.length);
      return exchange(comm, toAll(comm, asStaged(own)), recvs, () => {
        set(result.array, combine());
        result.after?.();
      });
    },
    Reduce_scatter: (comm, [at, to, counts, type, op]) => scattered(comm, at, to, m.counts(counts, comm.size), type, op),
    Reduce_scatter_block: (comm, [at, to, count, type, op]) =>
      scattered(comm, at, to, new Array<number>(comm.size).fill(staging.count(count)), type, op),
  };
}
