// The receiver's windows: which FINs may be counted, whatever the other side says.
import { expect, test } from 'vitest';
import type { Registration } from '../../../src/btl/btl.ts';
import { WindowOffers } from '../../../src/pml/windows.ts';
import { RangeSet } from '../../../src/util/range-set.ts';

const registration = (): Registration => ({ key: new Uint8Array([1]), deregister: () => {} });

test('a FIN counts for a window that was offered and is open, within its range, and for no other', () => {
  const offers = new WindowOffers();
  expect(offers.judgeFin(1, 0, 10)).toBe('wrong');
  offers.add(0, 1, registration(), 0, 100);
  offers.add(1, 1, registration(), 0, 100);
  offers.add(1, 1, undefined, 100, 200);
  // Its PUT has not left: nobody can know of it.
  expect(offers.judgeFin(1, 0, 100)).toBe('wrong');
  for (const window of offers.windows) window.offered = true;
  expect(offers.judgeFin(1, 0, 100)).toBe('counts');
  expect(offers.judgeFin(2, 40, 60)).toBe('counts');
  expect(offers.judgeFin(2, 40, 101)).toBe('wrong');
  // A PUT that said that no window follows.
  expect(offers.judgeFin(3, 100, 200)).toBe('wrong');
  expect([0, 4, 2 ** 32 - 1].map((number) => offers.judgeFin(number, 0, 10))).toEqual(['wrong', 'wrong', 'wrong']);

  // All of it has come: a FIN that is said again brings nothing.
  offers.takeReceived(RangeSet.of([0, 100]));
  expect(offers.judgeFin(1, 0, 100)).toBe('late');

  // After a restart those of before are nobody's any more.
  offers.takeAll();
  expect(offers.judgeFin(1, 0, 100)).toBe('wrong');
  offers.add(0, 1, registration(), 0, 100);
  offers.windows[0].offered = true;
  expect(offers.judgeFin(4, 0, 100)).toBe('counts');
});
