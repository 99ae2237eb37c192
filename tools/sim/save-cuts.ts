// Which cut each committed save is of, as its ranks have it (F7).
import type { SaveName } from '../../src/ft/checkpoint/slots.ts';
import { OracleError } from './oracle.ts';

/** Of what a save was made. */
export interface Cut {
  readonly step: number;
  /** Which attempt it was made for. */
  readonly made: string;
}

export class Cuts {
  private readonly cuts = new Map<string, Cut>();
  /** By recovery epoch: the communicator in which it was begun last, and the processes that have begun it there. */
  private readonly begun = new Map<number, { readonly id: number; readonly processes: Set<number> }>();

  /**
   * A process begins a recovery epoch. Where all who knew of one have died, its number, and the names of its saves, may be used again: nobody
   * has anything that could be taken for the new ones.
   */
  begin(epoch: number, id: number, process: number, isAlive: (process: number) => boolean): void {
    const former = this.begun.get(epoch);
    if (former?.id === id) {
      former.processes.add(process);
      return;
    }
    const knows = [...(former?.processes ?? [])].find(isAlive);
    if (knows !== undefined)
      throw new OracleError(`F7: process ${process} begins epoch ${epoch} again, and process ${knows} lives, which has begun it before`);
    for (const key of [...this.cuts.keys()]) if (key.startsWith(`${epoch}-`)) this.cuts.delete(key);
    this.begun.set(epoch, { id, processes: new Set([process]) });
  }

  /** The cut of that save: what the first has that asks. */
  cutOf({ epoch, k }: SaveName, own: Cut): Cut {
    const key = `${epoch}-${k}`;
    const cut = this.cuts.get(key) ?? { step: own.step, made: own.made };
    this.cuts.set(key, cut);
    return cut;
  }
}
