// What becomes of a message when it is logged: it is copied, leaves from the log, waits for room in it, and has a digest at its receiver.
import { expect, test } from 'vitest';
import { MultirailError } from '../../../src/errors.ts';
import { PIECE_BYTES } from '../../../src/ft/log/entries.ts';
import { DIGESTS_MAX } from '../../../src/pml/digests.ts';
import { digestOf } from '../../../src/pml/tap.ts';
import { crc32cJs } from '../../../src/util/crc32c.ts';
import { Iov } from '../../../src/util/iov.ts';
import { CTX, EAGER_BYTES, filled, LONG_BYTES, Logged, PLAIN_CTX } from './logged.ts';

test.each([0, 1, EAGER_BYTES, LONG_BYTES])('a send of %d bytes is done at once, and its buffer is free', (bytes) => {
  const pair = new Logged(2);
  const buffer = filled(bytes, 1);
  expect(pair.send(0, 1, 5, buffer)).toMatchObject({ done: true, error: undefined });
  buffer.fill(2);
  const into = filled(bytes, 0);
  const receive = pair.receive(1, 0, 5, into);
  pair.run();
  expect(receive).toMatchObject({ done: true, receivedBytes: bytes, matchedTag: 5 });
  expect(into).toEqual(filled(bytes, 1));
  expect([...pair.logs[0].messagesTo(1)]).toMatchObject([{ ctx: CTX, tag: 5, seq: 0 }]);
});

test('a synchronous send is done when its receive has matched, and not before', () => {
  const pair = new Logged(2);
  const send = pair.send(0, 1, 5, filled(10, 1), { sync: true });
  pair.run();
  expect(send.done).toBe(false);
  pair.receive(1, 0, 5, filled(10, 0));
  pair.run();
  expect(send).toMatchObject({ done: true, error: undefined });
});

test('messages of other contexts and to the process itself are not logged', () => {
  const pair = new Logged(2);
  pair.send(0, 1, 5, filled(10, 1), { ctx: PLAIN_CTX });
  pair.send(0, 0, 5, filled(10, 1));
  expect(pair.logs[0].messageCount).toBe(0);
  expect(pair.of(0).tap.counters).toMatchObject({ logged: 0, suppressed: 0 });
});

test('what finds no room waits until a save is committed, and a short message does not overtake it', () => {
  const pair = new Logged(2, 0, 3500 + PIECE_BYTES);
  const { log } = pair.of(0).tap.options;
  pair.receive(1, 0, 1, filled(2000, 0));
  pair.send(0, 1, 1, filled(2000, 1));
  pair.run();
  const cut = pair.of(0).cut();
  const second = pair.send(0, 1, 2, filled(2000, 2));
  const third = pair.send(0, 1, 3, filled(1, 3));
  expect([second.done, third.done, pair.of(0).tap.waitingCount]).toEqual([false, false, 2]);
  pair.run();
  expect([...log.messagesTo(1)].map(({ seq }) => seq)).toEqual([0]);

  pair.of(0).commit(cut);
  pair.world.processes[0].driver.ready = true;
  pair.run();
  expect([second.done, third.done, pair.of(0).tap.waitingCount]).toEqual([true, true, 0]);
  expect([...log.messagesTo(1)].map(({ seq, tag }) => [seq, tag])).toEqual([
    [1, 2],
    [2, 3],
  ]);
});

test('a message leaves whole although the log is trimmed and written anew while a rail reads from it', () => {
  const pair = new Logged(2);
  const { log } = pair.of(0).tap.options;
  const into = [filled(900, 0), filled(900, 0)];
  for (const [tag, buffer] of into.entries()) pair.receive(1, 0, tag, buffer);
  pair.run(1);
  pair.send(0, 1, 0, filled(900, 1));
  pair.run(2);
  log.cut();
  log.commit(() => true);
  pair.send(0, 1, 1, filled(900, 2));
  pair.run();
  expect(into).toEqual([filled(900, 1), filled(900, 2)]);
});

test('where no save is under way a full log is given up, and the message goes without it', () => {
  const pair = new Logged(2, 0, 3000 + PIECE_BYTES);
  pair.send(0, 1, 1, filled(2000, 1));
  const into = filled(2000, 0);
  const receives = [pair.receive(1, 0, 1, filled(2000, 0)), pair.receive(1, 0, 2, into)];
  pair.send(0, 1, 2, filled(2000, 2));
  pair.run();
  expect(receives.map(({ done }) => done)).toEqual([true, true]);
  expect(into).toEqual(filled(2000, 2));
  expect(pair.logs[0].isWhole).toBe(false);
  expect(pair.of(0).tap.counters).toMatchObject({ logged: 1, unlogged: 1 });
});

