// Handles: what a program holds in place of an object. Those of MPI itself are below 0x1000; all others say their kind in their upper bits.

const FIRST = 0x1000;

export class Handles<T> {
  private readonly base: number;
  private readonly fixed = new Map<number, T>();
  private readonly items: (T | undefined)[] = [];
  private readonly unused: number[] = [];

  /** `kind`: 1 to 127, another one for each kind of object. */
  constructor(kind: number) {
    this.base = kind * 0x0100_0000 + FIRST;
  }

  /** A handle that the standard names. */
  fix(handle: number, item: T): void {
    this.fixed.set(handle, item);
  }

  add(item: T): number {
    const index = this.unused.pop() ?? this.items.length;
    this.items[index] = item;
    return this.base + index;
  }

  find(handle: number): T | undefined {
    // An index that an array does not have is looked up as a name, which is slow.
    const index = handle - this.base;
    return index >= 0 && index < this.items.length ? this.items[index] : this.fixed.get(handle);
  }

  set(handle: number, item: T): void {
    this.items[handle - this.base] = item;
  }

  remove(handle: number): void {
    const index = handle - this.base;
    if (this.items[index] === undefined) return;
    this.items[index] = undefined;
    this.unused.push(index);
  }

  /** Of those that the program has made. */
  get count(): number {
    return this.items.length - this.unused.length;
  }

  *all(): Generator<T> {
    for (const item of this.items) if (item !== undefined) yield item;
  }
}
