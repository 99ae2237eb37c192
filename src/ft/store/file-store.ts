// A store in a folder: a disk of this host, or a file system that all hosts share. An object is written under a temporary name, brought to the
// disk, and renamed; then the folder is brought to the disk too, or the new name might not survive a power failure.
import { randomBytes } from 'node:crypto';
import { type FileHandle, mkdir, open, readdir, rename, rm, rmdir, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { MultirailError } from '../../errors.ts';
import { notThere, type PutOptions, requireKey, requireNotAborted, roomFor, type Store, type StoreEntry } from './store.ts';

/** Objects never begin with a dot. */
const TEMPORARY = '.tmp-';
/** A temporary file that nobody has written to for a day belongs to a process that was killed. */
const TEMPORARY_MS_MAX = 24 * 3600 * 1000;
/** Parts per call; the kernel takes 1024 at most. */
const PARTS_PER_WRITE = 512;
const READ_BYTES_MAX = 64 * 1024 * 1024;
const FILE_MODE = 0o600;
const FOLDER_MODE = 0o700;

const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException | undefined)?.code;

/** What to do about a failure of the file system. */
const ADVICE: Readonly<Record<string, string>> = {
  ENOSPC: 'free space there, or keep fewer saves',
  EDQUOT: 'the quota is used up: free space there, or keep fewer saves',
  EACCES: 'the user of this process may not do that there',
  EPERM: 'the user of this process may not do that there',
  EROFS: 'it is mounted read-only',
  EMFILE: 'this process has too many files open: raise its limit',
  EIO: 'the disk fails',
};

function failed(what: string, cause: unknown): MultirailError {
  if (cause instanceof MultirailError) return cause;
  const advice = ADVICE[codeOf(cause) ?? ''];
  const text = cause instanceof Error ? cause.message : String(cause);
  return new MultirailError('ERR_STORE', `${what} failed: ${text}${advice === undefined ? '' : `; ${advice}`}`, { cause });
}

