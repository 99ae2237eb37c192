// What a collective sends and how often it waits, counted on 2 to 33 ranks and compared with the formula of its algorithm; the result is
// checked as well.
import { afterAll, expect, test } from 'vitest';
import { smComponent } from '../../../../src/btl/sm/component.ts';
import { ALGORITHMS, type CollectiveName, type Tuning } from '../../../../src/mpi/coll/choice.ts';
import { type Cost, type CostCase, FORMULAS } from '../../../../src/mpi/coll/formulas.ts';
import type { Communicator } from '../../../../src/mpi/communicator.ts';
import { Op } from '../../../../src/mpi/op.ts';
import type { ProcessState } from '../../../../src/mpi/process-state.ts';
import { type P2pWorld, realFixture, simFixture } from '../../../support/p2p-worlds.ts';
import { drawTests } from '../../../support/sample.ts';

const fixture = simFixture({ seed: 'formulas', rails: [{}] });
/** Where ranks share memory: one below the groups of shared/steps.ts, and two of them with groups. */
const sharing = realFixture([smComponent], { coll_shared_memory_bytes_max: '256k', coll_shared_memory_ranks_max: '18' }, false, 'required');
const SHARING_SIZES = [2, 5, 17, 18];
const ELEMENT_BYTES = 4;
const SEGMENT_BYTES = 1000;

/** Elements of each rank, or of the whole; every rank gives the same. */
interface Sample {
  count: number;
  root: number;
  commute: boolean;
}

const sumOp = (commute: boolean): Op =>
  commute
    ? Op.SUM
    : Op.create<Int32Array>((incoming, inout) => {
        for (let i = 0; i < inout.length; i++) inout[i] += incoming[i];
      });
const ints = (count: number, value: number): Int32Array => new Int32Array(count).fill(value);

/** Runs a call and looks at its result; `n`: what the formula calls n. */
const CALLS: { readonly [N in CollectiveName]: { run(comm: Communicator, s: Sample): Promise<void>; n(s: Sample, size: number): number } } =
  {
    barrier: { run: (comm) => comm.barrier(), n: () => 0 },
    bcast: {
      run: async (comm, { count, root }) => {
        const buffer = ints(count, comm.rank === root ? 7 : 0);
        await comm.bcast(buffer, root);
        expect(buffer.every((value) => value === 7)).toBe(true);
      },
      n: ({ count }) => count,
    },
    reduce: {
      run: async (comm, { count, root, commute }) => {
        const recv = comm.rank === root ? ints(count, 0) : null;
        await comm.reduce(ints(count, comm.rank), recv, sumOp(commute), root);
        expect(recv === null || recv.every((value) => value === total(comm))).toBe(true);
      },
      n: ({ count }) => count,
    },
    allreduce: {
      run: async (comm, { count, commute }) => {
        const recv = ints(count, 0);
        await comm.allreduce(ints(count, comm.rank), recv, sumOp(commute));
        expect(recv.every((value) => value === total(comm))).toBe(true);
      },
      n: ({ count }) => count,
    },
    gather: {
      run: async (comm, { count, root }) => {
        const recv = comm.rank === root ? ints(count * comm.size, -1) : null;
        await comm.gather(ints(count, comm.rank), recv, root);
        expect(recv === null || recv.every((value, i) => value === Math.floor(i / count))).toBe(true);
      },
      n: ({ count }) => count,
    },
    scatter: {
      run: async (comm, { count, root }) => {
        const send = comm.rank === root ? Int32Array.from({ length: count * comm.size }, (_, i) => Math.floor(i / count)) : null;
        const recv = ints(count, -1);
        await comm.scatter(send, recv, root);
        expect(recv.every((value) => value === comm.rank)).toBe(true);
      },
      n: ({ count }) => count,
    },
    allgather: {
      run: async (comm, { count }) => {
        const recv = ints(count * comm.size, -1);
        await comm.allgather(ints(count, comm.rank), recv);
        expect(recv.every((value, i) => value === Math.floor(i / count))).toBe(true);
      },
      n: ({ count }, size) => count * size,
    },
    alltoall: {
      run: async (comm, { count }) => {
        const recv = ints(count * comm.size, -1);
        await comm.alltoall(
          Int32Array.from({ length: count * comm.size }, (_, i) => comm.rank * 100 + Math.floor(i / count)),
          recv,
        );
        expect(recv.every((value, i) => value === Math.floor(i / count) * 100 + comm.rank)).toBe(true);
      },
      n: ({ count }) => count,
    },
    reduce_scatter: {
      run: async (comm, { count, commute }) => {
        const recv = ints(count, 0);
        await comm.reduceScatterBlock(ints(count * comm.size, comm.rank), recv, sumOp(commute));
        expect(recv.every((value) => value === total(comm))).toBe(true);
      },
      n: ({ count }, size) => count * size,
    },
    scan: {
      run: async (comm, { count, commute }) => {
        const recv = ints(count, 0);
        await comm.scan(ints(count, 1), recv, sumOp(commute));
        expect(recv.every((value) => value === comm.rank + 1)).toBe(true);
      },
      n: ({ count }) => count,
    },
  };

const total = ({ size }: Communicator): number => (size * (size - 1)) / 2;

/** What each rank has counted since the last time. */
function counted(world: P2pWorld, before: readonly Cost[]): Cost[] {
  return world.runtimes.map((runtime, rank) => {
    const { messages, bytes, rounds } = runtime.counters().collectives;
    const { messages: m, bytes: b, rounds: r } = before[rank];
    return { messages: messages - m, bytes: bytes - b, rounds: rounds - r };
  });
}

