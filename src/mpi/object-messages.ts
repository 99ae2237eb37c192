// Messages that are values instead of buffers, by structured clone, and streams of messages.
import { MultirailError } from '../errors.ts';
import type { RecvRequest, SendRequest } from '../pml/records.ts';
import { EMPTY_IOV } from '../util/iov.ts';
import { allocate, sendIov } from './buffers.ts';
import {
  ANY_SOURCE,
  ANY_TAG,
  type CallOptions,
  canEnd,
  checkDest,
  checkKeys,
  checkSendTag,
  PROC_NULL,
  SYNC_KEYS,
  type SyncOptions,
} from './constants.ts';
import { ctxOf, OBJECT } from './contexts.ts';
import { MessageStream, type ReceivedMessage } from './message-stream.ts';
import { decodeHeader, decodeObject, encodeObject, type ObjectHeader, PLACE_TAG_FIRST, PLACE_TAGS } from './objects.ts';
import { ended, PointToPoint } from './point-to-point.ts';
import type { Status } from './status.ts';

export class ObjectMessages extends PointToPoint {
  private readonly objectCtx = ctxOf(this.contextId, OBJECT);
  protected nextPlace = 0;

  /**
   * Sends a value by structured clone; recvObject() receives it, in order with all other messages. Memory of ArrayBuffers and views from 64
   * KiB on is sent from where it is, uncopied: like any buffer it belongs to the library until the promise settles.
   *
   * @param value What structured clone takes: no functions, no classes of your own.
   * @param dest Rank of the receiver; PROC_NULL: nothing is sent.
   * @param tag 0 to TAG_UB; 0 by default.
   * @param options When the send is given up; its message may still arrive.
   * @throws ERR_ARG: the value cannot be cloned, or an option does not fit; nothing was sent.
   * @throws ERR_RANK, ERR_TAG: the rank or tag does not fit; nothing was sent.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: the other rank is gone, or the job was aborted.
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  async sendObject(value: unknown, dest: number, tag = 0, options?: CallOptions): Promise<void> {
    this.checkEnd(options);
    const started = this.startObject(value, dest, tag, canEnd(options));
    const release = this.watchSends(started, options);
    const ends = await this.desk.inTurn(Promise.allSettled(started.map((inner) => ended(inner))));
    release?.();
    for (const end of ends) if (end.status === 'rejected') throw end.reason;
  }

  /**
   * As sendObject(), without a promise: returns when the memory of the value may be used again. The event loop does not run meanwhile.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part); nothing was sent.
   */
  sendObjectSync(value: unknown, dest: number, tag = 0, options?: SyncOptions): void {
    this.checkEnd(options, SYNC_KEYS);
    this.mustBeUsable();
    this.mustReachByPolling();
    const started = this.startObject(value, dest, tag, canEnd(options));
    const deadlineMs = options?.timeoutMs === undefined ? undefined : this.desk.now() + options.timeoutMs;
    let failure: unknown;
    for (const inner of started) {
      try {
        this.finishSync(inner, deadlineMs === undefined ? undefined : Math.max(0, deadlineMs - this.desk.now()));
      } catch (error) {
        failure ??= error;
      }
    }
    if (failure !== undefined) throw failure;
  }

  /** Starts the message with the value, and the one with its large memory where it has some. */
  private startObject(value: unknown, dest: number, tag: number, canGiveUp: boolean): SendRequest[] {
    this.mustBeUsable();
    checkDest(dest, this.size);
    checkSendTag(tag);
    const place = PLACE_TAG_FIRST + (this.nextPlace++ % PLACE_TAGS);
    const { header, bulk } = encodeObject(value, place, this.proc.pml.comparesBytes(this.objectCtx));
    const sent = this.startSend(sendIov(header), dest, tag, false, canGiveUp);
    if (sent === undefined) return [];
    if (bulk.length === 0) return [sent];
    const { engine, pml } = this.proc;
    // Its own place in the internal context, so that no other receive can come between the header and its memory.
    const moved = pml.isend(this.members[dest], this.objectCtx, place, sendIov(bulk), false, 0, canGiveUp);
    engine.schedule();
    return [moved, sent];
  }

