// Puts and gets as requests of a queue pair: one request reaches a single piece of the peer's memory, and a few pieces of this side's.
import type { OneSidedOp } from '../btl.ts';
import type { Window } from './verbs-hdr.ts';

export interface OneSidedRequest {
  address: bigint;
  rkey: number;
  pieces: Uint8Array[];
}

/** `bytesMax`: of one request; `piecesMax`: of ours in it. Undefined when the operation reaches beyond the window. */
export function cutToRequests(op: OneSidedOp, window: Window, bytesMax: number, piecesMax: number): OneSidedRequest[] | undefined {
  const requests: OneSidedRequest[] = [];
  let skip = op.remoteOffset;
  let local = 0;
  let localAt = 0;
  let left = op.bytes;
  /** At most `bytes` of our memory, from where the last call ended. */
  const take = (bytes: number): Uint8Array[] => {
    const pieces: Uint8Array[] = [];
    for (let room = bytes; room > 0 && pieces.length < piecesMax; ) {
      const view = op.local[local];
      const taken = Math.min(view.length - localAt, room);
      if (taken > 0) pieces.push(view.subarray(localAt, localAt + taken));
      localAt += taken;
      room -= taken;
      if (localAt === view.length) {
        local++;
        localAt = 0;
      }
    }
    return pieces;
  };
  for (const piece of window.pieces) {
    if (skip >= piece.bytes) {
      skip -= piece.bytes;
      continue;
    }
    let from = skip;
    skip = 0;
    while (left > 0 && from < piece.bytes) {
      const pieces = take(Math.min(piece.bytes - from, left, bytesMax));
      const bytes = pieces.reduce((sum, view) => sum + view.length, 0);
      requests.push({ address: piece.address + BigInt(from), rkey: piece.rkey, pieces });
      from += bytes;
      left -= bytes;
    }
  }
  return left === 0 ? requests : undefined;
}
