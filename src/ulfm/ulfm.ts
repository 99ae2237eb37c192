// The face of src/ulfm: what a process knows of deaths, and what it has revoked and agreed on with others. Pure and synchronous: events in,
// messages, deaths, revocations and decisions out. Its driver looks at what came out after each event, and sends the messages in their order.
import { MultirailError } from '../errors.ts';
import type { Agreement } from './agreement.ts';
import { Bitmap } from './bitmap.ts';
import { type Call, Communicator, type CommunicatorHost, type Decision, type OpenOptions } from './communicator.ts';
import { EVIDENCE, EVIDENCE_TEXTS, Knowledge, type Notice, type NoticeOutcome } from './knowledge.ts';
import { PROCESSES_MAX } from './limits.ts';
import { type ReplaceHost, Replacements, StandbyRole } from './replace.ts';
import { Standbys } from './standbys.ts';
import type { AgreementListener } from './states.ts';
import type { Offer, Operation, Succession, Value } from './values.ts';
import {
  type AgreementMessage,
  type CalledInMessage,
  decodeServiceBody,
  decodeServiceHeader,
  encodeService,
  type FailedMessage,
  type RevokeMessage,
  SERVICE,
  SERVICE_NAMES,
  type SeriesNumber,
  type ServiceHeader,
  type ServiceMessage,
} from './wire.ts';

export type { Decision } from './communicator.ts';

/** Messages for communicators that are coming into being here: more than so many are no sound peer's. */
const EARLY_MESSAGES_MAX = 16_384;

export interface UlfmOptions {
  /** This process's number and incarnation. */
  readonly self: number;
  readonly incarnation: number;
  /**
   * What this process offers for a communicator that an agreement makes: an id that nobody has, and the successors of these failed ranks, as
   * many as there are; by default, those of the pool. Asked of the leader alone, once for each value that it puts together.
   */
  offer(
    id: number,
    series: SeriesNumber,
    operation: Operation,
    failed: readonly number[],
  ): { readonly newId: number; readonly successions?: readonly Succession[] };
  /** Ranks with which a rendezvous of that communicator is under way: they are told of its revocation directly. */
  rendezvousWith(id: number): Iterable<number>;
  /** A communicator is coming into being here, whose id is not known yet: messages of unknown ones wait for it. */
  isCreating(): boolean;
  /** Where replace() on that communicator finds too few that stand by: more are expected, and worth waiting for. By default they are not. */
  awaitsStandbys?(id: number): boolean;
  readonly listener?: AgreementListener;
}

/** A message for processes of the job, by number. */
export interface Outgoing {
  readonly to: number;
  readonly bytes: Uint8Array;
}

export class Ulfm implements CommunicatorHost, ReplaceHost {
  readonly knowledge: Knowledge;
  readonly listener: AgreementListener | undefined;
  /** To be sent, in this order. The driver takes them away. */
  readonly messages: Outgoing[] = [];
  /** Deaths that became known: the driver ends what is under way with these processes. */
  readonly deaths: Notice[] = [];
  /** Communicators that are revoked from now on. */
  readonly revocations: number[] = [];
  readonly decisions: Decision[] = [];
  /** Calls of standbys that go by the server of the job, too. */
  readonly serverCalls: Outgoing[] = [];
  /** Who stands by. */
  readonly standbys: Standbys;
  readonly replacements: Replacements = new Replacements(this);
  /** Set where this process stands by, or did. */
  standby: StandbyRole | undefined;
  readonly counters = { ignored: 0, unknownTypes: 0 };
  private readonly options: UlfmOptions;
  private readonly communicators = new Map<number, Communicator>();
  private readonly early = new Map<number, { source: number; bytes: Uint8Array }[]>();
  private earlyMessages = 0;
  /** Decisions whose consequences have not been seen to. */
  private readonly unsettled: { communicator: Communicator; agreement: Agreement }[] = [];
  /** Decisions of calls that go on by themselves. */
  private readonly stepping: Decision[] = [];

