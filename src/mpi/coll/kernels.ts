// The loops that combine elements, `out = left operation right`, element by element.
//
// Each loop is in the source once per class of arrays, although the text is the same: V8 keeps what it has learnt of a loop with its
// text, not with the function, and a loop that has met more than four kinds of array runs some 25 times slower ever after.

export interface Arrays {
  Int8Array: Int8Array;
  Uint8Array: Uint8Array;
  Uint8ClampedArray: Uint8ClampedArray;
  Int16Array: Int16Array;
  Uint16Array: Uint16Array;
  Int32Array: Int32Array;
  Uint32Array: Uint32Array;
  /** Only where the engine has it; TypeScript has no type for it among those of older ones. */
  Float16Array: Float32Array;
  Float32Array: Float32Array;
  Float64Array: Float64Array;
  BigInt64Array: BigInt64Array;
  BigUint64Array: BigUint64Array;
}
export type ArrayName = keyof Arrays;
/** An array that a reduction can combine. */
export type TypedArray =
  | Int8Array
  | Uint8Array
  | Uint8ClampedArray
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | Float32Array
  | Float64Array
  | BigInt64Array
  | BigUint64Array;

/**
 * `out[k + n] = left[i + n] operation right[j + n]` for `count` elements. Left holds what comes of lower ranks. `out` may be the memory
 * of either, at the same place.
 */
export type Kernel<A = never> = (left: A, i: number, right: A, j: number, out: A, k: number, count: number) => void;
export type Kernels = { readonly [N in ArrayName]?: Kernel<Arrays[N]> };

type Bytes = Int8Array | Uint8Array | Uint8ClampedArray;
type Shorts = Int16Array | Uint16Array;
type Words = Int32Array | Uint32Array;
type Bigs = BigInt64Array | BigUint64Array;
type Integers = Bytes | Shorts | Words;

/** One loop for each class of arrays, written at its place. */
interface ByClass {
  bytes?: Kernel<Bytes>;
  shorts?: Kernel<Shorts>;
  words?: Kernel<Words>;
  bigs?: Kernel<Bigs>;
  float16?: Kernel<Float32Array>;
  float32?: Kernel<Float32Array>;
  float64?: Kernel<Float64Array>;
}

function kernels({ bytes, shorts, words, bigs, float16, float32, float64 }: ByClass): Kernels {
  const all: { [N in ArrayName]: Kernel<Arrays[N]> | undefined } = {
    Int8Array: bytes,
    Uint8Array: bytes,
    Uint8ClampedArray: bytes,
    Int16Array: shorts,
    Uint16Array: shorts,
    Int32Array: words,
    Uint32Array: words,
    BigInt64Array: bigs,
    BigUint64Array: bigs,
    Float16Array: float16,
    Float32Array: float32,
    Float64Array: float64,
  };
  return Object.fromEntries(Object.entries(all).filter(([, kernel]) => kernel !== undefined)) as Kernels;
}

export const SUM = kernels({
  bytes: (left, i, right, j, out, k, count) => {
    for (let n = 0; n < count; n++) out[k + n] = left[i + n] + right[j + n];
  },
  shorts: (left, i, right, j, out, k, count) => {
    for (let n = 0; n < count; n++) out[k + n] = left[i + n] + right[j + n];
  },
  words: (left, i, right, j, out, k, count) => {
    for (let n = 0; n < count; n++) out[k + n] = left[i + n] + right[j + n];
  },
  bigs: (left, i, right, j, out, k, count) => {
    for (let n = 0; n < count; n++) out[k + n] = left[i + n] + right[j + n];
  },
  float16: (left, i, right, j, out, k, count) => {
    for (let n = 0; n < count; n++) out[k + n] = left[i + n] + right[j + n];
  },
  float32: (left, i, right, j, out, k, count) => {
    for (let n = 0; n < count; n++) out[k + n] = left[i + n] + right[j + n];
  },
  float64: (left, i, right, j, out, k, count) => {
    for (let n = 0; n < count; n++) out[k + n] = left[i + n] + right[j + n];
  },
});

/** Products of 32 bits need more than a double holds: Math.imul keeps the low bits, as the array does. */
export const PROD = kernels({
  bytes: (left, i, right, j, out, k, count) => {
    for (let n = 0; n < count; n++) out[k + n] = left[i + n] * right[j + n];
  },
  shorts: (left, i, right, j, out, k, count) => {
    for (let n = 0; n < count; n++) out[k + n] = left[i + n] * right[j + n];
  },
  words: (left, i, right, j, out, k, count) => {
    for (let n = 0; n < count; n++) out[k + n] = Math.imul(left[i + n], right[j + n]);
  },
  bigs: (left, i, right, j, out, k, count) => {
    for (let n = 0; n < count; n++) out[k + n] = left[i + n] * right[j + n];
  },
  float16: (left, i, right, j, out, k, count) => {
    for (let n = 0; n < count; n++) out[k + n] = left[i + n] * right[j + n];
  },
  float32: (left, i, right, j, out, k, count) => {
    for (let n = 0; n < count; n++) out[k + n] = left[i + n] * right[j + n];
  },
  float64: (left, i, right, j, out, k, count) => {
    for (let n = 0; n < count; n++) out[k + n] = left[i + n] * right[j + n];
  },
});