  /**
   * Receives a value that sendObject() sent. Resolves with the value, and with sender, tag and length of its message.
   *
   * @param source Rank of the sender, or ANY_SOURCE, which is the default; PROC_NULL: the call ends at once, with no data.
   * @param tag 0 to TAG_UB, or ANY_TAG, which is the default.
   * @param options When the wait for the message ends; once it is there, it is received to its end.
   * @throws ERR_ARG: the message that matched is not of sendObject(), and is used up; or an option does not fit.
   * @throws ERR_RANK, ERR_TAG: the rank or tag does not fit.
   * @throws ERR_BUFFER: there is no memory for the value.
   * @throws ERR_SUPPORT: the value holds an array of a class that this Node does not have.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: the sender is gone, or, with ANY_SOURCE, everybody is, or the job was
   *   aborted.
   * @throws ERR_TIMEOUT, ERR_ABORTED: the options ended the call.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  async recvObject<T = unknown>(source = ANY_SOURCE, tag = ANY_TAG, options?: CallOptions): Promise<{ data: T; status: Status }> {
    const message = await this.mprobe(source, tag, options);
    if (message.status.source === PROC_NULL) return { data: undefined as T, status: message.status };
    const bytes = await message.recvBytes();
    const header = decodeHeader(bytes, message.status);
    const bulk = this.startBulk(header, message.status.source);
    if (bulk.inner !== undefined) await this.desk.inTurn(ended(bulk.inner)).catch(() => undefined);
    return { data: decodeObject(header, bulk.taken()) as T, status: message.status };
  }

  /**
   * As recvObject(), without a promise. The event loop does not run meanwhile.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part); nothing was taken.
   */
  recvObjectSync<T = unknown>(source = ANY_SOURCE, tag = ANY_TAG, options?: SyncOptions): { data: T; status: Status } {
    this.mustBeUsable();
    this.mustReachByPolling();
    const message = this.mprobeSync(source, tag, options);
    if (message.status.source === PROC_NULL) return { data: undefined as T, status: message.status };
    const header = decodeHeader(message.recvBytesSync(), message.status);
    const bulk = this.startBulk(header, message.status.source);
    if (bulk.inner !== undefined) this.desk.wait(bulk.inner);
    return { data: decodeObject(header, bulk.taken()) as T, status: message.status };
  }

  /** Starts the receive of the memory that belongs to a header. When it has ended, `taken` gives that memory, or throws what went wrong. */
  private startBulk(header: ObjectHeader, source: number): { inner: RecvRequest | undefined; taken: () => Uint8Array<ArrayBuffer>[] } {
    if (header.regionBytes.length === 0) return { inner: undefined, taken: () => [] };
    let memory: Uint8Array<ArrayBuffer>[] | undefined;
    let failure: unknown;
    try {
      memory = header.regionBytes.map(allocate);
    } catch (error) {
      // The sender waits for its memory to be taken: it is received into nothing, and truncated.
      failure = error;
    }
    const { engine } = this.proc;
    const iov = memory === undefined ? EMPTY_IOV : sendIov(memory);
    const inner = this.proc.pml.irecv(this.members[source], this.objectCtx, header.place, iov);
    engine.schedule();
    const taken = () => {
      const { error } = inner;
      if (error !== undefined && (memory !== undefined || error.code !== 'ERR_TRUNCATE')) throw error;
      if (memory === undefined) throw failure;
      return memory;
    };
    return { inner, taken };
  }

  /**
   * The messages that match, one after the other, each in memory of its own: `for await (const { data, status } of comm.messages())`. No
   * more than one is taken ahead of its reader. Leaving the loop ends it, and leaves further messages where they are.
   *
   * @param source Rank of the senders, or ANY_SOURCE, which is the default.
   * @param tag 0 to TAG_UB, or ANY_TAG, which is the default.
   * @param options `signal` ends the loop with ERR_ABORTED.
   * @throws ERR_ARG, ERR_RANK, ERR_TAG: an argument does not fit, or the source is PROC_NULL.
   * @throws ERR_BUFFER: there is no memory for a message.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: the sender is gone, or, with ANY_SOURCE, everybody is, or the job was
   *   aborted.
   * @throws ERR_ABORTED: the signal ended the loop.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  messages(source = ANY_SOURCE, tag = ANY_TAG, options: { signal?: AbortSignal } = {}): AsyncIterableIterator<ReceivedMessage> {
    checkKeys(options, ['signal']);
    this.checkProbe(source, tag, options);
    if (source === PROC_NULL) throw new MultirailError('ERR_RANK', 'source is PROC_NULL, from which no messages come');
    return new MessageStream((signal) => this.nextMessage(source, tag, signal), options.signal);
  }
}
