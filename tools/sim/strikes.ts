// Deaths that wait for a state: whoever comes to it as the n-th dies.
import type { SaveState } from '../../src/ft/checkpoint/save-states.ts';

/** States of a save, and the moment in which fewer ranks than before take over what those had saved. */
export type Struck = SaveState | 'REGROUPED';

export class Strikes {
  private readonly waiting: { readonly state: Struck; left: number; readonly afterUs: number }[] = [];

  /** Whoever comes to this state as the `nth` dies so much later. */
  arm(state: Struck, nth: number, afterUs: number): void {
    this.waiting.push({ state, left: nth, afterUs });
  }

  /** Somebody has come to this state. Returns after what times he dies. */
  comeTo(state: Struck): number[] {
    return this.waiting.filter((strike) => strike.state === state && --strike.left === 0).map(({ afterUs }) => afterUs);
  }
}
