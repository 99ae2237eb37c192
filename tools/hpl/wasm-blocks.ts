// What the factorisation does besides products, in WebAssembly: pivot search, elimination within a panel, rows copied and swapped, the
// triangular solve of a small block, the matrix's elements, sums for the residual. Matrices are stored by columns; leading dimensions are
// in doubles, addresses in bytes.
import { type Code, doWhile, f64, f64x2, i32, i64, type Local, memoryCopy, WasmFunction, when, whileTrue } from './wasm-encoder.ts';

const DOUBLE = 8;
const bytes = (doubles: Code): Code => i32.shl(doubles, i32.const(3));
const sum = (...terms: Code[]): Code => terms.reduce((left, right) => i32.add(left, right));
const elementAt = (base: Local, index: Code): Code => sum(base.get, bytes(index));

/** Runs `two` over pairs of elements and `one` over what is left; `at` is the byte offset of the element. */
function byPairs(fn: WasmFunction, count: Local, two: (at: Local) => Code, one: (at: Local) => Code): Code {
  const at = fn.local('i32');
  const end = fn.local('i32');
  return [
    at.set(i32.const(0)),
    end.set(bytes(i32.and(count.get, i32.const(-2)))),
    whileTrue(i32.lt(at.get, end.get), [two(at), at.addTo(i32.const(2 * DOUBLE))]),
    when(i32.lt(at.get, bytes(count.get)), one(at)),
  ];
}

/** largest(x, n) -> index of the first element of largest absolute value; 0 when n is 0. */
export function largest(): WasmFunction {
  const fn = new WasmFunction('largest', ['i32', 'i32'], 'i32');
  const [x, n] = fn.args();
  const [best, value] = [fn.local('f64'), fn.local('f64')];
  const where = fn.local('i32');
  return fn.define(
    best.set(f64.const(-1)),
    fn.loop(n.get, 1, (i) => [
      value.set(f64.abs(f64.load(elementAt(x, i.get)))),
      when(f64.gt(value.get, best.get), [best.set(value.get), where.set(i.get)]),
    ]),
    where.get,
  );
}

/**
 * eliminate(column, m, lda, n, u, ldu): one step of the elimination. The m elements of `column` are divided by the pivot u[0], and the n
 * columns right of it lose column * u[t * ldu] for t = 1..n.
 */
export function eliminate(): WasmFunction {
  const fn = new WasmFunction('eliminate', ['i32', 'i32', 'i32', 'i32', 'i32', 'i32']);
  const [column, m, lda, n, u, ldu] = fn.args();
  const factor = fn.local('f64');
  const factors = fn.local('v128');
  const target = fn.local('i32');
  const inColumn = (at: Local): Code => sum(column.get, at.get);
  const inTarget = (at: Local): Code => sum(target.get, at.get);
  return fn.define(
    factor.set(f64.div(f64.const(1), f64.load(u.get))),
    factors.set(f64x2.splat(factor.get)),
    byPairs(
      fn,
      m,
      (at) => f64x2.store(inColumn(at), f64x2.mul(f64x2.load(inColumn(at)), factors.get)),
      (at) => f64.store(inColumn(at), f64.mul(f64.load(inColumn(at)), factor.get)),
    ),
    target.set(column.get),
    fn.loop(n.get, 1, () => [
      target.addTo(bytes(lda.get)),
      u.addTo(bytes(ldu.get)),
      factor.set(f64.load(u.get)),
      factors.set(f64x2.splat(factor.get)),
      byPairs(
        fn,
        m,
        (at) => f64x2.store(inTarget(at), f64x2.sub(f64x2.load(inTarget(at)), f64x2.mul(f64x2.load(inColumn(at)), factors.get))),
        (at) => f64.store(inTarget(at), f64.sub(f64.load(inTarget(at)), f64.mul(f64.load(inColumn(at)), factor.get))),
      ),
    ]),
  );
}

/** subtractProduct(m, n, a, lda, x, y): y := y - A x, a matrix and two vectors. */
export function subtractProduct(): WasmFunction {
  const fn = new WasmFunction('subtractProduct', ['i32', 'i32', 'i32', 'i32', 'i32', 'i32']);
  const [m, n, a, lda, x, y] = fn.args();
  const factor = fn.local('f64');
  const factors = fn.local('v128');
  const inA = (at: Local): Code => sum(a.get, at.get);
  const inY = (at: Local): Code => sum(y.get, at.get);
  return fn.define(
    fn.loop(n.get, 1, (j) => [
      factor.set(f64.load(elementAt(x, j.get))),
      factors.set(f64x2.splat(factor.get)),
      byPairs(
        fn,
        m,
        (at) => f64x2.store(inY(at), f64x2.sub(f64x2.load(inY(at)), f64x2.mul(f64x2.load(inA(at)), factors.get))),
        (at) => f64.store(inY(at), f64.sub(f64.load(inY(at)), f64.mul(f64.load(inA(at)), factor.get))),
      ),
      a.addTo(bytes(lda.get)),
    ]),
  );
}

