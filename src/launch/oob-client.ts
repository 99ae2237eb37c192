// A rank's side of the out-of-band channel: finds the launcher on any of its addresses, proves the job's secret, and keeps one
// session over any number of connections. Its timers and sockets never keep a finished process alive; only an operation that
// somebody awaits does. May import: errors, launcher-watch, oob-messages, oob-session, ws, node:*.
import { randomBytes } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { connect, type Socket, type TcpNetConnectOpts } from 'node:net';
import { WebSocket } from 'ws';
import { MultirailError } from '../errors.ts';
import { LauncherWatch } from './launcher-watch.ts';
import {
  boundedText,
  decodeEnvelope,
  decodeJson,
  type Envelope,
  encodeEnvelope,
  encodeJson,
  HANDSHAKE_BYTES_MAX,
  type HelloBody,
  MESSAGE_BYTES_MAX,
  MODEX_BYTES_MAX,
  NAME_BYTES_MAX,
  NONCE_BYTES,
  OOB_VERSION,
  type OobBodies,
  proofEquals,
  proofOfLauncher,
  proofOfRank,
  RAIL_EVENT_BYTES_MAX,
} from './oob-messages.ts';
import type { AbortInfo, ExitInfo } from './oob-server.ts';
import { OobSession } from './oob-session.ts';

/** Ticks without a byte from the launcher, counted in turns of this process, after which another address is tried. */
const SILENT_TICKS_MAX = 5;
const REDIAL_MIN_MS = 50;
const REDIAL_MAX_MS = 1000;
/** The deadline of one attempt grows to connectTimeoutMs * 2 ** this. */
const CONNECT_DOUBLINGS_MAX = 4;

export interface OobClientOptions {
  urls: readonly string[];
  secret: Uint8Array;
  jobId: string;
  rank: number;
  size: number;
  incarnation: number;
  hostId: string;
  reconnectTimeoutMs: number;
  pingIntervalMs?: number;
  connectTimeoutMs?: number;
  /** What is known of the launcher's process; by default nothing. */
  watch?: LauncherWatch;
  log?: (text: string) => void;
}

interface OobClientEvents {
  modexUpdate: [rank: number, json: unknown];
  exit: [rank: number, info: ExitInfo];
  abort: [info: AbortInfo];
  /** The launcher is dead, or was away for too long; no further event follows. */
  launcherLost: [text: string];
  connected: [url: string];
  disconnected: [text: string];
}

/** States of the client. */
export const CLIENT = {
  IDLE: 0, // made, and not told to connect yet
  DIALLING: 1, // a connection attempt is under way, up to the launcher's proof
  CONNECTED: 2, // both sides are proven, messages flow
  WAITING: 3, // no connection; the next attempt follows after a pause
  LOST: 4, // the launcher is dead or was away for too long: everything pending has failed
  CLOSED: 5, // closed by this side, or refused at the first hello
} as const;
export type ClientState = (typeof CLIENT)[keyof typeof CLIENT];

const CLIENT_STATE_NAMES = Object.keys(CLIENT);
/** Allowed moves. */
const CLIENT_EDGES: Record<ClientState, readonly ClientState[]> = {
  [CLIENT.IDLE]: [CLIENT.DIALLING, CLIENT.CLOSED],
  [CLIENT.DIALLING]: [CLIENT.CONNECTED, CLIENT.WAITING, CLIENT.LOST, CLIENT.CLOSED],
  [CLIENT.CONNECTED]: [CLIENT.WAITING, CLIENT.LOST, CLIENT.CLOSED],
  [CLIENT.WAITING]: [CLIENT.DIALLING, CLIENT.LOST, CLIENT.CLOSED],
  [CLIENT.LOST]: [CLIENT.CLOSED],
  [CLIENT.CLOSED]: [],
};

interface Pending<T> {
  resolve: (value: T) => void;
  reject: (error: Error) => void;
}

