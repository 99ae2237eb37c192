// The measurements over real links are only worth what their audit and their arithmetic are: both must be able to fail.
import { describe, expect, test } from 'vitest';
import { RankView } from '../../../bench/lab/measured-job.ts';
import { type FromRank, lineSplitter } from '../../../bench/lab/protocol.ts';
import { Deliveries, END, isEnd, Pattern, writeSmall } from '../../../bench/lab/rank-traffic.ts';
import { digits, quantile } from '../../../bench/lab/stats.ts';
import { median } from '../../../bench/lib/stats.mjs';

describe('the audit of large messages', () => {
  const pattern = new Pattern(4096);
  const message = (index: number) => {
    const buffer = Buffer.alloc(4096);
    pattern.write(buffer, index);
    return buffer;
  };

  test('a message as it was sent is sound', () => {
    for (const index of [0, 1, 77, 1_000_000]) expect(pattern.fault(message(index), 4096, index)).toBeUndefined();
  });

  test('another message, in order or not, is told', () => {
    expect(pattern.fault(message(4), 4096, 3)).toBe('message 4 where 3 was due');
    expect(pattern.fault(message(2), 4096, 3)).toBe('message 2 where 3 was due');
  });

  test('one bit anywhere, a wrong length, and bytes of another message are told', () => {
    for (const at of [8, 100, 4095]) {
      const buffer = message(3);
      buffer[at] ^= 1;
      expect(pattern.fault(buffer, 4096, 3)).toMatch(/not those that were sent/);
    }
    expect(pattern.fault(message(3), 4000, 3)).toBe('message 3: 4000 bytes');
    const mixed = message(3);
    message(4).copy(mixed, 2048, 2048);
    expect(pattern.fault(mixed, 4096, 3)).toMatch(/not those that were sent/);
  });
});

describe('the audit of small messages', () => {
  const look = (buffer: Buffer, index: number, bytes = 8) => {
    const errors: string[] = [];
    const end = isEnd({ errors }, buffer, bytes, index);
    return { end, errors };
  };
  const small = (index: number, second?: number) => writeSmall(Buffer.alloc(8), index, second);

  test('tells what is out of order, damaged or short', () => {
    expect(look(small(5), 5)).toEqual({ end: false, errors: [] });
    expect(look(small(6), 5).errors).toEqual(['message 6 where 5 was due']);
    expect(look(small(5, 0), 5).errors).toEqual(['message 5: its bytes are damaged']);
    expect(look(small(5), 5, 7).errors).toEqual(['message 5: 7 bytes']);
  });

  test('the end says how many there were', () => {
    expect(look(small(END, 5), 5)).toEqual({ end: true, errors: [] });
    expect(look(small(END, 6), 5)).toEqual({ end: true, errors: ['5 messages arrived of 6'] });
  });
});

describe('gaps', () => {
  const report = (at: number, lastAt: number, gaps: [number, number][], framesReceived = 0): FromRank => ({
    type: 'report',
    at,
    delivered: 1,
    lastAt,
    gaps,
    rails: [{ key: 'a', state: 'UP', framesReceived, payloadBytesReceived: 0, measuredMBps: 0, troubles: 0 }],
  });

  test('the longest one of which a part lies in the window, whole', () => {
    const view = new RankView();
    view.hear(
      report(100, 100, [
        [10, 15],
        [20, 50],
        [60, 62],
      ]),
    );
    expect(view.worstGapMs(40, 100)).toBe(30);
    expect(view.worstGapMs(51, 100)).toBe(2);
    expect(view.worstGapMs(0, 19)).toBe(5);
    expect(view.worstGapMs(40, 100, 'began')).toBe(2);
    expect(view.worstGapMs(63, 90)).toBe(0);
  });

  test('one that is under way counts as far as it goes', () => {
    const view = new RankView();
    view.hear(report(500, 100, []));
    expect(view.worstGapMs(90, 300)).toBe(400);
    expect(view.worstGapMs(200, 300)).toBe(400);
    expect(view.worstGapMs(200, 300, 'began')).toBe(0);
    expect(view.worstGapMs(0, 50)).toBe(0);
  });

  test('a rail is used again with the first report that lies behind the repair as a whole', () => {
    const view = new RankView();
    view.hear(report(100, 100, [], 3));
    view.hear(report(110, 100, [], 0));
    view.hear(report(120, 100, [], 2));
    view.hear(report(130, 100, [], 1));
    expect(view.usedAt('a', 100)).toBe(120);
    expect(view.usedAt('a', 115)).toBe(130);
    expect(view.usedAt('a', 121)).toBeUndefined();
    expect(view.framesSince('a', 105)).toBe(3);
  });

  test('payload of any rail ends the time without payload', () => {
    const view = new RankView();
    const rail = (key: string, payloadBytesReceived: number) => ({
      key,
      state: 'UP',
      framesReceived: 1,
      payloadBytesReceived,
      measuredMBps: 0,
      troubles: 2,
    });
    for (const [at, a, b] of [
      [100, 1, 1],
      [110, 0, 1],
      [120, 0, 0],
      [150, 0, 0],
      [160, 1, 0],
      [170, 1, 1],
    ])
      view.hear({ ...report(at, at, []), rails: [rail('a', a), rail('b', b)] } as FromRank);
    expect(view.longestWithoutPayloadMs(105, 170)).toBe(40);
    expect(view.longestWithoutPayloadMs(105, 130)).toBe(20);
    expect(view.longestWithoutPayloadMs(165, 170)).toBe(0);
    expect(view.troublesOf('a')).toBe(2);
  });

  test('short intervals between deliveries are not kept, and what was taken is gone', () => {
    const deliveries = new Deliveries(1e9);
    deliveries.note();
    deliveries.note();
    expect(deliveries.count).toBe(2);
    expect(deliveries.takeGaps()).toEqual([]);
    const all = new Deliveries(0);
    all.note();
    expect(all.takeGaps()).toHaveLength(1);
    expect(all.takeGaps()).toEqual([]);
  });
});

describe('figures', () => {
  test('median and quantiles', () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 2, 3])).toBe(2.5);
    expect(quantile([0, 10], 0.99)).toBeCloseTo(9.9);
    expect(quantile([1, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY], 1)).toBe(Number.POSITIVE_INFINITY);
    expect(median([])).toBeNaN();
    expect(digits(Number.NaN)).toBe('–');
    expect(digits(Number.POSITIVE_INFINITY)).toBe('∞');
  });
});

test('lines are put together from pieces', () => {
  const lines: string[] = [];
  const push = lineSplitter((line) => lines.push(line));
  for (const piece of ['{"a"', ':1}\n{"b":2}', '\n', '\n{"c"']) push(piece);
  expect(lines).toEqual(['{"a":1}', '{"b":2}', '']);
});
