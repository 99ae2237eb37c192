// The outcomes of one rank that it cannot repeat by itself: which message a receive from anybody has matched, what calls have found that only
// look, in which order results were handed to the program, what once() has made. They are numbered and given to another process, the holder,
// and what is sent waits until the holder has them, so that nobody has seen an effect of one that is lost. A successor obeys the list of its
// predecessor, and where it ends outcomes are its own again. Pure: it says what is to be sent, and is told what has come.
import { MultirailError } from '../../errors.ts';
import type { MessageOutcomes } from '../../pml/message-log.ts';
import type { RecvRequest } from '../../pml/records.ts';
import {
  BATCH_BYTES_MAX,
  EVENT,
  type EventKind,
  type EventRecord,
  encodeBatch,
  fitting,
  NO_BYTES,
  RECORD_BYTES_MAX,
  recordBytes,
} from './format.ts';
import type { HeldRecords } from './holdings.ts';

/**
 * What is done about outcomes. `recorded`: all are. `send`: from the same state and the same messages the program sends the same, so nothing but
 * values of once() is recorded, and nothing waits.
 */
export type Determinism = 'recorded' | 'send';

/** Recorded outcomes since the last committed save are no more. */
export const RECORDS_BYTES_MAX = 32 * 1024 * 1024;
/** What a record takes in memory besides its bytes. */
const ENTRY_BYTES = 64;

export interface RecorderOptions {
  /** Own rank. */
  readonly rank: number;
  readonly determinism: Determinism;
  readonly bytesMax?: number;
  /** A batch is no longer, but for one of one record. */
  readonly batchBytesMax?: number;
  /** Of the process with that number. */
  rankOf(number: number): number;
  /** Of the process that has that rank now. */
  numberOf(rank: number): number;
  /** As of a log of messages (send-log.ts). */
  readonly onPressure?: (kind: 'due' | 'given up') => void;
  /** There is something to tell the holder. */
  readonly onNews?: () => void;
}

/** The numbers of a rank's outcomes at a save. */
export interface RecorderCut {
  /** Outcomes recorded before it. */
  readonly index: number;
  /** Receives and probes from anybody before it. */
  readonly receives: number;
  /** Awaits before it. */
  readonly awaits: number;
}

interface KnownMatch {
  readonly source: number;
  readonly seq: number;
}

export class Recorder implements MessageOutcomes {
  readonly options: RecorderOptions;
  readonly counters = { recorded: 0, obeyed: 0, batches: 0 };
  /** Every outcome since the last committed save is in the list. */
  isWhole = true;
  /** Outcomes that come are recorded. */
  private records = true;
  private list: EventRecord[] = [];
  /** Number of the first one in the list. */
  private base = 0;
  private bytes = 0;
  private isDue = false;
  /** The holder is sent those below. */
  private sent = 0;
  /** The holder has those below. */
  private confirmed = 0;
  private epoch = 0;
  /** One batch is on its way: what comes meanwhile goes with the next. */
  private isUnderWay = false;
  /** The holder is to be told even where there is nothing to tell: that this is all. */
  private mustTell = false;
  private receives = 0;
  private awaits = 0;
  private pending: RecorderCut | undefined;
  // What a successor obeys.
  private readonly matches = new Map<number, KnownMatch>();
  private readonly outcomes: EventRecord[] = [];
  private readonly onces = new Map<string, Uint8Array>();
  private obeyed = 0;
  /** Of the run of calls without a result that comes next, so many were obeyed. */
  private nothings = 0;

  constructor(options: RecorderOptions) {
    this.options = options;
  }

  private get end(): number {
    return this.base + this.list.length;
  }

  /** The whole list, as a holder would have it. */
  get all(): { readonly base: number; readonly records: readonly EventRecord[] } {
    return { base: this.base, records: [...this.list] };
  }

  /** Memory that the list takes. */
  get usedBytes(): number {
    return this.bytes;
  }

  /** Outcomes are recorded, and not only values of once(). */
  get isFull(): boolean {
    return this.options.determinism === 'recorded';
  }

  /** What is sent now may depend on so many outcomes. */
  get mark(): number {
    return this.isFull ? this.end : 0;
  }

  /** The holder has so many: what depends on no more may leave, whatever is recorded meanwhile. */
  get safe(): number {
    return this.confirmed;
  }

  /** What is sent now may leave. */
  get isConfirmed(): boolean {
    return this.mark <= this.safe;
  }

  /** Some of what is listed was not asked for again yet. */
  get isReplaying(): boolean {
    return this.matches.size > 0 || this.obeyed < this.outcomes.length;
  }

