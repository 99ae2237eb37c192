// Protocol Buffers, as far as oob.proto uses them: messages are read from the text of the definition, encoded and decoded as it says. A
// library for all of Protocol Buffers takes each rank a tenth of the processor time of its start. Pure.
const WIRE = { VARINT: 0, FIXED64: 1, BYTES: 2, FIXED32: 5 } as const;
const TWO_32 = 2 ** 32;
const VARINT_BYTES_MAX = 10;

type Scalar = 'uint32' | 'uint64' | 'sint32' | 'bool' | 'double' | 'string' | 'bytes';

const WIRE_OF: Readonly<Record<Scalar, number>> = {
  uint32: WIRE.VARINT,
  uint64: WIRE.VARINT,
  sint32: WIRE.VARINT,
  bool: WIRE.VARINT,
  double: WIRE.FIXED64,
  string: WIRE.BYTES,
  bytes: WIRE.BYTES,
};

interface Field {
  readonly number: number;
  /** In camel case. */
  readonly name: string;
  /** A scalar type, or the name of a message. */
  readonly type: string;
  /** `map`: from strings to `type`. */
  readonly label: 'one' | 'optional' | 'repeated' | 'map';
  /** The oneof that it belongs to. */
  readonly oneof: string | undefined;
}

interface Message {
  /** By ascending numbers. */
  readonly fields: readonly Field[];
  readonly byNumber: ReadonlyMap<number, Field>;
}

/** A message as a plain object. */
export type Plain = Record<string, unknown>;

const isScalar = (type: string): type is Scalar => type in WIRE_OF;
const camel = (name: string): string => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
const isPacked = (type: string): boolean => isScalar(type) && WIRE_OF[type] !== WIRE.BYTES;

/** The messages of a definition, by name. It is one of this package: what is not understood of it is a mistake of ours. */
function parse(text: string): Map<string, Message> {
  const tokens: readonly string[] = text.replace(/\/\/[^\n]*/g, '').match(/[A-Za-z_][\w.]*|\d+|"[^"]*"|[{}=;<>,]/g) ?? [];
  const messages = new Map<string, Message>();
  let at = 0;
  const fieldsUntilBrace = (oneof: string | undefined): Field[] => {
    const fields: Field[] = [];
    while (tokens[at] !== '}') {
      let type = tokens[at++];
      if (type === 'oneof') {
        const name = tokens[at];
        at += 2;
        fields.push(...fieldsUntilBrace(camel(name)));
        continue;
      }
      if (type === 'reserved') {
        at = tokens.indexOf(';', at) + 1;
        continue;
      }
      let label: Field['label'] = 'one';
      if (type === 'optional' || type === 'repeated') {
        label = type;
        type = tokens[at++];
      } else if (type === 'map') {
        label = 'map';
        type = tokens[at + 3];
        at += 5;
      }
      fields.push({ type, label, oneof, name: camel(tokens[at]), number: Number(tokens[at + 2]) });
      at += 4;
    }
    at++;
    return fields;
  };
  while (at < tokens.length) {
    if (tokens[at] !== 'message') {
      at = tokens.indexOf(';', at) + 1;
      continue;
    }
    const name = tokens[at + 1];
    at += 3;
    const fields = fieldsUntilBrace(undefined).sort((a, b) => a.number - b.number);
    messages.set(name, { fields, byNumber: new Map(fields.map((field) => [field.number, field])) });
  }
  return messages;
}

/** Bytes that grow. */
class Writer {
  private bytes = Buffer.allocUnsafe(256);
  private length = 0;

  get written(): Uint8Array {
    return this.bytes.subarray(0, this.length);
  }

  private room(count: number): number {
    const at = this.length;
    if (at + count > this.bytes.length) {
      const larger = Buffer.allocUnsafe(Math.max(this.bytes.length * 2, at + count));
      this.bytes.copy(larger, 0, 0, at);
      this.bytes = larger;
    }
    this.length = at + count;
    return at;
  }

  private byte(value: number): void {
    const at = this.room(1);
    this.bytes[at] = value;
  }