export class OobClient extends EventEmitter<OobClientEvents> {
  private readonly options: Required<OobClientOptions>;
  private readonly session = new OobSession();
  private state: ClientState = CLIENT.IDLE;
  private socket: WebSocket | undefined;
  private urlIndex = 0;
  private attempts = 0;
  private everConnected = false;
  private refusals = new Map<string, string>();
  private lastFailure = '';
  private silentTicks = 0;
  private awayTicks = 0;
  private tickTimer: NodeJS.Timeout | undefined;
  private redialTimer: NodeJS.Timeout | undefined;
  private keepAlive: NodeJS.Timeout | undefined;
  private awaited = 0;
  private ackScheduled = false;
  private helloWaiter: Pending<void> | undefined;
  private modexWaiter: Pending<unknown[]> | undefined;
  private modexEntries: unknown[] = [];
  private readonly barrierWaiters = new Map<string, Pending<number[]>>();
  /** Every rank whose end is known, also from before this one joined or listened. */
  readonly exits = new Map<number, ExitInfo>();
  /** Set once the job is aborted. */
  aborted: AbortInfo | undefined;
  /** Why the launcher is lost, once it is. */
  lost: string | undefined;
  /** Rail events that found no room: they are news, not state, and are dropped rather than queued without bound. */
  railEventsDropped = 0;

  constructor(options: OobClientOptions) {
    super();
    this.options = {
      pingIntervalMs: 500,
      connectTimeoutMs: 1000,
      watch: new LauncherWatch(undefined),
      log: () => undefined,
      ...options,
    };
    if (options.urls.length === 0) throw new MultirailError('ERR_INIT', 'no address of the launcher is known', { rank: options.rank });
  }

  get isConnected(): boolean {
    return this.state === CLIENT.CONNECTED;
  }

  /** Connects and proves both sides. Rejects when every address refuses, or when nobody answers in time. */
  hello(): Promise<void> {
    if (this.state !== CLIENT.IDLE) return Promise.reject(this.error('ERR_OOB', 'hello() was called before'));
    this.tickTimer = setInterval(() => this.tick(), this.options.pingIntervalMs);
    this.tickTimer.unref();
    const promise = this.wait<void>((waiter) => {
      this.helloWaiter = waiter;
    });
    this.dial();
    return promise;
  }

  /** Collective: every rank gives its part and gets all parts, by rank. */
  modex(own: unknown): Promise<unknown[]> {
    if (this.modexWaiter !== undefined) return Promise.reject(this.error('ERR_OOB', 'a modex is under way'));
    return this.wait<unknown[]>((waiter) => {
      const json = encodeJson(own, MODEX_BYTES_MAX, 'modex entry');
      this.modexEntries = new Array(this.options.size).fill(undefined);
      this.modexWaiter = waiter;
      this.session.send('modexPut', { json });
    });
  }

  /** This rank's part of the modex changed: every other rank gets `modexUpdate`. */
  updateModex(own: unknown): void {
    this.mustBeOpen();
    this.session.send('modexUpdate', { rank: this.options.rank, json: encodeJson(own, MODEX_BYTES_MAX, 'modex entry') });
  }

  /**
   * Collective over all ranks that use this name; the same name may be used again afterwards. With `tolerant` on every rank dead
   * ranks count as arrived, and the promise gives their list; else it rejects with ERR_PROC_FAILED when one can never come.
   */
  barrier(name: string, options: { tolerant?: boolean } = {}): Promise<number[]> {
    if (this.barrierWaiters.has(name)) return Promise.reject(this.error('ERR_OOB', `barrier "${name}" is under way`));
    if (Buffer.byteLength(name) > NAME_BYTES_MAX) return Promise.reject(this.error('ERR_ARG', 'the name of the barrier is too long'));
    return this.wait<number[]>((waiter) => {
      this.session.send('barrierEnter', { name, tolerant: options.tolerant ?? false });
      this.barrierWaiters.set(name, waiter);
    });
  }

  /** Ends the whole job. Resolves when the launcher has the message. */
  abort(code: number, reason: string, stack = ''): Promise<void> {
    const body = { rank: this.options.rank, code: Math.trunc(code) | 0, reason: boundedText(reason), stack: boundedText(stack) };
    return this.untilTaken(() => this.session.send('abort', body));
  }

  /** Says that this rank is done and may exit. Resolves when the launcher has the message. */
  finalized(): Promise<void> {
    return this.untilTaken(() => this.session.send('finalized', {}));
  }

  /** Tells the launcher what happened to a rail. Never throws for lack of room: then it is counted and dropped. */
  railEvent(event: unknown): void {
    if (this.state === CLIENT.CLOSED || this.state === CLIENT.LOST) return;
    const json = encodeJson(event, RAIL_EVENT_BYTES_MAX, 'rail event');
    // Half of the queue stays free for what must not be lost.
    if (this.session.unacknowledged < 1024) this.session.send('railEvent', { json });
    else this.railEventsDropped++;
  }

