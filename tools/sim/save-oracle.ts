// What the oracle says of the slots of one rank, and of the line that all go back to.
import type { Former } from '../../src/ft/checkpoint/former.ts';
import type { Placement } from '../../src/ft/checkpoint/placement.ts';
import type { Inventory, RecoveryPlan } from '../../src/ft/checkpoint/recovery-plan.ts';
import { isSameSave, type SaveName } from '../../src/ft/checkpoint/slots.ts';
import { OracleError } from './oracle.ts';
import type { Saver } from './saver.ts';

/** F7: nothing committed is touched before as many newer ones are committed as stay readable. */
export function checkReadable({ core, readable, rank }: Saver): void {
  if (core === undefined || core.state === 'RESTORING' || core.state === 'ENDED') return;
  const text = (names: readonly SaveName[]): string => names.map(({ epoch, k }) => `${epoch}-${k}`).join(' ');
  const there = text(core.slots.committed.map(({ name }) => name));
  if (there !== text(readable))
    throw new OracleError(`F7: rank ${rank} can read ${there || 'nothing'} and must be able to read ${text(readable)}`);
}

/**
 * F7: as many as have copies elsewhere may be lost at once, and the newest save is restored; a successor that died or lives without the copies
 * that it is to hold is one of them, but nobody who has committed that save.
 *
 * @param newest The newest save that anybody has committed.
 * @param saverAt Of that rank of now.
 */
export function checkLine(
  { line, differs, former, placement }: Pick<RecoveryPlan, 'line' | 'differs'> & { former: Former; placement: Placement },
  newest: SaveName | undefined,
  saverAt: (rank: number) => Saver,
): void {
  if (differs) throw new OracleError(`F7: formula and inventories differ for ${JSON.stringify(line)}`);
  if (newest === undefined) return;
  const isWhole = (inventory: Inventory, rank: number): boolean =>
    [rank, ...placement.owners(rank, newest.k)].every((owner) =>
      inventory.some((entry) => entry.owner === owner && isSameSave(entry, newest)),
    );
  const broken = former.inventories.flatMap((inventory, rank) => (isWhole(inventory, rank) ? [] : [rank]));
  for (const rank of broken) {
    const now = former.now[rank];
    const committed = now === undefined ? undefined : saverAt(now).committed;
    if (committed !== undefined && isSameSave(committed, newest))
      throw new OracleError(`F7: rank ${rank} has committed ${JSON.stringify(newest)}, and lives without all of it`);
  }
  if (broken.length <= placement.scheme.duplication && (line === undefined || !isSameSave(line, newest)))
    throw new OracleError(`F7: ${broken.length} are lost, and ${JSON.stringify(line)} is restored instead of ${JSON.stringify(newest)}`);
}
