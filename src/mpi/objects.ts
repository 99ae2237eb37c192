// sendObject and recvObject on the wire: a header message (structured clone by v8, with the tag of the user), and the memory of large
// buffers as one more message after it, gathered from where it is and scattered into buffers of their own.
//
//   header   "MRO1"  place u32  regions u32  zero u32  region lengths f64 × regions  v8 data
//
// `place` is the tag of the second message in the communicator's internal context. A view travels as its own bytes, as with
// v8.serialize: what else its ArrayBuffer holds stays here. Two views of the same bytes are views of the same memory over there.
import { DefaultDeserializer, DefaultSerializer } from 'node:v8';
import { MultirailError } from '../errors.ts';
import { cloneByValue, type EndOfView } from '../util/clone-by-value.ts';
import { FLOAT16_ARRAY } from './buffers.ts';
import type { Status } from './status.ts';

/** Buffers from this size on travel apart from the header. */
export const OUT_OF_BAND_BYTES_MIN = 64 * 1024;
/** Tags of the internal context that belong to objects: its upper half. */
export const PLACE_TAG_FIRST = 2 ** 30;
export const PLACE_TAGS = 2 ** 30;

const MAGIC = 0x314f524d; // "MRO1"
const HEADER_FIXED_BYTES = 16;

/** By number on the wire. */
const VIEW_CLASSES: readonly (new (memory: ArrayBuffer, offset: number, length: number) => NodeJS.ArrayBufferView)[] = [
  Int8Array,
  Uint8Array,
  Uint8ClampedArray,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  Float32Array,
  Float64Array,
  DataView,
  BigInt64Array,
  BigUint64Array,
  Buffer as unknown as Uint8ArrayConstructor,
  ...(FLOAT16_ARRAY === undefined ? [] : [FLOAT16_ARRAY as Float32ArrayConstructor]),
];
const FLOAT16_CLASS = 13;

interface Region {
  memory: ArrayBufferLike;
  offset: number;
  bytes: number;
}

class ObjectSerializer extends DefaultSerializer {
  readonly regions: Region[] = [];
  private readonly regionOf = new Map<ArrayBufferLike, Map<string, number>>();

  region(memory: ArrayBufferLike, offset: number, bytes: number): number {
    let bySpan = this.regionOf.get(memory);
    if (bySpan === undefined) {
      bySpan = new Map();
      this.regionOf.set(memory, bySpan);
    }
    const span = `${offset}+${bytes}`;
    let index = bySpan.get(span);
    if (index === undefined) {
      index = this.regions.push({ memory, offset, bytes }) - 1;
      bySpan.set(span, index);
    }
    return index;
  }

  /** Called by v8 for every view. */
  _writeHostObject(view: NodeJS.ArrayBufferView): void {
    // Subclasses other than Buffer arrive as the class that they extend, as with structuredClone.
    const kind = Buffer.isBuffer(view)
      ? VIEW_CLASSES.indexOf(Buffer)
      : VIEW_CLASSES.findIndex((type) => type !== Buffer && view instanceof type);
    if (kind < 0) throw new MultirailError('ERR_ARG', `a ${view.constructor.name} cannot be sent`);
    this.writeUint32(kind);
    this.writeUint32(view.byteLength >= OUT_OF_BAND_BYTES_MIN ? 1 : 0);
    if (view.byteLength >= OUT_OF_BAND_BYTES_MIN) {
      this.writeUint32(this.region(view.buffer, view.byteOffset, view.byteLength));
    } else {
      this.writeUint32(view.byteLength);
      this.writeRawBytes(new Uint8Array(view.buffer, view.byteOffset, view.byteLength));
    }
  }
}

/** What _writeHostObject() has written. */
const endOfView: EndOfView = (read) => {
  read.uint32();
  const isOutOfBand = read.uint32() === 1;
  const number = read.uint32();
  if (!isOutOfBand) read.skip(number);
};

class ObjectDeserializer extends DefaultDeserializer {
  private readonly memory: readonly Uint8Array<ArrayBuffer>[];

  constructor(data: Uint8Array, memory: readonly Uint8Array<ArrayBuffer>[]) {
    super(Buffer.from(data.buffer, data.byteOffset, data.byteLength));
    this.memory = memory;
  }

  /** Called by v8 for every view. */
  _readHostObject(): NodeJS.ArrayBufferView {
    const kind = this.readUint32();
    const type = VIEW_CLASSES[kind];
    const outOfBand = this.readUint32() === 1;
    const number = this.readUint32();
    // Short ones are copied, so that the whole header is not kept alive by one of them.
    const bytes = outOfBand ? this.memory[number] : Uint8Array.from(this.readRawBytes(number));
    if (type === undefined && kind === FLOAT16_CLASS)
      throw new MultirailError('ERR_SUPPORT', 'the value holds a Float16Array, which this Node does not have: it takes Node 24');
    if (type === undefined || bytes === undefined) throw new Error('damaged data');
    if (type === Buffer) return Buffer.from(bytes.buffer, 0, bytes.byteLength);
    const unit = (type as { BYTES_PER_ELEMENT?: number }).BYTES_PER_ELEMENT ?? 1;
    return new (type as Uint8ArrayConstructor)(bytes.buffer, 0, bytes.byteLength / unit);
  }
}

