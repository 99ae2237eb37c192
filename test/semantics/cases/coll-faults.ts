// Cases of the collective suite that need a member that is gone, or ranks whose arguments do not fit together: every call ends, and what is
// left disturbs nothing (55, 70 and 71 of the list).
import { strict as assert } from 'node:assert';
import { MultirailError } from '../../../src/errors.ts';
import type { Communicator } from '../../../src/mpi/communicator.ts';
import { Op } from '../../../src/mpi/op.ts';
import { everyRank } from '../../support/coll-audit.ts';
import type { P2pWorld } from '../../support/p2p-worlds.ts';
import type { P2pCase } from '../p2p-suite.ts';

type Attempt = (comm: Communicator) => Promise<unknown>;

/** How it ended at each rank: 'well', or the code of its error. */
async function ends(world: P2pWorld, comms: readonly Communicator[], attempt: Attempt): Promise<string[]> {
  const settled = await Promise.allSettled(comms.map(attempt));
  const here = settled.map((one) => {
    if (one.status === 'fulfilled') return 'well';
    assert(one.reason instanceof MultirailError, String(one.reason));
    return one.reason.code;
  });
  return world.share === undefined ? here : world.share(here[0]);
}

async function goesOn(comms: readonly Communicator[], seed: number): Promise<void> {
  await Promise.all(
    comms.map(async (comm) => {
      const sum = new Float64Array(2000);
      await comm.allreduce(new Float64Array(2000).fill(comm.rank + seed), sum);
      assert(sum.every((value) => value === comm.size * seed + (comm.size * (comm.size - 1)) / 2));
      const all = new Int32Array(comm.size);
      await comm.allgather(Int32Array.of(comm.rank), all);
      assert.deepEqual(
        [...all],
        [...all].map((_, i) => i),
      );
    }),
  );
}

/**
 * Those whose call had ended well before it could be known hear of it at their next one, which ends with it at every rank: so all ranks make
 * it. `onError`: with the error of that call, at each rank of this process.
 */
async function hearLate(
  world: P2pWorld,
  results: readonly string[],
  onError: (comm: Communicator, error: unknown) => void = () => undefined,
): Promise<void> {
  const untold = new Set([...results.keys()].filter((rank) => results[rank] === 'well'));
  for (let calls = 0; untold.size > 0; calls++) {
    assert(calls < 4, `ranks ${[...untold]} never hear of it`);
    const next = await ends(world, world.comms, async (comm) => {
      try {
        await comm.barrier();
      } catch (error) {
        onError(comm, error);
        throw error;
      }
    });
    for (const [rank, result] of next.entries()) if (result === 'ERR_COLLECTIVE_MISMATCH') untold.delete(rank);
  }
}

const f = (count: number) => new Float64Array(count);
/** One rank's lengths differ. */
const MISMATCHES: Readonly<Record<string, (odd: boolean) => Attempt>> = {
  'allreduce, one longer': (odd) => (comm) => comm.allreduce(f(odd ? 9 : 8), f(odd ? 9 : 8)),
  'allreduce, one shorter': (odd) => (comm) => comm.allreduce(f(odd ? 7 : 8), f(odd ? 7 : 8)),
  'allreduce, by other algorithms': (odd) => (comm) => comm.allreduce(f(odd ? 100_000 : 1), f(odd ? 100_000 : 1)),
  'bcast, one shorter': (odd) => (comm) => comm.bcast(f(odd ? 7 : 8)),
  'bcast, one much longer': (odd) => (comm) => comm.bcast(f(odd ? 100_000 : 8)),
  'reduce, one longer': (odd) => (comm) => comm.reduce(f(odd ? 9 : 8), comm.rank === 0 ? f(8) : null, Op.SUM, 0),
  'gather, one longer': (odd) => (comm) => comm.gather(f(odd ? 900 : 800), comm.rank === 0 ? f(800 * comm.size) : null),
  'scatter, one shorter': (odd) => (comm) => comm.scatter(comm.rank === 0 ? f(800 * comm.size) : null, f(odd ? 700 : 800)),
  'allgather, one longer': (odd) => (comm) => comm.allgather(f(odd ? 9 : 8), f((odd ? 9 : 8) * comm.size)),
  'alltoall, one longer': (odd) => (comm) => comm.alltoall(f((odd ? 9 : 8) * comm.size), f((odd ? 9 : 8) * comm.size)),
  'reduceScatterBlock, one longer': (odd) => (comm) => comm.reduceScatterBlock(f((odd ? 9 : 8) * comm.size), f(odd ? 9 : 8)),
  'scan, one longer': (odd) => (comm) => comm.scan(f(odd ? 9 : 8), f(odd ? 9 : 8)),
};

