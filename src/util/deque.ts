// A double-ended queue on a ring of slots; amortised O(1) at both ends.
//
//      head            head+size
//        v                 v
//  [ . . a b c d e f g h i . . ]      capacity is a power of two, indices are masked

/** Most are empty for as long as they live. */
const SLOTS_MIN = 4;

/** FIFO with push at both ends. */
export class Deque<T> {
  private slots: (T | undefined)[] = new Array<T | undefined>(SLOTS_MIN);
  private head = 0;
  private count = 0;

  get size(): number {
    return this.count;
  }

  private grow(): void {
    const old = this.slots;
    const slots = new Array<T | undefined>(old.length * 2);
    for (let i = 0; i < this.count; i++) slots[i] = old[(this.head + i) & (old.length - 1)];
    this.slots = slots;
    this.head = 0;
  }

  push(item: T): void {
    if (this.count === this.slots.length) this.grow();
    this.slots[(this.head + this.count) & (this.slots.length - 1)] = item;
    this.count++;
  }

  /** Puts the item behind the last one that `isBefore` it, looking from the end: where order is the rule and most items come in order. */
  insert(item: T, isBefore: (other: T, item: T) => boolean): void {
    this.push(item);
    const mask = this.slots.length - 1;
    for (let i = this.count - 1; i > 0; i--) {
      const other = this.slots[(this.head + i - 1) & mask] as T;
      if (isBefore(other, item)) return;
      this.slots[(this.head + i) & mask] = other;
      this.slots[(this.head + i - 1) & mask] = item;
    }
  }

  unshift(item: T): void {
    if (this.count === this.slots.length) this.grow();
    this.head = (this.head - 1) & (this.slots.length - 1);
    this.slots[this.head] = item;
    this.count++;
  }

  shift(): T | undefined {
    if (this.count === 0) return undefined;
    const item = this.slots[this.head];
    this.slots[this.head] = undefined;
    this.head = (this.head + 1) & (this.slots.length - 1);
    this.count--;
    return item;
  }

  peek(): T | undefined {
    return this.count === 0 ? undefined : this.slots[this.head];
  }

  clear(): void {
    this.slots = new Array<T | undefined>(SLOTS_MIN);
    this.head = 0;
    this.count = 0;
  }

  *[Symbol.iterator](): IterableIterator<T> {
    for (let i = 0; i < this.count; i++) yield this.slots[(this.head + i) & (this.slots.length - 1)] as T;
  }
}
