// The saves of a group at one of its ranks: the machine of a save (group-core.ts), images and copies, and the word to other groups that what this
// rank will never ask for need not be kept. Messages and images travel by the driver (group-wire.ts) on a communicator of their own, which is
// another one after each death: what was under way then has come to nothing. Pure.
import type { Cut } from '../../pml/succession.ts';
import { serialDiff } from '../../util/serial.ts';
import type { Placement } from '../checkpoint/placement.ts';
import type { Piece } from '../checkpoint/slots.ts';
import { CORE_KINDS_END, GroupSaveCore } from './group-core.ts';
import { countOf, type GroupEntry, type Groups, membersOf } from './groups.ts';

/** First word of messages besides those of the machine. */
const KIND = { COPY: CORE_KINDS_END, HELD: CORE_KINDS_END + 1, COMMITTED: CORE_KINDS_END + 2 } as const;

/** Rows of one message COMMITTED; there are more of them where there are more contexts. */
const ROWS_MAX = 1024;
const ROW_WORDS = 3;
export const MESSAGE_BYTES_MAX = (8 + ROWS_MAX * ROW_WORDS) * Float64Array.BYTES_PER_ELEMENT;

/** The numbers of an image, as far as other groups are told of them: peers and sources are ranks. */
export type GroupNumbers = Pick<Cut, 'flows' | 'unexpected'>;

/** One image of this rank. */
export interface GroupSlot {
  readonly k: number;
  readonly step: number;
  readonly piece: Piece;
  readonly numbers: GroupNumbers;
}

/** How a save of this group has ended. */
export type GroupSaveEnd = 'committed' | 'abandoned' | 'interrupted';

/** How a copy has come: interrupted where somebody has failed. */
export type CopyEnd = 'whole' | 'damaged' | 'interrupted';

export interface GroupSavesHost {
  readonly memory: {
    readonly bytes: number;
    readonly bytesMax: number;
    hasRoom(bytes: number): boolean;
    take(bytes: number): Uint8Array;
    give(memory: Uint8Array): void;
  };
  warn(text: string): void;
  send(to: number, words: readonly number[]): void;
  /** The bytes of an image, behind the words that announce them. */
  sendImage(to: number, image: Uint8Array): void;
  /** Takes the bytes that were announced. Without room they come into nothing, and are damaged. */
  takeImage(from: number, room: Uint8Array | undefined, crc: number, ended: (end: CopyEnd) => void): void;
  /** Nothing of what was under way is taken any more. */
  stop(): void;
  /** The own save is committed, or is not. */
  ended(end: GroupSaveEnd, slot: GroupSlot): void;
  /** A save of that rank of another group is committed: below these numbers it asks for nothing, and sends nothing again. */
  committedOf(rank: number, nextIn: ReadonlyMap<number, number>, nextOut: ReadonlyMap<number, number>): void;
}

interface HeldCopy {
  readonly step: number;
  readonly piece: Piece;
}

interface Flows {
  readonly nextIn: Map<number, number>;
  readonly nextOut: Map<number, number>;
}

export class GroupSaves {
  groups: Groups = [];
  core!: GroupSaveCore;
  committed: GroupSlot | undefined;
  /** By group: the newest save that is known to be committed; -1: none. */
  newest: number[] = [];
  /** Counts what has interrupted saves. */
  lives = 0;
  /** The members are together, and nobody's death is being dealt with. */
  isOpen = false;
  private readonly host: GroupSavesHost;
  private rank = 0;
  private placement!: Placement;
  private pending: GroupSlot | undefined;
  /** Holders that have not said that they have the pending image. */
  private readonly awaited = new Set<number>();
  /** Of the last save that was tried. */
  private lastK = -1;
  private isSpreading = false;
  private hasRefused = false;
  /** Of others: by owner, then by save. */
  private readonly held = new Map<number, Map<number, HeldCopy>>();
  private readonly flows = new Map<number, Flows>();
  private isObeying = false;

  constructor(host: GroupSavesHost) {
    this.host = host;
  }

  get group(): number {
    return this.groups[this.rank];
  }

  get members(): readonly number[] {
    return membersOf(this.groups, this.group);
  }

  /** The ranks of each group are known. */
  form(groups: Groups, rank: number): void {
    this.groups = groups;
    this.rank = rank;
    const leaders = Array.from({ length: countOf(groups) }, (_, group) => groups.indexOf(group));
    this.core = new GroupSaveCore(rank, this.members, this.group, leaders);
    if (this.newest.length === 0) this.newest = leaders.map(() => -1);
  }

