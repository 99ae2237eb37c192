// Message buffers as users give them, turned into views of bytes (Iov): nothing is copied.
import { MultirailError } from '../errors.ts';
import { EMPTY_IOV, Iov } from '../util/iov.ts';
import type { ArrayName } from './coll/kernels.ts';
import { checkCount } from './constants.ts';

/** One piece of memory. It must not be resizable, and not be transferred while a call uses it. */
export type BufferPart = NodeJS.ArrayBufferView | ArrayBuffer | SharedArrayBuffer;
/** What can be sent and received into: one piece of memory, a vector, or several of these in order, which are one message. */
export type MessageBuffer = BufferPart | Vector | readonly (BufferPart | Vector)[];

let viewsOf: (part: Vector) => readonly Uint8Array[];
let elementsOf: (part: Vector) => ArrayName | undefined;

/** A strided part of a buffer, made by vector(). */
export class Vector {
  /** Bytes in its blocks together. */
  readonly bytes: number;
  private readonly views: readonly Uint8Array[];
  /** Class of its elements, for reductions; undefined when it is made of bytes. */
  private readonly arrayName: ArrayName | undefined;

  /** @internal */
  constructor(views: readonly Uint8Array[], bytes: number, arrayName?: ArrayName) {
    this.views = views;
    this.bytes = bytes;
    this.arrayName = arrayName;
  }

  static {
    viewsOf = (part) => part.views;
    elementsOf = (part) => part.arrayName;
  }
}

/**
 * A strided part of a buffer, such as a column of a matrix: `vector(matrix, rows, 1, columns)` (MPI-4.1, section 5.1.2). Units are elements
 * for a typed array, bytes for everything else. Nothing is copied.
 *
 * @param buffer The memory that the blocks lie in.
 * @param count Number of blocks.
 * @param blockLength Elements in each block.
 * @param stride Elements from the start of one block to that of the next; blocks do not overlap.
 * @throws ERR_COUNT: a count is negative or no whole number, or the blocks reach beyond the end of the buffer.
 * @throws ERR_ARG: the blocks would overlap.
 * @throws ERR_BUFFER: it is not a buffer, or is detached or resizable.
 */
export function vector(buffer: BufferPart, count: number, blockLength: number, stride: number): Vector {
  checkCount(count, 'count');
  checkCount(blockLength, 'blockLength');
  const whole = bytesOf(buffer, 'buffer');
  const unit = elementBytes(buffer);
  if (!Number.isSafeInteger(stride) || (count > 1 && stride < blockLength)) {
    throw new MultirailError('ERR_ARG', `stride is ${String(stride)}: blocks of ${blockLength} elements would overlap`);
  }
  const bytes = count * blockLength * unit;
  if (bytes === 0) return new Vector([], 0, arrayNameOf(buffer));
  const endBytes = ((count - 1) * stride + blockLength) * unit;
  if (!(endBytes <= whole.byteLength)) {
    throw new MultirailError(
      'ERR_COUNT',
      `count ${count}, blockLength ${blockLength}, stride ${stride} reach to byte ${endBytes} of a buffer of ${whole.byteLength} bytes`,
    );
  }
  if (stride === blockLength || count === 1) return new Vector([whole.subarray(0, bytes)], bytes, arrayNameOf(buffer));
  const views: Uint8Array[] = new Array(count);
  for (let i = 0; i < count; i++) views[i] = whole.subarray(i * stride * unit, (i * stride + blockLength) * unit);
  return new Vector(views, bytes, arrayNameOf(buffer));
}

/** The class itself, from Node 24 on; undefined before. */
export const FLOAT16_ARRAY = (globalThis as { Float16Array?: unknown }).Float16Array;

/** What the engine itself calls the class: that of a subclass is the one that it extends, whatever it says of itself. */
const CLASS_NAME = (Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag) as { get(): string })
  .get;

/** Class of a typed array (a Buffer is a Uint8Array) or of what a vector is cut from; undefined for everything else. */
export function arrayNameOf(buffer: unknown): ArrayName | undefined {
  if (!ArrayBuffer.isView(buffer)) return buffer instanceof Vector ? elementsOf(buffer) : undefined;
  if (buffer instanceof DataView) return undefined;
  return CLASS_NAME.call(buffer) as ArrayName;
}

function elementBytes(buffer: BufferPart): number {
  return (buffer as { BYTES_PER_ELEMENT?: number }).BYTES_PER_ELEMENT ?? 1;
}

const isShared = (memory: ArrayBufferLike): boolean => typeof SharedArrayBuffer !== 'undefined' && memory instanceof SharedArrayBuffer;

