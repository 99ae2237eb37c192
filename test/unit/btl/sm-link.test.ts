// A live shared-memory rail over plain memory, both ends in this process, without sockets and without the native part: counts that
// wrap, rubbish in every word that the other side can write, and the scheme by which a sleeper is woken.
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { LinkOwner } from '../../../src/btl/base/link.ts';
import { RECORD_BYE, RECORD_DATA, recordWord } from '../../../src/btl/base/record-hdr.ts';
import {
  BUSY,
  DELIVERED,
  type Frame,
  IN_DOUBT,
  newRailByteCounters,
  OK,
  type RailReason,
  type Sink,
  type Upcalls,
} from '../../../src/btl/btl.ts';
import { RECORD_ALIGNMENT, RingWriter, recordBytes } from '../../../src/btl/sm/ring.ts';
import { RINGS_AT, Segment, segmentBytes } from '../../../src/btl/sm/segment.ts';
import { type RingStart, type SmHost, SmLink } from '../../../src/btl/sm/sm-link.ts';
import type { UnixStream } from '../../../src/btl/sm/unix-stream.ts';
import { Prng } from '../../../src/util/prng.ts';

const RING_BYTES = 64 * 1024;
const FRAME_BYTES_MAX = 16 * 1024;
const WINDOW = 1024 * 1024;

/** One end with everything that it needs, and a record of what came up. */
class End {
  readonly link: SmLink;
  readonly received: number[] = [];
  readonly completed: { id: number; status: number }[] = [];
  readonly probes: number[] = [];
  readonly sink: Sink = { views: [], revoked: false };
  down: RailReason | undefined;
  byes = 0;
  signals = 0;
  satisfied = false;
  onFrame: (() => void) | undefined;
  readonly stream = {
    ready: false,
    status: 'open',
    peerPid: 1,
    failure: undefined as RailReason | undefined,
    hasEnded: () => this.stream.status === 'closed',
    ring: () => {
      other(this).signals++;
    },
    destroy: () => {
      this.stream.status = 'closed';
    },
  };
  readonly owner: LinkOwner;

  constructor(memory: ArrayBuffer, side: 'dialer' | 'acceptor', start: RingStart) {
    const isSatisfied = () => this.satisfied;
    const upcalls: Partial<Upcalls> = {
      get satisfied() {
        return isSatisfied();
      },
      onFrame: (_endpoint, _epoch, header, payload, sink) => {
        const view = new DataView(header.buffer, header.byteOffset, header.length);
        if (header.length >= 8) {
          const id = view.getUint32(0, true);
          if (sink === null && payload.some((byte) => byte !== (id & 0xff))) throw new Error(`frame ${id} came with other bytes`);
          this.received.push(id);
        }
        this.onFrame?.();
      },
      sinkFor: (_endpoint, _epoch, _header, payloadBytes) => {
        this.sink.views = [new Uint8Array(payloadBytes)];
        return this.sink;
      },
      onSinkDropped: () => {},
      onCompleted: (_endpoint, _epoch, frame, status) => {
        this.completed.push({ id: new DataView(frame.header.buffer).getUint32(0, true), status });
      },
      onRailDown: (_endpoint, _epoch, reason) => {
        this.down = reason;
      },
      onProbeAnswered: (_endpoint, _epoch, id) => {
        this.probes.push(id);
      },
      onBye: () => {
        this.byes++;
      },
      onReport: () => {},
    };
    const attributes = { frameBytesMax: FRAME_BYTES_MAX, canGet: true };
    this.owner = {
      endpoint: {
        plan: { key: 'sm#0', attributes, detail: { ringBytes: RING_BYTES, singleCopy: false } },
      } as unknown as LinkOwner['endpoint'],
      upcalls: upcalls as Upcalls,
      counters: newRailByteCounters(),
      options: { endTimeoutMs: 100 } as LinkOwner['options'],
      byeDelivered: false,
    };
    const native = {
      memoryUnmap: () => {},
      close: () => {},
    };
    const host = { native, choice: undefined, forget: () => {} } as unknown as SmHost;
    const segment = new Segment(memory, RING_BYTES, side);
    this.link = new SmLink(this.owner, host, 1, this.stream as unknown as UnixStream, segment, start);
  }

