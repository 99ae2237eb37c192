// What a process knows of deaths, and what users see and acknowledge of them.
import { describe, expect, test } from 'vitest';
import { EVIDENCE, EVIDENCE_TEXTS, FailedMembers, Knowledge, type Notice } from '../../../src/ulfm/knowledge.ts';
import { Revocation } from '../../../src/ulfm/revoke.ts';

const notice = (number: number, changes: Partial<Notice> = {}): Notice => ({
  serial: 0,
  number,
  incarnation: 5,
  evidence: EVIDENCE.PIDFD,
  text: 'gone',
  ...changes,
});

function knowledge(count = 8): Knowledge {
  const known = new Knowledge(2, 5);
  for (let number = 0; number < count; number++) known.addProcess(number, 5);
  return known;
}

describe('notices', () => {
  test('are news once', () => {
    const known = knowledge();
    expect(known.living).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(known.take(notice(4))).toBe('news');
    expect(known.take(notice(4))).toBe('known');
    expect(known.take(notice(4, { evidence: EVIDENCE.ENDED }))).toBe('known');
    expect(known.noticeOf(4)).toEqual(notice(4));
    expect(known.isFailed(4) && known.isGone(4)).toBe(true);
    expect(known.living).toEqual([0, 1, 2, 3, 5, 6, 7]);
    expect(known.neighbours).toEqual([3, 1, 5, 0, 6]);
  });

  test("get their serial from the server's copy", () => {
    const known = knowledge();
    known.take(notice(4));
    expect(known.take(notice(4, { serial: 9, text: 'waited for' }))).toBe('known');
    expect(known.noticeOf(4)).toEqual(notice(4, { serial: 9 }));
    known.take(notice(4, { serial: 10 }));
    expect(known.noticeOf(4)?.serial).toBe(9);
  });

  test('of an older incarnation say nothing', () => {
    const known = knowledge();
    expect(known.take(notice(4, { incarnation: 4 }))).toBe('older incarnation');
    expect(known.isFailed(4)).toBe(false);
    expect(known.take(notice(4, { incarnation: 6 }))).toBe('news');
  });

  test('may come before their process', () => {
    const known = knowledge();
    expect(known.take(notice(20))).toBe('news');
    known.addProcess(20, 5);
    expect(known.isFailed(20)).toBe(true);
    expect(known.take(notice(21, { incarnation: 3 }))).toBe('news');
    known.addProcess(21, 5);
    expect(known.isFailed(21)).toBe(false);
    expect(known.living).toContain(21);
  });

  test('of the last deaths are told to those that are heard of later, by their neighbours', () => {
    const known = knowledge();
    known.takeOld(notice(7));
    for (const number of [4, 20]) known.take(notice(number));
    known.addProcess(8, 5);
    expect(known.neighbours).toContain(8);
    expect(known.newsFor(8)).toEqual([notice(4), notice(20)]);
    // It lives, or so the server says that has given it a newer incarnation.
    known.addProcess(20, 6);
    expect(known.newsFor(8)).toEqual([notice(4)]);
    expect(known.newsFor(4)).toEqual([]);
    for (let number = 100; number < 200; number++) known.take(notice(number));
    expect(known.newsFor(3).map(({ number }) => number)).toEqual(Array.from({ length: 64 }, (_, i) => 136 + i));
    // Others tell it.
    for (let number = 9; number < 40; number++) known.addProcess(number, 5);
    expect(known.newsFor(17)).toEqual([]);
  });

  test('of this process are its own death', () => {
    const known = knowledge();
    expect(known.take(notice(2, { incarnation: 4 }))).toBe('older incarnation');
    expect(known.ownDeath).toBeUndefined();
    expect(known.take(notice(2))).toBe('own death');
    expect(known.take(notice(2))).toBe('known');
    expect(known.ownDeath).toEqual(notice(2));
    // Another process with our number: whoever believes it refuses us.
    expect(new Knowledge(2, 5).take(notice(2, { incarnation: 6 }))).toBe('own death');
  });

  test('are not needed of those that have left', () => {
    const known = knowledge();
    expect(known.leave(6)).toBe(true);
    expect(known.leave(6)).toBe(false);
    expect(known.leave(2)).toBe(false);
    expect([known.isGone(6), known.isFailed(6)]).toEqual([true, false]);
    expect(known.living).toEqual([0, 1, 2, 3, 4, 5, 7]);
  });

  test('every evidence has a text', () => {
    expect(Object.values(EVIDENCE).filter((number) => EVIDENCE_TEXTS[number] === undefined)).toEqual([]);
  });
});

