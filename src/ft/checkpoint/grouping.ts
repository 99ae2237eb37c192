// Who has which images of a save once there are other ranks than those that made it: some were left out, or the job was started with another
// number. What goes in is the same at all members, and so is what comes out.
import type { InventoryEntry, Transfer } from './recovery-plan.ts';
import type { ImagePart } from './slots.ts';

/** By rank of now: the images of the save that this rank has, one after the other. */
export type Grouping = readonly (readonly ImagePart[])[];

/** The images in what a rank has of a save. */
export const partsOf = ({ owner, bytes, parts }: InventoryEntry): readonly ImagePart[] => parts ?? [{ rank: owner, bytes }];

/** Every rank has the one image that it has made itself: what each has can be restored where it is. */
export const isOwnEach = (grouping: Grouping): boolean => grouping.every((parts, rank) => parts.length === 1 && parts[0].rank === rank);

/** Images of the save: as many as ranks have made it. */
export const savedSizeOf = (grouping: Grouping): number => grouping.reduce((sum, { length }) => sum + length, 0);

/**
 * What each rank of now takes over of the save: its own part, and the parts of those that were left out of which it is the giver.
 *
 * @param entries Of the save: what each rank of before has made, by that rank.
 * @param transfers Whose part is given by whom, in ranks of before.
 * @param now By rank of before: its rank now; undefined: it was left out.
 * @param size Ranks of now.
 */
export function takenOver(
  entries: readonly InventoryEntry[],
  transfers: readonly Transfer[],
  now: readonly (number | undefined)[],
  size: number,
): InventoryEntry[][] {
  const taken: InventoryEntry[][] = Array.from({ length: size }, () => []);
  for (const entry of entries) {
    const keeper = transfers.find(({ owner }) => owner === entry.owner)?.giver ?? entry.owner;
    taken[now[keeper] as number].push(entry);
  }
  return taken;
}

/**
 * Who reads which image of a save in a store, with ranks other than those that made it. Images that several ranks see are dealt out in turn.
 *
 * @param lengths Of the images of the save, by rank that made them.
 * @param sees Whether a rank of now can read that image.
 * @param size Ranks of now.
 * @returns Undefined: nobody sees one of them.
 */
export function dealtOut(lengths: readonly number[], sees: (rank: number, image: number) => boolean, size: number): Grouping | undefined {
  const groups: ImagePart[][] = Array.from({ length: size }, () => []);
  for (const [image, bytes] of lengths.entries()) {
    const first = image % size;
    let at = 0;
    while (at < size && !sees((first + at) % size, image)) at++;
    if (at === size) return undefined;
    groups[(first + at) % size].push({ rank: image, bytes });
  }
  return groups;
}
