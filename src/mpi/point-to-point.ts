// The point-to-point calls of a communicator. Ranks are those of the communicator; `group` says which world rank each one is.
import { MultirailError } from '../errors.ts';
import type { Envelope, RecvRequest, SendRequest } from '../pml/records.ts';
import type { Awaited } from '../progress/blocking.ts';
import type { Iov } from '../util/iov.ts';
import { allocate, KnownBuffer, type MessageBuffer, recvIov, sendIov } from './buffers.ts';
import { recvChannel, sendChannel } from './channels.ts';
import {
  ANY_SOURCE,
  ANY_TAG,
  type CallOptions,
  canEnd,
  checkDest,
  checkOptions,
  checkRecvTag,
  checkSendTag,
  checkSource,
  checkSyncOptions,
  NO_MATCH,
  NOT_EXCHANGED,
  NOT_SENT,
  PROC_NULL,
  type SyncOptions,
  timeoutError,
  watchEnd,
} from './constants.ts';
import { ctxOf, USER } from './contexts.ts';
import type { Group } from './group.ts';
import { Message } from './message.ts';
import type { ProcessState } from './process-state.ts';
import { type Inner, PersistentRequest, Request, type RequestOwner } from './request.ts';
import { EMPTY_STATUS, PROC_NULL_STATUS, Status } from './status.ts';
import { MessageTrace, type OperationTrace, tracedSince } from './tracing.ts';

export type ProbeOptions = CallOptions;

const DONE = Promise.resolve();

export class PointToPoint implements RequestOwner {
  /** Own rank in this communicator. */
  readonly rank: number;
  readonly size: number;
  /** The processes, in the order of their ranks. */
  readonly group: Group;
  /** Differs from that of every other communicator of the job; those that one split made share it. */
  readonly contextId: number;
  protected readonly proc: ProcessState;
  /** World rank of each rank. */
  protected readonly members: readonly number[];
  /** What every call ends with once the communicator is freed. */
  protected freed: MultirailError | undefined;
  private ownName: string;
  private readonly userCtx: number;
  /** Rank here of each world rank is the same. */
  private readonly isWorldOrder: boolean;
  private desertion: MultirailError | undefined;
  private membersGoneSeen = 0;
  private readonly lastSent = new KnownBuffer();
  private readonly lastReceived = new KnownBuffer();

  constructor(proc: ProcessState, name: string, contextId: number, group: Group) {
    this.proc = proc;
    this.ownName = name;
    this.contextId = contextId;
    this.group = group;
    this.members = group.worldRanks;
    this.size = group.size;
    this.rank = group.rank;
    this.userCtx = ctxOf(contextId, USER);
    this.isWorldOrder = this.members.every((world, rank) => world === rank);
  }

  /** For people: in errors and events. */
  get name(): string {
    return this.ownName;
  }

  setName(name: string): void {
    if (typeof name !== 'string') throw new MultirailError('ERR_ARG', `name is ${name === null ? 'null' : typeof name}; expected a string`);
    this.ownName = name;
  }

  /** Throws ERR_FINALIZED once finalize() was called, ERR_COMM once free() was. */
  protected mustBeUsable(): void {
    this.proc.mustBeActive();
    if (this.freed !== undefined) throw this.freed;
  }

  /**
   * Set once every other member is gone, and at least one of them is dead: a receive from ANY_SOURCE would wait for ever. (When all have
   * left by finalize(), a rank may go on to talk to itself.)
   */
  get deserted(): MultirailError | undefined {
    const { proc, members } = this;
    if (this.membersGoneSeen === proc.membersGone) return this.desertion;
    this.membersGoneSeen = proc.membersGone;
    let failure: MultirailError | undefined;
    for (let rank = 0; rank < members.length; rank++) {
      if (rank === this.rank) continue;
      const peer = proc.engine.pml.peer(members[rank]);
      if (peer.ended === undefined) return undefined;
      failure ??= peer.failure;
    }
    if (failure === undefined) return undefined;
    const text = `no rank is left in ${this.name} that could send: ${failure.message}`;
    this.desertion = new MultirailError(failure.code, text, { rank: proc.rank, cause: failure });
    return this.desertion;
  }

