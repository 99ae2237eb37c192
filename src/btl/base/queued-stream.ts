// What ByteStreams over Node's own sockets share: callbacks only queue what came and ask for a poll, the socket is paused above a bound,
// and after destroy() no callback is called.
import type { RailReason } from '../btl.ts';
import { type ByteStream, STREAM_INBOUND_BYTES_MAX, type StreamReader, type StreamStatus } from './byte-stream.ts';

const nothing = (): void => {};

/** What a socket error says about the rail. */
export function socketFailure(error: NodeJS.ErrnoException, connecting: boolean): RailReason {
  const text = error.message;
  if (connecting)
    return { kind: error.code === 'ETIMEDOUT' ? 'timeout' : 'error', text, ...(error.code === 'ECONNREFUSED' && { isNobody: true }) };
  return { kind: error.code === 'ECONNRESET' || error.code === 'EPIPE' ? 'closed' : 'error', text };
}

export abstract class QueuedStream implements ByteStream {
  status: StreamStatus;
  failure: RailReason | undefined = undefined;
  localAddress = '';
  remoteAddress = '';
  remotePort = 0;
  onEvent: () => void = nothing;
  onNews: () => void = nothing;
  wantsRoom = false;
  /** Chunks that came in and wait for poll(): a queue with a moving head. */
  private chunks: Uint8Array[] = [];
  private head = 0;
  private waitingBytes = 0;
  private paused = false;
  protected destroyed = false;
  /** For the socket to call when it has written. */
  protected readonly written = (): void => {
    if (this.wantsRoom) this.event();
  };

  constructor(isOpen: boolean) {
    this.status = isOpen ? 'open' : 'connecting';
  }

  abstract readonly queuedBytes: number;
  abstract write(chunks: readonly Uint8Array[]): void;
  abstract end(): void;
  /** Stops and resumes reading of the socket. */
  protected abstract pause(): void;
  protected abstract resume(): void;
  /** Closes the socket at once. */
  protected abstract abandon(): void;

  get inboundBytes(): number {
    return this.waitingBytes;
  }

  get hasNews(): boolean {
    return this.waitingBytes > 0 || this.status !== 'open';
  }

  poll(reader: StreamReader, budgetBytes: number): number {
    let taken = 0;
    while (this.head < this.chunks.length && taken < budgetBytes && !reader.stopped) {
      const chunk = this.chunks[this.head++];
      this.waitingBytes -= chunk.length;
      taken += chunk.length;
      reader.push(chunk);
    }
    if (this.head === this.chunks.length) this.clear();
    if (this.paused && this.waitingBytes < STREAM_INBOUND_BYTES_MAX / 2 && !this.destroyed) {
      this.paused = false;
      this.resume();
    }
    return taken;
  }

  destroy(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.onEvent = nothing;
    this.clear();
    this.close({ kind: 'closed', text: 'closed here' });
    this.abandon();
  }

  /** The connection is there. */
  protected opened(): void {
    if (this.status !== 'connecting') return;
    this.status = 'open';
    this.event();
  }

  protected received(chunk: Uint8Array): void {
    if (this.destroyed || chunk.length === 0) return;
    this.chunks.push(chunk);
    this.waitingBytes += chunk.length;
    if (this.waitingBytes <= STREAM_INBOUND_BYTES_MAX || this.paused) return;
    this.paused = true;
    this.pause();
  }

  /** The first reason counts. */
  protected close(reason: RailReason): void {
    if (this.status === 'closed') return;
    this.status = 'closed';
    this.failure = reason;
    this.event();
  }

  protected event(): void {
    if (!this.destroyed) this.onEvent();
  }

  private clear(): void {
    this.chunks = [];
    this.head = 0;
    this.waitingBytes = 0;
  }
}
