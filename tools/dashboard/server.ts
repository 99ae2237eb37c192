// The dashboard's server: one page, its live data over a WebSocket, /metrics, /events, and orders to break and repair rails. It listens on
// loopback, and everything about the job needs the token (access.ts). Slow readers are cut off or skipped, never waited for.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { MultirailError } from '../../src/errors.ts';
import { loopbackAddress } from '../../src/launch/oob/addresses.ts';
import { Strangers } from '../../src/launch/oob/strangers.ts';
import { bearerToken, isLoopbackHost, isOwnOrigin, tokenEquals } from './access.ts';
import type { RailControl } from './control.ts';
import { eventLine } from './events-file.ts';
import { LiveFeed } from './live-feed.ts';
import { CONTROL_ACTIONS, type ControlAction } from './messages.ts';
import { formatFor, metricsText, OPENMETRICS_TYPE, PROMETHEUS_TYPE } from './metrics.ts';
import type { JobModel } from './model.ts';
import { type PageFile, readPageFiles } from './page-files.ts';

/** Connections of whoever has shown the token, and of others. */
const CONNECTIONS_MAX = 128;
const STRANGERS_MAX = 64;
/** A connection that has asked for nothing is ended after this. */
const SILENT_MS_MAX = 3000;
const PAGES_MAX = 16;
const HEADER_BYTES_MAX = 16 * 1024;
const BODY_BYTES_MAX = 4 * 1024;
const REQUEST_TIMEOUT_MS = 10_000;
/** What waits for a reader of /events; one that is slower asks again, with ?since=. */
const STREAM_BYTES_MAX = 4 * 1024 * 1024;
/** How long connections get to take the last words: a page on a busy machine needs its time to answer. */
const CLOSE_WAIT_MS = 3000;

export interface DashboardServerOptions {
  model: JobModel;
  token: string;
  /** 0 = any free one. */
  port: number;
  control?: RailControl;
  /** Asks for a report of who waits for whom, which comes to `LiveFeed.waits`. */
  askWaits?: () => void;
  /** Folder with the built page; by default that of the package. */
  pageFolder?: string;
}

type Method = 'GET' | 'POST';

export class DashboardServer {
  readonly feed: LiveFeed;
  private readonly options: DashboardServerOptions;
  private readonly files: Map<string, PageFile>;
  private readonly http: Server;
  /** Loopback, as this host has it. */
  private readonly host = loopbackAddress();
  private readonly wss = new WebSocketServer({ noServer: true, maxPayload: BODY_BYTES_MAX, perMessageDeflate: false });
  private readonly streams = new Set<ServerResponse>();
  private readonly strangers = new Strangers<Socket>(STRANGERS_MAX, SILENT_MS_MAX);

