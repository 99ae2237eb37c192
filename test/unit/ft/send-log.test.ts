// The log of what a rank has sent: its bound, its slabs, what is trimmed at a commit, and what becomes of it when it is full.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PIECE_BYTES, PIECE_ENTRIES } from '../../../src/ft/log/entries.ts';
import { SendLog } from '../../../src/ft/log/send-log.ts';
import { FULL, LOGGED, type LogAnswer, UNLOGGED } from '../../../src/pml/message-log.ts';
import type { LoggedMessage } from '../../../src/pml/records.ts';
import { Iov } from '../../../src/util/iov.ts';

const SLAB = 1000;
const bytes = (count: number, fill = 7): Iov => new Iov([new Uint8Array(count).fill(fill)]);

/** A message with that number; whatever else it has is of no account. */
function add(log: SendLog, peer: number, seq: number, buffer: Iov, mustKeep = false): LogAnswer {
  return log.add(peer, 1, 0, seq, 0, false, buffer, mustKeep);
}

function added(log: SendLog, peer: number, seq: number, buffer: Iov): LoggedMessage {
  expect(add(log, peer, seq, buffer)).toBe(LOGGED);
  return log.newest(peer);
}

const seqsTo = (log: SendLog, peer: number): number[] => [...log.messagesTo(peer)].map(({ seq }) => seq);

test('a message is copied: the buffer may be used again at once', () => {
  const log = new SendLog({ bytesMax: 10_000, slabBytes: SLAB });
  const buffer = new Uint8Array(10).fill(1);
  const entry = added(log, 3, 0, new Iov([buffer]));
  buffer.fill(2);
  expect([...entry.payload.views[0]]).toEqual(Array(10).fill(1));
  expect(log.bytes).toBe(SLAB + PIECE_BYTES);
});

test('a commit trims what was sent before the cut, and no more', () => {
  const log = new SendLog({ bytesMax: 100_000, slabBytes: SLAB });
  for (let seq = 0; seq < 6; seq++) add(log, 3, seq, bytes(400));
  log.cut();
  add(log, 3, 6, bytes(400));
  log.commit((_peer, _ctx, seq) => seq < 6);
  expect(seqsTo(log, 3)).toEqual([6]);
  expect(log.isWhole).toBe(true);
});

test('a message that is longer than a slab has one of its own: short ones before and behind it share theirs', () => {
  const log = new SendLog({ bytesMax: 100_000, slabBytes: SLAB });
  for (let seq = 0; seq < 10; seq++) add(log, 3, seq, bytes(seq % 2 === 0 ? 50 : 3000));
  expect(log.bytes).toBe(SLAB + 5 * 3000 + PIECE_BYTES);
  log.cut();
  log.commit(() => true);
  expect(log.usedBytes).toBe(0);
});

test('slabs are of memory that peers may map, as far as there is some, and go back there when they make room', () => {
  const made: Uint8Array[] = [];
  const dropped: Uint8Array[] = [];
  const exportable = {
    make: (length: number) => {
      if (made.length === 2) return undefined;
      made.push(new Uint8Array(length));
      return made.at(-1);
    },
    drop: (memory: Uint8Array) => void dropped.push(memory),
  };
  const log = new SendLog({ bytesMax: 5 * SLAB + PIECE_BYTES, slabBytes: SLAB, exportable });
  const entries = [0, 1, 2].map((seq) => added(log, 3, seq, bytes(SLAB)));
  expect(entries.map(({ isExported }) => isExported)).toEqual([true, true, false]);
  expect(entries[1].payload.views[0].buffer).toBe(made[1].buffer);
  expect(added(log, 3, 3, bytes(0)).isExported).toBe(false);
  log.cut();
  log.commit(() => true);
  expect(dropped).toEqual([]);
  // Longer than all that is free: the memory of the short ones goes first.
  added(log, 3, 4, bytes(4 * SLAB));
  expect(dropped.length).toBe(2);
  expect(log.bytes).toBeLessThanOrEqual(5 * SLAB + PIECE_BYTES);
});

test('an abandoned save trims nothing', () => {
  const log = new SendLog({ bytesMax: 100_000, slabBytes: SLAB });
  add(log, 3, 0, bytes(400));
  log.cut();
  log.abandon();
  expect(seqsTo(log, 3)).toEqual([0]);
});

test('what a rail reads keeps its memory after the trim, and it is used again only when the rail has let go', () => {
  const log = new SendLog({ bytesMax: 100_000, slabBytes: SLAB });
  const entry = added(log, 3, 0, bytes(SLAB, 1));
  log.hold(entry);
  log.cut();
  log.commit(() => true);
  add(log, 3, 1, bytes(SLAB, 2));
  expect(entry.payload.views[0][0]).toBe(1);
  expect(log.bytes).toBe(2 * SLAB + PIECE_BYTES);
  log.letGo(entry);
  add(log, 4, 0, bytes(SLAB, 3));
  expect(entry.payload.views[0][0]).toBe(3);
});

