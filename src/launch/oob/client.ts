// A rank's side of the out-of-band channel: it finds the launcher on any of its addresses, proves the job's secret, and keeps one session
// over any number of connections. Its timers and sockets never keep a finished process alive; only an operation that somebody awaits does.
import { EventEmitter } from 'node:events';
import { MultirailError } from '../../errors.ts';
import { type BulletinAsk, bulletinAsk } from './bulletin.ts';
import type { OobClientEvents } from './client-events.ts';
import { type OobClientOptions, withDefaults } from './client-options.ts';
import { CLIENT, CLIENT_EDGES, CLIENT_STATE_NAMES, type ClientState } from './client-states.ts';
import { type DialEvents, type DialOptions, LIFELINE_IDLE_MS, OobDial } from './dial.ts';
import type { AbortInfo, ExitInfo } from './member.ts';
import {
  boundedText,
  decodeJson,
  type Envelope,
  encodeJson,
  MODEX_BYTES_MAX,
  NAME_BYTES_MAX,
  type OobBodies,
  RAIL_EVENT_BYTES_MAX,
  WAITS_BYTES_MAX,
} from './messages.ts';
import { ModexEntries } from './modex-table.ts';
import { OobSession } from './session.ts';
import { StuckWatch } from './stuck-watch.ts';
import { checkRailFault, TELEMETRY_WAITING_MAX, type Telemetry } from './telemetry.ts';

/** Ticks without a byte from the launcher, counted in turns of this process, after which another address is tried. */
const SILENT_TICKS_MAX = 5;
const REDIAL_MIN_MS = 50;
const REDIAL_MAX_MS = 1000;
/** The deadline of one attempt grows to connectTimeoutMs * 2 ** this. */
const CONNECT_DOUBLINGS_MAX = 4;

export type { OobClientOptions } from './client-options.ts';

interface Pending<T> {
  resolve: (value: T) => void;
  reject: (error: Error) => void;
}