const EVERY_CALL: Readonly<Record<string, Attempt>> = {
  barrier: (comm) => comm.barrier(),
  bcast: (comm) => comm.bcast(f(10), 2),
  'bcast, long': (comm) => comm.bcast(f(50_000), 0),
  reduce: (comm) => comm.reduce(f(10), comm.rank === 0 ? f(10) : null),
  allreduce: (comm) => comm.allreduce(f(10), f(10)),
  'allreduce, long': (comm) => comm.allreduce(f(50_000), f(50_000)),
  gather: (comm) => comm.gather(f(10), comm.rank === 0 ? f(10 * comm.size) : null),
  scatter: (comm) => comm.scatter(comm.rank === 2 ? f(10 * comm.size) : null, f(10), 2),
  allgather: (comm) => comm.allgather(f(10), f(10 * comm.size)),
  'allgather, long': (comm) => comm.allgather(f(9000), f(9000 * comm.size)),
  alltoall: (comm) => comm.alltoall(f(10 * comm.size), f(10 * comm.size)),
  'alltoall, long': (comm) => comm.alltoall(f(9000 * comm.size), f(9000 * comm.size)),
  reduceScatterBlock: (comm) => comm.reduceScatterBlock(f(10 * comm.size), f(10)),
  scan: (comm) => comm.scan(f(10), f(10)),
  dup: (comm) => comm.dup(),
  split: (comm) => comm.split(comm.rank % 2),
};

