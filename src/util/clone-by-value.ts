// Structured clones whose bytes follow from the value alone. V8 writes what it happens to hold: a whole number as an integer or as a double, a
// string in one or two bytes a character, an array that has had room for holes as pairs of index and element. What it holds depends on what
// the program did before, and on what V8 has learnt of it: two processes that come to equal values may write different bytes, and a process
// that repeats another one's steps, too. Where messages are compared by their bytes, each value has one form here, which any reader of V8's
// format takes.

/** Finds the end of what a serializer has written of a view itself, which begins at `at` (V8's tag `\`). */
export type EndOfView = (read: { uint32(): number; skip(bytes: number): void }) => void;

/** Views as v8.serialize() writes them: class, length, bytes. */
export const endOfPlainView: EndOfView = (read) => {
  read.uint32();
  read.skip(read.uint32());
};

const code = (text: string): number => text.charCodeAt(0);
/** V8's tags, of src/objects/value-serializer.cc, version 15 of its format. */
const TAG = {
  version: 0xff,
  padding: 0,
  hole: code('-'),
  undefined: code('_'),
  null: code('0'),
  true: code('T'),
  false: code('F'),
  int32: code('I'),
  uint32: code('U'),
  double: code('N'),
  bigint: code('Z'),
  utf8: code('S'),
  oneByte: code('"'),
  twoByte: code('c'),
  reference: code('^'),
  object: code('o'),
  objectEnd: code('{'),
  dense: code('A'),
  denseEnd: code('$'),
  sparse: code('a'),
  sparseEnd: code('@'),
  date: code('D'),
  trueObject: code('y'),
  falseObject: code('x'),
  numberObject: code('n'),
  bigintObject: code('z'),
  stringObject: code('s'),
  regexp: code('R'),
  map: code(';'),
  mapEnd: code(':'),
  set: code("'"),
  setEnd: code(','),
  memory: code('B'),
  resizableMemory: code('~'),
  transferred: code('t'),
  view: code('\\'),
  error: code('r'),
} as const;
/** Inside of an error. */
const ERROR_TAG = { message: code('m'), cause: code('c'), stack: code('s'), end: code('.') } as const;
const ERROR_CLASSES: ReadonlySet<number> = new Set([...'ERFSTU'].map(code));
const VERSION = 15;
const INT32_MIN = -(2 ** 31);
const INT32_MAX = 2 ** 31 - 1;

/** Thrown inside of this file: the bytes are of a kind that is not known here. */
class Unknown extends Error {}

class Rewriter {
  private readonly from: Uint8Array;
  private readonly view: DataView;
  private readonly endOfView: EndOfView;
  private at = 0;
  /** What is written is never longer than what is read. */
  private readonly out: Uint8Array;
  private readonly outView: DataView;
  private end = 0;

  constructor(bytes: Uint8Array, endOfView: EndOfView) {
    this.from = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.out = new Uint8Array(bytes.length);
    this.outView = new DataView(this.out.buffer);
    this.endOfView = endOfView;
  }

  run(): Uint8Array {
    if (this.from[0] !== TAG.version || this.from[1] !== VERSION) throw new Unknown();
    this.copy(2);
    this.value();
    if (this.at !== this.from.length) throw new Unknown();
    return this.out.subarray(0, this.end);
  }

  // ---------------------------------------------------------------- reading and writing

  private peekTag(): number {
    while (this.from[this.at] === TAG.padding) this.at++;
    return this.from[this.at];
  }

  private uint32(): number {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      if (this.at >= this.from.length || shift > 28) throw new Unknown();
      const byte = this.from[this.at++];
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
  }

  private put(byte: number): void {
    this.out[this.end++] = byte;
  }

