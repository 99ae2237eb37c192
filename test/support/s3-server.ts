// A small server of S3's protocol for tests: it checks signatures (version 4, as AWS documents them) and checksums, and fails as it is told to.
// It is written from the protocol's documentation and knows nothing of the client.
import { createHash, createHmac } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { crc32cJs } from '../../src/util/crc32c.ts';

export const SECRET = 'secret+of/tests';

/** What happens to a request instead of an answer. */
export type Fault = number | 'reset' | 'silence' | { after: 'lost' };

interface Stored {
  bytes: Buffer;
  etag: string;
}

export class FakeS3 {
  readonly objects = new Map<string, Stored>();
  readonly uploads = new Map<string, { key: string; parts: Map<number, Buffer> }>();
  /** Method and path with query of every request, in order. */
  readonly requests: string[] = [];
  /** Asked for every request; what it answers happens. */
  fault: (request: string, count: number) => Fault | undefined = () => undefined;
  /** Of the listing: so few that it takes several answers. */
  keysPerAnswer = 1000;
  /** Ends an upload with 200 and an error in its body, as S3 may. */
  failsLate = false;
  private server: Server | undefined;
  private next = 0;

  async start(): Promise<string> {
    this.server = createServer((request, response) => void this.serve(request, response));
    await new Promise<void>((resolve) => (this.server as Server).listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.server?.closeAllConnections();
    await new Promise((resolve) => this.server?.close(resolve));
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer);
    } catch (error) {
      // The client has left in the middle of its body: its request was aborted.
      if ((error as NodeJS.ErrnoException).code === 'ECONNRESET') return;
      throw error;
    }
    const body = Buffer.concat(chunks);
    const url = new URL(request.url as string, 'http://host');
    const name = `${request.method} ${request.url}`;
    this.requests.push(name);
    const fault = this.fault(name, this.requests.length);
    if (fault === 'silence') return;
    if (fault === 'reset') return void request.socket.destroy();
    const refuse = (status: number, code: string): void => {
      response.writeHead(status, { 'content-type': 'application/xml' });
      response.end(
        request.method === 'HEAD' ? undefined : `<Error><Code>${code}</Code><Message>told by ${code} &amp; co</Message></Error>`,
      );
    };
    if (typeof fault === 'number') return refuse(fault, fault === 503 ? 'SlowDown' : fault === 403 ? 'AccessDenied' : 'Told');
    if (!this.isSigned(request, url)) return refuse(403, 'SignatureDoesNotMatch');
    if (!this.isSum(request, body)) return refuse(400, 'BadDigest');
    if (typeof fault === 'object') {
      // Done, but the answer never arrives.
      this.answer(
        request,
        url,
        body,
        () => undefined,
        () => undefined,
      );
      return void request.socket.destroy();
    }
    this.answer(
      request,
      url,
      body,
      (status, headers, content) => {
        response.writeHead(status, headers);
        response.end(content);
      },
      refuse,
    );
  }

  private answer(
    request: IncomingMessage,
    url: URL,
    body: Buffer,
    send: (status: number, headers: Record<string, string>, content?: Buffer | string) => void,
    refuse: (status: number, code: string) => void,
  ): void {
    const [, bucket, ...words] = decodeURIComponent(url.pathname).split('/');
    const key = words.join('/');
    const query = url.searchParams;
    if (bucket !== 'saves') return refuse(404, 'NoSuchBucket');
    const uploadId = query.get('uploadId');
    const upload = uploadId === null ? undefined : this.uploads.get(uploadId);
    if (uploadId !== null && upload === undefined) return refuse(404, 'NoSuchUpload');
    if (request.method === 'POST' && query.has('uploads')) {
      const id = `id-${this.next++}&<`;
      this.uploads.set(id, { key, parts: new Map() });
      return send(
        200,
        {},
        `<InitiateMultipartUploadResult><UploadId>${id.replace('&', '&amp;').replace('<', '&lt;')}</UploadId></InitiateMultipartUploadResult>`,
      );
    }
    if (request.method === 'PUT' && upload !== undefined) {
      upload.parts.set(Number(query.get('partNumber')), body);
      return send(200, { etag: `"${createHash('md5').update(body).digest('hex')}"` });
    }
    if (request.method === 'POST' && upload !== undefined) {
      const listed = [...body.toString().matchAll(/<PartNumber>(\d+)<\/PartNumber><ETag>"?(\w+)"?<\/ETag>/g)];
      const parts = listed.map(([, number]) => upload.parts.get(Number(number)));
      const isWhole =
        parts.length === upload.parts.size &&
        listed.every(([, , tag], i) => parts[i] !== undefined && createHash('md5').update(parts[i]).digest('hex') === tag) &&
        parts.slice(0, -1).every((part) => (part?.length ?? 0) >= 5 * 1024 * 1024);
      if (!isWhole) return refuse(400, 'InvalidPart');
      if (this.failsLate) return send(200, {}, '<?xml version="1.0"?> <Error><Code>InternalError</Code></Error>');
      this.objects.set(upload.key, { bytes: Buffer.concat(parts as Buffer[]), etag: `"many-${parts.length}"` });
      this.uploads.delete(uploadId as string);
      return send(200, {}, '<CompleteMultipartUploadResult/>');
    }
    if (request.method === 'DELETE' && upload !== undefined) {
      this.uploads.delete(uploadId as string);
      return send(204, {});
    }
    if (request.method === 'GET' && key === '') return send(200, {}, this.listing(query));
    if (request.method === 'PUT') {
      this.objects.set(key, { bytes: body, etag: `"${createHash('md5').update(body).digest('hex')}"` });
      return send(200, {});
    }
    const found = this.objects.get(key);
    if (request.method === 'DELETE') {
      this.objects.delete(key);
      return send(204, {});
    }
    if (found === undefined) return refuse(404, 'NoSuchKey');
    if (request.method === 'HEAD') return send(200, { 'content-length': String(found.bytes.length), etag: found.etag });
    if (request.headers['if-match'] !== undefined && request.headers['if-match'] !== found.etag) return refuse(412, 'PreconditionFailed');
    const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '');
    if (range === null) return send(200, { etag: found.etag }, found.bytes);
    const [from, to] = [Number(range[1]), Math.min(Number(range[2]) + 1, found.bytes.length)];
    if (from >= found.bytes.length) return refuse(416, 'InvalidRange');
    send(206, { etag: found.etag, 'content-range': `bytes ${from}-${to - 1}/${found.bytes.length}` }, found.bytes.subarray(from, to));
  }

  private listing(query: URLSearchParams): string {
    const keys = [...this.objects.keys()].filter((key) => key.startsWith(query.get('prefix') ?? '')).sort();
    const from = Number(query.get('continuation-token') ?? 0);
    const shown = keys.slice(from, from + this.keysPerAnswer);
    const contents = shown.map((key) => `<Contents><Key>${key}</Key><Size>${this.objects.get(key)?.bytes.length}</Size></Contents>`);
    const isMore = from + shown.length < keys.length;
    const more = isMore ? `<NextContinuationToken>${from + shown.length}</NextContinuationToken>` : '';
    return `<ListBucketResult><IsTruncated>${isMore}</IsTruncated>${more}${contents.join('')}</ListBucketResult>`;
  }

  /** The signature of version 4, from what came over the wire. */
  private isSigned(request: IncomingMessage, url: URL): boolean {
    const given = /^AWS4-HMAC-SHA256 Credential=(\w+)\/(\d{8})\/([\w-]+)\/s3\/aws4_request, SignedHeaders=([\w;-]+), Signature=(\w+)$/.exec(
      request.headers.authorization ?? '',
    );
    if (given === null || given[1] !== 'TESTKEY') return false;
    const [, , day, region, names, signature] = given;
    const encode = (text: string): string =>
      encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
    const query = [...url.searchParams].map(([name, value]) => `${encode(name)}=${encode(value)}`).sort();
    const canonical = [
      request.method,
      url.pathname
        .split('/')
        .map((word) => encode(decodeURIComponent(word)))
        .join('/'),
      query.join('&'),
      ...names.split(';').map((name) => `${name}:${String(request.headers[name]).trim()}`),
      '',
      names,
      request.headers['x-amz-content-sha256'],
    ].join('\n');
    const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();
    const scope = `${day}/${region}/s3/aws4_request`;
    const toSign = ['AWS4-HMAC-SHA256', request.headers['x-amz-date'], scope, createHash('sha256').update(canonical).digest('hex')].join(
      '\n',
    );
    const key = ['aws4_request', 's3', region, day].reduceRight((above: string | Buffer, text) => hmac(above, text), `AWS4${SECRET}`);
    return hmac(key, toSign).toString('hex') === signature;
  }

  private isSum({ method, headers, url }: IncomingMessage, body: Buffer): boolean {
    const md5 = headers['content-md5'];
    const crc = headers['x-amz-checksum-crc32c'];
    if (method === 'PUT' && md5 === undefined && crc === undefined) return false;
    const ours = Buffer.alloc(4);
    ours.writeUInt32BE(crc32cJs(body));
    if (url === undefined) return false;
    return (
      (md5 === undefined || md5 === createHash('md5').update(body).digest('base64')) &&
      (crc === undefined || crc === ours.toString('base64'))
    );
  }
}
