// A message that a matched probe took out of the queue: it can be received here and nowhere else, once.
import { MultirailError } from '../errors.ts';
import { EMPTY_IOV, type Iov } from '../util/iov.ts';
import { allocate, type MessageBuffer, recvIov } from './buffers.ts';
import type { Request } from './request.ts';
import type { Status } from './status.ts';

export class Message {
  /** Sender, tag and length. */
  readonly status: Status;
  private start: ((iov: Iov) => Request) | undefined;

  constructor(status: Status, start: (iov: Iov) => Request) {
    this.status = status;
    this.start = start;
  }

  irecv(buffer: MessageBuffer): Request {
    return this.startInto(recvIov(buffer));
  }

  private startInto(iov: Iov): Request {
    const { start } = this;
    if (start === undefined) throw new MultirailError('ERR_REQUEST', 'this message was received before');
    this.start = undefined;
    return start(iov);
  }

  async recv(buffer: MessageBuffer): Promise<Status> {
    return this.irecv(buffer).promise();
  }

  /** As recv(), without a promise: the event loop does not run meanwhile. */
  recvSync(buffer: MessageBuffer): Status {
    return this.irecv(buffer).waitSync();
  }

  /** Receives into memory made for it. */
  async recvBytes(): Promise<Uint8Array<ArrayBuffer>> {
    const { memory, failure, request } = this.startBytes();
    if (memory === undefined) {
      await request.promise().catch(() => undefined);
      throw failure;
    }
    await request.promise();
    return memory;
  }

  /** As recvBytes(), without a promise. */
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
