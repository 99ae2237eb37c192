// Structured clones whose bytes follow from the value alone: every kind of value comes back, and values that V8 holds in different ways are
// written alike.
import { deserialize, serialize } from 'node:v8';
import { describe, expect, it } from 'vitest';
import { cloneByValue } from '../../../src/util/clone-by-value.ts';

/** What V8 holds as a double. */
function asDouble(whole: number): unknown {
  const doubles = [0.5, whole];
  return { value: doubles[1] };
}

const roundTrip = (value: unknown): unknown => deserialize(cloneByValue(serialize(value)));
const same = (a: unknown, b: unknown): void =>
  expect(Buffer.from(cloneByValue(serialize(a))).toString('hex')).toBe(Buffer.from(cloneByValue(serialize(b))).toString('hex'));

class Point {
  x = 1;
}

const cyclic: Record<string, unknown> = { name: 'cycle' };
cyclic.self = cyclic;
const holes = Object.assign([1], { 2: 3 });
const withProperties = Object.assign([1, 2], { label: 'of an array', 7.5: true });
const holey = new Array(3).fill('x');

const VALUES: [name: string, value: unknown][] = [
  ['undefined, null, booleans', [undefined, null, true, false]],
  ['whole numbers', [0, 1, -1, 63, 64, -64, -65, 2 ** 30, -(2 ** 30), 2 ** 31 - 1, -(2 ** 31), 2 ** 31, 2 ** 32, -(2 ** 31) - 1]],
  ['other numbers', [0.1, -0, Number.NaN, Number.POSITIVE_INFINITY, -1e300, 5e-324, 2 ** 53]],
  ['bigints', [0n, 1n, -1n, 2n ** 64n, -(2n ** 200n)]],
  ['strings', ['', 'abc', 'é', 'π', '😀', 'a'.repeat(300), 'π'.repeat(300), '\0']],
  ['objects', { a: 1, b: { c: [] }, 7: 'seven', π: 3, '': 0 }],
  ['a class of the user', new Point()],
  ['arrays', [[], [1], [[2], [3, [4]]], ['x', 1, null]]],
  ['an array with a hole', holes],
  ['an array with room for holes', holey],
  ['arrays within an array with room for holes', Object.assign(new Array(2), [new Array(2).fill(new Array(1).fill(1.5)), holes])],
  ['an array with properties', withProperties],
  ['an array with room for holes and properties', Object.assign(new Array(2), [1, 2], { label: 'x' })],
  ['a long array with one element', Object.assign([], { 5000: 1 })],
  ['an array whose end is missing', new Array(4)],
  [
    'maps and sets',
    new Map<unknown, unknown>([
      ['a', new Set([1, 2])],
      [{ k: 1 }, new Map()],
    ]),
  ],
  ['dates', [new Date(0), new Date(1e12), new Date(Number.NaN)]],
  ['boxed values', [Object(1), Object('s'), Object('π'), Object(true), Object(false), Object(12n)]],
  ['regular expressions', [/a+b/gi, /π/u]],
  ['memory', [new ArrayBuffer(0), Uint8Array.from([1, 2, 3]).buffer]],
  [
    'views',
    [new Uint8Array([1, 2]), new Float64Array([1.5]), Buffer.from('abc'), new DataView(new ArrayBuffer(3)), new BigInt64Array([5n])],
  ],
  ['the same object twice', [cyclic, cyclic]],
];

