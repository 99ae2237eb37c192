// News of a collective that had ended well at a rank before another found out that the calls differed: a later notice carries it, a rank
// that hears it there passes it on, and it is heard once. The notices are given by hand, in the order that a whole run once met.
import { expect, test } from 'vitest';
import { MultirailError } from '../../../../src/errors.ts';
import type { Communicator } from '../../../../src/mpi/communicator.ts';
import type { ProcessState } from '../../../../src/mpi/process-state.ts';
import { simFixture } from '../../../support/p2p-worlds.ts';

const fixture = simFixture({ seed: 'late news', rails: [{}] });
const news = new MultirailError('ERR_COLLECTIVE_MISMATCH', 'the calls differ');

/** Three ranks that have made one barrier, and `procs[r]`: the inside of rank r. */
async function three() {
  const world = await fixture.world(3, { coll_check_signatures: 'true' });
  const procs = world.runtimes.map((runtime) => (runtime as unknown as { proc: ProcessState }).proc);
  const barrier = (...ranks: number[]) => Promise.allSettled(ranks.map((rank) => world.comms[rank].barrier()));
  const tagOf = async (ranks: readonly number[], start: () => ReturnType<typeof barrier>) => {
    const ended = start();
    const [{ scope, tag }] = procs[ranks[0]].operations;
    return { ctx: scope.ctx, tag, ended };
  };
  const first = await tagOf([0], () => barrier(0, 1, 2));
  expect(endsOf(await first.ended)).toEqual(['well', 'well', 'well']);
  return { world, procs, barrier, tagOf, first };
}

const endsOf = (settled: readonly PromiseSettledResult<void>[]): string[] =>
  settled.map((one) => (one.status === 'fulfilled' ? 'well' : (one.reason as MultirailError).code));

/** What was sent from `from` to `to` before has come. */
async function flush(from: Communicator, to: Communicator): Promise<void> {
  await Promise.all([from.send(new Uint8Array(1), to.rank, 9), to.recv(new Uint8Array(1), from.rank, 9)]);
}

test('ranks that are told by one that was told do not fail again when the first notice comes', async () => {
  const { world, procs, barrier, tagOf, first } = await three();
  // Rank 2 stays behind. Rank 0 hears in the second barrier that the first was a mismatch, and tells whom it has not sent to; so do they.
  const second = await tagOf([0], () => barrier(0, 1));
  procs[2].failures.tell(0, second.ctx, second.tag, news, first.tag);
  await flush(world.comms[2], world.comms[0]);
  await flush(world.comms[0], world.comms[2]);
  expect(endsOf([...(await barrier(2)), ...(await second.ended)])).toEqual(Array(3).fill('ERR_COLLECTIVE_MISMATCH'));
  // Now the notices of the first come.
  for (const to of [1, 2]) {
    procs[0].failures.tell(to, first.ctx, first.tag, news);
    await flush(world.comms[0], world.comms[to]);
  }
  expect(endsOf(await barrier(0, 1, 2))).toEqual(['well', 'well', 'well']);
  await world.teardown();
});

test('a rank at which the later one ended well hears of the earlier one at its next', async () => {
  const { world, procs, barrier, tagOf, first } = await three();
  const second = await tagOf([0], () => barrier(0, 1, 2));
  expect(endsOf(await second.ended)).toEqual(['well', 'well', 'well']);
  procs[2].failures.tell(0, second.ctx, second.tag, news, first.tag);
  await flush(world.comms[2], world.comms[0]);
  expect(endsOf(await barrier(0, 1, 2))[0]).toBe('ERR_COLLECTIVE_MISMATCH');
  expect(endsOf(await barrier(0, 1, 2))).toEqual(['well', 'well', 'well']);
  await world.teardown();
});
