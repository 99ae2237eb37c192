// One call of an agreement, or of replace(), as its caller sees it: under way until the decision is there. It stands behind promises, requests
// and blocking calls alike.
import type { MultirailError } from '../../errors.ts';
import type { Awaited } from '../../progress/blocking.ts';
import type { Value } from '../../ulfm/values.ts';

export class AgreementCall<T, V = Value> implements Awaited {
  readonly kind = 'collective';
  done = false;
  error: MultirailError | undefined;
  /** What the caller gets, once it has ended well. */
  result: T | undefined;
  /** Called once, from within a turn of the engine. */
  onDone: (() => void) | undefined;
  private readonly read: (value: V) => T;
  private readonly onEnd: (() => void) | undefined;

  /**
   * `read` makes of the decision what the caller gets; what it throws is the error of the call. `onEnd` is called when it has ended, well or
   * not, before the caller is told.
   */
  constructor(read: (value: V) => T, onEnd?: () => void) {
    this.read = read;
    this.onEnd = onEnd;
  }

  decide(value: V): void {
    if (this.done) return;
    try {
      this.result = this.read(value);
    } catch (error) {
      this.error = error as MultirailError;
    }
    this.end();
  }

  fail(error: MultirailError): void {
    if (this.done) return;
    this.error = error;
    this.end();
  }

  private end(): void {
    this.done = true;
    this.onEnd?.();
    this.onDone?.();
  }
}
