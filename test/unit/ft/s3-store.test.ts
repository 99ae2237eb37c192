// A bucket that fails: busy servers, refused requests, lost answers, silence, uploads that break off.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { MultirailError } from '../../../src/errors.ts';
import { type S3Options, s3Store } from '../../../src/ft/store/s3-store.ts';
import type { Store } from '../../../src/ft/store/store.ts';
import { Prng } from '../../../src/util/prng.ts';
import { FakeS3, SECRET } from '../../support/s3-server.ts';

const MIB = 1024 * 1024;
const LONG = new Prng('s3').fill(new Uint8Array(5 * MIB + 1000));
let fake: FakeS3;
let endpoint: string;

const storeOf = (more: Partial<S3Options> = {}): Store => s3Store({ endpoint, bucket: 'saves', partBytes: 5 * MIB, attempts: 3, ...more });

beforeAll(async () => {
  process.env.AWS_ACCESS_KEY_ID = 'TESTKEY';
  process.env.AWS_SECRET_ACCESS_KEY = SECRET;
});
beforeEach(async () => {
  await fake?.stop();
  fake = new FakeS3();
  endpoint = await fake.start();
});
afterAll(() => fake.stop());

test('a busy server is asked again, and everything arrives', async () => {
  // Every first request of its kind is refused.
  const seen = new Set<string>();
  fake.fault = (request, count) => {
    if (seen.has(request)) return undefined;
    seen.add(request);
    return count % 3 === 0 ? 'reset' : count % 2 === 0 ? 500 : 503;
  };
  const store = storeOf();
  await store.put('a', [LONG]);
  expect(Buffer.compare(await store.get('a'), LONG)).toBe(0);
  expect(await store.list('')).toEqual([{ key: 'a', bytes: LONG.length }]);
  await store.remove(['a']);
  expect(fake.objects.size).toBe(0);
  expect(fake.uploads.size).toBe(0);
});

test('503 without end is ERR_STORE, after as many requests as were allowed', async () => {
  fake.fault = () => 503;
  const error = await storeOf()
    .put('a', [Uint8Array.of(1)])
    .catch((caught) => caught);
  expect(error).toMatchObject({ code: 'ERR_STORE' });
  expect(error.message).toBe(
    `ERR_STORE: PUT ${endpoint}/saves/a: the server answers 503 (SlowDown: told by SlowDown & co) (asked 3 times)`,
  );
  expect(error.cause).toBeInstanceOf(MultirailError);
  expect(fake.requests).toHaveLength(3);
});

test('403 is said at once, with what to do, and secrets are in no text', async () => {
  fake.fault = () => 403;
  const error = await storeOf()
    .get('a')
    .catch((caught) => caught);
  expect(error).toMatchObject({ code: 'ERR_STORE' });
  expect(error.message).toMatch(/403 \(AccessDenied: .*\); check AWS_ACCESS_KEY_ID/);
  expect(fake.requests).toHaveLength(1);
  expect(JSON.stringify([error.message, error.stack, String(error.cause)])).not.toContain(SECRET);
});

