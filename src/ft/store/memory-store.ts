// A store in the memory of this process, for tests and trials.
import { bytesOf, notThere, type PutOptions, requireKey, requireNotAborted, roomFor, type Store, type StoreEntry } from './store.ts';

class MemoryStore implements Store {
  private readonly objects = new Map<string, Uint8Array>();

  async put(key: string, parts: readonly Uint8Array[], options: PutOptions = {}): Promise<void> {
    requireKey(key);
    requireNotAborted(options.signal, `the write of ${key}`);
    const whole = new Uint8Array(bytesOf(parts));
    let at = 0;
    for (const part of parts) {
      whole.set(part, at);
      at += part.length;
    }
    this.objects.set(key, whole);
  }

  async get(key: string, into?: Uint8Array): Promise<Uint8Array> {
    requireKey(key);
    const found = this.objects.get(key);
    if (found === undefined) throw notThere(key, 'the store in memory');
    const room = roomFor(key, found.length, into);
    room.set(found);
    return room;
  }

  async list(prefix: string): Promise<StoreEntry[]> {
    return [...this.objects]
      .filter(([key]) => key.startsWith(prefix))
      .map(([key, { length }]) => ({ key, bytes: length }))
      .sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  async remove(keys: readonly string[]): Promise<void> {
    for (const key of keys) {
      requireKey(key);
      this.objects.delete(key);
    }
  }
}

/**
 * A store in the memory of this process, which goes with it. For tests and trials.
 */
export function memoryStore(): Store {
  return new MemoryStore();
}
