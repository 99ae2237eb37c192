// What this folder keeps of one communicator: its members, the agreements of its two series, its failed members and its revocation. Messages
// are handed to their agreement here, or wait for a generation that this process has not come to.
import { MultirailError } from '../errors.ts';
import { assert } from '../util/assert.ts';
import { Agreement, type AgreementHost } from './agreement.ts';
import { Bitmap } from './bitmap.ts';
import { FailedMembers } from './knowledge.ts';
import { Revocation } from './revoke.ts';
import { Roll } from './roll.ts';
import type { AgreementListener } from './states.ts';
import type { Contribution, Offer, Operation, Value } from './values.ts';
import { type AgreementMessage, decodeServiceBody, SERIES, SERVICE, type SeriesNumber, type ServiceHeader } from './wire.ts';

/** Agreements of one series that others have begun and this process has not: more than so many are no sound peer's. */
const HELD_AGREEMENTS_MAX = 1024;
/** Messages that wait for a generation. */
const HELD_MESSAGES_MAX = 16_384;

/** What a member calls an agreement with. */
export interface Call {
  readonly operation: Operation;
  readonly flag: number;
  /** By default, the failed members that are acknowledged here. */
  readonly acked?: Bitmap;
}

/** What an agreement that was called here has decided. */
export interface Decision {
  readonly id: number;
  readonly series: SeriesNumber;
  readonly q: number;
  readonly value: Value;
}

/** What is known of a communicator when it comes into being here. */
export interface OpenOptions {
  /** How many of its members have been succeeded, one recovery after the other: 0 for a new one. */
  readonly generation?: number;
  /** The next agreement of each series: what a successor begins with. */
  readonly next?: readonly [program: number, recovery: number];
  /** Decisions of the program's series are kept until they are released: a successor may repeat calls that are long decided. */
  readonly keepsDecisions?: boolean;
  /** How many recoveries of a communicator have led to it. */
  readonly epoch?: number;
  /** Members that may not know of it, and are called in; `origin` and `q`: the agreement that named them. */
  readonly callIn?: { readonly origin: number; readonly q: number; readonly newcomers: readonly number[] };
}

/** What a communicator needs of the process that it belongs to. */
export interface CommunicatorHost {
  readonly listener: AgreementListener | undefined;
  isFailed(number: number): boolean;
  isGone(number: number): boolean;
  send(numbers: readonly number[], message: AgreementMessage): void;
  /** Tells these ranks that they are members. `isCaller`: by every way that there is. */
  callIn(communicator: Communicator, ranks: readonly number[], isCaller: boolean): void;
  offer(communicator: Communicator, agreement: Agreement, operation: Operation, failed: Bitmap): Offer;
  handOut(communicator: Communicator, agreement: Agreement): void;
  /** The decision has to be seen to, as soon as the event that brought it is over. */
  handleDecided(communicator: Communicator, agreement: Agreement): void;
  handleExcluded(text: string): void;
  ignore(): void;
}

interface Series {
  /** What the next call is. */
  next: number;
  /** What was called last, unless its call waits. */
  current: Agreement | undefined;
  /** Everybody has the decisions up to this one. */
  forgottenTo: number;
  readonly agreements: Map<number, Agreement>;
  /** Calls that wait for the one before them to be decided. */
  readonly waiting: { q: number; own: Contribution }[];
}

export class Communicator implements AgreementHost {
  readonly id: number;
  readonly listener: AgreementListener | undefined;
  readonly failures = new FailedMembers();
  readonly revocation: Revocation;
  roll: Roll;
  /** Freed here, where others may still ask for what was decided: nothing is called on it any more. */
  isFreed = false;
  readonly epoch: number;
  /** The agreement that named the newcomers, and all of them: what a call says. */
  readonly callOf: OpenOptions['callIn'];
  /** Newcomers that this process has not called in, as long as it is not known that they have come. */
  private readonly uncalled: Set<number>;
  private readonly host: CommunicatorHost;
  private readonly keepsDecisions: boolean;
  private readonly series: readonly [Series, Series];
  /** Messages of a generation, or of a member, that this process has not heard of. */
  private held: { source: number; header: ServiceHeader; bytes: Uint8Array }[] = [];

  constructor(host: CommunicatorHost, id: number, members: readonly number[], self: number, options: OpenOptions) {
    const { generation = 0, next = [0, 0], keepsDecisions = false, epoch = 0, callIn } = options;
    this.host = host;
    this.id = id;
    this.listener = host.listener;
    this.keepsDecisions = keepsDecisions;
    this.epoch = epoch;
    this.callOf = callIn;
    this.uncalled = new Set(callIn?.newcomers);
    this.uncalled.delete(self);
    this.revocation = new Revocation(self, members.length);
    const series = (q: number): Series => ({ next: q, current: undefined, forgottenTo: -1, agreements: new Map(), waiting: [] });
    this.series = [series(next[0]), series(next[1])];
    this.roll = this.makeRoll(generation, members, self);
  }