/** NaN wins, and 0 over -0: the order of operands does not show in the result. */
export const MAX = kernels({
  bytes: (left, i, right, j, out, k, count) => {
    for (let n = 0; n < count; n++) out[k + n] = Math.max(left[i + n], right[j + n]);
  },
  shorts: (left, i, right, j, out, k, count) => {
    for (let n = 0; n < count; n++) out[k + n] = Math.max(left[i + n], right[j + n]);
  },
  words: (left, i, right, j, out, k, count) => {
    for (let n = 0; n < count; n++) out[k + n] = Math.max(left[i + n], right[j + n]);
  },
  bigs: (left, i, right, j, out, k, count) => {
    // biome-ignore lint/complexity/useMathMinMax: Math.max takes no bigints
    for (let n = 0; n < count; n++) out[k + n] = left[i + n] > right[j + n] ? left[i + n] : right[j + n];
  },
  float16: (left, i, right, j, out, k, count) => {
    for (let n = 0; n < count; n++) out[k + n] = Math.max(left[i + n], right[j + n]);
  },
  float32: (left, i, right, j, out, k, count) => {
    for (let n = 0; n < count; n++) out[k + n] = Math.max(left[i + n], right[j + n]);
  },
  float64: (left, i, right, j, out, k, count) => {
    for (let n = 0; n < count; n++) out[k + n] = Math.max(left[i + n], right[j + n]);
  },
});

export const MIN = kernels({
  bytes: (left, i, right, j, out, k, count) => {
    for (let n = 0; n < count; n++) out[k + n] = Math.min(left[i + n], right[j + n]);
  },
  shorts: (left, i, right, j, out, k, count) => {
    for (let n = 0; n < count; n++) out[k + n] = Math.min(left[i + n], right[j + n]);
  },
  words: (left, i, right, j, out, k, count) => {
    for (let n = 0; n < count; n++) out[k + n] = Math.min(left[i + n], right[j + n]);
  },
  bigs: (left, i, right, j, out, k, count) => {
    // biome-ignore lint/complexity/useMathMinMax: Math.min takes no bigints
    for (let n = 0; n < count; n++) out[k + n] = left[i + n] < right[j + n] ? left[i + n] : right[j + n];
  },
  float16: (left, i, right, j, out, k, count) => {
    for (let n = 0; n < count; n++) out[k + n] = Math.min(left[i + n], right[j + n]);
  },
  float32: (left, i, right, j, out, k, count) => {
    for (let n = 0; n < count; n++) out[k + n] = Math.min(left[i + n], right[j + n]);
  },
  float64: (left, i, right, j, out, k, count) => {
    for (let n = 0; n < count; n++) out[k + n] = Math.min(left[i + n], right[j + n]);
  },
});

// ---------------------------------------------------------------- bits and truth: seldom what a program waits for

const bits = (number: (a: number, b: number) => number, big: (a: bigint, b: bigint) => bigint): Kernels => {
  const small: Kernel<Integers> = (left, i, right, j, out, k, count) => {
    for (let n = 0; n < count; n++) out[k + n] = number(left[i + n], right[j + n]);
  };
  const bigs: Kernel<Bigs> = (left, i, right, j, out, k, count) => {
    for (let n = 0; n < count; n++) out[k + n] = big(left[i + n], right[j + n]);
  };
  return kernels({ bytes: small, shorts: small, words: small, bigs });
};

const truth = (holds: (a: boolean, b: boolean) => boolean): Kernels =>
  bits(
    (a, b) => (holds(a !== 0, b !== 0) ? 1 : 0),
    (a, b) => (holds(a !== 0n, b !== 0n) ? 1n : 0n),
  );

export const LAND = truth((a, b) => a && b);
export const LOR = truth((a, b) => a || b);
export const LXOR = truth((a, b) => a !== b);
export const BAND = bits(
  (a, b) => a & b,
  (a, b) => a & b,
);
export const BOR = bits(
  (a, b) => a | b,
  (a, b) => a | b,
);
export const BXOR = bits(
  (a, b) => a ^ b,
  (a, b) => a ^ b,
);

// ---------------------------------------------------------------- pairs: value, index, value, index, …

/** The pair on the left wins a better value; of equal values the lower index counts. */
const pairs = (isBetter: (a: number | bigint, b: number | bigint) => boolean): Kernels => {
  const any: Kernel<{ [index: number]: number | bigint }> = (left, i, right, j, out, k, count) => {
    for (let n = 0; n < count; n += 2) {
      const a = left[i + n];
      const b = right[j + n];
      const lower = left[i + n + 1] < right[j + n + 1];
      const takeLeft = isBetter(a, b) || (!isBetter(b, a) && lower);
      const index = takeLeft ? left[i + n + 1] : right[j + n + 1];
      out[k + n] = takeLeft ? a : b;
      out[k + n + 1] = index;
    }
  };
  const loop = any as unknown as Kernel<Integers> & Kernel<Bigs> & Kernel<Float32Array> & Kernel<Float64Array>;
  return kernels({ bytes: loop, shorts: loop, words: loop, bigs: loop, float16: loop, float32: loop, float64: loop });
};

export const MAXLOC = pairs((a, b) => a > b);
export const MINLOC = pairs((a, b) => a < b);
