// The payload that unit tests send: bytes that differ between two seeds, and between two places of one seed.

export function pattern(bytes: number, seed = 1): Uint8Array {
  const view = new Uint8Array(bytes);
  let x = (seed << 1) | 1;
  for (let i = 0; i < bytes; i++) {
    x = (Math.imul(x, 1664525) + 1013904223) | 0;
    view[i] = x >>> 24;
  }
  return view;
}
