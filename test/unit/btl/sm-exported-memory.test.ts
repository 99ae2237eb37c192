// Memory that other processes of the host map: keys that must not be believed, what is opened and what is not, and how much there is of it.
import { closeSync, openSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { type CompletionStatus, DELIVERED, type OneSidedOp, REFUSED } from '../../../src/btl/btl.ts';
import { AttachedMemory, ExportedMemory, type Place, placeIn } from '../../../src/btl/sm/exported-memory.ts';
import { Reads } from '../../../src/btl/sm/single-copy.ts';
import { describeNative, native } from '../native/native-fixture.ts';

const PEER = process.pid;

/** Pieces are ordinary memory, and descriptors numbers that nobody looks at. */
function fakeExported(): ExportedMemory {
  let fd = 20;
  return new ExportedMemory({
    memoryCreate: () => fd++,
    memoryMap: (_fd, bytes) => new ArrayBuffer(bytes),
    memoryUnmap: () => {},
    close: () => {},
  });
}

describe('windows', () => {
  const exported = fakeExported();
  const first = exported.make(1000) as Uint8Array;
  const second = exported.make(500) as Uint8Array;
  const keyOf = (memory: Uint8Array): Uint8Array => exported.keyOf(memory) as Uint8Array;

  test('a range inside has its place in the piece', () => {
    expect(placeIn(keyOf(first.subarray(100, 300)), PEER, 0, 200)).toEqual({ fd: 20, number: 1, pieceBytes: 1000, offset: 100 });
    expect(placeIn(keyOf(second), PEER, 499, 1)).toEqual({ fd: 21, number: 2, pieceBytes: 500, offset: 499 });
    expect(keyOf(first).length).toBeLessThanOrEqual(64);
  });

  test('other memory, and a piece that was dropped, have no key', () => {
    expect(exported.keyOf(new Uint8Array(10))).toBeUndefined();
    const gone = exported.make(10) as Uint8Array;
    exported.drop(gone);
    expect(exported.keyOf(gone)).toBeUndefined();
    // Memory of others is let alone.
    exported.drop(new Uint8Array(10));
  });

  const changed = (at: number, value: number): Uint8Array => {
    const key = keyOf(first.subarray(100, 300)).slice();
    new DataView(key.buffer).setFloat64(at, value, true);
    return key;
  };

  test.each<[string, Uint8Array, number, number, number]>([
    ['of another process', keyOf(first), PEER + 1, 0, 10],
    ['cut off', keyOf(first).subarray(1), PEER, 0, 10],
    ['before the window', keyOf(first), PEER, -1, 10],
    ['behind the window', keyOf(first.subarray(0, 10)), PEER, 1, 10],
    ['no length', keyOf(first), PEER, 0, Number.NaN],
    ['a window behind its piece', changed(24, 900), PEER, 0, 10],
    ['a window before its piece', changed(24, -8), PEER, 0, 10],
    ['a window without end', changed(32, Number.POSITIVE_INFINITY), PEER, 0, 10],
    ['a piece without length', changed(16, Number.NaN), PEER, 0, 10],
    ['a piece without number', changed(8, 0.5), PEER, 0, 10],
  ])('%s has none', (_name, key, pid, offset, bytes) => {
    expect(placeIn(key, pid, offset, bytes)).toBeUndefined();
  });
});

describeNative('pieces', () => {
  const place = (exported: ExportedMemory, memory: Uint8Array): Place =>
    placeIn(exported.keyOf(memory) as Uint8Array, PEER, 0, memory.length) as Place;

  test('one is opened once, and what its maker writes later is seen', () => {
    const exported = new ExportedMemory(native);
    const attached = new AttachedMemory(native, PEER);
    const piece = exported.make(10_000) as Uint8Array;
    piece[9999] = 1;
    const mapped = attached.at(place(exported, piece)) as ArrayBuffer;
    expect(new Uint8Array(mapped)[9999]).toBe(1);
    piece[9999] = 2;
    expect(attached.at(place(exported, piece.subarray(5)))).toBe(mapped);
    expect(new Uint8Array(mapped)[9999]).toBe(2);
    // Its maker lets go of it, and whoever has mapped it still can read.
    exported.drop(piece);
    expect(new Uint8Array(mapped)[9999]).toBe(2);
    attached.close();
    expect(mapped.byteLength).toBe(0);
  });

  test('what is not the piece that the key names is not opened', () => {
    const exported = new ExportedMemory(native);
    const attached = new AttachedMemory(native, PEER);
    const piece = exported.make(10_000) as Uint8Array;
    const sound = place(exported, piece);
    const file = openSync('/dev/zero', 'r+');
    expect(attached.at({ ...sound, number: sound.number + 1 })).toBeUndefined();
    expect(attached.at({ ...sound, fd: file })).toBeUndefined();
    expect(attached.at({ ...sound, fd: 0x7fff_ffff })).toBeUndefined();
    expect(attached.at({ ...sound, pieceBytes: 100_000 })).toBeUndefined();
    expect(attached.at(sound)).toBeDefined();
    // Also when it is mapped already.
    expect(attached.at({ ...sound, pieceBytes: 100_000 })).toBeUndefined();
    closeSync(file);
    exported.drop(piece);
    expect(new AttachedMemory(native, PEER).at(sound)).toBeUndefined();
    attached.close();
  });

  test('there are so many at most on either side, and the one that was not used for longest makes room', () => {
    const exported = new ExportedMemory(native);
    const attached = new AttachedMemory(native, PEER);
    const pieces: Uint8Array[] = [];
    for (let piece = exported.make(4096); piece !== undefined; piece = exported.make(4096)) pieces.push(piece);
    expect(pieces.length).toBe(512);
    const mapped = pieces.map((piece) => attached.at(place(exported, piece)) as ArrayBuffer);
    attached.at(place(exported, pieces[0]));
    exported.drop(pieces[511]);
    const late = exported.make(4096) as Uint8Array;
    attached.at(place(exported, late));
    expect(mapped.map(({ byteLength }) => byteLength).flatMap((length, i) => (length === 0 ? [i] : []))).toEqual([1]);
    attached.close();
    exported.close();
  });

  test('one that cannot be mapped is refused, and reads of others go on', () => {
    const exported = new ExportedMemory(native);
    const reads = new Reads(native, PEER);
    const [gone, piece] = [exported.make(1000), exported.make(1000)] as [Uint8Array, Uint8Array];
    piece.fill(7);
    const ended: [CompletionStatus, boolean][] = [];
    const get = (memory: Uint8Array, target: Uint8Array): void => {
      const op: OneSidedOp = {
        kind: 'get',
        local: [target],
        bytes: 1000,
        remoteKey: new Uint8Array(0),
        remoteOffset: 0,
        railFrameNumber: 0,
      };
      reads.add(op, place(exported, memory));
    };
    const target = new Uint8Array(1000);
    get(gone, new Uint8Array(1000));
    get(piece, target);
    exported.drop(gone);
    expect(
      reads.run((_op, status, isMapped) => {
        ended.push([status, isMapped]);
        return true;
      }),
    ).toBeUndefined();
    expect(ended).toEqual([
      [REFUSED, true],
      [DELIVERED, true],
    ]);
    expect(target.every((byte) => byte === 7)).toBe(true);
    reads.close();
  });
});