function checkMemory(memory: ArrayBufferLike, bytes: number, name: string): void {
  if (isShared(memory)) return;
  // A shrinking buffer would take the memory away from under a transfer; a growable shared one can only grow.
  if ((memory as ArrayBuffer & { resizable?: boolean }).resizable) {
    throw new MultirailError('ERR_BUFFER', `${name} is a resizable ArrayBuffer, which could shrink while a message uses it`);
  }
  if (bytes > 0) return;
  try {
    new Uint8Array(memory);
  } catch (cause) {
    throw new MultirailError('ERR_BUFFER', `${name} is detached: its memory was transferred elsewhere`, { cause });
  }
}

/** The bytes of one piece, as a view of the same memory. */
function bytesOf(part: BufferPart, name: string): Uint8Array {
  if (part instanceof Uint8Array) {
    checkMemory(part.buffer, part.byteLength, name);
    // A view of growable memory may grow with it: the message is what it is now.
    return (part.buffer as { growable?: boolean }).growable === true ? new Uint8Array(part.buffer, part.byteOffset, part.byteLength) : part;
  }
  if (ArrayBuffer.isView(part)) {
    checkMemory(part.buffer, part.byteLength, name);
    return new Uint8Array(part.buffer, part.byteOffset, part.byteLength);
  }
  if (part instanceof ArrayBuffer || isShared(part)) {
    checkMemory(part, part.byteLength, name);
    return new Uint8Array(part as ArrayBuffer, 0, part.byteLength);
  }
  throw new MultirailError(
    'ERR_BUFFER',
    `${name} is ${part === null ? 'null' : typeof part}; expected a typed array, DataView, ArrayBuffer, SharedArrayBuffer, a vector, or an array of these`,
  );
}

/** Longer buffers are looked at each time, which costs nothing compared with sending them, and are not kept alive here. */
const KNOWN_BYTES_MAX = 64 * 1024;

/** Programs send from, and receive into, one short buffer again and again: it is looked at once. */
export class KnownBuffer {
  private bytes = -1;
  private buffer: MessageBuffer | undefined;
  private iov = EMPTY_IOV;

  /** The views of this buffer, if it is the one that was looked at last and has not been detached since. */
  find(buffer: MessageBuffer): Iov | undefined {
    // (While nothing is known, a buffer that is undefined would be found.)
    return buffer === this.buffer && buffer !== undefined && (buffer as Uint8Array).length === this.bytes ? this.iov : undefined;
  }

  keep(buffer: MessageBuffer, iov: Iov): Iov {
    if (buffer instanceof Uint8Array && iov.bytes > 0 && iov.bytes <= KNOWN_BYTES_MAX) {
      this.buffer = buffer;
      this.bytes = iov.bytes;
      this.iov = iov;
    }
    return iov;
  }
}

/** Views of a buffer that is read from. */
export function sendIov(buffer: MessageBuffer, name = 'buffer'): Iov {
  if (buffer instanceof Vector) return buffer.bytes === 0 ? EMPTY_IOV : new Iov(viewsOf(buffer));
  if (!Array.isArray(buffer)) {
    const bytes = bytesOf(buffer as BufferPart, name);
    return bytes.byteLength === 0 ? EMPTY_IOV : new Iov([bytes]);
  }
  const views: Uint8Array[] = [];
  buffer.forEach((part, i) => {
    if (part instanceof Vector) for (const view of viewsOf(part)) views.push(view);
    else {
      const bytes = bytesOf(part, `${name}[${i}]`);
      if (bytes.byteLength > 0) views.push(bytes);
    }
  });
  return views.length === 0 ? EMPTY_IOV : new Iov(views);
}

/** Views of a buffer that is written into: no two may overlap. */
export function recvIov(buffer: MessageBuffer, name = 'buffer'): Iov {
  const iov = sendIov(buffer, name);
  if (Array.isArray(buffer) && iov.views.length > 1) checkOverlap(iov.views, name);
  return iov;
}

function checkOverlap(views: readonly Uint8Array[], name: string): void {
  const byMemory = new Map<ArrayBufferLike, Uint8Array[]>();
  for (const view of views) {
    const list = byMemory.get(view.buffer);
    if (list === undefined) byMemory.set(view.buffer, [view]);
    else list.push(view);
  }
  for (const list of byMemory.values()) {
    list.sort((a, b) => a.byteOffset - b.byteOffset);
    for (let i = 1; i < list.length; i++) {
      if (list[i].byteOffset < list[i - 1].byteOffset + list[i - 1].byteLength) {
        throw new MultirailError('ERR_BUFFER', `parts of ${name} overlap at byte ${list[i].byteOffset} of their memory`);
      }
    }
  }
}

/** Memory for a message that is there; a length that no process can hold ends in ERR_BUFFER, not in a RangeError. */
export function allocate(bytes: number): Uint8Array<ArrayBuffer> {
  try {
    return new Uint8Array(bytes);
  } catch (cause) {
    throw new MultirailError('ERR_BUFFER', `there is no memory for a message of ${bytes} bytes`, { cause });
  }
}