/** Rank 2 makes another call than the others. */
const other = (comm: Communicator): boolean => comm.rank === 2;
const STRANGE_CALLS: Readonly<Record<string, { calls: Attempt; names: string[]; late?: boolean }>> = {
  'allreduce of two classes': {
    calls: (comm) =>
      other(comm) ? comm.allreduce(new Int32Array(2), new Int32Array(2)) : comm.allreduce(new Float32Array(2), new Float32Array(2)),
    names: ['allreduce(Int32Array, 8 bytes, SUM)', 'allreduce(Float32Array, 8 bytes, SUM)', 'rank 2 has called'],
  },
  'allreduce with two operations': {
    calls: (comm) => comm.allreduce(f(2), f(2), other(comm) ? Op.MAX : Op.SUM),
    names: ['allreduce(Float64Array, 16 bytes, MAX)', 'allreduce(Float64Array, 16 bytes, SUM)'],
  },
  'allreduce of two lengths': {
    calls: (comm) => comm.allreduce(f(other(comm) ? 3 : 2), f(other(comm) ? 3 : 2)),
    names: ['allreduce(Float64Array, 24 bytes, SUM)', 'allreduce(Float64Array, 16 bytes, SUM)'],
  },
  'bcast from two roots': {
    calls: (comm) => comm.bcast(f(2), other(comm) ? 2 : 0),
    names: ['bcast(Float64Array, 16 bytes, root 2)', 'bcast(Float64Array, 16 bytes, root 0)'],
    late: true,
  },
  'bcast from two roots, long': {
    calls: (comm) => comm.bcast(f(100_000), other(comm) ? 2 : 0),
    names: ['bcast(Float64Array, 800000 bytes, root 2)', 'bcast(Float64Array, 800000 bytes, root 0)'],
    late: true,
  },
  'reduce to two roots': {
    calls: (comm) => comm.reduce(f(2), f(2), Op.SUM, other(comm) ? 2 : 0),
    names: ['reduce(Float64Array, 16 bytes, SUM, root 2)', 'reduce(Float64Array, 16 bytes, SUM, root 0)'],
    late: true,
  },
  'gather to two roots, without a tree': {
    calls: (comm) => comm.gather(f(1000), f(4000), other(comm) ? 2 : 0),
    names: ['gather(Float64Array, 8000 bytes, root 2)', 'gather(Float64Array, 8000 bytes, root 0)'],
    late: true,
  },
  'barrier and allgather': {
    calls: (comm) => (other(comm) ? comm.barrier() : comm.allgather(f(1), f(4))),
    names: ['barrier()', 'allgather(Float64Array, 8 bytes)'],
  },
  'allgatherv with counts that differ': {
    calls: (comm) => comm.allgatherv(f(1), f(9), other(comm) ? [1, 2, 1, 1] : [1, 1, 1, 1]),
    names: ['allgatherv(Float64Array, 8 + 16 + 8 + 8 bytes)', 'allgatherv(Float64Array, 8 + 8 + 8 + 8 bytes)'],
  },
  'as requests and as persistent requests': {
    calls: async (comm) => {
      const request = other(comm) ? comm.iscan(f(1), f(1)) : comm.exscanInit(f(1), f(1)).start();
      await request;
    },
    names: ['exscan(Float64Array, 8 bytes, SUM)', ' scan(Float64Array, 8 bytes, SUM)'],
    late: true,
  },
  'objects from two roots': {
    calls: (comm) => comm.gatherObject('value', other(comm) ? 2 : 0),
    names: ['gatherObject(root 2)', 'gatherObject(root 0)'],
    late: true,
  },
  'objects and buffers': {
    calls: (comm) => (other(comm) ? comm.allgatherObject('value') : comm.allgather(f(1), f(4))),
    names: ['allgatherObject()', 'allgather(Float64Array, 8 bytes)'],
  },
  'dup and split': {
    calls: (comm) => (other(comm) ? comm.dup() : comm.split(0)),
    names: ['dup()', 'split()'],
  },
};

/** Every message says which call it is of. */
const SIGNED = { coll_check_signatures: 'true' };

/** Nobody is killed in a world of one process: the dead rank is told what the launcher would tell a survivor, and leaves. */
function kill(world: P2pWorld, dead: number): void {
  world.hub.exited(dead, { signal: 'SIGKILL' });
}
function bury(world: P2pWorld, dead: number): void {
  for (const rank of world.comms.keys()) if (rank !== dead) world.hub.exitedFor(dead, rank);
}

