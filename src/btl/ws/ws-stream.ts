// A ByteStream over a WebSocket of the `ws` package. Binary messages are pieces of the one byte stream of frames: where a
// message begins or ends means nothing.
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import { QueuedStream, socketFailure } from '../base/queued-stream.ts';

/** Larger flushes are cut, so that a receiver is handed bytes early and never keeps much for a stranger. */
export const WS_MESSAGE_BYTES_MAX = 256 * 1024;

const nothing = (): void => {};

export class WsStream extends QueuedStream {
  private readonly ws: WebSocket;
  private socket: Duplex | undefined = undefined;

  /** `socket` is the server's, known from the start; the client's comes with the upgrade. */
  constructor(ws: WebSocket, socket?: Socket) {
    super(ws.readyState === ws.OPEN);
    this.ws = ws;
    if (socket !== undefined) this.takeSocket(socket);
    // Large messages come as the pieces they were read in: no copy to join them.
    ws.binaryType = 'fragments';
    ws.on('upgrade', (response) => this.takeSocket(response.socket));
    ws.on('open', () => this.opened());
    ws.on('message', (data, isBinary) => {
      if (this.destroyed) return;
      if (!isBinary) {
        this.close({ kind: 'damaged', text: 'a text message on a WebSocket rail', code: 'ERR_PROTOCOL' });
        ws.terminate();
        return;
      }
      for (const chunk of data as Buffer[]) this.received(chunk);
      this.event();
    });
    ws.on('error', (error: NodeJS.ErrnoException) => {
      const protocol = error.code?.startsWith('WS_ERR') === true;
      this.close(
        protocol ? { kind: 'damaged', text: error.message, code: 'ERR_PROTOCOL' } : socketFailure(error, this.status === 'connecting'),
      );
    });
    ws.on('close', (code) => this.close({ kind: 'closed', text: `the WebSocket is closed (${code})` }));
  }

  get queuedBytes(): number {
    return this.ws.bufferedAmount;
  }

  write(chunks: readonly Uint8Array[]): void {
    if (this.status !== 'open') return;
    const { ws, socket } = this;
    socket?.cork();
    for (let i = 0; i < chunks.length; i++) {
      const chunk = chunks[i];
      for (let at = 0; at < chunk.length; at += WS_MESSAGE_BYTES_MAX) {
        const piece = chunk.length <= WS_MESSAGE_BYTES_MAX ? chunk : chunk.subarray(at, at + WS_MESSAGE_BYTES_MAX);
        const last = i === chunks.length - 1 && at + piece.length >= chunk.length;
        ws.send(piece, { binary: true, compress: false }, last ? this.written : nothing);
      }
    }
    socket?.uncork();
  }

  end(): void {
    if (!this.destroyed && this.status === 'open') this.ws.close(1000);
  }

  protected pause(): void {
    this.ws.pause();
  }

  protected resume(): void {
    this.ws.resume();
  }

  protected abandon(): void {
    this.ws.terminate();
  }

  private takeSocket(socket: Socket): void {
    this.socket = socket;
    socket.setNoDelay(true);
    this.localAddress = socket.localAddress ?? '';
    this.remoteAddress = socket.remoteAddress ?? '';
    this.remotePort = socket.remotePort ?? 0;
  }
}
