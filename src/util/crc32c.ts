// CRC32C (Castagnoli) in JavaScript, by slicing-by-8, and the checksum of two pieces from the checksums of each. Long inputs are given to
// the native part where there is one: src/native/crc32c.ts.

/** Reflected polynomial of CRC32C. */
const POLYNOMIAL = 0x82f63b78;
/** Eight tables of 256 entries, one after the other: table k is the effect of a byte that lies k bytes further back. */
const TABLES = ((): Int32Array => {
  const tables = new Int32Array(8 * 256);
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
    tables[byte] = crc;
  }
  for (let byte = 0; byte < 256; byte++) {
    for (let k = 1; k < 8; k++) {
      const previous = tables[(k - 1) * 256 + byte];
      tables[k * 256 + byte] = (previous >>> 8) ^ tables[previous & 0xff];
    }
  }
  return tables;
})();

/** The pure-JavaScript CRC32C of the first `length` bytes; `crc` is the value of the bytes before, 0 at the beginning. */
export function crc32cJs(bytes: Uint8Array, crc = 0, length = bytes.length): number {
  const t = TABLES;
  let c = ~crc;
  let i = 0;
  for (const last = length - 8; i <= last; i += 8) {
    c ^= bytes[i] | (bytes[i + 1] << 8) | (bytes[i + 2] << 16) | (bytes[i + 3] << 24);
    c =
      t[1792 + (c & 0xff)] ^
      t[1536 + ((c >>> 8) & 0xff)] ^
      t[1280 + ((c >>> 16) & 0xff)] ^
      t[1024 + (c >>> 24)] ^
      t[768 + bytes[i + 4]] ^
      t[512 + bytes[i + 5]] ^
      t[256 + bytes[i + 6]] ^
      t[bytes[i + 7]];
  }
  for (; i < length; i++) c = (c >>> 8) ^ t[(c ^ bytes[i]) & 0xff];
  return ~c >>> 0;
}

/** A linear map of 32 bits: what it makes of each bit. */
type BitMatrix = Uint32Array;

function apply(matrix: BitMatrix, bits: number): number {
  let sum = 0;
  for (let i = 0; bits !== 0; i++, bits >>>= 1) if (bits & 1) sum ^= matrix[i];
  return sum >>> 0;
}

const squared = (matrix: BitMatrix): BitMatrix => matrix.map((column) => apply(matrix, column));

/** What eight zero bits, that is one zero byte, do to a checksum. */
const ZERO_BYTE = ((): BitMatrix => {
  const zeroBit = Uint32Array.from({ length: 32 }, (_, i) => (i === 0 ? POLYNOMIAL : 2 ** (i - 1)));
  return squared(squared(squared(zeroBit)));
})();

/** The CRC32C of two pieces one after the other, from the CRC32C of each and the length of the second in bytes. */
export function crc32cCombine(first: number, second: number, secondBytes: number): number {
  let crc = first;
  let matrix = ZERO_BYTE;
  for (let bytes = secondBytes; bytes > 0; bytes = Math.floor(bytes / 2)) {
    if (bytes % 2 === 1) crc = apply(matrix, crc);
    matrix = squared(matrix);
  }
  return (crc ^ second) >>> 0;
}