  /** Receives from ANY_SOURCE end when nobody is left. */
  memberGone(): void {
    const { deserted } = this;
    if (deserted !== undefined) this.proc.engine.pml.endPostedToAny(this.userCtx, deserted);
  }

  /** Before anything is sent or taken: ERR_SUPPORT when a blocking call could not wait. */
  protected mustReachByPolling(): void {
    if (this.size > 1) this.proc.blocking.mustBeReachable();
  }

  // ---------------------------------------------------------------- sends

  /** Resolves when the buffer may be used again: at once for short messages, when the receiver has taken it for long ones. */
  send(buffer: MessageBuffer, dest: number, tag = 0, options?: CallOptions): Promise<void> {
    return this.blockingSend(buffer, dest, tag, options, false);
  }

  /** As send(), but resolves only once the receive has matched, however short the message is. */
  ssend(buffer: MessageBuffer, dest: number, tag = 0, options?: CallOptions): Promise<void> {
    return this.blockingSend(buffer, dest, tag, options, true);
  }

  private blockingSend(buffer: MessageBuffer, dest: number, tag: number, options: CallOptions | undefined, sync: boolean): Promise<void> {
    try {
      checkOptions(options);
      const inner = this.startSend(this.checkedSend(buffer, dest, tag), dest, tag, sync, canEnd(options));
      if (inner === undefined || (inner.done && inner.error === undefined)) return DONE;
      return ended(inner, this.watchSends([inner], options));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** A signal or timeout gives them up. Returns what takes both back. */
  protected watchSends(list: readonly SendRequest[], options: CallOptions | undefined): (() => void) | undefined {
    return watchEnd(
      options,
      (error) => {
        for (const inner of list) this.proc.giveUp(inner, error);
      },
      NOT_SENT,
    );
  }

  /**
   * As send(), without a promise: returns when the buffer may be used again. The event loop does not run meanwhile. ERR_SUPPORT when the
   * rails to `dest` need it (ws, tcp without the native part).
   */
  sendSync(buffer: MessageBuffer, dest: number, tag = 0, options?: SyncOptions): void {
    checkSyncOptions(options);
    this.finishSync(this.startSend(this.checkedSend(buffer, dest, tag), dest, tag, false, canEnd(options)), options?.timeoutMs);
  }

  /** As ssend(), without a promise. */
  ssendSync(buffer: MessageBuffer, dest: number, tag = 0, options?: SyncOptions): void {
    checkSyncOptions(options);
    this.finishSync(this.startSend(this.checkedSend(buffer, dest, tag), dest, tag, true, canEnd(options)), options?.timeoutMs);
  }

  /** Sends what was started, now, and waits for its end. */
  protected finishSync(inner: SendRequest | undefined, timeoutMs?: number): void {
    if (inner === undefined) return;
    const { engine, blocking } = this.proc;
    engine.flush();
    try {
      if (!inner.done && !blocking.wait(inner, timeoutMs === undefined ? undefined : blocking.now() + timeoutMs)) {
        this.proc.giveUp(inner, timeoutError(timeoutMs as number, NOT_SENT));
        blocking.wait(inner);
      }
    } catch (error) {
      // It could not be waited for: its message goes on all the same, and must not read what is the caller's again.
      this.proc.giveUp(inner, error as MultirailError);
      throw error;
    }
    if (inner.error !== undefined) throw inner.error;
  }

  isend(buffer: MessageBuffer, dest: number, tag = 0, options?: CallOptions): Request {
    return this.nonblockingSend(buffer, dest, tag, options, false);
  }

  issend(buffer: MessageBuffer, dest: number, tag = 0, options?: CallOptions): Request {
    return this.nonblockingSend(buffer, dest, tag, options, true);
  }

  private nonblockingSend(buffer: MessageBuffer, dest: number, tag: number, options: CallOptions | undefined, sync: boolean): Request {
    checkOptions(options);
    const inner = this.startSend(this.checkedSend(buffer, dest, tag), dest, tag, sync, canEnd(options));
    const request = this.requestOf(inner);
    if (inner !== undefined && !inner.done) this.endBy(request, inner, options, NOT_SENT);
    return request;
  }

  /** A send that can be started again and again; `start()` sends what the buffer holds then. */
  sendInit(buffer: MessageBuffer, dest: number, tag = 0): PersistentRequest {
    return this.persistentSend(buffer, dest, tag, false);
  }

  ssendInit(buffer: MessageBuffer, dest: number, tag = 0): PersistentRequest {
    return this.persistentSend(buffer, dest, tag, true);
  }

  private persistentSend(buffer: MessageBuffer, dest: number, tag: number, sync: boolean): PersistentRequest {
    this.checkedSend(buffer, dest, tag);
    return new PersistentRequest(this, () => {
      // Looked at again: the buffer may have been detached since.
      const inner = this.startSend(this.checkedSend(buffer, dest, tag), dest, tag, sync);
      return inner === undefined ? { inner, ended: PROC_NULL_STATUS } : { inner };
    });
  }

  private checkedSend(buffer: MessageBuffer, dest: number, tag: number): Iov {
    this.mustBeUsable();
    checkDest(dest, this.size);
    checkSendTag(tag);
    return this.lastSent.find(buffer) ?? this.lastSent.keep(buffer, sendIov(buffer));
  }

  /** `canGiveUp`: a timeout or signal may end it. */
  protected startSend(iov: Iov, dest: number, tag: number, sync: boolean, canGiveUp = false): SendRequest | undefined {
    if (dest === PROC_NULL) return undefined;
    const { engine } = this.proc;
    const sinceMs = tracedSince();
    const inner = engine.pml.isend(this.members[dest], this.userCtx, tag, iov, sync, 0, canGiveUp);
    if (sinceMs !== undefined) {
      this.traceFrom(inner, sinceMs, {
        operation: sync ? 'ssend' : 'send',
        rank: this.rank,
        comm: this.name,
        peer: dest,
        tag,
        bytes: iov.bytes,
      });
    }
    engine.schedule();
    if (sendChannel.hasSubscribers) sendChannel.publish({ rank: this.rank, comm: this.name, dest, tag, bytes: iov.bytes });
    return inner;
  }

  /** One that is done already ends at once. */
  private traceFrom(inner: SendRequest | RecvRequest, sinceMs: number, trace: OperationTrace): void {
    const running = new MessageTrace(trace, sinceMs, (world) => this.rankOf(world));
    if (inner.done) running.requestEnded(inner);
    else inner.trace = running;
  }

  // ---------------------------------------------------------------- receives

  /** Resolves when a message has been received into the buffer. A message that is too long ends in ERR_TRUNCATE. */
  recv(buffer: MessageBuffer, source = ANY_SOURCE, tag = ANY_TAG, options?: CallOptions): Promise<Status> {
    try {
      if (options !== undefined) return this.irecv(buffer, source, tag, options).promise();
      const inner = this.startRecv(this.checkedRecv(buffer, source, tag), source, tag);
      if (inner === undefined) return Promise.resolve(PROC_NULL_STATUS);
      return new Promise((resolve, reject) => {
        const settle = () => {
          if (inner.error === undefined) resolve(this.received(inner));
          else reject(inner.error);
        };
        if (inner.done) settle();
        else inner.onDone = settle;
      });
    } catch (error) {
      return Promise.reject(error);
    }
  }

  private received(inner: RecvRequest): Status {
    const status = this.statusOf(inner);
    this.onReceived(status);
    return status;
  }

  /**
   * As recv(), without a promise: returns when a message has been received. The event loop does not run meanwhile, so an AbortSignal
   * cannot come; `timeoutMs` can.
   */
  recvSync(buffer: MessageBuffer, source = ANY_SOURCE, tag = ANY_TAG, options?: SyncOptions): Status {
    checkSyncOptions(options);
    const inner = this.startRecv(this.checkedRecv(buffer, source, tag), source, tag);
    if (inner === undefined) return PROC_NULL_STATUS;
    if (!inner.done) this.awaitReceive(inner, options?.timeoutMs);
    if (inner.error !== undefined) throw inner.error;
    return this.received(inner);
  }

  /** Waits for a posted receive; one that has not matched in time, or cannot, is taken back. */
  private awaitReceive(inner: RecvRequest, timeoutMs: number | undefined): void {
    const { blocking } = this.proc;
    try {
      if (timeoutMs === undefined) blocking.wait(inner);
      else if (!blocking.wait(inner, blocking.now() + timeoutMs)) {
        if (this.proc.cancel(inner)) throw timeoutError(timeoutMs);
        // It matched: from here on it ends by itself.
        blocking.wait(inner);
      }
    } catch (error) {
      if (!inner.done) this.proc.cancel(inner);
      throw error;
    }
  }

  /** As sendrecv(), without promises. */
  sendrecvSync(
    sendBuffer: MessageBuffer,
    dest: number,
    sendTag: number,
    recvBuffer: MessageBuffer,
    source = ANY_SOURCE,
    recvTag = ANY_TAG,
    options?: SyncOptions,
  ): Status {
    checkSyncOptions(options);
    const views = this.checkedSend(sendBuffer, dest, sendTag);
    const deadlineMs = options?.timeoutMs === undefined ? undefined : this.now() + options.timeoutMs;
    const leftMs = () => (deadlineMs === undefined ? undefined : Math.max(0, deadlineMs - this.now()));
    const received = this.startRecv(this.checkedRecv(recvBuffer, source, recvTag), source, recvTag);
    try {
      this.finishSync(this.startSend(views, dest, sendTag, false, canEnd(options)), leftMs());
    } catch (error) {
      // Nobody would ever look at it again. One that has matched is written into until it has ended.
      if (received !== undefined && !received.done && !this.proc.cancel(received)) this.awaitReceive(received, undefined);
      throw error;
    }
    if (received === undefined) return PROC_NULL_STATUS;
    if (!received.done) this.awaitReceive(received, leftMs());
    if (received.error !== undefined) throw received.error;
    return this.received(received);
  }

  irecv(buffer: MessageBuffer, source = ANY_SOURCE, tag = ANY_TAG, options?: CallOptions): Request {
    checkOptions(options);
    const iov = this.checkedRecv(buffer, source, tag);
    const inner = this.startRecv(iov, source, tag);
    const request = this.requestOf(inner);
    if (inner !== undefined && !inner.done) this.endBy(request, inner, options);
    return request;
  }

  /** A signal or timeout un-posts a receive, or gives a send up; both are let go when it ends. */
  private endBy(request: Request, inner: SendRequest | RecvRequest, options: CallOptions | undefined, what: string = NO_MATCH): void {
    const release = watchEnd(options, (error) => request.end(error), what);
    if (release === undefined) return;
    const timeoutMs = options?.timeoutMs;
    if (timeoutMs !== undefined) request.endAt(this.now() + timeoutMs, timeoutError(timeoutMs, what));
    const settle = inner.onDone;
    inner.onDone = () => {
      release();
      settle?.();
    };
  }

  recvInit(buffer: MessageBuffer, source = ANY_SOURCE, tag = ANY_TAG): PersistentRequest {
    this.checkedRecv(buffer, source, tag);
    return new PersistentRequest(this, () => {
      const inner = this.startRecv(this.checkedRecv(buffer, source, tag), source, tag);
      return inner === undefined ? { inner, ended: PROC_NULL_STATUS } : { inner };
    });
  }

  private checkedRecv(buffer: MessageBuffer, source: number, tag: number): Iov {
    this.mustBeUsable();
    checkSource(source, this.size);
    checkRecvTag(tag);
    return this.lastReceived.find(buffer) ?? this.lastReceived.keep(buffer, recvIov(buffer));
  }

  private startRecv(iov: Iov, source: number, tag: number): RecvRequest | undefined {
    if (source === PROC_NULL) return undefined;
    const { engine } = this.proc;
    const sinceMs = tracedSince();
    const inner = engine.pml.irecv(this.worldOf(source), this.userCtx, tag, iov);
    if (sinceMs !== undefined) {
      const trace: OperationTrace = { operation: 'recv', rank: this.rank, comm: this.name };
      if (source !== ANY_SOURCE) trace.peer = source;
      if (tag !== ANY_TAG) trace.tag = tag;
      this.traceFrom(inner, sinceMs, trace);
    }
    // What dead ranks had sent before is still received.
    if (source === ANY_SOURCE && !inner.matched) this.memberGone();
    engine.schedule();
    return inner;
  }

  /**
   * A send and a receive at the same time, which cannot block each other. Settles when both have ended: then both buffers may be used
   * again. When the send fails, a receive that has not matched is taken back; a timeout or signal ends both.
   */
  async sendrecv(
    sendBuffer: MessageBuffer,
    dest: number,
    sendTag: number,
    recvBuffer: MessageBuffer,
    source = ANY_SOURCE,
    recvTag = ANY_TAG,
    options?: CallOptions,
  ): Promise<Status> {
    checkOptions(options);
    const sendViews = this.checkedSend(sendBuffer, dest, sendTag);
    const received = this.irecv(recvBuffer, source, recvTag);
    const sent = this.requestOf(this.startSend(sendViews, dest, sendTag, false, canEnd(options)));
    const release = watchEnd(
      options,
      (error) => {
        received.end(error);
        sent.end(error);
      },
      NOT_EXCHANGED,
    );
    const [sending, receiving] = await Promise.allSettled([
      sent.promise().catch((error) => {
        received.end(error);
        throw error;
      }),
      received.promise(),
    ]);
    release?.();
    if (receiving.status === 'rejected') throw receiving.reason;
    if (sending.status === 'rejected') throw sending.reason;
    return receiving.value;
  }

  /** As sendrecv(), with one buffer: what it holds is sent, what comes replaces it. */
  async sendrecvReplace(
    buffer: MessageBuffer,
    dest: number,
    sendTag: number,
    source = ANY_SOURCE,
    recvTag = ANY_TAG,
    options?: CallOptions,
  ): Promise<Status> {
    return this.sendrecv(copyOf(this.checkedSend(buffer, dest, sendTag)), dest, sendTag, buffer, source, recvTag, options);
  }

  /** As sendrecvReplace(), without promises. */
  sendrecvReplaceSync(
    buffer: MessageBuffer,
    dest: number,
    sendTag: number,
    source = ANY_SOURCE,
    recvTag = ANY_TAG,
    options?: SyncOptions,
  ): Status {
    return this.sendrecvSync(copyOf(this.checkedSend(buffer, dest, sendTag)), dest, sendTag, buffer, source, recvTag, options);
  }

  // ---------------------------------------------------------------- probes

  /** Resolves once a message that fits is there; it stays where it is, for the next receive that matches it. */
  async probe(source = ANY_SOURCE, tag = ANY_TAG, options?: ProbeOptions): Promise<Status> {
    this.checkProbe(source, tag, options);
    if (source === PROC_NULL) return PROC_NULL_STATUS;
    return this.statusOfEnvelope(await this.proc.waitForMessage(this.worldOf(source), this.userCtx, tag, false, options));
  }

  /** As probe(), without a promise. */
  probeSync(source = ANY_SOURCE, tag = ANY_TAG, options?: SyncOptions): Status {
    checkSyncOptions(options);
    this.checkProbe(source, tag, undefined);
    if (source === PROC_NULL) return PROC_NULL_STATUS;
    return this.statusOfEnvelope(this.findSync(source, tag, false, options?.timeoutMs));
  }

  private findSync(source: number, tag: number, take: boolean, timeoutMs: number | undefined): Envelope {
    const { proc, userCtx } = this;
    const { blocking } = proc;
    const world = this.worldOf(source);
    let found: Envelope | undefined;
    const awaited = {
      // Asked again and again: what was taken out of the queue must not be looked for there.
      get done() {
        found ??= proc.findMessage(world, userCtx, tag, take);
        return found !== undefined;
      },
    };
    const inTime = blocking.wait(awaited, timeoutMs === undefined ? undefined : blocking.now() + timeoutMs);
    if (!inTime) throw timeoutError(timeoutMs as number);
    return found as Envelope;
  }

  /** Status of a message that fits and is there, or undefined. Polls the rails once. */
  iprobe(source = ANY_SOURCE, tag = ANY_TAG): Status | undefined {
    this.checkProbe(source, tag, undefined);
    if (source === PROC_NULL) return PROC_NULL_STATUS;
    this.proc.engine.progress();
    const found = this.proc.findMessage(this.worldOf(source), this.userCtx, tag, false);
    return found === undefined ? undefined : this.statusOfEnvelope(found);
  }

  /** As probe(), but takes the message: only the Message that it resolves with can receive it. */
  async mprobe(source = ANY_SOURCE, tag = ANY_TAG, options?: ProbeOptions): Promise<Message> {
    this.checkProbe(source, tag, options);
    if (source === PROC_NULL) return this.messageOf(undefined);
    return this.messageOf(await this.proc.waitForMessage(this.worldOf(source), this.userCtx, tag, true, options));
  }

  /** As mprobe(), without a promise. */
  mprobeSync(source = ANY_SOURCE, tag = ANY_TAG, options?: SyncOptions): Message {
    checkSyncOptions(options);
    this.checkProbe(source, tag, undefined);
    if (source === PROC_NULL) return this.messageOf(undefined);
    return this.messageOf(this.findSync(source, tag, true, options?.timeoutMs));
  }

  improbe(source = ANY_SOURCE, tag = ANY_TAG): Message | undefined {
    this.checkProbe(source, tag, undefined);
    if (source === PROC_NULL) return this.messageOf(undefined);
    this.proc.engine.progress();
    const found = this.proc.findMessage(this.worldOf(source), this.userCtx, tag, true);
    return found === undefined ? undefined : this.messageOf(found);
  }

  protected checkProbe(source: number, tag: number, options: ProbeOptions | undefined): void {
    this.mustBeUsable();
    checkOptions(options);
    checkSource(source, this.size);
    checkRecvTag(tag);
  }

  private messageOf(envelope: Envelope | undefined): Message {
    if (envelope === undefined) return new Message(PROC_NULL_STATUS, () => this.requestOf(undefined));
    return new Message(this.statusOfEnvelope(envelope), (iov) => this.requestOf(this.startMatched(envelope, iov)));
  }

  /** Also while the communicator is being freed: a message that was matched before is under way on it (MPI-4.1, section 7.4.3). */
  protected startMatched(envelope: Envelope, iov: Iov): RecvRequest {
    this.proc.mustBeActive();
    if (this.freed !== undefined && !this.proc.isOpen(this.userCtx)) throw this.freed;
    const inner = this.proc.engine.pml.imrecv(envelope, iov);
    this.proc.engine.schedule();
    return inner;
  }

  // ---------------------------------------------------------------- RequestOwner

  progress(): void {
    this.proc.engine.progress();
  }

  wait(awaited: Awaited, deadlineMs?: number): boolean {
    this.proc.engine.flush();
    return this.proc.blocking.wait(awaited, deadlineMs);
  }

  now(): number {
    return this.proc.blocking.now();
  }

  cancel(inner: RecvRequest): boolean {
    return this.proc.cancel(inner);
  }

  giveUp(inner: SendRequest, error: MultirailError): void {
    this.proc.giveUp(inner, error);
  }

  statusOf(inner: Inner): Status {
    if (inner.kind === 'collective') return EMPTY_STATUS;
    if (inner.kind === 'send') return new Status(this.rank, inner.tag, inner.bytes);
    return new Status(this.rankOf(inner.matchedSource), inner.matchedTag, inner.receivedBytes, inner.cancelled);
  }

  onReceived(status: Status): void {
    if (!recvChannel.hasSubscribers) return;
    recvChannel.publish({ rank: this.rank, comm: this.name, source: status.source, tag: status.tag, bytes: status.bytes });
  }

  // ---------------------------------------------------------------- ranks

  protected requestOf(inner: Inner | undefined): Request {
    return inner === undefined ? new Request(this, undefined, PROC_NULL_STATUS) : new Request(this, inner);
  }

  private statusOfEnvelope(envelope: Envelope): Status {
    return new Status(this.rankOf(envelope.source), envelope.tag, envelope.messageBytes);
  }

  private worldOf(source: number): number {
    return source === ANY_SOURCE ? ANY_SOURCE : this.members[source];
  }

  private rankOf(world: number): number {
    return this.isWorldOrder ? world : (this.group.rankOf(world) ?? world);
  }
}

function copyOf({ bytes, views }: Iov): Uint8Array {
  const copy = allocate(bytes);
  let at = 0;
  for (const view of views) {
    copy.set(view, at);
    at += view.byteLength;
  }
  return copy;
}

/** Settles with the PML's request; `release` is called then. */
export function ended(inner: SendRequest | RecvRequest, release?: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = () => {
      release?.();
      if (inner.error === undefined) resolve();
      else reject(inner.error);
    };
    if (inner.done) settle();
    else inner.onDone = settle;
  });
}
