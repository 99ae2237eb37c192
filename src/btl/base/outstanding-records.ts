// Records that were written and that the reader has not counted yet, in order. Numbers are wrapping 32-bit counts; a record is kept at its
// number modulo the capacity, so nothing is allocated per record.
import type { Frame } from '../btl.ts';

const CAPACITY_FIRST = 256;

export class Outstanding {
  /** Number of the last record written, and of the last one counted. */
  sentCount: number;
  confirmedCount: number;
  /** Size of the record that was counted last. */
  lastSize = 0;
  private frames: (Frame | null)[] = new Array<Frame | null>(CAPACITY_FIRST).fill(null);
  private sizes = new Int32Array(CAPACITY_FIRST);
  private mask = CAPACITY_FIRST - 1;

  constructor(startCount: number) {
    this.sentCount = startCount;
    this.confirmedCount = startCount;
  }

  /** How many there are. */
  get size(): number {
    return (this.sentCount - this.confirmedCount) | 0;
  }

  /** `frame` null: a record of the rail's own. `size`: what it took, for `lastSize`. */
  push(frame: Frame | null, size: number): void {
    this.sentCount = (this.sentCount + 1) | 0;
    if (((this.sentCount - this.confirmedCount) | 0) > this.mask) this.grow();
    const i = this.sentCount & this.mask;
    this.frames[i] = frame;
    this.sizes[i] = size;
  }

  /** The oldest one, which is now counted; `lastSize` tells its size. Only when there is one. */
  shift(): Frame | null {
    this.confirmedCount = (this.confirmedCount + 1) | 0;
    const i = this.confirmedCount & this.mask;
    const frame = this.frames[i];
    this.frames[i] = null;
    this.lastSize = this.sizes[i];
    return frame;
  }

  /** Bounded by the room that the rail has for records. */
  private grow(): void {
    const capacity = (this.mask + 1) * 2;
    const frames = new Array<Frame | null>(capacity).fill(null);
    const sizes = new Int32Array(capacity);
    for (let n = (this.confirmedCount + 1) | 0; n !== this.sentCount; n = (n + 1) | 0) {
      frames[n & (capacity - 1)] = this.frames[n & this.mask];
      sizes[n & (capacity - 1)] = this.sizes[n & this.mask];
    }
    this.frames = frames;
    this.sizes = sizes;
    this.mask = capacity - 1;
  }
}
