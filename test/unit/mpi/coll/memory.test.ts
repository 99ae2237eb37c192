// Buffers of collectives by the class of their elements, whatever its name; Float16Array where the engine has it.
import { expect, describe as group, test } from 'vitest';
import { FLOAT16_ARRAY, type MessageBuffer, vector } from '../../../../src/mpi/buffers.ts';
import { recvRegion, ScratchElements, sendRegion } from '../../../../src/mpi/coll/memory.ts';
import { decodeHeader, decodeObject, encodeObject, PLACE_TAG_FIRST } from '../../../../src/mpi/objects.ts';
import { kernelOf, Op } from '../../../../src/mpi/op.ts';
import { Status } from '../../../../src/mpi/status.ts';

const float16 = (...values: number[]): Float32Array => (FLOAT16_ARRAY as Float32ArrayConstructor).from(values);

group('classes of buffers', () => {
  test('a subclass counts as the class that it extends, whatever it calls itself', () => {
    class Samples extends Float32Array {
      override get [Symbol.toStringTag](): 'Float32Array' {
        return 'Samples' as 'Float32Array';
      }
    }
    const region = sendRegion(Samples.of(1, 2, 3));
    expect([region.arrayName, region.unitBytes, region.length]).toEqual(['Float32Array', 4, 3]);
    expect(sendRegion(vector(new Samples(6), 3, 1, 2)).arrayName).toBe('Float32Array');
  });

  test('a class that nobody knows is an error that says so', () => {
    const later = { views: [new Uint8Array(4)], bytes: 4, arrayName: 'Float8Array' };
    expect(() =>
      sendRegion(Object.setPrototypeOf(later, Object.getPrototypeOf(vector(new Uint8Array(1), 1, 1, 1))) as MessageBuffer),
    ).toThrow(/ERR_BUFFER: collectives know no Float8Array/);
  });

  test.skipIf(FLOAT16_ARRAY === undefined)('Float16Array is a class like the others', () => {
    const region = recvRegion(float16(1.5, -2, 65504));
    expect([region.arrayName, region.unitBytes, region.length]).toEqual(['Float16Array', 2, 3]);
    expect(new ScratchElements('Float16Array', 3, new Uint8Array(6)).array).toBeInstanceOf(FLOAT16_ARRAY as Float32ArrayConstructor);
    const [a, b] = [float16(0.1, 1, 60000), float16(0.2, 2048, 60000)];
    kernelOf(Op.SUM, 'Float16Array')(a, 0, b, 0, a, 0, 3);
    // Rounded as the array does it: 2049 lies between two values of this class.
    expect([...a]).toEqual([float16(float16(0.1)[0] + float16(0.2)[0])[0], 2048, Number.POSITIVE_INFINITY]);
    expect(() => kernelOf(Op.BAND, 'Float16Array')).toThrow(/ERR_OP/);
  });

  test.skipIf(FLOAT16_ARRAY === undefined)('a Float16Array travels in an object', () => {
    const { header, bulk } = encodeObject({ few: float16(0.5, 3) }, PLACE_TAG_FIRST, true);
    const copy = decodeObject(decodeHeader(header, new Status(0, 0, header.length)), bulk as Uint8Array<ArrayBuffer>[]) as {
      few: Float32Array;
    };
    expect(copy.few).toBeInstanceOf(FLOAT16_ARRAY as Float32ArrayConstructor);
    expect([...copy.few]).toEqual([0.5, 3]);
  });
});