  private makeRoll(generation: number, members: readonly number[], self: number): Roll {
    const roll = new Roll(generation, members, self);
    members.forEach((number, rank) => {
      if (!this.host.isGone(number)) return;
      const isDead = this.host.isFailed(number);
      roll.markGone(rank, isDead);
      if (isDead) this.failures.add(rank);
    });
    return roll;
  }

  // ---------------------------------------------------------------- calls

  /** Calls the next agreement of a series and returns which one that is. It begins when the one before it is decided. */
  begin(number: SeriesNumber, { operation, flag, acked = Bitmap.of(this.roll.size, this.failures.acknowledgedRanks) }: Call): number {
    assert(!this.isFreed, `communicator ${this.id} is freed`);
    const series = this.series[number];
    const q = series.next++;
    series.waiting.push({ q, own: { operation, flag: flag >>> 0, acked } });
    this.beginNext(number);
    return q;
  }

  /** Which one the next call of a series is. */
  nextOf(number: SeriesNumber): number {
    return this.series[number].next;
  }

  private beginNext(number: SeriesNumber): void {
    const series = this.series[number];
    if (series.waiting.length === 0 || series.current?.isDecided === false) return;
    const { q, own } = series.waiting.shift() as { q: number; own: Contribution };
    const base = this.baseOf(series, q);
    series.current = this.agreement(number, q);
    series.current.begin(own, base);
  }

  /**
   * The failed of the last decision, whom no tree has to have: all members have the same, since all have that decision. One of an older
   * generation speaks of others than the members of this one, and a successor has not seen any: then nobody goes by a tree, this once.
   */
  private baseOf({ current }: Series, q: number): Bitmap | undefined {
    if (current === undefined) return q === 0 && this.roll.generation === 0 ? new Bitmap(this.roll.size) : undefined;
    const last = current.value as Value;
    return last.generation === this.roll.generation ? last.failed : undefined;
  }

  private agreement(number: SeriesNumber, q: number): Agreement {
    const { agreements } = this.series[number];
    let agreement = agreements.get(q);
    if (agreement === undefined) {
      agreement = new Agreement(this, this.roll, number, q);
      agreements.set(q, agreement);
    }
    return agreement;
  }

  /** Decisions below `q` are not asked for any more. */
  release(number: SeriesNumber, q: number): void {
    this.forgetBelow(this.series[number], q);
  }

  private forgetBelow(series: Series, q: number): void {
    const { agreements } = series;
    series.forgottenTo = Math.max(series.forgottenTo, q - 1);
    for (const [key, agreement] of agreements) {
      if (key >= q || !agreement.isDecided) continue;
      agreement.forget();
      agreements.delete(key);
    }
  }

  // ---------------------------------------------------------------- events

  /** Throws ERR_PROTOCOL, with no state changed, for what no sound member sends. */
  take(source: number, header: ServiceHeader, bytes: Uint8Array): void {
    const { roll } = this;
    const rank = roll.rankOf(source);
    if (header.generation > roll.generation || rank === undefined) return this.hold(source, header, bytes);
    if (rank !== header.from) {
      throw new MultirailError(
        'ERR_PROTOCOL',
        `process ${source} is rank ${rank} of communicator ${this.id}, and says that it is rank ${header.from}`,
      );
    }
    const message = decodeServiceBody(header, bytes, roll.size) as AgreementMessage;
    const series = this.series[message.series];
    const known = series.agreements.get(message.q);
    if (known === undefined) {
      // Everybody has that decision: it was asked for by one that has got it meanwhile.
      if (message.q <= series.forgottenTo) return this.ignore();
      if (series.agreements.size >= HELD_AGREEMENTS_MAX)
        throw new MultirailError(
          'ERR_PROTOCOL',
          `agreement ${message.q} of communicator ${this.id} is begun by others, where ${series.next} is next here`,
        );
    }
    // A member that is still in an older generation will come to this one and say it again. What is decided is decided in all of them.
    const agreement = known ?? this.agreement(message.series, message.q);
    if (message.generation < agreement.generation && message.type !== SERVICE.DECIDE && !agreement.isDecided) return this.ignore();
    agreement.take(message);
  }

