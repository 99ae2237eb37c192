// The parts of replicas that say and compare: pairs, words, batches, states. How they play together is the simulator's (profile replica).
import { describe, expect, it } from 'vitest';
import {
  bytesOf,
  crc32cDigest,
  describeWord,
  differenceOf,
  firstDifference,
  fullDigest,
  hexOf,
  NOBODY,
  type Word,
} from '../../../src/ft/replica/digest.ts';
import { patternOf } from '../../../src/ft/replica/paired-pml.ts';
import { placeOf } from '../../../src/ft/replica/pairs.ts';
import { MESSAGE_STATES, moveMessage, movePair, PAIR_STATES } from '../../../src/ft/replica/states.ts';
import { BATCH_BYTES_MAX, BatchWriter, decodeBatch, type Ended, INLINE_BYTES_MAX } from '../../../src/ft/replica/wire.ts';
import { ToeWatch } from '../../../src/mpi/replica/toe-watch.ts';
import { Iov } from '../../../src/util/iov.ts';

const word = (over: Partial<Word> = {}): Word => ({
  request: 7,
  message: 3,
  ctx: 0,
  dest: 2,
  tag: 5,
  bytes: 4,
  sync: false,
  digest: Uint8Array.of(1, 2, 3, 4),
  ...over,
});
const ended = (over: Partial<Ended> = {}): Ended => ({
  request: 9,
  pattern: 0xfeedbeef,
  source: 3,
  tag: 1,
  seq: 4,
  signature: 0,
  cancelled: false,
  error: undefined,
  bytes: 0,
  data: undefined,
  isBulk: false,
  ...over,
});

describe('pairs', () => {
  it('have the lead in the first half of the processes and the shadow in the second', () => {
    expect(placeOf(1, 8)).toEqual({ role: 'lead', rank: 1, ranks: 4, twin: 5 });
    expect(placeOf(5, 8)).toEqual({ role: 'shadow', rank: 1, ranks: 4, twin: 1 });
  });
  it('are refused where processes are no pairs', () => {
    expect(() => placeOf(0, 3)).toThrow('ERR_CONFIG');
    expect(() => placeOf(0, 1)).toThrow('--replicas 2');
  });
});

describe('words', () => {
  it('are equal when all of them is', () => {
    expect(differenceOf(word(), word())).toBeUndefined();
    expect(differenceOf(word(), word({ digest: Uint8Array.of(1, 2, 3, 5) }))).toBe('digest');
  });
  it.each([
    [{ dest: 3 }, 'destination'],
    [{ tag: 6 }, 'tag'],
    [{ ctx: 4 }, 'context'],
    [{ bytes: 5 }, 'length'],
    [{ sync: true }, 'kind'],
    [{ request: 8 }, 'place among the calls'],
  ])('differ in %j', (over, field) => {
    expect(differenceOf(word(), word(over))).toMatchObject({ field });
  });
  it('compare bytes and not values', () => {
    const digest = crc32cDigest();
    const of = (values: Float64Array) => digest(new Iov([new Uint8Array(values.buffer)]));
    expect(of(Float64Array.of(0))).not.toEqual(of(Float64Array.of(-0)));
    const other = new Float64Array(1);
    new DataView(other.buffer).setBigUint64(0, 0x7ff8_0000_0000_0001n, true);
    expect(of(Float64Array.of(Number.NaN))).not.toEqual(of(other));
  });
  it('have the same digest however the bytes are split', () => {
    const bytes = Uint8Array.from({ length: 300 }, (_, i) => i * 7);
    const pieces = new Iov([bytes.subarray(0, 11), bytes.subarray(11, 200), bytes.subarray(200)]);
    expect(crc32cDigest()(pieces)).toEqual(crc32cDigest()(new Iov([bytes])));
    expect(fullDigest(pieces)).toEqual(bytes);
    expect(bytesOf(pieces)).toEqual(bytes);
  });
  it('say where bytes differ, and how', () => {
    expect(firstDifference(Uint8Array.of(1, 2, 3), Uint8Array.of(1, 2, 4))).toBe(2);
    expect(firstDifference(Uint8Array.of(1, 2), Uint8Array.of(1, 2, 4))).toBe(2);
    expect(firstDifference(Uint8Array.of(1), Uint8Array.of(1))).toBe(-1);
    expect(hexOf(Uint8Array.of(0, 255, 16))).toBe('00ff10');
    expect(hexOf(new Uint8Array(33))).toMatch(/^(00){32}…$/);
    expect(describeWord(word())).toBe('message 3, of 4 bytes to rank 2 with tag 5');
    expect(describeWord(word({ dest: NOBODY }))).toContain('a result of 4 bytes');
  });
});

