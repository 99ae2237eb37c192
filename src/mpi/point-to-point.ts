// The point-to-point calls of a communicator. Ranks are those of the communicator; `group` says which world rank each one is.
import { MultirailError } from '../errors.ts';
import type { Envelope, RecvRequest, SendRequest } from '../pml/records.ts';
import { EMPTY_IOV, type Iov } from '../util/iov.ts';
import { allocate, KnownBuffer, type MessageBuffer, recvIov, sendIov } from './buffers.ts';
import { sendChannel } from './channels.ts';
import {
  ANY_SOURCE,
  ANY_TAG,
  abortedError,
  type CallOptions,
  canEnd,
  checkDest,
  checkOptions,
  checkRecvTag,
  checkSendTag,
  checkSource,
  NO_MATCH,
  NOT_EXCHANGED,
  NOT_SENT,
  PROC_NULL,
  SYNC_KEYS,
  type SyncOptions,
  timeoutError,
  watchEnd,
} from './constants.ts';
import type { Group } from './group.ts';
import { Message } from './message.ts';
import type { ProcessState } from './process-state.ts';
import { endRequest, endRequestAt, PersistentRequest, type Request } from './request.ts';
import { RequestDesk } from './request-desk.ts';
import { PROC_NULL_STATUS, type Status } from './status.ts';
import { tracedSince } from './tracing.ts';

const DONE = Promise.resolve();
/** Longer messages go by rendezvous over shared memory, so that they do not leave at once. */
const COPIED_BYTES = 32 * 1024;

export class PointToPoint {
  /** Rank of this process in the communicator, from 0 to `size` - 1 (MPI-4.1, section 7.4.1). */
  readonly rank: number;
  /** Number of its ranks (MPI-4.1, section 7.4.1). */
  readonly size: number;
  /** Its processes, in the order of their ranks (MPI-4.1, section 7.4.1). */
  readonly group: Group;
  /** A number that tells it apart from every other communicator of the job; those that one split() made share it. */
  readonly contextId: number;
  protected readonly proc: ProcessState;
  /** World rank of each rank. */
  protected readonly members: readonly number[];
  /** What every call ends with once the communicator is freed. */
  protected freed: MultirailError | undefined;
  /** What most calls end with once it is revoked. */
  protected revocation: MultirailError | undefined;
  /** One of the two. */
  private unusable: MultirailError | undefined;
  /** Messages that matched probes have taken and nobody has received; kept where the parameter ft is on. */
  private readonly taken = new Set<Envelope>();
  /** What its requests, and the process, ask of it. */
  protected readonly desk: RequestDesk;
  private readonly userCtx: number;
  private readonly lastSent = new KnownBuffer();
  private readonly lastReceived = new KnownBuffer();
  /** The request of the last blocking receive, for the next one: nobody else has it. */
  private endedReceive: RecvRequest | undefined;

  /** @internal */
  constructor(proc: ProcessState, name: string, contextId: number, group: Group) {
    this.proc = proc;
    this.desk = new RequestDesk(proc, name, contextId, group);
    this.contextId = contextId;
    this.group = group;
    this.members = group.worldRanks;
    this.size = group.size;
    this.rank = group.rank;
    this.userCtx = this.desk.userCtx;
  }

  /** Its name, for people: in errors and events (MPI-4.1, section 7.8). */
  get name(): string {
    return this.desk.name;
  }

  /**
   * Gives it another name (MPI-4.1, section 7.8). Only this rank knows it.
   *
   * @param name Any string.
   * @throws ERR_ARG: the name is no string.
   */
  setName(name: string): void {
    if (typeof name !== 'string') throw new MultirailError('ERR_ARG', `name is ${name === null ? 'null' : typeof name}; expected a string`);
    this.desk.name = name;
  }

  /** Throws ERR_FINALIZED once finalize() was called, ERR_COMM once free() was, ERR_REVOKED once it was revoked. */
  protected mustBeUsable(): void {
    this.proc.mustBeActive();
    if (this.unusable !== undefined) throw this.unusable;
  }

  /** As mustBeUsable(), for the few calls that a revoked communicator still takes. */
  protected mustNotBeFreed(): void {
    this.proc.mustBeActive();
    if (this.freed !== undefined) throw this.freed;
  }

