// Cases of process failure: small programs as users of ULFM write them, after those that its own tests and its tutorial have. Each says which.
import { strict as assert } from 'node:assert';
import type { Communicator } from '../../../src/mpi/communicator.ts';
import { ANY_SOURCE } from '../../../src/mpi/constants.ts';
import { Op } from '../../../src/mpi/op.ts';
import type { FtCase } from '../../support/ft-worlds.ts';
import { audit, fails, fill } from '../../support/p2p-audit.ts';
import { expectedSum, knows, lived, sumOfRanks } from './ft-tools.ts';

const codeOf = (error: unknown): string => (error as { code?: string }).code ?? String(error);

/** The error that a call has ended with, or undefined. What is no failure of a process is thrown. */
async function failureOf(call: Promise<unknown>): Promise<string | undefined> {
  try {
    await call;
    return undefined;
  } catch (error) {
    const code = codeOf(error);
    if (!['ERR_PROC_FAILED', 'ERR_REVOKED'].includes(code)) throw error;
    return code;
  }
}

/** All members make what `make` makes, or none of them keeps it: whether all have it is agreed upon. */
async function together(comm: Communicator, make: () => Promise<Communicator[]>): Promise<Communicator[] | undefined> {
  const made = await make().catch((error) => {
    if (codeOf(error) !== 'ERR_PROC_FAILED') throw error;
    return undefined;
  });
  const { flag } = await comm.agree(made === undefined ? 0 : 1);
  if (flag === 1) return made;
  for (const one of made ?? []) await one.free();
  return undefined;
}

const split = async (comm: Communicator, color: number): Promise<Communicator> => (await comm.split(color)) as Communicator;

/**
 * Rank 0 of five takes one message from each that lives; rank 2 dies before it has sent its own. `take`: receives one, and returns whether it
 * has. It says how many failures it has acknowledged, and is told whether more messages are to come.
 */
function fromAnybody(
  name: string,
  take: (world: Communicator, word: Int32Array, acknowledged: (failed: number) => boolean) => Promise<boolean>,
): FtCase {
  return {
    name,
    ranks: 5,
    dying: [2],
    run: async ({ world, rank, die }) => {
      await world.barrier();
      if (rank === 2) await die();
      if (rank !== 0) return void (await world.send(Int32Array.of(rank), 0, 1));
      const from: number[] = [];
      let failed = 0;
      const areMissing = (): boolean => from.length < world.size - 1 - failed;
      const acknowledged = (count: number): boolean => {
        failed = count;
        return areMissing();
      };
      while (areMissing()) {
        const word = new Int32Array(1);
        if (await take(world, word, acknowledged)) from.push(word[0]);
      }
      // Who was acknowledged before all had sent is counted; the others have sent.
      if (failed === 0) await lived(world);
      assert.deepEqual(from.sort(), [1, 3, 4]);
    },
  };
}

