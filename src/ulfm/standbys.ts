// The pool of processes that stand by: who waits for the place of a dead one, and who of them takes which place. Everybody fills it from the
// same series of news, so all have the same one sooner or later; an agreement decides by that of its leader.
import { OPERATION, type Operation, type Succession } from './values.ts';

export class Standbys {
  private readonly waiting = new Set<number>();
  /** Called in: it may have a place, or be about to wait again, because others have died before all had come. */
  private readonly called = new Set<number>();
  /** It has a place, and never waits again. */
  private readonly placed = new Set<number>();
  private readonly isGone: (number: number) => boolean;

  /** `isGone`: the process is dead, or has left. */
  constructor(isGone: (number: number) => boolean) {
    this.isGone = isGone;
  }

  /** That process waits to be called in, or has been called in. Returns whether that is news. */
  set(number: number, isWaiting: boolean): boolean {
    if (this.placed.has(number) || this.waiting.has(number) === isWaiting) return false;
    const [from, to] = isWaiting ? [this.called, this.waiting] : [this.waiting, this.called];
    from.delete(number);
    to.add(number);
    return true;
  }

  /** That process has its place, whatever is still told of it. */
  place(number: number): void {
    this.placed.add(number);
    this.waiting.delete(number);
    this.called.delete(number);
  }

  /** These have places: those of them that are known here to stand by wait no more. Others may be of the start, and never have. */
  placeKnown(numbers: readonly number[]): void {
    for (const number of numbers) if (this.waiting.has(number) || this.called.has(number)) this.place(number);
  }

  /** Numbers of those that wait and live, as far as it is known here, ascending. */
  get ready(): number[] {
    return this.livingOf(this.waiting);
  }

  /** Numbers of all that live and stand by, or did so once. */
  get all(): number[] {
    return this.livingOf(new Set([...this.waiting, ...this.called, ...this.placed]));
  }

  private livingOf(numbers: ReadonlySet<number>): number[] {
    return [...numbers].filter((number) => !this.isGone(number)).sort((a, b) => a - b);
  }

  /**
   * Who takes the places of these failed ranks, ascending: the lowest number first. With REPLACE_ALL there is a successor for every one of
   * them or for none. `excluded`: those that are members already, or cannot come.
   *
   * Where too few wait, those that were called in are asked, too: the word that one waits again, after an attempt that failed, travels more
   * slowly than the next attempt. One that has a place says that it cannot come, and is excluded from then on.
   */
  choose(operation: Operation, failed: readonly number[], excluded: (number: number) => boolean): Succession[] {
    if (operation !== OPERATION.REPLACE_ALL && operation !== OPERATION.REPLACE_SOME) return [];
    const able = [...this.ready, ...this.livingOf(this.called)].filter((number) => !excluded(number)).slice(0, failed.length);
    if (operation === OPERATION.REPLACE_ALL && able.length < failed.length) return [];
    return able.sort((a, b) => a - b).map((number, i) => ({ rank: failed[i], number }));
  }
}