  protected markFreed(error: MultirailError): void {
    this.freed = error;
    this.unusable = error;
  }

  /** The process has learned that it is revoked. Returns what its calls end with. */
  protected markRevoked(): MultirailError {
    const error = new MultirailError('ERR_REVOKED', `the communicator ${this.name} was revoked`, { rank: this.proc.rank });
    this.revocation = error;
    this.unusable ??= error;
    // Their senders wait for an answer.
    for (const envelope of this.taken) this.proc.pml.imrecv(envelope, EMPTY_IOV);
    this.taken.clear();
    return error;
  }

  /** @internal Before anything is sent or taken: ERR_SUPPORT when a blocking call could not wait. */
  mustReachByPolling(): void {
    if (this.size > 1) this.proc.blocking.mustBeReachable();
  }

  /** What ends a call before its time. Whether it does cannot be repeated: where outcomes are recorded, nothing may. */
  protected checkEnd(options: CallOptions | undefined, known?: readonly string[]): void {
    if (options === undefined) return;
    checkOptions(options, known);
    if ((options.timeoutMs === undefined && options.signal === undefined) || this.desk.outcomes === undefined) return;
    throw new MultirailError(
      'ERR_SUPPORT',
      `timeoutMs and signal on ${this.name}, where outcomes are recorded (determinism: 'recorded'): a successor could not repeat whether the call ended in time; leave them out: calls end by themselves when the run of the program is over`,
      { rank: this.proc.rank },
    );
  }

  // ---------------------------------------------------------------- sends

  /**
   * Sends a message to one rank (MPI-4.1, section 3.2.1). Resolves when the buffer may be used again: at once for a short message, when the
   * receiver has taken it for a long one. Until then the buffer belongs to the library.
   *
   * @param buffer What is sent: a typed array or other view, an ArrayBuffer, a vector, or an array of these, which is one message.
   * @param dest Rank of the receiver; PROC_NULL: nothing is sent.
   * @param tag 0 to TAG_UB; 0 by default.
   * @param options When the send is given up; its message may still arrive.
   * @throws ERR_ARG, ERR_BUFFER, ERR_RANK, ERR_TAG: an argument does not fit; nothing was sent. ERR_BUFFER also when the memory was taken
   *   away while it was in use.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: the other rank is gone, or the job was aborted.
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  send(buffer: MessageBuffer, dest: number, tag = 0, options?: CallOptions): Promise<void> {
    return this.blockingSend(buffer, dest, tag, options, false);
  }

  /**
   * As send(), but resolves only once a receive has matched, however short the message is (MPI-4.1, section 3.4).
   *
   * @param buffer What is sent, as for send().
   * @param dest Rank of the receiver; PROC_NULL: nothing is sent.
   * @param tag 0 to TAG_UB; 0 by default.
   * @param options When the send is given up; its message may still arrive.
   * @throws ERR_ARG, ERR_BUFFER, ERR_RANK, ERR_TAG: an argument does not fit; nothing was sent. ERR_BUFFER also when the memory was taken
   *   away while it was in use.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: the other rank is gone, or the job was aborted.
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  ssend(buffer: MessageBuffer, dest: number, tag = 0, options?: CallOptions): Promise<void> {
    return this.blockingSend(buffer, dest, tag, options, true);
  }

  private blockingSend(buffer: MessageBuffer, dest: number, tag: number, options: CallOptions | undefined, sync: boolean): Promise<void> {
    try {
      this.checkEnd(options);
      const iov = this.checkedSend(buffer, dest, tag);
      if (!sync && this.sendEager(iov, dest, tag)) return DONE;
      const inner = this.startSend(iov, dest, tag, sync, canEnd(options));
      if (inner === undefined) return DONE;
      const { turns } = this.desk;
      if (turns !== undefined) return turns.inTurn(ended(inner));
      if (inner.done && inner.error === undefined) return DONE;
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
   * As send(), without a promise: returns when the buffer may be used again. The event loop does not run meanwhile.
   * @throws ERR_SUPPORT: the rails to `dest` need the event loop (ws, tcp without the native part). The message may still arrive.
   */
  sendSync(buffer: MessageBuffer, dest: number, tag = 0, options?: SyncOptions): void {
    this.checkEnd(options, SYNC_KEYS);
    const iov = this.checkedSend(buffer, dest, tag);
    if (this.sendEager(iov, dest, tag)) this.proc.engine.flush();
    else this.finishSync(this.startSend(iov, dest, tag, false, canEnd(options)), options?.timeoutMs);
  }