describe('failed members', () => {
  test('are shown in rank order and acknowledged from the front', () => {
    const failures = new FailedMembers();
    expect(failures.get()).toEqual([]);
    expect(failures.hasUnacknowledged).toBe(false);
    for (const rank of [5, 3, 5, 9]) failures.add(rank);
    expect(failures.get()).toEqual([3, 5, 9]);
    expect(failures.acknowledge(2)).toBe(2);
    expect([3, 5, 9].map((rank) => failures.isAcknowledged(rank))).toEqual([true, true, false]);
    expect(failures.hasUnacknowledged).toBe(true);
    expect(failures.acknowledge()).toBe(3);
    expect(failures.hasUnacknowledged).toBe(false);
    expect(failures.acknowledge(0)).toBe(3);
  });

  test('a count is of what was shown, though a lower rank has failed since', () => {
    const failures = new FailedMembers();
    failures.add(5);
    expect(failures.get()).toEqual([5]);
    failures.add(2);
    expect(failures.acknowledge(1)).toBe(1);
    expect([2, 5].map((rank) => failures.isAcknowledged(rank))).toEqual([false, true]);
    expect(failures.get()).toEqual([2, 5]);
  });

  test('a rank with a successor has not failed', () => {
    const failures = new FailedMembers();
    failures.add(5);
    failures.get();
    failures.acknowledge();
    failures.revive(5);
    expect(failures.get()).toEqual([]);
    expect(failures.hasUnacknowledged).toBe(false);
    failures.add(5);
    expect(failures.hasUnacknowledged).toBe(true);
  });
});

describe('revocation', () => {
  const LIVING = [0, 1, 2, 3, 4, 5, 6, 7];

  test('is told once, to the neighbours and to those with a rendezvous', () => {
    const revocation = new Revocation(0, 8);
    expect(revocation.revoke(LIVING, [3, 1])).toEqual([1, 7, 2, 6, 4, 3]);
    expect(revocation.isRevoked).toBe(true);
    expect(revocation.revoke(LIVING, [5])).toEqual([]);
  });

  test('is answered where nothing says it already', () => {
    const revocation = new Revocation(0, 8);
    revocation.revoke(LIVING, []);
    expect(revocation.hasHeard(1)).toBe(false);
    // Ours is on its way to that one.
    expect(revocation.hear(1, true)).toBe(false);
    expect(revocation.hear(3, true)).toBe(true);
    expect(revocation.hear(3, true)).toBe(false);
    expect(revocation.hear(5, false)).toBe(false);
    expect([1, 2, 3, 5].map((rank) => revocation.hasHeard(rank))).toEqual([true, false, true, true]);
  });

  test('goes to the next living one when a neighbour dies', () => {
    const revocation = new Revocation(0, 8);
    expect(revocation.mend([0, 2, 3])).toEqual([]);
    revocation.revoke(LIVING, []);
    expect(revocation.mend([0, 3, 5, 7])).toEqual([3]);
    expect(revocation.mend([0, 3, 5])).toEqual([5]);
    expect(revocation.mend([0])).toEqual([]);
  });

  test('a successor has heard nothing', () => {
    const revocation = new Revocation(0, 4);
    revocation.revoke([0, 1, 2, 3], []);
    revocation.hear(1, true);
    revocation.revive(1);
    expect(revocation.hasHeard(1)).toBe(false);
    expect(revocation.mend([0, 1, 2, 3])).toEqual([1]);
  });
});
