// Short messages on a rail that is late: they go over another rail, too, and count once, whichever copy comes first and whatever becomes of the
// other one.
import { expect, test } from 'vitest';
import { SendLog } from '../../../src/ft/log/send-log.ts';
import { ANY } from '../../../src/pml/match.ts';
import type { Succession } from '../../../src/pml/succession.ts';
import { crc32cJs } from '../../../src/util/crc32c.ts';
import { type Item, MemPair, OPTIONS, type Verdict } from '../../support/mem-pair.ts';
import { pattern } from '../../support/pattern.ts';

/** These rails keep the short messages that they have been given. */
const holdsMatches =
  (...rails: number[]) =>
  ({ type, rail }: Item): Verdict =>
    type === 'MATCH' && rails.includes(rail) ? 'hold' : 'pass';

function expectClean(pair: MemPair): void {
  pair.advance(50);
  expect(pair.leftovers()).toEqual([]);
}

/** Time passes until copies are sent, or for 40 ms. */
function waitForCopies(pair: MemPair): void {
  for (let ms = 0; ms < 40 && pair.engines[0].pml.counters.envelopesHedged === 0; ms++) {
    pair.nowMs++;
    pair.run();
  }
}

/** Rail 0 keeps what it has been given, until what it holds is late. */
function late(rails = 2): MemPair {
  const pair = new MemPair(rails);
  pair.verdictOf = holdsMatches(0);
  for (const tag of [1, 2, 3]) pair.send(0, pattern(300, tag), tag);
  waitForCopies(pair);
  return pair;
}

test('what a rail holds is late: its messages go over another one, too, long before it is left, and count once', () => {
  const pair = late();
  const { counters } = pair.engines[0].pml;
  expect(pair.nowMs).toBeLessThan(OPTIONS.bml.stallTimeoutMs / 2);
  expect(counters).toMatchObject({ envelopesHedged: 3, bytesHedged: 900, envelopesResent: 0 });
  const into = new Uint8Array(300);
  for (const tag of [1, 2, 3]) {
    expect(pair.recv(1, into, ANY)).toMatchObject({ matchedTag: tag, receivedBytes: 300 });
    expect(into).toEqual(pattern(300, tag));
  }
  // They have come; the rail still has the frames.
  expect(pair.engines[0].pml.retainedBytes).toBe(0);
  expect(pair.inFlight(0)).toEqual(['MATCH', 'MATCH', 'MATCH']);
  // Records of short messages are used again: none of those that a rail has.
  for (const tag of [4, 5, 6, 7]) pair.send(0, pattern(300, tag), tag);
  pair.verdictOf = () => 'pass';
  pair.run();
  expect(pair.engines[1].pml.counters.envelopeDuplicates).toBe(3);
  for (const tag of [4, 5, 6, 7]) {
    expect(pair.recv(1, into, ANY).matchedTag).toBe(tag);
    expect(into).toEqual(pattern(300, tag));
  }
  expect(counters.envelopesHedged).toBe(3);
  expectClean(pair);
});

test('the rail to which copies went is lost with them: nothing is sent for that, and the late rail brings what it has', () => {
  const pair = new MemPair(2);
  pair.verdictOf = holdsMatches(0, 1);
  pair.send(0, pattern(300, 1), 1);
  waitForCopies(pair);
  expect(pair.engines[0].pml.counters.envelopesHedged).toBe(1);
  expect(pair.inFlight(0)).toEqual(['MATCH', 'MATCH']);
  const [original, copy] = pair.endpoints[0].map(({ items }) => items[0]);
  expect([copy.rail, copy.header.subarray(0, 24), copy.payload]).toEqual([1, original.header.subarray(0, 24), original.payload]);
  pair.cut(1);
  expect(pair.engines[0].pml.retainedBytes).toBe(300);
  pair.verdictOf = () => 'pass';
  const into = new Uint8Array(300);
  expect(pair.recv(1, into, 1).done).toBe(true);
  expect(into).toEqual(pattern(300, 1));
  expect(pair.engines[0].pml.counters).toMatchObject({ envelopesHedged: 1, envelopesResent: 0 });
  expectClean(pair);
});

