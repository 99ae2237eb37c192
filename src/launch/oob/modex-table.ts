// The outcome of a modex as one piece, which is the same for every rank: it is packed once, and each entry is read when it is asked for. N
// entries as N messages to each of N ranks would cost N² texts.
//
//   raw DEFLATE (RFC 1951) of: N × u32 length (little-endian), then the entries, JSON, by rank
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { MultirailError } from '../../errors.ts';
import { decodeJson, MODEX_BYTES_MAX, MODEX_PART_BYTES_MAX } from './messages.ts';

const LENGTH_BYTES = 4;

/** Packs the entries of ranks 0 to N − 1, in pieces that stay under the bound on one message. */
export function packModex(entries: readonly Uint8Array[]): Uint8Array[] {
  const lengths = Buffer.alloc(LENGTH_BYTES * entries.length);
  for (const [rank, { length }] of entries.entries()) lengths.writeUInt32LE(length, LENGTH_BYTES * rank);
  const packed = deflateRawSync(Buffer.concat([lengths, ...entries]));
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < packed.length; at += MODEX_PART_BYTES_MAX) pieces.push(packed.subarray(at, at + MODEX_PART_BYTES_MAX));
  return pieces;
}

export class ModexEntries {
  private readonly bytes: Uint8Array;
  /** Where the entry of each rank begins, and where the last one ends. */
  private readonly begins: number[] = [];

  /** Throws ERR_PROTOCOL when these are not the entries of so many ranks. */
  constructor(pieces: readonly Uint8Array[], size: number) {
    try {
      this.bytes = inflateRawSync(Buffer.concat(pieces), { maxOutputLength: size * (LENGTH_BYTES + MODEX_BYTES_MAX) });
    } catch (cause) {
      throw new MultirailError('ERR_PROTOCOL', `the modex cannot be unpacked: ${(cause as Error).message}`, { cause });
    }
    const { byteOffset, length } = this.bytes;
    let at = LENGTH_BYTES * size;
    if (length >= at) {
      const lengths = new DataView(this.bytes.buffer, byteOffset, at);
      for (let rank = 0; rank < size; rank++) {
        this.begins.push(at);
        at += lengths.getUint32(LENGTH_BYTES * rank, true);
      }
    }
    this.begins.push(at);
    if (at !== length) throw new MultirailError('ERR_PROTOCOL', `the modex has ${length} bytes where ${size} ranks have ${at}`);
  }

  /** Entries, those that are empty included. */
  get count(): number {
    return this.begins.length - 1;
  }

  /** What that rank published; undefined where there is no such rank, or it was over. Throws ERR_PROTOCOL when it is not JSON. */
  at(rank: number): unknown {
    if (!(rank >= 0 && rank < this.count) || this.begins[rank] === this.begins[rank + 1]) return undefined;
    return decodeJson(this.bytes.subarray(this.begins[rank], this.begins[rank + 1]), `modex entry of rank ${rank}`);
  }
}
