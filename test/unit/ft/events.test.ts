// Recorded outcomes by themselves: their encoding, who has what, and that a successor obeys its list. The simulator's profile `log` has them in
// programs whose processes die.
import { describe, expect, it } from 'vitest';
import { BATCH_BYTES_MAX, decodeBatch, EVENT, encodeBatch, fitting, NO_BYTES } from '../../../src/ft/events/format.ts';
import { Holdings } from '../../../src/ft/events/holdings.ts';
import { Recorder, type RecorderOptions } from '../../../src/ft/events/recorder.ts';

const recorderOf = (options: Partial<RecorderOptions> = {}): Recorder =>
  new Recorder({ rank: 1, determinism: 'recorded', rankOf: (number) => number - 10, numberOf: (rank) => rank + 10, ...options });

/** Gives all to the holder, and tells the recorder. */
function hold(recorder: Recorder, holdings: Holdings): number {
  let batches = 0;
  for (let bytes = recorder.takeBatch(); bytes !== undefined; bytes = recorder.takeBatch()) {
    batches++;
    const batch = decodeBatch(bytes);
    recorder.handleConfirmed(batch.epoch, holdings.handleBatch(batch) as number);
  }
  return batches;
}

describe('a batch', () => {
  const batch = {
    epoch: 3,
    owner: 2,
    base: 1000,
    from: 1200,
    isWhole: true,
    records: [
      { kind: EVENT.MATCH, values: [1, 2, 2 ** 40], bytes: NO_BYTES },
      { kind: EVENT.NOTHING, values: [128], bytes: NO_BYTES },
      { kind: EVENT.ONCE, values: [], bytes: Uint8Array.of(1, 2, 3) },
    ],
  };

  it('is read as it was written', () => {
    expect(decodeBatch(encodeBatch(batch))).toEqual(batch);
  });

  it('is refused wherever it is cut off, in another version, and with bytes left over', () => {
    const bytes = encodeBatch(batch);
    for (let length = 0; length < bytes.length; length++) expect(() => decodeBatch(bytes.subarray(0, length)), String(length)).toThrow();
    expect(() => decodeBatch(Uint8Array.of(2, ...bytes.subarray(1)))).toThrow('version 2, expected 1');
    expect(() => decodeBatch(Uint8Array.of(...bytes, 0))).toThrow('1 bytes are left over');
  });

  it('is bounded, and has one record at least', () => {
    const records = Array.from({ length: 100_000 }, () => batch.records[0]);
    const count = fitting(records, 0, BATCH_BYTES_MAX);
    expect(count).toBeGreaterThan(1000);
    expect(encodeBatch({ ...batch, records: records.slice(0, count) }).length).toBeLessThanOrEqual(BATCH_BYTES_MAX);
    expect(fitting(records, 0, 1)).toBe(1);
  });
});

