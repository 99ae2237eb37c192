// The messages of a communicator that are logged, so that a process which takes the place of a dead member goes on with its streams
// (src/pml/tap.ts, src/pml/succession.ts): what multirail/ft asks of them, by ranks. One communicator of a process has it at most, with all that are
// made of it.
import type { MultirailError } from '../../errors.ts';
import type { MessageLog, TapOptions } from '../../pml/message-log.ts';
import type { PmlPeer } from '../../pml/records.ts';
import type { Cut, FlowNumbers, Succession, Sync } from '../../pml/succession.ts';
import { contextsOf, idOf } from '../contexts.ts';
import type { ProcessState } from '../process-state.ts';
import { type FamilyBase, LoggedFamily, type LoggedPlace, type MadeImage, type StreamCounters } from './logged-family.ts';
import type { RecordedOutcomes } from './recorded-outcomes.ts';
import { Turns } from './turns.ts';

/** The numbers of a rank at a save, as they are in its image: peers and sources are ranks. */
export interface StreamsImage {
  readonly id: number;
  readonly counters: StreamCounters;
  readonly flows: Cut['flows'];
  readonly unexpected: Cut['unexpected'];
  /** So many communicators were made whose id this rank gave. */
  readonly created: number;
  /** Communicators of this one that were there. */
  readonly made: readonly MadeImage[];
}

export type { FamilyBase, FlowNumbers, Sync };

/** A message of the log in an image. */
export interface LoggedImage {
  /** Rank. */
  readonly to: number;
  readonly ctx: number;
  readonly tag: number;
  readonly seq: number;
  readonly signature: number;
  readonly sync: boolean;
  readonly payload: Uint8Array;
}

export interface LoggedOptions extends Omit<TapOptions, 'covers' | 'outcomes' | 'within'> {
  /** Ranks that go back together with this one: messages between them are not logged. Undefined: each goes back by itself. */
  readonly within?: readonly number[] | undefined;
  /** Outcomes are recorded. */
  readonly outcomes?: RecordedOutcomes | undefined;
  /** Receives and probes may be from anybody, recorded or not. */
  readonly takesAnybody?: boolean;
}

export class LoggedStreams {
  readonly id: number;
  readonly log: MessageLog;
  readonly outcomes: RecordedOutcomes | undefined;
  readonly takesAnybody: boolean;
  /** The order in which results are handed to the program. */
  readonly turns: Turns | undefined;
  private readonly proc: ProcessState;
  private readonly place: LoggedPlace;
  private readonly succession: Succession;
  private readonly family: LoggedFamily;
  private readonly onDiffers: TapOptions['onDiffers'];
  /** The cut of the save that is under way. */
  private pending: Cut | undefined;
  private isOver = false;
  private wasGivenUp: MultirailError | undefined;

  constructor(
    proc: ProcessState,
    place: LoggedPlace,
    { log, digest, onDiffers, outcomes, takesAnybody = false, within }: LoggedOptions,
    base: FamilyBase,
  ) {
    this.proc = proc;
    this.place = place;
    this.id = place.id;
    this.log = log;
    this.outcomes = outcomes;
    this.turns = outcomes && new Turns(outcomes, (error) => onDiffers?.(error));
    this.takesAnybody = takesAnybody;
    this.family = new LoggedFamily(proc.contexts, place, base);
    const { pml } = proc.engine;
    // Each has to be known here: a peer of which nothing was needed would not be held when it dies.
    for (const number of place.group.worldRanks) if (number !== proc.rank) pml.peer(number);
    this.succession = pml.log(
      {
        log,
        covers: (ctx) => this.covers(ctx),
        digest,
        onDiffers,
        ...(outcomes === undefined ? {} : { outcomes }),
        within: within?.filter((rank) => rank !== place.group.rank).map((rank) => this.numberOf(rank)),
      },
      place.group.worldRanks,
    );
    proc.logged = this;
    this.onDiffers = onDiffers;
    proc.contexts.mayCome = (id) => this.family.mayCome(id);
  }

  /** Of the process that has that rank now. */
  numberOf(rank: number): number {
    return this.place.group.worldRanks[rank];
  }

  /** Of a process that has, or had, a place. */
  rankOf(number: number): number {
    return this.place.group.rankOf(number) as number;
  }

  private get peers(): PmlPeer[] {
    const { group } = this.place;
    const { pml } = this.proc.engine;
    return group.worldRanks.filter((number) => number !== this.proc.rank).map((number) => pml.peer(number));
  }

  /** Messages of that context are logged. */
  covers(ctx: number): boolean {
    return this.family.has(idOf(ctx));
  }

  /** A call on that context waits for the successor of a member that has died, instead of failing. */
  holds(ctx: number): boolean {
    return !this.isOver && this.covers(ctx) && this.peers.every(({ failure, channel }) => failure === undefined || channel !== undefined);
  }

