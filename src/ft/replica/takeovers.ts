// How a shadow takes the place of its lead, which has died, at all processes that have to do with it: leads keep copies of what they send until it is with
// the program of both replicas of its receiver; when a lead dies, the others hold what they have of it, and go on with its shadow, once each of the two
// has said what it has (SYNC). It is the succession of the message layer (src/pml/succession.ts) without anything to repeat, since the shadow has come
// as far as what its lead has sent. To the programs the lead's number stays: it is translated here. Pure.
import { MultirailError } from '../../errors.ts';
import { ANY } from '../../pml/match.ts';
import type { MessageLog } from '../../pml/message-log.ts';
import type { Pml } from '../../pml/pml.ts';
import type { RecvRequest } from '../../pml/records.ts';
import type { Succession, SyncContext } from '../../pml/succession.ts';
import { Iov } from '../../util/iov.ts';
import { ALL, dropTaken, type ShadowStreams, type TakenNumbers } from './streams.ts';
import { decodeTakeover, encodeAsk, encodeSync, encodeTaken, joinContexts, TAKEOVER_BYTES_MAX } from './takeover-wire.ts';

/** From a half of its bound on, and from so many bytes, a log asks what is not needed any more; and again when it has grown by a part of that. */
const ASK_BYTES_MAX = 16 * 1024 * 1024;
const ASK_PARTS = 8;
/** So many contexts that have come to their ends are told of together. */
export const OVER_MAX = 1024;

/** A log as far as it is looked at here (src/ft/log/send-log.ts). */
export interface BoundedLog extends MessageLog {
  readonly usedBytes: number;
  has(peer: number): boolean;
}

export interface TakeoverOptions {
  /** Number of this process, and the number of ranks. The shadow of rank r is process ranks + r. */
  readonly self: number;
  readonly ranks: number;
  /** Context of what leads say to each other here. */
  readonly ctx: number;
  /** Messages of that context are of the program, or for it. */
  readonly covers: (ctx: number) => boolean;
  readonly log: BoundedLog;
  readonly logBytesMax: number;
  /** Something was begun that is to leave. */
  wake(): void;
  /** That lead is dead, as its shadow says: whoever hears of deaths is to say leadDied(). */
  onLeadDead(rank: number): void;
  /** A lead has died, and its rank cannot go on: the job is to end. */
  onLost(error: MultirailError): void;
}

/** What the lead of a pair says to its shadow in this, and is asked. */
export interface TakeoverHost {
  /** There is no shadow. */
  readonly isAlone: boolean;
  /** The shadow is to say what its program has received: takenByShadow(). */
  askShadow(): void;
  /** The shadow may drop copies of its own. */
  tellShadow(taken: TakenNumbers): void;
}

export class Takeovers {
  readonly options: TakeoverOptions;
  private readonly pml: Pml;
  private readonly rank: number;
  /** Ranks whose leads have died, and whose shadows have. */
  private readonly dead = new Set<number>();
  private readonly shadowless = new Set<number>();
  private host: TakeoverHost | undefined;
  /** Undefined at a shadow. */
  private succession: Succession | undefined;
  private readonly memory = new Uint8Array(TAKEOVER_BYTES_MAX);
  /** SYNC of processes, as far as it has come. */
  private readonly pieces = new Map<number, SyncContext[]>();
  /** Contexts that have come to their ends here since the others were told, where there is no shadow to tell of it. */
  private over: number[] = [];
  private askedAtBytes = 0;

  constructor(pml: Pml, options: TakeoverOptions) {
    this.pml = pml;
    this.options = options;
    this.rank = options.self % options.ranks;
  }

  /** Number of the process that is the lead of that rank now; also ANY and NOBODY, which stay. */
  numberOf(rank: number): number {
    return this.dead.size > 0 && this.dead.has(rank) ? rank + this.options.ranks : rank;
  }

  /** Rank of a process; also what is no process. */
  rankOf(number: number): number {
    return number >= this.options.ranks ? number % this.options.ranks : number;
  }

