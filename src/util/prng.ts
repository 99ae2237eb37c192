// The seeded generator of all chance in the simulator and in the fault interposer: sfc32, in 32-bit integers only, with ratios of integers
// instead of floats, so that a seed means the same on every version of Node. The file also has the hash by which two traces are compared.

function hashLabel(text: string, seed: number): number {
  let h = (seed ^ 0x811c9dc5) >>> 0;
  for (let i = 0; i < text.length; i++) {
    h = Math.imul(h ^ text.charCodeAt(i), 0x01000193) >>> 0;
    h = (h ^ (h >>> 13)) >>> 0;
  }
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b) >>> 0;
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35) >>> 0;
  return (h ^ (h >>> 16)) >>> 0;
}

/** A stream of pseudo-random integers (sfc32). */
export class Prng {
  private a: number;
  private b: number;
  private c: number;
  private counter = 1;
  /** The stream's name: the seed and the labels it was split by. split() depends on nothing else. */
  readonly path: string;

  constructor(seed: number | string) {
    this.path = String(seed);
    this.a = hashLabel(this.path, 0x9e3779b9);
    this.b = hashLabel(this.path, 0x243f6a88);
    this.c = hashLabel(this.path, 0xb7e15162);
    for (let i = 0; i < 15; i++) this.nextU32();
  }

  /** An independent stream. It depends on the seed and the labels only, not on how much was drawn from this one. */
  split(label: string | number): Prng {
    return new Prng(`${this.path}/${label}`);
  }

  nextU32(): number {
    const t = (((this.a + this.b) | 0) + this.counter) | 0;
    this.counter = (this.counter + 1) | 0;
    this.a = this.b ^ (this.b >>> 9);
    this.b = (this.c + (this.c << 3)) | 0;
    this.c = (this.c << 21) | (this.c >>> 11);
    this.c = (this.c + t) | 0;
    return t >>> 0;
  }

  /** 0 <= result < n, without bias; n from 1 to 2^32. */
  below(n: number): number {
    if (!Number.isInteger(n) || n < 1 || n > 2 ** 32) throw new RangeError(`below(${n})`);
    const limit = 2 ** 32 - (2 ** 32 % n);
    let drawn = this.nextU32();
    while (drawn >= limit) drawn = this.nextU32();
    return drawn % n;
  }

  /** low <= result <= high. */
  between(low: number, high: number): number {
    return high <= low ? low : low + this.below(high - low + 1);
  }

  /** True in `numerator` of `denominator` cases. */
  chance(numerator: number, denominator: number): boolean {
    return numerator > 0 && this.below(denominator) < numerator;
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)];
  }

  /** In place. */
  shuffle<T>(list: T[]): T[] {
    for (let i = list.length - 1; i > 0; i--) {
      const j = this.below(i + 1);
      const kept = list[i];
      list[i] = list[j];
      list[j] = kept;
    }
    return list;
  }

  fill(bytes: Uint8Array): Uint8Array {
    for (let i = 0; i < bytes.length; i++) bytes[i] = this.nextU32() & 0xff;
    return bytes;
  }
}

/** A running 64-bit hash of trace lines. Equal hashes of equal counts stand for equal traces. */
export class TraceHash {
  private high = 0x811c9dc5;
  private low = 0x2c9277b5;
  lines = 0;

  add(line: string): void {
    this.lines += 1;
    for (let i = 0; i <= line.length; i++) {
      // The end of a line is a character of its own, so that lines cannot flow into each other.
      const code = i === line.length ? 0x10000 : line.charCodeAt(i);
      this.high = Math.imul(this.high ^ code, 0x01000193) >>> 0;
      this.low = (Math.imul(this.low ^ code, 0x85ebca6b) + (this.high >>> 15)) >>> 0;
    }
  }

  get hex(): string {
    return this.high.toString(16).padStart(8, '0') + this.low.toString(16).padStart(8, '0');
  }
}
