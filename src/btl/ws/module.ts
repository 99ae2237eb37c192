// The ws module: WebSocket connections, with TLS by option, on the interfaces that tcp/ip-module.ts chooses.
import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { connect, isIPv6, type Socket } from 'node:net';
import { MultirailError } from '../../errors.ts';
import { noSubprotocol, refusalOfVersion } from '../../util/websocket.ts';
import type { ByteStream } from '../base/byte-stream.ts';
import type { BtlContext, Params } from '../btl.ts';
import type { LocalInterface } from '../tcp/interfaces.ts';
import type { DialTarget, Listener } from '../tcp/ip-config.ts';
import { IpModule } from '../tcp/ip-module.ts';
import { loadWeb, web } from './web.ts';
import { WS_MESSAGE_BYTES_MAX, WsStream } from './ws-stream.ts';

const PATH = '/multirail';
const BANDWIDTH_MBPS = 100;
const LATENCY_US = 200;
/** Headers of an upgrade request; a stranger cannot make us keep more. */
const HTTP_HEADER_BYTES_MAX = 4096;

interface TlsFiles {
  cert: Buffer;
  key: Buffer;
  ca: Buffer;
}

function readPem(params: Params, name: string): Buffer {
  const path = params.string(name);
  try {
    return readFileSync(path);
  } catch (cause) {
    throw new MultirailError('ERR_CONFIG', `${name}: cannot read "${path}"`, { cause });
  }
}

/**
 * Certificate, key and trusted certificates when TLS is on. Without a CA file our own certificate is what the other side
 * must show or be signed by: one self-signed certificate on all hosts is enough.
 */
function readTls(params: Params): TlsFiles | undefined {
  const certFile = params.string('btl_ws_tls_cert_file');
  const keyFile = params.string('btl_ws_tls_key_file');
  if (certFile === '' && keyFile === '') return undefined;
  if (certFile === '' || keyFile === '') {
    throw new MultirailError('ERR_CONFIG', 'only one of btl_ws_tls_cert_file and btl_ws_tls_key_file is set: set both or neither');
  }
  const cert = readPem(params, 'btl_ws_tls_cert_file');
  const ca = params.string('btl_ws_tls_ca_file') === '' ? cert : readPem(params, 'btl_ws_tls_ca_file');
  return { cert, key: readPem(params, 'btl_ws_tls_key_file'), ca };
}

export class WsModule extends IpModule {
  readonly name = 'ws';
  readonly needsEventLoop = true;
  private readonly tls: TlsFiles | undefined;

  constructor(context: BtlContext, readTable?: () => LocalInterface[], names?: () => string[]) {
    const { params } = context;
    const standby = params.bool('btl_ws_standby');
    super(
      context,
      {
        include: params.list('btl_ws_if_include'),
        exclude: params.list('btl_ws_if_exclude'),
        disabledFamily: 0,
        portMin: params.int('btl_ws_port_min'),
        portRange: params.int('btl_ws_port_range'),
        links: 1,
        bandwidthMBps: BANDWIDTH_MBPS,
        latencyUs: LATENCY_US,
        routeCheck: params.bool('btl_ws_route_check'),
        standby: () => standby,
      },
      readTable,
      names,
    );
    this.tls = readTls(params);
  }

  override async open(): Promise<void> {
    await loadWeb();
    await super.open();
  }

  protected listen(address: string, port: number, onStream: (stream: ByteStream) => void): Promise<Listener> {
    const limits = { maxHeaderSize: HTTP_HEADER_BYTES_MAX };
    const http: Server =
      this.tls === undefined
        ? web().createHttpServer(limits)
        : web().createHttpsServer({ ...limits, ...this.tls, requestCert: true, rejectUnauthorized: true, minVersion: 'TLSv1.2' });
    const upgrader = new (web().WebSocketServer)({
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: WS_MESSAGE_BYTES_MAX,
      skipUTF8Validation: true,
      handleProtocols: noSubprotocol,
    });
    // Connections that have not asked for an upgrade yet: bounded in number and time like the handshakes after it.
    const waiting = new Map<string, { socket: Socket; timer: NodeJS.Timeout }>();
    const nameOf = (socket: Socket): string => `${socket.remoteAddress} ${socket.remotePort}`;
    const settle = (name: string): void => {
      clearTimeout(waiting.get(name)?.timer);
      waiting.delete(name);
    };
    http.unref();
    http.on('connection', (socket: Socket) => {
      // The runtime keeps the process, not its rails.
      socket.unref();
      const name = nameOf(socket);
      if (waiting.size >= this.options.handshakesMax) {
        this.note(`refused a connection from ${name}: ${waiting.size} wait for their upgrade (btl_base_handshakes_max)`);
        socket.destroy();
        return;
      }
      const timer = setTimeout(() => {
        this.note(`refused a connection from ${name}: no upgrade within ${this.options.handshakeTimeoutMs} ms`);
        socket.destroy();
      }, this.options.handshakeTimeoutMs);
      waiting.set(name, { socket, timer });
      socket.on('close', () => settle(name));
    });
    http.on('request', (_request, response) => response.writeHead(426, { Connection: 'close' }).end('WebSocket rails only\n'));
    http.on('clientError', (_error, socket) => socket.destroy());
    http.on('upgrade', (request, duplex, head) => {
      const socket = duplex as Socket;
      settle(nameOf(socket));
      socket.on('error', () => {});
      if (request.url !== PATH || this.closed) {
        socket.destroy();
        return;
      }
      const refusal = refusalOfVersion(request.headers['sec-websocket-version']);
      if (refusal !== undefined) {
        socket.end(refusal, () => socket.destroy());
        return;
      }
      upgrader.handleUpgrade(request, socket, head, (ws) => onStream(new WsStream(ws, socket)));
    });
    return new Promise((resolve, reject) => {
      http.once('error', reject);
      http.listen({ host: address, port, exclusive: true, ipv6Only: true }, () => {
        http.off('error', reject);
        http.on('error', () => {});
        const bound = http.address();
        resolve({
          port: bound !== null && typeof bound === 'object' ? bound.port : port,
          close: () =>
            new Promise((closed) => {
              for (const { socket } of waiting.values()) socket.destroy();
              http.close(() => closed());
              http.closeAllConnections();
            }),
        });
      });
    });
  }

  protected dialStream(target: DialTarget): ByteStream {
    const { tls } = this;
    const host = isIPv6(target.host) ? `[${target.host.split('%')[0]}]` : target.host;
    const ws = new (web().WebSocket)(`${tls === undefined ? 'ws' : 'wss'}://${host}:${target.port}${PATH}`, {
      // The URL cannot carry the zone of a link-local address, nor the local one.
      createConnection: () => this.connectTo(target),
      perMessageDeflate: false,
      maxPayload: WS_MESSAGE_BYTES_MAX,
      skipUTF8Validation: true,
      followRedirects: false,
      // A mask keeps scripts in browsers from writing chosen bytes through a proxy; ours is no browser. With a mask of
      // zeros neither side copies or touches the payload (measured: several times the bandwidth).
      generateMask: (mask) => void mask.fill(0),
    });
    return new WsStream(ws);
  }

  private connectTo(target: DialTarget): Socket {
    const { tls } = this;
    if (tls === undefined) return connect({ ...target, noDelay: true }).unref();
    // Certificates are the job's own and name no addresses: who signed them is what counts, and the handshake of the
    // rail proves the rank.
    const socket = web().connectTls({ ...target, ...tls, rejectUnauthorized: true, checkServerIdentity: () => undefined });
    return socket.setNoDelay(true).unref();
  }
}
