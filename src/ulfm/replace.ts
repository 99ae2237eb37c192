// Processes that stand by take the places of the dead. Two machines, each a table of states: the members' call, which goes from agreement to
// agreement until everybody is in the new communicator, and the standby's role, from waiting to its place. docs/internals/ULFM.md has the
// rules: a value of the old communicator names the successors, and an agreement of the new one, JOIN, says whether all have come.
import { MultirailError } from '../errors.ts';
import { assert } from '../util/assert.ts';
import { Bitmap } from './bitmap.ts';
import type { Call, Decision, OpenOptions } from './communicator.ts';
import type { Standbys } from './standbys.ts';
import { isOneOperation, OPERATION, type Operation, type Value } from './values.ts';
import { type CalledInMessage, SERIES, type SeriesNumber } from './wire.ts';

const ALL_BITS = 0xffff_ffff;
/** In the flag of REPLACE ALL: this member would wait for standbys that are on their way. The other bits are the recovery epoch. */
const AWAITS = 0x8000_0000;

/** What both machines do at their process. */
export interface ReplaceHost {
  readonly self: number;
  readonly standbys: Standbys;
  membersOf(id: number): readonly number[];
  epochOf(id: number): number;
  open(id: number, members: readonly number[], options: OpenOptions): void;
  free(id: number, isClean: boolean): void;
  nextOf(id: number, series: SeriesNumber): number;
  begin(id: number, series: SeriesNumber, call: Call): number;
  /** Where too few stand by: this process expects more, and would wait for them. */
  awaitsStandbys(id: number): boolean;
}

/** Members of the communicator that a decision of shrink() or replace() makes: process numbers by rank. */
export function membersAfter(members: readonly number[], { failed, successions }: Value): number[] {
  const successors = new Map(successions.map(({ rank, number }) => [rank, number]));
  return members.map((number, rank) => successors.get(rank) ?? (failed.has(rank) ? -1 : number)).filter((number) => number >= 0);
}

const epochIn = ({ flag }: Value): number => flag & ~AWAITS;

/** Everybody is in the communicator that this decision of JOIN is about. */
function isWhole({ failed, acked }: Value): boolean {
  return failed.count === 0 && acked.count === acked.size;
}

// ---------------------------------------------------------------- the members' call

export const REPLACE_STATES = {
  AGREEING: 'The members of the old communicator agree on who has failed and who takes their places.',
  AWAITING: 'Too few stand by, and all members expect more: the next agreement begins when resume() is called.',
  JOINING: 'The new communicator is there; its members, the successors among them, agree on whether all are in it.',
  ENDED: 'It is made, or cannot be.',
} as const;
export type ReplaceState = keyof typeof REPLACE_STATES;

const REPLACE_EDGES: Readonly<Record<ReplaceState, readonly ReplaceState[]>> = {
  // → JOINING by a decision that names successors; → ENDED by one that names none: too few, or nobody has failed; → AWAITING by too few where all would wait.
  AGREEING: ['JOINING', 'AWAITING', 'ENDED'],
  AWAITING: ['AGREEING'],
  // → AGREEING when somebody has died, or could not come; → ENDED when all are there.
  JOINING: ['AGREEING', 'ENDED'],
  ENDED: [],
};

/** How a call of replace() has ended, the same at all members. */
export interface Replacement {
  /** The communicator that it was called on, and the number that beginReplace() returned. */
  readonly id: number;
  readonly ticket: number;
  /** What the old communicator has decided last. */
  readonly value: Value;
  /** The new communicator: process numbers by rank, and how many recoveries have led to it. Undefined: the value says why there is no such. */
  readonly made:
    | { readonly id: number; readonly members: readonly number[]; readonly epoch: number; readonly hasSuccessors: boolean }
    | undefined;
}

interface ReplaceCall {
  state: ReplaceState;
  readonly id: number;
  readonly operation: Operation;
  readonly ticket: number;
  /** Called in, and could not come. */
  readonly excluded: Set<number>;
  value: Value | undefined;
}

const keyOf = (id: number, q: number): string => `${id}/${q}`;

export class Replacements {
  /** Calls that have ended since the driver took them last. */
  readonly ended: Replacement[] = [];
  /** Communicators whose call waits for standbys since the driver took them last: it calls resume() when there may be more, or after a while. */
  readonly awaiting: number[] = [];
  private readonly paused = new Map<number, ReplaceCall>();
  private readonly host: ReplaceHost;
  private readonly calls = new Map<string, ReplaceCall>();