describe('a clone by value', () => {
  it.each(VALUES)('%s', (_, value) => {
    expect(roundTrip(value)).toStrictEqual(deserialize(serialize(value)));
    // It is its own form.
    const once = cloneByValue(serialize(value));
    expect(Buffer.compare(cloneByValue(once), once)).toBe(0);
  });

  it('errors', () => {
    const errors = [new RangeError('π'), new TypeError('with a cause', { cause: { at: [1, new Error('inner')] } }), new Error('')];
    const back = roundTrip(errors) as Error[];
    for (const [i, error] of errors.entries()) {
      expect(back[i]).toBeInstanceOf(error.constructor);
      expect([back[i].message, back[i].stack]).toEqual([error.message, error.stack]);
    }
    expect((deserialize(cloneByValue(serialize(errors))) as Error[])[1].cause).toStrictEqual(
      (deserialize(serialize(errors)) as Error[])[1].cause,
    );
  });

  it('memory that may grow', () => {
    const memory = new (ArrayBuffer as unknown as new (bytes: number, options: object) => ArrayBuffer)(3, { maxByteLength: 9 });
    new Uint8Array(memory).set([1, 2, 3]);
    const back = roundTrip([memory, 'behind it']) as [ArrayBuffer & { maxByteLength: number }, string];
    expect([...new Uint8Array(back[0])]).toEqual([1, 2, 3]);
    expect([back[0].maxByteLength, back[1]]).toEqual([9, 'behind it']);
  });

  it('writes a whole number alike, whether V8 holds an integer or a double', () => {
    const [integer, double] = [{ value: 3 }, asDouble(3)];
    // V8's bytes differ: what this is for.
    expect(serialize(integer).equals(serialize(double))).toBe(false);
    same(integer, double);
    for (const whole of [0, -1, 1000, -(2 ** 31), 2 ** 31 - 1]) same({ value: whole }, asDouble(whole));
    same([1, 2, 3], Array.from(new Float64Array([1, 2, 3])));
    expect(cloneByValue(serialize(0))).not.toEqual(cloneByValue(serialize(-0)));
  });

  it('writes a string alike, whether it has one or two bytes a character', () => {
    const long = `${'plain text, long enough to be a slice of another one. '.repeat(3)}`;
    const sliced = `π${long}`.slice(1);
    expect(sliced).toBe(long);
    same(long, sliced);
    same({ [long]: [long] }, { [sliced]: [sliced] });
  });

  it('writes an array alike, whether or not it has had room for holes', () => {
    const packed = ['a', { b: [1, 2] }, 'c'];
    const roomy = Object.assign(new Array(3), ['a', { b: Object.assign(new Array(2), [1, 2]) }, 'c']);
    expect(serialize(packed).equals(serialize(roomy))).toBe(false);
    same(packed, roomy);
    same(Object.assign([...packed], { label: 1 }), Object.assign(roomy, { label: 1 }));
    expect(cloneByValue(serialize(holes))).not.toEqual(cloneByValue(serialize([1, undefined, 3])));
  });

  it('writes a NaN alike, whatever its bits', () => {
    const bits = new BigUint64Array([0xfff8000000000001n]);
    same({ value: Number.NaN }, { value: new Float64Array(bits.buffer)[0] });
  });

  it('takes what V8 takes of depth', () => {
    let depth = 100;
    let value: unknown = { end: true };
    for (let i = 0; i < depth; i++) value = [value];
    let deepest = value;
    try {
      for (;;) {
        serialize(value);
        deepest = value;
        for (let i = 0; i < 100; i++) value = [value];
        depth += 100;
      }
    } catch {
      // Too deep for V8 itself.
    }
    let inner = deserialize(cloneByValue(serialize(deepest))) as unknown;
    while (Array.isArray(inner)) inner = inner[0];
    expect(inner).toEqual({ end: true });
    let roomy: unknown = asDouble(1);
    for (let i = 0; i < 500; i++) roomy = Object.assign(new Array(1), [roomy]);
    let packed: unknown = { value: 1 };
    for (let i = 0; i < 500; i++) packed = [packed];
    same(packed, roomy);
  });

  it('leaves alone what it does not know', () => {
    for (const bytes of [
      Uint8Array.of(),
      Uint8Array.of(0xff, 14, 0x30),
      Uint8Array.of(0xff, 15, 0x21),
      serialize('cut short').subarray(0, 6),
    ])
      expect(cloneByValue(bytes)).toBe(bytes);
  });
});
