// TCP sockets of the native part: opening, names, options, and bytes each way.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { POLL_IN, POLL_OUT, TCP_INFO, TCP_INFO_LENGTH } from '../../../src/native/binding.ts';
import { describeNative, native, type Pair, tcpPair, thrown, untilReadable } from './native-fixture.ts';

const EAGAIN = -11;
const EPIPE = -32;
const ECONNRESET = -104;
const ECONNREFUSED = -111;

describeNative('opening', () => {
  test('a port that is taken is told with code and system call', () => {
    const listener = native.tcpListen('127.0.0.1', 0, 8, {});
    const { port } = native.socketName(listener);
    expect(thrown(() => native.tcpListen('127.0.0.1', port, 8, {}))).toEqual({ name: 'Error', code: 'EADDRINUSE', syscall: 'bind' });
    native.close(listener);
  });

  test('a port is free again at once after its listener and connections are closed', () => {
    const pair = tcpPair();
    pair.close();
    const again = native.tcpListen('127.0.0.1', pair.port, 8, {});
    expect(native.socketName(again)).toEqual({ address: '127.0.0.1', port: pair.port });
    native.close(again);
  });

  test('the attempt to a port without listener ends with its error', () => {
    const listener = native.tcpListen('127.0.0.1', 0, 8, {});
    const { port } = native.socketName(listener);
    native.close(listener);
    const dialed = native.tcpConnect('127.0.0.1', port, '', {});
    expect(untilReadable(dialed, POLL_OUT)).toBeGreaterThan(0);
    expect(native.connectResult(dialed)).toBe(ECONNREFUSED);
    native.close(dialed);
  });

  test('it dials from the local address given', () => {
    const listener = native.tcpListen('127.0.0.1', 0, 8, {});
    const dialed = native.tcpConnect('127.0.0.1', native.socketName(listener).port, '127.0.0.5', {});
    untilReadable(listener);
    const accepted = native.accept(listener);
    expect(native.peerName(accepted)).toEqual(native.socketName(dialed));
    expect(native.peerName(accepted).address).toBe('127.0.0.5');
    expect(native.connectResult(dialed)).toBe(0);
    [listener, dialed, accepted].forEach(native.close);
  });

  test('IPv6, and beside it the same port of IPv4', (context) => {
    let listener: number;
    try {
      listener = native.tcpListen('::1', 0, 8, {});
    } catch (error) {
      return context.skip(`no IPv6 here: ${(error as Error).message}`);
    }
    const { address, port } = native.socketName(listener);
    expect(address).toBe('::1');
    const all = native.tcpListen('::', 0, 8, {});
    const v4 = native.tcpListen('0.0.0.0', native.socketName(all).port, 8, {});
    const dialed = native.tcpConnect('::1', port, '::1', {});
    untilReadable(listener);
    const accepted = native.accept(listener);
    expect(native.peerName(dialed)).toEqual({ address: '::1', port });
    [listener, all, v4, dialed, accepted].forEach(native.close);
  });

  test('options: congestion control, buffers, device', () => {
    const options = { congestion: 'reno', notSentLowatBytes: 65536, sendBufferBytes: 100_000, receiveBufferBytes: 100_000, device: 'lo' };
    const listener = native.tcpListen('127.0.0.1', 0, 8, options);
    expect(native.congestionOf(listener)).toBe('reno');
    const dialed = native.tcpConnect('127.0.0.1', native.socketName(listener).port, '', options);
    untilReadable(listener);
    const accepted = native.accept(listener);
    expect(native.congestionOf(accepted)).toBe('reno');
    expect(native.congestionOf(dialed)).toBe('reno');
    [listener, dialed, accepted].forEach(native.close);
    const other = native.tcpListen('127.0.0.1', 0, 8, { congestion: 'nosuchthing' });
    expect(native.congestionOf(other)).not.toBe('nosuchthing');
    native.close(other);
    expect(thrown(() => native.tcpListen('127.0.0.1', 0, 8, { device: 'nosuch0' }))).toMatchObject({ code: 'ENODEV' });
  });
});