  constructor(options: DashboardServerOptions) {
    this.options = options;
    this.files = readPageFiles(options.pageFolder);
    this.feed = new LiveFeed(options.model, options.control, options.askWaits !== undefined);
    const limits = {
      maxHeaderSize: HEADER_BYTES_MAX,
      requestTimeout: REQUEST_TIMEOUT_MS,
      headersTimeout: SILENT_MS_MAX,
      connectionsCheckingInterval: SILENT_MS_MAX / 2,
    };
    this.http = createServer(limits, (request, response) => this.serve(request, response));
    // Strangers do not fill it: for each one too many another one goes.
    this.http.maxConnections = CONNECTIONS_MAX + 2 * STRANGERS_MAX;
    this.http.on('connection', (socket: Socket) => this.strangers.add(socket));
    this.http.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => this.upgrade(request, socket, head));
    this.http.on('clientError', (_error, socket) => socket.destroy());
    // It never keeps the launcher alive: that lives as long as its job.
    this.http.unref();
  }

  async open(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.http.once('error', (error: NodeJS.ErrnoException) => {
        const why = error.code === 'EADDRINUSE' ? 'something listens there already; leave the port out to get a free one' : error.message;
        reject(new MultirailError('ERR_LAUNCH', `the dashboard cannot listen on port ${this.options.port}: ${why}`, { cause: error }));
      });
      this.http.listen(this.options.port, this.host, resolve);
    });
    this.feed.start();
  }

  get port(): number {
    return (this.http.address() as AddressInfo).port;
  }

  /** Address of the page, with the token. */
  get url(): string {
    const host = this.host.includes(':') ? `[${this.host}]` : this.host;
    return `http://${host}:${this.port}/?token=${this.options.token}`;
  }

  /** Everybody gets the last words; then every connection ends. */
  async close(): Promise<void> {
    this.feed.stop();
    for (const response of this.streams) response.end();
    for (const client of this.wss.clients) client.close(1000, 'the dashboard ends');
    const closed = new Promise<void>((resolve) => this.http.close(() => resolve()));
    this.http.closeIdleConnections();
    const force = setTimeout(() => {
      for (const client of this.wss.clients) client.terminate();
      this.http.closeAllConnections();
    }, CLOSE_WAIT_MS);
    await closed;
    clearTimeout(force);
  }

  // --- requests

  private serve(request: IncomingMessage, response: ServerResponse): void {
    this.strangers.spoke(request.socket);
    this.setHeaders(request, response);
    if (!isLoopbackHost(request.headers.host)) return refuse(response, 421, 'this dashboard answers to 127.0.0.1 and localhost only');
    const target = parseTarget(request.url);
    if (target === undefined) return refuse(response, 400, 'not an address of this dashboard');
    const { pathname, searchParams } = target;
    const file = this.files.get(pathname);
    // The page's code is that of the package and says nothing of the job: a stylesheet cannot bring a token along.
    const isPublic = file !== undefined && pathname !== '/';
    if (!isPublic && !this.knowsToken(request, searchParams)) {
      response.setHeader('www-authenticate', 'Bearer realm="multirail dashboard"');
      return refuse(response, 401, 'open the address that multirail has printed: it ends with ?token=…');
    }
    if (file !== undefined) {
      if (this.isMethod(request, response, 'GET')) this.send(request, response, file.type, file.body);
    } else if (pathname === '/metrics') {
      if (this.isMethod(request, response, 'GET')) this.sendMetrics(request, response);
    } else if (pathname === '/events') {
      if (this.isMethod(request, response, 'GET')) this.sendEvents(request, response, searchParams);
    } else if (pathname === '/control') {
      if (this.isMethod(request, response, 'POST')) void this.takeOrder(request, response);
    } else if (pathname === '/waits') {
      if (this.isMethod(request, response, 'POST')) this.askWaits(request, response);
    } else {
      refuse(response, 404, 'there are /, /metrics and /events');
    }
  }

  private setHeaders(request: IncomingMessage, response: ServerResponse): void {
    const { host } = request.headers;
    const live = isLoopbackHost(host) ? ` ws://${host}` : '';
    response.setHeader(
      'content-security-policy',
      `default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'${live}; ` +
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    response.setHeader('x-content-type-options', 'nosniff');
    // The token is part of the page's address.
    response.setHeader('referrer-policy', 'no-referrer');
    response.setHeader('cache-control', 'no-store');
    response.setHeader('cross-origin-opener-policy', 'same-origin');
    response.setHeader('cross-origin-resource-policy', 'same-origin');
  }

  private knowsToken(request: IncomingMessage, query: URLSearchParams): boolean {
    const given = bearerToken(request.headers.authorization) ?? query.get('token');
    const knows = given !== null && tokenEquals(given, this.options.token);
    if (knows) this.strangers.forget(request.socket);
    return knows;
  }

  private isMethod(request: IncomingMessage, response: ServerResponse, method: Method): boolean {
    const given = request.method === 'HEAD' ? 'GET' : request.method;
    if (given === method) return true;
    response.setHeader('allow', method === 'GET' ? 'GET, HEAD' : method);
    refuse(response, 405, `only ${method}`);
    return false;
  }

  private send(request: IncomingMessage, response: ServerResponse, type: string, body: Buffer | string): void {
    response.writeHead(200, { 'content-type': type, 'content-length': Buffer.byteLength(body) });
    response.end(request.method === 'HEAD' ? undefined : body);
  }

  private sendMetrics(request: IncomingMessage, response: ServerResponse): void {
    const format = formatFor(request.headers.accept);
    this.send(request, response, format === 'openmetrics' ? OPENMETRICS_TYPE : PROMETHEUS_TYPE, metricsText(this.options.model, format));
  }

  /** Events since a number, and then, unless follow=0, each as it happens. */
  private sendEvents(request: IncomingMessage, response: ServerResponse, query: URLSearchParams): void {
    const since = Number(query.get('since') ?? 0);
    if (!Number.isSafeInteger(since) || since < 0) return refuse(response, 400, 'since: expected the number of an event');
    const { log } = this.options.model;
    response.writeHead(200, { 'content-type': 'application/x-ndjson; charset=utf-8' });
    if (request.method === 'HEAD') return void response.end();
    response.write(log.since(since).map(eventLine).join(''));
    if (query.get('follow') === '0') return void response.end();
    this.streams.add(response);
    const stop = log.listen((event) => {
      if (response.writableLength > STREAM_BYTES_MAX) response.destroy();
      else response.write(eventLine(event));
    });
    response.on('close', () => {
      stop();
      this.streams.delete(response);
    });
  }

  /** An order needs the token in a header, which no form and no link of another page can send. */
  private isOrder(request: IncomingMessage, response: ServerResponse): boolean {
    const given = bearerToken(request.headers.authorization);
    if (given !== undefined && isOwnOrigin(request.headers.origin, request.headers.host)) return true;
    refuse(response, 403, 'orders need the token as Authorization: Bearer, and come from the page itself');
    return false;
  }

  private async takeOrder(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (!this.isOrder(request, response)) return;
    const { control, model } = this.options;
    if (control === undefined) return refuse(response, 409, 'nothing can be pulled in this job');
    try {
      const { id, action } = parseOrder(await readBody(request));
      const target = control.targets().find((one) => one.id === id);
      if (target === undefined || !target.actions.includes(action)) return refuse(response, 404, `there is no "${id}" to ${action} now`);
      await control.apply(id, action);
      model.event('ordered', `from the dashboard: ${action} ${target.label}`, { action, target: id });
      this.send(request, response, 'application/json', '{"done":true}');
    } catch (error) {
      refuse(response, error instanceof MultirailError && error.code === 'ERR_ARG' ? 400 : 500, (error as Error).message);
    }
  }

  private askWaits(request: IncomingMessage, response: ServerResponse): void {
    if (!this.isOrder(request, response)) return;
    if (this.options.askWaits === undefined) return refuse(response, 409, 'this launcher gives no reports of who waits for whom');
    this.options.askWaits();
    this.send(request, response, 'application/json', '{"done":true}');
  }

  // --- the page's live data

  private upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', () => socket.destroy());
    const { host, origin } = request.headers;
    const target = parseTarget(request.url);
    const turnAway = (status: string) => socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
    if (!isLoopbackHost(host)) turnAway('421 Misdirected Request');
    else if (target?.pathname !== '/live') turnAway('404 Not Found');
    else if (!this.knowsToken(request, target.searchParams)) turnAway('401 Unauthorized');
    else if (!isOwnOrigin(origin, host)) turnAway('403 Forbidden');
    else if (this.wss.clients.size >= PAGES_MAX) turnAway('503 Service Unavailable');
    else this.wss.handleUpgrade(request, socket, head, (ws) => this.welcome(ws));
  }

  private welcome(ws: WebSocket): void {
    // The page says nothing over it.
    ws.on('message', () => ws.close(1008));
    ws.on('error', () => ws.terminate());
    ws.on('close', () => this.feed.remove(ws));
    this.feed.add(ws);
  }
}

/** Path and query; undefined when it is neither. */
function parseTarget(target: string | undefined): URL | undefined {
  // Put together, not resolved: `//name/` would be another host, and much else no URL at all.
  const text = `http://page${target}`;
  return target?.startsWith('/') && URL.canParse(text) ? new URL(text) : undefined;
}

function refuse(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', connection: 'close' });
  response.end(`${text}\n`);
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) throw new MultirailError('ERR_ARG', `the order is longer than ${BODY_BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

const ACTIONS: readonly string[] = CONTROL_ACTIONS;

function parseOrder(text: string): { id: string; action: ControlAction } {
  let order: { id?: unknown; action?: unknown };
  try {
    order = JSON.parse(text) as typeof order;
  } catch {
    throw new MultirailError('ERR_ARG', 'the order is not JSON: expected {"id":"…","action":"pull"}');
  }
  const { id, action } = order ?? {};
  if (typeof id !== 'string' || typeof action !== 'string' || !ACTIONS.includes(action)) {
    throw new MultirailError('ERR_ARG', `the order lacks an id or a known action: expected an action out of ${ACTIONS.join(', ')}`);
  }
  return { id, action: action as ControlAction };
}
