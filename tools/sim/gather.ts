// Copies between gather or scatter lists and flat bytes, at any offset.
import { assert } from '../../src/util/assert.ts';

/** Memory that its caller fills, whole: clearing it first would take as long again. Nobody shares it. */
export function uninitialized(bytes: number): Uint8Array {
  return new Uint8Array(Buffer.allocUnsafeSlow(bytes).buffer);
}

/** A copy of `bytes` bytes of a gather list, from byte `from` on. */
export function gather(parts: readonly Uint8Array[], from: number, bytes: number): Uint8Array {
  const copy = uninitialized(bytes);
  let at = 0;
  let skip = from;
  for (const part of parts) {
    if (at === bytes) break;
    if (skip >= part.length) {
      skip -= part.length;
      continue;
    }
    const piece = part.subarray(skip, skip + bytes - at);
    copy.set(piece, at);
    at += piece.length;
    skip = 0;
  }
  assert(at === bytes, 'the gather list is shorter than it was when it was accepted');
  return copy;
}

/** Writes `chunk` at byte `from` of a scatter list; what lies beyond its end is dropped. */
export function scatter(views: readonly Uint8Array[], from: number, chunk: Uint8Array): void {
  let at = 0;
  let skip = from;
  for (const view of views) {
    if (at === chunk.length) return;
    if (skip >= view.length) {
      skip -= view.length;
      continue;
    }
    const piece = chunk.subarray(at, at + view.length - skip);
    view.set(piece, skip);
    at += piece.length;
    skip = 0;
  }
}