describeNative('bytes', () => {
  let pair: Pair;
  beforeEach(() => {
    pair = tcpPair();
  });
  afterEach(() => pair.close());
  const read = (into: Uint8Array, offset = 0, length = into.length - offset) => {
    untilReadable(pair.accepted);
    return native.recv(pair.accepted, into, offset, length);
  };

  test('go into and come out of the middle of a buffer', () => {
    expect(native.recv(pair.accepted, new Uint8Array(1), 0, 1)).toBe(EAGAIN);
    const out = Uint8Array.from({ length: 10 }, (_, i) => i);
    expect(native.send(pair.dialed, out.subarray(1), 2, 3)).toBe(3);
    const into = new Uint8Array(8);
    expect(read(into, 4)).toBe(3);
    expect([...into]).toEqual([0, 0, 0, 0, 3, 4, 5, 0]);
  });

  test('many chunks in one call, from a chunk and a byte on', () => {
    const chunks = Array.from({ length: 2000 }, (_, i) => Uint8Array.of(i & 0xff, i >> 8));
    expect(native.sendv(pair.dialed, chunks, 2000, 0)).toBe(0);
    expect(native.sendv(pair.dialed, [], 0, 0)).toBe(0);
    let from = 3;
    let skip = 1;
    const expected = Buffer.concat(chunks).subarray(3 * 2 + 1);
    let sent = 0;
    while (from < chunks.length) {
      const taken = native.sendv(pair.dialed, chunks, from, skip);
      // At most 1024 chunks are looked at.
      expect(taken).toBe(Math.min(1024, chunks.length - from) * 2 - skip);
      sent += taken;
      from += 1024;
      skip = 0;
    }
    expect(sent).toBe(expected.length);
    const got = Buffer.alloc(expected.length);
    for (let at = 0; at < got.length; ) at += read(got, at);
    expect(got.equals(expected)).toBe(true);
  });

  test('empty chunks do no harm', () => {
    const empty = new Uint8Array(0);
    expect(native.sendv(pair.dialed, [empty, empty], 0, 0)).toBe(0);
    expect(native.sendv(pair.dialed, [empty, Uint8Array.of(7), empty, Uint8Array.of(8)], 0, 0)).toBe(2);
    expect(native.sendv(pair.dialed, [Uint8Array.of(7)], 0, 1)).toBe(0);
    const into = new Uint8Array(4);
    expect(read(into)).toBe(2);
    expect([...into]).toEqual([7, 8, 0, 0]);
  });

  test('one read fills two buffers', () => {
    native.send(pair.dialed, Uint8Array.of(1, 2, 3, 4, 5), 0, 5);
    untilReadable(pair.accepted);
    const first = new Uint8Array(4);
    const rest = new Uint8Array(4);
    expect(native.recv2(pair.accepted, first, 1, 2, rest)).toBe(5);
    expect([...first, ...rest]).toEqual([0, 1, 2, 0, 3, 4, 5, 0]);
    expect(native.recv2(pair.accepted, first, 0, 4, rest)).toBe(EAGAIN);
  });

  test('a full socket takes a part, then nothing', () => {
    const much = new Uint8Array(64 << 20);
    const taken = native.send(pair.dialed, much, 0, much.length);
    expect(taken).toBeGreaterThan(0);
    expect(taken).toBeLessThan(much.length);
    let last = taken;
    for (let i = 0; i < 100 && last > 0; i++) last = native.send(pair.dialed, much, 0, much.length);
    expect(last).toBe(EAGAIN);
  });

  test('an orderly end is 0, after what was sent', () => {
    native.send(pair.dialed, Uint8Array.of(1), 0, 1);
    expect(native.shutdownWrite(pair.dialed)).toBe(0);
    const into = new Uint8Array(4);
    expect(read(into)).toBe(1);
    expect(read(into)).toBe(0);
  });

  test('a reset is told, and writing into it raises no signal', () => {
    const fresh = tcpPair();
    native.closeReset(fresh.accepted);
    untilReadable(fresh.dialed, POLL_IN);
    expect(native.recv(fresh.dialed, new Uint8Array(1), 0, 1)).toBe(ECONNRESET);
    expect(native.send(fresh.dialed, new Uint8Array(1), 0, 1)).toBe(EPIPE);
    [fresh.listener, fresh.dialed].forEach(native.close);
  });

  test('the kernel tells of the connection', () => {
    const info = new Float64Array(TCP_INFO_LENGTH).fill(-7);
    const before = new Float64Array(TCP_INFO_LENGTH);
    expect(native.tcpInfo(pair.dialed, before)).toBe(0);
    native.send(pair.dialed, new Uint8Array(1000), 0, 1000);
    untilReadable(pair.accepted);
    expect(native.tcpInfo(pair.dialed, info)).toBe(0);
    expect(info[TCP_INFO.state]).toBe(1);
    expect(info[TCP_INFO.ackedBytes] - before[TCP_INFO.ackedBytes]).toBe(1000);
    expect(info[TCP_INFO.sendQueueBytes]).toBe(0);
    expect(info[TCP_INFO.unackedSegments]).toBe(0);
    expect(info[TCP_INFO.notSentBytes]).toBe(0);
    expect(info[TCP_INFO.rttUs]).toBeGreaterThan(0);
    expect(info[TCP_INFO.rtoUs]).toBeGreaterThan(info[TCP_INFO.rttUs]);
    expect(info[TCP_INFO.sendWindowBytes]).toBeGreaterThan(1000);
    for (const ms of [TCP_INFO.sinceAckMs, TCP_INFO.sinceDataSentMs]) expect(info[ms]).toBeGreaterThanOrEqual(0);
    native.tcpInfo(pair.accepted, info);
    expect(info[TCP_INFO.receivedBytes]).toBe(1000);
  });

  test('a peer that does not read shows as a closed window and bytes that were never sent', () => {
    const much = new Uint8Array(8 << 20);
    const info = new Float64Array(TCP_INFO_LENGTH);
    for (let i = 0; i < 100 && native.send(pair.dialed, much, 0, much.length) > 0; i++);
    native.tcpInfo(pair.dialed, info);
    expect(info[TCP_INFO.sendQueueBytes]).toBeGreaterThan(0);
    expect(info[TCP_INFO.notSentBytes]).toBeGreaterThan(0);
    expect(info[TCP_INFO.sendQueueBytes]).toBeGreaterThanOrEqual(info[TCP_INFO.notSentBytes]);
  });
});
