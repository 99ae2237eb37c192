// States of a recovery in place at one member.
import { assert } from '../../util/assert.ts';

export const IN_PLACE_STATES = {
  IDLE: 'Nobody has died since the last recovery, or asynchronous recovery has not begun.',
  REPLACING: 'Those that live agree on who takes the places of the dead.',
  TELLING:
    'On the communicator of all members, the new ones included, each tells what it has: the save to begin with, and whether its log is whole.',
  FETCHING: 'New members get their images from whoever holds them.',
  SYNCING:
    'The streams of the dead are their successors’: each side of a pair with a new member tells what it has, and gets what it lacks.',
  STARTING_OVER: 'Another member has died meanwhile: its death is about to be decided.',
  BACK: 'Recovery in place is not possible: all go back, as in a coordinated recovery.',
} as const;
export type InPlaceState = keyof typeof IN_PLACE_STATES;

export const IN_PLACE_EDGES: Readonly<Record<InPlaceState, readonly InPlaceState[]>> = {
  // → REPLACING by a decision that names failed members. → TELLING: a process that was called in, or has gone back, meets the others.
  IDLE: ['REPLACING', 'TELLING'],
  // The job ends where too few processes stand by.
  REPLACING: ['TELLING'],
  TELLING: ['FETCHING', 'STARTING_OVER', 'BACK'],
  FETCHING: ['SYNCING', 'STARTING_OVER', 'BACK'],
  SYNCING: ['IDLE', 'STARTING_OVER'],
  STARTING_OVER: ['REPLACING'],
  // At once: the coordinated recovery has states of its own (save-states.ts).
  BACK: ['IDLE'],
};

/** The one door between states. */
export function moveInPlace(machine: { state: InPlaceState }, to: InPlaceState): void {
  assert(IN_PLACE_EDGES[machine.state].includes(to), `no edge ${machine.state} -> ${to} of a recovery in place`);
  machine.state = to;
}