  varint(value: number): void {
    let rest = value;
    // Above 32 bits there are no bitwise operators.
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) this.byte((rest % 0x80) | 0x80);
    this.byte(rest);
  }

  tag(number: number, wire: number): void {
    this.varint(number * 8 + wire);
  }

  counted(bytes: Uint8Array): void {
    this.varint(bytes.length);
    const at = this.room(bytes.length);
    this.bytes.set(bytes, at);
  }

  double(value: number): void {
    const at = this.room(8);
    this.bytes.writeDoubleLE(value, at);
  }

  scalar(type: Scalar, value: unknown): void {
    switch (type) {
      case 'uint32':
        return this.varint((value as number) >>> 0);
      case 'uint64':
        return this.varint(Math.max(0, Math.trunc(value as number)));
      case 'sint32':
        return this.varint((((value as number) << 1) ^ ((value as number) >> 31)) >>> 0);
      case 'bool':
        return this.varint(value === true ? 1 : 0);
      case 'double':
        return this.double(value as number);
      case 'string':
        return this.counted(Buffer.from(value as string));
      case 'bytes':
        return this.counted(value as Uint8Array);
    }
  }
}

/** A message in bytes, read from the front. Throws RangeError where they end too early. */
class Reader {
  private readonly bytes: Buffer;
  private at: number;
  private readonly end: number;

  constructor(bytes: Uint8Array) {
    this.bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.at = 0;
    this.end = bytes.byteLength;
  }

  get isOver(): boolean {
    return this.at >= this.end;
  }

  private take(count: number): number {
    const { at } = this;
    if (at + count > this.end) throw new RangeError(`${count} bytes at ${at}, of ${this.end}`);
    this.at += count;
    return at;
  }

  /** 64 bits; above 2^53 not exact. */
  varint(): number {
    let value = 0;
    let scale = 1;
    for (let i = 0; i < VARINT_BYTES_MAX; i++) {
      const byte = this.bytes[this.take(1)];
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 0x80;
    }
    throw new RangeError(`a number of more than ${VARINT_BYTES_MAX} bytes at ${this.at}`);
  }

  counted(): Uint8Array {
    const count = this.varint();
    const at = this.take(count);
    return this.bytes.subarray(at, at + count);
  }

  scalar(type: Scalar): unknown {
    switch (type) {
      case 'uint32':
        return this.varint() % TWO_32;
      case 'uint64':
        return this.varint();
      case 'sint32': {
        const zigzag = this.varint() % TWO_32;
        return (zigzag >>> 1) ^ -(zigzag & 1);
      }
      case 'bool':
        return this.varint() !== 0;
      case 'double':
        return this.bytes.readDoubleLE(this.take(8));
      case 'string': {
        const { buffer, byteOffset, byteLength } = this.counted();
        return Buffer.from(buffer, byteOffset, byteLength).toString('utf8');
      }
      case 'bytes':
        return this.counted();
    }
  }

  skip(wire: number): void {
    if (wire === WIRE.VARINT) this.varint();
    else if (wire === WIRE.FIXED64) this.take(8);
    else if (wire === WIRE.BYTES) this.counted();
    else if (wire === WIRE.FIXED32) this.take(4);
    else throw new RangeError(`wire type ${wire} at ${this.at}`);
  }
}

function defaultOf({ type, label }: Field): unknown {
  if (label === 'repeated') return [];
  if (label === 'map') return {};
  if (!isScalar(type)) return null;
  if (type === 'bool') return false;
  if (type === 'string') return '';
  return type === 'bytes' ? new Uint8Array(0) : 0;
}

function isDefault(type: string, value: unknown): boolean {
  if (type === 'bytes') return (value as Uint8Array).length === 0;
  return isScalar(type) && (value === '' || value === false || Object.is(value, 0));
}

/** Encodes and decodes the messages of one definition. */
export class Codec {
  private readonly messages: ReadonlyMap<string, Message>;

  constructor(definition: string) {
    this.messages = parse(definition);
  }

  private message(name: string): Message {
    const message = this.messages.get(name);
    if (message === undefined) throw new Error(`the definition has no message ${name}`);
    return message;
  }

