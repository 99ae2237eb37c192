// Method: NativeStream and NativeListener over a kernel in memory (fake-native.ts), so that partial writes, split reads, resets and
// level-triggered readiness come exactly where a test wants them; no time passes. The same over real sockets: native-stream-real.
import { constants } from 'node:os';
import { describe, expect, test } from 'vitest';
import type { StreamReader } from '../../../src/btl/base/byte-stream.ts';
import { connectNative, NativeListener } from '../../../src/btl/tcp/native-listen.ts';
import { NativeStream } from '../../../src/btl/tcp/native-stream.ts';
import { POLL_IN } from '../../../src/native/binding.ts';
import { Poller } from '../../../src/native/poller.ts';
import { FakeNative } from '../../support/fake-native.ts';
import { pattern } from '../../support/pattern.ts';

/** Collects a stream; where `sink` stands, the next bytes go there first. */
class Collector implements StreamReader {
  bytes: number[] = [];
  stopped = false;
  sink: Uint8Array | undefined;
  placed = 0;
  pushes: Uint8Array[] = [];
  onPush: (chunk: Uint8Array) => void = () => {};

  push(memory: Uint8Array, bytes = memory.length): void {
    const chunk = memory.subarray(0, bytes);
    this.pushes.push(chunk);
    for (const byte of chunk) this.bytes.push(byte);
    this.onPush(chunk);
  }
  target(): Uint8Array | undefined {
    return this.sink !== undefined && this.placed < this.sink.length ? this.sink.subarray(this.placed) : undefined;
  }
  filled(bytes: number): void {
    this.placed += bytes;
  }
}

interface World {
  native: FakeNative;
  poller: Poller;
  a: NativeStream;
  b: NativeStream;
  fds: [number, number];
}

