// u32 serial-number arithmetic (RFC 1982): match sequences and message epochs wrap.

/** a + n in 32 bits. */
export function serialAdd(a: number, n: number): number {
  return (a + n) >>> 0;
}

/** How far `a` is ahead of `b`, negative when it is behind: the signed 32-bit difference. */
export function serialDiff(a: number, b: number): number {
  return (a - b) | 0;
}
