// What loss on the way does to a stream that repairs itself, as TCP does: nothing is lost, it comes late. The fault interposer and the
// simulator share it, so that both mean the same by a rail that loses a given percentage. A segment that is lost while others follow is
// missed at once, and costs a round trip. When its replacement is lost too, or nothing follows that could show the loss, the stream stops
// for a retransmission time-out, twice as long after each further loss: 200 ms, then 400 ms more, 800 ms more, and so on.
import type { Prng } from './prng.ts';

export const RETRANSMIT_TIMEOUT_MS = 200;
/** Times that the time-out doubles at most: the longest stall is 200 ms · (2^7 - 1), 25.4 s. */
const DOUBLINGS_MAX = 6;
export const SEGMENT_BYTES = 1448;
/** Segments of one frame that are reckoned with: beyond, only the chance of a loss would still grow. */
const SEGMENTS_MAX = 4096;

/** What became of a frame: it passed, it lost segments that were made good within a round trip, or its stream stands still for so long. */
export interface Loss {
  isRepaired: boolean;
  stallMs: number;
}

const PASSED: Loss = { isRepaired: false, stallMs: 0 };
const REPAIRED: Loss = { isRepaired: true, stallMs: 0 };

/** Loss is given in hundredths of a percent, so that a seed means the same everywhere. */
const PER = 10_000;
/** Chances are drawn as a whole number of this many. */
const RESOLUTION = 2 ** 30;

/** By repeated multiplication, which every machine rounds alike. */
function power(base: number, exponent: number): number {
  let product = 1;
  for (let i = 0; i < exponent; i++) product *= base;
  return product;
}

/**
 * Draws what becomes of a frame of that many bytes where `lossPer10k` of 10,000 segments are lost. `isFollowed`: more of the stream is under
 * way, so that a gap is noticed by what arrives behind it.
 */
export function drawLoss(prng: Prng, bytes: number, lossPer10k: number, isFollowed: boolean): Loss {
  if (lossPer10k <= 0) return PASSED;
  const chance = Math.min(1, lossPer10k / PER);
  const segments = Math.min(SEGMENTS_MAX, Math.max(1, Math.ceil(bytes / SEGMENT_BYTES)));
  const none = power(1 - chance, segments);
  const drawn = prng.below(RESOLUTION) / RESOLUTION;
  if (drawn < none) return PASSED;
  // Where something follows, only a loss of what is sent again stops the stream.
  const noneTwice = isFollowed || segments > 3 ? power(1 - chance * chance, segments) : none;
  if (drawn < noneTwice) return REPAIRED;
  let stallMs = RETRANSMIT_TIMEOUT_MS;
  let timeoutMs = RETRANSMIT_TIMEOUT_MS;
  for (let i = 0; i < DOUBLINGS_MAX && prng.chance(lossPer10k, PER); i++) {
    timeoutMs *= 2;
    stallMs += timeoutMs;
  }
  return { isRepaired: false, stallMs };
}
