// The memory of one rank's problem: matrix, panels and workspaces in one WebAssembly memory, so that the kernels of both kinds work on it
// in place and messages are sent from it and received into it without a copy. Places are handed out before the memory exists; they are
// counted in doubles.
import { MultirailError } from '../../src/errors.ts';
import { Wasm, type WasmMemory } from './webassembly.ts';

const DOUBLE = 8;
const PAGE_BYTES = 65_536;
/** What a WebAssembly memory of 32-bit addresses can hold. */
export const HEAP_BYTES_MAX = 65_536 * PAGE_BYTES;
/** Places begin at whole cache lines. */
const LINE_DOUBLES = 8;

/** Hands out places, in doubles from the start of the memory. */
export class HeapLayout {
  private end = 0;

  take(doubles: number): number {
    const place = this.end;
    this.end += Math.ceil(doubles / LINE_DOUBLES) * LINE_DOUBLES;
    return place;
  }

  /** For lists of i32. */
  takeInts(count: number): number {
    return this.take(Math.ceil(count / 2));
  }

  get bytes(): number {
    return this.end * DOUBLE;
  }
}

export class Heap {
  readonly memory: WasmMemory;
  readonly f64: Float64Array<ArrayBuffer>;
  private readonly i32: Int32Array<ArrayBuffer>;

  /** ERR_SUPPORT when it is more than HEAP_BYTES_MAX, or than the machine gives. */
  constructor(layout: HeapLayout) {
    const pages = Math.max(1, Math.ceil(layout.bytes / PAGE_BYTES));
    const mebibytes = Math.ceil(layout.bytes / 2 ** 20);
    if (layout.bytes > HEAP_BYTES_MAX) {
      throw new MultirailError(
        'ERR_SUPPORT',
        `the part of one rank takes ${mebibytes} MiB, and a rank can have ${HEAP_BYTES_MAX / 2 ** 20}: use more ranks or a smaller N`,
      );
    }
    try {
      this.memory = new Wasm.Memory({ initial: pages, maximum: pages });
    } catch (cause) {
      throw new MultirailError(
        'ERR_SUPPORT',
        `there is no memory for the part of one rank, ${mebibytes} MiB: use more ranks or a smaller N`,
        { cause },
      );
    }
    this.f64 = new Float64Array(this.memory.buffer);
    this.i32 = new Int32Array(this.memory.buffer);
  }

  /** Whether a layout has room here. */
  fits(layout: HeapLayout): boolean {
    return layout.bytes <= this.memory.buffer.byteLength;
  }

  /** A view of `count` doubles from a place on, for messages. */
  view(place: number, count: number): Float64Array<ArrayBuffer> {
    return this.f64.subarray(place, place + count);
  }

  /** Writes a list of i32 to a place of takeInts(). */
  writeInts(place: number, values: readonly number[]): void {
    this.i32.set(values, place * 2);
  }
}
