// What ranks tell each other through the communicator of their saves: how far they are, copies of images, and images of a recovery line.
import { MultirailError } from '../../errors.ts';
import type { Communicator } from '../../mpi/communicator.ts';
import type { Request } from '../../mpi/request.ts';
import { crc32c } from '../../native/crc32c.ts';
import type { Transfer } from '../checkpoint/recovery-plan.ts';
import type { CopyName, SaveCore } from '../checkpoint/save-core.ts';
import type { ImagePart, Piece, SaveName } from '../checkpoint/slots.ts';
import type { ImageMemory } from './memory.ts';

const TAG_COPY = 1;
const TAG_BULK = 2;
export const TAG_IMAGE = 3;
// 4 to 7 are those of the notice of the end, 8 to 10 those of images that are read, 11, 12, 15 and 16 those of recovery in place, 13 and 14 those of
// recorded outcomes.

export const isFailure = (error: unknown): error is MultirailError =>
  error instanceof MultirailError &&
  ['ERR_PROC_FAILED', 'ERR_PROC_FAILED_PENDING', 'ERR_REVOKED', 'ERR_PROC_UNREACHABLE'].includes(error.code);

/** What a rank has come to. */
export const COME_TO = { SAVE: 1, CHECK: 2, END: 3 } as const;
const COME_TO_TEXTS = ['', 'a save', 'the first step after a recovery', 'the end of the program'];

/** One row of each rank: the same at all of them afterwards. */
export interface Row {
  readonly kind: number;
  readonly step: number;
  readonly level: number;
  /** Messages of its program are on their way. */
  readonly isLoud: boolean;
  /** It cannot go on with what was restored. */
  readonly isWrong: boolean;
  /** Its log of messages is nearly full. */
  readonly isDue: boolean;
  /** It was told to end, and has said so to rank 0. */
  readonly isTold: boolean;
  /** What it has measured of steps and saves. */
  readonly measured: readonly number[];
}

const FIXED = 7;

function encodeRow({ kind, step, level, isLoud, isWrong, isDue, isTold, measured }: Row): Float64Array {
  return Float64Array.from([kind, step, level, Number(isLoud), Number(isWrong), Number(isDue), Number(isTold), ...measured]);
}

function decodeRows(all: Float64Array, width: number): Row[] {
  return Array.from({ length: all.length / width }, (_, rank) => {
    const [kind, step, level, isLoud, isWrong, isDue, isTold, ...measured] = all.subarray(rank * width, (rank + 1) * width);
    return { kind, step, level, isLoud: isLoud === 1, isWrong: isWrong === 1, isDue: isDue === 1, isTold: isTold === 1, measured };
  });
}

export async function exchangeRows(own: Communicator, row: Row): Promise<Row[]> {
  const width = FIXED + row.measured.length;
  const all = new Float64Array(own.size * width);
  await own.allgather(encodeRow(row), all);
  return decodeRows(all, width);
}

export function exchangeRowsSync(own: Communicator, row: Row): Row[] {
  const width = FIXED + row.measured.length;
  const all = new Float64Array(own.size * width);
  own.allgatherSync(encodeRow(row), all);
  return decodeRows(all, width);
}

/** The first rank that has come to something else than this one; -1: none has. */
function otherThan(mine: Row, rows: readonly Row[]): number {
  return rows.findIndex(({ kind, step, level }) => kind !== mine.kind || level !== mine.level || step !== mine.step);
}

/**
 * All have come to the same save, and what some have sent was not received in their time. They may have been the first, and have waited for a rank
 * that came later and received it then: once all are there, the time begins again.
 */
export function mustWaitAgain(rows: readonly Row[], rank: number): boolean {
  return otherThan(rows[rank], rows) < 0 && rows.some(({ isLoud }) => isLoud);
}

/** All ranks have come to the same: the program does not call alike otherwise. */
export function requireAlike(rows: readonly Row[], rank: number): void {
  const mine = rows[rank];
  const other = otherThan(mine, rows);
  if (other < 0) return;
  const text = ({ kind, step, level }: Row): string =>
    `${COME_TO_TEXTS[kind]} in step ${step}${kind === COME_TO.SAVE ? `, level ${level}` : ''}`;
  throw new MultirailError(
    'ERR_CHECKPOINT',
    `rank ${rank} has come to ${text(mine)}, and rank ${other} to ${text(rows[other])}: all ranks must call next() and checkpoint() alike`,
    { rank, peer: other },
  );
}