  /** Waits a moment for what is not acknowledged, then closes. Never rejects. */
  async close(flushTimeoutMs = 1000): Promise<void> {
    if (this.state === CLIENT.CONNECTED || this.state === CLIENT.WAITING || this.state === CLIENT.DIALLING) {
      let timer: NodeJS.Timeout | undefined;
      const timeout = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, flushTimeoutMs);
      });
      await Promise.race([this.session.flushed().catch(() => undefined), timeout]);
      clearTimeout(timer);
    }
    this.end(CLIENT.CLOSED, this.error('ERR_OOB', 'the out-of-band channel was closed'));
  }

  // --- promises

  private error(
    code: 'ERR_OOB' | 'ERR_HANDSHAKE' | 'ERR_PROC_FAILED' | 'ERR_ABORT' | 'ERR_ARG',
    text: string,
    peer?: number,
  ): MultirailError {
    return new MultirailError(code, text, { rank: this.options.rank, ...(peer === undefined ? {} : { peer }) });
  }

  private mustBeOpen(): void {
    if (this.state === CLIENT.LOST) throw this.error('ERR_OOB', `the launcher is lost: ${this.lastFailure}`);
    if (this.state === CLIENT.CLOSED) throw this.error('ERR_OOB', 'the out-of-band channel is closed');
  }

  /** A promise that keeps the process alive while it is pending; `start` must register the waiter. */
  private wait<T>(start: (waiter: Pending<T>) => void): Promise<T> {
    const promise = new Promise<T>((resolve, reject) => {
      this.mustBeOpen();
      start({ resolve, reject });
    });
    return this.hold(promise);
  }

  private untilTaken(send: () => number): Promise<void> {
    const taken = new Promise<void>((resolve, reject) => {
      this.mustBeOpen();
      this.session.acknowledgedUpTo(send()).then(resolve, reject);
    });
    return this.hold(taken);
  }

  private hold<T>(promise: Promise<T>): Promise<T> {
    // Everything else here is unref'd; this one timer stands for "somebody waits".
    this.awaited++;
    this.keepAlive ??= setInterval(() => undefined, 2 ** 30);
    const release = () => {
      if (--this.awaited > 0) return;
      clearInterval(this.keepAlive);
      this.keepAlive = undefined;
    };
    promise.then(release, release);
    return promise;
  }

  private failPending(error: Error): void {
    const waiters = [this.helloWaiter, this.modexWaiter, ...this.barrierWaiters.values()];
    this.helloWaiter = undefined;
    this.modexWaiter = undefined;
    this.barrierWaiters.clear();
    for (const waiter of waiters) waiter?.reject(error);
  }

  // --- connections

  private moveTo(next: ClientState): void {
    if (!CLIENT_EDGES[this.state].includes(next)) {
      throw new MultirailError('ERR_INTERNAL', `oob client: ${CLIENT_STATE_NAMES[this.state]} to ${CLIENT_STATE_NAMES[next]} is no edge`);
    }
    this.state = next;
  }

  private end(state: typeof CLIENT.LOST | typeof CLIENT.CLOSED, error: Error): void {
    if (this.state === CLIENT.CLOSED || this.state === state) return;
    this.moveTo(state);
    clearInterval(this.tickTimer);
    clearTimeout(this.redialTimer);
    this.session.end(error);
    const socket = this.socket;
    this.socket = undefined;
    if (socket !== undefined) {
      socket.close(1000);
      setTimeout(() => socket.terminate(), 200).unref();
    }
    this.failPending(error);
  }

  private lose(text: string): void {
    if (this.state === CLIENT.LOST || this.state === CLIENT.CLOSED) return;
    this.lastFailure = text;
    this.lost = text;
    this.end(CLIENT.LOST, this.error('ERR_OOB', text));
    this.emit('launcherLost', text);
  }

  private dial(): void {
    this.moveTo(CLIENT.DIALLING);
    const url = this.options.urls[this.urlIndex % this.options.urls.length];
    let transport: Socket | undefined;
    // The listener may be an impostor: until it proves the secret it gets little room and little time.
    let strangersBytes = 0;
    const countStrangersBytes = (chunk: Buffer) => {
      strangersBytes += chunk.length;
      if (strangersBytes > HANDSHAKE_BYTES_MAX) fail('too many bytes before the handshake was done');
    };
    const ws = new WebSocket(url, {
      perMessageDeflate: false,
      maxPayload: MESSAGE_BYTES_MAX,
      followRedirects: false,
      // One message per turn: what was awaited runs on before the next message raises its event, and can listen for it.
      allowSynchronousEvents: false,
      createConnection: ((options: TcpNetConnectOpts) => {
        // Not the options as they are: their `path` is that of the URL, and net would take it for a socket file.
        transport = connect({ host: options.host ?? 'localhost', port: options.port });
        transport.unref();
        transport.setNoDelay(true);
        transport.on('data', countStrangersBytes);
        return transport;
      }) as never,
    });
    this.socket = ws;

    // Longer with every round in vain: a launcher that is merely slow must not be asked anew before it could answer.
    const round = Math.floor(this.attempts / this.options.urls.length);
    const timeoutMs = this.options.connectTimeoutMs * 2 ** Math.min(round, CONNECT_DOUBLINGS_MAX);
    const deadline = setTimeout(() => fail('no answer in time'), timeoutMs);
    deadline.unref();
    let nonce: Uint8Array | undefined;
    let hello: HelloBody | undefined;
    let ended = false;
    const fail = (text: string) => {
      if (ended) return;
      ended = true;
      clearTimeout(deadline);
      ws.terminate();
      this.disconnected(ws, `${url}: ${text}`);
    };
    ws.on('error', (error) => fail(error.message));
    ws.on('close', (code) => fail(`closed (${code})`));
    ws.on('message', (data, isBinary) => {
      if (ended || this.socket !== ws) return;
      try {
        if (!isBinary) throw this.error('ERR_HANDSHAKE', 'text message');
        const envelope = decodeEnvelope(data as Buffer);
        if (this.state === CLIENT.CONNECTED) {
          this.take(envelope);
        } else if (envelope.kind === 'challenge' && hello === undefined) {
          if (envelope.body.version !== OOB_VERSION) throw this.error('ERR_HANDSHAKE', `version ${envelope.body.version}`);
          nonce = envelope.body.nonce;
          hello = this.makeHello();
          const proof = proofOfRank(this.options.secret, nonce, hello);
          ws.send(encodeEnvelope(0, 0, 'hello', { ...hello, proof }));
        } else if (envelope.kind === 'welcome' && hello !== undefined && nonce !== undefined) {
          const expected = proofOfLauncher(this.options.secret, nonce, hello, envelope.body.received);
          if (!proofEquals(envelope.body.proof, expected)) throw this.error('ERR_HANDSHAKE', "it does not know the job's secret");
          clearTimeout(deadline);
          transport?.off('data', countStrangersBytes);
          this.connected(ws, url, envelope.body.received);
        } else if (envelope.kind === 'refused') {
          this.refusals.set(url, `${envelope.body.reason}: ${boundedText(envelope.body.text, 1024)}`);
          fail(`refused: ${envelope.body.reason}`);
        } else {
          throw this.error('ERR_HANDSHAKE', `"${envelope.kind}" in the handshake`);
        }
      } catch (error) {
        fail((error as Error).message);
      }
    });
  }

  private makeHello(): HelloBody {
    const { jobId, rank, size, incarnation, hostId } = this.options;
    const nonce = randomBytes(NONCE_BYTES);
    return { version: OOB_VERSION, jobId, rank, size, incarnation, pid: process.pid, hostId, nonce, received: this.session.received };
  }

  private connected(ws: WebSocket, url: string, receivedByPeer: number): void {
    this.session.attach((bytes) => ws.send(bytes, { binary: true }), receivedByPeer);
    this.moveTo(CLIENT.CONNECTED);
    this.everConnected = true;
    this.attempts = 0;
    this.refusals.clear();
    this.heard();
    this.helloWaiter?.resolve();
    this.helloWaiter = undefined;
    this.emit('connected', url);
  }

  private disconnected(ws: WebSocket, text: string): void {
    if (this.socket !== ws || (this.state !== CLIENT.CONNECTED && this.state !== CLIENT.DIALLING)) return;
    const wasConnected = this.state === CLIENT.CONNECTED;
    this.socket = undefined;
    this.session.detach();
    this.lastFailure = text;
    this.moveTo(CLIENT.WAITING);
    this.options.log(`out-of-band channel: ${text}`);
    // The address that failed is the last one to be tried again.
    this.urlIndex++;
    this.attempts++;
    if (!this.everConnected && this.refusals.size === this.options.urls.length) {
      const error = this.error('ERR_HANDSHAKE', `the launcher refused this rank: ${[...this.refusals.values()].join('; ')}`);
      this.end(CLIENT.CLOSED, error);
      return;
    }
    const round = Math.floor(this.attempts / this.options.urls.length);
    const pauseMs = wasConnected ? 0 : Math.min(REDIAL_MAX_MS, REDIAL_MIN_MS * 2 ** Math.min(round, 10)) * (0.5 + Math.random() / 2);
    this.redialTimer = setTimeout(() => this.dial(), pauseMs);
    this.redialTimer.unref();
    if (wasConnected) this.emit('disconnected', text);
  }

  private heard(): void {
    this.silentTicks = 0;
    this.awayTicks = 0;
  }

  /**
   * Runs every ping interval. Silence and absence are counted in ticks: a process that computed for a minute comes back to one
   * tick, not to a minute of silence, and reads what has arrived meanwhile.
   */
  private tick(): void {
    const knowledge = this.options.watch.knowledge();
    if (knowledge === 'dead') {
      this.lose('the launcher is dead');
      return;
    }
    if (this.state === CLIENT.CONNECTED) {
      this.session.sendUnnumbered('ping');
      if (++this.silentTicks > SILENT_TICKS_MAX) {
        this.socket?.terminate(); // 'close' follows, and with it the next address
      }
      return;
    }
    const awayMs = ++this.awayTicks * this.options.pingIntervalMs;
    if (awayMs <= this.options.reconnectTimeoutMs) return;
    // A launcher that is known to live will be found again, or will end this process; before the first contact it is of no use.
    if (knowledge === 'alive' && this.everConnected) return;
    this.lose(`the launcher was not reached for ${awayMs} ms (${this.lastFailure})`);
  }

  // --- messages

  private take(envelope: Envelope): void {
    this.heard();
    const verdict = this.session.intake(envelope);
    if (verdict === 'gap') throw this.error('ERR_OOB', `message ${envelope.sequence} after ${this.session.received}`);
    if (verdict === 'take') this.handle(envelope);
    if (this.session.owesAck && !this.ackScheduled) {
      this.ackScheduled = true;
      setImmediate(() => {
        this.ackScheduled = false;
        if (this.session.owesAck) this.session.sendUnnumbered('ack');
      }).unref();
    }
  }

  private handle(envelope: Envelope): void {
    switch (envelope.kind) {
      case 'ping':
      case 'ack':
        return;
      case 'modexPart':
        this.modexPart(envelope.body);
        return;
      case 'modexUpdate':
        this.emit('modexUpdate', envelope.body.rank, decodeJson(envelope.body.json, `modex entry of rank ${envelope.body.rank}`));
        return;
      case 'barrierDone': {
        const waiter = this.barrierWaiters.get(envelope.body.name);
        this.barrierWaiters.delete(envelope.body.name);
        waiter?.resolve(envelope.body.dead);
        return;
      }
      case 'collectiveFailed': {
        const { modex, name, rank, text } = envelope.body;
        const error = this.error('ERR_PROC_FAILED', text, rank);
        const waiter = modex ? this.modexWaiter : this.barrierWaiters.get(name);
        if (modex) this.modexWaiter = undefined;
        else this.barrierWaiters.delete(name);
        waiter?.reject(error);
        return;
      }
      case 'processExit': {
        const { rank, code, signal, finalized, lost } = envelope.body;
        const info = { code, signal, finalized, lost };
        this.exits.set(rank, info);
        this.emit('exit', rank, info);
        return;
      }
      case 'abort':
        this.aborted = envelope.body;
        this.failPending(
          this.error('ERR_ABORT', `rank ${envelope.body.rank} aborted the job: ${envelope.body.reason}`, envelope.body.rank),
        );
        this.emit('abort', envelope.body);
        return;
      default:
        throw this.error('ERR_OOB', `"${envelope.kind}" from the launcher`);
    }
  }

  private modexPart(part: OobBodies['modexPart']): void {
    for (const { rank, json } of part.entries) {
      if (rank < this.options.size) this.modexEntries[rank] = decodeJson(json, `modex entry of rank ${rank}`);
    }
    if (!part.last) return;
    const entries = this.modexEntries;
    this.modexEntries = [];
    this.modexWaiter?.resolve(entries);
    this.modexWaiter = undefined;
  }
}
