// Sends that their user gives up before they have ended: the buffer is the user's again at once, or as soon as nothing reads it, and the
// message still arrives whole, whatever happens to the buffer and to the rails.
import { describe, expect, test } from 'vitest';
import { MultirailError } from '../../../src/errors.ts';
import { markOf } from '../../../src/pml/pending.ts';
import type { SendRequest } from '../../../src/pml/records.ts';
import { Iov } from '../../../src/util/iov.ts';
import { type Item, MemPair, type Verdict } from '../../support/mem-pair.ts';
import { pattern } from '../../support/pattern.ts';

const BYTES = 20_000;
const TOO_LATE = new MultirailError('ERR_TIMEOUT', 'the test gives it up');

const only =
  (type: string, verdict: Verdict) =>
  (item: Item): Verdict =>
    item.type === type ? verdict : 'pass';

/** A send that can be given up, from a buffer that is overwritten as soon as it is done. */
function begin(pair: MemPair, views?: (bytes: Uint8Array) => Uint8Array[]): { request: SendRequest; bytes: Uint8Array } {
  const bytes = pattern(BYTES);
  const request = pair.engines[0].pml.isend(1, 0, 7, new Iov(views?.(bytes) ?? [bytes]), false, 0, true);
  request.onDone = () => bytes.fill(0xee);
  pair.run();
  return { request, bytes };
}

function giveUp(pair: MemPair, request: SendRequest): void {
  pair.engines[0].pml.giveUp(request, TOO_LATE);
  pair.run();
}

/** The bytes, without thousands of numbers in the output. */
const firstWrong = (actual: Uint8Array, wanted = pattern(actual.length)): number => actual.findIndex((byte, i) => byte !== wanted[i]);

/** The message is received whole, and nothing is left of it. */
function expectArrival(pair: MemPair, into = new Uint8Array(BYTES), recv = pair.recv(1, into, 7)): void {
  pair.verdictOf = () => 'pass';
  pair.advance(50);
  expect([recv.done, recv.error, recv.receivedBytes]).toEqual([true, undefined, into.length]);
  expect(firstWrong(into)).toBe(-1);
  pair.advance(50);
  expect(pair.leftovers()).toEqual([]);
  expect(pair.engines[0].pml.abandonedBytes).toBe(0);
}

const phaseOf = (pair: MemPair): string => pair.engines[0].pml.openRequests().map(markOf).join('; ');

describe('a send that is given up', () => {
  test('before its envelope has left, for want of a rail', () => {
    const pair = new MemPair();
    pair.cut(0);
    const { request } = begin(pair);
    giveUp(pair, request);
    expect(request).toMatchObject({ done: true, error: TOO_LATE });
    expect(pair.engines[0].pml.abandonedBytes).toBe(BYTES);
    pair.restore(0);
    expectArrival(pair);
  });

  test('that nothing matches yet: envelope on the rail, and delivered', () => {
    for (const verdict of ['hold', 'mute', 'pass'] as const) {
      const pair = new MemPair();
      pair.verdictOf = only('RNDV', verdict);
      const { request } = begin(pair);
      giveUp(pair, request);
      expect(request.error?.code).toBe('ERR_TIMEOUT');
      expectArrival(pair);
    }
  });

  test('a second time, or after its end: nothing happens', () => {
    const pair = new MemPair();
    const { request } = begin(pair);
    giveUp(pair, request);
    pair.engines[0].pml.giveUp(request, new MultirailError('ERR_ABORTED', 'again'));
    expect(request.error).toBe(TOO_LATE);
    expectArrival(pair);
    const { request: ended } = begin(pair);
    pair.recv(1, new Uint8Array(BYTES), 7);
    giveUp(pair, ended);
    expect([ended.done, ended.error]).toEqual([true, undefined]);
  });

  test('in the middle of its data: only what may be asked for again is copied', () => {
    const pair = new MemPair();
    const into = new Uint8Array(BYTES);
    let frags = 0;
    pair.verdictOf = (item) => (item.type === 'FRAG' && ++frags > 10 ? 'hold' : 'pass');
    const { request } = begin(pair);
    const recv = pair.recv(1, into, 7);
    giveUp(pair, request);
    expect(request.error?.code).toBe('ERR_TIMEOUT');
    const { abandonedBytes } = pair.engines[0].pml;
    expect(abandonedBytes).toBeGreaterThan(0);
    expect(abandonedBytes).toBeLessThan(BYTES - 5000);
    expect(recv.done).toBe(false);
    expectArrival(pair, into, recv);
  });

  for (const [name, views] of [
    ['one piece', undefined],
    ['several pieces', (bytes: Uint8Array) => [bytes.subarray(0, 3), bytes.subarray(3, 9000), bytes.subarray(9000)]],
  ] as const) {
    test(`and whose rail is lost then: what is sent again comes from the copy of ${name}`, () => {
      const pair = new MemPair(2);
      const into = new Uint8Array(BYTES);
      pair.verdictOf = (item) => (item.type === 'FRAG' && item.rail === 0 ? 'hold' : 'pass');
      const { request } = begin(pair, views);
      const recv = pair.recv(1, into, 7);
      giveUp(pair, request);
      expect(request.error?.code).toBe('ERR_TIMEOUT');
      pair.cut(0);
      expectArrival(pair, into, recv);
      expect(pair.engines[0].pml.counters.restarts).toBe(1);
    });
  }

  test('to a receive that is shorter: no more than that is copied', () => {
    const pair = new MemPair();
    pair.verdictOf = only('FRAG', 'hold');
    const { request } = begin(pair);
    const into = new Uint8Array(5000);
    const recv = pair.recv(1, into, 7);
    giveUp(pair, request);
    expect(pair.engines[0].pml.abandonedBytes).toBeLessThan(5000);
    pair.verdictOf = () => 'pass';
    pair.advance(50);
    expect(recv.error?.code).toBe('ERR_TRUNCATE');
    expect(firstWrong(into)).toBe(-1);
    expect(pair.leftovers()).toEqual([]);
  });
});

