// Byte streams of the tester, and frames cut out of them as they come. It judges nothing except frames that no reader could read.
import { connect, createServer, type Server, type Socket } from 'node:net';
import { WebSocket } from 'ws';
import { crc32c } from '../../src/btl/base/crc32c.ts';
import {
  checkFrameHeader,
  decodeFrameHeader,
  FLAG_PAYLOAD_CRC,
  FRAME_HEADER_BYTES,
  type FrameHeader,
  type FrameLimits,
  newFrameHeader,
} from '../../src/btl/base/frame-hdr.ts';

/** One connection, whatever carries it. */
export interface WireStream {
  onBytes: (bytes: Uint8Array) => void;
  onClosed: () => void;
  write(bytes: Uint8Array): void;
  /** A WebSocket text message; only where there are such. */
  writeText?(text: string): void;
  /** One binary WebSocket message; write() cuts long ones. */
  writeWhole?(bytes: Uint8Array): void;
  /** Gone at once, as a rail that is pulled. */
  destroy(): void;
  /** Writes out what is queued, then closes. */
  end(): void;
  pause(): void;
  resume(): void;
}

function streamOf(socket: Socket): WireStream {
  const stream: WireStream = {
    onBytes: () => undefined,
    onClosed: () => undefined,
    write: (bytes) => void socket.write(bytes),
    destroy: () => void socket.destroy(),
    end: () => void socket.end(),
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
  };
  let told = false;
  const closed = () => {
    if (told) return;
    told = true;
    stream.onClosed();
  };
  socket.setNoDelay(true);
  socket.on('data', (chunk: Buffer) => stream.onBytes(chunk));
  socket.on('end', closed);
  socket.on('close', closed);
  socket.on('error', closed);
  return stream;
}

/** Dials. Nothing is read before the stream is resumed, so that no byte is missed. */
export function dialTcp(host: string, port: number): Promise<WireStream> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port });
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.off('error', reject);
      socket.pause();
      resolve(streamOf(socket));
    });
  });
}

export function dialWebSocket(host: string, port: number): Promise<WireStream> {
  return new Promise((resolve, reject) => {
    const ws = new WebSocket(`ws://${host.includes(':') ? `[${host}]` : host}:${port}/multirail`, { perMessageDeflate: false });
    const stream: WireStream = {
      onBytes: () => undefined,
      onClosed: () => undefined,
      write: (bytes) => {
        for (let at = 0; at < bytes.length; at += WS_MESSAGE_BYTES_MAX)
          ws.send(bytes.subarray(at, at + WS_MESSAGE_BYTES_MAX), { binary: true }, () => undefined);
      },
      writeWhole: (bytes) => ws.send(bytes, { binary: true }, () => undefined),
      writeText: (text) => ws.send(text, { binary: false }, () => undefined),
      destroy: () => ws.terminate(),
      end: () => ws.close(),
      pause: () => ws.pause(),
      resume: () => ws.resume(),
    };
    ws.once('error', reject);
    ws.on('message', (data, isBinary) => {
      if (isBinary) stream.onBytes(new Uint8Array(data as Buffer));
    });
    ws.once('close', () => stream.onClosed());
    ws.once('open', () => {
      ws.off('error', reject);
      ws.on('error', () => undefined);
      ws.pause();
      resolve(stream);
    });
  });
}

/** The longest message that a rail may send. */
export const WS_MESSAGE_BYTES_MAX = 262_144;

/** Asks for an upgrade by hand, and answers the head of the reply; empty when there was none. The connection is closed then. */
export function askUpgrade(
  host: string,
  port: number,
  { path, version, protocols }: { path: string; version: string; protocols?: string },
  limitMs: number,
): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    let reply = '';
    const finish = (): void => {
      clearTimeout(timer);
      socket.destroy();
      const end = reply.indexOf('\r\n\r\n');
      resolve(end < 0 ? '' : reply.slice(0, end + 2));
    };
    const timer = setTimeout(finish, limitMs);
    socket.on('data', (chunk: Buffer) => {
      reply += chunk.toString('latin1');
      if (reply.includes('\r\n\r\n')) finish();
    });
    socket.on('end', finish);
    socket.on('error', finish);
    const head = [
      `GET ${path} HTTP/1.1`,
      `Host: ${host}:${port}`,
      'Upgrade: websocket',
      'Connection: Upgrade',
      // Any sixteen bytes.
      `Sec-WebSocket-Key: ${Buffer.alloc(16, 7).toString('base64')}`,
      `Sec-WebSocket-Version: ${version}`,
      ...(protocols === undefined ? [] : [`Sec-WebSocket-Protocol: ${protocols}`]),
    ];
    socket.write(`${head.join('\r\n')}\r\n\r\n`);
  });
}

/** Listens as the higher rank of a pair does. */
export function listenTcp(host: string, onStream: (stream: WireStream) => void): Promise<{ port: number; server: Server }> {
  const server = createServer({ pauseOnConnect: true }, (socket) => onStream(streamOf(socket)));
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, host, () => {
      const address = server.address();
      resolve({ port: typeof address === 'object' && address !== null ? address.port : 0, server });
    });
  });
}

/** A frame as it came. */
export interface RawFrame {
  header: FrameHeader;
  packetHeader: Uint8Array;
  payload: Uint8Array;
  /** False: PAYLOAD_CRC is set and wrong. */
  payloadSound: boolean;
  bytes: Uint8Array;
}

/** Cuts a stream into frames; stops at the first that cannot be read. */
export class FrameReader {
  limits: FrameLimits;
  /** Why no more frames come. */
  damage: string | undefined;
  private held = new Uint8Array(0);

  constructor(limits: FrameLimits) {
    this.limits = limits;
  }

  push(bytes: Uint8Array): void {
    const joined = new Uint8Array(this.held.length + bytes.length);
    joined.set(this.held);
    joined.set(bytes, this.held.length);
    this.held = joined;
  }

  next(): RawFrame | undefined {
    const { held } = this;
    if (this.damage !== undefined || held.length < FRAME_HEADER_BYTES) return undefined;
    const check = checkFrameHeader(held, 0, this.limits);
    if ('damage' in check) {
      this.damage = check.damage;
      return undefined;
    }
    if (held.length < check.bytes) return undefined;
    const header = newFrameHeader();
    if (!decodeFrameHeader(held, 0, header)) {
      this.damage = 'a frame header whose CRC or flags are wrong';
      return undefined;
    }
    const end = check.bytes + header.payloadBytes;
    if (held.length < end) return undefined;
    const bytes = held.slice(0, end);
    this.held = held.slice(end);
    const payload = bytes.subarray(check.bytes);
    return {
      header,
      packetHeader: bytes.subarray(FRAME_HEADER_BYTES, check.bytes),
      payload,
      payloadSound: (header.flags & FLAG_PAYLOAD_CRC) === 0 || crc32c(payload) === header.payloadCrc,
      bytes,
    };
  }
}