/** ArrayBuffers that are too large to be copied and that the value refers to without a view. */
function findLargeMemory(value: unknown): Set<ArrayBuffer> {
  const found = new Set<ArrayBuffer>();
  const seen = new Set<object>();
  const stack: unknown[] = [value];
  while (stack.length > 0) {
    const next = stack.pop();
    if (typeof next !== 'object' || next === null || seen.has(next)) continue;
    seen.add(next);
    if (next instanceof ArrayBuffer) {
      if (next.byteLength >= OUT_OF_BAND_BYTES_MIN) found.add(next);
    } else if (next instanceof Map) {
      for (const [key, item] of next) stack.push(key, item);
    } else if (next instanceof Set) {
      for (const item of next) stack.push(item);
    } else if (Array.isArray(next)) {
      for (const item of next) if (typeof item === 'object') stack.push(item);
    } else if (!ArrayBuffer.isView(next)) {
      // Getters are left to v8, which calls each once.
      for (const property of Object.values(Object.getOwnPropertyDescriptors(next)))
        if (typeof property.value === 'object') stack.push(property.value);
    }
  }
  return found;
}

export interface EncodedObject {
  header: Uint8Array;
  /** The memory that travels apart from it, in the order of the regions. */
  bulk: Uint8Array[];
}

/**
 * A value as messages.
 *
 * @param isByValue The bytes follow from the value alone, as is needed where they are compared with those of another process.
 */
export function encodeObject(value: unknown, place: number, isByValue: boolean): EncodedObject {
  const serializer = new ObjectSerializer();
  let data: Uint8Array;
  try {
    for (const memory of findLargeMemory(value)) {
      serializer.transferArrayBuffer(serializer.region(memory, 0, memory.byteLength), memory);
    }
    serializer.writeHeader();
    serializer.writeValue(value);
    data = serializer.releaseBuffer();
    if (isByValue) data = cloneByValue(data, endOfView);
  } catch (cause) {
    if (cause instanceof MultirailError) throw cause;
    throw new MultirailError('ERR_ARG', `the value cannot be sent: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
  const { regions } = serializer;
  const dataAt = HEADER_FIXED_BYTES + 8 * regions.length;
  const header = new Uint8Array(dataAt + data.byteLength);
  const view = new DataView(header.buffer);
  view.setUint32(0, MAGIC, true);
  view.setUint32(4, place, true);
  view.setUint32(8, regions.length, true);
  for (const [i, { bytes }] of regions.entries()) view.setFloat64(HEADER_FIXED_BYTES + 8 * i, bytes, true);
  header.set(data, dataAt);
  return { header, bulk: regions.map(({ memory, offset, bytes }) => new Uint8Array(memory, offset, bytes)) };
}

export interface ObjectHeader {
  place: number;
  regionBytes: number[];
  data: Uint8Array;
  status: Status;
}

export function decodeHeader(bytes: Uint8Array, status: Status): ObjectHeader {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const isObject = bytes.byteLength >= HEADER_FIXED_BYTES && view.getUint32(0, true) === MAGIC;
  const place = isObject ? view.getUint32(4, true) : 0;
  const count = isObject ? view.getUint32(8, true) : 0;
  const dataAt = HEADER_FIXED_BYTES + 8 * count;
  if (!isObject || place < PLACE_TAG_FIRST || dataAt > bytes.byteLength) throw notAnObject(status);
  const regionBytes = Array.from({ length: count }, (_, i) => view.getFloat64(HEADER_FIXED_BYTES + 8 * i, true));
  if (regionBytes.some((length) => !Number.isSafeInteger(length) || length < OUT_OF_BAND_BYTES_MIN)) throw notAnObject(status);
  return { place, regionBytes, data: bytes.subarray(dataAt), status };
}

export function decodeObject(header: ObjectHeader, memory: readonly Uint8Array<ArrayBuffer>[]): unknown {
  try {
    const deserializer = new ObjectDeserializer(header.data, memory);
    deserializer.readHeader();
    for (const [i, bytes] of memory.entries()) deserializer.transferArrayBuffer(i, bytes.buffer);
    return deserializer.readValue();
  } catch (cause) {
    if (cause instanceof MultirailError) throw cause;
    throw notAnObject(header.status, cause);
  }
}

function notAnObject({ source, tag }: Status, cause?: unknown): MultirailError {
  return new MultirailError('ERR_ARG', `the message of rank ${source} with tag ${tag} was not sent by sendObject()`, { tag, cause });
}
