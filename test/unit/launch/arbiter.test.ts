// Who is taken for dead though nobody saw the process end: what the server of a job makes of reports and of silence.
import { describe, expect, test } from 'vitest';
import { ARBITER_WAIT_MS, Arbiter } from '../../../src/launch/oob/arbiter.ts';
import type { Member } from '../../../src/launch/oob/member.ts';

const LIMITS = { joinTimeoutMs: 120_000, exitGraceMs: 2000, reconnectTimeoutMs: 60_000 };
const NOW_MS = 200_000;

/** Members that have joined, are heard of, and have a lifeline; `change` makes some of them others. */
function job(size: number, change: Record<number, Partial<Member>> = {}, goOn = true) {
  const members = Array.from({ length: size }, (_, rank) => ({
    rank,
    isOwned: false,
    exit: undefined,
    info: { incarnation: 1, pid: 100 + rank, hostId: 'h' },
    lifeline: {},
    lifelineEndedMs: undefined,
    standsBy: false,
    lastContactMs: NOW_MS,
    ...change[rank],
  })) as unknown as Member[];
  return { members, arbiter: new Arbiter(members, LIMITS, goOn) };
}
const silentFor = (ms: number): Partial<Member> => ({ lifeline: undefined, lastContactMs: NOW_MS - ms });
const named = (verdicts: { number: number }[]) => verdicts.map(({ number }) => number);

describe('reports', () => {
  test('of two that do not reach each other, and are both heard of, one goes once others could have spoken', () => {
    const { arbiter } = job(3);
    arbiter.take(0, 2, 60_000, true, NOW_MS);
    expect(arbiter.judge(NOW_MS + ARBITER_WAIT_MS - 1)).toEqual([]);
    arbiter.take(1, 2, 60_000, true, NOW_MS + 500);
    const [{ number, text }, ...others] = arbiter.judge(NOW_MS + ARBITER_WAIT_MS);
    expect([number, others]).toEqual([2, []]);
    expect(text).toBe('rank 2 (pid 102) is taken for dead: no rail connects it with rank 0, 1, and one of them has to go (ft_partition)');
    expect(arbiter.judge(NOW_MS + 10 * ARBITER_WAIT_MS), 'reports about it are over').toEqual([]);
  });

  test('an early one is enough where the server does not hear of the process, either, and hears the majority', () => {
    const { arbiter } = job(3, { 2: silentFor(10_000) });
    arbiter.take(0, 2, 9000, false, NOW_MS);
    const verdicts = arbiter.judge(NOW_MS);
    expect(named(verdicts)).toEqual([2]);
    expect(verdicts[0].text).toBe('rank 2 (pid 102) was not heard of for 10000 ms, and no rail leads to it from rank 0');
  });

  test.each<[string, Record<number, Partial<Member>>]>([
    ['the kernel of its host answers', { 2: { lastContactMs: NOW_MS - 50_000 } }],
    ['it was heard of later than that', { 2: silentFor(8000) }],
    ['its owner waits for the process', { 2: { ...silentFor(10_000), isOwned: true } }],
    ['the server is with the minority', { 1: silentFor(10_000), 2: silentFor(10_000) }],
    ['it has ended', { 2: { ...silentFor(10_000), exit: { code: 0, signal: '', finalized: false, lost: false } } }],
  ])('an early one is not where %s', (_, change) => {
    const { arbiter } = job(3, change);
    arbiter.take(0, 2, 9000, false, NOW_MS);
    expect(arbiter.judge(NOW_MS)).toEqual([]);
  });

  test('the last ones about processes that are not heard of: the majority goes on, and the minority takes nobody for dead', () => {
    const cut = { lastContactMs: NOW_MS - 5000 };
    const most = job(3, { 2: cut });
    most.arbiter.take(0, 2, 60_000, true, NOW_MS - ARBITER_WAIT_MS);
    expect(named(most.arbiter.judge(NOW_MS))).toEqual([2]);
    const few = job(3, { 1: cut, 2: cut });
    for (const about of [1, 2]) few.arbiter.take(0, about, 60_000, true, NOW_MS - ARBITER_WAIT_MS);
    expect(few.arbiter.judge(NOW_MS)).toEqual([]);
  });

  test('processes that stand by count for no side', () => {
    const cut = { lastContactMs: NOW_MS - 5000 };
    const { arbiter } = job(5, { 1: cut, 2: cut, 3: { standsBy: true }, 4: { standsBy: true } });
    for (const about of [1, 2]) arbiter.take(0, about, 60_000, true, NOW_MS - ARBITER_WAIT_MS);
    expect(arbiter.judge(NOW_MS)).toEqual([]);
  });

  test('about nobody, or itself, are nothing', () => {
    const { arbiter } = job(2);
    arbiter.take(0, 0, 60_000, true, NOW_MS - ARBITER_WAIT_MS);
    arbiter.take(0, 7, 60_000, true, NOW_MS - ARBITER_WAIT_MS);
    expect(arbiter.judge(NOW_MS)).toEqual([]);
  });
});

describe('silence', () => {
  test('where the others go on, the minority takes nobody for dead, unless nobody is left there', () => {
    const silent = silentFor(61_000);
    expect(named(job(3, { 2: silent }).arbiter.judge(NOW_MS))).toEqual([2]);
    expect(job(3, { 1: silent, 2: silent }).arbiter.judge(NOW_MS)).toEqual([]);
    expect(named(job(3, { 0: silent, 1: silent, 2: silent }).arbiter.judge(NOW_MS))).toEqual([0, 1, 2]);
    expect(named(job(3, { 1: silent, 2: silent }, false).arbiter.judge(NOW_MS)), 'where a death ends the job').toEqual([1, 2]);
  });

  test('is short enough where all others have come to their end: they have left without it', () => {
    const left = { lifeline: undefined, exit: { code: 0, signal: '', finalized: true, lost: false } } as const;
    const failed = { ...left, exit: { ...left.exit, code: 1, finalized: false } };
    expect(named(job(3, { 0: left, 1: left, 2: silentFor(3001) }).arbiter.judge(NOW_MS))).toEqual([2]);
    expect(job(3, { 0: left, 1: left, 2: silentFor(2999) }).arbiter.judge(NOW_MS), 'not yet').toEqual([]);
    expect(job(3, { 0: left, 2: silentFor(3001) }).arbiter.judge(NOW_MS), 'rank 1 is still there').toEqual([]);
    expect(job(3, { 0: failed, 1: failed, 2: silentFor(3001) }).arbiter.judge(NOW_MS), 'nobody has come to its end').toEqual([]);
    expect(job(3, { 0: left, 1: left, 2: silentFor(3001) }, false).arbiter.judge(NOW_MS), 'where a death ends the job').toEqual([]);
  });

  test('of what is certain there is no such doubt', () => {
    const { arbiter } = job(3, { 1: { lifelineEndedMs: NOW_MS - 2001 }, 2: { info: undefined, lastContactMs: NOW_MS - 120_001 } });
    expect(named(arbiter.judge(NOW_MS))).toEqual([1, 2]);
  });
});