  poll(now = 0): void {
    this.link.poll(now, now);
    if (this.link.end !== undefined) this.link.close();
  }

  send(id: number, bytes = 0, options: Partial<Frame> = {}): number {
    const header = new Uint8Array(8);
    new DataView(header.buffer).setUint32(0, id, true);
    const payload = bytes === 0 ? [] : [new Uint8Array(bytes).fill(id & 0xff)];
    const frame: Frame = { header, payload, payloadBytes: bytes, placed: false, prompt: false, railFrameNumber: 0, ...options };
    return this.link.send(frame, WINDOW);
  }
}

let ends: End[] = [];
const other = (end: End): End => (ends[0] === end ? ends[1] : ends[0]);

function makeLinks(start: RingStart = { offset: 0, count: 0 }): { a: End; b: End; memory: ArrayBuffer } {
  const memory = new ArrayBuffer(segmentBytes(RING_BYTES));
  new Segment(memory, RING_BYTES, 'dialer').format();
  ends = [];
  const a = new End(memory, 'dialer', start);
  ends.push(a);
  const b = new End(memory, 'acceptor', start);
  ends.push(b);
  return { a, b, memory };
}

afterEach(() => vi.restoreAllMocks());

describe('counts', () => {
  for (const start of [
    { offset: 0, count: 0 },
    { offset: RING_BYTES - 64, count: 0x7ffffff0 },
    { offset: 128, count: -16 },
  ]) {
    test(`frames of both sides are delivered once, in order, from count ${start.count} on`, () => {
      const { a, b } = makeLinks(start);
      const prng = new Prng(`counts ${start.count}`);
      const sent = [0, 0];
      for (let turn = 0; turn < 2000; turn++) {
        const i = prng.below(2);
        const end = [a, b][i];
        for (let n = prng.below(8); n > 0; n--) {
          const placed = prng.below(4) === 0;
          const answer = end.send(sent[i] + 1, prng.pick([0, 3, 8, 129, 5000]), { placed, prompt: prng.below(5) === 0 });
          if (answer !== OK) break;
          sent[i]++;
        }
        if (prng.below(2) === 0) end.link.flush();
        [a, b][prng.below(2)].poll();
      }
      for (let turn = 0; turn < 50; turn++) for (const end of [a, b]) end.poll();
      for (const [i, end] of [a, b].entries()) {
        expect(end.down).toBeUndefined();
        expect(sent[i]).toBeGreaterThan(500);
        expect(other(end).received).toEqual(Array.from({ length: sent[i] }, (_, n) => n + 1));
        expect(end.completed).toEqual(Array.from({ length: sent[i] }, (_, n) => ({ id: n + 1, status: DELIVERED })));
        expect(end.link.outstandingBytes).toBe(0);
      }
    });
  }

  test('a frame is counted only after its upcall has returned', () => {
    const { a, b } = makeLinks();
    a.send(1);
    let during = -1;
    b.onFrame = () => {
      a.poll();
      during = a.completed.length;
    };
    b.poll();
    expect(during).toBe(0);
    for (let i = 0; i < 5; i++) b.poll();
    a.poll();
    expect(a.completed).toEqual([{ id: 1, status: DELIVERED }]);
  });

  test('an answer carries the count; without one it comes when nothing more is to do, at once for a prompt frame', () => {
    const { a, b } = makeLinks();
    a.send(1);
    b.poll();
    a.poll();
    expect(a.completed).toEqual([]);
    b.send(1);
    a.poll();
    expect(a.completed.length).toBe(1);
    a.send(2, 0, { prompt: true });
    b.poll();
    a.poll();
    expect(a.completed.length).toBe(2);
    a.send(3);
    for (let i = 0; i < 4; i++) b.poll();
    a.poll();
    expect(a.completed.length).toBe(3);
  });

  test('a full ring is BUSY, then writable again, and control frames have their reserve', () => {
    const { a, b } = makeLinks();
    let accepted = 0;
    while (a.send(accepted + 1, 1000) === OK) accepted++;
    expect(accepted).toBeGreaterThan(20);
    expect(a.send(1000)).toBe(OK);
    expect(a.link.takeWritable(WINDOW)).toBe(false);
    a.link.flush();
    for (let i = 0; i < 5; i++) b.poll();
    a.poll();
    expect(a.link.takeWritable(WINDOW)).toBe(true);
    expect(a.link.takeWritable(WINDOW)).toBe(false);
    while (a.send(7) === OK);
    expect(a.send(7)).toBe(BUSY);
  });

  test('BYE both ways ends both sides in good order, whoever is slower', () => {
    const { a, b } = makeLinks();
    a.send(1);
    a.link.bye();
    expect(a.send(2)).not.toBe(OK);
    b.poll();
    b.link.bye();
    a.poll();
    b.poll();
    for (let i = 0; i < 5; i++) for (const end of [a, b]) if (end.link.end === undefined) end.poll();
    for (const end of [a, b]) {
      expect(end.byes).toBe(1);
      expect(end.link.end).toEqual({ clean: true });
      expect(end.down).toBeUndefined();
      expect(end.owner.byeDelivered).toBe(true);
    }
    expect(a.completed).toEqual([{ id: 1, status: DELIVERED }]);
  });

  test('what was published before the socket closed is handed up; the rest is in doubt', () => {
    const { a, b } = makeLinks();
    for (let n = 1; n <= 600; n++) expect(a.send(n)).toBe(OK);
    a.link.flush();
    b.send(1);
    b.stream.status = 'closed';
    b.stream.ready = true;
    b.poll();
    expect(b.received.length).toBe(600);
    expect(b.down?.kind).toBe('closed');
    expect(b.completed).toEqual([{ id: 1, status: IN_DOUBT }]);
  });
});

