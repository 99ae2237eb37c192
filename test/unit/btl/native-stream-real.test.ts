// Method: NativeStream over real sockets of the native part on loopback, within this process: what a kernel in memory
// (native-stream.test.ts) cannot show, such as buffers that fill, resets, and descriptors that are given back.
import { readdirSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test as plainTest } from 'vitest';
import type { StreamReader } from '../../../src/btl/base/byte-stream.ts';
import {
  encodeFrameHeader,
  FLAG_PLACED,
  FRAME_DATA,
  FRAME_HEADER_BYTES,
  liveLimits,
  newFrameHeader,
} from '../../../src/btl/base/frame-hdr.ts';
import { StreamFramer } from '../../../src/btl/base/stream-framer.ts';
import type { Sink } from '../../../src/btl/btl.ts';
import { connectNative, NativeListener } from '../../../src/btl/tcp/native-listen.ts';
import type { NativeStream } from '../../../src/btl/tcp/native-stream.ts';
import type { SocketOptions } from '../../../src/native/binding.ts';
import { loadNative } from '../../../src/native/load.ts';
import { Poller } from '../../../src/native/poller.ts';
import { pattern } from '../../support/pattern.ts';

const { binding, reason } = loadNative();
const test = (title: string, body: () => Promise<void>) =>
  plainTest(title, async (context) => {
    if (binding === undefined) {
      console.info(`skipped: ${title}: ${reason}`);
      return context.skip(reason);
    }
    await body();
  });

class Collector implements StreamReader {
  parts: Buffer[] = [];
  length = 0;
  stopped = false;
  push(memory: Uint8Array, bytes = memory.length): void {
    const chunk = memory.subarray(0, bytes);
    this.parts.push(Buffer.from(chunk));
    this.length += chunk.length;
  }
  target(): undefined {
    return undefined;
  }
  filled(): void {
    throw new Error('nothing is placed here');
  }
  get bytes(): Buffer {
    return Buffer.concat(this.parts);
  }
}

let poller: Poller;
let work: () => void;
let listener: NativeListener;
let accepted: NativeStream[];
let descriptorsBefore: number;

const descriptors = () => readdirSync('/proc/self/fd').length;

beforeEach(() => {
  if (binding === undefined) return;
  descriptorsBefore = descriptors();
  work = () => {};
  accepted = [];
  poller = new Poller(binding, () => {
    poller.look();
    work();
    return false;
  });
});

afterEach(async () => {
  if (binding === undefined) return;
  await listener?.close();
  poller.close();
  // The loop closes the poller's own descriptor in its next turn.
  await turn();
  await turn();
  expect(descriptors(), 'descriptors that are still open').toBe(descriptorsBefore);
});

async function until(what: string, condition: () => boolean): Promise<void> {
  for (let i = 0; !condition(); i++) {
    if (i > 200_000) throw new Error(`not reached: ${what}`);
    await turn();
  }
}

async function connected(options: SocketOptions = {}): Promise<[NativeStream, NativeStream]> {
  listener = new NativeListener(poller, '127.0.0.1', 0, options, (stream) => accepted.push(stream));
  const one = await dial(options);
  return [one, accepted[accepted.length - 1]];
}

async function dial(options: SocketOptions = {}): Promise<NativeStream> {
  const count = accepted.length;
  const target = { host: '127.0.0.1', port: listener.port, localAddress: '127.0.0.1' };
  const stream = connectNative(poller, target, options, (text) => expect.unreachable(text));
  await until('connected', () => stream.status === 'open' && accepted.length > count);
  return stream;
}

test('tiny buffers: partial writes, and every byte comes in order', async () => {
  const [a, b] = await connected({ sendBufferBytes: 4608, receiveBufferBytes: 4608 });
  const sent = pattern(700_001, 1);
  const reader = new Collector();
  work = () => void b.poll(reader, 1 << 20);
  a.write([sent.subarray(0, 100_000), sent.subarray(100_000, 100_001), sent.subarray(100_001)]);
  expect(a.queuedBytes, 'the kernel does not take it all').toBeGreaterThan(0);
  await until('everything read', () => reader.length === sent.length);
  expect(reader.bytes.equals(sent)).toBe(true);
  expect(a.queuedBytes).toBe(0);
  a.destroy();
  b.destroy();
});

test('a peer that never reads: the rest waits in the queue, and destroy() lets go of it', async () => {
  const [a, b] = await connected({ sendBufferBytes: 4608, receiveBufferBytes: 4608 });
  a.write([new Uint8Array(4 << 20)]);
  for (let i = 0; i < 20; i++) await turn();
  expect(a.queuedBytes).toBeGreaterThan(3 << 20);
  expect(a.status).toBe('open');
  a.destroy();
  b.destroy();
  expect(a.queuedBytes).toBe(0);
});

test('a reset while writing closes the stream as closed', async () => {
  listener = new NativeListener(poller, '127.0.0.1', 0, { sendBufferBytes: 4608 }, (stream) => accepted.push(stream));
  const peer: Socket = connect({ host: '127.0.0.1', port: listener.port });
  peer.on('error', () => {});
  await until('accepted', () => accepted.length === 1);
  const [stream] = accepted;
  const reader = new Collector();
  work = () => void stream.poll(reader, 1 << 20);
  stream.write([new Uint8Array(8 << 20)]);
  peer.resetAndDestroy();
  await until('closed', () => stream.status === 'closed');
  expect(stream.failure?.kind).toBe('closed');
  expect(stream.failure?.text).toMatch(/^(write|read) (ECONNRESET|EPIPE)$/);
  expect(stream.queuedBytes).toBe(0);
  stream.destroy();
});