test('full while a save is under way: senders wait, and its commit makes room', () => {
  const pressure: string[] = [];
  const slabBytes = 10 * PIECE_BYTES;
  const log = new SendLog({ bytesMax: 2 * slabBytes + PIECE_BYTES, slabBytes, onPressure: (kind) => pressure.push(kind) });
  add(log, 3, 0, bytes(slabBytes));
  add(log, 3, 1, bytes(slabBytes));
  log.cut();
  expect(add(log, 3, 2, bytes(slabBytes))).toBe(FULL);
  log.commit((_peer, _ctx, seq) => seq < 2);
  added(log, 3, 2, bytes(slabBytes));
  expect(pressure).toEqual(['due', 'full']);
});

test('full and no save under way: given up, unless it must be kept; whole again with the commit of a later cut', () => {
  const pressure: string[] = [];
  const log = new SendLog({ bytesMax: SLAB + PIECE_BYTES, slabBytes: SLAB, onPressure: (kind) => pressure.push(kind) });
  add(log, 3, 0, bytes(SLAB));
  expect(add(log, 3, 1, bytes(SLAB), true)).toBe(FULL);
  expect(log.isWhole).toBe(true);
  expect(add(log, 3, 1, bytes(SLAB))).toBe(UNLOGGED);
  expect([log.isWhole, log.bytes]).toEqual([false, 0]);
  log.cut();
  added(log, 3, 2, bytes(10));
  expect(log.isWhole).toBe(false);
  log.commit((_peer, _ctx, seq) => seq < 2);
  expect(log.isWhole).toBe(true);
  expect(seqsTo(log, 3)).toEqual([2]);
  expect(pressure).toEqual(['due', 'full', 'given up']);
});

test('a flood of ten times the bound stays under it', () => {
  const bytesMax = 20 * SLAB;
  const log = new SendLog({ bytesMax, slabBytes: SLAB });
  for (let seq = 0; seq < 600; seq++) {
    add(log, seq % 3, seq, bytes(1 + ((seq * 37) % 900)));
    expect(log.bytes).toBeLessThanOrEqual(bytesMax);
    if (seq % 50 === 49) log.cut();
    if (seq % 50 === 20) log.commit((_peer, _ctx, number) => number < seq - 21);
  }
  log.clear();
  expect(log.bytes).toBe(0);
});

test('memory is kept for the next use, up to the bound, and goes where other memory is needed', () => {
  const bytesMax = 9 * SLAB;
  const log = new SendLog({ bytesMax, slabBytes: SLAB });
  const empty = (): void => {
    log.cut();
    log.commit(() => true);
  };
  for (let seq = 0; seq < 5; seq++) add(log, 3, seq, bytes(SLAB));
  empty();
  expect([log.bytes, log.usedBytes]).toEqual([5 * SLAB + PIECE_BYTES, 0]);
  // The same again takes nothing more.
  const first = added(log, 3, 5, bytes(SLAB)).payload.views[0].buffer;
  for (let seq = 6; seq < 10; seq++) add(log, 3, seq, bytes(SLAB));
  expect(log.bytes).toBe(5 * SLAB + PIECE_BYTES);
  empty();
  // A long message needs memory in one piece.
  const long = added(log, 3, 10, bytes(4 * SLAB, 4));
  expect(log.bytes).toBeLessThanOrEqual(bytesMax);
  expect(long.payload.views[0].length).toBe(4 * SLAB);
  empty();
  // One that is a little shorter is put into the same memory, and a much shorter one is not.
  const shorter = added(log, 3, 11, bytes(4 * SLAB - 100, 5));
  expect([shorter.payload.bytes, shorter.payload.views[0].buffer]).toEqual([4 * SLAB - 100, long.payload.views[0].buffer]);
  expect(added(log, 3, 12, bytes(2 * SLAB)).payload.views[0].buffer).not.toBe(first);
  expect(log.bytes).toBeLessThanOrEqual(bytesMax);
  // Nothing is in the way of a message that has room without what is kept.
  empty();
  for (let seq = 13; seq < 18; seq++) added(log, 3, seq, bytes(SLAB));
  expect(log.bytes).toBeLessThanOrEqual(bytesMax);
});

test('more messages than a piece of entries holds, trimmed in the middle of one, and added to again', () => {
  const log = new SendLog({ bytesMax: 1_000_000, slabBytes: SLAB });
  const count = 5 * PIECE_ENTRIES + 7;
  for (let seq = 0; seq < count; seq++) add(log, 3, seq, bytes(3, seq));
  const cut = 2 * PIECE_ENTRIES + 3;
  log.cut();
  log.commit((_peer, _ctx, seq) => seq < cut);
  for (let seq = count; seq < count + PIECE_ENTRIES; seq++) add(log, 3, seq, bytes(3, seq));
  const list = [...log.messagesTo(3)];
  expect(list.map(({ seq }) => seq)).toEqual(Array.from({ length: count + PIECE_ENTRIES - cut }, (_, i) => cut + i));
  for (const { seq, payload } of list) expect([...payload.views[0]]).toEqual(Array(3).fill(seq & 0xff));
  expect(log.messageCount).toBe(list.length);
  expect(log.newest(3).seq).toBe(count + PIECE_ENTRIES - 1);
  log.cut();
  log.commit(() => true);
  expect([log.messageCount, log.usedBytes, seqsTo(log, 3)]).toEqual([0, 0, []]);
});

