// A folder as a store, and the saves in it: modes, full and read-only disks, torn and foreign files, killed writers, the newest save, garbage.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { encodeImage } from '../../../src/ft/image/encode.ts';
import type { Manifest } from '../../../src/ft/image/manifest.ts';
import { fileStore } from '../../../src/ft/store/file-store.ts';
import { memoryStore } from '../../../src/ft/store/memory-store.ts';
import {
  commitKey,
  commitSave,
  imageKey,
  newestSave,
  readSavedImage,
  removeGarbage,
  type SavePlace,
  storedSaves,
} from '../../../src/ft/store/saves.ts';
import type { Store } from '../../../src/ft/store/store.ts';
import { crc32c } from '../../../src/native/crc32c.ts';
import { Prng } from '../../../src/util/prng.ts';
import { inspect } from '../../../tools/ft/inspect.ts';
import { bundleInto } from '../../support/bundle.mjs';

const top = mkdtempSync(join(tmpdir(), 'multirail-saves-'));
let folder: string;
let store: Store;
let count = 0;

beforeEach(() => {
  folder = join(top, `${count++}`);
  store = fileStore(folder);
});
afterAll(() => rmSync(top, { recursive: true, force: true }));

const JOB = 'heat';

/** Writes the images of a save, and its manifest unless it is told not to. */
async function save(place: SavePlace, { size = 2, commit = true, into = store } = {}): Promise<Manifest> {
  const files = [];
  for (let rank = 0; rank < size; rank++) {
    const plate = new Float64Array(100).fill(place.k + rank / 10);
    const header = {
      save: place.k,
      epoch: place.epoch,
      rank,
      size,
      step: 10 * place.k,
      wallTimeMs: 1_700_000_000_000,
      jobId: new Uint8Array(16),
    };
    const { parts, bytes, crc } = encodeImage(
      header,
      [{ kind: 'array', name: 'plate', element: 'Float64Array', bytes: new Uint8Array(plate.buffer) }],
      crc32c,
    );
    await into.put(imageKey(JOB, place, rank), parts);
    files.push({ rank, bytes, crc });
  }
  const manifest = { ...place, size, step: 10 * place.k, files, multirail: '0.0.0', node: process.version };
  if (commit) await commitSave(into, JOB, manifest);
  return manifest;
}

const failure = (promise: Promise<unknown>): Promise<{ code: string; message: string }> =>
  promise.then(
    () => ({ code: 'none', message: 'it did not fail' }),
    (error) => error,
  );
const everything = (at = folder): string[] => (readdirSync(at, { recursive: true }) as string[]).sort();

describe('a folder', () => {
  test('has files of mode 0600 in folders of mode 0700, and nothing else', async () => {
    const before = process.umask(0);
    try {
      await save({ epoch: 0, k: 1 });
    } finally {
      process.umask(before);
    }
    expect(everything()).toEqual(['heat', 'heat/0-1', 'heat/0-1/COMMIT.json', 'heat/0-1/rank-0.mrck', 'heat/0-1/rank-1.mrck']);
    for (const name of ['', 'heat', 'heat/0-1']) expect(statSync(join(folder, name)).mode & 0o777, name).toBe(0o700);
    for (const name of ['COMMIT.json', 'rank-0.mrck']) expect(statSync(join(folder, 'heat/0-1', name)).mode & 0o777, name).toBe(0o600);
  });

  test('a name that is a link is replaced, and what it leads to is not written', async () => {
    mkdirSync(join(folder, 'a'), { recursive: true });
    writeFileSync(join(folder, 'precious'), 'precious');
    symlinkSync(join(folder, 'precious'), join(folder, 'a/b'));
    await store.put('a/b', [Uint8Array.of(1)]);
    expect(readFileSync(join(folder, 'precious'), 'utf8')).toBe('precious');
    expect(await store.get('a/b')).toEqual(Uint8Array.of(1));
  });

  test('a folder where a file should be, and a file where a folder should be, are named', async () => {
    await store.put('a/b', [Uint8Array.of(1)]);
    expect(await failure(store.put('a', [Uint8Array.of(1)]))).toMatchObject({ code: 'ERR_STORE' });
    expect(await failure(store.put('a/b/c', [Uint8Array.of(1)]))).toMatchObject({
      code: 'ERR_STORE',
      message: expect.stringContaining(join(folder, 'a/b/c')),
    });
    expect(await failure(store.get('a/b/c'))).toMatchObject({ code: 'ERR_CHECKPOINT' });
    expect(await failure(store.get('a'))).toMatchObject({ code: 'ERR_STORE' });
    expect(everything()).toEqual(['a', 'a/b']);
  });

  test('a write that is ended in its middle leaves nothing', async () => {
    const controller = new AbortController();
    const parts = Array.from({ length: 20_000 }, () => new Uint8Array(64));
    setTimeout(() => controller.abort(), 1);
    const outcome = await failure(store.put('a/b', parts, { signal: controller.signal }));
    expect(outcome).toMatchObject({ code: 'ERR_ABORTED' });
    expect(everything().filter((name) => name !== 'a')).toEqual([]);
  });

  test('thousands of parts are written in order', async () => {
    const parts = Array.from({ length: 3000 }, (_, i) => Uint8Array.of(i & 255, i >> 8));
    await store.put('many', parts);
    const bytes = await store.get('many');
    expect(bytes.length).toBe(6000);
    for (let i = 0; i < 3000; i++) if (bytes[2 * i] !== (i & 255) || bytes[2 * i + 1] !== i >> 8) throw new Error(`part ${i} is elsewhere`);
  });

  test('what a killed writer has left is removed with its save after a day, and not before', async () => {
    await save({ epoch: 0, k: 1 });
    const left = join(folder, 'heat/0-1/.tmp-0123456789abcdef01234567');
    writeFileSync(left, 'half an image');
    const keys = (await store.list('')).map(({ key }) => key);
    expect(keys).toHaveLength(3);
    await store.remove(keys);
    expect(everything()).toEqual(['heat', 'heat/0-1', 'heat/0-1/.tmp-0123456789abcdef01234567']);
    utimesSync(left, new Date(), new Date(Date.now() - 25 * 3600 * 1000));
    await store.remove(keys);
    expect(everything()).toEqual(['heat']);
  });
});

