// Operations of reductions: those of MPI (MPI-4.1, section 6.9.2) and those of the user.
//
// Whatever the algorithm, the left operand of a combination holds what comes of lower ranks and the right one what comes of higher
// ranks (for operations that do not commute always; for the others wherever the algorithm keeps neighbours together), and every element
// is combined in one order only, whose result all ranks get: the bits are the same everywhere.
import { MultirailError } from '../errors.ts';
import type { ArrayName, Kernel, Kernels, TypedArray } from './coll/kernels.ts';
import * as kernels from './coll/kernels.ts';
import type { NativeKernels } from './coll/native-kernels.ts';

/**
 * A reduction of one's own (MPI-4.1, section 6.9.5): `inout[i] = incoming[i] operation inout[i]` for every element. `incoming` holds what
 * comes of lower ranks. Both are arrays of the class of the buffers and of the same length, and are only lent.
 */
export type OpFunction<A extends TypedArray = TypedArray> = (incoming: A, inout: A) => void;

/** Options of Op.create(). */
export interface OpOptions {
  /** Whether the order of operands does not matter; then more algorithms can be used. False by default. */
  commute?: boolean;
  /** Elements that belong together, such as 4 for a 2 × 2 matrix: the function is always given whole ones. 1 by default. */
  unit?: number;
  /** Its name, for error messages; that of the function by default. */
  name?: string;
}

/**
 * What combines arrays of that class, with the native part's loops where they are given and have the operation. ERR_OP when the operation is
 * not defined for them.
 */
export let kernelOf: (op: Op, array: ArrayName, native?: NativeKernels) => Kernel<TypedArray>;

/**
 * How a reduction combines elements: the operations of MPI (MPI-4.1, section 6.9.2), and those of Op.create(). Whatever the algorithm,
 * every rank gets the same bits.
 */
export class Op {
  /** Its name, for people. */
  readonly name: string;
  /** Whether the order of operands does not matter (MPI-4.1, section 6.9.5). */
  readonly commute: boolean;
  /** Elements that belong together; 1 but for MAXLOC, MINLOC and those of the user that say so. */
  readonly unit: number;
  private readonly kernels: Kernels | undefined;
  private readonly user: OpFunction | undefined;

  private constructor(name: string, commute: boolean, unit: number, table: Kernels | undefined, user: OpFunction | undefined) {
    this.name = name;
    this.commute = commute;
    this.unit = unit;
    this.kernels = table;
    this.user = user;
  }

  /** The sum, for every class of typed arrays; integers wrap, or are cut, as the array does it. */
  static readonly SUM = new Op('SUM', true, 1, kernels.SUM, undefined);
  /** The product, for every class of typed arrays; integers wrap, or are cut, as the array does it. */
  static readonly PROD = new Op('PROD', true, 1, kernels.PROD, undefined);
  /** The largest value, for every class of typed arrays. */
  static readonly MAX = new Op('MAX', true, 1, kernels.MAX, undefined);
  /** The smallest value, for every class of typed arrays. */
  static readonly MIN = new Op('MIN', true, 1, kernels.MIN, undefined);
  /** Logical and, for integers: all but 0 is true, and the result is 1 or 0. */
  static readonly LAND = new Op('LAND', true, 1, kernels.LAND, undefined);
  /** Logical or, for integers: all but 0 is true, and the result is 1 or 0. */
  static readonly LOR = new Op('LOR', true, 1, kernels.LOR, undefined);
  /** Logical exclusive or, for integers: all but 0 is true, and the result is 1 or 0. */
  static readonly LXOR = new Op('LXOR', true, 1, kernels.LXOR, undefined);
  /** Bitwise and, for integers. */
  static readonly BAND = new Op('BAND', true, 1, kernels.BAND, undefined);
  /** Bitwise or, for integers. */
  static readonly BOR = new Op('BOR', true, 1, kernels.BOR, undefined);
  /** Bitwise exclusive or, for integers. */
  static readonly BXOR = new Op('BXOR', true, 1, kernels.BXOR, undefined);

  /**
   * The largest value and where it is (MPI-4.1, section 6.9.4): the buffer holds pairs [value, index, value, index, …] in one typed array;
   * of equal values the one with the lowest index counts.
   */
  static readonly MAXLOC = new Op('MAXLOC', true, 2, kernels.MAXLOC, undefined);
  /** The smallest value and where it is, in pairs as for MAXLOC (MPI-4.1, section 6.9.4). */
  static readonly MINLOC = new Op('MINLOC', true, 2, kernels.MINLOC, undefined);

  /**
   * Makes an operation of a function (MPI-4.1, section 6.9.5). The function must be associative, and with `commute` also commutative. It
   * may be called for any part of the buffers, several times, and must neither keep the arrays nor wait for anything. What it throws ends
   * the call at every rank, with ERR_OP.
   *
   * @param fn Combines two arrays into the second.
   * @param options Whether it commutes, how many elements belong together, and its name.
   * @throws ERR_OP: `fn` is no function.
   * @throws ERR_ARG: an option does not fit.
   */
  static create<A extends TypedArray = TypedArray>(fn: OpFunction<A>, options: OpOptions = {}): Op {
    const { commute = false, unit = 1, name } = options;
    if (typeof fn !== 'function') throw new MultirailError('ERR_OP', `fn is ${fn === null ? 'null' : typeof fn}; expected a function`);
    if (typeof commute !== 'boolean') throw new MultirailError('ERR_ARG', `commute is ${String(commute)}; expected true or false`);
    if (!Number.isSafeInteger(unit) || unit < 1)
      throw new MultirailError('ERR_ARG', `unit is ${String(unit)}; expected a number of elements`);
    return new Op(name ?? (fn.name === '' ? 'user operation' : fn.name), commute, unit, undefined, fn as unknown as OpFunction);
  }

  /** Whether Op.create() made it. */
  get isOfUser(): boolean {
    return this.user !== undefined;
  }

  static {
    kernelOf = (op, array, native) => {
      const { user } = op;
      if (user !== undefined) return (left, i, right, j, out, k, count) => callUser(user, left, i, right, j, out, k, count);
      const kernel = op.kernels?.[array] as Kernel<TypedArray> | undefined;
      if (kernel !== undefined) return native === undefined ? kernel : native.kernelFor(op.name, array, kernel);
      const defined = Object.keys(op.kernels ?? {}).join(', ');
      throw new MultirailError('ERR_OP', `op ${op.name} is not defined for ${array}: it takes ${defined}`);
    };
  }
}

/** The user's function writes into its right operand, which must not be memory that is only lent: it is copied unless it is scratch. */
function callUser(
  user: OpFunction,
  left: TypedArray,
  i: number,
  right: TypedArray,
  j: number,
  out: TypedArray,
  k: number,
  count: number,
): void {
  if (count === 0) return;
  const incoming = left.subarray(i, i + count);
  if (out === left) {
    // Then the right operand is what came from another rank, in scratch memory.
    const inout = right.subarray(j, j + count);
    user(incoming, inout);
    (out as Uint8Array).set(inout as Uint8Array, k);
    return;
  }
  const inout = out.subarray(k, k + count);
  if (out !== right) (inout as Uint8Array).set(right.subarray(j, j + count) as Uint8Array);
  user(incoming, inout);
}

export function checkOp(op: unknown): Op {
  if (op instanceof Op) return op;
  throw new MultirailError('ERR_OP', `op is ${op === null ? 'null' : typeof op}; expected an Op, such as Op.SUM or that of Op.create()`);
}
