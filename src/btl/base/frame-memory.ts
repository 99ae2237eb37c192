// Memory of frames: slabs in which those of a rail are put one behind the other until they are written, lent from flush to flush so that an
// idle rail holds none; and what pads a PROBE.
import { EMPTY_BYTES } from '../../util/iov.ts';
import type { Frame } from '../btl.ts';
import { PROBE_PADDING_BYTES_MAX } from './frame-hdr.ts';

const SLAB_BYTES = 64 * 1024;
/** This many wait for the next rail that has something to say. */
const SLABS_KEPT_MAX = 16;

export interface Slab {
  bytes: Uint8Array;
  view: DataView;
}
export const NO_SLAB: Slab = { bytes: EMPTY_BYTES, view: new DataView(new ArrayBuffer(0)) };

const freeSlabs: Slab[] = [];

export function takeSlab(): Slab {
  const free = freeSlabs.pop();
  if (free !== undefined) return free;
  const bytes = new Uint8Array(SLAB_BYTES);
  return { bytes, view: new DataView(bytes.buffer) };
}

/** False when enough are kept already: then the caller goes on with this one. */
export function giveBackSlab(slab: Slab): boolean {
  if (freeSlabs.length >= SLABS_KEPT_MAX) return false;
  freeSlabs.push(slab);
  return true;
}

/** What pads a PROBE: made when the first one needs it. */
let padding = EMPTY_BYTES;

export function paddingOf(bytes: number): Frame {
  if (padding.length === 0) padding = new Uint8Array(PROBE_PADDING_BYTES_MAX);
  return {
    header: EMPTY_BYTES,
    payload: [padding.subarray(0, bytes)],
    payloadBytes: bytes,
    placed: false,
    prompt: false,
    railFrameNumber: 0,
  };
}