  // ---------------------------------------------------------------- a lead from the start

  /** This process is a lead: what it sends is kept from now on. */
  begin(host: TakeoverHost): void {
    this.host = host;
    this.succession = this.pml.log(this.tapOptions, []);
    this.listen();
  }

  private get tapOptions() {
    const { log, covers } = this.options;
    return { log, covers, digest: undefined, answersUnknown: true };
  }

  private listen(): void {
    const { ctx } = this.options;
    for (;;) {
      const request = this.pml.irecvInBackground(ANY, ctx, 0, new Iov([this.memory]), (ended) => {
        if (this.takeMessage(ended)) this.listen();
      });
      if (!request.done || !this.takeMessage(request)) return;
    }
  }

  /** False: nothing more comes. */
  private takeMessage({ error, matchedSource, receivedBytes }: RecvRequest): boolean {
    if (error !== undefined) return false;
    const message = decodeTakeover(this.memory.subarray(0, receivedBytes));
    switch (message.kind) {
      case 'SYNC': {
        addTo(this.pieces, matchedSource, message.contexts);
        if (!message.isLast) return true;
        this.takeSync(matchedSource, joinContexts(this.pieces.get(matchedSource) ?? []));
        this.pieces.delete(matchedSource);
        return true;
      }
      case 'ASK':
        if (this.host?.isAlone === false) this.host.askShadow();
        else this.answerAlone(matchedSource);
        return true;
      case 'TAKEN':
        for (const taken of message.taken) this.peerHas(matchedSource, taken);
        return true;
    }
  }

  private say(to: number, messages: readonly Uint8Array[]): void {
    for (const bytes of messages) this.pml.isend(to, this.options.ctx, 0, new Iov([bytes]));
    this.options.wake();
  }

  // ---------------------------------------------------------------- deaths

  /**
   * A process has died, which no rail has said yet. `fail`: the message layer is to take it for dead.
   */
  died(number: number, fail: () => void): void {
    const { ranks } = this.options;
    const rank = this.rankOf(number);
    const isLead = number < ranks;
    const known = isLead ? this.dead : this.shadowless;
    if (known.has(rank)) return;
    known.add(rank);
    if (!isLead || rank === this.rank || this.succession === undefined) fail();
    else this.hold(rank, this.succession, fail);
    if (this.dead.has(rank) && this.shadowless.has(rank)) this.lost(`both replicas of rank ${rank} have died`);
  }

  /** A lead of another rank is dead: all that is here of it is its shadow's. */
  private hold(rank: number, succession: Succession, fail: () => void): void {
    const successor = rank + this.options.ranks;
    // Nothing may have been needed of it before: then there is nothing to hold, and its shadow has to say so all the same.
    this.pml.peer(rank);
    succession.mayBeSucceeded(rank);
    fail();
    if (!this.options.log.isWhole)
      return this.lost(
        `the lead of rank ${rank} has died, and process ${this.options.self} does not have all any more that its shadow may lack, since its log was full (ft_log_bytes_max)`,
      );
    // It may have said BYE here before it died, and not everywhere.
    if (this.pml.peer(rank).failure === undefined) succession.holdWhoLeft(rank);
    this.pml.peer(successor);
    succession.succeed(rank, successor);
    this.saySync(successor);
  }

  private lost(text: string): void {
    this.options.onLost(new MultirailError('ERR_PROC_FAILED', text, { rank: this.rank }));
  }

  private saySync(to: number): void {
    this.say(to, encodeSync((this.succession as Succession).syncFor(to).contexts));
  }

  private takeSync(from: number, contexts: readonly SyncContext[]): void {
    const rank = this.rankOf(from);
    // Its shadow was told of the death before this process was.
    if (from !== this.numberOf(rank)) this.options.onLeadDead(rank);
    if (this.succession?.takeSync(from, { contexts }) === true) this.succession.tap.retry();
    this.options.wake();
  }

  /** Nobody is waited for who has to say what it has. */
  get isSettled(): boolean {
    return this.succession === undefined || this.succession.isSynced;
  }

