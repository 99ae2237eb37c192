// What a collective through shared memory makes of a member that is gone, also while the memory is still being set up here.
import { expect, describe as group, test } from 'vitest';
import { MultirailError } from '../../../../src/errors.ts';
import type { Operation } from '../../../../src/mpi/coll/operation.ts';
import type { MemoryCall, Scope } from '../../../../src/mpi/coll/scope.ts';
import { SharedCalls } from '../../../../src/mpi/coll/shared/call-memory.ts';
import { CONTRIBUTION, SharedSegment, segmentBytes } from '../../../../src/mpi/coll/shared/segment.ts';
import type { Ending } from '../../../../src/progress/peers.ts';

const LEFT = new MultirailError('ERR_PROC_FAILED', 'rank 2 has left the job');
const DIED = new MultirailError('ERR_PROC_FAILED', 'rank 2 has died');

const HOST = { add: () => undefined, ring: () => undefined, native: undefined, isCrowded: false };

/** Rank 0 of three, in its first collective, which waits for the memory; rank 2 has ended in that way, or has not. */
function waiting(ending: Ending | undefined): { failures: MultirailError[]; memory: SharedCalls; call: MemoryCall } {
  const failures: MultirailError[] = [];
  const engine = { pml: { nextOpened: () => 0 }, endingOf: (rank: number) => (rank === 2 ? ending : undefined) };
  const scope = { name: 'world', rank: 0, size: 3, members: [0, 1, 2], proc: { rank: 0, membersGone: ending ? 1 : 0, engine } };
  const memory = new SharedCalls(scope as unknown as Scope, HOST);
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

group('what a spin looks at', () => {
  test('nothing while the memory is set up by messages; then the word of the member that is waited for', () => {
    const { memory, call } = waiting(undefined);
    let seen: { words: Int32Array; at: number; seen: number }[] = [];
    const watch = (): boolean => {
      seen = [];
      return memory.watch({ add: (words, at, value) => seen.push({ words, at, seen: value }) > 0 });
    };
    const hasChanged = (): boolean => seen.some(({ words, at, seen }) => words[at] !== seen);
    expect([watch(), seen.length]).toEqual([true, 0]);
    const segment = new SharedSegment(new ArrayBuffer(segmentBytes(3, 256)), 3, 256);
    memory.setUpEnded(segment, () => undefined);
    // It has its turn now.
    expect(watch()).toBe(false);
    expect(memory.look(call)).toBe(true);
    memory.expect(CONTRIBUTION, 0, 3, 1, 0);
    for (const member of [0, 1, 2]) {
      expect(memory.look(call)).toBe(false);
      expect([watch(), hasChanged()]).toEqual([true, false]);
      segment.words[segment.flagAt(member, CONTRIBUTION, 1)] = 1;
      expect([hasChanged(), watch()]).toEqual([true, false]);
    }
    expect(memory.look(call)).toBe(true);
    expect(watch()).toBe(false);
  });
});

group('a member has died that had put its part', () => {
  /** Rank 0 of three waits for rank 1, which lives; rank 2 has died behind its part. */
  function lookingSlowly(failureOf: (() => MultirailError) | undefined): MultirailError[] {
    const failures: MultirailError[] = [];
    const ended = { ended: DIED, failure: DIED };
    const pml = { nextOpened: () => 0, iprobe: () => undefined };
    const engine = { pml, endingOf: (rank: number) => (rank === 2 ? ended : undefined) };
    const proc = { rank: 0, membersGone: 1, pml, engine, failureOf };
    const scope = { name: 'world', rank: 0, size: 3, members: [0, 1, 2], proc };
    const memory = new SharedCalls(scope as unknown as Scope, HOST);
    const call = { done: false, tag: 1, code: 0, awaitMemory: () => undefined, fail: (error: MultirailError) => failures.push(error) };
    memory.setUpBegins();
    const segment = new SharedSegment(new ArrayBuffer(segmentBytes(3, 256)), 3, 256);
    memory.setUpEnded(segment, () => undefined);
    for (const member of [0, 2]) segment.words[segment.flagAt(member, CONTRIBUTION, 1)] = 1;
    const steps = memory.run(
      call as unknown as Operation,
      function* () {},
      function* () {},
    );
    steps.next();
    expect(memory.look(call as unknown as MemoryCall)).toBe(true);
    memory.expect(CONTRIBUTION, 0, 3, 1, 0);
    expect(memory.look(call as unknown as MemoryCall)).toBe(false);
    memory.lookSlowly(false);
    return failures;
  }

  test('where deaths are survived the call ends: the one that is waited for may have no such memory, since it heard of the death in time', () => {
    expect(lookingSlowly(() => DIED)).toEqual([DIED]);
  });

  test('else the call goes on, since its parts are there, or come', () => {
    expect(lookingSlowly(undefined)).toEqual([]);
  });
});
