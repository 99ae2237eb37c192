// Collectives, each blocking, as a request and persistent. A plan says which call of the library it is, with which buffers, and what is to be
// packed before and unpacked after it. Intercommunicators have plans of their own (inter.ts), neighbourhoods too (neighborhoods.ts).
import { IN_PLACE } from '../../mpi/coll/memory.ts';
import type { PersistentRequest, Request } from '../../mpi/request.ts';
import * as abi from '../abi.ts';
import type { Comm } from '../comm.ts';
import { fail } from '../errors.ts';
import type { Call, Calls, Machine } from '../machine.ts';
import { Req } from '../req.ts';
import { Staging } from '../staging.ts';
import { interPlans } from './inter.ts';
import { neighborhoods } from './neighborhoods.ts';
import type { Plan, Planner } from './plan.ts';

type Runs = Record<string, (...args: readonly unknown[]) => unknown>;

export function collectives(m: Machine): Calls {
  const { memory } = m;
  const staging = new Staging(m);
  const calls: Calls = {};

  const runNow = (comm: Comm, { name, args, before, after, on = comm.base }: Plan): void => {
    before?.();
    (on as unknown as Runs)[`${name}Sync`](...args);
    after?.();
  };
  const runLater = (comm: Comm, plan: Plan, at: number): void => {
    const { name, args, before, after, on = comm.base } = plan;
    before?.();
    const inner = (on as unknown as Runs)[`i${name}`](...args) as Request;
    keep(at, new Req({ comm, kind: 'other', inner, after }));
  };
  const runOften = (comm: Comm, plan: Plan, at: number): void => {
    const { name, args, before, after, on = comm.base } = plan;
    const inner = (on as unknown as Runs)[`${name}Init`](...args) as PersistentRequest;
    keep(at, new Req({ comm, kind: 'other', inner, before, after, persistent: true }));
  };
  const keep = (at: number, request: Req): void => {
    request.handle = m.requests.add(request);
    memory.setInt(at, request.handle);
  };

  /** Three calls: MPI_X, MPI_Ix and MPI_X_init. `count`: arguments in front of the communicator. */
  const add = (name: string, count: number, plan: Planner, needs?: (handle: number) => Comm): void => {
    const comm = needs ?? ((handle: number) => m.comm(handle));
    const of = (args: readonly number[]): [Comm, Plan] => {
      const c = comm(args[count]);
      return [c, plan(c, args)];
    };
    const blocking: Call = (...args) => {
      runNow(...of(args));
      return 0;
    };
    const later: Call = (...args) => {
      const [c, made] = of(args);
      runLater(c, made, args[count + 1]);
      return 0;
    };
    const often: Call = (...args) => {
      const [c, made] = of(args);
      runOften(c, made, args[count + 2]);
      return 0;
    };
    calls[name] = blocking;
    calls[`I${name[0].toLowerCase()}${name.slice(1)}`] = later;
    calls[`${name}_init`] = often;
  };

  const inter = interPlans(m, staging);
  /** One plan for communicators of one group, another one for those of two. */
  const both = (name: string, count: number, intra: Planner): void =>
    add(name, count, (comm, args) => (comm.remote === undefined ? intra(comm, args) : inter[name](comm, args)));

  const root = (comm: Comm, rank: number): number =>
    rank >= 0 && rank < comm.size ? rank : fail('ROOT', `the root is ${rank}; expected 0 to ${comm.size - 1}`);

  both('Barrier', 0, () => ({ name: 'barrier', args: [] }));

  both('Bcast', 4, (comm, [at, count, type, rank]) => {
    const from = root(comm, rank);
    const data = comm.rank === from ? staging.out(at, count, type) : staging.into(at, count, type);
    return { name: 'bcast', args: [data.buffer, from], before: data.before, after: data.after };
  });

  both('Gather', 7, (comm, [at, count, type, to, room, into, rank]) => {
    const at0 = root(comm, rank);
    const isRoot = comm.rank === at0;
    if (isRoot && at === abi.IN_PLACE) {
      const all = staging.both(to, room * comm.size, into);
      return { name: 'gather', args: [IN_PLACE, all.buffer, at0], before: all.before, after: all.after };
    }
    staging.notInPlace(at, 'the send buffer');
    const own = staging.out(at, count, type);
    const all = isRoot ? staging.into(to, staging.count(room) * comm.size, into) : undefined;
    return { name: 'gather', args: [own.buffer, all?.buffer ?? null, at0], before: own.before, after: all?.after };
  });

  both('Gatherv', 8, (comm, [at, count, type, to, counts, displs, into, rank]) => {
    const at0 = root(comm, rank);
    if (comm.rank !== at0) {
      const own = staging.out(at, count, type);
      return { name: 'gatherv', args: [own.buffer, null, null, null, at0], before: own.before };
    }
    const isInPlace = at === abi.IN_PLACE;
    const all = staging.partsInto(to, m.counts(counts, comm.size), memory.ints(displs, comm.size), into, isInPlace ? [at0] : []);
    const own = isInPlace ? undefined : staging.out(at, count, type);
    return {
      name: 'gatherv',
      args: [own?.buffer ?? IN_PLACE, all.buffer, all.counts, all.displs, at0],
      before: isInPlace ? all.before : own?.before,
      after: all.after,
    };
  });

  both('Scatter', 7, (comm, [at, count, type, to, room, into, rank]) => {
    const at0 = root(comm, rank);
    const isRoot = comm.rank === at0;
    const all = isRoot ? staging.out(at, staging.count(count) * comm.size, type) : undefined;
    if (!isRoot) staging.notInPlace(to, 'the receive buffer');
    const own = to === abi.IN_PLACE ? undefined : staging.into(to, room, into);
    return {
      name: 'scatter',
      args: [all?.buffer ?? null, own?.buffer ?? IN_PLACE, at0],
      before: all?.before,
      after: own?.after,
    };
  });

  both('Scatterv', 8, (comm, [at, counts, displs, type, to, room, into, rank]) => {
    const at0 = root(comm, rank);
    const all = comm.rank === at0 ? staging.partsOut(at, m.counts(counts, comm.size), memory.ints(displs, comm.size), type) : undefined;
    const own = to === abi.IN_PLACE ? undefined : staging.into(to, room, into);
    return {
      name: 'scatterv',
      args: [all?.buffer ?? null, all?.counts ?? null, all?.displs ?? null, own?.buffer ?? IN_PLACE, at0],
      before: all?.before,
      after: own?.after,
    };
  });

  both('Allgather', 6, (comm, [at, count, type, to, room, into]) => {
    if (at === abi.IN_PLACE) {
      const all = staging.both(to, staging.count(room) * comm.size, into);
      return { name: 'allgather', args: [IN_PLACE, all.buffer], before: all.before, after: all.after };
    }
    const own = staging.out(at, count, type);
    const all = staging.into(to, staging.count(room) * comm.size, into);
    return { name: 'allgather', args: [own.buffer, all.buffer], before: own.before, after: all.after };
  });

  both('Allgatherv', 7, (comm, [at, count, type, to, counts, displs, into]) => {
    const isInPlace = at === abi.IN_PLACE;
    const all = staging.partsInto(to, m.counts(counts, comm.size), memory.ints(displs, comm.size), into, isInPlace ? [comm.rank] : []);
    const own = isInPlace ? undefined : staging.out(at, count, type);
    return {
      name: 'allgatherv',
      args: [own?.buffer ?? IN_PLACE, all.buffer, all.counts, all.displs],
      before: isInPlace ? all.before : own?.before,
      after: all.after,
    };
  });

  both('Alltoall', 6, (comm, [at, count, type, to, room, into]) => {
    if (at === abi.IN_PLACE) {
      const all = staging.both(to, staging.count(room) * comm.size, into);
      return { name: 'alltoall', args: [IN_PLACE, all.buffer], before: all.before, after: all.after };
    }
    const out = staging.out(at, staging.count(count) * comm.size, type);
    const all = staging.into(to, staging.count(room) * comm.size, into);
    return { name: 'alltoall', args: [out.buffer, all.buffer], before: out.before, after: all.after };
  });

  both('Alltoallv', 8, (comm, [at, counts, displs, type, to, rooms, places, into]) => {
    const { size } = comm;
    const isInPlace = at === abi.IN_PLACE;
    const all = staging.partsInto(
      to,
      m.counts(rooms, size),
      memory.ints(places, size),
      into,
      isInPlace ? Array.from({ length: size }, (_, i) => i) : [],
    );
    const out = isInPlace ? undefined : staging.partsOut(at, m.counts(counts, size), memory.ints(displs, size), type);
    return {
      name: 'alltoallv',
      args: [out?.buffer ?? IN_PLACE, out?.counts ?? null, out?.displs ?? null, all.buffer, all.counts, all.displs],
      before: isInPlace ? all.before : out?.before,
      after: all.after,
    };
  });

  both('Alltoallw', 8, (comm, [at, counts, displs, types, to, rooms, places, intos]) => {
    const { size } = comm;
    const isInPlace = at === abi.IN_PLACE;
    const all = staging.each(to, m.counts(rooms, size), memory.ints(places, size), memory.ints(intos, size), isInPlace ? 'both' : 'into');
    const out = isInPlace
      ? undefined
      : staging.each(at, m.counts(counts, size), memory.ints(displs, size), memory.ints(types, size), 'out');
    return {
      name: 'alltoallw',
      args: [out?.buffers ?? IN_PLACE, all.buffers],
      before: isInPlace ? all.before : out?.before,
      after: all.after,
    };
  });

  both('Reduce', 6, (comm, [at, to, count, type, op, rank]) => {
    const at0 = root(comm, rank);
    if (comm.rank !== at0) {
      const own = staging.elementsOut(staging.notInPlace(at, 'the send buffer'), count, type, op);
      return { name: 'reduce', args: [own.array, null, own.op, at0], before: own.before };
    }
    const result = staging.elementsInto(to, count, type, op, at === abi.IN_PLACE);
    const own = at === abi.IN_PLACE ? undefined : staging.elementsOut(at, count, type, op);
    return {
      name: 'reduce',
      args: [own?.array ?? IN_PLACE, result.array, result.op, at0],
      before: own === undefined ? result.before : own.before,
      after: result.after,
    };
  });

  /** Reductions whose result is as long as what goes in, at every rank. `keeps`: a rank may get nothing, and its memory stays as it is. */
  const likeAllreduce = (name: string, keeps: boolean): Planner => {
    return (_comm, [at, to, count, type, op]) => {
      const result = staging.elementsInto(to, count, type, op, keeps || at === abi.IN_PLACE);
      const own = at === abi.IN_PLACE ? undefined : staging.elementsOut(at, count, type, op);
      return {
        name,
        args: [own?.array ?? IN_PLACE, result.array, result.op],
        before: () => {
          own?.before?.();
          result.before?.();
        },
        after: result.after,
      };
    };
  };
  both('Allreduce', 5, likeAllreduce('allreduce', false));
  const intra = (handle: number): Comm => m.intra(handle);
  add('Scan', 5, likeAllreduce('scan', false), intra);
  add('Exscan', 5, likeAllreduce('exscan', true), intra);

  both('Reduce_scatter', 5, (comm, [at, to, counts, type, op]) => {
    const list = m.counts(counts, comm.size);
    for (const count of list) staging.count(count);
    const total = list.reduce((sum, count) => sum + count, 0);
    const parts = (per: number): number[] => list.map((count) => count * per);
    if (at === abi.IN_PLACE) {
      const all = staging.elementsOut(to, total, type, op);
      const own = staging.elementsInto(to, list[comm.rank], type, op, false);
      return { ...all.scatteredInPlace('reduceScatter', own, parts(all.per)), name: 'reduceScatter' };
    }
    const all = staging.elementsOut(at, total, type, op);
    const own = staging.elementsInto(to, list[comm.rank], type, op, false);
    return { name: 'reduceScatter', args: [all.array, own.array, parts(all.per), all.op], before: all.before, after: own.after };
  });

  both('Reduce_scatter_block', 5, (comm, [at, to, count, type, op]) => {
    const total = staging.count(count) * comm.size;
    const from = at === abi.IN_PLACE ? to : at;
    const all = staging.elementsOut(from, total, type, op);
    const own = staging.elementsInto(to, count, type, op, false);
    if (at === abi.IN_PLACE) return all.scatteredInPlace('reduceScatterBlock', own, undefined);
    return { name: 'reduceScatterBlock', args: [all.array, own.array, all.op], before: all.before, after: own.after };
  });

  for (const [name, count, plan] of neighborhoods(m, staging)) add(name, count, plan, intra);

  calls.Reduce_local = (at, into, count, type, op) => {
    staging.reduceLocal(at, into, count, type, op);
    return 0;
  };
  return calls;
}
