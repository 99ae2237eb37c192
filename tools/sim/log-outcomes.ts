// Recorded outcomes in the world of the profile `log`: production code records, holds and obeys them (src/ft/events); here is who holds whose, and
// what travels between them.

import { decodeBatch } from '../../src/ft/events/format.ts';
import type { HeldRecords } from '../../src/ft/events/holdings.ts';
import { Holdings } from '../../src/ft/events/holdings.ts';
import { Recorder } from '../../src/ft/events/recorder.ts';
import type { MessageOutcomes } from '../../src/pml/message-log.ts';
import type { Pml } from '../../src/pml/pml.ts';
import type { RecvRequest } from '../../src/pml/records.ts';
import { Iov } from '../../src/util/iov.ts';
import type { Image, Worker } from './log-worker.ts';
import { OracleError } from './oracle.ts';

/** Batches, and words about them. */
export const OUTCOMES_CTX = 8;
const TAG = { BATCH: 0, CONFIRMED: 1 } as const;
/** A batch of one record may be longer than the run allows; records of the simulator are short. */
const BUFFER_BYTES = 4096;

export interface OutcomesHost {
  readonly ranks: number;
  readonly batchBytesMax: number;
  readonly bytesMax: number;
  pmlOf(number: number): Pml;
  wake(number: number): void;
  /** A part of what a holder is to have after a recovery is on its way. */
  sentPart(worker: Worker): void;
  took(worker: Worker, request: RecvRequest, source: number, seq: number): void;
}

export class Outcomes {
  private readonly host: OutcomesHost;

  constructor(host: OutcomesHost) {
    this.host = host;
  }

  /** Whose outcomes are held by which rank. */
  holderOf(rank: number): number {
    return (rank + 1) % this.host.ranks;
  }

  private ownerOf(rank: number): number {
    return (rank + this.host.ranks - 1) % this.host.ranks;
  }

  /** It has a place. `image`: of a successor. */
  join(worker: Worker, isNew: boolean): MessageOutcomes {
    const recorder = new Recorder({
      rank: worker.rank,
      determinism: 'recorded',
      bytesMax: this.host.bytesMax,
      batchBytesMax: this.host.batchBytesMax,
      rankOf: (number) => worker.members.indexOf(number),
      numberOf: (rank) => worker.members[rank],
    });
    worker.recorder = recorder;
    // A successor may have been sent some of what it is to hold before it knew of its place.
    worker.holdings ??= new Holdings(isNew ? [] : [this.ownerOf(worker.rank)]);
    return {
      post: (request) => recorder.post(request),
      matched: (request, number, seq) => {
        recorder.matched(request, number, seq);
        this.host.took(worker, request, worker.members.indexOf(number), seq);
      },
      get mark() {
        return recorder.mark;
      },
      get safe() {
        return recorder.safe;
      },
    };
  }

  /** All that is known of the outcomes of that rank since that image; undefined: they are lost. */
  listOf(holder: Worker, owner: Worker, image: Image): HeldRecords | undefined {
    const { rank } = owner;
    const held = holder.holdings?.recordsOf(rank);
    if (held === undefined) return undefined;
    const index = image.outcomes?.index ?? 0;
    if (held.base > index) {
      if (owner.recorder?.isWhole)
        throw new OracleError(
          `F11: outcomes of rank ${rank} are listed from ${held.base} on, and the newest save has those below ${index}`,
        );
      return undefined;
    }
    return { base: held.base, records: [...held.records] };
  }

  /** After a turn: what was recorded in it goes to the holder. */
  send(worker: Worker): void {
    const { recorder, rank, members, number } = worker;
    if (recorder === undefined) return;
    const holder = members[this.holderOf(rank)];
    const pml = this.host.pmlOf(number);
    if (pml.peer(holder).ended !== undefined) return;
    const batch = recorder.takeBatch();
    if (batch === undefined) return;
    pml.isend(holder, OUTCOMES_CTX, TAG.BATCH, new Iov([batch]));
    const { epoch, isWhole } = decodeBatch(batch);
    if (epoch > 0 && !isWhole) this.host.sentPart(worker);
    this.host.wake(number);
  }

  listenTo(worker: Worker, source: number): void {
    this.listen(worker, source, TAG.BATCH, (bytes) => {
      worker.holdings ??= new Holdings([]);
      const batch = decodeBatch(bytes);
      const below = worker.holdings.handleBatch(batch);
      if (below === undefined) return;
      const words = new Uint8Array(Float64Array.of(batch.epoch, below).buffer);
      this.host.pmlOf(worker.number).isend(source, OUTCOMES_CTX, TAG.CONFIRMED, new Iov([words]));
    });
    this.listen(worker, source, TAG.CONFIRMED, (bytes) => {
      const [epoch, below] = new Float64Array(bytes.slice().buffer);
      worker.recorder?.handleConfirmed(epoch, below);
    });
  }

  private listen(worker: Worker, source: number, tag: number, handle: (bytes: Uint8Array) => void): void {
    const pml = this.host.pmlOf(worker.number);
    const buffer = new Uint8Array(BUFFER_BYTES);
    const read = ({ error, receivedBytes, cancelled }: RecvRequest): boolean => {
      if (cancelled || error !== undefined) return false;
      handle(buffer.subarray(0, receivedBytes));
      this.host.wake(worker.number);
      return !pml.peer(source).leaving;
    };
    const next = (): void => {
      for (;;) {
        const request = pml.irecvInBackground(source, OUTCOMES_CTX, tag, new Iov([buffer]), (done) => {
          if (read(done)) next();
        });
        if (!request.done || !read(request)) return;
      }
    };
    next();
  }
}
