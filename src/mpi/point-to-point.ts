// The point-to-point calls of a communicator. Ranks are those of the communicator; `group` says which world rank each one is.
import { MultirailError } from '../errors.ts';
import type { Envelope, RecvRequest, SendRequest } from '../pml/records.ts';
import type { Iov } from '../util/iov.ts';
import { allocate, KnownBuffer, type MessageBuffer, recvIov, sendIov } from './buffers.ts';
import { sendChannel } from './channels.ts';
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
import type { Group } from './group.ts';
import type { Host } from './host.ts';
import { Message } from './message.ts';
import { endRequest, endRequestAt, PersistentRequest, type Request } from './request.ts';
import { RequestDesk } from './request-desk.ts';
import { PROC_NULL_STATUS, type Status } from './status.ts';

export type ProbeOptions = CallOptions;

const DONE = Promise.resolve();

export class PointToPoint {
  /** Own rank in this communicator. */
  readonly rank: number;
  readonly size: number;
  /** The processes, in the order of their ranks. */
  readonly group: Group;
  /** Differs from that of every other communicator of the job; those that one split made share it. */
  readonly contextId: number;
  protected readonly host: Host;
  /** World rank of each rank. */
  protected readonly members: readonly number[];
  /** What every call ends with once the communicator is freed. */
  protected freed: MultirailError | undefined;
  /** What its requests, and the process, ask of it. */
  protected readonly desk: RequestDesk;
  private readonly userCtx: number;
  private readonly lastSent = new KnownBuffer();
  private readonly lastReceived = new KnownBuffer();

  constructor(host: Host, name: string, contextId: number, group: Group) {
    this.host = host;
    this.desk = new RequestDesk(host, name, contextId, group);
    this.contextId = contextId;
    this.group = group;
    this.members = group.worldRanks;
    this.size = group.size;
    this.rank = group.rank;
    this.userCtx = this.desk.userCtx;
  }

  /** For people: in errors and events. */
  get name(): string {
    return this.desk.name;
  }

  setName(name: string): void {
    if (typeof name !== 'string') throw new MultirailError('ERR_ARG', `name is ${name === null ? 'null' : typeof name}; expected a string`);
    this.desk.name = name;
  }

  /** Throws ERR_FINALIZED once finalize() was called, ERR_COMM once free() was. */
  protected mustBeUsable(): void {
    this.host.mustBeActive();
    if (this.freed !== undefined) throw this.freed;
  }

