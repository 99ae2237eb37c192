// Programs of the profile `log`: what each rank does, drawn from the seed, and what it must see, which needs no simulation, since nothing in
// them depends on time: the k-th receive of a pattern gets the k-th message of it. Messages are eager and rendezvous, synchronous, of objects
// (a header and its bulk on two contexts), of collectives whose members send from the memory into which they receive, and of communicators that
// are freed again; some are received only after a save that they cross.
import type { Prng } from '../../src/util/prng.ts';
import {
  BULK_CTX,
  COLL_BYTES_MAX,
  COLL_CTX,
  type Free,
  HEADER_CTX,
  MADE_CTX,
  MADE_MAX,
  type Op,
  type Receive,
  type Send,
  USER_CTX,
  WILD_CTX,
} from './log-ops.ts';
import { type Choices, choiceKey, OwnOrder, WildSteps } from './wild-program.ts';

export * from './log-ops.ts';

export interface Program {
  readonly ranks: number;
  readonly ops: readonly (readonly Op[])[];
  /** By rank and place in its ops: the value that a receive must see, or the state after a join. */
  readonly expected: readonly (readonly (number | undefined)[])[];
  /** By rank and place of a send: the place of the receive, among the operations of the rank to which it goes. */
  readonly receivedAt: readonly (readonly (number | undefined)[])[];
  /** What it does depends on outcomes: what is expected is one of many ways. */
  readonly isWild: boolean;
}

export function mix(state: number, value: number): number {
  const x = Math.imul(state ^ value, 0x9e3779b1) >>> 0;
  return (x ^ (x >>> 15)) >>> 0;
}

/** The value that a send carries: its message is this number, over and over. */
export function payloadOf(state: number, place: number, tag: number): number {
  return mix(mix(state, place), tag);
}

export function fillMessage(buffer: Uint8Array, value: number): void {
  for (let i = 0; i < buffer.length; i++) buffer[i] = value >>> (8 * (i & 3));
}

/** The value of a message; undefined when not all of it is of one. */
export function readMessage(buffer: Uint8Array, bytes: number): number | undefined {
  let value = 0;
  for (let i = Math.min(4, bytes) - 1; i >= 0; i--) value = ((value << 8) | buffer[i]) >>> 0;
  for (let i = 4; i < bytes; i++) if (buffer[i] !== buffer[i & 3]) return undefined;
  return value;
}

/** It is received after the next save. */
export function isLate({ ctx, tag }: Send): boolean {
  return ctx === USER_CTX && tag % 8 === 3;
}

export function isReceive(op: Op): op is Receive {
  return op.op === 'post' || op.op === 'again' || op.op === 'receive' || op.op === 'probe';
}

/** `groups`: of each rank. They save at moments of their own, and no message within one crosses its saves; nothing depends on outcomes. */
export function drawProgram(prng: Prng, ranks: number, eagerBytesMax: number, bytesMax: number, groups?: readonly number[]): Program {
  const ops: Op[][] = Array.from({ length: ranks }, () => []);
  const steps = prng.between(3, 10);
  const everySteps = prng.between(1, 4);
  let late: Receive[][] = Array.from({ length: ranks }, () => []);
  const tags = prng.between(1, 3);
  // (A stream of its own: seeds that once failed keep their meaning.)
  const making = new Making(prng.split('freed'), ranks, eagerBytesMax, bytesMax);
  const wild = new WildSteps(prng.split('wild'), ranks, eagerBytesMax, bytesMax);
  const isWild = wild.isOn && groups === undefined;
  const moments = groups === undefined ? undefined : new Moments(prng.split('groups'), groups);
  for (let step = 0; step < steps; step++) {
    const posted: Receive[][] = Array.from({ length: ranks }, () => []);
    const sends: Send[][] = Array.from({ length: ranks }, () => []);
    const blocking: Receive[][] = Array.from({ length: ranks }, () => []);
    const nextLate: Receive[][] = Array.from({ length: ranks }, () => []);
    for (let left = prng.below(3 * ranks); left > 0; left--) {
      const from = prng.below(ranks);
      const to = prng.chance(1, 12) ? from : (from + 1 + prng.below(ranks - 1)) % ranks;
      const kind = prng.pick(['eager', 'eager', 'long', 'long', 'sync', 'object', 'late'] as const);
      // Patterns of messages that are received late, in the order of their posting, and at once are kept apart: which receive gets which is clear.
      const tag = prng.below(tags) * 8;
      if (kind === 'object') {
        const bytes = prng.between(4, bytesMax);
        sends[from].push({ op: 'send', to, ctx: HEADER_CTX, tag, bytes: 8, sync: false });
        sends[from].push({ op: 'send', to, ctx: BULK_CTX, tag, bytes, sync: false });
        blocking[to].push({ op: 'receive', from, ctx: HEADER_CTX, tag, bytes: 8 });
        blocking[to].push({ op: 'receive', from, ctx: BULK_CTX, tag, bytes });
        continue;
      }
      const bytes = kind === 'long' ? prng.between(4, bytesMax) : prng.pick([0, 4, prng.between(4, eagerBytesMax)]);
      const receive = { from, ctx: USER_CTX, bytes: bytesMax };
      const crosses = kind === 'late' && (groups === undefined || groups[from] !== groups[to]);
      sends[from].push({ op: 'send', to, ctx: USER_CTX, tag: tag + (crosses ? 3 : 0), bytes, sync: kind === 'sync' });
      if (crosses) nextLate[to].push({ op: 'receive', ...receive, tag: tag + 3 });
      else if (prng.chance(1, 2)) {
        sends[from].push(...([{ ...(sends[from].pop() as Send), tag: tag + 1 }] as Send[]));
        posted[to].push({ op: prng.pick(['post', 'again'] as const), ...receive, tag: tag + 1 });
      } else blocking[to].push({ op: prng.pick(['receive', 'probe'] as const), ...receive, tag });
    }
    making.draw(step, posted, sends, blocking);
    for (let rank = 0; rank < ranks; rank++) {
      const list = ops[rank];
      list.push(...posted[rank], ...sends[rank], ...late[rank], ...blocking[rank]);
    }
    if (isWild) wild.draw(ops);
    if (prng.chance(1, 3)) drawCollective(prng, ops, step);
    for (const list of ops) {
      list.push({ op: 'join' });
      list.push(...making.frees(step, step === steps - 1));
      if (moments === undefined && (step + 1) % everySteps === 0) list.push({ op: 'save' });
    }
    moments?.draw(ops);
    late = nextLate;
  }
  for (let rank = 0; rank < ranks; rank++) ops[rank].push(...late[rank], { op: 'join' }, { op: 'end' });
  return { ranks, ops, ...interpret(ranks, ops, new Map()), isWild };
}

