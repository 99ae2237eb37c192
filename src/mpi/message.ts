// A message that a matched probe took out of the queue: it can be received here and nowhere else, once.
// May import: errors, util, buffers.ts, request.ts, status.ts.
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
    const iov = recvIov(buffer);
    const { start } = this;
    if (start === undefined) throw new MultirailError('ERR_REQUEST', 'this message was received before');
    this.start = undefined;
    return start(iov);
  }

  async recv(buffer: MessageBuffer): Promise<Status> {
    return this.irecv(buffer).promise();
  }

  /** Receives into memory made for it. */
  async recvBytes(): Promise<Uint8Array<ArrayBuffer>> {
    let memory: Uint8Array<ArrayBuffer>;
    try {
      memory = allocate(this.status.bytes);
    } catch (error) {
      // The sender waits for the message to be taken: it is received into nothing.
      await this.start?.(EMPTY_IOV).then(null, () => undefined);
      throw error;
    }
    await this.recv(memory);
    return memory;
  }
}
