// What the program's thread and that of the clock see both: how far the program is, and what other processes have answered.
import type { ClockReading } from './clock-socket.ts';

/** Of each other process: milliseconds, calls. */
const FIELDS = 2;

/** What travels to the thread. */
export interface ClockBuffers {
  readonly values: SharedArrayBuffer;
  readonly questions: SharedArrayBuffer;
}

export class ClockMemory {
  /** Of the program of this process: the calls that it has begun. */
  readonly calls: Float64Array;
  private readonly values: Float64Array;
  /** By process: the question that was answered last. */
  private readonly questions: Int32Array;

  constructor({ values, questions }: ClockBuffers) {
    this.calls = new Float64Array(values, 0, 1);
    this.values = new Float64Array(values, Float64Array.BYTES_PER_ELEMENT);
    this.questions = new Int32Array(questions);
  }

  /** For so many other processes. */
  static make(count: number): ClockBuffers {
    return {
      values: new SharedArrayBuffer((1 + FIELDS * count) * Float64Array.BYTES_PER_ELEMENT),
      questions: new SharedArrayBuffer(Math.max(1, count) * Int32Array.BYTES_PER_ELEMENT),
    };
  }

  /** By the thread of the clock. `index` of the other process. */
  write(index: number, question: number, { ms, calls }: ClockReading): void {
    this.values[FIELDS * index] = ms;
    this.values[FIELDS * index + 1] = calls;
    Atomics.store(this.questions, index, question);
  }

  /** The answer to that question or a later one; undefined: it has not come. */
  read(index: number, question: number): ClockReading | undefined {
    if (Atomics.load(this.questions, index) < question) return undefined;
    return { ms: this.values[FIELDS * index], calls: this.values[FIELDS * index + 1] };
  }
}
