// What a rank of the soak knows of every message: what it must hold, and how many there were. Each has a number among those of its
// sender, receiver, tag and communicator; sender and receiver count on their own, so that one lost, doubled or overtaken is named.
// Imports the seeded generator.
import { Prng } from '../../src/util/prng.ts';

/** Number, tag, sender and receiver, round, communicator: as many of these bytes as there is room for, then a slice of the pattern. */
export const HEAD_BYTES = 20;
export const MESSAGE_BYTES_MAX = 4 << 20;
/** The first slices start at so many places. */
const SLICES = 65_521;
const FILLER = 0xee;

export interface MessageName {
  /** Number among those with the same sender, receiver, tag and communicator. */
  number: number;
  source: number;
  dest: number;
  tag: number;
  round: number;
  comm: number;
}

/** The audit has found something: nothing else may be trusted any more. */
export class AuditError extends Error {}

export class Payloads {
  private readonly pattern: Buffer;
  private readonly head = Buffer.alloc(HEAD_BYTES);

  constructor(seed: number) {
    this.pattern = Buffer.alloc(MESSAGE_BYTES_MAX + SLICES);
    const prng = new Prng(`${seed}/pattern`);
    const words = new Uint32Array(this.pattern.buffer, this.pattern.byteOffset, this.pattern.length >> 2);
    for (let i = 0; i < words.length; i++) words[i] = prng.nextU32();
  }

  private headOf({ number, source, dest, tag, round, comm }: MessageName): Buffer {
    const { head } = this;
    head.writeUInt32LE(number, 0);
    head.writeUInt32LE(tag, 4);
    head.writeUInt16LE(source, 8);
    head.writeUInt16LE(dest, 10);
    head.writeUInt32LE(round, 12);
    head.writeUInt32LE(comm, 16);
    return head;
  }

  private slice(head: Buffer, bytes: number): Buffer {
    let at = 0;
    for (let i = 0; i < HEAD_BYTES; i += 4) at = (Math.imul(at ^ head.readUInt32LE(i), 0x85eb_ca6b) ^ (at >>> 15)) >>> 0;
    return this.pattern.subarray(at % SLICES, (at % SLICES) + bytes);
  }

  write(into: Buffer, name: MessageName): void {
    const head = this.headOf(name);
    head.copy(into);
    if (into.length > HEAD_BYTES) this.slice(head, into.length - HEAD_BYTES).copy(into, HEAD_BYTES);
  }

  /** What is wrong with that message, if anything is. */
  fault(found: Buffer, name: MessageName): string | undefined {
    const head = this.headOf(name);
    const headBytes = Math.min(found.length, HEAD_BYTES);
    const isHeadRight = found.compare(head, 0, headBytes, 0, headBytes) === 0;
    const isRestRight = found.length <= HEAD_BYTES || this.slice(head, found.length - HEAD_BYTES).equals(found.subarray(HEAD_BYTES));
    if (isHeadRight && isRestRight) return undefined;
    const due = `message ${name.number} of ${name.source} to ${name.dest}, tag ${name.tag}, communicator ${name.comm}, ${found.length} bytes`;
    if (isHeadRight || found.length < HEAD_BYTES) return `${due}: its bytes are not those that were sent`;
    const came =
      `number ${found.readUInt32LE(0)}, tag ${found.readUInt32LE(4)}, of ${found.readUInt16LE(8)} to ${found.readUInt16LE(10)}, ` +
      `round ${found.readUInt32LE(12)}, communicator ${found.readUInt32LE(16)}`;
    return `${due}: in its place came ${came}`;
  }
}

/** Counts of one communicator at one rank. */
export class Ledger {
  readonly size: number;
  readonly tags: number;
  /** [peer * tags + tag]. */
  readonly sent: Int32Array;
  readonly received: Int32Array;

  constructor(size: number, tags: number) {
    this.size = size;
    this.tags = tags;
    this.sent = new Int32Array(size * tags);
    this.received = new Int32Array(size * tags);
  }

  /** The number of the next message to that rank. */
  nextSent(dest: number, tag: number): number {
    return this.sent[dest * this.tags + tag]++;
  }

  nextReceived(source: number, tag: number): number {
    return this.received[source * this.tags + tag]++;
  }

  /** `sentHere`: what each rank says that it has sent to this one, [source * tags + tag]. Throws when this rank has not received it all. */
  settle(rank: number, sentHere: Int32Array): void {
    for (let source = 0; source < this.size; source++) {
      for (let tag = 0; tag < this.tags; tag++) {
        const sent = sentHere[source * this.tags + tag];
        const received = this.received[source * this.tags + tag];
        if (sent !== received) {
          throw new AuditError(`rank ${source} has sent ${sent} messages with tag ${tag} to rank ${rank}, which has received ${received}`);
        }
      }
    }
  }
}

/** Memory for the messages of a round, used again in the next: what is left of an older message is no valid content. */
export class Arena {
  private readonly memory: Buffer;
  private used = 0;

  constructor(bytes: number) {
    this.memory = Buffer.alloc(bytes, FILLER);
  }

  reset(): void {
    this.used = 0;
  }

  take(bytes: number): Buffer {
    const end = this.used + bytes;
    if (end > this.memory.length) return Buffer.alloc(bytes, FILLER);
    const taken = this.memory.subarray(this.used, end).fill(FILLER);
    // Each begins on a cache line of its own.
    this.used = (end + 63) & ~63;
    return taken;
  }
}