test('end() writes out the queue, the peer reads all of it and then the end', async () => {
  const [a, b] = await connected({ sendBufferBytes: 4608, receiveBufferBytes: 4608 });
  const sent = pattern(300_000, 3);
  const reader = new Collector();
  work = () => void b.poll(reader, 1 << 20);
  a.write([sent]);
  a.end();
  await until('the end', () => b.status === 'closed');
  expect(reader.bytes.equals(sent)).toBe(true);
  expect(b.failure).toEqual({ kind: 'closed', text: 'the peer closed the connection' });
  // The other way it is seen by a stream that only waits for the end.
  await until('the other end', () => a.status === 'closed');
  a.destroy();
  b.destroy();
});

test('nobody listens: the attempt fails with the name of the error', async () => {
  const server: Server = createServer();
  const port = await new Promise<number>((resolve) =>
    server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port)),
  );
  await new Promise((closed) => server.close(closed));
  await turn();
  const stream = connectNative(poller, { host: '127.0.0.1', port, localAddress: '' }, {}, () => {});
  await until('failed', () => stream.status === 'closed');
  expect(stream.failure).toEqual({ kind: 'error', text: 'connect ECONNREFUSED', isNobody: true });
});

test('200 streams on one poller', async () => {
  const [first] = await connected();
  const ends: NativeStream[] = [first];
  for (let i = 1; i < 200; i++) ends.push(await dial());
  const readers = accepted.map(() => new Collector());
  work = () => {
    for (const [i, stream] of accepted.entries()) stream.poll(readers[i], 1 << 20);
  };
  for (const [i, stream] of ends.entries()) stream.write([pattern(1000 + i, i), Uint8Array.of(i)]);
  await until('all read', () => readers.every((reader) => reader.length > 1000 && reader.length >= 1001));
  await until('all whole', () => readers.reduce((sum, reader) => sum + reader.length, 0) === 200 * 1001 + (199 * 200) / 2);
  // Connections are accepted in the order in which they were made: dial() waits for each.
  for (const [i, reader] of readers.entries()) {
    expect(reader.bytes.equals(Buffer.concat([pattern(1000 + i, i), Uint8Array.of(i)])), `stream ${i}`).toBe(true);
  }
  for (const stream of [...ends, ...accepted]) stream.destroy();
});

test('frames through the framer: placed payloads, small frames, and no view of the arena survives', async () => {
  const [a, b] = await connected();
  const sinks: Uint8Array[] = [];
  const wholes: Buffer[] = [];
  const framer = new StreamFramer(
    {
      placePayload: (header): Sink => {
        const memory = new Uint8Array(header.payloadBytes);
        sinks.push(memory);
        const half = header.payloadBytes >> 1;
        return { views: [memory.subarray(0, half), memory.subarray(half)], revoked: false };
      },
      frame: (_header, _packetHeader, payload, sink) => {
        if (sink === null) wholes.push(Buffer.from(payload));
      },
      damage: (text) => expect.unreachable(text),
    },
    liveLimits(1 << 24),
  );
  work = () => void b.poll(framer, 1 << 21);
  const placed: Uint8Array[] = [];
  const small: Uint8Array[] = [];
  const sent: Uint8Array[] = [];
  const frame = (flags: number, payload: Uint8Array) => {
    const bytes = new Uint8Array(FRAME_HEADER_BYTES + 16);
    const header = newFrameHeader(FRAME_DATA);
    header.packetHeaderBytes = 16;
    header.payloadBytes = payload.length;
    header.flags = flags;
    bytes.set(pattern(16, payload.length), FRAME_HEADER_BYTES);
    encodeFrameHeader(header, bytes, 0);
    sent.push(bytes, payload);
  };
  for (let i = 0; i < 40; i++) {
    placed.push(pattern([131_072, 1, 40_000, 262_144][i % 4], i));
    frame(FLAG_PLACED, placed[i]);
    for (let j = 0; j < i; j++) {
      small.push(pattern(1 + ((i * 37 + j * 211) % 3000), j));
      frame(0, small[small.length - 1]);
    }
  }
  a.write(sent);
  await until('all frames', () => wholes.length === small.length && sinks.length === placed.length && !framer.midFrame);
  expect(wholes.findIndex((whole, i) => !whole.equals(small[i]))).toBe(-1);
  expect(sinks.findIndex((sink, i) => !Buffer.from(sink).equals(placed[i]))).toBe(-1);
  a.destroy();
  b.destroy();
});

test('congestion control is what was asked for, on both ends', async () => {
  listener = new NativeListener(poller, '127.0.0.1', 0, { congestion: 'reno' }, (stream) => accepted.push(stream));
  const stream = await dial({ congestion: 'cubic' });
  expect(stream.congestion).toBe('cubic');
  expect(accepted[0].congestion).toBe('reno');
  for (const one of [stream, ...accepted]) one.destroy();
});
