// The log of what a rank has sent: its bound, its slabs, what is trimmed at a commit, and what becomes of it when it is full.
import { expect, test } from 'vitest';
import { ENTRY_BYTES, SendLog } from '../../../src/ft/log/send-log.ts';
import type { LoggedMessage } from '../../../src/pml/records.ts';
import { Iov } from '../../../src/util/iov.ts';

const SLAB = 1000;
const message = (seq: number) => ({ ctx: 1, tag: 0, seq, signature: 0, sync: false });
const bytes = (count: number, fill = 7): Iov => new Iov([new Uint8Array(count).fill(fill)]);

function logged(answer: LoggedMessage | 'full' | 'unlogged'): LoggedMessage {
  if (typeof answer === 'string') throw new Error(`the log says ${answer}`);
  return answer;
}

test('a message is copied: the buffer may be used again at once', () => {
  const log = new SendLog({ bytesMax: 10_000, slabBytes: SLAB });
  const buffer = new Uint8Array(10).fill(1);
  const entry = logged(log.add(3, message(0), new Iov([buffer]), false));
  buffer.fill(2);
  expect([...entry.payload.views[0]]).toEqual(Array(10).fill(1));
  expect(log.bytes).toBe(SLAB + ENTRY_BYTES);
});

test('a commit trims what was sent before the cut, and no more', () => {
  const log = new SendLog({ bytesMax: 100_000, slabBytes: SLAB });
  for (let seq = 0; seq < 6; seq++) log.add(3, message(seq), bytes(400), false);
  log.cut();
  log.add(3, message(6), bytes(400), false);
  log.commit((_peer, { seq }) => seq < 6);
  expect(log.messagesTo(3).map(({ seq }) => seq)).toEqual([6]);
  expect(log.isWhole).toBe(true);
});

test('a message that is longer than a slab has one of its own: short ones before and behind it share theirs', () => {
  const log = new SendLog({ bytesMax: 100_000, slabBytes: SLAB });
  for (let seq = 0; seq < 10; seq++) log.add(3, message(seq), bytes(seq % 2 === 0 ? 50 : 3000), false);
  expect(log.bytes).toBe(SLAB + 5 * 3000 + 10 * ENTRY_BYTES);
  log.cut();
  log.commit(() => true);
  expect(log.bytes).toBe(SLAB);
  expect(log.usedBytes).toBe(0);
});

test('an abandoned save trims nothing', () => {
  const log = new SendLog({ bytesMax: 100_000, slabBytes: SLAB });
  log.add(3, message(0), bytes(400), false);
  log.cut();
  log.abandon();
  expect(log.messagesTo(3)).toHaveLength(1);
});

test('what a rail reads keeps its memory after the trim, and it is used again only when the rail has let go', () => {
  const log = new SendLog({ bytesMax: 100_000, slabBytes: SLAB });
  const entry = logged(log.add(3, message(0), bytes(SLAB, 1), false));
  log.hold(entry);
  log.cut();
  log.commit(() => true);
  log.add(3, message(1), bytes(SLAB, 2), false);
  expect(entry.payload.views[0][0]).toBe(1);
  expect(log.bytes).toBe(2 * SLAB + ENTRY_BYTES);
  log.letGo(entry);
  log.add(4, message(0), bytes(SLAB, 3), false);
  expect(entry.payload.views[0][0]).toBe(3);
});

test('full while a save is under way: senders wait, and its commit makes room', () => {
  const pressure: string[] = [];
  const log = new SendLog({ bytesMax: 2 * SLAB + 4 * ENTRY_BYTES, slabBytes: SLAB, onPressure: (kind) => pressure.push(kind) });
  log.add(3, message(0), bytes(SLAB), false);
  log.add(3, message(1), bytes(SLAB), false);
  log.cut();
  expect(log.add(3, message(2), bytes(SLAB), false)).toBe('full');
  log.commit((_peer, { seq }) => seq < 2);
  logged(log.add(3, message(2), bytes(SLAB), false));
  expect(pressure).toEqual(['due', 'full']);
});

test('full and no save under way: given up, unless it must be kept; whole again with the commit of a later cut', () => {
  const pressure: string[] = [];
  const log = new SendLog({ bytesMax: SLAB + 2 * ENTRY_BYTES, slabBytes: SLAB, onPressure: (kind) => pressure.push(kind) });
  log.add(3, message(0), bytes(SLAB), false);
  expect(log.add(3, message(1), bytes(SLAB), true)).toBe('full');
  expect(log.isWhole).toBe(true);
  expect(log.add(3, message(1), bytes(SLAB), false)).toBe('unlogged');
  expect([log.isWhole, log.bytes]).toEqual([false, 0]);
  log.cut();
  logged(log.add(3, message(2), bytes(10), false));
  expect(log.isWhole).toBe(false);
  log.commit((_peer, { seq }) => seq < 2);
  expect(log.isWhole).toBe(true);
  expect(log.messagesTo(3).map(({ seq }) => seq)).toEqual([2]);
  expect(pressure).toEqual(['due', 'full', 'given up']);
});

test('a flood of ten times the bound stays under it', () => {
  const bytesMax = 20 * SLAB;
  const log = new SendLog({ bytesMax, slabBytes: SLAB });
  for (let seq = 0; seq < 600; seq++) {
    log.add(seq % 3, message(seq), bytes(1 + ((seq * 37) % 900)), false);
    expect(log.bytes).toBeLessThanOrEqual(bytesMax);
    if (seq % 50 === 49) log.cut();
    if (seq % 50 === 20) log.commit((_peer, entry) => entry.seq < seq - 21);
  }
  log.clear();
  expect(log.bytes).toBe(0);
});
