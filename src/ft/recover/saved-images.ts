// The images of the save that an epoch has begun with, for the program: any rank reads that of any rank of the saved world, also of one that
// was left out. Whoever has it answers inside the engine's turns, so while its program computes or waits in a blocking call, too.
import { MultirailError } from '../../errors.ts';
import type { Communicator } from '../../mpi/communicator.ts';
import type { RecoverySeries } from '../../mpi/ft/recovery-series.ts';
import { type Grouping, isOwnEach, savedSizeOf } from '../checkpoint/grouping.ts';
import type { Piece } from '../checkpoint/slots.ts';
import { imageArray, imageValue, readImage } from '../store/read-image.ts';
import { isFailure } from './exchange.ts';
import type { ImageMemory } from './memory.ts';

/** By tag, on the communicator of saves: reader → keeper: a rank; keeper → reader: whether it has it and how long it is, then the image. */
const TAG = { READ: 8, FOUND: 9, IMAGE: 10 } as const;

export class SavedImages {
  /** Ranks that have made the save. */
  readonly savedSize: number;
  /** Others have made it than there are now. */
  readonly isRegrouped: boolean;
  private readonly own: Communicator;
  private readonly grouping: Grouping;
  private readonly piece: () => Piece | undefined;
  private readonly memory: ImageMemory;
  private readonly stop: () => void;
  /** Reads that have not ended. */
  private readonly reads = new Set<Promise<unknown>>();

  /** `piece`: what this rank has of the save, as long as it is kept. */
  constructor(series: RecoverySeries, own: Communicator, grouping: Grouping, piece: () => Piece | undefined, memory: ImageMemory) {
    this.own = own;
    this.grouping = grouping;
    this.piece = piece;
    this.memory = memory;
    this.savedSize = savedSizeOf(grouping);
    this.isRegrouped = !isOwnEach(grouping);
    this.stop = series.listen(own, TAG.READ, Float64Array.BYTES_PER_ELEMENT, (reader, words) => this.answer(reader, words[0]));
  }

  /** Nobody is answered any more. */
  close(): void {
    this.stop();
  }

  /** Reads that the program has begun have ended. */
  async settled(): Promise<void> {
    while (this.reads.size > 0) await Promise.allSettled(this.reads);
  }

  /** The image of a rank of the saved world, in what this rank has. */
  private find(rank: number): Uint8Array | undefined {
    const piece = this.piece();
    let at = 0;
    for (const part of this.grouping[this.own.rank]) {
      if (part.rank === rank) return (piece?.memory as Uint8Array | undefined)?.subarray(at, at + part.bytes);
      at += part.bytes;
    }
    return undefined;
  }

  private answer(reader: number, rank: number): void {
    const { own, memory } = this;
    const image = this.find(rank);
    try {
      own.isend(Float64Array.of(image === undefined ? 0 : 1, image?.length ?? 0), reader, TAG.FOUND);
      if (image === undefined) return;
      const whole = this.piece()?.memory as Uint8Array;
      memory.use(whole);
      const done = (): void => memory.done(whole);
      own.isend(image, reader, TAG.IMAGE).then(done, done);
    } catch (error) {
      if (!isFailure(error)) throw error;
    }
  }

  private keeperOf(rank: number): number {
    const keeper = this.grouping.findIndex((parts) => parts.some((part) => part.rank === rank));
    if (keeper < 0)
      throw new MultirailError('ERR_RANK', `read(${String(rank)}): expected a rank of the saved world, from 0 to ${this.savedSize - 1}`, {
        rank: this.own.rank,
      });
    return keeper;
  }

  private gone(rank: number): MultirailError {
    return new MultirailError(
      'ERR_CHECKPOINT',
      `the image of rank ${rank} is not kept any more: newer saves have taken its place; read before the first save after a recovery`,
      { rank: this.own.rank },
    );
  }

  read(rank: number): Promise<ReadonlyMap<string, unknown>> {
    const reading = this.readOnce(rank);
    this.reads.add(reading);
    const end = (): void => void this.reads.delete(reading);
    reading.then(end, end);
    return reading;
  }

  private async readOnce(rank: number): Promise<ReadonlyMap<string, unknown>> {
    const { own } = this;
    const keeper = this.keeperOf(rank);
    if (keeper === own.rank) return this.readHere(rank);
    const found = new Float64Array(2);
    await Promise.all([own.recv(found, keeper, TAG.FOUND), own.send(Float64Array.of(rank), keeper, TAG.READ)]);
    if (found[0] === 0) throw this.gone(rank);
    const image = new Uint8Array(found[1]);
    await own.recv(image, keeper, TAG.IMAGE);
    return contentOf(image);
  }

  readSync(rank: number): ReadonlyMap<string, unknown> {
    const { own } = this;
    const keeper = this.keeperOf(rank);
    if (keeper === own.rank) return this.readHere(rank);
    const found = new Float64Array(2);
    own.sendSync(Float64Array.of(rank), keeper, TAG.READ);
    own.recvSync(found, keeper, TAG.FOUND);
    if (found[0] === 0) throw this.gone(rank);
    const image = new Uint8Array(found[1]);
    own.recvSync(image, keeper, TAG.IMAGE);
    return contentOf(image);
  }

  /** A copy: what lies in a slot never changes. */
  private readHere(rank: number): ReadonlyMap<string, unknown> {
    const image = this.find(rank);
    if (image === undefined) throw this.gone(rank);
    return contentOf(image.slice());
  }
}

/** Arrays and values by name; every byte of the image was looked at. */
function contentOf(image: Uint8Array): ReadonlyMap<string, unknown> {
  const content = new Map<string, unknown>();
  for (const section of readImage(image).sections) {
    if (section.kind === 'array') content.set(section.name, imageArray(section));
    if (section.kind === 'value') content.set(section.name, imageValue(section));
  }
  return content;
}
