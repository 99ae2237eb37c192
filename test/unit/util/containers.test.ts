// Deque, IdTable, serial numbers and Iov against naive models.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Deque } from '../../../src/util/deque.ts';
import { IdTable } from '../../../src/util/id-table.ts';
import { Iov } from '../../../src/util/iov.ts';
import { type Linked, LinkedList } from '../../../src/util/linked.ts';
import { MemoryPool } from '../../../src/util/memory-pool.ts';
import { serialAdd, serialDiff } from '../../../src/util/serial.ts';

test('Deque agrees with an array', () => {
  const op = fc.constantFrom('push', 'push', 'unshift', 'shift', 'peek', 'clear');
  fc.assert(
    fc.property(fc.array(op, { maxLength: 200 }), (ops) => {
      const deque = new Deque<number>();
      let model: number[] = [];
      let next = 0;
      for (const name of ops) {
        if (name === 'push') {
          deque.push(next);
          model.push(next++);
        } else if (name === 'unshift') {
          deque.unshift(next);
          model.unshift(next++);
        } else if (name === 'shift') expect(deque.shift()).toBe(model.shift());
        else if (name === 'peek') expect(deque.peek()).toBe(model[0]);
        // Seldom, so that the ring grows in between.
        else if (next % 7 === 0) {
          deque.clear();
          model = [];
        }
        expect(deque.size).toBe(model.length);
      }
      expect([...deque]).toEqual(model);
    }),
  );
});

describe('IdTable', () => {
  test('finds what lives, knows what is retired, and tells what never was', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(9), { maxLength: 120 }), (choices) => {
        const table = new IdTable<string>();
        const live: { slot: number; generation: number; record: string }[] = [];
        const retired: { slot: number; generation: number }[] = [];
        for (const [i, choice] of choices.entries()) {
          if (choice < 6 || live.length === 0) {
            const slot = table.add(`r${i}`);
            live.push({ slot, generation: table.generationOf(slot), record: `r${i}` });
          } else {
            const [gone] = live.splice(choice % live.length, 1);
            table.retire(gone.slot, gone.generation);
            retired.push(gone);
          }
          for (const { slot, generation, record } of live) expect(table.lookup(slot, generation)).toEqual({ found: record });
          for (const { slot, generation } of retired) expect(table.lookup(slot, generation)).toBe('retired');
        }
        expect(table.size).toBe(live.length);
        expect([...table.values()].sort()).toEqual(live.map(({ record }) => record).sort());
        const slots = new Set([...live, ...retired].map(({ slot }) => slot));
        expect(table.lookup(slots.size, 1)).toBe('never-issued');
        for (const slot of slots) {
          const newest = Math.max(...[...live, ...retired].filter((id) => id.slot === slot).map(({ generation }) => generation));
          expect(table.lookup(slot, newest + 1)).toBe('never-issued');
          expect(table.lookup(slot, 0)).toBe('never-issued');
        }
      }),
    );
  });

  test('to retire twice is our own mistake', () => {
    const table = new IdTable<number>();
    const slot = table.add(1);
    const generation = table.generationOf(slot);
    table.retire(slot, generation);
    expect(() => table.retire(slot, generation)).toThrow(/ERR_INTERNAL/);
  });
});

test('serial numbers wrap', () => {
  fc.assert(
    fc.property(fc.nat(0xffff_ffff), fc.integer({ min: -(2 ** 31) + 1, max: 2 ** 31 - 1 }), (a, n) => {
      expect(serialAdd(a, n)).toBe(Number((BigInt(a) + BigInt(n)) & 0xffff_ffffn));
      expect(serialDiff(serialAdd(a, n), a)).toBe(n);
    }),
  );
  expect(serialDiff(0, 0xffff_ffff)).toBe(1);
  expect(serialDiff(0xffff_ffff, 0)).toBe(-1);
});

test('Iov slices, copies out and copies in like one flat buffer', () => {
  const lengths = fc.array(fc.nat(7), { maxLength: 8 });
  fc.assert(
    fc.property(lengths, fc.nat(60), fc.nat(60), fc.uint8Array({ maxLength: 70 }), (parts, a, b, data) => {
      let value = 1;
      const iov = new Iov(parts.map((length) => Uint8Array.from({ length }, () => value++)));
      const flat = Uint8Array.from({ length: iov.bytes }, (_, i) => i + 1);
      const from = Math.min(a, b, iov.bytes);
      const to = Math.min(Math.max(a, b), iov.bytes);
      expect(iov.isContiguous).toBe(parts.length <= 1);
      expect(Buffer.concat(iov.slice(from, to))).toEqual(Buffer.from(flat.subarray(from, to)));
      const room = Math.min(data.length, iov.bytes - from);
      expect(iov.copyIn(from, data)).toBe(room);
      flat.set(data.subarray(0, room), from);
      const copy = new Uint8Array(iov.bytes + 3);
      iov.copyTo(copy, 3);
      expect(copy.subarray(3)).toEqual(flat);
    }),
  );
});

test('Deque.insert keeps a sorted deque sorted, and equals in the order in which they came', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(6), { maxLength: 60 }), fc.nat(20), (keys, shifts) => {
      const deque = new Deque<{ key: number; nth: number }>();
      // The ring begins anywhere.
      for (let i = 0; i < shifts; i++) deque.push({ key: 0, nth: -1 });
      for (let i = 0; i < shifts; i++) deque.shift();
      keys.forEach((key, nth) => {
        deque.insert({ key, nth }, (a, b) => a.key <= b.key);
      });
      const sorted = keys.map((key, nth) => ({ key, nth })).sort((a, b) => a.key - b.key || a.nth - b.nth);
      expect([...deque]).toEqual(sorted);
    }),
  );
});

test('a linked list keeps the order of its items, and adds and deletes each once', () => {
  interface Item extends Linked<Item> {
    name: number;
  }
  fc.assert(
    fc.property(fc.array(fc.nat(11), { maxLength: 60 }), (choices) => {
      const items: Item[] = Array.from({ length: 6 }, (_, name) => ({ name, listPrev: undefined, listNext: undefined, listed: false }));
      const list = new LinkedList<Item>();
      const model: number[] = [];
      for (const choice of choices) {
        const item = items[choice % 6];
        const at = model.indexOf(item.name);
        if (choice < 6) {
          list.add(item);
          if (at === -1) model.push(item.name);
        } else {
          list.delete(item);
          if (at !== -1) model.splice(at, 1);
        }
        expect([...list].map(({ name }) => name)).toEqual(model);
        expect(list.size).toBe(model.length);
      }
    }),
  );
});

test('a memory pool hands out what it was given back, and keeps no more than its bound', () => {
  const pool = new MemoryPool(4096);
  const a = pool.take(300);
  expect(a.length).toBe(512);
  pool.give(a);
  expect(pool.take(512)).toBe(a);
  expect(pool.take(512)).not.toBe(a);
  expect(pool.take(0).length).toBe(256);
  expect(pool.take(257 * 1024).length).toBe(257 * 1024);
  const large = pool.take(4097);
  pool.give(large);
  expect(pool.take(4097)).not.toBe(large);
});
