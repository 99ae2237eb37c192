// States of a process that stands by and may help a successor to repeat what its predecessor did (docs/internals/SUCCESSION.md).
import { assert } from '../../util/assert.ts';

export const HELPING_STATES = {
  FREE: 'It stands by, and helps nobody.',
  ASKED: 'It has said to a successor that it comes, and does not know yet with whom.',
  HELPING: 'It is in the team of a successor: its program runs, or is about to.',
  PLACED: 'It has the place of a dead rank, and never helps again.',
} as const;
export type HelpingState = keyof typeof HELPING_STATES;

export const HELPING_EDGES: Readonly<Record<HelpingState, readonly HelpingState[]>> = {
  // → PLACED: it is called in.
  FREE: ['ASKED', 'PLACED'],
  // → FREE when it is not needed, or when the successor has died.
  ASKED: ['HELPING', 'FREE', 'PLACED'],
  // → FREE when its program has let go of the team. → PLACED: it is called in meanwhile, and its program lets go of the team.
  HELPING: ['FREE', 'PLACED'],
  PLACED: [],
};

/** The one door between states. */
export function moveHelping(machine: { state: HelpingState }, to: HelpingState): void {
  assert(HELPING_EDGES[machine.state].includes(to), `no edge ${machine.state} -> ${to} of a process that helps`);
  machine.state = to;
}

/** What a successor (ASK, BEGIN, DISMISS) and those that stand by (COMES, REFUSES) say to each other. */
export const HELP_WORD = { ASK: 1, COMES: 2, REFUSES: 3, BEGIN: 4, DISMISS: 5 } as const;
export type HelpWord = (typeof HELP_WORD)[keyof typeof HELP_WORD];

/** A message. `serial`: which call of that successor it belongs to. */
export interface HelpMessage {
  readonly word: HelpWord;
  readonly serial: number;
  /** Of BEGIN: the communicator of the team, and its members by rank, the successor first. */
  readonly id: number;
  readonly members: readonly number[];
}

/** Helpers of one successor at most. */
export const HELPERS_MAX = 8;
/** word, serial, id, count of members, members. */
const WORDS = 4 + 1 + HELPERS_MAX;
export const HELP_BYTES = WORDS * Float64Array.BYTES_PER_ELEMENT;

export function encodeHelp({ word, serial, id, members }: HelpMessage): Uint8Array {
  const words = new Float64Array(WORDS);
  words.set([word, serial, id, members.length, ...members]);
  return new Uint8Array(words.buffer);
}

/** Undefined: it is no message of this protocol. */
export function decodeHelp(bytes: Uint8Array): HelpMessage | undefined {
  if (bytes.length !== HELP_BYTES) return undefined;
  const [word, serial, id, count, ...rest] = new Float64Array(bytes.slice().buffer);
  const isRight =
    Object.values(HELP_WORD).includes(word as HelpWord) &&
    [serial, id, count, ...rest].every((one) => Number.isSafeInteger(one) && one >= 0);
  if (!isRight || count > rest.length) return undefined;
  return { word: word as HelpWord, serial, id, members: rest.slice(0, count) };
}

/** What comes out of the machines: a message to that process. */
export type SendHelp = (to: number, message: HelpMessage) => void;

/** The side of a process that stands by. Pure. */
export class HelpingRole {
  state: HelpingState = 'FREE';
  private readonly send: SendHelp;
  /** The successor that has asked, and its call. */
  private asker: { readonly number: number; readonly serial: number } | undefined;
  /** It belongs to a team from now on. */
  private readonly onBegin: (id: number, members: readonly number[]) => void;

  constructor(send: SendHelp, onBegin: (id: number, members: readonly number[]) => void) {
    this.send = send;
    this.onBegin = onBegin;
  }

  take(from: number, { word, serial, id, members }: HelpMessage): void {
    const { asker } = this;
    const isOf = asker?.number === from && asker.serial === serial;
    if (word === HELP_WORD.ASK) {
      const comes = this.state === 'FREE';
      if (comes) {
        moveHelping(this, 'ASKED');
        this.asker = { number: from, serial };
      }
      this.send(from, { word: comes ? HELP_WORD.COMES : HELP_WORD.REFUSES, serial, id: 0, members: [] });
    } else if (word === HELP_WORD.BEGIN && isOf && this.state === 'ASKED') {
      moveHelping(this, 'HELPING');
      this.onBegin(id, members);
    } else if (word === HELP_WORD.DISMISS && isOf && this.state === 'ASKED') moveHelping(this, 'FREE');
  }

  handleDeath(number: number): void {
    // In a team its program hears of it by the communicator.
    if (this.state === 'ASKED' && this.asker?.number === number) moveHelping(this, 'FREE');
  }

  /** Its program has let go of the team. */
  handleEnd(): void {
    if (this.state === 'HELPING') moveHelping(this, 'FREE');
  }

  handlePlaced(): void {
    moveHelping(this, 'PLACED');
  }
}

/** The side of a successor: one call for helpers. Pure; its driver gives it messages, deaths, and the end of its time. */
export class HelpersCall {
  /** Those that come, once it is over. */
  readonly coming: number[] = [];
  isOver = false;
  private readonly serial: number;
  private readonly wanted: number;
  private readonly send: SendHelp;
  /** Not asked yet. */
  private readonly candidates: number[];
  private readonly asked = new Set<number>();

  constructor(serial: number, wanted: number, candidates: readonly number[], send: SendHelp) {
    this.serial = serial;
    this.wanted = Math.min(wanted, HELPERS_MAX);
    this.candidates = [...candidates];
    this.send = send;
    this.ask();
  }

  private ask(): void {
    while (this.asked.size + this.coming.length < this.wanted) {
      const next = this.candidates.shift();
      if (next === undefined) break;
      this.asked.add(next);
      this.send(next, this.message(HELP_WORD.ASK));
    }
    if (this.asked.size === 0) this.isOver = true;
  }

  private message(word: HelpWord, id = 0, members: readonly number[] = []): HelpMessage {
    return { word, serial: this.serial, id, members };
  }

  take(from: number, { word, serial }: HelpMessage): void {
    if (serial !== this.serial || !this.asked.delete(from)) return;
    if (word === HELP_WORD.COMES) this.coming.push(from);
    this.ask();
  }

  handleDeath(number: number): void {
    const next = this.candidates.indexOf(number);
    if (next >= 0) this.candidates.splice(next, 1);
    const at = this.coming.indexOf(number);
    if (at >= 0) this.coming.splice(at, 1);
    if (this.asked.delete(number) || at >= 0) this.ask();
  }

  /** Whoever has not answered by now is not waited for. */
  handleTimeout(): void {
    for (const number of this.asked) this.send(number, this.message(HELP_WORD.DISMISS));
    this.asked.clear();
    this.isOver = true;
  }

  /** Nobody is needed any more. */
  callOff(): void {
    for (const number of [...this.asked, ...this.coming]) this.send(number, this.message(HELP_WORD.DISMISS));
    this.asked.clear();
    this.coming.length = 0;
    this.isOver = true;
  }

  /** The team is there. */
  begin(id: number, members: readonly number[]): void {
    for (const number of this.coming) this.send(number, this.message(HELP_WORD.BEGIN, id, members));
  }
}
