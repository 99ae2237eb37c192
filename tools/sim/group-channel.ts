// What the members of the profile `group` say to each other about saves and recoveries: messages on contexts of one epoch, which are over when the
// next one begins, and exchanges of all.

import type { MultirailError } from '../../src/errors.ts';
import type { CopyEnd } from '../../src/ft/groups/group-saves.ts';
import { ANY, type Pml } from '../../src/pml/pml.ts';
import type { Envelope, RecvRequest } from '../../src/pml/records.ts';
import { crc32cJs } from '../../src/util/crc32c.ts';
import { Iov } from '../../src/util/iov.ts';
import type { ImageRoom } from './group-memory.ts';

/** The first context of the first epoch. */
const CTX = 1000;
const KINDS = { WORDS: 0, IMAGES: 1, EXCHANGE: 2, SYNC: 3 } as const;
const KIND_COUNT = 4;
const EPOCHS_MAX = 100;
/** Of one message of words. */
const WORDS_BYTES_MAX = 32_768;

/** Contexts of all epochs. */
export const CHANNEL_CONTEXTS: readonly number[] = Array.from({ length: EPOCHS_MAX * KIND_COUNT }, (_, i) => CTX + i);

/** Steps that look again after each turn. */
export type LookSteps<T> = Generator<void, T, void>;

export interface ChannelHost {
  readonly pml: Pml;
  readonly memory: ImageRoom;
  wake(): void;
  handle(from: number, words: readonly number[]): void;
}

/** Of one process, in one epoch. */
export class GroupChannel {
  readonly epoch: number;
  /** Numbers by rank. */
  readonly members: readonly number[];
  readonly rank: number;
  private readonly host: ChannelHost;
  private isListening = false;
  private isOver = false;
  private rounds = 0;
  private posted: RecvRequest | undefined;

  constructor(epoch: number, members: readonly number[], rank: number, host: ChannelHost) {
    this.epoch = epoch;
    this.members = [...members];
    this.rank = rank;
    this.host = host;
  }

  private ctx(kind: keyof typeof KINDS): number {
    return CTX + this.epoch * KIND_COUNT + KINDS[kind];
  }

  /** Another epoch begins: what is under way ends. */
  end(error: MultirailError): void {
    this.isOver = true;
    this.isListening = false;
    for (const kind of Object.keys(KINDS) as (keyof typeof KINDS)[]) this.host.pml.revokeContext(this.ctx(kind), error);
  }

  /** Words are taken inside turns from now on. */
  listen(): void {
    if (this.isListening || this.isOver) return;
    this.isListening = true;
    const { pml } = this.host;
    const buffer = new Uint8Array(WORDS_BYTES_MAX);
    const read = ({ error, cancelled, matchedSource, receivedBytes }: RecvRequest): boolean => {
      if (cancelled || error !== undefined) return false;
      this.host.handle(this.members.indexOf(matchedSource), [...new Float64Array(buffer.slice(0, receivedBytes).buffer)]);
      this.host.wake();
      return this.isListening;
    };
    const next = (): void => {
      for (;;) {
        this.posted = undefined;
        const request = pml.irecvInBackground(ANY, this.ctx('WORDS'), 0, new Iov([buffer]), (done) => {
          if (read(done)) next();
        });
        if (!request.done) {
          this.posted = request;
          return;
        }
        if (!read(request)) return;
      }
    };
    next();
  }

  /** Words are not taken any more. */
  stop(): void {
    this.isListening = false;
    if (this.posted !== undefined && !this.posted.done) this.host.pml.cancel(this.posted);
  }

  private put(to: number, kind: keyof typeof KINDS, tag: number, bytes: Uint8Array): void {
    const { pml } = this.host;
    if (this.isOver || pml.peer(this.members[to]).ended !== undefined) return;
    pml.isend(this.members[to], this.ctx(kind), tag, new Iov(bytes.length === 0 ? [] : [bytes]));
    this.host.wake();
  }

  send(to: number, words: readonly number[]): void {
    this.put(to, 'WORDS', 0, new Uint8Array(Float64Array.from(words).buffer));
  }

  sendImage(to: number, image: Uint8Array, tag = 0): void {
    const { pml, memory } = this.host;
    if (this.isOver || pml.peer(this.members[to]).ended !== undefined) return;
    memory.use(image);
    const request = pml.isend(this.members[to], this.ctx('IMAGES'), tag, new Iov([image]));
    if (request.done) memory.done(image);
    else request.onDone = () => memory.done(image);
    this.host.wake();
  }

  takeImage(from: number, room: Uint8Array | undefined, crc: number, ended: (end: CopyEnd) => void, tag = 0): void {
    const { pml } = this.host;
    if (this.isOver) return ended('interrupted');
    const buffer = room ?? new Uint8Array(0);
    const end = ({ error }: Pick<RecvRequest, 'error'>): void => {
      this.host.wake();
      if (error !== undefined && error.code !== 'ERR_TRUNCATE') return ended('interrupted');
      ended(error === undefined && room !== undefined && crc32cJs(room, 0) === crc ? 'whole' : 'damaged');
    };
    const request = pml.irecv(this.members[from], this.ctx('IMAGES'), tag, new Iov(buffer.length === 0 ? [] : [buffer]));
    if (request.done) end(request);
    else request.onDone = () => end(request);
    // Of an image that has been announced the sender is told.
    this.host.wake();
  }

  /** Each gives bytes, and gets those of all, by rank. */
  *exchange(own: Uint8Array): LookSteps<Uint8Array[]> {
    const tag = this.rounds++;
    for (const to of this.members.keys()) if (to !== this.rank) this.put(to, 'EXCHANGE', tag, own);
    const all: Uint8Array[] = [];
    for (const from of this.members.keys()) all.push(from === this.rank ? own : yield* this.take(from, 'EXCHANGE', tag));
    return all;
  }

  /** What one says to another, in order. */
  tell(to: number, bytes: Uint8Array): void {
    this.put(to, 'SYNC', 0, bytes);
  }

  *hear(from: number): LookSteps<Uint8Array> {
    return yield* this.take(from, 'SYNC', 0);
  }

  private *take(from: number, kind: keyof typeof KINDS, tag: number): LookSteps<Uint8Array> {
    const { pml } = this.host;
    let envelope: Envelope | undefined;
    for (;;) {
      envelope = pml.improbe(this.members[from], this.ctx(kind), tag);
      if (envelope !== undefined) break;
      yield;
    }
    const bytes = new Uint8Array(envelope.messageBytes);
    const request = pml.imrecv(envelope, new Iov(bytes.length === 0 ? [] : [bytes]));
    request.onDone = () => this.host.wake();
    this.host.wake();
    while (!request.done) yield;
    // Its sender has died: the next epoch is about to begin.
    while (request.error !== undefined) yield;
    return bytes;
  }
}