  /** All begin from the beginning. */
  clear(): void {
    this.interrupt();
    this.drop(this.committed);
    this.committed = undefined;
    this.lastK = -1;
    this.newest = [];
    for (const copies of this.held.values()) for (const { piece } of copies.values()) this.host.memory.give(piece.memory as Uint8Array);
    this.held.clear();
    this.flows.clear();
  }

  private drop(slot: GroupSlot | undefined): void {
    if (slot !== undefined) this.host.memory.give(slot.piece.memory as Uint8Array);
  }

  /** Somebody has died. What this rank has copied is kept until it is known whether another one of its group has committed it. */
  interrupt(): void {
    this.lives++;
    this.isOpen = false;
    this.host.stop();
    this.awaited.clear();
    this.isSpreading = false;
    this.core?.interrupt();
  }

  /** A message of another rank's. */
  handle(from: number, words: readonly number[]): void {
    if (words[0] < CORE_KINDS_END) {
      this.core.handle(from, words);
      this.obey();
    } else this.take(from, words);
  }

  // ---------------------------------------------------------------- what there is

  /** Images that this rank has. */
  get entries(): GroupEntry[] {
    const entryOf = (owner: number, k: number, step: number, { bytes, crc }: Piece): GroupEntry => ({ owner, k, step, bytes, crc });
    const own = [this.committed, this.pending].flatMap((slot) =>
      slot === undefined ? [] : [entryOf(this.rank, slot.k, slot.step, slot.piece)],
    );
    return [
      ...own,
      ...[...this.held].flatMap(([owner, copies]) => [...copies].map(([k, { step, piece }]) => entryOf(owner, k, step, piece))),
    ];
  }

  pieceOf(owner: number, k: number): Piece | undefined {
    if (owner !== this.rank) return this.held.get(owner)?.get(k)?.piece;
    return [this.committed, this.pending].find((slot) => slot?.k === k)?.piece;
  }

  /** The least number that the next save may have. */
  get nextK(): number {
    return Math.max(this.committed?.k ?? -1, this.lastK) + 1;
  }

  // ---------------------------------------------------------------- after a recovery, and at the start

  /** All know what each group has: this rank has, or goes back to, its part of that. */
  settle(lines: readonly number[]): void {
    const { pending } = this;
    const line = lines[this.group];
    this.pending = undefined;
    if (pending !== undefined) {
      const isCommitted = pending.k === line && this.committed?.k !== line;
      if (isCommitted) {
        this.drop(this.committed);
        this.committed = pending;
      } else this.drop(pending);
      this.host.ended(isCommitted ? 'committed' : 'interrupted', pending);
    }
    this.newest = [...lines];
    for (const [owner, copies] of this.held) this.freeCopies(copies, (k) => k !== lines[this.groups[owner]]);
  }

  /** This rank goes back to that image. */
  adopt(slot: GroupSlot | undefined): void {
    if (this.committed !== undefined && this.committed.piece !== slot?.piece) this.drop(this.committed);
    this.committed = slot;
  }

  /** Saves may go on: `lacks`: whether that holder has no copy of what this rank goes back to. */
  open(placement: Placement, lacks: (holder: number) => boolean): void {
    this.placement = placement;
    this.isOpen = true;
    const { committed } = this;
    if (committed === undefined) return;
    for (const holder of this.holders) if (lacks(holder)) this.sendCopy(committed, holder);
    this.tellCommitted(committed);
  }

  private get holders(): number[] {
    return this.placement.holders(this.rank, 0);
  }

  // ---------------------------------------------------------------- a save

  /** Its image is whole, or could not be made. */
  copied(slot: GroupSlot | undefined): void {
    this.pending = slot;
    this.lastK = this.core.k;
    this.hasRefused = false;
    this.core.copied(slot !== undefined);
    this.obey();
  }

  /** Does what has come out of the machine, and what that leads to. */
  obey(): void {
    if (this.isObeying) return;
    this.isObeying = true;
    try {
      const { core } = this;
      for (let action = core.actions.shift(); action !== undefined; action = core.actions.shift()) {
        switch (action.kind) {
          case 'send':
            this.host.send(action.to, action.words);
            break;
          case 'spread':
            this.spread();
            break;
          case 'committed':
            this.commit();
            break;
          case 'abandoned':
            this.abandon();
            break;
        }
      }
    } finally {
      this.isObeying = false;
    }
  }

  private spread(): void {
    const { pending } = this;
    if (pending === undefined) return;
    this.isSpreading = true;
    for (const holder of this.holders) {
      this.awaited.add(holder);
      this.sendCopy(pending, holder);
    }
    this.lookWhetherSpread();
  }

  private sendCopy({ k, step, piece }: GroupSlot, holder: number): void {
    this.host.send(holder, [KIND.COPY, k, piece.bytes, piece.crc, step]);
    this.host.sendImage(holder, piece.memory as Uint8Array);
  }

