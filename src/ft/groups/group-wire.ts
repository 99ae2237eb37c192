// How messages and images of the saves of groups travel: on the communicator of saves, inside the engine's turns.
import type { MultirailError } from '../../errors.ts';
import type { Communicator } from '../../mpi/communicator.ts';
import type { RecoverySeries } from '../../mpi/ft/recovery-series.ts';
import { crc32c } from '../../native/crc32c.ts';
import { isFailure } from '../recover/exchange.ts';
import type { ImageMemory } from '../recover/memory.ts';
import { type CopyEnd, MESSAGE_BYTES_MAX } from './group-saves.ts';

/** By tag; others are in exchange.ts. */
const TAG = { GROUP: 17, GROUP_BULK: 18 } as const;

export class GroupWire {
  private readonly memory: ImageMemory;
  private own: Communicator | undefined;
  private stopListening: (() => void) | undefined;

  constructor(memory: ImageMemory) {
    this.memory = memory;
  }

  /** Messages of saves are on that communicator. */
  listen(series: RecoverySeries, own: Communicator, handle: (from: number, words: readonly number[]) => void): void {
    this.stop();
    this.own = own;
    this.stopListening = series.listenTo(own, TAG.GROUP, new Uint8Array(MESSAGE_BYTES_MAX), (from, bytes) =>
      handle(from, [...new Float64Array(bytes.slice().buffer)]),
    );
  }

  stop(): void {
    this.stopListening?.();
    this.stopListening = undefined;
    this.own = undefined;
  }

  send(to: number, words: readonly number[]): void {
    try {
      this.own?.isend(Float64Array.from(words), to, TAG.GROUP);
    } catch (error) {
      // Whoever has died is told by a decision.
      if (!isFailure(error)) throw error;
    }
  }

  sendImage(to: number, image: Uint8Array): void {
    const { memory, own } = this;
    if (own === undefined) return;
    try {
      memory.use(image);
      const done = (): void => memory.done(image);
      own.isend(image, to, TAG.GROUP_BULK).then(done, done);
    } catch (error) {
      memory.done(image);
      if (!isFailure(error)) throw error;
    }
  }

  takeImage(from: number, room: Uint8Array | undefined, crc: number, ended: (end: CopyEnd) => void): void {
    const end = (error: MultirailError | undefined): void => {
      if (error !== undefined && isFailure(error)) return ended('interrupted');
      ended(error === undefined && room !== undefined && crc32c(room) === crc ? 'whole' : 'damaged');
    };
    if (this.own === undefined) return ended('interrupted');
    try {
      const request = this.own.irecv(room ?? new Uint8Array(0), from, TAG.GROUP_BULK);
      request.onEnd(() => end(request.error));
    } catch (error) {
      end(error as MultirailError);
    }
  }
}
