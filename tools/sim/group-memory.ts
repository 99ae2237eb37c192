// Memory of images in the profile `group`: what is given back while a message reads from it is written over once it does not, so whoever uses it
// still has other bytes than it had, and what is given back twice is found.
import { OracleError } from './oracle.ts';

export class ImageRoom {
  readonly bytesMax = Number.MAX_SAFE_INTEGER;
  /** Bytes that are in use. */
  bytes = 0;
  private readonly taken = new Set<Uint8Array>();
  private readonly users = new Map<Uint8Array, number>();
  private readonly refuses: () => boolean;

  /** `refuses`: by chance there is no room for the copy of another rank. */
  constructor(refuses: () => boolean) {
    this.refuses = refuses;
  }

  hasRoom(_bytes: number): boolean {
    return !this.refuses();
  }

  take(bytes: number): Uint8Array {
    const memory = new Uint8Array(bytes);
    this.taken.add(memory);
    this.bytes += bytes;
    return memory;
  }

  give(memory: Uint8Array): void {
    if (!this.taken.delete(memory)) throw new OracleError('F12: memory of an image is given back twice');
    this.bytes -= memory.length;
    this.poison(memory);
  }

  /** A message reads from it. */
  use(memory: Uint8Array): void {
    this.users.set(memory, (this.users.get(memory) ?? 0) + 1);
  }

  done(memory: Uint8Array): void {
    const left = (this.users.get(memory) ?? 1) - 1;
    if (left > 0) this.users.set(memory, left);
    else this.users.delete(memory);
    this.poison(memory);
  }

  private poison(memory: Uint8Array): void {
    if (!this.taken.has(memory) && !this.users.has(memory)) memory.fill(0xee);
  }
}