/** Writes all parts; the kernel may take fewer bytes than it was given. */
async function writeAll(file: FileHandle, parts: readonly Uint8Array[], check: () => void): Promise<void> {
  let waiting = parts.filter(({ length }) => length > 0);
  while (waiting.length > 0) {
    check();
    const batch = waiting.slice(0, PARTS_PER_WRITE);
    let { bytesWritten } = await file.writev(batch);
    if (bytesWritten === 0) throw new Error('the file system took no bytes');
    let done = 0;
    while (done < batch.length && bytesWritten >= batch[done].length) bytesWritten -= batch[done++].length;
    const rest = bytesWritten > 0 ? [batch[done].subarray(bytesWritten), ...waiting.slice(done + 1)] : waiting.slice(done);
    waiting = rest;
  }
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

class FileStore implements Store {
  private readonly folder: string;

  constructor(folder: string) {
    this.folder = resolve(folder);
  }

  private pathOf(key: string): string {
    requireKey(key);
    return join(this.folder, ...key.split('/'));
  }

  async put(key: string, parts: readonly Uint8Array[], options: PutOptions = {}): Promise<void> {
    const path = this.pathOf(key);
    const check = (): void => requireNotAborted(options.signal, `the write of ${path}`);
    check();
    const temporary = join(dirname(path), `${TEMPORARY}${randomBytes(12).toString('hex')}`);
    try {
      await this.makeFolder(dirname(path));
      // O_EXCL: nobody else's file, nor a link that somebody has laid there, is written to.
      const file = await open(temporary, 'wx', FILE_MODE);
      try {
        await writeAll(file, parts, check);
        await file.datasync();
      } finally {
        await file.close();
      }
      check();
      await rename(temporary, path);
      await syncFolder(dirname(path));
    } catch (error) {
      await rm(temporary, { force: true }).catch(() => undefined);
      throw failed(`the write of ${path}`, error);
    }
  }

  /**
   * Makes a folder and those above it, and brings the new names to the disk. Not by mkdir's own recursion, which says ENOENT where a disk is
   * read-only.
   */
  private async makeFolder(folder: string): Promise<void> {
    try {
      await mkdir(folder, { mode: FOLDER_MODE });
    } catch (error) {
      if (codeOf(error) === 'EEXIST') return;
      if (codeOf(error) !== 'ENOENT' || dirname(folder) === folder) throw error;
      await this.makeFolder(dirname(folder));
      // Another rank may have made it meanwhile.
      await mkdir(folder, { mode: FOLDER_MODE }).catch((again) => {
        if (codeOf(again) !== 'EEXIST') throw again;
      });
    }
    await syncFolder(dirname(folder));
  }

  async get(key: string, into?: Uint8Array): Promise<Uint8Array> {
    const path = this.pathOf(key);
    let file: FileHandle;
    try {
      file = await open(path, 'r');
    } catch (error) {
      if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') throw notThere(key, this.folder);
      throw failed(`reading ${path}`, error);
    }
    try {
      const { size } = await file.stat();
      const room = roomFor(key, size, into);
      for (let at = 0; at < size; ) {
        const { bytesRead } = await file.read(room, at, Math.min(READ_BYTES_MAX, size - at), at);
        if (bytesRead === 0) throw new Error(`it ended after ${at} of ${size} bytes: somebody has cut it off`);
        at += bytesRead;
      }
      return room;
    } catch (error) {
      throw failed(`reading ${path}`, error);
    } finally {
      await file.close();
    }
  }

  async list(prefix: string): Promise<StoreEntry[]> {
    const found: StoreEntry[] = [];
    const slash = prefix.lastIndexOf('/');
    const visit = async (folder: string, words: string): Promise<void> => {
      for (const entry of await readdir(folder, { withFileTypes: true })) {
        const key = words + entry.name;
        // A folder is worth a look when the prefix leads into it, or it lies beyond the prefix.
        if (entry.name.startsWith('.') || !(key.startsWith(prefix) || prefix.startsWith(`${key}/`))) continue;
        if (entry.isDirectory()) await visit(join(folder, entry.name), `${key}/`).catch(unlessGone);
        else if (entry.isFile()) await stat(join(folder, entry.name)).then(({ size }) => found.push({ key, bytes: size }), unlessGone);
      }
    };
    const top = prefix.slice(0, slash + 1);
    try {
      if (top !== '') requireKey(top.slice(0, -1));
      await visit(join(this.folder, top), top).catch(unlessGone);
    } catch (error) {
      throw failed(`listing ${join(this.folder, top)}`, error);
    }
    return found.sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  async remove(keys: readonly string[]): Promise<void> {
    const folders = new Set<string>();
    for (const key of keys) {
      const path = this.pathOf(key);
      try {
        await rm(path, { force: true });
      } catch (error) {
        throw failed(`removing ${path}`, error);
      }
      folders.add(dirname(path));
    }
    for (const folder of folders) {
      try {
        await this.removeEmpty(folder);
      } catch (error) {
        throw failed(`removing ${folder}`, error);
      }
    }
  }

  /** Removes the folder of a save that has no objects any more, and what killed processes have left in it. */
  private async removeEmpty(folder: string): Promise<void> {
    if (folder === this.folder) return;
    const left = await readdir(folder).catch(unlessGone);
    if (left === undefined || left.some((name) => !name.startsWith(TEMPORARY))) return;
    for (const name of left) {
      const state = await stat(join(folder, name)).catch(unlessGone);
      if (state !== undefined && Date.now() - state.mtimeMs < TEMPORARY_MS_MAX) return;
      await rm(join(folder, name), { force: true });
    }
    await rmdir(folder).catch((error) => {
      // Somebody has begun to write there.
      if (codeOf(error) !== 'ENOTEMPTY' && codeOf(error) !== 'ENOENT') throw error;
    });
  }
}

/** What is listed may be removed by another rank in the same moment. */
function unlessGone(error: unknown): undefined {
  if (codeOf(error) !== 'ENOENT' && codeOf(error) !== 'ENOTDIR') throw error;
  return undefined;
}

/**
 * A store in a folder, on a disk of this host or on a file system that all hosts share. Files have mode 0600, folders 0700; an object is on
 * the disk, and under its name, when put() resolves. Nothing is encrypted.
 *
 * @param folder The folder; it is made when something is written.
 * @throws ERR_ARG: the folder is not named.
 */
export function fileStore(folder: string): Store {
  if (typeof folder !== 'string' || folder === '')
    throw new MultirailError('ERR_ARG', `fileStore(${JSON.stringify(folder)}): expected the path of a folder`);
  return new FileStore(folder);
}
