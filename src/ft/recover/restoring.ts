// What follows from the line that all go back to: whose images each rank has from now on, and how they lie in memory.
import { crc32c } from '../../native/crc32c.ts';
import { type Grouping, isOwnEach, partsOf, takenOver } from '../checkpoint/grouping.ts';
import type { InventoryEntry, RecoveryPlan } from '../checkpoint/recovery-plan.ts';
import { type ImagePart, isSameSave, type Piece, type SaveName } from '../checkpoint/slots.ts';
import { decodeImage } from '../image/decode.ts';
import type { Former } from './meeting.ts';

/** What each member of before has made of the save, by its rank. */
export function entriesOf(line: SaveName, { inventories }: Former): InventoryEntry[] {
  return inventories.map(
    (_, owner) => inventories.flat().find((entry) => entry.owner === owner && isSameSave(entry, line)) as InventoryEntry,
  );
}

/** The images of a save in memory that each rank has once all have what the plan gives them. */
export function groupingOf(line: SaveName, { transfers }: RecoveryPlan, former: Former, size: number, isSame: boolean): Grouping {
  const entries = entriesOf(line, former);
  if (isSame) return entries.map(partsOf);
  return takenOver(entries, transfers, former.now, size).map((taken) => taken.flatMap(partsOf));
}

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
