// The auditor of a stream: it checks every received message and says whether any was lost, doubled, reordered or damaged. It trusts nothing
// of the layers below.
import { createHash } from 'node:crypto';
import { crc32c } from '../../src/btl/base/crc32c.ts';
import { RangeSet } from '../../src/util/range-set.ts';
import { decodeHeader, HEADER_BYTES, type MessagePattern } from './message.ts';

/** What one side has counted of a stream. */
export interface StreamTotals {
  messages: number;
  bytes: number;
  /** SHA-256 over index, length and content checksum of every message in order. */
  hash: string;
}

/** Order-dependent hash of a stream, the same on both sides when the same messages went by in the same order. */
export class StreamHash {
  private readonly hash = createHash('sha256');
  private readonly record = new Float64Array(3);
  private messages = 0;
  private bytes = 0;

  add(index: number, bytes: number, payloadCrc: number): void {
    this.record[0] = index;
    this.record[1] = bytes;
    this.record[2] = payloadCrc;
    this.hash.update(this.record);
    this.messages += 1;
    this.bytes += bytes;
  }

  totals(): StreamTotals {
    return { messages: this.messages, bytes: this.bytes, hash: this.hash.copy().digest('hex') };
  }
}

export interface AuditFindings {
  received: StreamTotals;
  /** What the sender says; undefined when it did not report. */
  sent: StreamTotals | undefined;
  lost: number;
  doubled: number;
  reordered: number;
  damaged: number;
  /** Sentences for people, each a reason to fail; empty = all is well. */
  problems: string[];
}

const NAMED_MAX = 5;

/** Messages by number, of which only the first few are kept for the report. */
class Listed {
  count = 0;
  private readonly first: string[] = [];

  add(name: string): void {
    this.count += 1;
    if (this.first.length < NAMED_MAX) this.first.push(name);
  }

  describe(what: string): string[] {
    if (this.count === 0) return [];
    const names = this.first.join(', ') + (this.count > this.first.length ? ', …' : '');
    return [`${this.count} ${this.count === 1 ? 'message' : 'messages'} ${what} (${names})`];
  }
}

export class StreamAudit {
  private readonly pattern: MessagePattern | undefined;
  private readonly hash = new StreamHash();
  private readonly seen = new RangeSet();
  private readonly doubled = new Listed();
  private readonly reordered = new Listed();
  private readonly damaged = new Listed();
  private next = 0;
  private announced: number | undefined;
  private afterEnd = 0;

  /** Without a pattern the headers alone are looked at. */
  constructor(pattern: MessagePattern | undefined) {
    this.pattern = pattern;
  }

  get isEnded(): boolean {
    return this.announced !== undefined;
  }

  /** One received message, in the order of reception. */
  take(message: Uint8Array): void {
    const header = decodeHeader(message);
    if (header === undefined) {
      this.damaged.add(`header of the one after ${this.next - 1}`);
      return;
    }
    if (this.isEnded) this.afterEnd += 1;
    if (header.kind === 'end') {
      this.announced = header.length;
      return;
    }
    const { index } = header;
    const payload = message.subarray(HEADER_BYTES);
    // Not the checksum that the header carries: the one of what has come.
    const payloadCrc = this.pattern === undefined ? 0 : crc32c(payload);
    this.hash.add(index, message.length, payloadCrc);
    if (this.seen.contains(index, index + 1)) this.doubled.add(String(index));
    else {
      this.seen.add(index, index + 1);
      if (index < this.next) this.reordered.add(`${index} after ${this.next - 1}`);
    }
    if (index >= this.next) this.next = index + 1;
    if (!this.isWhole(header.index, header.length, header.payloadCrc, message, payload, payloadCrc)) this.damaged.add(String(index));
  }

  private isWhole(index: number, length: number, sentCrc: number, message: Uint8Array, payload: Uint8Array, payloadCrc: number): boolean {
    if (message.length !== length) return false;
    if (this.pattern === undefined) return true;
    if (sentCrc !== payloadCrc) return false;
    return Buffer.compare(payload, this.pattern.payload(index, payload.length)) === 0;
  }

  /** The verdict, once the stream is over or was given up. */
  finish(sent: StreamTotals | undefined): AuditFindings {
    const received = this.hash.totals();
    const total = sent?.messages ?? this.announced;
    const missing = total === undefined ? [] : this.seen.missing(0, total);
    const lost = missing.reduce((sum, [from, to]) => sum + to - from, 0);
    const problems: string[] = [];
    if (this.announced === undefined) problems.push('the end of the stream did not come');
    if (sent === undefined) problems.push('the sender did not report what it has sent');
    if (lost > 0) {
      const names = missing.slice(0, NAMED_MAX).map(([from, to]) => (to - from === 1 ? `${from}` : `${from}-${to - 1}`));
      problems.push(`${lost} ${lost === 1 ? 'message' : 'messages'} lost (${names.join(', ')}${missing.length > NAMED_MAX ? ', …' : ''})`);
    }
    problems.push(...this.doubled.describe('doubled'), ...this.reordered.describe('reordered'), ...this.damaged.describe('damaged'));
    if (this.afterEnd > 0)
      problems.push(`${this.afterEnd} ${this.afterEnd === 1 ? 'message' : 'messages'} came after the end of the stream`);
    if (received.messages === 0) problems.push('no message was received at all: nothing was shown');
    if (sent !== undefined) {
      if (this.announced !== undefined && this.announced !== sent.messages) {
        problems.push(`the stream announced ${this.announced} messages, the sender reports ${sent.messages}`);
      }
      if (received.messages !== sent.messages) problems.push(`${sent.messages} messages sent, ${received.messages} received`);
      if (received.bytes !== sent.bytes) problems.push(`${sent.bytes} bytes sent, ${received.bytes} received`);
      if (received.hash !== sent.hash) problems.push('the hashes of the two sides differ');
    }
    return {
      received,
      sent,
      lost,
      doubled: this.doubled.count,
      reordered: this.reordered.count,
      damaged: this.damaged.count,
      problems,
    };
  }
}