export class OobClient extends EventEmitter<OobClientEvents> {
  private readonly options: ReturnType<typeof withDefaults>;
  private readonly session = new OobSession();
  private state: ClientState = CLIENT.IDLE;
  private connection: OobDial | undefined;
  private lifeline: OobDial | undefined;
  private url = '';
  private urlIndex = 0;
  private attempts = 0;
  private everConnected = false;
  private readonly refusals = new Map<string, string>();
  /** Why each address was in vain, before the first contact. */
  private readonly failures = new Map<string, string>();
  private lastFailure = '';
  private silentTicks = 0;
  private readonly stuck = new StuckWatch();
  private awayTicks = 0;
  private tickTimer: NodeJS.Timeout | undefined;
  private redialTimer: NodeJS.Timeout | undefined;
  private keepAlive: NodeJS.Timeout | undefined;
  private awaited = 0;
  private ackScheduled = false;
  private helloWaiter: Pending<void> | undefined;
  private modexWaiter: Pending<ModexEntries> | undefined;
  private modexPieces: Uint8Array[] = [];
  private readonly missingWaiters = new Map<string, Pending<number[]>>();
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
    this.options = withDefaults(options);
    if (options.urls.length === 0) throw new MultirailError('ERR_INIT', 'no address of the launcher is known', { rank: options.rank });
  }

  /** The job's name; learnt at the first contact where it was not known before. */
  get jobId(): string | undefined {
    return this.options.jobId;
  }

  /** Number of this process in the job. */
  get rank(): number {
    return this.options.rank;
  }

  /** Processes of the start. */
  get size(): number {
    return this.options.size;
  }

  /** This process has joined after the start. */
  get isLate(): boolean {
    return this.options.rank >= this.options.size;
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
  modex(own: unknown): Promise<ModexEntries> {
    if (this.modexWaiter !== undefined) return Promise.reject(this.error('ERR_OOB', 'a modex is under way'));
    return this.wait<ModexEntries>((waiter) => {
      const json = encodeJson(own, MODEX_BYTES_MAX, 'modex entry');
      this.modexPieces = [];
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

  /** Ranks that have not come to that barrier, as the server sees it now. */
  missingAt(name: string): Promise<number[]> {
    return this.wait<number[]>((waiter) => {
      this.session.send('barrierAsk', { name });
      this.missingWaiters.set(name, waiter);
    });
  }

  /** Ends the whole job. Resolves when the launcher has the message. */
  abort(code: number, reason: string, stack = ''): Promise<void> {
    const body = { rank: this.options.rank, code: Math.trunc(code) | 0, reason: boundedText(reason), stack: boundedText(stack) };
    return this.untilTaken(() => this.session.send('abort', body));
  }

  /**
   * Somebody else than the server knows that the process of that rank is gone. It is told as the server would tell it, who may say it again
   * later, or never, where it is lost.
   */
  processGone(rank: number): void {
    if (rank === this.options.rank || rank >= this.options.size) return;
    this.ended(rank, { code: undefined, signal: '', finalized: false, lost: false });
  }

  /** What asks for the bulletin, by which the server tells of ends in blocking calls, too; undefined while it is not there. */
  askBulletin(): BulletinAsk | undefined {
    const { secret, jobId, rank, incarnation } = this.options;
    const remote = this.state === CLIENT.CONNECTED ? this.connection?.remote : undefined;
    return remote === undefined || jobId === undefined ? undefined : bulletinAsk(secret, { jobId, rank, incarnation }, remote);
  }

  /** This process waits to be called in, or has a place, which is its rank in the communicator there. Resolves when the launcher knows. */
  standbyState(isWaiting: boolean, place: number): Promise<void> {
    return this.untilTaken(() => this.session.send('standbyState', { rank: this.options.rank, waiting: isWaiting, place }));
  }

  /** Passes a call to a process that stands by. It has been sent directly, too: where this way is closed, nothing is said. */
  callStandby(rank: number, call: Uint8Array): void {
    if (this.state !== CLIENT.CLOSED && this.state !== CLIENT.LOST) this.session.send('standbyCall', { rank, call });
  }

  /** Says that this rank is done and may exit. Resolves when the launcher has the message. */
  finalized(): Promise<void> {
    return this.untilTaken(() => this.session.send('finalized', {}));
  }

  /** No rail leads to that process: the server judges who has to go. */
  unreachable(rank: number, forMs: number, final: boolean): void {
    if (this.state === CLIENT.CLOSED || this.state === CLIENT.LOST) return;
    this.session.send('unreachable', { rank, forMs: Math.round(forMs), final });
  }

  /** Tells the launcher what happened to a rail. Never throws for lack of room: then it is counted and dropped. */
  railEvent(event: unknown): void {
    if (this.state === CLIENT.CLOSED || this.state === CLIENT.LOST) return;
    const json = encodeJson(event, RAIL_EVENT_BYTES_MAX, 'rail event');
    // Half of the queue stays free for what must not be lost.
    if (this.session.unacknowledged < 1024) this.session.send('railEvent', { json });
    else this.railEventsDropped++;
  }

  /** Asks the launcher to find out who waits for whom, and to print it. False when it cannot be asked. */
  askWaits(reason: string): boolean {
    if (this.state === CLIENT.CLOSED || this.state === CLIENT.LOST || this.session.unacknowledged >= 1024) return false;
    this.session.send('waitsAsk', { reason: boundedText(reason, 1024) });
    return true;
  }

  /**
   * What this rank waits for, unasked, from within a blocking call: while that lasts, no question is heard. It leaves at once if the
   * connection has room, without the event loop, and is not kept: the next one is newer.
   */
  pushWaits(waits: unknown): void {
    if (this.state !== CLIENT.CONNECTED) return;
    this.session.sendUnnumbered('waitsReport', { id: 0, json: encodeJson(waits, WAITS_BYTES_MAX, 'report of what is waited for') });
  }

  /** What this rank waits for, in answer to `waitsRequest`. */
  waitsReport(id: number, waits: unknown): void {
    if (this.state === CLIENT.CLOSED || this.state === CLIENT.LOST) return;
    this.session.send('waitsReport', { id, json: encodeJson(waits, WAITS_BYTES_MAX, 'report of what is waited for') });
  }

  /** Tells the launcher how this rank stands. False: not now, and the next report has to say what this one would have. */
  telemetry(report: Telemetry): boolean {
    if (this.state !== CLIENT.CONNECTED || this.session.unacknowledged >= TELEMETRY_WAITING_MAX) return false;
    this.session.send('telemetry', report);
    return true;
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
    const waiters = [this.helloWaiter, this.modexWaiter, ...this.barrierWaiters.values(), ...this.missingWaiters.values()];
    this.missingWaiters.clear();
    this.helloWaiter = undefined;
    this.modexWaiter = undefined;
    this.barrierWaiters.clear();
    for (const waiter of waiters) waiter?.reject(error);
  }

  // --- connections

  private moveTo(next: ClientState): void {
    if (!CLIENT_EDGES[this.state].includes(next)) {
      throw new MultirailError('ERR_INTERNAL', `oob client: no edge from ${CLIENT_STATE_NAMES[this.state]} to ${CLIENT_STATE_NAMES[next]}`);
    }
    this.state = next;
  }

  private end(state: typeof CLIENT.LOST | typeof CLIENT.CLOSED, error: Error): void {
    if (this.state === CLIENT.CLOSED || this.state === state) return;
    this.moveTo(state);
    clearInterval(this.tickTimer);
    clearTimeout(this.redialTimer);
    this.session.end(error);
    const { connection, lifeline } = this;
    this.connection = undefined;
    this.lifeline = undefined;
    if (connection !== undefined) {
      connection.ws.close(1000);
      setTimeout(() => connection.terminate(), 200).unref();
    }
    lifeline?.terminate();
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
    // Longer with every round in vain: a launcher that is merely slow must not be asked again before it could answer.
    const round = Math.floor(this.attempts / this.options.urls.length);
    const timeoutMs = this.options.connectTimeoutMs * 2 ** Math.min(round, CONNECT_DOUBLINGS_MAX);
    const connection = new OobDial(this.dialOptions(url, timeoutMs, false), {
      onWelcome: (welcome, jobId) => {
        if (this.connection === connection) this.connected(connection, url, welcome, jobId);
      },
      onMessage: (envelope) => {
        if (this.connection === connection) this.take(envelope);
      },
      onRefused: (reason, text) => this.refused(url, reason, text),
      onEnd: (text) => this.disconnected(connection, url, text),
    });
    this.connection = connection;
  }

  private refused(url: string, reason: string, text: string): void {
    this.refusals.set(url, `${reason}: ${text}`);
    // Taken for dead, or for done: that is final.
    if (!this.everConnected || reason !== 'RANK_ENDED') return;
    this.emit('declaredDead', text);
    this.lose(`this rank is not in the job any more: ${text}`);
  }

  private dialOptions(url: string, timeoutMs: number, lifeline: boolean): DialOptions {
    const { jobId, rank, size, incarnation, hostId, secret, join } = this.options;
    const received = lifeline ? 0 : this.session.received;
    return { url, secret, timeoutMs, claims: { jobId, rank, size, incarnation, hostId, received, lifeline, join } };
  }

  /** Beside the connection, to the same address; one that ends is dialled again at the next tick. */
  private dialLifeline(): void {
    const lifeline = new OobDial(this.dialOptions(this.url, this.options.connectTimeoutMs * 4, true), {
      onWelcome: () => {
        lifeline.keepAlive(LIFELINE_IDLE_MS);
        this.greeted();
      },
      onMessage: () => undefined,
      onRefused: () => undefined,
      onEnd: () => {
        if (this.lifeline === lifeline) this.lifeline = undefined;
        this.greeted();
      },
    });
    this.lifeline = lifeline;
  }

  private connected(
    connection: OobDial,
    url: string,
    { received, number, size }: Parameters<DialEvents['onWelcome']>[0],
    jobId: string,
  ): void {
    const { options } = this;
    options.jobId = jobId;
    this.url = url;
    // From here on it is known by its number.
    if (options.join !== '') Object.assign(options, { rank: number, size, join: '' });
    this.session.attach((bytes) => connection.send(bytes), received);
    this.moveTo(CLIENT.CONNECTED);
    this.everConnected = true;
    this.attempts = 0;
    this.refusals.clear();
    this.failures.clear();
    this.heard();
    // A rank that is told that it has joined may compute from then on: its lifeline stands before.
    if (!this.options.lifeline) this.greeted();
    else if (this.lifeline === undefined) this.dialLifeline();
    this.emit('connected', url);
  }

  private greeted(): void {
    this.helloWaiter?.resolve();
    this.helloWaiter = undefined;
  }

  private disconnected(connection: OobDial, url: string, reason: string): void {
    if (this.connection !== connection || (this.state !== CLIENT.CONNECTED && this.state !== CLIENT.DIALLING)) return;
    const wasConnected = this.state === CLIENT.CONNECTED;
    const text = `${url}: ${reason}`;
    this.connection = undefined;
    this.session.detach();
    this.lastFailure = text;
    if (!this.everConnected) this.failures.set(url, reason);
    this.moveTo(CLIENT.WAITING);
    this.options.log(`out-of-band channel: ${text}`);
    // The address that failed is the last one to be tried again.
    this.urlIndex++;
    this.attempts++;
    if (!this.everConnected && this.refusals.size === this.options.urls.length) {
      const refusal = `the launcher refused this rank: ${[...this.refusals.values()].join('; ')}`;
      return this.end(CLIENT.CLOSED, this.error('ERR_HANDSHAKE', refusal));
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
    if (knowledge === 'dead') return this.lose('the launcher is dead');
    if (this.state === CLIENT.CONNECTED) {
      this.session.sendUnnumbered('ping');
      if (++this.silentTicks > SILENT_TICKS_MAX || this.stuck.tick(this.session.oldestUnacknowledged))
        this.connection?.terminate(); // the next address is dialled
      else if (this.options.lifeline && this.lifeline === undefined) this.dialLifeline();
      return;
    }
    const awayMs = ++this.awayTicks * this.options.pingIntervalMs;
    if (awayMs <= (this.everConnected ? this.options.reconnectTimeoutMs : this.options.joinTimeoutMs)) return;
    // A launcher that is known to live will be found again, or will end this process; before the first contact it is of no use.
    if (knowledge === 'alive' && this.everConnected) return;
    const tried = [...this.failures].map(([url, text]) => `${url}: ${text}`).join('; ');
    this.lose(`the launcher was not reached for ${awayMs} ms (${tried || this.lastFailure})`);
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
        return this.modexPart(envelope.body);
      case 'modexUpdate':
        this.emit('modexUpdate', envelope.body.rank, decodeJson(envelope.body.json, `modex entry of rank ${envelope.body.rank}`));
        return;
      case 'barrierDone': {
        const waiter = this.barrierWaiters.get(envelope.body.name);
        this.barrierWaiters.delete(envelope.body.name);
        waiter?.resolve(envelope.body.dead);
        return;
      }
      case 'barrierMissing': {
        const waiter = this.missingWaiters.get(envelope.body.name);
        this.missingWaiters.delete(envelope.body.name);
        waiter?.resolve(envelope.body.ranks);
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
        const { rank, code, signal, finalized, lost, replaced } = envelope.body;
        this.ended(rank, { code, signal, finalized, lost, ...(replaced ? { replaced } : {}) });
        return;
      }
      case 'processJoined': {
        const { number, incarnation, json } = envelope.body;
        this.emit('processJoined', number, incarnation, decodeJson(json, `modex entry of process ${number}`));
        return;
      }
      case 'standbysEnd':
        this.emit('standbysEnd');
        return;
      case 'standbyState':
        this.emit('standbyState', envelope.body.rank, envelope.body.waiting);
        return;
      case 'standbyCall':
        this.emit('standbyCall', envelope.body.rank, envelope.body.call);
        return;
      case 'railFault':
        this.emit('railFault', checkRailFault(envelope.body));
        return;
      case 'abort':
        this.aborted = envelope.body;
        this.failPending(
          this.error('ERR_ABORT', `rank ${envelope.body.rank} aborted the job: ${envelope.body.reason}`, envelope.body.rank),
        );
        this.emit('abort', envelope.body);
        return;
      case 'waitsRequest':
        this.emit('waitsRequest', envelope.body.id);
        return;
      default:
        throw this.error('ERR_OOB', `"${envelope.kind}" from the launcher`);
    }
  }

  /** A rank has ended, by the word of the server or of somebody else: the first one counts. */
  ended(rank: number, info: ExitInfo): void {
    if (this.exits.has(rank)) return;
    this.exits.set(rank, info);
    this.emit('exit', rank, info);
  }

  private modexPart(part: OobBodies['modexPart']): void {
    this.modexPieces.push(part.packed);
    if (!part.last) return;
    const entries = new ModexEntries(this.modexPieces, part.count === 0 ? this.options.size : part.count);
    this.modexPieces = [];
    this.modexWaiter?.resolve(entries);
    this.modexWaiter = undefined;
  }
}
