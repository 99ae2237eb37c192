// Requests to a server that speaks S3's protocol: signed, with a limit of time, and again after failures that pass. The package aws4fetch
// signs; it is loaded with the first request.
import type { AwsClient } from 'aws4fetch';
import { MultirailError } from '../../errors.ts';
import { requireNotAborted } from './store.ts';

/** What every request has in common. */
export interface S3Target {
  readonly endpoint: string;
  readonly bucket: string;
  readonly region: string | undefined;
  readonly requestTimeoutMs: number;
  readonly attempts: number;
}

export interface S3Request {
  method: 'GET' | 'PUT' | 'POST' | 'DELETE' | 'HEAD';
  /** Key under the bucket; empty for the bucket itself. */
  key: string;
  query?: Readonly<Record<string, string>>;
  headers?: Readonly<Record<string, string>>;
  body?: Uint8Array | string;
  signal?: AbortSignal | undefined;
  /** Statuses that are an answer, besides those from 200 to 299. */
  accept?: readonly number[];
}

/** An answer with its body, which was read within the request's limit of time. */
export interface S3Answer {
  status: number;
  headers: Headers;
  body: Uint8Array;
  /** How many times it was asked before. */
  repeats: number;
}

const FIRST_DELAY_MS = 100;
const DELAY_MS_MAX = 5000;
const PASSING = new Set([408, 429, 500, 502, 503, 504]);
const TEXT_MAX = 300;

/** Text of a server for an error message: short, and printable. */
const plain = (text: string): string => text.replace(/[^\x20-\x7e]+/g, ' ').slice(0, TEXT_MAX);

/** The content of the first such element. The answers of S3 are flat enough for that. */
export function elementOf(xml: string, name: string): string | undefined {
  const found = new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1];
  return found === undefined ? undefined : unescaped(found);
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };
const unescaped = (text: string): string =>
  text.replace(/&(?:#(\d{1,6})|#x([\da-f]{1,5})|(\w+));/gi, (all, decimal, hex, name) => {
    if (name !== undefined) return ENTITIES[name] ?? all;
    return String.fromCodePoint(decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal));
  });

export const textOf = (body: Uint8Array): string => new TextDecoder().decode(body);

/** Whoever asks in vain should know what to do. */
function adviceFor(status: number, code: string): string {
  if (code === 'NoSuchBucket') return '; make the bucket first';
  if (code === 'RequestTimeTooSkewed') return '; the clock of this host is wrong';
  if (status === 401 || status === 403) return '; check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and what they are allowed to do';
  if (status === 301 || status === 307) return '; check endpoint and region';
  return '';
}

/** Waits, unless the signal ends it. */
function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener('abort', done);
  });
}

export class S3Client {
  private readonly target: S3Target;
  private client: Promise<AwsClient> | undefined;

  constructor(target: S3Target) {
    this.target = target;
  }

  /** Where a key is, for people. */
  place(key: string): string {
    return `${this.target.endpoint}/${this.target.bucket}${key === '' ? '' : `/${key}`}`;
  }

  private async connect(): Promise<AwsClient> {
    const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION, AWS_DEFAULT_REGION } = process.env;
    for (const [name, value] of Object.entries({ AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY })) {
      if (value === undefined || value === '')
        throw new MultirailError(
          'ERR_CONFIG',
          `${name} is not in the environment: an S3 store needs it, and takes secrets from nowhere else`,
        );
    }
    const { AwsClient } = await import('aws4fetch');
    return new AwsClient({
      accessKeyId: AWS_ACCESS_KEY_ID as string,
      secretAccessKey: AWS_SECRET_ACCESS_KEY as string,
      ...(AWS_SESSION_TOKEN === undefined ? {} : { sessionToken: AWS_SESSION_TOKEN }),
      service: 's3',
      region: this.target.region ?? AWS_REGION ?? AWS_DEFAULT_REGION ?? 'us-east-1',
    });
  }

  /** One request, until it has an answer that is not of those that pass. */
  async ask(request: S3Request): Promise<S3Answer> {
    const { method, key, signal } = request;
    const what = `${method} ${this.place(key)}`;
    this.client ??= this.connect();
    const client = await this.client;
    let last: unknown;
    for (let repeats = 0; repeats < this.target.attempts; repeats++) {
      if (repeats > 0) await pause(Math.min(DELAY_MS_MAX, FIRST_DELAY_MS * 2 ** (repeats - 1)) * (0.5 + Math.random()), signal);
      requireNotAborted(signal, what);
      try {
        const answer = await this.askOnce(client, request);
        if (answer.status < 300 || request.accept?.includes(answer.status) === true) return { ...answer, repeats };
        const xml = textOf(answer.body);
        const code = elementOf(xml, 'Code') ?? '';
        const message = elementOf(xml, 'Message') ?? '';
        last = new MultirailError(
          'ERR_STORE',
          `${what}: the server answers ${answer.status}${plain(code === '' ? '' : ` (${code}${message === '' ? '' : `: ${message}`})`)}${adviceFor(answer.status, code)}`,
        );
        if (!PASSING.has(answer.status)) throw last;
      } catch (error) {
        if (error instanceof MultirailError) throw error;
        requireNotAborted(signal, what);
        const cause = (error as { cause?: unknown }).cause ?? error;
        const isLate = (error as Error).name === 'TimeoutError';
        const text = isLate
          ? `no answer within ${this.target.requestTimeoutMs} ms`
          : cause instanceof Error
            ? cause.message || cause.name
            : String(cause);
        last = new MultirailError('ERR_STORE', `${what}: ${plain(text)}; check endpoint and network`, { cause });
      }
    }
    throw new MultirailError('ERR_STORE', `${(last as Error).message.replace(/^ERR_STORE: /, '')} (asked ${this.target.attempts} times)`, {
      cause: last,
    });
  }

  private async askOnce(
    client: AwsClient,
    { method, key, query = {}, headers = {}, body, signal }: S3Request,
  ): Promise<Omit<S3Answer, 'repeats'>> {
    const { endpoint, bucket, requestTimeoutMs } = this.target;
    const url = new URL(`${endpoint}/${bucket}${key === '' ? '' : `/${key}`}`);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    const limit = AbortSignal.timeout(requestTimeoutMs);
    const signed = await client.sign(url.href, {
      method,
      headers,
      ...(body === undefined ? {} : { body }),
      signal: signal === undefined ? limit : AbortSignal.any([signal, limit]),
    });
    const response = await fetch(signed, { redirect: 'manual' });
    return { status: response.status, headers: response.headers, body: new Uint8Array(await response.arrayBuffer()) };
  }
}