/** When each group saves, or looks whether it should: at the ends of steps. */
class Moments {
  private readonly prng: Prng;
  private readonly groups: readonly number[];
  private readonly everySteps: readonly number[];

  constructor(prng: Prng, groups: readonly number[]) {
    this.prng = prng;
    this.groups = groups;
    this.everySteps = groups.map(() => prng.between(1, 4));
  }

  draw(ops: Op[][]): void {
    const { prng, groups } = this;
    for (const group of new Set(groups)) {
      const isSave = prng.chance(1, this.everySteps[group]);
      if (!isSave && !prng.chance(1, 3)) continue;
      for (const [rank, list] of ops.entries()) if (groups[rank] === group) list.push({ op: isSave ? 'save' : 'look' });
    }
  }
}

/** Communicators that are made in one step and freed in the same or a later one, in half of the programs. */
class Making {
  private readonly prng: Prng;
  private readonly ranks: number;
  private readonly eagerBytesMax: number;
  private readonly bytesMax: number;
  private readonly isOn: boolean;
  private made = 0;
  private until = -1;

  constructor(prng: Prng, ranks: number, eagerBytesMax: number, bytesMax: number) {
    this.prng = prng;
    this.ranks = ranks;
    this.eagerBytesMax = eagerBytesMax;
    this.bytesMax = bytesMax;
    this.isOn = prng.chance(1, 2);
  }

  private get ctx(): number {
    return MADE_CTX + this.made - 1;
  }

  draw(step: number, posted: Receive[][], sends: Send[][], blocking: Receive[][]): void {
    const { prng, ranks } = this;
    if (!this.isOn) return;
    if (this.until < step) {
      if (this.made === MADE_MAX || prng.chance(1, 3)) return;
      this.made++;
      this.until = step + prng.below(3);
    }
    for (let left = prng.below(2 * ranks); left > 0; left--) {
      const from = prng.below(ranks);
      const to = (from + 1 + prng.below(ranks - 1)) % ranks;
      const isPosted = prng.chance(1, 2);
      const bytes = prng.chance(1, 3) ? prng.between(4, this.bytesMax) : prng.between(4, this.eagerBytesMax);
      const message = { ctx: this.ctx, tag: isPosted ? 1 : 0 };
      sends[from].push({ op: 'send', to, ...message, bytes, sync: prng.chance(1, 5) });
      const receive = { from, ...message, bytes: this.bytesMax };
      if (isPosted) posted[to].push({ op: prng.pick(['post', 'again'] as const), ...receive });
      else blocking[to].push({ op: prng.pick(['receive', 'probe'] as const), ...receive });
    }
  }

  /** What each rank does behind the join of that step. */
  frees(step: number, isLast: boolean): Free[] {
    return this.until === step || (isLast && this.until > step) ? [{ op: 'free', ctx: this.ctx }] : [];
  }
}

