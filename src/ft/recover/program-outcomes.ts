// What a program cannot repeat by itself, under asynchronous recovery: recorded at the rank whose program it is, kept by another one, and given to
// its successor. All travels on the communicator of saves, inside the engine's turns.
import { MultirailError } from '../../errors.ts';
import type { Communicator } from '../../mpi/communicator.ts';
import type { RecordedOutcomes } from '../../mpi/ft/recorded-outcomes.ts';
import type { RecoverySeries } from '../../mpi/ft/recovery-series.ts';
import type { Placement } from '../checkpoint/placement.ts';
import { BATCH_BYTES_MAX, decodeBatch, EVENT, type EventKind, encodeBatch, RECORD_BYTES_MAX, VALUES_MAX } from '../events/format.ts';
import { type HeldRecords, Holdings } from '../events/holdings.ts';
import { RECORDS_BYTES_MAX, Recorder, type RecorderCut } from '../events/recorder.ts';
import { isFailure } from './exchange.ts';
import type { Settings } from './options.ts';

/** By tag, on the communicator of saves; others are in exchange.ts. */
const TAG = { RECORD: 13, RECORDED: 14 } as const;
const MIB = 1024 * 1024;

/** What is asked of the process, and what it is told. */
export interface OutcomesHost {
  /** Calls this once, at the end of the engine's next turn. */
  afterTurn(run: () => void): void;
  /** What was sent may leave now, if outcomes are safe. */
  retry(): void;
}

/** The rank that keeps the outcomes of that one; undefined: nobody keeps them, where nothing has copies. */
export function holderOf(placement: Placement, rank: number): number | undefined {
  return placement.holders(rank, 0)[0];
}

export class ProgramOutcomes {
  /** Of this rank; undefined before its program has a communicator. */
  recorder: Recorder | undefined;
  /** Three quarters of what may be recorded are. */
  isDue = false;
  private readonly settings: Settings;
  private readonly warn: (text: string) => void;
  private holdings = new Holdings([]);
  private own: Communicator | undefined;
  private host: OutcomesHost | undefined;
  private holder: number | undefined;
  private stops: (() => void)[] = [];
  /** The members have begun together what they are in now. */
  private mayTell = false;
  private isAsked = false;
  private hasWarned = false;

  constructor(settings: Settings, warn: (text: string) => void) {
    this.settings = settings;
    this.warn = warn;
  }

  /** Outcomes of all kinds are recorded, and not only values of once(). */
  private get isFull(): boolean {
    return this.settings.determinism === 'recorded';
  }

  /** Receives and probes may be from anybody: what they take is recorded, or the program says that it does not matter. */
  get takesAnybody(): boolean {
    return this.settings.determinism !== undefined;
  }

  /** All begin together, with nothing recorded. */
  reset(): void {
    this.stop();
    this.holdings = new Holdings([]);
    this.recorder = undefined;
    this.isDue = false;
  }

  /** What is recorded travels on that communicator from now on, once begin() was called. */
  useForSaves(series: RecoverySeries, own: Communicator): void {
    this.stop();
    this.own = own;
    const batch = new Uint8Array(Math.max(BATCH_BYTES_MAX, RECORD_BYTES_MAX + 128));
    this.stops = [
      series.listenTo(own, TAG.RECORD, batch, (owner, bytes) => this.take(owner, bytes)),
      series.listen(own, TAG.RECORDED, 2 * Float64Array.BYTES_PER_ELEMENT, (_, [epoch, below]) => this.confirmed(epoch, below)),
    ];
  }

  /** Nothing travels any more. */
  stop(): void {
    this.mayTell = false;
    for (const stop of this.stops.splice(0)) stop();
  }

  /** From now on the outcomes of this rank's program are recorded. Undefined: none that its calls need. */
  record(comm: Communicator, differs: (error: MultirailError) => void): RecordedOutcomes | undefined {
    const { rank, group } = comm;
    const recorder = new Recorder({
      rank,
      determinism: this.isFull ? 'recorded' : 'send',
      rankOf: (number) => group.rankOf(number) as number,
      numberOf: (of) => group.worldRanks[of],
      onPressure: (kind) => this.pressed(kind),
      onNews: () => this.tellSoon(),
    });
    this.recorder = recorder;
    if (!this.isFull) return undefined;
    const self = this;
    return {
      rank,
      beginAwait: () => recorder.beginAwait(),
      get nextTurn() {
        return recorder.nextTurn;
      },
      get hasListed() {
        return recorder.hasOutcomes;
      },
      tookTurn: () => void recorder.next(EVENT.TURN),
      noteTurn: (number) => recorder.note(EVENT.TURN, [number]),
      post: (request) => recorder.post(request),
      matched: (request, number, seq) => {
        recorder.matched(request, number, seq);
        if (request.error !== undefined) differs(request.error);
      },
      get mark() {
        return recorder.mark;
      },
      // Where nobody keeps them, whoever dies takes all back.
      get safe() {
        return self.mayTell && self.holder === undefined ? Number.POSITIVE_INFINITY : recorder.safe;
      },
      get isReplaying() {
        return recorder.isReplaying;
      },
      begin: () => recorder.begin(),
      match: (receive, number, seq) => {
        const wrong = recorder.match(receive, number, seq);
        if (wrong !== undefined) differs(wrong);
        return wrong;
      },
      look: (kind, find, again) => {
        comm.mustReachByPolling();
        try {
          return looked(recorder, kind === 'found' ? EVENT.FOUND : EVENT.ENDED, find, again);
        } catch (error) {
          if ((error as MultirailError).code === 'ERR_REPLAY') differs(error as MultirailError);
          throw error;
        }
      },
    };
  }