describe('receives', () => {
  it('have patterns by what they ask for', () => {
    const list = [
      patternOf('recv', 0, 1, 2, 3),
      patternOf('recv', 4, 1, 2, 3),
      patternOf('recv', 0, -1, 2, 3),
      patternOf('recv', 0, 1, -1, 3),
      patternOf('recv', 0, 1, 2, 4),
      patternOf('recv', 0, 1, 2, 3 + 2 ** 32),
      patternOf('probe', 0, 1, 2, 3),
      patternOf('mprobe', 0, 1, 2, 3),
    ];
    expect(new Set(list).size).toBe(list.length);
    expect(patternOf('recv', 0, 1, 2, 3)).toBe(list[0]);
  });
});

describe('batches', () => {
  it('come back as they were', () => {
    const writer = new BatchWriter();
    expect(writer.isEmpty).toBe(true);
    expect(writer.vouch(word())).toBe(false);
    expect(writer.vouch(word({ dest: NOBODY, sync: true, digest: new Uint8Array(INLINE_BYTES_MAX + 1) }))).toBe(true);
    writer.vouched(70_000);
    writer.forward(ended({ data: Uint8Array.of(1, 2), bytes: 2 }));
    writer.forward(ended({ source: -1, tag: -1, cancelled: true, isBulk: true, bytes: 2 ** 40 }));
    writer.forward(ended({ error: { code: 'ERR_TRUNCATE', text: 'too long: 9 bytes', peer: 0 } }));
    writer.forward(ended({ error: { code: 'ERR_ABORT', text: '…', peer: undefined } }));
    writer.burst(0);
    writer.look(17, []);
    writer.look(1, [-1, 5, 300]);
    writer.over(12);
    writer.consumed(2 ** 33);
    expect(writer.evidence(3, Uint8Array.of(9))).toBe(false);
    writer.diverged(0, 'request 5 is another one');
    writer.ask();
    writer.here(12);
    writer.finished(4, 11);
    const records = decodeBatch(writer.take());
    expect(writer.isEmpty).toBe(true);
    const { digest, ...rest } = word();
    expect(records).toEqual([
      { kind: 'VOUCH', word: rest, digest, digestBytes: 4 },
      { kind: 'VOUCH', word: { ...rest, dest: NOBODY, sync: true }, digest: undefined, digestBytes: INLINE_BYTES_MAX + 1 },
      { kind: 'VOUCHED', message: 70_000 },
      { kind: 'FORWARD', ended: ended({ data: Uint8Array.of(1, 2), bytes: 2 }) },
      { kind: 'FORWARD', ended: ended({ source: -1, tag: -1, cancelled: true, isBulk: true, bytes: 2 ** 40 }) },
      { kind: 'FORWARD', ended: ended({ error: { code: 'ERR_TRUNCATE', text: 'too long: 9 bytes', peer: 0 } }) },
      { kind: 'FORWARD', ended: ended({ error: { code: 'ERR_ABORT', text: '…', peer: undefined } }) },
      { kind: 'BURST', call: 0 },
      { kind: 'LOOK', count: 17, values: [] },
      { kind: 'LOOK', count: 1, values: [-1, 5, 300] },
      { kind: 'OVER', call: 12 },
      { kind: 'CONSUMED', bytes: 2 ** 33 },
      { kind: 'EVIDENCE', message: 3, bytes: 1, data: Uint8Array.of(9) },
      { kind: 'DIVERGED', message: 0, text: 'request 5 is another one' },
      { kind: 'ASK' },
      { kind: 'HERE', requests: 12 },
      { kind: 'FINISHED', messages: 4, requests: 11 },
    ]);
  });

  it('stay under their bound', () => {
    const writer = new BatchWriter();
    const data = new Uint8Array(INLINE_BYTES_MAX);
    const error = { code: 'ERR_TRUNCATE', text: 'x'.repeat(5000), peer: 1 };
    while (!writer.isFullFor(data.length)) writer.forward(ended({ data, bytes: data.length, error }));
    writer.vouched(2 ** 50);
    writer.look(2 ** 50, []);
    const batch = writer.take();
    expect(batch.length).toBeLessThanOrEqual(BATCH_BYTES_MAX);
    expect(decodeBatch(batch).length).toBeGreaterThan(9);
  });

  it('are refused when they are broken', () => {
    const writer = new BatchWriter();
    writer.forward(ended({ data: Uint8Array.of(1, 2, 3, 4), bytes: 4 }));
    const batch = writer.take();
    for (let length = 2; length < batch.length; length++) expect(() => decodeBatch(batch.subarray(0, length))).toThrow('ERR_PROTOCOL');
    expect(() => decodeBatch(Uint8Array.of(2))).toThrow('version 2');
    expect(() => decodeBatch(Uint8Array.of(3, 99))).toThrow('kind 99');
    expect(() => decodeBatch(Uint8Array.of(3, 33, 255, 255, 255, 255, 255, 255, 255, 255, 1))).toThrow('ERR_PROTOCOL');
  });
});

