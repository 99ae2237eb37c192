// The states of one agreement at one member: one table, every state with a sentence, every edge named, and the one function that moves
// between them.
import { assert } from '../util/assert.ts';
import type { Bitmap } from './bitmap.ts';
import type { Value } from './values.ts';

export const AGREEMENT_STATES = {
  HELD: 'Messages of it have come and this member has not called yet: what they say is kept until it does.',
  GATHERING: 'Called. The leader waits for the STATE of every living member; an inner node of the tree waits for those of its subtree.',
  STATED: 'The STATE has gone towards the leader, and nothing of an older leader is taken any more; a PROPOSE is waited for.',
  LOCKED: 'The value that the leader proposes is held here; the ACK goes up when the subtree has it, and the DECIDE is waited for.',
  PROPOSING: 'This member leads: the value is out, and the ACK of every living member is waited for.',
  DECIDED: 'The value is final. It is kept for those that ask.',
  FORGOTTEN: 'Everybody has the value: nothing is kept of it.',
} as const;
export type AgreementState = keyof typeof AGREEMENT_STATES;

export const AGREEMENT_EDGES: Readonly<Record<AgreementState, readonly AgreementState[]>> = {
  // → GATHERING by the call; → DECIDED by a DECIDE that comes before it: this process succeeds one that had called.
  HELD: ['GATHERING', 'DECIDED'],
  // → STATED by the subtree's last STATE, or at once where messages go directly; → PROPOSING by the last member's STATE.
  GATHERING: ['STATED', 'PROPOSING', 'DECIDED'],
  // → LOCKED by PROPOSE; → GATHERING when it leads from now on, or by a new generation.
  STATED: ['LOCKED', 'GATHERING', 'DECIDED'],
  // → STATED when its leader is gone, → GATHERING when it leads instead, or by a new generation.
  LOCKED: ['STATED', 'GATHERING', 'DECIDED'],
  // → DECIDED by the last ACK, or when it hears that it is decided; → GATHERING by a new generation.
  PROPOSING: ['GATHERING', 'DECIDED'],
  // → FORGOTTEN when the next one of the series is decided, when the caller releases it, or when the communicator is freed.
  DECIDED: ['FORGOTTEN'],
  FORGOTTEN: [],
};

/** What happens to an agreement, as the coverage of the simulator counts it. */
export const AGREEMENT_EVENTS = [
  'begin',
  'STATE to us',
  'STATE to our leader',
  'STATE to another leader',
  'PROPOSE',
  'PROPOSE again',
  'PROPOSE of another leader',
  'ACK',
  'ACK to another leader',
  'DECIDE',
  'leader gone',
  'member gone',
  'generation',
  'release',
] as const;
export type AgreementEvent = (typeof AGREEMENT_EVENTS)[number];

/** What an agreement tells of itself in traces. */
export interface TracedAgreement {
  readonly state: AgreementState;
  /** `id/series/q`. */
  readonly name: string;
}

/** Sees every event, every transition and every value that is proposed: traces, and the oracle and coverage of the simulator. */
export interface AgreementListener {
  onEvent?(agreement: TracedAgreement, event: AgreementEvent): void;
  onTransition?(agreement: TracedAgreement, from: AgreementState, to: AgreementState): void;
  /** `contributors`: whose contributions the leader had; `isHeld`: the value is that of a lock, and not made of them. */
  onProposed?(agreement: TracedAgreement, value: Value, contributors: Bitmap, isHeld: boolean): void;
}

/** The one door between states of an agreement. */
export function moveAgreement(
  agreement: { state: AgreementState; readonly name: string },
  to: AgreementState,
  listener: AgreementListener | undefined,
): void {
  const { state: from, name } = agreement;
  if (!AGREEMENT_EDGES[from].includes(to)) assert(false, `agreement ${name}: no edge ${from} -> ${to}`);
  agreement.state = to;
  listener?.onTransition?.(agreement, from, to);
}