test('a log that somebody needs is not given up: the send waits, and may be ended before its time', () => {
  const pair = new Logged(2, 0, 3000 + PIECE_BYTES);
  pair.of(0).tap.mustKeep = true;
  pair.send(0, 1, 1, filled(2000, 1));
  const send = pair.send(0, 1, 2, filled(2000, 2));
  pair.run();
  expect([send.done, pair.logs[0].isWhole]).toEqual([false, true]);
  pair.pml(0).giveUp(send, new MultirailError('ERR_TIMEOUT', 'too long'));
  expect(send.error).toMatchObject({ code: 'ERR_TIMEOUT' });
  expect(pair.of(0).tap.waitingCount).toBe(0);
});

test('a short message takes its short way where nothing stands in it, and changes nothing where something does', () => {
  const jobs = new Logged(2, 1);
  const [pml, log] = [jobs.pml(0), jobs.logs[0]];
  const short = (rank: number, ctx = CTX, bytes = 10): boolean => pml.sendEager(rank, ctx, 5, new Iov([filled(bytes, 1)]));
  const seen = () => [log.messageCount, pml.counters.messagesSent, jobs.of(0).tap.counters.logged];
  expect([short(1), short(1, PLAIN_CTX), seen()]).toEqual([true, true, [1, 2, 1]]);
  expect([short(1, CTX, EAGER_BYTES + 1), seen()]).toEqual([false, [1, 2, 1]]);
  jobs.run();
  jobs.kill(1);
  expect([short(1), seen()]).toEqual([false, [1, 2, 1]]);
  jobs.replace(1, 2, [0, 2], { flows: [], unexpected: [] });
  expect([short(2), seen()]).toEqual([false, [1, 2, 1]]);
  // What was sent to the one that died is sent again; the peer lacks whatever comes now.
  jobs.sync(0, 2);
  expect([short(2), seen()]).toEqual([true, [2, 4, 2]]);
  const into = filled(10, 0);
  const receives = [jobs.receive(2, 0, 5, filled(10, 0)), jobs.receive(2, 0, 5, into)];
  jobs.run();
  expect(receives.map(({ done }) => done)).toEqual([true, true]);
  expect(into).toEqual(filled(10, 1));
});

test('a short message does not overtake one that waits for room', () => {
  const pair = new Logged(2, 0, 3500 + PIECE_BYTES);
  pair.send(0, 1, 1, filled(2000, 1));
  pair.of(0).tap.options.log.cut();
  expect(pair.send(0, 1, 2, filled(2000, 2)).done).toBe(false);
  expect(pair.pml(0).sendEager(1, CTX, 3, new Iov([filled(1, 3)]))).toBe(false);
});

test('the receiver has the digest of each message, by number, until a save is committed behind it', () => {
  const pair = new Logged(2);
  for (const bytes of [10, LONG_BYTES]) {
    pair.receive(1, 0, 4, filled(bytes, 0));
    pair.send(0, 1, 4, filled(bytes, bytes & 0xff));
  }
  pair.run();
  const digests = pair.of(1).syncFor(0).contexts[0].digests;
  const crcOf = (bytes: number) => digestOf(crc32cJs, 4, [filled(bytes, bytes & 0xff)]);
  expect(digests).toEqual([
    { seq: 0, bytes: 10, crc: crcOf(10) },
    { seq: 1, bytes: LONG_BYTES, crc: crcOf(LONG_BYTES) },
  ]);
  const cut = pair.of(1).cut();
  pair.receive(1, 0, 4, filled(10, 0));
  pair.send(0, 1, 4, filled(10, 9));
  pair.run();
  pair.of(1).commit(cut);
  expect(
    pair
      .of(1)
      .syncFor(0)
      .contexts[0].digests.map(({ seq }) => seq),
  ).toEqual([2]);
});

test('a digest is of the tag and of the bytes, however they are split', () => {
  const [whole, half] = [filled(8, 3), filled(4, 3)];
  expect(digestOf(crc32cJs, 1, [whole])).toBe(digestOf(crc32cJs, 1, [half, half]));
  expect(digestOf(crc32cJs, 1, [whole])).not.toBe(digestOf(crc32cJs, 2, [whole]));
  expect(digestOf(crc32cJs, 1, [whole])).not.toBe(digestOf(crc32cJs, 1, [half]));
});

test('digests of a peer are bounded', () => {
  const pair = new Logged(2);
  const { tap } = pair.of(1);
  const peer = [...pair.pml(1).peers].find(({ rank }) => rank === 0);
  if (peer === undefined) throw new Error('there is no peer');
  for (let seq = 0; seq < DIGESTS_MAX + 10; seq++) tap.received(peer, CTX, seq, 0, filled(0, 0), 0);
  expect(peer.flowIn(CTX).digests?.size).toBe(DIGESTS_MAX);
});
