// Invariants, checked in production too.
import { MultirailError } from '../errors.ts';

/** Throws ERR_INTERNAL when an invariant of ours is broken. Never used for what a caller or a peer can cause. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new MultirailError('ERR_INTERNAL', message);
}
