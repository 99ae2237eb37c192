// The loops of reductions in the native part, for arrays that are worth the way there: the same results as those of kernels.ts, several
// elements at a time.
import { COMBINE, type NativeBinding } from '../../native/binding.ts';
import type { ArrayName, Kernel, TypedArray } from './kernels.ts';

/** Elements from which on the native loop is used. A call of it costs as much as some 100 elements in JavaScript. */
export const NATIVE_COMBINE_MIN = 256;

export type Combine = NativeBinding['combine'];

/** The operations that the native part knows, by name. */
const CODES: Readonly<Record<string, number | undefined>> = COMBINE;

/** The native kernels of one runtime. */
export class NativeKernels {
  private readonly combine: Combine;
  /** By operation and class; each is made once. */
  private readonly made: { [operation: string]: { [N in ArrayName]?: Kernel<TypedArray> } } = {};

  constructor(combine: Combine) {
    this.combine = combine;
  }

  /** The number of the operation of that name on arrays of that class; undefined where the native part does not know it. */
  codeOf(operation: string, array: ArrayName | undefined): number | undefined {
    // The C compilers of older machines have no type for it.
    return array === undefined || array === 'Float16Array' ? undefined : CODES[operation];
  }

  /** In place of `kernel`, which combines arrays of that class by the operation of that name and serves the short ones on. */
  kernelFor(operation: string, array: ArrayName, kernel: Kernel<TypedArray>): Kernel<TypedArray> {
    const code = this.codeOf(operation, array);
    if (code === undefined) return kernel;
    this.made[operation] ??= {};
    const ofOperation = this.made[operation];
    ofOperation[array] ??= this.wrap(code, kernel);
    return ofOperation[array];
  }

  private wrap(code: number, kernel: Kernel<TypedArray>): Kernel<TypedArray> {
    const { combine } = this;
    return (left, i, right, j, out, k, count) => {
      if (count < NATIVE_COMBINE_MIN) kernel(left, i, right, j, out, k, count);
      else combine(code, left, i, right, j, out, k, count);
    };
  }
}
