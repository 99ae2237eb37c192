// Buffers whose memory is taken away while a message uses them: that request fails, the peer is told, and nothing else suffers.
import { describe, expect, test } from 'vitest';
import { type Item, MemPair } from '../../support/mem-pair.ts';
import { pattern } from '../../support/pattern.ts';

const LONG = 5000;
const detach = (view: Uint8Array) => void structuredClone(view.buffer, { transfer: [view.buffer as ArrayBuffer] });
const hold = (type: string) => (item: Item) => (item.type === type ? 'hold' : 'pass');

/** Later messages both ways go through, and nothing is left over. */
function expectSound(pair: MemPair): void {
  pair.verdictOf = () => 'pass';
  pair.run();
  for (const side of [0, 1] as const) {
    const into = new Uint8Array(LONG);
    const recv = pair.recv(side, into, 99);
    const send = pair.send((1 - side) as 0 | 1, pattern(LONG, 7), 99);
    expect([recv.done, recv.error, send.done, send.error]).toEqual([true, undefined, true, undefined]);
    expect(into).toEqual(pattern(LONG, 7));
  }
  expect(pair.leftovers()).toEqual([]);
}

describe('a receive', () => {
  test.each([100, LONG])('posted, a message of %d bytes', (bytes) => {
    const pair = new MemPair();
    const into = new Uint8Array(bytes);
    const recv = pair.recv(1, into, 1);
    detach(into);
    const send = pair.send(0, pattern(bytes), 1);
    expect([recv.done, recv.error?.code, recv.receivedBytes]).toEqual([true, 'ERR_BUFFER', 0]);
    expect([send.done, send.error]).toEqual([true, undefined]);
    expectSound(pair);
  });

  test('matched, with fragments on their way', () => {
    const pair = new MemPair();
    pair.verdictOf = hold('FRAG');
    const into = new Uint8Array(LONG);
    const recv = pair.recv(1, into, 1);
    const send = pair.send(0, pattern(LONG), 1);
    detach(into);
    expect(recv.done).toBe(false);
    pair.verdictOf = () => 'pass';
    pair.run();
    expect([recv.done, recv.error?.code]).toEqual([true, 'ERR_BUFFER']);
    expect([send.done, send.error]).toEqual([true, undefined]);
    expectSound(pair);
  });
});

describe('a send', () => {
  test('before its first packet has left', () => {
    const pair = new MemPair();
    pair.busy.add(0);
    const from = pattern(LONG);
    const send = pair.send(0, from, 1);
    const recv = pair.recv(1, new Uint8Array(LONG), 1);
    detach(from);
    pair.busy.clear();
    pair.run();
    expect([send.done, send.error?.code]).toEqual([true, 'ERR_BUFFER']);
    expect([recv.done, recv.error?.code, recv.receivedBytes]).toEqual([true, 'ERR_BUFFER', 0]);
    expectSound(pair);
  });

  test('before its receive was posted: the peer hears it in place of the data', () => {
    const pair = new MemPair();
    const from = pattern(LONG);
    const send = pair.send(0, from, 1);
    detach(from);
    const recv = pair.recv(1, new Uint8Array(LONG), 1);
    expect([send.done, send.error?.code]).toEqual([true, 'ERR_BUFFER']);
    expect([recv.done, recv.error?.code, recv.receivedBytes]).toEqual([true, 'ERR_BUFFER', 0]);
    expect(pair.count('FRAG')).toBe(1);
    expectSound(pair);
  });

  test('in mid-rendezvous, and the rail that says so is lost', () => {
    const pair = new MemPair(2);
    pair.verdictOf = hold('FRAG');
    const from = pattern(LONG);
    const send = pair.send(0, from, 1);
    const recv = pair.recv(1, new Uint8Array(LONG), 1);
    detach(from);
    pair.run();
    pair.cut(0);
    pair.verdictOf = () => 'pass';
    pair.run();
    pair.restore(0);
    expect(send.done && recv.done).toBe(true);
    // What had left whole before may have been all of it.
    expect([undefined, 'ERR_BUFFER']).toContain(send.error?.code);
    expectSound(pair);
  });

  test('refused, and said again', () => {
    const pair = new MemPair();
    const from = pattern(LONG);
    const send = pair.send(0, from, 1);
    detach(from);
    let refusals = 2;
    pair.verdictOf = (item) => (item.type === 'FRAG' && item.state === 'sent' && refusals-- > 0 ? 'refuse' : 'pass');
    const recv = pair.recv(1, new Uint8Array(LONG), 1);
    pair.run();
    expect([send.error?.code, recv.error?.code]).toEqual(['ERR_BUFFER', 'ERR_BUFFER']);
    expectSound(pair);
  });

  test('eager, and copied: nothing happens to it', () => {
    const pair = new MemPair();
    pair.busy.add(0);
    const from = pattern(100);
    const send = pair.send(0, from, 1);
    detach(from);
    pair.busy.clear();
    pair.run();
    const into = new Uint8Array(100);
    expect(pair.recv(1, into, 1).error).toBeUndefined();
    expect(send.error).toBeUndefined();
    expect(into).toEqual(pattern(100));
    expectSound(pair);
  });
});
