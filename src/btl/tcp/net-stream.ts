// A ByteStream over a node:net socket (also a TLS socket). A flush is one writev: the socket is corked around its chunks.
import type { Socket } from 'node:net';
import { QueuedStream, socketFailure } from '../base/queued-stream.ts';

export class NetStream extends QueuedStream {
  private readonly socket: Socket;

  constructor(socket: Socket) {
    super(!socket.connecting);
    this.socket = socket;
    if (this.status === 'open') this.takeAddresses();
    socket.setNoDelay(true);
    // The runtime keeps the process, not its rails.
    socket.unref();
    socket.on('connect', () => {
      if (this.status === 'connecting') this.takeAddresses();
      this.opened();
    });
    socket.on('data', (chunk: Buffer) => {
      this.received(chunk);
      this.event();
    });
    socket.on('end', () => this.close({ kind: 'closed', text: 'the peer closed the connection' }));
    socket.on('error', (error: NodeJS.ErrnoException) => this.close(socketFailure(error, this.status === 'connecting')));
    socket.on('close', () => this.close({ kind: 'closed', text: 'the connection is closed' }));
  }

  get queuedBytes(): number {
    return this.socket.writableLength;
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

  protected pause(): void {
    this.socket.pause();
  }

  protected resume(): void {
    this.socket.resume();
  }

  protected abandon(): void {
    this.socket.destroy();
  }

  private takeAddresses(): void {
    this.localAddress = this.socket.localAddress ?? '';
    this.remoteAddress = this.socket.remoteAddress ?? '';
    this.remotePort = this.socket.remotePort ?? 0;
  }
}
