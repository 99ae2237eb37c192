// Memory of images and copies. It is used again for the next save: new memory of that length would be zeroed first, page by page.
import { freemem } from 'node:os';
import { MultirailError } from '../../errors.ts';

export class ImageMemory {
  readonly bytesMax: number;
  /** Bytes that are in use or kept. */
  bytes = 0;
  private readonly kept: Uint8Array[] = [];
  /** Sends that read from it. */
  private readonly users = new Map<Uint8Array, number>();
  private readonly released = new Set<Uint8Array>();

  /** `bytesMax` 0: half of what is free now, shared among so many ranks. */
  constructor(bytesMax: number, ranks: number) {
    this.bytesMax = bytesMax > 0 ? bytesMax : Math.floor(freemem() / 2 / Math.max(1, ranks));
  }

  /** Whether so much more is within the bound, once what is kept for later is given up. */
  hasRoom(bytes: number): boolean {
    const kept = this.kept.reduce((sum, { length }) => sum + length, 0);
    return this.bytes - kept + bytes <= this.bytesMax;
  }

  take(bytes: number): Uint8Array {
    const at = this.kept.findIndex(({ length }) => length === bytes);
    if (at >= 0) return this.kept.splice(at, 1)[0];
    if (!this.hasRoom(bytes))
      throw new MultirailError(
        'ERR_CHECKPOINT',
        `an image of ${bytes} bytes does not fit: ${this.bytes} of ${this.bytesMax} bytes are in use (ft_memory_bytes_max); allow more, or keep fewer copies or saves`,
      );
    while (this.bytes + bytes > this.bytesMax) this.bytes -= (this.kept.shift() as Uint8Array).length;
    this.bytes += bytes;
    return new Uint8Array(bytes);
  }

  /** Counts memory that was made elsewhere. */
  adopt(memory: Uint8Array): void {
    this.bytes += memory.length;
  }

  /** A send or a write reads from it: it is not used again before done() was called as often. */
  use(memory: Uint8Array): void {
    this.users.set(memory, (this.users.get(memory) ?? 0) + 1);
  }

  done(memory: Uint8Array): void {
    const users = (this.users.get(memory) ?? 1) - 1;
    if (users > 0) this.users.set(memory, users);
    else this.users.delete(memory);
    if (users === 0 && this.released.delete(memory)) this.kept.push(memory);
  }

  /** No slot has it any more. */
  give(memory: Uint8Array): void {
    if (this.users.has(memory)) this.released.add(memory);
    else this.kept.push(memory);
  }
}