  constructor(options: UlfmOptions) {
    this.options = options;
    this.listener = options.listener;
    this.knowledge = new Knowledge(options.self, options.incarnation);
    this.standbys = new Standbys((number) => this.knowledge.isGone(number));
  }

  get self(): number {
    return this.options.self;
  }

  /** This process has been declared dead: it takes nothing, and nothing comes out any more. */
  get ownDeath(): Notice | undefined {
    return this.knowledge.ownDeath;
  }

  // ---------------------------------------------------------------- processes

  /** A process belongs to the job. It is told of the last deaths, where it is a neighbour of this one, and was not heard of before. */
  addProcess(number: number, incarnation: number): void {
    const { knowledge } = this;
    const isNew = knowledge.incarnationOf(number) === undefined;
    knowledge.addProcess(number, incarnation);
    if (isNew) for (const notice of knowledge.newsFor(number)) this.postFailed([number], notice);
  }

  /** The word of a death, by whatever way it came here. */
  handleNotice(notice: Notice): NoticeOutcome {
    const outcome = this.learn(notice);
    this.settle();
    return outcome;
  }

  /** A process has said BYE. It has decided all that it ever took part in. */
  handleLeft(number: number): void {
    if (this.ownDeath !== undefined || !this.knowledge.leave(number)) return;
    this.spread(number, false);
    this.settle();
  }

  private learn(notice: Notice): NoticeOutcome {
    const outcome = this.knowledge.take(notice);
    if (outcome === 'own death') this.end();
    if (outcome !== 'news' || this.ownDeath !== undefined) return outcome;
    this.deaths.push(notice);
    this.postFailed(this.knowledge.neighbours, notice);
    this.spread(notice.number, true);
    return outcome;
  }

  private postFailed(numbers: readonly number[], { serial, number, incarnation, evidence }: Notice): void {
    this.post(numbers, { type: SERVICE.FAILED, from: this.options.self, serial, number, incarnation, evidence });
  }

  /** Somebody is gone: tells the communicators that it was a member of. */
  private spread(number: number, isDead: boolean): void {
    for (const communicator of this.communicators.values()) {
      if (!communicator.handleGone(number, isDead)) continue;
      this.mendFlood(communicator);
      communicator.callIn();
    }
  }

  /** What was under way in the name of this process is void. */
  private end(): void {
    this.messages.length = 0;
    this.decisions.length = 0;
    this.revocations.length = 0;
    this.unsettled.length = 0;
    this.stepping.length = 0;
    this.serverCalls.length = 0;
  }

  // ---------------------------------------------------------------- communicators

  /** A communicator comes into being here: `members` are process numbers by rank, this process among them. */
  open(id: number, members: readonly number[], options: OpenOptions = {}): void {
    if (this.ownDeath !== undefined) return;
    const self = members.indexOf(this.options.self);
    const communicator = new Communicator(this, id, members, self, options);
    this.communicators.set(id, communicator);
    communicator.callIn();
    for (const { source, bytes } of this.takeEarly(id)) this.takeAgain(source, bytes);
    this.settle();
  }

  /** No communicator is coming into being here any more: what had waited for one was for others. */
  dropEarly(): void {
    this.early.clear();
    this.earlyMessages = 0;
  }

  /**
   * The communicator is freed. `isClean`: all members have said so to each other, so everybody has every decision. Otherwise its last
   * decision stays, for those that ask.
   */
  free(id: number, isClean: boolean): void {
    if (isClean) this.communicators.delete(id);
    else this.communicator(id).isFreed = true;
  }

  has(id: number): boolean {
    return this.communicators.has(id);
  }

  private communicator(id: number): Communicator {
    const communicator = this.communicators.get(id);
    if (communicator === undefined) throw new MultirailError('ERR_COMM', `communicator ${id} is not known here, or was freed`);
    return communicator;
  }

