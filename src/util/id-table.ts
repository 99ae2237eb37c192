// Ids of messages: slot + u32 generation, never a pointer. A retired generation is its own tombstone: a late packet that names it is
// recognised although nothing is kept.
import { assert } from './assert.ts';

/** What a look-up of an id from the wire can find. */
export type Lookup<T> = { found: T } | 'retired' | 'never-issued';

const GENERATION_MAX = 0xffff_ffff;

/** Records by slot and generation. Generations of a slot only grow; a slot whose generations are used up is never used again. */
export class IdTable<T> {
  private readonly records: (T | undefined)[] = [];
  private readonly generations: number[] = [];
  private readonly free: number[] = [];
  private live = 0;

  get size(): number {
    return this.live;
  }

  /** Returns the slot; its generation is then generationOf(slot). */
  add(record: T): number {
    let slot = this.free.pop();
    if (slot === undefined) {
      slot = this.records.length;
      this.records.push(undefined);
      this.generations.push(0);
    }
    this.generations[slot]++;
    this.records[slot] = record;
    this.live++;
    return slot;
  }

  generationOf(slot: number): number {
    return this.generations[slot];
  }

  retire(slot: number, generation: number): void {
    if (this.generations[slot] !== generation || this.records[slot] === undefined) assert(false, `id ${slot}.${generation} retired twice`);
    this.records[slot] = undefined;
    this.live--;
    if (generation < GENERATION_MAX) this.free.push(slot);
  }

  lookup(slot: number, generation: number): Lookup<T> {
    if (slot >= this.records.length || generation === 0 || generation > this.generations[slot]) return 'never-issued';
    const record = this.records[slot];
    if (generation < this.generations[slot] || record === undefined) return 'retired';
    return { found: record };
  }

  *values(): IterableIterator<T> {
    for (const record of this.records) if (record !== undefined) yield record;
  }
}
