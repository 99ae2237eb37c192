// Objects in the memory of processes that stand by: who has them, no room, deaths of those that have them, in the middle of a call, too.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { standbyStore } from '../../../src/ft/recover/standby-store.ts';
import type { Store } from '../../../src/ft/store/store.ts';
import { Prng } from '../../../src/util/prng.ts';
import { type Holders, makeHolders } from '../../support/holders.ts';

const KIB = 1024;
const ROOM_BYTES = 1024 * KIB;
/** Larger than what lies at all. */
const LARGE_BYTES = 200 * KIB;
const SIZE = 2;

describe('two ranks, and two processes that stand by', () => {
  let holders: Holders;
  let stores: Store[];
  beforeEach(async () => {
    holders = await makeHolders(SIZE, 2, ROOM_BYTES);
    stores = holders.clients.map((client, rank) => standbyStore(client, rank));
  });
  afterEach(() => holders.end());

  test('a small object lies at both, a large one at one of them, another one for each rank', async () => {
    const [client] = holders.clients;
    await Promise.all(
      stores.map(async (store, rank) => {
        await store.put(`small-${rank}`, [new Uint8Array(10)]);
        await store.put(`large-${rank}`, [new Uint8Array(LARGE_BYTES)]);
      }),
    );
    const small = [
      ['small-0', 10],
      ['small-1', 10],
    ];
    expect((await client.list(SIZE, 'small')).sort()).toEqual(small);
    expect((await client.list(SIZE + 1, 'small')).sort()).toEqual(small);
    expect(await client.list(SIZE, 'large')).toEqual([['large-0', LARGE_BYTES]]);
    expect(await client.list(SIZE + 1, 'large')).toEqual([['large-1', LARGE_BYTES]]);
    // Each rank finds all of it.
    for (const store of stores) expect(await store.list('large')).toHaveLength(SIZE);
  });

  test('what one of them held is gone with it, and what both held is not; the other one takes new objects', async () => {
    const bytes = new Prng('held').fill(new Uint8Array(LARGE_BYTES));
    await stores[0].put('small', [Uint8Array.of(7)]);
    await stores[0].put('large', [bytes]);
    await stores[1].put('other', [bytes]);
    holders.dies(SIZE);
    await expect(stores[1].get('large')).rejects.toMatchObject({ code: 'ERR_CHECKPOINT', message: expect.stringContaining('large') });
    expect(await stores[1].get('small')).toEqual(Uint8Array.of(7));
    expect(Buffer.compare(await stores[0].get('other'), bytes)).toBe(0);
    await stores[0].put('large', [bytes]);
    expect(Buffer.compare(await stores[1].get('large'), bytes)).toBe(0);
  });

  test('a death while objects are written and asked for: every call ends, and those that the other one can serve end well', async () => {
    const large = new Uint8Array(LARGE_BYTES);
    await stores[1].put('kept', [Uint8Array.of(1, 2, 3)]);
    const calls = [
      ...Array.from({ length: 4 }, (_, i) => stores[0].put(`large-${i}`, [large])),
      ...Array.from({ length: 8 }, () => stores[0].get('kept').then((found) => expect(found).toEqual(Uint8Array.of(1, 2, 3)))),
      ...Array.from({ length: 4 }, () => stores[0].list('kept').then((found) => expect(found).toEqual([{ key: 'kept', bytes: 3 }]))),
      stores[0].remove(['nothing']),
    ];
    holders.dies(SIZE);
    const ends = await Promise.allSettled(calls);
    expect(ends.filter(({ status }) => status === 'rejected')).toEqual([]);
  });

  test('where nobody is left, a write says that nobody stands by, and nothing is found', async () => {
    await stores[0].put('small', [Uint8Array.of(7)]);
    holders.dies(SIZE);
    holders.dies(SIZE + 1);
    await expect(stores[0].get('small')).rejects.toMatchObject({ code: 'ERR_CHECKPOINT' });
    expect(await stores[0].list('')).toEqual([]);
    await expect(stores[0].put('more', [])).rejects.toMatchObject({ code: 'ERR_STORE', message: 'ERR_STORE: nobody stands by' });
    await stores[0].remove(['small']);
  });

  test('no room: the refusal names the process, what it has and the parameter; removing makes room, and so does replacing', async () => {
    const [client] = holders.clients;
    const half = new Uint8Array(ROOM_BYTES / 2);
    await client.put(SIZE, 'a', [half]);
    await client.put(SIZE, 'b', [half]);
    await expect(client.put(SIZE, 'c', [new Uint8Array(1)])).rejects.toMatchObject({
      code: 'ERR_STORE',
      message: expect.stringContaining('process 2, which stands by, holds 1048576 bytes and has no room for more (ft_memory_bytes_max)'),
    });
    // A store goes to the other one.
    await stores[0].put('d', [half]);
    expect(await client.list(SIZE + 1, 'd')).toEqual([['d', half.length]]);
    await client.remove(SIZE, 'a');
    await client.put(SIZE, 'c', [new Uint8Array(1)]);
    expect((await client.list(SIZE, '')).map(([key]) => key).sort()).toEqual(['b', 'c']);
  });

  test('a client that is closed ends what it waits for', async () => {
    const [client] = holders.clients;
    const answer = client.get(SIZE, 'never');
    client.close();
    await expect(answer).rejects.toMatchObject({
      code: 'ERR_STORE',
      message: 'ERR_STORE: process 2 is not asked any more: run() has ended',
    });
  });
});
