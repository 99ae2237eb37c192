// What becomes of peers that no rail leads to: who is asked, when, and who goes where nobody can be asked.
import { describe, expect, test } from 'vitest';
import { type PartitionPolicy, PartitionWatch } from '../../../../src/mpi/ft/partition-watch.ts';

function watch(policy: PartitionPolicy, reached: number[], base = [0, 1, 2]) {
  const seen = { hasServer: true, reports: [] as [number, number, boolean][], asked: 0, dials: undefined as number | undefined };
  const options = {
    policy,
    refusedMs: 200,
    hostTimeoutMs: 10_000,
    peerTimeoutMs: 60_000,
    hasServer: () => seen.hasServer,
    report: (number: number, forMs: number, isFinal: boolean) => void seen.reports.push([number, forMs, isFinal]),
  };
  const view = {
    base: () => base,
    isReachable: (number: number) => reached.includes(number),
    refusedDials: () => seen.dials,
    ask: () => void seen.asked++,
  };
  return { seen, judge: new PartitionWatch(options, view) };
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

  test('one that does not answer counts as lost: then the majority goes on', () => {
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

describe('a peer whose kernel refuses', () => {
  test('is gone when it was dialled again after a while; while the server is there, which knows better, that is a long one', () => {
    const { seen, judge } = watch('arbiter', [0, 1]);
    expect(judge.judge(2, 100)).toBe('wait');
    expect(seen.asked).toBe(0);
    seen.dials = 3;
    expect(judge.judge(2, 300)).toBe('wait');
    expect(seen.asked).toBe(1);
    seen.dials = 5;
    expect(judge.judge(2, 10_299)).toBe('wait');
    expect(judge.judge(2, 10_300)).toBe('gone');
    const alone = watch('majority', [2]);
    alone.seen.dials = 3;
    alone.judge.judge(0, 300);
    expect(alone.judge.judge(0, 600), 'not dialled since').toBe('wait');
    alone.seen.dials = 4;
    expect(alone.judge.judge(0, 499)).toBe('wait');
    expect(alone.judge.judge(0, 500)).toBe('gone');
  });

  test('once is not enough: it answers otherwise in between, or a rail is back', () => {
    const { seen, judge } = watch('none', [1]);
    seen.dials = 1;
    judge.judge(0, 300);
    seen.dials = undefined;
    judge.judge(0, 450);
    seen.dials = 3;
    expect(judge.judge(0, 600)).toBe('wait');
    seen.dials = 9;
    expect(judge.judge(0, 50), 'lost again').toBe('wait');
    expect(judge.judge(0, 249)).toBe('wait');
    expect(judge.judge(0, 250)).toBe('wait');
    seen.dials = 10;
    expect(judge.judge(0, 250)).toBe('gone');
  });
});
