// The launcher's side of the out-of-band channel: it listens, admits ranks that prove the job's secret, keeps one session per rank over any
// number of connections, and passes on aborts and exits. Where nobody waits for the processes, the kernels say which are gone: each rank
// keeps a lifeline, a connection that carries nothing and ends with its process.
import { randomBytes } from 'node:crypto';
import { EventEmitter } from 'node:events';
import type { Server as HttpServer, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { MultirailError } from '../../errors.ts';
import { JoinSeries } from '../../ulfm/join-series.ts';
import { noSubprotocol, refusalOfVersion } from '../../util/websocket.ts';
import { judgeHello, type Verdict } from './admission.ts';
import { Arbiter } from './arbiter.ts';
import { BulletinBoard } from './bulletin.ts';
import { checkSize, OobCollectives } from './collectives.ts';
import { LIFELINE_IDLE_MS } from './dial.ts';
import { decodeEnvelope, encodeEnvelope } from './envelope.ts';
import { exitBody, Joins } from './joins.ts';
import { listenAt } from './listener.ts';
import { type AbortInfo, CONNECTION, type ConnectionState, type ExitInfo, type Member, type RankInfo } from './member.ts';
import {
  boundedText,
  CALL_BYTES_MAX,
  decodeJson,
  type Envelope,
  HANDSHAKE_BYTES_MAX,
  MESSAGE_BYTES_MAX,
  NONCE_BYTES,
  OOB_PATH,
  OOB_VERSION,
  type OobBodies,
  type OobKind,
  proofOfLauncher,
  RAIL_EVENT_BYTES_MAX,
  WAITS_BYTES_MAX,
} from './messages.ts';
import { RepeatedLines } from './repeated-lines.ts';
import { type OobServerEvents, type OobServerOptions, withDefaults } from './server-options.ts';
import { OobSession } from './session.ts';
import { Strangers } from './strangers.ts';
import { checkTelemetry, type RailFault, type Telemetry } from './telemetry.ts';

/** A connection whose write queue is longer than this gets no more pings: it carries nothing anyway. */
const PING_BACKLOG_BYTES_MAX = 64 * 1024;
/** Errors of a lifeline that say nothing of the process at its other end. */
const NETWORK_ERRORS = new Set(['ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'ENETDOWN', 'EHOSTDOWN', 'ENONET']);
/** Connections that have not proven themselves at the same time, beside one of each rank; for each further one another one goes. */
const STRANGERS_MAX = 256;
/** Equal lines about strangers are counted for this long. */
const LOG_WINDOW_MS = 10_000;

export type { OobServerOptions } from './server-options.ts';

export class OobServer extends EventEmitter<OobServerEvents> {
  /** ws:// addresses for the ranks; valid after open(). */
  readonly urls: string[] = [];
  private readonly options: Required<OobServerOptions>;
  private readonly members: Member[] = [];
  private readonly http: HttpServer[] = [];
  private readonly wss = new WebSocketServer({
    noServer: true,
    maxPayload: MESSAGE_BYTES_MAX,
    perMessageDeflate: false,
    clientTracking: false,
    handleProtocols: noSubprotocol,
  });
  private readonly sockets = new Set<Duplex>();
  private readonly collectives: OobCollectives;
  private readonly series: JoinSeries;
  private readonly joins: Joins;
  private readonly strangers: Strangers<Socket>;
  private readonly lines: RepeatedLines;
  private readonly arbiter: Arbiter;
  private readonly bulletin: BulletinBoard;
  private pingTimer: NodeJS.Timeout | undefined;
  private closed = false;

  constructor(options: OobServerOptions) {
    super();
    this.options = withDefaults(options);
    this.strangers = new Strangers(this.strangersMax, this.options.handshakeTimeoutMs);
    this.lines = new RepeatedLines(this.options.log, LOG_WINDOW_MS);
    this.arbiter = new Arbiter(this.members, this.options, this.options.takesJoins);
    this.bulletin = new BulletinBoard(
      this.options,
      this.members,
      (number) => this.series.isKnown(number),
      (socket) => this.strangers.forget(socket),
    );
    const { size, knowsProcesses } = options;
    for (let rank = 0; rank < size; rank++) {
      const standsBy = rank >= size - this.options.spares;
      this.addMember(rank, { index: rank, isOwned: knowsProcesses, standsBy, isReady: standsBy });
    }
    const { members } = this;
    this.series = new JoinSeries(size);
    this.joins = new Joins({
      members,
      series: this.series,
      send: (member, kind, body) => this.send(member, kind, body),
      declareExit: (member, exit) => this.declareExit(member, exit),
      onAdded: (number) => this.emit('added', number),
      onReady: (member) => {
        if (!this.closed) this.takeStandbyState(member, { rank: member.rank, waiting: true, place: 0 });
      },
    });
    this.collectives = new OobCollectives(size, {
      get count() {
        return members.length;
      },
      hasEnded: (rank) => members[rank].exit !== undefined,
      standsBy: (rank) => members[rank].standsBy,
      send: (rank, kind, body) => void this.send(members[rank], kind, body),
      onMet: () => this.emit('met'),
      beforeEntries: (rank) => this.joins.tellHistory(members[rank]),
      afterEntries: (rank, json) => this.joins.announce(members[rank], json),
    });
  }

  /** All ranks may come at once. */
  private get strangersMax(): number {
    return STRANGERS_MAX + this.options.size;
  }

  private addMember(rank: number, given: Pick<Member, 'isOwned' | 'standsBy' | 'isReady'> & { index: number | undefined }): Member {
    const member: Member = {
      ...given,
      rank,
      index: given.index ?? rank,
      session: new OobSession(),
      info: undefined,
      socket: undefined,
      lifeline: undefined,
      lifelineEndedMs: undefined,
      finalized: false,
      exit: undefined,
      lastContactMs: performance.now(),
      ackScheduled: false,
      drainWaiters: [],
    };
    this.members.push(member);
    return member;
  }

  async open(): Promise<void> {
    for (const text of this.options.listen) {
      const { server, url } = await listenAt(text, this.options.handshakeTimeoutMs, {
        // Those that have proven themselves are as many as there are ranks, twice; the others are bounded here.
        onConnection: (socket) => {
          const { ousted } = this.strangers;
          this.strangers.add(socket);
          if (this.strangers.ousted > ousted) {
            const many = `out-of-band channel: more than ${this.strangersMax} connections on ${text} without a handshake`;
            this.log(`${many}; one is ended for each new one`);
          }
          this.sockets.add(socket);
          socket.on('close', () => this.sockets.delete(socket));
        },
        onUpgrade: (request, socket, head) => this.upgrade(request, socket, head),
        onRequest: (request, response) => this.bulletin.take(request, response),
        log: (line) => this.log(line),
      });
      this.http.push(server);
      this.urls.push(url);
    }
    this.pingTimer = setInterval(() => this.tick(), this.options.pingIntervalMs);
    this.pingTimer.unref();
  }

  /** Processes that have a number: those of the start, and those that have joined later. */
  get size(): number {
    return this.members.length;
  }

  /** Keeps a number for a process that the owner is about to start, and that will join as one that stands by. ERR_LAUNCH: all numbers are given. */
  reserve(): number {
    return this.addMember(this.series.take(), { index: undefined, isOwned: true, standsBy: true, isReady: false }).rank;
  }

  /** The owner will start no process any more in place of those that die. */
  endStandbys(): void {
    this.joins.endStandbys();
  }

  get jobId(): string {
    return this.options.jobId;
  }

  /** What is known of a rank's process; undefined until it joined. */
  info(rank: number): RankInfo | undefined {
    return this.members[rank].info;
  }

  isFinalized(rank: number): boolean {
    return this.members[rank].finalized;
  }

  /** The owner saw the process end: everybody else is told, and collectives that wait for it fail. */
  processExited(rank: number, exit: Omit<ExitInfo, 'finalized' | 'lost'>): void {
    this.declareExit(this.members[rank], { ...exit, finalized: this.members[rank].finalized, lost: false });
  }

  /** It waits to be called in. */
  standsBy(rank: number): boolean {
    return this.members[rank].standsBy;
  }

  hasEnded(rank: number): boolean {
    return this.members[rank].exit !== undefined;
  }

  /** Every rank is over. */
  get isOver(): boolean {
    return this.members.every((member) => member.exit !== undefined);
  }

  /** Ranks that have joined and are not over. */
  living(): number[] {
    return this.members.filter((member) => member.info !== undefined && member.exit === undefined).map(({ rank }) => rank);
  }

  /** Asks a rank what it waits for; `waitsReport` brings the answer. */
  requestWaits(rank: number, id: number): void {
    this.send(this.members[rank], 'waitsRequest', { id });
  }

  /** Asks a rank to break or mend one of its rails. */
  railFault(rank: number, fault: RailFault): void {
    this.send(this.members[rank], 'railFault', fault);
  }

  /** Tells every rank that the job is over. */
  broadcastAbort(info: AbortInfo): void {
    const body = { ...info, reason: boundedText(info.reason), stack: boundedText(info.stack) };
    for (const member of this.members) if (member.rank !== info.rank) this.send(member, 'abort', body);
  }

  /**
   * Resolves when the rank's connection has ended, or after the timeout: a process that has ended may have left messages in
   * the socket, and these say why it ended.
   */
  drained(rank: number, timeoutMs: number): Promise<void> {
    const member = this.members[rank];
    if (member.socket === undefined) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, timeoutMs);
      member.drainWaiters.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  /** Resolves when every process is over, or after the timeout. */
  allGone(timeoutMs: number): Promise<void> {
    if (this.isOver) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, timeoutMs);
      this.on('ended', () => {
        if (!this.isOver) return;
        clearTimeout(timer);
        resolve();
      });
    });
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    this.lines.flush();
    clearInterval(this.pingTimer);
    this.bulletin.close();
    for (const member of this.members) {
      member.session.end(new MultirailError('ERR_OOB', 'the out-of-band channel was closed'));
      member.socket?.close(1001);
      member.lifeline?.terminate();
    }
    const servers = this.http.map((server) => new Promise<void>((resolve) => server.close(() => resolve())));
    for (const socket of this.sockets) {
      if ('destroySoon' in socket) (socket as Duplex & { destroySoon(): void }).destroySoon();
      else socket.destroy();
    }
    // A peer that is stopped never answers the close: it is not waited for.
    const force = setTimeout(() => {
      for (const socket of this.sockets) socket.destroy();
    }, 200);
    await Promise.all(servers);
    clearTimeout(force);
  }

  // --- connections

  private upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', () => socket.destroy());
    const from = `${request.socket.remoteAddress}:${request.socket.remotePort}`;
    if (this.closed || request.url !== OOB_PATH) {
      this.logFrom(from, `refused: ${this.closed ? 'closing' : 'wrong path'}`);
      socket.destroy();
      return;
    }
    this.strangers.spoke(request.socket);
    const refusal = refusalOfVersion(request.headers['sec-websocket-version']);
    if (refusal !== undefined) {
      this.log(`out-of-band channel: connection from ${from} refused: it wants another version of WebSocket than 13`);
      socket.end(refusal, () => socket.destroy());
      return;
    }
    this.wss.handleUpgrade(request, socket, head, (ws) => this.accept(ws, socket, from, head.length));
  }

  private accept(ws: WebSocket, socket: Duplex, from: string, headBytes: number): void {
    let state: ConnectionState = CONNECTION.CHALLENGED;
    let member: Member | undefined;
    const nonce = randomBytes(NONCE_BYTES);

    const moveTo = (next: ConnectionState) => {
      if (state === CONNECTION.CHALLENGED && next !== CONNECTION.CHALLENGED) {
        // One that is refused counts until it is gone.
        if (next === CONNECTION.BOUND) this.strangers.forget(socket as Socket);
        clearTimeout(deadline);
        socket.off('data', countStrangersBytes);
      }
      state = next;
    };
    const refuse = (reason: string, text: string) => {
      if (state === CONNECTION.CLOSED) return;
      moveTo(CONNECTION.CLOSED);
      this.logFrom(from, `refused: ${reason}: ${text}`);
      ws.send(encodeEnvelope(0, 0, 'refused', { reason, text }));
      ws.close(4001, reason);
      // Whoever does not answer the close is cut off all the same.
      setTimeout(() => ws.terminate(), 500).unref();
    };
    const drop = (text: string) => {
      if (state === CONNECTION.CLOSED) return;
      moveTo(CONNECTION.CLOSED);
      if (member === undefined) this.logFrom(from, `dropped: ${text}`);
      else this.log(`out-of-band channel: connection from ${from} (rank ${member.rank}) dropped: ${text}`);
      ws.terminate();
    };
    let strangersBytes = headBytes;
    const countStrangersBytes = (chunk: Buffer) => {
      strangersBytes += chunk.length;
      if (strangersBytes > HANDSHAKE_BYTES_MAX) drop('too many bytes before the handshake was done');
    };
    // What has come until then is looked at first: this process may have had no processor.
    const late = () => setImmediate(() => state === CONNECTION.CHALLENGED && drop('the handshake was not done in time'));
    const deadline = setTimeout(late, this.options.handshakeTimeoutMs);
    deadline.unref();
    socket.on('data', countStrangersBytes);

    ws.on('error', (error) => drop(error.message));
    let networkFailed = false;
    socket.on('error', (error: NodeJS.ErrnoException) => {
      networkFailed = NETWORK_ERRORS.has(error.code ?? '');
    });
    ws.on('close', () => {
      moveTo(CONNECTION.CLOSED);
      if (member !== undefined && member.lifeline === ws) this.lifelineEnded(member, networkFailed);
      if (member !== undefined && member.socket === ws) this.detach(member);
    });
    ws.on('message', (data, isBinary) => {
      if (state === CONNECTION.CLOSED) return;
      try {
        if (!isBinary) throw new MultirailError('ERR_PROTOCOL', 'a text message came; expected binary ones');
        const envelope = decodeEnvelope(data as Buffer);
        if (state === CONNECTION.BOUND) {
          if (member !== undefined && member.socket === ws) this.take(member, envelope);
          return;
        }
        if (envelope.kind !== 'hello')
          throw new MultirailError('ERR_PROTOCOL', `"${envelope.kind}" came before the handshake; expected hello`);
        const hello = envelope.body;
        const verdict = judgeHello(hello, nonce, this.options, this.members);
        if ('refusal' in verdict) {
          refuse(...verdict.refusal);
          return;
        }
        member = this.memberFor(verdict);
        moveTo(CONNECTION.BOUND);
        if (hello.lifeline) this.bindLifeline(member, ws, socket, hello, nonce);
        else this.bind(member, ws, hello, nonce);
      } catch (error) {
        drop((error as Error).message);
      }
    });
    ws.send(encodeEnvelope(0, 0, 'challenge', { version: OOB_VERSION, nonce, jobId: this.options.jobId }));
  }

  private memberFor(verdict: Exclude<Verdict, { refusal: unknown }>): Member {
    if ('rank' in verdict) return this.members[verdict.rank];
    const { index, replaces } = verdict;
    if (replaces !== undefined) this.joins.replace(this.members[replaces]);
    return this.addMember(this.series.take(), { index, isOwned: false, standsBy: true, isReady: false });
  }

  private bind(member: Member, ws: WebSocket, hello: OobBodies['hello'], nonce: Uint8Array): void {
    const first = member.info === undefined;
    const old = member.socket;
    // From here on nothing that the old connection still holds is taken: the rank sends it again.
    member.socket = ws;
    member.session.detach();
    old?.terminate();
    member.info = { incarnation: hello.incarnation, pid: hello.pid, hostId: hello.hostId };
    member.lastContactMs = performance.now();
    this.welcome(ws, hello, nonce, member);
    member.session.attach((bytes) => ws.send(bytes, { binary: true }), hello.received);
    if (first) this.emit('joined', member.rank, member.info);
  }

  private welcome(ws: WebSocket, hello: OobBodies['hello'], nonce: Uint8Array, { rank, session }: Member): void {
    const given = hello.join === '' ? { number: 0, size: 0 } : { number: rank, size: this.options.size };
    const body = { received: hello.lifeline ? 0 : session.received, ...given };
    ws.send(encodeEnvelope(0, 0, 'welcome', { ...body, proof: proofOfLauncher(this.options.secret, nonce, hello, body) }));
  }

  private bindLifeline(member: Member, ws: WebSocket, socket: Duplex, hello: OobBodies['hello'], nonce: Uint8Array): void {
    const old = member.lifeline;
    member.lifeline = ws;
    member.lifelineEndedMs = undefined;
    old?.terminate();
    this.welcome(ws, hello, nonce, member);
    (socket as Socket).setKeepAlive(true, LIFELINE_IDLE_MS);
  }

  private lifelineEnded(member: Member, networkFailed: boolean): void {
    member.lifeline = undefined;
    if (this.closed || member.isOwned || member.exit !== undefined) return;
    if (!networkFailed) member.lifelineEndedMs = performance.now();
    this.judgeLeft(member);
  }

  /** A rank that said that it is done, and has closed everything, has left. */
  private judgeLeft(member: Member): void {
    if (this.closed || member.isOwned || !member.finalized) return;
    if (member.socket === undefined && member.lifeline === undefined) {
      this.declareExit(member, { code: undefined, signal: '', finalized: true, lost: false });
    }
  }

  private detach(member: Member): void {
    member.socket = undefined;
    member.session.detach();
    for (const waiter of member.drainWaiters.splice(0)) waiter();
    this.judgeLeft(member);
  }

  /** Pings, and judges silence where nobody knows the processes. */
  private tick(): void {
    const now = performance.now();
    this.lines.tick(now);
    for (const member of this.members) {
      if (member.socket !== undefined && member.socket.bufferedAmount < PING_BACKLOG_BYTES_MAX) member.session.sendUnnumbered('ping');
    }
    for (const { number, text } of this.arbiter.judge(now)) this.lose(this.members[number], text);
  }

  // --- messages

  private take(member: Member, envelope: Envelope): void {
    member.lastContactMs = performance.now();
    const verdict = member.session.intake(envelope);
    if (verdict === 'gap') throw new MultirailError('ERR_PROTOCOL', `message ${envelope.sequence} came after ${member.session.received}`);
    if (verdict === 'take') this.handle(member, envelope);
    if (member.session.owesAck && !member.ackScheduled) {
      // Not at once: the answer to this very message may carry the acknowledgement.
      member.ackScheduled = true;
      setImmediate(() => {
        member.ackScheduled = false;
        if (member.session.owesAck) member.session.sendUnnumbered('ack');
      });
    }
  }

  private handle(member: Member, envelope: Envelope): void {
    switch (envelope.kind) {
      case 'ping':
      case 'ack':
        return;
      case 'modexPut':
        return this.collectives.modexPut(member.rank, envelope.body.json);
      case 'modexUpdate':
        return this.collectives.modexUpdate(member.rank, envelope.body.json);
      case 'barrierEnter':
        return this.collectives.barrierEnter(member.rank, envelope.body.name, envelope.body.tolerant);
      case 'barrierAsk':
        this.send(member, 'barrierMissing', { name: envelope.body.name, ranks: this.collectives.missingAt(envelope.body.name) });
        return;
      case 'abort':
        this.emit('abort', { ...envelope.body, rank: member.rank });
        return;
      case 'finalized':
        if (member.finalized) return;
        member.finalized = true;
        this.emit('finalized', member.rank);
        return;
      case 'standbyState':
        this.takeStandbyState(member, envelope.body);
        return;
      case 'standbyCall': {
        const { rank, call } = envelope.body;
        checkSize(call, CALL_BYTES_MAX, 'call of a standby');
        if (rank < this.members.length) this.send(this.members[rank], 'standbyCall', { rank: member.rank, call });
        return;
      }
      case 'unreachable': {
        const { rank, forMs, final } = envelope.body;
        return this.arbiter.take(member.rank, rank, forMs, final, performance.now());
      }
      case 'railEvent':
        checkSize(envelope.body.json, RAIL_EVENT_BYTES_MAX, 'rail event');
        this.emit('railEvent', member.rank, decodeJson(envelope.body.json, 'rail event'));
        return;
      case 'waitsAsk':
        this.emit('waitsAsked', member.rank, boundedText(envelope.body.reason, 1024));
        return;
      case 'waitsReport':
        checkSize(envelope.body.json, WAITS_BYTES_MAX, 'report of what is waited for');
        this.emit('waitsReport', member.rank, envelope.body.id, decodeJson(envelope.body.json, 'report of what is waited for'));
        return;
      case 'telemetry':
        this.takeTelemetry(member.rank, envelope.body);
        return;
      default:
        throw new MultirailError('ERR_PROTOCOL', `"${envelope.kind}" came from a rank; only the server sends it`);
    }
  }

  private takeStandbyState(member: Member, { waiting, place }: OobBodies['standbyState']): void {
    member.standsBy = waiting;
    for (const other of this.members)
      if (other !== member && this.series.isKnown(other.rank)) this.send(other, 'standbyState', { rank: member.rank, waiting, place });
    this.collectives.rankEnded();
    this.emit('standby', member.rank, waiting, place);
  }

  /** Only people look at it: a report that makes no sense is no reason to lose a rank. */
  private takeTelemetry(rank: number, report: Telemetry): void {
    try {
      checkTelemetry(report, this.size);
    } catch (error) {
      this.log(`out-of-band channel: a report of rank ${rank} is left out: ${(error as Error).message}`);
      return;
    }
    this.emit('telemetry', rank, report);
  }

  private declareExit(member: Member, exit: ExitInfo): void {
    if (member.exit !== undefined) return;
    member.exit = exit;
    const body = exitBody(member.rank, exit);
    // Whoever is done has no use for the news that another one, which was done too, has ended.
    for (const other of this.series.isKnown(member.rank) ? this.members : [])
      if (other !== member && !(exit.finalized && other.finalized)) this.send(other, 'processExit', body);
    this.bulletin.post(member.rank, exit);
    this.collectives.forget(member.rank);
    this.joins.end(member.rank);
    member.session.end(new MultirailError('ERR_OOB', `rank ${member.rank} has ended`));
    this.collectives.rankEnded();
    this.emit('ended', member.rank);
  }

  private lose(member: Member, text: string): void {
    member.socket?.terminate();
    this.declareExit(member, { code: undefined, signal: '', finalized: member.finalized, lost: true });
    this.emit('lost', member.rank, text);
  }

  /** Returns the number of the message; undefined when that process gets none any more. */
  private send<K extends OobKind>(member: Member, kind: K, body: OobBodies[K]): number | undefined {
    if (member.exit !== undefined || this.closed) return undefined;
    try {
      return member.session.send(kind, body);
    } catch (error) {
      // A bounded queue that is full: this rank would miss a message, so it cannot go on.
      this.lose(member, `rank ${member.rank}: ${(error as Error).message}`);
      return undefined;
    }
  }

  private log(text: string): void {
    this.lines.line(performance.now(), text, text);
  }

  /** About a stranger: connections that differ in the port alone are equal. */
  private logFrom(from: string, what: string): void {
    const host = from.slice(0, from.lastIndexOf(':'));
    this.lines.line(
      performance.now(),
      `out-of-band channel: connections from ${host} ${what}`,
      `out-of-band channel: connection from ${from} ${what}`,
    );
  }
}
