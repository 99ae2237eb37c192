// How requests end: what a send or a receive says of its message once the protocol is through with it, and why a buffer that was taken
// away ends it with an error.
import { MultirailError } from '../errors.ts';
import type { PmlCore } from './core.ts';
import type { RecvRequest, SendMessage, SendRequest } from './records.ts';

/** Nothing of the message lies on a rail any more, or nothing of the user's memory is read: the user gets the buffer back. */
export function completeSend(core: PmlCore, message: SendMessage, request: SendRequest): void {
  message.request = undefined;
  request.message = undefined;
  core.givenUp.delete(message);
  // What the peer read by itself may have been other bytes by then.
  if (request.error === undefined && (message.isVoid || (message.protocol === 'RGET' && message.buffer.isGone))) {
    request.error = new MultirailError(
      'ERR_BUFFER',
      `the buffer of a send of ${message.bytes} bytes to rank ${message.peer.rank} with tag ${message.tag} was detached while it was in use: its memory was transferred elsewhere, or a WebAssembly memory grew`,
      { rank: core.options.rank, peer: message.peer.rank, tag: message.tag },
    );
  }
  core.complete(request);
}

/** `bytes` of a message of `messageBytes` bytes are in the buffer; -1: the buffer is gone. */
export function completeReceive(core: PmlCore, request: RecvRequest, bytes: number, messageBytes: number): void {
  if (bytes < 0 || request.buffer.isGone) request.error ??= bufferGone(core, request);
  const isLost = request.error !== undefined;
  request.receivedBytes = isLost ? 0 : bytes;
  core.counters.messagesReceived++;
  core.counters.bytesReceived += request.receivedBytes;
  if (messageBytes > request.buffer.bytes && !isLost) {
    core.counters.truncations++;
    request.error = new MultirailError(
      'ERR_TRUNCATE',
      `a message of ${messageBytes} bytes from rank ${request.matchedSource} with tag ${request.matchedTag} was received into a buffer of ${request.buffer.bytes} bytes`,
      { rank: core.options.rank, peer: request.matchedSource, tag: request.matchedTag },
    );
  }
  core.complete(request);
}

/** Seen when the buffer of a receive is used next, and at the end: nobody says when memory is taken away. */
export function bufferGone(core: PmlCore, request: RecvRequest): MultirailError {
  return new MultirailError(
    'ERR_BUFFER',
    `the buffer of a receive of a message from rank ${request.matchedSource} with tag ${request.matchedTag} was detached while it was in use: its memory was transferred elsewhere, or a WebAssembly memory grew`,
    { rank: core.options.rank, peer: request.matchedSource, tag: request.matchedTag },
  );
}

/** The sender said so in its envelope, or in place of its data. */
export function senderLostBuffer(core: PmlCore, source: number, tag: number): MultirailError {
  return new MultirailError(
    'ERR_BUFFER',
    `rank ${source} could not send its message with tag ${tag}: its buffer was detached while it was in use`,
    { rank: core.options.rank, peer: source, tag },
  );
}

/** Why nothing can be sent to that peer, or come from it, any more. */
export function hasLeft(rank: number, peer: number): MultirailError {
  return new MultirailError('ERR_PROC_FAILED', `rank ${peer} has left the job: it called finalize()`, { rank, peer });
}

export function unknownPeer(rank: number): never {
  throw new MultirailError('ERR_INTERNAL', `unknown peer ${rank}`);
}
