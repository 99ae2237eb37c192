// From what everybody has to the save that all go back to: inventories of all members go in, and the line with its givers comes out, the same
// at every member. The formula of paper 000 says what must be there; where it and the inventories differ, the inventories are right.
import { recoveryLine } from '../plan/recovery-line.ts';
import type { Placement } from './placement.ts';
import { compareSaves, type ImagePart, isSameSave, type Piece, type SaveName, type Slots } from './slots.ts';

/** An image that somebody has, of a committed save. */
export interface InventoryEntry extends SaveName {
  readonly owner: number;
  readonly bytes: number;
  readonly crc: number;
  /** As of a piece. */
  readonly parts?: readonly ImagePart[];
}

/** All that one member has; empty for one that is new. */
export type Inventory = readonly InventoryEntry[];

export function inventoryOf(rank: number, slots: Slots): Inventory {
  return slots.committed.flatMap(({ name, own, held }) => [
    ...(own === undefined ? [] : [entryOf(name, rank, own)]),
    ...[...held].map(([owner, piece]) => entryOf(name, owner, piece)),
  ]);
}

function entryOf({ epoch, k }: SaveName, owner: number, { bytes, crc, parts }: Piece): InventoryEntry {
  return { epoch, k, owner, bytes, crc, ...(parts === undefined ? {} : { parts }) };
}

/** Who sends whom an image. */
export interface Transfer extends InventoryEntry {
  readonly giver: number;
}

export interface RecoveryPlan {
  /** Undefined: no save can be read whole. */
  readonly line: SaveName | undefined;
  readonly transfers: readonly Transfer[];
  /** The formula says another save than the inventories, or that a save is lost which is there. */
  readonly differs: boolean;
}

/** Whether a member has a whole copy of that owner's part of the save. */
export function holdsOf(inventories: readonly Inventory[], line: SaveName): (holder: number, owner: number) => boolean {
  const held = inventories.map((list) => new Set(list.filter((entry) => isSameSave(entry, line)).map(({ owner }) => owner)));
  return (holder, owner) => held[holder].has(owner);
}

/** The newest committed save of which every rank's image is somewhere. */
export function planRecovery(inventories: readonly Inventory[], placement: Placement): RecoveryPlan {
  const names: SaveName[] = [];
  for (const { epoch, k } of inventories.flat()) if (!names.some((name) => isSameSave(name, { epoch, k }))) names.push({ epoch, k });
  names.sort((a, b) => compareSaves(b, a));
  const formula = lineByFormula(inventories, names, placement);
  for (const line of names) {
    const transfers = transfersOf(line, inventories, placement);
    if (transfers !== undefined) return { line, transfers, differs: formula !== undefined && formula.save !== line.k };
  }
  return { line: undefined, transfers: [], differs: formula?.save !== undefined };
}

function transfersOf(line: SaveName, inventories: readonly Inventory[], placement: Placement): Transfer[] | undefined {
  const transfers: Transfer[] = [];
  for (let owner = 0; owner < inventories.length; owner++) {
    const entryAt = (rank: number) => inventories[rank].find((entry) => entry.owner === owner && isSameSave(entry, line));
    if (entryAt(owner) !== undefined) continue;
    // The copy of lowest number first, as the formula has it; then whoever has one.
    const candidates = [...placement.holders(owner, line.k), ...inventories.keys()];
    const giver = candidates.find((rank) => entryAt(rank) !== undefined);
    if (giver === undefined) return undefined;
    transfers.push({ ...(entryAt(giver) as InventoryEntry), giver });
  }
  return transfers;
}

/**
 * The line by formula: each member that has nothing is a domain that failed. Undefined where the formula does not speak of what is there:
 * domains have several ranks, or a recovery was not long ago, so that not all have the same saves, or it was broken off by a further death, so
 * that a successor has its image and not yet the copies that it is to hold.
 */
function lineByFormula(
  inventories: readonly Inventory[],
  names: readonly SaveName[],
  placement: Placement,
): { save: number | undefined } | undefined {
  const newest = names[0];
  if (newest === undefined || placement.domains.some((ranks) => ranks.length > 1)) return undefined;
  const failed = [...inventories.keys()].filter((rank) => inventories[rank].length === 0);
  const hasAll = (rank: number): boolean =>
    names.every((name) =>
      [rank, ...placement.owners(rank, name.k)].every((owner) =>
        inventories[rank].some((entry) => entry.owner === owner && isSameSave(entry, name)),
      ),
    );
  if (names.some(({ epoch }) => epoch !== newest.epoch) || !inventories.every((list, rank) => list.length === 0 || hasAll(rank)))
    return undefined;
  return { save: recoveryLine(newest.k, failed, placement.scheme)?.save };
}
