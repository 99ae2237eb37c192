// A store in a bucket of S3, or of a server that speaks its protocol. Long objects are uploaded in parts; an object appears whole, with the
// last request of its upload.
import { createHash } from 'node:crypto';
import { MultirailError } from '../../errors.ts';
import { crc32c } from '../../native/crc32c.ts';
import { elementOf, S3Client, textOf } from './s3-client.ts';
import { bytesOf, notThere, type PutOptions, requireKey, requireNotAborted, roomFor, type Store, type StoreEntry } from './store.ts';

/** Where the bucket is. Who may use it is in the environment, in AWS's names: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN. */
export interface S3Options {
  /** Address of the server, `https://s3.eu-central-1.amazonaws.com` for instance. The bucket is named in the path. */
  readonly endpoint: string;
  /** The bucket, which must exist. */
  readonly bucket: string;
  /** Put before every key, with a `/` between; none unless given. */
  readonly prefix?: string;
  /** Region, for the signature; AWS_REGION, AWS_DEFAULT_REGION or us-east-1 unless given. */
  readonly region?: string;
  /** What the server checks an upload by: `md5` (default), which all servers know, or `crc32c`, which costs less. */
  readonly checksum?: 'md5' | 'crc32c';
  /** Length of a part in bytes, from 5 MiB, which is S3's least (default 8 MiB). Objects up to this length are one request. */
  readonly partBytes?: number;
  /** Limit of time for one request, in ms (default 60,000). */
  readonly requestTimeoutMs?: number;
  /** How many times a request is made when the server is busy or the network fails (default 5). */
  readonly attempts?: number;
}

const MIB = 1024 * 1024;
const PART_BYTES = 8 * MIB;
/** S3 takes no shorter parts, but for the last. */
const PART_BYTES_MIN = 5 * MIB;
const PART_BYTES_MAX = 1024 * MIB;
const PARTS_MAX = 10_000;
const PARTS_AT_ONCE = 4;
const KEYS_PER_ANSWER_MAX = 1000;

/** Calls `each` for 0 … count − 1, a few at once. The first failure ends it, when those under way have ended. */
async function severalAtOnce(count: number, each: (i: number) => Promise<void>): Promise<void> {
  let next = 0;
  let failure: { error: unknown } | undefined;
  const worker = async (): Promise<void> => {
    while (next < count && failure === undefined) {
      try {
        await each(next++);
      } catch (error) {
        failure ??= { error };
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(PARTS_AT_ONCE, count) }, worker));
  if (failure !== undefined) throw failure.error;
}

/** Bytes `from` to `to` of parts that stand for one object, as one piece. */
function pieceOf(parts: readonly Uint8Array[], from: number, to: number): Uint8Array {
  const piece = new Uint8Array(to - from);
  let at = 0;
  for (const part of parts) {
    const [first, last] = [Math.max(from, at), Math.min(to, at + part.length)];
    if (first < last) piece.set(part.subarray(first - at, last - at), first - from);
    at += part.length;
    if (at >= to) break;
  }
  return piece;
}

class S3Store implements Store {
  private readonly client: S3Client;
  private readonly prefix: string;
  private readonly checksum: 'md5' | 'crc32c';
  private readonly partBytes: number;

