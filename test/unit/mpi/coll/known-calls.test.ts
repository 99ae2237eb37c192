// The calls in one step that are known from before: the same arguments, with buffers that are what they were.
import { expect, test } from 'vitest';
import type { AtOnce } from '../../../../src/mpi/coll/shared/at-once.ts';
import { KnownCalls } from '../../../../src/mpi/coll/shared/known-calls.ts';

const make = (): void => undefined;

function known(args: (own: Uint8Array, out: Uint8Array) => unknown[] = (own, out) => [own, out, 'sum', undefined]) {
  const own = new Uint8Array(8);
  const out = new Uint8Array(8);
  const call = { atOnce: { own, ownBytes: 8, bytes: 8, out } as unknown as AtOnce };
  const calls = new KnownCalls();
  calls.keep(make, args(own, out), call);
  return { own, out, call, calls };
}

test('the same arguments find it; others, and another call, do not', () => {
  const { own, out, call, calls } = known();
  expect(calls.find(make, [own, out, 'sum', undefined])).toBe(call);
  expect(calls.find(make, [own, out, 'max', undefined])).toBeUndefined();
  expect(calls.find(make, [out, own, 'sum', undefined])).toBeUndefined();
  expect(calls.find(make, [own, out, 'sum'])).toBeUndefined();
  expect(calls.find(make, [own, out, 'sum', { timeoutMs: 1 }])).toBeUndefined();
  expect(calls.find(() => undefined, [own, out, 'sum', undefined])).toBeUndefined();
});

test('a buffer that was detached since does not', () => {
  for (const which of ['own', 'out'] as const) {
    const { calls, ...buffers } = known();
    structuredClone(buffers[which].buffer, { transfer: [buffers[which].buffer] });
    expect(calls.find(make, [buffers.own, buffers.out, 'sum', undefined])).toBeUndefined();
  }
});

test('an array of parts may hold others the next time', () => {
  const { own, out, calls } = known((a, b) => [[a], b]);
  expect(calls.find(make, [[own], out])).toBeUndefined();
});

test('nothing is known once it is told to forget', () => {
  const { own, out, calls } = known();
  calls.forget();
  expect(calls.find(make, [own, out, 'sum', undefined])).toBeUndefined();
});

test('the last four are known, of one kind or of several', () => {
  const { own, out, call, calls } = known();
  const others = [1, 2, 3, 4].map((n) => ({ ...call, n }));
  for (const [n, other] of others.slice(0, 3).entries()) calls.keep(make, [n, own], other);
  expect(calls.find(make, [own, out, 'sum', undefined])).toBe(call);
  expect(calls.find(make, [2, own])).toBe(others[2]);
  calls.keep(make, [3, own], others[3]);
  expect(calls.find(make, [own, out, 'sum', undefined])).toBeUndefined();
  expect(calls.find(make, [3, own])).toBe(others[3]);
});
