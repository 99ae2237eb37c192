// The local socket of a shared-memory rail against peers that do not keep to the protocol: whatever they do, it never blocks.
import { afterEach, expect, test } from 'vitest';
import { UnixStream } from '../../../src/btl/sm/unix-stream.ts';
import type { Poller } from '../../../src/native/poller.ts';
import { describeNative, native, openDescriptors } from '../native/native-fixture.ts';

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const clean of cleanups.splice(0)) clean();
});

let names = 0;
/** A stream of ours whose handshake is over, and the bare socket at its other end. */
function liveStream(takes = 0): { stream: UnixStream; peer: number; look: () => boolean } {
  const name = `\0multirail-stream-${process.pid}-${names++}`;
  const listener = native.unixListen(name, 8);
  const peer = native.unixConnect(name);
  const poller = { native, add: () => {}, remove: () => {}, change: () => {} } as unknown as Poller;
  const stream = new UnixStream(poller, native.accept(listener), process.pid, [], takes, () => {});
  native.close(listener);
  cleanups.push(() => {
    stream.destroy();
    native.close(peer);
  });
  const look = (): boolean => {
    stream.onReady();
    return stream.hasEnded();
  };
  return { stream, peer, look };
}

describeNative('the doorbell of a shared-memory rail', () => {
  test('a ring is a byte; however many came, they make one turn', () => {
    const { stream, peer, look } = liveStream();
    stream.ring();
    expect(native.recv(peer, new Uint8Array(8), 0, 8)).toBe(1);
    for (let i = 0; i < 5; i++) native.send(peer, Uint8Array.of(i), 0, 1);
    expect(look()).toBe(false);
    expect(stream.ready).toBe(false);
  });

  test('a peer that never reads its rings keeps nobody waiting, and is heard all the same', () => {
    const { stream, peer, look } = liveStream();
    // More by far than any socket holds: a write that waits would wait for ever.
    for (let i = 0; i < 100_000; i++) stream.ring();
    native.send(peer, Uint8Array.of(7), 0, 1);
    expect(look()).toBe(false);
    expect(stream.status).toBe('open');
  });

  test('a peer that rings without end takes a bounded part of a turn', () => {
    const { stream, peer, look } = liveStream();
    const flood = new Uint8Array(1024 * 1024);
    const written = native.send(peer, flood, 0, flood.length);
    expect(written).toBeGreaterThan(64 * 1024);
    expect(look()).toBe(false);
    expect(stream.ready).toBe(true);
    let turns = 1;
    for (; stream.ready; turns++) expect(stream.hasEnded()).toBe(false);
    expect(turns).toBeGreaterThan(written / (64 * 1024));
  });

  test('descriptors that nobody asked for end the rail, and none of them stays open', () => {
    const before = openDescriptors();
    const { stream, peer, look } = liveStream();
    const bell = native.eventOpen();
    native.sendDescriptors(peer, Uint8Array.of(1), [bell, bell]);
    expect(look()).toBe(true);
    expect(stream.failure).toMatchObject({ kind: 'damaged' });
    native.close(bell);
    for (const clean of cleanups.splice(0)) clean();
    expect(openDescriptors()).toBe(before);
  });

  test('the segment comes once', () => {
    const { stream, peer } = liveStream(1);
    const reader = { stopped: false, push: () => {} };
    const segment = native.memoryCreate('comes', 4096);
    native.sendDescriptors(peer, Uint8Array.of(1), [segment]);
    stream.poll(reader as never, 100);
    const [came] = stream.takeDescriptors();
    native.close(came);
    native.sendDescriptors(peer, Uint8Array.of(1), [segment]);
    native.close(segment);
    stream.onReady();
    expect(stream.hasEnded()).toBe(true);
    expect(stream.failure?.text).toMatch(/passed 1 descriptors, not 0/);
  });

  test('a ring to a peer that is gone is nothing: the next look finds it out', () => {
    const { stream, peer, look } = liveStream();
    native.shutdownWrite(peer);
    stream.ring();
    expect(look()).toBe(true);
    stream.ring();
    expect(stream.failure).toMatchObject({ kind: 'closed' });
  });
});
