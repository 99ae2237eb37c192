// What a successor inherits: receives that wait for the dead, what was under way from it, what it lacks; and what it must repeat.
import { expect, test } from 'vitest';
import { MultirailError } from '../../../src/errors.ts';
import { PIECE_BYTES } from '../../../src/ft/log/entries.ts';
import { CHANNEL_EDGES, CHANNEL_STATES, Channel, type ChannelState } from '../../../src/pml/channel.ts';
import { CTX, filled, LONG_BYTES, Logged, MADE_CTX, NOTHING_SAVED } from './logged.ts';

/** 0 lives, 1 dies, 2 succeeds it. */
const duo = (): Logged => new Logged(2, 2);

test('who waits for a process that died goes on waiting, and its successor is received in its place', () => {
  const jobs = duo();
  const into = filled(10, 0);
  const receive = jobs.receive(0, 1, 3, into);
  jobs.kill(1);
  jobs.run();
  expect(receive.done).toBe(false);
  jobs.replace(1, 2, [0, 2], NOTHING_SAVED);
  expect(jobs.sync(0, 2)).toBe(true);
  jobs.send(2, 0, 3, filled(10, 7));
  jobs.run();
  expect([receive.done, receive.error, receive.matchedSource]).toEqual([true, undefined, 2]);
  expect(into).toEqual(filled(10, 7));
});

test('what is sent to the dead is only logged, and its successor is sent all of it, in order', () => {
  const jobs = duo();
  jobs.send(0, 1, 1, filled(10, 1));
  jobs.run();
  jobs.kill(1);
  expect(jobs.send(0, 1, 1, filled(LONG_BYTES, 2))).toMatchObject({ done: true, error: undefined });
  jobs.replace(1, 2, [0, 2], NOTHING_SAVED);
  // Before the successor has said what it has nothing leaves for it.
  jobs.send(0, 2, 1, filled(10, 3));
  jobs.run();
  expect(jobs.pml(2).counters.messagesReceived + jobs.pml(2).counters.matchesUnexpected).toBe(0);
  expect([jobs.of(0).isSynced, jobs.of(0).isReplaying]).toEqual([false, true]);

  jobs.sync(0, 2);
  const into = [filled(10, 0), filled(LONG_BYTES, 0), filled(10, 0)];
  const receives = into.map((buffer) => jobs.receive(2, 0, 1, buffer));
  jobs.run();
  expect(receives.map(({ done }) => done)).toEqual([true, true, true]);
  expect(into).toEqual([filled(10, 1), filled(LONG_BYTES, 2), filled(10, 3)]);
  expect([jobs.of(0).isSynced, jobs.of(0).isReplaying]).toEqual([true, false]);
  expect(jobs.of(0).tap.counters).toMatchObject({ logged: 3, replayed: 3 });
});

test('a successor sends what is lacking in the middle, and what was received it numbers and compares', () => {
  const jobs = duo();
  const into = [filled(10, 0), filled(LONG_BYTES, 0), filled(10, 0)];
  const receives = into.map((buffer, tag) => jobs.receive(0, 1, tag, buffer));
  const say = (rank: number) => [10, LONG_BYTES, 10].map((bytes, tag) => jobs.send(rank, 0, tag, filled(bytes, tag + 1)));
  say(1);
  jobs.run(30);
  expect(receives.map(({ done }) => done)).toEqual([true, false, true]);
  jobs.kill(1);
  jobs.replace(1, 2, [0, 2], NOTHING_SAVED);
  expect(jobs.of(0).syncFor(2).contexts).toMatchObject([{ ctx: CTX, nextIn: 3, holes: [1] }]);
  jobs.sync(0, 2);
  expect(jobs.of(2).isReplaying).toBe(true);
  expect(say(2).map(({ done, error }) => [done, error])).toEqual(Array(3).fill([true, undefined]));
  expect(jobs.of(2).isReplaying).toBe(false);
  jobs.run();
  expect([receives[1].done, receives[1].error]).toEqual([true, undefined]);
  expect(into[1]).toEqual(filled(LONG_BYTES, 2));
  expect(jobs.of(2).tap.counters).toMatchObject({ logged: 3, suppressed: 2 });
  expect(jobs.of(0).syncFor(2).contexts).toMatchObject([{ ctx: CTX, nextIn: 3, holes: [] }]);
});

