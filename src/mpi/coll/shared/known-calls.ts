// The calls in one step that a communicator has made last. Programs make a few calls with the same buffers again and again: their arguments are
// looked at once.
import type { AtOnce } from './at-once.ts';

/** A call as coll/calls.ts makes it. */
interface Made {
  readonly atOnce?: AtOnce | undefined;
}

interface KnownCall {
  readonly make: unknown;
  readonly args: readonly unknown[];
  readonly call: Made;
}

const KNOWN_MAX = 4;

export class KnownCalls {
  private readonly known: KnownCall[] = [];
  private next = 0;

  /** The call that was made of the same arguments, if its buffers are what they were. */
  find<C extends Made>(make: unknown, args: readonly unknown[]): C | undefined {
    const { known } = this;
    for (let i = 0; i < known.length; i++) {
      const one = known[i];
      if (one.make === make && areSame(one.args, args)) return isIntact(one.call.atOnce as AtOnce) ? (one.call as C) : undefined;
    }
    return undefined;
  }

  /** `call` is one in one step. */
  keep(make: unknown, args: readonly unknown[], call: Made): void {
    // An array of parts may hold others the next time.
    if (args.some(Array.isArray)) return;
    this.known[this.next] = { make, args, call };
    this.next = (this.next + 1) % KNOWN_MAX;
  }

  forget(): void {
    this.known.length = 0;
    this.next = 0;
  }
}

function areSame(a: readonly unknown[], b: readonly unknown[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/** A buffer may have been detached, or made shorter, since. */
const isIntact = ({ own, ownBytes, bytes, out }: AtOnce): boolean =>
  own.length === ownBytes && (out === undefined || out.byteLength === bytes);