/** All ranks have registered what the save has; `missing`: what this one has not. Nobody goes on with half a state. */
export function requireRegistered(rows: readonly Row[], rank: number, missing: MultirailError | undefined): void {
  requireAlike(rows, rank);
  if (missing !== undefined) throw missing;
  const wrong = rows.findIndex(({ isWrong }) => isWrong);
  if (wrong >= 0)
    throw new MultirailError('ERR_CHECKPOINT', `rank ${wrong} has not registered all that the save has, and says what: nobody goes on`, {
      rank,
      peer: wrong,
    });
}

/** All ranks have come to the same save, and no message of theirs is left over; `messages`: those of this rank. */
export function requireQuiet(rows: readonly Row[], rank: number, quietMs: number, messages: () => readonly string[]): void {
  requireAlike(rows, rank);
  const loud = rows.findIndex(({ isLoud }) => isLoud);
  if (loud < 0) return;
  const what = rows[rank].isLoud ? messages().join('; ') : `messages that rank ${loud} names`;
  throw new MultirailError(
    'ERR_CHECKPOINT',
    `rank ${rank} cannot save in step ${rows[rank].step}: after ${quietMs} ms (ft_quiet_ms) these are on their way or were not received: ${what}; receive them before the save`,
    { rank },
  );
}

/** Copies of one save: those that leave, and those that come. */
export class Copies {
  private readonly own: Communicator;
  private readonly core: SaveCore;
  private readonly memory: ImageMemory;
  private readonly changed: () => void;
  /** Why this rank has refused the save. */
  private readonly onRefused: (error: MultirailError) => void;
  /** Of the copy of that owner: as of a piece. */
  partsOf: (name: SaveName, owner: number) => readonly ImagePart[] | undefined = () => undefined;

  constructor(own: Communicator, core: SaveCore, memory: ImageMemory, changed: () => void, onRefused: (error: MultirailError) => void) {
    this.own = own;
    this.core = core;
    this.memory = memory;
    this.changed = changed;
    this.onRefused = onRefused;
  }

  private header(name: SaveName, piece: Piece | undefined): Float64Array {
    return Float64Array.of(name.epoch, name.k, this.core.attempt, piece === undefined ? 0 : 1, piece?.bytes ?? 0, piece?.crc ?? 0);
  }

  /** Sends them; their memory is in use until they have left. Without a piece: says that there is no image. */
  send(name: SaveName, piece: Piece | undefined, to: readonly number[]): void {
    const { own, memory } = this;
    const header = this.header(name, piece);
    for (const holder of to) {
      try {
        own.isend(header, holder, TAG_COPY);
        if (piece === undefined) continue;
        const bytes = piece.memory as Uint8Array;
        memory.use(bytes);
        const done = (): void => memory.done(bytes);
        own.isend(bytes, holder, TAG_BULK).then(done, done);
      } catch (error) {
        if (!isFailure(error)) throw error;
      }
    }
  }

  /**
   * Takes all copies of a save that this rank is to hold, whether it will vote for it or not: their senders wait. They are taken inside the
   * engine's turns, so while its program computes or waits in a blocking call, too.
   */
  take(owners: readonly number[]): void {
    for (const owner of owners) {
      const header = new Float64Array(6);
      this.receive(header, owner, TAG_COPY, (error) => {
        if (error !== undefined) return this.failed(error);
        const name = this.nameOf(header, owner);
        if (header[3] === 0) return this.end(() => this.core.handleNoCopy(name));
        const bytes = this.room(header[4]);
        if (bytes === undefined)
          return this.receive(new Uint8Array(0), owner, TAG_BULK, (wrong) =>
            this.failed(wrong === undefined || wrong.code === 'ERR_TRUNCATE' ? this.tooLong(owner, header[4]) : wrong),
          );
        this.receive(bytes, owner, TAG_BULK, (wrong) => {
          if (wrong === undefined) return this.keep(name, bytes, header[5]);
          this.memory.give(bytes);
          this.failed(wrong);
        });
      });
    }
  }

