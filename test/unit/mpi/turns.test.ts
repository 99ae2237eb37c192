// The order in which results are handed to a program: one at a time, recorded where several are awaited, and obeyed.
import { afterEach, expect, test, vi } from 'vitest';
import { decodeBatch, EVENT } from '../../../src/ft/events/format.ts';
import { Holdings } from '../../../src/ft/events/holdings.ts';
import { Recorder } from '../../../src/ft/events/recorder.ts';
import type { RecordedOutcomes } from '../../../src/mpi/ft/recorded-outcomes.ts';
import { Turns } from '../../../src/mpi/ft/turns.ts';

afterEach(() => void vi.useRealTimers());

const newRecorder = (): Recorder =>
  new Recorder({ rank: 1, determinism: 'recorded', rankOf: (number) => number, numberOf: (rank) => rank });

function turnsOf(recorder: Recorder, errors: string[] = []): Turns {
  const outcomes = {
    rank: 1,
    beginAwait: () => recorder.beginAwait(),
    get nextTurn() {
      return recorder.nextTurn;
    },
    get hasListed() {
      return recorder.hasOutcomes;
    },
    tookTurn: () => void recorder.next(EVENT.TURN),
    noteTurn: (number: number) => recorder.note(EVENT.TURN, [number]),
  } as unknown as RecordedOutcomes;
  return new Turns(outcomes, ({ message }) => errors.push(message));
}

/** Makes successors of that one, which obey what it has recorded. */
function successorsOf(recorder: Recorder): () => Recorder {
  const holdings = new Holdings([1]);
  for (let bytes = recorder.takeBatch(); bytes !== undefined; bytes = recorder.takeBatch()) {
    const batch = decodeBatch(bytes);
    recorder.handleConfirmed(batch.epoch, holdings.handleBatch(batch) as number);
  }
  return () => {
    const successor = newRecorder();
    successor.restore(undefined, holdings.recordsOf(1));
    return successor;
  };
}

interface Deferred {
  readonly promise: Promise<string>;
  resolve(value: string): void;
}
function deferred(): Deferred {
  let resolve: (value: string) => void = () => undefined;
  const promise = new Promise<string>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

/** Three flows of steps, each with microtasks of its own between them; what they did, in order, when their results come in that order. */
async function play(turns: Turns, order: readonly number[]): Promise<string> {
  const done: string[] = [];
  const results = Array.from({ length: 3 }, () => [deferred(), deferred()]);
  const flow = async (of: number): Promise<void> => {
    for (const { promise } of results[of]) {
      done.push(await turns.inTurn(promise));
      for (let i = 0; i < of * 3; i++) await undefined;
      done.push(`after ${of}`);
    }
  };
  const all = Promise.all([flow(0), flow(1), flow(2)]);
  const taken = [0, 0, 0];
  for (const of of order) {
    results[of][taken[of]].resolve(`${of}.${taken[of]}`);
    taken[of]++;
    // Some come together, and some do not.
    if (of !== 1) await new Promise((resolve) => setImmediate(resolve));
  }
  await all;
  return done.join(' ');
}

test('a successor hands results out as its predecessor did, in whatever order they come', async () => {
  const before = newRecorder();
  const first = await play(turnsOf(before), [2, 1, 1, 0, 2, 0]);
  const next = successorsOf(before);
  for (const order of [
    [0, 0, 1, 1, 2, 2],
    [2, 2, 0, 1, 0, 1],
    [1, 0, 2, 1, 2, 0],
  ]) {
    const successor = next();
    expect(await play(turnsOf(successor), order)).toBe(first);
    expect(successor.isReplaying).toBe(false);
    expect(successor.counters.obeyed).toBeGreaterThan(0);
  }
});

test('one that is awaited alone is not recorded', async () => {
  const recorder = newRecorder();
  const turns = turnsOf(recorder);
  for (let i = 0; i < 3; i++) expect(await turns.inTurn(Promise.resolve(i))).toBe(i);
  await expect(turns.inTurn(Promise.reject(new Error('wrong')))).rejects.toThrow('wrong');
  expect(recorder.counters.recorded).toBe(0);
});

test.each([
  ['an await that does not begin', EVENT.TURN, 9],
  ['a call that looks', EVENT.ENDED, 0],
] as const)('a successor that does not come to %s is told so after a while, and gets what there is', async (_, kind, value) => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const before = newRecorder();
  before.note(kind, [value]);
  const errors: string[] = [];
  const turns = turnsOf(successorsOf(before)(), errors);
  const results = [turns.inTurn(Promise.resolve('a')), turns.inTurn(Promise.resolve('b'))];
  await new Promise((resolve) => setImmediate(resolve));
  await vi.advanceTimersByTimeAsync(9000);
  expect(errors).toEqual([]);
  await vi.advanceTimersByTimeAsync(2000);
  expect(errors).toEqual([expect.stringMatching(/ERR_REPLAY: rank 1: it waits, .* the program does not repeat itself/)]);
  expect(await Promise.all(results)).toEqual(['a', 'b']);
});

test('a successor that goes on past an await of the list is told so at once', async () => {
  const before = newRecorder();
  before.note(EVENT.TURN, [1]);
  before.note(EVENT.TURN, [1]);
  const errors: string[] = [];
  const turns = turnsOf(successorsOf(before)(), errors);
  const results = [turns.inTurn(Promise.resolve('a')), turns.inTurn(Promise.resolve('b')), turns.inTurn(Promise.resolve('c'))];
  expect(await Promise.all(results)).toEqual(['a', 'b', 'c']);
  expect(errors).toEqual([expect.stringMatching(/ERR_REPLAY: rank 1: await 1 comes to its end once more/)]);
});