  /** Process numbers by rank, as they are now. */
  get members(): readonly number[] {
    return this.place.group.worldRanks;
  }

  // ---------------------------------------------------------------- communicators that are made of it

  /** What successors have to know of the ids. */
  get base(): FamilyBase {
    return this.family.base;
  }

  /** An id that a successor gives again. */
  allocate(): number {
    return this.family.allocate();
  }

  /** Those who have the places of these members now. */
  current(numbers: readonly number[]): number[] {
    return this.family.current(numbers);
  }

  /** It was made of this one. `call`: how. */
  adopt(place: LoggedPlace, call: string): void {
    this.family.adopt(place, call);
  }

  /** It has come to its end here. */
  ended(id: number): void {
    this.family.end(id);
  }

  /** This process has begun from a save, and its program has not made again all that are in it. */
  get isRemaking(): boolean {
    return this.family.isRemaking;
  }

  /** What a save has of a communicator that the program makes again; undefined: it makes a new one. */
  given(call: string): { readonly id: number; readonly members: readonly number[]; readonly counters: StreamCounters } | undefined {
    const made = this.family.given(call);
    return made && { ...made, members: made.members.map((rank) => this.numberOf(rank)) };
  }

  /** The program has made again what the save has, and comes to the end of its first step. */
  beginSteps(): void {
    try {
      this.family.beginSteps();
    } catch (error) {
      this.onDiffers?.(error as MultirailError);
      throw error;
    }
  }

  // ---------------------------------------------------------------- what is known

  /** The log has everything since the last committed save, and whoever has died is held: there may be successors. */
  get isWhole(): boolean {
    return (
      !this.isOver && this.log.isWhole && this.peers.every(({ failure, channel }) => failure === undefined || channel?.state === 'HELD')
    );
  }

  /** Ranks that have not said what they have. */
  get awaited(): number[] {
    return this.peers.filter(({ channel }) => channel?.state === 'AWAITED').map(({ rank }) => this.rankOf(rank));
  }

  /** This process repeats what its predecessor did: some of what it sends has been received. */
  get isReplaying(): boolean {
    return this.succession.isReplaying;
  }

  /** Nothing is repeated by anybody, as far as this process sees. */
  get isSettled(): boolean {
    if (this.isOver) return true;
    if (this.succession.isReplaying || this.outcomes?.isReplaying === true || this.succession.tap.waitingCount > 0) return false;
    return this.peers.every(({ channel, recvs, flowsIn }) => {
      if (channel?.state === 'HELD') return false;
      for (const { ctx } of recvs) if (this.covers(ctx)) return false;
      for (const [ctx, { holes, early }] of flowsIn) if (this.covers(ctx) && ((holes?.size ?? 0) > 0 || early.size > 0)) return false;
      return true;
    });
  }

  get counters(): Readonly<Record<'logged' | 'loggedBytes' | 'within' | 'suppressed' | 'replayed' | 'unlogged', number>> {
    return this.succession.tap.counters;
  }

  // ---------------------------------------------------------------- saves

  /** A save is cut here: no message of the communicator is on its way, anywhere. */
  cut(): StreamsImage {
    this.abandonCut();
    const cut = this.succession.cut();
    this.pending = cut;
    const { collectives, objects } = this.place.counters;
    return {
      id: this.id,
      counters: { collectives, objects },
      ...this.family.cut(),
      flows: cut.flows.map((flow) => ({ ...flow, peer: this.rankOf(flow.peer) })),
      unexpected: cut.unexpected.map((message) => ({ ...message, source: this.rankOf(message.source) })),
    };
  }

  /** The save of the last cut is committed: what was sent before it is not kept any more. */
  commitCut(): void {
    const { pending } = this;
    this.pending = undefined;
    if (pending === undefined || this.isOver) return;
    this.succession.commit(pending);
    this.retry();
  }

  /** There is no such save. */
  abandonCut(): void {
    const { pending } = this;
    this.pending = undefined;
    if (pending === undefined || this.isOver) return;
    this.succession.abandonCut();
    this.retry();
  }

  /** Calls this once, at the end of the engine's next turn. */
  afterTurn(run: () => void): void {
    this.proc.engine.oncePolled(run);
  }

  /** Sends that have waited for room in the log, or for outcomes to be safe. */
  retry(): void {
    this.succession.tap.retry();
    this.proc.engine.schedule();
  }

  // ---------------------------------------------------------------- successors

  /** This process says that its log is whole: it stays so until the dead have successors. */
  keepLog(isKept: boolean): void {
    this.succession.tap.mustKeep = isKept;
  }

  /** All that is here of that member is its successor's from now on. */
  succeed(rank: number, successor: number): void {
    const { pml } = this.proc.engine;
    pml.peer(successor);
    const number = this.numberOf(rank);
    this.succession.succeed(number, successor);
    this.family.succeed(number, successor);
    this.place.group.succeed(rank, successor);
    this.place.desk.memberSucceeded();
    this.proc.engine.schedule();
  }