  // ---------------------------------------------------------------- the place of the own lead

  /**
   * This process takes the place of its lead, which was said to have died(). Behind it messages can be received and sent; behind goOn() they
   * come and leave.
   */
  inherit(streams: ShadowStreams, host: TakeoverHost): Succession | undefined {
    const { log, ranks, self } = this.options;
    if (!log.isWhole) {
      this.lost(
        `the lead of rank ${this.rank} has died, and its shadow, process ${self}, does not have all any more that others may lack, since its log was full (ft_log_bytes_max)`,
      );
      return undefined;
    }
    this.host = host;
    for (const rank of this.dead) log.rename(rank, rank + ranks);
    const members = Array.from({ length: ranks }, (_, rank) => this.numberOf(rank));
    for (const number of members) this.pml.peer(number);
    const succession = this.pml.log(this.tapOptions, members);
    this.succession = succession;
    succession.restore({ flows: streams.flowCuts((rank) => this.numberOf(rank)), unexpected: [] });
    for (const envelope of streams.probedEnvelopes) {
      envelope.peer = this.pml.peer(this.numberOf(this.rankOf(envelope.source)));
      succession.restoreProbed(envelope);
    }
    return succession;
  }

  goOn(): void {
    const { ranks, self } = this.options;
    (this.succession as Succession).sendOwn();
    for (let rank = 0; rank < ranks; rank++) if (this.numberOf(rank) !== self) this.saySync(this.numberOf(rank));
    this.listen();
  }

  // ---------------------------------------------------------------- what is not needed any more

  /** Something was logged. */
  noteLogged(): void {
    const { log, logBytesMax } = this.options;
    const { usedBytes } = log;
    const askBytes = Math.min(logBytesMax / 2, ASK_BYTES_MAX);
    if (usedBytes < askBytes) {
      this.askedAtBytes = 0;
      return;
    }
    if (usedBytes < this.askedAtBytes + askBytes / ASK_PARTS) return;
    this.askedAtBytes = usedBytes;
    for (let rank = 0; rank < this.options.ranks; rank++) {
      const number = this.numberOf(rank);
      if (number !== this.options.self && log.has(number)) this.say(number, [encodeAsk()]);
    }
  }

  /** The shadow has said what its program has received. */
  takenByShadow(taken: readonly TakenNumbers[]): void {
    const byRank = new Map<number, Omit<TakenNumbers, 'peer'>[]>();
    for (const numbers of taken) {
      if (numbers.peer !== ALL) addTo(byRank, numbers.peer, [numbers]);
      else for (let rank = 0; rank < this.options.ranks; rank++) addTo(byRank, rank, [numbers]);
    }
    for (const [rank, list] of byRank) if (rank !== this.rank) this.say(this.numberOf(rank), encodeTaken(list));
  }

  /** The shadow is gone: what this lead has received itself counts. */
  private answerAlone(number: number): void {
    this.say(number, encodeTaken((this.succession as Succession).wholeFrom(number)));
  }

  /** A context has come to its end here. */
  contextOver(ctx: number): void {
    if (this.host?.isAlone !== true || !this.options.covers(ctx)) return;
    this.over.push(ctx);
    if (this.over.length < OVER_MAX) return;
    const messages = encodeTaken(this.over.map((each) => ({ ctx: each, below: undefined })));
    this.over = [];
    for (const { rank: number, ended } of this.pml.peers)
      if (ended === undefined && number === this.numberOf(this.rankOf(number)) && number !== this.options.self) this.say(number, messages);
  }

  private peerHas(from: number, taken: Omit<TakenNumbers, 'peer'>): void {
    const rank = this.rankOf(from);
    if (from !== this.numberOf(rank)) return;
    dropTaken(this.options.log, from, taken);
    this.host?.tellShadow({ ...taken, peer: rank });
    // There may be room in the log again.
    this.succession?.tap.retry();
  }
}

function addTo<T>(lists: Map<number, T[]>, key: number, items: readonly T[]): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [...items]);
  else list.push(...items);
}
