// What every store must do: memory, that of processes that stand by, a folder, a bucket of s3rver, and one of the server in
// test/support/s3-server.ts.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import S3rver from 's3rver';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { standbyStore } from '../../../src/ft/recover/standby-store.ts';
import { fileStore } from '../../../src/ft/store/file-store.ts';
import { memoryStore } from '../../../src/ft/store/memory-store.ts';
import { s3Store } from '../../../src/ft/store/s3-store.ts';
import type { Store } from '../../../src/ft/store/store.ts';
import { Prng } from '../../../src/util/prng.ts';
import { type Holders, makeHolders } from '../../support/holders.ts';
import { FakeS3, SECRET } from '../../support/s3-server.ts';

const MIB = 1024 * 1024;
const folder = mkdtempSync(join(tmpdir(), 'multirail-stores-'));
const fake = new FakeS3();
let rver: S3rver;
let holders: Holders;
let endpoints: { rver: string; fake: string };

beforeAll(async () => {
  process.env.AWS_ACCESS_KEY_ID = 'S3RVER';
  process.env.AWS_SECRET_ACCESS_KEY = 'S3RVER';
  rver = new S3rver({
    port: 0,
    address: '127.0.0.1',
    silent: true,
    directory: join(folder, 's3'),
    configureBuckets: [{ name: 'saves', configs: [] }],
  });
  const { port } = await rver.run();
  holders = await makeHolders(1, 2, 32 * MIB);
  endpoints = { rver: `http://127.0.0.1:${port}`, fake: await fake.start() };
});
afterAll(async () => {
  rver.httpServer.closeAllConnections();
  await rver.close();
  await fake.stop();
  await holders.end();
  rmSync(folder, { recursive: true, force: true });
});

/** Secrets come from the environment with the first request, so each store has its first one with its own. */
async function withKeys(key: string, secret: string, store: Store): Promise<Store> {
  process.env.AWS_ACCESS_KEY_ID = key;
  process.env.AWS_SECRET_ACCESS_KEY = secret;
  await store.list('');
  return store;
}

// `npm run test:s3` starts one and says where it is.
const REAL_ENDPOINT = process.env.MULTIRAIL_TEST_S3;
const { AWS_ACCESS_KEY_ID: REAL_KEY = '', AWS_SECRET_ACCESS_KEY: REAL_SECRET = '' } = process.env;
const REAL: typeof STORES =
  REAL_ENDPOINT === undefined
    ? []
    : [
        [
          'a bucket of a real server',
          () => withKeys(REAL_KEY, REAL_SECRET, s3Store({ endpoint: REAL_ENDPOINT, bucket: 'saves', prefix: 'tests', partBytes: 5 * MIB })),
          { empty: true },
        ],
      ];

const STORES: [string, () => Promise<Store>, { empty: boolean }][] = [
  ['memory', async () => memoryStore(), { empty: true }],
  ['the memory of those that stand by', async () => standbyStore(holders.clients[0], 0), { empty: true }],
  ['a folder', async () => fileStore(join(folder, 'files')), { empty: true }],
  // s3rver closes the connection when a range of an empty object is asked for.
  [
    'a bucket of s3rver',
    () => withKeys('S3RVER', 'S3RVER', s3Store({ endpoint: endpoints.rver, bucket: 'saves', prefix: 'deep/er', partBytes: 5 * MIB })),
    { empty: false },
  ],
  [
    'a bucket that checks signatures and MD5',
    () => withKeys('TESTKEY', SECRET, s3Store({ endpoint: endpoints.fake, bucket: 'saves', prefix: 'md5', partBytes: 5 * MIB })),
    { empty: true },
  ],
  [
    'a bucket that checks signatures and CRC32C',
    () =>
      withKeys(
        'TESTKEY',
        SECRET,
        s3Store({ endpoint: endpoints.fake, bucket: 'saves', checksum: 'crc32c', partBytes: 5 * MIB, region: 'eu-west-9' }),
      ),
    { empty: true },
  ],
  ...REAL,
];

describe.each(STORES)('%s', (_, make, { empty }) => {
  let store: Store;
  beforeAll(async () => {
    store = await make();
  });

  test('gives back what was put, in parts or whole, into memory that is handed in too', async () => {
    await store.put('job/0-1/rank-0.mrck', [Uint8Array.of(1, 2), new Uint8Array(0), Uint8Array.of(3)]);
    expect(await store.get('job/0-1/rank-0.mrck')).toEqual(Uint8Array.of(1, 2, 3));
    const room = new Uint8Array(8);
    const into = await store.get('job/0-1/rank-0.mrck', room);
    expect([into.buffer === room.buffer, into.length, [...room]]).toEqual([true, 3, [1, 2, 3, 0, 0, 0, 0, 0]]);
    await expect(store.get('job/0-1/rank-0.mrck', new Uint8Array(2))).rejects.toMatchObject({ code: 'ERR_BUFFER' });
    if (!empty) return;
    await store.put('job/empty', []);
    expect(await store.get('job/empty')).toHaveLength(0);
  });

  test('replaces, lists and removes', async () => {
    await store.put('list/b/2', [new Uint8Array(5)]);
    await store.put('list/a', [new Uint8Array(1)]);
    await store.put('list/b/10', [new Uint8Array(4)]);
    await store.put('list/b/2', [new Uint8Array(7)]);
    await store.put('lister', [new Uint8Array(1)]);
    expect(await store.list('list/')).toEqual([
      { key: 'list/a', bytes: 1 },
      { key: 'list/b/10', bytes: 4 },
      { key: 'list/b/2', bytes: 7 },
    ]);
    expect((await store.list('list')).map(({ key }) => key)).toEqual(['list/a', 'list/b/10', 'list/b/2', 'lister']);
    expect((await store.list('list/b')).map(({ key }) => key)).toEqual(['list/b/10', 'list/b/2']);
    expect(await store.list('nothing/here/')).toEqual([]);
    await store.remove(['list/b/2', 'list/gone', 'list/b/10']);
    expect((await store.list('list')).map(({ key }) => key)).toEqual(['list/a', 'lister']);
    await expect(store.get('list/b/2')).rejects.toMatchObject({ code: 'ERR_CHECKPOINT', message: expect.stringContaining('list/b/2') });
  });

  test('keeps long objects, in as many parts as there are', async () => {
    const bytes = new Prng('long').fill(new Uint8Array(5 * MIB + 12_345));
    await store.put('long', [bytes.subarray(0, 100), bytes.subarray(100, 3_000_000), bytes.subarray(3_000_000)]);
    expect(Buffer.compare(await store.get('long'), bytes)).toBe(0);
    expect(await store.list('long')).toEqual([{ key: 'long', bytes: bytes.length }]);
    await store.remove(['long']);
  });

  test('takes keys only', async () => {
    for (const key of ['', '/a', 'a/', 'a//b', '../a', 'a/../b', '.a', 'a/.tmp-1', 'a b', 'ä', 'a\0', 'a'.repeat(600)]) {
      await expect(store.put(key, [])).rejects.toMatchObject({ code: 'ERR_ARG' });
      await expect(store.get(key)).rejects.toMatchObject({ code: 'ERR_ARG' });
      await expect(store.remove([key])).rejects.toMatchObject({ code: 'ERR_ARG' });
    }
  });

  test('leaves nothing of a write whose signal was aborted', async () => {
    await expect(store.put('aborted', [new Uint8Array(10)], { signal: AbortSignal.abort() })).rejects.toMatchObject({
      code: 'ERR_ABORTED',
    });
    expect(await store.list('aborted')).toEqual([]);
  });
});