const compared = new Set<string>();
afterAll(() => {
  const all = Object.entries(ALGORITHMS).flatMap(([name, algorithms]) => algorithms.map((algorithm) => `${name} ${algorithm}`));
  const isCounted = (one: string) => sharing.unavailable === undefined || !one.endsWith(' shared_memory');
  expect([...compared].sort(), 'every algorithm was counted').toEqual(all.filter(isCounted).sort());
});

for (const size of SHARING_SIZES) {
  test(`${size} ranks that share memory`, { timeout: 60_000 }, async (context) => {
    if (sharing.unavailable !== undefined) return context.skip(sharing.unavailable);
    const world = await sharing.world(size);
    await Promise.all(world.comms.map((comm) => comm.barrier()));
    const nothing = world.comms.map((): Cost => ({ messages: 0, bytes: 0, rounds: 0 }));
    for (const [name, algorithms] of Object.entries(ALGORITHMS) as [CollectiveName, readonly string[]][]) {
      if (!algorithms.includes('shared_memory')) continue;
      // Lengths that stand next to the flag, that are combined by all, and in parts.
      for (const count of [3, 200, 1100]) {
        const before = counted(world, nothing);
        await Promise.all(world.comms.map((comm) => CALLS[name].run(comm, { count, root: size - 1, commute: true })));
        expect(counted(world, before), `${name}, ${count}`).toEqual(nothing);
      }
      compared.add(`${name} shared_memory`);
    }
    await world.teardown();
  });
}

test('with many ranks, what all wait for goes through memory, from the fifth call on', { timeout: 60_000 }, async (context) => {
  if (sharing.unavailable !== undefined) return context.skip(sharing.unavailable);
  const size = 18;
  const world = await sharing.world(size, { coll_shared_memory_ranks_max: '4' });
  const nothing = world.comms.map((): Cost => ({ messages: 0, bytes: 0, rounds: 0 }));
  const sentBy = async (name: CollectiveName, count: number): Promise<number> => {
    const before = counted(world, nothing);
    await Promise.all(world.comms.map((comm) => CALLS[name].run(comm, { count, root: size - 1, commute: true })));
    return counted(world, before).reduce((sum, { messages }) => sum + messages, 0);
  };
  for (let i = 0; i < 4; i++) expect(await sentBy('barrier', 0), `barrier ${i}`).toBe(size * 5);
  expect(await sentBy('barrier', 0)).toBe(0);
  // 60 of 4 bytes stand next to the flag.
  for (const count of [1, 60]) expect(await sentBy('allreduce', count), `allreduce of ${count}`).toBe(0);
  expect(await sentBy('allreduce', 61)).toBeGreaterThan(size);
  for (const name of ['bcast', 'reduce'] as const) expect(await sentBy(name, 1), name).toBe(size - 1);
  for (const name of ['allgather', 'alltoall'] as const) expect(await sentBy(name, 1), name).toBeGreaterThan(size);
  expect(await sentBy('barrier', 0)).toBe(0);
  await world.teardown();
});

/** Sizes whose trees are whole, and their neighbours, each time; of the other large ones, which take long, a few. */
const SIZES = Array.from({ length: 32 }, (_, i) => ({ name: `${i + 2} ranks`, size: i + 2 }));
const isAlwaysPlayed = ({ size }: { size: number }): boolean => size <= 12 || [16, 17, 33].includes(size);
const PLAYED = [
  ...SIZES.filter(isAlwaysPlayed),
  ...drawTests(
    'sizes of collectives',
    SIZES.filter((one) => !isAlwaysPlayed(one)),
  ),
];

for (const { name: title, size } of PLAYED) {
  test(title, { timeout: 60_000 }, async () => {
    const world = await fixture.world(size, { coll_bcast_segment_bytes: String(SEGMENT_BYTES) });
    const procs = world.runtimes.map((runtime) => (runtime as unknown as { proc: ProcessState }).proc);
    const nothing = procs.map((): Cost => ({ messages: 0, bytes: 0, rounds: 0 }));
    for (const [name, algorithms] of Object.entries(ALGORITHMS) as [CollectiveName, readonly string[]][]) {
      for (const algorithm of algorithms) {
        if (algorithm === 'shared_memory') continue;
        if (name === 'allgather' && algorithm === 'recursive_doubling' && (size & (size - 1)) !== 0) continue;
        for (const proc of procs)
          (proc.tuning.forced as Record<string, string>)[name] = algorithm satisfies Tuning['forced'][CollectiveName];
        const onlyCommuting = name === 'allreduce' ? algorithm === 'ring' : name === 'reduce_scatter' && algorithm !== 'reduce_scatterv';
        const samples: Sample[] = [
          { count: 35, root: 0, commute: true },
          { count: 1000, root: size - 1, commute: onlyCommuting },
          { count: 40, root: Math.floor(size / 2), commute: size % 2 === 0 || onlyCommuting },
        ];
        // Many ranks take their time: two of the three will do.
        for (const sample of size > 12 ? samples.slice(0, 2) : samples) {
          const before = counted(world, nothing);
          await Promise.all(world.comms.map((comm) => CALLS[name].run(comm, sample)));
          const costs = counted(world, before);
          const { cost } = (FORMULAS[name] as Record<string, { cost(c: CostCase): Cost }>)[algorithm];
          const expected = costs.map((_, rank) =>
            cost({
              size,
              rank,
              root: sample.root,
              bytes: CALLS[name].n(sample, size) * ELEMENT_BYTES,
              unitBytes: ELEMENT_BYTES,
              segmentBytes: SEGMENT_BYTES,
              commute: sample.commute,
            }),
          );
          expect(costs, `${name} by ${algorithm}, ${JSON.stringify(sample)}`).toEqual(expected);
          compared.add(`${name} ${algorithm}`);
        }
      }
    }
    await world.teardown();
  });
}
