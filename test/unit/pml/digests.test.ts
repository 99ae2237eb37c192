// Digests by number: room for them grows both ways, they are trimmed from below, and numbers wrap.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { DIGESTS_MAX, DigestTable } from '../../../src/pml/digests.ts';
import { serialAdd, serialDiff } from '../../../src/util/serial.ts';

const seqsOf = (table: DigestTable): number[] => table.list().map(({ seq }) => seq);

test('digests come back in the order of their numbers, whatever the order in which they came', () => {
  const table = new DigestTable();
  for (const seq of [5, 3, 200, 4, 100]) expect(table.set(seq, seq * 10, 0xffff_ffff - seq)).toBe(true);
  expect(table.list()).toEqual([3, 4, 5, 100, 200].map((seq) => ({ seq, bytes: seq * 10, crc: 0xffff_ffff - seq })));
  expect(table.size).toBe(5);
  // The same number again is the newer one.
  expect(table.set(4, 7, 8)).toBe(false);
  expect(table.list()[1]).toEqual({ seq: 4, bytes: 7, crc: 8 });
  expect(table.size).toBe(5);
});

test('lengths of more than 32 bits are kept, and a digest of nothing is one', () => {
  const table = new DigestTable();
  table.set(0, 0, 0);
  table.set(1, 5 * 2 ** 32 + 7, 9);
  expect(table.list()).toEqual([
    { seq: 0, bytes: 0, crc: 0 },
    { seq: 1, bytes: 5 * 2 ** 32 + 7, crc: 9 },
  ]);
});

test('what is trimmed is gone, and numbers go on behind it', () => {
  const table = new DigestTable();
  for (let seq = 0; seq < 300; seq++) table.set(seq, seq, seq);
  table.trim(250);
  expect([table.size, seqsOf(table)[0]]).toEqual([50, 250]);
  for (let seq = 300; seq < 1000; seq++) table.set(seq, seq, seq);
  expect(seqsOf(table)).toEqual(Array.from({ length: 750 }, (_, i) => 250 + i));
  table.trim(100);
  expect(table.size).toBe(750);
  table.trim(5000);
  expect([table.size, table.list()]).toEqual([0, []]);
  table.set(6000, 1, 2);
  expect(table.list()).toEqual([{ seq: 6000, bytes: 1, crc: 2 }]);
});

test('numbers wrap', () => {
  const table = new DigestTable();
  const first = 0xffff_ff00;
  for (let i = 0; i < 600; i++) table.set(serialAdd(first, i), i, i);
  expect(seqsOf(table)).toEqual(Array.from({ length: 600 }, (_, i) => serialAdd(first, i)));
  table.trim(10);
  expect(seqsOf(table)[0]).toBe(10);
  expect(table.set(first, 1, 1)).toBe(true);
  expect(seqsOf(table)[0]).toBe(first);
});

test('numbers that are too far from the others have no digest', () => {
  const table = new DigestTable();
  table.set(100_000, 1, 1);
  expect(table.set(100_000 + DIGESTS_MAX, 1, 1)).toBe(undefined);
  expect(table.set(100_000 + DIGESTS_MAX - 1, 1, 1)).toBe(true);
  expect(table.set(99_999, 1, 1)).toBe(undefined);
  expect(table.size).toBe(2);
});

test('it is what a map by number is', () => {
  const event = fc.oneof(
    { weight: 10, arbitrary: fc.record({ set: fc.integer({ min: -200, max: 400 }) }) },
    { weight: 1, arbitrary: fc.record({ trim: fc.integer({ min: -100, max: 300 }) }) },
  );
  fc.assert(
    fc.property(fc.nat(0xffff_ffff), fc.array(event, { maxLength: 200 }), (base, events) => {
      const table = new DigestTable();
      const model = new Map<number, number>();
      for (const [i, one] of events.entries()) {
        if ('set' in one) {
          const seq = serialAdd(base, one.set);
          expect(table.set(seq, i, i)).toBe(!model.has(seq));
          model.set(seq, i);
        } else {
          const seq = serialAdd(base, one.trim);
          table.trim(seq);
          for (const key of model.keys()) if (serialDiff(key, seq) < 0) model.delete(key);
        }
        expect(table.size).toBe(model.size);
      }
      const due = [...model].sort(([a], [b]) => serialDiff(a, b)).map(([seq, value]) => ({ seq, bytes: value, crc: value }));
      expect(table.list()).toEqual(due);
    }),
  );
});