describe('states', () => {
  it('have a sentence each, and go by their tables alone', () => {
    for (const sentence of [...Object.values(PAIR_STATES), ...Object.values(MESSAGE_STATES)]) expect(sentence).toMatch(/\.$/);
    expect(movePair('PAIRED', 'FINISHING')).toBe('FINISHING');
    expect(() => movePair('DIVERGED', 'PAIRED')).toThrow('DIVERGED');
    expect(moveMessage('UNVOUCHED', 'VOUCHED')).toBe('VOUCHED');
    expect(() => moveMessage('HELD', 'VOUCHED')).toThrow('HELD');
  });
});

describe('lateness', () => {
  interface State {
    due: string | undefined;
    /** The other one has come to it with so many calls. */
    dueCalls: number | undefined;
    /** Processor times. */
    own: number;
    twin: number | undefined;
    calls: { own: number; twin: number };
    /** Calls of the other one that its clock tells of. */
    seen: number | undefined;
    /** How often its clock was told that a wait begins. */
    waits: number;
  }
  const watch = (): { state: State; late: string[]; look(): void } => {
    const state: State = {
      ...{ due: undefined, dueCalls: undefined, own: 0, twin: 0, calls: { own: 0, twin: 0 }, seen: undefined, waits: 0 },
    };
    const late: string[] = [];
    const toe = new ToeWatch({
      factor: 4,
      due: () => (state.due === undefined ? undefined : { what: state.due, calls: state.dueCalls }),
      calls: () => state.calls,
      ownMs: () => state.own,
      clock: {
        refresh: () => void state.waits++,
        read: () => (state.twin === undefined ? undefined : { ms: state.twin, calls: state.seen }),
      },
      onLate: (what) => late.push(what),
    });
    return { state, late, look: () => toe.look() };
  };
  it('is judged by what the other one has used since it is waited for', () => {
    const { state, late, look } = watch();
    look();
    Object.assign(state, { due: 'its call 7', own: 500, twin: 100, calls: { own: 7, twin: 6 } });
    look();
    state.twin = 2090;
    look();
    look();
    expect(late).toEqual([]);
    state.twin = 2110;
    look();
    look();
    expect(late).toEqual([
      expect.stringMatching(/^it has used 2\.01 s of a processor without coming to its call 7; at most 2\.00 s were to be expected/),
    ]);
  });
  it('may use what this one used behind the last call of both, though a look came between that and the next call', () => {
    const { state, late, look } = watch();
    Object.assign(state, { own: 100, calls: { own: 7, twin: 6 } });
    look();
    // Both have begun call 8, this one has computed for 1.2 s behind it, and a timer runs before it begins call 9.
    Object.assign(state, { own: 1300, twin: 120, calls: { own: 8, twin: 8 } });
    look();
    Object.assign(state, { due: 'its call 9', calls: { own: 9, twin: 8 } });
    look();
    state.twin = 1320;
    look();
    look();
    expect(late).toEqual([]);
    // Four times 1.2 s is the most, and no longer.
    state.twin = 4930;
    look();
    look();
    expect(late).toHaveLength(1);
  });
  it('keeps few places, and the earlier one where it keeps none between', () => {
    const { state, late, look } = watch();
    for (let calls = 1; calls <= 500; calls++) {
      Object.assign(state, { own: calls, calls: { own: calls, twin: 0 } });
      look();
    }
    Object.assign(state, { due: 'its call 501', own: 600, calls: { own: 501, twin: 100 } });
    look();
    state.twin = 1000 + 600;
    look();
    look();
    expect(late).toEqual([]);
  });
  it('is at least a second, and none of a process that uses no processor or is not known', () => {
    const { state, late, look } = watch();
    Object.assign(state, { due: 'its call 1', own: 10 });
    look();
    state.twin = 990;
    for (let i = 0; i < 5; i++) look();
    state.twin = undefined;
    for (let i = 0; i < 5; i++) look();
    expect(late).toEqual([]);
  });
  it('counts from the first answer of a clock on another host, which may be late', () => {
    const { state, late, look } = watch();
    Object.assign(state, { due: 'its call 1', dueCalls: 1, own: 10, twin: undefined, seen: 0 });
    for (let i = 0; i < 5; i++) look();
    expect(state.waits).toBe(1);
    // What it had used when it was asked is not known; it may have been all of this.
    state.twin = 5000;
    for (let i = 0; i < 5; i++) look();
    state.twin = 6000;
    for (let i = 0; i < 5; i++) look();
    expect(late).toEqual([]);
    state.twin = 6010;
    look();
    look();
    expect(late).toHaveLength(1);
  });
  it('is not that of one that has come to it, and whose word is not here', () => {
    const { state, late, look } = watch();
    Object.assign(state, { due: 'its call 7', dueCalls: 7, own: 10, seen: 7 });
    look();
    state.twin = 9000;
    for (let i = 0; i < 5; i++) look();
    Object.assign(state, { due: 'the end of its program', dueCalls: Number.POSITIVE_INFINITY, seen: Number.POSITIVE_INFINITY });
    look();
    state.twin = 19_000;
    for (let i = 0; i < 5; i++) look();
    // Calls do not tell whether it has shown what it would have sent.
    Object.assign(state, { due: 'what it would have sent as message 3', dueCalls: undefined, seen: 2 });
    look();
    state.twin = 29_000;
    for (let i = 0; i < 5; i++) look();
    expect(late).toEqual([]);
  });
  it('is told at the second look: what the other one has said while this one had no processor is read before', () => {
    const { state, late, look } = watch();
    Object.assign(state, { due: 'its call 10', own: 10 });
    look();
    // This process was not there for long; the other one has answered long ago.
    state.twin = 1010;
    look();
    state.due = undefined;
    look();
    Object.assign(state, { due: 'its call 11' });
    look();
    expect(late).toEqual([]);
  });
});