test.each([
  { what: 'other bytes', bytes: filled(10, 9), tag: 4 },
  { what: 'another length', bytes: filled(9, 1), tag: 4 },
  { what: 'another tag', bytes: filled(10, 1), tag: 5 },
])('a successor that repeats a message with $what is told so', ({ bytes, tag }) => {
  const jobs = duo();
  jobs.receive(0, 1, 4, filled(10, 0));
  jobs.send(1, 0, 4, filled(10, 1));
  jobs.run();
  jobs.kill(1);
  jobs.replace(1, 2, [0, 2], NOTHING_SAVED);
  jobs.sync(0, 2);
  const { error } = jobs.send(2, 0, tag, bytes);
  expect(error).toMatchObject({ code: 'ERR_REPLAY' });
  // The program may let the error pass: it is told all the same.
  expect(jobs.differences).toEqual([error]);
  // What comes after it does not leave.
  expect(jobs.send(2, 0, 4, filled(10, 1)).error).toBe(error);
  jobs.run();
  expect(jobs.of(0).syncFor(2).contexts).toMatchObject([{ ctx: CTX, nextIn: 1 }]);
  expect(error?.message).toMatch(
    /message 0 of context 20 to rank 0, .* bytes and digest [0-9a-f]+; before the failure it had 10 bytes and digest/,
  );
});

test('a message that waits for its receive outlives its sender; a synchronous one comes again, so that the successor waits for the match', () => {
  const jobs = duo();
  jobs.send(1, 0, 1, filled(10, 1));
  jobs.send(1, 0, 2, filled(10, 2), { sync: true });
  jobs.run();
  jobs.kill(1);
  jobs.replace(1, 2, [0, 2], NOTHING_SAVED);
  jobs.sync(0, 2);
  jobs.send(2, 0, 1, filled(10, 1));
  const send = jobs.send(2, 0, 2, filled(10, 2), { sync: true });
  jobs.run();
  expect(send.done).toBe(false);
  const into = [filled(10, 0), filled(10, 0)];
  const receives = into.map((buffer, i) => jobs.receive(0, 2, i + 1, buffer));
  jobs.run();
  expect([...receives, send].map(({ done }) => done)).toEqual([true, true, true]);
  expect(into).toEqual([filled(10, 1), filled(10, 2)]);
  expect(jobs.pml(0).counters.envelopeDuplicates).toBe(0);
});

test('a synchronous send whose receiver has a successor may be ended before its time', () => {
  const jobs = duo();
  const send = jobs.send(0, 1, 1, filled(10, 1), { sync: true });
  jobs.run();
  jobs.kill(1);
  jobs.replace(1, 2, [0, 2], NOTHING_SAVED);
  jobs.run();
  expect([send.done, send.peer]).toEqual([false, 2]);
  jobs.pml(0).giveUp(send, new MultirailError('ERR_TIMEOUT', 'too long'));
  jobs.run();
  expect([send.done, send.error?.code]).toEqual([true, 'ERR_TIMEOUT']);
});

test('what a successor has to say comes too early where its succession is not known', () => {
  const jobs = duo();
  jobs.kill(1);
  expect(jobs.of(0).takeSync(2, { contexts: [] })).toBe(false);
  jobs.of(0).succeed(1, 2);
  expect(jobs.of(0).takeSync(2, { contexts: [] })).toBe(true);
  expect(jobs.of(0).takeSync(2, { contexts: [] })).toBe(false);
});

test('a successor that dies before it has said what it has is succeeded with the numbers of the first', () => {
  const jobs = duo();
  const receives = [1, 2, 3].map((tag) => jobs.receive(0, 1, tag, filled(10, 0)));
  for (const tag of [1, 2]) jobs.send(1, 0, tag, filled(10, tag));
  jobs.run();
  jobs.kill(1);
  jobs.replace(1, 2, [0, 2], NOTHING_SAVED);
  jobs.kill(2);
  jobs.replace(2, 3, [0, 3], NOTHING_SAVED);
  expect(jobs.of(0).syncFor(3).contexts).toMatchObject([{ ctx: CTX, nextIn: 2, holes: [] }]);
  expect(jobs.of(0).tap.suspended).toBe(1);
  jobs.sync(0, 3);
  for (const tag of [1, 2, 3]) expect(jobs.send(3, 0, tag, filled(10, tag)).error).toBe(undefined);
  jobs.run();
  expect(receives.map(({ done }) => done)).toEqual([true, true, true]);
  expect(jobs.of(3).tap.counters).toMatchObject({ suppressed: 2 });
  expect(jobs.of(0).tap.suspended).toBe(0);
});