describe('a buffer that cannot be given back yet', () => {
  test('is in the hands of a rail: the send waits, and says so', () => {
    const pair = new MemPair();
    pair.letsGo = false;
    pair.verdictOf = only('RNDV', 'hold');
    const { request } = begin(pair);
    giveUp(pair, request);
    expect(request.done).toBe(false);
    expect(phaseOf(pair)).toMatch(/ended by ERR_TIMEOUT, but rail mem#0 reads the memory$/);
    pair.letsGo = true;
    pair.advance(20);
    expect(request.error?.code).toBe('ERR_TIMEOUT');
    expectArrival(pair);
  });

  test('is too long to be copied: the send waits, and ends well when its message has arrived', () => {
    const pair = new MemPair(1, { abandonedBytesMax: BYTES + 5000 });
    const first = begin(pair);
    giveUp(pair, first.request);
    const second = begin(pair);
    giveUp(pair, second.request);
    expect([first.request.done, second.request.done]).toEqual([true, false]);
    expect(phaseOf(pair)).toMatch(/no room for a copy of the 20000 bytes that are left \(pml_abandoned_bytes_max\)/);
    const third = begin(pair);
    giveUp(pair, third.request);
    // The first one's copy is gone: there is room for the second, and for it only.
    pair.recv(1, new Uint8Array(BYTES), 7);
    pair.advance(20);
    expect(second.request.error?.code).toBe('ERR_TIMEOUT');
    expect(third.request.done).toBe(false);
    for (let i = 0; i < 2; i++) {
      const into = new Uint8Array(BYTES);
      pair.recv(1, into, 7);
      expect(firstWrong(into)).toBe(-1);
    }
    pair.advance(20);
    expect(third.request.done).toBe(true);
    expect(pair.leftovers()).toEqual([]);
    expect(pair.engines[0].pml.abandonedBytes).toBe(0);
  });

  test('whose peer dies meanwhile: the send ends with that', () => {
    const pair = new MemPair();
    pair.letsGo = false;
    pair.verdictOf = only('RNDV', 'hold');
    const { request } = begin(pair);
    giveUp(pair, request);
    pair.engines[0].failPeer(1, 'ERR_PROC_FAILED', 'the test says so');
    pair.run();
    expect(request.error?.code).toBe('ERR_PROC_FAILED');
    expect(pair.engines[0].pml.internals.core.givenUp.size).toBe(0);
  });
});
