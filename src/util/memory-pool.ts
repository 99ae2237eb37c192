// Memory for short-lived copies: pieces of a power of two, used again instead of allocated (and zeroed) each time.

const PIECE_BYTES_MIN = 256;
/** Longer pieces are allocated for one use, unless told otherwise. */
const PIECE_BYTES_MAX = 256 * 1024;

/** Hands out memory; at most `freeBytesMax` bytes are kept for the next use, in pieces of at most `pieceBytesMax` (below 2 GiB). */
export class MemoryPool {
  private readonly freeBytesMax: number;
  private readonly pieceBytesMax: number;
  private readonly free: Uint8Array[][] = [];
  private freeBytes = 0;

  constructor(freeBytesMax: number, pieceBytesMax = PIECE_BYTES_MAX) {
    this.freeBytesMax = freeBytesMax;
    this.pieceBytesMax = pieceBytesMax;
  }

  /** At least `bytes` bytes, with whatever they held before. */
  take(bytes: number): Uint8Array {
    if (bytes > this.pieceBytesMax) return new Uint8Array(bytes);
    const pieceClass = bytes <= PIECE_BYTES_MIN ? 8 : 32 - Math.clz32(bytes - 1);
    const piece = this.free[pieceClass]?.pop();
    if (piece === undefined) return new Uint8Array(2 ** pieceClass);
    this.freeBytes -= piece.length;
    return piece;
  }

  /** Takes back what take() gave: nobody else may use it any more. */
  give(piece: Uint8Array): void {
    const { length } = piece;
    if (length > this.pieceBytesMax || this.freeBytes + length > this.freeBytesMax) return;
    const pieceClass = 31 - Math.clz32(length);
    while (this.free.length <= pieceClass) this.free.push([]);
    this.free[pieceClass].push(piece);
    this.freeBytes += length;
  }
}
