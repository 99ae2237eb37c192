// The tcp module: plain TCP connections over node:net on the interfaces that ip-module.ts chooses.
// May import: Node, btl.ts, base, ip-module, net-stream, interfaces (types).
import { connect, createServer, type Socket } from 'node:net';
import type { ByteStream } from '../base/byte-stream.ts';
import type { BtlContext } from '../btl.ts';
import type { LocalInterface } from './interfaces.ts';
import { type DialTarget, IpModule, type Listener, standbyByList } from './ip-module.ts';
import { NetStream } from './net-stream.ts';

export class TcpModule extends IpModule {
  readonly name = 'tcp';

  constructor(context: BtlContext, readTable?: () => LocalInterface[]) {
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
        bandwidthMBps: params.int('btl_tcp_bandwidth_mbps'),
        latencyUs: params.int('btl_tcp_latency_us'),
        routeCheck: params.bool('btl_tcp_route_check'),
        standby: standbyByList(params.list('btl_tcp_standby')),
      },
      readTable,
    );
  }

  protected listen(address: string, port: number, onStream: (stream: ByteStream) => void): Promise<Listener> {
    const server = createServer({ noDelay: true }, (socket: Socket) => onStream(new NetStream(socket)));
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

  protected dialStream(target: DialTarget): ByteStream {
    return new NetStream(connect({ ...target, noDelay: true }));
  }
}