  // ---------------------------------------------------------------- recording

  private add(kind: EventKind, values: readonly number[], bytes = NO_BYTES): void {
    if (!this.records) return;
    const { list } = this;
    const last = list[list.length - 1];
    if (kind === EVENT.NOTHING && last?.kind === EVENT.NOTHING && this.sent < this.end) {
      list[list.length - 1] = { ...last, values: [last.values[0] + 1] };
      return this.options.onNews?.();
    }
    const record: EventRecord = { kind, values, bytes };
    const { bytesMax = RECORDS_BYTES_MAX, onPressure } = this.options;
    this.bytes += recordBytes(record) + ENTRY_BYTES;
    if (this.bytes > bytesMax) {
      this.giveUp();
      return onPressure?.('given up');
    }
    list.push(record);
    this.counters.recorded++;
    this.options.onNews?.();
    if (this.isDue || this.bytes < (bytesMax / 4) * 3) return;
    this.isDue = true;
    onPressure?.('due');
  }

  /** There is no room: nothing is recorded until the next save is cut, and until that is committed a failure takes everybody back. */
  private giveUp(): void {
    this.isWhole = false;
    this.records = false;
    // With one number for what is not recorded: until the holder knows that its list is of no use, nothing leaves.
    this.base = this.end + 1;
    this.list = [];
    this.bytes = 0;
    this.sent = this.base;
    this.mustTell = true;
    this.options.onNews?.();
  }

  /** What a call that looks has found; undefined: nothing. */
  note(kind: EventKind, values: readonly number[] | undefined): void {
    if (!this.isFull) return;
    if (values === undefined) this.add(EVENT.NOTHING, [1]);
    else this.add(kind, values);
  }

  /**
   * What a call of that kind found before; `nothing`: it found nothing. Undefined: nothing is listed of it, so it is decided now, and noted.
   * @throws ERR_REPLAY: something else is listed.
   */
  next(kind: EventKind): readonly number[] | 'nothing' | undefined {
    const record = this.outcomes[this.obeyed];
    if (record === undefined || !this.isFull) return undefined;
    if (record.kind === EVENT.NOTHING && kind !== EVENT.TURN) {
      this.nothings++;
      if (this.nothings >= record.values[0]) this.took();
      return 'nothing';
    }
    if (record.kind !== kind) throw this.diverged(`a call of kind ${kind} comes where one of kind ${record.kind} was`);
    this.took();
    return record.values;
  }

  /** As next(), leaving it in its place: who is next to be handed its result. */
  get nextTurn(): number | undefined {
    const record = this.outcomes[this.obeyed];
    return record?.kind === EVENT.TURN ? record.values[0] : undefined;
  }

  /** Outcomes are listed that come before anything new. */
  get hasOutcomes(): boolean {
    return this.obeyed < this.outcomes.length;
  }

  private took(): void {
    this.obeyed++;
    this.nothings = 0;
    this.counters.obeyed++;
    if (this.obeyed < this.outcomes.length) return;
    this.outcomes.length = 0;
    this.obeyed = 0;
  }

  /** What once() has made under that name. False: it is too long to be recorded. */
  noteOnce(name: string, value: Uint8Array): boolean {
    const known = new TextEncoder().encode(name);
    if (known.length + value.length > RECORD_BYTES_MAX) return false;
    const bytes = new Uint8Array(known.length + value.length);
    bytes.set(known);
    bytes.set(value, known.length);
    this.add(EVENT.ONCE, [known.length], bytes);
    return true;
  }

  /** What once() made before under that name; undefined: nothing is listed. */
  nextOnce(name: string): Uint8Array | undefined {
    const value = this.onces.get(name);
    if (this.onces.delete(name)) this.counters.obeyed++;
    return value;
  }

  /** Another await begins: its number. */
  beginAwait(): number {
    return ++this.awaits;
  }

  /** What a program has done that does not repeat itself, as an error. */
  diverged(what: string): MultirailError {
    const { rank } = this.options;
    return new MultirailError(
      'ERR_REPLAY',
      `rank ${rank}: ${what}, before the failure: the program does not repeat itself, so record what it cannot foresee with once(), or use recovery 'coordinated'`,
      { rank },
    );
  }

  // ---------------------------------------------------------------- receives from anybody

  /**
   * A receive or probe from anybody begins. Its number, and the rank whose message it is to take, undefined where nothing is listed. While a
   * probe waits, another process may come to have that rank.
   */
  begin(): { readonly receive: number; readonly source: number | undefined } {
    const receive = ++this.receives;
    return { receive, source: this.matches.get(receive)?.source };
  }