  constructor(options: S3Options) {
    const {
      endpoint,
      bucket,
      prefix = '',
      region,
      checksum = 'md5',
      partBytes = PART_BYTES,
      requestTimeoutMs = 60_000,
      attempts = 5,
    } = options;
    const refuse = (name: string, value: unknown, expected: string): never => {
      throw new MultirailError('ERR_ARG', `${name} = ${JSON.stringify(value)} of an S3 store: expected ${expected}`);
    };
    if (typeof endpoint !== 'string' || !/^https?:\/\/[^/?#@]+\/?$/.test(endpoint))
      refuse('endpoint', endpoint, 'http:// or https://, a host, and nothing after it');
    if (typeof bucket !== 'string' || !/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(bucket)) refuse('bucket', bucket, 'the name of a bucket');
    if (checksum !== 'md5' && checksum !== 'crc32c') refuse('checksum', checksum, 'md5 or crc32c');
    const whole = (name: string, value: number, low: number, high: number): void => {
      if (!Number.isInteger(value) || value < low || value > high) refuse(name, value, `a whole number from ${low} to ${high}`);
    };
    whole('partBytes', partBytes, PART_BYTES_MIN, PART_BYTES_MAX);
    whole('requestTimeoutMs', requestTimeoutMs, 1, 3_600_000);
    whole('attempts', attempts, 1, 20);
    if (prefix !== '') requireKey(prefix);
    this.client = new S3Client({ endpoint: endpoint.replace(/\/$/, ''), bucket, region, requestTimeoutMs, attempts });
    this.prefix = prefix === '' ? '' : `${prefix}/`;
    this.checksum = checksum;
    this.partBytes = partBytes;
  }

  private nameOf(key: string): string {
    requireKey(key);
    return this.prefix + key;
  }

  /** What the server compares the bytes with. */
  private checksumOf(bytes: Uint8Array): Record<string, string> {
    if (this.checksum === 'md5') return { 'Content-MD5': createHash('md5').update(bytes).digest('base64') };
    const crc = Buffer.alloc(4);
    crc.writeUInt32BE(crc32c(bytes));
    return { 'x-amz-checksum-crc32c': crc.toString('base64') };
  }

  async put(key: string, parts: readonly Uint8Array[], { signal }: PutOptions = {}): Promise<void> {
    const name = this.nameOf(key);
    requireNotAborted(signal, `the write of ${this.client.place(name)}`);
    const total = bytesOf(parts);
    if (total > this.partBytes) return this.putInParts(name, parts, total, signal);
    const body = pieceOf(parts, 0, total);
    await this.client.ask({ method: 'PUT', key: name, body, headers: this.checksumOf(body), signal });
  }

  private async putInParts(key: string, parts: readonly Uint8Array[], total: number, signal: AbortSignal | undefined): Promise<void> {
    const partBytes = Math.max(this.partBytes, Math.ceil(total / PARTS_MAX / MIB) * MIB);
    const count = Math.ceil(total / partBytes);
    const begun = await this.client.ask({
      method: 'POST',
      key,
      query: { uploads: '' },
      headers: this.checksum === 'crc32c' ? { 'x-amz-checksum-algorithm': 'CRC32C' } : {},
      signal,
    });
    const uploadId = elementOf(textOf(begun.body), 'UploadId');
    if (uploadId === undefined)
      throw new MultirailError('ERR_STORE', `POST ${this.client.place(key)}: the answer has no UploadId; this is not a server of S3`);
    try {
      const done: string[] = [];
      await severalAtOnce(count, async (i) => {
        const body = pieceOf(parts, i * partBytes, Math.min(total, (i + 1) * partBytes));
        const headers = this.checksumOf(body);
        const query = { partNumber: String(i + 1), uploadId };
        const answer = await this.client.ask({ method: 'PUT', key, query, headers, body, signal });
        const tag = answer.headers.get('etag');
        if (tag === null)
          throw new MultirailError('ERR_STORE', `PUT ${this.client.place(key)}: part ${i + 1} has no ETag; this is not a server of S3`);
        const crc = headers['x-amz-checksum-crc32c'];
        const sum = crc === undefined ? '' : `<ChecksumCRC32C>${crc}</ChecksumCRC32C>`;
        done[i] = `<Part><PartNumber>${i + 1}</PartNumber><ETag>${tag.replace(/[<>&]/g, '')}</ETag>${sum}</Part>`;
      });
      await this.completeUpload(key, uploadId, done, total, signal);
    } catch (error) {
      // Parts of an upload that never ends are kept, and paid for.
      await this.client.ask({ method: 'DELETE', key, query: { uploadId }, accept: [404] }).catch(() => undefined);
      throw error;
    }
  }

  private async completeUpload(
    key: string,
    uploadId: string,
    parts: readonly string[],
    total: number,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const body = `<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${parts.join('')}</CompleteMultipartUpload>`;
    const answer = await this.client.ask({
      method: 'POST',
      key,
      query: { uploadId },
      headers: { 'Content-Type': 'application/xml' },
      body,
      signal,
      accept: [404],
    });
    const xml = textOf(answer.body);
    // An upload that was completed by a request whose answer was lost does not exist any more.
    if (answer.status === 404) {
      const head = answer.repeats === 0 ? undefined : await this.client.ask({ method: 'HEAD', key, signal, accept: [404] });
      const isWhole =
        head?.headers.get('content-length') === String(total) && head.headers.get('etag')?.includes(`-${parts.length}`) === true;
      if (!isWhole)
        throw new MultirailError('ERR_STORE', `POST ${this.client.place(key)}: the server has forgotten the upload; write it again`);
      return;
    }
    // S3 may say 200 first, and that it failed afterwards.
    if (/<Error[\s>]/.test(xml)) {
      const code = elementOf(xml, 'Code') ?? 'an error';
      throw new MultirailError(
        'ERR_STORE',
        `POST ${this.client.place(key)}: the server could not put the parts together (${code.slice(0, 80)}); write it again`,
      );
    }
  }

  async get(key: string, into?: Uint8Array): Promise<Uint8Array> {
    const name = this.nameOf(key);
    const rangeOf = (from: number): string => `bytes=${from}-${from + this.partBytes - 1}`;
    const first = await this.client.ask({ method: 'GET', key: name, headers: { Range: rangeOf(0) }, accept: [404, 416] });
    if (first.status === 404) {
      if (elementOf(textOf(first.body), 'Code') === 'NoSuchBucket')
        throw new MultirailError('ERR_STORE', `GET ${this.client.place(name)}: there is no such bucket; make it first`);
      throw notThere(key, this.client.place(''));
    }
    // No range of an empty object can be had.
    if (first.status === 416) return roomFor(key, 0, into);
    const total =
      first.status === 206 ? Number(/\/(\d{1,15})$/.exec(first.headers.get('content-range') ?? '')?.[1] ?? Number.NaN) : first.body.length;
    if (!Number.isSafeInteger(total) || first.body.length !== Math.min(total, first.status === 206 ? this.partBytes : total))
      throw new MultirailError(
        'ERR_STORE',
        `GET ${this.client.place(name)}: the server gave another range than was asked for; this is not a server of S3`,
      );
    const room = roomFor(key, total, into);
    room.set(first.body);
    const tag = first.headers.get('etag');
    const rest = Math.ceil((total - first.body.length) / this.partBytes);
    await severalAtOnce(rest, async (i) => {
      const from = (i + 1) * this.partBytes;
      // An object that is replaced meanwhile is not read half and half.
      const headers = { Range: rangeOf(from), ...(tag === null ? {} : { 'If-Match': tag }) };
      const { status, body } = await this.client.ask({ method: 'GET', key: name, headers });
      if (status !== 206 || body.length !== Math.min(this.partBytes, total - from))
        throw new MultirailError(
          'ERR_STORE',
          `GET ${this.client.place(name)}: bytes from ${from} on are ${body.length} long; was it replaced? read it again`,
        );
      room.set(body, from);
    });
    return room;
  }

  async list(prefix: string): Promise<StoreEntry[]> {
    const found: StoreEntry[] = [];
    let token: string | undefined;
    do {
      const query: Record<string, string> = { 'list-type': '2', prefix: this.prefix + prefix, 'max-keys': String(KEYS_PER_ANSWER_MAX) };
      if (token !== undefined) query['continuation-token'] = token;
      const xml = textOf((await this.client.ask({ method: 'GET', key: '', query })).body);
      for (const [, one] of xml.matchAll(/<Contents>([\s\S]*?)<\/Contents>/g)) {
        const [name, size] = [elementOf(one, 'Key'), elementOf(one, 'Size')];
        if (name?.startsWith(this.prefix) && size !== undefined) found.push({ key: name.slice(this.prefix.length), bytes: Number(size) });
      }
      token = elementOf(xml, 'IsTruncated') === 'true' ? elementOf(xml, 'NextContinuationToken') : undefined;
    } while (token !== undefined);
    return found.sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  async remove(keys: readonly string[]): Promise<void> {
    for (const key of keys) await this.client.ask({ method: 'DELETE', key: this.nameOf(key), accept: [404] });
  }
}

/**
 * A store in a bucket of S3, or of a server that speaks its protocol. Requests are made again when the server is busy; an object appears
 * whole. Secrets come from the environment and go nowhere else; objects are not encrypted by this library.
 *
 * @param options Where the bucket is.
 * @throws ERR_ARG: an option is out of range. Missing secrets are ERR_CONFIG of the first call.
 */
export function s3Store(options: S3Options): Store {
  return new S3Store(options);
}