  private receive(into: Float64Array | Uint8Array, owner: number, tag: number, then: (error: MultirailError | undefined) => void): void {
    let request: Request;
    try {
      request = this.own.irecv(into, owner, tag);
    } catch (error) {
      return then(error as MultirailError);
    }
    request.onEnd(() => then(request.error));
  }

  /** A rank that has failed is told by a decision. */
  private failed(error: MultirailError): void {
    if (!isFailure(error)) this.onRefused(error);
  }

  /** As take(), in a blocking call. */
  takeSync(owners: readonly number[]): void {
    for (const owner of owners) {
      const header = new Float64Array(6);
      this.own.recvSync(header, owner, TAG_COPY);
      const name = this.nameOf(header, owner);
      if (header[3] === 0) {
        this.end(() => this.core.handleNoCopy(name));
        continue;
      }
      const bytes = this.room(header[4]);
      if (bytes === undefined) {
        try {
          this.own.recvSync(new Uint8Array(0), owner, TAG_BULK);
        } catch (error) {
          ignoreTruncation(error);
        }
        this.onRefused(this.tooLong(owner, header[4]));
        continue;
      }
      this.own.recvSync(bytes, owner, TAG_BULK);
      this.keep(name, bytes, header[5]);
    }
  }

  private nameOf(header: Float64Array, owner: number): CopyName {
    return { epoch: header[0], k: header[1], attempt: header[2], owner };
  }

  private room(bytes: number): Uint8Array | undefined {
    return this.memory.hasRoom(bytes) ? this.memory.take(bytes) : undefined;
  }

  private tooLong(owner: number, bytes: number): MultirailError {
    const { rank } = this.own;
    return new MultirailError(
      'ERR_CHECKPOINT',
      `rank ${rank} has no room for the copy of rank ${owner} (${bytes} bytes, ${this.memory.bytes} of ${this.memory.bytesMax} are in use): allow more by ft_memory_bytes_max, or keep fewer copies`,
      { rank, peer: owner },
    );
  }

  private keep(name: CopyName, bytes: Uint8Array, crc: number): void {
    if (crc32c(bytes) !== crc) {
      this.memory.give(bytes);
      const { rank } = this.own;
      this.onRefused(
        new MultirailError('ERR_CORRUPT', `the copy of rank ${name.owner} has come to rank ${rank} damaged`, { rank, peer: name.owner }),
      );
      return;
    }
    const parts = this.partsOf(name, name.owner);
    this.end(() => {
      const piece = { bytes: bytes.length, crc, memory: bytes, ...(parts === undefined ? {} : { parts }) };
      if (!this.core.handleCopy(name, piece)) this.memory.give(bytes);
    });
  }

  private end(event: () => void): void {
    event();
    this.changed();
  }
}

function ignoreTruncation(error: unknown): void {
  if (!(error instanceof MultirailError) || error.code !== 'ERR_TRUNCATE') throw error;
}

/** Sends the images that this rank gives, and receives its own, if it has none. */
export async function fetchImages(
  own: Communicator,
  transfers: readonly Transfer[],
  pieceOf: (name: SaveName, owner: number) => Piece | undefined,
  memory: ImageMemory,
): Promise<Piece | undefined> {
  let fetched: Piece | undefined;
  const under: PromiseLike<unknown>[] = [];
  for (const transfer of transfers) {
    const { giver, owner, bytes, crc, parts } = transfer;
    if (giver === own.rank) under.push(own.send((pieceOf(transfer, owner) as Piece).memory as Uint8Array, owner, TAG_IMAGE));
    if (owner !== own.rank) continue;
    const image = memory.take(bytes);
    fetched = { bytes, crc, memory: image, ...(parts === undefined ? {} : { parts }) };
    under.push(own.recv(image, giver, TAG_IMAGE));
  }
  await Promise.all(under);
  const damage = fetched && damageOf(fetched, own.rank);
  if (damage !== undefined) throw damage;
  return fetched;
}

/** What is wrong with the image of a rank that has come from its holder. */
export function damageOf({ memory, crc }: Piece, rank: number): MultirailError | undefined {
  if (crc32c(memory as Uint8Array) === crc) return undefined;
  return new MultirailError('ERR_CORRUPT', `the image of rank ${rank} has come from its holder damaged`, { rank });
}