  /** Before anything is sent or taken: ERR_SUPPORT when a blocking call could not wait. */
  protected mustReachByPolling(): void {
    if (this.size > 1) this.host.blocking.mustBeReachable();
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
        for (const inner of list) this.host.giveUp(inner, error);
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
    const { engine, blocking } = this.host;
    engine.flush();
    try {
      if (!inner.done && !blocking.wait(inner, timeoutMs === undefined ? undefined : blocking.now() + timeoutMs)) {
        this.host.giveUp(inner, timeoutError(timeoutMs as number, NOT_SENT));
        blocking.wait(inner);
      }
    } catch (error) {
      // It could not be waited for: its message goes on all the same, and must not read what is the caller's again.
      this.host.giveUp(inner, error as MultirailError);
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
    const request = this.desk.requestOf(inner);
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
    return new PersistentRequest(this.desk, () => {
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
    const { engine } = this.host;
    const inner = engine.pml.isend(this.members[dest], this.userCtx, tag, iov, sync, 0, canGiveUp);
    engine.schedule();
    if (sendChannel.hasSubscribers) sendChannel.publish({ rank: this.rank, comm: this.name, dest, tag, bytes: iov.bytes });
    return inner;
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
          if (inner.error === undefined) resolve(this.desk.received(inner));
          else reject(inner.error);
        };
        if (inner.done) settle();
        else inner.onDone = settle;
      });
    } catch (error) {
      return Promise.reject(error);
    }
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
    return this.desk.received(inner);
  }

  /** Waits for a posted receive; one that has not matched in time, or cannot, is taken back. */
  private awaitReceive(inner: RecvRequest, timeoutMs: number | undefined): void {
    const { blocking } = this.host;
    try {
      if (timeoutMs === undefined) blocking.wait(inner);
      else if (!blocking.wait(inner, blocking.now() + timeoutMs)) {
        if (this.host.cancel(inner)) throw timeoutError(timeoutMs);
        // It matched: from here on it ends by itself.
        blocking.wait(inner);
      }
    } catch (error) {
      if (!inner.done) this.host.cancel(inner);
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
    const deadlineMs = options?.timeoutMs === undefined ? undefined : this.desk.now() + options.timeoutMs;
    const leftMs = () => (deadlineMs === undefined ? undefined : Math.max(0, deadlineMs - this.desk.now()));
    const received = this.startRecv(this.checkedRecv(recvBuffer, source, recvTag), source, recvTag);
    try {
      this.finishSync(this.startSend(views, dest, sendTag, false, canEnd(options)), leftMs());
    } catch (error) {
      // Nobody would ever look at it again. One that has matched is written into until it has ended.
      if (received !== undefined && !received.done && !this.host.cancel(received)) this.awaitReceive(received, undefined);
      throw error;
    }
    if (received === undefined) return PROC_NULL_STATUS;
    if (!received.done) this.awaitReceive(received, leftMs());
    if (received.error !== undefined) throw received.error;
    return this.desk.received(received);
  }

  irecv(buffer: MessageBuffer, source = ANY_SOURCE, tag = ANY_TAG, options?: CallOptions): Request {
    checkOptions(options);
    const iov = this.checkedRecv(buffer, source, tag);
    const inner = this.startRecv(iov, source, tag);
    const request = this.desk.requestOf(inner);
    if (inner !== undefined && !inner.done) this.endBy(request, inner, options);
    return request;
  }

  /** A signal or timeout un-posts a receive, or gives a send up; both are let go when it ends. */
  private endBy(request: Request, inner: SendRequest | RecvRequest, options: CallOptions | undefined, what: string = NO_MATCH): void {
    const release = watchEnd(options, (error) => endRequest(request, error), what);
    if (release === undefined) return;
    const timeoutMs = options?.timeoutMs;
    if (timeoutMs !== undefined) endRequestAt(request, this.desk.now() + timeoutMs, timeoutError(timeoutMs, what));
    const settle = inner.onDone;
    inner.onDone = () => {
      release();
      settle?.();
    };
  }

  recvInit(buffer: MessageBuffer, source = ANY_SOURCE, tag = ANY_TAG): PersistentRequest {
    this.checkedRecv(buffer, source, tag);
    return new PersistentRequest(this.desk, () => {
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
    const { engine } = this.host;
    const inner = engine.pml.irecv(this.worldOf(source), this.userCtx, tag, iov);
    // What dead ranks had sent before is still received.
    if (source === ANY_SOURCE && !inner.matched) this.desk.memberGone();
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
    const sent = this.desk.requestOf(this.startSend(sendViews, dest, sendTag, false, canEnd(options)));
    const release = watchEnd(
      options,
      (error) => {
        endRequest(received, error);
        endRequest(sent, error);
      },
      NOT_EXCHANGED,
    );
    const [sending, receiving] = await Promise.allSettled([
      sent.promise().catch((error) => {
        endRequest(received, error);
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
    return this.desk.statusOfEnvelope(await this.host.waitForMessage(this.worldOf(source), this.userCtx, tag, false, options));
  }

  /** As probe(), without a promise. */
  probeSync(source = ANY_SOURCE, tag = ANY_TAG, options?: SyncOptions): Status {
    checkSyncOptions(options);
    this.checkProbe(source, tag, undefined);
    if (source === PROC_NULL) return PROC_NULL_STATUS;
    return this.desk.statusOfEnvelope(this.findSync(source, tag, false, options?.timeoutMs));
  }

  private findSync(source: number, tag: number, take: boolean, timeoutMs: number | undefined): Envelope {
    const { host, userCtx } = this;
    const { blocking } = host;
    const world = this.worldOf(source);
    let found: Envelope | undefined;
    const awaited = {
      // Asked again and again: what was taken out of the queue must not be looked for there.
      get done() {
        found ??= host.findMessage(world, userCtx, tag, take);
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
    this.host.engine.progress();
    const found = this.host.findMessage(this.worldOf(source), this.userCtx, tag, false);
    return found === undefined ? undefined : this.desk.statusOfEnvelope(found);
  }

  /** As probe(), but takes the message: only the Message that it resolves with can receive it. */
  async mprobe(source = ANY_SOURCE, tag = ANY_TAG, options?: ProbeOptions): Promise<Message> {
    this.checkProbe(source, tag, options);
    if (source === PROC_NULL) return this.messageOf(undefined);
    return this.messageOf(await this.host.waitForMessage(this.worldOf(source), this.userCtx, tag, true, options));
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
    this.host.engine.progress();
    const found = this.host.findMessage(this.worldOf(source), this.userCtx, tag, true);
    return found === undefined ? undefined : this.messageOf(found);
  }

  protected checkProbe(source: number, tag: number, options: ProbeOptions | undefined): void {
    this.mustBeUsable();
    checkOptions(options);
    checkSource(source, this.size);
    checkRecvTag(tag);
  }

  private messageOf(envelope: Envelope | undefined): Message {
    if (envelope === undefined) return new Message(PROC_NULL_STATUS, () => this.desk.requestOf(undefined));
    return new Message(this.desk.statusOfEnvelope(envelope), (iov) => this.desk.requestOf(this.startMatched(envelope, iov)));
  }

  /** Also while the communicator is being freed: a message that was matched before is under way on it (MPI-4.1, section 7.4.3). */
  protected startMatched(envelope: Envelope, iov: Iov): RecvRequest {
    this.host.mustBeActive();
    if (this.freed !== undefined && !this.host.isOpen(this.userCtx)) throw this.freed;
    const inner = this.host.engine.pml.imrecv(envelope, iov);
    this.host.engine.schedule();
    return inner;
  }

  // ---------------------------------------------------------------- ranks

  private worldOf(source: number): number {
    return source === ANY_SOURCE ? ANY_SOURCE : this.members[source];
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
