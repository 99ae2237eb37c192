// Memory that other processes of this host map and read: no copy through a ring, and no call of the kernel for what is read. A process makes
// pieces of it, each a memfd of its own, and tells in the key of a window where the window lies; the reader opens the piece through /proc, once,
// and keeps it mapped for as long as the rail epoch lives.
import { readlinkSync } from 'node:fs';
import type { NativeBinding } from '../../native/binding.ts';
import { descriptorPath, mapMemoryOf } from '../../native/memory-of.ts';

/** One descriptor each: a process that wants more memory than that takes its own. */
const PIECES_MAX = 512;
const NAME = 'multirail-memory';
/** u32 pid, u32 descriptor (never 0, which is where a key of windowKey() has its zero), f64 number and f64 length of the piece, f64 offset and f64 length of the window. */
const KEY_BYTES = 40;

type MemoryBinding = Pick<NativeBinding, 'memoryCreate' | 'memoryMap' | 'memoryUnmap' | 'close'>;

interface Piece {
  /** Grows with each piece of a process: descriptors are used again. */
  readonly number: number;
  readonly fd: number;
  readonly bytes: number;
}

/** What this process has made. */
export class ExportedMemory {
  private readonly native: MemoryBinding;
  private readonly pieces = new Map<ArrayBufferLike, Piece>();
  private count = 0;

  constructor(native: MemoryBinding) {
    this.native = native;
  }

  /** Makes a piece of that length; undefined where that is not possible, and the caller takes ordinary memory. */
  make(bytes: number): Uint8Array | undefined {
    const { native, pieces } = this;
    if (pieces.size >= PIECES_MAX) return undefined;
    const number = ++this.count;
    let fd = -1;
    try {
      fd = native.memoryCreate(`${NAME}-${number}`, bytes);
      const memory = native.memoryMap(fd, bytes);
      pieces.set(memory, { number, fd, bytes });
      return new Uint8Array(memory);
    } catch {
      // The kernel has no memory or descriptor for it.
      if (fd >= 0) native.close(fd);
      return undefined;
    }
  }

  /** Nobody reads or writes that piece any more; whoever has it mapped keeps it until the end of its rail. */
  drop(memory: Uint8Array): void {
    const piece = this.pieces.get(memory.buffer);
    if (piece === undefined) return;
    this.pieces.delete(memory.buffer);
    this.native.close(piece.fd);
    this.native.memoryUnmap(memory.buffer as ArrayBuffer);
  }

  /** The key of a window that lies in one of the pieces; undefined: it is other memory. */
  keyOf(memory: Uint8Array): Uint8Array | undefined {
    const piece = this.pieces.get(memory.buffer);
    if (piece === undefined) return undefined;
    const key = new Uint8Array(KEY_BYTES);
    const view = new DataView(key.buffer);
    view.setUint32(0, process.pid, true);
    view.setUint32(4, piece.fd, true);
    view.setFloat64(8, piece.number, true);
    view.setFloat64(16, piece.bytes, true);
    view.setFloat64(24, memory.byteOffset, true);
    view.setFloat64(32, memory.length, true);
    return key;
  }

  /** Nobody opens one any more. Their memory goes with the last who refers to it. */
  close(): void {
    for (const { fd } of this.pieces.values()) this.native.close(fd);
    this.pieces.clear();
  }
}

/** Where that range of a window lies in a piece of the peer. */
export interface Place {
  readonly fd: number;
  readonly number: number;
  readonly pieceBytes: number;
  /** In the piece. */
  readonly offset: number;
}

const isLength = (value: number): boolean => Number.isSafeInteger(value) && value >= 0;

/** Undefined when the key is not one of a piece of that process, or the range lies outside of the window, or the window outside of the piece. */
export function placeIn(key: Uint8Array, pid: number, offset: number, bytes: number): Place | undefined {
  if (key.length !== KEY_BYTES) return undefined;
  const view = new DataView(key.buffer, key.byteOffset, KEY_BYTES);
  const fd = view.getUint32(4, true);
  const number = view.getFloat64(8, true);
  const pieceBytes = view.getFloat64(16, true);
  const windowAt = view.getFloat64(24, true);
  const windowBytes = view.getFloat64(32, true);
  if (view.getUint32(0, true) !== pid || fd > 0x7fff_ffff) return undefined;
  if (!isLength(number) || !isLength(pieceBytes) || !isLength(windowAt) || !isLength(windowBytes)) return undefined;
  if (!(offset >= 0) || !(bytes >= 0) || offset + bytes > windowBytes || windowAt + windowBytes > pieceBytes) return undefined;
  return { fd, number, pieceBytes, offset: windowAt + offset };
}

/** Pieces of one peer that are mapped here, for one rail epoch. */
export class AttachedMemory {
  private readonly native: MemoryBinding;
  private readonly pid: number;
  /** By number, in the order of their last use. */
  private readonly pieces = new Map<number, ArrayBuffer>();

  constructor(native: MemoryBinding, pid: number) {
    this.native = native;
    this.pid = pid;
  }

  /** That piece, mapped; undefined: it cannot be. */
  at({ fd, number, pieceBytes }: Place): ArrayBuffer | undefined {
    const { pieces } = this;
    const known = pieces.get(number);
    if (known !== undefined) {
      if (known.byteLength < pieceBytes) return undefined;
      pieces.delete(number);
      pieces.set(number, known);
      return known;
    }
    const memory = this.open(fd, number, pieceBytes);
    if (memory === undefined) return undefined;
    // Those of the peer that are gone are the ones that were not used for longest.
    if (pieces.size >= PIECES_MAX) this.detach(pieces.keys().next().value as number);
    pieces.set(number, memory);
    return memory;
  }

  private open(fd: number, number: number, bytes: number): ArrayBuffer | undefined {
    const { native, pid } = this;
    try {
      // Nothing else is opened: whatever the peer says, it is a piece of that name.
      if (!readlinkSync(descriptorPath(pid, fd)).startsWith(`/memfd:${NAME}-${number} `)) return undefined;
      return mapMemoryOf(native, pid, fd, bytes);
    } catch {
      return undefined;
    }
  }

  private detach(number: number): void {
    const memory = this.pieces.get(number) as ArrayBuffer;
    this.pieces.delete(number);
    this.native.memoryUnmap(memory);
  }

  close(): void {
    for (const number of [...this.pieces.keys()]) this.detach(number);
  }
}
