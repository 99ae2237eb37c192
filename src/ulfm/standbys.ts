// The pool of processes that stand by: who waits for the place of a dead one, and who of them takes which place. Everybody fills it from the
// same series of news, so all have the same one sooner or later; an agreement decides by that of its leader.
import { OPERATION, type Operation, type Succession } from './values.ts';

export class Standbys {
  private readonly waiting = new Set<number>();
  private readonly isGone: (number: number) => boolean;

  /** `isGone`: the process is dead, or has left. */
  constructor(isGone: (number: number) => boolean) {
    this.isGone = isGone;
  }

  /** That process waits to be called in, or does not wait any more. Returns whether that is news. */
  set(number: number, isWaiting: boolean): boolean {
    if (this.waiting.has(number) === isWaiting) return false;
    if (isWaiting) this.waiting.add(number);
    else this.waiting.delete(number);
    return true;
  }

  /** Numbers of those that wait and live, as far as it is known here, ascending. */
  get ready(): number[] {
    return [...this.waiting].filter((number) => !this.isGone(number)).sort((a, b) => a - b);
  }

  /**
   * Who takes the places of these failed ranks, ascending: the lowest number first. With REPLACE_ALL there is a successor for every one of
   * them or for none. `excluded`: those that are members already, or cannot come.
   */
  choose(operation: Operation, failed: readonly number[], excluded: (number: number) => boolean): Succession[] {
    if (operation !== OPERATION.REPLACE_ALL && operation !== OPERATION.REPLACE_SOME) return [];
    const ready = this.ready.filter((number) => !excluded(number));
    if (operation === OPERATION.REPLACE_ALL && ready.length < failed.length) return [];
    return failed.slice(0, ready.length).map((rank, i) => ({ rank, number: ready[i] }));
  }
}
