// Objects on the wire: what structured clone carries, memory next to the header, and damaged or foreign messages.
import { expect, describe as group, test } from 'vitest';
import { MultirailError } from '../../../src/errors.ts';
import { decodeHeader, decodeObject, encodeObject, OUT_OF_BAND_BYTES_MIN, PLACE_TAG_FIRST } from '../../../src/mpi/objects.ts';
import { Status } from '../../../src/mpi/status.ts';

const STATUS = new Status(3, 4, 0);
const PLACE = PLACE_TAG_FIRST + 5;

function roundTrip<T>(value: T, isByValue: boolean): { copy: T; regions: number } {
  const { header, bulk } = encodeObject(value, PLACE, isByValue);
  const decoded = decodeHeader(header.slice(), STATUS);
  expect(decoded.place).toBe(PLACE);
  expect(decoded.regionBytes).toEqual(bulk.map((part) => part.byteLength));
  return {
    copy: decodeObject(
      decoded,
      bulk.map((part) => part.slice()),
    ) as T,
    regions: bulk.length,
  };
}

group.each([
  ['as V8 holds them', false],
  ['by value', true],
])('objects %s', (_, isByValue) => {
  test('plain values, cycles and views of all classes', () => {
    const cyclic: { self?: unknown; n: number } = { n: 1 };
    cyclic.self = cyclic;
    const { copy } = roundTrip(cyclic, isByValue);
    expect(copy.self).toBe(copy);
    const views = [
      Int8Array.of(-1),
      Uint8ClampedArray.of(255),
      Float64Array.of(Math.PI, Number.NaN),
      BigInt64Array.of(-5n),
      new DataView(new ArrayBuffer(3)),
      Buffer.from('text'),
      new Uint16Array(0),
    ];
    const value = { views, date: new Date(1), map: new Map([['a', new Set([1])]]), error: new RangeError('no'), nothing: null };
    const result = roundTrip(value, isByValue);
    expect(result.copy).toEqual(value);
    expect(result.copy.views.map((view) => view.constructor)).toEqual(views.map((view) => view.constructor));
    expect(result.regions).toBe(0);
  });

  test('large memory travels beside the header, shared views stay shared, small views of large memory go alone', () => {
    const large = new Float32Array(OUT_OF_BAND_BYTES_MIN / 4).fill(2);
    const bare = new Uint8Array(OUT_OF_BAND_BYTES_MIN + 1).fill(3).buffer;
    const value = {
      large,
      same: large,
      bytes: new Uint8Array(large.buffer),
      small: large.subarray(5, 7),
      list: [{ bare }],
      map: new Map([[1, bare]]),
    };
    const { header } = encodeObject(value, PLACE, isByValue);
    expect(header.byteLength).toBeLessThan(1000);
    const { copy, regions } = roundTrip(value, isByValue);
    expect(regions).toBe(2);
    expect(copy).toEqual(value);
    expect(copy.same.buffer).toBe(copy.large.buffer);
    expect(copy.bytes.buffer).toBe(copy.large.buffer);
    expect(copy.map.get(1)).toBe(copy.list[0].bare);
    expect(copy.small.buffer.byteLength).toBe(8);
  });

  test('a getter is called once', () => {
    let calls = 0;
    roundTrip(
      {
        get value() {
          calls++;
          return 1;
        },
      },
      isByValue,
    );
    expect(calls).toBe(1);
  });

  test('what cannot be cloned is refused at the sender', () => {
    for (const value of [() => 1, Symbol('x'), { deep: [new SharedArrayBuffer(4)] }, new WeakMap()]) {
      expect(() => encodeObject(value, PLACE, isByValue)).toThrow(/ERR_ARG: the value cannot be sent/);
    }
  });

  test('foreign and damaged messages end in ERR_ARG, never in anything else', () => {
    const { header } = encodeObject({ a: new Uint8Array(OUT_OF_BAND_BYTES_MIN), b: [1, 2, 'x'] }, PLACE, isByValue);
    expect(() => decodeHeader(new Uint8Array(3), STATUS)).toThrow(/ERR_ARG.*rank 3 with tag 4/);
    let refused = 0;
    for (let at = 0; at < header.byteLength; at++) {
      for (const bit of [1, 0x80]) {
        const damaged = header.slice();
        damaged[at] ^= bit;
        try {
          const decoded = decodeHeader(damaged, STATUS);
          decodeObject(
            decoded,
            decoded.regionBytes.map(() => new Uint8Array(OUT_OF_BAND_BYTES_MIN)),
          );
        } catch (error) {
          expect(error).toBeInstanceOf(MultirailError);
          expect((error as MultirailError).code).toBe('ERR_ARG');
          refused++;
        }
      }
    }
    expect(refused).toBeGreaterThan(10);
  });
});
