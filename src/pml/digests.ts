// Digests of what came from one peer on one context since the last committed save, by number: words in one piece of memory, since each message
// that is received has one.
import { serialAdd, serialDiff } from '../util/serial.ts';
import type { Digest } from './channel.ts';

/** Digests kept of one peer. Of what comes beyond them nothing is compared. */
export const DIGESTS_MAX = 65_536;

/** Length, low and high part, and checksum. The high part is one more than it is: 0 is a number without a digest. */
const WORDS = 3;
const NUMBERS_MIN = 64;
const TWO_32 = 2 ** 32;

export class DigestTable {
  private words = new Uint32Array(0);
  /** The lowest number that there is room for, and so many of them there are up to the highest one that has a digest. */
  private base = 0;
  private span = 0;
  /** Numbers that have a digest. */
  size = 0;

  /** Undefined where it is too far from the others; else whether that number had none before. */
  set(seq: number, bytes: number, crc: number): boolean | undefined {
    if (this.span === 0) this.base = seq;
    let at = serialDiff(seq, this.base);
    if (at < 0) {
      if (this.span - at > DIGESTS_MAX) return undefined;
      this.beginAt(seq, -at);
      at = 0;
    } else if (at >= DIGESTS_MAX) return undefined;
    if (at >= this.span) {
      if ((at + 1) * WORDS > this.words.length) this.grow(at + 1);
      this.span = at + 1;
    }
    const { words } = this;
    const word = at * WORDS;
    const isNew = words[word + 1] === 0;
    words[word] = bytes;
    words[word + 1] = bytes < TWO_32 ? 1 : 1 + Math.floor(bytes / TWO_32);
    words[word + 2] = crc;
    if (isNew) this.size++;
    return isNew;
  }

  /** Words behind the span are 0. */
  private grow(numbers: number): void {
    const old = this.words;
    this.words = new Uint32Array(Math.max(NUMBERS_MIN, 2 ** Math.ceil(Math.log2(numbers))) * WORDS);
    this.words.set(old.subarray(0, this.span * WORDS));
  }

  /** A number that is so much lower comes after all: a message that took its time. */
  private beginAt(seq: number, lower: number): void {
    const before = this.span * WORDS;
    const shift = lower * WORDS;
    if (before + shift > this.words.length) this.grow(this.span + lower);
    this.words.copyWithin(shift, 0, before);
    this.words.fill(0, 0, shift);
    this.base = seq;
    this.span += lower;
  }

  /** Those below that number go. Where none has come since the last time, the memory does. */
  trim(seq: number): void {
    if (this.span === 0) {
      this.words = new Uint32Array(0);
      return;
    }
    const gone = Math.min(this.span, serialDiff(seq, this.base));
    if (gone <= 0) return;
    const { words, span } = this;
    for (let at = 0; at < gone; at++) if (words[at * WORDS + 1] !== 0) this.size--;
    words.copyWithin(0, gone * WORDS, span * WORDS);
    words.fill(0, (span - gone) * WORDS, span * WORDS);
    this.span = span - gone;
    this.base = serialAdd(this.base, gone);
  }

  /** In the order of their numbers. */
  list(): Digest[] {
    const list: Digest[] = [];
    const { words, base, span } = this;
    for (let at = 0, word = 0; at < span; at++, word += WORDS) {
      if (words[word + 1] === 0) continue;
      list.push({ seq: serialAdd(base, at), bytes: (words[word + 1] - 1) * TWO_32 + words[word], crc: words[word + 2] });
    }
    return list;
  }
}
