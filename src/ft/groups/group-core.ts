// The save of one group at one of its ranks, as a state machine: calls of the program and messages go in, messages and what is to be done come out.
// The lowest rank of the group leads it. All come to the same call with nothing between them on its way, cut together, and copy their states; then
// the group waits for its turn, since groups spread their images one after the other, and when all copies are where they must be the save is
// committed. A death ends whatever is under way (interrupt()), and the members begin again, or are behind the call. Pure.
import { assert } from '../../util/assert.ts';

/** States of the save at one rank. */
export const GROUP_SAVE_STATES = {
  IDLE: 'No save of this group is under way here.',
  ARRIVED: 'This rank is in the call, and waits for the others of its group.',
  CUTTING: 'All are in the call, and nothing is on its way between them: each takes its numbers.',
  CUT: 'It has its numbers, and waits until all have.',
  TAKING: 'All have: each copies its state.',
  WAITING: 'The state is copied, and the group waits for its turn.',
  SPREADING: 'It is the turn of this group: copies leave.',
  DONE: 'All copies of this rank are where they must be.',
} as const;
export type GroupSaveState = keyof typeof GROUP_SAVE_STATES;

export const GROUP_SAVE_EDGES: Readonly<Record<GroupSaveState, readonly GroupSaveState[]>> = {
  IDLE: ['ARRIVED'],
  // → IDLE: there is nothing to save, or ranks have come to different calls.
  ARRIVED: ['CUTTING', 'IDLE'],
  CUTTING: ['CUT', 'IDLE'],
  CUT: ['TAKING', 'IDLE'],
  TAKING: ['WAITING', 'IDLE'],
  // → IDLE: another rank could not copy its state.
  WAITING: ['SPREADING', 'IDLE'],
  SPREADING: ['DONE', 'IDLE'],
  DONE: ['IDLE'],
};

/** What a rank has come to. */
export const CALL = { SAVE: 1, LOOK: 2, END: 3 } as const;

export interface Arrival {
  readonly call: number;
  readonly step: number;
  /** Messages between ranks of the group are on their way from here. */
  readonly isLoud: boolean;
  /** The least number that the save may have, as far as this rank knows. */
  readonly k: number;
  /** What it has measured of steps and saves. */
  readonly measured: readonly number[];
}

/** What the leader says to all. */
export const VERDICT = { GO: 0, NOTHING: 1, UNLIKE: 2, LOUD: 3, FAILED: 4 } as const;

export interface Verdict {
  readonly code: number;
  /** The rank that it is about; -1: none. */
  readonly rank: number;
}

/** First word of a message. */
const KIND = {
  ARRIVED: 1,
  GO: 2,
  CUT: 3,
  TAKE: 4,
  COPIED: 5,
  SPREAD: 6,
  DONE: 7,
  COMMIT: 8,
  ASK: 9,
  TURN: 10,
  GIVE_BACK: 11,
  NEED: 12,
} as const;
/** Kinds of messages of this machine are below. */
export const CORE_KINDS_END = 16;

export type GroupSaveAction =
  | { readonly kind: 'send'; readonly to: number; readonly words: readonly number[] }
  /** Copies may leave now. */
  | { readonly kind: 'spread' }
  /** All images of this group's save are where they must be. */
  | { readonly kind: 'committed' }
  /** There is no such save: a rank could not make or take its part. */
  | { readonly kind: 'abandoned' };

export class GroupSaveCore {
  state: GroupSaveState = 'IDLE';
  /** To be done. The driver takes them away. */
  readonly actions: GroupSaveAction[] = [];
  /** Why the call came to nothing. */
  verdict: Verdict | undefined;
  /** The dearest of what the ranks of the group have measured, as all of them know it: of the last save. */
  measured: readonly number[] = [];
  /** Number of the save that is under way: that of one which was abandoned is not used again, since copies of it may be left. */
  k = 0;
  private readonly rank: number;
  private readonly members: readonly number[];
  private readonly leader: number;
  private readonly group: number;
  // At the leader.
  private arrivals = new Map<number, Arrival>();
  private answers = new Map<number, number>();
  private isNeeded = false;
  private hasTurn = false;
  // At rank 0, which gives the turns.
  private turn = -1;
  private waiting: number[] = [];
  private readonly leaders: readonly number[];

  /** `leaders`: the lowest rank of each group. */
  constructor(rank: number, members: readonly number[], group: number, leaders: readonly number[]) {
    this.rank = rank;
    this.members = members;
    this.leader = members[0];
    this.group = group;
    this.leaders = leaders;
  }

  private move(to: GroupSaveState): void {
    assert(GROUP_SAVE_EDGES[this.state].includes(to), `no edge ${this.state} -> ${to} of a group's save`);
    this.state = to;
  }

  private send(to: number, ...words: readonly number[]): void {
    if (to === this.rank) this.handle(to, words);
    else this.actions.push({ kind: 'send', to, words });
  }

  private tellGroup(...words: readonly number[]): void {
    // Itself at last: what it does then comes behind what it has told.
    for (const member of this.members) if (member !== this.rank) this.send(member, ...words);
    this.handle(this.rank, words);
  }

  // ---------------------------------------------------------------- the program of this rank

  arrive(kind: number, { call, step, isLoud, k, measured }: Arrival): void {
    this.move('ARRIVED');
    this.verdict = undefined;
    this.send(this.leader, KIND.ARRIVED, kind, call, step, Number(isLoud), k, ...measured);
  }