export const FT_PROGRAM_CASES: readonly FtCase[] = [
  {
    name: 'bindings: each call has its forms, and they work where nobody has failed',
    ranks: 2,
    dying: [],
    run: async ({ world }) => {
      const forms = ['agree', 'iagree', 'agreeSync', 'shrink', 'ishrink', 'shrinkSync', 'replace', 'ireplace', 'replaceSync'] as const;
      for (const form of [...forms, 'revoke', 'revokeSync', 'repair', 'repairSync', 'getFailed', 'ackFailed'] as const)
        assert.equal(typeof world[form], 'function', form);
      assert.equal(world.isRevoked, false);
      assert.equal(world.getFailed().size, 0);
      assert.equal(world.ackFailed(), 0);
      assert.equal((await world.agree(6)).flag, 6);
      const asked = world.iagree(5);
      await asked;
      assert.equal((asked.result as { flag: number }).flag, 5);
      const copy = await world.shrink();
      await copy.revoke();
      assert.equal(copy.isRevoked, true);
      await fails('ERR_REVOKED', copy.barrier());
      await copy.free();
    },
  },
  {
    name: 'err_handler: whoever has an error revokes, so all leave; another communicator is left alone',
    ranks: 4,
    dying: [3],
    run: async ({ world, rank, die }) => {
      const copy = await world.dup();
      const rest = await split(world, rank === 3 ? 1 : 0);
      await copy.barrier();
      if (rank === 3) await die();
      const handled: string[] = [];
      const guarded = async (call: () => Promise<unknown>): Promise<void> => {
        const code = await failureOf(call());
        if (code === undefined) return;
        handled.push(code);
        if (code === 'ERR_PROC_FAILED') await copy.revoke();
      };
      while (handled.length === 0) await guarded(() => copy.barrier());
      const steps = new Int32Array(1);
      await rest.allreduce(Int32Array.of(rank), steps, Op.MAX);
      assert.equal(steps[0], 2);
      // The failure is an old one now.
      await guarded(() => copy.barrier());
      assert.equal(handled.length, 2);
      await copy.free();
      await rest.free();
    },
  },
  {
    name: 'revoke with long messages under way: a ring of them ends at all, and another communicator goes on',
    ranks: 3,
    dying: [1],
    run: async ({ world, rank, die }) => {
      const copy = await world.dup();
      const other = await world.dup();
      const bytes = 300_000;
      const sent = copy.isend(fill(bytes, rank), (rank + 1) % 3, 1);
      const waiting = [copy.irecv(new Uint8Array(bytes), (rank + 2) % 3, 2), copy.irecv(new Uint8Array(bytes), (rank + 1) % 3, 3)];
      await world.barrier();
      if (rank === 0) await copy.revoke();
      // What is sent may have left whole.
      await failureOf(sent.promise());
      for (const request of waiting) await fails('ERR_REVOKED', request);
      await other.barrier();
      if (rank === 1) await die();
      // One that has seen the failure gets the other one out, which may wait for it.
      const code = await failureOf(
        (async () => {
          for (;;) await other.barrier();
        })(),
      );
      if (code === 'ERR_PROC_FAILED') await other.revoke();
      while ((await failureOf(other.barrier())) !== 'ERR_REVOKED');
      await copy.free();
      await other.free();
    },
  },
  {
    name: 'revshrinkkillrecover: one after the other dies, and is replaced, until nobody stands by',
    ranks: 3,
    spares: 3,
    dying: [1, 2, 3],
    run: async ({ mpi, world, die }) => {
      // Who dies when the ring has come to that step; its successor goes on from there.
      const deaths = [
        { number: 1, step: 3 },
        { number: 3, step: 6 },
        { number: 2, step: 9 },
      ];
      let comm = world;
      let step = 0;
      const resume = async (): Promise<void> => {
        // The survivors are at most one step apart; what was called in has no step yet.
        const at = new Int32Array(1);
        await comm.allreduce(Int32Array.of(step), at, Op.MAX);
        step = at[0];
      };
      if (mpi.role === 'replacement') await resume();
      while (step < 12) {
        if (deaths.some((death) => death.number === mpi.process && death.step === step)) await die();
        const code = await failureOf(sumOfRanks(comm, comm.rank).then((sum) => assert.equal(sum, 3)));
        if (code === undefined) {
          step++;
          continue;
        }
        comm = await comm.repair();
        assert.equal(comm.size, 3);
        await resume();
      }
      assert.equal(mpi.standby.ready, 0);
      assert.deepEqual([...comm.group.worldRanks].sort(), [0, 4, 5]);
      // Those that are a step ahead have not waited for the others.
      await comm.barrier();
    },
  },
  {
    name: 'tutorial 03, undisturbed: pairs exchange values, and only the one whose peer is dead hears of it',
    ranks: 4,
    dying: [2],
    run: async ({ world, rank, die }) => {
      await world.barrier();
      if (rank === 2) await die();
      const peer = rank ^ 1;
      const theirs = new Float64Array(1);
      const code = await failureOf(world.sendrecv(Float64Array.of(rank / 4), peer, 1, theirs, peer, 1));
      assert.equal(code, rank === 3 ? 'ERR_PROC_FAILED' : undefined);
      assert.equal(theirs[0], rank === 3 ? 0 : peer / 4);
    },
  },
  {
    name: 'tutorial 04, if_error: who fails in a ring revokes, and all leave it',
    ranks: 5,
    dying: [4],
    run: async ({ world, rank, die }) => {
      const rest = await split(world, rank === 4 ? 1 : 0);
      const ring = await world.dup();
      const right = (rank + 1) % 5;
      const left = (rank + 4) % 5;
      let step = 0;
      const into = new Float64Array(1000);
      for (; step < 10; step++) {
        if (rank === 4 && step === 3) await die();
        const code = await failureOf(ring.sendrecv(new Float64Array(1000).fill(rank + step), right, 0, into, left, 0));
        if (code !== undefined) {
          await ring.revoke();
          break;
        }
        assert.equal(into[999], left + step);
      }
      const least = new Int32Array(1);
      const most = new Int32Array(1);
      await rest.allreduce(Int32Array.of(step), least, Op.MIN);
      await rest.allreduce(Int32Array.of(step), most, Op.MAX);
      // Who waits for nobody that is slower may be as many steps ahead as it is ranks away.
      assert(most[0] < 10 && most[0] - least[0] <= 4, `steps ${least[0]} to ${most[0]}`);
      await ring.free();
      await rest.free();
    },
  },
  {
    name: 'tutorial 05, err_coll: after a death in a broadcast each has the value or an error',
    ranks: 5,
    dying: [1],
    run: async ({ world, rank, die }) => {
      const value = Float64Array.of(rank === 0 ? 42 : rank / 5);
      if (rank === 1) await die();
      const code = await failureOf(world.bcast(value, 0));
      if (code === undefined) assert.equal(value[0], 42);
      await knows(world, 1);
      assert.equal(await failureOf(world.bcast(value, 0)), 'ERR_PROC_FAILED');
      const { flag } = await world.agree(1);
      assert.equal(flag, 1);
    },
  },
  {
    name: 'tutorial 06, err_comm_dup: a copy that is agreed upon is there at all, or at none',
    ranks: 4,
    dying: [3],
    run: async ({ world, rank, die }) => {
      const before = await together(world, async () => [await world.dup()]);
      assert(before !== undefined);
      assert.equal(await sumOfRanks(before[0], rank), 6);
      await before[0].free();
      if (rank === 3) await die();
      assert.equal(await together(world, async () => [await world.dup()]), undefined);
      assert.equal((await world.agree(1)).flag, 1);
      world.ackFailed();
      const rest = await world.shrink();
      const after = await together(rest, async () => [await rest.dup()]);
      assert(after !== undefined);
      assert.equal(await sumOfRanks(after[0], rank), 3);
      await after[0].free();
      await rest.free();
    },
  },
  {
    name: 'tutorial 07, err_comm_grid2d: rows and columns with one agreement for both',
    ranks: 6,
    dying: [5],
    run: async ({ world, rank, die }) => {
      const grid = () => together(world, async () => [await split(world, Math.floor(rank / 3)), await split(world, rank % 3)]);
      const made = await grid();
      assert(made !== undefined);
      const [row, column] = made;
      assert.deepEqual([row.size, column.size], [3, 2]);
      assert.equal(await sumOfRanks(row, rank), expectedSum(row));
      assert.equal(await sumOfRanks(column, rank), expectedSum(column));
      await row.free();
      await column.free();
      if (rank === 5) await die();
      // A split may have come into being before the death is known, the next one not.
      while ((await grid()) !== undefined);
      assert.equal((await world.agree(1)).failed.size, 1);
    },
  },
  fromAnybody(
    'tutorial 08, err_any_src: one message from each that lives, whoever dies before it has sent its own',
    async (world, word, acknowledged) => {
      const code = await failureOf(world.recv(word, ANY_SOURCE, 1));
      if (code !== undefined) acknowledged(world.ackFailed());
      return code === undefined;
    },
  ),
  fromAnybody(
    'tutorial 08.2, err_iany_src: the same with a request, which goes on after the failure is acknowledged',
    async (world, word, acknowledged) => {
      const request = world.irecv(word, ANY_SOURCE, 1);
      for (;;) {
        const code = await request.promise().then(() => undefined, codeOf);
        if (code === undefined) return true;
        assert.equal(code, 'ERR_PROC_FAILED_PENDING');
        if (acknowledged(world.ackFailed())) continue;
        assert.equal(request.cancel(), true);
        return false;
      }
    },
  ),
  {
    name: 'tutorial 12, buddycr: each keeps the data of its left neighbour, and gives it to who takes its place',
    ranks: 4,
    spares: 1,
    dying: [2],
    run: async ({ mpi, world, die }) => {
      const LENGTH = 20_000;
      let comm = world;
      const { rank, size } = world;
      const right = (rank + 1) % size;
      const left = (rank + size - 1) % size;
      const own = new Float64Array(LENGTH).fill(rank);
      const saved = new Float64Array(LENGTH);
      const buddy = new Float64Array(LENGTH);
      let savedStep = -1;
      let step = 0;
      const reload = async (): Promise<void> => {
        const theirs = new Int32Array(1);
        await comm.sendrecv(Int32Array.of(savedStep), right, 1, theirs, left, 1);
        if (theirs[0] === -1) await comm.send(buddy, left, 2);
        if (savedStep === -1) {
          await comm.recv(own, right, 2);
          savedStep = theirs[0];
          saved.set(own);
        } else own.set(saved);
        step = savedStep;
        // The new one keeps a copy of its neighbour again.
        await comm.sendrecv(saved, right, 3, buddy, left, 3);
      };
      if (mpi.role === 'replacement') await reload();
      while (step < 8) {
        if (mpi.process === 2 && step === 5) await die();
        const code = await failureOf(
          (async () => {
            const into = new Float64Array(1);
            await comm.allreduce(Float64Array.of(own[0]), into, Op.SUM);
            for (let i = 0; i < LENGTH; i++) own[i] += into[0];
            step++;
            if (step % 2 !== 0) return;
            const copied = new Float64Array(LENGTH);
            await comm.sendrecv(own, right, 3, copied, left, 3);
            // A copy counts when all have made theirs.
            const { error } = await comm.agree(1);
            if (error !== undefined) throw error;
            buddy.set(copied);
            saved.set(own);
            savedStep = step;
          })(),
        );
        if (code === undefined) continue;
        comm = await comm.repair();
        await reload();
      }
      // The same by one process.
      const all = [0, 1, 2, 3];
      for (let i = 0; i < 8; i++) {
        const sum = all.reduce((total, value) => total + value, 0);
        for (const one of all.keys()) all[one] += sum;
      }
      assert(own.every((value) => value === all[rank]));
      assert.equal(savedStep, 8);
    },
  },
  {
    name: 'tutorial 13, transactions: an inner one that fails is taken back at all, and an outer one that does not need the dead is kept',
    ranks: 4,
    dying: [3],
    run: async ({ world, rank, die }) => {
      // Commits at all members, or says at all of them that it was taken back.
      const transaction = async (comm: Communicator, work: () => Promise<void>): Promise<boolean> => {
        const code = await failureOf(work());
        if (code === 'ERR_PROC_FAILED') await comm.revoke();
        const { flag, error } = await comm.agree(code === undefined ? 1 : 0);
        return flag === 1 && error === undefined;
      };
      const rest = await split(world, rank === 3 ? 1 : 0);
      let inner: boolean | undefined;
      if (rank === 3) {
        const copy = await world.dup();
        return void (await transaction(copy, async () => void (await die())));
      }
      const outer = await transaction(rest, async () => {
        const copy = await world.dup();
        inner = await transaction(copy, async () => {
          await copy.barrier();
        });
        await copy.free();
        await rest.barrier();
      });
      assert.deepEqual([outer, inner], [true, false]);
      const kept = new Uint8Array(9);
      if (rest.rank === 0) kept.set(fill(9, 4));
      await rest.bcast(kept, 0);
      audit(kept, 4, 'what the outer one has kept');
      await rest.free();
    },
  },
];