  /** This process is a successor, and goes on from this image; undefined: from the beginning. All members have to say what they have. */
  restore(image: StreamsImage | undefined): void {
    const { counters } = this.place;
    if (image !== undefined) {
      Object.assign(counters, image.counters);
      this.family.restore(image);
    }
    this.succession.restore({
      flows: (image?.flows ?? []).map((flow) => ({ ...flow, peer: this.numberOf(flow.peer) })),
      unexpected: (image?.unexpected ?? []).map((message) => ({ ...message, source: this.numberOf(message.source) })),
    });
  }

  /** What this process has of the messages of that member. */
  syncFor(rank: number): Sync {
    return this.succession.syncFor(this.numberOf(rank));
  }

  /** That member has said what it has: it is sent the rest, without what an earlier life of this process has sent to it. */
  takeSync(rank: number, sync: Sync, sent?: FlowNumbers): void {
    this.succession.takeSync(this.numberOf(rank), sync, sent);
    this.proc.lookSoon();
    this.proc.engine.schedule();
  }

  // ---------------------------------------------------------------- members that go back together

  /** That member lives, and goes back: nothing leaves to it until it has said what it has. */
  stopTo(rank: number): void {
    this.succession.stopTo(this.numberOf(rank));
  }

  /** Numbers below which messages to that member have left; undefined: none that it could still get. */
  sentTo(rank: number): FlowNumbers | undefined {
    return this.succession.sentTo(this.numberOf(rank));
  }

  /** All that has left to here below these numbers has come, and nothing of it is written any more. */
  hasTaken(rank: number, sent: FlowNumbers): boolean {
    return this.succession.hasTaken(this.numberOf(rank), sent);
  }

  /** All that it was sent from there below these numbers is here, whether that member lives or not. */
  has(rank: number, sent: FlowNumbers): boolean {
    return this.succession.has(this.numberOf(rank), sent);
  }

  /** That member has what left to it, and no second copy of it can come to it any more. */
  isDrained(rank: number): boolean {
    return this.succession.isDrained(this.numberOf(rank));
  }

  /** Receives that have found their message have its data, and every message that was sent has its number. */
  get isWritten(): boolean {
    if (this.succession.tap.waitingCount > 0) return false;
    return this.peers.every(({ rank }) => this.succession.isWritten(rank));
  }

  /** What is in the log, for its image: payloads are in memory of the log. */
  *logged(): Iterable<LoggedImage> {
    for (const { rank: number } of this.peers) {
      for (const { ctx, tag, seq, signature, sync, payload } of this.log.messagesTo(number)) {
        const [bytes = new Uint8Array(0)] = payload.views;
        yield { to: this.rankOf(number), ctx, tag, seq, signature, sync, payload: bytes };
      }
    }
  }

  /** The save of the cut is committed: this process goes back to it, and others need what is in the log still. */
  keepCut(): void {
    this.abandonCut();
  }

  /** The save of that member is committed: what it never asks for, and what it never sends again, is not kept. */
  commitOf(rank: number, nextIn: FlowNumbers, nextOut: FlowNumbers): void {
    if (this.isOver) return;
    this.succession.commitOf(this.numberOf(rank), nextIn, nextOut);
    this.retry();
  }

  /** This process goes back, after giveUp(), and has taken all that was on its way to it: it enters again what it leaves here. */
  leaveToEnter(): void {
    const { proc } = this;
    const ids = new Set([this.id, ...this.family.ids]);
    const contexts = [...ids].flatMap((id) => contextsOf(id));
    for (const id of ids) proc.leaveToEnter(id);
    for (const ctx of this.succession.forget(contexts)) {
      const id = idOf(ctx);
      if (ids.has(id)) continue;
      ids.add(id);
      proc.leaveToEnter(id);
    }
    this.wasGivenUp = undefined;
    this.close();
  }

  /** There will be no successors: whatever waits for one ends with this error. */
  giveUp(error: MultirailError): void {
    if (this.isOver) return;
    this.abort(error);
    for (const id of [this.id, ...this.family.ids]) this.proc.revoked(id);
    this.wasGivenUp = error;
    this.proc.engine.schedule();
  }

  /** As giveUp(), for the whole job: what waits for others ends with theirs. */
  abort(error: MultirailError): void {
    this.isOver = true;
    this.pending = undefined;
    this.turns?.end();
    this.succession.giveUp(error);
  }

  /** The communicator has done its part. Those that the program has made of it, and has not freed, are its own from now on. */
  close(): void {
    this.isOver = true;
    this.turns?.end();
    if (this.proc.logged !== this) return;
    const { wasGivenUp } = this;
    if (wasGivenUp !== undefined) for (const id of this.family.ids) this.proc.endCommunicator(id, false, wasGivenUp);
    this.proc.logged = undefined;
    this.succession.tap.open();
    this.proc.contexts.mayCome = undefined;
    this.proc.engine.pml.endLog();
  }
}