  /** It has taken its numbers. `isLoud`: a message between ranks of the group was not received. */
  cut(isLoud: boolean): void {
    this.move('CUT');
    this.send(this.leader, KIND.CUT, Number(isLoud));
  }

  /** Its state is copied, or could not be. */
  copied(isWell: boolean): void {
    this.move('WAITING');
    this.send(this.leader, KIND.COPIED, Number(isWell));
  }

  /** Its copies are where they must be, or one of them could not be taken. */
  spread(isWell: boolean): void {
    if (this.state !== 'SPREADING') return;
    this.move('DONE');
    this.send(this.leader, KIND.DONE, Number(isWell));
  }

  /** A log of this rank is filling up with what is for that group, whose next save trims it. */
  need(group: number): void {
    this.send(this.leaders[group], KIND.NEED);
  }

  /** Somebody has died: whatever is under way has come to nothing. */
  interrupt(): void {
    this.state = 'IDLE';
    this.actions.length = 0;
    this.verdict = undefined;
    this.arrivals.clear();
    this.answers.clear();
    this.hasTurn = false;
    this.turn = -1;
    this.waiting = [];
  }

  // ---------------------------------------------------------------- messages

  handle(from: number, words: readonly number[]): void {
    const [kind, ...rest] = words;
    switch (kind) {
      case KIND.ARRIVED:
        return this.arrived(from, rest);
      case KIND.CUT:
        return this.answered(from, rest[0], (loud) => {
          this.tellGroup(KIND.TAKE, loud === undefined ? VERDICT.GO : VERDICT.LOUD, loud ?? -1);
        });
      case KIND.COPIED:
        return this.answered(from, 1 - rest[0], (wrong) => {
          if (wrong !== undefined) return this.tellGroup(KIND.COMMIT, 0);
          this.send(0, KIND.ASK, this.group);
        });
      case KIND.DONE:
        return this.answered(from, 1 - rest[0], (wrong) => {
          this.tellGroup(KIND.COMMIT, wrong === undefined ? 1 : 0);
          this.giveBack();
        });
      case KIND.GO:
        return this.heard({ code: rest[0], rank: rest[1] }, 'CUTTING', rest.slice(3), rest[2]);
      case KIND.TAKE:
        return this.heard({ code: rest[0], rank: rest[1] }, 'TAKING', this.measured);
      case KIND.SPREAD:
        this.move('SPREADING');
        this.actions.push({ kind: 'spread' });
        return;
      case KIND.COMMIT:
        this.move('IDLE');
        this.actions.push({ kind: rest[0] === 1 ? 'committed' : 'abandoned' });
        return;
      case KIND.ASK:
        this.waiting.push(rest[0]);
        return this.giveTurn();
      case KIND.TURN:
        this.hasTurn = true;
        return this.tellGroup(KIND.SPREAD);
      case KIND.GIVE_BACK:
        this.turn = -1;
        return this.giveTurn();
      case KIND.NEED:
        this.isNeeded = true;
    }
  }

  private heard(verdict: Verdict, next: GroupSaveState, measured: readonly number[], k = this.k): void {
    if (verdict.code === VERDICT.GO) {
      this.measured = measured;
      this.k = k;
      return this.move(next);
    }
    this.verdict = verdict;
    this.move('IDLE');
  }

  private kindOf = new Map<number, number>();

  private arrived(from: number, [kind, call, step, isLoud, k, ...measured]: readonly number[]): void {
    this.arrivals.set(from, { call, step, isLoud: isLoud === 1, k, measured });
    this.kindOf.set(from, kind);
    if (this.arrivals.size < this.members.length) return;
    const rows = [...this.arrivals];
    const first = this.arrivals.get(this.leader) as Arrival;
    const unlike = rows.find(
      ([rank, row]) => row.call !== first.call || row.step !== first.step || this.kindOf.get(rank) !== this.kindOf.get(this.leader),
    );
    const loud = rows.find(([, row]) => row.isLoud);
    this.arrivals = new Map();
    const dearest = first.measured.map((_, i) =>
      Math.max(...rows.map(([, row]) => row.measured[i] ?? Number.NaN).filter((value) => !Number.isNaN(value))),
    );
    const told = dearest.map((value) => (Number.isFinite(value) ? value : Number.NaN));
    if (unlike !== undefined) return this.tellGroup(KIND.GO, VERDICT.UNLIKE, unlike[0]);
    if (kind === CALL.END || (kind === CALL.LOOK && !this.isNeeded)) return this.tellGroup(KIND.GO, VERDICT.NOTHING, -1);
    if (loud !== undefined) return this.tellGroup(KIND.GO, VERDICT.LOUD, loud[0]);
    this.isNeeded = false;
    this.tellGroup(KIND.GO, VERDICT.GO, -1, Math.max(...rows.map(([, row]) => row.k)), ...told);
  }

  /** Of one member; when all have answered: the first whose answer is not 0. */
  private answered(from: number, answer: number, all: (wrong: number | undefined) => void): void {
    this.answers.set(from, answer);
    if (this.answers.size < this.members.length) return;
    const wrong = [...this.answers].find(([, one]) => one !== 0)?.[0];
    this.answers = new Map();
    all(wrong);
  }

  private giveBack(): void {
    if (!this.hasTurn) return;
    this.hasTurn = false;
    this.send(0, KIND.GIVE_BACK);
  }

  /** At rank 0. */
  private giveTurn(): void {
    if (this.turn >= 0) return;
    const next = this.waiting.shift();
    if (next === undefined) return;
    this.turn = next;
    this.send(this.leaders[next], KIND.TURN);
  }
}
