// What a blocking call of a program that has just begun, or one on a crowded host, does between two polls while all that may come is written into
// memory: it looks, in the native part, at the words that change when something comes. Code that V8 has not compiled yet takes microseconds for
// each poll; and what polls often is compiled first, by threads that want the very processors of the ranks.
import type { BtlModule, WatchedWords } from '../btl/btl.ts';
import { type NativeBinding, WATCH, WATCHED_MAX } from '../native/binding.ts';
import type { MemoryWaits } from './engine-types.ts';

/** What it uses of the engine. */
export interface WatchedEngine {
  readonly memoryModules: readonly BtlModule[] | undefined;
  readonly memoryWaits: Pick<MemoryWaits, 'isWaiting' | 'watch'> | undefined;
  readonly pml: { readonly hasWork: boolean };
  timePassed(): void;
}

/** Looks between two polls where nothing comes, some ten microseconds; and between two offers of the processor, some two. */
export const LOOKS = 256;
export const LOOKS_PER_YIELD = 64;
/** The same where ranks are more than processors: each look is followed by an offer. */
export const CROWDED_LOOKS = 8;
/**
 * Between two readings of the clock in a spin, or for an offer of the processor: longer means that another process had the processor. It
 * keeps it for a slice of about 3 ms; pauses of our own (garbage collection, compilation) are shorter.
 */
export const TAKEN_AWAY_MS = 2;
/**
 * Waits of a process in which it is looked in this way. Later on V8 has compiled what polls, which then finds several things at once where much
 * comes: a stream of long messages is faster for it.
 */
const COLD_WAITS = 1024;

export class MemoryWatch implements WatchedWords {
  private readonly engine: WatchedEngine;
  private readonly native: Pick<NativeBinding, 'watchWords'>;
  private readonly words: Int32Array[] = [];
  private readonly places = new Int32Array(2 * WATCHED_MAX);
  private count = 0;
  private begun = 0;
  /** How the last one ended: something has come; another process has taken an offer of the processor for longer than TAKEN_AWAY_MS. */
  hasChanged = false;
  wasTakenAway = false;

  constructor(engine: WatchedEngine, native: Pick<NativeBinding, 'watchWords'>) {
    this.engine = engine;
    this.native = native;
  }

  /** A call begins to wait; true: it can be looked in memory for what it waits for, and its polls are not compiled yet. */
  beginsCold(): boolean {
    if (this.begun === COLD_WAITS || this.engine.memoryModules === undefined) return false;
    this.begun++;
    return true;
  }

  /**
   * Looks until something has come, `looks` times at most, and offers the processor after each `looksPerYield` of them. False, without a look:
   * there is something to do now, or what is waited for may come by another way.
   */
  wait(looks: number, looksPerYield: number): boolean {
    const { memoryModules, memoryWaits, pml } = this.engine;
    if (memoryModules === undefined || pml.hasWork) return false;
    this.count = 0;
    for (let i = 0; i < memoryModules.length; i++) if (memoryModules[i].watch?.(this) !== true) return false;
    if (memoryWaits?.isWaiting === true && !memoryWaits.watch(this)) return false;
    if (this.count === 0) return false;
    const end = this.native.watchWords(this.words, this.places, this.count, looks, looksPerYield, TAKEN_AWAY_MS);
    this.hasChanged = end === WATCH.CHANGED;
    this.wasTakenAway = end === WATCH.TAKEN_AWAY;
    if (!this.hasChanged) this.engine.timePassed();
    return true;
  }

  add(words: Int32Array, at: number, seen: number): boolean {
    const { count } = this;
    if (count === WATCHED_MAX) return false;
    this.words[count] = words;
    this.places[2 * count] = at;
    this.places[2 * count + 1] = seen;
    this.count = count + 1;
    return true;
  }
}