test('a wrong secret is refused by the server that checks it', async () => {
  process.env.AWS_SECRET_ACCESS_KEY = 'wrong';
  try {
    await expect(storeOf().list('')).rejects.toThrow(/403 \(SignatureDoesNotMatch/);
    delete process.env.AWS_ACCESS_KEY_ID;
    await expect(storeOf().list('')).rejects.toMatchObject({ code: 'ERR_CONFIG' });
  } finally {
    process.env.AWS_ACCESS_KEY_ID = 'TESTKEY';
    process.env.AWS_SECRET_ACCESS_KEY = SECRET;
  }
});

test('a server that says nothing is given up', async () => {
  fake.fault = () => 'silence';
  const error = await storeOf({ requestTimeoutMs: 50, attempts: 2 })
    .list('')
    .catch((caught) => caught);
  expect(error).toMatchObject({ code: 'ERR_STORE' });
  expect(error.message).toMatch(/no answer within 50 ms; check endpoint and network \(asked 2 times\)/);
});

test('a server that is not there is given up', async () => {
  await fake.stop();
  await expect(storeOf({ attempts: 2 }).list('')).rejects.toThrow(/ECONNREFUSED.*check endpoint and network/);
});

test('a signal ends a write between two requests and in one, and the upload is taken back', async () => {
  const controller = new AbortController();
  fake.fault = (request) => {
    if (!request.includes('partNumber')) return undefined;
    controller.abort();
    return 'silence';
  };
  await expect(storeOf().put('a', [LONG], { signal: controller.signal })).rejects.toMatchObject({ code: 'ERR_ABORTED' });
  expect([fake.objects.size, fake.uploads.size]).toEqual([0, 0]);
});

describe('an upload in parts', () => {
  test('that breaks off leaves neither object nor parts', async () => {
    fake.fault = (request) => (request.includes('partNumber=2') ? 403 : undefined);
    await expect(storeOf().put('a', [LONG])).rejects.toMatchObject({ code: 'ERR_STORE' });
    expect([fake.objects.size, fake.uploads.size]).toEqual([0, 0]);
  });

  test('whose last answer is lost is known to be done', async () => {
    let lost = 0;
    fake.fault = (request) => (request.startsWith('POST') && request.includes('uploadId') && lost++ === 0 ? { after: 'lost' } : undefined);
    await storeOf().put('a', [LONG]);
    expect(lost).toBe(2);
    expect(Buffer.compare(fake.objects.get('a')?.bytes as Buffer, LONG)).toBe(0);
  });

  test('that the server has forgotten is not taken for done, nor is another object of that name', async () => {
    fake.objects.set('a', { bytes: Buffer.alloc(LONG.length), etag: '"one"' });
    fake.fault = (request) => {
      if (request.startsWith('POST') && request.includes('uploadId')) fake.uploads.clear();
      return undefined;
    };
    await expect(storeOf().put('a', [LONG])).rejects.toThrow(/forgotten the upload/);
  });

  test('that fails after 200 was said is not taken for done', async () => {
    fake.failsLate = true;
    await expect(storeOf().put('a', [LONG])).rejects.toThrow(/could not put the parts together \(InternalError\)/);
    expect([fake.objects.size, fake.uploads.size]).toEqual([0, 0]);
  });
});

test('an object that is replaced while it is read is not read half and half', async () => {
  const store = storeOf();
  await store.put('a', [LONG]);
  let reads = 0;
  fake.fault = (request) => {
    if (request.startsWith('GET') && reads++ > 0) fake.objects.set('a', { bytes: Buffer.alloc(LONG.length), etag: '"other"' });
    return undefined;
  };
  const outcome = await store.get('a').then(
    ({ length }) => `read ${length} bytes`,
    (error) => error.message,
  );
  expect(outcome).toMatch(/412 \(PreconditionFailed/);
});

test('a listing of several answers is whole', async () => {
  fake.keysPerAnswer = 3;
  for (let i = 0; i < 10; i++) fake.objects.set(`p/k${i}`, { bytes: Buffer.alloc(i), etag: '""' });
  const listed = await storeOf({ prefix: 'p' }).list('k');
  expect(listed.map(({ key, bytes }) => [key, bytes])).toEqual(Array.from({ length: 10 }, (_, i) => [`k${i}`, i]));
  expect(fake.requests).toHaveLength(4);
});

test('a bucket that is not there says so', async () => {
  const store = storeOf({ bucket: 'nowhere' });
  await expect(store.get('a')).rejects.toThrow(/no such bucket; make it first/);
  await expect(store.list('')).rejects.toThrow(/NoSuchBucket.*make the bucket first/);
});

test('options are checked', () => {
  const wrong: [Partial<S3Options>, RegExp][] = [
    [{ endpoint: 'ftp://a' }, /endpoint = "ftp:/],
    [{ endpoint: 'https://user:secret@host' }, /endpoint/],
    [{ endpoint: 'https://host/path' }, /endpoint/],
    [{ bucket: 'A' }, /bucket = "A"/],
    [{ prefix: '../x' }, /key/],
    [{ checksum: 'sha1' as 'md5' }, /checksum = "sha1"/],
    [{ partBytes: MIB }, /partBytes = 1048576 .*5242880/],
    [{ attempts: 0 }, /attempts = 0/],
    [{ requestTimeoutMs: 1.5 }, /requestTimeoutMs = 1.5/],
  ];
  for (const [options, text] of wrong) expect(() => storeOf(options)).toThrow(text);
});