/** solveUnitLower(m, n, l, ldl, b, ldb): B := L^-1 B for a unit lower triangle L of m rows, by forward substitution. For small m. */
export function solveUnitLower(): WasmFunction {
  const fn = new WasmFunction('solveUnitLower', ['i32', 'i32', 'i32', 'i32', 'i32', 'i32']);
  const [m, n, l, ldl, b, ldb] = fn.args();
  const [below, left] = [fn.local('i32'), fn.local('i32')];
  const count = fn.local('i32');
  const factor = fn.local('f64');
  const factors = fn.local('v128');
  const inL = (at: Local): Code => sum(left.get, at.get);
  const inB = (at: Local): Code => sum(below.get, at.get);
  return fn.define(
    fn.loop(n.get, 1, () => [
      fn.loop(m.get, 1, (i) => [
        factor.set(f64.load(elementAt(b, i.get))),
        factors.set(f64x2.splat(factor.get)),
        below.set(sum(elementAt(b, i.get), i32.const(DOUBLE))),
        left.set(sum(l.get, bytes(sum(i32.mul(i.get, ldl.get), i.get, i32.const(1))))),
        count.set(i32.sub(i32.sub(m.get, i.get), i32.const(1))),
        byPairs(
          fn,
          count,
          (at) => f64x2.store(inB(at), f64x2.sub(f64x2.load(inB(at)), f64x2.mul(f64x2.load(inL(at)), factors.get))),
          (at) => f64.store(inB(at), f64.sub(f64.load(inB(at)), f64.mul(f64.load(inL(at)), factor.get))),
        ),
      ]),
      b.addTo(bytes(ldb.get)),
    ]),
  );
}

/** swapRows(a, lda, n, pairs, count): in each of n columns, elements pairs[2i] and pairs[2i + 1] (i32) change places, in order. */
export function swapRows(): WasmFunction {
  const fn = new WasmFunction('swapRows', ['i32', 'i32', 'i32', 'i32', 'i32']);
  const [a, lda, n, pairs, count] = fn.args();
  const [pair, one, other] = [fn.local('i32'), fn.local('i32'), fn.local('i32')];
  const value = fn.local('f64');
  return fn.define(
    fn.loop(n.get, 1, () => [
      pair.set(pairs.get),
      fn.loop(count.get, 1, () => [
        one.set(elementAt(a, i32.load(pair.get))),
        other.set(elementAt(a, i32.load(pair.get, 4))),
        value.set(f64.load(one.get)),
        f64.store(one.get, f64.load(other.get)),
        f64.store(other.get, value.get),
        pair.addTo(i32.const(8)),
      ]),
      a.addTo(bytes(lda.get)),
    ]),
  );
}

/** copyRows(from, ldFrom, fromRows, to, ldTo, toRows, count, n): row fromRows[i] to row toRows[i] (i32 lists), over n columns. */
export function copyRows(): WasmFunction {
  const fn = new WasmFunction('copyRows', ['i32', 'i32', 'i32', 'i32', 'i32', 'i32', 'i32', 'i32']);
  const [from, ldFrom, fromRows, to, ldTo, toRows, count, n] = fn.args();
  const entry = (rows: Local, i: Local): Code => i32.load(sum(rows.get, i32.shl(i.get, i32.const(2))));
  return fn.define(
    fn.loop(n.get, 1, () => [
      fn.loop(count.get, 1, (i) => f64.store(elementAt(to, entry(toRows, i)), f64.load(elementAt(from, entry(fromRows, i))))),
      from.addTo(bytes(ldFrom.get)),
      to.addTo(bytes(ldTo.get)),
    ]),
  );
}

/** copyBlock(from, ldFrom, to, ldTo, m, n). */
export function copyBlock(): WasmFunction {
  const fn = new WasmFunction('copyBlock', ['i32', 'i32', 'i32', 'i32', 'i32', 'i32']);
  const [from, ldFrom, to, ldTo, m, n] = fn.args();
  return fn.define(
    fn.loop(n.get, 1, () => [memoryCopy(to.get, from.get, bytes(m.get)), from.addTo(bytes(ldFrom.get)), to.addTo(bytes(ldTo.get))]),
  );
}