  private putUint32(value: number): void {
    let rest = value;
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) this.put((rest % 0x80) | 0x80);
    this.put(rest);
  }

  private copy(bytes: number): void {
    const to = this.at + bytes;
    if (to > this.from.length) throw new Unknown();
    this.out.set(this.from.subarray(this.at, to), this.end);
    this.end += bytes;
    this.at = to;
  }

  private copyUint32(): number {
    const value = this.uint32();
    this.putUint32(value);
    return value;
  }

  private double(): number {
    const value = this.view.getFloat64(this.at, true);
    this.at += 8;
    return value;
  }

  /** A NaN has one form, too. */
  private putDouble(value: number): void {
    this.outView.setFloat64(this.end, Number.isNaN(value) ? Number.NaN : value, true);
    this.end += 8;
  }

  // ---------------------------------------------------------------- values

  private value(): void {
    const tag = this.peekTag();
    this.at++;
    switch (tag) {
      case TAG.int32: {
        const zigzag = this.uint32();
        return this.number(zigzag % 2 === 0 ? zigzag / 2 : -(zigzag + 1) / 2);
      }
      case TAG.uint32:
        return this.number(this.uint32());
      case TAG.double:
        return this.number(this.double());
      case TAG.twoByte:
        return this.twoByteString();
      case TAG.sparse:
        return this.sparseArray();
    }
    this.put(tag);
    switch (tag) {
      case TAG.hole:
      case TAG.undefined:
      case TAG.null:
      case TAG.true:
      case TAG.false:
      case TAG.trueObject:
      case TAG.falseObject:
        return;
      case TAG.date:
      case TAG.numberObject:
        return this.putDouble(this.double());
      case TAG.bigint:
      case TAG.bigintObject:
        // A sign, and the length.
        return this.copy(Math.floor(this.copyUint32() / 2));
      case TAG.utf8:
      case TAG.oneByte:
        return this.copy(this.copyUint32());
      case TAG.reference:
      case TAG.transferred:
        this.copyUint32();
        return;
      case TAG.stringObject:
        return this.value();
      case TAG.regexp:
        this.value();
        this.copyUint32();
        return;
      case TAG.object:
        return this.values(TAG.objectEnd, 1);
      case TAG.map:
        return this.values(TAG.mapEnd, 1);
      case TAG.set:
        return this.values(TAG.setEnd, 1);
      case TAG.dense: {
        const length = this.copyUint32();
        for (let i = 0; i < length; i++) this.value();
        return this.values(TAG.denseEnd, 2);
      }
      case TAG.memory:
        return this.copy(this.copyUint32());
      case TAG.resizableMemory: {
        const bytes = this.copyUint32();
        this.copyUint32();
        return this.copy(bytes);
      }
      case TAG.view:
        return this.endOfView({ uint32: () => this.copyUint32(), skip: (bytes) => this.copy(bytes) });
      case TAG.error:
        return this.error();
      default:
        throw new Unknown();
    }
  }

  /** Values up to the tag that ends them, and the numbers behind it. */
  private values(endTag: number, numbers: number): void {
    while (this.peekTag() !== endTag) this.value();
    this.copy(1);
    for (let i = 0; i < numbers; i++) this.copyUint32();
  }

  /** A whole number is written as an integer, whatever held it. −0 is not a whole number here: an integer would lose its sign. */
  private number(value: number): void {
    if (Number.isInteger(value) && value >= INT32_MIN && value <= INT32_MAX && !Object.is(value, -0)) {
      this.put(TAG.int32);
      this.putUint32(value >= 0 ? 2 * value : -2 * value - 1);
    } else {
      this.put(TAG.double);
      this.putDouble(value);
    }
  }

  /** Characters that all fit into one byte take one. */
  private twoByteString(): void {
    const bytes = this.uint32();
    const from = this.at;
    if (from + bytes > this.from.length) throw new Unknown();
    let isShort = true;
    for (let i = 1; i < bytes && isShort; i += 2) isShort = this.from[from + i] === 0;
    this.put(isShort ? TAG.oneByte : TAG.twoByte);
    this.putUint32(isShort ? bytes / 2 : bytes);
    if (!isShort) return this.copy(bytes);
    for (let i = 0; i < bytes; i += 2) this.put(this.from[from + i]);
    this.at = from + bytes;
  }

  /** An array that has an element at each index is a dense one. */
  private sparseArray(): void {
    const start = this.end;
    this.put(TAG.sparse);
    const length = this.copyUint32();
    const bodyAt = this.end;
    /** Where the elements of the indices 0, 1, 2, … begin and end, as far as these are in order. */
    const elements: [from: number, to: number][] = [];
    let propertiesAt = bodyAt;
    while (this.peekTag() !== TAG.sparseEnd) {
      const isNext = this.isIndex(elements.length) && elements.length < length;
      this.value();
      const from = this.end;
      this.value();
      if (!isNext) continue;
      elements.push([from, this.end]);
      propertiesAt = this.end;
    }
    this.at++;
    const count = this.uint32();
    if (this.uint32() !== length) throw new Unknown();
    if (elements.length < length) {
      this.put(TAG.sparseEnd);
      this.putUint32(count);
      return this.putUint32(length);
    }
    this.out[start] = TAG.dense;
    const bodyEnd = this.end;
    this.end = bodyAt;
    for (const [from, to] of [...elements, [propertiesAt, bodyEnd]]) {
      this.out.copyWithin(this.end, from, to);
      this.end += to - from;
    }
    this.put(TAG.denseEnd);
    this.putUint32(count - length);
    this.putUint32(length);
  }

  /** What comes next is that number, as V8 writes an index. */
  private isIndex(index: number): boolean {
    const { at } = this;
    const tag = this.peekTag();
    this.at++;
    const isSame =
      (tag === TAG.int32 && this.uint32() === 2 * index) ||
      (tag === TAG.uint32 && this.uint32() === index) ||
      (tag === TAG.double && this.double() === index);
    this.at = at;
    return isSame;
  }

  private error(): void {
    for (;;) {
      const tag = this.peekTag();
      this.copy(1);
      if (tag === ERROR_TAG.end) return;
      if (tag === ERROR_TAG.message || tag === ERROR_TAG.cause || tag === ERROR_TAG.stack) this.value();
      else if (!ERROR_CLASSES.has(tag)) throw new Unknown();
    }
  }
}

/**
 * The same value in bytes that follow from it alone.
 *
 * @param bytes What V8's serializer has written, with its header. Not changed, and given back as they are where they hold something that
 *   this code does not know (another version of the format).
 * @param endOfView How the serializer writes views.
 */
export function cloneByValue(bytes: Uint8Array, endOfView: EndOfView = endOfPlainView): Uint8Array {
  try {
    return new Rewriter(bytes, endOfView).run();
  } catch (error) {
    if (error instanceof Unknown || error instanceof RangeError) return bytes;
    throw error;
  }
}
