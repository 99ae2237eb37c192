// The tcp module: plain TCP connections on the interfaces that ip-module.ts chooses, over the native part where the runtime has it, and
// over node:net elsewhere.
import { connect, createServer, type Socket } from 'node:net';
import type { SocketOptions } from '../../native/binding.ts';
import type { Poller } from '../../native/poller.ts';
import type { ByteStream } from '../base/byte-stream.ts';
import { isLoopbackAddress } from '../base/handshake.ts';
import type { BtlContext, Params } from '../btl.ts';
import type { LocalInterface } from './interfaces.ts';
import { type DialTarget, type Listener, standbyByList } from './ip-config.ts';
import { IpModule } from './ip-module.ts';
import { connectNative, NativeListener } from './native-listen.ts';
import { NetStream } from './net-stream.ts';

/** Between ranks of one host nothing is lost and there is no path to explore: cubic carries 1.3 to 1.7 times what bbr does. */
const NEAR_CONGESTION = 'cubic';

/** Socket options by parameters; `near` = both ends are on this host. */
export function socketOptionsOf(params: Params, near: boolean): SocketOptions {
  const asked = params.string('btl_tcp_cc');
  const auto = near ? NEAR_CONGESTION : '';
  return {
    congestion: asked === 'auto' ? auto : asked === 'system' ? '' : asked,
    notSentLowatBytes: near ? 0 : params.int('btl_tcp_notsent_lowat_bytes'),
    sendBufferBytes: params.int('btl_tcp_sndbuf_bytes'),
    receiveBufferBytes: params.int('btl_tcp_rcvbuf_bytes'),
  };
}

export class TcpModule extends IpModule {
  readonly name = 'tcp';
  /** Undefined: node:net. */
  private readonly poller: Poller | undefined;
  private unboundTold = false;

  get needsEventLoop(): boolean {
    return this.poller === undefined;
  }

  constructor(context: BtlContext, readTable?: () => LocalInterface[], names?: () => string[]) {
    const { params } = context;
    const family = params.string('btl_tcp_disable_family');
    super(
      context,
      {
        include: params.list('btl_tcp_if_include'),
        exclude: params.list('btl_tcp_if_exclude'),
        disabledFamily: family === '4' ? 4 : family === '6' ? 6 : 0,
        portMin: params.int('btl_tcp_port_min'),
        portRange: params.int('btl_tcp_port_range'),
        links: params.int('btl_tcp_links'),
        bandwidthMBps: params.int('btl_tcp_bandwidth_mbytes_per_s'),
        latencyUs: params.int('btl_tcp_latency_us'),
        routeCheck: params.bool('btl_tcp_route_check'),
        standby: standbyByList(params.list('btl_tcp_if_standby')),
      },
      readTable,
      names,
    );
    this.poller = params.bool('btl_tcp_native') ? context.poller : undefined;
  }

  protected override get railPoller(): Poller | undefined {
    return this.poller;
  }

  protected async listen(address: string, port: number, onStream: (stream: ByteStream) => void): Promise<Listener> {
    if (this.poller === undefined) return listenNet(address, port, onStream);
    // What is accepted inherits the options, and who will connect is not known yet: only loopback tells.
    const options = socketOptionsOf(this.context.params, isLoopbackAddress(address));
    return new NativeListener(this.poller, address, port, options, onStream);
  }

  protected dialStream(target: DialTarget): ByteStream {
    const { host, port, localAddress, device } = target;
    if (this.poller === undefined) return new NetStream(connect({ host, port, localAddress, noDelay: true }));
    const near = device === '' || isLoopbackAddress(host);
    const options = socketOptionsOf(this.context.params, near);
    if (!near) options.device = device;
    return connectNative(this.poller, { host, port, localAddress }, options, (text) => {
      if (!this.unboundTold) this.note(text, 'debug');
      this.unboundTold = true;
    });
  }
}

function listenNet(address: string, port: number, onStream: (stream: ByteStream) => void): Promise<Listener> {
  const server = createServer({ noDelay: true }, (socket: Socket) => onStream(new NetStream(socket)));
  server.unref();
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host: address, port, exclusive: true, ipv6Only: true }, () => {
      server.off('error', reject);
      // Errors of a listener that works (no descriptors left) concern one connection, which its dialer tries again.
      server.on('error', () => {});
      const bound = server.address();
      resolve({
        port: bound !== null && typeof bound === 'object' ? bound.port : port,
        close: () => new Promise((closed) => server.close(() => closed())),
      });
    });
  });
}
