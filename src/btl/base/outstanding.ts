// The frames of one rail epoch that wait for the peer's count, oldest first: a ring of parallel arrays, so that a frame costs no object.
import type { Frame } from '../btl.ts';

const SLOTS_MIN = 8;

export class OutstandingFrames {
  private frames: (Frame | null)[] = new Array<Frame | null>(SLOTS_MIN).fill(null);
  private lengths: number[] = new Array<number>(SLOTS_MIN).fill(0);
  /** Sorted by nothing: refusals are rare. Positions since the beginning of the epoch. */
  private refused: Set<number> | undefined = undefined;
  /** Frames ever pushed, and ever shifted. */
  private pushed = 0;
  private shifted = 0;

  get size(): number {
    return this.pushed - this.shifted;
  }

  /** `frame` null is the BYE. */
  push(frame: Frame | null, bytes: number): void {
    if (this.pushed - this.shifted === this.frames.length) this.grow();
    const at = this.pushed++ & (this.frames.length - 1);
    this.frames[at] = frame;
    this.lengths[at] = bytes;
  }

  /** The length of the oldest. */
  get bytes(): number {
    return this.lengths[this.shifted & (this.lengths.length - 1)];
  }

  get isRefused(): boolean {
    return this.refused?.has(this.shifted) ?? false;
  }

  /** Takes the oldest out; the list is not empty. */
  shift(): Frame | null {
    const at = this.shifted & (this.frames.length - 1);
    const frame = this.frames[at];
    this.frames[at] = null;
    this.refused?.delete(this.shifted);
    this.shifted++;
    return frame;
  }

  /** Marks the frame that is `index` behind the oldest; false when there is none there, or it is the BYE. */
  refuse(index: number): boolean {
    if (index < 0 || index >= this.size) return false;
    if (this.frames[(this.shifted + index) & (this.frames.length - 1)] === null) return false;
    this.refused ??= new Set();
    this.refused.add(this.shifted + index);
    return true;
  }

  private grow(): void {
    const { size } = this;
    const slots = this.frames.length;
    const frames = new Array<Frame | null>(slots * 2).fill(null);
    const lengths = new Array<number>(slots * 2).fill(0);
    // Positions go on counting: each is put where the wider mask looks for it.
    for (let i = 0; i < size; i++) {
      const position = this.shifted + i;
      frames[position & (slots * 2 - 1)] = this.frames[position & (slots - 1)];
      lengths[position & (slots * 2 - 1)] = this.lengths[position & (slots - 1)];
    }
    this.frames = frames;
    this.lengths = lengths;
  }
}