  // ---------------------------------------------------------------- calls

  /** Calls the next agreement of a series, and returns which one it is. Its decision comes out with that number. */
  begin(id: number, series: SeriesNumber, call: Call): number {
    const q = this.communicator(id).begin(series, call);
    this.settle();
    return q;
  }

  /**
   * Calls replace() on a communicator: agreements go on until it has ended, which `replacements.ended` tells with the number that is returned
   * here. No other agreement of the program is begun on it meanwhile.
   */
  beginReplace(id: number, operation: Operation): number {
    const ticket = this.replacements.begin(id, operation);
    this.settle();
    return ticket;
  }

  awaitsStandbys(id: number): boolean {
    return this.options.awaitsStandbys?.(id) === true;
  }

  /** A call of replace() that waits for standbys (`replacements.awaiting`) agrees again. */
  resumeReplace(id: number): void {
    if (this.ownDeath !== undefined) return;
    this.replacements.resume(id);
    this.settle();
  }

  /** This process stands by. */
  standBy(): void {
    this.standby = new StandbyRole(this);
    this.standbys.set(this.self, true);
  }

  /** This process has accepted the call into that communicator, and those who have to know it know it: it says so. */
  answerCall(id: number): void {
    if (this.ownDeath !== undefined) return;
    this.standby?.answer(id);
    this.settle();
  }

  /** Which one the next call of a series is. */
  nextOf(id: number, series: SeriesNumber): number {
    return this.communicator(id).nextOf(series);
  }

  /** Decisions of a series below `q` are not asked for any more: no successor will repeat them. */
  release(id: number, series: SeriesNumber, q: number): void {
    this.communicator(id).release(series, q);
  }

  /** Revokes the communicator at all of its members. */
  revoke(id: number): void {
    if (this.ownDeath === undefined) this.revokeHere(this.communicator(id));
  }

  isRevoked(id: number): boolean {
    return this.communicator(id).revocation.isRevoked;
  }

  /** That member will complete nothing any more that was under way on the communicator. */
  hasHeardRevoke(id: number, rank: number): boolean {
    return this.communicator(id).revocation.hasHeard(rank);
  }

  /** Ranks that are known here to have failed, ascending; another member may know of more. */
  getFailed(id: number): readonly number[] {
    return this.communicator(id).failures.get();
  }

  /** Acknowledges the first `count` of what getFailed() returned last (default: all that are known), and returns how many are acknowledged. */
  ackFailed(id: number, count?: number): number {
    return this.communicator(id).failures.acknowledge(count);
  }

  isAcknowledged(id: number, rank: number): boolean {
    return this.communicator(id).failures.isAcknowledged(rank);
  }

  /** Some failed member is not acknowledged here: receives from anybody report it. */
  hasUnacknowledged(id: number): boolean {
    return this.communicator(id).failures.hasUnacknowledged;
  }

  /** Process numbers of the members, by rank. */
  membersOf(id: number): readonly number[] {
    return this.communicator(id).roll.members;
  }

  /** How many recoveries of a communicator have led to this one. */
  epochOf(id: number): number {
    return this.communicator(id).epoch;
  }

  generationOf(id: number): number {
    return this.communicator(id).roll.generation;
  }

  // ---------------------------------------------------------------- messages

  /** A service message of that process. Throws ERR_PROTOCOL, with no state changed, for what no sound peer sends. */
  handleMessage(source: number, bytes: Uint8Array): void {
    // Whoever is known to be gone has been given up: the others do not hear it any more, either.
    if (this.ownDeath !== undefined || this.knowledge.isGone(source)) return;
    this.take(source, bytes);
    this.settle();
  }