  private pressed(kind: 'due' | 'given up'): void {
    this.isDue = true;
    if (kind === 'due' || this.hasWarned) return;
    this.hasWarned = true;
    this.warn(
      `what the program cannot repeat by itself has ${RECORDS_BYTES_MAX / MIB} MiB since the last save: nothing is recorded until the next one, and until that is committed a failure of this rank takes all ranks back; save more often`,
    );
  }

  /** The process that the program runs in. */
  attach(host: OutcomesHost): void {
    this.host = host;
    this.tellSoon();
  }

  /** The members are these now. `epoch`: of a recovery in place; undefined: all have begun together. */
  begin(placement: Placement, rank: number, epoch?: number): void {
    this.holder = holderOf(placement, rank);
    if (epoch === undefined) {
      for (let owner = 0; owner < placement.size; owner++) if (holderOf(placement, owner) === rank) this.holdings.expect(owner);
    } else this.recorder?.beginEpoch(epoch);
    this.mayTell = true;
    this.tellSoon();
  }

  // ---------------------------------------------------------------- the holder

  private tellSoon(): void {
    const { host } = this;
    if (this.isAsked || host === undefined) return;
    this.isAsked = true;
    host.afterTurn(() => {
      this.isAsked = false;
      this.tell();
    });
  }

  private tell(): void {
    const { own, holder, recorder } = this;
    if (!this.mayTell || own === undefined) return;
    if (holder === undefined) return this.host?.retry();
    const batch = recorder?.takeBatch();
    if (batch !== undefined) this.send(batch, holder, TAG.RECORD);
  }

  private send(bytes: Uint8Array | Float64Array, to: number, tag: number): void {
    try {
      this.own?.isend(bytes, to, tag);
    } catch (error) {
      // Whoever has died has a successor, to which all is told again.
      if (!isFailure(error)) throw error;
    }
  }

  private take(owner: number, bytes: Uint8Array): void {
    const batch = decodeBatch(bytes);
    const below = this.holdings.handleBatch(batch);
    if (below !== undefined) this.send(Float64Array.of(batch.epoch, below), owner, TAG.RECORDED);
  }

  private confirmed(epoch: number, below: number): void {
    const { recorder } = this;
    if (recorder === undefined) return;
    recorder.handleConfirmed(epoch, below);
    this.tell();
    this.host?.retry();
  }

  // ---------------------------------------------------------------- successors

  /** Ranks whose outcomes are here, as far as anybody can have seen their effects. */
  get owners(): readonly number[] {
    return this.holdings.owners;
  }

  /** The outcomes of that rank, for its successor. */
  listOf(owner: number): Uint8Array {
    const { base, records } = this.holdings.recordsOf(owner) as HeldRecords;
    return encodeBatch({ epoch: 0, owner, base, from: base, isWhole: true, records });
  }

  /** This process is a successor, and does again what is listed. Of a list that it does not get it goes on without: `list` undefined. */
  restore(cut: RecorderCut | undefined, list: HeldRecords | undefined): void {
    this.recorder?.restore(cut, list);
  }

  // ---------------------------------------------------------------- saves

  /** A save is to be made: there is little room left, or none. */
  get isNearlyFull(): boolean {
    return this.isDue || this.recorder?.isWhole === false;
  }

  committed(): void {
    this.recorder?.commit();
    this.isDue = false;
  }
}

function looked(
  recorder: Recorder,
  kind: EventKind,
  find: () => readonly number[] | undefined,
  again: (values: readonly number[]) => boolean,
): readonly number[] | undefined {
  const listed = recorder.next(kind);
  if (listed === 'nothing') return undefined;
  if (listed !== undefined) {
    if (!again(listed)) throw recorder.diverged(`a call finds ${listed.join(', ')}, which it does not have`);
    return listed;
  }
  const found = find();
  if (found !== undefined && found.length > VALUES_MAX)
    throw new MultirailError(
      'ERR_ARG',
      `${found.length} requests in one call: no more than ${VALUES_MAX} can be recorded (determinism: 'recorded')`,
    );
  recorder.note(kind, found);
  return found;
}

/** @throws ERR_CHECKPOINT: what is listed begins behind the save, since there was no room for it. */
export function listFrom(bytes: Uint8Array, cut: RecorderCut | undefined): HeldRecords {
  const { base, records, owner } = decodeBatch(bytes);
  if (base <= (cut?.index ?? 0)) return { base, records };
  throw new MultirailError(
    'ERR_CHECKPOINT',
    `what the program of rank ${owner} cannot repeat by itself was not recorded since the last save (more than ${RECORDS_BYTES_MAX / MIB} MiB)`,
    { rank: owner },
  );
}