  /** It takes this message. Returns what is wrong with it, when it is not the listed one. */
  match(receive: number, number: number, seq: number): MultirailError | undefined {
    const source = this.options.rankOf(number);
    const known = this.matches.get(receive);
    if (known === undefined) {
      this.add(EVENT.MATCH, [receive, source, seq]);
      return undefined;
    }
    this.matches.delete(receive);
    this.counters.obeyed++;
    if (known.source === source && known.seq === seq) return undefined;
    return this.diverged(
      `receive ${receive} from anybody takes message ${seq} of rank ${source}, and took message ${known.seq} of rank ${known.source}`,
    );
  }

  post(request: RecvRequest): void {
    if (!this.isFull) return;
    const { receive, source } = this.begin();
    request.anyNumber = receive;
    if (source !== undefined) request.source = this.options.numberOf(source);
  }

  matched(request: RecvRequest, number: number, seq: number): void {
    const wrong = this.match(request.anyNumber, number, seq);
    if (wrong !== undefined) request.error = wrong;
  }

  // ---------------------------------------------------------------- the holder

  /** Members are others than before: whoever holds the list from now on gets all of it. */
  beginEpoch(epoch: number): void {
    this.epoch = epoch;
    this.sent = this.base;
    this.confirmed = this.base;
    this.isUnderWay = false;
    this.mustTell = true;
  }

  /** The batch that is to be sent to the holder now, if one is. */
  takeBatch(): Uint8Array | undefined {
    if (this.isUnderWay || (this.sent >= this.end && !this.mustTell)) return undefined;
    const { list, base, epoch } = this;
    const from = this.sent;
    const count = fitting(list, from - base, this.options.batchBytesMax ?? BATCH_BYTES_MAX);
    const records = list.slice(from - base, from - base + count);
    this.sent += count;
    this.isUnderWay = true;
    this.counters.batches++;
    const isWhole = this.sent === this.end;
    if (isWhole) this.mustTell = false;
    return encodeBatch({ epoch, owner: this.options.rank, base, from, isWhole, records });
  }

  /** The holder has all below that number. A word of an earlier epoch is no news. */
  handleConfirmed(epoch: number, below: number): void {
    if (epoch !== this.epoch) return;
    this.isUnderWay = false;
    this.confirmed = Math.max(this.confirmed, below);
  }

  // ---------------------------------------------------------------- saves

  /** A save is cut here. */
  cut(): RecorderCut {
    // What was not recorded is before it.
    this.records = true;
    this.pending = { index: this.end, receives: this.receives, awaits: this.awaits };
    return this.pending;
  }

  /** The save of the last cut is committed: what was recorded before it is not needed any more. */
  commit(): void {
    const { pending } = this;
    this.pending = undefined;
    if (pending === undefined || pending.index < this.base) return;
    this.list.splice(0, pending.index - this.base);
    this.base = pending.index;
    this.sent = Math.max(this.sent, this.base);
    this.confirmed = Math.max(this.confirmed, this.base);
    // (Not by subtraction: a run of calls that found nothing has grown in its place.)
    this.bytes = this.list.reduce((sum, record) => sum + recordBytes(record) + ENTRY_BYTES, 0);
    if (this.records) this.isWhole = true;
    this.isDue = false;
  }

  /** There is no such save. */
  abandon(): void {
    this.pending = undefined;
  }

  /**
   * This process is a successor: its outcomes are those of this list, from the numbers of its save on.
   * @throws ERR_REPLAY: the list begins behind the save.
   */
  restore(cut: RecorderCut | undefined, held: HeldRecords | undefined): void {
    this.base = cut?.index ?? 0;
    this.receives = cut?.receives ?? 0;
    this.awaits = cut?.awaits ?? 0;
    const from = held?.base ?? this.base;
    if (from > this.base) throw this.diverged(`outcomes are listed from ${from} on, and the save has those below ${this.base}`);
    this.list = held?.records.slice(this.base - from) ?? [];
    for (const record of this.list) {
      this.bytes += recordBytes(record) + ENTRY_BYTES;
      const [receive, source, seq] = record.values;
      if (record.kind === EVENT.MATCH) this.matches.set(receive, { source, seq });
      else if (record.kind === EVENT.ONCE)
        this.onces.set(new TextDecoder().decode(record.bytes.subarray(0, receive)), record.bytes.slice(receive));
      else this.outcomes.push(record);
    }
    this.sent = this.base;
    this.confirmed = this.base;
  }
}
