// Programs of WebAssembly, told by how their files begin: builds of C programs name them as they would a native one.
import { closeSync, openSync, readSync } from 'node:fs';

const MAGIC = '\0asm';

/** Whether a file is there and is one of WebAssembly, whatever its name is. */
export function isWasmFile(file: string): boolean {
  let descriptor: number;
  try {
    descriptor = openSync(file, 'r');
  } catch {
    return false;
  }
  try {
    const begin = Buffer.alloc(MAGIC.length);
    return readSync(descriptor, begin, 0, begin.length, 0) === begin.length && begin.toString('latin1') === MAGIC;
  } catch {
    // A folder.
    return false;
  } finally {
    closeSync(descriptor);
  }
}