describe('a blocking call that has what it waits for', () => {
  test('leaves what stands behind it for the next poll', () => {
    const { a, b } = makeLinks();
    for (let n = 1; n <= 5; n++) expect(a.send(n)).toBe(OK);
    a.link.flush();
    b.satisfied = true;
    b.poll();
    expect(b.received).toEqual([1]);
    b.satisfied = false;
    b.poll();
    expect(b.received).toEqual([1, 2, 3, 4, 5]);
  });

  test('and still gets all that was published, when the socket has closed', () => {
    const { a, b } = makeLinks();
    for (let n = 1; n <= 5; n++) expect(a.send(n)).toBe(OK);
    a.link.flush();
    b.satisfied = true;
    b.stream.status = 'closed';
    b.stream.ready = true;
    b.poll();
    expect(b.received).toEqual([1, 2, 3, 4, 5]);
    expect(b.down?.kind).toBe('closed');
  });
});

describe('a broken peer', () => {
  test('ends the rail as damaged, for every count that cannot be', () => {
    for (const count of [2, 100, 0x7fffffff]) {
      const { a, b, memory } = makeLinks();
      a.send(1);
      const { peer } = new Segment(memory, RING_BYTES, 'dialer');
      new Int32Array(memory)[peer.deliveredCount] = count;
      a.poll();
      expect(a.down).toMatchObject({ kind: 'damaged', text: expect.stringContaining('delivered count') });
      expect(a.completed).toEqual([{ id: 1, status: IN_DOUBT }]);
      expect(b.down).toBeUndefined();
    }
  });

  test('may say an old count: it is stale, not wrong', () => {
    const { a, memory } = makeLinks({ offset: 0, count: 50 });
    a.send(1);
    const { peer } = new Segment(memory, RING_BYTES, 'dialer');
    new Int32Array(memory)[peer.deliveredCount] = 49;
    a.poll();
    expect(a.down).toBeUndefined();
    expect(a.completed).toEqual([]);
  });

  test.each([
    ['a frame', RECORD_DATA],
    ['a second BYE', RECORD_BYE],
  ])('ends the rail as damaged by %s after BYE', (what, kind) => {
    const { a, b, memory } = makeLinks();
    a.link.bye();
    a.link.flush();
    // BYE took one line of the ring; the peer's next record stands behind it.
    const writer = new RingWriter(memory, new Segment(memory, RING_BYTES, 'dialer').own.ringAt, RING_BYTES, RECORD_ALIGNMENT);
    const record = recordBytes(0, 0);
    const at = writer.begin(record);
    writer.words.fill(0, at / 4 + 1, at / 4 + 4);
    writer.commit(at, record, recordWord(kind, 0, 0));
    writer.publish();
    b.poll();
    expect(b.byes).toBe(1);
    expect(b.received).toEqual([]);
    expect(b.down).toEqual({ kind: 'damaged', text: kind === RECORD_BYE ? what : 'a frame after BYE' });
  });

  test('whatever it writes: an upcall, or an end as damaged; no other error, and no turn without end', () => {
    const prng = new Prng('broken peers');
    const interesting = [0, 1, -1, 2, 3, 4, 5, 6, 0x10001, 0x7fffffff, -0x80000000, 0x10000001, RING_BYTES, FRAME_BYTES_MAX + 1];
    let damaged = 0;
    for (let run = 0; run < 1500; run++) {
      const offset = prng.below(RING_BYTES / 64) * 64;
      const { a, b, memory } = makeLinks({ offset, count: prng.below(2) === 0 ? 0 : 0x7ffffffe });
      // Bytes that were changed on the way are no matter of this rail: only lengths and counts are looked at.
      b.owner.upcalls.onFrame = () => {};
      a.owner.upcalls.onFrame = () => {};
      const words = new Int32Array(memory);
      for (let turn = 0; turn < 12; turn++) {
        for (const end of [a, b]) {
          if (end.link.end !== undefined) continue;
          for (let n = prng.below(4); n > 0; n--) end.send(n, prng.pick([0, 8, 300, 4000]), { placed: prng.below(3) === 0 });
          if (prng.below(8) === 0) end.link.probe(prng.below(100));
          if (prng.below(30) === 0) end.link.bye();
          end.link.flush();
          for (let n = prng.below(3); n > 0; n--) {
            // The words of both sides, the records that are read next, and anything else.
            const ring = RINGS_AT + prng.below(2) * RING_BYTES;
            const word = [
              32 + prng.below(192),
              (ring + ((offset + prng.below(32) * 64) % RING_BYTES)) / 4 + prng.below(4),
              ring / 4 + prng.below(RING_BYTES / 4),
            ][prng.below(3)];
            words[word] = prng.below(2) === 0 ? prng.pick(interesting) : prng.below(2 ** 32) | 0;
          }
          if (prng.below(20) === 0) {
            end.stream.status = 'closed';
            end.stream.ready = true;
          }
        }
        for (const end of [a, b]) if (end.link.end === undefined) end.poll(turn * 10);
      }
      for (const end of [a, b]) if (end.down?.kind === 'damaged') damaged++;
    }
    expect(damaged).toBeGreaterThan(50);
  });
});