  private take(source: number, bytes: Uint8Array): void {
    const header = decodeServiceHeader(bytes);
    if (SERVICE_NAMES[header.type] === undefined) {
      this.counters.unknownTypes++;
      return;
    }
    if (header.type === SERVICE.FAILED) return this.takeFailed(source, decodeServiceBody(header, bytes, PROCESSES_MAX) as FailedMessage);
    if (header.type === SERVICE.CALLED_IN) return this.takeCall(source, decodeServiceBody(header, bytes, PROCESSES_MAX) as CalledInMessage);
    const communicator = this.communicators.get(header.id);
    if (communicator === undefined) return this.takeUnknown(source, header, bytes);
    if (header.type === SERVICE.REVOKE || header.type === SERVICE.REVOKED) {
      return this.takeRevoke(communicator, source, decodeServiceBody(header, bytes, communicator.roll.size) as RevokeMessage);
    }
    communicator.take(source, header, bytes);
  }

  private takeFailed(source: number, { from, serial, number, incarnation, evidence }: FailedMessage): void {
    if (from !== source) throw new MultirailError('ERR_PROTOCOL', `process ${source} says that it is process ${from}`);
    const text = `${EVIDENCE_TEXTS[evidence] ?? `it is dead by evidence ${evidence}`} (process ${source} has told)`;
    this.learn({ serial, number, incarnation, evidence, text });
  }

  private takeCall(source: number, message: CalledInMessage): void {
    if (this.standby === undefined)
      throw new MultirailError('ERR_PROTOCOL', `process ${source} calls process ${this.self} in, which has never stood by`);
    if (!this.standby.takeCall(source, message)) this.ignore();
  }

  private takeRevoke(communicator: Communicator, source: number, { type, from }: RevokeMessage): void {
    const { id, roll, revocation } = communicator;
    const rank = roll.rankOf(source);
    if (rank !== undefined && rank !== from) {
      throw new MultirailError('ERR_PROTOCOL', `process ${source} is rank ${rank} of communicator ${id}, and says that it is rank ${from}`);
    }
    this.revokeHere(communicator);
    // A successor of whom this process has not heard is told when it has.
    if (rank !== undefined && revocation.hear(rank, type === SERVICE.REVOKE))
      this.post([source], { type: SERVICE.REVOKED, id, from: roll.self });
  }

  private revokeHere(communicator: Communicator): void {
    const { id, roll, revocation } = communicator;
    if (revocation.isRevoked) return;
    this.revocations.push(id);
    this.postRevoke(communicator, revocation.revoke(roll.living, this.options.rendezvousWith(id)));
  }

  /** The ring of the living has changed: those that stand next to us now may not have heard of the revocation. */
  private mendFlood(communicator: Communicator): void {
    this.postRevoke(communicator, communicator.revocation.mend(communicator.roll.living));
  }

  private postRevoke({ id, roll }: Communicator, ranks: readonly number[]): void {
    this.post(
      ranks.map((rank) => roll.members[rank]),
      { type: SERVICE.REVOKE, id, from: roll.self },
    );
  }

  /** Messages of communicators that others have and this process has not: they wait if one is coming into being here, else they are late. */
  private takeUnknown(source: number, { id }: ServiceHeader, bytes: Uint8Array): void {
    if (!this.options.isCreating()) return this.ignore();
    if (this.earlyMessages >= EARLY_MESSAGES_MAX)
      throw new MultirailError('ERR_PROTOCOL', `${EARLY_MESSAGES_MAX} messages wait for communicators that are not known here`);
    this.earlyMessages++;
    const list = this.early.get(id);
    const message = { source, bytes: new Uint8Array(bytes) };
    if (list === undefined) this.early.set(id, [message]);
    else list.push(message);
  }

  private takeEarly(id: number): { source: number; bytes: Uint8Array }[] {
    const list = this.early.get(id) ?? [];
    this.early.delete(id);
    this.earlyMessages -= list.length;
    return list;
  }

