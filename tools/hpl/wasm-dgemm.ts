// The matrix product in WebAssembly SIMD: packing, and the product of packed panels, after K. Goto and R. van de Geijn, "Anatomy of
// High-Performance Matrix Multiplication", ACM TOMS 34(3), 2008. The blocking around them is in wasm-algebra.ts. Matrices are stored by
// columns; leading dimensions are in doubles, addresses in bytes.
import { type Code, f64, f64x2, i32, type Local, WasmFunction, when, whileTrue } from './wasm-encoder.ts';

/** The tile of C that one inner loop keeps in registers: 8 vectors of two doubles, which leaves 8 of x64's 16 for A and B. */
export const TILE_ROWS = 4;
export const TILE_COLUMNS = 4;
/** Inner products are a whole number of these long: packed panels are filled up with zeros. */
export const UNROLL = 4;
const DOUBLE = 8;

const bytes = (doubles: Code): Code => i32.shl(doubles, i32.const(3));
const sum = (...terms: Code[]): Code => terms.reduce((left, right) => i32.add(left, right));
const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

/** min(value, limit) by way of a local. */
const atMost = (local: Local, value: Code, limit: number): Code => [
  local.set(value),
  when(i32.gt(local.get, i32.const(limit)), local.set(i32.const(limit))),
];

/**
 * packA(from, lda, m, k, kPadded, to): slivers of TILE_ROWS rows, column by column; rows and columns that are not there are zero.
 */
export function packA(): WasmFunction {
  const fn = new WasmFunction('packA', ['i32', 'i32', 'i32', 'i32', 'i32', 'i32']);
  const [from, lda, m, k, kPadded, to] = fn.args();
  const source = fn.local('i32');
  const rows = fn.local('i32');
  const wholeColumn = range(TILE_ROWS / 2).map((v) => f64x2.store(to.get, f64x2.load(source.get, v * 16), v * 16));
  const emptyColumn = range(TILE_ROWS / 2).map((v) => f64x2.store(to.get, f64x2.zero, v * 16));
  const nextColumn = [source.addTo(bytes(lda.get)), to.addTo(i32.const(TILE_ROWS * DOUBLE))];
  return fn.define(
    fn.loop(m.get, TILE_ROWS, (row) => [
      source.set(sum(from.get, bytes(row.get))),
      atMost(rows, i32.sub(m.get, row.get), TILE_ROWS),
      when(
        i32.eq(rows.get, i32.const(TILE_ROWS)),
        fn.loop(k.get, 1, () => [wholeColumn, nextColumn]),
        fn.loop(k.get, 1, () => [
          emptyColumn,
          fn.loop(rows.get, 1, (i) => f64.store(sum(to.get, bytes(i.get)), f64.load(sum(source.get, bytes(i.get))))),
          nextColumn,
        ]),
      ),
      fn.loop(i32.sub(kPadded.get, k.get), 1, () => [emptyColumn, nextColumn]),
    ]),
  );
}

/** packB(from, ldb, k, n, kPadded, to): slivers of TILE_COLUMNS columns, row by row; what is not there is zero. */
export function packB(): WasmFunction {
  const fn = new WasmFunction('packB', ['i32', 'i32', 'i32', 'i32', 'i32', 'i32']);
  const [from, ldb, k, n, kPadded, to] = fn.args();
  const columns = range(TILE_COLUMNS).map(() => fn.local('i32'));
  const count = fn.local('i32');
  const advance = to.addTo(i32.const(TILE_COLUMNS * DOUBLE));
  const emptyRow = range(TILE_COLUMNS / 2).map((v) => f64x2.store(to.get, f64x2.zero, v * 16));
  return fn.define(
    fn.loop(n.get, TILE_COLUMNS, (column) => [
      columns.map((at, j) => at.set(sum(from.get, bytes(i32.mul(ldb.get, i32.add(column.get, i32.const(j))))))),
      atMost(count, i32.sub(n.get, column.get), TILE_COLUMNS),
      when(
        i32.eq(count.get, i32.const(TILE_COLUMNS)),
        fn.loop(k.get, 1, () => [
          columns.map((at, j) => [f64.store(to.get, f64.load(at.get), j * DOUBLE), at.addTo(i32.const(DOUBLE))]),
          advance,
        ]),
        fn.loop(k.get, 1, () => [
          emptyRow,
          columns.map((at, j) =>
            when(i32.gt(count.get, i32.const(j)), [f64.store(to.get, f64.load(at.get), j * DOUBLE), at.addTo(i32.const(DOUBLE))]),
          ),
          advance,
        ]),
      ),
      fn.loop(i32.sub(kPadded.get, k.get), 1, () => [emptyRow, advance]),
    ]),
  );
}

