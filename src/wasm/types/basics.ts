// The predefined datatypes: their lengths in a program of wasm32, what a reduction sees in them, and how long they are in `external32`.

/** What the bytes of a basic element mean. */
export type Kind =
  | 'i8'
  | 'u8'
  | 'i16'
  | 'u16'
  | 'i32'
  | 'u32'
  | 'i64'
  | 'u64'
  | 'f32'
  | 'f64'
  | 'f128'
  | 'c64'
  | 'c128'
  | 'c256'
  | 'bool'
  | 'logical'
  | 'char'
  | 'byte';

export interface Basic {
  readonly name: string;
  readonly kind: Kind;
  readonly bytes: number;
  readonly align: number;
  /** Bytes in `external32`. */
  readonly external: number;
}

const LENGTHS: Record<Kind, number> = {
  i8: 1,
  u8: 1,
  i16: 2,
  u16: 2,
  i32: 4,
  u32: 4,
  i64: 8,
  u64: 8,
  f32: 4,
  f64: 8,
  f128: 16,
  c64: 8,
  c128: 16,
  c256: 32,
  bool: 1,
  logical: 4,
  char: 1,
  byte: 1,
};

/** Numbers that are made of two are aligned as one of them. */
const ALIGNS: Partial<Record<Kind, number>> = { c64: 4, c128: 8, c256: 16 };

type Row = readonly [handle: number, name: string, kind: Kind, external?: number];

const ROWS: readonly Row[] = [
  [0x201, 'MPI_AINT', 'i32', 8],
  [0x202, 'MPI_COUNT', 'i64'],
  [0x203, 'MPI_OFFSET', 'i64'],
  [0x207, 'MPI_PACKED', 'byte'],
  [0x208, 'MPI_SHORT', 'i16'],
  [0x209, 'MPI_INT', 'i32'],
  [0x20a, 'MPI_LONG', 'i32'],
  [0x20b, 'MPI_LONG_LONG_INT', 'i64'],
  [0x20c, 'MPI_UNSIGNED_SHORT', 'u16'],
  [0x20d, 'MPI_UNSIGNED', 'u32'],
  [0x20e, 'MPI_UNSIGNED_LONG', 'u32'],
  [0x20f, 'MPI_UNSIGNED_LONG_LONG', 'u64'],
  [0x210, 'MPI_FLOAT', 'f32'],
  [0x212, 'MPI_C_COMPLEX', 'c64'],
  [0x213, 'MPI_CXX_FLOAT_COMPLEX', 'c64'],
  [0x214, 'MPI_DOUBLE', 'f64'],
  [0x216, 'MPI_C_DOUBLE_COMPLEX', 'c128'],
  [0x217, 'MPI_CXX_DOUBLE_COMPLEX', 'c128'],
  [0x218, 'MPI_LOGICAL', 'logical'],
  [0x219, 'MPI_INTEGER', 'i32'],
  [0x21a, 'MPI_REAL', 'f32'],
  [0x21b, 'MPI_COMPLEX', 'c64'],
  [0x21c, 'MPI_DOUBLE_PRECISION', 'f64'],
  [0x21d, 'MPI_DOUBLE_COMPLEX', 'c128'],
  [0x21e, 'MPI_CHARACTER', 'char'],
  [0x220, 'MPI_LONG_DOUBLE', 'f128'],
  [0x224, 'MPI_C_LONG_DOUBLE_COMPLEX', 'c256'],
  [0x225, 'MPI_CXX_LONG_DOUBLE_COMPLEX', 'c256'],
  [0x238, 'MPI_C_BOOL', 'bool'],
  [0x239, 'MPI_CXX_BOOL', 'bool'],
  [0x23c, 'MPI_WCHAR', 'i32', 2],
  [0x240, 'MPI_INT8_T', 'i8'],
  [0x241, 'MPI_UINT8_T', 'u8'],
  [0x243, 'MPI_CHAR', 'char'],
  [0x244, 'MPI_SIGNED_CHAR', 'i8'],
  [0x245, 'MPI_UNSIGNED_CHAR', 'u8'],
  [0x247, 'MPI_BYTE', 'byte'],
  [0x248, 'MPI_INT16_T', 'i16'],
  [0x249, 'MPI_UINT16_T', 'u16'],
  [0x250, 'MPI_INT32_T', 'i32'],
  [0x251, 'MPI_UINT32_T', 'u32'],
  [0x258, 'MPI_INT64_T', 'i64'],
  [0x259, 'MPI_UINT64_T', 'u64'],
  [0x2c0, 'MPI_LOGICAL1', 'bool'],
  [0x2c1, 'MPI_INTEGER1', 'i8'],
  [0x2c9, 'MPI_INTEGER2', 'i16'],
  [0x2d0, 'MPI_LOGICAL4', 'logical'],
  [0x2d1, 'MPI_INTEGER4', 'i32'],
  [0x2d2, 'MPI_REAL4', 'f32'],
  [0x2d9, 'MPI_INTEGER8', 'i64'],
  [0x2da, 'MPI_REAL8', 'f64'],
  [0x2db, 'MPI_COMPLEX8', 'c64'],
  [0x2e2, 'MPI_REAL16', 'f128'],
  [0x2e3, 'MPI_COMPLEX16', 'c128'],
  [0x2eb, 'MPI_COMPLEX32', 'c256'],
];

/** By handle. */
export const BASICS: ReadonlyMap<number, Basic> = new Map(
  ROWS.map(([handle, name, kind, external]) => {
    const bytes = LENGTHS[kind];
    return [handle, { name, kind, bytes, align: ALIGNS[kind] ?? bytes, external: external ?? bytes }];
  }),
);

/** A value and an index, for MINLOC and MAXLOC: handle, name, handle of the value, handle of the index. */
export const PAIRS: readonly (readonly [handle: number, name: string, value: number, index: number])[] = [
  [0x228, 'MPI_FLOAT_INT', 0x210, 0x209],
  [0x229, 'MPI_DOUBLE_INT', 0x214, 0x209],
  [0x22a, 'MPI_LONG_INT', 0x20a, 0x209],
  [0x22b, 'MPI_2INT', 0x209, 0x209],
  [0x22c, 'MPI_SHORT_INT', 0x208, 0x209],
  [0x22d, 'MPI_LONG_DOUBLE_INT', 0x220, 0x209],
  [0x230, 'MPI_2REAL', 0x21a, 0x21a],
  [0x231, 'MPI_2DOUBLE_PRECISION', 0x21c, 0x21c],
  [0x232, 'MPI_2INTEGER', 0x219, 0x219],
];

/** What MPI_Type_match_size finds: class, bytes, handle. */
export const SIZED: readonly (readonly [typeClass: number, bytes: number, handle: number])[] = [
  [192, 1, 0x240],
  [192, 2, 0x248],
  [192, 4, 0x250],
  [192, 8, 0x258],
  [193, 4, 0x210],
  [193, 8, 0x214],
  [193, 16, 0x220],
  [194, 8, 0x212],
  [194, 16, 0x216],
  [194, 32, 0x224],
];