test('a successor goes on from a save: its numbers, what waited for a receive, and of the log what came later', () => {
  const jobs = duo();
  jobs.send(0, 1, 1, filled(10, 1));
  jobs.send(1, 0, 1, filled(10, 1));
  jobs.run();
  const cuts = [jobs.of(0).cut(), jobs.of(1).cut()];
  expect(cuts[1]).toMatchObject({ flows: [{ peer: 0, ctx: CTX, nextOut: 1, nextIn: 1 }], unexpected: [{ source: 0, tag: 1, seq: 0 }] });
  jobs.of(0).commit(cuts[0]);
  jobs.of(1).commit(cuts[1]);
  expect(jobs.logs[0].messageCount).toBe(0);
  jobs.send(0, 1, 1, filled(10, 2));
  jobs.run();
  jobs.kill(1);
  jobs.replace(1, 2, [0, 2], cuts[1]);
  jobs.sync(0, 2);
  const into = [filled(10, 0), filled(10, 0)];
  for (const buffer of into) jobs.receive(2, 0, 1, buffer);
  jobs.run();
  expect(into).toEqual([filled(10, 1), filled(10, 2)]);
  expect(jobs.of(0).tap.counters.replayed).toBe(1);
});

test('no save is cut while data are to come again', () => {
  const jobs = duo();
  jobs.receive(0, 1, 1, filled(LONG_BYTES, 0));
  jobs.send(1, 0, 1, filled(LONG_BYTES, 1));
  jobs.run(30);
  jobs.kill(1);
  jobs.replace(1, 2, [0, 2], NOTHING_SAVED);
  expect(() => jobs.of(0).cut()).toThrow('a save is cut while data of rank 2 are to come again');
});

test('a context that is gone is not in a save: its numbers are forgotten with the commit, and no successor waits for them', () => {
  const jobs = duo();
  jobs.receive(1, 0, 1, filled(10, 0), MADE_CTX);
  jobs.send(0, 1, 1, filled(10, 1), { ctx: MADE_CTX });
  jobs.run();
  for (const rank of [0, 1]) jobs.pml(rank).releaseContext(MADE_CTX);
  // Until then a successor may send on it again.
  expect(jobs.of(1).syncFor(0).contexts).toMatchObject([{ ctx: MADE_CTX, nextIn: 1 }]);
  const cuts = [jobs.of(0).cut(), jobs.of(1).cut()];
  expect(cuts.map(({ flows, released }) => [flows, released])).toEqual([
    [[], 1],
    [[], 1],
  ]);
  jobs.of(0).commit(cuts[0]);
  expect(jobs.logs[0].messageCount).toBe(0);
  jobs.kill(1);
  jobs.replace(1, 2, [0, 2], cuts[1]);
  jobs.sync(0, 2);
  expect([jobs.of(0).isReplaying, jobs.of(2).isReplaying]).toEqual([false, false]);
});

test('where all go back, what waits for the dead or for a successor ends', () => {
  const jobs = duo();
  const receive = jobs.receive(0, 1, 1, filled(10, 0));
  jobs.kill(1);
  const send = jobs.send(0, 1, 2, filled(10, 1), { sync: true });
  expect([receive.done, send.done]).toEqual([false, false]);
  jobs.of(0).giveUp(new MultirailError('ERR_REVOKED', 'all go back'));
  expect([receive, send].map(({ done, error }) => [done, error?.code])).toEqual([
    [true, 'ERR_REVOKED'],
    [true, 'ERR_REVOKED'],
  ]);
  expect(jobs.of(0).tap.suspended).toBe(0);
});

test('a death fails where the log was given up', () => {
  const jobs = new Logged(2, 1, 3000 + PIECE_BYTES);
  for (const value of [1, 2]) jobs.send(0, 1, value, filled(2000, value));
  expect(jobs.logs[0].isWhole).toBe(false);
  const receive = jobs.receive(0, 1, 1, filled(10, 0));
  jobs.kill(1);
  expect(receive).toMatchObject({ done: true, error: { code: 'ERR_PROC_FAILED' } });
  expect(() => jobs.of(0).succeed(1, 2)).toThrow('rank 1 is succeeded, and is not held');
});

test('a channel takes the edges of its table, and no other', () => {
  const states = Object.keys(CHANNEL_STATES) as ChannelState[];
  for (const from of states) {
    for (const to of states) {
      const channel = new Channel(from);
      if (CHANNEL_EDGES[from].includes(to)) channel.move(to);
      else expect(() => channel.move(to)).toThrow(`no edge ${from} -> ${to} of a channel`);
      expect(channel.state).toBe(CHANNEL_EDGES[from].includes(to) ? to : from);
    }
  }
});
