// What the log knows of its messages, as words in pieces of memory: eight for each message, and no object. A piece is used again when all of
// its messages are trimmed. Pure.

/** Words of an entry, and where in it each stands. */
const ENTRY_WORDS = 8;
export const ENTRY = { ctx: 0, tag: 1, seq: 2, signature: 3, bytes: 4, offset: 5, slab: 6, sync: 7 } as const;
/** What a message costs besides its bytes. */
export const ENTRY_BYTES = ENTRY_WORDS * 4;

/** Entries of a piece: few, since each destination has one at least. */
export const PIECE_ENTRIES = 64;
export const PIECE_BYTES = PIECE_ENTRIES * ENTRY_BYTES;
const PIECE_WORDS = PIECE_ENTRIES * ENTRY_WORDS;

/** Pieces for the entries of all destinations. */
export class EntryPieces {
  /** Memory of all pieces, and of those among them that nobody uses. */
  bytes = 0;
  private readonly free: Int32Array[] = [];

  get freeBytes(): number {
    return this.free.length * PIECE_BYTES;
  }

  /** A piece, with whatever it held before. */
  take(): Int32Array {
    const piece = this.free.pop();
    if (piece !== undefined) return piece;
    this.bytes += PIECE_BYTES;
    return new Int32Array(PIECE_WORDS);
  }

  give(piece: Int32Array): void {
    this.free.push(piece);
  }

  /** Of what nobody uses, so many bytes go if there are as many. Returns how many did. */
  drop(bytes: number): number {
    const count = Math.min(this.free.length, Math.ceil(bytes / PIECE_BYTES));
    this.free.length -= count;
    this.bytes -= count * PIECE_BYTES;
    return count * PIECE_BYTES;
  }
}

/** The entries of one destination, oldest first. Each has a place, counted from its first entry ever. */
export class Entries {
  private readonly pieces: Int32Array[] = [];
  /** Place of the first entry of the first piece. */
  private base = 0;
  /** Of the newest piece: where the next entry is written. */
  private newest: Int32Array | undefined;
  private at = PIECE_WORDS;
  /** Places of the oldest entry, and behind the newest one. */
  first = 0;
  end = 0;

  /** The next entry needs another piece. */
  get isFull(): boolean {
    return this.at === PIECE_WORDS;
  }

  /** Pieces that it has. */
  get pieceCount(): number {
    return this.pieces.length;
  }

  addPiece(piece: Int32Array): void {
    this.pieces.push(piece);
    this.newest = piece;
    this.at = 0;
  }

  /** It is not full. */
  push(ctx: number, tag: number, seq: number, signature: number, bytes: number, offset: number, slab: number, sync: boolean): void {
    const words = this.newest as Int32Array;
    const { at } = this;
    words[at] = ctx;
    words[at + 1] = tag;
    words[at + 2] = seq;
    words[at + 3] = signature;
    words[at + 4] = bytes;
    words[at + 5] = offset;
    words[at + 6] = slab;
    words[at + 7] = sync ? 1 : 0;
    this.at = at + ENTRY_WORDS;
    this.end++;
  }

  /** A word of the entry at that place, as a signed number. */
  word(place: number, field: number): number {
    const number = place - this.base;
    return this.pieces[Math.floor(number / PIECE_ENTRIES)][(number % PIECE_ENTRIES) * ENTRY_WORDS + field];
  }

  set(place: number, field: number, value: number): void {
    const number = place - this.base;
    this.pieces[Math.floor(number / PIECE_ENTRIES)][(number % PIECE_ENTRIES) * ENTRY_WORDS + field] = value;
  }

  /** What is before that place goes. */
  trim(place: number, memory: EntryPieces): void {
    this.first = place;
    const isEmpty = place === this.end;
    const whole = isEmpty ? this.pieces.length : Math.floor((place - this.base) / PIECE_ENTRIES);
    for (const piece of this.pieces.splice(0, whole)) memory.give(piece);
    this.base += whole * PIECE_ENTRIES;
    if (!isEmpty) return;
    this.base = place;
    this.newest = undefined;
    this.at = PIECE_WORDS;
  }
}
