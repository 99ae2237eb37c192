// A ByteStream over a node:net socket (also a TLS one). May import: Node, btl.ts (types), base/byte-stream.
// The socket's callbacks only queue and ask for a poll. A flush is one writev: the socket is corked around its chunks.
import type { Socket } from 'node:net';
import { type ByteStream, STREAM_INBOUND_BYTES_MAX, type StreamReader, type StreamStatus } from '../base/byte-stream.ts';
import type { RailReason } from '../btl.ts';

/** What a socket error says about the rail. */
export function socketFailure(error: NodeJS.ErrnoException, connecting: boolean): RailReason {
  const text = error.message;
  if (connecting) return { kind: error.code === 'ETIMEDOUT' ? 'timeout' : 'error', text };
  return { kind: error.code === 'ECONNRESET' || error.code === 'EPIPE' ? 'closed' : 'error', text };
}

/** Chunks that came in and wait for poll(): a queue with a moving head. */
export class InboundQueue {
  bytes = 0;
  private chunks: Uint8Array[] = [];
  private head = 0;

  push(chunk: Uint8Array): void {
    this.chunks.push(chunk);
    this.bytes += chunk.length;
  }

  poll(reader: StreamReader, budgetBytes: number): number {
    let taken = 0;
    while (this.head < this.chunks.length && taken < budgetBytes && !reader.stopped) {
      const chunk = this.chunks[this.head++];
      this.bytes -= chunk.length;
      taken += chunk.length;
      reader.push(chunk);
    }
    if (this.head === this.chunks.length) {
      this.chunks = [];
      this.head = 0;
    }
    return taken;
  }

  clear(): void {
    this.chunks = [];
    this.head = 0;
    this.bytes = 0;
  }
}

const nothing = (): void => {};

export class NetStream implements ByteStream {
  status: StreamStatus;
  failure: RailReason | undefined;
  localAddress = '';
  remoteAddress = '';
  remotePort = 0;
  onEvent: () => void = nothing;
  wantsRoom = false;
  private readonly socket: Socket;
  private readonly inbound = new InboundQueue();
  private paused = false;
  private destroyed = false;
  private readonly written = (): void => {
    if (this.wantsRoom && !this.destroyed) this.onEvent();
  };

  constructor(socket: Socket) {
    this.socket = socket;
    this.status = socket.connecting ? 'connecting' : 'open';
    if (this.status === 'open') this.takeAddresses();
    socket.setNoDelay(true);
    socket.on('connect', () => {
      if (this.status !== 'connecting') return;
      this.takeAddresses();
      this.status = 'open';
      this.event();
    });
    socket.on('data', (chunk: Buffer) => {
      if (this.destroyed) return;
      this.inbound.push(chunk);
      if (this.inbound.bytes > STREAM_INBOUND_BYTES_MAX && !this.paused) {
        this.paused = true;
        socket.pause();
      }
      this.event();
    });
    socket.on('end', () => this.close({ kind: 'closed', text: 'the peer closed the connection' }));
    socket.on('error', (error: NodeJS.ErrnoException) => this.close(socketFailure(error, this.status === 'connecting')));
    socket.on('close', () => this.close({ kind: 'closed', text: 'the connection is closed' }));
  }

  get inboundBytes(): number {
    return this.inbound.bytes;
  }

  get queuedBytes(): number {
    return this.socket.writableLength;
  }

  poll(reader: StreamReader, budgetBytes: number): number {
    const taken = this.inbound.poll(reader, budgetBytes);
    if (this.paused && this.inbound.bytes < STREAM_INBOUND_BYTES_MAX / 2 && !this.destroyed) {
      this.paused = false;
      this.socket.resume();
    }
    return taken;
  }

  write(chunks: readonly Uint8Array[]): void {
    if (this.status !== 'open') return;
    const socket = this.socket;
    if (chunks.length === 1) {
      socket.write(chunks[0], this.written);
      return;
    }
    socket.cork();
    for (let i = 0; i < chunks.length - 1; i++) socket.write(chunks[i]);
    socket.write(chunks[chunks.length - 1], this.written);
    socket.uncork();
  }

  end(): void {
    if (!this.destroyed) this.socket.end();
  }

  destroy(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.onEvent = nothing;
    this.inbound.clear();
    this.close({ kind: 'closed', text: 'closed here' });
    this.socket.destroy();
  }

  private takeAddresses(): void {
    this.localAddress = this.socket.localAddress ?? '';
    this.remoteAddress = this.socket.remoteAddress ?? '';
    this.remotePort = this.socket.remotePort ?? 0;
  }

  private close(reason: RailReason): void {
    if (this.status === 'closed') return;
    this.status = 'closed';
    this.failure = reason;
    this.event();
  }

  private event(): void {
    if (!this.destroyed) this.onEvent();
  }
}