  /** A message that had to wait: who sent it may be gone by now, and what is wrong with it concerns nobody any more. */
  private takeAgain(source: number, bytes: Uint8Array): void {
    if (this.ownDeath !== undefined || this.knowledge.isGone(source)) return;
    try {
      this.take(source, bytes);
    } catch (error) {
      if (!(error instanceof MultirailError) || error.code !== 'ERR_PROTOCOL') throw error;
      this.ignore();
    }
  }

  private post(numbers: readonly number[], message: ServiceMessage): void {
    if (numbers.length === 0 || this.ownDeath !== undefined) return;
    const bytes = encodeService(message);
    for (const to of numbers) this.messages.push({ to, bytes });
  }

  // ---------------------------------------------------------------- for the communicators

  isFailed(number: number): boolean {
    return this.knowledge.isFailed(number);
  }

  isGone(number: number): boolean {
    return this.knowledge.isGone(number);
  }

  send(numbers: readonly number[], message: AgreementMessage): void {
    this.post(numbers, message);
  }

  callIn({ id, roll, epoch, callOf }: Communicator, ranks: readonly number[], isCaller: boolean): void {
    const { origin, q, newcomers } = callOf as NonNullable<OpenOptions['callIn']>;
    const { members } = roll;
    const set = Bitmap.of(members.length, newcomers);
    const call: CalledInMessage = { type: SERVICE.CALLED_IN, id, from: this.self, origin, q, epoch, members, newcomers: set };
    const numbers = ranks.map((rank) => members[rank]);
    this.post(numbers, call);
    if (isCaller && this.ownDeath === undefined) for (const to of numbers) this.serverCalls.push({ to, bytes: encodeService(call) });
  }

  offer(communicator: Communicator, agreement: Agreement, operation: Operation, failed: Bitmap): Offer {
    const { id, roll } = communicator;
    const ranks = [...failed];
    const { newId, successions } = this.options.offer(id, agreement.series, operation, ranks);
    const isOut = (number: number): boolean => roll.rankOf(number) !== undefined || this.replacements.isExcluded(id, number);
    return { newId, successions: successions ?? this.standbys.choose(operation, ranks, isOut) };
  }

  handOut({ id }: Communicator, { series, q, value }: Agreement): void {
    if (this.ownDeath !== undefined) return;
    const decision = { id, series, q, value: value as Value };
    if (this.replacements.awaits(decision) || this.standby?.awaits(decision) === true) this.stepping.push(decision);
    else this.decisions.push(decision);
  }

  handleDecided(communicator: Communicator, agreement: Agreement): void {
    this.unsettled.push({ communicator, agreement });
  }

  handleExcluded(text: string): void {
    const { self, incarnation } = this.options;
    this.learn({ serial: 0, number: self, incarnation, evidence: EVIDENCE.AGREED, text: `the others have gone on without it: ${text}` });
  }

  ignore(): void {
    this.counters.ignored++;
  }

  /** Sees to what follows from decisions, after the event that brought them. */
  private settle(): void {
    for (let next = this.unsettled.shift(); next !== undefined; next = this.unsettled.shift()) {
      const { communicator, agreement } = next;
      const value = agreement.value as Value;
      const { self } = this.options;
      const failed = communicator.failedNumbers(value);
      if (failed.includes(self)) return this.handleExcluded(`agreement ${agreement.name} names it as failed`);
      // A decision is a word of death, too: whom it names needs no other.
      for (const number of failed) {
        const incarnation = this.knowledge.incarnationOf(number) ?? 0;
        this.learn({ serial: 0, number, incarnation, evidence: EVIDENCE.AGREED, text: EVIDENCE_TEXTS[EVIDENCE.AGREED] });
      }
      const released = communicator.settle(agreement);
      this.mendFlood(communicator);
      for (const { source, bytes } of released) this.takeAgain(source, bytes);
    }
    for (let next = this.stepping.shift(); next !== undefined; next = this.stepping.shift()) {
      if (this.replacements.awaits(next)) this.replacements.take(next);
      else this.standby?.take(next);
    }
  }
}