  constructor(host: ReplaceHost) {
    this.host = host;
  }

  /** Begins a call, and returns its first agreement, by which the outcome is known. */
  begin(id: number, operation: Operation): number {
    const ticket = this.host.nextOf(id, SERIES.PROGRAM);
    const call: ReplaceCall = { state: 'AGREEING', id, operation, ticket, excluded: new Set(), value: undefined };
    this.agree(call);
    return call.ticket;
  }

  /** Processes that cannot be called in on behalf of that communicator, because they have said so. */
  isExcluded(id: number, number: number): boolean {
    for (const call of this.calls.values()) if (call.id === id && call.excluded.has(number)) return true;
    return false;
  }

  /** It is a call's decision, to be handed to take(). */
  awaits({ id, series, q }: Decision): boolean {
    return series === SERIES.PROGRAM && this.calls.has(keyOf(id, q));
  }

  take({ id, q, value }: Decision): void {
    const key = keyOf(id, q);
    const call = this.calls.get(key) as ReplaceCall;
    this.calls.delete(key);
    if (call.state === 'AGREEING') this.takeAgreed(call, q, value);
    else this.takeJoined(call, id, value);
  }

  private listenFor(call: ReplaceCall, id: number): void {
    this.calls.set(keyOf(id, this.host.nextOf(id, SERIES.PROGRAM)), call);
  }

  private agree(call: ReplaceCall): void {
    const { id, operation } = call;
    const { host } = this;
    // It must be known before it begins: alone, it is decided at once.
    this.listenFor(call, id);
    const awaits = operation === OPERATION.REPLACE_ALL && host.awaitsStandbys(id) ? AWAITS : 0;
    host.begin(id, SERIES.PROGRAM, { operation, flag: (host.epochOf(id) + 1) | awaits });
  }

  /** A call that waits for standbys agrees again. Every member does so: it need not be at the same time. */
  resume(id: number): void {
    const call = this.paused.get(id);
    if (call === undefined) return;
    this.paused.delete(id);
    this.move(call, 'AGREEING');
    this.agree(call);
  }

  private takeAgreed(call: ReplaceCall, q: number, value: Value): void {
    const { host } = this;
    const { id, operation } = call;
    call.value = value;
    const lacks = operation === OPERATION.REPLACE_ALL && value.successions.length < value.failed.count;
    const isOne = isOneOperation(value.operations);
    // Whether anybody waits is decided, too: so all wait, or none.
    if (isOne && lacks && (value.flag & AWAITS) !== 0) {
      this.move(call, 'AWAITING');
      this.paused.set(id, call);
      this.awaiting.push(id);
      return;
    }
    if (!isOne || lacks) return this.end(call, undefined);
    const members = membersAfter(host.membersOf(id), value);
    const { newId, successions } = value;
    const epoch = epochIn(value);
    if (successions.length === 0) return this.end(call, { id: newId, members, epoch, hasSuccessors: false });
    this.move(call, 'JOINING');
    const newcomers = successions.map(({ number }) => members.indexOf(number));
    host.open(newId, members, { epoch, callIn: { origin: id, q, newcomers } });
    this.listenFor(call, newId);
    host.begin(newId, SERIES.PROGRAM, { operation: OPERATION.JOIN, flag: ALL_BITS, acked: Bitmap.full(members.length) });
  }

  private takeJoined(call: ReplaceCall, newId: number, joined: Value): void {
    const { host } = this;
    const { value } = call;
    assert(value !== undefined, 'a communicator is joined that nobody has decided on');
    const members = host.membersOf(newId);
    if (isWhole(joined)) {
      for (const { number } of value.successions) host.standbys.place(number);
      return this.end(call, { id: newId, members, epoch: epochIn(value), hasSuccessors: true });
    }
    for (const [rank, number] of members.entries()) if (!joined.acked.has(rank)) call.excluded.add(number);
    host.free(newId, false);
    this.move(call, 'AGREEING');
    this.agree(call);
  }

  private end(call: ReplaceCall, made: Replacement['made']): void {
    this.move(call, 'ENDED');
    this.ended.push({ id: call.id, ticket: call.ticket, value: call.value as Value, made });
  }

  private move(call: ReplaceCall, to: ReplaceState): void {
    assert(REPLACE_EDGES[call.state].includes(to), `replace() on communicator ${call.id}: no edge ${call.state} -> ${to}`);
    call.state = to;
  }
}

// ---------------------------------------------------------------- the standby's role

