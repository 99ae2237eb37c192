// The states of one rank's saves: one table, every state with a sentence, every edge named, and the one function that moves between them.
import { assert } from '../../util/assert.ts';

export const SAVE_STATES = {
  IDLE: 'Nothing was saved yet in this epoch, and nothing is being saved.',
  QUIETING: 'The program has come to a save: it is waited until all ranks have, and nothing of theirs is on its way.',
  COPYING: 'The state is being copied into the slot; copies of other ranks are taken from now on.',
  SPREADING: 'The slot is whole and does not change any more: copies leave for their holders, and those to be held here come in.',
  VOTING: 'This rank has voted, and what all have decided is waited for.',
  COMMITTED: 'The last save is committed: it is one of those that all can go back to.',
  ABANDONED: 'The last save does not exist: its slot is free again.',
  RECOVERING: 'A decision has named failed members: this epoch is over, and slots are only read.',
  RESTORING: 'The members have met in a new epoch: they find the recovery line, and the new ones get their images.',
  ENDED: 'All have come to the end of the program: nobody needs a save any more.',
} as const;
export type SaveState = keyof typeof SAVE_STATES;

export const SAVE_EDGES: Readonly<Record<SaveState, readonly SaveState[]>> = {
  // → VOTING by a death, or because the program has ended; → RESTORING at the start, where there is a save or others have begun before.
  IDLE: ['QUIETING', 'VOTING', 'RESTORING', 'RECOVERING'],
  // → IDLE when the ranks have found together that it does not become quiet; → VOTING by a death.
  QUIETING: ['COPYING', 'IDLE', 'VOTING'],
  // → VOTING by a death, or when the state cannot be copied.
  COPYING: ['SPREADING', 'VOTING'],
  // → VOTING when the copies have come that are held here, by a death, or when one cannot be taken.
  SPREADING: ['VOTING'],
  // → IDLE when a new epoch begins with nothing to restore.
  VOTING: ['COMMITTED', 'ABANDONED', 'IDLE', 'ENDED'],
  COMMITTED: ['QUIETING', 'VOTING', 'RECOVERING'],
  ABANDONED: ['QUIETING', 'VOTING', 'RECOVERING'],
  RECOVERING: ['RESTORING'],
  // → SPREADING with what was restored; → VOTING where there was nothing, or by a death.
  RESTORING: ['SPREADING', 'VOTING'],
  ENDED: [],
};

/** Sees every transition: traces, and the oracle of the simulator. */
export interface SaveListener {
  onTransition?(rank: number, from: SaveState, to: SaveState): void;
}

/** The one door between states. */
export function moveSave(core: { state: SaveState; readonly rank: number }, to: SaveState, listener: SaveListener | undefined): void {
  const { state: from, rank } = core;
  if (!SAVE_EDGES[from].includes(to)) assert(false, `saves of rank ${rank}: no edge ${from} -> ${to}`);
  core.state = to;
  listener?.onTransition?.(rank, from, to);
}
