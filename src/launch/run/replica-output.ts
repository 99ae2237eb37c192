// The standard output of a rank of two processes: that of its lead, and, where the shadow takes the lead's place, what the shadow writes from where
// the output of the lead has come to its end. Both write the same, so far as the program does not ask for the time.
import { PassThrough, type Readable } from 'node:stream';

/** What a shadow has written and its lead has not: no more is kept. */
export const KEPT_BYTES_MAX = 16 * 1024 * 1024;

export class ReplicaOutput {
  /** What the rank has written. */
  readonly out = new PassThrough();
  private readonly say: (text: string) => void;
  private leadBytes = 0;
  private isLeadOver = false;
  private shadowBytes = 0;
  private isShadowOver = false;
  /** The newest of what the shadow has written, as far as its lead has not. */
  private kept: Buffer[] = [];
  private keptBytes = 0;
  private hasTakenOver = false;
  /** What the shadow writes is the output of the rank. */
  private isOpen = false;

  constructor(say: (text: string) => void) {
    this.say = say;
  }

  addLead(source: Readable): void {
    source.on('data', (chunk: Buffer) => {
      this.leadBytes += chunk.length;
      this.trim();
      this.write(chunk, source);
    });
    source.once('close', () => {
      this.isLeadOver = true;
      this.look();
    });
  }

  addShadow(source: Readable): void {
    source.on('data', (chunk: Buffer) => {
      this.shadowBytes += chunk.length;
      if (this.isOpen) return this.write(this.behindLead(chunk), source);
      this.kept.push(chunk);
      this.keptBytes += chunk.length;
      this.trim();
    });
    source.once('close', () => {
      this.isShadowOver = true;
      this.look();
    });
  }

  /** The lead has died, and its shadow goes on. */
  takeOver(): void {
    this.hasTakenOver = true;
    this.look();
  }

  private look(): void {
    if (this.hasTakenOver && this.isLeadOver && !this.isOpen) this.open();
    if (this.isLeadOver && this.isShadowOver) this.out.end();
  }

  private open(): void {
    this.isOpen = true;
    const lostBytes = this.shadowBytes - this.keptBytes - this.leadBytes;
    if (lostBytes > 0) this.say(`${lostBytes} bytes of output of a shadow that was far ahead of its lead were not kept`);
    for (const chunk of this.kept.splice(0)) this.write(chunk, undefined);
    this.keptBytes = 0;
  }

  /** The part of the newest chunk that the lead has not written. */
  private behindLead(chunk: Buffer): Buffer {
    const had = this.leadBytes - (this.shadowBytes - chunk.length);
    return had <= 0 ? chunk : chunk.subarray(Math.min(had, chunk.length));
  }

  /** What the lead has written is dropped of what is kept, and the oldest of it where it is too much. */
  private trim(): void {
    while (this.kept.length > 0) {
      const from = this.shadowBytes - this.keptBytes;
      const [first] = this.kept;
      const had = Math.max(this.leadBytes - from, this.keptBytes - KEPT_BYTES_MAX);
      if (had <= 0) return;
      if (had < first.length) {
        this.kept[0] = first.subarray(had);
        this.keptBytes -= had;
        return;
      }
      this.kept.shift();
      this.keptBytes -= first.length;
    }
  }

  private write(chunk: Buffer, source: Readable | undefined): void {
    if (chunk.length === 0 || this.out.write(chunk) || source === undefined) return;
    source.pause();
    this.out.once('drain', () => source.resume());
  }
}
