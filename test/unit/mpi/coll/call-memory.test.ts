// What a collective through shared memory makes of a member that is gone while the memory is still being set up here.
import { expect, describe as group, test } from 'vitest';
import { MultirailError } from '../../../../src/errors.ts';
import type { Operation } from '../../../../src/mpi/coll/operation.ts';
import type { MemoryCall, Scope } from '../../../../src/mpi/coll/scope.ts';
import { SharedCalls } from '../../../../src/mpi/coll/shared/call-memory.ts';
import type { Ending } from '../../../../src/progress/peers.ts';

const LEFT = new MultirailError('ERR_PROC_FAILED', 'rank 2 has left the job');
const DIED = new MultirailError('ERR_PROC_FAILED', 'rank 2 has died');

/** Rank 0 of three, in its first collective, which waits for the memory; rank 2 has ended in that way, or has not. */
function waiting(ending: Ending | undefined): { failures: MultirailError[]; memory: SharedCalls; call: MemoryCall } {
  const failures: MultirailError[] = [];
  const engine = { pml: { nextOpened: () => 0 }, endingOf: (rank: number) => (rank === 2 ? ending : undefined) };
  const scope = { name: 'world', rank: 0, size: 3, members: [0, 1, 2], proc: { rank: 0, membersGone: ending ? 1 : 0, engine } };
  const memory = new SharedCalls(scope as unknown as Scope, { add: () => undefined, ring: () => undefined });
  const call = { done: false, tag: 1, awaitMemory: () => undefined, fail: (error: MultirailError) => failures.push(error) };
  memory.setUpBegins();
  const steps = memory.run(
    call as unknown as Operation,
    function* () {},
    function* () {},
  );
  steps.next();
  return { failures, memory, call: call as unknown as MemoryCall };
}

group('a member is gone while this rank sets up the memory', () => {
  test('it has left: it had come through its part of the call, which goes on', () => {
    const { failures, memory, call } = waiting({ ended: LEFT, failure: undefined });
    memory.check(call);
    expect(failures).toEqual([]);
    expect(memory.look(call)).toBe(false);
  });

  test('it has died: the call ends', () => {
    const { failures, memory, call } = waiting({ ended: DIED, failure: DIED });
    memory.check(call);
    expect(failures).toEqual([DIED]);
  });

  test('nobody is gone: the call waits', () => {
    const { failures, memory, call } = waiting(undefined);
    memory.check(call);
    expect(failures).toEqual([]);
  });
});
