// Sends that their users gave up: the user wants the buffer back before the send has ended. What has not left is copied, the request ends
// with the error, and the message goes on: it has its number. Where the memory cannot be given back yet, the request ends later.
import type { MultirailError } from '../errors.ts';
import { EMPTY_IOV, Iov } from '../util/iov.ts';
import type { PmlCore } from './core.ts';
import { completeSend } from './outcome.ts';
import type { SendMessage, SendRequest } from './records.ts';

export class GivenUpSends {
  private readonly core: PmlCore;

  constructor(core: PmlCore) {
    this.core = core;
  }

  /** Nothing happens to a request that is done. */
  giveUp(request: SendRequest, error: MultirailError): void {
    const { message } = request;
    if (request.done) return;
    if (message === undefined) return this.core.tap?.giveUp(request, error);
    if (message.logged !== undefined) {
      // It goes on from the log, whoever waits for it.
      request.error = error;
      return completeSend(this.core, message, request);
    }
    message.givenUp ??= error;
    this.core.givenUp.add(message);
    this.giveBack(message);
  }

  /** Rails and copies may have let go of something since. */
  retry(): void {
    for (const message of this.core.givenUp) this.giveBack(message);
  }

  private giveBack(message: SendMessage): void {
    const { core } = this;
    const { request, givenUp } = message;
    if (request === undefined || givenUp === undefined) return;
    message.givingBack = this.reasonToKeep(message);
    if (message.givingBack !== '') return;
    if (message.logicallyComplete) {
      completeSend(core, message, request);
      return;
    }
    // A buffer that was detached is read by nobody: the peer is told that its message has no data.
    if (!message.buffer.isGone) {
      const [from, to] = this.leftToSend(message);
      const copy = new Uint8Array(to - from);
      new Iov(message.slice(from, to)).copyTo(copy, 0);
      message.readFrom(copy.length === 0 ? EMPTY_IOV : new Iov([copy]), from);
      message.copiedBytes = copy.length;
      core.abandonedBytes += copy.length;
    }
    core.counters.givenUp++;
    request.error = givenUp;
    completeSend(core, message, request);
  }

  /** Why the user's memory is needed still; empty when it is not, but for a copy that can be made. */
  private reasonToKeep(message: SendMessage): string {
    const { abandonedBytesMax } = this.core.options;
    if (message.readable.length > 0) return 'the peer may read the memory until it has received the message';
    if (!message.logicallyComplete) {
      const [from, to] = this.leftToSend(message);
      if (this.core.abandonedBytes + to - from > abandonedBytesMax)
        return `there is no room for a copy of the ${to - from} bytes that are left (pml_abandoned_bytes_max)`;
    }
    if (message.putsUnderWay > 0) return `${message.putsUnderWay} puts read the memory`;
    if (message.itemsOnRail === 0) return '';
    let waits = '';
    // Each is asked: those behind one that has not let go may have let go by the next time.
    for (const { endpoint, key } of message.peer.bml.rails) if (endpoint.letGo?.() !== true) waits = `rail ${key} reads the memory`;
    return waits;
  }

  /**
   * The range in which all lies that may be asked for again. What the peer has from the first byte on it keeps; above a hole it may
   * forget what it has (a RESTARTACK names so many ranges and no more).
   */
  private leftToSend(message: SendMessage): [from: number, to: number] {
    if (message.state === 'ENVELOPE' || message.delivered === undefined) return [0, message.bytes];
    const first = message.delivered.firstMissing(0, message.takeBytes);
    return [first === -1 ? message.takeBytes : first, message.takeBytes];
  }
}
