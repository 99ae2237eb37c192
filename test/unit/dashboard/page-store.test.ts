// The page's copy of the job, and how it writes numbers: what a reader sees, without a browser.
import { describe, expect, test } from 'vitest';
import type { PageMessage } from '../../../tools/dashboard/messages.ts';
import type { JobModel } from '../../../tools/dashboard/model.ts';
import { bytes, clock, duration, rate } from '../../../tools/dashboard/page/format.ts';
import { ring } from '../../../tools/dashboard/page/layout.ts';
import { EVENTS_SHOWN_MAX, Store } from '../../../tools/dashboard/page/store.ts';
import { makeModel, makeRunningModel, railReport, report, TestClock } from './telemetry-examples.ts';

type Snapshot = Extract<PageMessage, { type: 'snapshot' }>;

function snapshotOf(model: JobModel): Snapshot {
  return {
    type: 'snapshot',
    nowMs: model.nowMs(),
    job: model.job,
    ranks: model.ranks.map(({ view }) => view),
    rails: [...model.rails.values()].map(({ view }) => view),
    events: model.log.since(0),
    history: model.history.all(),
    targets: [],
    waits: null,
    canAskWaits: false,
  };
}

function filled(model: JobModel): Store {
  const store = new Store();
  store.apply(snapshotOf(model), 5000);
  return store;
}

describe('store', () => {
  test('a rail is one thing with two ends, and the worse end counts', () => {
    const clockOf = new TestClock();
    const model = makeRunningModel(clockOf);
    model.telemetry(1, report(800, [railReport(0, 1, { state: 'SUSPECT' })]));
    const store = filled(model);
    expect(store.links().map(({ id, state }) => [id, state])).toEqual([
      ['0 1 0', 'UP'],
      ['0 1 1', 'SUSPECT'],
    ]);
    expect(store.links()[1].ends.map((end) => end?.rank)).toEqual([0, 1]);
    model.finalized(0);
    expect(
      filled(model)
        .links()
        .map(({ state }) => state),
    ).toEqual(['CLOSED', 'CLOSED']);
  });

  test('what went over a rail: as either end tells it, and not twice', () => {
    const store = filled(makeRunningModel(new TestClock()));
    const slots = store.slots(100);
    expect(slots).toEqual({ first: 0, last: 2 });
    expect(store.flow(0, 1, 0, slots)).toEqual([0, 4_000_000, 4_000_000]);
    expect(store.linkFlow(store.links()[0], slots)).toEqual([0, 8_000_000, 8_000_000]);
    expect(store.flow(0, 1, 7, slots)).toEqual([null, null, null]);
    expect(store.resent(slots)).toEqual([0, 0, 0]);
    expect(store.slots(2)).toEqual({ first: 1, last: 2 });
  });

  test('later runs replace what was said before, from their first slot on; old slots leave', () => {
    const store = filled(makeModel(new TestClock(), { historyMs: 1000 }));
    const apply = (first: number, list: number[]) =>
      store.apply({ type: 'update', nowMs: 1, history: [{ key: 'sent 0 1 0', first, bytes: list }] }, 1);
    apply(0, [1, 2]);
    apply(1, [20, 30]);
    expect(store.flow(0, 1, 0, { first: 0, last: 3 })).toEqual([4, 80, null, null]);
    apply(5, [60, 70]);
    expect(store.flow(0, 1, 0, { first: 0, last: 6 })).toEqual([null, null, null, 0, 0, 240, null]);
  });

  test('a rank that is silent is busy, with since when; it is not dead', () => {
    const model = makeRunningModel(new TestClock());
    const store = filled(model);
    const view = store.ranks[0];
    expect(store.rankState(view, view.heardMs + 1400)).toEqual({ word: 'working', kind: 'working' });
    expect(store.rankState(view, view.heardMs + 3200)).toEqual({ word: 'busy, last heard 3.2 s ago', kind: 'busy' });
    expect(store.rankState({ ...view, phase: 'EXITED', exit: { code: 0 } }, 0)).toEqual({ word: 'exited (code 0)', kind: 'exited' });
    expect(store.rankState({ ...view, phase: 'EXITED', exit: { signal: 'SIGKILL' } }, 0)).toEqual({
      word: 'exited (SIGKILL)',
      kind: 'failed',
    });
    expect(store.total('messagesSent')).toBe(14);
  });

  test('the clock goes on between messages, and stands still after the end', () => {
    const model = makeRunningModel(new TestClock());
    const store = filled(model);
    expect(store.nowMs(5600)).toBe(1350);
    store.apply({ type: 'update', nowMs: 2000, job: { ...model.job, ended: { atMs: 1900, exitCode: 0 } } }, 6000);
    expect(store.nowMs(99_000)).toBe(1900);
  });

  test('events are kept up to a bound, and a snapshot starts anew', () => {
    const model = makeRunningModel(new TestClock());
    const store = filled(model);
    const [first] = model.log.since(0);
    const many = Array.from({ length: EVENTS_SHOWN_MAX + 5 }, (_, i) => ({ ...first, seq: i }));
    expect(store.apply({ type: 'update', nowMs: 1, events: many }, 1)).toHaveLength(many.length);
    expect(store.events).toHaveLength(EVENTS_SHOWN_MAX);
    expect(store.apply(snapshotOf(model), 1)).toEqual([]);
    expect(store.events).toHaveLength(3);
  });
});

describe('numbers as people read them', () => {
  test.each([
    [0, '0 B'],
    [999, '999 B'],
    [1000, '1.00 kB'],
    [12_345, '12.3 kB'],
    [999_400, '999 kB'],
    [999_600, '1.00 MB'],
    [99_960_000, '100 MB'],
    [2.5e15, '2.50 PB'],
    [3e18, '3000 PB'],
  ])('%d bytes', (value, text) => expect(bytes(value)).toBe(text));

  test('rates, durations, times', () => {
    expect(rate(1_500_000)).toBe('1.50 MB/s');
    expect([400, 9_940, 12_000, 59_700, 185_000, 7_440_000].map(duration)).toEqual([
      '0.4 s',
      '9.9 s',
      '12 s',
      '1 min 0 s',
      '3 min 5 s',
      '2 h 4 min',
    ]);
    expect([0, 7_300, 59_960, 725_000, 3_723_400].map((ms) => clock(ms))).toEqual(['0:00.0', '0:07.3', '1:00.0', '12:05.0', '1:02:03.4']);
    expect(clock(7_600, 0)).toBe('0:08');
  });

  test('two ranks stand left and right, more in a ring', () => {
    expect(ring(1, 100, 100, 40, 40)).toEqual([{ x: 50, y: 50 }]);
    expect(ring(2, 100, 100, 40, 40)).toEqual([
      { x: 10, y: 50 },
      { x: 90, y: 50 },
    ]);
    expect(ring(4, 100, 100, 40, 40)[0]).toEqual({ x: 50, y: 10 });
  });
});