  private lookWhetherSpread(): void {
    if (!this.isSpreading || this.awaited.size > 0) return;
    this.isSpreading = false;
    this.core.spread(!this.hasRefused);
    this.obey();
  }

  private commit(): void {
    const { pending } = this;
    if (pending === undefined) return;
    this.pending = undefined;
    this.drop(this.committed);
    this.committed = pending;
    this.newest[this.group] = pending.k;
    this.host.ended('committed', pending);
    this.tellCommitted(pending);
  }

  private abandon(): void {
    const { pending } = this;
    this.pending = undefined;
    this.awaited.clear();
    if (pending === undefined) return;
    this.drop(pending);
    this.host.ended('abandoned', pending);
  }

  /** All others: holders let older copies go, and other groups what they keep for this rank. */
  private tellCommitted({ k, numbers }: GroupSlot): void {
    for (const to of this.groups.keys()) {
      if (to === this.rank) continue;
      const rows = this.groups[to] === this.group ? [] : rowsFor(to, numbers);
      for (let at = 0; at === 0 || at < rows.length; at += ROWS_MAX)
        this.host.send(to, [KIND.COMMITTED, k, ...rows.slice(at, at + ROWS_MAX).flat()]);
    }
  }

  // ---------------------------------------------------------------- of others

  private take(from: number, [kind, k, ...rest]: readonly number[]): void {
    if (kind === KIND.COPY) return this.takeCopy(from, k, rest[0], rest[1], rest[2]);
    if (kind === KIND.HELD) {
      if (this.pending?.k !== k) return;
      if (rest[0] === 0) this.hasRefused = true;
      this.awaited.delete(from);
      return this.lookWhetherSpread();
    }
    const group = this.groups[from];
    this.newest[group] = Math.max(this.newest[group] ?? -1, k);
    const copies = this.held.get(from);
    if (copies !== undefined) this.freeCopies(copies, (one) => one < k);
    if (group === this.group) return;
    const flows: Flows = this.flows.get(from) ?? { nextIn: new Map(), nextOut: new Map() };
    this.flows.set(from, flows);
    for (let at = 0; at < rest.length; at += ROW_WORDS) {
      flows.nextIn.set(rest[at], rest[at + 1]);
      flows.nextOut.set(rest[at], rest[at + 2]);
    }
    this.host.committedOf(from, flows.nextIn, flows.nextOut);
  }

  private takeCopy(owner: number, k: number, bytes: number, crc: number, step: number): void {
    const { memory } = this.host;
    // Only the newest that was not committed can be superseded.
    const copies = this.held.get(owner) ?? new Map<number, HeldCopy>();
    this.held.set(owner, copies);
    this.freeCopies(copies, (one) => one !== this.newest[this.groups[owner]]);
    const room = memory.hasRoom(bytes) ? memory.take(bytes) : undefined;
    this.host.takeImage(owner, room, crc, (end) => {
      const newest = this.newest[this.groups[owner]];
      // Images need not come in the order of their words: this one may be older than what has come, or was committed, since then.
      const isSuperseded = k !== newest && Math.max(newest, ...copies.keys()) > k;
      if (room !== undefined && end === 'whole' && !isSuperseded) {
        this.freeCopies(copies, (one) => one === k || (one < k && one !== newest));
        copies.set(k, { step, piece: { bytes, crc, memory: room } });
      } else if (room !== undefined) memory.give(room);
      if (end === 'interrupted') return;
      if (end !== 'whole')
        this.host.warn(
          room === undefined
            ? `no room for the copy of rank ${owner} (${bytes} bytes, ${memory.bytes} of ${memory.bytesMax} are in use): allow more by ft_memory_bytes_max, or keep fewer copies`
            : `the copy of rank ${owner} has come damaged`,
        );
      this.host.send(owner, [KIND.HELD, k, Number(end === 'whole')]);
    });
  }

  private freeCopies(copies: Map<number, HeldCopy>, isOver: (k: number) => boolean): void {
    for (const [k, { piece }] of copies) {
      if (!isOver(k)) continue;
      copies.delete(k);
      this.host.memory.give(piece.memory as Uint8Array);
    }
  }
}

/** Of each context of that rank: number below which this rank asks for nothing, and below which it sends nothing again. */
function rowsFor(to: number, { flows, unexpected }: GroupNumbers): [number, number, number][] {
  return flows
    .filter(({ peer }) => peer === to)
    .map(({ ctx, nextIn, nextOut }) => {
      let low = nextIn;
      for (const { source, ctx: of, seq, messageBytes } of unexpected)
        if (source === to && of === ctx && messageBytes !== undefined && serialDiff(seq, low) < 0) low = seq;
      return [ctx, low, nextOut];
    });
}