test('every word of a message comes back as it was, also where it needs all 32 bits', () => {
  const log = new SendLog({ bytesMax: 100_000, slabBytes: SLAB });
  const high = 0xffff_fffe;
  log.add(3, high, -2, high, high, false, bytes(0), false);
  log.add(3, 0, 0x7fff_ffff, 0, 0, true, bytes(5), false);
  expect([...log.messagesTo(3)]).toMatchObject([
    { ctx: high, tag: -2, seq: high, signature: high, sync: false, payload: { bytes: 0 } },
    { ctx: 0, tag: 0x7fff_ffff, seq: 0, signature: 0, sync: true, payload: { bytes: 5 } },
  ]);
});

test('a synchronous message is one object for as long as it is in the log, also with the successor', () => {
  const log = new SendLog({ bytesMax: 100_000, slabBytes: SLAB });
  add(log, 3, 0, bytes(5));
  log.add(3, 1, 0, 1, 0, true, bytes(5), false);
  const message = log.newest(3);
  add(log, 3, 2, bytes(5));
  log.rename(3, 9);
  expect([...log.messagesTo(9)][1]).toBe(message);
  expect([...log.synchronousTo(9)]).toEqual([message]);
  expect([seqsTo(log, 3), [...log.synchronousTo(3)]]).toEqual([[], []]);
  log.cut();
  log.commit((_peer, _ctx, seq) => seq < 2);
  expect([...log.synchronousTo(9)]).toEqual([]);
  expect(seqsTo(log, 9)).toEqual([2]);
  // The one that died is another destination now, should it ever be sent to again.
  add(log, 3, 0, bytes(5));
  expect([seqsTo(log, 3), seqsTo(log, 9)]).toEqual([[0], [2]]);
});

test('it is what a list of copies is, whatever happens to it, and never beyond its bound', () => {
  const bytesMax = 40 * SLAB;
  fc.assert(
    fc.property(
      fc.array(
        fc.oneof(
          { weight: 12, arbitrary: fc.record({ peer: fc.nat(3), length: fc.oneof(fc.nat(60), fc.nat(4 * SLAB)), sync: fc.boolean() }) },
          { weight: 1, arbitrary: fc.constant('cut' as const) },
          { weight: 1, arbitrary: fc.constant('commit' as const) },
          { weight: 1, arbitrary: fc.constant('abandon' as const) },
          { weight: 2, arbitrary: fc.constant('hold' as const) },
          { weight: 2, arbitrary: fc.constant('let go' as const) },
        ),
        { maxLength: 300 },
      ),
      (events) => {
        const log = new SendLog({ bytesMax, slabBytes: SLAB });
        let model: { peer: number; seq: number; length: number; value: number }[] = [];
        const held: { message: LoggedMessage; value: number }[] = [];
        let cutAt = -1;
        let seq = 0;
        for (const event of events) {
          if (event === 'cut') {
            log.cut();
            cutAt = seq;
          } else if (event === 'commit' && cutAt >= 0) {
            const end = cutAt;
            log.commit((_peer, _ctx, number) => number < end);
            model = model.filter((one) => one.seq >= end);
            cutAt = -1;
          } else if (event === 'abandon') {
            log.abandon();
            cutAt = -1;
          } else if (event === 'hold' && model.length > 0) {
            const { peer, value } = model[model.length - 1];
            const message = log.newest(peer);
            log.hold(message);
            held.push({ message, value });
          } else if (event === 'let go') {
            const one = held.shift();
            if (one !== undefined) log.letGo(one.message);
          } else if (typeof event === 'object') {
            const { peer, length, sync } = event;
            const value = seq & 0xff;
            const answer = log.add(peer, 1, 0, seq, 0, sync, bytes(length, value), false);
            if (answer === LOGGED) model.push({ peer, seq, length, value });
            if (answer === UNLOGGED) model = [];
            seq++;
          }
          expect(log.bytes).toBeLessThanOrEqual(bytesMax);
          for (const { message, value } of held)
            for (const view of message.payload.views) expect(view.every((byte) => byte === value)).toBe(true);
        }
        for (const peer of [0, 1, 2, 3]) {
          const due = model.filter((one) => one.peer === peer);
          const list = [...log.messagesTo(peer)];
          expect(list.map((one) => [one.seq, one.payload.bytes])).toEqual(due.map((one) => [one.seq, one.length]));
          for (const [i, { payload }] of list.entries())
            for (const view of payload.views) expect(view.every((byte) => byte === due[i].value)).toBe(true);
        }
        for (const { message } of held) log.letGo(message);
        log.clear();
        expect(log.bytes).toBe(0);
      },
    ),
    { numRuns: 60 },
  );
});
