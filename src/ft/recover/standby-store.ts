// A store in the memory of the processes that stand by: a large object lies at one of them, a small one, as the manifest that makes a save exist,
// at all. What dies with one of them is told as not there.

import { MultirailError } from '../../errors.ts';
import type { Communicator } from '../../mpi/communicator.ts';
import type { HolderClient } from '../../mpi/ft/held-objects.ts';
import { bytesOf, notThere, type PutOptions, requireKey, requireNotAborted, roomFor, type Store, type StoreEntry } from '../store/store.ts';

/** Objects of at most so many bytes lie at all processes that stand by. */
const SMALL_BYTES = 65_536;

class StandbyStore implements Store {
  private readonly client: HolderClient;
  /** Ranks begin with different processes. */
  private readonly rank: number;

  constructor(client: HolderClient, rank: number) {
    this.client = client;
    this.rank = rank;
  }

  /** The one that this rank comes to first, then the others. */
  private inTurn(numbers: readonly number[]): number[] {
    const first = numbers.length === 0 ? 0 : this.rank % numbers.length;
    return [...numbers.slice(first), ...numbers.slice(0, first)];
  }

  async put(key: string, parts: readonly Uint8Array[], options: PutOptions = {}): Promise<void> {
    requireKey(key);
    requireNotAborted(options.signal, `the write of ${key}`);
    const all = this.inTurn(this.client.standbys);
    if (all.length === 0) throw new MultirailError('ERR_STORE', 'nobody stands by');
    const isSmall = bytesOf(parts) <= SMALL_BYTES;
    let failure: unknown;
    let copies = 0;
    for (const number of all) {
      try {
        await this.client.put(number, key, parts);
        copies++;
        if (!isSmall) break;
      } catch (error) {
        failure = error;
      }
    }
    if (copies === 0) throw failure;
  }

  async get(key: string, into?: Uint8Array): Promise<Uint8Array> {
    requireKey(key);
    for (const number of this.inTurn(this.client.holders)) {
      const object = await unlessGone(this.client.get(number, key), undefined);
      if (object === undefined) continue;
      const room = roomFor(key, object.length, into);
      room.set(object);
      return room;
    }
    throw notThere(key, 'the memory of those that stand by');
  }

  async list(prefix: string): Promise<StoreEntry[]> {
    const found = new Map<string, number>();
    for (const number of this.client.holders)
      for (const [key, bytes] of await unlessGone(this.client.list(number, prefix), [])) found.set(key, bytes);
    return [...found].map(([key, bytes]) => ({ key, bytes })).sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  async remove(keys: readonly string[]): Promise<void> {
    for (const key of keys) {
      requireKey(key);
      for (const number of this.client.holders) await unlessGone(this.client.remove(number, key), undefined);
    }
  }
}

/** What was held by a process that is gone is not there. */
async function unlessGone<T>(answer: Promise<T>, otherwise: T): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof MultirailError && error.code === 'ERR_STORE') return otherwise;
    throw error;
  }
}

/** Asks the processes that stand by, or did so once; closed by whoever asked for it. */
export function holdersOf(comm: Communicator): HolderClient {
  const series = comm.recoverySeries('run');
  const client = series.holderClient();
  series.close();
  return client;
}

/** What a rank puts into the memory of processes that stand by, and finds there. */
export function standbyStore(client: HolderClient, rank: number): Store {
  return new StandbyStore(client, rank);
}
