// What becomes of peers that no rail leads to: who is asked, when, and who goes where nobody can be asked.
import { describe, expect, test } from 'vitest';
import { type PartitionPolicy, PartitionWatch } from '../../../../src/mpi/ft/partition-watch.ts';

function watch(policy: PartitionPolicy, reached: number[], base = [0, 1, 2]) {
  const seen = { hasServer: true, reports: [] as [number, number, boolean][] };
  const options = {
    policy,
    hostTimeoutMs: 10_000,
    peerTimeoutMs: 60_000,
    hasServer: () => seen.hasServer,
    report: (number: number, forMs: number, isFinal: boolean) => void seen.reports.push([number, forMs, isFinal]),
  };
  return { seen, judge: new PartitionWatch(options, { base: () => base, isReachable: (number) => reached.includes(number) }) };
}

describe('with a server that decides', () => {
  test('it hears of a peer twice, and again when a rail was back', () => {
    const { seen, judge } = watch('arbiter', [0, 1]);
    for (const forMs of [10, 9999, 10_000, 10_100, 59_999, 60_000, 60_001]) expect(judge.judge(2, forMs)).toBe('wait');
    expect(seen.reports).toEqual([
      [2, 10_000, false],
      [2, 60_000, true],
    ]);
    judge.judge(2, 5);
    judge.judge(2, 61_000);
    expect(seen.reports.slice(2)).toEqual([[2, 61_000, true]]);
  });

  test('one that does not answer, or is lost, is none: then the majority goes on', () => {
    const most = watch('arbiter', [0, 1]);
    expect(most.judge.judge(2, 119_999)).toBe('wait');
    expect(most.judge.judge(2, 120_000)).toBe('fail');
    most.seen.hasServer = false;
    expect(most.judge.judge(2, 59_999)).toBe('wait');
    expect(most.judge.judge(2, 60_000)).toBe('fail');
    const few = watch('arbiter', [2]);
    few.seen.hasServer = false;
    expect(few.judge.judge(0, 60_000)).toBe('leave');
  });
});

test('majority: nobody is asked', () => {
  const { seen, judge } = watch('majority', [1]);
  expect(judge.judge(0, 59_999)).toBe('wait');
  expect(judge.judge(0, 60_000)).toBe('leave');
  expect(seen.reports).toEqual([]);
});

test('none: whoever is out of reach is dead', () => {
  const { judge } = watch('none', [1]);
  expect(judge.judge(0, 59_999)).toBe('wait');
  expect(judge.judge(0, 60_000)).toBe('fail');
});
