// Message buffers as views of bytes: every kind, units of vectors, and what is refused, with the argument's name.
import fc from 'fast-check';
import { expect, describe as group, test } from 'vitest';
import { MultirailError } from '../../../src/errors.ts';
import { recvIov, sendIov, vector } from '../../../src/mpi/buffers.ts';

const bytes = (buffer: Parameters<typeof sendIov>[0]) => {
  const iov = sendIov(buffer);
  const copy = new Uint8Array(iov.bytes);
  iov.copyTo(copy, 0);
  return [...copy];
};

function codeOf(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    if (error instanceof MultirailError) return error.message;
    throw error;
  }
  return 'nothing was thrown';
}

group('message buffers', () => {
  test('every kind is a view of the same memory', () => {
    const memory = new Uint8Array([1, 2, 3, 4, 5, 6, 7, 8]).buffer;
    expect(bytes(memory)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(bytes(new Uint16Array(memory, 2, 2))).toEqual([3, 4, 5, 6]);
    expect(bytes(new DataView(memory, 1, 3))).toEqual([2, 3, 4]);
    expect(bytes(Buffer.from('ab'))).toEqual([97, 98]);
    expect(bytes(new SharedArrayBuffer(2))).toEqual([0, 0]);
    expect(bytes([new Uint8Array(memory, 0, 1), [] as never, new Uint8Array(memory, 7, 1)].filter((part) => !Array.isArray(part)))).toEqual(
      [1, 8],
    );
    sendIov(new Uint32Array(memory)).copyIn(0, new Uint8Array([9]));
    expect(new Uint8Array(memory)[0]).toBe(9);
  });

  test('vector units are elements of typed arrays, bytes of other memory', () => {
    const matrix = Int16Array.from([0, 1, 2, 10, 11, 12, 20, 21, 22]);
    const column = vector(matrix.subarray(1), 3, 1, 3);
    expect([...new Int16Array(Uint8Array.from(bytes(column)).buffer)]).toEqual([1, 11, 21]);
    expect(bytes(vector(Uint8Array.from([1, 2, 3, 4, 5]).buffer, 2, 2, 3))).toEqual([1, 2, 4, 5]);
    expect(sendIov(vector(new Uint8Array(100), 10, 10, 10)).views.length).toBe(1);
    expect(bytes(vector(new Uint8Array(4), 0, 2, 2))).toEqual([]);
  });

  test('vectors take exactly the elements of their blocks', () => {
    fc.assert(
      fc.property(fc.nat(12), fc.nat(5), fc.nat(4), (count, block, gap) => {
        const stride = block + gap;
        const data = Uint8Array.from({ length: count * stride + 3 }, (_, i) => i);
        const expected = Array.from({ length: count }, (_, i) => [...data.subarray(i * stride, i * stride + block)]).flat();
        expect(bytes(vector(data, count, block, stride))).toEqual(expected);
      }),
      { numRuns: 200 },
    );
  });

  test('what is refused names the argument', () => {
    expect(codeOf(() => vector(new Uint8Array(10), 3, 2, 1))).toMatch(/ERR_ARG: stride is 1/);
    expect(codeOf(() => vector(new Uint8Array(10), 3, 2, 5))).toMatch(/ERR_COUNT: .* 12 of a buffer of 10/);
    expect(codeOf(() => vector(new Uint8Array(10), -1, 2, 5))).toMatch(/ERR_COUNT: count is -1/);
    expect(codeOf(() => sendIov('x' as never))).toMatch(/ERR_BUFFER: buffer is string/);
    expect(codeOf(() => sendIov([new Uint8Array(1), 4 as never]))).toMatch(/ERR_BUFFER: buffer\[1\] is number/);
    const memory = new Uint8Array(10);
    expect(codeOf(() => recvIov([memory.subarray(4), memory.subarray(0, 5)]))).toMatch(/ERR_BUFFER: .*overlap at byte 4/);
    expect(recvIov([memory.subarray(5), memory.subarray(0, 5)]).bytes).toBe(10);
    expect(sendIov([memory, memory]).bytes).toBe(20);
  });

  test('of memory that grows, the message is what was there at the call', () => {
    const shared = Reflect.construct(SharedArrayBuffer, [4, { maxByteLength: 64 }]) as SharedArrayBuffer & { grow?(bytes: number): void };
    if (shared.grow === undefined) return;
    const tracking = new Uint8Array(shared);
    const iovs = [tracking, shared, [tracking, new Uint8Array(1)], vector(tracking, 2, 2, 2), new DataView(shared)].map((buffer) =>
      recvIov(buffer),
    );
    const before = iovs.map((iov) => iov.views.map(({ length }) => length));
    shared.grow(64);
    expect(tracking.length).toBe(64);
    expect(iovs.map((iov) => iov.views.map(({ length }) => length))).toEqual(before);
    expect(iovs.map(({ bytes }) => bytes)).toEqual([4, 4, 5, 4, 4]);
  });

  test('detached and resizable memory is refused', () => {
    const detached = new ArrayBuffer(4);
    const view = new Uint8Array(detached);
    structuredClone(detached, { transfer: [detached] });
    expect(codeOf(() => sendIov(detached))).toMatch(/detached/);
    expect(codeOf(() => sendIov(view))).toMatch(/detached/);
    const resizable = Reflect.construct(ArrayBuffer, [4, { maxByteLength: 8 }]) as ArrayBuffer & { resizable?: boolean };
    if (resizable.resizable) expect(codeOf(() => recvIov(new Uint8Array(resizable)))).toMatch(/resizable/);
  });
});