export const STANDBY_STATES = {
  WAITING: 'It belongs to no communicator and waits to be called in.',
  CALLED: 'It is called into a communicator, and nobody knows yet whether all have come.',
  WORKING: 'It has its place. Whoever calls it now is told that it cannot come.',
} as const;
export type StandbyState = keyof typeof STANDBY_STATES;

const STANDBY_EDGES: Readonly<Record<StandbyState, readonly StandbyState[]>> = {
  WAITING: ['CALLED'],
  // → WORKING when all are there; → WAITING when they are not; to itself by the next call of the same members, who know already that they are not.
  CALLED: ['CALLED', 'WORKING', 'WAITING'],
  WORKING: [],
};

/** What happens to a standby: its driver tells the server of the job, and whoever waits for a place. */
export type StandbyEvent =
  /** It is called in, and will answer once the driver has called answer(id). */
  | { readonly kind: 'called'; readonly id: number }
  /** It has its place. */
  | { readonly kind: 'joined'; readonly id: number; readonly members: readonly number[] }
  /** It waits again. */
  | { readonly kind: 'released'; readonly id: number };

export class StandbyRole {
  state: StandbyState = 'WAITING';
  readonly events: StandbyEvent[] = [];
  private readonly host: ReplaceHost;
  /** The call that it has accepted. */
  private current: { readonly id: number; readonly origin: number; readonly q: number } | undefined;
  /** Communicators that it was ever called into: a call comes by several ways. */
  private readonly known = new Set<number>();
  /** Agreements about those, by id: which one says whether all have come. */
  private readonly joins = new Map<number, number>();

  constructor(host: ReplaceHost) {
    this.host = host;
  }

  /** A call, by whatever way it came. Returns whether it is news. */
  takeCall(source: number, { id, from, origin, q, epoch, members, newcomers }: CalledInMessage): boolean {
    const { host, current } = this;
    if (from !== source) throw new MultirailError('ERR_PROTOCOL', `process ${source} says that it is process ${from}`);
    const rank = members.indexOf(host.self);
    if (rank === -1 || !newcomers.has(rank))
      throw new MultirailError(
        'ERR_PROTOCOL',
        `process ${source} calls process ${host.self} into communicator ${id}, where it has no place`,
      );
    if (this.known.has(id)) return false;
    this.known.add(id);
    // The same members call again when they know that the first attempt has failed.
    const isNext = current !== undefined && current.origin === origin && q > current.q;
    const accepts = this.state === 'WAITING' || (this.state === 'CALLED' && isNext);
    if (accepts) {
      this.move('CALLED');
      this.current = { id, origin, q };
    }
    host.open(id, members, { epoch, callIn: { origin, q, newcomers: [...newcomers].filter((newcomer) => newcomer !== rank) } });
    if (accepts) this.events.push({ kind: 'called', id });
    else this.say(id, false);
    return true;
  }

  /** Says in that communicator that this process has come. */
  answer(id: number): void {
    this.say(id, true);
  }

  private say(id: number, comes: boolean): void {
    const { host } = this;
    const members = host.membersOf(id);
    const acked = Bitmap.full(members.length);
    if (!comes) acked.delete(members.indexOf(host.self));
    this.joins.set(id, host.nextOf(id, SERIES.PROGRAM));
    host.begin(id, SERIES.PROGRAM, { operation: OPERATION.JOIN, flag: ALL_BITS, acked });
  }

  /** It is the decision of a communicator that it was called into, to be handed to take(). */
  awaits({ id, series, q }: Decision): boolean {
    return series === SERIES.PROGRAM && this.joins.get(id) === q;
  }

  take({ id, value }: Decision): void {
    const { host } = this;
    this.joins.delete(id);
    const isCurrent = this.current?.id === id;
    if (isCurrent && isWhole(value)) {
      this.move('WORKING');
      // Others that stood by may be members already: who decided that is known there, and here it is not.
      const members = host.membersOf(id);
      host.standbys.placeKnown(members);
      host.standbys.place(host.self);
      this.events.push({ kind: 'joined', id, members });
      return;
    }
    host.free(id, false);
    if (!isCurrent) return;
    this.move('WAITING');
    this.current = undefined;
    this.events.push({ kind: 'released', id });
  }

  private move(to: StandbyState): void {
    assert(STANDBY_EDGES[this.state].includes(to), `standby ${this.host.self}: no edge ${this.state} -> ${to}`);
    this.state = to;
  }
}
