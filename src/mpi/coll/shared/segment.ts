// The layout of the memory that the members of a communicator on one host share for short collectives. One member makes it (setup.ts), all map
// it, and it is gone with its last mapping. call-memory.ts says who waits for what; here is where it is.
//
//   offset        0  u32 magic, u32 version, u32 members, u32 longBytes, 4 × u32 nonce    by its maker, before anybody else sees it
//   4096 × (1 + m)  one page for member m, written by that member alone, but for `bell`:
//               +0  i32 clear     the lowest number of a call that this member has not finished
//               +4  i32 pid, +8 f64 startTime: which process it is, for those that wait long
//             +128  i32 bell      not 0: somebody who sleeps, or is about to, waits for this member
//             +256  i32 sleeping  0: polls; else 1 + the member that this one waits for, asleep
//            +1024  4 slots for contributions, then 4 for partial results, then 4 for results, of 256 bytes each; call T uses slot T mod 4:
//                   i32 flag      T: what follows is that of call T;  ~T: this member has failed in call T, and the error follows
//                   u32 code      signature of the call, 0 when calls are not checked
//                   u32 bytes     length of what follows
//                   240 bytes     the data, or the error as JSON
//   behind them     2 long slots for each member, used by call T mod 2 for data beyond 240 bytes

export const SEGMENT_MAGIC = 0x4d52434c;
export const SEGMENT_VERSION = 1;
const PAGE = 4096;
const SLOT_BYTES = 256;
const HEAD_BYTES = 16;
/** Data of this length stand in the same lines as the flag. */
export const SHORT_BYTES = SLOT_BYTES - HEAD_BYTES;
export const SLOTS = 4;
/** Up to so many ranks everybody looks at everybody. */
export const FLAT_MAX = 16;
const LONG_SLOTS = 2;
const LINE = 64;
export const NONCE_WORDS = 4;

/** What a slot is for. */
export const CONTRIBUTION = 0;
export const PARTIAL = 1;
export const RESULT = 2;
const FIRST_SLOT = 1024;

const CLEAR = 0;
const PID = 1;
const START_F64 = 1;
const BELL = 128 / 4;
const SLEEPING = 256 / 4;

const longStride = (longBytes: number): number => Math.ceil(longBytes / LINE) * LINE;

export function segmentBytes(members: number, longBytes: number): number {
  return PAGE * (1 + members) + members * LONG_SLOTS * longStride(longBytes);
}

/** One mapped segment, as one of its members sees it. */
export class SharedSegment {
  readonly memory: ArrayBuffer;
  readonly members: number;
  readonly longBytes: number;
  readonly words: Int32Array;
  readonly bytes: Uint8Array;
  private readonly doubles: Float64Array;

  constructor(memory: ArrayBuffer, members: number, longBytes: number) {
    this.memory = memory;
    this.members = members;
    this.longBytes = longBytes;
    this.words = new Int32Array(memory);
    this.bytes = new Uint8Array(memory);
    this.doubles = new Float64Array(memory);
  }

  /** The maker's first act; a fresh segment is all zero, and no call has the number 0. */
  format(nonce: Int32Array): void {
    const { words } = this;
    words[1] = SEGMENT_VERSION;
    words[2] = this.members;
    words[3] = this.longBytes;
    words.set(nonce, 4);
    words[0] = SEGMENT_MAGIC;
  }

  /** It is the one that the maker has told of. */
  isThatOf(nonce: Int32Array): boolean {
    const { words } = this;
    if (words[0] !== SEGMENT_MAGIC || words[1] !== SEGMENT_VERSION || words[2] !== this.members || words[3] !== this.longBytes)
      return false;
    return nonce.every((word, i) => words[4 + i] === word);
  }

  private wordAt(member: number, word: number): number {
    return (PAGE / 4) * (1 + member) + word;
  }

  clearAt(member: number): number {
    return this.wordAt(member, CLEAR);
  }

  bellAt(member: number): number {
    return this.wordAt(member, BELL);
  }

  sleepingAt(member: number): number {
    return this.wordAt(member, SLEEPING);
  }

  /** The word of the flag; those of the code and of the length follow. */
  flagAt(member: number, use: number, call: number): number {
    return this.wordAt(member, (FIRST_SLOT + (use * SLOTS + (call & (SLOTS - 1))) * SLOT_BYTES) / 4);
  }

  /** Where the data of that slot begin, in bytes. */
  dataAt(member: number, use: number, call: number): number {
    return this.flagAt(member, use, call) * 4 + HEAD_BYTES;
  }

  /** Where the long slot of that call begins, in bytes. */
  longAt(member: number, call: number): number {
    return PAGE * (1 + this.members) + (member * LONG_SLOTS + (call & (LONG_SLOTS - 1))) * longStride(this.longBytes);
  }

  introduce(member: number, pid: number, startTime: number): void {
    this.doubles[this.wordAt(member, 0) / 2 + START_F64] = startTime;
    this.words[this.wordAt(member, PID)] = pid;
  }

  processOf(member: number): { pid: number; startTime: number } {
    return { pid: this.words[this.wordAt(member, PID)], startTime: this.doubles[this.wordAt(member, 0) / 2 + START_F64] };
  }
}

const LAST_CALL = 2 ** 31 - 1;

export const callAfter = (call: number): number => (call === LAST_CALL ? 1 : call + 1);

/** Numbers of calls count to 2^31 - 1 and begin again: `a` comes after `b`. */
export const isAfter = (a: number, b: number): boolean => (a - b) << 1 > 0;
