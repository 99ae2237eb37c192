// A message that a matched probe took out of the queue: it can be received here and nowhere else, once.
import { MultirailError } from '../errors.ts';
import { EMPTY_IOV, type Iov } from '../util/iov.ts';
import { allocate, type MessageBuffer, recvIov } from './buffers.ts';
import type { Request } from './request.ts';
import type { Status } from './status.ts';

/** A message that a matched probe took out of the queue: it can be received here and nowhere else, once (MPI-4.1, section 3.8.2). */
export class Message {
  /** Sender, tag and length of the message. */
  readonly status: Status;
  private start: ((iov: Iov) => Request) | undefined;

  /** @internal */
  constructor(status: Status, start: (iov: Iov) => Request) {
    this.status = status;
    this.start = start;
  }

  /**
   * Starts to receive it and returns the Request at once (MPI-4.1, section 3.8.3). The buffer belongs to the library until the request has
   * ended.
   */
  irecv(buffer: MessageBuffer): Request {
    return this.startInto(recvIov(buffer));
  }

  private startInto(iov: Iov): Request {
    const { start } = this;
    if (start === undefined)
      throw new MultirailError(
        'ERR_REQUEST',
        'this Message was received before; expected one that was not: each is received once, and mprobe() takes the next',
      );
    this.start = undefined;
    return start(iov);
  }

  /**
   * Receives it into the buffer, and resolves with its status (MPI-4.1, section 3.8.3). The buffer belongs to the library until then.
   *
   * @param buffer Where the message comes; it may be longer than the message.
   * @throws ERR_TRUNCATE: the message was longer than the buffer, which holds its first bytes.
   * @throws ERR_BUFFER: it is not a buffer, or its memory was taken away.
   * @throws ERR_REQUEST: the message was received before.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: the other rank is gone, or the job was aborted.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  async recv(buffer: MessageBuffer): Promise<Status> {
    return this.irecv(buffer).promise();
  }

  /**
   * As recv(), without a promise. The event loop does not run meanwhile.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part).
   */
  recvSync(buffer: MessageBuffer): Status {
    return this.irecv(buffer).waitSync();
  }

  /**
   * Receives it into memory that is made for it, and resolves with that.
   *
   * @throws ERR_BUFFER: there is no memory for it; the message is used up.
   * @throws ERR_REQUEST: the message was received before.
   * @throws ERR_PROC_FAILED, ERR_PROC_UNREACHABLE, ERR_ABORT: the other rank is gone, or the job was aborted.
   * @throws ERR_COMM, ERR_FINALIZED: the communicator was freed, or finalize() was called.
   */
  async recvBytes(): Promise<Uint8Array<ArrayBuffer>> {
    const { memory, failure, request } = this.startBytes();
    if (memory === undefined) {
      await request.promise().catch(() => undefined);
      throw failure;
    }
    await request.promise();
    return memory;
  }

  /**
   * As recvBytes(), without a promise. The event loop does not run meanwhile.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part).
   */
  recvBytesSync(): Uint8Array<ArrayBuffer> {
    const { memory, failure, request } = this.startBytes();
    try {
      request.waitSync();
    } catch (error) {
      throw memory === undefined ? failure : error;
    }
    if (memory === undefined) throw failure;
    return memory;
  }

  /** Where there is no memory for it, it is received into nothing: the sender waits for the message to be taken. */
  private startBytes(): { memory: Uint8Array<ArrayBuffer> | undefined; failure: unknown; request: Request } {
    let memory: Uint8Array<ArrayBuffer> | undefined;
    let failure: unknown;
    try {
      memory = allocate(this.status.bytes);
    } catch (error) {
      failure = error;
    }
    return { memory, failure, request: this.startInto(memory === undefined ? EMPTY_IOV : recvIov(memory)) };
  }
}
