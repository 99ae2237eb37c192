// How the images that a rank goes back to lie in memory.
import { crc32c } from '../../native/crc32c.ts';
import { type Grouping, isOwnEach } from '../checkpoint/grouping.ts';
import type { ImagePart, Piece } from '../checkpoint/slots.ts';
import { decodeImage } from '../image/decode.ts';

/** As a piece has them: not told of the one image of its owner. */
export function partsToTell(grouping: Grouping, owner: number): readonly ImagePart[] | undefined {
  return isOwnEach(grouping) ? undefined : grouping[owner];
}

/** Reads all images in a piece: every byte of them is looked at. */
export function imagesIn(piece: Piece, parts: readonly ImagePart[]): ReturnType<typeof decodeImage>[] {
  let at = 0;
  return parts.map(({ bytes }) => {
    const from = at;
    at += bytes;
    return decodeImage((piece.memory as Uint8Array).subarray(from, at), crc32c);
  });
}
