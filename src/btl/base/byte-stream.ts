// The seam between a rail and what carries its bytes: node:net and ws implement it, and so does a native stream. Types only. A stream never
// calls into the rail except through `onEvent`, which only asks for a poll; the rail learns everything from poll() and the properties,
// inside progress(). A stream over node:net therefore queues what its callbacks bring; a native stream queues nothing and reads the socket
// inside poll(), straight to where the payload belongs.
import type { RailReason } from '../btl.ts';

/** Takes the bytes of a stream; the framer is one. */
export interface StreamReader {
  /** A chunk of the stream, valid during the call: the first `bytes` bytes of it, or all. */
  push(chunk: Uint8Array, bytes?: number): void;
  /**
   * Where the next bytes of the stream belong when that is known (the rest of a placed payload's view), else undefined.
   * A stream that reads by itself may read there and then say `filled(bytes)` instead of `push`. Ask again each time:
   * a sink may be revoked between two calls.
   */
  target(): Uint8Array | undefined;
  filled(bytes: number): void;
  /** True once the reader wants no more bytes: poll() returns at once. */
  readonly stopped: boolean;
}

/** CONNECTING: no answer yet. OPEN: bytes flow. CLOSED: ended by either side; bytes that came before may still be polled. */
export type StreamStatus = 'connecting' | 'open' | 'closed';

export interface ByteStream {
  readonly status: StreamStatus;
  /** Why it is closed; undefined while it is not. */
  readonly failure: RailReason | undefined;
  /** Bytes that came in and wait for poll(). Bounded: the stream stops reading above STREAM_INBOUND_BYTES_MAX. */
  readonly inboundBytes: number;
  /** poll() may find something: bytes, or what has become of the stream. Where it cannot be told without a look, it may. */
  readonly hasNews: boolean;
  /** The stream reads by itself, and its last poll() stopped at its budget, or a failure waits for the next one. Poll soon. */
  readonly more?: boolean;
  /** Bytes given to write() that the kernel has not taken yet. */
  readonly queuedBytes: number;
  /** Addresses as the kernel tells them, once open. */
  readonly localAddress: string;
  readonly remoteAddress: string;
  readonly remotePort: number;
  /** The open socket, where there is one to be asked about (TCP_INFO); -1 or undefined where there is none. */
  readonly descriptor?: number;
  /** Gives the descriptor away: the caller closes it, and this stream is closed from here on. -1 when there is none. */
  detach?(): number;
  /** Set by the owner: something changed, poll soon. Never called from inside a method of the stream. */
  onEvent: () => void;
  /** Set by the owner, and called when poll() has something to do where onEvent is not: it only notes that. */
  onNews: () => void;
  /** Set by the owner: also call onEvent when queuedBytes has fallen. */
  wantsRoom: boolean;
  /** Hands over what has come in, about `budgetBytes` at most; returns how many bytes. */
  poll(reader: StreamReader, budgetBytes: number): number;
  /** One flush. The bytes must not change until they are written or the stream is destroyed. */
  write(chunks: readonly Uint8Array[]): void;
  /** As write() of bytes[from, to), for streams that spare a view. */
  writePiece?(bytes: Uint8Array, from: number, to: number): void;
  /** Copies what was given to write() and waits for the kernel: that memory is not read any more. Absent where it cannot be told. */
  letGo?(): void;
  /** Writes out what is queued, then closes in good order. */
  end(): void;
  /** Synchronous: no byte of a buffer given to it is read or written any more, and no onEvent follows. */
  destroy(): void;
}

/** Received bytes that may wait for poll(); the socket is paused above it. */
export const STREAM_INBOUND_BYTES_MAX = 1024 * 1024;