/** All to one, one to all, each waited for. */
function drawCollective(prng: Prng, ops: Op[][], step: number): void {
  const root = prng.below(ops.length);
  const bytes = prng.between(4, COLL_BYTES_MAX);
  const message = { ctx: COLL_CTX, tag: step, bytes };
  for (let rank = 0; rank < ops.length; rank++) {
    if (rank === root) continue;
    ops[rank].push({ op: 'send', to: root, sync: false, ...message });
    ops[root].push({ op: 'receive', from: rank, ...message });
  }
  for (let rank = 0; rank < ops.length; rank++) {
    if (rank === root) continue;
    ops[root].push({ op: 'send', to: rank, sync: false, ...message });
    ops[rank].push({ op: 'receive', from: root, ...message });
  }
}

/** What everybody sees when nobody dies, and outcomes are these; those that are not given are some that may be. */
export function interpret(ranks: number, ops: readonly (readonly Op[])[], choices: Choices): Pick<Program, 'expected' | 'receivedAt'> {
  const expected: (number | undefined)[][] = ops.map((list) => list.map(() => undefined));
  const receivedAt: (number | undefined)[][] = ops.map((list) => list.map(() => undefined));
  const at = Array(ranks).fill(0) as number[];
  const states = Array.from({ length: ranks }, (_, rank) => rank + 17);
  const queues = new Map<string, { value: number; from: number; place: number }[]>();
  const queue = (key: string): { value: number; from: number; place: number }[] => {
    const list = queues.get(key) ?? [];
    queues.set(key, list);
    return list;
  };
  const posted: number[][] = ops.map(() => []);
  const wild = new OwnOrder(ranks, choices);
  const keyOf = (to: number, op: Pick<Send, 'ctx' | 'tag'>, from: number): string => `${from}/${to}/${op.ctx}/${op.tag}`;
  /** The value for the receive at that place, behind so many that were posted before it; undefined when it has not been sent. */
  const take = (rank: number, place: number, behind = 0): number | undefined => {
    if (ops[rank][place].op === 'any') return wild.take(rank, place);
    const receive = ops[rank][place] as Receive;
    const message = queue(keyOf(rank, receive, receive.from)).splice(behind, 1)[0];
    if (message !== undefined) receivedAt[message.from][message.place] = place;
    return message?.value;
  };
  /** False when the rank cannot go on yet. */
  const step = (rank: number): boolean => {
    const place = at[rank];
    const op = ops[rank][place];
    if (op.op === 'end') return false;
    if (op.op === 'send') {
      const value = op.bytes === 0 ? 0 : payloadOf(states[rank], place, op.tag);
      if (op.ctx === WILD_CTX) wild.send(rank, op.to, op.tag, value);
      else queue(keyOf(op.to, op, rank)).push({ value, from: rank, place });
    }
    if (op.op === 'reply')
      queue(keyOf(wild.lastSource[rank], op, rank)).push({ value: payloadOf(states[rank], place, op.tag), from: rank, place });
    if (op.op === 'peek' || op.op === 'test')
      states[rank] = mix(states[rank], (choices.get(choiceKey(rank, place)) as number | undefined) ?? 0);
    if (op.op === 'post' || op.op === 'again' || (op.op === 'any' && op.how === 'post')) posted[rank].push(place);
    else if (op.op === 'waitAny') {
      if (posted[rank].length > 0) {
        const index = (choices.get(choiceKey(rank, place)) as number | undefined) ?? 0;
        const { from, ctx, tag } = ops[rank][posted[rank][index]] as Receive;
        const before = posted[rank].slice(0, index).map((other) => ops[rank][other] as Receive);
        const behind = before.filter((other) => other.from === from && other.ctx === ctx && other.tag === tag).length;
        const value = take(rank, posted[rank][index], behind);
        if (value === undefined) return false;
        const [first] = posted[rank].splice(index, 1);
        expected[rank][first] = value;
        states[rank] = mix(mix(states[rank], index), value);
      }
    } else if (op.op === 'join') {
      for (let first = posted[rank][0]; first !== undefined; first = posted[rank][0]) {
        const value = take(rank, first);
        if (value === undefined) return false;
        posted[rank].shift();
        expected[rank][first] = value;
        states[rank] = mix(states[rank], value);
      }
      expected[rank][place] = states[rank];
    } else if (isReceive(op) || op.op === 'any') {
      const value = take(rank, place);
      if (value === undefined) return false;
      expected[rank][place] = value;
      states[rank] = mix(states[rank], value);
    }
    at[rank]++;
    return true;
  };
  for (let moved = true; moved; ) {
    moved = false;
    for (let rank = 0; rank < ranks; rank++) while (step(rank)) moved = true;
  }
  for (let rank = 0; rank < ranks; rank++)
    if (ops[rank][at[rank]].op !== 'end') throw new Error(`the program does not end: rank ${rank} at ${at[rank]}`);
  return { expected, receivedAt };
}
