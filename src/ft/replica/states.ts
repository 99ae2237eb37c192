// The states of a pair, and of a message at its lead. One table each, and the one function that moves between them. Pure.
import { assert } from '../../util/assert.ts';

/** Of a pair of replicas. */
export const PAIR_STATES = {
  PAIRED: 'All replicas run, and every message is compared before it leaves.',
  DIFFERING:
    'A message differs, and no majority is right: nothing leaves any more, and the lead waits for what the shadow would have sent.',
  DIVERGED: 'It is known how the replicas differ, and was told; nothing leaves any more.',
  FINISHING: 'The program of this replica has come to its end; messages that it has begun are still compared.',
  ALONE: 'No shadow is left: what the lead sends is compared with nothing any more.',
  FINISHED: 'All programs have come to their ends after the same messages.',
} as const;
export type PairState = keyof typeof PAIR_STATES;

const PAIR_EDGES: Readonly<Record<PairState, readonly PairState[]>> = {
  PAIRED: ['DIFFERING', 'DIVERGED', 'FINISHING', 'ALONE'],
  DIFFERING: ['DIVERGED'],
  DIVERGED: [],
  FINISHING: ['DIFFERING', 'DIVERGED', 'ALONE', 'FINISHED'],
  ALONE: ['DIVERGED', 'FINISHED'],
  FINISHED: ['DIVERGED'],
};

/** Of a message at the lead. */
export const MESSAGE_STATES = {
  UNVOUCHED: 'The lead has its digest; a word of a shadow has not come.',
  HELD: 'The word of a shadow is another one, and no majority is right: it does not leave.',
  OUTVOTED: 'Both shadows have the same other digest: it waits for their bytes, which are sent in place of those of the lead.',
  VOUCHED: 'The digests are equal, of three at least two: the bytes that they are of were given to the message layer.',
  ENDED: 'The message layer is through with it, and the outcome waits to be told to all replicas.',
} as const;
export type MessageState = keyof typeof MESSAGE_STATES;

const MESSAGE_EDGES: Readonly<Record<MessageState, readonly MessageState[]>> = {
  UNVOUCHED: ['HELD', 'OUTVOTED', 'VOUCHED'],
  HELD: [],
  OUTVOTED: ['VOUCHED'],
  VOUCHED: ['ENDED'],
  ENDED: [],
};

/** The next state of a pair; an edge that is not in the table is a mistake of this library. */
export function movePair(from: PairState, to: PairState): PairState {
  assert(PAIR_EDGES[from].includes(to), `a pair of replicas does not go from ${from} to ${to}`);
  return to;
}

/** The next state of a message at the lead. */
export function moveMessage(from: MessageState, to: MessageState): MessageState {
  assert(MESSAGE_EDGES[from].includes(to), `a message of a pair does not go from ${from} to ${to}`);
  return to;
}