// ---------------------------------------------------------------- the matrix

/** X(i + 1) = MULTIPLIER X(i) + INCREMENT mod 2^64: the generator of HPL. */
export const MULTIPLIER = 6364136223846793005n;
export const INCREMENT = 1n;
/** The upper 53 bits of X, as a number in [-0.5, 0.5). */
const MANTISSA_SHIFT = 11n;
const MANTISSA_UNIT = 2 ** -53;

/**
 * generate(to, m, block, gap, first, seed): m elements of the sequence that begins at element `first` (a whole number, below 2^53) of the
 * generator's; after each `block` of them `gap` more are jumped over. A jump of n steps is X -> A X + C, found by doubling: log2(n) steps.
 */
export function generate(): WasmFunction {
  const fn = new WasmFunction('generate', ['i32', 'i32', 'i32', 'f64', 'f64', 'f64']);
  const [to, m, block, gap, first, seed] = fn.args();
  const [state, a, c, stepA, stepC, steps, gapA, gapC] = Array.from({ length: 8 }, () => fn.local('i64'));
  const left = fn.local('i32');
  /** a, c := the jump of `steps` steps. */
  const jump: Code = [
    [a.set(i64.const(1n)), c.set(i64.const(0n)), stepA.set(i64.const(MULTIPLIER)), stepC.set(i64.const(INCREMENT))],
    whileTrue(i32.eqz(i64.eqz(steps.get)), [
      when(i64.toI32(i64.and(steps.get, i64.const(1n))), [
        c.set(i64.add(i64.mul(stepA.get, c.get), stepC.get)),
        a.set(i64.mul(a.get, stepA.get)),
      ]),
      stepC.set(i64.mul(stepC.get, i64.add(stepA.get, i64.const(1n)))),
      stepA.set(i64.mul(stepA.get, stepA.get)),
      steps.set(i64.shiftRight(steps.get, i64.const(1n))),
    ]),
  ];
  return fn.define(
    [steps.set(i64.fromF64(gap.get)), jump, gapA.set(a.get), gapC.set(c.get)],
    [steps.set(i64.fromF64(first.get)), jump, state.set(i64.add(i64.mul(a.get, i64.fromF64(seed.get)), c.get))],
    left.set(block.get),
    when(
      i32.gt(m.get, i32.const(0)),
      doWhile(
        [
          f64.store(
            to.get,
            f64.sub(f64.mul(f64.fromI64(i64.shiftRight(state.get, i64.const(MANTISSA_SHIFT))), f64.const(MANTISSA_UNIT)), f64.const(0.5)),
          ),
          state.set(i64.add(i64.mul(state.get, i64.const(MULTIPLIER)), i64.const(INCREMENT))),
          to.addTo(i32.const(DOUBLE)),
          left.addTo(i32.const(-1)),
          when(i32.eqz(left.get), [left.set(block.get), state.set(i64.add(i64.mul(state.get, gapA.get), gapC.get))]),
          m.addTo(i32.const(-1)),
        ],
        i32.gt(m.get, i32.const(0)),
      ),
    ),
  );
}

/** addColumn(m, column, x, sums, product): sums += |column|, product -= column * x. */
export function addColumn(): WasmFunction {
  const fn = new WasmFunction('addColumn', ['i32', 'i32', 'f64', 'i32', 'i32']);
  const [m, column, x, sums, product] = fn.args();
  const xs = fn.local('v128');
  const at2 = (base: Local, at: Local): Code => sum(base.get, at.get);
  return fn.define(
    xs.set(f64x2.splat(x.get)),
    byPairs(
      fn,
      m,
      (at) => [
        f64x2.store(at2(sums, at), f64x2.add(f64x2.load(at2(sums, at)), f64x2.abs(f64x2.load(at2(column, at))))),
        f64x2.store(at2(product, at), f64x2.sub(f64x2.load(at2(product, at)), f64x2.mul(f64x2.load(at2(column, at)), xs.get))),
      ],
      (at) => [
        f64.store(at2(sums, at), f64.add(f64.load(at2(sums, at)), f64.abs(f64.load(at2(column, at))))),
        f64.store(at2(product, at), f64.sub(f64.load(at2(product, at)), f64.mul(f64.load(at2(column, at)), x.get))),
      ],
    ),
  );
}
