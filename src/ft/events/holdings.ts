// What a process holds of the recorded outcomes of others, so that their successors can obey them. Who holds whose is a matter of places, which
// do not change while a communicator lives: only the process in a place does. Pure.
import { assert } from '../../util/assert.ts';
import type { Batch, EventRecord } from './format.ts';

/** The records of one rank from number `base` on. */
export interface HeldRecords {
  readonly base: number;
  readonly records: readonly EventRecord[];
}

interface Held {
  epoch: number;
  base: number;
  records: EventRecord[];
  /** All that was recorded when this epoch began is in it. */
  isWhole: boolean;
}

export class Holdings {
  private readonly held = new Map<number, Held>();
  /** What was whole before an epoch began in which it is not yet. */
  private readonly former = new Map<number, Held>();

  /** Whoever it holds for begins with nothing recorded: that is all there is. */
  constructor(owners: Iterable<number>) {
    for (const owner of owners) this.expect(owner);
  }

  /**
   * A batch has come. Returns up to which number its owner's records are here now: what it is to be told. Those of an epoch come in order,
   * from the first on. Undefined: it is of an epoch that is over.
   */
  handleBatch({ owner, epoch, base, from, isWhole, records }: Batch): number | undefined {
    let held = this.held.get(owner);
    if (held === undefined || held.epoch < epoch) {
      if (held?.isWhole) this.former.set(owner, held);
      held = { epoch, base, records: [], isWhole: false };
      // The list begins where the batch does, and what comes before is not needed.
      assert(from === base, `records of rank ${owner} begin at ${from} in epoch ${epoch}, expected ${base}`);
      this.held.set(owner, held);
    }
    if (epoch < held.epoch) return undefined;
    const gone = Math.min(held.records.length, Math.max(0, base - held.base));
    held.records.splice(0, gone);
    held.base = Math.max(held.base, base);
    const end = held.base + held.records.length;
    assert(from === end, `records of rank ${owner} go on at ${from}, expected ${end}`);
    held.records.push(...records);
    if (isWhole) {
      held.isWhole = true;
      this.former.delete(owner);
    }
    return end + records.length;
  }

  /** That rank begins with nothing recorded, with this process as its first holder; some of it may have come already. */
  expect(owner: number): void {
    const held = this.held.get(owner);
    if (held === undefined) this.held.set(owner, { epoch: 0, base: 0, records: [], isWhole: true });
    else if (held.epoch === 0) held.isWhole = true;
  }

  /** All that may have had effects elsewhere of what that rank has recorded; undefined: that is not here. */
  recordsOf(owner: number): HeldRecords | undefined {
    const held = this.held.get(owner);
    if (held?.isWhole) return held;
    return this.former.get(owner);
  }

  /** Ranks whose records are here. */
  get owners(): number[] {
    return [...new Set([...this.held.keys(), ...this.former.keys()])].filter((owner) => this.recordsOf(owner) !== undefined);
  }
}