  private hold(source: number, header: ServiceHeader, bytes: Uint8Array): void {
    if (this.held.length >= HELD_MESSAGES_MAX)
      throw new MultirailError('ERR_PROTOCOL', `${HELD_MESSAGES_MAX} messages wait for a new generation of communicator ${this.id}`);
    this.held.push({ source, header, bytes: new Uint8Array(bytes) });
  }

  /** A process is dead or has left. Returns whether it was a member that was not known to be gone. */
  handleGone(number: number, isDead: boolean): boolean {
    const rank = this.roll.rankOf(number);
    if (rank !== undefined && isDead) this.failures.add(rank);
    const agreements = [...this.series[SERIES.PROGRAM].agreements.values(), ...this.series[SERIES.RECOVERY].agreements.values()];
    const news = new Map<Roll, number>();
    for (const roll of new Set([this.roll, ...agreements.map((agreement) => agreement.roll)])) {
      const place = roll.rankOf(number);
      if (place !== undefined && roll.markGone(place, isDead)) news.set(roll, place);
    }
    for (const agreement of agreements) {
      const place = news.get(agreement.roll);
      if (place !== undefined) agreement.handleGone(place);
    }
    return news.has(this.roll);
  }

  /** What follows from a decision, once the event that brought it is over. Returns messages that had waited for what is known now. */
  settle(agreement: Agreement): { source: number; header: ServiceHeader; bytes: Uint8Array }[] {
    // Whoever is named in it has contributed, or will not come.
    this.uncalled.clear();
    const series = this.series[agreement.series];
    const value = agreement.value as Value;
    // Whoever contributed to this one had decided the one before it. A successor asks again for what its predecessor knew.
    if (agreement.series === SERIES.RECOVERY || !this.keepsDecisions) this.forgetBelow(series, agreement.q);
    const isSucceeded = agreement.series === SERIES.RECOVERY && value.successions.length > 0 && value.generation === this.roll.generation;
    const released = isSucceeded ? this.beginGeneration(value) : [];
    this.beginNext(agreement.series);
    return released;
  }

  private beginGeneration({ generation, successions }: Value): { source: number; header: ServiceHeader; bytes: Uint8Array }[] {
    const members = [...this.roll.members];
    for (const { rank, number } of successions) {
      members[rank] = number;
      this.failures.revive(rank);
      this.revocation.revive(rank);
    }
    this.roll = this.makeRoll(generation + 1, members, this.roll.self);
    for (const agreement of this.series[SERIES.PROGRAM].agreements.values()) agreement.handleGeneration(this.roll);
    const { held } = this;
    this.held = [];
    return held;
  }

  /** Process numbers of those that the decision names as failed, where it speaks of the members of today. */
  failedNumbers({ failed, generation }: Value): number[] {
    if (generation !== this.roll.generation) return [];
    return [...failed].map((rank) => this.roll.members[rank]);
  }

  // ---------------------------------------------------------------- newcomers

  /**
   * Calls in those that nobody may have called: the lowest member that lives and is no newcomer does it, and the next one when that is gone.
   * Whoever has something to say to a newcomer calls it in before, too.
   */
  callIn(): void {
    const { roll, uncalled } = this;
    if (uncalled.size === 0) return;
    const newcomers = this.callOf?.newcomers ?? [];
    const caller = roll.living.find((rank) => !newcomers.includes(rank));
    if (caller === roll.self) this.introduce([...uncalled], true);
  }

  private introduce(ranks: readonly number[], isCaller: boolean): void {
    for (const rank of ranks) this.uncalled.delete(rank);
    const living = ranks.filter((rank) => !this.roll.gone.has(rank));
    if (living.length > 0) this.host.callIn(this, living, isCaller);
  }

  // ---------------------------------------------------------------- for its agreements

  send(roll: Roll, ranks: readonly number[], message: AgreementMessage): void {
    if (ranks.length === 0) return;
    if (this.uncalled.size > 0) {
      const unknowing = ranks.filter((rank) => this.uncalled.has(rank));
      if (unknowing.length > 0) this.introduce(unknowing, false);
    }
    this.host.send(
      ranks.map((rank) => roll.members[rank]),
      message,
    );
  }

  offer(agreement: Agreement, operation: Operation, failed: Bitmap): Offer {
    return this.host.offer(this, agreement, operation, failed);
  }

  handOut(agreement: Agreement): void {
    this.host.handOut(this, agreement);
  }

  handleDecided(agreement: Agreement): void {
    this.host.handleDecided(this, agreement);
  }

  handleExcluded(text: string): void {
    this.host.handleExcluded(`communicator ${this.id}: ${text}`);
  }

  ignore(): void {
    this.host.ignore();
  }
}
