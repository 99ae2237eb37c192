// Numbers of seven bits a byte, lowest first, in batches that processes send each other: what a number takes, writing, and reading with a check of
// every step.

/** Bytes that a whole number from 0 takes. */
export function varintBytes(value: number): number {
  let bytes = 1;
  for (let left = value; left >= 128; left = Math.floor(left / 128)) bytes++;
  return bytes;
}

/** Writes it at that place. Returns the place behind it. */
export function putVarint(bytes: Uint8Array, at: number, value: number): number {
  let place = at;
  let left = value;
  for (; left >= 128; left = Math.floor(left / 128)) bytes[place++] = (left % 128) | 128;
  bytes[place++] = left;
  return place;
}

export class VarintReader {
  at = 0;
  private readonly bytes: Uint8Array;
  private readonly ends: string;
  private readonly broken: (what: string) => Error;

  /** `broken`: makes the error for what cannot be read. `ends`: how it says that the bytes come to an end. */
  constructor(bytes: Uint8Array, broken: (what: string) => Error, ends: 'it ends' | 'they end') {
    this.bytes = bytes;
    this.broken = broken;
    this.ends = ends;
  }

  /** @throws What `broken` makes: there is nothing left. */
  byte(): number {
    if (this.at >= this.bytes.length) throw this.broken(`${this.ends} at byte ${this.at}`);
    return this.bytes[this.at++];
  }

  /** @throws What `broken` makes: it is cut off, or no safe integer. */
  number(): number {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const next = this.byte();
      value += (next & 127) * scale;
      if (value > Number.MAX_SAFE_INTEGER) throw this.broken(`a number at byte ${this.at}`);
      if (next < 128) return value;
    }
  }

  /** So many bytes, as a copy. @throws What `broken` makes, with `where`: they are not there. */
  piece(length: number, where = `at byte ${this.bytes.length}`): Uint8Array {
    if (this.at + length > this.bytes.length) throw this.broken(`${this.ends} ${where}`);
    this.at += length;
    return this.bytes.slice(this.at - length, this.at);
  }
}