describe('sleep', () => {
  /** Runs `inner` before the n-th Atomics operation of `outer`; false when there are fewer. */
  function interleave(n: number, outer: () => void, inner: () => void): boolean {
    let count = 0;
    let ran = false;
    const before = (): void => {
      if (count++ !== n || ran) return;
      ran = true;
      inner();
    };
    for (const name of ['load', 'store', 'exchange'] as const) {
      const real = Atomics[name] as (...args: unknown[]) => number;
      vi.spyOn(Atomics, name).mockImplementation(((...args: unknown[]) => {
        before();
        return real(...args);
      }) as never);
    }
    outer();
    vi.restoreAllMocks();
    return ran;
  }

  /** The module's park(): true when it would sleep. */
  const park = (end: End): boolean => {
    end.link.sleep();
    if (!end.link.hasNews()) return true;
    end.link.awake();
    return false;
  };

  const PUBLISHERS: [string, (b: End) => void][] = [
    ['a frame', (b) => expect(b.send(1)).toBe(OK)],
    [
      'a batch',
      (b) => {
        for (let n = 1; n <= 3; n++) b.send(n);
        b.link.flush();
      },
    ],
    [
      'a probe',
      (b) => {
        b.link.probe(3);
        b.link.flush();
      },
    ],
    ['a count', (b) => b.poll()],
  ];

  for (const [name, publish] of PUBLISHERS) {
    test(`no order of park() and publishing ${name} leaves a sleeper unwoken`, () => {
      let orders = 0;
      for (const outerIsSleeper of [true, false]) {
        for (let n = 0; ; n++) {
          const { a, b } = makeLinks();
          // For the count: a frame whose count is due at once.
          if (name === 'a count') a.send(1, 0, { prompt: true });
          let sleeps = false;
          const sleeper = (): void => {
            sleeps = park(a);
          };
          const publisher = (): void => publish(b);
          const ran = outerIsSleeper ? interleave(n, sleeper, publisher) : interleave(n, publisher, sleeper);
          if (!ran) {
            if (outerIsSleeper) publisher();
            else sleeper();
          }
          orders++;
          const woken = !sleeps || a.signals > 0;
          expect(woken, `${outerIsSleeper ? 'publishing' : 'parking'} before operation ${n}`).toBe(true);
          expect(a.signals).toBeLessThanOrEqual(1);
          a.link.awake();
          const before = a.received.length + a.completed.length;
          a.poll();
          if (name !== 'a probe') expect(a.received.length + a.completed.length).toBeGreaterThan(before);
          if (!ran) break;
        }
      }
      expect(orders).toBeGreaterThan(5);
    });
  }

  /** What a spin looks at; undefined where it must poll. */
  function watch(end: End): (() => boolean) | undefined {
    const watched: { words: Int32Array; at: number; seen: number }[] = [];
    const isWatched = end.link.watch({ add: (words, at, seen) => watched.push({ words, at, seen }) > 0 });
    return isWatched ? () => watched.some(({ words, at, seen }) => words[at] !== seen) : undefined;
  }

  for (const [name, publish] of PUBLISHERS) {
    test(`no order of watch() and publishing ${name} leaves a spin without a change`, () => {
      let orders = 0;
      for (let n = 0; ; n++) {
        const { a, b } = makeLinks();
        if (name === 'a count') a.send(1, 0, { prompt: true });
        // A look for which nothing has come takes what a first turn has to do.
        a.poll();
        let hasChanged: (() => boolean) | undefined = () => true;
        const watcher = (): void => {
          hasChanged = watch(a);
        };
        const ran = interleave(n, () => publish(b), watcher);
        if (!ran) watcher();
        expect(hasChanged?.() ?? true, `watching before operation ${n}`).toBe(true);
        orders++;
        if (!ran) break;
      }
      expect(orders).toBeGreaterThan(1);
    });
  }

  test('a spin looks at the next record, and at the count only while it is waited for', () => {
    const { a, b } = makeLinks();
    const seen = (end: End): number => {
      let words = 0;
      expect(end.link.watch({ add: () => ++words > 0 })).toBe(true);
      return words;
    };
    a.poll();
    expect(seen(a)).toBe(1);
    a.send(1);
    expect(seen(a)).toBe(2);
    const hasChanged = watch(a);
    expect(hasChanged?.()).toBe(false);
    for (let turn = 0; turn < 5; turn++) b.poll();
    expect(hasChanged?.()).toBe(true);
    expect(watch(a)).toBeUndefined();
    a.poll();
    expect(seen(a)).toBe(1);
    expect(a.link.watch({ add: () => false })).toBe(false);
    a.stream.ready = true;
    expect(watch(a)).toBeUndefined();
  });

  test('one sleep costs one signal, however much is published', () => {
    const { a, b } = makeLinks();
    expect(park(a)).toBe(true);
    for (let n = 1; n <= 20; n++) {
      b.send(n);
      b.link.flush();
    }
    expect(a.signals).toBe(1);
    a.link.awake();
    a.poll();
    expect(park(a)).toBe(true);
    b.send(21);
    expect(a.signals).toBe(2);
  });

  test('a count word that is behind the count of a record keeps nobody awake', () => {
    const { a, b } = makeLinks();
    a.send(1);
    b.poll();
    b.send(1);
    a.send(2);
    a.poll();
    expect(a.completed).toEqual([{ id: 1, status: DELIVERED }]);
    expect(a.link.outstandingBytes).toBeGreaterThan(0);
    expect(park(a)).toBe(true);
  });

  test('who does not sleep is not signalled', () => {
    const { a, b } = makeLinks();
    b.send(1);
    expect(a.signals).toBe(0);
    expect(park(a)).toBe(false);
    b.send(2);
    expect(a.signals).toBe(0);
  });

  test('owed counts and held records go out before the sleep', () => {
    const { a, b } = makeLinks();
    b.send(1);
    a.poll();
    a.send(1);
    a.send(2);
    expect(park(a)).toBe(true);
    b.poll();
    expect(b.received).toEqual([1, 2]);
    expect(b.completed).toEqual([{ id: 1, status: DELIVERED }]);
  });
});
