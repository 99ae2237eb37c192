// Local sockets of the native part: names, peers, and descriptors that travel.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { describeNative, misuse, native, openDescriptors, thrown, untilReadable } from './native-fixture.ts';

let names = 0;
function localPair(name = `\0multirail-unit-${process.pid}-${names++}`) {
  const listener = native.unixListen(name, 8);
  const dialed = native.unixConnect(name);
  const accepted = native.accept(listener);
  return { name, listener, dialed, accepted, close: () => [listener, dialed, accepted].forEach(native.close) };
}

describeNative('local sockets', () => {
  test('abstract names and paths', () => {
    const folder = mkdtempSync(join(tmpdir(), 'multirail-unix-'));
    for (const name of [`\0multirail-unit-${process.pid}`, join(folder, 'socket')]) {
      const pair = localPair(name);
      expect(pair.accepted).toBeGreaterThan(0);
      expect(native.socketName(pair.accepted)).toEqual({ address: name, port: 0 });
      expect(native.unixPeer(pair.accepted)).toEqual({ pid: process.pid, uid: process.getuid?.() });
      expect(native.send(pair.dialed, Uint8Array.of(1, 2), 0, 2)).toBe(2);
      expect(native.recv(pair.accepted, new Uint8Array(4), 0, 4)).toBe(2);
      expect(thrown(() => native.unixListen(name, 8))).toMatchObject({ code: 'EADDRINUSE' });
      pair.close();
    }
    rmSync(folder, { recursive: true });
    expect(thrown(() => native.unixConnect('\0multirail-nobody'))).toEqual({ name: 'Error', code: 'ECONNREFUSED', syscall: 'connect' });
    expect(thrown(() => native.unixConnect(''))).toMatchObject({ code: 'ENAMETOOLONG' });
    expect(thrown(() => native.unixConnect('x'.repeat(108)))).toMatchObject({ code: 'ENAMETOOLONG' });
    expect(thrown(() => native.unixConnect('x'.repeat(5000)))).toEqual(misuse);
  });

  test('descriptors travel, and are new ones on the other side', () => {
    const pair = localPair();
    const bell = native.eventOpen();
    const segment = native.memoryCreate('travels', 4096);
    expect(native.sendDescriptors(pair.dialed, Uint8Array.of(9), [bell, segment])).toBe(1);
    const came: number[] = [77];
    const into = new Uint8Array(4);
    expect(native.recvDescriptors(pair.accepted, into, came)).toBe(1);
    expect(into[0]).toBe(9);
    expect(came.length).toBe(3);
    expect(came[0]).toBe(77);
    native.eventSignal(came[1]);
    expect(native.eventClear(bell)).toBe(true);
    const here = new Uint8Array(native.memoryMap(segment, 4096));
    const there = new Uint8Array(native.memoryMap(came[2], 4096));
    here[17] = 3;
    expect(there[17]).toBe(3);
    native.memoryUnmap(here.buffer as ArrayBuffer);
    native.memoryUnmap(there.buffer as ArrayBuffer);
    expect(native.recvDescriptors(pair.accepted, into, came)).toBe(-11);
    expect(native.sendDescriptors(pair.dialed, Uint8Array.of(9), [])).toBe(1);
    expect(native.recvDescriptors(pair.accepted, into, came)).toBe(1);
    expect(came.length).toBe(3);
    [bell, segment, came[1], came[2]].forEach(native.close);
    native.close(pair.dialed);
    untilReadable(pair.accepted);
    expect(native.recvDescriptors(pair.accepted, into, came)).toBe(0);
    [pair.listener, pair.accepted].forEach(native.close);
  });

  test('what cannot be taken or kept is closed, and nothing leaks', () => {
    const pair = localPair();
    const bell = native.eventOpen();
    const before = openDescriptors();
    const into = new Uint8Array(4);
    expect(native.sendDescriptors(pair.dialed, Uint8Array.of(1), [bell, bell])).toBe(1);
    expect(thrown(() => native.recvDescriptors(pair.accepted, into, Object.freeze([]) as unknown as number[]))).toEqual(misuse);
    expect(openDescriptors()).toBe(before);
    expect(thrown(() => native.sendDescriptors(pair.dialed, new Uint8Array(0), [bell]))).toEqual(misuse);
    expect(thrown(() => native.sendDescriptors(pair.dialed, into, new Array(9).fill(bell)))).toEqual(misuse);
    expect(thrown(() => native.sendDescriptors(pair.dialed, into, ['x' as unknown as number]))).toEqual(misuse);
    expect(native.sendDescriptors(pair.dialed, into, [-1])).toBe(-9);
    expect(thrown(() => native.recvDescriptors(pair.accepted, new Uint8Array(0), []))).toEqual(misuse);
    expect(thrown(() => native.recvDescriptors(pair.accepted, into, {} as number[]))).toEqual(misuse);
    native.close(bell);
    pair.close();
  });
});