  /**
   * As ssend(), without a promise: returns when a receive has matched. The event loop does not run meanwhile.
   * @throws ERR_SUPPORT: the rails to `dest` need the event loop (ws, tcp without the native part). The message may still arrive.
   */
  ssendSync(buffer: MessageBuffer, dest: number, tag = 0, options?: SyncOptions): void {
    this.checkEnd(options, SYNC_KEYS);
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

  /**
   * Starts send() and returns its Request at once (MPI-4.1, section 3.7.2). The buffer belongs to the library until the request has ended.
   * Wrong arguments throw.
   */
  isend(buffer: MessageBuffer, dest: number, tag = 0, options?: CallOptions): Request {
    return this.nonblockingSend(buffer, dest, tag, options, false);
  }

  /**
   * Starts ssend() and returns its Request at once (MPI-4.1, section 3.7.2). The buffer belongs to the library until the request has ended.
   * Wrong arguments throw.
   */
  issend(buffer: MessageBuffer, dest: number, tag = 0, options?: CallOptions): Request {
    return this.nonblockingSend(buffer, dest, tag, options, true);
  }

  private nonblockingSend(buffer: MessageBuffer, dest: number, tag: number, options: CallOptions | undefined, sync: boolean): Request {
    this.checkEnd(options);
    const iov = this.checkedSend(buffer, dest, tag);
    if (!sync && this.sendEager(iov, dest, tag)) return this.desk.sentRequest(tag, iov.bytes);
    const inner = this.startSend(iov, dest, tag, sync, canEnd(options));
    const request = this.desk.requestOf(inner);
    if (inner !== undefined && !inner.done) this.endBy(request, inner, options, NOT_SENT);
    return request;
  }

  /**
   * A request that sends what the buffer holds whenever it is started (MPI-4.1, section 3.9). From start() to the end of that send the
   * buffer belongs to the library.
   */
  sendInit(buffer: MessageBuffer, dest: number, tag = 0): PersistentRequest {
    return this.persistentSend(buffer, dest, tag, false);
  }

  /**
   * As sendInit(), and each send ends only once a receive has matched (MPI-4.1, section 3.9). From start() to the end of that send the
   * buffer belongs to the library.
   */
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

  /** A short message leaves at once: it is done on return, and no record of it is made for the caller. False: startSend() sends it. */
  private sendEager(iov: Iov, dest: number, tag: number): boolean {
    if (dest === PROC_NULL || tracedSince() !== undefined || sendChannel.hasSubscribers) return false;
    const { engine, logged, pml } = this.proc;
    // Where results are handed out by number each send has one: whether there is room at once is not the same for a successor.
    if (logged !== undefined && this.desk.turns !== undefined) return false;
    if (!pml.sendEager(this.members[dest], this.userCtx, tag, iov)) return false;
    engine.schedule();
    return true;
  }

  /** `canGiveUp`: a timeout or signal may end it. */
  protected startSend(iov: Iov, dest: number, tag: number, sync: boolean, canGiveUp = false): SendRequest | undefined {
    if (dest === PROC_NULL) return undefined;
    const { engine, pml } = this.proc;
    const sinceMs = tracedSince();
    const inner = pml.isend(this.members[dest], this.userCtx, tag, iov, sync, 0, canGiveUp);
    if (sinceMs !== undefined) this.desk.traceSend(inner, sinceMs, { peer: dest, sync });
    engine.schedule();
    // It was copied into the log, so that nobody waits for it: it is to be on its way while the next one is copied, or the program computes.
    if (inner.done && iov.bytes > COPIED_BYTES && this.proc.logged !== undefined) engine.poll();
    if (sendChannel.hasSubscribers) sendChannel.publish({ rank: this.rank, comm: this.name, dest, tag, bytes: iov.bytes });
    return inner;
  }

  // ---------------------------------------------------------------- receives

  /**
   * Receives a message (MPI-4.1, section 3.2.4). Resolves with its sender, tag and length when it is in the buffer; until then the buffer
   * belongs to the library. Messages of one sender are received in the order in which they were sent, as far as they match.
   *
   * @param buffer Where the message comes; it may be longer than the message.
   * @param source Rank of the sender, or ANY_SOURCE, which is the default; PROC_NULL: the call ends at once, with no data.
   * @param tag 0 to TAG_UB, or ANY_TAG, which is the default.
   * @param options When a receive that has not matched is taken back.
   * @throws ERR_TRUNCATE: the message was longer than the buffer, which holds its first bytes.
   * @throws ERR_ARG, ERR_BUFFER, ERR_RANK, ERR_TAG: an argument does not fit. ERR_BUFFER also when the memory was taken away while it was
   *   in use.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: the sender is gone, or, with ANY_SOURCE, everybody is, or the job was
   *   aborted. With the parameter `ft`, ANY_SOURCE ends so as soon as one member has failed that is not acknowledged (ackFailed()).
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  recv(buffer: MessageBuffer, source = ANY_SOURCE, tag = ANY_TAG, options?: CallOptions): Promise<Status> {
    try {
      if (options !== undefined) return this.requestRecv(buffer, source, tag, options).promise();
      const inner = this.startRecv(this.checkedRecv(buffer, source, tag), source, tag);
      if (inner === undefined) return Promise.resolve(PROC_NULL_STATUS);
      const { turns } = this.desk;
      const received = new Promise<Status>((resolve, reject) => {
        const settle = () => {
          if (inner.error === undefined) resolve(this.desk.received(inner));
          else reject(this.desk.failed(inner));
        };
        if (inner.done) settle();
        else inner.onDone = settle;
      });
      return turns === undefined ? received : turns.inTurn(received);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * As recv(), without a promise: returns when a message is in the buffer. The event loop does not run meanwhile.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part); the receive is taken back.
   */
  recvSync(buffer: MessageBuffer, source = ANY_SOURCE, tag = ANY_TAG, options?: SyncOptions): Status {
    this.checkEnd(options, SYNC_KEYS);
    const iov = this.checkedRecv(buffer, source, tag);
    const { endedReceive } = this;
    this.endedReceive = undefined;
    const inner = this.startRecv(iov, source, tag, false, endedReceive);
    if (inner === undefined) return PROC_NULL_STATUS;
    if (!inner.done) this.awaitReceive(inner, options?.timeoutMs);
    if (inner.error !== undefined) throw this.desk.failed(inner);
    // Whoever traces it may hold it still.
    if (inner.trace === undefined) this.endedReceive = inner;
    return this.desk.received(inner);
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

  /**
   * As sendrecv(), without promises: returns when both have ended. The event loop does not run meanwhile.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part). The message may still arrive.
   */
  sendrecvSync(
    sendBuffer: MessageBuffer,
    dest: number,
    sendTag: number,
    recvBuffer: MessageBuffer,
    source = ANY_SOURCE,
    recvTag = ANY_TAG,
    options?: SyncOptions,
  ): Status {
    this.checkEnd(options, SYNC_KEYS);
    const views = this.checkedSend(sendBuffer, dest, sendTag);
    const deadlineMs = options?.timeoutMs === undefined ? undefined : this.desk.now() + options.timeoutMs;
    const leftMs = () => (deadlineMs === undefined ? undefined : Math.max(0, deadlineMs - this.desk.now()));
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
    if (received.error !== undefined) throw this.desk.failed(received);
    return this.desk.received(received);
  }

  /**
   * Starts recv() and returns its Request at once (MPI-4.1, section 3.7.2). The buffer belongs to the library until the request has ended.
   * Wrong arguments throw.
   */
  irecv(buffer: MessageBuffer, source = ANY_SOURCE, tag = ANY_TAG, options?: CallOptions): Request {
    return this.requestRecv(buffer, source, tag, options, true);
  }

  /** `stays`: a failure that it reports leaves it active. */
  private requestRecv(buffer: MessageBuffer, source: number, tag: number, options?: CallOptions, stays = false): Request {
    this.checkEnd(options);
    const iov = this.checkedRecv(buffer, source, tag);
    const inner = this.startRecv(iov, source, tag, stays);
    const request = this.desk.requestOf(inner);
    if (stays) this.desk.keep(inner, request);
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

  /**
   * A request that receives into the buffer whenever it is started (MPI-4.1, section 3.9). From start() to the end of that receive the
   * buffer belongs to the library.
   */
  recvInit(buffer: MessageBuffer, source = ANY_SOURCE, tag = ANY_TAG): PersistentRequest {
    this.checkedRecv(buffer, source, tag);
    const request: PersistentRequest = new PersistentRequest(this.desk, () => {
      const inner = this.startRecv(this.checkedRecv(buffer, source, tag), source, tag, true);
      this.desk.keep(inner, request);
      return inner === undefined ? { inner, ended: PROC_NULL_STATUS } : { inner };
    });
    return request;
  }

  private checkedRecv(buffer: MessageBuffer, source: number, tag: number): Iov {
    this.mustBeUsable();
    checkSource(source, this.size);
    checkRecvTag(tag);
    return this.lastReceived.find(buffer) ?? this.lastReceived.keep(buffer, recvIov(buffer));
  }

  private startRecv(iov: Iov, source: number, tag: number, stays = false, ended?: RecvRequest): RecvRequest | undefined {
    if (source === PROC_NULL) return undefined;
    const { engine, pml } = this.proc;
    const sinceMs = tracedSince();
    const inner = pml.irecv(this.worldOf(source), this.userCtx, tag, iov, ended);
    if (sinceMs !== undefined) this.desk.traceReceive(inner, sinceMs, source);
    // What dead ranks had sent before is still received.
    if (source === ANY_SOURCE && !inner.matched) stays ? this.desk.endDeserted() : this.desk.memberGone();
    engine.schedule();
    return inner;
  }

  /**
   * Sends and receives at the same time, so that the two cannot block each other (MPI-4.1, section 3.10). Settles when both have ended,
   * with the status of the receive; until then both buffers belong to the library. When the send fails, a receive that has not matched is
   * taken back.
   *
   * @param sendBuffer What is sent.
   * @param dest Rank of the receiver; PROC_NULL: nothing is sent.
   * @param sendTag Tag of the send, 0 to TAG_UB.
   * @param recvBuffer Where the message comes; it shares no memory with `sendBuffer`.
   * @param source Rank of the sender, or ANY_SOURCE, which is the default; PROC_NULL: the call ends at once, with no data.
   * @param recvTag Tag of the receive, or ANY_TAG, which is the default.
   * @param options When both end before their time.
   * @throws ERR_TRUNCATE: the message was longer than the buffer, which holds its first bytes.
   * @throws ERR_ARG, ERR_BUFFER, ERR_RANK, ERR_TAG: an argument does not fit; nothing was sent. ERR_BUFFER also when the memory was taken
   *   away while it was in use.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: the other rank is gone, or the job was aborted.
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
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
    this.checkEnd(options);
    const sendViews = this.checkedSend(sendBuffer, dest, sendTag);
    const received = this.requestRecv(recvBuffer, source, recvTag);
    const sent = this.desk.requestOf(this.startSend(sendViews, dest, sendTag, false, canEnd(options)));
    const release = watchEnd(
      options,
      (error) => {
        endRequest(received, error);
        endRequest(sent, error);
      },
      NOT_EXCHANGED,
    );
    const both = Promise.allSettled([
      sent.ownPromise().catch((error) => {
        endRequest(received, error);
        throw error;
      }),
      received.ownPromise(),
    ]);
    const [sending, receiving] = await this.desk.inTurn(both);
    release?.();
    if (receiving.status === 'rejected') throw receiving.reason;
    if (sending.status === 'rejected') throw sending.reason;
    return receiving.value;
  }

  /**
   * As sendrecv() with one buffer: what it holds is sent, and what comes replaces it (MPI-4.1, section 3.10). The library copies what is
   * sent.
   *
   * @param buffer What is sent, and where the message comes.
   * @param dest Rank of the receiver; PROC_NULL: nothing is sent.
   * @param sendTag Tag of the send, 0 to TAG_UB.
   * @param source Rank of the sender, or ANY_SOURCE, which is the default; PROC_NULL: the call ends at once, with no data.
   * @param recvTag Tag of the receive, or ANY_TAG, which is the default.
   * @param options When both end before their time.
   * @throws ERR_TRUNCATE: the message was longer than the buffer, which holds its first bytes.
   * @throws ERR_ARG, ERR_BUFFER, ERR_RANK, ERR_TAG: an argument does not fit; nothing was sent. ERR_BUFFER also when the memory was taken
   *   away while it was in use.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: the other rank is gone, or the job was aborted.
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
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

  /**
   * As sendrecvReplace(), without promises: returns when both have ended. The event loop does not run meanwhile.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part). The message may still arrive.
   */
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

  /**
   * Waits for a message that matches, and leaves it where it is, for the next receive that matches it (MPI-4.1, section 3.8.1). Resolves
   * with its sender, tag and length.
   *
   * @param source Rank of the sender, or ANY_SOURCE, which is the default; PROC_NULL: the call ends at once, with no data.
   * @param tag 0 to TAG_UB, or ANY_TAG, which is the default.
   * @param options When the probe ends without a message.
   * @throws ERR_ARG, ERR_RANK, ERR_TAG: an argument does not fit.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: the sender is gone, or, with ANY_SOURCE, everybody is, or the job was
   *   aborted.
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  async probe(source = ANY_SOURCE, tag = ANY_TAG, options?: CallOptions): Promise<Status> {
    this.checkProbe(source, tag, options);
    if (source === PROC_NULL) return PROC_NULL_STATUS;
    return this.desk.statusOfEnvelope(await this.waitFor(source, tag, false, options));
  }

  /**
   * As probe(), without a promise. The event loop does not run meanwhile.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part).
   */
  probeSync(source = ANY_SOURCE, tag = ANY_TAG, options?: SyncOptions): Status {
    this.checkEnd(options, SYNC_KEYS);
    this.checkProbe(source, tag, undefined);
    if (source === PROC_NULL) return PROC_NULL_STATUS;
    return this.desk.statusOfEnvelope(this.findSync(source, tag, false, options?.timeoutMs));
  }

  private waitFor(source: number, tag: number, take: boolean, options: CallOptions | undefined): Promise<Envelope> {
    return this.desk.inTurn(this.proc.waitForMessage(this.worldOf(source), this.userCtx, tag, take, options));
  }

  private findSync(source: number, tag: number, take: boolean, timeoutMs: number | undefined): Envelope {
    const { proc, userCtx } = this;
    const { blocking } = proc;
    const world = this.worldOf(source);
    if (proc.replica !== undefined) return proc.replica.probeSync({ source: world, ctx: userCtx, tag }, take, timeoutMs);
    const any = proc.beginProbe(world, userCtx);
    let found: Envelope | undefined;
    const awaited = {
      // Asked again and again: what was taken out of the queue must not be looked for there.
      get done() {
        found ??= proc.findMessage(world, userCtx, tag, take, any);
        return found !== undefined;
      },
    };
    const inTime = blocking.wait(awaited, timeoutMs === undefined ? undefined : blocking.now() + timeoutMs);
    if (!inTime) throw timeoutError(timeoutMs as number);
    return found as Envelope;
  }

  /**
   * As probe(), without waiting (MPI-4.1, section 3.8.1): looks at the rails once, and returns undefined when no message that matches is
   * there.
   */
  iprobe(source = ANY_SOURCE, tag = ANY_TAG): Status | undefined {
    this.checkProbe(source, tag, undefined);
    if (source === PROC_NULL) return PROC_NULL_STATUS;
    const found = this.proc.lookForMessage(this.worldOf(source), this.userCtx, tag, false);
    return found === undefined ? undefined : this.desk.statusOfEnvelope(found);
  }

  /**
   * As probe(), but takes the message out of the queue: only the Message that it resolves with can receive it (MPI-4.1, section 3.8.2).
   * With PROC_NULL that is a message without data.
   *
   * @param source Rank of the sender, or ANY_SOURCE, which is the default; PROC_NULL: the call ends at once, with no data.
   * @param tag 0 to TAG_UB, or ANY_TAG, which is the default.
   * @param options When the probe ends without a message.
   * @throws ERR_ARG, ERR_RANK, ERR_TAG: an argument does not fit.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: the sender is gone, or, with ANY_SOURCE, everybody is, or the job was
   *   aborted.
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  async mprobe(source = ANY_SOURCE, tag = ANY_TAG, options?: CallOptions): Promise<Message> {
    this.checkProbe(source, tag, options);
    if (source === PROC_NULL) return this.messageOf(undefined);
    return this.messageOf(await this.waitFor(source, tag, true, options));
  }

  /**
   * As mprobe(), without a promise. The event loop does not run meanwhile.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part).
   */
  mprobeSync(source = ANY_SOURCE, tag = ANY_TAG, options?: SyncOptions): Message {
    this.checkEnd(options, SYNC_KEYS);
    this.checkProbe(source, tag, undefined);
    if (source === PROC_NULL) return this.messageOf(undefined);
    return this.messageOf(this.findSync(source, tag, true, options?.timeoutMs));
  }

  /**
   * As mprobe(), without waiting (MPI-4.1, section 3.8.2): looks at the rails once, and returns undefined when no message that matches is
   * there.
   */
  improbe(source = ANY_SOURCE, tag = ANY_TAG): Message | undefined {
    this.checkProbe(source, tag, undefined);
    if (source === PROC_NULL) return this.messageOf(undefined);
    const found = this.proc.lookForMessage(this.worldOf(source), this.userCtx, tag, true);
    return found === undefined ? undefined : this.messageOf(found);
  }

  protected checkProbe(source: number, tag: number, options: CallOptions | undefined): void {
    this.mustBeUsable();
    this.checkEnd(options);
    checkSource(source, this.size);
    checkRecvTag(tag);
  }

  /** As mprobe(), ended by the reader of a stream of messages, which has none under way then. */
  protected async nextMessage(source: number, tag: number, signal: AbortSignal): Promise<Message> {
    this.checkProbe(source, tag, undefined);
    if (signal.aborted) throw abortedError(signal);
    return this.messageOf(await this.waitFor(source, tag, true, { signal }));
  }

  private messageOf(envelope: Envelope | undefined): Message {
    if (envelope === undefined) return new Message(PROC_NULL_STATUS, () => this.desk.requestOf(undefined));
    if (this.proc.ft !== undefined) this.taken.add(envelope);
    return new Message(this.desk.statusOfEnvelope(envelope), (iov) => this.desk.requestOf(this.startMatched(envelope, iov)));
  }

  /** Also while the communicator is being freed: a message that was matched before is under way on it (MPI-4.1, section 7.4.3). */
  protected startMatched(envelope: Envelope, iov: Iov): RecvRequest {
    this.proc.mustBeActive();
    if (this.revocation !== undefined) throw this.revocation;
    if (this.freed !== undefined && !this.proc.isOpen(this.userCtx)) throw this.freed;
    this.taken.delete(envelope);
    const inner = this.proc.pml.imrecv(envelope, iov);
    this.proc.engine.schedule();
    return inner;
  }

  // ---------------------------------------------------------------- ranks

  /** Under asynchronous recovery a call is refused whose outcome a successor could not repeat. */
  protected mustNotBeLogged(what: string, instead = 'name the source of each message'): void {
    if (this.proc.logged?.covers(this.userCtx) !== true) return;
    throw new MultirailError(
      'ERR_SUPPORT',
      `recovery 'asynchronous' does not support ${what} on ${this.name}: a successor could not repeat it; ${instead}, or choose recovery 'coordinated'`,
      { rank: this.proc.rank },
    );
  }

  private worldOf(source: number): number {
    if (source === ANY_SOURCE && this.proc.logged?.takesAnybody === false)
      this.mustNotBeLogged('ANY_SOURCE', "name the source of each message, have outcomes recorded (determinism: 'recorded')");
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
