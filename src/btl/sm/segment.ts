// The layout of the shared segment between two processes: there is one per rail epoch, made by the dialer, gone with its last mapping.
// ring.ts and sm-link.ts say who writes when.
//
//   offset     0  u32 magic, u32 version, u32 ringBytes          written by the dialer before anybody else sees it
//            128  the dialer's words      |  each block is written by its owner alone and read by the other side; blocks are two
//            256  the dialer's sleep word |  cache lines apart, since a core also fetches the line next to the one that it asked for
//            384  the dialer's facts      |
//            512, 640, 768  the same of the acceptor
//           4096  ring from the dialer to the acceptor, then the ring the other way
//
//   words    +0  i32 deliveredCount  records of the other side that were handed up, modulo 2^32
//            +4  i32 aliveMs         alive time of the owner, modulo 2^32
//            +8  f64 receivedBytes   bytes of records that the owner has taken
//   sleep    +0  i32                 1: the owner does not poll, ring by a byte on the socket after publishing. The side that rings clears it.
//   facts    +0  i32 told            1 once the other facts are written
//            +4  i32 canRead         the owner's trial read of the other process: 0 not tried, 1 it works, 2 it does not
//            +8  f64 proofAddress    where the proof is in the owner's private memory
//           +16  16 bytes of proof   random
//           +32  i32 sampleBytes     freshly written bytes at sampleAddress and at the middle of the owner's ring; 0 = none
//           +40  f64 sampleAddress
//           +48  i32 cannotMap       1: the owner could not map exported memory of the other side, which offers no more of it

export const SEGMENT_MAGIC = 0x4d525354;
export const SEGMENT_VERSION = 3;
export const RINGS_AT = 4096;
export const PROOF_BYTES = 16;

const SIDE_BYTES = 384;
const DIALER_AT = 128;
const SLEEP_AT = 128;
const FACTS_AT = 256;

export function segmentBytes(ringBytes: number): number {
  return RINGS_AT + 2 * ringBytes;
}

/** Places of one side's words: indices into the Int32Array, and into the Float64Array, of the whole segment. */
export interface SideWords {
  deliveredCount: number;
  aliveMs: number;
  receivedBytesF64: number;
  sleeping: number;
  told: number;
  canRead: number;
  proofAddressF64: number;
  /** In bytes. */
  proofAt: number;
  sampleBytes: number;
  sampleAddressF64: number;
  cannotMap: number;
  /** Where the ring begins that this side writes, in bytes. */
  ringAt: number;
}

function sideWords(at: number, ringAt: number): SideWords {
  const facts = at + FACTS_AT;
  return {
    deliveredCount: at / 4,
    aliveMs: at / 4 + 1,
    receivedBytesF64: at / 8 + 1,
    sleeping: (at + SLEEP_AT) / 4,
    told: facts / 4,
    canRead: facts / 4 + 1,
    proofAddressF64: facts / 8 + 1,
    proofAt: facts + 16,
    sampleBytes: facts / 4 + 8,
    sampleAddressF64: facts / 8 + 5,
    cannotMap: facts / 4 + 12,
    ringAt,
  };
}

export type Side = 'dialer' | 'acceptor';

/** One mapped segment as one side sees it. */
export class Segment {
  readonly memory: ArrayBuffer;
  readonly ringBytes: number;
  readonly words: Int32Array;
  readonly doubles: Float64Array;
  readonly own: SideWords;
  readonly peer: SideWords;

  constructor(memory: ArrayBuffer, ringBytes: number, side: Side) {
    this.memory = memory;
    this.ringBytes = ringBytes;
    this.words = new Int32Array(memory, 0, RINGS_AT / 4);
    this.doubles = new Float64Array(memory, 0, RINGS_AT / 8);
    const dialer = sideWords(DIALER_AT, RINGS_AT);
    const acceptor = sideWords(DIALER_AT + SIDE_BYTES, RINGS_AT + ringBytes);
    this.own = side === 'dialer' ? dialer : acceptor;
    this.peer = side === 'dialer' ? acceptor : dialer;
  }

  /** The dialer's first act; a fresh segment is all zero otherwise. */
  format(): void {
    this.words[1] = SEGMENT_VERSION;
    this.words[2] = this.ringBytes;
    this.words[0] = SEGMENT_MAGIC;
  }

  /** Why this segment cannot be used; undefined when it can. */
  complaint(): string | undefined {
    const [magic, version, ringBytes] = this.words;
    if (magic !== SEGMENT_MAGIC) return 'the segment does not begin with the magic of a multirail segment';
    if (version !== SEGMENT_VERSION) return `the segment has version ${version}, not ${SEGMENT_VERSION}`;
    if (ringBytes !== this.ringBytes) return `the segment has rings of ${ringBytes} bytes, not ${this.ringBytes}`;
    return undefined;
  }
}