  /** Fields that are undefined or null are left out, and so are those that have their default. */
  encode(name: string, plain: Plain): Uint8Array {
    const writer = new Writer();
    for (const { number, name: key, type, label, oneof } of this.message(name).fields) {
      const value = plain[key];
      if (value === undefined || value === null) continue;
      if (label === 'one' && oneof === undefined && isDefault(type, value)) continue;
      if (label === 'map') {
        for (const [entry, one] of Object.entries(value)) {
          const pair = new Writer();
          this.field(pair, 1, 'string', entry);
          this.field(pair, 2, type, one);
          writer.tag(number, WIRE.BYTES);
          writer.counted(pair.written);
        }
      } else if (label !== 'repeated') this.field(writer, number, type, value);
      else if (!isPacked(type)) for (const one of value as unknown[]) this.field(writer, number, type, one);
      else if ((value as unknown[]).length > 0) {
        const packed = new Writer();
        for (const one of value as unknown[]) packed.scalar(type as Scalar, one);
        writer.tag(number, WIRE.BYTES);
        writer.counted(packed.written);
      }
    }
    return writer.written;
  }

  private field(writer: Writer, number: number, type: string, value: unknown): void {
    writer.tag(number, isScalar(type) ? WIRE_OF[type] : WIRE.BYTES);
    if (isScalar(type)) writer.scalar(type, value);
    else writer.counted(this.encode(type, value as Plain));
  }

  /**
   * A message as an object in which every field has a value, except what is optional or of a oneof, and is not there. Of a oneof there is its
   * name, too, with the name of the field. `bytes` are views of what is given. Throws RangeError for what is no message.
   */
  decode(name: string, bytes: Uint8Array): Plain {
    const { fields, byNumber } = this.message(name);
    const plain: Plain = {};
    for (const field of fields) if (field.oneof === undefined && field.label !== 'optional') plain[field.name] = defaultOf(field);
    const reader = new Reader(bytes);
    while (!reader.isOver) {
      const tag = reader.varint();
      const wire = tag % 8;
      const field = byNumber.get(Math.floor(tag / 8));
      if (tag < 8) throw new RangeError('a field without a number');
      if (field === undefined || !this.take(plain, field, wire, reader)) reader.skip(wire);
    }
    return plain;
  }

  /** False, and nothing is read, where a field of another type is there. */
  private take(plain: Plain, field: Field, wire: number, reader: Reader): boolean {
    const { name, type, label, oneof } = field;
    if (label === 'map') {
      if (wire !== WIRE.BYTES) return false;
      const [key, value] = this.entry(type, reader.counted());
      Object.defineProperty(plain[name], key, { value, enumerable: true, configurable: true, writable: true });
      return true;
    }
    const own = isScalar(type) ? WIRE_OF[type] : WIRE.BYTES;
    if (label === 'repeated') {
      const list = plain[name] as unknown[];
      if (wire === WIRE.BYTES && isPacked(type)) {
        const packed = new Reader(reader.counted());
        while (!packed.isOver) list.push(packed.scalar(type as Scalar));
        return true;
      }
      if (wire !== own) return false;
      list.push(this.value(type, reader));
      return true;
    }
    if (wire !== own) return false;
    if (oneof !== undefined) {
      delete plain[plain[oneof] as string];
      plain[oneof] = name;
    }
    plain[name] = this.value(type, reader);
    return true;
  }

  private value(type: string, reader: Reader): unknown {
    return isScalar(type) ? reader.scalar(type) : this.decode(type, reader.counted());
  }

  private entry(type: string, bytes: Uint8Array): [key: string, value: unknown] {
    const reader = new Reader(bytes);
    let key = '';
    let value = defaultOf({ type, label: 'one' } as Field);
    while (!reader.isOver) {
      const tag = reader.varint();
      const own = isScalar(type) ? WIRE_OF[type] : WIRE.BYTES;
      if (tag === 8 + WIRE.BYTES) key = reader.scalar('string') as string;
      else if (tag === 16 + own) value = this.value(type, reader);
      else reader.skip(tag % 8);
    }
    return [key, value];
  }
}
