// What a process knows of the addresses of others when it has joined after the start: those that are over, those that have a number and come
// later, and those that join while it is there.
import { expect, test } from 'vitest';
import type { BtlModule } from '../../../src/btl/btl.ts';
import { AddressBook } from '../../../src/mpi/address-book.ts';
import { MODEX_VERSION, type ModexEntry } from '../../../src/mpi/modex.ts';

const entryOf = (number: number): ModexEntry => ({
  version: MODEX_VERSION,
  incarnation: 100 + number,
  hostId: `host ${number}`,
  unexpectedBytesMax: 1,
  btl: {},
  excluded: {},
});

/** The book of process 5, which has joined a job of 3 in which 1 was over by then; 3 has joined before, and 4 has a number. */
function lateBook(): AddressBook {
  const entries = [0, 2, 3, 5].map((number): [number, ModexEntry] => [number, entryOf(number)]);
  const table = { at: (rank: number) => new Map(entries).get(rank), count: 6 };
  const book = new AddressBook({ rank: 5, size: 3, own: entryOf(5), table, modules: [], onWaiting: () => undefined });
  book.wasOver(1);
  return book;
}

const failureOf = (book: AddressBook, number: number): string | undefined => book.planLate(number)?.failure?.message;

test('knows those that published something, and their hosts', () => {
  const book = lateBook();
  expect(book.numbers).toEqual([0, 2, 3, 5]);
  expect([book.others, [...book.neighbours]]).toEqual([
    [0, 2, 3],
    [0, 3],
  ]);
  expect([0, 1, 4, 5].map((number) => book.hostOf(number))).toEqual(['host 0', '', '', 'host 5']);
});

test('takes one that was over for dead, and one that has a number for unknown until it joins', () => {
  const book = lateBook();
  expect(failureOf(book, 1)).toMatch(/rank 1 published no address entry/);
  // It was given its number before this one, and is slower: to take it for dead would be its end.
  expect([book.planLate(4), book.planLate(6), book.planLate(-1)]).toEqual([undefined, undefined, undefined]);
  for (const number of [4, 6]) {
    book.add(number, entryOf(number));
    // No transport is open here; its entry is looked at.
    expect(failureOf(book, number)).toMatch(/rank 5 and rank \d have no rail in common/);
    expect(book.hostOf(number)).toBe(`host ${number}`);
  }
  expect(book.numbers).toEqual([0, 2, 3, 4, 5, 6]);
  expect(() => book.update(7, entryOf(7))).toThrow('rank 7 is not in this job');
});

test('keeps of one that has failed which process it was and where; its addresses go, but for those that a plan is still made of', () => {
  const asked: unknown[] = [];
  const module = {
    name: 'wire',
    plan: (_peer: number, _local: unknown, remote: unknown) => {
      asked.push(remote);
      return [{ key: 'wire#0', attributes: { latencyUs: 1, bandwidthMBps: 1 }, detail: undefined }];
    },
    endpoint: () => ({}),
  } as unknown as BtlModule;
  const wired = (number: number): ModexEntry => ({ ...entryOf(number), btl: { wire: { at: number } } });
  const table = { at: (rank: number) => (rank < 3 ? wired(rank) : undefined) };
  const book = new AddressBook({ rank: 0, size: 3, own: wired(0), table, modules: [module], onWaiting: () => undefined });
  book.plan(1);
  book.forgetAddresses(1);
  book.forgetAddresses(2);
  expect(book.entryOf(1)).toEqual(entryOf(1));
  expect(book.hostOf(1)).toBe('host 1');
  expect(book.planLate(2)?.endpoints).toHaveLength(1);
  expect(asked).toEqual([{ at: 1 }, { at: 2 }]);
});
