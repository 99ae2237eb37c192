// Method: differential against protobufjs, with the definition of the out-of-band channel: bytes are the same, and what is decoded is.
import * as fc from 'fast-check';
import protobuf from 'protobufjs';
import { expect, test } from 'vitest';
import { OOB_PROTO } from '../../../src/launch/oob/proto.ts';
import { Codec } from '../../../src/launch/oob/protobuf.ts';

const { root } = protobuf.parse(OOB_PROTO);
const codec = new Codec(OOB_PROTO);
const typeOf = (name: string) => root.lookupType(`multirail.oob.v1.${name}`);

const U32 = fc.integer({ min: 0, max: 2 ** 32 - 1 });
const U53 = fc.oneof(U32, fc.maxSafeNat());
const BY_TYPE: Record<string, fc.Arbitrary<unknown>> = {
  uint32: U32,
  uint64: U53,
  sint32: fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
  bool: fc.boolean(),
  double: fc.double({ noNaN: true }),
  string: fc.string({ unit: 'grapheme' }),
  bytes: fc.uint8Array(),
};

/** Messages of that type, with any fields there or not, and one field of each oneof at most. */
function arbitraryOf(type: protobuf.Type): fc.Arbitrary<Record<string, unknown>> {
  const model: Record<string, fc.Arbitrary<unknown>> = {};
  const oneofs = type.oneofsArray.filter(({ name }) => !name.startsWith('_'));
  for (const field of type.fieldsArray) {
    const one = BY_TYPE[field.type] ?? arbitraryOf(field.resolve().resolvedType as protobuf.Type);
    if (oneofs.some((oneof) => oneof.fieldsArray.includes(field))) continue;
    if (field.map)
      model[field.name] = fc.dictionary(
        fc.string({ maxLength: 8 }).filter((key) => key !== '__proto__'),
        one,
        { maxKeys: 4 },
      );
    else model[field.name] = field.repeated ? fc.array(one, { maxLength: 4 }) : one;
  }
  const base = fc.record(model, { requiredKeys: [] });
  const bodies = oneofs.flatMap((oneof) => oneof.fieldsArray.map((field) => ({ name: field.name, type: field.resolve().resolvedType })));
  if (bodies.length === 0) return base;
  const body = fc
    .constantFrom(...bodies)
    .chain(({ name, type: of }) => arbitraryOf(of as protobuf.Type).map((value) => ({ [name]: value })));
  return fc.tuple(base, body).map(([some, more]) => ({ ...some, ...more }));
}

const ENVELOPES = arbitraryOf(typeOf('Envelope'));

/** Buffers and plain views with the same bytes are the same here; so are a field that is not there and one that says so. */
const plain = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (key, item) => {
      if (key.startsWith('_')) return undefined;
      return item?.type === 'Buffer' ? item.data : item instanceof Uint8Array ? [...item] : item;
    }),
  );

const theirs = (bytes: Uint8Array): unknown =>
  plain(typeOf('Envelope').toObject(typeOf('Envelope').decode(bytes), { longs: Number, defaults: true, arrays: true, oneofs: true }));

test('bytes are those of protobufjs', async () => {
  await fc.assert(
    fc.property(ENVELOPES, (envelope) => {
      const expected = typeOf('Envelope').encode(typeOf('Envelope').fromObject(envelope)).finish();
      expect(Buffer.from(codec.encode('Envelope', envelope)).toString('hex')).toBe(Buffer.from(expected).toString('hex'));
    }),
    { numRuns: 1000 },
  );
});

test('what is decoded is what protobufjs decodes', async () => {
  await fc.assert(
    fc.property(ENVELOPES, (envelope) => {
      const bytes = codec.encode('Envelope', envelope);
      expect(plain(codec.decode('Envelope', bytes))).toEqual(theirs(bytes));
    }),
    { numRuns: 1000 },
  );
});

test('what is cut off is refused, or ends between two fields', async () => {
  await fc.assert(
    fc.property(ENVELOPES, fc.nat(), (envelope, at) => {
      const bytes = codec.encode('Envelope', envelope);
      const cut = bytes.subarray(0, at % (bytes.length + 1));
      let decoded: unknown;
      try {
        decoded = codec.decode('Envelope', cut);
      } catch (error) {
        expect(error).toBeInstanceOf(RangeError);
        return;
      }
      expect(plain(decoded)).toEqual(theirs(cut));
    }),
    { numRuns: 1000 },
  );
});

test('fields that are not known, and known ones of another type, are passed over', () => {
  const bytes = codec.encode('Envelope', { sequence: 7, barrierAsk: { name: 'x' } });
  // Field 1 as bytes, field 99 as each type.
  const strange = Buffer.from([0x0a, 1, 65, 0x98, 6, 5, 0x99, 6, 1, 2, 3, 4, 5, 6, 7, 8, 0x9a, 6, 2, 1, 2, 0x9d, 6, 1, 2, 3, 4]);
  const decoded = codec.decode('Envelope', Buffer.concat([bytes, strange]));
  expect(decoded).toEqual({ sequence: 7, acknowledged: 0, body: 'barrierAsk', barrierAsk: { name: 'x' } });
});