export const COLLECTIVE_FAULT_CASES: readonly P2pCase[] = [
  ...[true, false].map((isSigned): P2pCase => {
    const code = isSigned ? 'ERR_COLLECTIVE_MISMATCH' : 'ERR_TRUNCATE';
    return {
      name: `55 lengths that differ between ranks, signed: ${isSigned}: an error, no hang, and later calls are right`,
      ranks: 4,
      params: { coll_check_signatures: String(isSigned) },
      run: async (world) => {
        let seed = 1;
        for (const [what, attempt] of Object.entries(MISMATCHES)) {
          for (const odd of [0, 1, 3]) {
            // At the root it does not fit into its own other buffer, which ends the call there before it has begun: as if it were not made.
            if (odd === 0 && /^(reduce,|gather|scatter)/.test(what)) continue;
            const before = world.comms.map((comm) => comm.ibarrier());
            const results = await ends(world, world.comms, (comm) => attempt(comm.rank === odd)(comm));
            for (const result of results) assert(['well', code].includes(result), `${what}: ${results}`);
            assert(
              results.some((result) => result !== 'well'),
              `${what}, rank ${odd}: nobody has seen it`,
            );
            for (const barrier of before) await barrier;
            if (isSigned && results.includes('well')) await hearLate(world, results);
            await goesOn(world.comms, seed++);
          }
        }
      },
    };
  }),
  {
    name: '60 a communicator on which collectives have failed can be freed',
    ranks: 4,
    run: async (world) => {
      for (const [what, attempt] of Object.entries(MISMATCHES)) {
        const twins = await everyRank(world, (comm) => comm.dup());
        const results = await ends(world, twins, (comm) => attempt(comm.rank === 3)(comm));
        assert(
          results.some((result) => result !== 'well'),
          what,
        );
        await Promise.all(twins.map((twin) => twin.free()));
      }
      await goesOn(world.comms, 1);
    },
  },
  {
    name: '55 an operation that throws at one rank ends the call at all',
    ranks: 4,
    run: async (world) => {
      const results = await ends(world, world.comms, (comm) => {
        const op = Op.create(
          () => {
            if (comm.rank === 1) throw new Error('of the user');
          },
          { commute: true },
        );
        return comm.allreduce(f(3), f(3), op);
      });
      assert.equal(results[1], 'ERR_OP');
      assert(
        results.every((result) => result === 'ERR_OP' || result === 'well'),
        String(results),
      );
      await goesOn(world.comms, 1);
    },
  },
  {
    name: '55 an error with a long text of any characters ends the call at all, and its text is cut between characters',
    ranks: 4,
    run: async (world) => {
      const texts = ['x', '\u6f22', '\u0001', '"', '\u{1f6a2}', '\ud800'].map((one) => one.repeat(3000));
      for (const text of texts) {
        const op = Op.create(() => {
          throw new Error(text);
        });
        const calls = world.comms.map((comm) => comm.allreduce(f(3), f(3), comm.rank === 2 ? op : Op.create(() => undefined)));
        for (const [i, one] of (await Promise.allSettled(calls)).entries()) {
          // Rank 0 waits for what rank 2 has not come to; the others may have had all that they needed.
          if (one.status === 'fulfilled') {
            assert(world.comms[i].rank % 2 === 1);
            continue;
          }
          const { code, message } = one.reason as MultirailError;
          assert.equal(code, 'ERR_OP');
          assert(message.includes(text.slice(0, 240)), message.slice(0, 100));
          assert(!message.includes('\ufffd') && (text.startsWith('\ud800') || !/\p{Surrogate}/u.test(message)), message.slice(-100));
        }
        await goesOn(world.comms, 1);
      }
    },
  },
  ...Object.entries(STRANGE_CALLS).map(
    ([what, { calls, names, late }]): P2pCase => ({
      name: `55 calls that do not belong together: ${what}`,
      ranks: 4,
      params: SIGNED,
      run: async (world) => {
        await goesOn(world.comms, 1);
        // The first error that each rank of this process meets.
        const errors = new Map<number, unknown>();
        const onError = (comm: Communicator, error: unknown): void => void (errors.has(comm.rank) || errors.set(comm.rank, error));
        const results = await ends(world, world.comms, async (comm) => {
          try {
            await calls(comm);
          } catch (error) {
            onError(comm, error);
            throw error;
          }
        });
        // Who only sends may have ended before it could know: its next call says it.
        if (late === true) await hearLate(world, results, onError);
        for (const comm of world.comms) {
          const error = errors.get(comm.rank);
          assert(error instanceof MultirailError, `rank ${comm.rank}: ${String(error)}`);
          assert.equal(error.code, 'ERR_COLLECTIVE_MISMATCH', `rank ${comm.rank}: ${error.message}`);
          for (const name of names) assert(error.message.includes(name), `${name} is not in: ${error.message}`);
        }
      },
    }),
  ),
  {
    name: '56 timeoutMs and signal end a collective at every rank, when its buffers are free, and later calls are right',
    ranks: 4,
    run: async (world) => {
      const limits: Readonly<
        Record<string, (comm: Communicator, options: { timeoutMs?: number; signal?: AbortSignal }) => Promise<unknown>>
      > = {
        barrier: (comm, options) => comm.barrier(options),
        allreduce: (comm, options) => comm.allreduce(f(4), f(4), Op.SUM, options),
        'allreduce, long': (comm, options) => comm.allreduce(f(50_000), f(50_000), Op.SUM, options),
        'alltoall, a request': async (comm, options) => void (await comm.ialltoall(f(40_000), f(40_000), options)),
        'scan, persistent': async (comm, options) => void (await comm.scanInit(f(4), f(4), Op.SUM, options).start()),
        allgatherObject: (comm, options) => comm.allgatherObject({ some: 'value' }, options),
        dup: (comm, options) => comm.dup(options),
      };
      let seed = 1;
      for (const [what, call] of Object.entries(limits)) {
        for (const code of ['ERR_TIMEOUT', 'ERR_ABORTED']) {
          const aborter = new AbortController();
          // Rank 3 comes only when the others have ended; rank 1 has set no limit, and is told.
          const own = (comm: Communicator) =>
            comm.rank === 1 ? {} : code === 'ERR_TIMEOUT' ? { timeoutMs: 30 } : { signal: aborter.signal };
          setTimeout(() => aborter.abort(), 30);
          const early = await ends(world, world.comms, async (comm) => (comm.rank === 3 ? undefined : call(comm, own(comm))));
          assert.deepEqual(early.slice(0, 3), [code, code, code], what);
          const late = await ends(world, world.comms, async (comm) => (comm.rank === 3 ? call(comm, {}) : undefined));
          // It may have had all that it needed before it was told.
          assert(['well', code].includes(late[3]), `${what}: ${late[3]}`);
          await goesOn(world.comms, seed++);
        }
      }
    },
  },
  {
    name: '70 a member dies: every call ends at every survivor that needs it',
    ranks: 4,
    oneProcess: 'its rank is not killed, its death is told; ranks that are killed have tests of their own',
    run: async (world) => {
      const dead = 2;
      const survivors = world.comms.filter((comm) => comm.rank !== dead);
      const others = await everyRank(world, (comm) => comm.split(comm.rank === dead ? 1 : 0));
      const withDead = await everyRank(world, (comm) => comm.dup());
      const left = others.filter((comm): comm is Communicator => comm !== null && comm.size === 3);
      // Under way while it dies.
      const begun = survivors.map((comm) => Object.values(EVERY_CALL).map((call) => call(comm)));
      const ended = begun.map((list) => Promise.allSettled(list));
      kill(world, dead);
      const codes = new Set<string>();
      for (const list of await Promise.all(ended)) {
        for (const one of list) codes.add(one.status === 'fulfilled' ? 'well' : (one.reason as MultirailError).code);
      }
      assert(codes.has('ERR_PROC_FAILED') && codes.size <= 2, [...codes].join());
      // Afterwards.
      for (const [what, call] of Object.entries(EVERY_CALL)) {
        const results = await ends(world, survivors, call);
        assert(results.includes('ERR_PROC_FAILED'), `${what}: ${results}`);
        for (const result of results) assert(result === 'well' || result === 'ERR_PROC_FAILED', `${what}: ${results}`);
      }
      // 71: communicators without it go on; one with it can be freed by those that are left.
      await goesOn(left, 3);
      await Promise.all(withDead.filter((comm) => comm.rank !== dead).map((comm) => comm.free()));
      await goesOn(left, 4);
      await Promise.all(left.map((comm) => comm.free()));
      bury(world, dead);
    },
  },
];
