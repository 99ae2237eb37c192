// Listens for connections to the out-of-band channel. Strangers get neither time nor room: short deadlines, small headers.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, isIPv6, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { MultirailError } from '../../errors.ts';
import { checkLoopback, isLoopback, parseListenAddress } from './addresses.ts';
import { HANDSHAKE_BYTES_MAX, OOB_PATH } from './messages.ts';

export interface ListenerEvents {
  onConnection(socket: Socket): void;
  onUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Anything else than an upgrade. */
  onRequest(request: IncomingMessage, response: ServerResponse): void;
  log(text: string): void;
}

/** Listens on `host`, `host:port` or `[v6]:port`; without a port, on any free one. Throws ERR_LAUNCH when that cannot be. */
export async function listenAt(
  text: string,
  timeoutMs: number,
  { onConnection, onUpgrade, onRequest, log }: ListenerEvents,
): Promise<{ server: Server; url: string }> {
  const { host, port } = parseListenAddress(text);
  const server = createServer(
    {
      headersTimeout: timeoutMs,
      requestTimeout: timeoutMs,
      connectionsCheckingInterval: timeoutMs,
      maxHeaderSize: HANDSHAKE_BYTES_MAX,
    },
    onRequest,
  );
  server.maxHeadersCount = 32;
  server.on('connection', onConnection);
  server.on('upgrade', onUpgrade);
  server.on('clientError', (_error, socket) => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    const failed = (error: Error) =>
      reject(new MultirailError('ERR_LAUNCH', `cannot listen on ${text} for the out-of-band channel: ${error.message}`, { cause: error }));
    server.once('error', failed);
    server.listen({ host, port }, () => {
      server.off('error', failed);
      server.on('error', (error) => log(`out-of-band listener on ${text}: ${error.message}`));
      resolve();
    });
  });
  const bound = (server.address() as AddressInfo).port;
  if (isLoopback(host)) await checkLoopback(host, bound);
  return { server, url: `ws://${isIPv6(host) ? `[${host}]` : host}:${bound}${OOB_PATH}` };
}