describe('disks', () => {
  const why =
    process.platform !== 'linux' || process.getuid?.() !== 0
      ? 'only root may mount'
      : spawnSync('sh', ['-c', `mkdir -p ${top}/try && mount -t tmpfs -o size=64k tmpfs ${top}/try && umount ${top}/try`]).status === 0
        ? undefined
        : 'mounting is forbidden here';
  if (why !== undefined) console.log(`skipped: full and read-only disks: ${why}`);

  test.skipIf(why !== undefined)('a full disk is ERR_STORE with what to do, and what was there before is still there', async () => {
    mkdirSync(folder);
    expect(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=256k,mode=0700', 'tmpfs', folder]).status).toBe(0);
    try {
      await save({ epoch: 0, k: 1 });
      const kept = await store.get('heat/0-1/rank-0.mrck');
      const error = await failure(store.put('heat/0-1/rank-0.mrck', [new Uint8Array(200_000), new Uint8Array(200_000)]));
      expect(error).toMatchObject({ code: 'ERR_STORE', cause: { code: 'ENOSPC' } });
      expect(error.message).toMatch(/the write of .*rank-0.mrck failed: ENOSPC: .*; free space there, or keep fewer saves/);
      expect(Buffer.compare(await store.get('heat/0-1/rank-0.mrck'), kept)).toBe(0);
      // Nothing takes up the space any more, and the next save finds it.
      expect(everything().filter((name) => name.includes('.tmp'))).toEqual([]);
      await store.put('heat/0-2/rank-0.mrck', [new Uint8Array(150_000)]);
      expect(spawnSync('mount', ['-o', 'remount,ro', folder]).status).toBe(0);
      expect(await failure(store.put('heat/0-3/rank-0.mrck', [Uint8Array.of(1)]))).toMatchObject({
        code: 'ERR_STORE',
        message: expect.stringMatching(/EROFS.*; it is mounted read-only/),
      });
      expect(await failure(store.remove(['heat/0-1/COMMIT.json']))).toMatchObject({ code: 'ERR_STORE' });
      expect((await newestSave(store, JOB)).manifest).toMatchObject({ k: 1 });
    } finally {
      spawnSync('umount', [folder]);
    }
  });

  const isRoot = process.getuid?.() === 0;
  if (isRoot) console.log('skipped: folders that may not be written to: root may write everywhere');
  test.skipIf(isRoot)('a folder that may not be written to is ERR_STORE', async () => {
    mkdirSync(folder);
    chmodSync(folder, 0o500);
    expect(await failure(store.put('a', [Uint8Array.of(1)]))).toMatchObject({
      code: 'ERR_STORE',
      message: expect.stringContaining('EACCES'),
    });
  });
});

test('a writer that is killed leaves whole objects or none', { timeout: 60_000 }, async () => {
  mkdirSync('.cache', { recursive: true });
  const programs = mkdtempSync(join('.cache', 'killed-'));
  const running: ChildProcess[] = [];
  try {
    writeFileSync(
      join(programs, 'writer.ts'),
      `import { fileStore } from '../../src/ft/store/file-store.ts';
const store = fileStore(process.argv[2]);
const bytes = new Uint8Array(300_000);
for (let i = 0; ; i++) { bytes.fill(i & 255); await store.put('a/object', [bytes.subarray(0, 100_000), bytes.subarray(100_000)]); if (i === 0) process.stdout.write('.'); }\n`,
    );
    await bundleInto(programs, [join(programs, 'writer.ts')], { sourcemap: false });
    const prng = new Prng('killed');
    for (let round = 0; round < 4; round++) {
      const child = spawn(process.execPath, [join(programs, 'writer.mjs'), folder], { stdio: ['ignore', 'pipe', 'inherit'] });
      running.push(child);
      await new Promise((resolve) => child.stdout?.once('data', resolve));
      await new Promise((resolve) => setTimeout(resolve, prng.below(40)));
      child.kill('SIGKILL');
      await new Promise((resolve) => child.once('close', resolve));
      expect(await store.list('')).toEqual([{ key: 'a/object', bytes: 300_000 }]);
      const bytes = await store.get('a/object');
      expect(bytes.every((byte) => byte === bytes[0])).toBe(true);
    }
  } finally {
    for (const child of running) child.kill('SIGKILL');
    rmSync(programs, { recursive: true, force: true });
  }
});

describe('saves', () => {
  test('the newest is that of the highest epoch, then number, whatever the order of their names', async () => {
    for (const place of [
      { epoch: 0, k: 9 },
      { epoch: 0, k: 10 },
      { epoch: 2, k: 1 },
      { epoch: 10, k: 0 },
    ])
      await save(place);
    await save({ epoch: 11, k: 0 }, { commit: false });
    expect((await storedSaves(store, JOB)).map(({ epoch, k, isCommitted }) => [epoch, k, isCommitted])).toEqual([
      [11, 0, false],
      [10, 0, true],
      [2, 1, true],
      [0, 10, true],
      [0, 9, true],
    ]);
    const { manifest, refused } = await newestSave(store, JOB);
    expect([manifest?.epoch, manifest?.k, refused]).toEqual([10, 0, []]);
    expect((await newestSave(store, 'other')).manifest).toBeUndefined();
  });

  test('one whose image was cut off, or is missing, or whose manifest is damaged or foreign, is passed over', async () => {
    for (let k = 1; k <= 5; k++) await save({ epoch: 0, k });
    truncateSync(join(folder, 'heat/0-5/rank-1.mrck'), 100);
    rmSync(join(folder, 'heat/0-4/rank-0.mrck'));
    writeFileSync(join(folder, 'heat/0-3/COMMIT.json'), '{"version":1');
    await store.put('heat/0-2/COMMIT.json', [await store.get('heat/0-1/COMMIT.json')]);
    const { manifest, refused } = await newestSave(store, JOB);
    expect(manifest?.k).toBe(1);
    expect(refused).toEqual([
      expect.stringMatching(/0-5.*rank-1.mrck should have \d+ bytes and has 100/),
      expect.stringMatching(/0-4.*rank-0.mrck .* is not there/),
      expect.stringMatching(/0-3.*ERR_CORRUPT.*not JSON/),
      expect.stringMatching(/0-2.*save 1 of recovery epoch 0: it belongs elsewhere/),
    ]);
  });

  test('a store that fails is not taken for an empty one', async () => {
    await save({ epoch: 0, k: 1 });
    const failing: Store = { ...memoryStore(), list: (prefix) => store.list(prefix), get: () => Promise.reject(new Error('broken')) };
    await expect(newestSave(failing, JOB)).rejects.toThrow('broken');
  });

  test('images are read with their checksums, and another image in the place of one is found', async () => {
    const manifest = await save({ epoch: 1, k: 4 });
    const image = await readSavedImage(store, JOB, manifest, 1);
    expect(new Float64Array(image.sections[0].data.slice().buffer)[0]).toBe(4.1);
    const path = join(folder, 'heat/1-4/rank-1.mrck');
    const bytes = readFileSync(path);
    const prng = new Prng('torn');
    for (let i = 0; i < 50; i++) {
      const torn = Buffer.from(bytes);
      torn[prng.below(torn.length)] ^= 1 << prng.below(8);
      writeFileSync(path, i % 2 === 0 ? torn : bytes.subarray(0, prng.below(bytes.length)));
      await expect(readSavedImage(store, JOB, manifest, 1)).rejects.toMatchObject({ code: 'ERR_CORRUPT' });
    }
    writeFileSync(path, readFileSync(join(folder, 'heat/1-4/rank-0.mrck')));
    await expect(readSavedImage(store, JOB, manifest, 1)).rejects.toThrow(/image of rank 0 of 2.*not the one that was committed/);
    await expect(readSavedImage(store, JOB, manifest, 2)).rejects.toMatchObject({ code: 'ERR_RANK' });
    // A sound image of the same rank and save, made by another attempt.
    writeFileSync(path, bytes);
    const other = { ...manifest, files: manifest.files.map((file) => ({ ...file, crc: file.crc ^ 1 })) };
    await expect(readSavedImage(store, JOB, other, 1)).rejects.toThrow(/not the one that was committed/);
  });

  test('garbage: older saves with their manifest first, and what was never committed and is older than the newest', async () => {
    const order: string[] = [];
    const memory = memoryStore();
    const watched: Store = {
      put: (key, parts) => memory.put(key, parts),
      get: (key) => memory.get(key),
      list: (prefix) => memory.list(prefix),
      remove: async (keys) => {
        order.push(...keys);
        await memory.remove(keys);
      },
    };
    for (let k = 1; k <= 4; k++) await save({ epoch: 0, k }, { into: watched });
    await save({ epoch: 0, k: 0 }, { commit: false, into: watched });
    await save({ epoch: 1, k: 0 }, { commit: false, into: watched });
    await watched.put('heat/notes', [Uint8Array.of(1)]);
    const removed = await removeGarbage(watched, JOB, 2);
    expect(removed).toEqual(order);
    expect(order).toEqual([
      commitKey(JOB, { epoch: 0, k: 2 }),
      imageKey(JOB, { epoch: 0, k: 2 }, 0),
      imageKey(JOB, { epoch: 0, k: 2 }, 1),
      commitKey(JOB, { epoch: 0, k: 1 }),
      imageKey(JOB, { epoch: 0, k: 1 }, 0),
      imageKey(JOB, { epoch: 0, k: 1 }, 1),
      imageKey(JOB, { epoch: 0, k: 0 }, 0),
      imageKey(JOB, { epoch: 0, k: 0 }, 1),
    ]);
    expect((await storedSaves(watched, JOB)).map(({ epoch, k }) => [epoch, k])).toEqual([
      [1, 0],
      [0, 4],
      [0, 3],
    ]);
    expect(await removeGarbage(watched, 'other', 2)).toEqual([]);
    await expect(removeGarbage(watched, JOB, 0)).rejects.toMatchObject({ code: 'ERR_ARG' });
    await expect(storedSaves(watched, '../x')).rejects.toMatchObject({ code: 'ERR_ARG' });
  });
});

describe('inspect', () => {
  test('says what a folder has and what could be restored, from each of its levels', async () => {
    for (let k = 1; k <= 3; k++) await save({ epoch: 0, k });
    await save({ epoch: 0, k: 4 }, { commit: false });
    for (const path of [folder, join(folder, 'heat')]) {
      const { lines, problems } = await inspect(path);
      expect(problems).toEqual([]);
      expect(lines.join('\n')).toMatch(/4 +- +2 .*never committed/);
      expect(lines.at(-1)).toBe('heat: save 3 of epoch 0 could be restored, at step 30');
    }
    expect((await inspect(join(folder, 'heat/0-2'))).lines.at(-1)).toBe('heat: save 2 of epoch 0 could be restored, at step 20');
    expect((await inspect(join(folder, 'heat/0-2/COMMIT.json'))).lines[0]).toMatch(/save 2 of recovery epoch 0, at step 20, 2 images/);
    const image = await inspect(join(folder, 'heat/0-2/rank-1.mrck'));
    expect(image.lines.join('\n')).toMatch(/image of rank 1 of 2, save 2 .*\n.*\n.*\n {2}plate +array +Float64Array +\d+ +800/);
  });

  test('finds what is damaged, and the save that is not', async () => {
    for (let k = 1; k <= 3; k++) await save({ epoch: 0, k });
    const path = join(folder, 'heat/0-3/rank-1.mrck');
    const bytes = readFileSync(path);
    bytes[400] ^= 1;
    writeFileSync(path, bytes);
    rmSync(join(folder, 'heat/0-2/rank-0.mrck'));
    const { lines, problems } = await inspect(folder);
    expect(problems).toEqual([
      expect.stringMatching(/heat, save 3 of epoch 0: rank 1: ERR_CORRUPT: .* section "plate"/),
      expect.stringMatching(/heat, save 2 of epoch 0: rank 0: ENOENT/),
    ]);
    expect(lines.at(-1)).toBe('heat: save 1 of epoch 0 could be restored, at step 10');
    expect((await inspect(path)).problems).toEqual([expect.stringMatching(/section "plate"/)]);
  });

  test('has a sentence for what is not there', async () => {
    await expect(inspect(join(folder, 'nowhere'))).rejects.toMatchObject({ code: 'ERR_ARG' });
    mkdirSync(folder);
    await expect(inspect(folder)).rejects.toThrow(/has no saves: expected the folder of a store/);
  });
});