/** Rank 0 goes back together with rank 1, in whose life no message of this one may come. */
function grouped(pair: MemPair): Succession {
  const log = new SendLog({ bytesMax: 100_000, slabBytes: 1000 });
  return pair.engines[0].pml.log({ log, covers: () => true, digest: crc32cJs, within: [1] }, [0, 1]);
}

test('a copy of what has come may still be on a late rail: whoever goes back with its receiver waits until it is not', () => {
  const pair = new MemPair(2);
  const succession = grouped(pair);
  expect(succession.isDrained(1)).toBe(true);
  pair.verdictOf = holdsMatches(0);
  pair.send(0, pattern(300, 1), 1);
  expect(succession.isDrained(1)).toBe(false);
  waitForCopies(pair);
  const into = new Uint8Array(300);
  expect(pair.recv(1, into, 1).done).toBe(true);
  expect(pair.engines[0].pml.retainedBytes).toBe(0);
  expect(pair.inFlight(0)).toEqual(['MATCH']);
  expect(succession.isDrained(1)).toBe(false);
  pair.verdictOf = () => 'pass';
  pair.run();
  expect(pair.engines[1].pml.counters.envelopeDuplicates).toBe(1);
  expect(succession.isDrained(1)).toBe(true);
  expectClean(pair);
});

test('a rail that is over may still bring what it has, until the peer knows', () => {
  const pair = new MemPair(2);
  const succession = grouped(pair);
  pair.send(0, pattern(300, 1), 1);
  expect(succession.isDrained(1)).toBe(true);
  pair.verdictOf = ({ type }) => (type === 'RAILDOWN' ? 'hold' : 'pass');
  pair.cut(0, 0);
  expect(pair.inFlight(0)).toEqual(['RAILDOWN']);
  expect(succession.isDrained(1)).toBe(false);
  pair.verdictOf = () => 'pass';
  pair.run();
  expect(succession.isDrained(1)).toBe(true);
  expect(pair.recv(1, new Uint8Array(300), 1).done).toBe(true);
  expectClean(pair);
});

test('of a rendezvous the envelope counts, and a second copy of it even when the message is over', () => {
  const pair = new MemPair(2);
  const succession = grouped(pair);
  pair.verdictOf = ({ type, rail }) => (type === 'RNDV' ? (rail === 0 ? 'mute' : 'hold') : 'pass');
  pair.send(0, pattern(100, 1), 1, true);
  expect(succession.isDrained(1)).toBe(false);
  // It has come. It is sent again over the other rail, and answered before that copy comes.
  pair.cut(0);
  expect(pair.inFlight(0).filter((type) => type === 'RNDV')).toEqual(['RNDV']);
  expect(pair.recv(1, new Uint8Array(100), 1).done).toBe(true);
  expect([...pair.engines[0].pml.peer(1).sends]).toEqual([]);
  expect(succession.isDrained(1)).toBe(false);
  pair.verdictOf = () => 'pass';
  pair.run();
  expect(pair.engines[1].pml.counters.envelopeDuplicates).toBe(1);
  expect(succession.isDrained(1)).toBe(true);
  expectClean(pair);
});

test('where no other rail is there, nothing is sent twice', () => {
  const pair = late(1);
  expect(pair.engines[0].pml.counters.envelopesHedged).toBe(0);
  expect(pair.inFlight(0)).toEqual(['MATCH', 'MATCH', 'MATCH']);
  pair.verdictOf = () => 'pass';
  const into = new Uint8Array(300);
  for (const tag of [1, 2, 3]) expect(pair.recv(1, into, ANY).matchedTag).toBe(tag);
  expectClean(pair);
});
