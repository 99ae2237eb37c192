// Bytes over time: nothing is lost by spreading, and nothing grows without bound.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { EventLog } from '../../../tools/dashboard/event-log.ts';
import { History } from '../../../tools/dashboard/history.ts';

const total = (bytes: readonly number[]) => bytes.reduce((sum, value) => sum + value, 0);

describe('history', () => {
  test('bytes are spread over the slots in proportion', () => {
    const history = new History({ slotMs: 100, slots: 50, seriesMax: 4 });
    history.add('a', 50, 350, 3000);
    expect(history.all()).toEqual([{ key: 'a', first: 0, bytes: [500, 1000, 1000, 500] }]);
  });

  test('a span of no length goes into one slot', () => {
    const history = new History({ slotMs: 100, slots: 50, seriesMax: 4 });
    history.add('a', 0, 200, 0);
    history.add('a', 200, 200, 7);
    expect(history.all()).toEqual([{ key: 'a', first: 0, bytes: [0, 0, 7] }]);
  });

  test('slots that have left the ring are forgotten, and a long silence is zeros', () => {
    const history = new History({ slotMs: 100, slots: 5, seriesMax: 4 });
    history.add('a', 0, 400, 400);
    history.add('a', 10_000, 10_099, 99);
    expect(history.all()).toEqual([{ key: 'a', first: 96, bytes: [0, 0, 0, 0, 99] }]);
  });

  test('a span that began before the ring keeps the share of its slots that are left', () => {
    const history = new History({ slotMs: 100, slots: 5, seriesMax: 4 });
    history.add('a', 0, 2000, 2000);
    expect(history.all()).toEqual([{ key: 'a', first: 16, bytes: [100, 100, 100, 100, 0] }]);
  });

  test('what changed is given once, from the first slot that did', () => {
    const history = new History({ slotMs: 100, slots: 50, seriesMax: 4 });
    history.add('a', 0, 300, 300);
    history.add('b', 0, 100, 100);
    expect(history.takeChanged().map(({ key }) => key)).toEqual(['a', 'b']);
    history.add('a', 300, 350, 50);
    expect(history.takeChanged()).toEqual([{ key: 'a', first: 3, bytes: [50] }]);
    expect(history.takeChanged()).toEqual([]);
  });

  test('series beyond the bound are refused and counted, and the count is bounded too', () => {
    const history = new History({ slotMs: 100, slots: 5, seriesMax: 2 });
    expect(['a', 'b', 'c', 'd', 'e', 'c'].map((key) => history.add(key, 0, 100, 1))).toEqual([true, true, false, false, false, false]);
    expect([history.seriesCount, history.seriesDropped]).toEqual([2, 2]);
  });

  test('whatever the spans are: inside the ring no byte is lost or added, beyond rounding', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 1, max: 900 }), fc.integer({ min: 0, max: 1_000_000 })), { maxLength: 20 }),
        (steps) => {
          const history = new History({ slotMs: 70, slots: 1000, seriesMax: 1 });
          let atMs = 13;
          let added = 0;
          for (const [spanMs, bytes] of steps) {
            history.add('a', atMs, atMs + spanMs, bytes);
            atMs += spanMs;
            added += bytes;
          }
          const [run] = history.all();
          const kept = run === undefined ? 0 : total(run.bytes);
          expect(Math.abs(kept - added)).toBeLessThanOrEqual((run?.bytes.length ?? 0) / 2 + 1);
        },
      ),
    );
  });
});

describe('event log', () => {
  test('numbers without gaps, times of day, and only the last ones are kept', () => {
    const log = new EventLog(Date.UTC(2026, 0, 1), 3);
    const heard: number[] = [];
    const stop = log.listen(({ seq }) => heard.push(seq));
    for (let i = 1; i <= 4; i++) log.add(i * 1000, 'rank-joined', `rank ${i}`, { rank: i });
    stop();
    log.add(5000, 'rank-joined', 'rank 1', { rank: 1 });
    expect(heard).toEqual([1, 2, 3, 4]);
    expect(log.since(0).map(({ seq }) => seq)).toEqual([3, 4, 5]);
    expect(log.since(4)).toEqual([{ seq: 5, time: '2026-01-01T00:00:05.000Z', atMs: 5000, type: 'rank-joined', rank: 1, text: 'rank 1' }]);
    expect(log.since(5)).toEqual([]);
    expect(log.latestSeq).toBe(5);
    expect(log.totals()).toContainEqual({ type: 'rank-joined', rank: 1, count: 2 });
  });
});
