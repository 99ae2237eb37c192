// The point-to-point suite over two TCP connections per pair of ranks, calm and with rails that break.
import { tcpComponent } from '../../src/btl/tcp/component.ts';
import { p2pSuite } from './p2p-suite.ts';
import { realFixture } from './p2p-worlds.ts';

p2pSuite('tcp, 2 links', realFixture([tcpComponent], { btl_tcp_links: '2' }));
p2pSuite('tcp, 3 links behind the interposer', realFixture([tcpComponent], { btl_tcp_links: '3' }, true), { faultSeeds: ['tcp 1'] });
