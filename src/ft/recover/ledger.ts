// What saves and recoveries of this rank have come to: counters for telemetry, and how much of its time was of use.
import type { SaveCounters } from '../../mpi/telemetry.ts';
import type { Placement } from '../checkpoint/placement.ts';
import type { RecoveryTotal } from './recovery.ts';

export class Ledger {
  private readonly beganMs = performance.now();
  private readonly counted = {
    ftSavesCommitted: 0,
    ftSavesAbandoned: 0,
    ftSaveBytes: 0,
    ftSaveMs: 0,
    ftRecoveries: 0,
    ftRecoveriesInPlace: 0,
    ftFailures: 0,
    ftLostSteps: 0,
  };
  private usefulMs = 0;
  /** Of that, what is in the newest save. */
  private savedMs = 0;
  private tolerance = 0;

  addStep(ms: number): void {
    this.usefulMs += ms;
  }

  /** The state was copied for a save. */
  copied(): number {
    return this.usefulMs;
  }

  /** `usefulMs`: what copied() said. */
  committed(bytes: number, durationMs: number, usefulMs: number): void {
    const { counted } = this;
    counted.ftSavesCommitted++;
    counted.ftSaveBytes += bytes;
    counted.ftSaveMs += durationMs;
    this.savedMs = usefulMs;
  }

  abandoned(): void {
    this.counted.ftSavesAbandoned++;
  }

  /** The program is called again: what it has done since the save is lost; all of it, where there is no save. */
  recovered(total: RecoveryTotal, hasSave: boolean, kind: 'in place' | 'all'): void {
    this.counted.ftRecoveries++;
    if (kind === 'in place') this.recoveredInPlace(total);
    else this.count(total);
    if (!hasSave) this.savedMs = 0;
    this.usefulMs = this.savedMs;
  }

  /** Only the dead have gone back. */
  recoveredInPlace(total: RecoveryTotal): void {
    this.counted.ftRecoveriesInPlace++;
    this.count(total);
  }

  private count({ failures, lostSteps }: RecoveryTotal): void {
    this.counted.ftFailures = failures;
    this.counted.ftLostSteps = lostSteps;
  }

  /** Copies are where this placement has them, on these hosts. */
  placed(placement: Placement, hosts: readonly string[]): void {
    this.tolerance = toleranceNow(placement, hosts);
  }

  /** `hasSave`: one is in memory now. */
  report(hasSave: boolean, notStored: number): SaveCounters {
    return {
      ...this.counted,
      ftSavesNotStored: notStored,
      ftSaveMs: Math.round(this.counted.ftSaveMs),
      ftToleranceLeft: hasSave ? this.tolerance : 0,
      ftUsefulMs: Math.round(this.usefulMs),
      ftElapsedMs: Math.round(performance.now() - this.beganMs),
    };
  }
}

/**
 * How many hosts may be lost, whichever they are, without losing an image of a save in memory; processes, where all are on one host. By where
 * ranks really are: a successor may run on a host that held another position already.
 */
export function toleranceNow(placement: Placement, hosts: readonly string[]): number {
  const isOneHost = new Set(hosts).size === 1;
  const unitOf = (rank: number): string | number => (isOneHost ? rank : hosts[rank]);
  let least = Number.POSITIVE_INFINITY;
  for (let k = 0; k < placement.scheme.depth; k++)
    for (const rank of hosts.keys()) least = Math.min(least, new Set([rank, ...placement.holders(rank, k)].map(unitOf)).size - 1);
  return least;
}
