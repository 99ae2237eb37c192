// What rank 0 tells the others about where the job meets, and the files in which it may say so. Such a file holds the job's secret: only
// its owner can read it, and a file that has another owner is not trusted.
import { chmodSync, lstatSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { MultirailError } from '../../errors.ts';

export interface MeetingRecord {
  version: number;
  jobId: string;
  /** Addresses of the out-of-band channel, and the host on which those of loopback are good. */
  urls: string[];
  hostId: string;
  /** Base64. */
  secret: string;
  /** Rank 0 could not serve: then nobody has to wait. */
  error?: string;
}

export const RECORD_VERSION = 1;

export function encodeRecord(record: MeetingRecord): string {
  return JSON.stringify(record);
}

export function decodeRecord(text: string): MeetingRecord {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new MultirailError('ERR_INIT', "rank 0's record of where the job meets is damaged");
  }
  const record = value as MeetingRecord;
  if (typeof value !== 'object' || value === null || record.version !== RECORD_VERSION) {
    throw new MultirailError(
      'ERR_INIT',
      'rank 0 runs another version of multirail, and its record of where the job meets cannot be read: install one version for all ranks',
    );
  }
  if (record.error !== undefined) throw new MultirailError('ERR_INIT', `rank 0 could not serve the out-of-band channel: ${record.error}`);
  const { jobId, urls, hostId, secret } = record;
  if (typeof jobId !== 'string' || typeof hostId !== 'string' || typeof secret !== 'string' || !Array.isArray(urls) || urls.length === 0) {
    throw new MultirailError('ERR_INIT', "rank 0's record of where the job meets is damaged");
  }
  return record;
}

/** A folder of this user's own on this host. Throws ERR_INIT when somebody else has made it, or may look into it. */
export function privateFolder(): string {
  const uid = process.getuid?.() ?? 0;
  const folder = join(process.env.XDG_RUNTIME_DIR || tmpdir(), `multirail-${uid}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const stat = lstatSync(folder);
  if (!stat.isDirectory() || stat.uid !== uid || (stat.mode & 0o077) !== 0) {
    throw new MultirailError(
      'ERR_INIT',
      `${folder} must be a folder that belongs to this user alone (mode 700), and is not: remove it, or set XDG_RUNTIME_DIR to a private folder`,
    );
  }
  return folder;
}

/** Names of jobs come from starters: what is no letter, digit, dot or dash is left out of a file's name. */
export function fileForJob(jobKey: string): string {
  return join(privateFolder(), `meeting-${jobKey.replace(/[^\w.-]+/g, '_').slice(0, 180)}`);
}

/** Puts the record where the others look, all at once, over what an earlier job may have left. */
export function writeRecord(path: string, record: MeetingRecord): void {
  const beside = join(dirname(path), `.${process.pid}-${record.jobId}.part`);
  try {
    writeFileSync(beside, encodeRecord(record), { mode: 0o600, flag: 'wx' });
    chmodSync(beside, 0o600);
    renameSync(beside, path);
  } catch (error) {
    rmSync(beside, { force: true });
    throw new MultirailError('ERR_INIT', `the file that says where the job meets cannot be written: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

export function removeRecord(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // It is of no use to anybody once rank 0 is gone.
  }
}

/** The record, or undefined while there is none. */
export function readRecord(path: string): MeetingRecord | undefined {
  let text: string;
  try {
    const stat = lstatSync(path);
    const uid = process.getuid?.() ?? stat.uid;
    if (!stat.isFile() || stat.uid !== uid || (stat.mode & 0o077) !== 0) {
      throw new MultirailError(
        'ERR_INIT',
        `${path} has another owner, or others may read it, so what it says about where the job meets is not trusted: remove it`,
      );
    }
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof MultirailError) throw error;
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new MultirailError('ERR_INIT', `the file that says where the job meets cannot be read: ${(error as Error).message}`, {
      cause: error,
    });
  }
  return decodeRecord(text);
}