/** Two ends of a connection on one poller, whose turns do what `work` says. */
function world(work: () => void = () => {}): World {
  const native = new FakeNative();
  const poller = new Poller(native.binding, () => {
    poller.look();
    work();
    return false;
  });
  const fds = native.pair();
  return { native, poller, fds, a: new NativeStream(poller, fds[0], false), b: new NativeStream(poller, fds[1], false) };
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('reading', () => {
  test('bytes come whole and in order at every split', () => {
    const sent = pattern(500, 1);
    for (const recvMax of [1, 2, 3, 7, 64, 499, 500]) {
      const { native, poller, a, b } = world();
      native.recvMax = recvMax;
      a.write([sent.subarray(0, 100), sent.subarray(100, 101), new Uint8Array(0), sent.subarray(101)]);
      const reader = new Collector();
      for (let i = 0; i < 500 && reader.bytes.length < 500; i++) {
        poller.look();
        b.poll(reader, 1 << 20);
      }
      expect(reader.bytes, `recv gives ${recvMax} at most`).toEqual([...sent]);
    }
  });

  test('what is placed goes straight into its sink, and what follows is pushed, in one call', () => {
    const { native, poller, a, b } = world();
    const sent = pattern(1000, 2);
    a.write([sent]);
    const reader = new Collector();
    reader.sink = new Uint8Array(700);
    poller.look();
    expect(b.poll(reader, 1 << 20)).toBe(1000);
    expect([...reader.sink]).toEqual([...sent.subarray(0, 700)]);
    expect(reader.bytes).toEqual([...sent.subarray(700)]);
    expect(native.calls).toMatchObject({ recv: 0, recv2: 1 });
  });

  test('a short read ends the poll without another call', () => {
    const { native, poller, a, b } = world();
    a.write([pattern(10, 3)]);
    poller.look();
    b.poll(new Collector(), 1 << 20);
    expect(native.calls.recv).toBe(1);
  });

  test('nor is the kernel asked by the next poll, which follows at once; by the one after it is', () => {
    const { native, poller, a, b } = world();
    const reader = new Collector();
    a.write([pattern(10, 3)]);
    poller.look();
    b.poll(reader, 1 << 20);
    a.write([pattern(10, 4)]);
    expect(b.poll(reader, 1 << 20)).toBe(0);
    expect(native.calls.recv).toBe(1);
    expect(b.poll(reader, 1 << 20)).toBe(10);
    a.write([pattern(10, 5)]);
    poller.look();
    expect(b.poll(reader, 1 << 20), 'unless it is told').toBe(10);
  });

  test('a budget that is used up leaves the rest in the kernel and asks for another poll', () => {
    const { native, poller, a, b } = world();
    native.recvMax = Number.POSITIVE_INFINITY;
    native.bufferBytes = 1 << 20;
    a.write([new Uint8Array(600 * 1024)]);
    const reader = new Collector();
    poller.look();
    expect(b.poll(reader, 100 * 1024)).toBe(256 * 1024);
    expect(b.more).toBe(true);
    expect(b.poll(reader, 1 << 20)).toBe(344 * 1024);
    expect(b.more).toBe(false);
    expect(reader.bytes).toHaveLength(600 * 1024);
  });

  test('a reader that stops within a chunk gets nothing more', () => {
    const { poller, a, b } = world();
    a.write([pattern(100, 4)]);
    const reader = new Collector();
    reader.onPush = () => {
      reader.stopped = true;
    };
    poller.look();
    b.poll(reader, 1 << 20);
    a.write([pattern(100, 5)]);
    poller.look();
    b.poll(reader, 1 << 20);
    expect(reader.pushes).toHaveLength(1);
  });

  test('destroy() from inside a poll: no byte more, the descriptor is closed once', async () => {
    const { native, poller, a, b, fds } = world();
    native.recvMax = 10;
    let events = 0;
    b.onEvent = () => events++;
    a.write([pattern(100, 6)]);
    const reader = new Collector();
    reader.onPush = () => b.destroy();
    poller.look();
    b.poll(reader, 1 << 20);
    expect(reader.bytes).toHaveLength(10);
    expect(b.status).toBe('closed');
    b.destroy();
    expect(() => native.socket(fds[1])).toThrow('no open socket');
    await settled();
    expect(events).toBe(0);
  });

  test('all streams of a poller read into one arena', () => {
    const { native, poller, a, b } = world();
    const [c, d] = native.pair();
    const one = new NativeStream(poller, c, false);
    const two = new NativeStream(poller, d, false);
    a.write([pattern(5, 1)]);
    one.write([pattern(5, 2)]);
    const readers = [new Collector(), new Collector()];
    poller.look();
    b.poll(readers[0], 100);
    two.poll(readers[1], 100);
    expect(readers[0].pushes[0].buffer).toBe(readers[1].pushes[0].buffer);
  });
});

describe('readiness', () => {
  test('few sockets are read without asking; many only when they are ready', () => {
    const { native, poller, a, b } = world();
    a.write([pattern(5, 1)]);
    const reader = new Collector();
    expect(b.poll(reader, 100)).toBe(5);
    const others = Array.from({ length: 4 }, () => native.pair().map((fd) => new NativeStream(poller, fd, false)));
    expect(poller.direct).toBe(false);
    a.write([pattern(5, 2)]);
    const before = native.calls.recv;
    expect(b.poll(reader, 100)).toBe(0);
    expect(native.calls.recv).toBe(before);
    poller.look();
    expect(b.poll(reader, 100)).toBe(5);
    for (const stream of others.flat()) stream.destroy();
    expect(poller.direct).toBe(true);
  });

  test('an event loop whose streams are not polled does not spin, and loses nothing', () => {
    const { native, a, b } = world();
    a.write([pattern(5, 1)]);
    let turns = 0;
    while (native.turn() > 0) if (++turns > 10) break;
    expect(turns).toBeLessThan(4);
    a.write([pattern(5, 2)]);
    expect(native.turn()).toBe(0);
    const reader = new Collector();
    expect(b.poll(reader, 100)).toBe(10);
    a.write([pattern(5, 3)]);
    expect(native.turn()).toBeGreaterThan(0);
    expect(b.poll(reader, 100)).toBe(5);
  });

  test('nor does one whose peer is gone', () => {
    for (const how of ['reset', 'close'] as const) {
      const { native, a, b, fds } = world();
      if (how === 'reset') native.reset(fds[1]);
      else a.destroy();
      let turns = 0;
      while (native.turn() > 0) if (++turns > 10) break;
      expect(turns, how).toBeLessThan(4);
      b.poll(new Collector(), 100);
      expect(b.status, how).toBe('closed');
    }
  });

  test('200 streams on one poller: each gets its own bytes', () => {
    const native = new FakeNative();
    const readers = new Map<NativeStream, Collector>();
    const poller = new Poller(native.binding, () => {
      poller.look();
      for (const [stream, reader] of readers) stream.poll(reader, 1 << 20);
      return false;
    });
    const pairs = Array.from({ length: 200 }, () => native.pair().map((fd) => new NativeStream(poller, fd, false)));
    for (const [i, [from, to]] of pairs.entries()) {
      readers.set(to, new Collector());
      from.write([pattern(300 + i, i)]);
    }
    for (let i = 0; i < 10; i++) native.turn();
    for (const [i, [, to]] of pairs.entries()) expect(readers.get(to)?.bytes, `stream ${i}`).toEqual([...pattern(300 + i, i)]);
    for (const stream of pairs.flat()) stream.destroy();
    expect(native.open, 'only the poller is left').toBe(1);
  });
});

describe('writing', () => {
  test('partial writes keep the order, whatever the kernel takes', () => {
    for (const sendMax of [1, 3, 64, 1000]) {
      const reader = new Collector();
      const { native, a, b } = world(() => b.poll(reader, 1 << 20));
      native.sendMax = sendMax;
      native.bufferBytes = 100;
      const chunks = [pattern(50, 1), new Uint8Array(0), pattern(1, 2), pattern(333, 3)];
      a.write(chunks);
      a.write([pattern(70, 4)]);
      expect(a.queuedBytes).toBe(454 - Math.min(sendMax, 100));
      for (let i = 0; i < 1000 && a.queuedBytes > 0; i++) native.turn();
      for (let i = 0; i < 10; i++) native.turn();
      expect(reader.bytes, `send takes ${sendMax}`).toEqual([...chunks.flatMap((chunk) => [...chunk]), ...pattern(70, 4)]);
    }
  });

  test('room is looked for only while something is queued', () => {
    const reader = new Collector();
    const { native, a, b } = world(() => b.poll(reader, 1 << 20));
    a.write([pattern(10, 1)]);
    native.turn();
    const idle = native.calls.sendv;
    expect(native.turn()).toBe(0);
    native.bufferBytes = 10;
    a.write([pattern(25, 2)]);
    expect(a.queuedBytes).toBe(15);
    for (let i = 0; i < 20; i++) native.turn();
    expect(a.queuedBytes).toBe(0);
    expect(reader.bytes).toHaveLength(35);
    expect(native.turn()).toBe(0);
    expect(native.calls.sendv - idle).toBeLessThan(5);
  });

  test('who is looked at again and again need not be told that there is room', () => {
    const reader = new Collector();
    const idle = new Collector();
    const { native, a, b } = world();
    native.bufferBytes = 10;
    a.write([pattern(35, 2)]);
    // Not one turn of the poller: a blocking call that spins asks it seldom.
    for (let i = 0; i < 20 && reader.bytes.length < 35; i++) {
      b.onReady(POLL_IN);
      b.poll(reader, 1 << 20);
      a.poll(idle, 1 << 20);
    }
    expect(reader.bytes).toEqual([...pattern(35, 2)]);
    expect(a.queuedBytes).toBe(0);
  });

  test('more chunks than one call takes', () => {
    const reader = new Collector();
    const { native, a, b } = world(() => b.poll(reader, 1 << 20));
    const sent = pattern(3000, 9);
    a.write(Array.from({ length: 3000 }, (_, i) => sent.subarray(i, i + 1)));
    for (let i = 0; i < 10; i++) native.turn();
    expect(reader.bytes).toEqual([...sent]);
  });

  test('a peer that never reads: the queue stays, its bytes are counted, destroy() frees all', () => {
    const { native, a, b } = world();
    native.bufferBytes = 1000;
    a.write([pattern(5000, 1)]);
    for (let i = 0; i < 5; i++) native.turn();
    expect(a.queuedBytes).toBe(4000);
    a.destroy();
    b.destroy();
    expect(a.queuedBytes).toBe(0);
    expect(native.open).toBe(1);
  });

  test('end() writes out the queue first; the peer reads all of it, then the end', () => {
    const reader = new Collector();
    const { native, a, b } = world(() => b.poll(reader, 1 << 20));
    native.bufferBytes = 100;
    a.write([pattern(350, 1)]);
    a.end();
    a.write([pattern(10, 2)]);
    for (let i = 0; i < 20; i++) native.turn();
    expect(reader.bytes).toEqual([...pattern(350, 1)]);
    expect([b.status, b.failure?.kind]).toEqual(['closed', 'closed']);
  });

  test('after end() what still comes is thrown away when nobody reads it, and the peer’s end closes', async () => {
    const { native, a, b } = world();
    const reader = new Collector();
    b.poll(reader, 100);
    reader.stopped = true;
    b.end();
    let events = 0;
    b.onEvent = () => events++;
    a.write([pattern(1000, 1)]);
    for (let i = 0; i < 5; i++) native.turn();
    expect(b.status).toBe('open');
    a.end();
    for (let i = 0; i < 5; i++) native.turn();
    expect(b.status).toBe('closed');
    await settled();
    expect(events).toBe(1);
    expect(reader.bytes).toEqual([]);
  });
});

describe('the end', () => {
  test('a reset: what came before is read, then it is closed', () => {
    const { native, poller, a, b, fds } = world();
    a.write([pattern(20, 1)]);
    native.reset(fds[1]);
    const reader = new Collector();
    for (let i = 0; i < 3; i++) {
      poller.look();
      b.poll(reader, 100);
    }
    expect(reader.bytes).toHaveLength(20);
    expect([b.status, b.failure]).toEqual(['closed', { kind: 'closed', text: 'read ECONNRESET' }]);
  });

  test('a write that fails: what came before is read, nothing more is written, then it is closed for that reason', async () => {
    const { native, a, b, fds } = world();
    a.write([pattern(20, 1)]);
    native.reset(fds[1]);
    let events = 0;
    b.onEvent = () => events++;
    b.write([pattern(5, 2)]);
    expect([b.status, b.more, b.queuedBytes]).toEqual(['open', true, 0]);
    const writes = native.calls.send;
    b.write([pattern(5, 2)]);
    expect(native.calls.send).toBe(writes);
    await settled();
    expect(events).toBe(1);
    const reader = new Collector();
    b.poll(reader, 100);
    b.poll(reader, 100);
    expect(reader.bytes).toHaveLength(20);
    expect([b.status, b.failure]).toEqual(['closed', { kind: 'closed', text: 'write ECONNRESET' }]);
    expect(b.more).toBe(false);
  });

  test('end() after a write that failed closes at once', () => {
    const { native, b, fds } = world();
    native.reset(fds[1]);
    b.write([pattern(5, 2)]);
    expect(b.status).toBe('open');
    b.end();
    expect([b.status, b.failure?.text]).toEqual(['closed', 'write ECONNRESET']);
  });

  test('a reset while writing from the queue', () => {
    const { native, a, b, fds } = world();
    native.bufferBytes = 10;
    a.write([pattern(50, 1)]);
    native.reset(fds[0]);
    native.turn();
    expect(a.queuedBytes).toBe(0);
    a.poll(new Collector(), 100);
    expect([a.status, a.failure?.text]).toEqual(['closed', 'write ECONNRESET']);
    b.destroy();
    expect(native.open).toBe(1);
  });
});

describe('connecting and listening', () => {
  function listening() {
    const native = new FakeNative();
    const poller = new Poller(native.binding, () => {
      poller.look();
      return false;
    });
    const accepted: NativeStream[] = [];
    const listener = new NativeListener(poller, '127.0.0.1', 0, {}, (stream) => accepted.push(stream));
    const target = { host: '127.0.0.1', port: listener.port, localAddress: '127.0.0.1' };
    const untold = (text: string) => expect.unreachable(text);
    return { native, poller, accepted, listener, target, untold };
  }

  test('connecting, open, and bytes both ways', async () => {
    const { native, poller, accepted, listener, target, untold } = listening();
    const dialled = connectNative(poller, target, {}, untold);
    expect(dialled.status).toBe('connecting');
    let events = 0;
    dialled.onEvent = () => events++;
    native.turn();
    expect(dialled.status).toBe('connecting');
    native.answerConnects();
    native.turn();
    expect([dialled.status, dialled.remotePort, accepted.length]).toEqual(['open', listener.port, 1]);
    await settled();
    expect(events).toBe(1);
    dialled.write([pattern(5, 1)]);
    const reader = new Collector();
    native.turn();
    accepted[0].poll(reader, 100);
    expect(reader.bytes).toEqual([...pattern(5, 1)]);
    await listener.close();
    dialled.destroy();
    accepted[0].destroy();
    expect(native.open).toBe(1);
  });

  test('an attempt that fails says why, in the words of node:net', () => {
    const cases = [
      [constants.errno.ECONNREFUSED, 'error', 'connect ECONNREFUSED'],
      [constants.errno.ETIMEDOUT, 'timeout', 'connect ETIMEDOUT'],
      [constants.errno.ECONNRESET, 'error', 'connect ECONNRESET'],
    ] as const;
    for (const [errno, kind, text] of cases) {
      const { native, poller, target, untold } = listening();
      native.connectError = errno;
      const dialled = connectNative(poller, target, {}, untold);
      native.answerConnects();
      native.turn();
      const isNobody = errno === constants.errno.ECONNREFUSED ? { isNobody: true } : {};
      expect([dialled.status, dialled.failure]).toEqual(['closed', { kind, text, ...isNobody }]);
    }
  });

  test('where binding to a device is not allowed it goes on without, once told', () => {
    const { native, poller, target } = listening();
    native.refusesDevice = true;
    const told: string[] = [];
    const dialled = connectNative(poller, target, { device: 'eth0' }, (text) => told.push(text));
    expect(dialled.status).toBe('connecting');
    expect(told).toEqual([expect.stringContaining('eth0')]);
  });

  test('a flood of connections is taken in parts', () => {
    const { native, poller, accepted, target, untold } = listening();
    for (let i = 0; i < 40; i++) connectNative(poller, target, {}, untold);
    native.turn();
    expect(accepted).toHaveLength(16);
    native.turn();
    native.turn();
    expect(accepted).toHaveLength(40);
  });

  test('without descriptors for a connection the listener rests, and the event loop does not spin', async () => {
    const { native, poller, accepted, listener, target, untold } = listening();
    native.acceptError = constants.errno.EMFILE;
    connectNative(poller, target, {}, untold);
    let turns = 0;
    while (native.turn() > 0) if (++turns > 10) break;
    expect(turns).toBeLessThan(3);
    expect(accepted).toHaveLength(0);
    await listener.close();
  });

  test('a listener keeps the process alive, descriptors alone do not', () => {
    const native = new FakeNative();
    const poller = new Poller(native.binding, () => false);
    poller.keepAlive(false);
    const [fd] = native.pair();
    const stream = new NativeStream(poller, fd, false);
    expect(native.keepsAlive()).toBe(false);
    new NativeListener(poller, '127.0.0.1', 0, {}, () => {});
    expect(native.keepsAlive()).toBe(true);
    stream.destroy();
    poller.close();
    expect(native.keepsAlive()).toBe(false);
  });
});
