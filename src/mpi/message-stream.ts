// comm.messages(): an iterator over the messages that match. Written out rather than as an async generator, whose return() would
// wait for the very message that it should stop waiting for.
import { MultirailError } from '../errors.ts';
import type { Message } from './message.ts';
import type { Status } from './status.ts';

/** One message of Communicator.messages(). */
export interface ReceivedMessage {
  /** Its bytes, in memory of their own, which is the reader's. */
  data: Uint8Array<ArrayBuffer>;
  /** Sender, tag and length. */
  status: Status;
}

const END: IteratorReturnResult<undefined> = { done: true, value: undefined };

export class MessageStream implements AsyncIterableIterator<ReceivedMessage> {
  private readonly probe: (signal: AbortSignal) => Promise<Message>;
  private readonly stop = new AbortController();
  private readonly signal: AbortSignal | undefined;
  private readonly onAbort = () => this.stop.abort(this.signal?.reason);
  /** Calls of next() wait for each other: one message at a time. */
  private last: Promise<unknown> = Promise.resolve();
  private returned = false;

  constructor(probe: (signal: AbortSignal) => Promise<Message>, signal: AbortSignal | undefined) {
    this.probe = probe;
    this.signal = signal;
    signal?.addEventListener('abort', this.onAbort);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<ReceivedMessage, undefined>> {
    const result = this.last.then(() => this.take());
    this.last = result.catch(() => undefined);
    return result;
  }

  private async take(): Promise<IteratorResult<ReceivedMessage, undefined>> {
    if (this.returned) return END;
    try {
      const message = await this.probe(this.stop.signal);
      return { done: false, value: { data: await message.recvBytes(), status: message.status } };
    } catch (error) {
      const stopped = this.returned && error instanceof MultirailError && error.code === 'ERR_ABORTED';
      this.close();
      if (stopped) return END;
      throw error;
    }
  }

  return(): Promise<IteratorResult<ReceivedMessage, undefined>> {
    this.close();
    return Promise.resolve(END);
  }

  private close(): void {
    if (this.returned) return;
    this.returned = true;
    this.signal?.removeEventListener('abort', this.onAbort);
    this.stop.abort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }
}
