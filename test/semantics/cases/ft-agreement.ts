// Cases of process failure: revoke, agree, shrink, and the end of the job.
import { strict as assert } from 'node:assert';
import type { Communicator } from '../../../src/mpi/communicator.ts';
import { ANY_SOURCE } from '../../../src/mpi/constants.ts';
import { Prng } from '../../../src/util/prng.ts';
import type { FtCase } from '../../support/ft-worlds.ts';
import { fails, fill } from '../../support/p2p-audit.ts';
import { expectedSum, knows, sumOfRanks } from './ft-tools.ts';

/** Ends well, or with an error of one of these codes. */
async function wellOr(codes: readonly string[], attempt: PromiseLike<unknown>): Promise<void> {
  try {
    await attempt;
  } catch (error) {
    assert(codes.includes((error as { code: string }).code), `expected ${codes.join(' or ')}, got ${String(error)}`);
  }
}

/** Ends with an error of one of these codes. */
async function failsWith(codes: readonly string[], attempt: PromiseLike<unknown>): Promise<void> {
  const error = await Promise.resolve(attempt).then(
    () => undefined,
    (reason) => reason,
  );
  assert(codes.includes(error?.code), `expected ${codes.join(' or ')}, got ${String(error)}`);
}

export const FT_AGREEMENT_CASES: readonly FtCase[] = [
  {
    name: 'revoke: everything under way ends at every member, and later calls throw',
    ranks: 3,
    dying: [],
    run: async ({ world, rank }) => {
      const comm = await world.dup();
      const waiting: PromiseLike<unknown>[] = [
        comm.recv(new Uint8Array(10), ANY_SOURCE, 1),
        comm.irecv(new Uint8Array(10), (rank + 1) % 3, 2),
        comm.probe(ANY_SOURCE, 3),
        comm.recvObject((rank + 1) % 3, 4),
      ];
      if (rank !== 1) waiting.push(comm.barrier());
      // A receiver that has heard of it takes them into nothing: for their senders they may have ended well.
      const sends = [
        comm.ssend(new Uint8Array(10), (rank + 1) % 3, 5),
        comm.send(new Uint8Array(500_000), (rank + 1) % 3, 6),
        comm.sendObject({ memory: new Uint8Array(200_000) }, (rank + 1) % 3, 7),
      ].map((one) => wellOr(['ERR_REVOKED'], one));
      const codes = Promise.allSettled(waiting);
      await world.barrier();
      if (rank === 1) {
        await comm.revoke();
        await comm.revoke();
      }
      for (const [i, end] of (await codes).entries())
        assert.equal(end.status === 'rejected' ? end.reason.code : `${i} ended well`, 'ERR_REVOKED');
      await Promise.all(sends);
      assert.equal(comm.isRevoked, true);
      assert.equal(world.isRevoked, false);
      await fails('ERR_REVOKED', comm.send(new Uint8Array(1), 0));
      await fails('ERR_REVOKED', comm.recv(new Uint8Array(1), 0));
      await fails('ERR_REVOKED', () => comm.irecv(new Uint8Array(1), 0));
      await fails('ERR_REVOKED', () => comm.iprobe());
      await fails('ERR_REVOKED', comm.barrier());
      await fails('ERR_REVOKED', comm.dup());
      assert.equal(comm.getFailed().size, 0);
      await comm.free();
      await world.barrier();
    },
  },
  {
    name: 'revoke: a message that a matched probe has taken ends at its sender, and cannot be received',
    ranks: 2,
    dying: [],
    run: async ({ world, rank }) => {
      const comm = await world.dup();
      if (rank === 0) return wellOr(['ERR_REVOKED'], comm.send(fill(300_000, 1), 1, 1));
      const message = await comm.mprobe(0, 1);
      await comm.revoke();
      await fails('ERR_REVOKED', message.recv(new Uint8Array(300_000)));
    },
  },
  {
    name: 'revoke: long messages in transit end on both sides, and the buffers are the callers again',
    ranks: 2,
    dying: [],
    run: async ({ world, rank, sleep }) => {
      for (let round = 0; round < 6; round++) {
        const comm = await world.dup();
        const data = fill(1_000_000, round);
        const exchange = rank === 0 ? comm.send(data, 1, 1) : comm.recv(data, 0, 1);
        if (rank === round % 2) {
          await sleep(round / 2);
          await comm.revoke();
        }
        await wellOr(['ERR_REVOKED'], exchange);
        data.fill(0x5a);
        await world.barrier();
        // Nothing was written behind the end of the call.
        assert(data.every((byte) => byte === 0x5a));
        await comm.free();
      }
    },
  },
  {
    name: 'revoke in the midst of collectives of every kind, again and again',
    ranks: 4,
    dying: [],
    run: async ({ world, rank, sleep }) => {
      const calls: ((comm: Communicator) => Promise<unknown>)[] = [
        (comm) => comm.barrier(),
        (comm) => comm.bcast(fill(70_000, 1), 1),
        (comm) => comm.allreduce(new Float64Array(9000), new Float64Array(9000)),
        (comm) => comm.alltoall(new Uint8Array(80_000), new Uint8Array(80_000)),
        (comm) => comm.allgather(new Uint8Array(100), new Uint8Array(400)),
        (comm) => comm.gatherObject({ rank }),
        (comm) => comm.dup(),
      ];
      for (const [round, call] of calls.entries()) {
        const comm = await world.dup();
        const revoking = rank === round % 4 ? sleep(3).then(() => comm.revoke()) : undefined;
        const error = await (async () => {
          for (;;) {
            await call(comm);
            // Whoever only sends would never let its timers run.
            await sleep(0);
          }
        })().catch((reason) => reason);
        assert.equal(error.code, 'ERR_REVOKED', `${round}: ${error}`);
        await revoking;
        await comm.free();
        await world.barrier();
      }
    },
  },
  {
    name: 'revoke while others are in free(): it ends at all of them',
    ranks: 3,
    dying: [],
    run: async ({ world, rank, sleep }) => {
      const comm = await world.dup();
      if (rank !== 2) await comm.free();
      else {
        await sleep(20);
        await comm.revoke();
        await comm.free();
      }
      await world.barrier();
    },
  },
  {
    name: 'agree: the AND of the flags, with nobody dead',
    ranks: 5,
    dying: [],
    run: async ({ world, rank }) => {
      for (let round = 0; round < 10; round++) {
        const { flag, failed, error } = await world.agree(rank === round % 5 ? 0xffff_fff0 : 0xffff_ffff);
        assert.deepEqual([flag, failed.size, error], [0xffff_fff0, 0, undefined]);
      }
      const requests = [world.iagree(1), world.iagree(2), world.iagree(rank)];
      await Promise.all(requests);
      assert.deepEqual(
        requests.map(({ result }) => result?.flag),
        [1, 2, 0],
      );
      await fails('ERR_ARG', world.agree(-1));
      await fails('ERR_ARG', world.agree(2 ** 32));
    },
  },
  {
    name: 'agree: names the dead, with an error until all have acknowledged, also on a revoked communicator',
    ranks: 4,
    dying: [0],
    run: async ({ world, rank, die, sleep }) => {
      await world.barrier();
      if (rank === 0) {
        await sleep(5);
        await die();
      }
      const first = await world.agree(rank);
      assert.equal(first.flag, 1 & 2 & 3);
      assert.deepEqual([...first.failed.worldRanks], [0]);
      assert.equal(first.error?.code, 'ERR_PROC_FAILED');
      if (rank > 1) world.ackFailed();
      const second = await world.agree(7);
      assert.equal(second.error?.code, 'ERR_PROC_FAILED', 'rank 1 has not acknowledged');
      await world.revoke();
      await knows(world, 1);
      world.ackFailed();
      const third = await world.agree(7);
      assert.deepEqual([third.flag, third.failed.size, third.error], [7, 1, undefined]);
    },
  },
  {
    name: 'agree and shrink that meet are a mismatch at all members',
    ranks: 3,
    dying: [],
    run: async ({ world, rank }) => {
      await fails('ERR_COLLECTIVE_MISMATCH', rank === 1 ? world.shrink() : world.agree(1));
      assert.equal((await world.agree(5)).flag, 5);
    },
  },
  {
    name: 'shrink: with nobody dead it is a copy; with the dead gone it is the rest, in order',
    ranks: 5,
    dying: [0, 3],
    run: async ({ world, rank, die }) => {
      const copy = await world.shrink();
      assert.equal(copy.size, 5);
      assert.equal(await sumOfRanks(copy, rank), 10);
      if (rank === 0 || rank === 3) await die();
      await knows(copy, 2);
      const request = copy.ishrink();
      await request;
      const rest = request.result as Communicator;
      assert.deepEqual([...rest.group.worldRanks], [1, 2, 4]);
      assert.equal(await sumOfRanks(rest, rank), 7);
      const part = await rest.dup();
      await part.free();
      await rest.free();
      await copy.free();
    },
  },
  {
    name: 'revshrink: one dies in a collective, whoever sees it revokes, all shrink and go on',
    ranks: 4,
    dying: [1],
    run: async ({ world, rank, die }) => {
      let comm = world;
      for (let step = 0; step < 30; step++) {
        if (rank === 1 && step === 10) await die();
        try {
          assert.equal(await sumOfRanks(comm, rank), expectedSum(comm));
        } catch (error) {
          assert(['ERR_PROC_FAILED', 'ERR_REVOKED'].includes((error as { code: string }).code), String(error));
          await comm.revoke();
          comm = await comm.shrink();
          // All go on from the same step.
          const at = new Int32Array(1);
          await comm.allreduce(Int32Array.of(step), at);
          step = Math.max(9, Math.floor(at[0] / comm.size) - 1);
        }
      }
      assert.deepEqual([...comm.group.worldRanks], [0, 2, 3]);
    },
  },
  {
    name: 'revshrinkkill: one after the other dies until two are left',
    ranks: 6,
    dying: [0, 2, 3, 5],
    run: async ({ world, rank, die }) => {
      const order = [3, 0, 5, 2];
      let comm = world;
      while (comm.size > 2) {
        if (order[6 - comm.size] === rank) await die();
        await failsWith(
          ['ERR_PROC_FAILED', 'ERR_REVOKED'],
          (async () => {
            for (;;) await comm.barrier();
          })(),
        );
        await comm.revoke();
        comm = await comm.shrink();
        assert.equal(await sumOfRanks(comm, rank).catch(() => expectedSum(comm)), expectedSum(comm));
      }
      assert.deepEqual([...comm.group.worldRanks], [1, 4]);
      assert.equal((await comm.agree(3)).flag, 3);
    },
  },
  {
    name: 'agreements are the same at all that live, whoever dies at whatever moment',
    ranks: 6,
    dying: [0, 1, 4],
    run: async ({ world, rank, die, sleep }) => {
      const deaths = [4, 0, 1];
      const prng = new Prng('agreements and deaths').split(String(rank));
      const outcomes: string[] = [];
      for (let round = 0; round < 24; round++) {
        const agreeing = world.iagree(2 ** (rank + 8) - 1 - rank);
        if (deaths[(round - 4) / 6] === rank) {
          await sleep(prng.below(3) / 2);
          await die();
        }
        await agreeing;
        const { flag, failed } = agreeing.result as { flag: number; failed: { worldRanks: readonly number[] } };
        outcomes.push(`${round}:${flag}:${failed.worldRanks}`);
      }
      const rest = await world.shrink();
      const all = await rest.allgatherObject(outcomes);
      for (const other of all) assert.deepEqual(other, outcomes);
      assert.deepEqual([...rest.group.worldRanks], [2, 3, 5]);
    },
  },
  {
    name: 'a rank that dies in finalize() holds up nobody',
    ranks: 4,
    dying: [2],
    run: async ({ world, rank, mpi, die, sleep }) => {
      await world.barrier();
      if (rank !== 2) return;
      void mpi.finalize().catch(() => undefined);
      await sleep(0);
      await die();
    },
  },
  {
    name: 'a rank that dies while the others are in finalize() holds up nobody',
    ranks: 3,
    dying: [0],
    run: async ({ world, rank, die, sleep }) => {
      await world.barrier();
      if (rank !== 0) return;
      await sleep(40);
      await die();
    },
  },
];
