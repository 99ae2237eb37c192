// Those who have committed together what the slots of the living hold, as far as they are among those who meet; and whose images each rank has
// from the line on. The same at all members.
import { type Grouping, partsOf, takenOver } from './grouping.ts';
import type { Inventory, InventoryEntry, RecoveryPlan } from './recovery-plan.ts';
import { isSameSave, type SaveName } from './slots.ts';

/** Those who have committed something together: slots are numbered by their ranks. */
export interface Membership {
  readonly rank: number;
  /** Failure domain of each rank. */
  readonly domains: readonly (string | number)[];
}

/** Those who have committed what the slots hold, as far as they are here. */
export interface Former {
  readonly domains: Membership['domains'];
  /** By their rank: their rank now, undefined where they were left out. */
  readonly now: readonly (number | undefined)[];
  readonly inventories: readonly Inventory[];
}

/** What a member tells of it. */
export interface FormerView {
  readonly inventory: Inventory;
  /** Undefined: it has committed nothing yet. */
  readonly membership: Membership | undefined;
}

/** Undefined: nobody has committed anything. */
export function formerOf(views: readonly FormerView[]): Former | undefined {
  const domains = views.find(({ membership }) => membership !== undefined)?.membership?.domains;
  if (domains === undefined) return undefined;
  const now = domains.map((_, rank) => {
    const at = views.findIndex(({ membership }) => membership?.rank === rank);
    return at < 0 ? undefined : at;
  });
  return { domains, now, inventories: now.map((at) => (at === undefined ? [] : views[at].inventory)) };
}

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