/**
 * product(m, n, kPadded, packedA, packedB, c, ldc, scratch): C := C - A B for packed panels A (m x k) and B (k x n). `scratch` is room for
 * one tile, for the tiles that hang over the edge.
 */
export function product(): WasmFunction {
  const fn = new WasmFunction('product', ['i32', 'i32', 'i32', 'i32', 'i32', 'i32', 'i32', 'i32']);
  const [m, n, k, packedA, packedB, c, ldc, scratch] = fn.args();
  const [a, b, left, tile, columnBytes, sliverBytesB, rows, columns] = range(8).map(() => fn.local('i32'));
  const vectors = TILE_ROWS / 2;
  const sums = range(TILE_COLUMNS).map(() => range(vectors).map(() => fn.local('v128')));
  const as = range(vectors).map(() => fn.local('v128'));
  const bValue = fn.local('v128');
  const step = (p: number): Code => [
    as.map((local, v) => local.set(f64x2.load(a.get, (p * TILE_ROWS + v * 2) * DOUBLE))),
    sums.map((column, j) => [
      bValue.set(f64x2.loadSplat(b.get, (p * TILE_COLUMNS + j) * DOUBLE)),
      column.map((sumOf, v) => sumOf.set(f64x2.add(sumOf.get, f64x2.mul(as[v].get, bValue.get)))),
    ]),
  ];
  const wholeTile = sums.map((column) => [
    column.map((sumOf, v) => f64x2.store(tile.get, f64x2.sub(f64x2.load(tile.get, v * 16), sumOf.get), v * 16)),
    tile.addTo(columnBytes.get),
  ]);
  const tileAtEdge = [
    sums.map((column, j) => column.map((sumOf, v) => f64x2.store(scratch.get, sumOf.get, (j * TILE_ROWS + v * 2) * DOUBLE))),
    fn.loop(columns.get, 1, (j) => [
      fn.loop(rows.get, 1, (i) =>
        f64.store(
          sum(tile.get, bytes(i.get)),
          f64.sub(
            f64.load(sum(tile.get, bytes(i.get))),
            f64.load(sum(scratch.get, bytes(i.get), i32.mul(j.get, i32.const(TILE_ROWS * DOUBLE)))),
          ),
        ),
      ),
      tile.addTo(columnBytes.get),
    ]),
  ];
  return fn.define(
    columnBytes.set(bytes(ldc.get)),
    sliverBytesB.set(i32.mul(k.get, i32.const(TILE_COLUMNS * DOUBLE))),
    fn.loop(n.get, TILE_COLUMNS, (column) => [
      atMost(columns, i32.sub(n.get, column.get), TILE_COLUMNS),
      a.set(packedA.get),
      fn.loop(m.get, TILE_ROWS, (row) => [
        atMost(rows, i32.sub(m.get, row.get), TILE_ROWS),
        sums.flat().map((sumOf) => sumOf.set(f64x2.zero)),
        b.set(packedB.get),
        left.set(k.get),
        whileTrue(i32.gt(left.get, i32.const(0)), [
          range(UNROLL).map(step),
          a.addTo(i32.const(UNROLL * TILE_ROWS * DOUBLE)),
          b.addTo(i32.const(UNROLL * TILE_COLUMNS * DOUBLE)),
          left.addTo(i32.const(-UNROLL)),
        ]),
        tile.set(sum(c.get, bytes(row.get), i32.mul(column.get, columnBytes.get))),
        when(i32.and(i32.eq(rows.get, i32.const(TILE_ROWS)), i32.eq(columns.get, i32.const(TILE_COLUMNS))), wholeTile, tileAtEdge),
      ]),
      packedB.addTo(sliverBytesB.get),
    ]),
  );
}
