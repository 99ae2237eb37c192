// Programs of the profile `log` whose course depends on outcomes: receives from anybody, blocking, posted and probed, answers to whoever has
// sent, looks at what has come or ended, waits for any of several. What a rank has seen goes into what it sends, so that others see it, too.
// There is no one course that must be taken: whatever outcomes there were in the end, everybody must have seen what follows from them.
import type { Prng } from '../../src/util/prng.ts';
import { type Op, USER_CTX, WILD_CTX } from './log-ops.ts';

/** What a receive from anybody has taken. */
export interface Taken {
  readonly source: number;
  /** Its place among the messages from there on that context. */
  readonly seq: number;
}

/** By rank and place: what was taken, or the outcome of a look (0: nothing) or a wait. */
export type Choices = ReadonlyMap<string, Taken | number>;
export const choiceKey = (rank: number, place: number): string => `${rank}/${place}`;

/** Tags of answers, and of what all are told afterwards: of other messages on that context none has them. */
const REPLY_TAG = 5;
const TOLD_TAG = 6;

export class WildSteps {
  readonly isOn: boolean;
  private readonly prng: Prng;
  private readonly ranks: number;
  private readonly eagerBytesMax: number;
  private readonly bytesMax: number;

  constructor(prng: Prng, ranks: number, eagerBytesMax: number, bytesMax: number) {
    this.prng = prng;
    this.ranks = ranks;
    this.eagerBytesMax = eagerBytesMax;
    this.bytesMax = bytesMax;
    this.isOn = prng.chance(1, 3);
  }

  /** Before the join of a step. */
  draw(ops: Op[][]): void {
    const { prng } = this;
    if (!this.isOn || prng.chance(1, 4)) return;
    if (prng.chance(1, 2)) this.farm(ops);
    else this.gather(ops);
  }

  private bytes(): number {
    const { prng } = this;
    return prng.chance(1, 4) ? prng.between(4, this.bytesMax) : prng.between(4, this.eagerBytesMax);
  }

  /** One answers each message of the others, who wait for the answer before they send the next. */
  private farm(ops: Op[][]): void {
    const { prng, ranks } = this;
    const root = prng.below(ranks);
    let left = 0;
    for (let rank = 0; rank < ranks; rank++) {
      if (rank === root) continue;
      for (let tasks = prng.below(4); tasks > 0; tasks--) {
        left++;
        ops[rank].push({ op: 'send', to: root, ctx: WILD_CTX, tag: prng.below(2), bytes: this.bytes(), sync: prng.chance(1, 6) });
        ops[rank].push({ op: 'receive', from: root, ctx: USER_CTX, tag: REPLY_TAG, bytes: this.bytesMax });
      }
    }
    for (; left > 0; left--) {
      if (prng.chance(1, 3)) ops[root].push(this.peek(root));
      ops[root].push({ op: 'any', how: prng.pick(['receive', 'probe'] as const), ctx: WILD_CTX, tag: -1, bytes: this.bytesMax });
      ops[root].push({ op: 'reply', ctx: USER_CTX, tag: REPLY_TAG, bytes: this.bytes() });
    }
    this.tell(ops, root);
  }

  /** One receives what the others send, in an order that nobody knows, and tells all what it has made of it. */
  private gather(ops: Op[][]): void {
    const { prng, ranks } = this;
    const root = prng.below(ranks);
    const anyTag = prng.chance(1, 2);
    const receives: Op[] = [];
    const posts: Op[] = [];
    for (let rank = 0; rank < ranks; rank++) {
      if (rank === root && prng.chance(2, 3)) continue;
      for (let left = prng.below(3); left > 0; left--) {
        const tag = prng.below(2);
        ops[rank].push({ op: 'send', to: root, ctx: WILD_CTX, tag, bytes: this.bytes(), sync: rank !== root && prng.chance(1, 6) });
        const how = prng.pick(['receive', 'probe', 'post', 'post'] as const);
        const receive: Op = { op: 'any', how, ctx: WILD_CTX, tag: anyTag ? -1 : tag, bytes: this.bytesMax };
        if (how === 'post') posts.push(receive);
        else receives.push(receive);
      }
    }
    ops[root].push(...posts);
    for (const receive of receives) {
      this.looks(ops[root], root);
      ops[root].push(receive);
    }
    this.looks(ops[root], root);
    if (posts.length > 0) ops[root].push({ op: 'join' });
    this.tell(ops, root);
  }

  /** What it has made of all. Nobody sends in a later step what is received in this one. */
  private tell(ops: Op[][], root: number): void {
    for (let rank = 0; rank < this.ranks; rank++) {
      if (rank === root) continue;
      ops[root].push({ op: 'send', to: rank, ctx: USER_CTX, tag: TOLD_TAG, bytes: this.bytes(), sync: false });
      ops[rank].push({ op: 'receive', from: root, ctx: USER_CTX, tag: TOLD_TAG, bytes: this.bytesMax });
    }
  }

  private peek(root: number): Op {
    const { prng, ranks } = this;
    const other = (root + 1 + prng.below(ranks - 1)) % ranks;
    return { op: 'peek', ctx: WILD_CTX, from: prng.pick([-1, other]), tag: -1 };
  }

  private looks(list: Op[], root: number): void {
    const { prng } = this;
    for (let left = prng.below(3); left > 0; left--)
      list.push(prng.pick([this.peek(root), { op: 'test' } as const, { op: 'test' } as const, { op: 'waitAny' } as const]));
  }
}

/** Messages to anybody, as an interpreter of a program sees them: each receive takes the one that it has taken, or the first that is there. */
export class OwnOrder {
  /** By rank: the source of its last message from anybody. */
  readonly lastSource: number[];
  private readonly choices: Choices;
  private readonly lists: { readonly value: number; taken: boolean }[][][];

  constructor(ranks: number, choices: Choices) {
    this.choices = choices;
    this.lastSource = Array(ranks).fill(0) as number[];
    this.lists = Array.from({ length: ranks }, () => Array.from({ length: ranks }, () => []));
  }

  send(from: number, to: number, _tag: number, value: number): void {
    this.lists[to][from].push({ value, taken: false });
  }

  /** Its value, with the source mixed in by whoever counts; undefined: it has not been sent yet. */
  take(rank: number, place: number): number | undefined {
    const choice = this.choices.get(choiceKey(rank, place)) as Taken | undefined;
    const lists = this.lists[rank];
    const source = choice?.source ?? lists.findIndex((list) => list.some(({ taken }) => !taken));
    if (source < 0) return undefined;
    const message = choice === undefined ? lists[source].find(({ taken }) => !taken) : lists[source][choice.seq];
    if (message === undefined) return undefined;
    if (message.taken) throw new Error(`F9: two receives of rank ${rank} take message ${choice?.seq} of rank ${source}`);
    message.taken = true;
    this.lastSource[rank] = source;
    return message.value;
  }
}