describe('outcomes', () => {
  it('are safe when the holder has them, one batch at a time', () => {
    const recorder = recorderOf();
    const holdings = new Holdings([1]);
    expect(recorder.isConfirmed).toBe(true);
    recorder.note(EVENT.ENDED, undefined);
    expect(recorder.isConfirmed).toBe(false);
    const first = decodeBatch(recorder.takeBatch() as Uint8Array);
    recorder.note(EVENT.ENDED, [0]);
    expect(recorder.takeBatch()).toBeUndefined();
    recorder.handleConfirmed(0, holdings.handleBatch(first) as number);
    expect(recorder.isConfirmed).toBe(false);
    expect(hold(recorder, holdings)).toBe(1);
    expect(recorder.isConfirmed).toBe(true);
    expect(holdings.recordsOf(1)?.records.map(({ kind, values }) => [kind, ...values])).toEqual([
      [EVENT.NOTHING, 1],
      [EVENT.ENDED, 0],
    ]);
  });

  it('are obeyed in their order, and then are its own', () => {
    const before = recorderOf();
    const holdings = new Holdings([1]);
    const { receive } = before.begin();
    before.note(EVENT.FOUND, undefined);
    before.note(EVENT.FOUND, undefined);
    before.match(receive, 13, 7);
    before.note(EVENT.ENDED, [2, 0]);
    before.noteOnce('nine', Uint8Array.of(9));
    hold(before, holdings);
    const successor = recorderOf();
    successor.restore(undefined, holdings.recordsOf(1));
    expect(successor.begin()).toEqual({ receive: 1, source: 3 });
    expect(successor.next(EVENT.FOUND)).toBe('nothing');
    expect(successor.next(EVENT.FOUND)).toBe('nothing');
    expect(() => successor.next(EVENT.FOUND)).toThrow('does not repeat itself');
    expect(successor.next(EVENT.ENDED)).toEqual([2, 0]);
    expect(successor.nextOnce('ten')).toBeUndefined();
    expect(successor.nextOnce('nine')).toEqual(Uint8Array.of(9));
    expect(successor.nextOnce('nine')).toBeUndefined();
    expect(successor.isReplaying).toBe(true);
    expect(successor.match(1, 13, 8)?.code).toBe('ERR_REPLAY');
    expect(successor.isReplaying).toBe(false);
    expect(successor.next(EVENT.FOUND)).toBeUndefined();
    expect(successor.begin()).toEqual({ receive: 2, source: undefined });
  });

  it('go to the next holder as a whole, and count as here only then', () => {
    const recorder = recorderOf({ batchBytesMax: 1 });
    for (let i = 0; i < 3; i++) recorder.note(EVENT.ENDED, [i]);
    const first = new Holdings([1]);
    hold(recorder, first);
    const second = new Holdings([]);
    recorder.beginEpoch(1);
    expect(recorder.isConfirmed).toBe(false);
    const batch = decodeBatch(recorder.takeBatch() as Uint8Array);
    recorder.handleConfirmed(1, second.handleBatch(batch) as number);
    expect(second.recordsOf(1)).toBeUndefined();
    // The one that holds them still has the whole of before until the whole of this epoch is there.
    first.handleBatch(batch);
    expect(first.recordsOf(1)?.records).toHaveLength(3);
    hold(recorder, second);
    expect(recorder.isConfirmed).toBe(true);
    expect(second.recordsOf(1)?.records).toHaveLength(3);
    // A word of the epoch before is no news.
    recorder.note(EVENT.ENDED, [3]);
    recorder.handleConfirmed(0, 100);
    expect(recorder.isConfirmed).toBe(false);
  });

  it('of before a save are trimmed when it is committed, and not before', () => {
    const recorder = recorderOf();
    const holdings = new Holdings([1]);
    recorder.begin();
    recorder.note(EVENT.ENDED, [0]);
    const cut = recorder.cut();
    expect(cut).toEqual({ index: 1, receives: 1, awaits: 0 });
    recorder.note(EVENT.ENDED, [1]);
    hold(recorder, holdings);
    expect(holdings.recordsOf(1)).toMatchObject({ base: 0 });
    recorder.commit();
    recorder.note(EVENT.ENDED, [2]);
    hold(recorder, holdings);
    expect(holdings.recordsOf(1)?.base).toBe(1);
    const successor = recorderOf();
    successor.restore(cut, holdings.recordsOf(1));
    expect(successor.begin().receive).toBe(2);
    expect(successor.next(EVENT.ENDED)).toEqual([1]);
    expect(() => recorderOf().restore(undefined, holdings.recordsOf(1))).toThrow('are listed from 1 on');
  });

  it('are given up when there is no room, which the holder is told before anything leaves, until the next save', () => {
    const pressure: string[] = [];
    const recorder = recorderOf({ bytesMax: 400, onPressure: (kind) => pressure.push(kind) });
    const holdings = new Holdings([1]);
    for (let i = 0; i < 10; i++) recorder.note(EVENT.ENDED, [i]);
    expect(pressure).toEqual(['due', 'given up']);
    expect(recorder.isWhole).toBe(false);
    expect(recorder.isConfirmed).toBe(false);
    hold(recorder, holdings);
    expect(recorder.isConfirmed).toBe(true);
    // Nobody can begin from before that.
    expect(holdings.recordsOf(1)).toMatchObject({ records: [] });
    expect(() => recorderOf().restore(undefined, holdings.recordsOf(1))).toThrow();
    const cut = recorder.cut();
    recorder.note(EVENT.ENDED, [11]);
    recorder.commit();
    expect(recorder.isWhole).toBe(true);
    hold(recorder, holdings);
    const successor = recorderOf();
    successor.restore(cut, holdings.recordsOf(1));
    expect(successor.next(EVENT.ENDED)).toEqual([11]);
  });

  it('of a program that sends the same whatever comes are values of once() alone, and nothing waits for them', () => {
    const recorder = recorderOf({ determinism: 'send' });
    recorder.note(EVENT.ENDED, [0]);
    expect(recorder.takeBatch()).toBeUndefined();
    expect(recorder.noteOnce('one', Uint8Array.of(1))).toBe(true);
    expect(recorder.noteOnce('long', new Uint8Array(100_000))).toBe(false);
    expect(recorder.isConfirmed).toBe(true);
    expect(decodeBatch(recorder.takeBatch() as Uint8Array).records).toHaveLength(1);
  });
});
